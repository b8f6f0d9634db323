//! Completion times that packets have as well, or that can be computed by hand.

mod support;

use std::collections::{BTreeSet, VecDeque};

use netloom_flow::FlowRun;
use netloom_record::FlowRecord;
use netloom_routing::{Granularity, Selector, preset};
use netloom_sim::{ChannelEnds, Cut, Degrade, Fault, SimConfig};
use netloom_topology::{Complete, HostId, Network, Topology};
use netloom_units::Time;
use support::common::*;
use support::{flow_by_flow, free, messages};

const US: u64 = 1_000_000;

/// 64 B of header on 4096 B of payload, 200 Gb/s.
const PACKET: u64 = 166_400;

/// How many links a minimal path has.
fn distance(network: &Network, src: HostId, dst: HostId) -> usize {
    let mut reached = vec![usize::MAX; network.nodes() as usize];
    let mut queue = VecDeque::from([(src, 0)]);
    while let Some((node, links)) = queue.pop_front() {
        if reached[node as usize] <= links {
            continue;
        }
        reached[node as usize] = links;
        queue.extend(
            (0..network.ports(node).len()).map(|port| (network.neighbour(node, port as u16), links + 1)),
        );
    }
    reached[dst as usize]
}

/// From host 0 to the nearest host, to the one that is farthest away, and to another one.
fn pairs(network: &Network) -> [(HostId, HostId); 3] {
    let far = |&dst: &HostId| (distance(network, 0, dst), dst);
    let nearest = (1..network.hosts()).min_by_key(far).unwrap();
    let farthest = (1..network.hosts()).max_by_key(far).unwrap();
    [(0, nearest), (0, farthest), (network.hosts() - 1, network.hosts() / 2)]
}

/// One flow, of a byte, of a packet, and of many with a short one at the end, over each scheme that is run, on each family.
#[test]
fn a_flow_that_is_alone_takes_as_long_as_its_packets() {
    let (mut farthest, mut schemes) = (0, BTreeSet::new());
    for family in families::all() {
        let network = families::build(&family, 1);
        let pairs = pairs(&network);
        farthest = farthest.max(distance(&network, pairs[1].0, pairs[1].1));
        // Valiant's paths are of several lengths, and so are those of a UGAL that a single packet in a queue sends on a detour.
        let has_one_length = |preset: &&preset::Preset| {
            !matches!(preset.routing().selector, Selector::Valiant(_)) && preset.name != "ugal-artefact-df"
        };
        for preset in preset::PRESETS.iter().filter(has_one_length) {
            for (src, dst) in pairs {
                for bytes in [1, 4096, 300 * 4096 + 17] {
                    let plan = || messages(&network, &[(src, dst, bytes, 5 * US)]);
                    if FlowRun::check(network.clone(), free(preset.name), plan()).is_err() {
                        continue;
                    }
                    schemes.insert(preset.name);
                    let flows = flow_by_flow(&network, free(preset.name), plan()).flows;
                    let packets = run(network.clone(), free(preset.name), plan()).flows;
                    let said =
                        format!("{} on {}, {bytes} B from {src} to {dst}", preset.name, network.name());
                    assert_eq!(flows.len(), 1);
                    assert_eq!(
                        (flows[0].ideal_fct, flows[0].start),
                        (packets[0].ideal_fct, packets[0].start)
                    );
                    assert_eq!(fct(&flows[0]), fct(&packets[0]), "{said}");
                    assert_eq!(flows[0].sender_fct, packets[0].sender_fct, "{said}, until its sender knows");
                    assert_eq!(flows[0].delivered, bytes);
                }
            }
        }
    }
    assert!(farthest >= 6, "{farthest}");
    assert!(schemes.len() >= 12, "{schemes:?}");
}

/// Schemes that choose a path for each packet among layers, k shortest paths or intermediate switches. Paths differ in length, and the packets on the longest ones arrive last.
#[test]
fn a_flow_over_paths_with_numbers_ends_with_the_slowest_of_them() {
    let packet = Granularity::Packet(Default::default());
    let mut runs = 0;
    for family in families::all() {
        let network = families::build(&family, 1);
        for name in ["fatpaths", "k-shortest", "valiant"] {
            let config = || {
                let mut config = free(name);
                config.routing.granularity = packet.clone();
                config
            };
            let (src, dst) = pairs(&network)[1];
            let plan = || messages(&network, &[(src, dst, 3000 * 4096, 0)]);
            if FlowRun::check(network.clone(), config(), plan()).is_err() {
                continue;
            }
            let flow = fct(&flow_by_flow(&network, config(), plan()).flows[0]);
            let packets = fct(&run(network.clone(), config(), plan()).flows[0]);
            // None of the last packets need take the longest path, and some wait for each other where paths meet.
            runs += 1;
            let ratio = flow.0 as f64 / packets.0 as f64;
            assert!((ratio - 1.0).abs() < 0.005, "{name} on {}: {flow} instead of {packets}", network.name());
        }
    }
    assert!(runs > 50, "{runs}");
}

/// All hosts of each of six switches, which are joined all to all, send to the next switch. Minimal paths are one link for three flows. Over an intermediate switch each
/// flow has a quarter of itself on each of two times four links, and a link that does not join neighbours has quarters of three flows on their first
/// hop and of three on their second: 3/2 in all.
#[test]
fn valiant_relieves_the_links_between_neighbours() {
    let topology = Complete { switches: 6, hosts_per_switch: Some(3), ..Complete::default() };
    let network = build(Topology::Complete(topology));
    let list: Vec<_> = (0..18).map(|src| (src, (src + 3) % 18, 100 * 4096, 0)).collect();
    for (name, sharing, links) in [("ecmp", 3.0, 3), ("valiant", 1.5, 4)] {
        let flows = flow_by_flow(&network, free(name), messages(&network, &list)).flows;
        let bits = (100.0 * PACKET as f64 * sharing) as u64;
        let expected = Time(bits + (links - 1) * PACKET + links * US);
        assert!(
            flows.iter().all(|flow| fct(flow).0.abs_diff(expected.0) <= 1),
            "{name}: {expected}, {flows:?}"
        );
    }
}

/// All six hosts of each of six switches, which are joined all to all, send to the next switch: the links between neighbours give each flow a sixth. What each
/// flow then takes over the four other switches is on three flows' first hop and on three flows' second one at each of the other links, so these give it a third more.
#[test]
fn ugal_takes_minimal_paths_and_what_else_there_is() {
    let topology = Complete { switches: 6, hosts_per_switch: Some(6), ..Complete::default() };
    let network = build(Topology::Complete(topology));
    let list: Vec<_> = (0..36).map(|src| (src, (src + 6) % 36, 400 * 4096, 0)).collect();
    let plan = || messages(&network, &list);
    let flows = flow_by_flow(&network, free("ugal-l"), plan()).flows;
    let expected = Time(400 * PACKET * 2 + 2 * PACKET + 3 * US);
    assert!(flows.iter().all(|flow| fct(flow).0.abs_diff(expected.0) <= 1), "{expected}, {flows:?}");
    // Packets also choose what is not the best, as a switch sees its own queues only.
    let mean = |flows: &[FlowRecord]| flows.iter().map(|flow| fct(flow).0 as f64).sum::<f64>() / 36.0;
    let ratio = mean(&run(network.clone(), free("ugal-l"), plan()).flows) / mean(&flows);
    assert!((1.0..1.25).contains(&ratio), "{ratio}");
    // Once decided, a flow keeps its path, by queues that do not exist here.
    let mut config = free("ugal-l");
    config.routing.granularity = Granularity::Flow(Default::default());
    let refused = FlowRun::check(network.clone(), config, plan()).unwrap_err().to_string();
    assert!(refused.contains("found \"ugal\" per flow"), "{refused}");
}

/// Flows of n packets into one host, all from the start: each has its part of the host's link to the end, and the last bits of all come then and cross
/// that link, and the packet of each before it the others.
#[test]
fn flows_into_one_host_share_its_link() {
    for senders in [2, 3, 7] {
        let network = crossbar(8);
        let list: Vec<_> = (1..=senders).map(|src| (src, 0, 100 * 4096, US)).collect();
        let flows = flow_by_flow(&network, free("ecmp"), messages(&network, &list)).flows;
        let expected = Time(u64::from(senders) * 100 * PACKET + PACKET + 2 * US);
        assert_eq!(flows.iter().map(fct).collect::<Vec<_>>(), vec![expected; senders as usize]);
    }
}

/// The shorter of two flows ends when twice its bits have passed, and the longer one has the link for itself from then on.
#[test]
fn a_flow_is_faster_when_another_one_has_ended() {
    let network = crossbar(4);
    let list = [(1, 0, 100 * 4096, 0), (2, 0, 300 * 4096, 0)];
    let flows = flow_by_flow(&network, free("ecmp"), messages(&network, &list)).flows;
    let beyond = PACKET + 2 * US;
    assert_eq!(fct(&flows[0]), Time(2 * 100 * PACKET + beyond));
    assert_eq!(fct(&flows[1]), Time((2 * 100 + 200) * PACKET + beyond));
}

/// What the links carry is what the flows are, headers included.
#[test]
fn links_carry_the_bytes_of_their_flows() {
    let network = leaf_spine(2, 2, 2);
    for name in ["ecmp", "spray"] {
        let list = [(0, 2, 100 * 4096, 0), (1, 2, 50 * 4096, 3 * US), (2, 0, 7, 0)];
        let records = flow_by_flow(&network, free(name), messages(&network, &list));
        let at = |tier: &str| -> u64 {
            records
                .channels
                .iter()
                .filter(|channel| &*channel.tier == tier)
                .map(|channel| channel.bytes)
                .sum()
        };
        let wire = (100 + 50) * 4160 + 7 + 64;
        let tiers: BTreeSet<&str> = records.channels.iter().map(|channel| &*channel.tier).collect();
        for tier in tiers {
            // Each link's part is rounded to bytes.
            assert!(at(tier).abs_diff(2 * wire) <= 8, "{name}: {} at {tier}", at(tier));
        }
    }
}

fn first_link(network: &Network) -> Vec<ChannelEnds> {
    let (from, to) = (network.node_name(0), network.node_name(network.edge_switch(0)));
    vec![ChannelEnds { from, to, parallel: 0 }]
}

/// Half of the rate from 5 us to 10 us delays the end by half of that time.
#[test]
fn a_slow_link_slows_its_flows_while_it_is_slow() {
    let network = leaf_spine(2, 1, 1);
    let slow = Degrade {
        channels: first_link(&network),
        rate_factor: 0.5,
        from: Time(5 * US),
        until: Some(Time(10 * US)),
        ..Degrade::default()
    };
    let config = SimConfig { faults: vec![Fault::Degrade(slow)], ..free("ecmp") };
    let list = messages(&network, &[(0, 1, 100 * 4096, 0)]);
    let flow = &flow_by_flow(&network, config, list).flows[0];
    assert_eq!(fct(flow), flow.ideal_fct + Time(5 * US / 2));
}

/// A flow waits while its only link is cut, and ends as the run does if that lasts for ever.
#[test]
fn a_cut_link_holds_its_flows_up() {
    let network = leaf_spine(2, 1, 1);
    let cut = |until| Cut { channels: first_link(&network), from: Time(5 * US), until, ..Cut::default() };
    let plan = || messages(&network, &[(0, 1, 100 * 4096, 0)]);
    let config = |until| SimConfig { faults: vec![Fault::Cut(cut(until))], ..free("ecmp") };
    let flow = &flow_by_flow(&network, config(Some(Time(30 * US))), plan()).flows[0];
    assert_eq!(fct(flow), flow.ideal_fct + Time(25 * US));
    let mut ends = config(None);
    ends.measure.until = Some(Time(50 * US));
    let flow = &flow_by_flow(&network, ends, plan()).flows[0];
    assert_eq!(
        (flow.fct, flow.delivered),
        (None, (5 * US / PACKET * 4096) + 4096 * (5 * US % PACKET) / PACKET)
    );
}
