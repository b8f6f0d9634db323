//! Locks and atomics: those of the standard library. With `--cfg loom`, those of loom, which runs a test in every order in which threads
//! can meet, and shows them every value that their orderings let them see (`make test` does so).
//!
//! Loom knows no sequentially consistent loads and stores, only such fences. So what relies on one order for all writes it as a fence.

#[cfg(loom)]
pub(crate) use loom::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Condvar, Mutex},
};
#[cfg(not(loom))]
pub(crate) use std::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence},
    sync::{Condvar, Mutex},
};
