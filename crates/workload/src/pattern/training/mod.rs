//! Training steps of transformers.

mod layout;
mod model;
mod preset;
mod schedule;
#[cfg(test)]
mod tests;

pub use model::{Dtype, LayerTime};
pub use preset::TrainingPreset;

use netloom_units::narrow;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::layout::Layout;
use self::model::{Model, Speed};
use self::schedule::{Kind, Plan as Step};
use super::gpu_collective::check_parts;
use crate::WorkloadError;
use crate::gpus::transfers::{Method, Operation};
use crate::gpus::{Cost, Gpus, KINDS, tags};
use crate::plan::{Plan, Setting};

/// Training steps of a transformer, without a trace: computation, collectives by group and messages between pipeline stages, by the sizes of the model
/// and the degrees of parallelism.
///
/// Ranks are GPUs: with `servers` GPU g of server s is rank s·k + g (k GPUs each), and what stays inside a server goes over its `scale_up` network, if it has one;
/// without, each host is a GPU. They are numbered as Megatron-LM does by default: tensor-parallel ranks are neighbours, then come those of
/// context and data parallelism, then the pipeline's stages; experts are spread over neighbours among the context- and data-parallel ranks.
///
/// What is sent, of which n ranks send 2 (n - 1)/n by a ring for an all-reduce and half of it for the others (b sequences of s tokens in a micro-batch, h
/// hidden, bytes by `dtype`):
///
/// - tensor: an all-reduce of b s h behind the attention and behind the feed-forward part, forward and backward, so 4 per layer and micro-batch
///   (Shoeybi et al., arXiv:1909.08053); with `sequence_parallel` an all-gather before and a reduce-scatter behind each instead
///   (Korthikanti et al., arXiv:2205.05198).
/// - pipeline: b s h to the next stage forward, as much back; one forward, one backward (Narayanan et al., SC 2021), without interleaving.
/// - data: the gradients once a step, layer by layer: an all-reduce; with ZeRO 1 a reduce-scatter, and an all-gather of the new parameters; with 2 the
///   reduce-scatter for every micro-batch; with 3 an all-gather of the parameters for every forward and every backward pass, too
///   (Rajbhandari et al., SC 2020).
/// - expert: an all-to-all of the tokens to their experts and one back, forward and backward; all experts get equally many.
/// - context: keys and values forward, they and their gradients backward (Liu et al., arXiv:2310.01889).
///
/// Left out: the losses, the vocabulary's tensor-parallel collectives, norms and biases, interleaved stages, the optimizer's own time.
/// `netloom explain` shows the groups and the bytes of a step.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrainingStep {
    /// A model with a layout, of which single fields can be set otherwise: `gpt-13b-like` (for 128 GPUs), `dense-70b-like` (for 1,024) or
    /// `mixtral-8x7b-like` (for 64). If not given, a small model for first tests: 2 layers, hidden 512.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<TrainingPreset>,
    /// Number of layers; a multiple of `pipeline`. 2 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub layers: Option<u32>,
    /// Size of a token's vector; 512 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<u32>,
    /// Attention heads; one for each 64 of `hidden` if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub heads: Option<u32>,
    /// Heads with keys and values of their own (grouped-query attention); as `heads` if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kv_heads: Option<u32>,
    /// Size between the matrices of the feed-forward part; 4 times `hidden` if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ffn_hidden: Option<u32>,
    /// Whether the feed-forward part has a third matrix, as with SwiGLU; false if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gated: Option<bool>,
    /// Size of the vocabulary, 0 for no embedding and no output layer; 8192 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vocabulary: Option<u32>,
    /// Whether the output layer has the parameters of the embedding; true if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tied_embeddings: Option<bool>,
    /// Experts in the feed-forward part of each layer; none (a dense model) if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experts: Option<u32>,
    /// How many experts a token goes to; 2 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_k: Option<u32>,
    /// Tokens of a sequence; 512 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence: Option<u32>,
    /// Sequences of a micro-batch; 1 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_batch: Option<u32>,
    /// Micro-batches of a data-parallel rank in a step; as many as stages if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub micro_batches: Option<u32>,
    /// Format of activations and parameters; `bf16` if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dtype: Option<Dtype>,
    /// Format in which gradients are reduced; as `dtype` if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gradient_dtype: Option<Dtype>,
    /// Tensor-parallel ranks; 1 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor: Option<u32>,
    /// Context-parallel ranks; 1 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context: Option<u32>,
    /// Stages of the pipeline; 1 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<u32>,
    /// Data-parallel ranks; as many as the GPUs allow if not given. GPUs beyond `tensor` × `context` × `data` × `pipeline` do nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<u32>,
    /// Expert-parallel ranks, a divisor of `experts` and of `context` × `data`; 1 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expert: Option<u32>,
    /// Whether activations are divided among tensor-parallel ranks outside of the attention and the feed-forward part; false if not given here or by
    /// the preset. Needed with `experts` and `tensor` above 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sequence_parallel: Option<bool>,
    /// Stage of ZeRO, 0 to 3 (2 and 3 without a pipeline); 1 if not given here or by the preset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zero: Option<u8>,
    /// Whether gradients are reduced while earlier layers are computed, and activations sent and parameters gathered while the GPU computes; true if
    /// not given. The all-gather of ZeRO 1 and 2 comes at the end of the step in either case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overlap: Option<bool>,
    /// Whether layers are computed again, with their collectives, before their backward pass (activation checkpointing); false if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recompute: Option<bool>,
    /// Highest speed of a GPU, in 10¹² operations per second; 989 (an H100 with bf16, NVIDIA H100 data sheet) if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peak_tflops: Option<f64>,
    /// The share of it that is reached; 0.5 if not given. A layer takes b s (24 h² + 4 s h) operations forward for a GPT (Narayanan et al., SC 2021),
    /// twice as many backward, divided among its tensor- and context-parallel ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub efficiency: Option<f64>,
    /// Measured times instead: `[{ forward = "1ms", backward = "2ms" }]` per micro-batch at one GPU, one entry for all layers or one for each. The embedding
    /// and the output layer then take no time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub times: Option<Vec<LayerTime>>,
    /// How collectives are done, as for the workload `gpu-collective`. Those that an algorithm is not for are done as by `auto`.
    pub algorithm: Method,
    /// Parts of a collective that are sent in parallel, like NCCL's channels; 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Pieces of each part, two at a time; 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunks: Option<u32>,
    /// Steps, one after the other; a GPU begins the next one when it has finished its part. 1 if not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steps: Option<u32>,
}

fn refuse<T>(
    field: &'static str,
    expected: impl Into<String>,
    found: impl std::fmt::Display,
) -> Result<T, WorkloadError> {
    Err(WorkloadError::parameter(field, expected.into(), found))
}

impl TrainingStep {
    /// The fields of the preset with those that are set over them.
    fn completed(&self) -> TrainingStep {
        let TrainingStep { preset, .. } = *self;
        let below = preset.map(TrainingPreset::fields).unwrap_or_default();
        macro_rules! over {
            ($($field:ident)*) => {
                TrainingStep { $($field: self.$field.clone().or(below.$field.clone()),)* algorithm: self.algorithm, preset }
            };
        }
        over!(layers hidden heads kv_heads ffn_hidden gated vocabulary tied_embeddings experts top_k sequence micro_batch
            micro_batches dtype gradient_dtype tensor context pipeline data expert sequence_parallel zero overlap recompute
            peak_tflops efficiency times channels chunks steps)
    }

    /// The model, and how it is trained on `gpus` GPUs.
    fn step(&self, gpus: u32) -> Result<Step, WorkloadError> {
        let number = |field: &'static str, value: Option<u32>, default: u32, most: u32| match value
            .unwrap_or(default)
        {
            value if (1..=most).contains(&value) => Ok(value),
            value => refuse(field, format!("1 to {most}"), value),
        };
        let pipeline = number("pipeline", self.pipeline, 1, gpus)?;
        let tensor = number("tensor", self.tensor, 1, gpus)?;
        let context = number("context", self.context, 1, gpus)?;
        let layers = number("layers", self.layers, 2, 4096)?;
        let hidden = number("hidden", self.hidden, 512, 1 << 17)?;
        let heads = number("heads", self.heads, hidden.div_ceil(64), 1 << 12)?;
        let kv_heads = number("kv_heads", self.kv_heads, heads, heads)?;
        let ffn_hidden = number("ffn_hidden", self.ffn_hidden, 4 * hidden, 1 << 20)?;
        let sequence = number("sequence", self.sequence, 512, 1 << 22)?;
        let micro_batch = number("micro_batch", self.micro_batch, 1, 1 << 12)?;
        let micro_batches = number("micro_batches", self.micro_batches, pipeline, 1 << 16)?;
        let vocabulary = self.vocabulary.unwrap_or(8192);
        if vocabulary > 1 << 24 {
            return refuse("vocabulary", format!("0 to {}", 1 << 24), vocabulary);
        }
        let experts = self.experts.unwrap_or(0);
        if experts > 1 << 12 {
            return refuse("experts", format!("0 to {}", 1 << 12), experts);
        }
        if experts == 0 && (self.top_k.is_some() || self.expert.is_some_and(|expert| expert > 1)) {
            let field = if self.top_k.is_some() { "top_k" } else { "expert" };
            return refuse(field, "`experts` beside it", "a dense model");
        }
        let top_k = number("top_k", self.top_k, 2.min(experts.max(1)), experts.clamp(1, 64))?;
        for (field, of, by) in
            [("heads", hidden, heads), ("kv_heads", heads, kv_heads), ("tensor", heads, tensor)]
        {
            if !of.is_multiple_of(by) {
                let whole = if field == "heads" { "hidden" } else { "heads" };
                return refuse(field, format!("a divisor of `{whole}`, {of}"), by);
            }
        }
        if !layers.is_multiple_of(pipeline) {
            return refuse("pipeline", format!("a divisor of `layers`, {layers}"), pipeline);
        }
        if !sequence.is_multiple_of(context) {
            return refuse("context", format!("a divisor of `sequence`, {sequence}"), context);
        }
        let per_replica = u64::from(tensor) * u64::from(context) * u64::from(pipeline);
        if per_replica > u64::from(gpus) {
            return refuse(
                "tensor",
                format!("at most the {gpus} GPUs for `tensor` × `context` × `pipeline`"),
                per_replica,
            );
        }
        let per_replica = narrow::<u32>(per_replica);
        let data = number("data", self.data, gpus / per_replica, gpus / per_replica)?;
        if self.data.is_none() && !gpus.is_multiple_of(per_replica) {
            let expected = format!(
                "a number of data-parallel ranks: {gpus} GPUs are no multiple of the {per_replica} of each"
            );
            return refuse("data", expected, "none");
        }
        let expert = number("expert", self.expert, 1, experts.max(1))?;
        if experts > 0 && !(experts.is_multiple_of(expert) && (context * data).is_multiple_of(expert)) {
            let expected =
                format!("a divisor of `experts`, {experts}, and of `context` × `data`, {}", context * data);
            return refuse("expert", expected, expert);
        }
        let sequence_parallel = self.sequence_parallel.unwrap_or(false);
        if sequence_parallel && tensor == 1 {
            return refuse("sequence_parallel", "`tensor` above 1", "no tensor parallelism");
        }
        if experts > 0 && tensor > 1 && !sequence_parallel {
            let expected = "true with `experts` and `tensor` above 1, or each token would go to the experts from every tensor-parallel rank";
            return refuse("sequence_parallel", expected, false);
        }
        let zero = self.zero.unwrap_or(1);
        if zero > 3 || (zero > 1 && pipeline > 1) {
            let expected = if pipeline > 1 { "0 or 1 with several stages" } else { "0 to 3" };
            return refuse("zero", expected, zero);
        }
        let speed = self.speed(layers)?;
        let (channels, chunks) = (self.channels.unwrap_or(1), self.chunks.unwrap_or(1));
        check_parts(channels, chunks)?;
        Ok(Step {
            model: Model {
                layers,
                hidden: hidden.into(),
                heads: heads.into(),
                kv_heads: kv_heads.into(),
                ffn_hidden: ffn_hidden.into(),
                gated: self.gated.unwrap_or(false),
                vocabulary: vocabulary.into(),
                tied: self.tied_embeddings.unwrap_or(true),
                experts: experts.into(),
                top_k: if experts > 0 { top_k.into() } else { 0 },
                sequence: sequence.into(),
                micro_batch: micro_batch.into(),
                dtype: self.dtype.unwrap_or_default(),
                gradient_dtype: self.gradient_dtype.or(self.dtype).unwrap_or_default(),
                speed,
            },
            layout: Layout { tensor, context, data, pipeline, expert, sequence_parallel },
            micro_batches,
            zero,
            overlap: self.overlap.unwrap_or(true),
            recompute: self.recompute.unwrap_or(false),
            method: self.algorithm,
            channels,
            chunks,
        })
    }

    /// Where the times of computation come from.
    fn speed(&self, layers: u32) -> Result<Speed, WorkloadError> {
        let Some(times) = &self.times else {
            let (peak, efficiency) = (self.peak_tflops.unwrap_or(989.0), self.efficiency.unwrap_or(0.5));
            if !(peak > 0.0 && peak <= 1e9) {
                return refuse("peak_tflops", "a number above 0", peak);
            }
            if !(efficiency > 0.0 && efficiency <= 1.0) {
                return refuse("efficiency", "a number above 0, at most 1", efficiency);
            }
            return Ok(Speed::Flops(peak * 1e12 * efficiency));
        };
        if times.len() != 1 && times.len() != layers as usize {
            return refuse(
                "times",
                format!("one entry, or one for each of the {layers} layers"),
                times.len(),
            );
        }
        for (field, value) in [("peak_tflops", self.peak_tflops), ("efficiency", self.efficiency)] {
            if value.is_some() {
                return refuse(field, "it without `times`, which say how long the computation takes", "both");
            }
        }
        Ok(Speed::Table(times.clone()))
    }

    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let complete = self.completed();
        let gpus = Gpus::new(setting)?;
        let steps = complete.steps.unwrap_or(1);
        if steps == 0 {
            return refuse("steps", "at least 1", 0);
        }
        let step = complete.step(gpus.count())?;
        let used = step.layout.gpus();
        step.check(&gpus)?;
        // A server is there with all of its GPUs, or not at all.
        let servers = used.div_ceil(gpus.per_server);
        let crossing = step.crossing(&gpus);
        let mut groups = [0; KINDS];
        for (group, &kind) in (0..).zip(&crossing) {
            groups[kind as usize] = group;
        }
        let program = gpus.program(servers, steps, groups, |builder, gpu| {
            if gpu < used {
                step.add(builder, gpu);
            }
        });
        let (program, cost) = program.map_err(|problem| {
            WorkloadError::parameter("steps", "fewer, or a smaller model or fewer micro-batches", problem)
        })?;
        let outline = step.outline(&gpus, &cost, steps);
        let mut plan = setting.run(program);
        if !crossing.is_empty() {
            plan.groups = crossing.iter().map(|kind| kind.name().to_owned()).collect();
        }
        plan.outline = outline;
        Ok(plan)
    }
}

impl Step {
    /// Refuses an algorithm that groups are too small for, and tags beyond those that there are.
    fn check(&self, gpus: &Gpus) -> Result<(), WorkloadError> {
        if u64::from(tags(self.channels, self.chunks) * 8) * u64::from(gpus.per_server).pow(2)
            > u64::from(u32::MAX)
        {
            return refuse("chunks", "fewer, or fewer `channels`", self.chunks);
        }
        let mut is_used = self.method == Method::Auto;
        let mut operations = 0u64;
        for kind in Kind::ALL.into_iter().filter(|&kind| kind != Kind::Pipeline) {
            for operation in kind.operations(self) {
                let comm = self.comm(kind, 0, operation);
                is_used |= self.method(operation) == self.method && self.crosses_servers(gpus, kind);
                // Whether there are several servers with several members each may differ from group to group.
                let others =
                    if self.method(operation) == Method::Hierarchical { self.layout.gpus() } else { 1 };
                for gpu in 0..others {
                    self.check_group(gpus, kind, gpu, operation)?;
                }
                let one = gpus.operations(&comm, operation, netloom_units::Bytes(1 << 20));
                operations = operations.saturating_add(one.saturating_mul(self.times(kind)));
            }
        }
        let batches = u64::from(self.micro_batches);
        let layers = u64::from(self.model.layers / self.layout.pipeline);
        operations = operations.saturating_add((4 * layers + 8) * batches);
        gpus.afford(operations).map_err(|problem| {
            WorkloadError::parameter(
                "micro_batches",
                "fewer, or a smaller model, or fewer `channels` and `chunks`",
                problem,
            )
        })?;
        if !is_used {
            let found = format!("\"{}\"", self.method.name());
            return refuse("algorithm", "one that some collective of this step can be done by", found);
        }
        Ok(())
    }

    /// Whether any group of a kind has members in several servers: what goes on inside one takes a known time, and a single GPU has nothing to send.
    fn crosses_servers(&self, gpus: &Gpus, kind: Kind) -> bool {
        (0..self.layout.gpus()).any(|gpu| {
            let members = kind.group(&self.layout, gpu);
            members.len() > 1 && !gpus.in_one_server(&members)
        })
    }

    /// How often a kind's operations are done at most.
    fn times(&self, kind: Kind) -> u64 {
        let (batches, layers) =
            (u64::from(self.micro_batches), u64::from(self.model.layers / self.layout.pipeline));
        match kind {
            Kind::Tensor => (if self.recompute { 6 } else { 4 }) * batches * layers,
            Kind::Context => (if self.recompute { 3 } else { 2 }) * batches * layers,
            Kind::Expert => (if self.recompute { 6 } else { 4 }) * batches * layers,
            Kind::Data | Kind::ExpertData if self.zero >= 2 => 2 * batches * (layers + 2),
            Kind::Data | Kind::ExpertData => layers + 2,
            Kind::Pipeline | Kind::Embedding => 1,
        }
    }

    /// Refuses an algorithm that the group of a GPU cannot do.
    fn check_group(
        &self,
        gpus: &Gpus,
        kind: Kind,
        gpu: u32,
        operation: Operation,
    ) -> Result<(), WorkloadError> {
        let comm = self.comm(kind, gpu, operation);
        if comm.members.len() < 2 || gpus.in_one_server(&comm.members) {
            return Ok(());
        }
        let schedule = comm.schedule(gpus, operation, netloom_units::Bytes(1));
        schedule.check().or_else(|expected| {
            let found = format!(
                "{} GPUs in a group of {} parallelism, {} in each server",
                schedule.ranks,
                kind.name(),
                schedule.inner
            );
            refuse("algorithm", expected, found)
        })
    }

    /// The kinds of communication of which something enters the network.
    fn crossing(&self, gpus: &Gpus) -> Vec<Kind> {
        let enters = |kind: &Kind| {
            (0..self.layout.gpus()).any(|gpu| {
                let members = kind.group(&self.layout, gpu);
                members.len() > 1 && !gpus.in_one_server(&members)
            })
        };
        let is_there = |kind: &Kind| match kind {
            Kind::Expert | Kind::ExpertData => self.model.experts > 0,
            Kind::Embedding => self.model.tied && self.model.vocabulary > 0,
            _ => true,
        };
        Kind::ALL.into_iter().filter(|kind| is_there(kind) && enters(kind)).collect()
    }

    /// Groups, and bytes by kind of communication, in words.
    fn outline(&self, gpus: &Gpus, cost: &Cost, steps: u32) -> Vec<String> {
        let Step { model, layout, .. } = self;
        let mut lines = vec![
            format!(
                "{} on {} of {} GPUs: {} tensor × {} context × {} data × {} pipeline{}; {} of {} × {} tokens, {}",
                parameters(model.parameters()),
                layout.gpus(),
                gpus.count(),
                layout.tensor,
                layout.context,
                layout.data,
                layout.pipeline,
                if model.experts > 0 { format!(", {} expert", layout.expert) } else { String::new() },
                count(self.micro_batches, "micro-batch", "micro-batches"),
                model.micro_batch,
                model.sequence,
                count(steps, "step", "steps"),
            ),
            format!(
                "{:<12} {:>16}  {:<24} {:>16} {:>16} {:>16}",
                "kind", "groups", "the first one", "GPU, network", "GPU, scale-up", "all, network"
            ),
        ];
        for kind in Kind::ALL {
            let members = kind.group(layout, 0);
            let volume = cost.volumes[kind as usize];
            if volume.network.0 + volume.inside.0 == 0 {
                continue;
            }
            let size = narrow::<u32>(members.len());
            let groups = match kind {
                Kind::Embedding => layout.gpus() / layout.pipeline,
                _ => layout.gpus() / size,
            };
            let shown: Vec<String> = members.iter().take(4).map(u32::to_string).collect();
            let rest =
                if members.len() > 4 { format!(" .. {}", members[members.len() - 1]) } else { String::new() };
            lines.push(format!(
                "{:<12} {:>16}  {:<24} {:>16} {:>16} {:>16}",
                kind.name(),
                format!("{groups} of {size}"),
                format!("{}{rest}", shown.join(" ")),
                bytes(volume.network.1),
                bytes(volume.inside.1),
                bytes(volume.network.0),
            ));
        }
        lines.push(
            "GPU: what the GPU that sends most sends in a step; all: what enters the network in a step"
                .to_owned(),
        );
        lines.push(format!("{} operations a step, {} of memory", cost.operations, bytes(cost.memory)));
        lines
    }
}

/// Bytes with three digits.
fn bytes(bytes: u64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    while value >= 999.5 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    let digits = if unit == 0 || value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{value:.digits$} {}", units[unit])
}

fn parameters(count: u64) -> String {
    match count {
        0..1_000_000_000 => format!("{:.1} million parameters", count as f64 / 1e6),
        _ => format!("{:.1} billion parameters", count as f64 / 1e9),
    }
}

fn count(number: u32, one: &str, several: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { several })
}

impl Kind {
    /// What groups of a kind do together.
    fn operations(self, step: &Step) -> Vec<Operation> {
        let gradients = match step.zero {
            0 => vec![Operation::AllReduce],
            _ => vec![Operation::ReduceScatter, Operation::AllGather],
        };
        match self {
            Kind::Tensor if step.layout.sequence_parallel => {
                vec![Operation::AllGather, Operation::ReduceScatter]
            }
            Kind::Tensor | Kind::Embedding => vec![Operation::AllReduce],
            Kind::Context => vec![Operation::AllGather, Operation::ReduceScatter],
            Kind::Data | Kind::ExpertData => gradients,
            Kind::Expert => vec![Operation::AllToAll],
            Kind::Pipeline => Vec::new(),
        }
    }
}
