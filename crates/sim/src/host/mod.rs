//! A host: starts flows, lets them send through one NIC, and answers what it receives.
//!
//! The NIC has no queue of data. Whenever its transmitter is free and no ACK waits, it asks the flows that have
//! something to send in turn; so a packet's path and timestamp are decided when it really leaves. Or it has one, if the transport
//! says so: `queue.rs`.

mod departures;
mod finished;
mod interrupts;
mod limit;
mod line;
mod paces;
mod pull;
mod queue;
mod receive;
pub(crate) mod receivers;
mod reorder;
mod request;
mod sent;
mod start;
mod stop;
mod subflows;
mod trimmed;

use netloom_engine::Scheduler;
use netloom_fabric::{Credit, Flags, Packet, PacketKind, Ports, Stamp};
use netloom_record::{FlowRecord, GapRecord};
use netloom_routing::{Advice, Decider, FlowCounts, FlowKey, FlowRef, Tag};
use netloom_topology::NodeId;
use netloom_transport::congestion::hpcc::LinkState;
use netloom_transport::{Ack, Feedback, ReactionPoint, Sender};
use netloom_units::random::{self, Stream};
use netloom_units::{Bytes, Time, fetch, fetch_whole};
use netloom_workload::{HostWork, Message as Job};
use rand::RngExt;
use rustc_hash::FxHashMap;

use crate::calculations::Calculations;
use crate::ctx::Ctx;
use crate::driven::Heard;
use crate::model::{Message, World};
use crate::sampler::Sampler;
use crate::turns::{Turn, Turns};
pub(crate) use departures::Gaps;
use departures::{Departed, Departures};
use interrupts::Interrupts;
use paces::Paces;
use pull::PullQueue;
pub(crate) use queue::Queue;
use receivers::{HANDED_IN, Receivers};
use reorder::Reordering;
use request::Requests;
pub(crate) use sent::Sent;
use stop::{Halt, Stopped};
use subflows::Connections;
pub(crate) use subflows::Numbering;

/// The port of a host's NIC.
const NIC: u16 = 0;

/// Where programs run, flows that are not theirs are numbered from here on; theirs have the numbers that both ends know.
pub(crate) const FIRST_OWN: u32 = 1 << 31;

/// A host and everything it knows.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) nic: Ports,
    /// Chooses paths, where the scheme leaves that to NICs.
    decider: Option<Box<Decider>>,
    pub(crate) random: Stream,
    pub(crate) work: HostWork,
    /// The next message that starts by the clock.
    upcoming: Option<Box<Job>>,
    /// Whether the program, if the work is one, has begun.
    has_begun: bool,
    flows: Vec<Option<Flow>>,
    free_slots: Vec<u32>,
    next_flow: u32,
    /// Flows that may have something to send.
    turns: Turns<u32>,
    /// Until when some of them wait.
    paces: Paces,
    /// The NIC's queue, if it has one.
    queue: Option<Box<Queue>>,
    /// A flow without ACKs whose last packet is leaving: it ends when that is out.
    leaving: Option<u32>,
    /// The traffic classes that switches have stopped, a bit each.
    stopped: u8,
    /// What is known of departures, where somebody asks.
    pub(crate) departed: Option<Box<Departed>>,
    /// The NIC has had nothing to send before this instant.
    checked: Time,
    pub(crate) receivers: Receivers,
    /// The PULLs that receivers owe. Absent until first needed, so that an idle host stays small, as is what follows.
    pulls: Option<Box<PullQueue>>,
    rare: Option<Box<Rare>>,
    connections: Option<Box<Connections>>,
    /// What came out of order.
    reordering: Option<Box<Reordering>>,
    /// Flows that ended and are not handed in yet; at the run's end also those that did not end.
    pub(crate) sent: Vec<Sent>,
    pub(crate) control_sent: u64,
    pub(crate) control_received: u64,
    pub(crate) sampler: Option<Box<Sampler>>,
    /// Last time a packet came or a calculation ended. Timers that find nothing to do are no events of the run.
    pub(crate) last_event: Time,
    /// Last time a calculation ended.
    pub(crate) calculated: Option<Time>,
}

impl Host {
    /// Its turn is the next one: what it will touch is fetched.
    #[inline(always)]
    pub(crate) fn expect(&self) {
        let Host { nic, flows, turns, receivers, .. } = self;
        nic.fetch_first_port();
        flows.first().into_iter().for_each(fetch_whole);
        turns.fetch();
        receivers.fetch();
    }

    /// Its turn comes soon: what it will touch first is fetched.
    #[inline(always)]
    pub(crate) fn approach(&self) {
        let Host { nic, random, flows, turns, paces, queue, checked, receivers, sent, last_event, .. } = self;
        fetch(nic);
        fetch(random);
        fetch(flows);
        fetch(turns);
        fetch(paces);
        fetch(queue);
        fetch(checked);
        fetch(receivers);
        fetch(sent);
        fetch(last_event);
    }
}

/// What few hosts need.
#[derive(Debug, Default)]
struct Rare {
    /// The slots of streams, by destination, group and class.
    streams: FxHashMap<(u32, u16, u8), u32>,
    /// When the program wants to be called.
    calculations: Calculations,
    /// QCN's rate limiters, by destination.
    limiters: FxHashMap<u32, Limiter>,
    /// What to tell of flows that were ordered from outside.
    heard: Vec<Heard>,
    /// ACKs that are held back, by receiver.
    held: FxHashMap<u32, Held>,
    /// Headers that came back, by flow, after what was known of these was handed in.
    late_returns: FxHashMap<u32, u32>,
    /// Why traffic classes are stopped.
    classes: Vec<Stopped>,
    interrupts: Interrupts,
    requests: Requests,
}

/// The ACK that a receiver holds back.
#[derive(Debug, Default)]
struct Held {
    /// The last packet that waits for it, and when it must have it.
    packet: Option<(Packet, Time)>,
    /// When its timer fires; another one means nothing.
    timer: Option<Time>,
}

/// The limiter of one destination's rate.
#[derive(Debug)]
struct Limiter {
    point: ReactionPoint,
    /// When its timer fires; an older one means nothing.
    timer: Option<Time>,
}

/// A flow that is being sent.
#[derive(Debug)]
struct Flow {
    at: FlowRef,
    dst: u32,
    group: u16,
    class: u8,
    /// The data lane in which it leaves.
    lane: u8,
    is_stream: bool,
    cnms: u32,
    bytes: Bytes,
    start: Time,
    idle_fct: Time,
    sender: Sender,
    /// The tag of what it sends until its sender learns something more; none: the host's decider, or the sender's congestion control, has to be asked for each packet.
    settled: Option<Tag>,
    in_turn: bool,
    /// When its timer fires; another one means nothing. `Time::MAX`: none is set.
    timer: Time,
    /// What switches have told it to do.
    halt: Option<Box<Halt>>,
    /// When its packets left, where somebody wants to know.
    departures: Option<Box<Departures>>,
}

impl Host {
    /// A host that has yet to start its work.
    pub(crate) fn new(world: &World, id: NodeId, work: HostWork, sampler: Option<Box<Sampler>>) -> Self {
        let World { rules, blueprint, .. } = world;
        Host {
            nic: Ports::new(world.specs(id), rules, true),
            decider: Decider::of_nic(&world.routing).map(Box::new),
            random: random::Node::Host.stream(blueprint.seed, u64::from(id)),
            work,
            upcoming: None,
            has_begun: false,
            flows: Vec::new(),
            free_slots: Vec::new(),
            next_flow: blueprint.first_number,
            turns: Turns::new(rules),
            paces: Paces::default(),
            queue: Queue::new(world.transport.options.nic_queue, rules),
            leaving: None,
            stopped: 0,
            departed: None,
            checked: Time::ZERO,
            receivers: Receivers::default(),
            pulls: None,
            rare: None,
            connections: None,
            reordering: None,
            sent: Vec::new(),
            control_sent: 0,
            control_received: 0,
            sampler,
            last_event: Time::ZERO,
            calculated: None,
        }
    }

    pub(crate) fn start(&mut self, out: &mut impl Scheduler<Message>) {
        self.upcoming = self.work.next_timed().map(Box::new);
        if self.work.is_program() {
            out.timer(Time::ZERO, Message::Start);
        }
        if let Some(job) = &self.upcoming {
            out.timer(job.start, Message::Start);
        }
    }

    /// Handles a message, apart from others.
    #[inline(never)]
    pub(crate) fn handle(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, message: &Message) {
        self.handle_in_turn(ctx, message);
    }

    /// Handles a message, one of many.
    #[inline(always)]
    pub(crate) fn handle_in_turn(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, message: &Message) {
        // While the NIC is busy nothing can have left since the last look.
        if self.is_still() {
            self.checked = self.checked.max(ctx.now);
        } else if self.nic.free_at(NIC) < ctx.now || self.is_watched() {
            self.catch_up(ctx, message);
        }
        match message {
            Message::Packet(packet) => {
                self.paces.forget_by_packet(packet);
                self.last_event = ctx.now;
                if ctx.world.rules.is_lossless() {
                    self.nic.absorb(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
                }
                match ctx.world.transport.options.interrupt_interval {
                    Some(interval) if !packet.is_of_the_link() => {
                        self.on_packet_to_coalesce(ctx, interval, packet)
                    }
                    _ => self.take_in(ctx, packet),
                }
            }
            timer => self.on_timer(ctx, timer),
        }
        self.hand_over(ctx);
    }

    /// Sends everything that leaves before a message comes.
    #[inline(never)]
    fn catch_up(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, message: &Message) {
        self.advance_by_instants(ctx);
        // What has left by now may have set timers that come before this message.
        while let Some((at, timer)) = ctx.out.due_timer(ctx.now) {
            self.handle(&mut ctx.at(at), &timer);
            self.advance(ctx);
        }
        if let (Some(sampler), Message::Packet(packet)) = (&mut self.sampler, message) {
            sampler.see(ctx.now, packet);
        }
    }

    /// A timer fires.
    #[inline(never)]
    fn on_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, timer: &Message) {
        self.paces.forget_by_timer(timer);
        match timer {
            Message::Interrupt => self.on_interrupt(ctx),
            Message::Start => self.start_flows(ctx),
            Message::Order { dst, bytes, ticket, class } => {
                let job = Job { class: *class, ..Job::new(*dst, *bytes, ctx.now) };
                self.follow_order(ctx, job, *ticket);
            }
            Message::FlowTimer { slot, flow } => self.on_flow_timer(ctx, *slot, *flow),
            Message::Pull => self.on_pull_timer(ctx),
            Message::AckDelay { receiver } => self.on_ack_delay(ctx, *receiver),
            Message::PauseLimit { slot, flow } => self.on_pause_limit(ctx.world, ctx.now, *slot, *flow),
            Message::StopLimit { slot, flow } => self.on_stop_limit(ctx.world, ctx.now, *slot, *flow),
            Message::ClassStopLimit { class } => self.on_class_stop_limit(ctx.world, ctx.now, *class),
            Message::Reorder { src, flow } => {
                let key = FlowKey { src: *src, flow: *flow };
                self.on_reorder_timer(ctx, key);
            }
            Message::Limiter { dst } => self.on_limiter_timer(ctx, *dst),
            Message::Link { port, is_cut } => self.on_link(ctx, *port, *is_cut),
            Message::Grant(credit) => self.nic.on_credit(*credit, ctx.now, &ctx.world.rules, &mut ctx.wire()),
            other => self.take_part(ctx, other),
        }
    }

    /// A packet has come, and the host looks at it.
    #[inline(always)]
    fn take_in(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        match packet.kind {
            PacketKind::Data => self.on_data(ctx, packet),
            PacketKind::Header => self.on_header(ctx, packet),
            PacketKind::Returned | PacketKind::Unreachable => self.on_returned(ctx, packet),
            PacketKind::UnreachableAck
            | PacketKind::UnreachableNack
            | PacketKind::UnreachablePull
            | PacketKind::UnreachableCnp => self.on_turned_answer(ctx, packet),
            PacketKind::Ack => self.on_ack(ctx, packet),
            PacketKind::Nack => self.on_nack(ctx, packet),
            PacketKind::Pull => self.on_pull(ctx, packet),
            PacketKind::Request => self.on_request(ctx, packet),
            PacketKind::Cnm => self.on_notification(ctx, packet),
            PacketKind::Xoff => self.on_xoff(ctx, packet),
            PacketKind::Xon => self.on_xon(ctx.world, ctx.now, packet),
            PacketKind::FlowAck | PacketKind::Word | PacketKind::Report => {
                unreachable!("it ends at a switch")
            }
            PacketKind::Cnp => self.on_cnp(ctx, packet),
            PacketKind::Pause => {
                self.nic.on_pause(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
            }
            PacketKind::Credit => {
                let credit = Credit::from_packet(packet);
                self.nic.on_credit(credit, ctx.now, &ctx.world.rules, &mut ctx.wire());
            }
            PacketKind::Missed => {
                let room = Credit::from_packet(packet);
                self.nic.on_missed(room, ctx.now, &ctx.world.rules, &mut ctx.wire());
            }
        }
    }

    /// Whether nothing leaves and nothing happens inside the host until something comes.
    #[inline(always)]
    fn is_still(&self) -> bool {
        self.turns.is_empty() && !self.nic.poll(NIC).1 && self.leaving.is_none() && !self.is_watched()
    }

    /// Comes to `until`, or to a timer before it, if the host is still.
    #[inline(always)]
    fn rests(&mut self, until: Time, out: &impl Scheduler<Message>) -> bool {
        let is_still = self.is_still();
        if is_still {
            self.checked = until.min(out.next_timer());
        }
        is_still
    }

    /// Whether more may happen inside than what its flows send.
    #[inline(always)]
    fn is_watched(&self) -> bool {
        self.sampler.is_some() || self.rare.is_some() || self.queue.is_some()
    }

    /// Sends everything that leaves before `ctx.now`; returns when the next packet will.
    #[inline(always)]
    pub(crate) fn advance(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        if self.rests(ctx.now, ctx.out) {
            return None;
        }
        self.advance_by_instants(ctx)
    }

    #[inline(always)]
    fn advance_by_instants(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        if self.sampler.is_some() {
            return self.sample_until(ctx);
        }
        self.send_until(ctx)
    }

    /// Sends as [`Self::send_until`], and takes the samples that are due.
    #[inline(never)]
    fn sample_until(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        while let Some(instant) = self.sampler.as_ref().and_then(|sampler| sampler.due(ctx.now)) {
            let next = self.send_until(&mut ctx.at(instant));
            if ctx.out.next_timer() < instant {
                return next;
            }
            if let Some(sampler) = &mut self.sampler
                && sampler.look(&self.nic, instant)
            {
                sampler.skip(next.unwrap_or(ctx.now).min(ctx.out.next_timer()).min(ctx.now));
            }
        }
        self.send_until(ctx)
    }

    #[inline(never)]
    fn send_until(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        let mut until = ctx.now;
        loop {
            // What comes before its next timer, which the packet that has just left may have set.
            until = until.min(ctx.out.next_timer());
            let wake = self.next_wake();
            // What the host does then may put something into the port.
            let before = wake.map_or(until, |wake| wake.min(until));
            self.nic.advance_port(NIC, before, &ctx.world.rules, &mut ctx.wire());
            let (free_at, is_waiting) = self.nic.poll(NIC);
            let inside = self.next_inside(free_at, wake);
            let has_data = self.queue.as_ref().map_or(!self.turns.is_empty(), |queue| !queue.is_empty());
            if !has_data && !is_waiting && inside.is_none() {
                self.checked = until;
                return None;
            }
            let at = free_at.max(self.checked);
            if let Some(instant) = inside.filter(|&instant| instant < until && instant <= at) {
                self.step_inside(&mut ctx.at(instant), free_at);
                continue;
            }
            let or_inside = |time: Time| inside.map_or(time, |inside| inside.min(time));
            if is_waiting || at >= until {
                return Some(or_inside(at));
            }
            let turn = if self.queue.is_none() {
                self.next_turn(ctx.world, at)
            } else if self.send_queued(&mut ctx.at(at)) {
                continue;
            } else {
                Turn::Never
            };
            let next = match turn {
                Turn::Now(slot) => {
                    self.send_data(&mut ctx.at(at), slot, until);
                    if self.rests(until, ctx.out) {
                        return None;
                    }
                    continue;
                }
                Turn::At(later) => Some(or_inside(later)),
                Turn::Never => inside,
            };
            match next.filter(|&next| next < until) {
                Some(next) => self.checked = next,
                None => {
                    self.checked = until;
                    return next;
                }
            }
        }
    }

    /// When something happens next inside the host, besides sending: a flow without ACKs ends, the program wakes, requests leave, or a flow hands over
    /// packets to the NIC's queue.
    #[inline]
    fn next_inside(&self, free_at: Time, wake: Option<Time>) -> Option<Time> {
        if let Some(queue) = &self.queue {
            return wake.into_iter().chain(queue.opens()).min();
        }
        let leaves = self.leaving.map(|_| free_at);
        match (leaves, wake) {
            (Some(leaves), Some(wakes)) => Some(leaves.min(wakes)),
            (leaves, wakes) => leaves.or(wakes),
        }
    }

    /// When the program wakes, or requests leave.
    #[inline]
    fn next_wake(&self) -> Option<Time> {
        let rare = self.rare.as_ref()?;
        rare.requests.next().into_iter().chain(rare.calculations.next()).min()
    }

    /// Does what happens next inside the host.
    fn step_inside(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, free_at: Time) {
        self.checked = self.checked.max(ctx.now);
        if free_at == ctx.now
            && let Some(slot) = self.leaving.take()
        {
            self.finish(ctx, slot);
        } else if self.rare.as_ref().is_some_and(|rare| rare.requests.next().is_some_and(|at| at <= ctx.now))
        {
            self.request(ctx);
        } else if self.next_wake().is_some_and(|wakes| wakes <= ctx.now)
            && let Some(op) = self.rare.as_mut().and_then(|rare| rare.calculations.end(ctx.world))
        {
            let now = ctx.now;
            (self.last_event, self.calculated) = (now, Some(now));
            self.follow_program(ctx, |work, now, actions| work.on_wake(now, op, actions));
        }
        self.hand_over(ctx);
    }

    /// The flow whose turn it is sends a packet, and further ones before `until` as long as nobody else could, and goes to the end of the line.
    fn send_data(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32, until: Time) {
        let is_alone = self.turns.are_one_line()
            && self.turns.is_empty()
            && self.rare.is_none()
            && self.departed.is_none()
            && !ctx.world.numbering.has_subflows();
        while let Some((mut packet, concerns_others)) = self.make_packet(ctx, slot) {
            self.nic.send_now(NIC, &mut packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
            let free_at = self.nic.free_at(NIC);
            let may_go_on = is_alone && free_at < until.min(ctx.out.next_timer()) && self.nic.is_open(NIC, 0);
            let goes_on = |from| may_go_on && from <= free_at;
            if self.line_up(ctx.world, slot, &packet, concerns_others, goes_on).is_some() {
                break;
            }
            ctx.now = free_at;
        }
    }

    /// Takes the next packet of the flow whose turn it is, which then goes to the end of the line; returns its data lane, too.
    #[inline(always)]
    fn take_packet(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) -> Option<(u8, Packet)> {
        let (packet, concerns_others) = self.make_packet(ctx, slot)?;
        Some((self.line_up(ctx.world, slot, &packet, concerns_others, |_| false)?, packet))
    }

    /// The next packet of the flow whose turn it is, and whether that concerns the other subflows of its connection.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "TransportOptions::check bounds MTU and header together by 65,535 bytes"
    )]
    fn make_packet(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        slot: u32,
    ) -> Option<(Packet, bool)> {
        let Host { flows, decider, random, connections, departed, .. } = self;
        let flow = flows[slot as usize].as_mut()?;
        let Some(mut next) = flow.sender.take(&ctx.world.transport, ctx.now) else {
            flow.in_turn = false;
            return None;
        };
        let mut concerns_others = false;
        if ctx.world.numbering.has_subflows() {
            (next, concerns_others) = subflows::take(connections, ctx.world, flow, next);
        }
        let size = u32::from(next.payload) + ctx.world.transport.options.header.0 as u32;
        let tag = match flow.settled {
            Some(tag) => tag.bits(),
            None => flow.choose_path(ctx.world, decider, random, u32::from(next.payload), ctx.now),
        };
        let mut packet = Packet {
            sent: ctx.now,
            src: ctx.id,
            dst: flow.dst,
            flow: flow.at.key.flow,
            slot,
            seq: next.seq,
            aux: tag,
            tag,
            size: size as u16,
            kind: PacketKind::Data,
            flags: Flags::new(flow.class, next.last),
            ..Packet::EMPTY
        };
        if let Some(halt) = &mut flow.halt {
            halt.on_sent();
            packet.flags.turn(halt.is_turned);
        }
        if let Some(departures) = &mut flow.departures {
            let training = departed.as_mut().and_then(|departed| departed.training.as_mut());
            departures.on_sent(ctx.world, training, ctx.now);
        }
        if let Some(least) = ctx.world.hint {
            packet.flags.hint(flow.sender.remaining(&ctx.world.transport) >= least);
        }
        packet.flags.hurry(next.is_urgent);
        flow.arm(&mut ctx.at(ctx.now + Time(1)), slot);
        if self.rare.is_some() {
            self.charge_limiter(ctx.world, packet.dst, ctx.now, u64::from(size));
        }
        Some((packet, concerns_others))
    }

    /// A flow that has sent a packet goes to the end of its line, if it can send more; returns the line. Unless it goes on at once, as `goes_on` says of the instant from which on it may.
    #[inline(always)]
    fn line_up(
        &mut self,
        world: &World,
        slot: u32,
        packet: &Packet,
        concerns_others: bool,
        goes_on: impl FnOnce(Time) -> bool,
    ) -> Option<u8> {
        let Host { flows, decider, stopped, .. } = self;
        let flow = flows[slot as usize].as_mut()?;
        let from = flow.ready(world, decider.as_deref(), *stopped);
        if from.is_some_and(goes_on) {
            return None;
        }
        flow.in_turn = from.is_some();
        let lane = flow.lane;
        if flow.in_turn {
            self.turns.push(lane, slot);
        } else if flow.sender.is_done() {
            self.leaving = Some(slot);
        }
        if concerns_others {
            self.offer(world, world.numbering.flow(packet.flow));
        }
        Some(lane)
    }

    #[inline(always)]
    fn on_ack(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.control_received += 1;
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        if flow.sender.learns() {
            return self.learn(ctx, packet);
        }
        let newly = flow.sender.note(&ctx.world.transport, &answer(ctx.now, packet));
        let is_done = flow.sender.is_done();
        if self.decider.as_ref().is_some_and(|decider| decider.listens()) {
            let feedback = flow.sender.tell(&ctx.world.transport, answer(ctx.now, packet), newly);
            self.heed(ctx, packet.slot, &feedback);
        }
        if is_done {
            self.finish(ctx, packet.slot);
        } else {
            self.take_turns(ctx.world, packet.slot);
        }
    }

    /// An ACK arrived from which the flow's sender learns.
    #[inline(never)]
    fn learn(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if ctx.world.numbering.has_subflows() {
            return self.on_answer_to_subflow(ctx, packet);
        }
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        flow.hear(ctx.world, packet);
        let feedback = flow.sender.on_ack(&ctx.world.transport, answer(ctx.now, packet));
        let losses = flow.sender.find_losses(&ctx.world.transport, ctx.now);
        let is_done = flow.sender.is_done();
        self.heed(ctx, packet.slot, &feedback);
        if let Some(losses) = losses {
            self.heed(ctx, packet.slot, &losses);
        }
        if is_done {
            self.finish(ctx, packet.slot);
        } else {
            self.go_on(ctx, packet.slot);
        }
    }

    fn on_nack(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.control_received += 1;
        if ctx.world.numbering.has_subflows() {
            return self.on_answer_to_subflow(ctx, packet);
        }
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        let feedback = flow.sender.on_nack(&ctx.world.transport, answer(ctx.now, packet));
        self.heed(ctx, packet.slot, &feedback);
        self.go_on(ctx, packet.slot);
    }

    /// The receiver of a flow tells of congestion.
    #[inline(never)]
    fn on_cnp(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.control_received += 1;
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        if let Some(feedback) = flow.sender.on_cnp(&ctx.world.transport, ctx.now) {
            self.heed(ctx, packet.slot, &feedback);
        }
        self.go_on(ctx, packet.slot);
    }

    /// A flow may be able to send again, and its timer may have to fire earlier than it would.
    #[inline(always)]
    fn go_on(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) {
        if let Some(flow) = &mut self.flows[slot as usize] {
            flow.arm(ctx, slot);
        }
        self.take_turns(ctx.world, slot);
    }

    /// What a flow's sender learnt goes to whoever chooses the flow's path.
    #[inline]
    fn heed(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32, feedback: &Feedback) {
        let Some(decider) = self.decider.as_mut().filter(|decider| decider.listens()) else { return };
        let Some(flow) = &mut self.flows[slot as usize] else { return };
        let tags = || ctx.world.routes(feedback.now).tags(ctx.id, flow.dst);
        let (advice, settled) = decider.on_feedback(flow.at, feedback, tags, &mut self.random);
        flow.settled = settled.filter(|_| !flow.sender.knows_paths());
        match advice {
            Advice::Continue => {}
            Advice::PauseUntil(limit) => {
                ctx.timer(limit, Message::PauseLimit { slot, flow: flow.at.key.flow });
            }
        }
    }

    /// A packet of a flow met a cut link: whoever chooses the flow's path chooses another one.
    fn leave_path(&mut self, world: &World, id: u32, slot: u32, feedback: &Feedback) {
        let (Some(decider), Some(flow)) = (&mut self.decider, &mut self.flows[slot as usize]) else { return };
        let tags = || world.routes(feedback.now).tags(id, flow.dst);
        flow.settled = None;
        decider.on_unreachable(flow.at, feedback, tags, &mut self.random);
    }

    /// Puts a flow that may send again into the line.
    #[inline(always)]
    fn take_turns(&mut self, world: &World, slot: u32) {
        if let Some(flow) = &mut self.flows[slot as usize]
            && !flow.in_turn
            && flow.ready(world, self.decider.as_deref(), self.stopped).is_some()
        {
            flow.in_turn = true;
            self.turns.push(flow.lane, slot);
        }
    }

    fn on_flow_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32, number: u32) {
        let flow = flow_in(&mut self.flows, slot, number).filter(|flow| flow.timer == ctx.now);
        let Some(flow) = flow else { return };
        flow.timer = Time::MAX;
        if let Some(feedback) = flow.sender.on_timer(&ctx.world.transport, ctx.now) {
            if ctx.world.numbering.has_subflows() {
                self.on_subflow_timer(ctx.world, number, &feedback);
            }
            self.heed(ctx, slot, &feedback);
        }
        self.go_on(ctx, slot);
    }

    /// The link of the NIC is cut, or repaired.
    #[cold]
    fn on_link(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, port: u16, is_cut: bool) {
        let Ctx { world, now, .. } = *ctx;
        let wire = &mut ctx.wire();
        match is_cut {
            // What a host has held back has left the NIC's input.
            true => {
                self.nic.cut_link(port, now, std::iter::empty(), |_| false, &world.rules, wire);
            }
            false => self.nic.restore_link(port, now, &world.rules, wire),
        }
    }

    fn on_pause_limit(&mut self, world: &World, now: Time, slot: u32, number: u32) {
        let Some(flow) = flow_in(&mut self.flows, slot, number) else { return };
        if let Some(decider) = &mut self.decider {
            decider.on_deadline(flow.at, now);
        }
        self.take_turns(world, slot);
    }

    /// Hands in what is known of flows that ended, if there are many of them.
    fn hand_in_many(&mut self, world: &World, id: u32) {
        if self.sent.len() >= HANDED_IN {
            self.hand_in(world, id);
        }
    }

    /// Hands in what is known of flows that ended or were given up.
    #[cold]
    pub(crate) fn hand_in(&mut self, world: &World, id: u32) {
        world.watch.sent.extend(self.sent.drain(..).map(|sent| sent.half(id)));
        if let Some(departed) = &mut self.departed {
            world.watch.gaps.extend(departed.records.drain(..));
        }
    }

    /// Takes out how many headers of a flow came back after it was handed in.
    pub(crate) fn take_late_returns(&mut self, flow: u32) -> u32 {
        self.rare.as_mut().and_then(|rare| rare.late_returns.remove(&flow)).unwrap_or(0)
    }

    /// The least of the flows of which headers came back and nothing else is known.
    pub(crate) fn first_stray(&self) -> Option<u32> {
        self.rare.as_ref().and_then(|rare| rare.late_returns.keys().min().copied())
    }

    /// The next message of the server whose work this host takes over when the run has ended.
    pub(crate) fn take_back(&mut self, upcoming: Option<Job>) {
        self.upcoming = upcoming.map(Box::new);
    }

    /// Whether some of its work has not begun, or has not been done.
    pub(crate) fn has_work_left(&self) -> bool {
        self.upcoming.is_some() || self.work.unfinished().is_some()
    }

    /// Records the flows that have not ended.
    pub(crate) fn give_up(&mut self) {
        for (number, connected) in self.connections.take().into_iter().flat_map(|connections| *connections) {
            if let Some((record, gaps)) = self.end_all(number, &connected, None) {
                self.write_down(&record, gaps);
            }
        }
        for flow in self.flows.drain(..).flatten() {
            let counts = self.decider.as_ref().map(|decider| decider.counts(flow.at));
            let counts = flow.counts(counts, None);
            if let Some(departed) = &mut self.departed {
                departed.records.extend(flow.gaps());
            }
            self.sent.push(Sent::new(&flow.record(None, counts)));
        }
    }
}

/// What an ACK or NACK says to the sender.
#[inline(always)]
fn answer(now: Time, packet: &Packet) -> Ack {
    Ack {
        now,
        seq: packet.seq,
        cumulative: packet.aux,
        sent: packet.sent,
        way: Time(u64::from(packet.way)),
        hops: u32::from(packet.trail.hops()),
        marked: packet.flags.is_marked(),
        tag: packet.tag,
    }
}

/// The flow in a slot, unless another one has taken it since.
#[inline]
fn flow_in(flows: &mut [Option<Flow>], slot: u32, number: u32) -> Option<&mut Flow> {
    flows.get_mut(slot as usize)?.as_mut().filter(|flow| flow.at.key.flow == number)
}

impl Flow {
    /// An ACK is about to be told to the sender, and before it what switches have written on the packet that it answers.
    #[inline]
    fn hear(&mut self, world: &World, ack: &Packet) {
        let Some(telemetry) = &world.telemetry else { return };
        telemetry.take(ack, |stamps| {
            self.sender.hear(stamps.iter().map(|&Stamp { channel, queued, sent, at, rate }| LinkState {
                channel,
                queued,
                sent,
                at,
                rate,
            }));
        });
    }

    /// Sets the timer if it must fire earlier than it would. One that fires too early is set again then.
    #[inline(always)]
    fn arm(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) {
        if self.sender.learns()
            && let Some(deadline) = self.sender.deadline(&ctx.world.transport)
            && deadline.max(ctx.now) < self.timer
        {
            self.timer = deadline.max(ctx.now);
            ctx.timer(self.timer, Message::FlowTimer { slot, flow: self.at.key.flow });
        }
    }

    /// The path of the packet with so much payload that it sends at `at`: as its congestion control says, or else routing.
    #[inline(never)]
    fn choose_path(
        &mut self,
        world: &World,
        decider: &mut Option<Box<Decider>>,
        random: &mut Stream,
        payload: u32,
        at: Time,
    ) -> u32 {
        if let Some(path) = self.sender.path(&world.transport, |p| random.random_bool(p)) {
            return path;
        }
        let Some(decider) = decider else { return 0 };
        let (src, dst) = (self.at.key.src, self.dst);
        let tags = || world.routes(at).tags(src, dst);
        let tag = decider.tag(self.at, payload, at, tags, random);
        if !self.sender.knows_paths() {
            self.settled = decider.settled(self.at, self.sender.oldest());
        }
        tag.bits()
    }

    /// Whether it can send, and from when on.
    #[inline(always)]
    fn ready(&self, world: &World, decider: Option<&Decider>, stopped: u8) -> Option<Time> {
        let from = self.sender.ready(&world.transport)?;
        if stopped >> self.class & 1 != 0 {
            return None;
        }
        if let Some(halt) = &self.halt
            && !halt.may_send(self.sender.next(), self.sender.oldest())
            && (halt.credit == 0 || !self.sender.must_resend())
        {
            return None;
        }
        // A draining flow still repeats what was lost: otherwise it would never be empty.
        let may_send = self.settled.is_some()
            || decider
                .is_none_or(|decider| decider.may_send(self.at, self.sender.next(), self.sender.oldest()))
            || self.sender.must_resend();
        may_send.then_some(from)
    }

    /// What was done with it, by the host's decider or by switches.
    fn counts(&self, counts: Option<FlowCounts>, now: Option<Time>) -> FlowCounts {
        let counts = counts.unwrap_or_default();
        let Some(halt) = &self.halt else { return counts };
        let (drains, drain_time) = halt.counts(now);
        FlowCounts { drains: counts.drains + drains, drain_time: counts.drain_time + drain_time, ..counts }
    }

    /// The gaps between its packets, if they are counted.
    fn gaps(&self) -> impl Iterator<Item = GapRecord> + '_ {
        let departures = self.departures.iter();
        departures.flat_map(|departures| departures.records(self.at.key.src, self.at.key.flow))
    }

    /// What is known at the sender; the receiver's part is added later.
    fn record(&self, done: Option<Time>, counts: FlowCounts) -> FlowRecord {
        let FlowCounts { decisions, drains, drain_time } = counts;
        FlowRecord {
            dst: self.dst,
            flow: self.at.key.flow,
            group: self.group,
            class: self.class,
            stream: self.is_stream,
            cnms: self.cnms,
            cnps: self.sender.counts.cnps,
            bytes: self.bytes.0,
            start: self.start,
            sender_fct: done.map(|now| now - self.start),
            idle_fct: self.idle_fct,
            packets: self.sender.counts.packets,
            returns: self.sender.counts.returns,
            retransmissions: self.sender.counts.retransmissions,
            timeouts: self.sender.counts.timeouts,
            drains,
            drain_time,
            flowlets: self.departures.as_ref().map_or(0, |departures| departures.flowlets()),
            stretched: self.departures.as_ref().map_or(0, |departures| departures.stretched()),
            decisions: decisions.taken,
            deviations: decisions.deviating,
            ..FlowRecord::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_fabric::Port;
    use netloom_topology::Link;
    use std::collections::VecDeque;

    #[test]
    fn an_idle_host_takes_less_than_2_kib() {
        // A lane's head, tail and bytes.
        const LANE: usize = 16;
        // The host, its port with three lanes, its line of turns, its NIC's word of waiting bits, its turns in the engine's windows (at most 256 slots of 4 bytes), its link with two
        // channels in the port lists, and its place in the route table.
        let turns = size_of::<VecDeque<u32>>();
        let idle = size_of::<Host>()
            + size_of::<Port>()
            + 3 * LANE
            + turns
            + 8
            + 256 * 4
            + size_of::<Link>()
            + 2 * 4
            + 12;
        assert!(idle < 2048, "{idle}");
    }
}
