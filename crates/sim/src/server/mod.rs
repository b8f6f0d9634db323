//! A server with several NICs: one node of the engine in which several hosts of the network live.
//!
//! The workload of a server, what it knows of its messages, and the choice of the NICs by which they leave are here; each NIC is a
//! [`Host`] with its own link, transport and queues, and without work of its own. A message, or each part of a striped one, is a flow between
//! the NICs of one rail. That all NICs of a server are in one node is what lets the end of a message at one of them start the next one at
//! another in the same instant, as at a host with one NIC; the channels that lead to its NICs lead to that node.
//!
//! A NIC's timers are kept here. For each of them the engine has one of this node, in the same order.

pub(crate) mod nic_choice;
pub(crate) mod nic_timers;
pub(crate) mod recur;

use netloom_engine::{AnyScheduler, Due, DynScheduler, TIMER};
use netloom_fabric::Packet;
use netloom_routing::FlowKey;
use netloom_topology::HostId;
use netloom_units::{Bytes, Time, narrow};
use netloom_workload::{Action, HostWork, Message as Job, NicSelection};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calculations::Calculations;
use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::event::FlowEvent;
use crate::message::{BESIDE, Message};
use crate::numbering::FIRST_OWN;
use crate::server::nic_choice::NicChoice;
use crate::server::nic_timers::{AtNic, Timer, Timers};
use crate::world::World;

/// A server and everything it knows.
#[derive(Debug)]
pub(crate) struct Server {
    number: u32,
    nics: Vec<Nic>,
    /// The last NIC that something has reached since all had come to one instant.
    reached: Option<u32>,
    /// Nothing happens before inside any NIC but that one.
    quiet_until: Time,
    work: HostWork,
    /// The next message that starts by the clock.
    upcoming: Option<Job>,
    has_begun: bool,
    next_message: u32,
    choice: NicChoice,
    /// Streams that have begun: rail, receiver, group, class.
    streams: FxHashSet<(u32, u32, u16, u8)>,
    /// Messages whose sending has not ended, by number.
    sending: FxHashMap<u32, Sending>,
    /// Messages of which parts have come and others are missing, by sending server and number: how many.
    receiving: FxHashMap<(u32, u32), u32>,
    calculations: Calculations,
    events: Vec<FlowEvent>,
    last_event: Time,
    /// Last time a calculation ended.
    calculated: Option<Time>,
}

/// A message that is being sent.
#[derive(Debug)]
struct Sending {
    parts: u32,
    group: u16,
    /// The bytes of a whole message, and its rail.
    whole: (Bytes, u32),
}

#[derive(Debug)]
struct Nic {
    id: HostId,
    host: Host,
    timers: Timers,
    /// When the next thing happens inside it, as far as it is known: not earlier. Most of what reaches a server concerns one NIC, so the others need not be called.
    next: Time,
}

impl Nic {
    /// Comes to `ctx.now`, if it has not. What has left it by then may have set timers that come before what is due from `source`, and the node goes on to that.
    #[inline]
    fn catch_up(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>, rail: u32, source: u32) {
        let Nic { id, host, timers, next } = self;
        if *next >= ctx.now {
            return;
        }
        let out = &mut AtNic { engine: &mut *ctx.out, timers, rail };
        loop {
            let then = host.advance(&mut Ctx::new(ctx.world, *id, ctx.now, &mut AnyScheduler(out)));
            let Some((due, timer)) = out.take_due(Due { at: ctx.now, source }) else {
                *next = then.unwrap_or(Time::MAX);
                return;
            };
            host.handle(&mut Ctx::new(ctx.world, *id, due.at, &mut AnyScheduler(out)), &timer);
        }
    }
}

impl Server {
    /// A server of these NICs, whose messages are numbered from `first_message` on.
    pub(crate) fn new(number: u32, nics: Vec<(HostId, Host)>, work: HostWork, first_message: u32) -> Self {
        Server {
            number,
            choice: NicChoice::new(nics.len()),
            nics: nics
                .into_iter()
                .map(|(id, host)| Nic { id, host, timers: Timers::default(), next: Time::ZERO })
                .collect(),
            reached: None,
            quiet_until: Time::ZERO,
            work,
            upcoming: None,
            has_begun: false,
            next_message: first_message,
            streams: FxHashSet::default(),
            sending: FxHashMap::default(),
            receiving: FxHashMap::default(),
            calculations: Calculations::default(),
            events: Vec::new(),
            last_event: Time::ZERO,
            calculated: None,
        }
    }

    /// The NICs as nodes of their own, for the records; the first one has the work.
    pub(crate) fn into_nics(self) -> impl Iterator<Item = (HostId, Host)> {
        let Server { nics, mut work, mut upcoming, last_event, calculated, .. } = self;
        nics.into_iter().map(move |Nic { id, mut host, .. }| {
            host.work = std::mem::take(&mut work);
            host.take_back(upcoming.take());
            host.last_event = host.last_event.max(last_event);
            if calculated.is_some() {
                host.rare.get_or_insert_default().calculated = calculated;
            }
            (id, host)
        })
    }

    /// As [a node](crate::node::Node::end_component).
    pub(crate) fn end_component(&mut self, end: Time, ahead: Time) {
        self.last_event += ahead;
        self.nics.iter_mut().for_each(|nic| nic.host.end_component(end, ahead));
    }

    /// When a packet last came to or left one of its NICs, or its program did something.
    pub(crate) fn last_event(&self) -> Time {
        self.nics.iter().map(|nic| nic.host.last_event).fold(self.last_event, Time::max)
    }

    /// What it has to do.
    pub(crate) fn work(&self) -> &HostWork {
        &self.work
    }

    /// Its NICs, with their numbers as hosts of the network.
    pub(crate) fn nics_mut(&mut self) -> impl Iterator<Item = (HostId, &mut Host)> {
        self.nics.iter_mut().map(|nic| (nic.id, &mut nic.host))
    }

    /// Sets at all ports when the load ends.
    pub(crate) fn note_drain(&mut self, until: Time) {
        self.nics.iter_mut().for_each(|nic| nic.host.nic.note_drain(until));
    }

    pub(crate) fn start(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>) {
        for (rail, Nic { id, timers, .. }) in (0..).zip(&mut self.nics) {
            for &port in ctx.world.ports_of_nic(id) {
                let out = &mut AnyScheduler(&mut AtNic { engine: &mut *ctx.out, timers, rail });
                ctx.world.set_cut_timers(port, out);
            }
        }
        self.upcoming = self.work.next_timed();
        if self.work.is_program() {
            ctx.out.timer_from(TIMER, Time::ZERO, Message::Start);
        }
        if let Some(job) = &self.upcoming {
            ctx.out.timer_from(TIMER, job.start, Message::Start);
        }
    }

    /// The events of ordered messages that were not taken yet; who takes them leaves none.
    pub(crate) fn events(&mut self) -> &mut Vec<FlowEvent> {
        &mut self.events
    }

    /// As a host: whether it is worth a look at each packet of a batch before the first one is handled.
    pub(crate) fn is_crowded(&self) -> bool {
        self.nics.iter().any(|nic| nic.host.is_crowded())
    }

    /// Prefetches the flows of each NIC whose turns come first.
    pub(crate) fn prefetch_turns(&self) {
        self.nics.iter().for_each(|nic| nic.host.prefetch_turns());
    }

    /// A packet will soon be handled: prefetches its flow.
    pub(crate) fn prefetch_flow(&self, world: &World, packet: &Packet) {
        // Flows are known by the addresses of NICs, packets from a NIC with several ports by those of the ports.
        if world.port_selection().is_none() && !packet.is_of_the_link() {
            let (_, rail) = world.servers().rails.endpoint(packet.dst);
            self.nics[rail as usize].host.prefetch_flow(world, packet);
        }
    }

    pub(crate) fn handle(
        &mut self,
        ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>,
        source: u32,
        message: &Message,
    ) {
        self.catch_up(ctx, source);
        match message {
            Message::Packet(packet) if ctx.world.port_selection().is_some() => {
                let rail = rail_of(ctx.world, source);
                self.nics[rail as usize].host.note_port(packet);
                self.at_nic(ctx, rail, &Message::Packet(ctx.world.off_wire(packet)));
            }
            Message::Packet(_) => self.reach(ctx, rail_of(ctx.world, source), message),
            Message::Grant(_) => self.at_nic(ctx, rail_of(ctx.world, source), message),
            Message::Nic { rail } => {
                let timer = self.nics[*rail as usize].timers.waiting.pop();
                if let Some(Timer { at, message, .. }) = timer {
                    assert_eq!(at, ctx.now, "a timer of a NIC fires when it is due");
                    self.at_nic(ctx, *rail, &message);
                }
            }
            Message::Start => self.start_messages(ctx),
            Message::Wake => self.end_calculation(ctx),
            Message::Order { dst, bytes, ticket, class } => {
                let number = self.number(ctx.world);
                let job = Job { class: *class, ..Job::new(*dst, *bytes, ctx.clock()) };
                let parts = self.begin(ctx, job, number);
                self.events.push(FlowEvent::Started { ticket: *ticket, flow: number, parts });
                ctx.out.report(false);
            }
            _ => unreachable!("a NIC's own timers are kept apart"),
        }
    }

    /// All NICs come to `ctx.now`.
    #[inline(always)]
    fn catch_up(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>, source: u32) {
        let reached = self.reached.take();
        if self.quiet_until < ctx.now {
            for (rail, nic) in (0..).zip(&mut self.nics) {
                nic.catch_up(ctx, rail, source);
            }
            self.quiet_until = self.first_inside();
        } else if let Some(rail) = reached {
            // Mostly the only one that is concerned.
            let nic = &mut self.nics[rail as usize];
            nic.catch_up(ctx, rail, source);
            self.quiet_until = self.quiet_until.min(nic.next);
        }
    }

    /// When the first thing happens inside any NIC, as far as that is known: not earlier. [`Time::MAX`]: never.
    fn first_inside(&self) -> Time {
        self.nics.iter().map(|nic| nic.next).min().unwrap_or(Time::MAX)
    }

    pub(crate) fn advance(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>) -> Option<Time> {
        for (rail, Nic { id, host, timers, next }) in (0..).zip(&mut self.nics) {
            if *next < ctx.now {
                let out = &mut AnyScheduler(&mut AtNic { engine: &mut *ctx.out, timers, rail });
                *next = host.advance(&mut Ctx::new(ctx.world, *id, ctx.now, out)).unwrap_or(Time::MAX);
            }
        }
        self.reached = None;
        self.quiet_until = self.first_inside();
        Some(self.quiet_until).filter(|&next| next < Time::MAX)
    }

    /// [`Self::reach`] of what is rarer than packets.
    #[inline(never)]
    fn at_nic(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>, rail: u32, message: &Message) {
        self.reach(ctx, rail, message);
    }

    /// Something reaches a NIC, and what it has to say is taken.
    #[inline(always)]
    fn reach(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>, rail: u32, message: &Message) {
        if self.reached.replace(rail).is_some_and(|before| before != rail) {
            self.quiet_until = Time::ZERO;
        }
        let Nic { id, host, timers, next } = &mut self.nics[rail as usize];
        *next = Time::ZERO;
        let out = &mut AnyScheduler(&mut AtNic { engine: &mut *ctx.out, timers, rail });
        host.handle(&mut Ctx::new(ctx.world, *id, ctx.now, out), message);
        if let Some(events) = host.events().filter(|events| !events.is_empty()) {
            let events = std::mem::take(events);
            self.take_events(ctx, events);
        }
    }

    /// Takes what a NIC has to say.
    #[inline(never)]
    fn take_events(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>, events: Vec<FlowEvent>) {
        for event in events {
            match event {
                FlowEvent::Sent { flow, .. } => self.on_sent(ctx, flow),
                FlowEvent::Received { flow, .. } => self.on_received(ctx, flow),
                FlowEvent::Started { .. } => unreachable!("orders are the server's"),
            }
        }
    }

    fn number(&mut self, world: &World) -> u32 {
        world.numbering.next(&mut self.next_message, || format!("server {}", self.number))
    }

    fn start_messages(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>) {
        if self.work.is_program() && !std::mem::replace(&mut self.has_begun, true) {
            self.follow_program(ctx, |work, now, actions| work.begin(now, actions));
        }
        while let Some(job) = self.upcoming {
            if job.start > ctx.clock() {
                ctx.out.timer_from(TIMER, ctx.world.instant(job.start), Message::Start);
                break;
            }
            self.next_message += self.work.take_skipped();
            if job.stream {
                self.feed(ctx, job);
            } else {
                let number = self.number(ctx.world);
                self.begin(ctx, job, number);
            }
            self.upcoming = self.work.next_timed();
        }
    }

    /// Begins a message; returns the number of its parts.
    fn begin(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>, job: Job, number: u32) -> u32 {
        self.begin_at(ctx, job, number, None)
    }

    /// Begins a message at a NIC that is given, or at those that the rule chooses; returns the number of its parts.
    fn begin_at(
        &mut self,
        ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>,
        job: Job,
        number: u32,
        nic: Option<u16>,
    ) -> u32 {
        let servers = ctx.world.servers();
        let parts = match nic {
            Some(nic) => vec![(u32::from(nic), job.bytes)],
            None => self.spread(ctx.world, &job, number),
        };
        let count = narrow::<u32>(parts.len());
        let is_of_program = number < FIRST_OWN && self.work.is_program();
        if is_of_program
            && servers.rails.nic_selection() == NicSelection::Stripe
            && (count as usize) < servers.rails.between(self.number, job.dst).len()
        {
            servers.note(job.dst, (self.number, number), count);
        }
        let (rail, bytes) = parts[0];
        self.choice.note_begin(rail, bytes);
        self.sending.insert(number, Sending { parts: count, group: job.group, whole: (bytes, rail) });
        for (rail, bytes) in parts {
            let Job { group, class, .. } = job;
            let dst = servers.rails.host(job.dst, rail);
            let part = Message::Part { dst, bytes, number, group, class, is_stream: false };
            self.at_nic(ctx, rail, &part);
        }
        count
    }

    /// Appends a frame to a stream to its destination.
    fn feed(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>, job: Job) {
        // By sender and receiver alone, a hash keeps all frames on one rail.
        let parts = self.spread(ctx.world, &job, 0);
        for (rail, bytes) in parts {
            let Job { group, class, .. } = job;
            let is_new = self.streams.insert((rail, job.dst, group, class));
            let number = if is_new { self.number(ctx.world) } else { 0 };
            let dst = ctx.world.servers().rails.host(job.dst, rail);
            let part = Message::Part { dst, bytes, number, group, class, is_stream: true };
            self.at_nic(ctx, rail, &part);
        }
    }

    /// The parts of a message: rails and bytes.
    fn spread(&mut self, world: &World, job: &Job, number: u32) -> Vec<(u32, Bytes)> {
        let message = (self.number, job.dst, number);
        self.choice.parts(&world.servers().rails, message, (job.bytes, world.transport.options.mtu))
    }

    /// A NIC is done with sending a part of a message.
    fn on_sent(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>, number: u32) {
        let Some(sending) = self.sending.get_mut(&number) else { return };
        sending.parts -= 1;
        if sending.parts > 0 {
            return;
        }
        let (group, (bytes, rail)) = (sending.group, sending.whole);
        self.sending.remove(&number);
        self.choice.note_end(rail, bytes);
        ctx.out.tally(1);
        if ctx.world.reports_sent {
            self.events.push(FlowEvent::Sent { flow: number, at: ctx.now });
            ctx.out.report(true);
        }
        if self.work.is_program() && number < FIRST_OWN {
            self.follow_program(ctx, |work, now, actions| work.on_sent(now, number, actions));
        } else if let Some(job) = self.work.next_closed(ctx.clock(), group) {
            let number = self.number(ctx.world);
            self.begin(ctx, job, number);
        }
    }

    /// All of a part of a message has come to a NIC.
    fn on_received(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>, key: FlowKey) {
        if ctx.world.is_driven {
            self.events.push(FlowEvent::Received { flow: key, at: ctx.now });
            ctx.out.report(true);
        }
        if key.flow >= FIRST_OWN || !self.work.is_program() {
            return;
        }
        let servers = ctx.world.servers();
        let (src, number) = (servers.rails.endpoint(key.src).0, key.flow);
        let missing = self.receiving.remove(&(src, number));
        let missing = missing.unwrap_or_else(|| servers.parts(self.number, (src, number))) - 1;
        if missing > 0 {
            self.receiving.insert((src, number), missing);
            return;
        }
        self.follow_program(ctx, |work, now, actions| work.on_received(now, src, number, actions));
    }

    /// A calculation of the program ends.
    fn end_calculation(&mut self, ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>) {
        let Some(op) = self.calculations.end(ctx.world) else { return };
        (self.last_event, self.calculated) = (ctx.now, Some(ctx.clock()));
        self.follow_program(ctx, |work, now, actions| work.on_wake(now, op, actions));
    }

    /// Lets the program take a step, and does what it asks for.
    fn follow_program(
        &mut self,
        ctx: &mut Ctx<'_, dyn DynScheduler<Message> + '_>,
        step: impl FnOnce(&mut HostWork, Time, &mut Vec<Action>),
    ) {
        let mut actions = Vec::new();
        step(&mut self.work, ctx.clock(), &mut actions);
        for action in actions {
            match action {
                Action::Wake { at, op } => {
                    let at = ctx.world.instant(at);
                    self.calculations.begin(ctx.world, at, op);
                    ctx.out.timer_from(TIMER, at, Message::Wake);
                }
                Action::Send { dst, bytes, number, class, group, nic } => {
                    let job = Job { group, class, ..Job::new(dst, bytes, ctx.clock()) };
                    self.begin_at(ctx, job, number, nic);
                }
            }
        }
    }
}

/// The rail at the end of a channel to a server.
fn rail_of(world: &World, source: u32) -> u32 {
    world.servers().rails.rail(world.network.channel(source & !BESIDE).to)
}
