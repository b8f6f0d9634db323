//! DRILL: the best of a few samples and of what was best before.

use netloom_topology::PortId;
use rand::Rng;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{
    Choice, Digits, Facts, PathSet, Places, PortSelector, Query, SelectorConfig, Signals, SwitchContext,
};
use super::random::below;
use crate::header::{Candidates, View};
use netloom_units::Invalid;

/// DRILL(d, m): the least loaded of `samples` candidates, drawn at random and each once, and the `memory` ports that were least loaded at the last
/// decision; among equal loads a remembered port. Ghorbani et al., SIGCOMM'17, §3.2. The paper states neither to what the memory refers nor whether
/// the packet that is being sent counts as load:
/// the defaults are those of the public code of ConWeave (`SwitchNode::DoLbDrill` of its ns-3 fork), a memory for each
/// destination, and what waits in the queue.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drill {
    /// Random samples per decision, d; where there are fewer candidates, all of them.
    pub samples: u8,
    /// Remembered ports, m; at most 4.
    pub memory: u8,
    /// For what a switch remembers the ports that were least loaded.
    pub per: Per,
    /// What counts as a port's load.
    pub load: Load,
}

/// For what a switch remembers ports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Per {
    /// For each destination host, as in ConWeave's public code.
    #[default]
    Destination,
    /// For each set of candidates: one memory for all hosts to which the same ports lead.
    Candidates,
}

/// What counts as a port's load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// The bytes that wait, as in ConWeave's public code. A flow without competitors finds no load anywhere and keeps the remembered port, so it stays in order.
    #[default]
    Waiting,
    /// The bytes that wait, and the packet that is being sent. A flow without competitors finds its own last packet at the remembered port and takes
    /// another one, on which a short packet may overtake a long one.
    Queued,
}

impl Default for Drill {
    fn default() -> Self {
        Drill { samples: 2, memory: 1, per: Per::default(), load: Load::default() }
    }
}

const MAX_MEMORY: usize = 4;

/// What one switch remembers.
#[derive(Clone, Debug)]
pub(crate) struct State {
    config: Drill,
    /// By destination, or by set of candidates: a port remembered for one set may lead away from the destinations of another.
    memories: FxHashMap<u32, Memory>,
    /// The samples of a decision, ascending.
    drawn: Vec<u16>,
}

/// The remembered ports of one destination or set of candidates, as positions among the candidates.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    places: [u16; MAX_MEMORY],
    len: u8,
}

impl SelectorConfig for Drill {
    type State = State;

    fn state(&self, _: SwitchContext) -> State {
        State { config: self.clone(), memories: FxHashMap::default(), drawn: Vec::new() }
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::Switches,
            choice: Choice::Adaptive,
            decides_control: true,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::Minimal,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("samples", self.samples, 1)?;
        let fits = usize::from(self.memory) <= MAX_MEMORY;
        Invalid::unless(fits, "memory", format!("at most {MAX_MEMORY}"), self.memory)
    }
}

impl State {
    /// The position of the port to take to a destination.
    #[inline(always)]
    fn best(
        &mut self,
        destination: u32,
        candidates: Candidates<'_>,
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> usize {
        let of = match self.config.per {
            Per::Destination => destination,
            Per::Candidates => candidates.set,
        };
        let ports = candidates.ports;
        if self.config.samples != 2 || self.config.memory != 1 || ports.len() < 2 {
            return self.best_of_many(of, ports, view, random);
        }
        let memory = self.memories.entry(of).or_default();
        match self.config.load {
            Load::Waiting => best_of_two(memory, ports, |port| view.waiting(port), random),
            Load::Queued => best_of_two(memory, ports, |port| view.load(port), random),
        }
    }

    /// [`Self::best`] with any number of samples and remembered ports.
    #[inline(never)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports (NetworkBuilder::build), and at most MAX_MEMORY are found"
    )]
    fn best_of_many(
        &mut self,
        of: u32,
        ports: &[PortId],
        view: &mut impl View,
        random: &mut impl Rng,
    ) -> usize {
        let memory = self.memories.entry(of).or_default();
        let (load, drawn) = (self.config.load, &mut self.drawn);
        // The best so far, best first; one place more than is remembered, so that m = 0 still has a winner.
        let keep = usize::from(self.config.memory).max(1);
        let mut best = [(u64::MAX, u16::MAX); MAX_MEMORY];
        let mut found = 0;
        let mut consider = |place: u16| {
            let bytes = load.of(view, ports[usize::from(place)]);
            if best[..found].iter().any(|&(_, known)| known == place) {
                return;
            }
            let rank = best[..found].iter().position(|&(least, _)| bytes < least).unwrap_or(found);
            if rank < keep {
                found = (found + 1).min(keep);
                best[rank..found].rotate_right(1);
                best[rank] = (bytes, place);
            }
        };
        memory.places[..usize::from(memory.len)].iter().for_each(|&place| consider(place));
        drawn.clear();
        for count in 0..usize::from(self.config.samples).min(ports.len()) {
            // One of those that are left: each sample before it that is not above it moves it up by one.
            let mut place = below(ports.len() - count, random) as u16;
            let at = drawn.iter().position(|&before| {
                let is_above = before > place;
                place += u16::from(!is_above);
                is_above
            });
            drawn.insert(at.unwrap_or(count), place);
            consider(place);
        }
        memory.len = self.config.memory.min(found as u8);
        for (slot, &(_, place)) in memory.places.iter_mut().zip(&best[..usize::from(memory.len)]) {
            *slot = place;
        }
        usize::from(best[0].1)
    }
}

impl Load {
    /// That of a port.
    #[inline]
    fn of(self, view: &mut impl View, port: PortId) -> u64 {
        match self {
            Load::Waiting => view.waiting(port),
            Load::Queued => view.load(port),
        }
    }
}

/// What [`State::best_of_many`] does with two samples and one remembered port, the scheme's own: of three ports nothing has to be kept in order. The remembered one
/// goes before samples of the same load, and the first of these before the second.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a node has at most 65,535 ports: NetworkBuilder::build")]
fn best_of_two(
    memory: &mut Memory,
    ports: &[PortId],
    mut load: impl FnMut(PortId) -> u64,
    random: &mut impl Rng,
) -> usize {
    let first = below(ports.len(), random);
    let second = below(ports.len() - 1, random);
    let places = [memory.places[0].into(), first, second + usize::from(second >= first)];
    let mut best = (u64::MAX, usize::MAX);
    for &place in &places[usize::from(memory.len == 0)..] {
        let bytes = load(ports[place]);
        if bytes < best.0 {
            best = (bytes, place);
        }
    }
    (memory.len, memory.places[0]) = (1, best.1 as u16);
    best.1
}

impl PortSelector for State {
    #[inline]
    fn pick(&mut self, query: Query<'_>, view: &mut impl View, random: &mut impl Rng) -> usize {
        self.best(query.header.dst, query.candidates, view, random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Loads;

    /// One port is idle, whether what is being sent counts or not.
    const PORTS: [u16; 16] = [20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35];

    #[test]
    fn memory_finds_the_idle_port_sooner_than_sampling_alone() {
        let candidates = Candidates { ports: &PORTS, set: 3 };
        let hits = |memory: u8| {
            let drill = Drill { memory, ..Drill::default() };
            let mut random = rand_pcg::Pcg64Mcg::new(9);
            let mut state = drill.state(SwitchContext { stride: 1 });
            let mut view = Loads(|port| u64::from(port != 25));
            (0..1000).filter(|_| state.best(7, candidates, &mut view, &mut random) == 5).count()
        };
        // Two of sixteen: one time in eight, 125 of 1000, standard deviation 10.5.
        assert!((62..188).contains(&hits(0)), "{}", hits(0));
        assert!(hits(1) > 900, "once found, the idle port is remembered: {}", hits(1));
    }

    #[test]
    fn the_least_loaded_of_the_remembered_port_and_two_samples_is_taken() {
        let candidates = Candidates { ports: &PORTS, set: 3 };
        let (mut random, mut same) = (rand_pcg::Pcg64Mcg::new(5), rand_pcg::Pcg64Mcg::new(5));
        let mut state = Drill::default().state(SwitchContext { stride: 1 });
        let mut remembered = None;
        for step in 0..2000u64 {
            let mut view = Loads(move |port| (u64::from(port) * 7 + step / 10) % 5);
            let first = below(PORTS.len(), &mut same);
            let second = below(PORTS.len() - 1, &mut same);
            let samples = [first, second + usize::from(second >= first)];
            // Of several, the first one.
            let expected = remembered.into_iter().chain(samples).min_by_key(|&place| view.load(PORTS[place]));
            assert_eq!(Some(state.best(7, candidates, &mut view, &mut random)), expected, "{step}");
            remembered = expected;
        }
    }

    #[test]
    fn as_many_samples_as_candidates_are_all_of_them() {
        let candidates = Candidates { ports: &PORTS, set: 3 };
        for samples in [16, 200] {
            let mut state =
                Drill { samples, memory: 0, ..Drill::default() }.state(SwitchContext { stride: 1 });
            let mut random = rand_pcg::Pcg64Mcg::new(9);
            for idle in 0..16u16 {
                let mut view = Loads(move |port| u64::from(port != 20 + idle));
                assert_eq!(state.best(7, candidates, &mut view, &mut random), usize::from(idle));
                assert_eq!(state.drawn, (0..16).collect::<Vec<_>>());
            }
        }
    }

    /// Every port is sending and nothing waits.
    struct Sending;

    impl View for Sending {
        fn now(&self) -> netloom_units::Time {
            netloom_units::Time::ZERO
        }

        fn load(&mut self, port: u16) -> u64 {
            1000 + u64::from(port)
        }

        fn waiting(&mut self, _: u16) -> u64 {
            0
        }

        fn rate(&self, _: u16) -> u64 {
            1
        }
    }

    #[test]
    fn what_is_being_sent_is_load_only_on_request() {
        let candidates = Candidates { ports: &PORTS, set: 3 };
        let taken = |load| {
            let mut state = Drill { load, ..Drill::default() }.state(SwitchContext { stride: 1 });
            let mut random = rand_pcg::Pcg64Mcg::new(9);
            (0..100).map(|_| state.best(7, candidates, &mut Sending, &mut random)).collect::<Vec<_>>()
        };
        let waiting = taken(Load::Waiting);
        assert!(waiting.iter().all(|&place| place == waiting[0]), "among equals it keeps its port");
        assert_eq!(taken(Load::Queued).last(), Some(&0));
    }

    #[test]
    fn memory_is_that_of_the_destination_or_of_the_candidates() {
        let candidates = Candidates { ports: &PORTS, set: 3 };
        let ports = |per| {
            let mut state = Drill { per, ..Drill::default() }.state(SwitchContext { stride: 1 });
            let mut random = rand_pcg::Pcg64Mcg::new(9);
            let mut best = |to| state.best(to, candidates, &mut Sending, &mut random);
            (0..40).map(|to| [best(to), best(to)]).collect::<Vec<_>>()
        };
        let alone = ports(Per::Destination);
        assert!(alone.iter().all(|two| two[0] == two[1]));
        assert!(alone.iter().any(|two| two != &alone[0]));
        let shared = ports(Per::Candidates);
        assert!(shared.iter().all(|two| two == &shared[0]));
    }

    #[test]
    fn a_port_remembered_for_one_set_is_never_taken_for_another() {
        let mut state = Drill { per: Per::Candidates, ..Drill::default() }.state(SwitchContext { stride: 1 });
        let mut random = rand_pcg::Pcg64Mcg::new(9);
        // Sets that begin alike: what is best of the first leads away for the second.
        let mut view = Loads(|port| u64::from(port != 5));
        for _ in 0..100 {
            state.best(7, Candidates { ports: &[4, 5, 6], set: 0 }, &mut view, &mut random);
            let place = state.best(7, Candidates { ports: &[4, 6], set: 1 }, &mut view, &mut random);
            assert!(place < 2);
        }
    }

    #[test]
    fn among_equal_loads_a_remembered_port_is_taken_and_stays_remembered() {
        let candidates = Candidates { ports: &PORTS, set: 3 };
        for memory in 1..=4 {
            let mut state =
                Drill { samples: 16, memory, ..Drill::default() }.state(SwitchContext { stride: 1 });
            let mut random = rand_pcg::Pcg64Mcg::new(9);
            // One port is better than the others, and is found, as all are looked at.
            let mut one = Loads(|port| if port == 27 { 10 } else { 20 });
            assert_eq!(state.best(7, candidates, &mut one, &mut random), 7);
            // All are as good now, and it stays, whatever is drawn.
            let mut alike = Loads(|_| 10);
            assert!((0..50).all(|_| state.best(7, candidates, &mut alike, &mut random) == 7), "m = {memory}");
            // It is no longer among the best: it is left, and what is taken then stays in turn.
            let mut worse = Loads(|port| if port == 27 { 20 } else { 10 });
            let next = state.best(7, candidates, &mut worse, &mut random);
            assert!(next != 7 && (0..50).all(|_| state.best(7, candidates, &mut worse, &mut random) == next));
        }
    }

    #[test]
    fn without_a_memory_ties_go_to_every_port() {
        let candidates = Candidates { ports: &PORTS, set: 3 };
        let mut state = Drill { memory: 0, ..Drill::default() }.state(SwitchContext { stride: 1 });
        let mut random = rand_pcg::Pcg64Mcg::new(9);
        let mut taken = [0; 16];
        (0..1600).for_each(|_| taken[state.best(7, candidates, &mut Loads(|_| 0), &mut random)] += 1);
        // Binomial(1600, 1/16): mean 100, standard deviation 9.7.
        assert!(taken.iter().all(|count| (52..148).contains(count)), "{taken:?}");
    }
}
