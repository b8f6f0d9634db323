//! Flow control at a switch.

use netloom_engine::Scheduler;
use netloom_fabric::{Credit, Packet, PacketKind};

use crate::ctx::Ctx;
use crate::message::Message;
use crate::switch::{Duties, Switch};

impl Switch {
    /// The neighbour says something about the link: the port stops, goes on, or takes credit. Or it says something of its own links.
    #[inline(never)]
    pub(crate) fn on_link_signal(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if self.duties == Duties::Special {
            self.look_back(ctx, packet);
        }
        if packet.kind == PacketKind::Report {
            if let Some(reports) = &mut self.protocols.reports {
                reports.on_report(packet);
            }
            return;
        }
        self.last_event = ctx.now;
        let (now, rules) = (ctx.now, &ctx.world.rules);
        let wire = &mut ctx.wire();
        self.ports.settle(now, rules, wire);
        match packet.kind {
            PacketKind::Credit => self.ports.on_credit(Credit::from_packet(packet), now, rules, wire),
            PacketKind::Missed => self.ports.on_missed(Credit::from_packet(packet), now, rules, wire),
            _ => self.ports.on_pause(packet, now, rules, wire),
        }
    }
}
