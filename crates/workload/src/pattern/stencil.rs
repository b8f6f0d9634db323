//! Every host exchanges with its neighbours of a grid.

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::collective::{Algorithm, Operation};
use super::partners::{at_offsets, send_to_partners};
use crate::plan::{Plan, Setting};
use crate::program::{Accept, RankBuilder, build_all};
use crate::random::Work;
use crate::{Size, WorkloadError};

/// A two-dimensional stencil (FatPaths, SC 2020: four off-diagonals). Without `barrier` every rank sends to its four neighbours at once,
/// and to each of them again when a message completes. With it every rank calculates, exchanges with its neighbours, and waits in a barrier
/// (dissemination) for all others, `repeat` times.
///
/// With `barrier` it is a program, as `collective` describes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Stencil {
    /// Distances of the neighbours in ranks; ±1 and ±42, or ±1 and ±1337 beyond 10,000 ranks, if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offsets: Option<Vec<i64>>,
    /// Size of the messages.
    pub size: Size,
    /// Messages to each neighbour.
    pub repeat: u32,
    /// Whether all ranks wait for each other after every exchange. Sizes are then drawn once, for all exchanges.
    pub barrier: bool,
    /// Calculation of every rank before each exchange; needs `barrier`.
    pub compute: Time,
}

impl Default for Stencil {
    fn default() -> Self {
        Stencil {
            offsets: None,
            size: Bytes(64 << 10).into(),
            repeat: 1,
            barrier: false,
            compute: Time::ZERO,
        }
    }
}

impl Stencil {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let row = if setting.ranks() > 10_000 { 1337 } else { 42 };
        let offsets = self.offsets.clone().unwrap_or_else(|| vec![1, -1, row, -row]);
        let partners = at_offsets(setting.ranks(), &offsets, "offsets")?;
        if self.barrier {
            return self.build_with_barrier(setting, &partners);
        }
        if self.compute > Time::ZERO {
            return Err(WorkloadError::parameter("compute", "`barrier = true` with it", "none"));
        }
        send_to_partners(setting, &self.size, self.repeat, &partners)
    }

    fn build_with_barrier(&self, setting: &Setting, partners: &[Vec<u32>]) -> Result<Plan, WorkloadError> {
        if self.repeat == 0 {
            return Err(WorkloadError::parameter("repeat", "at least 1", 0));
        }
        let size = self.size.sampler(setting.context)?;
        let mut sources = vec![Vec::new(); partners.len()];
        for (rank, partners) in (0..).zip(partners) {
            partners.iter().for_each(|&partner| sources[partner as usize].push(rank));
        }
        let (exchange, barrier) = (0, 1);
        let program = build_all(setting.ranks(), self.repeat, Time::ZERO, |rank| {
            let mut rng = Work::Host.stream(setting.context.seed, setting.placed[rank as usize]);
            let mut builder = RankBuilder::default();
            let start = (self.compute > Time::ZERO).then(|| builder.calc(self.compute));
            let mut ops = Vec::new();
            for &dst in &partners[rank as usize] {
                ops.push(builder.send(dst, size.draw(&mut rng), exchange));
            }
            for &src in &sources[rank as usize] {
                ops.push(builder.recv(Accept::Only(src), Accept::Only(exchange)));
            }
            builder.after_all(&ops, start.as_slice());
            let operation =
                Operation::new(Algorithm::DisseminationBarrier, setting.ranks(), Bytes(1), barrier);
            operation.add(&mut builder, rank, &ops);
            builder
        });
        let program = program.map_err(|problem| WorkloadError::parameter("repeat", "fewer", problem))?;
        Ok(setting.run(program))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, partners, plan};
    use crate::program::testing::{Event, execute};
    use crate::{Pattern, Workload};

    #[test]
    fn every_rank_has_four_neighbours() {
        let workload = Workload::new(Pattern::Stencil(Stencil::default()));
        let mut plan = plan(workload, &network(100, 10), 1).unwrap();
        assert_eq!(plan.total_messages, Some(400));
        let sent = partners(&mut plan);
        assert_eq!(sent[..4], [(0, 1), (0, 99), (0, 42), (0, 58)]);
    }

    #[test]
    fn repeated_exchanges_go_round_the_neighbours() {
        let stencil = Stencil { offsets: Some(vec![1, 2]), repeat: 2, ..Default::default() };
        let mut plan = plan(Workload::new(Pattern::Stencil(stencil)), &network(5, 5), 1).unwrap();
        let host = &mut plan.hosts[0];
        let first: Vec<_> = std::iter::from_fn(|| Some(host.next_timed()?.dst)).collect();
        let then: Vec<_> = std::iter::from_fn(|| Some(host.next_closed(Time::ZERO, 0)?.dst)).collect();
        assert_eq!((first.as_slice(), then.as_slice()), (&[1, 2][..], &[1, 2][..]));
    }

    #[test]
    fn a_stencil_without_neighbours_is_refused() {
        let stencil = Stencil { offsets: Some(vec![]), ..Default::default() };
        assert!(plan(Workload::new(Pattern::Stencil(stencil)), &network(5, 5), 1).is_err());
        // 42 ranks below and above of a rank among 42 lies the rank itself.
        assert!(plan(Workload::new(Pattern::Stencil(Stencil::default())), &network(42, 6), 1).is_err());
    }

    #[test]
    fn with_a_barrier_no_rank_is_an_exchange_ahead() {
        let (ranks, repeat, compute) = (10, 3, Time::from_us(7));
        let stencil = Stencil {
            offsets: Some(vec![1, -1, 3, -3]),
            size: Bytes(100).into(),
            repeat,
            barrier: true,
            compute,
        };
        let mut plan = plan(Workload::new(Pattern::Stencil(stencil)), &network(ranks, ranks), 1).unwrap();
        // Four neighbours, four rounds of the barrier among ten ranks.
        assert_eq!(plan.total_messages, Some(u64::from(repeat * ranks * (4 + 4))));
        let mut sent = vec![0; ranks as usize];
        let end = execute(&mut plan, 1, Time(1000), |_, now, event| {
            if let Event::Sent { src, bytes: Bytes(100), .. } = event {
                sent[src as usize] += 1;
                let done = (sent[src as usize] - 1) / 4;
                assert!(now >= compute * (done as u64 + 1));
                assert!(sent.iter().all(|&others| others >= 4 * done), "{sent:?}");
            }
        });
        assert!(plan.hosts.iter().all(|host| host.is_finished()));
        assert!(sent.iter().all(|&sent| sent == 4 * repeat));
        assert!(end > compute * u64::from(repeat));
    }

    #[test]
    fn computing_needs_a_barrier() {
        let stencil = Stencil { offsets: Some(vec![1]), compute: Time(1), ..Default::default() };
        assert!(plan(Workload::new(Pattern::Stencil(stencil)), &network(5, 5), 1).is_err());
    }
}
