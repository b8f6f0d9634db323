//! SLEEK: losses are found without trimming, by how many packets have come out of order and by probes.

use netloom_units::Time;

use super::{Sack, Sender};
use crate::config::Transport;
use crate::feedback::{Ack, Feedback};
use crate::reliability::pds::Sleek;

/// What a congestion control says of the queues on a flow's path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queueing {
    /// The least round-trip time seen.
    pub(crate) base_rtt: Time,
    /// The delay in queues at which it aims.
    pub(crate) target: Time,
    /// The average delay.
    pub(crate) average: Time,
    /// The largest window, in bytes on the wire.
    pub(crate) most: u64,
}

/// What a sender remembers for it.
#[derive(Clone, Debug, Default)]
pub(super) struct State {
    /// It is recovering from losses until everything below `until` is acknowledged.
    pub(super) recovers: bool,
    until: u32,
    /// Packets with lower numbers have been sent again, or need not be.
    repeated: u32,
    /// When the next probe leaves, if nothing comes back before.
    pub(super) probe_due: Option<Time>,
    /// How many probes have left, and when the last one did.
    probes: u32,
    probed: Time,
    /// One is to leave now.
    probes_now: bool,
}

impl Sender {
    /// The answer to a probe arrived, with the number of that probe: it says what an ACK for several packets does.
    pub fn on_probe_answer(&mut self, transport: &Transport, ack: Ack, sack: Sack, number: u32) -> Feedback {
        let state = self.sleek.as_ref().zip(self.control.queueing());
        let sent = state.filter(|(state, _)| state.probes == number).map(|(state, queueing)| {
            // A probe is smaller than a data packet, so its round-trip time may be below the least one of these.
            state.probed.min(ack.now.saturating_sub(queueing.base_rtt))
        });
        let feedback = self.take_sack(transport, ack, sack, sent);
        if let Some(queueing) = self.control.queueing() {
            let delay =
                sent.map_or(queueing.average, |sent| (ack.now - sent).saturating_sub(queueing.base_rtt));
            let next = self.next;
            if let Some(state) = self.sleek.as_mut().filter(|_| delay < queueing.target) {
                (state.recovers, state.until, state.repeated) = (true, next, ack.cumulative);
            }
        }
        self.find_missing(transport, ack, sack);
        feedback
    }

    /// An ACK has been taken: sets the time of the next probe, and has sent again what is missing.
    pub(super) fn find_missing(&mut self, transport: &Transport, ack: Ack, sack: Sack) {
        let Some(config) = transport.reliability.sleek() else { return };
        let Some(queueing) = self.control.queueing() else { return };
        let has_more = self.next < self.content.count;
        let (window, payload) = (self.gate.window(), transport.options.mtu.0);
        let Some(state) = &mut self.sleek else { return };
        state.probe_due = (ack.cumulative < self.next || has_more).then(|| {
            let wait = match has_more {
                true => times(queueing.base_rtt, config.first_probe),
                false => queueing.base_rtt + queueing.target,
            };
            ack.now.saturating_add(wait)
        });
        state.recovers &= ack.cumulative < state.until;
        let beyond = sack.received.saturating_sub(ack.cumulative);
        if !state.recovers {
            let is_clear = self.recovery.as_ref().is_some_and(|recovery| recovery.lost() == 0);
            if u64::from(beyond) < config.threshold(window, queueing.most, payload) || !is_clear {
                return;
            }
            (state.recovers, state.until) = (true, self.next);
        }
        let reach = u32::try_from(window / payload).unwrap_or(u32::MAX);
        let (from, until) =
            (state.repeated.max(ack.cumulative), state.until.min(ack.cumulative.saturating_add(reach)));
        let mut lost = 0;
        if let Some(recovery) = &mut self.recovery {
            for seq in from..until {
                if let Some(sent) = recovery.sent_at(seq)
                    && recovery.lose_departure(seq, sent)
                {
                    (state.repeated, lost) = (seq + 1, lost + 1);
                }
            }
        }
        self.leave_flight(lost);
        self.at_once |= self.repeats_at_once();
    }

    /// Whether what is missing leaves whatever the window says.
    pub(super) fn repeats_at_once(&self) -> bool {
        self.recovers() && self.must_resend()
    }

    /// Whether it is recovering from losses.
    pub(super) fn recovers(&self) -> bool {
        self.sleek.as_ref().is_some_and(|state| state.recovers)
    }

    /// The time for a probe may have come.
    pub(super) fn probe_if_due(&mut self, transport: &Transport, now: Time) {
        let Some((config, queueing)) = transport.reliability.sleek().zip(self.control.queueing()) else {
            return;
        };
        let Some(state) = &mut self.sleek else { return };
        if state.probe_due.is_some_and(|due| due <= now) {
            (state.probes, state.probed, state.probes_now) = (state.probes.wrapping_add(1), now, true);
            state.probe_due = Some(now.saturating_add(times(queueing.base_rtt, config.next_probe)));
        }
    }

    /// The number of the probe that is to leave now, if one is.
    pub fn take_probe(&mut self) -> Option<u32> {
        let state = self.sleek.as_mut()?;
        std::mem::take(&mut state.probes_now).then_some(state.probes)
    }
}

/// That many times a time.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
fn times(time: Time, factor: f64) -> Time {
    Time((time.0 as f64 * factor) as u64)
}

impl Sleek {
    /// How many packets beyond the next one expected show that others are lost.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    fn threshold(&self, window: u64, most: u64, payload: u64) -> u64 {
        let bytes = ((self.window_factor * window as f64) as u64).min(most);
        (bytes / payload).max(self.min_packets.into())
    }
}
