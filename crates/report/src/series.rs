//! Throughput and queues over time, reduced to what a chart can show.

use std::collections::BTreeMap;

use netloom_record::{ChannelRecord, FlowSampleRecord, SampleRecord};
use serde::Serialize;

use crate::curve::round;

/// Moments at most.
const MOST: usize = 300;
/// Moments of each point, however many points a report has.
const FEWEST: usize = 40;
/// Moments of all points together, so that a page of many points stays small.
const ALL: usize = 8_000;
/// Channels that are shown on their own: those with the longest queues.
const CHANNELS: usize = 6;

/// What was sampled in one run.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Series {
    /// End of each interval of time, in microseconds.
    pub(crate) time_us: Vec<f64>,
    /// Bytes per second that each tier sent, in Gbit/s, and the longest queue of any of its ports, in kB.
    pub(crate) tiers: Vec<Line>,
    /// The same of single channels.
    channels: Vec<Line>,
    /// Payload delivered by the sampled flows together, in Gbit/s, and the most packets of a flow that waited for their order.
    flows: Option<FlowLine>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) gbps: Vec<f64>,
    pub(crate) queue_kb: Vec<f64>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct FlowLine {
    time_us: Vec<f64>,
    gbps: Vec<f64>,
    resequencing: Vec<u32>,
}

impl Series {
    /// Reduces the samples of a point's first run; `points`: how many the report has. `None` if nothing was sampled.
    pub(crate) fn of(
        samples: &[SampleRecord],
        flow_samples: &[FlowSampleRecord],
        channels: &[ChannelRecord],
        points: usize,
    ) -> Option<Self> {
        if samples.is_empty() && flow_samples.is_empty() {
            return None;
        }
        let most = (ALL / points.max(1)).clamp(FEWEST, MOST);
        let intervals = Intervals::of(samples.iter().map(|sample| sample.time.0), most);
        let mut by_channel: BTreeMap<u32, Sums> = BTreeMap::new();
        for sample in samples {
            let sums = by_channel.entry(sample.channel).or_insert_with(|| Sums::new(intervals.count()));
            sums.add(intervals.of_time(sample.time.0), sample.bytes, sample.queue);
        }
        // Channels are in order of their numbers.
        let name = |channel: u32| {
            channels
                .binary_search_by_key(&channel, |record| record.channel)
                .ok()
                .map(|place| &channels[place])
        };
        let mut tiers: Vec<(String, Sums)> = Vec::new();
        for (channel, sums) in &by_channel {
            let tier = name(*channel).map_or_else(|| "?".to_owned(), |record| record.tier.to_string());
            match tiers.iter_mut().find(|(known, _)| *known == tier) {
                Some((_, all)) => all.merge(sums),
                None => tiers.push((tier, sums.clone())),
            }
        }
        let mut hottest: Vec<(u32, Sums)> = by_channel.into_iter().collect();
        // Of equal queues the busier channel, then the lower number.
        hottest.sort_by_key(|(channel, sums)| (std::cmp::Reverse(sums.heat()), *channel));
        hottest.truncate(CHANNELS);
        let channel_name = |channel: u32| {
            name(channel).map_or_else(
                || format!("channel {channel}"),
                |record| format!("{} → {}", record.from, record.to),
            )
        };
        Some(Series {
            time_us: intervals.ends_us(),
            tiers: tiers.into_iter().map(|(name, sums)| sums.line(name, &intervals)).collect(),
            channels: hottest
                .into_iter()
                .map(|(channel, sums)| sums.line(channel_name(channel), &intervals))
                .collect(),
            flows: flow_line(flow_samples, most),
        })
    }
}

fn flow_line(samples: &[FlowSampleRecord], most: usize) -> Option<FlowLine> {
    if samples.is_empty() {
        return None;
    }
    let intervals = Intervals::of(samples.iter().map(|sample| sample.time.0), most);
    let mut bytes = vec![0; intervals.count()];
    let mut resequencing = vec![0; intervals.count()];
    for sample in samples {
        let interval = intervals.of_time(sample.time.0);
        bytes[interval] += sample.bytes;
        resequencing[interval] = resequencing[interval].max(sample.resequencing);
    }
    let gbps = bytes.iter().enumerate().map(|(interval, &bytes)| intervals.gbps(interval, bytes)).collect();
    Some(FlowLine { time_us: intervals.ends_us(), gbps, resequencing })
}

/// Intervals of time, each with one or more moments at which samples were taken.
#[derive(Debug)]
struct Intervals {
    /// Moments in order, in picoseconds.
    times: Vec<u64>,
    /// Moments per interval.
    each: usize,
}

impl Intervals {
    fn of(times: impl Iterator<Item = u64>, most: usize) -> Self {
        let mut times: Vec<u64> = times.collect();
        times.sort_unstable();
        times.dedup();
        let each = times.len().div_ceil(most).max(1);
        Intervals { times, each }
    }

    fn count(&self) -> usize {
        self.times.len().div_ceil(self.each)
    }

    /// Which interval a moment belongs to.
    fn of_time(&self, time: u64) -> usize {
        self.times.partition_point(|&other| other < time) / self.each
    }

    fn end(&self, interval: usize) -> u64 {
        self.times[((interval + 1) * self.each).min(self.times.len()) - 1]
    }

    fn ends_us(&self) -> Vec<f64> {
        (0..self.count()).map(|interval| round(self.end(interval) as f64 * 1e-6)).collect()
    }

    /// Bytes of a interval as a rate.
    fn gbps(&self, interval: usize, bytes: u64) -> f64 {
        let start = if interval == 0 { 0 } else { self.end(interval - 1) };
        let length = self.end(interval) - start;
        if length == 0 { 0.0 } else { round(8e3 * bytes as f64 / length as f64) }
    }
}

/// Bytes sent and the longest queue, by interval.
#[derive(Clone, Debug)]
struct Sums {
    bytes: Vec<u64>,
    queue: Vec<u64>,
}

impl Sums {
    fn new(intervals: usize) -> Self {
        Sums { bytes: vec![0; intervals], queue: vec![0; intervals] }
    }

    fn add(&mut self, interval: usize, bytes: u64, queue: u64) {
        self.bytes[interval] += bytes;
        self.queue[interval] = self.queue[interval].max(queue);
    }

    fn merge(&mut self, other: &Sums) {
        for interval in 0..self.bytes.len() {
            self.add(interval, other.bytes[interval], other.queue[interval]);
        }
    }

    fn heat(&self) -> (u64, u64) {
        (self.queue.iter().copied().max().unwrap_or(0), self.bytes.iter().sum())
    }

    fn line(&self, name: String, intervals: &Intervals) -> Line {
        Line {
            name,
            gbps: self
                .bytes
                .iter()
                .enumerate()
                .map(|(interval, &bytes)| intervals.gbps(interval, bytes))
                .collect(),
            queue_kb: self.queue.iter().map(|&queue| round(queue as f64 * 1e-3)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use netloom_units::Time;

    use super::*;

    fn sample(us: u64, channel: u32, queue: u64, bytes: u64) -> SampleRecord {
        SampleRecord { time: Time::from_us(us), channel, queue, bytes, ..SampleRecord::default() }
    }

    fn channel(channel: u32, tier: &str) -> ChannelRecord {
        ChannelRecord {
            channel,
            tier: tier.into(),
            from: "h0".into(),
            to: "s0".into(),
            ..ChannelRecord::default()
        }
    }

    #[test]
    fn tiers_sum_bytes_and_keep_the_longest_queue() {
        let samples = [
            sample(1, 0, 500, 125_000),
            sample(1, 1, 800, 125_000),
            sample(2, 0, 0, 0),
            sample(2, 1, 100, 25_000),
        ];
        let series = Series::of(&samples, &[], &[channel(0, "host"), channel(1, "host")], 1).unwrap();
        assert_eq!(series.time_us, [1.0, 2.0]);
        assert_eq!(series.tiers[0].gbps, [2000.0, 200.0]);
        assert_eq!(series.tiers[0].queue_kb, [0.8, 0.1]);
        assert_eq!(series.channels.iter().map(|line| line.queue_kb[0]).collect::<Vec<_>>(), [0.8, 0.5]);
    }

    #[test]
    fn long_series_keep_their_bytes_and_their_peaks() {
        let mut samples: Vec<_> = (1..=3000).map(|us| sample(us, 0, 10, 125)).collect();
        samples[1234].queue = 77_000;
        let series = Series::of(&samples, &[], &[channel(0, "host")], 1).unwrap();
        assert_eq!(series.time_us.len(), 300);
        assert!(series.tiers[0].gbps.iter().all(|&gbps| gbps == 1.0));
        assert!(series.tiers[0].queue_kb.contains(&77.0));
        // Of many points each gets less of the page, and keeps its peak.
        let series = Series::of(&samples, &[], &[channel(0, "host")], 100).unwrap();
        assert_eq!(series.time_us.len(), 79);
        assert!(series.tiers[0].queue_kb.contains(&77.0));
    }

    #[test]
    fn what_was_not_sampled_has_no_series() {
        assert_eq!(Series::of(&[], &[], &[channel(0, "host")], 1), None);
    }
}
