//! Ultra Ethernet's transport, with its congestion controls at the sender and at the receiver.

mod common;

use common::*;
use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{Ecn, Queue};
use netloom_record::{FlowRecord, Records, TraceRecord};
use netloom_sim::{ChannelEnds, Fault, Loss, PacketTrace, SimConfig, SimError, Simulation, TracedFlow};
use netloom_topology::{FatTree, Network, Topology};
use netloom_transport::congestion::rccc::{Oversubscribed, Pcie, Rccc};
use netloom_transport::reliability::pds::{Pds, Sleek};
use netloom_transport::{Congestion, Reliability, preset};
use netloom_units::{Bytes, Invalid, Rate, Time};
use netloom_workload::{Bernoulli, Message, Pattern, Plan, Traffic};

/// The network of the public simulator's examples: a fat tree of 100 Gb/s and 1 us.
fn network(k: u32) -> Network {
    let rate = Rate::from_gbps(100);
    build(Topology::FatTree(FatTree { k: Some(k), rate: Some(rate), ..FatTree::default() }))
}

/// Its switches: a queue of a bandwidth-delay product of 43 packets, marks between 20% and 80% of that.
fn config(routing: &str) -> SimConfig {
    let mut config =
        SimConfig { transport: preset::find("uet-nscc").unwrap().transport(), ..scheme(routing) };
    config.fabric.queue = Queue::Trimming(Trimming { control_weight: 100_000, ..Trimming::default() });
    config.fabric.options.buffer = Some(Bytes(42 * 4150));
    config.fabric.options.ecn =
        Some(Ecn { kmin: Bytes(8 * 4150), kmax: Bytes(34 * 4150), pmax: 1.0, mark: Default::default() });
    config
}

fn flows(hosts: u32, flows: &[(u32, u32)], bytes: u64) -> Plan {
    Plan::of_messages(hosts, flows.iter().map(|&(src, dst)| (src, Message::new(dst, Bytes(bytes), Time(0)))))
}

fn at_sender(flow: &FlowRecord) -> Time {
    flow.sender_fct.expect("the flow is complete")
}

fn acks(records: &Records) -> u64 {
    records.totals.control.sent
}

/// What a full packet and a control packet take, and a cable.
const PACKET: Time = Time(332_000);
const CONTROL: Time = Time(5_120);
const CABLE: Time = Time(1_000_000);

/// uet-htsim prints 176.2 us and 124 ACKs: 489 full packets and one of 2010 B over six links, and an ACK back. The first packet has an ACK, then every fourth, then the last.
#[test]
fn a_lone_flow_takes_as_long_as_in_the_public_simulator() {
    for routing in ["ecmp", "spray"] {
        let records = run(network(4), config(routing), flows(16, &[(0, 15)], 2_000_000));
        let last = Rate::from_gbps(100).serialize(Bytes(2010));
        let there = PACKET * 489 + PACKET * 5 + last + CABLE * 6;
        assert_eq!(at_sender(&records.flows[0]), there + (CONTROL + CABLE) * 6, "{routing}");
        assert_eq!(at_sender(&records.flows[0]), Time(176_199_520));
        assert_eq!((records.flows[0].packets, acks(&records)), (490, 124));
    }
}

/// uet-htsim prints 176.804 us for both.
#[test]
fn flows_in_both_directions_wait_for_each_others_acks() {
    let records = run(network(4), config("ecmp"), flows(16, &[(0, 15), (15, 0)], 2_000_000));
    for flow in &records.flows {
        let error = at_sender(flow).0 as f64 / 176_804_000.0 - 1.0;
        assert!(error.abs() < 1e-3, "{} us", at_sender(flow).0 as f64 / 1e6);
    }
}

/// uet-htsim: 17.0107 us for 10 packets and 46.8907 us for 100, whether they are one message or ten on one connection.
#[test]
fn messages_on_one_connection_take_as_long_as_one() {
    for (packets, expected) in [(10, 17_010_720), (100, 46_890_720)] {
        let one = run(network(4), config("spray"), flows(16, &[(0, 15)], packets * 4086));
        assert_eq!(at_sender(&one.flows[0]), Time(expected));
        let part = Message { stream: true, ..Message::new(15, Bytes(packets / 10 * 4086), Time(0)) };
        let ten = run(network(4), config("spray"), Plan::of_messages(16, (0..10).map(|_| (0, part))));
        let [flow] = &ten.flows[..] else { panic!("one connection") };
        assert_eq!(flow.packets, packets);
        assert_eq!(acks(&ten), acks(&one));
        assert_eq!(ten.totals.simulated, one.totals.simulated, "the last ACK arrives at the same time");
    }
}

#[test]
fn trimmed_packets_are_sent_again_and_all_arrive() {
    let incast: Vec<_> = (1..16).map(|src| (src, 0)).collect();
    let records = run(network(4), config("spray"), flows(16, &incast, 500_000));
    let sum = |field: fn(&FlowRecord) -> u64| records.flows.iter().map(field).sum::<u64>();
    let (trims, again) = (sum(|flow| flow.trims), sum(|flow| flow.retransmissions));
    assert!(records.flows.iter().all(|flow| flow.delivered == 500_000 && flow.timeouts == 0));
    assert!(trims > 100 && trims == again, "{trims} trims, {again} packets sent again");
    // The receiver's link is busy from the first packet to the last.
    let last = records.flows.iter().map(fct).max().unwrap();
    let busy = Rate::from_gbps(100).serialize(Bytes(15 * (500_000 + 123 * 64)));
    assert!(last < busy + CABLE * 40, "{last:?} for {busy:?}");
}

#[test]
fn without_trimming_only_timeouts_find_losses_and_all_arrives() {
    let mut config = config("spray");
    config.fabric.queue = Queue::TailDrop(Default::default());
    let incast: Vec<_> = (1..16).map(|src| (src, 0)).collect();
    let flows_traced = (1..16).map(|src| TracedFlow { src, dst: 0, flow: None }).collect();
    config.measure.trace = Some(PacketTrace { flows: flows_traced, ..PacketTrace::default() });
    let records = run(network(4), config, flows(16, &incast, 1_000_000));
    assert!(records.flows.iter().all(|flow| flow.delivered == 1_000_000));
    assert!(records.totals.data.dropped > 0);
    let timeouts: u32 = records.flows.iter().map(|flow| flow.timeouts).sum();
    // Where the window holds back what a timeout has found, an ACK is asked for.
    let trace = records.trace.to_vec().unwrap();
    let requests: Vec<_> = trace.iter().filter(|row| row.kind == "request").collect();
    let network = network(4);
    let first = requests.iter().filter(|row| network.channel(row.channel).from == row.src).count();
    assert!((1..=timeouts as usize).contains(&first), "{first} of {timeouts}");
    for request in requests.into_iter().filter(|row| network.channel(row.channel).to == row.dst) {
        let soon = request.time..request.time + CABLE + CONTROL * 16;
        let is_answer = |row: &&TraceRecord| {
            row.kind == "uet-ack"
                && (row.dst, row.seq) == (request.src, request.seq)
                && soon.contains(&row.time)
        };
        assert!(trace.iter().any(|row| is_answer(&row)), "{request:?}");
    }
}

/// Where pauses last longer than the timeout, packets are sent twice though nothing is lost; where they do not, none is.
#[test]
fn nothing_is_sent_twice_where_nothing_is_lost() {
    let mut config = config("spray");
    // Where ACKs wait for a few packets, a flow whose window has become less than these waits for a timeout, as in uet-htsim.
    config.transport.reliability = Reliability::Pds(Pds { ack_bytes: Bytes(0), sleek: None });
    config.fabric.queue = Queue::TailDrop(Default::default());
    config.fabric.options.buffer = None;
    config.fabric.flow_control = netloom_fabric::FlowControl::Pfc(Default::default());
    let incast: Vec<_> = (1..16).map(|src| (src, 0)).collect();
    for (timeout, twice) in [(Time::from_us(101), true), (Time::from_ms(5), false)] {
        let options = &mut config.transport.options;
        (options.rto_min, options.rto_initial, options.rto_max) = (timeout, timeout, Some(timeout));
        let records = run(network(4), config.clone(), flows(16, &incast, 500_000));
        assert!(records.flows.iter().all(|flow| flow.delivered == 500_000));
        assert_eq!(records.flows.iter().any(|flow| flow.retransmissions > 0), twice, "{timeout}");
        assert_eq!(records.totals.data.dropped, 0);
    }
}

/// Why a run is refused.
fn refusal(config: SimConfig) -> Invalid {
    let error = Simulation::new(network(4), config, flows(16, &[(0, 15)], 1000)).err();
    match error.expect("a run that is refused") {
        SimError::Unmarked { refused, .. } => match *refused {
            SimError::Transport(error) | SimError::Routing(error) => error,
            other => panic!("{other:?}"),
        },
        SimError::Transport(error) | SimError::Routing(error) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_does_not_fit_is_refused_by_its_name() {
    let refused = |config: SimConfig| refusal(config).field.to_string();
    assert_eq!(refused(config("flowcut")), "placement");
    assert_eq!(refused(SimConfig { fabric: Default::default(), ..config("spray") }), "congestion");
    // FlowBender's share of marked ACKs, for one, works with few of them; flowcuts at the NIC measure each.
    assert_eq!(refused(config("flowcut-nic")), "reliability.ack_bytes");
    let mut each = config("flowcut-nic");
    each.transport.reliability = Reliability::Pds(Pds { ack_bytes: Bytes(0), sleek: None });
    let records = run(network(4), each, flows(16, &[(0, 15)], 400_000));
    assert_eq!(acks(&records), records.flows[0].packets);
}

/// The same network where receivers grant credit, and links to hosts do not mark packets.
fn with_credit(routing: &str, transport: &str, change: impl FnOnce(&mut Rccc)) -> SimConfig {
    let mut config = config(routing);
    config.transport = preset::find(transport).unwrap().transport();
    config.fabric.options.ecn_last_hop = false;
    let Congestion::Rccc(rccc) = &mut config.transport.congestion else { panic!("{transport}") };
    change(rccc);
    config
}

const WITH_CREDIT: [&str; 2] = ["uet-rccc", "uet-nscc-rccc"];

/// Its `_network_rtt` for these links: 12 us, and six times what a full packet and a control packet take.
#[test]
fn the_round_trip_time_of_the_network_is_that_of_its_longest_path() {
    let within_a_leaf = [(0, 1), (2, 3), (4, 1), (0, 15)];
    let records = |network_rtt, name| {
        let mut config = SimConfig { transport: preset::find(name).unwrap().transport(), ..config("spray") };
        config.fabric.options.ecn_last_hop = false;
        *config.transport.congestion.network_rtt().unwrap() = network_rtt;
        fingerprint(&run(network(4), config, flows(16, &within_a_leaf, 400_000)))
    };
    for name in ["uet-nscc", "uet-rccc", "uet-nscc-rccc", "mnscc"] {
        let said = records(Some((PACKET + CONTROL + CABLE * 2) * 6), name);
        assert_eq!(records(None, name), said, "{name}");
        assert_ne!(records(None, name), records(Some((PACKET + CONTROL + CABLE * 2) * 2), name), "{name}");
    }
}

/// A frame that comes after the last packet has left, which could not ask for it, waits for a request and a PULL: not for a timeout.
#[test]
fn frames_of_a_stream_without_credit_ask_for_it_at_once() {
    for (name, load) in
        ["uet-rccc", "uet-nscc-rccc", "eqds"].into_iter().flat_map(|name| [(name, 0.02), (name, 0.3)])
    {
        let pattern = Pattern::Bernoulli(Bernoulli {
            load,
            frame: Bytes(4000),
            traffic: Traffic::Tornado,
            until: Time::from_us(400),
            ..Bernoulli::default()
        });
        let network = network(4);
        let config = with_credit("spray", name, |_| {});
        let plan = plan(pattern, &network, 1);
        let records = run(network, config, plan);
        assert_eq!(records.flows.len(), 16);
        assert!(
            records.flows.iter().all(|flow| flow.timeouts == 0 && flow.delivered > 0),
            "{name} at {load}"
        );
    }
}

/// uet-htsim prints 177.368 us for credit alone and with NSCC: PULLs at 99% of the line let the last packet out later than the window would.
#[test]
fn a_lone_flow_with_credit_takes_as_long_as_in_the_public_simulator() {
    for (transport, routing) in WITH_CREDIT.into_iter().flat_map(|name| [(name, "ecmp"), (name, "spray")]) {
        let records =
            run(network(4), with_credit(routing, transport, |_| {}), flows(16, &[(0, 15)], 2_000_000));
        assert_eq!(at_sender(&records.flows[0]), Time(177_367_660), "{transport} {routing}");
        assert_eq!(records.flows[0].packets, 490);
        // 126 ACKs as there, and 157 PULLs: there are 206, as a receiver goes on for a window after the last packet has come.
        assert_eq!(acks(&records), 126 + 157);
    }
}

/// uet-htsim prints 178.147 and 178.18 us. How often control packets follow data of the other direction hangs on paths.
#[test]
fn credit_in_both_directions_takes_as_long_as_in_the_public_simulator() {
    let mean = |seed| {
        let config = SimConfig { seed, ..with_credit("spray", "uet-rccc", |_| {}) };
        let records = run(network(4), config, flows(16, &[(0, 15), (15, 0)], 2_000_000));
        records.flows.iter().map(|flow| at_sender(flow).0 as f64).sum::<f64>() / 2.0
    };
    let mean = (0..8).map(mean).sum::<f64>() / 8.0;
    assert!((mean / 178_163_500.0 - 1.0).abs() < 5e-3, "{} us", mean / 1e6);
}

/// 10 packets are sent unasked, so that credit makes no difference to them.
#[test]
fn messages_on_one_connection_with_credit_take_as_long_as_one() {
    for packets in [10, 100, 400] {
        let config = || with_credit("ecmp", "uet-rccc", |_| {});
        let one = run(network(4), config(), flows(16, &[(0, 15)], packets * 4086));
        let part = Message { stream: true, ..Message::new(15, Bytes(packets / 10 * 4086), Time(0)) };
        let ten = run(network(4), config(), Plan::of_messages(16, (0..10).map(|_| (0, part))));
        assert_eq!((ten.flows[0].packets, ten.flows[0].delivered), (packets, packets * 4086));
        // A stream has no end that its receiver knows, so the receiver grants one more window.
        assert!(ten.totals.control.sent >= one.totals.control.sent);
        assert!(ten.totals.simulated >= one.totals.simulated);
        assert_eq!(one.flows[0].timeouts + ten.flows[0].timeouts, 0);
        if packets == 10 {
            assert_eq!(at_sender(&one.flows[0]), Time(17_010_720));
        }
    }
}

/// uet-htsim: the last flow of an incast of 15 times 2 MB ends at 2464.44 us, with NSCC at 2462.92 us, 762 and 758 packets sent again.
#[test]
fn an_incast_with_credit_keeps_the_receivers_link_busy_and_loses_the_first_windows_only() {
    let incast: Vec<_> = (1..16).map(|src| (src, 0)).collect();
    for (transport, last, again) in
        [("uet-rccc", 2_464_440_000.0, 762), ("uet-nscc-rccc", 2_462_920_000.0, 758)]
    {
        let records = run(network(4), with_credit("spray", transport, |_| {}), flows(16, &incast, 2_000_000));
        let longest = records.flows.iter().map(|flow| at_sender(flow).0).max().unwrap();
        assert!((longest as f64 / last - 1.0).abs() < 1e-2, "{transport}: {longest}");
        let repeated = records.flows.iter().map(|flow| flow.retransmissions).sum::<u64>();
        assert!(repeated.abs_diff(again) < again / 10, "{transport}: {repeated}");
        // Few packets of a small window may wait for an ACK that is not due: there a request is sent for one, too.
        let timeouts = records.flows.iter().map(|flow| flow.timeouts).sum::<u32>();
        assert!(timeouts <= 3, "{transport}: {timeouts} timeouts");
        // Flows get equal shares.
        let shortest = records.flows.iter().map(|flow| at_sender(flow).0).min().unwrap();
        assert!(shortest as f64 > 0.93 * longest as f64, "{shortest} {longest}");
    }
}

#[test]
fn without_trimming_requests_repair_what_credit_alone_cannot() {
    let mut config = with_credit("spray", "uet-rccc", |_| {});
    config.fabric.queue = Queue::TailDrop(Default::default());
    let incast: Vec<_> = (1..16).map(|src| (src, 0)).collect();
    let records = run(network(4), config, flows(16, &incast, 300_000));
    assert!(records.flows.iter().all(|flow| flow.delivered == 300_000));
    assert!(records.totals.data.dropped > 0);
    assert!(records.flows.iter().any(|flow| flow.timeouts > 0));
}

/// Under PFC nothing is lost. The first windows wait in pauses, and what follows comes at the pace of PULLs.
#[test]
fn with_pfc_below_nothing_is_lost_and_the_receiver_is_as_busy() {
    let mut config = with_credit("spray", "uet-rccc", |_| {});
    config.fabric.queue = Queue::TailDrop(Default::default());
    config.fabric.options.buffer = None;
    config.fabric.flow_control = netloom_fabric::FlowControl::Pfc(Default::default());
    let options = &mut config.transport.options;
    (options.rto_min, options.rto_initial, options.rto_max) =
        (Time::from_ms(5), Time::from_ms(5), Some(Time::from_ms(5)));
    let incast: Vec<_> = (1..16).map(|src| (src, 0)).collect();
    let records = run(network(4), config, flows(16, &incast, 2_000_000));
    assert!(records.flows.iter().all(|flow| flow.delivered == 2_000_000 && flow.retransmissions == 0));
    let busy = Rate::from_gbps(100).serialize(Bytes(15 * (2_000_000 + 490 * 64)));
    let last = records.flows.iter().map(fct).max().unwrap();
    // 99% of the line.
    assert!(last > busy && last.0 as f64 / 1.02 < busy.0 as f64 + 40e6, "{last} for {busy}");
}

/// A host with a bus of half its link's rate takes twice as long; where that has no room for half of the first window, packets count as trimmed, and all arrive in the end.
#[test]
fn a_slow_bus_at_the_host_slows_its_senders() {
    let over = |buffer, threshold| {
        let pcie = Pcie { rate: 0.5, buffer: Bytes(buffer), threshold: Bytes(threshold) };
        let config = with_credit("spray", "uet-rccc", |rccc| rccc.pcie = Some(pcie));
        let records = run(network(4), config, flows(16, &[(0, 15)], 2_000_000));
        let [flow] = &records.flows[..] else { panic!("one flow") };
        assert_eq!(flow.delivered, 2_000_000);
        (at_sender(flow).0 as f64 / 1e6, flow.trims)
    };
    let (took, trims) = over(200_000, 40_000);
    assert!((300.0..345.0).contains(&took) && trims == 0, "{took} us, {trims} trims");
    let (longer, trims) = over(100_000, 20_000);
    assert!(longer > took && trims > 0, "{longer} us, {trims} trims");
}

/// Hosts of a leaf send to as many others over a quarter of their links' rate.
#[test]
fn receivers_slow_down_where_the_core_is_full() {
    let rate = Rate::from_gbps(100);
    let tree = FatTree { k: Some(8), tor_taper: Some(4.0), rate: Some(rate), ..FatTree::default() };
    let permutation: Vec<_> = (0..128).map(|src| (src, (src + 37) % 128)).collect();
    let trims = |oversubscribed| {
        let config = with_credit("spray", "uet-rccc", |rccc| rccc.oversubscribed = oversubscribed);
        let records =
            run(build(Topology::FatTree(tree.clone())), config, flows(128, &permutation, 1_000_000));
        assert!(records.flows.iter().all(|flow| flow.delivered == 1_000_000));
        records.flows.iter().map(|flow| flow.trims).sum::<u64>()
    };
    let (without, with) = (trims(None), trims(Some(Oversubscribed::default())));
    assert!(with < without / 3, "{with} trims, {without} without");
}

#[test]
fn what_does_not_go_with_credit_is_refused_by_its_name() {
    let refused = |config: SimConfig| refusal(config).to_string();
    for routing in ["plb", "flowcut-nic"] {
        let mut config = with_credit(routing, "uet-rccc", |_| {});
        config.transport.reliability = Reliability::Pds(Pds { ack_bytes: Bytes(0), sleek: None });
        let refusal = refused(config);
        assert!(refusal.starts_with("granularity: expected another one with"), "{refusal}");
    }
    let mut config = with_credit("spray", "uet-rccc", |_| {});
    config.transport.reliability = Reliability::Trimmed(Default::default());
    assert!(refused(config).starts_with("reliability: expected \"pds\" with \"rccc\""));
    let mut unmarked = with_credit("spray", "uet-nscc-rccc", |_| {});
    (unmarked.fabric.options.ecn, unmarked.fabric.options.ecn_last_hop) = (None, true);
    assert!(refused(unmarked).starts_with("congestion: expected a fabric that marks"));
}

#[test]
fn what_waits_for_a_host_is_marked_unless_the_fabric_says_otherwise() {
    let incast: Vec<_> = (1..16).map(|src| (src, 0)).collect();
    for last_hop in [true, false] {
        let mut config = config("spray");
        config.fabric.options.ecn_last_hop = last_hop;
        let records = run(network(4), config, flows(16, &incast, 500_000));
        let marks = |is_last: bool| {
            let channels = records.channels.iter().filter(|channel| (&*channel.to == "h0") == is_last);
            channels.map(|channel| channel.marks).sum::<u64>()
        };
        assert_eq!((marks(true) > 0, marks(false) > 0), (last_hop, true));
    }
}

/// Without trimming, on a link that loses a thousandth of what it carries: with SLEEK no flow waits for a timeout, which is ten round trips here, and packets that had not been lost are not sent again.
#[test]
fn sleek_finds_losses_before_timeouts_do() {
    let run = |sleek: Option<Sleek>| {
        let mut config = config("spray");
        config.fabric.queue = Queue::TailDrop(Default::default());
        let pds = Pds { ack_bytes: Bytes(16_384), sleek };
        config.transport.reliability = Reliability::Pds(pds);
        let timeout = Time::from_us(140);
        let options = &mut config.transport.options;
        (options.rto_min, options.rto_initial, options.rto_max) = (timeout, timeout, Some(timeout));
        let channels = vec![ChannelEnds { from: "h0".into(), to: "s0".into(), parallel: 0 }];
        config.faults = vec![Fault::Loss(Loss { channels, probability: 0.002, ..Loss::default() })];
        run(network(4), config, flows(16, &[(0, 15)], 8_000_000))
    };
    let (slow, fast) = (run(None), run(Some(Sleek::default())));
    let of = |records: &Records| {
        let flow = &records.flows[0];
        (at_sender(flow), flow.timeouts, flow.retransmissions, records.totals.data.lost)
    };
    let ((slow_time, timeouts, _, lost), (time, none, again, also_lost)) = (of(&slow), of(&fast));
    assert_eq!((lost, also_lost), (2, 2));
    assert_eq!((timeouts, none, again), (2, 0, 2));
    // With 2000 packets to go, a window and a half behind each loss is soon there; a timeout leaves the link idle when all that the window lets out has come.
    let bytes = 8_000_000 + 64 * 8_000_000_u64.div_ceil(4086);
    let alone = Rate::from_gbps(100).serialize(Bytes(bytes)) + Time::from_us(14);
    assert!(
        time < alone + Time::from_us(14) && slow_time > alone + Time::from_us(50),
        "{time} {slow_time} {alone}"
    );
}
