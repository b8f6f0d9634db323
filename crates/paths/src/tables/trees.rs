//! A tree per layer and destination, grown when a way to the destination is first asked for.

use netloom_units::narrow;
use std::cmp::Reverse;
use std::fmt;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use netloom_topology::RouterGraph;
use rayon::prelude::*;

use super::hops::{Diameter, Reach};
use super::rises::{Counted, OverRoots};
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
    /// Of two such paths at most, to the tree's root and from there, but for what they have in common; by the tree's number its root.
    OverRoot(Arc<RouterGraph>, Vec<u32>),
}

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
    /// A number of trees that depend on nothing but that number.
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
                Some(*known.get_or_init(|| Reach::measure(graph, &LinkSet::full(graph)).diameter))
            }
            Paths::OverRoot(..) => None,
        }
    }

    /// As [`ForwardingTables::bound`](super::ForwardingTables::bound). `reaches` says whether the route of a layer, from one router to another, counts this many hops.
    pub(super) fn bound(
        &self,
        entries: &Entries,
        is_high: impl Fn(u32, usize) -> bool + Copy,
        reaches: impl Fn(&RouterGraph, (u32, u32, u32), u32) -> bool,
    ) -> Bound {
        let (hops, is_used) = match &self.paths {
            Paths::Minimal(graph, _) => {
                let ends = endpoints(graph);
                let counted = Counted::measure(graph, &LinkSet::full(graph), &ends, &ends, is_high);
                let reaches = |&(from, to): &(u32, u32)| reaches(graph, (0, from, to), counted.hops);
                (counted.hops, counted.hops == 0 || counted.between.iter().any(reaches))
            }
            Paths::OverRoot(graph, roots) => (self.most_over(graph, roots, entries, is_high), true),
        };
        Bound { hops, is_used, is_connected: true }
    }

    /// The most counted hops on any tree. Those trees are grown first whose roots and destinations allow the most, until none that is left can have more than was found.
    fn most_over(
        &self,
        graph: &RouterGraph,
        roots: &[u32],
        entries: &Entries,
        is_high: impl Fn(u32, usize) -> bool + Copy,
    ) -> u32 {
        let (ends, routers) = (endpoints(graph), graph.routers() as usize);
        let first_trees = (0..roots.len()).step_by(routers);
        let trees = first_trees.flat_map(|first| ends.iter().map(move |&end| first + end as usize));
        let trees: Vec<(usize, u32, u32)> =
            trees.map(|tree| (tree, roots[tree], narrow::<u32>(tree % routers))).collect();
        let pairs = trees.iter().map(|&(_, root, destination)| (root, destination));
        let over = OverRoots::measure(graph, &ends, pairs, is_high);
        let mut by_most: Vec<(u32, usize)> =
            trees.iter().map(|&(tree, root, destination)| (over.most(root, destination), tree)).collect();
        by_most.sort_unstable_by_key(|&(most, tree)| (Reverse(most), tree));
        let mut found = 0;
        for (most, tree) in by_most {
            if most <= found {
                break;
            }
            self.tree(tree, entries);
            found = found.max(longest(graph, entries, tree, &ends, is_high));
        }
        found
    }

    /// As [`ForwardingTables::longer_pairs`](super::ForwardingTables::longer_pairs).
    pub(super) fn longer_pairs(&self) -> Option<Vec<(u32, u32, u32)>> {
        matches!(self.paths, Paths::Minimal(..)).then(Vec::new)
    }

    /// Grows this many trees, all there are.
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

/// The most counted hops from any of the ends on a tree that has been grown.
fn longest(
    graph: &RouterGraph,
    entries: &Entries,
    tree: usize,
    ends: &[u32],
    is_high: impl Fn(u32, usize) -> bool,
) -> u32 {
    let routers = graph.routers() as usize;
    // Per router, its counted hops and whether the first of them is over a low link.
    let mut known: Vec<Option<(u32, bool)>> = vec![None; routers];
    known[tree % routers] = Some((0, false));
    let (mut most, mut way) = (0, Vec::new());
    for &end in ends {
        let mut here = end as usize;
        while known[here].is_none() {
            let port = usize::from(entries.get(tree * routers + here) - 1);
            way.push((here, !is_high(narrow::<u32>(here), port)));
            here = graph.neighbours(narrow::<u32>(here))[port] as usize;
        }
        while let Some((router, is_low)) = way.pop() {
            let (hops, is_next_low) = known[here].expect("it is nearer to the destination");
            // Behind a low link a high one is free.
            let is_free = is_low && hops > 0 && !is_next_low;
            known[router] = Some((hops + 1 - u32::from(is_free), is_low));
            here = router;
        }
        let (hops, _) = known[end as usize].expect("it was walked");
        most = most.max(hops);
    }
    most
}
