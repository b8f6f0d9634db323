//! How a flow divides among the links between its two switches.

use std::ops::Range;

use indexmap::IndexMap;
use netloom_units::narrow;
use rustc_hash::FxBuildHasher;

use crate::max_min::Resource;

/// The links that a flow takes, and the part of it that crosses each.
#[derive(Debug)]
pub(crate) struct Split {
    /// Each once in each alternative; the alternatives follow each other.
    pub(crate) resources: Box<[Resource]>,
    /// Of 1, if the flow takes no other alternative.
    pub(crate) weights: Box<[f64]>,
    /// Where there are several: the one to which each resource belongs.
    pub(crate) of: Box<[u32]>,
    /// None where there is only one.
    pub(crate) alternatives: Box<[Alternative]>,
}

/// Links that a flow can do without: it goes on over the other alternatives when one of them is full.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Alternative {
    /// Its resources, among those of the split.
    pub(crate) resources: Range<usize>,
    /// How much of the flow it takes, compared with the others of its kind that are open.
    pub(crate) part: f64,
    /// Whether it is taken only when no alternative is open that is none.
    pub(crate) is_detour: bool,
}

/// Behind the last link.
pub(crate) const ARRIVED: u32 = u32::MAX;

impl Split {
    /// All of the flow takes each of these links.
    pub(crate) fn along(resources: impl IntoIterator<Item = Resource>) -> Self {
        let resources: Vec<Resource> = resources.into_iter().collect();
        let weights = vec![1.0; resources.len()];
        Split::of(resources, weights)
    }

    fn of(resources: Vec<Resource>, weights: Vec<f64>) -> Self {
        Split { resources: resources.into(), weights: weights.into(), of: [].into(), alternatives: [].into() }
    }

    /// Over minimal paths, and detours for what these have no room for, in these parts; none if there are none.
    pub(crate) fn among(minimal: &[(Vec<Resource>, f64)], detours: &[(Vec<Resource>, f64)]) -> Option<Self> {
        let paths = minimal.iter().map(|path| (path, false)).chain(detours.iter().map(|path| (path, true)));
        let (mut resources, mut weights, mut of, mut alternatives) = (vec![], vec![], vec![], vec![]);
        for (number, ((path, part), is_detour)) in (0..).zip(paths) {
            let first = resources.len();
            let along = Split::over(&[(path.clone(), 1.0)])?;
            resources.extend(along.resources);
            weights.extend(along.weights);
            of.resize(resources.len(), number);
            alternatives.push(Alternative { resources: first..resources.len(), part: *part, is_detour });
        }
        match alternatives.len() {
            0 => None,
            1 => Some(Split::of(resources, weights)),
            _ => Some(Split {
                of: of.into(),
                alternatives: alternatives.into(),
                ..Split::of(resources, weights)
            }),
        }
    }

    /// In these parts among paths; none if there are none. A resource stands for one link.
    pub(crate) fn over(paths: &[(Vec<Resource>, f64)]) -> Option<Self> {
        let mut weights: IndexMap<Resource, f64, FxBuildHasher> = IndexMap::default();
        let all: f64 = paths.iter().map(|(_, part)| part).sum();
        for (path, part) in paths {
            for &resource in path {
                *weights.entry(resource).or_default() += part / all;
            }
        }
        let (resources, weights) = weights.into_iter().unzip();
        (!paths.is_empty()).then(|| Split::of(resources, weights))
    }

    /// Evenly at each node among the edges that lead on; none if nothing does. An edge is its resource and the node behind it; the flow begins at the first
    /// node, and nodes come before those to which they lead. A resource may be that of several edges, which stand for as many links that are loaded alike:
    /// what crosses it is the part on each of these.
    pub(crate) fn evenly(nodes: &[Vec<(Resource, u32)>]) -> Option<Self> {
        let mut leads_on = vec![false; nodes.len()];
        for node in (0..nodes.len()).rev() {
            leads_on[node] = nodes[node].iter().any(|&(_, next)| is_open(next, &leads_on));
        }
        if !leads_on[0] {
            return None;
        }
        let mut shares = vec![0.0; nodes.len()];
        shares[0] = 1.0;
        let mut sums: IndexMap<Resource, (f64, u32), FxBuildHasher> = IndexMap::default();
        for (node, edges) in nodes.iter().enumerate() {
            let open = || edges.iter().filter(|&&(_, next)| is_open(next, &leads_on));
            let share = shares[node] / f64::from(narrow::<u32>(open().count().max(1)));
            for &(resource, next) in open().filter(|_| share > 0.0) {
                let (sum, edges) = sums.entry(resource).or_default();
                (*sum, *edges) = (*sum + share, *edges + 1);
                if next != ARRIVED {
                    shares[next as usize] += share;
                }
            }
        }
        let weights = sums.values().map(|&(sum, edges)| sum / f64::from(edges)).collect();
        Some(Split::of(sums.into_keys().collect(), weights))
    }
}

fn is_open(next: u32, leads_on: &[bool]) -> bool {
    next == ARRIVED || leads_on[next as usize]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_switch_divides_evenly() {
        // Two ways of two links each, and one of them divides again.
        let nodes = [vec![(10, 1), (11, 2)], vec![(12, ARRIVED)], vec![(13, ARRIVED), (14, ARRIVED)]];
        let split = Split::evenly(&nodes).unwrap();
        assert_eq!(*split.resources, [10, 11, 12, 13, 14]);
        assert_eq!(*split.weights, [0.5, 0.5, 0.5, 0.25, 0.25]);
    }

    #[test]
    fn paths_with_numbers_carry_their_parts() {
        let paths = [(vec![10, 11], 1.0), (vec![12, 11], 1.0), (vec![12, 13], 1.0), (vec![10, 11], 1.0)];
        let split = Split::over(&paths).unwrap();
        assert_eq!(*split.resources, [10, 11, 12, 13]);
        assert_eq!(*split.weights, [0.5, 0.75, 0.5, 0.25]);
        assert!(Split::over(&[]).is_none());
        // Both hosts are at one switch.
        assert!(Split::over(&[(vec![], 1.0)]).unwrap().resources.is_empty());
        // What is left of parts whose other paths are cut; and one that crosses a link twice.
        let split = Split::over(&[(vec![1, 2, 1], 0.25), (vec![2], 0.25)]).unwrap();
        assert_eq!((&*split.resources, &*split.weights), (&[1, 2][..], &[1.0, 1.0][..]));
    }

    #[test]
    fn paths_are_alternatives_to_each_other() {
        let split = Split::among(&[(vec![1, 2], 1.0)], &[(vec![1, 3, 1], 0.5), (vec![4], 0.25)]).unwrap();
        assert_eq!(*split.resources, [1, 2, 1, 3, 4]);
        assert_eq!(*split.weights, [1.0, 1.0, 2.0, 1.0, 1.0]);
        assert_eq!(*split.of, [0, 0, 1, 1, 2]);
        let alternative = |resources, part, is_detour| Alternative { resources, part, is_detour };
        let all =
            [alternative(0..2, 1.0, false), alternative(2..4, 0.5, true), alternative(4..5, 0.25, true)];
        assert_eq!(*split.alternatives, all);
        assert!(Split::among(&[], &[(vec![1], 1.0)]).unwrap().alternatives.is_empty());
        assert!(Split::among(&[], &[]).is_none());
    }

    #[test]
    fn nothing_goes_where_nothing_leads_on() {
        let nodes = [vec![(10, 1), (11, 2)], vec![(12, ARRIVED)], vec![]];
        let split = Split::evenly(&nodes).unwrap();
        assert_eq!((&*split.resources, &*split.weights), (&[10, 12][..], &[1.0, 1.0][..]));
        assert!(Split::evenly(&[vec![(10, 1)], vec![]]).is_none());
    }

    #[test]
    fn links_that_are_alike_count_as_one() {
        // Two first links, each before two second ones.
        let nodes =
            [vec![(0, 1), (0, 2)], vec![(1, ARRIVED), (1, ARRIVED)], vec![(1, ARRIVED), (1, ARRIVED)]];
        let split = Split::evenly(&nodes).unwrap();
        assert_eq!((&*split.resources, &*split.weights), (&[0, 1][..], &[0.5, 0.25][..]));
    }
}
