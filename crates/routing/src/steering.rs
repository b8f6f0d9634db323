//! The three kinds of Switch AR at work in a switch: notifications in, ports out.

use netloom_topology::PortId;
use netloom_units::Time;

use crate::Selector;
use crate::selector::congestion::{Marks, Notice, PerDestination, Uncongested};
use crate::selector::switch_ar_fractional::Shares;
use crate::selector::switch_ar_stable::Held;
use crate::switch::Header;

/// What a switch has learnt, per destination. Costs nothing before the first notification.
#[derive(Clone, Debug, Default)]
pub(crate) enum Steering {
    /// The scheme listens to no notifications, or none came yet.
    #[default]
    Nothing,
    /// Of `switch-ar`.
    Marks(PerDestination<Marks>),
    /// Of `switch-ar-fractional`.
    Shares(PerDestination<Shares>),
    /// Of `switch-ar-stable`.
    Held(PerDestination<Held>),
}

impl Steering {
    /// Takes a notification in. One about a port that traffic to the destination cannot take teaches nothing. `home` is the position of
    /// the destination's uncongested choice, if all its packets have the same.
    pub(crate) fn notice(
        &mut self,
        selector: &Selector,
        notice: &Notice,
        candidates: &[PortId],
        home: Option<usize>,
        now: Time,
    ) {
        let usable = candidates.iter().position(|&port| port == notice.port);
        let Some(place) = usable.filter(|_| notice.feedback > 0) else { return };
        if matches!(self, Steering::Nothing) {
            *self = match selector {
                Selector::SwitchAr(_) => Steering::Marks(PerDestination::default()),
                Selector::SwitchArFractional(_) => Steering::Shares(PerDestination::default()),
                Selector::SwitchArStable(_) => Steering::Held(PerDestination::default()),
                _ => return,
            };
        }
        let (host, ports) = (notice.destination, candidates.len());
        match (self, selector) {
            (Steering::Marks(rows), Selector::SwitchAr(config)) => {
                let marks = rows.get_or_insert_with(host, || Marks::new(ports));
                marks.add(&config.rule(), place, notice, now);
            }
            (Steering::Shares(rows), Selector::SwitchArFractional(config)) => {
                let shares = rows.get_or_insert_with(host, || Shares::new(ports, home));
                config.add(shares, place, notice.feedback, now);
            }
            (Steering::Held(rows), Selector::SwitchArStable(config)) => {
                let held = rows.get_or_insert_with(host, || Held::new(ports));
                held.marks.add(&config.rule(), place, notice, now);
            }
            _ => {}
        }
    }

    /// The position of the port for a packet; `home` is that of its uncongested choice.
    #[inline]
    pub(crate) fn pick(&mut self, selector: &Selector, header: &Header, home: usize, now: Time) -> usize {
        match (self, selector) {
            (Steering::Marks(rows), Selector::SwitchAr(config)) => {
                rows.get_mut(header.dst).map_or(home, |marks| config.pick(marks, home, now))
            }
            (Steering::Shares(rows), Selector::SwitchArFractional(config)) => {
                rows.get_mut(header.dst).map_or(home, |shares| config.pick(shares, home, header.bytes, now))
            }
            (Steering::Held(rows), Selector::SwitchArStable(config)) => {
                rows.get_mut(header.dst).map_or(home, |held| config.pick(held, home, now))
            }
            _ => home,
        }
    }
}

impl Selector {
    /// The port that a kind of Switch AR takes without congestion; none for other selectors.
    pub fn uncongested(&self) -> Option<Uncongested> {
        match self {
            Selector::SwitchAr(config) => Some(config.uncongested),
            Selector::SwitchArFractional(config) => Some(config.uncongested),
            Selector::SwitchArStable(config) => Some(config.uncongested),
            _ => None,
        }
    }
}
