//! Which thread runs which node.

use crate::{Model, NodeIndex};
use netloom_units::narrow;

/// Cuts nodes, as they come in `order`, into `parts` contiguous runs of nearly equal weight and returns each node's part: those that are [late], if there are any, apart from the others, so that all threads
/// have as much to do before they meet, of whichever kind it is.
///
/// Nodes that talk to each other most should be neighbours in `order`; `weight` says how much work a node is.
///
/// # Panics
/// If `order` is not a permutation of `0..order.len()`, `late` has another length, or `parts` is 0.
pub fn contiguous(
    order: &[NodeIndex],
    late: Option<&[bool]>,
    weight: impl Fn(NodeIndex) -> u64,
    parts: usize,
) -> Vec<u16> {
    assert!(parts > 0, "at least one part");
    assert!(late.is_none_or(|late| late.len() == order.len()), "every node is late or not");
    let kind = |node: NodeIndex| usize::from(late.is_some_and(|late| late[node as usize]));
    let mut total = [0; 2];
    for &node in order {
        total[kind(node)] += weight(node);
    }
    let mut part_of = vec![u16::MAX; order.len()];
    let mut before = [0; 2];
    for &node in order {
        let (total, before) = (total[kind(node)], &mut before[kind(node)]);
        // The middle of the node's own share decides, so that no part is systematically the lighter one.
        let middle = 2 * *before + weight(node);
        let part = (middle * parts as u64).checked_div(2 * total).unwrap_or(0);
        part_of[node as usize] = narrow::<u16>(part.min(parts as u64 - 1));
        *before += weight(node);
    }
    assert!(part_of.iter().all(|&part| part != u16::MAX), "order must name every node once");
    part_of
}

/// Which nodes can only take turns when all of the even [side](crate::Setup::sides) have had theirs, whichever of `parts` threads they are given to: those of the odd side to which nodes send
/// that lie further apart in `order` than a thread's share. Nearly all others are run together with those.
///
/// # Panics
/// If `order` is not a permutation of `0..order.len()`, or `sides` has another length.
pub fn late<M: Model>(model: &M, order: &[NodeIndex], sides: &[bool], parts: usize) -> Vec<bool> {
    assert!(sides.len() == order.len(), "every node is on a side");
    let places = places(order);
    let is_late = |(node, &is_odd): (usize, &bool)| {
        let (mut first, mut last) = (usize::MAX, 0);
        let see = |sender: NodeIndex| {
            let place = places[sender as usize] as usize;
            (first, last) = (first.min(place), last.max(place));
        };
        is_odd
            && (!model.senders(narrow::<NodeIndex>(node), see)
                || first > last
                || (last - first) * parts > order.len())
    };
    sides.iter().enumerate().map(is_late).collect()
}

/// Where each node comes in an order.
pub(crate) fn places(order: &[NodeIndex]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    (0..).zip(order).for_each(|(place, &node)| places[node as usize] = place);
    places
}

#[cfg(test)]
mod tests {
    use netloom_units::Time;

    use crate::Scheduler;

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
    fn every_part_has_as_much_of_either_kind() {
        let order: Vec<NodeIndex> = (0..100).collect();
        let late: Vec<bool> = (0..100).map(|node| node >= 60).collect();
        let parts = contiguous(&order, Some(&late), |_| 3, 4);
        for part in 0..4 {
            let of = |is_late| (0..100).filter(|&node| late[node] == is_late && parts[node] == part).count();
            assert_eq!([of(false), of(true)], [15, 10]);
        }
    }

    /// A line of nodes, of which the last one also gets messages from the first. Nobody knows who sends to node 5.
    struct Line;

    impl Model for Line {
        type Node = ();
        type Payload = ();

        fn senders(&self, id: NodeIndex, each: impl FnMut(NodeIndex)) -> bool {
            [id - 1, (id + 1) % 20].into_iter().for_each(each);
            id != 5
        }

        fn start(&self, (): &mut (), _: NodeIndex, _: &mut impl Scheduler<()>) {}

        fn handle(
            &self,
            (): &mut (),
            _: NodeIndex,
            _: Time,
            _: u32,
            (): &mut (),
            _: &mut impl Scheduler<()>,
        ) {
        }

        fn advance(&self, (): &mut (), _: NodeIndex, _: Time, _: &mut impl Scheduler<()>) -> Option<Time> {
            None
        }
    }

    #[test]
    fn who_gets_messages_from_far_apart_is_late() {
        let order: Vec<NodeIndex> = (0..20).collect();
        let sides: Vec<bool> = (0..20).map(|node| node % 2 == 1).collect();
        let wanted: Vec<bool> = (0..20).map(|node| [5, 19].contains(&node)).collect();
        assert_eq!(late(&Line, &order, &sides, 4), wanted);
        assert_eq!(late(&Line, &order, &sides, 20), sides);
    }
}
