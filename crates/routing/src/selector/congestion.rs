//! What congestion notifications taught a switch: the state behind the three kinds of Switch AR.
//!
//! A congestion point sends a notification (802.1Qau: CNM) to the source of a frame it sampled. On its way back the notification
//! passes switches; each of them learns that the path to the frame's destination through the port on which the notification
//! came in is congested downstream. The switch that made it learns the same of its own output queue.

use netloom_topology::HostId;
use netloom_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Choice, Digits, Facts, PathSet, Places, Signals};
use crate::header::Notice;

/// The feedback that stands for the greatest congestion, plus one: 802.1Qau quantises to 6 bits.
pub(crate) const FULL_SCALE: u64 = 64;

/// How the notifications of one (destination, port) add up to its level of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The last feedback.
    Last,
    /// The greatest feedback since the mark was made.
    Max,
    /// The sum of the feedback since the mark was made.
    Sum,
    /// As the sum, the n-th notification counting n times: lasting congestion soon outweighs any other.
    WeightedSum,
}

/// The port that a destination's traffic takes while the switch knows of no congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Uncongested {
    /// The one of D-mod-k; on trees only.
    DModK,
    /// The first usable port.
    Lowest,
    /// The hash of the header, so each flow has its own.
    Hash,
}

impl Uncongested {
    /// What the kinds of Switch AR declare that take this port.
    pub(crate) fn facts<'a>(self) -> Facts<'a> {
        Facts {
            places: Places::Switches,
            choice: Choice::Adaptive,
            decides_control: false,
            digits: if self == Uncongested::DModK { Digits::Host } else { Digits::None },
            reads_hash: true,
            signals: Signals { notices: Some(self), ..Signals::NONE },
            paths: PathSet::Minimal,
        }
    }
}

/// How marks are made and forgotten.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) severity: Severity,
    pub(crate) local_overrides: bool,
    pub(crate) ageing: Time,
}

/// What is known of one usable port towards one destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    severity: u32,
    /// Notifications that made it up.
    count: u32,
    is_local: bool,
    /// It counts before this time only, so that forgetting needs no timer.
    expires: Time,
}

impl Mark {
    pub(crate) fn add(&mut self, rule: &Rule, feedback: u8, is_local: bool, now: Time) {
        let outranks = rule.local_overrides && is_local && !self.is_local;
        if now >= self.expires || outranks {
            *self = Mark { is_local, ..Mark::default() };
        } else if rule.local_overrides && self.is_local && !is_local {
            return;
        }
        let feedback = u32::from(feedback);
        self.count = self.count.saturating_add(1);
        self.severity = match rule.severity {
            Severity::Last => feedback,
            Severity::Max => self.severity.max(feedback),
            Severity::Sum => self.severity.saturating_add(feedback),
            Severity::WeightedSum => self.severity.saturating_add(self.count.saturating_mul(feedback)),
        };
        self.is_local |= is_local;
        self.expires = now + rule.ageing;
    }

    /// 0 without congestion, else 1 or more.
    #[inline]
    pub(crate) fn level(&self, now: Time) -> u32 {
        if now < self.expires { self.severity } else { 0 }
    }
}

/// One destination's part of the congestion table: a mark per usable port, and where its traffic was moved.
#[derive(Clone, Debug)]
pub(crate) struct Marks {
    marks: Box<[Mark]>,
    /// The position of the port to which traffic was moved away from its uncongested choice.
    pub(crate) moved_to: Option<u16>,
}

impl Marks {
    /// No mark on any of `ports` ports.
    pub(crate) fn new(ports: usize) -> Self {
        Marks { marks: vec![Mark::default(); ports].into(), moved_to: None }
    }

    pub(crate) fn add(&mut self, rule: &Rule, place: usize, notice: &Notice, now: Time) {
        self.marks[place].add(rule, notice.feedback, notice.is_local, now);
    }

    pub(crate) fn level(&self, place: usize, now: Time) -> u32 {
        self.marks[place].level(now)
    }

    /// The least congested port, the lowest of several, and its level.
    pub(crate) fn best(&self, now: Time) -> (usize, u32) {
        let levels = self.marks.iter().map(|mark| mark.level(now)).enumerate();
        levels.min_by_key(|&(place, level)| (level, place)).expect("a destination has a port")
    }

    pub(crate) fn is_clear(&self, now: Time) -> bool {
        self.marks.iter().all(|mark| mark.level(now) == 0)
    }
}

/// Rows by destination. A destination of which nothing is known costs four bytes once anything is known of a later one, and one look-up.
#[derive(Clone, Debug)]
pub(crate) struct PerDestination<T> {
    /// One plus the place in `rows`; 0: none.
    row_of: Vec<u32>,
    rows: Vec<T>,
}

impl<T> Default for PerDestination<T> {
    fn default() -> Self {
        PerDestination { row_of: Vec::new(), rows: Vec::new() }
    }
}

impl<T> PerDestination<T> {
    #[inline]
    pub(crate) fn get_mut(&mut self, destination: HostId) -> Option<&mut T> {
        let row = *self.row_of.get(destination as usize)?;
        self.rows.get_mut((row as usize).wrapping_sub(1))
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "at most one row for each host, and hosts have numbers of 32 bits"
    )]
    pub(crate) fn get_or_insert_with(&mut self, destination: HostId, new: impl FnOnce() -> T) -> &mut T {
        let place = destination as usize;
        if self.row_of.len() <= place {
            self.row_of.resize(place + 1, 0);
        }
        if self.row_of[place] == 0 {
            self.rows.push(new());
            self.row_of[place] = self.rows.len() as u32;
        }
        &mut self.rows[self.row_of[place] as usize - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(severity: Severity, local_overrides: bool, notices: &[(u8, bool)]) -> Vec<u32> {
        let rule = Rule { severity, local_overrides, ageing: Time::from_ms(250) };
        let mut mark = Mark::default();
        let add = |&(feedback, is_local)| {
            mark.add(&rule, feedback, is_local, Time::from_us(1));
            mark.level(Time::from_us(2))
        };
        notices.iter().map(add).collect()
    }

    #[test]
    fn severity_adds_up_by_its_rule() {
        let remote = [(9, false), (40, false), (12, false)];
        assert_eq!(levels(Severity::Last, true, &remote), [9, 40, 12]);
        assert_eq!(levels(Severity::Max, true, &remote), [9, 40, 40]);
        assert_eq!(levels(Severity::Sum, true, &remote), [9, 49, 61]);
        assert_eq!(levels(Severity::WeightedSum, true, &remote), [9, 9 + 2 * 40, 9 + 2 * 40 + 3 * 12]);
    }

    #[test]
    fn a_local_mark_overrides_remote_ones() {
        let mixed = [(60, false), (5, true), (60, false), (3, true)];
        assert_eq!(levels(Severity::Sum, true, &mixed), [60, 5, 5, 8]);
        assert_eq!(levels(Severity::Sum, false, &mixed), [60, 65, 125, 128]);
    }

    #[test]
    fn a_mark_is_forgotten_after_its_time_and_every_notification_renews_it() {
        let rule = Rule { severity: Severity::Sum, local_overrides: true, ageing: Time(100) };
        let mut mark = Mark::default();
        mark.add(&rule, 7, false, Time(0));
        assert_eq!((mark.level(Time(99)), mark.level(Time(100))), (7, 0));
        mark.add(&rule, 7, false, Time(60));
        assert_eq!((mark.level(Time(159)), mark.level(Time(160))), (14, 0));
        mark.add(&rule, 3, false, Time(160));
        assert_eq!(mark.level(Time(161)), 3);
    }

    #[test]
    fn rows_are_kept_apart() {
        let mut rows = PerDestination::default();
        assert_eq!(rows.get_mut(3), None);
        *rows.get_or_insert_with(5, || 0) += 50;
        *rows.get_or_insert_with(2, || 0) += 20;
        *rows.get_or_insert_with(5, || 0) += 1;
        assert_eq!(
            (0..7).map(|host| rows.get_mut(host).copied()).collect::<Vec<_>>(),
            [None, None, Some(20), None, None, Some(51), None]
        );
    }
}
