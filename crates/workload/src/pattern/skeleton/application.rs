//! What the applications exchange in one iteration.

use netloom_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::grid::{Grid, unit};
use super::script::{Part, Script};
use crate::pattern::collective::{Algorithm, Operation};

/// An application whose communication is imitated. The traces that the paper replays are not public: the exchanges
/// are those that the algorithm is known for, the sizes those that the paper lists in its Table II.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Application {
    /// NAS block tridiagonal solver: faces of 123 kB to both neighbours in each direction of the multi-partition (the
    /// third direction is the diagonal of the grid), then sweeps of 15 stages forward (24 kB) and backward (4 kB) along
    /// each. 15 stages are those of 256 ranks; they stay 15 for any number.
    Bt,
    /// NAS conjugate gradient: vectors of 750 kB are summed along the rows of the grid by recursive doubling and go to
    /// the transposed rank; then two scalar products along the rows.
    Cg,
    /// NAS Fourier transform: a transpose, 130 kB from every rank to every other.
    Ft,
    /// NAS integer sort: an allreduce of 4,116 B of bucket sizes (Rabenseifner; its largest message is half of them),
    /// counts of 4 B from every rank to every other, and then the keys, as many as make the mean that of the table
    /// (265 B for 128 ranks, 290 B for 256; at least 1 B, so that below 32 ranks the mean is larger).
    Is,
    /// A solver of many small messages: 12.1 kB to the six neighbours in a three-dimensional grid.
    Liso,
    /// NAS multigrid: a V-cycle of six levels, exchanges with the six neighbours in a three-dimensional grid, dimension
    /// by dimension, 135 kB on the finest level and a quarter of it on every coarser one; on the three coarsest levels
    /// the neighbours are 2, 4 and 8 ranks away.
    Mg,
    /// Weather: one exchange of 97 kB and nine of 1,620 B with the four neighbours in a two-dimensional grid that ends at
    /// its edges.
    Wrf,
    /// Molecular dynamics; not in Table II. The sizes are those of the usual benchmark, ApoA1: 92,224 atoms in equal
    /// boxes, each of which sends its positions (24 B per atom) to its 26 neighbours and gets forces back; then the
    /// transpose of the particle-mesh grid (108 × 108 × 80 numbers of 8 B) along the rows of a two-dimensional grid, and back.
    Namd,
    /// Computational fluid dynamics of an aeroplane; not in Table II. Blocks of 32³ cells in a three-dimensional grid that
    /// ends at its edges exchange two layers of five variables (81,920 B) with their six neighbours in each of three
    /// Runge-Kutta stages; then an allreduce of five residuals.
    Airbus,
}

impl Application {
    /// Table II of the paper: the factor of the scaled traces, and the unscaled mean and maximum of message sizes in
    /// bytes.
    pub(super) fn table_ii(self) -> Option<(f64, f64, u64)> {
        match self {
            Application::Bt => Some((10.0, 6_940.0, 123_000)),
            Application::Cg => Some((10.0, 161_000.0, 750_000)),
            Application::Ft => Some((30.0, 43_700.0, 130_000)),
            Application::Is => Some((1000.0, 158.0, 2_060)),
            Application::Liso => Some((10.0, 4_000.0, 12_100)),
            Application::Mg => Some((100.0, 29_600.0, 135_000)),
            Application::Wrf => Some((100.0, 9_300.0, 97_000)),
            Application::Namd | Application::Airbus => None,
        }
    }

    /// Adds a rank's exchanges of one iteration.
    pub(super) fn iteration(self, ranks: u32, rank: u32, script: &mut Script) {
        match self {
            Application::Bt => block_tridiagonal(ranks, rank, script),
            Application::Cg => conjugate_gradient(ranks, rank, script),
            Application::Ft => {
                let transpose = Operation::new(Algorithm::PairwiseAllToAll, ranks, Bytes(130_000), 0);
                script.collective(transpose, rank, |member| member);
            }
            Application::Is => integer_sort(ranks, rank, script),
            Application::Liso => {
                let grid = Grid::<3>::new(ranks);
                let neighbours = directions::<3>().map(|to| grid.around(rank, to));
                with_neighbours(script, rank, neighbours, 12_100);
            }
            Application::Mg => multigrid(ranks, rank, script),
            Application::Wrf => {
                let grid = Grid::<2>::new(ranks);
                let neighbours = || directions::<2>().filter_map(|to| grid.within(rank, to));
                with_neighbours(script, rank, neighbours(), 97_000);
                (0..9).for_each(|_| with_neighbours(script, rank, neighbours(), 1_620));
            }
            Application::Namd => molecular_dynamics(ranks, rank, script),
            Application::Airbus => {
                let grid = Grid::<3>::new(ranks);
                for _stage in 0..3 {
                    let neighbours = directions::<3>().filter_map(|to| grid.within(rank, to));
                    with_neighbours(script, rank, neighbours, 2 * 32 * 32 * 5 * 8);
                }
                let residuals = Operation::new(Algorithm::RecursiveDoublingAllreduce, ranks, Bytes(5 * 8), 0);
                script.collective(residuals, rank, |member| member);
            }
        }
    }
}

/// One up and one down in each dimension.
fn directions<const D: usize>() -> impl Iterator<Item = [i64; D]> {
    (0..D).flat_map(|dimension| [unit(dimension, 1), unit(dimension, -1)])
}

/// Exchanges with all neighbours at once; a rank that is its own neighbour has the data already.
fn with_neighbours(script: &mut Script, rank: u32, neighbours: impl Iterator<Item = u32>, bytes: u64) {
    let parts: Vec<Part> = neighbours.filter(|&other| other != rank).map(|other| (other, bytes)).collect();
    script.exchange(&parts, &parts);
}

/// Sends one way, and receives from the other.
fn shift(script: &mut Script, rank: u32, to: u32, from: u32, bytes: u64) {
    if to != rank {
        script.exchange(&[(to, bytes)], &[(from, bytes)]);
    }
}

fn block_tridiagonal(ranks: u32, rank: u32, script: &mut Script) {
    let grid = Grid::<2>::new(ranks);
    let axes = [[0, 1], [1, 0], [1, 1]];
    let ends = axes.map(|[i, j]| (grid.around(rank, [i, j]), grid.around(rank, [-i, -j])));
    with_neighbours(script, rank, ends.into_iter().flat_map(|(up, down)| [up, down]), 123_000);
    for (up, down) in ends {
        (0..15).for_each(|_| shift(script, rank, up, down, 24_000));
        (0..15).for_each(|_| shift(script, rank, down, up, 4_000));
    }
}

fn conjugate_gradient(ranks: u32, rank: u32, script: &mut Script) {
    let grid = Grid::<2>::new(ranks);
    let ([rows, columns], [row, column]) = (grid.sides(), grid.cell(rank));
    let along_row = |script: &mut Script, bytes| {
        if columns > 1 {
            let sum = Operation::new(Algorithm::RecursiveDoublingAllreduce, columns, Bytes(bytes), 0);
            script.collective(sum, column, |member| row * columns + member);
        }
    };
    along_row(script, 750_000);
    // The rank with rows and columns exchanged, and the one whose transpose this rank is.
    let (to, from) = (column * rows + row, rank % rows * columns + rank / rows);
    shift(script, rank, to, from, 750_000);
    along_row(script, 8);
    along_row(script, 8);
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 1 to some hundreds")]
fn integer_sort(ranks: u32, rank: u32, script: &mut Script) {
    let sizes = Operation::new(Algorithm::Rabenseifner, ranks, Bytes(4_116), 0);
    script.collective(sizes, rank, |member| member);
    let others =
        |bytes| -> Vec<Part> { (1..ranks).map(|distance| ((rank + distance) % ranks, bytes)).collect() };
    script.exchange(&others(4), &others(4));
    // Mean of Table II times the messages of a rank, without the bytes of the counts and of the allreduce.
    let log = f64::from(ranks.ilog2());
    let reduced = 2.0 * 4_116.0 * (1.0 - 1.0 / f64::from(1 << ranks.ilog2()));
    let left = 158.0 * (2.0 * f64::from(ranks - 1) + 2.0 * log) - reduced;
    let keys = (left / f64::from(ranks - 1) - 4.0).round().max(1.0) as u64;
    script.exchange(&others(keys), &others(keys));
}

fn multigrid(ranks: u32, rank: u32, script: &mut Script) {
    let grid = Grid::<3>::new(ranks);
    let levels = [(0, 1), (1, 1), (2, 1), (3, 2), (4, 4), (5, 8)];
    for (level, distance) in levels.into_iter().chain(levels.into_iter().rev()) {
        for (dimension, side) in grid.sides().into_iter().enumerate() {
            // Where the coarse neighbour would be the rank itself it is the next one.
            let distance = if distance % side == 0 { 1 } else { distance };
            let ends = [1, -1].map(|sign| grid.around(rank, unit(dimension, sign * i64::from(distance))));
            with_neighbours(script, rank, ends.into_iter(), 135_000 >> (2 * level));
        }
    }
}

fn molecular_dynamics(ranks: u32, rank: u32, script: &mut Script) {
    let boxes = Grid::<3>::new(ranks);
    let offsets = (0..27).map(|cell| [cell / 9 - 1, cell / 3 % 3 - 1, cell % 3 - 1]);
    // In a narrow grid one rank is a neighbour on several sides, and needs the positions once.
    let mut neighbours: Vec<u32> = offsets.map(|offset| boxes.around(rank, offset)).collect();
    neighbours.sort_unstable();
    neighbours.dedup();
    let atoms = 92_224 / u64::from(ranks);
    for _positions_then_forces in 0..2 {
        with_neighbours(script, rank, neighbours.iter().copied(), atoms * 24);
    }
    let mesh = Grid::<2>::new(ranks);
    let ([_, columns], [row, column]) = (mesh.sides(), mesh.cell(rank));
    if columns > 1 {
        let share = 108 * 108 * 80 * 8 / u64::from(ranks) / u64::from(columns);
        let transpose = Operation::new(Algorithm::PairwiseAllToAll, columns, Bytes(share), 0);
        for _forth_and_back in 0..2 {
            script.collective(transpose, column, |member| row * columns + member);
        }
    }
}
