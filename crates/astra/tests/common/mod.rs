//! Writes the files of small jobs.

#![allow(dead_code, reason = "not every test needs all of it")]

use std::path::PathBuf;
use std::sync::Arc;

use netloom_astra::analytical::{self, Outcome};
use netloom_astra::chakra::{self, Attribute, Node, NodeType, Value};
use netloom_astra::{Files, Job, JobError, Shape};
use netloom_topology::NetworkFile;

pub(crate) const ALL_REDUCE: u64 = 0;
pub(crate) const ALL_GATHER: u64 = 2;
pub(crate) const ALL_TO_ALL: u64 = 6;
pub(crate) const REDUCE_SCATTER: u64 = 7;

pub(crate) const MIB: u64 = 1 << 20;

pub(crate) fn node(id: u64, kind: NodeType, waits: &[u64], attributes: &[(&str, Value)]) -> Node {
    let attribute =
        |(name, value): &(&str, Value)| Attribute { name: (*name).to_owned(), value: Some(value.clone()) };
    Node {
        id,
        name: format!("n{id}"),
        kind: kind.into(),
        ctrl_deps: Vec::new(),
        data_deps: waits.to_vec(),
        duration_micros: 0,
        inputs: None,
        attr: attributes.iter().map(attribute).collect(),
    }
}

pub(crate) fn collective(id: u64, waits: &[u64], kind: u64, bytes: u64) -> Node {
    let attributes = [("comm_type", Value::Int64(kind as i64)), ("comm_size", Value::Uint64(bytes))];
    node(id, NodeType::CommColl, waits, &attributes)
}

pub(crate) fn compute(id: u64, waits: &[u64], micros: u64) -> Node {
    Node { duration_micros: micros, ..node(id, NodeType::Comp, waits, &[]) }
}

pub(crate) fn send(id: u64, waits: &[u64], to: u32, bytes: u64) -> Node {
    let attributes = [
        ("comm_dst", Value::Uint32(to)),
        ("comm_size", Value::Uint64(bytes)),
        ("comm_tag", Value::Uint32(3)),
    ];
    node(id, NodeType::CommSend, waits, &attributes)
}

pub(crate) fn receive(id: u64, waits: &[u64], from: u32, bytes: u64) -> Node {
    let attributes = [
        ("comm_src", Value::Uint32(from)),
        ("comm_size", Value::Uint64(bytes)),
        ("comm_tag", Value::Uint32(3)),
    ];
    node(id, NodeType::CommRecv, waits, &attributes)
}

pub(crate) fn with(mut node: Node, name: &str, value: Value) -> Node {
    node.attr.push(Attribute { name: name.to_owned(), value: Some(value) });
    node
}

/// The files of a job in a folder of their own.
pub(crate) struct Folder {
    folder: tempfile::TempDir,
    pub(crate) files: Files,
}

impl Folder {
    /// With `traces`, one per rank, and the fields of the system file beside the usual ones.
    pub(crate) fn new(traces: &[Vec<Node>], system: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        for (rank, nodes) in traces.iter().enumerate() {
            std::fs::write(path(&format!("t.{rank}.et")), chakra::encode(nodes)).unwrap();
        }
        std::fs::write(path("system.json"), format!("{{ {system} }}")).unwrap();
        let files = Files { traces: path("t"), system: path("system.json"), groups: None };
        Folder { folder, files }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    pub(crate) fn job(&self, dimensions: &[u32]) -> Result<Arc<Job>, JobError> {
        Job::read(&self.files, &Shape { dimensions: dimensions.to_vec(), queues: 1 }).map(Arc::new)
    }

    /// Runs it with this network file.
    pub(crate) fn run(&self, network: &str, has_congestion: bool) -> Outcome {
        let file = NetworkFile::read(&self.write("network.yml", network)).unwrap();
        let job = self.job(&file.counts()).unwrap();
        analytical::run(&job, &file, has_congestion, u64::MAX, |_, _| true)
    }
}

/// The usual system: four chunks, one at a time.
pub(crate) fn system(algorithm: &str, active: u32) -> String {
    let implementations: Vec<String> = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]
        .iter()
        .filter(|name| !(algorithm == "halvingDoubling" && **name == "all-to-all"))
        .map(|name| format!("\"{name}-implementation\": [\"{algorithm}\"]"))
        .collect();
    format!(
        "\"scheduling-policy\": \"LIFO\", \"endpoint-delay\": 10, \"active-chunks-per-dimension\": {active}, \
         \"preferred-dataset-splits\": 4, {}, \"collective-optimization\": \"localBWAware\", \
         \"local-mem-bw\": 1600, \"boost-mode\": 0",
        implementations.join(", ")
    )
}

/// A network of one dimension, as ASTRA-sim writes it.
pub(crate) fn network(block: &str, count: u32) -> String {
    format!(
        "topology: [ {block} ]\nnpus_count: [ {count} ]\nbandwidth: [ 50.0 ]  # GB/s\nlatency: [ 500.0 ]  # ns\n"
    )
}

/// The time at which all ranks end, which is the same.
pub(crate) fn finished(outcome: &Outcome) -> u64 {
    assert!(outcome.unfinished.is_empty(), "{:?}", outcome.unfinished);
    let ends: Vec<u64> = outcome.ends.iter().map(|end| end.unwrap().finished).collect();
    assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
    ends[0]
}
