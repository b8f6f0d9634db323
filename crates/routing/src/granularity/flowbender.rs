//! FlowBender: a flow leaves its path when too many of its packets are marked.

use netloom_transport::{Cause, Feedback};
use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;

/// A new path when more than a share of `threshold` of the ACKs of `rounds` round trips in a row are marked, or when the retransmission
/// timer expires, or at once when a switch reports that a packet met a cut link. Kabbani et al., FlowBender, CoNEXT'14, section 3. ACKs of
/// packets that left before a change do not count, because they say nothing about the new path; the paper leaves this open. At the NIC;
/// needs a fabric that marks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowBender {
    /// T: the share of marked ACKs of a round trip above which it counts as congested.
    pub threshold: f64,
    /// N: congested round trips in a row after which the flow takes another path.
    pub rounds: u32,
}

impl Default for FlowBender {
    /// 5% in one round trip, as in the paper.
    fn default() -> Self {
        FlowBender { threshold: 0.05, rounds: 1 }
    }
}

/// The present round trip of a flow, and those before.
#[derive(Clone, Debug, Default)]
pub(crate) struct Round {
    /// When its first ACK came; it ends with the first ACK of a packet that was sent later.
    since: Time,
    acks: u32,
    marked: u32,
    /// Congested round trips in a row before it.
    congested: u32,
    /// The next packet takes another path.
    bends: bool,
    /// When the first packet left on the present path.
    on_path: Time,
}

impl GranularityConfig for FlowBender {
    type Run = Round;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::InMidFlow,
            remembers: true,
            acks: Acks::Marks,
            serialisation: false,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> Round {
        Round::default()
    }

    fn continues(&self, round: &mut Round, now: Time, _: u32) -> bool {
        let bends = round.bends;
        if bends {
            *round = Round { on_path: now, ..Round::default() };
        }
        !bends
    }

    fn on_feedback(&self, round: &mut Round, (): &mut (), feedback: &Feedback) -> Advice {
        match feedback.cause {
            Cause::Timeout => round.bends = true,
            // The flow has left its path just now.
            Cause::Unreachable if feedback.sent() >= round.on_path => {
                *round = Round { on_path: feedback.now, ..Round::default() };
            }
            Cause::Ack if feedback.sent() >= round.on_path => {
                if round.acks > 0 && feedback.sent() >= round.since {
                    self.end(round);
                }
                if round.acks == 0 {
                    round.since = feedback.now;
                }
                round.acks += 1;
                round.marked += u32::from(feedback.marked);
            }
            _ => {}
        }
        Advice::Continue
    }

    fn check(&self) -> Result<(), Invalid> {
        let is_share = (0.0..1.0).contains(&self.threshold);
        Invalid::unless(is_share, "threshold", "0 or more, below 1", self.threshold)?;
        Invalid::at_least("rounds", self.rounds, 1)
    }
}

impl FlowBender {
    fn end(&self, round: &mut Round) {
        let is_congested = f64::from(round.marked) > self.threshold * f64::from(round.acks);
        let congested = if is_congested { round.congested + 1 } else { 0 };
        let bends = round.bends || congested >= self.rounds;
        *round = Round { congested, bends, on_path: round.on_path, ..Round::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack;

    /// Feeds ACKs of round trips of 20 packets sent at 1000, 2000, …, of which this many are marked, and says after which the flow bends.
    fn bends(config: &FlowBender, marked: &[u32]) -> Vec<bool> {
        let mut round = config.open();
        assert!(config.continues(&mut round, Time(1000), 1));
        let mut bent = Vec::new();
        for (number, &marked) in (1..).zip(marked) {
            for packet in 0..20 {
                let sent = Time(number * 1000 + packet);
                let feedback = Feedback { marked: packet < u64::from(marked), ..ack(sent, sent + Time(500)) };
                config.on_feedback(&mut round, &mut (), &feedback);
                if packet == 0 {
                    // The first ACK of a round trip ends the one before.
                    bent.push(!config.continues(&mut round, sent, 1));
                }
            }
        }
        bent
    }

    #[test]
    fn a_round_trip_with_more_than_one_marked_ack_of_twenty_bends_the_flow() {
        let config = FlowBender::default();
        // One of twenty is 5%, not more.
        assert_eq!(bends(&config, &[1, 0, 2, 20, 0, 0]), [false, false, false, true, true, false]);
    }

    #[test]
    fn acks_of_the_old_path_say_nothing_of_the_new_one() {
        let config = FlowBender::default();
        let mut round = config.open();
        let mut ack = |sent: u64, now: u64, marked| {
            let feedback = Feedback { marked, ..ack(Time(sent), Time(now)) };
            config.on_feedback(&mut round, &mut (), &feedback);
            !config.continues(&mut round, Time(now), 1)
        };
        assert_eq!([ack(0, 100, true), ack(100, 200, true)], [false, true]);
        // Sent before 200: marked, and not counted. Sent at 200 and after 300, on the new path.
        assert_eq!(
            [ack(150, 290, true), ack(199, 299, true), ack(200, 300, false), ack(300, 400, true)],
            [false; 4]
        );
        assert!(ack(400, 500, false), "but that round trip was congested");
    }

    #[test]
    fn so_many_in_a_row_are_needed() {
        let config = FlowBender { rounds: 2, ..FlowBender::default() };
        assert_eq!(
            bends(&config, &[9, 0, 9, 9, 9, 9, 0]),
            [false, false, false, false, true, false, true],
            "after a change the count begins anew"
        );
    }

    #[test]
    fn a_timeout_bends_it_at_once_and_nothing_else_does() {
        let config = FlowBender::default();
        let mut round = config.open();
        for cause in [Cause::Loss, Cause::Nack, Cause::Notification, Cause::Trim] {
            let feedback = Feedback { cause, marked: true, ..ack(Time(0), Time(500)) };
            config.on_feedback(&mut round, &mut (), &feedback);
            assert!(config.continues(&mut round, Time(600), 1), "{cause:?}");
        }
        config.on_feedback(
            &mut round,
            &mut (),
            &Feedback { cause: Cause::Timeout, ..ack(Time(0), Time(900)) },
        );
        assert_eq!([0, 1].map(|now| config.continues(&mut round, Time(now), 1)), [false, true]);
    }

    #[test]
    fn what_left_before_a_cut_link_was_told_of_says_nothing_of_the_new_path() {
        let config = FlowBender::default();
        let mut round = config.open();
        let told = Feedback { cause: Cause::Unreachable, ..ack(Time(0), Time(100)) };
        config.on_feedback(&mut round, &mut (), &told);
        for sent in [50, 99, 40] {
            config.on_feedback(
                &mut round,
                &mut (),
                &Feedback { marked: true, ..ack(Time(sent), Time(500 + sent)) },
            );
        }
        assert!(config.continues(&mut round, Time(600), 1), "the flow has taken another path already");
    }

    #[test]
    fn numbers_without_meaning_are_refused_by_field() {
        let refusal = |config: FlowBender| config.check().unwrap_err().to_string();
        assert!(refusal(FlowBender { threshold: 1.0, ..FlowBender::default() }).starts_with("threshold"));
        assert!(refusal(FlowBender { rounds: 0, ..FlowBender::default() }).starts_with("rounds"));
    }
}
