//! What crosses a channel.

use netloom_units::Time;
use netloom_units::recurrence::Walk;

/// Declares what a packet is: kinds that the fabric knows, numbers for control packets between them, and the signals of links last.
macro_rules! packet_kinds {
    (
        $(#[$meta:meta])*
        enum PacketKind:
        $($(#[$data_meta:meta])* $data:ident,)+
        [$($control:ident)+]
        $($(#[$link_meta:meta])* $link:ident,)+
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum PacketKind {
            $($(#[$data_meta])* $data,)+
            $(#[doc(hidden)] $control,)+
            $($(#[$link_meta])* $link,)+
        }

        /// The kinds of control packets, by their numbers.
        const CONTROL: &[PacketKind] = &[$(PacketKind::$control),+];
    };
}

packet_kinds! {
    /// What a packet is. The fabric knows data and what is left of them, and the signals between the two ends of a link. All control packets
    /// are alike to it: [which of them](PacketKind::control) says what is the business of the protocols that number them.
    ///
    /// One byte, so that it is compared at once.
    enum PacketKind:
    /// Payload of a flow.
    Data,
    /// What is left of a data packet that was trimmed: all but its payload.
    Header,
    /// The header of a trimmed packet on its way back to the sender, with source and destination exchanged.
    Returned,
    /// What is left of a data packet, or of a header, that met a cut link, on its way back to the sender, with source and destination exchanged.
    Unreachable,
    [
        C0 C1 C2 C3 C4 C5 C6 C7 C8 C9 C10 C11 C12 C13 C14 C15 C16 C17 C18 C19 C20 C21 C22 C23
        C24 C25 C26 C27 C28 C29 C30 C31 C32 C33 C34 C35 C36 C37 C38 C39 C40 C41 C42 C43 C44 C45 C46 C47
    ]
    /// The first of a link's signals. Priority-based flow control (IEEE 802.1Qbb): it has [a bit per data queue](Packet::paused_queues), set for those that
    /// must pause. Crosses one channel.
    Pause,
    /// Room in an input buffer, see [`Credit`](crate::Credit). Crosses one channel, beside the data.
    Credit,
    /// In place of a packet that a channel under credits has lost at random: the other end notices that it is missing, as it counts what has
    /// been sent, and that its room is free again. Written as a [`Credit`](crate::Credit), beside the data.
    Missed,
    /// Beside the data, too: [`Packet::by_kind`] is the load of channel [`Packet::src`], as the switch that feeds it has seen it.
    Report,
}

impl PacketKind {
    /// At least as many as there are kinds; a power of two, so that finding a kind's entry in a table takes one instruction.
    pub(crate) const MOST: usize = 64;

    /// The control packet of a number.
    ///
    /// # Panics
    ///
    /// If the number is not less than 48.
    pub const fn control(number: usize) -> Self {
        CONTROL[number]
    }

    /// A number below [`Self::MOST`] that no other kind has.
    #[inline(always)]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Whether it is a control packet.
    #[inline(always)]
    pub const fn is_control(self) -> bool {
        self.index() > PacketKind::Unreachable.index() && self.index() < PacketKind::Pause.index()
    }

    /// Whether it carries payload.
    #[inline(always)]
    pub fn is_data(self) -> bool {
        self == PacketKind::Data
    }

    /// Whether it goes beside the data and takes no bandwidth.
    #[inline(always)]
    pub fn is_beside_data(self) -> bool {
        self as u8 >= PacketKind::Credit as u8
    }

    /// Whether it concerns the two ends of one link only.
    #[inline(always)]
    pub fn is_of_the_link(self) -> bool {
        self as u8 >= PacketKind::Pause as u8
    }
}

/// No port: the packet was made at this node, or its input buffer does not count it.
pub const NO_INGRESS: u16 = u16::MAX;

/// A packet, 48 bytes of plain data: with its arrival time and address it fills one cache line.
#[derive(Clone, Copy, Debug)]
pub struct Packet {
    /// Data: when it left its NIC. ACK, NACK and what was trimmed: that time, echoed.
    pub sent: Time,
    /// Host that sent this packet.
    pub src: u32,
    /// Host that this packet goes to.
    pub dst: u32,
    /// Number of the flow at the data's source.
    pub flow: u32,
    /// What routing says of the packet's path: an entropy value, a layer, an intermediate switch, a path label, or a scheme's own words.
    /// Echoed by ACKs.
    pub tag: u32,
    /// Where the data's source keeps the flow's state; echoed by ACKs.
    pub slot: u32,
    /// Data: packet number within the flow. ACK: that of the packet it acknowledges.
    pub seq: u32,
    /// A number that means what the kind says: of data the fingerprint of the ports taken so far, of a control packet what its protocol says.
    pub by_kind: ByKind,
    /// Data: what the serialisation of the packet has added to its way so far, in picoseconds; on a channel that the next switch cuts through,
    /// only what that switch waits for. Stays at 2³² − 1, over 4 ms. ACK: that sum, echoed. Where receivers grant credit that senders ask for, data say [their pull target](Packet::pull_target) in its place, and where switches notify sources (Bolt) what they claim.
    pub serialisation: u32,
    /// Bytes on the wire.
    pub size: u16,
    /// Input port by which it came, as the sender's port fills in; [`NO_INGRESS`] where it began.
    pub ingress: u16,
    /// What it is.
    pub kind: PacketKind,
    /// What is said by single bits.
    pub flags: Flags,
    /// How far it has come.
    pub trail: Trail,
}

/// The channels that a packet has crossed, and the virtual channel by which it came: together, as hops need more bits than a byte has, and virtual channels fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Trail(u16);

impl Trail {
    const VC_BITS: u32 = 5;
    /// One more than the virtual channel; none is 0.
    const VC: u16 = (1 << Trail::VC_BITS) - 1;

    /// Most channels that are counted. Before a run it is made sure that no route has more.
    pub const MOST_HOPS: u16 = u16::MAX >> Trail::VC_BITS;

    /// Where a packet begins: no channel crossed, no virtual channel used.
    pub const START: Trail = Trail::after(0);

    /// The trail of a packet that has crossed this number of channels.
    #[must_use]
    pub const fn after(hops: u16) -> Self {
        Trail(hops << Trail::VC_BITS)
    }

    /// Data: channels crossed so far. ACK: hops of the packet it acknowledges.
    #[inline(always)]
    pub const fn hops(self) -> u16 {
        self.0 >> Trail::VC_BITS
    }

    /// One more channel.
    #[inline(always)]
    pub(crate) fn cross(&mut self) {
        self.0 += 1 << Trail::VC_BITS;
    }

    /// Virtual channel by which the packet came; none where it began.
    #[inline(always)]
    pub const fn vc(self) -> Option<u8> {
        ((self.0 & Trail::VC) as u8).checked_sub(1)
    }

    /// That virtual channel, or the first one where the packet began.
    #[inline(always)]
    pub(crate) const fn vc_or_first(self) -> u8 {
        ((self.0 & Trail::VC) as u8).saturating_sub(1)
    }

    /// The same by another virtual channel, of which there are fewer than 31.
    #[inline(always)]
    #[must_use]
    pub const fn by(self, vc: u8) -> Self {
        Trail(self.0 & !Trail::VC | (vc + 1) as u16)
    }

    /// The same of a packet that begins here, in answer.
    #[inline(always)]
    #[must_use]
    pub const fn fresh(self) -> Self {
        Trail(self.0 & !Trail::VC)
    }
}

/// A number whose meaning depends on the packet's kind. A reader names [the kinds](Packet::number_of) for which it is meant, which builds
/// with assertions check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct ByKind(u32);

impl ByKind {
    /// The number, for a packet of any kind.
    #[inline(always)]
    pub const fn new(number: u32) -> Self {
        ByKind(number)
    }
}

/// A packet's single bits and its traffic class.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Flags(u8);

impl Flags {
    const MARKED: u8 = 1;
    const LAST: u8 = 1 << 1;
    const DRAIN_EPOCH: u8 = 1 << 2;
    const MORE: u8 = 1 << 3;
    // Flowcuts at switches, which read the two before, are refused with the transport that has these two.
    const REPEAT: u8 = Flags::DRAIN_EPOCH;
    const ASKS_FOR_ACK: u8 = Flags::MORE;
    const OF_CLASS: u8 = 1 << 4;
    const URGENT: u8 = 1 << 4;
    const AT_LAST_HOP: u8 = 1 << 4;
    const CLASS: u32 = 5;

    /// The flags of a data packet that sets out in a traffic class, of which there are at most eight.
    #[inline]
    pub const fn new(class: u8, is_last: bool) -> Self {
        Flags(class << Flags::CLASS | if is_last { Flags::LAST } else { 0 })
    }

    /// Data: ECN congestion experienced. ACK: echoed.
    #[inline(always)]
    pub const fn is_marked(self) -> bool {
        self.0 & Flags::MARKED != 0
    }

    /// Marks the packet, or leaves it as it is.
    #[inline(always)]
    pub fn mark(&mut self, mark: bool) {
        self.0 |= u8::from(mark);
    }

    /// Data: the last packet of its flow.
    #[inline(always)]
    pub const fn is_last(self) -> bool {
        self.0 & Flags::LAST != 0
    }

    /// Data: its source has enough left to send that draining its flow may be worth it.
    #[inline]
    pub const fn has_more(self) -> bool {
        self.0 & Flags::MORE != 0
    }

    /// Sets [`Self::has_more`], or leaves it as it is.
    #[inline]
    pub fn set_more(&mut self, has_more: bool) {
        if has_more {
            self.0 |= Flags::MORE;
        }
    }

    /// Data: the drain epoch of its source, which alternates: it changes whenever the source is notified that it may run ahead of what is in flight.
    #[inline]
    pub const fn drain_epoch(self) -> bool {
        self.0 & Flags::DRAIN_EPOCH != 0
    }

    /// Sets [`Self::drain_epoch`], or leaves it as it is.
    #[inline]
    pub fn set_drain_epoch(&mut self, epoch: bool) {
        if epoch {
            self.0 |= Flags::DRAIN_EPOCH;
        }
    }

    /// Data: switches that trim let it go before other data, in the control queue.
    #[inline]
    pub const fn is_urgent(self) -> bool {
        self.0 & Flags::URGENT != 0
    }

    /// Sets [`Self::is_urgent`], or leaves it as it is.
    #[inline]
    pub fn set_urgent(&mut self, is_urgent: bool) {
        if is_urgent {
            self.0 |= Flags::URGENT;
        }
    }

    /// Data whose ACKs may answer several packets: it asks for an ACK at once. ACK: echoed.
    #[inline]
    pub const fn asks_for_ack(self) -> bool {
        self.0 & Flags::ASKS_FOR_ACK != 0
    }

    /// Sets [`Self::asks_for_ack`], or leaves it as it is.
    #[inline]
    pub fn set_asks_for_ack(&mut self, asks: bool) {
        if asks {
            self.0 |= Flags::ASKS_FOR_ACK;
        }
    }

    /// Data whose ACKs may answer several packets: it has been sent before. ACK: echoed.
    #[inline]
    pub const fn is_repeat(self) -> bool {
        self.0 & Flags::REPEAT != 0
    }

    /// Sets [`Self::is_repeat`], or leaves it as it is.
    #[inline]
    pub fn set_repeat(&mut self, is_repeat: bool) {
        if is_repeat {
            self.0 |= Flags::REPEAT;
        }
    }

    /// What is left of a trimmed packet: it was trimmed by the switch before its receiver. NACK: echoed.
    #[inline]
    pub const fn is_at_last_hop(self) -> bool {
        self.0 & Flags::AT_LAST_HOP != 0
    }

    /// Says of what is left of a trimmed packet whether it was trimmed by the switch before its receiver.
    #[inline]
    pub const fn set_at_last_hop(&mut self, is_last: bool) {
        self.0 = self.0 & !Flags::AT_LAST_HOP | if is_last { Flags::AT_LAST_HOP } else { 0 };
    }

    /// A signal to a source: all flows of the class are meant.
    #[inline]
    pub const fn is_of_class(self) -> bool {
        self.0 & Flags::OF_CLASS != 0
    }

    /// The same for all flows of the class.
    #[must_use]
    pub const fn of_class(self) -> Self {
        Flags(self.0 | Flags::OF_CLASS)
    }

    /// Traffic class of its flow.
    #[inline(always)]
    pub const fn class(self) -> u8 {
        self.0 >> Flags::CLASS
    }

    /// The same with another mark.
    #[must_use]
    pub const fn with_mark(self, mark: bool) -> Self {
        Flags(self.0 & !Flags::MARKED | mark as u8)
    }
}

/// Which number of its flow a control packet says in [`Packet::by_kind`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// A sequence number; the flow's data go the other way.
    Seq,
    /// How many PULLs there have been; the flow's data go the other way.
    Pulls,
    /// None; it goes the way of the flow's data.
    None,
}

/// What control packets of a kind say; nothing is known that recurs of those for which it is not said.
pub type NumbersOf = fn(PacketKind) -> Option<Number>;

/// A number that no other flow of a run has, for the [walk](Walk::seq) through its sequence numbers.
pub fn flow_number(src: u32, flow: u32) -> u64 {
    u64::from(src) << u32::BITS | u64::from(flow)
}

impl Packet {
    /// [Recurs](netloom_units::recurrence).
    pub fn recur(&mut self, numbers_of: NumbersOf, walk: &mut Walk) {
        let number = if self.kind.is_control() { numbers_of(self.kind) } else { None };
        let Packet {
            sent,
            src,
            dst,
            flow,
            tag,
            slot,
            seq,
            by_kind,
            serialisation,
            size,
            ingress,
            kind,
            flags,
            trail,
        } = self;
        walk.exact((kind.index() as u64) << u32::BITS | u64::from(*tag));
        walk.exact(u64::from(*src) << u32::BITS | u64::from(*dst));
        let goes_with_data = matches!(kind, PacketKind::Data | PacketKind::Header);
        let origin = if goes_with_data || number == Some(Number::None) { *src } else { *dst };
        let mut is_successor = false;
        match *kind {
            PacketKind::Pause | PacketKind::Credit => walk.exact(*flow),
            _ => is_successor = walk.flow(origin, flow),
        }
        walk.exact(u64::from(*slot) << u32::BITS | u64::from(*serialisation));
        let rest = u64::from(*size) << 48 | u64::from(*ingress) << 32 | u64::from(flags.0) << 16;
        walk.exact(rest | u64::from(trail.0));
        match (*kind, number) {
            // What is left of a trimmed packet says what that said.
            (PacketKind::Data | PacketKind::Header | PacketKind::Returned, _) => {
                walk.time(sent);
                walk.seq(flow_number(origin, *flow), seq);
                walk.exact(by_kind.0);
            }
            (PacketKind::Pause | PacketKind::Credit, _) => {
                walk.last(sent);
                walk.exact(*seq);
                walk.exact(by_kind.0);
            }
            (_, Some(Number::Seq)) => {
                walk.time(sent);
                walk.seq(flow_number(origin, *flow), seq);
                walk.seq(flow_number(origin, *flow), &mut by_kind.0);
            }
            (_, Some(Number::Pulls)) => {
                walk.time(sent);
                walk.seq(flow_number(origin, *flow), seq);
                walk.pulls(flow_number(origin, *flow), is_successor, &mut by_kind.0);
            }
            // What goes before the data: sequence numbers of the flow are not in it.
            (_, Some(Number::None)) => {
                walk.time(sent);
                walk.exact(*seq);
                walk.exact(by_kind.0);
            }
            _ => walk.refuse("a protocol with packets of its own"),
        }
    }

    /// Nobody's packet, of no size: the rest of a struct literal.
    pub const EMPTY: Packet = Packet {
        sent: Time::ZERO,
        src: 0,
        dst: 0,
        flow: 0,
        slot: 0,
        seq: 0,
        by_kind: ByKind(0),
        tag: 0,
        serialisation: 0,
        size: 0,
        ingress: NO_INGRESS,
        kind: PacketKind::Data,
        flags: Flags(0),
        trail: Trail::START,
    };

    /// What a packet of one of these kinds says in [`Self::by_kind`].
    #[inline(always)]
    pub fn number_of(&self, kinds: &[PacketKind]) -> u32 {
        debug_assert!(
            kinds.contains(&self.kind),
            "a packet of kind {:?} is read as one of {kinds:?}",
            self.kind
        );
        self.by_kind.0
    }

    /// The fingerprint of the ports that a data packet has taken so far.
    #[inline(always)]
    pub fn path_fingerprint(&self) -> u32 {
        self.number_of(&[PacketKind::Data])
    }

    /// A data packet takes a port.
    #[inline(always)]
    pub fn note_port(&mut self, port: u16) {
        self.by_kind =
            ByKind((self.path_fingerprint().rotate_left(5) ^ u32::from(port)).wrapping_mul(0x9e37_79b1));
    }

    /// How far its sender would like to be granted credit: of a data packet, or what is left of one, or a request, [where receivers grant it](crate::Rules::without_serialisation).
    #[inline(always)]
    pub fn pull_target(&self) -> u32 {
        self.serialisation
    }

    /// The data queues that a PAUSE frame stops, a bit each; all others go on.
    #[inline]
    pub fn paused_queues(&self) -> u32 {
        self.number_of(&[PacketKind::Pause])
    }

    /// Whether it concerns the two ends of one link only: a PAUSE frame, a credit, what says that a packet is missing, or a report.
    #[inline(always)]
    pub fn is_of_the_link(&self) -> bool {
        self.kind.is_of_the_link()
    }

    /// What a hash on its way sees of it: its two ends, and its flow and tag.
    #[inline(always)]
    pub fn seen_by_hash(&self) -> [u64; 2] {
        // Each is read at once.
        let pair = |low: u32, high: u32| u64::from(low) | u64::from(high) << u32::BITS;
        [pair(self.src, self.dst), pair(self.flow, self.tag)]
    }

    /// Whether it carries payload, rather than a signal.
    #[inline]
    pub fn is_data(&self) -> bool {
        self.kind.is_data()
    }

    /// Whether it is what is left of a trimmed packet, on its way to the receiver.
    #[inline]
    pub fn is_header(&self) -> bool {
        self.kind == PacketKind::Header
    }

    /// The source of the flow of which it is a data packet, or what is left of one; none if it is a control packet or a signal.
    pub fn data_source(&self) -> Option<u32> {
        match self.kind {
            PacketKind::Data | PacketKind::Header => Some(self.src),
            PacketKind::Returned | PacketKind::Unreachable => Some(self.dst),
            _ => None,
        }
    }

    /// Takes a data packet's payload away. `size` is that of a header.
    pub(crate) fn trim(&mut self, size: u16) {
        self.kind = PacketKind::Header;
        self.size = self.size.min(size);
    }

    /// Turns round, back to its source, as a packet of `kind`.
    pub(crate) fn turn_round(&mut self, kind: PacketKind) {
        self.kind = kind;
        (self.src, self.dst) = (self.dst, self.src);
        self.ingress = NO_INGRESS;
    }
}

const _: () = assert!(size_of::<Packet>() == 48 && size_of::<PacketKind>() == 1);
const _: () = assert!(PacketKind::Report.index() < PacketKind::MOST);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_say_what_was_set_and_nothing_else() {
        let plain = Flags::new(5, false);
        let says = |flags: Flags| {
            let bits = [flags.is_marked(), flags.is_last(), flags.has_more(), flags.drain_epoch()];
            (bits, flags.is_of_class(), flags.class())
        };
        assert_eq!(says(plain), ([false; 4], false, 5));
        assert_eq!(says(Flags::new(5, true)), ([false, true, false, false], false, 5));
        assert_eq!(says(plain.of_class()), ([false; 4], true, 5));
        assert_eq!(says(plain.with_mark(true)), ([true, false, false, false], false, 5));
        assert_eq!(says(plain.with_mark(true).with_mark(false)), says(plain));
        let mut set = plain;
        set.set_more(true);
        set.set_drain_epoch(true);
        assert_eq!(says(set), ([false, false, true, true], false, 5));
        set.mark(true);
        assert_eq!(says(set), ([true, false, true, true], false, 5));
        let mut unset = plain;
        unset.set_more(false);
        unset.set_drain_epoch(false);
        unset.set_urgent(false);
        unset.mark(false);
        assert_eq!(unset, plain);
        unset.set_asks_for_ack(false);
        unset.set_repeat(false);
        assert_eq!(unset, plain);
        unset.set_asks_for_ack(true);
        assert!(unset.asks_for_ack() && !unset.is_repeat() && !plain.asks_for_ack());
        unset.set_repeat(true);
        assert!(unset.is_repeat() && !plain.is_repeat());
        unset.set_urgent(true);
        assert!(unset.is_urgent() && !plain.is_urgent());
    }

    #[test]
    fn a_trail_counts_channels_and_knows_the_virtual_channel() {
        let mut trail = Trail::START;
        assert_eq!((trail.hops(), trail.vc()), (0, None));
        trail.cross();
        trail = trail.by(3);
        trail.cross();
        assert_eq!((trail.hops(), trail.vc()), (2, Some(3)));
        assert_eq!((trail.by(0).hops(), trail.by(0).vc()), (2, Some(0)));
        assert_eq!((trail.fresh().hops(), trail.fresh().vc()), (2, None));
        assert_eq!(Trail::after(9).hops(), 9);
    }
}
