//! A tree per layer and destination, grown when somebody first asks for a way to the destination.

use std::fmt;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use netloom_topology::RouterGraph;
use rayon::prelude::*;

use super::hops::{Diameter, Hops};
use super::rises::Counted;
use super::{Bound, Entries};
use crate::distance::endpoints;
use crate::link_set::LinkSet;

/// The port of every router towards its parent, [`NO_PORT`](super::NO_PORT) at the destination and where there is no way.
type Tree = Vec<u16>;

/// What it takes to grow the trees of tables. A tree is known by its number: its layer times the number of routers, and its destination.
pub(crate) struct Trees {
    growth: Growth,
    paths: Paths,
}

/// In which order trees may be grown.
enum Growth {
    /// Any: they depend on nothing but their number.
    Alone { grow: Box<dyn Fn(usize) -> Tree + Send + Sync>, is_grown: Vec<Once> },
    /// That of their numbers: each depends on all before it.
    InTurn(Mutex<InTurn>),
}

struct InTurn {
    /// How many have been grown.
    grown: usize,
    grow: Box<dyn FnMut(usize) -> Tree + Send>,
}

/// How long the trees' paths are.
pub(crate) enum Paths {
    /// As short as any in the graph.
    Minimal(Arc<RouterGraph>, OnceLock<Diameter>),
    /// Of two such paths at most, to the tree's root and from there.
    OverRoot(Arc<RouterGraph>),
}

/// How many trees are grown to see how long their paths are.
const PROBED: usize = 16;

/// From how many routers.
const PROBES: usize = 256;

impl Paths {
    /// Trees of shortest paths in a graph.
    pub(crate) fn minimal(graph: Arc<RouterGraph>) -> Self {
        Paths::Minimal(graph, OnceLock::new())
    }
}

impl fmt::Debug for Trees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trees").finish_non_exhaustive()
    }
}

impl Trees {
    /// So many trees that depend on nothing but their number.
    pub(crate) fn alone(
        count: usize,
        paths: Paths,
        grow: impl Fn(usize) -> Tree + Send + Sync + 'static,
    ) -> Self {
        let is_grown = (0..count).map(|_| Once::new()).collect();
        Trees { growth: Growth::Alone { grow: Box::new(grow), is_grown }, paths }
    }

    /// Trees that are grown one after the other, in the order of their numbers.
    pub(crate) fn in_turn(paths: Paths, grow: impl FnMut(usize) -> Tree + Send + 'static) -> Self {
        let in_turn = InTurn { grown: 0, grow: Box::new(grow) };
        Trees { growth: Growth::InTurn(Mutex::new(in_turn)), paths }
    }

    /// How far routers are apart on the trees, if that is known of trees that nobody has grown.
    pub(super) fn diameter(&self) -> Option<Diameter> {
        match &self.paths {
            Paths::Minimal(graph, known) => {
                Some(*known.get_or_init(|| Hops::measure(graph, &LinkSet::full(graph)).diameter()))
            }
            Paths::OverRoot(_) => None,
        }
    }

    /// As [`ForwardingTables::bound`](super::ForwardingTables::bound).
    pub(super) fn bound(&self, is_high: impl Fn(u32, usize) -> bool) -> Bound {
        match &self.paths {
            Paths::Minimal(graph, _) => {
                let counted = Counted::measure(graph, &LinkSet::full(graph), &endpoints(graph), is_high);
                let probes = counted.between.into_iter().map(|(from, to)| (0, from, to)).collect();
                Bound { hops: counted.hops, probes, is_connected: true }
            }
            Paths::OverRoot(graph) => {
                let all: Vec<u32> = (0..graph.routers()).collect();
                let counted = Counted::measure(graph, &LinkSet::full(graph), &all, is_high);
                let ends = endpoints(graph);
                let some = |most: usize| ends.iter().copied().step_by(ends.len().div_ceil(most).max(1));
                let probes =
                    some(PROBED).flat_map(|to| some(PROBES).map(move |from| (0, from, to))).collect();
                Bound { hops: 2 * counted.hops, probes, is_connected: true }
            }
        }
    }

    /// As [`ForwardingTables::longer_pairs`](super::ForwardingTables::longer_pairs).
    pub(super) fn longer_pairs(&self) -> Option<Vec<(u32, u32, u32)>> {
        matches!(self.paths, Paths::Minimal(..)).then(Vec::new)
    }

    /// Grows so many trees, all there are.
    pub(super) fn all(&self, count: usize, entries: &Entries) {
        match &self.growth {
            Growth::Alone { .. } => (0..count).into_par_iter().for_each(|tree| self.tree(tree, entries)),
            Growth::InTurn(_) => count.checked_sub(1).into_iter().for_each(|last| self.tree(last, entries)),
        }
    }

    /// Grows a tree, unless that has been done. Who asks for the same one meanwhile waits.
    pub(super) fn tree(&self, tree: usize, entries: &Entries) {
        let write = |number: usize, tree: Tree| {
            (number * tree.len()..).zip(tree).for_each(|(place, port)| entries.set(place, port));
        };
        match &self.growth {
            Growth::Alone { grow, is_grown } => is_grown[tree].call_once(|| write(tree, grow(tree))),
            Growth::InTurn(in_turn) => {
                let mut in_turn = in_turn.lock().unwrap_or_else(PoisonError::into_inner);
                while in_turn.grown <= tree {
                    let next = in_turn.grown;
                    write(next, (in_turn.grow)(next));
                    in_turn.grown += 1;
                }
            }
        }
    }
}
