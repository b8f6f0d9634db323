//! Bounds on the bisection bandwidth.
//!
//! A bisection splits the switches into two parts with equally many hosts, up to s hosts (those of one switch, or 0 where
//! equal switches can be shared out evenly); its bandwidth is the sum of the rates of the links cut, one direction. The least of all bisections is NP-hard to find; it is
//! enclosed between an eigenvalue bound and the best cut found.
//!
//! *Lower bound.* Let L be the Laplacian weighted by link rates, h the hosts per switch, H their sum. A bisection is a
//! vector of ±1 with |h·x| ≤ s, and xᵀLx is four times its bandwidth. With μ the smallest positive eigenvalue of
//! L x = μ diag(h) x, hence xᵀLx ≥ μ (H − (h·x)²/H) (Fiedler 1973; Donath and Hoffman 1973, here weighted by hosts so
//! that it holds for trees as well). 1/μ is the largest eigenvalue of √h L⁺ √h.
//!
//! For trees that is loose, by a factor of 4 for three levels. An XGFT carries any permutation of its hosts when every
//! switch spreads its load evenly over its parents, at a fraction of the injection rate that the tier with the least
//! capacity sets; the cut must carry the permutation that exchanges the halves, which gives half that tier's capacity.
//!
//! *Upper bound.* Split at the median of that eigenvector, then improved by exchanges (Kernighan and Lin 1970).

use netloom_units::{Rate, narrow};

use crate::network::Network;
use crate::router_graph::RouterGraph;
use crate::spectrum::{dot, largest_eigenvalue};

/// Beyond this many routers the eigenvector is not computed.
const MOST_ROUTERS: u32 = 200_000;
/// Beyond this many routers the cut found is not improved, since each exchange looks at all routers.
const MOST_IMPROVED: u32 = 20_000;

/// Bounds on the bandwidth of the narrowest bisection, one direction.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Bisection {
    /// No bisection has less: the eigenvalue bound less the residual of its iteration, or the bound by permutations if
    /// that is larger; absent if the iteration did not converge.
    #[serde(rename = "at_least_bps", serialize_with = "bits_per_second")]
    pub at_least: Option<Rate>,
    /// A bisection of this bandwidth was found (spectral split, improved by exchanges).
    #[serde(rename = "at_most_bps", serialize_with = "bits_per_second")]
    pub at_most: Rate,
}

/// Writes a rate as a number, in bit/s: who reads it wants to compute with it.
fn bits_per_second<S: serde::Serializer>(
    rate: &(impl Into<Option<Rate>> + Copy),
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match (*rate).into() {
        Some(Rate(bps)) => serializer.serialize_u64(bps),
        None => serializer.serialize_none(),
    }
}

/// Bounds the bisection bandwidth; `None` if fewer than two switches have hosts or the network is too large.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a lower and an upper bound; what is negative or no number bounds nothing, and becomes 0"
)]
pub(crate) fn bisection(network: &Network, graph: &RouterGraph) -> Option<Bisection> {
    let hosts: Vec<f64> = (0..graph.routers()).map(|router| f64::from(graph.hosts(router))).collect();
    if hosts.iter().filter(|&&h| h > 0.0).count() < 2 || graph.routers() > MOST_ROUTERS {
        return None;
    }
    let rates = (0..graph.edges().len())
        .map(|edge| network.links()[graph.link(narrow::<u32>(edge)) as usize].rate.0 as f64);
    let laplacian = Laplacian::new(graph, rates.collect());
    let root: Vec<f64> = hosts.iter().map(|h| h.sqrt()).collect();
    let converged = std::cell::Cell::new(true);
    let extreme = largest_eigenvalue(root.clone(), 1e-4, |vector| {
        let source: Vec<f64> = vector.iter().zip(&root).map(|(x, r)| x * r).collect();
        let (potential, done) = laplacian.solve(&source);
        converged.set(converged.get() && done);
        potential.iter().zip(&root).map(|(x, r)| x * r).collect()
    })?;

    let total: f64 = hosts.iter().sum();
    let imbalance = imbalance(&hosts);
    let inverse = extreme.value + extreme.residual;
    let lower = (total - imbalance * imbalance / total) / inverse / 4.0;
    let reliable = converged.get() && extreme.residual < 0.01 * extreme.value;
    let spectral = reliable.then_some(Rate(lower as u64));

    // The eigenvector in terms of potentials, which switches without hosts have as well.
    let source: Vec<f64> = extreme.vector.iter().zip(&root).map(|(x, r)| x * r).collect();
    let order_by = laplacian.solve(&source).0;
    let mut cut = Cut::at_median(&laplacian, &hosts, &order_by);
    cut.improve();
    let at_least = spectral.max(permutation_bound(network, 1.0 - imbalance / total));
    Some(Bisection { at_least, at_most: Rate(cut.bandwidth as u64) })
}

/// By how many hosts the parts of a bisection may differ: by those of one switch, or by none where equal switches can be
/// shared out evenly.
fn imbalance(hosts: &[f64]) -> f64 {
    let most = hosts.iter().copied().fold(0.0, f64::max);
    let with_hosts = || hosts.iter().filter(|&&h| h > 0.0);
    if with_hosts().all(|&h| h == most) && with_hosts().count().is_multiple_of(2) { 0.0 } else { most }
}

/// Half the capacity of the narrowest level of an XGFT, for the share of its hosts that the halves exchange.
fn permutation_bound(network: &Network, share: f64) -> Option<Rate> {
    let mut capacities = std::collections::BTreeMap::new();
    for link in network.links() {
        *capacities.entry(network.level(link.a)).or_insert(0u64) += link.rate.0;
    }
    capacities
        .into_values()
        .min()
        .filter(|_| network.is_xgft())
        .map(|capacity| Rate(capacity / 2).scale(share))
}

/// The Laplacian of the routers, weighted by link rates.
struct Laplacian<'a> {
    graph: &'a RouterGraph,
    rates: Vec<f64>,
    degrees: Vec<f64>,
}

impl<'a> Laplacian<'a> {
    fn new(graph: &'a RouterGraph, rates: Vec<f64>) -> Self {
        let degree = |router| graph.edge_ids(router).iter().map(|&edge| rates[edge as usize]).sum();
        let degrees = (0..graph.routers()).map(degree).collect();
        Laplacian { graph, rates, degrees }
    }

    fn apply(&self, vector: &[f64]) -> Vec<f64> {
        let row = |router: u32| {
            let terms = self.graph.neighbours(router).iter().zip(self.graph.edge_ids(router));
            let sum: f64 =
                terms.map(|(&other, &edge)| self.rates[edge as usize] * vector[other as usize]).sum();
            self.degrees[router as usize] * vector[router as usize] - sum
        };
        (0..self.graph.routers()).map(row).collect()
    }

    /// Solves L x = b for b that sums to zero, by conjugate gradients with diagonal scaling, and says whether the
    /// residual fell by seven orders of magnitude.
    fn solve(&self, b: &[f64]) -> (Vec<f64>, bool) {
        let mut x = vec![0.0; b.len()];
        let mut residual = b.to_vec();
        let scaled = |r: &[f64]| -> Vec<f64> { r.iter().zip(&self.degrees).map(|(r, d)| r / d).collect() };
        let mut z = scaled(&residual);
        let mut direction = z.clone();
        let mut rz = dot(&residual, &z);
        let goal = rz * 1e-14;
        for _ in 0..3000 {
            if rz <= goal {
                return (x, true);
            }
            let image = self.apply(&direction);
            let step = rz / dot(&direction, &image);
            x.iter_mut().zip(&direction).for_each(|(x, d)| *x += step * d);
            residual.iter_mut().zip(&image).for_each(|(r, i)| *r -= step * i);
            z = scaled(&residual);
            let next = dot(&residual, &z);
            direction.iter_mut().zip(&z).for_each(|(d, z)| *d = z + next / rz * *d);
            rz = next;
        }
        (x, false)
    }
}

/// A bisection being improved.
struct Cut<'a> {
    laplacian: &'a Laplacian<'a>,
    hosts: &'a [f64],
    /// +1 or −1 per router.
    side: Vec<f64>,
    /// What the cut loses if the router changes its side.
    gain: Vec<f64>,
    /// Rate of all links cut.
    bandwidth: f64,
}

impl<'a> Cut<'a> {
    /// Fills one side in the order of the values until it has half of the hosts.
    fn at_median(laplacian: &'a Laplacian<'a>, hosts: &'a [f64], values: &[f64]) -> Self {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|&a, &b| values[a].total_cmp(&values[b]).then(a.cmp(&b)));
        let half = hosts.iter().sum::<f64>() / 2.0;
        let mut side = vec![1.0; values.len()];
        let mut filled = 0.0;
        for router in order {
            // The switch that straddles the middle goes where the halves come out more equal.
            if filled + hosts[router] / 2.0 > half {
                break;
            }
            side[router] = -1.0;
            filled += hosts[router];
        }
        let mut cut = Cut { laplacian, hosts, side, gain: Vec::new(), bandwidth: 0.0 };
        cut.tally();
        cut
    }

    /// Counts bandwidth and gains from scratch.
    fn tally(&mut self) {
        self.gain = vec![0.0; self.side.len()];
        self.bandwidth = 0.0;
        for (&(a, b), rate) in self.laplacian.graph.edges().iter().zip(&self.laplacian.rates) {
            let (a, b) = (a as usize, b as usize);
            let gain = -self.side[a] * self.side[b] * rate;
            self.gain[a] += gain;
            self.gain[b] += gain;
            self.bandwidth += gain.max(0.0);
        }
    }

    fn flip(&mut self, router: usize) {
        self.bandwidth -= self.gain[router];
        self.side[router] = -self.side[router];
        self.gain[router] = -self.gain[router];
        let graph = self.laplacian.graph;
        for (&other, &edge) in
            graph.neighbours(narrow::<u32>(router)).iter().zip(graph.edge_ids(narrow::<u32>(router)))
        {
            let change =
                2.0 * self.side[router] * self.side[other as usize] * self.laplacian.rates[edge as usize];
            self.gain[other as usize] -= change;
        }
    }

    /// Passes of exchanges, each kept up to its best prefix, until one brings nothing.
    fn improve(&mut self) {
        self.settle_switches_without_hosts();
        if self.laplacian.graph.routers() > MOST_IMPROVED {
            return;
        }
        for _ in 0..10 {
            let before = self.side.clone();
            let (mut best, mut best_side) = (self.bandwidth, None);
            let mut locked: Vec<bool> = self.hosts.iter().map(|&h| h == 0.0).collect();
            // Long runs of bad exchanges rarely come back; a bounded look-ahead keeps a pass linear in practice.
            let mut since_best = 0;
            while let Some((a, b)) = self.best_exchange(&locked).filter(|_| since_best < 64) {
                self.flip(a);
                self.flip(b);
                (locked[a], locked[b]) = (true, true);
                self.settle_switches_without_hosts();
                since_best += 1;
                if self.bandwidth < best - 0.5 {
                    (best, best_side, since_best) = (self.bandwidth, Some(self.side.clone()), 0);
                }
            }
            let improved = best_side.is_some();
            self.side = best_side.unwrap_or(before);
            self.tally();
            if !improved {
                break;
            }
        }
    }

    /// Switches without hosts follow the majority of their links.
    fn settle_switches_without_hosts(&mut self) {
        while let Some(router) = (0..self.hosts.len()).find(|&r| self.hosts[r] == 0.0 && self.gain[r] > 0.5) {
            self.flip(router);
        }
    }

    /// The most gainful router on each side, with equally many hosts.
    fn best_exchange(&self, locked: &[bool]) -> Option<(usize, usize)> {
        let free = |side: f64| (0..self.hosts.len()).filter(move |&r| !locked[r] && self.side[r] == side);
        let best = |routers: &mut dyn Iterator<Item = usize>| {
            routers.reduce(|a, b| if self.gain[b] > self.gain[a] { b } else { a })
        };
        let a = best(&mut free(1.0))?;
        let b = best(&mut free(-1.0).filter(|&b| self.hosts[b] == self.hosts[a]))?;
        Some((a, b))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::NetworkBuilder;
    use netloom_units::Time;
    use proptest::prelude::*;

    /// The least cut of all splits, by trying them.
    fn exact(graph: &RouterGraph, rates: &[u64]) -> u64 {
        let hosts: Vec<i64> = (0..graph.routers()).map(|router| graph.hosts(router).into()).collect();
        let slack = imbalance(&hosts.iter().map(|&h| h as f64).collect::<Vec<_>>()) as i64;
        let side = |split: u32, router: u32| if split >> router & 1 == 1 { 1 } else { -1 };
        let balanced = |split: &u32| {
            let difference: i64 = (0..).zip(&hosts).map(|(router, &h)| h * side(*split, router)).sum();
            difference.abs() <= slack
        };
        let cut = |split: u32| -> u64 {
            let edges = graph.edges().iter().zip(rates);
            edges.filter(|((a, b), _)| side(split, *a) != side(split, *b)).map(|(_, rate)| rate).sum()
        };
        (0..1 << graph.routers()).filter(balanced).map(cut).min().unwrap()
    }

    proptest! {
        #[test]
        fn bounds_enclose_the_exact_bisection(
            hosts in prop::collection::vec(0u32..4, 3..9)
                .prop_filter("switches with hosts", |hosts| hosts.iter().filter(|&&h| h > 0).count() >= 2),
            extra in prop::collection::vec((any::<u32>(), any::<u32>(), 1u64..5), 0..20),
        ) {
            let routers = hosts.len() as u32;
            let mut builder = NetworkBuilder::new("test");
            let ids = builder.add_hosts(hosts.iter().sum());
            let first = ids.end;
            let tier = builder.tier("all");
            let mut next = ids.start;
            for _ in &hosts {
                builder.add_switch(0, 0);
            }
            for (switch, &count) in (first..).zip(&hosts) {
                for _ in 0..count {
                    builder.link(next, switch, Rate::from_gbps(1), Time::ZERO, tier);
                    next += 1;
                }
            }
            let chain = (0..routers - 1).map(|a| (a, a + 1, 1));
            for (a, b, gbps) in chain.chain(extra).map(|(a, b, gbps)| (a % routers, b % routers, gbps)) {
                if a != b {
                    builder.link(first + a, first + b, Rate::from_gbps(gbps), Time::ZERO, tier);
                }
            }
            let network = builder.build().unwrap();
            let graph = network.router_graph();
            let rates: Vec<u64> =
                (0..graph.edges().len()).map(|e| network.links()[graph.link(e as u32) as usize].rate.0).collect();
            let bounds = bisection(&network, &graph).unwrap();
            let exact = Rate(exact(&graph, &rates));
            prop_assert!(bounds.at_least.unwrap() <= exact && exact <= bounds.at_most, "{bounds:?}, exact {exact:?}");
        }
    }
}
