//! A NIC with several ports that are one: which of them a packet leaves by.
//!
//! Flows wait in one send queue for all ports. A flow is ready when a port is free that it may take, so [`FlowGate`](crate::host::nic) asks here; data leave when some port is free, and control packets wait at the
//! port by which they leave.

use netloom_engine::Scheduler;
use netloom_fabric::{At, Packet};
use netloom_routing::Tag;
use netloom_units::Time;
use netloom_workload::PortSelection;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::send_queue::Next;
use crate::message::Message;

impl Host {
    /// A packet has arrived, with the addresses that it has on the wire.
    pub(crate) fn note_port(&mut self, packet: &Packet) {
        if let Some(port_selector) = self.port_selector.as_mut().filter(|ports| packet.ingress < ports.count)
        {
            port_selector.arrived = packet.ingress;
            port_selector.arrived_from = packet.src;
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
        let Host { port_selector, .. } = self;
        let Some(ports) = port_selector else { return };
        let landing = ports.landing(ctx.world, &packet, port, ctx.now);
        let mut on_wire = ctx.world.on_wire(&packet, (port, landing));
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
        let landing = ports.landing(ctx.world, packet, port, ctx.now);
        let mut on_wire = ctx.world.on_wire(packet, (port, landing));
        nic.enqueue(port, &mut on_wire, random, At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()));
    }
}
