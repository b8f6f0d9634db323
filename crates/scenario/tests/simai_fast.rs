//! Steps of SimAI whose layers are alike are skipped, with the same outcome.

use std::fmt::Write;
use std::ops::ControlFlow;

use netloom_record::{Records, Skipped};
use netloom_scenario::{Node, Scenario, Source, prepare, simulate};
use proptest::prelude::*;

/// A step: its passes, layer by layer, and how the GPUs are divided.
#[derive(Clone, Debug)]
struct Step {
    gpus: u32,
    tensor: u32,
    expert: u32,
    layers: Vec<String>,
}

impl Step {
    fn text(&self) -> String {
        let Step { gpus, tensor, expert, layers } = self;
        let mut text = format!(
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: {tensor} ep: {expert} pp: 1 vpp: 1 ga: 1 \
             all_gpus: {gpus} checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0\n{}\n",
            layers.len()
        );
        layers.iter().for_each(|layer| writeln!(text, "{layer}").unwrap());
        text
    }
}

/// What comes out of a step on these servers, its table of layers and what was skipped of it.
fn run(step: &Step, scenario: &str, fast: bool, threads: usize) -> (Records, Option<String>, Skipped) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("step.txt"), step.text()).unwrap();
    let text = format!("fast = {fast}\n{scenario}").replace("FOLDER", &folder.path().display().to_string());
    let document = Node::parse(&Source::new("s.toml", &text)).unwrap();
    let scenario = Scenario::read(&document).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let ready = prepare(&scenario, &document).unwrap_or_else(|problems| panic!("{problems}\n{text}"));
    let ends = ready.ends.clone();
    let (ran, records) = simulate(&scenario, ready, threads, |_| ControlFlow::Continue(())).unwrap();
    (records, ends.and_then(|ends| ends.layers()), ran.performance.skipped.unwrap_or_default())
}

/// Servers of some GPUs with a NIC each along rails, or hosts at one switch.
fn on(gpus: u32, servers: u32, rest: &str) -> String {
    let mut text = format!(
        "topology = {{ kind = \"leaf-spine\", leaves = {gpus}, spines = 1, hosts_per_leaf = {servers} }}\n\
         workload = {{ kind = \"simai\", file = \"FOLDER/step.txt\" }}\n{rest}\n"
    );
    if gpus > 1 {
        let scale_up = "{ wiring = \"switch\", rate = \"2.88Tbps\", latency = \"50ns\" }";
        writeln!(
            text,
            "servers = {{ nics = {gpus}, gpus = {gpus}, wiring = \"rail-optimised\", nic_selection = \"round-robin\", scale_up = {scale_up} }}"
        )
        .unwrap();
    }
    text
}

/// A layer with these passes: nanoseconds, operation and bytes of each.
fn layer(name: usize, passes: [(u32, &str, u64); 3], update: u32) -> String {
    let mut text = format!("l{name}\t-1");
    for (compute, operation, bytes) in passes {
        let bytes = if operation == "NONE" { 0 } else { bytes };
        write!(text, "\t{compute}\t{operation}\t{bytes}").unwrap();
    }
    format!("{text}\t{update}")
}

fn layers() -> impl Strategy<Value = Vec<String>> {
    let operation = || {
        prop::sample::select(vec![
            "ALLGATHER",
            "REDUCESCATTER",
            "ALLREDUCE",
            "ALLTOALL_EP",
            "NONE",
            "ALLTOALL",
        ])
    };
    let of_weights = prop::sample::select(vec!["NONE", "NONE", "ALLGATHER_DP_EP", "REDUCESCATTER_DP_EP"]);
    let compute = || prop::sample::select(vec![0u32, 1, 700, 12_345]);
    let bytes = || prop::sample::select(vec![4096u64, 65_536, 196_608]);
    let passes = (
        (compute(), operation(), bytes()),
        (compute(), operation(), bytes()),
        (compute(), of_weights, bytes()),
    );
    let block = prop::collection::vec((passes, prop::sample::select(vec![0u32, 100])), 1..4);
    (block, 4..10usize, any::<bool>()).prop_map(|(block, times, has_first)| {
        let of = |(name, &((first, second, third), update)): (usize, &_)| {
            layer(name, [first, second, third], update)
        };
        let block: Vec<String> = block.iter().enumerate().map(of).collect();
        let first = has_first.then(|| layer(99, [(5, "ALLREDUCE", 8192), (0, "NONE", 0), (0, "NONE", 0)], 0));
        first.into_iter().chain(block.iter().cycle().take(times * block.len()).cloned()).collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever a step does in its layers: the outcome is that of a run which goes through all of them.
    #[test]
    fn outcomes_of_steps_are_the_same(
        (gpus, servers) in (prop::sample::select(vec![1u32, 2, 2, 4]), 2..5u32),
        layers in layers(),
        rest in prop::sample::select(vec![
            "",
            "transport = { congestion = \"dctcp\" }",
            "transport = { congestion = \"swift\" }",
            "fabric = { flow_control = \"credits\" }",
            "fabric = { flow_control = \"pfc-shared\" }",
            "measure = { until = \"900us\" }",
        ]),
        threads in 1..3usize,
    ) {
        let step = Step { gpus: gpus * servers, tensor: gpus, expert: 1, layers };
        let scenario = on(gpus, servers, rest);
        let (expected, table, _) = run(&step, &scenario, false, 1);
        let (records, of_fast, skipped) = run(&step, &scenario, true, threads);
        prop_assert!(records == expected && of_fast == table, "{:?}", skipped);
    }
}

/// What is skipped of sixty layers with these passes on four servers of two GPUs, and the outcome, which is that of a run that goes through all of them.
fn skipped_of(passes: [(u32, &str, u64); 3]) -> (Records, Skipped) {
    let step = Step { gpus: 8, tensor: 2, expert: 1, layers: vec![layer(0, passes, 100); 60] };
    let scenario = on(2, 4, "");
    let (expected, table, _) = run(&step, &scenario, false, 1);
    let (records, of_fast, skipped) = run(&step, &scenario, true, 1);
    assert!(records == expected && table.is_some() && of_fast == table, "{skipped:?}");
    (records, skipped)
}

#[test]
fn layers_that_are_alike_are_skipped() {
    let passes = [(700, "ALLREDUCE", 200_000), (900, "ALLREDUCE", 100_000), (0, "NONE", 0)];
    let (records, skipped) = skipped_of(passes);
    assert!(skipped.repetitions >= 40, "{skipped:?}");
    assert!(
        skipped.packet_hops * 10 > records.totals.packet_hops * 6,
        "{skipped:?} {}",
        records.totals.packet_hops
    );
}

/// Nothing is handled while ranks calculate before the first message: pauses in this time leave the search enough to spend on layers.
#[test]
fn layers_that_begin_with_a_calculation_are_skipped() {
    let passes = [(30_000, "ALLREDUCE", 400_000), (900, "ALLREDUCE", 50_000), (0, "NONE", 0)];
    let (_, skipped) = skipped_of(passes);
    // Of 60 layers in each direction.
    assert!(skipped.repetitions >= 90, "{skipped:?}");
}
