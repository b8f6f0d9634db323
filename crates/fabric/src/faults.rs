//! What goes wrong on a channel, and the book of what is lost.
//!
//! Faults are known before a run. A cut ends the transmission under way, takes what is on the wire and what waits for the channel, and
//! everything that comes until the channel is repaired. A loss interval takes each packet with a probability. Whether routing
//! and hosts are notified is not a port's business. A switch that notifies sources takes what waits, in time, and keeps what comes from its ports.
//!
//! A port looks at its faults when a packet starts: whether the wire is cut before that packet has arrived is known by then. What waits
//! when a cut comes is thrown away when the port is next touched, as of the moment of the cut; so faults need no events of their own. Under
//! flow control they do, as what is thrown away makes room in the input buffers of other links: see [`Ports::cut_link`](crate::Ports::cut_link).
//! There a cut takes signals of the link as well, random losses take none of them.

use std::collections::BTreeMap;

use netloom_units::Time;
use netloom_units::random::Stream;
use netloom_units::recurrence::{Recur, Walk};
use rand::Rng;

use crate::packet::Packet;

/// The faults of one channel.
#[derive(Clone, Debug)]
pub struct ChannelFaults {
    /// When it is cut: from and until, in order of time and apart from each other. The latest first.
    cuts: Vec<(Time, Time)>,
    /// Whether what waited at the beginning of the last of `cuts` has been thrown away.
    is_flushed: bool,
    /// A cut at which the port has met a packet too late: what waits goes as of then.
    pub(crate) flush: Option<Time>,
    /// When the packet that was lost last would have arrived, if the other end notices that it is missing.
    pub(crate) missed: Option<Time>,
    /// When the transmission of the packet that is being sent ends, if it is lost: at the latest when the channel is cut. A NIC lets the time of the whole packet pass.
    pub(crate) sends_until: Time,
    /// Under flow control: the link has been cut, and the repair has not been handled yet, which may be the last thing that happens in its instant.
    pub(crate) is_down: bool,
    /// The link came back while the input buffer of its port was still so full that its neighbour had to pause, and that has not ended yet.
    pub(crate) came_back_full: bool,
    losses: Vec<LossInterval>,
    random: Stream,
}

/// A time in which a channel loses packets at random.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossInterval {
    /// First instant at which a packet that starts may be lost.
    pub from: Time,
    /// First instant at which none is any more.
    pub until: Time,
    /// Probability of losing a packet, in units of 2⁻³².
    pub probability: u32,
}

/// What faults do to a packet that starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// Nothing.
    Arrives,
    /// It is lost on the wire.
    LostOnTheWay,
    /// The channel is cut; the packet goes nowhere.
    IsCut,
    /// It waited when the channel was cut, and is lost with all that wait.
    Flush(Time),
}

impl ChannelFaults {
    /// The faults of a channel that is cut in some intervals, which may overlap, and loses packets in others; `None` if there are none.
    pub fn new(cuts: Vec<(Time, Time)>, losses: Vec<LossInterval>, random: Stream) -> Option<Self> {
        let mut cuts = apart(cuts);
        cuts.reverse();
        let has_any = !cuts.is_empty() || !losses.is_empty();
        has_any.then_some(ChannelFaults {
            cuts,
            is_flushed: false,
            flush: None,
            missed: None,
            sends_until: Time::MAX,
            is_down: false,
            came_back_full: false,
            losses,
            random,
        })
    }

    /// Whether the channel is ever cut.
    pub(crate) fn has_cuts(&self) -> bool {
        !self.cuts.is_empty()
    }

    /// Whether what leaves at `at` and arrives at `arrival` is lost because the channel is cut on its way.
    pub(crate) fn is_cut_between(&self, at: Time, arrival: Time) -> bool {
        self.cuts.iter().any(|&(from, until)| from < arrival && at < until)
    }

    /// Forgets the cuts that were repaired by `now`; returns the one that has come by then, if one has.
    fn current(&mut self, now: Time) -> Option<(Time, Time)> {
        while let Some(&(from, until)) = self.cuts.last() {
            if from > now {
                return None;
            }
            if !self.is_flushed || now < until {
                return Some((from, until));
            }
            self.cuts.pop();
            self.is_flushed = false;
        }
        None
    }

    /// The first cut that has begun by `now` and has not been applied to the waiting packets yet. The caller drops them.
    pub(crate) fn take_flush(&mut self, now: Time) -> Option<Time> {
        let mut first = None;
        while let Some((from, _)) = self.current(now) {
            if std::mem::replace(&mut self.is_flushed, true) {
                break;
            }
            first = first.or(Some(from));
        }
        first
    }

    /// Whether the channel is cut at `now`.
    pub(crate) fn is_cut(&mut self, now: Time) -> bool {
        self.current(now).is_some_and(|(_, until)| now < until) || self.is_down
    }

    /// The same, for those who do not send: at an instant after the last packet's start.
    pub(crate) fn is_within_a_cut(&self, now: Time) -> bool {
        self.is_down || self.cuts.iter().any(|&(from, until)| (from..until).contains(&now))
    }

    /// When the channel will be cut next, as of the last packet's start; `Time::MAX`: never.
    pub(crate) fn next_cut(&self) -> Time {
        self.cuts.last().map_or(Time::MAX, |&(from, _)| from)
    }

    /// What becomes of a packet that starts at `start` and would have arrived at `end`. `is_signal`: it is one of the link's own.
    pub(crate) fn judge(&mut self, start: Time, end: Time, has_waited: bool, is_signal: bool) -> Start {
        self.sends_until = Time::MAX;
        if let Some(cut) = self.take_flush(start)
            && has_waited
        {
            return Start::Flush(cut);
        }
        if self.is_cut(start) {
            return Start::IsCut;
        }
        let random = &mut self.random;
        let losses = if is_signal { &[] } else { self.losses.as_slice() };
        let intervals = losses.iter().filter(|interval| interval.from <= start && start < interval.until);
        // Every interval draws, so that what one takes does not shift the draws of another.
        let is_lost_at_random =
            intervals.fold(false, |lost, interval| lost | (random.next_u32() < interval.probability));
        let is_cut_off = self.cuts.last().is_some_and(|&(from, _)| from < end);
        if is_lost_at_random || is_cut_off {
            self.missed = (!is_cut_off).then_some(end);
            Start::LostOnTheWay
        } else {
            Start::Arrives
        }
    }
}

/// The same intervals in order of time, those that overlap or touch as one.
pub fn apart(mut intervals: Vec<(Time, Time)>) -> Vec<(Time, Time)> {
    intervals.sort_unstable();
    let mut apart: Vec<(Time, Time)> = Vec::new();
    for (from, until) in intervals {
        match apart.last_mut() {
            Some(last) if from <= last.1 => last.1 = last.1.max(until),
            _ => apart.push((from, until)),
        }
    }
    apart
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DropCause {
    /// There was no room in a queue or buffer.
    Full,
    /// The link was cut, or lost it at random, or cuts left it without a route, or it came by a link that was repaired before the buffer at its
    /// end had become empty enough.
    Fault,
}

/// The packets that were dropped at a node or on its channels.
#[derive(Clone, Debug, Default)]
pub struct Dropped {
    /// Data packets, by source and flow.
    pub flows: BTreeMap<(u32, u32), u64>,
    /// Data packets, by cause.
    data: [u64; 2],
    /// Control packets, by cause.
    control: [u64; 2],
}

/// Nothing is dropped in a period that recurs.
impl Recur for Dropped {
    fn recur(&mut self, walk: &mut Walk) {
        let Dropped { flows: _, data, control } = self;
        for packets in data.iter_mut().chain(control) {
            match walk.counts() {
                true => walk.sum(packets),
                false => walk.exact(*packets),
            }
        }
    }
}

impl Dropped {
    /// Enters a packet.
    #[cold]
    #[inline(never)]
    pub fn note(&mut self, packet: &Packet, cause: DropCause) {
        if let Some(source) = packet.data_source() {
            *self.flows.entry((source, packet.flow)).or_default() += 1;
            self.data[cause as usize] += 1;
        } else if !packet.kind.is_of_the_link() {
            self.control[cause as usize] += 1;
        }
    }

    /// Data packets dropped for a reason.
    pub fn data(&self, cause: DropCause) -> u64 {
        self.data[cause as usize]
    }

    /// Control packets dropped for a reason.
    pub fn control(&self, cause: DropCause) -> u64 {
        self.control[cause as usize]
    }
}

#[cfg(test)]
mod tests {
    use netloom_units::random;

    use super::*;

    #[test]
    fn a_channel_is_within_a_cut_from_its_beginning_to_its_end() {
        let cuts = vec![(Time(10), Time(20)), (Time(30), Time(40))];
        let random = random::Node::Marking.stream(1, 1);
        let faults = ChannelFaults::new(cuts, Vec::new(), random).unwrap();
        let within = [9, 10, 19, 20, 29, 30, 39, 40].map(|now| faults.is_within_a_cut(Time(now)));
        assert_eq!(within, [false, true, true, false, false, true, true, false]);
    }
}
