//! The checked scenario: every axis with its kind and parameters.

use std::path::PathBuf;

use netloom_topology::{FatTree, Topology};
use netloom_units::kind::describe;
use netloom_workload::{Options, Pattern, Permutation, Workload};
use serde::Serialize;

use crate::document::{Node, Value};
use crate::section::Section;
use crate::source::{Problem, Problems};

/// A scenario whose every field is known, in range by itself, and spelt right.
///
/// Whether the axes fit each other (a workload on its network, a selector at its placement) is checked when the
/// simulation is made ready.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What people call it; names the outcome folder.
    pub name: String,
    /// Seed of every random choice.
    pub seed: u64,
    /// What is wired to what.
    pub topology: Topology,
    /// Who sends what, when.
    pub workload: Workload,
}

impl Default for Scenario {
    /// One permutation of 8 MiB messages on Flowcut's 1024-host fat tree.
    fn default() -> Self {
        Scenario {
            name: "scenario".to_owned(),
            seed: 1,
            topology: Topology::FatTree(FatTree::default()),
            workload: Workload::new(Pattern::Permutation(Permutation::default())),
        }
    }
}

/// The scenario as it is written, table by table.
#[derive(Serialize)]
struct Written<'a> {
    name: &'a str,
    seed: u64,
    topology: &'a Topology,
    workload: WrittenWorkload<'a>,
}

#[derive(Serialize)]
struct WrittenWorkload<'a> {
    #[serde(flatten)]
    pattern: &'a Pattern,
    #[serde(flatten)]
    options: &'a Options,
}

/// Fields that hold the name of a file.
const FILES: [&[&str]; 3] = [&["topology", "path"], &["workload", "file"], &["workload", "size", "file"]];

impl Scenario {
    /// Reads and checks a scenario. What is not written is as in [`Scenario::default`].
    ///
    /// # Errors
    /// Everything that is wrong with it, as far as it can be told field by field.
    pub fn read(document: &Node) -> Result<Self, Problems> {
        let mut complete = Node::from_value("default", &Scenario::default().written())?;
        complete.merge(document.clone());
        resolve_files(&mut complete);
        let mut problems = Vec::new();
        match read(&complete, &mut problems) {
            Some(scenario) if problems.is_empty() => Ok(scenario),
            _ => Err(Problems::in_order(problems)),
        }
    }

    /// The scenario as TOML with every default filled in and the routing preset expanded; reading it gives the same
    /// scenario.
    ///
    /// # Errors
    /// A value that TOML cannot express.
    pub fn to_toml(&self) -> Result<String, Problem> {
        toml::to_string(&self.written()).map_err(|error| Problem::new("", error.to_string()))
    }

    /// The files that the scenario names, beside its own.
    pub fn files(&self) -> Vec<PathBuf> {
        let document = Node::from_value("scenario", &self.written());
        let document = document.as_ref().ok();
        FILES
            .iter()
            .filter_map(|path| document?.at(path.iter().copied())?.as_str().map(PathBuf::from))
            .collect()
    }

    fn written(&self) -> Written<'_> {
        Written {
            name: &self.name,
            seed: self.seed,
            topology: &self.topology,
            workload: WrittenWorkload { pattern: &self.workload.pattern, options: &self.workload.options },
        }
    }
}

fn read(document: &Node, problems: &mut Vec<Problem>) -> Option<Scenario> {
    let mut root = Section::new(document, "", problems)?;
    let name = root.required("name");
    let seed = root.required("seed");
    let topology = root.required_kind("topology");
    let workload = root.node("workload");
    root.finish();
    let workload = workload.and_then(|node| read_workload(&node, problems));
    Some(Scenario { name: name?, seed: seed?, topology: topology?, workload: workload? })
}

/// A workload's pattern and the options that hold for every pattern share one table.
fn read_workload(node: &Node, problems: &mut Vec<Problem>) -> Option<Workload> {
    if node.as_table().is_none() {
        return Section::read_kind(node, "workload", problems).map(Workload::new);
    }
    let options: Vec<String> =
        describe::<Options>("options").fields.into_iter().map(|field| field.name).collect();
    let mut section = Section::new(node, "workload", problems)?;
    let read_options = section.some_of(&options);
    let pattern = section.rest_as_kind(&options);
    Some(Workload { pattern: pattern?, options: read_options? })
}

/// Makes file names absolute, so that a scenario means the same wherever it is read again.
fn resolve_files(document: &mut Node) {
    for path in FILES {
        let Some(node) = document.at_mut(path) else { continue };
        let folder = node.place.source.folder().to_owned();
        if let Value::String(file) = &mut node.value
            && let Ok(absolute) = std::path::absolute(folder.join(&*file))
        {
            *file = absolute.display().to_string();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::apply_override;
    use crate::source::Source;

    fn read(text: &str) -> Result<Scenario, Problems> {
        Scenario::read(&Node::parse(&Source::new("s.toml", text))?)
    }

    #[test]
    fn an_empty_file_is_the_default_scenario() {
        assert_eq!(read(""), Ok(Scenario::default()));
    }

    #[test]
    fn what_explain_prints_reads_back_as_the_same_scenario() {
        for text in [
            "",
            "seed = 7\n[topology]\nkind = \"fat-tree\"\nk = 8\nrate = \"100Gbps\"\n",
            "[topology]\nkind = \"crossbar\"\n[workload]\nkind = \"incast\"\nranks = 12\nstart_jitter = \"1us\"\n",
        ] {
            let scenario = read(text).unwrap();
            let printed = scenario.to_toml().unwrap();
            assert_eq!(read(&printed), Ok(scenario), "{printed}");
        }
    }

    #[test]
    fn a_table_without_kind_changes_the_default_kind() {
        let scenario = read("[topology]\nk = 4\n").unwrap();
        let expected = FatTree { k: Some(4), ..FatTree::default() };
        assert_eq!(scenario.topology, Topology::FatTree(expected));
    }

    #[test]
    fn problems_of_all_sections_are_reported_together() {
        let problems = read(
            "sede = 2\n[topology]\nkind = \"fat-treee\"\n[workload]\nkind = \"incast\"\nranked = 3\nplacement = \"left\"\n",
        )
        .unwrap_err()
        .to_string();
        for expected in [
            "s.toml:1:1: sede: unknown field `sede` (did you mean `seed`?",
            "s.toml:3:8: topology.kind: there is no topology `fat-treee` (did you mean `fat-tree`?",
            "s.toml:6:1: workload.ranked: unknown field `ranked` of `incast` (did you mean `ranks`?",
            "s.toml:7:13: workload.placement: there is no placement `left` (valid here: linear, random)",
        ] {
            assert!(problems.contains(expected), "{problems}");
        }
    }

    #[test]
    fn a_seed_beyond_what_toml_can_write_is_refused() {
        let problems = read("seed = 99999999999999999999\n").unwrap_err().to_string();
        assert!(problems.contains("s.toml:1:8: the number 99999999999999999999 does not fit"), "{problems}");
        assert!(
            read("seed = -1\n").unwrap_err().to_string().contains("seed: expected u64, found number `-1`")
        );
    }

    #[test]
    fn an_override_is_pointed_at_in_its_own_text() {
        let mut document = Node::parse(&Source::new("s.toml", "")).unwrap();
        apply_override(&mut document, "topology.rate=200 Gbit").unwrap();
        let problems = Scenario::read(&document).unwrap_err().to_string();
        assert!(problems.starts_with("--set:1:15: topology.rate: expected a rate"), "{problems}");
    }

    #[test]
    fn file_names_start_from_the_folder_of_their_text() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("s.toml");
        std::fs::write(&file, "[topology]\nkind = \"edge-list\"\npath = \"net.txt\"\n").unwrap();
        let document = Node::parse(&Source::read(&file).unwrap()).unwrap();
        let printed = Scenario::read(&document).unwrap().to_toml().unwrap();
        assert!(printed.contains(&folder.path().join("net.txt").display().to_string()), "{printed}");
    }
}
