//! Tables by columns as Parquet files.

use std::path::Path;
use std::sync::Arc;

use arrow::array::{ArrayRef, Float64Array, RecordBatch, StringArray, UInt64Array};
use netloom_paths::columns::{ReportTable, Values};
use parquet::arrow::ArrowWriter;

use crate::failure::Failure;
use crate::files::{unwritable, write_file};

/// Writes a table, as a whole or not at all.
pub(crate) fn write(path: &Path, table: &ReportTable) -> Result<(), Failure> {
    write_file(path, &encode(table).map_err(|error| unwritable(path, &error))?)
}

fn encode(table: &ReportTable) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let columns = table.columns.iter().map(|column| {
        let values: ArrayRef = match &column.values {
            Values::Count(values) => Arc::new(UInt64Array::from_iter_values(values.iter().copied())),
            Values::Float(values) => Arc::new(Float64Array::from_iter_values(values.iter().copied())),
            Values::Text(values) => Arc::new(StringArray::from_iter_values(values)),
        };
        (column.name, values)
    });
    let batch = RecordBatch::try_from_iter(columns)?;
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None)?;
    writer.write(&batch)?;
    writer.close()?;
    Ok(bytes)
}
