//! `cluster = "…"`, short for `[cluster] preset = "…"`: a network and its servers by name, below what the scenario says of both.

use netloom_units::names::{shorten, suggest};
use netloom_workload::clusters;

use crate::document::Node;
use crate::source::Problem;

/// Takes the name of a cluster out of a document. Returns what it sets, if one is named.
pub(crate) fn take(document: &mut Node) -> Result<Option<Node>, Problem> {
    let kind = document.at(["topology", "kind"]).or_else(|| document.at(["topology"])).cloned();
    let Some(entry) = document.as_table_mut().and_then(|table| table.remove("cluster")) else {
        return Ok(None);
    };
    let node = match entry.node.as_table() {
        None => &entry.node,
        Some(table) => {
            if let Some(other) = table.0.iter().find(|entry| entry.key != "preset") {
                let message = format!("unknown field `{}`", shorten(&other.key));
                let problem = Problem::new(format!("cluster.{}", other.key), message).at(&other.key_place);
                return Err(problem.help("valid here: preset"));
            }
            let missing = || Problem::new("cluster", "`preset` is missing").at(&entry.node.place);
            table.get("preset").ok_or_else(missing)?
        }
    };
    let wrong = |message: String| Problem::new("cluster", message).at(&node.place);
    let Some(name) = node.as_str() else {
        return Err(wrong(format!("expected a cluster's name, found {}", node.describe())));
    };
    let Some(preset) = clusters::find(name) else {
        let names = clusters::PRESETS.iter().map(|preset| preset.name);
        return Err(wrong(format!("there is no cluster `{}`", shorten(name))).help(suggest(name, names)));
    };
    if let Some(kind) = kind.filter(|kind| kind.as_str().is_some()) {
        let message = format!("expected no kind beside cluster = {name:?}, which brings its own network");
        return Err(Problem::new("topology.kind", message).at(&kind.place));
    }
    Node::from_value(&format!("cluster {name}"), &preset.expand()).map(Some)
}

#[cfg(test)]
mod tests {
    use crate::document::{Node, apply_override};
    use crate::{Scenario, Source};
    use netloom_topology::Topology;
    use netloom_workload::clusters;

    fn read(text: &str) -> Result<Scenario, String> {
        let document = Node::parse(&Source::new("s.toml", text)).unwrap();
        Scenario::read(&document).map_err(|problems| problems.to_string())
    }

    #[test]
    fn a_cluster_is_a_network_and_servers() {
        for preset in clusters::PRESETS {
            let scenario = read(&format!("cluster = {:?}\n", preset.name)).unwrap();
            let clusters::Cluster { topology, servers } = preset.expand();
            assert_eq!((&scenario.topology, scenario.servers.as_ref()), (&topology, Some(&servers)));
            // What is written out names both, and no cluster.
            let written = scenario.to_toml().unwrap();
            assert!(!written.contains("cluster"), "{written}");
            assert_eq!(read(&written).unwrap(), scenario, "{}", preset.name);
        }
    }

    #[test]
    fn what_is_written_beside_a_cluster_holds() {
        let text =
            "cluster = \"alibaba-hpn\"\n[topology]\nleaves = 8\n[servers]\nnic_selection = \"stripe\"\n";
        let scenario = read(text).unwrap();
        let Topology::LeafSpine(network) = &scenario.topology else { panic!("{:?}", scenario.topology) };
        assert_eq!((network.leaves, network.spines), (8, 60));
        let servers = scenario.servers.unwrap();
        assert_eq!((servers.planes, servers.nic_selection), (2, netloom_workload::NicSelection::Stripe));
        let table = text.replace("cluster =", "cluster.preset =");
        assert_eq!(read(&table).unwrap(), read(text).unwrap());
        for text in [text, table.as_str()] {
            let mut document = Node::parse(&Source::new("s.toml", text)).unwrap();
            apply_override(&mut document, "cluster=dcn-plus").unwrap();
            let other = Scenario::read(&document).unwrap();
            assert_eq!(other.servers.unwrap().planes, 1, "{text}");
        }
    }

    #[test]
    fn what_is_no_cluster_is_refused_where_it_stands() {
        for (text, expected) in [
            (
                "cluster = \"alibaba-hpm\"\n",
                "s.toml:1:11: cluster: there is no cluster `alibaba-hpm` (did you mean `alibaba-hpn`?",
            ),
            ("[cluster]\nprest = \"dcn-plus\"\n", "s.toml:2:1: cluster.prest: unknown field `prest`"),
            ("cluster = {}\n", "s.toml:1:11: cluster: `preset` is missing"),
            ("cluster = 3\n", "s.toml:1:11: cluster: expected a cluster's name, found number 3"),
            (
                "cluster = \"dcn-plus\"\n[topology]\nkind = \"fat-tree\"\n",
                "s.toml:3:8: topology.kind: expected no kind beside cluster = \"dcn-plus\"",
            ),
        ] {
            let problem = read(text).unwrap_err();
            assert!(problem.starts_with(expected), "{problem}");
        }
    }
}
