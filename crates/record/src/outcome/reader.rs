//! Reading an outcome.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use serde::de::DeserializeOwned;

use super::{
    ACTIVITIES, COLLECTIVES, FLOW_SERIES, FLOWLETS, FLOWS, GAPS, JOBS, LATENCY, LINKS, OPERATIONS,
    OutcomeError, PACKETS, PARTS, PERFORMANCE, RANKS, SCENARIO, SENDER_SERIES, SERIES, SUMMARY, SWITCH_GAPS,
    TRACE, WINDOWS,
};
use crate::jobs::{ActivityRecord, CollectiveRecord, JobRecord, OperationRecord, RankRecord};
use crate::packets::{FlowPacketRecord, LatencyRecord, TraceRecord};
use crate::performance::Performance;
use crate::records::{
    ChannelRecord, FlowRecord, FlowSampleRecord, FlowletRecord, GapRecord, PartRecord, SampleRecord,
    SenderSampleRecord, WindowRecord,
};
use crate::summary::Summary;
use crate::tables::{self, Names, Row};

/// An outcome read back.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    dir: PathBuf,
    /// The scenario with every default filled in, as TOML.
    pub scenario: String,
    /// The summary.
    pub summary: Summary,
    /// What the run cost.
    pub performance: Performance,
}

impl Outcome {
    /// Reads an outcome; the tables are opened, and their rows read when they are asked for.
    ///
    /// # Errors
    /// If a file is missing or damaged; the error names it.
    pub fn read(dir: &Path) -> Result<Self, OutcomeError> {
        let outcome = Outcome {
            dir: dir.to_owned(),
            scenario: text(dir, SCENARIO)?,
            summary: json(dir, SUMMARY)?,
            performance: json(dir, PERFORMANCE)?,
        };
        for name in [FLOWS, LINKS] {
            tables::check(open(dir, name)?).map_err(|error| corrupt(dir, name, error))?;
        }
        Ok(outcome)
    }

    /// The table of flows.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn flows(&self) -> Result<Vec<FlowRecord>, OutcomeError> {
        self.table(FLOWS)
    }

    /// The table of channels.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn channels(&self) -> Result<Vec<ChannelRecord>, OutcomeError> {
        self.table(LINKS)
    }

    /// The table of what the NICs of servers with several sent; empty where hosts have one each.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn parts(&self) -> Result<Vec<PartRecord>, OutcomeError> {
        self.table_if_any(PARTS)
    }

    /// The table of channel samples; empty if no channel was sampled.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn samples(&self) -> Result<Vec<SampleRecord>, OutcomeError> {
        self.table_if_any(SERIES)
    }

    /// The table of flow samples; empty if no flow was sampled.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn flow_samples(&self) -> Result<Vec<FlowSampleRecord>, OutcomeError> {
        self.table_if_any(FLOW_SERIES)
    }

    /// The samples of senders; empty if none was sampled.
    ///
    /// # Errors
    /// If they are damaged.
    pub fn sender_samples(&self) -> Result<Vec<SenderSampleRecord>, OutcomeError> {
        self.table_if_any(SENDER_SERIES)
    }

    /// The table of gaps between departures; empty if they were not counted.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn gaps(&self) -> Result<Vec<GapRecord>, OutcomeError> {
        self.table_if_any(GAPS)
    }

    /// The table of gaps at first switches; empty if they were not counted.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn switch_gaps(&self) -> Result<Vec<GapRecord>, OutcomeError> {
        self.table_if_any(SWITCH_GAPS)
    }

    /// The table of flowlets at switches; empty if they were not counted.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn flowlets(&self) -> Result<Vec<FlowletRecord>, OutcomeError> {
        self.table_if_any(FLOWLETS)
    }

    /// The table of what flows delivered in windows; empty if no window was measured.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn window_flows(&self) -> Result<Vec<WindowRecord>, OutcomeError> {
        self.table_if_any(WINDOWS)
    }

    /// What was seen of every flow's packets; empty unless packets were measured.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn flow_packets(&self) -> Result<Vec<FlowPacketRecord>, OutcomeError> {
        self.table_if_any(PACKETS)
    }

    /// The histogram of packet latencies; empty unless packets were measured.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn latencies(&self) -> Result<Vec<LatencyRecord>, OutcomeError> {
        self.table_if_any(LATENCY)
    }

    /// The packets that were traced; empty if none were.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn trace(&self) -> Result<Vec<TraceRecord>, OutcomeError> {
        self.table_if_any(TRACE)
    }

    /// The repetitions of jobs; empty if there were no jobs.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn jobs(&self) -> Result<Vec<JobRecord>, OutcomeError> {
        self.table_if_any(JOBS)
    }

    /// What the ranks of jobs did; empty if there were no jobs.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn ranks(&self) -> Result<Vec<RankRecord>, OutcomeError> {
        self.table_if_any(RANKS)
    }

    /// The collective operations of jobs; empty if there were none.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn collectives(&self) -> Result<Vec<CollectiveRecord>, OutcomeError> {
        self.table_if_any(COLLECTIVES)
    }

    /// What the ranks of jobs did when; empty if the run did not keep it.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn activities(&self) -> Result<Vec<ActivityRecord>, OutcomeError> {
        self.table_if_any(ACTIVITIES)
    }

    /// What became of the operations of programs; empty if the run did not keep it.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn operations(&self) -> Result<Vec<OperationRecord>, OutcomeError> {
        self.table_if_any(OPERATIONS)
    }

    fn table_if_any<R: Row>(&self, name: &'static str) -> Result<Vec<R>, OutcomeError> {
        if self.dir.join(name).exists() { self.table(name) } else { Ok(Vec::new()) }
    }

    fn table<R: Row>(&self, name: &'static str) -> Result<Vec<R>, OutcomeError> {
        // The summary names groups and windows in the order in which the records count them.
        let names = Names {
            groups: self.summary.groups.keys().cloned().collect(),
            windows: self.summary.windows.keys().cloned().collect(),
            jobs: self.summary.jobs.keys().cloned().collect(),
            ..Names::default()
        };
        tables::read(open(&self.dir, name)?, &names).map_err(|error| corrupt(&self.dir, name, error))
    }
}

fn open(dir: &Path, file: &'static str) -> Result<File, OutcomeError> {
    File::open(dir.join(file)).map_err(|source| OutcomeError::Read { dir: dir.to_owned(), file, source })
}

fn text(dir: &Path, file: &'static str) -> Result<String, OutcomeError> {
    fs::read_to_string(dir.join(file)).map_err(|source| OutcomeError::Read {
        dir: dir.to_owned(),
        file,
        source,
    })
}

fn json<T: DeserializeOwned>(dir: &Path, file: &'static str) -> Result<T, OutcomeError> {
    serde_json::from_str(&text(dir, file)?).map_err(|error| corrupt(dir, file, error))
}

fn corrupt(dir: &Path, file: &str, problem: impl ToString) -> OutcomeError {
    OutcomeError::Corrupt { path: dir.join(file), problem: problem.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobs::JobRecords;
    use crate::outcome::{Existing, OutcomeWriter};
    use crate::records::Records;
    use crate::summary::{Status, SummaryOptions};
    use crate::testing::records;

    fn write(dir: &Path) {
        let summary = Summary::new(&records(), &SummaryOptions::default(), Status::Complete).unwrap();
        let writer = OutcomeWriter::prepare(dir, Existing::Replace).unwrap();
        writer.write("[topology]\n", &summary, &records(), &Performance::new("1.0.0", 2, 0.5, 240)).unwrap();
    }

    /// Reads every table.
    fn read(dir: &Path) -> Result<Records, OutcomeError> {
        let outcome = Outcome::read(dir)?;
        Ok(Records {
            flows: outcome.flows()?,
            channels: outcome.channels()?,
            samples: outcome.samples()?.into(),
            flow_samples: outcome.flow_samples()?.into(),
            sender_samples: outcome.sender_samples()?.into(),
            window_flows: outcome.window_flows()?.into(),
            totals: outcome.summary.totals.clone(),
            jobs: JobRecords {
                repetitions: outcome.jobs()?,
                ranks: outcome.ranks()?,
                collectives: outcome.collectives()?,
                activities: outcome.activities()?,
                operations: outcome.operations()?,
                ..records().jobs
            },
            ..records()
        })
    }

    #[test]
    fn missing_and_damaged_files_are_named() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("outcome");
        let check = |file: &str, damage: &dyn Fn(&Path)| {
            write(&dir);
            damage(&dir.join(file));
            let error = read(&dir).unwrap_err().to_string();
            assert!(error.contains(file), "{error}");
        };
        for file in [SCENARIO, SUMMARY, FLOWS, LINKS, PERFORMANCE] {
            check(file, &|path| fs::remove_file(path).unwrap());
        }
        for file in [SUMMARY, FLOWS, LINKS, PERFORMANCE] {
            check(file, &|path| fs::write(path, &fs::read(path).unwrap()[..40]).unwrap());
        }
        // A table with other columns.
        check(FLOWS, &|path| {
            fs::copy(path.with_file_name(LINKS), path).unwrap();
        });
        let error = Outcome::read(root.path()).unwrap_err().to_string();
        assert!(error.starts_with("no complete outcome in "), "{error}");
    }

    #[test]
    fn a_flipped_byte_is_an_error_or_another_value_but_no_panic() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("outcome");
        write(&dir);
        for file in [
            FLOWS,
            SERIES,
            FLOW_SERIES,
            SENDER_SERIES,
            WINDOWS,
            JOBS,
            RANKS,
            COLLECTIVES,
            ACTIVITIES,
            OPERATIONS,
            SUMMARY,
        ] {
            let path = dir.join(file);
            let sound = fs::read(&path).unwrap();
            for index in (0..sound.len()).step_by(41) {
                let mut damaged = sound.clone();
                damaged[index] ^= 0x55;
                fs::write(&path, damaged).unwrap();
                let _ = read(&dir);
            }
            fs::write(&path, sound).unwrap();
        }
        assert_eq!(read(&dir).unwrap(), records());
    }
}
