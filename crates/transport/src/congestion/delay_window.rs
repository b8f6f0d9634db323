//! What windows that go by delay have in common: Swift's reaction to losses and timeouts, and at most one decrease per round trip.

use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

use crate::feedback::{Cause, Feedback};

/// Timeouts in a row that leave the minimum window (Swift's RETX_RESET_THRESHOLD).
const RESET_AFTER: u32 = 5;

/// What bounds a window.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// Minimum and maximum, in packets.
    pub(super) least: f64,
    pub(super) most: f64,
    /// The largest share of the window that one decrease takes, and the share that a loss takes.
    pub(super) max_decrease: f64,
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(super) struct DelayWindow {
    /// In packets.
    pub(super) packets: f64,
    /// Bytes of a full packet.
    packet: f64,
    /// When it last shrank.
    decreased: Option<Time>,
    /// The round-trip time last seen.
    pub(super) rtt: Time,
    timeouts: u32,
}

/// It rests at its largest.
impl Recur for DelayWindow {
    fn recur(&mut self, walk: &mut Walk) {
        let DelayWindow { packets, packet: _, decreased, rtt, timeouts } = self;
        walk.exact(packets.to_bits());
        // How long ago that was matters for as long as a round trip, which varies.
        if walk.is_some(decreased)
            && let Some(at) = decreased
        {
            walk.time(at);
        }
        walk.exact(rtt.0);
        walk.exact(*timeouts);
    }
}

impl DelayWindow {
    pub(super) fn new(packets: f64, packet: f64) -> Self {
        DelayWindow { packets, packet, decreased: None, rtt: Time::ZERO, timeouts: 0 }
    }

    /// In bytes on the wire.
    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    pub(super) fn bytes(&self) -> u64 {
        (self.packets * self.packet) as u64
    }

    /// The sender learnt something. `on_ack` says what an ACK does: it updates the round-trip time, and is told whether the window may shrink. Returns whether the window is cut.
    #[inline]
    pub(super) fn react(
        &mut self,
        bounds: Bounds,
        feedback: &Feedback,
        on_ack: impl FnOnce(&mut Self, bool),
    ) -> bool {
        let may_decrease = self.decreased.is_none_or(|at| feedback.now - at >= self.rtt);
        let before = self.packets;
        match feedback.cause {
            Cause::Ack => {
                self.timeouts = 0;
                on_ack(self, may_decrease);
            }
            Cause::Timeout => {
                self.timeouts += 1;
                if self.timeouts >= RESET_AFTER {
                    self.packets = bounds.least;
                } else if may_decrease {
                    self.packets *= 1.0 - bounds.max_decrease;
                }
            }
            Cause::Loss | Cause::Nack | Cause::Trim | Cause::Return => {
                self.timeouts = 0;
                if may_decrease {
                    self.packets *= 1.0 - bounds.max_decrease;
                }
            }
            Cause::Notification | Cause::Unreachable => {}
        }
        self.packets = self.packets.clamp(bounds.least, bounds.most);
        let is_cut = self.packets < before;
        if is_cut {
            self.decreased = Some(feedback.now);
        }
        is_cut
    }

    /// The window becomes a single packet, as the SYN got lost.
    pub(super) fn shrink_to_one(&mut self) {
        self.packets = self.packets.min(1.0);
    }
}
