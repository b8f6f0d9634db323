//! Signals of congestion and of losses that are needed and never come, or that come and are not understood.

use netloom_topology::Network;
use netloom_transport::congestion::{Marks, SlowedBy};
use netloom_units::Bytes;
use netloom_units::kind::Kind;

use crate::scenario::Scenario;

/// ConWeave learns which paths are busy from marks.
pub(super) fn conweave_without_ecn(scenario: &Scenario) -> Option<String> {
    (scenario.routing.uses_conweave() && scenario.fabric.options.ecn.is_none()).then(|| {
        "routing.granularity: conweave finds busy paths by marks, and no switch marks; set `fabric.ecn`"
            .to_owned()
    })
}

/// Without trimming only timeouts show the sender a loss.
pub(super) fn trimmed_without_trimming(scenario: &Scenario) -> Option<String> {
    let is_blind = scenario.transport.reliability.facts().relies_on_trimming
        && scenario.fabric.is_lossy()
        && !scenario.fabric.queue.trims();
    is_blind.then(|| {
        format!(
            "transport.reliability: \"{}\" learns of losses from trimmed packets, and no switch trims, so that only timeouts find them; set \
             `fabric.queue = \"trimming\"`",
            scenario.transport.reliability.name()
        )
    })
}

/// Go-back-N takes nothing that does not come in order, and packets that take several ways at once do not.
pub(super) fn scattered_go_back_n(scenario: &Scenario, network: &Network) -> Option<String> {
    let transport = &scenario.transport;
    let by_port = scenario.servers.as_ref().and_then(|servers| servers.bond);
    let by_port = by_port.map(|bond| bond.port_selection).filter(|selection| selection.is_per_packet());
    let who = match by_port {
        Some(selection) => format!("servers.bond.port_selection \"{}\"", selection.name()),
        None => format!("routing.granularity \"{}\"", scenario.routing.granularity_name()),
    };
    let is_hurt = (scenario.routing.scatters() || by_port.is_some())
        && network.switches() > 1
        && transport.reliability.facts().takes.is_in_order()
        && !transport.options.reorder.holds();
    is_hurt.then(|| {
        format!(
            "transport.reliability: \"{}\" discards packets that come before others of their flow, and {who} sends a \
             flow's packets over several ways at once; set `transport.reorder = \"buffer\"` (the preset \"left\"), or another reliability",
            transport.reliability.name(),
        )
    })
}

/// Marks are the only signal of congestion, besides losses, of some congestion controls.
pub(super) fn expected_marks(scenario: &Scenario) -> Option<String> {
    let facts = scenario.transport.congestion.facts();
    let lacks_marks = facts.marks == Marks::Expected && scenario.fabric.options.ecn.is_none();
    lacks_marks.then(|| {
        format!(
            "transport.congestion: {} reacts to ECN marks, and no switch marks; set `fabric.ecn`",
            facts.title
        )
    })
}

/// The thresholds of marking that no queue exceeds, each with the room of a queue.
fn unreachable_thresholds(scenario: &Scenario) -> (Vec<(String, Bytes)>, Option<Bytes>) {
    let options = &scenario.fabric.options;
    let room = scenario.fabric.queue_room(scenario.transport.clone().on_the_wire().packet_size());
    let own = options.ecn_by_rate.iter().enumerate();
    let own = own.map(|(i, ecn)| (format!("fabric.ecn_by_rate.{i}.kmin"), ecn.kmin));
    let usual = options.ecn.iter().map(|ecn| ("fabric.ecn.kmin".to_owned(), ecn.kmin));
    let unreachable = usual.chain(own).filter(|(_, kmin)| room.is_some_and(|room| *kmin >= room));
    (unreachable.collect(), room)
}

/// A queue marks when more than `kmin` wait, and no more wait than there is room for.
pub(super) fn impossible_marks(scenario: &Scenario) -> Option<String> {
    let (unreachable, room) = unreachable_thresholds(scenario);
    let (room, (_, kmin)) = (room?, unreachable.first()?);
    let fields: Vec<&str> = unreachable.iter().map(|(field, _)| field.as_str()).collect();
    Some(format!(
        "{}: {kmin} is as much as a queue holds ({room}), or more: no packet is ever marked there",
        fields.join(", ")
    ))
}

/// With go-back-N every trimmed packet is sent again with all that follow. If only marks slow a flow down, and none come, it may go on so
/// for ever. Otherwise much is sent twice, above all where headers overtake data that is on its way.
pub(super) fn trimmed_go_back_n(scenario: &Scenario) -> Option<String> {
    let Scenario { fabric, transport, .. } = scenario;
    if !fabric.queue.trims() || !transport.reliability.facts().takes.is_in_order() {
        return None;
    }
    let thresholds = usize::from(fabric.options.ecn.is_some()) + fabric.options.ecn_by_rate.len();
    let never_marks = unreachable_thresholds(scenario).0.len() == thresholds;
    let slowed_by = transport.congestion.facts().slowed_by;
    // Telemetry of queues that are short, as they trim, shows nothing to slow down for.
    let has_telemetry = transport.congestion.facts().telemetry.is_some();
    let slows_down = !has_telemetry
        && match slowed_by {
            SlowedBy::Nothing => false,
            SlowedBy::Marks => !never_marks,
            SlowedBy::MoreThanMarks => true,
        };
    if slows_down {
        let overtaking = match fabric.options.control_priority {
            true => {
                ", the more so as headers overtake the data that wait in queues (fabric.control_priority)"
            }
            false => "",
        };
        return Some(format!(
            "transport.reliability: \"{}\" sends every trimmed packet again with all that follow{overtaking}: much is sent twice; set \
             `fabric.queue = \"tail-drop\"`, or `transport.reliability = \"trimmed\"`",
            transport.reliability.name()
        ));
    }
    Some(format!(
        "transport.reliability: \"{}\" sends every trimmed packet again with all that follow, and \"{}\" slows no flow down for that{}, so \
             that flows may make no progress; set `transport.reliability = \"trimmed\"`, or `fabric.queue = \"tail-drop\"`",
        transport.reliability.name(),
        transport.congestion.name(),
        if slowed_by == SlowedBy::Marks { " without marks" } else { "" }
    ))
}
