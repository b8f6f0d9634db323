//! Tori and meshes: grids in which every switch is linked to the next one along each dimension.

use netloom_units::{Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::direct::DirectBuilder;
use crate::families::{at_least, invalid, nearest, product};
use crate::network::{Dimension, Network};
use crate::topology::BuildContext;

/// Torus (k-ary n-cube; Dally and Towles, Principles and Practices of Interconnection Networks, chapter 5): a grid of switches whose lines close to
/// rings, in all dimensions or in some. The default is the 4x4x4 block of TPU v4 (Jouppi et al., ISCA'23).
///
/// Switches are numbered with the first coordinate fastest. Links along dimension i are of tier `dimension1`, …, those that close its rings of
/// tier `wrap1`, …; a pod is one line along dimension 1. Along a dimension of two switches one link is both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Torus {
    /// Dimensions (n).
    pub dimensions: u32,
    /// Switches along each dimension (k); one number stands for all dimensions.
    pub switches_per_dimension: Vec<u32>,
    /// Take the size, equal in all dimensions, whose number of hosts is nearest to this.
    pub about_hosts: Option<u32>,
    /// Whether the lines along each dimension close to rings; one value stands for all dimensions.
    pub wrap: Vec<bool>,
    /// Twist the torus: in sizes of n and 2n, as `[4, 4, 8]` or `[4, 8, 8]`, each link that closes a ring of n switches leads n switches further along every
    /// dimension of 2n. In three dimensions these are TPU v4's twisted tori (Jouppi et al., ISCA'23) and the lattice graphs FCC and BCC
    /// (Camarero, Martínez and Beivide, IEEE TPDS 2015), which are alike in all directions.
    pub twisted: bool,
    /// Hosts per switch.
    pub hosts_per_switch: u32,
    /// Rate of all links, unless another field sets it.
    pub rate: Rate,
    /// Propagation delay of all links, unless another field sets it.
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    pub host_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    pub host_latency: Option<Time>,
    /// Propagation delay of the links that close rings; `latency` if absent.
    pub wrap_latency: Option<Time>,
}

impl Default for Torus {
    fn default() -> Self {
        Torus {
            dimensions: 3,
            switches_per_dimension: vec![4],
            about_hosts: None,
            wrap: vec![true],
            twisted: false,
            hosts_per_switch: 1,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            host_rate: None,
            host_latency: None,
            wrap_latency: None,
        }
    }
}

/// Mesh (k-ary n-mesh; Dally and Towles, chapter 5): a grid of switches with links between neighbours along each dimension. The default is 8x8.
///
/// Switches are numbered with the first coordinate fastest. Links along dimension i are of tier `dimension1`, …; a pod is one line along
/// dimension 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Mesh {
    /// Dimensions (n).
    pub dimensions: u32,
    /// Switches along each dimension (k); one number stands for all dimensions.
    pub switches_per_dimension: Vec<u32>,
    /// Take the size, equal in all dimensions, whose number of hosts is nearest to this.
    pub about_hosts: Option<u32>,
    /// Hosts per switch.
    pub hosts_per_switch: u32,
    /// Rate of all links, unless another field sets it.
    pub rate: Rate,
    /// Propagation delay of all links, unless another field sets it.
    pub latency: Time,
    /// Rate of host links; `rate` if absent.
    pub host_rate: Option<Rate>,
    /// Propagation delay of host links; `latency` if absent.
    pub host_latency: Option<Time>,
}

impl Default for Mesh {
    fn default() -> Self {
        Mesh {
            dimensions: 2,
            switches_per_dimension: vec![8],
            about_hosts: None,
            hosts_per_switch: 1,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
            host_rate: None,
            host_latency: None,
        }
    }
}

/// Refuses two sizes of one network.
fn only_one_size(about_hosts: Option<u32>, sizes: &[u32], default: &[u32]) -> Result<(), NetworkError> {
    match about_hosts {
        Some(0) => Err(invalid("about_hosts", "at least 1", 0)),
        Some(_) if sizes != default => {
            Err(invalid("switches_per_dimension", "none beside about_hosts", format!("{sizes:?}")))
        }
        _ => Ok(()),
    }
}

impl Mesh {
    pub(crate) fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let default = Mesh::default().switches_per_dimension;
        only_one_size(self.about_hosts, &self.switches_per_dimension, &default)?;
        let grid = Torus {
            dimensions: self.dimensions,
            switches_per_dimension: self.switches_per_dimension.clone(),
            about_hosts: self.about_hosts,
            wrap: vec![false],
            hosts_per_switch: self.hosts_per_switch,
            rate: self.rate,
            latency: self.latency,
            host_rate: self.host_rate,
            host_latency: self.host_latency,
            ..Torus::default()
        };
        grid.build_grid(context)
    }
}

impl Torus {
    pub(crate) fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let default = Torus::default().switches_per_dimension;
        only_one_size(self.about_hosts, &self.switches_per_dimension, &default)?;
        self.build_grid(context)
    }

    fn build_grid(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        if !(1..=16).contains(&self.dimensions) {
            return Err(invalid("dimensions", "1 to 16", self.dimensions));
        }
        let wrap = self.per_dimension("wrap", &self.wrap)?;
        let (sizes, nearest_to) = match self.about_hosts {
            Some(wanted) => (self.sizes_near(wanted), format!(" nearest to {wanted} hosts")),
            None => {
                (self.per_dimension("switches_per_dimension", &self.switches_per_dimension)?, String::new())
            }
        };
        sizes.iter().try_for_each(|&size| at_least("switches_per_dimension", size, 2))?;
        let period = if self.twisted { Some(period(&sizes, &wrap)?) } else { None };
        let switches = product(sizes.iter().copied());
        let edges = switches.saturating_mul(sizes.len() as u64);
        let common = Cable { rate: self.rate, latency: self.latency };
        let host_cable = Cable::or(self.host_rate, self.host_latency, common);
        let closing = Cable::or(None, self.wrap_latency, common);
        let name = name(&sizes, &wrap, self.twisted) + &nearest_to;
        let pod = |switch| switch / sizes[0];
        let mut direct = DirectBuilder::new(&name, switches, self.hosts_per_switch, edges, host_cable, pod)?;

        let switches = narrow::<u32>(switches);
        let mut stride = 1u32;
        for (place, (&size, &wraps)) in sizes.iter().zip(&wrap).enumerate() {
            let number = narrow::<u8>(place) + 1;
            let along = Dimension { number, wraps: false };
            let tier = direct.dimension_tier(&format!("dimension{number}"), along);
            let coordinate = |switch: u32| switch / stride % size;
            let inner = (0..switches).filter(|&switch| coordinate(switch) + 1 < size);
            direct.edges(inner.map(|switch| (switch, switch + stride)), common, tier);
            if wraps && size > 2 {
                let along = Dimension { number, wraps: true };
                let tier = direct.dimension_tier(&format!("wrap{number}"), along);
                let shift = period.filter(|&period| size == period);
                let last = (0..switches).filter(|&switch| coordinate(switch) + 1 == size);
                let closed = last.map(|switch| {
                    let first = switch - (size - 1) * stride;
                    (switch, shift.map_or(first, |period| shifted(first, &sizes, period)))
                });
                direct.edges(closed, closing, tier);
            }
            stride *= size;
        }
        direct.build()
    }

    fn per_dimension<T: Copy>(&self, field: &'static str, list: &[T]) -> Result<Vec<T>, NetworkError> {
        let dimensions = self.dimensions as usize;
        match *list {
            [uniform] => Ok(vec![uniform; dimensions]),
            _ if list.len() == dimensions => Ok(list.to_vec()),
            _ => Err(invalid(field, format!("1 or {dimensions} values"), list.len())),
        }
    }

    fn sizes_near(&self, wanted: u32) -> Vec<u32> {
        let candidates = (2..=65_536).map(|size| vec![size; self.dimensions as usize]);
        let hosts =
            |sizes: &[u32]| product(sizes.iter().copied()).saturating_mul(self.hosts_per_switch.into());
        nearest(wanted.into(), candidates.map(|sizes| (sizes.clone(), hosts(&sizes))))
    }
}

/// What the network is, in words.
fn name(sizes: &[u32], wrap: &[bool], twisted: bool) -> String {
    let shape: Vec<String> = sizes.iter().map(u32::to_string).collect();
    let shape = shape.join("x");
    let open: Vec<String> = (1..)
        .zip(wrap)
        .filter(|(_, wraps)| !**wraps)
        .map(|(number, _): (u32, _)| number.to_string())
        .collect();
    match (twisted, open.len()) {
        (true, _) => format!("twisted torus {shape}"),
        (false, 0) => format!("torus {shape}"),
        (false, count) if count == sizes.len() => format!("mesh {shape}"),
        (false, _) => format!("torus {shape} (dimension {} open)", open.join(", ")),
    }
}

/// The shorter size n of a twisted torus, whose sizes are n and 2n.
fn period(sizes: &[u32], wrap: &[bool]) -> Result<u32, NetworkError> {
    let least = sizes.iter().copied().min().unwrap_or(0);
    let double = least.saturating_mul(2);
    let fits = |&size: &u32| size == least || size == double;
    let has_both = sizes.contains(&double) && sizes.iter().all(fits);
    if least < 3 || !has_both || wrap.contains(&false) {
        let expected =
            "false, or rings along all dimensions, of n and 2n switches with n at least 3, such as [4, 4, 8]";
        return Err(invalid("twisted", expected, "true"));
    }
    Ok(least)
}

/// The switch that lies as many as `period` further along every dimension of twice that size.
fn shifted(switch: u32, sizes: &[u32], period: u32) -> u32 {
    let (mut shifted, mut stride) = (0, 1);
    for &size in sizes {
        let shift = if size == 2 * period { period } else { 0 };
        shifted += (switch / stride % size + shift) % size * stride;
        stride *= size;
    }
    shifted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    fn torus(sizes: &[u32]) -> Torus {
        let dimensions = sizes.len() as u32;
        Torus { dimensions, switches_per_dimension: sizes.to_vec(), ..Torus::default() }
    }

    fn twisted(sizes: &[u32]) -> Network {
        Torus { twisted: true, ..torus(sizes) }.build(&context(1)).unwrap()
    }

    /// Distances of a direct network with hosts at all switches: the longest one, and their sum from one switch.
    fn distances(network: &Network) -> (u32, f64) {
        let metrics = network.metrics();
        (metrics.diameter, metrics.mean_distance.unwrap() * f64::from(network.switches() - 1))
    }

    #[test]
    fn tori_have_the_size_and_the_distances_of_the_closed_forms() {
        for sizes in [&[8][..], &[5], &[4, 4], &[3, 5], &[4, 6, 8], &[3, 4, 5], &[3, 3, 3, 3]] {
            let network = torus(sizes).build(&context(1)).unwrap();
            let count = product(sizes.iter().copied()) as u32;
            assert_eq!((network.switches(), network.hosts()), (count, count));
            assert_eq!(network.links().len() as u32, count * (1 + sizes.len() as u32));
            let metrics = network.metrics();
            assert_eq!(metrics.degree, (2 * sizes.len() as u32, 2 * sizes.len() as u32));
            // Along a ring of k the distances sum up to ⌊k²/4⌋ (Dally and Towles, eq. 5.3).
            let sum: f64 = sizes.iter().map(|k| f64::from(k * k / 4) / f64::from(*k)).sum();
            let diameter: u32 = sizes.iter().map(|k| k / 2).sum();
            let (longest, total) = distances(&network);
            assert_eq!(longest, diameter, "{sizes:?}");
            assert!((total - sum * f64::from(count)).abs() < 1e-6, "{sizes:?}");
        }
    }

    #[test]
    fn meshes_have_the_size_and_the_distances_of_the_closed_forms() {
        for sizes in [&[8][..], &[4, 4], &[3, 5], &[4, 6, 2], &[2, 2, 2, 2]] {
            let switches_per_dimension = sizes.to_vec();
            let mesh = Mesh { dimensions: sizes.len() as u32, switches_per_dimension, ..Mesh::default() };
            let network = mesh.build(&context(1)).unwrap();
            let count = product(sizes.iter().copied()) as u32;
            let links: u32 = sizes.iter().map(|k| count / k * (k - 1)).sum();
            assert_eq!(network.links().len() as u32, count + links);
            assert_eq!(network.metrics().diameter, sizes.iter().map(|k| k - 1).sum::<u32>());
            // The mean over all ordered pairs, a switch with itself too, is (k² - 1) / 3k along a line of k.
            let mean: f64 = sizes.iter().map(|&k| f64::from(k * k - 1) / f64::from(3 * k)).sum();
            let found = network.metrics().mean_distance.unwrap();
            assert!((found - mean * f64::from(count) / f64::from(count - 1)).abs() < 1e-9, "{sizes:?}");
        }
    }

    #[test]
    fn half_of_a_grid_is_cut_off_where_its_longest_dimension_is_halved() {
        // Of the longest dimension k: 2 N/k links in a torus, N/k in a mesh.
        for (network, links) in [
            (torus(&[4, 4]).build(&context(1)), 8),
            (torus(&[4, 4, 8]).build(&context(1)), 32),
            (torus(&[8]).build(&context(1)), 2),
            (Mesh { switches_per_dimension: vec![4], ..Mesh::default() }.build(&context(1)), 4),
        ] {
            let network = network.unwrap();
            let bisection = network.metrics().bisection.unwrap();
            let rate = Cable::DEFAULT.rate.0 * links;
            assert_eq!(bisection.at_most.0, rate, "{}", network.name());
            assert!(bisection.at_least.unwrap().0 <= rate);
        }
    }

    #[test]
    fn twisted_tori_have_the_distances_of_their_lattices() {
        // FCC(a) is a x a x 2a, BCC(a) a x 2a x 2a; both have diameter ⌊3a/2⌋. The sum of distances of FCC(a) with even a is (7a⁴ - 2a²)/4: a mean
        // that tends to 7a/8. That of BCC(a) tends to 35a/32 (Camarero, Martínez and Beivide).
        for a in [4, 6, 8] {
            let size = f64::from(a);
            let (diameter, sum) = distances(&twisted(&[a, a, 2 * a]));
            assert_eq!(diameter, 3 * a / 2);
            assert!((sum - (7.0 * size.powi(4) - 2.0 * size.powi(2)) / 4.0).abs() < 1e-6, "{a}: {sum}");
            let (diameter, sum) = distances(&twisted(&[a, 2 * a, 2 * a]));
            assert_eq!(diameter, 3 * a / 2);
            assert!((sum / (4.0 * size.powi(3)) / (35.0 * size / 32.0) - 1.0).abs() < 0.03, "{a}: {sum}");
        }
        // Twisted or not, the links are as many and every switch has six.
        let [plain, other] = [torus(&[4, 4, 8]).build(&context(1)).unwrap(), twisted(&[4, 4, 8])];
        assert_eq!(plain.links().len(), other.links().len());
        assert_eq!(other.metrics().degree, (6, 6));
        assert!(other.metrics().mean_distance < plain.metrics().mean_distance);
        // In two dimensions a rectangular twisted torus of a x 2a has diameter a (Cámara et al., IEEE TPDS 2010).
        assert_eq!(distances(&twisted(&[4, 8])).0, 4);
    }

    #[test]
    fn links_that_close_rings_have_a_tier_of_their_own() {
        let network = torus(&[4, 2]).build(&context(1)).unwrap();
        assert_eq!(network.tiers(), ["host", "dimension1", "wrap1", "dimension2"]);
        assert!(network.is_grid());
        let tiers = |name: &str| {
            let is_named = |tier: u8| network.tiers()[usize::from(tier)] == name;
            network.links().iter().filter(|link| is_named(link.tier)).count()
        };
        assert_eq!((tiers("dimension1"), tiers("wrap1"), tiers("dimension2")), (6, 2, 4));
        let half = Torus { wrap: vec![true, false], ..torus(&[4, 3]) }.build(&context(1)).unwrap();
        assert_eq!(half.name(), "torus 4x3 (dimension 2 open): 12 hosts");
        assert_eq!(half.metrics().degree, (3, 4));
    }

    #[test]
    fn beside_grids_there_may_be_networks_without_ways_through_them() {
        let grid = torus(&[3, 3]).build(&context(1)).unwrap();
        let complete = |switches| {
            let complete = crate::Complete { switches, hosts_per_switch: Some(1), ..Default::default() };
            complete.build(&context(1)).unwrap()
        };
        let inside = complete(4);
        assert!(!inside.is_grid());
        let beside = |other: &Network| {
            let part = |network, tier_prefix| crate::Separate { network, prefix: "", tier_prefix };
            Network::apart("both", &[part(&grid, ""), part(other, "scale-up-")]).unwrap()
        };
        assert!(beside(&inside).is_grid());
        let star = crate::Crossbar { hosts: 4, ..Default::default() }.build(&context(1)).unwrap();
        assert!(beside(&star).is_grid());
        let polarfly = crate::PolarFly { q: Some(2), ..Default::default() }.build(&context(1)).unwrap();
        assert!(!beside(&polarfly).is_grid());
    }

    #[test]
    fn what_no_torus_is_is_refused() {
        let refused = |torus: Torus| torus.build(&context(1)).unwrap_err().to_string();
        assert!(refused(torus(&[1, 4])).starts_with("switches_per_dimension: expected at least 2"));
        let lists = Torus { wrap: vec![true, false], ..Torus::default() };
        assert_eq!(refused(lists), "wrap: expected 1 or 3 values, found 2");
        for sizes in [&[4, 4, 4][..], &[2, 2, 4], &[4, 6, 8], &[4, 8, 16]] {
            let error = refused(Torus { twisted: true, ..torus(sizes) });
            assert!(error.starts_with("twisted: expected false, or rings"), "{error}");
        }
        assert!(refused(torus(&[u32::MAX, u32::MAX])).contains("GiB"));
        let near = Torus { about_hosts: Some(500), ..Torus::default() }.build(&context(1)).unwrap();
        assert_eq!(near.name(), "torus 8x8x8 nearest to 500 hosts: 512 hosts");
    }
}
