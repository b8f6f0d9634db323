//! Interrupt throttling: a host looks at what has come, data and ACKs alike, at most once in an interval. Signals of its link are its NIC's own affair.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_units::Time;

use super::Host;
use crate::model::{Message, World};

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
        world: &World,
        id: u32,
        now: Time,
        interval: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        let interrupts = &mut self.rare.get_or_insert_default().interrupts;
        if interrupts.held.is_empty() && interrupts.opens <= now {
            interrupts.opens = now + interval;
            return self.look_at(world, id, now, packet, out);
        }
        if interrupts.held.is_empty() {
            out.timer(interrupts.opens, Message::Interrupt);
        }
        interrupts.held.push(*packet);
    }

    /// The host looks at all that has come.
    pub(super) fn on_interrupt(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        out: &mut impl Scheduler<Message>,
    ) {
        let Some(interval) = world.transport.options.interrupt_interval else { return };
        let interrupts = &mut self.rare.get_or_insert_default().interrupts;
        interrupts.opens = now + interval;
        self.last_event = now;
        for packet in std::mem::take(&mut interrupts.held) {
            self.look_at(world, id, now, &packet, out);
        }
    }

    /// Out of line: where nothing is coalesced, packets are looked at as they come.
    #[inline(never)]
    fn look_at(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        packet: &Packet,
        out: &mut impl Scheduler<Message>,
    ) {
        self.take_in(world, id, now, packet, out);
    }
}
