//! The next in turn.

use netloom_units::recurrence::Walk;
use netloom_units::{Invalid, greatest_common_divisor};
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{
    Choice, Digits, Facts, NicTags, PathSet, Places, PortSelector, Query, SelectorConfig, Signals,
    SwitchContext,
};
use super::random::below;
use crate::header::View;
use crate::scheme::{Placement, Routing};
use rand::Rng;
use rand::seq::SliceRandom;

/// Candidates in turn. At a switch, all packets that it forwards share one turn, which starts at a random candidate. At a NIC, path labels in turn,
/// starting at a random one for each flow, like Presto's shadow MACs
/// (He et al., SIGCOMM'15): on a tree, switches read the label's digits as
/// up ports, so consecutive labels visit every path.
///
/// ACKs and other control packets take turns only with `granularity = { kind = "packet", control = true }`, as in the preset
/// `spray-round-robin`; otherwise they are hashed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoundRobin {
    /// At switches: candidates are in a random order, which is redrawn after this many rounds. csg-htsim's `ecmp_rr` has 5
    /// (`sim/datacenter/fat_tree_switch.cpp`, `FatTreeSwitch::getNextHop`), and so has the preset `spray-round-robin`. Absent: always by number, so
    /// that synchronised switches stay synchronised.
    pub reshuffle: Option<u32>,
}

/// Whose turn it is at one switch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turn {
    reshuffle: Option<u32>,
    /// Packets since the order was drawn, or from a random number on; none before the first one.
    turn: Option<u64>,
    /// After how many packets turns repeat: the least common multiple of all numbers of candidates so far.
    cycle: u64,
    /// By set of candidates, the order in which they come, if it is a random one.
    orders: FxHashMap<u32, Box<[u16]>>,
}

impl SelectorConfig for RoundRobin {
    type State = Turn;

    fn state(&self, _: SwitchContext) -> Turn {
        Turn { reshuffle: self.reshuffle, cycle: 1, ..Turn::default() }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::NicOrSwitches(NicTags::Labels),
            choice: Choice::InTurn,
            decides_control: true,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::Minimal,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        self.reshuffle.map_or(Ok(()), |rounds| Invalid::at_least("reshuffle", rounds, 1))
    }

    fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
        let rounds = self.reshuffle.filter(|_| scheme.placement == Placement::Nic);
        let expected = "nothing at the NIC, where path labels come by number;";
        rounds.map_or(Ok(()), |rounds| Err(Invalid::new("selector.reshuffle", expected, rounds)))
    }
}

impl PortSelector for Turn {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    fn pick(&mut self, query: Query<'_>, _: &mut impl View, random: &mut impl Rng) -> usize {
        let (ports, set) = (query.candidates.ports.len(), query.candidates.set);
        let Some(rounds) = self.reshuffle else {
            let turn = self.turn.map_or_else(|| below(ports, random) as u64, |turn| turn + 1);
            self.turn = Some(turn);
            if !self.cycle.is_multiple_of(ports as u64) {
                self.cycle *= ports as u64 / greatest_common_divisor(self.cycle, ports as u64);
            }
            return (turn % ports as u64) as usize;
        };
        let turn = self.turn.unwrap_or(0);
        let is_due = turn >= u64::from(rounds) * ports as u64;
        let order = self.orders.entry(set).or_default();
        if is_due || order.is_empty() {
            *order = (0..ports as u16).collect();
            order.shuffle(random);
        }
        let turn = if is_due { 0 } else { turn };
        self.turn = Some(turn + 1);
        usize::from(order[(turn % ports as u64) as usize])
    }

    // In a random order nothing recurs: it is drawn again before long.
    fn recur(&mut self, walk: &mut Walk) {
        let Turn { reshuffle, turn, cycle, orders: _ } = self;
        walk.exact(*cycle);
        let Some(turn) = turn else { return walk.exact(u64::MAX) };
        match reshuffle {
            None => {
                walk.exact(*turn % *cycle);
                walk.sum(turn);
            }
            Some(_) => walk.exact(*turn),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::header::{Candidates, Carries, Header};
    use crate::tag::Tag;
    use crate::testing::Loads;
    use netloom_units::Time;

    const PORTS: [u16; 4] = [4, 5, 6, 7];

    /// The ports of this many packets at a switch that draws from a seed.
    fn ports(reshuffle: Option<u32>, packets: usize, seed: u128) -> Vec<usize> {
        let mut state = RoundRobin { reshuffle }.state(SwitchContext { stride: 1 });
        let mut random = rand_pcg::Pcg64Mcg::new(seed);
        let header = Header {
            src: 1,
            dst: 2,
            flow: 3,
            tag: Tag::default(),
            bytes: 100,
            payload: 50,
            hops: 1,
            carries: Carries::Data,
        };
        let candidates = Candidates { ports: &PORTS, set: 0 };
        let query = Query { header: &header, candidates, hash: 0, home: 0, now: Time(0) };
        (0..packets).map(|_| state.pick(query, &mut Loads(|_| 0), &mut random)).collect()
    }

    #[test]
    fn switches_begin_at_different_ports_and_go_on_in_order() {
        let firsts: Vec<_> = (0..64)
            .map(|seed| {
                let taken = ports(None, 9, seed);
                assert!(taken.windows(2).all(|two| two[1] == (two[0] + 1) % 4), "{taken:?}");
                taken[0]
            })
            .collect();
        assert!((0..4).all(|port| firsts.contains(&port)));
    }

    #[test]
    fn every_round_takes_every_port_once_and_the_order_changes_after_as_many_rounds_as_are_asked_for() {
        let taken = ports(Some(3), 4 * 3 * 20, 1);
        let orders: Vec<_> = taken.chunks(4).collect();
        for order in &orders {
            let mut sorted = order.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2, 3]);
        }
        let intervals: Vec<_> = orders.chunks(3).collect();
        assert!(intervals.iter().all(|interval| interval[0] == interval[1] && interval[1] == interval[2]));
        assert!(intervals.windows(2).filter(|two| two[0] != two[1]).count() > 10);
    }
}
