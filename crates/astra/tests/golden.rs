//! Answers of ASTRA-sim itself (518bd51, with its analytical networks), to the nanosecond.

mod common;

use common::*;
use netloom_astra::analytical::Outcome;
use netloom_astra::chakra::{self, Node, NodeType, Value};

/// A collective operation of 1 MiB at every rank, at the usual rates.
fn one(kind: u64, ranks: u32, system: &str, block: &str) -> Outcome {
    let traces = vec![vec![collective(1, &[], kind, MIB)]; ranks as usize];
    Folder::new(&traces, system).run(&network(block, ranks), true)
}

/// Four chunks, one at a time, on links of 50 GiB/s and 500 ns.
#[test]
fn rings_on_one_dimension() {
    for (kind, name, expected) in [
        (ALL_REDUCE, "all-reduce", [43000, 64440, 126600, 99640]),
        (ALL_GATHER, "all-gather", [64744, 151016, 301712, 323560]),
        (REDUCE_SCATTER, "reduce-scatter", [22240, 33080, 64160, 50740]),
        (ALL_TO_ALL, "all-to-all", [41560, 125480, 249800, 391240]),
    ] {
        let networks = [("Ring", 4), ("Ring", 8), ("Switch", 8), ("Ring", 16)];
        for ((block, ranks), expected) in networks.into_iter().zip(expected) {
            let outcome = one(kind, ranks, &system("ring", 1), block);
            assert_eq!(finished(&outcome), expected, "{name}, {block} {ranks}");
        }
    }
}

#[test]
fn other_algorithms_and_active_chunks() {
    for (algorithm, block, ranks, kind, active, expected) in [
        ("ring", "Switch", 16, ALL_REDUCE, 2, 98425),
        ("direct", "Ring", 16, ALL_REDUCE, 1, 97640),
        ("direct", "Ring", 16, ALL_REDUCE, 2, 89240),
        ("direct", "Switch", 16, REDUCE_SCATTER, 2, 19655),
        ("direct", "FullyConnected", 16, ALL_TO_ALL, 1, 3300),
        ("direct2", "FullyConnected", 16, ALL_TO_ALL, 2, 13365),
        ("direct", "Switch", 64, ALL_REDUCE, 1, 47056),
        ("direct", "Switch", 64, ALL_GATHER, 1, 1253872),
        ("halvingDoubling", "Switch", 16, ALL_REDUCE, 1, 106416),
        ("halvingDoubling", "Switch", 16, ALL_REDUCE, 2, 57901),
        ("halvingDoubling", "Switch", 64, ALL_GATHER, 1, 2485200),
        ("halvingDoubling", "Switch", 64, REDUCE_SCATTER, 1, 63636),
    ] {
        let outcome = one(kind, ranks, &system(algorithm, active), block);
        assert_eq!(finished(&outcome), expected, "{algorithm}, {block} {ranks}, {active}");
    }
}

/// Its ranks end at different times: rank 0, and the last.
#[test]
fn double_binary_trees() {
    for (block, ranks, active, first, last) in [
        ("Ring", 16, 1, 576095, 658332),
        ("Switch", 16, 2, 202640, 223188),
        ("Switch", 64, 1, 551553, 643052),
    ] {
        let outcome = one(ALL_REDUCE, ranks, &system("doubleBinaryTree", active), block);
        let ends: Vec<u64> = outcome.ends.iter().map(|end| end.unwrap().finished).collect();
        assert_eq!((ends[0], ends.iter().copied().max()), (first, Some(last)), "{block} {ranks} {active}");
    }
}

/// ASTRA-sim's model of an HGX H100: 400 GiB/s, 936.25 ns, two chunks at a time, 3350 GB/s of memory.
#[test]
fn a_server_of_eight() {
    let system = system("ring", 2).replace("1600", "3350");
    let hgx = "topology: [ Switch ]\nnpus_count: [ 8 ]\nbandwidth: [ 400.0 ]\nlatency: [ 936.25 ]\n";
    for (kind, expected) in
        [(ALL_REDUCE, 57426), (ALL_GATHER, 44058), (REDUCE_SCATTER, 28950), (ALL_TO_ALL, 114000)]
    {
        let traces = vec![vec![collective(1, &[], kind, MIB)]; 8];
        assert_eq!(finished(&Folder::new(&traces, &system).run(hgx, true)), expected);
    }
}

/// The last chunk has the full size, too.
#[test]
fn sizes_that_chunks_do_not_divide() {
    for (kind, bytes, splits, expected) in [
        (ALL_REDUCE, 3 * MIB + 1, 3, 137216),
        (ALL_GATHER, 3 * MIB + 1, 3, 547388),
        (ALL_TO_ALL, 12345677, 7, 920264),
    ] {
        let system = system("ring", 2).replace("-splits\": 4", &format!("-splits\": {splits}"));
        let traces = vec![vec![collective(1, &[], kind, bytes)]; 8];
        assert_eq!(finished(&Folder::new(&traces, &system).run(&network("Ring", 8), true)), expected);
    }
}

/// Two phases in one dimension, one in the other, on two dimensions without congestion.
#[test]
fn phases_go_through_the_dimensions() {
    let two = "topology: [ Ring, Switch ]\nnpus_count: [ 8, 2 ]\nbandwidth: [ 100.0, 50.0 ]\nlatency: [ 250.0, 500.0 ]\n";
    for (kind, active, expected) in TWO_DIMENSIONS {
        let system = system("ring\", \"direct", active);
        let traces = vec![vec![collective(1, &[], kind, MIB)]; 16];
        assert_eq!(finished(&Folder::new(&traces, &system).run(two, false)), expected, "{kind} {active}");
    }
}

const TWO_DIMENSIONS: [(u64, u32, u64); 4] =
    [(ALL_REDUCE, 1, 33400), (ALL_REDUCE, 2, 16700), (ALL_GATHER, 1, 149918), (ALL_TO_ALL, 2, 35121)];

/// A step of training: computations beside communication, messages between ranks, receives that are posted late.
#[test]
fn nodes_of_all_kinds() {
    let step = |rank: u64| {
        vec![
            compute(1, &[], rank * 3),
            collective(2, &[1], ALL_REDUCE, MIB),
            compute(3, &[1], 20),
            collective(4, &[2, 3], ALL_TO_ALL, MIB),
            compute(5, &[], 7),
        ]
    };
    let traces: Vec<Vec<Node>> = (0..8).map(step).collect();
    let outcome = Folder::new(&traces, &system("direct", 1)).run(&network("Switch", 8), true);
    let ends = outcome.ends.iter().map(|end| end.unwrap());
    assert_eq!(ends.clone().map(|end| end.finished).collect::<Vec<_>>(), [92000; 8]);
    let late = vec![
        vec![send(1, &[], 1, 1000), send(2, &[], 1, 1000)],
        vec![compute(1, &[], 50), receive(2, &[1], 0, 1000), receive(3, &[2], 0, 1000)],
        vec![compute(1, &[], 1)],
        vec![compute(1, &[], 1)],
    ];
    let outcome = Folder::new(&late, &system("ring", 1)).run(&network("Ring", 4), true);
    let ends: Vec<u64> = outcome.ends.iter().map(|end| end.unwrap().finished).collect();
    assert_eq!(ends, [1036, 50000, 1000, 1000]);
}

#[test]
fn rooflines_broadcasts_and_replays() {
    let operation = |id, waits: &[u64], ops: u64, bytes: u64| {
        node(
            id,
            NodeType::Comp,
            waits,
            &[("num_ops", Value::Uint64(ops)), ("tensor_size", Value::Uint64(bytes))],
        )
    };
    let roofline = vec![
        operation(1, &[], 1_000_000_000, 1_000_000),
        operation(2, &[1], 1_000_000, 100_000_000),
        operation(3, &[2], 5, 0),
        collective(4, &[2], ALL_REDUCE, MIB),
    ];
    let system_of = |more: &str| format!("{}, {more}", system("ring", 1));
    let folder = Folder::new(&vec![roofline; 4], &system_of("\"roofline-enabled\": 1, \"peak-perf\": 900"));
    let outcome = folder.run(&network("Ring", 4), true);
    assert_eq!(finished(&outcome), 106611);
    assert_eq!(outcome.ends[0].unwrap().exposed, 43000);

    let broadcast = Node { duration_micros: 12, ..collective(1, &[], 5, MIB) };
    let traces = vec![vec![broadcast, collective(2, &[1], ALL_REDUCE, MIB)]; 4];
    assert_eq!(finished(&Folder::new(&traces, &system("ring", 1)).run(&network("Ring", 4), true)), 55000);

    let traces = vec![vec![compute(1, &[], 5), collective(2, &[1], ALL_REDUCE, MIB), send(3, &[1], 1, 5)]; 4];
    let outcome = Folder::new(&traces, &system_of("\"replay-only\": 1")).run(&network("Ring", 4), true);
    assert_eq!((finished(&outcome), outcome.ends[0].unwrap().exposed), (5002, 0));
}

/// Operations of groups that cross each other; within a group of some ranks the endpoint delay is 10 ns, whatever the system says.
#[test]
fn groups() {
    for (algorithm, kind, delay, expected) in [
        ("ring", ALL_REDUCE, 10, 259028),
        ("ring", ALL_REDUCE, 25, 259928),
        ("direct", ALL_TO_ALL, 25, 95468),
        ("direct2", ALL_GATHER, 10, 306804),
        ("halvingDoubling", REDUCE_SCATTER, 25, 132352),
    ] {
        let of = |node: Node, group: u64| with(node, "pg_name", Value::Text(group.to_string()));
        let nodes = |rank: u64| {
            vec![
                of(collective(1, &[], kind, MIB), 1 + rank / 4),
                of(collective(2, &[1], ALL_REDUCE, MIB), 3 + rank % 4),
                collective(3, &[2], kind, MIB),
            ]
        };
        let traces: Vec<Vec<Node>> = (0..8).map(nodes).collect();
        let system =
            system(algorithm, 1).replace("\"endpoint-delay\": 10", &format!("\"endpoint-delay\": {delay}"));
        let mut folder = Folder::new(&traces, &system);
        let groups = r#"{"1":[0,1,2,3],"2":[4,5,6,7],"3":[0,4],"4":[1,5],"5":[2,6],"6":[3,7]}"#;
        folder.files.groups = Some(folder.write("groups.json", groups));
        assert_eq!(finished(&folder.run(&network("Switch", 8), true)), expected, "{algorithm} {delay}");
    }
}

/// Jobs on which ASTRA-sim hangs or aborts.
#[test]
fn metadata_invalid_roots_and_messages_to_oneself_run() {
    let list = r#"['[{"pg_name": "7", "ranks": [0, 1, 2, 3]}, {"pg_name": "8", "ranks": [4, 5, 6, 7]}]']"#;
    let nodes = |rank: u64| {
        let values = netloom_astra::chakra::Values { values: list.to_owned() };
        let metadata = Node { inputs: Some(values), ..node(1, NodeType::Metadata, &[], &[]) };
        let group = Value::Text((7 + rank / 4).to_string());
        vec![metadata, with(collective(2, &[1], ALL_REDUCE, MIB), "pg_name", group)]
    };
    let traces: Vec<Vec<Node>> = (0..8).map(nodes).collect();
    let of_four = finished(&one(ALL_REDUCE, 4, &system("ring", 1), "Switch"));
    assert_eq!(finished(&Folder::new(&traces, &system("ring", 1)).run(&network("Switch", 8), true)), of_four);

    let root = vec![node(1, NodeType::Invalid, &[], &[]), collective(2, &[1], ALL_REDUCE, MIB)];
    assert_eq!(
        finished(&Folder::new(&vec![root; 4], &system("ring", 1)).run(&network("Ring", 4), true)),
        43000
    );

    let own = |rank| vec![send(1, &[], rank, 0), receive(2, &[], rank, 0), compute(3, &[1, 2], 4)];
    let traces: Vec<Vec<Node>> = (0..4).map(own).collect();
    assert_eq!(finished(&Folder::new(&traces, &system("ring", 1)).run(&network("Ring", 4), true)), 4000);

    // Fewer bytes than chunks; a group of one rank.
    let few = vec![vec![collective(1, &[], ALL_GATHER, 3)]; 4];
    assert!(Folder::new(&few, &system("ring", 1)).run(&network("Ring", 4), true).unfinished.is_empty());
    let alone = vec![
        vec![with(collective(1, &[], ALL_REDUCE, MIB), "pg_name", Value::Text("1".to_owned()))],
        vec![compute(1, &[], 2)],
    ];
    let mut folder = Folder::new(&alone, &system("ring", 1));
    folder.files.groups = Some(folder.write("groups.json", r#"{"1": [0]}"#));
    assert!(folder.run(&network("Ring", 2), true).unfinished.is_empty());
}

/// An all-reduce as traces say: those of the ring that ASTRA-sim has by itself, but without endpoint delays.
#[test]
fn custom_collectives() {
    let ring = |rank: u32| {
        let mut nodes: Vec<Node> = Vec::new();
        for step in 0..6u64 {
            let before: Vec<u64> = if step > 0 { vec![2 * step - 1, 2 * step] } else { Vec::new() };
            nodes.push(send(2 * step + 1, &before, (rank + 1) % 4, MIB / 4));
            nodes.push(receive(2 * step + 2, &before, (rank + 3) % 4, MIB / 4));
        }
        nodes
    };
    let traces = vec![vec![collective(1, &[], ALL_REDUCE, MIB), collective(2, &[1], ALL_REDUCE, 8 * MIB)]; 4];
    let mut system = system("ring", 1);
    system += ", \"all-reduce-implementation-custom\": [\"custom\"]";
    let folder = Folder::new(&traces, &system);
    for rank in 0..4 {
        std::fs::write(folder.path(&format!("custom.{rank}.et")), chakra::encode(&ring(rank))).unwrap();
    }
    // Twelve messages, one after the other.
    let message = 500 + (f64::from(1 << 18) / (50.0 * f64::from(1 << 30) / 1e9)) as u64;
    assert_eq!(finished(&folder.run(&network("Ring", 4), true)), 12 * message);
}
