//! PLB by delay: a flow leaves its path when no packet has been quick for some round trips.

use netloom_transport::{Cause, Feedback};
use netloom_units::{Invalid, Time};
use rand::{Rng, RngExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Granularity;
use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;

/// A new path when no ACK has come within `target` for `least` to `most` smoothed round-trip times, drawn at random with each ACK that is
/// in time. A flow that has never had one waits for `first`. Timeouts change nothing. The rule of csg-htsim's Swift with `-plb on`
/// (github.com/Broadcom/csg-htsim at 841d9e7), whose target is that of Swift without the part for small windows. At the NIC; needs ACKs,
/// and no marks.
///
/// Works with every congestion control. A flow whose path fails silently stays on it, because timeouts are ignored. `netloom run` warns if
/// `target` is below the idle round-trip time: then no ACK is ever in time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlbDelay {
    /// The round-trip time up to which a path is good.
    pub target: Time,
    /// What every hop adds to it. (csg-htsim's copies of a route count no hops.)
    pub hop_delay: Time,
    /// Smallest number of round-trip times without a good one after which the flow takes another path.
    pub least: u32,
    /// Number of round-trip times without a good one after which the flow always takes another path. The limit of each flow is drawn between `least` and this.
    pub most: u32,
    /// How long a flow that has never had a good one waits before its first change, and between further ones.
    pub first: Time,
}

impl Default for PlbDelay {
    /// csg-htsim's.
    fn default() -> Self {
        let (target, first) = (Time::from_us(20), Time::from_ms(1000));
        PlbDelay { target, hop_delay: Time::ZERO, least: 5, most: 7, first }
    }
}

impl Granularity {
    /// By which delays flows leave their path, if they do.
    pub fn plb_delay(&self) -> Option<&PlbDelay> {
        match self {
            Granularity::PlbDelay(plb) => Some(plb),
            _ => None,
        }
    }
}

/// What is known of a flow's path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Delays {
    /// The smoothed round-trip time; 0 before the first.
    rtt: Time,
    /// When a good one was last seen, or the path was last changed. None before the first ACK.
    good: Option<Time>,
    /// How long after that the flow leaves the path.
    patience: Time,
    /// A good one has just been seen: the patience is to be drawn.
    renews: bool,
    /// The next packet takes another path.
    moves: bool,
}

impl GranularityConfig for PlbDelay {
    type Run = Delays;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::InMidFlow,
            remembers: true,
            acks: Acks::Any,
            serialisation: false,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> Delays {
        Delays { patience: self.first, ..Delays::default() }
    }

    fn continues(&self, delays: &mut Delays, _: Time, _: u32) -> bool {
        !std::mem::take(&mut delays.moves)
    }

    fn is_settled(&self, delays: &Delays, _: u32) -> bool {
        !delays.moves
    }

    fn on_feedback(&self, delays: &mut Delays, (): &mut (), feedback: &Feedback) -> Advice {
        match feedback.cause {
            Cause::Ack => {
                let (now, rtt) = (feedback.now, feedback.rtt);
                // By RFC 6298.
                delays.rtt = match delays.rtt {
                    Time::ZERO => rtt,
                    Time(before) => Time(before - before.div_ceil(8) + rtt.0 / 8),
                };
                // The flow's first packet had left then.
                let good = *delays.good.get_or_insert(feedback.sent());
                let hops = self.hop_delay.0.saturating_mul(u64::from(feedback.hops));
                if rtt.0 <= self.target.0.saturating_add(hops) {
                    (delays.good, delays.renews) = (Some(now), true);
                } else if now - good > delays.patience {
                    (delays.good, delays.moves) = (Some(now), true);
                }
            }
            // The flow has left its path just now.
            Cause::Unreachable => delays.good = Some(feedback.now),
            _ => {}
        }
        Advice::Continue
    }

    fn draw(&self, delays: &mut Delays, random: &mut impl Rng) {
        if std::mem::take(&mut delays.renews) {
            let times = |count: u32| delays.rtt.0.saturating_mul(u64::from(count));
            let more = times(self.most - self.least);
            let more = if more > 0 { random.random_range(0..more) } else { 0 };
            delays.patience = Time(times(self.least).saturating_add(more));
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless(self.target > Time::ZERO, "target", "more than 0", self.target)?;
        Invalid::at_least("least", self.least, 1)?;
        let expected = format!("least = {} or more", self.least);
        Invalid::unless(self.most >= self.least, "most", expected, self.most)?;
        Invalid::unless(self.first > Time::ZERO, "first", "more than 0", self.first)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::testing::ack;

    struct Flow(PlbDelay, Delays, Pcg64Mcg);

    impl Flow {
        fn new(config: PlbDelay, seed: u64) -> Self {
            Flow(config.clone(), config.open(), Pcg64Mcg::seed_from_u64(seed))
        }

        /// An ACK that comes at `now` in microseconds, from 1 ms on, after `rtt` of them; says whether the flow leaves its path.
        fn ack(&mut self, now: u64, rtt: u64) -> bool {
            let now = Time::from_us(1000 + now);
            self.on_feedback(&Feedback { hops: 4, ..ack(now - Time::from_us(rtt), now) })
        }

        fn on_feedback(&mut self, feedback: &Feedback) -> bool {
            self.0.on_feedback(&mut self.1, &mut (), feedback);
            self.0.draw(&mut self.1, &mut self.2);
            let stays = self.0.continues(&mut self.1, feedback.now, 1000);
            assert!(stays || self.0.continues(&mut self.1, feedback.now, 1000), "one packet moves it");
            !stays
        }
    }

    #[test]
    fn five_to_seven_round_trips_without_a_good_one_move_the_flow() {
        let moved: Vec<u64> = (0..50)
            .map(|seed| {
                let mut flow = Flow::new(PlbDelay::default(), seed);
                assert!(!flow.ack(20, 20));
                (21..400).find(|&now| flow.ack(now, 21)).unwrap()
            })
            .collect();
        // The round-trip time of the good one counts: 100 to 140 us after it.
        assert!(moved.iter().all(|now| (120..=160).contains(now)), "{moved:?}");
        assert!(moved.iter().min() < Some(&130) && moved.iter().max() > Some(&150), "{moved:?}");
    }

    #[test]
    fn a_good_one_in_between_keeps_it() {
        let mut flow = Flow::new(PlbDelay::default(), 1);
        assert!((20..2000).all(|now| !flow.ack(now, if now % 90 == 0 { 20 } else { 30 })));
    }

    #[test]
    fn after_a_change_as_long_passes_before_the_next_one() {
        let mut flow = Flow::new(PlbDelay { most: 5, ..PlbDelay::default() }, 1);
        assert!(!flow.ack(20, 20));
        let moves: Vec<u64> = (21..400).filter(|&now| flow.ack(now, 50)).collect();
        assert_eq!(moves, [121, 222, 323]);
    }

    #[test]
    fn a_flow_that_has_never_had_a_good_one_waits_for_the_first_time() {
        let mut flow = Flow::new(PlbDelay { first: Time::from_us(1000), ..PlbDelay::default() }, 1);
        // Its first packet left at 10.
        let moves: Vec<u64> = (60..2500).filter(|&now| flow.ack(now, 50)).collect();
        assert_eq!(moves, [1011, 2012]);
    }

    #[test]
    fn hops_add_to_the_target_if_they_are_to() {
        let config = PlbDelay { hop_delay: Time::from_us(5), most: 5, ..PlbDelay::default() };
        let mut flow = Flow::new(config, 1);
        assert!((50..2000).all(|now| !flow.ack(now, 40)));
        assert!((2000..2400).any(|now| flow.ack(now, 41)));
    }

    #[test]
    fn round_trip_times_are_smoothed() {
        let mut flow = Flow::new(PlbDelay { target: Time::from_us(80), most: 5, ..PlbDelay::default() }, 1);
        flow.ack(80, 16);
        flow.ack(160, 80);
        assert_eq!(flow.1.rtt, Time::from_us(24));
        assert!(!flow.ack(280, 81) && flow.ack(281, 81), "120 us after 160");
    }

    #[test]
    fn timeouts_and_marks_change_nothing() {
        let mut flow = Flow::new(PlbDelay::default(), 1);
        flow.ack(20, 20);
        for cause in [Cause::Timeout, Cause::Loss, Cause::Nack, Cause::Notification, Cause::Trim] {
            assert!(!flow.on_feedback(&Feedback::of(cause, Time::from_us(900))), "{cause:?}");
        }
        assert!(!flow.on_feedback(&Feedback { marked: true, ..ack(Time::from_us(880), Time::from_us(900)) }));
    }

    #[test]
    fn numbers_without_meaning_are_refused_by_field() {
        let refusal = |config: PlbDelay| config.check().unwrap_err().to_string();
        assert!(refusal(PlbDelay { target: Time::ZERO, ..PlbDelay::default() }).starts_with("target"));
        assert!(refusal(PlbDelay { least: 0, ..PlbDelay::default() }).starts_with("least"));
        assert!(refusal(PlbDelay { most: 4, ..PlbDelay::default() }).contains("least = 5 or more"));
        assert!(refusal(PlbDelay { first: Time::ZERO, ..PlbDelay::default() }).starts_with("first"));
    }
}
