//! The order in which a thread runs the batches of its nodes, and which of them two windows can be fused for.
//!
//! Where there is a [bipartition](crate::Bipartition), whose windows are run one after the other, a node of the odd side need not wait for the batches of the whole even side, but
//! only for those of its senders. If its batch of the next window follows soon, what they have sent to it is still in the cache. So the nodes of the even side are taken in an order in which
//! neighbours follow each other, each of the odd side soon behind the last of its senders, and two windows are *fused* into one pass. Nodes that wait for other threads come behind all these.

use crate::model::{Model, NodeIndex};
use netloom_units::narrow;

/// After this many nodes of the even side those of the odd side follow that can: the code of nodes of one kind stays in the instruction cache, and what hundreds of them send is still in the data cache.
const GROUP: u32 = 128;

/// The order of batches. A node's place in it is its *rank*.
pub(crate) struct BatchOrder {
    /// The node of each rank.
    pub(crate) nodes: Vec<u32>,
    /// Nodes of the odd side with ranks below this one get messages only from nodes of lower ranks: their batches of the next window may be run once those of these nodes have been. Zero without a bipartition.
    pub(crate) fused_end: u32,
}

impl BatchOrder {
    /// The order of a partition's nodes, of which `ids` are the engine-wide indices: nearly that of `order`, if there is one. `local` gives the index of a node within the partition, if it is
    /// there; `is_odd` is the bipartition of all nodes.
    pub(crate) fn new<M: Model>(
        model: &M,
        order: Option<&[NodeIndex]>,
        is_odd: Option<&[bool]>,
        ids: &[NodeIndex],
        local: impl Fn(NodeIndex) -> Option<u32>,
    ) -> Self {
        let all: Vec<u32> = match order {
            Some(order) => order.iter().filter_map(|&id| local(id)).collect(),
            None => (0..narrow::<u32>(ids.len())).collect(),
        };
        let Some(is_odd) = is_odd else { return BatchOrder { nodes: all, fused_end: 0 } };
        let (odd, even): (Vec<u32>, Vec<u32>) =
            all.into_iter().partition(|&node| is_odd[ids[node as usize] as usize]);
        let mut indices = vec![None; ids.len()];
        (0u32..).zip(&even).for_each(|(index, &node)| indices[node as usize] = Some(index));
        // The index within the even side of the last sender to a node, if all its senders are in this partition.
        let last_sender = |node: u32| {
            let (mut last, mut are_local) = (None, true);
            are_local &= model.senders(ids[node as usize], |sender| {
                let index = local(sender).and_then(|sender| indices[sender as usize]);
                are_local &= index.is_some();
                last = last.max(index);
            });
            last.filter(|_| are_local)
        };
        let (mut fused, mut deferred) = (Vec::new(), Vec::new());
        for node in odd {
            match last_sender(node) {
                Some(index) => fused.push((index, node)),
                None => deferred.push(node),
            }
        }
        fused.sort_by_key(|&(sender, _)| sender);
        let mut fused = fused.into_iter().peekable();
        let mut nodes = Vec::with_capacity(ids.len());
        let last = narrow::<u32>(even.len()).saturating_sub(1);
        for (index, node) in (0..).zip(even) {
            nodes.push(node);
            if index % GROUP == GROUP - 1 || index == last {
                nodes.extend(
                    std::iter::from_fn(|| fused.next_if(|&(sender, _)| sender <= index))
                        .map(|(_, node)| node),
                );
            }
        }
        let fused_end = narrow::<u32>(nodes.len());
        nodes.append(&mut deferred);
        BatchOrder { nodes, fused_end }
    }
}
