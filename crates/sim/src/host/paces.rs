//! Until when flows in the line certainly wait for their pace: what is held back by its rate is not asked again with every packet of others.

use netloom_fabric::{Packet, PacketKind};
use netloom_units::Time;

use crate::model::{Message, World};

/// By slot, from when on the flow may send, as it was when it was last asked. What has passed, or was never noted, says nothing: the flow must be
/// asked.
#[derive(Debug, Default)]
pub(super) struct Paces(Vec<Time>);

impl Paces {
    /// When a flow may send, if it certainly may not at `at`.
    #[inline(always)]
    pub(super) fn later(&self, slot: u32, at: Time) -> Option<Time> {
        self.0.get(slot as usize).copied().filter(|&from| from > at)
    }

    /// A flow that was asked at `at` may send from `from` on, unless something happens to it. Where several share their data, something may
    /// happen to one that only another hears of.
    #[inline(always)]
    pub(super) fn note(&mut self, world: &World, slot: u32, at: Time, from: Time) {
        if from > at && !world.numbering.has_subflows() {
            let slot = slot as usize;
            if slot >= self.0.len() {
                self.0.resize(slot + 1, Time::ZERO);
            }
            self.0[slot] = from;
        }
    }

    /// Something happens to the flow in a slot.
    #[inline(always)]
    pub(super) fn forget(&mut self, slot: u32) {
        if let Some(from) = self.0.get_mut(slot as usize) {
            *from = Time::ZERO;
        }
    }

    /// A message is about to be handled.
    #[inline(always)]
    pub(super) fn forget_by(&mut self, message: &Message) {
        match message {
            Message::Packet(packet) => self.forget_by_packet(packet),
            Message::FlowTimer { slot, .. }
            | Message::PauseLimit { slot, .. }
            | Message::StopLimit { slot, .. } => self.forget(*slot),
            _ => self.0.clear(),
        }
    }

    #[inline(always)]
    fn forget_by_packet(&mut self, packet: &Packet) {
        match packet.kind {
            // It speaks of a flow from another host.
            PacketKind::Data | PacketKind::Header => {}
            PacketKind::Xoff | PacketKind::Xon if packet.flags.is_of_class() => self.0.clear(),
            _ => self.forget(packet.slot),
        }
    }
}
