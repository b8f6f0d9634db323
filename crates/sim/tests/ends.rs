//! When runs end, and what they say of their last moments.

mod common;

use std::time::{Duration, Instant};

use common::*;
use netloom_fabric::{Ecn, Qcn};
use netloom_sim::{SimConfig, Simulation};
use netloom_transport::congestion::cubic::Cubic;
use netloom_transport::congestion::dcqcn::Dcqcn;
use netloom_transport::congestion::qcn::Qcn as Reaction;
use netloom_transport::reorder::buffer::Buffer;
use netloom_transport::{Congestion, Reorder};
use netloom_units::{Bytes, Time};
use netloom_workload::{Bernoulli, Incast, Message, Pattern, Permutation, Plan};

const US: u64 = 1_000_000;

/// 64 B of header on 4096 B of payload, 200 Gb/s.
const PACKET: u64 = 166_400;

/// All send to the first host, which marks and notifies early.
fn congested(congestion: Congestion) -> SimConfig {
    let mut config = scheme("ecmp");
    config.fabric.options.ecn =
        Some(Ecn { kmin: Bytes(5_000), kmax: Bytes(50_000), pmax: 0.5, mark: Default::default() });
    if matches!(congestion, Congestion::Qcn(_)) {
        let eager = Qcn { q_eq: Some(Bytes(8_000)), sample_base: Bytes(16_000), ..Qcn::default() };
        config.fabric.options.qcn = Some(eager);
    }
    config.transport.congestion = congestion;
    config
}

/// Timers that outlast all work by milliseconds or a second: rate limiters on their way back to the line's rate, a SYN's timeout, a reorder buffer's. A look every nanosecond, or a step of each of them, would take
/// minutes.
#[test]
fn no_timer_keeps_a_run_and_its_series_alive() {
    let incast = Pattern::Incast(Incast { size: Bytes(200_000).into(), ..Incast::default() });
    let mut cubic = congested(Congestion::Cubic(Cubic::default()));
    cubic.transport.options.handshake = true;
    cubic.transport.options.rto_initial = Time::from_ms(1000);
    let mut held = congested(Congestion::None(Default::default()));
    let buffer = Buffer { timeout: Time::from_ms(1000), ..Buffer::default() };
    held.transport.options.reorder = Reorder::Buffer(buffer);
    held.routing = scheme("spray").routing;
    let limited = Reaction { r_min: Some(netloom_units::Rate::from_gbps(10)), ..Reaction::default() };
    let cases = [("cubic", cubic), ("reorder", held), ("qcn", congested(Congestion::Qcn(limited)))];
    for (name, mut config) in cases {
        config.measure.sample = Some(Time::from_ns(1));
        config.measure.sample_flows = Some(Time::from_ns(1));
        let network = crossbar(9);
        let began = Instant::now();
        let (records, late) = run_to_its_end(
            Simulation::new(network.clone(), config, plan(incast.clone(), &network, 1)).unwrap(),
        );
        assert!(began.elapsed() < Duration::from_secs(60), "{name}: {:?}", began.elapsed());
        assert!(records.totals.simulated < Time::from_ms(5), "{name}: {}", records.totals.simulated);
        assert!(late <= 2 * records.flows.len(), "{name}: {late} windows after the end");
        let last = records.samples.to_vec().unwrap().last().unwrap().time;
        assert!(last <= records.totals.simulated, "{name}: {last}");
        if name == "qcn" {
            assert!(records.flows.iter().any(|flow| flow.cnms > 0), "nothing was notified");
        }
    }
}

/// A stream has no end; its rate comes back when there is something to send, and not by timers in the meantime.
#[test]
fn idle_streams_set_no_timers() {
    let load = Time::from_us(100);
    let pattern = Pattern::Bernoulli(Bernoulli { load: 0.9, until: load, ..Bernoulli::default() });
    let config = congested(Congestion::Dcqcn(Dcqcn::default()));
    let network = crossbar(9);
    let (records, late) =
        run_to_its_end(Simulation::new(network.clone(), config, plan(pattern, &network, 1)).unwrap());
    assert!(records.flows.iter().any(|flow| flow.cnps > 0), "nothing was notified");
    assert!(late <= records.flows.len(), "{late} windows after the end");
}

/// What is in the last interval when the run ends is of the run's end.
#[test]
fn series_end_with_the_run() {
    for (interval, until) in [(13, None), (3, Some(Time::from_us(7)))] {
        let mut config = SimConfig { transport: unlimited(), ..scheme("ecmp") };
        config.measure.sample = Some(Time::from_us(interval));
        config.measure.sample_flows = Some(Time::from_us(interval));
        config.measure.sample_senders = Some(Time::from_us(interval));
        config.measure.until = until;
        let network = crossbar(4);
        let pattern =
            Pattern::Permutation(Permutation { size: Bytes(200_000).into(), ..Permutation::default() });
        let records = run(network.clone(), config, plan(pattern, &network, 1));
        let end = records.totals.simulated;
        assert!(!end.0.is_multiple_of(interval * US));
        let (samples, flows) = (records.samples.to_vec().unwrap(), records.flow_samples.to_vec().unwrap());
        let senders = records.sender_samples.to_vec().unwrap();
        assert_eq!((samples.last().unwrap().time, flows.last().unwrap().time), (end, end));
        assert_eq!(senders.last().unwrap().time, end);
        let bytes: u64 = samples.iter().map(|sample| sample.bytes).sum();
        assert_eq!(bytes, records.channels.iter().map(|channel| channel.bytes).sum::<u64>());
        let delivered: u64 = flows.iter().map(|sample| sample.bytes).sum();
        assert_eq!(delivered, records.flows.iter().map(|flow| flow.delivered).sum::<u64>());
    }
}

/// A transmission that the end of the run cuts counts as far as it has come, and a late start is not taken for an idle network.
#[test]
fn utilisation_is_of_the_run_and_of_the_time_in_which_something_was_active() {
    let network = crossbar(2);
    let (start, until) = (Time::from_us(2), Time::from_us(10));
    let mut config = SimConfig { transport: unlimited(), ..scheme("ecmp") };
    config.measure.until = Some(until);
    let message = Message::new(1, Bytes(1_000_000), start);
    let records = run(network, config, Plan::of_messages(2, [(0, message)]));
    assert_eq!((records.totals.active_from, records.totals.active_until), (Some(start), until));
    assert_eq!((records.totals.active(), records.totals.makespan), (Time::from_us(8), None));
    let [up, down] = [0, 1]
        .map(|place| records.channels.iter().filter(|channel| channel.packets > 40).nth(place).unwrap());
    assert_eq!((up.busy, up.utilisation, up.active_utilisation), (Time::from_us(8), 0.8, 1.0));
    // The first packet starts there when all of it has come.
    let idle = start.0 + PACKET + US;
    assert_eq!(down.busy, Time(until.0 - idle));
    assert!(down.active_utilisation < 1.0 && down.utilisation < down.active_utilisation);
}

/// A transmission over the end of the load is in the drain as far as it lies there.
#[test]
fn the_drain_begins_in_the_middle_of_a_transmission() {
    let load = Time::from_us(50);
    let pattern = Pattern::Bernoulli(Bernoulli { load: 1.0, until: load, ..Bernoulli::default() });
    let config = SimConfig { transport: unlimited(), ..scheme("ecmp") };
    let network = crossbar(5);
    let records = run(network.clone(), config, plan(pattern, &network, 1));
    assert_eq!(records.totals.load_until, Some(load));
    for channel in &records.channels {
        assert!(channel.busy - channel.busy_in_drain <= load, "{channel:?}");
        assert!(channel.active_utilisation <= 1.0, "{channel:?}");
        // Were it by packets, both would be whole numbers of them.
        let whole = channel.rate.serialize(Bytes(channel.bytes_in_drain));
        assert!(channel.busy_in_drain >= whole && channel.busy_in_drain.0 - whole.0 < PACKET, "{channel:?}");
    }
    let over = |channel: &&netloom_record::ChannelRecord| {
        channel.busy_in_drain > channel.rate.serialize(Bytes(channel.bytes_in_drain))
    };
    assert!(
        records.channels.iter().any(|channel| over(&channel)),
        "no transmission lasted over the end of the load"
    );
}
