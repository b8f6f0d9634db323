//! Runs that are driven from outside: flows start, and their completions are reported, in the middle of the run.
//!
//! A program that simulates what hosts compute (a training step, a control loop) decides what is sent when by what arrived when.
//! It starts flows at the instant that the run has come to, or later, and lets the run go on until something completes. What comes out
//! is what the same flows from a list would have given, byte by byte.
//!
//! The run goes event by event, in order of time, because only then may an answer leave at the very instant of what it answers; the
//! windowed engine has other nodes well past that instant by then. A packet-hop costs several times as much as there.

use std::collections::VecDeque;

use netloom_engine::END_OF_TIME;
use netloom_engine::reference::Stepper;
use netloom_record::{NamedChannel, Records, Window};
use netloom_routing::FlowKey;
use netloom_topology::HostId;
use netloom_units::{Bytes, Invalid, Time};
use rustc_hash::FxHashMap;

use crate::host::event::FlowEvent;
use crate::message::Message;
use crate::node::Node;
use crate::run::collect::collect_all;
use crate::run::error::RunError;
use crate::run::final_state::FinalState;
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
    /// When the message is handed to the sender's transport: now or later.
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
    world: World,
    steps: Stepper<World>,
    windows: Vec<Window>,
    named_channels: Vec<NamedChannel>,
    groups: Vec<String>,
    now: Time,
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
        let steps = Stepper::new(&world, nodes);
        Driven {
            world,
            steps,
            windows: measure.windows,
            named_channels,
            groups,
            now: Time::ZERO,
            orders: 0,
            tickets: FxHashMap::default(),
            completed: VecDeque::new(),
            flows_done: 0,
        }
    }
}

impl Driven {
    /// The instant that the run has come to. Everything before it has happened; of what happens at it, some may be left.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Number of hosts, or of servers, where these have several NICs.
    pub fn hosts(&self) -> u32 {
        self.world.servers.as_ref().map_or(self.world.network.hosts(), |servers| servers.rails.servers())
    }

    /// Where the run stands; of the flows only those are counted that were started from outside.
    pub fn progress(&self) -> RunProgress {
        RunProgress { time: self.now, flows_done: self.flows_done, packet_hops: self.steps.messages() }
    }

    /// Starts a flow.
    ///
    /// # Errors
    /// If there is no such host or class, a host would send to itself or nothing, or more than the transport can number packet by packet, the time has
    /// passed, or 2³² − 1 flows have been started.
    pub fn start(&mut self, order: Order) -> Result<Ticket, Invalid> {
        let Order { src, dst, bytes, at, class } = order;
        let (hosts, classes) = (self.hosts(), self.world.fabric.classes());
        for (field, host) in [("src", src), ("dst", dst)] {
            Invalid::unless(host < hosts, field, format!("a host from 0 to {}", hosts - 1), host)?;
        }
        Invalid::unless(src != dst, "dst", "another host than src", dst)?;
        Invalid::unless(bytes > Bytes(0), "size", "at least 1 byte", "0")?;
        let most = self.world.transport.largest_message();
        let expected = format!("at most {most}, whose packets the transport can number");
        Invalid::unless(bytes <= most, "size", expected, bytes)?;
        let is_class = usize::from(class) < classes;
        Invalid::unless(is_class, "traffic_class", format!("a class from 0 to {}", classes - 1), class)?;
        Invalid::unless(at < END_OF_TIME, "at", format!("a time before {END_OF_TIME}"), at)?;
        Invalid::unless(at >= self.now, "at", format!("{} or later", self.now), at)?;
        Invalid::unless(self.orders < u32::MAX, "flows", format!("at most {} of a run", u32::MAX), "more")?;
        let ticket = Ticket(self.orders);
        self.orders += 1;
        let node = self.world.servers.as_ref().map_or(src, |servers| servers.rails.nic(src, 0));
        self.steps.timer(node, at, Message::Order { dst, bytes, ticket: ticket.0, class });
        Ok(ticket)
    }

    /// Lets everything happen that happens before `until`; stops early if `go_on` says so, which is asked now and then. Returns
    /// whether the run has come to `until`.
    pub fn run_until(&mut self, until: Time, mut go_on: impl FnMut(RunProgress) -> bool) -> bool {
        let mut count = 0u32;
        while let Some(next) = self.next_before(until) {
            self.step(next);
            count += 1;
            if count.is_multiple_of(LOOK_EVERY) && !go_on(self.progress()) {
                return false;
            }
        }
        // What lasts until nothing is left to happen ends with the last event.
        if until < END_OF_TIME {
            self.now = self.now.max(until);
        }
        true
    }

    /// The next completion, in order of time, that nobody has asked for yet: lets the run go on to it if need be, but not beyond
    /// `until`. `None` if there is none before `until`, or if `go_on` said no.
    pub fn next_completion(
        &mut self,
        until: Time,
        mut go_on: impl FnMut(RunProgress) -> bool,
    ) -> Option<Completion> {
        let mut count = 0u32;
        while self.completed.is_empty() {
            match self.next_before(until) {
                Some(next) => self.step(next),
                None => {
                    self.run_until(until, |_| true);
                    return None;
                }
            }
            count += 1;
            if count.is_multiple_of(LOOK_EVERY) && !go_on(self.progress()) {
                return None;
            }
        }
        self.completed.pop_front()
    }

    /// The next event, if it happens before `until` and time has not ended.
    fn next_before(&self, until: Time) -> Option<Time> {
        self.steps.next_at().filter(|&next| next < until.min(END_OF_TIME))
    }

    fn step(&mut self, at: Time) {
        self.now = at;
        let Some(id) = self.steps.step(&self.world) else { return };
        let events = match self.steps.node_mut(id) {
            Node::Host(host) => host.events(),
            Node::Server(server) => server.events(),
            Node::Switch(_) | Node::Untouched | Node::InServer => return,
        };
        for events in events {
            match events {
                FlowEvent::Started { ticket, flow, parts } => {
                    let src = self.world.server(id).0;
                    self.tickets.insert(FlowKey { src, flow }, (Ticket(ticket), parts));
                }
                FlowEvent::Received(key) => {
                    let key = FlowKey { src: self.world.server(key.src).0, ..key };
                    let Some((ticket, missing)) = self.tickets.get_mut(&key) else { continue };
                    *missing -= 1;
                    if *missing == 0 {
                        let ticket = *ticket;
                        self.tickets.remove(&key);
                        self.flows_done += 1;
                        self.completed.push_back(Completion { ticket, at });
                    }
                }
                FlowEvent::Sent { .. } => unreachable!("the server learns of it"),
            }
        }
    }

    /// Ends the run here and makes the records.
    ///
    /// # Errors
    /// As [`Simulation::run`].
    pub fn finish(self) -> Result<Finished, RunError> {
        let Driven { world, steps, windows, named_channels, groups, now, .. } = self;
        let is_out_of_time = steps.next_at().is_some_and(|next| next >= END_OF_TIME);
        let until = if steps.next_at().is_none() { Time::MAX } else { now };
        let (nodes, pending) = steps.finish();
        let final_state = FinalState { nodes, pending, groups, until, stopped_at: None, is_out_of_time };
        let records = collect_all(&world, final_state)?;
        let records = Records { windows, named_channels, ..records };
        Ok(Finished { records, interrupted: false })
    }
}

/// Events between two questions whether to go on.
const LOOK_EVERY: u32 = 4096;
