//! What every granularity does.

use netloom_transport::Feedback;
use netloom_units::{Invalid, Time};
use rand::Rng;

use crate::header::Advice;
use crate::tag::Tag;

/// How a flow's packets fall into runs.
pub(crate) trait Runs: Clone {
    /// What is remembered of a flow's present run.
    type Run: Clone + std::fmt::Debug;

    /// What the flows of a place share.
    type Shared: Clone + std::fmt::Debug + Default;

    /// Whether feedback matters to it: what it learns is in its runs.
    const LISTENS: bool = false;

    /// The run of a flow of which no packet has been seen.
    fn open(&self) -> Self::Run;

    /// A packet of the flow goes by: whether it belongs to the present run. If not, a new one begins with it. A flow's first packet
    /// begins its first run.
    fn continues(&self, run: &mut Self::Run, now: Time, payload: u32) -> bool;

    /// At a NIC, how many paths at most it wants to know when a flow begins; none: it knows no paths.
    fn lists(&self) -> Option<u32> {
        None
    }

    /// A flow begins that has these paths, each once.
    fn list(&self, _: &mut Self::Run, _: &[Tag]) {}

    /// At a NIC, the path of the run that begins now; none: the selector chooses.
    fn again(&self, _: &mut Self::Run, _: &mut impl Rng) -> Option<Tag> {
        None
    }

    /// At a NIC, the path of the run that has just begun, whoever has chosen it.
    fn takes(&self, _: &mut Self::Run, _: Tag) {}

    /// For how long it matters when a flow was last seen, if that is known.
    fn memory(&self) -> Option<Time> {
        None
    }

    /// Whether it wants to know how long an idle path takes.
    fn expects(&self) -> bool {
        false
    }

    /// A flow that begins would have this round-trip time on an idle path of so many hops.
    fn expect(&self, _: &mut Self::Run, _: &mut Self::Shared, _hops: u32, _rtt: Time) {}

    /// Whether a sender may send new packet `next` while `oldest` is the oldest one not acknowledged.
    fn may_send(&self, _: &Self::Run, _next: u32, _oldest: u32) -> bool {
        true
    }

    /// Whether a sender may send all new packets on the present path, whenever that is, until it learns something more. `oldest` is the oldest packet not acknowledged.
    fn is_settled(&self, _: &Self::Run, _oldest: u32) -> bool {
        false
    }

    /// A sender learnt something.
    fn on_feedback(&self, _: &mut Self::Run, _: &mut Self::Shared, _: &Feedback) -> Advice {
        Advice::Continue
    }

    /// After feedback: draws what that left to chance.
    fn draw(&self, _: &mut Self::Run, _: &mut impl Rng) {}

    /// A pause has lasted until now.
    fn on_deadline(&self, _: &mut Self::Run, _now: Time) {}

    /// How often the flow was drained, and for how long in all.
    fn drains(_: &Self::Run) -> (u32, Time) {
        (0, Time::ZERO)
    }

    /// Refuses parameter values without meaning.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }
}
