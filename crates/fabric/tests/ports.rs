//! Ports are exact although they have no events.

mod common;

use common::*;
use netloom_fabric::flow_control::{credits::Credits, lossy::Lossy, pfc::Pfc, pfc_shared::PfcShared};
use netloom_fabric::queue::tail_drop::{RandomDrop, TailDrop};
use netloom_fabric::queue::{Queue, trimming::Trimming};
use netloom_fabric::{
    At, ByKind, Credit, DropCause, Ecn, Fabric, FabricOptions, Fate, Flags, FlowControl, Mark, NO_INGRESS,
    Packet, PacketKind, PortStats, Ports, Rules, Trail,
};
use netloom_units::{Bytes, Rate, Time};
use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;
use std::collections::BTreeMap;

fn lossy(options: FabricOptions) -> Fabric {
    Fabric { options, ..Fabric::default() }
}

fn one_port(options: FabricOptions) -> Node {
    Node::new(&lossy(options), 1, vec![spec(0)])
}

#[test]
fn packets_leave_back_to_back_with_exact_arrival_times() {
    let mut node = one_port(options());
    for seq in 0..3 {
        node.put(ns(50), 0, data(seq, 200));
    }
    assert_eq!(node.advance(ns(251)), Some(ns(450)));
    assert_eq!(node.left.at(10), [(0, 1250), (1, 1450)]);
    assert_eq!(node.advance(ns(10_000)), None);
    assert_eq!(node.left.at(10)[2], (2, 1650));
}

#[test]
fn control_overtakes_waiting_data_but_not_a_transmission() {
    for (control_priority, expected) in [(true, [0, 7, 1]), (false, [0, 1, 7])] {
        let mut node = one_port(FabricOptions { control_priority, ..options() });
        node.put(ns(0), 0, data(0, 200));
        node.put(ns(0), 0, data(1, 200));
        node.put(ns(100), 0, ack(7));
        node.advance(ns(10_000));
        let order: Vec<u32> = node.left.at(10).iter().map(|packet| packet.0).collect();
        assert_eq!(order, expected);
    }
}

#[test]
fn a_packet_arriving_when_a_transmission_would_start_takes_part_in_the_choice() {
    let mut node = one_port(options());
    node.put(ns(0), 0, data(0, 200));
    node.put(ns(0), 0, data(1, 200));
    node.put(ns(200), 0, ack(7));
    node.advance(ns(10_000));
    assert_eq!(node.left.at(10), [(0, 1200), (7, 1264), (1, 1464)]);
}

/// The longest queue, and its integral over time, count what waits and not what is being sent, and so do those of a port that hands on early what goes first.
#[test]
fn queues_are_measured_without_the_packet_that_is_sent() {
    for (hands_on_early, handed_on) in [(false, 1), (true, 3)] {
        let mut node = one_port(options()).handing_on_early(hands_on_early);
        node.put(ns(0), 0, data(0, 200));
        node.put(ns(100), 0, ack(7));
        node.put(ns(100), 0, ack(8));
        node.put(ns(110), 0, Packet { size: 100, ..ack(9) });
        node.put(ns(120), 0, data(1, 200));
        assert_eq!(node.left.packets.len(), handed_on);
        assert_eq!(node.advance(ns(1000)), None);
        assert_eq!(node.left.at(10), [(0, 1200), (7, 1264), (8, 1328), (9, 1428), (1, 1628)]);
        let stats = node.ports.stats_of(0, ns(1000));
        assert_eq!((stats.max_queue, stats.packets, stats.busy), (428, 5, ns(628)));
        assert_eq!(stats.queue_integral(), 1000 * (64 * 100 + 64 * 164 + 100 * 218 + 200 * 308));
        assert_eq!(node.ports.queued(0), 0);
    }
}

/// What a port that hands packets on early says of itself at any instant is what one says that does not, its load included.
#[test]
fn nothing_that_is_asked_of_a_port_tells_what_was_handed_on_early() {
    // Data, ACKs of one size and of others, and nothing: then the port is only looked at.
    let events = prop::collection::vec((0..400u64, 0..6u8, 1..60u16), 1..80);
    proptest!(ProptestConfig::with_cases(1000), |(mut events in events, end in 0..4000u64)| {
        events.sort_by_key(|event| event.0);
        let seen = [false, true].map(|hands_on_early| {
            let mut node = one_port(options()).handing_on_early(hands_on_early);
            let mut loads = Vec::new();
            for &(at, kind, size) in events.iter().take_while(|event| event.0 * 10 < end) {
                let packet = match kind {
                    0 | 1 => data(0, size * 10),
                    2 => Packet { size: size * 10, ..ack(0) },
                    3 | 4 => ack(0),
                    _ => {
                        loads.push(node.loads(ns(at * 10), 0));
                        continue;
                    }
                };
                node.put(ns(at * 10), 0, packet);
            }
            loads.push(node.loads(ns(end), 0));
            node.advance(ns(end));
            let handed_on = node.left.packets.len() as u64;
            let stats = node.ports.stats_of(0, ns(end));
            assert_eq!(handed_on, stats.packets + node.ports.handed_on_early(0, ns(end)));
            (loads, stats)
        });
        prop_assert_eq!(&seen[0], &seen[1]);
    });
}

/// What a host hands on early arrives when it would have otherwise, and its statistics are the same at any instant.
#[test]
fn a_host_does_not_tell_what_it_handed_on_early() {
    let trimming = Queue::Trimming(Trimming::default());
    let buffer = Some(Bytes(4000));
    let fabrics = [true, false].map(|control_priority| {
        let options = || FabricOptions { control_priority, ..options() };
        [
            lossy(options()),
            Fabric { options: options(), ..with(FlowControl::Pfc(Pfc::default())) },
            Fabric { options: options(), ..with(FlowControl::Credits(Credits::default())) },
            Fabric { queue: trimming.clone(), ..lossy(FabricOptions { buffer, ..options() }) },
        ]
    });
    // What a host does at an instant: it answers, sends data if the NIC is free, is paused or goes on.
    let acts = prop::collection::vec((0..400u64, 0..8u32, 1..60u16), 1..80);
    proptest!(|(mut acts in acts, end in 0..5000u64)| {
        acts.sort_by_key(|act| act.0);
        for fabric in fabrics.as_flattened() {
            let rules = Rules::new(fabric, Bytes(PACKET), 1);
            let seen = [true, false].map(|is_watched| {
                let mut ports = Ports::new([spec(0)], &rules, true);
                let (mut left, mut random) = (Left::default(), Pcg64Mcg::new(1));
                for (seq, &(at, kind, size)) in (0..).zip(&acts).take_while(|act| act.1.0 * 10 < end) {
                    let now = ns(at * 10);
                    ports.advance_port(0, now, &rules, &mut left);
                    match kind {
                        0 | 1 if rules.is_lossless() => ports.on_pause(&pause(0, kind), now, &rules, &mut left),
                        0..4 => {
                            let mut ack = Packet { size: if kind == 0 { size } else { 64 }, ..ack(seq) };
                            let at = At::new(now, &rules, &mut left);
                            ports.enqueue_control(0, &mut ack, is_watched, &mut random, at);
                        }
                        _ => {
                            let (free_at, is_waiting) = ports.poll(0);
                            if free_at <= now && !is_waiting && ports.may_send(0, 0) {
                                ports.send_now(0, &mut data(seq, size * 5), now, &rules, &mut left);
                            }
                        }
                    }
                }
                ports.advance(ns(end), &rules, &mut left);
                let stats = ports.stats_of(0, ns(end));
                let handed_on = left.packets.len() as u64;
                assert_eq!(handed_on, stats.packets + ports.handed_on_early(0, ns(end)));
                ports.advance(ns(100_000), &rules, &mut left);
                (stats, ports.stats_of(0, ns(100_000)), left.at(10))
            });
            prop_assert_eq!(&seen[0], &seen[1]);
        }
    });
}

#[test]
fn a_full_queue_drops_data_and_never_control() {
    let mut node = one_port(FabricOptions { buffer: Some(Bytes(400)), ..options() });
    node.put(ns(0), 0, data(0, 200));
    node.advance(ns(1));
    let fates: Vec<Fate> = (1..4).map(|seq| node.put(ns(1), 0, data(seq, 200))).collect();
    assert_eq!(fates, [Fate::Queued, Fate::Queued, Fate::Dropped]);
    assert_eq!(node.put(ns(1), 0, ack(9)), Fate::Queued);
}

/// csg-htsim's random queue: some of what would end in the last packets of a queue is dropped, and all of what would end beyond.
#[test]
fn the_last_part_of_a_queue_drops_some_packets_at_random() {
    let fates = |probability, packets, count: u32| {
        let queue = Queue::TailDrop(TailDrop { random: Some(RandomDrop { probability, packets }) });
        let buffer = Some(Bytes(u64::from(count) * PACKET));
        let fabric = Fabric { queue, ..lossy(FabricOptions { buffer, ..options() }) };
        let mut node = Node::new(&fabric, 1, vec![spec(0)]);
        node.put(ns(0), 0, data(0, PACKET as u16));
        node.advance(ns(1));
        (1..=2 * count)
            .map(|seq| node.put(ns(1), 0, data(seq, PACKET as u16)) == Fate::Queued)
            .collect::<Vec<_>>()
    };
    // Certain drops: as if the queue were shorter.
    let queued = fates(1.0, 3, 10);
    assert_eq!(queued.iter().filter(|&&queued| queued).count(), 7);
    assert!(queued[..7].iter().all(|&queued| queued));
    // One of ten: the first hundred stay, and about 90 of the next 900 go.
    let queued = fates(0.1, 900, 1000);
    assert!(queued[..100].iter().all(|&queued| queued));
    let dropped = queued[100..1000].iter().filter(|&&queued| !queued).count();
    assert!((60..120).contains(&dropped), "{dropped}");
    // The queue is full in the end.
    assert_eq!(queued.iter().filter(|&&queued| queued).count(), 1000);
}

/// A packet may be one too many for what is safe although its queue is empty. Nothing that is sent makes room there, so its port chooses only when all
/// that comes at this instant has come.
#[test]
fn a_packet_that_finds_its_own_queue_empty_makes_no_port_choose_early() {
    let queue = Queue::TailDrop(TailDrop { random: Some(RandomDrop { probability: 1e-9, packets: 4 }) });
    let options = FabricOptions {
        buffer: Some(Bytes(4 * PACKET)),
        classes: classes(&[None, Some(1), Some(1)]),
        ..options()
    };
    let mut node = Node::new(&Fabric { queue, ..lossy(options) }, 1, vec![spec(0)]);
    let of_class = |seq, class| Packet { flags: Flags::new(class, false), ..data(seq, 200) };
    node.put(ns(0), 0, of_class(0, 1));
    node.put(ns(10), 0, of_class(1, 1));
    // The first is through; the third finds an empty queue, and the fourth goes before all.
    node.put(ns(200), 0, of_class(2, 2));
    node.put(ns(200), 0, of_class(3, 0));
    node.advance(ns(9000));
    let order: Vec<u32> = node.left.at(10).iter().map(|packet| packet.0).collect();
    assert_eq!(order[..2], [0, 3]);
    assert_eq!(order.len(), 4);
}

#[test]
fn random_drops_without_a_bounded_queue_are_refused() {
    let queue = |probability, packets| {
        Queue::TailDrop(TailDrop { random: Some(RandomDrop { probability, packets }) })
    };
    let refused = |queue, buffer| {
        let options = FabricOptions { buffer, ..options() };
        Fabric { queue, ..lossy(options) }.check(Bytes(PACKET)).map_err(|error| error.field.to_string())
    };
    let buffer = Some(Bytes(10 * PACKET));
    assert_eq!(refused(queue(0.1, 3), buffer), Ok(()));
    assert_eq!(refused(queue(0.1, 3), None), Err("queue.random".to_owned()));
    assert_eq!(refused(queue(0.0, 3), buffer), Err("queue.random.probability".to_owned()));
    assert_eq!(refused(queue(0.1, 0), buffer), Err("queue.random.packets".to_owned()));
}

#[test]
fn a_full_queue_trims_what_comes_or_its_last_packet_by_a_fair_coin() {
    let options = FabricOptions { buffer: Some(Bytes(800)), ..options() };
    let queue = Queue::Trimming(Trimming { control_buffer: Some(Bytes(1 << 30)), ..Trimming::default() });
    let mut node = Node::new(&Fabric { options, queue, ..Fabric::default() }, 1, vec![spec(0)]);
    // One is being sent, and four wait when the others come.
    node.put(ns(0), 0, data(0, 200));
    for seq in 1..=1000 {
        assert_eq!(node.put(ns(10), 0, data(seq, 200)), Fate::Queued);
    }
    node.advance(ns(1_000_000));
    let left: Vec<_> =
        node.left.packets.iter().map(|(_, _, packet)| (packet.seq, packet.kind, packet.size)).collect();
    let headers = left.iter().filter(|packet| (packet.1, packet.2) == (PacketKind::Header, 64)).count();
    assert_eq!((left.len(), headers, node.ports.stats_of(0, ns(0)).trims), (1001, 996, 996));
    // The first three places are never touched; in the last one waits the last of those that won their coin.
    let data: Vec<u32> =
        left.iter().filter(|packet| packet.1 == PacketKind::Data).map(|packet| packet.0).collect();
    assert_eq!(data[..4], [0, 1, 2, 3]);
    assert!(data[4] > 990, "{}", data[4]);
    // Who lost, though it had come first, was trimmed by the next winner: two trims in a row are in order of arrival for half of the pairs.
    let trimmed: Vec<u32> =
        left.iter().filter(|packet| packet.1 == PacketKind::Header).map(|packet| packet.0).collect();
    let out_of_order = trimmed.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert!((200..300).contains(&out_of_order), "{out_of_order}");
}

/// Data that find no room let what begins at that instant begin first, whether it has waited in a queue or was handed on early: the header does not find it waiting.
#[test]
fn a_header_does_not_find_waiting_what_begins_as_it_comes() {
    let options = FabricOptions { buffer: Some(Bytes(400)), ..options() };
    let queue = Queue::Trimming(Trimming::default());
    let fabric = Fabric { options, queue, ..Fabric::default() };
    for hands_on_early in [false, true] {
        let mut node = Node::new(&fabric, 1, vec![spec(0)]).handing_on_early(hands_on_early);
        node.put(ns(0), 0, data(0, 300));
        node.put(ns(1), 0, data(1, 250));
        node.put(ns(2), 0, ack(2));
        // The port is free at 300.
        node.put(ns(300), 0, data(3, 250));
        node.advance(ns(10_000));
        let stats = node.ports.stats_of(0, ns(10_000));
        assert_eq!((stats.trims, stats.max_queue), (1, 250 + 64), "{hands_on_early}");
    }
}

#[test]
fn ten_headers_go_before_each_data_packet_while_both_wait() {
    let queue = Queue::Trimming(Trimming { control_buffer: Some(Bytes(1 << 30)), ..Trimming::default() });
    let options = FabricOptions { buffer: Some(Bytes(1 << 20)), ..options() };
    let mut node = Node::new(&Fabric { options, queue, ..Fabric::default() }, 1, vec![spec(0)]);
    for seq in 0..30 {
        node.put(ns(0), 0, ack(1000 + seq));
    }
    for seq in 0..4 {
        node.put(ns(0), 0, data(seq, 200));
    }
    node.advance(ns(1_000_000));
    let places: Vec<usize> = node
        .left
        .packets
        .iter()
        .enumerate()
        .filter(|(_, left)| left.2.is_data())
        .map(|(place, _)| place)
        .collect();
    // The first control packet left before there were data. With no control packet left, data follows data.
    assert_eq!(places, [11, 22, 32, 33]);
}

#[test]
fn a_header_without_room_goes_back_once_and_other_control_packets_are_dropped() {
    for return_to_sender in [true, false] {
        let queue = Trimming { control_buffer: Some(Bytes(128)), return_to_sender, ..Trimming::default() };
        let options = FabricOptions { buffer: Some(Bytes(400)), ..options() };
        let queue = Queue::Trimming(queue);
        let mut node = Node::new(&Fabric { options, queue, ..Fabric::default() }, 1, vec![spec(0)]);
        node.put(ns(0), 0, data(0, 400));
        let fates: Vec<Fate> = (1..=4).map(|seq| node.put(ns(1), 0, data(seq, 400))).collect();
        let without_room = if return_to_sender { Fate::Returned } else { Fate::Dropped };
        assert_eq!(fates, [Fate::Queued, Fate::Queued, Fate::Queued, without_room]);
        assert_eq!(node.put(ns(2), 0, ack(9)), Fate::Dropped);
        let returned = Packet { kind: PacketKind::Returned, ..ack(10) };
        assert_eq!(node.put(ns(2), 0, returned), Fate::Dropped);
        let (stats, dropped) = (node.ports.stats_of(0, ns(2)), node.ports.dropped());
        let returns = u64::from(return_to_sender);
        assert_eq!((stats.trims, stats.returned_to_sender, stats.drops), (3, returns, 3 - returns));
        assert_eq!((dropped.data(DropCause::Full), dropped.control(DropCause::Full)), (2 - returns, 1));
    }
}

#[test]
fn without_control_priority_headers_wait_behind_the_data() {
    let options = FabricOptions { buffer: Some(Bytes(400)), control_priority: false, ..options() };
    let queue = Queue::Trimming(Trimming::default());
    let mut node = Node::new(&Fabric { options, queue, ..Fabric::default() }, 1, vec![spec(0)]);
    node.put(ns(0), 0, data(0, 200));
    for seq in 1..=3 {
        node.put(ns(1), 0, data(seq, 200));
    }
    node.advance(ns(10_000));
    let kinds: Vec<PacketKind> = node.left.packets.iter().map(|left| left.2.kind).collect();
    assert_eq!(kinds, [PacketKind::Data, PacketKind::Data, PacketKind::Data, PacketKind::Header]);
}

#[test]
fn a_degraded_link_serves_what_starts_in_its_bad_time_slowly() {
    let mut slow = spec(0);
    slow.changes = vec![(ns(100), Rate::from_gbps(2)), (ns(1000), Rate::from_gbps(8))];
    let mut node = Node::new(&lossy(options()), 1, vec![slow]);
    for seq in 0..3 {
        node.put(ns(0), 0, data(seq, 200));
    }
    node.advance(ns(10_000));
    // 0–200 fast; 200–1000 at a quarter; from 1000 fast again.
    assert_eq!(node.left.at(10), [(0, 1200), (1, 2000), (2, 2200)]);
}

#[test]
fn classes_share_by_weight_and_leave_an_idle_share_to_the_others() {
    // Class 0 strict, 1 and 2 share 60 to 40.
    let fabric = lossy(FabricOptions { classes: classes(&[None, Some(60), Some(40)]), ..options() });
    let mut node = Node::new(&fabric, 1, vec![spec(0)]);
    let of_class = |class: u8| Packet { flags: Flags::new(class, false), ..data(u32::from(class), 200) };
    for _ in 0..500 {
        node.put(ns(0), 0, of_class(1));
        node.put(ns(0), 0, of_class(2));
    }
    node.put(ns(50_000), 0, of_class(0));
    node.advance(ns(100_000));
    let count = |left: &[(u32, u64)], class| left.iter().filter(|packet| packet.0 == class).count();
    let left = node.left.at(10);
    // The first is sent at once, before class 2 has anything. Then 498 beside the strict one: 99 turns of three and two, and three more.
    assert_eq!([count(&left, 1), count(&left, 2)], [299, 200]);
    // The strict one goes as soon as the packet being sent is through: what comes at 50,000 takes part in the choice of what begins then.
    assert!(left.contains(&(0, 51_200)));
    // Class 1 has 201 left, class 2 300: when class 1 is through, class 2 has the whole link.
    node.advance(Time::MAX);
    let left = node.left.at(10);
    assert_eq!([count(&left, 1), count(&left, 2)], [500, 500]);
    assert_eq!(left.last(), Some(&(2, 201_200)));
    assert!(left[left.len() - 150..].iter().all(|packet| packet.0 == 2));
}

#[test]
fn cut_through_hands_on_the_head_unless_the_link_is_slower_than_the_next() {
    let fabric = lossy(FabricOptions { cut_through: Some(Bytes(50)), ..options() });
    // Store and forward adds 200 ns per hop to the last bit's arrival, cut-through 50 ns; a slower link is stored first.
    for (next, arrival) in [(8, 1050), (4, 1050), (9, 1200)] {
        let spec = netloom_fabric::PortSpec { cut_through_from: Some(Rate::from_gbps(next)), ..spec(0) };
        let mut node = Node::new(&fabric, 1, vec![spec]);
        node.put(ns(0), 0, data(0, 200));
        node.put(ns(0), 0, data(1, 30));
        node.advance(ns(1000));
        // A packet shorter than the head has come when it has come.
        assert_eq!(node.left.at(10), [(0, arrival), (1, 1230)]);
    }
}

#[test]
fn a_packet_crosses_k_links_in_one_serialisation_and_k_minus_1_heads() {
    let fabric = lossy(FabricOptions { cut_through: Some(Bytes(50)), ..options() });
    let hops = 5;
    let mut at = ns(0);
    for hop in 1..=hops {
        // The last link leads to a host, which wants the whole packet.
        let cut_through_from = (hop < hops).then_some(Rate::from_gbps(8));
        let mut node = Node::new(&fabric, 1, vec![netloom_fabric::PortSpec { cut_through_from, ..spec(0) }]);
        node.put(at, 0, data(0, 400));
        at = node.left.packets[0].1;
    }
    assert_eq!(at, ns(400 + (hops - 1) * 50 + hops * 1000));
}

#[test]
fn a_packet_keeps_its_virtual_channel_only_on_the_way_to_a_link_of_higher_rank() {
    let fabric = with(FlowControl::Pfc(Pfc { buffer: Bytes(100_000), ..Pfc::default() }));
    let leaves_on = |came: Option<u8>, from: u8, to: u8| {
        let specs = [from, to].map(|rank| netloom_fabric::PortSpec { rank, ..spec(0) });
        let mut node = Node::new(&fabric, 4, specs.to_vec());
        let came = came.map_or(Trail::START, |vc| Trail::START.by(vc));
        node.put(ns(0), 1, Packet { ingress: 0, trail: came, ..data(0, 100) });
        node.advance(ns(1000));
        node.left.packets[0].2.trail.vc().unwrap()
    };
    assert_eq!([leaves_on(None, 0, 0), leaves_on(None, 0, 1)], [0, 0], "the first link after a host's");
    let after_first = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(from, to)| leaves_on(Some(0), from, to));
    assert_eq!(after_first, [1, 0, 1, 1]);
    assert_eq!([leaves_on(Some(3), 0, 0), leaves_on(Some(3), 0, 1)], [3, 3], "there is no further one");
}

#[test]
fn on_a_ring_a_packet_changes_its_virtual_channel_behind_the_link_that_closes_it() {
    use netloom_fabric::{LAST_RANK, ring_rank};
    let fabric = with(FlowControl::Pfc(Pfc { buffer: Bytes(100_000), ..Pfc::default() }));
    let leaves_on = |came: Option<u8>, from: u8, to: u8| {
        let specs = [from, to].map(|rank| netloom_fabric::PortSpec { rank, ..spec(0) });
        let mut node = Node::new(&fabric, 2, specs.to_vec());
        let came = came.map_or(Trail::START, |vc| Trail::START.by(vc));
        node.put(ns(0), 1, Packet { ingress: 0, trail: came, ..data(0, 100) });
        node.advance(ns(1000));
        node.left.packets[0].2.trail.vc().unwrap()
    };
    let [inner, closing, other] = [ring_rank(1, false), ring_rank(1, true), ring_rank(2, true)];
    assert_eq!([inner, closing].map(|to| leaves_on(None, LAST_RANK, to)), [0, 0], "from a host");
    assert_eq!([0, 1].map(|vc| leaves_on(Some(vc), inner, inner)), [0, 1]);
    assert_eq!(leaves_on(Some(0), inner, closing), 0, "up to the dateline");
    assert_eq!(leaves_on(Some(0), closing, inner), 1, "behind it");
    assert_eq!([inner, closing].map(|from| leaves_on(Some(1), from, other)), [0, 0], "to another ring");
    assert_eq!(leaves_on(Some(1), closing, LAST_RANK), 0, "to a host");
}

#[test]
fn what_finds_a_full_output_waits_at_its_input_and_holds_back_what_follows() {
    let mut fabric = with(FlowControl::Pfc(Pfc { buffer: Bytes(100_000), ..Pfc::default() }));
    fabric.options.buffer = Some(Bytes(400));
    let mut node = Node::new(&fabric, 1, (0..4).map(spec).collect());
    let mut put = |at, seq, ingress, port| {
        node.put(ns(at), port, Packet { ingress, ..data(seq, 200) });
    };
    // The first is sent from 0 to 200, the next two fill the output queue.
    put(0, 0, 2, 1);
    put(10, 1, 2, 1);
    put(11, 2, 2, 1);
    // One at either input finds it full, and in its way is one for a port where nothing waits.
    put(20, 3, 3, 1);
    put(30, 4, 2, 1);
    put(40, 5, 2, 0);
    put(50, 6, 3, 0);
    node.advance(ns(60));
    assert_eq!(node.ports.waiting_packets(&node.rules).count(), 6);
    assert_eq!(node.left.packets.len(), 1);
    node.advance(ns(5000));
    // There is room at 200 and at 400, for the one that came first and then for the other.
    assert_eq!(node.left.at(11), [(0, 1200), (1, 1400), (2, 1600), (3, 1800), (4, 2000)]);
    assert_eq!(node.left.at(10), [(6, 1400), (5, 1600)]);
    assert_eq!(node.ports.waiting_packets(&node.rules).count(), 0);
    assert_eq!(node.ports.stats_of(1, ns(5000)).max_queue, 400);
}

/// Something that reaches a switch: through a port, for a port.
#[derive(Clone, Debug)]
struct Arrival {
    at: u64,
    ingress: u16,
    port: u16,
    packet: Packet,
}

const PORTS: u16 = 4;

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let one = (0..6000u64, 0..PORTS, 0..PORTS, 65..400u16, 0..8u32, 0..4u32);
    // On a grid much falls on the same instant.
    (prop::collection::vec(one, 1..120), prop::sample::select(vec![1, 50])).prop_map(|(mut all, grid)| {
        for (at, _, _, size, ..) in &mut all {
            *at -= *at % u64::from(grid);
            *size = (*size - *size % grid).max(grid);
        }
        all.sort_unstable();
        let of = |(seq, (at, ingress, port, size, kind, queues)): (usize, (u64, u16, u16, u16, u32, u32))| {
            let packet = match kind {
                0 => Packet { size: if size % 3 == 1 { size } else { 64 }, ..ack(seq as u32) },
                1 => pause(ingress, queues),
                _ => Packet { flags: Flags::new((kind % 2) as u8, false), ..data(seq as u32, size) },
            };
            // Two ports draw most of what comes, so that queues build up.
            Arrival { at, ingress, port: if size % 3 == 0 { port } else { port % 2 }, packet }
        };
        all.into_iter().enumerate().map(of).collect()
    })
}

/// Arrival, number, PAUSE bits, mark and virtual channel, size.
type Crossed = (Time, u32, ByKind, u8, u16);

/// What an observer can see of a run: per channel what crosses it, per port its counts, per arrival its fate.
#[derive(Debug, PartialEq)]
struct Seen {
    crossed: BTreeMap<u32, Vec<Crossed>>,
    credits: Vec<(u32, Time, u8, u32)>,
    stats: Vec<PortStats>,
    fates: Vec<(u32, bool)>,
}

/// Runs the arrivals, looking at all ports every `window` ns and at `looks`. Under credits, what leaves comes back as a credit
/// 1500 ns after its transmission began, at the earliest.
/// With `hands_on_early`, what goes before all else is handed on early; under flow control, ports then know when the node's next event comes. If it `is_paced`, packets arrive
/// at each port no faster than its link carries them.
fn run(
    fabric: &Fabric,
    vcs: u8,
    arrivals: &[Arrival],
    window: u64,
    looks: &[u64],
    (hands_on_early, is_paced): (bool, bool),
) -> Seen {
    let is_pfc = matches!(fabric.flow_control, FlowControl::Pfc(_) | FlowControl::PfcShared(_));
    let has_credits = matches!(fabric.flow_control, FlowControl::Credits(_));
    let mut specs: Vec<_> = (0..PORTS).map(spec).collect();
    specs[0].changes = vec![(ns(777), Rate::from_gbps(1)), (ns(4000), Rate::from_gbps(3))];
    // When the last byte has arrived at each port.
    let mut link_is_free = [0; PORTS as usize];
    let mut node = Node::new(fabric, vcs, specs).handing_on_early(hands_on_early && !fabric.is_lossless());
    node.is_paced = is_paced;
    // (time, packets before looks, number): what happens next.
    let mut agenda: BTreeMap<(u64, u8, u64), Option<Arrival>> = BTreeMap::new();
    for (number, arrival) in arrivals.iter().enumerate() {
        let mut arrival = arrival.clone();
        if arrival.packet.kind == PacketKind::Pause {
            if !is_pfc {
                continue;
            }
        } else {
            let is_counted = arrival.packet.kind == PacketKind::Data;
            arrival.packet.ingress = if is_counted { arrival.ingress } else { NO_INGRESS };
            let vc = if vcs > 1 { arrival.packet.flags.class() } else { 0 };
            arrival.packet.trail = Trail::START.by(vc);
            if fabric.options.classes.is_empty() {
                arrival.packet.flags = Flags::default();
            }
        }
        if is_paced {
            let free = &mut link_is_free[usize::from(arrival.ingress)];
            arrival.at = arrival.at.max(*free + u64::from(arrival.packet.size));
            *free = arrival.at;
        }
        agenda.insert((arrival.at * 1000, 0, number as u64), Some(arrival));
    }
    for (number, &look) in looks.iter().enumerate() {
        agenda.insert((look * 1000, 2, number as u64), None);
    }
    for look in (0..400_000 / window).map(|number| number * window) {
        agenda.insert((look * 1000, 3, 0), None);
    }
    let (mut fates, mut seen, mut came) = (Vec::new(), 0, 0);
    while let Some((key, event)) = agenda.pop_first() {
        let at = Time(key.0);
        if let Some(arrival) = event {
            let next = agenda.iter().find(|(_, event)| event.is_some());
            node.next = (hands_on_early && fabric.is_lossless())
                .then(|| next.map_or(Time::MAX, |((next, ..), _)| Time(*next)));
            came += usize::from(!matches!(arrival.packet.kind, PacketKind::Pause | PacketKind::Credit));
            let fate = node.put(at, arrival.port, arrival.packet);
            fates.push((arrival.packet.seq, fate != Fate::Queued));
        } else {
            node.advance(at);
        }
        for (channel, arrival, packet) in node.left.packets[seen..].iter().filter(|_| has_credits) {
            if packet.kind == PacketKind::Data {
                let credit = Credit {
                    port: (channel - 10) as u16,
                    queue: node.rules.first_queue(packet.flags.class()) as u8 + packet.trail.vc().unwrap(),
                    bytes: u32::from(packet.size),
                };
                let back = Arrival { at: 0, ingress: 0, port: 0, packet: credit.to_packet() };
                let number = u64::from(*channel) << 32 | u64::from(packet.seq);
                agenda.insert((arrival.0 + 400_000, 1, number), Some(back));
            }
        }
        seen = node.left.packets.len();
    }
    node.advance(Time::MAX);
    // Nothing is lost on the way or comes from nowhere, PAUSE frames aside.
    let waiting = node.ports.waiting_packets(&node.rules).map(|(_, _, packet)| packet);
    let left = node.left.packets.iter().map(|left| &left.2);
    let here = waiting.chain(left).filter(|packet| packet.kind != PacketKind::Pause).count();
    assert_eq!(here + fates.iter().filter(|fate| fate.1).count(), came);
    let mut crossed: BTreeMap<u32, Vec<Crossed>> = BTreeMap::new();
    for (channel, at, packet) in &node.left.packets {
        let vc = packet.trail.vc().unwrap_or(u8::MAX - 1);
        let what = (*at, packet.seq, packet.by_kind, packet.flags.is_marked() as u8 + vc, packet.size);
        crossed.entry(*channel).or_default().push(what);
    }
    let mut credits: Vec<_> =
        node.left.credits.iter().map(|(to, at, credit)| (*to, *at, credit.queue, credit.bytes)).collect();
    credits.sort_unstable();
    fates.sort_unstable();
    let stats = (0..PORTS).map(|port| node.ports.stats_of(port, ns(500_000))).collect();
    Seen { crossed, credits, stats, fates }
}

/// How a full queue behaves where nothing keeps it from filling.
fn queues() -> impl Strategy<Value = Queue> {
    let trimming = (1..5u32, prop::option::of(64..600u64), any::<bool>());
    let trimming = trimming.prop_map(|(control_weight, room, return_to_sender)| {
        let control_buffer = room.map(Bytes);
        Queue::Trimming(Trimming { control_weight, control_buffer, return_to_sender, ..Trimming::default() })
    });
    prop_oneof![Just(Queue::TailDrop(TailDrop::default())), trimming]
}

fn flow_controls() -> impl Strategy<Value = FlowControl> {
    let (headroom, resume) = (Some(Bytes(600)), Some(Bytes(200)));
    let pfc = Pfc { buffer: Bytes(1500), headroom, resume, response: ns(5), ..Pfc::default() };
    // It takes some time from the threshold below which a pause ends, and up to that where one begins.
    let roomy = Pfc { buffer: Bytes(4000), resume: Some(Bytes(1200)), ..pfc.clone() };
    let shared = PfcShared {
        buffer: Bytes(9000),
        reserve: Bytes(100),
        alpha: 0.5,
        headroom,
        resume,
        ..PfcShared::default()
    };
    let credits = Credits { buffer: Bytes(900), ..Credits::default() };
    prop_oneof![
        Just(FlowControl::Lossy(Lossy {})),
        Just(FlowControl::Pfc(pfc)),
        Just(FlowControl::Pfc(roomy)),
        Just(FlowControl::PfcShared(shared)),
        Just(FlowControl::Credits(credits)),
    ]
}

/// Classes, and virtual channels per class.
fn data_queues() -> impl Strategy<Value = (Vec<Option<u32>>, u8)> {
    prop_oneof![
        Just((vec![], 1)),
        Just((vec![], 2)),
        Just((vec![Some(3), Some(2)], 1)),
        Just((vec![None, None], 1)),
        Just((vec![Some(1), None], 1)),
    ]
}

fn marks() -> impl Strategy<Value = Option<Mark>> {
    prop_oneof![Just(None), Just(Some(Mark::Arrival)), Just(Some(Mark::Departure))]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]
    #[test]
    fn nothing_depends_on_how_often_ports_are_advanced(
        arrivals in arrivals(),
        looks in prop::collection::vec(0..8000u64, 0..60),
        flow_control in flow_controls(),
        queue in queues(),
        (shares, vcs) in data_queues(),
        (buffer, mark, control_priority) in (400..3000u64, marks(), any::<bool>()),
        (is_bounded, is_paced) in (any::<bool>(), any::<bool>()),
    ) {
        let mut fabric = with(flow_control);
        if !fabric.is_lossless() {
            fabric.queue = queue;
        }
        fabric.options.classes = classes(&shares);
        fabric.options.control_priority = control_priority;
        // At arrivals by a threshold: the ports of a node would draw from one stream, in whatever order packets come.
        let (more, pmax) = if mark == Some(Mark::Departure) { (400, 0.5) } else { (0, 1.0) };
        fabric.options.ecn = mark.map(|mark| Ecn { kmin: Bytes(200), kmax: Bytes(200 + more), pmax, mark });
        // Lossless: packets wait at their inputs.
        fabric.options.buffer = (!fabric.is_lossless() || is_bounded).then_some(Bytes(buffer));
        let expected = run(&fabric, vcs, &arrivals, 1000, &[], (false, is_paced));
        prop_assert_eq!(&expected, &run(&fabric, vcs, &arrivals, 1000, &looks, (false, is_paced)));
        prop_assert_eq!(&expected, &run(&fabric, vcs, &arrivals, 999, &[], (true, is_paced)));
        prop_assert_eq!(&expected, &run(&fabric, vcs, &arrivals, 73, &looks, (true, is_paced)));
    }
}

/// Where links carry no more than they can, ports that are not read hand ACKs on early under PFC: never one that a PAUSE frame would have overtaken.
#[test]
fn no_pause_frame_comes_too_late_for_what_was_handed_on_early() {
    let (headroom, resume, response) = (Some(Bytes(600)), Some(Bytes(200)), ns(5));
    proptest!(ProptestConfig::with_cases(1000), |(arrivals in arrivals(), threshold in 500..2500u64, is_shared in any::<bool>())| {
        let buffer = Bytes(600 + threshold);
        let fixed = Pfc { buffer, headroom, resume, response, ..Pfc::default() };
        let (buffer, reserve) = (Bytes(5800 + 4 * threshold), Bytes(100));
        let shared = PfcShared { buffer, reserve, alpha: 0.1, headroom, resume, response, ..PfcShared::default() };
        let control = if is_shared { FlowControl::PfcShared(shared) } else { FlowControl::Pfc(fixed) };
        let expected = run(&with(control.clone()), 1, &arrivals, 1000, &[], (false, true));
        prop_assert_eq!(&expected, &run(&with(control), 1, &arrivals, 1000, &[], (true, true)));
    });
}

#[test]
fn a_packet_tells_the_next_node_by_which_port_it_comes() {
    let controls = [
        FlowControl::Lossy(Lossy::default()),
        FlowControl::Pfc(Pfc::default()),
        FlowControl::Credits(Credits::default()),
    ];
    for control in controls {
        let mut node = Node::new(&with(control), 1, vec![spec(0)]);
        node.put(ns(0), 0, data(0, 100));
        node.put(ns(10), 0, ack(1));
        node.advance(ns(5000));
        assert!(node.left.packets.iter().all(|(_, _, packet)| packet.ingress == 7));
    }
}

#[test]
fn a_port_estimates_how_much_of_its_link_it_uses_by_what_has_started() {
    let mut node = one_port(options());
    node.ports.estimate_rates(ns(1000), 0.5, false);
    // A busy link of a byte per nanosecond holds 2000 B. Three packets: one starts at once, two wait.
    for seq in 0..3 {
        node.put(ns(0), 0, data(seq, 400));
    }
    node.put(ns(100), 0, ack(9));
    let parts = [1, 399, 464, 465, 865, 1000, 2000].map(|at| node.utilisation(ns(at), 0));
    let used = parts.map(|parts| (parts * 2000 + 32_768) / 65_536);
    // The ACK starts at 400, then the others at 464 and 864.
    assert_eq!(used, [400, 400, 464, 864, 1264, 632, 316]);
}

/// Eight packets of 200 B come at once. One byte may wait unmarked at one port, a thousand at the other. It is the same under every flow control.
#[test]
fn a_port_marks_by_its_own_thresholds_where_it_has_some() {
    let marked = |control: FlowControl, mark| {
        let step = |at| Ecn { kmin: Bytes(at), kmax: Bytes(at), pmax: 1.0, mark };
        let own = netloom_fabric::PortSpec { ecn: Some(step(1000)), ..spec(1) };
        let options = FabricOptions { ecn: Some(step(1)), ..options() };
        let fabric = Fabric { options, ..with(control) };
        let mut node = Node::new(&fabric, 1, vec![spec(0), own]);
        for port in 0..2 {
            for seq in 0..8 {
                node.put(ns(0), port, data(seq, 200));
            }
        }
        node.advance(ns(10_000));
        let marks = [0, 1].map(|port| node.ports.stats_of(port, ns(10_000)).marks);
        let marked = [10, 11].map(|channel| marked_at(&node, channel));
        assert_eq!(marks, [0, 1].map(|port| marked[port].len() as u64));
        marked
    };
    let controls = [
        FlowControl::Lossy(Lossy::default()),
        FlowControl::Pfc(Pfc::default()),
        FlowControl::PfcShared(PfcShared::default()),
        FlowControl::Credits(Credits::default()),
    ];
    for control in controls {
        // The first is sent at once, the second finds nothing; the eighth at the other port is the first to find more than 1000 B.
        assert_eq!(marked(control.clone(), Mark::Arrival), [vec![2, 3, 4, 5, 6, 7], vec![7]]);
        // The first and the last leave nothing behind; the second at the other port is the only one to leave more than 1000 B.
        assert_eq!(marked(control, Mark::Departure), [vec![1, 2, 3, 4, 5, 6], vec![1]]);
    }
}

/// Numbers of the marked packets that have left through a channel.
fn marked_at(node: &Node, channel: u32) -> Vec<u32> {
    let left = node.left.packets.iter().filter(|packet| packet.0 == channel);
    left.filter(|packet| packet.2.flags.is_marked()).map(|packet| packet.2.seq).collect()
}

/// Every data packet is marked whose transmission starts while more than a threshold of its own queue waits behind it, and no other: a reference
/// with a plain list for each queue. What arrives as it starts counts, but not at a port that was idle.
#[test]
fn a_packet_is_marked_by_what_it_leaves_behind_as_it_starts() {
    let packets = prop::collection::vec((0..400u64, 1..40u16, 0..2u8), 1..60);
    let controls = [
        FlowControl::Lossy(Lossy::default()),
        FlowControl::PfcShared(PfcShared { buffer: Bytes(90_000), ..PfcShared::default() }),
    ];
    proptest!(|(mut packets in packets, threshold in 0..1500u64, control in 0..2usize, trims in any::<bool>())| {
        packets.sort_by_key(|packet| packet.0);
        let ecn = Ecn { kmin: Bytes(threshold), kmax: Bytes(threshold), pmax: 1.0, mark: Mark::Departure };
        let mut fabric = with(controls[control].clone());
        fabric.options = FabricOptions { ecn: Some(ecn), classes: classes(&[None, None]), ..options() };
        if trims && control == 0 {
            fabric.options.buffer = Some(Bytes(1_000_000));
            fabric.queue = Queue::Trimming(Trimming::default());
        }
        let mut node = Node::new(&fabric, 1, vec![spec(0), spec(1)]);
        for (seq, &(at, size, class)) in packets.iter().enumerate() {
            let trail = Trail::START.by(0);
            let packet = Packet { ingress: 1, flags: Flags::new(class, false), trail, ..data(seq as u32, size * 10) };
            node.put(ns(at * 10 + 5), 0, packet);
        }
        node.advance(Time::MAX);
        prop_assert_eq!(marked_at(&node, 10), marked_by_lists(&packets, threshold));
    });
}

/// The numbers of those packets, given as (tens of nanoseconds, tens of bytes, class), that are marked.
fn marked_by_lists(packets: &[(u64, u16, u8)], threshold: u64) -> Vec<u32> {
    let (mut queues, mut free, mut next, mut marked) = ([vec![], vec![]], 0, 0, vec![]);
    loop {
        while let Some(&(at, _, class)) = packets.get(next) {
            // A port at which nothing waits is idle from the instant on at which its transmission ends.
            let waits = queues.iter().any(|queue| !queue.is_empty());
            if at * 10 + 5 > free || at * 10 + 5 == free && !waits {
                break;
            }
            queues[usize::from(class)].push(next);
            next += 1;
        }
        let Some(class) = queues.iter().position(|queue: &Vec<usize>| !queue.is_empty()) else {
            let Some(packet) = packets.get(next) else { return marked };
            free = packet.0 * 10 + 5;
            // It finds the port idle, and what comes in the same instant comes later.
            queues[usize::from(packet.2)].push(next);
            next += 1;
            let first = queues[usize::from(packet.2)].remove(0);
            free += u64::from(packets[first].1) * 10;
            continue;
        };
        let first = queues[class].remove(0);
        let left: u64 = queues[class].iter().map(|&packet| u64::from(packets[packet].1) * 10).sum();
        marked.extend((left > threshold).then_some(first as u32));
        free += u64::from(packets[first].1) * 10;
    }
}

/// Of packets that each leave half of what lies between the thresholds behind, half of `pmax` are marked, and by other draws under another seed.
#[test]
fn marks_at_departure_are_drawn_under_the_runs_seed() {
    let marked = |seed| {
        let ecn = Ecn { kmin: Bytes(0), kmax: Bytes(400), pmax: 0.5, mark: Mark::Departure };
        let mut node = one_port(FabricOptions { ecn: Some(ecn), ..options() });
        node.rules = node.rules.with_seed(seed);
        for pair in 0..4000 {
            // The first is sent at once, the second leaves the third behind.
            for seq in [1_000_000, pair as u32, 1_000_000] {
                node.put(ns(pair * 1000), 0, data(seq, 200));
            }
        }
        node.advance(Time::MAX);
        marked_at(&node, 10)
    };
    // One standard deviation is 27.
    assert!((900..1100).contains(&marked(1).len()), "{}", marked(1).len());
    assert_eq!(marked(1), marked(1));
    assert_ne!(marked(1), marked(2));
}

#[test]
fn a_data_packet_has_the_queue_of_its_class_at_every_port() {
    let fabric = lossy(FabricOptions { classes: classes(&[Some(1), None]), ..options() });
    let node = Node::new(&fabric, 1, vec![spec(0), spec(1)]);
    let of_class = |class| Packet { flags: Flags::new(class, false), ..data(1, 200) };
    let queues =
        [0, 1].map(|class| [0, 1].map(|port| node.ports.data_queue_out(port, &of_class(class), &node.rules)));
    assert_eq!(queues, [[1, 1], [0, 0]], "strict classes come first");
}

/// A node remembers in words of 64 bits at which ports something waits.
#[test]
fn what_waits_at_the_last_of_many_ports_leaves_when_the_node_is_advanced() {
    let specs = (0..200).map(spec).collect();
    let mut node = Node::new(&lossy(options()), 1, specs);
    for port in [0, 63, 64, 127, 128, 199] {
        for seq in 0..2 {
            node.put(ns(0), port, data(seq, 200));
        }
    }
    node.advance(ns(10_000));
    for port in [0, 63, 64, 127, 128, 199] {
        assert_eq!(node.left.at(10 + port), [(0, 1200), (1, 1400)], "port {port}");
    }
}
