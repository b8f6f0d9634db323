//! What a kind goes with: every other choice that matters to it, tried.
//!
//! A combination is checked as `netloom run` checks a scenario before it begins, on a small network. So what a page says of it is what netloom
//! does, and a refusal is quoted in the words that a user would see.

use std::fmt::Write as _;

use netloom_routing::preset as routing;
use netloom_routing::{Granularity, Selector};
use netloom_scenario::{Chapter, Node, Scenario, Source, apply_override, check};
use netloom_transport::preset as transport;
use netloom_transport::{Congestion, Reliability, Reorder, Shaping};
use netloom_units::kind::{Kind, KindInfo};

use super::markdown::cell;

/// Small networks of every sort. The default workload, a permutation, fits all of them.
const NETWORKS: [&str; 5] = [
    "topology={kind=\"fat-tree\",k=4}",
    "topology={kind=\"slim-fly\",q=5}",
    "topology={kind=\"dragonfly\",hosts_per_switch=2}",
    "topology={kind=\"hyperx\",dimensions=2,switches_per_dimension=[4]}",
    "topology={kind=\"jellyfish\",switches=16,degree=4}",
];

/// A small network of each family.
const FAMILIES: [&str; 16] = [
    "topology={kind=\"fat-tree\",k=4}",
    "topology={kind=\"xgft\",m=[2,2],w=[1,2]}",
    "topology={kind=\"leaf-spine\",leaves=4,spines=2,hosts_per_leaf=2}",
    "topology={kind=\"k-ary-n-tree\",k=2,n=3}",
    "topology={kind=\"slim-fly\",q=5}",
    "topology={kind=\"dragonfly\",hosts_per_switch=2}",
    "topology={kind=\"hyperx\",dimensions=2,switches_per_dimension=[4]}",
    "topology={kind=\"torus\",dimensions=2,switches_per_dimension=[4]}",
    "topology={kind=\"mesh\",dimensions=2,switches_per_dimension=[4]}",
    "topology={kind=\"polarfly\",q=3}",
    "topology={kind=\"orthogonal-fat-tree\",k=4}",
    "topology={kind=\"complete\",switches=9}",
    "topology={kind=\"jellyfish\",switches=16,degree=4}",
    "topology={kind=\"equivalent-jellyfish\",of={kind=\"slim-fly\",q=5}}",
    "topology={kind=\"xpander\",degree=5}",
    "topology={kind=\"crossbar\",hosts=8}",
];

/// What some kinds must be told.
const NEEDED: [(&str, &str); 6] = [
    ("mix", "parts=[{kind=\"permutation\"},{kind=\"incast\"}]"),
    ("poisson", "messages_per_host=4"),
    ("uniform", "messages_per_host=4"),
    ("cut", "link_fraction=0.05,until=\"1ms\""),
    ("degrade", "link_fraction=0.05"),
    ("loss", "link_fraction=0.05,probability=0.01"),
];

/// What a kind may need before it can be used at all, from the least to the most.
const SETTINGS: [&[&str]; 10] = [
    &[],
    &["fabric.ecn={kmin=\"100KB\",kmax=\"400KB\"}"],
    &["fabric.queue=\"trimming\"", "transport=\"ndp\""],
    &[
        "fabric.qcn={}",
        "transport=\"roce\"",
        "fabric.flow_control=\"pfc\"",
        "fabric.ecn={kmin=\"100KB\",kmax=\"400KB\"}",
    ],
    &["fabric.flow_control=\"pfc\"", "transport.congestion=\"none\""],
    &["fabric.ecn={kmin=\"100KB\",kmax=\"400KB\"}", "routing=\"spray-nic\"", "transport=\"mp-rdma\""],
    &["routing=\"presto\""],
    &["routing=\"letflow\""],
    &["fabric.control_priority=false"],
    &["fabric.queue=\"trimming\"", "transport=\"purified\"", "routing=\"spray-paths\""],
];

/// What makes a combination possible that is refused otherwise, each on its own.
const HELPS: [&str; 7] = [
    "fabric.ecn={kmin=\"100KB\",kmax=\"400KB\"}",
    "fabric.qcn={}",
    "fabric.queue=\"trimming\"",
    "routing.placement=\"nic\"",
    "routing.placement=\"ingress\"",
    "routing.placement=\"switch\"",
    "fabric.control_priority=false",
];

/// The axes whose kinds restrict each other.
const RESTRICTING: [&str; 13] = [
    "topology",
    "workload",
    "faults",
    "routing.preset",
    "routing.granularity",
    "routing.selector",
    "transport.preset",
    "transport.congestion",
    "transport.reliability",
    "transport.shaping",
    "transport.reorder",
    "fabric.queue",
    "fabric.flow_control",
];

/// The axes that are tried with networks, workloads and faults.
const SURROUNDED: [&str; 5] =
    ["topology", "routing.preset", "fabric.queue", "fabric.flow_control", "transport.preset"];

/// Other choices by the axis on which they lie: what is set, and how it is called.
struct Axis {
    name: &'static str,
    choices: Vec<(String, String)>,
}

impl Axis {
    /// Settings without those of this axis: a network takes the place of the first one, as its fields are others.
    fn without(&self, sets: &[String]) -> Vec<String> {
        let own = format!("{}=", self.name);
        sets.iter().filter(|set| !set.starts_with(&own)).cloned().collect()
    }
}

fn axes() -> Vec<Axis> {
    fn kinds<K: Kind>(name: &'static str) -> Axis {
        words(name, K::NAMES.iter().copied())
    }
    fn words(name: &'static str, values: impl Iterator<Item = &'static str>) -> Axis {
        let choice = |value: &str| (format!("{name}={value:?}"), value.to_owned());
        Axis { name, choices: values.map(choice).collect() }
    }
    let network = |set: &&str| {
        let name = set.split('"').nth(1).unwrap_or_default();
        ((*set).to_owned(), name.to_owned())
    };
    vec![
        Axis { name: "topology", choices: NETWORKS.iter().map(network).collect() },
        words("routing.placement", ["nic", "ingress", "switch"].into_iter()),
        kinds::<Granularity>("routing.granularity"),
        kinds::<Selector>("routing.selector"),
        words("routing.preset", routing::PRESETS.iter().map(|preset| preset.name)),
        words("fabric.queue", ["tail-drop", "trimming"].into_iter()),
        words("fabric.flow_control", ["lossy", "pfc", "pfc-shared", "credits"].into_iter()),
        words("transport.preset", transport::PRESETS.iter().map(|preset| preset.name)),
        kinds::<Congestion>("transport.congestion"),
        kinds::<Reliability>("transport.reliability"),
        kinds::<Shaping>("transport.shaping"),
        kinds::<Reorder>("transport.reorder"),
    ]
}

/// Why a scenario of these settings is refused, in one sentence.
fn refusal(sets: &[String]) -> Option<String> {
    let tried = || {
        let mut document = Node::parse(&Source::new("scenario", ""))?;
        sets.iter().try_for_each(|set| apply_override(&mut document, set))?;
        let scenario = Scenario::read(&document)?;
        check(&scenario, &document).map(|_| ())
    };
    let problems: netloom_scenario::Problems = tried().err()?;
    let problem = problems.0.into_iter().next()?;
    let help = problem.help.map(|help| format!(" ({help})")).unwrap_or_default();
    let field = if problem.field.is_empty() { String::new() } else { format!("{}: ", problem.field) };
    Some(format!("{field}{}{help}", problem.message))
}

/// The settings with which a kind is tried beside others: the first that netloom takes.
fn base(path: &str, name: &str) -> Option<Vec<String>> {
    let needed = NEEDED.iter().find(|(kind, _)| *kind == name).map(|(_, fields)| format!(",{fields}"));
    let needed = needed.unwrap_or_default();
    let own = match path {
        "topology" => {
            let family = FAMILIES.iter().find(|set| set.split('"').nth(1) == Some(name))?;
            (*family).to_owned()
        }
        "workload" => format!("{path}={{kind={name:?}{needed}}}"),
        "faults" => format!("{path}=[{{kind={name:?}{needed}}}]"),
        _ => format!("{path}={name:?}"),
    };
    let networks = if path == "topology" { &NETWORKS[..1] } else { &NETWORKS[..] };
    let presets: Vec<String> = match path {
        "routing.granularity" => (routing::PRESETS.iter())
            .filter(|preset| preset.routing().granularity.name() == name)
            .map(|preset| format!("routing={:?}", preset.name))
            .collect(),
        "routing.selector" => (routing::PRESETS.iter())
            .filter(|preset| preset.routing().selector.name() == name)
            .map(|preset| format!("routing={:?}", preset.name))
            .collect(),
        "transport.congestion" => (transport::PRESETS.iter())
            .filter(|preset| preset.transport().congestion.name() == name)
            .map(|preset| format!("transport={:?}", preset.name))
            .collect(),
        "transport.reliability" => (transport::PRESETS.iter())
            .filter(|preset| preset.transport().reliability.name() == name)
            .map(|preset| format!("transport={:?}", preset.name))
            .collect(),
        _ => Vec::new(),
    };
    let beginnings: Vec<Vec<String>> =
        std::iter::once(vec![own.clone()]).chain(presets.into_iter().map(|preset| vec![preset])).collect();
    let tries = SETTINGS.iter().flat_map(|settings| {
        beginnings.iter().flat_map(move |own| {
            networks.iter().map(move |network| {
                let network = (path != "topology").then(|| (*network).to_owned());
                let settings = settings.iter().map(|&set| set.to_owned());
                network.into_iter().chain(settings).chain(own.iter().cloned()).collect()
            })
        })
    });
    tries.into_iter().find(|sets: &Vec<String>| refusal(sets).is_none())
}

/// The axis of a chapter's kinds, if they restrict others.
fn path(chapter: &Chapter) -> Option<String> {
    let path = match chapter.choice? {
        "preset" => format!("{}.preset", chapter.path),
        // Distributions of sizes stand in the table of workloads.
        "size" => return None,
        _ => chapter.path.to_owned(),
    };
    RESTRICTING.contains(&path.as_str()).then_some(path)
}

/// The section of a kind's page; empty for axes whose kinds go with everything, and for kinds that cannot be used without a file.
pub(super) fn section(chapter: &Chapter, entry: &KindInfo) -> String {
    let Some(path) = path(chapter) else { return String::new() };
    let Some(base) = base(&path, entry.name) else { return String::new() };
    if matches!(path.as_str(), "topology" | "workload" | "faults") {
        return section_of_surroundings(&path, &base);
    }
    let mut rows = String::new();
    let mut reasons = Reasons::default();
    for axis in axes().iter().filter(|axis| is_another(&path, axis.name)) {
        let (mut accepted, mut helped, mut refused) = (Vec::new(), Vec::new(), Vec::new());
        let kept = axis.without(&base);
        for (set, name) in &axis.choices {
            let sets: Vec<String> = kept.iter().cloned().chain([set.clone()]).collect();
            let Some(reason) = refusal(&sets) else {
                accepted.push(format!("`{name}`"));
                continue;
            };
            let help = HELPS.iter().find(|help| helps(help, &path, axis.name, &sets));
            match help {
                Some(help) => helped.push((*help, format!("`{name}`"))),
                None => {
                    refused.push(format!("`{name}`"));
                    reasons.add(&reason, axis.name, name);
                }
            }
        }
        accepted.extend(HELPS.iter().filter_map(|help| {
            let with: Vec<&str> =
                helped.iter().filter(|(by, _)| by == help).map(|(_, name)| name.as_str()).collect();
            (!with.is_empty()).then(|| format!("with {}: {}", shown(help), with.join(", ")))
        }));
        _ = writeln!(rows, "| `{}` | {} | {} |", axis.name, accepted.join(", "), refused.join(", "));
    }
    let written: Vec<String> = base.iter().map(|set| shown(set)).collect();
    let mut text = format!(
        "\n## Combinations\n\nEach choice was checked on its own against {}.\n\n| choice | accepted | refused |\n| --- | --- | --- |\n{rows}",
        written.join(", ")
    );
    reasons.write(&mut text);
    text
}

/// Why choices are refused: for each message, the choices.
#[derive(Default)]
struct Reasons(Vec<(String, Vec<String>)>);

impl Reasons {
    fn add(&mut self, reason: &str, axis: &str, name: &str) {
        let reason = without_names(reason, name);
        let written = format!("`{axis} = {name:?}`");
        match self.0.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, all)) => all.push(written),
            None => self.0.push((reason, vec![written])),
        }
    }

    fn write(self, text: &mut String) {
        if !self.0.is_empty() {
            text.push_str("\nReasons, as in the error messages:\n\n");
        }
        for (reason, written) in self.0 {
            _ = writeln!(text, "- {}: {}", written.join(", "), cell(&reason));
        }
    }
}

/// The section of a network, a workload or a fault. What schemes need of each other is on their pages, so here stand those only that others of its sort would go with.
fn section_of_surroundings(path: &str, base: &[String]) -> String {
    let (others, named) = match path {
        "topology" => (&FAMILIES[..], "on other networks"),
        "workload" => (&NETWORKS[..1], "with other workloads"),
        _ => (&NETWORKS[..1], "without faults"),
    };
    let (mut rows, mut all) = (String::new(), Vec::new());
    let mut reasons = Reasons::default();
    for axis in axes().iter().filter(|axis| SURROUNDED.contains(&axis.name) && axis.name != path) {
        let kept = axis.without(base);
        let mut refused = Vec::new();
        for (set, name) in &axis.choices {
            let refusal = |kept: &[String]| {
                let sets: Vec<String> = kept.iter().cloned().chain([set.clone()]).collect();
                refusal(&sets).filter(|_| !HELPS.iter().any(|help| helps(help, path, axis.name, &sets)))
            };
            let Some(reason) = refusal(&kept) else { continue };
            if others.iter().any(|other| refusal(&[(*other).to_owned()]).is_none()) {
                refused.push(format!("`{name}`"));
                reasons.add(&reason, axis.name, name);
            }
        }
        match refused.is_empty() {
            true => all.push(format!("`{}`", axis.name)),
            false => _ = writeln!(rows, "| `{}` | {} |", axis.name, refused.join(", ")),
        }
    }
    let written: Vec<String> = base.iter().map(|set| shown(set)).collect();
    let mut text =
        format!("\n## Combinations\n\nEach choice was checked on its own against {}.\n", written.join(", "));
    if !rows.is_empty() {
        _ = write!(
            text,
            "\nRefused, though accepted {named}:\n\n| choice | refused |\n| --- | --- |\n{rows}"
        );
    }
    if !all.is_empty() {
        _ = writeln!(
            text,
            "\nEvery choice that is accepted {named} is accepted here for {}.",
            all.join(", ")
        );
    }
    reasons.write(&mut text);
    text
}

/// A setting as a reader would write it.
fn shown(set: &str) -> String {
    format!("`{}`", set.replacen('=', " = ", 1))
}

/// Whether a setting makes the scenario one that can be run, and takes back neither the kind nor the choice.
fn helps(help: &str, path: &str, axis: &str, sets: &[String]) -> bool {
    let field = help.split('=').next().unwrap_or_default();
    if field == path || field == axis || !is_another(path, field) {
        return false;
    }
    let sets: Vec<String> = sets.iter().cloned().chain([help.to_owned()]).collect();
    refusal(&sets).is_none()
}

/// A message without what differs between the choices that it refuses: the word itself, what was found, and the preset that brought it.
fn without_names(reason: &str, name: &str) -> String {
    let reason =
        reason.split(", found ").next().unwrap_or(reason).replace(&format!("as {name:?} "), "as it ");
    let reason = match reason.strip_suffix(&format!("with {name:?}")) {
        Some(before) => format!("{before}with it"),
        None => reason,
    };
    match reason.split_once(&format!(": {name} ")) {
        Some((field, rest)) => format!("{field}: it {rest}"),
        None => reason,
    }
}

/// Whether a choice on `axis` leaves the kind at `path` in place: a preset chooses anew on every axis of its product.
fn is_another(path: &str, axis: &str) -> bool {
    let product = |path: &str| path.split('.').next().unwrap_or_default().to_owned();
    let is_preset = |path: &str| path.ends_with(".preset");
    path != axis && (product(path) != product(axis) || !(is_preset(path) || is_preset(axis)))
}

#[cfg(test)]
mod tests {
    use super::super::chapters;
    use super::*;

    /// A kind without a section is one that needs a file or a network of its own; a new one of these is looked at.
    #[test]
    fn every_kind_that_others_restrict_is_tried() {
        let mut missing = Vec::new();
        for chapter in chapters() {
            if let Some(path) = path(&chapter) {
                let names = chapter.entries.iter().map(|entry| entry.name);
                missing.extend(
                    names.filter(|name| base(&path, name).is_none()).map(|name| format!("{path} {name}")),
                );
            }
        }
        let read_files = [
            "topology astra-sim-network",
            "topology dot",
            "topology edge-list",
            "topology graphml",
            "topology htsim-topo",
            "topology infragraph",
            "topology json",
            "topology ns3-topology",
            "topology simai-topology",
            "workload astra-sim",
            "workload chakra",
            "workload flow-list",
            "workload goal",
            "workload htsim-matrix",
            "workload ns3-flows",
            "workload simai",
        ];
        missing.retain(|name| !read_files.contains(&name.as_str()));
        assert_eq!(missing, Vec::<String>::new());
    }

    #[test]
    fn messages_about_several_choices_are_one() {
        let message =
            "routing.placement: expected \"nic\", as \"plb\" is decided by the sender, found \"switch\"";
        assert_eq!(
            without_names(message, "plb"),
            "routing.placement: expected \"nic\", as it is decided by the sender"
        );
        assert_eq!(without_names("routing: switch-ar hears", "switch-ar"), "routing: it hears");
    }

    #[test]
    fn networks_refuse_what_others_accept_and_not_what_all_refuse() {
        let chapters = chapters();
        let chapter = chapters.iter().find(|chapter| chapter.path == "topology").unwrap();
        let of = |name| section(chapter, chapter.entries.iter().find(|entry| entry.name == name).unwrap());
        let (tree, random) = (of("leaf-spine"), of("jellyfish"));
        assert!(tree.contains("- `routing.preset = \"valiant\"`"), "{tree}");
        assert!(random.contains("`routing.preset = \"conga\"`") && !random.contains("`valiant`"), "{random}");
        assert!(!random.contains("mp-rdma"), "no network takes it with the default routing: {random}");
    }

    #[test]
    fn refusals_are_those_of_a_run() {
        let chapters = chapters();
        let chapter = chapters.iter().find(|chapter| chapter.path == "routing.selector").unwrap();
        let drill = chapter.entries.iter().find(|entry| entry.name == "drill").unwrap();
        let text = section(chapter, drill);
        assert!(text.contains("| `routing.placement` | `ingress`, `switch` | `nic` |"), "{text}");
        assert!(text.contains("- `routing.placement = \"nic\"`: routing"), "{text}");
        assert!(text.contains("with `fabric.ecn = {kmin=\"100KB\",kmax=\"400KB\"}`: `roce`"), "{text}");
        assert!(text.contains("| `topology` | `fat-tree`, `slim-fly`"), "{text}");
        assert!(!text.contains("| `routing.preset` |"), "a preset would choose another selector: {text}");
    }
}
