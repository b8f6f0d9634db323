//! What receivers measure over time: payload after the warm-up, in named windows, and per interval.

use netloom_record::{FlowSampleRecord, PacketStatistics, WindowRow};
use netloom_routing::FlowKey;
use netloom_units::Time;

use crate::observe::recorder::Recorder;

/// Rows handed to the series at a time: few, as there are many flows.
const HANDED_IN: usize = 16;

/// The meter of one flow at its receiver. It has no events of its own: an arrival closes the intervals before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct FlowMeter {
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

impl FlowMeter {
    /// A data packet arrived at `now` that left its NIC at `sent`.
    pub(crate) fn count_packet(&mut self, recorder: &Recorder, now: Time, sent: Time, hops: u16) {
        if recorder.packets {
            self.packets.get_or_insert_default().add(now - sent, hops);
        }
    }

    /// `bytes` of new payload of a flow to `dst` arrived at `now`, when `waited` packets waited for a lower number.
    pub(crate) fn count(
        &mut self,
        recorder: &Recorder,
        (key, dst): (FlowKey, u32),
        now: Time,
        bytes: u64,
        waited: u32,
    ) {
        if now >= recorder.warm_up {
            self.after_warm_up += bytes;
        }
        self.windows.resize(recorder.windows.len(), 0);
        for (sum, window) in self.windows.iter_mut().zip(&recorder.windows) {
            if window.contains(now) {
                *sum += bytes;
            }
        }
        if let Some(interval) = recorder.interval {
            self.close(recorder, (key, dst), interval, now, waited);
            self.bytes += bytes;
        }
    }

    /// Closes the intervals that end before `now`, after which `waiting` packets still wait. What arrives at the end of one belongs to it.
    fn close(
        &mut self,
        recorder: &Recorder,
        (key, dst): (FlowKey, u32),
        interval: Time,
        now: Time,
        waiting: u32,
    ) {
        while self.due < now && (self.bytes > 0 || waiting > 0) && self.due > Time::ZERO {
            let FlowKey { src, flow } = key;
            let (time, bytes) = (self.due, std::mem::take(&mut self.bytes));
            self.samples.push(FlowSampleRecord { time, src, dst, flow, bytes, resequencing: waiting });
            if self.samples.len() >= HANDED_IN {
                recorder.flow_series.extend(self.samples.drain(..));
            }
            self.due += interval;
        }
        if self.due < now {
            self.due = Time(now.0.div_ceil(interval.0) * interval.0);
        }
    }

    /// Ends the measurement at `end`, when `waiting` packets wait, and hands in what was measured of the flow to `dst`. Once all of a flow
    /// has arrived, it makes no difference when that is.
    pub(crate) fn finish(
        &mut self,
        recorder: &Recorder,
        end: Time,
        waiting: u32,
        (key, dst): (FlowKey, u32),
    ) {
        let FlowKey { src, flow } = key;
        if let Some(interval) = recorder.interval {
            // The last one is that in which the end is; the series says that it was cut short.
            self.close(recorder, (key, dst), interval, end + interval, waiting);
            recorder.flow_series.extend(self.samples.drain(..));
        }
        if let Some(packets) = self.packets.take() {
            recorder.of_packets.extend(packets.rows(src, flow));
        }
        if !self.windows.is_empty() {
            let windows = (0..).zip(self.windows.drain(..)).filter(|&(_, bytes)| bytes > 0);
            let rows = windows.map(|(window, bytes)| WindowRow { src, dst, flow, window, bytes });
            recorder.in_windows.extend(rows);
        }
    }
}
