//! Switch AR with hysteresis: a destination's traffic moves at most once per hold time, and only if it is worth while.

use netloom_units::{Invalid, Time};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::{Marks, PerDestination, Rule, Severity, Uncongested};
use super::kind::{Facts, PortContext, PortSelector, Query, SelectorConfig, SwitchContext};
use super::switch_ar::check_ageing;
use crate::header::{Notice, View};

/// Switch AR, stabilised: after traffic to a destination was moved it stays for `hold`, and then moves again only to a port whose
/// level of congestion is less by `margin` or more. Our reading of the stabilised Switch AR that Crisan, Gusat and
/// Minkenberg name as future work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchArStable {
    /// Time for which traffic stays where it was moved. Should not exceed the time in which a port's buffer fills: behind a full
    /// one, traffic stands still, and all full buffers look alike.
    pub hold: Time,
    /// By how much less congested another port must be, in units of feedback (1 to 63 under `last` and `max`).
    pub margin: u32,
    /// How notifications of the same destination and port add up: `last`, `max`, `sum` or `weighted-sum`, as in `switch-ar`.
    pub severity: Severity,
    /// Whether a mark made by this switch's own queue replaces marks learnt from others and is not changed by them.
    pub local_overrides: bool,
    /// Time after the last notification at which a mark is forgotten.
    pub ageing: Time,
    /// The port before any notification: `d-mod-k` (on trees), `lowest` or `hash`.
    pub uncongested: Uncongested,
}

impl Default for SwitchArStable {
    fn default() -> Self {
        SwitchArStable {
            hold: Time::from_us(250),
            margin: 4,
            severity: Severity::Last,
            local_overrides: true,
            ageing: Time::from_ms(250),
            uncongested: Uncongested::DModK,
        }
    }
}

/// One destination's marks, and until when its traffic stays where it is.
#[derive(Clone, Debug)]
struct Held {
    marks: Marks,
    until: Time,
}

impl Held {
    /// No mark on any of `ports` ports.
    fn new(ports: usize) -> Self {
        Held { marks: Marks::new(ports), until: Time::ZERO }
    }
}

impl SelectorConfig for SwitchArStable {
    type State = State;

    fn state(&self, _: SwitchContext) -> State {
        State { config: self.clone(), rows: PerDestination::default() }
    }

    fn facts(&self) -> Facts<'_> {
        self.uncongested.facts()
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("margin", self.margin, 1)?;
        check_ageing(self.ageing)
    }
}

impl SwitchArStable {
    fn rule(&self) -> Rule {
        Rule { severity: self.severity, local_overrides: self.local_overrides, ageing: self.ageing }
    }

    /// The position of the port to take; `home` is that of the packet's uncongested choice.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    fn pick(&self, held: &mut Held, home: usize, now: Time) -> usize {
        let Held { marks, until } = held;
        let current = marks.moved_to.map_or(home, usize::from);
        if now < *until {
            return current;
        }
        let (best, least) = marks.best(now);
        if marks.level(current, now) < least.saturating_add(self.margin) {
            return current;
        }
        marks.moved_to = Some(best as u16);
        *until = now + self.hold;
        best
    }
}

/// What one switch has learnt.
#[derive(Clone, Debug)]
pub(crate) struct State {
    config: SwitchArStable,
    rows: PerDestination<Held>,
}

impl PortSelector for State {
    #[inline]
    fn pick(&mut self, query: Query<'_>, _: &mut impl View, _: &mut impl Rng) -> usize {
        let Query { header, home, now, .. } = query;
        self.rows.get_mut(header.dst).map_or(home, |row| self.config.pick(row, home, now))
    }

    fn notice(&mut self, notice: &Notice, context: PortContext) {
        let row = self.rows.get_or_insert_with(notice.destination, || Held::new(context.ports));
        row.marks.add(&self.config.rule(), context.place, notice, context.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traffic_moves_once_per_hold_time_and_only_for_the_margin() {
        let config = SwitchArStable { hold: Time(100), margin: 10, ..SwitchArStable::default() };
        let mut held = Held::new(2);
        let mut at = |now, place, feedback| {
            let notice = Notice { destination: 0, port: 0, feedback, is_local: false };
            held.marks.add(&config.rule(), place, &notice, Time(now));
            config.pick(&mut held, 0, Time(now))
        };
        assert_eq!(at(0, 0, 9), 0, "less than the margin");
        assert_eq!(at(1, 0, 10), 1);
        assert_eq!(at(2, 1, 60), 1, "held");
        assert_eq!(at(100, 1, 60), 1, "held");
        assert_eq!(at(101, 1, 19), 1, "9 better is less than the margin");
        assert_eq!(at(102, 1, 20), 0);
    }
}
