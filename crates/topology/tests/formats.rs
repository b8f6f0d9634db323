//! What is exported reads back, what others write is understood, and what is malformed is named.

use std::path::Path;

use netloom_topology::{
    BuildContext, Dot, Dragonfly, DragonflyPreset, EdgeList, ExportFormat, FatTree, GraphMl, HtsimTopo,
    Jellyfish, Json, LeafSpine, Network, NetworkError, Ns3, OrthogonalFatTree, SlimFly, Topology, Torus,
    Xgft,
};
use netloom_units::{Rate, Time};
use proptest::prelude::*;

fn build(spec: &Topology, base_dir: &Path) -> Result<Network, NetworkError> {
    spec.build(&BuildContext { seed: 5, base_dir })
}

/// Reads `text` as a file.
fn read(spec: Topology, text: &str) -> Result<Network, NetworkError> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("net"), text).unwrap();
    build(&spec, dir.path())
}

fn error(spec: Topology, text: &str) -> String {
    read(spec, text).unwrap_err().to_string()
}

fn examples() -> Vec<Network> {
    let bundled = LeafSpine { leaves: 3, spines: 2, hosts_per_leaf: 2, bundle: 2, ..Default::default() };
    let rates = FatTree {
        k: Some(4),
        core_rate: Some(Rate::from_gbps(400)),
        host_latency: Some(Time(166_400)),
        ..Default::default()
    };
    let specs = [
        Topology::LeafSpine(bundled),
        Topology::FatTree(rates),
        Topology::SlimFly(SlimFly { q: Some(5), ..Default::default() }),
        Topology::Dragonfly(Dragonfly { preset: Some(DragonflyPreset::Flowcut1024), ..Default::default() }),
        Topology::Jellyfish(Jellyfish { switches: 20, degree: 3, hosts_per_switch: 2, ..Default::default() }),
        Topology::Xgft(Xgft::default()),
        Topology::Torus(Torus { twisted: true, switches_per_dimension: vec![3, 3, 6], ..Default::default() }),
        Topology::OrthogonalFatTree(OrthogonalFatTree { k: Some(3), ..Default::default() }),
    ];
    specs.iter().map(|spec| build(spec, Path::new(".")).unwrap()).collect()
}

#[test]
fn formats_with_attributes_lose_nothing() {
    for network in examples() {
        let graphml = Topology::GraphMl(GraphMl { parallel_links: true, ..GraphMl::new("net") });
        let json = Topology::Json(Json { parallel_links: true, ..Json::new("net") });
        let dot = Topology::Dot(Dot { parallel_links: true, ..Dot::new("net") });
        let files = [(graphml, network.to_graphml()), (json, network.to_json()), (dot, network.to_dot())];
        for (spec, text) in files {
            assert_eq!(read(spec, &text).unwrap(), network, "{text:.200}");
        }
    }
}

#[test]
fn ns3_files_keep_links_rates_and_latencies() {
    for network in examples() {
        let spec = Topology::Ns3(Ns3 { parallel_links: true, ..Ns3::new("net") });
        let again = read(spec, &network.to_ns3()).unwrap();
        assert_eq!((again.hosts(), again.switches()), (network.hosts(), network.switches()));
        let cables = |network: &Network| -> Vec<_> {
            network.links().iter().map(|link| (link.a, link.b, link.rate, link.latency)).collect()
        };
        assert_eq!(cables(&again), cables(&network));
    }
}

/// Every format that has room for them keeps error rates; the others refuse.
#[test]
fn error_rates_come_through_files() {
    let text = "4 1 3\n3\n0 3 100Gbps 1us 0.25\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0.000001\n";
    let network = read(Topology::Ns3(Ns3::new("net")), text).unwrap();
    assert_eq!(network.error_rates(), [(0, 0.25), (2, 1e-6)]);
    assert_eq!((0..3).map(|link| network.error_rate(link)).collect::<Vec<_>>(), [0.25, 0.0, 1e-6]);
    for (format, name, _) in ExportFormat::ALL {
        let spec = match format {
            ExportFormat::GraphMl => Topology::GraphMl(GraphMl::new("net")),
            ExportFormat::Dot => Topology::Dot(Dot::new("net")),
            ExportFormat::Json => Topology::Json(Json::new("net")),
            ExportFormat::Ns3 => Topology::Ns3(Ns3::new("net")),
            ExportFormat::EdgeList | ExportFormat::HtsimTopo => {
                let error = network.export(format).unwrap_err().to_string();
                assert!(error.starts_with("format: expected graphml, dot, json or ns3-topology"), "{error}");
                continue;
            }
        };
        let again = read(spec, &network.export(format).unwrap()).unwrap();
        assert_eq!(again.error_rates(), network.error_rates(), "{name}");
    }
}

/// As they come with ConWeave: free text after the last link, and here switches among the hosts.
#[test]
fn ns3_files_end_in_free_text() {
    let spec = || Topology::Ns3(Ns3::new("net"));
    let links =
        "1 0 100Gbps 1000ns 0.000000\n2 3 100Gbps 1000ns 0\n0 3 400Gbps 500ns 0\n4 3 100Gbps 1000ns 0\n";
    let prose = "\n\nFirst line: total node #, switch node #, link #\nsrc0 dst0 rate delay error_rate\n...\n";
    let network = read(spec(), &format!("5 2 4\n0 3\n{links}{prose}")).unwrap();
    assert_eq!((network.hosts(), network.switches()), (3, 2));
    let names: Vec<String> = (0..network.nodes()).map(|node| network.node_name(node)).collect();
    assert_eq!(names, ["1", "2", "4", "0", "3"], "hosts first, by their ids");
    assert_eq!(network.find_node("4"), Ok(2));
    // The links of a larger network, as in HPCC's `topology.txt`.
    let larger =
        read(spec(), &format!("5 2 4\n0 3\n{links}\n1 3 100Gbps 1000ns 0\n7 3 100Gbps 1000ns 0\n")).unwrap();
    assert_eq!(larger, network);
    let fewer = error(spec(), &format!("5 2 5\n0 3\n{links}{prose}"));
    assert!(fewer.contains("net:9: expected \"A B RATE DELAY ERROR_RATE\""), "{fewer}");
}

/// As HPCC's `ali_32host_10rack.txt`, whose hosts have two links each.
#[test]
fn ns3_hosts_may_have_several_nics() {
    let spec = |nics| Topology::Ns3(Ns3 { nics, ..Ns3::new("net") });
    let text = "4 2 4\n2 3\n0 2 25Gbps 1us 0\n1 2 25Gbps 1us 0\n1 3 25Gbps 1us 0\n0 3 25Gbps 1us 0\n";
    let network = read(spec(2), &format!("{text}2 3 100Gbps 1us 0\n").replace("4 2 4", "4 2 5")).unwrap();
    let names: Vec<String> = (0..network.nodes()).map(|node| network.node_name(node)).collect();
    assert_eq!(names, ["0.0", "0.1", "1.0", "1.1", "2", "3"]);
    let at = |host| network.node_name(network.edge_switch(host));
    assert_eq!([at(0), at(1), at(2), at(3)], ["2", "3", "2", "3"]);
    // Without `nics` the file says how many links a host has, and the scenario's servers have to say the same.
    let counted = read(spec(1), text).unwrap();
    assert_eq!((counted.links_per_host(), counted.components()), (2, 2));
    for (nics, text, expected) in [
        (3, text.to_owned(), "0.2 is a host and has 0 links"),
        (2, text.replace("1 3 25Gbps", "0 2 25Gbps"), ":6: host 0 has more links than nics = 2"),
        (
            2,
            text.replace("2 3\n", "1 3\n"),
            ":2: with several `nics` the switches' ids follow those of the hosts",
        ),
        (0, text.to_owned(), "nics: expected at least 1, found 0"),
    ] {
        let error = error(spec(nics), &text);
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn nodes_keep_the_names_of_their_file() {
    let odd = ["leaf 1", "a\"b\\", "<x>&", "host", "h0", "#"];
    let mut builder = netloom_topology::NetworkBuilder::new("odd");
    let hosts = builder.add_hosts(5);
    let switch = builder.add_switch(1, 0);
    let tier = builder.tier("host");
    for host in hosts {
        builder.link(host, switch, Rate::from_gbps(1), Time::from_us(1), tier);
    }
    builder.up_strides(vec![1]);
    builder.names(odd.map(str::to_owned).to_vec());
    let network = builder.build().unwrap();
    for (node, name) in (0..).zip(odd) {
        assert_eq!((network.node_name(node).as_str(), network.find_node(name)), (name, Ok(node)));
    }
    let missing = network.find_node("leaf1").unwrap_err().to_string();
    assert!(missing.contains("found \"leaf1\"; did you mean `leaf 1`?"), "{missing}");
    let graphml = Topology::GraphMl(GraphMl::new("net"));
    let (json, dot) = (Topology::Json(Json::new("net")), Topology::Dot(Dot::new("net")));
    for (spec, text) in [(graphml, network.to_graphml()), (json, network.to_json()), (dot, network.to_dot())]
    {
        assert_eq!(read(spec, &text).unwrap(), network, "{text}");
    }
    // An edge list has no quotes.
    let again = read(Topology::EdgeList(EdgeList::new("net")), &network.to_edge_list()).unwrap();
    assert!(!again.has_own_names() && again.hosts() == 5);
}

#[test]
fn added_hosts_take_no_name_away() {
    let spec = Topology::EdgeList(EdgeList { hosts_per_switch: 1, ..EdgeList::new("net") });
    let network = read(spec, "h0 b\nb h2\nh2 h0\n").unwrap();
    let names: Vec<String> = (0..network.nodes()).map(|node| network.node_name(node)).collect();
    assert_eq!(names, ["h0_", "h1", "h2_", "h0", "b", "h2"]);
    assert_eq!(network.find_node("h2"), Ok(5));
}

#[test]
fn htsim_files_of_fat_trees_read_back() {
    let spec = || Topology::HtsimTopo(HtsimTopo { path: "net".into() });
    for tree in [
        FatTree::default(),
        FatTree {
            k: Some(8),
            tor_taper: Some(2.0),
            core_rate: Some(Rate::from_gbps(400)),
            ..Default::default()
        },
    ] {
        let network = build(&Topology::FatTree(tree), Path::new(".")).unwrap();
        let again = read(spec(), &network.to_htsim_topo().unwrap()).unwrap();
        assert_eq!(again.links(), network.links());
        assert_eq!(again.tiers(), network.tiers());
    }
    let bundled = LeafSpine { leaves: 3, spines: 2, hosts_per_leaf: 2, bundle: 2, ..Default::default() };
    let network = build(&Topology::LeafSpine(bundled), Path::new(".")).unwrap();
    let again = read(spec(), &network.to_htsim_topo().unwrap()).unwrap();
    assert_eq!((again.links(), again.tiers()), (network.links(), network.tiers()));

    let refused =
        build(&Topology::SlimFly(SlimFly { q: Some(5), ..Default::default() }), Path::new(".")).unwrap();
    assert!(refused.to_htsim_topo().unwrap_err().to_string().contains("expected a fat tree"));
}

const LEAF_SPINE: &str = "# two tiers\nNodes 24\nTiers 2\nPodsize 24\n\nTier 0\nDownlink_speed_Gbps 50\nRadix_Down 6\n\
    Radix_Up 3\nQueue_Up 1000\nDownlink_Latency_ns 1000\nSwitch_Latency_ns 300\nOversubscribed 2\n\nTier 1\n\
    Downlink_speed_Gbps 50\nRadix_Down 4\nDownlink_Latency_ns 500\nSwitch_Latency_ns 100\n";

#[test]
fn htsim_switch_latencies_move_to_the_links() {
    let spec = || Topology::HtsimTopo(HtsimTopo { path: "net".into() });
    let network = read(spec(), LEAF_SPINE).unwrap();
    assert_eq!((network.hosts(), network.switches(), network.links().len()), (24, 4 + 3, 24 + 12));
    let latency = |tier| network.links().iter().find(|link| link.tier == tier).unwrap().latency;
    // Host, leaf, spine, leaf, host: 2 x 1000 + 2 x 500 of cable, 2 x 300 + 100 of switches.
    assert_eq!(2 * (latency(0).0 + latency(1).0), Time::from_ns(3700).0);
    assert_eq!(2 * latency(0).0, Time::from_ns(2300).0);

    let broken = |from: &str, to: &str| error(spec(), &LEAF_SPINE.replace(from, to));
    assert!(broken("Oversubscribed 2", "Oversubscribed 4").contains(":13: oversubscribed 4, but 300 Gbps"));
    assert!(
        broken("Radix_Down 4", "Radix_Down 5").contains("radix_down of tier 1: expected 4 switches below")
    );
    assert!(broken("Queue_Up", "Queue_Upp").contains(":10: unknown setting \"queue_upp\""));
    let message = broken("Downlink_speed_Gbps 50", "Downlink_speed_Gbps 100001");
    assert!(message.contains("downlink_speed_gbps: expected at most 100000, found 100001"), "{message}");
    assert!(broken("Tiers 2", "Tiers 3").contains("expected 2 or 3 tiers and as many sections"));
    assert!(broken("Nodes 24", "Nodes 25").contains("expected a multiple of the 6 hosts below"));
    assert!(broken("Radix_Up 3", "").contains("tier 0 has no radix_up"));
    assert!(broken("Nodes 24", "Nodes many").contains("net:2: \"many\""));
}

#[test]
fn graphs_of_other_programs_are_understood() {
    // As written by networkx.write_graphml and networkx.node_link_data for a triangle of switches.
    let graphml = "<?xml version='1.0' encoding='utf-8'?><graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">\
        <key id=\"d0\" for=\"edge\" attr.name=\"rate\" attr.type=\"string\"/><graph edgedefault=\"undirected\">\
        <node id=\"0\"/><node id=\"1\"/><node id=\"2\"/><edge source=\"0\" target=\"1\"><data key=\"d0\">40Gbps</data>\
        </edge><edge source=\"0\" target=\"2\"/><edge source=\"1\" target=\"2\"/></graph></graphml>";
    let json = r#"{"directed": false, "multigraph": false, "graph": {}, "nodes": [{"id": 0}, {"id": 1}, {"id": 2}],
        "edges": [{"rate": "40Gbps", "source": 0, "target": 1}, {"source": 0, "target": 2, "weight": 3},
        {"source": 1, "target": 2}]}"#;
    let dot = "strict graph \"a -- b\" { node [shape=box]; // comment\n 0 -- 1 [rate=\"40Gbps\" color=red];\n\
        /* chain */ 0 -- 2:n -- 1; subgraph cluster_x { label=<<b>x</b>>; 1 } }";
    let files = [
        (Topology::GraphMl(GraphMl { hosts_per_switch: 2, ..GraphMl::new("net") }), graphml),
        (Topology::Json(Json { hosts_per_switch: 2, ..Json::new("net") }), json),
        (Topology::Dot(Dot { hosts_per_switch: 2, ..Dot::new("net") }), dot),
    ];
    for (spec, text) in files {
        let network = read(spec, text).unwrap();
        assert_eq!((network.hosts(), network.switches(), network.links().len()), (6, 3, 9));
        assert_eq!(network.links()[6].rate, Rate::from_gbps(40));
    }
    let spread =
        read(Topology::Dot(Dot::new("net")), "graph { s -- { a b c; } s -- t; t -- {d e} }").unwrap();
    assert_eq!((spread.hosts(), spread.switches()), (5, 2));
}

/// Bits of every format, put together at random.
const FRAGMENTS: [&str; 40] = [
    "graph",
    "{",
    "}",
    "[",
    "]",
    "--",
    "->",
    "\"",
    "=",
    "node",
    "<",
    ">",
    "<graphml>",
    "</graphml>",
    "<graph>",
    "</graph>",
    "<node id='a'/>",
    "<edge source='a' target='b'/>",
    "\n",
    " ",
    "3 1 2",
    "2",
    "0 2 100Gbps 1us 0",
    "host",
    "a",
    "b",
    "#",
    "Nodes",
    "Tiers",
    "Tier",
    "Radix_Down",
    "18446744073709551615",
    "-1",
    "é",
    "{\"nodes\":[",
    "{\"id\":1}",
    "],\"links\":[",
    "{\"source\":1,\"target\":2}",
    "/*",
    "0bps",
];

proptest! {
    #[test]
    fn no_text_makes_a_reader_panic(picks in prop::collection::vec(0..FRAGMENTS.len(), 0..30)) {
        let text: String = picks.iter().map(|&pick| FRAGMENTS[pick]).collect();
        let path = || "net".into();
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("net"), text).unwrap();
        for spec in [
            Topology::EdgeList(EdgeList::new("net")),
            Topology::GraphMl(GraphMl::new("net")),
            Topology::Json(Json::new("net")),
            Topology::Dot(Dot::new("net")),
            Topology::Ns3(Ns3 { parallel_links: true, ..Ns3::new(path()) }),
            Topology::HtsimTopo(HtsimTopo { path: path() }),
        ] {
            if let Err(error) = build(&spec, dir.path()) {
                prop_assert!(matches!(error, NetworkError::File { .. }), "{error}");
            }
        }
    }

    #[test]
    fn no_setting_makes_an_htsim_file_panic(line in 0usize..15, value in any::<u64>()) {
        let mut lines: Vec<String> = LEAF_SPINE.lines().map(str::to_owned).collect();
        if let Some((key, _)) = lines[line].clone().split_once(' ') {
            lines[line] = format!("{key} {value}");
        }
        let _ = read(Topology::HtsimTopo(HtsimTopo { path: "net".into() }), &lines.join("\n"));
    }
}

#[test]
fn malformed_files_are_named() {
    let dot = || Topology::Dot(Dot::new("net"));
    assert!(error(dot(), "digraph { a -> b }").contains("net:1: expected an undirected graph"));
    assert!(error(dot(), "graph {\n a -- b;\n a -> c }").contains("net:3: expected \"--\""));
    assert!(error(dot(), "graph {\n a -- b").contains("found the end of the file"));
    assert!(error(dot(), "graph { a -- b [rate=10]; b -- c }").contains("expected a rate"));
    assert!(error(dot(), "graph { a [kind=router]; a -- b }").contains("kind: expected host or switch"));
    assert!(error(dot(), "graph { a -- \"b }").contains("a quotation without end"));
    assert!(error(dot(), &format!("graph {}", "{".repeat(100_000))).contains("nested too deep"));
    assert!(error(dot(), "graph { a -- é; ü $ }").contains("unexpected character '$'"));
    assert!(
        error(dot(), "graph { s [kind=switch, level=1]; a -- s; b -- s; s -- t; c -- t }")
            .contains("t has no level")
    );

    let graphml = || Topology::GraphMl(GraphMl::new("net"));
    assert!(error(graphml(), "<graphml>\n</graph>").contains("net:2: malformed XML"));
    assert!(error(graphml(), "<graphml/>").contains("no graph element"));
    assert!(
        error(graphml(), "<graphml><graph>\n<edge source='a'/></graph></graphml>")
            .contains(":2: edge without target")
    );
    assert!(error(graphml(), "<graphml><graph edgedefault='directed'/></graphml>").contains("undirected"));

    let many_tiers: String = (0..300).map(|i| format!("s -- h{i} [tier=t{i}];")).collect();
    assert!(error(dot(), &format!("graph {{ {many_tiers} }}")).contains("at most 255 tiers"));
    let many_tiers: String = (0..255).map(|i| format!("s -- t{i} [tier=t{i}];")).collect();
    let one_more = Topology::Dot(Dot { hosts_per_switch: 1, ..Dot::new("net") });
    let found = error(one_more, &format!("graph {{ global_tier = other; {many_tiers} }}"));
    assert!(found.contains("at most 256 tiers of links, found 257"), "{found}");
    assert!(
        error(dot(), "graph { up_strides = \"1 0\"; a -- s; b -- s }")
            .contains("up_strides: expected positive")
    );

    let json = || Topology::Json(Json::new("net"));
    assert!(error(json(), "{\n\"nodes\": [}").contains("net:2: "));
    assert!(error(json(), r#"{"directed": true, "nodes": [], "links": []}"#).contains("undirected"));
    assert!(error(json(), r#"{"nodes": [], "links": [{"source": 1, "target": 1}]}"#).contains("1 to itself"));
    let twice = r#"{"nodes": [], "links": [{"source": 1, "target": 2}, {"source": 2, "target": 1}]}"#;
    assert!(error(json(), twice).contains("2 and 1 are already joined; if there are several cables"));

    let ns3 = || Topology::Ns3(Ns3::new("net"));
    assert!(
        error(ns3(), "3 1 2\n2\n0 2 100Gbps 1000ns 0\n")
            .contains("the file ends where it should have 2 links")
    );
    for rate in ["1", "-0.1", "NaN", "inf", "often"] {
        let error = error(ns3(), &format!("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us {rate}\n"));
        assert!(error.contains(":4: error_rate: expected the probability that a packet is lost"), "{error}");
        assert!(error.contains(&format!("found \"{rate}\"")), "{error}");
    }
    assert!(error(ns3(), "3 1 1\n5\n0 2 100Gbps 1000ns 0\n").contains(":2: expected a node below 3"));
    assert!(error(ns3(), "4000000000 1 1\n5\n").contains(":1: 4000000000 nodes"));
    assert!(error(ns3(), "3 1\n").contains("expected \"NODES SWITCHES LINKS\", found 2 words"));
    for (header, expected) in [
        ("288 32 32 384 10 40", ":1: this is the header of a topology of PowerTCP's simulator"),
        ("288 32 32 384", "expected \"NODES SWITCHES LINKS\", here \"288 32 384\""),
        ("40 8 4 4 100 H100", ":1: this is the header of a topology of SimAI"),
    ] {
        let error = error(ns3(), &format!("{header}\n2\n0 2 100Gbps 1us 0\n"));
        assert!(error.contains(expected), "{error}");
    }
}
