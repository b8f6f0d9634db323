//! Which packets of a flow are under way, which are lost, and when that is certain.
//!
//! Only a flow whose packets can be lost has a [`Recovery`]. It remembers every departure in the order of time. An ACK echoes when its packet
//! was sent, so it says which departure of a packet has arrived; what departed before it and has not arrived is late. Whether it is
//! lost is decided for the oldest departure first, since all others have stronger reasons to be on time:
//!
//! ```text
//!   count  enough later departures have arrived (RFC 6675; RFC 9002, section 6.1.1)
//!   time   it is late by more than a window that grows with the reordering seen (RACK, RFC 8985)
//!   timer  nothing has come back for a retransmission timeout since it departed (RFC 6298)
//! ```

use std::collections::VecDeque;

use netloom_units::Time;
use netloom_units::recurrence::Walk;

use crate::config::Transport;
use crate::reliability::{GivesUp, LossDetection};
use crate::rtt::Rtt;

/// Recoveries without a needless retransmission after which the reordering window shrinks again (RFC 8985, section 6.2).
const PERSISTENCE: u8 = 16;

/// What a sender remembers of the packets from the oldest unacknowledged one on.
#[derive(Clone, Debug)]
pub(crate) struct Recovery {
    /// Departures in the order of time; the first is under way.
    departures: VecDeque<Departure>,
    /// Number of the first of them. Counts on beyond 2³².
    first: u32,
    /// How many of them have arrived.
    arrived: u32,
    /// The packets from `base` on.
    packets: VecDeque<Packet>,
    base: u32,
    /// Packets that are to be sent again.
    lost: u32,
    /// None of them has a lower number.
    resend: u32,
    /// The youngest departure that has arrived, and its round-trip time.
    latest: Time,
    latest_rtt: Time,
    /// One above the highest number acknowledged.
    highest: u32,
    /// Whether packets are known to overtake each other.
    reorders: bool,
    /// [`LossDetection::rack`]: other timers than the timeout may expire.
    rack: bool,
    /// The reordering window in quarters of the least round-trip time; where it may next grow; recoveries until it shrinks.
    window: u32,
    window_round: u32,
    persistence: u8,
    /// A loss is being repaired until everything below is acknowledged.
    recover: u32,
    /// Timeouts since something was last acknowledged.
    backoff: u32,
    /// When something was last sent or acknowledged.
    progress: Time,
    /// A tail loss probe is out until everything below is acknowledged.
    probed: Option<u32>,
    /// The packet that was sent again as a probe, and when it had been sent before.
    probe: Option<(u32, Time)>,
    /// The same once the probe has arrived and not what it repeats.
    repaired: Option<(u32, Time)>,
    /// When a receiver's request for another path was last granted.
    rerouted: Option<Time>,
    /// Trimmed packets since then, or since one arrived whole.
    trims: u32,
    /// Where ACKs have bitmaps.
    sacks: Option<Sacks>,
}

/// What a sender counts where ACKs have bitmaps.
#[derive(Clone, Copy, Debug)]
struct Sacks {
    /// Packets that have arrived, as far as the receiver has said.
    received: u32,
    /// How many more packets are known not to be in flight than are believed to be: some have arrived after they were given up, and no ACK has said yet that it was these.
    excess: u32,
}

#[derive(Clone, Copy, Debug)]
struct Departure {
    at: Time,
    seq: u32,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    UnderWay,
    Arrived,
    /// Means nothing any more.
    Void,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    /// Number of its last departure. Means nothing if it is to be sent again.
    departure: u32,
    is_acked: bool,
    /// Whether it is to be sent again.
    is_lost: bool,
    /// Whether it has been sent again.
    again: bool,
    /// How often it has been sent, at most 255.
    sends: u8,
}

/// Losses that have just been found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Losses {
    /// How many packets are in flight no more.
    pub(crate) packets: u32,
    /// The first of those lost.
    pub(crate) seq: u32,
    /// When that had been sent.
    pub(crate) sent: Time,
}

/// What a timer of a sender is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A late packet has become too late.
    Lateness,
    /// Nothing has come back for two round-trip times.
    Probe,
    /// Nothing has come back for a retransmission timeout.
    Timeout,
}

impl Recovery {
    /// [Recurs](netloom_units::recurrence) as what is remembered of a flow.
    pub(crate) fn recur(&mut self, flow: u64, walk: &mut Walk) {
        let Recovery {
            departures,
            first,
            arrived,
            packets,
            base,
            lost,
            resend,
            latest,
            latest_rtt,
            highest,
            reorders,
            rack: _,
            window,
            window_round,
            persistence,
            recover,
            backoff,
            progress,
            probed,
            probe,
            repaired,
            rerouted,
            trims,
            sacks,
        } = self;
        // Departures are numbered on their own.
        let of_departures = flow | 1 << 63;
        walk.seq(of_departures, first);
        walk.count(departures.len());
        for Departure { at, seq, state } in departures {
            walk.time(at);
            walk.seq(flow, seq);
            walk.exact(*state as u8);
        }
        walk.exact(*arrived);
        walk.seq(flow, base);
        walk.count(packets.len());
        for Packet { departure, is_acked, is_lost, again, sends } in packets {
            walk.seq(of_departures, departure);
            [*is_acked, *is_lost, *again].into_iter().for_each(|is| walk.exact(is));
            walk.exact(*sends);
        }
        // While something is lost or repaired a period ends with that.
        walk.exact(*lost);
        if *lost > 0 || probed.is_some() || probe.is_some() || repaired.is_some() {
            walk.pass_over();
        }
        // The lowest number that may be lost: one that was passed says as much as the base.
        walk.passed(*resend, *base);
        // Before the first ACK it is no instant.
        walk.exact(*latest == Time::ZERO);
        if *latest > Time::ZERO {
            walk.time(latest);
        }
        walk.exact(latest_rtt.0);
        walk.seq(flow, highest);
        walk.exact(*reorders);
        walk.exact(*window);
        walk.passed(*window_round, *base);
        walk.exact(*persistence);
        walk.passed(*recover, *base);
        walk.exact(*backoff);
        walk.time(progress);
        if rerouted.is_some() {
            walk.pass_over();
        }
        walk.exact(*trims);
        if sacks.is_some() {
            walk.refuse("the ACKs with bitmaps");
        }
    }

    /// `reorders` says whether packets are known to overtake each other from the start.
    pub(crate) fn new(transport: &Transport, reorders: bool, now: Time) -> Self {
        let detection = transport.reliability.facts().loss_detection;
        Recovery {
            departures: VecDeque::new(),
            first: 0,
            arrived: 0,
            packets: VecDeque::new(),
            base: 0,
            lost: 0,
            resend: 0,
            latest: Time::ZERO,
            latest_rtt: Time::ZERO,
            highest: 0,
            reorders,
            rack: detection.is_some_and(|found| found.rack),
            window: 1,
            window_round: 0,
            persistence: 0,
            recover: 0,
            backoff: 0,
            progress: now,
            probed: None,
            probe: None,
            repaired: None,
            rerouted: None,
            trims: 0,
            sacks: None,
        }
    }

    /// The same for ACKs with bitmaps.
    pub(crate) fn with_sacks(self) -> Self {
        Recovery { sacks: Some(Sacks { received: 0, excess: 0 }), ..self }
    }

    /// Whether ACKs have bitmaps.
    #[inline]
    pub(crate) fn has_sacks(&self) -> bool {
        self.sacks.is_some()
    }

    /// When a packet left that an ACK names, if it is clear which of its departures is meant: the first one, or the second, of a packet that has left so often.
    pub(crate) fn departure_of(&self, seq: u32, is_repeat: bool) -> Option<Time> {
        let packet = self.packets.get(seq.checked_sub(self.base)? as usize)?;
        let is_clear = packet.sends == 1 + u8::from(is_repeat) && !packet.is_acked;
        self.sent_at(seq).filter(|_| is_clear)
    }

    /// The receiver has got that many packets; returns how many more these are than it said before.
    pub(crate) fn count_received(&mut self, received: u32) -> u32 {
        let Some(sacks) = &mut self.sacks else { return 0 };
        let newly = received.saturating_sub(sacks.received);
        sacks.received += newly;
        newly
    }

    /// Takes `packets` from those that are believed to be in flight; returns how many are left.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "cut to 32 bits")]
    pub(crate) fn land(&mut self, in_flight: u32, packets: i64) -> u32 {
        let none = &mut Sacks { received: 0, excess: 0 };
        let sacks = self.sacks.as_mut().unwrap_or(none);
        let left = i64::from(in_flight) - i64::from(sacks.excess) - packets;
        sacks.excess = (-left).clamp(0, u32::MAX.into()) as u32;
        left.clamp(0, u32::MAX.into()) as u32
    }

    /// How many packets are to be sent again.
    pub(crate) fn lost(&self) -> u32 {
        self.lost
    }

    /// Something else than a packet was sent, from which a timeout counts.
    pub(crate) fn note_progress(&mut self, now: Time) {
        self.progress = now;
    }

    /// Whether something is to be sent again.
    #[inline]
    pub(crate) fn must_resend(&self) -> bool {
        self.lost > 0
    }

    /// The lowest number that is to be sent again.
    #[inline]
    pub(crate) fn next_lost(&mut self) -> Option<u32> {
        if self.lost == 0 {
            return None;
        }
        self.resend = self.resend.max(self.base);
        while !self.packets[(self.resend - self.base) as usize].is_lost {
            self.resend += 1;
        }
        Some(self.resend)
    }

    /// A packet departs: a new one, or one that is to be sent again.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "goes round")]
    pub(crate) fn on_sent(&mut self, seq: u32, now: Time) {
        let departure = self.first.wrapping_add(self.departures.len() as u32);
        self.departures.push_back(Departure { at: now, seq, state: State::UnderWay });
        match self.packets.get_mut((seq - self.base) as usize) {
            Some(packet) => {
                let sends = packet.sends.saturating_add(1);
                *packet = Packet { departure, is_lost: false, again: true, sends, ..*packet };
                self.lost -= 1;
            }
            None => {
                let new = Packet { departure, is_acked: false, is_lost: false, again: false, sends: 1 };
                self.packets.push_back(new);
            }
        }
        self.progress = now;
    }

    /// A packet is newly acknowledged; `sent` is when the departure that arrived took place, if the ACK says so. Returns whether the
    /// packet counted as in flight.
    #[inline]
    pub(crate) fn acknowledge(&mut self, seq: u32, sent: Option<Time>, now: Time) -> bool {
        let packet = &mut self.packets[(seq - self.base) as usize];
        packet.is_acked = true;
        let was_lost = std::mem::take(&mut packet.is_lost);
        // A probe is sent on suspicion only: its being needless says nothing about reordering.
        let probe = self.probe.take_if(|(probe, _)| *probe == seq);
        let mut is_needless = was_lost;
        if sent.is_some() && seq < self.highest && !packet.again {
            self.reorders = true;
        }
        self.highest = self.highest.max(seq + 1);
        let mut arrived = sent;
        if was_lost {
            self.lost -= 1;
        } else {
            let index = packet.departure.wrapping_sub(self.first) as usize;
            let departure = &mut self.departures[index];
            let at = *arrived.get_or_insert(departure.at);
            if at == departure.at {
                departure.state = State::Arrived;
                self.arrived += 1;
                self.repaired = probe.filter(|_| sent.is_some());
            } else {
                departure.state = State::Void;
                is_needless = true;
            }
        }
        if is_needless && probe.is_none() {
            self.widen();
        }
        if let Some(at) = arrived.filter(|&at| at > self.latest) {
            (self.latest, self.latest_rtt) = (at, now - at);
        }
        self.backoff = 0;
        self.trims = 0;
        self.progress = now;
        !was_lost
    }

    /// A packet is wanted no more, though its departure may have been a no-op. Returns whether it counted as in flight.
    pub(crate) fn forgo(&mut self, seq: u32) -> bool {
        let packet = &mut self.packets[(seq - self.base) as usize];
        packet.is_acked = true;
        self.probe.take_if(|(probe, _)| *probe == seq);
        let was_lost = std::mem::take(&mut packet.is_lost);
        if was_lost {
            self.lost -= 1;
        } else {
            self.departures[packet.departure.wrapping_sub(self.first) as usize].state = State::Void;
        }
        !was_lost
    }

    /// Everything below `base` is acknowledged.
    #[inline]
    pub(crate) fn settle(&mut self, base: u32) {
        while self.base < base {
            self.packets.pop_front();
            self.base += 1;
        }
        if self.probed.is_some_and(|end| base >= end) {
            self.probed = None;
        }
        self.forget();
    }

    /// Forgets departures until the first one is under way.
    #[inline]
    fn forget(&mut self) {
        while let Some(departure) = self.departures.front().filter(|front| front.state != State::UnderWay) {
            self.arrived -= u32::from(departure.state == State::Arrived);
            self.departures.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// A retransmission was needless: wait longer, but not more than a step per round trip.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "packets of a flow have numbers of 32 bits: Transport::largest_message"
    )]
    fn widen(&mut self) {
        self.reorders = true;
        self.persistence = PERSISTENCE;
        if self.base >= self.window_round {
            self.window += 1;
            self.window_round = self.base + self.packets.len() as u32;
        }
    }

    fn is_recovering(&self) -> bool {
        self.base < self.recover
    }

    /// How late a packet may be (RFC 8985, section 6.2, step 4).
    fn lateness(&self, detection: LossDetection, rtt: &Rtt) -> Time {
        let is_certain = self.is_recovering() || self.arrived >= detection.reorder_threshold;
        let (Some(least), Some(smoothed)) = (rtt.least(), rtt.smoothed()) else { return Time::ZERO };
        match !self.reorders && is_certain {
            true => Time::ZERO,
            false => (least * u64::from(self.window) / 4).min(smoothed),
        }
    }

    /// When the oldest departure is too late, if younger ones have arrived.
    fn too_late_at(&self, detection: LossDetection, rtt: &Rtt) -> Option<Time> {
        let front = self.departures.front().filter(|front| front.at < self.latest)?;
        Some(front.at + self.latest_rtt + self.lateness(detection, rtt))
    }

    /// Looks for packets that are lost now.
    #[inline]
    pub(crate) fn find_losses(&mut self, detection: LossDetection, rtt: &Rtt, now: Time) -> Option<Losses> {
        if !detection.sack {
            return self.find_hole(detection);
        }
        let mut found: Option<Losses> = None;
        if let Some((seq, sent)) = self.repaired.take() {
            found = Some(Losses { packets: 0, seq, sent });
        }
        while let Some(&Departure { at, seq, .. }) = self.departures.front()
            && at < self.latest
        {
            let is_lost = match detection.rack {
                true => self.too_late_at(detection, rtt).is_some_and(|due| due <= now),
                false => self.arrived >= detection.reorder_threshold,
            };
            if !is_lost {
                break;
            }
            self.lose_first();
            let losses = found.get_or_insert(Losses { packets: 0, seq, sent: at });
            losses.packets += 1;
        }
        if found.is_some() {
            self.enter();
        }
        found
    }

    /// The same where no ACK says which packets have come (RFC 6582): the first hole is lost, once enough later packets have arrived, or at once while another one before it was
    /// being repaired; but none that has been sent again.
    fn find_hole(&mut self, detection: LossDetection) -> Option<Losses> {
        let &Departure { at, seq, .. } = self.departures.front()?;
        let is_hole =
            seq == self.base && at < self.latest && self.packets.front().is_some_and(|packet| !packet.again);
        let is_recovering = self.is_recovering();
        if !is_hole || !(is_recovering || self.arrived >= detection.reorder_threshold) {
            return None;
        }
        self.lose_first();
        if !is_recovering {
            self.enter();
        }
        Some(Losses { packets: 1, seq, sent: at })
    }

    /// A packet's departure at `sent` is known to have been a no-op: the packet was lost or not needed. Returns whether the packet was in flight because of it.
    ///
    /// That is no reason to look for other losses: headers overtake.
    pub(crate) fn lose_departure(&mut self, seq: u32, sent: Time) -> bool {
        let Some(packet) = seq.checked_sub(self.base).and_then(|index| self.packets.get_mut(index as usize))
        else {
            return false;
        };
        let index = packet.departure.wrapping_sub(self.first) as usize;
        let departure = self.departures.get_mut(index);
        let departure = departure.filter(|found| found.seq == seq && found.at == sent);
        let Some(departure) = departure.filter(|found| found.state == State::UnderWay) else { return false };
        departure.state = State::Void;
        packet.is_lost = true;
        self.probe.take_if(|(probe, _)| *probe == seq);
        self.lost += 1;
        self.resend = self.resend.min(seq);
        self.forget();
        true
    }

    /// What has a lower number than `seq`, left before `sent` and has not arrived is lost. Returns how many packets that is.
    pub(crate) fn lose_before(&mut self, seq: u32, sent: Time) -> u32 {
        let mut lost = 0;
        for departure in self.departures.iter_mut().take_while(|departure| departure.at < sent) {
            if departure.state == State::UnderWay && departure.seq < seq {
                departure.state = State::Void;
                self.packets[(departure.seq - self.base) as usize].is_lost = true;
                self.resend = self.resend.min(departure.seq);
                lost += 1;
            }
        }
        self.lost += lost;
        self.forget();
        lost
    }

    /// The first departure is lost.
    fn lose_first(&mut self) {
        let Some(departure) = self.departures.front_mut() else { return };
        departure.state = State::Void;
        let seq = departure.seq;
        self.packets[(seq - self.base) as usize].is_lost = true;
        self.lost += 1;
        self.resend = self.resend.min(seq);
        self.forget();
    }

    /// A loss is to be repaired.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "packets of a flow have numbers of 32 bits: Transport::largest_message"
    )]
    fn enter(&mut self) {
        if !self.is_recovering() && self.persistence > 0 {
            self.persistence -= 1;
            if self.persistence == 0 {
                self.window = 1;
            }
        }
        self.recover = self.base + self.packets.len() as u32;
        self.probed = None;
    }

    /// Gives up what is under way: all of it, where only trimming reports losses what is overdue by itself, with a bitmap
    /// what left two round trips ago or earlier, or with RACK after a timeout only what may be late by now. Returns how many packets that was.
    pub(crate) fn give_up(&mut self, transport: &Transport, rtt: &Rtt, now: Time) -> u32 {
        let reliability = transport.reliability.facts();
        let spared = match reliability.gives_up {
            GivesUp::All => None,
            GivesUp::Late => {
                reliability.loss_detection.map(|detection| self.latest_rtt + self.lateness(detection, rtt))
            }
            // Nothing but its own time says that a packet is lost.
            GivesUp::Overdue => Some(rtt.timeout(&transport.options, self.backoff.saturating_sub(1))),
            // Other paths may be well.
            GivesUp::TwoRoundTrips => rtt.smoothed().map(|smoothed| smoothed * 2),
        };
        let mut given_up = 0;
        while let Some(front) = self.departures.front() {
            if given_up > 0 && spared.is_some_and(|spared| front.at + spared > now) {
                break;
            }
            self.lose_first();
            given_up += 1;
        }
        self.enter();
        given_up
    }

    /// When a sender with nothing under way has received nothing for a timeout.
    pub(crate) fn timeout_after_progress(&self, transport: &Transport, rtt: &Rtt) -> Time {
        self.progress + rtt.timeout(&transport.options, self.backoff)
    }

    /// What left at `sent` was trimmed. Whether its receiver now asks for another path, after that many trims without an arrival in between; what left
    /// before the last change of path says nothing about the new one.
    pub(crate) fn reroutes(&mut self, after: u32, sent: Time, now: Time) -> bool {
        if self.rerouted.is_some_and(|at| sent <= at) {
            return false;
        }
        self.trims += 1;
        let asks = self.trims >= after;
        if asks {
            (self.rerouted, self.trims) = (Some(now), 0);
        }
        asks
    }

    /// A timeout has passed.
    pub(crate) fn back_off(&mut self) {
        self.backoff += 1;
        self.probe = None;
    }

    /// When a packet that is in flight was last sent.
    pub(crate) fn sent_at(&self, seq: u32) -> Option<Time> {
        let packet =
            self.packets.get(seq.checked_sub(self.base)? as usize).filter(|packet| !packet.is_lost)?;
        self.departures.get(packet.departure.wrapping_sub(self.first) as usize).map(|departure| departure.at)
    }

    /// Whether something is under way and no timer can expire before `time`: packets are given up by timeouts alone, and the shortest ends no earlier. `false` where that takes more to find out.
    #[inline(always)]
    pub(crate) fn is_quiet_until(&self, transport: &Transport, time: Time) -> bool {
        let Some(oldest) = self.departures.front() else { return false };
        !self.rack && oldest.at + Rtt::least_timeout(&transport.options) >= time
    }

    /// Which timer expires next, and when; `None` while nothing is under way.
    #[inline]
    pub(crate) fn due(&self, transport: &Transport, rtt: &Rtt, in_flight: u32) -> Option<(Time, Due)> {
        let oldest = self.departures.front()?.at;
        let timeout = (oldest + rtt.timeout(&transport.options, self.backoff), Due::Timeout);
        let Some(detection) = transport.reliability.facts().loss_detection.filter(|found| found.rack) else {
            return Some(timeout);
        };
        let late = self.too_late_at(detection, rtt).map(|at| (at, Due::Lateness));
        let probe =
            rtt.smoothed().filter(|_| self.lost == 0 && self.probed.is_none() && !self.is_recovering());
        let probe = probe.map(|smoothed| {
            // The receiver may be holding the only ACK back.
            let is_held = in_flight == 1 && transport.options.ack_every > 1;
            let held = if is_held { transport.options.ack_delay } else { Time::ZERO };
            (self.progress + smoothed * 2 + held, Due::Probe)
        });
        let first = late.map_or(timeout, |late| late.min(timeout));
        Some(probe.map_or(first, |probe| probe.min(first)))
    }

    /// Sends a probe: something new if there `is_new`, else the last packet again. Returns how many packets are in flight no more.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "packets of a flow have numbers of 32 bits: Transport::largest_message"
    )]
    pub(crate) fn begin_probe(&mut self, is_new: bool) -> u32 {
        let next = self.base + self.packets.len() as u32;
        self.probed = Some(next + u32::from(is_new));
        let last = self.packets.iter().rposition(|packet| !packet.is_acked);
        let Some(last) = last.filter(|_| !is_new) else { return 0 };
        let seq = self.base + last as u32;
        let index = self.packets[last].departure.wrapping_sub(self.first) as usize;
        self.departures[index].state = State::Void;
        self.probe = Some((seq, self.departures[index].at));
        self.packets[last].is_lost = true;
        self.lost += 1;
        self.resend = self.resend.min(seq);
        self.forget();
        1
    }
}

#[cfg(test)]
mod tests;
