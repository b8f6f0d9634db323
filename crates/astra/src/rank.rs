//! One rank: which node of its trace comes next, and what its collective operations send.
//!
//! Everything happens at whole nanoseconds. The rank is called when a time has come, a message has left or has arrived, and says through [`Network`] what it wants.
//! Times at which it is called, and the order of what happens at one time, are those of ASTRA-sim: what was asked for first happens first.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::job::Job;
use crate::members::TreePlace;
use crate::plan::{Chunks, Layout, Part, Planned, Work};
use crate::steps::{Demand, Steps};
use crate::system::{Operation, Policy, Way};
use crate::trace::{Kind, LONGEST, Trace, Unit};

/// What a message says of itself, by which it finds its receive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    pub(crate) tag: u64,
    /// Payload; may be nothing.
    pub bytes: u64,
    /// Of messages of send nodes: how many of the same tag and size the sender has sent to the receiver before.
    pub(crate) number: u32,
}

/// Something that a rank does later at the same time, given back by [`Network::soon`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call(Todo);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Todo {
    /// A node is done.
    Node(u32),
    /// An operation without chunks, or a broadcast, is done.
    Operation(u32),
    /// A token comes to a chunk, perhaps after a reduction.
    Token { stream: u32, bytes: u64, reduces: bool },
    /// A message for a chunk has arrived.
    Arrival(u32),
    /// A node of a chunk's own trace is done.
    Inner { stream: u32, node: u32 },
}

/// What a rank wants of the outside.
pub trait Network {
    /// Sends a message to another rank, at once. The number is unique among those of the rank, and counts them.
    fn send(&mut self, to: u32, envelope: Envelope, number: u32);
    /// Calls [`Rank::wake`] at this time, in nanoseconds, which is not before now.
    fn wake(&mut self, at: u64);
    /// Calls [`Rank::perform`] now, after what happens now already.
    fn soon(&mut self, call: Call);
    /// How long a computation takes here that is given with this number of nanoseconds.
    fn stretch(&mut self, ns: u64) -> u64 {
        ns
    }
}

/// How a rank ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// When, in nanoseconds.
    pub finished: u64,
    /// The part of that in which no node computed on the accelerator.
    pub exposed: u64,
}

/// A rank of a job.
#[derive(Clone, Debug)]
pub struct Rank {
    job: Arc<Job>,
    rank: u32,
    now: u64,
    progress: Progress,
    /// By unit: the nodes that are ready to be issued.
    ready: [BinaryHeap<Reverse<u32>>; 4],
    /// Nodes that have become ready while others were issued: their turn comes with the next event.
    fresh: Vec<(Unit, u32)>,
    is_busy: [bool; 3],
    underway: u32,
    computed: u64,
    end: Option<End>,
    /// What happens when.
    timers: BTreeMap<u64, Vec<Todo>>,
    operations: FxHashMap<u32, OperationState>,
    next_operation: u32,
    streams: FxHashMap<u32, Box<Stream>>,
    next_stream: u32,
    /// By group: how many chunks have been begun.
    begun: FxHashMap<u32, u32>,
    layouts: FxHashMap<(Operation, u32), Arc<Layout>>,
    /// By operation and dimension: how often a tree was asked for.
    trees: FxHashMap<(Operation, bool, u32, usize), u32>,
    queues: Vec<Queue>,
    turns: Vec<Turn>,
    priority: i64,
    mailbox: FxHashMap<(u32, Envelope), Slot>,
    sent: FxHashMap<(u32, u64, u64), u32>,
    posted: FxHashMap<(u32, u64, u64), u32>,
    /// By number of the message: what happens when it has been sent.
    leaving: FxHashMap<u32, Todo>,
    next_message: u32,
}

/// How far a trace has come.
#[derive(Clone, Debug)]
struct Progress {
    waits: Box<[u32]>,
}

impl Progress {
    fn new(trace: &Trace) -> Self {
        Progress { waits: trace.nodes.iter().map(|node| node.waits).collect() }
    }

    fn roots(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.waits).filter(|&(_, &waits)| waits == 0).map(|(node, _)| node)
    }

    /// The nodes that nothing keeps any more now that one is done.
    fn finish<'a>(&'a mut self, trace: &'a Trace, node: u32) -> impl Iterator<Item = u32> + 'a {
        trace.children(node).iter().copied().filter(|&child| {
            self.waits[child as usize] -= 1;
            self.waits[child as usize] == 0
        })
    }
}

/// A collective operation under way: chunks that are not done.
#[derive(Clone, Copy, Debug)]
struct OperationState {
    node: u32,
    chunks: u64,
}

/// A chunk of a collective operation.
#[derive(Clone, Debug)]
struct Stream {
    operation: u32,
    tag: u64,
    priority: i64,
    /// What is still to come.
    phases: VecDeque<Phase>,
    /// The queue in which it is.
    queue: Option<usize>,
    has_begun: bool,
    state: State,
    layout: Arc<Layout>,
    dimension: usize,
}

#[derive(Clone, Debug)]
struct Phase {
    work: PhaseWork,
    dimension: usize,
    queue: usize,
}

#[derive(Clone, Debug)]
enum PhaseWork {
    Steps(crate::steps::Phase),
    Tree { bytes: u64, root_is_last: bool },
    Custom(Custom),
}

#[derive(Clone, Debug)]
enum State {
    /// Between phases.
    None,
    Steps(Box<Steps>),
    Tree(Tree),
    Custom(Custom),
}

/// An operation that is done as a trace says.
#[derive(Clone, Debug)]
struct Custom {
    node: u64,
    operation: Operation,
    group: u32,
    place: u32,
    progress: Option<Progress>,
    underway: u32,
}

/// The progress of a rank in a tree.
#[derive(Clone, Copy, Debug)]
struct Tree {
    place: TreePlace,
    bytes: u64,
    /// Messages of children, and tokens after these, that have come.
    children: u32,
    tokens: u32,
    step: TreeStep,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TreeStep {
    Begin,
    FromChildren,
    ToParent,
    FromParent,
    ToChildren,
    Last,
}

/// Chunks that wait for one of the queues of a dimension: those that have begun first.
#[derive(Clone, Debug, Default)]
struct Queue {
    streams: VecDeque<u32>,
    running: usize,
}

/// Which queue of a dimension comes next.
#[derive(Clone, Copy, Debug)]
struct Turn {
    any: u32,
    there: u32,
    back: u32,
}

/// Receives that wait for messages, or the number of messages that wait for receives.
#[derive(Clone, Debug, Default)]
struct Slot {
    posted: VecDeque<Todo>,
    arrived: u32,
}

/// Marks tags of collective operations; others are those of nodes.
const COLLECTIVE: u64 = 1 << 63;

/// The delay within a group of some ranks, which ASTRA-sim takes for a ring inside a server, in nanoseconds.
const FAST: u64 = 10;

impl Rank {
    /// A rank that has not begun.
    pub fn new(job: Arc<Job>, rank: u32) -> Self {
        let queues = job.queues;
        let dimensions = job.dimensions.len();
        let turn = Turn { any: 0, there: 0, back: queues / 2 };
        Rank {
            rank,
            now: 0,
            progress: Progress::new(&job.traces[rank as usize]),
            ready: Default::default(),
            fresh: Vec::new(),
            is_busy: [false; 3],
            underway: 0,
            computed: 0,
            end: None,
            timers: BTreeMap::new(),
            operations: FxHashMap::default(),
            next_operation: 0,
            streams: FxHashMap::default(),
            next_stream: 0,
            begun: FxHashMap::default(),
            layouts: FxHashMap::default(),
            trees: FxHashMap::default(),
            queues: vec![Queue::default(); dimensions * queues as usize],
            turns: vec![turn; dimensions],
            priority: 0,
            mailbox: FxHashMap::default(),
            sent: FxHashMap::default(),
            posted: FxHashMap::default(),
            leaving: FxHashMap::default(),
            next_message: 0,
            job,
        }
    }

    /// How it ended, once it has.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// How long nodes have computed on the accelerator, in nanoseconds; those under way count whole.
    pub fn computed(&self) -> u64 {
        self.computed
    }

    /// The job.
    pub fn job(&self) -> &Arc<Job> {
        &self.job
    }

    /// What a rank that has not ended waits for.
    pub fn unfinished(&self) -> Option<String> {
        if self.end.is_some() {
            return None;
        }
        let mut waiting: Vec<String> = Vec::new();
        let mut slots: Vec<_> = self.mailbox.iter().filter(|(_, slot)| !slot.posted.is_empty()).collect();
        slots.sort_by_key(|((src, envelope), _)| (*src, envelope.tag, envelope.bytes, envelope.number));
        for ((src, envelope), _) in slots.iter().take(3) {
            let what = match envelope.tag & COLLECTIVE {
                0 => format!("with comm_tag {}", envelope.tag),
                _ => format!("of a collective operation of {}", self.group_name(envelope.tag)),
            };
            waiting.push(format!("{} bytes from rank {src} {what}", envelope.bytes));
        }
        if slots.len() > 3 {
            waiting.push(format!("{} more messages", slots.len() - 3));
        }
        if waiting.is_empty() {
            waiting.push(format!("{} nodes under way", self.underway));
        }
        Some(format!("rank {}: waits for {}", self.rank, waiting.join(", ")))
    }

    fn group_name(&self, tag: u64) -> String {
        let group = &self.job.groups[(tag >> 32 & 0x7fff_ffff) as usize];
        if group.name.is_empty() { "all ranks".to_owned() } else { format!("group \"{}\"", group.name) }
    }

    /// Begins with the nodes that wait for nothing.
    pub fn begin(&mut self, now: u64, network: &mut dyn Network) {
        self.now = now;
        let roots: Vec<u32> = self.progress.roots().collect();
        for node in roots {
            self.make_ready(node);
        }
        self.go_on(None, network);
    }

    /// A time has come that was asked for.
    pub fn wake(&mut self, now: u64, network: &mut dyn Network) {
        self.now = now;
        // What is added for this very time meanwhile has its turn, too.
        let mut next = 0;
        while let Some(&todo) = self.timers.get(&now).and_then(|list| list.get(next)) {
            next += 1;
            self.perform(now, Call(todo), network);
        }
        self.timers.remove(&now);
    }

    /// Whether something waits for the message of this number to have been sent.
    pub fn awaits_sent(&self, number: u32) -> bool {
        self.leaving.contains_key(&number)
    }

    /// The message of this number has been sent.
    pub fn sent(&mut self, now: u64, number: u32, network: &mut dyn Network) {
        if let Some(todo) = self.leaving.remove(&number) {
            self.perform(now, Call(todo), network);
        }
    }

    /// A message has arrived.
    pub fn arrived(&mut self, now: u64, from: u32, envelope: Envelope, network: &mut dyn Network) {
        let key = (from, envelope);
        let slot = self.mailbox.entry(key).or_default();
        let Some(todo) = slot.posted.pop_front() else {
            slot.arrived += 1;
            return;
        };
        if slot.posted.is_empty() {
            self.mailbox.remove(&key);
        }
        self.perform(now, Call(todo), network);
    }

    /// Does what was put off.
    pub fn perform(&mut self, now: u64, Call(todo): Call, network: &mut dyn Network) {
        self.now = now;
        match todo {
            Todo::Node(node) => self.go_on(Some(node), network),
            Todo::Operation(operation) => self.end_chunk(operation, network),
            Todo::Token { stream, bytes, reduces: true } => {
                let todo = Todo::Token { stream, bytes, reduces: false };
                self.after(self.reduction(bytes), todo, network);
            }
            Todo::Token { stream, reduces: false, .. } => self.run(stream, Event::Token, network),
            Todo::Arrival(stream) => self.run(stream, Event::Arrival, network),
            Todo::Inner { stream, node } => self.run(stream, Event::Inner(node), network),
        }
    }

    /// How long a reduction takes: two reads and a write.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "as ASTRA-sim rounds"
    )]
    fn reduction(&self, bytes: u64) -> u64 {
        let once = bytes as f64 / self.job.system.memory_bandwidth * 1e9;
        3 * (once.min(LONGEST as f64) as u64)
    }

    fn after(&mut self, delay: u64, todo: Todo, network: &mut dyn Network) {
        let at = self.now.saturating_add(delay).min(LONGEST);
        let list = self.timers.entry(at).or_default();
        if list.is_empty() {
            network.wake(at);
        }
        list.push(todo);
    }

    // Nodes.

    fn make_ready(&mut self, node: u32) {
        let unit = self.job.traces[self.rank as usize].nodes[node as usize].unit;
        self.ready[unit as usize].push(Reverse(node));
    }

    /// A node is done: what waits for it may come.
    fn go_on(&mut self, done: Option<u32>, network: &mut dyn Network) {
        if self.end.is_some() {
            return;
        }
        let job = self.job.clone();
        let trace = &job.traces[self.rank as usize];
        if let Some(node) = done {
            let unit = trace.nodes[node as usize].unit;
            if unit != Unit::None {
                self.is_busy[unit as usize] = false;
            }
            self.underway -= 1;
            let ready = &mut self.ready;
            for child in self.progress.finish(trace, node) {
                ready[trace.nodes[child as usize].unit as usize].push(Reverse(child));
            }
        }
        self.issue(trace, network);
        // ASTRA-sim would wait for an event that never comes: what is done at once makes none.
        while self.underway == 0 && self.ready.iter().any(|ready| !ready.is_empty()) {
            self.issue(trace, network);
        }
        if self.underway == 0 && self.ready.iter().all(BinaryHeap::is_empty) {
            self.end = Some(End { finished: self.now, exposed: self.now.saturating_sub(self.computed) });
        }
    }

    /// Issues what is ready, in the order of the nodes' numbers, as far as its unit is free.
    fn issue(&mut self, trace: &Trace, network: &mut dyn Network) {
        const UNITS: [Unit; 4] = [Unit::Cpu, Unit::Compute, Unit::Communication, Unit::None];
        loop {
            let is_free = |unit: Unit| unit == Unit::None || !self.is_busy[unit as usize];
            let first = |unit: Unit| self.ready[unit as usize].peek().map(|&Reverse(node)| (node, unit));
            let next =
                UNITS.into_iter().filter(|&unit| is_free(unit)).filter_map(first).min_by_key(|next| next.0);
            let Some((node, unit)) = next else { break };
            self.ready[unit as usize].pop();
            if trace.nodes[node as usize].kind == Kind::Skip {
                let fresh = &mut self.fresh;
                for child in self.progress.finish(trace, node) {
                    fresh.push((trace.nodes[child as usize].unit, child));
                }
                continue;
            }
            if unit != Unit::None {
                self.is_busy[unit as usize] = true;
            }
            self.underway += 1;
            self.start(trace, node, network);
        }
        for (unit, node) in self.fresh.drain(..) {
            self.ready[unit as usize].push(Reverse(node));
        }
    }

    fn start(&mut self, trace: &Trace, place: u32, network: &mut dyn Network) {
        let node = &trace.nodes[place as usize];
        match node.kind {
            Kind::Skip => {}
            Kind::Compute => {
                let duration = network.stretch(node.value);
                if node.unit != Unit::Cpu {
                    self.computed = self.computed.saturating_add(duration);
                }
                self.after(duration, Todo::Node(place), network);
            }
            Kind::Send => {
                self.send_node((node.peer, node.tag.into(), node.value), Todo::Node(place), network)
            }
            Kind::Receive => {
                self.receive_node((node.peer, node.tag.into(), node.value), Todo::Node(place), network);
            }
            Kind::Broadcast => {
                let operation = self.operation(place, 1);
                self.after(node.value, Todo::Operation(operation), network);
            }
            Kind::Collective(operation) => self.collective(trace, place, operation, network),
        }
    }

    // Messages.

    /// Sends a message of a node: to a rank, with a tag, of a size.
    fn send_node(&mut self, key: (u32, u64, u64), done: Todo, network: &mut dyn Network) {
        let number = self.sent.entry(key).or_default();
        let (to, tag, bytes) = key;
        let envelope = Envelope { tag, bytes, number: *number };
        *number += 1;
        if to == self.rank {
            self.after(0, done, network);
            self.arrive_from_self(envelope, network);
            return;
        }
        self.leaving.insert(self.next_message, done);
        self.send(to, envelope, network);
    }

    fn send(&mut self, to: u32, envelope: Envelope, network: &mut dyn Network) {
        let number = self.next_message;
        self.next_message =
            number.checked_add(1).expect("a job with more messages than have numbers is refused");
        network.send(to, envelope, number);
    }

    /// A message of the rank to itself needs no network.
    fn arrive_from_self(&mut self, envelope: Envelope, network: &mut dyn Network) {
        let key = (self.rank, envelope);
        let slot = self.mailbox.entry(key).or_default();
        match slot.posted.pop_front() {
            None => slot.arrived += 1,
            Some(todo) => {
                self.mailbox.remove(&key);
                self.after(0, todo, network);
            }
        }
    }

    fn receive_node(&mut self, key: (u32, u64, u64), done: Todo, network: &mut dyn Network) {
        let number = self.posted.entry(key).or_default();
        let (from, tag, bytes) = key;
        let envelope = Envelope { tag, bytes, number: *number };
        *number += 1;
        self.receive(from, envelope, done, network);
    }

    fn receive(&mut self, from: u32, envelope: Envelope, done: Todo, network: &mut dyn Network) {
        let key = (from, envelope);
        let slot = self.mailbox.entry(key).or_default();
        if slot.arrived == 0 {
            slot.posted.push_back(done);
            return;
        }
        slot.arrived -= 1;
        if slot.arrived == 0 {
            self.mailbox.remove(&key);
        }
        network.soon(Call(done));
    }

    // Collective operations.

    fn operation(&mut self, node: u32, chunks: u64) -> u32 {
        let operation = self.next_operation;
        self.next_operation = operation.wrapping_add(1);
        self.operations.insert(operation, OperationState { node, chunks });
        operation
    }

    /// A chunk of an operation is done.
    fn end_chunk(&mut self, operation: u32, network: &mut dyn Network) {
        let Some(state) = self.operations.get_mut(&operation) else { return };
        state.chunks -= 1;
        if state.chunks == 0 {
            let node = state.node;
            self.operations.remove(&operation);
            self.go_on(Some(node), network);
        }
    }

    fn collective(&mut self, trace: &Trace, place: u32, kind: Operation, network: &mut dyn Network) {
        let job = self.job.clone();
        let node = &trace.nodes[place as usize];
        let group = node.peer;
        let priority = match job.system.policy {
            Policy::Lifo => {
                self.priority += 1;
                self.priority
            }
            Policy::Fifo => {
                self.priority -= 1;
                self.priority
            }
            Policy::Explicit => node.priority.into(),
        };
        let rank = self.rank;
        let layout = self.layouts.entry((kind, group));
        let layout = layout.or_insert_with(|| Arc::new(job.layout(kind, group, rank))).clone();
        if let Some(Way::Custom(_)) = job.system.way(kind, node.id) {
            let at = job.place_in_group(group, self.rank);
            let custom =
                Custom { node: node.id, operation: kind, group, place: at, progress: None, underway: 0 };
            let phase = Phase { work: PhaseWork::Custom(custom), dimension: 0, queue: 0 };
            let operation = self.operation(place, 1);
            self.begin_stream(operation, (group, priority), vec![phase], layout, network);
            return;
        }
        let chunks = Chunks::new(kind, node.value, job.system.splits, job.ranks());
        let planned = layout.phases(&job, kind, chunks.bytes, node.dimensions);
        if planned.is_empty() || chunks.count == 0 {
            let operation = self.operation(place, 1);
            self.after(0, Todo::Operation(operation), network);
            return;
        }
        let operation = self.operation(place, chunks.count);
        for _ in 0..chunks.count {
            let phases = planned.iter().map(|planned| self.phase(planned, kind, (group, &layout))).collect();
            self.begin_stream(operation, (group, priority), phases, layout.clone(), network);
        }
    }

    /// A phase with its queue, and its tree if it has one.
    fn phase(&mut self, planned: &Planned, kind: Operation, (group, layout): (u32, &Layout)) -> Phase {
        let queues = self.job.queues;
        let dimension = planned.dimension;
        let turn = &mut self.turns[dimension];
        let half = queues / 2;
        let (queue, is_clockwise) = match planned.part {
            Part::Any => {
                let queue = turn.any;
                turn.any = (turn.any + 1) % queues;
                (queue, !(queues > 1 && queue >= half))
            }
            Part::Forward => {
                let queue = turn.there;
                turn.there = if queue + 1 >= half { 0 } else { queue + 1 };
                (queue, true)
            }
            Part::Reverse => {
                let queue = turn.back;
                turn.back = if queue + 1 >= queues { half } else { queue + 1 };
                (queue, false)
            }
        };
        let queue = dimension * queues as usize + queue as usize;
        let work = match planned.work {
            Work::Steps(phase) => PhaseWork::Steps(crate::steps::Phase { is_clockwise, ..phase }),
            Work::Tree { bytes } => {
                let of = if layout.is_group { group } else { 0 };
                let turn = self.trees.entry((kind, layout.is_group, of, dimension)).or_default();
                *turn += 1;
                PhaseWork::Tree { bytes, root_is_last: *turn % 2 == 1 }
            }
        };
        Phase { work, dimension, queue }
    }

    fn begin_stream(
        &mut self,
        operation: u32,
        (group, priority): (u32, i64),
        phases: Vec<Phase>,
        layout: Arc<Layout>,
        network: &mut dyn Network,
    ) {
        let number = self.begun.entry(group).or_default();
        let tag = COLLECTIVE | u64::from(group) << 32 | u64::from(*number);
        *number += 1;
        let id = self.next_stream;
        self.next_stream = id.wrapping_add(1);
        let stream = Stream {
            operation,
            tag,
            priority,
            phases: phases.into(),
            queue: None,
            has_begun: false,
            state: State::None,
            layout,
            dimension: 0,
        };
        self.streams.insert(id, Box::new(stream));
        self.proceed(id, network);
    }

    /// A chunk goes on to its next phase, or is done.
    fn proceed(&mut self, id: u32, network: &mut dyn Network) {
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let previous = stream.queue;
        let next = stream.phases.pop_front();
        if next.is_none() {
            // What comes after the operation is queued before this chunk leaves its queue.
            let operation = stream.operation;
            self.end_chunk(operation, network);
        }
        if let Some(queue) = previous {
            self.queues[queue].streams.retain(|&other| other != id);
        }
        let Some(next) = next else {
            self.streams.remove(&id);
            if let Some(queue) = previous {
                self.queues[queue].running -= 1;
                self.begin_next(queue, network);
            }
            return;
        };
        let queue = next.queue;
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.queue = Some(queue);
            stream.has_begun = false;
            stream.dimension = next.dimension;
            stream.state = match next.work {
                PhaseWork::Steps(phase) => {
                    let dimension = &stream.layout.dimensions[next.dimension];
                    State::Steps(Box::new(Steps::new(phase, &dimension.members, dimension.place)))
                }
                PhaseWork::Tree { bytes, root_is_last } => {
                    let dimension = &stream.layout.dimensions[next.dimension];
                    let place = TreePlace::new(dimension.place, dimension.members.count(), root_is_last);
                    State::Tree(Tree { place, bytes, children: 0, tokens: 0, step: TreeStep::Begin })
                }
                PhaseWork::Custom(custom) => State::Custom(custom),
            };
            let priority = stream.priority;
            let streams = &self.streams;
            let goes_before = |other: &u32| {
                streams.get(other).is_some_and(|other| other.has_begun || other.priority >= priority)
            };
            let list = &mut self.queues[queue].streams;
            let at = list.iter().position(|other| !goes_before(other)).unwrap_or(list.len());
            list.insert(at, id);
        }
        if let Some(queue) = previous {
            self.queues[queue].running -= 1;
            self.begin_next(queue, network);
        }
        self.begin_next(queue, network);
    }

    /// Begins chunks of a queue, as many as may be active.
    fn begin_next(&mut self, queue: usize, network: &mut dyn Network) {
        let active = self.job.system.active_chunks.div_ceil(self.job.queues) as usize;
        loop {
            let Queue { streams, running } = &mut self.queues[queue];
            if *running >= active {
                return;
            }
            let Some(&id) = streams.get(*running) else { return };
            *running += 1;
            if let Some(stream) = self.streams.get_mut(&id) {
                stream.has_begun = true;
            }
            self.run(id, Event::Start, network);
        }
    }

    /// Something has happened to a chunk.
    fn run(&mut self, id: u32, event: Event, network: &mut dyn Network) {
        let Some(mut stream) = self.streams.remove(&id) else { return };
        let is_over = match &mut stream.state {
            State::None => false,
            State::Steps(steps) => {
                let mut demands = Vec::new();
                match event {
                    Event::Start => steps.start(&mut demands),
                    Event::Token => steps.on_token(&mut demands),
                    Event::Arrival => steps.on_arrival(&mut demands),
                    Event::Inner(_) => {}
                }
                self.meet(id, &stream, demands, network)
            }
            State::Tree(tree) => {
                let mut demands = Vec::new();
                tree.run(event, &mut demands);
                self.meet(id, &stream, demands, network)
            }
            State::Custom(custom) => self.run_custom(id, custom, event, network),
        };
        self.streams.insert(id, stream);
        if is_over {
            self.proceed(id, network);
        }
    }

    /// Does what an algorithm asks for; whether its phase is over.
    fn meet(&mut self, id: u32, stream: &Stream, demands: Vec<Demand>, network: &mut dyn Network) -> bool {
        let layout = stream.layout.clone();
        let members = &layout.dimensions[stream.dimension].members;
        let is_tree = matches!(stream.state, State::Tree(_));
        let delay = if layout.is_group && !is_tree { FAST } else { self.job.system.endpoint_delay };
        let mut is_over = false;
        for demand in demands {
            let envelope = |bytes| Envelope { tag: stream.tag, bytes, number: 0 };
            match demand {
                Demand::Token { bytes, reduces } => {
                    self.after(delay, Todo::Token { stream: id, bytes, reduces }, network);
                }
                Demand::Send { to, bytes } => self.send(members.rank(to), envelope(bytes), network),
                Demand::Receive { from, bytes } => {
                    self.receive(members.rank(from), envelope(bytes), Todo::Arrival(id), network);
                }
                Demand::Over => is_over = true,
            }
        }
        is_over
    }

    /// Goes on with an operation that a trace describes; whether it is over.
    fn run_custom(&mut self, id: u32, custom: &mut Custom, event: Event, network: &mut dyn Network) -> bool {
        let job = self.job.clone();
        let Some(Way::Custom(prefix)) = job.system.way(custom.operation, custom.node) else { return true };
        let Some(trace) = job.custom_trace(prefix, custom.place) else { return true };
        let progress = custom.progress.get_or_insert_with(|| Progress::new(trace));
        let ready: Vec<u32> = match event {
            Event::Inner(node) => {
                custom.underway -= 1;
                progress.finish(trace, node).collect()
            }
            _ => progress.roots().collect(),
        };
        let mut members: Vec<u32> = job.groups[custom.group as usize].ranks.to_vec();
        members.sort_unstable();
        for place in ready {
            custom.underway += 1;
            let node = &trace.nodes[place as usize];
            let done = Todo::Inner { stream: id, node: place };
            let key = |peer: u32| (members[peer as usize], u64::from(node.tag), node.value);
            match node.kind {
                Kind::Send => self.send_node(key(node.peer), done, network),
                Kind::Receive => self.receive_node(key(node.peer), done, network),
                _ => self.after(node.value, done, network),
            }
        }
        custom.underway == 0
    }
}

/// What happens to a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Start,
    Token,
    Arrival,
    Inner(u32),
}

impl Tree {
    /// Goes on: up with what the children sent, down with what the parent sent.
    fn run(&mut self, event: Event, demands: &mut Vec<Demand>) {
        let bytes = self.bytes;
        let TreePlace { parent, children } = self.place;
        let to_parent = |demands: &mut Vec<Demand>| {
            if let Some(parent) = parent {
                demands.push(Demand::Send { to: parent, bytes });
                demands.push(Demand::Receive { from: parent, bytes });
            }
            TreeStep::FromParent
        };
        let of_children = children.into_iter().flatten();
        match (self.step, event) {
            (TreeStep::Begin, _) if self.place.is_leaf() => {
                demands.push(Demand::Token { bytes, reduces: false });
                self.step = TreeStep::ToParent;
            }
            (TreeStep::Begin, _) => {
                demands.extend(of_children.map(|child| Demand::Receive { from: child, bytes }));
                self.step = TreeStep::FromChildren;
            }
            (TreeStep::FromChildren, Event::Arrival) => {
                self.children += 1;
                demands.push(Demand::Token { bytes, reduces: true });
                if self.children as usize == of_children.count() {
                    let is_root = parent.is_none();
                    self.step = if is_root { TreeStep::ToChildren } else { TreeStep::ToParent };
                }
            }
            // The first of two reductions is done, before or after the other child's message has come.
            (TreeStep::FromChildren | TreeStep::ToParent, Event::Token)
                if !self.place.is_leaf() && self.tokens == 0 =>
            {
                self.tokens = 1;
            }
            (TreeStep::ToParent, _) => self.step = to_parent(demands),
            (TreeStep::FromParent, Event::Arrival) => {
                let is_leaf = self.place.is_leaf();
                // ASTRA-sim counts a reduction here, too, although nothing is left to reduce.
                demands.push(Demand::Token { bytes, reduces: !is_leaf });
                self.step = if is_leaf { TreeStep::Last } else { TreeStep::ToChildren };
            }
            (TreeStep::ToChildren, _) => {
                demands.extend(of_children.map(|child| Demand::Send { to: child, bytes }));
                demands.push(Demand::Over);
            }
            (TreeStep::Last, _) => demands.push(Demand::Over),
            _ => {}
        }
    }
}
