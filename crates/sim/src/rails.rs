//! Servers with several NICs: which host of the network is which NIC of which server, and which ports of a NIC lead where.

use std::sync::Mutex;

use netloom_engine::NodeIndex;
use netloom_fabric::Packet;
use netloom_topology::{HostId, Network, NodeId};
use netloom_units::{Time, narrow};
use netloom_workload::{Bond, NicSelection, PortSelection, Rails};
use rustc_hash::FxHashMap;

use crate::fault::Faults;
use crate::world::World;

/// What all servers share.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) rails: std::sync::Arc<Rails>,
    /// Per receiving server: of how many parts programs' messages are that have fewer than there are rails between the two, by sending server and number. The
    /// sender notes it when it sends, which is long before the first part can arrive; a header would say it.
    few: Vec<Mutex<FxHashMap<(u32, u32), u32>>>,
    /// How the ports of NICs are one, if they are.
    bond: Option<Bonded>,
}

/// NICs whose ports are one.
#[derive(Debug)]
struct Bonded {
    selection: PortSelection,
    /// Per port of a NIC, a host of the network, whose link is cut some time: when NICs do without it.
    left: FxHashMap<HostId, Vec<(Time, Time)>>,
    /// When one of them is left or taken again, ascending.
    changes: Vec<Time>,
}

impl Bonded {
    fn new(bond: Bond, network: &Network, faults: &Faults) -> Self {
        let Bond { port_selection: selection, failover_after: after } = bond;
        let cuts = (0..network.hosts()).map(|host| {
            let cuts = faults.cuts_at(network, host);
            let later =
                cuts.map(|(_, from, until)| (from.saturating_add(after), until.saturating_add(after)));
            (host, later.collect::<Vec<_>>())
        });
        let left: FxHashMap<_, _> = cuts.filter(|(_, cuts)| !cuts.is_empty()).collect();
        let mut changes: Vec<Time> =
            left.values().flatten().flat_map(|&(from, until)| [from, until]).collect();
        changes.sort_unstable();
        Bonded { selection, left, changes }
    }

    fn is_left(&self, port: HostId, now: Time) -> bool {
        let intervals = self.left.get(&port).map_or(&[][..], Vec::as_slice);
        intervals.iter().any(|&(from, until)| from <= now && now < until)
    }
}

impl Servers {
    pub(crate) fn new(rails: std::sync::Arc<Rails>, network: &Network, faults: &Faults) -> Self {
        let few = (0..rails.endpoints()).map(|_| Mutex::default()).collect();
        let bond = rails.bond().map(|bond| Bonded::new(bond, network, faults));
        Servers { rails, few, bond }
    }

    /// The node in which a host of the network lives.
    pub(crate) fn node(&self, host: HostId) -> NodeIndex {
        self.rails.host(self.rails.endpoint(host).0, 0)
    }

    pub(crate) fn note(&self, dst: u32, message: (u32, u32), parts: u32) {
        let mut few = self.few[dst as usize].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        few.insert(message, parts);
    }

    /// Whether the NIC by which a message leaves may depend on its number.
    pub(crate) fn hashes(&self) -> bool {
        matches!(self.rails.nic_selection(), NicSelection::Hash | NicSelection::Gpu)
    }

    /// Whether it is noted of some message of how many parts it is.
    pub(crate) fn has_notes(&self) -> bool {
        let is_empty = |few: &Mutex<FxHashMap<_, _>>| few.lock().is_ok_and(|few| few.is_empty());
        !self.few.iter().all(is_empty)
    }

    /// Of how many parts a program's message is.
    pub(crate) fn parts(&self, dst: u32, message: (u32, u32)) -> u32 {
        if self.rails.nic_selection() != NicSelection::Stripe {
            return 1;
        }
        let mut few = self.few[dst as usize].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        few.remove(&message).unwrap_or_else(|| narrow::<u32>(self.rails.between(message.0, dst).len()))
    }
}

/// A NIC whose ports are one has one address for its transport: that of its first port. On the wire a packet has those of the ports by which it goes, which are in the same plane
/// or anywhere in one network.
impl World {
    /// The hosts of the network that are one NIC with a host: itself alone, unless the NIC has several ports.
    pub(crate) fn ports_of_nic<'a>(&'a self, host: &'a HostId) -> &'a [HostId] {
        self.servers.as_ref().map_or(std::slice::from_ref(host), |servers| {
            let (endpoint, rail) = servers.rails.endpoint(*host);
            servers.rails.hosts(endpoint, rail)
        })
    }

    /// The address of the transport at a host of the network.
    pub(crate) fn address(&self, host: HostId) -> HostId {
        self.servers.as_ref().map_or(host, |servers| servers.rails.first_port(host))
    }

    /// The node that has the ports of a node of the network, when servers have been taken apart.
    pub(crate) fn nic(&self, node: NodeId) -> NodeId {
        if self.network.is_host(node) { self.address(node) } else { node }
    }

    /// A packet as the transport knows it.
    pub(crate) fn off_wire(&self, packet: &Packet) -> Packet {
        match packet.kind.is_of_the_link() {
            true => *packet,
            false => Packet { src: self.address(packet.src), dst: self.address(packet.dst), ..*packet },
        }
    }

    /// The same from a port of its NIC to one of the other NIC.
    pub(crate) fn on_wire(&self, packet: &Packet, (port, landing): (u16, u16)) -> Packet {
        let at_port = |host, port: u16| self.servers().rails.at_port(host, port.into());
        match packet.kind.is_of_the_link() {
            true => *packet,
            false => Packet { src: at_port(packet.src, port), dst: at_port(packet.dst, landing), ..*packet },
        }
    }

    /// The same as it has come from a port of the other NIC.
    pub(crate) fn as_it_came(&self, packet: &Packet, src: HostId) -> Packet {
        let at_port = |host| self.servers().rails.at_port(host, packet.ingress.into());
        match packet.kind.is_of_the_link() {
            true => *packet,
            false => Packet { src, dst: at_port(packet.dst), ..*packet },
        }
    }

    /// Whether each port of a NIC reaches all ports of other NICs.
    pub(crate) fn ports_are_joined(&self) -> bool {
        self.servers.as_ref().is_some_and(|servers| servers.rails.ports_are_joined())
    }

    /// By which ports NICs choose packet by packet or flow by flow, where these are one.
    pub(crate) fn port_selection(&self) -> Option<PortSelection> {
        self.servers.as_ref()?.bond.as_ref().map(|bond| bond.selection)
    }

    /// Whether packets of a flow may be on several ports of a NIC at a time.
    pub(crate) fn scatters_ports(&self) -> bool {
        self.port_selection().is_some_and(PortSelection::is_per_packet)
    }

    /// How many ports of the NIC at a host one flow uses at a time.
    pub(crate) fn ports_in_use(&self, host: HostId) -> u64 {
        if self.scatters_ports() { self.ports_of_nic(&host).len() as u64 } else { 1 }
    }

    /// The first instant after another one at which NICs may find other ports [to lead](Self::ports_to) somewhere, as far as nothing tells them.
    pub(crate) fn next_change_of_ports(&self, now: Time) -> Time {
        let changes = self.servers().bond.as_ref().map_or(&[][..], |bond| &bond.changes);
        let change = changes.get(changes.partition_point(|&at| at <= now)).copied();
        change.unwrap_or(Time::MAX).min(self.epochs.next_after(now).unwrap_or(Time::MAX))
    }

    /// Which of `count` ports of the NIC at `src` lead to that at `dst`, as far as both know: a bit each. All, if none does.
    pub(crate) fn ports_to(&self, (src, dst): (HostId, HostId), count: u16, now: Time) -> u64 {
        let all = u64::MAX >> (u64::BITS - u32::from(count));
        let servers = self.servers();
        let Some(bond) = &servers.bond else { return all };
        if bond.left.is_empty() && self.epochs.is_empty() {
            return all;
        }
        let leads = |port: &u16| match servers.rails.ports_are_joined() {
            true => (0..count).any(|landing| self.leads(bond, (src, *port), (dst, landing), now)),
            false => self.leads(bond, (src, *port), (dst, *port), now),
        };
        match bits((0..count).filter(leads)) {
            0 => all,
            some => some,
        }
    }

    /// At which of `count` ports of the NIC at `dst` a packet may arrive that leaves that at `src` by `port`: a bit each. In one network that at the same switch, if it is up, as the way to it is the
    /// shortest; all, if none is known to be up.
    pub(crate) fn landings(&self, (src, dst): (HostId, HostId), port: u16, count: u16, now: Time) -> u64 {
        let servers = self.servers();
        let Some(bond) = servers.bond.as_ref().filter(|_| servers.rails.ports_are_joined()) else {
            return 1 << port;
        };
        let switch = |host, port: u16| self.network.edge_switch(servers.rails.at_port(host, port.into()));
        let all = u64::MAX >> (u64::BITS - u32::from(count));
        let up = match bond.left.is_empty() && self.epochs.is_empty() {
            true => all,
            false => bits((0..count).filter(|&landing| self.leads(bond, (src, port), (dst, landing), now))),
        };
        let at_switch = switch(src, port);
        let near = up & bits((0..count).filter(|&landing| switch(dst, landing) == at_switch));
        [near, up].into_iter().find(|&ports| ports != 0).unwrap_or(all)
    }

    /// At which of `count` ports of the NIC at `dst` packets of that at `src` may arrive, as far as both know: a bit each.
    pub(crate) fn arrivals(&self, (src, dst): (HostId, HostId), count: u16, now: Time) -> u64 {
        if count == 1 {
            return 1;
        }
        let leads = self.ports_to((src, dst), count, now);
        let from = (0..count).filter(|port| leads >> port & 1 == 1);
        from.fold(0, |all, port| all | self.landings((src, dst), port, count, now))
    }

    /// Whether packets get from a port of one NIC to a port of another one, as far as both know.
    fn leads(&self, bond: &Bonded, from: (HostId, u16), to: (HostId, u16), now: Time) -> bool {
        let [src, dst] = [from, to].map(|(host, port)| self.servers().rails.at_port(host, port.into()));
        let has_way = || {
            let table = self.routes(now).table();
            !table.candidates(self.network.edge_switch(src), dst).ports.is_empty()
        };
        !bond.is_left(src, now) && !bond.is_left(dst, now) && (self.epochs.is_empty() || has_way())
    }
}

/// Ports as a bit each.
fn bits(ports: impl Iterator<Item = u16>) -> u64 {
    ports.fold(0, |bits, port| bits | 1 << port)
}
