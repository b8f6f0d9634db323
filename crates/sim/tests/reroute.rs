//! Routes that follow cuts after a stated delay.

mod common;

use common::*;
use netloom_record::Records;
use netloom_routing::Routing;
use netloom_sim::{ChannelEnds, Cut, Fault, Measure, SimConfig, Simulation};
use netloom_topology::{Complete, Network, Topology};
use netloom_units::{Bytes, Time};
use netloom_workload::{Message, Plan};

const RTO: Time = Time::from_us(100);

fn us(us: u64) -> Time {
    Time::from_us(us)
}

fn config(routing: Routing, cut: Cut) -> SimConfig {
    let mut config = SimConfig { routing, faults: vec![Fault::Cut(cut)], ..SimConfig::default() };
    config.transport.options.rto_initial = RTO;
    config.transport.options.rto_min = RTO;
    config
}

fn ecmp() -> Routing {
    scheme("ecmp").routing
}

/// The leaves s0 and s1 with a host each, and the spines s2 and s3.
fn network() -> Network {
    leaf_spine(2, 2, 1)
}

/// One packet from h0 to h1.
fn packet(start: Time) -> Plan {
    Plan::of_messages(2, [(0, Message::new(1, Bytes(1000), start))])
}

/// The spine by which that packet goes.
fn spine(network: &Network) -> String {
    let simulation = Simulation::new(network.clone(), scheme("ecmp"), packet(Time::ZERO)).unwrap();
    network.node_name(simulation.trace(0, 1, 0, 0).hops[1].switch)
}

/// A cut of the link between s0 and a spine.
fn cut(spine: &str, from: Time, until: Option<Time>, reroute_after: Option<Time>) -> Cut {
    let channels = vec![ChannelEnds { from: "s0".into(), to: spine.into(), parallel: 0 }];
    Cut { channels, from, until, reroute_after, ..Cut::default() }
}

/// Packets from s0 to a spine.
fn crossed(records: &Records, spine: &str) -> u64 {
    let channels =
        || records.channels.iter().filter(|channel| &*channel.from == "s0" && &*channel.to == spine);
    channels().map(|channel| channel.packets).sum()
}

/// Time that the packet takes from its host to the leaf.
fn to_the_leaf(network: &Network) -> Time {
    let up = network.channel(network.ports(0)[0]);
    let transport = SimConfig::default().transport;
    up.rate.serialize(Bytes(1000 + transport.options.header.0)) + up.latency
}

#[test]
fn a_packet_takes_the_new_route_from_the_stated_moment_on() {
    let network = network();
    let (old, first) = (spine(&network), to_the_leaf(&network));
    let new = if old == "s2" { "s3" } else { "s2" };
    // Cut at 10 us, told 5 us later; repaired at 40 us, told at 45 us.
    let fct_at_leaf = |at: Time, reroute_after| {
        let config = config(ecmp(), cut(&old, us(10), Some(us(40)), reroute_after));
        let records = run(network.clone(), config, packet(at - first));
        let flow = &records.flows[0];
        (fct(flow), flow.ideal_fct, crossed(&records, &old), crossed(&records, new))
    };
    let told = Some(us(5));
    let (alone, idle, ..) = fct_at_leaf(us(8), told);
    assert_eq!(alone, idle);
    let (late, idle, ..) = fct_at_leaf(Time(us(15).0 - 1), told);
    assert_eq!(late, idle + RTO);
    assert_eq!(fct_at_leaf(us(15), told), (idle, idle, 0, 1));
    // The link works again at 40 us, and is used again at 45 us.
    assert_eq!(fct_at_leaf(Time(us(45).0 - 1), told), (idle, idle, 0, 1));
    assert_eq!(fct_at_leaf(us(45), told), (idle, idle, 1, 0));
    // Told at once, and never.
    assert_eq!(fct_at_leaf(us(10), Some(Time::ZERO)), (idle, idle, 0, 1));
    assert_eq!(fct_at_leaf(us(15), None).0, idle + RTO);
    assert_eq!(fct_at_leaf(us(40), None), (idle, idle, 1, 0));
}

#[test]
fn a_flow_waits_for_as_many_timeouts_as_the_routes_take() {
    let network = network();
    let old = spine(&network);
    // Sent at 0, 100, 300, 700, 1500 us after its start at 20 us.
    for (reroute_after, timeouts, after) in [(50, 1, 100), (200, 2, 300), (600, 3, 700), (1000, 4, 1500)] {
        let config = config(ecmp(), cut(&old, us(10), None, Some(us(reroute_after))));
        let flow = run(network.clone(), config, packet(us(20))).flows.remove(0);
        assert_eq!((flow.timeouts, fct(&flow)), (timeouts, flow.ideal_fct + us(after)));
    }
}

#[test]
fn packets_without_a_route_are_dropped_and_counted_until_there_is_one() {
    let network = network();
    // The leaf of h0 loses both spines from 10 to 1000 us, and routes go without them from 60 to 1050 us.
    let channels = ["s2", "s3"].map(|to| ChannelEnds { from: "s0".into(), to: to.into(), parallel: 0 });
    let cut = Cut {
        channels: channels.to_vec(),
        from: us(10),
        until: Some(us(1000)),
        reroute_after: Some(us(50)),
        ..Cut::default()
    };
    let records = run(network.clone(), config(ecmp(), cut.clone()), packet(us(20)));
    // The first is lost on the link, those sent 100, 300 and 700 us later at the switch, and the next one arrives.
    let flow = &records.flows[0];
    assert_eq!((flow.timeouts, fct(flow)), (4, flow.ideal_fct + us(1500)));
    let at_links: u64 = records.channels.iter().map(|channel| channel.lost).sum();
    assert_eq!((at_links, records.totals.data.lost, records.totals.data.dropped), (1, 4, 4));

    // For good, in a run with an end: counted. In a run without: refused.
    let mut config = config(ecmp(), Cut { until: None, ..cut });
    let error = Simulation::new(network.clone(), config.clone(), packet(us(20))).unwrap_err().to_string();
    assert!(error.starts_with("faults.0.until: ") && error.contains("cannot reach host"), "{error}");
    config.measure = Measure { until: Some(us(500)), ..Measure::default() };
    let records = run(network, config, packet(us(20)));
    assert_eq!((records.flows[0].fct, records.totals.data.lost), (None, 3));
}

#[test]
fn what_cannot_follow_is_refused() {
    let network = leaf_spine(2, 2, 4);
    let refusal = |preset: &str, cut: Cut| {
        let plan = permutation(1000, &network, 3);
        let error = Simulation::new(network.clone(), config(scheme(preset).routing, cut), plan);
        error.unwrap_err().to_string()
    };
    let told = Some(us(1));
    let whole = refusal("ecmp", Cut { links: Some(1), reroute_after: told, ..Cut::default() });
    assert!(
        whole.contains("faults.0.reroute_after: expected none where a cut lasts for the whole run"),
        "{whole}"
    );
    let host =
        Cut { tier: Some("host".into()), links: Some(1), from: us(1), reroute_after: told, ..Cut::default() };
    assert!(
        refusal("ecmp", host)
            .contains("no host's link among those that are cut, as no route gets around that")
    );
    let spine = Cut { switches: vec!["s2".into()], from: us(1), reroute_after: told, ..Cut::default() };
    // A spine is a switch without whom FatPaths' layers, which span all switches, cannot be laid.
    let layers = refusal("fatpaths", spine.clone());
    assert!(layers.contains("found from 2us on: routing.selector: "), "{layers}");
    // UGAL weighs ways over any switch.
    let complete = build(Topology::Complete(Complete { switches: 5, ..Complete::default() }));
    let cut = Cut {
        switches: vec!["s2".into()],
        from: us(1),
        until: Some(us(9)),
        reroute_after: told,
        ..Cut::default()
    };
    let plan = permutation(1000, &complete, 3);
    let error =
        Simulation::new(complete, config(scheme("ugal-l").routing, cut), plan).unwrap_err().to_string();
    assert!(
        error.contains(
            "found from 2us on: routing.selector: expected a network whose switches are all connected"
        ),
        "{error}"
    );
    let mut switching = config(scheme("flowcut-nic").routing, spine);
    switching.routing.placement = netloom_routing::Placement::Switch;
    let error = Simulation::new(network.clone(), switching, permutation(1000, &network, 3));
    let error = error.unwrap_err().to_string();
    assert!(
        error.contains("faults.0.reroute_after: expected none with flowcuts that switches count"),
        "{error}"
    );
}
