//! The Parquet tables: each is declared once, column by column, for writing and reading alike.
//!
//! The columns are documented in `docs/outcome.md`; times are `UInt64` picoseconds under names that end in `_ps`.

mod by_column;
mod column;
mod declarations;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Write;

use netloom_parquet::{Error, Field, GROUP_ROWS, RowGroup, Writer};

pub use self::by_column::{TableColumn, Values};
pub(crate) use self::column::Names;
use crate::records::Records;
use crate::series::{Series, SeriesError, SeriesRow};

/// A record type that is a row of a table.
pub trait Row: Sized + Default + Clone {
    /// The columns in memory.
    fn columns(rows: &[Self], names: &Names) -> Vec<TableColumn>;
    /// Rows from a row group's columns.
    fn read(group: &RowGroup<'_>, names: &Names) -> Result<Vec<Self>, Error>;
}

impl Records {
    /// A table by columns, as its file holds them; empty columns where nothing was recorded.
    ///
    /// # Errors
    /// If a time series cannot be read from its temporary files.
    pub fn columns(&self, table: OutcomeTable) -> Result<Vec<TableColumn>, SeriesError> {
        let names = Names::of(self);
        Ok(match table {
            OutcomeTable::Flows => Row::columns(&self.flows, &names),
            OutcomeTable::Parts => Row::columns(&rows_of(self.parts.as_ref())?, &names),
            OutcomeTable::Links => Row::columns(&self.channels, &names),
            OutcomeTable::Series => Row::columns(&self.samples.to_vec()?, &names),
            OutcomeTable::FlowSeries => Row::columns(&self.flow_samples.to_vec()?, &names),
            OutcomeTable::SenderSeries => Row::columns(&self.sender_samples.to_vec()?, &names),
            OutcomeTable::Gaps => Row::columns(&rows_of(self.gaps.as_ref())?, &names),
            OutcomeTable::SwitchGaps => Row::columns(&rows_of(self.switch_gaps.as_ref())?, &names),
            OutcomeTable::Flowlets => Row::columns(&rows_of(self.flowlets.as_ref())?, &names),
            OutcomeTable::Windows => Row::columns(&self.window_flows.to_vec()?, &names),
            OutcomeTable::Packets => Row::columns(&self.flow_packets.to_vec()?, &names),
            OutcomeTable::Latency => Row::columns(&self.latencies, &names),
            OutcomeTable::Trace => Row::columns(&self.trace.to_vec()?, &names),
            OutcomeTable::Jobs => Row::columns(&self.jobs.repetitions, &names),
            OutcomeTable::Ranks => Row::columns(&self.jobs.ranks, &names),
            OutcomeTable::Collectives => Row::columns(&self.jobs.collectives, &names),
            OutcomeTable::Activities => Row::columns(&self.jobs.activities, &names),
            OutcomeTable::Operations => Row::columns(&self.jobs.operations, &names),
        })
    }
}

/// All rows of a series, if there is one.
fn rows_of<R: SeriesRow>(series: Option<&Series<R>>) -> Result<Vec<R>, Error> {
    series.map_or(Ok(Vec::new()), Series::to_vec)
}

/// A table of an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutcomeTable {
    /// One row per flow.
    Flows,
    /// One row per message and rail, where servers have several NICs.
    Parts,
    /// One row per channel.
    Links,
    /// One row per sample of a channel.
    Series,
    /// One row per sample of a flow.
    FlowSeries,
    /// One row per sample of a flow's sender.
    SenderSeries,
    /// One row per flow and length of gaps.
    Gaps,
    /// The same at the flow's first switch.
    SwitchGaps,
    /// One row per flow and switch.
    Flowlets,
    /// One row per window and flow.
    Windows,
    /// One row per flow, on its packets.
    Packets,
    /// One row per bin of the histogram of packet latencies.
    Latency,
    /// One row per packet and channel that was traced.
    Trace,
    /// One row per job and repetition.
    Jobs,
    /// One row per rank of a job and repetition.
    Ranks,
    /// One row per collective operation.
    Collectives,
    /// One row per rank and interval in which it did one thing.
    Activities,
    /// One row per operation of a rank's program.
    Operations,
}

impl OutcomeTable {
    /// Every table.
    pub const ALL: [Self; 18] = [
        Self::Flows,
        Self::Parts,
        Self::Links,
        Self::Series,
        Self::FlowSeries,
        Self::SenderSeries,
        Self::Gaps,
        Self::SwitchGaps,
        Self::Flowlets,
        Self::Windows,
        Self::Packets,
        Self::Latency,
        Self::Trace,
        Self::Jobs,
        Self::Ranks,
        Self::Collectives,
        Self::Activities,
        Self::Operations,
    ];

    /// The name of its file, without the extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::Parts => "parts",
            Self::Links => "links",
            Self::Series => "series",
            Self::FlowSeries => "flow_series",
            Self::SenderSeries => "sender_series",
            Self::Gaps => "gaps",
            Self::SwitchGaps => "switch_gaps",
            Self::Flowlets => "flowlets",
            Self::Windows => "windows",
            Self::Packets => "packets",
            Self::Latency => "latency",
            Self::Trace => "trace",
            Self::Jobs => "jobs",
            Self::Ranks => "ranks",
            Self::Collectives => "collectives",
            Self::Activities => "activities",
            Self::Operations => "operations",
        }
    }
}

/// Writes a table with this many rows in a group; equal rows give equal bytes.
pub(crate) fn write<R: Row>(
    rows: &[R],
    names: &Names,
    group_rows: usize,
    output: impl Write + Send,
) -> Result<(), Error> {
    let mut table = Writer::new(output, &fields::<R>())?;
    for rows in rows.chunks(group_rows) {
        write_group(rows, names, &mut table)?;
    }
    table.close()
}

/// Writes a table that nobody but this process will read: quickly.
pub(crate) fn write_temporary<R: Row>(
    rows: &[R],
    group_rows: usize,
    output: impl Write + Send,
) -> Result<(), Error> {
    let mut table = Writer::temporary(output, &fields::<R>())?;
    for rows in rows.chunks(group_rows) {
        write_group(rows, &Names::numbers(), &mut table)?;
    }
    table.close()
}

/// Writes a table of rows that come one by one; the same bytes as [`write`] would write.
pub(crate) struct Rows<'w, R> {
    table: Writer<'w>,
    /// Of the row group that is not full yet.
    waiting: Vec<R>,
}

impl<'w, R: Row> Rows<'w, R> {
    pub(crate) fn new(output: impl Write + Send + 'w) -> Result<Self, Error> {
        Ok(Rows { table: Writer::new(output, &fields::<R>())?, waiting: Vec::new() })
    }

    pub(crate) fn push(&mut self, row: R, names: &Names) -> Result<(), Error> {
        self.waiting.push(row);
        if self.waiting.len() == GROUP_ROWS {
            write_group(&self.waiting, names, &mut self.table)?;
            self.waiting.clear();
        }
        Ok(())
    }

    /// Ends the table.
    pub(crate) fn close(mut self, names: &Names) -> Result<(), Error> {
        if !self.waiting.is_empty() {
            write_group(&self.waiting, names, &mut self.table)?;
        }
        self.table.close()
    }
}

fn write_group<R: Row>(rows: &[R], names: &Names, table: &mut Writer<'_>) -> Result<(), Error> {
    let mut group = table.row_group()?;
    for column in R::columns(rows, names) {
        column.write(&mut group)?;
    }
    group.close()
}

/// Names and types of the columns.
fn fields<R: Row>() -> Vec<Field> {
    R::columns(&[], &Names::default()).iter().map(TableColumn::field).collect()
}

/// Checks that a file is a table, without reading its rows.
pub(crate) fn check(input: File) -> Result<(), Error> {
    netloom_parquet::read(input, |_| Ok(()))
}

/// Reads a table.
pub(crate) fn read<R: Row>(input: File, names: &Names) -> Result<Vec<R>, Error> {
    netloom_parquet::read(input, |table| {
        let mut rows = Vec::new();
        for group in table.row_groups() {
            rows.append(&mut R::read(&group?, names)?);
        }
        Ok(rows)
    })
}
