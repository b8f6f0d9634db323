//! Training jobs in the files of ASTRA-sim, with its schedule.

use std::path::PathBuf;
use std::sync::Arc;

use netloom_astra::{Files, Job, JobError, Rank, Shape, TrainingRank};
use netloom_topology::{NetworkError, NetworkFile};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::plan::{Analytical, HostWork, Plan, Setting};
use crate::program::{JobRank, PlacedJob, RankEnds};
use crate::{Options, WorkloadError};

/// A training job in the files of ASTRA-sim 2, with its schedule: execution traces, the system file, communicator groups. A rank has one operation of
/// the CPU, one computation and one send or collective operation in progress at a time, taken in the order of the nodes' numbers. Collective
/// operations are split into chunks
/// (`preferred-dataset-splits`) with a phase for each logical dimension, around a ring, `direct`, by `halvingDoubling`, by `doubleBinaryTree`, or as a custom trace says;
/// an arrival is answered after the endpoint delay and, where data is reduced, after three times its size at `local-mem-bw`. A broadcast takes its duration and sends nothing.
/// Computations take their duration, or what the roofline gives. Metadata nodes may define process groups.
///
/// Ranks count in whole nanoseconds. A send is done when the transport is: with the last ACK, where there are any. What ASTRA-sim hangs on is an error before the run: sends and
/// receives without a counterpart, collective operations that not all members of a group have, numbers of ranks that an algorithm does not support.
/// With an analytical `network` the answer is
/// that of ASTRA-sim with this network, to the nanosecond. `chakra` reads the same traces with a schedule of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AstraSim {
    /// The execution traces: a prefix (rank r has `PREFIX.r.et`, `.et.gz`, `.json` or `.json.gz`), a pattern with `%d` for the rank (`r%03d/trace.et`), or with `*` and `?` in the name of the file, whose last number is
    /// the rank. Each is protobuf or JSON, compressed by gzip or not. A relative name starts from the scenario's folder, those of the other files too.
    pub traces: PathBuf,
    /// The system file (JSON). Prefixes of custom collectives in it start from its folder, or from the first folder above it in which they are found.
    pub system: PathBuf,
    /// Communicator groups: a JSON file of the ranks by the name of the group, `{ "1": [0, 1], "2": [2, 3] }`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<PathBuf>,
    /// The logical dimensions, the first being that of neighbouring ranks, such as [8, 2]. Absent: those of `network_file`, or one of all ranks that have a trace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dimensions: Option<Vec<u32>>,
    /// Queues of each dimension, among which chunks are spread (`--num-queues-per-dim`), 1 to 64.
    #[serde(default = "one")]
    pub queues_per_dimension: u32,
    /// What carries the messages.
    #[serde(default)]
    pub network: NetworkModel,
    /// ASTRA-sim's own file of the network (YAML), for its analytical networks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network_file: Option<PathBuf>,
}

fn one() -> u32 {
    1
}

/// What carries the messages of a training job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkModel {
    /// Packets, on the scenario's network.
    #[default]
    Packets,
    /// ASTRA-sim's congestion-aware analytical network, of one dimension: links carry one whole message after the other. Rates are in GiB/s.
    Analytical,
    /// ASTRA-sim's congestion-unaware analytical network: every message takes its latency and its size at the rate of a link.
    AnalyticalUnaware,
}

impl From<JobError> for WorkloadError {
    fn from(error: JobError) -> Self {
        match error {
            JobError::Read { file, source } => WorkloadError::Read { file, source },
            JobError::File { file, problem } => WorkloadError::File { file, problem },
            JobError::Line { file, line, problem } => WorkloadError::Line { file, line, problem },
        }
    }
}

/// What is wrong with the network's file.
fn file_error(error: NetworkError) -> WorkloadError {
    match error {
        NetworkError::File { path, line: Some(line), message } => {
            WorkloadError::Line { file: path, line: line as u64, problem: message }
        }
        NetworkError::File { path, line: None, message } => {
            WorkloadError::File { file: path, problem: message }
        }
        other => WorkloadError::parameter("network_file", "a network file of ASTRA-sim", other),
    }
}

impl AstraSim {
    fn files(&self) -> Files {
        let AstraSim { traces, system, groups, .. } = self.clone();
        Files { traces, system, groups }
    }

    /// How its answers differ from those of ASTRA-sim, and why: one sentence each.
    pub fn differences(&self) -> &'static [&'static str] {
        match self.network {
            NetworkModel::Packets => &[
                "a message is packets: each has a header, a switch stores the first one, and packets of several messages share a link. The analytical networks of ASTRA-sim carry whole messages",
                "a send node is done when the transport is, with the last ACK where there are any. In the analytical networks it is done when the message has arrived",
                "ranks notice at the next whole nanosecond what arrives",
                "a message of no bytes is a packet with one. ASTRA-sim's analytical networks abort on it",
            ],
            NetworkModel::Analytical | NetworkModel::AnalyticalUnaware => &[
                "times are those of ASTRA-sim, to the nanosecond. What it hangs or aborts on runs (metadata nodes, nodes that do nothing as only roots, messages of no bytes), or is an error before the run",
            ],
        }
    }

    /// The files that it reads, as far as they are there.
    pub fn all_files(&self) -> Vec<PathBuf> {
        let mut files = self.files().all();
        files.extend(self.network_file.clone());
        files
    }

    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let Files { traces, system, groups } = self.files();
        let file = |name: PathBuf| setting.context.file(&name);
        let files = Files { traces: file(traces), system: file(system), groups: groups.map(file) };
        let network = match (&self.network_file, self.network) {
            (None, NetworkModel::Packets) => None,
            (Some(name), NetworkModel::Packets) => {
                let expected = "none with packets, which go through the scenario's topology";
                return Err(WorkloadError::parameter("network_file", expected, name.display()));
            }
            (None, _) => {
                let expected = "ASTRA-sim's file of the network, such as Ring_8npus.yml";
                return Err(WorkloadError::parameter("network_file", expected, "none"));
            }
            (Some(name), model) => {
                let network = NetworkFile::read(&setting.context.file(name)).map_err(file_error)?;
                if model == NetworkModel::Analytical && network.dimensions.len() > 1 {
                    let expected = "\"analytical-unaware\" or \"packets\": with congestion ASTRA-sim knows networks of one dimension only";
                    return Err(WorkloadError::parameter("network", expected, "\"analytical\""));
                }
                Some(network)
            }
        };
        let dimensions = match (&self.dimensions, &network) {
            (Some(dimensions), _) => dimensions.clone(),
            (None, Some(network)) => network.counts(),
            (None, None) => vec![files.ranks()?],
        };
        self.check(&dimensions, network.as_ref(), setting)?;
        let job = Arc::new(Job::read(&files, &Shape { dimensions, queues: self.queues_per_dimension })?);
        let messages = (0..job.ranks()).map(|rank| job.load(rank).messages).fold(0, u64::saturating_add);
        let ends = RankEnds::new(job.ranks());
        let plan = match network {
            Some(network) => {
                let has_congestion = self.network == NetworkModel::Analytical;
                let analytical = Arc::new(Analytical { job: job.clone(), network, has_congestion });
                let idle = setting.plan(None, |_, _| HostWork::default());
                Plan { analytical: Some(analytical), ..idle }
            }
            None => {
                let placed = &setting.placed[..job.ranks() as usize];
                let placed = PlacedJob::new(placed, setting.endpoints.count(), ends.clone());
                setting.plan(None, |rank, host| match rank < job.ranks() {
                    true => {
                        let start = setting.first_start(host);
                        let of_job = TrainingRank::AstraSim(Box::new(Rank::new(job.clone(), rank)));
                        HostWork::job(JobRank::new(placed.clone(), of_job, rank, start))
                    }
                    false => HostWork::default(),
                })
            }
        };
        Ok(Plan { notes: job.notes(), ends: Some(ends), total_messages: Some(messages), ..plan })
    }

    /// Whether the dimensions fit the network, and the options what is run.
    fn check(
        &self,
        dimensions: &[u32],
        network: Option<&NetworkFile>,
        setting: &Setting,
    ) -> Result<(), WorkloadError> {
        let fail = |field: &'static str, expected: &str, found: &dyn std::fmt::Display| {
            WorkloadError::parameter(field, expected, found)
        };
        if self.queues_per_dimension == 0 || self.queues_per_dimension > 64 {
            return Err(fail("queues_per_dimension", "1 to 64", &self.queues_per_dimension));
        }
        if dimensions.is_empty() || dimensions.len() > 32 || dimensions.contains(&0) {
            let expected = "1 to 32 numbers from 1 on, such as [8, 2]";
            return Err(fail("dimensions", expected, &format!("{dimensions:?}")));
        }
        let product = dimensions.iter().map(|&dimension| u64::from(dimension)).fold(1, u64::saturating_mul);
        match network {
            None => {
                let most = setting.ranks();
                if product > u64::from(most) {
                    let expected = format!("at most {most} ranks, one for each host that takes part");
                    return Err(fail("dimensions", &expected, &product));
                }
            }
            Some(network) => {
                let expected: u64 = network.counts().into_iter().map(u64::from).product();
                if product != expected {
                    let expected = format!("{expected} ranks, as `npus_count` of `network_file` has");
                    return Err(fail("dimensions", &expected, &product));
                }
                let Options { ranks, placement, start_jitter, class } = setting.options.clone();
                let default = Options::default();
                for (field, is_set) in [
                    ("ranks", ranks != default.ranks),
                    ("placement", placement != default.placement),
                    ("start_jitter", start_jitter != default.start_jitter),
                    ("class", class != default.class),
                ] {
                    if is_set {
                        let expected = "none with an analytical network, which has no hosts";
                        return Err(fail(field, expected, &"one"));
                    }
                }
            }
        }
        Ok(())
    }
}
