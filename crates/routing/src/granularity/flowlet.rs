//! Flowlets: bursts of a flow separated by idle gaps.

use netloom_transport::Feedback;
use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Granularity;
use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;

/// A new decision when the deciding NIC or switch has not seen the flow for longer than `gap`. In-order only if the gap exceeds the
/// difference of path delays. Sinha et al., HotNets'04; LetFlow, NSDI'17.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Flowlet {
    /// Idle time after which a flow may take a new path. At exactly this gap the path is kept.
    pub gap: Time,
    /// Ageing as in LetFlow's and CONGA's switches: one timer of period `gap` for all flows. When it fires it sets a flow's age bit, which a
    /// packet clears; where the bit was set already, the flow may take a new path. So the idle time after which it may lies between `gap` and twice
    /// that.
    pub age_bit: bool,
}

impl Default for Flowlet {
    /// 100 µs, as public LetFlow implementations for RDMA fabrics.
    fn default() -> Self {
        Flowlet { gap: Time::from_us(100), age_bit: false }
    }
}

impl Flowlet {
    /// Whether packets of a flow at these times, the one behind the other, are of one flowlet.
    #[inline]
    pub fn spans(&self, last: Time, now: Time) -> bool {
        if self.age_bit {
            // The timer fires at every multiple of the gap, before the packets of that instant.
            let fired = |time: Time| time.0 / self.gap.0;
            return fired(now) - fired(last) < 2;
        }
        now.saturating_sub(last) <= self.gap
    }

    /// The longest idle time behind which a flow may still keep its path.
    pub fn longest_kept(&self) -> Time {
        if self.age_bit { (self.gap * 2).saturating_sub(Time(1)) } else { self.gap }
    }
}

impl Granularity {
    /// How flows fall into flowlets, if they do.
    pub fn flowlet(&self) -> Option<&Flowlet> {
        match self {
            Granularity::Flowlet(flowlet) => Some(flowlet),
            _ => None,
        }
    }
}

/// When the flow was last seen; none before its first packet.
impl GranularityConfig for Flowlet {
    type Run = Option<Time>;
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::Any,
            ends: Ends::InMidFlow,
            remembers: true,
            acks: Acks::Unused,
            serialisation: false,
            holds_back: false,
            probes: false,
            labels: false,
            decides_control: false,
        }
    }

    fn open(&self) -> Option<Time> {
        None
    }

    #[inline]
    fn continues(&self, last: &mut Option<Time>, now: Time, _: u32) -> bool {
        last.replace(now).is_none_or(|last| self.spans(last, now))
    }

    fn on_feedback(&self, _: &mut Option<Time>, (): &mut (), _: &Feedback) -> Advice {
        Advice::Continue
    }

    /// Behind a gap it is as if the flow had never been seen.
    fn memory(&self) -> Option<Time> {
        Some(self.longest_kept())
    }

    fn check(&self) -> Result<(), Invalid> {
        let fits = !self.age_bit || self.gap > Time::ZERO;
        Invalid::unless(fits, "gap", "more than 0 with age_bit", self.gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_is_kept_at_exactly_the_gap() {
        let flowlet = Flowlet { gap: Time(100), age_bit: false };
        let mut run = flowlet.open();
        let continues = [50, 150, 251].map(|now| flowlet.continues(&mut run, Time(now), 1));
        assert_eq!(continues, [true, true, false]);
    }

    #[test]
    fn an_age_bit_ends_flowlets_after_once_to_twice_the_gap() {
        let flowlet = Flowlet { gap: Time(100), age_bit: true };
        // Last seen at 30: the timer sets the bit at 100 and finds it set at 200. Last seen at 100: at 200 and 300.
        for (last, next, kept) in [
            (30, 199, true),
            (30, 200, false),
            (99, 199, true),
            (99, 200, false),
            (100, 299, true),
            (100, 300, false),
        ] {
            let mut run = flowlet.open();
            flowlet.continues(&mut run, Time(last), 1);
            assert_eq!(flowlet.continues(&mut run, Time(next), 1), kept, "{last} {next}");
        }
        assert_eq!(flowlet.longest_kept(), Time(199));
        assert!(Flowlet { gap: Time::ZERO, age_bit: true }.check().is_err());
    }
}
