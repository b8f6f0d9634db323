//! Hopper: flows that probe other paths.

mod common;

use common::*;
use netloom_record::Records;
use netloom_routing::Granularity;
use netloom_routing::granularity::hopper::Hopper;
use netloom_sim::{ChannelEnds, Degrade, Fault, SimConfig, SimError, Simulation};
use netloom_transport::congestion::fixed_window::FixedWindow;
use netloom_transport::{Congestion, preset};
use netloom_units::{Bytes, Time};
use netloom_workload::{Message, Plan};

const US: u64 = 1_000_000;

/// What a full packet (4096 B and 64 B of headers) takes at 200 Gb/s, and how many the flow and its window have.
const PACKET: u64 = 166_400;
const PACKETS: u64 = 600;
const WINDOW: u64 = 80;

/// Hopper that goes by the newest round-trip time, and a window that fills a slow link and no other one.
fn config(faults: Vec<Fault>, congested: f64, seed: u64) -> SimConfig {
    let mut config = SimConfig { faults, seed, ..scheme("hopper") };
    let hopper = Hopper { weight: 1.0, congested, ..Hopper::default() };
    config.routing.granularity = Granularity::Hopper(hopper);
    config.fabric.options.control_priority = false;
    let bytes = Some(Bytes(WINDOW * 4160));
    config.transport.congestion = Congestion::FixedWindow(FixedWindow { bytes, ..Default::default() });
    config
}

/// One flow between two leaves with four spines in between.
fn one_flow(config: SimConfig) -> Records {
    let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(PACKETS * 4096), Time::ZERO))]);
    run(leaf_spine(2, 4, 1), config, plan)
}

/// The links from the first leaf to that many of the spines have a fifth of their rate.
fn slow(spines: u32) -> Vec<Fault> {
    let to = |spine: u32| ChannelEnds { from: "s0".into(), to: format!("s{}", 2 + spine), parallel: 0 };
    let channels = (0..spines).map(to).collect();
    vec![Fault::Degrade(Degrade { channels, rate_factor: 0.2, ..Degrade::default() })]
}

/// Control packets besides an ACK for each packet: probes and their answers.
fn probes(records: &Records) -> u64 {
    records.totals.control.sent - records.flows[0].packets
}

/// What the flow takes on four links of which one has a part of the rate.
fn alone(slowness: u64) -> Time {
    Time(PACKETS * PACKET * slowness + 3 * PACKET + 4 * US)
}

#[test]
fn an_idle_path_is_not_probed() {
    for seed in 0..4 {
        let records = one_flow(config(Vec::new(), 1.5, seed));
        assert_eq!((records.flows[0].fct, probes(&records)), (Some(alone(1)), 0));
    }
}

/// The window of 80 packets fills the slow link: a round trip takes 66.56 us once all of it waits there, more than seven times the 9.35 us of a packet alone. All other paths are idle, so the flow moves within two round trips of
/// that, and then has all of the rate.
///
/// Waiting for the difference of the round-trip times keeps its order, but for this: probes are taken to have had the serialisation of the old path, 0.67 us more than that of the new one, so that its last packet there may come behind the first five
/// here.
#[test]
fn a_flow_leaves_a_slow_link_and_waits_for_its_packets_there() {
    let mut moved = 0;
    for seed in 0..24 {
        let records = one_flow(config(slow(1), 7.0, seed));
        let flow = &records.flows[0];
        let fct = flow.fct.unwrap();
        if probes(&records) == 0 {
            assert_eq!((fct, flow.ooo_packets), (alone(1), 0), "seed {seed}");
            continue;
        }
        moved += 1;
        assert!(
            fct < alone(1) + Time::from_us(4 * 67) && flow.ooo_packets <= 5,
            "seed {seed}: {fct} {flow:?}"
        );
    }
    // A quarter of the flows begin on the slow path.
    assert!((2..=12).contains(&moved), "{moved}");
}

#[test]
fn control_packets_that_pass_data_find_out_nothing() {
    let refusal = |change: &dyn Fn(&mut SimConfig)| {
        let mut config = config(Vec::new(), 1.5, 1);
        change(&mut config);
        let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(30_000), Time::ZERO))]);
        Simulation::new(leaf_spine(2, 4, 1), config, plan).map(|_| ()).unwrap_err()
    };
    let error = refusal(&|config| config.fabric.options.control_priority = true);
    let SimError::Fabric(error) = error else { panic!("{error}") };
    assert_eq!(error.field, "control_priority");
    // What carries something else in the place of what it needs to know.
    for name in ["bolt", "uet-rccc"] {
        let error = refusal(&|config| config.transport = preset::find(name).unwrap().transport());
        assert!(error.to_string().starts_with("routing.granularity: "), "{name}: {error}");
    }
}
