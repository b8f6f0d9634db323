//! What flows outside of a region leave of channels' rates to its packets.
//!
//! At any instant packets have what the flows outside do not take, and at least what one more flow would get: beside n flows on a channel, one part in n + 1.
//! A region takes longer in packets than in flows, and by then flows outside may take a whole link.

use std::sync::Arc;

use netloom_sim::{self as sim, Background};
use netloom_topology::ChannelId;
use netloom_units::{Bytes, Time};
use netloom_workload::Inside;

use crate::max_min::{MaxMin, Resource};
use crate::outcome::Sum;

/// Changes that follow each other within the time that this many full packets take on a link are one: packets hardly notice single ones, and there are many.
const PACKETS: u64 = 10;

/// Shares that differ by less are the same.
const ALIKE: f64 = 1e-6;

/// What flows outside of a region take, while a run goes on.
#[derive(Debug)]
pub(crate) struct Outside {
    pub(crate) inside: Arc<Inside>,
    /// Bytes of a full packet.
    packet: Bytes,
    /// By channel, whether packets of the region may take it.
    is_wanted: Vec<bool>,
    /// By endpoint, whether it runs a program of the region.
    pub(crate) has_program: Vec<bool>,
    channels: Vec<Channel>,
    /// By channel, the resource that stands for it now.
    resources: Vec<Resource>,
    links: Vec<Link>,
    /// What changes of a flow; kept so that it is not allocated each time.
    changes: Vec<(Resource, f64, f64)>,
    /// When the last of them has ended so far.
    pub(crate) last_end: Time,
    /// How many messages have begun.
    pub(crate) messages: u64,
}

#[derive(Clone, Debug, Default)]
struct Channel {
    sum: Sum,
    at_load_end: Option<Sum>,
    shares: Vec<(Time, f64)>,
}

/// A resource.
#[derive(Clone, Debug, Default)]
struct Link {
    capacity: f64,
    /// Bit/s that flows outside take, and how many these are.
    used: f64,
    flows: u32,
    /// Up to when all is counted.
    now: Time,
    sum: Sum,
    /// The shares left in closed intervals.
    shares: Vec<(Time, f64)>,
    /// The interval that is open: its beginning, and the integral of the share since.
    open: (Time, f64),
    /// The shortest interval.
    least: Time,
}

impl Link {
    /// The share that is left.
    fn left(&self) -> f64 {
        if self.capacity <= 0.0 {
            return 1.0;
        }
        (1.0 - self.used / self.capacity).max(1.0 / (1.0 + f64::from(self.flows)))
    }

    /// Counts up to an instant, at which something else begins.
    fn advance(&mut self, now: Time) {
        let stretch = now - self.now;
        if stretch == Time::ZERO {
            return;
        }
        self.sum.add(self.used, self.capacity, stretch);
        let (left, (begin, integral)) = (self.left(), self.open);
        if stretch >= self.least {
            self.close(begin, self.now, integral);
            self.push(self.now, left);
            self.open = (now, 0.0);
        } else {
            self.open.1 += left * stretch.as_secs_f64();
            if now - begin >= self.least {
                self.close(begin, now, self.open.1);
                self.open = (now, 0.0);
            }
        }
        self.now = now;
    }

    fn close(&mut self, begin: Time, end: Time, integral: f64) {
        if end > begin {
            self.push(begin, integral / (end - begin).as_secs_f64());
        }
    }

    fn push(&mut self, from: Time, share: f64) {
        push(&mut self.shares, from, share);
    }

    /// Closes what is open.
    fn settle(&mut self, now: Time) {
        self.advance(now);
        let (begin, integral) = self.open;
        self.close(begin, now, integral);
        self.open = (now, 0.0);
    }
}

/// Appends a share to a series, if it is another one.
fn push(shares: &mut Vec<(Time, f64)>, from: Time, share: f64) {
    if shares.last().is_none_or(|&(_, last)| (last - share).abs() > ALIKE) {
        shares.push((from, share));
    }
}

impl Outside {
    pub(crate) fn new(
        inside: Arc<Inside>,
        is_wanted: Vec<bool>,
        has_program: Vec<bool>,
        packet: Bytes,
    ) -> Self {
        let channels = vec![Channel::default(); is_wanted.len()];
        Outside {
            inside,
            packet,
            is_wanted,
            has_program,
            channels,
            resources: Vec::new(),
            links: Vec::new(),
            changes: Vec::new(),
            last_end: Time::ZERO,
            messages: 0,
        }
    }

    /// From now on these resources stand for the channels, without flows.
    pub(crate) fn begin(&mut self, resources: &[Resource], capacities: &[f64], now: Time) {
        self.settle(now);
        self.resources = resources.to_vec();
        let link = |&capacity: &f64| {
            let least = crate::run::takes((8 * PACKETS * self.packet.0) as f64, capacity.max(1.0));
            Link { capacity, now, open: (now, 0.0), least, ..Link::default() }
        };
        self.links = capacities.iter().map(link).collect();
    }

    /// Hands what resources have done on to their channels.
    fn settle(&mut self, now: Time) {
        self.links.iter_mut().for_each(|link| link.settle(now));
        let channels = self.channels.iter_mut().zip(&self.resources).zip(&self.is_wanted);
        for ((channel, &resource), &is_wanted) in channels {
            let link = &self.links[resource as usize];
            channel.sum.join(link.sum);
            let shares = link.shares.iter().filter(|_| is_wanted);
            shares.for_each(|&(from, share)| push(&mut channel.shares, from, share));
        }
        for link in &mut self.links {
            (link.sum, link.shares) = (Sum::default(), Vec::new());
        }
    }

    /// A flow outside takes something else of its links than what is counted of it.
    pub(crate) fn count(&mut self, solver: &MaxMin, flow: u32, counted: &mut Vec<f64>, now: Time) {
        counted.resize(solver.taken(flow).count(), 0.0);
        let change = |((resource, taken), counted)| (resource, std::mem::replace(counted, taken), taken);
        self.change(solver.taken(flow).zip(counted).map(change), now);
    }

    /// It takes nothing any more.
    pub(crate) fn remove(&mut self, solver: &MaxMin, flow: u32, counted: &mut Vec<f64>, now: Time) {
        self.change(
            solver.taken(flow).zip(counted.drain(..)).map(|((resource, _), was)| (resource, was, 0.0)),
            now,
        );
    }

    /// Of each resource of a flow, what it took and what it takes from now on. One that lies on several ways of the flow comes several times, and the flow is one on it.
    fn change(&mut self, of_flow: impl Iterator<Item = (Resource, f64, f64)>, now: Time) {
        let mut changes = std::mem::take(&mut self.changes);
        changes.extend(of_flow);
        changes.sort_by_key(|&(resource, ..)| resource);
        for of_one in changes.chunk_by(|a, b| a.0 == b.0) {
            let (from, to) =
                of_one.iter().fold((0.0, 0.0), |(from, to), change| (from + change.1, to + change.2));
            self.take(of_one[0].0, from, to, now);
        }
        changes.clear();
        self.changes = changes;
    }

    fn take(&mut self, resource: Resource, from: f64, to: f64, now: Time) {
        let link = &mut self.links[resource as usize];
        link.advance(now);
        link.flows = link.flows + u32::from(to > 0.0) - u32::from(from > 0.0);
        // Exactly none where no flow takes any: sums of differences are rounded.
        link.used = if link.flows == 0 { 0.0 } else { (link.used + to - from).max(0.0) };
    }

    pub(crate) fn note_load_end(&mut self, now: Time) {
        self.settle(now);
        self.channels.iter_mut().for_each(|channel| channel.at_load_end = Some(channel.sum));
    }

    /// All that they took in a run that is over.
    pub(crate) fn finish(mut self, now: Time) -> Background {
        self.settle(now);
        let carried = |channel: &Channel| {
            let loaded = channel.at_load_end.unwrap_or(channel.sum);
            sim::Carried {
                bytes: channel.sum.bytes(),
                busy: channel.sum.busy(),
                bytes_in_drain: channel.sum.bytes() - loaded.bytes().min(channel.sum.bytes()),
                busy_in_drain: channel.sum.busy().saturating_sub(loaded.busy()),
            }
        };
        let carried = self.channels.iter().map(carried).collect();
        let shares = (0..).zip(self.channels).filter_map(|(id, channel): (ChannelId, Channel)| {
            let mut shares = channel.shares;
            // Nothing is taken after the end.
            push(&mut shares, now, 1.0);
            let is_taken = shares.iter().any(|&(_, share)| share < 1.0);
            is_taken.then_some((id, shares))
        });
        Background { carried, shares: shares.collect(), messages: self.messages, ..Background::default() }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use netloom_topology::{BuildContext, Crossbar, Topology};
    use netloom_workload::{HostName, Message, Plan, Region};

    use super::*;

    fn link(least: u64) -> Link {
        Link { capacity: 100.0, least: Time(least), ..Link::default() }
    }

    fn take(link: &mut Link, now: u64, used: f64, flows: u32) {
        link.advance(Time(now));
        (link.used, link.flows) = (used, flows);
    }

    #[test]
    fn one_more_flow_would_get_at_least_its_part() {
        let mut link = link(10);
        for (used, flows, left) in
            [(0.0, 0, 1.0), (60.0, 1, 0.5), (30.0, 1, 0.7), (100.0, 4, 0.2), (50.0, 4, 0.5)]
        {
            (link.used, link.flows) = (used, flows);
            assert!((link.left() - left).abs() < 1e-12, "{used} {flows}");
        }
        link.capacity = 0.0;
        assert_eq!(link.left(), 1.0);
    }

    /// Changes within an interval become their mean; what is constant for longer stays exactly what it is.
    #[test]
    fn short_changes_are_one_and_long_ones_are_exact() {
        let mut link = link(10);
        take(&mut link, 100, 40.0, 1);
        // 3 ps at 0.6, 7 ps at 0.2.
        take(&mut link, 103, 80.0, 9);
        take(&mut link, 110, 20.0, 1);
        take(&mut link, 150, 30.0, 2);
        // Too short for an interval of its own, before one that is long.
        take(&mut link, 152, 100.0, 9);
        take(&mut link, 200, 0.0, 0);
        link.settle(Time(300));
        let shares: Vec<(u64, f64)> = link.shares.iter().map(|&(from, share)| (from.0, share)).collect();
        let expected = [(0, 1.0), (100, 0.32), (110, 0.8), (150, 0.7), (152, 0.1), (200, 1.0)];
        assert_eq!(shares.len(), expected.len(), "{shares:?}");
        for (found, expected) in shares.iter().zip(expected) {
            assert!(found.0 == expected.0 && (found.1 - expected.1).abs() < 1e-9, "{shares:?}");
        }
        assert_eq!((shares[0].1, shares[5].1), (1.0, 1.0), "exactly all");
        let carried = 40.0 * 3.0 + 80.0 * 7.0 + 20.0 * 40.0 + 30.0 * 2.0 + 100.0 * 48.0;
        assert_eq!(link.sum.bytes(), (carried * 1e-12 / 8.0f64).round() as u64);
    }

    #[test]
    fn a_flow_that_takes_a_link_on_several_ways_is_one_on_it() {
        let topology = Topology::Crossbar(Crossbar { hosts: 3, ..Crossbar::default() });
        let network = topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        let messages = [1, 2].map(|dst| (0, Message::new(dst, Bytes(1), Time::ZERO)));
        let region = Region { hosts: [0, 1].map(HostName::Number).into(), ..Region::default() };
        let inside = region.find(&Plan::of_messages(3, messages), &network).unwrap();
        let mut outside = Outside::new(inside, vec![true], Vec::new(), Bytes(1000));
        outside.begin(&[0], &[100.0], Time::ZERO);
        outside.change([(0, 0.0, 50.0), (0, 0.0, 40.0)].into_iter(), Time::ZERO);
        assert_eq!((outside.links[0].flows, outside.links[0].used, outside.links[0].left()), (1, 90.0, 0.5));
        // One of the ways is full, and all goes by the other one.
        outside.change([(0, 50.0, 0.0), (0, 40.0, 30.0)].into_iter(), Time::ZERO);
        assert_eq!((outside.links[0].flows, outside.links[0].used), (1, 30.0));
        outside.change([(0, 0.0, 0.0), (0, 30.0, 0.0)].into_iter(), Time::ZERO);
        assert_eq!((outside.links[0].flows, outside.links[0].left()), (0, 1.0));
    }

    #[test]
    fn a_share_that_stays_is_noted_once() {
        let mut shares = Vec::new();
        for (from, share) in [(0, 1.0), (5, 1.0 - 1e-9), (9, 0.5), (12, 0.5), (20, 1.0)] {
            push(&mut shares, Time(from), share);
        }
        assert_eq!(shares, [(Time(0), 1.0), (Time(9), 0.5), (Time(20), 1.0)]);
    }
}
