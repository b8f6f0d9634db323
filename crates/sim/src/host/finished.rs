//! Flows of which everything has arrived, with their numbers of packets: what a receiver needs to know to answer what comes late, for as
//! long as the run lasts. A run may have many millions of them, so they are in order, in three bytes or fewer each.
//!
//! In the order of (source, number) flows come to runs of consecutive ones with as many packets. A run is written as its distance from the one before it, in
//! units of seven bits, with its length and its number of packets only where these are not one and not those of the run before. A block of
//! runs can be read from its beginning; the first flow of each is known.

use netloom_routing::FlowKey;
use netloom_units::narrow;

/// Runs in a block.
const BLOCK: usize = 16;

/// A set of flows, each with its number of packets.
#[derive(Debug, Default)]
pub(crate) struct FinishedFlows {
    len: usize,
    /// Bits of a place that are the flow's number, the others being its source.
    number_bits: u32,
    /// The first place of every block, and where the rest of it is written.
    blocks: Vec<u64>,
    starts: Vec<u32>,
    runs: Vec<u8>,
}

/// Flows at consecutive places with as many packets.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Run {
    from: u64,
    len: u64,
    packets: u32,
}

impl FinishedFlows {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// How many runs they make, rounded up to whole blocks.
    pub(crate) fn runs(&self) -> usize {
        self.blocks.len() * BLOCK
    }

    /// The number of packets of a flow, if it is among them.
    pub(crate) fn packets(&self, key: FlowKey) -> Option<u32> {
        if u64::from(key.flow) >> self.number_bits > 0 {
            return None;
        }
        let place = place(key, self.number_bits);
        let block = self.blocks.partition_point(|&first| first <= place).checked_sub(1)?;
        let found = self.block(block).find(|run| place < run.from + run.len)?;
        (found.from <= place).then_some(found.packets)
    }

    /// The set with more flows, in any order; those that are in it already do not count.
    pub(crate) fn with(&self, mut more: Vec<(FlowKey, u32)>) -> Self {
        more.sort_unstable_by_key(|&(key, _)| (key.src, key.flow));
        more.dedup_by_key(|&mut (key, _)| key);
        let largest = more.iter().map(|(key, _)| key.flow).max().unwrap_or(0);
        let number_bits = self.number_bits.max(u32::BITS - largest.leading_zeros());
        let mut all = Packed::new(number_bits, self.runs.len() + 3 * more.len());
        let mut more =
            more.iter().map(|&(key, packets)| Run { from: place(key, number_bits), len: 1, packets });
        let mut next = more.next();
        for block in 0..self.blocks.len() {
            for run in self.block(block) {
                let run = self.moved(run, number_bits);
                while let Some(one) = next.filter(|one| one.from < run.from + run.len) {
                    if one.from < run.from {
                        all.push(one);
                    }
                    next = more.next();
                }
                all.push(run);
            }
        }
        next.into_iter().chain(more).for_each(|one| all.push(one));
        all.finish()
    }

    /// A run where numbers of flows have more bits. None goes over the end of a source.
    fn moved(&self, run: Run, number_bits: u32) -> Run {
        let number = run.from & ((1 << self.number_bits) - 1);
        Run { from: (run.from >> self.number_bits) << number_bits | number, ..run }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "has been written as a number of 32 bits")]
    fn block(&self, block: usize) -> impl Iterator<Item = Run> + '_ {
        let end = self.starts.get(block + 1).map_or(self.runs.len(), |&end| end as usize);
        let mut left = &self.runs[self.starts[block] as usize..end];
        let mut before = Run { from: self.blocks[block], len: 0, packets: 1 };
        std::iter::from_fn(move || {
            if left.is_empty() {
                return None;
            }
            let head = read(&mut left);
            before.from += before.len + (head >> 2);
            if head & OTHER_PACKETS > 0 {
                before.packets = read(&mut left) as u32;
            }
            before.len = if head & LONGER > 0 { read(&mut left) } else { 1 };
            Some(before)
        })
    }
}

/// Flows in order of source and number.
fn place(key: FlowKey, number_bits: u32) -> u64 {
    u64::from(key.src) << number_bits | u64::from(key.flow)
}

/// What the lowest bits of a run's distance say: another number of packets than that of the run before it, or one, follows;
const OTHER_PACKETS: u64 = 1;
/// its length follows, as that is not one.
const LONGER: u64 = 2;

/// A set that is being written.
struct Packed {
    set: FinishedFlows,
    /// Not written yet, as more may follow at once; none at first.
    last: Run,
    /// The end of what is written, and its number of packets.
    end: u64,
    packets: u32,
    /// Runs in the last block.
    in_block: usize,
}

impl Packed {
    fn new(number_bits: u32, room: usize) -> Self {
        let set = FinishedFlows { number_bits, runs: Vec::with_capacity(room), ..FinishedFlows::default() };
        Packed { set, last: Run { from: 0, len: 0, packets: 1 }, end: 0, packets: 1, in_block: BLOCK }
    }

    /// Adds a run behind all others.
    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "flows of which memory is kept")]
    fn push(&mut self, run: Run) {
        self.set.len += run.len as usize;
        let last = &mut self.last;
        let is_first_of_source = run.from & ((1 << self.set.number_bits) - 1) == 0;
        if last.from + last.len == run.from && last.packets == run.packets && !is_first_of_source {
            last.len += run.len;
        } else {
            self.write();
            self.last = run;
        }
    }

    /// Writes the last run.
    fn write(&mut self) {
        let run = self.last;
        if run.len == 0 {
            return;
        }
        let is_too_far = run.from - self.end > u64::MAX >> 2;
        if self.in_block == BLOCK || is_too_far {
            self.set.blocks.push(run.from);
            self.set.starts.push(narrow::<u32>(self.set.runs.len()));
            (self.in_block, self.end, self.packets) = (0, run.from, 1);
        }
        let flag = |is_set: bool, flag: u64| if is_set { flag } else { 0 };
        let (is_other, is_longer) = (run.packets != self.packets, run.len > 1);
        let head = (run.from - self.end) << 2 | flag(is_other, OTHER_PACKETS) | flag(is_longer, LONGER);
        let runs = &mut self.set.runs;
        write(runs, head);
        if is_other {
            write(runs, run.packets.into());
        }
        if is_longer {
            write(runs, run.len);
        }
        self.in_block += 1;
        (self.end, self.packets) = (run.from + run.len, run.packets);
    }

    fn finish(mut self) -> FinishedFlows {
        self.write();
        self.set.runs.shrink_to_fit();
        self.set.blocks.shrink_to_fit();
        self.set.starts.shrink_to_fit();
        self.set
    }
}

/// Writes a number, seven bits to a byte, the lowest first; the eighth says that more follow.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "the lowest seven bits")]
fn write(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Reads what has been written, and goes on behind it.
#[inline(always)]
fn read(bytes: &mut &[u8]) -> u64 {
    // Nearly all numbers have one byte or two.
    match **bytes {
        [first, ref rest @ ..] if first < 0x80 => {
            *bytes = rest;
            first.into()
        }
        [first, second, ref rest @ ..] if second < 0x80 => {
            *bytes = rest;
            u64::from(first & 0x7f) | u64::from(second) << 7
        }
        _ => read_long(bytes),
    }
}

#[cold]
fn read_long(bytes: &mut &[u8]) -> u64 {
    let (mut number, mut shift) = (0, 0);
    while let Some((&byte, rest)) = bytes.split_first() {
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            break;
        }
        shift += 7;
    }
    number
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// A few flows: neighbours and strangers, with the numbers of packets that flows have, of sources from one end to the other.
    fn flows() -> impl Strategy<Value = Vec<(FlowKey, u32)>> {
        let src = prop_oneof![0..4u32, Just(u32::MAX), any::<u32>()];
        let flow = prop_oneof![0..20u32, 0..3000u32, any::<u32>()];
        let packets = prop_oneof![Just(1u32), 1..4u32, any::<u32>()];
        let flow = (src, flow, packets, 1..50u32).prop_map(|(src, flow, packets, run)| {
            let key = move |next| Some((FlowKey { src, flow: flow.checked_add(next)? }, packets));
            (0..run).filter_map(key).collect::<Vec<_>>()
        });
        prop::collection::vec(flow, 0..60).prop_map(|runs| runs.concat()).prop_shuffle()
    }

    proptest! {
        #[test]
        fn what_went_in_is_found_and_nothing_else(batches in prop::collection::vec(flows(), 1..5)) {
            let (mut set, mut expected) = (FinishedFlows::default(), BTreeMap::new());
            for batch in batches {
                // A flow keeps the number of packets that it had first.
                let batch: BTreeMap<_, _> =
                    batch.into_iter().map(|(key, packets)| ((key.src, key.flow), packets)).collect();
                let batch: Vec<_> =
                    batch.into_iter().map(|((src, flow), packets)| (FlowKey { src, flow }, packets)).collect();
                for &(key, packets) in &batch {
                    expected.entry((key.src, key.flow)).or_insert(packets);
                }
                set = set.with(batch);
                prop_assert_eq!(set.len(), expected.len());
                for &(src, flow) in expected.keys() {
                    for flow in [flow.wrapping_sub(1), flow, flow.wrapping_add(1)] {
                        let found = set.packets(FlowKey { src, flow });
                        prop_assert_eq!(found, expected.get(&(src, flow)).copied(), "{}.{}", src, flow);
                    }
                }
            }
        }
    }

    #[test]
    fn flows_in_a_row_cost_nothing_and_scattered_ones_few_bytes() {
        let bytes = |set: &FinishedFlows| set.runs.len() + 8 * set.blocks.len() + 4 * set.starts.len();
        let flows = |step| (0..10_000).map(move |i| (FlowKey { src: i % 100, flow: i * step }, 7)).collect();
        let in_a_row =
            FinishedFlows::default().with((0..10_000).map(|flow| (FlowKey { src: 3, flow }, 7)).collect());
        assert_eq!((bytes(&in_a_row), in_a_row.len()), (16, 10_000));
        assert!(bytes(&FinishedFlows::default().with(flows(1))) < 30_000);
        assert!(bytes(&FinishedFlows::default().with(flows(10))) < 30_000);
    }
}
