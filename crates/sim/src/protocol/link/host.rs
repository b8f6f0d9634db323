//! Flow control at a host's NIC.

use netloom_engine::Scheduler;
use netloom_fabric::{Credit, Packet, PacketKind};

use crate::ctx::Ctx;
use crate::host::Host;
use crate::message::Message;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::SwitchProtocol;
use crate::protocol::link::Link;

impl HostProtocol for Link {}

impl SwitchProtocol for Link {}

impl Host {
    /// The switch says something about the link: the NIC stops, goes on, or takes credit.
    #[inline(never)]
    pub(crate) fn on_link_signal(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        // By far the most of them.
        if packet.kind == PacketKind::Credit {
            let credit = Credit::from_packet(packet);
            return self.nic.on_credit(credit, ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
        self.on_rare_signal(ctx, packet);
    }

    #[inline(never)]
    fn on_rare_signal(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let (now, rules) = (ctx.now, &ctx.world.rules);
        let wire = &mut ctx.wire();
        match packet.kind {
            PacketKind::Pause => self.nic.on_pause(packet, now, rules, wire),
            PacketKind::Missed => self.nic.on_missed(Credit::from_packet(packet), now, rules, wire),
            kind => unreachable!("{kind:?} does not come to hosts"),
        }
    }
}
