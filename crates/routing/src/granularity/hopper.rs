//! Hopper: a sender whose round-trip times are long probes two other paths, and moves to one that is much shorter.

use netloom_transport::{Cause, Feedback};
use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;
use crate::scheme::Routing;
use crate::tag::Tag;

/// Hopper (Nosrati and Ghaderi, arXiv 2506.08132): once per round trip, if the average round-trip time exceeds `congested` times that of an idle path, a flow sends a probe on each of `probes` other
/// paths that the selector draws; once these have come back, or a round trip later, it moves to the best of them if that takes less than `better` times as long as its own, and waits for the
/// difference before it sends there, so that its packets stay in order mostly. At the NIC, among entropy values; works with every transport that has ACKs.
///
/// A probe is a packet of its own of an ACK's size, which the destination answers at once. It has to wait where data wait, so the fabric must not let control packets pass before them: `fabric.control_priority = false`.
/// What serialisation added to the flow's latest data packet is added to its round-trip time, as it is smaller.
///
/// The conditions, their three numbers and the waiting are the paper's. As far as we know it publishes neither the weight of the average nor the size of probes, nor what a timeout does: these are ours, with every ACK on
/// the flow's path in the average, and a flow that moves to a drawn path after a retransmission timeout. Meant for hosts that take packets in any order (`transport.preset = "irn"`), as the paper's NICs do.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hopper {
    /// A path is congested if the average round-trip time exceeds this many times that of an idle path.
    pub congested: f64,
    /// Paths that are probed.
    pub probes: u32,
    /// A path is better if its probe took less than this share of the average round-trip time.
    pub better: f64,
    /// Weight of the newest round-trip time in the average: ours.
    pub weight: f64,
}

impl Default for Hopper {
    fn default() -> Self {
        Hopper { congested: 1.5, probes: 2, better: 0.8, weight: 0.125 }
    }
}

/// Most paths that are probed at a time.
const MOST: u32 = 64;

/// What is remembered of a flow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    /// What a packet and its ACK take on an idle path, without what serialisation adds to the packet's way.
    idle: Time,
    /// What it added to that of the flow's latest packet of which an ACK came.
    serialisation: Time,
    /// The present path, once an ACK has said which.
    path: Option<Tag>,
    /// The average round-trip time there, in picoseconds.
    average: Option<f64>,
    /// The round ends with the ACK of a packet from this number on.
    round: u32,
    /// Probes that have not left yet; the paths of those that are under way and when they left; and the best one that has come back, with its round-trip time.
    unsent: u32,
    sent: Vec<(Tag, Time)>,
    best: Option<(Tag, Time)>,
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

impl Hopper {
    /// An ACK came for a packet.
    fn on_ack(&self, watch: &mut Watch, feedback: &Feedback) -> Advice {
        let tag = Tag::from_bits(feedback.tag);
        if *watch.path.get_or_insert(tag) != tag {
            return Advice::Continue;
        }
        let rtt = feedback.rtt.0 as f64;
        let average = watch.average.map_or(rtt, |before| self.weight * rtt + (1.0 - self.weight) * before);
        (watch.average, watch.serialisation) = (Some(average), feedback.serialisation);
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
            return Advice::Probe;
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
}

impl GranularityConfig for Hopper {
    type Run = Watch;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::InMidFlow,
            remembers: true,
            acks: Acks::Any,
            serialisation: true,
            holds_back: true,
            probes: true,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> Watch {
        Watch::default()
    }

    fn continues(&self, watch: &mut Watch, _: Time, _: u32) -> bool {
        watch.moves.is_none()
    }

    fn again(&self, watch: &mut Watch, _: &mut impl rand::Rng) -> Option<Tag> {
        match watch.moves {
            Some(Move::To(path)) => Some(path),
            Some(Move::Anywhere) | None => None,
        }
    }

    fn takes(&self, watch: &mut Watch, tag: Tag) {
        watch.moves = None;
        watch.path = Some(tag);
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
        watch.moves.is_none() && watch.paused.is_none()
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

    fn unsent_probes(&self, watch: &Watch) -> u32 {
        watch.unsent
    }

    fn probe(&self, watch: &mut Watch, path: Tag, now: Time) -> bool {
        watch.unsent = watch.unsent.saturating_sub(1);
        let is_other = watch.path != Some(path) && watch.sent.iter().all(|(sent, _)| *sent != path);
        if is_other {
            watch.sent.push((path, now));
        }
        is_other
    }

    fn on_probe_answer(&self, watch: &mut Watch, path: Tag, sent: Time, now: Time) -> Advice {
        let Some(place) = watch.sent.iter().position(|probe| *probe == (path, sent)) else {
            return Advice::Continue;
        };
        watch.sent.swap_remove(place);
        let rtt = now.saturating_sub(sent) + watch.serialisation;
        if watch.best.is_none_or(|(_, best)| rtt < best) {
            watch.best = Some((path, rtt));
        }
        if watch.sent.is_empty() { self.decide(watch, now) } else { Advice::Continue }
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

    fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
        let expected =
            "\"random\" or \"next-entropy\", as probes of \"hopper\" find their paths by entropy values";
        let found = format!("\"{}\"", scheme.selector_name());
        Invalid::unless(scheme.draws_entropy(), "selector", expected, found)
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;

    /// A flow on path 5; an idle round trip takes 1000, 100 of them serialisation.
    struct Flow {
        config: Hopper,
        watch: Watch,
        now: u64,
    }

    impl Flow {
        fn new(weight: f64) -> Self {
            let config = Hopper { weight, ..Hopper::default() };
            let mut watch = config.open();
            config.expect(&mut watch, &mut (), 4, Time(900));
            Flow { config, watch, now: 10_000 }
        }

        /// An ACK of packet `seq` comes while `next` is the next one.
        fn ack(&mut self, seq: u32, next: u32, tag: u32, rtt: u64) -> Advice {
            self.now += 10;
            let feedback = Feedback {
                seq,
                tag,
                rtt: Time(rtt),
                serialisation: Time(100),
                next,
                packets: 1,
                ..Feedback::of(Cause::Ack, Time(self.now))
            };
            self.config.on_feedback(&mut self.watch, &mut (), &feedback)
        }

        /// A probe may leave now by each of some paths; those by which it does.
        fn probe(&mut self, drawn: &[u32]) -> Vec<u32> {
            let Flow { config, watch, now } = self;
            let leaves = |path: &&u32| config.probe(watch, Tag::entropy(**path), Time(*now));
            drawn.iter().filter(leaves).copied().collect()
        }

        /// The answer to a probe that left at `sent` comes at `now`.
        fn answer(&mut self, tag: u32, sent: u64, now: u64) -> Advice {
            self.now = now;
            self.config.on_probe_answer(&mut self.watch, Tag::entropy(tag), Time(sent), Time(now))
        }

        /// The path to which its next packet moves, if it does; a drawn one is 77.
        fn moves(&mut self) -> Option<u32> {
            let Flow { config, watch, .. } = self;
            if config.continues(watch, Time(self.now), 1000) {
                return None;
            }
            let again = config.again(watch, &mut Pcg64Mcg::seed_from_u64(1));
            let tag = again.unwrap_or(Tag::entropy(77));
            config.takes(watch, tag);
            Some(tag.bits())
        }
    }

    /// With the newest round-trip time alone: 1500 are not more than 1.5 times 1000, 1501 are. Then two probes leave. 1501 · 0.8 = 1200.8: a probe of 1099 and 100 of a data packet's serialisation is better, and 302
    /// are the difference.
    #[test]
    fn a_congested_path_is_compared_with_two_others_once_per_round_trip() {
        let mut flow = Flow::new(1.0);
        assert_eq!(flow.ack(0, 10, 5, 1500), Advice::Continue);
        // The round lasts until packet 10.
        assert_eq!(flow.ack(9, 20, 5, 9000), Advice::Continue);
        assert_eq!(flow.ack(10, 20, 5, 1501), Advice::Probe);
        assert_eq!(flow.config.unsent_probes(&flow.watch), 2);
        let sent = flow.now;
        assert_eq!((flow.probe(&[7, 8]), flow.config.unsent_probes(&flow.watch)), (vec![7, 8], 0));
        assert!(
            flow.config.is_settled(&flow.watch, 10) && flow.moves().is_none(),
            "data stay where they are"
        );
        // The first answer waits for the second one; another one, of a probe before, says nothing.
        assert_eq!(flow.answer(8, sent, sent + 1090 + 5), Advice::Continue);
        assert_eq!(flow.answer(7, sent - 1, sent + 1096), Advice::Continue);
        flow.ack(11, 20, 5, 1501);
        let (now, until) = (sent + 1099, Time(sent + 1099 + 306));
        assert_eq!(
            flow.answer(7, sent, now),
            Advice::PauseUntil(until),
            "8 took 1095 and 100, 306 less than 1501"
        );
        assert!(!flow.config.may_send(&flow.watch, 20, 10) && !flow.config.is_settled(&flow.watch, 10));
        flow.config.on_deadline(&mut flow.watch, Time(until.0 - 1));
        assert!(!flow.config.may_send(&flow.watch, 20, 10));
        flow.config.on_deadline(&mut flow.watch, until);
        assert!(flow.config.may_send(&flow.watch, 20, 10));
        assert_eq!([flow.moves(), flow.moves()], [Some(8), None]);
        // Answers of the old path count no more.
        assert_eq!(flow.ack(40, 50, 5, 90_000), Advice::Continue);
        assert_eq!((flow.watch.average, flow.watch.is_probing()), (Some(1195.0), false));
    }

    #[test]
    fn a_probe_that_is_not_better_or_does_not_come_back_leaves_the_flow_where_it_is() {
        let mut flow = Flow::new(1.0);
        assert_eq!(flow.ack(0, 10, 5, 2000), Advice::Probe);
        // The present path, or one twice, is no other path.
        assert_eq!(flow.probe(&[5, 7]), [7]);
        let sent = flow.now;
        assert_eq!(flow.answer(7, sent, sent + 1500), Advice::Continue, "1600 are not less than 0.8 of 2000");
        assert_eq!((flow.moves(), flow.watch.is_probing()), (None, false));
        // The next round probes again; of these one is lost, and the round after decides by the other one.
        assert_eq!(flow.ack(10, 20, 5, 2000), Advice::Probe);
        let sent = flow.now;
        assert_eq!(flow.probe(&[2, 3]), [2, 3]);
        assert_eq!(flow.answer(3, sent, sent + 900), Advice::Continue);
        let until = Time(flow.now + 10 + 1000);
        assert_eq!(flow.ack(20, 30, 5, 2000), Advice::PauseUntil(until));
        assert_eq!(flow.moves(), Some(3));
        assert_eq!(flow.answer(2, sent, flow.now + 1), Advice::Continue, "too late");
    }

    #[test]
    fn averages_weigh_the_newest_by_its_weight_and_a_timeout_moves_at_once() {
        let mut flow = Flow::new(0.125);
        flow.ack(0, 10, 5, 1000);
        flow.ack(1, 10, 5, 2000);
        assert_eq!(flow.watch.average, Some(1125.0));
        let timeout = Feedback::of(Cause::Timeout, Time(flow.now));
        flow.config.on_feedback(&mut flow.watch, &mut (), &timeout);
        assert_eq!([flow.moves(), flow.moves()], [Some(77), None]);
        flow.ack(12, 20, 77, 3000);
        assert_eq!((flow.watch.average, flow.watch.path), (Some(3000.0), Some(Tag::entropy(77))));
    }

    #[test]
    fn numbers_without_meaning_are_refused_by_field() {
        let refusal = |config: Hopper| config.check().unwrap_err().field;
        let config = Hopper::default;
        assert_eq!(config().check(), Ok(()));
        assert_eq!(refusal(Hopper { congested: 0.9, ..config() }), "congested");
        assert_eq!(refusal(Hopper { probes: 0, ..config() }), "probes");
        assert_eq!(refusal(Hopper { better: 0.0, ..config() }), "better");
        assert_eq!(refusal(Hopper { weight: 1.1, ..config() }), "weight");
    }
}
