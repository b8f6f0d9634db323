//! Credits are conserved, and a port without them does not send.

mod common;

use common::link::{Cable, Event, Link};
use common::*;
use netloom_fabric::FlowControl;
use netloom_fabric::flow_control::credits::Credits;
use netloom_fabric::{Credit, Packet};
use netloom_units::{Bytes, Rate, Time};
use proptest::prelude::*;

fn credits(buffer: u64) -> netloom_fabric::Fabric {
    with(FlowControl::Credits(Credits { buffer: Bytes(buffer), batch: Some(Bytes(0)), ..Credits::default() }))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn credits_and_what_they_stand_for_are_the_buffer(
        delays in (0..3_000_000u64, 0..3_000_000u64),
        rates in (1..100u64, 1..100u64),
        packets in prop::collection::vec((1..=400u16, 0..2u8), 1..100),
        stops in prop::collection::vec(0..4u32, 0..10),
        buffer in 400..4000u64,
    ) {
        let cable = Cable {
            packet: 400,
            down: (Time(delays.0), Rate::from_gbps(rates.0)),
            up: (Time(delays.1), Rate::from_gbps(rates.1)),
        };
        let mut fabric = credits(buffer);
        fabric.options.classes = classes(&[Some(1), Some(1)]);
        let mut link = Link::new(&fabric, 1, cable);
        for &(size, class) in &packets {
            link.plan(Time(1), Event::Up(Packet { flags: netloom_fabric::Flags::new(class, false), ..data(0, size) }));
        }
        // The way on is stopped by taking its credits away: whatever leaves port 1 earns some only now and then.
        for (index, &queues) in stops.iter().enumerate() {
            for queue in (0..2).filter(|queue| queues >> queue & 1 == 1) {
                let credit = Credit { port: 1, queue, bytes: 300 };
                link.plan(ns(1000 + 2000 * index as u64), Event::Down(1, credit.to_packet()));
            }
        }
        let mut least = u64::MAX;
        link.run(ns(40_000), |link, _| {
            for queue in 0..2 {
                let at = |map: &std::collections::BTreeMap<usize, u64>| map.get(&queue).copied().unwrap_or(0);
                let waiting = link.down.ports.waiting_packets(&link.down.rules);
                let held: u64 = waiting
                    .filter(|(port, of, _)| *port == 1 && *of == Some(queue))
                    .map(|(_, _, packet)| u64::from(packet.size))
                    .sum();
                let left = link.up.ports.credits(0, queue).unwrap();
                least = least.min(left);
                assert_eq!(left + at(&link.on_way) + held + at(&link.credits_on_way), buffer);
            }
        });
        prop_assert_eq!(link.lost, 0);
        prop_assert!(least < buffer);
    }
}

/// 8 Gb/s, 1 us each way, packets of 200 bytes (of at most 400), a buffer of 1000: by hand.
#[test]
fn a_round_trip_limits_what_credits_allow() {
    let cable =
        Cable { packet: 400, down: (ns(1000), Rate::from_gbps(8)), up: (ns(1000), Rate::from_gbps(8)) };
    let mut link = Link::new(&credits(1000), 1, cable);
    for _ in 0..6 {
        link.plan(Time::ZERO, Event::Up(data(0, 200)));
    }
    link.run(ns(10_000), |_, _| {});
    // After the fourth packet 200 bytes are left, less than the largest packet, until the first one's credit comes: it arrives at 1200, leaves
    // at once, and its credit takes 8 + 1000. The next credits follow every 200 ns, in time for the sixth packet.
    let starts: Vec<u64> = link.starts().iter().map(|start| start.0.0 / 1000).collect();
    assert_eq!(starts, [0, 200, 400, 600, 2208, 2408]);
    // Held back from the start of the fourth packet, at 600, to 2208, and from the start of the fifth to the credit that comes at 2408.
    let stats = link.up.ports.stats_of(0, ns(10_000));
    assert_eq!((stats.paused, stats.pauses), (ns(2208 - 600 + 200), 3));
    // Two packets are still there: nobody gives the downstream switch credits for more than four.
    assert_eq!(link.up.ports.credits(0, 0), Some(600));
}
