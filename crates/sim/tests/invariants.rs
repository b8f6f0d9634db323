//! What must hold whatever the topology, scheme, load and faults.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::interruptions::{interruptions, tell};
use common::schemes::nic_queues;
use common::*;
use netloom_fabric::queue::tail_drop::{RandomDrop, TailDrop};
use netloom_fabric::queue::trimming::Trimming;
use netloom_fabric::{Ecn, Fabric, FabricOptions, FlowControl, Mark, Qcn, Queue, flow_control};
use netloom_record::{DecisionCount, FlowRecord, Records};
use netloom_routing::granularity::flowcut::Flowcut;
use netloom_routing::granularity::hopper::Hopper;
use netloom_routing::granularity::plb::Plb;
use netloom_routing::granularity::plb_delay::PlbDelay;
use netloom_routing::{Granularity, Placement, Selector, preset};
use netloom_sim::{ChannelEnds, Cut, Degrade, Fast, Fault, SimConfig, SimError, Simulation};
use netloom_topology::{FatTree, Network, Topology};
use netloom_transport::congestion::Marks;
use netloom_transport::reliability::selective_repeat::SelectiveRepeat;
use netloom_transport::reliability::trimmed::Trimmed;
use netloom_transport::reorder::buffer::Buffer;
use netloom_transport::shaping::paced::Paced;
use netloom_transport::{
    Congestion, Reliability, Reorder, Shaping, Transport, TransportOptions, congestion, reliability,
};
use netloom_units::kind::Kind;
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{
    AllToAll, Bond, Incast, NicSelection, Pattern, Permutation, Plan, PlanContext, PortSelection, Rails,
    ScaleUp, ScaleUpWiring, Servers, Uniform, Wiring, WorstCase,
};
use proptest::prelude::*;
use proptest::strategy::{Union, ValueTree};
use proptest::test_runner::TestRunner;

/// One of every family, and oddly shaped ones.
fn networks() -> impl Strategy<Value = Network> {
    let families = families::all();
    let shapes = prop_oneof![
        (2..12u32).prop_map(crossbar),
        (2..5u32, 1..5u32, 1..5u32).prop_map(|(leaves, spines, hosts)| leaf_spine(leaves, spines, hosts)),
        // Tapered and oddly shaped.
        (2..4u32, 1..4u32, 1..3u32, 1..4u32).prop_map(|(pods, tors, aggs, hosts)| {
            build(Topology::FatTree(FatTree {
                pods: Some(pods),
                tors_per_pod: Some(tors),
                aggs_per_pod: Some(aggs),
                cores: Some(aggs * 2),
                hosts_per_tor: Some(hosts),
                ..FatTree::default()
            }))
        }),
    ];
    let family =
        (0..families.len(), 0..4u64).prop_map(move |(family, seed)| families::build(&families[family], seed));
    prop_oneof![4 => shapes, 4 => family, 1 => (2..30u32).prop_map(chain)]
}

fn patterns() -> impl Strategy<Value = Pattern> {
    let size = 1..200_000u64;
    prop_oneof![
        size.clone().prop_map(|bytes| Pattern::Permutation(Permutation {
            size: Bytes(bytes).into(),
            ..Permutation::default()
        })),
        (size.clone(), 1..4u64).prop_map(|(bytes, messages)| Pattern::Uniform(Uniform {
            size: Bytes(bytes).into(),
            messages_per_host: Some(messages),
            ..Uniform::default()
        })),
        size.clone().prop_map(|bytes| Pattern::AllToAll(AllToAll {
            size: Bytes(bytes / 8 + 1).into(),
            ..AllToAll::default()
        })),
        (size.clone(), 0.3..1.0f64, 0..3u32).prop_map(|(bytes, intensity, draw)| {
            Pattern::WorstCase(WorstCase {
                size: Bytes(bytes).into(),
                intensity,
                variant: draw,
                ..WorstCase::default()
            })
        }),
        size.prop_map(|bytes| Pattern::Incast(Incast { size: Bytes(bytes).into(), ..Incast::default() })),
    ]
}

/// Timers short enough to matter in short runs.
fn dcqcn() -> impl Strategy<Value = Congestion> {
    use congestion::dcqcn::{Dcqcn, DcqcnPreset::*, Gap};
    let presets = prop_oneof![Just(Paper), Just(HpccPaper), Just(Hpcc), Just(Conweave), Just(Uet)];
    let gaps = prop::option::of(prop_oneof![Just(Gap::Paid), Just(Gap::Fixed)]);
    let (timers, windows) = (prop::option::of(1..50u64), prop::option::of(0.3..2.0f64));
    // Every ACK may be a notification.
    let intervals = prop::option::of(prop_oneof![Just(0), 1..50u64]);
    (presets, timers, intervals, windows, gaps, prop::option::of(5..300u64)).prop_map(
        |(preset, timer, interval, window_bdp, gap, gbps)| {
            let (timer, cnp_interval) = (timer.map(Time::from_us), interval.map(Time::from_us));
            let config = Dcqcn { increase_timer: timer, cnp_interval, gap, ..Dcqcn::default() };
            Congestion::Dcqcn(Dcqcn {
                preset,
                byte_counter: timer.map(|_| Bytes(30_000)),
                window_bdp,
                max_rate: gbps.map(Rate::from_gbps),
                ..config
            })
        },
    )
}

/// Training short enough to end in short runs, and a threshold beyond that of every preset's flowlets.
fn shapings() -> impl Strategy<Value = Shaping> {
    Union::new(every_kind().into_iter().map(shaping))
}

fn shaping(kind: Shaping) -> BoxedStrategy<Shaping> {
    match kind {
        Shaping::Hf2t(_) => hf2t().boxed(),
        Shaping::Paced(_) => prop::option::of(1..300u64)
            .prop_map(|gbps| Shaping::Paced(Paced { rate: gbps.map(Rate::from_gbps) }))
            .boxed(),
        with_its_defaults => Just(with_its_defaults).boxed(),
    }
}

fn hf2t() -> impl Strategy<Value = Shaping> {
    use netloom_transport::shaping::hf2t::{Hf2t, Scope};
    let scope = prop_oneof![Just(Scope::Host), Just(Scope::Flow)];
    let hf2t = (1..100u64, 50.0..99.9f64, scope, any::<bool>(), any::<bool>(), 0..5000u64);
    hf2t.prop_map(|(training_gaps, percentile, scope, dynamic, natural_gaps, margin)| {
        let (flowlet, margin) = (Some(Time::from_us(501)), Time::from_ns(margin));
        let config = Hf2t { flowlet, margin, training_gaps, percentile, ..Hf2t::default() };
        Shaping::Hf2t(Hf2t { scope, dynamic, natural_gaps, ..config })
    })
}

/// With windows, bitmaps and distances small enough to matter in short runs.
fn mp_rdma() -> impl Strategy<Value = Congestion> {
    use congestion::mp_rdma::MpRdma;
    let first = prop::option::of(1..60u32);
    let delta = 0..40u32;
    (first, delta, 0.0..1.0f64, 0.1..2.0f64, any::<bool>(), prop::option::of(0.1..2.0f64)).prop_map(
        |(initial_window, delta, probe, burst, reuse_marked, synchronise)| {
            let synchronise = synchronise.filter(|_| delta > 0);
            Congestion::MpRdma(MpRdma { initial_window, delta, probe, burst, reuse_marked, synchronise })
        },
    )
}

/// A scheme that sprays, and leaves entropy values to a transport that chooses among them. What compares a way with itself needs one that stays
/// for a while.
fn spraying(transport: &Transport) -> SimConfig {
    scheme(match () {
        () if transport.chooses_paths() => "spray-nic",
        () if transport.telemetry().is_some() => "letflow",
        () => "spray",
    })
}

/// Half of the time as many ACKs as a median may be of.
fn medians() -> impl Strategy<Value = Option<u32>> {
    prop::option::of(1..=127u32)
}

/// With targets and windows small enough to matter in short runs.
fn smartt() -> impl Strategy<Value = Congestion> {
    use congestion::smartt::Smartt;
    (10..20_000u64, 0.1..3.0f64, prop::option::of(0.0..=1.0f64), any::<bool>()).prop_map(
        |(target, max_window, wait_to_decrease, quick_adapt)| {
            let target_delay = Time::from_ns(target);
            Congestion::Smartt(Smartt {
                target_delay,
                max_window,
                wait_to_decrease,
                quick_adapt,
                ..Default::default()
            })
        },
    )
}

fn powertcp() -> impl Strategy<Value = Congestion> {
    use congestion::powertcp::PowerTcp;
    (0.1..=1.0f64, 1..200u32, prop::option::of(1..40u64)).prop_map(|(gamma, flows, us)| {
        let base_rtt = us.map(Time::from_us);
        Congestion::PowerTcp(PowerTcp { gamma, flows, base_rtt, ..Default::default() })
    })
}

fn theta_powertcp() -> impl Strategy<Value = Congestion> {
    use congestion::powertcp::theta::ThetaPowerTcp;
    (0.1..=1.0f64, 1..200u32, prop::option::of(1..40u64)).prop_map(|(gamma, flows, us)| {
        let base_rtt = us.map(Time::from_us);
        Congestion::ThetaPowerTcp(ThetaPowerTcp { gamma, flows, base_rtt, ..Default::default() })
    })
}

/// With thresholds and windows small enough to matter in short runs.
fn bolt() -> impl Strategy<Value = Congestion> {
    use congestion::bolt::Bolt;
    (prop::option::of(1..40_000u64), 0..400_000u64, 1..30_000u64, any::<bool>(), any::<bool>()).prop_map(
        |(threshold, more, least, proactive_ramp_up, supply_matching)| {
            let (threshold, max_window) = (threshold.map(Bytes), Some(Bytes(least + more)));
            let bolt = Bolt { threshold, max_window, min_window: Bytes(least), ..Bolt::default() };
            Congestion::Bolt(Bolt { proactive_ramp_up, supply_matching, ..bolt })
        },
    )
}

/// With targets and windows small enough to matter in short runs.
fn nscc() -> impl Strategy<Value = Congestion> {
    use congestion::nscc::Nscc;
    let (rtt, target) = (prop::option::of(1..100u64), prop::option::of(1..30_000u64));
    (rtt, target, prop::option::of(1..40u32), 0.1..3.0f64, any::<bool>(), medians()).prop_map(
        |(rtt, target, initial_window, max_window, quick_adapt, median_of)| {
            let (network_rtt, target_delay) = (rtt.map(Time::from_us), target.map(Time::from_ns));
            let windows = Nscc { initial_window, max_window, quick_adapt, median_of, ..Nscc::default() };
            Congestion::Nscc(Nscc { network_rtt, target_delay, ..windows })
        },
    )
}

/// With NSCC, where marks and trims slow receivers down, and with buses that are too slow.
fn rccc() -> impl Strategy<Value = Congestion> {
    use congestion::rccc::{Oversubscribed, Pcie, Rccc};
    let bus = (0.1..2.0f64, 1_000..50_000u64);
    (0.05..3.0f64, 256..100_000u64, 0.3..=1.0f64, 0..3u8, prop::option::weighted(0.3, bus)).prop_map(
        |(max_window, pull, pace, more, bus)| {
            let pcie = bus.map(|(rate, threshold)| Pcie {
                rate,
                threshold: Bytes(threshold),
                buffer: Bytes(threshold + 20_000),
            });
            let (nscc, oversubscribed) =
                ((more == 1).then(Default::default), (more == 2).then(Oversubscribed::default));
            let sizes = Rccc { max_window, pull: Bytes(pull), pace, ..Rccc::default() };
            Congestion::Rccc(Rccc { nscc, oversubscribed, pcie, ..sizes })
        },
    )
}

/// A congestion control of this kind: with its defaults, or where short runs would say little then, with other values.
fn congestion(kind: Congestion) -> BoxedStrategy<Congestion> {
    match kind {
        Congestion::FixedWindow(config) => (0.05..3.0f64)
            .prop_map(move |bdp| {
                Congestion::FixedWindow(congestion::fixed_window::FixedWindow { bdp, ..config.clone() })
            })
            .boxed(),
        Congestion::NewReno(config) => prop::option::of(1..40u32)
            .prop_map(move |initial_ssthresh| {
                Congestion::NewReno(congestion::newreno::NewReno { initial_ssthresh, ..config.clone() })
            })
            .boxed(),
        // Windows below one packet, and cuts with every window.
        Congestion::Dctcp(config) => (any::<bool>(), any::<bool>())
            .prop_map(move |(is_small, is_cut)| {
                let mut config = config.clone();
                if is_small {
                    config.min_window = 0.1;
                }
                if is_cut {
                    config.cut = congestion::dctcp::Cut::EveryWindow;
                }
                Congestion::Dctcp(config)
            })
            .boxed(),
        Congestion::Dcqcn(_) => dcqcn().boxed(),
        Congestion::Hpcc(config) => (0..6u32, 0.5..1.0f64, prop::option::of(1..40u64))
            .prop_map(move |(max_stage, eta, us)| {
                let base_rtt = us.map(Time::from_us);
                Congestion::Hpcc(congestion::hpcc::Hpcc { eta, max_stage, base_rtt, ..config.clone() })
            })
            .boxed(),
        Congestion::PowerTcp(_) => powertcp().boxed(),
        Congestion::ThetaPowerTcp(_) => theta_powertcp().boxed(),
        Congestion::Bolt(_) => bolt().boxed(),
        Congestion::Timely(config) => {
            let t_low = Time::from_us(8);
            Just(Congestion::Timely(congestion::timely::Timely { t_low, ..config })).boxed()
        }
        Congestion::Swift(config) => (any::<bool>(), medians())
            .prop_map(move |(fs_whole_packets, median_of)| {
                let base_delay = Time::from_us(5);
                let config = congestion::swift::Swift { base_delay, fs_whole_packets, ..config.clone() };
                Congestion::Swift(congestion::swift::Swift { median_of, ..config })
            })
            .boxed(),
        Congestion::Pulls(config) => (1..40u32, any::<bool>(), 0.5..=1.0f64, any::<bool>())
            .prop_map(move |(initial_window, adapts, pace, request_to_send)| {
                let adaptive = adapts.then(Default::default);
                let config = congestion::pulls::Pulls { initial_window, adaptive, ..config.clone() };
                Congestion::Pulls(congestion::pulls::Pulls { pace, request_to_send, ..config })
            })
            .boxed(),
        Congestion::MpRdma(_) => mp_rdma().boxed(),
        Congestion::Nscc(_) => nscc().boxed(),
        Congestion::Smartt(_) => smartt().boxed(),
        Congestion::StrackLike(config) => {
            let base_delay = Time::from_us(5);
            Just(Congestion::StrackLike(congestion::strack_like::StrackLike { base_delay, ..config })).boxed()
        }
        Congestion::Rccc(_) => rccc().boxed(),
        // Slow enough to matter, and back at the line's rate long after the flows are done.
        Congestion::Qcn(config) => {
            let (r_min, timer) = (Some(Rate::from_gbps(20)), Time::from_us(50));
            Just(Congestion::Qcn(congestion::qcn::Qcn { r_min, timer, ..config })).boxed()
        }
        with_its_defaults => Just(with_its_defaults).boxed(),
    }
}

/// A reliability of this kind, in the same way; none without ACKs, as packets may get lost.
fn reliability(kind: Reliability) -> Option<BoxedStrategy<Reliability>> {
    Some(match kind {
        _ if !kind.facts().has_acks => return None,
        Reliability::SelectiveRepeat(_) => {
            let finds = prop_oneof![Just((true, true)), Just((false, true)), Just((false, false))];
            (1..6u32, finds)
                .prop_map(|(reorder_threshold, (rack, sack))| {
                    Reliability::SelectiveRepeat(SelectiveRepeat { reorder_threshold, rack, sack })
                })
                .boxed()
        }
        Reliability::GoBackN(_) => (1..50u64, any::<bool>())
            .prop_map(|(us, nack_congestion)| {
                let nack_interval = Time::from_us(us);
                Reliability::GoBackN(reliability::go_back_n::GoBackN { nack_interval, nack_congestion })
            })
            .boxed(),
        Reliability::Trimmed(_) => (any::<bool>(), prop::option::of(1..5u32))
            .prop_map(|(priority, asks)| {
                let (reroute, reroute_after) = (asks.is_some(), asks.unwrap_or(1));
                Reliability::Trimmed(Trimmed { priority, reroute, reroute_after })
            })
            .boxed(),
        Reliability::Bitmap(_) => {
            (1..80u32).prop_map(|length| Reliability::Bitmap(reliability::bitmap::Bitmap { length })).boxed()
        }
        Reliability::Pds(_) => (0..40_000u64)
            .prop_map(|bytes| {
                Reliability::Pds(reliability::pds::Pds { ack_bytes: Bytes(bytes), sleek: None })
            })
            .boxed(),
        with_its_defaults => Just(with_its_defaults).boxed(),
    })
}

fn transports() -> impl Strategy<Value = Transport> {
    let congestion = Union::new(every_kind().into_iter().map(congestion));
    let reliability = Union::new(every_kind().into_iter().filter_map(reliability));
    (congestion, reliability, 1..5u32, shapings(), 500..9000u64, nic_queues(), reorders()).prop_map(
        |(congestion, reliability, ack_every, shaping, mtu, nic_queue, reorder)| {
            let mut transport = Transport { congestion, reliability, shaping, ..Transport::default() };
            if let Reliability::GoBackN(go_back_n) = &mut transport.reliability {
                // Only DCQCN knows notifications.
                go_back_n.nack_congestion &= matches!(transport.congestion, Congestion::Dcqcn(_));
            }
            if transport.check().is_err() {
                // Without a window there is nothing to pace.
                transport.shaping = Shaping::None(Default::default());
            }
            // Without a limit all would be handed over at once.
            if !matches!(transport.congestion, Congestion::None(_) | Congestion::Qcn(_)) {
                transport.options.nic_queue = nic_queue;
            }
            if transport.chooses_paths() {
                // Packets overtake each other on many paths.
                if matches!(transport.reliability, Reliability::GoBackN(_)) {
                    transport.reliability = Reliability::Bitmap(Default::default());
                }
            } else if transport.bolt().is_none() {
                transport.options.ack_every = ack_every;
            }
            if let (Congestion::Nscc(_), Reliability::Pds(pds)) =
                (&transport.congestion, &mut transport.reliability)
            {
                pds.sleek = mtu.is_multiple_of(2).then(Default::default);
            }
            transport.options.mtu = Bytes(mtu);
            transport.options.reorder = reorder;
            if transport.credit().is_some() && !matches!(transport.reliability, Reliability::Pds(_)) {
                // Its packets say what they could use.
                transport.reliability = Reliability::Pds(Default::default());
            }
            if matches!(transport.reliability, Reliability::Pds(_)) {
                // It counts bytes, and takes packets as they come.
                (transport.options.ack_every, transport.options.reorder) = (1, Reorder::default());
                let each = transport.chooses_paths() || transport.bolt().is_some();
                if transport.pulls() && transport.credit().is_none() || each {
                    transport.reliability = Reliability::Bitmap(Default::default());
                }
            }
            transport
        },
    )
}

/// The same with a handshake, hosts that are interrupted now and then only, and NICs that take a while to answer.
fn greeting() -> impl Strategy<Value = Transport> {
    let some = || prop::option::weighted(0.3, (0..30_000u64).prop_map(Time::from_ns));
    let interval = prop::option::weighted(0.3, (1..30_000u64).prop_map(Time::from_ns));
    let drawn = (transports(), any::<bool>(), interval, some(), some());
    drawn.prop_map(|(mut transport, handshake, interval, ack_processing, cnp_processing)| {
        transport.options.interrupt_interval = interval;
        transport.options.handshake = handshake;
        transport.options.handshake &= transport.check().is_ok();
        transport.options.ack_processing = ack_processing;
        // Only some receivers send notifications.
        transport.options.cnp_processing = cnp_processing;
        if transport.check().is_err() {
            transport.options.cnp_processing = None;
        }
        transport
    })
}

/// Every kind of congestion control, reliability and shaping that a user may name is drawn.
#[test]
fn every_kind_of_transport_is_drawn() {
    let mut runner = TestRunner::deterministic();
    let mut drawn = BTreeSet::new();
    let strategy = over_subflows();
    for _ in 0..2000 {
        let transport = strategy.new_tree(&mut runner).unwrap().current();
        drawn.insert((Congestion::AXIS, transport.congestion.name()));
        drawn.insert((Reliability::AXIS, transport.reliability.name()));
        drawn.insert((Shaping::AXIS, transport.shaping.name()));
    }
    let with_acks = every_kind::<Reliability>().into_iter().filter(|kind| kind.facts().has_acks);
    let reliabilities = with_acks.map(|kind| (Reliability::AXIS, kind.name()));
    let congestions = Congestion::NAMES.iter().map(|&name| (Congestion::AXIS, name));
    let shapings = Shaping::NAMES.iter().map(|&name| (Shaping::AXIS, name));
    for (axis, name) in congestions.chain(reliabilities).chain(shapings) {
        assert!(drawn.contains(&(axis, name)), "{axis} \"{name}\" is never drawn");
    }
}

/// Reorder buffers with room and time for few packets, or many.
fn reorders() -> impl Strategy<Value = Reorder> {
    let buffer = (1..200_000u64, 1..100_000u64).prop_map(|(size, timeout)| {
        Reorder::Buffer(Buffer { size: Bytes(size), timeout: Time::from_ns(timeout) })
    });
    prop_oneof![2 => Just(Reorder::default()), 1 => buffer]
}

/// The same over several subflows, where they may be.
fn over_subflows() -> impl Strategy<Value = Transport> {
    let subflows = prop_oneof![1 => Just(1u32), 1 => 2..12u32];
    (greeting(), subflows, any::<bool>()).prop_map(|(transport, subflows, is_coupled)| {
        let mut over = transport.clone();
        (over.options.subflows, over.options.ack_every, over.options.handshake) = (subflows, 1, false);
        match &mut over.congestion {
            Congestion::NewReno(newreno) => newreno.coupled = is_coupled,
            Congestion::Dctcp(dctcp) => dctcp.coupled = is_coupled,
            _ => {}
        }
        if subflows > 1 && over.check().is_ok() { over } else { transport }
    })
}

fn degradations() -> impl Strategy<Value = Vec<Fault>> {
    let degrade = (0.0..0.6f64, 0.05..1.0f64, 0..50u64, prop::option::of(51..200u64));
    let degrade = degrade.prop_map(|(share, fraction, from, until)| {
        Fault::Degrade(Degrade {
            link_fraction: Some(share),
            rate_factor: fraction,
            from: Time::from_us(from),
            until: until.map(Time::from_us),
            ..Degrade::default()
        })
    });
    prop::collection::vec(degrade, 0..3)
}

fn flow_controls() -> impl Strategy<Value = FlowControl> {
    let buffer = Bytes(200_000);
    prop_oneof![
        Just(FlowControl::Pfc(flow_control::pfc::Pfc { buffer, ..Default::default() })),
        Just(FlowControl::PfcShared(flow_control::pfc_shared::PfcShared::default())),
        (20_000..200_000u64).prop_map(|buffer| {
            FlowControl::Credits(flow_control::credits::Credits {
                buffer: Bytes(buffer),
                ..Default::default()
            })
        }),
    ]
}

/// What the scheme cannot do without.
fn suit(config: &mut SimConfig) {
    if matches!(config.routing.granularity, Granularity::Flowcut(_)) {
        config.transport.options.ack_every = 1;
        if let Reliability::Pds(pds) = &mut config.transport.reliability {
            pds.ack_bytes = Bytes(0);
        }
    }
    schemes::fit(&mut config.fabric.options, &config.routing);
    if let Some(qcn) = schemes::qcn_for(&config.routing) {
        config.fabric.options.qcn = Some(qcn);
    }
}

/// Series end with the run, and no channel was busier than it can be.
fn check_the_end(records: &Records) -> Result<(), TestCaseError> {
    let end = records.totals.simulated;
    let samples = records.samples.to_vec().unwrap();
    let flow_samples = records.flow_samples.to_vec().unwrap();
    prop_assert!(samples.iter().all(|sample| sample.time <= end), "a sample after {}", end);
    prop_assert!(flow_samples.iter().all(|sample| sample.time <= end), "a sample of a flow after {}", end);
    for channel in &records.channels {
        prop_assert!(
            channel.busy <= end && channel.utilisation <= channel.active_utilisation,
            "{:?}",
            channel
        );
        prop_assert!(channel.active_utilisation <= 1.0, "{:?}", channel);
    }
    let completions: Option<Vec<_>> = records.flows.iter().map(|flow| Some(flow.start + flow.fct?)).collect();
    // Of a run that was cut short it is not known here whether more was to come.
    if records.totals.makespan.is_some() {
        prop_assert_eq!(records.totals.makespan, completions.and_then(|all| all.into_iter().max()));
    }
    Ok(())
}

/// Samples of senders count each packet that was acknowledged once.
fn check_senders(records: &Records, config: &SimConfig) -> Result<(), TestCaseError> {
    let mut acked: BTreeMap<(u32, u32), u64> = BTreeMap::new();
    for sample in records.sender_samples.to_vec().unwrap() {
        prop_assert!(sample.time <= records.totals.simulated);
        *acked.entry((sample.src, sample.flow)).or_default() += sample.acked;
    }
    let transport = &config.transport;
    // Where servers have several NICs, flows are messages, and senders those of their parts.
    let is_told = transport.reliability.facts().has_acks && records.parts.is_none();
    // What a connection has heard by another subflow is not acknowledged again.
    let is_exact = transport.options.subflows == 1;
    for flow in records.flows.iter().filter(|flow| is_told && flow.sender_fct.is_some()) {
        let packets = flow.bytes.div_ceil(transport.options.mtu.0);
        let found = acked.get(&(flow.src, flow.flow)).copied().unwrap_or(0);
        // Telemetry makes packets larger than the transport says.
        let is_right = if is_exact {
            found % packets == 0 && found / packets >= transport.packet_size().0
        } else {
            found > 0
        };
        prop_assert!(is_right, "{} acknowledged of {:?}", found, flow);
    }
    Ok(())
}

/// The first scheme from `start` on that is meant for the network.
fn scheme_for(network: &Network, mut config: SimConfig, start: usize) -> SimConfig {
    let schemes = schemes::all();
    let (faults, plan) = (std::mem::take(&mut config.faults), permutation(1, network, 1));
    let fits = schemes.into_iter().cycle().skip(start).find_map(|(_, routing)| {
        let mut config = SimConfig { routing, ..config.clone() };
        suit(&mut config);
        mark(&mut config);
        match Simulation::new(network.clone(), config.clone(), plan.clone()) {
            Err(SimError::Routing(_)) => None,
            // Not more virtual channels than there are.
            Err(SimError::MayDeadlock(_)) => None,
            simulation => simulation.map(|_| config).into(),
        }
    });
    SimConfig { faults, ..fits.unwrap().unwrap() }
}

/// Trimming with room for few headers or many.
fn trimming() -> impl Strategy<Value = Queue> {
    (1..20u32, prop::option::of(64..5000u64), 1..200u64, any::<bool>()).prop_map(
        |(control_weight, room, header, return_to_sender)| {
            Queue::Trimming(Trimming {
                control_weight,
                control_buffer: room.map(|room| Bytes(room.max(header))),
                header_size: Bytes(header),
                return_to_sender,
            })
        },
    )
}

fn fabrics(lossy: bool) -> impl Strategy<Value = Fabric> {
    let queue = prop::option::of(trimming()).prop_map(move |queue| queue.filter(|_| lossy));
    let buffer =
        prop::option::of(40_000..400_000u64).prop_map(move |buffer| buffer.filter(|_| lossy).map(Bytes));
    let mark = prop_oneof![Just(Mark::Departure), Just(Mark::Arrival)];
    let ecn = prop::option::of((0..100_000u64, 0..100_000u64, 0.0..1.0f64, mark));
    let ecn = ecn.prop_map(|ecn| {
        let marks =
            |(kmin, more, pmax, mark)| Ecn { kmin: Bytes(kmin), kmax: Bytes(kmin + more), pmax, mark };
        ecn.map(marks)
    });
    let cut_through = prop::option::of((1..2000u64).prop_map(Bytes));
    let random = prop::option::of((0.01..=1.0f64, 1..20u32));
    let random =
        random.prop_map(|random| random.map(|(probability, packets)| RandomDrop { probability, packets }));
    (buffer, ecn, any::<bool>(), 0..500u64, cut_through, queue, random).prop_map(
        |(buffer, ecn, control_priority, latency, cut_through, queue, random)| {
            let switch_latency = Time::from_ns(latency);
            let options = FabricOptions {
                buffer,
                ecn,
                control_priority,
                switch_latency,
                cut_through,
                ..FabricOptions::default()
            };
            // Only what is bounded has a last part.
            let random = random.filter(|_| options.buffer.is_some());
            let queue = queue.unwrap_or(Queue::TailDrop(TailDrop { random }));
            Fabric { options, queue, ..Fabric::default() }
        },
    )
}

fn flowcuts() -> impl Strategy<Value = Flowcut> {
    let averages = (1.0..8.0f64, 0.03..1.0f64, prop::option::of(0.01..1.0f64));
    (averages, any::<[bool; 3]>(), 0..100_000u64).prop_map(
        |((threshold, alpha, trend_threshold), [reset, rtt_min_per_flow, keep_idle], min_remaining)| {
            Flowcut {
                threshold,
                alpha,
                reset,
                rtt_min_per_flow,
                keep_idle,
                trend_threshold,
                min_remaining: Bytes(min_remaining),
                ..Flowcut::default()
            }
        },
    )
}

/// DCQCN, NSCC, SMaRTT, RCCC with NSCC and MP-RDMA need a fabric that marks, and repetitions that hurry and adaptive windows one that trims.
fn mark(config: &mut SimConfig) {
    if matches!(config.transport.congestion, Congestion::Qcn(_)) {
        let eager = Qcn { q_eq: Some(Bytes(8_000)), sample_base: Bytes(16_000), ..Qcn::default() };
        config.fabric.options.qcn.get_or_insert(eager);
    }
    let has_control_queue = config.fabric.queue.trims() && config.fabric.options.control_priority;
    if let Reliability::Trimmed(trimmed) = &mut config.transport.reliability {
        trimmed.priority &= has_control_queue;
    }
    if let Congestion::Pulls(pulls) = &mut config.transport.congestion {
        pulls.adaptive.take_if(|_| !config.fabric.queue.trims());
    }
    let marks = config.transport.congestion.facts().marks;
    if marks == Marks::Required
        || matches!(config.transport.congestion, Congestion::Rccc(_))
        || config.transport.chooses_paths()
    {
        let ecn = Ecn { kmin: Bytes(5_000), kmax: Bytes(50_000), pmax: 0.1, mark: Default::default() };
        config.fabric.options.ecn.get_or_insert(ecn);
    }
}

/// The seed next to this one by which hosts are [servers](rails).
fn of_servers(seed: u64) -> u64 {
    seed / 3 * 3
}

/// In a third of the cases servers with several NICs, planes or GPUs, where the network comes out even and the routing does not mind.
fn rails(network: &Network, config: &SimConfig, ports: Ports, seed: u64) -> Option<(Network, Arc<Rails>)> {
    let selections =
        [NicSelection::Stripe, NicSelection::RoundRobin, NicSelection::Hash, NicSelection::LeastOutstanding];
    let wirings = [Wiring::SideBySide, Wiring::RailOptimised];
    let drawn = |bits: u32, below: u64| (seed >> bits) % below;
    let nics = drawn(8, 4) as u32 + 1;
    let scale_up = ScaleUp {
        wiring: [ScaleUpWiring::Switch, ScaleUpWiring::AllToAll][drawn(44, 2) as usize],
        latency: Time::from_ns(drawn(48, 900)),
        ..ScaleUp::default()
    };
    let planes = drawn(32, 3) as u32 + 1;
    let failover_after = Time::from_us(drawn(53, 30));
    let port_selection = port_selection(config, ports, seed);
    let bond = port_selection.map(|port_selection| Bond { port_selection, failover_after });
    // In one network they are one only with a rule.
    let of_nic = if planes == 1 && bond.is_some() { drawn(50, 3) as u32 + 1 } else { 1 };
    let servers = Servers {
        nics,
        wiring: wirings[drawn(16, 2) as usize],
        nic_selection: selections[drawn(24, 4) as usize],
        planes,
        ports: of_nic,
        bond: bond.filter(|_| planes > 1 || of_nic > 1),
        gpus: [None, Some(1), Some(nics)][drawn(36, 3) as usize],
        scale_up: (drawn(40, 2) == 0).then_some(scale_up),
    };
    if seed != of_servers(seed) {
        return None;
    }
    let network = servers.network(network.clone()).ok()?;
    config.routing.fits(&network).ok()?;
    // Flowcuts are refused off trees where ACKs return among the data of a lossless fabric.
    let SimConfig { routing, fabric, .. } = config;
    let are_among_data = fabric.is_lossless() && !fabric.options.control_priority;
    if routing.counted_flowcuts().is_some() && are_among_data && !network.is_tree() {
        return None;
    }
    let rails = servers.build(&network, seed).ok()?;
    Some((network, Arc::new(rails)))
}

/// What may become of a NIC's ports where they are one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ports {
    /// Flows keep theirs.
    Kept,
    /// Packets take any, and one of them may die.
    Any,
}

/// In two thirds of the cases a rule by which NICs choose among their ports, if routing and transport do not mind.
fn port_selection(config: &SimConfig, ports: Ports, seed: u64) -> Option<PortSelection> {
    let SimConfig { routing, transport, .. } = config;
    let draws = transport.chooses_paths() || routing.placement == Placement::Nic && routing.draws_entropy();
    let by_value = if draws { PortSelection::Entropy } else { PortSelection::LeastLoaded };
    let drawn = [
        None,
        Some(PortSelection::Flow),
        None,
        Some(by_value),
        Some(PortSelection::RoundRobin),
        Some(PortSelection::LeastLoaded),
    ][(seed >> 58) as usize % 6];
    let mind = routing.granularity.keeps_order()
        || transport.options.reorder.has_cells()
        || transport.telemetry().is_some();
    let keeps = ports == Ports::Kept || mind;
    // Receivers that ask for packets do so at the rate of all ports.
    let drawn = match (keeps, transport.pulls()) {
        (true, true) => None,
        (true, false) => drawn.map(|_| PortSelection::Flow),
        (false, true) if drawn == Some(PortSelection::Flow) => Some(PortSelection::LeastLoaded),
        (false, _) => drawn,
    };
    drawn.filter(|_| !transport.options.nic_queue.exists())
}

/// In half of the cases one of the ports of a NIC that has others dies for good.
fn dead_port(network: &Network, rails: &Rails, seed: u64) -> Option<Fault> {
    let host = (seed >> 20) as u32 % network.hosts();
    let has_others = rails.bond().is_some() && rails.reach_each_other(|port| port == host);
    (has_others && (seed >> 57).is_multiple_of(2)).then(|| {
        let (from, to) = (network.node_name(host), network.node_name(network.edge_switch(host)));
        let channels = vec![ChannelEnds { from, to, parallel: 0 }];
        Fault::Cut(Cut { channels, from: Time::from_us(1 + (seed >> 26) % 20), ..Cut::default() })
    })
}

/// Drawn buffers are for cables of 200 Gb/s and 1 us; those of a scale-up network have more under way when they are paused.
fn stop_in_time(config: &mut SimConfig, network: &Network) {
    if let FlowControl::Pfc(pfc) = &mut config.fabric.flow_control {
        let under_way = network.links().iter().map(|link| link.rate.bytes_in(link.latency * 2));
        pfc.buffer.0 += 2 * under_way.max().unwrap_or_default().0;
    }
}

/// Initial, least and greatest timeout, around the time that a packet takes for a hop.
fn short_timeouts() -> impl Strategy<Value = (Time, Time, Option<Time>)> {
    let initial = prop_oneof![Just(10), 1..2000u64];
    (initial, 1..2000u64, prop::option::of(0..20_000u64)).prop_map(|(initial, min, more)| {
        let max = more.map(|more| Time::from_ns(min.max(initial) + more));
        (Time::from_ns(initial), Time::from_ns(min), max)
    })
}

/// A transport with these timeouts.
fn with_timeouts(transport: Transport, timeouts: (Time, Time, Option<Time>)) -> Transport {
    let (rto_initial, rto_min, rto_max) = timeouts;
    let options = TransportOptions { rto_initial, rto_min, rto_max, ..transport.options };
    Transport { options, ..transport }
}

/// Runs with short timeouts: the same on any number of threads, and as the textbook executor has it.
fn fire_when_due(
    network: &Network,
    pattern: &Pattern,
    transport: Transport,
    fabric: Fabric,
    seed: u64,
    sample: Option<u64>,
) -> Result<(), TestCaseError> {
    let until = Time::from_us(300);
    let is_short = transport.options.rto_initial <= Time::from_ns(400);
    let spraying = spraying(&transport);
    let mut config = SimConfig { transport, fabric, seed, ..spraying };
    config.fabric.options.buffer =
        config.fabric.options.buffer.map(|b| b.max(config.transport.packet_size()));
    config.measure.until = Some(until);
    config.measure.sample = sample.map(Time::from_ns);
    let Some(first) = simulate(network, &config, pattern, seed) else { return Ok(()) };
    let one = first.run(1).unwrap().records;
    let three = simulate(network, &config, pattern, seed).unwrap().run(3).unwrap().records;
    prop_assert_eq!(difference(&one, &three), None);
    // The textbook executor knows no limit, and takes no samples.
    config.measure.sample = None;
    let unsampled = simulate(network, &config, pattern, seed).unwrap().run(1).unwrap().records;
    if unsampled.totals.simulated < until {
        let reference = simulate(network, &config, pattern, seed).unwrap().run_reference().unwrap().records;
        prop_assert_eq!(difference(&unsampled, &reference), None);
        let timeouts: u32 = one.flows.iter().map(|flow| flow.timeouts).sum();
        prop_assert!(!is_short || !config.fabric.is_lossy() || timeouts > 0, "no timeout");
    }
    Ok(())
}

fn simulate(network: &Network, config: &SimConfig, pattern: &Pattern, seed: u64) -> Option<Simulation> {
    simulate_by(network, config, pattern, Ports::Kept, seed)
}

fn simulate_by(
    network: &Network,
    config: &SimConfig,
    pattern: &Pattern,
    ports: Ports,
    seed: u64,
) -> Option<Simulation> {
    let mut config = config.clone();
    let railed = rails(network, &config, ports, seed);
    let (network, rails) = railed.map_or((network.clone(), None), |(network, rails)| (network, Some(rails)));
    let network = &network;
    if let Some(rails) = rails.as_ref().filter(|_| ports == Ports::Any) {
        config.faults.extend(dead_port(network, rails, seed));
    }
    let are_joined = rails.as_ref().is_some_and(|rails| rails.ports_are_joined());
    let has_bond = rails.as_ref().is_some_and(|rails| rails.bond().is_some());
    let probes_bonds = has_bond && config.routing.sends_probes();
    let context = PlanContext { rails, ..PlanContext::new(seed) };
    let plan: Plan = netloom_workload::Workload::new(pattern.clone()).plan(network, &context).ok()?;
    mark(&mut config);
    tell(&mut config);
    stop_in_time(&mut config, network);
    let may_hang = !config.faults.is_empty();
    let needs_serialisation =
        config.transport.replaces_serialisation() && config.routing.uses_serialisation();
    match Simulation::new(network.clone(), config, plan) {
        // Packets say how much credit they could use, or what they claim, in its place.
        Err(SimError::Routing(error)) if needs_serialisation && error.field == "granularity" => None,
        // Probes would leave by another port than data.
        Err(SimError::Routing(error)) if probes_bonds && error.field == "granularity" => None,
        // Of paths that lead to one port of a NIC, and of what switches keep of a flow that changes its port.
        Err(SimError::Routing(error))
            if are_joined && ["selector", "granularity"].contains(&error.field.as_ref()) =>
        {
            None
        }
        // A tapered tree may hang on the one link that was cut.
        Err(SimError::Unreachable(_)) if may_hang => None,
        // Or on one that is cut for good, and some schemes cannot follow.
        Err(SimError::Fault(error))
            if error.field.ends_with("reroute_after") || error.field.ends_with("until") =>
        {
            None
        }
        // More links of a tier were drawn than a small network has.
        Err(SimError::Fault(error)) if error.field.ends_with(".links") => None,
        // New routes may need more virtual channels than there are.
        Err(SimError::MayDeadlock(_)) if may_hang => None,
        // A slow link is long in stopping.
        Err(SimError::Fabric(error)) if may_hang && error.field == "flow_control.buffer" => None,
        ready => Some(ready.unwrap()),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Also checks conservation, which every run does.
    #[test]
    fn threads_and_executors_agree_and_everything_arrives(
        network in prop_oneof![9 => networks(), 1 => (250..320u32).prop_map(chain)],
        pattern in patterns(),
        start in 0..200usize,
        transport in over_subflows(),
        fabric in fabrics(true),
        lossless in prop::option::weighted(0.3, flow_controls()),
        mut faults in degradations(),
        interruptions in interruptions(),
        cut in any::<bool>(),
        seed in any::<u64>(),
        sample in prop::option::of(30..3000u64),
    ) {
        if cut && network.links().len() > 40 {
            faults.push(Fault::Cut(Cut { links: Some(1), ..Cut::default() }));
        }
        let mut config = SimConfig { transport, fabric, seed, ..SimConfig::default() };
        if let Some(flow_control) = lossless {
            config.fabric.options.buffer = None;
            config.fabric.queue = Fabric::default().queue;
            config.fabric.flow_control = flow_control;
        }
        if network.switches() > 1 {
            faults.extend(interruptions);
        }
        // Through hundreds of links that lose packets for ever none comes.
        let is_long = network.switches() > 100;
        faults.retain(|fault| !is_long || !matches!(fault, Fault::Loss(loss) if loss.until.is_none()));
        config.faults = faults;
        config.fabric.options.buffer = config.fabric.options.buffer.map(|b| b.max(config.transport.packet_size()));
        let mut config = scheme_for(&network, config, start);
        let Some(first) = simulate_by(&network, &config, &pattern, Ports::Any, seed) else { return Ok(()) };
        // Without samples the textbook executor must agree.
        let expected = first.run(1).unwrap().records;
        // Nor does it make a difference whether what recurs is skipped.
        let fast = SimConfig { fast: Fast::Recurring, ..config.clone() };
        let skipping = simulate_by(&network, &fast, &pattern, Ports::Any, seed).unwrap().run(1).unwrap().records;
        prop_assert_eq!(difference(&expected, &skipping), None, "skipping what recurs");
        let of_flows = |count: fn(&FlowRecord) -> u64| expected.flows.iter().map(count).sum::<u64>();
        let of_run = |count: fn(&DecisionCount) -> u64| expected.totals.decisions.values().map(count).sum::<u64>();
        prop_assert_eq!(of_flows(|flow| flow.decisions), of_run(|count| count.taken));
        prop_assert_eq!(of_flows(|flow| flow.non_default_decisions), of_run(|count| count.non_default));
        prop_assert!(expected.flows.iter().all(|flow| flow.fct.is_some()), "an unfinished flow");
        // Over several paths a short last packet need not wait behind the full ones, as it does on the idle path.
        let single_path = |flow: &&FlowRecord| flow.path_changes == 0 && config.faults.is_empty();
        let too_fast = expected.flows.iter().filter(single_path).find(|flow| flow.fct < Some(flow.ideal_fct));
        prop_assert_eq!(too_fast, None);
        let reference = simulate_by(&network, &config, &pattern, Ports::Any, seed).unwrap().run_reference().unwrap().records;
        prop_assert_eq!(difference(&expected, &reference), None);

        config.measure.sample = sample.map(Time::from_ns);
        config.measure.sample_flows = sample.map(|sample| Time::from_ns(sample * 2));
        config.measure.sample_senders = sample.map(|sample| Time::from_ns(sample * 3));
        let simulation = simulate_by(&network, &config, &pattern, Ports::Any, seed).unwrap();
        let (one, late) = run_to_its_end(simulation);
        check_the_end(&one)?;
        prop_assert!(one.flows == expected.flows, "looking on changes nothing");
        if sample.is_some() {
            check_senders(&one, &config)?;
        }
        // A flow, or a subflow, leaves a few timers behind, a host one for each of the others, and a packet that was sent twice may still be
        // on its way from switch to switch.
        let (hosts, switches) = (network.hosts() as usize, network.switches() as usize);
        let few = 4 * one.flows.len() * config.transport.options.subflows as usize + hosts * hosts + switches;
        prop_assert!(late <= few, "{} windows after the end", late);
        if sample.is_some() {
            let series: u64 = one.samples.to_vec().unwrap().iter().map(|sample| sample.bytes).sum();
            prop_assert_eq!(series, one.channels.iter().map(|channel| channel.bytes).sum::<u64>());
        }
        for threads in 2..=4 {
            let many = simulate_by(&network, &config, &pattern, Ports::Any, seed).unwrap().run(threads).unwrap().records;
            prop_assert_eq!(difference(&one, &many), None, "{} threads", threads);
        }
    }

    /// Timers that a packet sets as it leaves, and that fire before it has crossed its first channel.
    #[test]
    fn timeouts_shorter_than_a_hop_fire_when_they_are_due(
        network in networks(),
        pattern in patterns(),
        transport in over_subflows(),
        fabric in fabrics(true),
        timeouts in short_timeouts(),
        seed in any::<u64>(),
        sample in prop::option::of(300..3000u64),
    ) {
        fire_when_due(&network, &pattern, with_timeouts(transport, timeouts), fabric, seed, sample)?;
    }

    /// The NICs of a server set timers for one instant, and what ends at one begins the next at another.
    #[test]
    fn timers_of_several_nics_fire_when_they_are_due(
        network in networks(),
        pattern in patterns(),
        mut transport in over_subflows(),
        fabric in fabrics(true),
        timeouts in short_timeouts(),
        seed in any::<u64>(),
        interval in 1..300u64,
    ) {
        transport.options.interrupt_interval = Some(Time::from_ns(interval));
        let transport = with_timeouts(transport, timeouts);
        fire_when_due(&network, &pattern, transport, fabric, of_servers(seed), None)?;
    }

    #[test]
    fn flowcut_never_reorders(
        network in networks(),
        pattern in patterns(),
        transport in transports(),
        fabric in fabrics(false),
        faults in degradations(),
        flowcut in flowcuts(),
        seed in any::<u64>(),
    ) {
        prop_assume!(!transport.chooses_paths());
        let mut config = SimConfig { transport, fabric, faults, seed, ..scheme("flowcut-nic") };
        config.transport.options.ack_every = 1;
        if let Reliability::Pds(pds) = &mut config.transport.reliability {
            pds.ack_bytes = Bytes(0);
        }
        config.routing.granularity = Granularity::Flowcut(flowcut);
        let Some(simulation) = simulate(&network, &config, &pattern, seed) else { return Ok(()) };
        let records = simulation.run(1).unwrap().records;
        for flow in &records.flows {
            prop_assert_eq!((flow.ooo_packets, flow.max_ood, flow.retransmissions), (0, 0, 0));
            prop_assert!(u64::from(flow.path_changes) <= flow.decisions);
        }
    }

    #[test]
    fn a_bounded_out_of_order_distance_is_never_exceeded(
        seed in any::<u64>(),
        max_ood in 1..20u32,
    ) {
        let network = fat_tree(4);
        let mut config = scheme("flowcut-nic");
        let flowcut = Flowcut { max_ood, threshold: 1.3, ..Flowcut::default() };
        config.routing.granularity = Granularity::Flowcut(flowcut);
        config.seed = seed;
        let records = run(network.clone(), config, permutation(1 << 20, &network, seed));
        for flow in &records.flows {
            prop_assert!(flow.max_ood <= max_ood, "{} > {}", flow.max_ood, max_ood);
        }
    }

    #[test]
    fn static_schemes_never_reorder_and_never_change_paths(
        network in networks(),
        pattern in patterns(),
        scheme_index in 0..4usize,
        faults in degradations(),
        seed in any::<u64>(),
    ) {
        let names = ["ecmp", "wcmp", "d-mod-k", "s-mod-k"];
        let name = names[scheme_index % if network.is_tree() { 4 } else { 2 }];
        let config = SimConfig { faults, seed, ..scheme(name) };
        let Some(simulation) = simulate(&network, &config, &pattern, seed) else { return Ok(()) };
        for flow in simulation.run(1).unwrap().records.flows {
            prop_assert_eq!((flow.ooo_packets, flow.path_changes), (0, 0));
        }
    }

    #[test]
    fn a_run_cut_short_still_balances(
        network in networks(),
        pattern in patterns(),
        fabric in fabrics(true),
        transport in transports(),
        until in 1..40u64,
        lossless in prop::option::of(flow_controls()),
        interruptions in interruptions(),
        seed in any::<u64>(),
        sample in prop::option::of(30..3000u64),
    ) {
        let spraying = spraying(&transport);
        let mut config = SimConfig { fabric, transport, seed, ..spraying };
        if let Some(flow_control) = lossless {
            config.fabric.options.buffer = None;
            config.fabric.queue = Fabric::default().queue;
            config.fabric.flow_control = flow_control;
        }
        if network.switches() > 1 {
            config.faults = interruptions;
        }
        config.fabric.options.buffer = config.fabric.options.buffer.map(|b| b.max(config.transport.packet_size()));
        config.measure.until = Some(Time::from_us(until));
        config.measure.sample = sample.map(Time::from_ns);
        config.measure.sample_flows = sample.map(Time::from_ns);
        let Some(simulation) = simulate(&network, &config, &pattern, seed) else { return Ok(()) };
        let one = simulation.run(1).unwrap().records;
        prop_assert!(one.totals.simulated <= Time::from_us(until));
        check_the_end(&one)?;
        let three = simulate(&network, &config, &pattern, seed).unwrap().run(3).unwrap().records;
        prop_assert_eq!(fingerprint(&one), fingerprint(&three));
    }
}

#[test]
fn d_mod_k_has_no_conflict_on_down_links_and_a_shift_runs_at_full_speed() {
    // A shift by one pod is conflict-free under D-mod-k on a full tree: every flow takes its idle time.
    let network = fat_tree(4);
    let pattern = Pattern::OffDiagonal(netloom_workload::OffDiagonal {
        offset: 4,
        size: Bytes(200_000).into(),
        ..Default::default()
    });
    let records = run(
        network.clone(),
        SimConfig { transport: unlimited(), ..scheme("d-mod-k") },
        plan(pattern, &network, 1),
    );
    // The ACKs of other flows take their share of the wire, 64 B for every 4160 B, and no more.
    for flow in &records.flows {
        assert!(fct(flow).as_secs_f64() <= flow.ideal_fct.as_secs_f64() * (1.0 + 64.0 / 4160.0));
    }
}

#[test]
fn a_cut_link_is_routed_around_and_carries_nothing() {
    let network = leaf_spine(2, 2, 4);
    let fault = Fault::Cut(Cut { tier: Some("leaf-spine".into()), links: Some(1), ..Cut::default() });
    let config = SimConfig { faults: vec![fault], ..scheme("spray") };
    let records = run(network.clone(), config, permutation(100_000, &network, 3));
    let unused =
        records.channels.iter().filter(|channel| &*channel.tier == "leaf-spine" && channel.packets == 0);
    assert_eq!(unused.count() % 2, 0);
    assert!(records.flows.iter().all(|flow| flow.fct.is_some()));
}

#[test]
fn cutting_everything_is_refused() {
    let network = leaf_spine(2, 2, 4);
    let fault =
        Fault::Cut(Cut { tier: Some("leaf-spine".into()), link_fraction: Some(1.0), ..Cut::default() });
    let config = SimConfig { faults: vec![fault], ..scheme("ecmp") };
    let plan = permutation(1000, &network, 3);
    let error = Simulation::new(network, config, plan).unwrap_err().to_string();
    assert!(error.contains("cannot reach host"), "{error}");
}

/// What the schemes that are meant for a network decide when all hosts send to others.
fn decisions(network: &Network) -> BTreeMap<(&'static str, &'static str), DecisionCount> {
    let mut counts = BTreeMap::new();
    for (name, routing) in schemes::all() {
        let mut config = SimConfig { routing, ..SimConfig::default() };
        if let Granularity::Flowcut(flowcut) = &mut config.routing.granularity {
            *flowcut = Flowcut { threshold: 1.01, min_remaining: Bytes(0), ..flowcut.clone() };
        }
        if let Granularity::Flowlet(flowlet) = &mut config.routing.granularity {
            // Less than from one packet to the next.
            flowlet.gap = Time::from_ns(1);
        }
        if let Granularity::Plb(plb) = &mut config.routing.granularity {
            *plb = Plb { threshold: 0.0, rounds: 1, idle_rounds: 1, ..plb.clone() };
        }
        if let Granularity::PlbDelay(plb) = &mut config.routing.granularity {
            *plb = PlbDelay { target: Time(1), first: Time::from_us(1), ..plb.clone() };
        }
        if let Granularity::Hopper(hopper) = &mut config.routing.granularity {
            *hopper = Hopper { congested: 1.0, better: 1.0, weight: 1.0, ..hopper.clone() };
        }
        suit(&mut config);
        let place = config.routing.placement.name();
        let plan = permutation(600_000, network, 3);
        match Simulation::new(network.clone(), config, plan) {
            Err(SimError::Routing(_)) => {}
            simulation => {
                let records = simulation.unwrap().run(1).unwrap().records;
                let count = records.totals.decisions.values().next().copied();
                counts.insert((name, place), count.unwrap());
            }
        }
    }
    counts
}

/// Whether some switch has several minimal ports to some host.
fn has_choice(network: &Network) -> bool {
    let table = netloom_routing::RouteTable::minimal(network, |_| false).unwrap();
    let pairs = (network.hosts()..network.nodes())
        .flat_map(|switch| (0..network.hosts()).map(move |host| (switch, host)));
    pairs.into_iter().any(|(switch, host)| table.candidates(switch, host).ports.len() > 1)
}

#[test]
fn who_can_adapt_does_on_every_family() {
    for topology in families::all() {
        let network = families::build(&topology, 1);
        if !has_choice(&network) {
            continue;
        }
        for ((name, place), count) in decisions(&network) {
            let routing = preset::find(name).unwrap().routing();
            // The entropy value that a NIC draws for a whole flow is no numbered path, of which there is a first, and no later decision follows.
            let draws_once = place == "nic"
                && matches!(routing.granularity, Granularity::Flow(_))
                && !matches!(routing.selector, Selector::KShortest(_));
            let (is_still, on) = (routing.selector.is_static() || draws_once, network.name());
            let is_idle = (count.taken == 0, count.non_default == 0);
            assert_eq!(is_idle, (is_still, is_still), "{name} at {place} on {on}: {count:?}");
        }
    }
}
