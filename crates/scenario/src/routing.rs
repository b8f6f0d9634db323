//! Reading the routing table: a preset, what the user changes of it, or a point of the product spelt out.

use netloom_routing::hash::HashFunction;
use netloom_routing::{Placement, Routing, preset};
use netloom_units::Time;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::document::Node;
use crate::preset::Presets;
use crate::section::Section;
use crate::source::Problem;

/// A routing scheme beside its granularity and its selector. The defaults of all fields are those of the preset;
/// without a preset, of `ecmp`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoutingFields {
    /// Who decides: `nic`, `ingress` or `switch`.
    placement: Placement,
    /// The hash that switches use where the scheme itself does not choose: `fnv1a` or `mix`.
    hash: HashFunction,
    /// Whether each switch salts its hash.
    salt: bool,
    /// Number of entropy values a NIC uses.
    entropy_values: u32,
    /// How long a switch remembers a flow that it no longer sees; with flowlets, no longer than the gap. For granularities other than
    /// `packet`, at `ingress` or `switch`.
    flow_timeout: Time,
    /// Largest number of flows that a switch remembers; absent: no limit. While the table is full, packets of further flows are hashed.
    #[serde(default)]
    max_flow_entries: Option<u32>,
    /// Every n-th host, beginning with host 0, stays out of the scheme: each of its flows keeps one path, as under ECMP. Absent: all take part. For schemes whose hosts draw entropy values or
    /// labels, and for switches that choose among minimal ports by queues or at random.
    #[serde(default)]
    ecmp_every: Option<u32>,
}

/// The presets of `[routing]`.
pub(crate) fn presets() -> Presets<Routing> {
    Presets {
        path: "routing",
        names: preset::PRESETS.iter().map(|preset| preset.name).collect(),
        expand: |name| preset::find(name).map(|preset| preset.routing()),
        axes: ["placement", "granularity", "selector"],
    }
}

/// Reads `[routing]`: the preset is expanded and the other fields are set over it.
pub(crate) fn read_routing(node: Option<&Node>, problems: &mut Vec<Problem>) -> Option<Routing> {
    let complete = presets().complete(node, problems)?;
    let mut section = Section::new(&complete, "routing", problems)?;
    section.name("preset");
    let granularity = section.required("granularity");
    let selector = section.required("selector");
    let rest: RoutingFields = section.rest()?;
    Some(Routing {
        placement: rest.placement,
        hash: rest.hash,
        salt: rest.salt,
        entropy_values: rest.entropy_values,
        flow_timeout: rest.flow_timeout,
        max_flow_entries: rest.max_flow_entries,
        ecmp_every: rest.ecmp_every,
        granularity: granularity?,
        selector: selector?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{Problems, Source};
    use netloom_paths::routes::{RandomLayers, Spain};
    use netloom_routing::selector::layer::Construction;
    use netloom_routing::{Granularity, Selector};
    use netloom_units::kind::Kind;

    fn routing(text: &str) -> Result<Routing, String> {
        let root = Node::parse(&Source::new("s.toml", text)).unwrap();
        let mut problems = Vec::new();
        match read_routing(root.at(["routing"]), &mut problems) {
            Some(routing) if problems.is_empty() => Ok(routing),
            _ => Err(Problems(problems).to_string()),
        }
    }

    #[test]
    fn a_preset_expands_to_its_point_of_the_product() {
        for preset in preset::PRESETS {
            let table = format!("[routing]\npreset = \"{}\"\n", preset.name);
            assert_eq!(routing(&table), Ok(preset.routing()));
            assert_eq!(routing(&format!("routing = \"{}\"\n", preset.name)), Ok(preset.routing()));
        }
    }

    #[test]
    fn a_table_without_kind_changes_the_presets_parameters() {
        let changed = routing("[routing]\npreset = \"letflow\"\ngranularity = { gap = \"7us\" }\n").unwrap();
        let letflow = preset::find("letflow").unwrap().routing();
        assert!(
            matches!(&changed.granularity, Granularity::Flowlet(flowlet) if flowlet.gap == Time::from_us(7))
        );
        assert_eq!(changed.selector, letflow.selector);
    }

    #[test]
    fn a_table_with_kind_replaces_the_presets_choice() {
        let changed = routing("[routing]\npreset = \"letflow\"\nselector = { kind = \"drill\" }\n").unwrap();
        assert_eq!((changed.granularity.name(), changed.selector.name()), ("flowlet", "drill"));
        let spelt = "[routing]\nplacement = \"nic\"\ngranularity = \"packet\"\nselector = \"round-robin\"\nsalt = false\n";
        let spelt = routing(spelt).unwrap();
        assert_eq!((spelt.placement, spelt.salt), (Placement::Nic, false));
        assert!(matches!(spelt.selector, Selector::RoundRobin(_)));
    }

    #[test]
    fn the_layers_of_a_preset_are_changed_or_replaced() {
        let construction = |text: &str| match routing(text).unwrap().selector {
            Selector::Layer(layer) => layer.construction,
            other => panic!("{other:?}"),
        };
        let fatpaths = "[routing]\npreset = \"fatpaths\"\n";
        let changed = construction(&format!("{fatpaths}selector = {{ construction = {{ rho = 0.5 }} }}\n"));
        let random = RandomLayers { rho: 0.5, ..RandomLayers::default() };
        assert_eq!(changed, Construction::RandomLayers(random));
        for spain in ["\"spain\"", "{ kind = \"spain\" }"] {
            let replaced = construction(&format!("{fatpaths}selector = {{ construction = {spain} }}\n"));
            assert_eq!(replaced, Construction::Spain(Spain::default()));
        }
        let problem =
            routing(&format!("{fatpaths}selector = {{ construction = {{ ro = 0.5 }} }}\n")).unwrap_err();
        assert!(problem.starts_with("s.toml:3:31: routing.selector.construction.ro"), "{problem}");
        assert!(problem.contains("valid here: layers, rho,"), "{problem}");
        let problem = routing(&format!("{fatpaths}selector = {{ construction = \"pasta\" }}\n")).unwrap_err();
        assert!(problem.contains("there is no construction `pasta` (did you mean `past`?"), "{problem}");
    }

    #[test]
    fn mistakes_are_pointed_at() {
        let problem = routing("[routing]\npreset = \"flowcut-nik\"\n").unwrap_err();
        assert!(
            problem.starts_with("s.toml:2:10: routing.preset: there is no preset `flowcut-nik`"),
            "{problem}"
        );
        assert!(problem.contains("did you mean `flowcut-nic`?"), "{problem}");
        let problem = routing("[routing]\npreste = \"ecmp\"\n").unwrap_err();
        assert!(problem.starts_with("s.toml:2:1: routing.preste: unknown field `preste`"), "{problem}");
        assert!(problem.contains("did you mean `preset`?"), "{problem}");
        let problem = routing("[routing]\nplacement = \"tor\"\nselector = \"hsh\"\n").unwrap_err();
        assert!(problem.contains("routing.placement: there is no placement `tor`"), "{problem}");
        assert!(
            problem.contains("routing.selector: there is no selector `hsh` (did you mean `hash`?"),
            "{problem}"
        );
        assert!(routing("routing = 3\n").unwrap_err().contains("expected a table, found number 3"));
    }
}
