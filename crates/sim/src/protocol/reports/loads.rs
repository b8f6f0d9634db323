//! The loads of global channels that a switch reports, and those reported to it.

use netloom_engine::Scheduler;
use netloom_fabric::{ByKind, Packet, PacketKind};
use netloom_routing::View;
use netloom_routing::selector::ugal::Load;
use netloom_topology::{ChannelId, NodeId, PortId};
use netloom_units::Time;

use crate::message::{BESIDE, Message};
use crate::protocol::reports::SIZE;
use crate::protocol::state::SwitchState;
use crate::world::World;

/// The reports that a switch sends and receives.
#[derive(Debug)]
pub(crate) struct Reports {
    period: Time,
    measure: Load,
    /// The next instant at which to look.
    next: Time,
    /// Nothing has happened since a look that had nothing to say, nor will by itself.
    is_quiet: bool,
    own: Vec<Own>,
    peers: Vec<Peer>,
    /// The loads of others' channels, ascending by channel.
    reported: Vec<(ChannelId, u32)>,
    /// What the last look found to have changed.
    changed: Vec<(ChannelId, u32)>,
}

/// A global channel that begins here.
#[derive(Debug)]
struct Own {
    port: PortId,
    channel: ChannelId,
    reported: u32,
}

/// A switch of the same group.
#[derive(Debug)]
struct Peer {
    node: NodeId,
    port: PortId,
    channel: ChannelId,
    delay: Time,
}

/// None if the scheme has no use for them.
impl SwitchState for Option<Box<Reports>> {
    fn recurs(&self) -> bool {
        self.is_none()
    }

    fn new(world: &World, id: NodeId) -> Self {
        let is_cut = |channel: ChannelId| world.wiring.faults.cut[channel as usize / 2];
        let period = world.routing.report_period()?;
        let ugal = world.routing.ugal()?;
        let network = &world.network;
        let is_global = |channel| network.global_tier() == Some(network.channel(channel).tier);
        let channels = |switch| (0..).zip(network.ports(switch).iter().copied());
        let (mut own, mut peers, mut reported) = (Vec::new(), Vec::new(), Vec::new());
        for (port, channel) in channels(id).filter(|&(_, channel)| !is_cut(channel)) {
            let ends = network.channel(channel);
            if is_global(channel) {
                own.push(Own { port, channel, reported: 0 });
            } else if !network.is_host(ends.to) && network.pod(ends.to) == network.pod(id) {
                let delay = world.latency(channel) + ends.rate.serialize(SIZE);
                peers.push(Peer { node: ends.to, port, channel, delay });
                let theirs = network.ports(ends.to).iter().copied().filter(|&channel| is_global(channel));
                reported.extend(theirs.map(|channel| (channel, 0)));
            }
        }
        reported.sort_unstable();
        reported.dedup();
        Some(Box::new(Reports {
            period,
            measure: ugal.load,
            next: period,
            is_quiet: true,
            own,
            peers,
            reported,
            changed: Vec::new(),
        }))
    }
}

impl Reports {
    /// The load of another switch's channel as last reported.
    pub(crate) fn of_channel(&self, channel: ChannelId) -> u64 {
        let place = self.reported.binary_search_by_key(&channel, |&(channel, _)| channel);
        place.map_or(0, |place| u64::from(self.reported[place].1))
    }

    /// A report has come.
    pub(crate) fn on_report(&mut self, report: &Packet) {
        if let Ok(place) = self.reported.binary_search_by_key(&report.src, |&(channel, _)| channel) {
            self.reported[place].1 = report.number_of(&[PacketKind::Report]);
        }
    }

    /// The next instant at which to look, if it is not after `now`, before anything happens then.
    pub(crate) fn due(&mut self, now: Time) -> Option<Time> {
        let is_quiet = std::mem::take(&mut self.is_quiet);
        if self.next > now {
            return None;
        }
        if is_quiet {
            // All instants up to now would find what the last batch left.
            self.next = Time((now.0 / self.period.0 + 1) * self.period.0);
            return None;
        }
        let instant = self.next;
        self.next += self.period;
        Some(instant)
    }

    /// Looks at its channels at an instant that is due.
    pub(crate) fn look(&mut self, view: &mut impl View) {
        self.changed.clear();
        for own in &mut self.own {
            let load = load(self.measure, own.port, view);
            if load != own.reported {
                own.reported = load;
                self.changed.push((own.channel, load));
            }
        }
    }

    /// Reports to the group the loads found at an instant.
    pub(crate) fn send_changes(
        &self,
        instant: Time,
        is_cut: impl Fn(PortId) -> bool,
        out: &mut impl Scheduler<Message>,
    ) {
        if self.changed.is_empty() {
            return;
        }
        for peer in self.peers.iter().filter(|peer| !is_cut(peer.port)) {
            for &(src, load) in &self.changed {
                let report =
                    Packet { kind: PacketKind::Report, src, by_kind: ByKind::new(load), ..Packet::EMPTY };
                out.send(peer.node, peer.channel | BESIDE, instant + peer.delay, Message::Packet(report));
            }
        }
    }

    /// When to look next, at the end of a batch; none if there will be nothing to say until something happens.
    pub(crate) fn next_look(&mut self, view: &mut impl View) -> Option<Time> {
        // A queue drains without a message; credits come back in messages.
        let mut may_change =
            |own: &Own| view.load(own.port) > 0 || load(self.measure, own.port, view) != own.reported;
        self.is_quiet = !self.own.iter().any(&mut may_change);
        (!self.is_quiet).then_some(self.next)
    }
}

/// What is reported of a port.
fn load(measure: Load, port: PortId, view: &mut impl View) -> u32 {
    u32::try_from(measure.of(view, port)).unwrap_or(u32::MAX)
}
