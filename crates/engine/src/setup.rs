//! How a model is to be run, and which setups are refused.

use netloom_units::Time;

use crate::model::NodeIndex;
use crate::team::Rebalance;

/// How to run a model.
#[derive(Clone, Debug)]
pub struct Setup {
    /// No message arrives earlier than this after its cause. Must not be zero.
    pub lookahead: Time,
    /// No event at or after this instant is run, nor any at or after [`END_OF_TIME`](crate::END_OF_TIME).
    pub until: Time,
    /// Most messages arrive within this long; later ones cost a little more. Affects speed only.
    pub horizon: Time,
    /// Windows per lookahead: short windows keep the events of one window in the cache, long ones make larger batches. Affects
    /// speed only.
    pub windows_per_lookahead: u64,
    /// For every node, the thread that runs it, at first. Affects speed only.
    pub partition: Option<Vec<u16>>,
    /// All nodes, those that send to each other most close together: batches are run in nearly this order, and when nodes are partitioned anew, each
    /// thread gets some that follow each other. Affects speed only.
    pub order: Option<Vec<NodeIndex>>,
    /// Whether nodes are partitioned anew where some threads have more to do than others. Affects speed only.
    pub rebalance: Option<Rebalance>,
    /// The bipartition of the nodes, if there is one. Affects speed only: windows are then as long as the lookaheads of both sides together, as
    /// nothing can come from the other side before that has been run.
    pub bipartition: Option<Bipartition>,
}

/// Two sides of nodes, *even* and *odd*, of which no node ever sends a message to one of its own side: the two classes of a bipartite graph.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bipartition {
    /// For every node, whether it is on the odd side.
    pub is_odd: Vec<bool>,
    /// No message arrives earlier than this after its cause: from the even side, and from the odd one. The larger one of this and
    /// [`Setup::lookahead`] counts.
    pub lookaheads: [Time; 2],
}

impl Setup {
    /// One thread, no time limit.
    pub fn new(lookahead: Time) -> Self {
        Setup {
            lookahead,
            until: Time::MAX,
            horizon: lookahead * 4,
            windows_per_lookahead: 1,
            partition: None,
            order: None,
            rebalance: None,
            bipartition: None,
        }
    }

    /// Whether this many nodes can be run so.
    pub(crate) fn check(&self, nodes: usize) -> Result<(), EngineError> {
        if self.lookahead == Time::ZERO {
            return Err(EngineError::NoLookahead);
        }
        let differs = |entries: &usize| *entries != nodes;
        if let Some(entries) = self.partition.as_ref().map(Vec::len).filter(differs) {
            return Err(EngineError::Partition { entries, nodes });
        }
        if let Some(entries) = self.bipartition.as_ref().map(|sides| sides.is_odd.len()).filter(differs) {
            return Err(EngineError::Bipartition { entries, nodes });
        }
        match &self.order {
            Some(order) if !is_permutation(order, nodes) => {
                Err(EngineError::Order { named: order.len(), nodes })
            }
            _ => Ok(()),
        }
    }
}

/// Why an engine cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// Without a lookahead no two nodes are ever independent.
    #[error("the lookahead is zero: every message must take some time")]
    NoLookahead,
    /// `partition` does not have one entry per node.
    #[error("{entries} nodes are placed on threads but there are {nodes} nodes")]
    Partition {
        /// Entries given.
        entries: usize,
        /// Nodes given.
        nodes: usize,
    },
    /// `order` does not name every node once.
    #[error("the order of nodes names {named} of {nodes} nodes, or one twice")]
    Order {
        /// Entries given.
        named: usize,
        /// Nodes given.
        nodes: usize,
    },
    /// `bipartition` does not have one entry per node.
    #[error("{entries} nodes are on a side of the bipartition but there are {nodes} nodes")]
    Bipartition {
        /// Entries given.
        entries: usize,
        /// Nodes given.
        nodes: usize,
    },
}

/// Whether every one of this many nodes is named once.
fn is_permutation(order: &[NodeIndex], nodes: usize) -> bool {
    let mut is_named = vec![false; nodes];
    let names = |&node: &NodeIndex| {
        is_named.get_mut(node as usize).is_some_and(|is_named| !std::mem::replace(is_named, true))
    };
    order.len() == nodes && order.iter().all(names)
}
