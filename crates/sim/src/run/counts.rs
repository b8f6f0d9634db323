//! What schemes and receivers count of themselves.

use std::collections::BTreeMap;

use netloom_record::{ConWeaveCount, DecisionCount, EntryCount, ReorderingCount};
use netloom_routing::{Decisions, Placement};
use netloom_units::Time;

use crate::node::Node;
use crate::world::World;

/// How many flows the switches counted, where they count any.
pub(crate) fn count_entries(nodes: &[Node], end: Time) -> Option<EntryCount> {
    let occupancy = |node: &Node| match node {
        Node::Switch(switch) => switch.path_selector.occupancy(),
        _ => None,
    };
    let tables: Vec<_> = nodes.iter().filter_map(occupancy).collect();
    let used: Vec<_> = tables.iter().filter(|table| table.peak > 0).collect();
    let mean = used.iter().map(|table| table.mean(end)).sum::<f64>() / used.len().max(1) as f64;
    let peak = used.iter().map(|table| table.peak as u64).max().unwrap_or(0);
    (!tables.is_empty()).then_some(EntryCount { switches: used.len() as u64, peak, mean })
}

/// What ConWeave did, where it is at work.
pub(crate) fn count_conweave(nodes: &[Node], end: Time) -> Option<ConWeaveCount> {
    let mut all: Option<ConWeaveCount> = None;
    let mut holding = 0;
    for node in nodes {
        let Node::Switch(switch) = node else { continue };
        let counts = switch.path_selector.conweave_counts()?;
        let all = all.get_or_insert_default();
        all.late_replies += counts.late;
        all.reroutes += counts.reroutes;
        all.flushes += counts.flushes;
        all.held_bytes_peak = all.held_bytes_peak.max(switch.protocols.edge_signals.bytes.peak);
        all.held_bytes_mean += switch.protocols.edge_signals.bytes.mean(end);
        holding += u32::from(switch.protocols.edge_signals.bytes.peak > 0);
    }
    if let Some(all) = &mut all {
        all.held_bytes_mean /= f64::from(holding.max(1));
    }
    all
}

/// What receivers made of packets that did not come in order.
pub(crate) fn count_reordering(nodes: &[Node], end: Time) -> ReorderingCount {
    let mut all = ReorderingCount::default();
    let (mut holding, mut taking) = (0, 0);
    for node in nodes {
        let Node::Host(host) = node else { continue };
        let Some(reordering) = host.reordering() else { continue };
        all.nacks += reordering.nacks;
        all.duplicates += reordering.duplicates;
        all.refused += reordering.refused;
        all.overflows += reordering.overflows;
        all.timeouts += reordering.timeouts;
        let (taken, buffer) = (&reordering.taken, &reordering.buffer);
        all.resequencing_packets_peak = all.resequencing_packets_peak.max(taken.peak);
        all.resequencing_packets_mean += taken.mean(end);
        all.buffer_bytes_peak = all.buffer_bytes_peak.max(buffer.peak);
        all.buffer_bytes_mean += buffer.mean(end);
        taking += u32::from(taken.peak > 0);
        holding += u32::from(buffer.peak > 0);
    }
    all.resequencing_packets_mean /= f64::from(taking.max(1));
    all.buffer_bytes_mean /= f64::from(holding.max(1));
    all
}

/// Decisions per selector: those of switches, or those of NICs.
pub(crate) fn count_decisions(
    world: &World,
    by_nics: DecisionCount,
    switching: Decisions,
) -> BTreeMap<String, DecisionCount> {
    let count = match world.routing.placement {
        Placement::Nic => by_nics,
        Placement::Ingress | Placement::Switch => {
            DecisionCount { taken: switching.taken, non_default: switching.deviating }
        }
    };
    [(world.routing.selector_name().to_owned(), count)].into()
}
