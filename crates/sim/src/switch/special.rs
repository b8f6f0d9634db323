//! Switches with protocols, samples or changing routes.

use netloom_engine::{Hint, Scheduler};
use netloom_fabric::{Packet, PortQueue};
use netloom_routing::FastPath;
use netloom_topology::PortId;
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::at_switches::{Handling, Route};
use crate::protocol::{at_switches, facts};
use crate::switch::next_hop_cache::NextHopHint;
use crate::switch::queueing::Queueing;
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

    /// [`Self::advance`] of a switch that may take samples, report, or notify sources at the moment of a cut.
    pub(crate) fn advance_specially(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        if !self.protocols.unreachable.is_empty() {
            self.meet_cuts(&mut ctx.at(ctx.now.saturating_sub(Time(1))));
        }
        if self.sampler.is_some() {
            self.sample(ctx);
        }
        if self.protocols.reports.is_some() {
            return self.advance_and_report(ctx);
        }
        let next = self.ports.advance(ctx.now, &ctx.world.rules, &mut ctx.wire());
        match ctx.world.rules.is_lossless() {
            true => next,
            false => next.map(|next| next.min(self.protocols.unreachable.next_at(&self.ports))),
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
            Message::Protocol(timer) => {
                // It may send what it has held back.
                self.ports.settle(ctx.now, &ctx.world.rules, &mut ctx.wire());
                at_switches::on_timer(self, ctx, timer);
            }
            Message::Link { port, is_cut } => self.on_link(ctx, port, is_cut),
            Message::Grant(credit) => {
                self.ports.settle(ctx.now, &ctx.world.rules, &mut ctx.wire());
                self.ports.on_credit(credit, ctx.now, &ctx.world.rules, &mut ctx.wire());
            }
            _ => unreachable!("switches set no other timers"),
        }
    }

    /// Sends a packet on where protocols have a say in routes, and that is all.
    #[inline(always)]
    pub(crate) fn forward_routed<Q: Queueing>(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
    ) {
        if hint == NextHopHint::NONE && self.takes_link_signal(&mut ctx.again(), packet) {
            return;
        }
        self.last_event = ctx.now;
        if Q::IS_LOSSLESS {
            self.ports.settle(ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
        if let Some(to) = self.route(ctx, packet, hint) {
            Q::enqueue(self, ctx, to, packet);
        }
    }

    /// Takes a packet that is of the link; `false`: it is none.
    // Packets that go on have a hint, if it is only that they do.
    #[cold]
    #[inline(never)]
    fn takes_link_signal(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) -> bool {
        let is_of_the_link = packet.is_of_the_link();
        if is_of_the_link {
            self.on_link_signal(ctx, packet);
        }
        is_of_the_link
    }

    /// The same with all that few runs need.
    #[inline(never)]
    pub(crate) fn forward_specially<Q: Queueing>(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) {
        if packet.is_of_the_link() {
            return self.on_link_signal(ctx, packet);
        }
        self.last_event = ctx.now;
        if self.look_round(ctx, packet) == Handling::Taken {
            return;
        }
        if let Some(to) = self.route(ctx, packet, NextHopHint::NONE)
            && at_switches::before_queue(self, ctx, to.port(), packet) == Handling::GoesOn
        {
            Q::enqueue(self, ctx, to, packet);
        }
    }

    /// How a packet leaves of which protocols have to see; none if one of them has seen to it.
    #[inline(always)]
    fn route(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
    ) -> Option<PortQueue> {
        // Of packets that protocols may take it is not known how they leave.
        if hint.is_open() {
            match at_switches::on_packet(self, ctx, packet) {
                Route::Open => {}
                Route::To(to) => return Some(to),
                Route::Taken => return None,
            }
        }
        match at_switches::route(self, ctx, packet, hint) {
            Route::Open => Some(self.leaving(ctx, packet, packet.tag, hint)),
            Route::To(to) => Some(to),
            Route::Taken => None,
        }
    }

    /// How a packet leaves: as its hint says or, without one, by its tag if that were `tag`. Its own remains, unless routing writes one and `tag` is its own.
    #[inline(always)]
    pub(crate) fn leaving(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        tag: u32,
        hint: NextHopHint,
    ) -> PortQueue {
        match hint.port_queue() {
            Some(to) => to,
            None => self.leaving_by(&mut ctx.again(), packet, tag),
        }
    }

    /// [`Self::leaving`] without a hint.
    #[inline(never)]
    fn leaving_by(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        tag: u32,
    ) -> PortQueue {
        let own = std::mem::replace(&mut packet.tag, tag);
        let port = self.choose_quickly(ctx, packet);
        if own != tag {
            packet.tag = own;
        }
        self.ports.port_queue(port, packet, &ctx.world.rules)
    }

    /// What few runs need when a packet comes: samples that are due, links that are cut, other routes.
    #[inline(never)]
    fn look_round(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) -> Handling {
        if !self.protocols.unreachable.is_empty() {
            self.meet_cuts(ctx);
        }
        self.look_back(ctx, packet);
        if ctx.world.rules.is_lossless() {
            self.ports.settle(ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
        if !ctx.world.epochs.is_empty() {
            self.take_new_routes(ctx.world, ctx.id, ctx.now);
            if self.has_lost(ctx.world, packet.dst) {
                self.discard(ctx, packet);
                return Handling::Taken;
            }
        }
        Handling::GoesOn
    }

    /// [`Self::choose_specially`], which is not called where one minimal port leads on, or the label of a path or the packet's hash says which.
    #[inline(always)]
    pub(crate) fn choose_quickly(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) -> PortId {
        let forwarding = &ctx.world.forwarding;
        if self.duties == Duties::Routes && forwarding.is_minimal() {
            match forwarding.table().in_row(self.row).only_port(packet.dst) {
                Ok(port) => return port,
                Err(set) => {
                    let several = forwarding.table().set(self.row, set);
                    match (self.path_selector.fast_path(), packet.is_data()) {
                        (FastPath::Label, true) => {
                            let port = self.path_selector.labelled(packet.tag, several);
                            packet.note_port(port);
                            return port;
                        }
                        (FastPath::None, _) | (_, true) => {}
                        (_, false) => {
                            return self.path_selector.port_of_hash(packet.seen_by_hash(), several);
                        }
                    }
                }
            }
        }
        self.choose_specially(ctx, packet)
    }

    /// The port that a packet takes, among the minimal ones or beyond them.
    #[inline(never)]
    pub(crate) fn choose_specially(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) -> PortId {
        let forwarding = ctx.world.epochs.forwarding(self.epoch, &ctx.world.forwarding);
        self.choose(ctx, forwarding, packet)
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

    /// Whether a host is attached to this switch.
    #[inline(always)]
    pub(crate) fn is_edge_of(&self, world: &World, host: u32) -> bool {
        world.forwarding.table().is_attached(self.row, host)
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
        if self.sampler.is_some() || self.gap_monitor.is_some() || self.protocols.reports.is_some() {
            self.sample_and_report(&mut ctx.again(), packet);
        }
    }

    #[inline(never)]
    pub(crate) fn sample_and_report(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if self.sampler.is_some() {
            self.sample(ctx);
            self.trace(ctx.now, packet);
        }
        if packet.is_data()
            && let Some(gap_monitor) = &mut self.gap_monitor
        {
            gap_monitor.see(ctx.world, (ctx.id, self.row), ctx.now, packet);
        }
        if self.protocols.reports.is_some() {
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
