//! What flows leave behind at their ends is handed in while the run goes on; what comes late is added to it.

mod common;

use common::*;
use netloom_fabric::Queue;
use netloom_fabric::queue::trimming::Trimming;
use netloom_record::{FlowRecord, Records};
use netloom_sim::SimConfig;
use netloom_transport::{Transport, preset};
use netloom_units::{Bytes, Time};
use netloom_workload::{Message, Plan};

/// Four hosts send many flows of a packet or two to the fifth.
fn many_to_one(config: SimConfig) -> Records {
    let message =
        |i: u32| Message::new(4, Bytes(1000 + u64::from(i % 3) * 2000), Time::from_ns(u64::from(i) * 100));
    let plan = Plan::of_messages(5, (0..4).flat_map(|src| (0..100).map(move |i| (src, message(i)))));
    run(crossbar(5), config, plan)
}

fn sum(records: &Records, field: impl Fn(&FlowRecord) -> u64) -> u64 {
    records.flows.iter().map(field).sum()
}

/// Timers that go off while all is in the queue: everything comes twice or more often, most of it when its flow has long been complete.
fn hasty(transport: Transport) -> SimConfig {
    let mut config = SimConfig { transport, ..scheme("ecmp") };
    config.transport.options.rto_initial = Time::from_us(4);
    config.transport.options.rto_min = Time::from_us(4);
    config
}

/// Who measures packets keeps all that is known at receivers in memory until the run is over.
#[test]
fn late_duplicates_are_counted_whether_their_flow_was_handed_in_or_not() {
    for warm_up in [Time::ZERO, Time::from_us(20)] {
        let mut config = hasty(Transport::default());
        // Lossy, so that there are timers, but with room for all.
        config.fabric.options.buffer = Some(Bytes(1 << 22));
        config.fabric.options.ecn = Some(netloom_fabric::Ecn {
            kmin: Bytes(8_000),
            kmax: Bytes(8_001),
            pmax: 1.0,
            mark: Default::default(),
        });
        config.measure.warm_up = warm_up;
        let handed_in = many_to_one(config.clone());
        config.measure.packets = true;
        let kept = many_to_one(config);
        assert_eq!(handed_in.flows, kept.flows);
        assert_eq!(handed_in.totals, kept.totals);
        let duplicates = handed_in.totals.reordering.duplicates;
        assert!(duplicates > 100 && sum(&kept, |flow| flow.ecn_marks) > 400, "{duplicates}");
        let before = sum(&kept, |flow| flow.delivered - flow.delivered_after_warm_up);
        assert_eq!(before > 0, warm_up > Time::ZERO);
    }
}

/// Without them the packets of these flows would not add up.
#[test]
fn headers_that_come_back_to_flows_that_were_handed_in_are_counted() {
    let mut config = hasty(preset::find("ndp").unwrap().transport());
    config.fabric.queue =
        Queue::Trimming(Trimming { control_buffer: Some(Bytes(200)), ..Trimming::default() });
    let records = many_to_one(config);
    let returns = sum(&records, |flow| u64::from(flow.returned_to_sender));
    assert!(returns > 10, "{returns}");
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
}
