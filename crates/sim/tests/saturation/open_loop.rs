//! Saturation throughput: messages come at random times for every pair of a permutation, whatever the network does, and the question is how many it still
//! carries away (Dally and Towles, Principles and Practices of Interconnection Networks, chapter 23: an open loop, and every pair must get what it offers).

use netloom_sim::{Measure, SimConfig};
use netloom_topology::Network;
use netloom_units::{Bytes, Time};
use netloom_workload::{Pattern, Poisson, Traffic};

use crate::common::*;
use crate::ways::Ways;
use crate::*;

/// What is offered: messages of a size, so many that each pair has `messages` of them in either half of the run. The later half counts.
#[derive(Clone, Copy)]
struct Offer {
    size: u64,
    messages: f64,
}

const MIB: Offer = Offer { size: 1 << 20, messages: 100.0 };

/// How what waits or is under way grows in the later half, in messages.
struct Growth {
    /// Of each pair.
    of_pairs: Vec<f64>,
    /// What each pair is expected to offer in that time.
    expected: f64,
}

impl Growth {
    fn worst(&self) -> f64 {
        self.of_pairs.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }

    /// Of all pairs together, as a share of what they offer.
    fn total(&self) -> f64 {
        mean(&self.of_pairs) / self.expected
    }

    /// Whether every pair gets what it offers: none falls behind by more than two standard deviations of its arrivals, nor all together by more than a fiftieth.
    ///
    /// Single queues with a constant rate of service, which are saturated at 1 by definition, are so by this rule from 0.95 on, and never at 0.9.
    fn is_accepted(&self) -> bool {
        self.worst() <= 2.0 * self.expected.sqrt() && self.total() <= 0.02
    }
}

/// By how much of a host's link every host can send to its partner in the permutation that a seed stands for.
fn theta(network: &Network, config: &SimConfig) -> f64 {
    let records = run(network.clone(), config.clone(), permutation(1, network, config.seed));
    let partners: Vec<_> = records.flows.iter().map(|flow| (flow.src, flow.dst)).collect();
    Ways::new(network, config, &partners).theta
}

/// Offers every pair of the permutation a load, as a share of a host's link with headers.
fn offer(network: &Network, mut config: SimConfig, load: f64, offer: Offer) -> Growth {
    let options = &config.transport.options;
    let payload = load * options.mtu.0 as f64 / config.transport.packet_size().0 as f64;
    let half = offer.messages * offer.size as f64 * 8.0 / (payload * 10e9);
    let [half, whole] = [half, 2.0 * half].map(|seconds| Time((seconds * 1e12) as u64));
    config.measure = Measure { warm_up: half, until: Some(whole), ..Measure::default() };
    let pattern = Pattern::Poisson(Poisson {
        load: payload,
        size: Bytes(offer.size).into(),
        duration: Some(whole),
        traffic: Traffic::RandomPermutation,
        ..Default::default()
    });
    let plan = plan(pattern, network, config.seed);
    let mut of_pairs = vec![0.0; network.hosts() as usize];
    for flow in run(network.clone(), config, plan).flows {
        let offered = if flow.start >= half { flow.bytes } else { 0 };
        let growth = offered as f64 - flow.delivered_after_warm_up as f64;
        of_pairs[flow.src as usize] += growth / offer.size as f64;
    }
    Growth { of_pairs, expected: offer.messages }
}

/// The largest load, as a share of what the program allows, at which every pair gets what it offers: of 0.05, 0.1, … 1.1, the last of which none should carry.
/// The search begins at a guess, as most of its time goes into loads that are none too small.
fn saturation(network: &Network, config: &SimConfig, guess: f64) -> f64 {
    let theta = theta(network, config);
    let share = |twentieths: u32| f64::from(twentieths) / 20.0;
    let carries = |load| offer(network, config.clone(), share(load) * theta, MIB).is_accepted();
    let mut load = (guess * 20.0).round() as u32;
    if carries(load) {
        while load < 22 && carries(load + 1) {
            load += 1;
        }
    } else {
        load -= 1;
        while load > 0 && !carries(load) {
            load -= 1;
        }
    }
    share(load)
}

/// The table of `docs/studies-fatpaths-simulation.md`.
#[test]
#[ignore = "takes an hour; prints a table"]
fn survey() {
    let networks = networks();
    let row = |name: &str, transport: &str, seeds: &[u64], guess: f64, change: &dyn Fn(&mut SimConfig)| {
        let cells = networks.iter().map(|network| {
            let mut guess = guess;
            let found = seeds.iter().map(|&seed| {
                guess = saturation(network, &setting(transport, seed, change), guess);
                assert!(guess <= 1.0, "{name}, seed {seed}: more than the program allows");
                format!("{guess:.2}")
            });
            found.collect::<Vec<_>>().join(", ")
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    };
    row("purified transport", "purified", &[1, 2, 3], 0.65, &|_| ());
    row("leaves a layer after 4 trims in a row", "purified", &[1], 0.75, &leaves_after(4));
    row("queues of 16 packets", "purified", &[1], 0.75, &queues_of(16));
    row("queues of 16 packets, after 4 trims", "purified", &[1], 0.8, &|config| {
        queues_of(16)(config);
        leaves_after(4)(config);
    });
    row("a layer per packet", "purified", &[1], 0.65, &layer_per_packet);
    row("TCP", "tcp", &[1], 0.7, &|_| ());
    row("MPTCP", "mptcp", &[1], 0.8, &|_| ());
}

/// How the worst pair's backlog and that of all grow with the load, with twice the time, and with longer messages.
#[test]
#[ignore = "takes minutes; prints a table"]
fn curves() {
    let curve = |name: &str, network: &Network, config: &SimConfig, what: Offer| {
        let theta = theta(network, config);
        for tenths in 3..=11 {
            let growth = offer(network, config.clone(), f64::from(tenths) / 10.0 * theta, what);
            let (worst, total) = (growth.worst() / growth.expected, growth.total());
            println!(
                "| {name} | {theta:.2} | {:.1} | {worst:.2} | {total:.3} | {} |",
                f64::from(tenths) / 10.0,
                growth.is_accepted()
            );
        }
    };
    let (network, config) = (slim_fly(4), setting("purified", 1, |_| ()));
    curve("1 MiB", &network, &config, MIB);
    curve("1 MiB, twice as long", &network, &config, Offer { messages: 200.0, ..MIB });
    curve("4 MiB", &network, &config, Offer { size: 4 << 20, ..MIB });
}
