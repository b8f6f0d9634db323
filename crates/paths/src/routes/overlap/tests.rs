use super::*;
use crate::distance::{UNREACHABLE, distances_from};
use crate::testing::{complete, cycle, petersen, random};
use rand::{RngExt, SeedableRng};

#[test]
fn layers_of_a_clique_are_made_of_two_hop_paths() {
    let graph = complete(12);
    let config = OverlapMinimising {
        layers: 4,
        minimum_hops: MinimumHops::OneMoreThanMinimal,
        extra_hops: 0,
        paths_per_layer: Some(8),
        ..Default::default()
    };
    let layers = config.layers(&graph, 1).unwrap();
    assert_eq!(layers[0].len(), 66);
    assert!(layers[1..].iter().all(|links| (2..=16).contains(&links.len())));
}

#[test]
fn later_layers_prefer_links_that_earlier_ones_left_out() {
    let graph = complete(10);
    let config = OverlapMinimising {
        layers: 3,
        minimum_hops: MinimumHops::OneMoreThanMinimal,
        extra_hops: 0,
        paths_per_layer: Some(5),
        weights: EdgeWeights::Symmetric,
    };
    let shared = |seed| {
        let layers = config.layers(&graph, seed).unwrap();
        layers[1].iter().filter(|&edge| layers[2].contains(edge)).count()
    };
    // Two independent layers of ten of 45 links would share 2.2 on average.
    let mean = (0..50).map(shared).sum::<usize>() as f64 / 50.0;
    assert!(mean < 1.2, "{mean}");
}

/// The lightest permutation-obeying path by trying all.
fn enumerate(graph: &RouterGraph, here: u32, to: u32, hops: u16, bounds: &Bounds<'_>) -> Option<u64> {
    if here == to {
        return bounds.hops.contains(&hops).then_some(0);
    }
    let steps = graph.neighbours(here).iter().zip(graph.edge_ids(here));
    steps
        .filter(|&(&next, &edge)| {
            hops < *bounds.hops.end()
                && bounds.allowed.contains(edge)
                && bounds.position[next as usize] > bounds.position[here as usize]
        })
        .filter_map(|(&next, &edge)| {
            enumerate(graph, next, to, hops + 1, bounds).map(|w| w + bounds.weight[edge as usize])
        })
        .min()
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
    #[test]
    fn dynamic_programming_finds_the_weight_that_enumeration_finds(seed in 0..1000u64, fewest in 1..4u16) {
        let graph = random(12, 30, seed);
        let distances = LayerDistances::new(&graph, &LinkSet::full(&graph));
        let mut rng = Pcg64Mcg::seed_from_u64(seed);
        let weight: Vec<u64> = graph.edges().iter().map(|_| rng.random_range(0..9)).collect();
        let position: Vec<u32> = (0..12).collect();
        let mut allowed = LinkSet::full(&graph);
        allowed.remove(3);
        let later = Later::new(&graph, &position);
        let hops = fewest..=fewest + 1;
        let bounds = Bounds { allowed: &allowed, position: &position, later: &later, weight: &weight, hops };
        let mut search = Search::new(&graph);
        for (from, to) in [(0, 11), (1, 8), (2, 3), (0, 5)] {
            let path = search.lightest(&graph, &distances, from, to, &bounds);
            let found = path.map(|p| p.iter().map(|&(_, edge)| weight[edge as usize]).sum::<u64>());
            proptest::prop_assert_eq!(found, enumerate(&graph, from, to, 0, &bounds));
        }
    }
}

/// The routers of a path behind its first one, and the edges by which they are entered.
type Steps = Vec<(u32, u32)>;

/// The layers by sorting all pairs, and by searching from one end.
fn plain(config: &OverlapMinimising, graph: &RouterGraph, seed: u64) -> Vec<LinkSet> {
    let mut rng = Analysis::OverlapLayers.stream(seed);
    let ends = endpoints(graph);
    let hops: Vec<Vec<u16>> =
        (0..graph.routers()).map(|from| distances_from(graph, &[from], UNREACHABLE)).collect();
    let between = ends.iter().flat_map(|&a| ends.iter().map(move |&b| (a, b)));
    let diameter = between.map(|(a, b)| hops[a as usize][b as usize]).max().unwrap();
    let mut weight = vec![0u64; graph.edges().len()];
    let mut given = BTreeMap::<(u32, u32), u32>::new();
    let mut layers = vec![LinkSet::full(graph)];
    while layers.len() < config.layers as usize {
        let mut order: Vec<u32> = (0..graph.routers()).collect();
        order.shuffle(&mut rng);
        let mut place = vec![0; order.len()];
        order.iter().zip(0u32..).for_each(|(&router, at)| place[router as usize] = at);
        let pairs = ends.iter().flat_map(|&a| ends.iter().map(move |&b| (a, b))).filter(|(a, b)| a < b);
        let mut pairs: Vec<_> =
            pairs.map(|pair| (given.get(&pair).copied().unwrap_or(0), rng.random::<u32>(), pair)).collect();
        pairs.sort_unstable();
        let (mut served, mut allowed) = (HashSet::new(), LinkSet::full(graph));
        let (mut layer, mut paths) = (LinkSet::empty(graph), 0);
        for (_, _, (a, b)) in pairs {
            if paths == config.paths_per_layer.unwrap_or(ends.len() as u64) || served.contains(&(a, b)) {
                continue;
            }
            let (from, to) = if place[a as usize] < place[b as usize] { (a, b) } else { (b, a) };
            let fewest = match config.minimum_hops {
                MinimumHops::Diameter => diameter,
                MinimumHops::OneMoreThanMinimal => hops[from as usize][to as usize] + 1,
            };
            let longest = fewest.saturating_add(config.extra_hops).min(graph.routers() as u16);
            // Per number of hops, the routers that are reached, in order, each with its path and that path's weight.
            let mut at: Vec<(u32, u64, Steps)> = vec![(from, 0, Vec::new())];
            let mut best: Option<(u64, Steps)> = None;
            for hop in 1..=longest {
                let mut next: Vec<(u32, u64, Steps)> = Vec::new();
                for (here, so_far, path) in at.iter().filter(|(here, ..)| *here != to) {
                    for (&to_there, &edge) in graph.neighbours(*here).iter().zip(graph.edge_ids(*here)) {
                        let rises = place[*here as usize] < place[to_there as usize];
                        if !rises
                            || place[to_there as usize] > place[to as usize]
                            || hops[to_there as usize][to as usize] + hop > longest
                            || !allowed.contains(edge)
                        {
                            continue;
                        }
                        let mut path = path.clone();
                        path.push((to_there, edge));
                        let heavy = so_far + weight[edge as usize];
                        match next.iter_mut().find(|(known, ..)| *known == to_there) {
                            None => next.push((to_there, heavy, path)),
                            Some(known) if heavy < known.1 => (known.1, known.2) = (heavy, path),
                            Some(_) => {}
                        }
                    }
                }
                if let Some((_, heavy, path)) = next.iter().find(|(there, ..)| *there == to)
                    && hop >= fewest
                    && best.as_ref().is_none_or(|(known, _)| heavy < known)
                {
                    best = Some((*heavy, path.clone()));
                }
                at = next;
            }
            let Some((_, path)) = best else { continue };
            paths += 1;
            *given.entry((a, b)).or_default() += 1;
            let n = path.len() as u64;
            for (&(_, edge), i) in path.iter().zip(0..) {
                layer.insert(edge);
                weight[edge as usize] += match config.weights {
                    EdgeWeights::Listing => i * (n - i),
                    EdgeWeights::Symmetric => (i + 1) * (n - i),
                };
            }
            let way: Vec<u32> = std::iter::once(from).chain(path.iter().map(|step| step.0)).collect();
            for (i, j) in (0..way.len()).flat_map(|i| (i + 1..way.len()).map(move |j| (i, j))) {
                let (one, other) = (way[i], way[j]);
                let edges = graph.neighbours(one).iter().zip(graph.edge_ids(one));
                edges
                    .filter(|&(&to_there, _)| to_there == other && j > i + 1)
                    .for_each(|(_, &edge)| allowed.remove(edge));
                if j - i < usize::from(fewest) {
                    served.insert((one.min(other), one.max(other)));
                }
            }
        }
        layers.push(layer);
    }
    layers
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(96))]
    #[test]
    fn layers_are_those_of_sorting_all_pairs_and_searching_from_one_end(
        routers in 2u32..40, chords in 0usize..160, doubled in 0usize..20, hostless in 0u32..3, seed in 0..1000u64,
        extra_hops in 0u16..3, over in proptest::prelude::any::<bool>(), listing in proptest::prelude::any::<bool>(),
        paths_per_layer in proptest::option::of(0u64..120),
    ) {
        let graph = random(routers, chords, seed);
        let mut edges = graph.edges().to_vec();
        edges.extend_from_within(..doubled.min(edges.len()));
        let hosts = (0..routers).map(|router| u32::from(router % 3 >= hostless)).collect();
        let graph = RouterGraph::new(hosts, edges);
        let config = OverlapMinimising {
            layers: 5,
            minimum_hops: if over { MinimumHops::OneMoreThanMinimal } else { MinimumHops::Diameter },
            extra_hops,
            paths_per_layer,
            weights: if listing { EdgeWeights::Listing } else { EdgeWeights::Symmetric },
        };
        proptest::prop_assert_eq!(config.layers(&graph, seed).unwrap(), plain(&config, &graph, seed));
    }
}

#[test]
fn every_path_and_table_is_valid() {
    for (graph, seed) in [(petersen(), 1), (cycle(7), 2), (random(40, 120, 3), 3), (complete(9), 4)] {
        let config = OverlapMinimising { layers: 5, ..Default::default() };
        let reach = config.build(&graph, seed).unwrap().validate(&graph).unwrap();
        assert_eq!(reach.len(), 5);
        assert_eq!(reach[0].unreached, 0);
        assert_eq!(config.layers(&graph, seed), config.layers(&graph, seed));
    }
}
