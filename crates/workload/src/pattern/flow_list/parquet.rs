//! Flow lists in Parquet.

use std::fs::File;
use std::panic::AssertUnwindSafe;
use std::path::Path;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::{CastOptions, cast_with_options};
use arrow::datatypes::{DataType, UInt64Type};
use netloom_units::{Bytes, Time};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

use crate::WorkloadError;
use crate::pattern::flows::Flows;

const COLUMNS: [&str; 4] = ["src", "dst", "bytes", "start_ps"];

pub(super) fn read(file: &Path, flows: &mut Flows) -> Result<(), WorkloadError> {
    // The library has assertions that a damaged file can reach. They become errors like all other damage.
    std::panic::catch_unwind(AssertUnwindSafe(|| read_batches(file, flows)))
        .unwrap_or_else(|_| Err(WorkloadError::file(file, "its structure is broken")))
}

fn read_batches(file: &Path, flows: &mut Flows) -> Result<(), WorkloadError> {
    let input = File::open(file).map_err(|source| WorkloadError::Read { file: file.to_owned(), source })?;
    let reader = ParquetRecordBatchReaderBuilder::try_new(input).and_then(|builder| builder.build());
    let mut row = 0;
    for batch in reader.map_err(|error| WorkloadError::file(file, error))? {
        let batch = batch.map_err(|error| WorkloadError::file(file, error))?;
        let [src, dst, bytes, start] = columns(file, &batch, row)?;
        for index in 0..batch.num_rows() {
            row += 1;
            flows.add(row, src[index], dst[index], Bytes(bytes[index]), Time(start[index]))?;
        }
    }
    Ok(())
}

/// The columns of a batch as unsigned numbers, whatever integers they are in the file.
fn columns(file: &Path, batch: &RecordBatch, rows_before: u64) -> Result<[Vec<u64>; 4], WorkloadError> {
    let mut columns = COLUMNS.map(|_| Vec::new());
    for (name, values) in COLUMNS.iter().zip(&mut columns) {
        let column = batch.column_by_name(name).ok_or_else(|| {
            let found =
                batch.schema().fields().iter().map(|f| f.name().as_str()).collect::<Vec<_>>().join(", ");
            WorkloadError::file(file, format!("expected a column `{name}`, found: {found}"))
        })?;
        if !column.data_type().is_integer() {
            let problem = format!("{name}: expected a column of integers, found {}", column.data_type());
            return Err(WorkloadError::file(file, problem));
        }
        if let Some(index) = (0..column.len()).find(|&index| column.is_null(index)) {
            let row = rows_before + index as u64 + 1;
            return Err(WorkloadError::line(file, row, format!("{name}: expected a number, found null")));
        }
        let options = CastOptions { safe: false, ..Default::default() };
        let column = cast_with_options(column, &DataType::UInt64, &options)
            .map_err(|error| WorkloadError::file(file, format!("{name}: {error}")))?;
        *values = column.as_primitive::<UInt64Type>().values().to_vec();
    }
    Ok(columns)
}
