//! NDP: a first window at the line's rate, then packets that their receiver asks for.

mod common;

use common::*;
use netloom_fabric::Queue;
use netloom_fabric::queue::trimming::Trimming;
use netloom_record::{FlowRecord, Records};
use netloom_sim::{ChannelEnds, Cut, Degrade, Fault, Loss, SimConfig, SimError, Simulation};
use netloom_topology::{BuildContext, Crossbar, FatTree, Network, SlimFly, Topology};
use netloom_transport::reliability::trimmed::Trimmed;
use netloom_transport::{Congestion, Reliability, congestion, preset};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Permutation, Plan};

/// Payload of a full packet, and what that and a header or control packet take at 10 Gb/s.
const MTU: u64 = 8936;
const PACKET: Time = Time::from_ns(7200);
const CONTROL: Time = Time(51_200);
const CABLE: Time = Time::from_us(1);

fn crossbar_10g(hosts: u32, latency: Time) -> Network {
    let rate = Rate::from_gbps(10);
    build(Topology::Crossbar(Crossbar { hosts, rate, latency }))
}

fn ndp(transport: &str, window: u32) -> SimConfig {
    let mut config = SimConfig { transport: preset::find(transport).unwrap().transport(), ..scheme("spray") };
    config.transport.congestion =
        Congestion::Pulls(congestion::pulls::Pulls { initial_window: window, ..Default::default() });
    config.fabric.queue = Queue::Trimming(Trimming::default());
    config
}

/// Receivers ask for what arrives whole.
fn adapt(config: &mut SimConfig) {
    let Congestion::Pulls(pulls) = &mut config.transport.congestion else { panic!("pulls") };
    pulls.adaptive = Some(Default::default());
}

/// Every other host sends this many full packets to the last one, all at once.
fn incast(senders: u32, packets: u64, config: SimConfig) -> Records {
    far_incast(senders, packets, CABLE, config)
}

fn far_incast(senders: u32, packets: u64, cable: Time, config: SimConfig) -> Records {
    let message = Message::new(senders, Bytes(packets * MTU), Time(0));
    let plan = Plan::of_messages(senders + 1, (0..senders).map(|src| (src, message)));
    run(crossbar_10g(senders + 1, cable), config, plan)
}

fn sum(records: &Records, field: impl Fn(&FlowRecord) -> u64) -> u64 {
    records.flows.iter().map(field).sum()
}

fn last(records: &Records) -> Time {
    records.flows.iter().map(fct).max().unwrap()
}

/// Time in which the receiver's link was busy.
fn busy(records: &Records, receiver: u32) -> Time {
    let name = format!("h{receiver}");
    records.channels.iter().find(|channel| *channel.to == *name).unwrap().busy
}

/// When the first packet has come to the switch.
const FIRST: Time = Time(PACKET.0 + CABLE.0);

#[test]
fn one_flow_is_pulled_at_the_rate_of_its_link() {
    // A window of three packets covers the round trip of 2.6: the pulls that follow leave as the packets come in, and so on.
    let records = incast(1, 200, ndp("ndp", 3));
    assert_eq!(last(&records), records.flows[0].ideal_fct);
    assert_eq!(sum(&records, |flow| flow.trims), 0);
    // With one packet, each takes its round trip: there, and behind its ACK the PULL back.
    let records = incast(1, 200, ndp("ndp", 1));
    let round = (PACKET + CABLE) * 2 + CONTROL + (CONTROL + CABLE) * 2;
    assert_eq!(last(&records), round * 199 + (PACKET + CABLE) * 2);
}

fn pulls(config: &mut SimConfig) -> &mut congestion::pulls::Pulls {
    let Congestion::Pulls(pulls) = &mut config.transport.congestion else { panic!("pulls") };
    pulls
}

#[test]
fn a_pace_below_the_link_shows_after_the_first_window() {
    let mut config = ndp("ndp", 3);
    pulls(&mut config).pace = 0.8;
    let records = incast(1, 200, config);
    // A PULL every 9 us from the arrival of the first packet on, and the 197th lets the last packet out.
    let first_pull = (PACKET + CABLE) * 2;
    let there_and_back = CONTROL + (CONTROL + CABLE) * 2 + (PACKET + CABLE) * 2;
    assert_eq!(last(&records), first_pull + Time::from_us(9) * 196 + there_and_back - CONTROL);
}

#[test]
fn a_flow_that_asks_begins_a_round_trip_later_at_the_pace_of_its_pulls() {
    for (window, packets) in [(30, 100), (3, 100), (30, 2)] {
        let mut config = ndp("ndp", window);
        pulls(&mut config).request_to_send = true;
        let records = incast(1, packets, config);
        // A request there, a PULL back.
        let asked = (CONTROL + CABLE) * 4;
        assert_eq!(last(&records), asked + PACKET * packets + CABLE * 2 + PACKET);
        assert_eq!(last(&records), records.flows[0].ideal_fct);
    }
}

/// All first windows at once overflow the queue of eight packets; asked for, packets come one by one.
#[test]
fn an_incast_that_asks_is_not_trimmed() {
    for (asks, trims) in [(false, true), (true, false)] {
        let mut config = ndp("ndp", 30);
        pulls(&mut config).request_to_send = asks;
        let records = incast(8, 50, config);
        assert_eq!(sum(&records, |flow| flow.trims) > 0, trims);
        assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
    }
}

/// Requests may be lost: what has asked in vain sends a packet unasked after a timeout.
#[test]
fn requests_that_get_lost_cost_a_timeout() {
    let mut config = ndp("ndp", 4);
    pulls(&mut config).request_to_send = true;
    let channels = vec![ChannelEnds { from: "h0".into(), to: "s0".into(), parallel: 0 }];
    let until = Some(Time::from_us(2));
    config.faults = vec![Fault::Loss(Loss { channels, probability: 0.999_999, until, ..Loss::default() })];
    let records = incast(1, 20, config);
    assert!(records.flows[0].timeouts > 0 && records.flows[0].fct.is_some());
}

#[test]
fn an_incast_that_fits_the_queue_keeps_the_receivers_link_busy_to_the_picosecond() {
    for (senders, window, packets) in [(2, 4, 50), (4, 2, 100), (8, 1, 30)] {
        let records = incast(senders, packets, ndp("ndp", window));
        assert_eq!(sum(&records, |flow| flow.trims + flow.retransmissions), 0);
        let all = PACKET * (u64::from(senders) * packets);
        assert_eq!((busy(&records, senders), last(&records)), (all, FIRST + all + CABLE));
    }
}

#[test]
fn pulls_leave_a_packet_time_apart() {
    // Of 40 packets one is sent at once and 8 fit the queue. The headers of the others go next; behind the answer to the first one the receiver
    // begins to ask for them, one packet time apart. The cables are so long that what it asks for finds an empty queue, and its PULLs a free NIC.
    let cable = Time::from_us(500);
    let records = far_incast(40, 1, cable, ndp("ndp", 1));
    assert_eq!((sum(&records, |flow| flow.trims), sum(&records, |flow| flow.retransmissions)), (31, 31));
    assert_eq!(records.totals.data.dropped, 0);
    // The first PULL leaves behind the answer to its header, and what it asks for keeps all that follow without a gap back by as much.
    let asked = PACKET + cable + PACKET + CONTROL + cable + PACKET * 30 + CONTROL;
    assert_eq!(last(&records), asked + (CONTROL + cable) * 2 + (PACKET + cable) * 2);
}

/// Any incast: the receiver's link is busy from the first arrival to the last, nothing is lost, and the last flow takes what its link needs for all
/// data and headers, within one packet time. In the largest one the queue of headers overflows, and some go back.
#[test]
fn an_incast_keeps_the_receivers_link_busy() {
    for (senders, window, packets) in [(8, 30, 100), (20, 30, 60), (20, 8, 40), (60, 30, 45), (100, 30, 30)] {
        let records = incast(senders, packets, ndp("ndp", window));
        let (trims, case) = (sum(&records, |flow| flow.trims), (senders, window, packets));
        assert!(trims > 0, "{case:?}");
        let returns = sum(&records, |flow| u64::from(flow.returned_to_sender));
        assert_eq!(
            (sum(&records, |flow| flow.retransmissions), returns > 0),
            (trims + returns, senders == 100),
            "{case:?}"
        );
        assert_eq!(
            (records.totals.data.dropped, sum(&records, |flow| u64::from(flow.timeouts))),
            (0, 0),
            "{case:?}"
        );
        let data = PACKET * (u64::from(senders) * packets) + CONTROL * trims;
        assert_eq!(busy(&records, senders), data, "{case:?}");
        let ideal = FIRST + data + CABLE;
        let late = last(&records).saturating_sub(ideal);
        assert!(late <= PACKET, "{case:?}: {late} after {ideal}");
    }
}

/// With adaptive windows a receiver asks for next to nothing that is trimmed again, and still keeps its link busy; no flow waits for a timer.
#[test]
fn an_incast_on_adaptive_windows_is_trimmed_once() {
    for (senders, window, packets) in [(8, 30, 100), (20, 8, 40), (60, 8, 5), (60, 30, 45)] {
        let fixed = ndp("ndp", window);
        let mut adaptive = fixed.clone();
        adapt(&mut adaptive);
        let (fixed, adaptive) = (incast(senders, packets, fixed), incast(senders, packets, adaptive));
        let trims = |records: &Records| sum(records, |flow| flow.trims);
        let case = (senders, window, packets, trims(&fixed), trims(&adaptive), last(&fixed), last(&adaptive));
        assert_eq!(sum(&adaptive, |flow| flow.delivered), u64::from(senders) * packets * MTU, "{case:?}");
        assert_eq!(sum(&adaptive, |flow| u64::from(flow.timeouts)), 0, "{case:?}");
        assert!(trims(&adaptive) <= trims(&fixed), "{case:?}");
        assert!(last(&adaptive) <= last(&fixed) + PACKET * u64::from(senders), "{case:?}");
    }
}

/// A flow that is alone has no use for more than the pulls of its receiver's link.
#[test]
fn an_adaptive_window_grows_until_its_receivers_link_is_full() {
    let mut config = ndp("ndp", 1);
    adapt(&mut config);
    let (adaptive, fixed) = (incast(1, 400, config), incast(1, 400, ndp("ndp", 1)));
    let line = adaptive.flows[0].ideal_fct;
    assert!(last(&adaptive) < line + line / 20, "{} of {line}", last(&adaptive));
    assert!(last(&fixed) > line * 2);
    assert_eq!(sum(&adaptive, |flow| flow.trims), 0);
}

#[test]
fn adaptive_windows_need_a_fabric_that_trims() {
    let mut config = ndp("ndp", 8);
    adapt(&mut config);
    config.fabric.queue = Queue::TailDrop(Default::default());
    config.fabric.options.buffer = Some(Bytes(72_000));
    let error = Simulation::new(crossbar_10g(3, CABLE), config, Plan::of_messages(3, [])).unwrap_err();
    let SimError::Transport(invalid) = error else { panic!("{error}") };
    assert_eq!(invalid.field, "congestion.adaptive");
}

#[test]
fn pulls_are_fair() {
    // Two thirds into the incast all flows have got the same, but for their turns. (What the first window of NDP brings is a lottery.)
    let mut config = ndp("ndp", 1);
    config.measure.until = Some(Time::from_ms(6));
    let records = incast(10, 125, config);
    let delivered: Vec<u64> = records.flows.iter().map(|flow| flow.delivered / MTU).collect();
    let (least, most) = (delivered.iter().min().unwrap(), delivered.iter().max().unwrap());
    assert!(most - least <= 1, "{delivered:?}");
}

#[test]
fn headers_that_come_back_are_sent_again_without_a_timer() {
    let mut config = ndp("ndp", 4);
    config.fabric.queue =
        Queue::Trimming(Trimming { control_buffer: Some(Bytes(320)), ..Trimming::default() });
    let records = incast(30, 5, config);
    let returns = sum(&records, |flow| u64::from(flow.returned_to_sender));
    assert!(returns > 20, "{returns}");
    assert_eq!(sum(&records, |flow| flow.delivered), 30 * 5 * MTU);
    let all = FIRST + PACKET * 150;
    assert!(last(&records) < all * 2, "{} of {all}", last(&records));
}

/// Goodput of a permutation of this many full packets per flow on a fat tree at 10 Gb/s, as a share of the line.
fn permutation_goodput(k: u32, packets: u64, routing: &str) -> f64 {
    let topology = FatTree { k: Some(k), rate: Some(Rate::from_gbps(10)), ..FatTree::default() };
    let network =
        Topology::FatTree(topology).build(&BuildContext { seed: 1, base_dir: "".as_ref() }).unwrap();
    let pattern = Permutation { size: Bytes(packets * MTU).into(), ..Permutation::default() };
    let plan = plan(netloom_workload::Pattern::Permutation(pattern), &network, 1);
    let config = SimConfig { routing: scheme(routing).routing, ..ndp("ndp", 30) };
    let records = run(network, config, plan);
    assert_eq!((records.totals.data.dropped, sum(&records, |flow| u64::from(flow.timeouts))), (0, 0));
    let mean = records.flows.iter().map(|flow| fct(flow).as_secs_f64()).sum::<f64>();
    packets as f64 * 9000.0 * 8.0 / (mean / records.flows.len() as f64) / 10e9
}

/// NDP's evaluation has 92 to 95% with senders that spread packets over all paths in turn.
#[test]
fn a_permutation_fills_a_full_bisection_tree() {
    let goodput = permutation_goodput(4, 600, "spray-paths");
    assert!(goodput > 0.92, "{goodput}");
}

/// The permutation of the NDP evaluation: 10 MB on each of 128 hosts. Ports drawn at random meet in the middle more often.
#[test]
fn the_permutation_of_the_evaluation() {
    let goodputs = ["spray-paths", "spray"].map(|routing| permutation_goodput(8, 1119, routing));
    assert!(goodputs[0] > 0.92 && goodputs[1] > 0.88 && goodputs[1] < goodputs[0], "{goodputs:?}");
}

/// Links that are slow, or cut for a while, trim and lose packets, and senders that look at their paths leave those out: fewer packets
/// are trimmed and lost, and the flows end earlier.
#[test]
fn paths_that_fare_badly_are_left_out() {
    let topology = FatTree { k: Some(8), rate: Some(Rate::from_gbps(10)), ..FatTree::default() };
    let network = build(Topology::FatTree(topology));
    let slow = Fault::Degrade(Degrade { links: Some(4), rate_factor: 0.1, ..Degrade::default() });
    let until = Some(Time::from_ms(5));
    let cut = Fault::Cut(Cut { links: Some(4), from: Time::from_us(100), until, ..Cut::default() });
    for fault in [slow, cut] {
        let [spread, choosy] = ["spray-paths", "path-list"].map(|routing| {
            let config =
                SimConfig { routing: scheme(routing).routing, faults: vec![fault.clone()], ..ndp("ndp", 30) };
            let records = run(network.clone(), config, permutation(470 * MTU, &network, 1));
            assert_eq!(sum(&records, |flow| flow.delivered), 128 * 470 * MTU);
            let mean = records.flows.iter().map(|flow| fct(flow).as_secs_f64()).sum::<f64>() / 128.0;
            (mean, records.totals.data.dropped)
        });
        assert!(choosy.0 < spread.0 && choosy.1 <= spread.1, "{fault:?}: {choosy:?} {spread:?}");
    }
}

/// Short flows into a standing queue: the repetition of a trimmed packet does not wait behind it again.
#[test]
fn repetitions_that_hurry_overtake_data() {
    let network = crossbar_10g(45, CABLE);
    let mean = |priority| {
        let long = Message::new(44, Bytes(2000 * MTU), Time(0));
        let short = |src: u32| Message::new(44, Bytes(MTU), Time::from_us(300 * u64::from(src)));
        let messages = (0..44).map(|src| (src, if src < 4 { long } else { short(src) }));
        let mut config = ndp("ndp", 30);
        let reliability = Trimmed { priority, ..Trimmed::default() };
        config.transport.reliability = Reliability::Trimmed(reliability);
        let records = run(network.clone(), config, Plan::of_messages(45, messages));
        let trimmed = records.flows.iter().filter(|flow| flow.bytes == MTU && flow.trims > 0);
        let times: Vec<f64> = trimmed.map(|flow| fct(flow).as_secs_f64() * 1e6).collect();
        assert!(times.len() > 5, "{times:?}");
        times.iter().sum::<f64>() / times.len() as f64
    };
    let (plain, hurried) = (mean(false), mean(true));
    assert!(hurried + 3.0 * 7.2 < plain, "{hurried} us, {plain} us");
}

#[test]
fn priority_for_repetitions_needs_a_queue_for_them() {
    let mut config = ndp("purified", 8);
    config.fabric.queue = Queue::TailDrop(Default::default());
    let network = crossbar_10g(3, CABLE);
    let error = Simulation::new(network, config, Plan::of_messages(3, [])).unwrap_err();
    let SimError::Transport(invalid) = error else { panic!("{error}") };
    assert_eq!(invalid.field, "reliability.priority");
}

/// The ablations of FatPaths: no trimming, no priority, no pulls.
#[test]
fn every_part_can_be_left_out() {
    let whole = last(&incast(12, 60, ndp("purified", 8)));
    let mut dropping = ndp("ndp", 8);
    dropping.fabric.queue = Queue::TailDrop(Default::default());
    dropping.fabric.options.buffer = Some(Bytes(72_000));
    let mut mixed = ndp("ndp", 8);
    mixed.fabric.options.control_priority = false;
    let mut windows = ndp("purified", 8);
    windows.transport.congestion = Congestion::FixedWindow(Default::default());
    for config in [dropping, mixed, windows] {
        let records = incast(12, 60, config);
        assert_eq!(sum(&records, |flow| flow.delivered), 12 * 60 * MTU);
        assert!(last(&records) >= whole, "{} < {whole}", last(&records));
    }
}

/// Layers of FatPaths: who is trimmed takes another one, without waiting for a gap between flowlets.
#[test]
fn a_trimmed_packet_makes_its_flow_take_another_layer() {
    let topology = SlimFly { q: Some(5), rate: Rate::from_gbps(10), ..SlimFly::default() };
    let network = build(Topology::SlimFly(topology));
    let decisions = |reroute| {
        let mut config = SimConfig { routing: scheme("fatpaths").routing, ..ndp("purified", 8) };
        config.transport.reliability =
            Reliability::Trimmed(Trimmed { priority: true, reroute, ..Trimmed::default() });
        let records = run(network.clone(), config, permutation(40 * MTU, &network, 1));
        assert!(sum(&records, |flow| flow.trims) > 100);
        (sum(&records, |flow| flow.decisions), sum(&records, |flow| flow.non_default_decisions))
    };
    let (with, without) = (decisions(true), decisions(false));
    assert!(with.0 > 2 * without.0 && with.1 > 2 * without.1, "{with:?} {without:?}");
}

/// Seventeen passes over the paths to a host of another leaf, one of which is cut or not: each path takes as many packets.
#[test]
fn a_pass_over_a_path_list_takes_every_path_once() {
    let shapes = [leaf_spine(2, 4, 1), fat_tree(4)];
    for (network, seed) in shapes.iter().flat_map(|network| (0..8u64).map(move |seed| (network, seed))) {
        let last = network.hosts() - 1;
        for cut in [None, Some(("s0", network.neighbour(network.edge_switch(0), 1)))] {
            let cut = cut.filter(|_| network.hosts() == 2);
            let mut config = SimConfig { seed, routing: scheme("path-list").routing, ..ndp("ndp", 400) };
            let spine = cut.map(|(leaf, spine)| (leaf, network.node_name(spine)));
            if let Some((from, to)) = &spine {
                let ends = ChannelEnds { from: (*from).into(), to: to.clone(), parallel: 0 };
                config.faults = vec![Fault::Cut(Cut { channels: vec![ends], ..Cut::default() })];
            }
            let paths = if spine.is_some() { 3 } else { 4 };
            let flow = Message::new(last, Bytes(17 * paths * MTU), Time(0));
            let records = run(network.clone(), config, Plan::of_messages(network.hosts(), [(0, flow)]));
            assert_eq!(records.flows[0].packets, 17 * paths);
            // What comes to the last switch before the destination's, or to the destination's itself.
            let tier = if network.hosts() == 2 { "leaf-spine" } else { "agg-core" };
            let used: Vec<u64> = records
                .channels
                .iter()
                .filter(|channel| &*channel.tier == tier && channel.packets > 0 && channel.bytes > 17 * MTU)
                .map(|channel| channel.packets)
                .collect();
            assert_eq!(used, vec![17; 2 * paths as usize], "{} {spine:?} {seed}", network.name());
        }
    }
}
