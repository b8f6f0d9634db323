//! FatPaths' selector: a NIC draws a layer, and every switch forwards by that layer's table.

use std::path::PathBuf;

use netloom_paths::Scheme;
use netloom_paths::routes::{Minimal, OverlapMinimising, Past, RandomLayers, Spain};
use netloom_units::kind::Kind;
use netloom_units::{Invalid, kinds};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Selector;
use super::kind::{Choice, Digits, Facts, NicTags, PathSet, Places, SelectorConfig, Signals, SwitchContext};
use super::random::Draw;
use crate::scheme::Routing;

/// Layered routing: packets carry a layer's number as their entropy value, and every switch forwards by that layer's table. Each decision
/// draws uniformly from the layers that connect the two switches (FatPaths, SC 2020, sec. V; SPAIN, NSDI 2010). At a NIC only.
///
/// `netloom route SCENARIO SRC DST --entropy 3` shows the path in layer 3. Links that are cut for the whole run are in no layer. Windows
/// and slowdowns refer to the minimal path. `netloom layers SPEC --out FILE` saves the layers that a run with the same seed builds, and
/// `construction = { kind = "file", file = "FILE" }` reads them, which saves the time to build them and lets several runs or another
/// program use the same ones.
///
/// The granularity says what a flow learns its layer from: `flowbender` and `plb` from marks, `plb-delay` and `flowcut` from round-trip
/// times (`flowcut` in order), `reps` per packet from marks or trimming, `path-list` per packet.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Layer {
    /// Where a flow starts: on layer 0, which in FatPaths' constructions has all links (`minimal`), or on a drawn
    /// layer (`random`). A decision per flow is made at the start, so it needs `random`.
    pub first: First,
    /// How switches forward inside a layer: by the one port of its table (`single-path`), or by the hash of the header among all
    /// ports that begin a shortest path inside the layer (`ecmp`).
    pub within_layer: WithinLayer,
    /// The layer of ACKs, NACKs and PULLs: that of the packet that they answer (`same`), so that a sender that leaves a layer with dead
    /// links leaves those of the return path, too; or 0 (`minimal`). The paper does not say.
    ///
    /// It makes little difference unless links fail or layer 0 is full: mean completion times differ by less than 2%
    /// (`docs/studies-fatpaths-simulation.md`).
    pub acks: Acks,
    /// How the layers are made.
    pub construction: Construction,
}

/// The layer of what answers data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Acks {
    /// Layer 0.
    Minimal,
    /// That of the data.
    Same,
}

/// The layer on which a flow starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum First {
    /// Layer 0.
    Minimal,
    /// A drawn one.
    Random,
}

/// How switches forward inside a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum WithinLayer {
    /// By the table's one port.
    SinglePath,
    /// By the header's hash among the ports that begin a shortest path inside the layer.
    Ecmp,
}

/// Layers that were saved before by `netloom layers`, for this network without any link cut.
///
/// A file of another network is refused; a network without its cut links counts as another one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Saved {
    /// The file.
    pub file: PathBuf,
}

kinds! {
    /// How layers are made: the schemes of path analysis that end in forwarding tables, or a file of such tables.
    pub enum Construction: "construction" {
        "fatpaths-random" => RandomLayers(RandomLayers),
        "fatpaths-overlap" => OverlapMinimising(OverlapMinimising),
        "spain" => Spain(Spain),
        "past" => Past(Past),
        "minimal" => Minimal(Minimal),
        "file" => File(Saved),
    }
}

impl Default for Layer {
    fn default() -> Self {
        Layer {
            first: First::Minimal,
            within_layer: WithinLayer::SinglePath,
            acks: Acks::Same,
            construction: Construction::RandomLayers(RandomLayers::default()),
        }
    }
}

/// The layer is drawn.
impl SelectorConfig for Box<Layer> {
    type State = Draw;

    fn state(&self, _: SwitchContext) -> Draw {
        Draw
    }

    fn facts(&self) -> Facts<'_> {
        Facts {
            places: Places::Nic(NicTags::Numbered {
                redraws_on_loss: true,
                answers_follow: self.acks == Acks::Same,
            }),
            choice: Choice::Adaptive,
            decides_control: false,
            digits: Digits::None,
            reads_hash: true,
            signals: Signals::NONE,
            paths: PathSet::Layers(self),
        }
    }

    fn check(&self) -> Result<(), Invalid> {
        if let Construction::File(Saved { file }) = &self.construction {
            let is_named = !file.as_os_str().is_empty();
            Invalid::unless(
                is_named,
                "construction.file",
                "the name of a file that `netloom layers` wrote",
                "none",
            )?;
        }
        let is_tree = matches!(self.construction, Construction::Spain(_) | Construction::Past(_));
        if self.within_layer == WithinLayer::Ecmp && is_tree {
            let name = self.construction.name();
            let expected = format!("\"single-path\", as a layer of \"{name}\" has one path per pair");
            return Err(Invalid::new("within_layer", expected, "\"ecmp\""));
        }
        Ok(())
    }

    fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
        let leaves_first = !scheme.granularity.is_per_flow() || self.first != First::Minimal;
        let expected = "\"random\", or a granularity finer than \"flow\" (a flow that decides once would never leave layer 0)";
        Invalid::unless(leaves_first, "selector.first", expected, "\"minimal\"")
    }
}

impl Selector {
    /// The layers among which it chooses, if it does.
    pub fn layer(&self) -> Option<&Layer> {
        match self {
            Selector::Layer(layer) => Some(layer),
            _ => None,
        }
    }
}

impl Construction {
    /// The same construction as path analysis knows it; none for a file.
    pub fn scheme(&self) -> Option<Scheme> {
        Some(match self.clone() {
            Construction::RandomLayers(config) => Scheme::RandomLayers(config),
            Construction::OverlapMinimising(config) => Scheme::OverlapMinimising(config),
            Construction::Spain(config) => Scheme::Spain(config),
            Construction::Past(config) => Scheme::Past(config),
            Construction::Minimal(config) => Scheme::Minimal(config),
            Construction::File(_) => return None,
        })
    }

    /// How many layers there will be at most, where that is known beforehand.
    pub(crate) fn layers(&self) -> Option<u32> {
        match self {
            Construction::RandomLayers(config) => Some(config.layers),
            Construction::OverlapMinimising(config) => Some(config.layers),
            Construction::Spain(config) => config.layers,
            Construction::Past(config) => Some(config.layers),
            Construction::Minimal(config) => Some(config.layers),
            Construction::File(_) => None,
        }
    }
}
