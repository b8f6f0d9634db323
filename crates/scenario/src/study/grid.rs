//! From axes to cells.

use std::collections::BTreeMap;

use crate::document::Node;
use crate::run::{Ready, prepare};
use crate::scenario::Scenario;
use crate::source::{Problem, Problems};
use crate::study::expression::Metrics;
use crate::study::file::{Axis, Point, Study, apply};
use crate::study::results::Results;

/// One run of a study.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Axis and label, in the order of the axes; axes that do not apply are left out.
    pub labels: Vec<(String, String)>,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// What is run.
    pub scenario: Scenario,
    /// The scenario as it was written, with the axes' values set.
    pub document: Node,
}

impl Cell {
    /// The point of the grid in words, e.g. `scheme=ecmp load=0.5`; repetitions of a point share it.
    pub fn point(&self) -> String {
        let labels: Vec<String> = self.labels.iter().map(|(axis, label)| format!("{axis}={label}")).collect();
        if labels.is_empty() { "the scenario".to_owned() } else { labels.join(" ") }
    }

    /// Makes the cell ready to run.
    ///
    /// # Errors
    /// What does not fit, placed where it is written.
    pub fn prepare(&self) -> Result<Ready, Problems> {
        prepare(&self.scenario, &self.document)
    }
}

impl Study {
    /// Every run of the study: all combinations of the axes' values, each with every seed.
    ///
    /// # Errors
    /// What is wrong with the scenario of any cell; a problem that all cells share is told once.
    pub fn cells(&self) -> Result<Vec<Cell>, Problems> {
        let mut cells = Vec::new();
        let mut problems: Vec<Problem> = Vec::new();
        for points in self.combinations() {
            let mut document = self.scenario.clone();
            let mut found = Vec::new();
            for (_, point) in &points {
                apply(&mut document, &point.set, &mut found);
            }
            let labels: Vec<(String, String)> =
                points.iter().map(|(axis, point)| (axis.name.clone(), point.label.clone())).collect();
            match Scenario::read(&document) {
                Ok(scenario) => cells.extend((0..self.repetitions).map(|repetition| {
                    let seed = scenario.seed.wrapping_add(u64::from(repetition));
                    let scenario = Scenario { seed, ..scenario.clone() };
                    Cell { labels: labels.clone(), repetition, scenario, document: document.clone() }
                })),
                Err(more) => found.extend(more.0),
            }
            problems.extend(found);
        }
        if problems.is_empty() { Ok(cells) } else { Err(Problems::in_order(problems)) }
    }

    fn combinations(&self) -> Vec<Vec<(&Axis, &Point)>> {
        let mut combinations: Vec<Vec<(&Axis, &Point)>> = vec![Vec::new()];
        for axis in &self.axes {
            combinations = combinations
                .into_iter()
                .flat_map(|so_far| {
                    let applies = axis
                        .only
                        .as_ref()
                        .is_none_or(|only| so_far.iter().any(|(_, point)| point.label == *only));
                    let points: Vec<Option<&Point>> =
                        if applies { axis.points.iter().map(Some).collect() } else { vec![None] };
                    points.into_iter().map(move |point| {
                        let mut next = so_far.clone();
                        next.extend(point.map(|point| (axis, point)));
                        next
                    })
                })
                .collect();
        }
        combinations
    }

    /// Checks before anything runs that the labels and axes in claims and in `only` exist.
    ///
    /// # Errors
    /// Every label that no cell carries, and every axis that there is not.
    pub fn check_labels(&self, cells: &[Cell]) -> Result<(), Problems> {
        let results = Results::new(cells.iter().map(|cell| (cell, BTreeMap::new())));
        let mut problems = Vec::new();
        for claim in &self.claims {
            let mut refuse = |message: String| {
                problems.push(Problem::new(format!("claims.{}", claim.id), message).at(&claim.place));
            };
            for expression in [Some(&claim.expression), claim.value.as_ref()].into_iter().flatten() {
                let labels = expression.metrics().into_iter().flat_map(|(_, labels)| labels);
                labels.filter_map(|label| results.find_label(&label).err()).for_each(&mut refuse);
                expression.axes().iter().filter_map(|axis| results.axis(axis).err()).for_each(&mut refuse);
            }
        }
        for axis in &self.axes {
            if let Some(only) = &axis.only
                && results.find_label(only).is_err()
            {
                let field = format!("axis.{}.only", axis.name);
                problems.push(Problem::new(field, format!("no cell carries the label `{only}`")));
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(Problems(problems)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    const TEXT: &str = r#"
title = "t"
repetitions = 2
scenario = { seed = 5, topology = { kind = "fat-tree", k = 4 } }

[[axis]]
name = "size"
cases = [
  { label = "small tree", set = { "topology.k" = 4 } },
  { label = "cross", set = { topology = { kind = "crossbar" } }, small = { "workload.ranks" = 4 } },
]

[[axis]]
name = "jitter"
only = "cross"
field = "workload.start_jitter"
values = ["0us", "1us"]

[small]
repetitions = 1
set = { "workload.size" = "1KiB" }

[[claims]]
id = "C1"
text = "it holds"
expression = 'p99_fct("cross", "jitter=1us") <= 2 * p99_fct("small tree")'
published = 1.5
"#;

    fn study(text: &str, small: bool) -> Result<Study, Problems> {
        Study::read(&Node::parse(&Source::new("study.toml", text))?, small)
    }

    #[test]
    fn cells_are_all_combinations_with_every_seed() {
        let cells = study(TEXT, false).unwrap().cells().unwrap();
        let names: Vec<(String, u64)> = cells.iter().map(|cell| (cell.point(), cell.scenario.seed)).collect();
        let expected = [
            ("size=small tree", 5),
            ("size=small tree", 6),
            ("size=cross jitter=0us", 5),
            ("size=cross jitter=0us", 6),
            ("size=cross jitter=1us", 5),
            ("size=cross jitter=1us", 6),
        ];
        assert_eq!(names, expected.map(|(name, seed)| (name.to_owned(), seed)));
        assert!(cells.windows(2).all(|pair| pair[0].scenario != pair[1].scenario));
    }

    #[test]
    fn the_small_form_changes_seeds_and_fields() {
        let cells = study(TEXT, true).unwrap().cells().unwrap();
        assert_eq!(cells.len(), 3);
        assert!(cells.iter().all(|cell| cell.scenario.to_toml().unwrap().contains("size = \"1KiB\"")));
        assert_eq!(cells[1].scenario.workload.options.ranks, Some(4));
    }

    #[test]
    fn an_empty_table_turns_on_what_is_absent_otherwise() {
        let text = TEXT.replace("{ \"workload.ranks\" = 4 }", "{ \"fabric.qcn\" = {} }");
        let cells = study(&text, true).unwrap().cells().unwrap();
        let has_qcn = |cell: &Cell| cell.scenario.fabric.options.qcn.is_some();
        assert_eq!(cells.iter().map(has_qcn).collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn a_problem_of_every_cell_is_told_once_and_where_it_is_written() {
        let text = TEXT.replace("workload.start_jitter", "workload.start_jiter");
        let problems = study(&text, false).unwrap().cells().unwrap_err();
        assert_eq!(problems.0.len(), 1, "{problems}");
        assert!(
            problems.to_string().contains("study.toml:16:9: workload.start_jiter: unknown field"),
            "{problems}"
        );
    }

    #[test]
    fn a_claim_about_no_cell_is_refused_before_anything_runs() {
        let text = TEXT.replace("p99_fct(\"small tree\")", "p99_fct(\"smal tree\")");
        let study = study(&text, false).unwrap();
        let problems = study.check_labels(&study.cells().unwrap()).unwrap_err().to_string();
        assert!(
            problems.contains("no cell carries the label \"smal tree\"; did you mean `small tree`?"),
            "{problems}"
        );
        let text = TEXT.replace("p99_fct(\"small tree\")", "max_over(\"siz\", p99_fct())");
        let study = self::study(&text, false).unwrap();
        let problems = study.check_labels(&study.cells().unwrap()).unwrap_err().to_string();
        assert!(problems.contains("claims.C1: there is no axis `siz`; did you mean `size`?"), "{problems}");
    }

    #[test]
    fn a_broken_study_is_told_field_by_field() {
        let text = "titel = \"t\"\nscenario = 3\nrepetitions = 0\n[[axis]]\nname = \"a\"\n\
                    [[claims]]\nid = \"x\"\ntext = \"\"\nexpression = \"1 <\"\nuse = \"gaet\"\n";
        let problems = study(text, false).unwrap_err().to_string();
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
            if let Ok(study) = study(&changed, false)
                && let Ok(cells) = study.cells()
            {
                let _ = study.check_labels(&cells);
            }
        }
    }
}
