//! Flowlets: bursts of a flow separated by idle gaps.

use netloom_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::runs::Runs;

/// A new decision when the decider has not seen the flow for longer than `gap`. In-order only if the gap exceeds the difference of
/// path delays. Sinha et al., HotNets'04; LetFlow, NSDI'17.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flowlet {
    /// Idle time after which a flow may take a new path. At exactly this gap the path is kept.
    pub gap: Time,
}

impl Default for Flowlet {
    /// 100 µs, as public LetFlow implementations for RDMA fabrics.
    fn default() -> Self {
        Flowlet { gap: Time::from_us(100) }
    }
}

/// When the flow was last seen; none before its first packet.
impl Runs for Flowlet {
    type Run = Option<Time>;
    type Shared = ();

    fn open(&self) -> Option<Time> {
        None
    }

    #[inline]
    fn continues(&self, last: &mut Option<Time>, now: Time, _: u32) -> bool {
        last.replace(now).is_none_or(|last| now.saturating_sub(last) <= self.gap)
    }

    /// Behind a gap it is as if the flow had never been seen.
    fn memory(&self) -> Option<Time> {
        Some(self.gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_kept_at_exactly_the_gap() {
        let flowlet = Flowlet { gap: Time(100) };
        let mut run = flowlet.open();
        let continues = [50, 150, 251].map(|now| flowlet.continues(&mut run, Time(now), 1));
        assert_eq!(continues, [true, true, false]);
    }
}
