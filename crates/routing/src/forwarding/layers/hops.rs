//! How long the routes of layers are, for 64 targets at a time, a bit each.

use netloom_topology::Network;

use super::Layers;

/// The routes of a layer to some targets: where routers hand on what goes there.
struct Onward {
    /// Per router, where its part of `steps` begins; behind the last, where that ends.
    begins: Vec<usize>,
    /// A neighbour and the targets that are reached over it.
    steps: Vec<(u32, u64)>,
}

impl Onward {
    fn of(&self, router: usize) -> &[(u32, u64)] {
        &self.steps[self.begins[router]..self.begins[router + 1]]
    }
}

impl Layers {
    /// The most hops of a route between switches with hosts, in any layer; `None` if there are two of these that no layer connects.
    pub(in crate::forwarding) fn most_hops(&self, network: &Network) -> Option<u32> {
        let mut ends: Vec<u32> = self.router_of.clone();
        ends.sort_unstable();
        ends.dedup();
        let neighbours = self.neighbours(network);
        let mut most = 0;
        for targets in ends.chunks(u64::BITS as usize) {
            let all = u64::MAX >> (u64::BITS - targets.len() as u32);
            // Per end, the targets with which a layer connects it.
            let mut connected = vec![0u64; ends.len()];
            for layer in 0..self.tables.layers() {
                let (hops, reached) = match &self.spread {
                    None => spread(&self.onward(layer, targets, &neighbours), targets, &ends)?,
                    Some(_) => self.measured(layer, targets, &ends),
                };
                most = most.max(hops);
                connected.iter_mut().zip(reached).for_each(|(connected, reached)| *connected |= reached);
            }
            if connected.iter().any(|&connected| connected != all) {
                return None;
            }
        }
        Some(most)
    }

    /// The router behind each of the ports between routers.
    fn neighbours(&self, network: &Network) -> Vec<u32> {
        let ends = self.row[1..].iter().copied().chain([self.ports.len() as u32]);
        let rows = self.row.iter().zip(ends).map(|(&begin, end)| begin as usize..end as usize);
        let switches = self.hosts..network.nodes();
        let behind = |(switch, row): (u32, std::ops::Range<usize>)| {
            self.ports[row].iter().map(move |&port| network.neighbour(switch, port) - self.hosts)
        };
        switches.zip(rows).flat_map(behind).collect()
    }

    /// The steps of a layer's single paths.
    fn onward(&self, layer: u32, targets: &[u32], neighbours: &[u32]) -> Onward {
        let (mut begins, mut steps) = (Vec::with_capacity(self.row.len() + 1), Vec::new());
        let mut by_neighbour = Vec::new();
        for here in 0..self.tables.routers() {
            begins.push(steps.len());
            let first = self.row[here as usize] as usize;
            let count = self.row.get(here as usize + 1).map_or(neighbours.len(), |&row| row as usize) - first;
            by_neighbour.clear();
            by_neighbour.resize(count, 0u64);
            for (bit, &to) in targets.iter().enumerate() {
                if let Some(neighbour) = self.tables.next_port(layer, here, to) {
                    by_neighbour[usize::from(neighbour)] |= 1 << bit;
                }
            }
            let all = neighbours[first..].iter().copied().zip(by_neighbour.iter().copied());
            steps.extend(all.filter(|&(_, targets)| targets != 0));
        }
        begins.push(steps.len());
        Onward { begins, steps }
    }

    /// What [`spread`] says, where distances are known.
    fn measured(&self, layer: u32, targets: &[u32], ends: &[u32]) -> (u32, Vec<u64>) {
        let (mut most, mut reached) = (0, vec![0; ends.len()]);
        let Some(spread) = &self.spread else { return (most, reached) };
        for (&from, reached) in ends.iter().zip(&mut reached) {
            for (bit, &to) in targets.iter().enumerate() {
                if let Some(hops) = spread.distances[layer as usize].hops(from, to) {
                    *reached |= 1 << bit;
                    most = most.max(u32::from(hops));
                }
            }
        }
        (most, reached)
    }
}

/// The most hops from any of the ends, and the targets that each of them reaches; `None` where a route begins and leads nowhere.
fn spread(onward: &Onward, targets: &[u32], ends: &[u32]) -> Option<(u32, Vec<u64>)> {
    let routers = onward.begins.len() - 1;
    // The targets that are so many hops away, or fewer.
    let mut within = vec![0u64; routers];
    (0..).zip(targets).for_each(|(bit, &to): (u32, _)| within[to as usize] |= 1 << bit);
    let mut next = within.clone();
    let (mut most, mut hops) = (0, 0);
    // The routers that miss some targets to which they have routes.
    let mut open: Vec<u32> = (0..routers as u32).collect();
    let mut is_end = vec![false; routers];
    ends.iter().for_each(|&end| is_end[end as usize] = true);
    loop {
        hops += 1;
        let mut grew = false;
        open.retain(|&here| {
            let here = here as usize;
            let (mut reached, mut known) = (within[here], 0);
            for &(neighbour, targets) in onward.of(here) {
                reached |= targets & within[neighbour as usize];
                known |= targets;
            }
            if reached != within[here] {
                grew = true;
                if is_end[here] {
                    most = hops;
                }
            }
            next[here] = reached;
            known & !reached != 0
        });
        if !grew {
            break;
        }
        within.copy_from_slice(&next);
    }
    let is_lost = open.iter().any(|&here| is_end[here as usize]);
    (!is_lost).then(|| (most, ends.iter().map(|&end| within[end as usize]).collect()))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use netloom_paths::routes::{Past, RandomLayers, Spain};
    use netloom_topology::{BuildContext, FatTree, Jellyfish, SlimFly, Topology};
    use proptest::prelude::*;

    use super::*;
    use crate::selector::layer::{Construction, Layer, WithinLayer};

    /// Walks every route of every layer.
    fn walked(layers: &Layers, network: &Network) -> Option<u32> {
        let ends: std::collections::BTreeSet<u32> = layers.router_of.iter().copied().collect();
        let mut most = 0;
        for (&from, &to) in ends.iter().flat_map(|from| ends.iter().map(move |to| (from, to))) {
            let mut is_connected = from == to;
            for layer in (0..layers.tables().layers()).filter(|&layer| layers.leads(layer, from, to)) {
                let (mut here, mut hops) = (from, 0);
                while here != to {
                    let port = layers.ports(layer, here, to)[0];
                    here = network.neighbour(network.hosts() + here, port) - network.hosts();
                    hops += 1;
                }
                (most, is_connected) = (most.max(hops), true);
            }
            if !is_connected {
                return None;
            }
        }
        Some(most)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        /// On networks with more routers than targets are followed at a time, and on one whose routers have not all hosts.
        #[test]
        fn the_longest_route_is_the_longest_that_is_walked(
            of in 0usize..4, kind in 0..4, rho in 0.15..1.0, seed in any::<u64>(), single in any::<bool>(),
        ) {
            let topology = match of {
                0 => Topology::SlimFly(SlimFly { q: Some(7), ..SlimFly::default() }),
                1 => Topology::Jellyfish(Jellyfish { switches: 130, degree: 5, ..Jellyfish::default() }),
                2 => Topology::Jellyfish(Jellyfish { switches: 64, degree: 3, ..Jellyfish::default() }),
                _ => Topology::FatTree(FatTree { k: Some(6), ..FatTree::default() }),
            };
            let network = topology.build(&BuildContext { seed, base_dir: Path::new("") }).unwrap();
            let construction = match kind {
                0 => Construction::Past(Past::default()),
                1 => Construction::Spain(Spain { layers: Some(2), ..Spain::default() }),
                _ => Construction::RandomLayers(RandomLayers { layers: 3, rho, retries: 0, ..Default::default() }),
            };
            let within_layer = if single { WithinLayer::SinglePath } else { WithinLayer::Ecmp };
            let config = Layer { construction, within_layer, ..Layer::default() };
            let layers = Layers::build(&config, &network, |_| false, seed).unwrap();
            prop_assert_eq!(layers.most_hops(&network), walked(&layers, &network));
        }
    }
}
