//! The gaps between a flow's packets at one place, by their length, and the flowlets that long ones begin.

use std::ops::Range;

use netloom_record::GapRecord;
use netloom_routing::FlowKey;
use netloom_routing::granularity::flowlet::Flowlet;
use netloom_units::recurrence::{Recur, Walk};
use netloom_units::{Histogram, Time};

/// A flow's packets as they pass one place.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    last: Option<Time>,
    /// Runs of packets that gaps separate.
    pub(crate) flowlets: u32,
    base_rtt: Time,
    /// Where gaps are counted and there has been one.
    counts: Option<Box<Counts>>,
}

/// How many gaps there are.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// Those of less than a base round-trip time, which are most, in each bin.
    short: Bins,
    /// The others, by whole base round-trip times, and within them by length.
    long: Vec<(u32, Histogram<4>)>,
}

/// Counts by bins of a histogram that lie close together.
#[derive(Clone, Debug, Default)]
struct Bins {
    first: u16,
    counts: Vec<u64>,
}

impl Bins {
    #[inline]
    fn add(&mut self, value: u64) {
        let bin = Histogram::<4>::bin(value);
        match self.counts.get_mut(usize::from(bin.wrapping_sub(self.first))) {
            Some(count) => *count += 1,
            None => self.add_beyond(bin),
        }
    }

    #[cold]
    fn add_beyond(&mut self, bin: u16) {
        if self.counts.is_empty() {
            self.first = bin;
        }
        let before = self.first.saturating_sub(bin);
        self.counts.splice(..0, std::iter::repeat_n(0, usize::from(before)));
        self.first -= before;
        let place = usize::from(bin - self.first);
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
    }

    /// The bins that hold something, ascending, and how much.
    fn iter(&self) -> impl Iterator<Item = (Range<u64>, u64)> + '_ {
        let bins = (self.first..).zip(&self.counts).filter(|&(_, &count)| count > 0);
        bins.map(|(bin, &count)| (Histogram::<4>::range(bin), count))
    }
}

impl Counts {
    #[cold]
    #[expect(clippy::cast_possible_truncation, reason = "saturates, as documented")]
    fn add_long(&mut self, gap: Time, base_rtt: Time) {
        let rtts = (gap.0 / base_rtt.0.max(1)).min(u64::from(u32::MAX)) as u32;
        let at = self.long.binary_search_by_key(&rtts, |&(rtts, _)| rtts).unwrap_or_else(|at| {
            self.long.insert(at, (rtts, Histogram::default()));
            at
        });
        self.long[at].1.add(gap.0);
    }
}

impl Recur for Intervals {
    fn recur(&mut self, walk: &mut Walk) {
        let Intervals { last, flowlets, base_rtt, counts } = self;
        if walk.is_some(last)
            && let Some(last) = last
        {
            walk.time(last);
        }
        walk.sum32(flowlets);
        walk.exact(base_rtt.0);
        if counts.is_some() {
            walk.refuse("gaps between packets that are counted");
        }
    }
}

impl Intervals {
    /// Nothing has passed of a flow with this round-trip time.
    pub(crate) fn new(base_rtt: Time) -> Self {
        Intervals { last: None, flowlets: 0, base_rtt, counts: None }
    }

    /// The round-trip time against which gaps are counted as long.
    pub(crate) fn base_rtt(&self) -> Time {
        self.base_rtt
    }

    /// When the last packet passed.
    pub(crate) fn last(&self) -> Option<Time> {
        self.last
    }

    /// A packet passes at `now`; returns how long after the one before. A gap that `flowlet` does not span begins one.
    pub(crate) fn pass(&mut self, now: Time, flowlet: Option<&Flowlet>, are_counted: bool) -> Option<Time> {
        let last = self.last.replace(now);
        // The first packet begins the first flowlet.
        let begins = flowlet.is_some_and(|flowlet| last.is_none_or(|last| !flowlet.spans(last, now)));
        self.flowlets += u32::from(begins);
        let gap = last.map(|last| now - last);
        if let Some(gap) = gap.filter(|_| are_counted) {
            self.count(gap);
        }
        gap
    }

    #[inline]
    fn count(&mut self, gap: Time) {
        let counts = self.counts.get_or_insert_default();
        if gap < self.base_rtt {
            counts.short.add(gap.0);
        } else {
            counts.add_long(gap, self.base_rtt);
        }
    }

    /// The gaps as rows of a table.
    pub(crate) fn records(&self, FlowKey { src, flow }: FlowKey) -> impl Iterator<Item = GapRecord> + '_ {
        let rows = self.counts.iter().flat_map(|counts| {
            let short = counts.short.iter().map(|(range, count)| (0, range, count));
            let long = counts.long.iter();
            short.chain(
                long.flat_map(|(rtts, gaps)| gaps.bins().map(move |(range, count)| (*rtts, range, count))),
            )
        });
        rows.map(move |(base_rtts, range, count)| GapRecord {
            src,
            flow,
            from: Time(range.start),
            until: Time(range.end),
            base_rtt: self.base_rtt,
            base_rtts,
            count,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Whatever follows whatever, every gap is counted once, where it belongs.
        #[test]
        fn gaps_are_counted_one_by_one(
            base_rtt in prop_oneof![Just(0), 1..200_000u64],
            gaps in prop::collection::vec((prop_oneof![0..100u64, 0..1_000_000u64, Just(u64::MAX >> 20)], 1..4u32), 0..30),
        ) {
            let mut intervals = Intervals::new(Time(base_rtt));
            let mut wanted: BTreeMap<(u32, u64), u64> = BTreeMap::new();
            let mut now = Time::ZERO;
            intervals.pass(now, None, true);
            for (gap, times) in gaps {
                for _ in 0..times {
                    now += Time(gap);
                    prop_assert_eq!(intervals.pass(now, None, true), Some(Time(gap)));
                    let rtts = (gap / base_rtt.max(1)).min(u64::from(u32::MAX)) as u32;
                    *wanted.entry((rtts, Histogram::<4>::range(Histogram::<4>::bin(gap)).start)).or_default() += 1;
                }
            }
            let records: Vec<_> = intervals.records(FlowKey { src: 1, flow: 2 }).collect();
            let counted: BTreeMap<_, _> =
                records.iter().map(|record| ((record.base_rtts, record.from.0), record.count)).collect();
            prop_assert!(records.is_sorted_by_key(|record| (record.base_rtts, record.from)));
            prop_assert_eq!(records.len(), counted.len());
            prop_assert_eq!(counted, wanted);
        }
    }
}
