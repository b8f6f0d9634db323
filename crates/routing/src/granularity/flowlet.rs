//! Flowlets: bursts of a flow separated by idle gaps.

use netloom_units::Time;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl Flowlet {
    /// Whether a packet at `now` begins a new flowlet; `last` is when the flow was last seen.
    #[inline]
    pub fn is_new(&self, last: Time, now: Time) -> bool {
        now.saturating_sub(last) > self.gap
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_kept_at_exactly_the_gap() {
        let flowlet = Flowlet { gap: Time(100) };
        assert!(!flowlet.is_new(Time(50), Time(150)));
        assert!(flowlet.is_new(Time(50), Time(151)));
    }
}
