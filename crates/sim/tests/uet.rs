//! Ultra Ethernet's transport, with its congestion control at the sender.

mod common;

use common::*;
use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{Ecn, Queue};
use netloom_record::{FlowRecord, Records};
use netloom_sim::{SimConfig, SimError, Simulation};
use netloom_topology::{FatTree, Network, Topology};
use netloom_transport::reliability::pds::Pds;
use netloom_transport::{Reliability, preset};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

/// The network of the public simulator's examples: a fat tree of 100 Gb/s and 1 us.
fn network(k: u32) -> Network {
    let rate = Rate::from_gbps(100);
    build(Topology::FatTree(FatTree { k: Some(k), rate: Some(rate), ..FatTree::default() }))
}

/// Its switches: a queue of a bandwidth-delay product of 43 packets, marks between 20% and 80% of that.
fn config(routing: &str) -> SimConfig {
    let mut config =
        SimConfig { transport: preset::find("uet-nscc").unwrap().transport(), ..scheme(routing) };
    config.fabric.queue = Queue::Trimming(Trimming { control_weight: 100_000, ..Trimming::default() });
    config.fabric.options.buffer = Some(Bytes(42 * 4150));
    config.fabric.options.ecn =
        Some(Ecn { kmin: Bytes(8 * 4150), kmax: Bytes(34 * 4150), pmax: 1.0, mark: Default::default() });
    config
}

fn flows(hosts: u32, flows: &[(u32, u32)], bytes: u64) -> Plan {
    Plan::of_messages(hosts, flows.iter().map(|&(src, dst)| (src, Message::new(dst, Bytes(bytes), Time(0)))))
}

fn at_sender(flow: &FlowRecord) -> Time {
    flow.sender_fct.expect("the flow is complete")
}

fn acks(records: &Records) -> u64 {
    records.totals.control.sent
}

/// What a full packet and a control packet take, and a cable.
const PACKET: Time = Time(332_000);
const CONTROL: Time = Time(5_120);
const CABLE: Time = Time(1_000_000);

/// uet-htsim prints 176.2 us and 124 ACKs: 489 full packets and one of 2010 B over six links, and an ACK back. The first packet has an ACK, then every fourth, then the last.
#[test]
fn a_lone_flow_takes_as_long_as_in_the_public_simulator() {
    for routing in ["ecmp", "spray"] {
        let records = run(network(4), config(routing), flows(16, &[(0, 15)], 2_000_000));
        let last = Rate::from_gbps(100).serialize(Bytes(2010));
        let there = PACKET * 489 + PACKET * 5 + last + CABLE * 6;
        assert_eq!(at_sender(&records.flows[0]), there + (CONTROL + CABLE) * 6, "{routing}");
        assert_eq!(at_sender(&records.flows[0]), Time(176_199_520));
        assert_eq!((records.flows[0].packets, acks(&records)), (490, 124));
    }
}

/// uet-htsim prints 176.804 us for both.
#[test]
fn flows_in_both_directions_wait_for_each_others_acks() {
    let records = run(network(4), config("ecmp"), flows(16, &[(0, 15), (15, 0)], 2_000_000));
    for flow in &records.flows {
        let error = at_sender(flow).0 as f64 / 176_804_000.0 - 1.0;
        assert!(error.abs() < 1e-3, "{} us", at_sender(flow).0 as f64 / 1e6);
    }
}

/// uet-htsim: 17.0107 us for 10 packets and 46.8907 us for 100, whether they are one message or ten on one connection.
#[test]
fn messages_on_one_connection_take_as_long_as_one() {
    for (packets, expected) in [(10, 17_010_720), (100, 46_890_720)] {
        let one = run(network(4), config("spray"), flows(16, &[(0, 15)], packets * 4086));
        assert_eq!(at_sender(&one.flows[0]), Time(expected));
        let part = Message { stream: true, ..Message::new(15, Bytes(packets / 10 * 4086), Time(0)) };
        let ten = run(network(4), config("spray"), Plan::of_messages(16, (0..10).map(|_| (0, part))));
        let [flow] = &ten.flows[..] else { panic!("one connection") };
        assert_eq!(flow.packets, packets);
        assert_eq!(acks(&ten), acks(&one));
        assert_eq!(ten.totals.simulated, one.totals.simulated, "the last ACK arrives at the same time");
    }
}

#[test]
fn trimmed_packets_are_sent_again_and_all_arrive() {
    let incast: Vec<_> = (1..16).map(|src| (src, 0)).collect();
    let records = run(network(4), config("spray"), flows(16, &incast, 500_000));
    let sum = |field: fn(&FlowRecord) -> u64| records.flows.iter().map(field).sum::<u64>();
    let (trims, again) = (sum(|flow| flow.trims), sum(|flow| flow.retransmissions));
    assert!(records.flows.iter().all(|flow| flow.delivered == 500_000 && flow.timeouts == 0));
    assert!(trims > 100 && trims == again, "{trims} trims, {again} packets sent again");
    // The receiver's link is busy from the first packet to the last.
    let last = records.flows.iter().map(fct).max().unwrap();
    let busy = Rate::from_gbps(100).serialize(Bytes(15 * (500_000 + 123 * 64)));
    assert!(last < busy + CABLE * 40, "{last:?} for {busy:?}");
}

#[test]
fn without_trimming_only_timeouts_find_losses_and_all_arrives() {
    let mut config = config("spray");
    config.fabric.queue = Queue::TailDrop(Default::default());
    let incast: Vec<_> = (1..16).map(|src| (src, 0)).collect();
    let records = run(network(4), config, flows(16, &incast, 300_000));
    assert!(records.flows.iter().all(|flow| flow.delivered == 300_000));
    assert!(records.totals.data.dropped > 0);
    assert!(records.flows.iter().any(|flow| flow.timeouts > 0));
}

/// Where pauses last longer than the timeout, packets are sent twice though nothing is lost; where they do not, none is.
#[test]
fn nothing_is_sent_twice_where_nothing_is_lost() {
    let mut config = config("spray");
    config.fabric.queue = Queue::TailDrop(Default::default());
    config.fabric.options.buffer = None;
    config.fabric.flow_control = netloom_fabric::FlowControl::Pfc(Default::default());
    let incast: Vec<_> = (1..16).map(|src| (src, 0)).collect();
    for (timeout, twice) in [(Time::from_us(101), true), (Time::from_ms(5), false)] {
        let options = &mut config.transport.options;
        (options.rto_min, options.rto_initial, options.rto_max) = (timeout, timeout, Some(timeout));
        let records = run(network(4), config.clone(), flows(16, &incast, 500_000));
        assert!(records.flows.iter().all(|flow| flow.delivered == 500_000));
        assert_eq!(records.flows.iter().any(|flow| flow.retransmissions > 0), twice, "{timeout}");
        assert_eq!(records.totals.data.dropped, 0);
    }
}

#[test]
fn what_does_not_fit_is_refused_by_its_name() {
    let refused = |config: SimConfig| match Simulation::new(network(4), config, flows(16, &[(0, 15)], 1000)) {
        Err(SimError::Transport(error) | SimError::Routing(error)) => error.field.to_string(),
        other => panic!("{:?}", other.err()),
    };
    assert_eq!(refused(config("flowcut")), "placement");
    assert_eq!(refused(SimConfig { fabric: Default::default(), ..config("spray") }), "congestion");
    // FlowBender's share of marked ACKs, for one, works with few of them; flowcuts at the NIC measure each.
    assert_eq!(refused(config("flowcut-nic")), "reliability.ack_bytes");
    let mut each = config("flowcut-nic");
    each.transport.reliability = Reliability::Pds(Pds { ack_bytes: Bytes(0) });
    let records = run(network(4), each, flows(16, &[(0, 15)], 400_000));
    assert_eq!(acks(&records), records.flows[0].packets);
}
