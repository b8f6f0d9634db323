//! Frames injected in bursts.

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::bernoulli::inject;
use crate::frames::Injection;
use crate::plan::{Plan, Setting};
use crate::{Destination, Traffic, WorkloadError};

/// Bursty injection, an open loop: as `bernoulli`, but the slots of a host are taken by a two-state Markov chain. On:
/// every slot carries a frame, back to back at the rate of the link, all to one destination. Off: none does. Bursts are
/// geometric with mean `mean_burst` frames, idle times geometric (zero included) with the mean that gives `load`. Bursts
/// of one frame are Bernoulli injection (Markov-modulated process, Dally and Towles, Principles and Practices of
/// Interconnection Networks, section 24.2).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Bursty {
    /// Offered load: share of the host link's time that frames with their `overhead` take, above 0 and at most 1. The
    /// payload is load · rate · frame / (frame + overhead).
    pub load: f64,
    /// Mean number of frames in a burst, at least 1.
    pub mean_burst: f64,
    /// Payload of a frame; the transport's MTU or less, or a frame travels as several packets.
    pub frame: Bytes,
    /// Bytes that a frame takes on the link beside its payload. With the transport's header here `load` counts all
    /// that is on the link; with 0 it counts payload alone.
    pub overhead: Bytes,
    /// Where frames go: `uniform`, a new draw for each burst; or one host for the whole run by a permutation: `random-permutation`, or one
    /// of Dally and Towles: `bit-complement`, `bit-reverse`, `bit-rotation`, `perfect-shuffle` and `transpose` for powers of two, `tornado`
    /// and `neighbour` for any number of ranks.
    pub traffic: Traffic,
    /// Which destinations are allowed in uniform and random-permutation traffic: `any`, `other-rack` or `other-pod`.
    pub destination: Destination,
    /// No frame starts before this time.
    pub from: Time,
    /// No frame starts at this time or later.
    pub until: Time,
}

impl Default for Bursty {
    fn default() -> Self {
        Bursty {
            load: 0.5,
            mean_burst: 10.0,
            frame: Bytes(1500),
            overhead: Bytes(0),
            traffic: Traffic::Uniform,
            destination: Destination::Any,
            from: Time::ZERO,
            until: Time::from_ms(10),
        }
    }
}

impl Bursty {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let injection = Injection {
            load: self.load,
            mean_burst: self.mean_burst,
            frame: self.frame,
            overhead: self.overhead,
            from: self.from,
            until: self.until,
        };
        inject(setting, injection, self.traffic, self.destination)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Bernoulli, Message, Pattern, Workload};
    use proptest::prelude::*;

    const SLOT: u64 = 120_000;

    /// On 16 hosts with links of 100 Gb/s.
    fn sent(pattern: Pattern, seed: u64) -> Vec<(u32, Message)> {
        timed(&mut plan(Workload::new(pattern), &network(16, 4), seed).unwrap())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_mean_load_is_the_one_asked_for(load in 0.02..1.0f64, mean_burst in 1.0..30.0f64, seed: u64) {
            let until = Time::from_ms(5);
            let frames = sent(Bursty { load, mean_burst, until, ..Default::default() }.into_pattern(), seed);
            let slots = 16.0 * until.0 as f64 / SLOT as f64;
            // Frames of a two-state chain vary like those of a Bernoulli process, times its correlation time: with r the
            // second eigenvalue, (1 + r) / (1 − r), here at most twice the mean burst.
            let deviation = (slots * load * (1.0 - load) * 2.0 * mean_burst).sqrt();
            let off = frames.len() as f64 - slots * load;
            prop_assert!(off.abs() < 6.0 * deviation + 16.0, "{off} of {slots}");
        }
    }

    impl Bursty {
        fn into_pattern(self) -> Pattern {
            Pattern::Bursty(self)
        }
    }

    #[test]
    fn a_burst_goes_to_one_destination_back_to_back() {
        let mean_burst = 8.0;
        let frames = sent(Bursty { load: 0.2, mean_burst, ..Default::default() }.into_pattern(), 1);
        // Bursts as far as they can be separated: next to each other and alike in destination.
        let mut lengths: Vec<u32> = vec![1];
        for pair in frames.windows(2) {
            let [(src, message), (next_src, next)] = [pair[0], pair[1]];
            let follows = src == next_src && next.start.0 - message.start.0 == SLOT;
            if follows && message.dst == next.dst {
                *lengths.last_mut().unwrap() += 1;
            } else {
                lengths.push(1);
            }
        }
        let bursts = lengths.len() as f64;
        let mean = lengths.iter().sum::<u32>() as f64 / bursts;
        // Two bursts to one destination without a slot between them look like one: idle times are zero with probability
        // 1 / (1 + 32), destinations alike with 1 / 15. Standard deviation of a length 7.5.
        let seen = mean_burst * (1.0 + 1.0 / (33.0 * 15.0));
        assert!((mean - seen).abs() < 5.0 * 7.5 / bursts.sqrt(), "{mean} of {seen}");
        let ones = lengths.iter().filter(|&&length| length == 1).count() as f64 / bursts;
        assert!((ones - 1.0 / mean_burst).abs() < 5.0 * (0.11 / bursts).sqrt(), "{ones}");
    }

    #[test]
    fn bursts_of_one_frame_are_bernoulli_injection() {
        let (load, until) = (0.3, Time::from_ms(1));
        let bursty = sent(Bursty { load, until, mean_burst: 1.0, ..Default::default() }.into_pattern(), 1);
        assert_eq!(bursty, sent(Pattern::Bernoulli(Bernoulli { load, until, ..Default::default() }), 1));
    }

    #[test]
    fn the_first_slot_is_as_likely_taken_as_any_other() {
        let slots = Time(2 * SLOT);
        let bursty =
            || Bursty { load: 0.25, mean_burst: 50.0, until: slots, ..Default::default() }.into_pattern();
        let firsts: usize = (0..500)
            .map(|seed| sent(bursty(), seed).iter().filter(|(_, message)| message.start.0 < SLOT).count())
            .sum();
        // 8,000 trials: 2,000 expected, standard deviation 39.
        assert!((1805..2195).contains(&firsts), "{firsts}");
    }

    #[test]
    fn senseless_bursts_are_refused() {
        for mean_burst in [0.0, 0.9, f64::NAN, f64::INFINITY] {
            let pattern = Bursty { mean_burst, ..Default::default() }.into_pattern();
            let error = plan(Workload::new(pattern), &network(4, 2), 1).unwrap_err().to_string();
            assert!(error.starts_with("mean_burst: "), "{error}");
        }
    }
}
