//! The Parquet tables: each is declared once, column by column, for writing and reading alike.
//!
//! The columns are documented in `docs/outcome.md`; times are `UInt64` picoseconds under names that end in `_ps`.

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow::datatypes::{DataType, Field, Float64Type, Schema, UInt32Type, UInt64Type};
use netloom_units::{Rate, Time};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;

use crate::records::{ChannelRecord, FlowRecord, SampleRecord};

/// A record type that is a row of a table.
pub(crate) trait Row: Sized + Default + Clone {
    /// Names and types of the columns.
    fn schema() -> Schema;
    /// Columns from rows.
    fn encode(rows: &[Self]) -> Vec<ArrayRef>;
    /// Rows from columns.
    fn decode(batch: &RecordBatch) -> Result<Vec<Self>>;
}

/// A value that is a cell of a table.
trait Cell: Sized {
    const TYPE: DataType;
    const NULLABLE: bool = false;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef;
    /// The cell of a row; the array has the type [`Self::TYPE`] and, unless nullable, no null.
    fn decode(array: &dyn Array, row: usize) -> Self;
}

impl Cell for u32 {
    const TYPE: DataType = DataType::UInt32;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(cells))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.as_primitive::<UInt32Type>().value(row)
    }
}

impl Cell for u64 {
    const TYPE: DataType = DataType::UInt64;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(cells))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.as_primitive::<UInt64Type>().value(row)
    }
}

impl Cell for f64 {
    const TYPE: DataType = DataType::Float64;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(cells))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.as_primitive::<Float64Type>().value(row)
    }
}

impl Cell for String {
    const TYPE: DataType = DataType::Utf8;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(cells))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.as_string::<i32>().value(row).to_owned()
    }
}

impl Cell for Time {
    const TYPE: DataType = DataType::UInt64;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        u64::encode(cells.map(|time| time.0))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        Time(u64::decode(array, row))
    }
}

impl Cell for Option<Time> {
    const TYPE: DataType = DataType::UInt64;
    const NULLABLE: bool = true;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(cells.map(|time| time.map(|time| time.0)).collect::<UInt64Array>())
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.is_valid(row).then(|| Time::decode(array, row))
    }
}

impl Cell for Rate {
    const TYPE: DataType = DataType::UInt64;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        u64::encode(cells.map(|rate| rate.0))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        Rate(u64::decode(array, row))
    }
}

/// Finds a column and checks that [`Cell::decode`] may read it.
fn column<'a, C: Cell>(batch: &'a RecordBatch, name: &str, _: &C) -> Result<&'a dyn Array> {
    let array =
        batch.column_by_name(name).ok_or_else(|| ParquetError::General(format!("no column `{name}`")))?;
    if *array.data_type() != C::TYPE {
        let found = array.data_type();
        return Err(ParquetError::General(format!("column `{name}`: expected {}, found {found}", C::TYPE)));
    }
    if !C::NULLABLE && array.null_count() > 0 {
        return Err(ParquetError::General(format!("column `{name}`: null in row {}", first_null(array))));
    }
    Ok(array)
}

fn first_null(array: &dyn Array) -> usize {
    (0..array.len()).find(|&row| array.is_null(row)).unwrap_or(0)
}

fn field<C: Cell>(name: &str, _: &C) -> Field {
    Field::new(name, C::TYPE, C::NULLABLE)
}

macro_rules! table {
    ($Row:ident { $($field:ident: $name:literal),+ $(,)? }) => {
        impl Row for $Row {
            fn schema() -> Schema {
                let row = $Row::default();
                Schema::new(vec![$(field($name, &row.$field)),+])
            }

            fn encode(rows: &[Self]) -> Vec<ArrayRef> {
                vec![$(Cell::encode(rows.iter().map(|row| row.$field.clone()))),+]
            }

            fn decode(batch: &RecordBatch) -> Result<Vec<Self>> {
                let mut rows = vec![$Row::default(); batch.num_rows()];
                $(
                    let array = column(batch, $name, &$Row::default().$field)?;
                    for (index, row) in rows.iter_mut().enumerate() {
                        row.$field = Cell::decode(array, index);
                    }
                )+
                Ok(rows)
            }
        }
    };
}

table!(FlowRecord {
    src: "src",
    dst: "dst",
    flow: "flow",
    bytes: "bytes",
    start: "start_ps",
    fct: "fct_ps",
    sender_fct: "sender_fct_ps",
    idle_fct: "idle_fct_ps",
    packets: "packets",
    ooo_packets: "ooo_packets",
    max_ood: "max_ood",
    retransmissions: "retransmissions",
    timeouts: "timeouts",
    ecn_marks: "ecn_marks",
    path_changes: "path_changes",
    drains: "drains",
    drain_time: "drain_time_ps",
    decisions: "decisions",
    deviations: "deviations",
});

table!(ChannelRecord {
    channel: "channel",
    from: "from",
    to: "to",
    tier: "tier",
    rate: "rate_bps",
    bytes: "bytes",
    packets: "packets",
    busy: "busy_ps",
    max_queue: "max_queue_bytes",
    mean_queue: "mean_queue_bytes",
    drops: "drops",
    marks: "marks",
});

table!(SampleRecord { time: "time_ps", channel: "channel", queue: "queue_bytes", bytes: "bytes" });

/// Rows encoded at a time, so that a large table needs little memory beyond its rows.
const BATCH: usize = 1 << 16;

/// Writes a table; equal rows give equal bytes.
pub(crate) fn write<R: Row>(rows: &[R], output: impl Write + Send) -> Result<()> {
    let properties = WriterProperties::builder()
        // The library's default names its version, which would change the bytes with every update of it.
        .set_created_by("netloom".to_owned())
        .set_compression(Compression::SNAPPY)
        .build();
    let schema = Arc::new(R::schema());
    let mut writer = ArrowWriter::try_new(output, schema.clone(), Some(properties))?;
    for rows in rows.chunks(BATCH) {
        writer.write(&RecordBatch::try_new(schema.clone(), R::encode(rows))?)?;
    }
    writer.close()?;
    Ok(())
}

/// Checks that a file is a table, without reading its rows.
pub(crate) fn check(input: File) -> Result<()> {
    without_panic(|| ParquetRecordBatchReaderBuilder::try_new(input).map(drop))
}

/// Reads a table.
pub(crate) fn read<R: Row>(input: File) -> Result<Vec<R>> {
    without_panic(|| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(input)?.with_batch_size(BATCH).build()?;
        let mut rows = Vec::new();
        for batch in reader {
            rows.append(&mut R::decode(&batch?)?);
        }
        Ok(rows)
    })
}

/// The library has assertions that a damaged file can reach. They become errors like all other damage.
fn without_panic<T>(read: impl FnOnce() -> Result<T> + std::panic::UnwindSafe) -> Result<T> {
    std::panic::catch_unwind(read)
        .unwrap_or_else(|_| Err(ParquetError::General("its structure is broken".to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn round_trip<R: Row>(rows: &[R]) -> Vec<R> {
        let mut file = tempfile::tempfile().unwrap();
        write(rows, &mut file).unwrap();
        read(file).unwrap()
    }

    fn flow() -> impl Strategy<Value = FlowRecord> {
        let times = (any::<u64>(), any::<Option<u64>>(), any::<Option<u64>>(), any::<u64>(), any::<u64>());
        (any::<[u32; 7]>(), any::<[u64; 7]>(), times).prop_map(|(small, large, times)| FlowRecord {
            src: small[0],
            dst: small[1],
            flow: small[2],
            bytes: large[0],
            start: Time(times.0),
            fct: times.1.map(Time),
            sender_fct: times.2.map(Time),
            idle_fct: Time(times.3),
            packets: large[1],
            ooo_packets: large[2],
            max_ood: small[3],
            retransmissions: large[3],
            timeouts: small[4],
            ecn_marks: large[4],
            path_changes: small[5],
            drains: small[6],
            drain_time: Time(times.4),
            decisions: large[5],
            deviations: large[6],
        })
    }

    proptest! {
        #[test]
        fn any_flows_read_back(flows in prop::collection::vec(flow(), 0..50)) {
            prop_assert_eq!(round_trip(&flows), flows);
        }
    }

    #[test]
    fn tables_of_several_batches_read_back_in_order() {
        let sample = |index| SampleRecord { time: Time(index), channel: 3, queue: index % 7, bytes: 1 };
        let samples: Vec<_> = (0..2 * BATCH as u64 + 5).map(sample).collect();
        assert_eq!(round_trip(&samples), samples);
    }

    #[test]
    fn wrong_columns_are_named() {
        let wrong = |name: &str, cells: ArrayRef| {
            let batch = RecordBatch::try_from_iter([(name, cells)]).unwrap();
            SampleRecord::decode(&batch).unwrap_err().to_string()
        };
        let numbers = || Arc::new(UInt32Array::from(vec![1, 2]));
        assert!(wrong("time", numbers()).contains("no column `time_ps`"));
        assert!(wrong("time_ps", numbers()).contains("column `time_ps`: expected UInt64, found UInt32"));
        let holes = Arc::new(UInt64Array::from(vec![Some(1), None]));
        assert!(wrong("time_ps", holes).contains("column `time_ps`: null in row 1"));
    }
}
