//! What threads tell each other between two epochs: mail, which window comes next, and whether to stop.

use std::sync::PoisonError;

use crate::barrier::{Barrier, Broken, Guard, Patience};
use crate::sync::{AtomicBool, AtomicU64, Mutex, Ordering};
use crate::team::Work;

/// Where threads meet. Everything is kept twice, for even and odd meetings, so that one barrier per meeting suffices: nobody writes a
/// copy that a slower thread may still be reading.
pub(crate) struct Exchange<L> {
    barrier: Barrier,
    /// `mail[parity][from][to]`
    mail: [Vec<Vec<Mutex<Letters<L>>>>; 2],
    /// First window with something to do, per thread.
    next: [Vec<AtomicU64>; 2],
    stop: [AtomicBool; 2],
    stopped: AtomicBool,
    tally: Vec<AtomicU64>,
    messages: Vec<AtomicU64>,
    work: Vec<[AtomicU64; 2]>,
}

impl<L: Copy + Default> Exchange<L> {
    pub(crate) fn new(threads: usize) -> Self {
        let per_thread = || (0..threads).map(|_| AtomicU64::new(0)).collect();
        let mailboxes = |_| (0..threads).map(|_| Mutex::new(Letters::default())).collect();
        let boxes = || (0..threads).map(mailboxes).collect();
        Exchange {
            barrier: Barrier::new(threads),
            mail: [boxes(), boxes()],
            next: [per_thread(), per_thread()],
            stop: [AtomicBool::new(false), AtomicBool::new(false)],
            stopped: AtomicBool::new(false),
            tally: per_thread(),
            messages: per_thread(),
            work: (0..threads).map(|_| [AtomicU64::new(0), AtomicU64::new(0)]).collect(),
        }
    }

    /// The part of thread number `me`; the others are told if it panics.
    pub(crate) fn party(&self, me: usize) -> Party<'_, L> {
        Party {
            exchange: self,
            me,
            parity: 0,
            patience: Patience::new(self.next[0].len()),
            _guard: self.barrier.guard(),
        }
    }

    /// Whether a thread has [stopped](Party::stop) the run.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }
}

/// Letters from one thread to another.
// What a thread writes all the time lies in lines of the cache of its own, and not in those that a processor fetches with another thread's.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Letters<L> {
    /// Those, and places for more.
    places: Vec<L>,
    count: usize,
}

impl<L: Copy + Default> Letters<L> {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a letter, and makes it in its place.
    #[inline(always)]
    pub(crate) fn push(&mut self, make: impl FnOnce() -> L) {
        if self.count == self.places.len() {
            self.lengthen();
        }
        self.places[self.count] = make();
        self.count += 1;
    }

    #[cold]
    #[inline(never)]
    fn lengthen(&mut self) {
        self.places.resize((2 * self.count).max(16), L::default());
    }

    /// Takes all out, in the order in which they came.
    fn take(&mut self, receive: impl FnMut(&L)) {
        self.places[..self.count].iter().for_each(receive);
        self.count = 0;
    }
}

/// One thread's part in the exchange.
pub(crate) struct Party<'e, L> {
    exchange: &'e Exchange<L>,
    me: usize,
    /// Of the next meeting.
    parity: usize,
    patience: Patience,
    _guard: Guard<'e>,
}

impl<L: Copy + Default> Party<'_, L> {
    /// Hands in mail, by thread, and the first window in which this thread has something to do (`u64::MAX`: in none). When all have
    /// done so, `receive` gets the mail to this thread, and all hear the same: the first window of any, if there is one and nobody has
    /// stopped the run.
    pub(crate) fn meet(
        &mut self,
        busy: u64,
        mail: &mut [Letters<L>],
        mut receive: impl FnMut(&L),
    ) -> Result<Option<u64>, Broken> {
        let &mut Party { exchange, me, parity, .. } = self;
        exchange.next[parity][me].store(busy, Ordering::Release);
        for (letters, to) in mail.iter_mut().zip(&exchange.mail[parity][me]) {
            if !letters.is_empty() {
                std::mem::swap(letters, &mut *lock(to));
            }
        }
        exchange.barrier.wait(&mut self.patience)?;
        for from in &exchange.mail[parity] {
            lock(&from[me]).take(&mut receive);
        }
        if exchange.stop[parity].load(Ordering::Acquire) {
            exchange.stopped.store(true, Ordering::Release);
            return Ok(None);
        }
        self.parity ^= 1;
        let next = exchange.next[parity].iter().map(|next| next.load(Ordering::Acquire)).min();
        Ok(next.filter(|&window| window != u64::MAX))
    }

    /// Ends the run of all threads at their next meeting.
    pub(crate) fn stop(&self) {
        self.exchange.stop[self.parity].store(true, Ordering::Release);
    }

    /// Notes for the observer what this thread has counted, and what it has done since threads were last compared.
    pub(crate) fn note(&self, tally: u64, messages: u64, work: Work) {
        self.exchange.tally[self.me].store(tally, Ordering::Relaxed);
        self.exchange.messages[self.me].store(messages, Ordering::Relaxed);
        for (note, work) in self.exchange.work[self.me].iter().zip(work) {
            note.store(work, Ordering::Relaxed);
        }
    }

    /// What all threads have noted. Of slower ones it may be from before.
    pub(crate) fn noted(&self) -> (u64, u64) {
        let sum = |counts: &[AtomicU64]| {
            counts.iter().fold(0, |sum: u64, count| sum.wrapping_add(count.load(Ordering::Relaxed)))
        };
        let messages = sum(&self.exchange.messages);
        // What a slower thread has not noted yet another one may have taken off.
        (sum(&self.exchange.tally), if messages.cast_signed() < 0 { 0 } else { messages })
    }

    /// What all threads have noted of what they had to do.
    pub(crate) fn noted_work(&self) -> impl Iterator<Item = Work> {
        let load = |work: &[AtomicU64; 2]| [0, 1].map(|side| work[side].load(Ordering::Relaxed));
        self.exchange.work.iter().map(load)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> impl std::ops::DerefMut<Target = T> + '_ {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In every order in which threads can meet.
#[cfg(all(test, loom))]
mod loom_tests {
    use loom::sync::Arc;

    use super::*;
    use crate::barrier::loom_tests::explore;

    /// The windows that a thread hears of, and with each the letters that came: (meeting, sender).
    type Heard = Vec<(Option<u64>, Vec<(u64, usize)>)>;

    /// Each of `parties` threads writes to all, itself included, before every meeting until a thread hears of no further window. The thread
    /// with the highest number stops the run before meeting `stop`.
    fn correspond(parties: usize, meetings: u64, stop: Option<u64>) -> Vec<Heard> {
        let exchange = Arc::new(Exchange::new(parties));
        let work = move |exchange: &Exchange<(u64, usize)>, me: usize| {
            let mut party = exchange.party(me);
            let mut heard = Heard::new();
            let mut mail: Vec<Letters<(u64, usize)>> = (0..parties).map(|_| Letters::default()).collect();
            for meeting in 0.. {
                if stop == Some(meeting) && me + 1 == parties {
                    party.stop();
                }
                // One of them has the next window, the others a later one or none.
                let is_first = meeting % parties as u64 == me as u64;
                let busy = if is_first && meeting < meetings { 10 * meeting } else { u64::MAX - me as u64 };
                let busy = if meeting < meetings { busy } else { u64::MAX };
                mail.iter_mut().for_each(|letters| letters.push(|| (meeting, me)));
                let mut letters = Vec::new();
                let window = party.meet(busy, &mut mail, |&letter| letters.push(letter));
                let window = window.unwrap_or_else(|Broken| panic!("nobody panics"));
                assert!(mail.iter().all(Letters::is_empty), "what comes back is empty");
                heard.push((window, letters));
                if window.is_none() {
                    break;
                }
            }
            heard
        };
        let others: Vec<_> = (1..parties)
            .map(|me| {
                let exchange = exchange.clone();
                loom::thread::spawn(move || work(&exchange, me))
            })
            .collect();
        let mut heard = vec![work(&exchange, 0)];
        heard.extend(others.into_iter().map(|other| other.join().unwrap()));
        assert_eq!(exchange.is_stopped(), stop.is_some());
        heard
    }

    /// What all are to hear: of meeting after meeting the window, and one letter from each.
    fn expected(parties: usize, windows: &[Option<u64>]) -> Heard {
        let letters = |meeting| (0..parties).map(|from| (meeting, from)).collect();
        (0..).zip(windows).map(|(meeting, &window)| (window, letters(meeting))).collect()
    }

    #[test]
    fn loom_letters_come_once_at_the_next_meeting_and_all_hear_the_same_window() {
        explore(5, || {
            let all = correspond(2, 2, None);
            assert!(all.iter().all(|heard| *heard == expected(2, &[Some(0), Some(10), None])), "{all:?}");
        });
    }

    #[test]
    fn loom_three_threads_agree() {
        explore(2, || {
            let all = correspond(3, 1, None);
            assert!(all.iter().all(|heard| *heard == expected(3, &[Some(0), None])), "{all:?}");
        });
    }

    #[test]
    fn loom_who_stops_the_run_stops_all_at_the_same_meeting() {
        explore(5, || {
            let all = correspond(2, 9, Some(1));
            assert!(all.iter().all(|heard| *heard == expected(2, &[Some(0), None])), "{all:?}");
        });
    }
}
