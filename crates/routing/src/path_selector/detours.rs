//! The ports of packets on paths beyond minimal ones: over an intermediate switch, in a layer, along an explicit path.

use netloom_topology::{HostId, NodeId, PortId};
use rand::Rng;

use super::SwitchPathSelector;
use crate::forwarding::{Alternatives, ByHash, Forwarding, Place, ViaFrom, one_of};
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

/// How one switch that does not decide on ports carries data on that are on their way over an intermediate switch, or past it, for many of them one after the other.
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
    /// Whether this switch decides on some of these packets.
    pub fn may_decide(&self) -> bool {
        self.again.is_some()
    }

    /// The hop of a data packet behind its first switch between two hosts, given its tag and [what a hash sees](Header::seen_by_hash) of it; none if this switch decides.
    #[inline(always)]
    pub fn hop(
        &self,
        (src, dst): (HostId, HostId),
        tag: u32,
        seen: impl FnOnce() -> [u64; 2],
    ) -> Option<Hop> {
        let OnDetours { forwarding, here, again, .. } = self;
        let decides_again = |again: &Alternatives| {
            again.is_decided_again(forwarding.table(), *here, (src, dst), Tag::from_bits(tag))
        };
        if again.is_some_and(decides_again) {
            return None;
        }
        Some(self.undecided_hop((src, dst), tag, seen))
    }

    /// [`Self::hop`] where this switch does not decide.
    #[inline(always)]
    pub fn undecided_hop(&self, ends: (HostId, HostId), tag: u32, seen: impl FnOnce() -> [u64; 2]) -> Hop {
        let OnDetours { path_selector, part, .. } = self;
        let (ports, tag) = part.of(ends, Tag::from_bits(tag));
        Hop { port: one_of(ports, |count| path_selector.position_of_hash(seen(), count)), tag }
    }
}

impl ByHash for &SwitchPathSelector {
    #[inline(always)]
    fn hop(&self, packet: PacketContext<'_>, ports: &[PortId]) -> Hop {
        match packet.header.is_first() {
            true => self.on_minimal_path(packet.header, ports),
            false => apart(packet, |packet| self.named(packet)),
        }
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
    #[inline(always)]
    pub fn onward(&mut self, packet: PacketContext<'_>, view: &mut impl View, random: &mut impl Rng) -> Hop {
        let PacketContext { forwarding, header, .. } = packet;
        match forwarding.alternatives() {
            Some(alternatives) if header.is_first() && !self.runs.keeps_any() => {
                self.weigh_ways(alternatives, packet, view, random)
            }
            _ => apart(packet, |packet| self.go_on(packet, view, random)),
        }
    }

    /// [`Self::onward`] of what does not have its ways weighed each for itself.
    #[inline(never)]
    fn go_on(&mut self, packet: PacketContext<'_>, view: &mut impl View, random: &mut impl Rng) -> Hop {
        let PacketContext { forwarding, place, header } = packet;
        let is_decided = forwarding.is_decided(place.here, header);
        let decides_port = self.decides_ports && header.carries == Carries::Data;
        if !is_decided && !decides_port {
            return self.named(packet);
        }
        if !is_decided && let Some((&[port], tag)) = forwarding.part(place, header) {
            return Hop { port, tag };
        }
        // Packets of one flow may carry different tags; what is kept for one tag would send packets with another in a circle.
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

    /// The hop of a packet by what it names, a layer, a path or an intermediate switch, where this switch does not decide. Under [`FastPath::Named`](super::FastPath::Named) it depends on
    /// nothing but what [a hash sees](Header::seen_by_hash) of the packet and on what it carries.
    #[inline(never)]
    pub fn named(&self, packet: PacketContext<'_>) -> Hop {
        let PacketContext { forwarding, place, header } = packet;
        forwarding.onward_from(place, header, |ports| self.hashed(header, ports))
    }

    /// How data go on here under [`FastPath::Detour`](super::FastPath::Detour); none under others, and where each switch decides.
    #[inline(always)]
    pub fn on_detours<'a>(&'a self, forwarding: &'a Forwarding, place: Place) -> Option<OnDetours<'a>> {
        let part = forwarding.via_from(place).filter(|_| !self.decides_ports)?;
        let again = forwarding.alternatives().filter(|alternatives| alternatives.is_progressive());
        Some(OnDetours { path_selector: self, forwarding, here: place.here, part, again })
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
        if !is_decided {
            return self.choose_port(packet, view, random);
        }
        if let Some(alternatives) = forwarding.alternatives() {
            return self.weigh_ways(alternatives, packet, view, random);
        }
        let minimal = self.direct(packet);
        let tag = forwarding.tags(header.src, header.dst).another(header.tag, random);
        if tag == Tag::DIRECT {
            return minimal;
        }
        let hop = packet.onward(tag, self);
        self.count(header.key(), hop.port != minimal.port);
        hop
    }

    /// The way that weighs least.
    #[inline(always)]
    fn weigh_ways(
        &mut self,
        alternatives: &Alternatives,
        packet: PacketContext<'_>,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> Hop {
        let header = packet.header;
        match alternatives.choose(packet, &*self, view, random) {
            Some((hop, is_minimal)) => {
                self.count(header.key(), !is_minimal);
                hop
            }
            None => apart(packet, |packet| self.direct(packet)),
        }
    }

    /// Another port, perhaps, for a packet whose path is decided on, than that of its header's hash.
    fn choose_port(&mut self, packet: PacketContext<'_>, view: &mut impl View, random: &mut impl Rng) -> Hop {
        let PacketContext { forwarding, place, header } = packet;
        let hashed = self.direct(packet);
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
    #[inline(never)]
    pub(crate) fn direct(&self, packet: PacketContext<'_>) -> Hop {
        let PacketContext { forwarding, place, header } = packet;
        match header.is_first() {
            true => self
                .on_minimal_path(header, forwarding.table().candidates_in_row(place.row, header.dst).ports),
            false => self.named(packet),
        }
    }

    /// The hop by its header's hash of a packet that sets out on a minimal path, by these ports.
    #[inline(always)]
    fn on_minimal_path(&self, header: &Header, ports: &[PortId]) -> Hop {
        let seen = || Header { tag: Tag::DIRECT, ..*header }.seen_by_hash();
        Hop { port: one_of(ports, |count| self.position_of_hash(seen(), count)), tag: Tag::DIRECT }
    }
}

/// Calls what is rarely called with a copy of the header, so that otherwise the header need not stand in memory.
#[inline(always)]
fn apart<T>(packet: PacketContext<'_>, call: impl FnOnce(PacketContext<'_>) -> T) -> T {
    let header = *packet.header;
    call(PacketContext { header: &header, ..packet })
}
