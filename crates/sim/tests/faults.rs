//! Links that fail while a run goes on.

mod common;

use common::*;
use netloom_fabric::{FlowControl, flow_control};
use netloom_record::Records;
use netloom_sim::{ChannelEnds, Cut, Degrade, Fault, Loss, Measure, SimConfig, Simulation};
use netloom_topology::{BuildContext, Network, Ns3, Topology};
use netloom_transport::{Reliability, Transport};
use netloom_units::{Bytes, Time};
use netloom_workload::{Incast, Pattern, Plan};

fn us(us: u64) -> Time {
    Time::from_us(us)
}

fn channel(from: &str, to: &str) -> ChannelEnds {
    ChannelEnds { from: from.into(), to: to.into(), parallel: 0 }
}

/// Timeouts of the order of these runs.
fn transport() -> Transport {
    let mut transport = Transport::default();
    transport.options.rto_initial = us(100);
    transport.options.rto_min = us(50);
    transport
}

fn with(fault: Fault) -> SimConfig {
    SimConfig { faults: vec![fault], transport: transport(), ..scheme("ecmp") }
}

fn refusal(network: &Network, config: SimConfig) -> String {
    let plan = permutation(1000, network, 3);
    Simulation::new(network.clone(), config, plan).unwrap_err().to_string()
}

/// The same records on one thread, on three, and under the textbook executor.
fn everywhere(network: &Network, config: &SimConfig, plan: &Plan) -> Records {
    let simulation = || Simulation::new(network.clone(), config.clone(), plan.clone()).unwrap();
    let one = simulation().run(1).unwrap().records;
    let three = simulation().run(3).unwrap().records;
    assert_eq!(difference(&one, &three), None);
    if config.measure.until.is_none() {
        assert_eq!(difference(&one, &simulation().run_reference().unwrap().records), None);
    }
    one
}

#[test]
fn flows_from_and_to_a_host_stall_while_its_link_is_cut() {
    // 1 MB take 43 us at 200 Gb/s; the link is gone from 20 us to 300 us.
    let network = crossbar(4);
    let cut =
        Cut { channels: vec![channel("h1", "s0")], from: us(20), until: Some(us(300)), ..Cut::default() };
    let config = with(Fault::Cut(cut));
    let plan = permutation(1_000_000, &network, 3);
    let records = everywhere(&network, &config, &plan);
    let spared = run(network.clone(), with_nothing(), plan);
    for (flow, alone) in records.flows.iter().zip(&spared.flows) {
        if flow.src == 1 || flow.dst == 1 {
            assert!(flow.fct > Some(us(300)) && flow.timeouts > 0, "{flow:?}");
        } else {
            // Fewer ACKs than otherwise share its links.
            assert!(flow.fct <= alone.fct && flow.timeouts == 0, "{flow:?}");
        }
    }
    let lost: u64 = records.channels.iter().map(|channel| channel.lost).sum();
    assert_eq!(lost, records.totals.data.lost + records.totals.control.lost);
    assert!(records.totals.data.lost > 0 && records.totals.control.lost > 0);
    assert_eq!(records.totals.data.dropped, records.totals.data.lost);
    let near = |name: &str| name == "h1";
    for channel in &records.channels {
        assert_eq!(channel.lost > 0, near(&channel.from) || near(&channel.to), "{channel:?}");
    }
}

/// Four hosts at one switch; packets are lost on the link of node 1 with a probability.
fn ns3_network(error_rate: &str) -> Network {
    let folder = tempfile::tempdir().unwrap();
    let link = |host: u32, rate: &str| format!("{host} 4 200Gbps 1us {rate}\n");
    let links = [link(0, "0"), link(1, error_rate), link(2, "0"), link(3, "0")].concat();
    std::fs::write(folder.path().join("net.txt"), format!("5 1 4\n4\n{links}")).unwrap();
    let topology = Topology::Ns3(Ns3::new("net.txt"));
    topology.build(&BuildContext { seed: 1, base_dir: folder.path() }).unwrap()
}

#[test]
fn an_error_rate_of_a_link_is_the_fault_that_says_the_same() {
    let (network, sound) = (ns3_network("0.02"), ns3_network("0"));
    let plan = permutation(1_000_000, &network, 3);
    let channels = vec![channel("1", "4"), channel("4", "1")];
    let loss = with(Fault::Loss(Loss { channels, probability: 0.02, ..Loss::default() }));
    let records = everywhere(&network, &with_nothing(), &plan);
    assert_eq!(difference(&records, &run(sound.clone(), loss, plan.clone())), None);
    for channel in &records.channels {
        assert_eq!(channel.lost > 0, &*channel.from == "1" || &*channel.to == "1", "{channel:?}");
    }
    assert!(run(sound, with_nothing(), plan).channels.iter().all(|channel| channel.lost == 0));

    let without_acks = Transport { reliability: Reliability::None(Default::default()), ..unlimited() };
    let error = refusal(&network, SimConfig { transport: without_acks, ..with_nothing() });
    assert!(error.contains("a reliability with ACKs, as packets can get lost"), "{error}");
}

fn with_nothing() -> SimConfig {
    SimConfig { transport: transport(), ..scheme("ecmp") }
}

#[test]
fn a_switch_that_goes_takes_its_links_and_comes_back() {
    let network = leaf_spine(2, 2, 4);
    // The leaves are s0 and s1, the spines s2 and s3.
    let cut = Cut { switches: vec!["s2".into()], from: us(10), until: Some(us(200)), ..Cut::default() };
    let mut config = with(Fault::Cut(cut));
    config.routing = scheme("spray").routing;
    let records = everywhere(&network, &config, &permutation(1_000_000, &network, 3));
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    for channel in &records.channels {
        if &*channel.from == "s2" || &*channel.to == "s2" {
            // Before and after.
            assert!(channel.packets > 0);
        } else {
            assert_eq!(channel.lost, 0, "{channel:?}");
        }
    }
    assert!(records.totals.data.lost > 0);
}

#[test]
fn a_switch_without_hosts_may_be_missing_from_the_start() {
    let network = leaf_spine(2, 2, 4);
    let config = with(Fault::Cut(Cut { switches: vec!["s2".into()], ..Cut::default() }));
    let records = everywhere(&network, &config, &permutation(100_000, &network, 3));
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    let here = |name: &str| name == "s2";
    assert!(records.channels.iter().filter(|c| here(&c.from) || here(&c.to)).all(|c| c.packets == 0));
    assert_eq!(records.totals.data.dropped, 0);
}

#[test]
fn random_losses_are_repaired_and_counted() {
    let network = leaf_spine(2, 2, 4);
    let loss = Loss {
        tier: Some("leaf-spine".into()),
        link_fraction: Some(1.0),
        probability: 0.02,
        ..Loss::default()
    };
    let records = everywhere(&network, &with(Fault::Loss(loss)), &permutation(1_000_000, &network, 3));
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    let (lost, sent) = (records.totals.data.lost as f64, records.totals.data.sent as f64);
    // Those flows that leave their leaf cross two such links; a share of 2% each.
    assert!(lost / sent > 0.005 && lost / sent < 0.06, "{lost} of {sent}");
    let crossing: u64 = records.channels.iter().filter(|c| &*c.tier == "leaf-spine").map(|c| c.packets).sum();
    let lost: u64 = records.channels.iter().map(|c| c.lost).sum();
    assert!((lost as f64 / crossing as f64 - 0.02).abs() < 0.005, "{lost} of {crossing}");
    assert!(records.channels.iter().all(|c| &*c.tier == "leaf-spine" || c.lost == 0));
}

#[test]
fn a_single_direction_may_lose_packets() {
    let network = crossbar(3);
    let loss = Loss { channels: vec![channel("s0", "h0")], probability: 0.1, ..Loss::default() };
    let pattern = Pattern::Incast(Incast { size: Bytes(400_000).into(), ..Incast::default() });
    let records = everywhere(&network, &with(Fault::Loss(loss)), &plan(pattern, &network, 1));
    for channel in &records.channels {
        assert_eq!(channel.lost > 0, &*channel.from == "s0" && &*channel.to == "h0", "{channel:?}");
    }
}

#[test]
fn a_run_with_an_end_may_have_a_cut_without_one() {
    let network = crossbar(4);
    let cut = Cut { tier: Some("host".into()), links: Some(1), from: us(20), ..Cut::default() };
    let mut config = with(Fault::Cut(cut));
    config.measure = Measure { until: Some(Time::from_ms(2)), ..Measure::default() };
    let records = everywhere(&network, &config, &permutation(1_000_000, &network, 3));
    assert_eq!(records.flows.iter().filter(|flow| flow.fct.is_none()).count(), 2);
}

#[test]
fn what_could_never_work_is_refused() {
    let network = leaf_spine(2, 2, 4);
    let cut = |cut: Cut| refusal(&network, with(Fault::Cut(cut)));
    let named = |from: &str, to: &str| Cut { channels: vec![channel(from, to)], ..Cut::default() };
    let expect = |error: String, place: &str, what: &str| {
        assert!(error.starts_with(&format!("faults.0.{place}: ")) && error.contains(what), "{error}");
    };
    expect(
        cut(Cut { tier: Some("host".into()), links: Some(1), ..Cut::default() }),
        "tier",
        "expected links between switches",
    );
    expect(cut(named("h3", "s0")), "channels", "found the link of h3");
    expect(cut(Cut { switches: vec!["s0".into()], ..Cut::default() }), "switches", "found the link of h0");
    expect(cut(Cut { switches: vec!["s9".into()], ..Cut::default() }), "switches.0", "did you mean `s3`?");
    expect(cut(Cut { switches: vec!["h1".into()], ..Cut::default() }), "switches.0", "expected a switch");
    expect(cut(named("s0", "s1")), "channels.0.to", "expected a neighbour of s0");
    expect(cut(Cut { links: Some(1), ..named("s0", "s2") }), "links", "expected none beside `channels`");
    expect(cut(Cut::default()), "links", "`channels` or `switches`");
    expect(cut(Cut { from: us(5), ..named("s0", "s2") }), "until", "expected the moment of the repair");
    expect(
        cut(Cut { from: us(5), until: Some(us(5)), ..named("s0", "s2") }),
        "until",
        "expected a time after from = 5us",
    );
    let loss = |probability| {
        let loss = Loss { links: Some(1), probability, ..Loss::default() };
        refusal(&network, with(Fault::Loss(loss)))
    };
    expect(loss(0.0), "probability", "above 0 and below 1");
    expect(loss(1.0), "probability", "to lose everything use kind \"cut\"");

    let mut config = with(Fault::Loss(Loss { links: Some(1), probability: 0.1, ..Loss::default() }));
    config.transport.reliability = Reliability::None(Default::default());
    config.transport.congestion = unlimited().congestion;
    let error = refusal(&network, config.clone());
    assert!(error.contains("expected a reliability with ACKs, as packets can get lost, found"), "{error}");
    config.transport = transport();
    // Nor does flow control help what faults take, but what loses nothing may be there.
    config.transport = Transport { reliability: Reliability::None(Default::default()), ..unlimited() };
    config.fabric.flow_control = FlowControl::Pfc(flow_control::pfc::Pfc {
        buffer: Bytes(200_000),
        ..flow_control::pfc::Pfc::default()
    });
    let error = refusal(&network, config.clone());
    assert!(error.contains("expected a reliability with ACKs, as packets can get lost, found"), "{error}");
    config.faults = vec![
        Fault::Degrade(Degrade { links: Some(1), from: us(1), ..Degrade::default() }),
        Fault::Cut(Cut { channels: vec![channel("s0", "s2")], ..Cut::default() }),
    ];
    Simulation::new(network.clone(), config, permutation(1000, &network, 3)).unwrap();
}
