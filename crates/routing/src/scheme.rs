//! A routing scheme as the user writes it, and which combinations make sense.

use netloom_topology::{Network, NodeId};
use netloom_units::kind::Kind;
use netloom_units::{Invalid, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::granularity::flowcut::Flowcut;
use crate::hash::HashFunction;
use crate::selector::conga::Conga;
use crate::selector::estimator::Estimator;
use crate::selector::layer::{Acks, First};
use crate::selector::least_loaded::By;
use crate::selector::mod_k;
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
    /// Most flows that a switch remembers; absent: as many as come. While there is no room, the packets of further flows go by their
    /// header's hash.
    pub max_flow_entries: Option<u32>,
    /// When it may decide anew.
    pub granularity: Granularity,
    /// What it decides.
    pub selector: Selector,
}

impl Routing {
    /// The selector's name.
    pub fn selector_name(&self) -> &'static str {
        self.selector.name()
    }

    /// The granularity's name.
    pub fn granularity_name(&self) -> &'static str {
        self.granularity.name()
    }

    /// Whether it reads the digits of hosts or labels as up ports, which exist on trees only.
    pub fn needs_tree(&self) -> bool {
        let has_labels = self.placement == Placement::Nic && matches!(self.selector, Selector::RoundRobin(_));
        has_labels || self.weaves() || self.selector.facts().needs_tree
    }

    /// Which field makes it [need a tree](Self::needs_tree), and its value in words.
    pub fn asks_for_tree(&self) -> (&'static str, String) {
        if self.weaves() {
            return ("granularity", format!("\"{}\"", self.granularity_name()));
        }
        let labels = if self.placement == Placement::Nic { " of path labels at the NIC" } else { "" };
        ("selector", format!("\"{}\"{labels}", self.selector_name()))
    }

    /// Whether it looks at credits.
    pub fn needs_credits(&self) -> bool {
        matches!(&self.selector, Selector::Ugal(ugal) if ugal.needs_credits())
    }

    /// How often the switches of a group tell each other the loads of their global channels, if they do.
    pub fn report_period(&self) -> Option<Time> {
        match &self.selector {
            Selector::Ugal(ugal) => ugal.report_period(),
            _ => None,
        }
    }

    /// How flows fall into flowcuts that switches count, if they do.
    pub fn counted_flowcuts(&self) -> Option<&Flowcut> {
        match &self.granularity {
            Granularity::Flowcut(flowcut) if self.placement != Placement::Nic => Some(flowcut),
            _ => None,
        }
    }

    /// Whether NICs choose paths by what ACKs bring back, so that receivers must acknowledge.
    pub fn heeds_acks(&self) -> bool {
        self.heeds_marks() || matches!(self.granularity, Granularity::PathList(_) | Granularity::PlbDelay(_))
    }

    /// Whether NICs choose paths by the marks that ACKs bring back, so that the fabric must mark.
    pub fn heeds_marks(&self) -> bool {
        matches!(self.granularity, Granularity::FlowBender(_) | Granularity::Plb(_) | Granularity::Reps(_))
    }

    /// Whether packets that lose their payload tell such NICs enough, so that a fabric that trims need not mark.
    pub fn heeds_trims(&self) -> bool {
        matches!(self.granularity, Granularity::Reps(_))
    }

    /// Whether a flow's packets may take several ways at once, one after the other.
    pub fn scatters(&self) -> bool {
        matches!(self.granularity, Granularity::Packet(_) | Granularity::Reps(_) | Granularity::PathList(_))
    }

    /// Whether hosts can leave a path for another one in mid-flow: a flow that decides once keeps its path, and a flowcut its own until it is empty.
    pub fn leaves_paths(&self) -> bool {
        self.placement == Placement::Nic
            && !matches!(self.granularity, Granularity::Flow(_) | Granularity::Flowcut(_))
    }

    /// Whether hosts can leave a path that they know to be dead. One of several `subflows` of a flow can also where each keeps the path that it
    /// was given: it takes another one in its place.
    pub fn leaves_dead_paths(&self, subflows: bool) -> bool {
        let keeps_its_path =
            self.placement == Placement::Nic && matches!(self.granularity, Granularity::Flow(_));
        self.leaves_paths() || subflows && keeps_its_path
    }

    /// Whether what answers a packet goes another way back if it carries another tag: not where all answers go by layer 0.
    pub fn answers_leave_paths(&self, subflows: bool) -> bool {
        self.leaves_dead_paths(subflows)
            && !matches!(&self.selector, Selector::Layer(layer) if layer.acks == Acks::Minimal)
    }

    /// The way in which leaf switches tell each other of congestion, if they do.
    pub fn conga(&self) -> Option<&Conga> {
        match &self.selector {
            Selector::Conga(conga) => Some(conga),
            _ => None,
        }
    }

    /// How ports estimate their rates, if somebody asks.
    pub fn estimator(&self) -> Option<&Estimator> {
        match &self.selector {
            Selector::Conga(conga) => Some(&conga.estimator),
            Selector::LeastLoaded(least) if least.by != By::Queue => Some(&least.estimator),
            _ => None,
        }
    }

    /// Whether paths are told apart by drawn [entropy values](Self::entropy_values): not by labels, layers, intermediate switches or lists of paths.
    pub fn draws_entropy(&self) -> bool {
        match self.placement {
            Placement::Nic => matches!(self.selector, Selector::Random(_) | Selector::NextEntropy(_)),
            // Later switches hash the entropy value, so a new one takes a flow to a new path beyond the ingress switch's port, too.
            Placement::Ingress => !self.labels_at_first() && !self.selector.facts().at_first_switch,
            Placement::Switch => false,
        }
    }

    /// Whether a switch looks into headers for their [hash](Self::hash).
    pub fn hashes(&self) -> bool {
        !matches!(self.selector, Selector::DModK(_) | Selector::SModK(_))
    }

    /// Whether switches remember flows.
    fn remembers(&self) -> bool {
        self.placement != Placement::Nic
            && !self.selector.is_static()
            && !matches!(self.granularity, Granularity::Packet(_))
    }

    /// Whether switches forget flows by their [age](Self::flow_timeout), and not sooner as flowlets do.
    pub fn ages(&self) -> bool {
        let is_by_gap = matches!(self.granularity, Granularity::Flowlet(_)) && self.conga().is_none();
        self.remembers() && !is_by_gap
    }

    /// Whether first switches write labels on packets, by whose digits others forward.
    pub(crate) fn labels_at_first(&self) -> bool {
        self.weaves() || self.conga().is_some()
    }

    /// Whether first switches re-route by ConWeave's epochs, and last switches restore the order.
    pub fn weaves(&self) -> bool {
        matches!(self.granularity, Granularity::ConWeave(_))
    }

    /// The divisor by which a switch reads its digit of a host's number or of a path label, for [`Decider::of_switch`](crate::Decider::of_switch);
    /// 1 on networks that are no trees.
    pub fn stride(&self, network: &Network, switch: NodeId) -> u32 {
        let up = network.up_stride(network.level(switch));
        // The digits of ⌊D / h⌋ are those of D behind the factor h.
        if self.selector.facts().counts_leaves {
            up.saturating_mul(mod_k::hosts_per_leaf(network))
        } else {
            up
        }
    }

    /// Refuses networks whose hosts do not have the numbers that the scheme needs. Whether a tree is needed says
    /// [`Self::needs_tree`].
    ///
    /// # Errors
    /// Names the field to change and says what would be valid.
    pub fn fits(&self, network: &Network) -> Result<(), Invalid> {
        let fits = !self.selector.facts().counts_leaves || mod_k::leaves_are_alike(network);
        let expected = "\"host\", or as many hosts at every leaf switch, numbered one leaf after the other";
        Invalid::unless(fits, "selector.by", expected, format!("\"leaf\" on {}", network.name()))
    }

    /// Refuses combinations that make no sense or are not built.
    ///
    /// # Errors
    /// Names the field to change and says what would be valid.
    pub fn check(&self) -> Result<(), Invalid> {
        let (granularity, selector) = (&self.granularity, &self.selector);
        let nic = self.placement == Placement::Nic;
        let selects =
            |valid, expected: &str| Invalid::unless(valid, "selector", expected, quoted(selector.name()));
        let decides = |valid, place: Placement, why: &str| {
            let expected = format!("\"{}\", as {why}", place.name());
            Invalid::unless(valid, "placement", expected, quoted(self.placement.name()))
        };
        let runs = |valid, expected: &str| {
            Invalid::unless(valid, "granularity", expected, quoted(granularity.name()))
        };
        selects(
            !nic || selector.works_at_nic(),
            "\"hash\", \"random\", \"next-entropy\", \"round-robin\", \"layer\" or \"k-shortest\", as a NIC picks entropy values, not ports",
        )?;
        let by_sender = format!("\"{}\" is chosen by the sender", selector.name());
        decides(nic || !selector.facts().at_nic_only, Placement::Nic, &by_sender)?;
        if let Granularity::Packet(packet) = granularity {
            let decides = self.placement == Placement::Switch
                && matches!(
                    selector,
                    Selector::Random(_)
                        | Selector::RoundRobin(_)
                        | Selector::LeastLoaded(_)
                        | Selector::Drill(_)
                );
            let expected = "false, or placement \"switch\" with \"random\", \"round-robin\", \"least-loaded\" or \"drill\": others decide on data only;";
            Invalid::unless(decides || !packet.control, "granularity.control", expected, "true")?;
        }
        if let Selector::RoundRobin(in_turn) = selector {
            let rounds = in_turn.reshuffle.filter(|_| nic);
            let expected = "nothing at the NIC, where path labels come by number;";
            rounds.map_or(Ok(()), |rounds| Err(Invalid::new("selector.reshuffle", expected, rounds)))?;
        }
        if let Selector::Layer(layer) = selector {
            let leaves_first = !matches!(granularity, Granularity::Flow(_)) || layer.first != First::Minimal;
            let expected = "\"random\", or a granularity finer than \"flow\" (a flow that decides once would never leave layer 0)";
            Invalid::unless(leaves_first, "selector.first", expected, "\"minimal\"")?;
        }
        if let Granularity::Flowcut(flowcut) = granularity {
            let is_bounded = self.max_flow_entries.is_some();
            flowcut
                .check_place(self.placement, is_bounded)
                .map_err(|invalid| invalid.within("granularity"))?;
        }
        let by_sender = format!("\"{}\" is decided by the sender", granularity.name());
        decides(nic || !self.heeds_acks(), Placement::Nic, &by_sender)?;
        let is_first = self.placement == Placement::Ingress;
        let by_first = format!("\"{}\" is decided by the first switch", granularity.name());
        decides(is_first || !self.weaves(), Placement::Ingress, &by_first)?;
        selects(
            !self.weaves() || matches!(selector, Selector::Random(_)),
            "\"random\", as \"conweave\" draws among paths that are not busy",
        )?;
        let is_flow = matches!(granularity, Granularity::Flow(_));
        let alike = format!("\"flow\", or another selector, as \"{}\" always decides alike", selector.name());
        runs(is_flow || !selector.is_static(), &alike)?;
        let follows = format!("\"{}\" needs every switch to follow it", selector.name());
        decides(!is_first || !selector.is_static(), Placement::Switch, &follows)?;
        let listens = format!("\"{}\" needs every switch to listen", selector.name());
        decides(!is_first || selector.uncongested().is_none(), Placement::Switch, &listens)?;
        let by_first = format!("\"{}\" is decided by the first switch", selector.name());
        decides(is_first || !selector.facts().at_first_switch, Placement::Ingress, &by_first)?;
        let has_flowcuts = matches!(granularity, Granularity::Flowcut(_));
        runs(
            !has_flowcuts || self.conga().is_none(),
            "\"flow\", \"flowlet\", \"flowcell\" or \"packet\" with \"conga\", which keeps labels for runs of packets",
        )?;
        if let Selector::Ugal(ugal) = selector {
            let every = !ugal.progressive || !has_flowcuts || self.placement == Placement::Switch;
            decides(every, Placement::Switch, "switches that decide again must know when a flowcut ends")?;
        }
        Invalid::at_least("entropy_values", self.entropy_values, 1)?;
        if let Some(entries) = self.max_flow_entries {
            let expected = "nothing unless switches remember flows: a granularity other than \"packet\", an adaptive or random selector, and \
                            placement \"ingress\" or \"switch\";";
            Invalid::unless(self.remembers(), "max_flow_entries", expected, entries)?;
            Invalid::at_least("max_flow_entries", entries, 1)?;
        }
        Invalid::unless(self.flow_timeout > Time::ZERO, "flow_timeout", "more than 0", self.flow_timeout)?;
        granularity.check().map_err(|invalid| invalid.within("granularity"))?;
        selector.check().map_err(|invalid| invalid.within("selector"))
    }
}

fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::granularity::flowcut::Measures;
    use crate::preset;
    use crate::selector::layer::{Construction, Layer, WithinLayer};

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
