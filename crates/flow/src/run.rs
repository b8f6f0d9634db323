//! When flows begin and end.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::ControlFlow;
use std::rc::Rc;

use netloom_record::{FlowRecord, Gathered, Sink};
use netloom_routing::{Spread, Tag};
use netloom_sim::{Finished, Measure, RunError, RunProgress, SimConfig, SimError, Stage};
use netloom_topology::{ChannelId, HostId, Network};
use netloom_units::kind::Kind;
use netloom_units::{Bytes, Invalid, Rate, Time, narrow};
use netloom_workload::{Action, HostWork, Message, Plan, find_stall};

use crate::alike;
use crate::background::Outside;
use crate::endpoints::{Endpoints, Ends};
use crate::max_min::MaxMin;
use crate::outcome::{self, Carried, Outcome};
use crate::paths::{Course, Paths};

/// A scenario ready to be run flow by flow.
#[derive(Debug)]
pub struct FlowRun {
    pub(crate) stage: Stage,
    pub(crate) spread: Spread,
    pub(crate) works: Vec<HostWork>,
}

/// What of a scenario is run flow by flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// All of it.
    All,
    /// What is beside a region in packets, of which everything can be measured that is measured of packets.
    Beside,
}

impl Level {
    /// An expectation with where it holds.
    fn expects(self, what: &str) -> String {
        let place = match self {
            Level::All => "at the level of flows (detail = \"flow\")",
            Level::Beside => "where all but a region is at the level of flows",
        };
        format!("{what} {place}")
    }
}

impl FlowRun {
    /// Lays routes and faults on a network.
    ///
    /// # Errors
    /// If packets could not be run either ([`netloom_sim::Simulation::new`]), or if something is asked for that only packets have.
    pub fn new(network: Network, config: SimConfig, plan: Plan) -> Result<Self, SimError> {
        Self::of(network, config, plan, Level::All)
    }

    pub(crate) fn of(
        network: Network,
        config: SimConfig,
        mut plan: Plan,
        level: Level,
    ) -> Result<Self, SimError> {
        let spread = check(&network, &config, &plan, level)?;
        let stage = Stage::new(network, config, &mut plan)?;
        if spread == Spread::Levelled {
            check_levels(&stage, level)?;
        }
        Ok(FlowRun { stage, spread, works: plan.hosts })
    }

    /// Refuses what [`Self::new`] refuses, with less work where routes are not needed.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn check(network: Network, config: SimConfig, plan: Plan) -> Result<(), SimError> {
        Self::check_at(network, config, plan, Level::All)
    }

    pub(crate) fn check_at(
        network: Network,
        config: SimConfig,
        plan: Plan,
        level: Level,
    ) -> Result<(), SimError> {
        match check(&network, &config, &plan, level)? {
            Spread::Levelled => Self::of(network, config, plan, level).map(drop),
            Spread::OnePath | Spread::Evenly | Spread::MinimalFirst => Stage::check(network, config, plan),
        }
    }

    /// The network, its routes, and what is measured.
    pub fn stage(&self) -> &Stage {
        &self.stage
    }

    /// Runs on one thread; `observe` is called from time to time and may stop the run. The records of flows and channels go to `sink`.
    ///
    /// # Errors
    /// If the run stands still before its work is done, or the records cannot be kept.
    pub fn run(
        self,
        observe: &mut dyn FnMut(RunProgress) -> ControlFlow<()>,
        sink: &mut dyn Sink,
    ) -> Result<Finished, RunError> {
        let FlowRun { stage, spread, works } = self;
        let mut run = Run::new(&stage, spread, works, None);
        run.begin();
        let stopped_at = run.go(observe)?;
        outcome::hand_on(&stage, run.end(stopped_at)?, sink)
    }
}

/// Refuses what exists only where there are packets. Returns how flows divide among their paths.
pub(crate) fn check(
    network: &Network,
    config: &SimConfig,
    plan: &Plan,
    level: Level,
) -> Result<Spread, SimError> {
    if level == Level::All {
        check_measure(&config.measure)?;
    }
    let lossy = config.faults.iter().position(|fault| matches!(fault, netloom_sim::Fault::Loss(_)));
    if let Some(index) = lossy {
        let expected = level.expects("\"cut\" or \"degrade\"") + ", where no packet can get lost";
        return Err(SimError::Fault(Invalid::new(format!("{index}.kind"), expected, "\"loss\"")));
    }
    if !network.error_rates().is_empty() {
        let expected = level.expects("links without error rates") + ", where no packet can get lost";
        return Err(SimError::TooLarge(format!("expected {expected}, found some")));
    }
    if plan.rails.as_ref().is_some_and(|rails| rails.bond().is_some()) {
        let expected = level.expects("none") + ", where no packet chooses a port";
        return Err(SimError::Servers(Invalid::new("bond", expected, "one")));
    }
    if plan.units.is_some() {
        let expected = level.expects("another algorithm") + ", where switches do not reduce";
        return Err(SimError::Workload(Invalid::new("kind", expected, "\"sharp-like\"")));
    }
    if plan.has_streams() {
        let expected = level.expects("another kind") + ", which are messages with an end";
        return Err(SimError::Workload(Invalid::new("kind", expected, "streams of frames")));
    }
    let subflows = config.transport.options.subflows;
    let expected = level.expects("1") + ", where a flow divides as its routing scheme says";
    Invalid::unless(subflows == 1, "subflows", expected, subflows).map_err(SimError::Transport)?;
    config.routing.spread().ok_or_else(|| {
        let name = config.routing.selector.name();
        let expected = level.expects("one that keeps a flow on one path or divides it among its paths packet by packet (\"hash\" per flow, \"random\" or \"least-loaded\" per packet, say)") + ", which has no gaps and no queues by which others choose";
        SimError::Routing(Invalid::new("selector", expected, format!("\"{name}\" per {}", config.routing.granularity_name())))
    })
}

/// Refuses what is measured of packets only.
fn check_measure(measure: &Measure) -> Result<(), SimError> {
    let Measure { sample, sample_flows, sample_senders, packets, trace, gaps, switch_gaps, windows, .. } =
        measure;
    let asked = [
        ("sample", sample.is_some()),
        ("sample_flows", sample_flows.is_some()),
        ("sample_senders", sample_senders.is_some()),
        ("packets", *packets),
        ("trace", trace.is_some()),
        ("gaps", *gaps),
        ("switch_gaps", *switch_gaps),
        ("windows", !windows.is_empty()),
    ];
    for (field, is_asked) in asked {
        Invalid::unless(!is_asked, field, Level::All.expects("none"), "one").map_err(SimError::Measure)?;
    }
    Ok(())
}

/// Refuses schemes that level congestion where even shares of links do not do so as well.
fn check_levels(stage: &Stage, level: Level) -> Result<(), SimError> {
    let (network, routing, routes) = (stage.network(), stage.routing(), stage.routes(Time::ZERO));
    // What avoids congestion is what a sender learns from ACKs, whatever draws the path, or the choice of a switch.
    let (field, others, name) = match routing.uses_acks() {
        true => ("granularity", "\"packet\"", format!("\"{}\"", routing.granularity_name())),
        false => (
            "selector",
            "\"hash\", \"random\" or \"round-robin\"",
            format!("\"{}\" per {}", routing.selector_name(), routing.granularity_name()),
        ),
    };
    let refuse = |found: String| {
        let expected = format!(
            "one that does not go by the state of the network ({others}, say) or a network in which even shares of links level congestion (a tree of alike links without faults),"
        );
        Err(SimError::Routing(Invalid::new(field, level.expects(&expected), found)))
    };
    if routing.ecmp_every.is_some() {
        return refuse(format!("{name} beside hosts with ECMP"));
    }
    if !stage.rates().is_empty() || stage.next_routes(Time::ZERO).is_some() {
        return refuse(format!("{name} with faults that change links or routes"));
    }
    let is_level = routes.is_minimal() && alike::is_levelled_by_even_shares(network, routes.table());
    if is_level { Ok(()) } else { refuse(format!("{name} on {}", network.name())) }
}

/// What happens, in order of (time, order of planning).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// The next message of an endpoint starts, or its program.
    Start(u32),
    /// The first packet of a flow may leave, as the handshake or the answer to its request is there.
    Begin(u32),
    /// The last bit of a flow leaves its sender, unless its rate has changed since this was planned.
    Drained(u32),
    /// The last bit of a flow has arrived.
    Received(u32),
    /// Its sender knows.
    Sent(u32),
    /// A program wants to be called about an operation.
    Wake(u32, u32),
    /// Links have other rates, or routes lead elsewhere.
    Change,
    /// The warm-up ends.
    WarmUp,
    /// The load ends.
    LoadEnds,
}

/// A flow.
#[derive(Debug)]
struct Active {
    record: FlowRecord,
    tag: Tag,
    /// Bits on the wire in all, and those left at `since`.
    bits: f64,
    left: f64,
    since: Time,
    /// Bit/s.
    rate: f64,
    /// The number of the event that ends it at this rate; none where it does not go on.
    drains: Option<u64>,
    /// Its number among the solver's flows; none before it begins, while it has no path and when all has left.
    solved: Option<u32>,
    /// From when the last bit leaves to its arrival.
    tail: Time,
    /// From sending an ACK to its arrival; none where nothing is acknowledged.
    answer: Option<Time>,
    has_begun: bool,
    has_left: bool,
    /// Outside of a region whose packets get what it leaves: what is counted of it on each of its links, in bit/s.
    outside: Option<Vec<f64>>,
}

impl Active {
    /// Payload that has left at an instant at which its rate is as it is.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "at most the payload, and not below 0"
    )]
    fn left_by(&self, now: Time) -> u64 {
        if self.has_left {
            return self.record.bytes;
        }
        let left = (self.left - self.rate * (now.saturating_sub(self.since)).as_secs_f64()).max(0.0);
        (self.record.bytes as f64 * (1.0 - left / self.bits)) as u64
    }
}

/// Up to this number, ends that were planned at other rates are left among the events.
const FEW_STALE: usize = 1 << 10;

/// Whether the event of this number is the end of a flow at the rate that it has.
fn is_end(flows: &[Option<Active>], flow: u32, number: u64) -> bool {
    flows[flow as usize].as_ref().is_some_and(|flow| flow.drains == Some(number))
}

pub(crate) struct Run<'a> {
    stage: &'a Stage,
    /// Per endpoint, as the other lists that follow.
    works: Vec<HostWork>,
    upcoming: Vec<Option<Message>>,
    has_begun: Vec<bool>,
    next_number: Vec<u32>,
    endpoints: Endpoints,
    events: BinaryHeap<Reverse<(Time, u64, Event)>>,
    planned: u64,
    /// Ends among these that were planned at another rate than the flow has now.
    stale: usize,
    paths: Paths<'a>,
    solver: MaxMin,
    /// By number among the solver's flows, that among `flows`.
    owners: Vec<u32>,
    carried: Carried,
    flows: Vec<Option<Active>>,
    free: Vec<u32>,
    /// Flows that are to begin or to find another path at this instant.
    fresh: Vec<u32>,
    /// Per channel with other rates at times: these.
    rates: Vec<(ChannelId, Vec<(Time, Rate)>)>,
    records: Gathered<FlowRecord>,
    done: u64,
    now: Time,
    /// When something last happened to a flow or in a program.
    active_until: Time,
    calculated: Option<Time>,
    /// What is outside of a region, where there is one: only of that records are kept.
    outside: Option<Outside>,
}

/// How long a number of bits takes at a rate, in whole picoseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not below 0; saturates")]
pub(crate) fn takes(bits: f64, rate: f64) -> Time {
    let took = (bits * 1e12 / rate).round();
    if took < Time::END.0 as f64 { Time(took as u64) } else { Time::END }
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        stage: &'a Stage,
        spread: Spread,
        works: Vec<HostWork>,
        outside: Option<Outside>,
    ) -> Self {
        let count = works.len();
        let mut run = Run {
            stage,
            works,
            upcoming: vec![None; count],
            has_begun: vec![false; count],
            next_number: vec![stage.first_number(); count],
            endpoints: Endpoints::new(stage.rails(), stage.transport().options.mtu),
            events: BinaryHeap::new(),
            planned: 0,
            stale: 0,
            paths: Paths::new(stage, spread),
            solver: MaxMin::default(),
            owners: Vec::new(),
            carried: Carried::new(stage.network().channels()),
            flows: Vec::new(),
            free: Vec::new(),
            fresh: Vec::new(),
            rates: stage.rates(),
            records: Gathered::default(),
            done: 0,
            now: Time::ZERO,
            active_until: Time::ZERO,
            calculated: None,
            outside,
        };
        run.lay();
        run
    }

    fn plan(&mut self, at: Time, event: Event) {
        self.planned += 1;
        self.events.push(Reverse((at, self.planned, event)));
    }

    pub(crate) fn begin(&mut self) {
        for endpoint in 0..narrow::<u32>(self.works.len()) {
            let work = &mut self.works[endpoint as usize];
            let upcoming = work.next_timed();
            self.upcoming[endpoint as usize] = upcoming;
            if work.is_program() {
                self.plan(Time::ZERO, Event::Start(endpoint));
            }
            if let Some(message) = upcoming {
                self.plan(message.start, Event::Start(endpoint));
            }
        }
        let rates = self.rates.iter().flat_map(|(_, changes)| changes.iter().map(|&(at, _)| at));
        let mut changes: Vec<Time> = rates.collect();
        let mut routes = self.stage.next_routes(Time::ZERO);
        while let Some(at) = routes {
            changes.push(at);
            routes = self.stage.next_routes(at);
        }
        changes.sort_unstable();
        changes.dedup();
        changes.into_iter().filter(|&at| at > Time::ZERO).for_each(|at| self.plan(at, Event::Change));
        let warm_up = self.stage.measure().warm_up;
        if warm_up > Time::ZERO {
            self.plan(warm_up, Event::WarmUp);
        }
        if let Some(until) = self.stage.load_until() {
            self.plan(until, Event::LoadEnds);
        }
    }

    /// Whether nothing but changes of the network or marks of the clock is left to happen.
    fn is_over(&self) -> bool {
        self.flows.len() == self.free.len()
            && !self
                .events
                .iter()
                .any(|Reverse((.., event))| matches!(event, Event::Start(_) | Event::Wake(..)))
    }

    /// Runs to the end; returns when it was stopped, if it was.
    pub(crate) fn go(
        &mut self,
        observe: &mut dyn FnMut(RunProgress) -> ControlFlow<()>,
    ) -> Result<Option<Time>, RunError> {
        let until = self.stage.measure().until.unwrap_or(Time::MAX);
        let mut instants = 0u64;
        while let Some(&Reverse((now, ..))) = self.events.peek() {
            if now >= until {
                break;
            }
            if now >= Time::END {
                return Err(RunError::OutOfTime);
            }
            while let Some(&Reverse((at, number, event))) = self.events.peek()
                && at == now
            {
                // The last event of a run is what happens to a flow or in a program.
                let is_mark = matches!(event, Event::Change | Event::WarmUp | Event::LoadEnds);
                if is_mark && self.is_over() {
                    return Ok(None);
                }
                self.events.pop();
                if let Event::Drained(flow) = event
                    && !is_end(&self.flows, flow, number)
                {
                    self.stale -= 1;
                    continue;
                }
                self.now = now;
                self.active_until = if is_mark { self.active_until } else { now };
                self.happen(event);
            }
            self.solve();
            instants += 1;
            if instants.is_multiple_of(64) {
                let progress = RunProgress { time: now, flows_done: self.done, packet_hops: 0 };
                if observe(progress).is_break() {
                    return Ok(Some(now));
                }
            }
        }
        Ok(None)
    }

    fn happen(&mut self, event: Event) {
        match event {
            Event::Start(endpoint) => self.start(endpoint),
            Event::Begin(id) => {
                if let Some(flow) = &mut self.flows[id as usize] {
                    (flow.has_begun, flow.since) = (true, self.now);
                    self.fresh.push(id);
                }
            }
            Event::Drained(id) => {
                let Some(flow) = &mut self.flows[id as usize] else { return };
                (flow.left, flow.since, flow.has_left, flow.drains) = (0.0, self.now, true, None);
                let (tail, answer) = (flow.tail, flow.answer);
                if let Some(solved) = flow.solved.take() {
                    if let (Some(outside), Some(counted)) = (&mut self.outside, &mut flow.outside) {
                        outside.remove(&self.solver, solved, counted, self.now);
                    }
                    self.carried.add_flow(&self.solver, solved, self.now);
                    self.solver.remove(solved);
                }
                let arrives = self.now + tail;
                self.plan(arrives, Event::Received(id));
                // Where nothing is acknowledged a sender is done when all has left.
                self.plan(answer.map_or(self.now, |answer| arrives + answer), Event::Sent(id));
            }
            Event::Received(id) => {
                let Some(flow) = &mut self.flows[id as usize] else { return };
                flow.record.fct = Some(self.now - flow.record.start);
                let ends = self.ends(id);
                self.release(id);
                let Some(ends @ Ends { src, dst, number }) = ends else { return };
                if self.endpoints.note_received(ends)
                    && Stage::is_of_program(number)
                    && self.works[dst as usize].is_program()
                {
                    self.follow(dst, |work, now, actions| work.on_received(now, src, number, actions));
                }
            }
            Event::Sent(id) => {
                let Some(flow) = &mut self.flows[id as usize] else { return };
                flow.record.sender_fct = Some(self.now - flow.record.start);
                let group = flow.record.group;
                let is_counted = self.outside.is_none() || flow.outside.is_some();
                let ends = self.ends(id);
                self.release(id);
                let Some(Ends { src, number, .. }) = ends else { return };
                if !self.endpoints.note_sent(src, number) {
                    return;
                }
                self.done += u64::from(is_counted);
                if self.works[src as usize].is_program() && Stage::is_of_program(number) {
                    self.follow(src, |work, now, actions| work.on_sent(now, number, actions));
                } else if let Some(message) = self.works[src as usize].next_closed(self.now, group) {
                    let number = self.number(src);
                    self.launch(src, message, number, None);
                }
            }
            Event::Wake(endpoint, op) => {
                let is_counted =
                    self.outside.as_ref().is_none_or(|outside| !outside.has_program[endpoint as usize]);
                self.calculated = if is_counted { Some(self.now) } else { self.calculated };
                self.follow(endpoint, |work, now, actions| work.on_wake(now, op, actions));
            }
            Event::Change => self.lay(),
            Event::WarmUp => {
                let now = self.now;
                for flow in self.flows.iter_mut().flatten() {
                    flow.record.delivered_after_warm_up = flow.left_by(now);
                }
            }
            Event::LoadEnds => {
                let now = self.now;
                self.carried.note_load_end(&self.solver, now);
                if let Some(outside) = &mut self.outside {
                    outside.note_load_end(now);
                }
                for flow in self.flows.iter_mut().flatten() {
                    flow.record.delivered_in_drain = flow.left_by(now);
                }
            }
        }
    }

    fn start(&mut self, endpoint: u32) {
        if self.works[endpoint as usize].is_program()
            && !std::mem::replace(&mut self.has_begun[endpoint as usize], true)
        {
            self.follow(endpoint, |work, now, actions| work.begin(now, actions));
        }
        while let Some(message) = self.upcoming[endpoint as usize].filter(|message| message.start <= self.now)
        {
            let number = self.number(endpoint);
            self.launch(endpoint, message, number, None);
            let next = self.works[endpoint as usize].next_timed();
            self.upcoming[endpoint as usize] = next;
            if let Some(next) = next.filter(|next| next.start > self.now) {
                self.plan(next.start, Event::Start(endpoint));
            }
        }
    }

    fn number(&mut self, endpoint: u32) -> u32 {
        self.next_number[endpoint as usize] += 1;
        self.next_number[endpoint as usize] - 1
    }

    /// Lets a program take a step, and does what it asks for.
    fn follow(&mut self, endpoint: u32, step: impl FnOnce(&mut HostWork, Time, &mut Vec<Action>)) {
        let mut actions = Vec::new();
        step(&mut self.works[endpoint as usize], self.now, &mut actions);
        for action in actions {
            match action {
                Action::Wake { at, op } => self.plan(at, Event::Wake(endpoint, op)),
                Action::Send { dst, bytes, number, class, group, nic } => {
                    let message = Message { group, class, ..Message::new(dst, bytes, self.now) };
                    self.launch(endpoint, message, number, nic);
                }
            }
        }
    }

    /// Begins a message, at a NIC that is given or at those that the endpoint chooses.
    fn launch(&mut self, src: u32, message: Message, number: u32, nic: Option<u16>) {
        let ends = Ends { src, dst: message.dst, number };
        if let Some(outside) = &mut self.outside {
            outside.messages += u64::from(!outside.inside.has(src, message.dst, message.group));
        }
        for (src, dst, bytes) in self.endpoints.begin(ends, message.bytes, nic) {
            self.begin_flow((src, dst, bytes), &message, number);
        }
    }

    /// Begins a flow, which is a message or a part of one.
    fn begin_flow(&mut self, (src, dst, bytes): (HostId, HostId, Bytes), message: &Message, number: u32) {
        let &Message { group, class, .. } = message;
        let lone = self.stage.lone(src, dst, bytes);
        let ends = (self.endpoints.of(src), self.endpoints.of(dst));
        let is_outside =
            self.outside.as_ref().is_some_and(|outside| !outside.inside.has(ends.0, ends.1, group));
        let options = &self.stage.transport().options;
        let packets = bytes.0.div_ceil(options.mtu.0);
        let record = FlowRecord {
            src,
            dst,
            flow: number,
            group,
            class,
            bytes: bytes.0,
            start: self.now,
            ideal_fct: lone.ideal_fct,
            ..FlowRecord::default()
        };
        let bits = 8.0 * (bytes.0 + packets * options.header.0) as f64;
        let active = Active {
            record,
            tag: self.paths.tag(src, dst),
            bits,
            left: bits,
            since: self.now,
            rate: 0.0,
            drains: None,
            solved: None,
            tail: Time::ZERO,
            answer: lone.answer,
            has_begun: lone.before == Time::ZERO,
            has_left: false,
            outside: is_outside.then(Vec::new),
        };
        let id = self.free.pop().unwrap_or_else(|| {
            self.flows.push(None);
            narrow::<u32>(self.flows.len()) - 1
        });
        self.flows[id as usize] = Some(active);
        match lone.before {
            Time::ZERO => self.fresh.push(id),
            before => self.plan(self.now + before, Event::Begin(id)),
        }
    }

    /// From when the last bit of a flow leaves to its arrival: what its packets take on the idle path beyond the time that its bits take on the slowest
    /// link. That is not below zero, as the serialisation of each packet is rounded up.
    fn tail(&self, record: &FlowRecord, bits: f64, path: Option<&[ChannelId]>) -> Time {
        let bytes = Bytes(record.bytes);
        let options = &self.stage.transport().options;
        let path = match path {
            Some(path) => self.stage.path_along(path),
            None => self.stage.idle_path(record.src, record.dst),
        };
        let full = (bytes.0 - 1) / options.mtu.0;
        let last = Bytes(bytes.0 - full * options.mtu.0 + options.header.0);
        let ideal = path.ideal_fct(full, self.stage.transport().packet_size(), last);
        ideal.saturating_sub(takes(bits, path.slowest_rate().0 as f64))
    }

    /// The rate of a channel now.
    fn rate_of(&self, channel: ChannelId) -> Rate {
        let own = self.stage.network().channel(channel).rate;
        match self.rates.binary_search_by_key(&channel, |&(channel, _)| channel) {
            Ok(place) => {
                let changes = &self.rates[place].1;
                let next = changes.partition_point(|&(from, _)| from <= self.now);
                next.checked_sub(1).map_or(own, |last| changes[last].1)
            }
            Err(_) => own,
        }
    }

    /// Routes all flows again over the links as they are now.
    fn lay(&mut self) {
        self.carried.settle(&self.solver, self.now);
        let dead: Vec<bool> =
            (0..self.stage.network().channels()).map(|channel| self.rate_of(channel) == Rate(0)).collect();
        self.paths.change(self.now, dead);
        self.make_solver();
    }

    /// Makes a solver for the resources as they are, in which no flow is yet.
    fn make_solver(&mut self) {
        let mut capacities = vec![0.0; self.paths.count as usize];
        for channel in 0..self.stage.network().channels() {
            capacities[self.paths.resources[channel as usize] as usize] = self.rate_of(channel).0 as f64;
        }
        if let Some(outside) = &mut self.outside {
            outside.begin(&self.paths.resources, &capacities, self.now);
        }
        self.solver = MaxMin::new(capacities);
        self.owners.clear();
        self.carried.begin(&self.paths.resources, self.paths.count, self.now);
        self.fresh.clear();
        for id in 0..narrow::<u32>(self.flows.len()) {
            if let Some(flow) =
                self.flows[id as usize].as_mut().filter(|flow| flow.has_begun && !flow.has_left)
            {
                flow.solved = None;
                if let Some(counted) = &mut flow.outside {
                    counted.clear();
                }
                self.fresh.push(id);
            }
        }
    }

    /// Brings all rates up to date, and plans when flows end at these.
    fn solve(&mut self) {
        while let Some(id) = self.fresh.pop() {
            let Some(flow) = &self.flows[id as usize] else { continue };
            let (ends, number, tag) = ((flow.record.src, flow.record.dst), flow.record.flow, flow.tag);
            let Course { split, path } = self.paths.course(ends, number, tag);
            let Some(split) = split else {
                self.set_rate(id, 0.0);
                continue;
            };
            let solved = self.solver.add(self.paths.ends(ends), Rc::clone(&split));
            if self.owners.len() <= solved as usize {
                self.owners.resize(solved as usize + 1, 0);
            }
            self.owners[solved as usize] = id;
            let Some(flow) = &self.flows[id as usize] else { continue };
            let tail = self.tail(&flow.record, flow.bits, path.as_deref());
            if let Some(flow) = &mut self.flows[id as usize] {
                (flow.solved, flow.tail) = (Some(solved), tail);
            }
        }
        if !self.solver.is_stale() {
            return;
        }
        let (carried, now) = (&mut self.carried, self.now);
        let changed = self.solver.update(|resource, solver| carried.note(resource, solver, now));
        for solved in changed {
            let (id, rate) = (self.owners[solved as usize], self.solver.rate(solved));
            self.set_rate(id, rate);
        }
        self.forget_stale_ends();
    }

    fn set_rate(&mut self, id: u32, rate: f64) {
        let now = self.now;
        let Some(flow) = &mut self.flows[id as usize] else { return };
        if let (Some(outside), Some(solved), Some(counted)) =
            (&mut self.outside, flow.solved, &mut flow.outside)
        {
            outside.count(&self.solver, solved, counted, now);
        }
        if flow.rate == rate && flow.drains.is_some() {
            return;
        }
        flow.left = (flow.left - flow.rate * (now - flow.since).as_secs_f64()).max(0.0);
        (flow.since, flow.rate) = (now, rate);
        self.stale += usize::from(flow.drains.take().is_some());
        if rate > 0.0 {
            flow.drains = Some(self.planned + 1);
            let at = now.saturating_add(takes(flow.left, rate));
            self.plan(at, Event::Drained(id));
        }
    }

    /// Takes out ends that were planned at other rates, once they are most of what is planned: where many flows share a link, each one that ends changes the rates of all others.
    fn forget_stale_ends(&mut self) {
        if self.stale > FEW_STALE && 2 * self.stale > self.events.len() {
            let flows = &self.flows;
            self.events.retain(|&Reverse((_, number, event))| match event {
                Event::Drained(flow) => is_end(flows, flow, number),
                _ => true,
            });
            self.stale = 0;
        }
    }

    /// The message that a flow is, or is a part of.
    fn ends(&self, id: u32) -> Option<Ends> {
        let FlowRecord { src, dst, flow: number, .. } = self.flows[id as usize].as_ref()?.record;
        Some(Ends { src: self.endpoints.of(src), dst: self.endpoints.of(dst), number })
    }

    /// Forgets a flow that has ended at both of its ends.
    fn release(&mut self, id: u32) {
        let has_ended = |flow: &mut Active| flow.record.fct.is_some() && flow.record.sender_fct.is_some();
        if let Some(flow) = self.flows[id as usize].take_if(has_ended) {
            self.free.push(id);
            self.hand_in(flow);
        }
    }

    /// Completes what is known of a flow.
    fn hand_in(&mut self, flow: Active) {
        let warm_up = self.stage.measure().warm_up;
        let load_until = self.stage.load_until().unwrap_or(Time::MAX);
        let left_at = flow.since;
        if let Some(outside) = &mut self.outside {
            if flow.outside.is_none() {
                return;
            }
            let ends = [flow.record.fct, flow.record.sender_fct].into_iter().flatten().max();
            outside.last_end = outside.last_end.max(flow.record.start + ends.unwrap_or_default());
        }
        let delivered = if flow.has_left { flow.record.bytes } else { flow.left_by(self.now) };
        let mut record = flow.record;
        record.delivered = delivered;
        // At each of the two moments it was noted what had left by then, of flows that were there.
        let after = |moment: Time, by_then: u64| match () {
            () if record.start >= moment => delivered,
            () if flow.has_left && left_at < moment || self.now < moment => 0,
            () => delivered - by_then.min(delivered),
        };
        let (after_warm_up, in_drain) =
            (after(warm_up, record.delivered_after_warm_up), after(load_until, record.delivered_in_drain));
        (record.delivered_after_warm_up, record.delivered_in_drain) = (after_warm_up, in_drain);
        self.records.push(record);
    }

    /// Whether messages are to start or programs to go on, other than those of a region: what became of these is known from its packets.
    fn has_work_left(&self) -> bool {
        let works = (0..).zip(&self.works).zip(&self.upcoming);
        works.into_iter().any(|((host, work), upcoming)| match &self.outside {
            None => upcoming.is_some() || !work.is_finished(),
            Some(Outside { inside, .. }) => {
                let is_outside = |message: &Message| !inside.has(host, message.dst, message.group);
                upcoming.as_ref().is_some_and(is_outside) || !inside.is_finished_outside(host, work)
            }
        })
    }

    /// Ends the run.
    pub(crate) fn end(mut self, stopped_at: Option<Time>) -> Result<Outcome, RunError> {
        let until = self.stage.measure().until;
        let is_cut = !self.is_over();
        if stopped_at.is_none() && until.is_none() {
            if let Some(what) = find_stall(self.works.iter(), self.stage.job_plans()) {
                return Err(RunError::Unfinished(what));
            }
            if let Some(flow) = self.flows.iter().flatten().next() {
                let (src, dst, number) = (flow.record.src, flow.record.dst, flow.record.flow);
                let what = format!("flow {number} of host {src} has no way to host {dst} any more");
                return Err(RunError::Unfinished(what));
            }
        }
        let end = match (stopped_at, until) {
            (Some(reached), _) => reached,
            (None, Some(until)) if is_cut => until,
            _ => self.now,
        };
        let is_counted = |flow: &Active| self.outside.is_none() || flow.outside.is_some();
        let is_in_flight = self.flows.iter().flatten().any(is_counted);
        let active_until = if is_in_flight { end } else { self.active_until };
        self.now = end;
        self.carried.settle(&self.solver, end);
        let has_work_left = self.has_work_left();
        let flows = std::mem::take(&mut self.flows);
        flows.into_iter().flatten().for_each(|flow| self.hand_in(flow));
        let logs = self.works.iter_mut().flat_map(|work| work.take_logs(end)).collect();
        let Run { carried, records, calculated, outside, done, .. } = self;
        let flows = records.finish()?;
        Ok(Outcome {
            end,
            active_until,
            flows,
            carried,
            logs,
            calculated,
            has_work_left,
            is_interrupted: stopped_at.is_some(),
            is_in_flight,
            done,
            outside,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use netloom_topology::{BuildContext, Crossbar, Topology};

    use super::*;

    /// Each of 2,000 messages to one host that begins or ends changes the rates of all others.
    #[test]
    fn ends_at_earlier_rates_are_forgotten() {
        let topology = Topology::Crossbar(Crossbar { hosts: 2, ..Crossbar::default() });
        let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        let message = |number: u64| (0, Message::new(1, Bytes(100_000 + 1000 * number), Time(number)));
        let plan = Plan::of_messages(2, (0..2000).map(message));
        let run = FlowRun::new(network, SimConfig::default(), plan).unwrap();
        let mut run_of = Run::new(&run.stage, run.spread, run.works, None);
        run_of.begin();
        let (mut looks, mut most) = (0, 0);
        while run_of.go(&mut |_| ControlFlow::Break(())).unwrap().is_some() {
            let valid = run_of.flows.iter().flatten().filter(|flow| flow.drains.is_some()).count();
            assert_eq!(run_of.stale + valid, ends(&run_of), "each of them is counted");
            (looks, most) = (looks + 1, most.max(run_of.events.len()));
        }
        assert!(looks > 50 && most < 3 * 2000, "{looks} {most}");
    }

    fn ends(run: &Run<'_>) -> usize {
        run.events.iter().filter(|Reverse((.., event))| matches!(event, Event::Drained(_))).count()
    }
}
