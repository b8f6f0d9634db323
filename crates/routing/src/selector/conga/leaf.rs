//! What a leaf switch knows of the congestion of paths to and from other leaves.

use netloom_units::{Time, narrow};
use rand::Rng;

use super::{Conga, Marking, Order, Report};
use crate::path_selector::{Machine, SwitchPlace};
use crate::scheme::Routing;
use crate::selector::random::below;

/// What a leaf switch knows of the paths to and from others.
#[derive(Clone, Debug)]
pub(crate) struct Leaf {
    config: Conga,
    /// By how many bits a utilisation is shifted for a congestion, and the most that this can be.
    shift: u32,
    most: u64,
    /// By other leaf and label: what that leaf has reported of the paths to it, and until when that counts.
    to: ByLeaf<Vec<(u8, Time)>>,
    /// By other leaf: what has been seen of the paths from it.
    from: ByLeaf<Seen>,
}

/// Something for each of the other leaves that have been met.
#[derive(Clone, Debug, Default)]
struct ByLeaf<T> {
    /// By leaf, one more than its place among `kept`; 0 for those that have not been met.
    places: Vec<u32>,
    kept: Vec<T>,
}

impl<T: Default> ByLeaf<T> {
    #[inline]
    fn place(&self, leaf: u32) -> usize {
        self.places.get(leaf as usize).map_or(usize::MAX, |&place| (place as usize).wrapping_sub(1))
    }

    #[inline]
    fn get(&self, leaf: u32) -> Option<&T> {
        self.kept.get(self.place(leaf))
    }

    #[inline]
    fn get_mut(&mut self, leaf: u32) -> Option<&mut T> {
        let place = self.place(leaf);
        self.kept.get_mut(place)
    }

    /// What there is for a leaf; the default when it is first met.
    #[inline]
    fn meet(&mut self, leaf: u32) -> &mut T {
        let place = match self.place(leaf) {
            usize::MAX => self.add(leaf),
            place => place,
        };
        &mut self.kept[place]
    }

    #[cold]
    fn add(&mut self, leaf: u32) -> usize {
        let leaf = leaf as usize;
        if self.places.len() <= leaf {
            self.places.resize(leaf + 1, 0);
        }
        self.kept.push(T::default());
        self.places[leaf] = narrow::<u32>(self.kept.len());
        self.kept.len() - 1
    }
}

/// What a leaf has seen of the paths from another one.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// By label; none where nothing has come.
    paths: Vec<Option<Path>>,
    /// How many of them have not been reported as they are now.
    untold: usize,
    /// Which is the next to be reported.
    turn: usize,
}

#[derive(Clone, Copy, Debug)]
struct Path {
    congestion: u8,
    is_told: bool,
    /// When something last came by it.
    at: Time,
}

impl Seen {
    /// The next path in turn, and those first that have changed since they were reported.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "labels that have been read from packets have at most 12 bits"
    )]
    fn next_changed(&mut self) -> Option<Report> {
        let Seen { paths, untold, turn } = self;
        let is_next = |place: &usize| paths[*place].is_some_and(|path| *untold == 0 || !path.is_told);
        let first = *turn % paths.len().max(1);
        let place = (first..paths.len()).chain(0..first).find(is_next)?;
        *turn = place + 1;
        let path = paths[place].as_mut()?;
        *untold -= usize::from(!path.is_told);
        path.is_told = true;
        Some(Report { label: place as u16, congestion: path.congestion })
    }

    /// One of the paths by which something has come since then.
    fn any(&self, since: Time, random: &mut impl Rng) -> Option<Report> {
        let known = |(label, path): (u16, &Option<Path>)| {
            path.filter(|path| path.at >= since).map(|path| Report { label, congestion: path.congestion })
        };
        let known = || (0u16..).zip(&self.paths).filter_map(known);
        match known().count() {
            0 => None,
            count => known().nth(below(count, random)),
        }
    }
}

impl Leaf {
    /// One that knows nothing.
    pub(crate) fn new(config: &Conga) -> Self {
        let most = if config.capped { (1 << config.bits) - 1 } else { config.layout().most() };
        Leaf {
            config: config.clone(),
            shift: 16 - u32::from(config.bits),
            most: most.into(),
            to: ByLeaf::default(),
            from: ByLeaf::default(),
        }
    }

    /// The label of the path to leaf `last` that a run of packets takes; there are `paths` of them. `before` is that of the flow's packets
    /// before, `local` the congestion of the port by which a path begins.
    #[expect(clippy::cast_possible_truncation, reason = "below Layout::none, 16 bits")]
    pub(crate) fn choose(
        &self,
        (last, paths): (u32, u32),
        before: Option<u16>,
        mut local: impl FnMut(u16) -> u8,
        now: Time,
        random: &mut impl Rng,
    ) -> u16 {
        let reported = self.to.get(last);
        let (mut best, mut least, mut ties) = (0, u8::MAX, 0);
        let paths = self.labels(paths);
        let compared = self.config.candidates.map_or(paths, |candidates| candidates.min(paths));
        let first = if compared < paths { below((paths - compared) as usize + 1, random) as u32 } else { 0 };
        let before = before.filter(|_| self.config.keeps);
        for label in first as u16..(first + compared) as u16 {
            let reported = reported.and_then(|reported| reported.get(usize::from(label)));
            let remote = reported.map_or(0, |&(congestion, until)| if now < until { congestion } else { 0 });
            let congestion = local(label).max(remote);
            if congestion < least {
                (best, least, ties) = (label, congestion, 1);
            } else if congestion == least && Some(best) != before {
                // The n-th equal path replaces the choice with probability 1/n, and the path of before in any case.
                ties += 1;
                if Some(label) == before || below(ties, random) == 0 {
                    best = label;
                }
            }
        }
        best
    }

    /// How many labels there are for this many paths: one for each, as networks with more than [`Layout::most_paths`] are refused. Only routes around faults may be more.
    pub(crate) fn labels(&self, paths: u32) -> u32 {
        paths.clamp(1, self.config.layout().most_paths())
    }

    /// The congestion of a link, rounded down, from its utilisation in 65,536ths.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "at most `most`")]
    pub(crate) fn rounded(&self, utilisation: u64) -> u8 {
        (utilisation >> self.shift).min(self.most) as u8
    }

    /// A data packet has come from leaf `first`.
    pub(crate) fn see(&mut self, first: u32, marking: Marking, now: Time) {
        let Seen { paths, untold, .. } = self.from.meet(first);
        let label = usize::from(marking.label);
        if paths.len() <= label {
            paths.resize(label + 1, None);
        }
        let congestion = marking.congestion;
        match &mut paths[label] {
            Some(path) if path.congestion == congestion => path.at = now,
            Some(path) => {
                *untold += usize::from(path.is_told);
                *path = Path { congestion, is_told: false, at: now };
            }
            new => {
                *untold += 1;
                *new = Some(Path { congestion, is_told: false, at: now });
            }
        }
    }

    /// A packet's report, to the leaf where it goes, of a path from there.
    pub(crate) fn report(&mut self, last: u32, now: Time, random: &mut impl Rng) -> Option<Report> {
        let (order, ageing) = (self.config.order, self.config.ageing);
        let seen = self.from.get_mut(last)?;
        match order {
            Order::ChangedFirst => seen.next_changed(),
            Order::Random => seen.any(now.saturating_sub(ageing), random),
        }
    }

    /// Leaf `first` has reported a path to it.
    pub(crate) fn on_report(&mut self, first: u32, report: Report, now: Time) {
        let reported = self.to.meet(first);
        let label = usize::from(report.label);
        if reported.len() <= label {
            reported.resize(label + 1, (0, Time::ZERO));
        }
        reported[label] = (report.congestion, now + self.config.ageing);
    }
}

impl Machine for Leaf {
    fn at_switch(scheme: &Routing, _: SwitchPlace) -> Option<Self> {
        scheme.conga().map(Leaf::new)
    }

    fn on_new_routes(&mut self, scheme: &Routing) {
        if let Some(conga) = scheme.conga() {
            *self = Leaf::new(conga);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::SelectorConfig;
    use crate::selector::estimator::Estimator;
    use rand_pcg::Pcg64Mcg;

    const OTHER: u32 = 9;

    fn leaf() -> (Leaf, Pcg64Mcg) {
        (Leaf::new(&Conga { ageing: Time(1000), ..Conga::default() }), Pcg64Mcg::new(1))
    }

    fn marking(label: u16, congestion: u8) -> Marking {
        Marking { label, congestion, report: None }
    }

    #[test]
    fn markings_survive_the_wire() {
        for report in
            [None, Some(Report { label: 4094, congestion: 15 }), Some(Report { label: 0, congestion: 0 })]
        {
            let (layout, marking) = (Conga::default().layout(), Marking { label: 77, congestion: 7, report });
            assert_eq!(Marking::from_bits(marking.bits(layout), layout), marking);
            assert_eq!(Marking::from_bits(Marking::default().bits(layout), layout), Marking::default());
        }
        let layout = Conga { capped: false, ..Conga::default() }.layout();
        for report in [None, Some(Report { label: 1022, congestion: 63 })] {
            let marking = Marking { label: 1022, congestion: 63, report };
            assert_eq!(Marking::from_bits(marking.bits(layout), layout), marking);
        }
    }

    #[test]
    fn congestion_without_a_cap_tells_an_overloaded_port_from_a_busy_one() {
        let leaf = Leaf::new(&Conga { capped: false, ..Conga::default() });
        assert_eq!([65_536, 90_000, 200_000, 9_000_000].map(|parts| leaf.rounded(parts)), [8, 10, 24, 63]);
    }

    /// Eight paths of which the last is best: it is among four that follow each other for one of five beginnings.
    #[test]
    fn a_few_paths_that_follow_each_other_are_compared() {
        let leaf = Leaf::new(&Conga { candidates: Some(4), ..Conga::default() });
        let mut random = Pcg64Mcg::new(1);
        let mut hits = [0u32; 8];
        for _ in 0..5000 {
            let label = leaf.choose((OTHER, 8), None, |label| 7 - label as u8, Time(0), &mut random);
            hits[usize::from(label)] += 1;
        }
        assert_eq!(hits[..3], [0; 3]);
        // Six standard deviations of a binomial(5000, 1/5).
        assert!(hits[3..].iter().all(|hits| hits.abs_diff(1000) < 170), "{hits:?}");
    }

    #[test]
    fn a_flow_draws_among_the_best_paths_where_it_does_not_keep_its_own() {
        let leaf = Leaf::new(&Conga { keeps: false, ..Conga::default() });
        let mut random = Pcg64Mcg::new(1);
        let left =
            (0..1000).filter(|_| leaf.choose((OTHER, 4), Some(2), |_| 0, Time(0), &mut random) != 2).count();
        assert!((670..830).contains(&left), "{left}");
    }

    #[test]
    fn a_random_path_that_is_not_stale_is_told_of() {
        let config = Conga { order: Order::Random, ageing: Time(1000), ..Conga::default() };
        let (mut leaf, mut random) = (Leaf::new(&config), Pcg64Mcg::new(1));
        leaf.see(OTHER, marking(0, 4), Time(0));
        leaf.see(OTHER, marking(3, 2), Time(500));
        leaf.see(OTHER, marking(5, 1), Time(900));
        let mut reported = |now| {
            let mut labels: Vec<_> = (0..60)
                .map(|_| leaf.report(OTHER, Time(now), &mut random).map(|reported| reported.label))
                .collect();
            labels.sort_unstable();
            labels.dedup();
            labels
        };
        assert_eq!(reported(1000), [Some(0), Some(3), Some(5)]);
        assert_eq!(reported(1001), [Some(3), Some(5)]);
        assert_eq!(reported(1901), [None]);
    }

    #[test]
    fn congestion_is_an_eighth_of_the_link_and_never_more_than_seven() {
        let (leaf, _) = leaf();
        let rounded = [0, 8191, 8192, 32_767, 57_344, 65_536, 90_000].map(|parts| leaf.rounded(parts));
        assert_eq!(rounded, [0, 0, 1, 3, 7, 7, 7]);
    }

    /// The paper's rule: the greater of what is measured here and what is reported from there, and the least of these.
    #[test]
    fn the_path_is_taken_whose_worst_link_is_least_congested() {
        let (mut leaf, mut random) = leaf();
        let local = |label: u16| [5, 1, 0, 4][usize::from(label)];
        assert_eq!(leaf.choose((OTHER, 4), None, local, Time(0), &mut random), 2);
        leaf.on_report(OTHER, Report { label: 2, congestion: 6 }, Time(0));
        assert_eq!(leaf.choose((OTHER, 4), None, local, Time(10), &mut random), 1);
        leaf.on_report(OTHER, Report { label: 1, congestion: 7 }, Time(10));
        assert_eq!(leaf.choose((OTHER, 4), None, local, Time(20), &mut random), 3);
        assert_eq!(
            leaf.choose((OTHER + 1, 4), None, local, Time(20), &mut random),
            2,
            "of that leaf nothing is known"
        );
        // What is not reported again is forgotten.
        assert_eq!(leaf.choose((OTHER, 4), None, local, Time(999), &mut random), 3);
        assert_eq!(leaf.choose((OTHER, 4), None, local, Time(1000), &mut random), 2);
    }

    #[test]
    fn a_flow_moves_only_to_a_strictly_better_path() {
        let (leaf, mut random) = leaf();
        let level = [3, 2, 5, 2, 2];
        let mut hits = [0u32; 5];
        for _ in 0..3000 {
            let local = |label: u16| level[usize::from(label)];
            for before in [1, 3, 4] {
                assert_eq!(leaf.choose((OTHER, 5), Some(before), local, Time(0), &mut random), before);
            }
            hits[usize::from(leaf.choose((OTHER, 5), Some(0), local, Time(0), &mut random))] += 1;
        }
        assert_eq!((hits[0], hits[2]), (0, 0));
        assert!([1, 3, 4].iter().all(|&label: &usize| hits[label].abs_diff(1000) < 160), "{hits:?}");
    }

    #[test]
    fn paths_are_told_in_turn_and_first_those_that_have_changed() {
        let (mut leaf, mut random) = leaf();
        assert_eq!(leaf.report(OTHER, Time(0), &mut random), None);
        for (label, congestion) in [(0, 4), (1, 1), (3, 2)] {
            leaf.see(OTHER, marking(label, congestion), Time(0));
        }
        let mut report = |leaf: &mut Leaf| {
            leaf.report(OTHER, Time(0), &mut random)
                .map(|reported| (reported.label, reported.congestion))
                .unwrap()
        };
        assert_eq!([0; 4].map(|_| report(&mut leaf)), [(0, 4), (1, 1), (3, 2), (0, 4)]);
        // Path 1 is next, but only path 3 has changed; path 0 comes as it was.
        leaf.see(OTHER, marking(3, 6), Time(0));
        leaf.see(OTHER, marking(0, 4), Time(0));
        assert_eq!([0; 3].map(|_| report(&mut leaf)), [(3, 6), (0, 4), (1, 1)]);
        // A path that changes twice is reported once, as it is.
        leaf.see(OTHER, marking(1, 5), Time(0));
        leaf.see(OTHER, marking(1, 2), Time(0));
        assert_eq!([0; 2].map(|_| report(&mut leaf)), [(1, 2), (3, 6)]);
    }

    #[test]
    fn leaves_keep_what_is_theirs_in_whatever_order_they_are_met() {
        let mut by_leaf = ByLeaf::<u32>::default();
        for leaf in [7, 0, 3] {
            *by_leaf.meet(leaf) = 10 * leaf;
        }
        *by_leaf.meet(0) += 1;
        *by_leaf.get_mut(3).unwrap() += 2;
        assert_eq!([0, 3, 7].map(|leaf| *by_leaf.get(leaf).unwrap()), [1, 32, 70]);
        assert_eq!([1, 5, 8].map(|leaf| by_leaf.get(leaf)), [None; 3]);
        assert_eq!(by_leaf.get_mut(8), None);
    }

    #[test]
    fn numbers_without_meaning_are_refused_by_field() {
        let refusal = |config: Conga| config.check().unwrap_err().to_string();
        assert!(refusal(Conga { candidates: Some(0), ..Conga::default() }).starts_with("candidates"));
        assert!(refusal(Conga { bits: 5, ..Conga::default() }).starts_with("bits: expected 1 to 4, found 5"));
        assert!(refusal(Conga { ageing: Time::ZERO, ..Conga::default() }).starts_with("ageing"));
        let estimator = Estimator { discount: 0.0, ..Estimator::default() };
        assert!(refusal(Conga { estimator, ..Conga::default() }).starts_with("estimator.discount"));
        let estimator = Estimator { period: Time::ZERO, ..Estimator::default() };
        assert!(refusal(Conga { estimator, ..Conga::default() }).starts_with("estimator.period"));
    }
}
