//! Three-level fat trees: ToR, aggregation and core switches.

use netloom_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::{at_least, invalid, nearest, xgft};
use crate::network::Network;
use crate::topology::BuildContext;

/// Three-level fat tree of pods, with any counts of switches and optional taper.
///
/// Sizes come from one of `preset`, `k` (Al-Fares et al., SIGCOMM 2008) and `about_hosts`; single counts override it. If none of the three is given,
/// missing counts are those of preset `flowcut-1024`.
/// Aggregation position i of every pod shares its own `cores / aggs_per_pod` cores.
/// Link tiers are `host`, `edge-agg` and `agg-core`; edge and aggregation switches of a pod carry its number, core
/// switches belong to none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FatTree {
    /// A published instance.
    pub preset: Option<FatTreePreset>,
    /// Switch radix: k pods of k/2 ToR and k/2 aggregation switches, k³/4 hosts. Even.
    pub k: Option<u32>,
    /// Take the k whose k³/4 hosts are nearest to this number.
    pub about_hosts: Option<u32>,
    /// Pods.
    pub pods: Option<u32>,
    /// ToR (edge) switches per pod.
    pub tors_per_pod: Option<u32>,
    /// Aggregation switches per pod; if absent `hosts_per_tor / tor_taper`.
    pub aggs_per_pod: Option<u32>,
    /// Core switches in total, a multiple of the aggregation switches per pod; if absent
    /// `aggs_per_pod * tors_per_pod / agg_taper`.
    pub cores: Option<u32>,
    /// Hosts per ToR.
    pub hosts_per_tor: Option<u32>,
    /// Down links per up link at the ToRs: 2 for a 2:1 taper.
    pub tor_taper: Option<f64>,
    /// Down links per up link at the aggregation switches.
    pub agg_taper: Option<f64>,
    /// Rate of every link that has no other rate; 200 Gb/s if absent.
    pub rate: Option<Rate>,
    /// Propagation delay of every link that has no other delay; 1 µs if absent.
    pub latency: Option<Time>,
    /// Rate of host links.
    pub host_rate: Option<Rate>,
    /// Rate of ToR-aggregation links.
    pub edge_rate: Option<Rate>,
    /// Rate of aggregation-core links.
    pub core_rate: Option<Rate>,
    /// Propagation delay of host links.
    pub host_latency: Option<Time>,
    /// Propagation delay of ToR-aggregation links.
    pub edge_latency: Option<Time>,
    /// Propagation delay of aggregation-core links.
    pub core_latency: Option<Time>,
}

/// Published fat trees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum FatTreePreset {
    /// Flowcut: XGFT(3; 8,8,16; 1,8,8), k = 16, 1024 hosts.
    #[serde(rename = "flowcut-1024")]
    Flowcut1024,
    /// Flowcut, ToRs tapered 2:1: XGFT(3; 8,8,16; 1,4,8).
    #[serde(rename = "flowcut-1024-2to1")]
    Flowcut1024TorTaper,
    /// The 128-host tree of Flowcut's artefact: XGFT(3; 4,4,8; 1,4,4).
    #[serde(rename = "flowcut-128")]
    Flowcut128,
    /// HF²T: XGFT(3; 2,2,4; 1,2,2), k = 4, 16 hosts.
    #[serde(rename = "hf2t-16")]
    Hf2t16,
    /// FatPaths' FT3: XGFT(3; 18,18,36; 1,18,18), k = 36, 11,664 hosts.
    #[serde(rename = "fatpaths-11664")]
    FatPaths11664,
}

impl FatTreePreset {
    /// The radix and the ToR taper.
    fn parameters(self) -> (u32, f64) {
        match self {
            FatTreePreset::Flowcut1024 => (16, 1.0),
            FatTreePreset::Flowcut1024TorTaper => (16, 2.0),
            FatTreePreset::Flowcut128 => (8, 1.0),
            FatTreePreset::Hf2t16 => (4, 1.0),
            FatTreePreset::FatPaths11664 => (36, 1.0),
        }
    }
}

impl FatTree {
    /// Writes down what is taken where nothing is given.
    pub(crate) fn fill(&mut self) {
        if self.preset.is_none() && self.k.is_none() && self.about_hosts.is_none() {
            // As in the default preset; and another `k` may then be set.
            self.k = Some(FatTreePreset::Flowcut1024.parameters().0);
        }
        self.rate.get_or_insert(Cable::DEFAULT.rate);
        self.latency.get_or_insert(Cable::DEFAULT.latency);
    }

    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let (k, tor_taper, name) = self.base()?;
        let pods = self.pods.unwrap_or(k);
        let tors = self.tors_per_pod.unwrap_or(k / 2);
        let hosts = self.hosts_per_tor.unwrap_or(k / 2);
        at_least("pods", pods, 1)?;
        at_least("tors_per_pod", tors, 1)?;
        at_least("hosts_per_tor", hosts, 1)?;
        let tor_taper = self.tor_taper.or(tor_taper);
        let aggs = up_links("aggs_per_pod", self.aggs_per_pod, "tor_taper", tor_taper, hosts)?;
        let core_uplinks = match self.cores {
            Some(cores) if cores == 0 || !cores.is_multiple_of(aggs) => {
                return Err(invalid(
                    "cores",
                    format!("a multiple of the {aggs} aggregation switches per pod"),
                    cores,
                ));
            }
            Some(cores) => Some(cores / aggs),
            None => None,
        };
        let uplinks = up_links("cores", core_uplinks, "agg_taper", self.agg_taper, tors)?;

        let common = Cable {
            rate: self.rate.unwrap_or(Cable::DEFAULT.rate),
            latency: self.latency.unwrap_or(Cable::DEFAULT.latency),
        };
        let tier = |level, children, parents, rate, latency| xgft::Tier {
            name: xgft::tier_name(level),
            children,
            parents,
            bundle: 1,
            cable: Cable::or(rate, latency, common),
        };
        let tiers = [
            tier(0, hosts, 1, self.host_rate, self.host_latency),
            tier(1, tors, aggs, self.edge_rate, self.edge_latency),
            tier(2, pods, uplinks, self.core_rate, self.core_latency),
        ];
        let cores = u64::from(aggs) * u64::from(uplinks);
        let name =
            format!("{name}, {pods} pods of {tors} ToR and {aggs} aggregation switches, {cores} cores");
        xgft::build(&name, &tiers)
    }

    /// The radix and the ToR taper that the size defaults come from, and what to call the network.
    fn base(&self) -> Result<(u32, Option<f64>, String), NetworkError> {
        let given = [self.preset.is_some(), self.k.is_some(), self.about_hosts.is_some()];
        if given.iter().filter(|&&g| g).count() > 1 {
            return Err(invalid("k", "at most one of preset, k and about_hosts", "several"));
        }
        if let Some(k) = self.k {
            if k < 2 || !k.is_multiple_of(2) {
                return Err(invalid("k", "an even number of at least 2", k));
            }
            return Ok((k, None, format!("{k}-ary fat tree")));
        }
        if let Some(wanted) = self.about_hosts {
            let sizes = (1..=2580u32).map(|half| (2 * half, 2 * u64::from(half).pow(3)));
            let k = nearest(wanted.into(), sizes);
            return Ok((k, None, format!("{k}-ary fat tree nearest to {wanted} hosts")));
        }
        let preset = self.preset.unwrap_or(FatTreePreset::Flowcut1024);
        let (k, taper) = preset.parameters();
        // The default preset has no taper of its own, so that explicit counts stand beside it.
        Ok((k, (taper != 1.0).then_some(taper), "fat tree".into()))
    }
}

/// Up links per switch: the explicit count, or down links over the taper.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "1 to 10⁹")]
fn up_links(
    field: &'static str,
    count: Option<u32>,
    taper_field: &'static str,
    taper: Option<f64>,
    down: u32,
) -> Result<u32, NetworkError> {
    match (count, taper) {
        (Some(_), Some(taper)) => {
            Err(invalid(taper_field, format!("no taper where {field} is given"), taper))
        }
        (Some(count), None) => at_least(field, count, 1).map(|()| count),
        (None, taper) => {
            let taper = taper.unwrap_or(1.0);
            let up = f64::from(down) / taper;
            if !(taper > 0.0 && (1.0..=1e9).contains(&up) && (up - up.round()).abs() < 1e-9) {
                let expected =
                    format!("a taper that leaves a whole number of up links for {down} down links");
                return Err(invalid(taper_field, expected, taper));
            }
            Ok(up.round() as u32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    fn counts(network: &Network) -> (u32, Vec<usize>) {
        let at = |level| (network.hosts()..network.nodes()).filter(|&n| network.level(n) == level).count();
        (network.hosts(), vec![at(1), at(2), at(3)])
    }

    fn from_toml(text: &str) -> Result<Network, NetworkError> {
        toml::from_str::<FatTree>(text).unwrap().build(&context(1))
    }

    #[test]
    fn presets_are_the_published_instances() {
        let cases = [
            ("", 1024, [128, 128, 64]),
            ("preset = 'flowcut-1024'", 1024, [128, 128, 64]),
            ("preset = 'flowcut-1024-2to1'", 1024, [128, 64, 32]),
            ("k = 16\ntor_taper = 2", 1024, [128, 64, 32]),
            ("k = 16\nagg_taper = 2", 1024, [128, 128, 32]),
            ("preset = 'flowcut-128'", 128, [32, 32, 16]),
            ("preset = 'hf2t-16'", 16, [8, 8, 4]),
            ("preset = 'fatpaths-11664'", 11664, [648, 648, 324]),
            ("about_hosts = 10_000", 9826, [578, 578, 289]),
            ("pods = 3\ntors_per_pod = 2\naggs_per_pod = 4\ncores = 12\nhosts_per_tor = 5", 30, [6, 12, 12]),
        ];
        for (text, hosts, switches) in cases {
            assert_eq!(counts(&from_toml(text).unwrap()), (hosts, switches.to_vec()), "{text}");
        }
    }

    #[test]
    fn a_core_group_serves_one_aggregation_position() {
        let network = from_toml("k = 4").unwrap();
        let (first_agg, first_core) = (16 + 8, 16 + 16);
        for core in 0..4 {
            for pod in 0..4 {
                let agg = first_agg + 2 * pod + core / 2;
                assert_eq!(network.neighbour(first_core + core, pod as u16), agg);
                assert_eq!(network.pod(agg), pod);
            }
            assert_eq!(network.pod(first_core + core), u32::MAX);
        }
    }

    #[test]
    fn rates_and_latencies_belong_to_tiers() {
        let network =
            from_toml("k = 4\nrate = '100Gbps'\ncore_rate = '400Gbps'\nhost_latency = '5ns'").unwrap();
        let of = |tier: usize| *network.links().iter().find(|link| usize::from(link.tier) == tier).unwrap();
        assert_eq!(network.tiers(), ["host", "edge-agg", "agg-core"]);
        assert_eq!((of(0).rate, of(0).latency), (Rate::from_gbps(100), Time::from_ns(5)));
        assert_eq!((of(1).rate, of(1).latency), (Rate::from_gbps(100), Time::from_us(1)));
        assert_eq!((of(2).rate, of(2).latency), (Rate::from_gbps(400), Time::from_us(1)));
    }

    #[test]
    fn contradictions_are_refused() {
        let error = |text: &str| from_toml(text).unwrap_err().to_string();
        assert!(error("k = 5").starts_with("k: expected an even number"));
        assert!(error("k = 4\npreset = 'hf2t-16'").starts_with("k: expected at most one of preset"));
        assert!(error("k = 16\ncores = 20").starts_with("cores: expected a multiple of the 8"));
        assert!(
            error("k = 16\ntor_taper = 3").starts_with("tor_taper: expected a taper that leaves a whole")
        );
        assert!(error("k = 16\ntor_taper = 2\naggs_per_pod = 4").starts_with("tor_taper: expected no taper"));
        assert!(error("k = 16\nagg_taper = -1").starts_with("agg_taper"));
        assert!(error("k = 4\npods = 0").starts_with("pods: expected at least 1"));
        assert!(error("k = 4000").contains("GiB"));
    }
}
