//! What is fuzzed: every reader of files. A file is read or refused with a message; what was read survives writing.

use std::path::Path;

use netloom_scenario::{Node, Scenario, Source};
use netloom_study::{Binding, Expression, Form, Metrics, Sample, Study};
use netloom_topology::{BuildContext, ExportFormat, Network, Topology};
use netloom_units::Bytes;
use netloom_units::kind::Kind;
use netloom_units::memory;
use netloom_workload::{PlanContext, Workload};
use serde_json::{Value, json};
use tempfile::TempDir;

thread_local! {
    /// Where the files lie that are read by name; one folder for all, as making one takes longer than reading a file.
    static FOLDER: TempDir = {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("groups.json"), GROUPS).expect("a file");
        std::fs::write(folder.path().join("trace.et"), TRACE).expect("a file");
        folder
    };
    /// What workloads are laid on.
    static FABRIC: Network = {
        let fabric = Topology::read("crossbar", json!({ "hosts": 8 })).expect("a kind").expect("its fields");
        fabric.build(&BuildContext { seed: 1, base_dir: Path::new("") }).expect("a network")
    };
}

/// Who is in which process group of an execution trace, and a trace in which both ranks come to the same collectives of such groups.
const GROUPS: &str = r#"{ "1": [0, 1], "2": [0] }"#;
const TRACE: &[u8] = include_bytes!("seeds/chakra/groups.et");

/// Bytes of memory that files may ask for.
const AVAILABLE: u64 = 8 << 20;

/// Reads `data` as the file of a target.
pub(crate) fn run(target: &str, data: &[u8]) {
    // Files ask for networks that this machine could hold, but not build a million times.
    let _ = memory::set_available(Bytes(AVAILABLE));
    match target {
        "scenario" => scenario(data),
        "study" => study(data),
        "claims" => claims(data),
        "flow-list" => workload(data, "flows.csv", json!({ "kind": "flow-list", "file": "flows.csv" })),
        "htsim-matrix" | "ns3-flows" | "goal" | "simai" => {
            workload(data, "file", json!({ "kind": target, "file": "file" }))
        }
        "flow-graph" => {
            workload(data, "flows.graphml", json!({ "kind": "flow-list", "file": "flows.graphml" }))
        }
        "chakra" => {
            let table = json!({ "kind": "chakra", "files": ["file", "file"], "groups": "groups.json" });
            workload(data, "file", table);
        }
        "chakra-groups" => {
            let table = json!({ "kind": "chakra", "files": ["trace.et", "trace.et"], "groups": "file" });
            workload(data, "file", table);
        }
        "sizes" => workload(data, "file", json!({ "kind": "incast", "size": { "file": "file" } })),
        topology => network(data, topology),
    }
}

fn scenario(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = |text: &str| Scenario::read(&Node::parse(&Source::new("s.toml", text))?);
    match read(text) {
        Ok(scenario) => {
            // Fields that were left out are written with what they are then, so the text is compared.
            let written = scenario.to_toml().expect("what was read can be written");
            let again = read(&written).map(|scenario| scenario.to_toml().expect("so can what was written"));
            assert_eq!(again.as_deref(), Ok(&*written));
        }
        Err(problems) => assert!(!problems.to_string().is_empty()),
    }
}

/// The study as it is written; its cells are scenarios.
fn study(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    for form in [Form::Small, Form::Middle, Form::Full] {
        let read = Node::parse(&Source::new("s.toml", text)).and_then(|node| Study::read(&node, form));
        if let Err(problems) = read {
            assert!(!problems.to_string().is_empty());
        }
    }
}

/// Points with two labels and two seeds, and any metric but one.
struct Points;

impl Metrics for Points {
    fn samples(&self, metric: &str, labels: &[String], bound: &[Binding<'_>]) -> Result<Vec<Sample>, String> {
        let is_wanted = |label: &str| {
            labels.iter().all(|wanted| wanted == label) && bound.iter().all(|binding| binding.label == label)
        };
        let sample = |label: &str| Sample { label: label.to_owned(), runs: vec![metric.len() as f64, 0.0] };
        match metric {
            "nothing" => Err("there is no such metric".to_owned()),
            _ => Ok(["a", "b"].into_iter().filter(|label| is_wanted(label)).map(sample).collect()),
        }
    }

    fn axis(&self, axis: &str) -> Result<Vec<String>, String> {
        match axis {
            "x" => Ok(vec!["a".to_owned(), "b".to_owned()]),
            _ => Err("there is no such axis".to_owned()),
        }
    }
}

/// The language of claims: what is wrong with one stands in a place of its text.
fn claims(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let result = Expression::parse(text).and_then(|expression| {
        let _ = expression.sides(&Points);
        let _ = expression.check(&Points, true);
        expression.evaluate(&Points)
    });
    if let Err(error) = result {
        assert!(!error.message.is_empty());
        assert!(text.get(error.span.clone()).is_some(), "{:?} of {text:?}", error.span);
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
    FOLDER.with(|folder| {
        let folder = folder.path();
        std::fs::write(folder.join("file"), data).expect("a file");
        let Some(network) = build(kind, folder) else { return };
        let names = (0..network.nodes()).all(|node| network.find_node(&network.node_name(node)) == Ok(node));
        assert!(names, "every node is found by its name");
        // No format says which NICs are of one host.
        if network.links_per_host() > 1 {
            assert!(network.export(ExportFormat::Json).is_err());
            return;
        }
        // These lose nothing, whatever the names; but for parallel links, which must be asked for.
        let mut pairs: Vec<_> =
            network.links().iter().map(|link| (link.a.min(link.b), link.a.max(link.b))).collect();
        pairs.sort_unstable();
        if pairs.windows(2).any(|pair| pair[0] == pair[1]) {
            return;
        }
        for (kind, text) in [("json", network.to_json()), ("dot", network.to_dot())] {
            // A short description of a large network becomes a file that is refused for the memory that reading it could take.
            if text.len() as u64 > AVAILABLE / 64 {
                continue;
            }
            std::fs::write(folder.join("file"), text).expect("a file");
            assert_eq!(build(kind, folder).as_ref(), Some(&network), "{kind}");
        }
    });
}

fn workload(data: &[u8], file: &str, table: Value) {
    let folder = FOLDER.with(|folder| folder.path().to_owned());
    std::fs::write(folder.join(file), data).expect("a file");
    let workload: Workload = serde_json::from_value(table).expect("a workload");
    let context = PlanContext { base_dir: folder, ..PlanContext::new(1) };
    match FABRIC.with(|fabric| workload.plan(fabric, &context)) {
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
