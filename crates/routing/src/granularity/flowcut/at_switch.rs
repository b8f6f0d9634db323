//! Flowcuts at a switch that counts them: the ports of data packets, and what the last switch's acknowledgements say.

use netloom_topology::PortId;
use netloom_units::Time;
use rand::Rng;

use super::in_flight::{Assigned, Observation};
use crate::header::{Arrival, Candidates, Header, Hop, Occupancy, Receipt, Signal, View};
use crate::path_selector::{PacketContext, SwitchPathSelector};

impl SwitchPathSelector {
    /// Whether it counts what is in flight of the flows that pass, so that [`Self::assign`] says the way of their data.
    #[inline]
    pub fn counts_flight(&self) -> bool {
        self.machines.in_flight.is_some()
    }

    /// The way of a data packet, which is counted here if its flow is. [`Self::begin_flowcut`] follows unless it keeps that of its flowcut.
    #[inline(always)]
    pub fn assign(&mut self, header: &Header, arrival: Arrival, now: Time) -> Assigned {
        let is_counted = !self.at_first || header.is_first();
        match &mut self.machines.in_flight {
            Some(in_flight) if is_counted => in_flight.pass(&Observation::of(header, arrival), now),
            _ => Assigned::Uncounted,
        }
    }

    /// The hop of a data packet that keeps no way.
    pub fn begin_flowcut(
        &mut self,
        (assigned, arrival): (Assigned, Arrival),
        packet: PacketContext<'_>,
        candidates: Candidates<'_>,
        mut view: impl View,
        random: &mut impl Rng,
    ) -> Hop {
        let PacketContext { forwarding, place, header } = packet;
        let now = view.now();
        let hop = match assigned {
            Assigned::Kept(hop) => return hop,
            Assigned::Uncounted => return self.uncounted(packet, candidates),
            Assigned::Hashed => self.uncounted(packet, candidates),
            Assigned::Any if forwarding.is_minimal() => {
                let tags = forwarding.tags(header.src, header.dst);
                let tag = if self.at_first { tags.another(header.tag, random) } else { header.tag };
                match candidates.ports {
                    [only] => Hop { port: *only, tag },
                    ports => Hop { port: ports[self.decide(header, candidates, &mut view, random)], tag },
                }
            }
            Assigned::Any => {
                let is_decided = forwarding.is_decided(place.here, header);
                self.choose_path(packet, is_decided, &mut view, random)
            }
        };
        if let Some(in_flight) = &mut self.machines.in_flight {
            in_flight.open(&Observation::of(header, arrival), hop, now);
        }
        hop
    }

    /// By the header's hash, on a minimal path unless the packet's first switch has said otherwise.
    fn uncounted(&self, packet: PacketContext<'_>, candidates: Candidates<'_>) -> Hop {
        let PacketContext { forwarding, header, .. } = packet;
        if !forwarding.is_minimal() {
            return self.direct(packet);
        }
        let ports = candidates.ports;
        Hop { port: ports[self.hashed(header, ports.len())], tag: header.tag }
    }

    /// The last switch of a data packet says that it has come so far. Returns the port by which the packet had come here and, at its
    /// flow's first switch, the signal to the source; none if it was not counted here.
    #[inline(always)]
    pub fn on_receipt(&mut self, receipt: &Receipt, now: Time) -> Option<(PortId, Option<Signal>)> {
        self.machines.in_flight.as_mut()?.on_receipt(receipt, now)
    }

    /// How many flows it counted at a time; none if it counts none.
    pub fn occupancy(&self) -> Option<Occupancy> {
        self.machines.in_flight.as_ref().map(|in_flight| in_flight.occupancy())
    }
}
