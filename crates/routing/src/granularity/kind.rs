//! What every granularity declares and does.

use netloom_transport::Feedback;
use netloom_units::{Invalid, Time};
use rand::Rng;

use crate::header::Advice;
use crate::scheme::Routing;
use crate::tag::Tag;

/// A kind of granularity: its parameters, what they say of it, and how a flow's packets fall into runs.
pub(crate) trait GranularityConfig: Clone {
    /// What is remembered of a flow's present run.
    type Run: Clone + std::fmt::Debug;

    /// What the flows of a place share.
    type Shared: Clone + std::fmt::Debug + Default;

    /// What it needs and is able to do.
    fn facts(&self) -> Facts;

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

    /// Whether it also wants to know how long these paths are.
    fn weighs(&self) -> bool {
        false
    }

    /// The hops between switches of the paths that have been [listed](Self::list), in the same order.
    fn weigh(&self, _: &mut Self::Run, _hops: &[u32]) {}

    /// At a NIC, the path of the run that begins now; none: the selector chooses.
    fn again(&self, _: &mut Self::Run, _: &mut impl Rng) -> Option<Tag> {
        None
    }

    /// At a NIC, the path of the run that has just begun, by whatever it was chosen.
    fn takes(&self, _: &mut Self::Run, _: Tag) {}

    /// For how long it matters when a flow was last seen, if that is known.
    fn memory(&self) -> Option<Time> {
        None
    }

    /// Whether it wants to know how long an idle path takes.
    fn expects(&self) -> bool {
        false
    }

    /// A flow that begins would have this round-trip time on an idle path of this many hops.
    fn expect(&self, _: &mut Self::Run, _: &mut Self::Shared, _hops: u32, _rtt: Time) {}

    /// Whether a sender may send new packet `next` while `oldest` is the oldest one not acknowledged. Only asked of kinds whose [facts](Facts) say that they hold flows back.
    fn may_send(&self, _: &Self::Run, _next: u32, _oldest: u32) -> bool {
        true
    }

    /// Whether a sender may send all new packets on the present path, whenever that is, until it learns something more. `oldest` is the oldest packet not acknowledged.
    fn is_settled(&self, _: &Self::Run, _oldest: u32) -> bool {
        false
    }

    /// A sender learnt something. Not called for kinds whose [facts](Facts) say that they go by nothing that ACKs bring.
    fn on_feedback(&self, _: &mut Self::Run, _: &mut Self::Shared, _: &Feedback) -> Advice;

    /// After feedback: draws what that left to chance.
    fn draw(&self, _: &mut Self::Run, _: &mut impl Rng) {}

    /// How many probes are to leave now, each on a path that the selector draws.
    fn unsent_probes(&self, _: &Self::Run) -> u32 {
        0
    }

    /// One of them may leave by this path: whether it does.
    fn probe(&self, _: &mut Self::Run, _path: Tag, _now: Time) -> bool {
        false
    }

    /// The answer to a probe came, which left by this path and then.
    fn on_probe_answer(&self, _: &mut Self::Run, _path: Tag, _sent: Time, _now: Time) -> Advice {
        Advice::Continue
    }

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

    /// Refuses schemes of which it cannot be a part for reasons of its own, beyond what its [facts](Facts) say. `scheme` has it as its
    /// granularity; fields are named from the scheme on.
    fn check_scheme(&self, _scheme: &Routing) -> Result<(), Invalid> {
        Ok(())
    }
}

/// What a kind of granularity needs and is able to do. Every kind states all of it: what is left out does not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Facts {
    /// Where it can be decided.
    pub(crate) places: Places,
    /// What ends a run of packets that keep their path.
    pub(crate) ends: Ends,
    /// Switches that decide by it remember flows: a packet's path depends on the packets before it.
    pub(crate) remembers: bool,
    /// What ACKs must bring back to a sender that decides by it.
    pub(crate) acks: Acks,
    /// A sender that decides by it needs to know what serialisation added to a packet's way.
    pub(crate) serialisation: bool,
    /// It may [keep a flow from sending](GranularityConfig::may_send).
    pub(crate) holds_back: bool,
    /// A sender that decides by it sends [probes](GranularityConfig::probe), control packets that find out how long other paths take.
    pub(crate) probes: bool,
    /// A packet's first switch writes the label of its path on it.
    pub(crate) labels: bool,
    /// Selectors also choose the ports of ACKs and other control packets.
    pub(crate) decides_control: bool,
}

/// Where a kind of granularity can be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    /// At NICs or switches.
    Any,
    /// By the sender, at its NIC.
    Nic,
    /// By a packet's first switch.
    FirstSwitch,
}

/// What ends a run of packets that keep their path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ends {
    /// Nothing but the end of the flow.
    WithFlow,
    /// The moment at which nothing of the flow is in flight.
    WhenEmpty,
    /// Something in mid-flow that depends on the traffic: a gap, feedback.
    InMidFlow,
    /// A number of bytes.
    AfterBytes,
    /// Every packet, so that packets of a flow may be on several paths at a time.
    EveryPacket,
}

/// What ACKs must bring back to a sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acks {
    /// It goes by nothing that they bring.
    Unused,
    /// What arrives, or how long it takes.
    Any,
    /// The same of every single packet.
    OfEveryPacket,
    /// Congestion marks.
    Marks,
    /// Congestion marks, or the loss of payloads in a fabric that trims.
    MarksOrTrims,
}
