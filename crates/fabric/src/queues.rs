//! The queues of all ports of a node, in one store.

use netloom_units::prefetch;
use netloom_units::recurrence::Walk;

use crate::packet::{NumbersOf, Packet};

const NONE: u32 = u32::MAX;

/// The queues of a node's ports, numbered through all ports.
#[derive(Clone, Debug)]
pub(crate) struct Queues {
    /// Port by port.
    fifos: Vec<Fifo>,
    /// The packets of all queues, linked; freed places are reused first.
    store: Vec<Place>,
    free: u32,
}

/// A packet and the place of the one behind it, in a line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct Place {
    packet: Packet,
    next: u32,
}

#[derive(Clone, Copy, Debug)]
struct Fifo {
    head: u32,
    tail: u32,
    bytes: u64,
}

/// A packet that has been taken out of its queue.
pub(crate) struct Popped<'q> {
    pub(crate) packet: &'q mut Packet,
    /// Whether nothing is behind it.
    pub(crate) is_last: bool,
    /// Bytes behind it.
    pub(crate) left: u64,
}

/// This many lie in a line of the cache.
const FIFOS_OF_A_LINE: usize = 64 / size_of::<Fifo>();

impl Queues {
    /// [Recur](netloom_units::recurrence), queue by queue, in the order of packets: where they lie says nothing.
    pub(crate) fn recur(&mut self, numbers_of: NumbersOf, walk: &mut Walk) {
        let Queues { fifos, store, free: _ } = self;
        for Fifo { head, tail: _, bytes } in fifos {
            walk.exact(*bytes);
            let mut place = *head;
            while let Some(Place { packet, next }) = store.get_mut(place as usize) {
                packet.recur(numbers_of, walk);
                place = *next;
            }
        }
    }
}

impl Queues {
    /// Empty queues.
    pub(crate) fn new(queues: usize) -> Self {
        let empty = Fifo { head: NONE, tail: NONE, bytes: 0 };
        Queues { fifos: vec![empty; queues], store: Vec::new(), free: NONE }
    }

    /// Puts a packet at the end of a queue.
    #[inline(always)]
    pub(crate) fn push(&mut self, queue: usize, packet: &Packet) {
        let mut place = self.free;
        if let Some(slot) = self.store.get_mut(place as usize) {
            self.free = slot.next;
            slot.packet = *packet;
            slot.next = NONE;
        } else {
            place = self.push_new(packet);
        }
        let fifo = &mut self.fifos[queue];
        fifo.bytes += u64::from(packet.size);
        if fifo.head == NONE {
            fifo.head = place;
        } else {
            self.store[fifo.tail as usize].next = place;
        }
        fifo.tail = place;
    }

    /// Puts a packet in a place that has not been used before.
    #[cold]
    #[inline(never)]
    #[expect(clippy::cast_possible_truncation, reason = "2³² packets take 256 GiB")]
    fn push_new(&mut self, packet: &Packet) -> u32 {
        self.store.push(Place { packet: *packet, next: NONE });
        self.store.len() as u32 - 1
    }

    /// Takes the first packet out of a queue that has one. Its place holds it until the next push. The next one, which has long left the cache, is
    /// fetched meanwhile.
    #[inline(always)]
    pub(crate) fn pop(&mut self, queue: usize) -> Popped<'_> {
        let fifo = &mut self.fifos[queue];
        let place = fifo.head;
        let Place { packet, next } = &mut self.store[place as usize];
        let head = std::mem::replace(next, self.free);
        fifo.head = head;
        fifo.bytes -= u64::from(packet.size);
        let left = fifo.bytes;
        self.free = place;
        let next = self.store.get(head as usize);
        if let Some(next) = next {
            prefetch(next);
        }
        let is_last = next.is_none();
        Popped { packet: &mut self.store[place as usize].packet, is_last, left }
    }

    /// Prefetches the first packet of a queue that has one.
    #[inline]
    pub(crate) fn prefetch_first(&self, queue: usize) {
        if let Some(first) = self.fifos.get(queue).and_then(|fifo| self.store.get(fifo.head as usize)) {
            prefetch(first);
        }
    }

    /// Prefetches where the first queues are.
    #[inline(always)]
    pub(crate) fn prefetch_first_fifo(&self) {
        self.fifos.first().into_iter().for_each(prefetch);
    }

    /// Prefetches where each queue is.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        self.fifos.iter().step_by(FIFOS_OF_A_LINE).for_each(prefetch);
    }

    /// The last packet of a queue that is not empty.
    pub(crate) fn last(&self, queue: usize) -> Option<&Packet> {
        let Fifo { head, tail, .. } = self.fifos[queue];
        (head != NONE).then(|| &self.store[tail as usize].packet)
    }

    /// Puts a packet in the place of the last one of a queue that is not empty, which comes out.
    pub(crate) fn replace_last(&mut self, queue: usize, packet: &Packet) -> Packet {
        let fifo = &mut self.fifos[queue];
        let last = std::mem::replace(&mut self.store[fifo.tail as usize].packet, *packet);
        fifo.bytes = fifo.bytes + u64::from(packet.size) - u64::from(last.size);
        last
    }

    /// Bytes in a queue.
    #[inline(always)]
    pub(crate) fn bytes(&self, queue: usize) -> u64 {
        self.fifos[queue].bytes
    }

    /// Size of the first packet of a queue that has one.
    pub(crate) fn first_size(&self, queue: usize) -> u32 {
        let fifo = &self.fifos[queue];
        u32::from(self.store[fifo.head as usize].packet.size)
    }

    /// All packets, with the numbers of their queues.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &Packet)> {
        self.fifos.iter().enumerate().flat_map(move |(queue, fifo)| {
            let step = |place: u32| self.store.get(place as usize);
            std::iter::successors(step(fifo.head), move |place| step(place.next))
                .map(move |place| (queue, &place.packet))
        })
    }
}
