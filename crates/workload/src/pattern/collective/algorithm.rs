//! The algorithms of collective operations: who sends which blocks to whom, step by step.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::program::CollectiveKind;

/// The algorithm of a collective operation (Thakur, Rabenseifner, Gropp, Optimization of Collective Communication
/// Operations in MPICH, IJHPCA 2005, unless said otherwise). P is the number of ranks, n the `size`.
///
/// Where an algorithm needs a power of two and P is none, the ranks beyond the largest power of two below P hand
/// their data to a partner first and get the result back at last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// Allreduce of n bytes: 2 (P - 1) steps of n/P to the next rank (Patarasuk and Yuan, JPDC 2009).
    RingAllreduce,
    /// Allreduce of n bytes: log₂ P exchanges of n with rank xor 1, 2, 4, …
    RecursiveDoublingAllreduce,
    /// Allgather of n bytes per rank: log₂ P exchanges with rank xor 1, 2, 4, … of n, 2n, 4n, …
    RecursiveDoublingAllgather,
    /// Allreduce of n bytes: reduce-scatter by recursive halving (n/2, n/4, …), then allgather by recursive doubling.
    Rabenseifner,
    /// All-to-all of n bytes per pair: ⌈log₂ P⌉ steps to rank + 1, 2, 4, … of about P/2 blocks each (Bruck et al.,
    /// TPDS 1997).
    BruckAllToAll,
    /// All-to-all of n bytes per pair: P - 1 exchanges, step i with rank xor i, or where P is no power of two to
    /// rank + i and from rank - i.
    PairwiseAllToAll,
    /// All-to-all of n bytes per pair: to rank + i and from rank - i, `window` of these exchanges at a time.
    WindowedAllToAll,
    /// Broadcast of n bytes from rank 0: ⌈log₂ P⌉ steps, in each of which all that have the data send it on.
    BinomialBroadcast,
    /// Barrier: ⌈log₂ P⌉ rounds of n bytes to rank + 1, 2, 4, … (Hensgen, Finkel, Manber, IJPP 1988).
    DisseminationBarrier,
}

impl Algorithm {
    /// Every algorithm, in the order of their names here.
    pub const ALL: [Algorithm; 9] = [
        Algorithm::RingAllreduce,
        Algorithm::RecursiveDoublingAllreduce,
        Algorithm::RecursiveDoublingAllgather,
        Algorithm::Rabenseifner,
        Algorithm::BruckAllToAll,
        Algorithm::PairwiseAllToAll,
        Algorithm::WindowedAllToAll,
        Algorithm::BinomialBroadcast,
        Algorithm::DisseminationBarrier,
    ];
}

/// What one rank does in one step: at most one message out and one in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// Receiver, and the blocks that it gets.
    pub(crate) to: Option<(u32, Vec<u32>)>,
    /// Sender.
    pub(crate) from: Option<u32>,
}

impl Step {
    fn new(to: u32, blocks: impl IntoIterator<Item = u32>, from: u32) -> Self {
        Step { to: Some((to, blocks.into_iter().collect())), from: Some(from) }
    }

    fn exchange(partner: u32, blocks: impl IntoIterator<Item = u32>) -> Self {
        Step::new(partner, blocks, partner)
    }
}

impl Algorithm {
    /// What it does, and how many bytes NCCL-tests would count for `size` in an operation of `p` ranks.
    pub(in crate::pattern) fn operation(self, p: u32, size: u64) -> (CollectiveKind, u64) {
        let of_all = size.saturating_mul(p.into());
        match self {
            Algorithm::RingAllreduce | Algorithm::RecursiveDoublingAllreduce | Algorithm::Rabenseifner => {
                (CollectiveKind::AllReduce, size)
            }
            Algorithm::RecursiveDoublingAllgather => (CollectiveKind::AllGather, of_all),
            Algorithm::BruckAllToAll | Algorithm::PairwiseAllToAll | Algorithm::WindowedAllToAll => {
                (CollectiveKind::AllToAll, of_all)
            }
            Algorithm::BinomialBroadcast => (CollectiveKind::Broadcast, size),
            Algorithm::DisseminationBarrier => (CollectiveKind::Barrier, size),
        }
    }

    /// How many steps there are for `p` ranks.
    pub(crate) fn steps(self, p: u32) -> u32 {
        let (folds, log) = (2 * u32::from(!p.is_power_of_two()), p.ilog2());
        match self {
            Algorithm::RingAllreduce => 2 * (p - 1),
            Algorithm::RecursiveDoublingAllreduce | Algorithm::RecursiveDoublingAllgather => folds + log,
            Algorithm::Rabenseifner => folds + 2 * log,
            Algorithm::PairwiseAllToAll | Algorithm::WindowedAllToAll => p - 1,
            Algorithm::BruckAllToAll | Algorithm::BinomialBroadcast | Algorithm::DisseminationBarrier => {
                p.next_power_of_two().ilog2()
            }
        }
    }

    /// Into how many blocks `size` is divided, as evenly as it goes; 1 where every block has the whole size.
    pub(crate) fn parts(self, p: u32) -> u32 {
        match self {
            Algorithm::RingAllreduce => p,
            Algorithm::Rabenseifner => 1 << p.ilog2(),
            _ => 1,
        }
    }

    /// What a rank does in a step.
    ///
    /// Blocks are parts of the vector (ring, Rabenseifner), the vector itself (0), the contributions of ranks
    /// (allgather), or in an all-to-all the distances from source to destination.
    pub(crate) fn step(self, p: u32, rank: u32, step: u32) -> Step {
        let ahead = |distance: u32| (rank + distance) % p;
        let behind = |distance: u32| (rank + p - distance % p) % p;
        let power = || 1u32 << step;
        match self {
            // Reduced parts travel on in the second half, one place behind where they were reduced.
            Algorithm::RingAllreduce => Step::new(ahead(1), [behind(step)], behind(1)),
            Algorithm::RecursiveDoublingAllreduce => folded(
                p,
                rank,
                step,
                self.steps(p),
                |_, _| vec![0],
                |step| Step::exchange(rank ^ (1 << step), [0]),
            ),
            Algorithm::RecursiveDoublingAllgather => {
                let q = 1 << p.ilog2();
                let with_extras =
                    |ranks: std::ops::Range<u32>| ranks.flat_map(|r| [r, r + q]).filter(|&r| r < p).collect();
                let handed = |from: u32, to: u32| match from < q {
                    false => vec![from],
                    true => (0..p).filter(|&block| block != to).collect(),
                };
                folded(p, rank, step, self.steps(p), handed, |step| {
                    let group = rank >> step << step;
                    let blocks: Vec<u32> = with_extras(group..group + (1 << step));
                    Step::exchange(rank ^ (1 << step), blocks)
                })
            }
            Algorithm::Rabenseifner => {
                let log = p.ilog2();
                folded(
                    p,
                    rank,
                    step,
                    self.steps(p),
                    |_, _| (0..1 << log).collect(),
                    |step| {
                        // Halving: give away the half of the range in which the partner lies. Doubling: give all one has.
                        let (bit, owner) = match step.checked_sub(log) {
                            None => (log - 1 - step, rank ^ (1 << (log - 1 - step))),
                            Some(step) => (step, rank),
                        };
                        let first = owner >> bit << bit;
                        Step::exchange(rank ^ (1 << bit), first..first + (1 << bit))
                    },
                )
            }
            Algorithm::BruckAllToAll => {
                let blocks = (0..p).filter(|distance| distance & power() != 0);
                Step::new(ahead(power()), blocks, behind(power()))
            }
            Algorithm::PairwiseAllToAll if p.is_power_of_two() => {
                let partner = rank ^ (step + 1);
                Step::exchange(partner, [(partner + p - rank) % p])
            }
            Algorithm::PairwiseAllToAll | Algorithm::WindowedAllToAll => {
                Step::new(ahead(step + 1), [step + 1], behind(step + 1))
            }
            Algorithm::BinomialBroadcast => Step {
                to: (rank < power() && rank + power() < p).then(|| (rank + power(), vec![0])),
                from: (power()..2 * power()).contains(&rank).then(|| rank - power()),
            },
            Algorithm::DisseminationBarrier => Step::new(ahead(power()), [0], behind(power())),
        }
    }
}

/// The steps of an algorithm among the largest power of two q of ranks: where there are more, ranks from q on hand
/// their data to the rank q below them in the first step, and get the result in the last one.
fn folded(
    p: u32,
    rank: u32,
    step: u32,
    steps: u32,
    handed: impl Fn(u32, u32) -> Vec<u32>,
    inner: impl Fn(u32) -> Step,
) -> Step {
    let q = 1 << p.ilog2();
    if p == q {
        return inner(step);
    }
    let partner = if rank < q { rank + q } else { rank - q };
    let give = || Step { to: Some((partner, handed(rank, partner))), from: None };
    let take = || Step { to: None, from: Some(partner) };
    match (step == 0, step == steps - 1) {
        (false, false) if rank < q => inner(step - 1),
        (true, _) | (_, true) if partner < p => {
            if (step == 0) == (rank >= q) {
                give()
            } else {
                take()
            }
        }
        _ => Step::default(),
    }
}
