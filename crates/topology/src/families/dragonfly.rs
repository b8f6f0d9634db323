//! Dragonfly: groups of fully linked switches, fully linked in turn.

use netloom_units::{Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::direct::DirectBuilder;
use crate::families::{at_least, invalid, nearest};
use crate::network::Network;
use crate::topology::BuildContext;

/// Dragonfly (Kim et al., ISCA 2008): `groups` cliques of switches, `links_per_group_pair` links between any two.
///
/// In the paper's notation: p hosts per switch, a switches per group, h global links per switch, g groups. What is not given follows from the
/// balanced rule a = 2p = 2h, g = a·h + 1. Global port `switch·h + port` of a group is the port's number there; with n links per pair, port
/// `i·(g − 1) + o` is link i to the o-th other group of the arrangement. Links within a group are of tier `local`, between groups `global`;
/// the pod of a switch is its group. A minimal path crosses as few global links as possible, one at most.
///
/// Minimal paths cross at most one global link, also where two would be fewer hops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dragonfly {
    /// A published instance; counts given beside it override it.
    pub preset: Option<DragonflyPreset>,
    /// Take the balanced Dragonfly whose number of hosts is nearest to this.
    pub about_hosts: Option<u32>,
    /// Hosts per switch (p); 8 if absent (FatPaths, Table IV).
    pub hosts_per_switch: Option<u32>,
    /// Switches per group (a); 2p if absent.
    pub switches_per_group: Option<u32>,
    /// Global links per switch (h); if absent a/2, or as many as the group pairs need where `groups` and
    /// `links_per_group_pair` are given.
    pub global_links_per_switch: Option<u32>,
    /// Groups (g); a·h/n + 1 if absent.
    pub groups: Option<u32>,
    /// Links between every two groups (n); if absent as many as the global ports allow, 1 where `groups` is absent.
    pub links_per_group_pair: Option<u32>,
    /// Which global port of a group leads to which other group.
    pub arrangement: Arrangement,
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

/// Which other group the o-th global port of group G leads to, of g groups (Camarero et al., TACO 2014; Hastings et
/// al., CLUSTER 2015).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrangement {
    /// Group o, skipping G itself.
    #[default]
    Absolute,
    /// Group G + o + 1, modulo g.
    Relative,
    /// Group G − o − 1, modulo g.
    Palmtree,
}

/// Published Dragonflies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum DragonflyPreset {
    /// Flowcut: 4 groups of 16 switches of 16 hosts, 16 links between every two groups, 3 global links per switch.
    #[serde(rename = "flowcut-1024")]
    Flowcut1024,
}

impl Default for Dragonfly {
    fn default() -> Self {
        Dragonfly {
            preset: None,
            about_hosts: None,
            hosts_per_switch: None,
            switches_per_group: None,
            global_links_per_switch: None,
            groups: None,
            links_per_group_pair: None,
            arrangement: Arrangement::Absolute,
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
const DEFAULT_HOSTS: u32 = 8;

impl Dragonfly {
    /// Writes down what is taken where nothing is given.
    pub(crate) fn fill(&mut self) {
        if self.preset.is_none() && self.about_hosts.is_none() {
            self.hosts_per_switch.get_or_insert(DEFAULT_HOSTS);
        }
    }
}

/// The checked counts.
struct Counts {
    p: u32,
    a: u32,
    h: u32,
    g: u32,
    n: u32,
}

impl Dragonfly {
    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let Counts { p, a, h, g, n } = self.counts()?;
        let mut name = format!("Dragonfly p = {p}, a = {a}, h = {h}, g = {g}");
        if n > 1 {
            name += &format!(", {n} links per group pair");
        }
        if let Some(wanted) = self.about_hosts {
            name += &format!(" nearest to {wanted} hosts");
        }
        let (wide_a, wide_g) = (u64::from(a), u64::from(g));
        let local_edges = (wide_a * (wide_a - 1) / 2).saturating_mul(wide_g);
        let global_edges = (wide_g * (wide_g - 1) / 2).saturating_mul(n.into());
        let edges = local_edges.saturating_add(global_edges);
        let common = Cable { rate: self.rate, latency: self.latency };
        let host_cable = Cable::or(self.host_rate, self.host_latency, common);
        let global_cable = Cable::or(self.global_rate, self.global_latency, common);
        let mut direct =
            DirectBuilder::new(&name, wide_a * wide_g, p, edges, host_cable, |switch| switch / a)?;

        let local = direct.tier("local");
        for group in 0..g {
            for one in 0..a {
                direct.edges((one + 1..a).map(|other| (group * a + one, group * a + other)), common, local);
            }
        }
        let global = direct.global_tier("global");
        for group in 0..g {
            for port in 0..n * (g - 1) {
                let (link, offset) = (port / (g - 1), port % (g - 1));
                let peer = self.arrangement.peer(group, offset, g);
                if group < peer {
                    let back = link * (g - 1) + self.arrangement.offset_to(peer, group, g);
                    direct.edge(group * a + port / h, peer * a + back / h, global_cable, global);
                }
            }
        }
        direct.build()
    }

    fn counts(&self) -> Result<Counts, NetworkError> {
        let (preset_p, preset_a, preset_g, preset_n) = match self.preset {
            Some(DragonflyPreset::Flowcut1024) => (Some(16), Some(16), Some(4), Some(16)),
            None => (None, None, None, None),
        };
        let p = match self.about_hosts {
            Some(wanted) if self.preset.is_some() || self.hosts_per_switch.is_some() => {
                return Err(invalid("about_hosts", "neither preset nor hosts_per_switch beside it", wanted));
            }
            Some(wanted) => nearest(
                wanted.into(),
                (1..256u32).map(|p| (p, 4 * u64::from(p).pow(4) + 2 * u64::from(p).pow(2))),
            ),
            None => self.hosts_per_switch.or(preset_p).unwrap_or(DEFAULT_HOSTS),
        };
        at_least("hosts_per_switch", p, 1)?;
        let a = self.switches_per_group.or(preset_a).unwrap_or(p.saturating_mul(2));
        at_least("switches_per_group", a, 1)?;
        let groups = self.groups.or(preset_g);
        let links = self.links_per_group_pair.or(preset_n);
        if let Some(n) = links {
            at_least("links_per_group_pair", n, 1)?;
        }
        if let Some(g) = groups {
            at_least("groups", g, 2)?;
        }
        let needed =
            groups.zip(links).map(|(g, n)| (u64::from(g) - 1).saturating_mul(n.into()).div_ceil(a.into()));
        let h = match (self.global_links_per_switch, needed) {
            (Some(h), _) => h,
            (None, Some(needed)) => u32::try_from(needed).unwrap_or(u32::MAX),
            (None, None) => (a / 2).max(1),
        };
        at_least("global_links_per_switch", h, 1)?;
        let ports = u64::from(a) * u64::from(h);
        let g = groups.map_or_else(|| ports / u64::from(links.unwrap_or(1)) + 1, u64::from);
        let n = links.map_or_else(|| ports / (g - 1).max(1), u64::from);
        if g < 2 || n < 1 || n.saturating_mul(g - 1) > ports {
            let expected =
                format!("at most the {ports} global ports per group (a*h) to be used, at least 1 per pair");
            return Err(invalid("groups", expected, format!("{g} groups, {n} links per pair")));
        }
        let narrow =
            |field, value: u64| u32::try_from(value).map_err(|_| invalid(field, "less than 2^32", value));
        Ok(Counts { p, a, h, g: narrow("groups", g)?, n: narrow("links_per_group_pair", n)? })
    }
}

impl Arrangement {
    fn peer(self, group: u32, offset: u32, g: u32) -> u32 {
        match self {
            Arrangement::Absolute => offset + u32::from(offset >= group),
            Arrangement::Relative => narrow::<u32>((u64::from(group) + u64::from(offset) + 1) % u64::from(g)),
            Arrangement::Palmtree => {
                narrow::<u32>((u64::from(group) + u64::from(g) - u64::from(offset) - 1) % u64::from(g))
            }
        }
    }

    /// The offset that leads from `group` to `peer`.
    fn offset_to(self, group: u32, peer: u32, g: u32) -> u32 {
        let ahead = |from: u32, to: u32| {
            narrow::<u32>((u64::from(to) + u64::from(g) - u64::from(from)) % u64::from(g))
        };
        match self {
            Arrangement::Absolute => peer - u32::from(peer > group),
            Arrangement::Relative => ahead(group, peer) - 1,
            Arrangement::Palmtree => ahead(peer, group) - 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    fn from_toml(text: &str) -> Result<Network, NetworkError> {
        toml::from_str::<Dragonfly>(text).unwrap().build(&context(1))
    }

    /// Number of links between each two groups.
    fn group_links(network: &Network) -> Vec<Vec<u32>> {
        let groups = (network.hosts()..network.nodes()).map(|s| network.pod(s)).max().unwrap() as usize + 1;
        let mut counts = vec![vec![0; groups]; groups];
        for link in network.links().iter().filter(|link| !network.is_host(link.a)) {
            let (a, b) = (network.pod(link.a) as usize, network.pod(link.b) as usize);
            counts[a][b] += 1;
            counts[b][a] += u32::from(a != b);
        }
        counts
    }

    #[test]
    fn every_arrangement_links_every_pair_of_groups_equally() {
        for arrangement in ["absolute", "relative", "palmtree"] {
            for (sizes, n) in [("hosts_per_switch = 2", 1), ("preset = 'flowcut-1024'", 16)] {
                let network = from_toml(&format!("{sizes}\narrangement = '{arrangement}'")).unwrap();
                let graph = network.router_graph();
                let degree = graph.neighbours(0).len();
                assert!((0..graph.routers()).all(|r| graph.neighbours(r).len() == degree), "{arrangement}");
                for (group, row) in group_links(&network).into_iter().enumerate() {
                    for (other, links) in row.into_iter().enumerate() {
                        assert!(group == other || links == n, "{arrangement}: {group} to {other}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_balanced_dragonfly_has_the_published_size() {
        let network = from_toml("").unwrap();
        assert_eq!((network.hosts(), network.switches()), (16_512, 2064));
        assert_eq!(network.links().len() - 16_512, 23_736);
        assert_eq!(from_toml("about_hosts = 15_000").unwrap().hosts(), 16_512);
    }

    /// Flowcut: 34 ports per switch, one link from every switch to the same-numbered one of each other group.
    #[test]
    fn flowcut_joins_equally_numbered_switches() {
        let network = from_toml("preset = 'flowcut-1024'").unwrap();
        assert_eq!((network.hosts(), network.switches(), network.links().len()), (1024, 64, 1024 + 480 + 96));
        for switch in network.hosts()..network.nodes() {
            assert_eq!(network.ports(switch).len(), 34);
            for port in 31..34 {
                let peer = network.neighbour(switch, port);
                assert_eq!((peer - 1024) % 16, (switch - 1024) % 16);
            }
        }
    }

    #[test]
    fn impossible_counts_are_refused() {
        let error = |text: &str| from_toml(text).unwrap_err().to_string();
        assert!(
            error("switches_per_group = 4\nglobal_links_per_switch = 2\ngroups = 10").starts_with("groups: ")
        );
        assert!(error("hosts_per_switch = 0").starts_with("hosts_per_switch: expected at least 1"));
        assert!(error("groups = 1").starts_with("groups: expected at least 2"));
        assert!(error("hosts_per_switch = 3000").contains("GiB"));
        assert!(
            error("hosts_per_switch = 4000000000").contains("groups")
                || error("hosts_per_switch = 4000000000").contains("GiB")
        );
        assert!(error("about_hosts = 10\nhosts_per_switch = 2").starts_with("about_hosts"));
    }
}
