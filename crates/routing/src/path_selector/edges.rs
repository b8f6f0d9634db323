//! Schemes whose first and last switches work together: the first one writes a word on each data packet, the last one may answer with signals
//! and hold packets back.

use netloom_units::{Bytes, Time};
use rand::Rng;

use super::SwitchPathSelector;
use crate::header::FlowKey;

/// What a flow's first switch knows of the paths to its last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// Index of the last switch.
    pub last: u32,
    /// Number of paths, whose labels are below it.
    pub paths: u32,
    /// Round-trip time of a full packet and a signal between them on an idle fabric.
    pub base_rtt: Time,
}

/// What the first switch says of a data packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamped {
    /// What is written on it. The lower 16 bits are the label of its path, as the switches between read it.
    pub word: u32,
    /// If a decision was taken: whether the flow goes on by another path.
    pub moved: Option<bool>,
}

/// A data packet at its last switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EdgeArrival {
    /// Its flow.
    pub flow: FlowKey,
    /// What its first switch has written on it.
    pub word: u32,
    /// When it left its host.
    pub sent: Time,
    /// It has met congestion (ECN).
    pub is_marked: bool,
    /// When it comes.
    pub now: Time,
}

/// What the last switch does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Sends it on.
    Pass,
    /// Sends it on, and what is held of the flow behind it.
    Release,
    /// Holds it, behind what is already held.
    Hold,
    /// Holds it, the first one, until that time at most.
    HoldUntil(Time),
}

/// What becomes of held packets when their timer fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flush {
    /// None are held any more.
    Over,
    /// They wait until then.
    Later(Time),
    /// They are released.
    Now,
}

/// A scheme of first and last switches, at a switch that is both for different flows.
pub(crate) trait EdgeScheme {
    /// A data packet of a flow passes its first switch. `between` describes the paths to the last one.
    fn at_first(
        &mut self,
        flow: FlowKey,
        now: Time,
        between: &mut dyn FnMut() -> Between,
        random: &mut dyn Rng,
    ) -> Stamped;

    /// A data packet reaches its last switch, which sends the `signals` that are added to the first one, before the packet goes on.
    fn at_last(&mut self, arrival: &EdgeArrival, signals: &mut Vec<u32>) -> Verdict;

    /// The last switch of a flow, of that index, has sent a signal to this one, its first.
    fn on_signal(&mut self, flow: FlowKey, last: u32, signal: u32, now: Time);

    /// The timer of a flow's held packets fires.
    fn on_hold_timer(&mut self, flow: FlowKey, now: Time) -> Flush;
}

/// Size of a signal: a header without payload.
pub const SIGNAL_SIZE: Bytes = Bytes(64);

/// The label in what a first switch writes on a packet.
#[inline]
pub fn label_of(word: u32) -> u32 {
    word & u32::from(u16::MAX)
}

impl SwitchPathSelector {
    /// What a flow's first switch writes on a data packet; none if it writes nothing. `between` describes the paths to the packet's last switch.
    pub fn at_first(
        &mut self,
        flow: FlowKey,
        now: Time,
        mut between: impl FnMut() -> Between,
        random: &mut impl Rng,
    ) -> Option<u32> {
        let Stamped { word, moved } = self.machines.edge()?.at_first(flow, now, &mut between, random);
        if let Some(moved) = moved {
            self.count(flow, moved);
        }
        Some(word)
    }

    /// What the last switch does with a data packet; it sends the signals that are added to the packet's first switch.
    #[inline]
    pub fn at_last(&mut self, arrival: &EdgeArrival, signals: &mut Vec<u32>) -> Verdict {
        self.machines.edge().map_or(Verdict::Pass, |edge| edge.at_last(arrival, signals))
    }

    /// A flow's last switch, of that index, has sent a signal to this one, its first.
    pub fn on_signal(&mut self, flow: FlowKey, last: u32, signal: u32, now: Time) {
        if let Some(edge) = self.machines.edge() {
            edge.on_signal(flow, last, signal, now);
        }
    }

    /// The timer of a flow's held packets fires.
    pub fn on_hold_timer(&mut self, flow: FlowKey, now: Time) -> Flush {
        self.machines.edge().map_or(Flush::Over, |edge| edge.on_hold_timer(flow, now))
    }
}
