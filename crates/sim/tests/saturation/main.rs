//! What layers carry in simulations, held against the linear program over the same layers and traffic, and against ideal sharing by flows that take a
//! layer each: of flows that never end, and of messages that come whatever the network does.

#[path = "../common/mod.rs"]
mod common;
mod endless;
mod ideal;
mod open_loop;
mod ways;

use common::*;
use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{Ecn, Queue};
use netloom_routing::granularity::path_list::PathList;
use netloom_routing::selector::layer::First;
use netloom_routing::{Granularity, Selector};
use netloom_sim::SimConfig;
use netloom_topology::{Dragonfly, HyperX, Network, SlimFly, Topology, Xpander};
use netloom_transport::{Congestion, Reliability, preset};
use netloom_units::{Bytes, Rate};

fn mean(rates: &[f64]) -> f64 {
    rates.iter().sum::<f64>() / rates.len() as f64
}

fn least(rates: &[f64]) -> f64 {
    rates.iter().copied().fold(f64::INFINITY, f64::min)
}

fn slim_fly(hosts_per_switch: u32) -> Network {
    let (q, hosts_per_switch, rate) = (Some(5), Some(hosts_per_switch), Rate::from_gbps(10));
    build(Topology::SlimFly(SlimFly { q, hosts_per_switch, rate, ..SlimFly::default() }))
}

/// Those of the surveys.
fn networks() -> [Network; 5] {
    let rate = Rate::from_gbps(10);
    let hosts = |hosts| Some(hosts);
    [
        slim_fly(4),
        slim_fly(6),
        build(Topology::Xpander(Xpander {
            degree: 7,
            lift: Some(6),
            hosts_per_switch: hosts(4),
            rate,
            ..Default::default()
        })),
        build(Topology::HyperX(HyperX {
            dimensions: 3,
            switches_per_dimension: vec![4; 3],
            parallel_links: vec![1; 3],
            hosts_per_switch: hosts(4),
            rate,
            ..Default::default()
        })),
        build(Topology::Dragonfly(Dragonfly {
            hosts_per_switch: hosts(3),
            switches_per_group: Some(4),
            global_links_per_switch: Some(2),
            rate,
            ..Default::default()
        })),
    ]
}

/// A preset's run over nine layers, which packets of one flow change as `change` says.
fn setting(transport: &str, seed: u64, change: impl Fn(&mut SimConfig)) -> SimConfig {
    let mut config = SimConfig { seed, ..scheme("fatpaths") };
    config.transport = preset::find(transport).unwrap().transport();
    match config.transport.pulls() {
        true => config.fabric.queue = Queue::Trimming(Trimming::default()),
        false => config.fabric.options.buffer = Some(Bytes(150_000)),
    }
    if config.transport.options.subflows > 1 {
        // A subflow on each of eight layers.
        config.routing.granularity = Granularity::Flow(Default::default());
        drawn_at_first(&mut config);
    }
    change(&mut config);
    config
}

/// A purified flow leaves its layer after this many trims in a row.
fn leaves_after(trims: u32) -> impl Fn(&mut SimConfig) {
    move |config| {
        let Reliability::Trimmed(trimmed) = &mut config.transport.reliability else { panic!("purified") };
        (trimmed.reroute, trimmed.reroute_after) =
            (trims < u32::MAX, if trims < u32::MAX { trims } else { 1 });
    }
}

/// Queues of this many packets.
fn queues_of(packets: u64) -> impl Fn(&mut SimConfig) {
    move |config| config.fabric.options.buffer = Some(Bytes(9000 * packets))
}

/// Every packet goes by a layer of its own.
fn layer_per_packet(config: &mut SimConfig) {
    config.routing.granularity = Granularity::Packet(Default::default());
}

/// Every packet goes by a layer of its own, one whose last packet came unmarked if there is one (REPS).
fn recycled(config: &mut SimConfig) {
    config.routing.granularity = Granularity::Reps(Default::default());
    config.fabric.options.ecn =
        Some(Ecn { kmin: Bytes(27_000), kmax: Bytes(27_000), pmax: 1.0, mark: Default::default() });
}

/// Flows leave a layer after a round trip in which more than 5% of the packets were marked (FlowBender).
fn bent(config: &mut SimConfig) {
    recycled(config);
    config.routing.granularity = Granularity::FlowBender(Default::default());
}

/// Every packet goes by a layer of its own, one by which a packet has arrived whole if there is one (REPS without marks).
fn recycled_whole(config: &mut SimConfig) {
    config.routing.granularity = Granularity::Reps(Default::default());
}

/// Receivers ask for what arrives whole.
fn adaptive(config: &mut SimConfig) {
    let Congestion::Pulls(pulls) = &mut config.transport.congestion else { panic!("pulls") };
    pulls.adaptive = Some(Default::default());
}

/// Both.
fn recycled_and_adaptive(config: &mut SimConfig) {
    recycled_whole(config);
    adaptive(config);
}

/// Flows draw their first layer, too.
fn drawn_at_first(config: &mut SimConfig) {
    let Selector::Layer(layer) = &mut config.routing.selector else { panic!("layers") };
    layer.first = First::Random;
}

/// Every packet goes by a layer of its own, but for those that trim more than 1.2 times the mean.
fn listed(config: &mut SimConfig) {
    config.routing.granularity = Granularity::PathList(PathList { paths: 9, penalty: 1.2 });
}
