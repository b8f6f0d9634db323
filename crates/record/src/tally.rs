//! What a summary needs to know of flows and channels, gathered while they go by, so that none of them has to be kept.
//!
//! Percentiles are exact: every completed flow leaves its two completion times and its slowdown among [values](crate::values), which wait
//! in a series. All else are sums.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use netloom_units::{Bytes, Time};

use crate::breakdown::{GroupSummary, throughput};
use crate::channel_tally::ChannelTally;
use crate::records::{ChannelRecord, FlowRecord, GapRecord, NamedChannel, PartRecord, Sink};
use crate::series::{Series, SeriesError};
use crate::summary::{DrainSummary, FlowSummary, GapSummary, PacketSummary, SizeBin, SummaryOptions, share};
use crate::values::{Spreads, Values};

/// Counts a run's flows and channels for its summary as they go by.
#[derive(Debug)]
pub struct Tally {
    pub(crate) flows: FlowTally,
    pub(crate) channels: ChannelTally,
}

impl Tally {
    /// Nothing yet; channels with a name will be kept.
    pub fn new(options: &SummaryOptions, named: &[NamedChannel]) -> Self {
        Tally { flows: FlowTally::new(options), channels: ChannelTally::new(named) }
    }

    /// Counts a flow, in any order.
    pub fn add_flow(&mut self, flow: &FlowRecord) {
        self.flows.add(flow);
    }

    /// Counts the next channel.
    pub fn add_channel(&mut self, channel: &ChannelRecord) {
        self.channels.add(channel);
    }
}

/// Counts them and keeps nothing else.
impl Sink for Tally {
    fn flow(&mut self, flow: FlowRecord) {
        self.add_flow(&flow);
    }

    fn channel(&mut self, channel: ChannelRecord) {
        self.add_channel(&channel);
    }
}

/// Counts flows one after the other, in any order.
#[derive(Debug, Default)]
pub(crate) struct FlowTally {
    counted: Counted,
    values: Values,
}

/// All that has been counted.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    warm_up: Time,
    /// Upper ends of the flow-size bins, ascending.
    size_bins: Vec<Bytes>,
    /// All flows.
    all: Counts,
    /// The same by kind of traffic.
    groups: BTreeMap<u16, Counts>,
    drains: u64,
    /// Flows that drained.
    draining: u64,
    /// Sources with the first number and the one behind the last of flows that do not count.
    excluded: Vec<(u32, u32, u32)>,
    /// Of completed flows.
    spreads: Spreads,
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

impl FlowTally {
    /// No flow yet.
    ///
    /// # Panics
    /// If there are more bins than 16 bits can number; scenarios have at most 1,000.
    pub(crate) fn new(options: &SummaryOptions) -> Self {
        let SummaryOptions { warm_up, size_bins } = options.clone();
        assert!(size_bins.len() < usize::from(u16::MAX), "flow-size bins have numbers of 16 bits");
        FlowTally { counted: Counted { warm_up, size_bins, ..Counted::default() }, values: Values::default() }
    }

    /// Counts a flow.
    #[expect(clippy::cast_possible_truncation, reason = "bins have numbers of 16 bits: FlowTally::new")]
    pub(crate) fn add(&mut self, flow: &FlowRecord) {
        let FlowTally { counted, values } = self;
        // A stream lasts, whenever it started.
        let counts = flow.stream || flow.start >= counted.warm_up;
        let fct = flow.fct.filter(|_| counts && !flow.stream);
        for sums in [&mut counted.all, counted.groups.entry(flow.group).or_default()] {
            sums.add(flow, counts, fct);
        }
        if !counts {
            counted.exclude(flow.src, flow.flow);
            return;
        }
        counted.drains += u64::from(flow.drains);
        counted.draining += u64::from(flow.drains > 0);
        if let Some(fct) = flow.sender_fct {
            values.ended(fct);
        }
        let Some(fct) = fct else { return };
        let bin = counted.size_bins.partition_point(|end| end.0 < flow.bytes) as u16;
        // No fabric delivers in no time, but a summary must stay readable: JSON has no infinity.
        values.completed((flow.group, bin), fct, fct.0 as f64 / flow.ideal_fct.0.max(1) as f64);
        if flow.drain_time > Time::ZERO {
            // Draining happens at the sender, whose clock stops at the last ACK.
            let took = flow.sender_fct.unwrap_or(fct);
            let drained = |of: Time| share(flow.drain_time.0, of.0);
            values.drained(drained(took), drained(flow.start + took));
        }
    }

    /// What all flows come to.
    ///
    /// # Errors
    /// If what is needed for percentiles could not be kept.
    pub(crate) fn finish(self) -> Result<Counted, SeriesError> {
        let FlowTally { mut counted, values } = self;
        counted.spreads = values.finish()?;
        counted.excluded.sort_unstable();
        Ok(counted)
    }
}

impl Counted {
    /// Flows of a source are mostly numbered in the order of their starts, so those of the warm-up are the first and make one range; streams and messages of
    /// programs make more.
    fn exclude(&mut self, src: u32, flow: u32) {
        match self.excluded.last_mut().filter(|(of, _, until)| (*of, *until) == (src, flow)) {
            Some((_, _, until)) => *until += 1,
            None => self.excluded.push((src, flow, flow + 1)),
        }
    }

    /// Whether a flow counts.
    fn counts(&self, src: u32, flow: u32) -> bool {
        let after = self.excluded.partition_point(|&(of, from, _)| (of, from) <= (src, flow));
        let before = after.checked_sub(1).map(|before| self.excluded[before]);
        before.is_none_or(|(of, _, until)| of != src || until <= flow)
    }

    /// The flows that count.
    pub(crate) fn flows(&self) -> FlowSummary {
        self.all.flows(self.warm_up)
    }

    /// What happened to their packets.
    pub(crate) fn packets(&self) -> PacketSummary {
        self.all.packets()
    }

    /// Their completion times and slowdowns.
    pub(crate) fn spreads(&self) -> &Spreads {
        &self.spreads
    }

    /// Completed flows by size; bins without any are left out.
    #[expect(clippy::cast_possible_truncation, reason = "bins have numbers of 16 bits: FlowTally::new")]
    pub(crate) fn by_size(&self) -> Vec<SizeBin> {
        let ends = &self.size_bins;
        let summarise = |index: usize| {
            Some(SizeBin {
                above_bytes: index.checked_sub(1).map_or(0, |below| ends[below].0),
                up_to_bytes: ends.get(index).map(|end| end.0),
                fct_ps: self.spreads.fct.of_bin(index as u16)?,
                slowdown: self.spreads.slowdown.of_bin(index as u16)?,
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
            let packets = counts.packets();
            let summary = GroupSummary {
                flows: counts.flows(self.warm_up),
                fct_ps: self.spreads.fct.of_group(group),
                slowdown: self.spreads.slowdown.of_group(group),
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
        let mean = |sum: f64| (self.all.completed > 0).then(|| sum / self.all.completed as f64);
        let Spreads { drain_of_fct, drain_of_clock, .. } = self.spreads;
        DrainSummary {
            drains: self.drains,
            flows: self.draining,
            time_share: mean(drain_of_fct),
            clock_share: mean(drain_of_clock),
        }
    }

    /// The gaps of flows that count; `parts` give the servers of NICs, where these have several.
    pub(crate) fn gaps(
        &self,
        gaps: &Series<GapRecord>,
        parts: Option<&Series<PartRecord>>,
    ) -> Result<GapSummary, SeriesError> {
        let mut senders: BTreeMap<u32, u32> = BTreeMap::new();
        if let Some(parts) = parts {
            for part in parts.rows()? {
                let part = part?;
                senders.insert(part.src, part.server);
            }
        }
        let mut from = [0; 4];
        for gap in gaps.rows()? {
            let gap = gap?;
            let src = senders.get(&gap.src).copied().unwrap_or(gap.src);
            if self.counts(src, gap.flow) {
                for total in &mut from[..=(gap.base_rtts as usize).min(3)] {
                    *total += gap.count;
                }
            }
        }
        let share = |rtts: usize| share(from[rtts], from[0]);
        Ok(GapSummary { count: from[0], from_1_rtt: share(1), from_2_rtt: share(2), from_3_rtt: share(3) })
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
        self.returned_to_sender += u64::from(flow.returned_to_sender);
        self.retransmissions += flow.retransmissions;
        self.timeouts += u64::from(flow.timeouts);
        self.ecn_marks += flow.ecn_marks;
        self.cnms += u64::from(flow.cnms);
        self.cnps += u64::from(flow.cnps);
        self.flowlets += u64::from(flow.flowlets);
        self.stretched += u64::from(flow.stretched);
        self.path_changes += u64::from(flow.path_changes);
        self.decisions += flow.decisions;
        self.non_default_decisions += flow.non_default_decisions;
    }
}
