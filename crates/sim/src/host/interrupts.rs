//! Interrupt throttling: a host looks at what has come, data and ACKs alike, at most once in an interval. Signals of its link are its NIC's own affair.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_units::Time;

use super::Host;
use crate::ctx::Ctx;
use crate::model::Message;

/// What waits for a host to look at it.
#[derive(Debug, Default)]
pub(super) struct Interrupts {
    held: Vec<Packet>,
    /// When the host may look next.
    opens: Time,
}

impl Host {
    /// Packets that have come and that the host has not looked at.
    pub(crate) fn held_back(&self) -> impl Iterator<Item = &Packet> {
        self.rare.iter().flat_map(|rare| &rare.interrupts.held)
    }

    /// A packet has come: the host looks at it at once, or when it may.
    #[inline(never)]
    pub(super) fn on_packet_to_coalesce(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        interval: Time,
        packet: &Packet,
    ) {
        let interrupts = &mut self.rare.get_or_insert_default().interrupts;
        if interrupts.held.is_empty() && interrupts.opens <= ctx.now {
            interrupts.opens = ctx.now + interval;
            return self.look_at(ctx, packet);
        }
        if interrupts.held.is_empty() {
            ctx.timer(interrupts.opens, Message::Interrupt);
        }
        interrupts.held.push(*packet);
    }

    /// The host looks at all that has come.
    pub(super) fn on_interrupt(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Some(interval) = ctx.world.transport.options.interrupt_interval else { return };
        let interrupts = &mut self.rare.get_or_insert_default().interrupts;
        interrupts.opens = ctx.now + interval;
        self.last_event = ctx.now;
        for packet in std::mem::take(&mut interrupts.held) {
            self.look_at(ctx, &packet);
        }
    }

    /// Out of line: where nothing is coalesced, packets are looked at as they come.
    #[inline(never)]
    fn look_at(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.take_in(ctx, packet);
    }
}
