//! Permutations of the ranks: to which one rank each rank sends.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::options::Destinations;
use crate::plan::Setting;
use crate::random::{RngExt, Stream, shuffle};
use crate::{Destination, WorkloadError};

/// A permutation of the N ranks. Those with a formula are of Dally and Towles, Principles and Practices of
/// Interconnection Networks, section 3.2; a rank that they map to itself sends nothing. With s the rank as a word of
/// b = log₂ N bits and d that of its target:
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Map {
    /// Drawn from the seed, without fixed points.
    #[default]
    Random,
    /// Every bit inverted: d_i = ¬s_i.
    BitComplement,
    /// Bits in reverse order: d_i = s_{b−i−1}.
    BitReverse,
    /// Bits rotated right by one: d_i = s_{i+1 mod b}.
    BitRotation,
    /// Bits rotated left by one: d_i = s_{i−1 mod b}.
    PerfectShuffle,
    /// Halves of the word exchanged: d_i = s_{i+b/2 mod b}; b is even.
    Transpose,
    /// Nearly half of the way round the ring of all ranks: d = s + ⌈N/2⌉ − 1 mod N.
    Tornado,
    /// The next one on the ring of all ranks: d = s + 1 mod N.
    Neighbour,
}

impl Map {
    /// The target of every rank.
    pub(crate) fn targets(
        self,
        destination: Destination,
        setting: &Setting,
        rng: &mut Stream,
    ) -> Result<Vec<u32>, WorkloadError> {
        if self == Map::Random {
            return random(destination, setting, rng);
        }
        if destination != Destination::Any {
            let expected = "`any`, since the map says where each rank sends to";
            return Err(WorkloadError::parameter("destination", expected, "another rule"));
        }
        self.images(setting.ranks())
    }

    /// The target of every rank by the formula.
    fn images(self, ranks: u32) -> Result<Vec<u32>, WorkloadError> {
        let bits = ranks.trailing_zeros();
        let of_ring = matches!(self, Map::Tornado | Map::Neighbour);
        if !of_ring && !ranks.is_power_of_two() {
            return Err(WorkloadError::parameter("ranks", "a power of two for a map of their bits", ranks));
        }
        if self == Map::Transpose && !bits.is_multiple_of(2) {
            let expected = "a power of two with an even exponent (4, 16, 64, …) for `transpose`";
            return Err(WorkloadError::parameter("ranks", expected, ranks));
        }
        let word = ranks - 1;
        let rotate_left = |rank: u32, by: u32| ((rank << by) | (rank >> (bits - by))) & word;
        let targets: Vec<u32> = (0..ranks)
            .map(|rank| match self {
                Map::Random => rank,
                Map::BitComplement => !rank & word,
                Map::BitReverse => rank.reverse_bits() >> (u32::BITS - bits),
                Map::BitRotation => rotate_left(rank, bits - 1),
                Map::PerfectShuffle => rotate_left(rank, 1),
                Map::Transpose => rotate_left(rank, bits / 2),
                Map::Tornado => (rank + ranks.div_ceil(2) - 1) % ranks,
                Map::Neighbour => (rank + 1) % ranks,
            })
            .collect();
        if (0..).zip(&targets).all(|(rank, &target)| rank == target) {
            let expected = "at least 3, or this map sends every rank to itself";
            return Err(WorkloadError::parameter("ranks", expected, ranks));
        }
        Ok(targets)
    }
}

/// A random permutation that maps no rank into its own class.
fn random(destination: Destination, setting: &Setting, rng: &mut Stream) -> Result<Vec<u32>, WorkloadError> {
    let allowed = Destinations::new(destination, &setting.endpoints, &setting.placed)?;
    let (largest, ranks) = (allowed.largest_class(), setting.ranks());
    if u64::from(largest) * 2 > u64::from(ranks) {
        let expected = "no rack (pod) with more than half of the hosts, or its hosts have no free partner";
        return Err(WorkloadError::parameter("destination", expected, format!("{largest} of {ranks} hosts")));
    }
    Ok(permute(&allowed, ranks, rng))
}

/// A uniform permutation is drawn and then repaired: a rank `i` of class `c` that stayed in `c` swaps targets with a
/// random rank `j` outside of `c` whose target is outside of `c`, which breaks nothing. Such a `j` exists as long as
/// `c` holds at most half of the ranks: with `k` ranks that stayed in `c` there are `ranks − 2|c| + k ≥ k` of them.
fn permute(allowed: &Destinations, ranks: u32, rng: &mut Stream) -> Vec<u32> {
    let mut target: Vec<u32> = (0..ranks).collect();
    shuffle(&mut target, rng);
    for i in 0..ranks {
        if !allowed.same_class(i, target[i as usize]) {
            continue;
        }
        let first = rng.random_range(0..ranks);
        let fits = |&j: &u32| !allowed.same_class(i, j) && !allowed.same_class(i, target[j as usize]);
        let j =
            (first..ranks).chain(0..first).find(fits).expect("no class holds more than half of the ranks");
        target.swap(i as usize, j as usize);
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const OF_BITS: [Map; 5] =
        [Map::BitComplement, Map::BitReverse, Map::BitRotation, Map::PerfectShuffle, Map::Transpose];

    #[test]
    fn maps_are_those_of_the_book() {
        for (map, expected) in [
            (Map::BitComplement, [7, 6, 5, 4, 3, 2, 1, 0]),
            (Map::BitReverse, [0, 4, 2, 6, 1, 5, 3, 7]),
            (Map::BitRotation, [0, 4, 1, 5, 2, 6, 3, 7]),
            (Map::PerfectShuffle, [0, 2, 4, 6, 1, 3, 5, 7]),
            (Map::Tornado, [3, 4, 5, 6, 7, 0, 1, 2]),
            (Map::Neighbour, [1, 2, 3, 4, 5, 6, 7, 0]),
        ] {
            assert_eq!(map.images(8).unwrap(), expected, "{map:?}");
        }
        // Row and column of a 4 × 4 matrix change places.
        let transposed = [0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15];
        assert_eq!(Map::Transpose.images(16).unwrap(), transposed);
        assert_eq!(Map::Tornado.images(7).unwrap(), [3, 4, 5, 6, 0, 1, 2]);
    }

    proptest! {
        #[test]
        fn every_map_is_a_bijection(half in 1..7u32, ring in 3..300u32) {
            let of_bits = OF_BITS.map(|map| (map, 1 << (2 * half)));
            for (map, ranks) in of_bits.into_iter().chain([(Map::Tornado, ring), (Map::Neighbour, ring)]) {
                let mut targets = map.images(ranks).unwrap();
                targets.sort();
                prop_assert_eq!(targets, (0..ranks).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn a_map_of_bits_needs_a_power_of_two() {
        for map in OF_BITS {
            let error = map.images(24).unwrap_err().to_string();
            assert!(error.starts_with("ranks: expected a power of two"), "{error}");
        }
        let error = Map::Transpose.images(32).unwrap_err().to_string();
        assert!(error.contains("even exponent") && error.ends_with("found 32"), "{error}");
    }

    #[test]
    fn a_map_that_moves_nobody_is_refused() {
        for map in [Map::BitReverse, Map::BitRotation, Map::PerfectShuffle, Map::Tornado] {
            assert!(map.images(2).unwrap_err().to_string().contains("every rank to itself"), "{map:?}");
        }
        assert_eq!(Map::BitComplement.images(2).unwrap(), [1, 0]);
    }
}
