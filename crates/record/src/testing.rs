//! One small run that all tests of this crate share.

use netloom_units::{Rate, Time};

use crate::{
    ActivityRecord, ChannelRecord, ChannelWindowRecord, CollectiveRecord, ConWeaveCount, DecisionCount,
    EntryCount, FlowRecord, FlowSampleRecord, FlowletRecord, GapRecord, JobNames, JobRecord, JobRecords,
    NamedChannel, OperationRecord, PacketCounts, PacketStatistics, PartRecord, RankRecord, Records,
    ReorderingCount, SampleRecord, SenderSampleRecord, Totals, TraceRecord, Window, WindowRecord,
};

/// An unfinished flow of 10 packets with an idle FCT of 1 µs.
pub(crate) fn flow(src: u32, flow: u32) -> FlowRecord {
    FlowRecord {
        src,
        dst: src + 1,
        flow,
        bytes: 100,
        packets: 10,
        ideal_fct: Time::from_us(1),
        ..Default::default()
    }
}

pub(crate) fn channel(channel: u32, tier: &str) -> ChannelRecord {
    ChannelRecord {
        channel,
        from: format!("host {channel}").into(),
        to: "switch 0".into(),
        tier: tier.into(),
        rate: Rate::from_gbps(200),
        bytes: 10_000,
        packets: 10,
        busy: Time::from_us(5),
        bytes_in_drain: 0,
        busy_in_drain: Time::ZERO,
        utilisation: 0.5,
        active_utilisation: 0.75,
        max_queue: 1024,
        mean_queue: 12.5,
        drops: 0,
        lost: 0,
        trims: 0,
        returned_to_sender: 0,
        marks: 1,
        paused: Time::ZERO,
        pauses: 0,
    }
}

/// Two packets.
fn packet_statistics() -> PacketStatistics {
    let mut packets = PacketStatistics::default();
    packets.add(Time::from_us(1), 2);
    packets.add(Time::from_us(3), 4);
    packets
}

/// A completed flow delivered all of it.
fn delivered(flow: FlowRecord) -> FlowRecord {
    FlowRecord { delivered: flow.bytes, delivered_after_warm_up: flow.bytes, ..flow }
}

/// Three flows that completed (one of another group), one that did not, three channels (one with a name), two samples
/// of channels and two of flows, two windows, 10 µs.
pub(crate) fn records() -> Records {
    let us = |us| Some(Time::from_us(us));
    let drained = FlowRecord { drains: 2, drain_time: Time::from_us(1), ..flow(1, 1) };
    let decision = DecisionCount { taken: 120, non_default: 7 };
    let window = |name: &str, from, until| Window {
        name: name.to_owned(),
        from: Time::from_us(from),
        until: Time::from_us(until),
    };
    let flow_sample = |us, src| FlowSampleRecord {
        time: Time::from_us(us),
        src,
        dst: src + 1,
        flow: 0,
        bytes: 80,
        resequencing: 2,
    };
    let gap = |count| GapRecord {
        src: 1,
        flow: 1,
        from: Time::from_us(2),
        until: Time::from_us(3),
        base_rtt: Time::from_us(1),
        base_rtts: 2,
        count,
    };
    let rank = |rank| RankRecord {
        rank,
        end: us(9),
        computation: Time::from_us(4),
        exposed: Time::from_us(3),
        waiting: Time::from_us(2),
        ..RankRecord::default()
    };
    let mut collective = CollectiveRecord {
        operation: "all-reduce".into(),
        name: "gradients".into(),
        ranks: 2,
        bytes: 5000,
        start: Time::from_us(4),
        ..CollectiveRecord::default()
    };
    collective.complete(Time::from_us(9), Some((2, 2)));
    let jobs = JobRecords {
        jobs: vec![JobNames { name: "llama".to_owned(), ranks: 2, repetitions: 1 }],
        repetitions: vec![JobRecord {
            ranks: 2,
            end: us(9),
            time: us(9),
            bytes: 5000,
            ..JobRecord::default()
        }],
        ranks: vec![rank(0), rank(1)],
        collectives: vec![collective],
        activities: vec![ActivityRecord {
            rank: 1,
            activity: "waiting".into(),
            end: Time::from_us(2),
            src: Some(0),
            flow: Some(7),
            ..ActivityRecord::default()
        }],
        operations: vec![OperationRecord {
            rank: 1,
            kind: "receive".into(),
            end: us(2),
            src: Some(0),
            flow: Some(7),
            ..OperationRecord::default()
        }],
    };
    Records {
        jobs,
        groups: ["victim", "hot"].map(str::to_owned).to_vec(),
        windows: vec![window("burst", 2, 6), window("late", 9, 12)],
        named_channels: vec![NamedChannel { name: "up".to_owned(), channel: 0 }],
        parts: Some(
            vec![PartRecord { server: 0, rail: 1, src: 1, dst: 3, bytes: 100, ..Default::default() }].into(),
        ),
        flows: vec![
            delivered(FlowRecord { fct: us(1), sender_fct: us(2), ..flow(0, 0) }),
            delivered(FlowRecord {
                start: Time::from_us(2),
                fct: us(3),
                sender_fct: us(4),
                bytes: 1000,
                ooo_packets: 4,
                max_resequencing: 3,
                ..flow(1, 0)
            }),
            delivered(FlowRecord {
                start: Time::from_us(1),
                fct: us(2),
                sender_fct: us(2),
                bytes: 1001,
                group: 1,
                class: 3,
                cnms: 5,
                ..drained
            }),
            FlowRecord { start: Time::from_us(9), ..flow(2, 0) },
        ],
        channels: vec![
            ChannelRecord { paused: Time::from_us(2), pauses: 3, ..channel(0, "host") },
            ChannelRecord { busy: Time(2_500_000), ..channel(1, "host") },
            channel(2, "spine"),
        ],
        samples: vec![
            SampleRecord { time: Time::from_us(5), channel: 0, queue: 7, bytes: 3, paused: Time::from_us(1) },
            SampleRecord { time: Time::from_us(5), channel: 2, queue: 0, bytes: 1, paused: Time::ZERO },
        ]
        .into(),
        flow_samples: vec![flow_sample(1, 0), flow_sample(2, 1)].into(),
        sender_samples: vec![SenderSampleRecord {
            time: Time::from_us(1),
            dst: 1,
            rtt: us(2),
            acked: 100,
            ..SenderSampleRecord::default()
        }]
        .into(),
        gaps: Some(vec![gap(7)].into()),
        switch_gaps: Some(vec![gap(5)].into()),
        flowlets: Some(
            vec![
                FlowletRecord { switch: "s0".into(), src: 1, flow: 1, packets: Some(6), flowlets: 2 },
                FlowletRecord { switch: "s2".into(), src: 1, flow: 1, packets: None, flowlets: 3 },
            ]
            .into(),
        ),
        window_flows: vec![
            WindowRecord { window: 0, src: 1, dst: 2, flow: 0, group: 0, bytes: 400 },
            WindowRecord { window: 0, src: 1, dst: 2, flow: 1, group: 1, bytes: 200 },
        ]
        .into(),
        window_channels: vec![
            ChannelWindowRecord {
                window: 0,
                channel: 0,
                bytes: 4000,
                queue_byte_ps: 25 * 4_000_000,
                paused: Time::from_us(1),
            },
            ChannelWindowRecord { window: 1, ..ChannelWindowRecord::default() },
        ],
        flow_packets: vec![packet_statistics().flow_record((1, 2, 0), (1, 0))].into(),
        packets: [((1, 0), packet_statistics())].into(),
        latencies: packet_statistics().latency_rows((1, 0)).collect(),
        trace: vec![TraceRecord {
            channel: 2,
            kind: "data".to_owned(),
            size: 1000,
            ..TraceRecord::default()
        }]
        .into(),
        totals: Totals {
            simulated: Time::from_us(10),
            load_until: None,
            makespan: Some(Time::from_us(6)),
            active_from: Some(Time::ZERO),
            active_until: Time::from_us(10),
            packet_hops: 240,
            data: PacketCounts { sent: 40, delivered: 38, dropped: 1, in_flight: 1, lost: 0, trimmed: 0 },
            control: PacketCounts { sent: 38, delivered: 38, dropped: 0, in_flight: 0, lost: 0, trimmed: 0 },
            decisions: [("least-loaded".to_owned(), decision)].into(),
            flowcut_entries: Some(EntryCount { switches: 4, peak: 9, mean: 2.5 }),
            conweave: Some(ConWeaveCount {
                late_replies: 9,
                reroutes: 5,
                flushes: 1,
                held_bytes_peak: 8320,
                held_bytes_mean: 12.5,
            }),
            reordering: ReorderingCount {
                nacks: 3,
                duplicates: 2,
                buffer_bytes_mean: 0.5,
                ..ReorderingCount::default()
            },
        },
    }
}
