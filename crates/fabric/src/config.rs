//! The fabric as the user writes it.

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Output-queued store-and-forward switches with two strict-priority classes, control above data, and byte-limited drop-tail data
/// queues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Fabric {
    /// Data bytes that may wait at one output port, the packet being sent not counted; a packet that does not fit is dropped.
    /// Absent: unlimited, so nothing is ever lost. Control packets are never dropped.
    pub buffer: Option<Bytes>,
    /// Whether ACKs overtake data at every port. Off: they queue with the data.
    pub control_priority: bool,
    /// Time a switch takes to forward a packet, in addition to its serialisation and the link's latency.
    pub switch_latency: Time,
    /// ECN marking of data packets; absent: none.
    pub ecn: Option<Ecn>,
}

impl Default for Fabric {
    fn default() -> Self {
        Fabric { buffer: None, control_priority: true, switch_latency: Time::ZERO, ecn: None }
    }
}

/// RED-like marking on the instantaneous queue at a packet's arrival: never at or below `kmin`, with a probability that grows linearly
/// to `pmax` at `kmax`, always above. `kmin = kmax` is DCTCP's step (Alizadeh et al., SIGCOMM'10).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ecn {
    /// Queued data bytes up to which nothing is marked.
    pub kmin: Bytes,
    /// Queued data bytes above which everything is marked.
    pub kmax: Bytes,
    /// Marking probability at `kmax`.
    #[serde(default = "one")]
    pub pmax: f64,
}

fn one() -> f64 {
    1.0
}

/// A fabric that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fabric.{field}: {reason}")]
pub struct FabricError {
    /// The field that should change.
    pub field: &'static str,
    /// Why.
    pub reason: String,
}

impl Fabric {
    /// Whether a packet can be lost.
    pub fn is_lossy(&self) -> bool {
        self.buffer.is_some()
    }

    /// Refuses values without meaning. `packet` is the largest packet on the wire.
    ///
    /// # Errors
    /// Names the field to change.
    pub fn check(&self, packet: Bytes) -> Result<(), FabricError> {
        let refuse = |field, reason| Err(FabricError { field, reason });
        if let Some(buffer) = self.buffer.filter(|&buffer| buffer < packet) {
            return refuse("buffer", format!("expected room for a packet of {packet}, found {buffer}"));
        }
        if let Some(ecn) = &self.ecn {
            if ecn.kmin > ecn.kmax {
                return refuse(
                    "ecn.kmin",
                    format!("expected at most kmax = {}, found {}", ecn.kmax, ecn.kmin),
                );
            }
            if !(0.0..=1.0).contains(&ecn.pmax) {
                return refuse("ecn.pmax", format!("expected a probability from 0 to 1, found {}", ecn.pmax));
            }
        }
        Ok(())
    }
}

impl Ecn {
    /// Whether to mark a packet that finds `queued` data bytes.
    #[inline(never)]
    pub(crate) fn decide(&self, queued: u64, random: &mut impl rand::Rng) -> bool {
        let probability = self.probability(queued);
        probability > 0 && u64::from(random.next_u32()) < probability
    }

    /// Probability of marking a packet that finds `queued` data bytes, in units of 2⁻³².
    fn probability(&self, queued: u64) -> u64 {
        const CERTAIN: u64 = 1 << 32;
        if queued <= self.kmin.0 {
            0
        } else if queued > self.kmax.0 {
            CERTAIN
        } else {
            let share = (queued - self.kmin.0) as f64 / (self.kmax.0 - self.kmin.0) as f64;
            (self.pmax * share * CERTAIN as f64) as u64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marking_grows_linearly_between_the_thresholds() {
        let ecn = Ecn { kmin: Bytes(100), kmax: Bytes(300), pmax: 0.5 };
        let share = |queued| ecn.probability(queued) as f64 / (1u64 << 32) as f64;
        assert_eq!([share(100), share(200), share(300), share(301)], [0.0, 0.25, 0.5, 1.0]);
    }

    #[test]
    fn a_step_marks_above_it_only() {
        let ecn = Ecn { kmin: Bytes(100), kmax: Bytes(100), pmax: 1.0 };
        assert_eq!((ecn.probability(100), ecn.probability(101)), (0, 1 << 32));
    }

    #[test]
    fn senseless_values_name_their_field() {
        let fabric = |ecn| Fabric { ecn: Some(ecn), ..Fabric::default() };
        let check = |fabric: Fabric| fabric.check(Bytes(4160)).unwrap_err().field;
        assert_eq!(check(fabric(Ecn { kmin: Bytes(2), kmax: Bytes(1), pmax: 1.0 })), "ecn.kmin");
        assert_eq!(check(fabric(Ecn { kmin: Bytes(1), kmax: Bytes(1), pmax: f64::NAN })), "ecn.pmax");
        assert_eq!(check(Fabric { buffer: Some(Bytes(4159)), ..Fabric::default() }), "buffer");
    }
}
