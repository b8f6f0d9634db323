//! What is fuzzed: every reader of files. A file is read or refused with a message; what was read survives writing.

use std::path::Path;

use netloom_scenario::{Node, Scenario, Source};
use netloom_topology::{BuildContext, Network, Topology};
use netloom_units::Bytes;
use netloom_units::kind::Kind;
use netloom_units::memory;
use netloom_workload::{PlanContext, Workload};
use serde_json::{Value, json};

/// Reads `data` as the file of a target.
pub(crate) fn run(target: &str, data: &[u8]) {
    // Files ask for networks that this machine could hold, but not build a million times.
    let _ = memory::set_available(Bytes(8 << 20));
    match target {
        "scenario" => scenario(data),
        "flow-list" => workload(data, "flows.csv", json!({ "kind": "flow-list", "file": "flows.csv" })),
        "htsim-matrix" | "ns3-flows" | "goal" => {
            workload(data, "file", json!({ "kind": target, "file": "file" }))
        }
        "flow-graph" => {
            workload(data, "flows.graphml", json!({ "kind": "flow-list", "file": "flows.graphml" }))
        }
        "chakra" => workload(data, "file", json!({ "kind": "chakra", "files": ["file", "file"] })),
        "sizes" => workload(data, "file", json!({ "kind": "incast", "size": { "file": "file" } })),
        topology => network(data, topology),
    }
}

fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = |text: &str| Scenario::read(&Node::parse(&Source::new("s.toml", text))?);
    match read(text) {
        Ok(scenario) => {
            let written = scenario.to_toml().expect("what was read can be written");
            assert_eq!(read(&written).as_ref(), Ok(&scenario), "{written}");
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
}

fn build(kind: &str, folder: &Path) -> Option<Network> {
    let table = json!({ "path": "file" });
    let topology = Topology::read(kind, table).expect("a kind").expect("its fields");
    match topology.build(&BuildContext { seed: 1, base_dir: folder }) {
        Ok(network) => Some(network),
        Err(error) => {
            assert!(!error.to_string().is_empty());
            None
        }
    }
}

fn network(data: &[u8], kind: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("file"), data).expect("a file");
    let Some(network) = build(kind, folder.path()) else { return };
    let names = (0..network.nodes()).all(|node| network.find_node(&network.node_name(node)) == Ok(node));
    assert!(names, "every node is found by its name");
    // These lose nothing, whatever the names; but for parallel links, which must be asked for.
    let mut pairs: Vec<_> =
        network.links().iter().map(|link| (link.a.min(link.b), link.a.max(link.b))).collect();
    pairs.sort_unstable();
    if pairs.windows(2).any(|pair| pair[0] == pair[1]) {
        return;
    }
    for (kind, text) in [("json", network.to_json()), ("dot", network.to_dot())] {
        std::fs::write(folder.path().join("file"), text).expect("a file");
        assert_eq!(build(kind, folder.path()).as_ref(), Some(&network), "{kind}");
    }
}

fn workload(data: &[u8], file: &str, table: Value) {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join(file), data).expect("a file");
    let workload: Workload = serde_json::from_value(table).expect("a workload");
    let fabric = Topology::read("crossbar", json!({ "hosts": 8 })).expect("a kind").expect("its fields");
    let network = fabric.build(&BuildContext { seed: 1, base_dir: folder.path() }).expect("a network");
    let context = PlanContext { base_dir: folder.path().to_owned(), ..PlanContext::new(1) };
    match workload.plan(&network, &context) {
        Ok(mut plan) => {
            for (host, work) in (0..).zip(&mut plan.hosts) {
                while let Some(message) = work.next_timed() {
                    assert!(message.dst != host && message.dst < 8 && message.bytes > Bytes(0));
                }
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
