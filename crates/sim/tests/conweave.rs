//! ConWeave: late replies re-route, the last switch restores the order.

mod common;

use common::*;
use netloom_fabric::flow_control::pfc::Pfc;
use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{Ecn, Fabric, FabricOptions, FlowControl, Queue};
use netloom_routing::Granularity;
use netloom_routing::granularity::conweave::{ConWeave, Late};
use netloom_sim::{ChannelEnds, Cut, Degrade, Fault, SimConfig, Simulation};
use netloom_topology::Network;
use netloom_transport::preset;
use netloom_units::{Bytes, Time};
use netloom_workload::{AllToAll, Message, Pattern, Permutation, Plan};
use proptest::prelude::*;

const US: u64 = 1_000_000;

/// A full packet at 200 Gb/s, and a word of 64 B.
const PACKET: u64 = 166_400;
const WORD: u64 = 2_560;

/// Whole packets of one open flow from host 0 to host 1, handed over at these times.
fn frames(network: &Network, starts: impl IntoIterator<Item = u64>) -> Plan {
    let frame = |start: u64| (0, Message { stream: true, ..Message::new(1, Bytes(4096), Time(start)) });
    Plan::of_messages(network.hosts(), starts.into_iter().map(frame))
}

fn weave(config: ConWeave) -> SimConfig {
    let mut sim = SimConfig { transport: unlimited(), ..scheme("conweave") };
    sim.routing.granularity = Granularity::ConWeave(config);
    sim
}

/// Both channels from leaf 0 to the spines run at a fraction of their rate.
fn slow(fraction: f64, from: u64) -> Fault {
    let ends = |to: &str| ChannelEnds { from: "s0".into(), to: to.into(), parallel: 0 };
    let channels = vec![ends("s2"), ends("s3")];
    Fault::Degrade(Degrade { channels, rate_factor: fraction, from: Time(from), ..Degrade::default() })
}

#[test]
fn a_reply_is_late_after_the_idle_round_trip_and_the_slack() {
    // Two leaves, two spines. The probe crosses two links between the leaves and the word two more.
    let network = leaf_spine(2, 2, 1);
    let base = 2 * (PACKET + US) + 2 * (WORD + US);
    // The first uplink takes twice as long for a packet: the reply is late by the rest of a packet time.
    let late = PACKET;
    for (slack, expected) in [(late - 1, 1), (late, 0)] {
        let config =
            ConWeave { reply_slack: Time(slack), samples: 64, late: Late::OtherPath, ..ConWeave::default() };
        let sim = SimConfig { faults: vec![slow(0.5, 0)], ..weave(config) };
        let plan = frames(&network, [0, base + slack + 1, base + slack + 20 * US]);
        let records = run(network.clone(), sim, plan);
        let counts = records.totals.conweave.unwrap();
        assert_eq!((counts.late_replies, counts.reroutes), (expected, expected), "{slack}");
        assert_eq!(records.flows[0].ooo_packets, 0);
    }
}

#[test]
fn the_last_switch_holds_what_overtakes_the_tail() {
    // The link of the flow's path slows down to a hundredth; after the reroute, packets come over the other spine before the tail.
    let network = leaf_spine(2, 2, 1);
    let mut held = 0;
    for uplink in ["s2", "s3"] {
        let channels = vec![ChannelEnds { from: "s0".into(), to: uplink.into(), parallel: 0 }];
        let fault = Fault::Degrade(Degrade { channels, rate_factor: 0.01, ..Degrade::default() });
        let starts = (0..40).map(|n| n * US);
        let sim = SimConfig {
            faults: vec![fault],
            ..weave(ConWeave { samples: 64, late: Late::OtherPath, ..ConWeave::default() })
        };
        let records = run(network.clone(), sim, frames(&network, starts));
        let counts = records.totals.conweave.unwrap();
        held = held.max(counts.held_bytes_peak);
        assert_eq!(records.flows[0].ooo_packets, 0);
        assert_eq!(counts.flushes, 0);
        assert!(counts.reroutes <= 1);
        assert_eq!(counts.reroutes > 0, counts.held_bytes_peak > 0);
    }
    // The flow starts on one of the two.
    assert!(held > 0);
}

#[test]
fn a_lost_tail_is_waited_for_no_longer_than_the_timer_says() {
    let network = leaf_spine(2, 2, 1);
    let mut flushed = 0;
    for uplink in ["s2", "s3"] {
        let ends = || vec![ChannelEnds { from: "s0".into(), to: uplink.into(), parallel: 0 }];
        let slow = Fault::Degrade(Degrade { channels: ends(), rate_factor: 0.01, ..Degrade::default() });
        // Everything that leaves on this path after its first packets is lost: the tail among it.
        let lost = Fault::Cut(Cut {
            channels: ends(),
            from: Time(30 * US),
            until: Some(Time(2000 * US)),
            ..Cut::default()
        });
        let mut sim = weave(ConWeave { samples: 64, late: Late::OtherPath, ..ConWeave::default() });
        sim.faults = vec![slow, lost];
        sim.transport.options.rto_min = Time::from_us(100);
        sim.transport.options.rto_initial = Time::from_us(500);
        let records = run(network.clone(), sim, frames(&network, (0..40).map(|n| n * US)));
        flushed += records.totals.conweave.unwrap().flushes;
        assert!(records.flows[0].delivered == records.flows[0].bytes);
    }
    assert!(flushed > 0);
}

/// A timer lets packets go while other ports have departures to catch up with, since an input buffer is paused: `make checked` asserts that those go first.
#[test]
fn packets_are_released_while_input_buffers_are_paused() {
    let network = leaf_spine(4, 4, 4);
    let channels = vec![ChannelEnds { from: "s0".into(), to: "s4".into(), parallel: 0 }];
    let (mut flushes, mut pauses) = (0, 0);
    for (rate_factor, window) in [0.1, 0.3, 0.6].into_iter().flat_map(|factor| [(factor, 4), (factor, 15)]) {
        let degrade = Degrade { channels: channels.clone(), rate_factor, ..Degrade::default() };
        let mut sim = SimConfig {
            faults: vec![Fault::Degrade(degrade)],
            ..weave(ConWeave {
                samples: 64,
                late: Late::OtherPath,
                flush_slack: Time::from_us(1),
                flush_default: Time::from_us(5),
                ..ConWeave::default()
            })
        };
        sim.fabric.flow_control = FlowControl::Pfc(Pfc { buffer: Bytes(120_000), ..Pfc::default() });
        let pattern =
            Pattern::AllToAll(AllToAll { size: Bytes(128 << 10).into(), window, ..AllToAll::default() });
        let records = run(network.clone(), sim, plan(pattern, &network, 1));
        flushes += records.totals.conweave.unwrap().flushes;
        pauses += records.channels.iter().map(|channel| channel.pauses).sum::<u64>();
    }
    assert!(flushes > 0 && pauses > 0, "{flushes} flushes, {pauses} pauses");
}

/// What is held is beside the buffers that PFC watches, and stays there when all of it is released at once.
#[test]
fn a_release_overflows_no_input_buffer() {
    let network = leaf_spine(2, 2, 1);
    let mut held = 0;
    for uplink in ["s2", "s3"] {
        let channels = vec![ChannelEnds { from: "s0".into(), to: uplink.into(), parallel: 0 }];
        let fault = Fault::Degrade(Degrade { channels, rate_factor: 0.01, ..Degrade::default() });
        let mut sim = SimConfig {
            faults: vec![fault],
            ..weave(ConWeave { samples: 64, late: Late::OtherPath, ..ConWeave::default() })
        };
        sim.fabric.flow_control = FlowControl::Pfc(Pfc { buffer: Bytes(500_000), ..Pfc::default() });
        // A packet per 0.2 us while the tail takes more than 100.
        let records = run(network.clone(), sim, frames(&network, (0..400).map(|n| n * US / 5)));
        held = held.max(records.totals.conweave.unwrap().held_bytes_peak);
        assert_eq!(records.flows[0].delivered, records.flows[0].bytes);
    }
    assert!(held > 600_000, "{held}");
}

fn networks() -> impl Strategy<Value = Network> {
    prop_oneof![
        (2..5u32, 2..5u32, 1..4u32).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        Just(fat_tree(4)),
    ]
}

fn patterns() -> impl Strategy<Value = Pattern> {
    prop_oneof![
        (1..400_000u64).prop_map(|size| {
            Pattern::Permutation(Permutation { size: Bytes(size).into(), ..Permutation::default() })
        }),
        (1..60_000u64, 1..4u32).prop_map(|(size, window)| {
            Pattern::AllToAll(AllToAll { size: Bytes(size).into(), window, ..AllToAll::default() })
        }),
    ]
}

fn schemes() -> impl Strategy<Value = ConWeave> {
    let late = prop_oneof![Just(Late::AnyPath), Just(Late::OtherPath)];
    (0..8_000u64, 0..20_000u64, 1..9u32, late, 0..20u64, 1..200u64, 20..400u64).prop_map(
        |(reply, pause, samples, late, flush, default, inactive)| ConWeave {
            late,
            reply_slack: Time::from_ns(reply),
            path_pause: Time::from_ns(pause),
            samples,
            flush_slack: Time::from_us(flush),
            flush_default: Time::from_us(default),
            inactive: Time::from_us(inactive),
        },
    )
}

fn fabrics() -> impl Strategy<Value = Fabric> {
    let kinds = prop_oneof![
        Just(FlowControl::Lossy(Default::default())),
        Just(FlowControl::Pfc(Pfc { buffer: Bytes(300_000), ..Pfc::default() })),
        Just(FlowControl::Credits(Default::default())),
    ];
    (kinds, 0..60_000u64, any::<bool>()).prop_map(|(flow_control, kmin, control_priority)| {
        let ecn = Some(Ecn { kmin: Bytes(kmin), kmax: Bytes(kmin + 1), pmax: 1.0, mark: Default::default() });
        let options = FabricOptions { ecn, control_priority, ..FabricOptions::default() };
        Fabric { flow_control, options, ..Fabric::default() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn flows_arrive_in_order_unless_a_timer_gave_the_tail_up(
        network in networks(),
        pattern in patterns(),
        config in schemes(),
        fabric in fabrics(),
        slow in prop::option::of((0.0..0.5f64, 0.05..1.0f64)),
        entries in prop::option::of(1..20u32),
        ageing in prop::option::of(0..16u32),
        seed in any::<u64>(),
        threads in 2..5usize,
    ) {
        let degrade = |(share, fraction)| Fault::Degrade(Degrade { link_fraction: Some(share), rate_factor: fraction, ..Degrade::default() });
        let mut sim = SimConfig { fabric, faults: slow.map(degrade).into_iter().collect(), seed, ..weave(config.clone()) };
        sim.transport = Default::default();
        sim.routing.max_flow_entries = entries;
        sim.routing.flow_timeout = ageing.map_or(sim.routing.flow_timeout, |power| Time::from_ns(1 << power));
        let make = || Simulation::new(network.clone(), sim.clone(), plan(pattern.clone(), &network, seed)).unwrap();
        let records = make().run(1).unwrap().records;
        let counts = records.totals.conweave.unwrap();
        // A flow that pauses for `inactive` begins anew although packets may still wait somewhere.
        let is_ordered = counts.flushes == 0 && entries.is_none() && config.inactive >= Time::from_us(300);
        for flow in &records.flows {
            prop_assert!(flow.fct.is_some());
            prop_assert!(!is_ordered || flow.ooo_packets == 0, "{:?}", counts);
        }
        prop_assert_eq!(difference(&records, &make().run(threads).unwrap().records), None);
        prop_assert_eq!(difference(&records, &make().run_reference().unwrap().records), None);
    }
    /// Trimming turns a packet into another one, and routes may be gone before an answer is written: what a last switch tells a first one comes
    /// there all the same, or is lost.
    #[test]
    fn what_switches_tell_each_other_comes_to_switches_or_is_lost(
        (leaves, spines, hosts) in (2..5u32, 2..4u32, 1..5u32),
        size in 9_000..300_000u64,
        config in schemes(),
        kmin in 0..60_000u64,
        transport in prop_oneof![Just("purified"), Just("dctcp"), Just("hpcc")],
        cut in prop::option::of((1..60u64, 0..5u64, 10..100u64)),
        seed in any::<u64>(),
        threads in 2..5usize,
    ) {
        let network = leaf_spine(leaves, spines, hosts);
        let mut sim = SimConfig { seed, ..weave(config) };
        sim.transport = preset::find(transport).unwrap().transport();
        let trims = transport == "purified";
        sim.fabric.options.ecn = Some(Ecn { kmin: Bytes(kmin), kmax: Bytes(kmin + 1), pmax: 1.0, mark: Default::default() });
        if trims {
            sim.fabric.queue = Queue::Trimming(Trimming::default());
        } else {
            sim.fabric.options.buffer = Some(Bytes(30_000));
        }
        // The first leaf is alone for a while, without or with its hosts.
        sim.faults.extend(cut.map(|(from, delay, length)| {
            let spine = |spine| ChannelEnds { from: "s0".into(), to: format!("s{spine}"), parallel: 0 };
            let (channels, switches) = match length % 2 {
                0 => ((leaves..leaves + spines).map(spine).collect(), vec![]),
                _ => (vec![], vec!["s0".to_owned()]),
            };
            let (from, until) = (Time::from_us(from), Some(Time::from_us(from + length)));
            Fault::Cut(Cut { channels, switches, from, until, reroute_after: Some(Time::from_us(delay)), ..Cut::default() })
        }));
        let pattern = Pattern::AllToAll(AllToAll { size: Bytes(size).into(), window: 4, ..AllToAll::default() });
        let make = || Simulation::new(network.clone(), sim.clone(), plan(pattern.clone(), &network, seed)).unwrap();
        let records = make().run(1).unwrap().records;
        prop_assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
        prop_assert_eq!(difference(&records, &make().run(threads).unwrap().records), None);
    }
}
