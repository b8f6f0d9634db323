//! SPAIN's paths toward one destination, and the in-trees that they are coloured into.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use netloom_topology::RouterGraph;
use rand::RngExt;
use rand_pcg::Pcg64Mcg;

use crate::distance::{UNREACHABLE, distances_from};
use crate::tables::{directed_edge, head};

/// How many hops beyond the minimum a disjoint path is searched for before all paths are weighed.
const SLACK: u16 = 3;

/// The search for paths toward one destination.
pub(super) struct Toward<'a> {
    graph: &'a RouterGraph,
    destination: u32,
    distance: Vec<u16>,
    onward: Onward,
    pub(super) rng: Pcg64Mcg,
    /// Edges of the current pair's earlier paths, how often each is used.
    used: Vec<u32>,
    /// Those that are used at all, a bit each.
    is_used: Vec<u64>,
    /// `(search, edge by which the router was entered)`.
    entered: Vec<(u32, u32)>,
    search: u32,
    /// The routers that a search has reached with its last hop, in this order.
    frontier: Vec<u32>,
    /// Those that it reaches with the next one.
    next: Vec<u32>,
    /// The ports with which the routers of the frontier begin.
    starts: Vec<usize>,
}

impl<'a> Toward<'a> {
    pub(super) fn new(graph: &'a RouterGraph, destination: u32, rng: Pcg64Mcg) -> Self {
        let distance = distances_from(graph, &[destination], UNREACHABLE);
        Toward {
            graph,
            destination,
            onward: Onward::new(graph, &distance),
            distance,
            rng,
            used: vec![0; graph.edges().len()],
            is_used: vec![0; graph.edges().len().div_ceil(64)],
            entered: vec![(0, 0); graph.routers() as usize],
            search: 0,
            frontier: Vec::new(),
            next: Vec::new(),
            starts: Vec::new(),
        }
    }

    /// Colours the paths of all sources: paths that go on differently from a shared router get different colours. Each
    /// colour is a tree toward the destination, returned as its edges.
    pub(super) fn in_trees(mut self, sources: &[u32], paths: u32) -> Vec<Vec<u32>> {
        let mut colours = Colours::new(self.graph);
        let destination = self.destination;
        for &source in sources.iter().filter(|&&source| source != destination) {
            self.disjoint_paths(source, paths).iter().for_each(|path| colours.add(self.graph, path));
        }
        colours.trees
    }

    /// Up to `count` paths from a source. Each edge of a path found makes later use of that edge dearer than any detour;
    /// the search ends when it finds a path again.
    pub(super) fn disjoint_paths(&mut self, source: u32, count: u32) -> Vec<Vec<u32>> {
        let mut paths: Vec<Vec<u32>> = Vec::new();
        if self.distance[source as usize] == UNREACHABLE {
            return paths;
        }
        while paths.len() < count as usize {
            let shortest = self.distance[source as usize];
            let is_found =
                (shortest..=shortest.saturating_add(SLACK)).any(|longest| self.is_unused(source, longest));
            if !is_found {
                self.lightest(source);
            }
            let path = self.way_back(source);
            if paths.contains(&path) {
                break;
            }
            for edge in path.iter().map(|&step| step as usize / 2) {
                self.used[edge] += 1;
                self.is_used[edge / 64] |= 1 << (edge % 64);
            }
            paths.push(path);
        }
        for edge in paths.iter().flatten().map(|&step| step as usize / 2) {
            self.used[edge] = 0;
            self.is_used[edge / 64] = 0;
        }
        paths
    }

    /// Looks for a path of this many hops without used edges, breadth-first from a random port, where there is no shorter one.
    ///
    /// Every router that is reached draws the port with which it begins when its turn comes, hop by hop. Which routers the last hop but one reaches
    /// is looked at only as far as the first of them that leads to the destination.
    fn is_unused(&mut self, source: u32, hops: u16) -> bool {
        self.search += 1;
        self.entered[source as usize].0 = self.search;
        self.frontier.clear();
        self.frontier.push(source);
        for left in (2..hops).rev() {
            let frontier = std::mem::take(&mut self.frontier);
            let mut next = std::mem::take(&mut self.next);
            next.clear();
            for &here in &frontier {
                let start = self.draw(here);
                self.enter(here, start, left, |_, neighbour| {
                    next.push(neighbour);
                    false
                });
            }
            (self.frontier, self.next) = (next, frontier);
        }
        if hops == 1 {
            let start = self.draw(source);
            return self.arrives(source, start);
        }
        let (frontier, mut starts) = (std::mem::take(&mut self.frontier), std::mem::take(&mut self.starts));
        starts.clear();
        starts.extend(frontier.iter().map(|&here| self.draw(here)));
        let is_found = frontier.iter().zip(&starts).any(|(&here, &start)| {
            self.enter(here, start, 1, |toward, neighbour| {
                let start = toward.draw(neighbour);
                toward.arrives(neighbour, start)
            })
        });
        (self.frontier, self.starts) = (frontier, starts);
        is_found
    }

    /// A port of a router, by chance.
    fn draw(&mut self, router: u32) -> usize {
        self.rng.random_range(0..self.graph.neighbours(router).len())
    }

    /// Enters the neighbours of a router that are this many hops from the destination at most, from a port on and around, until `is_done` says so.
    #[inline]
    fn enter(
        &mut self,
        here: u32,
        start: usize,
        left: u16,
        mut is_done: impl FnMut(&mut Self, u32) -> bool,
    ) -> bool {
        let (neighbours, edges) = (self.graph.neighbours(here), self.graph.edge_ids(here));
        let farther = left.checked_sub(self.distance[here as usize]);
        for piece in 0..=self.onward.words {
            let (first, mut ports) = self.onward.around(here, farther, start, piece);
            while ports != 0 {
                let port = first + ports.trailing_zeros() as usize;
                ports &= ports - 1;
                let (neighbour, edge) = (neighbours[port], edges[port]);
                let is_seen = self.entered[neighbour as usize].0 == self.search;
                if is_seen || self.is_used[edge as usize / 64] >> (edge % 64) & 1 == 1 {
                    continue;
                }
                self.entered[neighbour as usize] = (self.search, edge);
                if is_done(self, neighbour) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether an unused edge leads from a router to the destination.
    fn arrives(&mut self, here: u32, start: usize) -> bool {
        self.enter(here, start, 0, |_, _| true)
    }

    /// Looks for the path with the fewest repeated uses, then the fewest hops.
    fn lightest(&mut self, source: u32) {
        let mut cost = vec![(u32::MAX, u32::MAX); self.graph.routers() as usize];
        cost[source as usize] = (0, 0);
        let mut heap = BinaryHeap::from([Reverse(((0, 0), source))]);
        while let Some(Reverse((so_far, here))) = heap.pop() {
            if so_far > cost[here as usize] {
                continue;
            }
            for (&neighbour, &edge) in self.graph.neighbours(here).iter().zip(self.graph.edge_ids(here)) {
                let total = (so_far.0 + self.used[edge as usize], so_far.1 + 1);
                if total < cost[neighbour as usize] {
                    cost[neighbour as usize] = total;
                    self.entered[neighbour as usize].1 = edge;
                    heap.push(Reverse((total, neighbour)));
                }
            }
        }
    }

    /// The path that a search has found.
    fn way_back(&self, source: u32) -> Vec<u32> {
        let mut path = Vec::new();
        let mut here = self.destination;
        while here != source {
            let step = directed_edge(self.graph, self.entered[here as usize].1, here) ^ 1;
            path.push(step);
            here = head(self.graph, step ^ 1);
        }
        path.reverse();
        path
    }
}

/// The ports of routers: which lead nearer to the destination, which no farther away, and all there are; a bit each.
struct Onward {
    /// Words of a router's row.
    words: usize,
    nearer: Vec<u64>,
    no_farther: Vec<u64>,
    all: Vec<u64>,
}

impl Onward {
    fn new(graph: &RouterGraph, distance: &[u16]) -> Self {
        let degree = (0..graph.routers()).map(|router| graph.neighbours(router).len()).max().unwrap_or(0);
        let words = degree.div_ceil(64).max(1);
        let rows = vec![0; graph.routers() as usize * words];
        let mut onward = Onward { words, nearer: rows.clone(), no_farther: rows.clone(), all: rows };
        for here in 0..graph.routers() {
            let hops = distance[here as usize];
            for (port, &neighbour) in graph.neighbours(here).iter().enumerate() {
                let (word, bit) = (here as usize * words + port / 64, port % 64);
                onward.nearer[word] |= u64::from(distance[neighbour as usize] < hops) << bit;
                onward.no_farther[word] |= u64::from(distance[neighbour as usize] <= hops) << bit;
                onward.all[word] |= 1 << bit;
            }
        }
        onward
    }

    /// A router's ports by which the destination is at most a number of hops away, from one port on and around, in `words` pieces and one: the first port of a
    /// piece, and a bit for each from there. The number is so much beyond the router's own distance, `None` if it is one less.
    #[inline]
    fn around(&self, here: u32, farther: Option<u16>, start: usize, piece: usize) -> (usize, u64) {
        let word = (start / 64 + piece) % self.words;
        let row = here as usize * self.words + word;
        let ports = match farther {
            None => self.nearer[row],
            Some(0) => self.no_farther[row],
            Some(_) => self.all[row],
        };
        let from_start = u64::MAX << (start % 64);
        let part = match piece {
            0 => from_start,
            last if last == self.words => !from_start,
            _ => u64::MAX,
        };
        (word * 64, ports & part)
    }
}

/// Trees toward a destination, a colour each, known by a bit.
struct Colours {
    /// Words of a row of bits.
    words: usize,
    /// `[router]`: the colours in which it is not; also those that no path has yet.
    free: Vec<u64>,
    /// `[directed edge]`: the colours to which it belongs.
    taken: Vec<u64>,
    /// Per colour, its edges.
    trees: Vec<Vec<u32>>,
}

impl Colours {
    fn new(graph: &RouterGraph) -> Self {
        let (routers, edges) = (graph.routers() as usize, graph.edges().len());
        Colours { words: 1, free: vec![u64::MAX; routers], taken: vec![0; 2 * edges], trees: Vec::new() }
    }

    /// Gives a path the first colour in which all its routers go on as it does, or in which they are not.
    fn add(&mut self, graph: &RouterGraph, path: &[u32]) {
        let tail = |step: u32| head(graph, step ^ 1) as usize;
        let fits = |colours: &Self, word: usize| {
            path.iter().fold(u64::MAX, |fits, &step| {
                fits & (colours.free[tail(step) * colours.words + word]
                    | colours.taken[step as usize * colours.words + word])
            })
        };
        let found = (0..self.words).find(|&word| fits(self, word) != 0);
        let word = found.unwrap_or_else(|| {
            self.grow();
            self.words / 2
        });
        let bit = fits(self, word).trailing_zeros();
        let colour = word * 64 + bit as usize;
        self.trees.resize_with(self.trees.len().max(colour + 1), Vec::new);
        for &step in path {
            let taken = &mut self.taken[step as usize * self.words + word];
            if *taken >> bit & 1 == 0 {
                *taken |= 1 << bit;
                self.free[tail(step) * self.words + word] &= !(1 << bit);
                self.trees[colour].push(step / 2);
            }
        }
    }

    /// Makes room for as many colours more.
    fn grow(&mut self) {
        let words = self.words;
        let wider = |rows: &[u64], new: u64| -> Vec<u64> {
            rows.chunks(words)
                .flat_map(|row| row.iter().copied().chain(std::iter::repeat_n(new, words)))
                .collect()
        };
        (self.free, self.taken) = (wider(&self.free, u64::MAX), wider(&self.taken, 0));
        self.words *= 2;
    }
}
