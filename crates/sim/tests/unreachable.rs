//! Switches that tell sources of cut links.

mod common;

use common::*;
use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{Ecn, Queue};
use netloom_record::Records;
use netloom_routing::granularity::flowlet::Flowlet;
use netloom_routing::selector::layer::{Acks, First};
use netloom_routing::{Granularity, Layers, Placement, Selector};
use netloom_sim::{ChannelEnds, Cut, Fault, SimConfig, Simulation, Unreachable};
use netloom_topology::{HyperX, Link, LinkId, Network, SlimFly, Topology};
use netloom_transport::{Congestion, congestion};
use netloom_units::{Bytes, Time};
use netloom_workload::{Message, Plan};
use proptest::prelude::*;

fn us(us: u64) -> Time {
    Time::from_us(us)
}

fn told(cut: Cut) -> Vec<Fault> {
    vec![Fault::Cut(Cut { unreachable: Unreachable::NotifySource, ..cut })]
}

fn link(from: &str, to: &str) -> Vec<ChannelEnds> {
    vec![ChannelEnds { from: from.into(), to: to.into(), parallel: 0 }]
}

/// Hosts that draw an entropy value per flowlet.
fn flowlets() -> SimConfig {
    let mut config = scheme("spray-nic");
    config.routing.granularity = Granularity::Flowlet(Flowlet::default());
    config
}

/// Time that this many bytes take over the first or the last link.
fn over_host_link(network: &Network, bytes: u64) -> Time {
    let up = network.channel(network.ports(0)[0]);
    up.rate.serialize(Bytes(bytes)) + up.latency
}

/// The leaves s0 and s1 with a host each, and the spines s2 and s3; one packet from h0 to h1 as the link to s2 is cut.
fn one_packet(seed: u64, start: Time) -> (Network, Records) {
    let network = leaf_spine(2, 2, 1);
    let cut = Cut { channels: link("s0", "s2"), from: us(10), until: Some(us(900)), ..Cut::default() };
    let mut config = SimConfig { faults: told(cut), seed, ..flowlets() };
    // Before a timeout: the ACK may be lost on the cut link.
    config.measure.until = Some(start + us(90));
    let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(1000), start))]);
    let records = run(network.clone(), config, plan);
    (network, records)
}

#[test]
fn a_packet_takes_another_path_as_soon_as_its_header_has_come_back() {
    let mut returns = [0; 4];
    for seed in 0..40 {
        let (network, records) = one_packet(seed, us(20));
        let flow = &records.flows[0];
        let options = &SimConfig::default().transport.options;
        // To the leaf with the payload, back as large as an ACK, and again, until a value leads to the other spine.
        let there = over_host_link(&network, 1000 + options.header.0);
        let again = there + over_host_link(&network, options.ack_size.0);
        assert_eq!(fct(flow), flow.ideal_fct + again * u64::from(flow.returned_to_sender));
        assert_eq!((flow.timeouts, flow.retransmissions), (0, u64::from(flow.returned_to_sender)));
        assert_eq!((records.totals.data.dropped, records.totals.data.lost), (0, 0));
        let at = |from: &str, to: &str| {
            records.channels.iter().find(|c| &*c.from == from && &*c.to == to).unwrap()
        };
        let (cut, other) = (at("s0", "s2"), at("s0", "s3"));
        assert_eq!(
            (cut.returned_to_sender, cut.packets, cut.lost),
            (u64::from(flow.returned_to_sender), 0, 0)
        );
        assert_eq!((other.returned_to_sender, other.packets), (0, 1));
        returns[flow.returned_to_sender.min(3) as usize] += 1;
    }
    // About half of the values lead to each spine.
    assert!(returns[0] >= 10 && returns[1] >= 4 && returns[2] >= 1, "{returns:?}");
}

#[test]
fn an_ack_takes_another_way_as_soon_as_it_has_come_back() {
    let mut turned = [0; 3];
    for seed in 0..40 {
        let (network, records) = one_packet(seed, us(20));
        let flow = &records.flows[0];
        let at = |from: &str, to: &str| {
            records.channels.iter().find(|c| &*c.from == from && &*c.to == to).unwrap()
        };
        // From the far leaf by the spine that the link is cut at, and back to the host.
        let acks = at("s2", "s0").returned_to_sender;
        let link = |tier: &str| {
            let channel = records.channels.iter().find(|channel| &*channel.tier == tier).unwrap();
            network.channel(channel.channel)
        };
        let ack = SimConfig::default().transport.options.ack_size;
        let over = |tier| link(tier).rate.serialize(ack) + link(tier).latency;
        let tier = &*at("s2", "s0").tier;
        let turn = (over("host") + over(tier)) * 2;
        // An ACK takes four channels.
        let idle = flow.ideal_fct + (over("host") + over(tier)) * 2;
        let late = fct(flow) - flow.ideal_fct;
        assert_eq!(flow.sender_fct, Some(idle + late + turn * acks));
        assert_eq!((flow.timeouts, at("s2", "s0").lost, at("s2", "s0").packets), (0, 0, 0));
        let control = records.totals.control;
        assert_eq!((control.sent, control.delivered, control.dropped), (1 + acks, 1 + acks, 0));
        turned[acks.min(2) as usize] += 1;
    }
    assert!(turned[0] >= 10 && turned[1] >= 4 && turned[2] >= 1, "{turned:?}");
}

#[test]
fn only_packets_that_come_while_the_link_is_cut_go_back() {
    let (network, _) = one_packet(0, us(20));
    let there = over_host_link(&network, 1000 + SimConfig::default().transport.options.header.0);
    let returns =
        |start| (0..20).map(|seed| one_packet(seed, start).1.flows[0].returned_to_sender).sum::<u32>();
    assert_eq!((returns(us(10) - there - Time(1)), returns(us(900) - there)), (0, 0));
    assert!(returns(us(10) - there) > 0 && returns(us(900) - there - Time(1)) > 0);
}

/// Three hosts send a packet each to the other leaf, over one spine, and all three come to their leaf at once, one to be sent and two to wait. The link to the
/// spine is cut so long after that, for 1 us.
fn three_packets(after: Time) -> (Network, Records) {
    let network = leaf_spine(2, 1, 3);
    let options = &SimConfig::default().transport.options;
    let from = over_host_link(&network, 1000 + options.header.0) + after;
    let cut = Cut { channels: link("s0", "s2"), from, until: Some(from + us(1)), ..Cut::default() };
    let config = SimConfig { faults: told(cut), ..flowlets() };
    let plan =
        Plan::of_messages(6, (0..3).map(|host| (host, Message::new(host + 3, Bytes(1000), Time::ZERO))));
    let one = run(network.clone(), config.clone(), plan.clone());
    for threads in 2..=4 {
        let many = Simulation::new(network.clone(), config.clone(), plan.clone()).unwrap().run(threads);
        assert_eq!(difference(&one, &many.unwrap().records), None);
    }
    let reference = Simulation::new(network.clone(), config, plan).unwrap().run_reference().unwrap().records;
    assert_eq!(difference(&one, &reference), None);
    (network, one)
}

#[test]
fn what_waits_for_a_link_goes_back_at_the_moment_of_the_cut() {
    let options = &SimConfig::default().transport.options;
    let sending = at_200g(1000 + options.header.0);
    // The first packet is on the wire, and what is there is lost. While it leaves two others wait; from the end of that on only one does.
    for (after, lost) in [(Time(1), 1), (sending, 1), (sending + Time(1), 2), (sending * 2, 2)] {
        let (network, records) = three_packets(after);
        let arrival = over_host_link(&network, 1000 + options.header.0);
        // Its header as large as an ACK, it is at its source at once, and the packet sets out anew, to find the link repaired.
        let back = arrival + after + over_host_link(&network, options.ack_size.0);
        assert!(back + arrival > arrival + after + us(1), "the link is repaired when they come again");
        for (place, flow) in records.flows.iter().enumerate() {
            let (came_back, turn) = (place >= lost, place.saturating_sub(lost) as u64);
            assert_eq!(
                (flow.returned_to_sender, flow.timeouts > 0),
                (u32::from(came_back), !came_back),
                "{flow:?}"
            );
            if came_back {
                assert_eq!(fct(flow), back + flow.ideal_fct + sending * turn, "{flow:?}");
            }
        }
        let cut = records.channels.iter().find(|c| &*c.from == "s0" && &*c.to == "s2").unwrap();
        assert_eq!((cut.lost, cut.returned_to_sender), (lost as u64, 3 - lost as u64));
        assert_eq!(records.totals.data.lost, lost as u64);
    }
}

/// A flow between switches whose one minimal path is the link between them, which is cut for long.
fn over_layers(mut config: SimConfig, unreachable: Unreachable) -> Records {
    let complete = HyperX {
        dimensions: 1,
        switches_per_dimension: vec![8],
        hosts_per_switch: Some(1),
        ..HyperX::default()
    };
    let network = build(Topology::HyperX(complete));
    let cut = Cut {
        channels: link("s0", "s4"),
        from: Time(1),
        until: Some(Time::from_ms(40)),
        unreachable,
        ..Cut::default()
    };
    config.faults = vec![Fault::Cut(cut)];
    let plan = Plan::of_messages(8, [(0, Message::new(4, Bytes(500_000), us(5)))]);
    let one = run(network.clone(), config.clone(), plan.clone());
    for threads in 2..=4 {
        let many = Simulation::new(network.clone(), config.clone(), plan.clone()).unwrap().run(threads);
        assert_eq!(difference(&one, &many.unwrap().records), None);
    }
    let reference = Simulation::new(network, config, plan).unwrap().run_reference().unwrap().records;
    assert_eq!(difference(&one, &reference), None);
    one
}

/// Nine layers, of which the eight sparse ones leave out two links of five.
fn layers() -> SimConfig {
    let mut config = scheme("fatpaths");
    if let Selector::Layer(layer) = &mut config.routing.selector {
        layer.acks = Acks::Same;
    }
    config
}

#[test]
fn a_flow_finds_a_layer_around_a_cut_link_within_round_trips() {
    let (signal, silence) =
        [Unreachable::NotifySource, Unreachable::Silence].map(|u| over_layers(layers(), u)).into();
    let (told, left) = (&signal.flows[0], &silence.flows[0]);
    assert!(told.returned_to_sender > 0 && told.timeouts == 0 && fct(told) < told.ideal_fct * 2, "{told:?}");
    assert_eq!((signal.totals.data.dropped, signal.totals.data.lost), (0, 0));
    assert!(left.returned_to_sender == 0 && left.timeouts > 0 && fct(left) > left.ideal_fct * 4, "{left:?}");
}

#[test]
fn a_sender_that_is_pulled_sends_at_once_what_came_back() {
    let mut config = layers();
    config.transport.congestion = Congestion::Pulls(congestion::pulls::Pulls::default());
    config.transport.reliability = netloom_transport::Reliability::Trimmed(Default::default());
    config.fabric.queue = Queue::Trimming(Trimming::default());
    let records = over_layers(config, Unreachable::NotifySource);
    let flow = &records.flows[0];
    assert!(flow.returned_to_sender > 0 && flow.timeouts == 0 && fct(flow) < flow.ideal_fct * 2, "{flow:?}");
}

#[test]
fn what_goes_back_at_a_cut_is_the_same_for_any_number_of_threads() {
    let slim_fly = SlimFly { q: Some(5), hosts_per_switch: Some(3), ..SlimFly::default() };
    let network = build(Topology::SlimFly(slim_fly));
    let cut = Cut { link_fraction: Some(0.1), from: us(20), until: Some(us(400)), ..Cut::default() };
    for transport in ["tcp", "purified", "mptcp"] {
        let mut config = SimConfig { faults: told(cut.clone()), ..layers() };
        config.transport = netloom_transport::preset::find(transport).unwrap().transport();
        if transport == "purified" {
            config.fabric.queue = Queue::Trimming(Trimming::default());
        }
        let plan = permutation(1_000_000, &network, 5);
        let one = run(network.clone(), config.clone(), plan.clone());
        for threads in 2..=4 {
            let many = Simulation::new(network.clone(), config.clone(), plan.clone()).unwrap().run(threads);
            assert_eq!(difference(&one, &many.unwrap().records), None);
        }
        let with = |config: SimConfig| Simulation::new(network.clone(), config, plan.clone()).unwrap();
        let reference = with(config.clone()).run_reference().unwrap().records;
        assert_eq!(difference(&one, &reference), None);
        // Samples look at ports at instants of their own, before the cut and after it.
        config.measure.sample = Some(us(2));
        let sampled = with(config).run(1).unwrap().records;
        assert_eq!(one.totals, sampled.totals);
        assert!(one.totals.data.lost > 0 && one.flows.iter().any(|flow| flow.returned_to_sender > 0));
    }
}

/// As many subflows as there are layers, each with one of them for good.
fn fixed_layers(mut config: SimConfig) -> SimConfig {
    config.transport = netloom_transport::preset::find("mptcp").unwrap().transport();
    keep_layers(&mut config);
    config
}

/// A layer for good, whichever.
fn keep_layers(config: &mut SimConfig) {
    config.routing.granularity = Granularity::Flow(Default::default());
    if let Selector::Layer(layer) = &mut config.routing.selector {
        layer.first = First::Random;
    }
}

#[test]
fn a_subflow_with_a_path_for_good_leaves_it_when_it_is_dead() {
    let config = fixed_layers(layers());
    assert_eq!(config.transport.options.subflows, 8, "of nine layers, the one over the cut link among them");
    let (signal, silence) =
        [Unreachable::NotifySource, Unreachable::Silence].map(|u| over_layers(config.clone(), u)).into();
    let (told, left) = (&signal.flows[0], &silence.flows[0]);
    assert!(told.returned_to_sender > 0 && told.timeouts == 0 && fct(told) < told.ideal_fct * 2, "{told:?}");
    assert_eq!((signal.totals.data.dropped, signal.totals.data.lost), (0, 0));
    // Of each window under way one packet comes back, and the paths are as many as the subflows again.
    assert!(told.decisions > 0 && told.non_default_decisions > 0, "{told:?}");
    assert!(left.returned_to_sender == 0 && left.timeouts > 0 && fct(left) > fct(told), "{left:?}");
}

#[test]
fn who_cannot_leave_a_path_or_need_not_be_told_is_refused() {
    let network = build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }));
    let refusal = |config: SimConfig, cut: Cut| {
        let config = SimConfig { faults: told(cut), ..config };
        let error = Simulation::new(network.clone(), config, permutation(1000, &network, 3));
        error.map(|_| ()).unwrap_err().to_string()
    };
    let cut = Cut { links: Some(1), from: us(1), until: Some(us(9)), ..Cut::default() };
    let mut alone = fixed_layers(layers());
    alone.transport.options.subflows = 1;
    alone.transport.congestion = SimConfig::default().transport.congestion;
    for scheme in [scheme("ecmp"), scheme("letflow"), scheme("flowcut-nic"), alone] {
        let error = refusal(scheme, cut.clone());
        assert!(
            error.starts_with("faults.0.unreachable: expected \"silence\", or routing by hosts"),
            "{error}"
        );
    }
    let mut chosen = scheme("spray-nic");
    chosen.fabric.options.ecn =
        Some(Ecn { kmin: Bytes(5_000), kmax: Bytes(50_000), pmax: 0.1, mark: Default::default() });
    chosen.transport.congestion = Congestion::MpRdma(Default::default());
    assert_eq!(chosen.routing.placement, Placement::Nic);
    assert!(refusal(chosen, cut.clone()).contains("a transport that leaves the choice of paths to routing"));
    let host = Cut { tier: Some("host".into()), ..cut.clone() };
    assert!(refusal(flowlets(), host).contains("as no path gets around that"));
    let whole = Cut { from: Time::ZERO, until: None, ..cut };
    assert!(refusal(flowlets(), whole).contains("where a cut lasts for the whole run"));
}

/// Whether a layer leads from one host to another and back without the links that are cut.
fn is_alive(network: &Network, layers: &Layers, layer: u32, (src, dst): (u32, u32), cut: &[LinkId]) -> bool {
    let leads = |from: u32, to: u32| {
        let (mut here, end) = (network.edge_switch(from), network.edge_switch(to));
        while here != end {
            let [port] = layers.ports(layer, layers.router(here), layers.router(end))[..] else {
                return false;
            };
            let channel = network.ports(here)[usize::from(port)];
            if cut.contains(&(channel / 2)) {
                return false;
            }
            here = network.channel(channel).to;
        }
        true
    };
    leads(src, dst) && leads(dst, src)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// As long as some layer leads there and back, a flow does not wait for the repair, told of dead links or not.
    #[test]
    fn no_flow_waits_for_a_repair_while_a_layer_leads_around(
        seed in any::<u64>(),
        dead in prop::collection::btree_set(0..175u32, 1..40),
        transport in prop_oneof![Just("tcp"), Just("dctcp"), Just("purified"), Just("mptcp")],
        signals in any::<bool>(),
    ) {
        let slim_fly = SlimFly { q: Some(5), hosts_per_switch: Some(1), ..SlimFly::default() };
        let network = build(Topology::SlimFly(slim_fly));
        let between = |link: &Link| !network.is_host(link.a) && !network.is_host(link.b);
        let links: Vec<LinkId> = (0..).zip(network.links()).filter(|(_, link)| between(link)).map(|(id, _)| id).collect();
        let cut: Vec<LinkId> = dead.iter().map(|&place| links[place as usize]).collect();
        let ends = |&link: &LinkId| {
            let Link { a, b, .. } = network.links()[link as usize];
            ChannelEnds { from: network.node_name(a), to: network.node_name(b), parallel: 0 }
        };
        let repair = Time::from_ms(60_000);
        let mut config = SimConfig { seed, ..layers() };
        config.transport = netloom_transport::preset::find(transport).unwrap().transport();
        // A subflow for each of the layers: where they are dead, told or not, the others send.
        if transport == "mptcp" && seed.is_multiple_of(2) {
            keep_layers(&mut config);
            config.transport.options.subflows = 9;
        }
        config.fabric.options.buffer = Some(Bytes(200_000));
        config.fabric.options.ecn = Some(Ecn { kmin: Bytes(50_000), kmax: Bytes(50_000), pmax: 1.0, mark: Default::default() });
        if transport == "purified" {
            config.fabric.queue = Queue::Trimming(Trimming::default());
        }
        let unreachable = if signals { Unreachable::NotifySource } else { Unreachable::Silence };
        config.faults = vec![Fault::Cut(Cut {
            channels: cut.iter().map(ends).collect(),
            from: us(10),
            until: Some(repair),
            unreachable,
            ..Cut::default()
        })];
        let none = Simulation::new(network.clone(), config.clone(), permutation(1, &network, seed)).unwrap();
        let layers = none.layers().unwrap();
        let around = |pair| (0..9).any(|layer| is_alive(&network, layers, layer, pair, &cut));
        let pairs = (0..50).map(|src| (src, (src + 17) % 50)).filter(|&pair| around(pair));
        let flows = pairs.map(|(src, dst)| (src, Message::new(dst, Bytes(300_000), Time::ZERO)));
        let records = run(network.clone(), config, Plan::of_messages(50, flows));
        prop_assert!(records.flows.len() > 20, "most hosts are in reach");
        for flow in &records.flows {
            prop_assert!(fct(flow) < repair, "{flow:?}");
        }
    }
}
