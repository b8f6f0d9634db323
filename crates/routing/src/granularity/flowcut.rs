//! Flowcuts: a flow is re-routed only when nothing of it is in flight, which keeps it in order by construction.
//!
//! While a flow is open, its packets follow one path. The sender watches round-trip times; when their moving average,
//! relative to the least ever seen over as many hops, exceeds a threshold, it *drains* the flow: it sends nothing
//! until every packet is acknowledged, then draws a new path and goes on (Flowcut Switching, §II).
//!
//! ```text
//!   First ──first ACK──▶ Open ──average > threshold──▶ Draining ──nothing in flight──▶ Open (new path)
//!                         ▲                                │
//!                         └────── timeout: same path ──────┘
//! ```

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A new decision when nothing of the flow is in flight; a congested flow is drained to get there. Flowcut Switching, §II, NIC-only
/// variant (the one its evaluation uses). The sender's retransmissions do not break the order: a path is left only once
/// it is empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flowcut {
    /// Drain when the moving average of RTT / least RTT exceeds this. The paper finds 3 to 5 best.
    pub threshold: f64,
    /// Weight of the newest RTT in the moving average, 0 < alpha <= 1.
    pub alpha: f64,
    /// Drain when the moving average of the RTT ratio's change per ACK exceeds this. The paper names it without a value;
    /// absent: never.
    pub trend_threshold: Option<f64>,
    /// Weight of the newest change in that average; absent: alpha.
    pub beta: Option<f64>,
    /// Give up draining after this long and resume on the same path, in case an ACK was lost.
    pub drain_timeout: Time,
    /// Drain only if at least this much of the flow is still unsent.
    pub min_remaining: Bytes,
    /// Resume on the new path once at most this many packets are in flight on the old one, and run no further ahead of the oldest of
    /// them: less idle time for a bounded out-of-order distance. 0 keeps strict order.
    pub max_ood: u32,
    /// Whether the average starts anew on a new path (in the paper the table entry is deleted with the flowcut); the
    /// authors' simulator carries it over.
    pub reset: bool,
    /// Whether the least RTT is kept per flow, as in the authors' simulator, instead of per NIC and hop count.
    pub rtt_min_per_flow: bool,
}

impl Default for Flowcut {
    fn default() -> Self {
        Flowcut {
            threshold: 4.0,
            alpha: 0.25,
            trend_threshold: None,
            beta: None,
            drain_timeout: Time::from_ms(1),
            min_remaining: Bytes(0),
            max_ood: 0,
            reset: true,
            rtt_min_per_flow: false,
        }
    }
}

/// Least size- and hop-corrected RTT per hop count. Networks have diameters below ten, so a few entries do; longer paths
/// share the last.
#[derive(Clone, Debug)]
pub struct RttMin([Time; 16]);

impl Default for RttMin {
    fn default() -> Self {
        RttMin([Time::MAX; 16])
    }
}

impl RttMin {
    /// Takes a sample into account and returns the least RTT over that many hops.
    fn update(&mut self, hops: u8, rtt: Time) -> Time {
        let entry = &mut self.0[usize::from(hops).min(15)];
        *entry = (*entry).min(rtt);
        *entry
    }
}

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// No ACK seen yet; everything goes along the initial path.
    First,
    Open,
    Draining {
        since: Time,
    },
}

/// What the sender remembers of one flow: 10 bytes in the paper, a little more here for exactness.
#[derive(Clone, Debug)]
pub struct FlowcutState {
    phase: Phase,
    average: f64,
    last: f64,
    trend: f64,
    /// Only with `rtt_min_per_flow`.
    own_min: Option<Box<RttMin>>,
    /// Packets below this number may still be on an older path than the present one.
    old_path_end: u32,
    /// Drains begun.
    pub drains: u32,
    /// Time spent draining.
    pub drain_time: Time,
}

/// What an ACK did to a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing changes.
    Continue,
    /// Stop sending until nothing is in flight.
    Drain,
    /// The path is empty: draw a new one and go on.
    Resume,
}

/// What the sender knows when an ACK arrives.
#[derive(Clone, Copy, Debug)]
pub struct Ack {
    /// When it arrived.
    pub now: Time,
    /// Round-trip time of the packet it acknowledges.
    pub rtt: Time,
    /// Time that the data packet spent being serialised on all its hops; subtracted, so that large and small packets, and long and short
    /// paths, compare.
    pub serialisation: Time,
    /// Hops the data packet took.
    pub hops: u8,
    /// Data packets of the flow still in flight.
    pub in_flight: u32,
    /// Bytes of the flow not sent yet.
    pub remaining: Bytes,
    /// Number of the next new packet.
    pub next: u32,
}

impl Flowcut {
    pub(crate) fn check(&self) -> Result<(), String> {
        // Written so that NaN is refused too.
        let positive = |name: &str, value: f64| {
            if value > 0.0 {
                Ok(())
            } else {
                Err(format!("flowcut.{name}: expected a number above 0, found {value}"))
            }
        };
        let weight = |name: &str, value: f64| {
            if value > 0.0 && value <= 1.0 {
                Ok(())
            } else {
                Err(format!("flowcut.{name}: expected a number above 0 and at most 1, found {value}"))
            }
        };
        positive("threshold", self.threshold)?;
        weight("alpha", self.alpha)?;
        self.beta.map_or(Ok(()), |beta| weight("beta", beta))?;
        if self.beta.is_some() && self.trend_threshold.is_none() {
            return Err("flowcut.beta: has a meaning only with trend_threshold".into());
        }
        self.trend_threshold.map_or(Ok(()), |trend| positive("trend_threshold", trend))?;
        if self.drain_timeout == Time::ZERO {
            return Err("flowcut.drain_timeout: expected more than 0".into());
        }
        Ok(())
    }
}

impl Default for FlowcutState {
    fn default() -> Self {
        FlowcutState {
            phase: Phase::First,
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
    /// Whether the flow may send packet number `next` while `oldest` is the oldest one not acknowledged.
    pub fn may_send(&self, config: &Flowcut, next: u32, oldest: u32) -> bool {
        match self.phase {
            Phase::Draining { .. } => false,
            // Nothing that is sent now may arrive more than `max_ood` ahead of what is left on the old path.
            Phase::First | Phase::Open => oldest >= self.old_path_end || next - oldest <= config.max_ood,
        }
    }

    /// When the flow gives up draining, if it drains.
    pub fn deadline(&self, config: &Flowcut) -> Option<Time> {
        match self.phase {
            Phase::Draining { since } => Some(since + config.drain_timeout),
            _ => None,
        }
    }

    /// An ACK arrived (§II-B: correct the RTT, normalise it, average it, compare).
    pub fn on_ack(&mut self, config: &Flowcut, shared: &mut RttMin, ack: Ack) -> Verdict {
        let rtt = ack.rtt.saturating_sub(ack.serialisation).max(Time(1));
        let table =
            if config.rtt_min_per_flow { &mut **self.own_min.get_or_insert_default() } else { shared };
        let ratio = rtt.0 as f64 / table.update(ack.hops, rtt).0 as f64;
        self.average += config.alpha * (ratio - self.average);
        let beta = config.beta.unwrap_or(config.alpha);
        self.trend += beta * ((ratio - self.last) - self.trend);
        self.last = ratio;

        if self.phase == Phase::First {
            self.phase = Phase::Open;
        }
        if self.phase == Phase::Open && self.is_congested(config) && ack.remaining.0 > 0 {
            if ack.remaining < config.min_remaining {
                return Verdict::Continue;
            }
            self.phase = Phase::Draining { since: ack.now };
            self.drains += 1;
            if ack.in_flight > config.max_ood {
                return Verdict::Drain;
            }
        }
        match self.phase {
            Phase::Draining { since } if ack.in_flight <= config.max_ood => {
                self.drain_time += ack.now - since;
                self.old_path_end = ack.next;
                self.reopen(config);
                Verdict::Resume
            }
            _ => Verdict::Continue,
        }
    }

    fn is_congested(&self, config: &Flowcut) -> bool {
        self.average > config.threshold || config.trend_threshold.is_some_and(|limit| self.trend > limit)
    }

    /// Draining took too long; the flow goes on along its old path, on which packets may still be.
    pub fn on_timeout(&mut self, config: &Flowcut, now: Time) {
        if let Phase::Draining { since } = self.phase {
            self.drain_time += now - since;
            self.reopen(config);
        }
    }

    fn reopen(&mut self, config: &Flowcut) {
        self.phase = Phase::Open;
        if config.reset {
            (self.average, self.last, self.trend) = (1.0, 1.0, 0.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(now: u64, rtt: u64, in_flight: u32) -> Ack {
        Ack {
            now: Time(now),
            rtt: Time(rtt),
            serialisation: Time(0),
            hops: 6,
            in_flight,
            remaining: Bytes(1_000_000),
            next: 100,
        }
    }

    /// The number of ACKs with a constant ratio of 8 until the flow drains.
    fn acks_until_drain(alpha: f64) -> usize {
        let config = Flowcut { alpha, ..Flowcut::default() };
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(6, Time(100));
        (1..1000).find(|_| state.on_ack(&config, &mut shared, ack(0, 800, 5)) == Verdict::Drain).unwrap()
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
        state.on_ack(&config, &mut shared, ack(10, 800, 3));
        assert_eq!(state.on_ack(&config, &mut shared, ack(20, 800, 2)), Verdict::Drain);
        assert!(!state.may_send(&config, 100, 97));
        assert_eq!(state.on_ack(&config, &mut shared, ack(30, 800, 1)), Verdict::Continue);
        assert_eq!(state.on_ack(&config, &mut shared, ack(40, 800, 0)), Verdict::Resume);
        assert!(state.may_send(&config, 100, 100));
        assert_eq!((state.drains, state.drain_time, state.average), (1, Time(20), 1.0));
    }

    #[test]
    fn the_artefact_keeps_the_average_and_drains_again() {
        let config = Flowcut { reset: false, ..Flowcut::default() };
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(6, Time(100));
        state.on_ack(&config, &mut shared, ack(10, 1600, 3));
        state.on_ack(&config, &mut shared, ack(40, 1600, 0));
        assert!(state.average > 4.0);
        assert_eq!(state.on_ack(&config, &mut shared, ack(50, 1600, 1)), Verdict::Drain);
    }

    #[test]
    fn the_last_packets_are_not_drained() {
        let config = Flowcut { min_remaining: Bytes(10_000), ..Flowcut::default() };
        for remaining in [0, 9_999] {
            let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
            shared.update(6, Time(100));
            for _ in 0..10 {
                let last = Ack { remaining: Bytes(remaining), ..ack(0, 800, 5) };
                assert_eq!(state.on_ack(&config, &mut shared, last), Verdict::Continue);
            }
        }
    }

    #[test]
    fn a_lost_ack_ends_in_a_timeout_on_the_old_path() {
        let config = Flowcut::default();
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(6, Time(100));
        state.on_ack(&config, &mut shared, ack(10, 8000, 3));
        assert_eq!(state.deadline(&config), Some(Time(10) + config.drain_timeout));
        state.on_timeout(&config, Time(500));
        assert!(state.may_send(&config, 100, 100));
        assert_eq!(state.drain_time, Time(490));
    }

    #[test]
    fn long_and_short_paths_have_their_own_least_rtt() {
        let config = Flowcut::default();
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(2, Time(10));
        for _ in 0..50 {
            assert_eq!(state.on_ack(&config, &mut shared, ack(0, 100, 5)), Verdict::Continue);
        }
    }

    #[test]
    fn a_rising_rtt_drains_before_the_average_does() {
        let config = Flowcut { trend_threshold: Some(0.3), threshold: 1e9, ..Flowcut::default() };
        let (mut state, mut shared) = (FlowcutState::default(), RttMin::default());
        shared.update(6, Time(100));
        let drained =
            (1..20).find(|i| state.on_ack(&config, &mut shared, ack(0, 100 + 50 * i, 5)) == Verdict::Drain);
        assert!(drained.is_some());
    }
}
