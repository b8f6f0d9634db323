//! DRILL: the best of a few samples and of what was best before.

use rand::Rng;
use rustc_hash::FxHashMap;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Choose, Kindred, Place, Question};
use super::random::below;
use crate::header::{Candidates, View};
use netloom_units::Invalid;

/// DRILL(d, m): the least loaded of `samples` random candidates and the `memory` ports that were least loaded at the last decision
/// for the same candidates. Ghorbani et al., SIGCOMM'17, §3.2.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Drill {
    /// Random samples per decision, d.
    pub samples: u8,
    /// Remembered ports, m; at most 4.
    pub memory: u8,
}

impl Default for Drill {
    fn default() -> Self {
        Drill { samples: 2, memory: 1 }
    }
}

const MAX_MEMORY: usize = 4;

/// What one switch remembers.
#[derive(Clone, Debug)]
pub(crate) struct State {
    config: Drill,
    /// By set of candidates: a port remembered for one set may lead away from the destinations of another.
    memories: FxHashMap<u32, Memory>,
}

/// The remembered ports of one set of candidates, as positions in it.
#[derive(Clone, Copy, Debug, Default)]
struct Memory {
    places: [u16; MAX_MEMORY],
    len: u8,
}

impl Kindred for Drill {
    type State = State;

    fn state(&self, _: Place) -> State {
        State { config: self.clone(), memories: FxHashMap::default() }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("samples", self.samples, 1)?;
        let fits = usize::from(self.memory) <= MAX_MEMORY;
        Invalid::unless(fits, "memory", format!("at most {MAX_MEMORY}"), self.memory)
    }
}

impl State {
    /// The position of the port to take.
    fn best(&mut self, candidates: Candidates<'_>, view: &mut impl View, random: &mut impl Rng) -> usize {
        let memory = self.memories.entry(candidates.set).or_default();
        // The best so far, best first; one place more than is remembered, so that m = 0 still has a winner.
        let keep = usize::from(self.config.memory).max(1);
        let mut best = [(u64::MAX, u16::MAX); MAX_MEMORY];
        let mut found = 0;
        let mut consider = |place: u16| {
            let bytes = view.load(candidates.ports[usize::from(place)]);
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
        for _ in 0..self.config.samples {
            consider(below(candidates.ports.len(), random) as u16);
        }
        memory.len = self.config.memory.min(found as u8);
        for (slot, &(_, place)) in memory.places.iter_mut().zip(&best[..usize::from(memory.len)]) {
            *slot = place;
        }
        usize::from(best[0].1)
    }
}

impl Choose for State {
    #[inline]
    fn pick(&mut self, question: Question<'_>, view: &mut impl View, random: &mut impl Rng) -> usize {
        self.best(question.candidates, view, random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Loads;

    #[test]
    fn memory_finds_the_idle_port_sooner_than_sampling_alone() {
        let ports: Vec<u16> = (20..36).collect();
        let candidates = Candidates { ports: &ports, set: 3 };
        let hits = |memory: u8| {
            let drill = Drill { samples: 2, memory };
            let mut random = rand_pcg::Pcg64Mcg::new(9);
            let mut state = drill.state(Place { stride: 1 });
            let mut view = Loads(|port| u64::from(port != 25));
            (0..1000).filter(|_| state.best(candidates, &mut view, &mut random) == 5).count()
        };
        assert!((60..220).contains(&hits(0)), "two samples of sixteen hit one time in eight: {}", hits(0));
        assert!(hits(1) > 900, "once found, the idle port is remembered: {}", hits(1));
    }

    #[test]
    fn a_port_remembered_for_one_set_is_never_taken_for_another() {
        let mut state = Drill::default().state(Place { stride: 1 });
        let mut random = rand_pcg::Pcg64Mcg::new(9);
        // Sets that begin alike: what is best of the first leads away for the second.
        let mut view = Loads(|port| u64::from(port != 5));
        for _ in 0..100 {
            state.best(Candidates { ports: &[4, 5, 6], set: 0 }, &mut view, &mut random);
            let place = state.best(Candidates { ports: &[4, 6], set: 1 }, &mut view, &mut random);
            assert!(place < 2);
        }
    }
}
