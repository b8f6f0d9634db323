//! The receiving ends of a host's flows. Once all of a flow has arrived, only what was seen of it is kept until many together are handed
//! in; then its number of packets, which answers late duplicates, soon [in few bytes](FinishedFlows).

use netloom_fabric::{Packet, flow_number};
use netloom_record::{ReceiverRecord, SeriesWriter};
use netloom_routing::FlowKey;
use netloom_transport::{Receiver, Seen};
use netloom_units::memory::push_few;
use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Time, narrow, prefetch_whole};
use rustc_hash::FxHashMap;

use crate::host::finished::FinishedFlows;
use crate::host::free_slots::FreeSlots;
use crate::observe::flow_meter::FlowMeter;
use crate::observe::recorder::Recorder;

/// All receiving ends of a host.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    active: Vec<Active>,
    free: FreeSlots,
    /// Flows of which everything has arrived, in this order: of those handed in already, no more is known than their numbers of packets.
    handed_in: Vec<(FlowKey, u32)>,
    done: Vec<Done>,
    /// Those before, which have no place.
    finished: Option<Box<FinishedFlows>>,
    /// Where a flow is: among the active ones, or with [`DONE`] set among those that are done.
    places: FxHashMap<FlowKey, u32>,
    /// The place last looked up.
    last: Option<(FlowKey, u32)>,
}

const DONE: u32 = 1 << 31;

/// The place of a flow that is done.
fn done_place(index: usize) -> u32 {
    let place = narrow::<u32>(index);
    assert!(place < DONE, "a host receives fewer than 2³¹ flows that are kept in mind");
    place | DONE
}

/// How many flows that have been handed in keep their places at least.
const KEPT: usize = 64;

/// A flow of which not everything has arrived.
#[derive(Debug)]
pub(crate) struct Active {
    key: FlowKey,
    pub(crate) receiver: Receiver,
    /// Payload that arrived after the load.
    pub(crate) drained: u64,
    /// Only if something is to be measured over time.
    pub(crate) meter: Option<Box<FlowMeter>>,
}

impl Active {
    /// Counts what a packet has brought, where that is measured over time or comes after the load. `before`: what had been delivered, and how many packets waited.
    #[inline(never)]
    pub(crate) fn measure(
        &mut self,
        recorder: &Recorder,
        ends: (FlowKey, u32),
        now: Time,
        before: (u64, u32),
        packet: &Packet,
    ) {
        let (delivered, waited) = before;
        let bytes = self.receiver.seen.delivered - delivered;
        if now >= recorder.load_until {
            self.drained += bytes;
        }
        if let Some(meter) = &mut self.meter {
            meter.count(recorder, ends, now, bytes, waited);
            meter.count_packet(recorder, now, packet.sent, packet.trail.hops());
        }
    }
}

/// A flow of which everything has arrived, or what came even later.
#[derive(Clone, Debug)]
struct Done {
    key: FlowKey,
    /// Number of its packets.
    count: u32,
    path_changes: u32,
    completed: Time,
    delivered: u64,
    packets: u64,
    /// What flows that come in order through an idle network have nothing of.
    rare: Option<Box<Rare>>,
}

const _: () = assert!(size_of::<Done>() <= 48, "a run may have many millions of finished flows");

#[derive(Clone, Debug, Default)]
pub(crate) struct Rare {
    pub(crate) marks: u64,
    pub(crate) ooo_packets: u64,
    pub(crate) headers: u32,
    pub(crate) max_ood: u32,
    pub(crate) max_resequencing: u32,
    pub(crate) drained: u64,
    pub(crate) before_warm_up: u64,
}

impl Done {
    fn new(key: FlowKey, count: u32, seen: &Seen, rare: Rare) -> Self {
        let is_rare = rare.drained > 0 || rare.before_warm_up > 0;
        let mut done = Done {
            key,
            count,
            path_changes: 0,
            completed: Time::ZERO,
            delivered: 0,
            packets: 0,
            rare: is_rare.then(|| Box::new(rare)),
        };
        done.keep(seen);
        done
    }

    fn keep(&mut self, seen: &Seen) {
        let &Seen { completed, delivered, packets, path_changes, .. } = seen;
        let &Seen { headers, marks, ooo_packets, max_ood, max_resequencing, .. } = seen;
        self.completed = completed.unwrap_or(Time::MAX);
        (self.delivered, self.packets, self.path_changes) = (delivered, packets, path_changes);
        if marks + ooo_packets > 0 || headers.max(max_ood).max(max_resequencing) > 0 {
            let rare = self.rare.get_or_insert_default();
            (rare.marks, rare.ooo_packets, rare.headers) = (marks, ooo_packets, headers);
            (rare.max_ood, rare.max_resequencing) = (max_ood, max_resequencing);
        }
    }

    fn record(&self) -> ReceiverRecord {
        let measured = self.rare.as_ref().map_or((0, 0), |rare| (rare.before_warm_up, rare.drained));
        record(self.key, &self.seen(), measured)
    }

    fn seen(&self) -> Seen {
        let none = Rare::default();
        let rare = self.rare.as_deref().unwrap_or(&none);
        Seen {
            completed: Some(self.completed).filter(|&at| at != Time::MAX),
            delivered: self.delivered,
            packets: self.packets,
            headers: rare.headers,
            marks: rare.marks,
            ooo_packets: rare.ooo_packets,
            max_ood: rare.max_ood,
            max_resequencing: rare.max_resequencing,
            path_changes: self.path_changes,
        }
    }
}

/// What a host knows of a flow that it receives.
pub(crate) enum Place<'a> {
    /// Packets are still missing; the number identifies the flow until all have come.
    Active(u32, &'a mut Active),
    /// Everything has arrived.
    Done(Late<'a>),
}

/// Something that comes when everything has arrived.
pub(crate) struct Late<'a> {
    handed_in: &'a [(FlowKey, u32)],
    done: &'a mut Vec<Done>,
    key: FlowKey,
    place: usize,
}

impl Late<'_> {
    /// Takes it down: `see` gets what was seen of the flow, and the number of its packets. What was seen of one that has been handed in
    /// begins anew, and is added to the rest later.
    pub(crate) fn note<R>(self, see: impl FnOnce(&mut Seen, u32) -> R) -> R {
        let Late { handed_in, done, key, place } = self;
        let place = match handed_in.get(place) {
            Some(&(_, count)) => {
                done.push(Done::new(key, count, &Seen::default(), Rare::default()));
                done.len() - 1
            }
            None => place - handed_in.len(),
        };
        let done = &mut done[place];
        let mut seen = done.seen();
        let result = see(&mut seen, done.count);
        done.keep(&seen);
        result
    }
}

fn record(key: FlowKey, seen: &Seen, (before_warm_up, in_drain): (u64, u64)) -> ReceiverRecord {
    ReceiverRecord {
        src: key.src,
        flow: key.flow,
        completed: seen.completed,
        delivered: seen.delivered,
        before_warm_up,
        in_drain,
        packets: seen.packets,
        marks: seen.marks,
        ooo_packets: seen.ooo_packets,
        headers: seen.headers,
        max_ood: seen.max_ood,
        max_resequencing: seen.max_resequencing,
        path_changes: seen.path_changes,
    }
}

impl Recur for Active {
    fn recur(&mut self, walk: &mut Walk) {
        let Active { key, receiver, drained, meter } = self;
        walk.exact(key.src);
        walk.begin_flow(key.src, &mut key.flow);
        receiver.recur(flow_number(key.src, key.flow), walk);
        walk.sum(drained);
        walk.end_flow();
        if meter.is_some() {
            walk.refuse("what is measured of flows over time");
        }
    }
}

impl Receivers {
    /// [Recurs](Recur). Of flows of which all has come nothing follows, unless one more comes.
    pub(crate) fn recur(&mut self, recorder: &Recorder, walk: &mut Walk) {
        if walk.has_successors() {
            return self.recur_with_successors(recorder, walk);
        }
        let Receivers { active, free, handed_in, done, finished, places, last: _ } = self;
        walk.count(active.len());
        active.iter_mut().for_each(|active| active.recur(walk));
        free.recur(walk);
        walk.count(handed_in.len());
        walk.count(done.len());
        walk.count(finished.as_ref().map_or(0, |finished| finished.len()));
        walk.count(places.len());
    }

    /// What is kept of flows of which all has come in the period is kept again for those that succeed them, with a place of their own.
    fn recur_with_successors(&mut self, recorder: &Recorder, walk: &mut Walk) {
        let Receivers { active, free, handed_in: _, done, finished: _, places, last } = self;
        let before: Vec<FlowKey> = active.iter().map(|active| active.key).collect();
        walk.count(active.len());
        active.iter_mut().for_each(|active| active.recur(walk));
        free.recur(walk);
        let Some(new) = walk.log(done.len()) else { return };
        if walk.periods_to_move() == 0 {
            return done[new].iter().for_each(|done| walk.succeed_as_elsewhere(done.key.src, done.key.flow));
        }
        let in_use =
            |&(slot, key): &(usize, FlowKey)| places.get(&key).is_some_and(|&place| place as usize == slot);
        let in_use: Vec<(usize, FlowKey)> = before.into_iter().enumerate().filter(in_use).collect();
        in_use.iter().for_each(|(_, key)| _ = places.remove(key));
        places.extend(in_use.iter().map(|&(slot, _)| (active[slot].key, narrow::<u32>(slot))));
        *last = None;
        let ended = done[new].to_vec();
        for period in 1..=walk.periods_to_move() {
            for done in &ended {
                let mut later = done.clone();
                later.key.flow = walk.successor(later.key.src, later.key.flow, period);
                if later.completed != Time::MAX {
                    later.completed += walk.period() * period;
                }
                let place = done_place(self.handed_in.len() + self.done.len());
                self.places.insert(later.key, place);
                self.done.push(later);
            }
            // There may be many of them.
            self.hand_in_many(recorder);
        }
    }

    /// Where flows go of which everything has come: hands in what is known of all of them.
    pub(crate) fn hand_in_now(&mut self, rows: &SeriesWriter<ReceiverRecord>) {
        if !self.done.is_empty() {
            self.hand_in(rows);
        }
    }

    /// Prefetches the flow that came last: the next packet is mostly of the same one.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        if let Some((_, place)) = self.last
            && let Some(active) = self.active.get(place as usize)
        {
            prefetch_whole(active);
        }
    }

    /// The receivers of flows of which something is missing, in no order.
    pub(crate) fn under_way(&self) -> impl Iterator<Item = (FlowKey, &Receiver)> {
        let active = self.places.iter().filter(|(_, place)| *place & DONE == 0);
        active.map(|(&key, &place)| (key, &self.active[place as usize].receiver))
    }

    /// How many flows it has received at once so far.
    #[inline(always)]
    pub(crate) fn active_slots(&self) -> usize {
        self.active.len()
    }

    /// Prefetches a flow, unless it is the one that came last.
    #[inline]
    pub(crate) fn prefetch_flow(&self, key: FlowKey) {
        if self.last.is_none_or(|(last, _)| last != key)
            && let Some(&place) = self.places.get(&key)
            && let Some(active) = self.active.get(place as usize)
        {
            prefetch_whole(active);
        }
    }

    /// The flow's place; it gets one if it has none.
    #[inline(always)]
    pub(crate) fn place(&mut self, key: FlowKey, is_metered: bool) -> Place<'_> {
        // Packets of a flow come in runs, so the last place is nearly always the right one.
        let place = match self.last {
            Some((last, place)) if last == key => place,
            _ => self.look_up(key, is_metered),
        };
        match place & DONE {
            0 => Place::Active(place, &mut self.active[place as usize]),
            _ => {
                let place = (place & !DONE) as usize;
                Place::Done(Late { handed_in: &self.handed_in, done: &mut self.done, key, place })
            }
        }
    }

    fn look_up(&mut self, key: FlowKey, is_metered: bool) -> u32 {
        let Receivers { active, free, places, handed_in, done, finished, .. } = self;
        let place = *places.entry(key).or_insert_with(|| {
            if let Some(count) = finished.as_ref().and_then(|finished| finished.packets(key)) {
                // What comes now makes a row of its own.
                done.push(Done::new(key, count, &Seen::default(), Rare::default()));
                return done_place(handed_in.len() + done.len() - 1);
            }
            let meter = is_metered.then(Box::default);
            let new = Active { key, receiver: Receiver::default(), drained: 0, meter };
            match free.take() {
                Some(slot) => {
                    active[slot as usize] = new;
                    slot
                }
                None => {
                    push_few(active, new);
                    narrow::<u32>(active.len()) - 1
                }
            }
        });
        self.last = Some((key, place));
        place
    }

    /// The flow in a slot, which must be active.
    pub(crate) fn active(&mut self, slot: u32) -> &mut Active {
        &mut self.active[slot as usize]
    }

    /// Everything of the flow in the slot has arrived by now, `count` packets, when the clock of the workload shows this: the slot becomes free. Its meter is returned, to be handed in.
    pub(crate) fn finish(&mut self, slot: u32, count: u32, clock: Time) -> Option<Box<FlowMeter>> {
        let Active { key, receiver, drained, meter } = &mut self.active[slot as usize];
        let (key, drained, seen) = (*key, *drained, std::mem::take(receiver).seen);
        let seen = Seen { completed: Some(clock), ..seen };
        let before_warm_up = meter.as_ref().map_or(0, |meter| seen.delivered - meter.after_warm_up);
        let meter = meter.take();
        if self.done.len() == self.done.capacity() {
            // Doubling would leave half of the memory of many small flows unused.
            self.done.reserve_exact(1 + self.done.len() / 8);
        }
        let rare = Rare { drained, before_warm_up, ..Rare::default() };
        self.done.push(Done::new(key, count, &seen, rare));
        let place = done_place(self.handed_in.len() + self.done.len() - 1);
        self.places.insert(key, place);
        self.last = Some((key, place));
        self.free.give(slot);
        meter
    }

    /// Hands in what is known of flows of which everything has arrived, if there are many of them.
    #[inline]
    pub(crate) fn hand_in_many(&mut self, recorder: &Recorder) {
        if self.done.len() >= recorder.kept() {
            self.hand_in(&recorder.received);
        }
    }

    #[cold]
    fn hand_in(&mut self, rows: &SeriesWriter<ReceiverRecord>) {
        if self.handed_in.len() + self.done.len() > self.handed_in.capacity() {
            self.handed_in.reserve_exact(self.done.len() + self.handed_in.len() / 8);
        }
        self.handed_in.extend(self.done.iter().map(|done| (done.key, done.count)));
        rows.extend(self.done.drain(..).map(|done| done.record()));
        // So each run of flows is packed anew only a few times, and few flows have places.
        if self.handed_in.len() >= self.finished.as_ref().map_or(0, |finished| finished.runs() / 4).max(KEPT)
        {
            self.pack();
        }
    }

    /// Takes the places of all flows that have been handed in, which are all of which everything has arrived.
    fn pack(&mut self) {
        let finished = self.finished.get_or_insert_default();
        **finished = finished.with(std::mem::take(&mut self.handed_in));
        self.places.retain(|_, place| *place & DONE == 0);
        self.last = None;
    }

    /// The run is over at `end` for the host `id`: hands in what is known of all flows of which everything has arrived, and forgets them;
    /// of the others what has been measured.
    pub(crate) fn hand_in_all(&mut self, recorder: &Recorder, end: Time, id: u32) {
        recorder.received.extend(self.done.drain(..).map(|done| done.record()));
        (self.done, self.handed_in, self.finished, self.last) = (Vec::new(), Vec::new(), None, None);
        let places = std::mem::take(&mut self.places);
        self.places = places.into_iter().filter(|(_, place)| place & DONE == 0).collect();
        for (&key, &place) in &self.places {
            let Active { receiver, meter, .. } = &mut self.active[place as usize];
            if let Some(meter) = meter {
                meter.finish(recorder, end, receiver.resequencing(), (key, id));
            }
        }
    }

    /// Takes out what is known of a flow of which not everything has arrived.
    pub(crate) fn take(&mut self, key: FlowKey) -> Option<ReceiverRecord> {
        let place = self.places.remove(&key)?;
        let Active { receiver, drained, meter, .. } = &self.active[place as usize];
        let seen = &receiver.seen;
        let before_warm_up = meter.as_ref().map_or(0, |meter| seen.delivered - meter.after_warm_up);
        Some(record(key, seen, (before_warm_up, *drained)))
    }

    /// The least of the flows that have not been taken out.
    pub(crate) fn first_left(&self) -> Option<FlowKey> {
        self.places.keys().min().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_transport::{Arrival, Transport};

    fn receive(receivers: &mut Receivers, key: FlowKey, packets: u32, recorder: &Recorder) {
        let transport = Transport::default();
        for seq in 0..packets {
            let Place::Active(slot, active) = receivers.place(key, false) else { panic!("{key:?} is done") };
            let last = seq + 1 == packets;
            let arrival = Arrival { now: Time(1), seq, payload: 100, last, marked: false, path: 0 };
            active.receiver.on_data(&transport, arrival);
            if let Some(count) = active.receiver.finished() {
                assert!(last);
                receivers.finish(slot, count, Time(1));
                receivers.hand_in_many(recorder);
            }
        }
    }

    #[test]
    fn late_duplicates_are_answered_wherever_their_flow_is_kept() {
        let (mut receivers, recorder) = (Receivers::default(), Recorder::default());
        let flows: Vec<_> = (0..1000).map(|i| (FlowKey { src: i % 7, flow: i * 3 }, 1 + i % 4)).collect();
        for &(key, packets) in &flows {
            receive(&mut receivers, key, packets, &recorder);
        }
        let packed = receivers.finished.as_ref().map_or(0, |finished| finished.len());
        assert!(packed > 700 && receivers.places.len() == 1000 - packed, "{packed}");
        // Twice: what came late is handed in, too.
        for _ in 0..2 {
            for &(key, packets) in &flows {
                let Place::Done(late) = receivers.place(key, false) else { panic!("{key:?} begins anew") };
                late.note(|seen, count| {
                    seen.packets += 1;
                    assert_eq!(count, packets);
                });
                receivers.hand_in_many(&recorder);
            }
        }
        assert_eq!(receivers.finished.as_ref().map_or(0, |finished| finished.len()), 1000);
        receivers.hand_in_all(&recorder, Time(2), 7);
        let mut packets = vec![0; 3000];
        for half in recorder.received.finish().unwrap().to_vec().unwrap() {
            packets[half.flow as usize] += half.packets;
        }
        for (key, count) in flows {
            assert_eq!(packets[key.flow as usize], u64::from(count) + 2, "{key:?}");
        }
        assert_eq!(receivers.first_left(), None);
    }
}
