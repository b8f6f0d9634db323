//! What threads exchange between two epochs: the events in their outboxes, the next window, and whether to stop.

use std::sync::PoisonError;

use crate::barrier::{Barrier, Broken, Guard, SpinBudget};
use crate::engine::Division;
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::team::Work;

/// The state that threads share. Everything is kept twice, for even and odd sync rounds, so that one barrier per round suffices: no thread writes a
/// copy that a slower one may still be reading.
pub(crate) struct Exchange<E> {
    barrier: Barrier,
    /// `outboxes[parity][from][to]`
    outboxes: [Vec<Vec<Mutex<Outbox<E>>>>; 2],
    /// First window with something to do, per thread.
    next: [Vec<AtomicU64>; 2],
    stop: [AtomicBool; 2],
    stopped: AtomicBool,
    tally: Vec<AtomicU64>,
    messages: Vec<AtomicU64>,
    work: Vec<[AtomicU64; 2]>,
    /// Work of the last epoch, per thread.
    of_epoch: [Vec<AtomicU64>; 2],
}

impl<E: Copy + Default> Exchange<E> {
    pub(crate) fn new(threads: usize) -> Self {
        let per_thread = || (0..threads).map(|_| AtomicU64::new(0)).collect();
        let row_of = |_| (0..threads).map(|_| Mutex::new(Outbox::default())).collect();
        let matrix = || (0..threads).map(row_of).collect();
        Exchange {
            barrier: Barrier::new(threads),
            outboxes: [matrix(), matrix()],
            next: [per_thread(), per_thread()],
            stop: [AtomicBool::new(false), AtomicBool::new(false)],
            stopped: AtomicBool::new(false),
            tally: per_thread(),
            messages: per_thread(),
            work: (0..threads).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect(),
            of_epoch: [per_thread(), per_thread()],
        }
    }

    /// The handle of thread number `me`; the others are released if it panics.
    pub(crate) fn thread(&self, me: usize) -> ThreadHandle<'_, E> {
        ThreadHandle {
            exchange: self,
            me,
            parity: 0,
            division: Division::default(),
            spin_budget: SpinBudget::new(self.next[0].len()),
            _guard: self.barrier.guard(),
        }
    }

    /// Whether a thread has [stopped](ThreadHandle::stop) the run.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// Events from one thread to another.
// What a thread writes all the time has cache lines of its own, and pairs of them, as processors prefetch the other line of a pair: no false sharing.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Outbox<E> {
    /// The events, and room for more.
    events: Vec<E>,
    count: usize,
}

impl<E: Copy + Default> Outbox<E> {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds an event, made in its place.
    #[inline(always)]
    pub(crate) fn push(&mut self, make: impl FnOnce() -> E) {
        if self.count == self.events.len() {
            self.grow();
        }
        self.events[self.count] = make();
        self.count += 1;
    }

    #[cold]
    #[inline(never)]
    fn grow(&mut self) {
        self.events.resize((2 * self.count).max(16), E::default());
    }

    /// Takes all out, in the order in which they were added.
    fn drain(&mut self, receive: impl FnMut(&E)) {
        self.events[..self.count].iter().for_each(receive);
        self.count = 0;
    }
}

/// One thread's side of the exchange.
pub(crate) struct ThreadHandle<'e, E> {
    exchange: &'e Exchange<E>,
    me: usize,
    /// Of the next sync round.
    parity: usize,
    /// Of all epochs so far, if this is the first thread.
    division: Division,
    spin_budget: SpinBudget,
    _guard: Guard<'e>,
}

impl<E: Copy + Default> ThreadHandle<'_, E> {
    /// The first part of a sync round: hands in the outboxes, by destination thread, and the first window in which this thread has something to do (`u64::MAX`: none).
    pub(crate) fn hand_in(&self, first: u64, outboxes: &mut [Outbox<E>]) {
        let &ThreadHandle { exchange, me, parity, .. } = self;
        exchange.next[parity][me].store(first, Ordering::Release);
        for (outbox, shared) in outboxes.iter_mut().zip(&exchange.outboxes[parity][me]) {
            if !outbox.is_empty() {
                std::mem::swap(outbox, &mut *lock(shared));
            }
        }
    }

    /// The second part: waits until all threads have handed in what they have.
    pub(crate) fn meet(&mut self) -> Result<(), Broken> {
        self.exchange.barrier.wait(&mut self.spin_budget)
    }

    /// The last part: `receive` gets the events for this thread, and all threads get one answer: the first window of any, if there is one and no thread has
    /// stopped the run.
    pub(crate) fn take(&mut self, mut receive: impl FnMut(&E)) -> Option<u64> {
        let &mut ThreadHandle { exchange, me, parity, .. } = self;
        if me == 0 {
            let of_epoch = || exchange.of_epoch[parity].iter().map(|work| work.load(Ordering::Relaxed));
            self.division.work += of_epoch().sum::<u64>();
            self.division.longest += of_epoch().max().unwrap_or(0);
        }
        for from in &exchange.outboxes[parity] {
            lock(&from[me]).drain(&mut receive);
        }
        if exchange.stop[parity].load(Ordering::Acquire) {
            exchange.stopped.store(true, Ordering::Release);
            return None;
        }
        self.parity ^= 1;
        let next = exchange.next[parity].iter().map(|next| next.load(Ordering::Acquire)).min();
        next.filter(|&window| window != u64::MAX)
    }

    /// Ends the run of all threads in their next sync round.
    pub(crate) fn stop(&self) {
        self.exchange.stop[self.parity].store(true, Ordering::Release);
    }

    /// Publishes for the observer what this thread has counted, its work since the threads' work was last compared, and that of the epoch that it ends.
    pub(crate) fn publish(&mut self, tally: u64, messages: u64, work: Work, of_epoch: u64) {
        self.division.epochs += 1;
        self.exchange.of_epoch[self.parity][self.me].store(of_epoch, Ordering::Relaxed);
        self.exchange.tally[self.me].store(tally, Ordering::Relaxed);
        self.exchange.messages[self.me].store(messages, Ordering::Relaxed);
        for (published, work) in self.exchange.work[self.me].iter().zip(work) {
            published.store(work, Ordering::Relaxed);
        }
    }

    /// How the work of all epochs that are over was divided, as the first thread has seen it.
    pub(crate) fn division(&self) -> Division {
        self.division
    }

    /// Sums of what all threads have published: progress counts and messages. Those of slower threads may be of an earlier epoch.
    pub(crate) fn published(&self) -> (u64, u64) {
        let sum = |counts: &[AtomicU64]| {
            counts.iter().fold(0, |sum: u64, count| sum.wrapping_add(count.load(Ordering::Relaxed)))
        };
        let messages = sum(&self.exchange.messages);
        // A timer may be subtracted by one thread before a slower one has published it.
        (sum(&self.exchange.tally), if messages.cast_signed() < 0 { 0 } else { messages })
    }

    /// What all threads have published of their work.
    pub(crate) fn published_work(&self) -> impl Iterator<Item = Work> {
        let load = |work: &[AtomicU64; 2]| [0, 1].map(|side| work[side].load(Ordering::Relaxed));
        self.exchange.work.iter().map(load)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In every interleaving of the threads.
#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;

    use super::*;
    use crate::barrier::loom_tests::explore;

    /// The windows that a thread agrees on, and with each the events that came: (round, sender).
    type Rounds = Vec<(Option<u64>, Vec<(u64, usize)>)>;

    /// Each of `threads` threads sends to all, itself included, before every sync round until there is no further window. The thread
    /// with the highest number stops the run before round `stop`.
    fn exchange_events(threads: usize, rounds: u64, stop: Option<u64>) -> Vec<Rounds> {
        let exchange = Arc::new(Exchange::new(threads));
        let work = move |exchange: &Exchange<(u64, usize)>, me: usize| {
            let mut thread = exchange.thread(me);
            let mut seen = Rounds::new();
            let mut outboxes: Vec<Outbox<(u64, usize)>> = (0..threads).map(|_| Outbox::default()).collect();
            for round in 0.. {
                if stop == Some(round) && me + 1 == threads {
                    thread.stop();
                }
                // One of them has the next window, the others a later one or none.
                let is_first = round % threads as u64 == me as u64;
                let first = if is_first && round < rounds { 10 * round } else { u64::MAX - me as u64 };
                let first = if round < rounds { first } else { u64::MAX };
                outboxes.iter_mut().for_each(|outbox| outbox.push(|| (round, me)));
                let mut events = Vec::new();
                thread.hand_in(first, &mut outboxes);
                thread.meet().unwrap_or_else(|Broken| panic!("no thread panics"));
                let window = thread.take(|&event| events.push(event));
                assert!(outboxes.iter().all(Outbox::is_empty), "what comes back is empty");
                seen.push((window, events));
                if window.is_none() {
                    break;
                }
            }
            seen
        };
        let others: Vec<_> = (1..threads)
            .map(|me| {
                let exchange = exchange.clone();
                loom::thread::spawn(move || work(&exchange, me))
            })
            .collect();
        let mut all = vec![work(&exchange, 0)];
        all.extend(others.into_iter().map(|other| other.join().unwrap()));
        assert_eq!(exchange.is_stopped(), stop.is_some());
        all
    }

    /// What all threads are to see: round after round the window, and one event from each thread.
    fn expected(threads: usize, windows: &[Option<u64>]) -> Rounds {
        let events = |round| (0..threads).map(|from| (round, from)).collect();
        (0..).zip(windows).map(|(round, &window)| (window, events(round))).collect()
    }

    #[test]
    fn loom_events_come_once_in_the_next_round_and_all_agree_on_the_window() {
        explore(5, || {
            let all = exchange_events(2, 2, None);
            assert!(all.iter().all(|seen| *seen == expected(2, &[Some(0), Some(10), None])), "{all:?}");
        });
    }

    #[test]
    fn loom_three_threads_agree() {
        explore(2, || {
            let all = exchange_events(3, 1, None);
            assert!(all.iter().all(|seen| *seen == expected(3, &[Some(0), None])), "{all:?}");
        });
    }

    #[test]
    fn loom_one_thread_stops_all_in_one_round() {
        explore(5, || {
            let all = exchange_events(2, 9, Some(1));
            assert!(all.iter().all(|seen| *seen == expected(2, &[Some(0), None])), "{all:?}");
        });
    }
}
