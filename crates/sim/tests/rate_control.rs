//! Rates per flow: senders that slow down when their receivers tell of marks.

mod common;

use common::*;
use netloom_fabric::flow_control::pfc_shared::PfcShared;
use netloom_fabric::{Ecn, FlowControl};
use netloom_record::{Records, Window};
use netloom_sim::{Measure, SimConfig, Simulation};
use netloom_topology::{Crossbar, Network, Topology};
use netloom_transport::congestion::dcqcn::Dcqcn;
use netloom_transport::congestion::swift::Swift;
use netloom_transport::congestion::timely::Timely;
use netloom_transport::{Congestion, Transport, preset};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

/// Hosts on a switch, at the rate of DCQCN's paper.
fn star(hosts: u32) -> Network {
    build(Topology::Crossbar(Crossbar { hosts, rate: Rate::from_gbps(40), ..Crossbar::default() }))
}

/// RoCE over PFC, with the marking of DCQCN's paper.
fn roce() -> SimConfig {
    let mut config = SimConfig { transport: preset::find("roce").unwrap().transport(), ..scheme("ecmp") };
    config.fabric.options.ecn =
        Some(Ecn { kmin: Bytes(5_000), kmax: Bytes(200_000), pmax: 0.01, mark: Default::default() });
    config.fabric.flow_control = FlowControl::PfcShared(PfcShared::default());
    config
}

/// This many flows of different age into one host.
fn into_one(senders: u32, config: SimConfig) -> Records {
    let network = star(senders + 1);
    let message = |src| (src, Message::new(senders, Bytes(1 << 30), Time::from_us(100 * u64::from(src))));
    run(network, config, Plan::of_messages(senders + 1, (0..senders).map(message)))
}

/// Jain's fairness index.
fn jain(shares: &[f64]) -> f64 {
    let (sum, squares) = shares.iter().fold((0.0, 0.0), |(sum, squares), x| (sum + x, squares + x * x));
    sum * sum / (shares.len() as f64 * squares)
}

#[test]
fn dcqcn_flows_of_different_age_converge_to_fair_shares_without_a_drop() {
    for senders in [2, 8, 32] {
        let mut config = roce();
        let (from, until) = (Time::from_ms(20), Time::from_ms(40));
        config.measure = Measure {
            until: Some(until),
            windows: vec![Window { name: "late".into(), from, until }],
            ..Measure::default()
        };
        let records = into_one(senders, config);
        let shares: Vec<f64> =
            records.window_flows.to_vec().unwrap().iter().map(|row| row.bytes as f64).collect();
        assert_eq!(shares.len(), senders as usize);
        let gbps = shares.iter().sum::<f64>() * 8.0 / (until - from).as_secs_f64() / 1e9;
        let fairness = jain(&shares);
        println!("{senders}: Jain {fairness:.4}, {gbps:.1} Gb/s");
        assert!(fairness >= 0.95, "{senders}: {fairness}");
        // Payload is 1000 of 1048 bytes.
        assert!(gbps > 0.8 * 40.0 * 1000.0 / 1048.0, "{senders}: {gbps}");
        assert_eq!(records.totals.data.dropped, 0);
    }
}

#[test]
fn a_flow_is_notified_once_per_interval_while_it_meets_marks_and_others_never() {
    let mut config = roce();
    config.measure.until = Some(Time::from_ms(2));
    let records = into_one(4, config.clone());
    let notified: u32 = records.flows.iter().map(|flow| flow.cnps).sum();
    for flow in &records.flows {
        let age = Time::from_ms(2) - flow.start;
        assert!(u64::from(flow.cnps) <= 1 + age.0 / Time::from_us(50).0, "{flow:?}");
        assert!(u64::from(flow.cnps) <= flow.ecn_marks);
    }
    // More than once for each of the four: a flow that is cut is notified again while marks go on.
    assert!(notified > 8, "{notified}");
    // Without a queue there is no mark.
    let alone = into_one(1, config);
    assert_eq!((alone.flows[0].cnps, alone.flows[0].ecn_marks), (0, 0));
}

/// A flow alone sends at the line's rate from its first packet on, as if it had no rate.
#[test]
fn a_dcqcn_flow_alone_takes_its_idle_time() {
    let network = star(2);
    let plan = || Plan::of_messages(2, [(0, Message::new(1, Bytes(1_000_000), Time::ZERO))]);
    let records = run(network, roce(), plan());
    assert_eq!(fct(&records.flows[0]), records.flows[0].ideal_fct);
}

#[test]
fn dcqcn_is_refused_where_nothing_marks() {
    let mut config = roce();
    config.fabric.options.ecn = None;
    let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(1), Time::ZERO))]);
    let error = Simulation::new(star(2), config, plan).unwrap_err().to_string();
    let expected =
        "transport.congestion: expected a fabric that marks packets (fabric.ecn) with \"dcqcn\", found none";
    assert_eq!(error, expected);
}

/// IRN: one bandwidth-delay product in flight, and no PFC.
#[test]
fn irn_repairs_what_full_buffers_drop_and_keeps_within_its_window() {
    let mut config = SimConfig { transport: preset::find("irn").unwrap().transport(), ..roce() };
    config.fabric.flow_control = FlowControl::Lossy(Default::default());
    config.fabric.options.buffer = Some(Bytes(30_000));
    let network = star(9);
    let message = |src| (src, Message::new(8, Bytes(300_000), Time::ZERO));
    let records = run(network, config.clone(), Plan::of_messages(9, (0..8).map(message)));
    assert!(records.totals.data.dropped > 0);
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    let Congestion::Dcqcn(Dcqcn { window_bdp, .. }) = config.transport.congestion else { panic!() };
    assert_eq!(window_bdp, Some(1.0));
}

/// What a congestion control that goes by delay makes of this many flows into one host, between two instants: Jain's index, the
/// share of the line in use, and the mean queue in bytes over the whole run.
fn by_delay(congestion: Congestion, senders: u32, from: Time, until: Time) -> (f64, f64, f64) {
    let transport = Transport { congestion, ..Transport::default() };
    let mut config = SimConfig { transport, ..scheme("ecmp") };
    config.measure = Measure {
        until: Some(until),
        windows: vec![Window { name: "late".into(), from, until }],
        ..Measure::default()
    };
    let records = into_one(senders, config);
    let shares: Vec<f64> =
        records.window_flows.to_vec().unwrap().iter().map(|row| row.bytes as f64).collect();
    let gbps = shares.iter().sum::<f64>() * 8.0 / (until - from).as_secs_f64() / 1e9;
    let queue = records.channels.iter().map(|channel| channel.mean_queue).fold(0.0, f64::max);
    let seen = (jain(&shares), gbps / (40.0 * 4096.0 / 4160.0), queue);
    println!("{seen:?}");
    seen
}

#[test]
fn swift_shares_a_link_at_its_target_delay() {
    let ms = Time::from_ms;
    let (fairness, used, queue) = by_delay(Congestion::Swift(Swift::default()), 8, ms(10), ms(20));
    assert!(fairness > 0.95 && used > 0.98, "{fairness} {used}");
    // Two hops, and windows of a few packets: a target between 26 and 126 us.
    assert!((100e3..630e3).contains(&queue), "{queue}");
}

/// TIMELY has no unique fixed point, so nothing is said of its shares.
#[test]
fn timely_holds_the_delay_between_its_thresholds() {
    let ms = Time::from_ms;
    let (_, used, queue) = by_delay(Congestion::Timely(Timely::default()), 2, ms(20), ms(40));
    assert!(used > 0.9, "{used}");
    // 500 us at 40 Gb/s.
    assert!(queue < 2.5e6, "{queue}");
}
