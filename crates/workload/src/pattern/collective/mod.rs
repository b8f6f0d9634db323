//! Collective operations.

mod algorithm;

pub use algorithm::Algorithm;

use std::collections::VecDeque;
use std::ops::Range;

use netloom_units::{Bytes, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkloadError;
use crate::plan::{Plan, Setting};
use crate::program::{Accept, CollectiveKind, RankBuilder, build_all};

/// A collective operation of all ranks, as a program. Every rank goes through the steps of the algorithm; a step begins when the rank's own
/// messages of the previous step have been sent and received.
///
/// A program is a graph of sends, receives and calculations; an operation starts when those that it depends on have finished. A CPU does
/// one calculation at a time; sends and receives take CPU time only with `overhead`. Messages match as in MPI, by source and tag in the
/// order in which they were sent. A send has finished when the transport is done with it, an empty message is sent as one byte, and
/// messages of a rank to itself do not enter the network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Collective {
    /// Which operation, and how it is done: `ring-allreduce`, `recursive-doubling-allreduce`, `rabenseifner` (of
    /// `size` bytes), `recursive-doubling-allgather` (`size` bytes of each rank), `bruck-all-to-all`,
    /// `pairwise-all-to-all`, `windowed-all-to-all` (`size` bytes of each pair), `binomial-broadcast` (of `size` bytes
    /// from rank 0), `dissemination-barrier` (messages of `size` bytes).
    pub algorithm: Algorithm,
    /// What it means depends on the algorithm; 1 MiB if not given, 1 byte for a barrier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Exchanges that each rank has in flight, for `windowed-all-to-all`.
    pub window: u32,
    /// How often the operation is done; a rank begins the next one when it has finished its part.
    pub repeat: u32,
    /// Calculation of every rank before each repetition.
    pub compute: Time,
    /// CPU time of every send and receive.
    pub overhead: Time,
}

impl Default for Collective {
    fn default() -> Self {
        Collective {
            algorithm: Algorithm::RingAllreduce,
            size: None,
            window: 4,
            repeat: 1,
            compute: Time::ZERO,
            overhead: Time::ZERO,
        }
    }
}

impl Collective {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        if self.repeat == 0 {
            return Err(WorkloadError::parameter("repeat", "at least 1", 0));
        }
        if self.window == 0 {
            return Err(WorkloadError::parameter("window", "at least 1", 0));
        }
        let default = if self.algorithm == Algorithm::DisseminationBarrier { 1 } else { 1 << 20 };
        let size = self.size.unwrap_or(Bytes(default));
        let ranks = setting.ranks();
        let mut operation = Operation::new(self.algorithm, ranks, size, 0);
        if self.algorithm == Algorithm::WindowedAllToAll {
            operation.window = self.window;
        }
        let program = build_all(ranks, self.repeat, self.overhead, |rank| {
            let mut builder = RankBuilder::default();
            let start = (self.compute > Time::ZERO).then(|| builder.calc(self.compute));
            operation.add(&mut builder, rank, start.as_slice());
            builder
        });
        let program = program.map_err(|problem| WorkloadError::parameter("repeat", "fewer", problem))?;
        Ok(setting.run(program))
    }
}

/// One of a rank's messages: the other rank, and the size.
type Part = (u32, Bytes);

/// One collective operation as part of a program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operation {
    algorithm: Algorithm,
    ranks: u32,
    size: Bytes,
    /// Tag of its messages.
    tag: u32,
    /// Steps of a rank that go on at the same time.
    window: u32,
    /// The steps that are done, where not all are.
    part: Option<(u32, u32)>,
}

impl Operation {
    /// An operation of ranks 0 to `ranks` - 1, at least 2, one step after the other.
    pub(super) fn new(algorithm: Algorithm, ranks: u32, size: Bytes, tag: u32) -> Self {
        Operation { algorithm, ranks, size, tag, window: 1, part: None }
    }

    /// Some of its steps only.
    pub(super) fn only(self, steps: Range<u32>) -> Self {
        Operation { part: Some((steps.start, steps.end)), ..self }
    }

    /// Adds the part of a rank, which begins after the operations `start`; returns the last ones, after which it is
    /// done.
    pub(super) fn add(&self, builder: &mut RankBuilder, rank: u32, start: &[u32]) -> Vec<u32> {
        self.add_among(builder, rank, start, |rank| rank)
    }

    /// The same for an operation of some ranks only: `rank` is the place among them, and `named` says which rank has a place.
    pub(super) fn add_among(
        &self,
        builder: &mut RankBuilder,
        rank: u32,
        start: &[u32],
        named: impl Fn(u32) -> u32,
    ) -> Vec<u32> {
        let (mut steps, first_op) = (VecDeque::<Vec<u32>>::new(), builder.len());
        let (first, end) = self.part.unwrap_or((0, self.steps()));
        for step in first..end {
            let (to, from) = self.step(rank, step);
            let send = to.map(|(to, bytes)| builder.send(named(to), bytes, self.tag));
            let recv = from.map(|(from, _)| builder.recv(Accept::Only(named(from)), Accept::Only(self.tag)));
            let ops: Vec<u32> = send.into_iter().chain(recv).collect();
            if ops.is_empty() {
                continue;
            }
            let before = if steps.len() < self.window as usize { None } else { steps.pop_front() };
            builder.after_all(&ops, before.as_deref().unwrap_or(start));
            steps.push_back(ops);
        }
        builder.collective(first_op, (self.tag, named(0)), self.counted());
        if steps.is_empty() { start.to_vec() } else { steps.into_iter().flatten().collect() }
    }

    /// What it does, among how many ranks, and with how many bytes as NCCL-tests count them.
    fn counted(&self) -> (CollectiveKind, u32, Bytes) {
        let (kind, bytes) = self.algorithm.operation(self.ranks, self.size.0);
        // The halves of an allreduce.
        let kind = match self.part {
            Some((0, _)) if kind == CollectiveKind::AllReduce => CollectiveKind::ReduceScatter,
            Some(_) if kind == CollectiveKind::AllReduce => CollectiveKind::AllGather,
            _ => kind,
        };
        (kind, self.ranks, Bytes(bytes))
    }

    /// How many steps there are.
    pub(super) fn steps(&self) -> u32 {
        self.algorithm.steps(self.ranks)
    }

    /// What a rank sends in a step, and what it receives.
    pub(super) fn step(&self, rank: u32, step: u32) -> (Option<Part>, Option<Part>) {
        let sent = |rank| {
            let (to, blocks) = self.algorithm.step(self.ranks, rank, step).to?;
            Some((to, self.bytes(&blocks)))
        };
        let from = self.algorithm.step(self.ranks, rank, step).from;
        (sent(rank), from.and_then(|from| Some((from, sent(from)?.1))))
    }

    /// The size of some blocks.
    fn bytes(&self, blocks: &[u32]) -> Bytes {
        bytes_of(self.size, blocks, self.algorithm.parts(self.ranks))
    }
}

/// The bytes of some blocks of a buffer in `parts` parts as equal as they can be: block b is as large as part b modulo `parts`.
pub(crate) fn bytes_of(size: Bytes, blocks: &[u32], parts: u32) -> Bytes {
    let end = |part: u64| narrow::<u64>(u128::from(size.0) * u128::from(part) / u128::from(parts));
    let bytes = |&block: &u32| {
        let part = u64::from(block % parts);
        end(part + 1) - end(part)
    };
    Bytes(blocks.iter().map(bytes).fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::algorithm::Step;
    use super::*;
    use crate::pattern::tests::{network, plan};
    use crate::program::OpKind;
    use crate::program::testing::{Event, execute, finished};
    use crate::{Options, Pattern, Placement, Workload};
    use proptest::prelude::*;
    use std::collections::{BTreeSet, HashMap};

    fn collective(algorithm: Algorithm, size: u64) -> Collective {
        Collective { algorithm, size: Some(Bytes(size)), ..Default::default() }
    }

    fn built(collective: Collective, ranks: u32) -> Plan {
        plan(Workload::new(Pattern::Collective(collective)), &network(ranks, ranks), 1).unwrap()
    }

    /// Bytes and messages that each rank sends.
    fn sent(collective: Collective, ranks: u32) -> Vec<(u64, u32)> {
        let (mut plan, mut sent) = (built(collective, ranks), vec![(0, 0); ranks as usize]);
        let total = plan.total_messages.unwrap();
        execute(&mut plan, 1, Time(1000), |_, _, event| {
            if let Event::Sent { src, bytes, .. } = event {
                let (all, messages) = &mut sent[src as usize];
                (*all, *messages) = (*all + bytes.0, *messages + 1);
            }
        });
        assert!(plan.hosts.iter().all(|host| host.is_finished()));
        assert_eq!(sent.iter().map(|&(_, messages)| u64::from(messages)).sum::<u64>(), total);
        sent
    }

    #[test]
    fn bytes_and_steps_are_those_of_the_textbook() {
        let n = 1 << 20;
        for p in [2u32, 4, 8, 16, 32] {
            let (log, others) = (p.ilog2(), u64::from(p - 1));
            for (algorithm, bytes, messages) in [
                (Algorithm::RingAllreduce, 2 * others * n / u64::from(p), 2 * (p - 1)),
                (Algorithm::RecursiveDoublingAllreduce, u64::from(log) * n, log),
                (Algorithm::RecursiveDoublingAllgather, others * n, log),
                (Algorithm::Rabenseifner, 2 * (n - n / u64::from(p)), 2 * log),
                (Algorithm::BruckAllToAll, u64::from(log) * n * u64::from(p / 2), log),
                (Algorithm::PairwiseAllToAll, others * n, p - 1),
                (Algorithm::WindowedAllToAll, others * n, p - 1),
                (Algorithm::DisseminationBarrier, u64::from(log) * n, log),
            ] {
                let sent = sent(collective(algorithm, n), p);
                assert!(sent.iter().all(|&s| s == (bytes, messages)), "{algorithm:?} {p}: {sent:?}");
                assert_eq!(algorithm.steps(p), messages);
            }
        }
        for p in 2..=40u32 {
            let total = |algorithm| -> (u64, u32) {
                let sent = sent(collective(algorithm, n), p);
                sent.iter().fold((0, 0), |(a, b), &(bytes, messages)| (a + bytes, b + messages))
            };
            let (others, q) = (p - 1, 1 << p.ilog2());
            let extras = p - q;
            assert_eq!(total(Algorithm::BinomialBroadcast), (n * u64::from(others), others));
            assert_eq!(total(Algorithm::RingAllreduce), (2 * u64::from(others) * n, 2 * others * p));
            let exchanges = q * q.ilog2();
            assert_eq!(
                total(Algorithm::RecursiveDoublingAllreduce),
                (n * u64::from(2 * extras + exchanges), 2 * extras + exchanges)
            );
            assert_eq!(
                total(Algorithm::Rabenseifner),
                (n * u64::from(2 * extras + 2 * (q - 1)), 2 * extras + 2 * exchanges)
            );
            let rounds = p.next_power_of_two().ilog2();
            assert_eq!(total(Algorithm::DisseminationBarrier), (n * u64::from(p * rounds), p * rounds));
            let moved: u32 = (1..p).map(u32::count_ones).sum();
            assert_eq!(total(Algorithm::BruckAllToAll), (n * u64::from(p * moved), p * rounds));
        }
    }

    /// What a rank holds of a block: allreduce the ranks whose contributions are in it, otherwise what it is.
    type Content = BTreeSet<u32>;

    /// The blocks of messages on their way, by source and destination.
    type Carried = HashMap<(u32, u32), VecDeque<Vec<(u32, Content)>>>;

    /// Runs the program and carries the blocks along: a message takes what its sender has got by the receives of the
    /// steps before, which must have finished.
    fn outcome(
        collective: Collective,
        ranks: u32,
        seed: u64,
        initial: impl Fn(u32, u32) -> Content,
    ) -> Vec<Vec<Content>> {
        let algorithm = collective.algorithm;
        let blocks = algorithm.parts(ranks).max(ranks);
        let mut held: Vec<Vec<Content>> =
            (0..ranks).map(|rank| (0..blocks).map(|block| initial(rank, block)).collect()).collect();
        let steps: Vec<Vec<Step>> = (0..ranks)
            .map(|rank| (0..algorithm.steps(ranks)).map(|step| algorithm.step(ranks, rank, step)).collect())
            .collect();
        let mut carried = Carried::new();
        // Per rank: the step of its next send, and the step up to which it has taken in what it received.
        let (mut next, mut taken) = (vec![0; ranks as usize], vec![0; ranks as usize]);
        let mut finished_recvs = vec![0; ranks as usize];
        let mut take = |held: &mut Vec<Vec<Content>>, carried: &mut Carried, rank: u32, before| {
            let first = std::mem::replace(&mut taken[rank as usize], before);
            for from in steps[rank as usize][first..before].iter().filter_map(|step| step.from) {
                for (block, content) in carried.get_mut(&(from, rank)).unwrap().pop_front().unwrap() {
                    let own: &mut Content = &mut held[rank as usize][block as usize];
                    if own.is_disjoint(&content) && algorithm != Algorithm::BruckAllToAll {
                        own.extend(content);
                    } else {
                        // Not a contribution, but a result that takes the place of what was there.
                        assert!(own.is_subset(&content) || algorithm == Algorithm::BruckAllToAll);
                        *own = content;
                    }
                }
            }
        };
        let mut plan = built(collective, ranks);
        execute(&mut plan, seed, Time(1000), |plan, _, event| match event {
            Event::Sent { src, dst, .. } => {
                let of_rank = &steps[src as usize];
                let step = (next[src as usize]..).find(|&step| of_rank[step].to.is_some()).unwrap();
                next[src as usize] = step + 1;
                let needed = of_rank[..step].iter().filter(|step| step.from.is_some()).count();
                assert!(finished_recvs[src as usize] >= needed);
                take(&mut held, &mut carried, src, step);
                let (to, blocks) = of_rank[step].to.clone().unwrap();
                assert_eq!(to, dst);
                let content =
                    blocks.into_iter().map(|b| (b, held[src as usize][b as usize].clone())).collect();
                carried.entry((src, dst)).or_default().push_back(content);
            }
            Event::Settled { host } => {
                finished_recvs[host as usize] = finished(&plan.hosts[host as usize], OpKind::Recv);
            }
            Event::Arrived { .. } | Event::Acknowledged { .. } => {}
        });
        (0..ranks).for_each(|rank| take(&mut held, &mut carried, rank, algorithm.steps(ranks) as usize));
        assert!(carried.values().all(VecDeque::is_empty));
        held
    }

    #[test]
    fn every_rank_ends_with_the_contributions_of_all() {
        for ranks in 2..=40 {
            let all: Content = (0..ranks).collect();
            for algorithm in
                [Algorithm::RingAllreduce, Algorithm::RecursiveDoublingAllreduce, Algorithm::Rabenseifner]
            {
                let held = outcome(collective(algorithm, 4096), ranks, 7, |rank, _| [rank].into());
                let parts = algorithm.parts(ranks) as usize;
                assert!(
                    held.iter().all(|held| held[..parts].iter().all(|b| *b == all)),
                    "{algorithm:?} {ranks}"
                );
            }
        }
    }

    #[test]
    fn every_rank_gathers_the_blocks_of_all() {
        for ranks in 2..=40 {
            let own = |rank, block| if rank == block { [rank].into() } else { Content::new() };
            let held = outcome(collective(Algorithm::RecursiveDoublingAllgather, 1), ranks, 7, own);
            let expected: Vec<Content> = (0..ranks).map(|rank| [rank].into()).collect();
            assert!(held.iter().all(|held| *held == expected), "{ranks}");
        }
    }

    #[test]
    fn a_broadcast_reaches_all() {
        for ranks in 2..=40 {
            let root = |rank, block| if (rank, block) == (0, 0) { [0].into() } else { Content::new() };
            let held = outcome(collective(Algorithm::BinomialBroadcast, 1), ranks, 7, root);
            assert!(held.iter().all(|held| held[0] == [0].into()), "{ranks}");
        }
    }

    #[test]
    fn every_block_of_an_all_to_all_comes_to_its_destination() {
        for ranks in 2..=40 {
            // The block at distance d of rank r is for r + d.
            let key = |src: u32, dst: u32| src * ranks + dst;
            let own = |rank, distance| [key(rank, (rank + distance) % ranks)].into();
            let held = outcome(collective(Algorithm::BruckAllToAll, 1), ranks, 7, own);
            for (rank, held) in (0..).zip(held) {
                let expected: Vec<Content> = (0..ranks)
                    .map(|distance| [key((rank + ranks - distance) % ranks, rank)].into())
                    .collect();
                assert_eq!(held, expected);
            }
            for algorithm in [Algorithm::PairwiseAllToAll, Algorithm::WindowedAllToAll] {
                let mut plan = built(collective(algorithm, 5), ranks);
                let mut pairs = BTreeSet::new();
                execute(&mut plan, 1, Time(1000), |_, _, event| {
                    if let Event::Sent { src, dst, bytes, .. } = event {
                        assert_eq!(bytes, Bytes(5));
                        assert!(pairs.insert((src, dst)));
                    }
                });
                assert_eq!(pairs.len() as u32, ranks * (ranks - 1));
            }
        }
    }

    #[test]
    fn nobody_leaves_a_barrier_before_all_have_come() {
        for ranks in 2..=40 {
            let last = ranks / 2;
            let options = Options { start_jitter: Time::from_us(50), ..Default::default() };
            let barrier = Collective { algorithm: Algorithm::DisseminationBarrier, ..Default::default() };
            let workload = Workload { pattern: Pattern::Collective(barrier), options };
            let mut plan = plan(workload, &network(ranks, ranks), u64::from(last)).unwrap();
            let (mut begun, mut left) = (BTreeSet::new(), Vec::new());
            execute(&mut plan, 1, Time(1000), |plan, _, event| match event {
                Event::Sent { src, .. } => {
                    begun.insert(src);
                }
                Event::Settled { host } if plan.hosts[host as usize].is_finished() => left.push(begun.len()),
                _ => {}
            });
            assert!(left.iter().all(|&begun| begun == ranks as usize), "{ranks}: {left:?}");
        }
    }

    #[test]
    fn a_window_bounds_what_is_in_flight() {
        let windowed = |window| {
            let mut plan = built(Collective { window, ..collective(Algorithm::WindowedAllToAll, 9) }, 10);
            let (mut sent, mut most) = ([0; 10], 0);
            execute(&mut plan, 1, Time(1000), |plan, _, event| {
                if let Event::Sent { src, .. } = event {
                    sent[src as usize] += 1;
                    most = most.max(sent[src as usize] - finished(&plan.hosts[src as usize], OpKind::Send));
                }
            });
            most
        };
        assert_eq!([1, 3, 20].map(windowed), [1, 3, 9]);
    }

    proptest! {
        #[test]
        fn every_program_ends(
            algorithm in prop::sample::select(&Algorithm::ALL[..]),
            ranks in 2..=40u32,
            repeat in 1..4u32,
            window in 1..6u32,
            compute in 0..100u64,
            overhead in 0..3u64,
            jitter in 0..2000u64,
            seed: u64,
        ) {
            let collective = Collective {
                algorithm, size: Some(Bytes(77)), window, repeat, compute: Time(compute), overhead: Time(overhead),
            };
            let options = Options {
                placement: Placement::Random,
                start_jitter: Time(jitter),
                ranks: Some(ranks),
                ..Default::default()
            };
            let workload = Workload { pattern: Pattern::Collective(collective), options };
            let mut plan = plan(workload, &network(ranks + 2, ranks), seed).unwrap();
            let mut arrived = 0;
            execute(&mut plan, seed, Time(500), |_, _, event| {
                arrived += u64::from(matches!(event, Event::Arrived { .. }));
            });
            prop_assert!(plan.hosts.iter().all(|host| host.is_finished()));
            prop_assert_eq!(Some(arrived), plan.total_messages);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for wrong in [
            Collective { repeat: 0, ..Default::default() },
            Collective { window: 0, ..Default::default() },
            Collective { repeat: u32::MAX, ..Default::default() },
        ] {
            assert!(plan(Workload::new(Pattern::Collective(wrong)), &network(4, 4), 1).is_err());
        }
    }
}
