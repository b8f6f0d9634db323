//! Small networks and workloads that the tests share.
#![allow(dead_code, unreachable_pub)]

pub mod families;
pub mod interruptions;
pub mod schemes;

use std::iter::empty;
use std::ops::ControlFlow;
use std::path::Path;

use netloom_record::{FlowRecord, Records};
use netloom_routing::preset;
use netloom_sim::{RunProgress, SimConfig, Simulation};
use netloom_topology::{
    BuildContext, Crossbar, FatTree, LeafSpine, Network, NetworkBuilder, NodeId, Topology,
};
use netloom_transport::{Congestion, Transport};
use netloom_units::kind::Kind;
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{FlowList, Pattern, Permutation, Plan, PlanContext, Workload};
use proptest::sample::Index;
use serde::de::value::MapDeserializer;

pub fn build(topology: Topology) -> Network {
    topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
}

pub fn crossbar(hosts: u32) -> Network {
    build(Topology::Crossbar(Crossbar { hosts, ..Crossbar::default() }))
}

pub fn leaf_spine(leaves: u32, spines: u32, hosts_per_leaf: u32) -> Network {
    build(Topology::LeafSpine(LeafSpine { leaves, spines, hosts_per_leaf, ..LeafSpine::default() }))
}

/// Switches in a row, with two hosts at either end: 200 Gb/s and 1 us, as elsewhere here.
pub fn chain(switches: u32) -> Network {
    let mut builder = NetworkBuilder::new("chain");
    let (rate, latency) = (Rate::from_gbps(200), Time::from_us(1));
    let (hosts, to_host, between) = (builder.add_hosts(4), builder.tier("host"), builder.tier("between"));
    let nodes: Vec<NodeId> = (0..switches).map(|_| builder.add_switch(0, 0)).collect();
    for host in hosts {
        let end = if host < 2 { nodes[0] } else { nodes[nodes.len() - 1] };
        builder.link(host, end, rate, latency, to_host);
    }
    for pair in nodes.windows(2) {
        builder.link(pair[0], pair[1], rate, latency, between);
    }
    builder.build().unwrap()
}

/// An Al-Fares fat tree.
pub fn fat_tree(k: u32) -> Network {
    build(Topology::FatTree(FatTree { k: Some(k), ..FatTree::default() }))
}

pub fn plan(pattern: Pattern, network: &Network, seed: u64) -> Plan {
    Workload::new(pattern).plan(network, &PlanContext::new(seed)).unwrap()
}

pub fn permutation(bytes: u64, network: &Network, seed: u64) -> Plan {
    let pattern = Pattern::Permutation(Permutation { size: Bytes(bytes).into(), ..Permutation::default() });
    plan(pattern, network, seed)
}

/// Flows `src,dst,bytes,start`, from a file of this name.
pub fn flows(name: &str, lines: &[impl AsRef<str>]) -> Pattern {
    let file = format!("{}-{name}.csv", env!("CARGO_CRATE_NAME"));
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(file);
    let lines: Vec<&str> = lines.iter().map(AsRef::as_ref).collect();
    std::fs::write(&file, format!("src,dst,bytes,start\n{}\n", lines.join("\n"))).unwrap();
    Pattern::FlowList(FlowList { file })
}

/// A line of these for a flow between two of the hosts that were drawn: source, destination, bytes, nanoseconds.
pub fn flow_line(hosts: usize, &(src, dst, bytes, start): &(Index, Index, u64, u64)) -> String {
    let src = src.index(hosts);
    format!("{src},{},{bytes},{start}ns", (src + 1 + dst.index(hosts - 1)) % hosts)
}

/// All kinds of an axis, with their defaults, as `netloom list` has them.
pub fn every_kind<K: Kind>() -> Vec<K> {
    let defaults = || MapDeserializer::<_, serde::de::value::Error>::new(empty::<(&str, &str)>());
    K::NAMES.iter().map(|name| K::read(name, defaults()).unwrap().unwrap()).collect()
}

/// A transport that no window limits.
pub fn unlimited() -> Transport {
    Transport { congestion: Congestion::None(Default::default()), ..Transport::default() }
}

pub fn scheme(name: &str) -> SimConfig {
    SimConfig { routing: preset::find(name).unwrap().routing(), ..SimConfig::default() }
}

pub fn run(network: Network, config: SimConfig, plan: Plan) -> Records {
    Simulation::new(network, config, plan).unwrap().run(1).unwrap().records
}

/// A run, and in how many windows the engine had something to do when it was over.
pub fn run_to_its_end(simulation: Simulation) -> (Records, usize) {
    let mut windows = Vec::new();
    let observe = |progress: RunProgress| {
        windows.push(progress.time);
        ControlFlow::Continue(())
    };
    let records = simulation.run_observed(1, observe).unwrap().records;
    let end = records.totals.simulated + Time::from_us(10);
    let late = windows.iter().filter(|&&time| time > end).count();
    (records, late)
}

pub fn fct(flow: &FlowRecord) -> Time {
    flow.fct.expect("the flow is complete")
}

/// Serialisation at 200 Gb/s.
pub fn at_200g(bytes: u64) -> Time {
    Rate::from_gbps(200).serialize(Bytes(bytes))
}

/// The whole outcome as text, a record per line, for comparisons.
pub fn fingerprint(records: &Records) -> String {
    format!("{records:#?}").replace(",\n", ", ").replace("{\n", "{ ").replace("},", "},\n")
}

/// The first place where two outcomes differ; none if they are alike.
pub fn difference(a: &Records, b: &Records) -> Option<String> {
    let (a, b) = (fingerprint(a), fingerprint(b));
    let squeeze = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut pairs = a.lines().zip(b.lines());
    let differ = pairs.find(|(a, b)| a != b).map(|(a, b)| format!("{}\n{}", squeeze(a), squeeze(b)));
    differ.or_else(|| (a.len() != b.len()).then(|| "one ends early".into()))
}
