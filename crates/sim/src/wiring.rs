//! What is wired to what, and what is wrong with it: by this the ports of a node are made.

use netloom_topology::{ChannelId, Network, PortId};
use netloom_units::{Rate, narrow};
use netloom_workload::Rails;

use crate::fault::Faults;

/// The ports behind the channels, and the faults of these.
#[derive(Debug)]
pub(crate) struct Wiring {
    pub(crate) faults: Faults,
    pub(crate) seed: u64,
    /// From which number on a host numbers its flows.
    pub(crate) first_number: u32,
    /// The port of its node that feeds each channel.
    pub(crate) port_of: Vec<PortId>,
    /// Per switch, the rate of its fastest link.
    pub(crate) fastest: Vec<Rate>,
}

impl Wiring {
    pub(crate) fn new(
        network: &Network,
        rails: Option<&Rails>,
        faults: Faults,
        seed: u64,
        first_number: u32,
    ) -> Self {
        let mut port_of = vec![0; network.links().len() * 2];
        for node in 0..network.nodes() {
            // A host has one link, which is one of several at its NIC.
            let first = rails.filter(|_| network.is_host(node)).map_or(0, |rails| rails.port(node) as usize);
            for (port, &channel) in network.ports(node).iter().enumerate() {
                port_of[channel as usize] = narrow::<PortId>(first + port);
            }
        }
        let fastest = (network.hosts()..network.nodes()).map(|switch| {
            let rates = network.ports(switch).iter().map(|&channel| network.channel(channel).rate);
            rates.max().unwrap_or(Rate(1))
        });
        let fastest = fastest.collect();
        Wiring { faults, seed, first_number, port_of, fastest }
    }

    /// The rate of the fastest link of a switch, by its number among switches.
    pub(crate) fn fastest(&self, switch: u32) -> Rate {
        self.fastest[switch as usize]
    }

    /// The port of its node that feeds a channel.
    pub(crate) fn port_of(&self, channel: ChannelId) -> PortId {
        self.port_of[channel as usize]
    }
}
