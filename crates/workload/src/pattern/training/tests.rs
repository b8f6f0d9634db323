use std::collections::BTreeMap;

use netloom_units::Time;

use super::*;
use crate::pattern::tests::network;
use crate::program::testing::{Event, execute};
use crate::{
    CollectiveKind, NicSelection, Pattern, PlanContext, ScaleUp, ScaleUpWiring, Servers, Workload,
    WorkloadError, find_stall,
};

fn plan_of(step: TrainingStep, gpus: u32) -> Result<Plan, WorkloadError> {
    Workload::new(Pattern::TrainingStep(step)).plan(&network(gpus, gpus), &PlanContext::new(1))
}

/// Two layers with numbers that divide well; no embedding, so that every parameter is in a layer.
fn small() -> TrainingStep {
    TrainingStep {
        layers: Some(4),
        hidden: Some(256),
        heads: Some(8),
        vocabulary: Some(0),
        sequence: Some(64),
        micro_batch: Some(2),
        algorithm: Method::Ring,
        ..TrainingStep::default()
    }
}

/// b s h in bytes, and the parameters of a layer.
const ACTIVATIONS: u64 = 2 * 64 * 256 * 2;
const LAYER: u64 = 12 * 256 * 256;

/// Bytes that each GPU sends in a step, by kind of communication: the least and the most.
fn sent(step: TrainingStep, gpus: u32) -> BTreeMap<String, (u64, u64)> {
    let mut plan = plan_of(step, gpus).unwrap();
    let groups = plan.groups.clone();
    let mut bytes: Vec<Vec<u64>> = vec![vec![0; gpus as usize]; groups.len()];
    let total = plan.total_messages.unwrap();
    let mut messages = 0;
    execute(&mut plan, 3, Time(1000), |_, _, event| {
        if let Event::Sent { src, bytes: sent, group, .. } = event {
            bytes[usize::from(group)][src as usize] += sent.0;
            messages += 1;
        }
    });
    for host in &plan.hosts {
        assert!(host.is_finished(), "{:?}", find_stall(std::iter::once(host), &[]));
    }
    assert_eq!(messages, total);
    let ends = |of: &Vec<u64>| (*of.iter().min().unwrap(), *of.iter().max().unwrap());
    groups.into_iter().zip(bytes.iter().map(ends)).filter(|(_, (_, most))| *most > 0).collect()
}

fn all(kinds: &[(&str, u64)]) -> BTreeMap<String, (u64, u64)> {
    kinds.iter().map(|&(kind, bytes)| (kind.to_owned(), (bytes, bytes))).collect()
}

/// n ranks around a ring send (n - 1)/n of the bytes.
fn ring(n: u64, bytes: u64) -> u64 {
    assert!(bytes.is_multiple_of(n));
    bytes / n * (n - 1)
}

/// Shoeybi et al., section 3: two all-reduces forward and two backward for each layer, of b s h.
#[test]
fn tensor_parallelism_adds_up_four_times_per_layer() {
    let step = TrainingStep { tensor: Some(4), data: Some(1), micro_batches: Some(3), ..small() };
    assert_eq!(sent(step.clone(), 4), all(&[("tensor", 4 * 4 * 3 * 2 * ring(4, ACTIVATIONS))]));
    // Computing again adds the forward ones.
    let again = TrainingStep { recompute: Some(true), ..step.clone() };
    assert_eq!(sent(again, 4), all(&[("tensor", 6 * 4 * 3 * 2 * ring(4, ACTIVATIONS))]));
    // With sequence parallelism as many bytes, as all-gathers and reduce-scatters (Korthikanti et al., section 4.2.2).
    let divided = TrainingStep { sequence_parallel: Some(true), ..step };
    assert_eq!(sent(divided, 4), all(&[("tensor", 4 * 4 * 3 * 2 * ring(4, ACTIVATIONS))]));
}

/// Rajbhandari et al., section 7: 2 Ψ with all-reduces and with ZeRO 1 and 2, 3 Ψ with ZeRO 3 (and one micro-batch).
#[test]
fn data_parallelism_moves_two_or_three_times_the_parameters() {
    let parameters = 4 * LAYER * 2;
    for overlap in [false, true] {
        for (zero, micro_batches, times) in
            [(0, 1, 2), (1, 1, 2), (2, 1, 2), (3, 1, 3), (0, 5, 2), (1, 5, 2), (2, 5, 6), (3, 5, 15)]
        {
            let step = TrainingStep {
                zero: Some(zero),
                micro_batches: Some(micro_batches),
                overlap: Some(overlap),
                ..small()
            };
            assert_eq!(sent(step, 8), all(&[("data", times * ring(8, parameters))]), "ZeRO {zero}");
        }
    }
    // Gradients in another format: 4 bytes instead of 2 in the first half.
    let step = TrainingStep { gradient_dtype: Some(Dtype::Fp32), ..small() };
    assert_eq!(sent(step, 8), all(&[("data", 3 * ring(8, parameters))]));
    // Tensor-parallel ranks have a part each; context-parallel ones have all of it.
    let step = TrainingStep { tensor: Some(2), context: Some(2), ..small() };
    assert_eq!(sent(step, 8)["data"].0, 2 * ring(4, parameters / 2));
}

/// Narayanan et al., SC 2021, section 3.2: b s h between each two stages, forward and backward.
#[test]
fn stages_pass_on_activations() {
    for overlap in [false, true] {
        let step =
            TrainingStep { pipeline: Some(4), micro_batches: Some(6), overlap: Some(overlap), ..small() };
        let bytes = sent(step.clone(), 4);
        // The last stage sends gradients only, as the first one sends only activations.
        assert_eq!(bytes["pipeline"], (6 * ACTIVATIONS, 2 * 6 * ACTIVATIONS));
        let divided = TrainingStep { tensor: Some(2), sequence_parallel: Some(true), ..step };
        assert_eq!(sent(divided, 8)["pipeline"], (6 * ACTIVATIONS / 2, 2 * 6 * ACTIVATIONS / 2));
    }
}

/// Each token goes to two experts and back, forward and backward; 7 of 8 experts are elsewhere.
#[test]
fn experts_get_tokens() {
    let step = TrainingStep { experts: Some(8), expert: Some(8), micro_batches: Some(3), ..small() };
    let bytes = sent(step.clone(), 16);
    assert_eq!(bytes["expert"], (4 * 4 * 3 * ring(8, 2 * ACTIVATIONS), 4 * 4 * 3 * ring(8, 2 * ACTIVATIONS)));
    // The attention and the router are everywhere, each expert twice.
    let shared = 4 * (4 * 256 * 256 + 256 * 8) * 2;
    assert_eq!(bytes["data"].1, 2 * ring(16, shared));
    assert_eq!(bytes["expert-data"].1, 2 * ring(2, 4 * 8 * 256 * 256 * 2));
    // Fewer experts per token, more per GPU.
    let step = TrainingStep { top_k: Some(1), expert: Some(4), ..step };
    assert_eq!(sent(step, 16)["expert"].1, 4 * 4 * 3 * ring(4, ACTIVATIONS));
}

/// Keys and values are 2 b s h numbers; with a quarter of the heads, a quarter.
#[test]
fn context_parallelism_passes_keys_and_values() {
    let step = TrainingStep { context: Some(4), data: Some(1), zero: Some(0), kv_heads: Some(2), ..small() };
    let bytes = sent(step, 4);
    assert_eq!(bytes["context"].1, 3 * 4 * ring(4, 2 * ACTIVATIONS / 4));
}

#[test]
fn two_stages_share_an_embedding() {
    let vocabulary = Some(1024);
    let tied = TrainingStep { pipeline: Some(2), data: Some(1), vocabulary, ..small() };
    let bytes = sent(tied.clone(), 2);
    assert_eq!(bytes["embedding"].1, 1024 * 256 * 2);
    let untied = TrainingStep { tied_embeddings: Some(false), ..tied };
    assert!(!sent(untied, 2).contains_key("embedding"));
    // At one stage it is added up once if it is tied, and twice, as there are two, if not.
    for (tied, copies) in [(true, 1), (false, 2)] {
        for overlap in [true, false] {
            let step =
                TrainingStep { vocabulary, tied_embeddings: Some(tied), overlap: Some(overlap), ..small() };
            let parameters = 4 * LAYER + copies * 1024 * 256;
            assert_eq!(sent(step, 4)["data"].1, 2 * ring(4, parameters * 2));
        }
    }
}

/// How long a step takes in a network without latency.
fn length(step: TrainingStep, gpus: u32) -> Time {
    let mut plan = plan_of(step, gpus).unwrap();
    execute(&mut plan, 1, Time::ZERO, |_, _, _| {})
}

/// m micro-batches in p stages take (m + p - 1) of the time of one (Narayanan et al., SC 2021, section 2.2).
#[test]
fn a_pipeline_has_its_bubble() {
    let times = Some(vec![LayerTime { forward: Time(100), backward: Time(300) }]);
    for (pipeline, micro_batches) in [(1, 1), (2, 2), (4, 4), (4, 8), (4, 1), (2, 7)] {
        let step = TrainingStep {
            pipeline: Some(pipeline),
            micro_batches: Some(micro_batches),
            times: times.clone(),
            ..small()
        };
        let of_stage = u64::from(4 / pipeline) * 400;
        let expected = u64::from(micro_batches + pipeline - 1) * of_stage;
        assert_eq!(length(step.clone(), pipeline.max(2)), Time(expected), "{pipeline} {micro_batches}");
        let twice = TrainingStep { steps: Some(2), ..step };
        assert!(length(twice, pipeline.max(2)) >= Time(2 * u64::from(micro_batches) * of_stage));
    }
}

#[test]
fn computation_takes_its_operations() {
    // Narayanan et al., SC 2021, appendix: 24 b s h² (1 + s / 6h) operations forward per layer, three times as many in all.
    let (b, s, h) = (2.0, 64.0, 256.0);
    let layer: f64 = 24.0 * b * s * h * h * (1.0 + s / (6.0 * h));
    let step = TrainingStep { peak_tflops: Some(1.0), efficiency: Some(0.25), ..small() };
    let expected = 4.0 * 3.0 * layer / 0.25e12 * 1e12;
    let off = |step: TrainingStep, expected: f64| (length(step, 2).0 as f64 / expected - 1.0).abs();
    assert!(off(step.clone(), expected) < 1e-6);
    assert!(off(TrainingStep { recompute: Some(true), ..step.clone() }, expected * 4.0 / 3.0) < 1e-6);
    assert!(off(TrainingStep { tensor: Some(2), ..step.clone() }, expected / 2.0) < 1e-6);
    // The output layer: 6 b s h V.
    let output = 6.0 * b * s * h * 1000.0 / 0.25e12 * 1e12;
    assert!(off(TrainingStep { vocabulary: Some(1000), ..step.clone() }, expected + output) < 1e-6);
    // A gate adds half of the feed-forward part, two experts per token double it.
    let more = 4.0 * 3.0 * 8.0 * b * s * h * h / 0.25e12 * 1e12;
    assert!(off(TrainingStep { gated: Some(true), ..step.clone() }, expected + more) < 1e-6);
    let experts = TrainingStep { experts: Some(4), ..step };
    assert!(off(experts, expected + 2.0 * more) < 1e-6);
}

#[test]
fn presets_are_of_the_published_sizes() {
    let model = |preset, gpus| {
        let step = TrainingStep { preset: Some(preset), ..TrainingStep::default() };
        step.completed().step(gpus).unwrap()
    };
    for (preset, gpus, billions, tokens) in [
        (TrainingPreset::Gpt13b, 128, 12.8, 1 << 20),
        (TrainingPreset::Dense70b, 1024, 69.0, 4 << 20),
        (TrainingPreset::Mixtral8x7b, 64, 46.7, 1 << 20),
    ] {
        let Step { model, layout, micro_batches, .. } = model(preset, gpus);
        let off = (model.parameters() as f64 / (billions * 1e9) - 1.0).abs();
        assert!(off < 0.01, "{preset:?}: {}", model.parameters());
        assert_eq!(layout.gpus(), gpus);
        let of_step = u64::from(layout.data) * u64::from(micro_batches) * model.micro_batch * model.sequence;
        assert_eq!(of_step, tokens, "{preset:?}");
    }
}

/// GPUs are numbered as Megatron Core does: tensor first, then context and data, the pipeline last.
#[test]
fn groups_are_those_of_megatron() {
    let layout = Layout { tensor: 2, context: 2, data: 4, pipeline: 2, expert: 4, sequence_parallel: true };
    assert_eq!(layout.gpus(), 32);
    let of = |kind: Kind, gpu| kind.group(&layout, gpu).to_vec();
    assert_eq!(of(Kind::Tensor, 5), [4, 5]);
    assert_eq!(of(Kind::Context, 5), [5, 7]);
    assert_eq!(of(Kind::Data, 5), [1, 3, 5, 7, 9, 11, 13, 15]);
    assert_eq!(of(Kind::Expert, 5), [1, 3, 5, 7]);
    assert_eq!(of(Kind::ExpertData, 5), [5, 13]);
    assert_eq!(of(Kind::Pipeline, 5), [5, 21]);
    assert_eq!(of(Kind::Embedding, 21), [5, 21]);
    for kind in Kind::ALL {
        for gpu in 0..32 {
            let members = of(kind, gpu);
            assert!(members.contains(&gpu) && members.is_sorted(), "{kind:?}: {gpu} in {members:?}");
            assert!(members.iter().all(|&other| of(kind, other) == members));
        }
    }
}

/// Four servers of four GPUs.
fn served(step: TrainingStep) -> Plan {
    let network = network(16, 4);
    let scale_up = Some(ScaleUp { wiring: ScaleUpWiring::Ideal, ..ScaleUp::default() });
    let servers =
        Servers { nics: 4, nic_selection: NicSelection::Gpu, gpus: Some(4), scale_up, ..Servers::default() };
    let rails = Some(std::sync::Arc::new(servers.build(&network, 1).unwrap()));
    let context = PlanContext { rails, ..PlanContext::new(1) };
    Workload::new(Pattern::TrainingStep(step)).plan(&network, &context).unwrap()
}

#[test]
fn what_stays_in_a_server_does_not_enter_the_network() {
    let step = TrainingStep { tensor: Some(4), pipeline: Some(2), micro_batches: Some(3), ..small() };
    let mut plan = served(step);
    let mut bytes: BTreeMap<u16, u64> = BTreeMap::new();
    execute(&mut plan, 3, Time(1000), |_, _, event| {
        if let Event::Sent { bytes: sent, group, .. } = event {
            *bytes.entry(group).or_default() += sent.0;
        }
    });
    assert!(plan.hosts.iter().all(|host| host.is_finished()));
    // 16 GPUs in two stages of two data-parallel ranks; two layers each.
    assert_eq!(plan.groups, ["data", "pipeline"]);
    assert_eq!(bytes, [(0, 16 * 2 * ring(2, 2 * LAYER / 4 * 2)), (1, 16 * 3 * ACTIVATIONS)].into());
    let words = |line: &String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let outline: Vec<String> = plan.outline.iter().map(words).collect();
    for line in [
        "tensor 4 of 4 0 1 2 3 0 B 2.36 MB 0 B",
        "data 8 of 2 0 4 786 kB 0 B 12.6 MB",
        "pipeline 8 of 2 0 8 197 kB 0 B 3.15 MB",
    ] {
        assert!(outline.iter().any(|it| it == line), "{line}\n{outline:#?}");
    }
    assert!(outline[0].starts_with("3.1 million parameters on 16 of 16 GPUs: 4 tensor × 1 context × 2 data × 2 pipeline; 3 micro-batches of 2 × 64"));
}

/// Records know the collectives: those inside a server as one part, others with a part for each GPU.
#[test]
fn collectives_are_known_by_group() {
    let plan = served(TrainingStep { tensor: Some(4), pipeline: Some(2), micro_batches: Some(3), ..small() });
    let [job] = &plan.jobs[..] else { panic!("{:?}", plan.jobs) };
    let of = |name: &str| job.collectives().iter().filter(|it| *it.name == *name).collect::<Vec<_>>();
    // Two layers of each stage, four times for each of three micro-batches, in four servers.
    let tensor = of("tensor");
    assert_eq!(tensor.len(), 4 * 2 * 4 * 3);
    assert!(tensor.iter().all(|it| {
        (it.kind, it.ranks, it.parts) == (CollectiveKind::AllReduce, 4, 1) && it.bytes.0 == ACTIVATIONS
    }));
    // A reduce-scatter and an all-gather for each layer, in eight groups of two.
    let data = of("data");
    assert_eq!(data.len(), 8 * 2 * 2);
    assert!(data.iter().all(|it| (it.ranks, it.parts) == (2, 2) && it.bytes.0 == LAYER / 4 * 2));
    assert_eq!(data.iter().filter(|it| it.kind == CollectiveKind::AllGather).count(), 8 * 2);
    let groups: std::collections::BTreeSet<_> = data.iter().map(|it| it.group.to_string()).collect();
    assert_eq!(groups.len(), 8);
    assert!(groups.contains("data 0") && groups.contains("data 8"), "{groups:?}");
}

/// A layout may leave out GPUs, also in the middle of a server.
#[test]
fn gpus_that_are_left_over_do_nothing() {
    let mut plan = served(TrainingStep { data: Some(6), ..small() });
    let mut senders = std::collections::BTreeSet::new();
    execute(&mut plan, 3, Time(1000), |_, _, event| {
        if let Event::Sent { src, .. } = event {
            senders.insert(src);
        }
    });
    assert!(plan.hosts.iter().all(|host| host.is_finished()));
    assert_eq!(senders.into_iter().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let moe = || TrainingStep { experts: Some(8), ..small() };
    for (wrong, expected) in [
        (TrainingStep { tensor: Some(16), ..small() }, "tensor: expected 1 to 8, found 16"),
        (
            TrainingStep { tensor: Some(8), context: Some(2), ..small() },
            "tensor: expected at most the 8 GPUs",
        ),
        (TrainingStep { tensor: Some(3), ..small() }, "tensor: expected a divisor of `heads`, 8, found 3"),
        (TrainingStep { pipeline: Some(3), ..small() }, "pipeline: expected a divisor of `layers`, 4"),
        (TrainingStep { context: Some(3), ..small() }, "context: expected a divisor of `sequence`, 64"),
        (TrainingStep { heads: Some(7), ..small() }, "heads: expected a divisor of `hidden`, 256"),
        (TrainingStep { kv_heads: Some(3), ..small() }, "kv_heads: expected a divisor of `heads`, 8"),
        (TrainingStep { data: Some(9), ..small() }, "data: expected 1 to 8"),
        (TrainingStep { zero: Some(4), ..small() }, "zero: expected 0 to 3, found 4"),
        (
            TrainingStep { zero: Some(2), pipeline: Some(2), ..small() },
            "zero: expected 0 or 1 with several stages",
        ),
        (TrainingStep { expert: Some(2), ..small() }, "expert: expected `experts` beside it"),
        (TrainingStep { top_k: Some(2), ..small() }, "top_k: expected `experts` beside it"),
        (TrainingStep { expert: Some(3), ..moe() }, "expert: expected a divisor of `experts`, 8, and of"),
        (TrainingStep { tensor: Some(2), ..moe() }, "sequence_parallel: expected true with `experts`"),
        (
            TrainingStep { sequence_parallel: Some(true), ..small() },
            "sequence_parallel: expected `tensor` above 1",
        ),
        (
            TrainingStep { efficiency: Some(1.5), ..small() },
            "efficiency: expected a number above 0, at most 1",
        ),
        (TrainingStep { peak_tflops: Some(f64::NAN), ..small() }, "peak_tflops: expected a number above 0"),
        (
            TrainingStep { times: Some(vec![]), ..small() },
            "times: expected one entry, or one for each of the 4",
        ),
        (
            TrainingStep {
                times: Some(vec![LayerTime { forward: Time(1), backward: Time(1) }]),
                efficiency: Some(0.5),
                ..small()
            },
            "efficiency: expected it without `times`",
        ),
        (TrainingStep { steps: Some(0), ..small() }, "steps: expected at least 1"),
        (TrainingStep { channels: Some(0), ..small() }, "channels: expected 1 to 64"),
        (
            TrainingStep {
                tensor: Some(4),
                micro_batches: Some(1 << 16),
                layers: Some(4096),
                chunks: Some(64),
                ..small()
            },
            "micro_batches: expected fewer, or a smaller model",
        ),
        (TrainingStep { algorithm: Method::Hierarchical, ..small() }, "algorithm: expected several servers"),
        (
            TrainingStep { algorithm: Method::Binomial, ..small() },
            "algorithm: expected one that some collective",
        ),
        // Exchanges among experts, of which there are none.
        (
            TrainingStep { algorithm: Method::Pairwise, ..small() },
            "algorithm: expected one that some collective",
        ),
    ] {
        let error = plan_of(wrong, 8).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let error = plan_of(TrainingStep { tensor: Some(4), ..small() }, 6).unwrap_err().to_string();
    assert!(error.starts_with("data: expected a number of data-parallel ranks: 6 GPUs"), "{error}");
}

#[test]
fn any_algorithm_any_layout_ends() {
    for method in
        [Method::Auto, Method::Ring, Method::Direct, Method::HalvingDoubling, Method::DoubleBinaryTree]
    {
        for (tensor, pipeline, context, channels, chunks) in
            [(2, 2, 2, 1, 1), (1, 4, 1, 2, 3), (4, 1, 1, 1, 1), (2, 1, 4, 3, 1)]
        {
            let step = TrainingStep {
                tensor: Some(tensor),
                pipeline: Some(pipeline),
                context: Some(context),
                channels: Some(channels),
                chunks: Some(chunks),
                algorithm: method,
                zero: Some(u8::from(pipeline == 1) * 3),
                micro_batches: Some(5),
                steps: Some(2),
                ..small()
            };
            sent(step, 16);
        }
    }
}

#[test]
fn bytes_in_the_outline_are_those_that_are_sent() {
    let step = TrainingStep { tensor: Some(2), pipeline: Some(2), ..small() };
    let plan = plan_of(step.clone(), 8).unwrap();
    let bytes = sent(step, 8);
    for (kind, (_, most)) in bytes {
        let line = plan.outline.iter().find(|line| line.starts_with(&format!("{kind} "))).unwrap();
        assert!(line.contains(&super::bytes(most)), "{most}: {line}");
    }
}
