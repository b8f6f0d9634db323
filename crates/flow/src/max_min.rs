//! Max-min fair rates by progressive filling (Bertsekas and Gallager, *Data Networks*, section 6.5.2), kept up to date as flows come and go.
//!
//! All flows begin at rate zero, and their rates rise together, by the *level*. A link that is full closes: its flows keep the rate that they have reached.
//! A flow that divides among several links in fixed parts takes its part of its rate from each, and is as fast as the first of them that closes lets it be.
//! The level at which a link closes is the only thing about it that a flow's rate depends on.
//!
//! So when flows come or go, not all is filled again. Filling begins with the flows concerned, while all others keep what they have. If a link then
//! closes at another level than before, those of its flows that had reached the lower of the two levels depend on it: they are filled again, too,
//! together with the first ones, until no link's level differs from what the remaining flows have seen. What comes out is what filling everything
//! gives, up to rounding; a test compares them.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use netloom_units::narrow;

use crate::split::Split;

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
    /// The level that it has reached: its rate in bit/s.
    rate: f64,
}

impl Flow {
    /// A resource, and the part of the flow that crosses it.
    fn entry(&self, entry: usize) -> (Resource, f64) {
        match (entry.checked_sub(2), &self.split) {
            (Some(entry), Some(split)) => (split.resources[entry], split.weights[entry]),
            _ => (self.ends[entry], 1.0),
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
    /// The flows that are filled, in the order in which they were added, with their new rates; none while the level rises.
    filled: Vec<(u32, Option<f64>)>,
    /// Per flow, its place in `filled` plus 1, or 0.
    place_of: Vec<u32>,
    /// The links of these flows.
    touched: Vec<Resource>,
    /// Per link, its state; only those of touched links mean something.
    states: Vec<State>,
    heap: BinaryHeap<Reverse<(Level, Resource, u32)>>,
}

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
    /// Infinite while it is not full.
    level: f64,
}

impl State {
    /// At which level it closes, as things are.
    fn closes_at(&self) -> Option<f64> {
        (self.rising > 0 && self.weight > 0.0).then(|| self.since + (self.free / self.weight).max(0.0))
    }

    /// A flow with this weight stops rising at a level.
    fn stop(&mut self, level: f64, weight: f64) {
        self.free -= self.weight * (level - self.since);
        self.since = level;
        self.weight -= weight;
        self.rising -= 1;
        self.version += 1;
    }
}

/// A level by its order.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Level(f64);

impl Eq for Level {}

impl PartialOrd for Level {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Level {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
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
        (flow.split, flow.ends, flow.rate) = (Some(split), ends, 0.0);
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
            let ((resource, weight), place) = (flow.entry(entry), flow.places[entry] as usize);
            let link = &mut self.links[resource as usize];
            link.users.swap_remove(place);
            link.used = if link.users.is_empty() { 0.0 } else { (link.used - weight * flow.rate).max(0.0) };
            if let Some(&(moved, of)) = link.users.get(place) {
                self.flows[moved as usize].places[of as usize] = narrow::<u32>(place);
            }
            self.dirty.push(resource);
        }
        self.flows[id as usize].split = None;
        self.fresh.retain(|&fresh| fresh != id);
        self.free.push(id);
    }

    /// The rate of a flow in bit/s.
    pub(crate) fn rate(&self, id: u32) -> f64 {
        self.flows[id as usize].rate
    }

    /// The links of a flow.
    pub(crate) fn resources(&self, id: u32) -> impl Iterator<Item = Resource> + '_ {
        self.flows[id as usize].entries().map(|(resource, _)| resource)
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
        filled.push((id, None));
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
            let (flow, _) = self.links[resource as usize].users[place];
            if self.flows[flow as usize].rate >= least {
                self.join(flow);
            }
        }
    }

    /// Raises the level until each of the flows to fill has found its rate.
    fn fill(&mut self) {
        let MaxMin { links, flows, work, .. } = self;
        let Work { filled, touched, states, heap, .. } = work;
        filled.iter_mut().for_each(|(_, rate)| *rate = None);
        heap.clear();
        for &resource in touched.iter() {
            let (link, state) = (&links[resource as usize], &mut states[resource as usize]);
            let member = |&(place, entry): &(u32, u32)| {
                let flow = &flows[filled[place as usize].0 as usize];
                (flow.entry(entry as usize).1, flow.rate)
            };
            // Without other flows the whole capacity is free, exactly: a difference of sums would be rounded.
            let others = match state.members.len() == link.users.len() {
                true => 0.0,
                false => {
                    let own: f64 = state.members.iter().map(member).map(|(weight, rate)| weight * rate).sum();
                    (link.used - own).max(0.0)
                }
            };
            state.free = (link.capacity - others).max(0.0);
            state.weight = state.members.iter().map(|own| member(own).0).sum();
            (state.since, state.rising, state.version) = (0.0, state.members.len(), 0);
            state.level = f64::INFINITY;
            heap.extend(state.closes_at().map(|level| Reverse((Level(level), resource, 0))));
        }
        while let Some(Reverse((Level(level), resource, version))) = heap.pop() {
            let state = &mut states[resource as usize];
            if state.version != version {
                // It closes later than it seemed, as flows on it have stopped.
                heap.extend(state.closes_at().map(|level| Reverse((Level(level), resource, state.version))));
                continue;
            }
            state.level = level;
            let members = std::mem::take(&mut state.members);
            for &(place, _) in &members {
                let (id, rate) = &mut filled[place as usize];
                if rate.is_none() {
                    *rate = Some(level);
                    for (resource, weight) in flows[*id as usize].entries() {
                        states[resource as usize].stop(level, weight);
                    }
                }
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
        for &(id, rate) in &filled {
            self.work.place_of[id as usize] = 0;
            let (flow, rate) = (&mut self.flows[id as usize], rate.unwrap_or(0.0));
            let more = rate - flow.rate;
            flow.rate = rate;
            for (resource, weight) in flow.entries() {
                self.links[resource as usize].used += weight * more;
            }
        }
        for resource in touched {
            let state = &mut self.work.states[resource as usize];
            let link = &mut self.links[resource as usize];
            (state.is_touched, link.level) = (false, state.level);
            if state.members.len() == link.users.len() {
                // The sum anew, without what rounding has added up.
                let amount = |&(flow, entry): &(u32, u32)| {
                    let flow = &self.flows[flow as usize];
                    flow.entry(entry as usize).1 * flow.rate
                };
                link.used = link.users.iter().map(amount).sum();
            }
        }
        filled.into_iter().map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests;
