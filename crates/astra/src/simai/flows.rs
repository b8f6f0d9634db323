//! What a rank sends in a collective operation, as SimAI models NCCL.
//!
//! All but all-to-alls go around rings: as many side by side as ranks of the group are in a server, each of which begins with another one of them, and passes the servers in order. A ring
//! carries its share of the bytes in as many steps as NCCL's; a rank sends on when what it waits for has come, whatever else it is sending. In an all-to-all every pair
//! has one flow, and all begin at once.

use crate::members::Members;
use crate::system::Operation;

/// The part of a rank in an operation.
#[derive(Clone, Debug)]
pub(crate) struct Flows {
    pub(crate) operation: Operation,
    members: Members,
    place: u32,
    /// Ranks of the group in a server, and rings.
    inner: u32,
    /// Bytes of a flow.
    pub(crate) bytes: u64,
}

/// A flow that a rank sends or receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flow {
    pub(crate) channel: u32,
    pub(crate) step: u32,
}

impl Flows {
    /// The part of `rank` in an operation of a group with `rings` rings. `None` if nothing is sent: a group of one rank, or fewer bytes than flows, for which SimAI creates none.
    pub(crate) fn new(
        operation: Operation,
        bytes: u64,
        members: Members,
        rank: u32,
        rings: u32,
    ) -> Option<Self> {
        let count = members.count();
        let inner = match operation {
            Operation::AllToAll => 1,
            _ => rings,
        };
        let bytes = bytes / u64::from(count) / u64::from(inner);
        let place = members.place(rank);
        (count > 1 && bytes > 0).then_some(Flows { operation, members, place, inner, bytes })
    }

    fn count(&self) -> u32 {
        self.members.count()
    }

    /// Rings; of an all-to-all 1.
    pub(crate) fn channels(&self) -> u32 {
        self.inner
    }

    /// Flows of a rank in a ring, one after the other.
    pub(crate) fn steps(&self) -> u32 {
        match self.operation {
            Operation::AllReduce => 2 * (self.count() - 1),
            Operation::AllGather | Operation::ReduceScatter => self.count() - 1,
            Operation::AllToAll => 1,
        }
    }

    /// How many flows a rank sends, and receives.
    pub(crate) fn messages(&self) -> u64 {
        match self.operation {
            Operation::AllToAll => u64::from(self.count() - 1),
            _ => u64::from(self.channels()) * u64::from(self.steps()),
        }
    }

    /// The rank after this one in a ring.
    pub(crate) fn next(&self, channel: u32) -> u32 {
        let (server, within) = (self.place / self.inner, self.place % self.inner);
        let place = (within + self.inner - channel) % self.inner;
        let next = match place + 1 < self.inner {
            true => server * self.inner + (within + 1) % self.inner,
            false => (server + 1) * self.inner % self.count() + channel,
        };
        self.members.rank(next)
    }

    /// The other ranks, in order.
    pub(crate) fn others(&self) -> impl Iterator<Item = u32> + '_ {
        (0..self.count()).filter(|&place| place != self.place).map(|place| self.members.rank(place))
    }

    /// Whether a flow carries what is reduced on arrival and sent on.
    pub(crate) fn reduces(&self, step: u32) -> bool {
        match self.operation {
            Operation::AllReduce | Operation::ReduceScatter => step > 0 && step < self.count(),
            Operation::AllGather | Operation::AllToAll => false,
        }
    }
}

/// Rings at most; tags have room for no more.
const MOST_RINGS: u32 = 1 << super::rank::CHANNEL_BITS;

/// How many rings a group has: as many as consecutive members each server has, 1 if not the same number in each.
pub(super) fn rings(members: &Members, servers: &[u32]) -> u32 {
    let server = |place: u32| servers[members.rank(place) as usize];
    let count = members.count();
    let first = (0..count).take_while(|&place| server(place) == server(0)).fold(0, |count, _| count + 1);
    let is_even = count.is_multiple_of(first)
        && (0..count).all(|place| server(place) == server(place - place % first))
        && (first..count).step_by(first as usize).all(|place| server(place) != server(place - 1));
    if is_even && first <= MOST_RINGS { first } else { 1 }
}
