//! Switches stop a source and let it go on: XOFF and XON for a flow, or for all flows of its traffic class.
//!
//! A source that gets no signal to resume does so by itself after the flowcuts' drain timeout: a signal may have been lost.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_units::{Time, narrow};

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::flow::flow_in;
use crate::message::Message;
use crate::protocol::Timer;
use crate::protocol::at_hosts::HostProtocol;
use crate::protocol::flowcut::Flowcut;
use crate::protocol::flowcut::pause::{FlowPause, PauseLimit, PausedClass};
use crate::protocol::packets::{XOFF, XON};
use crate::world::World;

impl HostProtocol for Flowcut {
    fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        if packet.flags.is_of_class() {
            host.paces.forget_all();
        }
        match packet.kind {
            XOFF => host.on_xoff(ctx, packet),
            XON => host.on_xon(ctx.world, ctx.now, packet),
            _ => unreachable!("acknowledgements end at switches"),
        }
    }

    fn on_timer(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, limit: PauseLimit) {
        match limit {
            PauseLimit::Flow { slot, flow } => host.on_xoff_limit(ctx.world, ctx.now, slot, flow),
            PauseLimit::Class { class } => host.on_class_xoff_limit(ctx.world, ctx.now, class),
        }
    }
}

impl Host {
    /// A switch stops a flow, or its class.
    pub(crate) fn on_xoff(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let Some(flowcut) = ctx.world.routing.counted_flowcuts() else { return };
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        let until = ctx.now + flowcut.drain_timeout;
        let is_class = packet.flags.is_of_class();
        // All flows of the class wait; this one is why, and keeps count of it.
        let credit = if is_class { u32::MAX } else { packet.number_of(&[XOFF]) };
        flow.pause.get_or_insert_with(|| Box::new(FlowPause::new())).stop(ctx.now, until, credit, packet.tag);
        if is_class {
            let (class, flow) = (packet.flags.class(), packet.flow);
            let classes = &mut self.protocols.flowcut.0;
            classes.retain(|paused| paused.flow != flow);
            classes.push(PausedClass { class, flow, until });
            self.paused_classes |= 1 << class;
            ctx.timer(until, Message::Protocol(Timer::Flowcut(PauseLimit::Class { class })));
        } else {
            let limit = PauseLimit::Flow { slot: packet.slot, flow: packet.flow };
            ctx.timer(until, Message::Protocol(Timer::Flowcut(limit)));
        }
    }

    /// A switch lets a flow go on, or its class.
    pub(crate) fn on_xon(&mut self, world: &World, now: Time, packet: &Packet) {
        if let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) {
            let pause = flow.pause.get_or_insert_with(|| Box::new(FlowPause::new()));
            let most_ahead = packet.number_of(&[XON]);
            if most_ahead > 0 {
                pause.run_ahead(most_ahead, flow.sender.next());
            }
            if !pause.release(now, packet.tag) {
                return;
            }
        }
        if packet.flags.is_of_class() {
            self.release_class(world, packet.flags.class(), |paused| paused.flow == packet.flow);
        } else {
            self.enqueue_if_ready(world, packet.slot);
        }
    }

    /// A flow has perhaps waited long enough for its XON.
    pub(crate) fn on_xoff_limit(&mut self, world: &World, now: Time, slot: u32, number: u32) {
        let Some(flow) = flow_in(&mut self.flows, slot, number) else { return };
        if let Some(pause) =
            flow.pause.as_mut().filter(|pause| pause.span.is_some_and(|(_, until)| until == now))
        {
            pause.go_on(now);
            self.enqueue_if_ready(world, slot);
        }
    }

    /// A class has perhaps waited long enough for its XON.
    pub(crate) fn on_class_xoff_limit(&mut self, world: &World, now: Time, class: u8) {
        for flow in self.flows.iter_mut().flatten().filter(|flow| flow.class == class) {
            if let Some(pause) =
                flow.pause.as_mut().filter(|pause| pause.span.is_some_and(|(_, until)| until == now))
            {
                pause.go_on(now);
            }
        }
        self.release_class(world, class, |paused| paused.until <= now);
    }

    /// Some reasons for stopping a class are gone. Without any, its flows take turns again.
    pub(crate) fn release_class(&mut self, world: &World, class: u8, is_gone: impl Fn(&PausedClass) -> bool) {
        let classes = &mut self.protocols.flowcut.0;
        classes.retain(|paused| paused.class != class || !is_gone(paused));
        if classes.iter().all(|paused| paused.class != class) {
            self.paused_classes &= !(1 << class);
            for slot in 0..narrow::<u32>(self.flows.len()) {
                self.enqueue_if_ready(world, slot);
            }
        }
    }
}
