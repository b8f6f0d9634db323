//! Which thread runs which node.

use crate::NodeIndex;

/// Cuts each side's nodes, as they come in `order`, into `parts` contiguous runs of nearly equal weight and returns each node's part.
///
/// Nodes that talk to each other most should be neighbours in `order`; `weight` says how much work a node is. Without
/// [sides](crate::Setup::sides) all nodes are on one; with them all threads have as much to do in the turns of each.
///
/// # Panics
/// If `order` is not a permutation of `0..order.len()`, `sides` has another length, or `parts` is 0.
pub fn contiguous(
    order: &[NodeIndex],
    sides: Option<&[bool]>,
    weight: impl Fn(NodeIndex) -> u64,
    parts: usize,
) -> Vec<u16> {
    assert!(parts > 0, "at least one part");
    assert!(sides.is_none_or(|sides| sides.len() == order.len()), "every node is on a side");
    let side = |node: NodeIndex| usize::from(sides.is_some_and(|sides| sides[node as usize]));
    let mut total = [0; 2];
    for &node in order {
        total[side(node)] += weight(node);
    }
    let mut part_of = vec![u16::MAX; order.len()];
    let mut before = [0; 2];
    for &node in order {
        let (total, before) = (total[side(node)], &mut before[side(node)]);
        // The middle of the node's own share decides, so that no part is systematically the lighter one.
        let middle = 2 * *before + weight(node);
        let part = (middle * parts as u64).checked_div(2 * total).unwrap_or(0);
        part_of[node as usize] = part.min(parts as u64 - 1) as u16;
        *before += weight(node);
    }
    assert!(part_of.iter().all(|&part| part != u16::MAX), "order must name every node once");
    part_of
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_contiguous_and_balanced() {
        let order: Vec<NodeIndex> = (0..100).rev().collect();
        let parts = contiguous(&order, None, |_| 3, 4);
        for part in 0..4 {
            assert_eq!(parts.iter().filter(|&&p| p == part).count(), 25);
        }
        assert!(order.windows(2).all(|pair| parts[pair[0] as usize] <= parts[pair[1] as usize]));
    }

    #[test]
    fn every_part_has_as_much_of_either_side() {
        let order: Vec<NodeIndex> = (0..100).collect();
        // The first sixty of one side, the others of the other.
        let sides: Vec<bool> = (0..100).map(|node| node >= 60).collect();
        let parts = contiguous(&order, Some(&sides), |_| 3, 4);
        for part in 0..4 {
            let of = |side| (0..100).filter(|&node| sides[node] == side && parts[node] == part).count();
            assert_eq!([of(false), of(true)], [15, 10]);
        }
    }
}
