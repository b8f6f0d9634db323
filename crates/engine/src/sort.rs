//! Sorts the events of a batch: by instant, then by source, then in the order of sending, each by a key of 64 bits.
//!
//! A bucket sort with insertion: half the work of a general sort, because events are sorted over their window. They are put into buckets while
//! their keys are made, and are then nearly in order.

use bytemuck::allocation::zeroed_box;
use netloom_units::Time;

use crate::model::TIMER;

/// Bits of a source in a key.
const SOURCE_BITS: u32 = TIMER.count_ones();
/// Bits of an event's index in a key.
const INDEX_BITS: u32 = 12;
/// Bits of an instant's offset within its window in a key.
pub(crate) const TIME_BITS: u32 = 64 - SOURCE_BITS - INDEX_BITS;
/// Below this many events, insertion alone is faster.
const INSERTION_BELOW: usize = 20;
/// Up to this many events, 64 buckets are enough. The fewer events share a bucket, the better the processor predicts how far each is moved.
const FEW_BUCKETS_UP_TO: usize = 64;
/// Above this many events, indices do not fit a byte.
const BYTES_UP_TO: usize = u8::MAX as usize;
/// This many events are too many for keys.
const TOO_MANY: usize = 1 << INDEX_BITS;

/// By what events are sorted: the instant's offset within its window, in the highest bits whatever the window's length; the source; the index.
pub(crate) type Key = u64;

/// The index of the event within its batch.
#[inline(always)]
pub(crate) fn index(key: Key) -> usize {
    (key & ((1 << INDEX_BITS) - 1)) as usize
}

/// Whether two events of one window are due at one instant: what is less than an instant in their keys is the source and the index.
#[inline(always)]
pub(crate) fn is_at_one_instant(one: Key, other: Key) -> bool {
    (one ^ other) >> (SOURCE_BITS + INDEX_BITS) == 0
}

/// Sorts one batch after the other.
pub(crate) struct EventSorter {
    /// By how much instants are shifted, so that their offsets within a window begin with the highest bit.
    shift: u32,
    // An index of one byte is always within bounds.
    keys: Box<[Key; BYTES_UP_TO + 1]>,
    sorted: Box<[Key; BYTES_UP_TO + 1]>,
    large: LargeScratch,
}

impl EventSorter {
    /// For windows of this many picoseconds.
    pub(crate) fn new(length: u64) -> Self {
        let shift = (length - 1).leading_zeros().min(u64::BITS - 1);
        EventSorter {
            shift,
            keys: Box::new([0; BYTES_UP_TO + 1]),
            sorted: Box::new([0; BYTES_UP_TO + 1]),
            large: LargeScratch::new(),
        }
    }

    /// Whether this many events of one window have keys.
    #[inline]
    pub(crate) fn takes(events: usize) -> bool {
        events < TOO_MANY
    }

    /// The keys in order, of events of a window that begins at `start`.
    #[inline(always)]
    pub(crate) fn sort(&mut self, start: Time, events: impl ExactSizeIterator<Item = (Time, u32)>) -> &[Key] {
        let (count, shift) = (events.len(), self.shift);
        // Common to all keys, so that each takes two additions.
        let base = (start.0 << shift).wrapping_neg();
        let keys = events.enumerate().map(move |(index, (at, source))| {
            (at.0 << shift).wrapping_add(u64::from(source) << INDEX_BITS).wrapping_add(base + index as u64)
        });
        if count < INSERTION_BELOW {
            self.keys.iter_mut().zip(keys).for_each(|(place, key)| *place = key);
            insert_from(&mut self.keys[..count], 1);
            &self.keys[..count]
        } else if count <= FEW_BUCKETS_UP_TO {
            self.sort_by_bytes::<64>(keys)
        } else if count <= BYTES_UP_TO {
            self.sort_by_bytes::<256>(keys)
        } else if count <= 512 {
            self.sort_large::<512>(keys)
        } else if count <= 1024 {
            self.sort_large::<1024>(keys)
        } else if count <= 2048 {
            self.sort_large::<2048>(keys)
        } else {
            self.sort_large::<TOO_MANY>(keys)
        }
    }

    #[inline(always)]
    fn sort_by_bytes<const BUCKETS: usize>(&mut self, events: impl ExactSizeIterator<Item = Key>) -> &[Key] {
        let EventSorter { keys, sorted, .. } = self;
        let count = events.len();
        let mut starts = [0u8; BUCKETS];
        // Not by a `for` loop: that asks twice for every event whether it is the last.
        keys.iter_mut().zip(events).for_each(|(key, event)| {
            *key = event;
            starts[bucket::<BUCKETS>(event)] += 1;
        });
        if keys[..count].is_sorted() {
            return &keys[..count];
        }
        prefix_sums(&mut starts);
        for &key in &keys[..count] {
            let place = &mut starts[bucket::<BUCKETS>(key)];
            sorted[usize::from(*place)] = key;
            *place += 1;
        }
        sort_nearly_sorted(&mut sorted[..count]);
        &sorted[..count]
    }

    /// As [`Self::sort_by_bytes`], with two bytes for an index, and a bucket or two for each event.
    #[inline(never)]
    fn sort_large<const BUCKETS: usize>(&mut self, events: impl ExactSizeIterator<Item = Key>) -> &[Key] {
        let EventSorter { large: LargeScratch { keys, sorted, starts }, .. } = self;
        let count = events.len();
        let starts = starts.first_chunk_mut::<BUCKETS>().expect("no more buckets than events");
        starts.fill(0);
        // Not by a `for` loop: that asks twice for every event whether it is the last.
        keys.iter_mut().zip(events).for_each(|(key, event)| {
            *key = event;
            starts[bucket::<BUCKETS>(event)] += 1;
        });
        if keys[..count].is_sorted() {
            return &keys[..count];
        }
        prefix_sums_wide(starts);
        for &key in &keys[..count] {
            let place = &mut starts[bucket::<BUCKETS>(key)];
            sorted[usize::from(*place) % TOO_MANY] = key;
            *place += 1;
        }
        sort_nearly_sorted(&mut sorted[..count]);
        &sorted[..count]
    }
}

/// The bucket of an event, of a power of two of equal buckets of its window: the highest bits of its key.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "below BUCKETS")]
fn bucket<const BUCKETS: usize>(key: Key) -> usize {
    (key >> (u64::BITS - BUCKETS.ilog2())) as usize
}

/// Sorts keys that are nearly in order.
#[inline(always)]
fn sort_nearly_sorted(keys: &mut [Key]) {
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

/// Sorts keys of which those before `first` are in order.
#[inline(always)]
fn insert_from(keys: &mut [Key], first: usize) {
    for place in first..keys.len() {
        insert(keys, place);
    }
}

/// Moves a key to its place among those before it, which are in order.
#[inline(always)]
fn insert(keys: &mut [Key], mut place: usize) {
    let key = keys[place];
    while place > 0 && keys[place - 1] > key {
        keys[place] = keys[place - 1];
        place -= 1;
    }
    keys[place] = key;
}

/// Scratch for large batches: none of its pages is in memory before the first one.
struct LargeScratch {
    keys: Box<[Key; TOO_MANY]>,
    sorted: Box<[Key; TOO_MANY]>,
    starts: Box<[u16; TOO_MANY]>,
}

impl LargeScratch {
    fn new() -> Self {
        LargeScratch { keys: zeroed_box(), sorted: zeroed_box(), starts: zeroed_box() }
    }
}

/// Restarts counts, one byte each and at most 255 together, by the sums of those before them: eight at a time.
fn prefix_sums<const BUCKETS: usize>(counts: &mut [u8; BUCKETS]) {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let mut before = 0;
    for eight in counts.as_chunks_mut::<8>().0 {
        let sums = u64::from_le_bytes(*eight).wrapping_mul(EACH);
        *eight = ((sums << 8) + before * EACH).to_le_bytes();
        before += sums >> 56;
    }
}

/// [`prefix_sums`] with two bytes for each count, and at most 65,535 together: four at a time.
#[expect(clippy::cast_possible_truncation, reason = "the four parts of a word")]
fn prefix_sums_wide(counts: &mut [u16]) {
    const EACH: u64 = 0x0001_0001_0001_0001;
    let mut before = 0u64;
    for four in counts.as_chunks_mut::<4>().0 {
        let [a, b, c, d] = four.map(u64::from);
        let sums = (a | b << 16 | c << 32 | d << 48).wrapping_mul(EACH);
        let of_all = sums >> 48;
        // Rotated, not shifted: then the compiler sees that the four lie side by side, and writes them at once.
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
        /// For windows of any length, any number of events and any order.
        #[test]
        fn sorts_as_a_general_sort_does(
            length in 1u64..=1 << TIME_BITS,
            window in 0u64..1 << 40,
            events in prop_oneof![
                prop::collection::vec((any::<u64>(), 0..=TIMER), 0..400),
                prop::collection::vec((any::<u64>(), 0..=TIMER), 3 * TOO_MANY / 4..TOO_MANY),
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
            let mut sorter = EventSorter::new(length);
            prop_assert!(EventSorter::takes(events.len()));
            for _ in 0..2 {
                let keys = sorter.sort(Time(window * length), events.iter().copied());
                prop_assert_eq!(keys.iter().map(|&key| index(key)).collect::<Vec<_>>(), wanted.clone());
            }
        }
    }
}
