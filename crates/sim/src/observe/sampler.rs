//! Time series without events of their own: a node looks back at the instants it has passed. Traces of packets go the same way.

use std::sync::Arc;

use netloom_fabric::{Packet, PortStats, Ports};
use netloom_record::{ChannelWindowRecord, SampleRecord, SeriesWriter, Window};
use netloom_units::Time;

use crate::observe::packet_trace::Tracer;

/// What is seen of one node's ports at multiples of an interval and at the ends of windows.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    /// `Time::MAX` where no series is wanted.
    interval: Time,
    next_sample: Time,
    /// The ends of windows still to come, latest first.
    edges: Vec<Time>,
    ports: Vec<Watched>,
    /// Rows that the series does not have yet.
    samples: Vec<SampleRecord>,
    series: Arc<SeriesWriter<SampleRecord>>,
    /// What is noted of single packets, if anything is.
    tracer: Option<Tracer>,
}

/// Rows handed to the series at a time, so that threads rarely meet there.
const HANDED_IN: usize = 64;

/// A port under observation.
#[derive(Clone, Debug)]
struct Watched {
    port: u16,
    channel: u32,
    /// At the last sample.
    sampled: PortStats,
    /// At the edges passed, in order.
    at_edges: Vec<(Time, PortStats)>,
}

impl Sampler {
    /// Looks at `ports` (with their channels) at multiples of `interval`, for `series`, and where windows begin and end; what comes is shown to `tracer`.
    pub(crate) fn new(
        interval: Option<Time>,
        windows: &[Window],
        ports: Vec<(u16, u32)>,
        series: Arc<SeriesWriter<SampleRecord>>,
        tracer: Option<Tracer>,
    ) -> Self {
        let watched =
            |(port, channel)| Watched { port, channel, sampled: PortStats::default(), at_edges: Vec::new() };
        let mut edges: Vec<Time> = windows.iter().flat_map(|window| [window.from, window.until]).collect();
        edges.sort_unstable();
        edges.dedup();
        edges.reverse();
        let interval = interval.unwrap_or(Time::MAX);
        Sampler {
            interval,
            next_sample: interval,
            edges,
            ports: ports.into_iter().map(watched).collect(),
            samples: Vec::new(),
            series,
            tracer,
        }
    }

    /// A packet has come to the node.
    #[inline]
    pub(crate) fn see(&mut self, at: Time, packet: &Packet) {
        if let Some(tracer) = &mut self.tracer {
            tracer.see(at, packet);
        }
    }

    fn next(&self) -> Time {
        self.edges.last().map_or(self.next_sample, |&edge| edge.min(self.next_sample))
    }

    /// The next instant at which to look, if it is not after `now`.
    #[inline]
    pub(crate) fn due(&self, now: Time) -> Option<Time> {
        let next = self.next();
        (next <= now).then_some(next)
    }

    /// Looks at ports that have been advanced to the instant that is due. Channels that have nothing queued, sent nothing and were not
    /// paused leave no row. Returns whether that is true of all of them, so that the next look finds as little if nothing happens until then.
    pub(crate) fn look(&mut self, ports: &Ports, now: Time) -> bool {
        if self.edges.pop_if(|edge| *edge == now).is_some() {
            for watched in &mut self.ports {
                watched.at_edges.push((now, ports.stats_of(watched.port, now)));
            }
        }
        if now != self.next_sample {
            return false;
        }
        let mut is_quiet = true;
        for Watched { port, channel, sampled, .. } in &mut self.ports {
            let (queue, stats) = (ports.queued(*port), ports.stats_of(*port, now));
            let (bytes, paused) = (stats.bytes - sampled.bytes, stats.paused - sampled.paused);
            *sampled = stats;
            if queue > 0 || bytes > 0 || paused > Time::ZERO {
                let sample = SampleRecord { time: now, channel: *channel, queue, bytes, paused };
                self.samples.push(sample);
                is_quiet = false;
            }
        }
        self.next_sample += self.interval;
        if self.samples.len() >= HANDED_IN {
            self.series.extend(self.samples.drain(..));
        }
        is_quiet
    }

    /// After a [look](Self::look) that found nothing, nothing happens before `until`: no sample up to that instant would find anything.
    pub(crate) fn skip(&mut self, until: Time) {
        if self.next_sample <= until {
            self.next_sample = Time((until.0 / self.interval.0 + 1) * self.interval.0);
        }
    }

    /// Completes the series at the run's end, when nothing changes any more; what it saw of every port in every window.
    pub(crate) fn complete(
        &mut self,
        ports: &Ports,
        end: Time,
        windows: &[Window],
    ) -> Vec<ChannelWindowRecord> {
        let last = if self.interval == Time::MAX { end } else { end + self.interval - Time(1) };
        while let Some(instant) = self.due(last) {
            if self.look(ports, instant) {
                self.skip(last);
            }
        }
        self.series.extend(self.samples.drain(..));
        if let Some(tracer) = &mut self.tracer {
            tracer.complete();
        }
        let mut records = Vec::new();
        for Watched { port, channel, at_edges, .. } in &self.ports {
            let at = |time: Time| {
                let known = at_edges.iter().find(|(edge, _)| *edge == time);
                known.map_or_else(|| ports.stats_of(*port, end), |(_, stats)| *stats)
            };
            for (window, Window { from, until, .. }) in (0..).zip(windows) {
                let (before, after) = (at(*from), at(*until));
                records.push(ChannelWindowRecord {
                    window,
                    channel: *channel,
                    bytes: after.bytes - before.bytes,
                    queue_byte_ps: after.queue_integral().wrapping_sub(before.queue_integral()),
                    paused: after.paused - before.paused,
                });
            }
        }
        records
    }
}
