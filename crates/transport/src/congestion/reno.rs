//! The window that NewReno and DCTCP share.

use netloom_units::{Bytes, Time};

use crate::feedback::{Cause, Feedback};

/// Slow start and congestion avoidance, and halving on loss (RFC 5681), in bytes on the wire.
#[derive(Clone, Debug)]
pub(crate) struct Reno {
    cwnd: f64,
    ssthresh: f64,
    packet: f64,
    least: f64,
    most: f64,
    /// When the window was last cut. Nothing sent until then says anything new about the window since.
    cut: Option<Time>,
}

impl Reno {
    /// All in full packets, but for the largest window.
    pub(crate) fn new(packet: Bytes, initial: u32, least: f64, most: Option<Bytes>) -> Self {
        let packet = packet.0 as f64;
        let least = packet * least;
        let most = most.map_or(f64::INFINITY, |limit| limit.0 as f64).max(least.max(packet));
        let cwnd = (packet * f64::from(initial)).min(most);
        Reno { cwnd, ssthresh: f64::INFINITY, packet, least, most, cut: None }
    }

    #[inline]
    pub(crate) fn window(&self) -> u64 {
        self.cwnd as u64
    }

    /// Whether the packet that this is about was sent after the last cut.
    pub(crate) fn is_after_cut(&self, feedback: &Feedback) -> bool {
        self.cut.is_none_or(|cut| feedback.sent() > cut)
    }

    /// No more slow start.
    pub(crate) fn end_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.cwnd);
    }

    /// Unmarked packets were acknowledged. A window that is not what limits the flow does not grow (RFC 9002, section 7.8).
    pub(crate) fn grow(&mut self, feedback: &Feedback) {
        let bytes = feedback.bytes as f64;
        let in_flight = f64::from(feedback.in_flight + feedback.packets) * self.packet;
        if self.cwnd < self.ssthresh {
            if in_flight * 2.0 >= self.cwnd {
                self.cwnd += bytes;
            }
        } else if in_flight + self.packet > self.cwnd {
            self.cwnd += self.packet * bytes / self.cwnd.max(self.packet);
        }
        self.cwnd = self.cwnd.min(self.most);
    }

    /// Multiplies the window.
    pub(crate) fn scale(&mut self, factor: f64) {
        self.cwnd = (self.cwnd * factor).max(self.least);
        self.ssthresh = self.cwnd;
    }

    /// Halves the window because of a mark.
    pub(crate) fn halve(&mut self, now: Time) {
        self.scale(0.5);
        self.cut = Some(now);
    }

    /// Packets were lost: halves the window unless it was cut since they were sent; a timeout leaves one packet. Returns whether it is cut.
    pub(crate) fn on_loss(&mut self, feedback: &Feedback) -> bool {
        let outstanding = f64::from(feedback.next - feedback.oldest) * self.packet;
        let half = (self.cwnd.min(outstanding) / 2.0).max(2.0 * self.packet);
        if feedback.cause == Cause::Timeout {
            // A second timeout in a row tells nothing about the path (RFC 5681, section 3.1).
            if self.cwnd > self.packet {
                self.ssthresh = half;
            }
            self.cwnd = self.packet.max(self.least).min(self.most);
            self.cut = Some(feedback.now);
            return true;
        }
        let is_new = self.is_after_cut(feedback);
        if is_new {
            self.ssthresh = half;
            self.cwnd = self.cwnd.min(half).max(self.least);
            self.cut = Some(feedback.now);
        }
        is_new
    }
}
