//! Schemes that need a tree treat one that was read from a file as the generated one that was written there.

use std::ops::ControlFlow;
use std::path::Path;

use netloom_record::FlowRecord;
use netloom_scenario::{Node, Scenario, Source, build_network, prepare, simulate};
use netloom_topology::ExportFormat;

fn document(text: &str) -> Node {
    Node::parse(&Source::new("s.toml", text)).unwrap()
}

fn scenario(topology: &str, scheme: &str) -> String {
    let load = "workload = { kind = \"poisson\", size = \"30KB\", load = 0.5, duration = \"40us\", destination = \"other-rack\" }";
    let fabric = if scheme.starts_with("conweave") {
        "fabric = { flow_control = { kind = \"pfc\", buffer = \"1MB\" }, ecn = { kmin = \"20KB\", kmax = \"40KB\" } }\ntransport.preset = \"roce\""
    } else {
        "fabric = { buffer = \"200KB\" }"
    };
    format!("topology = {topology}\nrouting.preset = \"{scheme}\"\n{fabric}\n{load}\n")
}

fn flows(text: &str) -> Vec<FlowRecord> {
    let document = document(text);
    let scenario = Scenario::read(&document).unwrap_or_else(|problems| panic!("{text}: {problems}"));
    let ready = prepare(&scenario, &document).unwrap_or_else(|problems| panic!("{text}: {problems}"));
    simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap().1.flows
}

fn refusal(text: &str) -> String {
    let document = document(text);
    let scenario = Scenario::read(&document).unwrap();
    let Err(problems) = prepare(&scenario, &document) else { panic!("not refused: {text}") };
    problems.to_string()
}

fn written(topology: &str, format: ExportFormat, folder: &Path) -> String {
    let document = document(&format!("topology = {topology}\n"));
    let network = build_network(&Scenario::read(&document).unwrap(), &document).unwrap();
    let (_, kind, _) = ExportFormat::ALL.into_iter().find(|(known, ..)| *known == format).unwrap();
    let path = folder.join(kind);
    std::fs::write(&path, network.export(format).unwrap()).unwrap();
    format!("{{ kind = \"{kind}\", path = \"{}\" }}", path.display())
}

#[test]
fn results_on_a_tree_from_a_file_are_those_of_the_generated_one() {
    let folder = tempfile::tempdir().unwrap();
    let trees = [
        "{ kind = \"leaf-spine\", leaves = 4, spines = 3, hosts_per_leaf = 4 }",
        "{ kind = \"fat-tree\", k = 4 }",
        "{ kind = \"xgft\", m = [2, 2, 2, 2], w = [1, 2, 2, 2] }",
    ];
    let schemes = [
        "conga",
        "conweave",
        "presto",
        "path-list",
        "spray-paths",
        "d-mod-k",
        "s-mod-k",
        "random-nca",
        "drill",
        "flowcut",
        "ecmp",
    ];
    for tree in trees {
        let formats = [
            ExportFormat::EdgeList,
            ExportFormat::Ns3,
            ExportFormat::Dot,
            ExportFormat::GraphMl,
            ExportFormat::Json,
        ];
        let files = formats.map(|format| written(tree, format, folder.path()));
        for scheme in schemes {
            let generated = flows(&scenario(tree, scheme));
            assert!(generated.len() > 10, "{scheme} on {tree}");
            for file in &files {
                assert!(flows(&scenario(file, scheme)) == generated, "{scheme} on {file}");
            }
        }
    }
}

/// Hosts that go round the leaves, and links from the top down in no order: no number follows from another one.
#[test]
fn trees_of_any_numbering_carry_all_flows() {
    let folder = tempfile::tempdir().unwrap();
    let mut lines = Vec::new();
    for edge in 0..8 {
        (0..2).for_each(|agg| lines.push(format!("agg{} edge{edge}", 2 * (edge / 2) + (agg + edge) % 2)));
    }
    (0..4)
        .for_each(|core| (0..4).for_each(|pod| lines.push(format!("core{core} agg{}", 2 * pod + core / 2))));
    (0..16).for_each(|host| lines.push(format!("edge{} host{host}", host * 3 % 8)));
    lines.sort_by_key(|line| line.bytes().fold(7u32, |sum, byte| sum.wrapping_mul(31) ^ u32::from(byte)));
    let path = folder.path().join("net");
    std::fs::write(&path, lines.join("\n")).unwrap();
    let file = format!("{{ kind = \"edge-list\", path = \"{}\" }}", path.display());
    for scheme in ["conga", "conweave", "presto", "path-list", "d-mod-k", "s-mod-k"] {
        let flows = flows(&scenario(&file, scheme));
        assert!(flows.len() > 10 && flows.iter().all(|flow| flow.fct.is_some()), "{scheme}");
    }
}

#[test]
fn what_is_no_tree_is_refused_by_the_name_of_the_scheme() {
    let folder = tempfile::tempdir().unwrap();
    let file = written("{ kind = \"slim-fly\", q = 5 }", ExportFormat::EdgeList, folder.path());
    for scheme in ["conga", "conweave", "presto", "path-list", "d-mod-k", "s-mod-k"] {
        let refusal = refusal(&scenario(&file, scheme));
        assert!(refusal.contains(&format!("(by the preset \"{scheme}\")")), "{refusal}");
        assert!(
            refusal.contains("expected a tree topology") && refusal.contains("linked and equally far"),
            "{refusal}"
        );
    }
    let own = "{ placement = \"nic\", granularity.kind = \"packet\", selector.kind = \"round-robin\" }";
    let refusal = refusal(&format!("topology = {file}\nrouting = {own}\n"));
    assert!(refusal.contains("a tree topology for \"round-robin\" of path labels"), "{refusal}");
    assert!(!refusal.contains("by the preset"), "{refusal}");
}
