//! Permutations of flows that never end, one per pair of hosts.

use netloom_sim::{Measure, SimConfig};
use netloom_topology::Network;
use netloom_units::{Bytes, Time};
use netloom_workload::{Pattern, Permutation};

use crate::common::*;
use crate::ways::Ways;
use crate::*;

/// What the flows of a run get, and the ways that they have.
type Shares = (Vec<f64>, Ways);

/// The share of a host's link that each of a permutation's endless flows gets, and the ways that it has.
fn saturate(network: &Network, mut config: SimConfig) -> Shares {
    let (from, until) = (Time::from_ms(5), Time::from_ms(15));
    config.measure = Measure { warm_up: from, until: Some(until), ..Measure::default() };
    let pattern = Pattern::Permutation(Permutation { size: Bytes(1 << 30).into(), ..Default::default() });
    let records = run(network.clone(), config.clone(), plan(pattern, network, config.seed));
    let partners: Vec<_> = records.flows.iter().map(|flow| (flow.src, flow.dst)).collect();
    let wire = config.transport.packet_size().0 as f64 / config.transport.options.mtu.0 as f64;
    let link = 10e9 * (until - from).as_secs_f64() / 8.0;
    let rates = records.flows.iter().map(|flow| flow.delivered_after_warm_up as f64 * wire / link);
    (rates.collect(), Ways::new(network, &config, &partners))
}

/// Whatever share all flows get, the program allows no more; and MPTCP over the layers gets most of it in the mean. (A single window that goes by one layer at a
/// time does not: `docs/studies-fatpaths-simulation.md`.)
#[test]
fn endless_flows_get_no_more_than_the_program_allows_and_mptcp_most_of_that() {
    for (hosts_per_switch, seed) in [(4, 1), (6, 2)] {
        for transport in ["purified", "tcp", "mptcp"] {
            let (rates, ways) = saturate(&slim_fly(hosts_per_switch), setting(transport, seed, |_| ()));
            let (least, mean, theta) = (least(&rates), mean(&rates), ways.theta);
            let told =
                format!("{transport}, {hosts_per_switch} hosts, seed {seed}: {least} {mean} of {theta}");
            println!("{told}");
            assert!(least > 0.0 && least <= theta, "{told}");
            assert!(transport != "mptcp" || mean >= 0.85 * theta.min(1.0), "{told}");
        }
    }
}

/// Flows that are on one layer at a time cannot have what the program gives flows that split as they like, not even if they shared without loss and knew the
/// best layer. Of what such flows can have purified transport misses nothing.
#[test]
fn purified_flows_get_what_ideal_sharing_of_one_layer_each_gives() {
    for (hosts_per_switch, seed) in [(4, 1), (6, 2)] {
        let network = slim_fly(hosts_per_switch);
        let share = |trims| {
            let (rates, ways) = saturate(&network, setting("purified", seed, leaves_after(trims)));
            (mean(&rates) / ways.theta, ways)
        };
        let (eager, ways) = share(1);
        let (patient, _) = share(4);
        let (spread, knowing) =
            (mean(&ways.spread()) / ways.theta, mean(&ways.as_if_they_knew()) / ways.theta);
        let told = format!("{hosts_per_switch} hosts: {eager}, {patient}; ideally {spread}, {knowing}");
        println!("{told}");
        assert!(knowing < 0.85, "{told}");
        assert!(eager >= spread && patient >= knowing, "{told}");
    }
}

/// The mean of a permutation's endless flows on purified transport whose packets each go by a layer by which one has arrived whole, and whose receivers ask for what
/// does, as a share of what the program allows.
fn recycled_share(network: &Network, seed: u64) -> f64 {
    let (rates, ways) = saturate(network, setting("purified", seed, recycled_and_adaptive));
    assert!(least(&rates) > 0.0 && least(&rates) <= ways.theta, "seed {seed}");
    mean(&rates) / ways.theta
}

/// Purified transport on several layers at once reaches 0.85 of the program, with the queues of 8 packets that it has by default.
#[test]
fn purified_flows_on_layers_that_carry_them_get_most_of_what_the_program_allows() {
    for network in networks() {
        let share = recycled_share(&network, 1);
        println!("{}: {share:.3}", network.name());
        assert!(share >= 0.85, "{}: {share}", network.name());
    }
}

/// The same in the mean of three draws of layers and permutations.
#[test]
#[ignore = "takes a minute"]
fn purified_flows_get_most_of_what_the_program_allows_on_any_layers() {
    for network in networks() {
        let shares = [1, 2, 3].map(|seed| recycled_share(&network, seed));
        println!("{}: {:.3}, {shares:.3?}", network.name(), mean(&shares));
        assert!(mean(&shares) >= 0.85, "{}: {shares:?}", network.name());
    }
}

/// The table of `docs/studies-fatpaths-simulation.md`: one part of purified transport changed at a time.
#[test]
#[ignore = "takes two minutes; prints a table"]
fn survey() {
    let networks = networks();
    let window = |packets| {
        move |config: &mut SimConfig| {
            let Congestion::Pulls(pulls) = &mut config.transport.congestion else { panic!("pulls") };
            pulls.initial_window = packets;
        }
    };
    let print = |name: &str, share: &dyn Fn(&Network, u64) -> Shares| {
        let cells = networks.iter().map(|network| {
            let shares = [1, 2, 3].map(|seed| {
                let (rates, ways) = share(network, seed);
                assert!(least(&rates) <= ways.theta, "{name}");
                [least(&rates), mean(&rates)].map(|rate| rate / ways.theta)
            });
            [0, 1].map(|which| format!("{:.2}", mean(&shares.map(|share| share[which])))).join(", ")
        });
        println!("| {name} | {} |", cells.collect::<Vec<_>>().join(" | "));
    };
    let row = |name: &str, transport: &str, change: &dyn Fn(&mut SimConfig)| {
        print(name, &|network, seed| saturate(network, setting(transport, seed, change)));
    };
    let ideal = |name: &str, rates: &dyn Fn(&Ways) -> Vec<f64>| {
        print(name, &|network, seed| {
            let (_, ways) = saturate(network, setting("purified", seed, |_| ()));
            (rates(&ways), ways)
        });
    };
    row("purified transport", "purified", &|_| ());
    for trims in [2, 3, 4, 6, 8] {
        row(&format!("leaves a layer after {trims} trims in a row"), "purified", &leaves_after(trims));
    }
    row("never", "purified", &leaves_after(u32::MAX));
    for packets in [4, 6, 12] {
        row(&format!("a window of {packets}"), "purified", &window(packets));
    }
    row("queues of 16 packets", "purified", &queues_of(16));
    row("queues of 16 packets, after 4 trims", "purified", &|config| {
        queues_of(16)(config);
        leaves_after(4)(config);
    });
    row("a layer per packet", "purified", &layer_per_packet);
    row("by a path list", "purified", &listed);
    row("by a path list, queues of 16 packets", "purified", &|config| {
        listed(config);
        queues_of(16)(config);
    });
    row("again by layers whose packets were not marked (REPS)", "purified", &recycled);
    row("the same, queues of 16 packets, marks from 8 on", "purified", &|config| {
        recycled(config);
        queues_of(16)(config);
        config.fabric.options.ecn =
            Some(Ecn { kmin: Bytes(72_000), kmax: Bytes(72_000), pmax: 1.0, mark: Default::default() });
    });
    row("another layer after a round trip with marks (FlowBender)", "purified", &bent);
    row("another layer after round trips that take long, in order (flowcuts)", "purified", &|config| {
        config.routing.granularity = Granularity::Flowcut(Default::default());
    });
    row("again by layers whose packets arrived whole", "purified", &recycled_whole);
    row("the same, queues of 16 packets", "purified", &|config| {
        recycled_whole(config);
        queues_of(16)(config);
    });
    row("the same, a window of 16 and queues of 16 packets", "purified", &|config| {
        recycled_whole(config);
        queues_of(16)(config);
        window(16)(config);
    });
    row("pulls for what arrives whole", "purified", &adaptive);
    row("both", "purified", &recycled_and_adaptive);
    row("both, queues of 16 packets", "purified", &|config| {
        recycled_and_adaptive(config);
        queues_of(16)(config);
    });
    row("TCP", "tcp", &|_| ());
    row("MPTCP", "mptcp", &|_| ());
    ideal("ideal sharing of all layers alike", &Ways::spread);
    ideal("ideal sharing by flows that know the best layer", &Ways::as_if_they_knew);
}
