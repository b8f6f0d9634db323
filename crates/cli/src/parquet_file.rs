//! Tables by columns as Parquet files.

use std::path::Path;

use netloom_parquet::{Error, Field, Writer};
use netloom_paths::columns::{Column, ReportTable, Values};

use crate::failure::Failure;
use crate::files::{unwritable, write_file};

/// Writes a table, as a whole or not at all.
pub(crate) fn write(path: &Path, table: &ReportTable) -> Result<(), Failure> {
    write_file(path, &encode(table).map_err(|error| unwritable(path, &error))?)
}

/// A table as the bytes of a file.
pub(crate) fn encode(table: &ReportTable) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let mut writer = Writer::new(&mut bytes, &table.columns.iter().map(field).collect::<Vec<_>>())?;
    let mut group = writer.row_group()?;
    for column in &table.columns {
        match &column.values {
            Values::Count(values) => group.column(values.iter().copied())?,
            Values::Float(values) => group.column(values.iter().copied())?,
            Values::Text(values) => group.column(values.iter().cloned())?,
        }
    }
    group.close()?;
    writer.close()?;
    Ok(bytes)
}

fn field(column: &Column) -> Field {
    match column.values {
        Values::Count(_) => Field::of::<u64>(column.name),
        Values::Float(_) => Field::of::<f64>(column.name),
        Values::Text(_) => Field::of::<String>(column.name),
    }
}
