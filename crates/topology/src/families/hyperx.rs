//! HyperX: cliques along every dimension of a grid.

use netloom_units::{Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::direct::DirectBuilder;
use crate::families::{at_least, invalid, nearest, product};
use crate::network::{Dimension, Network};
use crate::topology::BuildContext;

/// HyperX (L, S, K, T) (Ahn et al., SC 2009), also known as Hamming graph; a flattened butterfly with two dimensions.
/// The default is the cube of FatPaths, Table IV.
///
/// Switches are points of an L-dimensional grid, numbered with the first coordinate fastest; those that differ in one
/// coordinate only are linked. Links along dimension i are of tier `dimension1`, …; a pod is one line along dimension 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HyperX {
    /// Dimensions (L).
    pub dimensions: u32,
    /// Switches along each dimension (S); one number stands for all dimensions.
    pub switches_per_dimension: Vec<u32>,
    /// Take the size, equal in all dimensions, whose number of hosts is nearest to this.
    pub about_hosts: Option<u32>,
    /// Parallel links between neighbours in each dimension (K); one number stands for all dimensions.
    pub parallel_links: Vec<u32>,
    /// Hosts per switch (T); k′/L rounded up if absent.
    pub hosts_per_switch: Option<u32>,
    /// Rate of every link that has no other rate.
    pub rate: Rate,
    /// Propagation delay of every link that has no other delay.
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    pub host_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    pub host_latency: Option<Time>,
}

impl Default for HyperX {
    fn default() -> Self {
        HyperX {
            dimensions: 3,
            switches_per_dimension: vec![11],
            about_hosts: None,
            parallel_links: vec![1],
            hosts_per_switch: None,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            host_rate: None,
            host_latency: None,
        }
    }
}

impl HyperX {
    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        if !(1..=16).contains(&self.dimensions) {
            return Err(invalid("dimensions", "1 to 16", self.dimensions));
        }
        let parallel = self.per_dimension("parallel_links", &self.parallel_links, 1)?;
        let (sizes, nearest_to) = match self.about_hosts {
            Some(wanted) => (self.sizes_near(wanted, &parallel), format!(" nearest to {wanted} hosts")),
            None => (
                self.per_dimension("switches_per_dimension", &self.switches_per_dimension, 2)?,
                String::new(),
            ),
        };
        let degree = degree(&sizes, &parallel);
        let p = self.default_hosts(degree);
        let switches = product(sizes.iter().copied());
        let shape: Vec<String> = sizes.iter().map(u32::to_string).collect();
        let name = format!("HyperX {}{nearest_to}", shape.join("x"));
        let common = Cable { rate: self.rate, latency: self.latency };
        let host_cable = Cable::or(self.host_rate, self.host_latency, common);
        let edges = switches.saturating_mul(degree) / 2;
        let mut direct =
            DirectBuilder::new(&name, switches, p, edges, host_cable, |switch| switch / sizes[0])?;

        let mut stride = 1u32;
        for (dimension, (&size, &parallel)) in sizes.iter().zip(&parallel).enumerate() {
            let number = narrow::<u8>(dimension) + 1;
            let along = Dimension { number, wraps: false };
            let tier = direct.dimension_tier(&format!("dimension{number}"), along);
            for switch in 0..narrow::<u32>(switches) {
                let coordinate = switch / stride % size;
                for step in 1..size - coordinate {
                    let pair = (switch, switch + step * stride);
                    direct.edges(std::iter::repeat_n(pair, parallel as usize), common, tier);
                }
            }
            stride *= size;
        }
        direct.build()
    }

    fn per_dimension(
        &self,
        field: &'static str,
        list: &[u32],
        minimum: u32,
    ) -> Result<Vec<u32>, NetworkError> {
        let dimensions = self.dimensions as usize;
        let values = match *list {
            [uniform] => vec![uniform; dimensions],
            _ if list.len() == dimensions => list.to_vec(),
            _ => return Err(invalid(field, format!("1 or {dimensions} numbers"), list.len())),
        };
        values.iter().try_for_each(|&value| at_least(field, value, minimum))?;
        Ok(values)
    }

    fn default_hosts(&self, degree: u64) -> u32 {
        let balanced = degree.div_ceil(self.dimensions.into());
        self.hosts_per_switch.unwrap_or(u32::try_from(balanced).unwrap_or(u32::MAX))
    }

    fn sizes_near(&self, wanted: u32, parallel: &[u32]) -> Vec<u32> {
        let candidates = (2..70_000).map(|size| vec![size; self.dimensions as usize]);
        let hosts = |sizes: &[u32]| {
            product(sizes.iter().copied()).saturating_mul(self.default_hosts(degree(sizes, parallel)).into())
        };
        nearest(wanted.into(), candidates.map(|sizes| (sizes.clone(), hosts(&sizes))))
    }
}

/// k′: links to other switches.
fn degree(sizes: &[u32], parallel: &[u32]) -> u64 {
    let links = sizes.iter().zip(parallel).map(|(&size, &k)| u64::from(size - 1) * u64::from(k));
    links.fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    #[test]
    fn the_cube_has_the_published_size() {
        let network = HyperX::default().build(&context(1)).unwrap();
        assert_eq!((network.hosts(), network.switches()), (13_310, 1331));
        assert_eq!(network.links().len() - 13_310, 19_965);
        let near = HyperX { about_hosts: Some(14_000), ..Default::default() }.build(&context(1)).unwrap();
        assert_eq!(near.switches(), 1331);
    }

    #[test]
    fn dimensions_may_differ_in_size_and_links() {
        let config = HyperX {
            dimensions: 2,
            switches_per_dimension: vec![3, 4],
            parallel_links: vec![2, 1],
            hosts_per_switch: Some(5),
            ..Default::default()
        };
        let network = config.build(&context(1)).unwrap();
        assert_eq!((network.hosts(), network.switches()), (60, 12));
        let graph = network.router_graph();
        // Router 4 is (1, 1): lines {3, 4, 5} with doubled links and {1, 4, 7, 10}.
        assert_eq!(graph.neighbours(4), [1, 3, 3, 5, 5, 7, 10]);
        assert_eq!(network.tiers(), ["host", "dimension1", "dimension2"]);
    }

    #[test]
    fn lists_of_another_length_are_refused() {
        let config = HyperX { switches_per_dimension: vec![3, 4], ..Default::default() };
        let error = config.build(&context(1)).unwrap_err().to_string();
        assert_eq!(error, "switches_per_dimension: expected 1 or 3 numbers, found 2");
        let config = HyperX { switches_per_dimension: vec![u32::MAX], ..Default::default() };
        assert!(config.build(&context(1)).unwrap_err().to_string().contains("GiB"));
    }
}
