//! The credit that a host's receivers grant: whom, when, and what slows that down.

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, PacketKind};
use netloom_topology::HostId;
use netloom_transport::{PathFacts, Rccc};
use netloom_units::memory::push_few;
use netloom_units::{Bytes, Time};
use rand::RngExt;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::message::Message;
use crate::protocol::Timer;
use crate::protocol::packets::REQUEST;
use crate::protocol::pulls::host::rate_towards;
use crate::protocol::pulls::queue::{CreditPulls, PullDue};
use crate::world::World;

/// What is known of the idle path from a sender to its receiver.
fn path_facts(world: &World, src: HostId, dst: HostId) -> PathFacts {
    world.path_facts(src, &world.idle_path(src, dst))
}

/// The round-trip time that a receiver assumes for packets of a sender.
fn network_rtt(world: &World, config: &Rccc, src: HostId, dst: HostId) -> Time {
    config.network_rtt.unwrap_or_else(|| path_facts(world, src, dst).base_rtt)
}

impl Host {
    /// A packet, its header or a request has arrived for a receiver, and says how far its sender should be granted credit.
    pub(super) fn note_target(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        config: &Rccc,
        receiver: u32,
        packet: &Packet,
    ) {
        let is_header = packet.is_header();
        let Host { protocols, receivers, random, .. } = self;
        let credit = protocols.pulls.credit.get_or_insert_with(|| Box::new(CreditPulls::new(ctx.now)));
        if let Some(oversubscribed) = &config.oversubscribed {
            let rtt = || network_rtt(ctx.world, config, packet.src, ctx.id);
            credit.rate.advance(oversubscribed, ctx.now, rtt, || random.random());
            let Packet { flags, .. } = packet;
            credit.rate.on_arrival(is_header, flags.is_marked(), flags.is_at_last_hop());
        }
        // What has come already is not lost.
        if is_header && receivers.active(receiver).receiver.has(packet.seq) {
            return;
        }
        let ahead = || config.quanta_ahead(path_facts(ctx.world, packet.src, ctx.id));
        let repeats = is_header || packet.kind == REQUEST;
        credit.queue.on_target(receiver, packet.pull_target(), repeats, ahead);
        while receiver as usize >= credit.whom.len() {
            push_few(&mut credit.whom, Packet::EMPTY);
        }
        credit.whom[receiver as usize] = *packet;
    }

    /// Sends the PULL for credit whose time has come, and has itself called for the next one.
    pub(super) fn grant(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, config: &Rccc) {
        let Host { protocols, random, .. } = self;
        let Some(credit) = &mut protocols.pulls.credit else { return };
        if credit.pacer.opens <= ctx.now
            && let Some(grant) = credit.queue.next(config)
        {
            let whom = credit.whom[grant.receiver as usize];
            let rate = rate_towards(ctx.world, (whom.src, ctx.id), ctx.now);
            let mut share = 1.0;
            if let Some(oversubscribed) = &config.oversubscribed {
                let rtt = || network_rtt(ctx.world, config, whom.src, ctx.id);
                credit.rate.advance(oversubscribed, ctx.now, rtt, || random.random());
                share = credit.rate.rate();
            }
            if let Some(pcie) = &config.pcie {
                let of_link = (rate, ctx.world.transport.packet_size());
                share = credit.bus.share(pcie, ctx.now, of_link).min(share);
            }
            credit.pacer.opens = ctx.now.saturating_add(config.gap(rate, grant.quanta, share));
            self.send_pull(ctx, &whom, grant.pulled);
        }
        let Some(credit) = &mut self.protocols.pulls.credit else { return };
        if !credit.queue.is_empty()
            && let Some(at) = credit.pacer.arm(ctx.now)
        {
            ctx.timer(at, Message::Protocol(Timer::Pulls(PullDue)));
        }
    }

    /// A data packet has arrived: its header, if it is at a host whose bus has no room for it.
    pub(crate) fn overflows(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
    ) -> Option<Packet> {
        let pcie = ctx.world.transport.credit()?.pcie.as_ref()?;
        let rate = rate_towards(ctx.world, (packet.src, ctx.id), ctx.now);
        let of_link = (rate, ctx.world.transport.packet_size());
        let credit = self.protocols.pulls.credit.get_or_insert_with(|| Box::new(CreditPulls::new(ctx.now)));
        if credit.bus.on_arrival(pcie, ctx.now, of_link, Bytes(packet.size.into())) {
            return None;
        }
        let mut header = Packet { kind: PacketKind::Header, ..*packet };
        header.flags.set_at_last_hop(true);
        Some(header)
    }
}
