//! Fields that change nothing.

use netloom_fabric::Queue;
use netloom_fabric::queue::trimming::Trimming;
use netloom_routing::Placement;
use netloom_routing::selector::estimator::Estimator;
use netloom_topology::Network;
use netloom_transport::shaping::Spacing;
use netloom_units::kind::Kind;

use crate::scenario::Scenario;

/// Packets of a flow that all have the same entropy value take the same path, whatever a scheme decides.
pub(super) fn one_entropy_value(scenario: &Scenario, network: &Network) -> Option<String> {
    let routing = &scenario.routing;
    let varies =
        routing.placement == Placement::Nic && routing.draws_entropy() && !routing.granularity.is_per_flow();
    (varies && routing.entropy_values == 1 && network.switches() > 1).then(|| {
        format!(
            "routing.entropy_values: with a single value all packets of a flow take one path, although \"{}\" would choose among several; give two or more",
            routing.granularity_name()
        )
    })
}

/// Fields that were set although others say that nothing looks at them.
pub(super) fn unread(scenario: &Scenario, network: &Network) -> Vec<String> {
    let Scenario { routing, transport, fabric, .. } = scenario;
    let usual = Scenario::default();
    let mut found = Vec::new();
    let mut note = |is_set: bool, is_read: bool, field: &str, why: &str| {
        found.extend((is_set && !is_read).then(|| format!("{field}: changes nothing, as {why}")));
    };
    note(
        routing.flow_timeout != usual.routing.flow_timeout,
        routing.ages(),
        "routing.flow_timeout",
        "switches remember no flows by this scheme, or no longer than the gap of a flowlet",
    );
    note(
        routing.entropy_values != usual.routing.entropy_values,
        routing.draws_entropy(),
        "routing.entropy_values",
        "this scheme draws none",
    );
    let by = format!("\"{}\" does not hash", routing.selector_name());
    note(routing.hash != usual.routing.hash, routing.hashes(), "routing.hash", &by);
    note(routing.salt != usual.routing.salt, routing.hashes(), "routing.salt", &by);
    if let Some(least) = routing.selector.least_loaded() {
        note(
            least.estimator != Estimator::default(),
            routing.estimator().is_some(),
            "routing.selector.estimator",
            "`by = \"queue\"` looks at queues alone",
        );
    }
    let by = match transport.reliability.facts().sack_bytes {
        Some(_) => format!(
            "no timer makes a receiver under \"{}\" send an ACK: `reliability.ack_bytes` says when one is due",
            transport.reliability.name()
        ),
        None => "every packet is acknowledged at once (`ack_every = 1`)".to_owned(),
    };
    note(
        transport.options.ack_delay != usual.transport.options.ack_delay,
        transport.options.ack_every > 1,
        "transport.ack_delay",
        &by,
    );
    if let Some(detection) = transport.reliability.facts().loss_detection {
        let may_lose = fabric.is_lossy() || !scenario.faults.is_empty();
        note(!detection.sack, may_lose, "transport.reliability.sack", "nothing is lost");
    }
    if let Spacing::Rate(rate) = transport.shaping.facts().spacing {
        let is_slower = (0..network.hosts()).any(|host| rate < network.host_rate(host));
        note(true, is_slower, "transport.shaping.rate", "no host's link is faster");
    }
    if let Queue::Trimming(trimming) = &fabric.queue {
        let usual = Trimming::default();
        let fields = [
            ("control_weight", trimming.control_weight != usual.control_weight),
            ("control_buffer", trimming.control_buffer.is_some()),
            ("return_to_sender", trimming.return_to_sender != usual.return_to_sender),
        ];
        for (field, is_set) in fields {
            let field = format!("fabric.queue.{field}");
            let why = "headers wait with data (`fabric.control_priority = false`)";
            note(is_set, fabric.options.control_priority, &field, why);
        }
    }
    found
}

/// A rate that no host's link allows is no ceiling.
pub(super) fn high_ceiling(scenario: &Scenario, network: &Network) -> Option<String> {
    let (field, most) = scenario.transport.congestion.facts().max_rate?;
    let line = (0..network.hosts()).map(|host| network.host_rate(host)).max()?;
    (most >= line).then(|| {
        format!("transport.congestion.{field}: changes nothing, as {most} is no less than the hosts' links, {line}")
    })
}
