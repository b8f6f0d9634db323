//! The packet-hop benchmark: a permutation of `--size` per host on the k = 16 fat tree (1024 hosts, 200 Gb/s, 1 us, 4 KiB of
//! payload, an ACK per packet).
//!
//! Without `--once`, every scheme runs on one thread, on two, and under the textbook global heap, `--rounds` times
//! in turn, and the best of each is shown: ratios within one run say more than seconds on a shared machine.
//!
//! With `--once`, one scheme runs once and nothing else, for `valgrind --tool=callgrind`.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use clap::Parser;
use mimalloc::MiMalloc;
use netloom_fabric::flow_control::{credits::Credits, lossy::Lossy, pfc::Pfc};
use netloom_fabric::{Fabric, FlowControl};
use netloom_record::{Status, Summary, SummaryOptions, Tally, peak_memory};
use netloom_routing::preset;
use netloom_sim::{SimConfig, Simulation};
use netloom_topology::{BuildContext, FatTree, Network, Topology};
use netloom_units::Bytes;
use netloom_workload::{Pattern, Permutation, PlanContext, Workload};

/// As the command has.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

#[derive(Parser)]
struct Options {
    /// Routing presets.
    #[arg(long, value_delimiter = ',', default_value = "ecmp,spray,flowcut-nic")]
    schemes: Vec<String>,
    /// Bytes that every host sends.
    #[arg(long, default_value = "512KiB")]
    size: Bytes,
    /// Radix of the fat tree.
    #[arg(long, default_value_t = 16)]
    k: u32,
    /// Rounds; the best of each counts.
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// `lossy`, `pfc` or `credits`; the lossless ones with input buffers of 1 MB per port.
    #[arg(long, default_value = "lossy")]
    flow_control: String,
    /// Run one scheme once, on this many threads, and print its packet-hops, its seconds and those of the set-up, and the most memory.
    #[arg(long)]
    once: Option<usize>,
}

/// How a scheme is executed.
#[derive(Clone, Copy)]
enum Executor {
    Windows(usize),
    GlobalHeap,
}

fn main() {
    let options = Options::parse();
    let begun = Instant::now();
    let tree = Topology::FatTree(FatTree { k: Some(options.k), ..FatTree::default() });
    let network = tree.build(&BuildContext { seed: 1, base_dir: Path::new("") }).expect("the tree exists");

    let flow_control = flow_control(&options.flow_control);
    let run = |scheme: &str, executor| run(&network, scheme, options.size, &flow_control, executor);
    if let Some(threads) = options.once {
        let (hops, seconds) = run(&options.schemes[0], Executor::Windows(threads));
        let set_up = begun.elapsed().as_secs_f64() - seconds;
        let memory = peak_memory().unwrap_or(0) / (1 << 20);
        println!("{hops} packet-hops in {seconds:.3} s, set up in {set_up:.3} s, {memory} MiB");
        return;
    }
    println!("million packet-hops per second, best of {} rounds", options.rounds);
    println!(
        "{:<14}{:>10}{:>10}{:>13}{:>12}{:>14}",
        "scheme", "1 thread", "2 threads", "global heap", "2 / 1", "1 / heap"
    );
    for scheme in &options.schemes {
        let executors = [Executor::Windows(1), Executor::Windows(2), Executor::GlobalHeap];
        let mut best = [0f64; 3];
        for _ in 0..options.rounds {
            for (best, executor) in best.iter_mut().zip(executors) {
                let (hops, seconds) = run(scheme, executor);
                *best = best.max(hops as f64 / seconds / 1e6);
            }
        }
        let [one, two, heap] = best;
        println!("{scheme:<14}{one:>10.2}{two:>10.2}{heap:>13.2}{:>12.2}{:>14.2}", two / one, one / heap);
    }
}

fn flow_control(kind: &str) -> FlowControl {
    let buffer = Bytes(1_000_000);
    match kind {
        "lossy" => FlowControl::Lossy(Lossy {}),
        "pfc" => FlowControl::Pfc(Pfc { buffer, ..Pfc::default() }),
        "credits" => FlowControl::Credits(Credits { buffer, ..Credits::default() }),
        _ => panic!("no flow control is called {kind}"),
    }
}

/// Packet-hops and seconds of one run, records and summary included.
fn run(
    network: &Network,
    scheme: &str,
    size: Bytes,
    flow_control: &FlowControl,
    executor: Executor,
) -> (u64, f64) {
    let routing = preset::find(scheme).unwrap_or_else(|| panic!("no preset is called {scheme}")).routing();
    let pattern = Pattern::Permutation(Permutation { size: size.into(), ..Permutation::default() });
    let plan = Workload::new(pattern).plan(network, &PlanContext::new(1)).expect("the permutation exists");
    let fabric = Fabric { flow_control: flow_control.clone(), ..Fabric::default() };
    let config = SimConfig { routing, fabric, ..SimConfig::default() };
    let simulation = Simulation::new(network.clone(), config, plan).expect("the configuration is valid");
    let options = SummaryOptions::default();
    let start = Instant::now();
    let (finished, summary) = match executor {
        Executor::Windows(threads) => {
            // As the command does: records go by and are not kept.
            let mut tally = Tally::new(&options, &[]);
            let finished = simulation.run_streamed(threads, &mut |_| ControlFlow::Continue(()), &mut tally);
            let finished = finished.expect("packets are conserved");
            let summary = Summary::of(tally, &finished.records, Status::Complete);
            (finished, summary)
        }
        Executor::GlobalHeap => {
            let finished = simulation.run_reference().expect("packets are conserved");
            let summary = Summary::new(&finished.records, &options, Status::Complete);
            (finished, summary)
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    assert_eq!(summary.expect("percentiles are kept").flows.unfinished, 0);
    (finished.records.totals.packet_hops, seconds)
}
