//! Xpander: random lifts of a complete graph.

use netloom_units::random::{Stream, network};
use netloom_units::{Rate, Time, narrow};
use rand::RngExt;
use rand::seq::SliceRandom;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::direct::DirectBuilder;
use crate::families::random_regular::is_connected;
use crate::families::{at_least, invalid, nearest};
use crate::network::Network;
use crate::router_graph::RouterGraph;
use crate::spectrum::second_eigenvalue;
use crate::topology::BuildContext;

/// Xpander (Valadarsky et al., CoNEXT 2016): `lift` copies of each of the k′ + 1 vertices of a clique, every clique edge
/// replaced by a random perfect matching of the copies. The default is that of FatPaths, Table IV.
///
/// Copy c of vertex v is switch v·lift + c; a pod is a meta-node, the copies of one vertex, which have no link among
/// them.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Xpander {
    /// Links from each switch to others (k′).
    pub degree: u32,
    /// Take the degree, with `lift` equal to it, whose number of hosts is nearest to this, instead of `degree`.
    pub about_hosts: Option<u32>,
    /// Copies of each vertex; k′ if absent.
    pub lift: Option<u32>,
    /// How the copies are made.
    pub method: Lifting,
    /// Draw again until the graph is Ramanujan: no eigenvalue but k′ exceeds 2·sqrt(k′ − 1) in magnitude.
    pub ramanujan: bool,
    /// Hosts per switch; k′/2 rounded up if absent.
    pub hosts_per_switch: Option<u32>,
    /// Rate of every link that has no other rate.
    pub rate: Rate,
    /// Propagation delay of every link that has no other delay.
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    pub host_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    pub host_latency: Option<Time>,
}

/// How an Xpander is lifted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Lifting {
    /// One lift of any size.
    #[default]
    Single,
    /// Repeated 2-lifts; `lift` is a power of two.
    RepeatedTwo,
}

impl Default for Xpander {
    fn default() -> Self {
        Xpander {
            degree: 32,
            about_hosts: None,
            lift: None,
            method: Lifting::Single,
            ramanujan: false,
            hosts_per_switch: None,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            host_rate: None,
            host_latency: None,
        }
    }
}

/// How many lifts are drawn before giving up on a connected, and if wanted Ramanujan, one.
const DRAWS: u32 = 1000;

impl Xpander {
    pub(crate) fn build(
        &self,
        &BuildContext { seed, .. }: &BuildContext<'_>,
    ) -> Result<Network, NetworkError> {
        let (degree, nearest_to) = self.choose_degree()?;
        at_least("degree", degree, 2)?;
        let lift = self.lift.unwrap_or(degree);
        at_least("lift", lift, 1)?;
        if self.method == Lifting::RepeatedTwo && !lift.is_power_of_two() {
            return Err(invalid("lift", "a power of two for repeated 2-lifts", lift));
        }
        let hosts = self.hosts_per_switch.unwrap_or(degree.div_ceil(2));
        let vertices = u64::from(degree) + 1;
        let switches = vertices * u64::from(lift);
        let edges = switches.saturating_mul(degree.into()) / 2;
        let cable = Cable { rate: self.rate, latency: self.latency };
        let host_cable = Cable::or(self.host_rate, self.host_latency, cable);
        let name = format!("Xpander of degree {degree}, lift {lift}{nearest_to}");
        let mut direct =
            DirectBuilder::new(&name, switches, hosts, edges, host_cable, |switch| switch / lift)?;

        let mut rng = network(seed);
        let draw = (0..DRAWS).find_map(|_| {
            let edges = match self.method {
                Lifting::Single => single_lift(degree, lift, &mut rng),
                Lifting::RepeatedTwo => repeated_two_lifts(degree, lift, &mut rng),
            };
            self.is_accepted(narrow::<u32>(switches), degree, &edges).then_some(edges)
        });
        let Some(edges) = draw else {
            let wanted = if self.ramanujan { "connected and Ramanujan" } else { "connected" };
            return Err(invalid("lift", format!("a lift of which one in {DRAWS} is {wanted}"), lift));
        };
        let tier = direct.tier("switch");
        direct.edges(edges, cable, tier);
        direct.build()
    }

    fn choose_degree(&self) -> Result<(u32, String), NetworkError> {
        let Some(wanted) = self.about_hosts else { return Ok((self.degree, String::new())) };
        if let Some(lift) = self.lift {
            return Err(invalid(
                "about_hosts",
                format!("no about_hosts where lift is given ({lift})"),
                wanted,
            ));
        }
        let valid = (2..2000u32).filter(|k| self.method == Lifting::Single || k.is_power_of_two());
        let hosts = |k: u32| {
            u64::from(k) * u64::from(k + 1) * u64::from(self.hosts_per_switch.unwrap_or(k.div_ceil(2)))
        };
        Ok((nearest(wanted.into(), valid.map(|k| (k, hosts(k)))), format!(" nearest to {wanted} hosts")))
    }

    fn is_accepted(&self, switches: u32, degree: u32, edges: &[(u32, u32)]) -> bool {
        let graph = || RouterGraph::new(vec![0; switches as usize], edges.to_vec());
        is_connected(switches, edges)
            && (!self.ramanujan || second_eigenvalue(&graph()) <= 2.0 * f64::from(degree - 1).sqrt())
    }
}

fn single_lift(degree: u32, lift: u32, rng: &mut Stream) -> Vec<(u32, u32)> {
    let mut edges = Vec::new();
    let mut matching: Vec<u32> = (0..lift).collect();
    for u in 0..=degree {
        for v in u + 1..=degree {
            matching.shuffle(rng);
            edges.extend((0..lift).map(|copy| (u * lift + copy, v * lift + matching[copy as usize])));
        }
    }
    edges
}

/// Doubles the graph until it has `lift` copies; each edge is doubled straight or crossed, at random.
fn repeated_two_lifts(degree: u32, lift: u32, rng: &mut Stream) -> Vec<(u32, u32)> {
    // Edges between (vertex, copy) as vertex·lift + copy, with the copies 0..copies in use.
    let mut edges: Vec<_> =
        (0..=degree).flat_map(|u| (u + 1..=degree).map(move |v| (u * lift, v * lift))).collect();
    let mut copies = 1;
    while copies < lift {
        edges = edges
            .into_iter()
            .flat_map(|(a, b)| {
                if rng.random() {
                    [(a, b), (a + copies, b + copies)]
                } else {
                    [(a, b + copies), (a + copies, b)]
                }
            })
            .collect();
        copies *= 2;
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;
    use proptest::prelude::*;

    #[test]
    fn the_default_has_the_published_size() {
        let network = Xpander::default().build(&context(1)).unwrap();
        assert_eq!((network.hosts(), network.switches()), (16_896, 1056));
        assert_eq!(network.links().len() - 16_896, 16_896);
        let near = Xpander { about_hosts: Some(15_000), ..Default::default() }.build(&context(1)).unwrap();
        assert_eq!(near.switches(), 31 * 32);
    }

    proptest! {
        /// Between any two meta-nodes lies a perfect matching, within one there is no link.
        #[test]
        fn lifts_are_matchings_of_the_clique(degree in 3u32..8, exponent in 0u32..4, seed in any::<u64>(), two: bool) {
            let method = if two { Lifting::RepeatedTwo } else { Lifting::Single };
            let lift = 1 << exponent;
            let config = Xpander { degree, lift: Some(lift), method, hosts_per_switch: Some(1), ..Default::default() };
            let graph = config.build(&context(seed)).unwrap().router_graph();
            for switch in 0..graph.routers() {
                let metas: Vec<u32> = graph.neighbours(switch).iter().map(|&other| other / lift).collect();
                let others: Vec<u32> = (0..=degree).filter(|&meta| meta != switch / lift).collect();
                prop_assert_eq!(metas, others);
            }
        }
    }

    #[test]
    fn ramanujan_lifts_expand() {
        let config = Xpander { degree: 8, lift: Some(8), ramanujan: true, ..Default::default() };
        let graph = config.build(&context(3)).unwrap().router_graph();
        assert!(second_eigenvalue(&graph) <= 2.0 * 7f64.sqrt());
    }

    #[test]
    fn impossible_lifts_are_refused() {
        let error = |config: Xpander| config.build(&context(1)).unwrap_err().to_string();
        let two = Xpander { lift: Some(6), method: Lifting::RepeatedTwo, ..Default::default() };
        assert!(error(two).starts_with("lift: expected a power of two"));
        assert!(
            error(Xpander { degree: 1, ..Default::default() }).starts_with("degree: expected at least 2")
        );
        assert!(error(Xpander { degree: 100_000, ..Default::default() }).contains("GiB"));
        assert!(
            error(Xpander { lift: Some(0), ..Default::default() }).starts_with("lift: expected at least 1")
        );
    }
}
