//! Faults that lose packets.
#![allow(dead_code, unreachable_pub)]

use netloom_sim::{Cut, Fault, Loss, SimConfig, Unreachable};
use netloom_units::Time;
use proptest::prelude::*;

/// Cuts that are repaired, of links and of hosts', and random losses: in all fewer than senders give up at.
pub fn interruptions() -> impl Strategy<Value = Vec<Fault>> {
    let reroute_after = prop::option::of((0..30_000u64).prop_map(Time::from_ns));
    let cut = (any::<bool>(), 1..3u32, 0..40u64, 1..100u64, any::<bool>(), reroute_after, any::<bool>());
    let cut = cut.prop_map(|(host, links, from, lasts, is_repaired, reroute_after, signals)| {
        let is_repaired = is_repaired || host || reroute_after.is_none();
        Fault::Cut(Cut {
            tier: host.then(|| "host".into()),
            links: Some(links),
            from: Time::from_us(from + u64::from(!is_repaired)),
            until: is_repaired.then(|| Time::from_us(from + lasts)),
            reroute_after,
            unreachable: if signals && !host { Unreachable::NotifySource } else { Unreachable::Silence },
            ..Cut::default()
        })
    });
    let loss = (0.0..1.0f64, 0.0001..0.05f64, 0..50u64, prop::option::of(51..200u64));
    let loss = loss.prop_map(|(share, probability, from, until)| {
        Fault::Loss(Loss {
            link_fraction: Some(share),
            probability,
            from: Time::from_us(from),
            until: until.map(Time::from_us),
            ..Loss::default()
        })
    });
    prop::collection::vec(prop_oneof![cut, loss], 0..3)
}

/// Only hosts that can leave a path are told of cut links.
pub fn tell(config: &mut SimConfig) {
    let has_subflows = config.transport.options.subflows > 1;
    if config.routing.leaves_dead_paths(has_subflows) && !config.transport.chooses_paths() {
        return;
    }
    for fault in &mut config.faults {
        if let Fault::Cut(cut) = fault {
            cut.unreachable = Unreachable::Silence;
        }
    }
}
