//! A routing scheme as the user writes it, and which combinations make sense.

use netloom_topology::{Network, NodeId};
use netloom_units::Time;
use netloom_units::kind::Kind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::granularity::flowcut::Flowcut;
use crate::hash::HashFunction;
use crate::selector::conga::Conga;
use crate::selector::estimator::Estimator;
use crate::selector::layer::First;
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
    pub ageing: Time,
    /// Most flows that a switch remembers; absent: as many as come. While there is no room, the packets of further flows go by their
    /// header's hash.
    pub entries: Option<u32>,
    /// When it may decide anew.
    pub granularity: Granularity,
    /// What it decides.
    pub selector: Selector,
}

/// A scheme that makes no sense, or is not built.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("routing.{field}: {reason}")]
pub struct RoutingError {
    /// The field that should change.
    pub field: &'static str,
    /// Why, and what would be valid.
    pub reason: String,
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

    /// Whether NICs choose paths by the marks that ACKs bring back, so that the fabric must mark and receivers acknowledge.
    pub fn heeds_marks(&self) -> bool {
        matches!(self.granularity, Granularity::FlowBender(_) | Granularity::Reps(_))
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
    pub fn fits(&self, network: &Network) -> Result<(), RoutingError> {
        if self.selector.facts().counts_leaves && !mod_k::leaves_are_alike(network) {
            let reason = format!(
                "by: \"leaf\" needs as many hosts at every leaf switch, numbered one leaf after the other, which {} has not; \
                 use \"host\"",
                network.name()
            );
            return Err(RoutingError { field: "selector", reason });
        }
        Ok(())
    }

    /// Refuses combinations that make no sense or are not built.
    ///
    /// # Errors
    /// Names the field to change and says what would be valid.
    pub fn check(&self) -> Result<(), RoutingError> {
        let refuse = |field, reason: String| Err(RoutingError { field, reason });
        let (granularity, selector) = (&self.granularity, &self.selector);
        let nic = self.placement == Placement::Nic;
        if nic && !selector.works_at_nic() {
            return refuse(
                "selector",
                format!(
                    "a NIC picks entropy values, not ports, so it cannot use \"{}\"; use \"hash\", \"random\", \"next-entropy\", \"round-robin\", \"layer\" or \"k-shortest\"",
                    selector.name()
                ),
            );
        }
        if selector.facts().at_nic_only && !nic {
            let reason = format!(
                "\"{}\" is chosen by the sender: expected \"nic\", found \"{}\"",
                selector.name(),
                self.placement.name()
            );
            return refuse("placement", reason);
        }
        if let Selector::Layer(layer) = selector
            && matches!(granularity, Granularity::Flow(_))
            && layer.first == First::Minimal
        {
            let reason = "first: a flow that decides once would never leave layer 0; use \"random\" or a finer granularity";
            return refuse("selector", reason.into());
        }
        if let Granularity::Flowcut(flowcut) = granularity {
            flowcut.check_place(nic).map_err(|reason| RoutingError { field: "granularity", reason })?;
        }
        if self.heeds_marks() && !nic {
            let reason = format!(
                "\"{}\" is decided by the sender: expected \"nic\", found \"{}\"",
                granularity.name(),
                self.placement.name()
            );
            return refuse("placement", reason);
        }
        if self.weaves() && self.placement != Placement::Ingress {
            let found = self.placement.name();
            let reason = format!(
                "\"conweave\" is decided by the first switch: expected \"ingress\", found \"{found}\""
            );
            return refuse("placement", reason);
        }
        if self.weaves() && !matches!(selector, Selector::Random(_)) {
            let reason = format!(
                "\"conweave\" draws among paths that are not busy: expected \"random\", found \"{}\"",
                selector.name()
            );
            return refuse("selector", reason);
        }
        if selector.is_static() && !matches!(granularity, Granularity::Flow(_)) {
            return refuse(
                "granularity",
                format!(
                    "\"{}\" always decides alike, so deciding again per {} changes nothing; use \"flow\" or another selector",
                    selector.name(),
                    granularity.name()
                ),
            );
        }
        if self.placement == Placement::Ingress && selector.is_static() {
            return refuse(
                "placement",
                format!("\"{}\" needs every switch to follow it; use \"switch\"", selector.name()),
            );
        }
        if self.placement == Placement::Ingress && selector.uncongested().is_some() {
            let reason = format!("\"{}\" needs every switch to listen; use \"switch\"", selector.name());
            return refuse("placement", reason);
        }
        // Not at every switch with flowcuts either: a way over an intermediate switch may cross a switch twice, which has one entry per flow.
        if selector.facts().at_first_switch && self.placement != Placement::Ingress {
            let reason = format!(
                "\"{}\" is decided by the first switch: expected \"ingress\", found \"{}\"",
                selector.name(),
                self.placement.name()
            );
            return refuse("placement", reason);
        }
        if self.conga().is_some() && matches!(granularity, Granularity::Flowcut(_)) {
            let reason = "expected \"flow\", \"flowlet\", \"flowcell\" or \"packet\" with \"conga\", which keeps labels for runs of packets; found \"flowcut\"";
            return refuse("granularity", reason.into());
        }
        if let Selector::Ugal(ugal) = selector
            && ugal.progressive
            && matches!(granularity, Granularity::Flowcut(_))
        {
            let reason = "progressive: only the first switch knows when a flowcut ends, so a later one would break its order; use the \
                          preset \"ugal-l\"";
            return refuse("selector", reason.into());
        }
        if self.entropy_values == 0 {
            return refuse("entropy_values", "expected at least 1, found 0".into());
        }
        let remembers = !nic && !selector.is_static() && !matches!(granularity, Granularity::Packet(_));
        if self.entries.is_some() && !remembers {
            let reason = "has a meaning only where switches remember flows: a granularity other than \"packet\", an adaptive or random \
                          selector, and placement \"ingress\" or \"switch\"";
            return refuse("entries", reason.into());
        }
        if self.entries == Some(0) {
            return refuse("entries", "expected at least 1, found 0".into());
        }
        if self.ageing == Time::ZERO {
            return refuse("ageing", "expected more than 0".into());
        }
        granularity.check().map_err(|reason| RoutingError { field: "granularity", reason })?;
        selector.check().map_err(|reason| RoutingError { field: "selector", reason })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;
    use crate::selector::layer::{Construction, Layer, WithinLayer};

    #[test]
    fn every_preset_is_valid() {
        for preset in preset::PRESETS {
            assert_eq!(preset.routing().check(), Ok(()), "{}", preset.name);
        }
    }

    #[test]
    fn senseless_products_are_refused_with_a_way_out() {
        let mut scheme = preset::find("flowcut-nic").unwrap().routing();
        scheme.granularity = Granularity::Flowcut(Flowcut { max_ood: 3, ..Flowcut::default() });
        assert_eq!(scheme.check(), Ok(()));
        scheme.placement = Placement::Switch;
        assert_eq!(scheme.check().unwrap_err().field, "granularity");
        scheme.granularity = Granularity::Flowcut(Flowcut { credit: 3, ..Flowcut::default() });
        assert_eq!(scheme.check(), Ok(()));
        scheme.placement = Placement::Nic;
        assert_eq!(scheme.check().unwrap_err().field, "granularity");
        scheme.granularity = Granularity::Flowcut(Flowcut { threshold: 0.9, ..Flowcut::default() });
        assert!(scheme.check().unwrap_err().to_string().contains("at least 1"));

        let mut scheme = preset::find("adaptive").unwrap().routing();
        scheme.placement = Placement::Nic;
        assert_eq!(scheme.check().unwrap_err().field, "selector");

        let mut scheme = preset::find("valiant").unwrap().routing();
        scheme.placement = Placement::Switch;
        assert_eq!(scheme.check().unwrap_err().field, "placement");

        let mut scheme = preset::find("par").unwrap().routing();
        scheme.placement = Placement::Switch;
        assert_eq!(scheme.check().unwrap_err().field, "placement");
        scheme.granularity = Granularity::Flowcut(Flowcut::default());
        assert_eq!(scheme.check().unwrap_err().field, "placement");
        scheme.placement = Placement::Ingress;
        assert!(scheme.check().unwrap_err().to_string().contains("only the first switch knows"));
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
