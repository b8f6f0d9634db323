//! What a NIC with several ports that are one knows of them.

use netloom_fabric::{Packet, PacketKind, Ports};
use netloom_topology::HostId;
use netloom_units::Time;
use netloom_units::random::{self, mix};
use netloom_workload::{PortSelection, by_hash};
use rand::Rng;
use rustc_hash::FxHashMap;

use crate::host::flow::Flow;
use crate::world::World;

/// Which ports a NIC takes.
#[derive(Debug)]
pub(crate) struct PortSelector {
    pub(crate) selection: PortSelection,
    /// Number of ports, at most 64.
    pub(crate) count: u16,
    /// What the run's seed adds to what is hashed: other seeds, other ports of the same flows.
    salt: u64,
    /// The port whose turn it is.
    next: u16,
    /// The port by which a packet has come last: answers leave by it.
    pub(crate) arrived: u16,
    /// The port of another NIC from which it has come, a host of the network.
    pub(crate) arrived_from: HostId,
    /// Per port, at which of the ports of other NICs the last packet arrives that left by it in turn.
    landed: Box<[u16]>,
    /// The tags of the next packets of flows, by slot, where the port follows from the tag.
    pub(crate) drawn: FxHashMap<u32, u32>,
}

impl PortSelector {
    /// One for a NIC, if it has several ports.
    pub(crate) fn new(world: &World, count: usize) -> Option<Box<Self>> {
        let selection = world.port_selection().filter(|_| count > 1)?;
        let count = u16::try_from(count).expect("an endpoint has 64 ports at most: Servers::network");
        let landed = (0..count).map(|port| (port + count - 1) % count).collect();
        let drawn = FxHashMap::default();
        let salt = random::Node::Ports.stream(world.wiring.seed, 0).next_u64();
        Some(Box::new(PortSelector {
            selection,
            count,
            salt,
            next: 0,
            arrived: 0,
            arrived_from: 0,
            landed,
            drawn,
        }))
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
            PortSelection::Flow => {
                by_hash(mix((u64::from(key.src) << 32 | u64::from(key.flow)) ^ self.salt), ports())
            }
            PortSelection::RoundRobin => self.in_turn().find(|port| leads >> port & 1 == 1),
            PortSelection::Entropy => {
                self.drawn.get(&slot).and_then(|&tag| by_hash(mix(u64::from(tag)), ports()))
            }
            PortSelection::LeastLoaded => None,
        }
    }

    /// The port of the other NIC at which a packet arrives that leaves by `port`.
    pub(crate) fn landing(&mut self, world: &World, packet: &Packet, port: u16, now: Time) -> u16 {
        let may_be = world.landings((packet.src, packet.dst), port, self.count, now);
        let is_one = |landing: &u16| may_be >> landing & 1 == 1;
        let turns = self.selection.is_per_packet() && world.routing.scatters();
        if turns && self.selection != PortSelection::Entropy && packet.kind == PacketKind::Data {
            let last = &mut self.landed[usize::from(port)];
            *last = (1..=self.count).map(|step| (*last + step) % self.count).find(is_one).unwrap_or(port);
            return *last;
        }
        let key = match self.selection {
            PortSelection::Entropy => packet.tag.into(),
            _ => u64::from(packet.src) << 32 | u64::from(packet.flow),
        };
        // Another hash than that of the port by which it leaves.
        by_hash(mix(mix(key ^ self.salt)) ^ u64::from(port), (0..self.count).filter(is_one)).unwrap_or(port)
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
