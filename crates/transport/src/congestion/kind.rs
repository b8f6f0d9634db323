//! What every congestion control declares and does.
//!
//! A kind is two types in one file: its parameters, which implement [`CongestionConfig`], and what it keeps per flow, which implements
//! [`CongestionControl`]. Methods whose absence would go unnoticed have no default.

use std::fmt::Debug;
use std::marker::PhantomData;

use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Invalid, Rate, Time};

use super::bolt::{Claim, SourceNotice};
use super::pulls::Pulls;
use super::qcn::Qcn;
use super::rccc::{Demand, Rccc};
use crate::feedback::{Feedback, LinkState};
use crate::gate::Gate;
use crate::sender::{PathFacts, Queueing};

/// The parameters of a kind of congestion control, and what they say of it.
pub(crate) trait CongestionConfig {
    /// The kind at work on one flow.
    type State: CongestionControl<Config = Self>;

    /// What it needs, limits and reacts to.
    fn facts(&self) -> Facts<'_>;

    /// Refuses parameter values without meaning.
    fn check(&self) -> Result<(), Invalid>;

    /// Refuses parameter values that need ACKs, for a kind that works without.
    fn check_without_acks(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// The round-trip time of the network, where one holds for all flows: `None` inside if it is not said.
    fn network_rtt(&mut self) -> Option<&mut Option<Time>> {
        None
    }

    /// What a flow may have in flight when it begins, in bytes on the wire, and the field that says so; `None`: nothing but its rate limits it.
    fn first_window(&self, packet: Bytes, path: PathFacts) -> Option<(&'static str, Bytes)>;

    /// The control of a flow that begins. Opens its gate as far as the first window or rate allows.
    fn begin(&self, start: Start, gate: &mut Gate) -> Self::State;
}

/// A flow that begins.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Start {
    pub(crate) path: PathFacts,
    /// A full packet on the wire.
    pub(crate) packet: Bytes,
    /// Its payload.
    pub(crate) payload: Bytes,
    pub(crate) now: Time,
}

/// Why a flow is not known to recur whose congestion control does not say when it does: a sentence's subject.
pub(crate) const REACTS: &str = "a congestion control that reacts";

/// A congestion control at work on one flow: what moves its gate.
pub(crate) trait CongestionControl: Clone + Debug {
    /// Its parameters.
    type Config: ?Sized;

    /// Whether what comes back can change anything. If not, the sender takes a shorter way.
    const LEARNS: bool;

    /// Whether [`Self::on_feedback`] does anything with an ACK. If not, the sender need not find out what it says.
    const REACTS_TO_ACKS: bool = true;

    /// Whether its window can shrink below a packet, so that round-trip times must be measured: they space single packets.
    const SHRINKS_BELOW_A_PACKET: bool;

    /// Whether it chooses the entropy values of packets, in [`Self::path`].
    const CHOOSES_PATHS: bool;

    /// Whether it has timers, of which [`Self::due`] speaks.
    const HAS_TIMERS: bool = false;

    /// Whether it knows, in [`Self::queueing`], what waits on the path and how much it aims at.
    const KNOWS_QUEUEING: bool = false;

    /// The sender learnt something. Returns whether that cuts the window or the rate.
    fn on_feedback(&mut self, config: &Self::Config, feedback: &Feedback, gate: &mut Gate) -> bool;

    /// [Recurs](netloom_units::recurrence) as what a flow of this number keeps. Unless a kind says how its state does, a flow of it is not known to.
    fn recur(&mut self, _config: &Self::Config, _flow: u64, walk: &mut Walk) {
        walk.refuse(REACTS);
    }

    /// A packet of that many bytes on the wire leaves. One that sets a rate must call [`Gate::on_sent`], one that needs credit [`Gate::spend`].
    fn on_sent(&mut self, now: Time, bytes: u64, gate: &mut Gate);

    /// The SYN got lost: a window that adapts begins with a single packet (RFC 5681, section 3.1).
    fn begin_with_one(&mut self, gate: &mut Gate);

    /// When to call [`Self::on_timer`]; only where it [has timers](Self::HAS_TIMERS).
    fn due(&self, _config: &Self::Config) -> Option<Time> {
        None
    }

    /// A timer may be due. Returns whether that cuts the rate.
    fn on_timer(&mut self, _config: &Self::Config, _now: Time, _gate: &mut Gate) -> bool {
        false
    }

    /// The path of the packet that has just left, where the control knows it; `toss` returns true with the given probability.
    fn path(&mut self, _config: &Self::Config, _toss: impl FnOnce(f64) -> bool) -> Option<u32> {
        None
    }

    /// How long the next message of a stream waits after the last packet of the one before.
    fn between_messages(&self, _config: &Self::Config) -> Option<Time> {
        None
    }

    /// Beyond slow start the window grows by at most that many bytes per byte acknowledged ([`Facts::coupled`]).
    fn couple(&mut self, _per_byte: f64) {}

    /// An ACK is about to arrive that brings what the links of its packet's path wrote ([`Facts::telemetry`]).
    fn on_telemetry(&mut self, _links: impl Iterator<Item = LinkState>) {}

    /// A PULL arrived, with the number that counts itself and those before, or what they have granted ([`Facts::pulls`]).
    fn on_pull(&mut self, _count: u32, _gate: &mut Gate) {}

    /// How far the receiver should grant, as the packet says that has just left ([`Asking::Credit`]).
    fn pull_target(&mut self, _demand: Demand) -> Option<u32> {
        None
    }

    /// Whether the receiver has been asked for more credit than it has granted ([`Asking::Credit`]).
    fn awaits_credit(&self) -> bool {
        false
    }

    /// What it knows of the queues on the flow's path, if it goes by these.
    fn queueing(&self) -> Option<Queueing> {
        None
    }

    /// What the packet claims that has just left, while so much is unsent, itself included ([`Bolt`](super::bolt::Bolt)).
    fn claim(&self, _unsent: Bytes) -> Claim {
        Claim::NONE
    }

    /// A switch notifies of congestion ([`Bolt`](super::bolt::Bolt)). Returns whether that cuts the window.
    fn on_source_notice(&mut self, _: &Self::Config, _now: Time, _: SourceNotice, _: &mut Gate) -> bool {
        false
    }

    /// That many packets have arrived that no ACK of their own acknowledges.
    fn on_arrivals(&mut self, _packets: u32) {}

    /// A notification of congestion (CNP) arrived, in a packet of its own or with an answer ([`Facts::cnp_interval`]). Returns whether that cuts
    /// the rate at once.
    fn on_cnp(&mut self, _now: Time, _gate: &mut Gate) -> bool {
        false
    }
}

/// What a congestion control needs, limits and reacts to. Every kind declares all of it: there are no defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts<'a> {
    /// Its name in messages, in mid-sentence.
    pub title: &'static str,
    /// What limits a flow.
    pub limit: Limit,
    /// Whether what a flow may have in flight grows while all goes well.
    pub grows: bool,
    /// Whether it works only with a reliability that has ACKs.
    pub needs_acks: bool,
    /// What the fabric's ECN marks are to it.
    pub marks: Marks,
    /// What makes a flow slower.
    pub slowed_by: SlowedBy,
    /// Whether the windows of a flow's subflows grow together.
    pub coupled: bool,
    /// Least time between two notifications of congestion (CNPs) that a receiver sends of a flow whose packets are marked; zero: ACKs and NACKs
    /// carry them; `None`: it ignores them.
    pub cnp_interval: Option<Time>,
    /// Bytes on the wire that switches write on data packets, and receivers on ACKs, for it (in-band telemetry); `None`: it reads none.
    pub telemetry: Option<Bytes>,
    /// How receivers ask for packets with PULLs; `None`: they do not.
    pub pulls: Option<Asking<'a>>,
    /// The rate limiters, one per destination, that the fabric's congestion notification messages (CNMs) slow down; `None`: it has none.
    pub reaction_point: Option<&'a Qcn>,
    /// The parameter that only a fabric which trims packets makes sense of, if it is set.
    pub needs_trimming: Option<&'static str>,
    /// The parameter that bounds a flow's rate, and that bound, if it is set.
    pub max_rate: Option<(&'static str, Rate)>,
    /// The delay that it aims at, if it does.
    pub target_delay: Option<TargetDelay>,
    /// Without which signal in a whole run it has certainly done nothing, where that is worth a warning.
    pub acts_on: Option<Signal>,
}

/// How receivers ask for packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Asking<'a> {
    /// A PULL for each packet or header that has come.
    Packets(&'a Pulls),
    /// PULLs grant credit that senders say they could use.
    Credit(&'a Rccc),
}

impl<'a> Asking<'a> {
    /// Where each PULL is for a packet.
    #[inline]
    pub fn packets(self) -> Option<&'a Pulls> {
        match self {
            Asking::Packets(pulls) => Some(pulls),
            Asking::Credit(_) => None,
        }
    }

    /// Where PULLs grant credit.
    #[inline]
    pub fn credit(self) -> Option<&'a Rccc> {
        match self {
            Asking::Packets(_) => None,
            Asking::Credit(rccc) => Some(rccc),
        }
    }
}

/// What limits a flow before the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Nothing.
    None,
    /// A window of bytes in flight alone.
    Window,
    /// A rate, perhaps with a window.
    Rate,
    /// Credit for single packets.
    Credit,
    /// Nothing of the flow's own, but a rate per destination that its flows share.
    DestinationRate,
}

/// What ECN marks are to a congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marks {
    /// It does not work without: a fabric that marks nothing is refused.
    Required,
    /// Its main signal: a fabric that marks nothing deserves a warning.
    Expected,
    /// It ignores them, or uses them beside others.
    Optional,
}

/// What makes a flow slower.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowedBy {
    /// Nothing.
    Nothing,
    /// Marks alone.
    Marks,
    /// Losses and refusals, or notifications, or delays, whether anything is marked or not.
    MoreThanMarks,
}

/// A target for the delay of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TargetDelay {
    /// The parameter that sets it.
    pub field: &'static str,
    /// Its constant part.
    pub base: Time,
    /// What every hop adds.
    pub per_hop: Time,
    /// What else raises it, in words.
    pub besides: &'static str,
}

/// A signal of congestion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// Packets that are marked or lost.
    MarksOrLosses,
    /// Notifications by receivers of marked packets (CNPs).
    Cnps,
    /// Notifications by switches (CNMs).
    Cnms,
}

/// The control of a flow that nothing moves, with parameters `C`.
#[derive(Clone, Debug)]
pub(crate) struct Still<C>(PhantomData<C>);

impl<C> Still<C> {
    pub(crate) fn new() -> Self {
        Still(PhantomData)
    }
}

impl<C: Clone + Debug> CongestionControl for Still<C> {
    type Config = C;

    const LEARNS: bool = false;
    const REACTS_TO_ACKS: bool = false;
    const SHRINKS_BELOW_A_PACKET: bool = false;
    const CHOOSES_PATHS: bool = false;

    #[inline]
    fn on_feedback(&mut self, _: &C, _: &Feedback, _: &mut Gate) -> bool {
        false
    }

    #[inline]
    fn on_sent(&mut self, _: Time, _: u64, _: &mut Gate) {}

    fn begin_with_one(&mut self, _: &mut Gate) {}

    fn recur(&mut self, _: &Self::Config, _: u64, _: &mut Walk) {}
}
