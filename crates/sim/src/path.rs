//! The idle path between two hosts and the closed forms that follow from it.

use netloom_routing::RouteTable;
use netloom_topology::{Channel, ChannelId, HostId, Network, PortId};
use netloom_transport::{PathFacts, TransportOptions};
use netloom_units::{Bytes, Rate, Time, narrow};
use rand::seq::SliceRandom;
use rand::{Rng, RngExt};
use rustc_hash::FxHashSet;

use crate::world::World;

/// Number of path labels between two hosts of a tree: one per choice of up ports along the path.
pub(crate) fn labels(network: &Network, table: &RouteTable, src: HostId, dst: HostId) -> u32 {
    let (mut labels, mut here) = (1u32, network.edge_switch(src));
    while !network.is_host(here) {
        let ports = table.candidates(here, dst).ports;
        labels = labels.saturating_mul(narrow::<u32>(ports.len()));
        here = network.channel(network.ports(here)[usize::from(ports[0])]).to;
    }
    labels
}

impl World {
    /// Whether packets from one host to the other can take one path only, and those back, too.
    pub(crate) fn has_one_path(&self, one: HostId, other: HostId) -> bool {
        let is_only = |src: HostId, dst: HostId| {
            self.network.edge_switch(src) != src
                && labels(&self.network, self.forwarding.table(), src, dst) == 1
        };
        self.forwarding.is_minimal() && is_only(one, other) && is_only(other, one)
    }
}

/// Most labels of which all are looked at.
const MANY_LABELS: u32 = 1 << 12;

/// Most pairs of hosts whose paths are looked at for the longest one.
const MANY_PAIRS: usize = 1 << 16;

/// At most `most` labels, ascending, by which packets between two hosts of a tree take different paths: one for each path, or for each path of a
/// random selection if there are more. Labels and paths are not the same where links are cut, or where several links lead down to the same switch:
/// switches then read the same digit of different labels.
pub(crate) fn distinct_labels(
    network: &Network,
    table: &RouteTable,
    ends: (HostId, HostId),
    most: u32,
    random: &mut impl Rng,
) -> Vec<u32> {
    let below = labels_below(network, table, ends);
    let mut paths = FxHashSet::default();
    let mut is_new = |label: &u32| paths.insert(ports_by_label(network, table, ends, *label));
    let mut labels: Vec<u32> = if below <= MANY_LABELS {
        let mut labels: Vec<u32> = (0..below).filter(&mut is_new).collect();
        labels.shuffle(random);
        labels
    } else {
        // A few draws may meet a path again.
        (0..4 * most).map(|_| random.random_range(0..below)).filter(&mut is_new).take(most as usize).collect()
    };
    labels.truncate(most as usize);
    labels.sort_unstable();
    labels
}

/// A number that all labels of different paths are below. While routes lead to no path, as a cut leaves none, one label is as good as another.
fn labels_below(network: &Network, table: &RouteTable, (src, dst): (HostId, HostId)) -> u32 {
    let (mut below, mut here) = (1u32, network.edge_switch(src));
    while !network.is_host(here) {
        let (ports, level) = (table.candidates(here, dst).ports, network.level(here));
        let Some(&first) = ports.first() else { return 1 };
        if ports.len() > 1 {
            let digits = network.up_stride(level).max(1).saturating_mul(narrow::<u32>(ports.len()));
            // Another switch of the level may have lost fewer links than this one.
            below = below.max(digits).max(network.up_stride(level + 1));
        }
        here = network.channel(network.ports(here)[usize::from(first)]).to;
    }
    below
}

/// The ports along the path of a label, as far as routes lead.
fn ports_by_label(
    network: &Network,
    table: &RouteTable,
    (src, dst): (HostId, HostId),
    label: u32,
) -> Vec<PortId> {
    let (mut path, mut here) = (Vec::new(), network.edge_switch(src));
    while !network.is_host(here) {
        let ports = table.candidates(here, dst).ports;
        if ports.is_empty() {
            break;
        }
        let stride = network.up_stride(network.level(here)).max(1);
        let port = ports[(label / stride) as usize % ports.len()];
        path.push(port);
        here = network.channel(network.ports(here)[usize::from(port)]).to;
    }
    path
}

impl World {
    /// The path between two hosts by which the run begins, with nothing else on it; between NICs of several ports in one network the shortest one.
    pub(crate) fn idle_path(&self, src: HostId, dst: HostId) -> PathProfile {
        let walk = |src, dst| PathProfile::walk(self, self.forwarding.table(), src, dst);
        if !self.ports_are_joined() {
            return walk(src, dst);
        }
        let full = self.transport.packet_size();
        let to = |&src| self.ports_of_nic(&dst).iter().map(move |&dst| walk(src, dst));
        let paths = self.ports_of_nic(&src).iter().flat_map(to);
        paths.min_by_key(|path| path.one_way(full)).unwrap_or_else(|| walk(src, dst))
    }

    /// The round-trip time of a full packet and its ACK on the longest idle path between hosts that reach each other. Hosts of an edge switch whose links are alike are represented by one of
    /// them. Of more than [`MANY_PAIRS`] pairs those from evenly spread sources are looked at.
    pub(crate) fn longest_rtt(&self) -> Option<Time> {
        let (network, table) = (&self.network, self.forwarding.table());
        let mut seen = FxHashSet::default();
        let is_new = |&host: &HostId| {
            let link = network.channel(network.ports(host)[0]);
            seen.insert((link.to, link.rate, link.latency))
        };
        let hosts: Vec<HostId> = (0..self.hosts).filter(is_new).collect();
        let step = (hosts.len() * hosts.len()).div_ceil(MANY_PAIRS);
        let pairs =
            hosts.iter().step_by(step.max(1)).flat_map(|&src| hosts.iter().map(move |&dst| (src, dst)));
        // The hosts of a single switch, of which one represents all.
        let ends = (0, self.hosts.saturating_sub(1));
        let reach = |&(src, dst): &(HostId, HostId)| {
            src != dst && !table.candidates(network.edge_switch(src), dst).ports.is_empty()
        };
        let pairs = pairs.chain([ends]).filter(reach);
        pairs.map(|(src, dst)| self.path_facts(src, &self.idle_path(src, dst)).base_rtt).max()
    }

    /// What the transport knows of such a path.
    pub(crate) fn path_facts(&self, src: HostId, path: &PathProfile) -> PathFacts {
        let TransportOptions { ack_size, ack_processing, .. } = self.transport.options;
        let idle = path.round_trip(self.transport.packet_size(), ack_size);
        PathFacts {
            base_rtt: idle.saturating_add(ack_processing.unwrap_or(Time::ZERO)),
            rate: Rate(path.nic_rate().0.saturating_mul(self.ports_in_use(src))),
            // A receiver that refuses packets discards what a sender believes delivered, even where the fabric loses nothing.
            lossy: self.is_lossy || self.transport.refuses(),
            reorders: self.routing.scatters() || self.scatters_ports(),
            trims: self.fabric.queue.trims(),
        }
    }
}

/// The channels of one minimal path, at their configured rates.
#[derive(Clone, Debug)]
pub struct PathProfile {
    channels: Vec<Hop>,
    /// Bytes after which a switch forwards a packet, under cut-through.
    cut_through: Option<Bytes>,
}

/// One channel of a path.
#[derive(Clone, Copy, Debug)]
struct Hop {
    rate: Rate,
    /// Propagation, and switching at its end.
    latency: Time,
    /// Whether the switch at its end forwards packets while they arrive.
    is_cut_through: bool,
}

impl PathProfile {
    /// The path through the first candidate of every switch.
    pub(crate) fn walk(world: &World, table: &RouteTable, src: HostId, dst: HostId) -> Self {
        let network = &world.network;
        let first: ChannelId = network.ports(src)[0];
        let channels = std::iter::successors(Some(first), |&channel| {
            let here = network.channel(channel).to;
            (here != dst).then(|| network.ports(here)[usize::from(table.candidates(here, dst).ports[0])])
        });
        Self::along(world, channels)
    }

    /// The path of these channels, from a host to another one.
    pub(crate) fn along(world: &World, channels: impl IntoIterator<Item = ChannelId>) -> Self {
        let (network, fabric) = (&world.network, &world.fabric.options);
        let hop = |channel| {
            let Channel { to, rate, latency, .. } = network.channel(channel);
            match to.checked_sub(network.hosts()) {
                None => Hop { rate, latency, is_cut_through: false },
                Some(switch) => Hop {
                    rate,
                    latency: latency + fabric.switch_latency,
                    is_cut_through: rate >= world.wiring.fastest(switch),
                },
            }
        };
        let mut hops = Vec::with_capacity(8);
        hops.extend(channels.into_iter().map(hop));
        PathProfile { channels: hops, cut_through: fabric.cut_through }
    }

    /// The part between the first switch and the last one.
    pub(crate) fn between_switches(&self) -> PathProfile {
        let channels = self.channels[1..self.channels.len() - 1].to_vec();
        PathProfile { channels, cut_through: self.cut_through }
    }

    /// Rate of its slowest channel.
    pub fn slowest_rate(&self) -> Rate {
        self.channels.iter().map(|hop| hop.rate).min().unwrap_or(Rate(1))
    }

    /// Rate of the first channel, the NIC's.
    pub fn nic_rate(&self) -> Rate {
        self.channels[0].rate
    }

    /// Time from the start of a packet's transmission on a channel to the moment when the next one may begin to send it.
    fn pass(&self, hop: &Hop, size: Bytes) -> Time {
        let needed = self.cut_through.filter(|_| hop.is_cut_through).map_or(size, |head| head.min(size));
        hop.rate.serialize(needed) + hop.latency
    }

    /// Time from sending a packet to its arrival on an idle path.
    pub fn one_way(&self, size: Bytes) -> Time {
        self.channels.iter().map(|hop| self.pass(hop, size)).sum()
    }

    /// Time from sending a packet to the arrival of its answer, both on an idle path.
    pub(crate) fn round_trip(&self, packet: Bytes, answer: Bytes) -> Time {
        self.one_way(packet) + self.one_way(answer)
    }

    /// Number of its channels.
    pub fn hops(&self) -> usize {
        self.channels.len()
    }

    /// Time from the start of a packet's transmission to its arrival on an idle path, without what serialisation adds.
    pub fn propagation(&self) -> Time {
        self.channels.iter().map(|hop| hop.latency).sum()
    }

    /// The flow completion time of a flow alone on the path and not limited by its window: `full` packets of the largest size followed
    /// by one of `last` bytes, back to back.
    ///
    /// With equal rates b and packets of P bytes over K channels of delay d this is n·8P/b + (K−1)·8P/b + K·d store and forward;
    /// with cut-through after h bytes it is n·8P/b + (K−1)·8h/b + K·d.
    pub fn ideal_fct(&self, full_packets: u64, full: Bytes, last: Bytes) -> Time {
        // When the first full packet starts on a channel, the longest serialisation so far, and when the last packet may start.
        let (mut first, mut slowest, mut start) = (Time::ZERO, Time::ZERO, Time::ZERO);
        let mut arrival = Time::ZERO;
        for hop in &self.channels {
            slowest = slowest.max(hop.rate.serialize(full));
            // Full packets follow each other at the pace of the slowest channel so far.
            let free = if full_packets > 0 {
                (slowest * (full_packets - 1)).saturating_add(first + hop.rate.serialize(full))
            } else {
                Time::ZERO
            };
            start = start.max(free);
            arrival = start.saturating_add(self.pass(hop, last));
            first += self.pass(hop, full);
            start = arrival;
        }
        arrival
    }
}
