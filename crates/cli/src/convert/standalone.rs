//! How long a flow takes alone as computed by HPCC's and ConWeave's ns-3 simulators: the base round-trip time, and the flow's bytes at the
//! rate of the slowest link. The base round-trip time is twice the links' delays and the time that one payload takes on every link of the way, each in whole
//! nanoseconds. Ways are shortest in links.

use std::collections::VecDeque;

use netloom_topology::{HostId, Network};
use netloom_units::{Bytes, Rate};

/// What is known of the way between two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Way {
    /// Delays of the links, in nanoseconds.
    delay: u64,
    /// What a payload takes on them, in nanoseconds.
    serialisation: u64,
    /// The slowest link.
    rate: Rate,
}

impl Way {
    /// The base round-trip time, in nanoseconds.
    pub(crate) fn base_rtt(&self) -> u64 {
        2 * self.delay + self.serialisation
    }

    /// What a flow takes alone, in nanoseconds: as many bytes on the wire as `payload` and `header` per packet make of its size.
    pub(crate) fn standalone_fct(&self, size: Bytes, payload: Bytes, header: Bytes) -> u64 {
        let packets = size.0.saturating_sub(1) / payload.0 + 1;
        self.base_rtt().saturating_add(nanoseconds(Bytes(size.0 + packets * header.0), self.rate))
    }
}

/// The time in whole nanoseconds that bytes take at a rate; it saturates.
fn nanoseconds(bytes: Bytes, rate: Rate) -> u64 {
    u64::try_from(u128::from(bytes.0) * 8_000_000_000 / u128::from(rate.0)).unwrap_or(u64::MAX)
}

/// The ways from a host to all others, by host; `None` where there is none.
pub(crate) fn ways(network: &Network, from: HostId, payload: Bytes) -> Vec<Option<Way>> {
    let mut ways = vec![None; network.nodes() as usize];
    ways[from as usize] = Some(Way { delay: 0, serialisation: 0, rate: Rate(u64::MAX) });
    let mut queue = VecDeque::from([from]);
    while let Some(node) = queue.pop_front() {
        let Some(way) = ways[node as usize] else { continue };
        for &channel in network.ports(node) {
            let channel = network.channel(channel);
            if ways[channel.to as usize].is_some() {
                continue;
            }
            ways[channel.to as usize] = Some(Way {
                delay: way.delay + channel.latency.0 / 1000,
                serialisation: way.serialisation + nanoseconds(payload, channel.rate),
                rate: way.rate.min(channel.rate),
            });
            // No packet goes through a host.
            if !network.is_host(channel.to) {
                queue.push_back(channel.to);
            }
        }
    }
    ways.truncate(network.hosts() as usize);
    ways
}

/// The longest base round-trip time between two hosts, in nanoseconds.
pub(crate) fn longest_base_rtt(network: &Network, payload: Bytes) -> u64 {
    let of_host = |host| ways(network, host, payload).into_iter().flatten().map(|way| way.base_rtt()).max();
    (0..network.hosts()).filter_map(of_host).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_topology::{BuildContext, LeafSpine, Topology};
    use netloom_units::Time;

    /// ConWeave's 128 hosts: 8320 ns and a product of 104,000 bytes between racks, 4160 ns in one, as its code has them as constants.
    #[test]
    fn conweave_reckons_8320_ns_between_racks() {
        let topology = Topology::LeafSpine(LeafSpine {
            leaves: 8,
            spines: 8,
            hosts_per_leaf: 16,
            rate: Rate::from_gbps(100),
            latency: Time::from_us(1),
            ..Default::default()
        });
        let network = topology.build(&BuildContext { seed: 1, base_dir: std::path::Path::new("") }).unwrap();
        let ways = ways(&network, 3, Bytes(1000));
        let way = |host: usize| ways[host].unwrap();
        assert_eq!([way(0).base_rtt(), way(16).base_rtt()], [4160, 8320]);
        assert_eq!(longest_base_rtt(&network, Bytes(1000)), 8320);
        // Ten megabytes: 10,000 packets with 48 bytes of headers each.
        assert_eq!(way(127).standalone_fct(Bytes(10_000_000), Bytes(1000), Bytes(48)), 846_720);
        assert_eq!(way(1).standalone_fct(Bytes(64_000), Bytes(1000), Bytes(48)), 9525);
        assert_eq!(way(1).standalone_fct(Bytes(1), Bytes(1000), Bytes(48)), 4160 + 3);
    }
}
