//! FatPaths' first construction: each sparse layer keeps a random share of the links.

use netloom_topology::RouterGraph;
use netloom_units::random::Analysis;
use netloom_units::{Invalid, narrow};
use rand::RngExt;
use rand::seq::SliceRandom;
use rand_pcg::Pcg64Mcg;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SchemeError, check_layers};
use crate::link_set::LinkSet;
use crate::tables::ForwardingTables;

/// Layers of randomly sampled links (FatPaths sec. V-B1, Listing 1). The first layer has all links; each further one
/// keeps a random share of them, so that its minimal paths are usually non-minimal in the whole network.
///
/// The listing also draws a vertex permutation that would orient the links of a layer and leave at most one direction of
/// a pair routable; links are kept undirected here.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RandomLayers {
    /// Number of layers, the full one included (FatPaths: 9 on bare Ethernet, 4 under TCP).
    pub layers: u32,
    /// Share of the links that a sparse layer keeps, 0 < rho <= 1.
    pub rho: f64,
    /// How links are drawn.
    pub sampling: Sampling,
    /// How often a layer that does not connect all routers is drawn again. If no draw connects them, the last one is
    /// kept, and the pairs it separates use other layers.
    pub retries: u32,
}

/// How the links of a sparse layer are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sampling {
    /// Exactly ⌊rho · links⌋ links, uniformly (the paper's text).
    Exact,
    /// Every link on its own with probability rho (the paper's listing).
    Independent,
}

impl Default for RandomLayers {
    fn default() -> Self {
        RandomLayers { layers: 9, rho: 0.6, sampling: Sampling::Exact, retries: 100 }
    }
}

impl RandomLayers {
    pub(super) fn build(&self, graph: &RouterGraph, seed: u64) -> Result<ForwardingTables, SchemeError> {
        let layers = self.layers(graph, seed)?;
        Ok(ForwardingTables::minimal(graph, layers, seed))
    }

    /// Draws the link sets of the layers.
    ///
    /// # Errors
    /// If a parameter is out of its range.
    pub fn layers(&self, graph: &RouterGraph, seed: u64) -> Result<Vec<LinkSet>, SchemeError> {
        check_layers(graph, self.layers)?;
        Invalid::unless(self.rho > 0.0 && self.rho <= 1.0, "rho", "0 < rho <= 1", self.rho)?;
        let mut rng = Analysis::RandomLayers.stream(seed);
        let mut layers = vec![LinkSet::full(graph)];
        while layers.len() < self.layers as usize {
            let mut links = self.draw(graph, &mut rng);
            for _ in 0..self.retries {
                if links.connects(graph) {
                    break;
                }
                links = self.draw(graph, &mut rng);
            }
            layers.push(links);
        }
        Ok(layers)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 0 to `count`, as rho is from 0 to 1"
    )]
    fn draw(&self, graph: &RouterGraph, rng: &mut Pcg64Mcg) -> LinkSet {
        let mut links = LinkSet::empty(graph);
        let count = narrow::<u32>(graph.edges().len());
        match self.sampling {
            Sampling::Exact => {
                let mut edges: Vec<u32> = (0..count).collect();
                let kept = (self.rho * f64::from(count)).floor() as usize;
                edges.partial_shuffle(rng, kept).0.iter().for_each(|&edge| links.insert(edge));
            }
            Sampling::Independent => {
                (0..count).filter(|_| rng.random_bool(self.rho)).for_each(|edge| links.insert(edge));
            }
        }
        links
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{complete, cycle};

    #[test]
    fn sparse_layers_keep_the_floor_of_their_share_and_stay_connected() {
        let graph = complete(20);
        let layers = RandomLayers { layers: 5, rho: 0.305, ..Default::default() }.layers(&graph, 1).unwrap();
        assert_eq!(layers.iter().map(LinkSet::len).collect::<Vec<_>>(), [190, 57, 57, 57, 57]);
        assert!(layers.iter().all(|links| links.connects(&graph)));
        assert_ne!(layers[1], layers[2]);
    }

    #[test]
    fn independent_sampling_keeps_about_its_share() {
        let graph = complete(50);
        let config = RandomLayers { layers: 9, rho: 0.4, sampling: Sampling::Independent, retries: 10 };
        let kept: usize = config.layers(&graph, 2).unwrap()[1..].iter().map(LinkSet::len).sum();
        // 9800 draws of 0.4: standard deviation 48.
        assert!(kept.abs_diff(3920) < 200, "{kept}");
    }

    #[test]
    fn layers_that_cannot_be_connected_leave_pairs_to_other_layers() {
        let ring = cycle(8);
        let tables = RandomLayers { layers: 2, rho: 0.5, ..Default::default() }.build(&ring, 1).unwrap();
        let reach = tables.validate(&ring).unwrap();
        assert_eq!(reach[0].unreached, 0);
        assert!(reach[1].unreached > 0);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let graph = complete(4);
        for rho in [0.0, -1.0, 1.5, f64::NAN] {
            assert!(RandomLayers { rho, ..Default::default() }.layers(&graph, 1).is_err());
        }
        let error = RandomLayers { layers: 0, ..Default::default() }.layers(&graph, 1).unwrap_err();
        assert_eq!(error.to_string(), "layers: expected 1 to 65,535, found 0");
        assert!(RandomLayers { layers: u32::MAX, ..Default::default() }.layers(&graph, 1).is_err());
    }
}
