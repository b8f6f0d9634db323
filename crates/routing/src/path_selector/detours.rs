//! The ports of packets on paths beyond minimal ones: over an intermediate switch, in a layer, along an explicit path.

use rand::Rng;

use super::SwitchPathSelector;
use crate::forwarding::{Forwarding, Place};
use crate::header::{Carries, FlowRef, Header, Hop, View};
use crate::selector::random::below;
use crate::tag::Tag;

/// A packet at a switch, and the paths on which it may go on.
#[derive(Clone, Copy, Debug)]
pub struct PacketContext<'a> {
    /// The paths of the scheme.
    pub forwarding: &'a Forwarding,
    /// The switch.
    pub place: Place,
    /// The packet.
    pub header: &'a Header,
}

impl PacketContext<'_> {
    /// Its hop if it carried another tag, where `hash` chooses among several ports.
    fn onward(self, tag: Tag, switch: &SwitchPathSelector) -> Hop {
        let header = Header { tag, ..*self.header };
        self.forwarding.onward_from(self.place, &header, |ports| switch.hashed(&header, ports))
    }
}

impl SwitchPathSelector {
    /// The hop of a packet beyond minimal routing. Where the first switch chooses among intermediate switches, it does so here, and where
    /// later ones choose among ports, they do.
    #[inline]
    pub fn onward(&mut self, packet: PacketContext<'_>, view: &mut impl View, random: &mut impl Rng) -> Hop {
        let PacketContext { forwarding, place, header } = packet;
        let is_decided = forwarding.is_decided(place.here, header);
        if is_decided || self.decides_ports && header.carries == Carries::Data {
            return self.decide_path(packet, is_decided, view, random);
        }
        forwarding.onward_from(place, header, |ports| self.hashed(header, ports))
    }

    /// The hop of a packet at a switch that decides whether it goes over an intermediate one, or on the port by which it goes on, and keeps
    /// that for the run. Packets of one flow may carry different tags; what is kept for one tag would send packets with another in a circle.
    #[inline(never)]
    fn decide_path(
        &mut self,
        packet: PacketContext<'_>,
        is_decided: bool,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Hop {
        let PacketContext { forwarding, place, header } = packet;
        if !is_decided && let Some((&[port], tag)) = forwarding.part(place, header) {
            return Hop { port, tag };
        }
        let arrives = if header.is_first() { Tag::DIRECT } else { header.tag };
        let flow = FlowRef { key: header.key(), slot: arrives.bits() };
        let (now, payload) = (view.now(), header.payload);
        if let Some(hop) = self.runs.kept(flow, now, payload) {
            return hop;
        }
        if !self.runs.has_room(flow, now) {
            return self.direct(packet);
        }
        let hop = self.choose_path(packet, is_decided, view, random);
        self.runs.keep(flow, hop, payload, view);
        hop
    }

    /// The path that is decided on now, or only the port.
    pub(crate) fn choose_path(
        &mut self,
        packet: PacketContext<'_>,
        is_decided: bool,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Hop {
        let PacketContext { forwarding, header, .. } = packet;
        let minimal = self.direct(packet);
        if !is_decided {
            return self.choose_port(packet, minimal, view, random);
        }
        if let Some(alternatives) = forwarding.alternatives() {
            let choice = alternatives.choose(packet, minimal, view, random);
            return choice.map_or(minimal, |(hop, is_minimal)| {
                self.count(header.key(), !is_minimal);
                hop
            });
        }
        let tag = forwarding.tags(header.src, header.dst).another(header.tag, random);
        if tag == Tag::DIRECT {
            return minimal;
        }
        let hop = packet.onward(tag, self);
        self.count(header.key(), hop.port != minimal.port);
        hop
    }

    /// Another port, perhaps, for a packet whose path is decided on, than that of its header's hash.
    fn choose_port(
        &mut self,
        packet: PacketContext<'_>,
        hashed: Hop,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Hop {
        let PacketContext { forwarding, place, header } = packet;
        let (ports, tag) = match forwarding.part(place, header) {
            Some((ports, tag)) if ports.len() > 1 => (ports, tag),
            _ => return hashed,
        };
        let place = match forwarding.alternatives() {
            Some(alternatives) => alternatives.lightest(ports, view, random),
            None => below(ports.len(), random),
        };
        self.count(header.key(), ports[place] != hashed.port);
        Hop { port: ports[place], tag }
    }

    /// The hop of a packet by its header's hash: on a minimal path if it sets out here, otherwise as it has begun.
    pub(crate) fn direct(&self, packet: PacketContext<'_>) -> Hop {
        let header = packet.header;
        packet.onward(if header.is_first() { Tag::DIRECT } else { header.tag }, self)
    }
}
