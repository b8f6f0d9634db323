use super::*;
use crate::file::Form;
use netloom_scenario::{Node, Source};

const TEXT: &str = r#"
title = "t"
repetitions = 2
scenario = { seed = 5, topology = { kind = "fat-tree", k = 4 } }

[[axis]]
name = "size"
cases = [
  { label = "small tree", set = { "topology.k" = 4 } },
  { label = "cross", set = { topology = { kind = "crossbar" } }, small = { "workload.ranks" = 4 }, full = { "workload.ranks" = 16 } },
]

[[axis]]
name = "jitter"
only = "cross"
field = "workload.start_jitter"
values = ["0us", "1us"]
full_values = ["0us", "1us", "2us"]

[small]
repetitions = 1
set = { "workload.size" = "1KiB" }

[full]
set = { "workload.size" = "1MiB" }

[[claims]]
id = "C1"
text = "it holds"
expression = 'p99_fct("cross", "jitter=1us") <= 2 * p99_fct("small tree")'
published = 1.5
"#;

fn study_in(form: Form, text: &str) -> Result<Study, Problems> {
    Study::read(&Node::parse(&Source::new("study.toml", text))?, form)
}

fn study(text: &str) -> Result<Study, Problems> {
    study_in(Form::Middle, text)
}

fn scenario(cell: &Cell) -> Scenario {
    match cell.work() {
        Work::Run(scenario, _) => *scenario,
        Work::Measure(..) => panic!("a measurement"),
    }
}

#[test]
fn cells_are_all_combinations_with_every_seed() {
    let cells = study(TEXT).unwrap().plan().unwrap().cells;
    let names: Vec<(String, u64)> = cells.iter().map(|cell| (cell.point.name(), cell.seed())).collect();
    let expected = [
        ("size=small tree", 5),
        ("size=small tree", 6),
        ("size=cross jitter=0us", 5),
        ("size=cross jitter=0us", 6),
        ("size=cross jitter=1us", 5),
        ("size=cross jitter=1us", 6),
    ];
    assert_eq!(names, expected.map(|(name, seed)| (name.to_owned(), seed)));
    assert!(cells.windows(2).all(|pair| scenario(&pair[0]) != scenario(&pair[1])));
}

/// A cell beyond what TOML can write could not be read back.
#[test]
fn the_last_seed_is_one_that_can_be_written() {
    let with = |seed: u64| study(&TEXT.replace("seed = 5", &format!("seed = {seed}"))).unwrap().plan();
    let last = with(MAX_SEED - 1).unwrap().cells.pop().unwrap();
    assert_eq!(last.seed(), MAX_SEED);
    let written = scenario(&last).to_toml().unwrap();
    let again = Scenario::read(&Node::parse(&Source::new("cell.toml", written)).unwrap()).unwrap();
    assert_eq!(again, scenario(&last));
    let problems = with(MAX_SEED).unwrap_err().to_string();
    let expected = "seed: expected at most 9223372036854775806, so that the seeds of all 2 repetitions fit";
    assert!(problems.contains(expected), "{problems}");
}

#[test]
fn the_small_form_changes_seeds_and_fields() {
    let cells = study_in(Form::Small, TEXT).unwrap().plan().unwrap().cells;
    assert_eq!(cells.len(), 3);
    assert!(cells.iter().all(|cell| scenario(cell).to_toml().unwrap().contains("size = \"1KiB\"")));
    assert_eq!(scenario(&cells[1]).workload.options.ranks, Some(4));
}

#[test]
fn a_field_that_every_case_sets_is_not_set_from_outside() {
    let set = |changes: &[&str]| {
        let mut study = study(TEXT).unwrap();
        study.set(&changes.iter().map(|&change| change.to_owned()).collect::<Vec<_>>()).unwrap();
        study.plan()
    };
    // Each is used in some cells, by those cases that do not set it.
    set(&["topology.rate=9Gbps", "workload.start_jitter=3us", "topology.kind=fat-tree"]).unwrap();
    let text = TEXT.replace("set = { topology = { kind = \"crossbar\" } }", "set = { \"topology.k\" = 8 }");
    let mut study = study(&text).unwrap();
    study.set(&["topology.k=2".to_owned()]).unwrap();
    let problem = study.plan().unwrap_err().to_string();
    assert!(
        problem.starts_with("--set:1:12: topology.k: the axes of this study set it in every cell"),
        "{problem}"
    );
}

#[test]
fn what_a_form_sets_as_a_whole_takes_the_place_of_the_cases_own() {
    let text = "title = 't'\nscenario = { topology = { rate = '9Gbps' } }\n[[axis]]\nname = 'a'\ncases = [{ label = 'x', \
                set = { topology = { kind = 'fat-tree', k = 4, latency = '7ns' }, 'topology.cores' = 2 }, \
                small = { topology = { kind = 'fat-tree', k = 8 } } }]\n";
    let cells = study_in(Form::Small, text).unwrap().plan().unwrap().cells;
    let found = scenario(&cells[0]).to_toml().unwrap();
    assert!(found.contains("k = 8") && found.contains("rate = \"9Gbps\""), "{found}");
    assert!(!found.contains("7ns") && !found.contains("cores"), "{found}");
}

#[test]
fn a_study_without_a_full_form_is_not_run_in_one() {
    let text = "title = 't'\nscenario = { topology = { kind = 'fat-tree', k = 4 } }\n[[axis]]\nname = 'a'\n\
                cases = [{ label = 'x', set = { 'workload.size' = '1KiB' } }]\n";
    let problem = study_in(Form::Full, text).unwrap_err().to_string();
    assert!(problem.contains("this study has no full form"), "{problem}");
    let small = study_in(Form::Small, text).unwrap().plan().unwrap();
    assert!(small.warnings[0].starts_with("the study has no small form"), "{:?}", small.warnings);
    for text in [
        format!("{text}[full]\nrepetitions = 2\n"),
        text.replace("} }]", "}, full = { 'workload.size' = '1MiB' } }]"),
    ] {
        study_in(Form::Full, &text).unwrap();
    }
}

#[test]
fn the_full_form_changes_what_it_says_and_nothing_of_the_small_one() {
    let cells = study_in(Form::Full, TEXT).unwrap().plan().unwrap().cells;
    assert_eq!(cells.len(), 8);
    assert!(cells.iter().all(|cell| scenario(cell).to_toml().unwrap().contains("size = \"1MiB\"")));
    assert_eq!(scenario(&cells[7]).workload.options.ranks, Some(16));
    assert_eq!(cells[7].point.name(), "size=cross jitter=2us");
    // What a form changes is read in every form, so that no mistake waits for hours.
    for text in [TEXT.replace("[full]\nset", "[full]\nsets"), TEXT.replace("full = {", "full = 1, fulls = {")]
    {
        assert!(study(&text).is_err());
    }
}

#[test]
fn an_empty_table_turns_on_what_is_absent_otherwise() {
    let text = TEXT.replace("{ \"workload.ranks\" = 4 }", "{ \"fabric.qcn\" = {} }");
    let cells = study_in(Form::Small, &text).unwrap().plan().unwrap().cells;
    let has_qcn = |cell: &Cell| scenario(cell).fabric.options.qcn.is_some();
    assert_eq!(cells.iter().map(has_qcn).collect::<Vec<_>>(), [false, true, true]);
}

/// Whether an axis is over kinds, over tables or over cases, and whether an axis over fields comes before it or after it.
#[test]
fn networks_side_by_side_keep_what_both_have() {
    let axes = [
        "field = 'topology.kind'\nvalues = ['fat-tree', 'slim-fly']",
        "field = 'topology'\nvalues = ['fat-tree', 'slim-fly']",
        "field = 'topology'\nvalues = [{ kind = 'fat-tree' }, { kind = 'slim-fly' }]",
        "cases = [{ label = 'fat-tree', set = { 'topology.kind' = 'fat-tree' } }, { label = 'slim-fly', set = { topology = { kind = 'slim-fly' } } }]",
    ];
    for axis in axes {
        let text = format!(
            "title = 't'\n[scenario]\ntopology = {{ kind = 'fat-tree', k = 4, rate = '100Gbps' }}\nrouting = {{ preset = 'ecmp', flow_timeout = '9us' }}\n\
             [[axis]]\nname = 'latency'\nfield = 'topology.latency'\nvalues = ['1us', '2us']\n\
             [[axis]]\nname = 'network'\n{axis}\n\
             [[axis]]\nname = 'scheme'\nfield = 'routing.preset'\nvalues = ['ecmp', 'flowcut']\n"
        );
        let plan = study(&text).unwrap().plan().unwrap();
        assert_eq!(plan.cells.len(), 8);
        for cell in &plan.cells {
            let text = scenario(cell).to_toml().unwrap();
            let latency = cell.point.labels[0].1.as_str();
            for kept in ["rate = \"100Gbps\"", &format!("latency = \"{latency}\""), "flow_timeout = \"9us\""]
            {
                assert!(text.contains(kept), "{axis}\n{kept}\n{text}");
            }
        }
        let expected = "topology.k: left out, as topology.kind = \"slim-fly\" was chosen after it and has no such field (4 of 8 points: \
                        latency=1us network=slim-fly scheme=ecmp; ";
        assert!(plan.warnings.iter().any(|it| it.starts_with(expected)), "{axis}\n{:#?}", plan.warnings);
    }
}

#[test]
fn a_value_of_which_later_kinds_leave_nothing_is_refused() {
    let text = "title = 't'\n[scenario]\ntopology = { kind = 'fat-tree' }\n\
                [[axis]]\nname = 'size'\ncases = [{ label = 'small', set = { 'topology.k' = 4 } }]\n\
                [[axis]]\nname = 'network'\nfield = 'topology.kind'\nvalues = ['fat-tree', 'crossbar']\n";
    let problems = study(text).unwrap().plan().unwrap_err().to_string();
    let expected = "study.toml:6:37: topology.k: size = small has no effect: it is left out, as topology.kind = \"crossbar\" was chosen after it";
    assert!(problems.starts_with(expected), "{problems}");
    // What means something else, too, may lose a field; it is named.
    let text = text.replace("'topology.k' = 4", "'topology.k' = 4, 'workload.size' = '1KiB'");
    let plan = study(&text).unwrap().plan().unwrap();
    assert!(
        plan.warnings[0].ends_with("(1 of 2 points: size=small network=crossbar)"),
        "{:?}",
        plan.warnings
    );
}

#[test]
fn what_runs_would_warn_of_is_told_once() {
    let text = "title = 't'\n[scenario]\ntopology = { kind = 'fat-tree', k = 4 }\ntransport = { preset = 'dctcp', congestion = { initial_window = 300 } }\n\
                [[axis]]\nname = 'size'\nfield = 'workload.size'\nvalues = ['1KiB', '2KiB']\n";
    let warnings = study(text).unwrap().plan().unwrap().warnings;
    assert_eq!(
        warnings,
        ["transport.congestion: DCTCP reacts to ECN marks, and no switch marks; set `fabric.ecn`"]
    );
}

#[test]
fn a_problem_of_every_cell_is_told_once_and_where_it_is_written() {
    let text = TEXT.replace("workload.start_jitter", "workload.start_jiter");
    let problems = study(&text).unwrap().plan().unwrap_err();
    assert_eq!(problems.0.len(), 1, "{problems}");
    assert!(
        problems.to_string().contains("study.toml:16:9: workload.start_jiter: unknown field"),
        "{problems}"
    );
}

#[test]
fn mistakes_of_claims_are_found_before_anything_runs() {
    let cases = [
        (
            "\"small tree\")'",
            "\"smal tree\")'",
            "no cell carries the label \"smal tree\"; did you mean `small tree`?",
        ),
        (
            "p99_fct(\"small tree\")",
            "max_over(\"siz\", p99_fct())",
            "claim C1: there is no axis `siz`; did you mean `size`?",
        ),
        (
            "<= 2 * p99_fct",
            "<= 2 * p98_fct",
            "study.toml:30:53: claims.0.expression: claim C1: there is no metric `p98_fct`; the nearest are fct.p99",
        ),
        ("<= 2 *", "- 2 *", "claim C1: expected a comparison, found a number"),
        ("2 * p99_fct(\"small tree\")", "abs(1, 2)", "claim C1: `abs` takes one number"),
        (
            "\"jitter=1us\"",
            "\"cross\"",
            "claim C1: this selects 2 cells (size=cross jitter=0us; size=cross jitter=1us)",
        ),
        (
            "p99_fct(\"small tree\")",
            "p99_fct(\"small tree\", \"jitter=1us\")",
            "claim C1: no cell carries all these labels",
        ),
        (
            "published =",
            "value = '1 < 2'\npublished =",
            "claims.0.value: claim C1: expected a number, found a comparison",
        ),
    ];
    for (from, to, expected) in cases {
        let text = TEXT.replace(from, to);
        let problems = study(&text).unwrap().plan().unwrap_err().to_string();
        assert!(problems.contains(expected), "{expected}\n{problems}");
    }
    // What a run may have is known by the names that the scenario gives.
    let windows = "[scenario.measure]\nwindows = [{ name = 'on', from = '0us', until = '1us' }]\n\n[[axis]]\nname = \"size\"";
    let text = TEXT
        .replace("scenario = {", "[scenario]\n# {")
        .replace("[[axis]]\nname = \"size\"", windows)
        .replace(
            "2 * p99_fct(\"small tree\")",
            "windows.on.throughput(\"small tree\") + by_size.10000.fct.mean(\"small tree\")",
        );
    let text =
        text.replace("repetitions = 2\n", "").replace("title = \"t\"", "title = \"t\"\nrepetitions = 2");
    study(&text).unwrap().plan().unwrap();
}

#[test]
fn a_study_of_more_cells_than_anybody_waits_for_is_refused_at_once() {
    let values: Vec<String> = (0..1000).map(|us| format!("'{us}us'")).collect();
    let axis = |name: &str| {
        format!(
            "[[axis]]\nname = '{name}'\nfield = 'workload.start_jitter'\nvalues = [{}]\n",
            values.join(",")
        )
    };
    let text = format!("title = 't'\nscenario = {{}}\nrepetitions = 100\n{}{}", axis("a"), axis("b"));
    let refused = |text: &str| study(text).unwrap().plan().unwrap_err().to_string();
    let problem = refused(&text);
    assert!(
        problem.contains(
            "axis: expected at most 100000 cells, found up to 100000000 (1000 a × 1000 b × 100 seeds)"
        ),
        "{problem}"
    );
    assert!(problem.starts_with("study.toml:4:1") && problem.contains("`max_cells`"), "{problem}");
    let ten = (0..10).map(|i| axis(&i.to_string())).collect::<String>();
    assert!(
        refused(&format!("title = 't'\nscenario = {{}}\n{ten}"))
            .contains("found up to 1000000000000000000000000000000 (")
    );
    let text = TEXT.replace("repetitions = 2", "repetitions = 2\nmax_cells = 5");
    assert!(
        refused(&text).contains("found up to 8"),
        "six, but not known to be fewer before they are counted"
    );
    let none = refused(&text.replace("max_cells = 5", "max_cells = 0"));
    assert!(none.starts_with("study.toml:4:13: max_cells: expected at least 1, found 0"), "{none}");
    study(&text.replace("max_cells = 5", "max_cells = 6")).unwrap().plan().unwrap();
}

#[test]
fn cases_and_axes_apply_to_the_labels_they_name() {
    let names = |text: &str| -> Vec<String> {
        study(text).unwrap().plan().unwrap().cells.iter().map(|cell| cell.point.name()).collect()
    };
    let text = "title = 't'\n[analysis]\nmeasurement = 'structure'\n[[axis]]\nname = 'n'\ncases = [\n\
        { label = 'a', set = { topology = { kind = 'complete', switches = 4 } } },\n\
        { label = 'b', set = { topology = { kind = 'complete', switches = 5 } } },\n\
        { label = 'c', set = { topology = { kind = 'complete', switches = 6 } } },\n]\n\
        [[axis]]\nname = 'm'\ncases = [\n{ label = 'all', set = {} },\n{ label = 'some', only = ['a', 'n=c'], set = { measurement = 'conflicts' } },\n]\n\
        [[axis]]\nname = 'p'\nonly = 'some'\nfield = 'measurement.placement'\nvalues = ['random', 'identity']\n";
    assert_eq!(
        names(text),
        [
            "n=a m=all",
            "n=a m=some p=random",
            "n=a m=some p=identity",
            "n=b m=all",
            "n=c m=all",
            "n=c m=some p=random",
            "n=c m=some p=identity"
        ]
    );
    let problem = study(&text.replace("only = 'some'", "only = 'sum'")).unwrap_err().to_string();
    assert!(
        problem
            .contains("axis.2.only: no axis before it has the label `sum` (valid here: a, b, c, all, some)"),
        "{problem}"
    );
    let problem = study(&text.replace("'n=c'", "'m=all'")).unwrap_err().to_string();
    assert!(problem.contains("axis.1.only: no axis before it has the label `m=all`"), "{problem}");
    let problem = study(&text.replace("name = 'p'", "name = 'seed'")).unwrap_err().to_string();
    assert!(problem.contains("axis.2.name: `seed` is a column of every table"), "{problem}");
}

#[test]
fn a_published_table_is_a_claim_for_each_entry() {
    let text = "title = 't'\nanalysis = { measurement = 'structure' }\n[[axis]]\nname = 'n'\ncases = [{ label = 'k4-x', set = { topology = { kind = 'complete', switches = 4 } } }]\n\
        [[tables]]\nid = 'T'\ntext = 'sizes'\ncolumns = ['routers', 'radix']\ntolerances = [0, 0.5]\nsource = 's'\nrows.k4-x = [4, nan]\n";
    let read = study(text).unwrap();
    assert_eq!(
        read.claims.iter().map(|claim| (claim.id.as_str(), claim.published.as_str())).collect::<Vec<_>>(),
        [("T.k4-x.routers", "4 ± 0")]
    );
    read.plan().unwrap();
    let shares = study(&text.replace("[0, 0.5]", "['12.5%', 0.5]")).unwrap();
    assert_eq!(shares.claims[0].published, "4 ± 12.5%");
    shares.plan().unwrap();
    let cases = [
        ("[4, nan]", "[4]", "tables.0.rows.k4-x: expected a list of 2 values"),
        (
            "[4, nan]",
            "['a', 1]",
            "study.toml:12:14: tables.0.rows.k4-x.0: expected a number, or nan where none is published, found string",
        ),
        ("[0, 0.5]", "[0]", "tables.0.tolerances: expected one for each of the 2 columns, found 1"),
        ("[0, 0.5]", "[0, '-1%']", "tables.0.tolerances.1: expected 0 or more, found \"-1%\""),
        (
            "[0, 0.5]",
            "[0, '1']",
            "tables.0.tolerances.1: expected a number, or a percentage such as \"3%\", found \"1\"",
        ),
        (
            "source = 's'",
            "source = 's'\nnotes = { 'k4.radix' = '' }",
            "tables.0.notes: expected the row and column of a published value, found `k4.radix`",
        ),
        ("rows.k4-x", "rows.k4-y", "no cell carries the label \"k4-y\"; did you mean `k4-x`?"),
        ("'routers',", "'switches',", "claim T.k4-x.switches: there is no metric `switches`"),
    ];
    for (from, to, expected) in cases {
        let problems = study(&text.replace(from, to))
            .and_then(|study| study.plan().map(|_| ()))
            .unwrap_err()
            .to_string();
        assert!(problems.contains(expected), "{expected}\n{problems}");
    }
}

#[test]
fn a_broken_study_is_told_field_by_field() {
    let text = "titel = \"t\"\nscenario = 3\nrepetitions = 0\n[[axis]]\nname = \"a\"\n\
                [[claims]]\nid = \"x\"\ntext = \"\"\nexpression = \"1 <\"\nuse = \"gaet\"\n";
    let problems = study(text).unwrap_err().to_string();
    for expected in [
        "study.toml:1:1: titel: unknown field `titel` (did you mean `title`?",
        "study.toml:2:12: scenario: expected a file's name or a table, found number 3",
        "study.toml:3:15: repetitions: expected 1 to 10000, found 0",
        "axis.0: expected either `field` and `values`, or `cases`",
        "study.toml:9:18: claims.0.expression: expected a number, a metric or `(`, found the end",
        "claims.0.use: there is no use `gaet` (did you mean `gate`?",
    ] {
        assert!(problems.contains(expected), "{expected}\n{problems}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(at in 0..800usize, length in 0..40usize, text in "[-a-z0-9=.\"'\\[\\]{},<(# \n]{0,12}") {
        let cut = |at: usize| (0..=at.min(TEXT.len())).rev().find(|&i| TEXT.is_char_boundary(i)).unwrap_or(0);
        let changed = format!("{}{text}{}", &TEXT[..cut(at)], &TEXT[cut(at + length)..]);
        if let Ok(study) = study(&changed) {
            let _ = study.plan();
        }
    }
}
