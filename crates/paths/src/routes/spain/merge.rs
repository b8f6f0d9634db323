//! Merging trees into forests: each into the first one with which it makes no cycle.
//!
//! A forest takes, of the trees that no forest before it has taken, one after the other those that it can. So forests are made one by one, each in a
//! processor's nearest cache while all trees pass by, and what each takes is the same as if every tree looked for its forest.

use netloom_topology::RouterGraph;

use crate::link_set::LinkSet;

/// A tree's links, and the routers that they join.
pub(super) struct Tree {
    edges: Vec<u32>,
    ends: Vec<(u32, u32)>,
}

impl Tree {
    /// A tree with some edges.
    pub(super) fn new(graph: &RouterGraph, edges: Vec<u32>) -> Self {
        let ends = edges.iter().map(|&edge| graph.edges()[edge as usize]);
        Tree { ends: ends.collect(), edges }
    }
}

/// The forests of some trees that are merged in this order, each made when it is asked for: how many links it has, and which.
pub(super) fn merge(graph: &RouterGraph, mut trees: Vec<Tree>) -> impl Iterator<Item = (usize, LinkSet)> {
    let mut joined = Joined::new(graph);
    std::iter::from_fn(move || {
        let mut forest = (!trees.is_empty()).then(|| Forest::new(graph))?;
        trees.retain(|tree| !forest.takes(tree, &mut joined));
        Some((forest.count, forest.links))
    })
}

/// A set of links without a cycle.
struct Forest {
    links: LinkSet,
    count: usize,
    /// `[router]`: the part in which it is, named by a router of it.
    part_of: Vec<u32>,
}

impl Forest {
    fn new(graph: &RouterGraph) -> Self {
        let part_of = (0..graph.routers()).collect();
        Forest { links: LinkSet::empty(graph), count: 0, part_of }
    }

    /// Adds a tree if the union has no cycle.
    fn takes(&mut self, tree: &Tree, joined: &mut Joined) -> bool {
        // Mostly a link makes a cycle by itself.
        let parts = |(a, b): (u32, u32)| (self.part_of[a as usize], self.part_of[b as usize]);
        let is_closed = |place: usize, ends: (u32, u32)| {
            let (a, b) = parts(ends);
            a == b && !self.links.contains(tree.edges[place])
        };
        if tree.ends.iter().enumerate().any(|(place, &ends)| is_closed(place, ends)) {
            return false;
        }
        let new = tree.edges.iter().zip(&tree.ends).filter(|&(&edge, _)| !self.links.contains(edge));
        let is_free = new.map(|(_, &ends)| parts(ends)).all(|(a, b)| joined.join(a, b));
        if is_free {
            self.count += joined.changed.len();
            tree.edges.iter().for_each(|&edge| self.links.insert(edge));
            self.part_of.iter_mut().for_each(|part| *part = joined.last(*part));
        }
        joined.forget();
        is_free
    }
}

/// Which parts of a forest a tree joins.
struct Joined {
    /// Per part, the one to which it is joined; itself where that is none.
    to: Vec<u32>,
    changed: Vec<u32>,
}

impl Joined {
    fn new(graph: &RouterGraph) -> Self {
        Joined { to: (0..graph.routers()).collect(), changed: Vec::new() }
    }

    /// The part to which a part is joined in the end.
    fn last(&mut self, mut part: u32) -> u32 {
        loop {
            let next = self.to[part as usize];
            if next == part {
                return part;
            }
            // Halves the way for those that come later.
            self.to[part as usize] = self.to[next as usize];
            part = next;
        }
    }

    /// Joins two parts; whether they were not yet.
    fn join(&mut self, a: u32, b: u32) -> bool {
        let (a, b) = (self.last(a), self.last(b));
        if a != b {
            self.to[a as usize] = b;
            self.changed.push(a);
        }
        a != b
    }

    /// Parts that are joined are only those that changed, also where ways were halved.
    fn forget(&mut self) {
        for part in self.changed.drain(..) {
            self.to[part as usize] = part;
        }
    }
}
