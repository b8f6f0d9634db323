//! Control packets that are handed on before they begin.
//!
//! A control packet that finds its port busy and no other control packet waiting goes before everything else that waits or may still come: it begins when the port is free, whatever
//! happens. It is handed on at once, to begin then, instead of passing through a queue. That is a saving of time only (docs/decisions/047 says how much): the port's statistics
//! and its load are those of a port that waits.

use netloom_units::Time;

use super::{Contents, Departure, Port};
use crate::packet::Packet;

/// The size of the largest packet that is handed on early.
pub(crate) const LARGEST_EARLY: u64 = u8::MAX as u64;

/// What was handed on early and has not begun at some instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct EarlyBeyond {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    /// Byte-picoseconds of waiting after that instant.
    pub(super) waiting: u128,
}

impl Port {
    /// Hands a control packet on that begins when the port is free. `None`, if it differs in size from others of which it is not known that they have begun, if it is large, or if something rare has to be looked at when it begins.
    ///
    /// No control packet may be waiting, and none that goes before it may come.
    #[inline(always)]
    pub(crate) fn start_early<'p>(&mut self, packet: &'p mut Packet, now: Time) -> Option<Departure<'p>> {
        let (start, size) = (self.free_at, packet.size);
        let early_size = u8::try_from(size).ok()?;
        let is_alike = self.early == 0 || self.early_size == early_size && self.early < u8::MAX;
        if !is_alike || self.watch_from <= start {
            return None;
        }
        let arrival = self.start_behind(packet, true, Contents::Control);
        self.early_size = early_size;
        self.early += 1;
        self.queued += u64::from(size);
        if self.queued > self.stats.max_queue {
            self.note_longest(now);
        }
        let weight = u128::from(size) * u128::from((start - now).0);
        self.stats.waiting = self.stats.waiting.wrapping_add(weight);
        arrival.map(|arrival| self.departure(packet, arrival))
    }

    /// Starts a control packet at a port at which nothing waits, at once or [early](Self::start_early). `None`, if that cannot be said of it or something rare has to be looked at when it begins.
    #[inline(always)]
    pub(crate) fn start_control<'p>(&mut self, packet: &'p mut Packet, now: Time) -> Option<Departure<'p>> {
        if self.free_at > now {
            return self.start_early(packet, now);
        }
        if self.watch_from <= now {
            return None;
        }
        self.forget_early();
        self.free_at = now;
        self.stats.note_queue(u64::from(packet.size));
        let arrival = self.start(packet, false, Contents::Control);
        arrival.map(|arrival| self.departure(packet, arrival))
    }

    /// How many of the packets handed on early have not begun before an instant: they are sent one behind the other, the last one until `free_at`.
    pub(crate) fn early_from(&self, at: Time) -> u64 {
        if self.early == 0 {
            return 0;
        }
        let duration = u64::from(self.pace.take_whole(self.early_size.into()));
        let fit = self.free_at.saturating_sub(at).0 / duration;
        fit.min(u64::from(self.early))
    }

    /// What was handed on early and has not begun before `end`.
    pub(super) fn early_beyond(&self, end: Time) -> EarlyBeyond {
        let packets = self.early_from(end);
        if packets == 0 {
            return EarlyBeyond::default();
        }
        let (size, duration) =
            (u64::from(self.early_size), u128::from(self.pace.take_whole(self.early_size.into())));
        let (count, ahead) = (u128::from(packets), u128::from((self.free_at - end).0));
        // The k-th one from behind begins k durations before `free_at`.
        let waiting = u128::from(size) * (count * ahead - duration * count * (count + 1) / 2);
        EarlyBeyond { packets, bytes: packets * size, waiting }
    }

    // A call, so that what is rare is jumped over.
    #[cold]
    #[inline(never)]
    pub(super) fn note_longest(&mut self, now: Time) {
        self.forget_early_before(now);
        self.stats.note_queue(self.queued);
    }

    /// The port has come to an instant: what has been handed on early and has begun before is not among it any more.
    #[expect(clippy::cast_possible_truncation, reason = "not more than there were")]
    pub(crate) fn forget_early_before(&mut self, now: Time) {
        let waiting = self.early_from(now);
        if waiting < u64::from(self.early) {
            self.queued -= (u64::from(self.early) - waiting) * u64::from(self.early_size);
            (self.early, self.sending) = (waiting as u8, self.early_size.into());
        }
    }

    /// The port has come to where it is free: all that has been handed on early has begun.
    #[inline(always)]
    pub(crate) fn forget_early(&mut self) {
        if self.early > 0 {
            self.queued = self.waiting();
            (self.early, self.sending) = (0, self.early_size.into());
        }
    }

    /// Bytes in all queues once what has been handed on early has begun.
    #[inline(always)]
    pub(crate) fn waiting(&self) -> u64 {
        self.queued - u64::from(self.early) * u64::from(self.early_size)
    }

    /// Bytes that wait at an instant to which the port has been advanced. What would begin then still waits.
    #[inline(always)]
    pub(crate) fn waiting_at(&self, now: Time) -> u64 {
        match self.early {
            0 => self.queued,
            _ => self.waiting() + self.early_from(now) * u64::from(self.early_size),
        }
    }

    /// Bytes that [wait](Self::waiting_at) at an instant or are being sent.
    #[inline(always)]
    pub(crate) fn load_at(&self, now: Time) -> u64 {
        match self.early {
            0 => self.queued + if self.free_at > now { u64::from(self.sending) } else { 0 },
            _ => self.load_with_early(now),
        }
    }

    #[inline(never)]
    fn load_with_early(&self, now: Time) -> u64 {
        let waiting = self.early_from(now);
        // Before those that have not begun, either one of them is sent, or what was sent when the first one came.
        let until = self.free_at - Time(waiting * u64::from(self.pace.take_whole(self.early_size.into())));
        let sending = match () {
            () if until <= now => 0,
            () if waiting < u64::from(self.early) => self.early_size.into(),
            () => u64::from(self.sending),
        };
        self.waiting() + waiting * u64::from(self.early_size) + sending
    }
}
