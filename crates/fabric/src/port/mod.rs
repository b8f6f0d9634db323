//! One output port: its transmitter, and what it has seen.

mod early;
mod stats;
mod wire;

use std::sync::Arc;

use netloom_units::random::{Node, Stream};
use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Bytes, Rate, Time};
use rand::Rng;

use crate::config::{Ecn, Mark};
use crate::estimator::RateEstimator;
use crate::faults::{ChannelFaults, Start};
use crate::pace::{OddRate, Pace};
use crate::packet::Packet;
use crate::rules::Rules;
use crate::telemetry::{Stamp, Telemetry};
pub(crate) use early::LARGEST_EARLY;
pub(crate) use stats::Drain;
pub use stats::PortStats;
use stats::{Losses, PauseTime, Traffic};
pub(crate) use wire::RING;
pub use wire::{Credit, Departure, Fate, LAST_RANK, PortQueue, PortSpec, Wire, ring_rank};

/// How long a packet takes, and how much of that must be over for it to count as arrived.
struct Span {
    duration: Time,
    head: Time,
}

/// What is known of a packet that starts, where code is made for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Contents {
    /// Nothing is.
    Any,
    /// No [telemetry](Port::set_telemetry) is written on it.
    Unstamped,
    /// It is no data packet.
    Control,
}

/// What few ports have, or only those that have met with something.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    pub(crate) losses: Losses,
    pub(crate) pause: PauseTime,
    /// Where the load ends before the run.
    pub(crate) drain: Option<Box<Drain>>,
    pub(crate) special: Option<Box<Special>>,
    /// What decides which packets are marked as they leave, once that has had to be drawn.
    marking: Option<Box<Stream>>,
}

/// What is said of few ports beforehand.
#[derive(Clone, Debug, Default)]
pub(crate) struct Special {
    /// How it marks, if not as others.
    pub(crate) ecn: Option<Ecn>,
    pub(crate) faults: Option<Box<ChannelFaults>>,
    /// Rate changes to come.
    changes: Option<Box<Changes>>,
    /// Its rate, if that is no pace.
    odd: Option<Box<OddRate>>,
    /// Where it says how it stands, if packets carry that, and the rate that it says.
    telemetry: Option<(Arc<Telemetry>, Rate)>,
    /// Bytes that count as sent and were skipped: telemetry is read for what passes between two packets, and says nothing of them.
    unseen: u64,
    /// Its rate estimator, if the routing scheme uses one.
    pub(crate) estimator: Option<RateEstimator>,
}

/// Rates that a channel will have.
#[derive(Clone, Debug)]
struct Changes {
    /// From when on which, latest first.
    rates: Vec<(Time, Rate)>,
    /// From which rate on packets are forwarded as they arrive, and how much of one must have come.
    cut_through: Option<(Rate, Bytes)>,
}

/// One output port. Hot: touched by every packet that passes, and by everything that asks for its load, in two lines of the cache; those who only
/// ask touch the first one.
#[derive(Clone, Debug)]
#[repr(C, align(64))]
pub struct Port {
    /// When the transmitter is next free.
    pub(crate) free_at: Time,
    /// Queues in which something waits.
    pub(crate) occupied: u32,
    /// Queues that flow control has paused.
    pub(crate) paused: u32,
    /// Bytes in all queues.
    pub(crate) queued: u64,
    /// From when on a packet that starts must be looked at: because of what is rare, of the rate and its changes or of faults.
    watch_from: Time,
    pub(crate) latency: Time,
    pace: Pace,
    /// Packets [handed on early](early) of which it is not known yet that they have begun. They are among the bytes `queued`.
    pub(crate) early: u8,
    /// Size of each of them.
    pub(crate) early_size: u8,
    /// Most of a packet's serialisation that must be over for it to count as arrived; the greatest number: all of it.
    head: u32,
    /// Number of its first queue among those of all ports.
    pub(crate) first_queue: u32,
    pub(crate) channel: u32,
    /// Size of the packet being sent until `free_at`, or until the first one begins that has been handed on early.
    pub(crate) sending: u16,
    pub(crate) peer: u16,
    pub(crate) stats: Traffic,
    pub(crate) rare: Option<Box<Rare>>,
    pub(crate) to: u32,
    pub(crate) rank: u8,
    /// Whether data packets sum up what serialisation adds to their way.
    sums: bool,
    /// Whether [telemetry](Special::telemetry) is written on data packets.
    stamps: bool,
}

impl Recur for Rare {
    fn recur(&mut self, walk: &mut Walk) {
        let Rare { losses, pause, drain, special, marking } = self;
        losses.recur(walk);
        pause.recur(walk);
        if drain.is_some() {
            walk.refuse("a load that ends before the run");
        }
        if let Some(Special { ecn: _, faults, changes, odd: _, telemetry, unseen: _, estimator }) =
            special.as_deref()
        {
            if faults.is_some() || changes.is_some() {
                walk.refuse("a channel with faults");
            }
            if telemetry.is_some() {
                walk.refuse("in-band telemetry");
            }
            if estimator.is_some() {
                walk.refuse("estimates of the ports' rates");
            }
        }
        if walk.is_some(marking)
            && let Some(stream) = marking
        {
            walk.stream(stream);
        }
    }
}

impl Port {
    /// [Recurs](netloom_units::recurrence). The port must have come to `now`.
    pub(crate) fn recur(&mut self, now: Time, walk: &mut Walk) {
        if walk.counts() {
            return self.count(now, walk);
        }
        // What has been handed on early and has begun since is not among it, whenever the port was last asked.
        self.forget_early_before(now);
        let Port {
            free_at,
            occupied,
            paused,
            queued,
            watch_from,
            latency: _,
            pace: _,
            early,
            early_size,
            head: _,
            first_queue: _,
            channel: _,
            sending,
            peer: _,
            stats,
            rare,
            to: _,
            rank: _,
            sums: _,
            stamps: _,
        } = self;
        walk.since(free_at);
        walk.exact(*occupied);
        walk.exact(*paused);
        walk.exact(*queued);
        walk.exact(watch_from.0);
        walk.exact(*sending);
        stats.recur(walk);
        if walk.is_some(rare)
            && let Some(rare) = rare
        {
            rare.recur(walk);
        }
        walk.exact(*early);
        walk.exact(if *early > 0 { *early_size } else { 0 });
    }

    /// Passes by what the port has seen until `now`, in a walk of counts.
    fn count(&mut self, now: Time, walk: &mut Walk) {
        let (early, beyond) = (self.early_beyond(now), self.sends_beyond(now).min(self.stats.busy));
        // Of what waits the time until now.
        let waited = u128::from(self.waiting()) * u128::from(now.0);
        self.stats = self.stats.until_now(early, waited, beyond);
        let sent = self.stats.bytes;
        self.stats.recur(walk);
        let skipped = self.stats.bytes - sent;
        if skipped > 0 && self.special().is_some_and(|special| special.telemetry.is_some()) {
            self.special_mut().unseen += skipped;
        }
        self.stats = self.stats.with_what_comes(early, waited, beyond);
        match &mut self.rare {
            Some(rare) => {
                let Rare { losses, pause, .. } = &mut **rare;
                losses.recur(walk);
                let held = now.saturating_sub(pause.since);
                pause.paused += held;
                pause.recur(walk);
                pause.paused = pause.paused - held;
            }
            // There may be one by the time of the next walk.
            None => {
                Losses::default().recur(walk);
                PauseTime::default().recur(walk);
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build, of at most 31 queues each"
    )]
    pub(crate) fn new(index: usize, spec: PortSpec, rules: &Rules) -> Self {
        let cut_through = rules.cut_through.and_then(|head| spec.cut_through_from.map(|from| (from, head)));
        let mut port = Port {
            free_at: Time::ZERO,
            occupied: 0,
            paused: 0,
            queued: 0,
            watch_from: Time::ZERO,
            latency: spec.latency,
            pace: Pace::NONE,
            early: 0,
            early_size: 0,
            head: 0,
            first_queue: (index * rules.queues) as u32,
            channel: spec.channel,
            sending: 0,
            peer: spec.peer,
            stats: Traffic::default(),
            rare: None,
            to: spec.to,
            rank: spec.rank,
            sums: rules.sums_serialisation,
            stamps: false,
        };
        port.set_rate(spec.rate, head_at(spec.rate, cut_through));
        if !spec.changes.is_empty() {
            let mut rates = spec.changes;
            rates.reverse();
            port.special_mut().changes = Some(Box::new(Changes { rates, cut_through }));
        }
        if spec.faults.is_some() {
            port.special_mut().faults = spec.faults;
        }
        if spec.ecn.is_some() {
            port.special_mut().ecn = spec.ecn;
        }
        port
    }

    fn special(&self) -> Option<&Special> {
        self.rare.as_ref().and_then(|rare| rare.special.as_deref())
    }

    pub(crate) fn special_mut(&mut self) -> &mut Special {
        self.rare.get_or_insert_default().special.get_or_insert_default()
    }

    /// The same where it has something special.
    pub(crate) fn own_special_mut(&mut self) -> Option<&mut Special> {
        self.rare.as_mut().and_then(|rare| rare.special.as_deref_mut())
    }

    /// What goes wrong on the channel.
    #[inline(always)]
    pub(crate) fn faults(&self) -> Option<&ChannelFaults> {
        self.special().and_then(|special| special.faults.as_deref())
    }

    /// The same, to be asked for packets.
    pub(crate) fn faults_mut(&mut self) -> Option<&mut ChannelFaults> {
        self.own_special_mut().and_then(|special| special.faults.as_deref_mut())
    }

    /// What happened to packets here.
    pub(crate) fn losses(&mut self) -> &mut Losses {
        &mut self.rare.get_or_insert_default().losses
    }

    /// Number of one of its queues among those of all ports.
    #[inline(always)]
    pub(crate) fn number(&self, queue: usize) -> usize {
        self.first_queue as usize + queue
    }

    /// The first queue in which something waits; one that there is not if nothing does.
    #[inline(always)]
    pub(crate) fn first_occupied(&self) -> usize {
        (self.occupied | 1 << (u32::BITS - 1)).trailing_zeros() as usize
    }

    /// Queues that could send, as bits.
    #[inline(always)]
    pub(crate) fn ready(&self) -> u32 {
        self.occupied & !self.paused
    }

    /// The fewest picoseconds that a byte of what it sends may take from now on; 0 where that is not known.
    pub(crate) fn least_pace(&self) -> u64 {
        if self.watch_from == Time::MAX { u64::from(self.pace.take_whole(1)) } else { 0 }
    }

    /// A packet comes to wait in a queue.
    #[inline(always)]
    pub(crate) fn note_arrival(&mut self, size: u16, queue: usize, now: Time) {
        self.occupied |= 1 << queue;
        self.queued += u64::from(size);
        if self.queued > self.stats.max_queue {
            self.note_longest(now);
        }
        let weight = u128::from(size) * u128::from(now.0);
        self.stats.waiting = self.stats.waiting.wrapping_sub(weight);
    }

    /// A packet of `went` bytes that waited gives its place to one of `came` bytes.
    pub(crate) fn note_exchange(&mut self, went: u16, came: u16, now: Time) {
        self.queued = self.queued + u64::from(came) - u64::from(went);
        let weight = |size| u128::from(size) * u128::from(now.0);
        self.stats.waiting = self.stats.waiting.wrapping_add(weight(went)).wrapping_sub(weight(came));
    }

    /// A packet has been taken out of a queue to be sent at `free_at`.
    #[inline(always)]
    pub(crate) fn note_start(&mut self, size: u16, queue: usize, is_last: bool) {
        if is_last {
            self.occupied &= !(1 << queue);
        }
        self.queued -= u64::from(size);
        let weight = u128::from(size) * u128::from(self.free_at.0);
        self.stats.waiting = self.stats.waiting.wrapping_add(weight);
    }

    /// Decides on arrival whether a data packet that finds `queued` bytes in its queue is marked, where packets are marked on arrival.
    #[inline(always)]
    pub(crate) fn mark_arrival(
        &mut self,
        packet: &mut Packet,
        queued: u64,
        rules: &Rules,
        random: &mut impl Rng,
    ) {
        if let Some(ecn) = &rules.ecn
            && ecn.mark == Mark::Arrival
        {
            let mark = self.ecn(ecn).decide(queued, random);
            self.note_mark(packet, mark);
        }
    }

    /// Decides whether a data packet is marked as its transmission starts and leaves `left` bytes behind in its queue.
    ///
    /// Ports are advanced in whatever order is convenient, so each draws from a stream of its own.
    #[cold]
    #[inline(never)]
    pub(crate) fn mark_departure(&mut self, packet: &mut Packet, left: u64, rules: &Rules) {
        if let Some(ecn) = &rules.ecn
            && packet.is_data()
        {
            let mark = self.ecn(ecn).probability(left).comes_true(|| self.marking(rules.seed).next_u32());
            self.note_mark(packet, mark);
        }
    }

    /// What decides which packets are marked as they leave. Nothing is kept for a port that is never asked to draw.
    #[inline(always)]
    fn marking(&mut self, seed: u64) -> &mut Stream {
        if self.rare.as_ref().is_none_or(|rare| rare.marking.is_none()) {
            self.begin_marking(seed);
        }
        let stream = self.rare.as_mut().and_then(|rare| rare.marking.as_mut());
        stream.expect("it has begun")
    }

    #[cold]
    #[inline(never)]
    fn begin_marking(&mut self, seed: u64) {
        let stream = Node::Departures.stream(seed, u64::from(self.channel));
        self.rare.get_or_insert_default().marking = Some(Box::new(stream));
    }

    /// How it marks.
    fn ecn<'e>(&'e self, of_all: &'e Ecn) -> &'e Ecn {
        self.special().and_then(|special| special.ecn.as_ref()).unwrap_or(of_all)
    }

    fn note_mark(&mut self, packet: &mut Packet, mark: bool) {
        if mark {
            self.losses().marks += 1;
        }
        packet.flags.mark(mark);
    }

    /// Starts sending a packet, which `has_waited` in its queue or not, at `free_at`. Returns when it reaches the other end; `None` if a fault
    /// takes it.
    #[inline(always)]
    pub(crate) fn start(
        &mut self,
        packet: &mut Packet,
        has_waited: bool,
        contents: Contents,
    ) -> Option<Time> {
        let arrival = self.start_behind(packet, has_waited, contents)?;
        self.sending = packet.size;
        Some(arrival)
    }

    /// The same, but what is being sent stays what it is.
    #[inline(always)]
    fn start_behind(&mut self, packet: &mut Packet, has_waited: bool, contents: Contents) -> Option<Time> {
        let start = self.free_at;
        let (duration, head, serialisation) = if self.watch_from <= start {
            let Span { duration, head } = self.watch(packet, start, has_waited)?;
            (duration, head, u32::try_from(head.0).unwrap_or(u32::MAX))
        } else {
            let duration = self.pace.take_whole(packet.size);
            let head = duration.min(self.head);
            (Time(u64::from(duration)), Time(u64::from(head)), head)
        };
        self.free_at = start + duration;
        packet.ingress = self.peer;
        self.stats.bytes += u64::from(packet.size);
        self.stats.packets += 1;
        self.stats.busy += duration;
        debug_assert!(contents != Contents::Control || !packet.kind.is_data());
        if contents != Contents::Control && packet.kind.is_data() {
            let may_stamp = contents == Contents::Any;
            debug_assert!(may_stamp || !self.stamps);
            if may_stamp && self.stamps {
                self.stamp(packet, start);
            }
            packet.trail.cross();
            if self.sums {
                packet.serialisation = packet.serialisation.saturating_add(serialisation);
            }
        }
        Some(start + head + self.latency)
    }

    /// A packet that has been [started](Self::start).
    #[inline(always)]
    pub(crate) fn departure<'p>(&self, packet: &'p Packet, arrival: Time) -> Departure<'p> {
        Departure { channel: self.channel, to: self.to, arrival, packet }
    }

    /// How long a packet takes, whatever the rate.
    #[inline(always)]
    fn take(&self, size: u16) -> Span {
        match self.pace.take(size) {
            Some(duration) => {
                let head = duration.min(self.head);
                Span { duration: Time(u64::from(duration)), head: Time(u64::from(head)) }
            }
            None => self.take_at_odd_rate(size),
        }
    }

    /// The same where the rate is no pace.
    #[inline(never)]
    fn take_at_odd_rate(&self, size: u16) -> Span {
        let duration = self.rate().serialize(Bytes(u64::from(size)));
        let head = self.odd().map_or(Time::MAX, |odd| odd.head);
        Span { duration, head: duration.min(head) }
    }

    fn odd(&self) -> Option<&OddRate> {
        self.special().and_then(|special| special.odd.as_deref())
    }

    /// The channel's rate, as of the last look at its changes.
    #[inline]
    pub(crate) fn rate(&self) -> Rate {
        self.pace.rate().or_else(|| self.odd().map(|odd| odd.rate)).unwrap_or_default()
    }

    /// The next packet looks whether those after it must be looked at.
    fn set_rate(&mut self, rate: Rate, head: Time) {
        self.watch_from = Time::ZERO;
        if let Some(Special { telemetry: Some((_, said)), .. }) = self.own_special_mut() {
            *said = rate;
        }
        self.pace = Pace::of(rate).unwrap_or(Pace::NONE);
        self.head = u32::try_from(head.0).unwrap_or(u32::MAX);
        if self.pace == Pace::NONE {
            self.special_mut().odd = Some(Box::new(OddRate { rate, head }));
        }
    }

    /// Looks at what changes on the channel when a packet starts, and counts it where rates are estimated. Returns how long the packet takes;
    /// `None` if it is lost.
    #[cold]
    #[inline(never)]
    fn watch(&mut self, packet: &Packet, start: Time, has_waited: bool) -> Option<Span> {
        if let Some(rare) = &mut self.rare {
            if rare.drain.is_none()
                && let Some(special) = &mut rare.special
                && special.only_observes()
            {
                special.estimate(packet, start);
                return Some(self.take(packet.size));
            }
            return self.watch_rare(packet, start, has_waited);
        }
        self.watch_from = self.watches_rate_from();
        Some(self.take(packet.size))
    }

    /// From when on a packet that starts must be looked at, if only the rate asks for it.
    #[inline(always)]
    fn watches_rate_from(&self) -> Time {
        if self.pace.is_whole() { Time::MAX } else { Time::ZERO }
    }

    /// [`Self::watch`] where there is more than a rate. Not in the same function: the division of a rate that is not whole shall not pay for it.
    #[inline(never)]
    fn watch_rare(&mut self, packet: &Packet, start: Time, has_waited: bool) -> Option<Span> {
        self.change_rate(start);
        let (span, rate_from) = (self.take(packet.size), self.watches_rate_from());
        let drains = self.rare.as_ref()?.drain.is_some();
        let longest = if drains { self.take(u16::MAX).duration } else { Time::ZERO };
        let rare = self.rare.as_deref_mut()?;
        let end = start + span.duration;
        let drain_from =
            rare.drain.as_mut().map_or(Time::MAX, |drain| drain.note(start, end, longest, &self.stats));
        let Some(special) = rare.special.as_deref_mut() else {
            self.watch_from = drain_from.min(rate_from);
            return Some(span);
        };
        let Some(faults) = &mut special.faults else {
            let sees_all = special.observes_starts();
            let next = special.next_change().min(drain_from).min(rate_from);
            self.watch_from = if sees_all { Time::ZERO } else { next };
            special.estimate(packet, start);
            return Some(span);
        };
        let (end, is_signal) = (start + span.duration + self.latency, packet.is_of_the_link());
        match faults.judge(start, end, has_waited, is_signal) {
            Start::Arrives => {
                special.estimate(packet, start);
                return Some(span);
            }
            Start::IsCut => self.sending = 0,
            Start::LostOnTheWay => {
                // A cut ends the transmission.
                self.free_at = (start + span.duration).min(faults.next_cut());
                faults.sends_until = self.free_at;
                self.sending = packet.size;
                self.stats.bytes += u64::from(packet.size);
                self.stats.packets += 1;
                self.stats.busy += self.free_at - start;
                special.estimate(packet, start);
            }
            Start::Flush(cut) => {
                // The cut ended whatever was being sent, so the next packet starts at that instant: it has waited until then. A NIC that pulls its data has
                // let the time of the lost packet pass before.
                debug_assert!(start >= cut);
                faults.flush = Some(cut);
                self.sending = 0;
            }
        }
        rare.losses.lost += u64::from(!is_signal);
        None
    }

    /// From now on writes how it stands on data packets that start.
    pub(crate) fn set_telemetry(&mut self, telemetry: Arc<Telemetry>) {
        let rate = self.rate();
        self.special_mut().telemetry = Some((telemetry, rate));
        self.stamps = true;
    }

    /// Writes on a data packet that starts, and has been counted, how the port stood before.
    #[inline(never)]
    fn stamp(&self, packet: &Packet, start: Time) {
        if let Some(Special { telemetry: Some((telemetry, rate)), unseen, .. }) = self.special() {
            let Port { channel, queued, .. } = *self;
            let sent = self.stats.bytes - u64::from(packet.size) - unseen;
            telemetry.stamp(packet, Stamp { channel, queued, sent, at: start, rate: *rate });
        }
    }

    /// Lets the time of a packet pass that a fault took as it started at `at`: a NIC that pulls its data goes on at its pace.
    #[cold]
    pub(crate) fn pass(&mut self, packet: &Packet, at: Time) {
        self.free_at = at + self.take(packet.size).duration;
    }

    /// How much of what is being sent is sent after `end`.
    fn sends_beyond(&self, end: Time) -> Time {
        if self.sending == 0 {
            return Time::ZERO;
        }
        let faults = self.special().and_then(|special| special.faults.as_ref());
        let until = faults.map_or(Time::MAX, |faults| faults.sends_until);
        self.free_at.min(until).saturating_sub(end)
    }

    /// Applies the changes of the channel's rate that are due by `now`.
    #[inline(always)]
    pub(crate) fn change_rate(&mut self, now: Time) {
        if self.special().is_some_and(|special| special.changes.is_some()) {
            self.take_changes(now);
        }
    }

    #[cold]
    #[inline(never)]
    fn take_changes(&mut self, now: Time) {
        while let Some((rate, head)) = self.own_special_mut().and_then(|special| special.pop_change(now)) {
            self.set_rate(rate, head);
        }
    }

    /// Flow control pauses queues, given as bits.
    #[cold]
    pub(crate) fn pause(&mut self, queues: u32, now: Time, is_host: bool) {
        self.note_pauses(queues, u64::from(queues.count_ones()), now, is_host);
    }

    /// Flow control pauses a queue.
    #[inline(always)]
    pub(crate) fn pause_queue(&mut self, queue: usize, now: Time, is_host: bool) {
        self.note_pauses(1 << queue, 1, now, is_host);
    }

    // Cold, so that the loop that sends packets keeps more in registers. Callers pass the number of queues, as they mostly know it, and counting bits takes a dozen instructions.
    #[cold]
    #[inline(never)]
    fn note_pauses(&mut self, queues: u32, pauses: u64, now: Time, is_host: bool) {
        let Some(rare) = self.rare.as_deref_mut() else {
            return self.note_first_pauses(queues, pauses, now, is_host);
        };
        rare.pause.pauses += pauses;
        self.paused |= queues;
        self.note_pause_at_once(now, is_host);
    }

    /// [`Self::note_pauses`] of a port of which nothing rare was known.
    #[cold]
    #[inline(never)]
    fn note_first_pauses(&mut self, queues: u32, pauses: u64, now: Time, is_host: bool) {
        self.rare.get_or_insert_default();
        self.note_pauses(queues, pauses, now, is_host);
    }

    /// Notes whether flow control holds data back from now on.
    #[inline(never)]
    pub(crate) fn note_pause(&mut self, now: Time, is_host: bool) {
        self.note_pause_at_once(now, is_host);
    }

    /// [`Self::note_pause`] as part of what is a call already.
    #[inline(always)]
    pub(crate) fn note_pause_at_once(&mut self, now: Time, is_host: bool) {
        let holds_back = self.paused & (if is_host { u32::MAX } else { self.occupied }) != 0;
        // Nothing has been held back where nothing has been paused.
        let Some(Rare { pause, .. }) = self.rare.as_deref_mut() else { return };
        if holds_back {
            pause.since = pause.since.min(now);
        } else if pause.since != Time::MAX {
            pause.paused += now - pause.since;
            pause.since = Time::MAX;
        }
    }
}

impl Special {
    /// When the rate changes next.
    fn next_change(&self) -> Time {
        let next = self.changes.as_ref().and_then(|changes| changes.rates.last());
        next.map_or(Time::MAX, |&(from, _)| from)
    }

    /// The first change of the rate that has come by `now`, with what is a packet's head then. It is none to come any more.
    fn pop_change(&mut self, now: Time) -> Option<(Rate, Time)> {
        let Changes { rates, cut_through } = self.changes.as_deref_mut()?;
        let (_, rate) = rates.pop_if(|(from, _)| *from <= now)?;
        Some((rate, head_at(rate, *cut_through)))
    }

    /// Whether packets that start are counted in an estimate.
    #[inline(always)]
    fn observes_starts(&self) -> bool {
        self.estimator.as_ref().is_some_and(RateEstimator::counts_sent)
    }

    /// Whether that is all that is done with them.
    #[inline(always)]
    fn only_observes(&self) -> bool {
        self.observes_starts() && self.faults.is_none() && self.changes.is_none()
    }

    /// The estimator, if its estimate depends neither on what the port sends nor on changes of its rate.
    #[inline(always)]
    pub(crate) fn routed_estimator(&mut self) -> Option<&mut RateEstimator> {
        let Special { estimator: Some(estimator), changes: None, .. } = self else { return None };
        (!estimator.counts_sent()).then_some(estimator)
    }

    /// Counts a packet that starts, where rates are estimated.
    #[inline(always)]
    fn estimate(&mut self, packet: &Packet, start: Time) {
        if let Some(estimator) = &mut self.estimator {
            estimator.note(start, packet.size);
        }
    }
}

/// Most of a packet's serialisation that must be over for it to count as arrived, at a rate.
fn head_at(rate: Rate, cut_through: Option<(Rate, Bytes)>) -> Time {
    match cut_through {
        Some((from, head)) if rate >= from => rate.serialize(head),
        _ => Time::MAX,
    }
}

const _: () = assert!(size_of::<Port>() <= 128, "a large network consists of ports");
