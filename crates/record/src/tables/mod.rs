//! The Parquet tables: each is declared once, column by column, for writing and reading alike.
//!
//! The columns are documented in `docs/outcome.md`; times are `UInt64` picoseconds under names that end in `_ps`.

mod column;

use std::fs::File;
use std::io::Write;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch};
use arrow::datatypes::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::errors::{ParquetError, Result};
use parquet::file::properties::WriterProperties;

pub(crate) use self::column::Names;
use self::column::{Column, Name, Plain};
use crate::records::{ChannelRecord, FlowRecord, FlowSampleRecord, SampleRecord, WindowRecord};

/// A record type that is a row of a table.
pub(crate) trait Row: Sized + Default + Clone {
    /// Names and types of the columns.
    fn schema() -> Schema;
    /// Columns from rows.
    fn encode(rows: &[Self], names: &Names) -> Result<Vec<ArrayRef>>;
    /// Rows from columns.
    fn decode(batch: &RecordBatch, names: &Names) -> Result<Vec<Self>>;
}

macro_rules! table {
    ($Row:ident { $($field:ident: $column:expr),+ $(,)? }) => {
        impl Row for $Row {
            fn schema() -> Schema {
                // The columns' types are those of the fields.
                fn field<V>(column: impl Column<V>, _: &V) -> Field {
                    column.field()
                }
                let row = $Row::default();
                Schema::new(vec![$(field($column, &row.$field)),+])
            }

            fn encode(rows: &[Self], names: &Names) -> Result<Vec<ArrayRef>> {
                Ok(vec![$($column.encode(rows.iter().map(|row| row.$field.clone()), names)?),+])
            }

            fn decode(batch: &RecordBatch, names: &Names) -> Result<Vec<Self>> {
                let mut rows = vec![$Row::default(); batch.num_rows()];
                $(
                    for (row, value) in rows.iter_mut().zip($column.decode(batch, names)?) {
                        row.$field = value;
                    }
                )+
                Ok(rows)
            }
        }
    };
}

/// The name of a flow's kind of traffic.
const GROUP: Name = Name("group", |names| &names.groups);

table!(FlowRecord {
    src: Plain("src"),
    dst: Plain("dst"),
    flow: Plain("flow"),
    bytes: Plain("bytes"),
    start: Plain("start_ps"),
    fct: Plain("fct_ps"),
    sender_fct: Plain("sender_fct_ps"),
    idle_fct: Plain("idle_fct_ps"),
    packets: Plain("packets"),
    ooo_packets: Plain("ooo_packets"),
    max_ood: Plain("max_ood"),
    retransmissions: Plain("retransmissions"),
    timeouts: Plain("timeouts"),
    ecn_marks: Plain("ecn_marks"),
    path_changes: Plain("path_changes"),
    drains: Plain("drains"),
    drain_time: Plain("drain_time_ps"),
    decisions: Plain("decisions"),
    deviations: Plain("deviations"),
    group: GROUP,
    class: Plain("class"),
    stream: Plain("stream"),
    delivered: Plain("delivered_bytes"),
    delivered_after_warm_up: Plain("delivered_after_warm_up_bytes"),
    max_resequencing: Plain("max_resequencing"),
    cnms: Plain("cnms"),
});

table!(ChannelRecord {
    channel: Plain("channel"),
    from: Plain("from"),
    to: Plain("to"),
    tier: Plain("tier"),
    rate: Plain("rate_bps"),
    bytes: Plain("bytes"),
    packets: Plain("packets"),
    busy: Plain("busy_ps"),
    max_queue: Plain("max_queue_bytes"),
    mean_queue: Plain("mean_queue_bytes"),
    drops: Plain("drops"),
    marks: Plain("marks"),
    paused: Plain("paused_ps"),
    pauses: Plain("pauses"),
});

table!(SampleRecord {
    time: Plain("time_ps"),
    channel: Plain("channel"),
    queue: Plain("queue_bytes"),
    bytes: Plain("bytes"),
    paused: Plain("paused_ps"),
});

table!(FlowSampleRecord {
    time: Plain("time_ps"),
    src: Plain("src"),
    dst: Plain("dst"),
    flow: Plain("flow"),
    bytes: Plain("bytes"),
    resequencing: Plain("resequencing"),
});

table!(WindowRecord {
    window: Name("window", |names| &names.windows),
    src: Plain("src"),
    dst: Plain("dst"),
    flow: Plain("flow"),
    group: GROUP,
    bytes: Plain("bytes"),
});

/// Rows encoded at a time, so that a large table needs little memory beyond its rows.
const BATCH: usize = 1 << 16;

/// Writes a table; equal rows give equal bytes.
pub(crate) fn write<R: Row>(rows: &[R], names: &Names, output: impl Write + Send) -> Result<()> {
    let properties = WriterProperties::builder()
        // The library's default names its version, which would change the bytes with every update of it.
        .set_created_by("netloom".to_owned())
        .set_compression(Compression::SNAPPY)
        .build();
    let schema = Arc::new(R::schema());
    let mut writer = ArrowWriter::try_new(output, schema.clone(), Some(properties))?;
    for rows in rows.chunks(BATCH) {
        writer.write(&RecordBatch::try_new(schema.clone(), R::encode(rows, names)?)?)?;
    }
    writer.close()?;
    Ok(())
}

/// Checks that a file is a table, without reading its rows.
pub(crate) fn check(input: File) -> Result<()> {
    without_panic(|| ParquetRecordBatchReaderBuilder::try_new(input).map(drop))
}

/// Reads a table.
pub(crate) fn read<R: Row>(input: File, names: &Names) -> Result<Vec<R>> {
    without_panic(|| {
        let reader = ParquetRecordBatchReaderBuilder::try_new(input)?.with_batch_size(BATCH).build()?;
        let mut rows = Vec::new();
        for batch in reader {
            rows.append(&mut R::decode(&batch?, names)?);
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
    use arrow::array::{AsArray, UInt32Array, UInt64Array};
    use netloom_units::Time;
    use proptest::prelude::*;

    fn names() -> Names {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        Names { groups: names(["hot", "cold"]), windows: names(["before", "after"]) }
    }

    fn round_trip<R: Row>(rows: &[R]) -> Vec<R> {
        let mut file = tempfile::tempfile().unwrap();
        write(rows, &names(), &mut file).unwrap();
        read(file, &names()).unwrap()
    }

    fn flow() -> impl Strategy<Value = FlowRecord> {
        let times = (any::<u64>(), any::<Option<u64>>(), any::<Option<u64>>(), any::<u64>(), any::<u64>());
        let kind = (0..2u16, any::<u8>(), any::<bool>());
        (any::<[u32; 8]>(), any::<[u64; 10]>(), times, kind).prop_map(|(small, large, times, kind)| {
            FlowRecord {
                group: kind.0,
                class: kind.1,
                stream: kind.2,
                delivered: large[7],
                delivered_after_warm_up: large[8],
                max_resequencing: small[7],
                cnms: large[9],
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
            }
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
        let sample = |index| SampleRecord {
            time: Time(index),
            channel: 3,
            queue: index % 7,
            bytes: 1,
            paused: Time(index % 5),
        };
        let samples: Vec<_> = (0..2 * BATCH as u64 + 5).map(sample).collect();
        assert_eq!(round_trip(&samples), samples);
    }

    #[test]
    fn wrong_columns_are_named() {
        let wrong = |name: &str, cells: ArrayRef| {
            let batch = RecordBatch::try_from_iter([(name, cells)]).unwrap();
            SampleRecord::decode(&batch, &names()).unwrap_err().to_string()
        };
        let numbers = || Arc::new(UInt32Array::from(vec![1, 2]));
        assert!(wrong("time", numbers()).contains("no column `time_ps`"));
        assert!(wrong("time_ps", numbers()).contains("column `time_ps`: expected UInt64, found UInt32"));
        let holes = Arc::new(UInt64Array::from(vec![Some(1), None]));
        assert!(wrong("time_ps", holes).contains("column `time_ps`: null in row 1"));
    }

    #[test]
    fn kinds_of_traffic_and_windows_stand_in_the_tables_by_name() {
        let record = WindowRecord { window: 1, group: 1, bytes: 9, ..WindowRecord::default() };
        assert_eq!(round_trip(std::slice::from_ref(&record)), std::slice::from_ref(&record));
        let columns = WindowRecord::encode(&[record], &names()).unwrap();
        assert_eq!(
            (columns[0].as_string::<i32>().value(0), columns[4].as_string::<i32>().value(0)),
            ("after", "cold")
        );

        let nameless = WindowRecord { group: 2, ..WindowRecord::default() };
        let error = WindowRecord::encode(&[nameless], &names()).unwrap_err().to_string();
        assert!(error.contains("column `group`: number 2 has no name"), "{error}");
        let schema = Arc::new(WindowRecord::schema());
        let batch = RecordBatch::try_new(schema, columns).unwrap();
        let error = WindowRecord::decode(&batch, &Names::default()).unwrap_err().to_string();
        assert!(error.contains("column `window`: unknown name `after`"), "{error}");
    }
}
