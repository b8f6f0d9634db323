//! What every kind of selector declares and does.

use netloom_paths::routes::KShortest;
use netloom_units::recurrence::Walk;
use netloom_units::{Invalid, Time};
use rand::Rng;

use super::congestion::Uncongested;
use super::estimator::Estimator;
use super::layer::Layer;
use super::ugal::Ugal;
use super::valiant::Valiant;
use crate::header::{Candidates, Header, Notice, View};
use crate::scheme::Routing;

/// A kind of selector: its parameters, and what they say of it.
pub(crate) trait SelectorConfig {
    /// The kind at work at one switch.
    type State: PortSelector;

    /// It at a switch where it remembers nothing yet.
    fn state(&self, context: SwitchContext) -> Self::State;

    /// What it needs and is able to do.
    fn facts(&self) -> Facts<'_>;

    /// Refuses parameter values without meaning.
    fn check(&self) -> Result<(), Invalid> {
        Ok(())
    }

    /// Refuses schemes of which it cannot be a part for reasons of its own, beyond what its [facts](Facts) say. `scheme` has it as its
    /// selector; fields are named from the scheme on.
    fn check_scheme(&self, _scheme: &Routing) -> Result<(), Invalid> {
        Ok(())
    }
}

/// What a kind of selector needs and is able to do. Every kind states all of it: what is left out does not compile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts<'a> {
    /// Where it can decide.
    pub(crate) places: Places,
    /// On what its choice depends.
    pub(crate) choice: Choice,
    /// It can also choose the ports of ACKs and other control packets.
    pub(crate) decides_control: bool,
    /// Of which numbers it reads the digits that are up ports of a tree.
    pub(crate) digits: Digits,
    /// Switches hash headers where it decides: for its choice, for control packets, or to judge its decisions.
    pub(crate) reads_hash: bool,
    /// What it goes by besides queues.
    pub(crate) signals: Signals<'a>,
    /// The paths among which it chooses.
    pub(crate) paths: PathSet<'a>,
}

/// Where a kind of selector can decide.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Places {
    /// At switches: the first one of a packet, or all.
    Switches,
    /// At a packet's first switch only.
    FirstSwitch,
    /// At the sender's NIC only, which chooses among these tags.
    Nic(NicTags),
    /// At a NIC, which chooses among these tags, or at switches.
    NicOrSwitches(NicTags),
}

/// The tags among which a NIC chooses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NicTags {
    /// One entropy value per flow, which never changes.
    Constant,
    /// Entropy values, at random.
    Entropy,
    /// Entropy values, one after the other.
    EntropyInTurn,
    /// Path labels, one after the other.
    Labels,
    /// The numbers of paths or layers.
    Numbered {
        /// A flow also takes another one when its window is cut or its timer expires.
        redraws_on_loss: bool,
        /// What answers a packet carries its tag. If not, all answers go by the same layer.
        answers_follow: bool,
    },
}

/// On what a choice depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice {
    /// On the header's hash alone, as where nothing decides.
    Hash,
    /// On the header alone: it is always the same for all packets of a flow, and for ACKs as for data.
    Static,
    /// On nothing: a uniform draw among all candidates.
    Uniform,
    /// On what was sent before and nothing else: each candidate has its turn.
    InTurn,
    /// On the state of the network, or, among numbered paths at a NIC, on a draw that this may narrow.
    Adaptive,
}

/// Of which numbers a selector reads digits. Up ports are digits on trees only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digits {
    /// Of none.
    None,
    /// Of a host's number.
    Host,
    /// Of the index of a host's leaf switch.
    Leaf,
}

/// What a selector goes by besides the queues of its switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Signals<'a> {
    /// Congestion notifications; while there are none, it takes this port.
    pub(crate) notices: Option<Uncongested>,
    /// Estimates of its ports' rates.
    pub(crate) rates: Option<&'a Estimator>,
    /// The credits that have not come back.
    pub(crate) credits: bool,
    /// The loads of other switches of its group, reported with this period.
    pub(crate) reports: Option<Time>,
}

impl Signals<'_> {
    /// Nothing.
    pub(crate) const NONE: Self = Signals { notices: None, rates: None, credits: false, reports: None };
}

/// The paths among which a selector chooses.
#[derive(Clone, Copy, Debug)]
pub(crate) enum PathSet<'a> {
    /// Minimal ports at each switch.
    Minimal,
    /// Minimal paths of grids, dimension by dimension.
    InOrder,
    /// Minimal paths of trees by their labels, which a packet's first switch writes.
    Labels,
    /// Routing layers.
    Layers(&'a Layer),
    /// Detours over a drawn intermediate switch, on which a packet's first switch decides; later ones decide on ports.
    Detours(&'a Valiant),
    /// Minimal paths and detours by their loads; who decides is as for `Detours`.
    Weighed(&'a Ugal),
    /// The k shortest paths.
    KShortest(&'a KShortest),
}

impl Facts<'_> {
    /// Whether all of its paths are minimal.
    pub(crate) fn is_minimal(&self) -> bool {
        matches!(self.paths, PathSet::Minimal | PathSet::InOrder | PathSet::Labels)
    }

    /// Whether its paths have numbers by which their lengths are known.
    pub(crate) fn has_lengths(&self) -> bool {
        matches!(self.paths, PathSet::KShortest(_))
    }

    /// The tags among which a NIC chooses by it; none if it picks ports.
    pub(crate) fn nic_tags(&self) -> Option<NicTags> {
        match self.places {
            Places::Nic(tags) | Places::NicOrSwitches(tags) => Some(tags),
            Places::Switches | Places::FirstSwitch => None,
        }
    }

    /// Whether it sends packets over intermediate switches.
    pub(crate) fn detours(&self) -> bool {
        matches!(self.paths, PathSet::Detours(_) | PathSet::Weighed(_))
    }

    /// Whether a packet's first switch writes the label of its path on it.
    pub(crate) fn labels(&self) -> bool {
        matches!(self.paths, PathSet::Labels)
    }
}

/// A selector at work at one switch: its parameters and what it remembers there.
pub(crate) trait PortSelector {
    /// The position of the port that a packet takes.
    fn pick(&mut self, query: Query<'_>, view: &mut impl View, random: &mut impl Rng) -> usize;

    /// A congestion notification was made here or passes by.
    fn notice(&mut self, _: &Notice, _: PortContext) {}

    /// [Recurs](netloom_units::recurrence): passes through what it remembers. Only kinds whose [choices recur](Routing::choices_recur) need to.
    fn recur(&mut self, _: &mut Walk) {}

    /// Why a data packet takes its port while nothing has been learnt; none if there is no more to say than the kind's name.
    fn words(&self, _: &Header, _ports: usize) -> Option<String> {
        None
    }
}

/// What a selector knows of its switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchContext {
    /// Divisor of D-mod-k and S-mod-k.
    pub(crate) stride: u32,
}

/// A packet for which one of several ports is to be chosen.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) header: &'a Header,
    pub(crate) candidates: Candidates<'a>,
    /// Hash of the header at this switch.
    pub(crate) hash: u32,
    /// Position of the port that it would take without adaptation.
    pub(crate) home: usize,
    pub(crate) now: Time,
}

/// The ports that a notification is about.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PortContext {
    /// Position of the congested port.
    pub(crate) place: usize,
    /// Number of ports that lead to the destination.
    pub(crate) ports: usize,
    /// Position of the uncongested choice, if all packets to the destination have the same.
    pub(crate) home: Option<usize>,
    pub(crate) now: Time,
}
