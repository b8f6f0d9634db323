//! Explicit paths between switches with hosts: a packet carries the number of its path, and every switch on it knows the port.

use std::sync::OnceLock;

use netloom_paths::distance::{UNREACHABLE, distances_from};
use netloom_paths::routes::{KShortest, KShortestPaths};
use netloom_paths::{LinkSet, SchemeError};
use netloom_topology::{ChannelId, Network, NodeId, PortId, RouterGraph};
use netloom_units::{Invalid, narrow};

use super::layers::{LIMIT, disconnected, live_graph};
use super::minimal::RouteTable;
use crate::header::Header;

/// The k shortest paths of pairs of switches with hosts, which are searched for when one of a pair's is first asked for.
///
/// Each pair's depend on nothing but the network and the seed, so that they are the same in whatever order and by whichever thread.
#[derive(Debug)]
pub(crate) struct Paths {
    graph: RouterGraph,
    routes: KShortestPaths,
    /// Switches with hosts, as routers of the graph.
    routers: Vec<u32>,
    /// Per directed edge of the graph, the step along it.
    steps: Vec<Step>,
    /// Per destination.
    towards: Vec<OnceLock<Toward>>,
}

/// What has been asked for of the ways to one destination.
#[derive(Debug)]
struct Toward {
    /// How far all routers are from it.
    distances: Vec<u16>,
    /// Per source.
    pairs: Vec<OnceLock<Pair>>,
}

/// The paths of a pair, one after the other.
#[derive(Debug)]
struct Pair {
    /// Where each ends.
    ends: Box<[u32]>,
    steps: Box<[Step]>,
}

/// A switch of a path and the port by which it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Step {
    pub(crate) switch: NodeId,
    pub(crate) port: PortId,
}

/// What a path takes in memory, about, when it has been asked for.
const PATH: u64 = 64;

impl Paths {
    /// The paths of a network without its cut links. A function of the network, the cut links and the seed.
    pub(crate) fn build(
        config: &KShortest,
        network: &Network,
        table: &RouteTable,
        is_cut: impl Fn(ChannelId) -> bool,
        seed: u64,
    ) -> Result<Self, Invalid> {
        let edges = table.edges() as usize;
        let needed = (edges as u64).pow(2).saturating_mul(u64::from(config.k)).saturating_mul(PATH);
        if needed > LIMIT {
            let expected =
                format!("fewer paths, which take at most the {LIMIT} bytes that a simulation lays");
            let found = format!("{} between {edges} switches, which need about {needed}", config.k);
            return Err(Invalid::new("selector.k", expected, found));
        }
        let (graph, links) = live_graph(network, is_cut);
        // Planes are not connected with each other, and no path is asked for from one to another.
        let is_connected = match network.components() {
            1 => LinkSet::full(&graph).connects(&graph),
            _ => table.unreachable().is_none(),
        };
        if !is_connected {
            return Err(disconnected());
        }
        let routes = config.build(seed).map_err(|error| match error {
            SchemeError::Disconnected => disconnected(),
            SchemeError::Parameter(invalid) => invalid.within("selector"),
            SchemeError::TooLarge { .. } => Invalid::new("selector", "fewer paths", error.to_string()),
        })?;
        let mut port_of: Vec<PortId> = vec![0; network.channels() as usize];
        for switch in network.hosts()..network.nodes() {
            (0..).zip(network.ports(switch)).for_each(|(port, &channel)| port_of[channel as usize] = port);
        }
        // A directed edge of the graph is a channel of the link that its edge is.
        let step = |directed: u32| {
            let tail = netloom_paths::tables::head(&graph, directed ^ 1) + network.hosts();
            let forth = 2 * links[directed as usize / 2];
            let channel = forth + u32::from(network.channel(forth).from != tail);
            Step { switch: tail, port: port_of[channel as usize] }
        };
        let routers: Vec<u32> =
            (0..table.edges()).map(|edge| table.edge_switch(edge) - network.hosts()).collect();
        let steps = (0..2 * narrow::<u32>(links.len())).map(step).collect();
        let towards = routers.iter().map(|_| OnceLock::new()).collect();
        Ok(Paths { graph, routes, routers, steps, towards })
    }

    /// How many paths lead from one switch with hosts to another: none from one to itself.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "what ends a path is numbered in 32 bits: Paths::pair"
    )]
    pub(crate) fn count(&self, from: u32, to: u32) -> u32 {
        self.pair(from, to).ends.len() as u32
    }

    /// A path from one switch with hosts to another.
    pub(crate) fn path(&self, from: u32, to: u32, number: u32) -> Option<&[Step]> {
        let (pair, number) = (self.pair(from, to), number as usize);
        let end = *pair.ends.get(number)?;
        let begin = number.checked_sub(1).map_or(0, |before| pair.ends[before]);
        Some(&pair.steps[begin as usize..end as usize])
    }

    /// The port by which a data packet goes on at a switch of its path; none where it is not on it, as after a change of routes.
    #[inline]
    pub(crate) fn port(&self, table: &RouteTable, here: NodeId, header: &Header) -> Option<PortId> {
        let (from, to) = (table.edge_of(header.src), table.edge_of(header.dst));
        let path = self.path(from, to, header.tag.bits())?;
        let step = path.get(usize::from(header.hops).checked_sub(1)?)?;
        (step.switch == here).then_some(step.port)
    }

    /// Number of switches with hosts.
    #[expect(clippy::cast_possible_truncation, reason = "nodes have numbers of 32 bits")]
    pub(crate) fn edges(&self) -> u32 {
        self.routers.len() as u32
    }

    /// All paths to one of them. They are searched for anew and not kept: where all are asked for, they take much memory.
    pub(crate) fn all_to(&self, to: u32) -> impl Iterator<Item = Vec<Step>> {
        let distances = self.distances(to);
        (0..self.edges())
            .flat_map(move |from| self.search(&distances, from, to))
            .map(|path| self.along(&path))
    }

    /// Hops of the longest of all paths. Those of pairs that surely have none that is longer than the longest one so far are not searched for.
    pub(crate) fn longest(&self) -> u32 {
        let mut longest = 0;
        for to in 0..self.edges() {
            let distances = self.distances(to);
            for from in 0..self.edges() {
                if !self.routes.are_within(&self.graph, &distances, self.routers[from as usize], longest) {
                    let paths = self.search(&distances, from, to);
                    longest = paths.iter().map(|path| narrow::<u32>(path.len())).fold(longest, u32::max);
                }
            }
        }
        longest
    }

    /// Whether all paths are surely minimal ones. If they are, it mostly says so.
    pub(crate) fn are_minimal(&self, table: &RouteTable) -> bool {
        (0..self.edges()).all(|to| {
            // Each minimal port begins a path of its own; what that does not decide takes a search from the destination.
            let has_few = |&from: &u32| {
                from != to
                    && !self.routes.are_at_most(table.towards_edge(table.edge_switch(from), to).ports.len())
            };
            let mut left = (0..self.edges()).filter(has_few).peekable();
            left.peek().is_none() || {
                let distances = self.distances(to);
                left.map(|from| self.routers[from as usize]).all(|from| {
                    self.routes.are_within(&self.graph, &distances, from, distances[from as usize].into())
                })
            }
        })
    }

    /// How many hops every router is from a switch.
    fn distances(&self, to: u32) -> Vec<u16> {
        distances_from(&self.graph, &[self.routers[to as usize]], UNREACHABLE)
    }

    /// Paths between two switches as directed edges.
    fn search(&self, distances: &[u16], from: u32, to: u32) -> Vec<Vec<u32>> {
        let [from, to] = [from, to].map(|edge| self.routers[edge as usize]);
        self.routes.paths_by(&self.graph, distances, from, to)
    }

    fn along(&self, path: &[u32]) -> Vec<Step> {
        path.iter().map(|&directed| self.steps[directed as usize]).collect()
    }

    fn pair(&self, from: u32, to: u32) -> &Pair {
        let toward = self.towards[to as usize].get_or_init(|| Toward {
            distances: self.distances(to),
            pairs: self.routers.iter().map(|_| OnceLock::new()).collect(),
        });
        toward.pairs[from as usize].get_or_init(|| {
            let (mut ends, mut steps) = (Vec::new(), Vec::new());
            for path in self.search(&toward.distances, from, to) {
                steps.extend(self.along(&path));
                ends.push(narrow::<u32>(steps.len()));
            }
            Pair { ends: ends.into(), steps: steps.into() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarding::Forwarding;
    use crate::forwarding::channels::VcRule;
    use crate::header::Carries;
    use crate::preset;
    use crate::tag::Tag;
    use netloom_topology::{BuildContext, FatTree, HyperX, Jellyfish, SlimFly, Topology};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    fn build(topology: Topology) -> (Network, Forwarding) {
        let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        let scheme = preset::find("k-shortest").unwrap().routing();
        let forwarding = Forwarding::build(&scheme, &network, |_| false, 3).unwrap();
        (network, forwarding)
    }

    /// The switches that a data packet on a path crosses.
    fn walk(network: &Network, forwarding: &Forwarding, src: u32, dst: u32, path: u32) -> Vec<NodeId> {
        let carries = Carries::Data;
        let tag = Tag::path(path);
        let mut header = Header { src, dst, flow: 0, tag, bytes: 4160, payload: 4096, hops: 1, carries };
        let mut way = vec![network.edge_switch(src)];
        loop {
            let hop = forwarding.onward(way[way.len() - 1], &header, |_| 0);
            let next = network.neighbour(way[way.len() - 1], hop.port);
            if next == dst {
                return way;
            }
            way.push(next);
            header.hops += 1;
            assert!(way.len() < 20, "{way:?}");
        }
    }

    #[test]
    fn packets_follow_eight_different_loop_free_paths_the_first_of_them_minimal() {
        let hyperx = HyperX {
            dimensions: 2,
            switches_per_dimension: vec![4, 3],
            parallel_links: vec![2, 1],
            hosts_per_switch: Some(1),
            ..HyperX::default()
        };
        let slim_fly = SlimFly { q: Some(5), hosts_per_switch: Some(1), ..SlimFly::default() };
        for topology in [Topology::HyperX(hyperx), Topology::SlimFly(slim_fly)] {
            let (network, forwarding) = build(topology);
            for (src, dst) in (0..network.hosts()).map(|src| (src, (src * 5 + 3) % network.hosts())) {
                if src == dst {
                    continue;
                }
                let ways: Vec<_> = (0..8).map(|path| walk(&network, &forwarding, src, dst, path)).collect();
                for (shorter, longer) in ways.iter().zip(&ways[1..]) {
                    assert!(shorter.len() <= longer.len());
                }
                let hops = (0..9).map(|path| forwarding.hops(src, dst, Tag::path(path)) as usize);
                let walked = ways.iter().map(|way| way.len() - 1).chain([0]);
                assert!(hops.eq(walked), "there is no ninth");
                assert!(ways.iter().all(|way| way.iter().collect::<BTreeSet<_>>().len() == way.len()));
                // A path that there is not is no path: the packet goes minimally.
                assert_eq!(walk(&network, &forwarding, src, dst, 8).len(), ways[0].len());
                let paths = forwarding.paths().unwrap();
                let (from, to) = (forwarding.table().edge_of(src), forwarding.table().edge_of(dst));
                let steps: BTreeSet<Vec<(NodeId, PortId)>> = (0..8)
                    .map(|path| {
                        paths
                            .path(from, to, path)
                            .unwrap()
                            .iter()
                            .map(|step| (step.switch, step.port))
                            .collect()
                    })
                    .collect();
                assert_eq!((steps.len(), paths.count(from, to)), (8, 8));
            }
        }
    }

    #[test]
    fn a_virtual_channel_per_hop_frees_them_of_deadlocks() {
        let (network, forwarding) = build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }));
        let paths = forwarding.paths().unwrap();
        let all = (0..paths.edges()).flat_map(|to| paths.all_to(to));
        let longest = all.map(|path| path.len()).max().unwrap();
        assert!(longest > 2, "there are not eight paths of two hops");
        assert_eq!(usize::from(forwarding.vcs_needed(&network, VcRule::Hops)), longest);
        assert!(forwarding.find_cycle(&network, VcRule::Hops, 1).is_some());
        assert_eq!(forwarding.find_cycle(&network, VcRule::Hops, longest as u8), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// On networks with few short paths and with many, where all switches have hosts and where some have.
        #[test]
        fn what_is_known_of_lengths_is_true_of_all_paths(of in 0..4, size in 3u32..6, k in 1u32..14, seed in any::<u64>()) {
            let topology = match of {
                0 => Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }),
                1 => Topology::HyperX(HyperX { dimensions: 2, switches_per_dimension: vec![size, 3], ..HyperX::default() }),
                2 => Topology::Jellyfish(Jellyfish { switches: 6 * size, degree: size, ..Jellyfish::default() }),
                _ => Topology::FatTree(FatTree { k: Some(2 * (size / 2)), ..FatTree::default() }),
            };
            let network = topology.build(&BuildContext { seed, base_dir: Path::new("") }).unwrap();
            let ecmp = preset::find("ecmp").unwrap().routing();
            let forwarding = Forwarding::build(&ecmp, &network, |_| false, seed).unwrap();
            let config = KShortest { k, ..KShortest::default() };
            let paths = Paths::build(&config, &network, forwarding.table(), |_| false, seed).unwrap();
            let lengths = |to| paths.all_to(to).map(|path| path.len() as u32);
            prop_assert_eq!(paths.longest(), (0..paths.edges()).flat_map(lengths).max().unwrap());
            let are_minimal = (0..paths.edges()).all(|to| {
                let distances = paths.distances(to);
                let is_minimal = |path: Vec<Step>| {
                    let from = path[0].switch - network.hosts();
                    path.len() == usize::from(distances[from as usize])
                };
                paths.all_to(to).all(is_minimal)
            });
            // Where there are fewer than are wanted nobody counts how many there are.
            let are_all = (0..paths.edges()).all(|to| paths.all_to(to).count() as u32 == k * (paths.edges() - 1));
            prop_assert_eq!(paths.are_minimal(forwarding.table()), are_minimal && are_all);
        }
    }

    /// In whatever order, and whether one pair is asked for or all of a destination's.
    #[test]
    fn paths_are_the_same_in_whatever_order_they_are_asked_for() {
        let (_, forwarding) = build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }));
        let paths = forwarding.paths().unwrap();
        let edges = paths.edges();
        let ask = |first: u32| {
            // 7 and 50² have no common divisor, so that all pairs come up.
            for pair in (0..edges * edges).map(|place| (first + 7 * place) % (edges * edges)) {
                let (from, to) = (pair / edges, pair % edges);
                assert_eq!(paths.count(from, to), if from == to { 0 } else { 8 });
            }
        };
        std::thread::scope(|scope| (0..3).for_each(|thread| drop(scope.spawn(move || ask(thread * 900)))));
        for to in 0..edges {
            let numbers =
                (0..edges).flat_map(|from| (0..paths.count(from, to)).map(move |number| (from, number)));
            let asked: Vec<_> = numbers.map(|(from, number)| paths.path(from, to, number).unwrap()).collect();
            assert_eq!(asked, paths.all_to(to).collect::<Vec<_>>());
        }
    }
}
