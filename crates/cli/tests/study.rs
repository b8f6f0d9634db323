//! Studies on the command line: claims, gates, going on after a stop, broken studies.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const STUDY: &str = r#"
title = "Spraying against ECMP"
scenario = "base.toml"
repetitions = 2

[[axis]]
name = "scheme"
cases = [
  { label = "ecmp", set = { "routing.preset" = "ecmp" } },
  { label = "spray", set = { "routing.preset" = "spray" } },
]

[[claims]]
id = "order"
text = "Spraying reorders, ECMP does not"
expression = 'ooo_share("ecmp") == 0 and ooo_share("spray") > 0'
published = "more than half"
source = "a paper, Fig. 8"

[[claims]]
id = "tail"
text = "A claim that does not hold"
expression = 'p99_fct("spray") > 100 * p99_fct("ecmp")'
use = "report"

[small]
repetitions = 1
set = { "workload.size" = "32KiB" }
"#;

const BASE: &str =
    "[topology]\nkind = \"fat-tree\"\nk = 4\n[workload]\nkind = \"permutation\"\nsize = \"64KiB\"\n";

fn netloom(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_netloom")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn folder_with(study: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("base.toml"), BASE).unwrap();
    std::fs::write(folder.path().join("study.toml"), study).unwrap();
    folder
}

/// The folders of the cells that are done.
fn finished(folder: &Path) -> Vec<PathBuf> {
    let Ok(cells) = std::fs::read_dir(folder.join("out/cells")) else { return Vec::new() };
    let mut cells: Vec<_> = cells
        .map(|entry| entry.unwrap().path())
        .filter(|cell| !cell.file_name().unwrap().to_string_lossy().starts_with('.'))
        .collect();
    cells.sort();
    cells
}

/// When each cell's summary was written.
fn written(folder: &Path) -> Vec<std::time::SystemTime> {
    finished(folder)
        .iter()
        .map(|cell| cell.join("summary.json").metadata().unwrap().modified().unwrap())
        .collect()
}

#[test]
fn a_study_shows_results_and_claims_and_runs_nothing_twice() {
    let folder = folder_with(STUDY);
    let first = netloom(folder.path(), &["study", "study.toml", "--out", "out"]);
    assert!(first.status.success(), "{}{}", text(&first.stdout), text(&first.stderr));
    for part in ["scheme=ecmp", "scheme=spray", "order", "holds", "more than half", "Fig. 8", "does not hold"]
    {
        assert!(text(&first.stdout).contains(part), "{part}: {}", text(&first.stdout));
    }
    let times = written(folder.path());
    assert_eq!(times.len(), 4);
    let csv = std::fs::read_to_string(folder.path().join("out/results.csv")).unwrap();
    assert_eq!(csv.lines().count(), 5);
    assert!(csv.starts_with("scheme,seed,folder,"));
    let first_cell = csv.lines().nth(1).unwrap().split(',').nth(2).unwrap();
    assert!(first_cell.starts_with("cells/scheme=ecmp_seed=1."), "{first_cell}");
    assert!(folder.path().join("out").join(first_cell).join("flows.parquet").exists());

    let second = netloom(folder.path(), &["study", "study.toml", "--out", "out"]);
    assert_eq!(text(&second.stdout), text(&first.stdout));
    assert_eq!(written(folder.path()), times);

    let changed = STUDY.replace("\"spray\" }", "\"spray\", \"workload.size\" = \"65KiB\" }");
    std::fs::write(folder.path().join("study.toml"), changed).unwrap();
    assert!(netloom(folder.path(), &["study", "study.toml", "--out", "out"]).status.success());
    let now = written(folder.path());
    assert_eq!((now.len(), times.iter().filter(|time| now.contains(time)).count()), (6, 4));
}

#[test]
fn the_result_does_not_depend_on_the_number_of_workers() {
    let folder = folder_with(STUDY);
    let results = |workers: &str| {
        let args = ["study", "study.toml", "--workers", workers, "--out", workers, "--json"];
        let output = netloom(folder.path(), &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), std::fs::read(folder.path().join(workers).join("results.csv")).unwrap())
    };
    let one = results("1");
    assert!(one.0.contains("\"fct.p99\": "), "numbers go by their names: {}", one.0);
    assert_eq!(one, results("3"));
}

/// Starts `processes` copies of the command at the same time, each with the arguments for its number.
fn at_once(folder: &Path, processes: usize, args: impl Fn(usize) -> Vec<String>) -> Vec<Output> {
    let start = |number| {
        Command::new(env!("CARGO_BIN_EXE_netloom"))
            .args(args(number))
            .current_dir(folder)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap()
    };
    let running: Vec<_> = (1..=processes).map(start).collect();
    running.into_iter().map(|child| child.wait_with_output().unwrap()).collect()
}

/// Sixteen processes begin in one folder at the same time, each with a part of the cells or each with all of them.
#[test]
fn processes_that_begin_at_the_same_time_do_each_other_no_harm() {
    const PROCESSES: usize = 16;
    let many = STUDY.replace("repetitions = 2", "repetitions = 8");
    let study = ["study", "study.toml", "--out", "out", "--workers", "1", "--set", "workload.size=32KiB"];
    let study = study.map(str::to_owned);
    for shares in [true, false] {
        let folder = folder_with(&many);
        let outputs = at_once(folder.path(), PROCESSES, |number| {
            let shard = shares.then(|| vec!["--shard".to_owned(), format!("{number}/{PROCESSES}")]);
            [&study[..], &shard.unwrap_or_default()[..]].concat()
        });
        for output in outputs {
            assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
        }
        assert_eq!(finished(folder.path()).len(), 16);
        let before = written(folder.path());
        let args: Vec<&str> = study.iter().map(String::as_str).collect();
        assert!(netloom(folder.path(), &args).status.success());
        assert_eq!(written(folder.path()), before, "nothing was left to do");
        let hidden = std::fs::read_dir(folder.path().join("out/cells")).unwrap();
        assert_eq!(hidden.count(), 16, "nothing is left over");
    }
}

#[test]
fn fields_that_a_kind_does_not_have_are_named_and_refused_if_asked() {
    let axis =
        "[[axis]]\nname = \"network\"\nfield = \"topology.kind\"\nvalues = [\"fat-tree\", \"crossbar\"]\n";
    let folder = folder_with(&format!("title = \"t\"\nscenario = \"base.toml\"\n{axis}"));
    let left_out = "topology.k: left out, as topology.kind = \"crossbar\" was chosen after it and has no such field (1 of 2 points: network=crossbar)";
    let args =
        ["study", "study.toml", "--out", "out", "--set", "workload.size=1KiB", "--set", "workload.ranks=4"];
    let strict = netloom(folder.path(), &[&args[..], &["--strict"]].concat());
    assert_eq!(strict.status.code(), Some(2));
    assert!(
        text(&strict.stderr).contains(&format!("--strict: {left_out}"))
            && !folder.path().join("out").exists()
    );
    let output = netloom(folder.path(), &args);
    assert!(
        output.status.success() && text(&output.stderr).contains(&format!("warning: {left_out}")),
        "{}",
        text(&output.stderr)
    );
}

#[test]
fn a_cluster_needs_the_python_package() {
    let folder = folder_with(STUDY);
    let output = Command::new(env!("CARGO_BIN_EXE_netloom"))
        .args(["study", "study.toml", "--dask", "tcp://127.0.0.1:9"])
        .current_dir(folder.path())
        .env("PYTHON", "no-such-python")
        .output()
        .unwrap();
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        message.starts_with("error: --dask runs a study by the Python package: pip install"),
        "{message}"
    );
    assert!(message.contains("no-such-python: No such file"), "{message}");
}

#[test]
fn a_gate_that_does_not_hold_fails_the_study() {
    let folder = folder_with(&STUDY.replace("use = \"report\"", "use = \"gate\""));
    let output = netloom(folder.path(), &["study", "study.toml", "--small"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("does not hold (GATE FAILS)"), "{}", text(&output.stdout));
}

#[test]
fn a_broken_study_is_refused_before_anything_runs() {
    let breaks = [
        (
            "\"routing.preset\" = \"spray\"",
            "\"routing.presett\" = \"spray\"",
            "routing.presett: unknown field",
        ),
        ("p99_fct(\"spray\")", "p99_fct(\"spry\")", "did you mean `spray`?"),
        ("p99_fct(\"spray\") >", "p99_fct(\"spray\") >>", "claims.1.expression: expected a number"),
        ("ooo_share(\"ecmp\") == 0", "oo_share(\"ecmp\") == 0", "there is no metric `oo_share`"),
        ("p99_fct(\"spray\") >", "p99_fct() >", "this selects 2 cells"),
        ("p99_fct(\"spray\") >", "within(1, 2) >", "`within` takes three numbers"),
        ("100 * p99_fct(\"ecmp\")", "(1 < 2)", "expected a number, found a comparison"),
        ("base.toml", "nowhere.toml", "cannot read nowhere.toml"),
        ("repetitions = 2", "repetition = 2", "did you mean `repetitions`?"),
        ("\"spray\" } }", "\"spray\", \"topology.k\" = 3 } }", "topology.k: expected an even number"),
    ];
    for (from, to, expected) in breaks {
        let folder = folder_with(&STUDY.replace(from, to));
        let output = netloom(folder.path(), &["study", "study.toml"]);
        assert_eq!(output.status.code(), Some(2), "{to}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(expected), "{expected}: {}", text(&output.stderr));
        assert!(!folder.path().join("runs").exists(), "{to}");
    }
}

/// Waits until the process catches SIGINT itself.
#[cfg(target_os = "linux")]
fn wait_for_handler(pid: u32) {
    for _ in 0..2000 {
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        if u64::from_str_radix(mask.trim(), 16).unwrap_or(0) & 0b10 != 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    panic!("no handler for SIGINT within 20 s");
}

#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_study_keeps_its_finished_cells_and_goes_on() {
    let long = "\"spray\", \"workload.size\" = \"64GiB\" }";
    for signal in ["-INT", "-TERM", "-HUP"] {
        let folder =
            folder_with(&STUDY.replace("\"spray\" }", long).replace("repetitions = 2", "repetitions = 1"));
        // Under `nohup` the tests ignore SIGHUP, and so would the command.
        let mut command = Command::new("env");
        let args = ["study", "study.toml", "--workers", "1", "--out", "out"];
        let child = command
            .args(["--default-signal=HUP", env!("CARGO_BIN_EXE_netloom")])
            .args(args)
            .current_dir(folder.path())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        wait_for_handler(child.id());
        // The first cell is short, the second would take minutes.
        while finished(folder.path()).is_empty() {
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap().success());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(130), "{signal}");
        assert!(text(&output.stderr).contains("1 of 2 cells are done"), "{}", text(&output.stderr));

        // Nobody knows yet whether the claims hold.
        let claims = std::fs::read_to_string(folder.path().join("out/study.json")).unwrap();
        let claims: serde_json::Value = serde_json::from_str(&claims).unwrap();
        for claim in claims["claims"].as_array().unwrap() {
            assert!(claim["holds"].is_null(), "{claim}");
            assert_eq!(claim["measured"], "0 of 1 cells of scheme=spray are done");
        }

        let before = written(folder.path());
        assert_eq!(before.len(), 1);
        std::fs::write(folder.path().join("study.toml"), STUDY.replace("repetitions = 2", "repetitions = 1"))
            .unwrap();
        assert!(netloom(folder.path(), &["study", "study.toml", "--out", "out"]).status.success());
        assert!(before.iter().all(|time| written(folder.path()).contains(time)));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_study_that_shall_not_hear_of_hangups_goes_on() {
    let folder = folder_with(&STUDY.replace("64KiB", "64GiB").replace("repetitions = 2", "repetitions = 1"));
    std::fs::write(folder.path().join("base.toml"), BASE.replace("64KiB", "64GiB")).unwrap();
    let script = format!("trap '' HUP; exec {} study study.toml --out out", env!("CARGO_BIN_EXE_netloom"));
    let mut child = Command::new("sh").args(["-c", &script]).current_dir(folder.path()).spawn().unwrap();
    wait_for_handler(child.id());
    let send = |signal: &str| Command::new("kill").args([signal, &child.id().to_string()]).status().unwrap();
    send("-HUP");
    std::thread::sleep(std::time::Duration::from_millis(300));
    // Two signals would have ended it.
    send("-HUP");
    std::thread::sleep(std::time::Duration::from_millis(300));
    send("-TERM");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_said_first() {
    let folder = folder_with(STUDY);
    let under_limit = |blocks: &str| {
        let script = format!("trap '' XFSZ; ulimit -f {blocks}; exec \"$@\"");
        let mut command = Command::new("sh");
        command.args(["-c", &script, "sh", env!("CARGO_BIN_EXE_netloom"), "study", "study.toml"]);
        command.args(["--out", "out", "--workers", "1"]).current_dir(folder.path()).output().unwrap()
    };
    // Not even the small file that tries it fits.
    let output = under_limit("16");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).starts_with("error: cannot write out/cells"), "{}", text(&output.stderr));
    assert!(finished(folder.path()).is_empty());

    // The table of a thousand flows does not fit.
    std::fs::write(folder.path().join("base.toml"), BASE.replace("k = 4", "k = 16")).unwrap();
    let output = under_limit("128");
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    let message = text(&output.stderr);
    assert!(message.starts_with("error: cannot write ") && message.contains("File too large"), "{message}");
    assert!(message.ends_with("0 of 4 cells are done; the same command goes on from here\n"), "{message}");
    assert_eq!(message.matches("error:").count(), 1, "said once, not for every cell: {message}");

    let output = netloom(folder.path(), &["study", "study.toml", "--out", "out", "--small"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
}

#[test]
fn a_dry_run_says_what_there_is_to_do_and_does_nothing() {
    let folder = folder_with(STUDY);
    let dry = |args: &[&str]| {
        let args = [&["study", "study.toml", "--out", "out", "--dry-run", "--workers", "2"], args].concat();
        let output = netloom(folder.path(), &args);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let before = dry(&[]);
    for part in
        ["cells      4: 2 points × 2 seeds; 0 are done", "very roughly", "at least", "nothing was run"]
    {
        assert!(before.contains(part), "{part}: {before}");
    }
    assert!(!folder.path().join("out").exists());
    assert!(
        netloom(folder.path(), &["study", "study.toml", "--out", "out", "--shard", "1/2"]).status.success()
    );
    let json: serde_json::Value = serde_json::from_str(&dry(&["--json"])).unwrap();
    assert_eq!(
        (json["cells"].as_u64(), json["done"].as_u64(), json["measured_cells"].as_u64()),
        (Some(4), Some(2), Some(2))
    );
    assert!(
        json["time_s"].as_f64().unwrap() > 0.0 && json["memory_bytes_at_least"].as_u64().unwrap() > 1 << 20
    );
    assert_eq!(finished(folder.path()).len(), 2);
}

#[test]
fn columns_are_chosen_in_the_study_or_on_the_command_line() {
    let folder = folder_with(
        &STUDY.replace("repetitions = 2", "repetitions = 2\ncolumns = [\"timeouts\", \"p99_fct\"]"),
    );
    let run = |args: &[&str]| netloom(folder.path(), args);
    let own = text(&run(&["study", "study.toml", "--out", "out"]).stdout);
    assert!(own.contains("│ timeouts │ fct.p99 [us] │") || own.contains("timeouts"), "{own}");
    assert!(!own.contains("slowdown p99"), "{own}");
    let other =
        text(&run(&["study", "study.toml", "--out", "out", "--columns", "reordering,job-time"]).stdout);
    assert!(other.contains("makespan [us]") && !other.contains("timeouts"), "{other}");
    let shown = text(&run(&["show", "out", "--columns", "queues,goodput_bps"]).stdout);
    assert!(shown.contains("largest queue, host [kB]") && shown.contains("goodput [Gbit/s]"), "{shown}");
    for args in [["study", "study.toml", "--columns", "timeout"], ["show", "out", "--columns", "timeout"]] {
        let wrong = run(&args);
        let message = text(&wrong.stderr);
        assert_eq!(wrong.status.code(), Some(2), "{message}");
        assert!(
            message.contains("there is no metric `timeout`") && message.contains("`timeouts`"),
            "{message}"
        );
    }
    let wrong = STUDY.replace("repetitions = 2", "repetitions = 2\ncolumns = [\"fct\", \"drop\"]");
    std::fs::write(folder.path().join("study.toml"), wrong).unwrap();
    let message = text(&run(&["study", "study.toml"]).stderr);
    assert!(message.contains("columns.1") && message.contains("study.toml:5"), "{message}");
}

/// Flows that cannot end in time: each run warns of it, and the study prints it once.
#[test]
fn what_runs_warn_of_is_told_once() {
    let folder = folder_with(&STUDY.replace("repetitions = 2", "repetitions = 2\n"));
    let base = format!("{BASE}[measure]\nuntil = \"2us\"\n");
    std::fs::write(folder.path().join("base.toml"), base).unwrap();
    let run =
        |args: &[&str]| netloom(folder.path(), &[&["study", "study.toml", "--out", "out"], args].concat());
    let said = text(&run(&[]).stdout);
    assert_eq!(said.matches("did not finish").count(), 1, "{said}");
    let shown = text(&netloom(folder.path(), &["show", "out"]).stdout);
    assert_eq!(shown.matches("did not finish").count(), 1, "{shown}");
    assert!(!text(&run(&["--quiet"]).stdout).contains("did not finish"));
    let strict = run(&["--strict"]);
    assert_eq!(strict.status.code(), Some(1));
    assert!(text(&strict.stderr).contains("--strict: "), "{}", text(&strict.stderr));
}

#[test]
fn a_claim_that_seeds_do_not_settle_fails_its_gate_unless_the_means_decide() {
    // Two seeds of the same scheme: the difference of their tails is noise.
    let claim = "[[claims]]\nid = \"unsure\"\ntext = \"u\"\nexpression = 'p99_fct(\"ecmp\") < 1.05 * p99_fct(\"again\")'\n";
    let again =
        "  { label = \"again\", set = { \"routing.preset\" = \"ecmp\", \"routing.salt\" = false } },\n]";
    let study = |needs: &str| {
        STUDY.replacen("\n]", &format!("\n{again}"), 1).replacen(
            "\n[small]",
            &format!("\n{claim}{needs}\n[small]"),
            1,
        )
    };
    let folder = folder_with(&study(""));
    let run = || netloom(folder.path(), &["study", "study.toml", "--out", "out"]);
    let judged = || {
        let text = std::fs::read_to_string(folder.path().join("out/study.json")).unwrap();
        let json: serde_json::Value = serde_json::from_str(&text).unwrap();
        json["claims"].as_array().unwrap().iter().find(|claim| claim["id"] == "unsure").unwrap().clone()
    };
    let first = run();
    let claim = judged();
    assert_eq!(
        (claim["verdict"].as_str(), claim["level"].as_f64()),
        (Some("cannot-be-told"), Some(0.95)),
        "{claim}"
    );
    assert!(claim["holds"].is_null() && claim["measured"].as_str().unwrap().contains(" ± "), "{claim}");
    assert_eq!(first.status.code(), Some(1));
    assert!(text(&first.stdout).contains("cannot be told (GATE FAILS)"), "{}", text(&first.stdout));
    std::fs::write(folder.path().join("study.toml"), study("needs = \"mean\"\n")).unwrap();
    let second = run();
    let meets = judged()["mean_holds"].as_bool().unwrap();
    assert_eq!(second.status.success(), meets, "{}", text(&second.stdout));
    assert!(text(&second.stdout).contains("cannot be told; the means"), "{}", text(&second.stdout));
}
