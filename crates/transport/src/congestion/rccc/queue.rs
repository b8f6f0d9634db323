//! Whom a receiver's port grants credit to, and how much.

use std::collections::VecDeque;

use netloom_units::memory::push_few;

use super::Rccc;

/// The senders of one port, each by the number of its receiver there.
#[derive(Clone, Debug, Default)]
pub struct CreditQueue {
    receivers: Vec<Credit>,
    /// Those that ask for more than they were granted, or lost something, in turn.
    active: VecDeque<u32>,
    /// Those that may be granted more than they ask for, in turn.
    idle: VecDeque<u32>,
}

/// What the receiver of one flow knows. Numbers count quanta from the flow's beginning, and go round.
#[derive(Clone, Copy, Debug, Default)]
struct Credit {
    /// Granted.
    pulled: u32,
    /// The highest pull target that has come.
    target: u32,
    /// How far slow pulls may run ahead of it.
    ahead: u32,
    is_active: bool,
    is_idle: bool,
}

impl Credit {
    /// Asked for and not granted.
    fn lacks(&self) -> u32 {
        self.target.wrapping_sub(self.pulled).cast_signed().max(0).cast_unsigned()
    }

    /// Granted and not asked for.
    fn ahead_by(&self) -> u32 {
        self.pulled.wrapping_sub(self.target).cast_signed().max(0).cast_unsigned()
    }
}

/// A PULL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Whose sender gets it.
    pub receiver: u32,
    /// How far that has been granted with it.
    pub pulled: u32,
    /// What it grants.
    pub quanta: u32,
}

impl CreditQueue {
    /// Whether no sender is to get a PULL.
    pub fn is_empty(&self) -> bool {
        self.active.is_empty() && self.idle.is_empty()
    }

    /// A packet, or what is left of one, has come with a pull target. Where it `repeats`, as something was lost, its sender is to get a PULL in any case. A receiver that is new may be
    /// granted as many quanta `ahead`.
    pub fn on_target(&mut self, receiver: u32, target: u32, repeats: bool, ahead: impl FnOnce() -> u32) {
        let index = receiver as usize;
        while index >= self.receivers.len() {
            push_few(&mut self.receivers, Credit::default());
        }
        let credit = &mut self.receivers[index];
        if credit.ahead == 0 {
            // At least one: a number that says that it is known.
            credit.ahead = ahead().max(1);
        }
        let is_news = target.wrapping_sub(credit.target).cast_signed() > 0;
        if is_news {
            credit.target = target;
        }
        if (is_news || repeats) && !credit.is_active {
            credit.is_active = true;
            self.active.push_back(receiver);
        }
    }

    /// The next PULL, if any sender is to get one.
    pub fn next(&mut self, config: &Rccc) -> Option<Grant> {
        let most = config.quanta_per_pull();
        if let Some(receiver) = self.active.pop_front() {
            let credit = &mut self.receivers[receiver as usize];
            let quanta = credit.lacks().min(most);
            credit.pulled = credit.pulled.wrapping_add(quanta);
            credit.is_active = credit.lacks() > 0;
            if credit.is_active {
                self.active.push_back(receiver);
            } else if !credit.is_idle {
                credit.is_idle = true;
                self.idle.push_back(receiver);
            }
            return Some(Grant { receiver, pulled: credit.pulled, quanta });
        }
        let receiver = self.idle.pop_front()?;
        let credit = &mut self.receivers[receiver as usize];
        credit.pulled = credit.pulled.wrapping_add(most);
        credit.is_idle = credit.lacks() == 0 && credit.ahead_by() < credit.ahead;
        if credit.is_idle {
            self.idle.push_back(receiver);
        }
        Some(Grant { receiver, pulled: credit.pulled, quanta: most })
    }

    /// Everything has come for a receiver; its number may be given to another flow.
    pub fn clear(&mut self, receiver: u32) {
        let Some(credit) = self.receivers.get_mut(receiver as usize) else { return };
        let Credit { is_active, is_idle, .. } = std::mem::take(credit);
        for (is_there, list) in [(is_active, &mut self.active), (is_idle, &mut self.idle)] {
            if is_there && let Some(place) = list.iter().position(|&other| other == receiver) {
                list.remove(place);
            }
        }
    }
}
