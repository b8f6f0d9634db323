//! What a run gave: in memory, or read from a folder.

use std::path::{Path, PathBuf};

use netloom_record::{
    JobNames, JobRecords, OutcomeError, OutcomeTable, Performance, Records, SeriesError, Summary, Window,
};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

use crate::error::outcome_error;
use crate::table::Table;

/// What a run gave; `netloom.Outcome` is the class that users see.
#[pyclass(module = "netloom._netloom", name = "Outcome", frozen)]
#[derive(Debug)]
pub(crate) struct Outcome {
    /// The scenario with every default filled in, as TOML.
    #[pyo3(get)]
    scenario: String,
    /// The summary as JSON.
    #[pyo3(get)]
    summary: String,
    /// What the run cost, as JSON.
    #[pyo3(get)]
    performance: String,
    /// The outcome folder, if there is one.
    #[pyo3(get)]
    folder: Option<PathBuf>,
    tables: Vec<Table>,
}

/// Series that were read need no temporary files.
const IN_MEMORY: &str = "the rows are in memory";

const AS_JSON: &str = "what was computed or read can be written as JSON";

impl Outcome {
    pub(crate) fn new(
        scenario: String,
        summary: &Summary,
        performance: &Performance,
        records: &Records,
        folder: Option<PathBuf>,
    ) -> Result<Self, SeriesError> {
        let table = |table| records.columns(table).map(Table::of_columns);
        Ok(Outcome {
            scenario,
            summary: serde_json::to_string_pretty(summary).expect(AS_JSON),
            performance: serde_json::to_string_pretty(performance).expect(AS_JSON),
            folder,
            tables: OutcomeTable::ALL.into_iter().map(table).collect::<Result<_, _>>()?,
        })
    }

    fn read_folder(dir: &Path) -> Result<Self, OutcomeError> {
        let outcome = netloom_record::Outcome::read(dir)?;
        let records = Records {
            flows: outcome.flows()?,
            parts: Some(outcome.parts()?.into()),
            channels: outcome.channels()?,
            samples: outcome.samples()?.into(),
            flow_samples: outcome.flow_samples()?.into(),
            sender_samples: outcome.sender_samples()?.into(),
            gaps: Some(outcome.gaps()?.into()),
            switch_gaps: Some(outcome.switch_gaps()?.into()),
            flowlets: Some(outcome.flowlets()?.into()),
            window_flows: outcome.window_flows()?.into(),
            flow_packets: outcome.flow_packets()?.into(),
            latencies: outcome.latencies()?,
            trace: outcome.trace()?.into(),
            jobs: JobRecords {
                repetitions: outcome.jobs()?,
                ranks: outcome.ranks()?,
                collectives: outcome.collectives()?,
                activities: outcome.activities()?,
                operations: outcome.operations()?,
                ..job_names(&outcome)
            },
            ..records_with_names(&outcome)
        };
        let made = Outcome::new(
            outcome.scenario,
            &outcome.summary,
            &outcome.performance,
            &records,
            Some(dir.to_owned()),
        );
        Ok(made.expect(IN_MEMORY))
    }
}

/// Reads one table of an outcome folder.
pub(crate) fn read_table(dir: &Path, table: OutcomeTable) -> Result<Table, OutcomeError> {
    let outcome = netloom_record::Outcome::read(dir)?;
    let mut records = records_with_names(&outcome);
    match table {
        OutcomeTable::Flows => records.flows = outcome.flows()?,
        OutcomeTable::Parts => records.parts = Some(outcome.parts()?.into()),
        OutcomeTable::Links => records.channels = outcome.channels()?,
        OutcomeTable::Series => records.samples = outcome.samples()?.into(),
        OutcomeTable::FlowSeries => records.flow_samples = outcome.flow_samples()?.into(),
        OutcomeTable::SenderSeries => records.sender_samples = outcome.sender_samples()?.into(),
        OutcomeTable::Gaps => records.gaps = Some(outcome.gaps()?.into()),
        OutcomeTable::SwitchGaps => records.switch_gaps = Some(outcome.switch_gaps()?.into()),
        OutcomeTable::Flowlets => records.flowlets = Some(outcome.flowlets()?.into()),
        OutcomeTable::Windows => records.window_flows = outcome.window_flows()?.into(),
        OutcomeTable::Packets => records.flow_packets = outcome.flow_packets()?.into(),
        OutcomeTable::Latency => records.latencies = outcome.latencies()?,
        OutcomeTable::Trace => records.trace = outcome.trace()?.into(),
        OutcomeTable::Jobs => records.jobs.repetitions = outcome.jobs()?,
        OutcomeTable::Ranks => records.jobs.ranks = outcome.ranks()?,
        OutcomeTable::Collectives => records.jobs.collectives = outcome.collectives()?,
        OutcomeTable::Activities => records.jobs.activities = outcome.activities()?,
        OutcomeTable::Operations => records.jobs.operations = outcome.operations()?,
    }
    Ok(Table::of_columns(records.columns(table).expect(IN_MEMORY)))
}

/// The names of jobs.
fn job_names(outcome: &netloom_record::Outcome) -> JobRecords {
    let name = |name: &String| JobNames { name: name.clone(), ..JobNames::default() };
    JobRecords { jobs: outcome.summary.jobs.keys().map(name).collect(), ..JobRecords::default() }
}

/// Records with nothing but the names that stand in the tables: those of groups, windows and jobs.
fn records_with_names(outcome: &netloom_record::Outcome) -> Records {
    let window =
        |name: &String| Window { name: name.clone(), from: Default::default(), until: Default::default() };
    Records {
        groups: outcome.summary.groups.keys().cloned().collect(),
        windows: outcome.summary.windows.keys().map(window).collect(),
        jobs: job_names(outcome),
        ..Records::default()
    }
}

#[pymethods]
impl Outcome {
    /// Reads an outcome folder.
    #[staticmethod]
    fn read(py: Python<'_>, folder: PathBuf) -> PyResult<Self> {
        let folder = std::path::absolute(&folder).map_err(|error| PyOSError::new_err(error.to_string()))?;
        py.detach(|| Outcome::read_folder(&folder)).map_err(|error| outcome_error(&error))
    }

    /// A table by its file's name without `.parquet`.
    fn table(&self, name: &str) -> Option<Table> {
        let place = OutcomeTable::ALL.iter().position(|table| table.name() == name)?;
        Some(self.tables[place].clone())
    }
}
