//! What receivers measure over time: payload after the warm-up, in named windows, and per interval.

use std::sync::Arc;

use netloom_record::{
    FlowSampleRecord, GapRecord, PacketHalf, PacketStatistics, Passage, ReceiverHalf, SampleRecord,
    SenderHalf, SeriesWriter, SwitchHalf, TraceRecord, Window, WindowHalf,
};
use netloom_routing::FlowKey;
use netloom_units::Time;

use crate::measure::Measure;

/// What the user wants to know over time, and where the rows of time series go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) warm_up: Time,
    /// When the last source stops; `Time::MAX` if the load lasts until all is done.
    pub(crate) load_until: Time,
    pub(crate) interval: Option<Time>,
    pub(crate) windows: Vec<Window>,
    /// Whether latency and hops of packets are wanted.
    pub(crate) packets: bool,
    /// Whether arrivals must be metered at all.
    pub(crate) is_on: bool,
    /// What flows leave behind at their senders and receivers.
    pub(crate) sent: Arc<SeriesWriter<SenderHalf>>,
    pub(crate) received: Arc<SeriesWriter<ReceiverHalf>>,
    /// How many decisions switches have taken on them.
    pub(crate) decided: Arc<SeriesWriter<SwitchHalf>>,
    /// The gaps between their departures.
    pub(crate) gaps: Arc<SeriesWriter<GapRecord>>,
    /// What switches have seen of flows,
    pub(crate) passages: Arc<SeriesWriter<Passage>>,
    /// and of their gaps at the first switch; a subflow has its own.
    pub(crate) switch_gaps: Arc<SeriesWriter<GapRecord>>,
    /// What meters leave behind.
    pub(crate) in_windows: Arc<SeriesWriter<WindowHalf>>,
    pub(crate) of_packets: Arc<SeriesWriter<PacketHalf>>,
    /// The samples of channels.
    pub(crate) series: Arc<SeriesWriter<SampleRecord>>,
    /// The samples of flows.
    pub(crate) flow_series: Arc<SeriesWriter<FlowSampleRecord>>,
    /// Traced packets.
    pub(crate) trace: Arc<SeriesWriter<TraceRecord>>,
}

impl Watch {
    pub(crate) fn new(measure: &Measure, load_until: Option<Time>) -> Self {
        let Measure { warm_up, sample_flows: interval, packets, .. } = *measure;
        let windows = measure.windows.clone();
        let is_on = warm_up > Time::ZERO || interval.is_some() || packets || !windows.is_empty();
        let load_until = load_until.unwrap_or(Time::MAX);
        Watch { warm_up, load_until, interval, windows, packets, is_on, ..Watch::default() }
    }

    /// Whether a series is lost, so that there is no use in going on.
    pub(crate) fn is_broken(&self) -> bool {
        let series = self.series.is_broken() || self.flow_series.is_broken() || self.trace.is_broken();
        let of_meters = self.in_windows.is_broken() || self.of_packets.is_broken();
        let of_switches = self.passages.is_broken() || self.switch_gaps.is_broken();
        let of_switches = of_switches || self.decided.is_broken();
        let of_flows = self.sent.is_broken() || self.received.is_broken() || self.gaps.is_broken();
        series || of_meters || of_switches || of_flows
    }
}

/// Rows handed to the series at a time: few, as there are many flows.
const HANDED_IN: usize = 16;

/// The meter of one flow at its receiver. It has no events of its own: an arrival closes the intervals before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    /// Payload that arrived after the warm-up.
    pub(crate) after_warm_up: u64,
    /// Latency and hops, if they are wanted.
    pub(crate) packets: Option<Box<PacketStatistics>>,
    /// Payload per window.
    windows: Vec<u64>,
    /// The end of the interval being counted, if one is.
    due: Time,
    bytes: u64,
    /// Rows that the series does not have yet.
    samples: Vec<FlowSampleRecord>,
}

impl Meter {
    /// A data packet arrived at `now` that left its NIC at `sent`.
    pub(crate) fn count_packet(&mut self, watch: &Watch, now: Time, sent: Time, hops: u16) {
        if watch.packets {
            self.packets.get_or_insert_default().add(now - sent, hops);
        }
    }

    /// `bytes` of new payload of a flow to `dst` arrived at `now`, when so many packets `waited` for a lower number.
    pub(crate) fn count(
        &mut self,
        watch: &Watch,
        (key, dst): (FlowKey, u32),
        now: Time,
        bytes: u64,
        waited: u32,
    ) {
        if now >= watch.warm_up {
            self.after_warm_up += bytes;
        }
        self.windows.resize(watch.windows.len(), 0);
        for (sum, window) in self.windows.iter_mut().zip(&watch.windows) {
            if window.contains(now) {
                *sum += bytes;
            }
        }
        if let Some(interval) = watch.interval {
            self.close(watch, (key, dst), interval, now, waited);
            self.bytes += bytes;
        }
    }

    /// Closes the intervals that end before `now`, after which so many packets still wait. What arrives at the end of one belongs to it.
    fn close(&mut self, watch: &Watch, (key, dst): (FlowKey, u32), interval: Time, now: Time, waiting: u32) {
        while self.due < now && (self.bytes > 0 || waiting > 0) && self.due > Time::ZERO {
            let FlowKey { src, flow } = key;
            let (time, bytes) = (self.due, std::mem::take(&mut self.bytes));
            self.samples.push(FlowSampleRecord { time, src, dst, flow, bytes, resequencing: waiting });
            if self.samples.len() >= HANDED_IN {
                watch.flow_series.extend(self.samples.drain(..));
            }
            self.due += interval;
        }
        if self.due < now {
            self.due = Time(now.0.div_ceil(interval.0) * interval.0);
        }
    }

    /// Ends the measurement at `end`, when so many packets wait, and hands in what was measured of the flow to `dst`. Once all of a flow
    /// has arrived, it makes no difference when that is.
    pub(crate) fn finish(&mut self, watch: &Watch, end: Time, waiting: u32, (key, dst): (FlowKey, u32)) {
        let FlowKey { src, flow } = key;
        if let Some(interval) = watch.interval {
            // The last one is that in which the end is; the series says that it was cut short.
            self.close(watch, (key, dst), interval, end + interval, waiting);
            watch.flow_series.extend(self.samples.drain(..));
        }
        if let Some(packets) = self.packets.take() {
            watch.of_packets.extend(packets.halves(src, flow));
        }
        if !self.windows.is_empty() {
            let windows = (0..).zip(self.windows.drain(..)).filter(|&(_, bytes)| bytes > 0);
            let rows = windows.map(|(window, bytes)| WindowHalf { src, dst, flow, window, bytes });
            watch.in_windows.extend(rows);
        }
    }
}
