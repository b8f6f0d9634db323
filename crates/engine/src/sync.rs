//! Locks and atomics: those of the standard library. With `--cfg loom`, those of loom, which runs a test in every interleaving of its
//! threads, with every value that memory orderings allow them to read (`make loom`).
//!
//! Loom supports no sequentially consistent loads and stores, only such fences. So code that relies on a single total order uses a fence.

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
