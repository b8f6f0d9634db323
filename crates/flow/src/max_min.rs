//! Max-min fair rates by progressive filling (Bertsekas and Gallager, *Data Networks*, section 6.5.2), kept up to date as flows come and go.
//!
//! All flows begin at rate zero, and their rates rise together, by the *level*. A link that is full closes: its flows keep the rate that they have reached.
//! A flow that divides among several links in fixed parts takes its part of its rate from each, and is as fast as the first of them that closes lets it be.
//! One with alternatives keeps what it has on one of which a link closes, and takes all that its rate still rises by from the open ones, and from its detours when
//! no other one is open. The level at which a link closes is the only thing about it that a flow's rate depends on.
//!
//! So when flows come or go, not all is filled again. Filling begins with the flows concerned, while all others keep what they have. If a link then
//! closes at another level than before, those of its flows that had reached the lower of the two levels depend on it: they are filled again, too,
//! together with the first ones, until no link's level differs from what the remaining flows have seen. What comes out is what filling everything
//! gives, up to rounding; a test compares them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::rc::Rc;

use netloom_units::narrow;

use crate::split::{Alternative, Split};

/// A link, or several that are always loaded alike, by number.
pub(crate) type Resource = u32;

/// Levels that differ by less, in parts of themselves, are one: floating-point sums of up to millions of terms are as exact.
const ALIKE: f64 = 1e-9;

/// Flows on links.
#[derive(Debug, Default)]
pub(crate) struct MaxMin {
    links: Vec<Link>,
    flows: Vec<Flow>,
    free: Vec<u32>,
    /// Flows to fill at the next update.
    fresh: Vec<u32>,
    /// Links that a flow has left since the last update.
    dirty: Vec<Resource>,
    work: Work,
}

#[derive(Debug, Default)]
struct Link {
    /// Bit/s.
    capacity: f64,
    /// Flows, and as which of their resources they have this one.
    users: Vec<(u32, u32)>,
    /// At which level it is full; infinite if it is not.
    level: f64,
    /// Bit/s that cross it.
    used: f64,
}

#[derive(Debug, Default)]
struct Flow {
    /// None after its end.
    split: Option<Rc<Split>>,
    /// The links of its two hosts.
    ends: [Resource; 2],
    /// Per resource, its place among that one's users.
    places: Vec<u32>,
    reached: Reached,
}

/// How far a flow has risen.
#[derive(Clone, Debug, Default)]
struct Reached {
    /// The level: its rate in bit/s.
    rate: f64,
    /// From which level on it takes detours; none if it does not.
    turn: Option<f64>,
    /// Per alternative, where there are several.
    alternatives: Vec<Taken>,
}

/// What a flow takes of an alternative.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// Bit/s.
    rate: f64,
    /// Of each bit/s by which the level rises.
    share: f64,
    /// The level at which a link of it closed; none if none has.
    closed: Option<f64>,
}

impl Reached {
    /// The rate of an alternative.
    fn rate_of(&self, alternative: usize) -> f64 {
        self.alternatives.get(alternative).map_or(self.rate, |taken| taken.rate)
    }
}

impl Flow {
    /// A resource, and the part of the flow that crosses it.
    fn entry(&self, entry: usize) -> (Resource, f64) {
        match (entry.checked_sub(2), &self.split) {
            (Some(entry), Some(split)) => (split.resources[entry], split.weights[entry]),
            _ => (self.ends[entry], 1.0),
        }
    }

    /// The alternative to which an entry belongs; none for the links of its hosts.
    fn alternative(&self, entry: usize) -> Option<usize> {
        let of = self.split.as_ref().and_then(|split| split.of.get(entry.checked_sub(2)?));
        (entry >= 2).then(|| of.map_or(0, |&of| of as usize))
    }

    /// What crosses an entry's resource in bit/s if the flow has risen so far.
    fn used(&self, entry: usize, reached: &Reached) -> f64 {
        let rate = self.alternative(entry).map_or(reached.rate, |alternative| reached.rate_of(alternative));
        self.entry(entry).1 * rate
    }

    /// The level from which on it does not matter when that entry's resource closes; none if it never does.
    fn depends(&self, entry: usize) -> Option<f64> {
        let Reached { rate, turn, alternatives } = &self.reached;
        let taken = self.alternative(entry).and_then(|number| Some((number, alternatives.get(number)?)));
        let Some((number, taken)) = taken else { return Some(*rate) };
        let closed = taken.closed.unwrap_or(*rate);
        match self.split.as_ref().is_some_and(|split| split.alternatives[number].is_detour) {
            true => turn.map(|turn| closed.max(turn)),
            false => Some(closed),
        }
    }

    fn len(&self) -> usize {
        2 + self.split.as_ref().map_or(0, |split| split.resources.len())
    }

    fn entries(&self) -> impl Iterator<Item = (Resource, f64)> + '_ {
        (0..self.len()).map(|entry| self.entry(entry))
    }
}

/// What filling needs while it lasts; kept so that it is not allocated each time.
#[derive(Debug, Default)]
struct Work {
    /// The flows that are filled, in the order in which they were added.
    filled: Vec<Filled>,
    /// Per flow, its place in `filled` plus 1, or 0.
    place_of: Vec<u32>,
    /// The links of these flows.
    touched: Vec<Resource>,
    /// Per link, its state; only those of touched links mean something.
    states: Vec<State>,
    heap: Closing,
}

/// A flow that is filled.
#[derive(Debug)]
struct Filled {
    id: u32,
    /// Its rate as long as it rises is that at which its shares last changed.
    reached: Reached,
    is_rising: bool,
}

impl Filled {
    /// The level has risen to one at which an entry's link is full.
    fn meet_full(&mut self, flow: &Flow, entry: usize, level: f64, states: &mut [State], heap: &mut Closing) {
        if !self.is_rising {
            return;
        }
        let mut change = |entries: Range<usize>, from: f64, to: f64| {
            for (resource, weight) in entries.map(|entry| flow.entry(entry)) {
                let state = &mut states[resource as usize];
                state.change(level, weight * from, weight * to);
                if to > from {
                    state.queue(resource, heap);
                }
            }
        };
        let alternatives = flow.split.as_ref().map_or(&[][..], |split| &split.alternatives);
        if alternatives.is_empty() {
            (self.is_rising, self.reached.rate) = (false, level);
            change(0..flow.len(), 1.0, 0.0);
            return;
        }
        let alternative = flow.alternative(entry);
        if let Some(alternative) = alternative {
            let taken = &mut self.reached.alternatives[alternative];
            if taken.closed.is_some() {
                return;
            }
            taken.closed = Some(level);
            if taken.share == 0.0 {
                return;
            }
        }
        let more = level - self.reached.rate;
        self.reached.rate = level;
        self.reached.alternatives.iter_mut().for_each(|taken| taken.rate += taken.share * more);
        let entries = |of: &Alternative| of.resources.start + 2..of.resources.end + 2;
        let goes_on =
            alternative.is_some() && self.share(alternatives, |of, from, to| change(entries(of), from, to));
        if !goes_on {
            self.is_rising = false;
            // Those of its alternatives, too, if it stops at a link of its hosts.
            for (of, taken) in alternatives.iter().zip(&mut self.reached.alternatives) {
                let share = std::mem::take(&mut taken.share);
                if share > 0.0 {
                    change(entries(of), share, 0.0);
                }
            }
            change(0..2, 1.0, 0.0);
        }
    }

    /// Divides what is to come among the alternatives that are open; `change` is told of each whose share is another one. Whether there are some.
    fn share(
        &mut self,
        alternatives: &[Alternative],
        mut change: impl FnMut(&Alternative, f64, f64),
    ) -> bool {
        let Reached { rate, turn, alternatives: all } = &mut self.reached;
        let part = |is_detour: bool, of: &Alternative, taken: &Taken| match taken.closed {
            None if of.is_detour == is_detour => of.part,
            _ => 0.0,
        };
        let sum = |is_detour: bool, all: &[Taken]| -> f64 {
            alternatives.iter().zip(all).map(|(of, taken)| part(is_detour, of, taken)).sum()
        };
        let (mut is_detour, mut open) = (false, sum(false, all));
        if open == 0.0 {
            turn.get_or_insert(*rate);
            (is_detour, open) = (true, sum(true, all));
        }
        for (of, taken) in alternatives.iter().zip(all) {
            let part = part(is_detour, of, taken);
            let to = if part > 0.0 { part / open } else { 0.0 };
            let from = std::mem::replace(&mut taken.share, to);
            if from != to {
                change(of, from, to);
            }
        }
        open > 0.0
    }

    /// Begins at rate 0.
    fn begin(&mut self, flow: &Flow) {
        let alternatives = flow.split.as_ref().map_or(&[][..], |split| &split.alternatives);
        self.is_rising = true;
        (self.reached.rate, self.reached.turn) = (0.0, None);
        if !alternatives.is_empty() {
            self.reached.alternatives.clear();
            self.reached.alternatives.resize(alternatives.len(), Taken::default());
            self.share(alternatives, |_, _, _| ());
        }
    }
}

/// Links by the levels at which they close, or below.
type Closing = BinaryHeap<Reverse<Closes>>;

/// A link while flows are filled.
#[derive(Debug, Default)]
struct State {
    is_touched: bool,
    /// The filled flows, by their places, and as which of their resources they have it.
    members: Vec<(u32, u32)>,
    /// Bit/s that are free at the level `since`.
    free: f64,
    since: f64,
    /// Bit/s that more level takes, per bit/s.
    weight: f64,
    /// How many flows rise on it.
    rising: usize,
    version: u32,
    /// The lowest level at which it stands in the heap; infinite if it does not.
    queued: f64,
    /// Infinite while it is not full.
    level: f64,
}

impl State {
    /// At which level it closes, as things are.
    fn closes_at(&self) -> Option<f64> {
        (self.rising > 0 && self.weight > 0.0).then(|| self.since + (self.free / self.weight).max(0.0))
    }

    /// At a level, what a flow takes of each bit/s that it rises becomes another weight; 0: it does not rise here.
    fn change(&mut self, level: f64, from: f64, to: f64) {
        self.free -= self.weight * (level - self.since);
        self.since = level;
        self.weight += to - from;
        self.rising = self.rising + usize::from(to > 0.0) - usize::from(from > 0.0);
        self.version += 1;
    }

    /// Puts it into the heap, unless it stands there at no higher level. It may close later than it stands there, never earlier.
    fn queue(&mut self, resource: Resource, heap: &mut Closing) {
        if let Some(level) = self.closes_at().filter(|&level| level < self.queued) {
            self.queued = level;
            heap.push(Reverse(Closes::new(level, resource, self.version)));
        }
    }
}

/// A link, the level at which it closes, and its version then, in the order of (level, link, version).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Closes(u128);

impl Closes {
    fn new(level: f64, resource: Resource, version: u32) -> Self {
        debug_assert!(level >= 0.0, "bits have the order of numbers that are not negative");
        Closes(u128::from(level.to_bits()) << 64 | u128::from(resource) << 32 | u128::from(version))
    }

    #[expect(clippy::cast_possible_truncation, reason = "each takes out its own bits")]
    fn parts(self) -> (f64, Resource, u32) {
        (f64::from_bits((self.0 >> 64) as u64), (self.0 >> 32) as u32, self.0 as u32)
    }
}

fn alike(a: f64, b: f64) -> bool {
    a == b || (a.is_finite() && b.is_finite() && (a - b).abs() <= ALIKE * a.abs().max(b.abs()))
}

impl MaxMin {
    /// Links of these capacities in bit/s, without flows.
    pub(crate) fn new(capacities: Vec<f64>) -> Self {
        let link = |capacity| Link { capacity, level: f64::INFINITY, ..Link::default() };
        let links: Vec<Link> = capacities.into_iter().map(link).collect();
        let mut work = Work::default();
        work.states.resize_with(links.len(), State::default);
        MaxMin { links, work, ..MaxMin::default() }
    }

    /// A flow between the links of its hosts. Its rate is known after the next update.
    pub(crate) fn add(&mut self, ends: [Resource; 2], split: Rc<Split>) -> u32 {
        let id = self.free.pop().unwrap_or_else(|| {
            self.flows.push(Flow::default());
            self.work.place_of.push(0);
            narrow::<u32>(self.flows.len()) - 1
        });
        let flow = &mut self.flows[id as usize];
        (flow.split, flow.ends, flow.reached) = (Some(split), ends, Reached::default());
        flow.places.clear();
        for entry in 0..flow.len() {
            let users = &mut self.links[flow.entry(entry).0 as usize].users;
            flow.places.push(narrow::<u32>(users.len()));
            users.push((id, narrow::<u32>(entry)));
        }
        self.fresh.push(id);
        id
    }

    /// A flow ends.
    pub(crate) fn remove(&mut self, id: u32) {
        for entry in 0..self.flows[id as usize].len() {
            let flow = &self.flows[id as usize];
            let ((resource, _), place) = (flow.entry(entry), flow.places[entry] as usize);
            let (used, matters) = (flow.used(entry, &flow.reached), flow.depends(entry).is_some());
            let link = &mut self.links[resource as usize];
            link.users.swap_remove(place);
            link.used = if link.users.is_empty() { 0.0 } else { (link.used - used).max(0.0) };
            if let Some(&(moved, of)) = link.users.get(place) {
                self.flows[moved as usize].places[of as usize] = narrow::<u32>(place);
            }
            if matters {
                self.dirty.push(resource);
            }
        }
        self.flows[id as usize].split = None;
        self.fresh.retain(|&fresh| fresh != id);
        self.free.push(id);
    }

    /// The rate of a flow in bit/s.
    pub(crate) fn rate(&self, id: u32) -> f64 {
        self.flows[id as usize].reached.rate
    }

    /// The links of a flow.
    pub(crate) fn resources(&self, id: u32) -> impl Iterator<Item = Resource> + '_ {
        self.flows[id as usize].entries().map(|(resource, _)| resource)
    }

    /// The links of a flow, and what it takes of each in bit/s.
    pub(crate) fn taken(&self, id: u32) -> impl Iterator<Item = (Resource, f64)> + '_ {
        let flow = &self.flows[id as usize];
        (0..flow.len()).map(|entry| (flow.entry(entry).0, flow.used(entry, &flow.reached)))
    }

    /// What crosses a link, in bit/s.
    pub(crate) fn used(&self, resource: Resource) -> f64 {
        self.links[resource as usize].used
    }

    /// The capacity of a link in bit/s.
    pub(crate) fn capacity(&self, resource: Resource) -> f64 {
        self.links[resource as usize].capacity
    }

    /// Whether something has happened since the last update.
    pub(crate) fn is_stale(&self) -> bool {
        !self.fresh.is_empty() || !self.dirty.is_empty()
    }

    /// Brings all rates up to date. `changes` is told of the links on which something else flows from now on, before that is so; returned are the flows whose rate
    /// may be another one.
    pub(crate) fn update(&mut self, mut changes: impl FnMut(Resource, &Self)) -> Vec<u32> {
        for resource in std::mem::take(&mut self.dirty) {
            let level = self.links[resource as usize].level;
            if level < f64::INFINITY {
                self.join_from(resource, level);
                self.links[resource as usize].level = f64::INFINITY;
            }
        }
        for flow in std::mem::take(&mut self.fresh) {
            self.join(flow);
        }
        loop {
            self.fill();
            let before = self.work.filled.len();
            for place in 0..self.work.touched.len() {
                let resource = self.work.touched[place];
                let (old, new) =
                    (self.links[resource as usize].level, self.work.states[resource as usize].level);
                if !alike(old, new) {
                    self.join_from(resource, old.min(new));
                }
            }
            if self.work.filled.len() == before {
                break;
            }
        }
        self.settle(&mut changes)
    }

    /// Has a flow filled again.
    fn join(&mut self, id: u32) {
        let Work { filled, place_of, touched, states, .. } = &mut self.work;
        if place_of[id as usize] > 0 {
            return;
        }
        let place = narrow::<u32>(filled.len());
        filled.push(Filled { id, reached: Reached::default(), is_rising: true });
        place_of[id as usize] = place + 1;
        for (entry, (resource, _)) in (0..).zip(self.flows[id as usize].entries()) {
            let state = &mut states[resource as usize];
            if !std::mem::replace(&mut state.is_touched, true) {
                state.members.clear();
                touched.push(resource);
            }
            state.members.push((place, entry));
        }
    }

    /// Has the flows of a link filled again that had reached a level.
    fn join_from(&mut self, resource: Resource, level: f64) {
        let least = level * (1.0 - ALIKE);
        for place in 0..self.links[resource as usize].users.len() {
            let (flow, entry) = self.links[resource as usize].users[place];
            if self.flows[flow as usize].depends(entry as usize).is_some_and(|level| level >= least) {
                self.join(flow);
            }
        }
    }

    /// Raises the level until each of the flows to fill has found its rate.
    fn fill(&mut self) {
        let MaxMin { links, flows, work, .. } = self;
        let Work { filled, touched, states, heap, .. } = work;
        filled.iter_mut().for_each(|filled| filled.begin(&flows[filled.id as usize]));
        heap.clear();
        for &resource in touched.iter() {
            let (link, state) = (&links[resource as usize], &mut states[resource as usize]);
            // Without other flows the whole capacity is free, exactly: a difference of sums would be rounded.
            let others = match state.members.len() == link.users.len() {
                true => 0.0,
                false => {
                    let own = state.members.iter().map(|&(place, entry)| {
                        let flow = &flows[filled[place as usize].id as usize];
                        flow.used(entry as usize, &flow.reached)
                    });
                    (link.used - own.sum::<f64>()).max(0.0)
                }
            };
            state.free = (link.capacity - others).max(0.0);
            let weights = state.members.iter().filter_map(|&(place, entry)| {
                let Filled { id, reached, .. } = &filled[place as usize];
                let (flow, entry) = (&flows[*id as usize], entry as usize);
                let taken = flow.alternative(entry).and_then(|number| reached.alternatives.get(number));
                let share = taken.map_or(1.0, |taken| taken.share);
                (share > 0.0).then(|| flow.entry(entry).1 * share)
            });
            (state.weight, state.rising) =
                weights.fold((0.0, 0), |(sum, count), weight| (sum + weight, count + 1));
            (state.since, state.version) = (0.0, 0);
            (state.level, state.queued) = (f64::INFINITY, f64::INFINITY);
            state.queue(resource, heap);
        }
        while let Some(Reverse(closes)) = heap.pop() {
            let (level, resource, version) = closes.parts();
            let state = &mut states[resource as usize];
            if state.level < f64::INFINITY {
                continue;
            }
            state.queued = f64::INFINITY;
            if state.version != version {
                // It closes later than it seemed, as flows on it have stopped.
                state.queue(resource, heap);
                continue;
            }
            state.level = level;
            let members = std::mem::take(&mut state.members);
            for &(place, entry) in &members {
                let filled = &mut filled[place as usize];
                filled.meet_full(&flows[filled.id as usize], entry as usize, level, states, heap);
            }
            states[resource as usize].members = members;
        }
    }

    /// Takes over what has been filled.
    fn settle(&mut self, changes: &mut impl FnMut(Resource, &Self)) -> Vec<u32> {
        let touched = std::mem::take(&mut self.work.touched);
        for &resource in &touched {
            changes(resource, self);
        }
        let filled = std::mem::take(&mut self.work.filled);
        let ids = filled.iter().map(|filled| filled.id).collect();
        for Filled { id, reached, is_rising } in filled {
            self.work.place_of[id as usize] = 0;
            let flow = &mut self.flows[id as usize];
            let reached = if is_rising { Reached::default() } else { reached };
            let before = std::mem::replace(&mut flow.reached, reached);
            for entry in 0..flow.len() {
                let more = flow.used(entry, &flow.reached) - flow.used(entry, &before);
                self.links[flow.entry(entry).0 as usize].used += more;
            }
        }
        for resource in touched {
            let state = &mut self.work.states[resource as usize];
            let link = &mut self.links[resource as usize];
            (state.is_touched, link.level) = (false, state.level);
            if state.members.len() == link.users.len() {
                // The sum anew, without what rounding has added up.
                let used = |&(flow, entry): &(u32, u32)| {
                    let flow = &self.flows[flow as usize];
                    flow.used(entry as usize, &flow.reached)
                };
                link.used = link.users.iter().map(used).sum();
            }
        }
        ids
    }
}

#[cfg(test)]
mod tests;
