use super::*;
use crate::records::{FlowRecord, SampleRecord, WindowRecord};
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
    (any::<[u32; 13]>(), any::<[u64; 11]>(), times, kind).prop_map(|(small, large, times, kind)| FlowRecord {
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
            OutcomeTable::SenderSeries => records.sender_samples.len() as usize,
            OutcomeTable::Gaps => records.gaps.as_ref().map_or(0, Series::len) as usize,
            OutcomeTable::SwitchGaps => records.switch_gaps.as_ref().map_or(0, Series::len) as usize,
            OutcomeTable::Flowlets => records.flowlets.as_ref().map_or(0, Series::len) as usize,
            OutcomeTable::Windows => records.window_flows.len() as usize,
            OutcomeTable::Packets => records.flow_packets.len() as usize,
            OutcomeTable::Latency => records.latencies.len(),
            OutcomeTable::Trace => records.trace.len() as usize,
            OutcomeTable::Jobs => records.jobs.repetitions.len(),
            OutcomeTable::Ranks => records.jobs.ranks.len(),
            OutcomeTable::Collectives => records.jobs.collectives.len(),
            OutcomeTable::Activities => records.jobs.activities.len(),
            OutcomeTable::Operations => records.jobs.operations.len(),
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
