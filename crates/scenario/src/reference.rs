//! Everything a user may write, as a reference: axes with their kinds, presets, and the tables without kinds.

use netloom_fabric::{FabricOptions, FlowControl, Queue};
use netloom_routing::preset as routing;
use netloom_routing::selector::layer::Construction;
use netloom_routing::selector::ugal::{self, Decision};
use netloom_routing::{Granularity, Selector};
use netloom_sim::{Fault, Measure};
use netloom_topology::Topology;
use netloom_transport::preset as transport;
use netloom_transport::{Congestion, Reliability, Reorder, Shaping, TransportOptions};
use netloom_units::Bytes;
use netloom_units::kind::{Kind, KindInfo, describe, describe_table};
use netloom_workload::{Job, Options, Pattern, PlanContext, Servers, Size, Straggler, Table, clusters};

use crate::routing::RoutingFields;

/// A part of the reference.
#[derive(Clone, Debug)]
pub struct Chapter {
    /// In what it is written: a `scenario`, a `study`, the `options` of a command.
    pub file: &'static str,
    /// Its name, e.g. `selector`.
    pub name: &'static str,
    /// Where it is written there, e.g. `routing.selector`; empty for what stands in no table.
    pub path: &'static str,
    /// What it decides.
    pub doc: &'static str,
    /// Whether one of the entries is chosen by `kind`, or by `preset`; otherwise the one entry is a plain table.
    pub choice: Option<&'static str>,
    /// The entries.
    pub entries: Vec<KindInfo>,
}

/// What scenarios are called in a [`Chapter`].
const FILE: &str = "scenario";

/// The whole reference, in the order of a scenario.
pub fn reference() -> Vec<Chapter> {
    vec![
        head(),
        cluster_presets(),
        axis::<Topology>("topology", "The network: switches, hosts and links."),
        table::<Servers>(
            "servers",
            "servers",
            "Servers with several NICs, and how messages use them. Without this table each host has one NIC.",
        ),
        table::<FabricOptions>("fabric", "fabric", "What a switch does: queues, classes, marking."),
        axis::<Queue>("fabric.queue", "What happens to a packet that finds its output queue full."),
        axis::<FlowControl>("fabric.flow_control", "What happens when buffers fill."),
        routing_presets(),
        table::<RoutingFields>(
            "routing",
            "routing",
            "Fields of a routing scheme other than its granularity and selector.",
        ),
        axis::<Granularity>("routing.granularity", "When a scheme may choose another path."),
        axis::<Selector>("routing.selector", "How a scheme chooses among the candidate ports or paths."),
        axis::<Construction>(
            "routing.selector.construction",
            "How the layers of the selector `layer` are made.",
        ),
        axis::<Decision>("routing.selector.decision", "How the selector `ugal` compares two paths."),
        axis::<ugal::Queue>("routing.selector.queue", "Which load the selector `ugal` compares."),
        transport_presets(),
        table::<TransportOptions>(
            "transport",
            "transport",
            "What a host does: sizes, acknowledgement, timeouts.",
        ),
        axis::<Reliability>("transport.reliability", "How losses and reordering are handled."),
        axis::<Congestion>(
            "transport.congestion",
            "How much a flow may have in flight, or how fast it may send.",
        ),
        axis::<Shaping>("transport.shaping", "How packets are spaced in time."),
        axis::<Reorder>(
            "transport.reorder",
            "What a host does with packets that arrive out of order, before the transport sees them.",
        ),
        axis::<Pattern>("workload", "Who sends what to whom, and when."),
        table::<Options>("workload-options", "workload", "Fields that every workload has."),
        sizes(),
        table::<Job>(
            "jobs",
            "jobs",
            "Jobs: workloads that end, each on its own ranks; each `[[jobs]]` table is one job.",
        ),
        table::<Straggler>(
            "stragglers",
            "jobs.stragglers",
            "Ranks of a job that calculate more slowly than its program says.",
        ),
        axis::<Fault>(
            "faults",
            "Links and switches that fail, lose packets or slow down; each `[[faults]]` table is one fault.",
        ),
        table::<Measure>("measure", "measure", "What to measure, and when the run ends."),
    ]
}

/// What stands before all tables.
fn head() -> Chapter {
    let fields = crate::schema::head();
    let table =
        serde_json::json!({ "properties": fields, "description": "Fields of a scenario before its tables." });
    let doc = "The name of a scenario, the seed of its random choices, whether what recurs is skipped, and the level of detail.";
    Chapter {
        file: FILE,
        name: "scenario",
        path: "",
        doc,
        choice: None,
        entries: vec![describe_table("scenario", &table)],
    }
}

fn axis<K: Kind>(path: &'static str, doc: &'static str) -> Chapter {
    Chapter { file: FILE, name: K::AXIS, path, doc, choice: Some("kind"), entries: K::kinds() }
}

fn table<T: schemars::JsonSchema>(name: &'static str, path: &'static str, doc: &'static str) -> Chapter {
    Chapter { file: FILE, name, path, doc, choice: None, entries: vec![describe::<T>(name)] }
}

fn routing_presets() -> Chapter {
    let doc = "Which path a packet takes: published schemes by name, each a combination of placement, granularity and selector.";
    presets("routing", doc, routing::PRESETS.iter().map(|preset| (preset.name, preset.doc)))
}

fn cluster_presets() -> Chapter {
    let doc = "GPU clusters by name: each sets `topology` and `servers`, below what the scenario says of both. `cluster = \"…\"` is short for the table.";
    presets("cluster", doc, clusters::PRESETS.iter().map(|preset| (preset.name, preset.doc)))
}

fn transport_presets() -> Chapter {
    let doc = "What a host does: transports by name, each a combination of reliability, congestion control and shaping.";
    presets("transport", doc, transport::PRESETS.iter().map(|preset| (preset.name, preset.doc)))
}

fn presets(
    path: &'static str,
    doc: &'static str,
    presets: impl Iterator<Item = (&'static str, &'static str)>,
) -> Chapter {
    let entries = presets.map(|(name, doc)| KindInfo { name, doc: doc.to_owned(), fields: Vec::new() });
    Chapter { file: FILE, name: "preset", path, doc, choice: Some("preset"), entries: entries.collect() }
}

/// The published distributions of message sizes.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "positive, and less than the largest message"
)]
fn sizes() -> Chapter {
    let entry = |table: &Table| {
        let mean = Size::from(*table).mean(&PlanContext::new(0)).unwrap_or_default();
        // Three digits are what the figures of the papers let one read.
        let mean = Bytes((mean / 1000.0).round() as u64 * 1000);
        let doc = format!("{}. Mean {mean}.", table.source().trim_end_matches('.'));
        KindInfo { name: table.name(), doc, fields: Vec::new() }
    };
    let entries = Table::ALL.iter().map(entry).collect();
    let doc = "How large messages are: the published distributions that a workload's `size` may name.";
    Chapter { file: FILE, name: "size", path: "workload", doc, choice: Some("size"), entries }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_in_the_reference_says_what_it_is() {
        for chapter in reference() {
            assert!(!chapter.entries.is_empty(), "{}", chapter.name);
            for entry in &chapter.entries {
                assert!(!entry.doc.is_empty(), "{} {}", chapter.name, entry.name);
                for field in &entry.fields {
                    assert!(!field.doc.is_empty(), "{} {} {}", chapter.name, entry.name, field.name);
                }
            }
        }
    }
}
