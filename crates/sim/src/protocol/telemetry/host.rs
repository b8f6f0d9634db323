//! HPCC: what switches have written on a packet reaches its sender with the ACK.

use netloom_fabric::{Packet, Stamp};
use netloom_transport::LinkState;

use crate::host::flow::Flow;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::at_switches::SwitchProtocol;
use crate::protocol::telemetry::Telemetry;
use crate::world::World;

impl HostProtocol for Telemetry {}

impl SwitchProtocol for Telemetry {}

impl Flow {
    /// Hands the telemetry that switches have written on a packet to the sender, before the ACK that answers the packet.
    #[inline(always)]
    pub(crate) fn read_telemetry(&mut self, world: &World, ack: &Packet) {
        if let Some(telemetry) = &world.telemetry {
            self.read_stamps(telemetry, ack);
        }
    }

    #[inline(never)]
    fn read_stamps(&mut self, telemetry: &netloom_fabric::Telemetry, ack: &Packet) {
        telemetry.take(ack, |stamps| {
            self.sender.on_telemetry(stamps.iter().map(|&Stamp { channel, queued, sent, at, rate }| {
                LinkState { channel, queued, sent, at, rate }
            }));
        });
    }
}
