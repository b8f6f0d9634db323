//! Where open-loop frames go: drawn anew each time, or along a permutation.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::closed::Partners;
use crate::options::Destinations;
use crate::plan::Setting;
use crate::random::Work;
use crate::{Destination, Map, WorkloadError};

/// Where a host's frames go: `uniform`, or one host for the whole run by a permutation (see [`Map`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Traffic {
    /// A uniform draw.
    #[default]
    Uniform,
    /// As `random` of the workload `permutation`.
    RandomPermutation,
    /// As `bit-complement` of the workload `permutation`.
    BitComplement,
    /// As `bit-reverse` of the workload `permutation`.
    BitReverse,
    /// As `bit-rotation` of the workload `permutation`.
    BitRotation,
    /// As `perfect-shuffle` of the workload `permutation`.
    PerfectShuffle,
    /// As `transpose` of the workload `permutation`.
    Transpose,
    /// As `tornado` of the workload `permutation`.
    Tornado,
    /// As `neighbour` of the workload `permutation`.
    Neighbour,
}

/// The rule applied to the ranks.
pub(crate) enum Targets {
    Uniform(Arc<Destinations>),
    Fixed(Vec<u32>),
}

impl Traffic {
    fn map(self) -> Option<Map> {
        Some(match self {
            Traffic::Uniform => return None,
            Traffic::RandomPermutation => Map::Random,
            Traffic::BitComplement => Map::BitComplement,
            Traffic::BitReverse => Map::BitReverse,
            Traffic::BitRotation => Map::BitRotation,
            Traffic::PerfectShuffle => Map::PerfectShuffle,
            Traffic::Transpose => Map::Transpose,
            Traffic::Tornado => Map::Tornado,
            Traffic::Neighbour => Map::Neighbour,
        })
    }

    pub(crate) fn targets(
        self,
        destination: Destination,
        setting: &Setting,
    ) -> Result<Targets, WorkloadError> {
        match self.map() {
            None => Ok(Targets::Uniform(Arc::new(Destinations::new(
                destination,
                &setting.endpoints,
                &setting.placed,
            )?))),
            Some(map) => {
                let mut rng = Work::Partners.stream(setting.context.seed, 0);
                map.targets(destination, setting, &mut rng).map(Targets::Fixed)
            }
        }
    }
}

impl Targets {
    /// To whom a rank sends; `None` if to nobody.
    pub(crate) fn of(&self, rank: u32, setting: &Setting) -> Option<Partners> {
        match self {
            Targets::Uniform(destinations) => {
                Some(Partners::Uniform { destinations: destinations.clone(), rank })
            }
            Targets::Fixed(targets) => {
                let target = targets[rank as usize];
                (target != rank).then(|| Partners::cycle([setting.placed[target as usize]]))
            }
        }
    }
}
