//! What a run leaves: the records of flows, channels and jobs.

use std::sync::Arc;

use netloom_record::{ChannelRecord, FlowRecord, Gathered, Records, Series, Sink, Totals, join_parts};
use netloom_sim::{Finished, RunError, Stage};
use netloom_topology::Network;
use netloom_units::{Time, narrow};
use netloom_workload::RankLog;

use crate::background::Outside;
use crate::max_min::{MaxMin, Resource};

/// What channels have carried.
#[derive(Debug)]
pub(crate) struct Carried {
    /// Per channel.
    channels: Vec<Sum>,
    at_load_end: Option<Vec<Sum>>,
    /// Per channel, the resource that stands for it now.
    resources: Vec<Resource>,
    /// Per resource, since it has stood for channels, up to `since`.
    sums: Vec<(Sum, Time)>,
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sum {
    bits: f64,
    /// Seconds for which it would have been busy at its rate of the time.
    busy: f64,
}

impl Sum {
    pub(crate) fn add(&mut self, used: f64, capacity: f64, time: Time) {
        let seconds = time.as_secs_f64();
        self.bits += used * seconds;
        self.busy += if capacity > 0.0 { used / capacity * seconds } else { 0.0 };
    }

    pub(crate) fn join(&mut self, other: Sum) {
        self.bits += other.bits;
        self.busy += other.busy;
    }

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "not below 0; saturates")]
    pub(crate) fn bytes(self) -> u64 {
        (self.bits / 8.0).round() as u64
    }

    pub(crate) fn busy(self) -> Time {
        Time::from_secs_f64(self.busy)
    }
}

impl Carried {
    pub(crate) fn new(channels: u32) -> Self {
        let channels = vec![Sum::default(); channels as usize];
        Carried { channels, at_load_end: None, resources: Vec::new(), sums: Vec::new() }
    }

    /// From now on these resources stand for the channels.
    pub(crate) fn begin(&mut self, resources: &[Resource], count: u32, now: Time) {
        self.resources = resources.to_vec();
        self.sums = vec![(Sum::default(), now); count as usize];
    }

    /// What crosses a resource will change.
    pub(crate) fn note(&mut self, resource: Resource, solver: &MaxMin, now: Time) {
        let (sum, since) = &mut self.sums[resource as usize];
        sum.add(solver.used(resource), solver.capacity(resource), now - *since);
        *since = now;
    }

    /// A flow leaves its resources.
    pub(crate) fn add_flow(&mut self, solver: &MaxMin, flow: u32, now: Time) {
        solver.resources(flow).for_each(|resource| self.note(resource, solver, now));
    }

    /// Adds what resources have carried to their channels.
    pub(crate) fn settle(&mut self, solver: &MaxMin, now: Time) {
        (0..narrow::<u32>(self.sums.len())).for_each(|resource| self.note(resource, solver, now));
        for (channel, &resource) in self.channels.iter_mut().zip(&self.resources) {
            let (sum, _) = self.sums[resource as usize];
            channel.join(sum);
        }
        self.sums.iter_mut().for_each(|(sum, _)| *sum = Sum::default());
    }

    /// The load ends.
    pub(crate) fn note_load_end(&mut self, solver: &MaxMin, now: Time) {
        self.settle(solver, now);
        self.at_load_end = Some(self.channels.clone());
    }
}

/// A run that has ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) end: Time,
    pub(crate) active_until: Time,
    pub(crate) flows: Series<FlowRecord>,
    pub(crate) carried: Carried,
    pub(crate) logs: Vec<RankLog>,
    pub(crate) calculated: Option<Time>,
    pub(crate) has_work_left: bool,
    pub(crate) is_interrupted: bool,
    /// Whether flows were under way; outside of a region, where there was one.
    pub(crate) is_in_flight: bool,
    /// How many messages have ended; of those outside of a region, where there was one.
    pub(crate) done: u64,
    /// What was outside of a region, where there was one.
    pub(crate) outside: Option<Outside>,
}

/// Hands on the records.
pub(crate) fn hand_on(stage: &Stage, outcome: Outcome, sink: &mut dyn Sink) -> Result<Finished, RunError> {
    let Outcome {
        end, active_until, flows, carried, logs, calculated, has_work_left, is_interrupted, ..
    } = outcome;
    let mut jobs = stage.jobs(logs);
    let mut parts = stage.rails().map(|_| Gathered::default());
    let (mut first, mut last, mut is_undone) = (None::<Time>, calculated, has_work_left);
    for flow in flows.rows().map_err(netloom_record::SeriesError::from)? {
        let flow = flow.map_err(netloom_record::SeriesError::from)?;
        first = Some(first.map_or(flow.start, |first| first.min(flow.start)));
        match flow.fct {
            Some(fct) => last = last.max(Some(flow.start + fct)),
            None => is_undone = true,
        }
        match (stage.rails(), &mut parts) {
            (Some(rails), Some(parts)) => {
                let ((src, _), (dst, rail)) = (rails.endpoint(flow.src), rails.endpoint(flow.dst));
                parts.push(FlowRecord { src, dst: dst * rails.rails() + rail, ..flow });
            }
            _ => {
                jobs.add(&flow);
                sink.flow(flow);
            }
        }
    }
    let parts = match (stage.rails(), parts) {
        (Some(rails), Some(parts)) => {
            let nic = |place| rails.host(place / rails.rails(), place % rails.rails());
            let hand_on = |flow| {
                jobs.add(&flow);
                sink.flow(flow);
            };
            Some(join_parts(&parts.finish()?, rails.rails(), nic, hand_on)?)
        }
        _ => None,
    };
    let totals = Totals {
        simulated: end,
        load_until: stage.load_until().filter(|&until| until < end),
        makespan: last.filter(|_| !is_undone),
        active_from: first,
        active_until: active_until.min(end),
        ..Totals::default()
    };
    hand_on_channels(stage.network(), &carried, &totals, sink);
    let mut records = Records {
        groups: stage.groups().to_vec(),
        named_channels: stage.named_channels().to_vec(),
        jobs: jobs.finish(),
        parts,
        totals,
        ..Records::default()
    };
    records.sort();
    Ok(Finished {
        records,
        interrupted: is_interrupted,
        skipped: None,
        steady: None,
        background_flows: None,
        division: None,
    })
}

fn hand_on_channels(network: &Network, carried: &Carried, totals: &Totals, sink: &mut dyn Sink) {
    let tiers: Vec<Arc<str>> = network.tiers().iter().map(|tier| tier.as_str().into()).collect();
    let share =
        |part: Time, whole: Time| if whole == Time::ZERO { 0.0 } else { part.0 as f64 / whole.0 as f64 };
    for channel in 0..network.channels() {
        let of = network.channel(channel);
        let all = carried.channels[channel as usize];
        let loaded = carried.at_load_end.as_ref().map_or(all, |sums| sums[channel as usize]);
        let busy = loaded.busy();
        sink.channel(ChannelRecord {
            channel,
            from: network.node_name(of.from).into(),
            to: network.node_name(of.to).into(),
            tier: tiers[usize::from(network.links()[channel as usize / 2].tier)].clone(),
            rate: of.rate,
            bytes: all.bytes(),
            busy: all.busy(),
            bytes_in_drain: all.bytes() - loaded.bytes().min(all.bytes()),
            busy_in_drain: all.busy().saturating_sub(busy),
            utilisation: share(busy, totals.load_end()),
            active_utilisation: share(busy, totals.active()),
            ..ChannelRecord::default()
        });
    }
}
