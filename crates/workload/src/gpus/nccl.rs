//! Which algorithm NCCL would take.

use netloom_units::{Bytes, Rate};

use super::transfers::{Method, Operation};

/// NCCL's latencies for its protocol Simple, in microseconds (NCCL 2, `src/graph/tuning.cc`, base and hardware latencies): what a collective takes beside
/// its steps, a step over the network, and a step inside a server by ring and tree.
const BASE: f64 = 8.4;
const NETWORK: f64 = 14.0;
const INSIDE_RING: f64 = 3.4;
const INSIDE_TREE: f64 = 4.0;

/// The share of a ring's bandwidth that a tree reaches.
const TREE_SHARE: f64 = 0.92;

/// The method of an operation among `ranks`, `inner` of them in each server, where each has a NIC of this rate.
///
/// Only an all-reduce has a choice: the time of a ring is that of 2 (n - 1) steps, of which those between servers take longer, that of a tree is
/// twice its depth. A ring moves 2 (n - 1)/n of the bytes at the NIC's rate, a tree twice the bytes at 92% of it. With equal times, the ring.
pub(crate) fn choose(operation: Operation, ranks: u32, inner: u32, size: Bytes, rate: Rate) -> Method {
    match operation {
        Operation::AllToAll => return Method::Direct,
        Operation::AllReduce => {}
        _ => return Method::Ring,
    }
    #[expect(clippy::cast_precision_loss, reason = "a model of times within some per cent")]
    let microseconds = size.0 as f64 * 8.0 / rate.0 as f64 * 1e6;
    let (n, servers) = (f64::from(ranks), f64::from(ranks / inner));
    let outside = 2.0 * (servers - 1.0);
    let ring = BASE
        + (2.0 * (n - 1.0) - outside) * INSIDE_RING
        + outside * NETWORK
        + 2.0 * (n - 1.0) / n * microseconds;
    let depth = f64::from((ranks / inner).ilog2());
    let tree =
        BASE + 2.0 * (f64::from(inner - 1) * INSIDE_TREE + depth * NETWORK) + 2.0 * microseconds / TREE_SHARE;
    if ring <= tree { Method::Ring } else { Method::DoubleBinaryTree }
}
