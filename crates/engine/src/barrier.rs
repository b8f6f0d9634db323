//! A barrier for epochs that last from microseconds to milliseconds.

use std::sync::PoisonError;

use crate::sync::{AtomicBool, AtomicU32, AtomicUsize, Condvar, Mutex, Ordering, fence, spin_loop};

/// Lets `parties` threads wait for each other: spins briefly, then sleeps.
///
/// On idle cores the others are nearly there, and to sleep and be woken takes longer than to wait for them. Where threads share cores, a
/// spinning thread would keep the others from coming; so waits that have ended in sleep make the next ones spin less. If a party panics, the
/// others are released and told so instead of waiting for ever.
pub(crate) struct Barrier {
    parties: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    broken: AtomicBool,
    /// How often to look before sleeping: between [`FEWEST_SPINS`] and [`MOST_SPINS`].
    spins: AtomicU32,
    sleepers: AtomicUsize,
    lock: Mutex<()>,
    released: Condvar,
}

/// Another thread panicked.
pub(crate) struct Broken;

/// Breaks the barrier if its thread unwinds.
pub(crate) struct Guard<'a>(&'a Barrier);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.give_up();
        }
    }
}

/// About the length of an uneven epoch. Under loom, where time does not pass, to look twice is to look for long.
const MOST_SPINS: u32 = if cfg!(loom) { 2 } else { 2_000 };
const FEWEST_SPINS: u32 = if cfg!(loom) { 1 } else { 16 };

impl Barrier {
    pub(crate) fn new(parties: usize) -> Self {
        Barrier {
            parties,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            spins: AtomicU32::new(MOST_SPINS),
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            released: Condvar::new(),
        }
    }

    pub(crate) fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    /// Waits for all parties. What any of them wrote before is seen by all after.
    pub(crate) fn wait(&self) -> Result<(), Broken> {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            self.wake();
            return Ok(());
        }
        let is_over = || self.generation.load(Ordering::Acquire) != generation;
        let is_broken = || self.broken.load(Ordering::Acquire);
        let most = self.spins.load(Ordering::Relaxed);
        for _ in 0..most {
            if is_over() {
                self.spins.store((2 * most).min(MOST_SPINS), Ordering::Relaxed);
                return Ok(());
            }
            if is_broken() {
                return Err(Broken);
            }
            spin_loop();
        }
        self.spins.store((most / 2).max(FEWEST_SPINS), Ordering::Relaxed);
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // The other half of this fence is in `wake`: who releases the barrier sees a sleeper, or the sleeper sees that it is released, as
        // both look after they have written.
        fence(Ordering::SeqCst);
        while !is_over() && !is_broken() {
            lock = self.released.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
        if is_over() { Ok(()) } else { Err(Broken) }
    }

    /// Tells all others that one of them will never come.
    fn give_up(&self) {
        self.broken.store(true, Ordering::Release);
        self.wake();
    }

    /// Wakes all who sleep, after what they wait for was written.
    fn wake(&self) {
        fence(Ordering::SeqCst);
        if self.sleepers.load(Ordering::Relaxed) > 0 {
            // Whoever has counted itself sleeps once the lock is free.
            drop(self.lock.lock().unwrap_or_else(PoisonError::into_inner));
            self.released.notify_all();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Threads of unequal pace: none is ever a generation ahead, however many share a core, whether they spin or sleep.
    #[test]
    fn nobody_gets_ahead() {
        for parties in [2, 3, 8] {
            let barrier = Barrier::new(parties);
            let rounds: Vec<AtomicUsize> = (0..parties).map(|_| AtomicUsize::new(0)).collect();
            std::thread::scope(|scope| {
                for me in 0..parties {
                    let (barrier, rounds) = (&barrier, &rounds);
                    scope.spawn(move || {
                        for round in 0..300 {
                            if me == round % parties && round % 10 == 0 {
                                std::thread::sleep(Duration::from_micros(300));
                            }
                            rounds[me].store(round, Ordering::SeqCst);
                            assert!(barrier.wait().is_ok());
                            assert!(rounds.iter().all(|other| other.load(Ordering::SeqCst) >= round));
                            assert!(barrier.wait().is_ok());
                        }
                    });
                }
            });
        }
    }

    /// Those who sleep are told as well.
    #[test]
    fn a_panic_releases_the_others() {
        let barrier = Barrier::new(3);
        let outcome = std::panic::catch_unwind(|| {
            std::thread::scope(|scope| {
                let others: Vec<_> = (0..2).map(|_| scope.spawn(|| barrier.wait().is_err())).collect();
                let broken = scope.spawn(|| {
                    let _guard = barrier.guard();
                    std::thread::sleep(Duration::from_millis(30));
                    panic!("on purpose");
                });
                assert!(broken.join().is_err());
                assert!(others.into_iter().all(|other| other.join().is_ok_and(|is_broken| is_broken)));
            });
        });
        assert!(outcome.is_ok());
    }
}

/// In every order in which threads can meet.
#[cfg(all(test, loom))]
pub(crate) mod loom_tests {
    use loom::sync::Arc;

    use super::*;

    /// Runs a test in all orders in which its threads are interrupted so many times at most.
    pub(crate) fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(test);
    }

    /// Some threads run rounds with a barrier after each. What each wrote before it, all see behind it, and nobody is ahead of it.
    fn pace(parties: usize, rounds: usize) {
        let shared = Arc::new((Barrier::new(parties), [(); 3].map(|()| AtomicUsize::new(0))));
        let work = move |(barrier, places): &(Barrier, [AtomicUsize; 3]), me: usize| {
            for round in 1..=rounds {
                // Relaxed: what orders it is the barrier alone.
                places[me].store(round, Ordering::Relaxed);
                assert!(barrier.wait().is_ok());
                for place in &places[..parties] {
                    let place = place.load(Ordering::Relaxed);
                    assert!(place == round || place == round + 1, "at {place} behind barrier {round}");
                }
            }
        };
        let others: Vec<_> = (1..parties)
            .map(|me| {
                let shared = shared.clone();
                loom::thread::spawn(move || work(&shared, me))
            })
            .collect();
        work(&shared, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
    }

    #[test]
    fn loom_two_threads_keep_pace_whoever_sleeps() {
        explore(5, || pace(2, 3));
    }

    #[test]
    fn loom_three_threads_keep_pace() {
        explore(1, || pace(3, 2));
        explore(2, || pace(3, 1));
    }

    /// Whether they are about to come, spin or sleep.
    #[test]
    fn loom_who_gives_up_releases_the_others() {
        explore(3, || {
            let barrier = Arc::new(Barrier::new(3));
            let others = [(); 2].map(|()| {
                let barrier = barrier.clone();
                loom::thread::spawn(move || barrier.wait().is_err())
            });
            barrier.give_up();
            assert!(others.into_iter().all(|other| other.join().unwrap()));
        });
    }
}
