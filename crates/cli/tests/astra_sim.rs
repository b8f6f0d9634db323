//! Training jobs in ASTRA-sim's files, from the command line: its answers, its lines, and what it hangs on.

use std::path::Path;
use std::process::{Command, Output};

use netloom_astra::chakra::{self, Attribute, Node, NodeType, Value};
use netloom_record::Outcome;

/// A node of an execution trace: its number and type, the nodes that it waits for, its microseconds, its attributes.
fn node(id: u64, kind: NodeType, waits: &[u64], micros: u64, attributes: &[(&str, u64)]) -> Node {
    let attribute = |&(name, value): &(&str, u64)| Attribute {
        name: name.to_owned(),
        value: Some(Value::Int64(value as i64)),
    };
    Node {
        id,
        kind: kind.into(),
        data_deps: waits.to_vec(),
        duration_micros: micros,
        attr: attributes.iter().map(attribute).collect(),
        ..Node::default()
    }
}

const COMPUTE: NodeType = NodeType::Comp;
const SEND: NodeType = NodeType::CommSend;
const RECEIVE: NodeType = NodeType::CommRecv;

fn collective(id: u64, waits: &[u64], kind: u64, bytes: u64) -> Node {
    node(id, NodeType::CommColl, waits, 0, &[("comm_type", kind), ("comm_size", bytes)])
}

const MIB: u64 = 1 << 20;

/// A folder with traces, a system file of four chunks, a network file of a ring and a scenario `s.toml`.
fn folder(traces: &[Vec<Node>], scenario: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    for (rank, nodes) in traces.iter().enumerate() {
        write(&format!("t.{rank}.et"), &chakra::encode(nodes));
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
    let traces: Vec<Vec<Node>> = (0..16).map(step).collect();
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
            "--astra-sim: expected a workload of kind \"astra-sim\" or \"simai\", found \"permutation\"",
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

/// Two training jobs beside each other and an all-to-all, on a switch that none of them fills: each takes the time that it takes alone.
#[test]
fn training_jobs_run_beside_others() {
    let step = vec![node(1, COMPUTE, &[], 30, &[]), collective(2, &[1], 0, MIB)];
    let crossbar = CROSSBAR.replace("hosts = 8", "hosts = 24");
    let alone = folder(&vec![step.clone(); 8], &format!("{CROSSBAR}{JOB}"));
    let line = printed(alone.path(), &["--astra-sim"]);
    let cycles = |word: usize| -> u64 {
        line.lines().next().unwrap().split_whitespace().nth(word).unwrap().parse().unwrap()
    };
    let (finished, exposed) = (cycles(2), cycles(6));
    let training = |name: &str, more: &str| {
        format!(
            "[[jobs]]\nname = \"{name}\"\n{more}workload = {{ kind = \"astra-sim\", traces = \"t.*.et\", system = \"system.json\" }}\n"
        )
    };
    let slow =
        "start = \"7us\"\nplacement = \"round-robin-leaves\"\nstragglers = [{ ranks = [3], factor = 2 }]\n";
    let other = "[[jobs]]\nname = \"other\"\nworkload = { kind = \"all-to-all\" }\n";
    let scenario = format!("{crossbar}{}{}{other}", training("one", ""), training("slow", slow));
    let folder = folder(&vec![step; 8], &scenario);
    let of = |threads: &str| {
        printed(folder.path(), &["--threads", threads]);
        Outcome::read(&folder.path().join("runs/s")).unwrap()
    };
    let outcome = of("1");
    let jobs = outcome.jobs().unwrap();
    let ns = |ns: u64| netloom_units::Time::from_ns(ns);
    let of_job: Vec<_> = jobs.iter().map(|job| (job.start, job.time, job.ranks)).collect();
    assert_eq!(of_job[0], (ns(0), Some(ns(finished)), 8));
    // All wait for the rank that computes twice as long, and that begins its all-reduce 30 us later.
    let slower = of_job[1].1.unwrap().0 - ns(30_000).0;
    assert_eq!((of_job[1].0, of_job[1].2), (ns(7000), 8));
    assert!(slower.abs_diff(ns(finished).0) < ns(finished / 10).0, "{slower} {finished}");
    let ranks = outcome.ranks().unwrap();
    let one: Vec<_> = ranks.iter().filter(|rank| rank.job == 0).collect();
    assert_eq!(one.len(), 8);
    for rank in one {
        assert_eq!((rank.computation, rank.exposed, rank.end), (ns(30_000), ns(exposed), Some(ns(finished))));
        assert_eq!((rank.messages, rank.bytes), (4 * 14, 14 * MIB / 8));
    }
    let straggler = ranks.iter().find(|rank| rank.job == 1 && rank.rank == 3).unwrap();
    assert_eq!(straggler.computation, ns(60_000));
    let table = |outcome: &Outcome| (outcome.jobs().unwrap(), outcome.ranks().unwrap());
    assert!(table(&outcome) == table(&of("3")));
}

#[test]
fn training_jobs_share_hosts_and_are_refused_what_they_cannot_do() {
    let step = vec![collective(1, &[], 0, MIB)];
    let job = |name: &str, more: &str| {
        format!(
            "[[jobs]]\nname = \"{name}\"\n{more}workload = {{ kind = \"astra-sim\", traces = \"t\", system = \"system.json\" }}\n"
        )
    };
    let shared = format!("{CROSSBAR}{}{}", job("a", "share = true\n"), job("b", "share = true\n"));
    let folder = |scenario: &str| folder(&vec![step.clone(); 8], scenario);
    let both = folder(&shared);
    printed(both.path(), &[]);
    let outcome = Outcome::read(&both.path().join("runs/s")).unwrap();
    let jobs = outcome.jobs().unwrap();
    assert_eq!(jobs.iter().map(|job| job.messages).collect::<Vec<_>>(), [8 * 56, 8 * 56]);
    // Both take longer than one alone.
    let alone = folder(&format!("{CROSSBAR}{}", job("a", "")));
    printed(alone.path(), &[]);
    let alone = Outcome::read(&alone.path().join("runs/s")).unwrap().jobs().unwrap()[0].time;
    assert!(jobs.iter().all(|job| job.time > alone && alone.is_some()));
    for (more, expected) in [
        ("repetitions = 2\n", "jobs.0.repetitions: expected 1, as only programs"),
        (
            "stragglers = [{ factor = 2 }]\n",
            "jobs.0.stragglers: expected none, as the workload has no calculation",
        ),
        ("ranks = 4\n", "jobs.0.workload.dimensions: expected at most 4 ranks"),
    ] {
        let one = folder(&format!("{CROSSBAR}{}", job("a", more)));
        let message = failure(one.path(), &[]);
        assert!(message.contains(expected), "{message}");
    }
    let analytical =
        job("a", "").replace(" }\n", ", network = \"analytical\", network_file = \"network.yml\" }\n");
    let message = failure(folder(&format!("{CROSSBAR}{analytical}")).path(), &[]);
    assert!(
        message.contains("jobs.0.workload.network: expected \"packets\", as jobs share the network"),
        "{message}"
    );
}

/// What PyTorch's converter leaves out is said, and refused if asked.
#[test]
fn callers_that_are_not_there_are_told() {
    let mut nodes = vec![collective(1, &[], 0, MIB)];
    nodes[0].ctrl_deps = vec![9];
    let job = folder(&vec![nodes; 8], &format!("{CROSSBAR}{JOB}"));
    let chakra = format!("{CROSSBAR}[workload]\nkind = \"chakra\"\nfiles = \"t.%d.et\"\n");
    for scenario in [None, Some(chakra)] {
        if let Some(scenario) = scenario {
            std::fs::write(job.path().join("s.toml"), scenario).unwrap();
        }
        printed(job.path(), &[]);
        let message = failure(job.path(), &["--strict"]);
        assert!(
            message.contains("t.0.et: ctrl_deps: 1 nodes wait for nodes that are not there"),
            "{message}"
        );
    }
}
