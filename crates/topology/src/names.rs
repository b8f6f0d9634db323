//! What nodes are called: by the file that the network comes from, or by number.

use netloom_units::names::{shorten, suggest};
use netloom_units::{Invalid, narrow};

use crate::network::{Network, NodeId};

/// The names that a file gives to the nodes of a network, and the way back from a name to its node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Names {
    of_node: Box<[String]>,
    /// Nodes in the order of their names.
    by_name: Box<[NodeId]>,
}

impl Names {
    /// The names of all nodes, hosts first; all different. `None` if they are those that the nodes have anyway.
    pub(crate) fn new(of_node: Vec<String>, hosts: u32) -> Option<Names> {
        if (0..).zip(&of_node).all(|(node, name)| *name == by_number(node, hosts)) {
            return None;
        }
        let mut by_name: Vec<NodeId> = (0..narrow::<NodeId>(of_node.len())).collect();
        by_name.sort_by(|&a, &b| of_node[a as usize].cmp(&of_node[b as usize]));
        Some(Names { of_node: of_node.into(), by_name: by_name.into() })
    }

    pub(crate) fn len(&self) -> usize {
        self.of_node.len()
    }

    fn find(&self, name: &str) -> Option<NodeId> {
        let found = self.by_name.binary_search_by(|&node| self.of_node[node as usize].as_str().cmp(name));
        found.ok().map(|at| self.by_name[at])
    }
}

/// `h0`, `h1`, … for hosts, `s0`, `s1`, … for switches.
fn by_number(node: NodeId, hosts: u32) -> String {
    if node < hosts { format!("h{node}") } else { format!("s{}", node - hosts) }
}

fn no_node(expected: String, name: &str, advice: &str) -> Invalid {
    Invalid { field: "node".into(), expected, found: format!("\"{}\"{advice}", shorten(name)) }
}

impl Network {
    /// What a node is called wherever one is named: as in the file that the network comes from, or else `h0`, `h1`, … for
    /// hosts and `s0`, `s1`, … for switches.
    pub fn node_name(&self, node: NodeId) -> String {
        match self.names() {
            Some(names) => names.of_node[node as usize].clone(),
            None => by_number(node, self.hosts()),
        }
    }

    /// The same by number, whatever the file says: a single word of letters and digits for any network.
    pub(crate) fn plain_name(&self, node: NodeId) -> String {
        by_number(node, self.hosts())
    }

    /// Whether the nodes have names of their own, from a file.
    pub fn has_own_names(&self) -> bool {
        self.names().is_some()
    }

    /// The node of that name.
    ///
    /// # Errors
    /// What was expected and found, with the nearest name. The field is called `node`; the caller that knows its name puts that there.
    pub fn find_node(&self, name: &str) -> Result<NodeId, Invalid> {
        let Some(names) = self.names() else { return self.find_by_number(name) };
        names.find(name).ok_or_else(|| {
            // A message needs no more to choose from than this.
            const MOST_COMPARED: usize = 100_000;
            let known = names.of_node.iter().take(MOST_COMPARED).map(String::as_str);
            no_node("a node of the network's file".into(), name, &format!("; {}", suggest(name, known)))
        })
    }

    fn find_by_number(&self, name: &str) -> Result<NodeId, Invalid> {
        let (hosts, switches) = (self.hosts(), self.switches());
        let count = |kind| if kind == 's' { switches } else { hosts };
        // What comes nearest: the same kind of node, and the last one if there are not this many.
        let kind =
            name.chars().next().map(|first| first.to_ascii_lowercase()).filter(|first| "hs".contains(*first));
        let digits = name.trim_start_matches(|c: char| !c.is_ascii_digit());
        let nearest = kind.and_then(|kind| {
            let number = digits.parse::<u64>().ok()?.min(u64::from(count(kind).checked_sub(1)?));
            Some(narrow::<u32>(number) + if kind == 's' { hosts } else { 0 })
        });
        match nearest.filter(|&node| by_number(node, hosts) == name) {
            Some(node) => Ok(node),
            None => {
                let advice = nearest.map(|node| format!("; did you mean `{}`?", by_number(node, hosts)));
                let (host, switch) = (hosts.saturating_sub(1), switches.saturating_sub(1));
                let expected = format!("a node, h0 to h{host} or s0 to s{switch}");
                Err(no_node(expected, name, &advice.unwrap_or_default()))
            }
        }
    }
}
