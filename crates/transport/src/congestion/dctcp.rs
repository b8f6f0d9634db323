//! DCTCP's window: cut in proportion to the share of marked bytes.

use netloom_units::Bytes;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::feedback::{Cause, Feedback};

/// DCTCP (Alizadeh et al., SIGCOMM'10; RFC 8257): per window, alpha ← (1 − g) alpha + g F with F the marked share of acknowledged bytes; a
/// window with marks ends with cwnd ← cwnd (1 − alpha / 2). Grows as Reno otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Dctcp {
    /// Weight of the newest share, g.
    pub g: f64,
    /// Initial alpha. RFC 8257 suggests 1; htsim starts at 0.
    pub initial_alpha: f64,
    /// Initial window in full packets.
    pub initial_window: u32,
    /// Largest window; absent: no limit.
    pub max_window: Option<Bytes>,
}

impl Default for Dctcp {
    fn default() -> Self {
        Dctcp { g: 1.0 / 16.0, initial_alpha: 1.0, initial_window: 10, max_window: None }
    }
}

/// The window of one flow, in bytes on the wire.
#[derive(Clone, Debug)]
pub(crate) struct State {
    cwnd: f64,
    ssthresh: f64,
    packet: f64,
    limit: f64,
    alpha: f64,
    /// The window under observation ends when this packet number is acknowledged.
    end: u32,
    acked: u64,
    marked: u64,
}

impl Dctcp {
    pub(crate) fn check(&self) -> Result<(), String> {
        if !(self.g > 0.0 && self.g <= 1.0) {
            return Err(format!("dctcp.g: expected a number above 0 and at most 1, found {}", self.g));
        }
        if !(0.0..=1.0).contains(&self.initial_alpha) {
            return Err(format!("dctcp.initial_alpha: expected 0 to 1, found {}", self.initial_alpha));
        }
        if self.initial_window == 0 {
            return Err("dctcp.initial_window: expected at least 1 packet, found 0".into());
        }
        Ok(())
    }

    pub(crate) fn begin(&self, packet: Bytes) -> State {
        let packet = packet.0 as f64;
        State {
            cwnd: packet * f64::from(self.initial_window),
            ssthresh: f64::INFINITY,
            packet,
            limit: self.max_window.map_or(f64::INFINITY, |limit| limit.0 as f64).max(packet),
            alpha: self.initial_alpha,
            end: 0,
            acked: 0,
            marked: 0,
        }
    }
}

impl State {
    pub(crate) fn window(&self) -> u64 {
        self.cwnd as u64
    }

    /// Returns whether the window is cut.
    pub(crate) fn on_feedback(&mut self, config: &Dctcp, feedback: &Feedback) -> bool {
        match feedback.cause {
            Cause::Ack => self.on_ack(config, feedback),
            Cause::Nack | Cause::Loss | Cause::Timeout => self.on_loss(feedback.cause == Cause::Timeout),
        }
    }

    fn on_ack(&mut self, config: &Dctcp, feedback: &Feedback) -> bool {
        let &Feedback { bytes, marked, oldest: acked, next, .. } = feedback;
        let mut is_cut = false;
        self.acked += bytes;
        if marked {
            self.marked += bytes;
            self.ssthresh = self.ssthresh.min(self.cwnd);
        } else if self.cwnd < self.ssthresh {
            self.cwnd += bytes as f64;
        } else {
            self.cwnd += self.packet * bytes as f64 / self.cwnd;
        }
        if acked >= self.end && self.acked > 0 {
            let share = self.marked as f64 / self.acked as f64;
            self.alpha += config.g * (share - self.alpha);
            if self.marked > 0 {
                self.cwnd *= 1.0 - self.alpha / 2.0;
                self.ssthresh = self.cwnd;
                is_cut = true;
            }
            (self.acked, self.marked, self.end) = (0, 0, next);
        }
        self.cwnd = self.cwnd.clamp(self.packet, self.limit);
        is_cut
    }

    fn on_loss(&mut self, timeout: bool) -> bool {
        self.ssthresh = (self.cwnd / 2.0).max(2.0 * self.packet);
        self.cwnd = if timeout { self.packet } else { self.ssthresh.min(self.cwnd) };
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_units::Time;

    const PACKET: u64 = 1500;

    /// Acknowledges one packet.
    fn ack(marked: bool, oldest: u32, next: u32) -> Feedback {
        Feedback {
            now: Time::ZERO,
            cause: Cause::Ack,
            seq: oldest - 1,
            rtt: Time::ZERO,
            way: Time::ZERO,
            hops: 0,
            marked,
            tag: 0,
            packets: 1,
            bytes: PACKET,
            in_flight: next - oldest,
            oldest,
            next,
            remaining: Bytes(0),
            window_cut: false,
        }
    }

    /// Acknowledges whole windows of 100 packets, `marks` of each marked, and returns the state.
    fn windows(count: u32, marks: u32, initial_alpha: f64) -> State {
        let config = Dctcp { initial_alpha, ..Dctcp::default() };
        let mut state = config.begin(Bytes(PACKET));
        state.ssthresh = 0.0;
        for window in 0..count {
            for packet in 0..100 {
                let acked = window * 100 + packet + 1;
                state.on_ack(&config, &ack(packet < marks, acked, (window + 1) * 100 + packet + 1));
            }
        }
        state
    }

    #[test]
    fn alpha_tends_to_the_marked_share() {
        assert!((windows(300, 30, 1.0).alpha - 0.3).abs() < 0.02);
        assert!(windows(300, 0, 1.0).alpha < 1e-6);
    }

    #[test]
    fn a_fully_marked_window_is_halved_once_alpha_is_one() {
        let config = Dctcp::default();
        let mut state = config.begin(Bytes(PACKET));
        (state.cwnd, state.end) = (100_000.0, 10);
        for acked in 1..=10 {
            state.on_ack(&config, &ack(true, acked, 20));
        }
        assert_eq!(state.window(), 50_000);
    }

    #[test]
    fn slow_start_doubles_per_window_until_the_first_mark() {
        let config = Dctcp::default();
        let mut state = config.begin(Bytes(PACKET));
        for acked in 1..=10 {
            state.on_ack(&config, &ack(false, acked, 100));
        }
        assert_eq!(state.window(), 20 * PACKET);
        state.on_ack(&config, &ack(true, 11, 100));
        let before = state.window();
        state.on_ack(&config, &ack(false, 12, 100));
        assert!(state.window() - before < PACKET / 10);
    }
}
