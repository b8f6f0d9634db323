//! A NIC with a queue: packets have the time of their hand-over, and leave in its order.

mod common;

use common::*;
use netloom_record::{FlowRecord, Records};
use netloom_routing::granularity::flowlet::Flowlet;
use netloom_routing::{Granularity, Routing};
use netloom_sim::{Measure, SimConfig, Simulation};
use netloom_topology::Network;
use netloom_transport::congestion::{fixed_window::FixedWindow, pulls::Pulls};
use netloom_transport::{Congestion, NicQueue, Reliability, preset};
use netloom_units::{Bytes, Time};
use netloom_workload::{Message, Plan};

const US: u64 = 1_000_000;

/// 64 B of header on 4096 B of payload, 200 Gb/s.
const PACKET: u64 = 166_400;

/// A packet's way from host to host over one switch.
const WAY: u64 = 2 * (PACKET + US);

/// Its way, and that of its ACK back.
const RTT: u64 = WAY + 2 * (2_560 + US);

fn windowed(packets: u64, nic_queue: NicQueue) -> SimConfig {
    let mut config = scheme("ecmp");
    let window = FixedWindow { bytes: Some(Bytes(packets * 4160)), ..FixedWindow::default() };
    config.transport.congestion = Congestion::FixedWindow(window);
    config.transport.options.nic_queue = nic_queue;
    config
}

/// Messages as (source, destination, packets, start in ps).
fn send(network: &Network, config: SimConfig, list: &[(u32, u32, u64, u64)]) -> Records {
    let message = |&(src, dst, packets, start)| (src, Message::new(dst, Bytes(packets * 4096), Time(start)));
    run(network.clone(), config, Plan::of_messages(network.hosts(), list.iter().map(message)))
}

#[test]
fn what_waits_at_the_nic_is_part_of_a_packets_latency() {
    let network = crossbar(2);
    for (nic_queue, waits) in [(NicQueue::None, 0), (NicQueue::Fifo, 1), (NicQueue::Fair, 1)] {
        let measure = Measure { packets: true, ..Measure::default() };
        let config = SimConfig { measure, ..windowed(4, nic_queue) };
        let records = send(&network, config, &[(0, 1, 8, 0)]);
        // Four packets at once, then one per ACK, which finds the NIC idle. A packet waits for those before it, and is handed over a picosecond
        // after each.
        assert_eq!(fct(&records.flows[0]), Time(RTT + 3 * PACKET + WAY));
        let packets = &records.flow_packets.to_vec().unwrap()[0];
        assert_eq!(packets.latency_max, Time(WAY + waits * 3 * (PACKET - 1)));
        assert_eq!(packets.latency_mean_ps, (WAY * 8 + waits * 6 * (PACKET - 1)) as f64 / 8.0);
    }
}

#[test]
fn a_packet_waits_for_all_that_were_handed_over_before_it_or_for_its_turn() {
    let network = crossbar(3);
    // Without a queue the flows take turns, and the first has lined up again; so do their lines in a queue that is fair.
    for (nic_queue, before) in [(NicQueue::None, 2), (NicQueue::Fifo, 10), (NicQueue::Fair, 2)] {
        let records = send(&network, windowed(10, nic_queue), &[(0, 1, 10, 0), (0, 2, 1, 100_000)]);
        let late = records.flows.iter().find(|flow| flow.dst == 2).unwrap();
        assert_eq!(fct(late), Time(before * PACKET - 100_000 + WAY));
    }
}

/// As in the simulator of the Flowcut authors: a whole window is handed over at once, and the wait for the first ACK is a gap.
#[test]
fn the_first_window_is_followed_by_a_gap() {
    let network = crossbar(2);
    let letflow = |nic_queue| {
        let gap = Time(RTT - 40 * 1000);
        let routing = Routing {
            granularity: Granularity::Flowlet(Flowlet { gap, ..Flowlet::default() }),
            ..scheme("letflow").routing
        };
        SimConfig { routing, ..windowed(30, nic_queue) }
    };
    let pulls = |nic_queue| {
        let mut config = letflow(nic_queue);
        config.transport.congestion = Congestion::Pulls(Pulls { initial_window: 30, ..Pulls::default() });
        config
    };
    for (nic_queue, flowlets) in [(NicQueue::None, 1), (NicQueue::Fifo, 2), (NicQueue::Fair, 2)] {
        for config in [letflow(nic_queue), pulls(nic_queue)] {
            let records = send(&network, config, &[(0, 1, 100, 0)]);
            // 30 packets fill the link until the first ACK comes.
            assert_eq!(fct(&records.flows[0]), Time(99 * PACKET + WAY));
            assert_eq!(records.flows[0].flowlets, flowlets);
        }
    }
}

/// The hosts of the Flowcut authors' simulator, as the preset has them, on their tree: 94 packets of 4160 B are 1.2 of 13.01376 us × 200 Gb/s.
#[test]
fn a_small_flow_does_not_wait_for_the_first_window_of_another_one() {
    let network = fat_tree(8);
    // Six links.
    let way = 6 * (PACKET + US);
    let fair = preset::find("flowcut-artefact-ft").unwrap().transport();
    assert_eq!(fair.options.nic_queue, NicQueue::Fair);
    // One packet of the large flow is leaving, and one more has its turn before the small flow's: 7.2 us. In order of arrival all of its first window has: 22.5 us.
    for (nic_queue, before, expected) in [(NicQueue::Fair, 2, 7_231_200), (NicQueue::Fifo, 94, 22_540_000)] {
        let mut config = SimConfig { transport: fair.clone(), ..scheme("ecmp") };
        config.transport.options.nic_queue = nic_queue;
        let records = send(&network, config, &[(0, 100, 1000, 0), (0, 70, 1, 100_000)]);
        let small = records.flows.iter().find(|flow| flow.dst == 70).unwrap();
        assert_eq!(fct(small), Time(before * PACKET - 100_000 + way));
        assert_eq!(fct(small), Time(expected));
    }
}

/// Three flows hand over four packets each, one flow a nanosecond after the other, while the first packet leaves.
#[test]
fn flows_of_a_fair_queue_leave_in_turn() {
    let network = crossbar(4);
    let list = [(0, 1, 4, 0), (0, 2, 4, 1000), (0, 3, 4, 2000)];
    // 1 1 2 3 1 2 3 1 2 3 2 3, or 1 1 1 1 2 2 2 2 3 3 3 3.
    for (nic_queue, ends) in [(NicQueue::Fair, [8, 11, 12]), (NicQueue::Fifo, [4, 8, 12])] {
        let records = send(&network, windowed(4, nic_queue), &list);
        for ((_, dst, _, start), end) in list.into_iter().zip(ends) {
            let flow = records.flows.iter().find(|flow| flow.dst == dst).unwrap();
            assert_eq!(fct(flow), Time((end - 1) * PACKET + WAY - start));
        }
    }
}

#[test]
fn packets_of_a_higher_class_go_first() {
    let network = crossbar(3);
    for nic_queue in [NicQueue::Fifo, NicQueue::Fair] {
        let mut config = windowed(10, nic_queue);
        config.fabric.options.classes = vec![Default::default(); 2];
        let job = |dst, class, start| Message { class, ..Message::new(dst, Bytes(10 * 4096), Time(start)) };
        let plan = Plan::of_messages(3, [(0, job(1, 1, 0)), (0, job(2, 0, 1000))]);
        let records = run(network.clone(), config, plan);
        let of = |dst| records.flows.iter().find(|flow: &&FlowRecord| flow.dst == dst).unwrap();
        let (first, second) = (fct(of(2)) + Time(1000), fct(of(1)));
        // One packet of the lower class had begun.
        assert_eq!((first, second), (Time(10 * PACKET + WAY), Time(19 * PACKET + WAY)));
    }
}

#[test]
fn what_would_be_handed_over_without_limit_is_refused() {
    let network = crossbar(2);
    let refused = |change: &dyn Fn(&mut SimConfig)| {
        let mut config = windowed(4, NicQueue::Fifo);
        change(&mut config);
        let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(1), Time(0)))]);
        Simulation::new(network.clone(), config, plan).unwrap_err().to_string()
    };
    let unlimited = refused(&|config| config.transport.congestion = Congestion::None(Default::default()));
    let expected =
        "transport.nic_queue: expected \"none\" with a congestion that limits nothing before the NIC";
    assert_eq!(unlimited, format!("{expected}, found a queue with \"none\""));
    let unanswered = refused(&|config| {
        config.transport.reliability = Reliability::None(Default::default());
        config.transport.congestion = Congestion::Dcqcn(Default::default());
    });
    assert!(
        unanswered.starts_with("transport.nic_queue: expected \"none\" with a reliability"),
        "{unanswered}"
    );
}
