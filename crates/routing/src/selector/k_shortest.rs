//! One of the k shortest paths: a NIC draws it, and every switch forwards along it.

use netloom_paths::Scheme;
use netloom_paths::routes::{KShortest, Ties};
use netloom_units::Invalid;

use super::kind::{Facts, Kindred, Place};
use super::random::Draw;

/// The path is drawn.
impl Kindred for KShortest {
    type State = Draw;

    fn state(&self, _: Place) -> Draw {
        Draw
    }

    fn facts(&self) -> Facts {
        Facts { works_at_nic: true, at_nic_only: true, ..Facts::default() }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless((1..=MOST_PATHS).contains(&self.k), "k", format!("1 to {MOST_PATHS}"), self.k)
    }
}

/// Most paths per pair of switches.
const MOST_PATHS: u32 = 1024;

/// The same as path analysis knows it.
pub(crate) fn scheme(config: &KShortest) -> Scheme {
    Scheme::KShortest(config.clone())
}

/// As for Jellyfish: eight, ties at random.
pub(crate) const JELLYFISH: KShortest = KShortest { k: 8, ties: Ties::Random };
