//! The pace of PULLs where not the receiver's link is what is full.

use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Congestion control of a receiver's port in a network whose core carries less than its edge (uet-htsim, `oversubscribed_cc.cpp`). Now and then, on average after 1.5 round-trip times, it looks at
/// what has arrived since: packets trimmed before the last hop are taken from the pace as a share of all; if the average share of marked packets is above `target`, the pace loses `decrease` of the
/// excess; else it grows by `increase`, doubled each time in a row in which nothing was marked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Oversubscribed {
    /// How many times more the hosts can send than the core carries: the pace is never below 0.9 of its inverse, or 0.01.
    pub ratio: f64,
    /// Share of marked packets that is left alone (uet-htsim: 0.3).
    pub target: f64,
    /// What the pace grows by, as a share of the link (uet-htsim: `-Ai` 0.01).
    pub increase: f64,
    /// What it loses of the excess over the target (uet-htsim: `-Md` 0.5).
    pub decrease: f64,
    /// Weight of the newest share in the average (uet-htsim: `-alpha` 0.5).
    pub weight: f64,
}

impl Default for Oversubscribed {
    fn default() -> Self {
        Oversubscribed { ratio: 4.0, target: 0.3, increase: 0.01, decrease: 0.5, weight: 0.5 }
    }
}

/// The pace never falls below this share of the link.
const LEAST: f64 = 0.01;

/// How much of its fair share a receiver keeps at least.
const OF_FAIR: f64 = 0.9;

/// More doublings change nothing: the pace is then that of the link, whatever it was.
const MOST_DOUBLINGS: i32 = 64;

/// Round-trip times between two looks, on average.
const ROUND_TRIPS: f64 = 1.5;

impl Oversubscribed {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        let is_ratio = self.ratio >= 1.0 && self.ratio.is_finite();
        Invalid::unless(is_ratio, "ratio", "a number of at least 1", self.ratio)?;
        for (field, share) in
            [("target", self.target), ("increase", self.increase), ("decrease", self.decrease)]
        {
            Invalid::unless((0.0..=1.0).contains(&share), field, "0 to 1", share)?;
        }
        let is_weight = self.weight > 0.0 && self.weight <= 1.0;
        Invalid::unless(is_weight, "weight", "above 0, at most 1", self.weight)
    }

    fn least(&self) -> f64 {
        (OF_FAIR / self.ratio).max(LEAST)
    }
}

/// The pace of one receiver's port, and what has arrived there since it last changed.
#[derive(Clone, Debug)]
pub struct ReceiverRate {
    rate: f64,
    /// Average share of marked packets.
    marked: f64,
    /// Looks in a row after which the pace grew.
    growths: i32,
    due: Time,
    packets: u32,
    marks: u32,
    /// Headers of what was trimmed, at the last hop and before.
    trims_last: u32,
    trims_before: u32,
}

impl ReceiverRate {
    /// The whole link's, of a port at which something arrives for the first time.
    pub fn new(now: Time) -> Self {
        ReceiverRate {
            rate: 1.0,
            marked: 0.0,
            growths: 0,
            due: now,
            packets: 0,
            marks: 0,
            trims_last: 0,
            trims_before: 0,
        }
    }

    /// The pace as a share of the link.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// A data packet has come, or its header.
    pub fn on_arrival(&mut self, is_header: bool, is_marked: bool, at_last_hop: bool) {
        self.packets += 1;
        match (is_header, at_last_hop) {
            (false, _) => self.marks += u32::from(is_marked),
            (true, true) => self.trims_last += 1,
            (true, false) => self.trims_before += 1,
        }
    }

    /// Looks at what has arrived, as often as it is due by `now`. `rtt` gives the round-trip time, and is asked only then; `drawn` gives numbers from 0 to 1.
    pub fn advance(
        &mut self,
        config: &Oversubscribed,
        now: Time,
        rtt: impl FnOnce() -> Time,
        mut drawn: impl FnMut() -> f64,
    ) {
        if self.due > now {
            return;
        }
        let rtt = rtt();
        while self.due <= now {
            self.look(config);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "positive; saturates"
            )]
            let interval = ((0.75 + drawn() / 2.0) * ROUND_TRIPS * rtt.0 as f64) as u64;
            self.due = self.due.saturating_add(Time(interval.max(1)));
        }
    }

    fn look(&mut self, config: &Oversubscribed) {
        let (all, whole) = (self.packets, self.packets - self.trims_last - self.trims_before);
        let share = if whole > 0 { f64::from(self.marks) / f64::from(whole) } else { 0.0 };
        let mut falls = false;
        if self.trims_before > 0 {
            self.rate -= f64::from(self.trims_before) / f64::from(all);
            falls = true;
        }
        self.marked = self.marked * (1.0 - config.weight) + config.weight * share;
        if self.marked > config.target && config.decrease > 0.0 {
            self.rate *= 1.0 - (self.marked - config.target) * config.decrease;
            falls = true;
        }
        if falls {
            self.growths = 0;
        } else {
            let doubled = if self.marks == 0 { 2f64.powi(self.growths) } else { 1.0 };
            self.rate += config.increase * doubled;
            self.growths = (self.growths + 1).min(MOST_DOUBLINGS);
        }
        self.rate = self.rate.clamp(config.least(), 1.0);
        (self.packets, self.marks, self.trims_last, self.trims_before) = (0, 0, 0, 0);
    }
}
