//! Adaptive routing by local queues.

use netloom_topology::PortId;
use netloom_units::Invalid;
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimator::Estimator;
use super::kind::{Choose, Kindred, Place, Question};
use super::random::below;
use crate::header::View;

/// The candidate port with the fewest queued bytes (all classes, the packet being sent included), ties at random: adaptive
/// up-routing as in fat trees of InfiniBand and Slingshot, and Flowcut's switch variant. Or, with `by`, the one that has lately been used least.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LeastLoaded {
    /// What counts as load: the bytes in the `queue`, the `rate` at which the port has sent lately as a share of its link's, or `both`: the queue, and
    /// among equal queues the rate.
    pub by: By,
    /// How ports measure that rate.
    pub estimator: Estimator,
}

/// What counts as load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum By {
    /// Bytes that wait or are being sent.
    #[default]
    Queue,
    /// The port's rate estimate.
    Rate,
    /// The queue, then the rate.
    Both,
}

impl By {
    /// The load of a port; the least is taken.
    #[inline]
    fn of(self, view: &mut impl View, port: PortId) -> (u64, u64) {
        match self {
            By::Queue => (view.load(port), 0),
            By::Rate => (view.utilisation(port), 0),
            By::Both => (view.load(port), view.utilisation(port)),
        }
    }
}

/// The least loaded candidate.
#[inline]
fn pick(by: By, ports: &[PortId], view: &mut impl View, random: &mut impl Rng) -> usize {
    // Starting at a random place and keeping the first minimum would favour ports behind loaded ones, so ties are
    // drawn properly: the n-th equal candidate replaces the choice with probability 1/n.
    let (mut best, mut least, mut ties) = (0, by.of(view, ports[0]), 1);
    for (place, &port) in ports.iter().enumerate().skip(1) {
        let load = by.of(view, port);
        if load < least {
            (best, least, ties) = (place, load, 1);
        } else if load == least {
            ties += 1;
            if below(ties, random) == 0 {
                best = place;
            }
        }
    }
    best
}

/// Ports are looked at anew each time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looks(By);

impl Kindred for LeastLoaded {
    type State = Looks;

    fn state(&self, _: Place) -> Looks {
        Looks(self.by)
    }

    fn check(&self) -> Result<(), Invalid> {
        self.estimator.check()
    }
}

impl Choose for Looks {
    #[inline]
    fn pick(&mut self, question: Question<'_>, view: &mut impl View, random: &mut impl Rng) -> usize {
        pick(self.0, question.candidates.ports, view, random)
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
            hits[pick(By::Queue, &[0, 1, 2, 3, 4], &mut Loads(|port| u64::from(port % 2)), &mut random)] += 1;
        }
        assert_eq!((hits[1], hits[3]), (0, 0));
        for port in [0, 2, 4] {
            assert!((f64::from(hits[port]) - 10_000.0).abs() < 6.0 * 82.0, "{hits:?}");
        }
    }

    /// Ports of which the queue and the rate are known.
    struct Ports([(u64, u64); 4]);

    impl View for Ports {
        fn load(&mut self, port: PortId) -> u64 {
            self.0[usize::from(port)].0
        }

        fn utilisation(&mut self, port: PortId) -> u64 {
            self.0[usize::from(port)].1
        }

        fn rate(&self, _: PortId) -> u64 {
            1
        }
    }

    #[test]
    fn load_is_the_queue_or_the_rate_or_the_rate_among_equal_queues() {
        let mut random = rand_pcg::Pcg64Mcg::new(1);
        let mut ports = Ports([(10, 3), (0, 9), (500, 1), (0, 8)]);
        let mut choices =
            |by| (0..50).map(|_| pick(by, &[0, 1, 2, 3], &mut ports, &mut random)).collect::<Vec<_>>();
        assert!(choices(By::Queue).iter().all(|place| [1, 3].contains(place)));
        assert!(choices(By::Rate).iter().all(|&place| place == 2));
        assert!(choices(By::Both).iter().all(|&place| place == 3));
    }
}
