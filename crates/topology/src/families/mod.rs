//! Generators, one file per family.

mod complete;
mod crossbar;
mod direct;
mod dragonfly;
mod equivalent_jellyfish;
mod fat_tree;
mod hyperx;
mod jellyfish;
mod k_ary_n_tree;
mod leaf_spine;
mod orthogonal_fat_tree;
mod polarfly;
mod random_regular;
mod slim_fly;
mod torus;
pub(crate) mod xgft;
mod xpander;

pub use complete::Complete;
pub use crossbar::Crossbar;
pub use dragonfly::{Arrangement, Dragonfly, DragonflyPreset};
pub use equivalent_jellyfish::EquivalentJellyfish;
pub use fat_tree::{FatTree, FatTreePreset};
pub use hyperx::HyperX;
pub use jellyfish::Jellyfish;
pub use k_ary_n_tree::KaryNTree;
pub use leaf_spine::LeafSpine;
pub use orthogonal_fat_tree::OrthogonalFatTree;
pub use polarfly::PolarFly;
pub use slim_fly::SlimFly;
pub use torus::{Mesh, Torus};
pub use xgft::Xgft;
pub use xpander::{Lifting, Xpander};

use std::fmt::Display;

use netloom_units::Invalid;

use crate::error::NetworkError;

/// A parameter that no network has.
fn invalid(field: &'static str, expected: impl Into<String>, found: impl Display) -> NetworkError {
    Invalid::new(field, expected, found).into()
}

/// Refuses values below a minimum.
fn at_least(field: &'static str, value: u32, minimum: u32) -> Result<(), NetworkError> {
    Ok(Invalid::at_least(field, value, minimum)?)
}

/// Product of counts, saturating: a saturated size is refused later as too large.
pub(crate) fn product(factors: impl IntoIterator<Item = u32>) -> u64 {
    factors.into_iter().fold(1, |product, factor| product.saturating_mul(factor.into()))
}

/// The parameter whose number of hosts is nearest to the wanted one, the smaller of two equally near.
fn nearest<T>(wanted: u64, sizes: impl IntoIterator<Item = (T, u64)>) -> T {
    let best = sizes.into_iter().min_by_key(|&(_, hosts)| hosts.abs_diff(wanted));
    best.expect("a family has at least one instance").0
}
