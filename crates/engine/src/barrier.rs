//! A barrier for epochs that last from microseconds to milliseconds.

use std::sync::PoisonError;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, AtomicUsize, Condvar, Mutex, Ordering, fence, spin_loop};

/// Lets `parties` threads wait for each other: awake for a while, then asleep.
///
/// On idle cores the others are nearly there, and to be woken takes longer than to wait for them. Where threads share cores, one that waits awake
/// keeps the others from coming; so only a small part of a thread's time may go into waiting awake in vain. If a party panics, the
/// others are released and told so instead of waiting for ever.
pub(crate) struct Barrier {
    parties: usize,
    arrived: AtomicUsize,
    generation: AtomicUsize,
    broken: AtomicBool,
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

/// For how long a thread may wait awake. What was in vain is taken off, and a part of all time comes on.
pub(crate) struct Patience {
    left: Duration,
    most: Duration,
    /// When its latest wait was over.
    since: Instant,
}

impl Patience {
    /// What a thread has at most: a few times what it takes to be woken. Under loom, where no test may depend on the time, it has none and looks once.
    const MOST: Duration = if cfg!(loom) { Duration::ZERO } else { Duration::from_micros(200) };
    /// Of so much time one part may go into waiting awake in vain.
    const PARTS: u32 = 32;

    /// That of one of this many threads: none if they cannot all run at once.
    pub(crate) fn new(parties: usize) -> Self {
        let cores = available_parallelism().map_or(1, usize::from);
        let most = if parties <= cores { Self::MOST } else { Duration::ZERO };
        Patience { left: most, most, since: Instant::now() }
    }

    /// Waits awake, as long as there is patience left; says whether the wait is over.
    fn look(&mut self, is_over: impl Fn() -> bool) -> bool {
        let begin = Instant::now();
        self.left = (self.left + (begin - self.since) / Self::PARTS).min(self.most);
        loop {
            for _ in 0..LOOKS {
                if is_over() {
                    return true;
                }
                spin_loop();
            }
            if begin.elapsed() >= self.left {
                self.left = Duration::ZERO;
                return false;
            }
        }
    }
}

/// From one look at the time to the next: about a microsecond.
const LOOKS: u32 = if cfg!(loom) { 1 } else { 16 };

impl Barrier {
    pub(crate) fn new(parties: usize) -> Self {
        Barrier {
            parties,
            arrived: AtomicUsize::new(0),
            generation: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            sleepers: AtomicUsize::new(0),
            lock: Mutex::new(()),
            released: Condvar::new(),
        }
    }

    pub(crate) fn guard(&self) -> Guard<'_> {
        Guard(self)
    }

    /// Waits for all parties. What any of them wrote before is seen by all after.
    pub(crate) fn wait(&self, patience: &mut Patience) -> Result<(), Broken> {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.parties {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            self.wake();
            return Ok(());
        }
        let is_over = || self.generation.load(Ordering::Acquire) != generation;
        let is_broken = || self.broken.load(Ordering::Acquire);
        let ends = || is_over() || is_broken();
        if !patience.look(ends) {
            self.sleep(ends);
        }
        patience.since = Instant::now();
        if is_over() { Ok(()) } else { Err(Broken) }
    }

    fn sleep(&self, ends: impl Fn() -> bool) {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // The other half of this fence is in `wake`: who releases the barrier sees a sleeper, or the sleeper sees that it is released, as
        // both look after they have written.
        fence(Ordering::SeqCst);
        while !ends() {
            lock = self.released.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
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
            // A thread that has counted itself sleeps once the lock is free.
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
                        let mut patience = Patience::new(parties);
                        for round in 0..300 {
                            if me == round % parties && round % 10 == 0 {
                                std::thread::sleep(Duration::from_micros(300));
                            }
                            rounds[me].store(round, Ordering::SeqCst);
                            assert!(barrier.wait(&mut patience).is_ok());
                            assert!(rounds.iter().all(|other| other.load(Ordering::SeqCst) >= round));
                            assert!(barrier.wait(&mut patience).is_ok());
                        }
                    });
                }
            });
        }
    }

    /// Who waits in vain is as patient again as its time since then allows, and not at all where threads share cores.
    #[test]
    fn patience_is_a_part_of_the_time() {
        let mut patience = Patience::new(1);
        assert_eq!(patience.left, Patience::MOST);
        assert!(!patience.look(|| false) && patience.left.is_zero());
        patience.since = Instant::now();
        std::thread::sleep(Duration::from_millis(2));
        assert!(patience.look(|| true));
        let earned = patience.left;
        assert!(earned >= Duration::from_millis(2) / Patience::PARTS && earned <= Patience::MOST);
        let begin = Instant::now();
        assert!(!patience.look(|| false) && begin.elapsed() >= earned);

        let mut patience = Patience::new(usize::MAX);
        std::thread::sleep(Duration::from_millis(2));
        assert!(patience.look(|| true) && patience.left.is_zero());
    }

    /// Those who sleep are told as well.
    #[test]
    fn a_panic_releases_the_others() {
        let barrier = Barrier::new(3);
        let outcome = std::panic::catch_unwind(|| {
            std::thread::scope(|scope| {
                let others: Vec<_> =
                    (0..2).map(|_| scope.spawn(|| barrier.wait(&mut Patience::new(3)).is_err())).collect();
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

    /// Runs a test in all orders in which its threads are interrupted this many times at most.
    pub(crate) fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(test);
    }

    /// Some threads run rounds with a barrier after each. What each wrote before it, all see behind it, and nobody is ahead of it.
    fn pace(parties: usize, rounds: usize) {
        let shared = Arc::new((Barrier::new(parties), [(); 3].map(|()| AtomicUsize::new(0))));
        let work = move |(barrier, places): &(Barrier, [AtomicUsize; 3]), me: usize| {
            let mut patience = Patience::new(parties);
            for round in 1..=rounds {
                // Relaxed: what orders it is the barrier alone.
                places[me].store(round, Ordering::Relaxed);
                assert!(barrier.wait(&mut patience).is_ok());
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
                loom::thread::spawn(move || barrier.wait(&mut Patience::new(3)).is_err())
            });
            barrier.give_up();
            assert!(others.into_iter().all(|other| other.join().unwrap()));
        });
    }
}
