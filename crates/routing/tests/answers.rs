//! What schemes answer when other parts of netloom ask what they need and do, and which combinations of the three axes are refused in which words:
//! written down, so that an answer that changes shows here.

mod common;

use std::collections::BTreeMap;

use common::assert_written_down;
use netloom_routing::preset::PRESETS;
use netloom_routing::selector::estimator::Estimator;
use netloom_routing::{Granularity, Placement, Routing, Selector};
use netloom_units::Time;
use netloom_units::kind::Kind;

const PLACEMENTS: [Placement; 3] = [Placement::Nic, Placement::Ingress, Placement::Switch];

/// All presets, and what they become elsewhere, where that makes sense.
fn schemes() -> Vec<(String, Routing)> {
    let mut schemes = Vec::new();
    for preset in PRESETS {
        let own = preset.routing();
        for placement in PLACEMENTS {
            let scheme = Routing { placement, ..own.clone() };
            if placement == own.placement {
                schemes.push((preset.name.to_owned(), scheme));
            } else if scheme.check().is_ok() {
                schemes.push((format!("{} at {}", preset.name, placement.name()), scheme));
            }
        }
    }
    // Presets that differ from others in what they ask of the fabric by one parameter only.
    for (preset, selector, table) in [
        ("adaptive", "least-loaded", serde_json::json!({ "by": "rate" })),
        ("ugal-l", "ugal", serde_json::json!({ "load": "credits" })),
        ("fatpaths", "layer", serde_json::json!({ "acks": "minimal" })),
        ("fatpaths", "layer", serde_json::json!({ "first": "random" })),
        ("switch-ar", "switch-ar", serde_json::json!({ "uncongested": "hash" })),
    ] {
        let own = PRESETS.iter().find(|scheme| scheme.name == preset).unwrap().routing();
        let scheme = Routing { selector: Selector::read(selector, &table).unwrap().unwrap(), ..own };
        assert_eq!(scheme.check(), Ok(()));
        schemes.push((format!("{preset} with {table}"), scheme));
    }
    schemes
}

/// A question that schemes answer by yes or no.
type Question = (&'static str, fn(&Routing) -> bool);

const QUESTIONS: [Question; 27] = [
    ("needs a tree", Routing::needs_tree),
    ("needs credits", Routing::needs_credits),
    ("uses ACKs", Routing::uses_acks),
    ("needs every ACK", Routing::needs_every_ack),
    ("uses serialisation", Routing::uses_serialisation),
    ("sends probes", Routing::sends_probes),
    ("uses marks", Routing::uses_marks),
    ("uses trims", Routing::uses_trims),
    ("scatters", Routing::scatters),
    ("leaves paths", Routing::leaves_paths),
    ("leaves dead paths", |scheme| scheme.leaves_dead_paths(false)),
    ("leaves dead paths with subflows", |scheme| scheme.leaves_dead_paths(true)),
    ("answers leave paths", |scheme| scheme.answers_leave_paths(false)),
    ("answers leave paths with subflows", |scheme| scheme.answers_leave_paths(true)),
    ("draws first paths only", Routing::draws_first_paths_only),
    ("estimates rates", |scheme| scheme.estimator().is_some()),
    ("draws entropy", Routing::draws_entropy),
    ("hashes", Routing::hashes),
    ("ages", Routing::ages),
    ("has edges", Routing::has_edges),
    ("re-routes by ConWeave's epochs", Routing::uses_conweave),
    ("reports as CONGA", |scheme| scheme.conga().is_some()),
    ("decides per flow", |scheme| scheme.granularity.is_per_flow()),
    ("decides per packet", |scheme| scheme.granularity.is_per_packet()),
    ("keeps its path", |scheme| scheme.granularity.keeps_path()),
    ("is static", |scheme| scheme.selector.is_static()),
    ("is uniform", |scheme| scheme.selector.is_uniform()),
];

#[test]
fn answers_are_what_is_written_down() {
    let schemes = schemes();
    let mut answers = BTreeMap::new();
    for (question, answer) in QUESTIONS {
        let yes = schemes.iter().filter(|(_, scheme)| answer(scheme)).map(|(name, _)| name.as_str());
        answers.insert(question, yes.collect::<Vec<_>>());
        assert!(answers[question].len() < schemes.len(), "some scheme answers \"{question}\" by no");
    }
    assert_written_down("answers.json", &answers);
}

#[test]
fn what_schemes_go_by_is_told_with_its_numbers() {
    let of = |name: &str| PRESETS.iter().find(|preset| preset.name == name).unwrap().routing();
    let estimator = |name| of(name).estimator().map(|Estimator { period, discount }| (*period, *discount));
    assert_eq!(estimator("conga"), Some((Time::from_us(16), 0.1)));
    assert_eq!(estimator("conga-rdma"), Some((Time::from_us(50), 0.2)));
    assert_eq!(estimator("spray"), None);
    let global =
        Selector::read("ugal", serde_json::json!({ "queue": { "kind": "global", "period": "3us" } }));
    let global = Routing { selector: global.unwrap().unwrap(), ..of("ugal-l") };
    assert_eq!((global.report_period(), of("ugal-l").report_period()), (Some(Time::from_us(3)), None));
    let asks = |name| of(name).asks_for_tree();
    assert_eq!(asks("d-mod-k"), ("selector", "\"d-mod-k\"".to_owned()));
    assert_eq!(asks("conweave"), ("granularity", "\"conweave\"".to_owned()));
    assert_eq!(asks("presto"), ("selector", "\"round-robin\" of path labels at the NIC".to_owned()));
}

/// Every granularity with every selector at every place, with the defaults of both; in each line those that are refused alike.
#[test]
fn refusals_are_what_is_written_down() {
    let mut refusals: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let by_name = |name: &&'static str| {
        let table = serde_json::json!({});
        (*name, Granularity::read(name, table).unwrap().unwrap())
    };
    for (granularity, config) in Granularity::NAMES.iter().map(by_name) {
        for placement in PLACEMENTS {
            let mut alike: BTreeMap<String, Vec<&str>> = BTreeMap::new();
            for name in Selector::NAMES {
                let selector = Selector::read(name, serde_json::json!({})).unwrap().unwrap();
                let granularity = config.clone();
                let scheme = Routing { placement, granularity, selector, ..PRESETS[0].routing() };
                let answer = match scheme.check() {
                    Ok(()) if Routing { max_flow_entries: Some(9), ..scheme.clone() }.check().is_ok() => {
                        "taken, also with a bounded table of flows".to_owned()
                    }
                    Ok(()) => "taken".to_owned(),
                    Err(refusal) => refusal.to_string(),
                };
                alike.entry(answer).or_default().push(name);
            }
            for (answer, selectors) in alike {
                let line = format!("{granularity} at {}: {}", placement.name(), selectors.join(", "));
                refusals.entry(answer).or_default().push(line);
            }
        }
    }
    assert_written_down("refusals.json", &refusals);
}

/// Values on either side of the bounds of parameters: the preset, the axis, and what is taken and what is refused there.
#[test]
fn parameters_have_their_bounds() {
    let refusal = |preset: &str, axis: &str, table: &serde_json::Value| {
        let mut scheme = PRESETS.iter().find(|own| own.name == preset).unwrap().routing();
        if axis == "granularity" {
            scheme.granularity = Granularity::read(scheme.granularity_name(), table).unwrap().unwrap();
        } else {
            scheme.selector = Selector::read(scheme.selector_name(), table).unwrap().unwrap();
        }
        scheme.check().err().map(|invalid| invalid.field.into_owned())
    };
    let bounds = serde_json::json!([
        ["letflow", "granularity", "gap", [{ "gap": "0ps" }, { "gap": "1ps", "age_bit": true }], [{ "gap": "0ps", "age_bit": true }]],
        ["presto", "granularity", "size", [{ "size": "1B" }], [{ "size": "0B" }]],
        ["flowcut-nic", "granularity", "threshold", [{ "threshold": 1.0 }], [{ "threshold": 0.99 }]],
        ["flowcut-nic", "granularity", "alpha", [{ "alpha": 1.0 }, { "alpha": 0.01 }], [{ "alpha": 0.0 }, { "alpha": 1.01 }]],
        ["flowcut-nic", "granularity", "beta", [{ "beta": 1.0, "trend_threshold": 0.1 }], [{ "beta": 0.5 }, { "beta": 0.0, "trend_threshold": 0.1 }]],
        ["flowcut-nic", "granularity", "trend_threshold", [{ "trend_threshold": 0.1 }], [{ "trend_threshold": 0.0 }, { "trend_threshold": -1.0 }]],
        ["flowcut-nic", "granularity", "drain_timeout", [{ "drain_timeout": "1ps" }], [{ "drain_timeout": "0ps" }]],
        ["flowcut", "granularity", "ack_size", [{ "ack_size": "1B" }, { "ack_size": "65535B" }], [{ "ack_size": "0B" }, { "ack_size": "65536B" }]],
        ["flowcut", "granularity", "credit", [{ "credit": 1 }, { "credit": 0, "pauses": "class" }], [{ "credit": 1, "pauses": "class" }]],
        ["conweave", "granularity", "samples", [{ "samples": 1 }], [{ "samples": 0 }]],
        ["conweave", "granularity", "flush_default", [{ "flush_default": "1ps" }], [{ "flush_default": "0ps" }]],
        ["conweave", "granularity", "inactive", [{ "inactive": "1ps" }], [{ "inactive": "0ps" }]],
        ["flowbender", "granularity", "threshold", [{ "threshold": 0.0 }, { "threshold": 0.99 }], [{ "threshold": 1.0 }, { "threshold": -0.01 }]],
        ["plb", "granularity", "threshold", [{ "threshold": 0.0 }, { "threshold": 1.0 }], [{ "threshold": 1.01 }, { "threshold": -0.01 }]],
        ["plb", "granularity", "idle_rounds", [{ "idle_rounds": 1 }, { "idle_rounds": 12 }], [{ "idle_rounds": 0 }, { "idle_rounds": 13 }]],
        ["plb-htsim", "granularity", "target", [{ "target": "1ps" }], [{ "target": "0ps" }]],
        ["plb-htsim", "granularity", "first", [{ "first": "1ps" }], [{ "first": "0ps" }]],
        ["plb-htsim", "granularity", "most", [{ "most": 5 }], [{ "most": 4 }]],
        ["reps", "granularity", "buffer", [{ "buffer": 1 }, { "buffer": 1024 }], [{ "buffer": 0 }, { "buffer": 1025 }]],
        ["reps", "granularity", "freeze", [{ "freeze": "1ps" }], [{ "freeze": "0ps" }]],
        ["path-list", "granularity", "paths", [{ "paths": 1 }, { "paths": 1024 }], [{ "paths": 0 }, { "paths": 1025 }]],
        ["path-list", "granularity", "penalty", [{ "penalty": 1.0 }], [{ "penalty": 0.99 }]],
        ["uet-mixed", "granularity", "paths", [{ "paths": 1 }, { "paths": 1024 }], [{ "paths": 0 }, { "paths": 1025 }]],
        ["uet-bitmap", "granularity", "most", [{ "most": 4 }], [{ "most": 0, "mark": 0, "trim": 0 }]],
        ["uet-bitmap", "granularity", "mark", [{ "mark": 15 }], [{ "mark": 16 }]],
        ["uet-bitmap", "granularity", "trim", [{ "trim": 0 }], [{ "trim": 16 }]],
        ["spray-round-robin", "selector", "reshuffle", [{ "reshuffle": 1 }], [{ "reshuffle": 0 }]],
        ["drill", "selector", "samples", [{ "samples": 1 }], [{ "samples": 0 }]],
        ["drill", "selector", "memory", [{ "memory": 0 }, { "memory": 4 }], [{ "memory": 5 }]],
        ["conga", "selector", "bits", [{ "bits": 1 }, { "bits": 4 }], [{ "bits": 0 }, { "bits": 5 }]],
        ["conga", "selector", "ageing", [{ "ageing": "1ps" }], [{ "ageing": "0ps" }]],
        ["conga", "selector", "candidates", [{ "candidates": 1 }], [{ "candidates": 0 }]],
        ["conga", "selector", "estimator.discount", [{ "estimator": { "period": "1us", "discount": 1.0 } }],
            [{ "estimator": { "period": "1us", "discount": 0.0 } }, { "estimator": { "period": "1us", "discount": 1.01 } }]],
        ["conga", "selector", "estimator.period", [{ "estimator": { "period": "1ps", "discount": 0.1 } }], [{ "estimator": { "period": "0ps", "discount": 0.1 } }]],
        ["adaptive", "selector", "levels", [{ "levels": ["1B", "2B"] }, { "levels": ["1B"], "by": "both" }],
            [{ "levels": ["0B"] }, { "levels": ["2B", "2B"] }, { "levels": ["1B"], "by": "rate" }]],
        ["adaptive", "selector", "refresh", [{ "refresh": "1ps" }, { "refresh": "0ps", "by": "rate" }], [{ "refresh": "1ps", "by": "rate" }]],
        ["switch-ar", "selector", "ageing", [{ "ageing": "1ps" }], [{ "ageing": "0ps" }]],
        ["switch-ar-stable", "selector", "margin", [{ "margin": 1 }], [{ "margin": 0 }]],
        ["switch-ar-stable", "selector", "ageing", [{ "ageing": "1ps" }], [{ "ageing": "0ps" }]],
        ["switch-ar-fractional", "selector", "gain", [{ "gain": 1.0 }, { "gain": 0.01 }], [{ "gain": 0.0 }, { "gain": 1.01 }]],
        ["switch-ar-fractional", "selector", "recovery", [{ "recovery": "2us" }], [{ "recovery": "1us" }]],
        ["k-shortest", "selector", "k", [{ "k": 1 }, { "k": 1024 }], [{ "k": 0 }, { "k": 1025 }]],
        ["ugal-l", "selector", "minimal", [{ "minimal": 1 }], [{ "minimal": 0 }]],
        ["ugal-l", "selector", "one_group", [{ "one_group": true, "non_minimal": 2 }], [{ "one_group": true, "non_minimal": 1 }]],
        ["ugal-l", "selector", "decision.ratio", [{ "decision": { "kind": "ratio", "ratio": 1, "bias": "0B" } }], [{ "decision": { "kind": "ratio", "ratio": 0, "bias": "0B" } }]],
        ["ugal-l", "selector", "queue.period", [{ "queue": { "kind": "global", "period": "1ps" } }], [{ "queue": { "kind": "global", "period": "0ps" } }]],
        ["fatpaths", "selector", "within_layer", [{ "within_layer": "ecmp" }, { "construction": { "kind": "spain" } }],
            [{ "within_layer": "ecmp", "construction": { "kind": "spain" } }, { "within_layer": "ecmp", "construction": { "kind": "past" } }]],
        ["fatpaths", "selector", "construction.file", [{ "construction": { "kind": "file", "file": "x" } }], [{ "construction": { "kind": "file" } }]]
    ]);
    for bound in bounds.as_array().unwrap() {
        let [preset, axis, field] = [0, 1, 2].map(|place| bound[place].as_str().unwrap());
        for table in bound[3].as_array().unwrap() {
            assert_eq!(refusal(preset, axis, table), None, "{preset} takes {table}");
        }
        for table in bound[4].as_array().unwrap() {
            assert_eq!(
                refusal(preset, axis, table),
                Some(format!("{axis}.{field}")),
                "{preset} refuses {table}"
            );
        }
    }
    // Of the scheme itself.
    let own = PRESETS.iter().find(|own| own.name == "letflow").unwrap().routing();
    let refusal = |scheme: Routing| scheme.check().err().map(|invalid| invalid.field.into_owned());
    assert_eq!(
        refusal(Routing {
            entropy_values: 1,
            max_flow_entries: Some(1),
            flow_timeout: Time(1),
            ..own.clone()
        }),
        None
    );
    assert_eq!(refusal(Routing { entropy_values: 0, ..own.clone() }).as_deref(), Some("entropy_values"));
    assert_eq!(
        refusal(Routing { max_flow_entries: Some(0), ..own.clone() }).as_deref(),
        Some("max_flow_entries")
    );
    assert_eq!(refusal(Routing { flow_timeout: Time::ZERO, ..own }).as_deref(), Some("flow_timeout"));
}

#[test]
fn options_of_flowcut_have_the_places_at_which_they_mean_something() {
    let nic = "flowcut-nic";
    let own = PRESETS.iter().find(|own| own.name == nic).unwrap().routing();
    for (table, places) in [
        (serde_json::json!({ "measured_at": "every" }), "switch"),
        (serde_json::json!({ "max_ood": 1 }), "nic ingress"),
        (serde_json::json!({ "ack_size": "21B" }), "ingress switch"),
        (serde_json::json!({ "frame_size": "65B" }), "ingress switch"),
        (serde_json::json!({ "pauses": "class" }), "ingress switch"),
        (serde_json::json!({ "credit": 1 }), "ingress switch"),
        (serde_json::json!({ "keep_idle": true }), "nic"),
        (serde_json::json!({ "reset": false }), "nic"),
        (serde_json::json!({ "rtt_min_per_flow": true }), "nic"),
        (serde_json::json!({ "rtt_min_start": "analytic" }), "nic"),
        (serde_json::json!({ "drain_tail": true }), "nic"),
        (serde_json::json!({ "alpha": 0.5 }), "nic ingress switch"),
    ] {
        let granularity = Granularity::read("flowcut", &table).unwrap().unwrap();
        let taken = PLACEMENTS.into_iter().filter(|&placement| {
            let scheme = Routing { placement, granularity: granularity.clone(), ..own.clone() };
            let counts = scheme.counted_flowcuts().is_some();
            assert_eq!(counts, placement != Placement::Nic, "NICs count nothing");
            scheme.check().is_ok()
        });
        assert_eq!(taken.map(Placement::name).collect::<Vec<_>>().join(" "), places, "{table}");
        let scheme =
            Routing { placement: Placement::Ingress, granularity, max_flow_entries: Some(9), ..own.clone() };
        let refused = scheme.check().err().map(|refusal| refusal.field);
        assert_eq!(
            refused.is_none(),
            places.contains("ingress") && table.get("max_ood").is_none(),
            "{table}"
        );
    }
}
