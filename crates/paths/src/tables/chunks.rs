//! A long list of which most is never written.

use std::sync::OnceLock;

use bytemuck::Zeroable;

/// Items of a chunk. Tables of gigabytes have a few thousand chunks, whose places stay in a cache.
const CHUNK: usize = 1 << 20;

/// Zeros at first, for which memory is taken a chunk at a time, by the thread that first writes there.
///
/// An allocator that has the memory of others at hand would overwrite all of it with zeros, wanted or not.
#[derive(Debug)]
pub(super) struct Chunks<T> {
    len: usize,
    chunks: Box<[OnceLock<Box<[T]>>]>,
}

impl<T: Zeroable> Chunks<T> {
    /// This many zeros.
    pub(super) fn new(len: usize) -> Self {
        Chunks { len, chunks: (0..len.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect() }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// An item; none where nobody has written near it.
    #[inline]
    pub(super) fn get(&self, place: usize) -> Option<&T> {
        self.chunks[place / CHUNK].get().map(|chunk| &chunk[place % CHUNK])
    }

    /// An item, to be written.
    pub(super) fn at(&self, place: usize) -> &T {
        let number = place / CHUNK;
        let size = CHUNK.min(self.len - number * CHUNK);
        &self.chunks[number].get_or_init(|| bytemuck::zeroed_slice_box(size))[place % CHUNK]
    }
}

impl<T> FromIterator<T> for Chunks<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let (mut items, mut len, mut chunks) = (items.into_iter(), 0, Vec::new());
        loop {
            let chunk: Box<[T]> = items.by_ref().take(CHUNK).collect();
            if chunk.is_empty() {
                return Chunks { len, chunks: chunks.into() };
            }
            len += chunk.len();
            chunks.push(OnceLock::from(chunk));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::*;

    #[test]
    fn items_are_zero_until_they_are_written() {
        let len = 2 * CHUNK + 3;
        let items: Chunks<AtomicU8> = Chunks::new(len);
        let value =
            |items: &Chunks<AtomicU8>, place| items.get(place).map(|item| item.load(Ordering::Relaxed));
        for place in [CHUNK, len - 1] {
            items.at(place).store(7, Ordering::Relaxed);
        }
        // There is memory only where something has been written.
        assert_eq!([0, CHUNK - 1].map(|place| value(&items, place)), [None, None]);
        let around = [CHUNK, CHUNK + 1, 2 * CHUNK - 1, 2 * CHUNK, len - 2, len - 1];
        assert_eq!(around.map(|place| value(&items, place)), [7, 0, 0, 0, 0, 7].map(Some));
        let copied: Chunks<AtomicU8> =
            (0..len).map(|place| value(&items, place).unwrap_or_default().into()).collect();
        assert_eq!((copied.len(), copied.chunks.len()), (len, 3));
        assert!((0..len).all(|place| value(&copied, place) == value(&items, place).or(Some(0))));
    }
}
