//! Channels by the names of their ends.

use netloom_topology::{ChannelId, Network, NodeId};
use netloom_units::Invalid;
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
    /// The field that should change.
    pub(crate) fn find(&self, network: &Network) -> Result<ChannelId, Invalid> {
        let node = |field: &'static str, name| {
            network.find_node(name).map_err(|error| Invalid { field: field.into(), ..error })
        };
        let (from, to) = (node("from", &self.from)?, node("to", &self.to)?);
        let parallel: Vec<ChannelId> =
            network.ports(from).iter().copied().filter(|&id| network.channel(id).to == to).collect();
        if parallel.is_empty() {
            let expected = format!("a neighbour of {}, {}", self.from, neighbours(network, from));
            return Err(Invalid::new("to", expected, format!("\"{}\"", self.to)));
        }
        parallel.get(usize::from(self.parallel)).copied().ok_or_else(|| {
            let expected = format!("less than the {} parallel links", parallel.len());
            Invalid::new("parallel", expected, self.parallel)
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

/// A channel by its ends.
pub(crate) fn channel_name(network: &Network, channel: ChannelId) -> String {
    let channel = network.channel(channel);
    format!("{} -> {}", network.node_name(channel.from), network.node_name(channel.to))
}
