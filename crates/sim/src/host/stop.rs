//! Switches stop a source and let it go on: XOFF and XON for a flow, or for all flows of its traffic class.
//!
//! A source that is not told to go on does so by itself after the flowcuts' drain timeout: a signal may have been lost.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_units::{Time, narrow};

use super::{Host, flow_in};
use crate::ctx::Ctx;
use crate::model::{Message, World};

/// What switches have told a flow.
#[derive(Debug)]
pub(super) struct Halt {
    /// Packets that it may still send; `u32::MAX` where it may send what it likes.
    pub(super) credit: u32,
    /// Since when it is stopped, and until when at the longest.
    span: Option<(Time, Time)>,
    /// By which switches of its way.
    by: Vec<u32>,
    /// Until everything before the second packet is acknowledged, it runs at most the first number ahead.
    ahead: Option<(u32, u32)>,
    /// It has been told an odd number of times to run ahead.
    pub(super) is_turned: bool,
    stops: u32,
    stopped_for: Time,
}

/// A flow because of which its traffic class is stopped.
#[derive(Debug)]
pub(super) struct Stopped {
    class: u8,
    flow: u32,
    until: Time,
}

impl Halt {
    fn new() -> Self {
        let (span, ahead, stopped_for) = (None, None, Time::ZERO);
        Halt { credit: u32::MAX, span, by: Vec::new(), ahead, is_turned: false, stops: 0, stopped_for }
    }

    /// Whether a flow may send packet `next` while `oldest` is the oldest one not acknowledged.
    pub(super) fn may_send(&self, next: u32, oldest: u32) -> bool {
        let is_near = |(most, end)| oldest >= end || next - oldest <= most;
        self.credit > 0 && self.ahead.is_none_or(is_near)
    }

    /// A packet of the flow leaves.
    pub(super) fn on_sent(&mut self) {
        if self.span.is_some() && self.credit != u32::MAX {
            self.credit -= 1;
        }
    }

    /// The switch so many channels from the source stops it.
    fn stop(&mut self, now: Time, until: Time, credit: u32, by: u32) {
        self.stops += u32::from(self.span.is_none());
        let since = self.span.map_or(now, |(since, _)| since);
        (self.span, self.credit) = (Some((since, until)), self.credit.min(credit));
        if !self.by.contains(&by) {
            self.by.push(by);
        }
    }

    /// A switch lets it go on. Whether all have.
    fn release(&mut self, now: Time, by: u32) -> bool {
        self.by.retain(|&other| other != by);
        if self.by.is_empty() {
            self.go_on(now);
        }
        self.by.is_empty()
    }

    fn go_on(&mut self, now: Time) {
        if let Some((since, _)) = self.span.take() {
            self.stopped_for += now - since;
        }
        self.credit = u32::MAX;
        self.by.clear();
    }

    /// From packet `next` on it runs ahead of what is in flight, by so many packets at most.
    fn run_ahead(&mut self, most: u32, next: u32) {
        (self.ahead, self.is_turned) = (Some((most, next)), !self.is_turned);
    }

    /// How often it was stopped, and for how long in all; a stop that lasts counts if it is known until when.
    pub(super) fn counts(&self, now: Option<Time>) -> (u32, Time) {
        let lasting = self.span.zip(now).map_or(Time::ZERO, |((since, _), now)| now - since);
        (self.stops, self.stopped_for + lasting)
    }
}

impl Host {
    /// A switch stops a flow, or its class.
    pub(super) fn on_xoff(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.control_received += 1;
        let Some(flowcut) = ctx.world.routing.counted_flowcuts() else { return };
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        let until = ctx.now + flowcut.drain_timeout;
        let is_class = packet.flags.is_of_class();
        // All flows of the class wait; this one is why, and keeps count of it.
        let credit = if is_class { u32::MAX } else { packet.aux };
        flow.halt.get_or_insert_with(|| Box::new(Halt::new())).stop(ctx.now, until, credit, packet.tag);
        if is_class {
            let (class, flow) = (packet.flags.class(), packet.flow);
            let classes = &mut self.rare.get_or_insert_default().classes;
            classes.retain(|stopped| stopped.flow != flow);
            classes.push(Stopped { class, flow, until });
            self.stopped |= 1 << class;
            ctx.timer(until, Message::ClassStopLimit { class });
        } else {
            ctx.timer(until, Message::StopLimit { slot: packet.slot, flow: packet.flow });
        }
    }

    /// A switch lets a flow go on, or its class.
    pub(super) fn on_xon(&mut self, world: &World, now: Time, packet: &Packet) {
        self.control_received += 1;
        if let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) {
            let halt = flow.halt.get_or_insert_with(|| Box::new(Halt::new()));
            if packet.aux > 0 {
                halt.run_ahead(packet.aux, flow.sender.next());
            }
            if !halt.release(now, packet.tag) {
                return;
            }
        }
        if packet.flags.is_of_class() {
            self.release_class(world, packet.flags.class(), |stopped| stopped.flow == packet.flow);
        } else {
            self.take_turns(world, packet.slot);
        }
    }

    /// A flow has perhaps waited long enough for its XON.
    pub(super) fn on_stop_limit(&mut self, world: &World, now: Time, slot: u32, number: u32) {
        let Some(flow) = flow_in(&mut self.flows, slot, number) else { return };
        if let Some(halt) = flow.halt.as_mut().filter(|halt| halt.span.is_some_and(|(_, until)| until == now))
        {
            halt.go_on(now);
            self.take_turns(world, slot);
        }
    }

    /// A class has perhaps waited long enough for its XON.
    pub(super) fn on_class_stop_limit(&mut self, world: &World, now: Time, class: u8) {
        for flow in self.flows.iter_mut().flatten().filter(|flow| flow.class == class) {
            if let Some(halt) =
                flow.halt.as_mut().filter(|halt| halt.span.is_some_and(|(_, until)| until == now))
            {
                halt.go_on(now);
            }
        }
        self.release_class(world, class, |stopped| stopped.until <= now);
    }

    /// Some reasons for stopping a class are gone. Without any, its flows take turns again.
    fn release_class(&mut self, world: &World, class: u8, is_gone: impl Fn(&Stopped) -> bool) {
        let Some(rare) = &mut self.rare else { return };
        rare.classes.retain(|stopped| stopped.class != class || !is_gone(stopped));
        if rare.classes.iter().all(|stopped| stopped.class != class) {
            self.stopped &= !(1 << class);
            for slot in 0..narrow::<u32>(self.flows.len()) {
                self.take_turns(world, slot);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stopped_flow_has_its_credit_and_counts_the_time_until_it_goes_on() {
        let mut halt = Halt::new();
        halt.on_sent();
        assert_eq!(halt.credit, u32::MAX);
        halt.stop(Time(10), Time(1000), 2, 1);
        halt.on_sent();
        assert_eq!(halt.credit, 1);
        // Told again, it starts no second stop.
        halt.stop(Time(20), Time(1010), 0, 1);
        assert_eq!((halt.credit, halt.counts(Some(Time(50)))), (0, (1, Time(40))));
        halt.go_on(Time(110));
        assert_eq!((halt.credit, halt.counts(None)), (u32::MAX, (1, Time(100))));
    }
    #[test]
    fn a_flow_goes_on_when_every_switch_that_has_stopped_it_says_so() {
        let mut halt = Halt::new();
        halt.stop(Time(10), Time(1000), 0, 1);
        halt.stop(Time(20), Time(1010), 0, 3);
        assert!(!halt.release(Time(30), 1) && !halt.may_send(5, 0));
        assert!(halt.release(Time(40), 3) && halt.may_send(5, 0));
        assert_eq!(halt.counts(None), (1, Time(30)));
    }

    #[test]
    fn a_flow_runs_ahead_of_what_is_in_flight_by_so_much_only() {
        let mut halt = Halt::new();
        halt.stop(Time(10), Time(1000), 0, 1);
        halt.run_ahead(3, 20);
        assert!(halt.is_turned && halt.release(Time(30), 1));
        assert!(halt.may_send(20, 17) && !halt.may_send(21, 17));
        assert!(halt.may_send(90, 20), "what was in flight then has arrived");
    }
}
