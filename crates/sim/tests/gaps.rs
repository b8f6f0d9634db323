//! Gaps between a flow's packets: counted, and stretched so that flowlets can begin.

mod common;

use std::collections::BTreeSet;

use common::*;
use netloom_fabric::flow_control::pfc_shared::PfcShared;
use netloom_fabric::{Ecn, FlowControl};
use netloom_record::{FlowletRecord, Records};
use netloom_routing::granularity::flowlet::Flowlet;
use netloom_routing::{Granularity, Placement, Routing};
use netloom_sim::{SimConfig, Simulation};
use netloom_topology::Network;
use netloom_transport::shaping::hf2t::Hf2t;
use netloom_transport::{Shaping, preset};
use netloom_units::{Bytes, Time};
use netloom_workload::{Message, Plan};

/// Beyond the difference of the two paths' delays: 400 KB of marked queue are 16 us at 200 Gb/s, and PFC holds some more back.
const FLOWLET: Time = Time::from_us(50);

fn flowlets(placement: Placement) -> Routing {
    let granularity = Granularity::Flowlet(Flowlet { gap: FLOWLET, age_bit: false });
    Routing { placement, granularity, ..scheme("letflow").routing }
}

fn roce(routing: Routing, shaping: Shaping) -> SimConfig {
    let mut config = SimConfig { routing, ..SimConfig::default() };
    config.transport = preset::find("roce").unwrap().transport();
    config.transport.shaping = shaping;
    config.fabric.options.ecn =
        Some(Ecn { kmin: Bytes(100_000), kmax: Bytes(400_000), pmax: 0.2, mark: Default::default() });
    config.fabric.flow_control = FlowControl::PfcShared(PfcShared::default());
    config.measure.gaps = true;
    config
}

/// Three hosts of a leaf send to three of another.
fn across(config: SimConfig) -> (Network, Records) {
    let network = leaf_spine(2, 2, 3);
    let message = |src: u32| (src, Message::new(src + 3, Bytes(5_000_000), Time::ZERO));
    let plan = Plan::of_messages(6, (0..3).map(message));
    (network.clone(), run(network, config, plan))
}

fn sum(records: &Records, field: fn(&netloom_record::FlowRecord) -> u32) -> u32 {
    records.flows.iter().map(field).sum()
}

/// A gap of exactly the threshold would keep the path.
#[test]
fn stretched_gaps_make_flowlets_of_an_rdma_flow_that_has_none() {
    let shaping = Hf2t { training_gaps: 500, percentile: 90.0, ..Hf2t::default() };
    for placement in [Placement::Switch, Placement::Nic] {
        let run = |shaping| across(roce(flowlets(placement), shaping)).1;
        let plain = run(Shaping::None(Default::default()));
        assert_eq!(sum(&plain, |flow| flow.flowlets), 3, "one per flow");
        assert_eq!((sum(&plain, |flow| flow.stretched), sum(&plain, |flow| flow.path_changes)), (0, 0));
        let stretched = run(Shaping::Hf2t(shaping.clone()));
        let (gaps, flowlets) =
            (sum(&stretched, |flow| flow.stretched), sum(&stretched, |flow| flow.flowlets));
        assert!(gaps > 20, "{gaps}");
        // The first packet of a flow begins a flowlet, too.
        assert_eq!(flowlets, gaps + 3);
        let changes = sum(&stretched, |flow| flow.path_changes);
        assert!(changes > gaps / 4, "half of the flowlets take another of two paths: {changes} of {gaps}");
        // What comes behind the gap does not overtake.
        assert_eq!(sum(&stretched, |flow| flow.ooo_packets as u32), 0);
    }
}

/// Every gap is stretched: each packet leaves a threshold after the one before, and the flow's pace counts from there.
#[test]
fn each_stretched_gap_is_as_long_as_the_threshold_and_holds_nobody_else() {
    let always = Hf2t { threshold: Some(Time(1)), dynamic: false, margin: Time(99), ..Hf2t::default() };
    let mut config = roce(flowlets(Placement::Switch), Shaping::Hf2t(always));
    config.measure.gaps = false;
    let network = leaf_spine(2, 1, 2);
    let packet = config.transport.packet_size();
    let alone = |dst, packets: u64| (0, Message::new(dst, Bytes(1000 * packets), Time::ZERO));
    let records = run(network.clone(), config, Plan::of_messages(4, [alone(2, 11), alone(3, 11)]));
    let single = run(
        network.clone(),
        roce(flowlets(Placement::Switch), Shaping::None(Default::default())),
        Plan::of_messages(4, [alone(2, 1)]),
    );
    // The threshold is a picosecond more than routing's, and the margin is added.
    let gap = FLOWLET + Time(100);
    assert_eq!(fct(&records.flows[0]), gap * 10 + fct(&single.flows[0]));
    let behind = network.channel(network.ports(0)[0]).rate.serialize(packet);
    assert_eq!(fct(&records.flows[1]), fct(&records.flows[0]) + behind);
    assert_eq!(records.flows[0].stretched, 10);
}

#[test]
fn gaps_are_counted_by_length_and_by_base_round_trips() {
    let (network, records) = across(roce(flowlets(Placement::Switch), Shaping::None(Default::default())));
    let gaps = records.gaps.as_ref().unwrap().to_vec().unwrap();
    for flow in &records.flows {
        let of_flow = || gaps.iter().filter(|gap| (gap.src, gap.flow) == (flow.src, flow.flow));
        assert_eq!(of_flow().map(|gap| gap.count).sum::<u64>(), flow.packets - 1);
        assert!(of_flow().all(|gap| gap.from < gap.until));
        assert!(
            of_flow().all(|gap| gap.base_rtts == 0 || gap.until > gap.base_rtt * u64::from(gap.base_rtts))
        );
        // No packet follows sooner than the one before takes.
        let rate = network.channel(network.ports(flow.src)[0]).rate;
        assert!(of_flow().all(|gap| gap.until > rate.serialize(Bytes(1048))));
    }
    let silent = SimConfig {
        measure: Default::default(),
        ..roce(flowlets(Placement::Switch), Shaping::None(Default::default()))
    };
    assert_eq!(across(silent).1.gaps, None);
}

/// The rows of what switches count.
fn rows_of_switches(records: &Records) -> Vec<FlowletRecord> {
    records.flowlets.as_ref().unwrap().to_vec().unwrap()
}

/// What every switch counts of every flow.
fn at_switches(rows: &[FlowletRecord]) -> Vec<(&str, u32, Option<u64>, u32)> {
    rows.iter().map(|at| (&*at.switch, at.src, at.packets, at.flowlets)).collect()
}

/// Where nothing else is sent, a switch sees the gaps that the NIC leaves.
#[test]
fn the_first_switch_of_a_flow_alone_sees_the_gaps_of_its_nic() {
    let always = Hf2t { threshold: Some(Time(1)), dynamic: false, ..Hf2t::default() };
    let mut config = roce(flowlets(Placement::Switch), Shaping::Hf2t(always));
    config.measure.switch_gaps = true;
    let plan = || Plan::of_messages(4, [(0, Message::new(2, Bytes(11_000), Time::ZERO))]);
    let records = run(leaf_spine(2, 1, 2), config.clone(), plan());
    assert_eq!(records.switch_gaps, records.gaps);
    assert_eq!(records.gaps.as_ref().unwrap().to_vec().unwrap().iter().map(|gap| gap.count).sum::<u64>(), 10);
    // Two leaves and the spine: every gap is a flowlet's.
    assert_eq!(
        at_switches(&rows_of_switches(&records)),
        [("s0", 0, Some(11), 11), ("s1", 0, Some(11), 11), ("s2", 0, Some(11), 11)]
    );
    config.measure.gaps = false;
    let alone = run(leaf_spine(2, 1, 2), config.clone(), plan());
    assert_eq!((&alone.switch_gaps, &alone.gaps), (&records.switch_gaps, &None));
    config.measure = Default::default();
    let silent = run(leaf_spine(2, 1, 2), config, plan());
    assert_eq!(silent.switch_gaps, None);
    assert_eq!(silent.flows, alone.flows, "who looks changes nothing");
}

/// Without being asked, a switch that has a choice counts the flowlets that it tells apart, and no others; the gauge sees the same ones.
#[test]
fn switches_that_choose_by_flowlets_count_them_in_every_outcome() {
    for age_bit in [false, true] {
        let shaping = Hf2t { training_gaps: 500, percentile: 90.0, ..Hf2t::default() };
        let granularity = Granularity::Flowlet(Flowlet { gap: FLOWLET, age_bit });
        let routing = |placement| Routing { granularity: granularity.clone(), ..flowlets(placement) };
        let mut config = roce(routing(Placement::Switch), Shaping::Hf2t(shaping));
        config.measure = Default::default();
        let (_, records) = across(config.clone());
        let seen = rows_of_switches(&records);
        let seen = at_switches(&seen);
        let who: BTreeSet<_> = seen.iter().map(|at| at.0).collect();
        assert_eq!(who, BTreeSet::from(["s0"]), "only leaf 0 chooses");
        assert!(seen.iter().all(|at| at.2.is_none() && at.3 > 1), "{seen:?}");
        config.measure.switch_gaps = true;
        let (_, measured) = across(config.clone());
        let gauged = rows_of_switches(&measured);
        let gauged = at_switches(&gauged);
        let at_leaf = gauged.into_iter().filter(|at| at.0 == "s0").map(|at| (at.0, at.1, None, at.3));
        assert_eq!(at_leaf.collect::<Vec<_>>(), seen);
        config.measure.switch_gaps = false;
        config.routing = routing(Placement::Nic);
        assert_eq!(across(config).1.flowlets, None);
    }
}

/// Packets that take several ways are counted where they come by, and gaps at the first switch only.
#[test]
fn every_switch_counts_the_packets_that_come_to_it() {
    let shaping = Hf2t { training_gaps: 500, percentile: 90.0, ..Hf2t::default() };
    let mut config = roce(flowlets(Placement::Switch), Shaping::Hf2t(shaping));
    config.measure.switch_gaps = true;
    let (_, records) = across(config.clone());
    let seen = rows_of_switches(&records);
    let seen = at_switches(&seen);
    let gaps = records.switch_gaps.as_ref().unwrap().to_vec().unwrap();
    for flow in &records.flows {
        let at = |name: &str| seen.iter().find(|at| (at.0, at.1) == (name, flow.src));
        let [first, last] = ["s0", "s1"].map(|name| *at(name).unwrap());
        assert_eq!((first.2, last.2), (Some(flow.packets), Some(flow.packets)));
        // Between two leaves every packet crosses one of two spines.
        let spines = ["s2", "s3"].map(|name| at(name).and_then(|at| at.2).unwrap_or(0));
        assert_eq!(spines.iter().sum::<u64>(), flow.packets);
        assert!(spines.iter().all(|&packets| packets > 0), "{spines:?}");
        // Nothing waits before the first switch.
        assert_eq!(first.3, flow.flowlets);
        let of_flow = gaps.iter().filter(|gap| (gap.src, gap.flow) == (flow.src, flow.flow));
        assert_eq!(of_flow.map(|gap| gap.count).sum::<u64>(), flow.packets - 1);
    }
    let network = leaf_spine(2, 2, 3);
    let message = |src: u32| (src, Message::new(src + 3, Bytes(5_000_000), Time::ZERO));
    let plan = Plan::of_messages(6, (0..3).map(message));
    let many = Simulation::new(network, config, plan).unwrap().run(3).unwrap().records;
    assert_eq!(difference(&records, &many), None);
}

#[test]
fn thresholds_that_could_never_begin_a_flowlet_are_refused() {
    let refusal = |routing: Routing, hf2t: Hf2t| {
        let plan = Plan::of_messages(6, [(0, Message::new(3, Bytes(1), Time::ZERO))]);
        let config = roce(routing, Shaping::Hf2t(hf2t));
        Simulation::new(leaf_spine(2, 2, 3), config, plan).err().map(|error| error.to_string())
    };
    let hf2t = Hf2t::default;
    let (switch, ecmp) = (|| flowlets(Placement::Switch), || scheme("ecmp").routing);
    assert_eq!(refusal(switch(), hf2t()), None);
    let expected =
        "transport.shaping.flowlet: expected a time, as routing has no flowlets to take it from, found none";
    assert_eq!(refusal(ecmp(), hf2t()).unwrap(), expected);
    assert_eq!(refusal(ecmp(), Hf2t { flowlet: Some(FLOWLET), ..hf2t() }), None);
    let short = refusal(switch(), Hf2t { flowlet: Some(FLOWLET), ..hf2t() }).unwrap();
    assert!(
        short.starts_with("transport.shaping.flowlet: expected more than routing.granularity.gap = 50us"),
        "{short}"
    );
    let late = refusal(switch(), Hf2t { threshold: Some(Time::from_us(60)), ..hf2t() }).unwrap();
    assert!(
        late.starts_with("transport.shaping.threshold: expected less than the flowlet threshold of 50"),
        "{late}"
    );
}
