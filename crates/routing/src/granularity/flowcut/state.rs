//! What is known of one flow, and when it is drained.

use netloom_transport::{Cause, Feedback};
use netloom_units::Time;

use super::Flowcut;
use crate::header::Advice;

/// Least size- and hop-corrected RTT per hop count. Networks have diameters below ten, so a few entries do; longer paths
/// share the last.
#[derive(Clone, Debug)]
pub(crate) struct RttMin([Time; 16]);

impl Default for RttMin {
    fn default() -> Self {
        RttMin([Time::MAX; 16])
    }
}

impl RttMin {
    /// Takes a sample into account and returns the least RTT over that many hops.
    pub(super) fn update(&mut self, hops: u32, rtt: Time) -> Time {
        let entry = &mut self.0[(hops as usize).min(15)];
        *entry = (*entry).min(rtt);
        *entry
    }
}

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    /// Everything goes along one path.
    Open,
    /// Nothing is sent.
    Draining { since: Time },
    /// Nothing is in flight (or as little as `max_ood` allows): the next packet begins a flowcut.
    Empty,
}

/// What the sender remembers of one flow: 10 bytes in the paper, a little more here for exactness.
#[derive(Clone, Debug)]
pub(crate) struct FlowcutState {
    pub(super) phase: Phase,
    pub(super) average: f64,
    pub(super) last: f64,
    pub(super) trend: f64,
    /// Only with `rtt_min_per_flow`.
    own_min: Option<Box<RttMin>>,
    /// Packets below this number may still be on an older path than the present one.
    pub(super) old_path_end: u32,
    /// Drains begun.
    pub(super) drains: u32,
    /// Time spent draining.
    pub(super) drain_time: Time,
}

impl Default for FlowcutState {
    fn default() -> Self {
        FlowcutState {
            phase: Phase::Open,
            average: 1.0,
            last: 1.0,
            trend: 0.0,
            own_min: None,
            old_path_end: 0,
            drains: 0,
            drain_time: Time::ZERO,
        }
    }
}

impl FlowcutState {
    /// Whether the flow is being drained.
    #[inline]
    pub(super) fn is_draining(&self) -> bool {
        matches!(self.phase, Phase::Draining { .. })
    }

    /// Whether the flow may send packet number `next` while `oldest` is the oldest one not acknowledged.
    pub(super) fn may_send(&self, config: &Flowcut, next: u32, oldest: u32) -> bool {
        match self.phase {
            Phase::Draining { .. } => false,
            // Nothing that is sent now may arrive more than `max_ood` ahead of what is left on the old path.
            Phase::Open | Phase::Empty => oldest >= self.old_path_end || next - oldest <= config.max_ood,
        }
    }

    /// When the flow gives up draining, if it drains.
    pub(super) fn deadline(&self, config: &Flowcut) -> Option<Time> {
        match self.phase {
            Phase::Draining { since } => Some(since + config.drain_timeout),
            _ => None,
        }
    }

    /// Something came back. Only ACKs say something of the path (§II-B: correct the RTT, normalise it, average it, compare).
    #[inline]
    pub(super) fn on_feedback(
        &mut self,
        config: &Flowcut,
        shared: &mut RttMin,
        feedback: &Feedback,
    ) -> Advice {
        if feedback.cause != Cause::Ack {
            return Advice::Continue;
        }
        // Large and small packets, long and short paths compare by what is left without the packet's own serialisation.
        let rtt = config.timestamps.measure(feedback.rtt.saturating_sub(feedback.serialisation));
        let ratio = rtt.0 as f64 / self.least(config, shared).update(feedback.hops, rtt).0 as f64;
        self.average += config.alpha * (ratio - self.average);
        if config.trend_threshold.is_some() {
            let beta = config.beta.unwrap_or(config.alpha);
            self.trend += beta * ((ratio - self.last) - self.trend);
            self.last = ratio;
        }

        let congested = self.is_congested(config) && (config.drain_tail || feedback.remaining.0 > 0);
        if self.phase == Phase::Open && congested && feedback.remaining >= config.min_remaining {
            self.phase = Phase::Draining { since: feedback.now };
            self.drains += 1;
            if feedback.in_flight > config.max_ood {
                return Advice::PauseUntil(feedback.now + config.drain_timeout);
            }
        }
        match self.phase {
            Phase::Draining { since } if feedback.in_flight <= config.max_ood => {
                self.drain_time += feedback.now - since;
                self.old_path_end = feedback.next;
                self.phase = Phase::Empty;
            }
            Phase::Open if feedback.in_flight == 0 && !config.keep_idle => self.phase = Phase::Empty,
            _ => {}
        }
        Advice::Continue
    }

    /// The least round-trip times that hold for the flow.
    pub(super) fn least<'a>(&'a mut self, config: &Flowcut, shared: &'a mut RttMin) -> &'a mut RttMin {
        if config.rtt_min_per_flow { self.own_min.get_or_insert_default() } else { shared }
    }

    fn is_congested(&self, config: &Flowcut) -> bool {
        self.average > config.threshold || config.trend_threshold.is_some_and(|limit| self.trend > limit)
    }

    /// Draining took too long; the flow goes on along its old path, on which packets may still be, and knows what it knew.
    pub(super) fn on_deadline(&mut self, now: Time) {
        if let Phase::Draining { since } = self.phase {
            self.drain_time += now - since;
            self.phase = Phase::Open;
        }
    }
}

#[cfg(test)]
mod tests {
    use netloom_units::Bytes;

    use super::super::RttMinStart;
    use super::*;
    use crate::granularity::GranularityConfig;

    fn ack(now: u64, rtt: u64, in_flight: u32) -> Feedback {
        Feedback {
            rtt: Time(rtt),
            hops: 6,
            packets: 1,
            bytes: 4160,
            in_flight,
            next: 100,
            remaining: Bytes(1_000_000),
            ..Feedback::of(Cause::Ack, Time(now))
        }
    }

    /// The number of ACKs with a constant ratio of 8 until the flow drains.
    fn acks_until_drain(alpha: f64) -> usize {
        let config = Flowcut { alpha, ..Flowcut::default() };
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(6, Time(100));
        (1..1000)
            .find(|_| state.on_feedback(&config, &mut shared, &ack(0, 800, 5)) != Advice::Continue)
            .unwrap()
    }

    #[test]
    fn the_average_reaches_the_threshold_as_the_closed_form_says() {
        // 1, then 2.75, then 4.0625 > 4; with 1/32, the first n with 1 + 7 (1 − (31/32)^n) > 4.
        assert_eq!(acks_until_drain(0.25), 2);
        assert_eq!(acks_until_drain(1.0 / 32.0), 18);
    }

    #[test]
    fn a_drained_flow_resumes_when_the_path_is_empty_and_starts_afresh() {
        let config = Flowcut::default();
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(6, Time(100));
        state.on_feedback(&config, &mut shared, &ack(10, 800, 3));
        let pause = Advice::PauseUntil(Time(20) + config.drain_timeout);
        assert_eq!(state.on_feedback(&config, &mut shared, &ack(20, 800, 2)), pause);
        assert!(!state.may_send(&config, 100, 97));
        assert_eq!(state.on_feedback(&config, &mut shared, &ack(30, 800, 1)), Advice::Continue);
        assert_eq!(state.on_feedback(&config, &mut shared, &ack(40, 800, 0)), Advice::Continue);
        assert!(state.may_send(&config, 100, 100));
        assert!(!config.continues(&mut state, Time(50), 4096), "the next packet begins a flowcut");
        assert_eq!((state.drains, state.drain_time, state.average), (1, Time(20), 1.0));
        assert!(config.continues(&mut state, Time(60), 4096));
    }

    #[test]
    fn the_artefact_keeps_the_average_and_drains_again() {
        let config = Flowcut { reset: false, ..Flowcut::default() };
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(6, Time(100));
        state.on_feedback(&config, &mut shared, &ack(10, 1600, 3));
        state.on_feedback(&config, &mut shared, &ack(40, 1600, 0));
        assert!(!config.continues(&mut state, Time(45), 4096) && state.average > 4.0);
        assert_ne!(state.on_feedback(&config, &mut shared, &ack(50, 1600, 1)), Advice::Continue);
    }

    #[test]
    fn the_last_packets_are_not_drained() {
        let config = Flowcut { min_remaining: Bytes(10_000), ..Flowcut::default() };
        for remaining in [0, 9_999] {
            let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
            shared.update(6, Time(100));
            for _ in 0..10 {
                let last = Feedback { remaining: Bytes(remaining), ..ack(0, 800, 5) };
                assert_eq!(state.on_feedback(&config, &mut shared, &last), Advice::Continue);
            }
        }
    }

    #[test]
    fn a_flow_that_starts_behind_a_queue_takes_it_for_normal_unless_the_idle_path_is_computed() {
        for (start, drains) in [(RttMinStart::Observed, 0), (RttMinStart::Analytic, 1)] {
            for rtt_min_per_flow in [false, true] {
                let config = Flowcut { rtt_min_start: start, rtt_min_per_flow, ..Flowcut::default() };
                let (mut state, mut shared) = (config.open(), RttMin::default());
                if config.expects() {
                    config.expect(&mut state, &mut shared, 6, Time(100));
                }
                // 1 + 7 (1 - 3/4) = 2.75, then 4.06: the second ACK drains.
                let advice = [10, 20].map(|now| state.on_feedback(&config, &mut shared, &ack(now, 800, 5)));
                assert_eq!(advice[0], Advice::Continue);
                assert_eq!((state.drains, advice[1] != Advice::Continue), (drains, drains == 1));
            }
        }
    }

    #[test]
    fn the_artefact_counts_the_tail_as_drained() {
        for (drain_tail, expected) in [(false, (0, Time(0))), (true, (1, Time(30)))] {
            let config = Flowcut { drain_tail, ..Flowcut::default() };
            let (mut state, mut shared) = (config.open(), RttMin::default());
            shared.update(6, Time(100));
            let last = |now, in_flight| Feedback { remaining: Bytes(0), ..ack(now, 1600, in_flight) };
            state.on_feedback(&config, &mut shared, &last(10, 2));
            state.on_feedback(&config, &mut shared, &last(25, 1));
            state.on_feedback(&config, &mut shared, &last(40, 0));
            assert_eq!((state.drains, state.drain_time), expected);
        }
    }

    #[test]
    fn a_lost_ack_ends_in_a_timeout_on_the_old_path() {
        let config = Flowcut::default();
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(6, Time(100));
        state.on_feedback(&config, &mut shared, &ack(10, 8000, 3));
        assert_eq!(state.deadline(&config), Some(Time(10) + config.drain_timeout));
        let average = state.average;
        state.on_deadline(Time(500));
        assert!(state.may_send(&config, 100, 100) && config.continues(&mut state, Time(500), 4096));
        assert_eq!((state.drain_time, state.average), (Time(490), average));
    }

    #[test]
    fn a_flow_with_nothing_in_flight_begins_a_flowcut_without_a_drain() {
        let config = Flowcut::default();
        let (mut state, mut shared) = (config.open(), RttMin::default());
        shared.update(6, Time(100));
        assert!(config.continues(&mut state, Time(0), 4096));
        assert_eq!(state.on_feedback(&config, &mut shared, &ack(10, 400, 1)), Advice::Continue);
        assert!(config.continues(&mut state, Time(11), 4096) && state.average > 1.0);
        assert_eq!(state.on_feedback(&config, &mut shared, &ack(20, 400, 0)), Advice::Continue);
        assert!(!config.continues(&mut state, Time(30), 4096));
        assert_eq!((state.drains, state.average), (0, 1.0));
    }

    #[test]
    fn long_and_short_paths_have_their_own_least_rtt() {
        let config = Flowcut::default();
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(2, Time(10));
        for _ in 0..50 {
            assert_eq!(state.on_feedback(&config, &mut shared, &ack(0, 100, 5)), Advice::Continue);
        }
    }

    #[test]
    fn a_rising_rtt_drains_before_the_average_does() {
        let config = Flowcut { trend_threshold: Some(0.3), threshold: 1e9, ..Flowcut::default() };
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(6, Time(100));
        let drained = (1..20)
            .find(|i| state.on_feedback(&config, &mut shared, &ack(0, 100 + 50 * i, 5)) != Advice::Continue);
        assert!(drained.is_some());
    }
}
