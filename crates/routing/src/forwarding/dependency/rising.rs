//! Routes that first rise and then fall: without a cycle, however many virtual channels there are.
//!
//! On a tree packets go up to a common ancestor and down from there. Channels that lead up depend on such that lead up from a higher level, or on
//! such that lead down, and those only on such that lead down from a lower level, so no cycle closes (up*/down* routing; Schroeder et al., IEEE
//! JSAC 1991). Where links are cut a minimal path may fall and rise again.
//!
//! So may the paths of a layer that lacks links, but mostly only between a few switches: all the others are as far from each other as in the whole
//! network. The routes of those few are walked. Whatever else packets do is among all that they may do that rise first, and if no cycle closes in
//! the one and the other together there is none. If one does, each of its steps is held against the routes: either they close it, or what
//! none of them does is left out and the next cycle looked for.

use netloom_units::narrow;
use std::cmp::Ordering;
use std::collections::HashSet;

use netloom_topology::{ChannelId, Network, NodeId};

use super::super::layers::Layers;
use super::super::minimal::RouteTable;
use super::Dependencies;
use super::block::{bit, blocks};

/// The most routes that are walked, and the most among which they are chosen: a cycle mostly shows in a small part of many.
const WALKED: usize = 1024;
const KNOWN: usize = 64 * WALKED;

/// The most cycles that are looked at which no routes close.
const REFUTED: usize = 16;

/// Whether the routes of layers close a cycle, where that is known without following all: on a tree of which no minimal path rises where it has fallen.
pub(super) fn layers_close_a_cycle(network: &Network, table: &RouteTable, layers: &Layers) -> Option<bool> {
    if !rise_first(network, table) {
        return None;
    }
    let longer = layers.tables().longer_pairs(KNOWN)?;
    if longer.is_empty() {
        return Some(false);
    }
    let routes = Routes { network, table, layers };
    let mut dependencies = all_that_rise_first(network);
    let walked = longer.len().min(WALKED);
    for count in 1..=walked {
        // A prime that is larger than their number leads all over them.
        walk(network, layers, longer[count * 999_983 % longer.len()], &mut dependencies);
        let is_time = count.is_power_of_two() && count.trailing_zeros().is_multiple_of(3);
        if (is_time || count == walked) && routes.close_a_cycle(&mut dependencies)? {
            return Some(true);
        }
    }
    (walked == longer.len()).then_some(false)
}

/// The routes of layers of a tree.
struct Routes<'a> {
    network: &'a Network,
    table: &'a RouteTable,
    layers: &'a Layers,
}

impl Routes<'_> {
    /// Whether they close a cycle among dependencies, which lose what no route has. None if that takes too long to decide.
    fn close_a_cycle(&self, dependencies: &mut Dependencies<'_>) -> Option<bool> {
        for _ in 0..REFUTED {
            let Some(cycle) = dependencies.cycle() else { return Some(false) };
            let steps = cycle.iter().zip(cycle.iter().cycle().skip(1));
            let wrong: Vec<_> = steps
                .map(|(&(channel, _), &(next, _))| (channel, next))
                .filter(|&(channel, next)| !self.lead_along(channel, next))
                .collect();
            if wrong.is_empty() {
                return Some(true);
            }
            if !self.connect_all() {
                return None;
            }
            wrong.into_iter().for_each(|(channel, next)| dependencies.remove(channel, next));
        }
        None
    }

    /// Whether some layer leads everywhere, so that no packet needs to go minimally instead.
    fn connect_all(&self) -> bool {
        let tables = self.layers.tables();
        (0..tables.layers()).any(|layer| tables.diameter(layer).is_some_and(|diameter| diameter.is_connected))
    }

    /// Whether some go on from one channel to the next. Those that rise where they have fallen have been walked.
    fn lead_along(&self, channel: ChannelId, next: ChannelId) -> bool {
        let level = |switch| self.network.level(switch);
        let [first, then] = [channel, next].map(|channel| self.network.channel(channel));
        let has_been_walked = level(first.to) < level(first.from) && level(then.to) > level(then.from);
        let all = (0..self.layers.tables().layers())
            .flat_map(|layer| (0..self.table.edges()).map(move |edge| (layer, edge)));
        has_been_walked
            || all.map(|(layer, edge)| (layer, self.layers.router(self.table.edge_switch(edge)))).any(|to| {
                self.lead_by(next, to) && self.lead_by(channel, to) && self.lead_over(first.from, to)
            })
    }

    /// Whether where it begins packets to a router in a layer may go by a channel.
    fn lead_by(&self, channel: ChannelId, (layer, to): (u32, u32)) -> bool {
        let here = self.network.channel(channel).from;
        let mut is_so = false;
        self.layers.each_port(layer, self.layers.router(here), to, |port| {
            is_so |= self.network.ports(here)[usize::from(port)] == channel;
        });
        is_so
    }

    /// Whether some packets to a router in a layer come by a switch, or begin there.
    fn lead_over(&self, switch: NodeId, to: (u32, u32)) -> bool {
        let channels = self.network.ports(switch);
        // A link's two channels differ in their last bit.
        channels.iter().any(|&channel| {
            let before = self.network.channel(channel).to;
            self.network.is_host(before) || self.lead_by(channel ^ 1, to) && self.lead_over(before, to)
        })
    }
}

/// The dependencies of all routes that rise first and do not turn back.
fn all_that_rise_first(network: &Network) -> Dependencies<'_> {
    let mut dependencies = Dependencies::new(network, 1);
    let has_risen = |from, to| network.level(to) > network.level(from);
    for number in 0..network.channels() {
        let channel = network.channel(number);
        let (from, here) = (channel.from, channel.to);
        if network.is_host(from) || network.is_host(here) {
            continue;
        }
        for port in 0..narrow::<u16>(network.ports(here).len()) {
            let next = network.neighbour(here, port);
            if next != from && !network.is_host(next) && (has_risen(from, here) || !has_risen(here, next)) {
                dependencies.add_port(number, port);
            }
        }
    }
    dependencies
}

/// Adds the dependencies of the routes of a layer between two routers.
fn walk(
    network: &Network,
    layers: &Layers,
    (layer, from, to): (u32, u32, u32),
    dependencies: &mut Dependencies<'_>,
) {
    let (mut open, mut known) = (vec![(from, None)], HashSet::new());
    while let Some((here, came)) = open.pop() {
        let switch = network.hosts() + here;
        layers.each_port(layer, here, to, |port| {
            came.into_iter().for_each(|came| dependencies.add_port(came, port));
            let channel = network.ports(switch)[usize::from(port)];
            if known.insert(channel) {
                open.push((layers.router(network.channel(channel).to), Some(channel)));
            }
        });
    }
}

/// Whether no minimal path rises where it has fallen, those included that begin at no host.
pub(super) fn rise_first(network: &Network, table: &RouteTable) -> bool {
    let Some(links) = network.is_tree().then(|| links(network)).flatten() else { return false };
    let index = |switch: NodeId| (switch - network.hosts()) as usize;
    let width = links.iter().map(Vec::len).max().unwrap_or(0);
    // Per row and port, the targets to which the row's switches forward by it; and per switch, those to which it forwards upwards.
    let mut onward = vec![0u64; table.rows() * width];
    let mut rising = vec![0u64; links.len()];
    for block in blocks(table.edges()) {
        onward.fill(0);
        for (row, onward) in onward.chunks_exact_mut(width.max(1)).enumerate() {
            // Neighbouring targets mostly have the same ports.
            let mut targets = block.clone().peekable();
            let mut alike = 0;
            while let Some(target) = targets.next() {
                let ways = table.towards_edge_in_row(row, target);
                alike |= bit(&block, target);
                if targets.peek().is_none_or(|&next| table.towards_edge_in_row(row, next).set != ways.set) {
                    ways.ports.iter().for_each(|&port| onward[usize::from(port)] |= alike);
                    alike = 0;
                }
            }
        }
        let by_port = |switch| &onward[table.row_number(switch) * width..][..width];
        for (here, (links, rising)) in (network.hosts()..).zip(links.iter().zip(&mut rising)) {
            let up = links.iter().zip(by_port(here)).filter(|(link, _)| matches!(link, Some(Link::Up)));
            *rising = up.fold(0, |all, (_, targets)| all | targets);
        }
        // What a row says of the way to a switch of its own is not meant.
        block.clone().for_each(|target| rising[index(table.edge_switch(target))] &= !bit(&block, target));
        let falls_and_rises = (network.hosts()..).zip(&links).any(|(here, links)| {
            let mut ways = links.iter().zip(by_port(here));
            ways.any(
                |(link, targets)| matches!(link, &Some(Link::Down(to)) if targets & rising[index(to)] != 0),
            )
        });
        if falls_and_rises {
            return false;
        }
    }
    true
}

/// Where a link leads from a switch of a tree.
#[derive(Clone, Copy, Debug)]
enum Link {
    Up,
    Down(NodeId),
}

/// Per switch and port, where the link leads; nowhere if to a host. None if some switches of one level are linked.
fn links(network: &Network) -> Option<Vec<Vec<Option<Link>>>> {
    let link = |here, port: usize| {
        let to = network.neighbour(here, narrow::<u16>(port));
        match network.level(to).cmp(&network.level(here)) {
            _ if network.is_host(to) => Ok(None),
            Ordering::Greater => Ok(Some(Link::Up)),
            Ordering::Less => Ok(Some(Link::Down(to))),
            Ordering::Equal => Err(()),
        }
    };
    let switches = network.hosts()..network.nodes();
    switches
        .map(|here| (0..network.ports(here).len()).map(|port| link(here, port)).collect())
        .collect::<Result<_, ()>>()
        .ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use netloom_paths::routes::RandomLayers;
    use netloom_topology::{BuildContext, FatTree, KaryNTree, LeafSpine, Topology};
    use proptest::prelude::*;

    use super::super::{Dependencies, Ways, follow};
    use super::*;
    use crate::selector::layer::{Construction, Layer, WithinLayer};

    fn trees() -> [Topology; 4] {
        [
            Topology::KaryNTree(KaryNTree::default()),
            Topology::FatTree(FatTree { k: Some(6), ..FatTree::default() }),
            Topology::FatTree(FatTree { k: Some(12), ..FatTree::default() }),
            Topology::LeafSpine(LeafSpine::default()),
        ]
    }

    impl Dependencies<'_> {
        fn has_port(&self, channel: ChannelId, port: u16) -> bool {
            self.ports[self.node(channel, 0) * self.words + usize::from(port) / 64] >> (port % 64) & 1 == 1
        }

        /// The ports by which packets go on that come by a channel, and the next ones.
        fn onward(&self, channel: ChannelId) -> impl Iterator<Item = (u16, ChannelId)> {
            let ports = (0..).zip(self.network.ports(self.network.channel(channel).to).iter().copied());
            ports.filter(move |&(port, _)| self.has_port(channel, port))
        }
    }

    fn build(tree: &Topology) -> Network {
        tree.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
    }

    /// The same by walking every path from every switch.
    fn walked(network: &Network, table: &RouteTable) -> bool {
        let switches = || network.hosts()..network.nodes();
        let mut open: Vec<_> =
            (0..table.edges()).flat_map(|to| switches().map(move |here| (here, to, false))).collect();
        let mut known: BTreeSet<_> = open.iter().copied().collect();
        while let Some((here, to, has_fallen)) = open.pop() {
            for &port in table.towards_edge(here, to).ports {
                let next = network.neighbour(here, port);
                let rises = network.level(next) > network.level(here);
                if rises && has_fallen {
                    return false;
                }
                if known.insert((next, to, !rises)) {
                    open.push((next, to, !rises));
                }
            }
        }
        true
    }

    #[test]
    fn whole_trees_rise_first() {
        for network in trees().iter().map(build) {
            let table = RouteTable::minimal(&network, |_| false).unwrap();
            assert!(rise_first(&network, &table) && walked(&network, &table), "{}", network.name());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn trees_with_cut_links_rise_first_where_every_path_does(of in 0usize..4, seed in any::<u64>(), cuts in 0u64..8) {
            let network = build(&trees()[of]);
            let is_cut = |channel: u32| {
                let ends = network.channel(channel);
                let is_between = !network.is_host(ends.from) && !network.is_host(ends.to);
                is_between && seed.wrapping_add(u64::from(channel / 2)).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 59 < cuts
            };
            let table = RouteTable::in_part(&network, is_cut, None);
            let rises = rise_first(&network, &table);
            prop_assert_eq!(rises, walked(&network, &table));
            if rises {
                for vcs in 1..3 {
                    let mut graph = Dependencies::new(&network, vcs);
                    follow(&network, &table, Ways::Minimal, vcs, &mut graph);
                    prop_assert!(graph.cycle().is_none());
                }
            }
        }

    }

    // Each case follows all routes of up to three layers, which takes long.
    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// With ECMP within the layers and all links in one of them packets do all that they may do that rise first, so nothing needs to be followed.
        #[test]
        fn what_is_known_of_layers_is_what_following_them_finds(
            of in 0usize..4, layers in 1u32..4, rho in 0.4..1.0, single in any::<bool>(), seed in any::<u64>(),
        ) {
            let network = build(&trees()[of]);
            let table = RouteTable::minimal(&network, |_| false).unwrap();
            let random = RandomLayers { layers, rho, retries: 0, ..Default::default() };
            let within_layer = if single { WithinLayer::SinglePath } else { WithinLayer::Ecmp };
            let config = Layer { construction: Construction::RandomLayers(random), within_layer, ..Layer::default() };
            let layers = Layers::build(&config, &network, |_| false, seed).unwrap();
            let known = layers_close_a_cycle(&network, &table, &layers);
            let mut graph = Dependencies::new(&network, 1);
            follow(&network, &table, Ways::Layers(&layers), 1, &mut graph);
            prop_assert_eq!(known, Some(graph.on_a_cycle().is_some()));
            let routes = Routes { network: &network, table: &table, layers: &layers };
            for channel in 0..network.channels() {
                for (port, next) in all_that_rise_first(&network).onward(channel) {
                    prop_assert_eq!(routes.lead_along(channel, next), graph.has_port(channel, port));
                }
            }
        }
    }

    /// On a tree of two levels a layer of half of the links mostly closes a cycle with all that may rise first, and seldom with what really does.
    #[test]
    fn only_what_routes_do_closes_cycles() {
        let network = build(&Topology::LeafSpine(LeafSpine::default()));
        let table = RouteTable::minimal(&network, |_| false).unwrap();
        let mut counts = [0; 2];
        for seed in 0..60 {
            let random = RandomLayers { layers: 2, rho: 0.5, retries: 0, ..Default::default() };
            let config = Layer { construction: Construction::RandomLayers(random), ..Layer::default() };
            let layers = Layers::build(&config, &network, |_| false, seed).unwrap();
            let mut graph = Dependencies::new(&network, 1);
            follow(&network, &table, Ways::Layers(&layers), 1, &mut graph);
            let closes = graph.on_a_cycle().is_some();
            assert_eq!(layers_close_a_cycle(&network, &table, &layers), Some(closes), "seed {seed}");
            counts[usize::from(closes)] += 1;
        }
        assert!(counts.iter().all(|&count| count > 0), "{counts:?}");
    }

    /// In layers of a tree of 72 edge switches in which few pairs, or many, are farther apart than in the whole tree.
    #[test]
    fn layers_close_cycles_where_many_routes_fall_and_rise_again() {
        let network = build(&Topology::FatTree(FatTree { k: Some(12), ..FatTree::default() }));
        let table = RouteTable::minimal(&network, |_| false).unwrap();
        let known = |rho, seed| {
            let random = RandomLayers { layers: 2, rho, retries: 0, ..Default::default() };
            let config = Layer { construction: Construction::RandomLayers(random), ..Layer::default() };
            let layers = Layers::build(&config, &network, |_| false, seed).unwrap();
            let longer = layers.tables().longer_pairs(KNOWN).unwrap().len();
            (longer, layers_close_a_cycle(&network, &table, &layers))
        };
        let few = (0..20).map(|seed| known(0.8, seed)).filter(|&(longer, _)| longer > 0);
        assert!(few.into_iter().any(|(_, closes)| closes == Some(false)));
        let (longer, closes) = known(0.4, 1);
        assert!(longer > WALKED && closes == Some(true), "{longer} {closes:?}");
    }
}
