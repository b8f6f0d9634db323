//! Links that are cut, or lose packets, where flow control keeps queues from losing any.

mod common;

use common::*;
use netloom_fabric::flow_control::{credits, pfc, pfc_shared};
use netloom_fabric::{Fabric, FlowControl};
use netloom_record::{ChannelRecord, Records};
use netloom_sim::{ChannelEnds, Cut, Fault, Loss, SimConfig, Simulation, Unreachable};
use netloom_topology::{Complete, Network, NetworkBuilder, Topology};
use netloom_transport::{Reliability, Transport, TransportOptions};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

fn us(us: u64) -> Time {
    Time::from_us(us)
}

fn ns(ns: u64) -> Time {
    Time::from_ns(ns)
}

/// The hosts h0 and h3 at s0, h1 and h2 at s1; 100 Gb/s everywhere but to h1, which has 10 Gb/s. Every link takes 1 us.
fn two_switches() -> Network {
    let mut builder = NetworkBuilder::new("two switches");
    let hosts: Vec<u32> = builder.add_hosts(4).collect();
    let (to_host, between) = (builder.tier("host"), builder.tier("between"));
    let [s0, s1] = [0, 0].map(|_| builder.add_switch(0, 0));
    for (host, switch, gbps) in [(0, s0, 100), (1, s1, 10), (2, s1, 100), (3, s0, 100)] {
        builder.link(hosts[host], switch, Rate::from_gbps(gbps), us(1), to_host);
    }
    builder.link(s0, s1, Rate::from_gbps(100), us(1), between);
    builder.build().unwrap()
}

/// Packets of 1000 bytes without a window; a timeout that comes when all else is over.
fn transport() -> Transport {
    let options = TransportOptions {
        mtu: Bytes(1000),
        header: Bytes(0),
        ack_size: Bytes(64),
        rto_initial: us(300),
        rto_min: us(300),
        ..TransportOptions::default()
    };
    Transport { options, reliability: Reliability::GoBackN(Default::default()), ..unlimited() }
}

/// Flows by source, destination, packets and start.
fn flows(of: &[(u32, u32, u64, Time)]) -> Plan {
    let message = |&(src, dst, packets, start)| (src, Message::new(dst, Bytes(1000 * packets), start));
    Plan::of_messages(4, of.iter().map(message))
}

fn between() -> Vec<ChannelEnds> {
    vec![ChannelEnds { from: "s0".into(), to: "s1".into(), parallel: 0 }]
}

fn cut(from: Time, until: Time) -> Fault {
    Fault::Cut(Cut { channels: between(), from, until: Some(until), ..Cut::default() })
}

fn config(flow_control: FlowControl, fault: Fault) -> SimConfig {
    let fabric = Fabric { flow_control, ..Fabric::default() };
    SimConfig { fabric, transport: transport(), faults: vec![fault], ..scheme("ecmp") }
}

/// The same records on one thread, on two, and under the textbook executor.
fn everywhere(network: &Network, config: &SimConfig, plan: &Plan) -> Records {
    let simulation = || Simulation::new(network.clone(), config.clone(), plan.clone()).unwrap();
    let one = simulation().run(1).unwrap().records;
    assert_eq!(difference(&one, &simulation().run(2).unwrap().records), None);
    assert_eq!(difference(&one, &simulation().run_reference().unwrap().records), None);
    assert_eq!(one.totals.data.dropped, one.totals.data.lost);
    one
}

fn channel<'a>(records: &'a Records, from: &str, to: &str) -> &'a ChannelRecord {
    records.channels.iter().find(|channel| &*channel.from == from && &*channel.to == to).unwrap()
}

/// Six packets in a buffer pause its upstream port, three or fewer let it go on.
fn pausing_at_six() -> FlowControl {
    FlowControl::Pfc(pfc::Pfc { buffer: Bytes(45_000), headroom: Some(Bytes(40_000)), ..pfc::Pfc::default() })
}

/// h0 sends 60 packets to h1 at once. Packet n (from 1) comes to s1 at 2160 + 80 (n - 1) ns and leaves it from 2160 + 800 (n - 1) on, so the
/// seventh is the sixth that waits: s0 is paused at 2640 + 5.12 + 1000 ns, when packet 33 has left. The others wait there and have h0 paused from
/// 4120 + 5.12 + 1000 ns on. Of the 33, three wait from 2160 + 800 · 29 ns on, and s0 may go on 1005.12 ns later, at 26,365.12 ns.
///
/// The link between the switches is cut from 10 to 15 us.
#[test]
fn a_cut_forgets_pauses_and_a_buffer_that_is_still_full_asks_again() {
    let network = two_switches();
    let config = config(pausing_at_six(), cut(us(10), us(15)));
    // A packet that comes to s0 when the link is back finds it open; one that comes when the new PAUSE frame has come at 16,005.12 ns waits
    // until 26,365.12 ns.
    let plan = flows(&[(0, 1, 60, Time::ZERO), (0, 2, 1, ns(14_000)), (0, 2, 1, ns(15_000))]);
    let records = everywhere(&network, &config, &plan);
    let fcts: Vec<Time> = records.flows.iter().filter(|flow| flow.dst == 2).map(fct).collect();
    let paused_until = Time(26_365_120);
    assert_eq!(fcts, [ns(3240), paused_until + ns(2160) - ns(15_000)]);
    // The 27 packets that waited for the link, and the ACKs of packets 6 to 13 that were on it or came for it.
    assert_eq!((channel(&records, "s0", "s1").lost, channel(&records, "s1", "s0").lost), (27, 8));
    assert_eq!((records.totals.data.lost, records.totals.control.lost), (27, 8));
    let flow = records.flows.iter().find(|flow| flow.dst == 1).unwrap();
    assert_eq!((flow.timeouts, flow.retransmissions), (1, 27));
    // Data waits at s0 from the arrival of packet 34 to the cut, and the late packet to the end of the second pause. The 27 repeated packets cause a
    // third one, when all have left s0.
    let held = channel(&records, "s0", "s1");
    assert_eq!(held.paused, us(10) - ns(3720) + (paused_until - ns(16_080)));
    assert_eq!(held.pauses, 3);
    // What the cut takes at s0 leaves its input, so h0 goes on at once.
    let nic = channel(&records, "h0", "s0");
    assert_eq!((nic.pauses, nic.paused), (1, us(10) - ns(4120)));
}

/// The sender of the first test with ten packets of credit, each of which comes back by itself: s0 sends packet 10 + n when s1 has started packet n, at
/// 3160.64 + 800 (n - 1) ns. The link is cut from 10 to 12 us: packet 19 is on it, and the seven others wait.
#[test]
fn a_cut_forgets_credits_and_a_repair_gives_as_much_as_there_is_room() {
    let network = two_switches();
    let one_by_one =
        credits::Credits { buffer: Bytes(10_000), batch: Some(Bytes(0)), ..credits::Credits::default() };
    let config = config(FlowControl::Credits(one_by_one), cut(us(10), us(12)));
    // Seven packets come to s0 after the repair.
    let plan = flows(&[(0, 1, 26, Time::ZERO), (0, 2, 7, ns(11_000))]);
    let records = everywhere(&network, &config, &plan);
    assert_eq!((channel(&records, "s0", "s1").lost, records.totals.data.lost), (8, 8));
    let flow = records.flows.iter().find(|flow| flow.dst == 1).unwrap();
    assert_eq!((flow.timeouts, flow.retransmissions), (1, 8));
    // At 12 us s1 has started 13 of 18 packets and has room for five, which s0 knows at 13,000.64 ns. The sixth and seventh have the credit of those
    // that leave s1 at 12,560 and 13,360 ns.
    let late = records.flows.iter().find(|flow| flow.dst == 2).unwrap();
    assert_eq!(fct(late), Time(14_360_640) + ns(2160) - ns(11_000));
}

/// Three packets of credit, and all packets that start before 2 us are lost.
#[test]
fn what_is_lost_at_random_gives_its_credit_back_when_it_would_have_come() {
    let network = two_switches();
    let three =
        credits::Credits { buffer: Bytes(3_000), batch: Some(Bytes(0)), ..credits::Credits::default() };
    let loss = Loss { channels: between(), probability: 1.0 - 1e-12, until: Some(us(2)), ..Loss::default() };
    let config = config(FlowControl::Credits(three), Fault::Loss(loss));
    let plan = flows(&[(0, 2, 3, Time::ZERO), (3, 2, 1, ns(1000))]);
    let records = everywhere(&network, &config, &plan);
    assert_eq!(records.totals.data.lost, 3);
    // It comes to s0 at 2080 ns; the first of the lost ones would have come to s1 at 2160 ns, and the credit takes 1000.64 ns.
    let late = records.flows.iter().find(|flow| flow.src == 3).unwrap();
    assert_eq!(fct(late), Time(3_160_640) + ns(2160) - ns(1000));
}

/// The buffer at s1 is full when its link comes back: what s0 sends before it is asked to pause anew can find no room.
#[test]
fn what_overflows_a_buffer_that_was_full_at_a_repair_is_lost_by_the_fault() {
    let network = two_switches();
    let pfc = FlowControl::Pfc(pfc::Pfc { buffer: Bytes(34_000), ..pfc::Pfc::default() });
    let plan = flows(&[(0, 1, 60, Time::ZERO), (3, 1, 60, us(4))]);
    let records = everywhere(&network, &config(pfc.clone(), cut(ns(5000), ns(5100))), &plan);
    let at_the_input = channel(&records, "s1", "s0");
    assert!(at_the_input.lost > 0 && at_the_input.drops == 0, "{at_the_input:?}");
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    // Later there is room again.
    let records = everywhere(&network, &config(pfc, cut(ns(5000), us(100))), &plan);
    assert_eq!(channel(&records, "s1", "s0").lost, records.totals.control.lost);
}

/// Two packets come to s0 in the instant of the repair, and would have to share credits that have not come.
#[test]
fn what_comes_in_the_instant_of_a_repair_is_lost() {
    let network = two_switches();
    let plan = flows(&[(0, 2, 1, ns(10_920)), (3, 2, 1, ns(10_920))]);
    for flow_control in flow_controls() {
        let records = everywhere(&network, &config(flow_control, cut(us(10), us(12))), &plan);
        let flows = || records.flows.iter();
        assert_eq!((records.totals.data.lost, flows().count()), (2, 2));
        assert!(flows().all(|flow| flow.timeouts == 1 && flow.fct.is_some()));
    }
}

fn flow_controls() -> [FlowControl; 3] {
    let buffer = Bytes(200_000);
    [
        FlowControl::Pfc(pfc::Pfc { buffer, ..pfc::Pfc::default() }),
        FlowControl::PfcShared(pfc_shared::PfcShared::default()),
        FlowControl::Credits(credits::Credits { buffer: Bytes(20_000), ..credits::Credits::default() }),
    ]
}

#[test]
fn hosts_switches_and_lossy_links_under_every_flow_control() {
    let network = leaf_spine(3, 2, 4);
    let host = Cut { tier: Some("host".into()), links: Some(2), ..Cut::default() };
    let spine = Cut { switches: vec!["s3".into()], ..Cut::default() };
    let during = |cut: Cut| Cut { from: us(10), until: Some(us(120)), ..cut };
    let told = Cut { unreachable: Unreachable::NotifySource, ..during(spine.clone()) };
    let around = Cut { reroute_after: Some(us(5)), ..during(spine.clone()) };
    let loss = Loss {
        tier: Some("leaf-spine".into()),
        link_fraction: Some(1.0),
        probability: 0.01,
        ..Loss::default()
    };
    for flow_control in flow_controls() {
        for (name, fault) in [
            ("ecmp", Fault::Cut(during(host.clone()))),
            ("spray", Fault::Cut(during(spine.clone()))),
            ("ecmp", Fault::Cut(around.clone())),
            ("spray-nic", Fault::Cut(told.clone())),
            ("spray", Fault::Loss(loss.clone())),
        ] {
            let mut config = config(flow_control.clone(), fault.clone());
            config.routing = scheme(name).routing;
            config.transport.options.rto_initial = us(100);
            config.transport.options.rto_min = us(50);
            config.transport.reliability = Reliability::SelectiveRepeat(Default::default());
            let records = everywhere(&network, &config, &permutation(400_000, &network, 3));
            let (lost, what) = (records.totals.data.lost, format!("{name}, {fault:?}, {flow_control:?}"));
            assert!(lost > 0 && records.flows.iter().all(|flow| flow.fct.is_some()), "{what}");
            let returns: u64 = records.channels.iter().map(|channel| channel.returned_to_sender).sum();
            let is_told = matches!(&fault, Fault::Cut(cut) if cut.unreachable == Unreachable::NotifySource);
            assert_eq!(returns > 0, is_told, "{what}");
            let at_channels: u64 = records.channels.iter().map(|channel| channel.lost).sum();
            let all = lost + records.totals.control.lost;
            // Routes may end at a switch.
            let is_rerouted = matches!(&fault, Fault::Cut(cut) if cut.reroute_after.is_some());
            assert!(at_channels == all || is_rerouted && at_channels < all, "{what}");
        }
    }
}

/// In a network where all switches are neighbours nothing waits for anything; without two links it is a ring.
#[test]
fn routes_that_follow_cuts_are_searched_for_deadlocks() {
    let complete = Complete { switches: 4, hosts_per_switch: Some(1), ..Complete::default() };
    let network = build(Topology::Complete(complete));
    let ends = |from: &str, to: &str| ChannelEnds { from: from.into(), to: to.into(), parallel: 0 };
    let channels = vec![ends("s0", "s2"), ends("s1", "s3")];
    let cut =
        Cut { channels, from: us(1), until: Some(us(50)), reroute_after: Some(us(1)), ..Cut::default() };
    let simulation = |vcs: Option<u8>, cut: &Cut| {
        let pfc = FlowControl::Pfc(pfc::Pfc { vcs, ..pfc::Pfc::default() });
        let config = config(pfc, Fault::Cut(cut.clone()));
        Simulation::new(network.clone(), config, permutation(300_000, &network, 1))
    };
    let error = simulation(Some(1), &cut).unwrap_err().to_string();
    assert!(error.contains("fabric.flow_control.vcs: the routes from 2us on can deadlock: "), "{error}");
    simulation(Some(1), &Cut { reroute_after: None, ..cut.clone() }).unwrap();
    let records = simulation(None, &cut).unwrap().run(1).unwrap().records;
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
}

/// What the links do after the last flow makes the run no longer.
#[test]
fn a_cut_after_the_work_does_not_lengthen_the_run() {
    let network = two_switches();
    let plan = flows(&[(0, 2, 3, Time::ZERO)]);
    for flow_control in flow_controls() {
        let late = config(flow_control, cut(us(500), us(900)));
        let records = everywhere(&network, &late, &plan);
        assert!(records.totals.simulated < us(20), "{}", records.totals.simulated);
        assert_eq!(records.totals.data.lost, 0);
    }
}
