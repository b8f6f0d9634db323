//! A barrier for epochs that last microseconds.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Lets `parties` threads wait for each other: spins briefly, then yields the processor.
///
/// An operating-system barrier would sleep and wake every few microseconds. If a party panics, the others are
/// released and told so instead of waiting for ever.
pub(crate) struct Barrier {
    parties: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    broken: AtomicBool,
}

/// Another thread panicked.
pub(crate) struct Broken;

/// Breaks the barrier if its thread unwinds.
pub(crate) struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.broken.store(true, Ordering::Release);
        }
    }
}

/// Spins before yielding: about the length of an uneven epoch.
const SPINS: u32 = 2_000;

impl Barrier {
    pub(crate) fn new(parties: usize) -> Self {
        Barrier {
            parties,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
        }
    }

    pub(crate) fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    pub(crate) fn wait(&self) -> Result<(), Broken> {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            return Ok(());
        }
        let mut spins = 0;
        while self.generation.load(Ordering::Acquire) == generation {
            if self.broken.load(Ordering::Acquire) {
                return Err(Broken);
            }
            spins += 1;
            if spins < SPINS {
                std::hint::spin_loop();
            } else {
                std::thread::yield_now();
            }
        }
        Ok(())
    }
}
