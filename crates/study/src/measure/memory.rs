//! The memory that flowlets, flowcells and flowcuts take, by the model of the Flowcut paper.

use crate::cost::{Fleet, OVERHEADS};
use netloom_units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Quantities, named};
use crate::analysis::Subject;

/// Memory and wire overhead by equation (1) of Flowcut Switching: an entry per flow of which something is in flight. Quantities: `full_mib` (a switch that
/// all flows of the network may cross, every switch counting), `ingress_kib`, `nic_kib`, `flowlet_kib` and `flowcell_kib` (a first switch that keeps
/// as many flows), `active_flows` (of a host), `wire_share` (acknowledgements over packets).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowcutMemory {
    /// Hosts; absent: those of the network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts: Option<u64>,
    /// Hosts at a switch; absent: the most that a switch of the network has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hosts_per_switch: Option<u64>,
    /// Flows that each host has open; absent: more than could be active.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub flows_per_host: Option<u64>,
    /// Rate of a host's link.
    pub rate: Rate,
    /// Round-trip time.
    pub rtt: Time,
    /// Bytes of a packet.
    pub packet: Bytes,
}

impl Default for FlowcutMemory {
    /// 200 Gb/s and 50 us, as the paper's figure 4a, and the packets of 2 KiB that its numbers imply.
    fn default() -> Self {
        FlowcutMemory {
            hosts: None,
            hosts_per_switch: None,
            flows_per_host: None,
            rate: Rate::from_gbps(200),
            rtt: Time::from_us(50),
            packet: Bytes(2048),
        }
    }
}

impl FlowcutMemory {
    pub(super) fn take(&self, subject: &Subject) -> Result<Quantities, String> {
        let network = &subject.network;
        let mut at_switch = vec![0u64; network.nodes() as usize];
        for host in 0..network.hosts() {
            at_switch[network.channel(network.ports(host)[0]).to as usize] += 1;
        }
        let fleet = Fleet {
            hosts: self.hosts.unwrap_or(u64::from(network.hosts())),
            hosts_per_switch: self.hosts_per_switch.or(at_switch.into_iter().max()).unwrap_or(1),
            flows_per_host: self.flows_per_host,
            rate: self.rate,
            rtt: self.rtt,
            packet: self.packet,
        };
        fleet.check().map_err(|error| format!("measurement.{error}"))?;
        let per_flow = |name| {
            let found = OVERHEADS.iter().find(|overhead| overhead.scheme == name);
            found.map_or(0.0, |overhead| overhead.per_flow as f64)
        };
        let (kib, active) = (1024.0, fleet.active_flows_per_host());
        let flows = fleet.hosts_per_switch as f64 * active;
        Ok(named([
            ("full_mib", fleet.at_every_switch() / kib / kib),
            ("ingress_kib", fleet.at_ingress() / kib),
            ("nic_kib", fleet.at_nic() / kib),
            ("flowlet_kib", flows * per_flow("flowlet") / kib),
            ("flowcell_kib", flows * per_flow("flowcell") / kib),
            ("active_flows", active),
            ("wire_share", 20.0 / self.packet.0 as f64),
        ]))
    }
}

/// What is measured.
pub(super) const QUANTITIES: [&str; 7] =
    ["full_mib", "ingress_kib", "nic_kib", "flowlet_kib", "flowcell_kib", "active_flows", "wire_share"];
