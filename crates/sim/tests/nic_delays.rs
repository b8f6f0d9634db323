//! What NICs take until the answers to data packets may leave.

mod common;

use common::*;
use netloom_fabric::Ecn;
use netloom_record::{FlowRecord, Records, TraceRecord};
use netloom_sim::{PacketTrace, SimConfig, SimError, Simulation, TracedFlow};
use netloom_topology::{Crossbar, Network, Topology};
use netloom_transport::congestion::fixed_window::FixedWindow;
use netloom_transport::{Congestion, Transport, preset};
use netloom_units::{Bytes, Time};
use netloom_workload::{Message, Plan};

fn transport(name: &str) -> Transport {
    preset::find(name).unwrap().transport()
}

fn star(hosts: u32) -> Network {
    build(Topology::Crossbar(Crossbar { hosts, ..Crossbar::default() }))
}

/// A transport over queues that mark all packets which more than a few others wait before.
fn config(transport: Transport) -> SimConfig {
    let mut config = SimConfig { transport, ..scheme("ecmp") };
    let threshold = Bytes(20_000);
    config.fabric.options.ecn =
        Some(Ecn { kmin: threshold, kmax: threshold, pmax: 1.0, mark: Default::default() });
    config
}

/// One flow of this many packets between two hosts at a switch.
fn alone(mut transport: Transport, delay: Option<Time>, packets: u64) -> FlowRecord {
    transport.options.ack_processing = delay;
    let bytes = Bytes(packets * transport.options.mtu.0);
    let plan = Plan::of_messages(2, [(0, Message::new(1, bytes, Time::ZERO))]);
    run(star(2), config(transport), plan).flows[0].clone()
}

/// A message arrives when it did, and its sender knows of it as much later as ACKs take.
#[test]
fn an_ack_leaves_when_it_is_processed() {
    for name in ["roce", "dctcp", "tcp", "irn", "mswift", "uet-nscc"] {
        let before = alone(transport(name), None, 1);
        for delay in [Time::ZERO, Time(1), Time::from_ns(700), Time::from_us(90)] {
            let after = alone(transport(name), Some(delay), 1);
            assert_eq!(after.fct, before.fct, "{name}");
            assert_eq!(after.sender_fct, before.sender_fct.map(|fct| fct + delay), "{name}, {delay}");
            assert_eq!((after.retransmissions, after.timeouts), (0, 0));
        }
    }
}

/// With one packet under way at a time each of them waits for the ACK of the one before.
#[test]
fn every_round_trip_includes_it() {
    let bytes = Some(Bytes(4160));
    let congestion = Congestion::FixedWindow(FixedWindow { bytes, ..FixedWindow::default() });
    let one_at_a_time = || Transport { congestion: congestion.clone(), ..Transport::default() };
    let before = alone(one_at_a_time(), None, 20);
    let delay = Time::from_ns(1_234);
    let after = alone(one_at_a_time(), Some(delay), 20);
    assert_eq!(after.fct.unwrap(), before.fct.unwrap() + delay * 19);
    assert_eq!(after.sender_fct.unwrap(), before.sender_fct.unwrap() + delay * 20);
    // ACKs are processed at the same time, and a window of a bandwidth-delay product knows of it: a flow is as fast as before.
    let (before, after) =
        (alone(Transport::default(), None, 2000), alone(Transport::default(), Some(delay), 2000));
    assert_eq!((after.fct, after.sender_fct), (before.fct, before.sender_fct.map(|fct| fct + delay)));
}

/// Three flows into one host, of which everything is traced.
fn notified(delay: Option<Time>) -> Records {
    let mut config = config(transport("roce"));
    config.transport.options.cnp_processing = delay;
    let flows = (0..3).map(|src| TracedFlow { src, dst: 3, flow: None }).collect();
    config.measure.trace = Some(PacketTrace { flows, ..PacketTrace::default() });
    config.measure.until = Some(Time::from_ms(1));
    let messages = (0..3).map(|src| (src, Message::new(3, Bytes(40_000_000), Time::ZERO)));
    run(star(4), config, Plan::of_messages(4, messages))
}

/// The first CNP of a flow is sent when its first marked packet has come and been processed.
#[test]
fn a_notification_leaves_when_it_is_processed() {
    let first = |trace: &[TraceRecord], src: u32| {
        trace.iter().find(|row| row.kind == "cnp" && row.dst == src).map(|row| row.time).unwrap()
    };
    let before = notified(None);
    let trace = before.trace.to_vec().unwrap();
    for delay in [Time::from_us(5), Time::from_us(55)] {
        let after = notified(Some(delay)).trace.to_vec().unwrap();
        for src in 0..3 {
            // ACKs for others may be on the link.
            let later = first(&after, src) - first(&trace, src);
            assert!(
                later + Time::from_ns(100) > delay && later < delay + Time::from_ns(100),
                "{src}: {later}"
            );
        }
    }
    // None comes before the end, so nothing is slowed down.
    let never = notified(Some(Time::from_ms(2)));
    let cnps = |records: &Records| records.flows.iter().map(|flow| flow.cnps).sum::<u32>();
    let delivered = |records: &Records| records.flows.iter().map(|flow| flow.delivered).sum::<u64>();
    assert!(cnps(&before) > 3 && never.flows.iter().all(|flow| flow.ecn_marks > 0));
    assert_eq!(cnps(&never), 0);
    assert!(delivered(&never) > delivered(&before), "{} {}", delivered(&never), delivered(&before));
}

#[test]
fn what_has_no_such_answers_has_no_such_delays() {
    let refusal = |change: &dyn Fn(&mut SimConfig)| {
        let mut config = config(transport("roce"));
        change(&mut config);
        let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(1), Time::ZERO))]);
        match Simulation::new(star(2), config, plan) {
            Err(SimError::Transport(invalid)) => invalid.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let cnps = refusal(&|config| {
        config.transport = transport("dctcp");
        config.transport.options.cnp_processing = Some(Time(1));
    });
    assert!(cnps.starts_with("cnp_processing: expected none unless receivers send notifications"), "{cnps}");
}
