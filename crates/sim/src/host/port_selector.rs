//! What a NIC with several ports that are one knows of them.

use netloom_fabric::Ports;
use netloom_units::Time;
use netloom_units::random::mix;
use netloom_workload::{PortSelection, by_hash};
use rustc_hash::FxHashMap;

use crate::host::flow::Flow;
use crate::world::World;

/// Which ports a NIC takes.
#[derive(Debug)]
pub(crate) struct PortSelector {
    pub(crate) selection: PortSelection,
    /// Number of ports, at most 64.
    pub(crate) count: u16,
    /// The port whose turn it is.
    next: u16,
    /// The port by which a packet has come last: answers leave by it.
    pub(crate) arrived: u16,
    /// The tags of the next packets of flows, by slot, where the port follows from the tag.
    pub(crate) drawn: FxHashMap<u32, u32>,
}

impl PortSelector {
    /// One for a NIC, if it has several ports.
    pub(crate) fn new(world: &World, count: usize) -> Option<Box<Self>> {
        let selection = world.port_selection().filter(|_| count > 1)?;
        let count = u16::try_from(count).expect("an endpoint has 64 ports at most: Servers::network");
        Some(Box::new(PortSelector { selection, count, next: 0, arrived: 0, drawn: FxHashMap::default() }))
    }

    /// A new flow takes a slot.
    pub(crate) fn forget(&mut self, slot: u32) {
        self.drawn.remove(&slot);
    }

    /// All ports from the one on whose turn it is.
    fn in_turn(&self) -> impl Iterator<Item = u16> + use<> {
        let (first, count) = (self.next, self.count);
        (0..count).map(move |step| (first + step) % count)
    }

    /// The port of a flow's next packet, if it follows from what is known; none if any port of several may do.
    fn only_port(&self, flow: &Flow, slot: u32, leads: u64) -> Option<u16> {
        let ports = || (0..self.count).filter(move |port| leads >> port & 1 == 1);
        let key = flow.at.key;
        match self.selection {
            PortSelection::Flow => by_hash(mix(u64::from(key.src) << 32 | u64::from(key.flow)), ports()),
            PortSelection::RoundRobin => self.in_turn().find(|port| leads >> port & 1 == 1),
            PortSelection::Entropy => {
                self.drawn.get(&slot).and_then(|&tag| by_hash(mix(u64::from(tag)), ports()))
            }
            PortSelection::LeastLoaded => None,
        }
    }

    /// When a port is free for a flow; never as long as flow control stops it.
    fn free_for(nic: &Ports, port: u16, flow: &Flow) -> Time {
        if nic.may_send(port, flow.queue.into()) { nic.free_at(port) } else { Time::MAX }
    }

    /// When the first port is free that the next packet of a flow may take.
    pub(crate) fn free_at(&self, world: &World, nic: &Ports, flow: &Flow, slot: u32, at: Time) -> Time {
        let leads = world.ports_to((flow.at.key.src, flow.dst), self.count, at);
        if let Some(port) = self.only_port(flow, slot, leads) {
            return Self::free_for(nic, port, flow);
        }
        let ports = (0..self.count).filter(|port| leads >> port & 1 == 1);
        ports.map(|port| Self::free_for(nic, port, flow)).min().unwrap_or(Time::MAX)
    }

    /// The port by which the next packet of a flow leaves at `at`, if one is free; its turn is over then.
    pub(crate) fn take(
        &mut self,
        world: &World,
        nic: &Ports,
        flow: &Flow,
        slot: u32,
        at: Time,
    ) -> Option<u16> {
        let leads = world.ports_to((flow.at.key.src, flow.dst), self.count, at);
        let is_free = |&port: &u16| Self::free_for(nic, port, flow) <= at;
        let port = match self.only_port(flow, slot, leads) {
            Some(port) => Some(port).filter(is_free),
            None => self.in_turn().find(|port| leads >> port & 1 == 1 && is_free(port)),
        };
        self.next = port.map_or(self.next, |port| (port + 1) % self.count);
        port
    }
}
