//! The Parquet tables: each is declared once, column by column, for writing and reading alike.
//!
//! The columns are documented in `docs/outcome.md`; times are `UInt64` picoseconds under names that end in `_ps`.

mod by_column;
mod column;

use std::fs::File;
use std::io::Write;

use netloom_parquet::{Error, Field, GROUP_ROWS, GroupWriter, RowGroup, Writer};

use self::by_column::{ByColumn, CHUNK};
pub use self::by_column::{TableColumn, Values};
pub(crate) use self::column::Names;
use self::column::{Column, Name, Optional, Plain};
use crate::halves::{PacketHalf, Passage, ReceiverHalf, SenderHalf, SwitchHalf, WindowHalf};
use crate::packets::{FlowPacketRecord, LatencyRecord, TraceRecord};
use crate::records::{
    ChannelRecord, FlowRecord, FlowSampleRecord, FlowletRecord, GapRecord, PartRecord, Records, SampleRecord,
    WindowRecord,
};
use crate::series::{Series, SeriesError, SeriesRow};
use crate::values::Value;

/// A record type that is a row of a table.
pub trait Row: Sized + Default + Clone {
    /// The columns in memory.
    fn columns(rows: &[Self], names: &Names) -> Vec<TableColumn>;
    /// Names and types of the columns.
    fn fields() -> Vec<Field>;
    /// Writes rows as a row group's columns.
    fn write<W: Write + Send>(
        rows: &[Self],
        names: &Names,
        group: &mut GroupWriter<'_, W>,
    ) -> Result<(), Error>;
    /// Rows from a row group's columns.
    fn read(group: &RowGroup<'_>, names: &Names) -> Result<Vec<Self>, Error>;
}

macro_rules! table {
    ($Row:ident { $($field:ident: $column:expr),+ $(,)? }) => {
        impl Row for $Row {
            fn columns(rows: &[Self], names: &Names) -> Vec<TableColumn> {
                fn empty<V>(column: impl ByColumn<V>, _: &V, rows: usize, names: &Names) -> TableColumn {
                    column.empty(rows, names)
                }
                let row = $Row::default();
                let mut columns = vec![$(empty($column, &row.$field, rows.len(), names)),+];
                for rows in rows.chunks(CHUNK) {
                    let mut next = columns.iter_mut().map(|column| &mut column.values);
                    $(
                        if let Some(values) = next.next() {
                            $column.extend(values, rows.iter().map(|row| row.$field.clone()));
                        }
                    )+
                }
                columns
            }

            fn fields() -> Vec<Field> {
                // The columns' types are those of the fields.
                fn field<V>(column: impl Column<V>, _: &V) -> Field {
                    column.field()
                }
                let row = $Row::default();
                vec![$(field($column, &row.$field)),+]
            }

            fn write<W: Write + Send>(
                rows: &[Self],
                names: &Names,
                group: &mut GroupWriter<'_, W>,
            ) -> Result<(), Error> {
                $($column.write(rows.iter().map(|row| row.$field.clone()), names, group)?;)+
                Ok(())
            }

            fn read(group: &RowGroup<'_>, names: &Names) -> Result<Vec<Self>, Error> {
                let mut rows = vec![$Row::default(); group.rows()];
                $(
                    for (row, value) in rows.iter_mut().zip($column.read(group, names)?) {
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
    fct: Optional("fct_ps"),
    sender_fct: Optional("sender_fct_ps"),
    ideal_fct: Plain("ideal_fct_ps"),
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
    non_default_decisions: Plain("non_default_decisions"),
    group: GROUP,
    class: Plain("class"),
    stream: Plain("stream"),
    delivered: Plain("delivered_bytes"),
    delivered_after_warm_up: Plain("delivered_after_warm_up_bytes"),
    max_resequencing: Plain("max_resequencing"),
    cnms: Plain("cnms"),
    cnps: Plain("cnps"),
    trims: Plain("trims"),
    returned_to_sender: Plain("returned_to_sender"),
    flowlets: Plain("flowlets"),
    stretched: Plain("stretched"),
    delivered_in_drain: Plain("delivered_in_drain_bytes"),
});

table!(SenderHalf {
    src: Plain("src"),
    dst: Plain("dst"),
    flow: Plain("flow"),
    group: Plain("group"),
    class: Plain("class"),
    stream: Plain("stream"),
    bytes: Plain("bytes"),
    start: Plain("start_ps"),
    sender_fct: Optional("sender_fct_ps"),
    ideal_fct: Plain("ideal_fct_ps"),
    packets: Plain("packets"),
    returned_to_sender: Plain("returned_to_sender"),
    retransmissions: Plain("retransmissions"),
    timeouts: Plain("timeouts"),
    cnms: Plain("cnms"),
    cnps: Plain("cnps"),
    flowlets: Plain("flowlets"),
    stretched: Plain("stretched"),
    drains: Plain("drains"),
    drain_time: Plain("drain_time_ps"),
    decisions: Plain("decisions"),
    non_default_decisions: Plain("non_default_decisions"),
});

table!(SwitchHalf {
    src: Plain("src"),
    flow: Plain("flow"),
    decisions: Plain("decisions"),
    non_default_decisions: Plain("non_default_decisions"),
});

table!(ReceiverHalf {
    src: Plain("src"),
    flow: Plain("flow"),
    completed: Optional("completed_ps"),
    delivered: Plain("delivered_bytes"),
    before_warm_up: Plain("before_warm_up_bytes"),
    in_drain: Plain("in_drain_bytes"),
    packets: Plain("packets"),
    marks: Plain("marks"),
    ooo_packets: Plain("ooo_packets"),
    headers: Plain("headers"),
    max_ood: Plain("max_ood"),
    max_resequencing: Plain("max_resequencing"),
    path_changes: Plain("path_changes"),
});

table!(Value { quantity: Plain("quantity"), part: Plain("part"), value: Plain("value") });

table!(WindowHalf {
    src: Plain("src"),
    dst: Plain("dst"),
    flow: Plain("flow"),
    window: Plain("window"),
    bytes: Plain("bytes"),
});

table!(PacketHalf {
    src: Plain("src"),
    flow: Plain("flow"),
    quantity: Plain("quantity"),
    place: Plain("place"),
    value: Plain("value"),
});

table!(Passage {
    src: Plain("src"),
    flow: Plain("flow"),
    number: Plain("number"),
    switch: Plain("switch"),
    first: Plain("first_ps"),
    last: Plain("last_ps"),
    packets: Plain("packets"),
    flowlets: Plain("flowlets"),
    is_first_hop: Plain("is_first_hop"),
    base_rtt: Plain("base_rtt_ps"),
});

table!(PartRecord {
    server: Plain("server"),
    flow: Plain("flow"),
    rail: Plain("rail"),
    src: Plain("src"),
    dst: Plain("dst"),
    bytes: Plain("bytes"),
    delivered: Plain("delivered_bytes"),
    start: Plain("start_ps"),
    fct: Optional("fct_ps"),
    sender_fct: Optional("sender_fct_ps"),
    ideal_fct: Plain("ideal_fct_ps"),
    packets: Plain("packets"),
    ooo_packets: Plain("ooo_packets"),
    retransmissions: Plain("retransmissions"),
    ecn_marks: Plain("ecn_marks"),
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
    lost: Plain("lost"),
    trims: Plain("trims"),
    returned_to_sender: Plain("returned_to_sender"),
    bytes_in_drain: Plain("bytes_in_drain"),
    busy_in_drain: Plain("busy_in_drain_ps"),
    utilisation: Plain("utilisation"),
    active_utilisation: Plain("active_utilisation"),
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

table!(GapRecord {
    src: Plain("src"),
    flow: Plain("flow"),
    from: Plain("from_ps"),
    until: Plain("until_ps"),
    base_rtt: Plain("base_rtt_ps"),
    base_rtts: Plain("base_rtts"),
    count: Plain("count"),
});

table!(FlowletRecord {
    switch: Plain("switch"),
    src: Plain("src"),
    flow: Plain("flow"),
    packets: Optional("packets"),
    flowlets: Plain("flowlets"),
});

table!(WindowRecord {
    window: Name("window", |names| &names.windows),
    src: Plain("src"),
    dst: Plain("dst"),
    flow: Plain("flow"),
    group: GROUP,
    bytes: Plain("bytes"),
});

table!(FlowPacketRecord {
    src: Plain("src"),
    dst: Plain("dst"),
    flow: Plain("flow"),
    group: GROUP,
    class: Plain("class"),
    packets: Plain("packets"),
    latency_mean_ps: Plain("latency_mean_ps"),
    latency_p50: Plain("latency_p50_ps"),
    latency_p99: Plain("latency_p99_ps"),
    latency_max: Plain("latency_max_ps"),
    hops_mean: Plain("hops_mean"),
    hops_max: Plain("hops_max"),
});

table!(LatencyRecord {
    group: GROUP,
    class: Plain("class"),
    from: Plain("from_ps"),
    until: Plain("until_ps"),
    packets: Plain("packets"),
});

table!(TraceRecord {
    time: Plain("time_ps"),
    channel: Plain("channel"),
    kind: Plain("kind"),
    src: Plain("src"),
    dst: Plain("dst"),
    flow: Plain("flow"),
    seq: Plain("seq"),
    size: Plain("size_bytes"),
    sent: Plain("sent_ps"),
    hops: Plain("hops"),
    class: Plain("class"),
    marked: Plain("marked"),
});

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
            OutcomeTable::Gaps => Row::columns(&rows_of(self.gaps.as_ref())?, &names),
            OutcomeTable::SwitchGaps => Row::columns(&rows_of(self.switch_gaps.as_ref())?, &names),
            OutcomeTable::Flowlets => Row::columns(&rows_of(self.flowlets.as_ref())?, &names),
            OutcomeTable::Windows => Row::columns(&self.window_flows.to_vec()?, &names),
            OutcomeTable::Packets => Row::columns(&self.flow_packets.to_vec()?, &names),
            OutcomeTable::Latency => Row::columns(&self.latencies, &names),
            OutcomeTable::Trace => Row::columns(&self.trace.to_vec()?, &names),
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
}

impl OutcomeTable {
    /// Every table.
    pub const ALL: [Self; 12] = [
        Self::Flows,
        Self::Parts,
        Self::Links,
        Self::Series,
        Self::FlowSeries,
        Self::Gaps,
        Self::SwitchGaps,
        Self::Flowlets,
        Self::Windows,
        Self::Packets,
        Self::Latency,
        Self::Trace,
    ];

    /// The name of its file, without the extension.
    pub fn name(self) -> &'static str {
        match self {
            Self::Flows => "flows",
            Self::Parts => "parts",
            Self::Links => "links",
            Self::Series => "series",
            Self::FlowSeries => "flow_series",
            Self::Gaps => "gaps",
            Self::SwitchGaps => "switch_gaps",
            Self::Flowlets => "flowlets",
            Self::Windows => "windows",
            Self::Packets => "packets",
            Self::Latency => "latency",
            Self::Trace => "trace",
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
    let mut table = Writer::new(output, &R::fields())?;
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
    let mut table = Writer::temporary(output, &R::fields())?;
    for rows in rows.chunks(group_rows) {
        write_group(rows, &Names::numbers(), &mut table)?;
    }
    table.close()
}

/// Writes a table of rows that come one by one; the same bytes as [`write`] would write.
pub(crate) struct Rows<R, W: Write + Send> {
    table: Writer<W>,
    /// Of the row group that is not full yet.
    waiting: Vec<R>,
}

impl<R: Row, W: Write + Send> Rows<R, W> {
    pub(crate) fn new(output: W) -> Result<Self, Error> {
        Ok(Rows { table: Writer::new(output, &R::fields())?, waiting: Vec::new() })
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

fn write_group<R: Row, W: Write + Send>(
    rows: &[R],
    names: &Names,
    table: &mut Writer<W>,
) -> Result<(), Error> {
    let mut group = table.row_group()?;
    R::write(rows, names, &mut group)?;
    group.close()
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

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_units::Time;
    use proptest::prelude::*;

    fn names() -> Names {
        let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
        Names { groups: names(["hot", "cold"]), windows: names(["before", "after"]), ..Names::default() }
    }

    fn round_trip<R: Row>(rows: &[R]) -> Vec<R> {
        let mut file = tempfile::tempfile().unwrap();
        write(rows, &names(), GROUP_ROWS, &mut file).unwrap();
        read(file, &names()).unwrap()
    }

    fn flow() -> impl Strategy<Value = FlowRecord> {
        let times = (any::<u64>(), any::<Option<u64>>(), any::<Option<u64>>(), any::<u64>(), any::<u64>());
        let kind = (0..2u16, any::<u8>(), any::<bool>());
        (any::<[u32; 13]>(), any::<[u64; 11]>(), times, kind).prop_map(|(small, large, times, kind)| {
            FlowRecord {
                group: kind.0,
                class: kind.1,
                stream: kind.2,
                delivered: large[7],
                delivered_after_warm_up: large[8],
                delivered_in_drain: large[10],
                max_resequencing: small[7],
                cnms: small[10],
                cnps: small[8],
                trims: large[9],
                returned_to_sender: small[9],
                flowlets: small[11],
                stretched: small[12],
                src: small[0],
                dst: small[1],
                flow: small[2],
                bytes: large[0],
                start: Time(times.0),
                fct: times.1.map(Time),
                sender_fct: times.2.map(Time),
                ideal_fct: Time(times.3),
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
                non_default_decisions: large[6],
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
    fn tables_of_several_row_groups_read_back_in_order() {
        let sample = |index| SampleRecord {
            time: Time(index),
            channel: 3,
            queue: index % 7,
            bytes: 1,
            paused: Time(index % 5),
        };
        let samples: Vec<_> = (0..2 * GROUP_ROWS as u64 + 5).map(sample).collect();
        assert_eq!(round_trip(&samples), samples);

        let (mut at_once, mut one_by_one) = (Vec::new(), Vec::new());
        write(&samples, &names(), GROUP_ROWS, &mut at_once).unwrap();
        let mut table = Rows::new(&mut one_by_one).unwrap();
        samples.into_iter().for_each(|sample| table.push(sample, &names()).unwrap());
        table.close(&names()).unwrap();
        assert!(at_once == one_by_one, "other bytes");
    }

    #[test]
    fn tables_in_memory_hold_what_the_files_do() {
        let records = crate::testing::records();
        let columns = |table| records.columns(table).unwrap();
        for table in OutcomeTable::ALL {
            let rows = match table {
                OutcomeTable::Flows => records.flows.len(),
                OutcomeTable::Parts => records.parts.as_ref().map_or(0, Series::len) as usize,
                OutcomeTable::Links => records.channels.len(),
                OutcomeTable::Series => records.samples.len() as usize,
                OutcomeTable::FlowSeries => records.flow_samples.len() as usize,
                OutcomeTable::Gaps => records.gaps.as_ref().map_or(0, Series::len) as usize,
                OutcomeTable::SwitchGaps => records.switch_gaps.as_ref().map_or(0, Series::len) as usize,
                OutcomeTable::Flowlets => records.flowlets.as_ref().map_or(0, Series::len) as usize,
                OutcomeTable::Windows => records.window_flows.len() as usize,
                OutcomeTable::Packets => records.flow_packets.len() as usize,
                OutcomeTable::Latency => records.latencies.len(),
                OutcomeTable::Trace => records.trace.len() as usize,
            };
            let mut lengths = columns(table).into_iter().map(|column| match column.values {
                Values::Bool(values) => values.len(),
                Values::U8(values) => values.len(),
                Values::U32(values) => values.len(),
                Values::U64(values) => values.len(),
                Values::OptionalU64(values) => values.len(),
                Values::F64(values) => values.len(),
                Values::Text(values) => values.len(),
                Values::Names { places, .. } => places.len(),
            });
            assert!(rows > 0 && lengths.all(|length| length == rows), "{}", table.name());
        }
        let flows = columns(OutcomeTable::Flows);
        let column = |name| &flows.iter().find(|column| column.name == name).unwrap().values;
        let fct = records.flows.iter().map(|flow| flow.fct.map(|fct| fct.0)).collect();
        assert_eq!(column("fct_ps"), &Values::OptionalU64(fct));
        let places = records.flows.iter().map(|flow| flow.group).collect();
        assert_eq!(column("group"), &Values::Names { places, names: records.groups.clone() });
    }

    #[test]
    fn kinds_of_traffic_and_windows_stand_in_the_tables_by_name() {
        let record = WindowRecord { window: 1, group: 1, bytes: 9, ..WindowRecord::default() };
        assert_eq!(round_trip(std::slice::from_ref(&record)), std::slice::from_ref(&record));

        let file = || {
            let mut file = tempfile::tempfile().unwrap();
            write(std::slice::from_ref(&record), &names(), GROUP_ROWS, &mut file).unwrap();
            file
        };
        let column = |name: &str| -> Result<Vec<String>, Error> {
            netloom_parquet::read(file(), |table| table.row_groups().next().unwrap()?.column(name))
        };
        assert_eq!(column("window").unwrap(), ["after"]);
        assert_eq!(column("group").unwrap(), ["cold"]);

        let nameless = WindowRecord { group: 2, ..WindowRecord::default() };
        let error = write(&[nameless], &names(), GROUP_ROWS, Vec::new()).unwrap_err().to_string();
        assert_eq!(error, "group: number 2 has no name");
        let error = read::<WindowRecord>(file(), &Names::default()).unwrap_err().to_string();
        assert_eq!(error, "window: unknown name `after`");
    }
}
