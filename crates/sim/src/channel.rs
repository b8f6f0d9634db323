//! Channels by the names of their ends.

use netloom_topology::{ChannelId, Network, NodeId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The channel from one node to a neighbour, by their names: as in the network's file, otherwise `h0` for a host, `s0` for a switch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChannelEnds {
    /// Sending node.
    pub from: String,
    /// Receiving node.
    pub to: String,
    /// Which of the parallel links between the two, from 0 in the order of the sending node's ports.
    #[serde(default)]
    pub parallel: u16,
}

impl ChannelEnds {
    /// The channel.
    ///
    /// # Errors
    /// The field that should change, and why.
    pub(crate) fn find(&self, network: &Network) -> Result<ChannelId, (&'static str, String)> {
        let from = network.find_node(&self.from).map_err(|reason| ("from", reason))?;
        let to = network.find_node(&self.to).map_err(|reason| ("to", reason))?;
        let parallel: Vec<ChannelId> =
            network.ports(from).iter().copied().filter(|&id| network.channel(id).to == to).collect();
        if parallel.is_empty() {
            let neighbours = neighbours(network, from);
            return Err((
                "to",
                format!("expected a neighbour of {}, {neighbours}, found \"{}\"", self.from, self.to),
            ));
        }
        parallel.get(usize::from(self.parallel)).copied().ok_or_else(|| {
            let found = self.parallel;
            ("parallel", format!("expected less than the {} parallel links, found {found}", parallel.len()))
        })
    }
}

/// The names of a node's neighbours, as far as people want to read them.
fn neighbours(network: &Network, node: NodeId) -> String {
    const SHOWN: usize = 16;
    let mut neighbours: Vec<NodeId> = network.ports(node).iter().map(|&id| network.channel(id).to).collect();
    neighbours.sort_unstable();
    neighbours.dedup();
    let names: Vec<String> = neighbours.iter().take(SHOWN).map(|&node| network.node_name(node)).collect();
    let more = if neighbours.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", names.join(", "))
}
