//! The executor: epochs, windows, turns, and the exchange of mail between threads.

use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_units::Time;

use crate::exchange::{Exchange, Letters, Party};
use crate::inboxes::{Ahead, CHUNK};
use crate::model::{Handler, Messages, Model, NodeIndex, Scheduler, TIMER, Turn, UNFORESEEN};
use crate::order::{Key, Order, index};
use crate::team::{Balance, End, Team, Work, excess, is_worth_it};
use crate::turns::Sequence;
use crate::wheel::{Event, Wheel};
use crate::windows::Windows;

/// How to run a model.
#[derive(Clone, Debug)]
pub struct Setup {
    /// No message arrives earlier than this after its cause. Must not be zero.
    pub lookahead: Time,
    /// No event at or after this instant is run, nor any at or after [`END_OF_TIME`].
    pub until: Time,
    /// Most messages arrive within this long; later ones cost a little more. Affects speed only.
    pub horizon: Time,
    /// Windows per lookahead: short windows keep the events of one window in the cache, long ones give nodes more to do in a turn. Affects
    /// speed only.
    pub windows_per_lookahead: u64,
    /// For every node, the thread that runs it, at first. Affects speed only.
    pub parts: Option<Vec<u16>>,
    /// All nodes, those that talk to each other most close together: turns are taken in nearly this order, and when nodes are given to other threads, each
    /// gets some that follow each other. Affects speed only.
    pub order: Option<Vec<NodeIndex>>,
    /// If threads are to be given other nodes where some have more to do than others. Affects speed only.
    pub balance: Option<Balance>,
    /// The two sides of the nodes, if there are any. Affects speed only: turns are then as long as the lookaheads of both sides together, as
    /// nothing can come from the other side before that is run.
    pub sides: Option<Sides>,
}

/// Two sides of nodes of which none ever sends a message to one of its own side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sides {
    /// For every node, on which side it is.
    pub of: Vec<bool>,
    /// No message arrives earlier than this after its cause: from the side of `false`, and from that of `true`. At least
    /// [`Setup::lookahead`], or that counts.
    pub lookaheads: [Time; 2],
}

/// No event at or after this instant, 106 days of simulated time, is ever run.
///
/// Instants up to twice as late can be written, so that what a node adds to an instant that it sees (a transmission, a cable, a
/// timeout) does not wrap around.
pub const END_OF_TIME: Time = Time::END;

impl Setup {
    /// One thread, no time limit.
    pub fn new(lookahead: Time) -> Self {
        Setup {
            lookahead,
            until: Time::MAX,
            horizon: lookahead * 4,
            windows_per_lookahead: 1,
            parts: None,
            order: None,
            balance: None,
            sides: None,
        }
    }
}

/// Why an engine cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Without a lookahead no two nodes are ever independent.
    #[error("the lookahead is zero: every message must take some time")]
    NoLookahead,
    /// `parts` does not have one entry per node.
    #[error("{parts} nodes are placed on threads but there are {nodes} nodes")]
    Parts {
        /// Entries given.
        parts: usize,
        /// Nodes given.
        nodes: usize,
    },
    /// `order` does not name every node once.
    #[error("the order of nodes names {named} of {nodes} nodes, or one twice")]
    Order {
        /// Entries given.
        named: usize,
        /// Nodes given.
        nodes: usize,
    },
    /// `sides` does not have one entry per node.
    #[error("{sides} nodes are on a side but there are {nodes} nodes")]
    Sides {
        /// Entries given.
        sides: usize,
        /// Nodes given.
        nodes: usize,
    },
}

/// Where a run stands, as its observer sees it between two epochs.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Everything before this instant has been run.
    pub time: Time,
    /// Sum of all [`Scheduler::tally`] calls.
    pub tally: u64,
    /// Messages handled, timers not counted.
    pub messages: u64,
}

/// A run that has ended.
#[derive(Clone, Debug)]
pub struct Run<N, P> {
    /// The nodes in their final state, in the order in which they were given.
    pub nodes: Vec<N>,
    /// Messages handled, timers not counted.
    pub messages: u64,
    /// Sum of all [`Scheduler::tally`] calls.
    pub tally: u64,
    /// What messages still under way carry: none, unless the run ended at `until` or was stopped.
    pub pending: Vec<P>,
    /// Whether the observer stopped the run.
    pub stopped: bool,
    /// Whether something was left to do at [`END_OF_TIME`].
    pub out_of_time: bool,
    /// How often nodes were given to other threads, as [`Balance`] says.
    pub regroupings: u32,
}

/// A model ready to run.
pub struct Engine<'m, M: Model> {
    model: &'m M,
    setup: Setup,
    nodes: Vec<M::Node>,
}

impl<'m, M: Model> Engine<'m, M> {
    /// Checks the setup.
    ///
    /// # Errors
    /// If the lookahead is zero or `parts`, `order` or `sides` do not fit the nodes.
    pub fn new(model: &'m M, nodes: Vec<M::Node>, setup: Setup) -> Result<Self, EngineError> {
        if setup.lookahead == Time::ZERO {
            return Err(EngineError::NoLookahead);
        }
        if let Some(parts) = setup.parts.as_ref().filter(|parts| parts.len() != nodes.len()) {
            return Err(EngineError::Parts { parts: parts.len(), nodes: nodes.len() });
        }
        if let Some(sides) = setup.sides.as_ref().filter(|sides| sides.of.len() != nodes.len()) {
            return Err(EngineError::Sides { sides: sides.of.len(), nodes: nodes.len() });
        }
        if let Some(order) = &setup.order
            && !is_permutation(order, nodes.len())
        {
            return Err(EngineError::Order { named: order.len(), nodes: nodes.len() });
        }
        Ok(Engine { model, setup, nodes })
    }

    /// Runs until nothing is left to happen, or `until`.
    pub fn run(self) -> Run<M::Node, M::Payload> {
        self.run_observed(|_| ControlFlow::Continue(()))
    }

    /// Runs; `observe` is called between epochs and may stop the run.
    pub fn run_observed(
        self,
        mut observe: impl FnMut(Progress) -> ControlFlow<()>,
    ) -> Run<M::Node, M::Payload> {
        let Engine { model, setup, nodes } = self;
        let parts = setup.parts.clone().unwrap_or_else(|| vec![0; nodes.len()]);
        let mut team = Team::new(model, &setup, &parts, nodes);
        while team.run(&mut observe) == End::Uneven {
            team.regroup();
        }
        team.disband()
    }
}

/// Whether every one of this many nodes is named once.
fn is_permutation(order: &[NodeIndex], nodes: usize) -> bool {
    let mut is_named = vec![false; nodes];
    let names = |&node: &NodeIndex| {
        is_named.get_mut(node as usize).is_some_and(|is_named| !std::mem::replace(is_named, true))
    };
    order.len() == nodes && order.iter().all(names)
}

/// Most windows of an epoch: far below the number of near windows.
const LONGEST_EPOCH: u64 = 32;

/// How time is cut.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    pub(crate) windows: Windows,
    pub(crate) slots: usize,
    /// Whole windows that fit into a lookahead: threads meet once per this many windows.
    pub(crate) epoch: u64,
    /// Nothing at or after this instant is run.
    pub(crate) limit: Time,
}

impl Grid {
    pub(crate) fn new(setup: &Setup) -> Self {
        let limit = setup.until.min(END_OF_TIME);
        if let Some(Sides { lookaheads, .. }) =
            setup.sides.as_ref().filter(|_| setup.windows_per_lookahead <= 1)
        {
            let paces = lookaheads.map(|lookahead| lookahead.max(setup.lookahead).0);
            let length = paces[0].saturating_add(paces[1]);
            if length <= Windows::LONGEST {
                let windows = Windows::of_two_sides(paces);
                return Grid { windows, slots: slots(setup, length / 2, 1), epoch: 1, limit };
            }
        }
        // Equal ones, so that threads meet no more often than once per lookahead.
        let count = setup.windows_per_lookahead.max(setup.lookahead.0.div_ceil(Windows::LONGEST)).max(1);
        let length = (setup.lookahead.0 / count).max(1);
        // Meeting more often than necessary lets the observer see a run whose messages take seconds.
        let epoch = (setup.lookahead.0 / length).min(LONGEST_EPOCH);
        Grid { windows: Windows::new(length), slots: slots(setup, length, epoch), epoch, limit }
    }
}

/// Near windows, of windows that begin `pace` apart: a power of two.
fn slots(setup: &Setup, pace: u64, epoch: u64) -> usize {
    let near = (setup.horizon.0.max(setup.lookahead.0) / pace).min(256) + 2 + epoch;
    near.next_power_of_two().clamp(8, 256) as usize
}

/// Where a node lives.
#[derive(Clone, Copy)]
pub(crate) struct Home {
    pub(crate) part: u32,
    pub(crate) local: u32,
}

/// What a turn is of.
#[derive(Clone, Copy)]
struct Span {
    start: Time,
    end: Time,
    /// Whether the run's limit does not cut the window.
    is_whole: bool,
}

impl Span {
    fn new(start: Time, end: Time, limit: Time) -> Self {
        Span { start, end: end.min(limit), is_whole: end <= limit }
    }
}

/// One thread of a run, and the nodes that it runs.
// As far from another one as [`Letters`].
#[repr(align(128))]
pub(crate) struct Worker<'e, M: Model> {
    pub(crate) model: &'e M,
    pub(crate) nodes: Vec<M::Node>,
    pub(crate) ids: Vec<NodeIndex>,
    pub(crate) sequence: Sequence,
    /// If there are two.
    pub(crate) sides: Option<&'e [bool]>,
    pub(crate) limit: Time,
    /// Of the window being run.
    pub(crate) start: Time,
    /// The nodes that wait for an instant at or after the limit inside them.
    pub(crate) beyond: BTreeSet<u32>,
    pub(crate) outbox: Outbox<M::Payload>,
    /// Those of the running turn.
    pub(crate) events: Vec<Event<P<M>>>,
    pub(crate) order: Order,
    pub(crate) windows: Windows,
    /// Scratch for turns of too many events for that.
    pub(crate) long_order: Vec<(u64, u32)>,
    /// What messages at or after the limit carry, if the limit cuts a window.
    pub(crate) late: Vec<P<M>>,
    /// Whether it cut off messages or timers.
    pub(crate) is_cut: bool,
    /// Messages and timers of later turns.
    pub(crate) handled: u64,
    /// Those that have been run, by this thread or by those before it.
    pub(crate) epochs: u64,
    /// What has been done since the last look at the threads' [`Balance`]: turns and what was handled in them.
    pub(crate) work: Work,
    /// The same by node, if nodes may be given to other threads.
    pub(crate) loads: Vec<u32>,
}

pub(crate) type P<M> = <M as Model>::Payload;

impl<M: Model> Worker<'_, M> {
    /// Runs the nodes until all is done, or some threads have too much to do.
    pub(crate) fn run(
        &mut self,
        exchange: &Exchange<Event<P<M>>>,
        grid: Grid,
        balance: Option<&Balance>,
        mut observe: Option<impl FnMut(Progress) -> ControlFlow<()>>,
    ) -> End {
        let mut party = exchange.party(self.outbox.part as usize);
        if self.epochs == 0 {
            self.start_nodes();
        }
        let mut end = End::Over;
        while let Some(window) = self.meet(&mut party) {
            if grid.windows.start(window) >= self.limit {
                break;
            }
            if balance.is_some_and(|balance| balance.looks_after(self.epochs)) {
                self.work = Work::default();
                self.loads.fill(0);
            }
            let epoch_end = window + grid.epoch;
            self.outbox.wheel.begin_epoch(window..epoch_end);
            for window in window..epoch_end {
                let with_next = self.sequence.early > 0
                    && self.windows.side(window) == 0
                    && self.windows.start(window + 1) < self.limit;
                self.run_window(window, with_next);
            }
            self.epochs += 1;
            party.note(self.outbox.tally, self.messages(), self.work);
            let Some(observe) = &mut observe else { continue };
            let (tally, messages) = party.noted();
            if observe(Progress { time: grid.windows.start(epoch_end), tally, messages }).is_break() {
                party.stop();
            } else if balance.is_some_and(|balance| balance.looks_after(self.epochs))
                && is_worth_it(excess(party.noted_work()), self.outbox.nodes())
            {
                end = End::Uneven;
                party.stop();
            }
        }
        end
    }

    /// Messages handled so far; while timers of later turns wait, that many are not counted yet. What is missing here may be another
    /// thread's, so that only the sum of all means something.
    fn messages(&self) -> u64 {
        self.handled.wrapping_sub(self.outbox.timers)
    }

    #[expect(clippy::cast_possible_truncation, reason = "nodes have indices of 32 bits: Team::place")]
    fn start_nodes(&mut self) {
        for local in 0..self.nodes.len() {
            self.outbox.running = Running { local: local as u32, window_end: Time::ZERO };
            let side = self.sides.is_some_and(|sides| sides[self.ids[local] as usize]);
            self.outbox.wheel.begin(u64::from(side));
            self.model.start(&mut self.nodes[local], self.ids[local], &mut self.outbox);
        }
    }

    /// Exchanges mail with the other threads and agrees on the next window to run; there is none if all is done, or another thread
    /// panicked.
    fn meet(&mut self, party: &mut Party<'_, Event<P<M>>>) -> Option<u64> {
        let Outbox { wheel, mail, mail_first, .. } = &mut self.outbox;
        let busy = wheel.next_busy().unwrap_or(u64::MAX).min(*mail_first);
        *mail_first = u64::MAX;
        let receive = |letter: &Event<_>| wheel.insert(letter.at, letter.node, || *letter);
        let next = party.meet(busy, mail, receive).unwrap_or(None);
        // What comes too early makes the thread that gets it panic; the others have heard of its window, and are done.
        next.filter(|&window| window >= wheel.current())
    }

    /// Has nodes take their turns of a window, and [early](Sequence::early) ones, if `with_next`, those of the next one.
    fn run_window(&mut self, window: u64, with_next: bool) {
        let Worker { windows, limit, outbox: Outbox { wheel, .. }, .. } = self;
        let mut spans = [Span::new(windows.start(window), wheel.begin_window(), *limit); 2];
        // The turns to come, as far as they are known: two of this window, and one of the next.
        let mut walk = wheel.walk();
        let (mut now, mut next) = ([wheel.next_turn(&mut walk), wheel.next_turn(&mut walk)], u32::MAX);
        let mut end = u32::MAX;
        if with_next {
            spans[1] = Span::new(windows.start(window + 1), wheel.begin_next_window(), *limit);
            next = wheel.first_turn_of_next(0);
            end = self.sequence.early;
        }
        self.start = spans[0].start;
        let (mut turns, handled, mut was_in_next) = (0, self.handled, false);
        loop {
            let place = now[0].min(next);
            if place >= end {
                break;
            }
            let local = self.sequence.nodes[place as usize];
            let is_in_next = next < now[0];
            let wheel = &mut self.outbox.wheel;
            if is_in_next {
                next = wheel.first_turn_of_next(place + 1);
            } else {
                now = [now[1], wheel.next_turn(&mut walk)];
            }
            if is_in_next != was_in_next {
                was_in_next = is_in_next;
                wheel.turn_over();
                self.start = spans[usize::from(is_in_next)].start;
            }
            match next < now[0] {
                true => self.look_ahead(next, true, now[0]),
                false => self.look_ahead(now[0], false, now[1].min(next)),
            }
            self.take_turn(local, &spans[usize::from(is_in_next)]);
            turns += 1;
            if with_next && now[0] - place > 1 {
                // The turn may have given one to a node before that.
                next = self.outbox.wheel.first_turn_of_next(place + 1);
            }
        }
        if was_in_next {
            self.outbox.wheel.turn_over();
        }
        self.work[self.windows.side(window)] += turns + self.handled - handled;
        self.outbox.wheel.finish(if with_next { end } else { 0 }, !spans[0].is_whole);
    }

    /// Has the processor fetch what will be touched by the next turn, which is one of the next window or not, and the one after it, by their places in the order of turns: step by step, as each
    /// step leads to the next one.
    #[inline(never)]
    fn look_ahead(&mut self, next: u32, is_in_next: bool, after: u32) {
        let Worker { model, nodes, sequence, outbox: Outbox { wheel, ahead, .. }, .. } = self;
        if let Some(&node) = sequence.nodes.get(after as usize) {
            model.approach(&nodes[node as usize]);
        }
        *ahead = Ahead::default();
        if let Some(&node) = sequence.nodes.get(next as usize) {
            *ahead = wheel.look_ahead(is_in_next, node);
            model.expect(&nodes[node as usize], ahead.is_long());
        }
    }

    /// One node's turn: its events of the window in order, then everything that happens inside it until the end.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fewer than 2³² messages are under way: Inboxes::another"
    )]
    fn take_turn(&mut self, local: u32, &Span { end, is_whole, .. }: &Span) {
        self.outbox.running = Running { local, window_end: end };
        self.outbox.now = self.start;
        self.outbox.wheel.take_inbox(local, &mut self.events);
        if let Some(load) = self.loads.get_mut(local as usize) {
            *load = load.saturating_add(1 + self.events.len() as u32);
        }
        if is_whole && Order::takes(self.events.len()) {
            self.handle_in_order(local);
        } else {
            self.handle_in_long_order(local, end);
        }
        let Worker { model, nodes, ids, outbox, limit, beyond, .. } = self;
        let (node, id) = (&mut nodes[local as usize], ids[local as usize]);
        let next = loop {
            if outbox.next_timer < end {
                model.take_turn(node, id, Timers { outbox, before: end });
            }
            let next = model.advance(node, id, end, outbox);
            // It may have set timers for this very turn, and then it has stopped there.
            if outbox.next_timer == Time::MAX {
                break next;
            }
        };
        if !beyond.is_empty() {
            beyond.remove(&local);
        }
        match next {
            Some(next) if next < *limit => {
                assert!(next >= end, "the model left undone what happens at {next}, before {end}");
                let window = outbox.wheel.window_of_own(next);
                outbox.wheel.wake(local, window);
            }
            Some(_) => _ = beyond.insert(local),
            None => {}
        }
    }

    /// Handles a turn's events by (time, source, order of sending).
    #[inline]
    fn handle_in_order(&mut self, local: u32) {
        let Worker { model, nodes, ids, outbox, events, order, handled, start, .. } = self;
        *handled += events.len() as u64;
        let keys = order.sort(*start, events.iter().map(|event| (event.at, event.source)));
        let events = Events { order: keys, events, outbox };
        model.take_turn(&mut nodes[local as usize], ids[local as usize], events);
    }

    /// The same for windows that are crowded, or cut by the run's limit.
    #[cold]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "fewer than 2³² messages are under way: Inboxes::another"
    )]
    fn handle_in_long_order(&mut self, local: u32, end: Time) {
        let Worker { model, nodes, ids, outbox, events, long_order, late, is_cut, handled, start, .. } = self;
        long_order.clear();
        for (index, event) in events.iter().enumerate() {
            if event.at < end {
                // A place in a window fits 32 bits: Windows::LONGEST.
                let key = (event.at - *start).0 << u32::BITS | u64::from(event.source);
                long_order.push((key, index as u32));
                continue;
            }
            *is_cut = true;
            match event.source {
                TIMER => outbox.timers -= 1,
                _ => late.push(event.payload),
            }
        }
        *handled += long_order.len() as u64;
        long_order.sort_unstable();
        let events = Events { order: long_order.as_slice(), events, outbox };
        model.take_turn(&mut nodes[local as usize], ids[local as usize], events);
    }
}

/// Events in order, and between them the timers of the same turn.
struct Events<'t, O, P> {
    order: O,
    events: &'t mut [Event<P>],
    outbox: &'t mut Outbox<P>,
}

/// The order of a turn's events.
trait Ordered: Copy {
    /// Whether it is the order of all of them.
    const IS_OF_ALL: bool;

    /// Events by their indices, a few at a time.
    fn parts(self) -> impl Iterator<Item = impl Iterator<Item = usize>>;

    /// The index of the last one, if there is one.
    fn last(self) -> Option<usize>;
}

impl Ordered for &[Key] {
    const IS_OF_ALL: bool = true;

    #[inline(always)]
    fn parts(self) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        self.chunks(CHUNK as usize).map(|part| part.iter().map(|&key| index(key)))
    }

    #[inline(always)]
    fn last(self) -> Option<usize> {
        <[_]>::last(self).copied().map(index)
    }
}

/// What they are ordered by, and their indices.
impl Ordered for &[(u64, u32)] {
    const IS_OF_ALL: bool = false;

    fn parts(self) -> impl Iterator<Item = impl Iterator<Item = usize>> {
        self.chunks(CHUNK as usize).map(|part| part.iter().map(|&(_, index)| index as usize))
    }

    fn last(self) -> Option<usize> {
        <[_]>::last(self).map(|&(_, index)| index as usize)
    }
}

impl<P: Copy + Default, O: Ordered> Turn<P> for Events<'_, O, P> {
    #[inline(always)]
    fn run<H: Handler<P>>(self, handler: &mut H) {
        let Events { order, events, outbox } = self;
        handler.foresee(Unhandled { order, events });
        for part in order.parts() {
            outbox.fetch();
            for index in part {
                let Event { at, source, payload, node: foreseen } = &mut events[index];
                if H::SETS_TIMERS {
                    if outbox.next_timer != Time::MAX {
                        handle_timers(handler, outbox, *at);
                    }
                    outbox.now = *at;
                }
                handler.handle(*at, *source, payload, *foreseen, outbox);
            }
        }
        if let Some(last) = order.last() {
            handler.finish(events[last].at);
        }
    }
}

/// [`Events`] at which the node may look. What it says of one is kept in the place of its destination, which has been reached.
struct Unhandled<'t, O, P> {
    order: O,
    events: &'t mut [Event<P>],
}

impl<P, O: Ordered> Messages<P> for Unhandled<'_, O, P> {
    #[inline(always)]
    fn look(self, mut look: impl FnMut(&mut P) -> u32) {
        let Unhandled { order, events } = self;
        let mut look = |event: &mut Event<P>| event.node = look(&mut event.payload);
        if O::IS_OF_ALL {
            return events.iter_mut().for_each(look);
        }
        for index in order.parts().flatten() {
            look(&mut events[index]);
        }
    }
}

/// The timers of the running turn that are due before an instant.
struct Timers<'t, P> {
    outbox: &'t mut Outbox<P>,
    before: Time,
}

impl<P: Copy + Default> Turn<P> for Timers<'_, P> {
    fn run<H: Handler<P>>(self, handler: &mut H) {
        handle_timers(handler, self.outbox, self.before);
    }
}

#[inline(never)]
fn handle_timers<P: Copy + Default>(handler: &mut impl Handler<P>, outbox: &mut Outbox<P>, before: Time) {
    while let Some((at, mut payload)) = outbox.due_timer(before) {
        assert!(at >= outbox.now, "the model set a timer for {at} when {} had passed", outbox.now);
        outbox.now = at;
        handler.handle(at, TIMER, &mut payload, UNFORESEEN, outbox);
    }
}

/// The node whose turn it is.
#[derive(Clone, Copy)]
pub(crate) struct Running {
    pub(crate) local: u32,
    pub(crate) window_end: Time,
}

/// A timer that fires within the running turn.
pub(crate) struct Soon<P> {
    at: Time,
    sequence: u64,
    payload: P,
}

impl<P> Ord for Soon<P> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}
impl<P> PartialOrd for Soon<P> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl<P> PartialEq for Soon<P> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl<P> Eq for Soon<P> {}

pub(crate) struct Outbox<P> {
    pub(crate) part: u32,
    /// Absent if there is one part only: all are at home.
    pub(crate) homes: Option<Arc<[Home]>>,
    pub(crate) wheel: Wheel<P>,
    pub(crate) mail: Vec<Letters<Event<P>>>,
    /// First window that mail of this epoch goes to.
    pub(crate) mail_first: u64,
    pub(crate) soon: BinaryHeap<Reverse<Soon<P>>>,
    /// When the first of them is due; `Time::MAX` if there is none.
    pub(crate) next_timer: Time,
    pub(crate) soon_sequence: u64,
    pub(crate) running: Running,
    /// Of the turn after it.
    pub(crate) ahead: Ahead,
    /// The instant of the turn's latest event or timer, where events may set timers.
    pub(crate) now: Time,
    /// Timers set for later turns, so far.
    pub(crate) timers: u64,
    pub(crate) tally: u64,
}

impl<P: Copy + Default> Outbox<P> {
    /// How many nodes all threads have together, where there are several.
    fn nodes(&self) -> usize {
        self.homes.as_ref().map_or(0, |homes| homes.len())
    }

    /// Fetches some of the next turn's events while this one's are handled.
    #[inline(never)]
    fn fetch(&mut self) {
        self.wheel.fetch(&mut self.ahead);
    }

    /// Takes out the next timer of the running turn.
    #[cold]
    #[inline(never)]
    fn take_timer(&mut self) -> Option<(Time, P)> {
        let Reverse(Soon { at, payload, .. }) = self.soon.pop()?;
        self.next_timer = self.soon.peek().map_or(Time::MAX, |Reverse(timer)| timer.at);
        Some((at, payload))
    }
}

impl<P: Copy + Default> Scheduler<P> for Outbox<P> {
    #[inline(always)]
    fn send_made(&mut self, to: NodeIndex, source: u32, at: Time, make: impl FnOnce() -> P) {
        debug_assert!(source < TIMER, "{source} is no message's source");
        let event = |node| Event { at, source, node, payload: make() };
        if self.wheel.is_open_to_all(at) {
            return self.wheel.insert_open(to, || event(to));
        }
        let Some(homes) = &self.homes else {
            return self.wheel.insert_later(event(to));
        };
        let Home { part, local } = homes[to as usize];
        if part != self.part {
            self.mail_first = self.mail_first.min(self.wheel.window_of_message(at));
            return self.mail[part as usize].push(|| event(local));
        }
        self.wheel.insert(at, local, || event(local));
    }

    fn timer(&mut self, at: Time, payload: P) {
        let Running { local, window_end } = self.running;
        if at < window_end {
            self.soon_sequence += 1;
            self.next_timer = self.next_timer.min(at);
            self.soon.push(Reverse(Soon { at, sequence: self.soon_sequence, payload }));
        } else {
            self.timers += 1;
            let window = self.wheel.window_of_own(at);
            self.wheel.insert_into(window, Event { at, source: TIMER, node: local, payload });
        }
    }

    #[inline]
    fn next_timer(&self) -> Time {
        self.next_timer
    }

    #[inline]
    fn due_timer(&mut self, before: Time) -> Option<(Time, P)> {
        if self.next_timer < before { self.take_timer() } else { None }
    }

    fn tally(&mut self, amount: u64) {
        self.tally += amount;
    }
}
