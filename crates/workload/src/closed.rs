//! Closed loops: a host sends its next message when one completes.

use std::sync::Arc;

use netloom_topology::HostId;
use netloom_units::Time;

use crate::Message;
use crate::options::Destinations;
use crate::random::Stream;
use crate::size::Sampler;
use netloom_units::random::mix;

/// The closed loop of one host.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    pub(crate) rng: Stream,
    pub(crate) size: Sampler,
    pub(crate) partners: Partners,
    /// Messages still to send.
    pub(crate) left: u64,
    /// No message starts at this time or later.
    pub(crate) until: Time,
    /// Messages in flight at a time.
    pub(crate) window: u32,
}

/// To whom the next message goes.
#[derive(Clone, Debug)]
pub(crate) enum Partners {
    /// One partner after the other, round and round.
    Cycle { hosts: Box<[HostId]>, next: u32 },
    /// A uniform draw.
    Uniform { destinations: Arc<Destinations>, rank: u32 },
    /// Every other rank once.
    Tour(Tour),
}

impl Closed {
    /// Messages that are in flight at first.
    #[expect(clippy::cast_possible_truncation, reason = "at most the window")]
    pub(crate) fn outstanding(&self) -> u32 {
        self.left.min(u64::from(self.window)) as u32
    }

    /// The next message, if one may start now.
    pub(crate) fn next(&mut self, now: Time) -> Option<Message> {
        if now >= self.until {
            self.left = 0;
        }
        self.left = self.left.checked_sub(1)?;
        let partner = self.partners.next(&mut self.rng);
        Some(Message::new(partner, self.size.draw(&mut self.rng), now))
    }
}

impl Partners {
    pub(crate) fn cycle(hosts: impl Into<Box<[HostId]>>) -> Self {
        Partners::Cycle { hosts: hosts.into(), next: 0 }
    }

    /// Each partner that there may be; one that is drawn again and again may come only once.
    pub(crate) fn each(&self, visit: &mut dyn FnMut(HostId)) {
        match self {
            Partners::Cycle { hosts, .. } => hosts.iter().copied().for_each(visit),
            Partners::Uniform { destinations, rank } => destinations.of(*rank).for_each(visit),
            Partners::Tour(tour) => {
                let others = (0..).zip(tour.hosts.iter()).filter(|&(rank, _)| rank != tour.rank);
                others.for_each(|(_, &host)| visit(host));
            }
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "hosts have numbers of 32 bits")]
    pub(crate) fn next(&mut self, rng: &mut Stream) -> HostId {
        match self {
            Partners::Cycle { hosts, next } => {
                let host = hosts[*next as usize];
                *next = (*next + 1) % hosts.len() as u32;
                host
            }
            Partners::Uniform { destinations, rank } => destinations.draw(*rank, rng),
            Partners::Tour(tour) => tour.next(),
        }
    }
}

/// Visits every other rank once, directly (the next rank, the one after it, …) or in a random order.
///
/// The random order is never stored, which for all ranks together would take space quadratic in their number: it is
/// a keyed bijection on the steps.
#[derive(Clone, Debug)]
pub(crate) struct Tour {
    hosts: Arc<[HostId]>,
    rank: u32,
    step: u32,
    key: Option<u64>,
}

impl Tour {
    /// The tour of a rank among the hosts of all ranks, in random order if there is a key.
    pub(crate) fn new(hosts: Arc<[HostId]>, rank: u32, key: Option<u64>) -> Self {
        Tour { hosts, rank, step: 0, key }
    }

    #[expect(clippy::cast_possible_truncation, reason = "hosts have numbers of 32 bits")]
    fn next(&mut self) -> HostId {
        let others = self.hosts.len() as u32 - 1;
        let step = self.key.map_or(self.step, |key| permuted(self.step, others, key));
        self.step += 1;
        self.hosts[(self.rank as usize + 1 + step as usize) % self.hosts.len()]
    }
}

/// The image of `x` under a keyed bijection on `0..count`: a Feistel network on the next even number of bits, walked
/// until it is back below `count` (Black and Rogaway, Ciphers with Arbitrary Finite Domains, CT-RSA 2002).
#[expect(clippy::cast_possible_truncation, reason = "below `count`")]
fn permuted(x: u32, count: u32, key: u64) -> u32 {
    let half_bits = (u32::BITS - (count - 1).leading_zeros()).div_ceil(2).max(1);
    let mask = (1u64 << half_bits) - 1;
    let mut x = u64::from(x);
    loop {
        let (mut left, mut right) = (x >> half_bits, x & mask);
        for round in 0..6u64 {
            (left, right) = (right, left ^ (mix(key ^ mix(round << 32 | right)) & mask));
        }
        x = left << half_bits | right;
        if x < u64::from(count) {
            return x as u32;
        }
    }
}
