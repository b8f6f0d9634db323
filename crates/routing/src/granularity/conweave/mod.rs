//! ConWeave: a flow is re-routed when a probe of its path is late, and its last switch puts the packets back into order.
//!
//! A flow's first switch cuts its packets into *epochs*. The first packet of an epoch asks the last switch for a reply. If it comes in time,
//! the next packet begins another epoch on the same path. If not, the path is congested: the next packet is the *tail* of the old path,
//! and those behind it are *re-routed* to a path that has not been reported as busy. The last switch holds re-routed packets back until the tail has
//! come, or until it cannot be expected any more. When the tail has come it signals to the first switch that all is *clear*: only then may the flow be
//! re-routed again. So at most one change of path is in flight (Song et al., SIGCOMM'23).
//!
//! ```text
//!   first switch                                     last switch
//!   Probing ──reply in time──▶ Answered ──packet──▶ Probing        re-routed, no tail yet: hold ──tail or timer──▶ release
//!      └──late: tail, then re-routed──▶ Waiting ──clear──▶ Answered                               tail ──▶ clear
//! ```
//!
//! What the paper leaves open is as in its public code. When a tail is expected is judged by packets of its own epoch only: they are on the path
//! that has become slow. A flow whose tail gets lost is not re-routed again before it has been idle. Packets of an earlier epoch that come late
//! are sent on, and say nothing. One thing is ours: packets of a later epoch do not overtake what is still held.

mod ends;
mod signals;

pub use ends::ConWeaveCounts;
pub(crate) use ends::ConWeaveMachine;

use netloom_transport::Feedback;
use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Granularity;
use super::kind::{Acks, Ends, Facts, GranularityConfig, Places};
use crate::header::Advice;
use crate::scheme::Routing;
use crate::selector::Choice;

/// A new path when a probe of the present one is late, decided at a flow's first switch; its last switch restores the order. Song et al.,
/// ConWeave, SIGCOMM'23. The defaults are those of its public code for two tiers of switches.
///
/// Needs a tree, whose paths have labels, and a fabric that marks. Only the arrival of a flow's tail allows another change; a flow whose
/// tail was lost has to be idle for `inactive` first. The time at which a tail is due is estimated from the moment at which the first
/// re-routed packet left its host, right behind the tail, and from the time that packets of the same epoch took on the old path.
///
/// Held packets are not counted in the buffers that PFC monitors, also after their release; under credits they stay in the input buffer.
/// `summary.json` and the table of `netloom run` show how often replies were late, flows were re-routed and timers released held packets,
/// and how much was held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ConWeave {
    /// A reply is late after the idle fabric's round-trip time between the two switches plus this time.
    pub reply_slack: Time,
    /// For how long a path is avoided after it was reported as busy, because packets on it were marked.
    pub path_pause: Time,
    /// Number of paths drawn at random to find one that is not busy. If all of them are, the flow stays.
    pub samples: u32,
    /// What a flow does whose probe is late.
    pub late: Late,
    /// Re-routed packets wait for their tail until it is expected, plus this time.
    pub flush_slack: Time,
    /// How much longer they wait if no packet of the same epoch has shown the delay of the old path.
    pub flush_default: Time,
    /// A flow that has been idle for longer starts again on any path.
    pub inactive: Time,
}

impl Default for ConWeave {
    fn default() -> Self {
        ConWeave {
            reply_slack: Time::from_us(4),
            path_pause: Time::from_us(16),
            samples: 2,
            late: Late::default(),
            flush_slack: Time::from_us(16),
            flush_default: Time::from_us(200),
            inactive: Time::from_us(300),
        }
    }
}

/// What a flow does whose probe is late.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Late {
    /// It draws among all paths, its own included; whether it moves or not, its next packet is a tail, and it sends another probe only when that is
    /// confirmed. ConWeave's public code does this.
    #[default]
    AnyPath,
    /// It looks for a path other than its own. If it finds none, it begins another epoch on its own path.
    OtherPath,
}

impl Routing {
    /// Whether first switches re-route by ConWeave's epochs, and last switches restore the order.
    pub fn uses_conweave(&self) -> bool {
        self.conweave().is_some()
    }

    /// The epochs by which they do.
    pub(crate) fn conweave(&self) -> Option<&ConWeave> {
        match &self.granularity {
            Granularity::ConWeave(config) => Some(config),
            _ => None,
        }
    }
}

impl GranularityConfig for ConWeave {
    type Run = ();
    type Shared = ();

    fn facts(&self) -> Facts {
        Facts {
            places: Places::FirstSwitch,
            ends: Ends::InMidFlow,
            remembers: true,
            acks: Acks::Unused,
            serialisation: false,
            holds_back: false,
            probes: false,
            labels: true,
            decides_control: false,
        }
    }

    fn open(&self) {}

    /// Switches decide by epochs, not by runs of packets.
    fn continues(&self, (): &mut (), _: Time, _: u32) -> bool {
        true
    }

    fn on_feedback(&self, (): &mut (), (): &mut (), _: &Feedback) -> Advice {
        Advice::Continue
    }

    fn check(&self) -> Result<(), Invalid> {
        Invalid::at_least("samples", self.samples, 1)?;
        Invalid::unless(self.flush_default > Time::ZERO, "flush_default", "more than 0", self.flush_default)?;
        Invalid::unless(self.inactive > Time::ZERO, "inactive", "more than 0", self.inactive)
    }

    fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
        let draws = scheme.selector.facts().choice == Choice::Uniform;
        let expected = "\"random\", as \"conweave\" draws among paths that are not busy";
        Invalid::unless(draws, "selector", expected, format!("\"{}\"", scheme.selector_name()))
    }
}
