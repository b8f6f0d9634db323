//! Time series without events of their own: a node looks back at the instants it has passed.

use netloom_fabric::Ports;
use netloom_record::SampleRecord;
use netloom_units::Time;

/// The samples of one node's ports.
#[derive(Clone, Debug)]
pub(crate) struct Sampler {
    interval: Time,
    next: Time,
    /// Sampled ports, their channels, and the bytes they had sent at the last sample.
    ports: Vec<(u16, u32, u64)>,
    pub(crate) samples: Vec<SampleRecord>,
}

impl Sampler {
    /// Samples `ports` (with their channels) at multiples of `interval`.
    pub(crate) fn new(interval: Time, ports: Vec<(u16, u32)>) -> Self {
        let ports = ports.into_iter().map(|(port, channel)| (port, channel, 0)).collect();
        Sampler { interval, next: interval, ports, samples: Vec::new() }
    }

    /// The next instant at which to look, if it is not after `now`.
    #[inline]
    pub(crate) fn due(&self, now: Time) -> Option<Time> {
        (self.next <= now).then_some(self.next)
    }

    /// Looks at ports that have been advanced to the instant that is due. Channels that have nothing queued and sent nothing
    /// leave no row.
    pub(crate) fn look(&mut self, ports: &Ports, now: Time) {
        for (port, channel, seen) in &mut self.ports {
            let (queue, sent) = (ports.queued(*port), ports.stats_of(*port, now).bytes);
            let bytes = sent - *seen;
            *seen = sent;
            if queue > 0 || bytes > 0 {
                let sample =
                    SampleRecord { time: self.next, channel: *channel, queue, bytes, ..Default::default() };
                self.samples.push(sample);
            }
        }
        self.next += self.interval;
    }
    /// Completes the series at the run's end, when nothing changes any more.
    pub(crate) fn complete(&mut self, ports: &Ports, end: Time) {
        while self.next < end + self.interval {
            self.look(ports, self.next);
        }
    }
}
