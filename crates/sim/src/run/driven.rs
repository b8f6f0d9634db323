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

use std::collections::VecDeque;
use std::sync::Arc;

use netloom_engine::END_OF_TIME;
use netloom_record::{NamedChannel, Records, Window};
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
use crate::world::World;

/// A flow that was started from outside, in order of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Ticket(pub u32);

/// A flow to start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Order {
    /// Sending host.
    pub src: HostId,
    /// Receiving host.
    pub dst: HostId,
    /// Payload, at least one byte.
    pub bytes: Bytes,
    /// When the message is handed to the sender's transport: at [`Driven::earliest_start`] or later.
    pub at: Time,
    /// Traffic class.
    pub class: u8,
}

/// The last byte of a flow has arrived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// Which flow.
    pub ticket: Ticket,
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
    now: Time,
    earliest_start: Time,
    orders: u32,
    /// Flows that have started and not completed, with the number of their parts that are missing.
    tickets: FxHashMap<FlowKey, (Ticket, u32)>,
    completed: VecDeque<Completion>,
    flows_done: u64,
}

impl Simulation {
    /// Hands the run over to be driven; what the workload wants to send is sent all the same.
    pub fn drive(mut self) -> Driven {
        // The driving program may offer load at any time.
        self.note_load(Time::MAX);
        let Simulation { mut world, measure, named_channels, groups, nodes, .. } = self;
        world.is_driven = true;
        Driven {
            world: Arc::new(world),
            executor: Executor::new(nodes),
            reaction: Time::ZERO,
            windows: measure.windows,
            named_channels,
            groups,
            now: Time::ZERO,
            earliest_start: Time::ZERO,
            orders: 0,
            tickets: FxHashMap::default(),
            completed: VecDeque::new(),
            flows_done: 0,
        }
    }
}

impl Driven {
    /// No flow starts because of a completion at `t` before `t + reaction`: the run goes in windows then, on so many threads, which is several times as fast. Results are
    /// the same. To be said before anything else is.
    ///
    /// # Errors
    /// If the run has begun, or several threads are to run one event after the other.
    pub fn set_reaction(&mut self, reaction: Time, threads: usize) -> Result<(), Invalid> {
        let is_new = self.executor.is_new();
        Invalid::unless(is_new, "reaction", "to be set before flows start or time passes", "it afterwards")?;
        let is_possible = threads == 1 || reaction > Time::ZERO;
        Invalid::unless(is_possible, "threads", "1 without a reaction time", threads)?;
        Invalid::at_least("threads", threads, 1)?;
        self.reaction = reaction;
        self.executor.go_in_windows(threads);
        Ok(())
    }

    /// The instant that the run has come to: that of the last completion that was asked for, or up to which it was to run. Everything before it has happened; of what happens at it or, with a
    /// [reaction time](Self::set_reaction), up to that much later, some may have.
    pub fn now(&self) -> Time {
        self.now
    }

    /// When a flow may start at the earliest: now or, with a [reaction time](Self::set_reaction), that long after the last completion.
    pub fn earliest_start(&self) -> Time {
        self.earliest_start.max(self.now)
    }

    /// Number of hosts, or of servers, where these have several NICs.
    pub fn hosts(&self) -> u32 {
        self.world.servers.as_ref().map_or(self.world.network.hosts(), |servers| servers.rails.servers())
    }

    /// Starts a flow.
    ///
    /// # Errors
    /// If there is no such host or class, a host would send to itself or nothing, or more than the transport can number packet by packet, it is
    /// before [`Self::earliest_start`], or 2³² − 1 flows have been started.
    pub fn start(&mut self, order: Order) -> Result<Ticket, Invalid> {
        let Order { src, dst, bytes, at, class } = order;
        if !self.accepts(&order) {
            return Err(self.refusal(&order));
        }
        let ticket = Ticket(self.orders);
        self.orders += 1;
        let node = self.world.servers.as_ref().map_or(src, |servers| servers.rails.nic(src, 0));
        let message = Message::Order { dst, bytes, ticket: ticket.0, class };
        self.executor.begin(&self.world, self.reaction).timer(node, at, message);
        Ok(ticket)
    }

    /// Whether a flow can be started.
    fn accepts(&self, &Order { src, dst, bytes, at, class }: &Order) -> bool {
        let hosts = self.hosts();
        let has_ends = src < hosts && dst < hosts && src != dst;
        let has_size = bytes > Bytes(0) && bytes <= self.world.transport.largest_message();
        let is_in_time = at < END_OF_TIME && at >= self.earliest_start();
        let has_class = usize::from(class) < self.world.fabric.classes();
        has_ends && has_size && is_in_time && has_class && self.orders < u32::MAX
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
        } else if src == dst {
            Invalid::new("dst", "another host than src", dst)
        } else if bytes == Bytes(0) {
            Invalid::new("size", "at least 1 byte", "0")
        } else if bytes > most {
            let expected = format!("at most {most}, whose packets the transport can number");
            Invalid::new("size", expected, bytes)
        } else if usize::from(class) >= classes {
            Invalid::new("traffic_class", format!("a class from 0 to {}", classes - 1), class)
        } else if at >= END_OF_TIME {
            Invalid::new("at", format!("a time before {END_OF_TIME}"), at)
        } else if at < earliest && earliest > self.now {
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
        loop {
            match self.run(until, &mut go_on) {
                Stop::Events => {}
                Stop::Asked => return false,
                Stop::Until => break,
            }
        }
        // What lasts until nothing is left to happen ends with the last event.
        let until = if until < END_OF_TIME { until } else { self.executor.reached() };
        self.now = self.now.max(until);
        true
    }

    /// The next completion, in order of time, that was not asked for yet: lets the run go on to it if need be, but not beyond
    /// `until`. `None` if there is none before `until`, or if `go_on` said no.
    pub fn next_completion(
        &mut self,
        until: Time,
        mut go_on: impl FnMut(RunProgress) -> bool,
    ) -> Option<Completion> {
        while self.completed.is_empty() {
            match self.run(until, &mut go_on) {
                Stop::Events => {}
                Stop::Asked => return None,
                Stop::Until => {
                    self.run_until(until, |_| true);
                    return None;
                }
            }
        }
        let completion = self.completed.pop_front()?;
        self.now = self.now.max(completion.at);
        self.earliest_start = self.earliest_start.max(completion.at + self.reaction);
        Some(completion)
    }

    /// Lets the run go on until flows may have completed, but not beyond `until` and not beyond an instant at which such a completion may be answered.
    fn run(&mut self, until: Time, go_on: &mut dyn FnMut(RunProgress) -> bool) -> Stop {
        let mut events = Vec::new();
        let flows_done = self.flows_done;
        let mut go_on = |time, packet_hops| go_on(RunProgress { time, flows_done, packet_hops });
        let executor = self.executor.begin(&self.world, self.reaction);
        let stop = executor.run(&self.world, until, &mut go_on, |node, of_node| {
            events.extend(of_node.into_iter().map(|event| (node, event)));
        });
        if stop == Stop::Asked {
            self.now = self.now.max(executor.reached());
        }
        let mut received = Vec::new();
        for (node, event) in events {
            match event {
                FlowEvent::Started { ticket, flow, parts } => {
                    let src = self.world.server(node).0;
                    self.tickets.insert(FlowKey { src, flow }, (Ticket(ticket), parts));
                }
                FlowEvent::Received { flow, at } => received.push((at, node, flow)),
                FlowEvent::Sent { .. } => unreachable!("the server learns of it"),
            }
        }
        // As an executor with one list of events has it; those of one node are in order.
        received.sort_by_key(|&(at, node, _)| (at, node));
        for (at, _, flow) in received {
            let key = FlowKey { src: self.world.server(flow.src).0, ..flow };
            let Some((ticket, missing)) = self.tickets.get_mut(&key) else { continue };
            *missing -= 1;
            if *missing == 0 {
                let ticket = *ticket;
                self.tickets.remove(&key);
                self.flows_done += 1;
                self.completed.push_back(Completion { ticket, at });
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
        let Driven { world, executor, windows, named_channels, groups, now, .. } = self;
        let records = collect_all(&world, executor.finish(now, groups))?;
        let records = Records { windows, named_channels, ..records };
        Ok(Finished { records, interrupted: false })
    }
}
