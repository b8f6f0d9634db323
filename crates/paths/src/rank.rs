//! Connectivity as the rank of random matrices (FatPaths App. B, after Cheung, Lau and Leung).
//!
//! Every router adjacent to the source injects an independent unit vector; every edge passes on a random combination
//! of what arrives at its tail. The dimension of what reaches the target is, with high probability, the number
//! of disjoint paths. The paper decides ranks over floating-point numbers; here the numbers are residues
//! modulo the prime 2⁶¹ − 1, where a wrong answer has a probability of about 2⁻⁵⁰.
//!
//! The fixed point of the iteration gives the edge connectivity. Stopped after l steps it counts walks of at most l hops
//! that are independent in the algebraic sense: two walks over one edge at different times count twice. That is an
//! upper bound of the number of disjoint bounded paths and equals it for small limits only: a cross-check, not the truth.

use netloom_topology::RouterGraph;
use netloom_units::narrow;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64Mcg;

/// 2⁶¹ − 1, a Mersenne prime.
const PRIME: u64 = (1 << 61) - 1;

fn add(a: u64, b: u64) -> u64 {
    let sum = a + b;
    if sum >= PRIME { sum - PRIME } else { sum }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the lower 61 bits, and the upper ones of a product of two numbers below 2⁶¹"
)]
fn multiply(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    add(product as u64 & PRIME, (product >> 61) as u64)
}

fn inverse(a: u64) -> u64 {
    let (mut power, mut exponent, mut result) = (a, PRIME - 2, 1);
    while exponent > 0 {
        if exponent & 1 == 1 {
            result = multiply(result, power);
        }
        power = multiply(power, power);
        exponent >>= 1;
    }
    result
}

/// Rank of a set of vectors by elimination.
fn rank(mut rows: Vec<Vec<u64>>) -> u32 {
    let mut rank = 0;
    let width = rows.first().map_or(0, Vec::len);
    for column in 0..width {
        let Some(pivot) = (rank..rows.len()).find(|&row| rows[row][column] != 0) else { continue };
        rows.swap(rank, pivot);
        let scale = inverse(rows[rank][column]);
        let leading = rows[rank].clone();
        for row in rows.iter_mut().skip(rank + 1) {
            let factor = PRIME - multiply(row[column], scale);
            if factor != PRIME {
                for (value, &lead) in row.iter_mut().zip(&leading).skip(column) {
                    *value = add(*value, multiply(factor, lead));
                }
            }
        }
        rank += 1;
    }
    narrow::<u32>(rank)
}

/// The state of the edge version (eq. 12) for one source: a vector per directed edge after a number of hops.
#[derive(Clone, Debug)]
pub struct EdgeRank<'g> {
    graph: &'g RouterGraph,
    source: u32,
    seed: u64,
    /// Vector of directed edge 2e (ends in order) or 2e + 1 (reversed).
    vectors: Vec<Vec<u64>>,
    length: u16,
}

impl<'g> EdgeRank<'g> {
    /// Injects a unit vector into each edge that leaves the source: walks of one hop.
    pub fn new(graph: &'g RouterGraph, source: u32, seed: u64) -> Self {
        let mut state = EdgeRank { graph, source, seed, vectors: Vec::new(), length: 1 };
        state.vectors = state.injected();
        state
    }

    fn injected(&self) -> Vec<Vec<u64>> {
        let leaving = self.graph.edge_ids(self.source);
        let mut vectors = vec![vec![0; leaving.len()]; 2 * self.graph.edges().len()];
        for (unit, &edge) in leaving.iter().enumerate() {
            vectors[self.directed(edge, self.source)][unit] = 1;
        }
        vectors
    }

    /// Index of an edge in the direction that leaves `tail`.
    fn directed(&self, edge: u32, tail: u32) -> usize {
        2 * edge as usize + usize::from(self.graph.edges()[edge as usize].0 != tail)
    }

    /// One step of the iteration F ← F K + P_s (eq. 15): walks of one hop more.
    pub fn extend(&mut self) {
        let mut next = self.injected();
        for router in (0..self.graph.routers()).filter(|&r| r != self.source) {
            for &out in self.graph.edge_ids(router) {
                let out = self.directed(out, router);
                for &edge in self.graph.edge_ids(router) {
                    let arriving = self.directed(edge, router) ^ 1;
                    let coefficient = self.coefficient(arriving, out);
                    for (value, &source) in next[out].iter_mut().zip(&self.vectors[arriving]) {
                        *value = add(*value, multiply(coefficient, source));
                    }
                }
            }
        }
        self.vectors = next;
        self.length += 1;
    }

    /// Entry of K for an edge that arrives at the tail of another; the same in every step.
    fn coefficient(&self, arriving: usize, leaving: usize) -> u64 {
        let pair = (arriving as u64) << 32 | leaving as u64;
        Pcg64Mcg::seed_from_u64(self.seed ^ pair).random_range(1..PRIME)
    }

    /// The fixed point F = F K + P_s (eq. 13): walks of any length, so that the rank is the edge connectivity.
    ///
    /// The paper's solution (eq. 14) carries a minus sign too many, which no rank notices. Costs the cube of
    /// the number of edges.
    pub fn unbounded(graph: &'g RouterGraph, source: u32, seed: u64) -> Self {
        let mut state = EdgeRank::new(graph, source, seed);
        let edges = state.vectors.len();
        // Gauss-Jordan elimination of (I − Kᵀ) Fᵀ = P_sᵀ, one row per directed edge.
        let mut rows: Vec<Vec<u64>> = vec![vec![0; edges]; edges];
        for router in 0..graph.routers() {
            for &out in graph.edge_ids(router) {
                let out = state.directed(out, router);
                rows[out][out] = add(rows[out][out], 1);
                for &edge in graph.edge_ids(router).iter().filter(|_| router != source) {
                    let arriving = state.directed(edge, router) ^ 1;
                    rows[out][arriving] = add(rows[out][arriving], PRIME - state.coefficient(arriving, out));
                }
            }
        }
        for (row, vector) in rows.iter_mut().zip(&state.vectors) {
            row.extend(vector);
        }
        for column in 0..edges {
            // I − Kᵀ is singular with a probability of about edges / 2⁶¹; such a column is left unsolved.
            let Some(pivot) = (column..edges).find(|&row| rows[row][column] != 0) else { continue };
            rows.swap(column, pivot);
            let scale = inverse(rows[column][column]);
            rows[column].iter_mut().for_each(|value| *value = multiply(*value, scale));
            let leading = rows[column].clone();
            for (index, row) in rows.iter_mut().enumerate() {
                let factor = PRIME - row[column];
                if index != column && factor != PRIME {
                    for (value, &lead) in row.iter_mut().zip(&leading).skip(column) {
                        *value = add(*value, multiply(factor, lead));
                    }
                }
            }
        }
        state.vectors = rows.into_iter().map(|row| row[edges..].to_vec()).collect();
        state.length = u16::MAX;
        state
    }

    /// Hops of the walks counted so far, `u16::MAX` for walks of any length.
    pub fn length(&self) -> u16 {
        self.length
    }

    /// Number of independent walks of at most [`EdgeRank::length`] hops that end at the target.
    pub fn independent_walks(&self, target: u32) -> u32 {
        let arriving = self.graph.edge_ids(target).iter();
        rank(arriving.map(|&edge| self.vectors[self.directed(edge, target) ^ 1].clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connectivity::FlowTree;
    use crate::diversity::length_bounded_cut;
    use crate::testing::{petersen, random};

    #[test]
    fn field_arithmetic() {
        for a in [1, 2, 3, PRIME - 1, 1 << 60, 123_456_789_012_345] {
            assert_eq!(multiply(a, inverse(a)), 1);
        }
        assert_eq!(rank(vec![vec![1, 2, 3], vec![2, 4, 6], vec![0, 1, 0]]), 2);
        assert_eq!(rank(vec![vec![PRIME - 1, 1], vec![1, PRIME - 1]]), 1);
    }

    #[test]
    fn short_walks_of_the_petersen_graph() {
        let graph = petersen();
        let mut state = EdgeRank::new(&graph, 0, 1);
        assert_eq!((state.independent_walks(1), state.independent_walks(2)), (1, 0));
        state.extend();
        assert_eq!((state.length(), state.independent_walks(2)), (2, 1));
        state.extend();
        state.extend();
        assert_eq!(state.independent_walks(1), 3);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(24))]
        #[test]
        fn bounded_walks_are_at_least_the_cut_and_equal_it_up_to_two_hops(seed in 0..1000u64) {
            let graph = random(9, 9, seed);
            let mut state = EdgeRank::new(&graph, 0, seed);
            for length in 1..4u16 {
                for target in 1..9 {
                    let walks = state.independent_walks(target);
                    let cut = length_bounded_cut(&graph, &[0], &[target], length).unwrap();
                    let agree = if length <= 2 { walks == cut } else { walks >= cut };
                    proptest::prop_assert!(agree, "length {}: {} walks, cut {}", length, walks, cut);
                }
                state.extend();
            }
        }

        #[test]
        fn unbounded_walks_are_the_edge_connectivity(seed in 0..1000u64) {
            let graph = random(9, 9, seed);
            let tree = FlowTree::new(&graph);
            let state = EdgeRank::unbounded(&graph, 0, seed);
            for target in 1..9 {
                proptest::prop_assert_eq!(state.independent_walks(target), tree.connectivity(0, target));
            }
        }
    }
}
