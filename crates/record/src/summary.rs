//! The summary of a run: what `summary.json` holds.

use indexmap::IndexMap;
use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::breakdown::{self, ChannelSummary, GroupSummary, WindowSummary};
use crate::jobs::JobSummary;
use crate::packets::PacketPathSummary;
use crate::records::{GapRecord, Records, Totals, picoseconds};
use crate::series::{Series, SeriesError};
use crate::statistics::Statistics;
use crate::tally::Tally;

/// What the summary counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SummaryOptions {
    /// Flows that start before this time are left out of the summary (not out of the tables).
    pub warm_up: Time,
    /// Upper ends of the flow-size bins, ascending; a last bin holds all larger flows.
    pub size_bins: Vec<Bytes>,
}

impl Default for SummaryOptions {
    fn default() -> Self {
        let ends = [10_000, 100_000, 1_000_000, 10_000_000];
        SummaryOptions { warm_up: Time::ZERO, size_bins: ends.map(Bytes).to_vec() }
    }
}

/// Whether the run came to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It did.
    Complete,
    /// It was stopped early; the records hold what was seen until then.
    Interrupted,
}

/// The parts of a run that were skipped as they were steady, and the error of that as it was measured in the same run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SteadySkipped {
    /// The largest error that was allowed, as a share.
    pub max_error: f64,
    /// Number of steady stretches of time, including audited ones.
    pub stretches: u64,
    /// Number of them that were skipped.
    pub jumps: u64,
    /// Simulated time that was skipped.
    #[serde(rename = "time_ps", with = "picoseconds")]
    pub time: Time,
    /// Packets times the channels they crossed meanwhile.
    pub packet_hops: u64,
    /// Number of stretches that were run in packets to measure the error.
    pub audited: u64,
    /// Flows in these. The error of each is the difference between the bytes that it delivered and those predicted, as a share of the latter.
    pub audited_flows: u64,
    /// Mean of these errors; `null` if there was no audit.
    pub error_mean: Option<f64>,
    /// Half the width of the 95% interval of the mean over audits (Student's t, audits as independent draws); `null` if there were fewer than two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_plus_minus: Option<f64>,
    /// 99th percentile of them.
    pub error_p99: Option<f64>,
    /// The largest of them.
    pub error_max: Option<f64>,
    /// Why no more was skipped from some instant on, if that was so.
    pub stopped: Option<String>,
}

/// The summary of a run. It is a function of the records alone: the same run gives the same bytes on any number of
/// threads.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// Whether the run came to its end.
    pub status: Status,
    /// Whether the run counted flows at max-min fair rates instead of packets: nothing queues and nothing is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub flow_level: bool,
    /// How many flows were run flow by flow, in a run of which only a region was run in packets; those of the warm-up, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background_flows: Option<u64>,
    /// What was skipped because it was steady, in a run that may skip such, and the error of that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady: Option<SteadySkipped>,
    /// What is probably a mistake in the scenario, or makes these numbers say less than they seem to; a sentence each.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// The flows that count.
    pub flows: FlowSummary,
    /// Flow completion time at the receiver, in picoseconds, of completed flows.
    pub fct_ps: Option<Statistics>,
    /// Flow completion time at the sender (ACK of the last byte), in picoseconds.
    pub sender_fct_ps: Option<Statistics>,
    /// FCT divided by what one idle path allows, of completed flows. Below 1 where a flow takes several paths that are each slower than its host's link.
    pub slowdown: Option<Statistics>,
    /// The same by flow size; bins without flows are left out.
    pub by_size: Vec<SizeBin>,
    /// Payload of the completed flows over the time from their first start to their last completion, in bit/s.
    pub goodput_bps: Option<f64>,
    /// Payload delivered from the end of the warm-up to the end of the load by all flows, finished or not, over that
    /// time, in bit/s. `None` if the load ended in the warm-up.
    pub throughput_bps: Option<f64>,
    /// What jobs took, by name: those of the scenario, or the programs among its workload; absent where there are none.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub jobs: IndexMap<String, JobSummary>,
    /// Flows by kind of traffic.
    pub groups: IndexMap<String, GroupSummary>,
    /// Intervals of time that are measured on their own.
    pub windows: IndexMap<String, WindowSummary>,
    /// Channels that were given a name.
    pub channels: IndexMap<String, ChannelSummary>,
    /// What happened to the packets of the flows.
    pub packets: PacketSummary,
    /// Latency and hops of the packets that arrived, by kind of traffic, by class (`class-0`, …) if there is more than one, and of `all`; absent unless they were measured.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub packet_paths: IndexMap<String, PacketPathSummary>,
    /// Gaps between the departures of a flow's packets, if they were counted.
    #[serde(default)]
    pub gaps: Option<GapSummary>,
    /// The same at their first switches.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch_gaps: Option<GapSummary>,
    /// Draining, in schemes that drain.
    pub draining: DrainSummary,
    /// Channels by tier.
    pub tiers: Vec<TierSummary>,
    /// Totals of the whole run, warm-up included.
    pub totals: Totals,
}

/// How many flows count.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSummary {
    /// Flows whose last byte was delivered.
    pub completed: u64,
    /// Flows that started and did not finish; streams, which have no end, do not count.
    pub unfinished: u64,
    /// Streams: open-loop traffic without completion. They count whenever they start.
    pub streams: u64,
    /// Payload of the completed flows, in bytes.
    pub completed_bytes: u64,
    /// When the last byte of the last completed flow was delivered.
    #[serde(rename = "last_completion_ps", with = "picoseconds::option")]
    pub last_completion: Option<Time>,
    /// Flows left out because they started before the end of the warm-up.
    pub excluded_by_warm_up: u64,
    /// End of the warm-up.
    #[serde(rename = "warm_up_ps", with = "picoseconds")]
    pub warm_up: Time,
}

/// Completed flows of similar size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SizeBin {
    /// Flows of the bin are larger than this.
    pub above_bytes: u64,
    /// Flows of the bin are at most this large; `null` for the last bin.
    pub up_to_bytes: Option<u64>,
    /// FCT at the receiver, in picoseconds.
    pub fct_ps: Statistics,
    /// FCT divided by the FCT on an idle fabric.
    pub slowdown: Statistics,
}

/// Packets of the flows that count, finished or not.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketSummary {
    /// Data packets sent, retransmissions included.
    pub sent: u64,
    /// Packets that arrived with a sequence number above the next expected one.
    pub ooo: u64,
    /// `ooo` divided by `sent`.
    pub ooo_share: f64,
    /// Largest distance between an arriving and the expected sequence number, in packets.
    pub max_ood: u32,
    /// Most packets of a flow that waited at its receiver at a time for one with a lower sequence number.
    pub max_resequencing: u32,
    /// Data packets that arrived as headers only, because they had been trimmed.
    #[serde(default)]
    pub trims: u64,
    /// Data packets whose header came back to the sender.
    #[serde(default)]
    pub returned_to_sender: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Data packets that arrived with an ECN mark.
    pub ecn_marks: u64,
    /// Congestion notifications of switches that reached senders (CNMs of IEEE 802.1Qau).
    pub cnms: u64,
    /// Congestion notifications of receivers that reached senders (CNPs of RoCEv2).
    #[serde(default)]
    pub cnps: u64,
    /// Flowlets: runs of a flow's packets that a gap as long as the flowlet threshold separates at the NIC.
    #[serde(default)]
    pub flowlets: u64,
    /// Gaps that hosts made longer (HF²T).
    #[serde(default)]
    pub stretched: u64,
    /// Changes of path by senders.
    pub path_changes: u64,
    /// Routing decisions.
    pub decisions: u64,
    /// Routing decisions that differed from the default path.
    pub non_default_decisions: u64,
}

/// Gaps between packets of the flows that count.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GapSummary {
    /// How many gaps there were.
    pub count: u64,
    /// Share of those that lasted at least a base round-trip time of their flow.
    pub from_1_rtt: f64,
    /// The same of two base round-trip times.
    pub from_2_rtt: f64,
    /// The same of three.
    pub from_3_rtt: f64,
}

/// Draining (Flowcut switching).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DrainSummary {
    /// Number of drains.
    pub drains: u64,
    /// Flows that drained at least once.
    pub flows: u64,
    /// Time paused divided by the FCT at the sender, averaged over completed flows.
    pub time_share: Option<f64>,
    /// Time paused divided by the time at which the flow was complete at its sender, counted from the beginning of the run; averaged over completed
    /// flows. The Flowcut authors' simulator divides so.
    pub clock_share: Option<f64>,
}

/// Channels of one tier, both directions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TierSummary {
    /// Class of links.
    pub tier: String,
    /// Number of channels.
    pub channels: u64,
    /// Share of the time under load spent transmitting, averaged over the channels.
    pub mean_utilisation: f64,
    /// The same of the busiest channel.
    pub max_utilisation: f64,
    /// Share of the time under load in which something was active, from the first start to the last activity, spent transmitting; averaged over the channels.
    #[serde(default)]
    pub mean_active_utilisation: f64,
    /// The same of the busiest channel.
    #[serde(default)]
    pub max_active_utilisation: f64,
    /// Average over time and channels of the bytes that waited.
    pub mean_queue_bytes: f64,
    /// Most bytes that waited at a port.
    pub max_queue_bytes: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Packets that lost their payload.
    #[serde(default)]
    pub trims: u64,
    /// Packets marked (ECN).
    pub marks: u64,
    /// Share of the simulated time in which flow control kept packets from being sent, averaged over the channels.
    pub paused_share: f64,
    /// How often flow control stopped a channel.
    pub pauses: u64,
}

impl Summary {
    /// Summarises a run.
    ///
    /// # Errors
    /// If there are so many flows that what is needed for percentiles goes to a temporary file, and that fails.
    pub fn new(records: &Records, options: &SummaryOptions, status: Status) -> Result<Self, SeriesError> {
        let mut tally = Tally::new(options, &records.named_channels);
        records.flows.iter().for_each(|flow| tally.add_flow(flow));
        records.channels.iter().for_each(|channel| tally.add_channel(channel));
        Summary::of(tally, records, status)
    }

    /// Summarises a run whose flows and channels went by; those among its records, if any, do not count.
    ///
    /// # Errors
    /// If what is needed for percentiles could not be kept in a temporary file.
    pub fn of(tally: Tally, records: &Records, status: Status) -> Result<Self, SeriesError> {
        let Tally { flows, channels } = tally;
        let tally = flows.finish()?;
        let load_end = records.totals.load_end();
        let gaps = |gaps: &Option<Series<GapRecord>>| {
            let gaps = gaps.as_ref().map(|gaps| tally.gaps(gaps, records.parts.as_ref()));
            gaps.transpose()
        };
        Ok(Summary {
            status,
            flow_level: false,
            background_flows: None,
            steady: None,
            warnings: Vec::new(),
            flows: tally.flows(),
            fct_ps: tally.spreads().fct.all(),
            sender_fct_ps: tally.spreads().sender_fct.statistics(),
            slowdown: tally.spreads().slowdown.all(),
            by_size: tally.by_size(),
            goodput_bps: tally.goodput(),
            throughput_bps: tally.throughput(load_end),
            jobs: records.jobs.summaries(),
            groups: tally.groups(&records.groups, load_end),
            windows: breakdown::windows(records)?,
            channels: breakdown::channels(records, &channels),
            packets: tally.packets(),
            packet_paths: breakdown::packet_paths(records),
            gaps: gaps(&records.gaps)?,
            switch_gaps: gaps(&records.switch_gaps)?,
            draining: tally.draining(),
            tiers: channels.tiers(&records.totals),
            totals: records.totals.clone(),
        })
    }
}

/// A share of a whole that may be empty.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{channel, flow, records};

    fn summary(options: &SummaryOptions) -> Summary {
        Summary::new(&records(), options, Status::Complete).unwrap()
    }

    #[test]
    fn completed_and_unfinished_flows_are_told_apart() {
        let summary = summary(&SummaryOptions::default());
        assert_eq!((summary.flows.completed, summary.flows.unfinished), (3, 1));
        assert_eq!(summary.flows.last_completion, Some(Time::from_us(5)));
        let fct = summary.fct_ps.unwrap();
        assert_eq!((fct.count, fct.mean, fct.max), (3, 2e6, 3e6));
        assert_eq!(summary.slowdown.unwrap().max, 3.0);
    }

    #[test]
    fn flows_that_start_in_the_warm_up_do_not_count() {
        let options = SummaryOptions { warm_up: Time::from_us(1), ..Default::default() };
        let summary = summary(&options);
        assert_eq!((summary.flows.excluded_by_warm_up, summary.flows.completed), (1, 2));
        assert_eq!(summary.packets.sent, 30);
        // Payload that arrives after the warm-up counts whenever its flow has started.
        assert!((summary.throughput_bps.unwrap() - 2101.0 * 8.0 / 9e-6).abs() < 1.0);
        let too_long = SummaryOptions { warm_up: Time::from_us(10), ..Default::default() };
        assert_eq!(self::summary(&too_long).throughput_bps, None);
    }

    #[test]
    fn a_flow_belongs_to_the_first_bin_that_holds_its_size() {
        let options = SummaryOptions { size_bins: vec![Bytes(100), Bytes(1000)], ..Default::default() };
        let bins = summary(&options).by_size;
        let ends: Vec<_> = bins.iter().map(|b| (b.above_bytes, b.up_to_bytes, b.fct_ps.count)).collect();
        assert_eq!(ends, [(0, Some(100), 1), (100, Some(1000), 1), (1000, None, 1)]);
    }

    #[test]
    fn shares_are_of_what_they_say() {
        let summary = summary(&SummaryOptions::default());
        assert_eq!(summary.packets.ooo_share, 4.0 / 40.0);
        // One of three flows paused for half of its sender-side FCT.
        assert_eq!(summary.draining.time_share, Some(0.5 / 3.0));
        // That began at 1 us and was complete at 3 us.
        assert_eq!(summary.draining.clock_share, Some(1.0 / 3.0 / 3.0));
        assert_eq!((summary.draining.drains, summary.draining.flows), (2, 1));
        // 100 + 1000 + 1001 bytes from 0 to 5 us.
        assert!((summary.goodput_bps.unwrap() - 2101.0 * 8.0 / 5e-6).abs() < 1.0);
        // The same bytes over the whole run.
        assert!((summary.throughput_bps.unwrap() - 2101.0 * 8.0 / 1e-5).abs() < 1.0);
    }

    #[test]
    fn the_drain_is_left_out_of_throughput_and_link_use() {
        let mut records = records();
        // The load ends at 8 us. Of the 2101 bytes 101 arrived later; host channels sent for 1 us of their 5 and 2.5 us later.
        records.totals.load_until = Some(Time::from_us(8));
        records.flows[2].delivered_in_drain = 101;
        for channel in &mut records.channels[..2] {
            (channel.bytes_in_drain, channel.busy_in_drain) = (2_000, Time::from_us(1));
        }
        let summary = Summary::new(&records, &SummaryOptions::default(), Status::Complete).unwrap();
        assert!((summary.throughput_bps.unwrap() - 2000.0 * 8.0 / 8e-6).abs() < 1.0);
        assert!((summary.groups["hot"].throughput_bps.unwrap() - 900.0 * 8.0 / 8e-6).abs() < 1.0);
        let host = &summary.tiers[0];
        assert_eq!((host.mean_utilisation, host.max_utilisation), (5.5 / 2.0 / 8.0, 0.5));
        assert!((summary.channels["up"].throughput_bps - 8_000.0 * 8.0 / 8e-6).abs() < 1.0);
        // Nothing but the drain is left after this warm-up.
        let options = SummaryOptions { warm_up: Time::from_us(8), ..SummaryOptions::default() };
        assert_eq!(Summary::new(&records, &options, Status::Complete).unwrap().throughput_bps, None);
    }

    #[test]
    fn tiers_average_over_their_channels() {
        let tiers = summary(&SummaryOptions::default()).tiers;
        assert_eq!(tiers.iter().map(|t| t.tier.as_str()).collect::<Vec<_>>(), ["host", "spine"]);
        assert_eq!((tiers[0].mean_utilisation, tiers[0].max_utilisation), (0.375, 0.5));
        // Of 10 us two and a half were before the first start, and two and a half after the last activity.
        let mut records = records();
        records.totals.active_from = Some(Time(2_500_000));
        records.totals.active_until = Time(7_500_000);
        let host = &Summary::new(&records, &SummaryOptions::default(), Status::Complete).unwrap().tiers[0];
        assert_eq!((host.mean_utilisation, host.max_utilisation), (0.375, 0.5));
        assert_eq!((host.mean_active_utilisation, host.max_active_utilisation), (0.75, 1.0));
        assert_eq!((tiers[0].paused_share, tiers[0].pauses, tiers[1].pauses), (0.1, 3, 0));
        assert_eq!((tiers[0].max_queue_bytes, tiers[1].channels), (1024, 1));
    }

    #[test]
    fn an_empty_run_has_a_summary() {
        let summary =
            Summary::new(&Records::default(), &SummaryOptions::default(), Status::Interrupted).unwrap();
        assert_eq!((summary.flows.completed, summary.fct_ps.is_none()), (0, true));
        let json = serde_json::to_string(&summary).unwrap();
        assert!(json.contains(r#""status":"interrupted""#), "{json}");
    }

    #[test]
    fn the_order_of_equal_records_does_not_matter_after_sorting() {
        let mut shuffled = records();
        shuffled.flows.reverse();
        shuffled.channels.reverse();
        shuffled.window_channels.reverse();
        shuffled.sort();
        assert_eq!(shuffled, records());
        assert_ne!(flow(0, 0), flow(0, 1));
        assert_ne!(channel(0, "host"), channel(1, "host"));
    }
}
