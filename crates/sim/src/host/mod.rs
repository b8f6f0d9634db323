//! A host: starts flows, lets them send through one NIC, and answers what it receives.
//!
//! The NIC has no queue of data. Whenever its transmitter is free and no ACK waits, it asks the flows that have
//! something to send in turn; so a packet's path and timestamp are decided when it really leaves. Or it has one, if the transport
//! says so: `nic_queue.rs`.

pub(crate) mod acks;
pub(crate) mod coalescing;
pub(crate) mod connections;
pub(crate) mod departures;
pub(crate) mod ends;
pub(crate) mod event;
pub(crate) mod finished;
pub(crate) mod flow;
pub(crate) mod flows;
mod free_slots;
pub(crate) mod idle;
pub(crate) mod nic;
pub(crate) mod nic_queue;
pub(crate) mod pacing;
pub(crate) mod port_selector;
pub(crate) mod ports;
pub(crate) mod processing;
pub(crate) mod receivers;
pub(crate) mod recur;
pub(crate) mod reorder;
pub(crate) mod reorder_buffer;
pub(crate) mod rx;
pub(crate) mod send_queue;
pub(crate) mod sent;
pub(crate) mod subflows;
pub(crate) mod timers;
pub(crate) mod tx;
pub(crate) mod work;

use netloom_fabric::{Packet, PacketKind, Ports};
use netloom_routing::{FlowKey, NicPathSelector};
use netloom_topology::NodeId;
use netloom_units::random::{self, Stream};
use netloom_units::{Time, prefetch, prefetch_whole};
use netloom_workload::{HostWork, Message as Job};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::calculations::Calculations;
use crate::host::coalescing::Interrupts;
use crate::host::connections::Connections;
use crate::host::departures::Departed;
use crate::host::event::FlowEvent;
use crate::host::flow::Flow;
use crate::host::free_slots::FreeSlots;
use crate::host::idle::Idle;
use crate::host::nic_queue::Queue;
use crate::host::pacing::Paces;
use crate::host::port_selector::PortSelector;
use crate::host::processing::Processed;
use crate::host::receivers::Receivers;
use crate::host::reorder_buffer::Reordering;
use crate::host::send_queue::SendQueue;
use crate::host::sent::Sent;
use crate::observe::sampler::Sampler;
use crate::observe::sender_meter::SenderMeters;
use crate::protocol::state::AtHost;
use crate::world::World;

/// The port of a host's NIC, if it has one; its first one if it has several.
pub(crate) const NIC: u16 = 0;

/// More flows than these, of half a kilobyte each, leave the first-level cache while other nodes are run.
const CROWD: usize = 16;

/// How many turns ahead the flows are prefetched that send: to make a packet takes a fraction of the time that a line takes from memory.
pub(crate) const TURNS_AHEAD: usize = 4;

/// A host and everything it knows.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) nic: Ports,
    /// Chooses among the NIC's ports, if it has several.
    pub(crate) port_selector: Option<Box<PortSelector>>,
    /// Chooses paths, where the scheme leaves that to NICs.
    pub(crate) path_selector: Option<Box<NicPathSelector>>,
    pub(crate) random: Stream,
    pub(crate) work: HostWork,
    /// The next message that starts by the clock.
    pub(crate) upcoming: Option<Box<Job>>,
    /// Whether the program, if the work is one, has begun.
    pub(crate) has_begun: bool,
    pub(crate) flows: Vec<Option<Flow>>,
    pub(crate) free_slots: FreeSlots,
    pub(crate) next_flow: u32,
    /// Of the flow that has begun last.
    pub(crate) last_idle: Option<Box<Idle>>,
    /// Flows that may have something to send.
    pub(crate) send_queue: SendQueue<u32>,
    /// Until when some of them wait.
    pub(crate) paces: Paces,
    /// The NIC's queue, if it has one.
    pub(crate) queue: Option<Box<Queue>>,
    /// A flow without ACKs whose last packet is leaving: it ends when that is out.
    pub(crate) leaving: Option<u32>,
    /// The traffic classes that switches have stopped, a bit each.
    pub(crate) paused_classes: u8,
    /// What is known of departures, where these are measured or stretched.
    pub(crate) departed: Option<Box<Departed>>,
    /// The NIC has had nothing to send before this instant.
    pub(crate) checked: Time,
    pub(crate) receivers: Receivers,
    pub(crate) protocols: AtHost,
    /// Absent until first needed, so that an idle host stays small, as is what follows.
    pub(crate) rare: Option<Box<Rare>>,
    /// Apart from [`Self::rare`], as a host that only reports has nothing more to look at.
    pub(crate) reports: Option<Box<Reports>>,
    pub(crate) connections: Option<Box<Connections>>,
    /// What came out of order.
    pub(crate) reordering: Option<Box<Reordering>>,
    /// Flows that ended and are not handed in yet; at the run's end also those that did not end.
    pub(crate) sent: Vec<Sent>,
    pub(crate) control_sent: u64,
    pub(crate) control_received: u64,
    pub(crate) sampler: Option<Box<Sampler>>,
    /// Where senders are sampled.
    pub(crate) meters: Option<Box<SenderMeters>>,
    /// Last time a packet came or a calculation ended. Timers that find nothing to do are no events of the run.
    pub(crate) last_event: Time,
}

impl Host {
    /// Packets that the host buffers, beside its port. A new field is named here, too: whether it holds packets that are
    /// under way (copies do not count).
    pub(crate) fn buffered(&self) -> impl Iterator<Item = &Packet> {
        let Host {
            queue,
            rare,
            reordering,
            nic: _,
            port_selector: _,
            path_selector: _,
            random: _,
            work: _,
            upcoming: _,
            has_begun: _,
            flows: _,
            free_slots: _,
            next_flow: _,
            last_idle: _,
            send_queue: _,
            paces: _,
            leaving: _,
            paused_classes: _,
            departed: _,
            checked: _,
            receivers: _,
            protocols: _,
            reports: _,
            connections: _,
            sent: _,
            control_sent: _,
            control_received: _,
            sampler: _,
            meters: _,
            last_event: _,
        } = self;
        let queued = queue.iter().flat_map(|queue| queue.packets());
        let early = reordering.iter().flat_map(|reordering| reordering.packets());
        let coalesced = rare.iter().flat_map(|rare| rare.buffered());
        queued.chain(early).chain(coalesced)
    }

    /// The component that it is in was over at `end`. The [clock](World::clock) of records was `ahead` of that of the network: for as long, what was not followed was as it had been on average.
    pub(crate) fn end_component(&mut self, end: Time, ahead: Time) {
        if let Some(Reordering { taken, buffer, .. }) = self.reordering.as_deref_mut() {
            [taken, buffer].into_iter().for_each(|level| level.go_on_alike(end, ahead));
        }
        self.last_event += ahead;
    }

    /// What it knows of packets that did not come in order, if any did.
    pub(crate) fn reordering(&self) -> Option<&Reordering> {
        self.reordering.as_deref()
    }

    /// Its batch is the next one: prefetches what it will touch.
    #[inline(always)]
    pub(crate) fn prefetch_state(&self) {
        let Host { nic, flows, send_queue, receivers, .. } = self;
        nic.prefetch_first_port();
        flows.first().into_iter().for_each(prefetch_whole);
        send_queue.prefetch();
        receivers.prefetch();
    }

    /// Whether its flows are too many to be all in the processor's cache: then it is worth a look at each packet of a batch before the first one is handled.
    #[inline(always)]
    pub(crate) fn is_crowded(&self) -> bool {
        self.flows.len().max(self.receivers.active_slots()) > CROWD
    }

    /// Prefetches the flows whose turns come first.
    #[inline(always)]
    pub(crate) fn prefetch_turns(&self) {
        for turn in 0..TURNS_AHEAD {
            self.prefetch_turn(turn);
        }
    }

    /// Prefetches the flow whose turn comes this many after the next one's.
    #[inline(always)]
    pub(crate) fn prefetch_turn(&self, turn: usize) {
        let slot = self.send_queue.turn_of_single(turn);
        slot.and_then(|slot| self.flows.get(slot as usize)).into_iter().for_each(prefetch_whole);
    }

    /// A packet will soon be handled: prefetches its flow.
    #[inline(always)]
    pub(crate) fn prefetch_flow(&self, world: &World, packet: &Packet) {
        match packet.kind {
            PacketKind::Data | PacketKind::Header => {
                let key = FlowKey { src: packet.src, flow: world.numbering.flow(packet.flow) };
                self.receivers.prefetch_flow(key);
            }
            _ => self.flows.get(packet.slot as usize).into_iter().for_each(prefetch_whole),
        }
    }

    /// Its batch comes soon: prefetches what it will touch first.
    #[inline(always)]
    pub(crate) fn prefetch_node(&self) {
        let Host {
            nic, random, flows, send_queue, paces, queue, checked, receivers, sent, last_event, ..
        } = self;
        prefetch(nic);
        prefetch(random);
        prefetch(flows);
        prefetch(send_queue);
        prefetch(paces);
        prefetch(queue);
        prefetch(checked);
        prefetch(receivers);
        prefetch(sent);
        prefetch(last_event);
    }
}

/// What few hosts need.
#[derive(Debug, Default)]
pub(crate) struct Rare {
    /// The slots of streams, by destination, group and class.
    pub(crate) streams: FxHashMap<(u32, u16, u8), u32>,
    /// When the program wants to be called.
    pub(crate) calculations: Calculations,
    /// Last time a calculation ended, by the [clock](World::clock) of the workload.
    pub(crate) calculated: Option<Time>,
    /// ACKs that are held back, by receiver.
    pub(crate) delayed_acks: FxHashMap<u32, DelayedAck>,
    /// Headers that came back, by flow, after what was known of these was handed in.
    pub(crate) late_returns: FxHashMap<u32, u32>,
    pub(crate) interrupts: Interrupts,
    /// Answers that the NIC has not processed yet.
    pub(crate) processed: Processed,
}

/// What a host has to tell its server, or what drives the run.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    /// Events of flows, not yet collected.
    pub(crate) events: Vec<FlowEvent>,
    /// The receivers of flows whose last packet has come, but not all, in a run that is driven.
    pub(crate) ending: FxHashSet<u32>,
}

impl Rare {
    /// Packets that have come and that the host has not looked at.
    fn buffered(&self) -> impl Iterator<Item = &Packet> {
        // What is processed has not been sent yet.
        let Rare {
            interrupts,
            streams: _,
            calculations: _,
            calculated: _,
            delayed_acks: _,
            late_returns: _,
            processed: _,
        } = self;
        interrupts.coalesced.iter()
    }
}

/// The ACK that a receiver holds back.
#[derive(Debug, Default)]
pub(crate) struct DelayedAck {
    /// The last packet that waits for it, and when it must have it.
    pub(crate) packet: Option<(Packet, Time)>,
    /// When its timer fires; another one means nothing.
    pub(crate) timer: Option<Time>,
}

impl Host {
    /// A host that has yet to start its work.
    pub(crate) fn new(world: &World, id: NodeId, work: HostWork, sampler: Option<Box<Sampler>>) -> Self {
        let World { rules, wiring, .. } = world;
        let ports = world.ports_of_nic(&id);
        let port_selector = PortSelector::new(world, ports.len());
        // With several ports more happens inside than what flows send by one.
        let rare = port_selector.is_some().then(Box::default);
        Host {
            nic: Ports::new(ports.iter().flat_map(|&port| world.specs(port)), rules, true),
            port_selector,
            path_selector: NicPathSelector::new(&world.routing, id).map(Box::new),
            random: random::Node::Host.stream(wiring.seed, u64::from(id)),
            work,
            upcoming: None,
            has_begun: false,
            flows: Vec::new(),
            free_slots: FreeSlots::default(),
            next_flow: wiring.first_number,
            last_idle: None,
            send_queue: SendQueue::new(rules),
            paces: Paces::default(),
            queue: Queue::new(world.transport.options.nic_queue, rules),
            leaving: None,
            paused_classes: 0,
            departed: None,
            checked: Time::ZERO,
            receivers: Receivers::default(),
            protocols: AtHost::default(),
            rare,
            reports: None,
            connections: None,
            reordering: None,
            sent: Vec::new(),
            control_sent: 0,
            control_received: 0,
            sampler,
            meters: world.recorder.sender_interval.map(|_| Box::default()),
            last_event: Time::ZERO,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_fabric::Port;
    use netloom_topology::Link;
    use std::collections::VecDeque;

    #[test]
    fn an_idle_host_takes_less_than_2_kib() {
        // A queue's head, tail and bytes.
        const LANE: usize = 16;
        // The host, its port with three queues, its send queue, its NIC's word of waiting bits, its batches in the engine's windows (at most 256 slots of 4 bytes), its link with two
        // channels in the port lists, and its place in the route table.
        let send_queue = size_of::<VecDeque<u32>>();
        let idle = size_of::<Host>()
            + size_of::<Port>()
            + 3 * LANE
            + send_queue
            + 8
            + 256 * 4
            + size_of::<Link>()
            + 2 * 4
            + 12;
        assert!(idle < 2048, "{idle}");
    }
}
