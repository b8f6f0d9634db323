//! A barrier for epochs that last from microseconds to milliseconds.

use std::sync::PoisonError;
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use crate::sync::{AtomicBool, AtomicUsize, Condvar, Mutex, Ordering, fence, spin_loop};

/// Lets `threads` threads wait for each other: spinning for a while, then asleep.
///
/// On idle cores the others are nearly there, and to be woken takes longer than to wait for them. Where threads share cores, one that spins
/// keeps the others from arriving; so only a small part of a thread's time may be spent on spinning without success. If a thread panics, the
/// others are released with an error instead of waiting for ever.
pub(crate) struct Barrier {
    threads: usize,
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
            self.0.break_barrier();
        }
    }
}

/// For how long a thread may spin: a budget that a spin without success uses up, and which grows by a part of all time. It is full again after a wait that was over soon, though the thread was
/// asleep by then: to go on spinning would have been shorter than to be woken.
pub(crate) struct SpinBudget {
    left: Duration,
    max: Duration,
    /// When the latest wait was over.
    since: Instant,
}

impl SpinBudget {
    /// The largest budget: a few times what it takes to be woken. Under loom, where no test may depend on the time, it is zero and a thread looks once.
    const MAX: Duration = if cfg!(loom) { Duration::ZERO } else { Duration::from_micros(200) };
    /// One part in this many of all time may be spent on spinning without success.
    const PARTS: u32 = 32;

    /// The budget of one of this many threads: zero if they cannot all run at once.
    pub(crate) fn new(threads: usize) -> Self {
        let max = if threads <= cores() { Self::MAX } else { Duration::ZERO };
        SpinBudget { left: max, max, since: Instant::now() }
    }

    /// Spins as long as the budget lasts, then sleeps, until the wait is over.
    fn wait(&mut self, is_over: impl Fn() -> bool, sleep: impl FnOnce()) {
        let begin = Instant::now();
        let budget = (self.left + (begin - self.since) / Self::PARTS).min(self.max);
        let sleeps = !spin(is_over, || begin.elapsed() >= budget);
        if sleeps {
            sleep();
        }
        self.since = Instant::now();
        self.left = match sleeps {
            false => budget,
            true if self.since - begin < self.max => self.max,
            true => Duration::ZERO,
        };
    }
}

/// Spins until the wait is over, or enough of it; returns whether it is over.
fn spin(is_over: impl Fn() -> bool, is_enough: impl Fn() -> bool) -> bool {
    loop {
        for _ in 0..SPINS {
            if is_over() {
                return true;
            }
            spin_loop();
        }
        if is_enough() {
            return false;
        }
    }
}

/// How many threads can run at once. To ask takes microseconds, so it is asked once.
fn cores() -> usize {
    static CORES: std::sync::OnceLock<usize> = std::sync::OnceLock::new();
    *CORES.get_or_init(|| available_parallelism().map_or(1, usize::from))
}

/// Spins from one look at the clock to the next: about a microsecond.
const SPINS: u32 = if cfg!(loom) { 1 } else { 16 };

impl Barrier {
    pub(crate) fn new(threads: usize) -> Self {
        Barrier {
            threads,
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

    /// Waits for all threads. What any of them wrote before is visible to all after.
    pub(crate) fn wait(&self, spin_budget: &mut SpinBudget) -> Result<(), Broken> {
        let generation = self.generation.load(Ordering::Acquire);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.generation.store(generation.wrapping_add(1), Ordering::Release);
            self.wake();
            return Ok(());
        }
        let is_over = || self.generation.load(Ordering::Acquire) != generation;
        let is_broken = || self.broken.load(Ordering::Acquire);
        let ends = || is_over() || is_broken();
        spin_budget.wait(ends, || self.sleep(ends));
        if is_over() { Ok(()) } else { Err(Broken) }
    }

    fn sleep(&self, ends: impl Fn() -> bool) {
        let mut lock = self.lock.lock().unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        // Pairs with the fence in `wake`: the thread that releases the barrier sees a sleeper, or the sleeper sees that it is released, as
        // both read after they have written.
        fence(Ordering::SeqCst);
        while !ends() {
            lock = self.released.wait(lock).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::Relaxed);
    }

    /// Releases all others with an error, as one thread will never arrive.
    fn break_barrier(&self) {
        self.broken.store(true, Ordering::Release);
        self.wake();
    }

    /// Wakes all sleepers, after what they wait for was written.
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

    /// Threads of unequal speed: none is ever a generation ahead, however many share a core, whether they spin or sleep.
    #[test]
    fn no_thread_gets_ahead() {
        for threads in [2, 3, 8] {
            let barrier = Barrier::new(threads);
            let rounds: Vec<AtomicUsize> = (0..threads).map(|_| AtomicUsize::new(0)).collect();
            std::thread::scope(|scope| {
                for me in 0..threads {
                    let (barrier, rounds) = (&barrier, &rounds);
                    scope.spawn(move || {
                        let mut spin_budget = SpinBudget::new(threads);
                        for round in 0..300 {
                            if me == round % threads && round % 10 == 0 {
                                std::thread::sleep(Duration::from_micros(300));
                            }
                            rounds[me].store(round, Ordering::SeqCst);
                            assert!(barrier.wait(&mut spin_budget).is_ok());
                            assert!(rounds.iter().all(|other| other.load(Ordering::SeqCst) >= round));
                            assert!(barrier.wait(&mut spin_budget).is_ok());
                        }
                    });
                }
            });
        }
    }

    /// After a wait that outlasted it the budget grows again by a part of the time, and not at all where threads share cores.
    #[test]
    fn the_spin_budget_is_a_part_of_the_time() {
        let pause = || std::thread::sleep(Duration::from_millis(2));
        let mut spin_budget = SpinBudget::new(1);
        assert_eq!(spin_budget.left, SpinBudget::MAX);
        spin_budget.wait(|| false, pause);
        assert!(spin_budget.left.is_zero());
        pause();
        spin_budget.wait(|| true, || panic!("it is over"));
        let earned = spin_budget.left;
        assert!(earned >= Duration::from_millis(2) / SpinBudget::PARTS && earned <= SpinBudget::MAX);
        let begin = Instant::now();
        spin_budget.wait(|| false, || assert!(begin.elapsed() >= earned));

        let mut spin_budget = SpinBudget::new(usize::MAX);
        pause();
        spin_budget.wait(|| true, || panic!("it is over"));
        assert!(spin_budget.left.is_zero());
        spin_budget.wait(|| false, || ());
        assert!(spin_budget.left.is_zero());
    }

    /// A thread that slept through a short wait spins the next time; it may be stopped in one of the attempts.
    #[test]
    fn the_spin_budget_is_full_after_a_short_wait() {
        let mut spin_budget = SpinBudget::new(1);
        let refills = |_| {
            (spin_budget.left, spin_budget.since) = (Duration::ZERO, Instant::now());
            spin_budget.wait(|| false, || ());
            spin_budget.left == SpinBudget::MAX
        };
        assert!((0..100).any(refills));
    }

    /// Sleepers are released, too.
    #[test]
    fn a_panic_releases_the_others() {
        let barrier = Barrier::new(3);
        let outcome = std::panic::catch_unwind(|| {
            std::thread::scope(|scope| {
                let others: Vec<_> =
                    (0..2).map(|_| scope.spawn(|| barrier.wait(&mut SpinBudget::new(3)).is_err())).collect();
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

/// In every interleaving of the threads.
#[cfg(all(test, loom))]
pub(crate) mod loom_tests {
    use loom::sync::Arc;

    use super::*;

    /// Runs a test in all interleavings with at most this many preemptions.
    pub(crate) fn explore(preemptions: usize, test: impl Fn() + Sync + Send + 'static) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(test);
    }

    /// Some threads run rounds with a barrier after each. What each wrote before it, all see behind it, and no thread is ahead of it.
    fn run_rounds(threads: usize, rounds: usize) {
        let shared = Arc::new((Barrier::new(threads), [(); 3].map(|()| AtomicUsize::new(0))));
        let work = move |(barrier, places): &(Barrier, [AtomicUsize; 3]), me: usize| {
            let mut spin_budget = SpinBudget::new(threads);
            for round in 1..=rounds {
                // Relaxed: what orders it is the barrier alone.
                places[me].store(round, Ordering::Relaxed);
                assert!(barrier.wait(&mut spin_budget).is_ok());
                for place in &places[..threads] {
                    let place = place.load(Ordering::Relaxed);
                    assert!(place == round || place == round + 1, "at {place} behind barrier {round}");
                }
            }
        };
        let others: Vec<_> = (1..threads)
            .map(|me| {
                let shared = shared.clone();
                loom::thread::spawn(move || work(&shared, me))
            })
            .collect();
        work(&shared, 0);
        others.into_iter().for_each(|other| other.join().unwrap());
    }

    #[test]
    fn loom_two_threads_stay_in_step_awake_or_asleep() {
        explore(5, || run_rounds(2, 3));
    }

    #[test]
    fn loom_three_threads_stay_in_step() {
        explore(1, || run_rounds(3, 2));
        explore(2, || run_rounds(3, 1));
    }

    /// Whether they are about to arrive, spin or sleep.
    #[test]
    fn loom_a_broken_barrier_releases_the_others() {
        explore(3, || {
            let barrier = Arc::new(Barrier::new(3));
            let others = [(); 2].map(|()| {
                let barrier = barrier.clone();
                loom::thread::spawn(move || barrier.wait(&mut SpinBudget::new(3)).is_err())
            });
            barrier.break_barrier();
            assert!(others.into_iter().all(|other| other.join().unwrap()));
        });
    }
}
