//! A switch: route, enqueue, send.

pub(crate) mod build;
pub(crate) mod next_hop_cache;
pub(crate) mod pipeline;
pub(crate) mod queueing;
pub(crate) mod recur;
pub(crate) mod special;
pub(crate) mod view;

use netloom_fabric::{Packet, Ports};
use netloom_routing::{Row, SwitchPathSelector};
use netloom_units::random::Stream;
use netloom_units::{Time, prefetch};

use crate::observe::gap_monitor::GapMonitor;
use crate::observe::sampler::Sampler;
use crate::protocol::state::AtSwitch;
use crate::switch::next_hop_cache::NextHopCache;

/// An output-queued switch.
#[derive(Debug)]
pub(crate) struct Switch {
    pub(crate) ports: Ports,
    pub(crate) path_selector: SwitchPathSelector,
    /// What the path selector draws from.
    pub(crate) draws: Stream,
    /// Its row of the route tables.
    pub(crate) row: Row,
    pub(crate) next_hops: NextHopCache,
    /// How often routes have changed by what it knows.
    pub(crate) epoch: usize,
    /// Decides on ECN marks.
    pub(crate) random: Stream,
    pub(crate) protocols: AtSwitch,
    /// Congestion notifications, acknowledgements and stop signals made here.
    pub(crate) control_sent: u64,
    /// Acknowledgements that ended here.
    pub(crate) control_received: u64,
    pub(crate) duties: Duties,
    pub(crate) sampler: Option<Box<Sampler>>,
    /// The gaps between the packets that come, where these are measured.
    pub(crate) gap_monitor: Option<Box<GapMonitor>>,
    /// Last time a packet came.
    pub(crate) last_event: Time,
    /// The same in components that have [ended](Self::end_component).
    pub(crate) last_event_before: Time,
}

/// What a switch does besides routing, queueing and sending. Handlers of events are chosen by it per batch, so that packets need not find out
/// what their switch does ([`Duties::Routes`] and [`Duties::Special`] share one): with that of [`Duties::Special`] for all, a packet-hop took 43% more instructions under PFC, 37% under credits, and NDP 7% (callgrind).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Duties {
    /// Nothing, and a packet without room is dropped. Ports have one data queue.
    Plain,
    /// The same, and ports have several.
    Classes,
    /// As either of them, and telemetry is written on packets.
    Stamps,
    /// Nothing, and a packet without room is trimmed.
    Trims,
    /// It obeys flow control, and that is all.
    Lossless,
    /// Protocols take part in routing; with any kind of queueing.
    Routes,
    /// As [`Duties::Routes`], and it takes samples or traces, measures gaps, has links that are cut, reports loads, changes routes during the run, or has a protocol that handles packets before their
    /// queue.
    Special,
}

impl Switch {
    /// Packets that the switch buffers, beside its ports. A new field is named here, too: whether it holds packets that are under way.
    pub(crate) fn buffered(&self) -> impl Iterator<Item = &Packet> {
        let Switch {
            protocols,
            ports: _,
            path_selector: _,
            draws: _,
            row: _,
            next_hops: _,
            epoch: _,
            random: _,
            control_sent: _,
            control_received: _,
            duties: _,
            sampler: _,
            gap_monitor: _,
            last_event: _,
            last_event_before: _,
        } = self;
        protocols.buffered()
    }

    /// As [a node](crate::node::Node::end_component): all packets that have come are gone.
    pub(crate) fn end_component(&mut self, ahead: Time) {
        self.ports.begin_again();
        self.last_event_before = self.last_event_before.max(self.last_event + ahead);
        self.last_event = Time::ZERO;
    }

    /// Last time a packet came, in any component.
    pub(crate) fn last_event(&self) -> Time {
        self.last_event.max(self.last_event_before)
    }

    /// Its batch is the next one: prefetches what it will touch.
    #[inline(always)]
    pub(crate) fn prefetch_state(&self) {
        let Switch { ports, next_hops, .. } = self;
        ports.prefetch();
        next_hops.prefetch();
    }

    /// Its batch comes soon: prefetches what it will touch first.
    #[inline(always)]
    pub(crate) fn prefetch_node(&self) {
        let Switch { ports, path_selector, row, duties, last_event, .. } = self;
        prefetch(ports);
        prefetch(path_selector);
        prefetch(row);
        prefetch(duties);
        prefetch(last_event);
    }
}
