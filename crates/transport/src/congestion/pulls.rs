//! The receiver asks for every packet after the first window.

use netloom_units::{Bytes, Invalid};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;

/// NDP's congestion control (Handley et al., SIGCOMM'17): a flow sends its first window at the NIC's rate, without asking. From then on every packet
/// waits for a PULL. A receiver owes one for each packet or header that comes, and sends them at the pace at which its link can take full
/// packets, one flow in turn after the other. A flow whose last PULL has been lost sends a packet unasked after a retransmission timeout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pulls {
    /// The first window in packets.
    pub initial_window: u32,
    /// The same in bandwidth-delay products of the idle path, rounded up to packets; takes the place of `initial_window`.
    pub initial_bdp: Option<f64>,
}

impl Default for Pulls {
    /// 30 packets, as the NDP evaluation's permutations.
    fn default() -> Self {
        Pulls { initial_window: 30, initial_bdp: None }
    }
}

impl Pulls {
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("initial_window", self.initial_window, 1)?;
        Invalid::positive("initial_bdp", self.initial_bdp.unwrap_or(1.0))
    }

    /// The first window of a path, in packets.
    pub(crate) fn window(&self, bdp: Bytes, packet: Bytes) -> u32 {
        let of_path =
            |times: f64| (bdp.0 as f64 * times / packet.0 as f64).ceil().min(f64::from(u32::MAX)) as u32;
        self.initial_bdp.map_or(self.initial_window, of_path).max(1)
    }
}

/// What the sender of one flow knows of its PULLs.
#[derive(Clone, Debug, Default)]
pub(crate) struct State {
    /// PULLs so far, as the last one counts them: one that is lost does no harm.
    seen: u32,
    /// Packets of which it is known that they came, in whole or as headers, and whose PULL has not: those still to be expected.
    expected: i64,
}

impl State {
    /// The receiver has sent so many PULLs by now.
    pub(crate) fn on_pull(&mut self, count: u32, gate: &mut Gate) {
        let new = count.saturating_sub(self.seen);
        self.seen += new;
        self.expected -= i64::from(new);
        gate.grant(new);
    }

    /// The sender learnt something. A packet whose header came back asks for no PULL: if no other one is to be expected either, it goes at once.
    /// In an incast that sends many headers back, all others wait, or they would only come back again.
    pub(crate) fn on_feedback(&mut self, feedback: &Feedback, gate: &mut Gate) {
        self.arrived(feedback.packets);
        match feedback.cause {
            Cause::Trim => self.arrived(1),
            Cause::Return if feedback.in_flight == 0 && self.expected <= 0 => gate.grant(1),
            _ => {}
        }
    }

    /// So many packets have come, whatever is left of them.
    pub(crate) fn arrived(&mut self, packets: u32) {
        self.expected += i64::from(packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_units::Time;

    fn told(cause: Cause, packets: u32, in_flight: u32) -> Feedback {
        Feedback {
            now: Time(0),
            cause,
            seq: 0,
            rtt: Time(0),
            way: Time(0),
            hops: 1,
            marked: false,
            tag: 0,
            packets,
            bytes: 0,
            in_flight,
            oldest: 0,
            next: 0,
            remaining: Bytes(0),
            window_cut: false,
            reroute: false,
        }
    }

    #[test]
    fn the_first_window_holds_as_many_packets_as_the_path() {
        let pulls = Pulls { initial_bdp: Some(1.2), ..Pulls::default() };
        // 200 Gb/s and 13.01 us (Flowcut Switching, section IV).
        assert_eq!(pulls.window(Bytes(325_344), Bytes(4160)), 94);
        assert_eq!(pulls.window(Bytes(10), Bytes(4160)), 1);
        assert_eq!(Pulls::default().window(Bytes(325_344), Bytes(4160)), 30);
    }

    #[test]
    fn pulls_count_up_so_that_a_lost_one_does_no_harm() {
        let (mut state, mut gate) = (State::default(), Gate::new(Time(0)));
        gate.set_credit(0);
        state.on_pull(1, &mut gate);
        state.on_pull(3, &mut gate);
        // Overtaken on the way.
        state.on_pull(2, &mut gate);
        assert_eq!(gate.credit(), 3);
    }

    #[test]
    fn a_header_that_came_back_waits_for_the_pulls_of_others() {
        let (mut state, mut gate) = (State::default(), Gate::new(Time(0)));
        gate.set_credit(0);
        // Three packets: one arrives, one is trimmed, one comes back.
        state.on_feedback(&told(Cause::Ack, 1, 2), &mut gate);
        state.on_feedback(&told(Cause::Trim, 0, 1), &mut gate);
        state.on_feedback(&told(Cause::Return, 0, 0), &mut gate);
        assert_eq!(gate.credit(), 0);
        state.on_pull(2, &mut gate);
        assert_eq!(gate.credit(), 2);
        // All that were sent then come back.
        state.on_feedback(&told(Cause::Return, 0, 1), &mut gate);
        assert_eq!(gate.credit(), 2);
        state.on_feedback(&told(Cause::Return, 0, 0), &mut gate);
        assert_eq!(gate.credit(), 3);
    }
}
