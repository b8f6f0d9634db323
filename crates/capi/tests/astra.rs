//! The adapter for ASTRA-sim, `adapters/astra-sim`, compiled against a stand-in of the headers of ASTRA-sim that it needs.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::LazyLock;

use common::succeeded;
use netloom_record::Outcome;
use tempfile::TempDir;

const FLAGS: [&str; 4] = ["-std=c++17", "-O1", "-Itests/astra/stand-in", "-I../../adapters/astra-sim"];
const NETWORK: &str = "../../adapters/astra-sim/network.cc";

/// What drives the adapter.
static DRIVE: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drive-astra");
    common::compile(&program, "c++", &FLAGS, &["tests/astra/drive.cc", NETWORK])
});

fn drive(test: &str) -> String {
    succeeded(&Command::new(&*DRIVE).arg(test).output().unwrap())
}

#[test]
fn collectives_are_the_same_with_and_without_a_reaction_time() {
    drive("collectives");
}

#[test]
fn rings_of_64_ranks_and_recursive_doubling_of_1024_end() {
    let printed = drive("large");
    let ends: Vec<u64> = printed.split_whitespace().map(|end| end.parse().unwrap()).collect();
    // Payload alone at 200 Gb/s: 126 steps of 16 KiB, and ten of 4 KiB.
    assert!((82_000..1_000_000).contains(&ends[0]) && (1_600..100_000).contains(&ends[1]), "{ends:?}");
}

#[test]
fn messages_and_receives_meet_in_order() {
    drive("matching");
}

#[test]
fn a_send_is_done_at_the_last_ack_or_at_the_arrival() {
    drive("send-done");
}

#[test]
fn answers_that_come_too_early_wait_for_the_reaction_time() {
    drive("answers-at-once");
}

#[test]
fn messages_may_have_more_bytes_than_31_bits_count() {
    // 5 GiB at 200 Gb/s take 214.75 ms, and headers less than a hundredth of that.
    let end: u64 = drive("five-gib").trim().parse().unwrap();
    assert!((214_748_000..217_000_000).contains(&end), "{end}");
}

#[test]
fn who_waits_for_what_is_reported() {
    drive("hang");
}

#[test]
fn what_cannot_be_done_is_refused_in_words() {
    drive("refusals");
}

/// What drives the adapter's second interface, that of SimAI.
static SIMAI: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("drive-simai");
    let flags =
        FLAGS.map(|flag| if flag.ends_with("stand-in") { "-Itests/astra/simai-stand-in" } else { flag });
    common::compile(&program, "c++", &flags, &["tests/astra/simai.cc", NETWORK])
});

#[test]
fn flows_of_simai_carry_their_tags_to_what_comes_next() {
    succeeded(&Command::new(&*SIMAI).arg("ring").output().unwrap());
}

#[test]
fn flows_of_simai_that_come_before_their_receives_keep_their_tags() {
    succeeded(&Command::new(&*SIMAI).arg("early").output().unwrap());
}

struct Main {
    folder: TempDir,
    program: PathBuf,
}

impl Main {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let sources = ["../../adapters/astra-sim/main.cc", NETWORK];
        let program = common::compile(&folder.path().join("astra-sim-netloom"), "c++", &FLAGS, &sources);
        std::fs::write(folder.path().join("s.toml"), "[topology]\nkind = \"fat-tree\"\nk = 4\n").unwrap();
        std::fs::write(folder.path().join("dims.json"), "{ \"logical-dims\": [\"4\", 2] }").unwrap();
        Main { folder, program }
    }

    fn run(&self, arguments: &[&str]) -> Output {
        Command::new(&self.program).current_dir(self.folder.path()).args(arguments).output().unwrap()
    }

    /// Runs a workload of the stand-in.
    fn of(&self, workload: &str, more: &[&str]) -> Output {
        let workload = format!("--workload-configuration={workload}");
        let all = [&workload, "--system-configuration=system.json", "--network-configuration", "s.toml"];
        let all: Vec<&str> = all
            .into_iter()
            .chain(["--remote-memory-configuration=m.json"])
            .chain(more.iter().copied())
            .collect();
        self.run(&all)
    }
}

#[test]
fn the_command_takes_the_options_of_other_backends() {
    let main = Main::new();
    let printed = succeeded(&main.of("ring", &["--outcome=driven"]));
    // What the system was given: groups, system, memory, dimensions, queues, scale and rendezvous.
    assert_eq!(printed.lines().next(), Some("empty system.json 1 1 1 1 1 0"));
    assert_eq!(printed.lines().filter(|line| line.contains("] finished, ")).count(), 16);
    // Fifteen steps of 10 kB at each of 16 ranks.
    let outcome = Outcome::read(&main.folder.path().join("driven")).unwrap();
    assert_eq!(outcome.flows().unwrap().len(), 16 * 15);
    assert!(main.folder.path().join("driven/links.parquet").exists());

    let more = ["--logical-topology-configuration=dims.json", "--num-queues-per-dim=3", "--comm-scale=2"];
    let rest = ["--comm-group-configuration=g.json", "--rendezvous-protocol=true", "--threads=2"];
    let printed = succeeded(&main.of("ring", &[more, rest].concat()));
    assert_eq!(printed.lines().next(), Some("g.json system.json 1 2 2 3 2 1"));
    assert_eq!(printed.lines().filter(|line| line.contains("] finished, ")).count(), 8);
    assert!(succeeded(&main.run(&["--help"])).contains("--reaction=..."));
}

#[test]
fn the_command_says_what_went_wrong() {
    let main = Main::new();
    let said = |output: &Output, code: i32| {
        assert_eq!(output.status.code(), Some(code));
        String::from_utf8(output.stderr.clone()).unwrap()
    };
    let lost = said(&main.of("lost", &[]), 1);
    // Rank 3 gets all that it waits for.
    assert!(lost.contains("15 receives wait at "), "{lost}");
    assert!(
        lost.contains("rank 4 waits for 10000 bytes from rank 3 with tag 7 since 0 ns: never sent"),
        "{lost}"
    );
    assert!(lost.contains("15 of 16 ranks have not finished"), "{lost}");
    // Although what ASTRA-sim does around the call catches it.
    let sizes = said(&main.of("sizes", &[]), 2);
    assert!(
        sizes.contains("with tag 7 from rank 3 to rank 4 has 5000 bytes, the receive expects 10000"),
        "{sizes}"
    );
    let early = main.of("early", &[]);
    succeeded(&early);
    assert!(said(&early, 0).contains("messages were to leave less than --reaction=10ns after an arrival"));
    assert_eq!(said(&main.of("early", &["--reaction=0ns"]), 0), "");

    let refused = |arguments: &[&str], words: &str| {
        let message = said(&main.of("ring", arguments), 2);
        assert!(message.contains(words), "{message}");
    };
    refused(&["--num-queue=1"], "--num-queue: there is no such option");
    refused(
        &["--reaction=10"],
        "--reaction: expected a whole number of ns, us or ms such as 10ns, found `10`",
    );
    refused(&["--send-done=sent"], "--send-done: expected acked or arrival, found `sent`");
    refused(&["--threads=many"], "--threads: expected a whole number");
    refused(&["--comm-scale=x"], "--comm-scale: expected a number");
    refused(&["--logical-topology-configuration=none.json"], "none.json: cannot be read");
    refused(&["--network-configuration=none.toml"], "none.toml");
    std::fs::write(main.folder.path().join("many.json"), "{\"logical-dims\": [\"17\"]}").unwrap();
    refused(&["--logical-topology-configuration=many.json"], "more than the 16 hosts of s.toml");
    assert!(said(&main.run(&[]), 2).contains("--workload-configuration: is to be given"));
}
