//! Every table, column by column.

use netloom_parquet::{Error, RowGroup};

use super::Row;
use super::by_column::{ByColumn, CHUNK, TableColumn};
use super::column::{Column, Name, Names, Optional, Plain};
use crate::jobs::{ActivityRecord, CollectiveRecord, JobRecord, OperationRecord, RankRecord};
use crate::node_records::{
    DecisionRow, FlowObservationRecord, PacketStatisticsRow, ReceiverRecord, SenderRecord, WindowRow,
};
use crate::packets::{FlowPacketRecord, LatencyRecord, TraceRecord};
use crate::records::{
    ChannelRecord, FlowRecord, FlowSampleRecord, FlowletRecord, GapRecord, PartRecord, SampleRecord,
    SenderSampleRecord, WindowRecord,
};
use crate::values::Value;

/// Implements [`Row`] by a list of fields, each with its column.
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

table!(SenderRecord {
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

table!(DecisionRow {
    src: Plain("src"),
    flow: Plain("flow"),
    decisions: Plain("decisions"),
    non_default_decisions: Plain("non_default_decisions"),
});

table!(ReceiverRecord {
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

table!(WindowRow {
    src: Plain("src"),
    dst: Plain("dst"),
    flow: Plain("flow"),
    window: Plain("window"),
    bytes: Plain("bytes"),
});

table!(PacketStatisticsRow {
    src: Plain("src"),
    flow: Plain("flow"),
    quantity: Plain("quantity"),
    place: Plain("place"),
    value: Plain("value"),
});

table!(FlowObservationRecord {
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

table!(SenderSampleRecord {
    time: Plain("time_ps"),
    src: Plain("src"),
    dst: Plain("dst"),
    flow: Plain("flow"),
    subflow: Plain("subflow"),
    window: Optional("window_bytes"),
    rate: Optional("rate_bps"),
    rtt: Optional("rtt_ps"),
    in_flight: Plain("in_flight"),
    acked: Plain("acked_bytes"),
    marks: Plain("marks"),
    cuts: Plain("cuts"),
    losses: Plain("losses"),
    trims: Plain("trims"),
    notifications: Plain("notifications"),
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

/// The name of a job.
const JOB: Name = Name("job", |names| &names.jobs);

table!(JobRecord {
    job: JOB,
    repetition: Plain("repetition"),
    ranks: Plain("ranks"),
    start: Plain("start_ps"),
    end: Optional("end_ps"),
    time: Optional("time_ps"),
    computation: Plain("computation_ps"),
    exposed: Plain("exposed_ps"),
    waiting: Plain("waiting_ps"),
    bytes: Plain("bytes"),
    messages: Plain("messages"),
});

table!(RankRecord {
    job: JOB,
    rank: Plain("rank"),
    repetition: Plain("repetition"),
    host: Plain("host"),
    start: Plain("start_ps"),
    end: Optional("end_ps"),
    computation: Plain("computation_ps"),
    exposed: Plain("exposed_ps"),
    waiting: Plain("waiting_ps"),
    bytes: Plain("bytes"),
    messages: Plain("messages"),
});

table!(ActivityRecord {
    job: JOB,
    rank: Plain("rank"),
    repetition: Plain("repetition"),
    activity: Plain("activity"),
    start: Plain("start_ps"),
    end: Plain("end_ps"),
    src: Optional("src"),
    flow: Optional("flow"),
});

table!(OperationRecord {
    job: JOB,
    rank: Plain("rank"),
    repetition: Plain("repetition"),
    operation: Plain("operation"),
    kind: Plain("kind"),
    start: Plain("start_ps"),
    end: Optional("end_ps"),
    after: Optional("after"),
    src: Optional("src"),
    flow: Optional("flow"),
    collective: Optional("collective"),
    bytes: Plain("bytes"),
    label: Plain("label"),
});

table!(CollectiveRecord {
    job: JOB,
    repetition: Plain("repetition"),
    collective: Plain("collective"),
    operation: Plain("operation"),
    name: Plain("name"),
    group: Plain("group"),
    ranks: Plain("ranks"),
    bytes: Plain("bytes"),
    start: Plain("start_ps"),
    last_start: Plain("last_start_ps"),
    end: Optional("end_ps"),
    time: Optional("time_ps"),
    algbw: Optional("algbw_bps"),
    busbw: Optional("busbw_bps"),
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
