//! Servers with several NICs (rails): which hosts of the network are a server's NICs, and how its messages are spread over them.
//!
//! A network knows endpoints with one link each, its hosts. Without what is written here each of them is a host of the workload, too. With
//! it, every `nics` of them are the NICs of one server: the workload addresses servers, and a message, or each part of a striped one, goes
//! from NIC r of the sender, by rail r, to NIC r of the receiver.

use std::collections::BTreeMap;
use std::sync::Arc;

use netloom_topology::{HostId, Network, NodeId};
use netloom_units::random::mix;
use netloom_units::{Bytes, Invalid, Rate, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Servers with several NICs. Each NIC is a host of the network, with its own link, transport and queues; the workload addresses servers.
/// A message arrives at the NICs of the same numbers as those that it leaves by.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Servers {
    /// NICs of a server, 2 to 64. The hosts of the network are a multiple of it.
    pub nics: u32,
    /// Which hosts of the network are a server's NICs.
    pub wiring: Wiring,
    /// Over which of its NICs a server sends a message.
    pub nic_selection: NicSelection,
}

impl Default for Servers {
    fn default() -> Self {
        Servers { nics: 8, wiring: Wiring::default(), nic_selection: NicSelection::default() }
    }
}

/// Which hosts of the network are a server's NICs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wiring {
    /// Consecutive ones: as far as the leaf switches' sizes allow, all NICs of a server are at one leaf. NIC r of server s is host s·k + r.
    #[default]
    SideBySide,
    /// Every k leaf switches with hosts make a group with as many servers as each of them has ports for; NIC r of all of these is at the
    /// group's leaf r. Servers of a group reach each other over one switch.
    RailOptimised,
}

/// Over which of its NICs a server sends a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NicSelection {
    /// Over all of them at once: in parts of whole packets as equal as can be, at most as many as there are packets. The parts of one message go to
    /// NICs in turn, beginning behind the last part of the message before. A message is complete when its last part is.
    #[default]
    Stripe,
    /// Whole messages over one NIC after the other.
    RoundRobin,
    /// Whole messages over the NIC that a hash of sender, receiver and the message's number at the sender names; frames of a stream all over the
    /// same, by sender and receiver.
    Hash,
    /// Whole messages over the NIC with the fewest bytes of messages that have begun and not ended; among equals as `round-robin`. Not for
    /// frames of open loops, which have no end.
    LeastOutstanding,
    /// Whole messages over the NIC of the GPU that they are for, where each GPU has a NIC of its own and the ranks of the workload are GPUs
    /// (`gpu-collective`, `training-step`): what another GPU of the server has to send goes there by the scale-up tier first, as by NCCL's
    /// PXN. Messages of servers, and those of other workloads, go as by `hash`.
    Gpu,
}

/// Most NICs of a server.
const MOST_NICS: u32 = 64;

impl Servers {
    /// Finds every server's NICs on a network; `seed` is that of the hash.
    ///
    /// # Errors
    /// If the network's hosts, or the leaf switches, do not come out even.
    pub fn build(&self, network: &Network, seed: u64) -> Result<Rails, Invalid> {
        let &Servers { nics, wiring, nic_selection } = self;
        let expected = format!("2 to {MOST_NICS}; leave the table `servers` out where each host has one");
        Invalid::unless((2..=MOST_NICS).contains(&nics), "nics", expected, nics)?;
        let hosts = network.hosts();
        let expected =
            || format!("a divisor of the network's {hosts} hosts that leaves at least two servers");
        Invalid::unless(hosts.is_multiple_of(nics) && hosts / nics >= 2, "nics", expected(), nics)?;
        let order = match wiring {
            Wiring::SideBySide => (0..hosts).collect(),
            Wiring::RailOptimised => by_rails(network, nics)?,
        };
        let mut place = vec![0; hosts as usize];
        for (at, &host) in (0..).zip(&order) {
            place[host as usize] = at;
        }
        Ok(Rails { nics, nic_selection, seed, order, place: place.into() })
    }
}

/// All hosts, server by server, where the NICs of a group's servers are at its leaf switches in turn.
fn by_rails(network: &Network, nics: u32) -> Result<Box<[HostId]>, Invalid> {
    let mut leaves: BTreeMap<NodeId, Vec<HostId>> = BTreeMap::new();
    for host in 0..network.hosts() {
        leaves.entry(network.edge_switch(host)).or_default().push(host);
    }
    let leaves: Vec<Vec<HostId>> = leaves.into_values().collect();
    let per_leaf = leaves[0].len();
    let is_even =
        leaves.len().is_multiple_of(nics as usize) && leaves.iter().all(|leaf| leaf.len() == per_leaf);
    let expected = || {
        format!(
            "\"side-by-side\", or a network in which the {} switches with hosts are a multiple of nics = {nics} and have equally many hosts",
            leaves.len()
        )
    };
    Invalid::unless(is_even, "wiring", expected(), "\"rail-optimised\"")?;
    let servers =
        leaves.chunks(nics as usize).flat_map(|group| (0..per_leaf).map(move |server| (group, server)));
    Ok(servers.flat_map(|(group, server)| group.iter().map(move |leaf| leaf[server])).collect())
}

/// The NICs of all servers of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rails {
    nics: u32,
    nic_selection: NicSelection,
    seed: u64,
    /// Hosts of the network, server by server.
    order: Box<[HostId]>,
    /// The place of every host in that order.
    place: Box<[u32]>,
}

impl Rails {
    /// Number of servers.
    pub fn servers(&self) -> u32 {
        narrow::<u32>(self.order.len()) / self.nics
    }

    /// NICs of each.
    pub fn nics(&self) -> u32 {
        self.nics
    }

    /// How messages are spread.
    pub fn nic_selection(&self) -> NicSelection {
        self.nic_selection
    }

    /// The host of the network that is NIC `rail` of a server.
    pub fn nic(&self, server: u32, rail: u32) -> HostId {
        self.order[(server * self.nics + rail) as usize]
    }

    /// The server and the rail of a host of the network.
    pub fn server(&self, host: HostId) -> (u32, u32) {
        let place = self.place[host as usize];
        (place / self.nics, place % self.nics)
    }

    /// The rail of a message by [`NicSelection::Hash`]; `number` is that of the message at its sender.
    #[expect(clippy::cast_possible_truncation, reason = "below `nics`")]
    pub fn hashed(&self, src: u32, dst: u32, number: u32) -> u32 {
        let ends = u64::from(src) << 32 | u64::from(dst);
        let hash = mix(mix(self.seed ^ mix(ends)) ^ u64::from(number));
        // The upper half of a product is as even as the hash (Lemire, Fast Random Integer Generation in an Interval, 2019).
        ((u128::from(hash) * u128::from(self.nics)) >> 64) as u32
    }

    /// The parts of a striped message in packets of `mtu` bytes of payload: a number of bytes for each, all of them whole packets but the last.
    pub fn stripe(&self, bytes: Bytes, mtu: Bytes) -> impl Iterator<Item = Bytes> + use<> {
        let packets = bytes.0.div_ceil(mtu.0).max(1);
        let parts = packets.min(u64::from(self.nics));
        let mut left = bytes.0;
        (0..parts).map(move |part| {
            let own = packets / parts + u64::from(part < packets % parts);
            let bytes = own.saturating_mul(mtu.0).min(left);
            left -= bytes;
            Bytes(bytes)
        })
    }
}

/// Those whom a workload addresses: hosts of the network, or servers with several of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints<'a> {
    pub(crate) network: &'a Network,
    pub(crate) rails: Option<&'a Arc<Rails>>,
}

impl Endpoints<'_> {
    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.rails.map_or(self.network.hosts(), |rails| rails.servers())
    }

    /// What they are called.
    pub(crate) fn word(&self) -> &'static str {
        if self.rails.is_some() { "servers" } else { "hosts" }
    }

    /// The name of one of them.
    pub(crate) fn name(&self, endpoint: u32) -> String {
        match self.rails {
            Some(_) => format!("server {endpoint}"),
            None => format!("host {}", self.network.node_name(endpoint)),
        }
    }

    /// The host of the network that stands for one of them: a server's first NIC.
    fn first(&self, endpoint: u32) -> HostId {
        self.rails.map_or(endpoint, |rails| rails.nic(endpoint, 0))
    }

    /// The switch of one of them, of a server that of its first NIC.
    pub(crate) fn edge_switch(&self, endpoint: u32) -> NodeId {
        self.network.edge_switch(self.first(endpoint))
    }

    /// The rate of all links of one of them together.
    pub(crate) fn rate(&self, endpoint: u32) -> Rate {
        let of_server = |rails: &Arc<Rails>| {
            let rates = (0..rails.nics()).map(|rail| self.network.host_rate(rails.nic(endpoint, rail)).0);
            Rate(rates.fold(0, u64::saturating_add))
        };
        self.rails.map_or_else(|| self.network.host_rate(endpoint), of_server)
    }

    /// Whether lists may call them as the network calls its hosts.
    pub(crate) fn have_names(&self) -> bool {
        self.rails.is_none()
    }

    /// Whether those names come from the network's file, so that a number may be one.
    pub(crate) fn have_own_names(&self) -> bool {
        self.have_names() && self.network.has_own_names()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::network;

    fn rails(servers: Servers, network: &Network) -> Rails {
        servers.build(network, 1).unwrap()
    }

    #[test]
    fn nics_side_by_side_are_consecutive_hosts() {
        let rails = rails(Servers { nics: 4, ..Servers::default() }, &network(24, 6));
        assert_eq!((rails.servers(), rails.nics()), (6, 4));
        for (server, rail) in (0..6).flat_map(|server| (0..4).map(move |rail| (server, rail))) {
            assert_eq!(rails.nic(server, rail), server * 4 + rail);
            assert_eq!(rails.server(server * 4 + rail), (server, rail));
        }
    }

    #[test]
    fn optimised_rails_have_a_leaf_switch_each() {
        // Four leaves of six hosts; two leaves make a group of six servers.
        let network = network(24, 6);
        let servers = Servers { nics: 2, wiring: Wiring::RailOptimised, ..Servers::default() };
        let rails = rails(servers.clone(), &network);
        assert_eq!((rails.nic(0, 0), rails.nic(0, 1), rails.nic(5, 1)), (0, 6, 11));
        assert_eq!((rails.nic(6, 0), rails.nic(11, 1)), (12, 23));
        for server in 0..12 {
            let leaves = [0, 1].map(|rail| network.edge_switch(rails.nic(server, rail)) - 24);
            assert_eq!(leaves, [server / 6 * 2, server / 6 * 2 + 1]);
        }
        let uneven = crate::pattern::tests::network(18, 6);
        let error = servers.build(&uneven, 1).unwrap_err().to_string();
        assert!(
            error.starts_with("wiring: expected \"side-by-side\", or a network in which the 3 switches"),
            "{error}"
        );
        for nics in [0, 1, 5, 24, 65] {
            let error = Servers { nics, ..servers.clone() }.build(&network, 1).unwrap_err().to_string();
            assert!(error.starts_with("nics: expected "), "{error}");
        }
    }

    #[test]
    fn stripes_are_whole_packets_but_for_the_last() {
        let rails = rails(Servers { nics: 4, ..Servers::default() }, &network(24, 6));
        let stripe = |bytes| rails.stripe(Bytes(bytes), Bytes(1000)).map(|part| part.0).collect::<Vec<_>>();
        assert_eq!(stripe(1), [1]);
        assert_eq!(stripe(2500), [1000, 1000, 500]);
        assert_eq!(stripe(4000), [1000, 1000, 1000, 1000]);
        assert_eq!(stripe(8001), [3000, 2000, 2000, 1001]);
        assert_eq!(stripe(u64::MAX).iter().map(|&part| u128::from(part)).sum::<u128>(), u128::from(u64::MAX));
    }

    #[test]
    fn the_hash_is_even() {
        let rails = rails(Servers { nics: 4, ..Servers::default() }, &network(24, 6));
        let mut counts = [0; 4];
        (0..4000).for_each(|number| counts[rails.hashed(1, 2, number) as usize] += 1);
        // A binomial draw of 4000 with p = 1/4: five standard deviations of 27.4.
        assert!(counts.iter().all(|&count| (863..1137).contains(&count)), "{counts:?}");
        assert_ne!(
            (0..64).map(|n| rails.hashed(1, 2, n)).collect::<Vec<_>>(),
            (0..64).map(|n| rails.hashed(2, 1, n)).collect::<Vec<_>>()
        );
    }
}
