//! Routes that first rise and then fall: without a cycle, however many virtual channels there are.
//!
//! On a tree packets go up to a common ancestor and down from there. Channels that lead up depend on such that lead up from a higher level, or on
//! such that lead down, and those only on such that lead down from a lower level, so no cycle closes (up*/down* routing; Schroeder et al., IEEE
//! JSAC 1991). Where links are cut a minimal path may fall and rise again.

use std::cmp::Ordering;

use netloom_topology::{Network, NodeId};

use super::super::minimal::RouteTable;
use super::block::{bit, blocks};

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

    use netloom_topology::{BuildContext, FatTree, KaryNTree, LeafSpine, Topology};
    use proptest::prelude::*;

    use super::super::{Dependencies, Ways, follow};
    use super::*;

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
    }
}
