//! The window that NewReno, DCTCP and CUBIC share.

use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Bytes, Time};

use crate::feedback::{Cause, Feedback};

/// Slow start and congestion avoidance, and at most one cut per window (RFC 5681), in bytes on the wire.
///
/// A cut does not take effect at once, which would leave a hole of half a round trip in what the flow sends, and bunch its packets ever
/// after: the window glides to its new size while what is in flight is delivered, in proportion (RFC 6937).
#[derive(Clone, Debug)]
pub(crate) struct Reno {
    cwnd: f64,
    /// Where slow start ends, and where a cut leads.
    ssthresh: f64,
    /// By how much the window changes per byte delivered until it reaches `ssthresh`; 0: no cut is under way.
    glide: f64,
    /// By how much the window grows at most per byte delivered, beyond slow start.
    steepest: f64,
    packet: f64,
    least: f64,
    most: f64,
    /// When the window was last cut. Nothing sent until then says anything new about the window since.
    cut: Option<Time>,
}

/// It rests where it is the largest, or where less is in flight than it allows.
impl Recur for Reno {
    fn recur(&mut self, walk: &mut Walk) {
        let Reno { cwnd, ssthresh, glide, steepest, packet: _, least: _, most: _, cut } = self;
        [*cwnd, *ssthresh, *glide, *steepest].into_iter().for_each(|number| walk.exact(number.to_bits()));
        // What was sent before may still be in flight.
        if walk.is_some(cut)
            && let Some(at) = cut
        {
            walk.time(at);
        }
    }
}

impl Reno {
    /// All in full packets, but for the largest window.
    pub(crate) fn new(
        packet: Bytes,
        initial: u32,
        least: f64,
        most: Option<Bytes>,
        ssthresh: Option<u32>,
    ) -> Self {
        let packet = packet.0 as f64;
        let least = packet * least;
        let most = most.map_or(f64::INFINITY, |limit| limit.0 as f64).max(least.max(packet));
        let cwnd = (packet * f64::from(initial)).min(most);
        Reno {
            cwnd,
            ssthresh: ssthresh.map_or(f64::INFINITY, |packets| packet * f64::from(packets)),
            glide: 0.0,
            steepest: f64::INFINITY,
            packet,
            least,
            most,
            cut: None,
        }
    }

    #[inline]
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    pub(crate) fn window(&self) -> u64 {
        self.cwnd as u64
    }

    /// Whether it was ever cut by a mark or a loss.
    pub(crate) fn has_been_cut(&self) -> bool {
        self.cut.is_some()
    }

    /// Whether the packet that this is about was sent after the last cut.
    pub(crate) fn is_after_cut(&self, feedback: &Feedback) -> bool {
        self.cut.is_none_or(|cut| feedback.sent() > cut)
    }

    /// The window in bytes.
    pub(crate) fn cwnd(&self) -> f64 {
        self.cwnd
    }

    /// Packets were acknowledged, the last of them marked if `marked`.
    pub(crate) fn on_ack(&mut self, feedback: &Feedback, marked: bool) {
        let (packet, steepest) = (self.packet, self.steepest);
        self.on_ack_by(feedback, marked, |cwnd, is_limiting| {
            let bytes = feedback.bytes as f64;
            let alone = packet * bytes / cwnd.max(packet);
            if is_limiting { alone.min(steepest * bytes) } else { 0.0 }
        });
    }

    /// The same, where congestion avoidance adds what is given, by the window and whether that is what limits the flow.
    #[inline]
    pub(crate) fn on_ack_by(
        &mut self,
        feedback: &Feedback,
        marked: bool,
        avoid: impl FnOnce(f64, bool) -> f64,
    ) {
        let bytes = feedback.bytes as f64;
        if self.glide != 0.0 {
            let cwnd = self.cwnd + self.glide * bytes;
            let is_there = if self.glide < 0.0 { cwnd <= self.ssthresh } else { cwnd >= self.ssthresh };
            (self.cwnd, self.glide) = if is_there { (self.ssthresh, 0.0) } else { (cwnd, self.glide) };
        } else if !marked && self.is_after_cut(feedback) {
            self.grow(feedback, bytes, avoid);
        }
    }

    /// A window that is not what limits the flow does not grow (RFC 9002, section 7.8).
    #[inline]
    fn grow(&mut self, feedback: &Feedback, bytes: f64, avoid: impl FnOnce(f64, bool) -> f64) {
        let in_flight = f64::from(feedback.in_flight + feedback.packets) * self.packet;
        if self.cwnd < self.ssthresh {
            if in_flight * 2.0 >= self.cwnd {
                self.cwnd = (self.cwnd + bytes).min(self.ssthresh);
            }
        } else {
            self.cwnd += avoid(self.cwnd, in_flight + self.packet > self.cwnd);
        }
        self.cwnd = self.cwnd.min(self.most);
    }

    /// The window is a single packet from now on.
    pub(crate) fn begin_with_one(&mut self) {
        self.cwnd = self.packet.max(self.least).min(self.most);
    }

    /// Beyond slow start the window grows by at most that many bytes per byte delivered.
    pub(crate) fn couple(&mut self, per_byte: f64) {
        self.steepest = per_byte;
    }

    /// Multiplies the window because of a mark.
    pub(crate) fn scale(&mut self, factor: f64, feedback: &Feedback) {
        self.cut_to(self.cwnd * factor, feedback);
    }

    /// Multiplies the window without a glide; it may grow again with the same ACK.
    pub(crate) fn scale_at_once(&mut self, factor: f64) {
        self.cwnd = (self.cwnd * factor).max(self.least);
        (self.ssthresh, self.glide) = (self.cwnd, 0.0);
    }

    /// The window is beyond slow start from now on.
    pub(crate) fn end_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }

    fn cut_to(&mut self, target: f64, feedback: &Feedback) {
        self.ssthresh = target.max(self.least);
        self.cwnd = (f64::from(feedback.in_flight) * self.packet).max(self.packet.min(self.ssthresh));
        self.glide = if self.cwnd > self.ssthresh { self.ssthresh / self.cwnd - 1.0 } else { 1.0 };
        self.cut = Some(feedback.now);
    }

    /// Packets were lost: halves the window unless it was cut since they were sent; a timeout leaves one packet. Returns whether it is cut.
    pub(crate) fn on_loss(&mut self, feedback: &Feedback) -> bool {
        self.on_loss_to(0.5, feedback)
    }

    /// The same, where a cut leaves another part than half.
    pub(crate) fn on_loss_to(&mut self, part: f64, feedback: &Feedback) -> bool {
        let outstanding = f64::from(feedback.next - feedback.oldest) * self.packet;
        let left = (self.cwnd.min(outstanding) * part).max(2.0 * self.packet).min(self.most);
        if feedback.cause == Cause::Timeout {
            // A second timeout in a row says nothing about the path (RFC 5681, section 3.1).
            if self.cwnd > self.packet {
                self.ssthresh = left;
            }
            self.cwnd = self.packet.max(self.least).min(self.most);
            self.glide = 0.0;
            self.cut = Some(feedback.now);
            return true;
        }
        let is_new = self.is_after_cut(feedback);
        if is_new {
            self.cut_to(left, feedback);
        }
        is_new
    }
}

#[cfg(test)]
impl Reno {
    /// Whether a cut is under way.
    pub(crate) fn is_gliding(&self) -> bool {
        self.glide != 0.0
    }
}
