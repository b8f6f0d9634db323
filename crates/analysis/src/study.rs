//! Reading a study, running it, judging its claims.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use netloom_paths::columns::{Column, ReportTable, Values};
use netloom_topology::{BuildContext, Network, NetworkError, RouterGraph, Topology};
use serde::Deserialize;

use crate::claim::{Claim, ClaimResult, ClaimTable, Use, Verdict};
use crate::measure::Measurement;
use crate::named::read_kind;

/// How much of a study is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// The networks and samples of the paper.
    Full,
    /// Small networks and few samples: the same program in seconds. Claims are not expected to hold.
    Small,
}

/// A study file, read and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    title: String,
    networks: Vec<NetworkSpec>,
    measurements: Vec<Measured>,
    claims: Vec<Claim>,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct NetworkSpec {
    id: String,
    topology: Topology,
    /// What stands for it at small scale.
    small: Option<Topology>,
    /// Seed of random topologies.
    #[serde(default = "default_seed")]
    seed: u64,
}

fn default_seed() -> u64 {
    1
}

#[derive(Clone, Debug, PartialEq)]
struct Measured {
    id: String,
    /// Networks measured; all if empty.
    networks: Vec<String>,
    measurement: Measurement,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyFile {
    title: String,
    network: Vec<NetworkSpec>,
    measurement: Vec<toml::Table>,
    #[serde(default)]
    claim: Vec<Claim>,
    #[serde(default)]
    table: Vec<ClaimTable>,
}

/// Why a study cannot be read or run.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// The file cannot be read.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
    /// The text is no study.
    #[error("{0}")]
    Syntax(#[from] toml::de::Error),
    /// A part of the study is wrong.
    #[error("{0}")]
    Invalid(String),
    /// A network cannot be built.
    #[error("network {id}: {reason}")]
    Network {
        /// The network's name in the study.
        id: String,
        /// Why not.
        reason: NetworkError,
    },
    /// A measurement failed.
    #[error("{measurement} of {network}: {reason}")]
    Measurement {
        /// The measurement's name in the study.
        measurement: String,
        /// The network's name in the study.
        network: String,
        /// Why.
        reason: String,
    },
}

/// What a study found.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The study's title.
    pub title: String,
    /// Every quantity by `<network>.<measurement>.<quantity>`.
    pub metrics: BTreeMap<String, f64>,
    /// The judged claims in the order of the file.
    pub claims: Vec<ClaimResult>,
}

impl Study {
    /// Reads a study file.
    ///
    /// # Errors
    /// If the file cannot be read or is no valid study.
    pub fn load(path: &Path) -> Result<Self, StudyError> {
        let text = std::fs::read_to_string(path)
            .map_err(|reason| StudyError::File { path: path.to_owned(), reason })?;
        Study::parse(&text)
    }

    /// Reads a study from text.
    ///
    /// # Errors
    /// If the text is no valid study.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        let file: StudyFile = toml::from_str(text)?;
        let mut measurements: Vec<Measured> = Vec::new();
        for mut table in file.measurement {
            let mut take = |key: &str| table.remove(key);
            let id = take("id");
            let networks = take("networks");
            let measurement: Measurement = read_kind(table).map_err(StudyError::Invalid)?;
            let id = match id {
                None => netloom_units::kind::Kind::name(&measurement).to_owned(),
                Some(toml::Value::String(id)) => id,
                Some(other) => {
                    return Err(StudyError::Invalid(format!(
                        "measurement: id: expected a string, found {other}"
                    )));
                }
            };
            let networks = networks.map_or(Ok(Vec::new()), toml::Value::try_into::<Vec<String>>)?;
            if let Some(unknown) = networks.iter().find(|n| file.network.iter().all(|spec| spec.id != **n)) {
                return Err(StudyError::Invalid(format!(
                    "measurement {id}: there is no network \"{unknown}\""
                )));
            }
            if measurements.iter().any(|other| other.id == id) {
                return Err(StudyError::Invalid(format!("two measurements are called \"{id}\"")));
            }
            measurements.push(Measured { id, networks, measurement });
        }
        let mut claims = file.claim;
        for table in &file.table {
            claims.extend(table.claims().map_err(StudyError::Invalid)?);
        }
        for (i, spec) in file.network.iter().enumerate() {
            if file.network[..i].iter().any(|other| other.id == spec.id) {
                return Err(StudyError::Invalid(format!("two networks are called \"{}\"", spec.id)));
            }
        }
        let study = Study { title: file.title, networks: file.network, measurements, claims };
        study.check_claims()?;
        Ok(study)
    }

    /// Refuses claims about networks or measurements that are not in the study, before anything runs.
    fn check_claims(&self) -> Result<(), StudyError> {
        for (claim, metric) in self.claims.iter().flat_map(|c| c.metrics().into_iter().map(move |m| (c, m))) {
            let parts: Vec<&str> = metric.split('.').collect();
            let [network, measurement, _] = parts[..] else {
                let problem = "expected <network>.<measurement>.<quantity>";
                return Err(StudyError::Invalid(format!(
                    "claim {}: {problem}, found \"{metric}\"",
                    claim.id
                )));
            };
            let taken = self.measurements.iter().any(|m| m.id == measurement && m.covers(network));
            if !taken || self.networks.iter().all(|spec| spec.id != network) {
                return Err(StudyError::Invalid(format!(
                    "claim {}: nothing measures \"{metric}\"",
                    claim.id
                )));
            }
        }
        Ok(())
    }

    /// What the study is about.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Builds the networks, takes the measurements and judges the claims. `progress` is told what comes next.
    ///
    /// # Errors
    /// If a network cannot be built, a measurement fails, or a claim names a quantity that its measurement does not give.
    pub fn run(
        &self,
        scale: Scale,
        base_dir: &Path,
        mut progress: impl FnMut(&str),
    ) -> Result<Outcome, StudyError> {
        let mut metrics = BTreeMap::new();
        for spec in &self.networks {
            let topology = match (&spec.small, scale) {
                (Some(small), Scale::Small) => small,
                _ => &spec.topology,
            };
            let subject = Subject::build(topology, spec.seed, base_dir)
                .map_err(|reason| StudyError::Network { id: spec.id.clone(), reason })?;
            for measured in self.measurements.iter().filter(|m| m.covers(&spec.id)) {
                progress(&format!("{}: {}", spec.id, measured.id));
                let quantities =
                    measured.measurement.take(&subject, scale).map_err(|reason| StudyError::Measurement {
                        measurement: measured.id.clone(),
                        network: spec.id.clone(),
                        reason,
                    })?;
                let name = |quantity| format!("{}.{}.{quantity}", spec.id, measured.id);
                metrics.extend(quantities.into_iter().map(|(quantity, value)| (name(quantity), value)));
            }
        }
        let judge = |claim: &Claim| {
            claim.judge(&metrics).ok_or_else(|| {
                let names = claim.metrics().join(" and ");
                StudyError::Invalid(format!("claim {}: the measurement gives no {names}", claim.id))
            })
        };
        let claims = self.claims.iter().map(judge).collect::<Result<_, _>>()?;
        Ok(Outcome { title: self.title.clone(), metrics, claims })
    }
}

impl Measured {
    fn covers(&self, network: &str) -> bool {
        self.networks.is_empty() || self.networks.iter().any(|n| n == network)
    }
}

/// A network under measurement.
#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) network: Network,
    pub(crate) graph: RouterGraph,
    pub(crate) base_dir: PathBuf,
}

impl Subject {
    pub(crate) fn build(topology: &Topology, seed: u64, base_dir: &Path) -> Result<Self, NetworkError> {
        let network = topology.build(&BuildContext { seed, base_dir })?;
        let graph = network.router_graph();
        Ok(Subject { network, graph, base_dir: base_dir.to_owned() })
    }
}

impl Outcome {
    /// Whether every gate holds.
    pub fn gates_hold(&self) -> bool {
        self.claims.iter().all(|claim| claim.usage == Use::Report || claim.verdict == Verdict::Holds)
    }

    /// The claims and the metrics by columns, for printing and for Parquet files.
    pub fn tables(&self) -> Vec<ReportTable> {
        let text = |of: &dyn Fn(&ClaimResult) -> String| Values::Text(self.claims.iter().map(of).collect());
        vec![
            ReportTable {
                name: "claims",
                columns: vec![
                    Column::new("id", text(&|c| c.id.clone())),
                    Column::new("measured", Values::Float(self.claims.iter().map(|c| c.measured).collect())),
                    Column::new("published", text(&|c| c.published.clone())),
                    Column::new(
                        "verdict",
                        text(&|c| match c.verdict {
                            Verdict::Holds => "holds".to_owned(),
                            Verdict::Fails => "fails".to_owned(),
                        }),
                    ),
                    Column::new(
                        "use",
                        text(&|c| match c.usage {
                            Use::Gate => "gate".to_owned(),
                            Use::Report => "report".to_owned(),
                        }),
                    ),
                    Column::new("statement", text(&|c| c.statement.clone())),
                    Column::new("source", text(&|c| c.source.clone())),
                    Column::new("explanation", text(&|c| c.explanation.clone().unwrap_or_default())),
                ],
            },
            ReportTable {
                name: "metrics",
                columns: vec![
                    Column::new("metric", Values::Text(self.metrics.keys().cloned().collect())),
                    Column::new("value", Values::Float(self.metrics.values().copied().collect())),
                ],
            },
        ]
    }
}
