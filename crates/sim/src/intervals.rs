//! The gaps between a flow's packets at one place, by their length, and the flowlets that long ones begin.

use std::ops::Range;

use netloom_record::GapRecord;
use netloom_routing::FlowKey;
use netloom_routing::granularity::flowlet::Flowlet;
use netloom_units::{Histogram, Time};

/// A flow's packets as they pass one place.
#[derive(Clone, Debug)]
pub(crate) struct Intervals {
    last: Option<Time>,
    /// Runs of packets that gaps separate.
    pub(crate) flowlets: u32,
    base_rtt: Time,
    /// By whole base round-trip times, and within them by length.
    counted: Vec<(u32, Histogram<4>)>,
    /// The latest gaps, which are of one kind and not among those yet: a paced flow's seldom change.
    alike: Alike,
}

/// Gaps of one bin within one number of round-trip times.
#[derive(Clone, Debug, Default)]
struct Alike {
    range: Range<u64>,
    count: u64,
}

impl Intervals {
    /// Nothing has passed of a flow with this round-trip time.
    pub(crate) fn new(base_rtt: Time) -> Self {
        Intervals { last: None, flowlets: 0, base_rtt, counted: Vec::new(), alike: Alike::default() }
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
        if !self.alike.range.contains(&gap.0) {
            self.write_down(gap);
        }
        self.alike.count += 1;
    }

    /// Writes down the latest gaps, and begins with others like `next`.
    #[inline(never)]
    fn write_down(&mut self, next: Time) {
        let base_rtt = self.base_rtt.0.max(1);
        let Alike { range, count } = &self.alike;
        if *count > 0 {
            let rtts = (range.start / base_rtt).min(u64::from(u32::MAX)) as u32;
            let at = self.counted.binary_search_by_key(&rtts, |&(rtts, _)| rtts).unwrap_or_else(|at| {
                self.counted.insert(at, (rtts, Histogram::default()));
                at
            });
            self.counted[at].1.add_many(range.start, *count);
        }
        let first = next.0 / base_rtt * base_rtt;
        let bin = Histogram::<4>::range(next.0);
        self.alike =
            Alike { range: bin.start.max(first)..bin.end.min(first.saturating_add(base_rtt)), count: 0 };
    }

    /// The gaps as rows of a table.
    pub(crate) fn records(&self, FlowKey { src, flow }: FlowKey) -> Vec<GapRecord> {
        let mut all = self.clone();
        all.write_down(Time::ZERO);
        let rows = all.counted.iter().flat_map(|(base_rtts, gaps)| {
            gaps.bins().map(move |(range, count)| GapRecord {
                src,
                flow,
                from: Time(range.start),
                until: Time(range.end),
                base_rtt: self.base_rtt,
                base_rtts: *base_rtts,
                count,
            })
        });
        rows.collect()
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
                    *wanted.entry((rtts, Histogram::<4>::range(gap).start)).or_default() += 1;
                }
            }
            let records = intervals.records(FlowKey { src: 1, flow: 2 });
            let counted: BTreeMap<_, _> =
                records.iter().map(|record| ((record.base_rtts, record.from.0), record.count)).collect();
            prop_assert_eq!(records.len(), counted.len());
            prop_assert_eq!(counted, wanted);
        }
    }
}
