//! What a flow takes when it is alone: windows that keep it from filling its link, and paths that it takes several of.

use netloom_topology::Network;
use netloom_transport::PathFacts;
use netloom_transport::congestion::TargetDelay;
use netloom_units::Time;

use super::Farthest;
use crate::scenario::Scenario;

/// A first window below one bandwidth-delay product: a flow waits for its ACKs or PULLs though nothing else is under way.
pub(super) fn below_the_product(scenario: &Scenario, farthest: &Farthest) -> Option<String> {
    let transport = scenario.transport.clone().on_the_wire();
    let path = PathFacts {
        base_rtt: farthest.round_trip,
        rate: farthest.rate,
        lossy: scenario.fabric.is_lossy(),
        reorders: false,
        trims: scenario.fabric.queue.trims(),
    };
    let (field, window) = transport.first_window(path)?;
    let consequence = match transport.grows() {
        true => "a flow that is alone is slower than its link until its window has grown",
        false => "a flow that is alone is slower than its link",
    };
    (window < path.bdp()).then(|| {
        format!(
            "transport.congestion.{field}: a first window of {window} is below the bandwidth-delay product from h0 to h{}, {}: {consequence}",
            farthest.host,
            path.bdp()
        )
    })
}

/// A first window with less room beyond a bandwidth-delay product than what arrives before an ACK is due: the sender waits for ACKs that its receiver does not send yet.
pub(super) fn no_room_for_late_acks(scenario: &Scenario, farthest: &Farthest) -> Option<String> {
    let transport = scenario.transport.clone().on_the_wire();
    let due = transport.reliability.facts().sack_bytes?;
    // Where credit alone lets packets out, receivers grant it as packets come, whatever has been acknowledged.
    if transport.credit().is_some_and(|rccc| rccc.nscc.is_none()) {
        return None;
    }
    let path = PathFacts {
        base_rtt: farthest.round_trip,
        rate: farthest.rate,
        lossy: scenario.fabric.is_lossy(),
        reorders: false,
        trims: scenario.fabric.queue.trims(),
    };
    let (field, window) = transport.first_window(path)?;
    let (packet, product) = (transport.packet_size().0, path.bdp());
    let whole = window.0 / packet * packet;
    // The packet that makes an ACK due is one that every transport waits for.
    let late = due.0.div_ceil(packet).saturating_sub(1).saturating_mul(packet);
    (late > 0 && window >= product && whole < product.0.saturating_add(late)).then(|| {
        format!(
            "transport.reliability.ack_bytes: an ACK is due after {due}, but a first window of {window} (transport.congestion.{field}) has no room for that beyond the \
             bandwidth-delay product from h0 to h{}, {product}: a flow that is alone is slower than its link; set a smaller `ack_bytes`",
            farthest.host
        )
    })
}

/// A congestion control with a target delay shrinks its window while round trips take longer, which those of an idle path may do.
pub(super) fn target_below_idle(scenario: &Scenario, farthest: &Farthest) -> Option<String> {
    let facts = scenario.transport.congestion.facts();
    let TargetDelay { field, base, per_hop, besides } = facts.target_delay?;
    let hops = u64::from(farthest.hops);
    let target = base.saturating_add(Time(per_hop.0.saturating_mul(hops)));
    (target < farthest.round_trip).then(|| {
        format!(
            "transport.congestion.{field}: {}'s target over {hops} hops, {} and {besides}, is below the idle round trip from h0 to h{}, {}: its window \
             shrinks with nothing in its way",
            facts.title, target.rounded(), farthest.host, farthest.round_trip.rounded()
        )
    })
}

/// A path that is never good enough for PLB, however idle it is.
pub(super) fn plb_below_idle(scenario: &Scenario, farthest: &Farthest) -> Option<String> {
    let plb = scenario.routing.granularity.plb_delay()?;
    let hops = u64::from(farthest.hops);
    let target = plb.target.saturating_add(Time(plb.hop_delay.0.saturating_mul(hops)));
    (target < farthest.round_trip).then(|| {
        format!(
            "routing.granularity.target: PLB's target over {hops} hops, {}, is below the idle round trip from h0 to h{}, {}: a flow there never sees a good path, and changes it \
             every {} (`first`)",
            target.rounded(), farthest.host, farthest.round_trip.rounded(), plb.first.rounded()
        )
    })
}

/// A flow that is spread over several slow paths is done before one of them could carry it.
pub(super) fn faster_than_one_path(scenario: &Scenario, network: &Network) -> Option<String> {
    let keeps_its_path =
        scenario.routing.granularity.keeps_path() && scenario.transport.options.subflows == 1;
    // Between GPUs of a server there is one path; planes are alike.
    let is_plane = |node| network.component(node) == network.component(0);
    let fastest =
        (0..network.hosts()).filter(|&host| is_plane(host)).map(|host| network.host_rate(host)).max()?;
    let between = network.links().iter().filter(|link| !network.is_host(link.a) && !network.is_host(link.b));
    let slowest = between.filter(|link| is_plane(link.a)).map(|link| link.rate).min()?;
    (!keeps_its_path && slowest < fastest).then(|| {
        format!(
            "topology: hosts have links of {fastest}, switches of {slowest}, and a flow may take several of these at once: `ideal_fct_ps` is what one path allows, so that slowdowns can be \
             below 1, down to {:.2}",
            slowest.0 as f64 / fastest.0 as f64
        )
    })
}

#[cfg(test)]
mod tests {
    use std::ops::ControlFlow;

    use netloom_transport::preset::PRESETS;
    use proptest::prelude::*;

    use crate::document::Node;
    use crate::run::{prepare, simulate};
    use crate::scenario::Scenario;
    use crate::source::Source;

    /// A network of every family.
    const FAMILIES: [&str; 11] = [
        "kind = \"crossbar\", hosts = 2",
        "kind = \"fat-tree\", k = 4",
        "kind = \"leaf-spine\", leaves = 2, spines = 2, hosts_per_leaf = 2",
        "kind = \"k-ary-n-tree\", k = 2, n = 3",
        "kind = \"xgft\", m = [2, 2], w = [1, 2]",
        "kind = \"slim-fly\", q = 3, hosts_per_switch = 1",
        "kind = \"dragonfly\", hosts_per_switch = 1, switches_per_group = 3, global_links_per_switch = 1",
        "kind = \"hyperx\", dimensions = 2, switches_per_dimension = [3, 3], hosts_per_switch = 1",
        "kind = \"complete\", switches = 4, hosts_per_switch = 1",
        "kind = \"jellyfish\", switches = 8, degree = 3, hosts_per_switch = 1",
        "kind = \"xpander\", degree = 3, lift = 2, hosts_per_switch = 1",
    ];

    /// One flow on an idle network.
    #[derive(Clone, Debug)]
    struct Lone {
        family: usize,
        preset: usize,
        gbps: u64,
        latency_ns: u64,
        mtu: u64,
        packets: u64,
    }

    impl Lone {
        fn text(&self) -> String {
            let Lone { family, preset, gbps, latency_ns, mtu, packets } = self;
            let name = PRESETS[*preset].name;
            let queue = match PRESETS[*preset].transport().reliability.facts().relies_on_trimming {
                true => ", queue = \"trimming\", buffer = \"1GB\"",
                false => "",
            };
            let routing = match PRESETS[*preset].transport().chooses_paths() {
                true => "spray-nic",
                false => "ecmp",
            };
            // On short paths shared ACKs come late for the window, of which only the longest path is warned.
            let each = match PRESETS[*preset].transport().reliability.facts().sack_bytes {
                Some(_) => ", reliability = { kind = \"pds\", ack_bytes = \"0B\" }",
                None => "",
            };
            format!(
                "topology = {{ {}, rate = \"{gbps}Gbps\", latency = \"{latency_ns}ns\" }}\n\
                 transport = {{ preset = \"{name}\", mtu = \"{mtu}B\"{each} }}\nrouting = \"{routing}\"\n\
                 fabric = {{ ecn = {{ kmin = \"1GB\", kmax = \"1GB\" }}{queue} }}\n\
                 workload = {{ kind = \"incast\", senders = 1, size = \"{}B\" }}\n",
                FAMILIES[*family],
                packets * mtu
            )
        }

        /// Its slowdown, and whether a warning names a window.
        fn run(&self) -> (f64, bool) {
            let text = self.text();
            let document = Node::parse(&Source::new("s.toml", &text)).unwrap();
            let scenario = Scenario::read(&document).unwrap_or_else(|problems| panic!("{text}: {problems}"));
            let ready = prepare(&scenario, &document).unwrap_or_else(|problems| panic!("{text}: {problems}"));
            let (ran, _) = simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap();
            // The timeout of Ultra Ethernet does not grow with round trips, nor follow them.
            let has_sacks = scenario.transport.has_sacks();
            let names = |warning: &String| {
                warning.contains("window") || has_sacks && warning.starts_with("transport.rto_")
            };
            let is_named = ran.summary.warnings.iter().any(names);
            (ran.summary.slowdown.unwrap().max, is_named)
        }
    }

    fn lone() -> impl Strategy<Value = Lone> {
        let rates =
            prop_oneof![Just(10u64), Just(25), Just(100), Just(200), Just(400), Just(800), 10..=800u64];
        let latencies = prop_oneof![10..1000u64, 1000..100_000u64];
        let parts = (0..FAMILIES.len(), 0..PRESETS.len(), rates, latencies, 250..=9000u64, 1..400u64);
        parts.prop_map(|(family, preset, gbps, latency_ns, mtu, packets)| Lone {
            family,
            preset,
            gbps,
            latency_ns,
            mtu,
            packets,
        })
    }

    /// HPCC keeps the fullest link of a way at 95%, alone or not.
    fn most(preset: usize) -> f64 {
        if PRESETS[preset].name == "hpcc" { 1.02 / 0.95 } else { 1.02 }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]
        #[test]
        fn a_flow_that_is_alone_fills_its_link_or_the_window_is_named(lone in lone()) {
            let (slowdown, is_named) = lone.run();
            prop_assert!(slowdown <= most(lone.preset) || is_named, "{slowdown} {}", lone.text());
        }
    }

    /// Four spines of 100 Gb/s carry what a host sends at 400 together.
    #[test]
    fn slowdowns_below_one_of_flows_on_several_paths_are_named() {
        let run = |routing: &str, uplinks: &str| {
            let text = format!(
                "topology = {{ kind = \"leaf-spine\", leaves = 2, spines = 4, hosts_per_leaf = 1, rate = \"400Gbps\", spine_rate = \"{uplinks}\" }}\n\
                 routing = \"{routing}\"\nworkload = {{ kind = \"incast\", senders = 1, size = \"4MiB\" }}\n"
            );
            let document = Node::parse(&Source::new("s.toml", &text)).unwrap();
            let scenario = Scenario::read(&document).unwrap_or_else(|problems| panic!("{text}: {problems}"));
            let ready = prepare(&scenario, &document).unwrap();
            let (ran, _) = simulate(&scenario, ready, 1, |_| ControlFlow::Continue(())).unwrap();
            let expected = "topology: hosts have links of 400Gbps, switches of 100Gbps";
            let is_named = ran.summary.warnings.iter().any(|warning| warning.starts_with(expected));
            (ran.summary.slowdown.unwrap().max, is_named)
        };
        let (slowdown, is_named) = run("spray", "100Gbps");
        assert!((0.25..0.5).contains(&slowdown) && is_named, "{slowdown}");
        assert_eq!(run("ecmp", "100Gbps"), (1.0, false));
        let (slowdown, is_named) = run("spray", "400Gbps");
        assert!((0.99..=1.01).contains(&slowdown) && !is_named, "{slowdown}");
    }

    /// 2.4 packets of 9 KB are 1.2 bandwidth-delay products there, and 2 less than one.
    #[test]
    fn rounding_to_whole_packets_leaves_no_window_below_the_product() {
        let preset = PRESETS.iter().position(|preset| preset.name == "flowcut-evaluation").unwrap();
        let lone = Lone { family: 0, preset, gbps: 25, latency_ns: 350, mtu: 9000, packets: 100 };
        assert_eq!(lone.run(), (1.0, false));
    }
}
