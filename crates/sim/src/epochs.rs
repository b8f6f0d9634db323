//! Routes that follow faults.
//!
//! When links are cut and repaired is known before a run, and so is when routing learns of it. So the routes of every interval between two such
//! moments, an *epoch*, are built before the run, and switches and hosts look up those of now: all change at the same instant, and packets
//! that are under way then go on by the new ones from the next switch.

use std::collections::BTreeMap;

use netloom_routing::{Forwarding, Routing};
use netloom_topology::{LinkId, Network};
use netloom_units::{Invalid, Time};

/// The routes of a run after those that it begins by. Empty in nearly all runs.
#[derive(Debug, Default)]
pub(crate) struct Epochs {
    /// From when, in order of time, and which of `forwardings`; none: those by which the run begins.
    begin: Vec<(Time, Option<usize>)>,
    forwardings: Vec<Forwarding>,
}

/// An interval in which routes do without some links.
#[derive(Clone, Debug)]
pub(crate) struct Withdrawal {
    /// Which fault of the list, from 0.
    pub(crate) fault: usize,
    pub(crate) links: Vec<LinkId>,
    pub(crate) from: Time,
    pub(crate) until: Time,
}

/// The largest route tables that a run lays: 8 GiB.
const LIMIT: u64 = 8 << 30;

impl Epochs {
    /// Lays the routes of all epochs, beside `first`, those without any withdrawal. `gone`: per link, whether it does not exist. `seed` is
    /// that of `first`.
    ///
    /// # Errors
    /// If the scheme cannot do without the links of an epoch, or the tables would be too large.
    pub(crate) fn build(
        withdrawals: &[Withdrawal],
        gone: &[bool],
        first: &Forwarding,
        (routing, network, seed): (&Routing, &Network, u64),
    ) -> Result<Self, Invalid> {
        let mut epochs = Epochs::default();
        let mut begin: Vec<Time> =
            withdrawals.iter().flat_map(|interval| [interval.from, interval.until]).collect();
        begin.retain(|&instant| instant < Time::MAX);
        begin.sort_unstable();
        begin.dedup();
        let refuse = |instant, expected: &str, found: String| {
            let is_cause = |interval: &&Withdrawal| interval.from <= instant && instant < interval.until;
            let index = withdrawals.iter().find(is_cause).map_or(0, |interval| interval.fault);
            Invalid { field: format!("{index}.reroute_after").into(), expected: expected.to_owned(), found }
        };
        let mut known: BTreeMap<Vec<bool>, Option<usize>> = BTreeMap::from([(gone.to_vec(), None)]);
        for instant in begin {
            let mut cut = gone.to_vec();
            for interval in
                withdrawals.iter().filter(|interval| interval.from <= instant && instant < interval.until)
            {
                interval.links.iter().for_each(|&link| cut[link as usize] = true);
            }
            let built = match known.get(&cut) {
                Some(&built) => built,
                None => {
                    let tables = epochs.forwardings.len() as u64 + 1;
                    let table = u64::from(first.table().edges()) * u64::from(network.switches()) * 4;
                    if tables * table > LIMIT {
                        let expected =
                            "fewer moments at which routes change (their tables take 8 GiB at most)";
                        return Err(refuse(instant, expected, format!("{tables} tables of {table} bytes")));
                    }
                    // Sets of ports keep their numbers from one to the next.
                    let before = epochs.forwardings.last().unwrap_or(first);
                    let forwarding = before
                        .rebuild(routing, network, |channel| cut[channel as usize / 2], seed)
                        .map_err(|error| {
                            let expected = "links without which the scheme can go on";
                            refuse(instant, expected, format!("from {instant} on: {error}"))
                        })?;
                    epochs.forwardings.push(forwarding);
                    known.insert(cut, Some(epochs.forwardings.len() - 1));
                    Some(epochs.forwardings.len() - 1)
                }
            };
            epochs.begin.push((instant, built));
        }
        Ok(epochs)
    }

    /// When epoch `number` begins, where 0 is the one before the first change; none if there is none.
    #[inline]
    pub(crate) fn begins(&self, number: usize) -> Option<Time> {
        number.checked_sub(1).map_or(Some(Time::ZERO), |number| self.begin.get(number).map(|&(from, _)| from))
    }

    /// The routes of epoch `number`.
    #[inline]
    pub(crate) fn forwarding<'a>(&'a self, number: usize, first: &'a Forwarding) -> &'a Forwarding {
        if number == 0 {
            return first;
        }
        self.begin[number - 1].1.map_or(first, |built| &self.forwardings[built])
    }

    /// The routes at an instant.
    #[inline]
    pub(crate) fn at<'a>(&'a self, now: Time, first: &'a Forwarding) -> &'a Forwarding {
        if self.begin.is_empty() {
            return first;
        }
        self.forwarding(self.begin.partition_point(|&(from, _)| from <= now), first)
    }

    /// When routes change next after an instant, if they do.
    pub(crate) fn next_after(&self, now: Time) -> Option<Time> {
        self.begin.get(self.begin.partition_point(|&(from, _)| from <= now)).map(|&(from, _)| from)
    }

    /// All routes of the run, each once, with the instant from which on they are first used.
    pub(crate) fn all<'a>(&'a self, first: &'a Forwarding) -> Vec<(Time, &'a Forwarding)> {
        let begins = |number: usize| self.begin.iter().find(|&&(_, built)| built == Some(number));
        let later = self.forwardings.iter().enumerate();
        let later = later.filter_map(|(number, built)| begins(number).map(|&(from, _)| (from, built)));
        [(Time::ZERO, first)].into_iter().chain(later).collect()
    }

    /// The routes after the last change.
    pub(crate) fn last<'a>(&'a self, first: &'a Forwarding) -> &'a Forwarding {
        self.forwarding(self.begin.len(), first)
    }

    /// Whether routes never change.
    pub(crate) fn is_empty(&self) -> bool {
        self.begin.is_empty()
    }
}
