//! PFC loses nothing with the headroom that it computes, and something with a byte less.

mod common;

use common::link::{Cable, Event, Link};
use common::*;
use netloom_fabric::flow_control::{pfc::Pfc, pfc_shared::PfcShared};
use netloom_fabric::{Fabric, FlowControl, Packet, PacketKind};
use netloom_units::{Bytes, Rate, Time};
use proptest::prelude::*;

const PAUSE: u64 = 64;

/// Rates that carry a byte in a whole number of picoseconds.
fn whole_rate() -> impl Strategy<Value = Rate> {
    prop::sample::select(vec![8u64, 10, 16, 25, 40, 80, 100, 200, 400, 800]).prop_map(Rate::from_gbps)
}

/// Cables of up to 20 km.
fn cable(rate: impl Strategy<Value = Rate> + Clone) -> impl Strategy<Value = Cable> {
    let delay = prop_oneof![0..5_000u64, 0..100_000_000u64];
    (64..9000u64, (delay.clone(), rate.clone()), (delay, rate)).prop_map(|(packet, down, up)| Cable {
        packet,
        down: (Time(down.0), down.1),
        up: (Time(up.0), up.1),
    })
}

fn any_rate() -> impl Strategy<Value = Rate> + Clone {
    (1_000_000_000..800_000_000_000u64).prop_map(Rate)
}

fn pfc(buffer: u64, headroom: Option<u64>, response: Time) -> FlowControl {
    let (buffer, headroom) = (Bytes(buffer), headroom.map(Bytes));
    FlowControl::Pfc(Pfc { buffer, headroom, response, ..Pfc::default() })
}

/// The worst that can happen: the buffer is full to the threshold, the largest packet crosses it, a picosecond before that the largest
/// packet has begun in the PAUSE frame's way, and packets come back to back such that the last one, the largest again, begins as late as
/// it can. Returns the number of packets lost.
fn worst_case(cable: Cable, response: Time, fill: u64, missing: u64) -> usize {
    let headroom = cable.headroom(PAUSE, response);
    let buffer = fill * cable.packet + headroom - missing;
    let fabric = with(pfc(buffer, Some(headroom - missing), response));
    let mut link = Link::new(&fabric, 1, cable);
    link.stop(Time::ZERO, 1);
    let full = data(0, cable.packet as u16);
    for _ in 0..=fill {
        link.plan(Time(1), Event::Up(full));
    }
    // What is sent blindly until the last packet begins.
    let mut blind = headroom - 2 * cable.packet;
    while blind > 0 {
        let size = blind.min(cable.packet);
        link.plan(Time(1), Event::Up(data(0, size as u16)));
        blind -= size;
    }
    for _ in 0..3 {
        link.plan(Time(1), Event::Up(full));
    }
    let serialisation = cable.down.1.serialize(Bytes(cable.packet));
    let threshold = Time(1 + serialisation.0 * (fill + 1)) + cable.down.0;
    link.plan(threshold - Time(1), Event::Down(0, full));
    link.run(threshold + Time(1_000_000_000), |_, _| {});
    link.lost
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_headroom_suffices_in_the_worst_case_and_a_byte_less_does_not(
        cable in cable(whole_rate().boxed()), response in 0..2_000_000u64, fill in 1..5u64,
    ) {
        prop_assert_eq!(worst_case(cable, Time(response), fill, 0), 0);
        prop_assert_eq!(worst_case(cable, Time(response), fill, 1), 1);
    }

    #[test]
    fn nothing_is_lost_whatever_the_cable_and_the_traffic(
        mut cable in cable(any_rate().boxed()),
        response in 0..2_000_000u64,
        sizes in prop::collection::vec((1..=9000u64, 0..3u8), 20..60),
        reverse in prop::collection::vec(1..=9000u64, 20..60),
        stops in prop::collection::vec(0..8u32, 0..10),
        (cut_through, is_shared, is_short) in (any::<bool>(), any::<bool>(), any::<bool>()),
    ) {
        // Nothing slow and long, which would take long here, too.
        cable.down.0 = cable.down.0.min(Time(20_000_000));
        cable.up.0 = cable.up.0.min(Time(20_000_000));
        let headroom = cable.headroom(PAUSE, Time(response));
        let room = 5 * cable.packet;
        let flow_control = if is_shared {
            let onward = Cable { packet: cable.packet, down: (ns(1000), Rate::from_gbps(8)), up: (ns(1000), Rate::from_gbps(8)) };
            let taken = 3 * (headroom + onward.headroom(PAUSE, Time(response)) + 200);
            let buffer = Bytes(taken + room);
            FlowControl::PfcShared(PfcShared {
                buffer, reserve: Bytes(100), alpha: 0.5, response: Time(response), ..PfcShared::default()
            })
        } else {
            pfc(headroom + room, None, Time(response))
        };
        let mut fabric = with(flow_control);
        fabric.options.cut_through = cut_through.then_some(Bytes(64));
        fabric.options.classes = classes(&[None, Some(2), Some(1)]);
        let mut link = Link::new(&fabric, 1, cable);
        link.stop(Time::ZERO, 7);
        let clip = |size: u64| (size * cable.packet / 9000).max(1) as u16;
        // More than all buffers can hold; sent as one burst.
        let burst: u64 = sizes.iter().map(|size| u64::from(clip(size.0))).sum();
        let repeats = if is_short { 1 } else { (3 * (headroom + room)).div_ceil(burst).min(40) };
        for _ in 0..repeats {
            for &(size, class) in &sizes {
                link.plan(Time(1), Event::Up(Packet { flags: netloom_fabric::Flags::new(class, false), ..data(0, clip(size)) }));
            }
        }
        for &size in reverse.iter().cycle().take(400) {
            link.plan(Time(1), Event::Down(0, data(0, clip(size))));
        }
        let span = cable.down.1.serialize(Bytes(burst * repeats));
        for (index, &queues) in stops.iter().enumerate() {
            link.stop(Time(span.0 * (index as u64 + 1) / 10), queues);
        }
        link.run(span + span + Time(50_000_000), |_, _| {});
        prop_assert_eq!(link.lost, 0);
        // If nothing ever leaves, a burst that no set of buffers holds must be paused; a class that goes on may spare that.
        prop_assert!(is_short || repeats == 40 || !stops.is_empty() || !link.pauses.is_empty());
        // A queue that the neighbour has paused does not start another packet.
        if !cut_through {
            for (start, packet) in link.starts() {
                let last = link.pauses.iter().rev().find(|pause| pause.0 <= start).unwrap();
                // At the instant of the PAUSE frame itself nothing starts, either.
                prop_assert!(last.1 >> packet.flags.class() & 1 == 0, "{start:?} {last:?}");
            }
        }
    }
}

/// 8 Gb/s, 1 us each way, packets of 200 bytes, no reverse traffic: all times in ns by hand.
#[test]
fn thresholds_by_hand() {
    let cable =
        Cable { packet: 200, down: (ns(1000), Rate::from_gbps(8)), up: (ns(1000), Rate::from_gbps(8)) };
    let config = Pfc {
        buffer: Bytes(6000),
        headroom: Some(Bytes(5000)),
        resume: Some(Bytes(400)),
        response: ns(36),
        ..Pfc::default()
    };
    let mut link = Link::new(&with(FlowControl::Pfc(config)), 1, cable);
    link.stop(Time::ZERO, 1);
    for _ in 0..40 {
        link.plan(Time::ZERO, Event::Up(data(0, 200)));
    }
    link.stop(ns(20_000), 0);
    link.run(ns(60_000), |_, _| {});
    // 1000 bytes are the threshold: the sixth packet, which comes at 6 × 200 + 1000 = 2200, crosses it. The PAUSE frame takes 64 + 1000 + 36
    // and holds from 3300 on: the 17th packet began at 3200, and the next one does not follow at 3400.
    // At 20,000 the way on is free: the 17 packets leave every 200 ns from then on. 17 × 200 − k × 200 ≤ 600 from the 14th on, which starts at
    // 22,600: the frame holds from 23,700 on. The buffer has run dry by then, at 23,400.
    let pauses: Vec<(u64, u32)> = link.pauses.iter().skip(1).map(|pause| (pause.0.0, pause.1)).collect();
    let frames: Vec<(u64, u32)> = pauses.iter().take(2).copied().collect();
    assert_eq!(frames, [(3_300_000, 1), (23_700_000, 0)]);
    let starts: Vec<u64> = link.starts().iter().map(|start| start.0.0).collect();
    assert_eq!(starts[16..18], [3_200_000, 23_700_000]);
    // Downstream sends as fast as it receives from then on, so nothing is paused again.
    assert_eq!(link.pauses.len(), 3);
    // Data waited upstream while the queue was paused, from 3300 to 23,700.
    let stats = link.up.ports.stats_of(0, ns(60_000));
    assert_eq!((stats.paused, stats.pauses, stats.packets), (ns(20_400), 1, 40));
}

/// A paused port without anything to send is not held back: pause time counts what waits.
#[test]
fn pause_time_counts_while_something_waits() {
    let mut node = Node::new(&with(pfc(6000, None, Time::ZERO)), 1, vec![spec(0), spec(1)]);
    node.put(ns(100), 0, pause(0, 1));
    node.put(ns(300), 0, data(0, 200));
    node.put(ns(700), 0, pause(0, 0));
    node.put(ns(800), 0, pause(0, 1));
    node.advance(ns(5000));
    // It waits from 300 to 700; its transmission, begun then, is not stopped at 800.
    let stats = node.ports.stats_of(0, ns(5000));
    assert_eq!((stats.paused, stats.pauses, stats.busy), (ns(400), 2, ns(200)));
    assert_eq!(node.left.at(10), [(0, 1900)]);
}

/// One frame speaks for all queues, and says what holds when it leaves.
#[test]
fn queues_that_pause_together_share_a_frame() {
    let mut fabric: Fabric =
        with(FlowControl::Pfc(Pfc { buffer: Bytes(1000), headroom: Some(Bytes(700)), ..Pfc::default() }));
    fabric.options.classes = classes(&[None, None]);
    let mut node = Node::new(&fabric, 1, vec![spec(0), spec(1)]);
    node.put(ns(0), 1, pause(1, 3));
    // Something is on its way back, so that the frame has to wait until 200.
    node.put(ns(0), 0, data(9, 200));
    for (at, class) in [(10, 0), (20, 1), (30, 0), (40, 1)] {
        let flags = netloom_fabric::Flags::new(class, false);
        node.put(ns(at), 1, Packet { flags, ingress: 0, ..data(0, 200) });
    }
    node.advance(ns(1000));
    let frames: Vec<(u64, u32)> = (node.left.packets.iter())
        .filter(|left| left.2.kind == PacketKind::Pause)
        .map(|left| (left.1.0, left.2.paused_queues()))
        .collect();
    assert_eq!(frames, [(1_264_000, 0b11)]);
}
