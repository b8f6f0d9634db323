//! What schemes answer when other parts of netloom ask what they need and do, and which combinations of the three axes are refused in which words:
//! written down, so that an answer that changes shows here.

use std::collections::BTreeMap;
use std::path::Path;

use netloom_routing::preset::PRESETS;
use netloom_routing::selector::estimator::Estimator;
use netloom_routing::{Granularity, Placement, Routing, Selector};
use netloom_units::Time;
use netloom_units::kind::Kind;
use serde::Serialize;

const PLACEMENTS: [Placement; 3] = [Placement::Nic, Placement::Ingress, Placement::Switch];

fn assert_written_down(name: &str, found: &impl Serialize) {
    let found = serde_json::to_string_pretty(found).unwrap() + "\n";
    let expected = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name);
    let changed = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("routing-{name}"));
    std::fs::write(&changed, &found).unwrap();
    let same = std::fs::read_to_string(&expected).is_ok_and(|expected| expected == found);
    assert!(
        same,
        "{} is another one than {}: if that is meant, copy it there",
        changed.display(),
        expected.display()
    );
}

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

const QUESTIONS: [Question; 25] = [
    ("needs a tree", Routing::needs_tree),
    ("needs credits", Routing::needs_credits),
    ("uses ACKs", Routing::uses_acks),
    ("needs every ACK", Routing::needs_every_ack),
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
