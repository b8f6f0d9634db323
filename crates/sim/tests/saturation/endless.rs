//! Permutations of flows that never end, one per pair of hosts.

use netloom_sim::{Measure, SimConfig};
use netloom_topology::Network;
use netloom_transport::Congestion;
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
    row("TCP", "tcp", &|_| ());
    row("MPTCP", "mptcp", &|_| ());
    ideal("ideal sharing of all layers alike", &Ways::spread);
    ideal("ideal sharing by flows that know the best layer", &Ways::as_if_they_knew);
}
