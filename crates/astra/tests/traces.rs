//! Traces as they come: in JSON, compressed, converted from PyTorch's.

mod common;

use std::io::Write;

use common::*;
use netloom_astra::chakra::{self, Attribute, CommType, Node, NodeType, Value, Values};

/// Compressed by gzip.
fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(bytes).unwrap();
    gzip.finish().unwrap()
}

/// What is read of a file with these bytes.
fn read(bytes: &[u8]) -> Result<chakra::Trace, String> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("t.et");
    std::fs::write(&file, bytes).unwrap();
    chakra::read(&file).map_err(|error| error.to_string().rsplit('/').next().unwrap().to_owned())
}

/// As `chakra_jsonizer` of Chakra 1.0.0 writes it: `MessageToJson` of protobuf, one object right after the other.
const JSONIZED: &str = r#"{
  "version": "0.0.4"
}{
  "id": "1",
  "name": "[\"pg\"]",
  "type": "METADATA_NODE",
  "inputs": {
    "values": "['[{\"pg_name\": \"7\", \"ranks\": [0, 1]}]']",
    "shapes": "[]"
  }
}{
  "id": "2",
  "name": "COMP",
  "type": "COMP_NODE",
  "ctrlDeps": [
    "1"
  ],
  "durationMicros": "30",
  "attr": [
    {
      "name": "is_cpu_op",
      "boolVal": false
    },
    {
      "name": "num_ops",
      "int64Val": "1099511627776"
    }
  ]
}{
  "name": "COLL",
  "type": "COMM_COLL_NODE",
  "dataDeps": [
    "2"
  ],
  "attr": [
    {
      "name": "comm_type"
    },
    {
      "name": "comm_type",
      "uint64Val": "0"
    },
    {
      "name": "pg_name",
      "stringVal": "7"
    },
    {
      "name": "involved_dim",
      "boolList": {
        "values": [
          true
        ]
      }
    },
    {
      "name": "seq_id",
      "int64Val": "-1"
    }
  ]
}"#;

#[test]
fn json_is_read_as_the_same_nodes() {
    let nodes = read(JSONIZED.as_bytes()).unwrap().nodes;
    let kinds: Vec<_> = nodes.iter().map(|node| (node.id, NodeType::try_from(node.kind).unwrap())).collect();
    assert_eq!(kinds, [(1, NodeType::Metadata), (2, NodeType::Comp), (0, NodeType::CommColl)]);
    assert_eq!(nodes[0].inputs.as_ref().unwrap().values, "['[{\"pg_name\": \"7\", \"ranks\": [0, 1]}]']");
    assert_eq!((&nodes[1].ctrl_deps[..], nodes[1].duration_micros), (&[1][..], 30));
    assert_eq!(nodes[1].attribute("num_ops"), Some(&Value::Uint64(1 << 40)));
    let of =
        |name: &str| nodes[2].attr.iter().rfind(|attribute| attribute.name == name).unwrap().value.clone();
    assert_eq!(of("comm_type"), Some(Value::Uint64(0)));
    // Digits in a string's field stay text.
    assert_eq!(of("pg_name"), Some(Value::Text("7".to_owned())));
    assert_eq!(of("seq_id"), Some(Value::Int64(-1)));
    assert_eq!(of("involved_dim"), Some(Value::Bools(chakra::BoolList { values: vec![true] })));
    // What protobuf holds comes out of both forms, compressed or not.
    let encoded = chakra::encode(&nodes);
    assert_eq!(read(&encoded).unwrap().nodes, nodes);
    assert_eq!(read(&gzip(&encoded)).unwrap().nodes, nodes);
    assert_eq!(read(&gzip(JSONIZED.as_bytes())).unwrap().nodes, nodes);
}

#[test]
fn the_object_of_chakras_feeder_is_read() {
    let text = r#"{ "workload_graph": [
        { "Id": 216, "Name": "aten::add", "NodeType": 4, "ctrlDeps": [3], "data_deps": [], "runtime": 318, "is_cpu_op": true },
        { "Id": 435, "Name": "ncclKernel_Broadcast_RING_LL_Sum_int8_t", "NodeType": 7, "data_deps": [216], "runtime": 28,
          "is_cpu_op": false, "comm_type": 5, "comm_size": 212480 } ] }"#;
    let trace = read(text.as_bytes()).unwrap();
    assert_eq!((trace.nodes[0].id, trace.nodes[0].duration_micros, trace.absent), (216, 318, None));
    assert!(trace.nodes[0].is_on_cpu().unwrap() && !trace.nodes[1].is_on_cpu().unwrap());
    assert_eq!((&trace.nodes[1].data_deps[..], trace.nodes[1].comm_type()), (&[216][..], Ok(5)));
    assert_eq!(trace.nodes[1].attribute("comm_size"), Some(&Value::Uint64(212_480)));
}

#[test]
fn what_is_no_trace_says_what_it_is() {
    let begin = "t.et: no Chakra execution trace, or a truncated one: ";
    for (text, expected) in [
        ("", "its metadata: the file is empty"),
        (
            r#"{"schema": "1.0.2-chakra.0.0.4", "nodes": [{"id": 2}]}"#,
            "this is the trace of PyTorch's execution trace observer",
        ),
        (r#"{"id": "3", "type": "COMP_NODE"}"#, "expected the metadata before the first node"),
        (r#"{}{"id": "3"}{"id": "#, "the node after node 3: EOF while parsing"),
        (r#"{}{"id": "three"}"#, "the first node: expected a whole number from 0 on, found \"three\""),
        (
            r#"{}{"type": "COMPUTE"}"#,
            "the first node: type: expected one such as \"COMP_NODE\", found \"COMPUTE\"",
        ),
        (r#"{"workload_graph": [{"NodeType": 4}]}"#, "the first node: expected `Id`, a whole number"),
    ] {
        let error = read(text.as_bytes()).unwrap_err();
        assert!(error.starts_with(&format!("{begin}{expected}")), "{error}");
    }
    assert!(read(b"{}").unwrap().nodes.is_empty());
    // A message of 123 bytes begins with a brace, too.
    let mut node = compute(1, &[], 1);
    node.name = "x".repeat(200);
    let mut bytes = vec![123, 10, 121];
    bytes.extend([b'v'; 121]);
    bytes.extend(&chakra::encode(&[node])[8..]);
    assert_eq!(read(&bytes).unwrap().nodes.len(), 1);
}

#[test]
fn traces_of_pytorch_run_as_the_converter_leaves_them() {
    // The call on the CPU, which says neither what nor how much, and its kernel, whose name says what.
    let on_cpu = |value| ("is_cpu_op", Value::Bool(value));
    let call = Node {
        name: "c10d::allreduce_".to_owned(),
        ctrl_deps: vec![3],
        duration_micros: 85,
        ..node(432, NodeType::CommColl, &[], &[on_cpu(true)])
    };
    let size = ("comm_size", Value::Text(MIB.to_string()));
    let kernel = Node {
        name: "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)".to_owned(),
        ..node(435, NodeType::CommColl, &[432], &[on_cpu(false), size])
    };
    let converted = vec![call, kernel];
    let plain = vec![compute(1, &[], 85), collective(2, &[1], ALL_REDUCE, MIB)];
    let folder = Folder::new(&[converted.clone(), converted.clone()], &system("ring", 1));
    let notes = folder.job(&[2]).unwrap().notes();
    assert_eq!(notes.len(), 1);
    assert!(notes[0].ends_with("t.0.et: ctrl_deps: 1 nodes wait for nodes that are not there, such as node 432 for node 3: these count as done (and so in 1 more traces)"), "{notes:?}");
    let same = Folder::new(&[plain.clone(), plain], &system("ring", 1));
    assert_eq!(
        finished(&folder.run(&network("Ring", 2), true)),
        finished(&same.run(&network("Ring", 2), true))
    );
    // What is missing is named.
    let mut lone = converted.clone();
    lone[1].name = "ncclDevKernel_Generic".to_owned();
    let error = Folder::new(&[lone, converted], &system("ring", 1)).job(&[2]).unwrap_err().to_string();
    assert!(error.ends_with("t.0.et: node 435 \"ncclDevKernel_Generic\": expected an attribute `comm_type`, or a name with the operation, such as ncclDevKernel_AllReduce_Sum_f32_RING_LL"), "{error}");
}

/// The converter puts callers into `ctrl_deps`; where a caller waits for what it calls, only `data_deps` are an order.
#[test]
fn callers_that_wait_for_what_they_call_do_not_make_cycles() {
    let callee = Node { ctrl_deps: vec![2], ..compute(1, &[], 5) };
    let trace = read(&chakra::encode(&[callee.clone(), compute(2, &[1], 7)])).unwrap();
    assert!(trace.nodes.iter().all(|node| node.ctrl_deps.is_empty()));
    let note = trace.absent.unwrap();
    assert!(
        note.ends_with(
            "with them nodes wait for each other in a cycle: only data_deps count, as in Chakra's own feeder"
        ),
        "{note}"
    );
    // Without a cycle they count, in whatever order nodes are listed.
    let trace = read(&chakra::encode(&[callee, compute(2, &[], 7)])).unwrap();
    assert_eq!((trace.nodes[0].waits(), trace.absent), (vec![2], None));
}

#[test]
fn operations_are_known_by_number_name_and_kernel() {
    let of = |name: &str, value: Option<Value>| {
        let attr = vec![Attribute { name: "comm_type".to_owned(), value: value.clone() }];
        let attr = if value.is_some() { attr } else { Vec::new() };
        Node { name: name.to_owned(), attr, inputs: Some(Values::default()), ..Node::default() }.comm_type()
    };
    for (name, expected) in [
        ("ncclKernel_AllReduce_RING_LL_Sum_float", CommType::AllReduce),
        ("ncclDevKernel_ReduceScatter_Sum_bf16", CommType::ReduceScatter),
        ("ncclDevKernel_AllGather_RING_LL", CommType::AllGather),
        ("ncclDevKernel_SendRecv(ncclDevComm*)", CommType::AllToAll),
        ("nccl:all_to_all", CommType::AllToAll),
    ] {
        assert_eq!(of(name, None), Ok(expected as u64), "{name}");
    }
    assert_eq!(of("", Some(Value::Text("all_gather".to_owned()))), Ok(2));
    assert_eq!(of("", Some(Value::Text("6".to_owned()))), Ok(6));
    assert!(
        of("x", Some(Value::Text("?".to_owned()))).unwrap_err().starts_with("comm_type: expected a number")
    );
}

#[test]
fn jobs_are_found_by_prefix_pattern_and_name() {
    let nodes = vec![collective(1, &[], ALL_REDUCE, MIB)];
    let folder = Folder::new(&[nodes.clone(), nodes.clone()], &system("ring", 1));
    let expected = finished(&folder.run(&network("Ring", 2), true));
    std::fs::rename(folder.path("t.0.et"), folder.path("r0.t.et")).unwrap();
    std::fs::write(folder.path("r1.t.et"), gzip(&chakra::encode(&nodes))).unwrap();
    for name in ["r%d.t.et", "r?.t.*"] {
        let mut files = folder.files.clone();
        files.traces = folder.path(name);
        let job = netloom_astra::Job::read(&files, &netloom_astra::Shape { dimensions: vec![2], queues: 1 });
        let file = netloom_topology::NetworkFile::read(&folder.path("network.yml")).unwrap();
        let ran = netloom_astra::analytical::run(
            &std::sync::Arc::new(job.unwrap()),
            &file,
            true,
            u64::MAX,
            |_, _| true,
        );
        assert_eq!(finished(&ran), expected, "{name}");
        assert_eq!(files.all().len(), 3);
    }
}
