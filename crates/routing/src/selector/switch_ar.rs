//! Switch AR: a destination's traffic leaves a port when a congestion notification says so.

use netloom_units::{Invalid, Time};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::congestion::{Marks, PerDestination, Rule, Severity, Uncongested};
use super::kind::{Facts, PortContext, PortSelector, Query, SelectorConfig, SwitchContext};
use crate::header::{Notice, View};

/// Adaptive routing by congestion notifications of 802.1Qau (QCN), those that a switch generates and those that pass it. Each marks a port
/// as congested for a destination. Packets take the least congested usable port for their destination, an unmarked one before any other.
/// Notifications themselves take a random up port at every switch, so that switches on all alternative paths learn. The choice changes only
/// with the marks, so all traffic to a destination moves at once. Crisan, Gusat, Minkenberg, "Comparative Evaluation of CEE-based Switch
/// Adaptive Routing"; what it leaves open is an option here. Needs QCN.
///
/// Without any notification, packets take the `uncongested` choice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SwitchAr {
    /// How notifications of the same destination and port add up: `last`, `max`, `sum`, or `weighted-sum`, in which the n-th counts n
    /// times. The paper says only that severity accumulates; with `last` and `max`, which forget or keep the worst, traffic settles on some
    /// port instead of oscillating as it reports.
    pub severity: Severity,
    /// Whether a mark made by this switch's own queue replaces marks learnt from others and is not changed by them.
    pub local_overrides: bool,
    /// Time after the last notification at which a mark is forgotten (the paper's AR timer).
    pub ageing: Time,
    /// Which of several equally congested ports: the one in use (`current`), which traffic then does not leave when the mark that
    /// moved it there is forgotten, or the first (`lowest`), with which it goes back to its uncongested choice.
    pub tie: Tie,
    /// The port before any notification: that of D-mod-k (`d-mod-k`, on trees), the first (`lowest`), or by the header's hash (`hash`).
    pub uncongested: Uncongested,
}

/// Which of several equally congested ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Tie {
    /// The one in use, if it is one of them; else the first.
    Current,
    /// The first; the uncongested choice while no port is marked.
    Lowest,
}

impl Default for SwitchAr {
    fn default() -> Self {
        SwitchAr {
            severity: Severity::WeightedSum,
            local_overrides: true,
            ageing: Time::from_ms(250),
            tie: Tie::Current,
            uncongested: Uncongested::DModK,
        }
    }
}

impl SelectorConfig for SwitchAr {
    type State = State;

    fn state(&self, _: SwitchContext) -> State {
        State { config: self.clone(), rows: PerDestination::default() }
    }

    fn facts(&self) -> Facts<'_> {
        self.uncongested.facts()
    }

    fn check(&self) -> Result<(), Invalid> {
        check_ageing(self.ageing)
    }
}

impl SwitchAr {
    fn rule(&self) -> Rule {
        Rule { severity: self.severity, local_overrides: self.local_overrides, ageing: self.ageing }
    }

    /// The position of the port to take; `home` is that of the packet's uncongested choice.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    fn pick(&self, marks: &mut Marks, home: usize, now: Time) -> usize {
        match self.tie {
            Tie::Current => {
                let (best, least) = marks.best(now);
                let current = marks.moved_to.map_or(home, usize::from);
                if marks.level(current, now) == least {
                    return current;
                }
                marks.moved_to = Some(best as u16);
                best
            }
            Tie::Lowest if marks.is_clear(now) => home,
            Tie::Lowest => marks.best(now).0,
        }
    }
}

pub(super) fn check_ageing(ageing: Time) -> Result<(), Invalid> {
    Invalid::unless(ageing > Time::ZERO, "ageing", "more than 0", ageing)
}

/// What one switch has learnt.
#[derive(Clone, Debug)]
pub(crate) struct State {
    config: SwitchAr,
    rows: PerDestination<Marks>,
}

impl PortSelector for State {
    #[inline]
    fn pick(&mut self, query: Query<'_>, _: &mut impl View, _: &mut impl Rng) -> usize {
        let Query { header, home, now, .. } = query;
        self.rows.get_mut(header.dst).map_or(home, |row| self.config.pick(row, home, now))
    }

    fn notice(&mut self, notice: &Notice, context: PortContext) {
        let row = self.rows.get_or_insert_with(notice.destination, || Marks::new(context.ports));
        row.add(&self.config.rule(), context.place, notice, context.now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn notice(feedback: u8) -> Notice {
        Notice { destination: 0, port: 0, feedback, is_local: false }
    }

    #[test]
    fn traffic_takes_unmarked_ports_first_and_then_the_least_severe() {
        let config = SwitchAr { severity: Severity::Last, ..SwitchAr::default() };
        let (mut marks, now) = (Marks::new(3), Time::from_us(5));
        let mut mark = |place, feedback| {
            marks.add(&config.rule(), place, &notice(feedback), now);
            config.pick(&mut marks, 1, now)
        };
        assert_eq!(mark(0, 50), 1, "the path in use is not concerned");
        assert_eq!(mark(1, 20), 2);
        assert_eq!(mark(2, 30), 1);
        assert_eq!(mark(1, 40), 2);
        assert_eq!(mark(2, 50), 1);
        assert_eq!(mark(1, 50), 1, "as congested as the others: no reason to move");
    }

    #[test]
    fn forgotten_marks_bring_traffic_back_only_with_the_lowest_tie() {
        let now = Time::from_us(5);
        let after = now + SwitchAr::default().ageing;
        for (tie, expected) in [(Tie::Current, 0), (Tie::Lowest, 2)] {
            let config = SwitchAr { tie, ..SwitchAr::default() };
            let mut marks = Marks::new(3);
            marks.add(&config.rule(), 2, &notice(9), now);
            assert_eq!(config.pick(&mut marks, 2, now), 0);
            assert_eq!(config.pick(&mut marks, 2, after), expected, "{tie:?}");
        }
    }
}
