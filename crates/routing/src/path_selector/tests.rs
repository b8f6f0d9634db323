use std::path::Path;

use netloom_topology::{BuildContext, PortId, SlimFly, Topology};
use netloom_transport::{Cause, Feedback};
use netloom_units::kind::Kind;
use netloom_units::{Bytes, Time};
use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::granularity::flowcut::Assigned;
use crate::header::{
    Advice, Candidates, Carries, Decisions, FlowCounts, FlowKey, FlowRef, Header, Hop, Notice,
};
use crate::testing::LoadsAt;
use crate::{Forwarding, Granularity, Placement, Routing, Selector, Tag, TagSpace, preset};

const PORTS: [PortId; 4] = [4, 5, 6, 7];

fn header(flow: u32, tag: u32) -> Header {
    Header {
        src: 1,
        dst: 2,
        flow,
        tag: Tag::from_bits(tag),
        bytes: 4160,
        payload: 4096,
        hops: 1,
        carries: Carries::Data,
    }
}

/// A switch with a scheme.
struct Switch {
    scheme: Routing,
    selector: SwitchPathSelector,
    random: Pcg64Mcg,
}

impl Switch {
    fn new(preset: &str) -> Self {
        Switch::at(preset, 1)
    }

    fn at(preset: &str, stride: u32) -> Self {
        let scheme = preset::find(preset).unwrap().routing();
        let mut random = Pcg64Mcg::new(5);
        let selector = SwitchPathSelector::new(&scheme, stride, true, false, &mut random);
        Switch { scheme, selector, random }
    }

    /// Begins anew with the scheme as it is now.
    fn renew(&mut self) {
        self.selector = SwitchPathSelector::new(&self.scheme, 1, true, false, &mut self.random);
    }

    fn hop(&mut self, header: &Header, now: Time) -> Hop {
        let candidates = Candidates { ports: &PORTS, set: 0 };
        let tags = || TagSpace::Entropy(256);
        self.selector.port(|| *header, candidates, LoadsAt(|_| 0, now), tags, &mut self.random)
    }

    fn route(&mut self, header: &Header, now: Time) -> PortId {
        self.hop(header, now).port
    }

    fn decisions(&self) -> Decisions {
        self.selector.decisions()
    }
}

/// A NIC with a scheme.
struct Nic {
    selector: NicPathSelector,
    random: Pcg64Mcg,
}

impl Nic {
    fn new(preset: &str) -> Self {
        let scheme = preset::find(preset).unwrap().routing();
        Nic { selector: NicPathSelector::new(&scheme, 1).unwrap(), random: Pcg64Mcg::new(1) }
    }

    fn send(&mut self, flow: FlowRef, now: Time, tags: TagSpace<'_>) -> Tag {
        self.selector.tag(flow, (4096, 0), now, || tags, &mut self.random).0
    }
}

fn flow(number: u32) -> FlowRef {
    FlowRef { key: FlowKey { src: 0, flow: number }, slot: number }
}

#[test]
fn ecmp_keeps_a_flow_on_one_port_and_decides_nothing() {
    let mut switch = Switch::new("ecmp");
    let ports: Vec<_> = (0..50).map(|_| switch.route(&header(3, 0), Time(0))).collect();
    assert!(ports.iter().all(|&port| port == ports[0]));
    assert_eq!(switch.decisions(), Decisions::default());
}

#[test]
fn hosts_that_stay_out_keep_to_one_path_while_others_do_as_the_scheme_says() {
    for preset in ["spray", "adaptive", "spectrum-x-like"] {
        let mut switch = Switch::new(preset);
        switch.scheme.ecmp_every = Some(2);
        switch.renew();
        let route = |switch: &mut Switch, src| -> Vec<PortId> {
            (0..60).map(|_| switch.route(&Header { src, ..header(3, 0) }, Time(0))).collect()
        };
        let out = route(&mut switch, 4);
        let hashed = PORTS[switch.selector.hashed(&Header { src: 4, ..header(3, 0) }, PORTS.len())];
        assert!(out.iter().all(|&port| port == hashed), "{preset}");
        assert_eq!(switch.decisions().taken, 0, "{preset}");
        let others = route(&mut switch, 5);
        assert!(others.iter().any(|port| *port != others[0]), "{preset}");
        assert_eq!(switch.decisions().taken, 60, "{preset}");
    }
    let scheme = Routing { ecmp_every: Some(3), ..preset::find("reps").unwrap().routing() };
    for (host, keeps) in [(0, true), (1, false), (2, false), (3, true)] {
        let selector = NicPathSelector::new(&scheme, host).unwrap();
        let mut nic = Nic { selector, random: Pcg64Mcg::new(1) };
        let tags = || TagSpace::Entropy(1 << 16);
        let first = nic.selector.begin(flow(0), None, tags(), &mut nic.random);
        let sent: Vec<Tag> = (0..40).map(|_| nic.send(flow(0), Time(0), tags())).collect();
        assert_eq!(sent.iter().all(|&tag| tag == first), keeps, "{host}");
        assert_eq!(nic.selector.listens(), !keeps);
    }
}

#[test]
fn spraying_uses_every_port_and_deviates_three_times_of_four() {
    let mut switch = Switch::new("spray");
    let mut used = [0; 8];
    (0..4000).for_each(|_| used[usize::from(switch.route(&header(3, 0), Time(0)))] += 1);
    assert!(PORTS.iter().all(|&port| used[usize::from(port)] > 850), "{used:?}");
    assert!((2850..3150).contains(&switch.decisions().deviating));
}

#[test]
fn a_flowlet_ends_with_a_gap_only() {
    let mut switch = Switch::new("letflow");
    let Granularity::Flowlet(flowlet) = switch.scheme.granularity.clone() else { unreachable!() };
    let mut now = Time(0);
    for _ in 0..1000 {
        switch.route(&header(3, 0), now);
        now += flowlet.gap;
    }
    assert_eq!(switch.decisions().taken, 1);
    switch.route(&header(3, 0), now + Time(1));
    assert_eq!(switch.decisions().taken, 2);
}

#[test]
fn acks_never_disturb_an_adaptive_schemes_state() {
    let mut switch = Switch::new("letflow");
    switch.route(&Header { carries: Carries::Control, ..header(3, 0) }, Time(0));
    assert_eq!(switch.decisions().taken, 0);
    switch.route(&header(3, 0), Time(0));
    assert_eq!(switch.decisions().taken, 1, "the first packet of the flow");
}

#[test]
fn an_ingress_switch_gives_each_run_an_entropy_value_and_later_switches_hash_it() {
    let mut switch = Switch::new("letflow");
    switch.scheme.placement = Placement::Ingress;
    switch.renew();
    let first = switch.hop(&header(3, 0), Time(0));
    assert_eq!(switch.hop(&header(3, 0), Time(9)), first);
    let hops: Vec<Hop> = (1..50).map(|i| switch.hop(&header(3, 0), Time::from_ms(i))).collect();
    assert!(hops.iter().any(|hop| hop.tag != first.tag) && hops.iter().any(|hop| hop.port != first.port));
    let taken = switch.decisions().taken;
    let later = Header { hops: 2, ..header(3, 77) };
    let port = PORTS[switch.selector.hashed(&later, 4)];
    assert_eq!(switch.hop(&later, Time::from_ms(99)), Hop { port, tag: later.tag });
    assert_eq!(switch.decisions().taken, taken);
}

#[test]
fn switch_ar_takes_d_mod_k_until_a_notification_moves_all_of_a_destinations_traffic() {
    for preset in ["switch-ar", "switch-ar-stable"] {
        let mut switch = Switch::new(preset);
        let to = |switch: &mut Switch, dst| switch.route(&Header { dst, ..header(3, 0) }, Time(5));
        assert_eq!((to(&mut switch, 2), to(&mut switch, 6)), (6, 6));
        let notice = Notice { destination: 6, port: 6, feedback: 63, is_local: true };
        switch.selector.on_notice(&notice, &PORTS, Time(4));
        assert_eq!((to(&mut switch, 2), to(&mut switch, 6)), (6, 4));
        assert_eq!(switch.decisions(), Decisions { taken: 4, deviating: 1 });
    }
}

#[test]
fn the_fractional_kind_moves_a_part_of_a_destinations_traffic() {
    let mut switch = Switch::new("switch-ar-fractional");
    let notice = Notice { destination: 2, port: 6, feedback: 32, is_local: false };
    switch.selector.on_notice(&notice, &PORTS, Time(0));
    let mut used = [0; 8];
    (0..1200).for_each(|_| used[usize::from(switch.route(&header(3, 0), Time(0)))] += 1);
    assert_eq!(used[4..], [100, 100, 900, 100]);
}

#[test]
fn notifications_about_other_ports_or_single_ways_teach_nothing() {
    let notice = |port| Notice { destination: 2, port, feedback: 63, is_local: false };
    for preset in ["switch-ar", "ecmp"] {
        let mut switch = Switch::new(preset);
        let before = switch.route(&header(3, 0), Time(0));
        switch.selector.on_notice(&notice(9), &PORTS, Time(0));
        switch.selector.on_notice(&notice(before), &[before], Time(0));
        assert_eq!(switch.route(&header(3, 0), Time(0)), before);
        switch.selector.on_notice(&notice(before), &PORTS, Time(0));
        assert_eq!(switch.route(&header(3, 0), Time(0)) == before, preset == "ecmp");
    }
}

#[test]
fn notifications_take_every_port_under_switch_ar_and_the_hash_elsewhere() {
    let used = |preset: &str| {
        let mut switch = Switch::new(preset);
        let notification = Header { carries: Carries::Notification, ..header(3, 0) };
        let ports: std::collections::BTreeSet<_> =
            (0..100).map(|_| switch.route(&notification, Time(0))).collect();
        assert_eq!(switch.decisions().taken, 0);
        ports.len()
    };
    assert_eq!((used("switch-ar"), used("switch-ar-fractional"), used("switch-ar-stable")), (4, 4, 4));
    assert_eq!((used("adaptive"), used("d-mod-k")), (1, 1));
}

#[test]
fn labels_in_turn_visit_every_path_of_a_tree() {
    let (mut low, mut high) = (Switch::at("presto", 1), Switch::at("presto", 4));
    let paths: std::collections::HashSet<_> = (100..116)
        .map(|label| (low.route(&header(3, label), Time(0)), high.route(&header(3, label), Time(0))))
        .collect();
    assert_eq!(paths.len(), 16);
}

#[test]
fn presto_takes_the_next_label_every_64_kib_of_payload() {
    let mut nic = Nic::new("presto");
    nic.selector.begin(flow(0), None, TagSpace::Labels, &mut nic.random);
    let labels: Vec<u32> = (0..48).map(|_| nic.send(flow(0), Time(0), TagSpace::Labels).bits()).collect();
    let from_first: Vec<u32> = labels.iter().map(|label| label.wrapping_sub(labels[0])).collect();
    assert_eq!(from_first, [[0; 16], [1; 16], [2; 16]].concat());
}

fn feedback(cause: Cause, rtt_us: u64, in_flight: u32) -> Feedback {
    Feedback {
        rtt: Time::from_us(rtt_us),
        serialisation: Time::from_us(1),
        hops: 6,
        packets: 1,
        bytes: 4160,
        in_flight,
        next: 50,
        remaining: Bytes(1 << 20),
        ..Feedback::of(cause, Time::from_us(100))
    }
}

#[test]
fn flowcut_takes_a_new_entropy_value_only_when_nothing_is_in_flight() {
    let (mut nic, space) = (Nic::new("flowcut-nic"), TagSpace::Entropy(256));
    let flow = flow(4);
    nic.selector.begin(flow, None, space, &mut nic.random);
    let first = nic.send(flow, Time(0), space);
    let ack = |nic: &mut Nic, rtt_us, in_flight| {
        let feedback = feedback(Cause::Ack, rtt_us, in_flight);
        nic.selector.on_feedback(flow, &feedback, || space, &mut nic.random).0
    };
    ack(&mut nic, 13, 50);
    while ack(&mut nic, 130, 50) == Advice::Continue {
        assert!(nic.selector.may_send(flow, 50, 0));
    }
    assert!(!nic.selector.may_send(flow, 50, 0));
    assert_eq!(ack(&mut nic, 130, 0), Advice::Continue);
    assert!(nic.selector.may_send(flow, 50, 50));
    assert_eq!(nic.selector.counts(flow).decisions.taken, 0);
    assert_ne!(nic.send(flow, Time(0), space), first);
    assert_eq!((nic.selector.counts(flow).decisions.taken, nic.selector.counts(flow).drains), (1, 1));
    nic.selector.on_end(flow);
    assert_eq!(nic.selector.counts(flow), FlowCounts::default());
}

proptest! {
    /// What a sender does that asks for no packet's way while its flow is settled.
    #[test]
    fn what_is_settled_holds_until_the_sender_learns_something(
        preset in prop::sample::select(nic_presets()),
        steps in prop::collection::vec((0..6u8, 13..300u64, 0..3u32, 0..4u32), 1..40),
    ) {
        let (mut nic, space) = (Nic::new(preset), TagSpace::Entropy(256));
        let flow = flow(4);
        nic.selector.begin(flow, None, space, &mut nic.random);
        let (mut now, mut oldest, mut next) = (Time(0), 0, 0);
        for (step, time, in_flight, packets) in steps {
            now += Time::from_us(time);
            oldest = next.min(oldest + packets);
            let told = Feedback { oldest, next, ..feedback(Cause::Ack, time, in_flight) };
            let told = match step {
                0 | 1 => Some(told),
                2 => Some(Feedback { window_cut: true, ..told }),
                3 => Some(Feedback { cause: Cause::Timeout, ..told }),
                _ => None,
            };
            if let Some(told) = told {
                let (_, settled) = nic.selector.on_feedback(flow, &told, || space, &mut nic.random);
                prop_assert_eq!(settled, nic.selector.settled(flow, oldest));
            } else if step == 4 {
                nic.selector.on_deadline(flow, now);
            } else if nic.selector.may_send(flow, next, oldest) {
                nic.send(flow, now, space);
                next += 1;
            }
            if let Some(tag) = nic.selector.settled(flow, oldest) {
                let before = nic.selector.counts(flow);
                for later in 0..4 {
                    prop_assert!(nic.selector.clone().may_send(flow, next + 7 * later, next.min(oldest + later)));
                    let (mut selector, mut random) = (nic.selector.clone(), nic.random.clone());
                    let then = now + Time::from_us(u64::from(100 * later));
                    let sent = selector.tag(flow, (4096, oldest), then, || space, &mut random);
                    prop_assert_eq!(sent, (tag, selector.settled(flow, oldest)));
                    prop_assert_eq!(selector.counts(flow), before);
                }
            }
        }
    }
}

/// All schemes in which NICs take part.
fn nic_presets() -> Vec<&'static str> {
    let of_nic = preset::PRESETS.iter().filter(|preset| preset.routing().placement == Placement::Nic);
    of_nic.map(|preset| preset.name).collect()
}

#[test]
fn an_open_flowcut_is_settled_and_one_that_drains_is_not() {
    let (mut nic, space) = (Nic::new("flowcut-nic"), TagSpace::Entropy(256));
    let flow = flow(4);
    let first = nic.selector.begin(flow, None, space, &mut nic.random);
    assert_eq!(nic.selector.settled(flow, 0), Some(first));
    let ack = |nic: &mut Nic, rtt_us, in_flight| {
        nic.selector.on_feedback(flow, &feedback(Cause::Ack, rtt_us, in_flight), || space, &mut nic.random).1
    };
    assert_eq!(ack(&mut nic, 13, 50), Some(first));
    let settled: Vec<_> = (0..20).map(|_| ack(&mut nic, 130, 50)).collect();
    assert_eq!((settled[0], settled[19]), (Some(first), None));
    assert_eq!(ack(&mut nic, 130, 0), None);
    let second = nic.send(flow, Time(0), space);
    // Packets up to 50 had been on the first path.
    assert_eq!([0, 49, 50].map(|oldest| nic.selector.settled(flow, oldest)), [None, None, Some(second)]);
}

#[test]
fn layers_are_left_when_the_window_is_cut_the_timer_expires_or_congestion_control_says_so() {
    let mut nic = Nic::new("fatpaths");
    // Labels stand for layers: the next one is always another.
    let space = TagSpace::Labels;
    nic.selector.begin(flow(0), None, space, &mut nic.random);
    let mut last = nic.send(flow(0), Time(0), space);
    let cut = Feedback { window_cut: true, ..feedback(Cause::Ack, 13, 5) };
    let reroute = Feedback { reroute: true, ..feedback(Cause::Ack, 13, 5) };
    for (feedback, leaves) in [
        (feedback(Cause::Ack, 13, 5), false),
        (cut, true),
        (reroute, true),
        (feedback(Cause::Timeout, 0, 0), true),
        (feedback(Cause::Nack, 13, 5), false),
    ] {
        nic.selector.on_feedback(flow(0), &feedback, || space, &mut nic.random);
        let now = nic.send(flow(0), Time(0), space);
        assert_eq!(now != last, leaves, "{feedback:?}");
        last = now;
    }
    assert_eq!(nic.selector.counts(flow(0)).decisions.taken, 3);
}

#[test]
fn schemes_of_the_switches_leave_the_nic_alone() {
    for preset in ["ecmp", "letflow", "adaptive", "valiant"] {
        assert!(NicPathSelector::new(&preset::find(preset).unwrap().routing(), 1).is_none());
    }
}

#[test]
fn a_flow_for_which_there_is_no_room_goes_by_its_hash_and_is_not_decided() {
    let mut switch = Switch::new("letflow");
    switch.scheme.max_flow_entries = Some(1);
    switch.renew();
    switch.route(&header(3, 0), Time(0));
    let other = header(4, 0);
    let hashed = PORTS[switch.selector.hashed(&other, 4)];
    assert!((0..20).all(|now| switch.route(&other, Time(now)) == hashed));
    assert_eq!(switch.decisions().taken, 1);
    // Once the first flow is forgotten, the other one is decided like any.
    switch.route(&other, Time::from_ms(5));
    assert_eq!(switch.decisions().taken, 2);
}

#[test]
fn a_flow_for_which_there_is_no_room_takes_no_intermediate_switch() {
    let slim_fly = Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() });
    let network = slim_fly.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
    let mut switch = Switch::new("valiant");
    switch.scheme.granularity = Granularity::Flow(Default::default());
    switch.scheme.max_flow_entries = Some(1);
    switch.renew();
    let forwarding = Forwarding::build(&switch.scheme, &network, |_| false, 1).unwrap();
    let (here, dst) = (network.edge_switch(0), network.hosts() - 1);
    let mut onward = |number, now| {
        let header = Header { src: 0, dst, ..header(number, 0) };
        let packet =
            PacketContext { forwarding: &forwarding, place: forwarding.place(here), header: &header };
        switch.selector.onward(packet, &mut LoadsAt(|_| 0, Time(now)), &mut switch.random)
    };
    let first = onward(3, 0);
    assert_ne!(first.tag, Tag::DIRECT);
    let direct = onward(4, 1);
    assert_eq!(direct.tag, Tag::DIRECT);
    assert!(forwarding.table().candidates(here, dst).ports.contains(&direct.port));
    for now in 2..40 {
        assert_eq!((onward(3, now), onward(4, now)), (first, direct), "flows keep together");
    }
    assert_eq!(switch.decisions().taken, 1);
}

#[test]
fn a_selector_of_ones_own_is_one_file_and_one_line() {
    let guide = include_str!("../../../../docs/tutorial/own-scheme.md");
    assert!(guide.contains(include_str!("../selector/neighbour.rs")), "the guide shows the file");
    let table = serde_json::json!({ "distance": 2 });
    let mut switch = Switch::new("spray");
    switch.scheme.selector = Selector::read("neighbour", table).unwrap().unwrap();
    assert_eq!(switch.scheme.check(), Ok(()));
    for (granularity, decided) in [("packet", 40), ("flow", 10)] {
        switch.scheme.granularity = Granularity::read(granularity, serde_json::json!({})).unwrap().unwrap();
        switch.renew();
        for packet in 0..40 {
            let flow = packet % 10;
            let port = PORTS[(flow as usize + 2) % 4];
            assert_eq!(switch.route(&header(flow, 0), Time(u64::from(packet))), port);
        }
        assert_eq!(switch.decisions().taken, decided, "per {granularity}");
        assert!(switch.decisions().deviating > 0);
    }
}

#[test]
fn a_flow_leaves_the_path_of_a_cut_link_once_and_no_other() {
    let mut nic = Nic::new("fatpaths");
    let space = TagSpace::EntropyInTurn(256);
    let first = nic.selector.begin(flow(0), None, space, &mut nic.random);
    let told = |tag: Tag| Feedback { tag: tag.bits(), ..Feedback::of(Cause::Unreachable, Time(9)) };
    let mut feedback = |tag| {
        nic.selector.on_unreachable(flow(0), &told(tag), || space, &mut nic.random);
        nic.selector.tag(flow(0), (4096, 0), Time(0), || space, &mut nic.random).0
    };
    let second = feedback(first);
    assert_ne!(second, first);
    // Others of its packets that were on the first path come back, too.
    assert_eq!([feedback(first), feedback(first)], [second; 2]);
    assert_ne!(feedback(second), second);
}

#[test]
fn control_packets_take_turns_with_data_where_that_is_asked_for_and_count_as_no_decisions() {
    let ports = |control: bool| {
        let mut switch = Switch::new("spray-round-robin");
        switch.scheme.granularity = Granularity::Packet(crate::granularity::packet::Packet { control });
        switch.renew();
        let ack = Header { carries: Carries::Control, ..header(9, 0) };
        let taken: Vec<_> =
            (0..4).map(|_| (switch.route(&header(3, 0), Time(0)), switch.route(&ack, Time(0)))).collect();
        assert_eq!(switch.decisions().taken, 4);
        taken
    };
    let alike = ports(true);
    assert_eq!((alike[0], alike[1]), (alike[2], alike[3]), "two rounds of four");
    assert!(alike[0].0 != alike[1].0 && alike[0].1 != alike[1].1);
    assert!(ports(false).windows(2).all(|two| two[0].1 == two[1].1), "by the hash");
}

#[test]
fn a_granularity_with_feedback_is_one_file_and_one_line() {
    let mut scheme = preset::find("flowbender").unwrap().routing();
    scheme.granularity =
        Granularity::read("leaves-marked", serde_json::json!({ "marks": 2 })).unwrap().unwrap();
    // What its facts say holds without any other place that knows of it.
    assert_eq!(scheme.check(), Ok(()));
    assert!(scheme.uses_marks() && scheme.uses_acks() && scheme.leaves_paths() && !scheme.scatters());
    let elsewhere = Routing {
        placement: Placement::Switch,
        selector: preset::find("spray").unwrap().routing().selector,
        ..scheme.clone()
    };
    assert!(
        elsewhere.check().unwrap_err().to_string().contains("\"leaves-marked\" is decided by the sender")
    );

    let mut nic = Nic { selector: NicPathSelector::new(&scheme, 1).unwrap(), random: Pcg64Mcg::new(1) };
    assert!(nic.selector.listens());
    let tags = TagSpace::EntropyInTurn(256);
    let first = nic.selector.begin(flow(1), None, tags, &mut nic.random);
    for (marked, moved) in [(true, 0), (false, 0), (true, 0), (true, 1), (true, 1)] {
        let feedback = Feedback { marked, ..crate::testing::ack(Time(0), Time(1)) };
        nic.selector.on_feedback(flow(1), &feedback, || tags, &mut nic.random);
        assert_eq!(nic.send(flow(1), Time(2), tags).bits(), (first.bits() + moved) % 256);
    }
}

/// The words of a switch with four ports for a data packet, at its first switch and later, and those for its port on a path that has been decided on.
fn words(preset: &str, scheme: &Routing, stride: u32) -> [String; 4] {
    let switch = SwitchPathSelector::new(scheme, stride, true, false, &mut Pcg64Mcg::new(5));
    let [first, later] = [1, 2].map(|hops| Header { src: 9, hops, ..header(3, 17) });
    assert_eq!(scheme.check(), Ok(()), "{preset}");
    [
        switch.explain(scheme, &first, 4),
        switch.explain(scheme, &later, 4),
        switch.explain_port(scheme, &first),
        switch.explain_port(scheme, &later),
    ]
}

#[test]
fn the_words_for_a_choice_are_those_of_its_scheme() {
    let hash = "hash of source, destination, flow and entropy value 17";
    let at = |preset: &str, placement| Routing { placement, ..preset::find(preset).unwrap().routing() };
    let (ingress, switch, nic) = (Placement::Ingress, Placement::Switch, Placement::Nic);
    for (preset, placement, first, later) in [
        ("ecmp", switch, hash, hash),
        (
            "wcmp",
            switch,
            &*format!("{hash}, weighted by link rates"),
            &*format!("{hash}, weighted by link rates"),
        ),
        ("d-mod-k", switch, "d-mod-k: destination 2 / 2 mod 4", "d-mod-k: destination 2 / 2 mod 4"),
        ("s-mod-k", switch, "s-mod-k: source 9 / 2 mod 4", "s-mod-k: source 9 / 2 mod 4"),
        ("spray", switch, "random, chosen for each packet", "random, chosen for each packet"),
        ("spray-nic", nic, hash, hash),
        (
            "spray-round-robin",
            switch,
            "round-robin, chosen for each packet",
            "round-robin, chosen for each packet",
        ),
        ("adaptive", switch, "least-loaded, chosen for each packet", "least-loaded, chosen for each packet"),
        ("adaptive", ingress, "least-loaded, chosen for each packet", hash),
        ("letflow", switch, "random, chosen for each flowlet", "random, chosen for each flowlet"),
        ("letflow", ingress, "random, chosen for each flowlet", hash),
        ("presto", nic, "digit of path label 17", "digit of path label 17"),
        ("conga", ingress, "digit of path label 17", "digit of path label 17"),
        ("conweave", ingress, "digit of path label 17", "digit of path label 17"),
        ("flowcut", switch, "least-loaded, chosen for each flowcut", "least-loaded, chosen for each flowcut"),
        (
            "switch-ar",
            switch,
            "switch-ar, no congestion known: d-mod-k: destination 2 / 2 mod 4",
            "switch-ar, no congestion known: d-mod-k: destination 2 / 2 mod 4",
        ),
    ] {
        let expected = [first, later, hash, hash].map(str::to_owned);
        assert_eq!(words(preset, &at(preset, placement), 2), expected, "{preset} at {}", placement.name());
    }
    // On detours, switches behind the first one draw ports or compare their loads, where they decide.
    for (preset, placement, port) in [
        ("valiant", ingress, hash),
        ("valiant", switch, "switch's draw"),
        ("ugal-l", ingress, hash),
        ("ugal-l", switch, "least load"),
    ] {
        let [.., at_first, behind] = words(preset, &at(preset, placement), 1);
        assert_eq!((&*at_first, &*behind), (hash, port), "{preset} at {}", placement.name());
    }
}

#[test]
fn the_uncongested_port_has_its_words() {
    for (name, words_of_port) in [
        ("lowest", "the first port"),
        ("hash", "hash of source, destination, flow and entropy value 17"),
        ("d-mod-k", "d-mod-k: destination 2 / 1 mod 4"),
    ] {
        let mut scheme = preset::find("switch-ar").unwrap().routing();
        let table = serde_json::json!({ "uncongested": name });
        scheme.selector = Selector::read("switch-ar", table).unwrap().unwrap();
        let expected = format!("switch-ar, no congestion known: {words_of_port}");
        assert_eq!(words("switch-ar", &scheme, 1)[0], expected);
    }
}

/// What a switch does in each role, asked of the roles themselves.
#[test]
fn roles_follow_from_placement_granularity_and_selector() {
    use super::roles::Roles;
    let roles = |preset: &str, placement, has_hosts| {
        let scheme = Routing { placement, ..preset::find(preset).unwrap().routing() };
        let roles = Roles::new(&scheme, has_hosts);
        let all = [Carries::Data, Carries::Control, Carries::Notification]
            .map(|carries| format!("{:?}", roles.of(carries)));
        (all.join(" "), roles.fast_path(false))
    };
    let (ingress, switch, nic) = (Placement::Ingress, Placement::Switch, Placement::Nic);
    for (preset, placement, has_hosts, expected, fast) in [
        ("ecmp", switch, true, "Hash Hash Hash", FastPath::Hash),
        ("spray-nic", nic, true, "Hash Hash Hash", FastPath::Hash),
        ("flowbender", nic, false, "Hash Hash Hash", FastPath::Hash),
        ("presto", nic, true, "Label Hash Hash", FastPath::Label),
        ("conga", ingress, false, "Label Hash Hash", FastPath::Label),
        ("conweave", ingress, true, "Label Hash Hash", FastPath::Label),
        ("spray", switch, true, "Spray Hash Hash", FastPath::Spray),
        ("spray-round-robin", switch, true, "Packet Packet Packet", FastPath::None),
        ("adaptive", switch, false, "Packet Hash Hash", FastPath::Decide),
        ("adaptive", ingress, true, "PacketAtFirst Hash Hash", FastPath::ByRole),
        ("adaptive", ingress, false, "Hash Hash Hash", FastPath::Hash),
        ("letflow", switch, false, "Run Hash Hash", FastPath::Run),
        ("letflow", ingress, true, "RunAtFirst Hash Hash", FastPath::ByRole),
        ("letflow", ingress, false, "Hash Hash Hash", FastPath::Hash),
        ("d-mod-k", switch, true, "Static Static Static", FastPath::None),
        ("switch-ar", switch, true, "Packet Hash Scatter", FastPath::None),
    ] {
        let of = format!("{preset} at {}", placement.name());
        assert_eq!(roles(preset, placement, has_hosts), (expected.to_owned(), fast), "{of}");
    }
    // A uniform draw that control packets take as well is no fast path.
    let mut scheme = preset::find("spray").unwrap().routing();
    scheme.granularity = Granularity::Packet(crate::granularity::packet::Packet { control: true });
    assert_eq!(Roles::new(&scheme, true).fast_path(false), FastPath::None);
    // Where data of some sources are left out, their roles are asked for.
    let scheme = preset::find("adaptive").unwrap().routing();
    assert_eq!(Roles::new(&scheme, true).fast_path(true), FastPath::ByRole);
}

/// Three switches all of which are joined by three links, with one host each.
fn triangle() -> netloom_topology::Network {
    let hyperx = netloom_topology::HyperX {
        dimensions: 1,
        switches_per_dimension: vec![3],
        parallel_links: vec![3],
        hosts_per_switch: Some(1),
        ..Default::default()
    };
    Topology::HyperX(hyperx).build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
}

#[test]
fn behind_the_first_switch_ports_of_detours_are_drawn_where_every_switch_decides() {
    let network = triangle();
    for (preset, placement) in [
        ("valiant", Placement::Switch),
        ("valiant", Placement::Ingress),
        ("ugal-l", Placement::Switch),
        ("ugal-l", Placement::Ingress),
    ] {
        let mut switch = Switch::new(preset);
        switch.scheme.placement = placement;
        switch.renew();
        let forwarding = Forwarding::build(&switch.scheme, &network, |_| false, 1).unwrap();
        // From host 0 over switch 1 to host 2, at switch 1.
        let here = network.edge_switch(1);
        let data = Header { src: 0, dst: 2, hops: 2, ..header(3, 1) };
        let ports = forwarding.table().candidates(here, 2).ports;
        let hashed = ports[switch.selector.hashed(&data, 3)];
        let passed = Tag::towards(1).passed();
        let mut hop = |header: &Header| {
            let packet = PacketContext { forwarding: &forwarding, place: forwarding.place(here), header };
            switch.selector.onward(packet, &mut LoadsAt(|_| 0, Time(0)), &mut switch.random)
        };
        let answer = Header { carries: Carries::Control, ..data };
        let answers: std::collections::BTreeSet<_> = (0..60).map(|_| hop(&answer).port).collect();
        let hops: Vec<Hop> = (0..60).map(|_| hop(&data)).collect();
        assert!(hops.iter().all(|hop| hop.tag == passed));
        let taken: std::collections::BTreeSet<_> = hops.iter().map(|hop| hop.port).collect();
        let deviating = hops.iter().filter(|hop| hop.port != hashed).count() as u64;
        let every = placement == Placement::Switch;
        assert_eq!((answers.len(), taken.len()), (1, if every { 3 } else { 1 }), "{preset} {placement:?}");
        assert_eq!(switch.decisions(), Decisions { taken: if every { 60 } else { 0 }, deviating });
        assert!(every || hops[0].port == hashed);
    }
}

#[test]
fn a_detour_is_another_way_than_the_direct_one_and_counts_as_such() {
    let network = triangle();
    let mut switch = Switch::new("valiant");
    let forwarding = Forwarding::build(&switch.scheme, &network, |_| false, 1).unwrap();
    let (here, data) = (network.edge_switch(0), Header { src: 0, dst: 2, ..header(3, 0) });
    let packet = PacketContext { forwarding: &forwarding, place: forwarding.place(here), header: &data };
    for _ in 0..20 {
        let hop = switch.selector.onward(packet, &mut LoadsAt(|_| 0, Time(0)), &mut switch.random);
        assert_eq!((hop.tag, network.neighbour(here, hop.port)), (Tag::towards(1), network.edge_switch(1)));
    }
    assert_eq!(switch.decisions(), Decisions { taken: 20, deviating: 20 });
}

#[test]
fn an_adaptive_ingress_switch_decides_on_its_own_packets_only() {
    let mut switch = Switch::new("adaptive");
    switch.scheme.placement = Placement::Ingress;
    switch.renew();
    let hops: Vec<Hop> = (0..60).map(|_| switch.hop(&header(3, 0), Time(0))).collect();
    assert!(PORTS.iter().all(|&port| hops.iter().any(|hop| hop.port == port)));
    assert!(hops.iter().any(|hop| hop.tag != hops[0].tag), "each gets an entropy value");
    let later = Header { hops: 2, ..header(3, 9) };
    let hashed = Hop { port: PORTS[switch.selector.hashed(&later, 4)], tag: later.tag };
    assert!((0..20).all(|_| switch.hop(&later, Time(0)) == hashed));
    assert_eq!(switch.decisions().taken, 60);
}

#[test]
fn acks_go_by_the_hash_where_data_are_sprayed() {
    let mut switch = Switch::new("spray");
    let ack = Header { carries: Carries::Control, ..header(3, 0) };
    let hashed = PORTS[switch.selector.hashed(&ack, 4)];
    assert!((0..20).all(|_| switch.route(&ack, Time(0)) == hashed));
    assert_eq!(switch.decisions(), Decisions::default());
}

#[test]
fn new_routes_make_a_switch_forget_runs_and_marks() {
    let mut switch = Switch::new("letflow");
    for expected in [1, 2] {
        (0..9).for_each(|now| _ = switch.route(&header(3, 0), Time(now)));
        assert_eq!(switch.decisions().taken, expected);
        switch.selector.forget(&switch.scheme);
    }
    let mut switch = Switch::new("switch-ar");
    let home = switch.route(&header(3, 0), Time(0));
    let notice = Notice { destination: 2, port: home, feedback: 63, is_local: true };
    switch.selector.on_notice(&notice, &PORTS, Time(0));
    assert_ne!(switch.route(&header(3, 0), Time(1)), home);
    switch.selector.forget(&switch.scheme);
    assert_eq!(switch.route(&header(3, 0), Time(2)), home);
    // And what a leaf has been told of paths.
    let mut switch = Switch::new("conga");
    let labels = |switch: &mut Switch| -> std::collections::BTreeSet<u16> {
        let candidates = Candidates { ports: &PORTS, set: 0 };
        let mut mark = |flow| {
            let view = LoadsAt(|_| 0, Time(1));
            marked(switch, header(flow, 0), (8, 2), candidates, view).label
        };
        (0..40).map(&mut mark).collect()
    };
    switch.selector.on_report(8, crate::selector::conga::Report { label: 0, congestion: 7 }, Time(0));
    assert_eq!(labels(&mut switch), [1].into());
    switch.selector.forget(&switch.scheme);
    assert_eq!(labels(&mut switch), [0, 1].into());
}

#[test]
fn a_notification_without_feedback_changes_nothing() {
    let mut switch = Switch::new("switch-ar");
    switch.scheme.selector =
        Selector::read("switch-ar", serde_json::json!({ "severity": "last" })).unwrap().unwrap();
    switch.renew();
    let home = switch.route(&header(3, 0), Time(0));
    let notice = |feedback| Notice { destination: 2, port: home, feedback, is_local: true };
    switch.selector.on_notice(&notice(63), &PORTS, Time(0));
    let moved = switch.route(&header(3, 0), Time(1));
    switch.selector.on_notice(&notice(0), &PORTS, Time(1));
    switch.selector.on_notice(&Notice { port: moved, ..notice(1) }, &PORTS, Time(1));
    // The port that it left is worse than any other, still.
    assert!(![home, moved].contains(&switch.route(&header(3, 0), Time(2))));
}

/// Decisions that were handed in.
#[derive(Debug, Default)]
struct Received(std::sync::Mutex<Vec<(FlowKey, Decisions)>>);

impl Decided for Received {
    fn add(&self, flows: &mut dyn Iterator<Item = (FlowKey, Decisions)>) {
        self.0.lock().unwrap().extend(flows);
    }
}

#[test]
fn decisions_are_counted_by_flow_where_any_are_taken() {
    for (preset, counts) in
        [("letflow", true), ("spray", true), ("conweave", true), ("ecmp", false), ("d-mod-k", false)]
    {
        let (mut switch, mut asked) = (Switch::new(preset), false);
        let received = std::sync::Arc::new(Received::default());
        switch.selector.count_flows(|| {
            asked = true;
            received.clone()
        });
        assert_eq!(asked, counts, "{preset}");
        if preset == "letflow" {
            (0..5).for_each(|now| _ = switch.route(&header(3, 0), Time::from_ms(now)));
            switch.selector.flush_counts();
            let handed_in = received.0.lock().unwrap();
            assert_eq!(handed_in[..], [(FlowKey { src: 1, flow: 3 }, switch.decisions())]);
            assert_eq!(switch.decisions().taken, 5);
        }
    }
}

#[test]
fn flowlets_are_counted_by_flow_where_there_are_any() {
    let mut switch = Switch::new("letflow");
    for (flow, packets) in [(3, 4), (5, 2)] {
        (0..packets).for_each(|now| _ = switch.route(&header(flow, 0), Time::from_ms(now)));
    }
    let mut flowlets = switch.selector.take_flowlets().unwrap();
    flowlets.sort_unstable();
    assert_eq!(flowlets, [(FlowKey { src: 1, flow: 3 }, 4), (FlowKey { src: 1, flow: 5 }, 2)]);
    assert_eq!(switch.selector.take_flowlets(), Some(Vec::new()), "each is told once");
    assert_eq!(Switch::new("spray").selector.take_flowlets(), None);
}

#[test]
fn nics_say_what_they_want_to_know() {
    let nics = nic_presets();
    let of = |asks: fn(&NicPathSelector) -> bool| -> Vec<&str> {
        nics.iter().copied().filter(|preset| asks(&Nic::new(preset).selector)).collect()
    };
    let expecting = ["plb-reps-artefact", "flowlet-reps-artefact", "hopper", "flowcut-artefact-ft"];
    assert_eq!(of(NicPathSelector::expects), expecting);
    let by_lengths = ["spritz-scout", "spritz-spray", "flicr-like"];
    let listing = [&["path-list", "uet-oblivious", "uet-bitmap", "uet-mixed"][..], &by_lengths].concat();
    assert_eq!(of(|nic| nic.lists().is_some()), listing);
    assert_eq!(of(NicPathSelector::weighs), by_lengths);
    assert_eq!(Nic::new("path-list").selector.lists(), Some(64));
    let deaf = ["spray-nic", "spray-paths", "presto", "uet-oblivious", "k-shortest"];
    let listening: Vec<_> = nics.iter().copied().filter(|preset| !deaf.contains(preset)).collect();
    assert_eq!(of(NicPathSelector::listens), listening);
}

#[test]
fn a_nic_takes_the_paths_of_its_list() {
    let mut nic = Nic::new("path-list");
    nic.selector.begin(flow(0), None, TagSpace::Labels, &mut nic.random);
    nic.selector.list(flow(0), &[7, 9, 30].map(Tag::label));
    let mut pass: Vec<u32> = (0..3).map(|_| nic.send(flow(0), Time(0), TagSpace::Labels).bits()).collect();
    pass.sort_unstable();
    assert_eq!(pass, [7, 9, 30]);
}

/// Where the least RTT is that of the idle path, a first packet that takes long drains its flow; its pause ends in time.
#[test]
fn a_nic_that_knows_how_long_an_idle_path_takes_drains_at_once_until_the_deadline() {
    for knows in [true, false] {
        let (mut nic, space) = (Nic::new("flowcut-artefact-ft"), TagSpace::Entropy(256));
        let flow = flow(4);
        nic.selector.begin(flow, None, space, &mut nic.random);
        if knows {
            nic.selector.expect(flow, 6, Time::from_us(1));
        }
        let late = feedback(Cause::Ack, 500, 50);
        let (advice, _) = nic.selector.on_feedback(flow, &late, || space, &mut nic.random);
        let until = Time::from_us(100) + Time::from_ms(1);
        assert_eq!(advice, if knows { Advice::PauseUntil(until) } else { Advice::Continue });
        assert_eq!(nic.selector.may_send(flow, 50, 0), !knows);
        nic.selector.on_deadline(flow, until - Time(1));
        assert_eq!(nic.selector.may_send(flow, 50, 0), !knows);
        nic.selector.on_deadline(flow, until);
        assert!(nic.selector.may_send(flow, 50, 0));
    }
}

#[test]
fn a_subflow_takes_the_path_after_that_of_the_one_before() {
    let mut nic = Nic::new("flowcut-nic");
    let before = Some(Tag::entropy(41));
    let tag = nic.selector.begin(flow(0), before, TagSpace::Entropy(256), &mut nic.random);
    assert_eq!((tag.bits(), nic.send(flow(0), Time(0), TagSpace::Entropy(256)).bits()), (42, 42));
}

/// What a switch writes under CONGA on a packet to a leaf to which there are some paths.
fn marked(
    switch: &mut Switch,
    header: Header,
    (last, paths): (u32, u32),
    candidates: Candidates<'_>,
    view: impl crate::View,
) -> crate::selector::conga::Marking {
    let of = (header.key(), header.payload);
    let (selector, random) = (&mut switch.selector, &mut switch.random);
    selector.mark((of, || header), (last, || paths), || candidates, view, random).0
}

/// Two leaves under CONGA: what one sees of a path is reported to the other, whose flows then take another one.
#[test]
fn leaves_report_paths_to_each_other_under_conga() {
    use crate::selector::conga::{Marking, Report};
    let (mut here, mut there) = (Switch::new("conga"), Switch::new("conga"));
    let mark = |switch: &mut Switch, flow, now| {
        let candidates = Candidates { ports: &PORTS, set: 0 };
        let view = LoadsAt(|_| 0, now);
        marked(switch, header(flow, 0), (8, 4), candidates, view)
    };
    let first = mark(&mut here, 3, Time(0));
    assert_eq!((first.congestion, first.report), (0, None));
    // 3 of 8 eighths on the first link, 6 on the second; the third is less in use.
    let raise = |switch: &Switch, mut marking: Marking, eighths: u64| {
        marking.raise(switch.selector.congestion(eighths << 13));
        marking
    };
    let arrives = raise(&there, raise(&there, raise(&here, first, 3), 6), 2);
    assert_eq!(arrives, Marking { label: first.label, congestion: 6, report: None });
    assert_eq!(there.selector.report_to(5, Time(1), &mut there.random), None);
    there.selector.see_marking(5, arrives, Time(1));
    let report = there.selector.report_to(5, Time(1), &mut there.random);
    assert_eq!(report, Some(Report { label: first.label, congestion: 6 }));
    here.selector.on_report(8, report.unwrap(), Time(2));
    assert_eq!(mark(&mut here, 3, Time(3)).label, first.label, "in mid-flowlet");
    assert!((10..60).all(|flow| mark(&mut here, flow, Time(4)).label != first.label));
    // What it has seen itself of paths from there goes with its packets.
    here.selector.see_marking(8, Marking { label: 2, congestion: 4, report: None }, Time(5));
    assert_eq!(mark(&mut here, 3, Time(6)).report, Some(Report { label: 2, congestion: 4 }));
    // Elsewhere nothing is written or learnt.
    let mut other = Switch::new("ecmp");
    assert_eq!(mark(&mut other, 3, Time(0)), Marking::default());
    assert_eq!(raise(&other, first, 7), first);
    assert_eq!(other.selector.report_to(5, Time(0), &mut other.random), None);
}

#[test]
fn a_leaf_without_room_for_a_flow_marks_it_by_its_hash_under_conga() {
    let mut switch = Switch::new("conga");
    switch.scheme.max_flow_entries = Some(1);
    switch.renew();
    let candidates = Candidates { ports: &PORTS, set: 0 };
    let mut mark = |flow, now| {
        let view = LoadsAt(|_| 0, Time(now));
        marked(&mut switch, header(flow, 0), (8, 4), candidates, view).label
    };
    mark(3, 0);
    let labels: Vec<u16> = (10..30).map(|flow| mark(flow, 1)).collect();
    assert_eq!(switch.decisions().taken, 1);
    let hashed: Vec<u16> = (10..30).map(|flow| switch.selector.hashed(&header(flow, 0), 4) as u16).collect();
    assert_eq!(labels, hashed);
}

/// A flow under ConWeave from its first switch to its last one and back: what is written, signalled, counted and held.
#[test]
fn first_and_last_switches_work_together_under_conweave() {
    use super::edges::{Between, EdgeArrival, Flush, Verdict, label_of};
    let (mut first, mut last) = (Switch::new("conweave"), Switch::new("conweave"));
    let key = FlowKey { src: 1, flow: 3 };
    let between = || Between { last: 8, paths: 4, base_rtt: Time::from_us(10) };
    let stamp = |switch: &mut Switch, now| {
        switch.selector.at_first(key, Time::from_us(now), between, &mut switch.random)
    };
    let arrive = |switch: &mut Switch, word, is_marked, sent, now| {
        let mut signals = Vec::new();
        let (sent, now) = (Time::from_us(sent), Time::from_us(now));
        let verdict =
            switch.selector.at_last(&EdgeArrival { flow: key, word, sent, is_marked, now }, &mut signals);
        (verdict, signals)
    };
    let asks = stamp(&mut first, 0).unwrap();
    assert_eq!(asks >> 16, 1 << 8, "it asks for a reply, of epoch 0");
    let (verdict, reply) = arrive(&mut last, asks, false, 0, 5);
    assert_eq!((verdict, &reply[..]), (Verdict::Pass, &[label_of(asks)][..]));
    // It may come until 14 us; another epoch begins on the same path.
    first.selector.on_signal(key, 8, reply[0], Time::from_us(14));
    let next = stamp(&mut first, 15).unwrap();
    assert_eq!(next, asks | 1 << 16, "of epoch 1");
    assert_eq!(first.decisions(), Decisions::default());
    // A marked packet's path is busy, and one of its hosts' flows is not told twice.
    let (_, signals) = arrive(&mut last, next, true, 15, 25);
    assert_eq!(signals, [1 << 16 | label_of(next), 2 << 30 | 1 << 16 | label_of(next)]);
    assert_eq!(arrive(&mut last, next, true, 15, 26).1.len(), 1);
    first.selector.on_signal(key, 8, signals[1], Time::from_us(27));
    // The reply is late: a tail, and then another path, as its own is busy.
    let tail = stamp(&mut first, 30).unwrap();
    assert_eq!(tail, 1 << 25 | 1 << 16 | label_of(asks));
    assert_eq!(first.decisions(), Decisions { taken: 1, deviating: 1 });
    let moved = stamp(&mut first, 31).unwrap();
    assert_eq!(moved >> 16, 1 << 10 | 1, "re-routed, of epoch 1");
    assert_ne!(label_of(moved), label_of(asks));
    // Packets of the epoch took 11 us: the tail is awaited until 11 us after the first packet behind it left, and 16 us.
    let until = Time::from_us(31 + 11 + 16);
    assert_eq!(arrive(&mut last, moved, false, 31, 36), (Verdict::HoldUntil(until), vec![]));
    assert_eq!(last.selector.on_hold_timer(key, Time::from_us(40)), Flush::Later(until));
    let clear = vec![1 << 30 | 1 << 16 | label_of(tail)];
    assert_eq!(arrive(&mut last, tail, false, 30, 41), (Verdict::Release, clear.clone()));
    assert_eq!(last.selector.on_hold_timer(key, until), Flush::Over);
    first.selector.on_signal(key, 8, clear[0], Time::from_us(46));
    assert_eq!(stamp(&mut first, 47).unwrap(), 1 << 24 | 2 << 16 | label_of(moved), "it asks again");
    // Elsewhere nothing is written or held.
    let mut other = Switch::new("ecmp");
    assert_eq!(stamp(&mut other, 0), None);
    assert_eq!(arrive(&mut other, moved, true, 0, 1), (Verdict::Pass, vec![]));
    assert_eq!(other.selector.on_hold_timer(key, Time(0)), Flush::Over);
}

#[test]
fn no_flow_is_drained_whose_round_trips_are_all_alike() {
    for preset in nic_presets() {
        let mut nic = Nic::new(preset);
        let space = TagSpace::EntropyInTurn(256);
        nic.selector.begin(flow(0), None, space, &mut nic.random);
        let late = |cause| Feedback { marked: true, ..feedback(cause, 5000, 50) };
        for cause in [Cause::Ack, Cause::Ack, Cause::Timeout] {
            nic.selector.on_feedback(flow(0), &late(cause), || space, &mut nic.random);
        }
        let FlowCounts { drains, drain_time, .. } = nic.selector.on_end(flow(0));
        assert_eq!((drains, drain_time), (0, Time::ZERO), "{preset}");
    }
}

/// A packet of flow 3 from host 0 to host 2 at switch 0 of the triangle, as it comes to a switch that counts flowcuts.
fn counted(
    switch: &mut Switch,
    forwarding: &Forwarding,
    header: &Header,
    sent: u64,
    load: impl Fn(PortId) -> u64,
) -> Hop {
    let here = forwarding.table().edge_switch(0);
    let packet = PacketContext { forwarding, place: forwarding.place(here), header };
    let arrival =
        crate::header::Arrival { back: 77, sent: Time(sent), serialisation: Time(0), turned: false };
    let candidates = forwarding.table().candidates(here, header.dst);
    let view = LoadsAt(load, Time(sent + 10));
    match switch.selector.assign(header, arrival, Time(sent + 10)) {
        Assigned::Kept(hop) => hop,
        assigned => {
            switch.selector.begin_flowcut((assigned, arrival), packet, candidates, view, &mut switch.random)
        }
    }
}

fn receipt(flow: u32, sent: u64) -> crate::header::Receipt {
    crate::header::Receipt {
        flow: FlowKey { src: 0, flow },
        pass: 1,
        sent: Time(sent),
        bytes: 4160,
        serialisation: Time(0),
        hops: 3,
        has_more: true,
        access: Some(Time(1)),
    }
}

#[test]
fn a_switch_that_counts_flowcuts_chooses_where_nothing_is_in_flight() {
    let network = triangle();
    let mut switch = Switch::new("flowcut");
    let forwarding = Forwarding::build(&switch.scheme, &network, |_| false, 1).unwrap();
    let ports = forwarding.table().candidates(network.edge_switch(0), 2).ports.to_vec();
    let data = Header { src: 0, dst: 2, ..header(3, 9) };
    let least = |port| move |other: PortId| u64::from(other != port);
    assert!(switch.selector.counts_flight());
    let hop = |port| Hop { port, tag: data.tag };
    assert_eq!(counted(&mut switch, &forwarding, &data, 0, least(ports[1])), hop(ports[1]));
    assert_eq!(
        counted(&mut switch, &forwarding, &data, 100, least(ports[2])),
        hop(ports[1]),
        "one is in flight"
    );
    assert_eq!(switch.decisions().taken, 1);
    assert_eq!(switch.selector.on_receipt(&receipt(3, 0), Time(300)), Some((77, None)));
    assert_eq!(switch.selector.on_receipt(&receipt(3, 100), Time(400)), Some((77, None)));
    assert_eq!(switch.selector.on_receipt(&receipt(3, 100), Time(401)), None, "nothing is counted");
    assert_eq!(counted(&mut switch, &forwarding, &data, 500, least(ports[2])), hop(ports[2]));
    assert_eq!((switch.decisions().taken, switch.selector.occupancy().unwrap().peak), (2, 1));

    let mut other = Switch::new("ecmp");
    assert!(!other.selector.counts_flight() && other.selector.occupancy().is_none());
    assert_eq!(other.selector.on_receipt(&receipt(3, 0), Time(300)), None);
}

#[test]
fn what_is_not_counted_goes_by_the_hash() {
    let network = triangle();
    let mut switch = Switch::new("flowcut-ingress");
    switch.scheme.max_flow_entries = Some(1);
    switch.renew();
    let forwarding = Forwarding::build(&switch.scheme, &network, |_| false, 1).unwrap();
    let ports = forwarding.table().candidates(network.edge_switch(0), 2).ports.to_vec();
    let data = |flow, hops| Header { src: 0, dst: 2, hops, ..header(flow, 9) };
    let hashed = |switch: &Switch, header: &Header| Hop {
        port: ports[switch.selector.hashed(header, 3)],
        tag: header.tag,
    };
    let elsewhere = |hashed: Hop| move |port: PortId| u64::from(port == hashed.port);
    let mut take = |flow, hops, sent| {
        let header = data(flow, hops);
        let hashed = hashed(&switch, &header);
        (counted(&mut switch, &forwarding, &header, sent, elsewhere(hashed)), hashed)
    };
    // A packet at a switch behind its first one, then flow 3, which is counted and given a new entropy value, then others, for which there is no room.
    let (later, by_hash) = take(5, 2, 0);
    assert_eq!(later, by_hash);
    let (first, by_hash) = take(3, 1, 1);
    assert!(first.port != by_hash.port && first.tag != by_hash.tag);
    for flow in 4..12 {
        let (other, by_hash) = take(flow, 1, 2);
        assert_eq!(other, by_hash);
    }
    assert_eq!(take(3, 1, 20).0, first);
    assert_eq!(switch.decisions(), Decisions { taken: 1, deviating: 1 });
}

#[test]
fn flowcuts_may_take_a_detour_that_is_less_in_use() {
    let network = triangle();
    let mut switch = Switch::new("ugal-l");
    switch.scheme.granularity = preset::find("flowcut").unwrap().routing().granularity;
    switch.scheme.placement = Placement::Switch;
    switch.renew();
    let forwarding = Forwarding::build(&switch.scheme, &network, |_| false, 1).unwrap();
    let minimal = forwarding.table().candidates(network.edge_switch(0), 2).ports.to_vec();
    let data = Header { src: 0, dst: 2, ..header(3, 0) };
    let is_full = |port| if minimal.contains(&port) { 1 << 30 } else { 0 };
    let first = counted(&mut switch, &forwarding, &data, 0, is_full);
    assert_eq!(first.tag, Tag::towards(1));
    assert!(!minimal.contains(&first.port));
    assert_eq!(counted(&mut switch, &forwarding, &data, 5, |_| 0), first, "while something is in flight");
    assert_eq!(switch.decisions(), Decisions { taken: 1, deviating: 1 });
}
