//! One small run that all tests of this crate share.

use netloom_units::{Rate, Time};

use crate::{ChannelRecord, DecisionCount, FlowRecord, PacketCounts, Records, SampleRecord, Totals};

/// An unfinished flow of 10 packets with an idle FCT of 1 µs.
pub(crate) fn flow(src: u32, flow: u32) -> FlowRecord {
    FlowRecord {
        src,
        dst: src + 1,
        flow,
        bytes: 100,
        packets: 10,
        idle_fct: Time::from_us(1),
        ..Default::default()
    }
}

pub(crate) fn channel(channel: u32, tier: &str) -> ChannelRecord {
    ChannelRecord {
        channel,
        from: format!("host {channel}"),
        to: "switch 0".into(),
        tier: tier.into(),
        rate: Rate::from_gbps(200),
        bytes: 10_000,
        packets: 10,
        busy: Time::from_us(5),
        max_queue: 1024,
        mean_queue: 12.5,
        drops: 0,
        marks: 1,
    }
}

/// Three flows that completed, one that did not, three channels, two samples, 10 µs.
pub(crate) fn records() -> Records {
    let us = |us| Some(Time::from_us(us));
    let drained = FlowRecord { drains: 2, drain_time: Time::from_us(1), ..flow(1, 1) };
    let decision = DecisionCount { taken: 120, deviated: 7 };
    Records {
        flows: vec![
            FlowRecord { fct: us(1), sender_fct: us(2), ..flow(0, 0) },
            FlowRecord {
                start: Time::from_us(2),
                fct: us(3),
                sender_fct: us(4),
                bytes: 1000,
                ooo_packets: 4,
                ..flow(1, 0)
            },
            FlowRecord { start: Time::from_us(1), fct: us(2), sender_fct: us(2), bytes: 1001, ..drained },
            FlowRecord { start: Time::from_us(9), ..flow(2, 0) },
        ],
        channels: vec![
            channel(0, "host"),
            ChannelRecord { busy: Time(2_500_000), ..channel(1, "host") },
            channel(2, "spine"),
        ],
        samples: vec![
            SampleRecord { time: Time::from_us(5), channel: 0, queue: 7, bytes: 3 },
            SampleRecord { time: Time::from_us(5), channel: 2, queue: 0, bytes: 1 },
        ],
        totals: Totals {
            simulated: Time::from_us(10),
            packet_hops: 240,
            data: PacketCounts { sent: 40, delivered: 38, dropped: 1, in_flight: 1 },
            control: PacketCounts { sent: 38, delivered: 38, dropped: 0, in_flight: 0 },
            decisions: [("least-loaded".to_owned(), decision)].into(),
        },
    }
}
