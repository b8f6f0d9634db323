//! A routing scheme as the user writes it, and which combinations make sense.

use netloom_topology::{Network, NodeId};
use netloom_units::kind::Kind;
use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::granularity::{self, Acks, Ends};
use crate::hash::HashFunction;
use crate::selector::estimator::Estimator;
use crate::selector::{Choice, Digits, NicTags, PathSet, Places, mod_k};
use crate::{Granularity, Selector};

/// Who decides on a packet's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// The sending NIC, by the entropy value that every switch hashes.
    Nic,
    /// The first switch; it picks its own port and re-draws the entropy value that later switches hash.
    Ingress,
    /// Every switch with more than one candidate.
    Switch,
}

impl Placement {
    /// Every name, as written in a scenario.
    pub const NAMES: [&'static str; 3] = ["nic", "ingress", "switch"];

    /// The name as written in a scenario.
    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }
}

/// How the bytes of a flow divide among its paths in the long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// All take one path, which does not depend on the state of the network.
    OnePath,
    /// Whatever the state of the network, each path takes as many, or at each switch each port; where paths are drawn, as many as on average.
    Evenly,
    /// Packets avoid paths with more congestion than others: so as to level it.
    Levelled,
    /// All take minimal paths as far as those have room, and the rest go over intermediate switches.
    MinimalFirst,
}

/// A routing scheme: a point of the product, and the hash that switches apply where nobody decides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Routing {
    /// Who decides.
    pub placement: Placement,
    /// Hash of (source, destination, flow, entropy value) by which switches choose where the scheme leaves it to them,
    /// and by which the adaptive selectors' decisions are judged ("how many differed from ECMP").
    pub hash: HashFunction,
    /// Whether each switch salts its hash. Without a salt, upper tiers see only flows that hashed alike below
    /// (polarisation).
    pub salt: bool,
    /// Number of entropy values a NIC uses (Flowcut's artefact: 256).
    pub entropy_values: u32,
    /// A switch that remembers flows forgets one that it has not seen for so long (a flowlet's gap does so sooner).
    pub flow_timeout: Time,
    /// Largest number of flows that a switch remembers; absent: no limit. While the table is full, packets of further flows are hashed.
    pub max_flow_entries: Option<u32>,
    /// Every n-th host uses ECMP instead, from host 0 on: see [`Self::uses_ecmp`]. Absent: none does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ecmp_every: Option<u32>,
    /// When it may choose another path.
    pub granularity: Granularity,
    /// What it decides.
    pub selector: Selector,
}

impl Routing {
    /// How the bytes of a flow divide among its paths in the long run; none if nothing but queues, gaps, losses or notifications decides that.
    ///
    /// Where runs of packets end at gaps or when nothing is in flight, their lengths depend on the traffic: from one run for each flow to many that are
    /// shorter on slower paths, as LetFlow's flowlets are (Vanini et al., NSDI'17, section 2.2).
    pub fn spread(&self) -> Option<Spread> {
        let (selector, granularity) = (self.selector.facts(), &self.granularity);
        let is_of_one_length = matches!(granularity.facts().ends, Ends::EveryPacket | Ends::AfterBytes);
        let is_blind = match selector.paths {
            PathSet::Labels => return None,
            PathSet::Weighed(_) => {
                let is_followed = is_of_one_length && self.placement == Placement::Ingress;
                return is_followed.then_some(Spread::MinimalFirst);
            }
            // Later switches would choose among ports by what they last did with packets of the same tag.
            PathSet::Detours(_) if self.placement != Placement::Ingress => return None,
            PathSet::Detours(_) | PathSet::Layers(_) | PathSet::KShortest(_) => true,
            PathSet::Minimal | PathSet::InOrder => {
                matches!(selector.choice, Choice::Uniform | Choice::InTurn)
            }
        };
        let is_levelled = !is_blind || self.acks() != Acks::Unused;
        match () {
            () if self.selector.is_static() => Some(Spread::OnePath),
            () if granularity.is_per_flow() => is_blind.then_some(Spread::OnePath),
            () if !is_of_one_length => None,
            () if is_levelled => Some(Spread::Levelled),
            () => Some(Spread::Evenly),
        }
    }

    /// The selector's name.
    pub fn selector_name(&self) -> &'static str {
        self.selector.name()
    }

    /// The granularity's name.
    pub fn granularity_name(&self) -> &'static str {
        self.granularity.name()
    }

    /// Whether the data of a host stays out of the scheme: every flow keeps one path, which switches hash. The REPS authors' public simulator (`-mixed_lb_traffic`, commit b751588) leaves out every
    /// tenth connection, which is every tenth host where each sends one flow.
    #[inline]
    pub fn uses_ecmp(&self, host: u32) -> bool {
        self.ecmp_every.is_some_and(|every| host.is_multiple_of(every))
    }

    /// Whether it reads the digits of hosts or labels as up ports, which exist on trees only.
    pub fn needs_tree(&self) -> bool {
        self.labels_at_nic() || self.labels_at_first() || self.selector.facts().digits != Digits::None
    }

    /// Which field makes it [need a tree](Self::needs_tree), and its value in words.
    pub fn asks_for_tree(&self) -> (&'static str, String) {
        if self.granularity.facts().labels {
            return ("granularity", format!("\"{}\"", self.granularity_name()));
        }
        let labels = if self.placement == Placement::Nic { " of path labels at the NIC" } else { "" };
        ("selector", format!("\"{}\"{labels}", self.selector_name()))
    }

    /// Whether packets go along the dimensions of a grid in their order.
    pub fn goes_in_order(&self) -> bool {
        matches!(self.selector.facts().paths, PathSet::InOrder)
    }

    /// Whether it looks at credits.
    pub fn needs_credits(&self) -> bool {
        self.selector.facts().signals.credits
    }

    /// How often the switches of a group report the loads of their global channels to each other, if they do.
    pub fn report_period(&self) -> Option<Time> {
        self.selector.facts().signals.reports
    }

    /// Whether NICs choose paths by what ACKs bring back, so that receivers must acknowledge.
    pub fn uses_acks(&self) -> bool {
        self.acks() != Acks::Unused
    }

    /// Whether they need an ACK of every single packet for that.
    pub fn needs_every_ack(&self) -> bool {
        self.acks() == Acks::OfEveryPacket
    }

    /// Whether paths are chosen by round-trip times from which is taken what serialisation added, or flows wait for that.
    pub fn uses_serialisation(&self) -> bool {
        self.granularity.facts().serialisation
    }

    /// Whether NICs find out by probes, control packets of their own, how long paths take.
    pub fn sends_probes(&self) -> bool {
        self.placement == Placement::Nic && self.granularity.facts().probes
    }

    /// Whether NICs choose paths by the marks that ACKs bring back, so that the fabric must mark.
    pub fn uses_marks(&self) -> bool {
        matches!(self.acks(), Acks::Marks | Acks::MarksOrTrims)
    }

    /// Whether packets that lose their payload inform such NICs well enough, so that a fabric that trims need not mark.
    pub fn uses_trims(&self) -> bool {
        self.acks() == Acks::MarksOrTrims
    }

    /// What ACKs must bring back to NICs.
    fn acks(&self) -> Acks {
        match self.placement {
            Placement::Nic => self.granularity.facts().acks,
            Placement::Ingress | Placement::Switch => Acks::Unused,
        }
    }

    /// Whether a flow's packets may be on several paths at a time, one packet after the other.
    pub fn scatters(&self) -> bool {
        self.granularity.facts().ends == Ends::EveryPacket
    }

    /// Whether hosts can leave a path for another one in mid-flow: a flow that decides once keeps its path, and a flowcut its own until it is empty.
    pub fn leaves_paths(&self) -> bool {
        self.placement == Placement::Nic && !self.granularity.keeps_path()
    }

    /// Whether hosts can leave a path that they know to be dead. One of several `subflows` of a flow can also where each keeps the path that it
    /// was given: it takes another one in its place.
    pub fn leaves_dead_paths(&self, subflows: bool) -> bool {
        let keeps_its_path = self.placement == Placement::Nic && self.granularity.is_per_flow();
        self.leaves_paths() || subflows && keeps_its_path
    }

    /// Whether what answers a packet goes another way back if it carries another tag: not where all answers go by layer 0.
    pub fn answers_leave_paths(&self, subflows: bool) -> bool {
        let tags = self.selector.facts().nic_tags();
        let answers_stay = matches!(tags, Some(NicTags::Numbered { answers_follow: false, .. }));
        self.leaves_dead_paths(subflows) && !answers_stay
    }

    /// Whether hosts that leave paths do so as well when a flow's window is cut or its timer expires.
    pub(crate) fn redraws_on_loss(&self) -> bool {
        let tags = self.selector.facts().nic_tags();
        self.leaves_paths() && matches!(tags, Some(NicTags::Numbered { redraws_on_loss: true, .. }))
    }

    /// Whether NICs draw nothing but flows' first paths, and those among paths without numbers, which counts as no decision.
    pub fn draws_first_paths_only(&self) -> bool {
        let has_numbers = matches!(self.selector.facts().nic_tags(), Some(NicTags::Numbered { .. }));
        self.placement == Placement::Nic && self.granularity.is_per_flow() && !has_numbers
    }

    /// How ports estimate their rates, if that is needed.
    pub fn estimator(&self) -> Option<&Estimator> {
        self.selector.facts().signals.rates
    }

    /// Whether paths are distinguished by drawn [entropy values](Self::entropy_values): not by labels, layers, intermediate switches or lists of paths.
    pub fn draws_entropy(&self) -> bool {
        let facts = self.selector.facts();
        match self.placement {
            Placement::Nic => {
                matches!(facts.nic_tags(), Some(NicTags::Entropy | NicTags::EntropyInTurn))
            }
            // Later switches hash the entropy value, so a new one takes a flow to a new path beyond the ingress switch's port, too.
            Placement::Ingress => !self.labels_at_first() && facts.places != Places::FirstSwitch,
            Placement::Switch => false,
        }
    }

    /// Whether a switch looks into headers for their [hash](Self::hash).
    pub fn hashes(&self) -> bool {
        self.selector.facts().reads_hash
    }

    /// Whether hosts can [stay out](Self::uses_ecmp) of it: their packets are not expected anywhere.
    fn can_be_left(&self) -> bool {
        let selector = self.selector.facts();
        let has_signals = self.has_edges() || self.conga().is_some() || self.selector.uncongested().is_some();
        let counts = self.granularity.facts().ends == Ends::WhenEmpty;
        match self.placement {
            Placement::Nic => {
                let tags = selector.nic_tags();
                let draws = matches!(tags, Some(NicTags::Entropy | NicTags::EntropyInTurn | NicTags::Labels));
                draws && !self.granularity.is_per_flow()
            }
            Placement::Switch => {
                let chooses = !matches!(selector.choice, Choice::Hash | Choice::Static);
                chooses && selector.is_minimal() && !counts && !has_signals
            }
            Placement::Ingress => false,
        }
    }

    /// Whether switches remember flows.
    fn remembers(&self) -> bool {
        self.placement != Placement::Nic && !self.selector.is_static() && self.granularity.facts().remembers
    }

    /// Whether switches forget flows by their [age](Self::flow_timeout), and not sooner as flowlets do.
    pub fn ages(&self) -> bool {
        let is_by_gap = self.granularity.memory().is_some() && !self.keeps_last_path();
        self.remembers() && !is_by_gap
    }

    /// Whether the last path of a flow matters beyond the run of packets that took it: a selector that writes labels may keep it.
    pub(crate) fn keeps_last_path(&self) -> bool {
        self.selector.facts().labels()
    }

    /// Whether NICs write labels on packets, by whose digits switches forward.
    pub(crate) fn labels_at_nic(&self) -> bool {
        self.placement == Placement::Nic && self.selector.facts().nic_tags() == Some(NicTags::Labels)
    }

    /// Whether first switches write labels on packets, by whose digits others forward.
    pub(crate) fn labels_at_first(&self) -> bool {
        self.granularity.facts().labels || self.selector.facts().labels()
    }

    /// The divisor by which a switch reads its digit of a host's number or of a path label, for [`SwitchPathSelector::new`](crate::SwitchPathSelector::new);
    /// 1 on networks that are no trees.
    pub fn stride(&self, network: &Network, switch: NodeId) -> u32 {
        let up = network.up_stride(network.level(switch));
        // The digits of ⌊D / h⌋ are those of D behind the factor h.
        if self.selector.facts().digits == Digits::Leaf {
            up.saturating_mul(mod_k::hosts_per_leaf(network))
        } else {
            up
        }
    }

    /// Refuses networks that are no trees where the scheme needs one, whose hosts do not have the numbers that it needs, or that are not connected where it needs a connected
    /// network.
    ///
    /// # Errors
    /// Names the field to change and says what would be valid.
    pub fn fits(&self, network: &Network) -> Result<(), Invalid> {
        if self.needs_tree() && !network.is_tree() {
            let (field, name) = self.asks_for_tree();
            let why = network.why_no_tree().map(|why| format!(": {why}")).unwrap_or_default();
            let (expected, found) =
                (format!("a tree topology for {name}"), format!("{}{why}", network.name()));
            return Err(Invalid { field: field.into(), expected, found });
        }
        let fits = !self.goes_in_order() || network.is_grid();
        let expected = "another one, or a grid of dimensions: a torus, mesh or HyperX";
        let found = format!("{} on {}", quoted(self.selector.name()), network.name());
        Invalid::unless(fits, "selector", expected, found)?;
        let fits = self.selector.facts().digits != Digits::Leaf || mod_k::leaves_are_alike(network);
        let expected = "\"host\", or as many hosts at every leaf switch, numbered one leaf after the other";
        Invalid::unless(fits, "selector.by", expected, format!("\"leaf\" on {}", network.name()))?;
        let fits = network.components() == 1 || !matches!(self.selector.facts().paths, PathSet::Layers(_));
        let expected = "another one where planes or scale-up networks are not connected with each other, as layers are made of all switches of one network";
        Invalid::unless(fits, "selector", expected, quoted(self.selector.name()))
    }

    /// Refuses what takes the switches that have hosts to be the leaves of a network, or numbers paths between them, where every switch has a host that reduces.
    ///
    /// # Errors
    /// Names the field to change and says what would be valid.
    pub fn fits_reduction_units(&self) -> Result<(), Invalid> {
        let why =
            "where switches reduce (workload \"sharp-like\"), so that not only leaf switches have hosts";
        let facts = self.selector.facts();
        let is_minimal = matches!(facts.paths, PathSet::Minimal) && facts.digits == Digits::None;
        let expected = format!(
            "one that chooses among minimal ports, such as \"hash\", \"random\" or \"least-loaded\", {why}"
        );
        Invalid::unless(is_minimal, "selector", expected, quoted(self.selector_name()))?;
        let is_without_edges = !self.has_edges() && !self.labels_at_nic() && !self.labels_at_first();
        let expected = format!("one that needs no signals between leaf switches, {why}");
        Invalid::unless(is_without_edges, "granularity", expected, quoted(self.granularity_name()))
    }

    /// Refuses combinations that make no sense or are not built.
    ///
    /// # Errors
    /// Names the field to change and says what would be valid.
    pub fn check(&self) -> Result<(), Invalid> {
        let (granularity, selector) = (&self.granularity, &self.selector);
        let (runs, choice) = (granularity.facts(), selector.facts());
        let (nic, is_first) = (self.placement == Placement::Nic, self.placement == Placement::Ingress);
        let selects =
            |valid, expected: String| Invalid::unless(valid, "selector", expected, quoted(selector.name()));
        let decides = |valid, place: Placement, why: &str| {
            let expected = format!("\"{}\", as {why}", place.name());
            Invalid::unless(valid, "placement", expected, quoted(self.placement.name()))
        };
        let at_nic = Selector::names_where(|facts| facts.nic_tags().is_some());
        let at_nic = format!("{at_nic}, as a NIC picks entropy values, not ports");
        selects(!nic || choice.nic_tags().is_some(), at_nic)?;
        let by_sender = format!("\"{}\" is chosen by the sender", selector.name());
        decides(nic || !matches!(choice.places, Places::Nic(_)), Placement::Nic, &by_sender)?;
        if runs.decides_control {
            let decides = self.placement == Placement::Switch && choice.decides_control;
            let which = Selector::names_where(|facts| facts.decides_control);
            let expected =
                format!("false, or placement \"switch\" with {which}: others decide on data only;");
            Invalid::unless(decides, "granularity.control", expected, "true")?;
        }
        let by_sender = format!("\"{}\" is decided by the sender", granularity.name());
        decides(nic || runs.places != granularity::Places::Nic, Placement::Nic, &by_sender)?;
        let by_first = format!("\"{}\" is decided by the first switch", granularity.name());
        decides(is_first || runs.places != granularity::Places::FirstSwitch, Placement::Ingress, &by_first)?;
        let alike = format!("\"flow\", or another selector, as \"{}\" always decides alike", selector.name());
        let is_alike = selector.is_static() && !granularity.is_per_flow();
        Invalid::unless(!is_alike, "granularity", alike, quoted(granularity.name()))?;
        let follows = format!("\"{}\" needs every switch to follow it", selector.name());
        decides(!is_first || !selector.is_static(), Placement::Switch, &follows)?;
        let listens = format!("\"{}\" needs every switch to listen", selector.name());
        decides(!is_first || selector.uncongested().is_none(), Placement::Switch, &listens)?;
        let by_first = format!("\"{}\" is decided by the first switch", selector.name());
        decides(is_first || choice.places != Places::FirstSwitch, Placement::Ingress, &by_first)?;
        granularity.check_scheme(self)?;
        selector.check_scheme(self)?;
        Invalid::at_least("entropy_values", self.entropy_values, 1)?;
        if let Some(entries) = self.max_flow_entries {
            let expected = "nothing unless switches remember flows: a granularity other than \"packet\", an adaptive or random selector, and \
                            placement \"ingress\" or \"switch\";";
            Invalid::unless(self.remembers(), "max_flow_entries", expected, entries)?;
            Invalid::at_least("max_flow_entries", entries, 1)?;
        }
        if let Some(every) = self.ecmp_every {
            Invalid::at_least("ecmp_every", every, 1)?;
            let expected = "nothing unless hosts draw entropy values or labels again and again, or all switches choose among minimal ports by queues or at random, without signals between them";
            Invalid::unless(self.can_be_left(), "ecmp_every", expected, every)?;
        }
        Invalid::unless(self.flow_timeout > Time::ZERO, "flow_timeout", "more than 0", self.flow_timeout)?;
        granularity.check().map_err(|invalid| invalid.within("granularity"))?;
        selector.check().map_err(|invalid| invalid.within("selector"))
    }
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

/// Some names in words: any one of them.
pub(crate) fn any_of<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let mut names: Vec<String> = names.map(quoted).collect();
    match names.pop() {
        Some(last) if !names.is_empty() => format!("{} or {last}", names.join(", ")),
        last => last.unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::granularity::flowcut::{Flowcut, Measures};
    use crate::preset;
    use crate::selector::layer::{Construction, First, Layer, WithinLayer};

    #[test]
    fn every_preset_is_valid() {
        for preset in preset::PRESETS {
            assert_eq!(preset.routing().check(), Ok(()), "{}", preset.name);
        }
    }

    #[test]
    fn options_of_switches_are_refused_elsewhere() {
        let mut scheme = preset::find("spray-round-robin").unwrap().routing();
        assert_eq!(scheme.check(), Ok(()));
        scheme.placement = Placement::Nic;
        assert_eq!(scheme.check().unwrap_err().field, "granularity.control");
        scheme.granularity = Granularity::Packet(Default::default());
        assert_eq!(scheme.check().unwrap_err().field, "selector.reshuffle");
        let mut scheme = preset::find("valiant").unwrap().routing();
        scheme.granularity = Granularity::Packet(crate::granularity::packet::Packet { control: true });
        assert_eq!(scheme.check().unwrap_err().field, "granularity.control");
        let mut scheme = preset::find("flowcut").unwrap().routing();
        scheme.granularity = Granularity::Flowcut(Flowcut { keep_idle: true, ..Flowcut::default() });
        assert_eq!(scheme.check().unwrap_err().field, "granularity.keep_idle");
    }

    #[test]
    fn hosts_stay_out_of_schemes_whose_packets_are_not_counted_or_answered() {
        let allowed = |name: &str| {
            let own = preset::find(name).unwrap().routing();
            let mixed = Routing { ecmp_every: Some(10), ..own };
            mixed.check().map_err(|invalid| assert_eq!(invalid.field, "ecmp_every", "{name}")).is_ok()
        };
        for name in ["reps", "plb", "flowbender", "uet-bitmap", "path-list", "presto", "spray-nic", "hopper"]
        {
            assert!(allowed(name), "{name}");
        }
        for name in ["spray", "adaptive", "drill", "letflow", "spectrum-x-like"] {
            assert!(allowed(name), "{name}");
        }
        for name in [
            "ecmp",
            "d-mod-k",
            "conga",
            "conweave",
            "flowcut",
            "ugal-l",
            "switch-ar",
            "fatpaths",
            "spritz-scout",
        ] {
            assert!(!allowed(name), "{name}");
        }
        let mixed = Routing { ecmp_every: Some(10), ..preset::find("reps").unwrap().routing() };
        let out: Vec<u32> = (0..32).filter(|&host| mixed.uses_ecmp(host)).collect();
        assert_eq!(out, [0, 10, 20, 30]);
        let none = Routing { ecmp_every: Some(0), ..mixed };
        assert_eq!(none.check().unwrap_err().to_string(), "ecmp_every: expected at least 1, found 0");
    }

    #[test]
    fn senseless_products_are_refused_with_a_way_out() {
        let mut scheme = preset::find("flowcut-nic").unwrap().routing();
        scheme.granularity = Granularity::Flowcut(Flowcut { max_ood: 3, ..Flowcut::default() });
        assert_eq!(scheme.check(), Ok(()));
        scheme.placement = Placement::Switch;
        assert_eq!(scheme.check().unwrap_err().field, "granularity.max_ood");
        scheme.placement = Placement::Ingress;
        assert_eq!(scheme.check(), Ok(()));
        scheme.max_flow_entries = Some(5);
        assert_eq!(scheme.check().unwrap_err().field, "granularity.max_ood");
        scheme.max_flow_entries = None;
        scheme.granularity =
            Granularity::Flowcut(Flowcut { measured_at: Measures::Every, ..Flowcut::default() });
        assert_eq!(scheme.check().unwrap_err().field, "granularity.measured_at");
        scheme.placement = Placement::Switch;
        scheme.granularity = Granularity::Flowcut(Flowcut { credit: 3, ..Flowcut::default() });
        assert_eq!(scheme.check(), Ok(()));
        scheme.placement = Placement::Nic;
        assert_eq!(scheme.check().unwrap_err().field, "granularity.credit");
        scheme.granularity = Granularity::Flowcut(Flowcut { threshold: 0.9, ..Flowcut::default() });
        assert!(scheme.check().unwrap_err().to_string().contains("at least 1"));

        let mut scheme = preset::find("adaptive").unwrap().routing();
        scheme.placement = Placement::Nic;
        assert_eq!(scheme.check().unwrap_err().field, "selector");

        for name in ["valiant", "ugal-l", "par"] {
            let mut scheme = preset::find(name).unwrap().routing();
            scheme.placement = Placement::Switch;
            assert_eq!(scheme.check(), Ok(()), "{name}");
            scheme.placement = Placement::Nic;
            assert_eq!(scheme.check().unwrap_err().field, "selector");
        }

        let mut scheme = preset::find("par").unwrap().routing();
        scheme.granularity = Granularity::Flowcut(Flowcut::default());
        let error = scheme.check().unwrap_err();
        assert_eq!(error.field, "placement");
        assert!(error.to_string().contains("must know when a flowcut ends"), "{error}");
        scheme.placement = Placement::Switch;
        assert_eq!(scheme.check(), Ok(()));
        scheme.placement = Placement::Ingress;
        scheme.selector = preset::find("ugal-l").unwrap().routing().selector;
        assert_eq!(scheme.check(), Ok(()));

        let mut scheme = preset::find("switch-ar").unwrap().routing();
        scheme.placement = Placement::Ingress;
        assert_eq!(scheme.check().unwrap_err().field, "placement");

        let mut scheme = preset::find("ecmp").unwrap().routing();
        scheme.granularity = Granularity::Packet(Default::default());
        assert_eq!(scheme.check().unwrap_err().field, "granularity");

        let mut scheme = preset::find("fatpaths").unwrap().routing();
        scheme.granularity = Granularity::Flow(Default::default());
        assert!(scheme.check().unwrap_err().to_string().contains("never leave layer 0"));
        scheme.selector = Selector::Layer(Box::new(Layer { first: First::Random, ..Layer::default() }));
        assert_eq!(scheme.check(), Ok(()));
        scheme.placement = Placement::Switch;
        assert_eq!(scheme.check().unwrap_err().field, "placement");

        let mut scheme = preset::find("fatpaths").unwrap().routing();
        let construction = Construction::Spain(Default::default());
        scheme.selector = Selector::Layer(Box::new(Layer {
            within_layer: WithinLayer::Ecmp,
            construction,
            ..Layer::default()
        }));
        assert!(scheme.check().unwrap_err().to_string().contains("one path per pair"));
    }
}
