//! Saturation throughput: messages come at random times for every pair of a permutation, whatever the network does, and the question is how many it still
//! carries away (Dally and Towles, Principles and Practices of Interconnection Networks, chapter 23: an open loop, and every pair must get what it offers).

use netloom_sim::{Measure, SimConfig};
use netloom_topology::Network;
use netloom_units::{Bytes, Time};
use netloom_workload::{Pattern, Plan, Poisson, Traffic};

use crate::common::*;
use crate::ideal::{Choice, Fluid};
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

/// The ways of the pairs in the permutation that a seed stands for.
fn ways(network: &Network, config: &SimConfig) -> Ways {
    let records = run(network.clone(), config.clone(), permutation(1, network, config.seed));
    let partners: Vec<_> = records.flows.iter().map(|flow| (flow.src, flow.dst)).collect();
    Ways::new(network, config, &partners)
}

/// Messages for every pair of the permutation at a load, as a share of a host's link without headers, for the time in which half of what is offered comes, twice.
fn messages(network: &Network, seed: u64, load: f64, offer: Offer) -> (Plan, Time) {
    let half = Time((offer.messages * offer.size as f64 * 8.0 / (load * 10e9) * 1e12) as u64);
    let pattern = Pattern::Poisson(Poisson {
        load,
        size: Bytes(offer.size).into(),
        duration: Some(half * 2),
        traffic: Traffic::RandomPermutation,
        ..Default::default()
    });
    (plan(pattern, network, seed), half)
}

/// Offers every pair a load, as a share of a host's link with headers.
fn offer(network: &Network, mut config: SimConfig, load: f64, offer: Offer) -> Growth {
    let options = &config.transport.options;
    let payload = load * options.mtu.0 as f64 / config.transport.packet_size().0 as f64;
    let (plan, half) = messages(network, config.seed, payload, offer);
    config.measure = Measure { warm_up: half, until: Some(half * 2), ..Measure::default() };
    let mut of_pairs = vec![0.0; network.hosts() as usize];
    for flow in run(network.clone(), config, plan).flows {
        let offered = if flow.start >= half { flow.bytes } else { 0 };
        let growth = offered as f64 - flow.delivered_after_warm_up as f64;
        of_pairs[flow.src as usize] += growth / offer.size as f64;
    }
    Growth { of_pairs, expected: offer.messages }
}

/// The same if all that counts is on which layer each message goes.
fn offer_ideally(
    network: &Network,
    seed: u64,
    ways: &Ways,
    load: f64,
    choice: Choice,
    offer: Offer,
) -> Growth {
    let (mut plan, half) = messages(network, seed, load, offer);
    let unit = offer.size as f64 * 8.0 / 10e9;
    let mut arrivals = Vec::new();
    for (pair, work) in plan.hosts.iter_mut().enumerate() {
        let messages = std::iter::from_fn(|| work.next_timed());
        arrivals.extend(messages.map(|message| (message.start.as_secs_f64() / unit, pair)));
    }
    arrivals.sort_by(|a, b| a.partial_cmp(b).unwrap());
    let half = half.as_secs_f64() / unit;
    let (early, late) = arrivals.split_at(arrivals.partition_point(|&(at, _)| at < half));
    let mut fluid = Fluid::new(ways, choice);
    let before = fluid.backlogs(0.0, half, early);
    let after = fluid.backlogs(half, half * 2.0, late);
    Growth {
        of_pairs: after.iter().zip(before).map(|(after, before)| after - before).collect(),
        expected: offer.messages,
    }
}

/// The largest load, as a share of what the program allows, at which every pair gets what it offers: of 0.05, 0.1, … 1.1, the last of which none should carry.
/// The search begins at a guess, as most of its time goes into loads that are none too small.
fn saturation(guess: f64, offer: impl Fn(f64) -> Growth) -> f64 {
    let share = |twentieths: u32| f64::from(twentieths) / 20.0;
    let carries = |load| offer(share(load)).is_accepted();
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
    assert!(load <= 20, "more than the program allows");
    share(load)
}

/// The table of `docs/studies-fatpaths-simulation.md`.
#[test]
#[ignore = "takes hours; prints a table"]
fn survey() {
    let networks = networks();
    let print = |name: &str, seeds: &[u64], guess: f64, found: &dyn Fn(&Network, u64, f64) -> f64| {
        let cells = networks.iter().map(|network| {
            let mut guess = guess;
            let found = seeds.iter().map(|&seed| {
                guess = found(network, seed, guess);
                format!("{guess:.2}")
            });
            found.collect::<Vec<_>>().join(", ")
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    };
    let ideal = |name: &str, guess: f64, choice: Choice| {
        print(name, &[1], guess, &|network, seed, guess| {
            let ways = ways(network, &setting("purified", seed, |_| ()));
            let offer = |share| offer_ideally(network, seed, &ways, share * ways.theta, choice, MIB);
            saturation(guess, offer)
        });
    };
    let row = |name: &str, transport: &str, seeds: &[u64], guess: f64, change: &dyn Fn(&mut SimConfig)| {
        print(name, seeds, guess, &|network, seed, guess| {
            let config = setting(transport, seed, change);
            let theta = ways(network, &config).theta;
            saturation(guess, |share| offer(network, config.clone(), share * theta, MIB))
        });
    };
    ideal("ideal sharing, layers in turn", 0.4, Choice::InTurn);
    ideal("ideal sharing, the best layer", 0.85, Choice::Best);
    row("purified transport", "purified", &[1, 2, 3], 0.65, &|_| ());
    row("leaves a layer after 4 trims in a row", "purified", &[1], 0.65, &leaves_after(4));
    row("queues of 16 packets", "purified", &[1], 0.65, &queues_of(16));
    row("queues of 16 packets, after 4 trims", "purified", &[1], 0.65, &|config| {
        queues_of(16)(config);
        leaves_after(4)(config);
    });
    row("messages begin on a drawn layer", "purified", &[1], 0.6, &drawn_at_first);
    row("a layer per packet", "purified", &[1], 0.65, &layer_per_packet);
    row("a layer per packet, by a path list", "purified", &[1], 0.65, &listed);
    row(
        "a layer per packet, those whose packets were not marked again (REPS)",
        "purified",
        &[1],
        0.7,
        &recycled,
    );
    row(
        "by layers whose packets arrived whole, adaptive pulls",
        "purified",
        &[1],
        0.75,
        &recycled_and_adaptive,
    );
    row("TCP", "tcp", &[1], 0.7, &|_| ());
    row("MPTCP", "mptcp", &[1], 0.7, &|_| ());
}

/// How the worst pair's backlog and that of all grow with the load, and near saturation with twice the time, and with longer messages.
#[test]
#[ignore = "takes minutes; prints a table"]
fn curves() {
    let (network, config) = (slim_fly(4), setting("purified", 1, |_| ()));
    let theta = ways(&network, &config).theta;
    let curve = |name: &str, twentieths: &mut dyn Iterator<Item = u32>, what: Offer| {
        for share in twentieths.map(|twentieths| f64::from(twentieths) / 20.0) {
            let growth = offer(&network, config.clone(), share * theta, what);
            let (worst, total) = (growth.worst() / growth.expected, growth.total());
            println!("| {name} | {share:.2} | {worst:.2} | {total:.3} | {} |", growth.is_accepted());
        }
    };
    curve("4 MiB", &mut (12..15), Offer { size: 4 << 20, ..MIB });
    curve("1 MiB, twice as long", &mut (12..15), Offer { messages: 200.0, ..MIB });
    curve("1 MiB", &mut (6..23).step_by(2), MIB);
}

/// A fifth of the messages of the surveys is enough to tell loads apart that are far from saturation.
const FEW: Offer = Offer { messages: 20.0, ..MIB };

/// A single window that draws its layers leaves those that are full, and so carries more than if messages took them in turn; and less than if each were on the one
/// with the fewest messages at its fullest link. Nothing carries more than the program allows. (Where each ends: `docs/studies-fatpaths-simulation.md`.)
#[test]
fn purified_transport_carries_more_than_even_layers_and_less_than_the_best_ones() {
    let (network, config) = (slim_fly(4), setting("purified", 1, |_| ()));
    let ways = ways(&network, &config);
    let purified = |share| offer(&network, config.clone(), share * ways.theta, FEW);
    let ideally = |share, choice| offer_ideally(&network, 1, &ways, share * ways.theta, choice, FEW);
    let cases = [
        (0.55, [Some(true), Some(false), None]),
        (0.7, [Some(false), None, Some(true)]),
        (1.1, [Some(false), None, Some(false)]),
    ];
    for (share, expected) in cases {
        let growths: [&dyn Fn() -> Growth; 3] =
            [&|| purified(share), &|| ideally(share, Choice::InTurn), &|| ideally(share, Choice::Best)];
        for (growth, expected) in growths.iter().zip(expected) {
            let Some(expected) = expected else { continue };
            let growth = growth();
            assert_eq!(growth.is_accepted(), expected, "{share}: {} {}", growth.worst(), growth.total());
        }
    }
}
