//! The congestion control that the tests add: additive increase, multiplicative decrease.

use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CongestionConfig, CongestionControl, Facts, Limit, Marks, SlowedBy, Start, window};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// A window that grows by a packet per round trip, and of which a loss leaves half (Chiu and Jain, 1989).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Aimd {
    /// Initial window in full packets.
    pub initial_window: u32,
}

impl Default for Aimd {
    fn default() -> Self {
        Aimd { initial_window: 4 }
    }
}

impl CongestionConfig for Aimd {
    type State = State;

    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "AIMD",
            limit: Limit::Window,
            grows: true,
            needs_acks: true,
            marks: Marks::Optional,
            slowed_by: SlowedBy::MoreThanMarks,
            coupled: false,
            cnp_interval: None,
            telemetry: None,
            pulls: None,
            reaction_point: None,
            needs_trimming: None,
            max_rate: None,
            target_delay: None,
            acts_on: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("initial_window", self.initial_window, 1)
    }

    fn first_window(&self, packet: Bytes, _: PathFacts) -> Option<(&'static str, Bytes)> {
        Some(("initial_window", window::packets(self.initial_window, packet)))
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        let state = State { packets: self.initial_window.into(), packet: start.packet.0 };
        gate.set_window(state.window());
        state
    }
}

/// The window of one flow.
#[derive(Clone, Debug)]
pub(crate) struct State {
    packets: f64,
    packet: u64,
}

impl State {
    fn window(&self) -> u64 {
        self.packets as u64 * self.packet
    }
}

impl CongestionControl for State {
    type Config = Aimd;

    const LEARNS: bool = true;
    const SHRINKS_BELOW_A_PACKET: bool = false;
    const CHOOSES_PATHS: bool = false;

    fn on_feedback(&mut self, _: &Aimd, feedback: &Feedback, gate: &mut Gate) -> bool {
        let before = self.packets;
        match feedback.cause {
            Cause::Ack => self.packets += f64::from(feedback.packets) / self.packets,
            Cause::Unreachable => {}
            _ => self.packets = (self.packets / 2.0).max(1.0),
        }
        gate.set_window(self.window());
        self.packets < before
    }

    fn on_sent(&mut self, _: Time, _: u64, _: &mut Gate) {}

    fn begin_with_one(&mut self, gate: &mut Gate) {
        self.packets = 1.0;
        gate.set_window(self.window());
    }
}

/// What is said in its file is all that others need: it is read by its name, declares itself, and runs.
mod tests {
    use netloom_units::Rate;
    use netloom_units::kind::Kind;

    use crate::config::Transport;
    use crate::feedback::Ack;
    use crate::sender::{PathFacts, Sender};
    use crate::{Congestion, Reliability, Shaping};
    use netloom_units::{Bytes, Time};

    fn transport() -> Transport {
        assert!(Congestion::NAMES.contains(&"aimd"));
        let table = serde::de::value::MapDeserializer::new([("initial_window", 2u32)].into_iter());
        let congestion = Congestion::read::<serde::de::value::MapDeserializer<'_, _, serde::de::value::Error>>(
            "aimd", table,
        );
        let reliability = Reliability::GoBackN(Default::default());
        let mut transport =
            Transport { congestion: congestion.unwrap().unwrap(), reliability, ..Transport::default() };
        transport.options.mtu = Bytes(1000);
        transport.options.header = Bytes(0);
        transport
    }

    #[test]
    fn a_kind_is_one_file_and_one_line() {
        let transport = transport();
        let path = PathFacts {
            base_rtt: Time(1000),
            rate: Rate::from_gbps(100),
            lossy: true,
            reorders: false,
            trims: false,
        };
        assert_eq!(transport.check(), Ok(()));
        assert_eq!(transport.first_window(path), Some(("initial_window", Bytes(2000))));
        assert!(transport.grows());
        let mut sender = Sender::new(&transport, Bytes(20_000), path, Time::ZERO);
        let send = |sender: &mut Sender, now| {
            let mut sent = 0;
            while sender.ready(&transport).is_some_and(|at| at <= now) {
                sent += u32::from(sender.take(&transport, now).is_some());
            }
            sent
        };
        assert_eq!(send(&mut sender, Time(1)), 2);
        let ack = |seq: u32| Ack {
            now: Time(1001),
            seq,
            cumulative: seq + 1,
            sent: Time(1),
            serialisation: Time::ZERO,
            hops: 2,
            marked: false,
            tag: 0,
            at_last_hop: false,
        };
        // Two ACKs add a little less than a packet, a third one the rest.
        for seq in 0..2 {
            assert!(!sender.on_ack(&transport, ack(seq)).window_cut);
        }
        assert_eq!(send(&mut sender, Time(1002)), 2);
        sender.on_ack(&transport, Ack { sent: Time(1002), now: Time(2002), ..ack(2) });
        assert_eq!(send(&mut sender, Time(2002)), 2);
        let deadline = sender.deadline(&transport).unwrap();
        assert!(sender.on_timer(&transport, deadline).unwrap().window_cut);
        assert_eq!(send(&mut sender, deadline), 1);
    }

    /// The checks of combinations go by what it declares.
    #[test]
    fn combinations_are_checked_by_what_a_kind_declares() {
        let paced = Transport { shaping: Shaping::Paced(Default::default()), ..transport() };
        assert_eq!(paced.check(), Ok(()));
        let without_acks = Transport { reliability: Reliability::None(Default::default()), ..transport() };
        assert_eq!(without_acks.check().unwrap_err().field, "congestion");
    }
}
