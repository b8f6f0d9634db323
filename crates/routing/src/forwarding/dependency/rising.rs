//! Routes that first rise and then fall: without a cycle, however many virtual channels there are.
//!
//! On a tree packets go up to a common ancestor and down from there. Channels that lead up depend on such that lead up from a higher level, or on
//! such that lead down, and those only on such that lead down from a lower level, so no cycle closes (up*/down* routing; Schroeder et al., IEEE
//! JSAC 1991). Where links are cut a minimal path may fall and rise again.
//!
//! So may the paths of a layer that lacks links, but mostly only between a few switches: all the others are as far from each other as in the whole
//! network. The routes of those few are walked. Whatever else packets do is among all that they may do that rise first, and if no cycle closes in
//! the one and the other together there is none.

use std::cmp::Ordering;
use std::collections::HashSet;

use netloom_topology::{Network, NodeId};

use super::super::layers::Layers;
use super::super::minimal::RouteTable;
use super::Dependencies;
use super::block::{bit, blocks};

/// Between so many switches, layers counted apart, the routes that may fall and rise again are walked.
const FEW: usize = 1024;

/// Whether the routes of layers surely close no cycle: on a tree of which no minimal path rises where it has fallen, if they do so nowhere or between few.
pub(super) fn layers_rise_first(network: &Network, table: &RouteTable, layers: &Layers) -> bool {
    if !rise_first(network, table) {
        return false;
    }
    let Some(longer) = layers.tables().longer_pairs(FEW) else { return false };
    longer.is_empty() || {
        let mut dependencies = all_that_rise_first(network);
        longer.iter().for_each(|&pair| walk(network, layers, pair, &mut dependencies));
        dependencies.on_a_cycle().is_none()
    }
}

/// All switches with hosts. On a tree those come first to which routes of layers may fall and rise again: only such close a cycle.
pub(super) fn those_of_detours_first(network: &Network, table: &RouteTable, layers: &Layers) -> Vec<u32> {
    let mut targets: Vec<u32> = (0..table.edges()).collect();
    if let Some(longer) = network.is_tree().then(|| layers.tables().longer_pairs(FEW)).flatten() {
        let to: HashSet<u32> = longer.iter().map(|&(_, _, to)| to).collect();
        targets.sort_by_key(|&edge| !to.contains(&layers.router(table.edge_switch(edge))));
    }
    targets
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
        for port in 0..network.ports(here).len() as u16 {
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
        let to = network.neighbour(here, port as u16);
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

        /// With ECMP within the layers and all links in one of them packets do all that they may do that rise first, so what is said is exact.
        #[test]
        fn layers_rise_first_where_no_cycle_closes(
            of in 0usize..4, layers in 1u32..4, rho in 0.4..1.0, single in any::<bool>(), seed in any::<u64>(),
        ) {
            let network = build(&trees()[of]);
            let table = RouteTable::minimal(&network, |_| false).unwrap();
            let random = RandomLayers { layers, rho, retries: 0, ..Default::default() };
            let within_layer = if single { WithinLayer::SinglePath } else { WithinLayer::Ecmp };
            let config = Layer { construction: Construction::RandomLayers(random), within_layer, ..Layer::default() };
            let layers = Layers::build(&config, &network, |_| false, seed).unwrap();
            let rises = layers_rise_first(&network, &table, &layers);
            let mut graph = Dependencies::new(&network, 1);
            follow(&network, &table, Ways::Layers(&layers), 1, &mut graph);
            let is_few = layers.tables().longer_pairs(FEW).is_some();
            prop_assert!(is_few || !rises);
            match single {
                true => prop_assert!(!rises || graph.on_a_cycle().is_none()),
                false => prop_assert!(!is_few || rises == graph.on_a_cycle().is_none()),
            }
        }
    }

    /// One layer of a tree of 72 edge switches, in which a few pairs are farther apart than in the whole tree.
    #[test]
    fn routes_that_fall_and_rise_again_between_few_close_no_cycle() {
        let network = build(&Topology::FatTree(FatTree { k: Some(12), ..FatTree::default() }));
        let table = RouteTable::minimal(&network, |_| false).unwrap();
        let detours = (0..20).filter(|&seed| {
            let random = RandomLayers { layers: 2, rho: 0.8, retries: 0, ..Default::default() };
            let config = Layer { construction: Construction::RandomLayers(random), ..Layer::default() };
            let layers = Layers::build(&config, &network, |_| false, seed).unwrap();
            let longer = layers.tables().longer_pairs(FEW).unwrap();
            let targets = those_of_detours_first(&network, &table, &layers);
            let first = |&(_, _, to): &(u32, u32, u32)| {
                let place = targets.iter().position(|&edge| layers.router(table.edge_switch(edge)) == to);
                place.unwrap() < longer.len()
            };
            assert!(longer.iter().all(first));
            !longer.is_empty() && layers_rise_first(&network, &table, &layers)
        });
        assert!(detours.count() > 0);
    }
}
