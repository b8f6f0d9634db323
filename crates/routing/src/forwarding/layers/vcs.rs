//! How many virtual channels the routes of layers use, for 64 targets at a time, a bit each: one per hop, but none for a global hop behind a
//! local one.

use netloom_topology::Network;
use netloom_units::narrow;

use super::Layers;
use crate::forwarding::channels::rank;

/// The routes of a layer to some targets: where routers hand on what goes there.
struct Onward {
    /// Per router, where its part of `steps` begins; behind the last, where that ends.
    begins: Vec<usize>,
    steps: Vec<Step>,
}

/// A neighbour, the rank of the link to it, and the targets that are reached over it.
#[derive(Clone, Copy)]
struct Step {
    to: u32,
    rank: u8,
    targets: u64,
}

impl Onward {
    fn of(&self, router: usize) -> &[Step] {
        &self.steps[self.begins[router]..self.begins[router + 1]]
    }

    fn routers(&self) -> usize {
        self.begins.len() - 1
    }
}

impl Layers {
    /// The most virtual channels that a route between switches with hosts uses, in any layer; `None` if there are two of these that no layer
    /// connects, or several routes between two where links rank differently and distances do not bound them.
    pub(in crate::forwarding) fn most_vcs(&self, network: &Network) -> Option<u32> {
        let ranks = network.global_tier().is_some();
        if !ranks && let Some(most) = self.longest() {
            return Some(most);
        }
        if let Some(most) = self.bounded(network) {
            return Some(most);
        }
        if ranks && self.spread.is_some() {
            return None;
        }
        let mut ends: Vec<u32> = self.router_of.clone();
        ends.sort_unstable();
        ends.dedup();
        let neighbours = self.neighbours(network);
        let mut most = 0;
        for targets in ends.chunks(u64::BITS as usize) {
            let all = u64::MAX >> (u64::BITS - narrow::<u32>(targets.len()));
            // Per end, the targets with which a layer connects it.
            let mut connected = vec![0u64; ends.len()];
            for layer in 0..self.tables.layers() {
                let (vcs, reached) = match &self.spread {
                    None => spread(&self.onward(layer, targets, &neighbours), targets, &ends)?,
                    Some(_) => self.measured(layer, targets, &ends),
                };
                most = most.max(vcs);
                connected.iter_mut().zip(reached).for_each(|(connected, reached)| *connected |= reached);
            }
            if connected.iter().any(|&connected| connected != all) {
                return None;
            }
        }
        Some(most)
    }

    /// The most hops of a route between switches with hosts, where distances say it: routes of layers are minimal ones inside them, and a layer
    /// connects all.
    fn longest(&self) -> Option<u32> {
        let layers = (0..self.tables.layers()).map(|layer| self.tables.diameter(layer));
        let diameters = layers.collect::<Option<Vec<_>>>()?;
        let most = diameters.iter().map(|diameter| diameter.hops).max()?;
        // Hops of several routes are counted in a byte.
        let is_counted = self.spread.is_none() || most < u32::from(u8::MAX);
        (is_counted && diameters.iter().any(|diameter| diameter.is_connected)).then_some(most)
    }

    /// The same where distances bound it, and some route uses as many.
    fn bounded(&self, network: &Network) -> Option<u32> {
        let spreads = self.spread.is_some();
        if spreads {
            self.longest()?;
        }
        let neighbours = self.neighbours(network);
        let is_high =
            |router: u32, place: usize| neighbours[self.row[router as usize] as usize + place].1 > 0;
        let bound = self.tables.bound(spreads, is_high)?;
        (spreads || bound.is_used && bound.is_connected).then_some(bound.hops)
    }

    /// The router behind each of the ports between routers, and the rank of the link.
    fn neighbours(&self, network: &Network) -> Vec<(u32, u8)> {
        let ends = self.row[1..].iter().copied().chain([narrow::<u32>(self.ports.len())]);
        let rows = self.row.iter().zip(ends).map(|(&begin, end)| begin as usize..end as usize);
        let switches = self.hosts..network.nodes();
        let behind = |(switch, row): (u32, std::ops::Range<usize>)| {
            self.ports[row].iter().map(move |&port| {
                let channel = network.ports(switch)[usize::from(port)];
                (network.channel(channel).to - self.hosts, rank(network, channel))
            })
        };
        switches.zip(rows).flat_map(behind).collect()
    }

    /// The steps of a layer's single paths.
    fn onward(&self, layer: u32, targets: &[u32], neighbours: &[(u32, u8)]) -> Onward {
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
            let all = neighbours[first..].iter().zip(&by_neighbour);
            let all = all.map(|(&(to, rank), &targets)| Step { to, rank, targets });
            steps.extend(all.filter(|step| step.targets != 0));
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
                if let Some(hops) = spread.distances(&self.tables, layer).hops(from, to) {
                    *reached |= 1 << bit;
                    most = most.max(u32::from(hops));
                }
            }
        }
        (most, reached)
    }
}

/// The most virtual channels on routes from any of the ends, and the targets that each of them reaches; `None` where a route begins and leads
/// nowhere.
fn spread(onward: &Onward, targets: &[u32], ends: &[u32]) -> Option<(u32, Vec<u64>)> {
    let routers = onward.routers();
    // The targets on the ways to which this many are used, or fewer.
    let mut within = vec![0u64; routers];
    (0..).zip(targets).for_each(|(bit, &to): (u32, _)| within[to as usize] |= 1 << bit);
    let mut next = within.clone();
    let globals = globals(onward);
    let (mut most, mut vcs) = (0, 0);
    // The routers that miss some targets to which they have routes.
    let mut open: Vec<u32> = (0..narrow::<u32>(routers)).collect();
    let mut is_end = vec![false; routers];
    ends.iter().for_each(|&end| is_end[end as usize] = true);
    loop {
        vcs += 1;
        for &here in &open {
            let steps = onward.of(here as usize).iter();
            let reached = steps.fold(0, |all, step| all | step.targets & within[step.to as usize]);
            next[here as usize] |= reached;
        }
        let mut grew = false;
        open.retain(|&here| {
            let here = here as usize;
            let (mut reached, mut known) = (next[here], 0);
            for &Step { to, rank, targets } in onward.of(here) {
                known |= targets;
                if rank == 0
                    && let Some(globals) = &globals
                {
                    // What the global hop behind it uses is known: it takes a virtual channel of its own, whatever follows.
                    reached |= targets & globals[to as usize] & next[to as usize];
                }
            }
            if reached != within[here] {
                grew = true;
                if is_end[here] {
                    most = vcs;
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

/// Per router, the targets on the ways to which it begins with a global hop; `None` if there are no such hops.
fn globals(onward: &Onward) -> Option<Vec<u64>> {
    onward.steps.iter().any(|step| step.rank > 0).then(|| {
        let of = |router| onward.of(router).iter().filter(|step| step.rank > 0);
        (0..onward.routers()).map(|router| of(router).fold(0, |all, step| all | step.targets)).collect()
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use netloom_paths::routes::{Past, RandomLayers, Spain, TreeKind};
    use netloom_topology::{BuildContext, Dragonfly, FatTree, Jellyfish, SlimFly, Topology};
    use proptest::prelude::*;

    use super::*;
    use crate::forwarding::channels::next;
    use crate::selector::layer::{Construction, Layer, WithinLayer};

    /// What [`most_from`] said, by router and how a route has come there.
    type Known = BTreeMap<(u32, Option<(u8, u8)>), u32>;

    /// The virtual channels of a route in a layer that has come to a router by a link of some rank on some virtual channel: the most of all ports.
    fn most_from(
        layers: &Layers,
        network: &Network,
        layer: u32,
        [here, to]: [u32; 2],
        came: Option<(u8, u8)>,
        known: &mut Known,
    ) -> u32 {
        if let Some(&most) = known.get(&(here, came)) {
            return most;
        }
        let mut most = came.map_or(0, |(_, vc)| u32::from(vc) + 1);
        for port in layers.ports(layer, here, to) {
            let channel = network.ports(network.hosts() + here)[usize::from(port)];
            let rank = rank(network, channel);
            let vc = came.map_or(0, |(before, vc)| next(vc, before, rank, u8::MAX));
            let there = network.channel(channel).to - network.hosts();
            most = most.max(most_from(layers, network, layer, [there, to], Some((rank, vc)), known));
        }
        known.insert((here, came), most);
        most
    }

    /// Walks every route of every layer.
    fn walked(layers: &Layers, network: &Network) -> Option<u32> {
        let ends: std::collections::BTreeSet<u32> = layers.router_of.iter().copied().collect();
        let mut most = 0;
        for (&from, &to) in ends.iter().flat_map(|from| ends.iter().map(move |to| (from, to))) {
            let mut is_connected = from == to;
            for layer in (0..layers.tables().layers()).filter(|&layer| layers.leads(layer, from, to)) {
                let used = most_from(layers, network, layer, [from, to], None, &mut Known::new());
                (most, is_connected) = (most.max(used), true);
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
        fn as_many_are_used_as_on_the_longest_route_that_is_walked(
            of in 0usize..5, kind in 0..6, rho in 0.15..1.0, seed in any::<u64>(), single in any::<bool>(),
        ) {
            let topology = match of {
                0 => Topology::SlimFly(SlimFly { q: Some(7), ..SlimFly::default() }),
                1 => Topology::Jellyfish(Jellyfish { switches: 130, degree: 5, ..Jellyfish::default() }),
                4 => Topology::Dragonfly(Dragonfly { hosts_per_switch: Some(3), ..Dragonfly::default() }),
                2 => Topology::Jellyfish(Jellyfish { switches: 64, degree: 3, ..Jellyfish::default() }),
                _ => Topology::FatTree(FatTree { k: Some(6), ..FatTree::default() }),
            };
            let network = topology.build(&BuildContext { seed, base_dir: Path::new("") }).unwrap();
            let construction = match kind {
                0 => Construction::Past(Past::default()),
                4 => Construction::Past(Past { tree: TreeKind::NonMinimal, layers: 2 }),
                1 => Construction::Spain(Spain { layers: Some(2), ..Spain::default() }),
                _ => Construction::RandomLayers(RandomLayers { layers: 3, rho, retries: 0, ..Default::default() }),
            };
            let within_layer = if single { WithinLayer::SinglePath } else { WithinLayer::Ecmp };
            let config = Layer { construction, within_layer, ..Layer::default() };
            let layers = Layers::build(&config, &network, |_| false, seed).unwrap();
            let is_connected = || layers.longest().is_some();
            let is_unknown = of == 4 && !single && !is_connected();
            let expected = walked(&layers, &network).filter(|_| !is_unknown);
            prop_assert_eq!(layers.most_vcs(&network), expected);
        }
    }

    #[test]
    fn steps_hold_the_targets_whose_next_hop_they_are() {
        let slim_fly = Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() });
        let network = slim_fly.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        let construction =
            Construction::RandomLayers(RandomLayers { layers: 2, rho: 0.5, ..Default::default() });
        let config = Layer { construction, ..Layer::default() };
        let layers = Layers::build(&config, &network, |_| false, 1).unwrap();
        let targets: Vec<u32> = (0..layers.tables().routers()).collect();
        let graph = network.router_graph();
        for layer in 0..2 {
            let onward = layers.onward(layer, &targets, &layers.neighbours(&network));
            assert_eq!(onward.routers(), targets.len());
            for here in 0..50 {
                let mut expected: BTreeMap<u32, u64> = BTreeMap::new();
                for &to in &targets {
                    if let Some(next) = layers.tables().next_port(layer, here, to) {
                        *expected.entry(graph.neighbours(here)[usize::from(next)]).or_default() |= 1 << to;
                    }
                }
                let found = onward.of(here as usize).iter().map(|step| (step.to, step.targets));
                assert_eq!(found.collect::<BTreeMap<_, _>>(), expected, "layer {layer}, router {here}");
            }
        }
    }

    /// Where links rank, with one way and with all, and where paths lead over the roots of trees.
    #[test]
    fn a_bound_that_some_route_reaches_needs_no_walk() {
        let build =
            |topology: Topology| topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap();
        let dragonfly =
            build(Topology::Dragonfly(Dragonfly { about_hosts: Some(400), ..Default::default() }));
        let slim_fly = build(Topology::SlimFly(SlimFly { q: Some(7), ..SlimFly::default() }));
        let jellyfish =
            build(Topology::Jellyfish(Jellyfish { switches: 150, degree: 5, ..Jellyfish::default() }));
        let past = |tree| Construction::Past(Past { tree, layers: 2 });
        let random = || Construction::RandomLayers(RandomLayers { layers: 4, ..Default::default() });
        for (network, construction, within_layer) in [
            (&dragonfly, random(), WithinLayer::SinglePath),
            (&dragonfly, random(), WithinLayer::Ecmp),
            (&dragonfly, past(TreeKind::Random), WithinLayer::SinglePath),
            (&slim_fly, past(TreeKind::NonMinimal), WithinLayer::SinglePath),
            (&dragonfly, past(TreeKind::NonMinimal), WithinLayer::SinglePath),
            (&jellyfish, past(TreeKind::NonMinimal), WithinLayer::SinglePath),
        ] {
            let config = Layer { construction, within_layer, ..Layer::default() };
            let layers = Layers::build(&config, network, |_| false, 1).unwrap();
            let known = layers.bounded(network);
            assert!(known.is_some(), "{config:?}");
            assert_eq!(known, walked(&layers, network));
        }
    }
}
