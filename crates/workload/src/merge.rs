//! Several works at one host, each with groups of its own.

use netloom_units::Time;

use crate::plan::{HostWork, Message};
use crate::program::{Action, RankWork};

/// Several works of one host, in one order of time.
#[derive(Clone, Debug)]
pub(crate) struct Merge {
    parts: Box<[Part]>,
}

#[derive(Clone, Debug)]
struct Part {
    work: HostWork,
    /// The next message of the work that starts by the clock.
    upcoming: Option<Message>,
    /// The number that the work's group 0 has in the plan.
    first_group: u16,
}

impl Part {
    /// A message of the work as the plan numbers its group.
    fn numbered(&self, message: Message) -> Message {
        Message { group: self.first_group + message.group, ..message }
    }
}

impl Merge {
    /// Joins works, each with the number of its first group, in ascending order of these.
    pub(crate) fn new(works: Vec<(u16, HostWork)>) -> Self {
        let part = |(first_group, mut work): (u16, HostWork)| {
            let upcoming = work.next_timed();
            Part { work, upcoming, first_group }
        };
        Merge { parts: works.into_iter().map(part).collect() }
    }

    /// The next message by the clock; among those of one instant, in the order of the works.
    pub(crate) fn next_timed(&mut self) -> Option<Message> {
        let start = |part: &&mut Part| part.upcoming.map_or(Time::MAX, |message| message.start);
        let soonest = self.parts.iter_mut().filter(|part| part.upcoming.is_some()).min_by_key(start)?;
        let message = std::mem::replace(&mut soonest.upcoming, soonest.work.next_timed())?;
        Some(soonest.numbered(message))
    }

    /// The message that follows one of `group`: the work whose group it is goes on.
    pub(crate) fn next_closed(&mut self, now: Time, group: u16) -> Option<Message> {
        let owner = self.parts.iter_mut().rfind(|part| part.first_group <= group)?;
        let message = owner.work.next_closed(now, group - owner.first_group)?;
        Some(owner.numbered(message))
    }

    /// The work, if it is the only one, and starts nothing by the clock.
    pub(crate) fn only(&self) -> Option<&HostWork> {
        if let [Part { work, upcoming: None, .. }] = &*self.parts { Some(work) } else { None }
    }

    /// The same.
    pub(crate) fn only_mut(&mut self) -> Option<&mut HostWork> {
        if let [Part { work, upcoming: None, .. }] = &mut *self.parts { Some(work) } else { None }
    }

    /// The works, one after the other.
    pub(crate) fn works(&self) -> impl Iterator<Item = &HostWork> {
        self.parts.iter().map(|part| &part.work)
    }

    /// The works, each with the number that its group 0 has in the plan, and the message that it starts next by the clock as the plan numbers its group.
    pub(crate) fn parts(&self) -> impl Iterator<Item = (u16, &HostWork, Option<Message>)> {
        let upcoming = |part: &Part| part.upcoming.map(|message| part.numbered(message));
        self.parts.iter().map(move |part| (part.first_group, &part.work, upcoming(part)))
    }

    /// The works, each with the number that its group 0 has in the plan.
    pub(crate) fn parts_mut(&mut self) -> impl Iterator<Item = (u16, &mut HostWork)> {
        self.parts.iter_mut().map(|part| (part.first_group, &mut part.work))
    }

    /// The works, one after the other.
    pub(crate) fn works_mut(&mut self) -> impl Iterator<Item = &mut HostWork> {
        self.parts.iter_mut().map(|part| &mut part.work)
    }

    /// Calls the programs among the works; their messages get the groups of the plan.
    pub(crate) fn call(&mut self, actions: &mut Vec<Action>, call: &dyn Fn(&mut RankWork, &mut Vec<Action>)) {
        for part in &mut self.parts {
            let before = actions.len();
            part.work.call(actions, call);
            for action in &mut actions[before..] {
                if let Action::Send { group, .. } = action {
                    *group += part.first_group;
                }
            }
        }
    }
}
