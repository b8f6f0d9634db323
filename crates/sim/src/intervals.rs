//! The gaps between a flow's packets at one place, by their length, and the flowlets that long ones begin.

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
}

impl Intervals {
    /// Nothing has passed of a flow with this round-trip time.
    pub(crate) fn new(base_rtt: Time) -> Self {
        Intervals { last: None, flowlets: 0, base_rtt, counted: Vec::new() }
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

    fn count(&mut self, gap: Time) {
        let rtts = (gap.0 / self.base_rtt.0.max(1)).min(u64::from(u32::MAX)) as u32;
        let at = match self.counted.binary_search_by_key(&rtts, |&(rtts, _)| rtts) {
            Ok(at) => at,
            Err(at) => {
                self.counted.insert(at, (rtts, Histogram::default()));
                at
            }
        };
        self.counted[at].1.add(gap.0);
    }

    /// The gaps as rows of a table.
    pub(crate) fn records(&self, FlowKey { src, flow }: FlowKey) -> impl Iterator<Item = GapRecord> + '_ {
        self.counted.iter().flat_map(move |(base_rtts, gaps)| {
            gaps.bins().map(move |(range, count)| GapRecord {
                src,
                flow,
                from: Time(range.start),
                until: Time(range.end),
                base_rtt: self.base_rtt,
                base_rtts: *base_rtts,
                count,
            })
        })
    }
}
