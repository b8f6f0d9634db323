//! The measurements a study may take.

mod collisions;
mod diversity;
mod layers;
mod structure;
mod throughput;

use netloom_units::kinds;

use crate::study::{Scale, Subject};

pub use collisions::{Collisions, Conflicts};
pub use diversity::Diversity;
pub use layers::{LayerCounts, LayerPaths};
pub use structure::Structure;
pub use throughput::ThroughputOf;

kinds! {
    /// What a study measures on each of its networks.
    pub enum Measurement: "measurement" {
        "structure" => Structure(Structure),
        "diversity" => Diversity(Diversity),
        "collisions" => Collisions(Collisions),
        "conflicts" => Conflicts(Conflicts),
        "layer-paths" => LayerPaths(LayerPaths),
        "layer-counts" => LayerCounts(LayerCounts),
        "throughput" => Throughput(ThroughputOf),
    }
}

/// Named results.
pub(crate) type Quantities = Vec<(String, f64)>;

impl Measurement {
    pub(crate) fn take(&self, subject: &Subject, scale: Scale) -> Result<Quantities, String> {
        match self {
            Measurement::Structure(config) => config.take(subject),
            Measurement::Diversity(config) => config.take(subject, scale),
            Measurement::Collisions(config) => Ok(config.take(subject)),
            Measurement::Conflicts(config) => Ok(config.take(subject)),
            Measurement::LayerPaths(config) => config.take(subject, scale),
            Measurement::LayerCounts(config) => config.take(subject),
            Measurement::Throughput(config) => config.take(subject, scale),
        }
    }
}

fn named<const N: usize>(quantities: [(&str, f64); N]) -> Quantities {
    quantities.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Sample sizes at small scale.
const SMALL_SAMPLES: u32 = 100;
