//! Deficit round robin (Shreedhar and Varghese, SIGCOMM'95).

use netloom_units::recurrence::{Recur, Walk};

/// The service state of the queues of one port: which one is served, and how much each may still send.
#[derive(Clone, Debug)]
pub struct RoundRobin {
    /// The queue that is served.
    current: usize,
    /// Bytes that each may still send.
    deficit: Vec<u32>,
    /// None may still send anything.
    is_settled: bool,
}

impl Recur for RoundRobin {
    fn recur(&mut self, walk: &mut Walk) {
        let RoundRobin { current, deficit, is_settled: _ } = self;
        walk.count(*current);
        deficit.iter().for_each(|&bytes| walk.exact(bytes));
    }
}

impl RoundRobin {
    /// The first of a number of queues is served.
    pub fn new(queues: usize) -> Self {
        RoundRobin { current: 0, deficit: vec![0; queues], is_settled: true }
    }

    /// The queue that sends next among those with a bit in `ready` (at least one), and takes the size of its next packet from its deficit.
    ///
    /// A queue that comes to be served gets its quantum more; what it leaves of it is lost when it has nothing to send, so that an idle queue's
    /// share goes to the others. Every quantum must suffice for the largest packet.
    #[inline]
    pub fn pick(&mut self, ready: u32, quanta: &[u32], size: impl Fn(usize) -> u32) -> usize {
        if ready & (ready - 1) == 0 {
            let queue = ready.trailing_zeros() as usize;
            self.serve_only(queue, quanta, size(queue));
            return queue;
        }
        self.pick_among(ready, quanta, size)
    }

    /// [`Self::pick`] where no queue may still send anything: the next queue begins its turn, whatever the size of its packet. The packet is [taken off](Self::take_off) afterwards. `None` where some may.
    #[inline(always)]
    pub(crate) fn begin_turn(&mut self, ready: u32) -> Option<usize> {
        if !self.is_settled {
            return None;
        }
        self.current = self.after_current(ready);
        Some(self.current)
    }

    /// A packet of the queue that has [begun its turn](Self::begin_turn) is sent. `quantum`: that of all queues if all have the same, otherwise 0.
    #[inline(always)]
    pub(crate) fn take_off(&mut self, size: u32, quantum: u32, quanta: &[u32]) {
        if size != quantum {
            self.leave_rest(size, quanta);
        }
    }

    /// What the packet of a turn that begins leaves of it.
    #[inline(never)]
    fn leave_rest(&mut self, size: u32, quanta: &[u32]) {
        self.deficit[self.current] = quanta[self.current] - size;
        self.is_settled = self.deficit[self.current] == 0;
    }

    /// The next queue of those with a bit in `ready`.
    #[inline(always)]
    fn after_current(&self, ready: u32) -> usize {
        let after = ready & !((2u32 << self.current) - 1);
        (if after != 0 { after } else { ready }).trailing_zeros() as usize
    }

    /// [`Self::pick`] where one queue alone is ready: it is served, with another quantum if its turn begins or is over.
    #[inline]
    pub(crate) fn serve_only(&mut self, queue: usize, quanta: &[u32], size: u32) {
        let left = match self.current == queue {
            true => self.deficit[queue],
            false => {
                self.deficit[self.current] = 0;
                self.current = queue;
                self.deficit[queue].saturating_add(quanta[queue])
            }
        };
        let left = if left < size { left.saturating_add(quanta[queue]) } else { left };
        self.deficit[queue] = left - size;
        self.note_rest();
    }

    fn note_rest(&mut self) {
        self.is_settled = self.deficit.iter().all(|&bytes| bytes == 0);
    }

    fn pick_among(&mut self, ready: u32, quanta: &[u32], size: impl Fn(usize) -> u32) -> usize {
        loop {
            let queue = self.current;
            if ready >> queue & 1 == 1 {
                let size = size(queue);
                if self.deficit[queue] >= size {
                    self.deficit[queue] -= size;
                    self.note_rest();
                    return queue;
                }
            } else {
                self.deficit[queue] = 0;
            }
            self.current = self.after_current(ready);
            self.deficit[self.current] = self.deficit[self.current].saturating_add(quanta[self.current]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bytes per queue after this many bytes in all, every queue always ready unless idle.
    fn serve(quanta: &[u32], sizes: &[u32], ready: u32, total: u64) -> Vec<u64> {
        let mut robin = RoundRobin::new(quanta.len());
        let mut sent = vec![0; quanta.len()];
        while sent.iter().sum::<u64>() < total {
            let queue = robin.pick(ready, quanta, |queue| sizes[queue]);
            sent[queue] += u64::from(sizes[queue]);
        }
        sent
    }

    #[test]
    fn an_idle_queue_leaves_its_share_to_the_others() {
        assert_eq!(serve(&[1500, 3000, 4500], &[1500; 3], 0b101, 60_000), [15_000, 0, 45_000]);
    }

    /// A queue that was idle does not send what it could have sent: its next turn is worth one quantum.
    #[test]
    fn what_an_idle_queue_leaves_of_its_turn_is_lost() {
        let mut robin = RoundRobin::new(2);
        let mut pick = |ready| robin.pick(ready, &[1500, 1500], |_| 500);
        // Queue 0 sends one of the three packets of its turn and is idle; queue 1 has two turns meanwhile.
        assert_eq!([(); 4].map(|()| pick(0b11)), [1, 1, 1, 0]);
        assert_eq!([(); 6].map(|()| pick(0b10)), [1; 6]);
        assert_eq!([(); 4].map(|()| pick(0b11)), [0, 0, 0, 1]);
    }

    proptest! {
        /// What serves one queue alone does what serves several.
        #[test]
        fn one_queue_alone_is_served_as_among_several(
            turns in prop::collection::vec((1..16u32, prop::array::uniform4(64..1500u32)), 1..200),
        ) {
            let quanta = [1500, 3000, 1500, 2000];
            let (mut robin, mut plain) = (RoundRobin::new(4), RoundRobin::new(4));
            for (ready, sizes) in turns {
                let picked = robin.pick(ready, &quanta, |queue| sizes[queue]);
                prop_assert_eq!(picked, plain.pick_among(ready, &quanta, |queue| sizes[queue]));
                prop_assert_eq!((robin.current, &robin.deficit), (plain.current, &plain.deficit));
            }
        }

        /// What begins a turn picks what is picked among several, and leaves as much of it.
        #[test]
        fn a_turn_that_begins_is_one_among_several(
            quanta in prop_oneof![Just([1500; 4]), Just([1500, 3000, 1500, 2000])],
            turns in prop::collection::vec((1..16u32, prop::array::uniform4(prop_oneof![3 => Just(1500), 1 => 64..1500u32])), 1..200),
        ) {
            let even = if quanta == [1500; 4] { 1500 } else { 0 };
            let (mut robin, mut plain) = (RoundRobin::new(4), RoundRobin::new(4));
            for (ready, sizes) in turns {
                let picked = match robin.begin_turn(ready) {
                    Some(queue) => {
                        robin.take_off(sizes[queue], even, &quanta);
                        queue
                    }
                    None => robin.pick(ready, &quanta, |queue| sizes[queue]),
                };
                prop_assert_eq!(picked, plain.pick_among(ready, &quanta, |queue| sizes[queue]));
                prop_assert_eq!((robin.current, &robin.deficit), (plain.current, &plain.deficit));
            }
        }

        #[test]
        fn shares_hold_within_a_quantum_whatever_the_packets(
            queues in prop::collection::vec((1..8u32, 64..1500u32), 2..6),
        ) {
            let quanta: Vec<u32> = queues.iter().map(|queue| queue.0 * 1500).collect();
            let sizes: Vec<u32> = queues.iter().map(|queue| queue.1).collect();
            let sent = serve(&quanta, &sizes, (1 << queues.len()) - 1, 1_000_000);
            let (all, sum) = (sent.iter().sum::<u64>(), quanta.iter().sum::<u32>());
            for (queue, &bytes) in sent.iter().enumerate() {
                let fair = all as f64 * f64::from(quanta[queue]) / f64::from(sum);
                let slack = f64::from(sum) + 1500.0;
                prop_assert!((bytes as f64 - fair).abs() <= slack, "{queue}: {bytes} of {fair}");
            }
        }
    }
}
