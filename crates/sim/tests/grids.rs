//! Tori and meshes under load: what theory gives, and datelines at work.

mod common;

use common::*;
use netloom_fabric::FlowControl;
use netloom_fabric::flow_control::{credits, pfc};
use netloom_sim::{ChannelEnds, Cut, Fault, Measure, SimConfig, Simulation};
use netloom_topology::{Network, Topology, Torus};
use netloom_units::{Bytes, Time};
use netloom_workload::{AllToAll, Message, Pattern, Plan};

fn torus(sizes: &[u32], twisted: bool) -> Network {
    let (dimensions, switches_per_dimension) = (sizes.len() as u32, sizes.to_vec());
    build(Topology::Torus(Torus { dimensions, switches_per_dimension, twisted, ..Torus::default() }))
}

fn lossless(name: &str, flow_control: FlowControl) -> SimConfig {
    let mut config = SimConfig { transport: unlimited(), ..scheme(name) };
    config.fabric.flow_control = flow_control;
    config
}

fn credits(vcs: Option<u8>) -> FlowControl {
    FlowControl::Credits(credits::Credits { buffer: Bytes(20_000), vcs, ..Default::default() })
}

fn pfc(vcs: Option<u8>) -> FlowControl {
    FlowControl::Pfc(pfc::Pfc { vcs, ..pfc::Pfc::default() })
}

fn refused(network: Network, config: SimConfig) -> String {
    let plan = Plan::of_messages(network.hosts(), [(0, Message::new(1, Bytes(1), Time(0)))]);
    Simulation::new(network, config, plan).map(drop).unwrap_err().to_string()
}

#[test]
fn tornado_traffic_gets_a_third_of_the_links_of_a_ring_of_eight() {
    // Every link one way round carries ⌈k/2⌉ - 1 = 3 flows, and the other way none (Dally and Towles, section 3.2).
    let network = torus(&[8], false);
    let mut config = scheme("dimension-order");
    let (from, until) = (Time::from_us(200), Time::from_us(1200));
    config.measure = Measure { warm_up: from, until: Some(until), ..Measure::default() };
    let flow = |src| (src, Message::new((src + 3) % 8, Bytes(1 << 30), Time(0)));
    let records = run(network, config.clone(), Plan::of_messages(8, (0..8).map(flow)));
    let wire = config.transport.packet_size().0 as f64 / config.transport.options.mtu.0 as f64;
    let link = 200e9 * (until - from).as_secs_f64() / 8.0;
    for flow in &records.flows {
        let share = flow.delivered_after_warm_up as f64 * wire / link;
        assert!((share - 1.0 / 3.0).abs() < 0.02, "{share}");
    }
}

#[test]
fn two_virtual_channels_free_dimension_order_of_deadlocks() {
    for network in [torus(&[5, 4], false), torus(&[3, 3, 6], true)] {
        for flow_control in [credits, pfc] {
            let error = refused(network.clone(), lossless("dimension-order", flow_control(Some(1))));
            assert!(error.contains("expected 2 virtual channels"), "{error}");
            let all = AllToAll { size: Bytes(30_000).into(), ..AllToAll::default() };
            let plan = plan(Pattern::AllToAll(all), &network, 1);
            let config = lossless("dimension-order", flow_control(Some(2)));
            let records = run(network.clone(), config, plan.clone());
            assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
            let alone = run(network.clone(), lossless("dimension-order", flow_control(None)), plan);
            assert_eq!(difference(&records, &alone), None, "two are what is taken where nothing is said");
        }
        // Others need a virtual channel for each hop.
        let error = refused(network.clone(), lossless("adaptive", credits(Some(2))));
        let needed = network.metrics().diameter;
        assert!(error.contains(&format!("expected {needed} virtual channels")), "{error}");
    }
}

#[test]
fn around_cut_links_dimension_order_counts_hops() {
    let network = torus(&[4, 4], false);
    let channels = ChannelEnds { from: "s0".into(), to: "s1".into(), parallel: 0 };
    let cut = Cut {
        channels: vec![channels],
        from: Time::from_us(20),
        until: Some(Time::from_us(200)),
        reroute_after: Some(Time::from_us(5)),
        ..Cut::default()
    };
    let mut config = SimConfig { faults: vec![Fault::Cut(cut)], ..scheme("dimension-order") };
    config.fabric.flow_control = credits(Some(2));
    let error = refused(network.clone(), config.clone());
    assert!(error.contains("virtual channels"), "{error}");
    config.fabric.flow_control = credits(None);
    let all = AllToAll { size: Bytes(50_000).into(), ..AllToAll::default() };
    let records = run(network.clone(), config, plan(Pattern::AllToAll(all), &network, 1));
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
}
