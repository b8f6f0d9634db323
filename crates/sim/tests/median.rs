//! MSwift: sprayed packets of which some meet congestion.

mod common;

use common::*;
use netloom_record::Window;
use netloom_sim::{Measure, SimConfig};
use netloom_topology::{Network, NetworkBuilder};
use netloom_transport::congestion::swift::Swift;
use netloom_transport::{Congestion, preset};
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{Message, Plan};

/// Two hosts at different leaves, and eight spines between them, `slow` of which are so far that packets take 20 us more, either way: what a standing queue does. A round trip takes
/// some 9 us, or 29 or 49: of `slow` in eight paths 1 − (1 − slow / 8)² of the round trips are long.
fn spines(slow: u32) -> Network {
    let mut builder = NetworkBuilder::new("spines");
    let (rate, near) = (Rate::from_gbps(100), Time::from_us(1));
    let (hosts, edge, core) = (builder.add_hosts(2), builder.tier("edge"), builder.tier("core"));
    let leaves = [0, 1].map(|pod| builder.add_switch(0, pod));
    for (host, leaf) in hosts.zip(leaves) {
        builder.link(host, leaf, rate, near, edge);
    }
    for spine in 0..8 {
        let latency = if spine < slow { near + Time::from_us(10) } else { near };
        let spine = builder.add_switch(1, 0);
        for leaf in leaves {
            builder.link(leaf, spine, rate, latency, core);
        }
    }
    builder.build().unwrap()
}

/// The share of its link that a flow gets once it has settled.
fn share(slow: u32, mut config: SimConfig) -> f64 {
    let (from, until) = (Time::from_ms(2), Time::from_ms(4));
    config.measure = Measure {
        until: Some(until),
        windows: vec![Window { name: "late".into(), from, until }],
        ..Measure::default()
    };
    let plan = Plan::of_messages(2, [(0, Message::new(1, Bytes(1 << 30), Time::ZERO))]);
    let records = run(spines(slow), config, plan);
    let bytes: u64 = records.window_flows.to_vec().unwrap().iter().map(|row| row.bytes).sum();
    bytes as f64 * 8.0 / (until - from).as_secs_f64() / 100e9
}

fn swift(median_of: Option<u32>) -> SimConfig {
    let mut transport = preset::find("mswift").unwrap().transport();
    // Windows of more than 20 packets have no more than 20 us as a target.
    transport.congestion = Congestion::Swift(Swift {
        base_delay: Time::from_us(20),
        hop_delay: Time::ZERO,
        fs_max_window: 20.0,
        max_window: Some(Bytes(600_000)),
        median_of,
        ..Swift::default()
    });
    SimConfig { transport, ..scheme("spray-round-robin") }
}

/// With 23% of the round trips long a median sees none of them; with 75% and all it is Swift. At 44%, with two of eight paths, a majority of 31 ACKs is long in a quarter of the cases,
/// and the flow collapses, too: the bound of one half is that of medians of many.
#[test]
fn a_flow_does_not_collapse_while_clearly_less_than_half_of_what_comes_back_is_congested() {
    let share = |median_of, slow| share(slow, swift(median_of));
    for slow in [0, 1] {
        let (median, latest) = (share(Some(31), slow), share(None, slow));
        println!("{slow} of 8: MSwift {median:.3}, Swift {latest:.3}");
        assert!(median > 0.9, "{slow}: {median}");
        assert!(slow == 0 || latest < 0.5, "{slow}: {latest}");
    }
    assert!(share(Some(127), 2) > share(None, 2));
    for slow in [4, 8] {
        let (median, latest) = (share(Some(31), slow), share(None, slow));
        println!("{slow} of 8: MSwift {median:.3}, Swift {latest:.3}");
        assert!(median < 0.5, "{slow}: {median}");
    }
}
