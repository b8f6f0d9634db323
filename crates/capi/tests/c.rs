//! A program in C drives a run; what comes out is what the same flows from a list give, byte by byte.

mod common;

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;

use netloom_record::{Existing, Outcome, OutcomeWriter};
use netloom_scenario::{Node, Source, apply_override};

use common::{here, succeeded};

const SCENARIO: &str = "[topology]\nkind = \"fat-tree\"\nk = 4\n[routing]\npreset = \"flowcut-nic\"\n";

/// Compiles the program.
fn compile(folder: &Path, compiler: &str, flags: &[&str]) -> PathBuf {
    common::compile(&folder.join(compiler), compiler, flags, &["tests/drive.c"])
}

#[test]
fn a_program_in_c_gets_what_a_list_of_its_flows_gives() {
    // The reaction time in picoseconds.
    for reaction in [0, 10_000, 2_000_000] {
        the_program_gets_what_a_list_gives(reaction);
    }
}

fn the_program_gets_what_a_list_gives(reaction: u64) {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("s.toml"), SCENARIO).unwrap();
    let program = compile(folder.path(), "cc", &["-std=c99"]);
    let output =
        Command::new(program).arg(at("s.toml")).arg(at("driven")).arg(reaction.to_string()).output().unwrap();
    let printed = succeeded(&output);

    // Source, destination, size, tag, start, end, in order of the ends.
    let rows: Vec<Vec<u64>> =
        printed.lines().map(|line| line.split(' ').map(|number| number.parse().unwrap()).collect()).collect();
    assert_eq!(rows.len(), 30);
    assert!(rows.is_sorted_by_key(|row| row[5]));
    assert_eq!(rows.iter().filter(|row| row[3] >= 100).count(), 15, "every request has its answer");
    // An answer is given as soon as it may be.
    for answer in rows.iter().filter(|row| row[3] >= 100) {
        let request = rows.iter().find(|row| row[3] + 100 == answer[3]).unwrap();
        assert_eq!(answer[4], request[5] + reaction);
    }

    let mut flows = "src,dst,bytes,start_ps\n".to_owned();
    let driven = Outcome::read(&at("driven")).unwrap();
    // In the order in which they were started.
    for flow in driven.flows().unwrap() {
        flows += &format!("{},{},{},{}\n", flow.src, flow.dst, flow.bytes, flow.start.0);
        let end = flow.start.0 + flow.fct.unwrap().0;
        let row = [u64::from(flow.src), u64::from(flow.dst), flow.bytes, 0, flow.start.0, end];
        let is_row = |found: &&Vec<u64>| (0..6).filter(|&i| i != 3).all(|i| found[i] == row[i]);
        assert_eq!(rows.iter().filter(is_row).count(), 1, "{row:?}");
    }
    std::fs::write(at("flows.csv"), flows).unwrap();
    let mut document = Node::parse(&Source::new("s.toml", SCENARIO)).unwrap();
    let list = format!("workload={{ kind = \"flow-list\", file = \"{}\" }}", at("flows.csv").display());
    apply_override(&mut document, &list).unwrap();
    let writer = OutcomeWriter::prepare(&at("listed"), Existing::Refuse).unwrap();
    netloom_scenario::run(&document, 2, &writer, |_| ControlFlow::Continue(())).unwrap();
    for file in ["flows.parquet", "links.parquet", "summary.json"] {
        let read = |run: &str| std::fs::read(at(run).join(file)).unwrap();
        assert!(read("driven") == read("listed"), "{file}");
    }
}

/// What a program of the page does that is written in this language.
fn run_of_page(language: &str, compiler: &str, standard: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let page = include_str!("../../../docs/c.md");
    let block =
        page.split(&format!("```{language}\n")).nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let source = folder.path().join(format!("program.{language}"));
    std::fs::write(&source, block).unwrap();
    let program = folder.path().join("program");
    common::compile(&program, compiler, &[standard], &[source.to_str().unwrap()]);
    let printed = succeeded(&Command::new(program).current_dir(folder.path()).output().unwrap());
    (folder, printed)
}

#[test]
fn the_programs_of_the_page_run() {
    let (folder, printed) = run_of_page("c", "cc", "-std=c99");
    assert_eq!(printed, "");
    let outcome = Outcome::read(&folder.path().join("runs/from-c")).unwrap();
    assert_eq!(outcome.summary.flows.completed, 8 + 8);
    let (_, printed) = run_of_page("cpp", "c++", "-std=c++17");
    let (messages, last) = printed.split_once(" messages, the last one at ").unwrap();
    let last: f64 = last.trim_end().strip_suffix(" us").unwrap().parse().unwrap();
    // Each of the eight computes and sends four times; a packet of each message has to cross two links.
    assert_eq!(messages, "32");
    assert!((20.0..200.0).contains(&last), "{printed}");
}

#[test]
fn the_header_is_cplusplus_too() {
    let output = Command::new("c++")
        .args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-fsyntax-only", "-x", "c++"])
        .arg(here().join("include/netloom.h"))
        .output()
        .unwrap_or_else(|error| panic!("this test needs a C++ compiler called c++: {error}"));
    succeeded(&output);
}
