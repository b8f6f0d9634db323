//! The executor: epochs, windows, turns, and the exchange of mail between threads.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use netloom_units::Time;

use crate::barrier::{Barrier, Broken};
use crate::model::{Model, NodeIndex, Scheduler, TIMER};
use crate::wheel::{Event, Wheel};

/// How to run a model.
#[derive(Clone, Debug)]
pub struct Setup {
    /// No message arrives earlier than this after its cause. Must not be zero.
    pub lookahead: Time,
    /// No event at or after this instant is run.
    pub until: Time,
    /// Most messages arrive within this long; later ones cost a little more. Affects speed only.
    pub horizon: Time,
    /// Windows per lookahead, about: short windows keep the events of one window in the cache. Affects speed only.
    pub windows_per_lookahead: u64,
    /// For every node, the thread that runs it. Affects speed only.
    pub parts: Option<Vec<u16>>,
}

impl Setup {
    /// One thread, no time limit.
    pub fn new(lookahead: Time) -> Self {
        Setup { lookahead, until: Time::MAX, horizon: lookahead * 4, windows_per_lookahead: 2, parts: None }
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
    /// If the lookahead is zero or `parts` does not fit the nodes.
    pub fn new(model: &'m M, nodes: Vec<M::Node>, setup: Setup) -> Result<Self, EngineError> {
        if setup.lookahead == Time::ZERO {
            return Err(EngineError::NoLookahead);
        }
        match &setup.parts {
            Some(parts) if parts.len() != nodes.len() => {
                Err(EngineError::Parts { parts: parts.len(), nodes: nodes.len() })
            }
            _ => Ok(Engine { model, setup, nodes }),
        }
    }

    /// Runs until nothing is left to happen, or `until`.
    pub fn run(self) -> Run<M::Node, M::Payload> {
        self.run_observed(|_| ControlFlow::Continue(()))
    }

    /// Runs; `observe` is called between epochs and may stop the run.
    pub fn run_observed(self, observe: impl FnMut(Progress) -> ControlFlow<()>) -> Run<M::Node, M::Payload> {
        let Engine { model, setup, nodes } = self;
        let count = nodes.len();
        let parts = setup.parts.clone().unwrap_or_else(|| vec![0; count]);
        let threads = parts.iter().max().map_or(1, |&part| usize::from(part) + 1);

        let mut homes = Vec::with_capacity(count);
        let mut members: Vec<Vec<NodeIndex>> = vec![Vec::new(); threads];
        let mut states: Vec<Vec<M::Node>> = (0..threads).map(|_| Vec::new()).collect();
        for (id, (node, &part)) in nodes.into_iter().zip(&parts).enumerate() {
            homes.push(Home { part: u32::from(part), local: members[usize::from(part)].len() as u32 });
            members[usize::from(part)].push(id as NodeIndex);
            states[usize::from(part)].push(node);
        }

        let grid = Grid::new(&setup);
        let shared = Shared::new(threads);
        let mut workers: Vec<Worker<'_, M>> = members
            .iter()
            .zip(states)
            .enumerate()
            .map(|(part, (ids, nodes))| Worker {
                model,
                nodes,
                ids,
                limit: setup.until,
                outbox: Outbox {
                    part: part as u32,
                    homes: &homes,
                    wheel: Wheel::new(ids.len(), grid.shift, grid.slots),
                    mail: (0..threads).map(|_| Vec::new()).collect(),
                    mail_first: u64::MAX,
                    soon: BinaryHeap::new(),
                    soon_sequence: 0,
                    turn: Turn { local: 0, window_end: Time::ZERO },
                    last_of_instant: false,
                    tally: 0,
                },
                order: Vec::new(),
                long_order: Vec::new(),
                shift: grid.shift,
                late: Vec::new(),
                messages: 0,
            })
            .collect();

        let mut observer = Some(observe);
        std::thread::scope(|scope| {
            let (first, rest) = workers.split_first_mut().expect("there is at least one thread");
            let shared = &shared;
            let handles: Vec<_> = rest
                .iter_mut()
                .map(|worker| {
                    scope.spawn(move || worker.run(shared, grid, None::<fn(Progress) -> ControlFlow<()>>))
                })
                .collect();
            first.run(shared, grid, observer.take());
            for handle in handles {
                if let Err(panic) = handle.join() {
                    std::panic::resume_unwind(panic);
                }
            }
        });

        let messages = workers.iter().map(|worker| worker.messages).sum();
        let tally = workers.iter().map(|worker| worker.outbox.tally).sum();
        let mut pending = Vec::new();
        for worker in &mut workers {
            pending.append(&mut worker.late);
            pending.extend(worker.outbox.wheel.drain().filter(|e| e.source != TIMER).map(|e| e.payload));
        }
        let mut states: Vec<_> = workers.into_iter().map(|worker| worker.nodes.into_iter()).collect();
        let nodes = homes
            .iter()
            .map(|home| states[home.part as usize].next().expect("every node lives in its part"))
            .collect();
        Run { nodes, messages, tally, pending, stopped: shared.stopped.load(Ordering::Acquire) }
    }
}

/// How time is cut.
#[derive(Clone, Copy)]
struct Grid {
    shift: u32,
    slots: usize,
    /// Whole windows that fit into a lookahead: threads meet once per so many windows.
    epoch: u64,
}

impl Grid {
    fn new(setup: &Setup) -> Self {
        // Keys hold an instant's place in its window in 31 bits.
        let longest = setup.lookahead.0.min(1 << 31);
        let wanted = (longest / setup.windows_per_lookahead.max(1)).max(1);
        // The power of two nearest to what is wanted (by ratio), but no longer than the lookahead.
        let shift = (wanted as f64).log2().round().min((longest as f64).log2().floor()) as u32;
        let epoch = setup.lookahead.0 >> shift;
        let near = (setup.horizon.0.max(setup.lookahead.0) >> shift) + 2;
        Grid { shift, slots: near.next_power_of_two().clamp(8, 256) as usize, epoch }
    }
}

/// Where a node lives.
#[derive(Clone, Copy)]
struct Home {
    part: u32,
    local: u32,
}

/// What threads tell each other at the end of an epoch. Everything is kept twice, for even and odd epochs, so that one barrier
/// per epoch suffices: nobody writes a copy that a slower thread may still be reading.
struct Shared<P> {
    barrier: Barrier,
    /// `mail[parity][from][to]`
    mail: [Vec<Vec<Mailbox<P>>>; 2],
    /// First window with something to do, per thread.
    next: [Vec<AtomicU64>; 2],
    stop: [AtomicBool; 2],
    stopped: AtomicBool,
    tally: Vec<AtomicU64>,
    messages: Vec<AtomicU64>,
}

type Mailbox<P> = Mutex<Vec<Event<P>>>;

impl<P> Shared<P> {
    fn new(threads: usize) -> Self {
        let per_thread = || (0..threads).map(|_| AtomicU64::new(0)).collect();
        let boxes = || (0..threads).map(|_| (0..threads).map(|_| Mutex::default()).collect()).collect();
        Shared {
            barrier: Barrier::new(threads),
            mail: [boxes(), boxes()],
            next: [per_thread(), per_thread()],
            stop: [AtomicBool::new(false), AtomicBool::new(false)],
            stopped: AtomicBool::new(false),
            tally: per_thread(),
            messages: per_thread(),
        }
    }
}

struct Worker<'e, M: Model> {
    model: &'e M,
    nodes: Vec<M::Node>,
    ids: &'e [NodeIndex],
    limit: Time,
    outbox: Outbox<'e, M::Payload>,
    /// Scratch: one node's events as sort keys.
    order: Vec<u64>,
    /// Scratch for turns whose keys do not fit 64 bits.
    long_order: Vec<(u64, u32)>,
    /// Window length is `1 << shift` picoseconds.
    shift: u32,
    /// What messages at or after the limit carry, if the limit cuts a window.
    late: Vec<P<M>>,
    messages: u64,
}

type P<M> = <M as Model>::Payload;

impl<M: Model> Worker<'_, M> {
    fn run(
        &mut self,
        shared: &Shared<M::Payload>,
        grid: Grid,
        mut observe: Option<impl FnMut(Progress) -> ControlFlow<()>>,
    ) {
        let _guard = shared.barrier.guard();
        let me = self.outbox.part as usize;
        self.start_nodes();
        let mut parity = 0;
        while let Ok(Some(window)) = self.meet(shared, parity) {
            if Time(window << grid.shift) >= self.limit {
                break;
            }
            let epoch_end = window + grid.epoch;
            self.outbox.wheel.advance_to(window);
            for window in window..epoch_end {
                self.run_window(window);
            }
            parity ^= 1;
            shared.tally[me].store(self.outbox.tally, Ordering::Relaxed);
            shared.messages[me].store(self.messages, Ordering::Relaxed);
            if let Some(observe) = &mut observe {
                let sum = |counts: &[AtomicU64]| counts.iter().map(|c| c.load(Ordering::Relaxed)).sum();
                let progress = Progress {
                    time: Time(epoch_end << grid.shift),
                    tally: sum(&shared.tally),
                    messages: sum(&shared.messages),
                };
                shared.stop[parity].store(observe(progress).is_break(), Ordering::Release);
            }
        }
    }

    fn start_nodes(&mut self) {
        for local in 0..self.nodes.len() {
            self.outbox.turn = Turn { local: local as u32, window_end: Time::ZERO };
            self.model.start(&mut self.nodes[local], self.ids[local], &mut self.outbox);
        }
    }

    /// Exchanges mail with the other threads and agrees on the next window to run, if there is one.
    fn meet(&mut self, shared: &Shared<M::Payload>, parity: usize) -> Result<Option<u64>, Broken> {
        let me = self.outbox.part as usize;
        let busy = self.outbox.wheel.next_busy().unwrap_or(u64::MAX).min(self.outbox.mail_first);
        self.outbox.mail_first = u64::MAX;
        shared.next[parity][me].store(busy, Ordering::Release);
        for (to, letters) in self.outbox.mail.iter_mut().enumerate() {
            if !letters.is_empty() {
                std::mem::swap(letters, &mut *lock(&shared.mail[parity][me][to]));
            }
        }
        shared.barrier.wait()?;
        for from in &shared.mail[parity] {
            for letter in lock(&from[me]).drain(..) {
                self.outbox.wheel.insert(letter);
            }
        }
        if shared.stop[parity].load(Ordering::Acquire) {
            shared.stopped.store(true, Ordering::Release);
            return Ok(None);
        }
        let next = shared.next[parity].iter().map(|next| next.load(Ordering::Acquire)).min();
        Ok(next.filter(|&window| window != u64::MAX))
    }

    fn run_window(&mut self, window: u64) {
        let turns = self.outbox.wheel.take_turns();
        let end = self.outbox.wheel.end_of(window).min(self.limit);
        for &local in &turns {
            self.take_turn(local, end);
        }
        self.outbox.wheel.finish(turns);
    }

    /// One node's turn: its events of the window in order, then everything that happens inside it until the end.
    fn take_turn(&mut self, local: u32, end: Time) {
        self.outbox.turn = Turn { local, window_end: end };
        let (buffer, mut events) = self.outbox.wheel.take_inbox(local);
        if events.len() <= 1 << INDEX_BITS && self.shift <= TIME_BITS {
            self.handle_in_order(local, end, &mut events);
        } else {
            self.handle_in_long_order(local, end, &mut events);
        }
        let Worker { model, nodes, ids, outbox, limit, .. } = self;
        let (node, id) = (&mut nodes[local as usize], ids[local as usize]);
        if !outbox.soon.is_empty() {
            handle_timers(*model, node, id, outbox, end);
        }
        outbox.wheel.recycle(buffer, events);

        let next = model.advance(node, id, end, outbox);
        // Timers that `advance` set for this very window were due in what it just ran through.
        debug_assert!(outbox.soon.is_empty(), "advance set a timer before the window's end");
        if let Some(next) = next.filter(|next| next < limit) {
            debug_assert!(next >= end, "advance stopped early");
            let window = outbox.wheel.window_of(next);
            outbox.wheel.wake(local, window);
        }
    }

    /// Handles a turn's events by (time, source, order of sending), with a key of 64 bits: the instant's place in its
    /// window, the source, the index.
    #[inline]
    fn handle_in_order(&mut self, local: u32, end: Time, events: &mut [Event<P<M>>]) {
        let Worker { model, nodes, ids, outbox, order, late, messages, .. } = self;
        let (node, id) = (&mut nodes[local as usize], ids[local as usize]);
        order.clear();
        order.extend(events.iter().enumerate().map(|(index, event)| {
            // All events of a window agree in the bits of their instants that are shifted out here.
            (event.at.0 << (SOURCE_BITS + INDEX_BITS))
                | (u64::from(event.source) << INDEX_BITS)
                | index as u64
        }));
        // Events from one channel come sorted; a host's nearly always are.
        if !order.is_sorted() {
            order.sort_unstable();
        }
        for (step, &key) in order.iter().enumerate() {
            let index = key & ((1 << INDEX_BITS) - 1);
            let shares_instant =
                order.get(step + 1).is_some_and(|next| (next ^ key) >> (SOURCE_BITS + INDEX_BITS) == 0);
            outbox.last_of_instant = !shares_instant;
            *messages += handle_one(*model, node, id, outbox, end, &mut events[index as usize], late);
        }
    }

    /// The same for long windows and very many events.
    #[cold]
    fn handle_in_long_order(&mut self, local: u32, end: Time, events: &mut [Event<P<M>>]) {
        let Worker { model, nodes, ids, outbox, long_order, late, messages, .. } = self;
        let (node, id) = (&mut nodes[local as usize], ids[local as usize]);
        long_order.clear();
        long_order.extend(events.iter().enumerate().map(|(index, event)| {
            // Windows are at most 2³¹ ps long and aligned, so the lower half of an instant orders it.
            ((event.at.0 << SOURCE_BITS) | u64::from(event.source), index as u32)
        }));
        long_order.sort_unstable();
        outbox.last_of_instant = false;
        for &(_, index) in long_order.iter() {
            *messages += handle_one(*model, node, id, outbox, end, &mut events[index as usize], late);
        }
    }
}

/// Handles one event, and before it the timers of the same turn that are due; returns the number of messages handled.
#[inline(always)]
fn handle_one<M: Model>(
    model: &M,
    node: &mut M::Node,
    id: NodeIndex,
    outbox: &mut Outbox<'_, P<M>>,
    end: Time,
    event: &mut Event<P<M>>,
    late: &mut Vec<P<M>>,
) -> u64 {
    let is_message = event.source != TIMER;
    if event.at >= end {
        // Beyond the run's limit, which cuts this window.
        if is_message {
            late.push(event.payload);
        }
        return 0;
    }
    if !outbox.soon.is_empty() {
        handle_timers(model, node, id, outbox, event.at);
    }
    model.handle(node, id, event.at, event.source, &mut event.payload, outbox);
    u64::from(is_message)
}

/// Handles the timers of the running turn that are due before an instant.
#[inline(never)]
fn handle_timers<M: Model>(
    model: &M,
    node: &mut M::Node,
    id: NodeIndex,
    outbox: &mut Outbox<'_, P<M>>,
    before: Time,
) {
    while let Some(mut timer) = outbox.due_timer(before) {
        model.handle(node, id, timer.at, TIMER, &mut timer.payload, outbox);
    }
}

/// Bits of a source in a sort key.
const SOURCE_BITS: u32 = 32;
/// Bits of an event's index in a short sort key.
const INDEX_BITS: u32 = 12;
/// Bits of an instant's place in its window in a short sort key.
const TIME_BITS: u32 = 64 - SOURCE_BITS - INDEX_BITS;

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The node whose turn it is.
#[derive(Clone, Copy)]
struct Turn {
    local: u32,
    window_end: Time,
}

/// A timer that fires within the running turn.
struct Soon<P> {
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

struct Outbox<'e, P> {
    part: u32,
    homes: &'e [Home],
    wheel: Wheel<P>,
    mail: Vec<Vec<Event<P>>>,
    /// First window that mail of this epoch goes to.
    mail_first: u64,
    soon: BinaryHeap<Reverse<Soon<P>>>,
    soon_sequence: u64,
    turn: Turn,
    /// No other event of the running turn has the instant of the one being handled.
    last_of_instant: bool,
    tally: u64,
}

impl<P: Copy> Outbox<'_, P> {
    /// The next timer of the running turn that fires strictly before `before`.
    #[inline]
    fn due_timer(&mut self, before: Time) -> Option<Soon<P>> {
        if self.soon.peek()?.0.at >= before {
            return None;
        }
        self.soon.pop().map(|Reverse(timer)| timer)
    }
}

impl<P: Copy> Scheduler<P> for Outbox<'_, P> {
    #[inline(always)]
    fn send(&mut self, to: NodeIndex, source: u32, at: Time, payload: P) {
        let home = self.homes[to as usize];
        let event = Event { at, source, node: home.local, payload };
        if home.part == self.part {
            self.wheel.insert(event);
        } else {
            self.mail_first = self.mail_first.min(self.wheel.window_of(at));
            self.mail[home.part as usize].push(event);
        }
    }

    fn timer(&mut self, at: Time, payload: P) {
        let Turn { local, window_end } = self.turn;
        if at < window_end {
            self.soon_sequence += 1;
            self.soon.push(Reverse(Soon { at, sequence: self.soon_sequence, payload }));
        } else {
            self.wheel.insert(Event { at, source: TIMER, node: local, payload });
        }
    }

    #[inline(always)]
    fn is_last_of_instant(&self) -> bool {
        // Timers set during the turn may fire in this instant, too.
        self.last_of_instant && self.soon.is_empty()
    }

    fn tally(&mut self, amount: u64) {
        self.tally += amount;
    }
}
