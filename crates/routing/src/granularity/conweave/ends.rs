//! ConWeave's two ends at a switch: flows that begin there are re-routed, flows that end there are put back into order.

use netloom_units::Time;
use rand::Rng;
use rustc_hash::FxHashMap;

use super::signals::{Stamp, Word};
use super::{ConWeave, Late};
use crate::granularity::flow_table::{FlowTable, Limits};
use crate::header::{FlowKey, FlowRef};
use crate::path_selector::edges::{Between, EdgeArrival, EdgeScheme, Flush, Stamped, Verdict};
use crate::path_selector::{Machine, SwitchPathSelector, SwitchPlace};
use crate::scheme::Routing;
use crate::selector::random::below;

/// What ConWeave did at a switch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ConWeaveCounts {
    /// Epochs that ended with a late reply.
    pub late: u64,
    /// Of these, those in which the flow took another path than its own.
    pub reroutes: u64,
    /// Queues of held packets that were released by their timer.
    pub flushes: u64,
}

/// Both ends of ConWeave at a switch.
#[derive(Clone, Debug)]
pub(crate) struct ConWeaveMachine {
    config: ConWeave,
    outgoing: FlowTable<Outgoing>,
    incoming: FlowTable<Incoming>,
    /// Until when the paths to a last switch are busy.
    busy: FxHashMap<(u32, u16), Time>,
    /// When the last switch may next call a path from a first switch's host busy.
    quiet: FxHashMap<(u32, u16), Time>,
    pub(crate) counts: ConWeaveCounts,
}

/// A flow at its first switch.
#[derive(Clone, Copy, Debug)]
struct Outgoing {
    label: u16,
    epoch: u8,
    phase: Phase,
    last: Time,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// A reply is expected until then.
    Probing(Time),
    /// The next packet begins an epoch.
    Answered,
    /// Re-routed; the tail has not been confirmed.
    Waiting,
}

/// A flow at its last switch.
#[derive(Clone, Copy, Debug, Default)]
struct Incoming {
    /// The latest epoch of which a packet has come.
    epoch: u8,
    /// How long the latest packet of that epoch on its old path had been under way.
    delay: Option<Time>,
    /// Whether the epoch's tail has come or is not waited for any more.
    is_settled: bool,
    held: Option<Hold>,
}

/// Re-routed packets that are held.
#[derive(Clone, Copy, Debug)]
struct Hold {
    /// When the first of them left its host, right behind the tail.
    sent: Time,
    until: Time,
}

impl ConWeaveMachine {
    pub(crate) fn new(config: &ConWeave, limits: Limits) -> Self {
        ConWeaveMachine {
            config: config.clone(),
            outgoing: FlowTable::of_switch(Limits { ageing: limits.ageing.max(config.inactive), ..limits }),
            incoming: FlowTable::of_switch(limits),
            busy: FxHashMap::default(),
            quiet: FxHashMap::default(),
            counts: ConWeaveCounts::default(),
        }
    }

    /// A data packet of a flow passes its first switch.
    #[expect(clippy::cast_possible_truncation, reason = "below the number of paths, at most 2¹⁶")]
    fn stamp(
        &mut self,
        flow: FlowKey,
        now: Time,
        between: &mut dyn FnMut() -> Between,
        mut random: &mut dyn Rng,
    ) -> Stamp {
        let flow = FlowRef::passing(flow);
        let ConWeaveMachine { config, outgoing, busy, counts, .. } = self;
        let deadline = |between: Between| now + between.base_rtt + config.reply_slack;
        let known = outgoing.see(flow, now);
        let Some(entry) = known.filter(|entry| now.saturating_sub(entry.last) <= config.inactive) else {
            let between = between();
            if !outgoing.has_room(flow, now) {
                // One path for all packets of the flow, which nobody watches.
                let mixed = (flow.key.src ^ flow.key.flow.rotate_left(16)).wrapping_mul(0x9e37_79b1);
                return Stamp { label: (mixed % between.paths) as u16, ..Stamp::default() };
            }
            let epoch = outgoing.get(flow).map_or(0, |entry| entry.epoch.wrapping_add(1));
            let drawn = below(between.paths as usize, &mut random) as u16;
            let label = pick(config, busy, between, None, now, &mut random).unwrap_or(drawn);
            outgoing.insert(
                flow,
                now,
                Outgoing { label, epoch, phase: Phase::Probing(deadline(between)), last: now },
            );
            return Stamp { label, epoch, asks: true, ..Stamp::default() };
        };
        entry.last = now;
        let (label, epoch) = (entry.label, entry.epoch);
        match entry.phase {
            Phase::Probing(until) if now <= until => Stamp { label, epoch, ..Stamp::default() },
            Phase::Waiting => Stamp { label, epoch, is_rerouted: true, ..Stamp::default() },
            Phase::Probing(_) => {
                counts.late += 1;
                let between = between();
                let present = (config.late == Late::OtherPath).then_some(label);
                let picked = pick(config, busy, between, present, now, &mut random);
                if picked.is_none() && config.late == Late::OtherPath {
                    return entry.begin(deadline(between));
                }
                counts.reroutes += u64::from(picked.is_some_and(|picked| picked != label));
                (entry.label, entry.phase) = (picked.unwrap_or(label), Phase::Waiting);
                Stamp { label, epoch, is_tail: true, ..Stamp::default() }
            }
            Phase::Answered => entry.begin(deadline(between())),
        }
    }

    /// A data packet of a flow, which left its host at `sent`, reaches its last switch.
    fn receive(&mut self, flow: FlowKey, stamp: Stamp, sent: Time, now: Time) -> Verdict {
        let flow = FlowRef::passing(flow);
        let ConWeaveMachine { config, incoming, .. } = self;
        let (verdict, waits_until) = match incoming.see(flow, now) {
            Some(entry) => entry.receive(config, stamp, sent, now),
            None => {
                incoming.insert(flow, now, Incoming { epoch: stamp.epoch, ..Incoming::default() });
                match incoming.get_mut(flow) {
                    Some(entry) => entry.receive(config, stamp, sent, now),
                    // A table that is full knows nothing of the flow: nothing is held.
                    None => return Verdict::Pass,
                }
            }
        };
        if let Some(until) = waits_until {
            incoming.keep_until(flow, until);
        }
        verdict
    }

    /// A timer of held packets fires.
    fn flush(&mut self, flow: FlowKey, now: Time) -> Flush {
        let entry = self.incoming.get_mut(FlowRef::passing(flow));
        match entry.and_then(|entry| entry.held.map(|hold| (entry, hold))) {
            Some((_, hold)) if hold.until > now => Flush::Later(hold.until),
            Some((entry, _)) => {
                (entry.held, entry.is_settled) = (None, true);
                self.counts.flushes += 1;
                Flush::Now
            }
            None => Flush::Over,
        }
    }

    /// A packet was marked on a path from a host's switch: whether that switch is to be notified.
    fn reports_busy(&mut self, src: u32, label: u16, now: Time) -> bool {
        let next = self.quiet.entry((src, label)).or_insert(Time::ZERO);
        let is_due = *next <= now;
        if is_due {
            *next = now + self.config.path_pause;
        }
        is_due
    }
}

impl Incoming {
    /// A data packet of the flow, which left its host at `sent`, comes. Says until when held packets wait, too, where that is news.
    #[inline(always)]
    #[expect(clippy::cast_possible_wrap, reason = "what is more than half a turn ahead is behind")]
    fn receive(&mut self, config: &ConWeave, stamp: Stamp, sent: Time, now: Time) -> (Verdict, Option<Time>) {
        // Epochs are counted on a circle.
        match stamp.epoch.wrapping_sub(self.epoch) as i8 {
            0 => {}
            ..0 => return (Verdict::Pass, None),
            _ if self.held.is_some() => return (Verdict::Hold, None),
            _ => *self = Incoming { epoch: stamp.epoch, ..Incoming::default() },
        }
        if !stamp.is_rerouted {
            let delay = now - sent;
            self.delay = Some(delay);
            if !stamp.is_tail {
                let extended = self.held.as_mut().map(|hold| {
                    hold.until = hold.until.max(hold.sent + delay + config.flush_slack);
                    hold.until
                });
                return (Verdict::Pass, extended);
            }
            self.is_settled = true;
            let verdict = if self.held.take().is_some() { Verdict::Release } else { Verdict::Pass };
            return (verdict, None);
        }
        if self.is_settled {
            return (Verdict::Pass, None);
        }
        if self.held.is_some() {
            return (Verdict::Hold, None);
        }
        // The tail left just before the first packet behind it.
        let expected = self.delay.map_or(now + config.flush_default, |delay| sent + delay);
        let until = (expected + config.flush_slack).max(now + Time(1));
        self.held = Some(Hold { sent, until });
        (Verdict::HoldUntil(until), Some(until))
    }
}

impl Outgoing {
    fn begin(&mut self, deadline: Time) -> Stamp {
        self.epoch = self.epoch.wrapping_add(1);
        self.phase = Phase::Probing(deadline);
        Stamp { label: self.label, epoch: self.epoch, asks: true, ..Stamp::default() }
    }
}

/// One of a few random paths that is neither busy nor the `present` one, if that is given.
#[expect(clippy::cast_possible_truncation, reason = "below the number of paths, at most 2¹⁶")]
fn pick(
    config: &ConWeave,
    busy: &FxHashMap<(u32, u16), Time>,
    between: Between,
    present: Option<u16>,
    now: Time,
    random: &mut impl Rng,
) -> Option<u16> {
    let mut draws = (0..config.samples).map(|_| below(between.paths as usize, random) as u16);
    draws.find(|&label| {
        Some(label) != present && busy.get(&(between.last, label)).is_none_or(|&until| until < now)
    })
}

impl Machine for ConWeaveMachine {
    fn at_switch(scheme: &Routing, place: SwitchPlace) -> Option<Self> {
        scheme.conweave().map(|config| ConWeaveMachine::new(config, place.limits))
    }

    /// Paths keep their labels: where there are fewer of them, a switch reads its digit of those that are left.
    fn on_new_routes(&mut self, _: &Routing) {}

    fn has_edges(scheme: &Routing) -> bool {
        scheme.conweave().is_some()
    }

    fn as_edge(&mut self) -> Option<&mut dyn EdgeScheme> {
        Some(self)
    }
}

impl EdgeScheme for ConWeaveMachine {
    fn at_first(
        &mut self,
        flow: FlowKey,
        now: Time,
        between: &mut dyn FnMut() -> Between,
        random: &mut dyn Rng,
    ) -> Stamped {
        let before = self.counts;
        let word = self.stamp(flow, now, between, random).bits();
        let was_late = self.counts.late > before.late;
        Stamped { word, moved: was_late.then_some(self.counts.reroutes > before.reroutes) }
    }

    fn at_last(&mut self, arrival: &EdgeArrival, signals: &mut Vec<u32>) -> Verdict {
        let &EdgeArrival { flow, word, sent, is_marked, now } = arrival;
        let stamp = Stamp::from_bits(word);
        if stamp.asks {
            signals.push(Word::Reply.bits(stamp));
        }
        if is_marked && self.reports_busy(flow.src, stamp.label, now) {
            signals.push(Word::Busy.bits(stamp));
        }
        if stamp.is_tail {
            signals.push(Word::Clear.bits(stamp));
        }
        self.receive(flow, stamp, sent, now)
    }

    fn on_signal(&mut self, flow: FlowKey, last: u32, signal: u32, now: Time) {
        let (word, epoch, label) = Word::from_bits(signal);
        if word == Word::Busy {
            self.busy.insert((last, label), now + self.config.path_pause);
            return;
        }
        let flow = FlowRef::passing(flow);
        let Some(entry) = self.outgoing.get_mut(flow).filter(|entry| entry.epoch == epoch) else { return };
        match (word, entry.phase) {
            (Word::Reply, Phase::Probing(until)) if now <= until => entry.phase = Phase::Answered,
            (Word::Clear, Phase::Waiting) => entry.phase = Phase::Answered,
            _ => {}
        }
    }

    fn on_hold_timer(&mut self, flow: FlowKey, now: Time) -> Flush {
        self.flush(flow, now)
    }
}

impl SwitchPathSelector {
    /// What ConWeave did here.
    pub fn conweave_counts(&self) -> Option<ConWeaveCounts> {
        self.machines.conweave.as_ref().map(|conweave| conweave.counts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::path_selector::edges::label_of;
    use rand_pcg::Pcg64Mcg;

    const FLOW: FlowKey = FlowKey { src: 3, flow: 1 };
    const BETWEEN: Between = Between { last: 9, paths: 2, base_rtt: Time(1000) };

    fn conweave() -> (ConWeaveMachine, Pcg64Mcg) {
        conweave_when(Late::OtherPath)
    }

    fn conweave_when(late: Late) -> (ConWeaveMachine, Pcg64Mcg) {
        let config = ConWeave {
            late,
            reply_slack: Time(500),
            path_pause: Time(2000),
            samples: 50,
            flush_slack: Time(100),
            flush_default: Time(10_000),
            inactive: Time(50_000),
        };
        (
            ConWeaveMachine::new(
                &config,
                Limits { ageing: Time(1_000_000), entries: usize::MAX, keeps_path: false },
            ),
            Pcg64Mcg::new(1),
        )
    }

    #[test]
    fn stamps_and_words_survive_the_wire() {
        let stamp = Stamp { label: 700, epoch: 255, asks: true, is_tail: false, is_rerouted: true };
        assert_eq!(Stamp::from_bits(stamp.bits()), stamp);
        assert_eq!(label_of(stamp.bits()), 700);
        for word in [Word::Reply, Word::Clear, Word::Busy] {
            assert_eq!(Word::from_bits(word.bits(stamp)), (word, 255, 700));
        }
    }

    #[test]
    fn a_reply_in_time_begins_another_epoch_on_the_same_path() {
        let (mut conweave, mut random) = conweave();
        let first = conweave.stamp(FLOW, Time(0), &mut || BETWEEN, &mut random);
        assert!(first.asks && first.epoch == 0);
        let second = conweave.stamp(FLOW, Time(1500), &mut || BETWEEN, &mut random);
        assert_eq!(second, Stamp { asks: false, ..first }, "the reply may come until 1500");
        conweave.on_signal(FLOW, 9, Word::Reply.bits(first), Time(1500));
        let third = conweave.stamp(FLOW, Time(1600), &mut || BETWEEN, &mut random);
        assert_eq!(third, Stamp { epoch: 1, ..first });
        assert_eq!(conweave.counts, ConWeaveCounts::default());
    }

    #[test]
    fn a_late_reply_sends_a_tail_and_then_re_routes_until_all_is_clear() {
        let (mut conweave, mut random) = conweave();
        let first = conweave.stamp(FLOW, Time(0), &mut || BETWEEN, &mut random);
        conweave.on_signal(FLOW, 9, Word::Reply.bits(first), Time(1501));
        let tail = conweave.stamp(FLOW, Time(1502), &mut || BETWEEN, &mut random);
        assert_eq!(tail, Stamp { is_tail: true, asks: false, ..first });
        for now in [1503, 4000, 9000] {
            let behind = conweave.stamp(FLOW, Time(now), &mut || BETWEEN, &mut random);
            assert!(behind.is_rerouted && behind.epoch == 0 && behind.label != first.label);
        }
        conweave.on_signal(FLOW, 9, Word::Clear.bits(tail), Time(9500));
        let next = conweave.stamp(FLOW, Time(9600), &mut || BETWEEN, &mut random);
        assert!(next.asks && next.epoch == 1 && !next.is_rerouted && next.label != first.label);
        assert_eq!(conweave.counts, ConWeaveCounts { late: 1, reroutes: 1, flushes: 0 });
    }

    #[test]
    fn busy_paths_are_avoided_for_a_while_and_without_another_the_flow_stays() {
        let (mut conweave, mut random) = conweave();
        let first = conweave.stamp(FLOW, Time(0), &mut || BETWEEN, &mut random);
        let other = Stamp { label: 1 - first.label, ..first };
        conweave.on_signal(FLOW, 9, Word::Busy.bits(other), Time(1000));
        let stays = conweave.stamp(FLOW, Time(3000), &mut || BETWEEN, &mut random);
        assert_eq!(stays, Stamp { epoch: 1, ..first }, "busy until 3000");
        let tail = conweave.stamp(FLOW, Time(4501), &mut || BETWEEN, &mut random);
        assert!(tail.is_tail);
        assert_eq!(conweave.counts, ConWeaveCounts { late: 2, reroutes: 1, flushes: 0 });
    }

    /// As in the public code: a late flow sends a tail and waits until that is confirmed also where all paths are busy, and its own may be drawn.
    #[test]
    fn a_late_flow_that_may_draw_any_path_waits_even_if_it_stays() {
        let (mut conweave, mut random) = conweave_when(Late::AnyPath);
        let first = conweave.stamp(FLOW, Time(0), &mut || BETWEEN, &mut random);
        for label in 0..2 {
            conweave.on_signal(FLOW, 9, Word::Busy.bits(Stamp { label, ..first }), Time(1000));
        }
        assert!(conweave.stamp(FLOW, Time(2000), &mut || BETWEEN, &mut random).is_tail);
        let behind = conweave.stamp(FLOW, Time(2001), &mut || BETWEEN, &mut random);
        assert!(behind.is_rerouted && behind.label == first.label);
        assert_eq!(conweave.counts, ConWeaveCounts { late: 1, reroutes: 0, flushes: 0 });
        // Its own path is the only one that is not busy any more.
        conweave.on_signal(FLOW, 9, Word::Clear.bits(first), Time(2500));
        let next = conweave.stamp(FLOW, Time(2600), &mut || BETWEEN, &mut random);
        assert!(next.asks && next.epoch == 1);
        conweave.on_signal(FLOW, 9, Word::Busy.bits(Stamp { label: 1 - first.label, ..first }), Time(4000));
        assert!(conweave.stamp(FLOW, Time(4500), &mut || BETWEEN, &mut random).is_tail);
        assert_eq!(conweave.stamp(FLOW, Time(4501), &mut || BETWEEN, &mut random).label, first.label);
        assert_eq!(conweave.counts.reroutes, 0);
    }

    #[test]
    fn a_flow_that_was_idle_begins_anew() {
        let (mut conweave, mut random) = conweave();
        conweave.stamp(FLOW, Time(0), &mut || BETWEEN, &mut random);
        conweave.stamp(FLOW, Time(2000), &mut || BETWEEN, &mut random);
        let again = conweave.stamp(FLOW, Time(52_001), &mut || BETWEEN, &mut random);
        assert!(again.asks && again.epoch == 1 && !again.is_rerouted);
    }

    #[test]
    fn a_flow_without_an_entry_keeps_one_path() {
        let (conweave, mut random) = conweave();
        let limits = Limits { ageing: Time(1_000_000), entries: 1, keeps_path: false };
        let mut conweave = ConWeaveMachine::new(&conweave.config, limits);
        conweave.stamp(FlowKey { src: 8, flow: 8 }, Time(0), &mut || BETWEEN, &mut random);
        let stamps = [10, 20, 9000].map(|now| conweave.stamp(FLOW, Time(now), &mut || BETWEEN, &mut random));
        assert!(stamps.iter().all(|&stamp| stamp == stamps[0] && !stamp.asks));
    }

    #[test]
    fn re_routed_packets_wait_for_their_tail() {
        let (mut conweave, _) = conweave();
        let old = Stamp { label: 0, epoch: 4, ..Stamp::default() };
        let (tail, new) = (Stamp { is_tail: true, ..old }, Stamp { label: 1, is_rerouted: true, ..old });
        assert_eq!(conweave.receive(FLOW, old, Time(0), Time(800)), Verdict::Pass);
        // The tail is expected 800 after the first packet behind it has left, and 100 of slack.
        assert_eq!(conweave.receive(FLOW, new, Time(1000), Time(1300)), Verdict::HoldUntil(Time(1900)));
        assert_eq!(conweave.receive(FLOW, new, Time(1100), Time(1400)), Verdict::Hold);
        assert_eq!(conweave.receive(FLOW, tail, Time(990), Time(1850)), Verdict::Release);
        assert_eq!(conweave.flush(FLOW, Time(1900)), Flush::Over);
        assert_eq!(conweave.receive(FLOW, new, Time(1200), Time(1860)), Verdict::Pass);
    }

    #[test]
    fn a_tail_that_does_not_come_is_waited_for_no_longer_than_expected() {
        let (mut conweave, _) = conweave();
        let new = Stamp { label: 1, is_rerouted: true, ..Stamp::default() };
        assert_eq!(conweave.receive(FLOW, new, Time(1000), Time(1300)), Verdict::HoldUntil(Time(11_400)));
        assert_eq!(conweave.flush(FLOW, Time(11_399)), Flush::Later(Time(11_400)));
        assert_eq!(conweave.flush(FLOW, Time(11_400)), Flush::Now);
        assert_eq!(conweave.receive(FLOW, new, Time(1100), Time(11_450)), Verdict::Pass);
        let tail = Stamp { is_tail: true, ..Stamp::default() };
        assert_eq!(conweave.receive(FLOW, tail, Time(990), Time(11_500)), Verdict::Pass);
        assert_eq!(conweave.counts.flushes, 1);
    }

    #[test]
    fn a_flow_is_not_forgotten_while_packets_of_it_are_held() {
        let (conweave, _) = conweave();
        let limits = Limits { ageing: Time(10), entries: usize::MAX, keeps_path: false };
        let mut conweave = ConWeaveMachine::new(&conweave.config, limits);
        let old = Stamp { label: 0, epoch: 4, ..Stamp::default() };
        let (tail, new) = (Stamp { is_tail: true, ..old }, Stamp { label: 1, is_rerouted: true, ..old });
        assert_eq!(conweave.receive(FLOW, new, Time(1000), Time(1300)), Verdict::HoldUntil(Time(11_400)));
        // The old path takes longer than was thought: 11,000, and 100 of slack.
        assert_eq!(conweave.receive(FLOW, old, Time(0), Time(11_000)), Verdict::Pass);
        assert_eq!(conweave.flush(FLOW, Time(11_400)), Flush::Later(Time(12_100)));
        assert_eq!(conweave.receive(FLOW, tail, Time(990), Time(12_090)), Verdict::Release);
    }

    /// The epoch before was fast, and that is why it ended: what it says of the path does not hold any more.
    #[test]
    fn only_packets_of_its_own_epoch_say_when_a_tail_is_expected() {
        let (mut conweave, _) = conweave();
        let before = Stamp { label: 0, epoch: 4, ..Stamp::default() };
        let new = Stamp { label: 1, epoch: 5, is_rerouted: true, ..before };
        conweave.receive(FLOW, before, Time(0), Time(800));
        assert_eq!(conweave.receive(FLOW, new, Time(1000), Time(1300)), Verdict::HoldUntil(Time(11_400)));
    }

    #[test]
    fn stragglers_of_an_earlier_epoch_pass_and_release_nothing() {
        let (mut conweave, _) = conweave();
        // 255, and 0 behind it.
        let (before, now) =
            (Stamp { epoch: 255, ..Stamp::default() }, Stamp { epoch: 0, ..Stamp::default() });
        conweave.receive(FLOW, before, Time(0), Time(800));
        conweave.receive(FLOW, now, Time(900), Time(1700));
        let new = Stamp { is_rerouted: true, ..now };
        assert_eq!(conweave.receive(FLOW, new, Time(1000), Time(1300)), Verdict::HoldUntil(Time(1900)));
        let late = Stamp { is_tail: true, ..before };
        assert_eq!(conweave.receive(FLOW, late, Time(100), Time(1400)), Verdict::Pass);
        assert_eq!(
            conweave.receive(FLOW, Stamp { is_rerouted: true, ..before }, Time(100), Time(1450)),
            Verdict::Pass
        );
        assert_eq!(conweave.flush(FLOW, Time(1900)), Flush::Now);
    }

    #[test]
    fn a_later_epoch_does_not_overtake_what_is_held() {
        let (mut conweave, _) = conweave();
        let old = Stamp { epoch: 4, ..Stamp::default() };
        let new = Stamp { is_rerouted: true, ..old };
        assert_eq!(conweave.receive(FLOW, new, Time(1000), Time(1300)), Verdict::HoldUntil(Time(11_400)));
        let next = Stamp { epoch: 5, ..Stamp::default() };
        assert_eq!(conweave.receive(FLOW, next, Time(3000), Time(3500)), Verdict::Hold);
        let tail = Stamp { is_tail: true, ..old };
        assert_eq!(conweave.receive(FLOW, tail, Time(900), Time(4000)), Verdict::Release);
        assert_eq!(conweave.receive(FLOW, next, Time(3600), Time(4100)), Verdict::Pass);
    }

    #[test]
    fn packets_of_the_old_path_that_take_longer_put_the_flush_off() {
        let (mut conweave, _) = conweave();
        let old = Stamp { label: 0, epoch: 4, ..Stamp::default() };
        let new = Stamp { label: 1, is_rerouted: true, ..old };
        conweave.receive(FLOW, old, Time(0), Time(800));
        assert_eq!(conweave.receive(FLOW, new, Time(1000), Time(1300)), Verdict::HoldUntil(Time(1900)));
        // 1700 under way now: the tail is expected at 2700, and 100 of slack.
        conweave.receive(FLOW, old, Time(100), Time(1800));
        assert_eq!(conweave.flush(FLOW, Time(1900)), Flush::Later(Time(2800)));
        assert_eq!(conweave.flush(FLOW, Time(2800)), Flush::Now);
    }

    #[test]
    fn a_path_is_called_busy_once_per_pause() {
        let (mut conweave, _) = conweave();
        let calls = [0, 100, 1999, 2000, 2001].map(|now| conweave.reports_busy(3, 1, Time(now)));
        assert_eq!(calls, [true, false, false, true, false]);
    }
}
