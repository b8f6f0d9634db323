//! What draws need beside [`netloom_units::random`], where the streams are.

pub(crate) use netloom_units::random::{Stream, Work};
pub(crate) use rand::RngExt;

/// A uniform shuffle (Fisher–Yates).
pub(crate) fn shuffle<T>(items: &mut [T], rng: &mut Stream) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.random_range(0..=last));
    }
}
