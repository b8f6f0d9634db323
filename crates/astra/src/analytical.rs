//! ASTRA-sim's analytical networks: whole messages on links, without packets.
//!
//! With congestion a link carries one message after the other, and every link of a path takes the whole message before the next one does. Without congestion a message
//! takes the latencies of its path and its size at the rate of one link, whatever else is sent. Rates are in GiB per second, although they are called
//! GB/s, and times are cut to whole nanoseconds once per link, or once per path: that is what makes answers equal those of ASTRA-sim.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use netloom_topology::{Block, NetworkDimension, NetworkFile};
use rustc_hash::FxHashMap;

use crate::job::Job;
use crate::rank::{Call, End, Envelope, Network, Rank};
use crate::trace::LONGEST;

/// How long a link transfers this many bytes, in nanoseconds.
#[expect(clippy::cast_precision_loss, reason = "as ASTRA-sim computes")]
fn transfer(dimension: &NetworkDimension, bytes: u64) -> f64 {
    bytes as f64 / dimension.bytes_per_ns()
}

/// How many links of a dimension a message takes between two places.
fn hops(dimension: &NetworkDimension, src: u32, dst: u32) -> u32 {
    match dimension.block {
        Block::FullyConnected => 1,
        Block::Switch => 2,
        Block::Ring => {
            let clockwise = (dst + dimension.count - src) % dimension.count;
            clockwise.min(dimension.count - clockwise)
        }
    }
}

/// A time cut to whole nanoseconds.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as ASTRA-sim rounds; saturates")]
fn rounded(ns: f64) -> u64 {
    ns as u64
}

/// How long a message takes where links are idle, in nanoseconds.
pub fn idle_delay(file: &NetworkFile, message: &Message, has_congestion: bool) -> u64 {
    let &Message { src, dst, bytes, .. } = message;
    match has_congestion {
        true => {
            let dimension = &file.dimensions[0];
            let hops = u64::from(hops(dimension, src, dst));
            hops.saturating_mul(rounded(dimension.latency + transfer(dimension, bytes)))
        }
        false => delay(file, src, dst, bytes),
    }
}

/// How long a message takes without congestion: in the first dimension in which its ends differ.
fn delay(file: &NetworkFile, src: u32, dst: u32, bytes: u64) -> u64 {
    let (mut src, mut dst) = (src, dst);
    for dimension in &file.dimensions {
        let (from, to) = (src % dimension.count, dst % dimension.count);
        if from != to {
            let latency = f64::from(hops(dimension, from, to)) * dimension.latency;
            return rounded(latency + transfer(dimension, bytes));
        }
        (src, dst) = (src / dimension.count, dst / dimension.count);
    }
    0
}

/// A message as it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Sending rank.
    pub src: u32,
    /// Receiving rank.
    pub dst: u32,
    /// Number of the message among those of the sender.
    pub number: u32,
    /// Payload.
    pub bytes: u64,
    /// When it was sent, in nanoseconds.
    pub start: u64,
    /// When it had arrived; `None` if the run ended before.
    pub end: Option<u64>,
}

/// What came out of a run.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// How each rank ended; `None` if it did not.
    pub ends: Vec<Option<End>>,
    /// The ranks that did not end, and what each waits for.
    pub unfinished: Vec<String>,
    /// All messages, in the order of sending.
    pub messages: Vec<Message>,
    /// When the last event was, in nanoseconds.
    pub until: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Wake(u32),
    Perform(u32, Call),
    /// A message has come to the end of a link.
    Arrive(u32),
    Free(u64),
}

/// Events in order of time; those of one time in the order in which they were asked for.
#[derive(Debug, Default)]
struct Events {
    heap: BinaryHeap<Reverse<(u64, u64, u32)>>,
    stored: Vec<Event>,
    vacant: Vec<u32>,
    asked: u64,
}

impl Events {
    fn push(&mut self, at: u64, event: Event) {
        let place = match self.vacant.pop() {
            Some(place) => {
                self.stored[place as usize] = event;
                place
            }
            None => {
                self.stored.push(event);
                netloom_units::narrow::<u32>(self.stored.len() - 1)
            }
        };
        self.heap.push(Reverse((at, self.asked, place)));
        self.asked += 1;
    }

    fn pop(&mut self) -> Option<(u64, Event)> {
        let Reverse((at, _, place)) = self.heap.pop()?;
        self.vacant.push(place);
        Some((at, self.stored[place as usize]))
    }
}

#[derive(Clone, Debug, Default)]
struct Link {
    is_busy: bool,
    waiting: VecDeque<u32>,
}

/// The network while it runs.
#[derive(Debug)]
struct Model<'a> {
    file: &'a NetworkFile,
    has_congestion: bool,
    now: u64,
    /// The rank that is being called.
    rank: u32,
    events: Events,
    /// Those that have carried something, by number.
    links: FxHashMap<u64, Link>,
    messages: Vec<Message>,
    envelopes: Vec<Envelope>,
    /// Where messages are that have more than one link to take: the device they come to next.
    places: Vec<u32>,
}

impl Network for Model<'_> {
    fn send(&mut self, to: u32, envelope: Envelope, number: u32) {
        let (src, bytes, start) = (self.rank, envelope.bytes, self.now);
        let place = netloom_units::narrow::<u32>(self.messages.len());
        self.messages.push(Message { src, dst: to, number, bytes, start, end: None });
        self.envelopes.push(envelope);
        self.places.push(src);
        match self.has_congestion {
            true => self.take_link(place),
            false => self.events.push(self.later(delay(self.file, src, to, bytes)), Event::Arrive(place)),
        }
    }

    fn wake(&mut self, at: u64) {
        self.events.push(at, Event::Wake(self.rank));
    }

    fn soon(&mut self, call: Call) {
        self.events.push(self.now, Event::Perform(self.rank, call));
    }
}

impl Model<'_> {
    /// The time after this many nanoseconds.
    fn later(&self, delay: u64) -> u64 {
        self.now.saturating_add(delay).min(LONGEST)
    }

    /// The device to which a message goes from another one, and the link to it. The switch has the number after the last rank.
    fn next_link(&self, at: u32, dst: u32) -> (u32, u64) {
        let &NetworkDimension { block, count, .. } = &self.file.dimensions[0];
        match block {
            Block::FullyConnected => (dst, u64::from(at) * u64::from(count) + u64::from(dst)),
            Block::Switch if at == count => (dst, u64::from(count) + u64::from(dst)),
            Block::Switch => (count, at.into()),
            Block::Ring => {
                let clockwise = (dst + count - at) % count;
                match count - clockwise < clockwise {
                    true => ((at + count - 1) % count, u64::from(count) + u64::from(at)),
                    false => ((at + 1) % count, at.into()),
                }
            }
        }
    }

    /// A message comes to its next link.
    fn take_link(&mut self, message: u32) {
        let (next, link) = self.next_link(self.places[message as usize], self.messages[message as usize].dst);
        let of_link = self.links.entry(link).or_default();
        if of_link.is_busy {
            of_link.waiting.push_back(message);
            return;
        }
        of_link.is_busy = true;
        self.places[message as usize] = next;
        let dimension = &self.file.dimensions[0];
        let transfer = transfer(dimension, self.messages[message as usize].bytes);
        self.events.push(self.later(rounded(dimension.latency + transfer)), Event::Arrive(message));
        self.events.push(self.later(rounded(transfer)), Event::Free(link));
    }
}

/// Runs a job on an analytical network, up to a time in nanoseconds. `go_on` is asked now and then, with the time and how many messages have arrived, whether to go on.
pub fn run(
    job: &Arc<Job>,
    file: &NetworkFile,
    has_congestion: bool,
    until: u64,
    mut go_on: impl FnMut(u64, u64) -> bool,
) -> Outcome {
    let mut model = Model {
        file,
        has_congestion,
        now: 0,
        rank: 0,
        events: Events::default(),
        links: FxHashMap::default(),
        messages: Vec::new(),
        envelopes: Vec::new(),
        places: Vec::new(),
    };
    let mut ranks: Vec<Rank> = (0..job.ranks()).map(|rank| Rank::new(job.clone(), rank)).collect();
    for (number, rank) in (0..).zip(&mut ranks) {
        model.rank = number;
        rank.begin(0, &mut model);
    }
    /// Events between two questions whether to go on.
    const PERIOD: u32 = 1 << 14;
    let (mut left, mut arrived) = (PERIOD, 0);
    while let Some((at, event)) = model.events.pop().filter(|&(at, _)| at < until) {
        model.now = at;
        left -= 1;
        if left == 0 {
            left = PERIOD;
            if !go_on(at, arrived) {
                break;
            }
        }
        match event {
            Event::Wake(rank) => {
                model.rank = rank;
                ranks[rank as usize].wake(at, &mut model);
            }
            Event::Perform(rank, call) => {
                model.rank = rank;
                ranks[rank as usize].perform(at, call, &mut model);
            }
            Event::Free(link) => {
                let of_link = model.links.entry(link).or_default();
                of_link.is_busy = false;
                if let Some(message) = of_link.waiting.pop_front() {
                    model.take_link(message);
                }
            }
            Event::Arrive(place) => {
                let Message { src, dst, number, .. } = model.messages[place as usize];
                if has_congestion && model.places[place as usize] != dst {
                    model.take_link(place);
                    continue;
                }
                model.messages[place as usize].end = Some(at);
                arrived += 1;
                let envelope = model.envelopes[place as usize];
                // Both ends learn of it at once, the sender first.
                model.rank = src;
                ranks[src as usize].sent(at, number, &mut model);
                model.rank = dst;
                ranks[dst as usize].arrived(at, src, envelope, &mut model);
            }
        }
    }
    Outcome {
        ends: ranks.iter().map(Rank::end).collect(),
        unfinished: ranks.iter().filter_map(Rank::unfinished).collect(),
        messages: model.messages,
        until: model.now,
    }
}
