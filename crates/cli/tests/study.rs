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
    for part in ["scheme=ecmp", "scheme=spray", "order", "yes", "more than half", "Fig. 8", "no"] {
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
    assert!(text(&output.stdout).contains("NO (gate)"), "{}", text(&output.stdout));
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
