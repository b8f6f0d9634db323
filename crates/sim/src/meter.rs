//! What receivers measure over time: payload after the warm-up, in named windows, and per interval.

use netloom_record::{FlowSampleRecord, Window, WindowRecord};
use netloom_routing::FlowKey;
use netloom_units::Time;

/// What the user wants to know of flows over time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch {
    pub(crate) warm_up: Time,
    pub(crate) interval: Option<Time>,
    pub(crate) windows: Vec<Window>,
    /// Whether arrivals must be metered at all.
    pub(crate) is_on: bool,
}

impl Watch {
    pub(crate) fn new(warm_up: Time, interval: Option<Time>, windows: Vec<Window>) -> Self {
        let is_on = warm_up > Time::ZERO || interval.is_some() || !windows.is_empty();
        Watch { warm_up, interval, windows, is_on }
    }
}

/// The meter of one flow at its receiver. It has no events of its own: an arrival closes the intervals before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meter {
    /// Payload that arrived after the warm-up.
    pub(crate) after_warm_up: u64,
    /// Payload per window.
    windows: Vec<u64>,
    /// The end of the interval being counted, if one is.
    due: Time,
    bytes: u64,
    samples: Vec<(Time, u64, u32)>,
}

impl Meter {
    /// `bytes` of new payload arrived at `now`, when so many packets `waited` for a lower number.
    pub(crate) fn count(&mut self, watch: &Watch, now: Time, bytes: u64, waited: u32) {
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
            self.close(interval, now, waited);
            self.bytes += bytes;
        }
    }

    /// Closes the intervals that end by `now`, after which so many packets still wait.
    fn close(&mut self, interval: Time, now: Time, waiting: u32) {
        while self.due <= now && (self.bytes > 0 || waiting > 0) && self.due > Time::ZERO {
            self.samples.push((self.due, std::mem::take(&mut self.bytes), waiting));
            self.due += interval;
        }
        if self.due <= now {
            self.due = Time((now.0 / interval.0 + 1) * interval.0);
        }
    }

    /// Ends the measurement at `end`; the rows of the flow, of a group, to `dst`.
    pub(crate) fn finish(
        mut self,
        watch: &Watch,
        end: Time,
        waiting: u32,
        (key, dst, group): (FlowKey, u32, u16),
    ) -> (Vec<FlowSampleRecord>, Vec<WindowRecord>) {
        let FlowKey { src, flow } = key;
        if let Some(interval) = watch.interval {
            // What arrived at the very end belongs to the interval that begins there.
            self.close(interval, end + interval, waiting);
        }
        let samples = self.samples.into_iter().map(|(time, bytes, resequencing)| FlowSampleRecord {
            time,
            src,
            dst,
            flow,
            bytes,
            resequencing,
        });
        let windows = (0..)
            .zip(self.windows)
            .filter(|&(_, bytes)| bytes > 0)
            .map(|(window, bytes)| WindowRecord { window, src, dst, flow, group, bytes });
        (samples.collect(), windows.collect())
    }
}
