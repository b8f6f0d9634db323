//! A full queue drops what comes.

use netloom_units::Invalid;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A data packet that finds `fabric.buffer` bytes waiting is dropped; control packets always fit. In a lossless fabric nothing is dropped:
/// the packet waits at its input.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TailDrop {
    /// Whether some packets are dropped before the queue is full, so that synchronised flows do not all lose packets at once. Absent: none. Needs
    /// `fabric.buffer`, and a fabric that loses packets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub random: Option<RandomDrop>,
}

/// Random drops in the last part of a queue: `RandomQueue` of the htsim family, by which the public TCP and Swift experiments run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RandomDrop {
    /// Probability that a packet that would enter the last part of the queue is dropped.
    pub probability: f64,
    /// The last part, in full packets.
    pub packets: u32,
}

impl Default for RandomDrop {
    /// A tenth of what comes into the last three packets, as csg-htsim.
    fn default() -> Self {
        RandomDrop { probability: 0.1, packets: 3 }
    }
}

impl TailDrop {
    pub(crate) fn check(&self) -> Result<(), Invalid> {
        let Some(random) = &self.random else { return Ok(()) };
        let is_valid = random.probability > 0.0 && random.probability <= 1.0;
        Invalid::unless(
            is_valid,
            "random.probability",
            "a number above 0 and at most 1",
            random.probability,
        )?;
        Invalid::at_least("random.packets", random.packets, 1)
    }
}
