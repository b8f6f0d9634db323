//! Adaptive routing by local queues.

use netloom_topology::PortId;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Choose, Kindred, Place, Question};
use super::random::below;
use crate::header::View;

/// The candidate port with the fewest queued bytes (all classes, the packet being sent included), ties at random: adaptive
/// up-routing as in fat trees of InfiniBand and Slingshot, and Flowcut's switch variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeastLoaded {}

/// The least loaded candidate.
#[inline]
fn pick(ports: &[PortId], view: &mut impl View, random: &mut impl Rng) -> usize {
    // Starting at a random place and keeping the first minimum would favour ports behind loaded ones, so ties are
    // drawn properly: the n-th equal candidate replaces the choice with probability 1/n.
    let (mut best, mut least, mut ties) = (0, view.load(ports[0]), 1);
    for (place, &port) in ports.iter().enumerate().skip(1) {
        let bytes = view.load(port);
        if bytes < least {
            (best, least, ties) = (place, bytes, 1);
        } else if bytes == least {
            ties += 1;
            if below(ties, random) == 0 {
                best = place;
            }
        }
    }
    best
}

/// Queues are looked at anew each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks;

impl Kindred for LeastLoaded {
    type State = Looks;

    fn state(&self, _: Place) -> Looks {
        Looks
    }
}

impl Choose for Looks {
    #[inline]
    fn pick(&mut self, question: Question<'_>, view: &mut impl View, random: &mut impl Rng) -> usize {
        pick(question.candidates.ports, view, random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Loads;

    #[test]
    fn ties_are_uniform_and_loaded_ports_avoided() {
        let mut random = rand_pcg::Pcg64Mcg::new(1);
        let mut hits = [0u32; 5];
        for _ in 0..30_000 {
            hits[pick(&[0, 1, 2, 3, 4], &mut Loads(|port| u64::from(port % 2)), &mut random)] += 1;
        }
        assert_eq!((hits[1], hits[3]), (0, 0));
        for port in [0, 2, 4] {
            assert!((f64::from(hits[port]) - 10_000.0).abs() < 6.0 * 82.0, "{hits:?}");
        }
    }
}
