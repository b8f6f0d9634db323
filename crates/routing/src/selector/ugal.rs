//! UGAL: minimally or over an intermediate switch, whichever way seems less loaded.

use netloom_topology::PortId;
use netloom_units::{Bytes, Invalid, Time, kinds};
use rand::Rng;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Selector;
use super::kind::{Choice, Digits, Facts, PathSet, Places, SelectorConfig, Signals, SwitchContext};
use super::random::{Draw, below};
use super::valiant::Intermediate;
use crate::granularity::Ends;
use crate::header::View;
use crate::scheme::{Placement, Routing};

/// Universal globally-adaptive load-balanced routing: the first switch compares the loads of minimal paths and of paths over a random
/// intermediate switch, as Valiant's, and takes the one of least weight, a minimal one if equal. Packets of a run of a flow keep their
/// path. With placement `switch`, later switches do not change the intermediate switch, but choose the least loaded port towards it for
/// every run. Singh, PhD thesis, Stanford 2005; on Dragonflies Kim et al., ISCA'08, and Jiang, Kim and Dally, ISCA'09. ACKs keep to minimal
/// paths. For networks that are not trees.
///
/// The load of a path is q, its number of hops H; the kinds of `decision` say how they are compared. On a Dragonfly the non-minimal path
/// goes over a random group, elsewhere over a random switch. Runs of packets (flows, flowlets, flowcells, flowcuts) keep their path.
///
/// Refused: trees; `progressive` with flowcuts at placement `ingress`, because the switches that decide again have to know when a flowcut
/// ends (with placement `switch` they do); `load = "credits"` and `"both"` without credits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ugal {
    /// How a minimal path is compared with a non-minimal one.
    pub decision: Decision,
    /// What counts as the load of an output.
    pub load: Load,
    /// Which load counts for a path.
    pub queue: Queue,
    /// Maximum number of minimal paths compared, the first being that of the header's hash. Between groups of a Dragonfly there is one per global link
    /// that joins the two, elsewhere one per minimal port; if there are more than this, the others are drawn.
    pub minimal: u32,
    /// Paths over an intermediate switch compared, each drawn independently.
    pub non_minimal: u32,
    /// All of those go over one drawn group, by different global links if there are several to it.
    pub one_group: bool,
    /// What is drawn: a `switch` or a `group`, as for `valiant`. Absent: a group where the network has global links, otherwise a switch.
    pub intermediate: Option<Intermediate>,
    /// Progressive adaptive routing (PAR): the later switches of the source's group decide again on what goes minimally; a packet leaves
    /// its minimal path at most once. In a lossless fabric that needs one more virtual channel.
    pub progressive: bool,
}

kinds! {
    /// How a minimal way, of load q_m and H_m hops between switches, is weighed against another one, of q_n and H_n.
    pub enum Decision: "decision" {
        "hops" => Hops(Hops),
        "ratio" => Ratio(Ratio),
    }
}

/// Minimal if q_m · H_m ≤ q_n · H_n + bias (Kim et al., ISCA'08).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Hops {
    /// Bytes times hops.
    pub bias: Bytes,
}

/// Minimal if q_m ≤ ratio · q_n + bias, as in BookSim (ratio 2, bias 30 flits) and SST's merlin (2, 50 flits of 64 B).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Ratio {
    /// Weight of a byte on a path over an intermediate switch.
    pub ratio: u32,
    /// Weight of such a path without any load.
    pub bias: Bytes,
}

/// What counts as the load of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// Bytes that wait there or are being sent.
    Queue,
    /// Bytes that have been sent there and for which no credit has come back: what the next switch holds, and what is on the link there or
    /// back. Needs credits.
    Credits,
    /// The sum of both. Needs credits.
    Both,
}

impl Load {
    /// The load of a port.
    #[inline(always)]
    pub fn of(self, view: &mut impl View, port: PortId) -> u64 {
        match self {
            Load::Queue => view.load(port),
            Load::Credits => view.unreturned(port),
            Load::Both => view.load(port) + view.unreturned(port),
        }
    }
}

kinds! {
    /// Which load counts for a path.
    pub enum Queue: "queue" {
        "local" => Local(Local),
        "global" => Global(Global),
    }
}

/// UGAL-L: the load of the output port with which the path begins.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Local {}

/// UGAL-G: the load of the first global channel of the path, wherever in the group it begins. A switch knows its own queues exactly, and those of
/// other switches by reports: at every multiple of `period` a switch reports the loads of its global channels that have changed to the switches of
/// its group, over the direct links between them. A report takes the link's delay and the serialisation of 64 bytes, but no bandwidth of the data. So
/// a load is known with an age between that delay and that delay plus `period`. The textbook's UGAL-G, which knows all queues of the group at once,
/// is the limit.
/// Dragonflies only.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Global {
    /// Time between two reports.
    pub period: Time,
}

impl Default for Ugal {
    fn default() -> Self {
        Ugal {
            decision: Decision::Hops(Hops::default()),
            load: Load::Queue,
            queue: Queue::Local(Local {}),
            minimal: 1,
            non_minimal: 1,
            one_group: false,
            intermediate: None,
            progressive: false,
        }
    }
}

impl Default for Hops {
    /// Eight packets of 4 KiB, one hop each: a packet or two before a way of three hops mean no congestion.
    fn default() -> Self {
        Hops { bias: Bytes(32 << 10) }
    }
}

impl Default for Ratio {
    /// SST's, 50 flits of 64 B.
    fn default() -> Self {
        Ratio { ratio: 2, bias: Bytes(3200) }
    }
}

impl Default for Global {
    /// About the delay of a local link.
    fn default() -> Self {
        Global { period: Time::from_ns(500) }
    }
}

/// Most ways of a sort that are weighed.
const MOST_WAYS: u32 = 256;

/// The way is weighed where the paths are known, and nothing is remembered.
impl SelectorConfig for Ugal {
    type State = Draw;

    fn state(&self, _: SwitchContext) -> Draw {
        Draw
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::Switches,
            choice: Choice::Adaptive,
            decides_control: false,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals {
                credits: self.load != Load::Queue,
                reports: self.report_period(),
                ..Signals::NONE
            },
            paths: PathSet::Weighed(self),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        for (field, ways) in [("minimal", self.minimal), ("non_minimal", self.non_minimal)] {
            let fits = (1..=MOST_WAYS).contains(&ways);
            Invalid::unless(fits, field, format!("1 to {MOST_WAYS}"), ways)?;
        }
        let has_choice = !self.one_group || self.non_minimal > 1;
        let only = "false unless there are several ways, non_minimal above 1";
        Invalid::unless(has_choice, "one_group", only, self.one_group)?;
        if let Decision::Ratio(Ratio { ratio, .. }) = self.decision {
            Invalid::at_least("decision.ratio", ratio, 1)?;
        }
        if let Queue::Global(Global { period }) = self.queue {
            Invalid::unless(period > Time::ZERO, "queue.period", "more than 0", period)?;
        }
        Ok(())
    }

    fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
        let knows_ends =
            scheme.granularity.facts().ends != Ends::WhenEmpty || scheme.placement == Placement::Switch;
        let why = "switches that decide again must know when a flowcut ends";
        let expected = format!("\"{}\", as {why}", Placement::Switch.name());
        let found = format!("\"{}\"", scheme.placement.name());
        Invalid::unless(!self.progressive || knows_ends, "placement", expected, found)
    }
}

impl Ugal {
    /// What a way weighs.
    #[inline(always)]
    fn weight(&self, load: u64, hops: u32, is_minimal: bool) -> u64 {
        let (weight, bias) = match (&self.decision, is_minimal) {
            (Decision::Hops(hops_form), _) => (load.saturating_mul(u64::from(hops)), hops_form.bias),
            (Decision::Ratio(ratio), true) => (load, ratio.bias),
            (Decision::Ratio(ratio), false) => (load.saturating_mul(u64::from(ratio.ratio)), ratio.bias),
        };
        if is_minimal { weight } else { weight.saturating_add(bias.0) }
    }

    /// How often a switch reports the loads of its global channels to its group.
    pub fn report_period(&self) -> Option<Time> {
        match &self.queue {
            Queue::Local(_) => None,
            Queue::Global(global) => Some(global.period),
        }
    }

    /// Whether it can be used without credits.
    pub fn needs_credits(&self) -> bool {
        self.load != Load::Queue
    }
}

impl Routing {
    /// The loads by which ways are weighed against each other, if they are.
    pub fn ugal(&self) -> Option<&Ugal> {
        match &self.selector {
            Selector::Ugal(ugal) => Some(ugal),
            _ => None,
        }
    }
}

/// The ways weighed so far: the best of each sort.
#[derive(Clone, Debug)]
pub(crate) struct Scales<'c, W> {
    config: &'c Ugal,
    /// Minimal ways, and those over an intermediate switch.
    best: [Option<Best<W>>; 2],
}

#[derive(Clone, Copy, Debug)]
struct Best<W> {
    way: W,
    weight: u64,
    /// Ways that weigh the same.
    ties: usize,
}

impl<'c, W> Scales<'c, W> {
    #[inline(always)]
    pub(crate) fn new(config: &'c Ugal) -> Self {
        Scales { config, best: [None, None] }
    }

    /// Weighs a way. Of several of a sort that weigh the same, each is kept with the same probability.
    #[inline(always)]
    pub(crate) fn weigh(&mut self, way: W, load: u64, hops: u32, is_minimal: bool, random: &mut impl Rng) {
        let weight = self.config.weight(load, hops, is_minimal);
        let best = &mut self.best[usize::from(!is_minimal)];
        match best {
            Some(best) if best.weight < weight => {}
            Some(best) if best.weight == weight => {
                best.ties += 1;
                if below(best.ties, random) == 0 {
                    best.way = way;
                }
            }
            _ => *best = Some(Best { way, weight, ties: 1 }),
        }
    }

    /// The way to take, and whether it is a minimal one; none if none was weighed.
    #[inline(always)]
    pub(crate) fn choice(self) -> Option<(W, bool)> {
        match self.best {
            [Some(minimal), Some(other)] if minimal.weight > other.weight => Some((other.way, false)),
            [Some(minimal), _] => Some((minimal.way, true)),
            [None, other] => other.map(|other| (other.way, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a minimal way of two hops is taken against one of four.
    fn takes_minimal(decision: Decision, minimal: u64, other: u64) -> bool {
        let config = Ugal { decision, ..Ugal::default() };
        let mut random = rand_pcg::Pcg64Mcg::new(1);
        let mut scales = Scales::new(&config);
        scales.weigh('n', other, 4, false, &mut random);
        scales.weigh('m', minimal, 2, true, &mut random);
        scales.choice() == Some(('m', true))
    }

    #[test]
    fn both_decisions_are_those_of_their_formulas() {
        let hops = |bias| Decision::Hops(Hops { bias: Bytes(bias) });
        assert!(takes_minimal(hops(0), 0, 0) && takes_minimal(hops(0), 200, 100));
        assert!(!takes_minimal(hops(0), 201, 100) && !takes_minimal(hops(0), 1, 0));
        assert!(takes_minimal(hops(50), 225, 100) && !takes_minimal(hops(50), 226, 100));
        let ratio = |ratio, bias| Decision::Ratio(Ratio { ratio, bias: Bytes(bias) });
        assert!(takes_minimal(ratio(2, 30), 230, 100) && !takes_minimal(ratio(2, 30), 231, 100));
        assert!(takes_minimal(ratio(1, 0), 100, 100) && !takes_minimal(ratio(1, 0), 101, 100));
        assert!(takes_minimal(hops(0), u64::MAX, u64::MAX));
    }

    #[test]
    fn of_several_ways_the_lightest_is_taken_and_ties_are_uniform() {
        let config =
            Ugal { decision: Decision::Ratio(Ratio { ratio: 2, bias: Bytes(0) }), ..Ugal::default() };
        let mut random = rand_pcg::Pcg64Mcg::new(1);
        let mut hits = [0u32; 6];
        for _ in 0..30_000 {
            let mut scales = Scales::new(&config);
            for (way, load) in [(0, 30), (1, 20), (2, 20)] {
                scales.weigh(way, load, 2, true, &mut random);
            }
            for (way, load) in [(3, 9), (4, 12), (5, 9)] {
                scales.weigh(way, load, 5, false, &mut random);
            }
            hits[scales.choice().unwrap().0] += 1;
        }
        assert_eq!([hits[0], hits[1], hits[2], hits[4]], [0; 4]);
        // Six standard deviations of a binomial(30000, 1/2).
        assert!(hits[3].abs_diff(15_000) < 520, "{hits:?}");
    }

    #[test]
    fn numbers_without_meaning_are_refused() {
        let refusal = |config: Ugal| config.check().unwrap_err().to_string();
        assert!(refusal(Ugal { minimal: 0, ..Ugal::default() }).starts_with("minimal: expected 1 to 256"));
        assert!(refusal(Ugal { non_minimal: 300, ..Ugal::default() }).contains("non_minimal"));
        assert!(refusal(Ugal { one_group: true, ..Ugal::default() }).contains("one_group"));
        let ratio = Decision::Ratio(Ratio { ratio: 0, ..Ratio::default() });
        assert!(refusal(Ugal { decision: ratio, ..Ugal::default() }).contains("decision.ratio"));
        let queue = Queue::Global(Global { period: Time::ZERO });
        assert!(refusal(Ugal { queue, ..Ugal::default() }).contains("queue.period"));
        assert_eq!(Ugal::default().check(), Ok(()));
    }
}
