//! D-mod-k and S-mod-k: the digits of the destination or source pick the up ports of a tree.

use netloom_topology::Network;
use netloom_units::narrow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{
    Choice, Digits, Facts, PathSet, Places, PortSelector, Query, SelectorConfig, Signals, SwitchContext,
};
use crate::header::{Header, View};
use rand::Rng;

/// The destination's digit: going up at level l, port ⌊D / Π w⌋ mod ports, so all traffic to D meets in one root and down
/// links never conflict under a permutation. Gómez et al., IPDPS'07; generalised to XGFTs by the product of the parent
/// counts below.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DModK {
    /// What D is: the destination `host`, or the index of its `leaf` switch, so that all hosts of a leaf share a path.
    pub by: By,
}

/// The source's digit: as D-mod-k with the source host, so that up links never conflict under a permutation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SModK {
    /// What gives the digits: the source `host`, or the index of its `leaf` switch.
    pub by: By,
}

/// What gives the digits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// The host.
    #[default]
    Host,
    /// Its leaf switch.
    Leaf,
}

/// Hosts at the first leaf switch.
pub(crate) fn hosts_per_leaf(network: &Network) -> u32 {
    let same = (0..network.hosts()).take_while(|&host| network.edge_switch(host) == network.edge_switch(0));
    narrow::<u32>(same.count()).max(1)
}

/// Whether host h is at leaf switch ⌊h / hosts per leaf⌋, as in every XGFT.
pub(crate) fn leaves_are_alike(network: &Network) -> bool {
    let leaves: Vec<_> = (0..network.hosts()).map(|host| network.edge_switch(host)).collect();
    let count = hosts_per_leaf(network) as usize;
    let mut firsts: Vec<_> = leaves.iter().step_by(count).collect();
    firsts.sort_unstable();
    leaves.chunks(count).all(|hosts| hosts.iter().all(|&leaf| leaf == hosts[0]))
        && firsts.windows(2).all(|pair| pair[0] != pair[1])
}

/// [`pick`]'s position among `ports` candidates.
#[inline]
pub(crate) fn place(number: u32, stride: u32, ports: usize) -> usize {
    (number / stride) as usize % ports
}

/// Reads the digit of a number that belongs to one switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Digit {
    stride: u32,
    of: End,
}

/// Whose number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Destination,
    Source,
}

fn facts<'a>(by: By) -> Facts<'a> {
    Facts {
        places: Places::Switches,
        choice: Choice::Static,
        decides_control: false,
        digits: if by == By::Leaf { Digits::Leaf } else { Digits::Host },
        reads_hash: false,
        signals: Signals::NONE,
        paths: PathSet::Minimal,
    }
}

impl SelectorConfig for DModK {
    type State = Digit;

    fn state(&self, place: SwitchContext) -> Digit {
        Digit { stride: place.stride, of: End::Destination }
    }

    fn facts(&self) -> Facts<'_> {
        facts(self.by)
    }
}

impl SelectorConfig for SModK {
    type State = Digit;

    fn state(&self, place: SwitchContext) -> Digit {
        Digit { stride: place.stride, of: End::Source }
    }

    fn facts(&self) -> Facts<'_> {
        facts(self.by)
    }
}

impl PortSelector for Digit {
    #[inline]
    fn pick(&mut self, query: Query<'_>, _: &mut impl View, _: &mut impl Rng) -> usize {
        let Query { header, candidates, .. } = query;
        let number = if self.of == End::Destination { header.dst } else { header.src };
        place(number, self.stride, candidates.ports.len())
    }

    fn words(&self, header: &Header, ports: usize) -> Option<String> {
        let stride = self.stride;
        Some(match self.of {
            End::Destination => format!("d-mod-k: destination {} / {stride} mod {ports}", header.dst),
            End::Source => format!("s-mod-k: source {} / {stride} mod {ports}", header.src),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Carries, Header};
    use crate::testing::Loads;
    use crate::{RouteTable, Routing, Selector, SwitchPathSelector, Tag, TagSpace, preset};
    use netloom_topology::{BuildContext, FatTree, KaryNTree, NodeId, PortId, Topology, Xgft};
    use netloom_units::Time;
    use rand_pcg::Pcg64Mcg;
    use std::path::Path;

    fn build(topology: Topology) -> Network {
        topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
    }

    fn xgft(m: &[u32], w: &[u32]) -> Network {
        build(Topology::Xgft(Xgft { m: m.to_vec(), w: w.to_vec(), ..Xgft::default() }))
    }

    /// The up port, counted from 0, that a switch takes from `src` to `dst`; none if it goes down.
    fn up_port(
        network: &Network,
        table: &RouteTable,
        scheme: &Routing,
        at: NodeId,
        ends: (u32, u32),
    ) -> Option<u32> {
        let (src, dst) = ends;
        let candidates = table.candidates(at, dst);
        let ups: Vec<PortId> = (0..network.ports(at).len() as PortId)
            .filter(|&port| network.level(network.neighbour(at, port)) > network.level(at))
            .collect();
        if !ups.contains(&candidates.ports[0]) {
            return None;
        }
        assert_eq!(candidates.ports, ups);
        let (tag, carries) = (Tag::default(), Carries::Data);
        let header = Header { src, dst, flow: 0, tag, bytes: 1500, payload: 1436, hops: 1, carries };
        let mut random = Pcg64Mcg::new(1);
        let mut switch =
            SwitchPathSelector::new(scheme, scheme.stride(network, at), true, false, &mut random);
        let tags = || TagSpace::None;
        let port = switch.port(|| header, candidates, Loads(|_| 0), tags, &mut random).port;
        ups.iter().position(|&up| up == port).map(|place| place as u32)
    }

    #[test]
    fn every_switch_of_a_tree_follows_the_formula() {
        let trees = [
            (vec![2; 5], vec![1, 2, 2, 2, 2]),
            (vec![4; 3], vec![1, 4, 4]),
            (vec![4, 3, 5], vec![1, 2, 3]),
            (vec![3, 4, 2, 2], vec![1, 3, 1, 2]),
        ];
        for (m, w) in trees {
            let network = xgft(&m, &w);
            let table = RouteTable::minimal(&network, |_| false).unwrap();
            for (preset, by) in
                ["d-mod-k", "s-mod-k"].into_iter().flat_map(|p| [(p, By::Host), (p, By::Leaf)])
            {
                let mut scheme = preset::find(preset).unwrap().routing();
                match &mut scheme.selector {
                    Selector::DModK(config) => config.by = by,
                    Selector::SModK(config) => config.by = by,
                    other => panic!("{other:?}"),
                }
                scheme.fits(&network).unwrap();
                for at in network.hosts()..network.nodes() {
                    for (src, dst) in (0..network.hosts()).map(|host| (host * 7 % network.hosts(), host)) {
                        let Some(port) = up_port(&network, &table, &scheme, at, (src, dst)) else { continue };
                        let host = if preset == "d-mod-k" { dst } else { src };
                        let number = if by == By::Leaf { host / m[0] } else { host };
                        let level = usize::from(network.level(at));
                        let below: u32 = (1..level).map(|j| w[j]).product();
                        assert_eq!(
                            port,
                            number / below % w[level],
                            "{preset} {by:?} {host} at level {level}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn destination_6_of_a_2_ary_3_tree() {
        // Level 1 chooses parent ⌊6/1⌋ mod 2 = 0, level 2 parent ⌊6/2⌋ mod 2 = 1.
        let network = build(Topology::KaryNTree(KaryNTree { k: 2, n: 3, ..KaryNTree::default() }));
        let table = RouteTable::minimal(&network, |_| false).unwrap();
        let scheme = preset::find("d-mod-k").unwrap().routing();
        let first = network.edge_switch(0);
        assert_eq!(up_port(&network, &table, &scheme, first, (0, 6)), Some(0));
        let second = network.neighbour(first, 2);
        assert_eq!(up_port(&network, &table, &scheme, second, (0, 6)), Some(1));
    }

    #[test]
    fn leaves_are_counted_where_they_are_alike() {
        let tree = xgft(&[4, 3], &[1, 2]);
        assert!(leaves_are_alike(&tree) && hosts_per_leaf(&tree) == 4);
        let fat_tree = build(Topology::FatTree(FatTree { k: Some(6), ..FatTree::default() }));
        assert!(leaves_are_alike(&fat_tree) && hosts_per_leaf(&fat_tree) == 3);
        let mut builder = netloom_topology::NetworkBuilder::new("uneven");
        let hosts = builder.add_hosts(5);
        let switches = [builder.add_switch(1, 0), builder.add_switch(1, 0), builder.add_switch(2, 0)];
        let tier = builder.tier("all");
        let mut link = |a, b| builder.link(a, b, netloom_units::Rate(1), Time(1), tier);
        hosts.zip([0, 0, 1, 1, 1]).for_each(|(host, leaf)| {
            link(host, switches[leaf]);
        });
        (0..2).for_each(|leaf| {
            link(switches[leaf], switches[2]);
        });
        let uneven = builder.build().unwrap();
        assert!(!leaves_are_alike(&uneven));
        let mut scheme = preset::find("d-mod-k").unwrap().routing();
        assert_eq!(scheme.fits(&uneven), Ok(()));
        scheme.selector = Selector::DModK(DModK { by: By::Leaf });
        assert!(scheme.fits(&uneven).unwrap_err().expected.contains("as many hosts"));
    }
}
