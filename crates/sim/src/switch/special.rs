//! What few switches do besides: they take samples, follow new routes, and take part in protocols.

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, PacketKind};
use netloom_routing::{FlowKey, PacketContext};
use netloom_topology::PortId;
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::facts;
use crate::switch::view::{PortsAt, header_of, take};
use crate::switch::{Duties, Switch};
use crate::world::World;

impl Switch {
    #[inline]
    pub(crate) fn advance(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        if self.duties == Duties::Special {
            return self.advance_specially(&mut ctx.again());
        }
        self.ports.advance(ctx.now, &ctx.world.rules, &mut ctx.wire())
    }

    /// [`Self::advance`] of a switch that may take samples, report, or have something to tell at the moment of a cut.
    pub(crate) fn advance_specially(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        if !self.notified_cuts.is_empty() {
            self.meet_cuts(&mut ctx.at(ctx.now.saturating_sub(Time(1))));
        }
        if self.sampler.is_some() {
            self.sample(ctx);
        }
        if self.reports.is_some() {
            return self.advance_and_report(ctx);
        }
        let next = self.ports.advance(ctx.now, &ctx.world.rules, &mut ctx.wire());
        match ctx.world.rules.is_lossless() {
            true => next,
            false => next.map(|next| next.min(self.notified_cuts.next_at(&self.ports))),
        }
    }

    /// A timer fires.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, timer: &Message) {
        if self.sampler.is_some() {
            self.sample(ctx);
        }
        match *timer {
            Message::Flush { src, flow } => self.on_flush(ctx, FlowKey { src, flow }),
            Message::Link { port, is_cut } => self.on_link(ctx, port, is_cut),
            Message::Grant(credit) => {
                self.ports.settle_if_ordered(ctx.now, &ctx.world.rules, &mut ctx.wire());
                self.ports.on_credit(credit, ctx.now, &ctx.world.rules, &mut ctx.wire());
            }
            _ => unreachable!("switches set no other timers"),
        }
    }

    /// [`Self::forward`] with all that few runs need: samples that are due, congestion notification, flowcuts, and ways other than minimal
    /// ones.
    pub(crate) fn forward_specially(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) {
        if packet.is_of_the_link() {
            return self.on_link_signal(ctx, packet);
        }
        self.last_event = ctx.now;
        if !self.notified_cuts.is_empty() {
            self.meet_cuts(ctx);
        }
        self.look_back(ctx, packet);
        if ctx.world.rules.is_lossless() {
            self.ports.settle_if_ordered(ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
        if !ctx.world.epochs.is_empty() {
            self.take_new_routes(ctx.world, ctx.id, ctx.now);
            if self.has_lost(ctx.world, packet.dst) {
                return self.discard(ctx, packet);
            }
        }
        if packet.kind == PacketKind::Cnm {
            self.learn(ctx.world, ctx.now, packet, packet.ingress, false);
        }
        if packet.kind == PacketKind::FlowAck {
            return self.on_flow_ack(ctx, packet);
        }
        if packet.kind == PacketKind::Word && ctx.world.is_edge_of(ctx.id, packet.dst) {
            return self.on_word(ctx, packet);
        }
        let port = match packet.kind {
            PacketKind::Data if self.path_selector.counts_flight() => self.count_data(ctx, packet),
            PacketKind::Data if ctx.world.routing.uses_conweave() => {
                return self.on_conweave_data(ctx, packet);
            }
            _ => match ctx.world.routing.conga() {
                Some(conga) => self.on_conga_packet(ctx, conga, packet),
                None => self.choose_specially(ctx, packet),
            },
        };
        if !self.notified_cuts.is_empty()
            && let Some(kind) = self.must_notify(ctx.world, ctx.now, port, packet)
        {
            if ctx.world.rules.is_lossless() {
                self.ports.let_go(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
            }
            return self.turn_back(ctx, port, packet, kind);
        }
        if ctx.world.fabric.options.qcn.is_some()
            && packet.kind == PacketKind::Data
            && let Some(feedback) = self.sample_queue(ctx, port, packet)
        {
            self.notify(ctx, port, packet, feedback);
        }
        self.enqueue(ctx, port, packet);
    }

    /// The port that a packet takes, among the minimal ones or beyond them.
    pub(crate) fn choose_specially(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) -> PortId {
        let Ctx { world, id, .. } = *ctx;
        let forwarding = world.epochs.forwarding(self.epoch, &world.forwarding);
        if forwarding.is_minimal() {
            return self.choose(ctx, forwarding, packet);
        }
        let header = header_of(world, packet);
        let Switch { ports, path_selector, draws, reports, .. } = self;
        let mut view = PortsAt { ports, reports: reports.as_deref(), ctx: ctx.again() };
        let hop =
            path_selector.onward(PacketContext { forwarding, here: id, header: &header }, &mut view, draws);
        take(packet, hop)
    }

    /// Goes by the routes of `now`. Where its ports have become other ones, what it knew of them is gone.
    pub(crate) fn take_new_routes(&mut self, world: &World, id: u32, now: Time) {
        while world.epochs.begins(self.epoch + 1).is_some_and(|from| from <= now) {
            let table = |epoch| world.epochs.forwarding(epoch, &world.forwarding).table();
            if !table(self.epoch).agrees_at(id, table(self.epoch + 1)) {
                self.path_selector.forget(&world.routing);
            }
            self.epoch += 1;
            self.row = table(self.epoch).row(id);
        }
    }

    /// Whether routes have led to a host and do no more.
    pub(crate) fn has_lost(&self, world: &World, host: u32) -> bool {
        let table = || world.epochs.forwarding(self.epoch, &world.forwarding).table();
        !world.epochs.is_empty() && table().candidates_in_row(self.row, host).ports.is_empty()
    }

    /// A packet ends here, as no route leads on.
    #[cold]
    pub(crate) fn discard(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if ctx.world.rules.is_lossless() {
            self.ports.let_go(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
        self.ports.discard(packet);
    }

    /// Takes the samples, and makes the reports, that are due up to `now`, when a packet has come.
    #[inline(always)]
    pub(crate) fn look_back(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if self.sampler.is_some() || self.gap_monitor.is_some() || self.reports.is_some() {
            self.sample_and_report(&mut ctx.again(), packet);
        }
    }

    #[inline(never)]
    pub(crate) fn sample_and_report(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if self.sampler.is_some() {
            self.sample(ctx);
            self.trace(ctx.now, packet);
        }
        if let Some(gap_monitor) = self.gap_monitor.as_mut().filter(|_| packet.is_data()) {
            gap_monitor.see(ctx.world, ctx.id, ctx.now, packet);
        }
        if self.reports.is_some() {
            self.report(ctx);
        }
    }

    /// Notes that a packet has come.
    pub(crate) fn trace(&mut self, now: Time, packet: &Packet) {
        if let Some(sampler) = &mut self.sampler {
            sampler.see(now, packet);
        }
    }

    /// Takes the samples that are due up to `now`.
    pub(crate) fn sample(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Switch { ports, sampler: Some(sampler), .. } = self else { return };
        while let Some(instant) = sampler.due(ctx.now) {
            let next = ports.advance(instant, &ctx.world.rules, &mut ctx.wire());
            if sampler.look(ports, instant) && next.is_none() {
                sampler.skip(ctx.now);
            }
        }
    }

    /// Sends a control packet on its way, through a port that is known or the one that routing chooses: all that the switch makes leaves by this, and is counted.
    pub(crate) fn send_control(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        port: Option<PortId>,
    ) {
        self.control_sent += 1;
        if self.has_lost(ctx.world, packet.dst) {
            return self.discard(ctx, packet);
        }
        let tag = packet.tag;
        let port = port.unwrap_or_else(|| self.choose_specially(ctx, packet));
        if facts(packet.kind).has_own_tag {
            packet.tag = tag;
        }
        self.enqueue(ctx, port, packet);
    }

    /// A control packet ends here.
    pub(crate) fn absorb(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.control_received += 1;
        if ctx.world.rules.is_lossless() {
            // It leaves its input buffer; what has left before goes first.
            self.ports.advance(ctx.now, &ctx.world.rules, &mut ctx.wire());
            self.ports.absorb(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
    }
}
