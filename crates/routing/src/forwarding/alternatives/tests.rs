use std::collections::BTreeSet;
use std::path::Path;

use netloom_topology::{BuildContext, Dragonfly, DragonflyPreset, HyperX, KaryNTree, SlimFly, Topology};
use netloom_units::{Bytes, Time};
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::forwarding::Forwarding;
use crate::header::{Carries, Header};
use crate::preset;
use crate::selector::Selector;
use crate::selector::ugal::{Decision, Global, Hops, Ratio};

fn build(topology: Topology) -> Network {
    topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
}

/// Nine groups of four switches with two hosts and two global links each; port q of group G leads to group q, or q + 1 if that is G or above.
fn dragonfly() -> Network {
    build(Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(2), ..Dragonfly::default() }))
}

fn hyperx() -> Network {
    let hyperx = HyperX {
        dimensions: 2,
        switches_per_dimension: vec![4, 3],
        hosts_per_switch: Some(1),
        ..HyperX::default()
    };
    build(Topology::HyperX(hyperx))
}

/// Loads by hand.
struct Seen<L, R> {
    load: L,
    reported: R,
}

impl<L: Fn(PortId) -> u64, R: Fn(ChannelId) -> u64> View for Seen<L, R> {
    fn now(&self) -> netloom_units::Time {
        netloom_units::Time::ZERO
    }

    fn load(&mut self, port: PortId) -> u64 {
        (self.load)(port)
    }
    fn rate(&self, _: PortId) -> u64 {
        1
    }
    fn reported(&self, channel: ChannelId) -> u64 {
        (self.reported)(channel)
    }
}

/// A way that is known.
impl ByHash for Hop {
    fn hop(&self, _: PacketContext<'_>, _: &[PortId]) -> Hop {
        *self
    }
}

struct Place {
    network: Network,
    forwarding: Forwarding,
    random: Pcg64Mcg,
}

impl Place {
    fn new(network: Network, config: Ugal) -> Self {
        let mut scheme = preset::find("ugal-l").unwrap().routing();
        scheme.selector = Selector::Ugal(config);
        let forwarding = Forwarding::build(&scheme, &network, |_| false, 1).unwrap();
        Place { network, forwarding, random: Pcg64Mcg::new(5) }
    }

    fn switch(&self, index: u32) -> NodeId {
        self.network.hosts() + index
    }

    /// The port of a switch to a neighbour.
    fn port(&self, from: NodeId, to: NodeId) -> PortId {
        let ports = self.network.ports(from).len() as PortId;
        (0..ports).find(|&port| self.network.neighbour(from, port) == to).unwrap()
    }

    /// Decides about a packet at a switch.
    fn choose(&mut self, here: NodeId, header: &Header, view: &mut impl View) -> (Hop, bool) {
        let minimal = self.forwarding.onward(here, header, |_| 0);
        let alternatives = self.forwarding.alternatives().unwrap();
        let packet =
            PacketContext { forwarding: &self.forwarding, place: self.forwarding.place(here), header };
        alternatives.choose(packet, minimal, view, &mut self.random).unwrap()
    }
}

fn header(src: u32, dst: u32) -> Header {
    let carries = Carries::Data;
    Header { src, dst, flow: 0, tag: Tag::DIRECT, bytes: 4160, payload: 4096, hops: 1, carries }
}

/// The switch of group `group` with the link to group `to`.
fn gateway(group: u32, to: u32) -> u32 {
    4 * group + (to - u32::from(to > group)) / 2
}

#[test]
fn a_dragonflys_decisions_are_those_of_the_formula_by_hand() {
    let config = |decision| Ugal { decision, ..Ugal::default() };
    let hops_form = |bias| config(Decision::Hops(Hops { bias: Bytes(bias) }));
    let ratio_form = config(Decision::Ratio(Ratio { ratio: 2, bias: Bytes(100) }));
    // From switch 1 of group 0 to switch 0 of group 1: over switch 0 of group 0, local and global. The other way in two local hops less where
    // its gateways are the same switch.
    let (src, dst, from, to) = (2, 8, 1, 4);
    let other_hops = |group: u32| {
        let local = |a: u32, b: u32| u32::from(a != b);
        local(from, gateway(0, group))
            + 1
            + local(gateway(group, 0), gateway(group, 1))
            + 1
            + local(gateway(1, group), to)
    };
    assert_eq!([other_hops(3), other_hops(2), other_hops(8)], [3, 3, 4]);
    for (form, is_hops_form) in [(hops_form(0), true), (hops_form(7000), true), (ratio_form, false)] {
        let bias = if let Decision::Hops(hops) = &form.decision { hops.bias.0 } else { 100 };
        let mut place = Place::new(dragonfly(), form);
        let here = place.switch(from);
        let minimal_port = place.port(here, place.switch(0));
        let mut taken = BTreeSet::new();
        for (minimal, other) in
            [(0, 0), (500, 500), (4000, 500), (1500, 500), (8000, 500), (1200, 700), (1400, 700)]
        {
            let load = |port| if port == minimal_port { minimal } else { other };
            let outweighs = |load: u64, hops: u32| match is_hops_form {
                true => minimal * 2 > load * u64::from(hops) + bias,
                false => minimal > 2 * load + bias,
            };
            let mut others = 0u32;
            for _ in 0..700 {
                let (hop, is_minimal) =
                    place.choose(here, &header(src, dst), &mut Seen { load, reported: |_| 0 });
                if is_minimal {
                    assert_eq!(hop, Hop { port: minimal_port, tag: Tag::DIRECT });
                    continue;
                }
                let Phase::Towards(edge) = hop.tag.phase() else { panic!("{hop:?}") };
                let group = edge / 4;
                assert_eq!(edge, gateway(group, 0), "group {group} is entered at its gateway");
                assert!(hop.port != minimal_port && outweighs(other, other_hops(group)), "group {group}");
                others += 1;
                taken.insert(group);
            }
            // Of seven groups, the way over group 2 begins by the loaded port, too, and is never taken.
            let lighter = (3..9).filter(|&group| outweighs(other, other_hops(group))).count() as u32;
            // Six standard deviations of a binomial(700, 1/2) at most.
            let off = others.abs_diff(100 * lighter);
            assert!(off < 80 && (lighter > 0 || others == 0), "{minimal} {other}: {others} for {lighter}");
        }
        assert_eq!(taken, (3..9).collect(), "all groups whose ways begin by other ports");
    }
}

#[test]
fn within_a_group_ways_over_its_other_switches_are_weighed() {
    let mut place = Place::new(dragonfly(), Ugal::default());
    let (here, there) = (place.switch(0), place.switch(1));
    let direct = place.port(here, there);
    let load = |port| if port == direct { 100_000 } else { 0 };
    let mut over = BTreeSet::new();
    for _ in 0..50 {
        let (hop, is_minimal) = place.choose(here, &header(0, 2), &mut Seen { load, reported: |_| 0 });
        assert!(!is_minimal);
        over.insert((place.network.neighbour(here, hop.port) - place.network.hosts(), hop.tag.bits()));
    }
    assert_eq!(over, BTreeSet::from([(2, 2), (3, 3)]));
}

#[test]
fn the_global_queue_is_the_reported_one_of_the_gateway_or_ones_own() {
    let queue = Queue::Global(Global::default());
    let decision = Decision::Hops(Hops { bias: Bytes(0) });
    let mut place = Place::new(dragonfly(), Ugal { queue, decision, ..Ugal::default() });
    let here = place.switch(1);
    let channel = |place: &Place, from: u32, to: u32| {
        let (from, to) = (place.switch(from), place.switch(to));
        place.network.ports(from)[usize::from(place.port(from, to))]
    };
    let minimal = channel(&place, 0, gateway(1, 0));
    // Its own port to switch 0 is loaded, which does not matter; its own global ports lead to groups 3 and 4.
    let local = place.port(here, place.switch(0));
    let to_3 = place.port(here, place.switch(gateway(3, 0)));
    let decide = |place: &mut Place, at_minimal: u64, elsewhere: u64, own: u64| {
        let load = |port| {
            if port == local {
                1 << 30
            } else if port == to_3 {
                own
            } else {
                0
            }
        };
        let reported = |channel| if channel == minimal { at_minimal } else { elsewhere };
        let decide = |place: &mut Place| place.choose(here, &header(2, 8), &mut Seen { load, reported });
        (0..300)
            .map(|_| decide(place))
            .filter(|(_, is_minimal)| !is_minimal)
            .map(|(hop, _)| hop.tag.bits())
            .collect::<BTreeSet<u32>>()
    };
    let groups = |groups: &[u32]| groups.iter().map(|&group| gateway(group, 0)).collect::<BTreeSet<u32>>();
    assert_eq!(decide(&mut place, 0, 0, 0), groups(&[]));
    assert_eq!(decide(&mut place, 1000, 1000, 1000), groups(&[4]), "its own queue to group 4 is empty");
    assert_eq!(decide(&mut place, 1000, 500, 1000), groups(&[2, 4]), "two hops of 1000 against three of 500");
    assert_eq!(decide(&mut place, 3000, 500, 500), groups(&[2, 3, 4, 5, 6, 7, 8]));
}

#[test]
fn every_link_between_two_groups_begins_a_minimal_way_if_so_many_are_weighed() {
    let preset = Some(DragonflyPreset::Flowcut1024);
    let network = build(Topology::Dragonfly(Dragonfly { preset, ..Dragonfly::default() }));
    let all = Ugal { minimal: 16, non_minimal: 16, one_group: true, ..Ugal::default() };
    let mut place = Place::new(network, all);
    // From switch 3 of group 0 to switch 5 of group 1.
    let (here, src, dst) = (place.switch(3), 3 * 16, (16 + 5) * 16);
    for gateway in 0..16u32 {
        // Link i joins switch i of one group with switch i of the other.
        let first = if gateway == 3 { place.switch(16 + 3) } else { place.switch(gateway) };
        let free = place.port(here, first);
        let load = |port| if port == free { 0 } else { 1 << 20 };
        let (hop, is_minimal) = place.choose(here, &header(src, dst), &mut Seen { load, reported: |_| 0 });
        assert_eq!(hop.port, free);
        // By its hash, the packet goes minimally over switch 3 or 5.
        assert!(is_minimal && (hop.tag == Tag::towards(16 + gateway) || hop.tag == Tag::DIRECT), "{hop:?}");
    }
    // Three ways of sixteen links, whose ports are all loaded, to one other group: that of the least loaded port of its own.
    let to_group_3 = place.port(here, place.switch(48 + 3));
    let load = |port| if port == to_group_3 { 0 } else { 1 << 20 };
    let mut tags = BTreeSet::new();
    for _ in 0..40 {
        let (hop, is_minimal) = place.choose(here, &header(src, dst), &mut Seen { load, reported: |_| 0 });
        tags.extend((!is_minimal).then_some((hop.port, hop.tag.bits())));
    }
    assert_eq!(tags, BTreeSet::from([(to_group_3, 48 + 3)]));
}

#[test]
fn a_packet_on_its_minimal_way_is_decided_again_in_its_own_group_only() {
    let place = Place::new(dragonfly(), Ugal { progressive: true, ..Ugal::default() });
    let is_decided = |here: u32, tag, hops, carries| {
        let header = Header { tag, hops, carries, ..header(2, 8) };
        place.forwarding.is_decided(place.switch(here), &header)
    };
    assert!(is_decided(1, Tag::default(), 1, Carries::Data), "its first switch");
    assert!(is_decided(0, Tag::DIRECT, 2, Carries::Data), "its gateway");
    assert!(!is_decided(0, Tag::towards(gateway(5, 0)), 2, Carries::Data), "on its way to another group");
    assert!(!is_decided(4, Tag::DIRECT, 3, Carries::Data), "in its destination's group");
    assert!(!is_decided(0, Tag::DIRECT, 2, Carries::Control));
    // Between switches of one group there is no later switch that could decide.
    assert!(!place.forwarding.is_decided(place.switch(0), &Header { hops: 2, ..header(2, 4) }));
    let plain = Place::new(dragonfly(), Ugal::default());
    assert!(!plain.forwarding.is_decided(plain.switch(0), &Header { hops: 2, ..header(2, 8) }));
}

#[test]
fn on_a_hyperx_a_switch_is_its_own_group_and_several_minimal_ports_are_weighed() {
    let decision = Decision::Hops(Hops { bias: Bytes(0) });
    let mut place = Place::new(hyperx(), Ugal { minimal: 2, decision, ..Ugal::default() });
    let table = place.forwarding.table().clone();
    // Switch 0 and the one that differs in both coordinates.
    let (here, dst) = (place.switch(0), 5);
    let minimal = table.candidates(here, dst).ports.to_vec();
    assert_eq!(minimal.len(), 2);
    let mut chosen = |load: &dyn Fn(PortId) -> u64| {
        let decide = |_| place.choose(here, &header(0, dst), &mut Seen { load, reported: |_| 0 });
        (0..100).map(decide).collect::<Vec<_>>()
    };
    let second = chosen(&|port| u64::from(port == minimal[0]) * 5000);
    assert!(
        second
            .iter()
            .all(|&(hop, is_minimal)| hop == Hop { port: minimal[1], tag: Tag::DIRECT } && is_minimal)
    );
    let others = chosen(&|port| u64::from(minimal.contains(&port)) * 5000);
    assert!(others.iter().any(|(hop, is_minimal)| !is_minimal && !minimal.contains(&hop.port)));
}

#[test]
fn networks_without_use_for_it_are_refused_with_a_way_out() {
    let refusal = |topology: Topology, preset: &str| {
        let network = build(topology);
        let scheme = preset::find(preset).unwrap().routing();
        Forwarding::build(&scheme, &network, |_| false, 1).unwrap_err().to_string()
    };
    let tree = refusal(Topology::KaryNTree(KaryNTree::default()), "ugal-l");
    assert!(tree.contains("found \"ugal\" on ") && tree.contains("\"adaptive\""), "{tree}");
    for preset in ["par", "ugal-g", "ugal-artefact-df"] {
        let slim_fly = Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() });
        let error = refusal(slim_fly, preset);
        assert!(error.starts_with("routing.selector.") && error.contains("ways over groups"), "{error}");
    }
    let by_group = Ugal { intermediate: Some(Intermediate::Group), ..Ugal::default() };
    let table = RouteTable::minimal(&hyperx(), |_| false).unwrap();
    let error = Alternatives::build(&by_group, &hyperx(), &table, |_| false).unwrap_err().to_string();
    assert!(error.contains("has no global links") && error.contains("expected \"switch\""), "{error}");
    assert_eq!(Global::default().period, Time::from_ns(500));
}
