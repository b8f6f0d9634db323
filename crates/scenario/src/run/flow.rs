//! What a run of flows does not have: refused where it would change what is measured, and else named as without effect.

use netloom_routing::Spread;

use super::problems::located;
use crate::detail::Detail;
use crate::document::{Node, Value};
use crate::scenario::Scenario;
use crate::source::Problems;

/// Refuses what only packets have, as far as the flow level's own crate does not know of it.
pub(super) fn check(scenario: &Scenario, document: &Node) -> Result<(), Problems> {
    if scenario.detail == Detail::Packets {
        return Ok(());
    }
    let is_region = matches!(scenario.detail, Detail::Region(_));
    let place = match is_region {
        true => "where all but a region is at the level of flows",
        false => "at the level of flows (detail = \"flow\")",
    };
    let refuse = |section: &str, field: &str, message: &str| {
        Err(located(document, section, field, &format!("{message} {place}")).into())
    };
    if scenario.fast.is_asked_for() {
        let why = match is_region {
            true => {
                "expected false, as links have other rates for packets whenever flows beside them begin or end,"
            }
            false => "expected false, as nothing is calculated packet by packet",
        };
        return refuse("fast", "", why);
    }
    if scenario.routing.max_flow_entries.is_some() {
        return refuse("routing", "max_flow_entries", "expected none, as switches forget no flow");
    }
    let network = document.at(["workload", "network"]).and_then(Node::as_str);
    if network.is_some_and(|network| network.starts_with("analytical")) {
        return refuse("workload", "network", "expected \"packets\", the network of the scenario,");
    }
    Ok(())
}

/// The fields of `fabric` and `transport` that the flow level goes by: what an idle path takes, and what is on the wire.
const USED: [&str; 9] = [
    "fabric.switch_latency",
    "fabric.cut_through",
    "transport.preset",
    "transport.mtu",
    "transport.header",
    "transport.ack_size",
    "transport.ack_every",
    "transport.handshake",
    "transport.subflows",
];

/// Names what is written and has no effect.
pub(super) fn warning(scenario: &Scenario, document: &Node) -> Option<String> {
    if scenario.detail != Detail::Flow {
        return None;
    }
    let mut written = Vec::new();
    for section in ["fabric", "transport"] {
        if let Some(Value::Table(table)) = document.at([section]).map(|node| &node.value) {
            written.extend(table.0.iter().map(|entry| format!("{section}.{}", entry.key)));
        }
    }
    // A selector's own fields say which paths there are, except where it only avoids congestion.
    let axes = match scenario.routing.spread() {
        Some(Spread::Levelled) => &["granularity", "selector"][..],
        _ => &["granularity"],
    };
    for axis in axes {
        if let Some(Value::Table(table)) = document.at(["routing", axis]).map(|node| &node.value) {
            let fields = table.0.iter().filter(|entry| entry.key != "kind");
            written.extend(fields.map(|entry| format!("routing.{axis}.{}", entry.key)));
        }
    }
    if document.at(["routing", "flow_timeout"]).is_some() {
        written.push("routing.flow_timeout".to_owned());
    }
    let has_class = |node: &Node| node.at(["class"]).is_some();
    if document.at(["workload"]).is_some_and(has_class) {
        written.push("workload.class".to_owned());
    }
    written.retain(|field| !USED.contains(&field.as_str()));
    (!written.is_empty()).then(|| {
        format!(
            "{}: without effect at the level of flows (detail = \"flow\"), which has no queues, no losses and no congestion control",
            written.join(", ")
        )
    })
}
