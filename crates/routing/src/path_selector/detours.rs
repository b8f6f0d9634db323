//! The ports of packets on paths beyond minimal ones: over an intermediate switch, in a layer, along an explicit path.

use netloom_topology::NodeId;
use rand::Rng;

use super::SwitchPathSelector;
use crate::forwarding::{Alternatives, Forwarding, Place, ViaFrom};
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

/// How one switch carries data on that are on their way over an intermediate switch, or past it, for many of them one after the other.
#[derive(Clone, Copy, Debug)]
pub struct OnDetours<'a> {
    path_selector: &'a SwitchPathSelector,
    forwarding: &'a Forwarding,
    here: NodeId,
    part: ViaFrom<'a>,
    /// What decides again behind the first switch.
    again: Option<&'a Alternatives>,
}

impl OnDetours<'_> {
    /// The hop of a data packet behind its first switch, given [what a hash sees](Header::seen_by_hash) of it; none if this switch decides.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "halves of words: Header::seen_by_hash")]
    pub fn hop(&self, seen: [u64; 2]) -> Option<Hop> {
        let OnDetours { path_selector, forwarding, here, part, again } = self;
        let (src, dst, tag) =
            (seen[0] as u32, (seen[0] >> 32) as u32, Tag::from_bits((seen[1] >> 32) as u32));
        let decides_again =
            |again: &Alternatives| again.is_decided_again(forwarding.table(), *here, (src, dst), tag);
        if path_selector.decides_ports || again.is_some_and(decides_again) {
            return None;
        }
        let (ports, tag) = part.of((src, dst), tag);
        let port = match *ports {
            [only] => only,
            _ => path_selector.port_of_hash(seen, ports),
        };
        Some(Hop { port, tag })
    }
}

impl PacketContext<'_> {
    /// Its hop if it carried another tag, where `hash` chooses among several ports.
    #[inline]
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
        self.named(packet)
    }

    /// The hop of a packet by what it names, a layer, a path or an intermediate switch, where this switch does not decide. Under [`FastPath::Named`](super::FastPath::Named) it depends on
    /// nothing but what [a hash sees](Header::seen_by_hash) of the packet and on what it carries.
    #[inline]
    pub fn named(&self, packet: PacketContext<'_>) -> Hop {
        let PacketContext { forwarding, place, header } = packet;
        forwarding.onward_from(place, header, |ports| self.hashed(header, ports))
    }

    /// How data go on here under [`FastPath::Detour`](super::FastPath::Detour); none under others.
    pub fn on_detours<'a>(&'a self, forwarding: &'a Forwarding, place: Place) -> Option<OnDetours<'a>> {
        let part = forwarding.via_from(place)?;
        let again = forwarding.alternatives().filter(|alternatives| alternatives.is_progressive());
        Some(OnDetours { path_selector: self, forwarding, here: place.here, part, again })
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
    #[inline]
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
    #[inline]
    pub(crate) fn direct(&self, packet: PacketContext<'_>) -> Hop {
        let header = packet.header;
        packet.onward(if header.is_first() { Tag::DIRECT } else { header.tag }, self)
    }
}
