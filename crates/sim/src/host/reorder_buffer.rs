//! Packets that did not come in order: what a host counts of them, and holds back from the transport.

use netloom_fabric::Packet;
use netloom_routing::FlowKey;
use netloom_transport::reorder::Waiting;
use netloom_units::Time;
use rustc_hash::FxHashMap;

use crate::observe::level::Level;

/// What a host knows of packets that did not come in order.
#[derive(Debug, Default)]
pub(crate) struct Reordering {
    /// Packets held ahead of the transport.
    pub(crate) waiting: FxHashMap<FlowKey, Waiting<Packet>>,
    /// Their bytes.
    pub(crate) buffer: Level,
    /// Packets that receivers have taken and that wait for one with a lower number.
    pub(crate) taken: Level,
    /// Packets for which the buffer had no room.
    pub(crate) overflows: u64,
    /// Holds that ended by their timer.
    pub(crate) timeouts: u64,
    /// NACKs sent.
    pub(crate) nacks: u64,
    /// Data packets that had come before.
    pub(crate) duplicates: u64,
    /// Data packets that came early and were discarded.
    pub(crate) refused: u64,
}

impl Reordering {
    /// A receiver has got a packet. Packets of the flow that wait for one with a lower number: `before` and `after` it.
    #[inline]
    pub(crate) fn note_waiting(&mut self, before: u32, after: u32, now: Time) {
        let all = self.taken.get() + u64::from(after) - u64::from(before);
        self.taken.is(all, now);
    }

    /// What is held.
    pub(crate) fn packets(&self) -> impl Iterator<Item = &Packet> {
        self.waiting.values().flat_map(|waiting| waiting.held())
    }

    pub(crate) fn leave(&mut self, packet: &Packet, now: Time) {
        self.buffer.is(self.buffer.get() - u64::from(packet.size), now);
    }
}
