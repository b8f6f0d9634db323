//! Runs that are driven from outside: flows start, and their completions are reported, in the middle of the run.
//!
//! A program that simulates what hosts compute (a training step, a control loop) decides what is sent when by what arrived when.
//! It starts flows at the instant that the run has come to, or later, and lets the run go on until something completes. What comes out
//! is what the same flows from a list would have given, byte by byte.
//!
//! A program that may answer a completion at the very instant at which it happens needs a run that goes event by event, in order of time: the
//! windowed engine has other nodes well past that instant by then, and costs a fraction of that for each packet-hop. So a program says how long it takes to
//! answer, its *reaction time* ([`Driven::set_reaction`]), and gets windows if that is more than nothing.

mod executor;

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use netloom_engine::{END_OF_TIME, NodeIndex};
use netloom_record::{NamedChannel, Records, Skipped, Window};
use netloom_routing::FlowKey;
use netloom_topology::HostId;
use netloom_units::{Bytes, Invalid, Time};
use rustc_hash::FxHashMap;

use self::executor::{Executor, Stop};
use crate::host::event::FlowEvent;
use crate::message::Message;
use crate::run::collect::collect_all;
use crate::run::error::RunError;
use crate::run::progress::{Finished, RunProgress};
use crate::run::simulation::Simulation;
use crate::run::skip;
use crate::world::World;

/// A flow that was started from outside, in order of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u32);

/// A flow to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Sending host.
    pub src: HostId,
    /// Receiving host. A message to the sender itself does not enter the network: it arrives, and is acknowledged, at the instant at which it starts, and the records do not have it.
    pub dst: HostId,
    /// Payload. A message of no bytes is a packet with one byte of payload.
    pub bytes: Bytes,
    /// When the message is handed to the sender's transport: at [`Driven::earliest_start`] or later.
    pub at: Time,
    /// Traffic class.
    pub class: u8,
}

/// What of a flow has completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Milestone {
    /// Its last byte has arrived at the receiver.
    Arrived,
    /// The sender knows that all of it has: the last ACK has come back.
    Acknowledged,
}

/// A flow has come to its end, at its receiver or at its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which flow.
    pub ticket: Ticket,
    /// Which end.
    pub milestone: Milestone,
    /// When.
    pub at: Time,
}

/// A run that is driven from outside.
#[derive(Debug)]
pub struct Driven {
    world: Arc<World>,
    executor: Executor,
    reaction: Time,
    windows: Vec<Window>,
    named_channels: Vec<NamedChannel>,
    groups: Vec<String>,
    /// What is said of a run that was to skip what recurs.
    skipped: Option<Skipped>,
    now: Time,
    earliest_start: Time,
    orders: u32,
    /// Flows that have started and not completed.
    tickets: FxHashMap<FlowKey, Underway>,
    /// Messages of hosts to themselves, which have not started yet.
    to_self: BinaryHeap<Reverse<(Time, Ticket)>>,
    completed: VecDeque<Completion>,
    flows_done: u64,
    /// Empty between calls: what nodes report, and the ends of flows among it.
    reports: Vec<(NodeIndex, FlowEvent)>,
    ends: Vec<(Time, NodeIndex, Milestone, FlowKey)>,
}

/// A flow that has started and not completed.
#[derive(Debug)]
struct Underway {
    ticket: Ticket,
    /// Parts that have not arrived.
    missing: u32,
    /// Whether the sender is to report, and has not yet.
    is_sending: bool,
}

impl Simulation {
    /// Hands the run over to be driven; what the workload wants to send is sent all the same.
    pub fn drive(mut self) -> Driven {
        // The driving program may offer load at any time.
        self.note_load(Time::MAX);
        let Simulation { mut world, measure, named_channels, groups, nodes, fast, .. } = self;
        world.is_driven = true;
        let obstacle = || skip::obstacle(&world).map(str::to_owned);
        let skipped = fast.is_asked_for().then(|| Skipped { obstacle: obstacle(), ..Skipped::default() });
        Driven {
            world: Arc::new(world),
            executor: Executor::new(nodes),
            reaction: Time::ZERO,
            windows: measure.windows,
            named_channels,
            groups,
            skipped,
            now: Time::ZERO,
            earliest_start: Time::ZERO,
            orders: 0,
            tickets: FxHashMap::default(),
            to_self: BinaryHeap::new(),
            completed: VecDeque::new(),
            flows_done: 0,
            reports: Vec::new(),
            ends: Vec::new(),
        }
    }
}

impl Driven {
    /// Promises that no flow starts because of a completion at `t` before `t + reaction`. The run then goes in windows, which is many times as fast, with the same
    /// results; on one thread unless [`Self::set_threads`] is called afterwards.
    ///
    /// # Errors
    /// If the run has begun.
    pub fn set_reaction(&mut self, reaction: Time) -> Result<(), Invalid> {
        self.check_new()?;
        self.reaction = reaction;
        self.executor.set_threads(1);
        Ok(())
    }

    /// Sets the number of threads that run the windows.
    ///
    /// # Errors
    /// If the run has begun, or there is more than one thread and no [reaction time](Self::set_reaction).
    pub fn set_threads(&mut self, threads: usize) -> Result<(), Invalid> {
        self.check_new()?;
        let is_possible = threads == 1 || self.reaction > Time::ZERO;
        Invalid::unless(is_possible, "threads", "1 without a reaction time", threads)?;
        Invalid::at_least("threads", threads, 1)?;
        self.executor.set_threads(threads);
        Ok(())
    }

    /// Refuses to set anything once the run has begun.
    fn check_new(&self) -> Result<(), Invalid> {
        let is_new = self.executor.is_new();
        Invalid::unless(is_new, "reaction", "to be set before flows start or time passes", "it afterwards")
    }

    /// Flows complete twice from now on: when the last byte has [arrived](Milestone::Arrived), and when the sender [knows](Milestone::Acknowledged). To be said before anything starts.
    ///
    /// # Errors
    /// If the run has begun, or the transport has no ACKs.
    pub fn report_acknowledged(&mut self) -> Result<(), Invalid> {
        let is_new = self.executor.is_new();
        let expected = "to be asked for before flows start or time passes";
        Invalid::unless(is_new, "acknowledged", expected, "it afterwards")?;
        let has_acks = self.world.transport.has_acks();
        Invalid::unless(has_acks, "acknowledged", "a transport with ACKs", "one without")?;
        let world = Arc::get_mut(&mut self.world).expect("an executor that is new does not have it");
        world.reports_sent = true;
        Ok(())
    }

    /// Whether flows [complete twice](Self::report_acknowledged).
    pub fn reports_acknowledged(&self) -> bool {
        self.world.reports_sent
    }

    /// The instant that the run has come to: that of the last completion that was asked for, or up to which it was to run. Everything before it has happened; of what happens at it or, with a
    /// [reaction time](Self::set_reaction), up to that much later, some may have.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When a flow may start at the earliest: now or, with a [reaction time](Self::set_reaction), that long after the last completion, but not later than up to when the run was to go to find it.
    pub fn earliest_start(&self) -> Time {
        self.earliest_start.max(self.now)
    }

    /// Number of hosts, or of servers, where these have several NICs.
    pub fn hosts(&self) -> u32 {
        self.world.servers.as_ref().map_or(self.world.hosts, |servers| servers.rails.endpoints())
    }

    /// Starts a flow.
    ///
    /// # Errors
    /// If there is no such host or class, the transport cannot number its packets, it is before [`Self::earliest_start`], or 2³² − 1 flows have been started.
    pub fn start(&mut self, order: Order) -> Result<Ticket, Invalid> {
        self.start_all(&[order]).map_err(|(_, refusal)| refusal)
    }

    /// Starts flows, all or none; their tickets count from the one that is returned.
    ///
    /// # Errors
    /// As [`Self::start`], with the place of the first order that cannot be followed.
    pub fn start_all(&mut self, orders: &[Order]) -> Result<Ticket, (usize, Invalid)> {
        for (place, order) in orders.iter().enumerate() {
            if !self.accepts(order, place) {
                return Err((place, self.refusal(order)));
            }
        }
        let first = Ticket(self.orders);
        let executor = self.executor.begin(&self.world, self.reaction);
        for &Order { src, dst, bytes, at, class } in orders {
            let ticket = Ticket(self.orders);
            self.orders += 1;
            if src == dst {
                self.to_self.push(Reverse((at, ticket)));
                continue;
            }
            let node = self.world.servers.as_ref().map_or(src, |servers| servers.rails.host(src, 0));
            let message = Message::Order { dst, bytes: bytes.max(Bytes(1)), ticket: ticket.0, class };
            executor.timer(node, at, message);
        }
        Ok(first)
    }

    /// Whether a flow can be started after some others.
    fn accepts(&self, &Order { src, dst, bytes, at, class }: &Order, others: usize) -> bool {
        let hosts = self.hosts();
        let has_ends = src < hosts && dst < hosts;
        let has_size = bytes <= self.world.transport.largest_message();
        let is_in_time = at < END_OF_TIME && at >= self.earliest_start();
        let has_class = usize::from(class) < self.world.fabric.classes();
        has_ends && has_size && is_in_time && has_class && others < (u32::MAX - self.orders) as usize
    }

    /// Why a flow cannot be started.
    #[cold]
    fn refusal(&self, &Order { src, dst, bytes, at, class }: &Order) -> Invalid {
        let hosts = self.hosts();
        let host = || format!("a host from 0 to {}", hosts - 1);
        let most = self.world.transport.largest_message();
        let classes = self.world.fabric.classes();
        let (earliest, reaction) = (self.earliest_start(), self.reaction);
        if src >= hosts {
            Invalid::new("src", host(), src)
        } else if dst >= hosts {
            Invalid::new("dst", host(), dst)
        } else if bytes > most {
            let expected = format!("at most {most}, whose packets the transport can number");
            Invalid::new("size", expected, bytes)
        } else if usize::from(class) >= classes {
            Invalid::new("traffic_class", format!("a class from 0 to {}", classes - 1), class)
        } else if at >= END_OF_TIME {
            Invalid::new("at", format!("a time before {END_OF_TIME}"), at)
        } else if at < earliest && earliest == self.now + reaction && earliest > self.now {
            let expected =
                format!("{earliest} or later, {reaction} after the last completion at {}", self.now);
            Invalid::new("at", expected, at)
        } else if at < earliest {
            Invalid::new("at", format!("{earliest} or later"), at)
        } else {
            Invalid::new("flows", format!("at most {} of a run", u32::MAX), "more")
        }
    }

    /// Lets everything happen that happens before `until`; stops early if `go_on` says so, which is asked now and then. Returns
    /// whether the run has come to `until`.
    pub fn run_until(&mut self, until: Time, mut go_on: impl FnMut(RunProgress) -> bool) -> bool {
        self.run_to(until, &mut go_on)
    }

    /// The same, compiled with this crate's optimisations and not with its caller's.
    fn run_to(&mut self, until: Time, go_on: &mut dyn FnMut(RunProgress) -> bool) -> bool {
        loop {
            match self.go_on(until, go_on) {
                Stop::Events => {}
                Stop::Asked => return false,
                Stop::Until => break,
            }
        }
        // What lasts until nothing is left to happen ends with the last event.
        let last = self.completed.back().map_or(Time::ZERO, |last| last.at);
        let until = if until < END_OF_TIME { until } else { self.executor.reached().max(last) };
        self.now = self.now.max(until);
        true
    }

    /// Whether flows have completed that were not asked for yet.
    pub fn has_completion(&self) -> bool {
        !self.completed.is_empty()
    }

    /// The next completion, in order of time, that was not asked for yet: lets the run go on to it if need be, but not beyond
    /// `until`. `None` if there is none before `until`, or if `go_on` said no.
    pub fn next_completion(
        &mut self,
        until: Time,
        mut go_on: impl FnMut(RunProgress) -> bool,
    ) -> Option<Completion> {
        self.run_to_completion(until, &mut go_on)
    }

    /// The same, compiled with this crate's optimisations and not with its caller's.
    fn run_to_completion(
        &mut self,
        until: Time,
        go_on: &mut dyn FnMut(RunProgress) -> bool,
    ) -> Option<Completion> {
        while self.completed.is_empty() {
            match self.go_on(until, go_on) {
                Stop::Events => {}
                Stop::Asked => return None,
                Stop::Until => {
                    self.run_to(until, &mut |_| true);
                    return None;
                }
            }
        }
        // A window may end after `until`, with completions that are kept for a later call.
        if self.completed.front().is_some_and(|next| next.at >= until) {
            self.now = self.now.max(until);
            return None;
        }
        let completion = self.completed.pop_front()?;
        self.now = self.now.max(completion.at);
        let answer = Time(completion.at.0.saturating_add(self.reaction.0));
        // The run has not gone beyond either.
        self.earliest_start = self.earliest_start.max(answer.min(until));
        Some(completion)
    }

    /// As [`Self::run`], with what hosts send to themselves.
    fn go_on(&mut self, until: Time, go_on: &mut dyn FnMut(RunProgress) -> bool) -> Stop {
        let own = self.to_self.peek().map_or(Time::MAX, |&Reverse((at, _))| at);
        let stop = self.run(until.min(own), go_on);
        if stop != Stop::Until || own >= until {
            return stop;
        }
        if let Some(Reverse((at, ticket))) = self.to_self.pop() {
            self.flows_done += 1;
            self.completed.push_back(Completion { ticket, milestone: Milestone::Arrived, at });
            if self.world.reports_sent {
                self.completed.push_back(Completion { ticket, milestone: Milestone::Acknowledged, at });
            }
        }
        Stop::Events
    }

    /// Lets the run go on until flows may have completed, but not beyond `until` and not beyond an instant at which such a completion may be answered.
    fn run(&mut self, until: Time, go_on: &mut dyn FnMut(RunProgress) -> bool) -> Stop {
        let flows_done = self.flows_done;
        let mut go_on = |time, packet_hops| go_on(RunProgress { time, flows_done, packet_hops });
        let executor = self.executor.begin(&self.world, self.reaction);
        let stop = executor.run(&self.world, until, &mut go_on, &mut self.reports);
        if stop == Stop::Asked {
            self.now = self.now.max(executor.reached());
        }
        let ends = &mut self.ends;
        for (node, event) in self.reports.drain(..) {
            match event {
                FlowEvent::Started { ticket, flow, parts } => {
                    let key = FlowKey { src: self.world.server(node).0, flow };
                    let is_sending = self.world.reports_sent;
                    self.tickets.insert(key, Underway { ticket: Ticket(ticket), missing: parts, is_sending });
                }
                FlowEvent::Received { flow, at } => {
                    let key = FlowKey { src: self.world.server(flow.src).0, ..flow };
                    ends.push((at, node, Milestone::Arrived, key));
                }
                FlowEvent::Sent { flow, at } => {
                    let key = FlowKey { src: self.world.server(node).0, flow };
                    ends.push((at, node, Milestone::Acknowledged, key));
                }
            }
        }
        // As an executor with one list of events has it; those of one node are in order.
        ends.sort_by_key(|&(at, node, ..)| (at, node));
        for (at, _, milestone, key) in ends.drain(..) {
            // Flows of the workload have no ticket.
            let Entry::Occupied(mut entry) = self.tickets.entry(key) else { continue };
            let flow = entry.get_mut();
            match milestone {
                Milestone::Arrived => flow.missing -= 1,
                Milestone::Acknowledged => flow.is_sending = false,
            }
            let has_arrived = flow.missing == 0;
            if milestone == Milestone::Acknowledged || has_arrived {
                self.flows_done += u64::from(milestone == Milestone::Arrived);
                self.completed.push_back(Completion { ticket: flow.ticket, milestone, at });
            }
            if has_arrived && !flow.is_sending {
                entry.remove();
            }
        }
        stop
    }

    /// Ends the run here and makes the records. With a [reaction time](Self::set_reaction) that is where the run has come to, at or after [`Self::now`]; after
    /// [`Self::run_until`] it is that instant.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn finish(mut self) -> Result<Finished, RunError> {
        self.executor.begin(&self.world, self.reaction);
        let Driven { world, executor, windows, named_channels, groups, skipped, now, .. } = self;
        let records = collect_all(&world, executor.finish(now, groups))?;
        let records = Records { windows, named_channels, ..records };
        Ok(Finished {
            records,
            interrupted: false,
            skipped,
            steady: None,
            background_flows: None,
            division: None,
        })
    }
}
