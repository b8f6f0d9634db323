//! The sending side of a flow.

mod claims;
mod handshake;
mod pulled;
mod refused;
mod sacks;
mod sleek;
mod subflow;
mod trimmed;

use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Bytes, Rate, Time, narrow};

use crate::config::Transport;
use crate::congestion::Control;
use crate::content::Content;
use crate::feedback::{Ack, Cause, Feedback, LinkState};
use crate::gate::Gate;
use crate::recovery::{Due, Recovery};
use crate::reliability::{LossDetection, Takes};
use crate::rtt::Rtt;
use crate::seq::SeqSet;
use crate::shaping::Spacing;
use handshake::Opening;
pub use sacks::Sack;
pub(crate) use sleek::Queueing;

/// What a sender knows of its path before it sends anything.
#[derive(Clone, Copy, Debug)]
pub struct PathFacts {
    /// Round-trip time of a full packet and its ACK on an idle fabric.
    pub base_rtt: Time,
    /// Rate of the NIC.
    pub rate: Rate,
    /// Whether packets can be lost on the way, so that losses must be looked for and timers armed.
    pub lossy: bool,
    /// Whether packets are known to overtake each other on the way.
    pub reorders: bool,
    /// Whether full queues trim packets on the way.
    pub trims: bool,
}

impl PathFacts {
    /// The bandwidth-delay product.
    pub fn bdp(&self) -> Bytes {
        self.rate.bytes_in(self.base_rtt)
    }

    /// What the NIC sends in a round-trip time, rounded up to whole packets of that size on the wire.
    pub(crate) fn whole_packets_in(&self, rtt: Time, packet: Bytes) -> Bytes {
        Bytes(self.rate.bytes_in(rtt).0.next_multiple_of(packet.0))
    }
}

/// A data packet to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// Its number.
    pub seq: u32,
    /// Its payload in bytes.
    pub payload: u16,
    /// Whether it is the flow's last. Not known, hence false, while the flow is open.
    pub last: bool,
    /// Whether switches that trim let it go before other data.
    pub is_urgent: bool,
    /// Whether it asks for an ACK, where one ACK may answer several packets.
    pub asks_for_ack: bool,
    /// Whether it has been sent before; said only where one ACK may answer several packets.
    pub is_repeat: bool,
}

/// What a sender has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SendCounts {
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Retransmissions.
    pub retransmissions: u64,
    /// Packets whose header came back.
    pub returned_to_sender: u32,
    /// Timeouts.
    pub timeouts: u32,
    /// Notifications of congestion that arrived, in packets of their own or with ACKs and NACKs.
    pub cnps: u32,
}

/// The sending side of one flow.
///
/// A flow has a known length ([`new`](Self::new)), or it is a stream ([`open`](Self::open)) that is extended while it is open. Either numbers at
/// most 2³² − 1 packets.
#[derive(Clone, Debug)]
pub struct Sender {
    /// What it has to send.
    content: Content,
    /// Next number that was never sent.
    next: u32,
    acked: SeqSet,
    /// Packets sent and neither acknowledged nor given up.
    in_flight: u32,
    /// What each of its packets counts for, in bytes on the wire: a full packet, or the largest that a stream has had so far.
    size: u32,
    /// What it may do, and what changes that.
    gate: Gate,
    control: Control,
    base_rtt: Time,
    rtt: Rtt,
    /// Where packets can be lost.
    recovery: Option<Box<Recovery>>,
    /// The next packet leaves whatever the window says: the first repetition of a recovery, or a probe.
    at_once: bool,
    /// It is to ask its receiver for credit or an ACK, and when it last did.
    asks: bool,
    asked: Option<Time>,
    /// What it may do once its SYN is acknowledged.
    opening: Option<Box<Opening>>,
    learns: bool,
    /// Where losses are found without trimming.
    sleek: Option<Box<sleek::State>>,
    /// What it has done so far.
    pub counts: SendCounts,
}

impl Recur for SendCounts {
    fn recur(&mut self, walk: &mut Walk) {
        let SendCounts { packets, retransmissions, returned_to_sender, timeouts, cnps } = self;
        walk.sum(packets);
        walk.sum(retransmissions);
        walk.sum32(returned_to_sender);
        walk.sum32(timeouts);
        // What a notification does depends on when it comes.
        walk.events(cnps);
    }
}

impl Sender {
    /// [Recurs](netloom_units::recurrence) as the sender of a flow of this number.
    pub fn recur(&mut self, transport: &Transport, flow: u64, walk: &mut Walk) {
        let Sender {
            content,
            next,
            acked,
            in_flight,
            size,
            gate,
            control,
            base_rtt,
            rtt,
            recovery,
            at_once,
            asks,
            asked,
            opening,
            learns,
            sleek,
            counts,
        } = self;
        walk.seq(flow, next);
        content.recur(flow, *next, walk);
        acked.recur(flow, walk);
        walk.exact(*in_flight);
        walk.exact(*size);
        gate.recur(walk);
        control.recur(transport, flow, walk);
        walk.exact(base_rtt.0);
        rtt.recur(walk);
        if walk.is_some(recovery)
            && let Some(recovery) = recovery
        {
            recovery.recur(flow, walk);
        }
        [*at_once, *asks, *learns].into_iter().for_each(|is| walk.exact(is));
        if asked.is_some() {
            walk.refuse("a sender that asks for credit");
        }
        if opening.is_some() {
            walk.pass_over();
        }
        if sleek.is_some() {
            walk.refuse("the ACKs with bitmaps");
        }
        counts.recur(walk);
    }

    /// A flow of `bytes` (at least 1) that begins at `now`.
    pub fn new(transport: &Transport, bytes: Bytes, path: PathFacts, now: Time) -> Self {
        Self::begin(transport, Content::new(bytes.0, transport.options.mtu.0), path, now).greet(transport)
    }

    /// A stream: an open flow without anything to send yet.
    pub fn open(transport: &Transport, path: PathFacts, now: Time) -> Self {
        let stream = Sender { size: 0, ..Self::begin(transport, Content::open(), path, now) };
        stream.greet(transport)
    }

    fn begin(transport: &Transport, content: Content, path: PathFacts, now: Time) -> Self {
        let (control, gate) = Control::begin(transport, path, now);
        // A window that shrinks may leave packets behind that ask for no ACK: only a timeout goes on from there.
        let has_sacks = transport.has_sacks();
        let remembers = has_sacks || path.lossy && transport.has_acks();
        let recovery = remembers.then(|| {
            let recovery = Recovery::new(transport, path.reorders, now);
            Box::new(if has_sacks { recovery.with_sacks() } else { recovery })
        });
        let shaping = transport.shaping.facts();
        let is_shaped = shaping.spacing != Spacing::None || shaping.stretching.is_some();
        let learns = recovery.is_some() || control.learns() || is_shaped;
        Sender {
            content,
            next: 0,
            acked: SeqSet::default(),
            in_flight: 0,
            size: narrow::<u32>(transport.packet_size().0),
            gate,
            control,
            base_rtt: path.base_rtt,
            rtt: Rtt::default(),
            recovery,
            at_once: false,
            asks: false,
            asked: None,
            opening: None,
            learns,
            sleek: transport.reliability.sleek().map(|_| Box::default()),
            counts: SendCounts::default(),
        }
    }

    /// Appends bytes to an open flow, in packets of their own: full ones, and one of what remains. Does nothing if the flow is closed.
    ///
    /// Equal extensions cost no memory. An extension of another size than the one before costs 16 bytes until its packets are
    /// acknowledged and the next such extension comes.
    #[inline]
    pub fn extend(&mut self, transport: &Transport, bytes: Bytes, now: Time) {
        // What its rate would have done by timers that no idle flow sets.
        while let Some(due) = self.control.due(transport).filter(|&due| due <= now && self.is_idle()) {
            self.steer(|control, gate| control.on_timer(transport, due, gate));
        }
        let mtu = transport.options.mtu.0;
        if self.content.extend(bytes.0, mtu, self.acked.base()) {
            let size = bytes.0.min(mtu) + transport.options.header.0;
            let counted = self.opening.as_mut().map_or(&mut self.size, |opening| &mut opening.size);
            *counted = narrow::<u32>(size).max(*counted);
        }
    }

    /// Ends an open flow: what is unsent now is its last.
    pub fn close(&mut self) {
        self.content.close();
    }

    /// Whether more bytes may be appended.
    pub fn is_open(&self) -> bool {
        self.content.is_open()
    }

    /// Whether everything is acknowledged (without ACKs: sent) and nothing more can come.
    pub fn is_done(&self) -> bool {
        self.acked.base() >= self.content.count && !self.is_open()
    }

    /// Whether an answer may be what [ends](Self::is_done) it: one about its last packet, one about all packets, or any once the last has been acknowledged before others.
    pub fn may_end(&self, ack: &Ack) -> bool {
        let last = self.content.count.saturating_sub(1);
        ack.seq >= last || ack.cumulative > last || self.acked.contains(last)
    }

    /// Packets sent and neither acknowledged nor given up.
    pub fn in_flight(&self) -> u32 {
        self.in_flight
    }

    /// Number of the next packet never sent.
    pub fn next(&self) -> u32 {
        self.next
    }

    /// How many packets have not been sent yet, as far as it is known.
    pub fn left(&self) -> u32 {
        self.content.count.saturating_sub(self.next)
    }

    /// Round-trip time of a full packet and its ACK on an idle fabric.
    pub fn base_rtt(&self) -> Time {
        self.base_rtt
    }

    /// That many full packets have been sent and acknowledged while nothing was looked at: so many fewer are left, and all that is known of those under way stays.
    ///
    /// # Panics
    /// If there are not more left.
    pub fn shorten(&mut self, transport: &Transport, packets: u32) {
        assert!(packets < self.left(), "the last packet is sent");
        self.content.shorten(packets, transport.options.mtu.0);
    }

    /// Number of the oldest packet not acknowledged.
    pub fn oldest(&self) -> u32 {
        self.acked.base()
    }

    /// Whether something given up waits to be sent again.
    #[inline]
    pub fn must_resend(&self) -> bool {
        self.recovery.as_ref().is_some_and(|recovery| recovery.must_resend())
    }

    /// Bytes never sent.
    #[inline]
    pub fn remaining(&self, transport: &Transport) -> Bytes {
        Bytes(self.content.unsent(self.next, transport.options.mtu.0))
    }

    /// Whether there is something to send that the gate admits, and from when on it is open.
    #[inline]
    pub fn ready(&self, transport: &Transport) -> Option<Time> {
        debug_assert!(u64::from(self.size) <= transport.packet_size().0, "more than a full packet");
        let has_data = self.next < self.content.count || self.must_resend();
        let fits = self.gate.admits(self.in_flight, self.size.into()) || self.at_once;
        (has_data && fits).then_some(self.gate.opens_at())
    }

    /// Takes the next packet to send at `now`; `None` if there is none.
    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most the MTU, which TransportOptions::check bounds by 65,535 bytes"
    )]
    pub fn take(&mut self, transport: &Transport, now: Time) -> Option<Outgoing> {
        let lost = self.recovery.as_mut().and_then(|recovery| recovery.next_lost());
        let (seq, again) = match lost {
            Some(lost) => {
                self.counts.retransmissions += 1;
                (lost, true)
            }
            None if self.next < self.content.count => {
                self.next += 1;
                (self.next - 1, false)
            }
            None => return None,
        };
        debug_assert!(self.opening.is_none() || seq == 0, "a packet before the handshake is over");
        self.at_once = false;
        if transport.has_acks() {
            self.in_flight += 1;
        } else {
            self.acked.insert(seq);
        }
        let mut has_sacks = false;
        if let Some(recovery) = &mut self.recovery {
            recovery.on_sent(seq, now);
            has_sacks = recovery.has_sacks();
        }
        self.counts.packets += 1;
        let (payload, last) = self.content.depart(seq, transport.options.mtu.0, again);
        let size = payload + transport.options.header.0;
        self.control.on_sent(now, size, &mut self.gate);
        if !again
            && let Some(wait) = self.control.between_messages(transport)
            && self.content.ends_message(seq)
        {
            self.gate.space(now, wait);
        }
        let window = self.gate.window();
        let spacing = transport.shaping.facts().spacing;
        if let Spacing::Rate(rate) = spacing {
            self.gate.space(now, rate.serialize(Bytes(size)));
        } else if spacing == Spacing::RoundTrip || window < u64::from(self.size) {
            let rtt = self.rtt.smoothed().unwrap_or(self.base_rtt);
            let gap = u128::from(rtt.0) * u128::from(size) / u128::from(window.max(1));
            self.gate.space(now, u64::try_from(gap).map_or(Time::END, Time));
        }
        if self.sleek.is_some() {
            self.at_once = self.repeats_at_once();
        }
        let is_repeat = has_sacks && again;
        let asks_for_ack = is_repeat || has_sacks && self.is_last_for_now(now);
        let is_urgent = again && transport.hurries();
        Some(Outgoing { seq, payload: payload as u16, last, is_urgent, asks_for_ack, is_repeat })
    }

    /// Whether the congestion control may know a packet's path.
    #[inline(always)]
    pub fn knows_paths(&self) -> bool {
        self.control.chooses_paths()
    }

    /// The path, an entropy value, of the packet that has just been taken, where the congestion control knows it; otherwise routing says it. `toss`
    /// says whether something of that probability comes true.
    pub fn path(&mut self, transport: &Transport, toss: impl FnOnce(f64) -> bool) -> Option<u32> {
        self.control.path(transport, toss)
    }

    /// Whether an ACK can change anything beyond what is acknowledged: loss recovery, congestion control or shaping looks at it. If not,
    /// [`Self::note`] does for [`Self::on_ack`].
    #[inline(always)]
    pub fn learns(&self) -> bool {
        self.learns
    }

    /// From now on it [learns](Self::learns) from every ACK, because what it knows is sampled.
    pub fn observe(&mut self) {
        self.learns = true;
    }

    /// Bytes on the wire that it may have unacknowledged; `u64::MAX`: as many as it likes.
    #[inline]
    pub fn window(&self) -> u64 {
        self.gate.window()
    }

    /// The rate at which its packets leave, if congestion control or shaping sets one.
    pub fn rate(&self) -> Option<Rate> {
        self.gate.rate()
    }

    /// An ACK is about to arrive, and this is what the links of its packet's way have written on it.
    pub fn on_telemetry(&mut self, links: impl Iterator<Item = LinkState>) {
        self.control.on_telemetry(links);
    }

    /// An ACK arrived. [`Self::find_losses`] then says whether it shows that packets are lost.
    // Part of what looks at the ACK: what that says and what it leads to need not be put together in memory then.
    #[inline(always)]
    pub fn on_ack(&mut self, transport: &Transport, ack: Ack) -> Feedback {
        let newly = self.take_ack(transport, &ack);
        let is_syn_ack = self.opening.is_some();
        // One place for both, so that it is made where it goes: it is large.
        let mut feedback = match is_syn_ack {
            true => self.on_syn_ack(transport, ack),
            false => self.feedback_of(transport, ack, newly),
        };
        if !is_syn_ack {
            self.react(transport, &mut feedback);
            feedback.window_cut |= self.is_notified(transport, ack, false);
        }
        feedback
    }

    /// Whether what [`Self::on_ack`] says is for others only: the congestion control does not react to ACKs, and no handshake is under way.
    #[inline(always)]
    pub fn ignores_acks(&self) -> bool {
        self.opening.is_none() && !self.control.reacts_to_acks()
    }

    /// [`Self::on_ack`] and [`Self::find_losses`] without their results, for a sender that [ignores](Self::ignores_acks) these. Returns whether the congestion control has learnt something after all: of a mark, or of a loss.
    #[inline(never)]
    pub fn on_ack_unseen(&mut self, transport: &Transport, ack: Ack) -> bool {
        debug_assert!(self.ignores_acks(), "an ACK that it reacts to");
        self.take_ack(transport, &ack);
        // What does not cut the rate may change it.
        let is_echo = transport.echoes(ack.marked, false);
        self.is_notified(transport, ack, false);
        self.find_losses(transport, ack.now).is_some() || is_echo
    }

    /// Takes what an ACK acknowledges, and the time that it took; returns how many packets that are.
    #[inline(always)]
    fn take_ack(&mut self, transport: &Transport, ack: &Ack) -> u32 {
        let newly = self.note(transport, ack);
        if let Some(recovery) = &mut self.recovery {
            recovery.settle(self.acked.base());
        }
        if self.recovery.is_some()
            || self.control.shrinks_below_a_packet()
            || transport.shaping.facts().spacing != Spacing::None
        {
            self.rtt.sample(ack.now - ack.sent);
        }
        newly
    }

    /// The congestion control reacts to what the sender learnt, which no SYN is about.
    fn react(&mut self, transport: &Transport, feedback: &mut Feedback) {
        debug_assert!(self.opening.is_none(), "a reaction to a handshake");
        feedback.window_cut = self.control.on_feedback(transport, feedback, &mut self.gate);
        feedback.window = self.gate.window();
    }

    /// The feedback of an ACK that acknowledged this many packets.
    #[inline]
    pub fn feedback_of(&self, transport: &Transport, ack: Ack, newly: u32) -> Feedback {
        let bytes = u64::from(newly) * u64::from(self.size);
        Feedback { packets: newly, bytes, ..self.feedback(transport, Cause::Ack, ack) }
    }

    /// Takes what an ACK acknowledges; returns how many packets that are.
    #[inline(always)]
    pub fn note(&mut self, transport: &Transport, ack: &Ack) -> u32 {
        if self.recovery.is_none() {
            if ack.seq.wrapping_add(1) == ack.cumulative && self.acked.insert_in_order(ack.seq) {
                self.in_flight -= 1;
                return 1;
            }
            if !transport.reliability.facts().takes.is_in_order() {
                // Where packets take many paths, most come out of order.
                if ack.cumulative <= self.acked.base()
                    && let Some(is_new) = self.acked.insert_above(ack.seq)
                {
                    self.in_flight -= u32::from(is_new);
                    return is_new.into();
                }
                return self.note_numbers(ack.seq, ack.cumulative);
            }
        }
        let mut newly = 0;
        while self.acked.base() < ack.cumulative {
            let seq = self.acked.base();
            newly += self.acknowledge(seq, (seq == ack.seq).then_some(ack.sent), ack.now);
        }
        // Go-back-N acknowledges nothing beyond the cumulative number.
        if ack.seq >= self.acked.base() && !transport.reliability.facts().takes.is_in_order() {
            newly += self.acknowledge(ack.seq, Some(ack.sent), ack.now);
        }
        newly
    }

    /// Takes a number and all below another one as acknowledged, where nothing more is remembered of packets; returns how many are so for the first time.
    #[inline(never)]
    fn note_numbers(&mut self, seq: u32, cumulative: u32) -> u32 {
        let mut newly = u32::from(self.acked.insert_out_of_order(seq));
        while self.acked.base() < cumulative {
            newly += u32::from(self.acked.insert_out_of_order(self.acked.base()));
        }
        self.in_flight -= newly;
        newly
    }

    /// Looks for packets that are lost by now, because younger ones have arrived. They are to be sent again.
    #[inline(always)]
    pub fn find_losses(&mut self, transport: &Transport, now: Time) -> Option<Feedback> {
        let detection = transport.reliability.facts().loss_detection?;
        self.find_losses_by(transport, detection, now)
    }

    #[inline(never)]
    fn find_losses_by(
        &mut self,
        transport: &Transport,
        detection: LossDetection,
        now: Time,
    ) -> Option<Feedback> {
        let recovery = self.recovery.as_mut()?;
        let losses = recovery.find_losses(detection, &self.rtt, now)?;
        self.leave_flight(losses.packets);
        self.gate.grant(losses.packets);
        Some(self.on_loss(transport, Cause::Loss, now, losses.seq, losses.sent))
    }

    /// Packets that were lost or refused, the first of them `seq`, are to be sent again.
    fn on_loss(&mut self, transport: &Transport, cause: Cause, now: Time, seq: u32, sent: Time) -> Feedback {
        self.on_loss_at(transport, cause, (now, seq, sent), false)
    }

    /// The same, where it is known whether the packet was trimmed by the switch before its receiver.
    fn on_loss_at(
        &mut self,
        transport: &Transport,
        cause: Cause,
        (now, seq, sent): (Time, u32, Time),
        at_last_hop: bool,
    ) -> Feedback {
        let lost = Ack {
            now,
            seq,
            cumulative: seq,
            sent,
            serialisation: Time::ZERO,
            hops: 0,
            marked: false,
            tag: 0,
            at_last_hop,
        };
        let mut feedback = self.feedback(transport, cause, lost);
        if let Some(opening) = &mut self.opening {
            opening.has_failed = true;
            return feedback;
        }
        self.react(transport, &mut feedback);
        // RFC 6675, section 5, step 4.3: the first goes out though more is in flight than the window now holds.
        self.at_once |= feedback.window_cut && transport.reliability.facts().sack_bytes.is_none();
        feedback
    }

    /// Where the flow stands, with nothing newly acknowledged.
    #[inline(always)]
    fn feedback(&self, transport: &Transport, cause: Cause, about: Ack) -> Feedback {
        Feedback {
            now: about.now,
            cause,
            seq: about.seq,
            rtt: about.now - about.sent,
            is_sampled: true,
            serialisation: about.serialisation,
            hops: about.hops,
            marked: about.marked,
            tag: about.tag,
            at_last_hop: about.at_last_hop,
            packets: 0,
            bytes: 0,
            packet: transport.packet_size(),
            window_before: self.gate.window(),
            window: self.gate.window(),
            in_flight: self.in_flight,
            oldest: self.acked.base(),
            next: self.next,
            remaining: self.remaining(transport),
            window_cut: false,
            reroute: false,
        }
    }

    /// Acknowledges a packet, of which the departure at `sent` has arrived, if that is known; returns how many that are: 1 or 0.
    #[inline]
    fn acknowledge(&mut self, seq: u32, sent: Option<Time>, now: Time) -> u32 {
        if !self.acked.insert(seq) {
            return 0;
        }
        let was_in_flight = match &mut self.recovery {
            Some(recovery) => recovery.acknowledge(seq, sent, now),
            None => true,
        };
        self.in_flight -= u32::from(was_in_flight);
        1
    }

    /// The receiver asks for everything from a number on (go-back-N), or for a packet that came without its payload or that it could not
    /// keep.
    pub fn on_nack(&mut self, transport: &Transport, nack: Ack) -> Feedback {
        match transport.reliability.facts().takes {
            Takes::InOrder { .. } => {}
            // What else has come, ACKs say.
            _ if transport.has_sacks() => {
                return self.lose(transport, Cause::Trim, nack);
            }
            takes if takes.is_beyond(nack.seq, nack.cumulative) => return self.on_refusal(transport, nack),
            _ => return self.on_trim(transport, nack),
        }
        let expected = nack.cumulative;
        let mut newly = 0;
        while self.acked.base() < expected {
            newly += self.acknowledge(self.acked.base(), None, nack.now);
        }
        let packets = u64::from(newly);
        let mut lost = None;
        if let Some(recovery) = &mut self.recovery {
            recovery.settle(self.acked.base());
            self.rtt.sample(nack.now - nack.sent);
            // An old NACK asks for what has been acknowledged or given up since.
            if self.acked.base() == expected {
                lost = recovery.sent_at(expected);
            }
            if lost.is_some() {
                self.in_flight -= recovery.give_up(transport, &self.rtt, nack.now);
            }
        }
        let feedback = match lost {
            Some(sent) => self.on_loss(transport, Cause::Nack, nack.now, expected, sent),
            None => self.feedback(transport, Cause::Nack, Ack { seq: expected, ..nack }),
        };
        let window_cut = feedback.window_cut | self.is_notified(transport, nack, true);
        Feedback { packets: newly, bytes: packets * u64::from(self.size), window_cut, ..feedback }
    }

    /// The receiver notifies of congestion (CNP). Returns something if that cuts the rate at once.
    pub fn on_cnp(&mut self, transport: &Transport, now: Time) -> Option<Feedback> {
        self.counts.cnps += 1;
        self.steer(|control, gate| control.on_cnp(now, gate)).then(|| self.rate_cut(transport, now))
    }

    /// Takes what an ACK or NACK says of congestion by itself; returns whether that cuts the rate at once.
    fn is_notified(&mut self, transport: &Transport, answer: Ack, is_nack: bool) -> bool {
        let is_notified = transport.echoes(answer.marked, is_nack);
        self.counts.cnps += u32::from(is_notified);
        is_notified && self.steer(|control, gate| control.on_cnp(answer.now, gate))
    }

    fn rate_cut(&self, transport: &Transport, now: Time) -> Feedback {
        let seq = self.acked.base();
        let about = Ack {
            now,
            seq,
            cumulative: seq,
            sent: now,
            serialisation: Time::ZERO,
            hops: 0,
            marked: false,
            tag: 0,
            at_last_hop: false,
        };
        Feedback { window_cut: true, ..self.feedback(transport, Cause::Notification, about) }
    }

    /// Whether an open flow has nothing to send and nothing in flight.
    pub fn is_idle(&self) -> bool {
        self.is_open() && self.in_flight == 0 && self.next >= self.content.count && !self.must_resend()
    }

    /// When to call [`Self::on_timer`] if nothing happens before; `None` while nothing can be lost and no rate is on its way back. The rate of an idle flow comes
    /// back when [there is something to send](Self::extend).
    #[inline]
    pub fn deadline(&self, transport: &Transport) -> Option<Time> {
        let control = self.control.due(transport).filter(|_| !self.is_idle());
        debug_assert!(control.is_none() || self.control.has_timers(), "see CongestionControl::HAS_TIMERS");
        let Some(recovery) = &self.recovery else { return control };
        let recovery = match recovery.due(transport, &self.rtt, self.in_flight) {
            Some((at, _)) => Some(at),
            None => self.starves_until(transport),
        };
        let first = control.into_iter().chain(recovery).min();
        match &self.sleek {
            None => first,
            Some(state) => first.into_iter().chain(state.probe_due).min(),
        }
    }

    /// Whether there may be a [deadline](Self::deadline) some day.
    #[inline(always)]
    pub fn has_deadlines(&self) -> bool {
        self.recovery.is_some() || self.control.has_timers()
    }

    /// The [deadline](Self::deadline) if it is before `timer`. Asked for at each packet and each ACK. Nearly always the timer fires before the shortest timeout could end, and the deadline is not computed.
    #[inline(always)]
    pub fn deadline_before(&self, transport: &Transport, timer: Time) -> Option<Time> {
        if let Some(recovery) = &self.recovery
            && recovery.is_quiet_until(transport, timer)
            && (!self.control.has_timers() || self.control.due(transport).is_none_or(|due| due >= timer))
            && self.sleek.is_none()
        {
            debug_assert!(self.deadline(transport).is_none_or(|deadline| deadline >= timer), "not quiet");
            return None;
        }
        self.deadline(transport).filter(|&deadline| deadline < timer)
    }

    /// The deadline may have passed: moves the rate, finds losses, sends a probe, or gives up what is in flight.
    pub fn on_timer(&mut self, transport: &Transport, now: Time) -> Option<Feedback> {
        let is_due = self.control.due(transport).is_some_and(|due| due <= now);
        let rate_cut = is_due && self.steer(|control, gate| control.on_timer(transport, now, gate));
        if self.sleek.is_some() {
            self.probe_if_due(transport, now);
        }
        let losses = self.on_recovery_timer(transport, now);
        match losses {
            Some(losses) => Some(Feedback { window_cut: losses.window_cut || rate_cut, ..losses }),
            None => rate_cut.then(|| self.rate_cut(transport, now)),
        }
    }

    fn on_recovery_timer(&mut self, transport: &Transport, now: Time) -> Option<Feedback> {
        let recovery = self.recovery.as_mut()?;
        let Some(due) = recovery.due(transport, &self.rtt, self.in_flight) else {
            return self.end_starvation(transport, now);
        };
        match due {
            (at, _) if at > now => None,
            (_, Due::Lateness) => self.find_losses(transport, now),
            (_, Due::Probe) => {
                self.in_flight -= recovery.begin_probe(self.next < self.content.count);
                self.at_once = true;
                None
            }
            (_, Due::Timeout) => {
                self.counts.timeouts += 1;
                recovery.back_off();
                let waited = recovery.must_resend();
                let given_up = recovery.give_up(transport, &self.rtt, now);
                self.leave_flight(given_up);
                self.gate.grant(given_up);
                let feedback = self.on_loss(transport, Cause::Timeout, now, self.acked.base(), now);
                self.ask(transport, now, waited);
                Some(feedback)
            }
        }
    }
}

#[cfg(test)]
mod tests;
