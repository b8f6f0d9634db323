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
    #[error("{reason}")]
    Invalid {
        /// The part, as a path of keys and positions: `measurement.2`.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A network cannot be built.
    #[error("network {id}: {reason}")]
    Network {
        /// The network's place in the study, e.g. `network.0.topology`.
        field: String,
        /// The network's name in the study.
        id: String,
        /// Why not.
        reason: NetworkError,
    },
    /// A measurement failed.
    #[error("{measurement} of {network}: {reason}")]
    Measurement {
        /// The measurement's place in the study, e.g. `measurement.2`.
        field: String,
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
        for (i, spec) in file.network.iter().enumerate() {
            let field = format!("network.{i}.id");
            check_name(&field, &spec.id)?;
            if file.network[..i].iter().any(|other| other.id == spec.id) {
                return Err(invalid(field, format!("two networks are called \"{}\"", spec.id)));
            }
        }
        let mut measurements: Vec<Measured> = Vec::new();
        for (i, table) in file.measurement.into_iter().enumerate() {
            let measured = Measured::read(table, &format!("measurement.{i}"), &file.network)?;
            if measurements.iter().any(|other| other.id == measured.id) {
                let reason = format!("two measurements are called \"{}\"", measured.id);
                return Err(invalid(format!("measurement.{i}"), reason));
            }
            measurements.push(measured);
        }
        let study = Study { title: file.title, networks: file.network, measurements, claims: Vec::new() };
        let mut claims = Vec::new();
        for (i, claim) in file.claim.into_iter().enumerate() {
            study.check_claim(&claim, format!("claim.{i}.metric"))?;
            claims.push(claim);
        }
        for (i, table) in file.table.iter().enumerate() {
            let field = format!("table.{i}");
            for claim in table.claims().map_err(|reason| invalid(field.clone(), reason))? {
                study.check_claim(&claim, field.clone())?;
                claims.push(claim);
            }
        }
        Ok(Study { claims, ..study })
    }

    /// Refuses a claim about networks or measurements that are not in the study, before anything runs.
    fn check_claim(&self, claim: &Claim, field: String) -> Result<(), StudyError> {
        for metric in claim.metrics() {
            let parts: Vec<&str> = metric.split('.').collect();
            let [network, measurement, _] = parts[..] else {
                let problem = "expected <network>.<measurement>.<quantity>";
                return Err(invalid(field, format!("claim {}: {problem}, found \"{metric}\"", claim.id)));
            };
            let taken = self.measurements.iter().any(|m| m.id == measurement && m.covers(network));
            if !taken || self.networks.iter().all(|spec| spec.id != network) {
                return Err(invalid(field, format!("claim {}: nothing measures \"{metric}\"", claim.id)));
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
        for (i, spec) in self.networks.iter().enumerate() {
            let topology = match (&spec.small, scale) {
                (Some(small), Scale::Small) => small,
                _ => &spec.topology,
            };
            let subject = Subject::build(topology, spec.seed, base_dir).map_err(|reason| {
                StudyError::Network { field: format!("network.{i}.topology"), id: spec.id.clone(), reason }
            })?;
            for (j, measured) in self.measurements.iter().enumerate().filter(|(_, m)| m.covers(&spec.id)) {
                progress(&format!("{}: {}", spec.id, measured.id));
                let quantities =
                    measured.measurement.take(&subject, scale).map_err(|reason| StudyError::Measurement {
                        field: format!("measurement.{j}"),
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
                invalid("claim", format!("claim {}: the measurement gives no {names}", claim.id))
            })
        };
        let claims = self.claims.iter().map(judge).collect::<Result<_, _>>()?;
        Ok(Outcome { title: self.title.clone(), metrics, claims })
    }
}

fn invalid(field: impl Into<String>, reason: impl Into<String>) -> StudyError {
    StudyError::Invalid { field: field.into(), reason: reason.into() }
}

/// Refuses names that metrics could not be told apart by.
fn check_name(field: &str, name: &str) -> Result<(), StudyError> {
    if name.is_empty() || name.contains('.') {
        return Err(invalid(field, format!("expected a name without dots, found \"{name}\"")));
    }
    Ok(())
}

impl StudyError {
    /// The part of the study that is to blame, as a path of keys and positions such as `measurement.2`, where it is
    /// known.
    pub fn field(&self) -> Option<&str> {
        match self {
            StudyError::File { .. } | StudyError::Syntax(_) => None,
            StudyError::Invalid { field, .. }
            | StudyError::Network { field, .. }
            | StudyError::Measurement { field, .. } => Some(field),
        }
    }
}

impl Measured {
    /// Reads a measurement, which stands at `field`, of some of the networks.
    fn read(mut table: toml::Table, field: &str, known: &[NetworkSpec]) -> Result<Self, StudyError> {
        let id = table.remove("id");
        let networks = table.remove("networks");
        let measurement: Measurement = read_kind(table).map_err(|reason| invalid(field, reason))?;
        let id = match id {
            None => netloom_units::kind::Kind::name(&measurement).to_owned(),
            Some(toml::Value::String(id)) => id,
            Some(other) => {
                return Err(invalid(format!("{field}.id"), format!("expected a string, found {other}")));
            }
        };
        check_name(&format!("{field}.id"), &id)?;
        let field = format!("{field}.networks");
        let networks = match networks.map_or(Ok(Vec::new()), toml::Value::try_into::<Vec<String>>) {
            Ok(networks) => networks,
            Err(error) => return Err(invalid(field, error.message())),
        };
        if let Some(unknown) = networks.iter().find(|n| known.iter().all(|spec| spec.id != **n)) {
            return Err(invalid(field, format!("there is no network \"{unknown}\"")));
        }
        Ok(Measured { id, networks, measurement })
    }

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
