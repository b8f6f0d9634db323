//! Whether a tree is an extended generalised fat tree, and which of a switch's up ports is which digit.

use netloom_units::narrow;
use std::collections::BTreeMap;

use crate::network::{Network, NodeId};

/// Per switch of an extended generalised fat tree, the lowest of the roots above it; none if the network is no such tree.
///
/// The up ports of a switch are its digits in the order of what they lead to by these numbers. They are the same for switches that are alike: if all
/// switches count up ports so, the n-th up port of one and the n-th of another one lead to the same roots wherever both could.
///
/// In such a tree (Öhring et al., IPPS 1995) switches of a level have equally many children, parents and parallel links. The
/// switches with the same hosts below them are a class. The children of a switch are one of each of some classes, which have all their parents in common with
/// each other, and the classes of a level are alike in the roots above their members.
pub(crate) fn lowest_roots(network: &Network) -> Option<Vec<NodeId>> {
    let (hosts, switches) = (network.hosts(), network.hosts()..network.nodes());
    let index = |switch: NodeId| (switch - hosts) as usize;
    let top = switches.clone().map(|switch| network.level(switch)).max()?;
    let mut children = vec![Vec::new(); switches.len()];
    let mut parents = vec![Vec::new(); switches.len()];
    for switch in switches.clone() {
        let mut around: Vec<NodeId> =
            network.ports(switch).iter().map(|&port| network.channel(port).to).collect();
        around.sort_unstable();
        let (below, above): (Vec<_>, Vec<_>) =
            around.into_iter().partition(|&node| network.level(node) < network.level(switch));
        children[index(switch)] = below;
        parents[index(switch)] = above;
    }
    let at = |level| switches.clone().filter(move |&switch| network.level(switch) == level);
    // Classes are numbered by the classes of which they consist; hosts are classes of their own.
    let mut class: Vec<u32> = (0..hosts).collect();
    class.resize(network.nodes() as usize, 0);
    for level in 1..=top {
        let first = index(at(level).next()?);
        let (down, up) = (children[first].len(), parents[first].len());
        let bundle = parallel(&children[first])?;
        let is_alike = |switch: NodeId| {
            let (below, above) = (&children[index(switch)], &parents[index(switch)]);
            below.len() == down && above.len() == up && parallel(below) == Some(bundle)
        };
        if !at(level).all(is_alike) || (up == 0) != (level == top) {
            return None;
        }
        let (mut classes, mut above) = (BTreeMap::new(), BTreeMap::new());
        for switch in at(level) {
            let below = &children[index(switch)];
            let mut key: Vec<u32> =
                below.iter().step_by(bundle).map(|&child| class[child as usize]).collect();
            key.sort_unstable();
            let parts = key.len();
            key.dedup();
            if key.len() != parts || below.iter().any(|&child| network.level(child) != level - 1) {
                return None;
            }
            let next = narrow::<u32>(classes.len());
            let number = *classes.entry(key.clone()).or_insert(next);
            class[switch as usize] = number;
            if key.into_iter().any(|part| *above.entry(part).or_insert(number) != number) {
                return None;
            }
            // Switches that share a parent share all.
            let of_first = (level > 1).then(|| &parents[index(below[0])]);
            if of_first.is_some_and(|shared| below.iter().any(|&child| &parents[index(child)] != shared)) {
                return None;
            }
        }
        if level == top && classes.len() != 1 {
            return None;
        }
    }
    let mut lowest: Vec<NodeId> = switches.clone().collect();
    for level in (1..top).rev() {
        let mut of_class: BTreeMap<u32, Vec<NodeId>> = BTreeMap::new();
        for switch in at(level) {
            let root = parents[index(switch)].iter().map(|&parent| lowest[index(parent)]).min()?;
            lowest[index(switch)] = root;
            of_class.entry(class[switch as usize]).or_default().push(root);
        }
        of_class.values_mut().for_each(|roots| roots.sort_unstable());
        let mut all = of_class.values();
        let first = all.next()?;
        if first.windows(2).any(|pair| pair[0] == pair[1]) || all.any(|roots| roots != first) {
            return None;
        }
    }
    Some(lowest)
}

/// How many parallel links lead to each of some nodes, sorted; none if not equally many.
fn parallel(nodes: &[NodeId]) -> Option<usize> {
    let mut runs = nodes.chunk_by(|a, b| a == b).map(<[NodeId]>::len);
    let first = runs.next()?;
    runs.all(|run| run == first).then_some(first)
}
