//! NICs whose ports are one: a flow's packets leave by all of them, or by those whose links are up.

use netloom_units::Time;
use netloom_units::random::mix;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The ports of a NIC, one in each plane or several in one network (`ports`), as one: a NIC has one transport for all of its ports, chooses the port of every packet, and leaves ports whose link is down. Without this table
/// every port has a transport of its own, and `nic_selection` chooses among ports.
///
/// An answer leaves by the port by which a packet has come last. Windows and rates of senders are those of all ports that a flow uses at a time.
///
/// A packet arrives at the same port of the other NIC as that by which it leaves, if that is another plane. In one network the sender chooses that port, too, as switches would by their equal-cost
/// routes to both: the port at the switch of its own port, if there is one; otherwise by a hash of the flow, or of the entropy value with `entropy`; in turn with `round-robin` and `least-loaded` if
/// routing decides for every packet anew. Ports that are left are no longer chosen, so the last hop can be either port.
///
/// Refused: NICs of one port; `transport.nic_queue`; per-packet selections with flowcuts, with `transport.reorder`s that count flowcells, and with transports that compare what the links
/// of one path say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default, expecting = "a table, such as { port_selection = \"flow\" }")]
pub struct Bond {
    /// By which port a packet leaves.
    pub port_selection: PortSelection,
    /// Time from a cut of a port's link until no packet leaves by this port any more, nor by the same port of another NIC for this one, and from the repair until packets do again. What is
    /// sent meanwhile is lost. How other NICs learn of it is not modelled. The default is how often Linux's bonding driver looks at its links (`miimon`, 100 ms by default: Linux, Documentation/networking/bonding.rst).
    /// Where routing learns that a plane has no way to a host (`reroute_after` of a cut), NICs leave that plane at the same moment.
    pub failover_after: Time,
}

impl Default for Bond {
    fn default() -> Self {
        Bond { port_selection: PortSelection::default(), failover_after: Time::from_ms(100) }
    }
}

/// By which port of its NIC a packet leaves, among those whose links are up at both ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortSelection {
    /// All packets of a flow by one port, which a hash of the flow selects: Linux's bonding modes balance-xor and 802.3ad (Documentation/networking/bonding.rst). Only flows of a port that
    /// fails change to another one, and back after the repair.
    #[default]
    Flow,
    /// The NIC's packets by its ports in turn: bonding mode balance-rr. A packet whose port is busy waits for it, and those behind it do.
    RoundRobin,
    /// Each packet by the port that a hash of its entropy value selects, so that the value stands for the whole path, plane included. A packet whose port is busy holds back the
    /// packets of its flow, not those of others. For routing at NICs by entropy values (`spray-nic`), or a transport that chooses them.
    Entropy,
    /// Each packet by a port that is free, in turn where several are: htsim's NIC for Ultra Ethernet (`UecNIC` in uec.cpp).
    LeastLoaded,
}

impl PortSelection {
    /// Whether packets of a flow may be on several ports at a time.
    pub fn is_per_packet(self) -> bool {
        self != PortSelection::Flow
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            PortSelection::Flow => "flow",
            PortSelection::RoundRobin => "round-robin",
            PortSelection::Entropy => "entropy",
            PortSelection::LeastLoaded => "least-loaded",
        }
    }
}

/// Which of `ports` a key selects: the one with the greatest hash (rendezvous hashing: Thaler and Ravishankar, IEEE/ACM Transactions on Networking 6 (1), 1998), so that only keys of a port
/// that is missing are selected anew.
pub fn by_hash(key: u64, ports: impl Iterator<Item = u16>) -> Option<u16> {
    ports.max_by_key(|&port| mix(key ^ mix(u64::from(port))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_of_a_missing_port_move() {
        let mut counts = [0u32; 4];
        for key in 0..4000 {
            let all = by_hash(mix(key), 0..4).unwrap();
            counts[usize::from(all)] += 1;
            let without = by_hash(mix(key), (0..4).filter(|&port| port != 2)).unwrap();
            assert!(without != 2 && (all == 2 || without == all));
        }
        // A binomial draw of 4000 with p = 1/4: five standard deviations of 27.4.
        assert!(counts.iter().all(|count| (863..1137).contains(count)), "{counts:?}");
        assert_eq!(by_hash(1, 0..0), None);
    }
}
