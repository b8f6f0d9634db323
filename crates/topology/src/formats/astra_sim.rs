//! The files of ASTRA-sim's analytical networks (`network.yml`), and the same networks with packets.
//!
//! A file has a list for each of four fields, with a value per dimension: `topology: [ Ring, Switch ]`, `npus_count: [ 4, 2 ]`,
//! `bandwidth: [ 100.0, 50.0 ]` in "GB/s", which are GiB per second, `latency: [ 50.0, 500.0 ]` in nanoseconds.

use std::path::{Path, PathBuf};

use netloom_units::names::{shorten, suggest};
use netloom_units::{Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_saphyr::Spanned;

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::product;
use crate::formats::{Reader, yaml};
use crate::network::{Network, NetworkBuilder, NodeId};
use crate::size::Size;
use crate::topology::BuildContext;

/// The network of a `network.yml` of ASTRA-sim (analytical networks, 599a047), packet by packet: `Ring`, `FullyConnected` and `Switch` in one or several
/// dimensions. Rank r is host r; its first coordinate is the fastest. Ranks that differ in one coordinate only are connected along that dimension: as
/// neighbours of a ring, all pairs, or all to one switch.
/// As in the file's source "GB/s" are GiB per second, times are nanoseconds, every link has the full bandwidth in each direction, and rings have both directions.
///
/// A host has one link here, so a rank (NPU) with links to other ranks is a host and a router, which forwards packets for other ranks. With a single
/// dimension `Switch` hosts are connected to the switch directly, as in a `crossbar`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AstraSimNetwork {
    /// The file; relative paths start at the directory of the scenario.
    pub path: PathBuf,
    /// Rate of the link between a rank and its router. If absent, that of all links of the router together, so that it is not a bottleneck (at most 100 Tbit/s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub npu_rate: Option<Rate>,
    /// Propagation delay of the link between a rank and its router. If absent, none, so that a path has only the latencies of the file's links.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub npu_latency: Option<Time>,
}

/// How the ranks of a dimension are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Block {
    /// Links between neighbours, in both directions.
    Ring,
    /// A link between every two.
    FullyConnected,
    /// A link between every rank and a switch, in each direction.
    Switch,
}

impl Block {
    /// All blocks under the names that files have for them.
    const ALL: [(&str, Block); 3] =
        [("Ring", Block::Ring), ("FullyConnected", Block::FullyConnected), ("Switch", Block::Switch)];

    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, block)| *block == self);
        found.expect("all blocks have names").0
    }
}

/// A dimension of a network.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NetworkDimension {
    /// How its ranks are joined.
    pub block: Block,
    /// How many ranks it has.
    pub count: u32,
    /// Bandwidth of a link in GiB per second.
    pub bandwidth: f64,
    /// Latency of a link in nanoseconds.
    pub latency: f64,
}

impl NetworkDimension {
    /// Bytes per nanosecond.
    pub fn bytes_per_ns(&self) -> f64 {
        self.bandwidth * f64::from(1 << 30) / 1e9
    }

    /// Its links at every rank.
    fn degree(&self) -> u32 {
        match self.block {
            Block::Switch => 1,
            Block::FullyConnected => self.count - 1,
            // Two ranks have one link, which has both directions.
            Block::Ring => 2.min(self.count - 1),
        }
    }

    /// A link of it; rates to whole bits per second, latencies to whole picoseconds.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "saturates; both are checked"
    )]
    fn cable(&self) -> Cable {
        let rate = Rate((self.bytes_per_ns() * 8e9).round() as u64);
        Cable { rate, latency: Time((self.latency * 1e3).round() as u64) }
    }
}

/// A network file (`network.yml`).
#[derive(Clone, Debug, PartialEq)]
pub struct NetworkFile {
    /// Its dimensions, the first one being that of neighbouring ranks.
    pub dimensions: Vec<NetworkDimension>,
}

/// The file's fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fields {
    topology: Spanned<Vec<String>>,
    npus_count: Spanned<Vec<u32>>,
    bandwidth: Spanned<Vec<f64>>,
    latency: Spanned<Vec<f64>>,
}

impl NetworkFile {
    /// Reads `topology`, `npus_count`, `bandwidth` and `latency`, each a list with a value for every dimension.
    ///
    /// # Errors
    /// If the file cannot be read, or a value is missing or makes no sense.
    pub fn read(file: &Path) -> Result<Self, NetworkError> {
        Self::parse(&Reader::open(file, &BuildContext { seed: 0, base_dir: Path::new("") })?)
    }

    fn parse(reader: &Reader) -> Result<Self, NetworkError> {
        let Fields { topology, npus_count, bandwidth, latency } = yaml::read(reader)?;
        let expected = topology.value.len();
        let lengths = [
            ("topology", yaml::line(&topology), expected),
            ("npus_count", yaml::line(&npus_count), npus_count.value.len()),
            ("bandwidth", yaml::line(&bandwidth), bandwidth.value.len()),
            ("latency", yaml::line(&latency), latency.value.len()),
        ];
        for (name, line, found) in lengths {
            if found != expected || found == 0 {
                let expected = expected.max(1);
                let message =
                    format!("{name}: expected {expected} values, one for each dimension, found {found}");
                return Err(reader.error(line, message));
            }
        }
        let block = |name: &String| {
            let known = Block::ALL.iter().find(|(known, _)| known == name);
            known.map(|&(_, block)| block).ok_or_else(|| {
                let advice = suggest(name, Block::ALL.map(|(name, _)| name));
                let message = format!("topology: there is no `{}` ({advice})", shorten(name));
                reader.error(yaml::line(&topology), message)
            })
        };
        let number = |name: &str, line: usize, value: f64, least: f64| {
            let is_valid = value >= least && value < 1e12;
            let message = || format!("{name}: expected a number from {least} on, found {value}");
            is_valid.then_some(value).ok_or_else(|| reader.error(line, message()))
        };
        let mut dimensions = Vec::with_capacity(expected);
        for (at, name) in topology.value.iter().enumerate() {
            let count = npus_count.value[at];
            if !(1..=1 << 16).contains(&count) {
                let message = format!("npus_count: expected a whole number from 1 to 65536, found {count}");
                return Err(reader.error(yaml::line(&npus_count), message));
            }
            dimensions.push(NetworkDimension {
                block: block(name)?,
                count,
                bandwidth: number("bandwidth", yaml::line(&bandwidth), bandwidth.value[at], 1e-9)?,
                latency: number("latency", yaml::line(&latency), latency.value[at], 0.0)?,
            });
        }
        Ok(NetworkFile { dimensions })
    }

    /// The logical dimensions that ASTRA-sim takes for this network.
    pub fn counts(&self) -> Vec<u32> {
        self.dimensions.iter().map(|dimension| dimension.count).collect()
    }
}

impl AstraSimNetwork {
    /// A file whose ranks are limited by nothing but its links.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        AstraSimNetwork { path: path.into(), npu_rate: None, npu_latency: None }
    }

    pub(crate) fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let reader = Reader::open(&self.path, context)?;
        let file = NetworkFile::parse(&reader)?;
        if let Some(dimension) = file.dimensions.iter().find(|dimension| !is_rate(dimension.cable().rate)) {
            let message =
                format!("bandwidth: expected at most 100 Tbit/s, found {} GiB/s", dimension.bandwidth);
            return Err(reader.error(0, message));
        }
        // A dimension of one rank joins nothing.
        let dimensions: Vec<_> = file.dimensions.iter().filter(|dimension| dimension.count > 1).collect();
        match dimensions[..] {
            [switch] if switch.block == Block::Switch => self.star(&reader, switch),
            _ => self.routers(&file.dimensions),
        }
    }

    /// Hosts at one switch.
    fn star(&self, reader: &Reader, switch: &NetworkDimension) -> Result<Network, NetworkError> {
        for (field, is_set) in
            [("npu_rate", self.npu_rate.is_some()), ("npu_latency", self.npu_latency.is_some())]
        {
            let expected =
                || format!("none, as the ranks of {} have no routers but one switch", reader.file_name());
            netloom_units::Invalid::unless(!is_set, field, expected(), "one")?;
        }
        let Cable { rate, latency } = switch.cable();
        Size { hosts: switch.count.into(), switches: 1, links: switch.count.into() }.check()?;
        let mut builder = NetworkBuilder::new(format!("Switch {0}: {0} hosts", switch.count));
        let hosts = builder.add_hosts(switch.count);
        let switch = builder.add_switch(1, 0);
        let tier = builder.tier("host");
        for host in hosts {
            builder.link(host, switch, rate, latency, tier);
        }
        // A fat tree of one level.
        builder.up_strides(vec![1]);
        builder.build()
    }

    /// A router for each host, and what joins the routers.
    fn routers(&self, dimensions: &[NetworkDimension]) -> Result<Network, NetworkError> {
        let ranks = product(dimensions.iter().map(|dimension| dimension.count));
        let groups = |dimension: &NetworkDimension| ranks / u64::from(dimension.count);
        let switches: u64 = dimensions
            .iter()
            .filter(|dimension| dimension.block == Block::Switch && dimension.count > 1)
            .map(groups)
            .sum();
        let ends = dimensions.iter().map(|dimension| ranks.saturating_mul(dimension.degree().into()));
        let links = ends.fold(ranks, u64::saturating_add);
        Size { hosts: ranks, switches: ranks.saturating_add(switches), links }.check()?;
        let ranks = narrow::<u32>(ranks);
        let shape: Vec<String> = dimensions
            .iter()
            .map(|dimension| format!("{} {}", dimension.block.name(), dimension.count))
            .collect();
        let mut builder = NetworkBuilder::new(format!("{}: {ranks} hosts", shape.join(" x ")));
        let routers = builder.add_hosts(ranks).end;
        let tier = builder.tier("host");
        let all = dimensions
            .iter()
            .map(|dimension| dimension.cable().rate.0.saturating_mul(dimension.degree().into()));
        let all = Rate(all.fold(0, u64::saturating_add)).min(Rate::HIGHEST);
        let (rate, latency) = (self.npu_rate.unwrap_or(all), self.npu_latency.unwrap_or_default());
        for host in 0..ranks {
            let router = builder.add_switch(0, 0);
            builder.link(host, router, rate, latency, tier);
        }
        let mut stride = 1;
        for (number, dimension) in (1..).zip(dimensions) {
            // It has no links, and a tier without links would be lost in a file.
            if dimension.count == 1 {
                continue;
            }
            let tier = builder.tier(&format!("dimension{number}"));
            let Cable { rate, latency } = dimension.cable();
            let count = dimension.count;
            // The first ranks of all groups along the dimension.
            let firsts = (0..ranks).filter(|rank| rank / stride % count == 0);
            for first in firsts {
                let router = |place: u32| routers + first + place * stride;
                let mut link = |a: NodeId, b: NodeId| {
                    builder.link(a, b, rate, latency, tier);
                };
                match dimension.block {
                    Block::Ring => {
                        (1..count).for_each(|place| link(router(place - 1), router(place)));
                        if count > 2 {
                            link(router(count - 1), router(0));
                        }
                    }
                    Block::FullyConnected => {
                        for one in 0..count {
                            (one + 1..count).for_each(|other| link(router(one), router(other)));
                        }
                    }
                    Block::Switch => {
                        let switch = builder.add_switch(0, 0);
                        for place in 0..count {
                            builder.link(router(place), switch, rate, latency, tier);
                        }
                    }
                }
            }
            stride *= count;
        }
        builder.build()
    }
}

/// Whether a link can have this rate.
fn is_rate(rate: Rate) -> bool {
    (1..=Rate::HIGHEST.0).contains(&rate.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distance::distances_from;
    use crate::families::Crossbar;

    fn read(kind: AstraSimNetwork, text: &str) -> Result<Network, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("network.yml"), text).unwrap();
        kind.build(&BuildContext { seed: 1, base_dir: dir.path() }).map_err(|error| {
            // The folder has another name every time.
            error.to_string().replace(&format!("{}/", dir.path().display()), "")
        })
    }

    fn network(text: &str) -> Network {
        read(AstraSimNetwork::new("network.yml"), text).unwrap()
    }

    /// As the file of three dimensions that comes with the analytical networks: 2 x 8 x 4 ranks.
    const THREE: &str = "# Network Configuration\n\ntopology: [ Ring, FullyConnected, Switch ]\n\nnpus_count: [ 2, 8, 4 ]  # number of NPUs\n\
        bandwidth: [ 200.0, 100.0, 50.0 ]  # GB/s\nlatency: [ 50.0, 500.0, 2000.0 ]  # ns\n";

    /// One GiB per second in bits.
    const GIB: u64 = 8 << 30;

    fn ring(count: u32) -> String {
        format!("topology: [ Ring ]\nnpus_count: [ {count} ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n")
    }

    #[test]
    fn a_ring_has_a_router_for_each_rank_and_the_links_of_the_file() {
        let network = network(&ring(5));
        assert_eq!(network.name(), "Ring 5: 5 hosts");
        assert_eq!((network.hosts(), network.switches(), network.links().len()), (5, 5, 10));
        for host in 0..5 {
            let up = network.channel(network.ports(host)[0]);
            // Both links of the router can be full of what the rank sends.
            assert_eq!((up.to, up.rate, up.latency), (5 + host, Rate(2 * 50 * GIB), Time::ZERO));
            let ends: Vec<_> = network.ports(5 + host)[1..]
                .iter()
                .map(|&port| network.channel(port))
                .map(|channel| (channel.to - 5, channel.rate, channel.latency))
                .collect();
            let mut neighbours = [(host + 4) % 5, (host + 1) % 5];
            // Links are made around the ring, the last one to rank 0.
            if host == 0 {
                neighbours.reverse();
            }
            assert_eq!(ends, neighbours.map(|end| (end, Rate(50 * GIB), Time::from_ns(500))), "{host}");
        }
        // Two ranks have one link, which carries both directions.
        assert_eq!(super::tests::network(&ring(2)).links().len(), 2 + 1);
    }

    #[test]
    fn a_dimension_of_one_rank_has_neither_links_nor_a_tier() {
        let network = network(
            "topology: [ Ring, FullyConnected, Switch ]\nnpus_count: [ 1, 3, 2 ]\nbandwidth: [ 200.0, 50.0, 50.0 ]\nlatency: [ 50.0, 500.0, 2000.0 ]\n",
        );
        assert_eq!(network.tiers(), ["host", "dimension2", "dimension3"]);
        assert_eq!(network.links().len(), 6 + 2 * 3 + 6);
    }

    #[test]
    fn every_path_has_the_links_of_each_dimension_in_which_the_ranks_differ() {
        let network = network(THREE);
        assert_eq!(network.name(), "Ring 2 x FullyConnected 8 x Switch 4: 64 hosts");
        assert_eq!((network.hosts(), network.switches()), (64, 64 + 16));
        assert_eq!(network.links().len(), 64 + 64 / 2 + 64 * 7 / 2 + 64);
        assert_eq!(network.tiers(), ["host", "dimension1", "dimension2", "dimension3"]);
        for src in 0..64u32 {
            let distances = distances_from(&network.router_graph(), &[src], u16::MAX);
            for dst in 0..64u32 {
                let differs =
                    |stride: u32, count: u32| u16::from(src / stride % count != dst / stride % count);
                let expected = differs(1, 2) + differs(2, 8) + 2 * differs(16, 4);
                assert_eq!(distances[dst as usize], expected, "{src} to {dst}");
            }
        }
        // The links of a rank: one to its neighbour, seven of the clique, one to the switch.
        assert_eq!(network.host_rate(0), Rate((200 + 7 * 100 + 50) * GIB));
        let long = super::tests::network(&ring(9));
        let from_first = distances_from(&long.router_graph(), &[0], u16::MAX);
        assert_eq!(from_first, [0, 1, 2, 3, 4, 4, 3, 2, 1]);
    }

    #[test]
    fn a_lone_switch_is_a_crossbar() {
        let text = "topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n";
        let crossbar = Crossbar { hosts: 8, rate: Rate(50 * GIB), latency: Time::from_ns(500) };
        let crossbar = crossbar.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        assert_eq!(network(text).links(), crossbar.links());
        assert!(network(text).is_xgft());
        // Dimensions of one rank add nothing.
        let beside = text.replace("Switch ", "Ring, Switch ");
        let beside = beside.replace("[ 8", "[ 1, 8").replace("[ 50", "[ 9, 50").replace("[ 500", "[ 7, 500");
        assert_eq!(network(&beside).links(), crossbar.links());
        let fast = AstraSimNetwork { npu_rate: Some(Rate(1)), ..AstraSimNetwork::new("network.yml") };
        let message = read(fast, text).unwrap_err();
        assert!(message.contains("npu_rate") && message.contains("no routers but one switch"), "{message}");
    }

    #[test]
    fn links_of_ranks_are_as_the_scenario_says() {
        let kind = AstraSimNetwork {
            npu_rate: Some(Rate::from_gbps(400)),
            npu_latency: Some(Time::from_ns(30)),
            ..AstraSimNetwork::new("network.yml")
        };
        let network = read(kind, &ring(4)).unwrap();
        let up = network.channel(network.ports(3)[0]);
        assert_eq!((up.rate, up.latency), (Rate::from_gbps(400), Time::from_ns(30)));
    }

    #[test]
    fn what_is_no_network_is_named_with_its_line() {
        let kind = || AstraSimNetwork::new("network.yml");
        let message = |text: &str| read(kind(), text).unwrap_err();
        for (text, expected) in [
            (
                THREE.replace("Switch ]", "Torus2D ]"),
                "network.yml:3: topology: there is no `Torus2D` (valid here: Ring, FullyConnected, Switch)",
            ),
            (
                THREE.replace("Ring,", "Rings,"),
                "network.yml:3: topology: there is no `Rings` (did you mean `Ring`?",
            ),
            (
                THREE.replace("[ 2, 8, 4 ]", "[ 2, 8 ]"),
                "network.yml:5: npus_count: expected 3 values, one for each dimension, found 2",
            ),
            (
                THREE.replace("2, 8, 4", "2, 0, 4"),
                "network.yml:5: npus_count: expected a whole number from 1 to 65536, found 0",
            ),
            (
                THREE.replace("50.0 ]", "-1 ]"),
                "network.yml:6: bandwidth: expected a number from 0.000000001 on, found -1",
            ),
            (
                THREE.replace("2, 8, 4", "2, many, 4"),
                "network.yml:5: expected a whole number from 0 to 4294967295",
            ),
            (THREE.replace("[ 2, 8, 4 ]", "8"), "network.yml:5: expected a list"),
            (THREE.replace("latency", "latencies"), "network.yml:7: "),
            (THREE.replace("bandwidth: [ 200.0, 100.0, 50.0 ]", ""), "missing field `bandwidth`"),
            (THREE.replace("200.0", "20000.0"), "expected at most 100 Tbit/s, found 20000 GiB/s"),
            (THREE.replace("2, 8, 4", "1, 1, 1"), "at least 2 hosts"),
            (THREE.replace("2, 8, 4", "65536, 65536, 4"), "of memory"),
        ] {
            let message = message(&text);
            assert!(message.contains(expected), "{text}\n{message}");
        }
    }
}
