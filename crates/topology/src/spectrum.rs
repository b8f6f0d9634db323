//! Extreme eigenvalues of graphs, which show how well they expand.

use netloom_units::random::mix;

use crate::router_graph::RouterGraph;

/// Steps of the Lanczos iteration. Extreme eigenvalues of expanders settle long before.
const STEPS: usize = 120;

/// An extreme eigenvalue of a symmetric operator as a Lanczos iteration finds it.
#[derive(Clone, Debug)]
pub(crate) struct Extreme {
    /// Ritz value: it lies within the spectrum, so a largest one is an estimate from below.
    pub(crate) value: f64,
    /// An eigenvalue lies within this distance of `value`.
    pub(crate) residual: f64,
    /// Ritz vector of length 1.
    pub(crate) vector: Vec<f64>,
}

/// The largest magnitude among the eigenvalues of the adjacency matrix of a connected regular graph, but for the degree
/// itself: an estimate from below, good to many digits once the iteration has converged.
pub(crate) fn second_eigenvalue(graph: &RouterGraph) -> f64 {
    let row = |router: u32, vector: &[f64]| {
        graph.neighbours(router).iter().map(|&other| vector[other as usize]).sum::<f64>()
    };
    // The square has the squared eigenvalues: its largest one is the answer whatever its sign was.
    let apply = |vector: &[f64]| {
        let once: Vec<f64> = (0..graph.routers()).map(|router| row(router, vector)).collect();
        (0..graph.routers()).map(|router| row(router, &once)).collect()
    };
    let known = vec![1.0; graph.routers() as usize];
    largest_eigenvalue(known, 1e-9, apply).map_or(0.0, |extreme| extreme.value.max(0.0).sqrt())
}

/// The largest eigenvalue of a positive semidefinite operator on the vectors orthogonal to `known`, by Lanczos iteration
/// with full reorthogonalisation from a fixed start, until the residual is below `tolerance` times the value; `None` if
/// there are no such vectors.
pub(crate) fn largest_eigenvalue(
    known: Vec<f64>,
    tolerance: f64,
    apply: impl Fn(&[f64]) -> Vec<f64>,
) -> Option<Extreme> {
    let nodes = known.len();
    let mut basis = vec![normalised(known)];
    // Any start not orthogonal to the wanted eigenvector will do. Eigenvectors of symmetric networks follow the numbers of nodes, so the start
    // must not: multiples of one number, say, differ by the same wherever the nodes' numbers do, and cancel out.
    let start = (0..nodes as u64).map(|node| mix(node) as f64 / 2f64.powi(64) - 0.5).collect();
    let mut next = orthogonalised(start, &basis);
    let (mut diagonal, mut off_diagonal) = (Vec::<f64>::new(), Vec::new());
    let mut coupling = norm(&next);
    let mut scale = 0.0f64;
    let (mut value, mut weights) = (0.0, Vec::new());
    while diagonal.len() < STEPS.min(nodes - 1) && coupling > 1e-10 * scale {
        if !diagonal.is_empty() {
            off_diagonal.push(coupling);
        }
        basis.push(normalised(next));
        let last = &basis[basis.len() - 1];
        next = apply(last);
        diagonal.push(dot(&next, last));
        next = orthogonalised(next, &basis);
        coupling = norm(&next);
        scale = scale.max(diagonal[diagonal.len() - 1].abs()).max(coupling);
        value = largest_of_tridiagonal(&diagonal, &off_diagonal);
        weights = tridiagonal_vector(&diagonal, &off_diagonal, value);
        // A few steps at least: a start that happens to lie close to another eigenvector looks converged at once.
        if diagonal.len() >= 20 && coupling * weights[weights.len() - 1].abs() < tolerance * value {
            break;
        }
    }
    let residual = coupling * weights.last()?.abs();
    let mut vector = vec![0.0; nodes];
    for (direction, weight) in basis[1..].iter().zip(&weights) {
        vector.iter_mut().zip(direction).for_each(|(x, d)| *x += weight * d);
    }
    Some(Extreme { value, residual, vector })
}

/// Largest eigenvalue of a symmetric tridiagonal matrix, by bisection on Sturm sequences.
fn largest_of_tridiagonal(diagonal: &[f64], off_diagonal: &[f64]) -> f64 {
    let below = |x: f64| {
        let mut pivot = 1.0f64;
        let negative = diagonal.iter().enumerate().filter(|&(i, d)| {
            let coupling = if i == 0 { 0.0 } else { off_diagonal[i - 1] * off_diagonal[i - 1] };
            pivot = d - x - coupling / pivot;
            if pivot == 0.0 {
                pivot = -f64::MIN_POSITIVE;
            }
            pivot < 0.0
        });
        negative.count()
    };
    let magnitude = diagonal.iter().chain(off_diagonal).fold(0.0, |max: f64, x| max.max(x.abs()));
    let (mut low, mut high) = (-3.0 * magnitude, 3.0 * magnitude);
    for _ in 0..100 {
        let middle = (low + high) / 2.0;
        if below(middle) == diagonal.len() { high = middle } else { low = middle }
    }
    high
}

/// The eigenvector of a symmetric tridiagonal matrix that belongs to its largest eigenvalue, by inverse iteration.
fn tridiagonal_vector(diagonal: &[f64], off_diagonal: &[f64], largest: f64) -> Vec<f64> {
    // Just above the largest eigenvalue the shifted matrix is definite, so elimination needs no pivoting.
    let shift = largest + 1e-12 * largest.abs().max(f64::MIN_POSITIVE);
    let n = diagonal.len();
    let mut vector = vec![1.0; n];
    for _ in 0..4 {
        let mut pivots = vec![shift - diagonal[0]; n];
        for i in 1..n {
            let factor = off_diagonal[i - 1] / pivots[i - 1];
            pivots[i] = shift - diagonal[i] - factor * off_diagonal[i - 1];
            vector[i] += factor * vector[i - 1];
        }
        vector[n - 1] /= pivots[n - 1];
        for i in (0..n - 1).rev() {
            vector[i] = (vector[i] + off_diagonal[i] * vector[i + 1]) / pivots[i];
        }
        vector = normalised(vector);
    }
    vector
}

/// Inner product.
pub(crate) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

fn normalised(mut vector: Vec<f64>) -> Vec<f64> {
    let length = norm(&vector);
    vector.iter_mut().for_each(|x| *x /= length);
    vector
}

/// Twice, since one pass of Gram–Schmidt leaves rounding errors that grow into ghost eigenvalues.
fn orthogonalised(mut vector: Vec<f64>, basis: &[Vec<f64>]) -> Vec<f64> {
    for direction in basis.iter().chain(basis) {
        let overlap = dot(&vector, direction);
        vector.iter_mut().zip(direction).for_each(|(x, d)| *x -= overlap * d);
    }
    vector
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn textbook_spectra_are_found() {
        let graph = |nodes: usize, edges: Vec<(u32, u32)>| RouterGraph::new(vec![0; nodes], edges);
        let clique = graph(7, (0..7).flat_map(|a| (a + 1..7).map(move |b| (a, b))).collect());
        assert!((second_eigenvalue(&clique) - 1.0).abs() < 1e-6);
        let cycle = graph(11, (0..11).map(|a| (a, (a + 1) % 11)).collect());
        let expected = 2.0 * (std::f64::consts::TAU * 5.0 / 11.0).cos().abs();
        assert!((second_eigenvalue(&cycle) - expected).abs() < 1e-6, "{}", second_eigenvalue(&cycle));
    }

    #[test]
    fn symmetric_graphs_do_not_hide_their_largest_eigenvalue() {
        // Eigenvalues 0, 1, 2, 3; that of (1, -1, -1, 1) is the largest, and (1, 2, 3, 4) has no part of it.
        let modes = [[1.0, 1.0, -1.0, -1.0], [1.0, -1.0, 1.0, -1.0], [1.0, -1.0, -1.0, 1.0]];
        let apply = |vector: &[f64]| {
            let mut image = vec![0.0; 4];
            for (value, mode) in (1..).zip(&modes) {
                let part = f64::from(value) * dot(vector, mode) / 4.0;
                image.iter_mut().zip(mode).for_each(|(x, m)| *x += part * m);
            }
            image
        };
        let extreme = largest_eigenvalue(vec![1.0; 4], 1e-9, apply).unwrap();
        assert!((extreme.value - 3.0).abs() < 1e-9, "{extreme:?}");
    }

    #[test]
    fn ritz_vectors_are_eigenvectors() {
        // Operator: diagonal 0, 1, …, 9; the constant vector is not an eigenvector, but e_0 is.
        let mut known = vec![0.0; 10];
        known[0] = 1.0;
        let apply = |vector: &[f64]| vector.iter().enumerate().map(|(i, x)| i as f64 * x).collect();
        let extreme = largest_eigenvalue(known, 1e-9, apply).unwrap();
        assert!((extreme.value - 9.0).abs() < 1e-9 && extreme.residual < 1e-6);
        assert!(extreme.vector[9].abs() > 1.0 - 1e-9);
    }
}
