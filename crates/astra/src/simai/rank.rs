//! One rank of a training step: which layer comes next, and what its operations send.
//!
//! It computes, then communicates, layer by layer: forward, then from the last layer back the gradients of its input and those of its weights. It waits for operations of the forward
//! pass and of input gradients, not for those of weights, which are waited for at the end. One operation of a rank is under way at a time, whatever its group.

mod recur;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use netloom_units::narrow;
use rustc_hash::FxHashMap;

pub(crate) use self::recur::recur_message;
use super::file::{Order, PassKind, Step};
use super::flows::{Flow, Flows};
use super::report::{self, LayerTimes};
use super::{Pass, SimAi};
use crate::rank::{End, Envelope, Network};
use crate::system::Operation;
use crate::trace::LONGEST;

/// Nanoseconds from one step of a rank to the next.
const STEP: u64 = 1;

/// Nanoseconds that a flow takes to the network, and more if what it carries is reduced first: a transfer, two reads and a write of SimAI's memory bus.
const BUS: u64 = 10;
const REDUCTION: u64 = 30;

/// A rank of a training step.
#[derive(Clone, Debug)]
pub struct SimAiRank {
    step: Arc<SimAi>,
    rank: u32,
    now: u64,
    at: Step,
    /// The layer up to which a forward pass is done again.
    again: Option<u32>,
    timers: BTreeMap<u64, Vec<Todo>>,
    /// Operations so far: all ranks come to the same, in the same order.
    issued: u32,
    running: Option<Running>,
    waiting: VecDeque<Issued>,
    /// Operations that are not over.
    open: u32,
    /// By operation that has not begun: the flows that have arrived.
    early: FxHashMap<u32, Vec<Flow>>,
    /// Since when it waits for the first layer's weights to be communicated.
    waits_since: Option<u64>,
    has_passed: bool,
    next_message: u32,
    computed: u64,
    end: Option<End>,
    /// By layer, at rank 0.
    times: Box<[LayerTimes]>,
    /// When the layers that it is at began, and how long those before had lasted, where these are repeated.
    repetition: Option<(u64, Option<u64>)>,
}

/// Layers that are like others before or behind them, at which a rank is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repetition {
    /// When it has issued the first operation of them, in nanoseconds.
    pub since: u64,
    /// How long those before have lasted, if there were any.
    pub lasted: Option<u64>,
    /// How many more come.
    pub left: u32,
}

/// What happens at a time.
#[derive(Clone, Copy, Debug)]
enum Todo {
    /// The next step, or what comes after its computation.
    Begin,
    Communicate,
    /// A flow of the operation under way is handed to the network.
    Send(Flow),
    /// An operation is over, begun at a time and done at another.
    Over {
        of: Step,
        created: u64,
        done: u64,
    },
}

/// An operation that waits.
#[derive(Clone, Debug)]
struct Issued {
    number: u32,
    of: Step,
    created: u64,
    flows: Flows,
}

/// The operation under way.
#[derive(Clone, Debug)]
struct Running {
    issued: Issued,
    unsent: u64,
    unreceived: u64,
}

/// Bits of a tag below the number of the operation: the ring and the step.
pub(super) const CHANNEL_BITS: u32 = 12;
const STEP_BITS: u32 = 20;

fn tag(operation: u32, flow: Flow) -> u64 {
    u64::from(operation) << (CHANNEL_BITS + STEP_BITS)
        | u64::from(flow.channel) << STEP_BITS
        | u64::from(flow.step)
}

fn from_tag(tag: u64) -> (u32, Flow) {
    let bits = |from: u32, count: u32| narrow::<u32>(tag >> from & ((1 << count) - 1));
    let flow = Flow { channel: bits(STEP_BITS, CHANNEL_BITS), step: bits(0, STEP_BITS) };
    (bits(CHANNEL_BITS + STEP_BITS, 32), flow)
}

impl SimAiRank {
    /// A rank that has not begun.
    pub fn new(step: Arc<SimAi>, rank: u32) -> Self {
        let layers = if rank == 0 { step.file.layers.len() } else { 0 };
        SimAiRank {
            step,
            rank,
            now: 0,
            at: Step { layer: 0, kind: PassKind::Forward },
            again: None,
            timers: BTreeMap::new(),
            issued: 0,
            running: None,
            waiting: VecDeque::new(),
            open: 0,
            early: FxHashMap::default(),
            waits_since: None,
            has_passed: false,
            next_message: 0,
            computed: 0,
            end: None,
            times: vec![LayerTimes::default(); layers].into(),
            repetition: None,
        }
    }

    /// How it ended, once it has.
    pub fn end(&self) -> Option<End> {
        self.end
    }

    /// How long it has computed, in nanoseconds; what is under way counts whole.
    pub fn computed(&self) -> u64 {
        self.computed
    }

    /// The repetition of layers that it is in, or was in last.
    pub fn repetition(&self) -> Option<Repetition> {
        let (since, lasted) = self.repetition?;
        Some(Repetition { since, lasted, left: self.repetitions_left() })
    }

    /// How many repetitions of layers have not begun.
    pub fn repetitions_left(&self) -> u32 {
        self.step.sequence.repetitions_from(self.issued)
    }

    /// The step.
    pub fn step(&self) -> &Arc<SimAi> {
        &self.step
    }

    /// How many messages it has sent.
    #[cfg(test)]
    pub(super) fn sent_messages(&self) -> u32 {
        self.next_message
    }

    /// SimAI's table of layers (`EndToEnd.csv`), once rank 0 has ended.
    pub fn report(&self) -> Option<String> {
        let end = self.end.filter(|_| !self.times.is_empty())?;
        Some(report::csv(&self.step, &self.times, end.finished))
    }

    /// What a rank that has not ended waits for.
    pub fn unfinished(&self) -> Option<String> {
        if self.end.is_some() {
            return None;
        }
        let Step { layer, kind } = self.at;
        let name = |layer: u32| format!("layer {layer} ({})", self.step.file.layers[layer as usize].name);
        let pass = |kind: PassKind| match kind {
            PassKind::Forward => "forward pass",
            PassKind::Input => "input gradients",
            PassKind::Weight => "weight gradients",
        };
        let what = match &self.running {
            None => format!("is at {}, {}", name(layer), pass(kind)),
            Some(Running { issued, unsent, unreceived }) => format!(
                "waits for {unreceived} flows to come and {unsent} to be sent in an {} of {}, {}",
                issued.flows.operation.name(),
                name(issued.of.layer),
                pass(issued.of.kind)
            ),
        };
        let waiting = match self.waiting.len() {
            0 => String::new(),
            count => format!(", with {count} operations behind it"),
        };
        Some(format!("rank {}: {what}{waiting}", self.rank))
    }

    /// Begins.
    pub fn begin(&mut self, now: u64, network: &mut dyn Network) {
        self.now = now;
        self.compute(network);
    }

    /// A time has come that was asked for.
    pub fn wake(&mut self, now: u64, network: &mut dyn Network) {
        self.now = now;
        // What is added for this very time meanwhile has its turn, too.
        let mut next = 0;
        while let Some(&todo) = self.timers.get(&now).and_then(|list| list.get(next)) {
            next += 1;
            match todo {
                Todo::Begin => self.compute(network),
                Todo::Communicate => self.communicate(network),
                Todo::Send(flow) => self.send(flow, network),
                Todo::Over { of, created, done } => self.end_operation(of, created, done, network),
            }
        }
        self.timers.remove(&now);
    }

    /// A message has been sent: it is one of the operation under way.
    pub fn sent(&mut self, now: u64, network: &mut dyn Network) {
        self.now = now;
        if let Some(running) = &mut self.running {
            running.unsent = running.unsent.saturating_sub(1);
        }
        self.go_on(network);
    }

    /// A message has arrived.
    pub fn arrived(&mut self, now: u64, envelope: Envelope, network: &mut dyn Network) {
        self.now = now;
        let (number, flow) = from_tag(envelope.tag);
        match &self.running {
            Some(running) if running.issued.number == number => {
                self.receive(flow, network);
                self.go_on(network);
            }
            _ => self.early.entry(number).or_default().push(flow),
        }
    }

    fn after(&mut self, delay: u64, todo: Todo, network: &mut dyn Network) {
        let at = self.now.saturating_add(delay).min(LONGEST);
        let list = self.timers.entry(at).or_default();
        if list.is_empty() {
            network.wake(at);
        }
        list.push(todo);
    }

    // Layers.

    fn pass(&self, Step { layer, kind }: Step) -> Pass {
        self.step.file.layers[layer as usize].passes[kind as usize]
    }

    fn times(&mut self, layer: u32) -> Option<&mut LayerTimes> {
        self.times.get_mut(layer as usize)
    }

    fn compute(&mut self, network: &mut dyn Network) {
        if self.has_passed {
            self.finish();
            return;
        }
        let Step { layer, kind } = self.at;
        match self.pass(self.at).compute {
            0 => self.communicate(network),
            compute => {
                let compute = network.stretch(compute);
                self.computed = self.computed.saturating_add(compute);
                if let Some(times) = self.times(layer) {
                    times.compute[kind as usize] += compute;
                }
                self.after(compute, Todo::Communicate, network);
            }
        }
    }

    /// Issues the operation of the step.
    fn communicate(&mut self, network: &mut dyn Network) {
        let (of, number) = (self.at, self.issued);
        self.issued += 1;
        if self.step.sequence.begins_repetition(number) {
            // The one before may be of other layers, with something between.
            let before = self.repetition.filter(|_| !self.step.sequence.begins_block(number));
            let lasted = before.map(|(since, _)| self.now - since);
            self.repetition = Some((self.now, lasted));
        }
        let flows = self.step.flows(&self.pass(of), self.rank);
        let is_blocking = of.kind != PassKind::Weight;
        let is_nothing = flows.is_none();
        if let Some(flows) = flows {
            self.open += 1;
            let issued = Issued { number, of, created: self.now, flows };
            match self.step.shape.order {
                Order::NewestFirst => self.waiting.push_front(issued),
                Order::OldestFirst => self.waiting.push_back(issued),
            }
            self.start_next(network);
        }
        if is_nothing || !is_blocking {
            self.proceed(network);
        }
    }

    fn proceed(&mut self, network: &mut dyn Network) {
        match self.step.clone().file.after(self.at, &mut self.again) {
            Some(step) => self.at = step,
            None => self.has_passed = true,
        }
        self.after(STEP, Todo::Begin, network);
    }

    /// All layers are done, perhaps not all of their operations.
    fn finish(&mut self) {
        if self.open == 0 {
            let exposed = self.now.saturating_sub(self.computed);
            self.end = Some(End { finished: self.now, exposed });
        } else {
            self.waits_since.get_or_insert(self.now);
        }
    }

    // Operations.

    fn start_next(&mut self, network: &mut dyn Network) {
        if self.running.is_some() {
            return;
        }
        let Some(issued) = self.waiting.pop_front() else { return };
        let messages = issued.flows.messages();
        let (operation, channels) = (issued.flows.operation, issued.flows.channels());
        let early = self.early.remove(&issued.number).unwrap_or_default();
        self.running = Some(Running { issued, unsent: messages, unreceived: messages });
        if operation == Operation::AllToAll {
            self.hand_over(Flow { channel: 0, step: 0 }, network);
        } else {
            (0..channels).for_each(|channel| self.hand_over(Flow { channel, step: 0 }, network));
        }
        for flow in early {
            self.receive(flow, network);
        }
    }

    /// A flow begins its way to the network.
    fn hand_over(&mut self, flow: Flow, network: &mut dyn Network) {
        let Some(running) = &self.running else { return };
        let reduction = if running.issued.flows.reduces(flow.step) { REDUCTION } else { 0 };
        self.after(BUS + reduction + self.step.shape.send_latency, Todo::Send(flow), network);
    }

    fn send(&mut self, flow: Flow, network: &mut dyn Network) {
        let Some(Running { issued, .. }) = &self.running else { return };
        let envelope = Envelope { tag: tag(issued.number, flow), bytes: issued.flows.bytes, number: 0 };
        match issued.flows.operation {
            Operation::AllToAll => {
                for to in issued.flows.others() {
                    network.send(to, envelope, self.next_message);
                    self.next_message += 1;
                }
            }
            _ => {
                network.send(issued.flows.next(flow.channel), envelope, self.next_message);
                self.next_message += 1;
            }
        }
    }

    /// A flow of the operation under way has come: the next one of its ring may leave.
    fn receive(&mut self, Flow { channel, step }: Flow, network: &mut dyn Network) {
        let Some(running) = &mut self.running else { return };
        running.unreceived = running.unreceived.saturating_sub(1);
        let next = Flow { channel, step: step + 1 };
        if next.step < running.issued.flows.steps() {
            self.hand_over(next, network);
        }
    }

    /// Ends the operation under way when all of its flows have come and gone.
    fn go_on(&mut self, network: &mut dyn Network) {
        let is_done = |running: &mut Running| running.unsent == 0 && running.unreceived == 0;
        let Some(Running { issued, .. }) = self.running.take_if(is_done) else { return };
        let update = self.step.file.layers[issued.of.layer as usize].update;
        let over = Todo::Over { of: issued.of, created: issued.created, done: self.now + update };
        self.after(update, over, network);
        self.start_next(network);
    }

    fn end_operation(&mut self, of: Step, created: u64, done: u64, network: &mut dyn Network) {
        let is_blocking = of.kind != PassKind::Weight;
        // SimAI counts what is waited for at the end as that of the first layer's weights only.
        let waited = match (is_blocking, of.layer) {
            (true, _) => done - created,
            (false, 0) => self.waits_since.map_or(0, |since| done - since.max(created)),
            (false, _) => 0,
        };
        if let Some(times) = self.times(of.layer) {
            times.total[of.kind as usize] += done - created;
            times.exposed[of.kind as usize] += waited;
        }
        self.open -= 1;
        if is_blocking {
            self.proceed(network);
        } else if self.waits_since.is_some() {
            self.finish();
        }
    }
}
