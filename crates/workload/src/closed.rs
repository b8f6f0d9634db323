//! Closed loops: a host sends its next message when one completes.

use std::sync::Arc;

use netloom_topology::HostId;
use netloom_units::{Bytes, Time};
use rand_pcg::Pcg64Mcg;

use crate::options::Destinations;
use crate::size::Sampler;

/// The closed loop of one host.
#[derive(Clone, Debug)]
pub(crate) struct Closed {
    pub(crate) rng: Pcg64Mcg,
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
}

impl Closed {
    /// Messages that are in flight at first.
    pub(crate) fn outstanding(&self) -> u32 {
        self.left.min(u64::from(self.window)) as u32
    }

    /// The next message, if one may start now.
    pub(crate) fn next(&mut self, now: Time) -> Option<(HostId, Bytes)> {
        if now >= self.until {
            self.left = 0;
        }
        self.left = self.left.checked_sub(1)?;
        let partner = self.partners.next(&mut self.rng);
        Some((partner, self.size.draw(&mut self.rng)))
    }
}

impl Partners {
    pub(crate) fn cycle(hosts: impl Into<Box<[HostId]>>) -> Self {
        Partners::Cycle { hosts: hosts.into(), next: 0 }
    }

    fn next(&mut self, rng: &mut Pcg64Mcg) -> HostId {
        match self {
            Partners::Cycle { hosts, next } => {
                let host = hosts[*next as usize];
                *next = (*next + 1) % hosts.len() as u32;
                host
            }
            Partners::Uniform { destinations, rank } => destinations.draw(*rank, rng),
        }
    }
}
