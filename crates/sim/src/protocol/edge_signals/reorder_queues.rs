//! Packets that a flow's last switch holds back.

use std::collections::VecDeque;

use netloom_fabric::Packet;
use netloom_routing::FlowKey;
use netloom_topology::NodeId;
use netloom_units::Time;
use rustc_hash::FxHashMap;

use crate::observe::level::Level;
use crate::protocol::state::SwitchState;
use crate::world::World;

/// How long a switch holds packets of a flow back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FlushDue {
    pub(crate) src: u32,
    pub(crate) flow: u32,
}

/// Packets buffered at a switch.
#[derive(Debug, Default)]
pub(crate) struct ReorderQueues {
    /// Absent until first needed.
    pub(crate) queues: Option<Box<FxHashMap<FlowKey, VecDeque<Packet>>>>,
    pub(crate) bytes: Level,
    /// The signals that a packet has caused, while they are sent.
    pub(crate) signals: Vec<u32>,
}

impl ReorderQueues {
    pub(crate) fn push(&mut self, flow: FlowKey, packet: Packet, now: Time) {
        self.bytes.is(self.bytes.get() + u64::from(packet.size), now);
        self.queues.get_or_insert_default().entry(flow).or_default().push_back(packet);
    }

    pub(crate) fn take(&mut self, flow: FlowKey, now: Time) -> VecDeque<Packet> {
        let packets = self.queues.as_mut().and_then(|queues| queues.remove(&flow)).unwrap_or_default();
        let bytes: u64 = packets.iter().map(|packet| u64::from(packet.size)).sum();
        self.bytes.is(self.bytes.get() - bytes, now);
        packets
    }
}

impl SwitchState for ReorderQueues {
    fn recurs(&self) -> bool {
        self.queues.is_none()
    }

    fn new(_: &World, _: NodeId) -> Self {
        ReorderQueues::default()
    }

    fn buffered(&self) -> impl Iterator<Item = &Packet> {
        self.queues.iter().flat_map(|queues| queues.values()).flatten()
    }
}
