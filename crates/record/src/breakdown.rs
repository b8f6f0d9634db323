//! The parts of a summary that go by names: kinds of traffic, windows of time, and channels.
//!
//! Each is a map in the order in which the run names its parts, so that a claim can address
//! `windows.hot.groups.victim.throughput_bps`.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use netloom_units::Time;
use serde::{Deserialize, Serialize};

use crate::channel_tally::ChannelTally;
use crate::packets::{PacketPathSummary, PacketStatistics};
use crate::records::{ChannelRecord, ChannelWindowRecord, Records, Window, picoseconds};
use crate::series::SeriesError;
use crate::statistics::Statistics;
use crate::summary::{FlowSummary, share};

/// Flows of one kind of traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupSummary {
    /// The flows that count.
    pub flows: FlowSummary,
    /// Flow completion time at the receiver, in picoseconds, of completed flows.
    pub fct_ps: Option<Statistics>,
    /// FCT divided by the FCT on an idle fabric, of completed flows.
    pub slowdown: Option<Statistics>,
    /// Payload delivered from the end of the warm-up to the end of the load, over that time, in bit/s.
    pub throughput_bps: Option<f64>,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Share of the packets that arrived with a sequence number above the next expected one.
    pub ooo_share: f64,
    /// Most packets of a flow that waited at its receiver at a time for one with a lower sequence number.
    pub max_resequencing: u32,
    /// Congestion notifications that reached senders.
    pub cnms: u64,
}

/// An interval of time that is measured on its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowSummary {
    /// Its first instant.
    #[serde(rename = "from_ps", with = "picoseconds")]
    pub from: Time,
    /// The instant after its last.
    #[serde(rename = "until_ps", with = "picoseconds")]
    pub until: Time,
    /// Payload delivered in the window, over its length, in bit/s.
    pub throughput_bps: f64,
    /// The same by kind of traffic.
    pub groups: IndexMap<String, WindowGroupSummary>,
}

/// Flows of one kind of traffic in one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WindowGroupSummary {
    /// Payload delivered in the window, over its length, in bit/s.
    pub throughput_bps: f64,
}

/// A channel that was given a name. What it carries includes headers and all kinds of packets.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelSummary {
    /// Bytes sent under load over the time of that, in bit/s.
    pub throughput_bps: f64,
    /// Average over time of the bytes that waited.
    pub mean_queue_bytes: f64,
    /// Most bytes that waited at a time.
    pub max_queue_bytes: u64,
    /// Share of the simulated time in which flow control kept packets from being sent.
    pub paused_share: f64,
    /// Packets dropped.
    pub drops: u64,
    /// The same in each window.
    pub windows: IndexMap<String, ChannelWindowSummary>,
}

/// A channel that was given a name, in one window.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ChannelWindowSummary {
    /// Bytes sent in the window over its length, in bit/s.
    pub throughput_bps: f64,
    /// Average over the window of the bytes that waited.
    pub mean_queue_bytes: f64,
    /// Share of the window in which flow control kept packets from being sent.
    pub paused_share: f64,
}

/// Bytes over a time, in bit/s; nothing in no time is no throughput.
pub(crate) fn throughput(bytes: u64, time: Time) -> f64 {
    if time == Time::ZERO { 0.0 } else { 8.0 * bytes as f64 / time.as_secs_f64() }
}

/// Latency and hops by kind of traffic, by class if there is more than one, and of all packets together.
pub(crate) fn packet_paths(records: &Records) -> IndexMap<String, PacketPathSummary> {
    let mut all = PacketStatistics::default();
    let mut by_group: BTreeMap<u16, PacketStatistics> = BTreeMap::new();
    let mut by_class: BTreeMap<u8, PacketStatistics> = BTreeMap::new();
    for (&(group, class), packets) in records.packets.iter().filter(|(_, packets)| packets.count() > 0) {
        by_group.entry(group).or_default().merge(packets);
        by_class.entry(class).or_default().merge(packets);
        all.merge(packets);
    }
    let name = |group: &u16| records.groups[usize::from(*group)].clone();
    let mut paths: IndexMap<_, _> =
        by_group.iter().map(|(group, packets)| (name(group), packets.summary())).collect();
    if by_class.len() > 1 {
        paths.extend(by_class.iter().map(|(class, packets)| (format!("class-{class}"), packets.summary())));
    }
    if all.count() > 0 {
        paths.insert("all".to_owned(), all.summary());
    }
    paths
}

/// Every window.
pub(crate) fn windows(records: &Records) -> Result<IndexMap<String, WindowSummary>, SeriesError> {
    let mut bytes = vec![vec![0; records.groups.len()]; records.windows.len()];
    for record in records.window_flows.rows()? {
        let record = record?;
        let window = bytes.get_mut(usize::from(record.window));
        if let Some(sum) = window.and_then(|groups| groups.get_mut(usize::from(record.group))) {
            *sum += record.bytes;
        }
    }
    let summarise = |(window, bytes): (&Window, Vec<u64>)| {
        let length = window.until - window.from;
        let group = |bytes: &u64| WindowGroupSummary { throughput_bps: throughput(*bytes, length) };
        let summary = WindowSummary {
            from: window.from,
            until: window.until,
            throughput_bps: throughput(bytes.iter().sum(), length),
            groups: records.groups.iter().cloned().zip(bytes.iter().map(group)).collect(),
        };
        (window.name.clone(), summary)
    };
    Ok(records.windows.iter().zip(bytes).map(summarise).collect())
}

/// Every channel that has a name.
pub(crate) fn channels(records: &Records, tally: &ChannelTally) -> IndexMap<String, ChannelSummary> {
    let simulated = records.totals.simulated;
    let summarise = |channel: &ChannelRecord| ChannelSummary {
        throughput_bps: throughput(channel.bytes - channel.bytes_in_drain, records.totals.load_end()),
        mean_queue_bytes: channel.mean_queue,
        max_queue_bytes: channel.max_queue,
        paused_share: share(channel.paused.0, simulated.0),
        drops: channel.drops,
        windows: channel_windows(records, channel.channel),
    };
    records
        .named_channels
        .iter()
        .filter_map(|named| {
            let channel = tally.named(named.channel)?;
            Some((named.name.clone(), summarise(channel)))
        })
        .collect()
}

fn channel_windows(records: &Records, channel: u32) -> IndexMap<String, ChannelWindowSummary> {
    let summarise = |record: &ChannelWindowRecord| {
        let window = records.windows.get(usize::from(record.window))?;
        let length = window.until - window.from;
        let summary = ChannelWindowSummary {
            throughput_bps: throughput(record.bytes, length),
            mean_queue_bytes: record.queue_byte_ps as f64 / length.0.max(1) as f64,
            paused_share: share(record.paused.0, length.0),
        };
        Some((window.name.clone(), summary))
    };
    records.window_channels.iter().filter(|record| record.channel == channel).filter_map(summarise).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{NamedChannel, WindowRecord};
    use crate::summary::{Status, Summary, SummaryOptions};
    use crate::testing::records;

    fn summary(records: &Records) -> Summary {
        Summary::new(records, &SummaryOptions::default(), Status::Complete).unwrap()
    }

    #[test]
    fn groups_divide_the_flows_in_the_order_of_their_names() {
        let summary = summary(&records());
        assert_eq!(summary.groups.keys().collect::<Vec<_>>(), ["victim", "hot"]);
        let hot = &summary.groups["hot"];
        assert_eq!((hot.flows.completed, hot.flows.completed_bytes, hot.cnms), (1, 1001, 5));
        assert_eq!(hot.fct_ps.as_ref().unwrap().max, 2e6);
        let victim = &summary.groups["victim"];
        assert_eq!((victim.flows.completed, victim.flows.unfinished), (2, 1));
        assert_eq!((victim.ooo_share, victim.max_resequencing), (4.0 / 30.0, 3));
        assert_eq!(victim.packets + hot.packets, summary.packets.sent);
        // 1100 of 2101 delivered bytes in 10 us.
        assert!((victim.throughput_bps.unwrap() - 1100.0 * 8.0 / 1e-5).abs() < 1.0);
    }

    #[test]
    fn a_window_counts_what_was_delivered_in_it_over_its_whole_length() {
        let summary = summary(&records());
        let window = &summary.windows["burst"];
        assert_eq!((window.from, window.until), (Time::from_us(2), Time::from_us(6)));
        assert!((window.throughput_bps - 600.0 * 8.0 / 4e-6).abs() < 1.0);
        assert!((window.groups["hot"].throughput_bps - 200.0 * 8.0 / 4e-6).abs() < 1.0);
        // The run has ended before this window is over; nothing is delivered after its end.
        assert_eq!(summary.windows["late"].throughput_bps, 0.0);
    }

    #[test]
    fn a_named_channel_is_summed_up_whole_and_by_window() {
        let summary = summary(&records());
        let up = &summary.channels["up"];
        assert_eq!((up.mean_queue_bytes, up.max_queue_bytes, up.drops), (12.5, 1024, 0));
        assert!((up.throughput_bps - 10_000.0 * 8.0 / 1e-5).abs() < 1.0);
        assert_eq!(up.paused_share, 0.2);
        let burst = &up.windows["burst"];
        assert!((burst.throughput_bps - 4000.0 * 8.0 / 4e-6).abs() < 1.0);
        assert_eq!((burst.mean_queue_bytes, burst.paused_share), (25.0, 0.25));
    }

    #[test]
    fn streams_count_in_throughput_and_packets_whenever_they_start_and_never_complete() {
        let mut records = records();
        records.flows[0].stream = true;
        records.flows[3].stream = true;
        let options = SummaryOptions { warm_up: Time(1), ..SummaryOptions::default() };
        let summary = Summary::new(&records, &options, Status::Complete).unwrap();
        assert_eq!((summary.flows.streams, summary.flows.completed, summary.flows.unfinished), (2, 2, 0));
        assert_eq!((summary.flows.excluded_by_warm_up, summary.packets.sent), (0, 40));
        assert_eq!(summary.fct_ps.unwrap().count, 2);
        assert_eq!(summary.groups["victim"].flows.streams, 2);
    }

    #[test]
    fn what_names_no_group_window_or_channel_is_left_out() {
        let mut records = records();
        records.flows[0].group = 9;
        records.window_flows = records
            .window_flows
            .to_vec()
            .unwrap()
            .into_iter()
            .chain([WindowRecord { window: 9, bytes: 1, ..WindowRecord::default() }])
            .collect::<Vec<_>>()
            .into();
        records.named_channels.push(NamedChannel { name: "nowhere".to_owned(), channel: 99 });
        let summary = summary(&records);
        assert_eq!(summary.groups["victim"].flows.completed, 1);
        assert_eq!((summary.windows.len(), summary.channels.len()), (2, 1));
    }
}
