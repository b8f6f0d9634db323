//! The batch of a node: its events of one window in order, and between them the timers that they set for the same window.

use netloom_units::Time;

use crate::local::LocalScheduler;
use crate::model::{Batch, Due, Handler, Hint, Model, Scheduler, Unhandled};
use crate::pending::CHUNK;
use crate::sort::{Key, index, is_at_one_instant};
use crate::wheel::Event;

/// A node's events of a window, with the order in which they are handled.
pub(crate) struct Events<'t, O, P> {
    pub(crate) order: O,
    pub(crate) events: &'t mut [Event<P>],
    pub(crate) scheduler: &'t mut LocalScheduler<P>,
}

/// The order of a batch's events.
pub(crate) trait Ordered: Copy {
    /// Whether it is the order of all of them.
    const IS_OF_ALL: bool;

    /// What says which event has a place in the order.
    type Place: Copy;

    /// The places, a chunk at a time.
    fn chunks(self) -> impl Iterator<Item = impl Iterator<Item = Self::Place> + Clone> + Clone;

    /// The index of the event that has a place.
    fn index(place: Self::Place) -> usize;

    /// Whether the events that have two places are due at one instant.
    fn is_at_one_instant(one: Self::Place, other: Self::Place) -> bool;

    /// The index of the last one, if there is one.
    fn last(self) -> Option<usize>;

    /// Their number.
    fn count(self) -> usize;
}

impl Ordered for &[Key] {
    const IS_OF_ALL: bool = true;

    type Place = Key;

    #[inline(always)]
    fn chunks(self) -> impl Iterator<Item = impl Iterator<Item = Key> + Clone> + Clone {
        <[_]>::chunks(self, CHUNK as usize).map(|chunk| chunk.iter().copied())
    }

    #[inline(always)]
    fn index(place: Key) -> usize {
        index(place)
    }

    #[inline(always)]
    fn is_at_one_instant(one: Key, other: Key) -> bool {
        is_at_one_instant(one, other)
    }

    #[inline(always)]
    fn last(self) -> Option<usize> {
        <[_]>::last(self).copied().map(index)
    }

    #[inline(always)]
    fn count(self) -> usize {
        self.len()
    }
}

/// What they are ordered by, and their indices.
impl Ordered for &[(u64, u32)] {
    const IS_OF_ALL: bool = false;

    type Place = (u64, u32);

    fn chunks(self) -> impl Iterator<Item = impl Iterator<Item = (u64, u32)> + Clone> + Clone {
        <[_]>::chunks(self, CHUNK as usize).map(|chunk| chunk.iter().copied())
    }

    fn index((_, index): (u64, u32)) -> usize {
        index as usize
    }

    // Behind the instant is the source.
    fn is_at_one_instant((one, _): (u64, u32), (other, _): (u64, u32)) -> bool {
        one >> u32::BITS == other >> u32::BITS
    }

    fn last(self) -> Option<usize> {
        <[_]>::last(self).map(|&(_, index)| index as usize)
    }

    fn count(self) -> usize {
        self.len()
    }
}

impl<M: Model, O: Ordered> Batch<M> for Events<'_, O, M::Payload> {
    #[inline(always)]
    fn run<H: Handler<M>>(self, handler: &mut H) {
        let Events { order, events, scheduler } = self;
        handler.prepare(ToPrepare { order, events });
        let mut chunks = order.chunks();
        while let Some(mut chunk) = chunks.next() {
            scheduler.prefetch();
            while let Some(place) = chunk.next() {
                if handler.looks_ahead() {
                    let next = chunk.clone().next().or_else(|| chunks.clone().next()?.next());
                    // What comes in one instant comes in one batch.
                    handler.expect(next.is_none_or(|next| !O::is_at_one_instant(place, next)));
                }
                let Event { at, source, payload, node: hint } = &mut events[O::index(place)];
                if H::SETS_TIMERS {
                    // Few are due in the same instant.
                    if scheduler.next_timer <= *at {
                        handle_timers(handler, scheduler, Due { at: *at, source: *source });
                    }
                    scheduler.now = *at;
                }
                handler.handle(
                    Due { at: *at, source: *source },
                    payload,
                    M::Hint::from_bits(*hint),
                    scheduler,
                );
            }
        }
        if let Some(last) = order.last() {
            handler.finish(events[last].at);
        }
    }
}

/// [`Events`] that the node may prepare. The hint of one is kept in the place of its destination, which has been reached.
struct ToPrepare<'t, O, P> {
    order: O,
    events: &'t mut [Event<P>],
}

impl<M: Model, O: Ordered> Unhandled<M> for ToPrepare<'_, O, M::Payload> {
    #[inline(always)]
    fn count(&self) -> usize {
        self.order.count()
    }

    #[inline(always)]
    fn annotate(self, mut hint: impl FnMut(&mut M::Payload) -> M::Hint) {
        let ToPrepare { order, events } = self;
        let mut annotate = |event: &mut Event<M::Payload>| event.node = hint(&mut event.payload).to_bits();
        if O::IS_OF_ALL {
            return events.iter_mut().for_each(annotate);
        }
        for place in order.chunks().flatten() {
            annotate(&mut events[O::index(place)]);
        }
    }
}

/// The timers of the running window that are due before an instant.
pub(crate) struct Timers<'t, P> {
    pub(crate) scheduler: &'t mut LocalScheduler<P>,
    pub(crate) before: Time,
}

impl<M: Model> Batch<M> for Timers<'_, M::Payload> {
    fn run<H: Handler<M>>(self, handler: &mut H) {
        handle_timers(handler, self.scheduler, Due { at: self.before, source: 0 });
    }
}

#[inline(never)]
fn handle_timers<M: Model>(
    handler: &mut impl Handler<M>,
    scheduler: &mut LocalScheduler<M::Payload>,
    next: Due,
) {
    while let Some((due, mut payload)) = scheduler.due_timer(next) {
        let at = due.at;
        assert!(at >= scheduler.now, "the model set a timer for {at} when {} had passed", scheduler.now);
        scheduler.now = at;
        handler.handle(due, &mut payload, M::Hint::NONE, scheduler);
    }
}
