//! Locks and atomics: those of the standard library. With `--cfg loom`, those of loom, which runs a test in every order in which threads
//! can meet, and shows them every value that their orderings let them see (`make test` does so).
//!
//! Loom knows no sequentially consistent loads and stores, only such fences. So what relies on one order for all writes it as a fence.

use std::num::NonZero;
use std::sync::LazyLock;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

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

/// The time since some instant. None passes under loom, where a test is to run the same whenever it runs.
pub(crate) fn now() -> Duration {
    static BEGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    if cfg!(loom) { Duration::ZERO } else { BEGIN.elapsed() }
}

/// How many threads can run at once, if nobody else wants to.
pub(crate) fn cores() -> usize {
    static CORES: LazyLock<usize> = LazyLock::new(|| available_parallelism().map_or(1, NonZero::get));
    if cfg!(loom) { usize::MAX } else { *CORES }
}
