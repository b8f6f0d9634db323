//! Slim Fly: McKay–Miller–Širáň graphs of diameter 2.
//!
//! Switches are (s, x, y) with s ∈ {0, 1} and x, y ∈ GF(q), q = 4w + δ with δ ∈ {−1, 0, 1}. With generator sets X, X′:
//!
//! - (0, x, y) – (0, x, y′) iff y − y′ ∈ X,
//! - (1, m, c) – (1, m, c′) iff c − c′ ∈ X′,
//! - (0, x, y) – (1, m, c) iff y = m·x + c.

use netloom_units::{Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::direct::DirectBuilder;
use crate::families::{invalid, nearest};
use crate::galois::{Field, prime_power};
use crate::network::Network;
use crate::topology::BuildContext;

/// Slim Fly (Besta and Hoefler, SC 2014): 2q² switches of degree k′ = (3q − δ)/2 and diameter 2, for every prime power
/// q = 4w + δ, δ ∈ {−1, 0, 1}.
///
/// Switch (s, x, y) has number s·q² + x·q + y. Links within a group (s, x) are of tier `local`, others `global`; a pod
/// is the rack that holds the groups (0, x) and (1, x).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SlimFly {
    /// A prime power other than 2; 19 if absent (FatPaths, Table IV).
    pub q: Option<u32>,
    /// Take the q whose number of hosts is nearest to this.
    pub about_hosts: Option<u32>,
    /// Hosts per switch; k′/2 rounded up if absent.
    pub hosts_per_switch: Option<u32>,
    /// Rate of every link that has no other rate.
    pub rate: Rate,
    /// Propagation delay of every link that has no other delay.
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    pub host_rate: Option<Rate>,
    /// Rate of links between groups; `rate` if absent.
    pub global_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    pub host_latency: Option<Time>,
    /// Propagation delay of links between groups; `latency` if absent.
    pub global_latency: Option<Time>,
}

impl Default for SlimFly {
    fn default() -> Self {
        SlimFly {
            q: None,
            about_hosts: None,
            hosts_per_switch: None,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            host_rate: None,
            global_rate: None,
            host_latency: None,
            global_latency: None,
        }
    }
}

/// FatPaths, Table IV.
const DEFAULT_Q: u32 = 19;

impl SlimFly {
    /// Writes down what is taken where nothing is given.
    pub(crate) fn fill(&mut self) {
        if self.about_hosts.is_none() {
            self.q.get_or_insert(DEFAULT_Q);
        }
    }

    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let (q, name) = self.choose_q()?;
        let p = self.hosts_per_switch.unwrap_or_else(|| default_hosts(q));
        let switches = u64::from(q).pow(2).saturating_mul(2);
        let edges = switches.saturating_mul(degree(q).into()) / 2;
        let common = Cable { rate: self.rate, latency: self.latency };
        let host_cable = Cable::or(self.host_rate, self.host_latency, common);
        let global_cable = Cable::or(self.global_rate, self.global_latency, common);
        let mut direct = DirectBuilder::new(&name, switches, p, edges, host_cable, |switch| switch / q % q)?;

        let field = Field::new(q).ok_or_else(|| not_a_slim_fly(q))?;
        let local = direct.tier("local");
        for (s, set) in generators(&field, q).iter().enumerate() {
            for group in 0..q {
                let first = (narrow::<u32>(s) * q + group) * q;
                for y in 0..q {
                    // The sets are closed under negation: every pair is met from both ends, and taken once.
                    let neighbours = set.iter().map(|&g| field.add(y, g)).filter(|&other| other > y);
                    direct.edges(neighbours.map(|other| (first + y, first + other)), common, local);
                }
            }
        }
        let global = direct.tier("global");
        for x in 0..q {
            for m in 0..q {
                let product = field.mul(m, x);
                for c in 0..q {
                    let y = field.add(product, c);
                    direct.edge(x * q + y, (q + m) * q + c, global_cable, global);
                }
            }
        }
        direct.build()
    }

    fn choose_q(&self) -> Result<(u32, String), NetworkError> {
        match (self.q, self.about_hosts) {
            (Some(_), Some(wanted)) => Err(invalid("about_hosts", "no about_hosts where q is given", wanted)),
            (None, Some(wanted)) => {
                let hosts = |q| {
                    2 * u64::from(q).pow(2) * u64::from(self.hosts_per_switch.unwrap_or(default_hosts(q)))
                };
                let q = nearest(wanted.into(), (3..20_000).filter(|&q| is_valid(q)).map(|q| (q, hosts(q))));
                Ok((q, format!("Slim Fly q = {q} nearest to {wanted} hosts")))
            }
            (q, None) => {
                let q = q.unwrap_or(DEFAULT_Q);
                if is_valid(q) { Ok((q, format!("Slim Fly q = {q}"))) } else { Err(not_a_slim_fly(q)) }
            }
        }
    }
}

/// Prime powers are 4w − 1, 4w or 4w + 1, except 2.
fn is_valid(q: u32) -> bool {
    q != 2 && prime_power(q).is_some()
}

fn not_a_slim_fly(q: u32) -> NetworkError {
    let below = (3..q).rev().find(|&q| is_valid(q));
    let above = (q.max(2)..u32::MAX).skip(1).find(|&q| is_valid(q));
    let near: Vec<String> = below.iter().chain(&above).map(u32::to_string).collect();
    invalid("q", format!("a prime power other than 2, such as {}", near.join(" or ")), q)
}

/// k′ = (3q − δ)/2.
fn degree(q: u32) -> u32 {
    let tripled = 3 * u64::from(q);
    narrow::<u32>(match q % 4 {
        1 => (tripled - 1) / 2,
        3 => tripled.div_ceil(2),
        _ => tripled / 2,
    })
}

/// ⌈k′/2⌉, which balances host and network bandwidth at diameter 2.
fn default_hosts(q: u32) -> u32 {
    degree(q).div_ceil(2)
}

/// The generator sets X and X′, as powers of the primitive element.
fn generators(field: &Field, q: u32) -> [Vec<u32>; 2] {
    let step2 = |from: u32, to: u32| (from..=to).step_by(2).map(|e| field.power(e)).collect::<Vec<_>>();
    match q % 4 {
        1 => [step2(0, q - 3), step2(1, q - 2)],
        3 => {
            let w = q.div_ceil(4);
            let x = [step2(0, 2 * w - 2), step2(2 * w - 1, 4 * w - 3)].concat();
            let x_prime = [step2(1, 2 * w - 1), step2(2 * w, 4 * w - 2)].concat();
            [x, x_prime]
        }
        // Characteristic 2: the exponent q − 1 is 0 again, so both sets contain 1.
        _ => [step2(0, q - 2), step2(1, q - 1)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    #[test]
    fn generator_sets_of_small_fields_are_the_known_ones() {
        let sets = |q| {
            generators(&Field::new(q).unwrap(), q).map(|mut set| {
                set.sort_unstable();
                set
            })
        };
        assert_eq!(sets(5), [vec![1, 4], vec![2, 3]]);
        assert_eq!(sets(13), [vec![1, 3, 4, 9, 10, 12], vec![2, 5, 6, 7, 8, 11]]);
    }

    #[test]
    fn a_q_without_a_field_is_refused() {
        for q in [0, 1, 2, 6, 12, 15, 100] {
            let error =
                SlimFly { q: Some(q), ..Default::default() }.build(&context(1)).unwrap_err().to_string();
            assert!(error.starts_with("q: expected a prime power"), "{error}");
        }
        let error = SlimFly { q: Some(15), ..Default::default() }.build(&context(1)).unwrap_err().to_string();
        assert!(error.contains("such as 13 or 16") && error.ends_with("found 15"), "{error}");
        let huge =
            SlimFly { q: Some(65_521), ..Default::default() }.build(&context(1)).unwrap_err().to_string();
        assert!(huge.contains("GiB"), "{huge}");
    }

    #[test]
    fn sizes_follow_the_paper() {
        let network =
            SlimFly { hosts_per_switch: Some(14), ..Default::default() }.build(&context(1)).unwrap();
        assert_eq!((network.hosts(), network.switches()), (10_108, 722));
        assert_eq!(network.links().len() - 10_108, 10_469);
        let near = SlimFly { about_hosts: Some(10_000), ..Default::default() }.build(&context(1)).unwrap();
        assert_eq!(near.name(), "Slim Fly q = 19 nearest to 10000 hosts: 10830 hosts");
    }
}
