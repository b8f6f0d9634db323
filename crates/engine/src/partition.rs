//! Which thread runs which node.

use crate::NodeIndex;

/// Cuts `order` into `parts` contiguous runs of nearly equal weight and returns each node's part.
///
/// Nodes that talk to each other most should be neighbours in `order`; `weight` says how much work a node is.
///
/// # Panics
/// If `order` is not a permutation of `0..order.len()`, or `parts` is 0.
pub fn contiguous(order: &[NodeIndex], weight: impl Fn(NodeIndex) -> u64, parts: usize) -> Vec<u16> {
    assert!(parts > 0, "at least one part");
    let total: u64 = order.iter().map(|&node| weight(node)).sum();
    let mut part_of = vec![u16::MAX; order.len()];
    let mut before = 0;
    for &node in order {
        // The middle of the node's own share decides, so that no part is systematically the lighter one.
        let middle = 2 * before + weight(node);
        let part = (middle * parts as u64).checked_div(2 * total).unwrap_or(0);
        part_of[node as usize] = part.min(parts as u64 - 1) as u16;
        before += weight(node);
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
        let parts = contiguous(&order, |_| 3, 4);
        for part in 0..4 {
            assert_eq!(parts.iter().filter(|&&p| p == part).count(), 25);
        }
        assert!(order.windows(2).all(|pair| parts[pair[0] as usize] <= parts[pair[1] as usize]));
    }
}
