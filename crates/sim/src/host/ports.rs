//! A NIC with several ports that are one: which of them a packet leaves by.
//!
//! Flows wait in one send queue for all ports. A flow is ready when a port is free that it may take, so [`FlowGate`](crate::host::nic) asks here; data leave when some port is free, and control packets wait at the
//! port by which they leave.

use netloom_engine::Scheduler;
use netloom_fabric::{At, Packet, Ports};
use netloom_routing::Tag;
use netloom_units::Time;
use netloom_units::random::mix;
use netloom_workload::{PortSelection, by_hash};
use rustc_hash::FxHashMap;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::Flow;
use crate::host::send_queue::Next;
use crate::message::Message;
use crate::world::World;

/// Which ports a NIC takes.
#[derive(Debug)]
pub(crate) struct PortSelector {
    selection: PortSelection,
    /// Number of ports, at most 64.
    count: u16,
    /// The port whose turn it is.
    next: u16,
    /// The port by which a packet has come last: answers leave by it.
    arrived: u16,
    /// The tags of the next packets of flows, by slot, where the port follows from the tag.
    drawn: FxHashMap<u32, u32>,
}

impl PortSelector {
    /// One for a NIC, if it has several ports.
    pub(crate) fn new(world: &World, count: usize) -> Option<Box<Self>> {
        let selection = world.port_selection().filter(|_| count > 1)?;
        let count = u16::try_from(count).expect("an endpoint has 64 ports at most: Servers::network");
        Some(Box::new(PortSelector { selection, count, next: 0, arrived: 0, drawn: FxHashMap::default() }))
    }

    /// A new flow takes a slot.
    pub(crate) fn forget(&mut self, slot: u32) {
        self.drawn.remove(&slot);
    }

    /// All ports from the one on whose turn it is.
    fn in_turn(&self) -> impl Iterator<Item = u16> + use<> {
        let (first, count) = (self.next, self.count);
        (0..count).map(move |step| (first + step) % count)
    }

    /// The port of a flow's next packet, if it follows from what is known; none if any port of several may do.
    fn only_port(&self, flow: &Flow, slot: u32, leads: u64) -> Option<u16> {
        let ports = || (0..self.count).filter(move |port| leads >> port & 1 == 1);
        let key = flow.at.key;
        match self.selection {
            PortSelection::Flow => by_hash(mix(u64::from(key.src) << 32 | u64::from(key.flow)), ports()),
            PortSelection::RoundRobin => self.in_turn().find(|port| leads >> port & 1 == 1),
            PortSelection::Entropy => {
                self.drawn.get(&slot).and_then(|&tag| by_hash(mix(u64::from(tag)), ports()))
            }
            PortSelection::LeastLoaded => None,
        }
    }

    /// When a port is free for a flow; never as long as flow control stops it.
    fn free_for(nic: &Ports, port: u16, flow: &Flow) -> Time {
        if nic.may_send(port, flow.queue.into()) { nic.free_at(port) } else { Time::MAX }
    }

    /// When the first port is free that the next packet of a flow may take.
    pub(crate) fn free_at(&self, world: &World, nic: &Ports, flow: &Flow, slot: u32, at: Time) -> Time {
        let leads = world.ports_to((flow.at.key.src, flow.dst), self.count, at);
        if let Some(port) = self.only_port(flow, slot, leads) {
            return Self::free_for(nic, port, flow);
        }
        let ports = (0..self.count).filter(|port| leads >> port & 1 == 1);
        ports.map(|port| Self::free_for(nic, port, flow)).min().unwrap_or(Time::MAX)
    }

    /// The port by which the next packet of a flow leaves at `at`, if one is free; its turn is over then.
    fn take(&mut self, world: &World, nic: &Ports, flow: &Flow, slot: u32, at: Time) -> Option<u16> {
        let leads = world.ports_to((flow.at.key.src, flow.dst), self.count, at);
        let is_free = |&port: &u16| Self::free_for(nic, port, flow) <= at;
        let port = match self.only_port(flow, slot, leads) {
            Some(port) => Some(port).filter(is_free),
            None => self.in_turn().find(|port| leads >> port & 1 == 1 && is_free(port)),
        };
        self.next = port.map_or(self.next, |port| (port + 1) % self.count);
        port
    }
}

impl Host {
    /// A packet has come by a port.
    pub(crate) fn note_port(&mut self, port: u16) {
        if let Some(port_selector) = self.port_selector.as_mut().filter(|ports| port < ports.count) {
            port_selector.arrived = port;
        }
    }

    /// [`Self::send_until`] by several ports.
    pub(crate) fn send_by_ports(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> Option<Time> {
        let mut until = ctx.now;
        loop {
            until = until.min(ctx.out.next_timer());
            let wake = self.next_wake();
            let before = wake.map_or(until, |wake| wake.min(until));
            let control = self.nic.advance(before, &ctx.world.rules, &mut ctx.wire());
            let count = self.port_selector.as_ref().map_or(0, |ports| ports.count);
            let first_free = (0..count).map(|port| self.nic.free_at(port)).min();
            let at = first_free.unwrap_or(Time::MAX).max(self.checked);
            let inside = self.next_inside(at, wake);
            let other = control.into_iter().chain(inside).min();
            if let Some(instant) = inside.filter(|&instant| instant < until && instant <= at) {
                self.step_inside(&mut ctx.at(instant), at);
                continue;
            }
            if at >= until {
                return other.into_iter().chain((!self.send_queue.is_empty()).then_some(at)).min();
            }
            let next = match self.ask_all(ctx.world, at) {
                Next::Now(slot) => {
                    self.send_by_port(&mut ctx.at(at), slot);
                    continue;
                }
                // What waits for a port may take another one when that is left.
                Next::At(later) => {
                    let later = later.min(ctx.world.next_change_of_ports(at));
                    other.into_iter().chain([later]).min()
                }
                Next::Never => other,
            };
            match next.filter(|&next| next < until) {
                Some(next) => self.checked = next,
                None => {
                    self.checked = until;
                    return next;
                }
            }
        }
    }

    /// The flow whose turn it is sends a packet by a port that is free, and goes to the end of the send queue.
    fn send_by_port(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) {
        let Host { flows, nic, port_selector, path_selector, random, send_queue, .. } = self;
        let (Some(flow), Some(ports)) = (&mut flows[slot as usize], port_selector) else { return };
        if ports.selection == PortSelection::Entropy && !ports.drawn.contains_key(&slot) {
            let payload = u32::try_from(ctx.world.transport.options.mtu.0).unwrap_or(u32::MAX);
            let tag = match flow.settled {
                Some(tag) => tag.bits(),
                None => flow.choose_path(ctx.world, path_selector, random, payload, ctx.now),
            };
            ports.drawn.insert(slot, tag);
        }
        let Some(port) = ports.take(ctx.world, nic, flow, slot, ctx.now) else {
            // Now that its port is known it waits for that one.
            return send_queue.push(flow.queue, slot);
        };
        let drawn = ports.drawn.remove(&slot).map(Tag::from_bits);
        let settled = flow.settled;
        flow.settled = drawn.or(settled);
        let made = self.make_packet(ctx, slot);
        if let Some(flow) = self.flows[slot as usize].as_mut().filter(|_| drawn.is_some()) {
            flow.settled = settled;
        }
        let Some((packet, concerns_others)) = made else { return };
        let mut on_wire = ctx.world.on_wire(&packet, port);
        self.nic.send_now(port, &mut on_wire, ctx.now, &ctx.world.rules, &mut ctx.wire());
        self.requeue(ctx.world, slot, &packet, concerns_others, |_| false);
    }

    /// Sends a control packet by the port by which what it answers has come, or by another one where that does not lead to its destination.
    #[inline(never)]
    pub(crate) fn send_control_by_port(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
    ) {
        let Host { nic, port_selector, random, .. } = self;
        let Some(ports) = port_selector else { return };
        let leads = ctx.world.ports_to((ctx.id, packet.dst), ports.count, ctx.now);
        let mut from_it_on = (0..ports.count).map(|step| (ports.arrived + step) % ports.count);
        let port = from_it_on.find(|port| leads >> port & 1 == 1).unwrap_or(0);
        let mut on_wire = ctx.world.on_wire(packet, port);
        nic.enqueue(port, &mut on_wire, random, At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()));
    }
}
