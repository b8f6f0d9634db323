//! What a port has seen.

use netloom_units::Time;
use netloom_units::recurrence::{Recur, Walk};

use super::Port;
use super::early::EarlyBeyond;

/// What a port has seen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Bytes sent.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Time spent sending, as far as it has passed.
    pub busy: Time,
    /// Most bytes that waited at once.
    pub max_queue: u64,
    /// Packets dropped: at the output queue or, in a lossless fabric, at the input buffer of this port.
    pub drops: u64,
    /// Packets lost on the channel because it was cut, or at random; in a lossless fabric also at the input buffer of this port, if it was
    /// still too full when its link was repaired.
    pub lost: u64,
    /// Packets marked.
    pub marks: u64,
    /// Packets that lost their payload.
    pub trims: u64,
    /// Headers sent back to their source, for want of room or because the channel was cut.
    pub returned_to_sender: u64,
    /// Time during which flow control held back data that waited; at a NIC, which keeps no queue, during which it held back a queue.
    pub paused: Time,
    /// How often flow control paused a queue.
    pub pauses: u64,
    /// Σ size × (start of transmission − arrival at the queue), in byte-picoseconds. Wraps below zero while packets wait, so that
    /// arrivals and starts are each one multiplication.
    pub(crate) waiting: u128,
}

/// What a port has sent and kept waiting. No two sums that every packet adds to lie side by side: two words would be put together, added to at once, and cost more than apart.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C, packed(8))]
pub(crate) struct Traffic {
    pub(crate) bytes: u64,
    pub(crate) waiting: u128,
    pub(crate) packets: u64,
    pub(crate) max_queue: u64,
    pub(crate) busy: Time,
}

impl Recur for Traffic {
    fn recur(&mut self, walk: &mut Walk) {
        // It is packed, so that nothing can refer to its parts.
        let Traffic { mut bytes, mut waiting, mut packets, max_queue, mut busy } = *self;
        walk.sum(&mut bytes);
        walk.sum128(&mut waiting);
        walk.sum(&mut packets);
        walk.exact(max_queue);
        walk.sum_time(&mut busy);
        *self = Traffic { bytes, waiting, packets, max_queue, busy };
    }
}

impl Recur for Losses {
    fn recur(&mut self, walk: &mut Walk) {
        let Losses { drops, lost, marks, trims, returned_to_sender } = self;
        [drops, lost, marks, trims, returned_to_sender].into_iter().for_each(|packets| walk.sum(packets));
    }
}

impl Recur for PauseTime {
    fn recur(&mut self, walk: &mut Walk) {
        let PauseTime { since, paused, pauses } = self;
        walk.last(since);
        walk.sum_time(paused);
        walk.sum(pauses);
    }
}

impl Traffic {
    /// Notes how many bytes wait, if they are more than ever before.
    #[inline(always)]
    pub(crate) fn note_queue(&mut self, bytes: u64) {
        if bytes > self.max_queue {
            self.raise(bytes);
        }
    }

    // A call, so that what is rare is jumped over.
    #[cold]
    #[inline(never)]
    fn raise(&mut self, bytes: u64) {
        self.max_queue = bytes;
    }

    /// What has happened until now: without what was handed on `early` and has not begun and the time that is spent sending `beyond`, and with the byte-picoseconds that what waits has `waited`.
    pub(super) fn until_now(self, early: EarlyBeyond, waited: u128, beyond: Time) -> Self {
        let so_far = self.without(early);
        Traffic { waiting: so_far.waiting.wrapping_add(waited), busy: so_far.busy - beyond, ..so_far }
    }

    /// The inverse of [`Self::until_now`].
    pub(super) fn with_what_comes(self, early: EarlyBeyond, waited: u128, beyond: Time) -> Self {
        let EarlyBeyond { packets, bytes, waiting } = early;
        Traffic {
            bytes: self.bytes + bytes,
            packets: self.packets + packets,
            waiting: self.waiting.wrapping_sub(waited).wrapping_add(waiting),
            busy: self.busy + beyond,
            ..self
        }
    }

    /// All this but for packets that were handed on early and have not begun. The time spent sending counts only what has passed anyway.
    fn without(self, early: EarlyBeyond) -> Self {
        let EarlyBeyond { packets, bytes, waiting } = early;
        Traffic {
            bytes: self.bytes - bytes,
            packets: self.packets - packets,
            waiting: self.waiting.wrapping_sub(waiting),
            ..self
        }
    }
}

/// What happened to packets at a port; few have anything of it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Losses {
    pub(crate) drops: u64,
    pub(crate) lost: u64,
    pub(crate) marks: u64,
    pub(crate) trims: u64,
    pub(crate) returned_to_sender: u64,
}

/// How long flow control has held data back at a port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PauseTime {
    /// Since when it holds data back; `Time::MAX` while it does not.
    pub(crate) since: Time,
    pub(crate) paused: Time,
    pub(crate) pauses: u64,
}

impl Default for PauseTime {
    fn default() -> Self {
        PauseTime { since: Time::MAX, paused: Time::ZERO, pauses: 0 }
    }
}

impl PortStats {
    /// What a port has seen at `end`.
    pub(crate) fn new(port: &Port, end: Time) -> Self {
        let Traffic { bytes, packets, busy, max_queue, waiting } = port.stats.without(port.early_beyond(end));
        let (losses, pause) =
            port.rare.as_deref().map_or_else(Default::default, |rare| (rare.losses, rare.pause));
        let Losses { drops, lost, marks, trims, returned_to_sender } = losses;
        PortStats {
            bytes,
            packets,
            busy: busy.saturating_sub(port.sends_beyond(end)),
            max_queue,
            drops,
            lost,
            marks,
            trims,
            returned_to_sender,
            paused: pause.paused + end.saturating_sub(pause.since),
            pauses: pause.pauses,
            waiting: waiting.wrapping_add(u128::from(port.waiting()) * u128::from(end.0)),
        }
    }

    /// Mean number of bytes waiting, over the time from zero to `end`.
    pub fn mean_queue(&self, end: Time) -> f64 {
        if end == Time::ZERO { 0.0 } else { self.waiting as f64 / end.0 as f64 }
    }

    /// Time integral of the bytes waiting from zero on, in byte-picoseconds.
    pub fn queue_integral(&self) -> u128 {
        self.waiting
    }
}

/// The drain at a port: when it begins, and what was sent before.
#[derive(Clone, Debug)]
pub(crate) struct Drain {
    /// When it begins.
    from: Time,
    /// How much of the last transmission begun before lies in the drain.
    over: Time,
    /// Bytes sent before and the time that they took there, once something has been sent in the drain.
    before: Option<(u64, Time)>,
}

impl Drain {
    pub(crate) fn new(from: Time) -> Self {
        Drain { from, over: Time::ZERO, before: None }
    }

    /// Something is sent from `start` to `end`; nothing takes longer than `longest`. Returns from when on a packet must be noted; `Time::MAX`: none any more.
    pub(super) fn note(&mut self, start: Time, end: Time, longest: Time, stats: &Traffic) -> Time {
        if start < self.from {
            self.over = end.saturating_sub(self.from);
        } else if self.before.is_none() {
            self.before = Some((stats.bytes, stats.busy - self.over));
        }
        if self.before.is_some() { Time::MAX } else { self.from.saturating_sub(longest) }
    }

    /// The part of a total of bytes sent, and of the time spent sending them, that belongs to the drain.
    pub(crate) fn part_of(&self, bytes: u64, busy: Time) -> (u64, Time) {
        match self.before {
            Some((before, took)) => (bytes - before, busy.saturating_sub(took)),
            None => (0, self.over.min(busy)),
        }
    }
}
