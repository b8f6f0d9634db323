//! What a newcomer meets in the first minute: results, and clear messages for every common mistake.

use std::path::Path;
use std::process::{Command, Output};

use netloom_record::Outcome;

const SMALL: &str = "[topology]\nkind = \"fat-tree\"\nk = 4\n[routing]\npreset = \"ecmp\"\n\
                     [workload]\nkind = \"permutation\"\nsize = \"64KiB\"\n";

/// Runs `netloom` in a folder.
fn netloom(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netloom")).args(args).current_dir(folder).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A folder with one scenario `s.toml`.
fn folder_with(text: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("s.toml"), text).unwrap();
    folder
}

/// Runs a wrong scenario: exit code 2, nothing on standard output, nothing left behind; gives the message.
fn refused(text: &str, args: &[&str]) -> String {
    let folder = folder_with(text);
    let output = netloom(folder.path(), &[&["run", "s.toml"], args].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    assert!(output.stdout.is_empty());
    assert!(!folder.path().join("runs").exists());
    stderr(&output)
}

#[test]
fn samples_that_would_fill_memory_within_a_hop_are_refused() {
    let message = refused(SMALL, &["--set", "topology.k=16", "--set", "measure.sample=1ps"]);
    assert_says(&message, &["measure.sample: expected at most 1000000000 rows", "6144000000 rows until 1us"]);
}

#[test]
fn tables_fit_the_terminal() {
    let folder = folder_with(SMALL);
    for args in [
        &["paths", "slim-fly:q=5", "--samples", "50"][..],
        &["cost", "flowcut"],
        &["route", "s.toml", "0", "15"],
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_netloom"))
            .args(args)
            .env("COLUMNS", "80")
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = stdout(&output);
        let rows: Vec<usize> =
            text.lines().filter(|line| line.starts_with('│')).map(|line| line.chars().count()).collect();
        assert!(!rows.is_empty() && rows.iter().all(|&row| row <= 80), "{text}");
    }
}

#[test]
fn another_kind_keeps_what_both_have_and_names_what_it_lacks() {
    let folder = folder_with(
        "topology = { kind = \"fat-tree\", k = 4, rate = \"100Gbps\" }\nworkload = { size = \"1KB\" }\n",
    );
    let with = |command: &str, more: &[&str]| {
        let set = [
            "--set",
            "topology.kind=slim-fly",
            "--set",
            "transport.mtu=1KB",
            "--set",
            "transport.preset=tcp",
        ];
        netloom(folder.path(), &[&[command, "s.toml"], &set[..], more].concat())
    };
    let left_out =
        "topology.k: left out, as topology.kind = \"slim-fly\" was chosen after it and has no such field";
    let explained = with("explain", &[]);
    assert_says(&stdout(&explained), &["rate = \"100Gbps\"", "mtu = \"1KB\"", "header = \"40B\""]);
    assert_says(&stderr(&explained), &[&format!("warning: {left_out}")]);
    assert_says(&stdout(&with("run", &["--out", "out"])), &[left_out]);
    let strict = with("run", &["--strict", "--out", "strict"]);
    assert_eq!(strict.status.code(), Some(2));
    assert_says(&stderr(&strict), &[left_out]);
    assert!(!folder.path().join("strict").exists());
    assert_says(&stderr(&with("route", &["0", "1"])), &[left_out]);
}

/// What a file calls things is data for a terminal, never a command to it.
#[test]
fn names_are_printed_without_what_a_terminal_obeys() {
    let folder = folder_with(
        "name = \"x\\u001B[31m\"\ntopology = { kind = \"edge-list\", path = \"net\" }\nworkload = { size = \"1KB\" }\n",
    );
    std::fs::write(folder.path().join("net"), "a\x1b[31mred s\nb s\n").unwrap();
    for args in [
        &["run", "s.toml"][..],
        &["route", "s.toml", "0", "1"],
        &["topology", "s.toml"],
        &["run", "s.toml", "--out", "s\x1b[31m.toml"],
        &["run", "no\x1b[31m.toml"],
        &["run", "s.toml", "--set", "workload.size=\x1b[31m"],
        &["run", "s.toml", "--set", "workload.si\x1b[31mze=1"],
    ] {
        let output = netloom(folder.path(), args);
        let printed = stdout(&output) + &stderr(&output);
        assert!(!printed.is_empty() && !printed.contains('\x1b'), "{args:?}: {printed:?}");
    }
}

#[test]
fn no_route_leads_from_one_plane_to_another() {
    let folder = folder_with(
        "topology = { kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 2 }\nservers = { nics = 1, planes = 2 }\n",
    );
    let output = netloom(folder.path(), &["route", "s.toml", "h0", "h5"]);
    assert_eq!(output.status.code(), Some(2));
    assert_says(&stderr(&output), &["no path leads from h0 to h5"]);
}

#[test]
fn an_outcome_inside_an_outcome_is_refused() {
    let folder = folder_with(SMALL);
    assert!(netloom(folder.path(), &["run", "s.toml", "--out", "out"]).status.success());
    std::fs::write(folder.path().join("study.toml"), "title = \"t\"\nscenario = \"s.toml\"\n").unwrap();
    for args in [["run", "s.toml", "--out", "out/deep/er"], ["study", "study.toml", "--out", "out/study"]] {
        let inside = netloom(folder.path(), &args);
        assert_eq!(inside.status.code(), Some(1));
        assert_says(&stderr(&inside), &["is inside the outcome", "out; choose a folder next to it"]);
    }
    assert!(netloom(folder.path(), &["run", "s.toml", "--out", "out", "--force"]).status.success());
}

/// A run that is killed leaves the hidden folder in which it wrote; the next one removes it, however soon it comes.
#[test]
fn what_a_killed_run_leaves_goes_at_the_next_run() {
    let folder = folder_with(SMALL);
    let hidden = |name: &str| folder.path().join(name);
    let listed = || -> Vec<String> {
        let entries = std::fs::read_dir(folder.path()).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.contains("partial"))
            .collect()
    };
    // With this many flows writing the outcome takes a while, and the run is stopped during it.
    let work = "workload={kind=\"uniform\",size=\"1KB\",messages_per_host=40000}";
    let mut child = Command::new(env!("CARGO_BIN_EXE_netloom"))
        .args(["run", "s.toml", "--out", "out", "--quiet", "--set", work])
        .current_dir(folder.path())
        .spawn()
        .unwrap();
    while listed().iter().all(|name| !hidden(name).join("flows.parquet").exists()) {
        assert!(child.try_wait().unwrap().is_none());
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let stopped = Command::new("kill").args(["-STOP", &child.id().to_string()]).status().unwrap();
    assert!(stopped.success() && child.try_wait().unwrap().is_none());
    assert!(netloom(folder.path(), &["run", "s.toml", "--out", "out", "--force"]).status.success());
    assert_eq!(listed().len(), 1, "another process is writing it");
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(netloom(folder.path(), &["run", "s.toml", "--out", "out", "--force"]).status.success());
    assert_eq!(listed(), Vec::<String>::new());
}

#[track_caller]
fn assert_says(message: &str, parts: &[&str]) {
    for part in parts {
        assert!(message.contains(part), "{part:?} is missing in:\n{message}");
    }
}

#[test]
fn a_scenario_gives_a_table_and_an_outcome() {
    let folder = folder_with(SMALL);
    let output = netloom(folder.path(), &["run", "s.toml"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_says(&stdout(&output), &["FCT", "slowdown", "16 completed", "runs/s"]);
    assert!(output.stderr.is_empty(), "quiet when piped: {}", stderr(&output));
    for file in ["scenario.toml", "summary.json", "flows.parquet", "links.parquet"] {
        assert!(folder.path().join("runs/s").join(file).is_file(), "{file}");
    }
}

#[test]
fn the_outcome_is_the_same_on_any_number_of_threads() {
    let folder = folder_with(SMALL);
    let files = |threads: &str| {
        let output = netloom(folder.path(), &["run", "s.toml", "--threads", threads, "--out", threads]);
        assert!(output.status.success(), "{}", stderr(&output));
        ["scenario.toml", "summary.json", "flows.parquet", "links.parquet"]
            .map(|file| std::fs::read(folder.path().join(threads).join(file)).unwrap())
    };
    let one = files("1");
    assert!(one == files("2") && one == files("3"));
}

#[test]
fn what_explain_prints_gives_the_same_run() {
    let folder = folder_with(SMALL);
    let set =
        ["--set", "routing.preset=flowcut-nic", "--set", "routing.granularity.threshold=3", "--seed", "9"];
    let explained = netloom(folder.path(), &[&["explain", "s.toml"], &set[..]].concat());
    assert!(explained.status.success(), "{}", stderr(&explained));
    assert_says(&stdout(&explained), &["threshold = 3.0", "seed = 9", "ack_size = \"64B\""]);
    std::fs::write(folder.path().join("full.toml"), &explained.stdout).unwrap();
    let again = netloom(folder.path(), &["explain", "full.toml"]);
    assert_eq!(stdout(&again), stdout(&explained));
    let direct = netloom(folder.path(), &[&["run", "s.toml", "--json", "--out", "a"], &set[..]].concat());
    let full = netloom(folder.path(), &["run", "full.toml", "--json", "--out", "b"]);
    assert_eq!(stdout(&direct), stdout(&full));
    assert!(direct.status.success() && !direct.stdout.is_empty());
}

#[test]
fn a_misspelt_field_is_pointed_at() {
    let message = refused(&SMALL.replace("size", "sise"), &[]);
    assert_says(&message, &["workload.sise: unknown field `sise`", "s.toml:8:1", "did you mean `size`?"]);
}

#[test]
fn a_wrong_unit_is_pointed_at() {
    let message = refused(&SMALL.replace("64KiB", "64Gbps"), &[]);
    assert_says(&message, &["workload.size: expected", "s.toml:8:8", "64Gbps"]);
}

#[test]
fn an_unknown_kind_and_an_unknown_preset_are_pointed_at() {
    let message = refused(&SMALL.replace("fat-tree", "fat-treee"), &["--set", "routing.preset=ecpm"]);
    assert_says(&message, &["there is no topology `fat-treee`", "did you mean `fat-tree`?", "s.toml:2:8"]);
    assert_says(&message, &["there is no preset `ecpm`", "did you mean `ecmp`?", "2 problems found"]);
}

#[test]
fn an_impossible_topology_is_refused() {
    let message = refused(&SMALL.replace("k = 4", "k = 5"), &[]);
    assert_says(&message, &["topology.k: expected an even number", "found 5", "s.toml:3:5"]);
}

#[test]
fn an_absurd_topology_is_refused_before_it_eats_the_memory() {
    let message = refused(&SMALL.replace("k = 4", "k = 65534"), &[]);
    assert_says(&message, &["topology", "memory"]);
}

#[test]
fn a_combination_that_makes_no_sense_is_refused() {
    let message = refused(SMALL, &["--set", "routing.placement=nic", "--set", "routing.selector=drill"]);
    assert_says(&message, &["routing.selector", "a NIC picks entropy values", "--set"]);
}

#[test]
fn an_override_is_pointed_at_in_its_own_text() {
    let message = refused(SMALL, &["--set", "workload.size=12 parsecs"]);
    assert_says(&message, &["workload.size: expected", "--set:1:15", "12 parsecs"]);
    let message = refused(SMALL, &["--set", "workload.size"]);
    assert_says(&message, &["expected an override of the form FIELD=VALUE"]);
}

#[test]
fn a_missing_file_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let output = netloom(folder.path(), &["run", "nowhere.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_says(&stderr(&output), &["cannot read nowhere.toml", "No such file"]);
    let message = refused("[topology]\nkind = \"edge-list\"\npath = \"net.txt\"\n", &[]);
    assert_says(&message, &["topology", "net.txt", "No such file"]);
}

#[test]
fn broken_toml_is_pointed_at() {
    let message = refused("[topology\nkind = 3\n", &[]);
    assert_says(&message, &["this is not TOML", "s.toml:1"]);
}

#[test]
fn a_folder_that_cannot_be_written_is_known_before_the_run() {
    let folder = folder_with(SMALL);
    std::fs::write(folder.path().join("file"), "").unwrap();
    for out in ["file/below", "file", "/proc/netloom/run"] {
        let output = netloom(folder.path(), &["run", "s.toml", "--out", out]);
        assert_eq!(output.status.code(), Some(1), "{out}");
        assert!(output.stdout.is_empty(), "nothing was run");
        assert_says(&stderr(&output), &["error: "]);
    }
}

#[test]
fn an_outcome_is_not_overwritten_unasked() {
    let folder = folder_with(SMALL);
    assert!(netloom(folder.path(), &["run", "s.toml"]).status.success());
    let again = netloom(folder.path(), &["run", "s.toml"]);
    assert_eq!(again.status.code(), Some(1));
    assert_says(&stderr(&again), &["already holds an outcome", "--force"]);
    assert!(netloom(folder.path(), &["run", "s.toml", "--force"]).status.success());
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let folder = folder_with(SMALL);
    let script = format!("{} list | head -n 1", env!("CARGO_BIN_EXE_netloom"));
    let output = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert_eq!(stderr(&output), "");
    assert_eq!(stdout(&output).lines().count(), 1);
}

#[test]
fn list_shows_every_axis_and_each_kind_in_full() {
    let folder = tempfile::tempdir().unwrap();
    let all = stdout(&netloom(folder.path(), &["list"]));
    assert_says(
        &all,
        &["[routing.selector]", "\"flowcut-nic\"", "\"fat-tree\"", "\"permutation\"", "\"degrade\""],
    );
    let kind = stdout(&netloom(folder.path(), &["list", "flowlet"]));
    assert_says(&kind, &["kind = \"flowlet\"", "gap = "]);
    let preset = stdout(&netloom(folder.path(), &["list", "letflow"]));
    assert_says(&preset, &["preset = \"letflow\"", "placement = \"switch\""]);
    let unknown = netloom(folder.path(), &["list", "flowlte"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert_says(&stderr(&unknown), &["did you mean `flowlet`?"]);
}

/// Whatever stands in a scenario can be asked for.
#[test]
fn list_finds_fields_and_values() {
    let folder = tempfile::tempdir().unwrap();
    let list = |name: &str| {
        let output = netloom(folder.path(), &["list", name]);
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        stdout(&output)
    };
    assert_says(&list("web-search"), &["[workload] size = \"web-search\"", "DCTCP", "Mean 1.711MB"]);
    assert_says(&list("size"), &["vl2", "VL2", "google-rpc-2008"]);
    assert_says(&list("ecn"), &["fabric.ecn", "kmin", "kmax", "pmax"]);
    assert_says(&list("fabric.ecn.kmin"), &["fabric.ecn.kmin"]);
    assert_says(
        &list("placement"),
        &["workload.placement", "\"linear\"", "routing.placement", "\"ingress\""],
    );
    assert_says(
        &list("other-rack"),
        &["workload.destination with kind = \"uniform\"", "\"other-rack\" means: Hosts of other edge"],
    );
    assert_says(&list("size_bins"), &["measure.size_bins"]);
    assert_says(&list("windows"), &["measure.windows", "until"]);
    assert_says(&list("worst-case"), &["intensity"]);
    assert_says(&list("repetitions"), &["repetitions in a study", "small.repetitions in a study"]);
    assert_says(&list("diversity"), &["[analysis.measurement] kind = \"diversity\"", "Quantities: `length`"]);
    assert_says(&list("count_over"), &["[claims.expression] function = \"count_over\"", "how many labels"]);
    assert_says(&list("bias"), &["routing.selector.decision.bias with kind = \"ratio\""]);
    assert_says(&list("seed"), &["seed\n", "analysis.seed in a study"]);
    let json = stdout(&netloom(folder.path(), &["list", "--json", "ecn"]));
    assert_says(&json, &["\"path\": \"fabric.ecn\"", "\"name\": \"kmin\""]);
    let unknown = stderr(&netloom(folder.path(), &["list", "web-serch"]));
    assert_says(&unknown, &["did you mean `web-search`?", "`netloom list` alone shows all kinds"]);
    assert!(unknown.len() < 1000, "{unknown}");
}

#[test]
fn route_speaks_json_and_the_names_of_the_file() {
    let folder = folder_with("[topology]\nkind = \"edge-list\"\npath = \"net\"\n");
    std::fs::write(folder.path().join("net"), "alice tor1\nbob tor2\ntor1 tor2\n").unwrap();
    let output = netloom(folder.path(), &["route", "s.toml", "alice", "1", "--json"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let route: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!((&route["src"], &route["dst"]), (&"alice".into(), &"bob".into()));
    assert_eq!((&route["hops"][0]["at"], &route["hops"][0]["takes"]), (&"tor1".into(), &"tor2".into()));
    let output = netloom(folder.path(), &["route", "s.toml", "alice", "bob"]);
    assert_says(&stdout(&output), &["alice to bob on ", "│ tor1 "]);
    let output = netloom(folder.path(), &["route", "s.toml", "alice", "rob"]);
    assert_says(&stderr(&output), &["DST: expected a node", "did you mean `bob`?"]);
}

#[test]
fn numbers_with_a_sign_reach_the_reader() {
    let message = refused(SMALL, &["--seed", "-1"]);
    assert_says(&message, &["seed: expected a whole number from 0", "found number `-1`", "--seed:1:1"]);
    let message = refused(SMALL, &["--set", "workload.class=-1"]);
    assert_says(&message, &["workload.class: expected a whole number from 0 to 255, found number `-1`"]);
    let message = refused(SMALL, &["--set", "workload.class=2.5"]);
    assert_says(&message, &["expected a whole number from 0 to 255, found number `2.5`"]);
    let message = refused(SMALL, &["--set", "-workload.class=1"]);
    assert_says(&message, &["unknown field `-workload`"]);
    let folder = tempfile::tempdir().unwrap();
    let output = netloom(folder.path(), &["paths", "crossbar", "--seed", "-1"]);
    assert_eq!(output.status.code(), Some(2));
    assert_says(&stderr(&output), &["--seed:1:1", "seed: expected a whole number"]);
    let output = netloom(folder.path(), &["run", "s.toml", "--threads", "-1"]);
    assert_says(&stderr(&output), &["invalid value '-1' for '--threads <N>'", "1..=256"]);
}

#[test]
fn a_study_is_no_scenario_and_a_scenario_no_study() {
    let message = refused("title = \"t\"\nscenario = {}\n[[claims]]\nid = \"a\"\n", &[]);
    assert_says(&message, &["this is a study, not a scenario", "s.toml:2:1", "`netloom study FILE` runs it"]);
    assert_eq!(message.matches("error: ").count(), 1, "{message}");
    let folder = folder_with(SMALL);
    let output = netloom(folder.path(), &["study", "s.toml"]);
    assert_eq!(output.status.code(), Some(2));
    assert_says(&stderr(&output), &["this is a scenario, not a study", "s.toml:1:1", "`netloom run FILE`"]);
}

#[test]
fn what_an_override_breaks_is_pointed_at_in_the_override() {
    let message = refused(SMALL, &["--set", "topology.kind=edge-list"]);
    assert_says(&message, &["`edge-list` needs `path`", "--set:1:1"]);
    let message = refused(SMALL, &["--set", "routing.preset=d-mod-k", "--set", "topology.kind=complete"]);
    assert_says(&message, &["routing.selector: expected a tree", "--set:1:1"]);
}

#[test]
fn subflows_that_a_preset_does_not_have_are_pointed_at() {
    for (preset, expected) in [
        ("uet", "transport.subflows: expected 1 with reliability \"pds\""),
        ("roce", "transport.subflows: expected 1 with reliability \"go-back-n\""),
        ("ndp", "transport.subflows: expected 1 with \"pulls\""),
    ] {
        let text = format!("{SMALL}[transport]\npreset = \"{preset}\"\n");
        let message = refused(&text, &["--set", "transport.subflows=2"]);
        assert_says(&message, &[expected, "--set:1:20"]);
    }
}

/// What is said of a fabric that does not mark are lines that can be appended, and then the scenario runs without a warning.
#[test]
fn lines_that_make_switches_mark_can_be_pasted() {
    let balanced = SMALL.replace("\"ecmp\"", "\"uet-mixed\"");
    for (text, trims) in [
        (format!("{balanced}[transport]\npreset = \"uet\"\n"), true),
        (format!("{balanced}[transport]\npreset = \"dctcp\"\n"), false),
        (format!("{SMALL}[transport]\npreset = \"roce\"\n"), false),
    ] {
        let text = text.replace("k = 4\n", "k = 4\nrate = \"100Gbps\"\nlatency = \"1us\"\n");
        let message = refused(&text, &[]);
        assert_says(&message, &["expected a fabric that marks packets (fabric.ecn)", "[fabric]"]);
        let lines = message.lines().map(str::trim).skip_while(|line| *line != "[fabric]");
        let lines: Vec<&str> = lines.take_while(|line| !line.is_empty()).collect();
        assert_eq!(lines.contains(&"queue = \"trimming\""), trims, "{message}");
        let folder = folder_with(&format!("{text}{}\n", lines.join("\n")));
        let output = netloom(folder.path(), &["run", "s.toml"]);
        assert!(output.status.success(), "{}", stderr(&output));
    }
}

#[test]
fn long_input_is_cut_in_messages() {
    let long = "x".repeat(100_000);
    for text in [
        format!("[topology]\nkind = {long:?}\n"),
        format!("[workload]\nsize = {long:?}\n"),
        format!("{long} = 1\n"),
        format!("seed = {}\n", "9".repeat(100_000)),
        format!("seed = {long:?}\n"),
    ] {
        let message = refused(&text, &[]);
        assert!(message.len() < 4000, "{} bytes: {}", message.len(), &message[..1000]);
    }
}

#[test]
fn shells_manuals_and_editors_are_served() {
    let folder = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let script = stdout(&netloom(folder.path(), &["completions", shell]));
        assert_says(&script, &["netloom", "throughput", "export"]);
    }
    assert_says(&stdout(&netloom(folder.path(), &["man"])), &[".TH netloom 1", "study"]);
    assert!(netloom(folder.path(), &["man", "--out", "man1"]).status.success());
    for page in ["netloom", "netloom-run", "netloom-study"] {
        let page = folder.path().join(format!("man1/{page}.1"));
        assert_says(&std::fs::read_to_string(page).unwrap(), &[".TH", "NAME", "SYNOPSIS"]);
    }
    let schema: serde_json::Value =
        serde_json::from_slice(&netloom(folder.path(), &["schema"]).stdout).unwrap();
    assert_eq!(schema["properties"]["seed"]["type"], "integer");
}

#[test]
fn route_shows_the_candidates_and_the_reason() {
    let folder = folder_with(SMALL);
    let output = netloom(folder.path(), &["route", "s.toml", "0", "15"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_says(
        &stdout(&output),
        &["h0 to h15 on ", "candidates", "s8 (level 2), s9 (level 2)", "hash of source", "h15"],
    );
    let output = netloom(folder.path(), &["route", "s.toml", "0", "16"]);
    assert_says(&stderr(&output), &["DST: expected a host from 0 to 15, found 16"]);
}

#[test]
fn topology_takes_a_file_or_one_word() {
    let folder = folder_with(SMALL);
    for spec in ["s.toml", "fat-tree:k=4"] {
        let output = netloom(folder.path(), &["topology", spec]);
        assert!(output.status.success(), "{}", stderr(&output));
        assert_says(&stdout(&output), &["16 hosts", "20 switches", "48 links"]);
    }
    let output = netloom(folder.path(), &["topology", "fat-tree:kk=4"]);
    assert_eq!(output.status.code(), Some(2));
    assert_says(&stderr(&output), &["unknown field `kk` of `fat-tree`", "SPEC:1:10"]);
}

/// Waits until the process catches SIGINT itself.
fn wait_for_handler(pid: u32) {
    let catches = || {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & 0b10 != 0
    };
    for _ in 0..2000 {
        if catches() {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no handler for SIGINT within 20 s");
}

#[test]
#[cfg(target_os = "linux")]
fn an_interruption_writes_what_was_seen_and_marks_it() {
    for signal in ["-INT", "-TERM", "-HUP"] {
        let folder = folder_with(&SMALL.replace("64KiB", "64GiB"));
        // Under `nohup` the tests ignore SIGHUP, and so would the command.
        let mut command = Command::new("env");
        let command =
            command.args(["--default-signal=HUP", env!("CARGO_BIN_EXE_netloom"), "run", "s.toml", "--json"]);
        let child = command.current_dir(folder.path()).stdout(std::process::Stdio::piped()).spawn().unwrap();
        wait_for_handler(child.id());
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{signal}");
        assert_says(&stdout(&output), &["\"status\": \"interrupted\"", "\"unfinished\": 16"]);
        let written = std::fs::read_to_string(folder.path().join("runs/s/summary.json")).unwrap();
        assert_says(&written, &["\"status\": \"interrupted\""]);
    }
}

/// Needs the right to mount in a namespace of its own; where the system does not give it, there is nothing to fill.
#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_nothing_that_looks_like_an_outcome() {
    let may_mount =
        Command::new("unshare").args(["-rm", "true"]).status().is_ok_and(|status| status.success());
    if !may_mount {
        eprintln!("not tested: this system does not let us mount a small disk");
        return;
    }
    let folder = folder_with(SMALL);
    let script = format!(
        "mkdir tiny && mount -t tmpfs -o size=16k tmpfs tiny && {} run s.toml --out tiny/out; echo code $?; ls -A tiny",
        env!("CARGO_BIN_EXE_netloom")
    );
    let output =
        Command::new("unshare").args(["-rm", "sh", "-c", &script]).current_dir(folder.path()).output();
    let output = output.unwrap();
    assert_says(&stderr(&output), &["error: cannot write", "No space left on device"]);
    assert_eq!(stdout(&output), "code 1\n", "nothing is left in the folder");
    // Nor is any page of the manual there in part.
    let script = format!(
        "mkdir tiny2 && mount -t tmpfs -o size=16k tmpfs tiny2 && {} man --out tiny2; echo code $?; for page in tiny2/*; do tail -n 1 $page; done; ls -A tiny2 | grep -v '^netloom'",
        env!("CARGO_BIN_EXE_netloom")
    );
    let output =
        Command::new("unshare").args(["-rm", "sh", "-c", &script]).current_dir(folder.path()).output();
    let output = output.unwrap();
    assert_says(&stderr(&output), &["error: cannot write tiny2/netloom", "No space left on device"]);
    let lines = stdout(&output);
    let mut lines = lines.lines();
    assert_eq!(lines.next(), Some("code 1"));
    assert!(lines.all(|last| last.starts_with('v') || !last.is_empty()));
}

#[test]
fn servers_with_several_nics_have_messages_and_parts() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/rails.toml");
    let folder = tempfile::tempdir().unwrap();
    let run = |out: &str, more: &[&str]| {
        let args = ["run", example.to_str().unwrap(), "--set", "workload.size=1MB", "--out", out];
        let output = netloom(folder.path(), &[&args[..], more].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        Outcome::read(&folder.path().join(out)).unwrap()
    };
    let one = run("one", &[]);
    let bytes = |out: &str, file: &str| std::fs::read(folder.path().join(out).join(file)).unwrap();
    for threads in ["2", "3", "4"] {
        run(threads, &["--threads", threads]);
        for file in ["scenario.toml", "summary.json", "flows.parquet", "parts.parquet", "links.parquet"] {
            assert!(bytes("one", file) == bytes(threads, file), "{file} on {threads} threads");
        }
    }
    // 31 messages to the next server, twice; each of 8 packets of a part of the 1 MB, one by each NIC.
    let (flows, parts) = (one.flows().unwrap(), one.parts().unwrap());
    assert_eq!((flows.len(), parts.len()), (32 * 62, 32 * 62 * 8));
    assert!(flows.iter().all(|flow| flow.dst == (flow.src + 1) % 32));
    let part = |rail| parts.iter().filter(move |part| part.rail == rail).map(|part| part.bytes).sum::<u64>();
    assert_eq!((0..8).map(part).sum::<u64>(), flows.iter().map(|flow| flow.bytes).sum::<u64>());
    let last = |outcome: &Outcome| outcome.summary.flows.last_completion.unwrap();
    let side_by_side = run("side", &["--set", "servers.wiring=side-by-side"]);
    assert!(last(&one) < last(&side_by_side));
    let message = refused_with(&example, &["--set", "servers.nics=3"]);
    assert_says(&message, &["servers.nics: expected a divisor of the network's 256 hosts"]);
}

/// The message about a file that cannot be run.
fn refused_with(file: &Path, more: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = netloom(folder.path(), &[&["run", file.to_str().unwrap()], more].concat());
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    stderr(&output)
}

#[test]
fn every_example_runs() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let folder = tempfile::tempdir().unwrap();
    let mut scenarios = 0;
    for entry in std::fs::read_dir(&examples).unwrap() {
        let file = entry.unwrap().path();
        let name = file.to_str().unwrap();
        if !name.ends_with(".toml") {
            // What a scenario reads.
            continue;
        }
        let is_study = std::fs::read_to_string(&file).unwrap().contains("[[axis]]");
        let output = match is_study {
            true => netloom(folder.path(), &["study", name, "--small"]),
            false => netloom(folder.path(), &["run", name]),
        };
        assert!(output.status.success(), "{name}: {}{}", stdout(&output), stderr(&output));
        scenarios += 1;
    }
    assert!(scenarios >= 5);
}

#[test]
fn paths_and_throughput_take_a_network_in_one_word() {
    let folder = tempfile::tempdir().unwrap();
    let output = netloom(folder.path(), &["paths", "slim-fly:q=5", "--samples", "50", "--out", "tables"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_says(&stdout(&output), &["Slim Fly q = 5", "│ diameter           │        2 │", "cdp_mean"]);
    assert!(folder.path().join("tables/diversity.parquet").is_file());

    let args =
        ["throughput", "slim-fly:q=5", "--routing", "minimal", "--traffic", "worst-case:intensity=0.5"];
    let output = netloom(folder.path(), &args);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_says(&stdout(&output), &["throughput", "path form"]);

    let output = netloom(folder.path(), &["throughput", "slim-fly:q=5", "--routing", "minimal:x=1"]);
    assert_says(&stderr(&output), &["unknown field `x` of `minimal`", "--routing:1:9"]);
    let output = netloom(folder.path(), &["paths", "slim-fly:q=6"]);
    assert_eq!(output.status.code(), Some(2));
    assert_says(&stderr(&output), &["topology.q", "found 6"]);
}

#[test]
fn what_is_probably_a_mistake_is_said_and_refused_if_asked() {
    let text = format!("{SMALL}[transport]\ncongestion = \"dctcp\"\n");
    let folder = folder_with(&text);
    let output = netloom(folder.path(), &["run", "s.toml"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", stderr(&output));
    let told = stdout(&output).matches("DCTCP reacts to ECN marks").count();
    assert_eq!(told, 1, "{}", stdout(&output));
    let summary = std::fs::read_to_string(folder.path().join("runs/s/summary.json")).unwrap();
    assert_says(&summary, &["\"warnings\": [", "set `fabric.ecn`"]);
    assert_says(
        &refused(&text, &["--strict"]),
        &["--strict", "transport.congestion: DCTCP reacts to ECN marks"],
    );
    // What only the run can tell: the outcome is there, the exit code says no.
    let folder = folder_with(&format!("{SMALL}[measure]\nuntil = \"1us\"\n"));
    let output = netloom(folder.path(), &["run", "s.toml", "--strict"]);
    assert_eq!(output.status.code(), Some(1));
    assert_says(&stderr(&output), &["--strict", "16 of 16 flows did not finish"]);
    assert!(folder.path().join("runs/s/summary.json").is_file());
}

#[test]
fn a_network_is_drawn_and_a_large_one_as_groups() {
    let folder = tempfile::tempdir().unwrap();
    let output = netloom(folder.path(), &["topology", "fat-tree:k=4", "--draw", "net.svg"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let svg = std::fs::read_to_string(folder.path().join("net.svg")).unwrap();
    assert_says(&svg, &["<title>h15</title>", "<title>s19</title>", "agg-core: 16 links of 200Gbps"]);
    let output = netloom(folder.path(), &["topology", "fat-tree:k=32", "--draw", "large.svg"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let svg = std::fs::read_to_string(folder.path().join("large.svg")).unwrap();
    assert_says(&svg, &["512 edge switches in 32 pods", "hosts of pod 31: 256 hosts", "drawn as groups"]);
    let output = netloom(folder.path(), &["topology", "fat-tree:k=4", "--draw", "net.gif"]);
    assert_says(&stderr(&output), &["--draw: expected a file that ends in .svg or .png, found net.gif"]);
    let output = netloom(folder.path(), &["topology", "fat-tree:k=4", "--draw", "net.png"]);
    assert_eq!(output.status.code(), Some(2));
    assert_says(
        &stderr(&output),
        &["--draw: this netloom was built without PNG", "rsvg-convert", "-o net.png"],
    );
    assert!(!folder.path().join("net.png").exists());
}

#[test]
fn an_exported_network_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let output = netloom(folder.path(), &["topology", "fat-tree:k=4", "--export", "net.graphml"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = netloom(folder.path(), &["topology", "graphml:path=net.graphml", "--json"]);
    assert_says(&stdout(&output), &["\"hosts\": 16", "\"diameter\": 4"]);
    let output = netloom(folder.path(), &["topology", "fat-tree:k=4", "--export", "net.xyz"]);
    assert_eq!(output.status.code(), Some(2));
    assert_says(&stderr(&output), &["--format: the extension of net.xyz names no format", "edge-list"]);
}
