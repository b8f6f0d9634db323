//! Training steps in the workload files of SimAI, with its schedule.

use std::path::PathBuf;
use std::sync::Arc;

use netloom_astra::TrainingRank;
use netloom_astra::simai::{self, SimAiRank, SimAiShape};
use netloom_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkloadError;
use crate::plan::{HostWork, Plan, Setting};
use crate::program::{JobRank, PlacedJob, RankEnds};

/// A training step in the workload text of SimAI, as AICB writes it, with SimAI's schedule and its flows for NCCL. Ranks are GPUs, and do all layers one after the other: compute, communicate;
/// forward, then from the last layer back the gradients of inputs and of weights. They wait for all operations but those of weights, and have one in progress at a time.
///
/// Ranks of a tensor-parallel group are neighbours; those of experts have the same place in consecutive tensor-parallel groups. An all-reduce, all-gather or reduce-scatter goes around as
/// many rings as ranks of the group are in a server (joined by `servers.scale_up`, or an NVSwitch of `simai-topology`); an all-to-all is one flow for each pair. Each flow is handed to the network
/// `send_latency` after what it waits for.
///
/// Source: aliyun/SimAI (`Workload.cc`, `Layer.cc`, `Sys.cc`; the flows of `MockNcclGroup.cc` at a920cdc2, without NVLS and PXN). Policies other than `HYBRID_TRANSFORMER` and
/// `HYBRID_TRANSFORMER_FWD_IN_BCKWD` are refused, as SimAI has no groups for them. `netloom explain` shows what differs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimAiWorkload {
    /// The file (`-w` of SimAI). As many ranks take part as its `all_gpus:` says, or all if it does not. A relative name starts from the scenario's folder.
    pub file: PathBuf,
    /// How long a flow takes to be handed to the network (`AS_SEND_LAT`, in nanoseconds there): 6 us up to SimAI 1.6; 1.7 has a table by algorithm and protocol.
    #[serde(default = "six_microseconds")]
    pub send_latency: Time,
    /// Which operation of a rank comes next when several wait.
    #[serde(default)]
    pub order: OperationOrder,
}

fn six_microseconds() -> Time {
    Time::from_us(6)
}

/// Which operation of a rank comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum OperationOrder {
    /// The newest, as in SimAI. Ranks that come to operations at different times may then do them in different orders and wait for each other for ever; the run ends and says so.
    #[default]
    NewestFirst,
    /// The oldest: all ranks do all operations in the same order.
    OldestFirst,
}

impl SimAiWorkload {
    /// A file with the default options.
    pub fn new(file: impl Into<PathBuf>) -> Self {
        SimAiWorkload {
            file: file.into(),
            send_latency: six_microseconds(),
            order: OperationOrder::default(),
        }
    }

    /// How its answers differ from those of SimAI, and why: one sentence each.
    pub fn differences(&self) -> &'static [&'static str] {
        &[
            "a flow has come when its last byte has; SimAI tells the receiver when the last ACK is back at the sender. A rank's own flow is done when the transport is, with the last ACK where there are any; in SimAI when the last packet has left",
            "all-reduces go around rings. SimAI takes NVLS with AS_NVLS_ENABLE=1, by way of the GPU with the next rail with AS_PXN_ENABLE=1, and from 1.7 on what SimCCL chooses, which is not public",
            "a flow waits 10 ns before `send_latency`, and 30 ns more if it carries what was reduced, in the first half of an all-reduce and in a reduce-scatter; SimAI's counters choose other flows for the 30 ns in some all-reduces",
            "operations of no bytes, or of fewer than flows share, are over at once. SimAI waits for ever",
            "with model_parallel_NPU_group: 1 operations of forward passes and input gradients are done. SimAI leaves them out",
            "all listed checkpoints count. SimAI reads the first of them only",
            "ranks notice at the next whole nanosecond what arrives",
        ]
    }

    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let file = setting.context.file(&self.file);
        let most = setting.ranks();
        let ranks = simai::SimAi::gpus(&file)?.unwrap_or(most);
        if ranks > most {
            let problem = format!(
                "all_gpus: expected at most {most} GPUs, one for each host or GPU that takes part, found {ranks}"
            );
            return Err(WorkloadError::line(&file, 1, problem));
        }
        let placed = &setting.placed[..ranks as usize];
        let rails = setting.endpoints.rails;
        let server = |(rank, &host): (u32, &u32)| rails.and_then(|rails| rails.domain(host)).unwrap_or(rank);
        let shape = SimAiShape {
            servers: (0..).zip(placed).map(server).collect(),
            send_latency: self.send_latency.0.div_ceil(1000),
            order: match self.order {
                OperationOrder::NewestFirst => simai::Order::NewestFirst,
                OperationOrder::OldestFirst => simai::Order::OldestFirst,
            },
        };
        let step = Arc::new(simai::SimAi::read(&file, shape)?);
        let messages = (0..ranks).map(|rank| step.load(rank).messages).fold(0, u64::saturating_add);
        let ends = RankEnds::new(ranks);
        let job = PlacedJob::new(placed, setting.endpoints.count(), ends.clone());
        let plan = setting.plan(None, |rank, host| match rank < ranks {
            true => {
                let of_step = TrainingRank::SimAi(Box::new(SimAiRank::new(step.clone(), rank)));
                HostWork::job(JobRank::new(job.clone(), of_step, rank, setting.first_start(host)))
            }
            false => HostWork::default(),
        });
        Ok(Plan { notes: step.notes(), ends: Some(ends), total_messages: Some(messages), ..plan })
    }
}
