//! PLB by marks: a flow leaves its path when many round trips in a row were congested.

use netloom_transport::{Cause, Feedback};
use netloom_units::{Invalid, Time};
use rand::{Rng, RngExt};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;

/// Protective load balancing: a new path after `rounds` congested rounds in a row, or after `idle_rounds` where nothing is in flight, so
/// that a change then reorders nothing. A retransmission timeout changes the path, too. For a random time between `pause` and twice that, congestion
/// then does not change it, so that the flow does not return to the path that failed.
/// Qureshi et al., PLB, SIGCOMM'22; the rules are those of
/// Linux (`tcp_plb.c` and its user DCTCP). At the NIC; needs a fabric that marks.
///
/// Marks of the old path still count after a change, as in Linux. The preset `plb-reps-artefact` is PLB as in the public simulator of REPS:
/// its threshold of 0.25 is truncated to 0, so a single mark makes a round congested, a round takes one idle round-trip time, two rounds
/// suffice, and timeouts cause no pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Plb {
    /// A round is congested if at least this share of the packets acknowledged in it was marked. With 0 a single mark suffices.
    pub threshold: f64,
    /// Congested rounds in a row after which the flow takes another path.
    pub rounds: u32,
    /// Congested rounds in a row after which a flow with nothing in flight takes another path: at most `rounds`.
    pub idle_rounds: u32,
    /// After a timeout congestion does not change the path for this time, and up to as much again at random.
    pub pause: Time,
    /// How long a round takes.
    pub round: Round,
}

/// How long a round takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Round {
    /// Until all is acknowledged that had been sent when it began.
    #[default]
    Rtt,
    /// The round-trip time of an idle path: until the first ACK after it.
    IdleRtt,
}

impl Plb {
    /// As the public simulator of REPS has it, in whose code the threshold of 0.25 is a whole number, and so 0.
    pub(crate) const REPS_ARTEFACT: Plb =
        Plb { threshold: 0.0, rounds: 2, idle_rounds: 2, pause: Time::ZERO, round: Round::IdleRtt };
}

impl Default for Plb {
    /// Linux's.
    fn default() -> Self {
        let pause = Time::from_ms(60_000);
        Plb { threshold: 0.5, rounds: 12, idle_rounds: 3, pause, round: Round::Rtt }
    }
}

/// The present round of a flow, and those before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// Packets acknowledged in the present round, and those of them that were marked.
    delivered: u32,
    marked: u32,
    /// The round ends when all packets below this number are acknowledged, or with the first ACK after this instant.
    last: u32,
    ends: Time,
    /// What a packet and its ACK take on an idle path, without what serialisation adds to the packet's way.
    idle: Time,
    /// Congested rounds in a row before it.
    congested: u32,
    /// Until then congestion changes nothing.
    paused: Time,
    /// When a timer fired of which the pause has not been drawn.
    expired: Option<Time>,
    /// The next packet takes another path.
    moves: bool,
}

impl GranularityConfig for Plb {
    type Run = Rounds;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::InMidFlow,
            remembers: true,
            acks: Acks::Marks,
            serialisation: true,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> Rounds {
        Rounds::default()
    }

    fn continues(&self, rounds: &mut Rounds, _: Time, _: u32) -> bool {
        !std::mem::take(&mut rounds.moves)
    }

    fn expects(&self) -> bool {
        self.round == Round::IdleRtt
    }

    fn expect(&self, rounds: &mut Rounds, (): &mut (), _: u32, rtt: Time) {
        rounds.idle = rtt;
    }

    fn is_settled(&self, rounds: &Rounds, _: u32) -> bool {
        !rounds.moves
    }

    fn on_feedback(&self, rounds: &mut Rounds, (): &mut (), feedback: &Feedback) -> Advice {
        match feedback.cause {
            Cause::Ack => {
                rounds.delivered += feedback.packets;
                rounds.marked += if feedback.marked { feedback.packets } else { 0 };
                let is_over = match self.round {
                    Round::Rtt => feedback.oldest >= rounds.last,
                    Round::IdleRtt => feedback.now > rounds.ends,
                };
                if is_over {
                    self.end(rounds, feedback);
                }
            }
            Cause::Timeout => {
                (rounds.moves, rounds.congested) = (true, 0);
                rounds.expired = Some(feedback.now);
            }
            // The flow has left its path just now.
            Cause::Unreachable => rounds.congested = 0,
            _ => {}
        }
        Advice::Continue
    }

    fn draw(&self, rounds: &mut Rounds, random: &mut impl Rng) {
        if let Some(at) = rounds.expired.take() {
            let more = if self.pause > Time::ZERO { random.random_range(0..self.pause.0) } else { 0 };
            rounds.paused = Time(at.0.saturating_add(self.pause.0).saturating_add(more));
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        let is_share = (0.0..=1.0).contains(&self.threshold);
        Invalid::unless(is_share, "threshold", "0 to 1", self.threshold)?;
        Invalid::at_least("rounds", self.rounds, 1)?;
        let fits = (1..=self.rounds).contains(&self.idle_rounds);
        Invalid::unless(fits, "idle_rounds", format!("1 to rounds = {}", self.rounds), self.idle_rounds)
    }
}

impl Plb {
    /// A round ends with an ACK.
    fn end(&self, rounds: &mut Rounds, feedback: &Feedback) {
        let share = self.threshold * f64::from(rounds.delivered);
        let is_congested = rounds.marked > 0 && f64::from(rounds.marked) >= share;
        // No more than matter: after a pause the flow leaves its path at once if it is still congested, and else not at all.
        rounds.congested = if is_congested { (rounds.congested + 1).min(self.rounds) } else { 0 };
        (rounds.delivered, rounds.marked) = (0, 0);
        rounds.last = feedback.next;
        rounds.ends = feedback.now + rounds.idle + feedback.serialisation;
        let is_empty = feedback.oldest == feedback.next;
        let suffices = rounds.congested >= self.rounds || is_empty && rounds.congested >= self.idle_rounds;
        if suffices && feedback.now >= rounds.paused {
            (rounds.moves, rounds.congested) = (true, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_pcg::Pcg64Mcg;

    use super::*;
    use crate::testing::ack;

    /// A flow that sends ten packets per round trip of 1000, and what it does.
    struct Flow {
        config: Plb,
        rounds: Rounds,
        now: u64,
        next: u32,
        random: Pcg64Mcg,
    }

    impl Flow {
        fn new(config: Plb) -> Self {
            let mut rounds = config.open();
            // With the 100 of serialisation an idle path takes 1000.
            config.expect(&mut rounds, &mut (), 4, Time(900));
            let mut flow = Flow { config, rounds, now: 0, next: 10, random: Pcg64Mcg::seed_from_u64(1) };
            assert!(!flow.moves());
            // The first ACK ends the first round, which is of one packet.
            flow.ack(1, false);
            flow
        }

        fn on_feedback(&mut self, feedback: &Feedback) {
            self.config.on_feedback(&mut self.rounds, &mut (), feedback);
            self.config.draw(&mut self.rounds, &mut self.random);
        }

        /// All below `oldest` is acknowledged.
        fn ack(&mut self, oldest: u32, marked: bool) {
            let (now, next) = (Time(self.now), self.next);
            let serialisation = Time(100);
            self.on_feedback(&Feedback {
                marked,
                oldest,
                next,
                serialisation,
                ..ack(now.saturating_sub(Time(1000)), now)
            });
        }

        /// The ACKs of what is in flight, the first `marked` of them with marks; says whether the flow has left its path. As many packets follow, unless this is
        /// the end.
        fn round(&mut self, marked: u32, is_last: bool) -> bool {
            self.now += 1000;
            let first = self.next - 10;
            for at in 0..10 {
                if !is_last {
                    self.next += 1;
                }
                self.ack(first + at + 1, at < marked);
                self.now += 10;
            }
            self.moves()
        }

        fn moves(&mut self) -> bool {
            !self.config.continues(&mut self.rounds, Time(self.now), 1000)
        }

        fn timeout(&mut self) {
            let feedback = Feedback::of(Cause::Timeout, Time(self.now));
            self.on_feedback(&feedback);
        }
    }

    #[test]
    fn the_twelfth_congested_round_in_a_row_moves_the_flow_once() {
        let mut flow = Flow::new(Plb::default());
        let moves: Vec<bool> = (0..25).map(|_| flow.round(5, false)).collect();
        let expected: Vec<bool> = (1..=25).map(|round| round % 12 == 0).collect();
        assert_eq!(moves, expected, "half of the packets");
        // Less than half begins the count anew.
        let mut flow = Flow::new(Plb::default());
        let moves = (0..40).filter(|round| flow.round(if round % 12 == 11 { 4 } else { 5 }, false)).count();
        assert_eq!(moves, 0);
    }

    #[test]
    fn an_empty_flow_moves_after_three() {
        let mut flow = Flow::new(Plb::default());
        assert_eq!([false, false, true].map(|is_last| flow.round(5, is_last)), [false, false, true]);
        let mut flow = Flow::new(Plb::default());
        assert_eq!([false, true].map(|is_last| flow.round(5, is_last)), [false, false], "two are not enough");
    }

    #[test]
    fn a_timeout_moves_it_and_then_congestion_does_not_for_a_while() {
        let config = Plb { pause: Time(100_000), ..Plb::default() };
        for seed in 0..20 {
            let mut flow = Flow::new(config.clone());
            flow.random = Pcg64Mcg::seed_from_u64(seed);
            for _ in 0..8 {
                flow.round(10, false);
            }
            flow.timeout();
            assert!(flow.moves() && !flow.moves());
            let at = flow.now;
            // A round takes 1100 here. 12 are counted by then, and no more are needed when the pause is over.
            let moved = (0..400).find(|_| flow.round(10, false)).map(|_| flow.now - at);
            let moved = moved.unwrap();
            assert!((100_000..202_200).contains(&moved), "{moved}");
        }
        assert_eq!(Plb::default().pause, Time::from_ms(60_000));
    }

    #[test]
    fn a_pause_ends_with_the_path_kept_if_it_is_free_by_then() {
        let mut flow = Flow::new(Plb { pause: Time(20_000), ..Plb::default() });
        flow.timeout();
        assert!(flow.moves());
        assert!((0..14).all(|_| !flow.round(10, false)), "within the pause");
        assert!(!flow.round(0, false));
        // 44,000 later, three more rounds are three rounds.
        flow.now += 44_000;
        assert!((0..11).all(|_| !flow.round(10, false)));
        assert!(flow.round(10, false));
    }

    #[test]
    fn the_artefact_moves_after_two_idle_round_trips_with_a_mark() {
        let mut flow = Flow::new(Plb::REPS_ARTEFACT);
        // A round ends with the first ACK more than 1000 after its beginning, here every first of ten.
        assert_eq!(
            [1, 1, 0, 1, 0, 1, 1].map(|marked| flow.round(marked, false)),
            [false, true, false, false, false, false, true]
        );
        flow.timeout();
        assert!(flow.moves());
        assert_eq!([1, 1].map(|marked| flow.round(marked, false)), [false, true], "it does not pause");
    }

    #[test]
    fn numbers_without_meaning_are_refused_by_field() {
        let refusal = |config: Plb| config.check().unwrap_err().to_string();
        assert!(refusal(Plb { threshold: 1.1, ..Plb::default() }).starts_with("threshold"));
        assert!(refusal(Plb { rounds: 0, ..Plb::default() }).starts_with("rounds"));
        assert!(refusal(Plb { idle_rounds: 0, ..Plb::default() }).starts_with("idle_rounds"));
        assert!(refusal(Plb { idle_rounds: 13, ..Plb::default() }).contains("1 to rounds = 12"));
        assert_eq!(Plb::REPS_ARTEFACT.check(), Ok(()));
    }
}
