//! Whether packets can count the channels that they cross, and messages name them.

use netloom_engine::FIRST_TIMER;
use netloom_fabric::Trail;
use netloom_topology::{Network, NodeId};

use crate::message::BESIDE;
use crate::run::error::SimError;

/// Refuses networks in which a route may be longer than [packets can count](Trail::MOST_HOPS).
///
/// Most networks are seen to have no such route by the number of their switches, larger ones by how far these are apart. There, paths in layers and lists of paths may be
/// longer than twice the minimal ones; what they add to some tens of hops is small against what there is room for.
pub(crate) fn check_lengths(network: &Network) -> Result<(), SimError> {
    let most = u32::from(Trail::MOST_HOPS);
    let switches = network.nodes() - network.hosts();
    // A route has two parts at most, to an intermediate switch and on from there, and neither comes to a switch twice.
    if switches <= most / 2 {
        return Ok(());
    }
    // Any two switches are at most twice as far apart as the one where the search begins and the farthest from it.
    let bound = 4 * farthest(network) + 2;
    if bound <= most {
        return Ok(());
    }
    let expected =
        format!("expected switches so near to each other that no route crosses more than {most} channels");
    Err(SimError::TooFar(format!("{expected}, found ones between which routes may cross up to {bound}")))
}

/// Each channel is a source of messages of the engine, and so is what goes [beside](BESIDE) it.
const MOST_CHANNELS: u32 = FIRST_TIMER - BESIDE;

/// Refuses networks with more channels than there are sources.
pub(crate) fn check_channels(channels: u32) -> Result<(), SimError> {
    if channels <= MOST_CHANNELS {
        return Ok(());
    }
    Err(SimError::TooLarge(format!(
        "expected at most {MOST_CHANNELS} channels, two for each link, found {channels}"
    )))
}

/// How many channels the farthest switch is away from the first one of its part of the network.
fn farthest(network: &Network) -> u32 {
    let hosts = network.hosts();
    let mut is_seen = vec![false; (network.nodes() - hosts) as usize];
    let mut farthest = 0;
    for first in hosts..network.nodes() {
        let mut ring: Vec<NodeId> = Vec::new();
        let mut see = |node: NodeId, ring: &mut Vec<NodeId>| {
            if !network.is_host(node) && !std::mem::replace(&mut is_seen[(node - hosts) as usize], true) {
                ring.push(node);
            }
        };
        see(first, &mut ring);
        for distance in 0.. {
            if ring.is_empty() {
                break;
            }
            farthest = farthest.max(distance);
            let mut next = Vec::new();
            for &node in &ring {
                network.ports(node).iter().for_each(|&channel| see(network.channel(channel).to, &mut next));
            }
            ring = next;
        }
    }
    farthest
}

#[cfg(test)]
mod tests {
    use netloom_topology::NetworkBuilder;
    use netloom_units::{Rate, Time};

    use super::*;

    /// This many switches, each linked to the one that `to` names, with a host at the first and at the last.
    fn network(switches: u32, to: impl Fn(u32) -> u32) -> Network {
        let mut builder = NetworkBuilder::new("test");
        let (rate, latency) = (Rate::from_gbps(100), Time::from_us(1));
        let (hosts, tier) = (builder.add_hosts(2), builder.tier("link"));
        let nodes: Vec<NodeId> = (0..switches).map(|_| builder.add_switch(0, 0)).collect();
        builder.link(hosts.start, nodes[0], rate, latency, tier);
        builder.link(hosts.start + 1, nodes[nodes.len() - 1], rate, latency, tier);
        for switch in 1..switches {
            builder.link(nodes[to(switch) as usize], nodes[switch as usize], rate, latency, tier);
        }
        builder.build().unwrap()
    }

    #[test]
    fn channels_have_names_of_twenty_eight_bits() {
        let most = 1 << 28;
        assert_eq!(check_channels(most), Ok(()));
        let refused = check_channels(most + 1).unwrap_err().to_string();
        assert_eq!(
            refused,
            "topology: expected at most 268435456 channels, two for each link, found 268435457"
        );
    }

    #[test]
    fn chains_are_refused_when_they_are_too_long_and_stars_are_not() {
        let chain = |switches| network(switches, |switch| switch - 1);
        assert_eq!(check_lengths(&chain(1023)), Ok(()));
        let refused = check_lengths(&chain(1024)).unwrap_err().to_string();
        assert!(refused.contains("no route crosses more than 2047 channels"), "{refused}");
        assert!(refused.ends_with("may cross up to 4094"), "{refused}");
        assert_eq!(check_lengths(&network(5000, |_| 0)), Ok(()));
        assert_eq!(check_lengths(&network(2000, |switch| switch / 2)), Ok(()));
    }
}
