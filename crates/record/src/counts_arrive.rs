//! Every count of a flow arrives in what is made of it: each has another value here, so that one that is left out, or taken for another, shows.

use netloom_units::Time;

use crate::summary::PacketSummary;
use crate::tally::Tally;
use crate::{FlowRecord, PartRecord, ReceiverRecord, SummaryOptions};

/// A flow whose counts are `unit` times different numbers.
fn flow(unit: u32) -> FlowRecord {
    let count = |number: u32| u64::from(unit * number);
    FlowRecord {
        src: 1,
        dst: 2,
        flow: 3,
        group: 0,
        class: 0,
        stream: false,
        bytes: count(2),
        delivered: count(7),
        delivered_after_warm_up: count(5),
        delivered_in_drain: count(3),
        start: Time(11),
        fct: Some(Time(count(13))),
        sender_fct: Some(Time(count(17))),
        ideal_fct: Time(count(19)),
        packets: count(23),
        ooo_packets: count(29),
        max_ood: unit * 31,
        max_resequencing: unit * 37,
        trims: count(41),
        returned_to_sender: unit * 43,
        retransmissions: count(47),
        timeouts: unit * 53,
        ecn_marks: count(59),
        cnms: unit * 61,
        cnps: unit * 67,
        flowlets: unit * 71,
        stretched: unit * 73,
        path_changes: unit * 79,
        drains: unit * 83,
        drain_time: Time(count(89)),
        decisions: count(97),
        non_default_decisions: count(101),
    }
}

#[test]
fn in_the_summary() {
    let mut tally = Tally::new(&SummaryOptions::default(), &[]);
    tally.add_flow(&flow(1));
    tally.add_flow(&FlowRecord { src: 2, ..flow(2) });
    let counted = tally.flows.finish().unwrap();
    let expected = PacketSummary {
        sent: 3 * 23,
        ooo: 3 * 29,
        ooo_share: 29.0 / 23.0,
        max_ood: 2 * 31,
        max_resequencing: 2 * 37,
        trims: 3 * 41,
        returned_to_sender: 3 * 43,
        retransmissions: 3 * 47,
        timeouts: 3 * 53,
        ecn_marks: 3 * 59,
        cnms: 3 * 61,
        cnps: 3 * 67,
        flowlets: 3 * 71,
        stretched: 3 * 73,
        path_changes: 3 * 79,
        decisions: 3 * 97,
        non_default_decisions: 3 * 101,
    };
    assert_eq!(counted.packets(), expected);
    let draining = counted.draining();
    assert_eq!((draining.drains, draining.flows), (3 * 83, 2));
}

#[test]
fn in_the_message_of_which_a_flow_is_a_part() {
    let mut message = flow(1);
    message.add_part(&flow(2));
    let expected = FlowRecord {
        fct: Some(Time(2 * 13)),
        sender_fct: Some(Time(2 * 17)),
        ideal_fct: Time(2 * 19),
        max_ood: 2 * 31,
        max_resequencing: 2 * 37,
        ..flow(3)
    };
    assert_eq!(message, expected);
    let part = PartRecord::new(&flow(1), (7, 8), (9, 10));
    let expected = PartRecord {
        server: 7,
        flow: 3,
        rail: 8,
        src: 9,
        dst: 10,
        bytes: 2,
        delivered: 7,
        start: Time(11),
        fct: Some(Time(13)),
        sender_fct: Some(Time(17)),
        ideal_fct: Time(19),
        packets: 23,
        ooo_packets: 29,
        retransmissions: 47,
        ecn_marks: 59,
    };
    assert_eq!(part, expected);
}

#[test]
fn in_the_flow_of_which_the_receiver_knows_them() {
    let half = |unit: u32| ReceiverRecord {
        completed: Some(Time(111)),
        delivered: u64::from(unit * 8),
        before_warm_up: u64::from(unit * 3),
        in_drain: u64::from(unit * 4),
        packets: u64::from(unit * 23),
        marks: u64::from(unit * 59),
        ooo_packets: u64::from(unit * 29),
        headers: unit * 41,
        max_ood: unit * 31,
        max_resequencing: unit * 37,
        path_changes: unit * 79,
        ..ReceiverRecord::default()
    };
    let mut both = half(1);
    both.add(&half(2));
    assert_eq!(both.packets, 3 * 23);
    let mut known = FlowRecord { start: Time(11), ..FlowRecord::default() };
    both.complete(&mut known);
    let all = flow(3);
    let expected = FlowRecord {
        start: Time(11),
        fct: Some(Time(100)),
        delivered: 3 * 8,
        delivered_after_warm_up: 3 * 5,
        delivered_in_drain: 3 * 4,
        ooo_packets: all.ooo_packets,
        max_ood: 2 * 31,
        max_resequencing: 2 * 37,
        trims: all.trims,
        ecn_marks: all.ecn_marks,
        path_changes: all.path_changes,
        ..FlowRecord::default()
    };
    assert_eq!(known, expected);
}
