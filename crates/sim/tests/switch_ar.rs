//! Switch AR end to end: notifications that pass a switch move its traffic, whatever the flow control.

mod common;

use common::*;
use netloom_fabric::{FlowControl, Qcn, flow_control};
use netloom_sim::{ChannelEnds, Degrade, Fault, Measure, SimConfig};
use netloom_topology::{KaryNTree, Network, Topology};
use netloom_transport::{Congestion, Reliability, Transport, congestion};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{HotSources, Hotspot, Pattern};

/// The hotspot of Crisan et al., Fig. 9: host 0 sends 9 Gb/s to host 4 over four roots, whose links down run at 2.5, 1, 1 and 5 Gb/s. They
/// are two switches away from the one that divides the traffic, so that it knows of them by notifications alone.
fn hotspot(preset: &str) -> (Network, SimConfig, Pattern) {
    let tree = KaryNTree {
        k: 2,
        n: 5,
        rate: Rate::from_gbps(10),
        latency: Time::from_ns(100),
        ..KaryNTree::default()
    };
    let slow = [("s32", "s18", 0.25), ("s33", "s18", 0.1), ("s34", "s19", 0.1), ("s35", "s19", 0.5)];
    let faults = slow.map(|(from, to, fraction)| {
        let channels = vec![ChannelEnds { from: from.into(), to: to.into(), parallel: 0 }];
        Fault::Degrade(Degrade { channels, rate_factor: fraction, ..Degrade::default() })
    });
    let mut transport = Transport { reliability: Reliability::None(Default::default()), ..unlimited() };
    transport.options.mtu = Bytes(1500);
    transport.options.header = Bytes(0);
    let mut config = SimConfig { transport, faults: faults.into(), ..scheme(preset) };
    config.fabric.options.cut_through = Some(Bytes(64));
    config.fabric.options.qcn = Some(Qcn::default());
    let (warm_up, until) = (Time::from_ms(5), Time::from_ms(20));
    config.measure = Measure { warm_up, until: Some(until), ..Measure::default() };
    let pattern = Pattern::Hotspot(Hotspot {
        hot_sources: HotSources::List(vec![0]),
        hot_destination: 4,
        hot_share: 0.9,
        from: Time::ZERO,
        until,
        victims: Vec::new(),
        ..Hotspot::default()
    });
    (build(Topology::KaryNTree(tree)), config, pattern)
}

/// Gb/s that arrive between 5 and 20 ms.
fn arrives(network: &Network, config: &SimConfig, pattern: &Pattern) -> f64 {
    let records = run(network.clone(), config.clone(), plan(pattern.clone(), network, 1));
    let bytes: u64 = records.flows.iter().map(|flow| flow.delivered_after_warm_up).sum();
    bytes as f64 * 8.0 / 15e-3 / 1e9
}

#[test]
fn remote_notifications_move_traffic_in_a_lossy_fabric_as_in_a_lossless_one() {
    let (network, config, pattern) = hotspot("switch-ar");
    let mut lossless = config.clone();
    lossless.fabric.flow_control = FlowControl::Pfc(flow_control::pfc::Pfc::default());
    let lossless = arrives(&network, &lossless, &pattern);
    // More than the best path (the paper: about 60% of the line).
    assert!((5.0..6.5).contains(&lossless), "{lossless}");
    // Nobody waits behind frames for a slow path, and nothing is lost where queues have no bound.
    let unbounded = arrives(&network, &config, &pattern);
    assert!(unbounded > lossless, "{unbounded} against {lossless}");
    // Rate limiters hold back what the queues cannot take.
    let mut bounded = config.clone();
    bounded.fabric.options.buffer = Some(Bytes(100_000));
    bounded.transport.reliability = Reliability::SelectiveRepeat(Default::default());
    bounded.transport.congestion = Congestion::Qcn(congestion::qcn::Qcn::default());
    let bounded = arrives(&network, &bounded, &pattern);
    // D-mod-k, which listens to nobody, keeps to the first path.
    let (network, config, pattern) = hotspot("d-mod-k");
    let fixed = arrives(&network, &config, &pattern);
    assert!((2.4..2.6).contains(&fixed), "{fixed}");
    assert!(bounded > 1.2 * fixed, "{bounded} against {fixed}");
}
