//! MP-RDMA: one window for all paths, and ACKs that say where the next packets go.
//!
//! A *virtual path* is an entropy value: what switches hash to choose the ports of a packet. A sender knows nothing else of paths and keeps
//! nothing per path. Each ACK moves the one window, and what the window then lets out leaves on the path of that ACK: a path that
//! answers twice as fast gets twice as many packets.
//!
//! ```text
//!   ACK, not marked   window += 1 / window
//!   ACK, marked       window -= 1/2
//!   then              up to two packets on the ACK's path, if window - in flight - released allows
//!   ACK from far behind the highest one acknowledged
//!                     window -= 1, and nothing follows on that path: slow paths are pruned
//!   once per round trip, with a small probability
//!                     a packet tries a path drawn anew in place of the ACK's
//!   half a round trip without a release that the window allows
//!                     it is released, on paths drawn anew
//! ```

use std::collections::VecDeque;

use netloom_units::{Bytes, Invalid, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestionConfig, CongestionControl, Facts, Limit, Marks, SlowedBy, Start, window};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// MP-RDMA's congestion control over many paths (Lu et al., NSDI'18). Paths are entropy values at the NIC, so `routing` must be
/// `spray-nic`: it draws the first ones and those that are tried; otherwise a packet takes the path of the ACK that releases it. Needs an
/// ACK per packet and a fabric that marks.
///
/// There is one window for all paths. An ACK adds 1/window of a packet, a marked ACK removes half a packet, and up to two packets then
/// leave on the path of that ACK, as far as the window allows: paths get packets as fast as they return ACKs. An ACK that is more than
/// `delta` packets behind the highest acknowledged one removes a packet from the window and releases nothing, so that slow paths are
/// dropped and packets stay nearly in order. At a tenth of the others' rate each packet of a slow path lets eleven others pass, so with a
/// `delta` of 32 it holds two or three.
///
/// While packets that were lost or refused are being replaced, the window does not change. After a timeout what left two round trips
/// earlier is given up, and a whole window leaves on newly drawn paths. Each path is one hash of data and one of ACKs. The preset
/// `entropy-reuse` is what the Flowcut authors' simulator runs under the name of MP-RDMA: `reuse_marked = false`, `delta = 0`, `probe = 0`,
/// and selective repeat.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct MpRdma {
    /// First window in packets, each on a newly drawn path; absent: as many as a bandwidth-delay product takes.
    pub initial_window: Option<u32>,
    /// How many packets an ACK may be behind the highest one acknowledged before its path is pruned: the distance Δ that keeps packets
    /// nearly in order. 0: no path is pruned.
    pub delta: u32,
    /// Probability that, once per round trip, a packet tries a new random path.
    pub probe: f64,
    /// If nothing was released for this fraction of a round trip, what the window allows is released on new paths.
    pub burst: f64,
    /// Whether a marked ACK's path is used again. MP-RDMA does so; a sender that only reuses good paths draws another one instead.
    pub reuse_marked: bool,
    /// With streams: every message is kept back until this many times Δ round trips per window after the last packet of the one before, so that
    /// it does not overtake it (synchronise messages, α in the paper); absent: messages follow each other at once.
    pub synchronise: Option<f64>,
}

impl Default for MpRdma {
    /// Δ of 32 packets and probes in 1% of the round trips, as the paper.
    fn default() -> Self {
        MpRdma {
            initial_window: None,
            delta: 32,
            probe: 0.01,
            burst: 0.5,
            reuse_marked: true,
            synchronise: None,
        }
    }
}

impl MpRdma {
    fn state(&self, bdp: Bytes, packet: Bytes, base_rtt: Time, now: Time) -> State {
        let window =
            self.initial_window.unwrap_or_else(|| narrow(bdp.0.div_ceil(packet.0).clamp(1, 1 << 30)));
        State {
            window: f64::from(window),
            paths: VecDeque::new(),
            path: None,
            highest: 0,
            recover: 0,
            allowed: 0,
            quiet: now,
            rtt: base_rtt,
            round: now,
            may_probe: false,
        }
    }
}

/// The window of one flow, and where its next packets go.
#[derive(Clone, Debug)]
pub(crate) struct State {
    /// In packets; at least 1.
    window: f64,
    /// The paths of packets that have been released: the gate's credit, less those that take paths drawn anew.
    paths: VecDeque<u32>,
    /// The path of the packet that leaves; none: one drawn anew.
    path: Option<u32>,
    /// One above the highest packet acknowledged (`snd_ooh`).
    highest: u32,
    /// Everything below was sent before packets were refused: until it is acknowledged the window stays as it is.
    recover: u32,
    /// Packets that the window allows beyond those in flight and released.
    allowed: u32,
    /// When something was last released.
    quiet: Time,
    /// Smoothed.
    rtt: Time,
    /// When the present round trip began, and whether a path may still be tried in it.
    round: Time,
    may_probe: bool,
}

impl State {
    /// The first window, in packets.
    fn window(&self) -> f64 {
        self.window
    }

    /// What the window allows beyond what is in flight or released.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 on, and cut to 32 bits; saturates"
    )]
    fn update(&mut self, in_flight: u32, gate: &Gate) {
        let used = u64::from(in_flight) + u64::from(gate.credit());
        self.allowed = (self.window as u64).saturating_sub(used).min(u64::from(u32::MAX)) as u32;
    }

    fn release(&mut self, packets: u32, now: Time, gate: &mut Gate) {
        gate.grant(packets);
        self.allowed -= packets;
        self.quiet = now;
    }
}

impl CongestionConfig for MpRdma {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "MP-RDMA",
            limit: Limit::Credit,
            grows: true,
            needs_acks: true,
            marks: Marks::Required,
            slowed_by: SlowedBy::MoreThanMarks,
            coupled: false,
            cnp_interval: None,
            telemetry: None,
            pulls: None,
            reaction_point: None,
            needs_trimming: None,
            max_rate: None,
            target_delay: None,
            acts_on: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("initial_window", self.initial_window.unwrap_or(1), 1)?;
        Invalid::unless((0.0..=1.0).contains(&self.probe), "probe", "0 to 1", self.probe)?;
        Invalid::positive("burst", self.burst)?;
        if let Some(alpha) = self.synchronise {
            Invalid::positive("synchronise", alpha)?;
            Invalid::unless(self.delta > 0, "synchronise", "none without delta", alpha)?;
        }
        Ok(())
    }

    fn first_window(&self, packet: Bytes, _: PathFacts) -> Option<(&'static str, Bytes)> {
        self.initial_window.map(|count| ("initial_window", window::packets(count, packet)))
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the first window, which came from 32 bits"
    )]
    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        let Start { path, packet, now, .. } = start;
        let state = self.state(path.bdp(), packet, path.base_rtt, now);
        gate.set_credit(state.window() as u32);
        state
    }
}

impl CongestionControl for State {
    type Config = MpRdma;

    const LEARNS: bool = true;
    const SHRINKS_BELOW_A_PACKET: bool = false;
    const CHOOSES_PATHS: bool = true;
    const HAS_TIMERS: bool = true;

    /// The sender learnt something. Returns whether that cuts the window.
    fn on_feedback(&mut self, config: &MpRdma, feedback: &Feedback, gate: &mut Gate) -> bool {
        let before = self.window;
        let is_answer = matches!(feedback.cause, Cause::Ack | Cause::Nack);
        let mut releases = is_answer;
        match feedback.cause {
            Cause::Ack => {
                self.rtt = (self.rtt * 7 + feedback.rtt) / 8;
                self.highest = self.highest.max(feedback.seq + 1);
                let is_behind = self.highest - feedback.seq - 1 > config.delta;
                let is_slow = config.delta > 0 && is_behind;
                if feedback.oldest >= self.recover {
                    self.window += match (is_slow, feedback.marked) {
                        (true, _) => -1.0,
                        (false, true) => -0.5,
                        (false, false) => 1.0 / self.window,
                    };
                    self.window = self.window.max(1.0);
                }
                releases &= !is_slow;
            }
            // The receiver refused a packet: what is missing is sent again, at the pace of what comes back.
            Cause::Nack => self.recover = self.recover.max(feedback.next),
            Cause::Loss
            | Cause::Timeout
            | Cause::Notification
            | Cause::Trim
            | Cause::Return
            | Cause::Unreachable => {}
        }
        self.update(feedback.in_flight, gate);
        if releases && self.allowed > 0 {
            let packets = self.allowed.min(2);
            let is_good = config.reuse_marked || !feedback.marked;
            for _ in (0..packets).filter(|_| is_good) {
                self.paths.push_back(feedback.tag);
            }
            self.release(packets, feedback.now, gate);
        }
        if feedback.now >= self.round + self.rtt {
            (self.round, self.may_probe) = (feedback.now, true);
        }
        self.window < before
    }

    /// A packet leaves.
    fn on_sent(&mut self, _: Time, _: u64, gate: &mut Gate) {
        gate.spend();
        self.path = self.paths.pop_front();
    }

    fn begin_with_one(&mut self, _: &mut Gate) {}

    /// When what the window allows is released whatever comes back.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    fn due(&self, config: &MpRdma) -> Option<Time> {
        (self.allowed > 0)
            .then(|| self.quiet.saturating_add(Time((self.rtt.0 as f64 * config.burst) as u64).max(Time(1))))
    }

    /// That time has come, perhaps.
    fn on_timer(&mut self, config: &MpRdma, now: Time, gate: &mut Gate) -> bool {
        if self.due(config).is_some_and(|due| due <= now) {
            self.release(self.allowed, now, gate);
        }
        false
    }

    /// The path of the packet that has just left; none: one drawn anew. `toss` says whether something of that probability comes true.
    fn path(&mut self, config: &MpRdma, toss: impl FnOnce(f64) -> bool) -> Option<u32> {
        if self.path.is_some() && std::mem::take(&mut self.may_probe) && toss(config.probe) {
            return None;
        }
        self.path
    }

    /// How long the next message waits after the last packet of the one before.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    fn between_messages(&self, config: &MpRdma) -> Option<Time> {
        let delta = f64::from(config.delta);
        Some(Time((config.synchronise? * delta * self.rtt.0 as f64 / self.window) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feedback::ack_of;

    const RTT: Time = Time(1000);

    /// A sender with a window of four packets, all of them in flight.
    fn begun(config: &MpRdma) -> (State, Gate) {
        let mut state = config.state(Bytes(4000), Bytes(1000), RTT, Time::ZERO);
        let mut gate = Gate::new(Time::ZERO);
        gate.set_credit(state.window() as u32);
        for _ in 0..4 {
            assert!(gate.credit() > 0);
            state.on_sent(Time::ZERO, 1000, &mut gate);
            assert_eq!(state.path(config, |_| true), None, "the first window takes paths drawn anew");
        }
        assert_eq!(gate.credit(), 0);
        (state, gate)
    }

    fn ack(seq: u32, marked: bool, in_flight: u32, path: u32) -> Feedback {
        Feedback { now: Time(500), rtt: RTT, marked, in_flight, tag: path, next: 100, ..ack_of(seq) }
    }

    #[test]
    fn an_ack_lets_packets_out_on_its_path() {
        let config = MpRdma::default();
        let (mut state, mut gate) = begun(&config);
        // 4 + 1/4 packets, three in flight: one follows.
        assert!(!state.on_feedback(&config, &ack(0, false, 3, 7), &mut gate));
        assert_eq!((state.window, gate.credit()), (4.25, 1));
        state.on_sent(Time::ZERO, 1000, &mut gate);
        assert_eq!(state.path(&config, |_| true), Some(7));
        // A second one once the window has grown by a whole packet.
        state.window = 4.8;
        state.on_feedback(&config, &ack(1, false, 3, 9), &mut gate);
        assert_eq!(gate.credit(), 2);
        for _ in 0..2 {
            state.on_sent(Time::ZERO, 1000, &mut gate);
            assert_eq!(state.path(&config, |_| true), Some(9));
        }
    }

    #[test]
    fn a_mark_takes_half_a_packet_and_two_marks_take_a_packet_from_their_path() {
        let config = MpRdma::default();
        let (mut state, mut gate) = begun(&config);
        assert!(state.on_feedback(&config, &ack(0, true, 3, 7), &mut gate));
        // 3.5 - 3: nothing follows.
        assert_eq!((state.window, gate.credit()), (3.5, 0));
        assert!(state.on_feedback(&config, &ack(1, true, 2, 7), &mut gate));
        assert_eq!((state.window, gate.credit()), (3.0, 1));
        for seq in 2..20 {
            state.on_feedback(&config, &ack(seq, true, 4, 7), &mut gate);
        }
        assert_eq!(state.window, 1.0);
    }

    #[test]
    fn a_path_whose_acks_come_late_by_more_than_delta_gets_nothing() {
        let config = MpRdma { delta: 3, ..MpRdma::default() };
        let (mut state, mut gate) = begun(&config);
        state.window = 8.0;
        state.on_feedback(&config, &ack(10, false, 8, 1), &mut gate);
        let window = state.window;
        // snd_ool = 10 - 3 = 7: an ACK for 7 is in time, one for 6 is not.
        state.on_feedback(&config, &ack(7, false, 7, 2), &mut gate);
        assert_eq!((state.window, gate.credit()), (window + 1.0 / window, 1));
        let window = state.window;
        assert!(state.on_feedback(&config, &ack(6, false, 4, 2), &mut gate));
        assert_eq!((state.window, gate.credit()), (window - 1.0, 1));
        // What it would have let out is released by the burst timer, half a round trip after the last release.
        assert_eq!(state.due(&config), Some(Time(500) + RTT / 2));
        assert_eq!(state.due(&MpRdma { burst: 1e300, ..config.clone() }), Some(Time::MAX));
        state.on_timer(&config, Time(999), &mut gate);
        assert_eq!(gate.credit(), 1);
        state.on_timer(&config, Time(1000), &mut gate);
        assert_eq!((gate.credit(), state.due(&config)), (3, None));
        state.on_sent(Time::ZERO, 1000, &mut gate);
        assert_eq!(state.path(&config, |_| true), Some(2));
        state.on_sent(Time::ZERO, 1000, &mut gate);
        assert_eq!(state.path(&config, |_| true), None);
    }

    #[test]
    fn one_packet_per_round_trip_may_try_another_path() {
        let config = MpRdma::default();
        let (mut state, mut gate) = begun(&config);
        state.window = 40.0;
        let mut tries = Vec::new();
        for i in 0..30 {
            let now = Time(100 * i);
            state.on_feedback(&config, &Feedback { now, ..ack(i as u32, false, 38, 5) }, &mut gate);
            while gate.credit() > 0 {
                state.on_sent(Time::ZERO, 1000, &mut gate);
                let path = state.path(&config, |p| {
                    assert_eq!(p, 0.01);
                    true
                });
                if path.is_none() {
                    tries.push(now);
                }
            }
        }
        assert_eq!(tries, [1000, 2000].map(Time));
    }

    #[test]
    fn the_window_is_kept_while_what_was_refused_is_sent_again() {
        let config = MpRdma::default();
        let (mut state, mut gate) = begun(&config);
        let refused = Feedback { cause: Cause::Nack, packets: 0, next: 12, ..ack(11, false, 3, 7) };
        assert!(!state.on_feedback(&config, &refused, &mut gate));
        // The refused packet has left the network: one is sent again in its place, on its path.
        assert_eq!((state.window, gate.credit()), (4.0, 1));
        state.on_sent(Time::ZERO, 1000, &mut gate);
        assert_eq!(state.path(&config, |_| false), Some(7));
        state.on_feedback(&config, &Feedback { oldest: 11, ..ack(4, true, 3, 7) }, &mut gate);
        assert_eq!(state.window, 4.0);
        state.on_feedback(&config, &Feedback { oldest: 12, ..ack(11, true, 3, 7) }, &mut gate);
        assert_eq!(state.window, 3.5);
    }

    #[test]
    fn a_sender_that_reuses_good_paths_only_draws_another_one_after_a_mark() {
        let config = MpRdma { reuse_marked: false, delta: 0, ..MpRdma::default() };
        let (mut state, mut gate) = begun(&config);
        state.window = 9.0;
        for (seq, marked, in_flight, path) in [(0, false, 8, Some(7)), (1, true, 7, None)] {
            state.on_feedback(&config, &ack(seq, marked, in_flight, 7), &mut gate);
            assert_eq!(gate.credit(), 1);
            state.on_sent(Time::ZERO, 1000, &mut gate);
            assert_eq!(state.path(&config, |_| false), path);
        }
    }

    #[test]
    fn a_message_waits_until_nothing_of_the_one_before_can_be_overtaken() {
        let config = MpRdma { synchronise: Some(0.5), ..MpRdma::default() };
        let (state, _) = begun(&config);
        // 0.5 · 32 · 1000 / 4.
        assert_eq!(state.between_messages(&config), Some(Time(4000)));
        assert_eq!(state.between_messages(&MpRdma::default()), None);
    }
}
