//! Every scheme, wherever it may stand.
#![allow(dead_code, unreachable_pub)]

use netloom_fabric::{Ecn, FabricOptions, Qcn};
use netloom_routing::granularity::flowcut::Flowcut;
use netloom_routing::granularity::flowlet_by_acks::FlowletByAcks;
use netloom_routing::granularity::packet::Packet;
use netloom_routing::granularity::plb::Plb;
use netloom_routing::granularity::plb_delay::PlbDelay;
use netloom_routing::selector::drill::{Drill, Load, Per};
use netloom_routing::selector::least_loaded::LeastLoaded;
use netloom_routing::selector::round_robin::RoundRobin;
use netloom_routing::{Granularity, Placement, Routing, Selector, preset};
use netloom_transport::NicQueue;
use netloom_units::{Bytes, Time};
use proptest::prelude::*;

/// Every preset at every place where it may stand, and variants that no preset has, by the preset's name.
pub fn all() -> Vec<(&'static str, Routing)> {
    let places = [Placement::Nic, Placement::Ingress, Placement::Switch];
    let presets =
        preset::PRESETS.iter().map(|preset| (preset.name, preset.routing())).chain(variants()).flat_map(
            |(name, routing)| places.map(|placement| (name, Routing { placement, ..routing.clone() })),
        );
    presets.filter(|(_, routing)| routing.check().is_ok()).collect()
}

/// Options of which presets have other values.
fn variants() -> Vec<(&'static str, Routing)> {
    let routing = |name: &str| preset::find(name).unwrap().routing();
    let selecting = |name: &'static str, selector| (name, Routing { selector, ..routing(name) });
    let drill = Drill { samples: 3, memory: 2, per: Per::Candidates, load: Load::Queued };
    let levels = [2000, 8000, 30_000].map(Bytes).to_vec();
    let coarse = LeastLoaded { levels, refresh: Time::from_ns(300), ..LeastLoaded::default() };
    // In short runs PLB has no time to move.
    let plb = Plb { threshold: 0.1, rounds: 2, idle_rounds: 1, pause: Time::from_us(20), ..Plb::default() };
    let delay = PlbDelay {
        target: Time::from_us(3),
        least: 1,
        most: 2,
        first: Time::from_us(1),
        ..PlbDelay::default()
    };
    let quick = FlowletByAcks { gap: 0.1, wait: Time::from_us(2) };
    let mixed = |name: &'static str, every| (name, Routing { ecmp_every: Some(every), ..routing(name) });
    let kept = Granularity::Flowcut(Flowcut { keep_idle: true, ..Flowcut::default() });
    vec![
        selecting("drill", Selector::Drill(drill)),
        selecting("adaptive", Selector::LeastLoaded(coarse)),
        selecting("spray-round-robin", Selector::RoundRobin(RoundRobin { reshuffle: None })),
        selecting("spray-round-robin", Selector::RoundRobin(RoundRobin { reshuffle: Some(1) })),
        ("spray", Routing { granularity: Granularity::Packet(Packet { control: true }), ..routing("spray") }),
        (
            "adaptive",
            Routing { granularity: Granularity::Packet(Packet { control: true }), ..routing("adaptive") },
        ),
        ("plb", Routing { granularity: Granularity::Plb(plb), ..routing("plb") }),
        ("plb-htsim", Routing { granularity: Granularity::PlbDelay(delay), ..routing("plb-htsim") }),
        ("flowcut-nic", Routing { granularity: kept, ..routing("flowcut-nic") }),
        (
            "flowlet-reps-artefact",
            Routing { granularity: Granularity::FlowletByAcks(quick), ..routing("flowlet-reps-artefact") },
        ),
        mixed("reps", 3),
        mixed("spray", 2),
        mixed("letflow", 3),
    ]
}

/// The congestion points that a scheme needs, eager to notify; none if it listens to none.
pub fn qcn_for(routing: &Routing) -> Option<Qcn> {
    let eager = Qcn { q_eq: Some(Bytes(8_000)), sample_base: Bytes(16_000), ..Qcn::default() };
    routing.selector.uncongested().map(|_| eager)
}

/// Gives a fabric the marks and the queues that a scheme needs.
pub fn fit(options: &mut FabricOptions, routing: &Routing) {
    if let Some(ecn) = ecn_for(routing) {
        options.ecn.get_or_insert(ecn);
    }
    options.control_priority &= !routing.sends_probes();
}

/// The marks that a scheme needs, on all that waits; none if it heeds none.
pub fn ecn_for(routing: &Routing) -> Option<Ecn> {
    routing.uses_marks().then_some(Ecn {
        kmin: Bytes(0),
        kmax: Bytes(1),
        pmax: 1.0,
        mark: Default::default(),
    })
}

/// No queue at the NIC, or one in either order.
pub fn nic_queues() -> impl Strategy<Value = NicQueue> {
    prop_oneof![Just(NicQueue::None), Just(NicQueue::Fifo), Just(NicQueue::Fair)]
}
