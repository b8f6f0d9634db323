//! What was seen of single packets: latency and hops of those that arrived, and where chosen ones passed.

use std::collections::BTreeMap;

use netloom_units::{Histogram, Time, narrow};
use serde::{Deserialize, Serialize};

use crate::node_records::PacketStatisticsRow;

/// Latencies and hops of packets, in little memory: a histogram whose bins are at most 1/64 of their latency wide.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketStatistics {
    /// Packets by their latency in picoseconds.
    latencies: Histogram<6>,
    /// Packets by the channels that they crossed.
    hops: Vec<u64>,
    sum_ps: u128,
    max: Time,
}

/// What a row of a flow's statistics holds.
#[derive(Clone, Copy)]
enum Quantity {
    Latency,
    Hops,
    Sum,
    Max,
}

impl PacketStatistics {
    /// Counts a packet that arrived after `latency` over this many channels.
    pub fn add(&mut self, latency: Time, hops: u16) {
        self.latencies.add(latency.0);
        self.add_hops(usize::from(hops), 1);
        self.sum_ps += u128::from(latency.0);
        self.max = self.max.max(latency);
    }

    fn add_hops(&mut self, hops: usize, packets: u64) {
        if self.hops.len() <= hops {
            self.hops.resize(hops + 1, 0);
        }
        self.hops[hops] += packets;
    }

    /// Counts all packets of another.
    pub fn merge(&mut self, other: &Self) {
        self.latencies.merge(&other.latencies);
        for (hops, &packets) in other.hops.iter().enumerate() {
            self.add_hops(hops, packets);
        }
        self.sum_ps += other.sum_ps;
        self.max = self.max.max(other.max);
    }

    /// All numbers as rows of a flow.
    #[expect(clippy::cast_possible_truncation, reason = "the two words of a number")]
    pub fn rows(&self, src: u32, flow: u32) -> impl Iterator<Item = PacketStatisticsRow> + '_ {
        let counts = |quantity: Quantity, counts| (quantity as u8, counts);
        let latencies = self.latencies.counts().map(|(bin, packets)| (u32::from(bin), packets));
        let hops = (0..).zip(self.hops.iter().copied()).filter(|&(_, packets)| packets > 0);
        // In two words.
        let sum = [(0, self.sum_ps as u64), (1, (self.sum_ps >> 64) as u64)].into_iter();
        let latencies = latencies.map(move |row| counts(Quantity::Latency, row));
        let rest = hops.map(move |row| counts(Quantity::Hops, row));
        let rest = rest.chain(sum.map(move |row| counts(Quantity::Sum, row)));
        let rest = rest.chain([counts(Quantity::Max, (0, self.max.0))]);
        let row = move |(quantity, (place, value))| PacketStatisticsRow { src, flow, quantity, place, value };
        latencies.chain(rest).map(row)
    }

    /// Adds a row of a flow.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a bin of latencies, which has 16 bits, as it was written"
    )]
    pub fn add_row(&mut self, row: &PacketStatisticsRow) {
        let &PacketStatisticsRow { quantity, place, value, .. } = row;
        match quantity {
            of if of == Quantity::Latency as u8 => self.latencies.add_to(place as u16, value),
            of if of == Quantity::Hops as u8 => self.add_hops(place as usize, value),
            of if of == Quantity::Sum as u8 => self.sum_ps += u128::from(value) << (64 * place),
            _ => self.max = self.max.max(Time(value)),
        }
    }

    /// Number of packets.
    pub fn count(&self) -> u64 {
        self.latencies.total()
    }

    /// Mean latency in picoseconds.
    pub fn mean_ps(&self) -> f64 {
        self.sum_ps as f64 / self.count().max(1) as f64
    }

    /// The least latency that no more than a share of the packets exceeds, up to the width of a bin above it.
    pub fn quantile(&self, share: f64) -> Time {
        self.latencies.bound(share).map_or(self.max, |end| Time(end - 1).min(self.max))
    }

    /// Mean number of channels crossed.
    pub fn mean_hops(&self) -> f64 {
        let sum: u64 = self.hops.iter().enumerate().map(|(hops, &packets)| hops as u64 * packets).sum();
        sum as f64 / self.count().max(1) as f64
    }

    fn most_hops(&self) -> u32 {
        narrow::<u32>(self.hops.iter().rposition(|&packets| packets > 0).unwrap_or(0))
    }

    /// The histogram as rows, for a kind and a class of traffic.
    pub fn latency_rows(&self, (group, class): (u16, u8)) -> impl Iterator<Item = LatencyRecord> {
        let row = move |(range, packets): (std::ops::Range<u64>, u64)| LatencyRecord {
            group,
            class,
            from: Time(range.start),
            until: Time(range.end),
            packets,
        };
        self.latencies.bins().map(row)
    }

    /// What the summary says.
    pub(crate) fn summary(&self) -> PacketPathSummary {
        let hops = self.hops.iter().enumerate().filter(|(_, packets)| **packets > 0);
        PacketPathSummary {
            packets: self.count(),
            latency_ps: LatencySummary {
                mean: self.mean_ps(),
                p50: self.quantile(0.5).0,
                p99: self.quantile(0.99).0,
                p99_9: self.quantile(0.999).0,
                max: self.max.0,
            },
            hops_mean: self.mean_hops(),
            hops: hops.map(|(hops, &packets)| (hops.to_string(), packets)).collect(),
        }
    }

    /// A flow's row.
    pub fn flow_record(
        &self,
        (src, dst, flow): (u32, u32, u32),
        (group, class): (u16, u8),
    ) -> FlowPacketRecord {
        FlowPacketRecord {
            src,
            dst,
            flow,
            group,
            class,
            packets: self.count(),
            latency_mean_ps: self.mean_ps(),
            latency_p50: self.quantile(0.5),
            latency_p99: self.quantile(0.99),
            latency_max: self.max,
            hops_mean: self.mean_hops(),
            hops_max: self.most_hops(),
        }
    }
}

/// Packets of a kind of traffic that arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketPathSummary {
    /// Number of packets.
    pub packets: u64,
    /// From leaving the sender's NIC to the arrival at the receiver, in picoseconds.
    pub latency_ps: LatencySummary,
    /// Mean number of channels crossed.
    pub hops_mean: f64,
    /// Packets by the number of channels crossed.
    pub hops: BTreeMap<String, u64>,
}

/// Latencies of packets, in picoseconds. Percentiles are up to 1.6% above the true ones, mean and maximum are exact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LatencySummary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// Largest.
    pub max: u64,
}

/// The packets of a flow that arrived.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FlowPacketRecord {
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// Which kind of traffic: a place in [`Records::groups`](crate::Records::groups).
    pub group: u16,
    /// Its traffic class.
    pub class: u8,
    /// Packets that arrived.
    pub packets: u64,
    /// Their mean latency.
    pub latency_mean_ps: f64,
    /// Median.
    pub latency_p50: Time,
    /// 99th percentile.
    pub latency_p99: Time,
    /// Largest.
    pub latency_max: Time,
    /// Mean number of channels crossed.
    pub hops_mean: f64,
    /// Most channels crossed.
    pub hops_max: u32,
}

/// A bin of the histogram of latencies.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LatencyRecord {
    /// Which kind of traffic: a place in [`Records::groups`](crate::Records::groups).
    pub group: u16,
    /// Traffic class.
    pub class: u8,
    /// Least latency of the bin.
    pub from: Time,
    /// The first latency beyond it.
    pub until: Time,
    /// Packets in it.
    pub packets: u64,
}

/// A packet that came to the end of a channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TraceRecord {
    /// When it arrived there.
    pub time: Time,
    /// Which channel.
    pub channel: u32,
    /// `data`, `header` (without its payload), `returned`, `unreachable`, `pause`, or a control packet: `ack`, `uet-ack`, `nack`, `cnp`, `pull`, `request`, `probe`, `probe-answer`, `path-probe`,
    /// `path-probe-answer`, `cnm`, `source-notice`, `flow-ack`, `signal`, `xoff`, `xon`, and `unreachable-ack` and the like where a cut link sends them back.
    pub kind: String,
    /// Host that sent it.
    pub src: u32,
    /// Host that it goes to.
    pub dst: u32,
    /// Number of the flow at the data's source.
    pub flow: u32,
    /// Data: its number within the flow. ACK: that of the packet it acknowledges. PAUSE: a bit per data queue, set for those that must wait.
    pub seq: u32,
    /// Bytes on the wire.
    pub size: u32,
    /// Data: when it left its NIC. ACK: that of the packet it acknowledges.
    pub sent: Time,
    /// Data: channels crossed so far. ACK: those of the packet it acknowledges.
    pub hops: u32,
    /// Traffic class.
    pub class: u8,
    /// Whether it has an ECN mark.
    pub marked: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_at_most_a_bin_too_high(latencies in prop::collection::vec(0..1u64 << 44, 1..200)) {
            let (mut all, mut parts) = (PacketStatistics::default(), [PacketStatistics::default(), PacketStatistics::default()]);
            for (i, &latency) in latencies.iter().enumerate() {
                all.add(Time(latency), (latency % 7) as u16);
                parts[i % 2].add(Time(latency), (latency % 7) as u16);
            }
            let [mut merged, other] = parts;
            merged.merge(&other);
            prop_assert_eq!(&merged, &all);
            let mut put_together = PacketStatistics::default();
            all.rows(1, 2).for_each(|row| put_together.add_row(&row));
            prop_assert_eq!(&put_together, &all);
            let mut sorted = latencies.clone();
            sorted.sort_unstable();
            for share in [0.5, 0.99, 1.0] {
                let exact = sorted[((sorted.len() as f64 * share).ceil() as usize).max(1) - 1];
                let found = all.quantile(share).0;
                prop_assert!(exact <= found && found <= exact + exact / 64, "{share}: {exact} {found}");
            }
            let summary = all.summary();
            prop_assert_eq!(summary.latency_ps.max, *sorted.last().unwrap());
            prop_assert_eq!(summary.hops.values().sum::<u64>(), latencies.len() as u64);
            let mean = latencies.iter().map(|&l| u128::from(l)).sum::<u128>() as f64 / latencies.len() as f64;
            prop_assert!((summary.latency_ps.mean - mean).abs() <= mean * 1e-12);
        }
    }
}
