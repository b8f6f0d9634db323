//! Which flow of a host sends next: flows wait in a send queue, and one that has sent goes to its end.
//!
//! A host asks at every packet that comes and at every one that leaves. Most flows wait for their rate then, and to ask them all each time would be most of the work of
//! a host with many flows; so it remembers [until when nobody may send](Paces).

use netloom_engine::Scheduler;
use netloom_fabric::Ports;
use netloom_routing::NicPathSelector;
use netloom_transport::shaping::hf2t::{Hf2t, Training};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::host::flow::Flow;
use crate::host::pacing::{Eligible, Paces};
use crate::host::port_selector::PortSelector;
use crate::host::send_queue::{Next, SendQueue};
use crate::host::{Host, NIC};
use crate::message::Message;
use crate::protocol::state::AtHost;
use crate::world::World;

/// The flows, and all that has a say in when they send.
struct FlowGate<'a> {
    flows: &'a mut [Option<Flow>],
    paces: &'a mut Paces,
    path_selector: Option<&'a NicPathSelector>,
    /// The NIC's ports, if it has several.
    ports: Option<(&'a PortSelector, &'a Ports)>,
    /// Protocols, if any has a say.
    protocols: Option<&'a AtHost>,
    /// How gaps are stretched, if they are.
    stretching: Option<(&'a Hf2t, &'a Training)>,
    paused_classes: u8,
    /// Whether all that happens to a flow is known by its slot.
    may_note: bool,
}

impl FlowGate<'_> {
    /// From when on the flow of a slot may send; `None` if not until something happens.
    #[inline(always)]
    fn ready_at(&mut self, world: &World, slot: u32, at: Time) -> Option<Time> {
        if let Some(later) = self.paces.later(slot, at) {
            return Some(later);
        }
        let flow = self.flows[slot as usize].as_mut()?;
        let pace = flow.ready(world, self.path_selector, self.paused_classes);
        flow.is_queued = pace.is_some();
        let mut pace = pace?;
        if let Some(protocols) = self.protocols {
            pace = pace.max(protocols.ready_at(flow.dst));
        }
        if let (Some(stretching), Some(departures)) = (self.stretching, &mut flow.departures)
            && pace <= at
        {
            // What is stretched leaves then and not before, whatever is known by then.
            pace = departures.leaves_at(stretching, at);
        }
        if let Some((port_selector, nic)) = self.ports {
            pace = pace.max(port_selector.free_at(world, nic, flow, slot, at));
        }
        if self.may_note {
            self.paces.note(slot, at, pace);
        }
        Some(pace)
    }
}

impl Host {
    /// The flows hand over what they may send now, in turn. Does nothing where the NIC has no queue.
    #[inline(always)]
    pub(crate) fn hand_over(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        if self.queue.is_some() {
            self.fill_queue(&mut ctx.again());
        }
    }

    #[inline(never)]
    pub(crate) fn fill_queue(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        loop {
            let Some(at) = self.queue.as_ref().map(|queue| queue.free.max(ctx.now)) else { return };
            let (_, next) = self.next_flow(ctx.world, at, at);
            let taken = match next {
                Next::Now(slot) => self.take_packet(&mut ctx.at(at), slot),
                Next::At(_) | Next::Never => None,
            };
            let Some(queue) = &mut self.queue else { return };
            match (next, taken) {
                (_, Some((data_queue, packet))) => {
                    queue.waiting.push(data_queue, packet);
                    queue.free = at + Time(1);
                }
                (Next::Now(_), None) => {}
                (Next::At(later), None) => {
                    queue.opens = later;
                    return;
                }
                (Next::Never, None) => {
                    queue.opens = Time::MAX;
                    return;
                }
            }
        }
    }

    /// Sends the packet whose turn it is in the NIC's queue at `at`; returns whether there is one that may leave.
    #[inline(never)]
    pub(crate) fn send_queued(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> bool {
        let Host { queue, nic, paused_classes, .. } = self;
        let Some(queue) = queue else { return false };
        let is_stopped = |data_queue| {
            (0..8).any(|class| {
                *paused_classes >> class & 1 != 0 && ctx.world.rules.first_queue(class) == data_queue
            })
        };
        let is_open =
            |data_queue| nic.may_send(NIC, data_queue) && (*paused_classes == 0 || !is_stopped(data_queue));
        let Some(mut packet) = queue.waiting.next(&ctx.world.rules, ctx.now, is_open) else { return false };
        nic.send_now(NIC, &mut packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        true
    }

    /// Which flow sends next, and when: at `at`, or, if it is the only one, later but before `until`.
    #[inline(always)]
    pub(crate) fn next_flow(&mut self, world: &World, at: Time, until: Time) -> (Time, Next<u32>) {
        match self.ask_first(world, at, until) {
            Some(next) => next,
            None => (at, self.find_flow(world, at)),
        }
    }

    /// Takes the first flow out of the only send queue, if it may send, or says when it may, if it is the only one; nearly always nothing else is asked for. What is known of the paces in the
    /// queue stays true, as it speaks of flows that may not.
    #[inline(always)]
    fn ask_first(&mut self, world: &World, at: Time, until: Time) -> Option<(Time, Next<u32>)> {
        if self.protocols.gates() || self.stretches_gaps() || !self.is_open(0) {
            return None;
        }
        let slot = self.send_queue.first_of_single()?;
        let flow = self.flows[slot as usize].as_ref()?;
        let from = flow.ready(world, self.path_selector.as_deref(), self.paused_classes)?;
        if from > at {
            if !self.send_queue.has_one() {
                return None;
            }
            if from >= until {
                if !world.numbering.has_subflows() {
                    self.paces.rest(from);
                }
                return Some((at, Next::At(from)));
            }
        }
        self.send_queue.pop(0).map(|slot| (at.max(from), Next::Now(slot)))
    }

    #[inline(never)]
    pub(crate) fn find_flow(&mut self, world: &World, at: Time) -> Next<u32> {
        match self.paces.eligible(at) {
            Eligible::All => self.ask_all(world, at),
            // All wait in one queue.
            _ if !self.is_open(0) => Next::Never,
            Eligible::None(until) => Next::At(until),
            Eligible::One(slot, until) => self.ask_one(world, at, slot, until),
        }
    }

    /// Whether when a flow sends depends on when it is asked.
    #[inline(always)]
    pub(crate) fn stretches_gaps(&self) -> bool {
        self.departed.as_ref().is_some_and(|departed| departed.training.is_some())
    }

    /// Flow control holds the queue back, not what goes into it.
    pub(crate) fn is_open(&self, data_queue: usize) -> bool {
        self.queue.is_some() || self.nic.may_send(NIC, data_queue)
    }

    pub(crate) fn ask_all(&mut self, world: &World, at: Time) -> Next<u32> {
        // With several ports each flow asks for its own.
        let has_queue = self.queue.is_some() || self.port_selector.is_some();
        let (send_queue, nic, mut gate) = self.gate(world);
        let is_open = |data_queue| has_queue || nic.may_send(NIC, data_queue);
        let next = send_queue.next(&world.rules, at, is_open, |&slot| gate.ready_at(world, slot, at));
        let is_known = gate.may_note && send_queue.is_single();
        gate.paces.note_quiet(match next {
            Next::At(until) if is_known => until,
            _ => Time::ZERO,
        });
        next
    }

    /// None in the send queue may send before `until`, but perhaps the flow of a slot.
    pub(crate) fn ask_one(&mut self, world: &World, at: Time, slot: u32, until: Time) -> Next<u32> {
        let (send_queue, _, mut gate) = self.gate(world);
        let is_queued = gate.flows[slot as usize].as_ref().is_some_and(|flow| flow.is_queued);
        let from = if is_queued { gate.ready_at(world, slot, at) } else { Some(until) };
        let until = match from {
            // It stays the only one to which anything happens.
            Some(from) if from <= at => {
                send_queue.take(0, slot);
                return Next::Now(slot);
            }
            Some(from) => until.min(from),
            None => {
                send_queue.remove(0, slot);
                until
            }
        };
        gate.paces.note_quiet(until);
        // The last one may have left.
        if send_queue.is_empty() { Next::Never } else { Next::At(until) }
    }

    #[inline(always)]
    fn gate<'a>(&'a mut self, world: &'a World) -> (&'a mut SendQueue<u32>, &'a Ports, FlowGate<'a>) {
        let Host {
            send_queue,
            paces,
            flows,
            nic,
            port_selector,
            path_selector,
            protocols,
            paused_classes,
            departed,
            ..
        } = self;
        let stretching = world.transport.shaping.facts().stretching.and_then(|config| {
            departed.as_ref().and_then(|departed| Some((config, departed.training.as_ref()?)))
        });
        let protocols = Some(&*protocols).filter(|protocols| protocols.gates());
        // Elsewhere something may happen to a flow of which only another one learns.
        let may_note = protocols.is_none() && !world.numbering.has_subflows() && port_selector.is_none();
        let path_selector = path_selector.as_deref();
        let nic = &*nic;
        let ports = port_selector.as_deref().map(|port_selector| (port_selector, nic));
        (
            send_queue,
            nic,
            FlowGate {
                flows,
                paces,
                path_selector,
                ports,
                protocols,
                stretching,
                paused_classes: *paused_classes,
                may_note,
            },
        )
    }
}
