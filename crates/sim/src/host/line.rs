//! Which flow of a host sends next: flows wait in a line, and whoever has sent goes to its end.
//!
//! A host asks at every packet that comes and at every one that leaves. Most flows wait for their rate then, and to ask them all each time would be most of the work of
//! a host with many flows; so it remembers [until when nobody may send](Paces).

use netloom_fabric::Ports;
use netloom_routing::NicPathSelector;
use netloom_transport::shaping::hf2t::{Hf2t, Training};
use netloom_units::Time;
use rustc_hash::FxHashMap;

use super::paces::{Asked, Paces};
use super::{Flow, Host, Limiter, NIC};
use crate::model::World;
use crate::turns::{Turn, Turns};

/// The flows, and all that has a say in when they send.
struct Line<'a> {
    flows: &'a mut [Option<Flow>],
    paces: &'a mut Paces,
    decider: Option<&'a NicPathSelector>,
    limiters: Option<&'a FxHashMap<u32, Limiter>>,
    /// How gaps are stretched, if they are.
    stretching: Option<(&'a Hf2t, &'a Training)>,
    stopped: u8,
    /// Whether all that happens to a flow is heard by its slot.
    may_note: bool,
}

impl Line<'_> {
    /// From when on the flow of a slot may send; `None` if not until something happens.
    #[inline(always)]
    fn ask(&mut self, world: &World, slot: u32, at: Time) -> Option<Time> {
        if let Some(later) = self.paces.later(slot, at) {
            return Some(later);
        }
        let flow = self.flows[slot as usize].as_mut()?;
        let pace = flow.ready(world, self.decider, self.stopped);
        flow.in_turn = pace.is_some();
        let mut pace = pace?;
        if let Some(limiters) = self.limiters {
            let limit = limiters.get(&flow.dst).map_or(Time::ZERO, |limiter| limiter.point.ready_at());
            pace = pace.max(limit);
        }
        if let (Some(stretching), Some(departures)) = (self.stretching, &mut flow.departures)
            && pace <= at
        {
            // What is stretched leaves then and not before, whatever is known by then.
            pace = departures.leaves_at(stretching, at);
        }
        if self.may_note {
            self.paces.note(slot, at, pace);
        }
        Some(pace)
    }
}

impl Host {
    /// Which flow sends next, at `at`.
    #[inline(always)]
    pub(super) fn next_turn(&mut self, world: &World, at: Time) -> Turn<u32> {
        match self.take_first(world, at) {
            Some(slot) => Turn::Now(slot),
            None => self.find_turn(world, at),
        }
    }

    /// Takes the first flow out of the only line, if it may send; nearly always it is asked for nothing else. What is known of the line's paces stays true, as it speaks of flows that
    /// may not.
    #[inline(always)]
    fn take_first(&mut self, world: &World, at: Time) -> Option<u32> {
        if self.rare.is_some() || self.departed.is_some() || !self.is_open(0) {
            return None;
        }
        let slot = self.turns.first_of_one_line()?;
        let flow = self.flows[slot as usize].as_ref()?;
        let from = flow.ready(world, self.decider.as_deref(), self.stopped)?;
        if from > at {
            return None;
        }
        self.turns.pop(0)
    }

    #[inline(never)]
    fn find_turn(&mut self, world: &World, at: Time) -> Turn<u32> {
        match self.paces.asked(at) {
            Asked::All => self.ask_all(world, at),
            // All wait in one line.
            _ if !self.is_open(0) => Turn::Never,
            Asked::Nobody(until) => Turn::At(until),
            Asked::One(slot, until) => self.ask_one(world, at, slot, until),
        }
    }

    /// Flow control holds the queue back, not what goes into it.
    fn is_open(&self, lane: usize) -> bool {
        self.queue.is_some() || self.nic.is_open(NIC, lane)
    }

    fn ask_all(&mut self, world: &World, at: Time) -> Turn<u32> {
        let has_queue = self.queue.is_some();
        let (turns, nic, mut line) = self.line(world);
        let is_open = |lane| has_queue || nic.is_open(NIC, lane);
        let turn = turns.next(&world.rules, at, is_open, |&slot| line.ask(world, slot, at));
        let is_known = line.may_note && turns.are_one_line();
        line.paces.note_quiet(match turn {
            Turn::At(until) if is_known => until,
            _ => Time::ZERO,
        });
        turn
    }

    /// Nobody in the line may send before `until`, but perhaps the flow of a slot.
    fn ask_one(&mut self, world: &World, at: Time, slot: u32, until: Time) -> Turn<u32> {
        let (turns, _, mut line) = self.line(world);
        let is_in_line = line.flows[slot as usize].as_ref().is_some_and(|flow| flow.in_turn);
        let from = if is_in_line { line.ask(world, slot, at) } else { Some(until) };
        let until = match from {
            // It stays the only one to which anything happens.
            Some(from) if from <= at => {
                turns.take(0, slot);
                return Turn::Now(slot);
            }
            Some(from) => until.min(from),
            None => {
                turns.remove(0, slot);
                until
            }
        };
        line.paces.note_quiet(until);
        // The last one may have left.
        if turns.is_empty() { Turn::Never } else { Turn::At(until) }
    }

    #[inline(always)]
    fn line<'a>(&'a mut self, world: &'a World) -> (&'a mut Turns<u32>, &'a Ports, Line<'a>) {
        let Host { turns, paces, flows, nic, decider, rare, stopped, departed, .. } = self;
        let stretching = world.transport.shaping.facts().stretching.and_then(|config| {
            departed.as_ref().and_then(|departed| Some((config, departed.training.as_ref()?)))
        });
        let limiters = rare.as_ref().map(|rare| &rare.limiters).filter(|limiters| !limiters.is_empty());
        // Elsewhere something may happen to a flow of which only another one hears.
        let may_note = limiters.is_none() && !world.numbering.has_subflows();
        let decider = decider.as_deref();
        (turns, nic, Line { flows, paces, decider, limiters, stretching, stopped: *stopped, may_note })
    }
}
