//! The part of a host's work that lies in a region of interest.

use std::sync::Arc;

use netloom_topology::HostId;
use netloom_units::Time;

use super::{HostWork, Message, Source};
use crate::closed::Partners;
use crate::program::RankWork;
use crate::region::Inside;

/// Which of a host's messages that start by the clock are sent.
#[derive(Clone, Debug)]
pub(super) struct Part {
    inside: Arc<Inside>,
    host: HostId,
    /// When the run ends: what would start then or later is not looked at, as there may be no end of it.
    until: Time,
    /// Messages left out before the one that was taken last, or is looked for.
    skipped: u32,
}

impl Part {
    /// Whether a message is sent; counts those that are not.
    pub(super) fn takes(&mut self, message: &Message) -> bool {
        let takes = message.start >= self.until || self.inside.has(self.host, message.dst, message.group);
        self.skipped += u32::from(!takes);
        takes
    }
}

/// On which sides of the border of a region a host's messages are, other than those of programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sides {
    pub(crate) inside: bool,
    pub(crate) outside: bool,
    /// Whether some of them follow each other in a closed loop.
    pub(crate) has_loop: bool,
    /// Whether those of one closed loop are on both sides.
    pub(crate) is_split_loop: bool,
}

impl Sides {
    fn add(&mut self, is_inside: bool) {
        self.inside |= is_inside;
        self.outside |= !is_inside;
    }

    fn join(&mut self, other: Sides) {
        self.inside |= other.inside;
        self.outside |= other.outside;
        self.has_loop |= other.has_loop;
        self.is_split_loop |= other.is_split_loop;
    }
}

impl HostWork {
    /// How many messages that start by the clock were left out since the last call, as they lie outside a region: their numbers are not given to others.
    pub fn take_skipped(&mut self) -> u32 {
        self.part.as_mut().map_or(0, |part| std::mem::take(&mut part.skipped))
    }

    /// On which sides the messages of a host are that are no program's. `first_group`: which number group 0 of this work has in the plan.
    pub(crate) fn sides(&self, inside: &Inside, host: HostId, first_group: u16) -> Sides {
        let mut sides = Sides::default();
        self.add_sides(inside, (host, first_group), &mut sides);
        sides
    }

    fn add_sides(&self, inside: &Inside, (host, first_group): (HostId, u16), sides: &mut Sides) {
        let is_inside = |dst: HostId, group: u16| inside.has(host, dst, first_group + group);
        let of_partners = |partners: &Partners| {
            let mut sides = Sides::default();
            match inside.decides(host, first_group) {
                Some(is_inside) => sides.add(is_inside),
                None => partners.each(&mut |dst| sides.add(is_inside(dst, 0))),
            }
            sides
        };
        match &self.source {
            Source::Idle | Source::Program(_) => {}
            Source::List(messages) => {
                messages.as_slice().iter().for_each(|one| sides.add(is_inside(one.dst, one.group)));
            }
            Source::Arrivals(arrivals) => sides.join(of_partners(&arrivals.partners)),
            // Streams are refused beside a region.
            Source::Frames(_) => (sides.inside, sides.outside) = (true, true),
            Source::Closed { work, .. } => {
                let own = of_partners(&work.partners);
                let is_split_loop = own.inside && own.outside;
                sides.join(Sides { has_loop: true, is_split_loop, ..own });
            }
            Source::Merge(works) => {
                for (first, work, upcoming) in works.parts() {
                    work.add_sides(inside, (host, first), sides);
                    if let Some(message) = upcoming {
                        sides.add(inside.has(host, message.dst, message.group));
                    }
                }
            }
        }
    }

    /// Calls with each rank of a program here, and the number that the first group of its work has in the plan.
    pub(crate) fn each_program(&self, first_group: u16, visit: &mut dyn FnMut(&RankWork, u16)) {
        match &self.source {
            Source::Program(rank) => visit(rank, first_group),
            Source::Merge(works) => {
                works.parts().for_each(|(first, work, _)| work.each_program(first, visit));
            }
            _ => {}
        }
    }

    /// Leaves out the ranks of programs outside a region.
    fn drop_programs(&mut self, inside: &Inside, host: HostId, first_group: u16) {
        match &mut self.source {
            Source::Program(rank) if !inside.has_rank(rank, host, first_group) => self.source = Source::Idle,
            Source::Merge(works) => {
                works.parts_mut().for_each(|(first, work)| work.drop_programs(inside, host, first));
            }
            _ => {}
        }
    }

    /// What of it is inside a region, in a run that ends at `until`.
    pub(crate) fn part_of(&self, inside: &Arc<Inside>, host: HostId, until: Time) -> Self {
        let mut work = self.clone();
        work.drop_programs(inside, host, 0);
        let sides = self.sides(inside, host, 0);
        if !sides.inside && !work.is_program() {
            return HostWork::default();
        }
        if sides.outside {
            let inside = Arc::clone(inside);
            work.part = Some(Box::new(Part { inside, host, until, skipped: 0 }));
        }
        work
    }
}
