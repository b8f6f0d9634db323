//! The order of a turn's events: by instant, then by source, then as they were sent, each in a key of 64 bits.
//!
//! Half the work of a general sort, because the events are known to be spread over their window: they are put into stretches of it while
//! their keys are made, and are then nearly in order.

use bytemuck::allocation::zeroed_box;
use netloom_units::Time;

use crate::model::TIMER;

/// Bits of a source in a key.
const SOURCE_BITS: u32 = TIMER.count_ones();
/// Bits of an event's index in a key.
const INDEX_BITS: u32 = 12;
/// Bits of an instant's place in its window in a key.
pub(crate) const TIME_BITS: u32 = 64 - SOURCE_BITS - INDEX_BITS;
/// Below this many, insertion alone is faster.
const FEW: usize = 20;
/// Up to this many, a few stretches of a window are enough. The fewer events share a stretch, the better the processor predicts how far each is moved.
const SOME: usize = 64;
/// Above this many, places among them do not fit a byte.
const MANY: usize = u8::MAX as usize;
/// This many have no keys.
const MOST: usize = 1 << INDEX_BITS;

/// An event's place in the order: its instant's place in its window, in the first bits whatever the window's length; its source; its index.
pub(crate) type Key = u64;

/// Which of the turn's events it is.
#[inline(always)]
pub(crate) fn index(key: Key) -> usize {
    (key & ((1 << INDEX_BITS) - 1)) as usize
}

/// Orders one turn's events after the other's.
pub(crate) struct Order {
    /// By so much instants are shifted, that their places in a window begin with the first bit.
    shift: u32,
    // A byte cannot leave them.
    keys: Box<[Key; MANY + 1]>,
    spread: Box<[Key; MANY + 1]>,
    many: Many,
}

impl Order {
    /// For windows of this many picoseconds.
    pub(crate) fn new(length: u64) -> Self {
        let shift = (length - 1).leading_zeros().min(u64::BITS - 1);
        Order { shift, keys: Box::new([0; MANY + 1]), spread: Box::new([0; MANY + 1]), many: Many::new() }
    }

    /// Whether this many events of one window have keys.
    #[inline]
    pub(crate) fn takes(events: usize) -> bool {
        events < MOST
    }

    /// The keys in order, of events of a window that begins at `start`.
    #[inline(always)]
    pub(crate) fn sort(&mut self, start: Time, events: impl ExactSizeIterator<Item = (Time, u32)>) -> &[Key] {
        let (count, shift) = (events.len(), self.shift);
        // The same for all, so that two additions make a key of it.
        let base = (start.0 << shift).wrapping_neg();
        let keys = events.enumerate().map(move |(index, (at, source))| {
            (at.0 << shift).wrapping_add(u64::from(source) << INDEX_BITS).wrapping_add(base + index as u64)
        });
        if count < FEW {
            self.keys.iter_mut().zip(keys).for_each(|(place, key)| *place = key);
            insert_from(&mut self.keys[..count], 1);
            &self.keys[..count]
        } else if count <= SOME {
            self.sort_some::<64>(keys)
        } else if count <= MANY {
            self.sort_some::<256>(keys)
        } else if count <= 512 {
            self.sort_many::<512>(keys)
        } else if count <= 1024 {
            self.sort_many::<1024>(keys)
        } else if count <= 2048 {
            self.sort_many::<2048>(keys)
        } else {
            self.sort_many::<MOST>(keys)
        }
    }

    #[inline(always)]
    fn sort_some<const STRETCHES: usize>(&mut self, events: impl ExactSizeIterator<Item = Key>) -> &[Key] {
        let Order { keys, spread, .. } = self;
        let count = events.len();
        let mut places = [0u8; STRETCHES];
        for (key, event) in keys.iter_mut().zip(events) {
            *key = event;
            places[stretch::<STRETCHES>(event)] += 1;
        }
        if keys[..count].is_sorted() {
            return &keys[..count];
        }
        add_up(&mut places);
        for &key in &keys[..count] {
            let place = &mut places[stretch::<STRETCHES>(key)];
            spread[usize::from(*place)] = key;
            *place += 1;
        }
        finish(&mut spread[..count]);
        &spread[..count]
    }

    /// As [`Self::sort_some`], with two bytes for a place, and a stretch or two for each event.
    #[inline(never)]
    fn sort_many<const STRETCHES: usize>(&mut self, events: impl ExactSizeIterator<Item = Key>) -> &[Key] {
        let Order { many: Many { keys, spread, places }, .. } = self;
        let count = events.len();
        let places = places.first_chunk_mut::<STRETCHES>().expect("no more stretches than events");
        places.fill(0);
        for (key, event) in keys.iter_mut().zip(events) {
            *key = event;
            places[stretch::<STRETCHES>(event)] += 1;
        }
        if keys[..count].is_sorted() {
            return &keys[..count];
        }
        add_up_many(places);
        for &key in &keys[..count] {
            let place = &mut places[stretch::<STRETCHES>(key)];
            spread[usize::from(*place) % MOST] = key;
            *place += 1;
        }
        finish(&mut spread[..count]);
        &spread[..count]
    }
}

/// The stretch of a window in which an event lies, of a power of two of equal stretches: the first bits of its place.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "below STRETCHES")]
fn stretch<const STRETCHES: usize>(key: Key) -> usize {
    (key >> (u64::BITS - STRETCHES.ilog2())) as usize
}

/// Puts keys in order that nearly are.
#[inline(always)]
fn finish(keys: &mut [Key]) {
    let (mut end, mut greatest) = (0, 0);
    // Four at a time, as hardly any are out of order.
    while let Some(&[a, b, c, d]) = keys.get(end..).and_then(<[Key]>::first_chunk) {
        let before;
        (before, greatest) = if a < greatest {
            (0, greatest)
        } else if b < a {
            (1, a)
        } else if c < b {
            (2, b)
        } else if d < c {
            (3, c)
        } else {
            (end, greatest) = (end + 4, d);
            continue;
        };
        insert(keys, end + before);
        end += before + 1;
    }
    insert_from(keys, end);
}

/// Puts keys in order that are up to one of them.
#[inline(always)]
fn insert_from(keys: &mut [Key], first: usize) {
    for place in first..keys.len() {
        insert(keys, place);
    }
}

/// Puts a key where it belongs among those before it, which are in order.
#[inline(always)]
fn insert(keys: &mut [Key], mut place: usize) {
    let key = keys[place];
    while place > 0 && keys[place - 1] > key {
        keys[place] = keys[place - 1];
        place -= 1;
    }
    keys[place] = key;
}

/// Of turns of many events: nothing of it is in memory before the first one.
struct Many {
    keys: Box<[Key; MOST]>,
    spread: Box<[Key; MOST]>,
    places: Box<[u16; MOST]>,
}

impl Many {
    fn new() -> Self {
        Many { keys: zeroed_box(), spread: zeroed_box(), places: zeroed_box() }
    }
}

/// Makes of counts, one byte each and at most 255 together, the sums of those before them: eight at a time.
fn add_up<const STRETCHES: usize>(counts: &mut [u8; STRETCHES]) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let mut before = 0;
    for eight in counts.as_chunks_mut::<8>().0 {
        let sums = u64::from_le_bytes(*eight).wrapping_mul(EACH);
        *eight = ((sums << 8) + before * EACH).to_le_bytes();
        before += sums >> 56;
    }
}

/// The same with two bytes for each, and at most 65,535 together: four at a time.
#[expect(clippy::cast_possible_truncation, reason = "the four parts of a word")]
fn add_up_many(counts: &mut [u16]) {
    const EACH: u64 = 0x0001_0001_0001_0001;
    let mut before = 0u64;
    for four in counts.as_chunks_mut::<4>().0 {
        let [a, b, c, d] = four.map(u64::from);
        let sums = (a | b << 16 | c << 32 | d << 48).wrapping_mul(EACH);
        let of_all = sums >> 48;
        // Turned, not shifted: then the compiler sees that the four lie side by side, and writes them at once.
        let all = (sums.rotate_left(16) - of_all).wrapping_add(before);
        *four = [all as u16, (all >> 16) as u16, (all >> 32) as u16, (all >> 48) as u16];
        before = before.wrapping_add(of_all * EACH);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever the window and the number of events, in whatever order they come.
        #[test]
        fn as_a_sort_would(
            length in 1u64..=1 << TIME_BITS,
            window in 0u64..1 << 40,
            events in prop_oneof![
                prop::collection::vec((any::<u64>(), 0..=TIMER), 0..400),
                prop::collection::vec((any::<u64>(), 0..=TIMER), 3 * MOST / 4..MOST),
            ],
            is_sorted in any::<bool>(),
        ) {
            let mut events: Vec<_> =
                events.iter().map(|&(at, source)| (Time(window * length + at % length), source)).collect();
            if is_sorted {
                events.sort_unstable();
            }
            let mut wanted: Vec<usize> = (0..events.len()).collect();
            wanted.sort_by_key(|&index| events[index]);
            let mut order = Order::new(length);
            prop_assert!(Order::takes(events.len()));
            for _ in 0..2 {
                let keys = order.sort(Time(window * length), events.iter().copied());
                prop_assert_eq!(keys.iter().map(|&key| index(key)).collect::<Vec<_>>(), wanted.clone());
            }
        }
    }
}
