//! What a summary needs to know of flows, gathered while they go by, so that none of them has to be kept.
//!
//! Percentiles are exact: every completed flow leaves its two completion times and its slowdown, 24 bytes. All else are sums.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use netloom_units::{Bytes, Time};

use crate::breakdown::{GroupSummary, throughput};
use crate::records::{FlowRecord, GapRecord, PartRecord};
use crate::statistics::{Statistics, mean_with_zeros};
use crate::summary::{DrainSummary, FlowSummary, GapSummary, PacketSummary, SizeBin, SummaryOptions, share};

/// Counts flows one after the other, in any order.
#[derive(Clone, Debug, Default)]
pub struct FlowTally {
    warm_up: Time,
    /// Upper ends of the flow-size bins, ascending.
    size_bins: Vec<Bytes>,
    /// All flows.
    all: Counts,
    /// The same by kind of traffic.
    groups: BTreeMap<u16, Counts>,
    /// Of completed flows, by kind of traffic and flow-size bin.
    times: BTreeMap<(u16, u16), Times>,
    sender_fcts: Vec<f64>,
    drains: Drains,
    /// Source and number of flows that do not count.
    excluded: Vec<(u32, u32)>,
}

/// Sums over flows.
#[derive(Clone, Debug, Default)]
struct Counts {
    /// Those of the warm-up among them; the other counts are without them.
    all: u64,
    counted: u64,
    streams: u64,
    completed: u64,
    completed_bytes: u64,
    first_start: Option<Time>,
    last_completion: Option<Time>,
    /// Payload delivered after the warm-up and before the drain, by all.
    delivered: u64,
    packets: PacketSummary,
}

/// Completion times at receivers, in picoseconds, and slowdowns.
#[derive(Clone, Debug, Default)]
struct Times {
    fcts: Vec<f64>,
    slowdowns: Vec<f64>,
}

#[derive(Clone, Debug, Default)]
struct Drains {
    drains: u64,
    flows: u64,
    /// Of completed flows that drained.
    shares_of_fct: Vec<f64>,
    shares_of_clock: Vec<f64>,
}

impl FlowTally {
    /// No flow yet.
    pub fn new(options: &SummaryOptions) -> Self {
        FlowTally { warm_up: options.warm_up, size_bins: options.size_bins.clone(), ..FlowTally::default() }
    }

    /// Counts a flow.
    pub fn add(&mut self, flow: &FlowRecord) {
        // A stream lasts, whenever it started.
        let counts = flow.stream || flow.start >= self.warm_up;
        let fct = flow.fct.filter(|_| counts && !flow.stream);
        for sums in [&mut self.all, self.groups.entry(flow.group).or_default()] {
            sums.add(flow, counts, fct);
        }
        if !counts {
            self.excluded.push((flow.src, flow.flow));
            return;
        }
        self.drains.drains += u64::from(flow.drains);
        self.drains.flows += u64::from(flow.drains > 0);
        if let Some(fct) = flow.sender_fct {
            push(&mut self.sender_fcts, fct.0 as f64);
        }
        let Some(fct) = fct else { return };
        let bin = self.size_bins.partition_point(|end| end.0 < flow.bytes) as u16;
        let times = self.times.entry((flow.group, bin)).or_default();
        push(&mut times.fcts, fct.0 as f64);
        // No fabric delivers in no time, but a summary must stay readable: JSON has no infinity.
        push(&mut times.slowdowns, fct.0 as f64 / flow.idle_fct.0.max(1) as f64);
        if flow.drain_time > Time::ZERO {
            // Draining happens at the sender, whose clock stops at the last ACK.
            let took = flow.sender_fct.unwrap_or(fct);
            self.drains.shares_of_fct.push(share(flow.drain_time.0, took.0));
            self.drains.shares_of_clock.push(share(flow.drain_time.0, (flow.start + took).0));
        }
    }

    /// The flows that count.
    pub(crate) fn flows(&self) -> FlowSummary {
        self.all.flows(self.warm_up)
    }

    /// What happened to their packets.
    pub(crate) fn packets(&self) -> PacketSummary {
        self.all.packets()
    }

    /// Their completion times at receivers.
    pub(crate) fn fct(&self) -> Option<Statistics> {
        self.statistics(|_| true, |times| &times.fcts)
    }

    /// Their completion times at senders.
    pub(crate) fn sender_fct(&self) -> Option<Statistics> {
        Statistics::of(self.sender_fcts.clone())
    }

    /// Their slowdowns.
    pub(crate) fn slowdown(&self) -> Option<Statistics> {
        self.statistics(|_| true, |times| &times.slowdowns)
    }

    /// Statistics of the completed flows of the kinds and bins that are `wanted`.
    fn statistics(
        &self,
        wanted: impl Fn(&(u16, u16)) -> bool,
        values: fn(&Times) -> &Vec<f64>,
    ) -> Option<Statistics> {
        let parts = || self.times.iter().filter(|(of, _)| wanted(of)).map(|(_, times)| values(times));
        let mut all = Vec::with_capacity(parts().map(Vec::len).sum());
        parts().for_each(|part| all.extend_from_slice(part));
        Statistics::of(all)
    }

    /// Completed flows by size; bins without any are left out.
    pub(crate) fn by_size(&self) -> Vec<SizeBin> {
        let ends = &self.size_bins;
        let summarise = |index: usize| {
            let wanted = |&(_, bin): &(u16, u16)| usize::from(bin) == index;
            Some(SizeBin {
                above_bytes: index.checked_sub(1).map_or(0, |below| ends[below].0),
                up_to_bytes: ends.get(index).map(|end| end.0),
                fct_ps: self.statistics(wanted, |times| &times.fcts)?,
                slowdown: self.statistics(wanted, |times| &times.slowdowns)?,
            })
        };
        (0..=ends.len()).filter_map(summarise).collect()
    }

    /// Payload of the completed flows over the time from their first start to their last completion, in bit/s.
    pub(crate) fn goodput(&self) -> Option<f64> {
        let (first, last) = (self.all.first_start?, self.all.last_completion?);
        (last > first).then(|| throughput(self.all.completed_bytes, last - first))
    }

    /// Payload delivered after the warm-up and before the drain, over the time from there to the end of the load, in bit/s; `None` if that
    /// was before.
    pub(crate) fn throughput(&self, load_end: Time) -> Option<f64> {
        self.all.throughput(self.warm_up, load_end)
    }

    /// Every kind of traffic, by name in their order.
    pub(crate) fn groups(&self, names: &[String], load_end: Time) -> IndexMap<String, GroupSummary> {
        let none = Counts::default();
        let summarise = |(group, name): (u16, &String)| {
            let counts = self.groups.get(&group).unwrap_or(&none);
            let wanted = |&(of, _): &(u16, u16)| of == group;
            let packets = counts.packets();
            let summary = GroupSummary {
                flows: counts.flows(self.warm_up),
                fct_ps: self.statistics(wanted, |times| &times.fcts),
                slowdown: self.statistics(wanted, |times| &times.slowdowns),
                throughput_bps: counts.throughput(self.warm_up, load_end),
                packets: packets.sent,
                ooo_share: packets.ooo_share,
                max_resequencing: packets.max_resequencing,
                cnms: packets.cnms,
            };
            (name.clone(), summary)
        };
        (0..).zip(names).map(summarise).collect()
    }

    /// Draining.
    pub(crate) fn draining(&self) -> DrainSummary {
        let Drains { drains, flows, shares_of_fct, shares_of_clock } = &self.drains;
        let mean = |shares: &Vec<f64>| mean_with_zeros(shares.clone(), self.all.completed);
        let (time_share, clock_share) = (mean(shares_of_fct), mean(shares_of_clock));
        DrainSummary { drains: *drains, flows: *flows, time_share, clock_share }
    }

    /// The gaps of flows that count; `parts` tell the servers of NICs, where these have several.
    pub(crate) fn gaps(&self, gaps: &[GapRecord], parts: &[PartRecord]) -> GapSummary {
        let senders: BTreeMap<u32, u32> = parts.iter().map(|part| (part.src, part.server)).collect();
        let mut excluded = self.excluded.clone();
        excluded.sort_unstable();
        let counts = |gap: &&GapRecord| {
            let src = senders.get(&gap.src).copied().unwrap_or(gap.src);
            excluded.binary_search(&(src, gap.flow)).is_err()
        };
        let mut from = [0; 4];
        for gap in gaps.iter().filter(counts) {
            for total in &mut from[..=(gap.base_rtts as usize).min(3)] {
                *total += gap.count;
            }
        }
        let share = |rtts: usize| share(from[rtts], from[0]);
        GapSummary { count: from[0], from_1_rtt: share(1), from_2_rtt: share(2), from_3_rtt: share(3) }
    }
}

impl Counts {
    /// Adds a flow; its completion time, if it completed and counts.
    fn add(&mut self, flow: &FlowRecord, counts: bool, fct: Option<Time>) {
        self.all += 1;
        self.delivered += flow.delivered_after_warm_up - flow.delivered_in_drain;
        if !counts {
            return;
        }
        self.counted += 1;
        self.streams += u64::from(flow.stream);
        self.packets.add(flow);
        if let Some(fct) = fct {
            self.completed += 1;
            self.completed_bytes += flow.bytes;
            self.first_start = Some(self.first_start.map_or(flow.start, |first| first.min(flow.start)));
            self.last_completion = self.last_completion.max(Some(flow.start + fct));
        }
    }

    fn flows(&self, warm_up: Time) -> FlowSummary {
        FlowSummary {
            completed: self.completed,
            unfinished: self.counted - self.completed - self.streams,
            streams: self.streams,
            completed_bytes: self.completed_bytes,
            last_completion: self.last_completion,
            excluded_by_warm_up: self.all - self.counted,
            warm_up,
        }
    }

    fn packets(&self) -> PacketSummary {
        PacketSummary { ooo_share: share(self.packets.ooo, self.packets.sent), ..self.packets.clone() }
    }

    fn throughput(&self, warm_up: Time, load_end: Time) -> Option<f64> {
        (load_end > warm_up).then(|| throughput(self.delivered, load_end - warm_up))
    }
}

impl PacketSummary {
    /// Adds a flow's packets; the share is made at the end.
    fn add(&mut self, flow: &FlowRecord) {
        self.sent += flow.packets;
        self.ooo += flow.ooo_packets;
        self.max_ood = self.max_ood.max(flow.max_ood);
        self.max_resequencing = self.max_resequencing.max(flow.max_resequencing);
        self.trims += flow.trims;
        self.returns += u64::from(flow.returns);
        self.retransmissions += flow.retransmissions;
        self.timeouts += u64::from(flow.timeouts);
        self.ecn_marks += flow.ecn_marks;
        self.cnms += u64::from(flow.cnms);
        self.cnps += u64::from(flow.cnps);
        self.flowlets += u64::from(flow.flowlets);
        self.stretched += u64::from(flow.stretched);
        self.path_changes += u64::from(flow.path_changes);
        self.decisions += flow.decisions;
        self.deviations += flow.deviations;
    }
}

/// Adds a value to a list of millions: doubling would leave half of its memory unused.
fn push(values: &mut Vec<f64>, value: f64) {
    if values.len() == values.capacity() {
        values.reserve_exact(64 + values.len() / 8);
    }
    values.push(value);
}
