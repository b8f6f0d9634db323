//! The receiving ends of a host's flows. Once all of a flow has arrived, only what was seen of it is kept, and that answers late
//! duplicates.

use netloom_routing::FlowKey;
use netloom_transport::{Receiver, Seen};
use netloom_units::Time;
use netloom_units::memory::push_few;
use rustc_hash::FxHashMap;

use crate::meter::Meter;

/// All receiving ends of a host.
#[derive(Debug, Default)]
pub(crate) struct Receivers {
    active: Vec<Active>,
    free: Vec<u32>,
    done: Vec<Done>,
    /// Where a flow is: among the active ones, or with [`DONE`] set among those that are done.
    places: FxHashMap<FlowKey, u32>,
    /// The place last looked up.
    last: Option<(FlowKey, u32)>,
}

const DONE: u32 = 1 << 31;

/// A flow of which not everything has arrived.
#[derive(Debug)]
pub(crate) struct Active {
    key: FlowKey,
    pub(crate) receiver: Receiver,
    /// Payload that arrived after the load.
    pub(crate) drained: u64,
    /// Only if something is to be measured over time.
    pub(crate) meter: Option<Box<Meter>>,
}

/// A flow of which everything has arrived.
#[derive(Debug)]
pub(crate) struct Done {
    /// Number of its packets.
    count: u32,
    path_changes: u32,
    completed: Time,
    delivered: u64,
    packets: u64,
    /// What flows that come in order through an idle network have nothing of.
    rare: Option<Box<Rare>>,
}

const _: () = assert!(size_of::<Done>() <= 40, "a run may have many millions of finished flows");

#[derive(Debug, Default)]
struct Rare {
    marks: u64,
    ooo_packets: u64,
    headers: u32,
    max_ood: u32,
    max_resequencing: u32,
    drained: u64,
    meter: Option<Box<Meter>>,
}

impl Done {
    fn new(count: u32, seen: &Seen, drained: u64, meter: Option<Box<Meter>>) -> Self {
        let mut done = Done {
            count,
            path_changes: 0,
            completed: Time::ZERO,
            delivered: 0,
            packets: 0,
            rare: (drained > 0 || meter.is_some())
                .then(|| Box::new(Rare { drained, meter, ..Rare::default() })),
        };
        done.keep(seen);
        done
    }

    /// Takes down what comes late: `see` gets what was seen of the flow, and the number of its packets.
    pub(crate) fn note<R>(&mut self, see: impl FnOnce(&mut Seen, u32) -> R) -> R {
        let mut seen = self.seen();
        let result = see(&mut seen, self.count);
        self.keep(&seen);
        result
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
    Done(&'a mut Done),
}

/// What is known of a flow at its receiver when a run is over.
#[derive(Debug)]
pub(crate) struct Reception {
    pub(crate) seen: Seen,
    /// Packets that wait for one with a lower number.
    pub(crate) resequencing: u32,
    /// Payload that arrived after the load.
    pub(crate) drained: u64,
    pub(crate) meter: Option<Box<Meter>>,
}

impl Receivers {
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
            _ => Place::Done(&mut self.done[(place & !DONE) as usize]),
        }
    }

    fn look_up(&mut self, key: FlowKey, is_metered: bool) -> u32 {
        let Receivers { active, free, places, .. } = self;
        let place = *places.entry(key).or_insert_with(|| {
            let meter = is_metered.then(Box::default);
            let new = Active { key, receiver: Receiver::default(), drained: 0, meter };
            match free.pop() {
                Some(slot) => {
                    active[slot as usize] = new;
                    slot
                }
                None => {
                    push_few(active, new);
                    active.len() as u32 - 1
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

    /// Everything of the flow in the slot has arrived, `count` packets: the slot becomes free.
    pub(crate) fn finish(&mut self, slot: u32, count: u32) {
        let Active { key, receiver, drained, meter } = &mut self.active[slot as usize];
        let (key, seen) = (*key, std::mem::take(receiver).seen);
        let meter = meter.take().filter(|meter| !meter.is_spent(seen.delivered));
        if self.done.len() == self.done.capacity() {
            // Doubling would leave half of the memory of many small flows unused.
            self.done.reserve_exact(1 + self.done.len() / 8);
        }
        self.done.push(Done::new(count, &seen, *drained, meter));
        let place = (self.done.len() as u32 - 1) | DONE;
        self.places.insert(key, place);
        self.last = Some((key, place));
        self.free.push(slot);
    }

    /// Takes out what is known of a flow.
    pub(crate) fn take(&mut self, key: FlowKey) -> Option<Reception> {
        let place = self.places.remove(&key)?;
        Some(match place & DONE {
            0 => {
                let Active { receiver, drained, meter, .. } = &mut self.active[place as usize];
                let resequencing = receiver.resequencing();
                Reception { seen: receiver.seen, resequencing, drained: *drained, meter: meter.take() }
            }
            _ => {
                let done = &mut self.done[(place & !DONE) as usize];
                let (drained, meter) =
                    done.rare.as_mut().map_or((0, None), |rare| (rare.drained, rare.meter.take()));
                Reception { seen: done.seen(), resequencing: 0, drained, meter }
            }
        })
    }

    /// The least of the flows that have not been taken out.
    pub(crate) fn first_left(&self) -> Option<FlowKey> {
        self.places.keys().min().copied()
    }
}
