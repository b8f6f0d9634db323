//! Failed links of a connection matrix.

use netloom_topology::{Network, NodeId};

/// Levels of aggregation and core switches.
const AGGREGATION: u8 = 2;
const CORE: u8 = 3;

/// The links that fail, each by its ends.
pub(super) struct Failures<'a> {
    network: &'a Network,
    /// In the order of htsim's numbers, which count over all pods.
    aggregation: Vec<NodeId>,
    cuts: Vec<(NodeId, NodeId)>,
}

impl<'a> Failures<'a> {
    pub(super) fn of(network: &'a Network) -> Self {
        let switches = network.hosts()..network.nodes();
        let aggregation = switches.filter(|&node| network.level(node) == AGGREGATION).collect();
        Failures { network, aggregation, cuts: Vec::new() }
    }

    /// Reads `failure switch_type AGG switch_id S link_id L`: the L-th core of aggregation switch S. htsim itself cuts links of no other
    /// switches, and of a bundle the first.
    pub(super) fn read(&mut self, words: &[&str]) -> Result<(), String> {
        let &[_, "switch_type", kind, "switch_id", switch, "link_id", link] = words else {
            return Err("expected `failure switch_type AGG switch_id S link_id L`".to_owned());
        };
        if kind != "AGG" {
            return Err(format!(
                "switch_type: expected AGG, found \"{kind}\"; the scenario's `faults` cut any link"
            ));
        }
        let number = |field: &str, word: &str, count: usize| match word.parse::<usize>() {
            Ok(number) if number < count => Ok(number),
            _ => Err(format!("{field}: expected a number below {count}, found \"{word}\"")),
        };
        let network = self.network;
        let is_tree =
            network.is_xgft() && (network.hosts()..network.nodes()).any(|node| network.level(node) == CORE);
        if !is_tree || self.aggregation.is_empty() {
            return Err(
                "expected a fat tree of three levels below failures of aggregation switches".to_owned()
            );
        }
        let switch = self.aggregation[number("switch_id", switch, self.aggregation.len())?];
        let neighbours = network.ports(switch).iter().map(|&channel| network.channel(channel).to);
        let mut cores: Vec<NodeId> = neighbours.filter(|&node| network.level(node) == CORE).collect();
        cores.sort_unstable();
        cores.dedup();
        let cut = (switch, cores[number("link_id", link, cores.len())?]);
        if self.cuts.contains(&cut) {
            return Err("this link has failed already".to_owned());
        }
        self.cuts.push(cut);
        Ok(())
    }

    /// The links, in the order of the file.
    pub(super) fn cuts(self) -> Vec<(NodeId, NodeId)> {
        self.cuts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_topology::{BuildContext, Topology};
    use netloom_units::kind::Kind;

    fn tree() -> Network {
        let fields: toml::Table = toml::from_str("k = 4").unwrap();
        let topology = Topology::read("fat-tree", fields).unwrap().unwrap();
        topology.build(&BuildContext { seed: 1, base_dir: std::path::Path::new("") }).unwrap()
    }

    fn read(line: &str) -> Result<Vec<(String, String)>, String> {
        let network = tree();
        let mut failures = Failures::of(&network);
        failures.read(&line.split_whitespace().collect::<Vec<_>>())?;
        let name = |node| network.node_name(node);
        Ok(failures.cuts().into_iter().map(|(a, b)| (name(a), name(b))).collect())
    }

    /// csg-htsim cuts the link from aggregation switch S to core (S mod 2) * 2 + L of a tree with k = 4, whose four pods have two
    /// aggregation switches each. Here ToRs are s0 to s7, aggregation switches s8 to s15, cores s16 to s19.
    #[test]
    fn links_are_those_that_htsim_cuts() {
        for (switch, link, from, to) in
            [(0, 0, "s8", "s16"), (1, 0, "s9", "s18"), (6, 1, "s14", "s17"), (7, 1, "s15", "s19")]
        {
            let cut = read(&format!("failure switch_type AGG switch_id {switch} link_id {link}")).unwrap();
            assert_eq!(cut, [(from.to_owned(), to.to_owned())]);
        }
    }

    #[test]
    fn what_is_no_link_is_refused() {
        for (line, expected) in [
            ("failure switch_type AGG", "expected `failure switch_type AGG"),
            ("failure switch_type TOR switch_id 0 link_id 0", "switch_type: expected AGG, found \"TOR\""),
            ("failure switch_type AGG switch_id 8 link_id 0", "switch_id: expected a number below 8"),
            ("failure switch_type AGG switch_id 0 link_id 2", "link_id: expected a number below 2"),
        ] {
            assert!(read(line).unwrap_err().contains(expected), "{line}");
        }
    }
}
