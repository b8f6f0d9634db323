//! Fabrics that trim packets to their headers: what is trimmed is known at once, and nothing else is sent again.

mod common;

use common::*;
use netloom_fabric::Queue;
use netloom_fabric::queue::trimming::Trimming;
use netloom_record::Records;
use netloom_routing::preset as schemes;
use netloom_sim::{Measure, SimConfig};
use netloom_topology::{Crossbar, Network, Topology};
use netloom_transport::{Reliability, Transport, preset};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

fn trimming(config: SimConfig, trimming: Trimming) -> SimConfig {
    let mut config = config;
    config.fabric.queue = Queue::Trimming(trimming);
    config
}

/// Every other host sends to the last one, all at once.
fn incast(network: &Network, bytes: u64) -> Plan {
    let receiver = network.hosts() - 1;
    Plan::of_messages(
        network.hosts(),
        (0..receiver).map(|src| (src, Message::new(receiver, Bytes(bytes), Time(0)))),
    )
}

fn sum(records: &Records, field: impl Fn(&netloom_record::FlowRecord) -> u64) -> u64 {
    records.flows.iter().map(field).sum()
}

/// 27 packets come to an idle port with a queue of 8 at once: one is sent, 8 wait and 18 are trimmed. Their headers leave one after the other, but after ten of them a data packet has
/// its turn, and the repetitions come as the headers left. Of the first ten, one is sent at once, 8 wait and one is trimmed; meanwhile one
/// more has left when the other eight come, so that one fits and 7 are trimmed. Of these 8, none is.
#[test]
fn one_packet_of_each_of_27_senders_makes_26_headers() {
    let network = crossbar(28);
    let config = trimming(SimConfig { transport: unlimited(), ..scheme("ecmp") }, Trimming::default());
    let records = run(network.clone(), config, incast(&network, 4096));
    assert_eq!(sum(&records, |flow| flow.trims), 26);
    assert_eq!(sum(&records, |flow| flow.retransmissions), 26);
    assert_eq!(records.channels.iter().map(|channel| channel.trims).sum::<u64>(), 26);
    assert_eq!((records.totals.data.trimmed, records.totals.data.dropped), (26, 0));
    assert_eq!(sum(&records, |flow| flow.delivered), 27 * 4096);
    // No timer had to fire.
    assert!(records.flows.iter().all(|flow| fct(flow) < Time::from_us(50)));
}

/// Whatever holds the senders back: exactly the packets that were trimmed are sent again, and no timer fires.
#[test]
fn what_is_trimmed_is_all_that_is_sent_again() {
    let network = crossbar(17);
    for name in ["flowcut-evaluation", "tcp", "dctcp"] {
        let transport = preset::find(name).unwrap().transport();
        let config = trimming(SimConfig { transport, ..scheme("ecmp") }, Trimming::default());
        let records = run(network.clone(), config, incast(&network, 200_000));
        let trims = sum(&records, |flow| flow.trims);
        assert!(trims > 0, "{name}");
        assert_eq!(sum(&records, |flow| flow.retransmissions), trims, "{name}");
        assert_eq!(sum(&records, |flow| u64::from(flow.timeouts)), 0, "{name}");
        assert_eq!(records.totals.data.dropped, 0, "{name}");
    }
}

#[test]
fn a_header_without_room_comes_back_and_its_packet_is_sent_again() {
    let network = crossbar(33);
    let small = Trimming { control_buffer: Some(Bytes(640)), ..Trimming::default() };
    let config = trimming(SimConfig { transport: unlimited(), ..scheme("ecmp") }, small.clone());
    let records = run(network.clone(), config, incast(&network, 4096));
    // At first, one packet is sent, and 8 packets and 10 headers wait.
    let returns = sum(&records, |flow| u64::from(flow.returned_to_sender));
    assert!(returns >= 32 - 19, "{returns}");
    assert_eq!(records.channels.iter().map(|channel| channel.returned_to_sender).sum::<u64>(), returns);
    assert_eq!(sum(&records, |flow| flow.retransmissions), sum(&records, |flow| flow.trims) + returns);
    assert_eq!(records.totals.data.dropped, 0);
    assert!(records.flows.iter().all(|flow| flow.timeouts == 0));
    // Without that, they are dropped, and timers find out.
    let config = trimming(
        SimConfig { transport: unlimited(), ..scheme("ecmp") },
        Trimming { return_to_sender: false, ..small },
    );
    let records = run(network.clone(), config, incast(&network, 4096));
    assert!(records.totals.data.dropped >= 32 - 19);
    assert!(sum(&records, |flow| u64::from(flow.timeouts)) >= 32 - 19);
}

#[test]
fn go_back_n_lives_with_headers() {
    let network = crossbar(9);
    let transport =
        Transport { reliability: Reliability::GoBackN(Default::default()), ..Transport::default() };
    let config = trimming(SimConfig { transport, ..scheme("ecmp") }, Trimming::default());
    let records = run(network.clone(), config, incast(&network, 100_000));
    assert!(sum(&records, |flow| flow.trims) > 0);
    assert_eq!(sum(&records, |flow| flow.delivered), 8 * 100_000);
}

/// Long flows of windows into one 10 Gb/s port whose queue holds 8 packets. Payload is 97.3% of the line at most.
#[test]
fn long_flows_with_windows_fill_a_port_that_trims() {
    for name in ["tcp", "dctcp"] {
        let rate = Rate::from_gbps(10);
        let network = build(Topology::Crossbar(Crossbar { hosts: 9, rate, ..Crossbar::default() }));
        let measure =
            Measure { warm_up: Time::from_ms(5), until: Some(Time::from_ms(15)), ..Measure::default() };
        let config = SimConfig {
            transport: preset::find(name).unwrap().transport(),
            routing: schemes::find("ecmp").unwrap().routing(),
            measure,
            ..SimConfig::default()
        };
        let records = run(network.clone(), trimming(config, Trimming::default()), incast(&network, 10 << 30));
        let share = sum(&records, |flow| flow.delivered_after_warm_up) as f64 * 8.0 / 10e-3 / 10e9;
        assert!(share > 0.9, "{name}: {share}");
        assert!(records.flows.iter().all(|flow| flow.timeouts == 0), "{name}");
    }
}
