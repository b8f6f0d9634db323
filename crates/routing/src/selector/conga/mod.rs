//! CONGA: leaf switches report to each other how congested the paths between them are.
//!
//! A flow's first switch, its leaf, chooses a path through the tree and writes its label on the packet. Every switch along the path raises the packet's
//! *congestion* to that of the link on which it sends it, by the port's rate estimator, so the last switch learns the congestion of the
//! path's worst link. It remembers that per leaf and path, and writes one entry of it on every packet that goes back to that leaf. So each leaf
//! knows how congested its paths to each other leaf have lately been, and a new flowlet takes the path for which the greater of that and the
//! congestion of its own port is least (Alizadeh et al., SIGCOMM'14).
//!
//! ```text
//!   leaf a ── label 3, congestion 0 ──▶ spine ── label 3, congestion 5 ──▶ leaf b     from[a][3] = 5
//!   leaf a     to[b][3] = 5 ◀── any packet of b's hosts to a's, "path 3: 5" ───────── leaf b
//! ```

mod at_switch;
mod leaf;

pub(crate) use leaf::Leaf;

use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Selector;
use super::estimator::Estimator;
use super::kind::{Choice, Digits, Facts, PathSet, Places, SelectorConfig, Signals, SwitchContext};
use super::random::Draw;
use crate::granularity::{self, Ends, Granularity};
use crate::scheme::Routing;

/// The least congested path between two leaf switches, as the flow's first switch knows it from its own ports' rate estimators and from
/// feedback of the last switch. Alizadeh et al., CONGA, SIGCOMM'14. On trees of any number of levels: a path is a label, and its congestion
/// that of its worst link between the two leaves. ACKs are hashed. The defaults are the paper's; the preset `conga-rdma` is what ConWeave's
/// public code does (`src/point-to-point/model/conga-routing.cc` of its ns-3 fork), where that differs.
///
/// A port's estimator is a register that grows by what is counted and loses the share `discount` every `period`. Data packets carry their
/// path's label and the congestion of the worst link so far. The last switch stores that per leaf and path, and every packet that its hosts send
/// carries one entry to the destination's leaf.
/// A run of packets (flow, flowlet, flowcell or packet) keeps its path; a new run leaves the
/// old path only for a strictly better one, unless `keeps` is off.
///
/// More than 4,095 paths between two leaves (1,023 with `capped = false`) are refused, and so is any network that is not a tree.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Conga {
    /// How ports measure their congestion.
    pub estimator: Estimator,
    /// Bits to which congestion is rounded down, 1 to 4.
    pub bits: u8,
    /// How long feedback about a path counts; afterwards the path is assumed idle.
    pub ageing: Time,
    /// Which packets ports count.
    pub counts: Counts,
    /// Whether a link's congestion is at most 2^bits − 1, which a link in full use has. If not, it is at most 63: where packets count as
    /// they join the queue, a port to which more is sent than it can carry differs from one in full use. Then networks may have 1,023 paths
    /// between two leaves, otherwise 4,095.
    pub capped: bool,
    /// Which packets carry feedback between leaves.
    pub feedback: Feedback,
    /// Which path's congestion a packet carries as feedback.
    pub order: Order,
    /// Number of consecutive paths that are compared, starting at a random one. Absent, or where there are fewer paths: all. ConWeave's public code compares 4.
    pub candidates: Option<u32>,
    /// Whether a flow whose path is among the least congested keeps it. If not, one of these is drawn.
    pub keeps: bool,
}

/// Which packets count in a port's rate estimate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Counts {
    /// All, when their transmission begins.
    #[default]
    Sent,
    /// Data between two leaves, when the switch has decided on the port: what a packet carries of its link includes the packet itself.
    Routed,
}

/// Which packets carry feedback between leaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Feedback {
    /// Data, ACKs and whatever else hosts send.
    #[default]
    All,
    /// Data only.
    Data,
}

/// Which path a packet reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// The next in turn, and first those whose congestion has changed since it was last sent.
    #[default]
    ChangedFirst,
    /// A random one of the paths on which something has arrived within `ageing`.
    Random,
}

impl Default for Conga {
    /// The paper's.
    fn default() -> Self {
        Conga {
            estimator: Estimator::default(),
            bits: 3,
            ageing: Time::from_ms(10),
            counts: Counts::default(),
            capped: true,
            feedback: Feedback::default(),
            order: Order::default(),
            candidates: None,
            keeps: true,
        }
    }
}

impl Routing {
    /// How leaf switches report congestion to each other, if they do.
    pub fn conga(&self) -> Option<&Conga> {
        match &self.selector {
            Selector::Conga(conga) => Some(conga),
            _ => None,
        }
    }
}

/// How a label and a congestion share 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Bits of a label.
    label_bits: u32,
    /// The bits of the congestion of a packet's path.
    of_path: u32,
}

impl Layout {
    const fn new(label_bits: u32) -> Self {
        Layout { label_bits, of_path: (1 << u16::BITS) - (1 << label_bits) }
    }

    /// The label that says that there is none; others are below it.
    const fn none(self) -> u16 {
        (1 << self.label_bits) - 1
    }

    /// The most paths between two leaves that labels can distinguish.
    pub fn most_paths(self) -> u32 {
        self.none().into()
    }

    /// The label of the path in a packet's [bits](Marking::bits).
    pub const fn label(self, bits: u32) -> u32 {
        bits & self.none() as u32
    }

    /// A packet's [bits](Marking::bits) once it is sent on a link of this congestion.
    #[inline]
    pub fn raise(self, bits: u32, congestion: u8) -> u32 {
        let raised = (bits & self.of_path).max(u32::from(congestion) << self.label_bits);
        bits & !self.of_path | raised
    }

    /// The greatest congestion.
    #[expect(clippy::cast_possible_truncation, reason = "a label has at least 10 of the 16 bits")]
    const fn most(self) -> u8 {
        ((1u32 << (u16::BITS - self.label_bits)) - 1) as u8
    }
}

impl Conga {
    /// How what leaves write on packets is put into bits.
    pub fn layout(&self) -> Layout {
        if self.capped { const { Layout::new(12) } } else { const { Layout::new(10) } }
    }
}

/// Most bits of a congestion.
const MOST_BITS: u8 = 4;

/// One leaf's report to another about a path that leads to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Report {
    /// The path's label.
    pub label: u16,
    /// Congestion of its worst link.
    pub congestion: u8,
}

/// What leaves write on a packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marking {
    /// Label of its path.
    pub label: u16,
    /// Congestion of the worst link so far.
    pub congestion: u8,
    /// The report to the leaf where it goes.
    pub report: Option<Report>,
}

impl Marking {
    /// The packet is sent on a link of this congestion.
    #[inline]
    pub fn raise(&mut self, congestion: u8) {
        self.congestion = self.congestion.max(congestion);
    }

    /// As it is written in a packet.
    pub fn bits(self, layout: Layout) -> u32 {
        let report = self.report.unwrap_or(Report { label: layout.none(), congestion: 0 });
        let half = |label: u16, congestion: u8| u32::from(label) | u32::from(congestion) << layout.label_bits;
        half(self.label, self.congestion) | half(report.label, report.congestion) << 16
    }

    /// As it is read from a packet.
    #[expect(clippy::cast_possible_truncation, reason = "fields of a word")]
    pub fn from_bits(bits: u32, layout: Layout) -> Self {
        let half = |bits: u32| (bits as u16 & layout.none(), ((bits as u16) >> layout.label_bits) as u8);
        let ((label, congestion), (reported, how)) = (half(bits), half(bits >> 16));
        let report = (reported < layout.none()).then_some(Report { label: reported, congestion: how });
        Marking { label, congestion, report }
    }
}

impl SelectorConfig for Conga {
    type State = Draw;

    fn state(&self, _: SwitchContext) -> Draw {
        Draw
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::FirstSwitch,
            choice: Choice::Adaptive,
            decides_control: false,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals { rates: Some(&self.estimator), ..Signals::NONE },
            paths: PathSet::Labels,
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        self.estimator.check()?;
        let bits = (1..=MOST_BITS).contains(&self.bits);
        Invalid::unless(bits, "bits", format!("1 to {MOST_BITS}"), self.bits)?;
        Invalid::unless(self.ageing > Time::ZERO, "ageing", "more than 0", self.ageing)?;
        self.candidates.map_or(Ok(()), |candidates| Invalid::at_least("candidates", candidates, 1))
    }

    fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
        let granularities = Granularity::names_where(|facts| {
            facts.places == granularity::Places::Any && facts.ends != Ends::WhenEmpty
        });
        let expected = format!("{granularities} with \"conga\", which keeps labels for runs of packets");
        let has_runs = scheme.granularity.facts().ends != Ends::WhenEmpty;
        Invalid::unless(has_runs, "granularity", expected, format!("\"{}\"", scheme.granularity_name()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn bits_in_a_packet_are_raised_as_what_they_stand_for_is(
            label in 0u16..1023, path in 0u8..16, here in 0u8..16, report in prop::option::of((0u16..1023, 0u8..16)), capped: bool,
        ) {
            let layout = Conga { capped, ..Conga::default() }.layout();
            let report = report.map(|(label, congestion)| Report { label, congestion });
            let mut marking = Marking { label, congestion: path, report };
            let bits = marking.bits(layout);
            prop_assert_eq!(layout.label(bits), u32::from(label));
            marking.raise(here);
            prop_assert_eq!(marking.congestion, path.max(here));
            prop_assert_eq!(Marking::from_bits(layout.raise(bits, here), layout), marking);
        }
    }
}
