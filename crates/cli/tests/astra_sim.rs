//! Training jobs in ASTRA-sim's files, from the command line: its answers, its lines, and what it hangs on.

use std::path::Path;
use std::process::{Command, Output};

use netloom_record::Outcome;

/// Numbers of protobuf.
fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 127) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 128);
    }
}

fn text(tag: u8, bytes: &[u8]) -> Vec<u8> {
    [&[tag << 3 | 2][..], &varint(bytes.len() as u64), bytes].concat()
}

/// A node of an execution trace: its number and type, the nodes that it waits for, its microseconds, its attributes.
fn node(id: u64, kind: u64, waits: &[u64], micros: u64, attributes: &[(&str, u64)]) -> Vec<u8> {
    let mut node = [vec![8], varint(id), vec![24], varint(kind), vec![56], varint(micros)].concat();
    node.extend(text(5, &waits.iter().flat_map(|&wait| varint(wait)).collect::<Vec<u8>>()));
    for (name, value) in attributes {
        // A signed number of 64 bits.
        node.extend(text(10, &[text(1, name.as_bytes()), vec![9 << 3], varint(*value)].concat()));
    }
    node
}

const COMPUTE: u64 = 4;
const SEND: u64 = 5;
const RECEIVE: u64 = 6;

fn collective(id: u64, waits: &[u64], kind: u64, bytes: u64) -> Vec<u8> {
    node(id, 7, waits, 0, &[("comm_type", kind), ("comm_size", bytes)])
}

const MIB: u64 = 1 << 20;

/// A folder with traces, a system file of four chunks, a network file of a ring and a scenario `s.toml`.
fn folder(traces: &[Vec<Vec<u8>>], scenario: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    for (rank, nodes) in traces.iter().enumerate() {
        let metadata = text(1, b"0.0.4");
        let messages = std::iter::once(&metadata).chain(nodes);
        let bytes: Vec<u8> =
            messages.flat_map(|bytes| [varint(bytes.len() as u64), bytes.clone()].concat()).collect();
        write(&format!("t.{rank}.et"), &bytes);
    }
    let algorithms = ["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]
        .map(|name| format!("\"{name}-implementation\": [\"ring\"], "))
        .concat();
    let system = format!(
        "{{ \"preferred-dataset-splits\": 4, \"active-chunks-per-dimension\": 1, \"endpoint-delay\": 10, {algorithms} \"local-mem-bw\": 1600 }}"
    );
    write("system.json", system.as_bytes());
    let ranks = traces.len();
    let network =
        format!("topology: [ Ring ]\nnpus_count: [ {ranks} ]\nbandwidth: [ 50.0 ]\nlatency: [ 500.0 ]\n");
    write("network.yml", network.as_bytes());
    write("s.toml", scenario.as_bytes());
    folder
}

const JOB: &str = "[workload]\nkind = \"astra-sim\"\ntraces = \"t\"\nsystem = \"system.json\"\n";
const ANALYTICAL: &str = "network = \"analytical\"\nnetwork_file = \"network.yml\"\n";
const CROSSBAR: &str =
    "[topology]\nkind = \"crossbar\"\nhosts = 8\nrate = \"400Gbps\"\nlatency = \"250ns\"\n";
/// ASTRA-sim's own file of the network.
const RING: &str = "[topology]\nkind = \"astra-sim-network\"\npath = \"network.yml\"\n";

fn netloom(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netloom")).args(args).current_dir(folder).output().unwrap()
}

/// What a run prints.
fn printed(folder: &Path, args: &[&str]) -> String {
    let output = netloom(folder, &[&["run", "s.toml", "--force"], args].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The message of a run that fails.
fn failure(folder: &Path, args: &[&str]) -> String {
    let output = netloom(folder, &[&["run", "s.toml", "--force"], args].concat());
    assert!(!output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

/// The time in the line of each rank, which is the same.
fn cycles(printed: &str, ranks: usize) -> u64 {
    let lines: Vec<&str> = printed.lines().collect();
    assert_eq!(lines.len(), ranks, "{printed}");
    let time = lines[0].split(['d', ' ', ',']).find_map(|word| word.parse::<u64>().ok()).unwrap();
    for (rank, line) in lines.iter().enumerate() {
        let expected = format!("sys[{rank}] finished, {time} cycles, exposed communication {time} cycles.");
        assert_eq!(*line, expected);
    }
    time
}

#[test]
fn the_analytical_network_prints_what_astra_sim_prints() {
    let folder = folder(&vec![vec![collective(1, &[], 0, MIB)]; 8], &format!("{JOB}{ANALYTICAL}"));
    assert_eq!(cycles(&printed(folder.path(), &["--astra-sim"]), 8), 64440);
    let outcome = Outcome::read(&folder.path().join("runs/s")).unwrap();
    // Four chunks of fourteen steps at each rank.
    assert_eq!(outcome.summary.flows.completed, 4 * 14 * 8);
    assert!(outcome.summary.warnings.is_empty(), "{:?}", outcome.summary.warnings);
    // What has no effect is said.
    let message = failure(folder.path(), &["--strict", "--set", "topology.k=8"]);
    assert!(message.contains("workload.network: topology without effect"), "{message}");
}

/// With packets every step takes what one message takes on idle links, where the analytical network has its latency and transfer. Messages are so short that all of one has left before
/// a host has to acknowledge the one that it receives.
#[test]
fn packets_take_the_same_steps_to_the_nanosecond() {
    for fabric in [CROSSBAR, RING] {
        same_steps(fabric);
    }
}

fn same_steps(fabric: &str) {
    let bytes = MIB / 32;
    for (kind, size, steps, reductions) in
        [(0, MIB, 14, 7), (2, MIB / 8, 7, 0), (7, MIB, 7, 7), (6, MIB, 28, 0)]
    {
        let job = folder(&vec![vec![collective(1, &[], kind, size)]; 8], &format!("{fabric}{JOB}"));
        let finished = cycles(&printed(job.path(), &["--astra-sim"]), 8);
        // The message alone.
        let message = |id, kind, peer, rank| {
            let attributes = [("comm_size", bytes), ("comm_tag", 1), (peer, rank)];
            vec![node(id, kind, &[], 0, &attributes)]
        };
        let idle = || vec![node(1, COMPUTE, &[], 0, &[])];
        let mut traces = vec![idle(); 8];
        traces[0] = message(1, SEND, "comm_dst", 1);
        traces[1] = message(1, RECEIVE, "comm_src", 0);
        let alone = folder(&traces, &format!("{fabric}{JOB}"));
        let lines = printed(alone.path(), &["--astra-sim"]);
        let line = lines.lines().nth(1).unwrap();
        let one: u64 = line.split_whitespace().nth(2).unwrap().parse().unwrap();
        let reduction = 3 * (bytes / 1600);
        assert_eq!(finished, 4 * (steps * (one + 10) + reductions * reduction + 10), "{fabric} {kind}");
    }
}

#[test]
fn outcomes_do_not_depend_on_threads() {
    let step = |rank: u64| {
        vec![
            node(1, COMPUTE, &[], rank, &[]),
            collective(2, &[1], 0, MIB),
            node(3, COMPUTE, &[1], 20, &[]),
            collective(4, &[2, 3], 6, MIB),
        ]
    };
    let traces: Vec<Vec<Vec<u8>>> = (0..16).map(step).collect();
    let scenario = format!("[topology]\nkind = \"fat-tree\"\nk = 4\n[routing]\npreset = \"spray\"\n{JOB}");
    let folder = folder(&traces, &scenario);
    let of = |threads: &str| {
        let lines = printed(folder.path(), &["--threads", threads, "--astra-sim"]);
        let bytes = |name: &str| std::fs::read(folder.path().join("runs/s").join(name)).unwrap();
        (lines, bytes("flows.parquet"), bytes("links.parquet"), bytes("summary.json"))
    };
    let one = of("1");
    assert_eq!(one.0.lines().count(), 16);
    assert!(one == of("3"));
}

#[test]
fn ranks_that_wait_for_each_other_are_named() {
    // Each rank has both operations, in an order of its own.
    let ordered =
        |first: u64, second: u64| vec![collective(1, &[], 0, first), collective(2, &[1], 0, second)];
    let traces = [ordered(MIB, 2 * MIB), ordered(2 * MIB, MIB)];
    let waits = "rank 0: waits for 131072 bytes from rank 1 of a collective operation of all ranks";
    for more in ["", ANALYTICAL] {
        let folder = folder(&traces, &format!("{CROSSBAR}{JOB}{more}"));
        let message = failure(folder.path(), &[]);
        assert!(message.contains(&format!("the run stands still: {waits}")), "{message}");
    }
}

#[test]
fn what_does_not_go_together_is_refused() {
    let traces = vec![vec![collective(1, &[], 0, MIB)]; 8];
    for (scenario, args, expected) in [
        (
            format!("{JOB}{ANALYTICAL}[[faults]]\nkind = \"cut\"\nlinks = 1\n"),
            &[][..],
            "faults: expected none where workload.network is analytical",
        ),
        (
            format!("{JOB}{ANALYTICAL}[measure]\npackets = true\n"),
            &[],
            "measure: expected `warm_up`, `until` and `size_bins` only",
        ),
        (
            format!("{JOB}network = \"analytical\"\n"),
            &[],
            "workload.network_file: expected ASTRA-sim's file of the network",
        ),
        (
            format!("{JOB}network_file = \"network.yml\"\n"),
            &[],
            "workload.network_file: expected none with packets",
        ),
        (format!("{JOB}dimensions = [9, 1000]\n"), &[], "workload.dimensions: expected at most 1024 ranks"),
        (format!("{JOB}{ANALYTICAL}dimensions = [4]\n"), &[], "workload.dimensions: expected 8 ranks"),
        (
            format!("{JOB}dimensions = [4, 0]\n"),
            &[],
            "workload.dimensions: expected 1 to 32 numbers from 1 on",
        ),
        (
            String::new(),
            &["--astra-sim"],
            "--astra-sim: expected a workload of kind \"astra-sim\", found \"permutation\"",
        ),
        (
            format!(
                "[workload]\nkind = \"mix\"\nparts = [{{ {} }}]\n",
                format!("{JOB}{ANALYTICAL}").replace("[workload]\n", "").trim().replace('\n', ", ")
            ),
            &[],
            "workload.parts.0.network: expected \"packets\" beside other traffic",
        ),
    ] {
        let folder = folder(&traces, &scenario);
        let message = failure(folder.path(), args);
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn explain_says_what_is_different() {
    let traces = vec![vec![collective(1, &[], 0, MIB)]; 8];
    for (more, expected) in [("", "a message is packets"), (ANALYTICAL, "times are those of ASTRA-sim")] {
        let folder = folder(&traces, &format!("{CROSSBAR}{JOB}{more}"));
        let output = netloom(folder.path(), &["explain", "s.toml"]);
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.contains(&format!("# compared with ASTRA-sim: {expected}")), "{text}");
    }
}

/// A study notices that a trace has changed, although the scenario has not.
#[test]
fn a_study_runs_cells_again_whose_traces_have_changed() {
    let trace = |micros| vec![vec![node(1, COMPUTE, &[], micros, &[]), collective(2, &[1], 0, MIB)]; 8];
    let folder = folder(&trace(5), &format!("{CROSSBAR}{JOB}"));
    let study = "title = \"t\"\nscenario = \"s.toml\"\n[[axis]]\nname = \"network\"\ncases = [\n\
                 { label = \"packets\", set = {} },\n\
                 { label = \"analytical\", set = { \"workload.network\" = \"analytical\", \"workload.network_file\" = \"network.yml\" } },\n]\n\
                 [[claims]]\nid = \"c\"\ntext = \"t\"\nexpression = 'makespan(\"analytical\") < makespan(\"packets\")'\n";
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    let run = || {
        let output = netloom(folder.path(), &["study", "study.toml", "--workers", "1"]);
        let text = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(text).unwrap())
    };
    let (is_done, text) = run();
    assert!(is_done, "{text}");
    let cells = || std::fs::read_dir(find(folder.path(), "cells")).unwrap().count();
    assert_eq!(cells(), 2);
    assert!(run().0);
    assert_eq!(cells(), 2);
    let other = self::folder(&trace(6), "");
    std::fs::copy(other.path().join("t.3.et"), folder.path().join("t.3.et")).unwrap();
    assert!(run().0);
    assert_eq!(cells(), 4);
}

/// A folder of this name, at any depth.
fn find(folder: &Path, name: &str) -> std::path::PathBuf {
    let mut left = vec![folder.to_owned()];
    while let Some(next) = left.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                if path.file_name().is_some_and(|found| found == name) {
                    return path;
                }
                left.push(path);
            }
        }
    }
    panic!("no folder {name}")
}
