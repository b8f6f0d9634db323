//! A measurement of a network: the other kind of work that a cell may do.

use std::path::{Path, PathBuf};

use netloom_scenario::{Node, Place, Problem, Problems, Section, Settled, settle};
use netloom_topology::{BuildContext, Network, NetworkError, RouterGraph, Topology};
use serde::Serialize;

use crate::measure::{Measurement, Quantities};

/// A network and what is measured of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Seed of random networks and of everything that the measurement draws.
    pub seed: u64,
    /// The network.
    pub topology: Topology,
    /// What is measured.
    pub measurement: Measurement,
}

/// Where an analysis names files.
const FILES: [&[&str]; 2] = [&["topology", "path"], &["measurement", "traffic", "path"]];

impl Analysis {
    /// Reads and checks an analysis: a table with `topology`, `measurement` and, unless it is 1, `seed`.
    ///
    /// # Errors
    /// Everything that is wrong with it, as far as it can be told field by field.
    pub fn read(document: &Node) -> Result<Self, Problems> {
        Self::settle(document).map(|settled| settled.value)
    }

    /// The same; also says which fields were left out, as kinds chosen after them do not have them.
    ///
    /// # Errors
    /// As [`Analysis::read`].
    pub fn settle(document: &Node) -> Result<Settled<Self>, Problems> {
        settle(document, Self::read_all)
    }

    /// Reads every field of a document.
    fn read_all(document: &Node) -> Result<Self, Problems> {
        let mut document = document.clone();
        for path in FILES {
            if let Some(node) = document.at_mut(path) {
                node.make_absolute();
            }
        }
        let mut problems = Vec::new();
        match read(&document, &mut problems) {
            Some(analysis) if problems.is_empty() => Ok(analysis),
            _ => Err(Problems::in_order(problems)),
        }
    }

    /// The analysis as TOML with every default filled in.
    ///
    /// # Errors
    /// A value that TOML cannot express.
    pub fn to_toml(&self) -> Result<String, Problem> {
        Node::write("analysis", self)
    }

    /// The files that the analysis names.
    pub fn files(&self) -> Vec<PathBuf> {
        let Ok(document) = Node::from_value("analysis", self) else { return Vec::new() };
        let file = |path: &[&str]| document.at(path.iter().copied())?.as_str().map(PathBuf::from);
        FILES.into_iter().filter_map(file).collect()
    }

    /// Builds the network, to find out before anything runs whether there is one that can be measured.
    ///
    /// # Errors
    /// Why not, placed where `document` names it.
    pub fn check(&self, document: &Node) -> Result<(), Problems> {
        match Subject::build(&self.topology, self.seed) {
            Err(error) => Err(network_problem(&error, document).into()),
            Ok(subject) if subject.ends() < 2 => {
                let message = format!("expected at least two routers with hosts, found {}", subject.ends());
                Err(Problem::new("topology", message).at(&place(document, "topology")).into())
            }
            Ok(_) => Ok(()),
        }
    }

    /// Builds the network and takes the measurement.
    ///
    /// # Errors
    /// Why there is no result.
    pub(crate) fn take(&self) -> Result<Quantities, String> {
        let subject = Subject::build(&self.topology, self.seed).map_err(|error| error.to_string())?;
        self.measurement.take(&subject, self.seed)
    }
}

fn read(document: &Node, problems: &mut Vec<Problem>) -> Option<Analysis> {
    let mut root = Section::new(document, "", problems)?;
    let seed = root.value("seed", 1);
    let topology = root.required("topology");
    let measurement = root.required("measurement");
    root.finish();
    Some(Analysis { seed: seed?, topology: topology?, measurement: measurement? })
}

fn network_problem(error: &NetworkError, document: &Node) -> Problem {
    match error {
        NetworkError::Parameter(invalid) => {
            let field = format!("topology.{}", invalid.field);
            let place = place(document, &field);
            Problem::new(field, format!("expected {}, found {}", invalid.expected, invalid.found)).at(&place)
        }
        other => Problem::new("topology", other.to_string()).at(&place(document, "topology")),
    }
}

fn place(document: &Node, field: &str) -> Place {
    document.nearest_place(field.split('.'))
}

/// A network under measurement.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) network: Network,
    pub(crate) graph: RouterGraph,
}

impl Subject {
    /// Builds the network; its file names are absolute.
    pub(crate) fn build(topology: &Topology, seed: u64) -> Result<Self, NetworkError> {
        let network = topology.build(&BuildContext { seed, base_dir: Path::new("") })?;
        let graph = network.router_graph();
        Ok(Subject { network, graph })
    }

    /// Routers with hosts.
    fn ends(&self) -> usize {
        (0..self.graph.routers()).filter(|&router| self.graph.hosts(router) > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_scenario::Source;

    fn analysis(text: &str) -> Result<Analysis, Problems> {
        let document = Node::parse(&Source::new("a.toml", text))?;
        let analysis = Analysis::read(&document)?;
        analysis.check(&document)?;
        Ok(analysis)
    }

    const TEXT: &str = "topology = { kind = 'slim-fly', q = 5 }\nmeasurement = { kind = 'throughput', routing = 'optimal', traffic = 'uniform' }\n";

    #[test]
    fn what_was_measured_is_written_with_every_default_and_reads_back() {
        let read = analysis(TEXT).unwrap();
        let printed = read.to_toml().unwrap();
        assert!(printed.contains("kind = \"optimal\"") && printed.contains("gap = 0.05"), "{printed}");
        assert_eq!(analysis(&printed), Ok(read));
    }

    #[test]
    fn mistakes_are_placed_where_they_are_written() {
        let cases = [
            ("'optimal'", "'optimall'", "a.toml:2:48: measurement.routing: there is no"),
            (
                "'optimal'",
                "{ kind = 'spain', layrs = 2 }",
                "measurement.routing.layrs: unknown field `layrs` of `spain`",
            ),
            ("'throughput'", "'thruput'", "there is no measurement `thruput` (did you mean `throughput`?"),
            ("q = 5", "q = 6", "a.toml:1:37: topology.q: expected a prime power"),
            (
                "{ kind = 'slim-fly', q = 5 }",
                "{ kind = 'crossbar' }",
                "topology: expected at least two routers with hosts, found 1",
            ),
            ("measurement =", "measure =", "`measurement` is missing"),
            (
                "q = 5 }",
                "q = 5 }\nseeds = 3",
                "a.toml:2:1: seeds: unknown field `seeds` (did you mean `seed`?",
            ),
        ];
        for (from, to, expected) in cases {
            let found = analysis(&TEXT.replace(from, to)).unwrap_err().to_string();
            assert!(found.contains(expected), "{expected}\n{found}");
        }
    }

    #[test]
    fn files_start_from_the_folder_of_their_text() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.toml");
        std::fs::write(&file, TEXT.replace("'uniform'", "{ kind = 'file', path = 'demands' }")).unwrap();
        let document = Node::parse(&Source::read(&file).unwrap()).unwrap();
        assert_eq!(Analysis::read(&document).unwrap().files(), [folder.path().join("demands")]);
    }
}
