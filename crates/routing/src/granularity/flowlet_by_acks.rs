//! Flowlets by feedback: a flow may take another path when nothing has come back for a while.

use netloom_transport::{Cause, Feedback};
use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;

/// A new path when no ACK and no report of a trimmed packet has come for longer than `gap` times the round-trip time of an idle path, and when `wait` has passed since the flow last changed its
/// path. At the NIC; works with every transport that has ACKs.
///
/// The load balancer `flowlet` of the public simulator of REPS (tommasobo/REPS_EuroSys_Artifact, commit b751588, `uec.cpp`). Not the flowlets of switches (`flowlet`): a sender whose packets leave
/// without a gap may change its path in the midst of them, and it does so in its first round trip, as nothing has come back yet. There time counts from the simulation's beginning until the first
/// feedback, here from the flow's, which is the same for flows that begin with it. `wait` is that simulator's retransmission timeout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FlowletByAcks {
    /// The time without feedback, as a multiple of the round-trip time of an idle path.
    pub gap: f64,
    /// Minimum time between two changes of the path.
    pub wait: Time,
}

impl Default for FlowletByAcks {
    /// Half a round trip and 100 us, as in the simulator.
    fn default() -> Self {
        FlowletByAcks { gap: 0.5, wait: Time::from_us(100) }
    }
}

/// What is remembered of a flow.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Quiet {
    /// What a packet and its ACK take on an idle path, without what serialisation adds to the packet's way; and the latter, of the latest packet.
    idle: Time,
    serialisation: Time,
    /// When something last came back; before that, when the flow began.
    since: Option<Time>,
    /// Until when it keeps its path.
    keeps: Time,
}

impl FlowletByAcks {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    fn gap(&self, quiet: &Quiet) -> Time {
        Time(((quiet.idle + quiet.serialisation).0 as f64 * self.gap) as u64)
    }
}

impl GranularityConfig for FlowletByAcks {
    type Run = Quiet;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Nic,
            ends: Ends::InMidFlow,
            remembers: true,
            acks: Acks::Any,
            serialisation: true,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> Quiet {
        Quiet::default()
    }

    fn continues(&self, quiet: &mut Quiet, now: Time, _: u32) -> bool {
        let since = *quiet.since.get_or_insert(now);
        let moves = now > since.saturating_add(self.gap(quiet)) && now > quiet.keeps;
        if moves {
            quiet.keeps = now.saturating_add(self.wait);
        }
        !moves
    }

    fn expects(&self) -> bool {
        true
    }

    fn expect(&self, quiet: &mut Quiet, (): &mut (), _: u32, rtt: Time) {
        quiet.idle = rtt;
    }

    fn on_feedback(&self, quiet: &mut Quiet, (): &mut (), feedback: &Feedback) -> Advice {
        if matches!(feedback.cause, Cause::Ack | Cause::Nack | Cause::Trim | Cause::Return) {
            quiet.since = Some(feedback.now);
            quiet.serialisation = feedback.serialisation;
        }
        Advice::Continue
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::positive("gap", self.gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::ack;

    /// The times at which a flow changes its path that sends a packet at each of `sends` and gets an ACK at each of `acks`, before packets of the same time. An idle path takes 100.
    fn moves(config: &FlowletByAcks, sends: &[u64], acks: &[u64]) -> Vec<u64> {
        let mut quiet = config.open();
        config.expect(&mut quiet, &mut (), 4, Time(100));
        let mut acks = acks.iter().copied().peekable();
        let mut moved = Vec::new();
        for &now in sends {
            while let Some(at) = acks.next_if(|&at| at <= now) {
                config.on_feedback(&mut quiet, &mut (), &ack(Time(0), Time(at)));
            }
            if !config.continues(&mut quiet, Time(now), 4096) {
                moved.push(now);
            }
        }
        moved
    }

    #[test]
    fn half_a_round_trip_without_feedback_lets_a_flow_move_and_a_wait_follows() {
        let config = FlowletByAcks { wait: Time(1000), ..FlowletByAcks::default() };
        // The first window: 51 is more than 50 after the beginning, and nothing has come back.
        assert_eq!(moves(&config, &[0, 50, 51, 60, 99], &[]), [51]);
        // An ACK every 50 and packets beside them: no gap, nor at exactly 50.
        assert_eq!(moves(&config, &[0, 40, 80, 100, 149, 150], &[40, 80, 100]), [0; 0]);
        // The gap from 100 to 151; the next one, from 400 on, lies within the wait until 1151, at which instant the path is still kept.
        let sends = [0, 100, 151, 400, 500, 1151, 1152, 2152, 2153];
        assert_eq!(moves(&config, &sends, &[40, 100, 400]), [151, 1152, 2153]);
    }

    #[test]
    fn serialisation_counts_to_the_round_trip_and_timeouts_are_no_feedback() {
        let config = FlowletByAcks { wait: Time(1), ..FlowletByAcks::default() };
        let mut quiet = config.open();
        config.expect(&mut quiet, &mut (), 4, Time(100));
        assert!(config.continues(&mut quiet, Time(0), 1));
        let trim = Feedback { cause: Cause::Trim, serialisation: Time(20), ..ack(Time(0), Time(30)) };
        config.on_feedback(&mut quiet, &mut (), &trim);
        for cause in [Cause::Timeout, Cause::Loss, Cause::Notification, Cause::Unreachable] {
            let other = Feedback { cause, ..ack(Time(0), Time(80)) };
            config.on_feedback(&mut quiet, &mut (), &other);
        }
        // 30 + 0.5 · 120.
        assert_eq!([90, 91].map(|now| config.continues(&mut quiet, Time(now), 1)), [true, false]);
    }

    #[test]
    fn a_gap_without_length_is_refused() {
        let refusal = FlowletByAcks { gap: 0.0, ..FlowletByAcks::default() }.check().unwrap_err();
        assert_eq!(refusal.field, "gap");
    }
}
