//! After Hopper: a sender whose round-trip times are long tries two other paths, and moves to one that is much shorter.

use netloom_transport::{Cause, Feedback};
use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;
use crate::tag::Tag;

/// After Hopper (Nosrati and Ghaderi, arXiv 2506.08132): once per round trip, if the average round-trip time exceeds `congested` times that of an idle path, a flow probes `probes` other
/// paths that the selector draws; once their round-trip times are known, or a round trip later, it moves to the best of them if that is below `better` times its own, and waits
/// for the difference before it sends there, so that its packets stay in order mostly. A retransmission timeout moves it at once. At the NIC; works with every transport that has ACKs.
///
/// Not Hopper itself: there probes are packets of their own, here data packets of the flow are the probes, so that as many packets per probing may arrive out of order. Meant for hosts that take
/// them so (`transport.preset = "irn"`). The weight of the average is not published as far as we know; its default is ours, as is what a timeout does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HopperLike {
    /// A path is congested if the average round-trip time exceeds this many times that of an idle path.
    pub congested: f64,
    /// Paths that are probed.
    pub probes: u32,
    /// A path is better if its probe took less than this share of the average round-trip time.
    pub better: f64,
    /// Weight of the newest round-trip time in the average: ours.
    pub weight: f64,
}

impl Default for HopperLike {
    fn default() -> Self {
        HopperLike { congested: 1.5, probes: 2, better: 0.8, weight: 0.125 }
    }
}

/// Most paths that are probed at a time.
const MOST: u32 = 64;

/// What is remembered of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// What a packet and its ACK take on an idle path, without what serialisation adds to the packet's way.
    idle: Time,
    /// The present path, once an ACK has said which.
    path: Option<Tag>,
    /// The average round-trip time there, in picoseconds.
    average: Option<f64>,
    /// The round ends with the ACK of a packet from this number on.
    round: u32,
    /// Probes that have not left yet; those that are under way; and the best one that has come back, with its round-trip time.
    unsent: u32,
    sent: Vec<Tag>,
    best: Option<(Tag, Time)>,
    /// The packet before this one left on another path than the flow's.
    strayed: bool,
    /// The next packet takes this path, or a drawn one.
    moves: Option<Move>,
    /// No new packet leaves before that.
    paused: Option<Time>,
}

/// Where a flow moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    To(Tag),
    Anywhere,
}

impl Watch {
    fn is_probing(&self) -> bool {
        self.unsent > 0 || !self.sent.is_empty() || self.best.is_some()
    }

    fn stop_probing(&mut self) {
        (self.unsent, self.best) = (0, None);
        self.sent.clear();
    }

    /// A flow leaves its path at once.
    fn flee(&mut self) {
        self.stop_probing();
        (self.moves, self.path, self.average) = (Some(Move::Anywhere), None, None);
    }
}

impl HopperLike {
    /// An ACK came for a packet that took the flow's path.
    fn on_own(&self, watch: &mut Watch, feedback: &Feedback) -> Advice {
        let rtt = feedback.rtt.0 as f64;
        let average = watch.average.map_or(rtt, |before| self.weight * rtt + (1.0 - self.weight) * before);
        watch.average = Some(average);
        if feedback.seq < watch.round {
            return Advice::Continue;
        }
        watch.round = feedback.next;
        if watch.is_probing() {
            return self.decide(watch, feedback.now);
        }
        let idle = (watch.idle + feedback.serialisation).0 as f64;
        if average > self.congested * idle {
            watch.unsent = self.probes;
        }
        Advice::Continue
    }

    /// The probes that have come back are all.
    fn decide(&self, watch: &mut Watch, now: Time) -> Advice {
        let (best, average) = (watch.best, watch.average.unwrap_or(0.0));
        watch.stop_probing();
        let Some((path, rtt)) = best.filter(|(_, rtt)| (rtt.0 as f64) < self.better * average) else {
            return Advice::Continue;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, as the probe was faster"
        )]
        let until = now.saturating_add(Time(average as u64 - rtt.0));
        (watch.moves, watch.path, watch.average) = (Some(Move::To(path)), Some(path), Some(rtt.0 as f64));
        watch.paused = Some(until);
        Advice::PauseUntil(until)
    }

    fn on_ack(&self, watch: &mut Watch, feedback: &Feedback) -> Advice {
        let tag = Tag::from_bits(feedback.tag);
        if *watch.path.get_or_insert(tag) == tag {
            return self.on_own(watch, feedback);
        }
        let Some(place) = watch.sent.iter().position(|sent| *sent == tag) else { return Advice::Continue };
        watch.sent.swap_remove(place);
        if watch.best.is_none_or(|(_, rtt)| feedback.rtt < rtt) {
            watch.best = Some((tag, feedback.rtt));
        }
        if watch.unsent == 0 && watch.sent.is_empty() {
            self.decide(watch, feedback.now)
        } else {
            Advice::Continue
        }
    }
}

impl GranularityConfig for HopperLike {
    type Run = Watch;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::InMidFlow,
            remembers: true,
            acks: Acks::Any,
            serialisation: true,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> Watch {
        Watch::default()
    }

    fn continues(&self, watch: &mut Watch, _: Time, _: u32) -> bool {
        watch.moves.is_none() && watch.unsent == 0 && !watch.strayed
    }

    fn again(&self, watch: &mut Watch, _: &mut impl rand::Rng) -> Option<Tag> {
        match watch.moves {
            Some(Move::To(path)) => Some(path),
            Some(Move::Anywhere) => None,
            // Back from a probe, or off for one.
            None if watch.unsent == 0 => watch.path,
            None => None,
        }
    }

    fn takes(&self, watch: &mut Watch, tag: Tag) {
        watch.strayed = false;
        if let Some(moved) = watch.moves.take() {
            watch.path = Some(tag);
            if moved == Move::Anywhere {
                watch.average = None;
            }
        } else if watch.unsent > 0 {
            watch.unsent -= 1;
            // A draw of the present path probes nothing.
            if watch.path != Some(tag) && !watch.sent.contains(&tag) {
                watch.sent.push(tag);
            }
            watch.strayed = true;
        }
    }

    fn expects(&self) -> bool {
        true
    }

    fn expect(&self, watch: &mut Watch, (): &mut (), _: u32, rtt: Time) {
        watch.idle = rtt;
    }

    fn may_send(&self, watch: &Watch, _: u32, _: u32) -> bool {
        watch.paused.is_none()
    }

    fn is_settled(&self, watch: &Watch, _: u32) -> bool {
        watch.moves.is_none() && watch.unsent == 0 && !watch.strayed && watch.paused.is_none()
    }

    fn on_deadline(&self, watch: &mut Watch, now: Time) {
        watch.paused.take_if(|until| *until <= now);
    }

    fn on_feedback(&self, watch: &mut Watch, (): &mut (), feedback: &Feedback) -> Advice {
        match feedback.cause {
            Cause::Ack if feedback.is_sampled => self.on_ack(watch, feedback),
            Cause::Timeout | Cause::Unreachable => {
                watch.flee();
                Advice::Continue
            }
            _ => Advice::Continue,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let is_valid = self.congested >= 1.0 && self.congested.is_finite();
        Invalid::unless(is_valid, "congested", "a number of at least 1", self.congested)?;
        Invalid::unless((1..=MOST).contains(&self.probes), "probes", format!("1 to {MOST}"), self.probes)?;
        for (field, share) in [("better", self.better), ("weight", self.weight)] {
            Invalid::unless(share > 0.0 && share <= 1.0, field, "a number above 0 and at most 1", share)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    /// A flow on path 5 that sends a packet per step; an idle round trip takes 1000, 100 of them serialisation.
    struct Flow {
        config: HopperLike,
        watch: Watch,
        draws: Vec<u32>,
        now: u64,
        next: u32,
    }

    impl Flow {
        fn new(weight: f64) -> Self {
            let config = HopperLike { weight, ..HopperLike::default() };
            let mut watch = config.open();
            config.expect(&mut watch, &mut (), 4, Time(900));
            Flow { config, watch, draws: vec![8, 7], now: 10_000, next: 10 }
        }

        /// The path of the next packet, of a flow whose packets would go by `current`.
        fn send(&mut self, current: u32) -> u32 {
            self.next += 1;
            if self.config.continues(&mut self.watch, Time(self.now), 1000) {
                return current;
            }
            let again = self.config.again(&mut self.watch, &mut Pcg64Mcg::seed_from_u64(1));
            let tag = again.unwrap_or_else(|| Tag::entropy(self.draws.pop().unwrap()));
            self.config.takes(&mut self.watch, tag);
            tag.bits()
        }

        fn ack(&mut self, seq: u32, tag: u32, rtt: u64) -> Advice {
            self.now += 10;
            let feedback = Feedback {
                seq,
                tag,
                rtt: Time(rtt),
                serialisation: Time(100),
                next: self.next,
                packets: 1,
                ..Feedback::of(Cause::Ack, Time(self.now))
            };
            self.config.on_feedback(&mut self.watch, &mut (), &feedback)
        }
    }

    /// With the newest round-trip time alone: 1500 are not more than 1.5 times 1000, 1501 are.
    #[test]
    fn a_congested_path_is_compared_with_two_others_once_per_round_trip() {
        let mut flow = Flow::new(1.0);
        assert_eq!(flow.ack(0, 5, 1500), Advice::Continue);
        assert_eq!((flow.send(5), flow.watch.is_probing()), (5, false));
        // The round lasts until packet 10.
        flow.ack(9, 5, 9000);
        assert!(!flow.watch.is_probing());
        flow.ack(10, 5, 1501);
        // Two probes, then back.
        assert_eq!([flow.send(5), flow.send(7), flow.send(8), flow.send(5)], [7, 8, 5, 5]);
        // The first answer waits for the second one. 1501 · 0.8 = 1200.8: 1199 are better, and 302 are the difference.
        assert_eq!(flow.ack(11, 8, 1300), Advice::Continue);
        let until = Time(flow.now + 10 + 302);
        assert_eq!(flow.ack(12, 7, 1199), Advice::PauseUntil(until));
        assert!(!flow.config.may_send(&flow.watch, 20, 10) && !flow.config.is_settled(&flow.watch, 10));
        flow.config.on_deadline(&mut flow.watch, Time(until.0 - 1));
        assert!(!flow.config.may_send(&flow.watch, 20, 10));
        flow.config.on_deadline(&mut flow.watch, until);
        assert!(flow.config.may_send(&flow.watch, 20, 10));
        assert_eq!([flow.send(5), flow.send(7)], [7, 7]);
        // Answers of the old path count no more.
        flow.ack(40, 5, 90_000);
        assert_eq!((flow.watch.average, flow.watch.is_probing()), (Some(1199.0), false));
    }

    #[test]
    fn a_probe_that_is_not_better_or_does_not_come_back_leaves_the_flow_where_it_is() {
        let mut flow = Flow::new(1.0);
        flow.ack(0, 5, 2000);
        flow.send(5);
        flow.send(7);
        flow.ack(11, 7, 1600);
        assert_eq!(flow.ack(12, 8, 1700), Advice::Continue);
        assert_eq!((flow.send(8), flow.watch.is_probing()), (5, false));
        // The next round probes again; of these one is lost, and the round after decides by the other one.
        flow.draws = vec![3, 2];
        flow.ack(20, 5, 2000);
        assert_eq!([flow.send(5), flow.send(2)], [2, 3]);
        flow.ack(21, 3, 1000);
        let until = Time(flow.now + 10 + 1000);
        assert_eq!(flow.ack(30, 5, 2000), Advice::PauseUntil(until));
        assert_eq!(flow.send(5), 3);
    }

    #[test]
    fn averages_weigh_the_newest_by_its_weight_and_a_timeout_moves_at_once() {
        let mut flow = Flow::new(0.125);
        flow.ack(0, 5, 1000);
        flow.ack(1, 5, 2000);
        assert_eq!(flow.watch.average, Some(1125.0));
        let timeout = Feedback::of(Cause::Timeout, Time(flow.now));
        flow.config.on_feedback(&mut flow.watch, &mut (), &timeout);
        assert_eq!([flow.send(5), flow.send(7)], [7, 7]);
        flow.ack(12, 7, 3000);
        assert_eq!((flow.watch.average, flow.watch.path), (Some(3000.0), Some(Tag::entropy(7))));
    }

    #[test]
    fn numbers_without_meaning_are_refused_by_field() {
        let refusal = |config: HopperLike| config.check().unwrap_err().field;
        let config = HopperLike::default;
        assert_eq!(config().check(), Ok(()));
        assert_eq!(refusal(HopperLike { congested: 0.9, ..config() }), "congested");
        assert_eq!(refusal(HopperLike { probes: 0, ..config() }), "probes");
        assert_eq!(refusal(HopperLike { better: 0.0, ..config() }), "better");
        assert_eq!(refusal(HopperLike { weight: 1.1, ..config() }), "weight");
    }
}
