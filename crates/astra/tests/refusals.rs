//! What is wrong with a job is an error before it runs: with the file, the node and the field.

mod common;

use common::*;
use netloom_astra::chakra::{self, Node, NodeType, Value};

fn refusal(traces: &[Vec<Node>], system: &str) -> String {
    refusal_of(&Folder::new(traces, system), traces.len() as u32)
}

fn refusal_of(folder: &Folder, ranks: u32) -> String {
    let message = folder.job(&[ranks]).expect_err("it is refused").to_string();
    message.replace(&format!("{}/", folder.path("").display()).replace("//", "/"), "")
}

fn check(traces: &[Vec<Node>], expected: &str) {
    assert_eq!(refusal(traces, &system("ring", 1)), expected);
}

#[test]
fn traces_that_are_cut_or_missing() {
    let nodes = vec![collective(1, &[], ALL_REDUCE, MIB), collective(2, &[1], ALL_REDUCE, MIB)];
    let folder = Folder::new(&vec![nodes.clone(); 2], &system("ring", 1));
    let whole = chakra::encode(&nodes);
    std::fs::write(folder.path("t.1.et"), &whole[..whole.len() - 5]).unwrap();
    let message = refusal_of(&folder, 2);
    let expected = "t.1.et: no Chakra execution trace, or a truncated one: the node after node 1: ";
    assert!(message.starts_with(expected), "{message}");
    std::fs::remove_file(folder.path("t.1.et")).unwrap();
    let message = refusal_of(&folder, 2);
    assert!(message.starts_with("cannot read t.1.et: "), "{message}");
    assert_eq!(folder.files.ranks().unwrap(), 1);
    std::fs::write(folder.path("t.2.et"), &whole).unwrap();
    let message = folder.files.ranks().unwrap_err().to_string();
    assert!(
        message.ends_with("t.1.et: expected the trace of rank 1, as there is one of rank 2"),
        "{message}"
    );
}

#[test]
fn messages_without_a_counterpart() {
    let idle = || vec![compute(1, &[], 1)];
    check(
        &[vec![send(7, &[], 1, 100)], idle()],
        "t.0.et: node 7: expected a receive at rank 1 for each send of 100 bytes (comm_size) with comm_tag 3; without one: 1",
    );
    check(
        &[idle(), vec![receive(8, &[], 0, 100), receive(9, &[], 0, 100)]],
        "t.1.et: node 9: expected a send from rank 0 for each receive of 100 bytes (comm_size) with comm_tag 3; without one: 2",
    );
    // Of another size is no counterpart.
    let message = refusal(&[vec![send(1, &[], 1, 100)], vec![receive(1, &[], 0, 99)]], &system("ring", 1));
    assert!(message.contains("of 99 bytes") || message.contains("of 100 bytes"), "{message}");
}

#[test]
fn operations_that_not_all_have() {
    let nodes = |bytes| vec![collective(1, &[], ALL_REDUCE, bytes)];
    check(
        &[nodes(MIB), nodes(MIB), nodes(MIB - 1)],
        "t.2.et: expected the same collective operations as rank 0 has: it has 1 × all-reduce of 1048576 bytes (comm_size) in all ranks, \
         this rank 1 × all-reduce of 1048575 bytes (comm_size) in all ranks",
    );
    check(
        &[nodes(MIB), vec![compute(1, &[], 1)]],
        "t.1.et: expected the same collective operations as rank 0 has: it has 1 × all-reduce of 1048576 bytes (comm_size) in all ranks, \
         this rank none like that",
    );
}

#[test]
fn nodes_that_make_no_sense() {
    let one = |node: Node| vec![vec![node], vec![compute(1, &[], 1)]];
    let cases: [(Node, &str); 10] = [
        (compute(1, &[5], 1), "data_deps: there is no node 5 to wait for"),
        (compute(1, &[1], 1), "ctrl_deps, data_deps: nodes wait for each other in a cycle"),
        (send(1, &[], 9, 1), "comm_dst: expected a rank from 0 to 1, found 9"),
        (
            node(1, NodeType::CommSend, &[], &[("comm_dst", Value::Uint32(1))]),
            "expected an attribute `comm_tag`, a whole number",
        ),
        (
            collective(1, &[], 9, 1),
            "comm_type: expected all-reduce (0), all-gather (2), broadcast (5), all-to-all (6) or reduce-scatter (7), found 9",
        ),
        (
            node(1, NodeType::CommColl, &[], &[]),
            "expected an attribute `comm_type`, or a name with the operation, such as ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        ),
        (
            with(collective(1, &[], ALL_REDUCE, 1), "is_cpu_op", Value::Bool(true)),
            "is_cpu_op: expected none, or 0, for communication",
        ),
        (
            with(collective(1, &[], ALL_REDUCE, 1), "pg_name", Value::Text("4".to_owned())),
            "pg_name: there is no group \"4\" (`groups` names the file that lists the ranks of each group; metadata nodes can define groups, too)",
        ),
        (
            node(1, NodeType::MemLoad, &[], &[]),
            "type: expected none that loads from or stores to remote memory, which is not simulated",
        ),
        (
            with(send(1, &[], 1, 1), "comm_src", Value::Uint32(1)),
            "comm_src: expected the rank itself, 0, found 1",
        ),
    ];
    for (node, expected) in cases {
        check(&one(node), &format!("t.0.et: node 1 \"n1\": {expected}"));
    }
    check(
        &[vec![compute(4, &[], 1), compute(4, &[], 1)], vec![compute(1, &[], 1)]],
        "t.0.et: node 4 \"n4\": expected a number that no other node has",
    );
}

#[test]
fn systems_that_make_no_sense() {
    let reduce = |ranks| vec![vec![collective(1, &[], ALL_REDUCE, MIB)]; ranks];
    for (change, to, expected) in [
        ("LIFO", "FILO", "scheduling-policy: expected \"LIFO\" or \"FIFO\" or \"EXPLICIT\", found \"FILO\""),
        (
            "\"endpoint-delay\"",
            "\"endpoint-dely\"",
            "unknown field `endpoint-dely` (did you mean `endpoint-delay`?",
        ),
        (
            "\"ring\"",
            "\"rings\"",
            "all-reduce-implementation: there is no algorithm `rings` (did you mean `ring`?",
        ),
        (
            "-splits\": 4",
            "-splits\": 0",
            "preferred-dataset-splits: expected a whole number from 1 to 65536, found 0",
        ),
        (
            ", \"local-mem-bw\": 1600",
            "",
            "local-mem-bw: expected the bandwidth at which an all-reduce reduces, in GB/s",
        ),
        (
            "\"boost-mode\": 0",
            "\"model-shared-bus\": 1",
            "model-shared-bus: expected 0: a shared memory bus is not simulated",
        ),
        (
            "\"all-reduce-implementation\": [\"ring\"], ",
            "",
            "expected `all-reduce-implementation`, as rank 0 has such an operation",
        ),
        (
            "\"all-reduce-implementation\": [\"ring\"]",
            "\"all-reduce-implementation\": [\"ring\", \"ring\"]",
            "all-reduce-implementation: expected at most 1 algorithms, one for each dimension, found 2",
        ),
    ] {
        let message = refusal(&reduce(4), &system("ring", 1).replace(change, to));
        assert!(message.starts_with(&format!("system.json: {expected}")), "{message}");
    }
    for (algorithm, ranks) in [("halvingDoubling", 6), ("doubleBinaryTree", 12)] {
        let message = refusal(&reduce(ranks), &system(algorithm, 1));
        let expected = format!(
            "system.json: all-reduce-implementation: expected ring or direct: {algorithm} needs a power of two of ranks, and there are {ranks}"
        );
        assert_eq!(message, expected);
    }
}

#[test]
fn dimensions_without_an_algorithm_are_noted() {
    let folder = Folder::new(&vec![vec![collective(1, &[], ALL_REDUCE, MIB)]; 4], &system("ring", 1));
    assert_eq!(folder.job(&[4]).unwrap().notes(), [""; 0]);
    let notes = folder.job(&[2, 2]).unwrap().notes();
    let expected =
        "all-reduce-implementation names 1 of 2 dimensions, and the operation is done in these only";
    assert!(matches!(&notes[..], [note] if note.ends_with(expected)), "{notes:?}");
}
