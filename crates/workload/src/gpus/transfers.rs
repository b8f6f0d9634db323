//! The algorithms of collective operations among GPUs: who sends which blocks to whom, and after what.

use std::collections::HashSet;
use std::ops::Range;

use netloom_units::{Bytes, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::IN_FLIGHT;
use crate::pattern::{Algorithm, bytes_of};

/// A collective operation, called and measured as NCCL does: S is the size of the whole buffer of a rank, which is what `nccl-tests` prints as
/// size (NVIDIA, nccl-tests, doc/PERFORMANCE.md). n is the number of ranks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Every rank ends with the sum of all buffers of S bytes. By a ring each sends 2 (n - 1)/n · S.
    #[default]
    AllReduce,
    /// Every rank contributes S/n bytes and ends with those of all.
    AllGather,
    /// Every rank contributes S bytes and ends with its n-th part of the sum.
    ReduceScatter,
    /// Every rank sends S/n bytes to each other one.
    AllToAll,
    /// The first rank of each group sends its S bytes to all.
    Broadcast,
}

/// How a collective operation is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// As NCCL would choose between its ring and its double binary tree, by the size: an all-reduce takes the one that is faster by NCCL's model with
    /// its latencies (NCCL 2, `src/graph/tuning.cc`, protocol Simple: 8.4 us, and per step 14 us over the network and 3.4 us (ring) or 4 us (tree)
    /// inside a server) and the rate of the NICs. All-gather, reduce-scatter and broadcast take the ring, an all-to-all is direct. NCCL-like:
    /// its protocols for small messages (LL, LL128) and its other algorithms (NVLS, CollNet, PAT) are left out.
    #[default]
    Auto,
    /// Around a ring; a broadcast along it. Not for an all-to-all.
    Ring,
    /// To all others at once: an all-reduce is a reduce-scatter followed by an all-gather.
    Direct,
    /// An all-reduce by recursive halving and doubling (Rabenseifner), a reduce-scatter by halving (among a power of two), an all-gather by doubling.
    HalvingDoubling,
    /// An all-reduce by log₂ n exchanges of all S bytes, for small ones.
    RecursiveDoubling,
    /// An all-reduce by two binary trees with half of the data each; a rank is a leaf in at least one of them (Sanders, Speck, Träff, Two-tree
    /// algorithms for full bandwidth broadcast, reduction and scan, Parallel Computing 2009).
    DoubleBinaryTree,
    /// In two tiers: among the ranks of a server, and among those of equal place in all servers (one rail). An all-reduce is a reduce-scatter inside,
    /// an all-reduce outside, an all-gather inside; an all-to-all first brings everything to the GPU of the destination's rail.
    Hierarchical,
    /// In ⌈log₂ n⌉ steps: an all-gather or an all-to-all (Bruck et al., TPDS 1997).
    Bruck,
    /// An all-to-all of n - 1 exchanges, one after the other.
    Pairwise,
    /// A broadcast along a binomial tree.
    Binomial,
}

/// One of a rank's messages in an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The place in the group of the rank at the other end.
    pub(crate) peer: u32,
    /// What it carries.
    pub(crate) blocks: Vec<u32>,
    pub(crate) is_send: bool,
    /// Messages in one direction between two ranks match in order among those of one stream.
    pub(crate) stream: u32,
    /// Which earlier transfers of the rank have to be over: their places in its list. All data that a message carries is there then.
    pub(crate) after: Vec<u32>,
    /// The send to the same peer that has to have begun, of those that wait for earlier ones: acknowledgements may overtake each other.
    pub(crate) behind: Option<u32>,
}

/// What a rank does in an operation, in the order in which it posts its receives.
#[derive(Clone, Debug, Default)]
pub(crate) struct Transfers(pub(crate) Vec<Transfer>);

impl Transfers {
    fn push(&mut self, peer: u32, blocks: Vec<u32>, is_send: bool, after: &[u32]) -> u32 {
        self.0.push(Transfer { peer, blocks, is_send, stream: 0, after: after.to_vec(), behind: None });
        narrow::<u32>(self.0.len()) - 1
    }

    fn send(&mut self, peer: u32, blocks: Vec<u32>, after: &[u32]) -> u32 {
        self.push(peer, blocks, true, after)
    }

    fn recv(&mut self, peer: u32, blocks: Vec<u32>, after: &[u32]) -> u32 {
        self.push(peer, blocks, false, after)
    }

    /// The last sends among those that wait for earlier ones: all that a rank receives may have come before they begin.
    pub(crate) fn late_sends(&self) -> Vec<usize> {
        let behind: HashSet<u32> = self.0.iter().filter_map(|transfer| transfer.behind).collect();
        let last = (0..).zip(&self.0).filter(|(place, it)| it.behind.is_some() && !behind.contains(place));
        last.map(|(place, _)| place as usize).collect()
    }

    /// Steps of a ring of n places: in step i what `sent(i)` names goes to the next place, once the step before has brought it. At most [`IN_FLIGHT`] messages are on their way at a time.
    fn ring(
        &mut self,
        (to, from): (u32, u32),
        steps: Range<u32>,
        start: &[u32],
        blocks: impl Fn(u32) -> (Vec<u32>, Vec<u32>),
    ) -> Vec<u32> {
        let (mut before, mut sends) = (start.to_vec(), Vec::new());
        for step in steps {
            let (sent, received) = blocks(step);
            let left = sends.len().checked_sub(IN_FLIGHT).map(|place| sends[place]);
            before.extend(left);
            let send = self.send(to, sent, &before);
            self.0[send as usize].behind = left.and(sends.last().copied());
            sends.push(send);
            before = vec![self.recv(from, received, start)];
        }
        before
    }
}

impl Operation {
    /// The methods for it.
    pub(crate) fn methods(self) -> &'static [Method] {
        match self {
            Operation::AllReduce => &[
                Method::Auto,
                Method::Ring,
                Method::Direct,
                Method::HalvingDoubling,
                Method::RecursiveDoubling,
                Method::DoubleBinaryTree,
                Method::Hierarchical,
            ],
            Operation::AllGather => &[
                Method::Auto,
                Method::Ring,
                Method::Direct,
                Method::HalvingDoubling,
                Method::Bruck,
                Method::Hierarchical,
            ],
            Operation::ReduceScatter => {
                &[Method::Auto, Method::Ring, Method::Direct, Method::HalvingDoubling, Method::Hierarchical]
            }
            Operation::AllToAll => {
                &[Method::Auto, Method::Direct, Method::Pairwise, Method::Bruck, Method::Hierarchical]
            }
            Operation::Broadcast => &[Method::Auto, Method::Ring, Method::Direct, Method::Binomial],
        }
    }
}

impl Method {
    /// The name that the user writes.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Method::Auto => "auto",
            Method::Ring => "ring",
            Method::Direct => "direct",
            Method::HalvingDoubling => "halving-doubling",
            Method::RecursiveDoubling => "recursive-doubling",
            Method::DoubleBinaryTree => "double-binary-tree",
            Method::Hierarchical => "hierarchical",
            Method::Bruck => "bruck",
            Method::Pairwise => "pairwise",
            Method::Binomial => "binomial",
        }
    }
}

/// An operation of a group by one method, other than [`Method::Auto`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Schedule {
    pub(crate) operation: Operation,
    pub(crate) method: Method,
    /// How many take part, at least 2.
    pub(crate) ranks: u32,
    /// How many of them are in a server; consecutive ones. 1 where they are not grouped.
    pub(crate) inner: u32,
}

impl Schedule {
    /// Into how many equal parts the buffer is divided. Block b is as large as part b modulo this.
    pub(crate) fn parts(&self) -> u32 {
        match (self.operation, self.method) {
            (Operation::AllReduce, Method::RecursiveDoubling) => 1,
            (Operation::AllReduce, Method::DoubleBinaryTree) => 2,
            (Operation::AllReduce, Method::HalvingDoubling) => 1 << self.ranks.ilog2(),
            (Operation::Broadcast, _) => 1,
            _ => self.ranks,
        }
    }

    /// The bytes of some blocks of a buffer.
    pub(crate) fn bytes(&self, size: Bytes, blocks: &[u32]) -> Bytes {
        bytes_of(size, blocks, self.parts())
    }

    /// What a rank sends in all.
    #[cfg(test)]
    pub(crate) fn sent(&self, size: Bytes, rank: u32) -> Bytes {
        let transfers = self.transfers(rank).0;
        let sent = transfers.iter().filter(|it| it.is_send).map(|it| self.bytes(size, &it.blocks).0.max(1));
        Bytes(sent.fold(0, u64::saturating_add))
    }

    /// Whether it can be done by as many ranks.
    ///
    /// # Errors
    /// What would be expected of them.
    pub(crate) fn check(&self) -> Result<(), String> {
        match (self.operation, self.method) {
            (Operation::ReduceScatter, Method::HalvingDoubling) if !self.ranks.is_power_of_two() => {
                Err("a power of two of ranks in a group".to_owned())
            }
            (_, Method::Hierarchical) if self.inner < 2 || self.inner >= self.ranks => {
                Err("several servers with at least two ranks of each group in each".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// What a rank does.
    pub(crate) fn transfers(&self, rank: u32) -> Transfers {
        let n = self.ranks;
        let ahead = |distance: u32| (rank + distance) % n;
        let behind = |distance: u32| (rank + n - distance % n) % n;
        let others = || (1..n).map(ahead);
        let mut all = Transfers::default();
        match (self.operation, self.method) {
            (_, Method::Auto) => unreachable!("chosen before"),
            // What is reduced on its way ends at the place of its number.
            (Operation::ReduceScatter, Method::Ring) => {
                all.ring((ahead(1), behind(1)), 0..n - 1, &[], |step| {
                    (vec![behind(step + 1)], vec![behind(step + 2)])
                });
            }
            (Operation::AllGather, Method::Ring) => {
                all.ring((ahead(1), behind(1)), 0..n - 1, &[], |step| {
                    (vec![behind(step)], vec![behind(step + 1)])
                });
            }
            (Operation::AllReduce, Method::Ring) => {
                all.ring((ahead(1), behind(1)), 0..2 * (n - 1), &[], |step| {
                    (vec![behind(step)], vec![behind(step + 1)])
                });
            }
            (Operation::Broadcast, Method::Ring) => {
                let came: Vec<u32> =
                    (rank > 0).then(|| all.recv(rank - 1, vec![0], &[])).into_iter().collect();
                if rank + 1 < n {
                    all.send(rank + 1, vec![0], &came);
                }
            }
            (Operation::ReduceScatter, Method::Direct) => {
                others().for_each(|peer| _ = all.send(peer, vec![peer], &[]));
                others().for_each(|peer| _ = all.recv(peer, vec![rank], &[]));
            }
            (Operation::AllGather, Method::Direct) => {
                others().for_each(|peer| _ = all.send(peer, vec![rank], &[]));
                others().for_each(|peer| _ = all.recv(peer, vec![peer], &[]));
            }
            (Operation::AllReduce, Method::Direct) => {
                others().for_each(|peer| _ = all.send(peer, vec![peer], &[]));
                let reduced: Vec<u32> = others().map(|peer| all.recv(peer, vec![rank], &[])).collect();
                others().for_each(|peer| _ = all.send(peer, vec![rank], &reduced));
                others().for_each(|peer| _ = all.recv(peer, vec![peer], &[]));
            }
            (Operation::AllToAll, Method::Direct) => {
                others().for_each(|peer| _ = all.send(peer, vec![rank * n + peer], &[]));
                others().for_each(|peer| _ = all.recv(peer, vec![peer * n + rank], &[]));
            }
            (Operation::Broadcast, Method::Direct) => {
                if rank == 0 {
                    others().for_each(|peer| _ = all.send(peer, vec![0], &[]));
                } else {
                    all.recv(0, vec![0], &[]);
                }
            }
            (Operation::AllToAll, Method::Pairwise) => {
                let mut before = Vec::new();
                for step in 1..n {
                    let (to, from) = if n.is_power_of_two() {
                        (rank ^ step, rank ^ step)
                    } else {
                        (ahead(step), behind(step))
                    };
                    let sent = all.send(to, vec![rank * n + to], &before);
                    before = vec![sent, all.recv(from, vec![from * n + rank], &before)];
                }
            }
            (Operation::AllToAll, Method::Bruck) => {
                // A block at distance d goes on by 2^k in the step k of every bit that d has.
                let moved = |of: u32, step: u32| -> Vec<u32> {
                    let distances = (0..n).filter(|distance| distance >> step & 1 == 1);
                    let block = |distance: u32| {
                        let src = (of + n - distance % (1 << step)) % n;
                        src * n + (src + distance) % n
                    };
                    distances.map(block).collect()
                };
                self.steps(&mut all, n.next_power_of_two().ilog2(), |step| {
                    let (to, from) = (ahead(1 << step), behind(1 << step));
                    (Some((to, moved(rank, step))), Some((from, moved(from, step))))
                });
            }
            (Operation::AllGather, Method::Bruck) => {
                let held = |of: u32, step: u32| -> Vec<u32> {
                    let count = (1 << step).min(n - (1 << step));
                    (0..count).map(|next| (of + next) % n).collect()
                };
                self.steps(&mut all, n.next_power_of_two().ilog2(), |step| {
                    let (to, from) = (behind(1 << step), ahead(1 << step));
                    (Some((to, held(rank, step))), Some((from, held(from, step))))
                });
            }
            (Operation::AllReduce, Method::HalvingDoubling) => {
                self.textbook(&mut all, Algorithm::Rabenseifner, rank)
            }
            (Operation::AllReduce, Method::RecursiveDoubling) => {
                self.textbook(&mut all, Algorithm::RecursiveDoublingAllreduce, rank);
            }
            (Operation::AllGather, Method::HalvingDoubling) => {
                self.textbook(&mut all, Algorithm::RecursiveDoublingAllgather, rank);
            }
            (Operation::Broadcast, Method::Binomial) => {
                self.textbook(&mut all, Algorithm::BinomialBroadcast, rank)
            }
            (Operation::ReduceScatter, Method::HalvingDoubling) => {
                let log = n.ilog2();
                self.steps(&mut all, log, |step| {
                    let bit = log - 1 - step;
                    let partner = rank ^ (1 << bit);
                    let half = |of: u32| {
                        let first = of >> bit << bit;
                        (first..first + (1 << bit)).collect()
                    };
                    (Some((partner, half(partner))), Some((partner, half(rank))))
                });
            }
            (Operation::AllReduce, Method::DoubleBinaryTree) => {
                for tree in 0..2 {
                    self.tree(&mut all, rank, tree);
                }
            }
            (_, Method::Hierarchical) => self.hierarchical(&mut all, rank),
            (operation, method) => unreachable!("{operation:?} by {method:?} is refused"),
        }
        all
    }

    /// Steps one after the other, with at most one message in each direction.
    fn steps(
        &self,
        all: &mut Transfers,
        steps: u32,
        step: impl Fn(u32) -> (Option<(u32, Vec<u32>)>, Option<(u32, Vec<u32>)>),
    ) {
        let mut received = Vec::new();
        for number in 0..steps {
            let (to, from) = step(number);
            if let Some((to, blocks)) = to {
                all.send(to, blocks, &received);
            }
            if let Some((from, blocks)) = from {
                received.push(all.recv(from, blocks, &[]));
            }
        }
    }

    /// An algorithm of the workload `collective`.
    fn textbook(&self, all: &mut Transfers, algorithm: Algorithm, rank: u32) {
        let of = |rank, step| algorithm.step(self.ranks, rank, step);
        self.steps(all, algorithm.steps(self.ranks), |step| {
            let own = of(rank, step);
            let from = own.from.and_then(|from| Some((from, of(from, step).to?.1)));
            (own.to, from)
        });
    }

    /// A rank's part in one of two binary trees: up to the root what is added up, then down again.
    fn tree(&self, all: &mut Transfers, rank: u32, tree: u32) {
        let n = self.ranks;
        let parent = |rank| parent(rank, n, tree);
        let children: Vec<u32> = (0..n).filter(|&child| parent(child) == Some(rank)).collect();
        let first = all.0.len();
        let block = || vec![tree];
        let mut sum: Vec<u32> = children.iter().map(|&child| all.recv(child, block(), &[])).collect();
        if let Some(parent) = parent(rank) {
            all.send(parent, block(), &sum);
            sum = vec![all.recv(parent, block(), &[])];
        }
        children.iter().for_each(|&child| _ = all.send(child, block(), &sum));
        all.0[first..].iter_mut().for_each(|transfer| transfer.stream = tree);
    }

    /// Rank `o * inner + i` is number i of server o.
    fn hierarchical(&self, all: &mut Transfers, rank: u32) {
        let (n, inner) = (self.ranks, self.inner);
        let outer = n / inner;
        let (server, place) = (rank / inner, rank % inner);
        let at = |server: u32, place: u32| server % outer * inner + place % inner;
        // The next and the previous one in a ring of the server, and among the servers.
        let inside = (at(server, place + 1), at(server, place + inner - 1));
        let outside = (at(server + 1, place), at(server + outer - 1, place));
        // All blocks of one place, from all servers.
        let of_place = |place: u32| (0..outer).map(|server| at(server, place)).collect::<Vec<u32>>();
        let back = |from: u32, by: u32, of: u32| (from + 2 * of - by % of) % of;
        match self.operation {
            Operation::ReduceScatter | Operation::AllReduce => {
                let reduced = all.ring(inside, 0..inner - 1, &[], |step| {
                    (of_place(back(place, step + 1, inner)), of_place(back(place, step + 2, inner)))
                });
                let one = |server| vec![at(server, place)];
                let steps = if self.operation == Operation::AllReduce { 2 * (outer - 1) } else { outer - 1 };
                let added = all.ring(outside, 0..steps, &reduced, |step| {
                    (one(back(server, step + 1, outer)), one(back(server, step + 2, outer)))
                });
                if self.operation == Operation::AllReduce {
                    all.ring(inside, 0..inner - 1, &added, |step| {
                        (of_place(back(place, step, inner)), of_place(back(place, step + 1, inner)))
                    });
                }
            }
            Operation::AllGather => {
                let one = |server| vec![at(server, place)];
                let gathered = all.ring(outside, 0..outer - 1, &[], |step| {
                    (one(back(server, step, outer)), one(back(server, step + 1, outer)))
                });
                // What comes around a ring comes in order, so all of it is there with the last.
                all.ring(inside, 0..inner - 1, &gathered, |step| {
                    (of_place(back(place, step, inner)), of_place(back(place, step + 1, inner)))
                });
            }
            Operation::AllToAll => {
                // To each other place of the server, what goes to that place of all servers.
                let to_place =
                    |src: u32, place: u32| (0..outer).map(move |server| src * n + at(server, place));
                let mut here = Vec::new();
                for by in 1..inner {
                    all.send(at(server, place + by), to_place(rank, (place + by) % inner).collect(), &[]);
                }
                for by in 1..inner {
                    let from = at(server, place + inner - by);
                    here.push(all.recv(from, to_place(from, place).collect(), &[]));
                }
                // To each other server, what comes from all places of this one.
                let between = |from: u32, to: u32| {
                    (0..inner).map(|other| at(from, other) * n + at(to, place)).collect::<Vec<u32>>()
                };
                for by in 1..outer {
                    let to = (server + by) % outer;
                    all.send(at(to, place), between(server, to), &here);
                }
                for by in 1..outer {
                    let from = (server + outer - by) % outer;
                    all.recv(at(from, place), between(from, server), &here);
                }
            }
            Operation::Broadcast => unreachable!("refused"),
        }
    }
}

/// The parent of a rank in one of two binary trees of n ranks in which every rank is a leaf at least once, but for the root; `None` for the root.
///
/// In the first tree all odd ranks are leaves, the ranks with one trailing zero in binary are above them, and so on up to 0. The second one is its
/// mirror image where n is even, and is shifted by one where it is odd.
fn parent(rank: u32, n: u32, tree: u32) -> Option<u32> {
    let first = |rank: u32| {
        if rank == 0 {
            return None;
        }
        let bit = rank & rank.wrapping_neg();
        let above = (rank ^ bit) | (bit << 1);
        Some(if above < n { above } else { rank ^ bit })
    };
    match (tree, n.is_multiple_of(2)) {
        (0, _) => first(rank),
        (_, true) => first(n - 1 - rank).map(|parent| n - 1 - parent),
        (_, false) => first((rank + n - 1) % n).map(|parent| (parent + 1) % n),
    }
}
