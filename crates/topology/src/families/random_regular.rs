//! Random regular graphs, the way Jellyfish grows them.

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;

/// A simple `degree`-regular graph on `nodes` nodes as pairs, or `None` if this draw got stuck; the caller draws again.
///
/// Links are added between random nodes with free ports that are not adjacent yet, until that is no longer possible;
/// the ports left over are placed by swaps: a random link (x, y) gives way to (u, x) and (v, y). Unlike the published
/// procedure this ends with no free port at all, provided that `nodes * degree` is even, as the caller ensures along
/// with `degree < nodes`.
pub(crate) fn random_regular(nodes: u32, degree: u32, rng: &mut Pcg64Mcg) -> Option<Vec<(u32, u32)>> {
    // A dense graph leaves swaps no room. Its complement is sparse, and as random.
    let complement = nodes - 1 - degree;
    if complement < degree {
        let missing = Draft::grow(nodes, complement, rng)?;
        let pairs = (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b)));
        let mut edges: Vec<_> = pairs.filter(|&(a, b)| !missing.adjacent(a, b)).collect();
        edges.shuffle(rng);
        return Some(edges);
    }
    Draft::grow(nodes, degree, rng).map(|draft| draft.edges)
}

/// A graph in the making.
struct Draft {
    edges: Vec<(u32, u32)>,
    neighbours: Vec<Vec<u32>>,
}

impl Draft {
    fn grow(nodes: u32, degree: u32, rng: &mut Pcg64Mcg) -> Option<Draft> {
        let mut draft = Draft {
            edges: Vec::with_capacity(nodes as usize * degree as usize / 2),
            neighbours: vec![Vec::with_capacity(degree as usize); nodes as usize],
        };
        if degree == 0 {
            return Some(draft);
        }
        let mut open: Vec<u32> = (0..nodes).collect();
        // With few open nodes most of them may be adjacent; the swaps finish what random picks keep missing.
        let mut misses = 0;
        while open.len() > 1 && misses < 1000 {
            let (i, j) = (rng.random_range(0..open.len()), rng.random_range(0..open.len()));
            let (a, b) = (open[i], open[j]);
            if i == j || draft.adjacent(a, b) {
                misses += 1;
                continue;
            }
            misses = 0;
            draft.join(a, b);
            // The later position first: removal moves the last entry into the gap.
            for position in [i.max(j), i.min(j)] {
                if draft.neighbours[open[position] as usize].len() == degree as usize {
                    open.swap_remove(position);
                }
            }
        }
        let free = |node: u32| degree as usize - draft.neighbours[node as usize].len();
        let ports: Vec<u32> = open.iter().flat_map(|&node| std::iter::repeat_n(node, free(node))).collect();
        draft.place(ports, rng).then_some(draft)
    }

    /// Uses up the free ports, of which there is an even number.
    fn place(&mut self, mut ports: Vec<u32>, rng: &mut Pcg64Mcg) -> bool {
        ports.shuffle(rng);
        while let (Some(u), Some(v)) = (ports.pop(), ports.pop()) {
            if u != v && !self.adjacent(u, v) {
                self.join(u, v);
                continue;
            }
            let found = (0..10_000).find_map(|_| {
                let index = rng.random_range(0..self.edges.len().max(1));
                let &(x, y) = self.edges.get(index)?;
                let (x, y) = if rng.random() { (x, y) } else { (y, x) };
                let fits = ![x, y].contains(&u) && ![x, y].contains(&v);
                (fits && !self.adjacent(u, x) && !self.adjacent(v, y)).then_some((index, x, y))
            });
            let Some((index, x, y)) = found else { return false };
            self.edges.swap_remove(index);
            self.neighbours[x as usize].retain(|&other| other != y);
            self.neighbours[y as usize].retain(|&other| other != x);
            self.join(u, x);
            self.join(v, y);
        }
        true
    }

    fn join(&mut self, a: u32, b: u32) {
        self.edges.push((a, b));
        self.neighbours[a as usize].push(b);
        self.neighbours[b as usize].push(a);
    }

    fn adjacent(&self, a: u32, b: u32) -> bool {
        self.neighbours[a as usize].contains(&b)
    }
}

/// Whether the edges connect all nodes.
pub(crate) fn is_connected(nodes: u32, edges: &[(u32, u32)]) -> bool {
    let mut root: Vec<u32> = (0..nodes).collect();
    fn find(root: &mut [u32], mut node: u32) -> u32 {
        while root[node as usize] != node {
            root[node as usize] = root[root[node as usize] as usize];
            node = root[node as usize];
        }
        node
    }
    let mut components = nodes;
    for &(a, b) in edges {
        let (a, b) = (find(&mut root, a), find(&mut root, b));
        if a != b {
            root[a as usize] = b;
            components -= 1;
        }
    }
    components == 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng;

    fn is_simple_and_regular(nodes: u32, degree: u32, edges: &[(u32, u32)]) -> bool {
        let mut degrees = vec![0; nodes as usize];
        let mut pairs: Vec<_> = edges.iter().map(|&(a, b)| (a.min(b), a.max(b))).collect();
        pairs.iter().for_each(|&(a, b)| (degrees[a as usize] += 1, degrees[b as usize] += 1).0);
        pairs.sort_unstable();
        pairs.windows(2).all(|pair| pair[0] != pair[1])
            && pairs.iter().all(|&(a, b)| a != b)
            && degrees.iter().all(|&d| d == degree)
    }

    proptest! {
        #[test]
        fn every_draw_is_simple_and_exactly_regular(nodes in 2u32..60, degree in 1u32..59, seed in any::<u64>()) {
            prop_assume!(degree < nodes && nodes * degree % 2 == 0);
            let mut rng = Pcg64Mcg::seed_from_u64(seed);
            let edges = (0..100).find_map(|_| random_regular(nodes, degree, &mut rng)).unwrap();
            prop_assert!(is_simple_and_regular(nodes, degree, &edges));
        }
    }

    #[test]
    fn connectivity_is_seen() {
        assert!(is_connected(4, &[(0, 1), (3, 2), (2, 1)]));
        assert!(!is_connected(4, &[(0, 1), (3, 2)]));
    }
}
