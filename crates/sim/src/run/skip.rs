//! Runs that skip what recurs: the same outcome, without going through each period of it.
//!
//! The run pauses at *marks*, the instants at which data packets of one flow arrive, whichever that is. At some of them the whole state is noted, relative to the instant and to the
//! sequence numbers of flows, and compared with that at the marks behind it. Once it is [the same](netloom_units::recurrence), all of it is moved by as many periods as can be
//! foreseen: until a flow reaches its last packet, or something is due at a fixed time.
//!
//! A mark is an instant of the simulation, and nodes are brought there before they are looked at, so that neither windows nor threads make a difference to what is skipped. What marks cost is
//! limited to a share of what the run has cost so far.

use std::cmp::Reverse;
use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_engine::{Due, END_OF_TIME, Pending, Progress, Run, Session, Setup};
use netloom_fabric::{Packet, PacketKind};
use netloom_record::{Skipped, SteadySkipped};
use netloom_transport::{PathFacts, Sender};
use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::HostWork;

use crate::config::Steady;
use crate::host::Host;
use crate::message::Message;
use crate::node::Node;
use crate::run::components::components;
use crate::run::error::RunError;
use crate::run::skip_repetitions::Repetitions;
use crate::run::skip_steps::{Pair, Steps, takes_one_path};
use crate::run::skip_walk::{Jump, Passed, foreseen, jump, pass, pause_cost};
use crate::run::steady;
use crate::switch::Switch;
use crate::world::{Says, TakesData, World};

/// How long after a jump, or the beginning, the next state is noted, in lookaheads.
const FIRST_GAP: u64 = 4;

/// How long an attempt waits for packets of its flow, in lookaheads, before it takes another flow: as long as there is nothing to skip, flows that go on send at least once in a round trip, and an attempt that waits for a
/// flow that has ended pays for every pause. Twice as long each time, until something was skipped, as round trips may be longer.
const PATIENCE: u64 = 16;

/// A flow with fewer packets left to send than these has ended before anything has recurred.
const FEWEST: u32 = 64;

/// The most that [`Search::fewest`] grows to: longer messages are always looked at by themselves.
const MOST_FEWEST: u32 = 1 << 9;

/// Marks at which few nodes are compared with those at the first one, at first; twice as many after every second failure.
const FIRST_MARKS: u32 = 4;

/// Pauses that are paid for before an attempt begins.
const FIRST_PAUSES: u64 = 6;

/// Marks at which they are compared at most.
const MOST_MARKS: u32 = 128;

/// Nodes that are compared before everything is, at most: the ends of a flow, and where something has differed.
const MOST_WATCHED: usize = 32;

/// How often the whole is compared in an attempt: queues of several flows come round when as many packets of each have passed as are under way.
const MOST_TRIES: u32 = 256;

/// What a run may spend on marks before it has handled anything, in messages handled: about a millisecond.
const CREDIT: u64 = 50_000;

/// While no data arrive, the run pauses after one part in this number of the time for which none have, as a step of training begins with calculations,
const IDLE_SHARE: u64 = 256;

/// once it has paused as often where something happened: there may be many calculations before the next message.
const IDLE_PAUSES: u32 = 64;

/// What it may spend on such pauses before it has handled anything, in messages handled: some hundredths of a second.
const IDLE_CREDIT: u64 = 2_500_000;

/// After as many waits for something to spend in a row the next ones are twice as long.
const WAITS_ALIKE: u32 = 8;

/// It may spend one part in this number of what it has handled,
const SHARE: u64 = 25;

/// and one part in this number of what it has skipped.
const SHARE_OF_SKIPPED: u64 = 2;

/// Why no state of a run recurs, as far as that can be said beforehand: a sentence's subject. What nodes keep is asked in the same way as during the run.
pub(crate) fn obstacle(world: &World) -> Option<&'static str> {
    if let Some(what) = obstacle_to_any(world) {
        return Some(what);
    }
    if world.says != Says::Nothing || world.takes != TakesData::AsTheyCome {
        return Some(
            "a transport or a scheme whose packets say more, or come in another order, than those of others",
        );
    }
    if world.gaps.flowlet.as_ref().is_some_and(|flowlet| flowlet.age_bit) {
        return Some("flowlets that a clock separates");
    }
    let mut walk = Walk::note(Time::ZERO);
    let path = PathFacts {
        base_rtt: Time::from_us(10),
        rate: Rate(400_000_000_000),
        lossy: world.is_lossy,
        reorders: false,
        trims: world.fabric.queue.trims(),
    };
    Sender::new(&world.transport, Bytes(1 << 30), path, Time::ZERO).recur(&world.transport, 0, &mut walk);
    Host::new(world, 0, HostWork::default(), None).recur(world, (0, Time::ZERO), None, &mut walk);
    if world.network.switches() > 0 {
        Switch::new(world, world.network.hosts(), None).recur(Time::ZERO, &mut walk);
    }
    walk.refusal()
}

/// Why nothing of a run can be skipped, whether it recurs or is steady.
pub(crate) fn obstacle_to_any(world: &World) -> Option<&'static str> {
    if world.recorder.is_on {
        return Some("a warm-up, windows, or samples or statistics of packets");
    }
    if world.recorder.load_until < Time::MAX {
        return Some("a load that ends before the run");
    }
    if world.is_driven {
        return Some("a program that drives the run");
    }
    if world.numbering.has_subflows() {
        return Some("flows of several subflows");
    }
    if world.gaps.are_counted || world.gaps.at_switches {
        return Some("gaps between packets that are counted");
    }
    if !world.epochs.is_empty() {
        return Some("routes that change during the run");
    }
    if world.has_changing_channels() {
        return Some("a channel with faults");
    }
    if world.port_selection().is_some() {
        return Some("NICs with several ports that are one");
    }
    None
}

/// What is skipped in a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Wanted {
    /// What recurs.
    pub(crate) recurring: bool,
    /// And what is steady.
    pub(crate) steady: Option<Steady>,
}

/// A run that has ended, and what was skipped of it.
pub(crate) struct Ended {
    pub(crate) run: Run<Node, Message>,
    pub(crate) skipped: Skipped,
    pub(crate) steady: Option<SteadySkipped>,
}

/// Runs until nothing is left to happen, or the end that `setup` sets, or `observe` stops the run; [components](components) one by one.
///
/// # Errors
/// If the [error](Steady::max_error) of what was skipped was larger than allowed, and the run is to fail then.
pub(crate) fn run(
    world: &Arc<World>,
    nodes: Vec<Node>,
    setup: Setup,
    wanted: Wanted,
    observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Ended, RunError> {
    let new = |config| steady::Search::new(config, world.wiring.seed, setup.lookahead, nodes.len());
    let mut steady = wanted.steady.map(new);
    let searches = Searches { recurring: wanted.recurring, steady: &mut steady };
    // What lies at switches when a run is cut off must not lie there when another component begins.
    let components = if setup.until < Time::MAX { Vec::new() } else { components(world, &nodes) };
    let (run, skipped) = match components.len() {
        0 | 1 => run_together(world, nodes, setup, searches, observe),
        _ => run_components(world, nodes, &setup, &components, searches, observe),
    };
    let steady = steady.map(steady::Search::finish).transpose()?;
    Ok(Ended { run, skipped, steady })
}

/// What is looked for.
struct Searches<'s> {
    recurring: bool,
    steady: &'s mut Option<steady::Search>,
}

/// Runs components one by one, each from the beginning, while the hosts and servers of all others are not there.
fn run_components(
    world: &Arc<World>,
    mut nodes: Vec<Node>,
    setup: &Setup,
    components: &[Vec<u32>],
    Searches { recurring, steady }: Searches<'_>,
    observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> (Run<Node, Message>, Skipped) {
    let mut aside: Vec<Node> = nodes.iter().map(|_| Node::Untouched).collect();
    let exchange = |nodes: &mut [Node], aside: &mut [Node], ends: &[u32]| {
        ends.iter().for_each(|&id| std::mem::swap(&mut nodes[id as usize], &mut aside[id as usize]));
    };
    components.iter().for_each(|ends| exchange(&mut nodes, &mut aside, ends));
    let mut all = Run::of(Vec::new());
    let mut skipped = Skipped { components: components.len() as u64, ..Skipped::default() };
    let mut reached = Time::ZERO;
    for ends in components {
        exchange(&mut nodes, &mut aside, ends);
        let Run { messages, tally, .. } = all;
        let mut observe = |of_one: Progress| {
            reached = reached.max(world.clock(of_one.time));
            let time = world.instant(reached);
            observe(Progress { time, tally: tally + of_one.tally, messages: messages + of_one.messages })
        };
        if let Some(steady) = steady {
            steady.begin_component();
        }
        let searches = Searches { recurring, steady };
        let (run, of_one) = run_together(world, nodes, setup.clone(), searches, &mut observe);
        all.add(run);
        nodes = std::mem::take(&mut all.nodes);
        skipped.jumps += of_one.jumps;
        skipped.time_ps = skipped.time_ps.max(of_one.time_ps);
        skipped.packet_hops += of_one.packet_hops;
        skipped.repetitions += of_one.repetitions;
        skipped.obstacle = skipped.obstacle.or(of_one.obstacle);
        let is_over = !all.stopped && steady.as_ref().is_none_or(|steady| steady.failure.is_none());
        if is_over {
            let ahead = world.take_ahead();
            let end = nodes.iter().map(Node::last_event_of_hosts).max().unwrap_or_default();
            nodes.iter_mut().for_each(|node| node.end_component(end, ahead));
        }
        exchange(&mut nodes, &mut aside, ends);
        if !is_over {
            break;
        }
    }
    components.iter().for_each(|ends| exchange(&mut nodes, &mut aside, ends));
    (Run { nodes, ..all }, skipped)
}

/// Runs all nodes.
fn run_together(
    world: &Arc<World>,
    nodes: Vec<Node>,
    setup: Setup,
    Searches { recurring, steady }: Searches<'_>,
    observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> (Run<Node, Message>, Skipped) {
    let mut search = Search::new(&setup, nodes.len());
    let mut repetitions = Repetitions::new(&setup, nodes.len());
    if !recurring {
        (search.next, repetitions.next) = (END_OF_TIME, END_OF_TIME);
    }
    let session = Session::new(Arc::clone(world), nodes, setup, Time::MAX);
    let mut session = session.expect("packets take time: the lookahead is never zero");
    loop {
        let next = steady.as_ref().map_or(search.next, |steady| steady.next.min(search.next));
        session.run(next.min(repetitions.next).min(search.end), &mut *observe);
        let now = session.reached();
        if session.is_stopped() || session.is_done() || now >= search.end {
            break;
        }
        let before = search.skipped.jumps;
        if now >= repetitions.next {
            let handled = search.handled(&session);
            let jump = repetitions.step(world, &mut session, (handled, search.end));
            search.go_on_from_mark(session.reached(), jump);
        } else if now >= search.next {
            search.until = repetitions.mark().min(search.end);
            search.step(world, &mut session);
        }
        if search.skipped.jumps > before
            && let Some(steady) = steady.as_mut()
        {
            steady.begin_anew(session.reached());
        }
        if let Some(steady) = steady.as_mut().filter(|steady| session.reached() >= steady.next)
            && let Some(jump) = steady.step(world, &mut session, search.end)
        {
            search.note_steady(now, jump, recurring);
            repetitions.forget(world);
        }
        if steady.as_ref().is_some_and(|steady| steady.failure.is_some()) {
            break;
        }
    }
    repetitions.forget(world);
    let skipped = Skipped { repetitions: repetitions.skipped, ..search.skipped };
    (session.finish(), skipped)
}

/// The flow whose arrivals are marks, and the nodes at its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Reference {
    node: u32,
    sender: u32,
    src: u32,
    flow: u32,
}

impl Reference {
    fn ends(self) -> [u32; 2] {
        [self.node, self.sender]
    }

    fn pair(self) -> Pair {
        Pair { node: self.node, src: self.src }
    }

    /// Whether a data packet of the flow arrives.
    fn is_of(self, event: &Pending<Message>) -> bool {
        matches!(&event.payload, Message::Packet(packet) if packet.kind == PacketKind::Data
            && event.node == self.node && packet.src == self.src && packet.flow == self.flow)
    }
}

/// How far an attempt has come.
enum Stage {
    /// There is none.
    Rest,
    /// A jump has landed `at` this instant, or flows are too short for one: the next message between two hosts is awaited, as in each [step](Steps) of a program.
    Step {
        pair: Pair,
        at: Time,
        /// How far a flow between the two had come when it was looked at last.
        before: Option<Unsent>,
    },
    /// Few nodes are compared alone: where they do not recur, nothing does.
    Few {
        reference: Reference,
        watched: Vec<u32>,
        noted: Option<Noted>,
        marks: u32,
        next: u32,
        /// Series of marks in which they have not recurred, and when the first one began.
        failures: u32,
        since: Time,
    },
    /// These recur after `period` marks, as they have since an instant: everything is compared after that number of marks.
    All {
        reference: Reference,
        watched: Vec<u32>,
        noted: Option<Noted>,
        period: u32,
        marks: u32,
        tries: u32,
        since: Time,
    },
}

impl Stage {
    /// Nothing has been noted of these nodes yet, which are to be compared at that many marks.
    fn few(reference: Reference, watched: Vec<u32>, marks: u32, now: Time) -> Self {
        Stage::Few { reference, watched, noted: None, marks, next: 0, failures: 0, since: now }
    }
}

/// The state that is compared with those at the marks behind it.
struct Noted {
    at: Time,
    walk: Walk,
    messages: u64,
    tally: u64,
}

/// The search for a state that recurs.
struct Search {
    lookahead: Time,
    /// When the run ends at the latest.
    end: Time,
    /// Up to where it may be skipped: until then, or to where a repetition of programs is compared.
    until: Time,
    /// What a pause costs by itself, in messages handled.
    pause_cost: u64,
    /// Where the run pauses next.
    next: Time,
    /// How long it goes on until the next attempt.
    gap: Time,
    /// How much longer than that it goes on once a jump has landed or a step has begun, as that is how long it took until all recurred after the one before: steps are alike.
    settling: Time,
    /// When that attempt would begin otherwise; none if what came before is not alike.
    from: Option<Time>,
    stage: Stage,
    /// At how many marks few nodes are compared first in the next attempt: as many as in the last one, if that was given up for its costs.
    marks: u32,
    /// When the flow of the attempt was chosen, or a packet of it came last; the end of a pause between two series of marks. And how long the next packet may take.
    seen: Time,
    patience: Time,
    /// How many waits for something to spend have followed each other.
    waits: u32,
    /// While no data arrive at any pause.
    silence: Option<Silence>,
    /// What has been spent, and what of it while no data arrived, which counts by itself.
    spent: u64,
    spent_idle: u64,
    skipped: Skipped,
    skipped_messages: u64,
    /// Flows with fewer packets left than these are not looked at by themselves, if steps may be awaited.
    fewest: u32,
    /// How many the flow of the attempt had left when that began.
    left: u32,
    /// How many numbers there were in the last state of everything that was noted.
    numbers: usize,
    /// The search for steps that are the same.
    steps: Steps,
}

impl Search {
    fn new(setup: &Setup, nodes: usize) -> Self {
        let gap = setup.lookahead * FIRST_GAP;
        Search {
            lookahead: setup.lookahead,
            end: setup.until.min(END_OF_TIME),
            until: END_OF_TIME,
            pause_cost: pause_cost(nodes),
            next: gap,
            gap,
            settling: Time::ZERO,
            from: None,
            stage: Stage::Rest,
            marks: FIRST_MARKS,
            seen: Time::ZERO,
            patience: setup.lookahead * PATIENCE,
            waits: 0,
            silence: None,
            spent: 0,
            spent_idle: 0,
            skipped: Skipped::default(),
            skipped_messages: 0,
            fewest: FEWEST,
            left: 0,
            numbers: 0,
            steps: Steps::default(),
        }
    }

    /// What is steady was jumped over while the clock of the network stood still: what is due at a fixed time has come nearer, and no noted state is one of this run any more.
    fn note_steady(&mut self, now: Time, jump: Jump, goes_on: bool) {
        self.note_jump(jump);
        if self.end < END_OF_TIME {
            self.end = self.end - jump.time;
        }
        if goes_on {
            (self.stage, self.steps) = (Stage::Rest, Steps::default());
            self.gap = self.lookahead * FIRST_GAP;
            self.next = now + self.gap;
        }
    }

    /// The run has paused where repetitions of programs are looked at, and may have skipped some of them.
    fn go_on_from_mark(&mut self, now: Time, jump: Option<Jump>) {
        if let Some(jump) = jump {
            self.note_jump(jump);
            (self.steps, self.silence) = (Steps::default(), None);
        } else if self.until > now {
            return;
        }
        // Other jumps end before such a mark: that one could not go on says nothing of what recurs behind it.
        self.stage = Stage::Rest;
        self.gap = self.lookahead * FIRST_GAP;
        self.next = now + self.gap;
    }

    /// What may be spent because of what has been handled.
    fn earned(&self, session: &Session<World>) -> u64 {
        self.handled(session) / SHARE
    }

    /// How many messages have been handled, and not skipped.
    fn handled(&self, session: &Session<World>) -> u64 {
        // Timers that wait count against messages: there may be more of them.
        let handled = session.messages().wrapping_sub(self.skipped_messages).cast_signed().max(0);
        handled.cast_unsigned()
    }

    /// What has been spent beyond what may be. An attempt begins only if its first pauses may be spent, too.
    fn debt(&self, session: &Session<World>) -> Option<u64> {
        let credit = CREDIT + self.earned(session) + self.skipped_messages / SHARE_OF_SKIPPED;
        let first = if matches!(self.stage, Stage::Rest) { FIRST_PAUSES } else { 0 };
        (self.spent + first * self.pause_cost).checked_sub(credit)
    }

    /// Nothing is looked at until there is something left to spend, as far as that can be foreseen.
    fn wait_for_credit(&mut self, session: &Session<World>) {
        let now = session.reached();
        if let Stage::Few { marks, .. } = self.stage {
            self.marks = marks;
            self.learn_fewest();
        }
        if !matches!(self.stage, Stage::Rest) {
            self.give_up(now);
        }
        // The next pause is paid for, too.
        let debt = self.debt(session).unwrap_or(0) + self.pause_cost;
        let handled = (self.earned(session) * SHARE).max(1);
        // Where fewer messages come than on average, a wait may earn no more than the pause that ends it: waits in a row become longer.
        let times = 1u128 << (self.waits / WAITS_ALIKE).min(10);
        self.waits = self.waits.saturating_add(1);
        let time = times * u128::from(debt * SHARE) * u128::from(now.0) / u128::from(handled);
        // Not longer than it has gone on so far: more may be handled from now on.
        let time = Time(u64::try_from(time).unwrap_or(u64::MAX)).min(now).max(self.gap);
        self.next = now.saturating_add(time);
        self.from = None;
    }

    /// The run has paused at the planned instant: examines the state there, and plans the next pause.
    fn step(&mut self, world: &World, session: &mut Session<World>) {
        let now = session.reached();
        self.spent += self.pause_cost;
        // The first comparison of everything is what an attempt is for.
        let is_almost_there = matches!(self.stage, Stage::All { tries: 0, .. } | Stage::Step { .. });
        if !is_almost_there && self.debt(session).is_some() {
            return self.wait_for_credit(session);
        }
        self.waits = 0;
        let (reference, pending) = match self.stage {
            Stage::Step { pair, at, before } => return self.await_step(world, session, (pair, at, before)),
            Stage::Rest => {
                let coming = Coming::of(world, session);
                let Some((reference, left, answered)) = longest(world, session, &coming.data) else {
                    return self.idle(session, &coming);
                };
                self.spent += coming.cost;
                self.silence = None;
                if !Self::may_recur(world, session, &mut self.spent) {
                    return self.give_up(now);
                }
                if left < self.fewest {
                    // What recurs may be whole steps.
                    if let Some(pair) = self.steps.pair(world, session, reference.pair(), &mut self.spent) {
                        self.settling = Time::ZERO;
                        return self.begin_to_await(pair, now);
                    }
                    if left < FEWEST {
                        self.settling = Time::ZERO;
                        return self.give_up(now);
                    }
                }
                if now < answered {
                    return self.next = answered;
                }
                self.left = left;
                let watched = reference.ends().to_vec();
                self.stage = Stage::few(reference, watched, self.marks, now);
                self.seen = now;
                (reference, session.pending(reference.ends()))
            }
            Stage::Few { reference, .. } | Stage::All { reference, .. } => {
                (reference, session.pending(reference.ends()))
            }
        };
        self.spent += pending.len() as u64;
        if pending.iter().any(|event| event.due.at == now && reference.is_of(event)) {
            self.seen = now;
            match self.stage {
                Stage::Rest | Stage::Step { .. } => {}
                Stage::Few { .. } => self.look_at_few(world, session),
                Stage::All { .. } => self.look_at_all(world, session),
            }
            if matches!(self.stage, Stage::Rest | Stage::Step { .. }) {
                return;
            }
        }
        if self.seen > now {
            return self.next = self.seen;
        }
        if now - self.seen > self.patience {
            self.patience = self.patience.saturating_add(self.patience).min(END_OF_TIME);
            self.settling = Time::ZERO;
            self.learn_fewest();
            return self.begin_again(now);
        }
        // What arrives before another lookahead has passed is under way by now.
        let known = now + self.lookahead;
        let arrivals = pending.iter().filter(|event| event.due.at > now && reference.is_of(event));
        self.next = arrivals.map(|event| event.due.at).min().unwrap_or(known).min(known);
    }

    /// Whether nothing depends on what switches keep for their choices: they keep nothing, or have nothing to choose for any flow or its answers.
    fn may_recur(world: &World, session: &mut Session<World>, spent: &mut u64) -> bool {
        world.routing.choices_recur() || takes_one_path(world, session, spent)
    }

    /// Waits until the first packet of a message arrives, and compares the state there with that at the beginning of other messages.
    fn await_step(
        &mut self,
        world: &World,
        session: &mut Session<World>,
        (pair, at, before): (Pair, Time, Option<Unsent>),
    ) {
        let now = session.reached();
        let pending = session.pending([pair.node]);
        self.spent += pending.len() as u64;
        let first = pending.iter().filter(|event| pair.begins_by(event)).map(|event| event.due.at).min();
        let known = now + self.lookahead;
        match first {
            Some(first) if first == now => {
                if let Some(jump) = self.steps.look(world, session, self.until, &mut self.spent) {
                    self.note_jump(jump);
                    self.gap = self.lookahead * FIRST_GAP;
                }
            }
            None => {
                // Where one goes on for long, more recurs within it.
                let of_pair = pair.left(world, session, &pending).filter(|&(_, left)| left < self.fewest);
                if let Some((flow, packets)) = of_pair {
                    let unsent = Unsent { flow, packets, at: now };
                    // The next message comes behind this one.
                    let wait = before.map_or(Time::ZERO, |before| before.time_left(unsent) / 2);
                    self.stage = Stage::Step { pair, at: now, before: Some(unsent) };
                    return self.next = known.max(now + wait);
                }
                // It costs something to know whether data are on their way elsewhere.
                let waited = now.saturating_sub(at).0.checked_div(self.lookahead.0).unwrap_or(0);
                if (waited == 0 || waited.is_power_of_two())
                    && !pending.iter().any(|event| is_of_data(&event.payload))
                    && let Some(first) = self.idle_until(world, session)
                {
                    self.stage = Stage::Step { pair, at: first, before: None };
                    return self.next = first + self.lookahead;
                }
                if now.saturating_sub(at) <= self.lookahead * PATIENCE {
                    return self.next = known;
                }
                self.steps.miss();
                self.fewest = FEWEST;
            }
            Some(first) => {
                self.silence = None;
                return self.next = first.min(known);
            }
        }
        self.begin_again(session.reached());
    }

    /// The next attempt begins when all may recur again.
    fn begin_again(&mut self, now: Time) {
        self.stage = Stage::Rest;
        let from = now + self.gap;
        self.from = Some(from);
        self.next = from + self.settling;
    }

    /// When to pause next, if no data are on their way anywhere and such pauses may be spent: calculations may end one after the other without any message.
    fn idle_until(&mut self, world: &World, session: &mut Session<World>) -> Option<Time> {
        let coming = Coming::of(world, session);
        if coming.has_data {
            self.spent += coming.cost;
            self.silence = None;
            return None;
        }
        if !self.spend_idle(session, &coming) {
            return None;
        }
        let calculated = (0..session.nodes()).filter_map(|node| session.node(node).next_wake());
        let first = calculated.chain(coming.first).min()?;
        Some(self.next_in_silence(session, &coming, first))
    }

    /// A flow has ended, or been given up, before anything recurred: those that are as short are not looked at by themselves.
    fn learn_fewest(&mut self) {
        if self.left < MOST_FEWEST {
            self.fewest = self.fewest.max(self.left + 1);
        }
    }

    /// Compares few nodes at a mark.
    fn look_at_few(&mut self, world: &World, session: &mut Session<World>) {
        let (now, tally) = (session.reached(), session.tally());
        let Stage::Few { reference, watched, noted, marks, next, failures, since } = &mut self.stage else {
            return;
        };
        *next += 1;
        let recurs = noted.as_mut().is_some_and(|noted| {
            noted.walk.begin_to_compare(now);
            self.spent += pass((world, session), watched, &mut noted.walk).cost;
            noted.walk.recurs() && noted.tally == tally
        });
        let passed = *next - 1;
        if recurs {
            let (reference, watched) = (*reference, std::mem::take(watched));
            let since = noted.as_ref().map_or(now, |noted| noted.at);
            let (period, noted) = (passed, None);
            self.stage = Stage::All { reference, watched, noted, period, marks: 0, tries: 0, since };
            return self.look_at_all(world, session);
        }
        if noted.is_some() && passed < *marks {
            return;
        }
        if noted.take().is_some() {
            // What has not come round by now may take as long again as it has.
            *failures += 1;
            *marks *= 1 + u32::from(*failures % 2 == 0);
            *next = 0;
            if *marks > MOST_MARKS {
                self.marks = FIRST_MARKS;
                self.learn_fewest();
                return self.give_up(now);
            }
            self.seen = now + ((now - *since) / 2).max(self.lookahead);
            return;
        }
        let mut walk = Walk::note(now);
        self.spent += pass((world, session), watched, &mut walk).cost;
        *next = 1;
        let refusal = walk.refusal();
        *noted = Some(Noted { at: now, walk, messages: 0, tally });
        if let Some(what) = refusal {
            self.refuse(what);
        }
    }

    /// Compares everything at a mark, if it is one at which that may have recurred.
    fn look_at_all(&mut self, world: &World, session: &mut Session<World>) {
        let (now, messages, tally) = (session.reached(), session.messages(), session.tally());
        let Stage::All { reference, watched, noted, period, marks, tries, .. } = &mut self.stage else {
            return;
        };
        if *marks % *period != 0 {
            *marks += 1;
            return;
        }
        *marks += 1;
        let nodes: Vec<u32> = (0..session.nodes()).collect();
        if let Some(noted) = noted {
            noted.walk.begin_to_compare(now);
            let Passed { cost, last } = pass((world, session), &nodes, &mut noted.walk);
            self.spent += cost;
            if noted.walk.recurs() && noted.tally == tally && Self::may_recur(world, session, &mut self.spent)
            {
                self.spent += self.pause_cost;
                return match foreseen(&noted.walk, session, self.until) {
                    0 => self.give_up(now),
                    periods => self.jump(world, session, periods),
                };
            }
            *tries += 1;
            if *tries >= MOST_TRIES || noted.tally != tally {
                return self.give_up(now);
            }
            // What differs is looked at before everything is again.
            if watched.len() < MOST_WATCHED && !watched.contains(&last) {
                let mut watched = std::mem::take(watched);
                watched.push(last);
                let reference = *reference;
                self.stage = Stage::few(reference, watched, FIRST_MARKS, now);
                return self.look_at_few(world, session);
            }
            // The whole may have a period that is several times that of the few.
            if !tries.is_power_of_two() {
                return;
            }
        }
        let mut walk = Walk::note(now).with_room(self.numbers);
        self.spent += pass((world, session), &nodes, &mut walk).cost;
        self.numbers = walk.passed_by();
        let refusal = walk.refusal();
        *noted = Some(Noted { at: now, walk, messages, tally });
        if let Some(what) = refusal {
            self.refuse(what);
        }
    }

    /// The state has recurred, and recurs for as many periods more.
    fn jump(&mut self, world: &World, session: &mut Session<World>, periods: u64) {
        let Stage::All { reference, noted: Some(Noted { mut walk, messages, tally, .. }), since, .. } =
            std::mem::replace(&mut self.stage, Stage::Rest)
        else {
            return;
        };
        self.settling = self.from.map_or(Time::ZERO, |from| since.saturating_sub(from));
        let jump = jump((world, session), &mut walk, (messages, tally), periods);
        let now = session.reached();
        self.note_jump(jump);
        self.gap = self.lookahead * FIRST_GAP;
        self.marks = FIRST_MARKS;
        self.fewest = FEWEST;
        self.patience = self.lookahead * PATIENCE;
        self.begin_again(now);
        if let Some(pair) = self.steps.pair(world, session, reference.pair(), &mut self.spent) {
            self.begin_to_await(pair, now);
        }
    }

    /// The run has skipped this much.
    fn note_jump(&mut self, Jump { time, messages, packet_hops }: Jump) {
        self.skipped.jumps += 1;
        self.skipped.time_ps += time.0;
        self.skipped.packet_hops += packet_hops;
        self.skipped_messages += messages;
    }

    /// From `at` on the next message is awaited.
    fn begin_to_await(&mut self, pair: Pair, at: Time) {
        self.stage = Stage::Step { pair, at, before: None };
        self.next = at + self.lookahead;
    }

    /// Nothing has recurred: the next attempt comes later.
    fn give_up(&mut self, now: Time) {
        self.stage = Stage::Rest;
        self.next = now.saturating_add(self.gap);
        self.from = None;
        self.gap = self.gap.saturating_add(self.gap).min(END_OF_TIME);
    }

    /// No data arrive: what comes then may recur however little has before.
    fn idle(&mut self, session: &Session<World>, coming: &Coming) {
        let now = session.reached();
        if coming.has_data {
            // By then they are on the last channel.
            (self.silence, self.from) = (None, None);
            self.spent += coming.cost;
            return self.next = now + self.lookahead;
        }
        if !self.spend_idle(session, coming) {
            return self.give_up(now);
        }
        let first = coming.first.unwrap_or(now);
        self.gap = self.lookahead * FIRST_GAP;
        self.next = self.next_in_silence(session, coming, first).saturating_add(self.gap);
        self.from = None;
    }

    /// Charges this pause to the account of silences; whether that allows for it.
    fn spend_idle(&mut self, session: &Session<World>, coming: &Coming) -> bool {
        self.spent -= self.pause_cost;
        self.spent_idle += self.pause_cost + coming.cost;
        self.spent_idle <= IDLE_CREDIT + self.earned(session) + self.skipped_messages / SHARE_OF_SKIPPED
    }

    /// When to pause next in a silence in which something happens at `first`: there, so that no message begins unseen, and after many pauses the later the longer it has lasted.
    fn next_in_silence(&mut self, session: &Session<World>, coming: &Coming, first: Time) -> Time {
        let (now, handled) = (session.reached(), self.handled(session));
        // Data that have come and gone between two pauses have ended it.
        let goes_on = |silence: &Silence| handled <= silence.handled + coming.cost;
        let before = self.silence.take().filter(goes_on);
        let Silence { since, pauses, .. } = before.unwrap_or(Silence { since: now, pauses: 0, handled });
        self.silence = Some(Silence { since, pauses: pauses + 1, handled });
        match pauses >= IDLE_PAUSES {
            true => first.max(now + Time((now - since).0 / IDLE_SHARE)),
            false => first,
        }
    }

    /// Nothing will recur.
    fn refuse(&mut self, what: &'static str) {
        self.skipped.obstacle.get_or_insert(what.to_owned());
        self.gap = Time::MAX;
        self.give_up(Time::ZERO);
    }
}

/// Among the flows whose data packets arrive, the one that goes on for longest, and how many packets it has left to send; the first to arrive, if there are several. And when it may have been
/// answered: until a sender has had an ACK, more is in flight from packet to packet, and nothing recurs.
fn longest(
    world: &World,
    session: &mut Session<World>,
    data: &[(Due, Reference, u32)],
) -> Option<(Reference, u32, Time)> {
    let now = session.reached();
    let with_left = data.iter().map(|&(due, reference, slot)| {
        let Reference { sender, src, flow, .. } = reference;
        let (left, answered) = match session.node(sender).sender_of((src, flow), slot) {
            Some(sender) if world.transport.has_acks() && sender.in_flight() == sender.next() => {
                (sender.left(), now + sender.base_rtt() / 2)
            }
            Some(sender) => (sender.left(), now),
            None => (0, now),
        };
        ((Reverse(left), due), reference, answered)
    });
    let ((Reverse(left), _), reference, answered) = with_left.min_by_key(|&(key, ..)| key)?;
    Some((reference, left, answered))
}

/// What is on its way in the whole network.
struct Coming {
    /// Data packets on the last channel to their receivers: when they arrive, of which flow they are, and its slot at the sender.
    data: Vec<(Due, Reference, u32)>,
    /// Whether there are data packets anywhere.
    has_data: bool,
    /// When the first message or timer is due.
    first: Option<Time>,
    /// What it has cost to look at all of them, in messages handled.
    cost: u64,
}

impl Coming {
    fn of(world: &World, session: &Session<World>) -> Self {
        let cost = session.nodes().into();
        let mut coming = Coming { data: Vec::new(), has_data: false, first: None, cost };
        session.look_at_pending(|node, due, message| {
            coming.cost += 1;
            coming.first = Some(coming.first.map_or(due.at, |first| first.min(due.at)));
            let &Message::Packet(Packet { kind: PacketKind::Data, src, dst, flow, slot, .. }) = message
            else {
                return;
            };
            coming.has_data = true;
            if world.node(dst) == node {
                coming.data.push((due, Reference { node, sender: world.node(src), src, flow }, slot));
            }
        });
        coming
    }
}

/// Whether data arrive.
fn is_of_data(message: &Message) -> bool {
    matches!(message, Message::Packet(packet) if packet.kind == PacketKind::Data)
}

/// A time in which no data arrive at any pause.
struct Silence {
    since: Time,
    /// How often the run has paused in it, and how many messages had been handled at the last pause.
    pauses: u32,
    handled: u64,
}

/// How much a flow had left to send at an instant.
#[derive(Clone, Copy)]
struct Unsent {
    flow: u32,
    packets: u32,
    at: Time,
}

impl Unsent {
    /// How long what is left `now` will take at the rate since; no time if that is not known.
    fn time_left(self, now: Unsent) -> Time {
        if self.flow != now.flow || self.packets <= now.packets {
            return Time::ZERO;
        }
        (now.at - self.at) * u64::from(now.packets) / u64::from(self.packets - now.packets)
    }
}
