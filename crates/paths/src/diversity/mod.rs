//! How many disjoint paths join routers, and how far pairs get in each other's way (FatPaths sec. IV).

mod exact;
mod greedy;
mod interference;

pub use exact::{MAX_EXACT_LENGTH, length_bounded_cut};
pub use greedy::GreedyDisjointPaths;
pub use interference::{interference_exact, interference_greedy};
