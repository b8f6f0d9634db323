//! Files that are wrong in any way are refused with a message, or run: nothing panics, hangs or takes the memory.

mod common;

use std::sync::Arc;

use common::*;
use netloom_astra::analytical;
use netloom_astra::chakra::{Node, NodeType, Value};
use netloom_astra::{Job, Shape};
use netloom_topology::NetworkFile;
use netloom_units::Bytes;
use netloom_units::memory;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::TestRunner;

/// Bytes of memory that files may ask for.
const AVAILABLE: u64 = 64 << 20;

/// A byte set, bytes cut, or a word put in.
#[derive(Clone, Debug)]
enum Mutation {
    Set(Index, u8),
    Cut(Index, usize),
    Insert(Index, &'static str),
}

const WORDS: [&str; 10] = ["0", "-1", "1e308", "99999999999999999999", "[]", "{}", "\"\"", "null", "\n", ":"];

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mutation::Set(at, byte)),
        (any::<Index>(), 1..20usize).prop_map(|(at, length)| Mutation::Cut(at, length)),
        (any::<Index>(), prop::sample::select(&WORDS[..])).prop_map(|(at, word)| Mutation::Insert(at, word)),
    ]
}

fn mutate(data: &mut Vec<u8>, mutation: &Mutation) {
    let length = data.len();
    match mutation {
        Mutation::Set(at, byte) if length > 0 => data[at.index(length)] = *byte,
        Mutation::Set(..) => {}
        Mutation::Cut(at, cut) => {
            let from = at.index(length + 1);
            data.drain(from..length.min(from + cut));
        }
        Mutation::Insert(at, word) => {
            let at = at.index(length + 1);
            data.splice(at..at, word.bytes());
        }
    }
}

#[test]
fn mutated_files_are_refused_or_run() {
    let _ = memory::set_available(Bytes(AVAILABLE));
    let group = |node: Node| with(node, "pg_name", Value::Text("1".to_owned()));
    let nodes = |rank: u32| {
        vec![
            node(1, NodeType::Metadata, &[], &[]),
            compute(2, &[1], 3),
            group(collective(3, &[2], ALL_REDUCE, 40_000)),
            collective(4, &[3], ALL_TO_ALL, 1000),
            send(5, &[4], (rank + 1) % 4, 700),
            receive(6, &[4], (rank + 3) % 4, 700),
            collective(7, &[5, 6], ALL_GATHER, 900),
        ]
    };
    let traces: Vec<Vec<Node>> = (0..4).map(nodes).collect();
    let mut folder = Folder::new(&traces, &system("direct", 2));
    folder.files.groups = Some(folder.write("groups.json", r#"{"1": [2, 0, 1, 3]}"#));
    folder.write("network.yml", &network("Ring", 4));
    let names = ["t.0.et", "t.1.et", "system.json", "groups.json", "network.yml"];
    let whole = names.map(|name| std::fs::read(folder.path(name)).unwrap());
    let run = || {
        let file = NetworkFile::read(&folder.path("network.yml")).map_err(|error| error.to_string())?;
        let shape = Shape { dimensions: file.counts(), queues: 1 };
        let job = Job::read(&folder.files, &shape).map_err(|error| error.to_string())?;
        let outcome =
            analytical::run(&Arc::new(job), &file, file.dimensions.len() == 1, u64::MAX, |_, _| false);
        Ok::<_, String>(outcome.ends.iter().flatten().count())
    };
    assert_eq!(run(), Ok(4));
    let strategy = (0..names.len(), prop::collection::vec(mutation(), 1..5));
    let (mut refused, mut ended) = (0, 0);
    let result = TestRunner::default().run(&strategy, |(place, mutations)| {
        let mut data = whole[place].clone();
        mutations.iter().for_each(|mutation| mutate(&mut data, mutation));
        std::fs::write(folder.path(names[place]), &data).unwrap();
        match run() {
            Ok(ranks) => {
                prop_assert!(ranks <= 1 << 16);
            }
            Err(message) => prop_assert!(!message.is_empty()),
        }
        std::fs::write(folder.path(names[place]), &whole[place]).unwrap();
        Ok(())
    });
    if let Err(error) = result {
        panic!("{error}");
    }
    // Some are refused and some run, or this tests nothing.
    for at in 0..whole[0].len() {
        std::fs::write(folder.path("t.0.et"), &whole[0][..at]).unwrap();
        match run() {
            Ok(_) => ended += 1,
            Err(_) => refused += 1,
        }
    }
    assert!(refused > ended, "{refused} {ended}");
}
