//! What tags there are to choose from, where packets with them go on, and the words for it.

use std::collections::BTreeSet;
use std::path::Path;

use netloom_paths::routes::{Minimal, Spain};
use netloom_topology::{BuildContext, FatTree, HyperX, Topology};
use netloom_units::kind::Kind;
use rand_pcg::Pcg64Mcg;

use super::*;
use crate::preset;
use crate::selector::Selector;
use crate::selector::layer::{Construction, First, Layer, WithinLayer};

/// Switches all of which are joined to all others by as many links, with two hosts each: hosts 2i and 2i + 1 are at switch i.
fn complete(switches: u32, links: u32) -> Network {
    let hyperx = HyperX {
        dimensions: 1,
        switches_per_dimension: vec![switches],
        parallel_links: vec![links],
        hosts_per_switch: Some(2),
        ..HyperX::default()
    };
    Topology::HyperX(hyperx).build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
}

fn tree() -> Network {
    let fat_tree = FatTree { k: Some(4), ..FatTree::default() };
    Topology::FatTree(fat_tree).build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
}

fn build(scheme: &Routing, network: &Network) -> Forwarding {
    Forwarding::build(scheme, network, |_| false, 1).unwrap()
}

fn named(preset: &str) -> Routing {
    preset::find(preset).unwrap().routing()
}

fn in_layers(construction: Construction, within_layer: WithinLayer, first: First) -> Routing {
    let layer = Layer { construction, within_layer, first, ..Layer::default() };
    Routing { selector: Selector::Layer(Box::new(layer)), ..named("fatpaths") }
}

/// A number of layers, all of minimal paths.
fn minimal(layers: u32) -> Construction {
    Construction::Minimal(Minimal { layers })
}

fn random() -> Pcg64Mcg {
    Pcg64Mcg::new(7)
}

fn data(src: u32, dst: u32, tag: Tag, hops: u16) -> Header {
    Header { src, dst, flow: 3, tag, bytes: 4160, payload: 4096, hops, carries: Carries::Data }
}

/// The ports of a switch that lead to another node, ascending.
fn ports(network: &Network, from: u32, to: u32) -> Vec<PortId> {
    let from = network.hosts() + from;
    let ports = 0..narrow::<PortId>(network.ports(from).len());
    ports.filter(|&port| network.neighbour(from, port) == to).collect()
}

/// The same, to another switch.
fn port(network: &Network, from: u32, to: u32) -> PortId {
    ports(network, from, network.hosts() + to)[0]
}

/// The tags that 400 draws give.
fn drawn(mut draw: impl FnMut(&mut Pcg64Mcg) -> Tag) -> BTreeSet<u32> {
    let mut random = random();
    (0..400).map(|_| draw(&mut random).bits()).collect()
}

fn numbers(below: u32) -> BTreeSet<u32> {
    (0..below).collect()
}

#[test]
fn first_tags_are_drawn_from_all_that_there_are() {
    for space in [TagSpace::Entropy(9), TagSpace::EntropyInTurn(9), TagSpace::Paths(9)] {
        assert_eq!(drawn(|random| space.first(random)), numbers(9), "{space:?}");
    }
    let labels = drawn(|random| TagSpace::Labels.first(random));
    // Labels count up from there, and have 32 bits.
    assert!(labels.len() > 390 && *labels.last().unwrap() < 1 << 31, "{labels:?}");
    assert!(*labels.first().unwrap() < 1 << 25 && *labels.last().unwrap() > 63 << 25, "{labels:?}");
    assert_eq!(TagSpace::None.first(&mut random()), Tag::default());
}

#[test]
fn tags_in_a_row_go_through_all_of_them() {
    let next = |space: TagSpace<'_>, tag| space.next(Tag::from_bits(tag), &mut random()).bits();
    for space in [TagSpace::Entropy(4), TagSpace::EntropyInTurn(4), TagSpace::Paths(4)] {
        assert_eq!([0, 2, 3].map(|tag| next(space, tag)), [1, 3, 0], "{space:?}");
    }
    // Between switches without a path, as in mid-run after faults, there is nothing to count through.
    assert_eq!(next(TagSpace::Paths(0), 5), 0);
    assert_eq!([7, u32::MAX].map(|tag| next(TagSpace::Labels, tag)), [8, 0]);
    assert_eq!(next(TagSpace::None, 5), 5);
}

#[test]
fn other_tags_are_the_next_label_or_a_draw() {
    for space in [TagSpace::Entropy(9), TagSpace::Paths(9)] {
        assert_eq!(drawn(|random| space.another(Tag::from_bits(3), random)), numbers(9), "{space:?}");
    }
    let another = |space: TagSpace<'_>, tag| space.another(Tag::from_bits(tag), &mut random()).bits();
    assert_eq!([3, 8].map(|tag| another(TagSpace::EntropyInTurn(9), tag)), [4, 0]);
    assert_eq!([7, u32::MAX].map(|tag| another(TagSpace::Labels, tag)), [8, 0]);
    assert_eq!(another(TagSpace::None, 5), 5);
}

#[test]
fn drawn_paths_and_layers_have_a_home_and_nothing_else_does() {
    let homes = [1, 2, 3].map(|paths| TagSpace::Paths(paths).home());
    assert_eq!(homes, [None, Some(Tag::path(0)), Some(Tag::path(0))]);
    let network = complete(3, 1);
    for (layers, first, home) in
        [(2, First::Random, Some(Tag::layer(0))), (1, First::Random, None), (2, First::Minimal, None)]
    {
        let forwarding = build(&in_layers(minimal(layers), WithinLayer::SinglePath, first), &network);
        assert_eq!(forwarding.tags(0, 2).home(), home, "{layers} {first:?}");
    }
    let spaces = [TagSpace::None, TagSpace::Entropy(9), TagSpace::EntropyInTurn(9), TagSpace::Labels];
    assert_eq!(spaces.map(|space| space.home()), [None; 4]);
}

#[test]
fn lists_hold_each_tag_once_and_no_more_than_are_wanted() {
    let list = |space: TagSpace<'_>, most| -> Vec<u32> {
        space.list(most, &mut random()).into_iter().map(Tag::bits).collect()
    };
    for space in [TagSpace::Entropy(5), TagSpace::EntropyInTurn(5), TagSpace::Paths(5)] {
        assert_eq!(list(space, 5), [0, 1, 2, 3, 4]);
        assert_eq!(list(space, 9), [0, 1, 2, 3, 4]);
        let some = list(space, 3);
        assert!(some.len() == 3 && some[2] < 5 && some.is_sorted_by(|a, b| a < b), "{some:?}");
    }
    assert_eq!((list(TagSpace::None, 9), list(TagSpace::Labels, 9)), (vec![0], vec![]));
    let network = complete(3, 1);
    let layers = build(&in_layers(minimal(4), WithinLayer::SinglePath, First::Minimal), &network);
    assert_eq!(list(layers.tags(0, 2), 9), [0, 1, 2, 3]);
    assert_eq!(list(build(&named("valiant"), &network).tags(0, 2), 9), [Tag::DIRECT.bits()]);
}

/// The kind of tags from which NICs or first switches choose, under every preset that fits a fat tree.
#[test]
fn every_scheme_has_its_tags() {
    let network = tree();
    for (preset, placement, expected) in [
        ("ecmp", Placement::Switch, "None"),
        ("ecmp", Placement::Nic, "None"),
        ("spray", Placement::Switch, "None"),
        ("letflow", Placement::Switch, "None"),
        ("letflow", Placement::Ingress, "Entropy(256)"),
        ("d-mod-k", Placement::Switch, "None"),
        ("switch-ar", Placement::Switch, "None"),
        ("flowcut-nic", Placement::Nic, "Entropy(256)"),
        ("reps", Placement::Nic, "Entropy(65536)"),
        ("flowbender", Placement::Nic, "EntropyInTurn"),
        ("presto", Placement::Nic, "Labels"),
        ("conga", Placement::Ingress, "Labels"),
        ("conweave", Placement::Ingress, "Labels"),
    ] {
        let forwarding = build(&Routing { placement, ..named(preset) }, &network);
        let tags = format!("{:?}", forwarding.tags(0, 15));
        assert!(tags.starts_with(expected), "{preset} at {}: {tags}", placement.name());
        assert!(
            forwarding.is_minimal() && forwarding.layers().is_none() && forwarding.alternatives().is_none()
        );
    }
}

#[test]
fn paths_beyond_minimal_ones_are_told_apart_and_can_be_forgotten() {
    let network = complete(4, 1);
    for (scheme, is_layers, is_weighed, tags) in [
        (in_layers(minimal(2), WithinLayer::SinglePath, First::Minimal), true, false, "Layers"),
        (named("valiant"), false, false, "Via"),
        (named("ugal-l"), false, true, "None"),
        // The link itself, two ways over one of the others, and two over both.
        (named("k-shortest"), false, false, "Paths(5)"),
    ] {
        let mut forwarding = build(&scheme, &network);
        assert!(!forwarding.is_minimal());
        assert_eq!(
            (forwarding.layers().is_some(), forwarding.alternatives().is_some()),
            (is_layers, is_weighed)
        );
        assert!(format!("{:?}", forwarding.tags(0, 2)).starts_with(tags));
        forwarding.forget_beyond();
        assert!(forwarding.is_minimal());
        assert_eq!((forwarding.layers().is_some(), forwarding.alternatives().is_some()), (false, false));
    }
    assert_eq!(
        build(&named("k-shortest"), &network).tags(0, 1).list(9, &mut random()),
        [],
        "both are at one switch"
    );
}

#[test]
fn first_switches_decide_on_data_where_there_are_detours() {
    let network = complete(4, 1);
    let here = network.hosts();
    let is_decided = |preset: &str, hops, carries| {
        let header = Header { carries, ..data(0, 2, Tag::DIRECT, hops) };
        build(&named(preset), &network).is_decided(here, &header)
    };
    for preset in ["valiant", "ugal-l"] {
        assert!(is_decided(preset, 1, Carries::Data), "{preset}");
        assert!(
            !is_decided(preset, 2, Carries::Data) && !is_decided(preset, 1, Carries::Control),
            "{preset}"
        );
    }
    for preset in ["ecmp", "k-shortest"] {
        assert!(!is_decided(preset, 1, Carries::Data), "{preset}");
    }
}

/// From a host of switch 0 over switch 2 to one of switch 1.
#[test]
fn a_detour_leads_over_its_intermediate_switch_and_from_there_to_the_destination() {
    let network = complete(4, 1);
    let forwarding = build(&named("valiant"), &network);
    let switch = |index| network.hosts() + index;
    let hop = |here, header: &Header| {
        forwarding.onward(switch(here), header, |_| unreachable!("there is one port"))
    };
    let words = |here, header: &Header| forwarding.explain_onward(switch(here), header, "hash");
    let (to, passed) = (Tag::towards(2), Tag::towards(2).passed());
    let first = data(0, 2, to, 1);
    assert_eq!(hop(0, &first), Hop { port: port(&network, 0, 2), tag: to });
    let expected = (vec![port(&network, 0, 2)], "minimal towards intermediate switch 2".to_owned());
    assert_eq!(words(0, &first), expected);
    let second = data(0, 2, to, 2);
    assert_eq!(hop(2, &second), Hop { port: port(&network, 2, 1), tag: passed });
    assert_eq!(words(2, &second), (vec![port(&network, 2, 1)], "minimal to the destination".to_owned()));
    let third = data(0, 2, passed, 3);
    assert_eq!(hop(1, &third), Hop { port: ports(&network, 1, 2)[0], tag: passed });
    // What answers goes by minimal paths, whatever tag it carries.
    let answer = Header { carries: Carries::Control, ..first };
    assert_eq!(hop(0, &answer), Hop { port: port(&network, 0, 1), tag: to });
    assert_eq!(hop(0, &data(0, 2, Tag::DIRECT, 1)), Hop { port: port(&network, 0, 1), tag: Tag::DIRECT });

    // At its destination's switch it goes to the host only once it has been at the intermediate one.
    let arrives = |header: &Header| forwarding.arrives(forwarding.place(switch(1)), header);
    assert!(arrives(&third) && !arrives(&data(0, 2, to, 2)) && !arrives(&data(0, 2, to, 1)));
    // Unless both hosts are at one switch, where it is delivered at once; on its way back to it, if it went, only as above.
    let near = |tag, hops| forwarding.arrives(forwarding.place(switch(0)), &data(0, 1, tag, hops));
    assert!(near(to, 1) && !near(to, 2) && near(passed, 3));
    let minimal = build(&named("ecmp"), &network);
    assert!(minimal.arrives(minimal.place(switch(1)), &data(0, 2, to, 2)));
}

#[test]
fn an_intermediate_switch_out_of_reach_is_left_out() {
    let network = complete(4, 1);
    let third = network.hosts() + 3;
    let is_cut = |channel| {
        let channel = network.channel(channel);
        let ends = [channel.from, channel.to];
        ends.contains(&third) && ends.iter().all(|&end| !network.is_host(end))
    };
    let scheme = named("valiant");
    let forwarding = build(&scheme, &network).rebuild(&scheme, &network, is_cut, 1).unwrap();
    let hop = forwarding.onward(network.hosts(), &data(0, 2, Tag::towards(3), 1), |_| 0);
    assert_eq!(hop, Hop { port: port(&network, 0, 1), tag: Tag::towards(3).passed() });
    // What needs all of them is refused in the same words, by whichever way that is found.
    let layers = in_layers(minimal(2), WithinLayer::SinglePath, First::Minimal);
    for scheme in [named("fatpaths"), layers, scheme, named("ecmp")] {
        let refused = Forwarding::build(&scheme, &network, is_cut, 1).unwrap_err();
        assert_eq!(Forwarding::check(&scheme, &network, is_cut, 1), Err(refused.clone()));
        assert!(refused.to_string().starts_with("faults: "), "{refused}");
    }
    let on_tree = Forwarding::check(&named("valiant"), &tree(), |_| false, 1).unwrap_err();
    assert!(on_tree.to_string().starts_with("routing.selector: expected another one on a tree"), "{on_tree}");
    let no_tree = Layer {
        construction: Construction::Spain(Spain { layers: Some(0), ..Spain::default() }),
        ..Layer::default()
    };
    let scheme = Routing { selector: Selector::Layer(Box::new(no_tree)), ..named("fatpaths") };
    let refused = Forwarding::build(&scheme, &network, |_| false, 1).unwrap_err();
    assert_eq!(Forwarding::check(&scheme, &network, |_| false, 1), Err(refused));
}

#[test]
fn a_packet_in_a_layer_takes_its_port() {
    let network = complete(3, 1);
    let forwarding = build(&in_layers(minimal(2), WithinLayer::SinglePath, First::Minimal), &network);
    let words = |here, tag| {
        forwarding.explain_onward(network.hosts() + here, &data(0, 2, Tag::layer(tag), 1), "hash")
    };
    let direct = vec![port(&network, 0, 1)];
    assert_eq!(words(0, 1), (direct.clone(), "layer 1".to_owned()));
    assert_eq!(words(0, 5), (direct.clone(), "layer 5 does not lead there; among minimal ports".to_owned()));
    assert_eq!(words(1, 1), (ports(&network, 1, 2), "the destination's port".to_owned()));

    // By several links, one of them is chosen.
    let network = complete(3, 3);
    let forwarding = build(&in_layers(minimal(1), WithinLayer::Ecmp, First::Minimal), &network);
    let all = ports(&network, 0, network.hosts() + 1);
    let header = data(0, 2, Tag::layer(0), 1);
    assert_eq!(all.len(), 3);
    let words = forwarding.explain_onward(network.hosts(), &header, "hash");
    assert_eq!(words, (all.clone(), "layer 0, by the hash".to_owned()));
    for (place, &port) in all.iter().enumerate() {
        let choose = |count| {
            assert_eq!(count, 3);
            place
        };
        assert_eq!(forwarding.onward(network.hosts(), &header, choose).port, port);
        let minimal = build(&named("ecmp"), &network);
        assert_eq!(minimal.onward(network.hosts(), &header, choose), Hop { port, tag: header.tag });
        let words = minimal.explain_onward(network.hosts(), &header, "draw");
        assert_eq!(words, (all.clone(), "minimal, by the draw".to_owned()));
    }
}

#[test]
fn a_packet_on_an_explicit_path_follows_it() {
    let network = complete(4, 1);
    let forwarding = build(&named("k-shortest"), &network);
    let here = network.hosts();
    let words = |tag, hops| forwarding.explain_onward(here, &data(0, 2, Tag::path(tag), hops), "hash");
    assert_eq!(words(0, 1), (vec![port(&network, 0, 1)], "path 0 of 5".to_owned()));
    let (detour, of) = words(2, 1);
    assert_eq!(of, "path 2 of 5");
    assert!(detour == [port(&network, 0, 2)] || detour == [port(&network, 0, 3)], "{detour:?}");
    let header = data(0, 2, Tag::path(2), 1);
    assert_eq!(forwarding.onward(here, &header, |_| unreachable!()).port, detour[0]);
    let answer = Header { carries: Carries::Control, ..header };
    assert_eq!(forwarding.onward(here, &answer, |_| unreachable!()).port, port(&network, 0, 1));
    // There is no sixth path.
    assert_eq!(words(5, 1), (vec![port(&network, 0, 1)], "minimal to the destination".to_owned()));
}

#[test]
fn what_is_weighed_is_said_at_the_first_switch() {
    let network = complete(4, 1);
    let scheme = named("ugal-l");
    let forwarding = build(&scheme, &network);
    let words = |hops| forwarding.explain_onward(network.hosts(), &data(0, 2, Tag::DIRECT, hops), "hash").1;
    let table = serde_json::to_value(&scheme).unwrap()["selector"].clone();
    let weighs = format!(
        "UGAL weighs up to {} minimal against {} other ways; with nothing waiting anywhere, minimal to the destination",
        table["minimal"], table["non_minimal"]
    );
    assert_eq!((words(1), words(2)), (weighs, "minimal to the destination".to_owned()));
    assert_eq!(scheme.selector.name(), "ugal");
}
