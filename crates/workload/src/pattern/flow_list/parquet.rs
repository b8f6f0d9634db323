//! Flow lists in Parquet.

use std::fs::File;
use std::path::Path;

use netloom_parquet::Error;
use netloom_units::{Bytes, Time};

use crate::WorkloadError;
use crate::pattern::flows::Flows;

pub(super) fn read(file: &Path, flows: &mut Flows) -> Result<(), WorkloadError> {
    let input = File::open(file).map_err(|source| WorkloadError::Read { file: file.to_owned(), source })?;
    let fail = |error: Error| match &error {
        Error::Null { column, row } => {
            WorkloadError::line(file, *row, format!("{column}: expected a number, found null"))
        }
        Error::Negative { column, row, found } => {
            WorkloadError::line(file, *row, format!("{column}: expected at least 0, found {found}"))
        }
        _ => WorkloadError::file(file, error),
    };
    let read = netloom_parquet::read(input, |table| {
        for group in table.row_groups() {
            let group = group?;
            // Whatever integers they are in the file.
            let (src, dst) = (group.integers("src")?, group.integers("dst")?);
            let bytes = group.integers("bytes")?;
            let start = group.has("start_ps").then(|| group.integers("start_ps")).transpose()?;
            for (index, row) in (0..group.rows()).zip(group.rows_before() + 1..) {
                let start = start.as_ref().map(|start| Time(start[index]));
                flows.add_entry(row, src[index], dst[index], Bytes(bytes[index]), start)?;
            }
        }
        Ok(())
    });
    read.map_err(|failure| match failure {
        Failure::Table(error) => fail(error),
        Failure::Flow(error) => error,
    })
}

/// What stops the reading: the table, or a flow in it.
enum Failure {
    Table(Error),
    Flow(WorkloadError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Table(error)
    }
}

impl From<WorkloadError> for Failure {
    fn from(error: WorkloadError) -> Self {
        Failure::Flow(error)
    }
}
