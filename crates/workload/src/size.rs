//! How large messages are.

use netloom_units::Bytes;
use rand_pcg::Pcg64Mcg;
use serde::{Deserialize, Serialize};

use crate::{PlanContext, WorkloadError};

/// How large messages are: `size = "8MiB"`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(untagged)]
pub enum Size {
    /// Every message has the same size.
    Fixed(Bytes),
}

impl From<Bytes> for Size {
    fn from(size: Bytes) -> Self {
        Size::Fixed(size)
    }
}

impl Size {
    pub(crate) fn sampler(&self, _context: &PlanContext) -> Result<Sampler, WorkloadError> {
        match self {
            Size::Fixed(Bytes(0)) => Err(WorkloadError::parameter("size", "at least one byte", 0)),
            Size::Fixed(size) => Ok(Sampler::Fixed(*size)),
        }
    }
}

/// Draws sizes; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) enum Sampler {
    Fixed(Bytes),
}

impl Sampler {
    pub(crate) fn draw(&self, _rng: &mut Pcg64Mcg) -> Bytes {
        match self {
            Sampler::Fixed(size) => *size,
        }
    }
}
