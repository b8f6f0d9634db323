//! What queueing theory and combinatorics predict.

mod common;

use common::*;
use netloom_sim::SimConfig;
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Pattern, Plan, Poisson};

/// Mean waiting time of single packets that arrive at a NIC as a Poisson process, in units of a packet's transmission time.
fn mean_wait(load: f64) -> f64 {
    let network = crossbar(2);
    let mut config = SimConfig { transport: unlimited(), ..scheme("ecmp") };
    // The other direction's ACKs must not take part in the queue.
    config.transport.options.ack_size = Bytes(1);
    let (mut waited, mut packets) = (0u64, 0u64);
    for seed in 0..10 {
        let pattern = Pattern::Poisson(Poisson {
            // The load of a workload counts payload.
            load: load * 4096.0 / 4160.0,
            size: Bytes(4096).into(),
            messages_per_host: Some(200_000),
            ..Poisson::default()
        });
        for flow in run(network.clone(), config.clone(), plan(pattern, &network, seed)).flows {
            waited += (fct(&flow) - flow.ideal_fct).0;
            packets += 1;
        }
    }
    waited as f64 / packets as f64 / Rate::from_gbps(200).serialize(Bytes(4160)).0 as f64
}

#[test]
fn a_nic_is_an_m_d_1_queue() {
    for load in [0.5, 0.8, 0.9] {
        // Pollaczek-Khinchine with constant service.
        let theory = load / (2.0 * (1.0 - load));
        let measured = mean_wait(load);
        assert!((measured / theory - 1.0).abs() < 0.02, "load {load}: {measured} against {theory}");
    }
}

/// P(max load <= k) of `balls` thrown into `bins`, by the exponential generating function (Σ_{j<=k} x^j / j!)^bins.
fn max_load_cdf(balls: usize, bins: usize, k: usize) -> f64 {
    // Coefficients scaled so that one bin's are those of Poisson(balls / bins): nothing overflows.
    let mean = balls as f64 / bins as f64;
    let poisson: Vec<f64> = (0..=balls)
        .scan((-mean).exp(), |term, j| {
            let now = *term;
            *term *= mean / (j + 1) as f64;
            Some(now)
        })
        .collect();
    let convolve = |all: &[f64], limit: usize| -> Vec<f64> {
        (0..=balls).map(|n| (0..=n.min(limit)).map(|j| poisson[j] * all[n - j]).sum()).collect()
    };
    let power = |limit: usize| {
        let mut all = vec![0.0; balls + 1];
        all[0] = 1.0;
        for _ in 0..bins {
            all = convolve(&all, limit);
        }
        all[balls]
    };
    power(k) / power(balls)
}

#[test]
fn ecmp_loads_the_uplinks_like_balls_in_bins() {
    let (hosts, spines, runs) = (32, 8, 400);
    let network = leaf_spine(2, spines, hosts);
    let mut seen = vec![0usize; hosts as usize + 1];
    for seed in 0..runs {
        let message = |src| (src, Message::new(src + hosts, Bytes(100), Time(0)));
        let messages = Plan::of_messages(2 * hosts, (0..hosts).map(message));
        let records = run(network.clone(), SimConfig { seed, ..scheme("ecmp") }, messages);
        // Up links of the first leaf carry data only: one packet per flow.
        let leaf = network.node_name(network.edge_switch(0));
        let up = records
            .channels
            .iter()
            .filter(|channel| *channel.from == *leaf && &*channel.tier == "leaf-spine");
        let loads: Vec<u64> = up.map(|channel| channel.packets).collect();
        assert_eq!((loads.len(), loads.iter().sum::<u64>()), (spines as usize, u64::from(hosts)));
        seen[*loads.iter().max().unwrap() as usize] += 1;
    }
    // Kolmogorov-Smirnov at the 0.1% level.
    let mut cumulative = 0;
    for (k, count) in seen.iter().enumerate() {
        cumulative += count;
        let distance =
            (cumulative as f64 / runs as f64 - max_load_cdf(hosts as usize, spines as usize, k)).abs();
        assert!(distance < 1.95 / (runs as f64).sqrt(), "at {k}: {distance}");
    }
}

#[test]
fn two_saturated_flows_get_half_of_a_link_each() {
    let network = crossbar(3);
    let message = |src| (src, Message::new(2, Bytes(4 << 20), Time(0)));
    let records = run(network.clone(), scheme("ecmp"), Plan::of_messages(3, [0, 1].map(message)));
    for flow in &records.flows {
        let share = flow.ideal_fct.as_secs_f64() / fct(flow).as_secs_f64();
        assert!((share - 0.5).abs() < 0.01, "{share}");
    }
}
