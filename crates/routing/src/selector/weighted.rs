//! WCMP: the hash of the header picks a port in proportion to its rate.

use netloom_topology::PortId;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{
    Choice, Digits, Facts, PathSet, Places, PortSelector, Query, SelectorConfig, Signals, SwitchContext,
};
use crate::hash::hash_in_words;
use crate::header::{Header, View};
use rand::Rng;

/// Weighted-cost multi-path: hash of the header, each candidate weighted by its link's rate (as configured, also where a fault slows
/// it for a while). Zhou et al., EuroSys'14.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Weighted {}

/// The position of the candidate in whose share of the hash space `hash` falls.
#[inline]
fn pick(hash: u32, ports: &[PortId], weight: impl Fn(PortId) -> u64) -> usize {
    let total: u128 = ports.iter().map(|&port| u128::from(weight(port))).sum();
    let mut point = (u128::from(hash) * total) >> 32;
    for (place, &port) in ports.iter().enumerate() {
        let share = u128::from(weight(port));
        if point < share {
            return place;
        }
        point -= share;
    }
    ports.len() - 1
}

/// The hash says the port.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ByShare;

impl SelectorConfig for Weighted {
    type State = ByShare;

    fn state(&self, _: SwitchContext) -> ByShare {
        ByShare
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::Switches,
            choice: Choice::Static,
            decides_control: false,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::Minimal,
        }
    }
}

impl PortSelector for ByShare {
    #[inline]
    fn pick(&mut self, query: Query<'_>, view: &mut impl View, _: &mut impl Rng) -> usize {
        pick(query.hash, query.candidates.ports, |port| view.rate(port))
    }

    fn words(&self, header: &Header, _: usize) -> Option<String> {
        Some(format!("{}, weighted by link rates", hash_in_words(header)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_of_three_times_the_rate_gets_three_times_the_flows() {
        let weight = |port| if port == 7 { 300 } else { 100 };
        let fast = (0..4096u32).filter(|i| pick(i << 20, &[7, 8], weight) == 0).count();
        assert_eq!(fast, 3072);
    }
}
