//! How a run's time is cut into windows and epochs.

use netloom_units::Time;

use crate::engine::END_OF_TIME;
use crate::setup::{Bipartition, Setup};
use crate::windows::Windows;

/// Most windows of an epoch: far below the number of near windows.
const LONGEST_EPOCH: u64 = 32;

/// The windows of a run, and what the timing wheel holds of them.
#[derive(Clone, Copy)]
pub(crate) struct WindowPlan {
    pub(crate) windows: Windows,
    /// Slots of the timing wheel: a power of two.
    pub(crate) slots: usize,
    /// Windows per epoch, the whole ones that fit into a lookahead: threads synchronise once per this many windows.
    pub(crate) epoch: u64,
    /// Nothing at or after this instant is run.
    pub(crate) limit: Time,
}

impl WindowPlan {
    /// The longest windows that there may be.
    pub(crate) fn new(setup: &Setup) -> Self {
        let limit = setup.until.min(END_OF_TIME);
        if let Some(Bipartition { lookaheads, .. }) =
            setup.bipartition.as_ref().filter(|_| setup.windows_per_lookahead <= 1)
        {
            let lookaheads = lookaheads.map(|lookahead| lookahead.max(setup.lookahead).0);
            let length = lookaheads[0].saturating_add(lookaheads[1]);
            if length <= Windows::LONGEST {
                let windows = Windows::of_bipartition(lookaheads);
                return WindowPlan { windows, slots: slots(setup, length / 2, 1), epoch: 1, limit };
            }
        }
        WindowPlan::of_all(setup)
    }

    /// The windows of all nodes at once.
    pub(crate) fn of_all(setup: &Setup) -> Self {
        let limit = setup.until.min(END_OF_TIME);
        // Equal ones, so that threads synchronise no more often than once per lookahead.
        let count = setup.windows_per_lookahead.max(setup.lookahead.0.div_ceil(Windows::LONGEST)).max(1);
        let length = (setup.lookahead.0 / count).max(1);
        // More rounds than necessary let the observer see a run whose messages take seconds.
        let epoch = (setup.lookahead.0 / length).min(LONGEST_EPOCH);
        WindowPlan { windows: Windows::new(length), slots: slots(setup, length, epoch), epoch, limit }
    }
}

/// Slots for windows that begin `stride` picoseconds apart: a power of two.
fn slots(setup: &Setup, stride: u64, epoch: u64) -> usize {
    let near = (setup.horizon.0.max(setup.lookahead.0) / stride).min(256) + 2 + epoch;
    near.next_power_of_two().clamp(8, 256) as usize
}
