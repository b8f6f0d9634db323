//! Channels that are cut or lose packets.

mod common;

use common::*;
use netloom_fabric::flow_control::{credits::Credits, pfc::Pfc};
use netloom_fabric::queue::{Queue, trimming::Trimming};
use netloom_fabric::{
    ChannelFaults, Credit, DropCause, Fabric, FabricOptions, FlowControl, LossInterval, Packet, PortSpec,
    Ports, Rules,
};
use netloom_units::{Bytes, Time};
use proptest::prelude::*;
use rand_pcg::Pcg64Mcg;

fn faulty(cuts: Vec<(Time, Time)>, losses: Vec<LossInterval>) -> PortSpec {
    let faults = ChannelFaults::new(cuts, losses, Pcg64Mcg::new(7)).map(Box::new);
    PortSpec { faults, ..spec(0) }
}

fn node(spec: PortSpec) -> Node {
    let mut node = Node::new(&Fabric::default(), 1, vec![spec]);
    node.rules = node.rules.with_faults();
    node
}

#[test]
fn a_cut_takes_what_waits_what_is_sent_and_what_is_on_the_wire() {
    // A byte per nanosecond, a microsecond of cable, cut from 1250 ns to 3 us.
    let mut node = node(faulty(vec![(ns(1250), ns(3000))], vec![]));
    // Arrives at 1100 ns.
    node.put(ns(0), 0, data(0, 100));
    // Starts at 300 ns and would arrive at 1400: on the wire.
    node.put(ns(300), 0, data(1, 100));
    // Being sent from 1200 to 1600 ns, and two that wait for it.
    node.put(ns(1200), 0, data(2, 400));
    node.put(ns(1210), 0, data(3, 100));
    node.put(ns(1220), 0, ack(4));
    // Come while the channel is cut.
    node.put(ns(1300), 0, data(5, 100));
    node.put(ns(2999), 0, ack(6));
    // The wire is whole again: at once.
    node.put(ns(3000), 0, data(7, 100));
    assert_eq!(node.advance(ns(9000)), None);
    assert_eq!(node.left.at(10), [(0, 1100), (7, 4100)]);
    let dropped = node.ports.dropped();
    assert_eq!((dropped.data(DropCause::Fault), dropped.control(DropCause::Fault)), (4, 2));
    assert_eq!(dropped.data(DropCause::Full), 0);
    let stats = node.ports.stats_of(0, ns(9000));
    assert_eq!((stats.lost, stats.drops, stats.packets), (6, 0, 4));
    // 100 + 100 + 50 of the 400 that the cut ended + 100.
    assert_eq!(stats.busy, ns(350));
    // Two waited from their arrival to the cut: 100 × 40 + 64 × 30 byte-nanoseconds.
    assert_eq!(stats.queue_integral(), (100 * 40 + 64 * 30) * 1000);
}

/// What waits at a cut has waited until then, whether or not something comes later.
#[test]
fn what_a_cut_takes_has_waited_until_the_cut() {
    for later in [None, Some(2000), Some(4000)] {
        let mut node = node(faulty(vec![(ns(1250), ns(3000))], vec![]));
        node.put(ns(1200), 0, data(0, 400));
        node.put(ns(1210), 0, data(1, 100));
        node.put(ns(1220), 0, ack(2));
        if let Some(later) = later {
            node.put(ns(later), 0, data(3, 100));
        }
        node.advance(ns(9000));
        let stats = node.ports.stats_of(0, ns(9000));
        assert_eq!(stats.queue_integral(), (100 * 40 + 64 * 30) * 1000);
        assert_eq!(stats.busy, ns(if later == Some(4000) { 150 } else { 50 }));
    }
}

#[test]
fn a_cut_ends_a_transmission_also_where_nothing_follows() {
    for is_looked_at in [false, true] {
        let mut node = node(faulty(vec![(ns(250), ns(900))], vec![]));
        node.put(ns(200), 0, data(0, 400));
        if is_looked_at {
            node.put(ns(300), 0, data(1, 100));
        }
        node.advance(ns(9000));
        assert_eq!(node.ports.stats_of(0, ns(9000)).busy, ns(50));
    }
}

#[test]
fn nothing_waits_for_a_channel_that_is_cut() {
    let mut node = node(faulty(vec![(ns(100), ns(900))], vec![]));
    node.put(ns(200), 0, data(0, 400));
    node.advance(ns(9000));
    let stats = node.ports.stats_of(0, ns(9000));
    assert_eq!((stats.max_queue, stats.lost, stats.busy), (0, 1, ns(0)));
}

#[test]
fn cuts_that_overlap_are_one() {
    let mut node = node(faulty(vec![(ns(500), ns(600)), (ns(100), ns(300)), (ns(200), ns(400))], vec![]));
    for (seq, at) in [(0, 0), (1, 150), (2, 350), (3, 400), (4, 550), (5, 600)] {
        node.put(ns(at), 0, data(seq, 10));
    }
    node.advance(ns(9000));
    // All that start before the last cut are on the wire when it comes.
    assert_eq!(node.left.at(10), [(5, 1610)]);
}

/// Under flow control packets may wait for long at a port that sends nothing: they have waited until the cut, too.
#[test]
fn what_is_paused_at_a_cut_has_waited_until_the_cut() {
    let pfc = Pfc { buffer: Bytes(100_000), ..Pfc::default() };
    let specs = vec![faulty(vec![(ns(500), ns(900))], vec![]), spec(1)];
    let mut node = Node::new(&with(FlowControl::Pfc(pfc)), 1, specs);
    node.rules = node.rules.with_faults();
    node.put(ns(0), 0, pause(0, 1));
    node.put(ns(100), 0, data(0, 200));
    node.cut_link(ns(500), 0);
    let stats = node.ports.stats_of(0, ns(800));
    assert_eq!((stats.lost, stats.packets, stats.paused), (1, 0, ns(400)));
    assert_eq!(stats.queue_integral(), 200 * 400 * 1000);
    // The pause has gone with the link.
    node.restore_link(ns(900), 0);
    node.put(ns(1000), 0, data(1, 100));
    node.advance(ns(9000));
    assert_eq!(node.left.at(10), [(1, 2100)]);
}

/// The ends of a link forget what they knew of each other's buffers. When it is repaired, each gives credit for the room that it has then.
#[test]
fn a_link_that_is_repaired_begins_with_credit_for_the_room_that_there_is() {
    let credits = Credits { buffer: Bytes(2000), ..Credits::default() };
    let specs = vec![faulty(vec![(ns(500), ns(900))], vec![]), spec(1)];
    let mut node = Node::new(&with(FlowControl::Credits(credits)), 1, specs);
    node.rules = node.rules.with_faults();
    // Of four packets that came by the link one is being sent on by port 1, and three wait there.
    for seq in 0..4 {
        node.put(ns(450), 1, Packet { ingress: 0, ..data(seq, 300) });
    }
    node.cut_link(ns(500), 0);
    assert_eq!(node.ports.credits(0, 0), Some(0));
    node.restore_link(ns(900), 0);
    // The second has left at 750 ns.
    let granted: Vec<(u16, u8, u32)> =
        node.left.granted.iter().map(|(_, _, credit)| (credit.port, credit.queue, credit.bytes)).collect();
    assert_eq!(granted, [(7, 0, 2000 - 600)]);
    // Without credit from the other end nothing leaves.
    node.put(ns(1000), 0, data(9, 100));
    node.advance(ns(5000));
    assert_eq!(node.left.at(10), []);
    node.put(ns(5000), 0, Credit { port: 0, queue: 0, bytes: 2000 }.to_packet());
    node.advance(ns(9000));
    assert_eq!(node.left.at(10), [(9, 6100)]);
}

/// A NIC that pulls its data sends into a channel that is cut as if it were not.
#[test]
fn a_nic_goes_on_at_its_pace_while_its_channel_is_cut() {
    let pfc = Pfc { buffer: Bytes(100_000), ..Pfc::default() };
    for fabric in [Fabric::default(), with(FlowControl::Pfc(pfc))] {
        let rules = Rules::new(&fabric, Bytes(PACKET), 1).with_faults();
        let mut ports = Ports::new([faulty(vec![(ns(100), ns(900))], vec![])], &rules, true);
        let mut left = Left::default();
        for (at, free_at) in [(300, 500), (500, 700), (900, 1100)] {
            ports.send_now(0, &mut data(0, 200), ns(at), &rules, &mut left);
            assert_eq!(ports.free_at(0), ns(free_at));
        }
        let stats = ports.stats_of(0, ns(9000));
        assert_eq!((stats.lost, stats.packets, stats.busy), (2, 1, ns(200)));
        assert_eq!((ports.dropped().data(DropCause::Fault), left.at(10)), (2, vec![(0, 2100)]));
    }
}

/// What is lost on its way counts as sent until then, but not beyond the cut.
#[test]
fn what_a_nic_sends_when_a_run_ends_counts_until_then() {
    let pfc = Pfc { buffer: Bytes(100_000), ..Pfc::default() };
    let lossy = vec![LossInterval { from: ns(0), until: ns(500), probability: u32::MAX }];
    let faults = [(vec![(ns(400), ns(450))], vec![]), (vec![(ns(900), ns(950))], vec![]), (vec![], lossy)];
    for fabric in [Fabric::default(), with(FlowControl::Pfc(pfc))] {
        for ((cuts, losses), sent) in faults.clone().into_iter().zip([100, 200, 200]) {
            let rules = Rules::new(&fabric, Bytes(PACKET), 1).with_faults();
            let mut ports = Ports::new([faulty(cuts, losses)], &rules, true);
            ports.send_now(0, &mut data(0, 200), ns(300), &rules, &mut Left::default());
            for end in [300, 350, 400, 450, 500, 9000] {
                assert_eq!(ports.stats_of(0, ns(end)).busy, ns((end - 300).min(sent)), "at {end}");
            }
            assert_eq!(ports.stats_of(0, ns(500)).lost, 1);
        }
    }
}

/// Under credits the other end notices a packet that is lost at random when it would have arrived, and gives its room back.
#[test]
fn what_is_lost_at_random_is_missed_when_it_would_have_arrived() {
    let credits = Credits { buffer: Bytes(2000), ..Credits::default() };
    let lossy = vec![LossInterval { from: ns(0), until: ns(500), probability: u32::MAX }];
    let mut node = Node::new(&with(FlowControl::Credits(credits)), 1, vec![faulty(vec![], lossy)]);
    node.rules = node.rules.with_faults();
    node.put(ns(100), 0, data(0, 200));
    node.put(ns(100), 0, data(1, 300));
    node.advance(ns(9000));
    let missed: Vec<(u64, u16, u32)> =
        node.left.missed.iter().map(|(_, at, room)| (at.0 / 1000, room.port, room.bytes)).collect();
    assert_eq!(missed, [(1300, 7, 200), (1600, 7, 300)]);
    assert_eq!((node.ports.credits(0, 0), node.ports.stats_of(0, ns(9000)).lost), (Some(1500), 2));
}

/// What a cut takes does not count against the control packets that come after it.
#[test]
fn control_packets_are_counted_anew_after_a_cut() {
    let queue = Queue::Trimming(Trimming { control_weight: 2, ..Trimming::default() });
    let options = FabricOptions { buffer: Some(Bytes(4000)), ..options() };
    let fabric = Fabric { options, queue, ..Fabric::default() };
    let mut node = Node::new(&fabric, 1, vec![faulty(vec![(ns(430), ns(600))], vec![])]);
    node.rules = node.rules.with_faults();
    // The cut comes while an ACK is being sent, and another one and data wait.
    node.put(ns(0), 0, data(0, 400));
    node.put(ns(10), 0, data(1, 200));
    node.put(ns(10), 0, ack(2));
    node.put(ns(10), 0, ack(8));
    node.put(ns(1000), 0, data(3, 400));
    for seq in 4..7 {
        node.put(ns(1010), 0, ack(seq));
    }
    node.put(ns(1010), 0, data(7, 200));
    node.advance(ns(9000));
    let order: Vec<u32> = node.left.at(10).iter().map(|packet| packet.0).collect();
    assert_eq!(order, [3, 4, 5, 7, 6]);
}

#[test]
fn packets_are_lost_at_random_at_the_rate_that_was_written() {
    let probability = (0.25 * 2f64.powi(32)) as u32;
    let mut node =
        node(faulty(vec![], vec![LossInterval { from: ns(0), until: ns(4_000_000), probability }]));
    for seq in 0..40_000u32 {
        node.put(ns(u64::from(seq) * 200), 0, data(seq, 100));
    }
    node.advance(ns(9_000_000));
    let lost = node.ports.dropped().data(DropCause::Fault);
    assert_eq!(lost as usize + node.left.packets.len(), 40_000);
    // 20,000 packets within the interval, three standard deviations: 3 × √(20,000 × 3/16) = 184.
    assert!(lost.abs_diff(5_000) < 184, "{lost}");
    assert!(node.left.packets.iter().filter(|packet| packet.2.seq >= 20_000).count() == 20_000);
}

/// What comes to a port: after how long, how large, and whether the port is looked at before.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u16, bool)>> {
    prop::collection::vec((0..400u64, 1..400u16, any::<bool>()), 1..80)
}

proptest! {
    /// A port is advanced when it is touched, and what is touched may not change what happens.
    #[test]
    fn looking_changes_nothing_and_every_packet_arrives_or_is_dropped(
        arrivals in arrivals(),
        cuts in prop::collection::vec((0..12_000u64, 1..3_000u64), 0..4),
        probability in prop::option::of(any::<u32>()),
        buffer in prop::option::of(400..2_000u64),
    ) {
        let cuts: Vec<_> = cuts.into_iter().map(|(from, long)| (ns(from), ns(from + long))).collect();
        let losses: Vec<_> =
            probability.map(|probability| LossInterval { from: ns(2_000), until: ns(9_000), probability }).into_iter().collect();
        let run = |looks: bool| {
            let options = FabricOptions { buffer: buffer.map(Bytes), ..FabricOptions::default() };
            let fabric = Fabric { options, ..Fabric::default() };
            let mut node = Node::new(&fabric, 1, vec![faulty(cuts.clone(), losses.clone())]);
            node.rules = node.rules.with_faults();
            let mut now = 0;
            for (seq, &(later, size, look)) in (0..).zip(&arrivals) {
                now += later;
                if looks && look {
                    node.advance(ns(now));
                }
                node.put(ns(now), 0, data(seq, size));
            }
            node.advance(ns(1_000_000));
            node
        };
        let (often, seldom) = (run(true), run(false));
        prop_assert_eq!(often.left.at(10), seldom.left.at(10));
        prop_assert_eq!(often.ports.stats_of(0, ns(1_000_000)), seldom.ports.stats_of(0, ns(1_000_000)));
        let dropped = seldom.ports.dropped();
        let lost = dropped.data(DropCause::Fault) + dropped.data(DropCause::Full);
        prop_assert_eq!(lost as usize + seldom.left.packets.len(), arrivals.len());
        // Nothing is on the wire while it is cut.
        for (_, arrival, packet) in &seldom.left.packets {
            let start = *arrival - ns(1_000 + u64::from(packet.size));
            prop_assert!(cuts.iter().all(|&(from, until)| *arrival <= from || until <= start));
        }
    }
}
