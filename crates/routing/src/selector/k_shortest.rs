//! One of the k shortest paths: a NIC draws it, and every switch forwards along it.

use netloom_paths::routes::{KShortest, Ties};
use netloom_units::Invalid;

use super::kind::{Choice, Digits, Facts, NicTags, PathSet, Places, SelectorConfig, Signals, SwitchContext};
use super::random::Draw;

/// The path is drawn.
impl SelectorConfig for KShortest {
    type State = Draw;

    fn state(&self, _: SwitchContext) -> Draw {
        Draw
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::Nic(NicTags::Numbered { redraws_on_loss: false, answers_follow: true }),
            choice: Choice::Adaptive,
            decides_control: false,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::KShortest(self),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::unless((1..=MOST_PATHS).contains(&self.k), "k", format!("1 to {MOST_PATHS}"), self.k)
    }
}

/// Most paths per pair of switches.
const MOST_PATHS: u32 = 1024;

/// As for Jellyfish: eight, ties at random.
pub(crate) const JELLYFISH: KShortest = KShortest { k: 8, ties: Ties::Random };
