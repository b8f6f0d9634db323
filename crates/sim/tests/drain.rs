//! The drain: what is delivered once the last source has stopped.

mod common;

use common::*;
use netloom_record::{Records, Status, Summary, SummaryOptions, Window};
use netloom_sim::{ChannelName, Degrade, Fault, Measure, SimConfig};
use netloom_units::{Bytes, Time};
use netloom_workload::{Bernoulli, Pattern, Permutation, Poisson, Uniform};

/// A run on a tapered tree some of whose links are slow, so that it drains for long, with a window over the load.
fn drains(pattern: Pattern, warm_up: Time, load: Time) -> Records {
    let network = leaf_spine(2, 2, 4);
    let slow = Degrade { links: Some(2), rate_factor: 0.05, ..Degrade::default() };
    let window = Window { name: "load".into(), from: warm_up, until: load };
    let measure = Measure {
        warm_up,
        windows: vec![window],
        channels: vec![ChannelName { name: "up".into(), from: "s0".into(), to: "s2".into(), parallel: 0 }],
        ..Measure::default()
    };
    let config = SimConfig { faults: vec![Fault::Degrade(slow)], measure, ..scheme("ecmp") };
    let plan = plan(pattern, &network, 1);
    run(network, config, plan)
}

fn summary(records: &Records, warm_up: Time) -> Summary {
    Summary::new(records, &SummaryOptions { warm_up, ..SummaryOptions::default() }, Status::Complete).unwrap()
}

#[test]
fn throughput_under_load_is_that_of_a_window_over_the_load() {
    let load = Time::from_us(100);
    let size = Bytes(20_000).into();
    for pattern in [
        Pattern::Poisson(Poisson { load: 0.5, size, duration: Some(load), ..Poisson::default() }),
        Pattern::Bernoulli(Bernoulli { load: 0.5, until: load, ..Bernoulli::default() }),
        Pattern::Uniform(Uniform { size: Bytes(20_000).into(), duration: Some(load), ..Uniform::default() }),
    ] {
        for warm_up in [Time::ZERO, Time::from_us(30)] {
            let records = drains(pattern.clone(), warm_up, load);
            assert_eq!(records.totals.load_until, Some(load));
            assert!(records.totals.simulated > load);
            let in_drain: u64 = records.flows.iter().map(|flow| flow.delivered_in_drain).sum();
            let after_warm_up: u64 = records.flows.iter().map(|flow| flow.delivered_after_warm_up).sum();
            let in_window: u64 =
                records.window_flows.to_vec().unwrap().iter().map(|record| record.bytes).sum();
            assert!(in_drain > 0);
            assert_eq!(after_warm_up - in_drain, in_window);
            let summary = summary(&records, warm_up);
            assert_eq!(summary.throughput_bps, Some(summary.windows["load"].throughput_bps));
            // The same of a channel, whose warm-up counts.
            if warm_up == Time::ZERO {
                let up = &summary.channels["up"];
                assert_eq!(up.throughput_bps, up.windows["load"].throughput_bps);
            }
            let channels = || records.channels.iter();
            assert!(channels().any(|channel| channel.busy_in_drain > Time::ZERO));
            assert!(channels().all(|channel| channel.busy_in_drain <= channel.busy));
        }
    }
}

#[test]
fn a_given_amount_is_load_until_it_is_delivered() {
    let pattern = Pattern::Permutation(Permutation { size: Bytes(20_000).into(), ..Permutation::default() });
    let records = drains(pattern, Time::ZERO, Time::from_us(100));
    assert_eq!(records.totals.load_until, None);
    assert!(records.flows.iter().all(|flow| flow.delivered_in_drain == 0));
    assert!(records.channels.iter().all(|channel| channel.bytes_in_drain == 0));
}
