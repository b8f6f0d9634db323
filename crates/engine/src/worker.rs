//! One thread of a run: windows, the batches of its nodes, and the sync round at the end of each epoch.

use std::collections::BTreeSet;
use std::num::Wrapping;
use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_units::{Time, narrow};

use crate::batch::{Events, Timers};
use crate::batch_order::BatchOrder;
use crate::engine::{Division, Progress};
use crate::exchange::{Exchange, ThreadHandle};
use crate::local::{CurrentNode, LocalScheduler};
use crate::model::{Model, NodeIndex, is_timer};
use crate::partition::ranks;
use crate::pending::PrefetchCursor;
use crate::setup::Setup;
use crate::sort::EventSorter;
use crate::team::{Rebalance, RunEnd, Work, imbalance, pays_off};
use crate::wheel::{Event, Wheel};
use crate::window_plan::WindowPlan;
use crate::windows::Windows;

/// The instants of a window.
#[derive(Clone, Copy)]
struct WindowBounds {
    start: Time,
    end: Time,
    /// Whether the run's limit does not cut the window.
    is_whole: bool,
}

impl WindowBounds {
    fn new(start: Time, end: Time, limit: Time) -> Self {
        WindowBounds { start, end: end.min(limit), is_whole: end <= limit }
    }
}

/// Where a run ends for now, besides where [nodes report](Scheduler::report) something.
#[derive(Clone, Copy)]
pub(crate) struct Pause {
    /// Nothing at or after this instant is run; a window is cut there.
    pub(crate) until: Time,
    /// Whether it pauses where nodes report something.
    pub(crate) at_reports: bool,
    /// What reports cause comes no earlier than this after it: a window is cut this long after the first instant at which a node of it may report something. [`Time::MAX`]: windows are so short that none need be cut.
    pub(crate) reaction: Time,
}

impl Pause {
    /// None.
    pub(crate) const NEVER: Pause = Pause { until: Time::MAX, at_reports: false, reaction: Time::MAX };
}

/// How workers are to run.
#[derive(Clone, Copy)]
pub(crate) struct How<'t> {
    pub(crate) plan: WindowPlan,
    pub(crate) setup: &'t Setup,
    pub(crate) pause: Pause,
    /// Whether their work is compared, and when.
    pub(crate) rebalance: Option<&'t Rebalance>,
}

/// One thread of a run, and the nodes that it runs.
// Aligned as [`Outbox`](crate::exchange::Outbox) is, and for the same reason.
#[repr(align(128))]
pub(crate) struct Worker<M: Model> {
    /// Not an argument of what follows: that takes a register throughout, and 5% more instructions per packet-hop.
    pub(crate) model: Arc<M>,
    pub(crate) nodes: Vec<M::Node>,
    pub(crate) ids: Vec<NodeIndex>,
    pub(crate) batch_order: BatchOrder,
    pub(crate) limit: Time,
    /// Of the window being run.
    pub(crate) start: Time,
    /// The nodes inside which the next thing happens at or after the limit.
    pub(crate) waiting_past_limit: BTreeSet<u32>,
    pub(crate) scheduler: LocalScheduler<M::Payload>,
    /// Those of the running batch.
    pub(crate) events: Vec<Event<P<M>>>,
    pub(crate) sorter: EventSorter,
    pub(crate) windows: Windows,
    /// Scratch for batches of too many events for [`Self::sorter`].
    pub(crate) large_order: Vec<(u64, u32)>,
    /// Payloads of messages at or after the limit, if the limit cuts a window.
    pub(crate) past_limit: Vec<P<M>>,
    /// Whether it cut off messages or timers.
    pub(crate) is_cut: bool,
    /// Whether a [pause](Pause) cuts the window being run, so that what is cut off is run later.
    pub(crate) goes_on: bool,
    /// The end of the last window, or where a pause has cut it.
    pub(crate) ran_until: Time,
    /// Messages, and timers set for later windows.
    pub(crate) handled: u64,
    /// Whether its nodes, or those of its predecessors, have started.
    pub(crate) has_started: bool,
    /// Epochs that have been run, by this thread or by its predecessors.
    pub(crate) epochs: u64,
    /// How the work of all threads was divided, known to the first one.
    pub(crate) division: Division,
    /// Batches and events since the threads' [work](Rebalance) was last compared.
    pub(crate) work: Work,
    /// The same by node, if nodes may be partitioned anew.
    pub(crate) loads: Vec<u32>,
}

pub(crate) type P<M> = <M as Model>::Payload;

impl<M: Model> Worker<M> {
    /// Runs the nodes until all is done, or some threads have too much to do; the other workers of the team run on threads of their own.
    pub(crate) fn run(
        &mut self,
        exchange: &Exchange<Event<P<M>>>,
        how: How<'_>,
        mut observe: Option<impl FnMut(Progress) -> ControlFlow<()>>,
    ) -> RunEnd {
        let mut thread = exchange.thread(self.scheduler.partition as usize);
        self.begin(how);
        let mut end = RunEnd::Finished;
        loop {
            self.hand_in(&thread);
            if thread.meet().is_err() {
                break;
            }
            let Some(window) = self.take(&mut thread, how) else { break };
            end = self.run_epoch(window, &mut thread, how, observe.as_mut());
        }
        self.division += thread.division();
        end
    }

    /// The same of all workers of a team, one after the other on this thread.
    pub(crate) fn run_all(
        workers: &mut [Self],
        exchange: &Exchange<Event<P<M>>>,
        how: How<'_>,
        observe: &mut impl FnMut(Progress) -> ControlFlow<()>,
    ) -> RunEnd {
        let mut threads: Vec<_> = (0..workers.len()).map(|me| exchange.thread(me)).collect();
        workers.iter_mut().for_each(|worker| worker.begin(how));
        let mut end = RunEnd::Finished;
        loop {
            workers.iter_mut().zip(&threads).for_each(|(worker, thread)| worker.hand_in(thread));
            let mut next = None;
            for (worker, thread) in workers.iter_mut().zip(&mut threads) {
                next = worker.take(thread, how);
            }
            let Some(window) = next else { break };
            for (worker, thread) in workers.iter_mut().zip(&mut threads).rev() {
                let observe = (worker.scheduler.partition == 0).then_some(&mut *observe);
                end = worker.run_epoch(window, thread, how, observe);
            }
        }
        workers[0].division += threads[0].division();
        end
    }

    fn begin(&mut self, how: How<'_>) {
        if !self.has_started {
            self.start_nodes(how.setup);
        }
    }

    /// Runs the nodes for an epoch. The worker that `observe` is given says how the run has ended, if that is the last one.
    fn run_epoch(
        &mut self,
        window: u64,
        thread: &mut ThreadHandle<'_, Event<P<M>>>,
        How { plan, pause, rebalance, .. }: How<'_>,
        observe: Option<&mut impl FnMut(Progress) -> ControlFlow<()>>,
    ) -> RunEnd {
        if rebalance.is_some_and(|rebalance| rebalance.is_checked_after(self.epochs)) {
            self.work = Work::default();
            self.loads.fill(0);
        }
        let before = self.work.iter().sum::<u64>();
        let epoch_end = window + plan.epoch;
        self.scheduler.wheel.begin_epoch(window..epoch_end);
        for window in window..epoch_end {
            let mut cut = pause.until;
            let is_fused = self.batch_order.fused_end > 0
                && self.windows.step() > 1
                && self.windows.side(window) == 0
                && self.windows.start(window + 1) < self.limit
                && (self.windows.end(window + 1) <= cut || cut >= self.limit);
            if pause.reaction.0 < self.windows.length() {
                cut = cut.min(self.first_reaction(window, pause.reaction));
            }
            self.run_window(window, is_fused, cut);
        }
        self.epochs += 1;
        if pause.at_reports && self.scheduler.pauses {
            thread.stop();
        }
        let of_epoch = self.work.iter().sum::<u64>() - before;
        thread.publish(self.scheduler.tally, self.messages(), self.work, of_epoch);
        let Some(observe) = observe else { return RunEnd::Finished };
        let (tally, messages) = thread.published();
        let time = plan.windows.start(epoch_end).min(self.ran_until);
        if observe(Progress { time, tally, messages }).is_break() {
            thread.stop();
        } else if rebalance.is_some_and(|rebalance| rebalance.is_checked_after(self.epochs))
            && pays_off(imbalance(thread.published_work()), self.scheduler.nodes())
        {
            thread.stop();
            return RunEnd::Imbalanced;
        }
        RunEnd::Finished
    }

    /// Messages handled so far, less the timers of later windows that still wait. What is missing here may be in another
    /// thread's count, so that only the sum over all threads has a meaning.
    pub(crate) fn messages(&self) -> u64 {
        (Wrapping(self.handled) - self.scheduler.timers).0
    }

    #[expect(clippy::cast_possible_truncation, reason = "nodes have indices of 32 bits: Team::place")]
    pub(crate) fn start_nodes(&mut self, setup: &Setup) {
        self.has_started = true;
        for local in 0..self.nodes.len() {
            self.scheduler.current = CurrentNode { local: local as u32, window_end: Time::ZERO };
            let side = self.side(setup, local as u32);
            self.scheduler.wheel.begin(side);
            self.model.start(&mut self.nodes[local], self.ids[local], &mut self.scheduler);
        }
    }

    /// The first part of a sync round: hands in the outboxes.
    fn hand_in(&mut self, thread: &ThreadHandle<'_, Event<P<M>>>) {
        let LocalScheduler { wheel, outboxes, outbox_first, .. } = &mut self.scheduler;
        let first = wheel.next_busy().unwrap_or(u64::MAX).min(*outbox_first);
        *outbox_first = u64::MAX;
        thread.hand_in(first, outboxes);
    }

    /// The last part: takes the events from the outboxes of others. Returns the next window to run. There is none if all is done up to the limit or the pause.
    fn take(
        &mut self,
        thread: &mut ThreadHandle<'_, Event<P<M>>>,
        How { pause, .. }: How<'_>,
    ) -> Option<u64> {
        let Worker { scheduler: LocalScheduler { wheel, .. }, limit, ran_until, windows, .. } = self;
        let next = thread.take(|event| wheel.insert(event.at, event.node, || *event))?;
        // An event that comes too early makes the thread that gets it panic; the others have agreed on its window, and are done.
        let is_over = next < wheel.current()
            || windows.start(next) >= (*limit).min(pause.until)
            // Of a bipartition both sides come to the pause.
            || *ran_until >= pause.until && windows.step() == 1;
        (!is_over).then_some(next)
    }

    /// When something may come from outside at the earliest that the first report of a window causes.
    #[cold]
    #[inline(never)]
    fn first_reaction(&mut self, window: u64, reaction: Time) -> Time {
        let Worker { model, windows, nodes, batch_order, scheduler, .. } = self;
        let start = windows.start(window);
        let wheel = &scheduler.wheel;
        let mut ranks = wheel.scheduled();
        let mut first = Time::MAX;
        loop {
            let rank = wheel.next_batch(&mut ranks);
            let Some(&local) = batch_order.nodes.get(rank as usize) else { break };
            let pending = |each: &mut dyn FnMut(Time, &P<M>)| {
                wheel.inbox(local, |event| each(event.at, &event.payload));
            };
            first = first.min(model.first_report(&nodes[local as usize], pending));
        }
        Time(first.max(start).max(self.ran_until).0.saturating_add(reaction.0))
    }

    /// Runs the batches of a window, as far as they come before `cut`, and, if `is_fused`, those of the next one whose nodes come [before `fused_end`](BatchOrder::fused_end).
    fn run_window(&mut self, window: u64, is_fused: bool, cut: Time) {
        self.goes_on = cut < self.limit;
        let Worker { windows, limit, scheduler: LocalScheduler { wheel, .. }, .. } = self;
        let limit = cut.min(*limit);
        let mut bounds = [WindowBounds::new(windows.start(window), wheel.begin_window(), limit); 2];
        // The ranks of the batches to come, as far as they are known: two of this window, and one of the next.
        let mut ranks = wheel.scheduled();
        let (mut now, mut next) = ([wheel.next_batch(&mut ranks), wheel.next_batch(&mut ranks)], u32::MAX);
        let mut end = u32::MAX;
        if is_fused {
            bounds[1] = WindowBounds::new(windows.start(window + 1), wheel.begin_next_window(), limit);
            next = wheel.first_batch_of_next(0);
            end = self.batch_order.fused_end;
        }
        self.start = bounds[0].start;
        let (mut batches, handled, mut was_in_next) = (0, self.handled, false);
        loop {
            let rank = now[0].min(next);
            if rank >= end {
                break;
            }
            let local = self.batch_order.nodes[rank as usize];
            let is_in_next = next < now[0];
            let wheel = &mut self.scheduler.wheel;
            if is_in_next {
                next = wheel.first_batch_of_next(rank + 1);
            } else {
                now = [now[1], wheel.next_batch(&mut ranks)];
            }
            if is_in_next != was_in_next {
                was_in_next = is_in_next;
                wheel.swap_windows();
                self.start = bounds[usize::from(is_in_next)].start;
            }
            match next < now[0] {
                true => self.prefetch(next, true, now[0]),
                false => self.prefetch(now[0], false, now[1].min(next)),
            }
            self.run_batch(local, &bounds[usize::from(is_in_next)]);
            batches += 1;
            if is_fused && now[0] - rank > 1 {
                // The batch may have scheduled a node before that one.
                next = self.scheduler.wheel.first_batch_of_next(rank + 1);
            }
        }
        if was_in_next {
            self.scheduler.wheel.swap_windows();
        }
        self.work[self.windows.side(window)] += batches + self.handled - handled;
        self.ran_until = bounds[0].end;
        match self.goes_on && !bounds[0].is_whole {
            true => self.scheduler.wheel.pause(),
            false => self.scheduler.wheel.finish(if is_fused { end } else { 0 }, !bounds[0].is_whole),
        }
    }

    /// Prefetches what the next batch will touch, which is one of the next window or not, and what leads to it for the one after it, both given by their ranks: step
    /// by step, as each step leads to the next one.
    #[inline(never)]
    fn prefetch(&mut self, next: u32, is_in_next: bool, after: u32) {
        let Worker { model, nodes, batch_order, scheduler: LocalScheduler { wheel, prefetch, .. }, .. } =
            self;
        if let Some(&node) = batch_order.nodes.get(after as usize) {
            model.prefetch_node(&nodes[node as usize]);
        }
        *prefetch = PrefetchCursor::default();
        if let Some(&node) = batch_order.nodes.get(next as usize) {
            *prefetch = wheel.prefetch_cursor(is_in_next, node);
            model.prefetch_state(&nodes[node as usize], prefetch.is_long());
        }
    }

    /// One node's batch: its events of the window in order, then everything that happens inside it until the window's end.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fewer than 2³² messages are under way: PendingEvents::allocate_chunk"
    )]
    fn run_batch(&mut self, local: u32, &WindowBounds { end, is_whole, .. }: &WindowBounds) {
        self.scheduler.current = CurrentNode { local, window_end: end };
        self.scheduler.now = self.start;
        self.scheduler.wheel.take_inbox(local, &mut self.events);
        if let Some(load) = self.loads.get_mut(local as usize) {
            *load = load.saturating_add(1 + self.events.len() as u32);
        }
        if is_whole && EventSorter::takes(self.events.len()) {
            self.handle_events(local);
        } else {
            self.handle_large_or_cut(local, end);
        }
        let Worker { model, nodes, ids, scheduler, waiting_past_limit, .. } = self;
        let (node, id) = (&mut nodes[local as usize], ids[local as usize]);
        let next = loop {
            if scheduler.next_timer < end {
                model.run_batch(node, id, Timers { scheduler, before: end });
            }
            let next = model.advance(node, id, end, scheduler);
            // It may have set timers for this very window, and then it has stopped there.
            if scheduler.next_timer == Time::MAX {
                break next;
            }
        };
        if !waiting_past_limit.is_empty() {
            waiting_past_limit.remove(&local);
        }
        match next {
            Some(next) if next < self.limit => {
                assert!(next >= end, "the model left undone what happens at {next}, before {end}");
                let window = self.scheduler.wheel.window_of_own(next);
                self.scheduler.wheel.wake(local, window);
            }
            Some(_) => _ = waiting_past_limit.insert(local),
            None => {}
        }
    }

    /// Between two runs, brings a node to `now`, up to which all has been run: nothing happens there that anybody else would notice. Returns when something happens next inside the node.
    pub(crate) fn settle(&mut self, local: u32, now: Time) -> Option<Time> {
        let Worker { model, nodes, ids, scheduler, .. } = self;
        scheduler.current = CurrentNode { local, window_end: now };
        model.advance(&mut nodes[local as usize], ids[local as usize], now, scheduler)
    }

    /// Takes other windows; returns a wheel for them.
    pub(crate) fn new_wheel(&mut self, plan: WindowPlan, threads: usize) -> Wheel<P<M>> {
        (self.windows, self.sorter) = (plan.windows, EventSorter::new(plan.windows.length()));
        Wheel::new(ranks(&self.batch_order.nodes), threads == 1, plan.windows, plan.slots, plan.epoch)
    }

    /// Between two runs, continues at `now` with a new wheel, when `events` are pending.
    pub(crate) fn go_on_at(&mut self, now: Time, setup: &Setup, events: Vec<Event<P<M>>>) {
        self.waiting_past_limit.clear();
        self.ran_until = now;
        self.scheduler.wheel.begin_at_instant(now);
        for event in events {
            let side = self.side(setup, event.node);
            self.scheduler.wheel.insert_between_epochs(event, side);
        }
        for local in 0..narrow::<u32>(self.nodes.len()) {
            let next = self.settle(local, now);
            match next {
                Some(next) if next < self.limit => {
                    let side = self.side(setup, local);
                    self.scheduler.wheel.wake_between_epochs(local, next, side);
                }
                Some(_) => _ = self.waiting_past_limit.insert(local),
                None => {}
            }
        }
    }

    /// The side to which a node belongs in the windows of now.
    fn side(&self, setup: &Setup, local: u32) -> u64 {
        let is_odd = setup.bipartition.as_ref().filter(|_| self.windows.step() > 1);
        is_odd.is_some_and(|sides| sides.is_odd[self.ids[local as usize] as usize]).into()
    }

    /// Handles a batch's events by (time, source, order of sending).
    #[inline]
    fn handle_events(&mut self, local: u32) {
        let Worker { model, nodes, ids, scheduler, events, sorter, handled, start, .. } = self;
        *handled += events.len() as u64;
        let order = sorter.sort(*start, events.iter().map(|event| (event.at, event.source)));
        let events = Events { order, events, scheduler };
        model.run_batch(&mut nodes[local as usize], ids[local as usize], events);
    }

    /// [`Self::handle_events`] of a batch with too many events for the sorter, or of a window that the run's limit or a pause cuts.
    #[cold]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fewer than 2³² messages are under way: PendingEvents::allocate_chunk"
    )]
    fn handle_large_or_cut(&mut self, local: u32, end: Time) {
        let Worker {
            model,
            nodes,
            ids,
            scheduler,
            events,
            large_order,
            past_limit,
            is_cut,
            goes_on,
            handled,
            start,
            ..
        } = self;
        large_order.clear();
        for (index, event) in events.iter().enumerate() {
            if event.at < end {
                // An offset within a window fits 32 bits: Windows::LONGEST.
                let key = (event.at - *start).0 << u32::BITS | u64::from(event.source);
                large_order.push((key, index as u32));
                continue;
            }
            if *goes_on {
                scheduler.wheel.put_back(Event { node: local, ..*event });
                continue;
            }
            *is_cut = true;
            if is_timer(event.source) {
                scheduler.timers -= 1;
            } else {
                past_limit.push(event.payload);
            }
        }
        *handled += large_order.len() as u64;
        large_order.sort_unstable();
        let events = Events { order: large_order.as_slice(), events, scheduler };
        model.run_batch(&mut nodes[local as usize], ids[local as usize], events);
    }
}
