//! What a sender does with ACKs that answer several packets and have a bitmap.
//!
//! They say how many packets have come in all, and of some of them which. So what is in flight is counted by the former, and packets are forgotten by the
//! latter, which may be behind.

use netloom_units::Time;

use super::Sender;
use crate::config::Transport;
use crate::feedback::{Ack, Cause, Feedback};

/// What an ACK says of several packets, besides what it says of the one that caused it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sack {
    /// Packets that have arrived, each counted once.
    pub received: u32,
    /// The number for which bit 0 of [`Self::bits`] stands.
    pub first: u32,
    /// Which of 64 packets have arrived.
    pub bits: u64,
    /// Whether the packet that caused the ACK had been sent again.
    pub is_repeat: bool,
}

impl Sender {
    /// An ACK arrived for several packets. When its packet left it does not say: `ack.sent` is not read.
    pub fn on_sack(&mut self, transport: &Transport, ack: Ack, sack: Sack) -> Feedback {
        let sent = self.departure_of(ack.seq, sack.is_repeat);
        if let Some(sent) = sent {
            self.rtt.sample(ack.now - sent);
        }
        let feedback = self.take_sack(transport, ack, sack, sent);
        if self.sleek.is_some() {
            self.find_missing(transport, ack, sack);
        }
        feedback
    }

    /// The same, of a packet that left at `sent`, if that is known.
    #[inline(always)]
    pub(super) fn take_sack(
        &mut self,
        transport: &Transport,
        ack: Ack,
        sack: Sack,
        sent: Option<Time>,
    ) -> Feedback {
        let Some(recovery) = &mut self.recovery else {
            return self.feedback(transport, Cause::Ack, ack);
        };
        let newly = recovery.count_received(sack.received);
        let mut not_in_flight = i64::from(newly);
        while self.acked.base() < ack.cumulative {
            not_in_flight -= self.arrive(self.acked.base(), ack);
        }
        let mut bits = sack.bits & !self.acked.bits_from(sack.first);
        while bits != 0 {
            not_in_flight -= self.arrive(sack.first + bits.trailing_zeros(), ack);
            bits &= bits - 1;
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.settle(self.acked.base());
            self.in_flight = recovery.land(self.in_flight, not_in_flight);
        }
        let usual = || ack.now.saturating_sub(self.rtt.smoothed().unwrap_or(self.base_rtt));
        let ack = Ack { sent: sent.unwrap_or_else(usual), ..ack };
        let mut feedback = self.feedback_of(transport, ack, newly);
        feedback.is_sampled = sent.is_some();
        self.react(transport, &mut feedback);
        feedback.window_cut |= self.is_notified(transport, ack, false);
        feedback
    }

    /// When the packet left that an ACK names, if that is clear.
    pub fn departure_of(&self, seq: u32, is_repeat: bool) -> Option<netloom_units::Time> {
        self.recovery.as_ref()?.departure_of(seq, is_repeat)
    }

    /// A packet has arrived. Returns 1 if it was given up before and still waits to be sent again: then it is not in flight already, though it counts as received.
    fn arrive(&mut self, seq: u32, ack: Ack) -> i64 {
        let Some(recovery) = self.recovery.as_mut().filter(|_| self.acked.insert(seq)) else { return 0 };
        i64::from(!recovery.acknowledge(seq, None, ack.now))
    }

    /// That many packets are known to be lost.
    pub(super) fn leave_flight(&mut self, packets: u32) {
        self.in_flight = match &mut self.recovery {
            Some(recovery) => recovery.land(self.in_flight, packets.into()),
            None => self.in_flight - packets,
        };
    }

    /// Whether the packet that leaves now asks for an ACK: nothing can follow it at once.
    pub(super) fn is_last_for_now(&self, now: netloom_units::Time) -> bool {
        let has_more = self.next < self.content.count || self.must_resend();
        let fits = (u64::from(self.in_flight) + 1) * u64::from(self.size) < self.gate.window();
        !has_more || !fits || self.gate.credit() == 0 || self.gate.opens_at() > now
    }
}

#[cfg(test)]
mod tests;
