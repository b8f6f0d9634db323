//! HPCC: what switches have written on a packet reaches its sender with the ACK.

use netloom_fabric::{Packet, Stamp};
use netloom_transport::LinkState;

use crate::host::flow::Flow;
use crate::world::World;

impl Flow {
    /// An ACK is about to be told to the sender, and before it what switches have written on the packet that it answers.
    #[inline]
    pub(crate) fn read_telemetry(&mut self, world: &World, ack: &Packet) {
        let Some(telemetry) = &world.telemetry else { return };
        telemetry.take(ack, |stamps| {
            self.sender.hear(stamps.iter().map(|&Stamp { channel, queued, sent, at, rate }| LinkState {
                channel,
                queued,
                sent,
                at,
                rate,
            }));
        });
    }
}
