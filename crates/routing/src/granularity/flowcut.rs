//! Flowcuts: a flow is re-routed only when nothing of it is in flight, which keeps it in order by construction.
//!
//! While a flow is open, its packets follow one path. Whoever watches it (its sender, or its first switch) compares round-trip times: when
//! their moving average, relative to the least ever seen over as many hops, exceeds a threshold, the flow is *drained*: nothing is sent
//! until every packet is acknowledged. Whenever nothing of a flow is in flight, drained or not, the flowcut is over: the next packet
//! begins another one, on a new path and with fresh averages (Flowcut Switching, §II). [`super::passing`] holds what switches count of it.
//!
//! ```text
//!            ┌───────────── nothing in flight ─────────────┐
//!            │                                             ▼
//!          Open ──average > threshold──▶ Draining ──nothing in flight──▶ Empty ──next packet──▶ Open (new path)
//!            ▲                              │
//!            └─ timeout: same path, average ┘
//! ```

use netloom_transport::{Cause, Feedback};
use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Granularity;
use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;
use crate::scheme::{Placement, Routing};

/// A new decision when nothing of the flow is in flight; a congested flow is drained to get there. Flowcut Switching, §II. At a NIC the
/// transport's ACKs tell what is in flight. At switches the last switch acknowledges every packet to those before it, which count: the
/// first switch alone (placement `ingress`), or every switch, each of which re-routes what has nothing in flight behind it (`switch`).
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
    /// them: less idle time for a bounded out-of-order distance. 0 keeps strict order. At the first switch of a flow its source is told,
    /// and sees to the distance by its transport's ACKs; not at every switch, which would have acknowledgements of two ways at a time.
    pub max_ood: u32,
    /// At NICs: whether a flow keeps its path when nothing of it is in flight, unless it was drained. By the paper every such moment ends a flowcut, and
    /// the next packet takes another path. Where a NIC has many flows, each waits so long for its turn that its packets find nothing in flight: then
    /// flows on idle paths leave them with every packet, and those on congested paths, where something is in flight, stay.
    pub keep_idle: bool,
    /// Whether the averages start anew with every flowcut (in the paper the table entry is deleted with it); the authors' simulator
    /// carries them over.
    pub reset: bool,
    /// Whether the least RTT is kept per flow, as in the authors' simulator, instead of per NIC and hop count.
    pub rtt_min_per_flow: bool,
    /// Where the least RTT starts.
    pub rtt_min_start: RttMinStart,
    /// Whether a flow that has nothing left to send is drained, too, as in the authors' simulator. That changes no packet, only how much
    /// counts as draining.
    pub drain_tail: bool,
    /// How exactly times are measured.
    pub timestamps: Timestamps,
    /// At switches: size on the wire of the last switch's acknowledgement of a packet.
    pub ack_size: Bytes,
    /// At switches: size on the wire of the frame by which the first switch stops a source or lets it go on.
    pub frame_size: Bytes,
    /// At switches: what a source is told to stop.
    pub stops: Stops,
    /// At switches: packets that a stopped flow may still send, so that its path does not run dry while it empties (XOFF with credit).
    pub credit: u32,
    /// With placement `switch`: which switches measure and have the source stopped.
    pub measures: Measures,
}

/// Which switches of a flow's way measure round-trip times and have its source stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Measures {
    /// The first one.
    #[default]
    First,
    /// Every one that counts: each compares the times of the rest of the way, from the moment at which a packet passes until its
    /// acknowledgement does, with the least over as many hops, and drains what is behind it. A flow goes on when all have let it. A packet and
    /// its acknowledgement are taken to carry the moments of all switches on the way: those bytes are part of `transport.header` and
    /// `ack_size`, two each in the paper's format.
    Every,
}

/// Where the least round-trip time starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RttMinStart {
    /// At the first one that is measured.
    #[default]
    Observed,
    /// At that of the idle minimal path, which is reckoned when a flow begins, as in the authors' simulator: a flow that starts behind a full
    /// receiver does not take that for normal. Over any other number of hops it starts at the first one measured.
    Analytic,
}

/// How exactly round-trip times are measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Timestamps {
    /// To the picosecond.
    #[default]
    Exact,
    /// In whole nanoseconds of 16 bits, as in the paper's header: what takes longer than 65.535 us counts as that.
    #[serde(rename = "16-bit-ns")]
    Nanoseconds,
}

/// What a switch tells a source to stop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Stops {
    /// The flow alone: fine-grained flow control.
    #[default]
    Flow,
    /// The flow's whole traffic class: what a NIC without fine-grained flow control knows.
    Class,
}

impl Timestamps {
    /// A time as it is measured.
    fn measure(self, time: Time) -> Time {
        match self {
            Timestamps::Exact => time.max(Time(1)),
            Timestamps::Nanoseconds => Time((time.0 / 1000).clamp(1, u64::from(u16::MAX)) * 1000),
        }
    }
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
            keep_idle: false,
            reset: true,
            rtt_min_per_flow: false,
            rtt_min_start: RttMinStart::Observed,
            drain_tail: false,
            timestamps: Timestamps::Exact,
            ack_size: Bytes(20),
            frame_size: Bytes(64),
            stops: Stops::Flow,
            credit: 0,
            measures: Measures::First,
        }
    }
}

impl Flowcut {
    /// Refuses what has no meaning at a place. `entries`: what a switch may remember is bounded.
    fn check_place(&self, placement: Placement, entries: bool) -> Result<(), Invalid> {
        let (default, at_nic) = (Flowcut::default(), placement == Placement::Nic);
        let measures = placement == Placement::Switch || self.measures == Measures::First;
        let expected = "\"first\", or placement \"switch\", where others count, too";
        Invalid::unless(measures, "measures", expected, "\"every\"")?;
        if placement != Placement::Nic {
            let bounded = placement == Placement::Ingress && !entries;
            let expected = "0, or placement \"nic\" or \"ingress\" without `entries`: a switch acknowledges and counts one way of a flow at a time";
            Invalid::unless(self.max_ood == 0 || bounded, "max_ood", expected, self.max_ood)?;
        }
        let parts: &[(&'static str, bool)] = match at_nic {
            true => &[
                ("ack_size", self.ack_size != default.ack_size),
                ("frame_size", self.frame_size != default.frame_size),
                ("stops", self.stops != default.stops),
                ("credit", self.credit != default.credit),
            ],
            false => &[
                ("keep_idle", self.keep_idle != default.keep_idle),
                ("reset", self.reset != default.reset),
                ("rtt_min_per_flow", self.rtt_min_per_flow != default.rtt_min_per_flow),
                ("rtt_min_start", self.rtt_min_start != default.rtt_min_start),
                ("drain_tail", self.drain_tail != default.drain_tail),
            ],
        };
        let places = if at_nic { "\"ingress\" or \"switch\"" } else { "\"nic\"" };
        let only = format!("nothing, or the placement {places}, the only one for which it has a meaning");
        match parts.iter().find(|(_, is_set)| *is_set) {
            Some(&(field, _)) => Err(Invalid::new(field, only, "a value")),
            None => Ok(()),
        }
    }
}

impl Routing {
    /// How flows fall into flowcuts that switches count, if they do.
    pub fn counted_flowcuts(&self) -> Option<&Flowcut> {
        self.granularity.flowcut().filter(|_| self.placement != Placement::Nic)
    }
}

impl Granularity {
    /// How flows fall into flowcuts, if they do.
    pub fn flowcut(&self) -> Option<&Flowcut> {
        match self {
            Granularity::Flowcut(flowcut) => Some(flowcut),
            _ => None,
        }
    }
}

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
    fn update(&mut self, hops: u32, rtt: Time) -> Time {
        let entry = &mut self.0[(hops as usize).min(15)];
        *entry = (*entry).min(rtt);
        *entry
    }
}

/// Where a flow stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
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
    phase: Phase,
    average: f64,
    last: f64,
    trend: f64,
    /// Only with `rtt_min_per_flow`.
    own_min: Option<Box<RttMin>>,
    /// Packets below this number may still be on an older path than the present one.
    old_path_end: u32,
    /// Drains begun.
    drains: u32,
    /// Time spent draining.
    drain_time: Time,
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
    fn may_send(&self, config: &Flowcut, next: u32, oldest: u32) -> bool {
        match self.phase {
            Phase::Draining { .. } => false,
            // Nothing that is sent now may arrive more than `max_ood` ahead of what is left on the old path.
            Phase::Open | Phase::Empty => oldest >= self.old_path_end || next - oldest <= config.max_ood,
        }
    }

    /// When the flow gives up draining, if it drains.
    fn deadline(&self, config: &Flowcut) -> Option<Time> {
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
        let rtt = config.timestamps.measure(feedback.rtt.saturating_sub(feedback.way));
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
    fn least<'a>(&'a mut self, config: &Flowcut, shared: &'a mut RttMin) -> &'a mut RttMin {
        if config.rtt_min_per_flow { self.own_min.get_or_insert_default() } else { shared }
    }

    fn is_congested(&self, config: &Flowcut) -> bool {
        self.average > config.threshold || config.trend_threshold.is_some_and(|limit| self.trend > limit)
    }

    /// Draining took too long; the flow goes on along its old path, on which packets may still be, and knows what it knew.
    fn on_deadline(&mut self, now: Time) {
        if let Phase::Draining { since } = self.phase {
            self.drain_time += now - since;
            self.phase = Phase::Open;
        }
    }
}

impl GranularityConfig for Flowcut {
    type Run = FlowcutState;
    type Shared = RttMin;

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Any,
            ends: Ends::WhenEmpty,
            remembers: true,
            acks: Acks::OfEveryPacket,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> FlowcutState {
        FlowcutState::default()
    }

    fn continues(&self, state: &mut FlowcutState, _: Time, _: u32) -> bool {
        if state.phase != Phase::Empty {
            return true;
        }
        state.phase = Phase::Open;
        if self.reset {
            (state.average, state.last, state.trend) = (1.0, 1.0, 0.0);
        }
        false
    }

    fn may_send(&self, state: &FlowcutState, next: u32, oldest: u32) -> bool {
        state.may_send(self, next, oldest)
    }

    // An open flow leaves its path when an ACK says so.
    fn is_settled(&self, state: &FlowcutState, oldest: u32) -> bool {
        state.phase == Phase::Open && oldest >= state.old_path_end
    }

    fn expects(&self) -> bool {
        self.rtt_min_start == RttMinStart::Analytic
    }

    fn expect(&self, state: &mut FlowcutState, shared: &mut RttMin, hops: u32, rtt: Time) {
        state.least(self, shared).update(hops, self.timestamps.measure(rtt));
    }

    fn on_feedback(&self, state: &mut FlowcutState, shared: &mut RttMin, feedback: &Feedback) -> Advice {
        state.on_feedback(self, shared, feedback)
    }

    fn on_deadline(&self, state: &mut FlowcutState, now: Time) {
        // A drain that began after the one that this deadline was set for goes on.
        if state.deadline(self).is_some_and(|deadline| deadline <= now) {
            state.on_deadline(now);
        }
    }

    fn drains(state: &FlowcutState) -> (u32, Time) {
        (state.drains, state.drain_time)
    }

    fn check(&self) -> Result<(), Invalid> {
        let weight = |name: &'static str, value: f64| {
            Invalid::unless(value > 0.0 && value <= 1.0, name, "a number above 0 and at most 1", value)
        };
        // Round-trip times are compared with the least one: no average is below 1.
        Invalid::at_least("threshold", self.threshold, 1.0)?;
        weight("alpha", self.alpha)?;
        self.beta.map_or(Ok(()), |beta| weight("beta", beta))?;
        if let (Some(beta), None) = (self.beta, self.trend_threshold) {
            return Err(Invalid::new(
                "beta",
                "nothing without trend_threshold, which alone gives it a meaning",
                beta,
            ));
        }
        let trend = self.trend_threshold;
        trend.map_or(Ok(()), |trend| {
            Invalid::unless(trend > 0.0, "trend_threshold", "a number above 0", trend)
        })?;
        Invalid::unless(self.drain_timeout > Time::ZERO, "drain_timeout", "more than 0", self.drain_timeout)?;
        let has_credit = self.stops == Stops::Flow || self.credit == 0;
        let none = "0 with stops = \"class\": a pause of a whole class has no credit";
        Invalid::unless(has_credit, "credit", none, self.credit)?;
        let size = |name: &'static str, size: Bytes| {
            let fits = (1..=u64::from(u16::MAX)).contains(&size.0);
            Invalid::unless(fits, name, format!("1 to {} bytes", u16::MAX), size.0)
        };
        size("ack_size", self.ack_size)?;
        size("frame_size", self.frame_size)
    }

    fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
        let is_bounded = scheme.entries.is_some();
        self.check_place(scheme.placement, is_bounded).map_err(|invalid| invalid.within("granularity"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_flow_that_starts_behind_a_queue_takes_it_for_normal_unless_the_idle_path_is_reckoned() {
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
