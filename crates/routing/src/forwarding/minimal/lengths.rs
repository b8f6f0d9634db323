//! How long minimal paths are.

use netloom_topology::{ChannelId, Network};
use netloom_units::narrow;

use super::super::distances::{Distances, Links, ROOTS, bits};
use super::super::rows::Numbers;
use super::RouteTable;

/// How long minimal paths are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Reach {
    /// The most global hops from any switch to one with hosts.
    pub(crate) globals: u32,
    /// The most hops from any switch to one with hosts on a path without global hops.
    pub(crate) local: u32,
    /// The most hops between two switches with hosts.
    pub(crate) between: u32,
    /// The most hops from one of them to another and on to a third; 0 where there are not three.
    pub(crate) over: u32,
}

impl Reach {
    /// Counts in the distances of some roots, all of them switches with hosts, from the other ones.
    pub(super) fn count(&mut self, distances: &Distances, edges: &[usize]) {
        let mut levels: Vec<_> = distances.levels().filter(|&(_, hops, _)| hops > 0).collect();
        levels.sort_unstable_by_key(|&(_, hops, _)| std::cmp::Reverse(hops));
        // The roots from which one switch is as far as this or farther, those from which two are, and the hops to the first.
        let (mut once, mut twice, mut farthest) = (0, 0, [0; ROOTS]);
        for (globals, hops, at) in levels {
            self.globals = self.globals.max(globals);
            if globals == 0 {
                self.local = self.local.max(hops);
            }
            let (known_once, known_twice) = (once, twice);
            for &edge in edges {
                twice |= once & at[edge];
                once |= at[edge];
            }
            for root in bits(once & !known_once) {
                farthest[root] = hops;
                self.between = self.between.max(hops);
            }
            bits(twice & !known_twice).for_each(|root| self.over = self.over.max(farthest[root] + hops));
        }
    }
}

/// Hops between all switches that have hosts, on minimal paths.
#[derive(Clone, Debug)]
pub(crate) struct Hops {
    edges: usize,
    /// The hops that occur, in all and over global links; up to 65,535.
    kinds: Vec<(u16, u16)>,
    /// Per pair, its place there.
    between: Numbers,
}

impl Hops {
    /// Those of a network without its cut links.
    pub(crate) fn measure(network: &Network, table: &RouteTable, is_cut: impl Fn(ChannelId) -> bool) -> Self {
        let links = Links::new(network, is_cut);
        let edges: Vec<usize> =
            (0..table.edges()).map(|edge| (table.edge_switch(edge) - network.hosts()) as usize).collect();
        // What no path leads to is as far as can be said.
        let (mut kinds, mut between) = (vec![(u16::MAX, u16::MAX)], Numbers::default());
        let count = |count: u32| u16::try_from(count).unwrap_or(u16::MAX);
        let mut rows = Vec::new();
        for roots in edges.chunks(ROOTS) {
            let distances = Distances::measure(&links, roots);
            rows.clear();
            rows.resize(roots.len() * table.edges, 0);
            for (globals, hops, at) in distances.levels() {
                let kind = (count(hops), count(globals));
                let place = kinds.iter().position(|&known| known == kind).unwrap_or_else(|| {
                    kinds.push(kind);
                    kinds.len() - 1
                });
                for (from, &edge) in edges.iter().enumerate() {
                    // All links lead both ways.
                    bits(at[edge]).for_each(|root| rows[root * table.edges + from] = narrow::<u32>(place));
                }
            }
            between.extend(&rows);
        }
        Hops { edges: table.edges, kinds, between }
    }

    /// Hops between two switches, by their indices among those with hosts.
    #[inline]
    pub(crate) fn between(&self, from: u32, to: u32) -> u32 {
        u32::from(self.kind(from, to).0)
    }

    /// Those of them that cross global links.
    pub(crate) fn globals(&self, from: u32, to: u32) -> u16 {
        self.kind(from, to).1
    }

    #[inline]
    fn kind(&self, from: u32, to: u32) -> (u16, u16) {
        self.kinds[self.between.at(to as usize * self.edges + from as usize) as usize]
    }
}
