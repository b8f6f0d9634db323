//! The receiver asks for every packet after the first window.

use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Bytes, Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Asking, CongestionConfig, CongestionControl, Facts, Limit, Marks, SlowedBy, Start, window};
use crate::feedback::{Cause, Feedback};
use crate::gate::Gate;
use crate::sender::PathFacts;

/// NDP's congestion control (Handley et al., SIGCOMM'17): a flow sends its first window at the NIC's rate, without a request. After that every packet
/// waits for a PULL. A receiver owes one for each packet or header that comes, and sends them at the pace at which its link
/// can take full packets, one flow in turn after the other. A flow whose last PULL was lost sends a packet without one after a
/// retransmission timeout.
///
/// With `reliability = "trimmed"` it is NDP's transport. It needs a fabric that trims (`fabric.queue = "trimming"`), and schemes that spray
/// packets or use layers. A receiver never owes more PULLs than packets are missing, once it knows how many there are. PULLs are numbered,
/// so that a lost one does no harm. A header that came back waits for a PULL like any other repetition, unless none is to be expected.
/// PULLs are not slowed down on degraded links, and all classes share a host's PULLs.
///
/// To leave out a part of NDP: `fabric.queue = "tail-drop"` with a `buffer`, `priority = false` with `fabric.control_priority = false`, or
/// another congestion control.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pulls {
    /// The first window in packets.
    pub initial_window: u32,
    /// The same in bandwidth-delay products of the idle path, rounded up to packets; takes the place of `initial_window`.
    pub initial_bdp: Option<f64>,
    /// The pace of PULLs, as a share of what the receiver's link takes in full packets per second: csg-htsim has 0.99, the paper only mentions the link's rate.
    pub pace: f64,
    /// Whether a flow sends requests before data (csg-htsim's `-rts`): instead of its first window it sends a request, a packet of `ack_size`, for
    /// each packet that the window would
    /// hold. A receiver owes a PULL for each.
    pub request_to_send: bool,
    /// Whether receivers request as much as arrives untrimmed, instead of as much as their links can take; absent: a flow keeps its first
    /// window in flight. Needs a fabric that trims, and `initial_window`.
    ///
    /// With layers and `routing.granularity = "reps"` a flow then uses several layers in proportion to what they carry
    /// (`docs/studies-fatpaths-simulation.md`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub adaptive: Option<Adaptive>,
}

/// Receivers owe fewer PULLs than packets come while packets are trimmed, and more while none are, so that a flow's window finds what its paths can carry. A fixed window
/// sends a packet for each header, too: what the network cannot carry is trimmed again and again, having used the links before the full one. The window is that of the flow,
/// over all of its paths together, as MP-RDMA's (Lu et al., NSDI'18, section 4.1), with trimmed packets in the place of marked ones; that a receiver gives credit by
/// what did not arrive is `ExpressPass`'s idea (Cho et al., SIGCOMM'17).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Adaptive {
    /// Packets by which the window grows while as many come as it holds, none trimmed; at most 65,536. It stays as it is while PULLs of the flow wait for their turn: then the receiver's own
    /// link is full.
    pub increase: f64,
    /// Packets by which a trimmed packet shrinks it, down to one packet.
    pub decrease: f64,
}

impl Default for Adaptive {
    fn default() -> Self {
        Adaptive { increase: 0.5, decrease: 1.0 }
    }
}

impl Default for Pulls {
    /// 30 packets, as the NDP evaluation's permutations.
    fn default() -> Self {
        Pulls { initial_window: 30, initial_bdp: None, pace: 1.0, request_to_send: false, adaptive: None }
    }
}

/// Packets of the largest step of an adaptive window: what one arrival is worth can be counted.
const MOST_INCREASE: f64 = 65_536.0;

impl Pulls {
    /// How long a PULL waits for the one before it where a full packet takes so long on the receiver's link; at most [`Time::END`].
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    pub fn interval(&self, packet: Time) -> Time {
        match self.pace {
            1.0 => packet,
            pace => Time((packet.0 as f64 / pace).round() as u64).min(Time::END),
        }
    }

    /// The first window of a path, in packets.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, and cut to 32 bits"
    )]
    pub(crate) fn window(&self, bdp: Bytes, packet: Bytes) -> u32 {
        let of_path =
            |times: f64| (bdp.0 as f64 * times / packet.0 as f64).ceil().min(f64::from(u32::MAX)) as u32;
        self.initial_bdp.map_or(self.initial_window, of_path).max(1)
    }
}

/// What the receiver of one flow with an adaptive window knows of it. What is under way, what the receiver owes and what the sender may send unasked are together as many
/// packets as the window holds: exactly, or a window of one packet could come to nothing.
#[derive(Clone, Copy, Debug)]
pub struct PullWindow {
    /// In parts of a packet.
    size: u64,
    /// Parts of a PULL that are owed beyond whole ones.
    part: u64,
}

/// Parts of a packet.
const PACKET: u64 = 1 << 16;

impl Recur for PullWindow {
    fn recur(&mut self, walk: &mut Walk) {
        let PullWindow { size, part } = self;
        walk.exact(*size);
        walk.exact(*part);
    }
}

impl PullWindow {
    /// The window of a flow of which nothing has come.
    pub fn new(pulls: &Pulls) -> Self {
        PullWindow { size: u64::from(pulls.initial_window) * PACKET, part: 0 }
    }

    /// A packet has come, whole or as a header, of a flow of which `missing` packets are missing, while PULLs of the flow wait for their turn or do not. Returns how many
    /// PULLs it is worth.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "steps of at most 2¹⁶ packets (Pulls::check) and a window of at least one make at most 2¹⁶ + 1 PULLs of an arrival"
    )]
    pub fn on_arrival(&mut self, adaptive: &Adaptive, is_whole: bool, missing: u32, waits: bool) -> u32 {
        let packet = PACKET as f64;
        if is_whole {
            let growth =
                if waits { 0 } else { (adaptive.increase * packet * packet / self.size as f64) as u64 };
            self.size += growth;
            self.part += PACKET + growth;
        } else {
            // The last window is asked for in full: PULLs that nobody could use any more are not kept for repetitions.
            let shrinks = u64::from(missing) * PACKET > self.size;
            let loss =
                if shrinks { ((adaptive.decrease * packet) as u64).min(self.size - PACKET) } else { 0 };
            self.size -= loss;
            self.part += PACKET - loss;
        }
        let pulls = self.part / PACKET;
        self.part %= PACKET;
        pulls as u32
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

impl CongestionConfig for Pulls {
    type State = State;

    #[inline]
    fn facts(&self) -> Facts<'_> {
        Facts {
            title: "PULLs",
            limit: Limit::Credit,
            grows: self.adaptive.is_some(),
            needs_acks: false,
            marks: Marks::Optional,
            slowed_by: SlowedBy::MoreThanMarks,
            coupled: false,
            cnp_interval: None,
            telemetry: None,
            pulls: Some(Asking::Packets(self)),
            reaction_point: None,
            needs_trimming: self.adaptive.is_some().then_some("adaptive"),
            max_rate: None,
            target_delay: None,
            acts_on: None,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("initial_window", self.initial_window, 1)?;
        Invalid::positive("initial_bdp", self.initial_bdp.unwrap_or(1.0))?;
        let is_pace = self.pace > 0.0 && self.pace <= 1.0;
        Invalid::unless(is_pace, "pace", "a number above 0 and at most 1", self.pace)?;
        let Some(adaptive) = &self.adaptive else { return Ok(()) };
        let is_known = self.initial_bdp.is_none();
        let expected = "none with initial_bdp, a first window that receivers do not know";
        Invalid::unless(is_known, "adaptive", expected, "a table")?;
        let is_step = adaptive.increase > 0.0 && adaptive.increase <= MOST_INCREASE;
        let expected = format!("a number above 0, at most {MOST_INCREASE}");
        Invalid::unless(is_step, "increase", expected, adaptive.increase)
            .and_then(|()| {
                let fits = adaptive.decrease > 0.0 && adaptive.decrease <= 1.0;
                Invalid::unless(fits, "decrease", "more than 0, at most 1", adaptive.decrease)
            })
            .map_err(|error| error.within("adaptive"))
    }

    fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)> {
        // What it asks for waits for the receiver.
        if self.request_to_send {
            return None;
        }
        let field = if self.initial_bdp.is_some() { "initial_bdp" } else { "initial_window" };
        Some((field, window::packets(self.window(path.bdp(), packet), packet)))
    }

    fn begin(&self, start: Start, gate: &mut Gate) -> State {
        let window = self.window(start.path.bdp(), start.packet);
        gate.set_credit(if self.request_to_send { 0 } else { window });
        State::default()
    }
}

impl CongestionControl for State {
    type Config = Pulls;

    const LEARNS: bool = true;
    const SHRINKS_BELOW_A_PACKET: bool = false;
    const CHOOSES_PATHS: bool = false;

    /// The sender learnt something. A packet whose header came back asks for no PULL: if no other one is to be expected either, it goes at once.
    /// In an incast that sends many headers back, all others wait, or they would only come back again.
    #[inline]
    fn on_feedback(&mut self, _: &Pulls, feedback: &Feedback, gate: &mut Gate) -> bool {
        self.on_arrivals(feedback.packets);
        match feedback.cause {
            Cause::Trim => self.on_arrivals(1),
            Cause::Return if feedback.in_flight == 0 && self.expected <= 0 => gate.grant(1),
            _ => {}
        }
        false
    }

    #[inline]
    fn on_sent(&mut self, _: Time, _: u64, gate: &mut Gate) {
        gate.spend();
    }

    fn recur(&mut self, _: &Pulls, flow: u64, walk: &mut Walk) {
        let State { seen, expected } = self;
        // Of a flow that has succeeded another one the walk knows that it has.
        walk.pulls(flow, false, seen);
        walk.exact(expected.cast_unsigned());
    }

    fn begin_with_one(&mut self, _: &mut Gate) {}

    /// The receiver has sent that many PULLs by now.
    #[inline]
    fn on_pull(&mut self, count: u32, gate: &mut Gate) {
        let new = count.saturating_sub(self.seen);
        self.seen += new;
        self.expected -= i64::from(new);
        gate.grant(new);
    }

    /// That many packets have come, whatever is left of them.
    fn on_arrivals(&mut self, packets: u32) {
        self.expected += i64::from(packets);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feedback(cause: Cause, packets: u32, in_flight: u32) -> Feedback {
        Feedback { hops: 1, packets, in_flight, ..Feedback::of(cause, Time(0)) }
    }

    #[test]
    fn the_first_window_holds_as_many_packets_as_the_path() {
        let pulls = Pulls { initial_bdp: Some(1.2), ..Pulls::default() };
        // 200 Gb/s and 13.01 us (Flowcut Switching, section IV).
        assert_eq!(pulls.window(Bytes(325_344), Bytes(4160)), 94);
        assert_eq!(pulls.window(Bytes(10), Bytes(4160)), 1);
        assert_eq!(Pulls::default().window(Bytes(325_344), Bytes(4160)), 30);
    }

    /// The window after that many arrivals, one in `trimmed` of them trimmed, and the PULLs that they were worth.
    fn adapts(packets: u32, trimmed: u32, missing: u32, waits: bool) -> (f64, u32) {
        let (pulls, adaptive) = (Pulls { initial_window: 8, ..Pulls::default() }, Adaptive::default());
        let mut window = PullWindow::new(&pulls);
        let worth =
            |packet: u32| window.on_arrival(&adaptive, !packet.is_multiple_of(trimmed), missing, waits);
        let pulls = (1..=packets).map(worth).sum();
        (window.size as f64 / PACKET as f64, pulls)
    }

    #[test]
    fn an_adaptive_window_follows_what_arrives_whole() {
        // Without trimming, half a packet per window: w² = 8² + 2 · 0.5 n.
        let (size, pulls) = adapts(36, u32::MAX, u32::MAX, false);
        assert!((9.9..10.1).contains(&size), "{size}");
        assert_eq!(pulls, 36 + 2);
        // One in 24 trimmed: 23 · 0.5 / w = 1.
        let (size, _) = adapts(24 * 500, 24, u32::MAX, false);
        assert!((11.0..12.1).contains(&size), "{size}");
        // All of them: a packet at a time for good.
        assert_eq!(adapts(7, 1, u32::MAX, false), (1.0, 0));
        assert_eq!(adapts(100, 1, u32::MAX, false), (1.0, 93));
    }

    #[test]
    fn an_adaptive_window_of_one_packet_always_has_one_under_way() {
        for increase in [0.1, 0.3, 0.5, 1.0 / 3.0] {
            let (pulls, adaptive) =
                (Pulls { initial_window: 3, ..Pulls::default() }, Adaptive { increase, decrease: 0.7 });
            let (mut window, mut under_way) = (PullWindow::new(&pulls), 3);
            for packet in 0..10_000u32 {
                let is_whole = packet % 7 == 3;
                under_way = under_way - 1 + window.on_arrival(&adaptive, is_whole, u32::MAX, false);
                assert!((1..=4).contains(&under_way), "{packet}: {under_way}");
            }
        }
    }

    #[test]
    fn an_adaptive_window_stays_where_it_does_not_decide() {
        // The receiver's link is full.
        assert_eq!(adapts(100, u32::MAX, u32::MAX, true), (8.0, 100));
        // The rest of the flow fits in it.
        assert_eq!(adapts(100, 1, 8, false), (8.0, 100));
        assert_eq!(adapts(1, 1, 9, false), (7.0, 0));
    }

    #[test]
    fn adaptive_windows_without_meaning_are_refused_by_field() {
        let refusal = |pulls: Pulls| pulls.check().unwrap_err().to_string();
        let with = |increase, decrease| Pulls {
            adaptive: Some(Adaptive { increase, decrease }),
            ..Pulls::default()
        };
        assert!(refusal(with(0.0, 1.0)).starts_with("adaptive.increase"));
        assert!(
            refusal(with(1e10, 1.0))
                .starts_with("adaptive.increase: expected a number above 0, at most 65536")
        );
        assert!(refusal(with(1.0, 0.0)).starts_with("adaptive.decrease: expected more than 0, at most 1"));
        assert!(refusal(with(1.0, 1.5)).starts_with("adaptive.decrease"));
        assert!(refusal(with(1.0, f64::NAN)).starts_with("adaptive.decrease"));
        let of_path = Pulls { initial_bdp: Some(1.2), ..with(1.0, 1.0) };
        assert!(refusal(of_path).starts_with("adaptive: expected none with initial_bdp"));
    }

    #[test]
    fn the_largest_step_of_the_smallest_window_can_be_counted() {
        let adaptive = Adaptive { increase: MOST_INCREASE, decrease: 1.0 };
        let mut window = PullWindow::new(&Pulls { initial_window: 1, ..Pulls::default() });
        assert_eq!(window.on_arrival(&adaptive, true, 1, false), 1 + (1 << 16));
    }

    #[test]
    fn a_pace_below_one_spaces_pulls_out() {
        let with = |pace| Pulls { pace, ..Pulls::default() };
        // 9064 B at 10 Gb/s.
        assert_eq!(with(1.0).interval(Time(7_251_200)), Time(7_251_200));
        assert_eq!(with(0.99).interval(Time(7_251_200)), Time(7_324_444));
        assert_eq!(with(1e-30).interval(Time(7_251_200)), Time::END);
        for pace in [0.0, 1.01, f64::NAN] {
            assert_eq!(with(pace).check().unwrap_err().field, "pace");
        }
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
        state.on_feedback(&Pulls::default(), &feedback(Cause::Ack, 1, 2), &mut gate);
        state.on_feedback(&Pulls::default(), &feedback(Cause::Trim, 0, 1), &mut gate);
        state.on_feedback(&Pulls::default(), &feedback(Cause::Return, 0, 0), &mut gate);
        assert_eq!(gate.credit(), 0);
        state.on_pull(2, &mut gate);
        assert_eq!(gate.credit(), 2);
        // All that were sent then come back.
        state.on_feedback(&Pulls::default(), &feedback(Cause::Return, 0, 1), &mut gate);
        assert_eq!(gate.credit(), 2);
        state.on_feedback(&Pulls::default(), &feedback(Cause::Return, 0, 0), &mut gate);
        assert_eq!(gate.credit(), 3);
    }
}
