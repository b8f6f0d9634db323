//! Tiny graphs that all tests of this room share.

use netloom_topology::RouterGraph;

use crate::tables::ForwardingTables;

/// A graph with one host at every router.
pub(crate) fn graph(routers: u32, edges: Vec<(u32, u32)>) -> RouterGraph {
    RouterGraph::new(vec![1; routers as usize], edges)
}

pub(crate) fn cycle(n: u32) -> RouterGraph {
    graph(n, (0..n).map(|i| (i, (i + 1) % n)).collect())
}

pub(crate) fn complete(n: u32) -> RouterGraph {
    graph(n, (0..n).flat_map(|i| (i + 1..n).map(move |j| (i, j))).collect())
}

/// Ten routers, degree 3, diameter 2, girth 5: one path of length 1 or 2 between any two routers.
pub(crate) fn petersen() -> RouterGraph {
    let outer = (0..5).map(|i| (i, (i + 1) % 5));
    let spokes = (0..5).map(|i| (i, i + 5));
    let inner = (0..5).map(|i| (i + 5, (i + 2) % 5 + 5));
    graph(10, outer.chain(spokes).chain(inner).collect())
}

/// A connected random graph: a path through all routers and some chords.
pub(crate) fn random(routers: u32, chords: usize, seed: u64) -> RouterGraph {
    use rand::{RngExt, SeedableRng};
    let mut rng = rand_pcg::Pcg64Mcg::seed_from_u64(seed);
    let mut edges: Vec<(u32, u32)> = (1..routers).map(|i| (rng.random_range(0..i), i)).collect();
    for _ in 0..chords {
        let (a, b) = (rng.random_range(0..routers), rng.random_range(0..routers));
        if a != b && !edges.contains(&(a.min(b), a.max(b))) {
            edges.push((a.min(b), a.max(b)));
        }
    }
    graph(routers, edges)
}

/// All entries of tables, by layer, router and destination.
pub(crate) fn entries(tables: &ForwardingTables) -> Vec<Option<u16>> {
    let routers = tables.routers();
    let pairs = (0..routers).flat_map(|here| (0..routers).map(move |to| (here, to)));
    let all = (0..tables.layers()).flat_map(|layer| pairs.clone().map(move |(here, to)| (layer, here, to)));
    all.map(|(layer, here, to)| tables.next_port(layer, here, to)).collect()
}
