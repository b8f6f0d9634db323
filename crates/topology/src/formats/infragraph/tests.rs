//! Files as InfraGraph writes them, what becomes of their parts, and what is refused.

use netloom_units::{Rate, Time};

use super::InfraGraph;
use crate::network::Network;
use crate::topology::BuildContext;

fn build(kind: InfraGraph, text: &str) -> Result<Network, String> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("net.yaml"), text).unwrap();
    let error =
        |error: crate::NetworkError| error.to_string().replace(&format!("{}/", dir.path().display()), "");
    kind.build(&BuildContext { seed: 1, base_dir: dir.path() }).map_err(error)
}

fn read(text: &str) -> Network {
    build(InfraGraph::new("net.yaml"), text).unwrap()
}

/// Two servers with two NICs each, NIC r at leaf r, both leaves at two spines of which one is idle.
const RAILS: &str = "\
name: two-rails
devices:
- name: box
  description: two accelerators
  components:
  - {name: xpu, count: 2, choice: xpu}
  - {name: nvsw, count: 1, choice: switch}
  - {name: nic, count: 2, choice: nic}
  links:
  - {name: pcie}
  - {name: nvlink}
  edges:
  - {ep1: {component: xpu}, ep2: {component: nic}, scheme: one2one, link: pcie}
  - {ep1: {component: xpu}, ep2: {component: nvsw}, scheme: many2many, link: nvlink}
- name: switch
  components:
  - {name: asic, count: 1, choice: cpu}
  - {name: port, count: 4, choice: port}
  links:
  - name: ic
  edges:
  - {ep1: {component: asic}, ep2: {component: port}, scheme: many2many, link: ic}
instances:
- {name: host, device: box, count: 2}
- {name: leaf, device: switch, count: 2}
- {name: spine, device: switch, count: 2}
links:
- name: rail
  physical:
    bandwidth: {choice: gigabits_per_second, gigabits_per_second: 400}
    latency: {choice: ns, ns: 250}
- name: up
  physical:
    bandwidth: {choice: gigabytes_per_second, gigabytes_per_second: 100}
edges:
- ep1: {instance: 'host[0:2]', component: 'nic[1]'}
  ep2: {instance: 'leaf[1]', component: 'port[0:2]'}
  scheme: one2one
  link: rail
- ep1: {instance: host, component: 'nic[0]'}
  ep2: {instance: 'leaf[0]', component: port}
  scheme: one2one
  link: rail
- ep1: {instance: leaf, component: 'port[2]'}
  ep2: {instance: 'spine[0]', component: port}
  scheme: one2one
  link: up
";

fn names(network: &Network) -> Vec<String> {
    (0..network.nodes()).map(|node| network.node_name(node)).collect()
}

/// Both ends of every link, by name.
fn links(network: &Network) -> Vec<[String; 2]> {
    network.links().iter().map(|link| [link.a, link.b].map(|node| network.node_name(node))).collect()
}

#[test]
fn nics_are_hosts_and_instances_of_other_devices_are_switches() {
    let network = read(RAILS);
    assert_eq!(network.name(), "two-rails: 4 hosts");
    // Hosts go by servers and their components, whatever the order of edges; spine.1 has no edge.
    let expected =
        ["host.0.nic.0", "host.0.nic.1", "host.1.nic.0", "host.1.nic.1", "leaf.0", "leaf.1", "spine.0"];
    assert_eq!(names(&network), expected);
    let expected = [
        ["host.0.nic.1", "leaf.1"],
        ["host.1.nic.1", "leaf.1"],
        ["host.0.nic.0", "leaf.0"],
        // The shorter list ends it: two NICs at the first of four ports.
        ["host.1.nic.0", "leaf.0"],
        ["leaf.0", "spine.0"],
        ["leaf.1", "spine.0"],
    ];
    assert_eq!(links(&network), expected);
    let cable = |link: usize| (network.links()[link].rate, network.links()[link].latency);
    assert_eq!(cable(0), (Rate::from_gbps(400), Time::from_ns(250)));
    // Gigabytes are 8 gigabits; a link without latency has that of the scenario.
    assert_eq!(cable(4), (Rate::from_gbps(800), Time::from_us(1)));
    assert_eq!((network.links_per_host(), network.components(), network.is_tree()), (2, 1, true));
}

#[test]
fn json_and_annotated_graphs_are_the_same_network() {
    let value: serde_json::Value = serde_saphyr::from_str(RAILS).unwrap();
    let json = serde_json::to_string_pretty(&value).unwrap();
    assert_eq!(read(&json), read(RAILS));
    let rank = |node: &str, rank: u32| {
        serde_json::json!({ "name": node, "attributes": [
            { "attribute": "type", "value": "xpu" }, { "attribute": "rank", "value": rank.to_string() }
        ] })
    };
    let with = |node: &str, number: u32| {
        let annotations = serde_json::json!({ "nodes": [rank("host.0.xpu.0", 0), rank(node, number)], "edges": [], "links": [], "graph": [] });
        serde_json::json!({ "infrastructure": value, "annotations": annotations }).to_string()
    };
    assert_eq!(read(&with("host.1.xpu.1", 3)), read(RAILS));
    let refused =
        |node: &str, number: u32| build(InfraGraph::new("net.yaml"), &with(node, number)).unwrap_err();
    let message = refused("host.1.xpu.1", 1);
    assert!(
        message.contains("expected rank 3 for host.1.xpu.1") && message.contains("`placement`"),
        "{message}"
    );
    for node in ["host.2.xpu.0", "host.1.nic.0", "leaf.0", "host.1", "box.1.xpu.0"] {
        let message = refused(node, 3);
        assert!(
            message.contains(&format!(
                "expected the rank of an xpu of a server, such as `dgx.0.xpu.1`, found `{node}`"
            )),
            "{message}"
        );
    }
}

/// Cards with two ports each, as devices in servers without further NICs.
const CARDS: &str = "\
devices:
- name: card
  components:
  - {name: asic, count: 1, choice: nic}
  - {name: port, count: 2, choice: port}
- name: box
  components:
  - {name: cpu, count: 1, choice: cpu}
  - {name: card, count: 2, choice: device}
- name: switch
  components:
  - {name: port, count: 64, choice: port}
instances:
- {name: tor, device: switch, count: 2}
- {name: box, device: box, count: 3}
links:
- name: cable
edges:
- {ep1: {instance: tor, component: 'port[60:]'}, ep2: {instance: tor, component: 'port[60]'}, scheme: one2one, link: cable}
- {ep1: {instance: box, component: 'card[::1].port[0]'}, ep2: {instance: 'tor[0]', component: port}, scheme: one2one, link: cable}
- {ep1: {instance: box, component: 'card.port[1:2]'}, ep2: {instance: 'tor[1]', component: 'port[:40:3]'}, scheme: one2one, link: cable}
";

#[test]
fn components_of_devices_in_devices_are_named_by_their_path() {
    // A cable between the two switches, instead of one from the first to itself.
    let text = CARDS.replacen("instance: tor,", "instance: 'tor[0]',", 1).replacen(
        "ep2: {instance: tor,",
        "ep2: {instance: 'tor[1]',",
        1,
    );
    let network = read(&text);
    assert_eq!(network.links_per_host(), 4);
    assert_eq!((network.hosts(), network.switches(), network.links().len()), (12, 2, 13));
    let of_first =
        ["box.0.card.0.port.0", "box.0.card.0.port.1", "box.0.card.1.port.0", "box.0.card.1.port.1"];
    assert_eq!(names(&network)[..4], of_first);
    for host in 0..12 {
        let tor = network.node_name(network.edge_switch(host));
        assert_eq!(tor, format!("tor.{}", host % 2), "{}", network.node_name(host));
    }
    assert!(build(InfraGraph::new("net.yaml"), CARDS).unwrap_err().contains("parts of the same instance"));
}

#[test]
fn several_links_at_one_component_are_several_nics() {
    let text =
        RAILS.replace("count: 2, choice: nic", "count: 1, choice: nic").replace("'nic[1]'", "'nic[0]'");
    let network = read(&text);
    assert_eq!(names(&network)[..2], ["host.0.nic.0.0", "host.0.nic.0.1"]);
    // The order is that of the edges.
    assert_eq!(network.node_name(network.edge_switch(0)), "leaf.1");
}

#[test]
fn the_scenario_says_which_instances_are_servers_and_which_links_are_left_out() {
    let listed = |servers: &[&str], without: &[&str]| InfraGraph {
        servers: Some(servers.iter().map(|name| (*name).to_owned()).collect()),
        without: without.iter().map(|name| (*name).to_owned()).collect(),
        ..InfraGraph::new("net.yaml")
    };
    // A file of storage servers without a NIC of that choice.
    let text = RAILS.replace("choice: nic", "choice: port").replace("choice: xpu", "choice: cpu");
    let message = build(InfraGraph::new("net.yaml"), &text).unwrap_err();
    assert!(message.contains("expected instances of a device with an `xpu` or a `nic`"), "{message}");
    assert_eq!(build(listed(&["host"], &[]), &text).unwrap().hosts(), 4);
    // Rails with no way between them.
    let apart = build(listed(&["host"], &["up"]), RAILS).unwrap();
    assert_eq!((apart.hosts(), apart.switches(), apart.components()), (4, 2, 2));
    let message = build(listed(&["hosts"], &[]), RAILS).unwrap_err();
    assert!(
        message.contains(
            "servers: expected names of instances of net.yaml, found `hosts` (did you mean `host`?"
        ),
        "{message}"
    );
    let message = build(listed(&["host"], &["rails"]), RAILS).unwrap_err();
    assert!(
        message.contains("without: expected names of links of net.yaml, found `rails` (did you mean `rail`?"),
        "{message}"
    );
}

#[test]
fn links_inside_of_devices_are_ideal_only_if_that_is_said() {
    let text =
        RAILS.replace("{name: nvlink}", "{name: nvlink, physical: {bandwidth: {gigabytes_per_second: 450}}}");
    let message = build(InfraGraph::new("net.yaml"), &text).unwrap_err();
    assert!(
        message.starts_with("net.yaml:14: device `box`: xpu and nvsw are joined by link `nvlink`"),
        "{message}"
    );
    assert!(message.contains("topology.ideal_devices = true"), "{message}");
    let ideal = InfraGraph { ideal_devices: true, ..InfraGraph::new("net.yaml") };
    assert_eq!(build(ideal, &text).unwrap(), read(RAILS));
    // A link that no edge uses says nothing.
    assert_eq!(read(&text.replace("link: nvlink", "link: pcie")), read(RAILS));
}

#[test]
fn what_is_no_network_is_named_with_its_line() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "scheme: one2one\n  link: rail",
            "scheme: ring\n  link: rail",
            "net.yaml:38: scheme: expected one2one or many2many; `ring` is declared",
        ),
        ("scheme: one2one\n  link: rail", "link: rail", "expected a `scheme`"),
        ("link: up", "link: ups", "edges: there is no link `ups` (did you mean `up`?"),
        ("'leaf[1]'", "'leafs[1]'", "there is no instance `leafs` (did you mean `leaf`?"),
        ("'leaf[1]'", "'leaf[2]'", "expected numbers from 0 to 1 of `leaf`, of which there are 2"),
        ("'host[0:2]'", "'host[0:3]'", "expected numbers from 0 to 1 of `host`"),
        ("'host[0:2]'", "'host[0:2'", "expected a name with numbers from 0 on"),
        ("'host[0:2]'", "'host[-1]'", "expected a name with numbers from 0 on"),
        ("'host[0:2]'", "'host[0:2:0]'", "expected a name with numbers from 0 on"),
        ("'host[0:2]'", "'host[2:]'", "expected at least one component at either end"),
        ("'nic[1]'", "'nics[1]'", "device `box` has no component `nics` (did you mean `nic`?"),
        ("'nic[1]'", "'nic[1].port[0]'", "expected nothing after a component that is no device"),
        (
            "device: switch, count: 2}\n- {name: spine",
            "device: router, count: 2}\n- {name: spine",
            "there is no device `router`",
        ),
        ("- {name: spine, device", "- {name: leaf, device", "instances: there are two of the name `leaf`"),
        ("- name: up\n", "- name: rail\n", "links: there are two of the name `rail`"),
        ("choice: switch}", "choice: gpu}", "net.yaml:7: unknown variant `gpu`"),
        ("count: 1, choice: switch", "count: many, choice: switch", "net.yaml:7: expected a whole number"),
        (
            "choice: gigabits_per_second, gigabits_per_second: 400",
            "gigatransfers_per_second: 64",
            "link `rail`: expected gigabits_per_second or gigabytes_per_second",
        ),
        ("gigabits_per_second: 400", "gigabits_per_second: 0", "link `rail`: expected a bandwidth above 0"),
        ("gigabits_per_second: 400", "gigabits_per_second: .nan", "net.yaml:30: non-finite float"),
        ("ns: 250}", "ns: -1}", "link `rail`: expected a latency of at most 16 s"),
        ("ns: 250}", "us: 1, ns: 250}", "expected a latency of at most 16 s in one unit"),
        ("{choice: ns, ns: 250}", "{choice: ns}", "expected a latency of at most 16 s in one unit"),
        (
            "instance: 'spine[0]', component: port",
            "instance: 'host[0]', component: nvsw",
            "host.1 has 2 links to switches, and host.0 has 3",
        ),
        ("- name: switch\n", "- name: switch\n  kind: a\n", "unknown field `kind`"),
        (
            "edges:\n- ep1: {instance: 'host",
            "connections:\n- a\nedges:\n- ep1: {instance: 'host",
            "connections: this is an older form of InfraGraph",
        ),
        (
            "- name: ic\n",
            "- {name: ic, bandwidth: {gigabits_per_second: 1}}\n",
            "bandwidth: this is an older form of InfraGraph",
        ),
        ("count: 2, choice: nic", "count: 0, choice: nic", "of `nic`, of which there are 0"),
        (
            "- {name: host, device: box, count: 2}",
            "- {name: host, device: box, count: 3}",
            "host.2 has 1 links to switches, and host.0 has 2",
        ),
    ];
    let mut wrong = Vec::new();
    for (from, to, expected) in cases {
        assert!(RAILS.contains(from), "{from}");
        match build(InfraGraph::new("net.yaml"), &RAILS.replacen(from, to, 1)) {
            Err(message) if message.contains(expected) => {}
            Err(message) => wrong.push(format!("{to}\n{message}")),
            Ok(network) => wrong.push(format!("{to}\n{:?}", links(&network))),
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn devices_that_contain_themselves_and_endless_lists_are_refused() {
    let message = build(
        InfraGraph::new("net.yaml"),
        &CARDS.replace("{name: asic, count: 1, choice: nic}", "{name: box, count: 1, choice: device}"),
    )
    .unwrap_err();
    assert!(message.contains("contains itself"), "{message}");
    let many = CARDS
        .replace("count: 64", "count: 4000000000")
        .replace("scheme: one2one", "scheme: many2many")
        .replace("'port[60:]'", "port")
        .replace("'port[60]'", "port");
    let message = build(InfraGraph::new("net.yaml"), &many).unwrap_err();
    assert!(message.contains("of memory"), "{message}");
}
