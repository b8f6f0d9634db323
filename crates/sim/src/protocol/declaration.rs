//! What a protocol says of itself: its packets and timers. The engine's lookahead, the least size of buffers, the
//! accounts at the end of a run and the names in traces are derived from this.

use std::convert::Infallible;
use std::fmt::Debug;

use netloom_fabric::{Fabric, Flags, NO_INGRESS, Packet, PacketKind};
use netloom_routing::Routing;
use netloom_transport::Transport;
use netloom_units::{Bytes, Time};

/// The parts of a configuration by which a protocol knows whether it is in use.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(crate) fabric: &'a Fabric,
    pub(crate) routing: &'a Routing,
    pub(crate) transport: &'a Transport,
}

/// The timers of a protocol that sets none.
pub(crate) type NoTimer = Infallible;

/// A protocol, as far as others must know it. What it keeps is in [`ProtocolState`](crate::protocol::state::ProtocolState), what it does in [`HostProtocol`](crate::protocol::at_hosts::HostProtocol) and
/// [`SwitchProtocol`](crate::protocol::at_switches::SwitchProtocol).
pub(crate) trait Protocol {
    /// Its kinds of packets.
    const PACKETS: &'static [PacketFacts];

    /// The timers that it sets; [`NoTimer`] if it sets none.
    type Timer: Copy + Debug;

    /// The sizes of all that it sends where it is in use, and of nothing where it is not.
    fn wire_sizes(parts: Parts<'_>) -> Vec<WireSize>;
}

/// A size on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WireSize {
    pub(crate) bytes: Bytes,
    /// Whether such packets wait in queues and input buffers, which must have room for one.
    pub(crate) is_queued: bool,
}

impl WireSize {
    /// Of packets that wait in queues like data.
    pub(crate) fn queued(bytes: Bytes) -> Self {
        WireSize { bytes, is_queued: true }
    }

    /// Of what crosses a link beside the queues.
    pub(crate) fn beside(bytes: Bytes) -> Self {
        WireSize { bytes, is_queued: false }
    }
}

/// Who makes packets of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// A host; also what a switch leaves of such a packet on its way.
    Host,
    /// A switch, which is the packet's first one.
    Switch,
    /// The node at one end of a link, for the node at the other end.
    Link,
}

/// As what packets of a kind are accounted for when a run is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Account {
    /// As data packets of their flow.
    Data,
    /// As control packets.
    Control,
    /// Not at all, as links make and take them.
    None,
}

/// What is known of all packets of a kind.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketFacts {
    pub(crate) kind: PacketKind,
    /// What traces call it; none if it is not traced, as it goes beside the data.
    pub(crate) name: Option<&'static str>,
    pub(crate) origin: Origin,
    pub(crate) account: Account,
    /// A port that flow control keeps from sending may go on when it comes.
    pub(crate) frees_ports: bool,
    /// Its tag says something of the protocol's own: the choice of a port leaves it alone.
    pub(crate) has_own_tag: bool,
    /// It does not echo when a data packet left: there it says something of the protocol's own.
    pub(crate) says_more: bool,
    /// At the host where it ends it concerns a flow that comes there, not one that is sent from there.
    pub(crate) concerns_arrivals: bool,
    /// What is left of one that meets a cut link and goes back to where it came from; none if no notification is sent.
    pub(crate) turned_back: Option<PacketKind>,
}

impl PacketFacts {
    const fn new(kind: PacketKind, name: Option<&'static str>, origin: Origin, account: Account) -> Self {
        PacketFacts {
            kind,
            name,
            origin,
            account,
            frees_ports: false,
            has_own_tag: false,
            says_more: false,
            concerns_arrivals: false,
            turned_back: None,
        }
    }

    /// A data packet, or what is left of one.
    pub(crate) const fn data(kind: PacketKind, name: &'static str, origin: Origin) -> Self {
        PacketFacts::new(kind, Some(name), origin, Account::Data)
    }

    /// A control packet, which is counted where it is sent and where it ends.
    pub(crate) const fn control(kind: PacketKind, name: &'static str, origin: Origin) -> Self {
        PacketFacts::new(kind, Some(name), origin, Account::Control)
    }

    /// What the two ends of a link say to each other; without a name if it goes beside the data.
    pub(crate) const fn link(kind: PacketKind, name: Option<&'static str>) -> Self {
        PacketFacts::new(kind, name, Origin::Link, Account::None)
    }

    /// Declares that a stopped port may go on when such a packet comes.
    pub(crate) const fn freeing_ports(self) -> Self {
        PacketFacts { frees_ports: true, ..self }
    }

    /// Declares that [`Packet::sent`] says something of the protocol's own, which is no time.
    pub(crate) const fn saying_more(self) -> Self {
        PacketFacts { says_more: true, ..self }
    }

    /// Declares that it concerns a flow which comes to the host where it ends.
    pub(crate) const fn concerning_arrivals(self) -> Self {
        PacketFacts { concerns_arrivals: true, ..self }
    }

    /// Declares that its sender is notified, by a packet of that kind, when one meets a cut link.
    pub(crate) const fn turning_into(self, kind: PacketKind) -> Self {
        PacketFacts { turned_back: Some(kind), ..self }
    }

    /// Declares that the tag belongs to the protocol, not to routing.
    pub(crate) const fn with_own_tag(self) -> Self {
        PacketFacts { has_own_tag: true, ..self }
    }
}

/// What the list of a protocol's packets says of a kind, which must be among them.
pub(crate) const fn facts_in(packets: &'static [PacketFacts], kind: PacketKind) -> &'static PacketFacts {
    let mut place = 0;
    while place < packets.len() {
        if packets[place].kind.index() == kind.index() {
            return &packets[place];
        }
        place += 1;
    }
    panic!("a protocol declares all kinds that the list says are its own")
}

/// A signal to the source of a packet about what happens to it, made at `now` and of the packet's class. The rest is the protocol's to say.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the checks of all protocols bound signals by 65,535 bytes"
)]
pub(crate) fn signal_about(packet: &Packet, kind: PacketKind, size: Bytes, now: Time) -> Packet {
    Packet {
        sent: now,
        src: packet.dst,
        dst: packet.src,
        flow: packet.flow,
        slot: packet.slot,
        size: size.0 as u16,
        kind,
        flags: Flags::new(packet.flags.class(), false),
        ..Packet::EMPTY
    }
}

/// An answer to a packet, which echoes what that says, from the node `src` to the packet's source.
#[inline(always)]
#[expect(
    clippy::cast_possible_truncation,
    reason = "the checks of all protocols bound answers by 65,535 bytes"
)]
pub(crate) fn answer_to(packet: &Packet, kind: PacketKind, size: Bytes, src: u32) -> Packet {
    Packet {
        src,
        dst: packet.src,
        size: size.0 as u16,
        kind,
        ingress: NO_INGRESS,
        trail: packet.trail.fresh(),
        ..*packet
    }
}
