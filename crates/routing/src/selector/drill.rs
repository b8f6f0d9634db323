//! DRILL: the best of a few samples and of what was best before.

use netloom_topology::PortId;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::random;

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

/// The remembered ports for one set of candidates.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Memory {
    ports: [PortId; MAX_MEMORY],
    len: u8,
}

impl Drill {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.samples == 0 {
            return Err("drill.samples: expected at least 1, found 0".into());
        }
        if usize::from(self.memory) > MAX_MEMORY {
            return Err(format!("drill.memory: expected at most {MAX_MEMORY}, found {}", self.memory));
        }
        Ok(())
    }

    pub(crate) fn pick(
        &self,
        memory: &mut Memory,
        candidates: &[PortId],
        mut load: impl FnMut(PortId) -> u64,
        random: &mut impl Rng,
    ) -> PortId {
        // The best so far, best first; one place more than is remembered, so that m = 0 still has a winner.
        let keep = usize::from(self.memory).max(1);
        let mut best = [(u64::MAX, PortId::MAX); MAX_MEMORY];
        let mut found = 0;
        let mut consider = |port: PortId, bytes: u64| {
            if best[..found].iter().any(|&(_, known)| known == port) {
                return;
            }
            let place = best[..found].iter().position(|&(least, _)| bytes < least).unwrap_or(found);
            if place < keep {
                found = (found + 1).min(keep);
                best[place..found].rotate_right(1);
                best[place] = (bytes, port);
            }
        };
        for &port in &memory.ports[..usize::from(memory.len)] {
            consider(port, load(port));
        }
        for _ in 0..self.samples {
            let port = random::pick(candidates, random);
            consider(port, load(port));
        }
        memory.len = self.memory.min(found as u8);
        for (slot, &(_, port)) in memory.ports.iter_mut().zip(&best[..usize::from(memory.len)]) {
            *slot = port;
        }
        best[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_finds_the_idle_port_sooner_than_sampling_alone() {
        let candidates: Vec<PortId> = (0..16).collect();
        let hits = |memory: u8| {
            let drill = Drill { samples: 2, memory };
            let mut random = rand_pcg::Pcg64Mcg::new(9);
            let mut state = Memory::default();
            (0..1000)
                .filter(|_| drill.pick(&mut state, &candidates, |p| u64::from(p != 5), &mut random) == 5)
                .count()
        };
        assert!((60..220).contains(&hits(0)), "two samples of sixteen hit one time in eight: {}", hits(0));
        assert!(hits(1) > 900, "once found, the idle port is remembered: {}", hits(1));
    }
}
