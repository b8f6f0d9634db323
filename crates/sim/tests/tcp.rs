//! What TCP's hosts do beside sending: shake hands, and be interrupted only so often.

mod common;

use common::*;
use netloom_record::FlowRecord;
use netloom_sim::{ChannelEnds, Cut, Fault, SimConfig};
use netloom_topology::{Crossbar, Network, Topology};
use netloom_transport::{Transport, preset};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

/// Packets of 1500 bytes at 10 Gb/s, SYNs of 40 and ACKs of 64.
const PACKET: Time = Time::from_ns(1200);
const SYN: Time = Time::from_ns(32);
const ACK: Time = Time(51_200);
const CABLE: Time = Time::from_us(1);

fn star(hosts: u32) -> Network {
    build(Topology::Crossbar(Crossbar { hosts, rate: Rate::from_gbps(10), latency: CABLE }))
}

fn config(transport: Transport) -> SimConfig {
    SimConfig { transport, ..scheme("ecmp") }
}

fn tcp() -> Transport {
    preset::find("tcp").unwrap().transport()
}

fn greeting() -> Transport {
    let mut transport = tcp();
    transport.options.handshake = true;
    transport
}

fn send(packets: u64, config: SimConfig) -> FlowRecord {
    let message = Message::new(1, Bytes(packets * 1460), Time(0));
    run(star(2), config, Plan::of_messages(2, [(0, message)])).flows[0].clone()
}

/// Two hops of a packet.
fn way(packet: Time) -> Time {
    (packet + CABLE) * 2
}

#[test]
fn a_handshake_costs_a_round_trip_of_small_packets() {
    for transport in [greeting(), Transport { congestion: unlimited().congestion, ..greeting() }] {
        let flow = send(5, config(transport));
        let expected = way(SYN) + way(ACK) + way(PACKET) + PACKET * 4;
        assert_eq!((flow.fct, flow.ideal_fct), (Some(expected), expected));
        assert_eq!((flow.packets, flow.delivered, flow.ooo_packets), (6, 5 * 1460, 0));
    }
}

/// What leaves first is lost on its way.
fn deaf(mut config: SimConfig) -> SimConfig {
    let cut = Cut {
        channels: vec![ChannelEnds { from: "h0".into(), to: "s0".into(), parallel: 0 }],
        from: Time::from_ns(100),
        until: Some(Time::from_us(1)),
        ..Cut::default()
    };
    config.faults = vec![Fault::Cut(cut)];
    config
}

/// RFC 5681, section 3.1: the window after a SYN that was sent again is one packet. Then slow start doubles it.
#[test]
fn a_syn_that_is_lost_is_repeated_and_costs_the_initial_window() {
    let flow = send(3, deaf(config(greeting())));
    let opened = Time::from_ms(10) + way(SYN) + way(ACK);
    let round_trip = way(PACKET) + way(ACK);
    assert_eq!(flow.fct, Some(opened + round_trip + PACKET + way(PACKET)));
    assert_eq!((flow.timeouts, flow.retransmissions, flow.packets), (1, 1, 5));
}

/// Packets come every 1200 ns from the first one on; the host looks at once, and then every 10 us.
#[test]
fn a_host_looks_at_what_has_come_once_in_an_interval() {
    let interval = Time::from_us(10);
    let mut transport = Transport { congestion: unlimited().congestion, ..tcp() };
    transport.options.interrupt_interval = Some(interval);
    for packets in [1, 2, 9, 10, 100] {
        let flow = send(packets, config(transport.clone()));
        let spells = (PACKET.0 * (packets - 1)).div_ceil(interval.0);
        assert_eq!(fct(&flow), way(PACKET) + interval * spells, "{packets} packets");
        assert_eq!((flow.packets, flow.delivered, flow.ooo_packets), (packets, packets * 1460, 0));
    }
}

/// Both ends wait for their interrupts.
#[test]
fn interrupts_make_round_trips_as_long_as_their_interval() {
    let mut transport = tcp();
    let netloom_transport::Congestion::NewReno(newreno) = &mut transport.congestion else {
        panic!("{transport:?}")
    };
    newreno.max_window = Some(Bytes(4 * 1500));
    let before = send(1000, config(transport.clone()));
    transport.options.interrupt_interval = Some(Time::from_us(10));
    let after = send(1000, config(transport));
    // A window of four packets per round trip, of 6.5 us and what the window adds; then of one or two intervals.
    assert!(fct(&before) < Time::from_us(250 * 8), "{:?}", before.fct);
    assert!(
        fct(&after) >= Time::from_us(250 * 10) && fct(&after) < Time::from_us(250 * 21),
        "{:?}",
        after.fct
    );
}
