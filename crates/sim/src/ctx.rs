//! What a node has at hand while it handles something.

use netloom_engine::{NodeIndex, Scheduler};
use netloom_units::Time;

use crate::message::{Channels, Message};
use crate::world::World;

/// Where and when something is handled: one argument in the place of four. It is made once for each event, and lives in
/// registers wherever what it is handed to is inlined.
pub(crate) struct Ctx<'a, S: ?Sized> {
    /// What all nodes may read.
    pub(crate) world: &'a World,
    /// The node.
    pub(crate) id: NodeIndex,
    /// The instant at which something happens, or up to which the node advances.
    pub(crate) now: Time,
    /// Where the node puts messages and timers.
    pub(crate) out: &'a mut S,
}

impl<S: ?Sized> Ctx<'_, S> {
    /// What the clock of the workload and of records shows.
    #[inline]
    pub(crate) fn clock(&self) -> Time {
        self.world.clock(self.now)
    }
}

impl<'a, S: Scheduler<Message>> Ctx<'a, S> {
    #[inline(always)]
    pub(crate) fn new(world: &'a World, id: NodeIndex, now: Time, out: &'a mut S) -> Self {
        Ctx { world, id, now, out }
    }

    /// A copy to hand on: to what holds it by value, and from functions that are inlined into the engine's loop to those
    /// that are not. Only the copy has to lie in memory then, and only where that is called.
    #[inline(always)]
    pub(crate) fn again(&mut self) -> Ctx<'_, S> {
        self.at(self.now)
    }

    /// A copy at another instant.
    #[inline(always)]
    pub(crate) fn at(&mut self, now: Time) -> Ctx<'_, S> {
        Ctx { world: self.world, id: self.id, now, out: &mut *self.out }
    }

    /// Calls the node back with `message` at `at`.
    #[inline(always)]
    pub(crate) fn timer(&mut self, at: Time, message: Message) {
        self.out.timer(at, message);
    }

    /// The same before all other timers of the instant, in the order of `place`.
    #[inline(always)]
    pub(crate) fn timer_in_order(&mut self, place: u32, at: Time, message: Message) {
        self.out.timer_in_order(place, at, message);
    }

    /// The channels that begin at the node.
    #[inline(always)]
    pub(crate) fn wire(&mut self) -> Channels<'_, S> {
        Channels(&mut *self.out)
    }
}
