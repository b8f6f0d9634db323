//! Files that are almost right: every reader refuses them with a message, or reads them.
//!
//! What is checked, and the files to start from, are those of the fuzz targets in `fuzz/`.

#[path = "../../../fuzz/targets.rs"]
mod targets;

use std::path::Path;

use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

/// A change of a file.
#[derive(Clone, Debug)]
enum Mutation {
    /// A byte becomes another one.
    Set(Index, u8),
    /// Some bytes are left out.
    Cut(Index, usize),
    /// Some bytes are said again, elsewhere.
    Copy(Index, usize, Index),
    /// A word that means something to some reader comes in.
    Insert(Index, &'static str),
}

const WORDS: [&str; 24] = [
    "0",
    "-1",
    "1",
    "18446744073709551616",
    "4294967295",
    "9999999999999999999s",
    "1e999",
    "nan",
    "0.5",
    "\n",
    " ",
    "#",
    "\"",
    "{",
    "}",
    "[",
    "]",
    "<",
    "->",
    "host",
    "kind",
    "100Gbps",
    "1us",
    "\u{fffd}",
];

fn mutation() -> impl Strategy<Value = Mutation> {
    let at = any::<Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        (at(), 1..40usize).prop_map(|(at, length)| Mutation::Cut(at, length)),
        (at(), 1..40usize, at()).prop_map(|(from, length, to)| Mutation::Copy(from, length, to)),
        (at(), prop::sample::select(&WORDS[..])).prop_map(|(at, word)| Mutation::Insert(at, word)),
    ]
}

fn mutate(data: &mut Vec<u8>, mutation: &Mutation) {
    let (at, length) = (|index: &Index| index.index(data.len() + 1), data.len());
    match mutation {
        Mutation::Set(index, byte) if length > 0 => data[index.index(length)] = *byte,
        Mutation::Set(..) => {}
        Mutation::Cut(index, cut) => {
            let from = at(index);
            data.drain(from..length.min(from + cut));
        }
        Mutation::Copy(index, copied, to) => {
            let (from, to) = (at(index), at(to));
            let part = data[from..length.min(from + copied)].to_vec();
            data.splice(to..to, part);
        }
        Mutation::Insert(index, word) => {
            let at = at(index);
            data.splice(at..at, word.bytes());
        }
    }
}

/// Mutates the seeds of a target.
fn mutations(target: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/seeds").join(target);
    let seeds: Vec<Vec<u8>> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap())
        .collect();
    assert!(!seeds.is_empty(), "{}", folder.display());
    let strategy = (prop::sample::select(seeds), prop::collection::vec(mutation(), 0..6));
    let mut runner = TestRunner::default();
    let result = runner.run(&strategy, |(mut data, mutations)| {
        mutations.iter().for_each(|mutation| mutate(&mut data, mutation));
        targets::run(target, &data);
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
}

macro_rules! targets {
    ($($test:ident: $target:literal),* $(,)?) => {
        $(#[test] fn $test() { mutations($target); })*

        #[test]
        fn every_target_has_a_test() {
            let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/fuzz_targets");
            let mut targets: Vec<String> = std::fs::read_dir(fuzz)
                .unwrap()
                .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
                .collect();
            targets.sort();
            let mut tested = [$($target),*];
            tested.sort();
            assert_eq!(targets, tested);
        }
    };
}

targets! {
    scenarios: "scenario",
    studies: "study",
    claims: "claims",
    edge_lists: "edge-list",
    graphml: "graphml",
    dot: "dot",
    json: "json",
    htsim_topologies: "htsim-topo",
    ns3_topologies: "ns3-topology",
    astra_sim_networks: "astra-sim-network",
    infragraph: "infragraph",
    simai_topologies: "simai-topology",
    flow_lists: "flow-list",
    htsim_matrices: "htsim-matrix",
    ns3_flows: "ns3-flows",
    goal: "goal",
    simai: "simai",
    flow_graphs: "flow-graph",
    chakra: "chakra",
    chakra_groups: "chakra-groups",
    sizes: "sizes",
}
