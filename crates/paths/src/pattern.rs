//! Which host sends to which: the fixed patterns of FatPaths sec. II-C and VII.

use netloom_units::{narrow, random::Analysis};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use netloom_topology::RouterGraph;
use netloom_units::kinds;

/// Every host sends to one other host, and every host receives from one: a random permutation without fixed points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Permutation {
    /// Number of independent permutations at once (FatPaths Fig. 4 also uses 4).
    pub count: u32,
}

impl Default for Permutation {
    fn default() -> Self {
        Permutation { count: 1 }
    }
}

/// Every flow goes to a host chosen uniformly among all others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Uniform {
    /// Flows per host.
    pub flows: u32,
}

impl Default for Uniform {
    fn default() -> Self {
        Uniform { flows: 1 }
    }
}

/// Host s sends to host s + offset, modulo the number of hosts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct OffDiagonal {
    /// Offset in hosts.
    pub offset: u32,
}

impl Default for OffDiagonal {
    fn default() -> Self {
        OffDiagonal { offset: 1 }
    }
}

/// Host s sends to the host whose number is s rotated left by one bit, modulo the number of hosts. The word is as wide
/// as the largest host number needs; FatPaths does not give the width. Several hosts may share a destination.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shuffle {}

/// A two-dimensional stencil: every host sends to four others at fixed distances, a row above and below and
/// one column to either side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stencil {
    /// Hosts per row; by default 42, or 1337 beyond 10,000 hosts (FatPaths sec. VII).
    pub row: Option<u32>,
}

/// A skewed off-diagonal: all hosts of a router send to the same other router, so that their paths collide.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Adversarial {
    /// Offset in host-bearing routers; by default half of them.
    pub routers: Option<u32>,
}

kinds! {
    /// Which host sends to which.
    pub enum Pattern: "pattern" {
        "permutation" => Permutation(Permutation),
        "uniform" => Uniform(Uniform),
        "off-diagonal" => OffDiagonal(OffDiagonal),
        "shuffle" => Shuffle(Shuffle),
        "stencil" => Stencil(Stencil),
        "adversarial" => Adversarial(Adversarial),
    }
}

/// Which host of the pattern sits at which router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Hosts numbered router by router.
    Identity,
    /// Hosts placed at random (FatPaths' randomised runs).
    Random,
}

impl Pattern {
    /// The flows of the pattern as pairs of different routers, one per flow; flows between hosts of one router are left
    /// out.
    pub fn router_flows(&self, graph: &RouterGraph, placement: Placement, seed: u64) -> Vec<(u32, u32)> {
        let mut router_of: Vec<u32> =
            (0..graph.routers()).flat_map(|r| (0..graph.hosts(r)).map(move |_| r)).collect();
        let mut rng = Analysis::Pattern.stream(seed);
        let flows = self.host_flows(&router_of, &mut rng);
        if placement == Placement::Random {
            router_of.shuffle(&mut rng);
        }
        let routers = flows.into_iter().map(|(s, t)| (router_of[s as usize], router_of[t as usize]));
        routers.filter(|(s, t)| s != t).collect()
    }

    /// Pairs of different hosts, given the router of each host.
    #[expect(clippy::cast_possible_truncation, reason = "at most 32 bits: hosts have numbers of 32")]
    fn host_flows(&self, router_of: &[u32], rng: &mut Pcg64Mcg) -> Vec<(u32, u32)> {
        let hosts = narrow::<u32>(router_of.len());
        if hosts < 2 {
            return Vec::new();
        }
        let shifted = |offset: u32| {
            (0..hosts).map(move |s| (s, narrow::<u32>((u64::from(s) + u64::from(offset)) % u64::from(hosts))))
        };
        let flows: Vec<(u32, u32)> = match self {
            Pattern::Permutation(config) => (0..config.count).flat_map(|_| derangement(hosts, rng)).collect(),
            Pattern::Uniform(config) => (0..config.flows)
                .flat_map(|_| (0..hosts).collect::<Vec<_>>())
                .map(|s| (s, (s + rng.random_range(1..hosts)) % hosts))
                .collect(),
            Pattern::OffDiagonal(config) => shifted(config.offset % hosts).collect(),
            Pattern::Shuffle(_) => {
                let bits = (hosts - 1).ilog2() + 1;
                let rotate = |s: u32| (s << 1 | s >> (bits - 1)) & ((1u64 << bits) - 1) as u32;
                (0..hosts).map(|s| (s, rotate(s) % hosts)).collect()
            }
            Pattern::Stencil(config) => {
                let row = config.row.unwrap_or(if hosts > 10_000 { 1337 } else { 42 }) % hosts;
                let offsets = [1, hosts - 1, row, hosts - row];
                offsets.into_iter().flat_map(|offset| shifted(offset % hosts)).collect()
            }
            Pattern::Adversarial(config) => {
                // The i-th host of a router sends to the i-th host of another, as far as that has as many.
                let groups: Vec<std::ops::Range<u32>> = router_of
                    .chunk_by(|a, b| a == b)
                    .scan(0, |first, group| {
                        let start = *first;
                        *first += narrow::<u32>(group.len());
                        Some(start..*first)
                    })
                    .collect();
                let step = config.routers.map_or(groups.len() / 2, |routers| routers as usize);
                let partner = |i: usize| groups[(i + step) % groups.len()].clone();
                (0..groups.len())
                    .flat_map(|i| {
                        let to = partner(i);
                        groups[i].clone().zip(to.clone().cycle().take(groups[i].len()))
                    })
                    .collect()
            }
        };
        flows.into_iter().filter(|(s, t)| s != t).collect()
    }
}

/// A random permutation without fixed points: a shuffle whose fixed points are exchanged with their neighbours.
fn derangement(hosts: u32, rng: &mut Pcg64Mcg) -> Vec<(u32, u32)> {
    let mut to: Vec<u32> = (0..hosts).collect();
    to.shuffle(rng);
    for s in 0..hosts as usize {
        if to[s] == narrow::<u32>(s) {
            to.swap(s, (s + 1) % hosts as usize);
        }
    }
    (0..hosts).zip(to).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_units::kind::Kind;
    use rand::SeedableRng;

    fn routers(hosts: u32, per_router: u32) -> Vec<u32> {
        (0..hosts).map(|h| h / per_router).collect()
    }

    fn flows(pattern: Pattern, hosts: u32, per_router: u32) -> Vec<(u32, u32)> {
        pattern.host_flows(&routers(hosts, per_router), &mut Pcg64Mcg::seed_from_u64(5))
    }

    #[test]
    fn a_permutation_uses_every_host_once_at_either_end() {
        for hosts in [2, 3, 50, 101] {
            let mut to: Vec<u32> = flows(Pattern::Permutation(Permutation::default()), hosts, 4)
                .iter()
                .map(|&(s, t)| {
                    assert_ne!(s, t);
                    t
                })
                .collect();
            to.sort_unstable();
            assert_eq!(to, (0..hosts).collect::<Vec<_>>());
        }
    }

    #[test]
    fn fixed_offsets() {
        assert_eq!(flows(Pattern::OffDiagonal(OffDiagonal { offset: 3 }), 5, 1)[4], (4, 2));
        assert_eq!(flows(Pattern::Stencil(Stencil::default()), 100, 1).len(), 400);
        assert!(flows(Pattern::Stencil(Stencil { row: Some(10) }), 100, 1).contains(&(3, 93)));
        let adversarial = flows(Pattern::Adversarial(Adversarial::default()), 12, 3);
        assert_eq!(adversarial[..3], [(0, 6), (1, 7), (2, 8)]);
    }

    #[test]
    fn a_shuffle_rotates_the_host_number() {
        let shuffle = flows(Pattern::Shuffle(Shuffle::default()), 8, 1);
        assert_eq!(shuffle, [(1, 2), (2, 4), (3, 6), (4, 1), (5, 3), (6, 5)]);
    }

    #[test]
    fn small_networks_have_no_flows_to_themselves() {
        for name in Pattern::NAMES {
            let empty = serde::de::value::MapDeserializer::<_, serde::de::value::Error>::new(
                std::iter::empty::<(&str, u32)>(),
            );
            let pattern = Pattern::read(name, empty).unwrap().unwrap();
            for hosts in 0..4 {
                assert!(flows(pattern.clone(), hosts, 2).iter().all(|(s, t)| s != t && *t < hosts));
            }
        }
    }
}
