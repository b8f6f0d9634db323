//! Random streams: every random choice of netloom draws from one that is named here.
//!
//! Whatever is drawn under one seed for different purposes (a network and the pairs of it that are sampled, the
//! arrivals at two hosts) must come from unrelated streams, or it would be correlated: the sampled pairs of a random graph
//! would be the very pairs that its generator linked. So a stream is a function of the run's seed, its *purpose*, and an
//! index (a host, a fault, a layer). The purposes of all rooms stand in this file, in three lists for three ways of
//! mixing, and no number is used twice within a list:
//!
//! | who draws | stream |
//! | --- | --- |
//! | nodes of a run: marking, hashing, faults | [`Node`] |
//! | the workload: placement, partners, sizes, arrivals | [`Work`] |
//! | path analysis: samples, layers, ties | [`Analysis`] |
//! | random topologies | [`network`] |
//!
//! The ways of mixing differ for no reason but history: results under a seed must not change.

use std::borrow::Cow;

use rand_pcg::Pcg64Mcg;
use rand_pcg::rand_core::SeedableRng;

/// The generator of every stream: 16 bytes of state, so that an idle node costs little.
pub type Stream = Pcg64Mcg;

/// Streams of the nodes of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Node {
    /// What a host's NIC draws: entropy values, layers, jitter. Index: the node.
    Host = 1,
    /// What a switch's routing draws. Index: the node.
    Router = 2,
    /// Which packets a switch marks as they arrive, and which it trims. Index: the node.
    Marking = 3,
    /// Which links a fault strikes. Index: the fault.
    Faults = 4,
    /// The layers of layered routing. Index: 0.
    Layers = 5,
    /// Which packets a faulty channel loses. Index: the channel.
    Losses = 6,
    /// Which packets are marked as they leave. Index: the channel.
    Departures = 7,
    /// Which of the stretches that could be skipped as steady are run in packets. Index: 0.
    Audits = 8,
    /// By which of a NIC's ports flows leave and arrive, where a hash says that. Index: 0.
    Ports = 9,
}

impl Node {
    /// The stream of one index under a run's seed.
    ///
    /// Streams of different (seed, purpose, index) are independent for all practical ends: the triple is mixed through
    /// SplitMix64's finaliser before it becomes the generator's 128-bit state.
    pub fn stream(self, seed: u64, index: u64) -> Stream {
        let a = mix(seed ^ mix(self as u64 ^ mix(index)));
        let b = mix(a ^ seed.rotate_left(32));
        Stream::new((u128::from(a) << 64) | u128::from(b))
    }
}

/// Streams of a workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Work {
    /// On which hosts the ranks sit. Index: 0.
    Placement = 1,
    /// Who sends to whom, where that is drawn for all at once. Index: 0.
    Partners = 2,
    /// Destinations, sizes and gaps of one host. Index: the host.
    Host = 3,
    /// When a host begins. Index: the host.
    Start = 4,
    /// Where a host's slots begin. Index: the host.
    Phase = 5,
    /// Several injections at one host; seeds streams of their own. Index: the injection.
    Source = 6,
    /// Parts of a mix; seeds streams of their own. Index: the part.
    Part = 7,
    /// Jobs; seeds streams of their own. Index: the job.
    Job = 8,
    /// Which ranks of a job are stragglers. Index: the entry of the list.
    Stragglers = 9,
    /// How much slower a straggler is. Index: the rank.
    Slowness = 10,
}

impl Work {
    /// The stream of one host (or of the whole run, with index 0).
    pub fn stream(self, seed: u64, index: u32) -> Stream {
        Stream::seed_from_u64(self.seed(seed, index))
    }

    /// The seed of a part of a run, whose streams are unrelated to those of the whole and of other parts.
    pub fn seed(self, seed: u64, index: u32) -> u64 {
        mix(seed ^ mix((self as u64) << 32 | u64::from(index)))
    }
}

/// Streams of path analysis and throughput.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Analysis {
    /// Sampled router pairs.
    Pairs,
    /// Sampled router quadruples.
    Quadruples,
    /// A traffic pattern over hosts.
    Pattern,
    /// Which of several shortest next hops a layer's table takes.
    TiesOfLayer(usize),
    /// FatPaths' random layers.
    RandomLayers,
    /// FatPaths' layers of minimal overlap.
    OverlapLayers,
    /// SPAIN's paths toward a router.
    SpainPaths(u32),
    /// The order in which SPAIN merges its trees.
    SpainMerging,
    /// PAST's trees.
    PastTrees,
    /// Which of several equally long paths between two routers come first.
    Paths(u32, u32),
    /// The order in which a draw of worst-case traffic matches the routers.
    OrderOfRouters(u32),
    /// The exchanges by which a matching is improved.
    Exchanges,
}

impl Analysis {
    fn name(self) -> Cow<'static, str> {
        match self {
            Analysis::Pairs => "pairs".into(),
            Analysis::Quadruples => "quadruples".into(),
            Analysis::Pattern => "pattern".into(),
            Analysis::TiesOfLayer(layer) => format!("ties of layer {layer}").into(),
            Analysis::RandomLayers => "random layers".into(),
            Analysis::OverlapLayers => "overlap layers".into(),
            Analysis::SpainPaths(destination) => format!("spain paths to {destination}").into(),
            Analysis::SpainMerging => "spain merging".into(),
            Analysis::PastTrees => "past trees".into(),
            Analysis::Paths(from, to) => format!("paths from {from} to {to}").into(),
            Analysis::OrderOfRouters(0) => "order of routers".into(),
            Analysis::OrderOfRouters(draw) => format!("order of routers {draw}").into(),
            Analysis::Exchanges => "exchanges".into(),
        }
    }

    /// The stream under a seed.
    pub fn stream(self, seed: u64) -> Stream {
        // FNV-1a over the purpose, then the seed.
        let name = self.name();
        let bytes = name.bytes().chain(seed.to_le_bytes());
        let hash = bytes.fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Stream::seed_from_u64(hash)
    }
}

/// The stream from which a random topology is drawn.
pub fn network(seed: u64) -> Stream {
    Stream::seed_from_u64(seed)
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): a bijection in which every input bit reaches
/// every output bit.
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_pcg::rand_core::Rng;
    use std::collections::HashSet;

    #[test]
    fn streams_differ_in_every_coordinate() {
        let nodes = [Node::Host, Node::Router, Node::Marking, Node::Faults, Node::Layers, Node::Losses];
        let work =
            [Work::Placement, Work::Partners, Work::Host, Work::Start, Work::Phase, Work::Source, Work::Part];
        let analysis = [
            Analysis::Pairs,
            Analysis::Quadruples,
            Analysis::Pattern,
            Analysis::TiesOfLayer(0),
            Analysis::TiesOfLayer(1),
            Analysis::RandomLayers,
            Analysis::OverlapLayers,
            Analysis::SpainPaths(1),
            Analysis::SpainMerging,
            Analysis::PastTrees,
            Analysis::Paths(1, 11),
            Analysis::Paths(11, 1),
            Analysis::OrderOfRouters(0),
            Analysis::OrderOfRouters(2),
            Analysis::Exchanges,
        ];
        let mut seen = HashSet::new();
        for seed in 0..10 {
            let mut draws = vec![network(seed)];
            for index in 0..10 {
                draws.extend(nodes.map(|purpose| purpose.stream(seed, index)));
                draws.extend(work.map(|purpose| purpose.stream(seed, index as u32)));
            }
            draws.extend(analysis.map(|purpose| purpose.stream(seed)));
            for mut stream in draws {
                assert!(seen.insert(stream.next_u64()));
            }
        }
    }

    /// Results under a seed are published; these draws must never change.
    #[test]
    fn the_streams_are_what_they_always_were() {
        assert_eq!(Node::Host.stream(1, 2).next_u64(), 2538072544864228572);
        assert_eq!(Work::Partners.stream(1, 2).next_u64(), 17313399383927020221);
        assert_eq!(Analysis::Paths(3, 4).stream(1).next_u64(), 1189194869802556892);
        assert_eq!(network(1).next_u64(), 15803641690485367939);
    }
}
