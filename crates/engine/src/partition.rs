//! Partitions of the nodes: which thread runs which node.

use crate::{Model, NodeIndex};
use netloom_units::narrow;

/// Cuts nodes, as they come in `order`, into `partitions` contiguous runs of nearly equal weight and returns each node's partition. [Deferred](deferred_nodes) nodes, if there are any, are cut apart from the others, so that
/// all threads have equal work between two sync rounds, in fused windows and behind them.
///
/// Nodes that send to each other most should be neighbours in `order`; `weight` is the work of a node.
///
/// # Panics
/// If `order` is not a permutation of `0..order.len()`, `deferred` has another length, or `partitions` is 0.
pub fn contiguous(
    order: &[NodeIndex],
    deferred: Option<&[bool]>,
    weight: impl Fn(NodeIndex) -> u64,
    partitions: usize,
) -> Vec<u16> {
    assert!(partitions > 0, "at least one partition");
    assert!(deferred.is_none_or(|deferred| deferred.len() == order.len()), "every node is deferred or not");
    let kind = |node: NodeIndex| usize::from(deferred.is_some_and(|deferred| deferred[node as usize]));
    let mut total = [0; 2];
    for &node in order {
        total[kind(node)] += weight(node);
    }
    let mut partition_of = vec![u16::MAX; order.len()];
    let mut before = [0; 2];
    for &node in order {
        let (total, before) = (total[kind(node)], &mut before[kind(node)]);
        // The middle of the node's own weight decides, so that no partition is systematically the lighter one.
        let middle = 2 * *before + weight(node);
        let partition = (middle * partitions as u64).checked_div(2 * total).unwrap_or(0);
        partition_of[node as usize] = narrow::<u16>(partition.min(partitions as u64 - 1));
        *before += weight(node);
    }
    assert!(partition_of.iter().all(|&partition| partition != u16::MAX), "order must name every node once");
    partition_of
}

/// Which nodes are deferred: their batches can only be run behind those of the whole even side of a [bipartition](crate::Bipartition), in whichever of `partitions` partitions they are. These are the nodes of the odd side with senders
/// that lie further apart in `order` than the size of a partition. For nearly all others two windows are fused.
///
/// # Panics
/// If `order` is not a permutation of `0..order.len()`, or `is_odd` has another length.
pub fn deferred_nodes<M: Model>(
    model: &M,
    order: &[NodeIndex],
    is_odd: &[bool],
    partitions: usize,
) -> Vec<bool> {
    assert!(is_odd.len() == order.len(), "every node is on a side");
    let ranks = ranks(order);
    let is_deferred = |(node, &is_odd): (usize, &bool)| {
        let (mut first, mut last) = (usize::MAX, 0);
        let note = |sender: NodeIndex| {
            let rank = ranks[sender as usize] as usize;
            (first, last) = (first.min(rank), last.max(rank));
        };
        is_odd
            && (!model.senders(narrow::<NodeIndex>(node), note)
                || first > last
                || (last - first) * partitions > order.len())
    };
    is_odd.iter().enumerate().map(is_deferred).collect()
}

/// The rank of each node in an order.
pub(crate) fn ranks(order: &[NodeIndex]) -> Vec<u32> {
    let mut ranks = vec![0; order.len()];
    (0..).zip(order).for_each(|(rank, &node)| ranks[node as usize] = rank);
    ranks
}

#[cfg(test)]
mod tests {
    use netloom_units::Time;

    use crate::{Due, Scheduler};

    use super::*;

    #[test]
    fn partitions_are_contiguous_and_balanced() {
        let order: Vec<NodeIndex> = (0..100).rev().collect();
        let partition = contiguous(&order, None, |_| 3, 4);
        for number in 0..4 {
            assert_eq!(partition.iter().filter(|&&of| of == number).count(), 25);
        }
        assert!(order.windows(2).all(|pair| partition[pair[0] as usize] <= partition[pair[1] as usize]));
    }

    #[test]
    fn every_partition_has_equal_work_of_either_kind() {
        let order: Vec<NodeIndex> = (0..100).collect();
        let deferred: Vec<bool> = (0..100).map(|node| node >= 60).collect();
        let partition = contiguous(&order, Some(&deferred), |_| 3, 4);
        for number in 0..4 {
            let of = |is_deferred| {
                (0..100).filter(|&node| deferred[node] == is_deferred && partition[node] == number).count()
            };
            assert_eq!([of(false), of(true)], [15, 10]);
        }
    }

    /// A line of nodes, of which the last one also gets messages from the first. The senders to node 5 are unknown.
    struct Line;

    impl Model for Line {
        type Node = ();
        type Payload = ();
        type Hint = ();

        fn senders(&self, id: NodeIndex, each: impl FnMut(NodeIndex)) -> bool {
            [id - 1, (id + 1) % 20].into_iter().for_each(each);
            id != 5
        }

        fn start(&self, (): &mut (), _: NodeIndex, _: &mut impl Scheduler<()>) {}

        fn handle(&self, (): &mut (), _: NodeIndex, _: Due, (): &mut (), _: &mut impl Scheduler<()>) {}

        fn advance(&self, (): &mut (), _: NodeIndex, _: Time, _: &mut impl Scheduler<()>) -> Option<Time> {
            None
        }
    }

    #[test]
    fn nodes_with_senders_far_apart_are_deferred() {
        let order: Vec<NodeIndex> = (0..20).collect();
        let is_odd: Vec<bool> = (0..20).map(|node| node % 2 == 1).collect();
        let wanted: Vec<bool> = (0..20).map(|node| [5, 19].contains(&node)).collect();
        assert_eq!(deferred_nodes(&Line, &order, &is_odd, 4), wanted);
        assert_eq!(deferred_nodes(&Line, &order, &is_odd, 20), is_odd);
    }
}
