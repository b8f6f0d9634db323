//! What every way to reorder does.

use netloom_units::{Invalid, Time};

/// The parameters of a kind of reordering at a host: when it holds packets back, and for how long.
pub(crate) trait ReorderConfig {
    /// Whether anything is ever held.
    const HOLDS: bool;

    /// Whether tags number flowcells, within which packets keep their order: what is missing there is lost.
    const HAS_CELLS: bool;

    /// Refuses parameter values without meaning.
    fn check(&self) -> Result<(), Invalid>;

    /// Bytes that a host may hold of all its flows.
    fn room(&self) -> u64;

    /// How long the first packet that is held waits at most, where waits have taken `average` of late; `None`: for good.
    fn timeout(&self, average: Option<Time>) -> Option<Time>;

    /// The average after a wait that ended because what was missing has come; `None`: it does not matter.
    fn learn(&self, average: Option<Time>, wait: Time) -> Option<Time>;
}
