//! The traffic patterns, one file each.

mod adversarial;
mod all_to_all;
mod astra_sim;
mod bernoulli;
mod bursty;
mod chakra;
mod collective;
mod flow_list;
mod flows;
mod goal;
mod gpu_collective;
mod hotspot;
mod htsim_matrix;
mod idle;
mod incast;
mod kv_transfer;
pub(crate) mod lines;
mod mix;
mod ns3_flows;
mod off_diagonal;
mod partners;
mod permutation;
mod poisson;
mod sharp_like;
mod shuffle;
mod simai;
mod skeleton;
mod stencil;
mod training;
mod uniform;
mod worst_case;

pub use adversarial::Adversarial;
pub use all_to_all::{AllToAll, Order};
pub use astra_sim::{AstraSim, NetworkModel};
pub use bernoulli::Bernoulli;
pub use bursty::Bursty;
pub use chakra::{Chakra, TraceFiles};
pub(crate) use collective::bytes_of;
pub use collective::{Algorithm, Collective};
pub use flow_list::FlowList;
pub use goal::{Goal, GoalPreset, NicChoice};
pub use gpu_collective::GpuCollective;
pub use hotspot::{Degree, HotSources, Hotspot, Severity, Victim};
pub use htsim_matrix::{HtsimMatrix, StartUnit};
pub use idle::Idle;
pub use incast::{Incast, Receivers, Spacing};
pub use kv_transfer::{KvTransfer, Prompts};
pub use mix::{Mix, Part};
pub use ns3_flows::Ns3Flows;
pub use off_diagonal::OffDiagonal;
pub use permutation::Permutation;
pub use poisson::Poisson;
pub use sharp_like::{SharpLike, SwitchOperation};
pub use shuffle::Shuffle;
pub use simai::{OperationOrder, SimAiWorkload};
pub use skeleton::{Application, Scale, ScaleTable, Skeleton};
pub use stencil::Stencil;
pub use training::{Dtype, LayerTime, TrainingPreset, TrainingStep};
pub use uniform::Uniform;
pub use worst_case::WorstCase;

use netloom_units::{Time, kinds};

use crate::WorkloadError;
use crate::plan::{MOST_MESSAGES, Plan, Setting};

kinds! {
    /// Which host sends to which, and by what rule.
    pub enum Pattern: "pattern" {
        "permutation" => Permutation(Permutation),
        "uniform" => Uniform(Uniform),
        "all-to-all" => AllToAll(AllToAll),
        "incast" => Incast(Incast),
        "off-diagonal" => OffDiagonal(OffDiagonal),
        "shuffle" => Shuffle(Shuffle),
        "adversarial" => Adversarial(Adversarial),
        "worst-case" => WorstCase(WorstCase),
        "stencil" => Stencil(Stencil),
        "poisson" => Poisson(Poisson),
        "collective" => Collective(Collective),
        "gpu-collective" => GpuCollective(GpuCollective),
        "sharp-like" => SharpLike(SharpLike),
        "training-step" => TrainingStep(TrainingStep),
        "skeleton" => Skeleton(Skeleton),
        "goal" => Goal(Goal),
        "chakra" => Chakra(Chakra),
        "kv-transfer" => KvTransfer(KvTransfer),
        "astra-sim" => AstraSim(AstraSim),
        "simai" => SimAi(SimAiWorkload),
        "bernoulli" => Bernoulli(Bernoulli),
        "bursty" => Bursty(Bursty),
        "hotspot" => Hotspot(Hotspot),
        "flow-list" => FlowList(FlowList),
        "htsim-matrix" => HtsimMatrix(HtsimMatrix),
        "ns3-flows" => Ns3Flows(Ns3Flows),
        "idle" => Idle(Idle),
        "mix" => Mix(Mix),
    }

    /// The messages of a run.
    pub(crate) fn build(&self, setting: &Setting<'_>) -> Result<Plan, WorkloadError>;
}

/// How many messages there are in all, if that is known; an error if nothing limits them.
///
/// # Errors
/// If neither is given, or more messages than have numbers.
fn total(
    messages_per_host: Option<u64>,
    duration: Option<Time>,
    ranks: u32,
) -> Result<Option<u64>, WorkloadError> {
    match (messages_per_host, duration) {
        (None, None) => {
            Err(WorkloadError::parameter("messages_per_host", "a number, or a `duration`", "neither"))
        }
        (Some(messages), None) if messages > MOST_MESSAGES => {
            let expected = format!("at most {MOST_MESSAGES}, or a `duration` beside it");
            Err(WorkloadError::parameter("messages_per_host", expected, messages))
        }
        (Some(messages), None) => Ok(messages.checked_mul(ranks.into())),
        (_, Some(_)) => Ok(None),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::{HostWork, Message, PlanContext, Size, Table, Workload};
    use netloom_topology::{HostId, Network, NetworkBuilder};
    use netloom_units::Rate;
    use netloom_units::kind::Kind;

    /// Racks of `per_rack` hosts (the last may have fewer) below one spine; two racks form a pod.
    pub(crate) fn network(hosts: u32, per_rack: u32) -> Network {
        let mut builder = NetworkBuilder::new("test");
        builder.add_hosts(hosts);
        let tier = builder.tier("link");
        let racks: Vec<_> =
            (0..hosts.div_ceil(per_rack)).map(|rack| builder.add_switch(1, rack / 2)).collect();
        let spine = builder.add_switch(2, 0);
        for host in 0..hosts {
            builder.link(
                host,
                racks[(host / per_rack) as usize],
                Rate::from_gbps(100),
                Time::from_us(1),
                tier,
            );
        }
        for rack in racks {
            builder.link(rack, spine, Rate::from_gbps(100), Time::from_us(1), tier);
        }
        builder.build().unwrap()
    }

    pub(crate) fn plan(workload: Workload, network: &Network, seed: u64) -> Result<Plan, WorkloadError> {
        workload.plan(network, &PlanContext::new(seed))
    }

    /// Every message that starts by the clock, host by host.
    pub(crate) fn timed(plan: &mut Plan) -> Vec<(HostId, Message)> {
        let messages = (0..).zip(&mut plan.hosts);
        messages
            .flat_map(|(host, work)| std::iter::from_fn(move || Some((host, work.next_timed()?))))
            .collect()
    }

    /// Sender and receiver of every message that starts by the clock.
    pub(crate) fn partners(plan: &mut Plan) -> Vec<(HostId, HostId)> {
        timed(plan).into_iter().map(|(src, message)| (src, message.dst)).collect()
    }

    #[test]
    fn every_kind_is_documented() {
        for kind in Pattern::kinds() {
            // Who sends nothing has nothing to say of it.
            assert!(!kind.doc.is_empty() && (kind.name == "idle" || !kind.fields.is_empty()), "{kind:?}");
            assert!(kind.fields.iter().all(|field| !field.doc.is_empty()), "{kind:?}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut patterns: Vec<Pattern> =
            Pattern::NAMES.iter().filter_map(|name| Pattern::read(name, toml::Table::new())?.ok()).collect();
        let size = crate::SizeDistribution { max: Some(netloom_units::Bytes(5)), ..Default::default() };
        patterns.push(Pattern::Incast(Incast {
            senders: Some(3),
            size: Size::Distribution(size),
            ..Default::default()
        }));
        let stencil =
            Stencil { offsets: Some(vec![-1, 7]), size: Table::WebServer.into(), ..Default::default() };
        patterns.push(Pattern::Stencil(stencil));
        patterns.push(Pattern::HtsimMatrix(HtsimMatrix { file: "a.cm".into(), start_unit: StartUnit::Us }));
        patterns.push(Pattern::Chakra(Chakra {
            files: TraceFiles::Listed(vec!["a.0.et".into(), "a.1.et".into()]),
            groups: Some("groups.json".into()),
            overhead: Time(2),
        }));
        let files = TraceFiles::Named("t/rank%d.et".into());
        patterns.push(Pattern::Chakra(Chakra { files, groups: None, overhead: Time::ZERO }));
        patterns.push(Pattern::AstraSim(AstraSim {
            traces: "t/a".into(),
            system: "system.json".into(),
            groups: None,
            dimensions: Some(vec![8, 2]),
            queues_per_dimension: 2,
            network: NetworkModel::Analytical,
            network_file: Some("net.yml".into()),
        }));
        patterns.push(Pattern::SimAi(SimAiWorkload {
            send_latency: Time(2),
            order: OperationOrder::OldestFirst,
            ..SimAiWorkload::new("w.txt")
        }));
        patterns.push(Pattern::Goal(Goal {
            file: "a.goal".into(),
            time_unit: Time(1),
            overhead: Some(Time(2)),
            preset: Some(GoalPreset::AtlahsAiLike),
            nics: NicChoice::Schedule,
        }));
        let mixed = [Pattern::Poisson(Poisson::default()), Pattern::Hotspot(Hotspot::default())];
        let part = |pattern| Part { name: Some("a".into()), pattern, options: crate::Options::default() };
        patterns.push(Pattern::Mix(Mix { parts: mixed.into_iter().map(part).collect() }));
        // All but the three lists, the schedule and the traces, which need files, and the mix, which needs parts.
        assert_eq!(patterns.len(), Pattern::NAMES.len() - 8 + 9);
        for pattern in patterns {
            let mut table: toml::Table = toml::from_str(&toml::to_string(&pattern).unwrap()).unwrap();
            let kind = table.remove("kind").unwrap();
            assert_eq!(Pattern::read(kind.as_str().unwrap(), table).unwrap(), Ok(pattern));
        }
    }

    #[test]
    fn an_idle_host_is_small() {
        assert!(std::mem::size_of::<HostWork>() <= 64, "{}", std::mem::size_of::<HostWork>());
    }
}
