//! What flowlets, flowcells and flowcuts cost in memory and on the wire, as a model.
//!
//! A flow needs an entry only while something of it is in flight. `F` flows of a host share its link of rate `B`; over a round trip `L` the
//! host has `B · L` bytes in flight, so that with packets of `M` bytes at most `min(F, B · L / M)` of its flows are active at a time
//! (Flowcut Switching, equation 1). The paper prints neither `M` nor whether `L` is the latency of one way; packets of 2,048 bytes and a
//! round trip give the figures that it quotes.

use netloom_units::{Bytes, Invalid, Rate, Time};

/// Bytes of a flowcut's entry at every switch: in port 1, out port 1, bytes in flight 3, and 2 each for the averages of the RTT and of
/// its change and for the last RTT.
pub const FULL_ENTRY: u64 = 11;

/// Bytes of a flowcut's entry where no acknowledgement has to find its way back by it: at the first switch alone, or at a NIC.
pub const EDGE_ENTRY: u64 = 10;

/// A network and its load, as the model sees them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fleet {
    /// Hosts of the network.
    pub hosts: u64,
    /// Hosts at a switch.
    pub hosts_per_switch: u64,
    /// Flows that each host has open; absent: more than could be active.
    pub flows_per_host: Option<u64>,
    /// Rate of a host's link.
    pub rate: Rate,
    /// Round-trip time.
    pub rtt: Time,
    /// Bytes of a packet.
    pub packet: Bytes,
}

impl Fleet {
    /// Refuses values without meaning.
    ///
    /// # Errors
    /// Names the field.
    pub fn check(&self) -> Result<(), Invalid> {
        let positive = |field: &'static str, value: u64| match value {
            0 => Err(Invalid::new(field, "at least 1", 0)),
            _ => Ok(()),
        };
        positive("hosts", self.hosts)?;
        positive("hosts_per_switch", self.hosts_per_switch)?;
        positive("packet", self.packet.0)?;
        self.flows_per_host.map_or(Ok(()), |flows| positive("flows_per_host", flows))?;
        if self.hosts_per_switch > self.hosts {
            let expected = format!("at most the {} hosts that there are", self.hosts);
            return Err(Invalid::new("hosts_per_switch", expected, self.hosts_per_switch));
        }
        Ok(())
    }

    /// Flows of a host of which something is in flight at a time, at most.
    pub fn active_flows_per_host(&self) -> f64 {
        let in_flight = self.rate.0 as f64 / 8.0 * self.rtt.as_secs_f64() / self.packet.0 as f64;
        self.flows_per_host.map_or(in_flight, |flows| in_flight.min(flows as f64))
    }

    /// Bytes of memory for flowcuts at a switch that all flows of the network may cross, where every switch counts.
    pub fn at_every_switch(&self) -> f64 {
        self.hosts as f64 * self.active_flows_per_host() * FULL_ENTRY as f64
    }

    /// The same at the first switch of its hosts' flows, where that alone counts.
    pub fn at_ingress(&self) -> f64 {
        self.hosts_per_switch as f64 * self.active_flows_per_host() * EDGE_ENTRY as f64
    }

    /// The same at a NIC.
    pub fn at_nic(&self) -> f64 {
        self.active_flows_per_host() * EDGE_ENTRY as f64
    }
}

/// What a scheme adds per flow and per packet (Flowcut Switching, Table III).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    /// The scheme.
    pub scheme: &'static str,
    /// Bytes of memory per flow.
    pub per_flow: u64,
    /// Bytes on the wire per data packet: acknowledgements.
    pub per_packet: u64,
    /// Bytes that data packets themselves are longer by: a timestamp of 2 and a hop count of 1. The table leaves them out.
    pub in_packet: u64,
}

/// The schemes of Table III.
pub const OVERHEADS: [Overhead; 5] = [
    Overhead { scheme: "flowcell", per_flow: 2, per_packet: 0, in_packet: 0 },
    Overhead { scheme: "flowlet", per_flow: 5, per_packet: 0, in_packet: 0 },
    Overhead { scheme: "flowcut", per_flow: FULL_ENTRY, per_packet: 20, in_packet: 3 },
    Overhead { scheme: "flowcut-ingress", per_flow: EDGE_ENTRY, per_packet: 20, in_packet: 3 },
    Overhead { scheme: "flowcut-nic", per_flow: EDGE_ENTRY, per_packet: 20, in_packet: 3 },
];

impl Overhead {
    /// Bytes on the wire beside a packet's, as a share of the packet's.
    pub fn wire_share(&self, packet: Bytes) -> f64 {
        self.per_packet as f64 / packet.0 as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: f64 = (1 << 20) as f64;

    fn fleet(hosts: u64, gbps: u64, rtt_us: u64) -> Fleet {
        Fleet {
            hosts,
            hosts_per_switch: 16,
            flows_per_host: None,
            rate: Rate::from_gbps(gbps),
            rtt: Time::from_us(rtt_us),
            packet: Bytes(2048),
        }
    }

    #[test]
    fn the_quoted_figures_come_out() {
        // 1,024 hosts, 200 Gb/s, 50 us: at most 7 MiB; 1.6 Tb/s at 5 us stays small; 16,384 hosts with 800 Gb/s are near 50 MiB.
        assert!((fleet(1024, 200, 50).at_every_switch() / MIB - 6.56).abs() < 0.01);
        assert!((fleet(1024, 1600, 5).at_every_switch() / MIB - 5.25).abs() < 0.01);
        assert!((fleet(16_384, 800, 5).at_every_switch() / MIB - 42.0).abs() < 0.1);
        assert!(fleet(32_768, 800, 5).at_every_switch() > 50.0 * MIB);
    }

    #[test]
    fn memory_grows_with_the_round_trip_and_then_not_beyond_the_flows_that_there_are() {
        let few = |rtt| Fleet { flows_per_host: Some(100), ..fleet(1024, 200, rtt) }.at_nic();
        assert_eq!(few(2) / few(1), 2.0);
        assert_eq!((few(10), few(100)), (1000.0, 1000.0));
    }

    #[test]
    fn acknowledgements_take_less_than_two_percent_beside_packets_of_1_kib() {
        let full = OVERHEADS.iter().find(|overhead| overhead.scheme == "flowcut").unwrap();
        assert_eq!(full.wire_share(Bytes(1024)), 20.0 / 1024.0);
        assert!(full.wire_share(Bytes(1024)) < 0.02);
    }

    #[test]
    fn what_has_no_meaning_is_refused_by_field() {
        let wrong = [
            (Fleet { hosts: 0, ..fleet(1, 1, 1) }, "hosts"),
            (Fleet { packet: Bytes(0), ..fleet(100, 1, 1) }, "packet"),
            (Fleet { flows_per_host: Some(0), ..fleet(100, 1, 1) }, "flows_per_host"),
            (Fleet { hosts_per_switch: 101, ..fleet(100, 1, 1) }, "hosts_per_switch"),
        ];
        for (fleet, field) in wrong {
            assert_eq!(fleet.check().unwrap_err().field, field);
        }
        assert_eq!(fleet(100, 1, 1).check(), Ok(()));
    }
}
