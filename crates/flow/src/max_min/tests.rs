//! Closed forms, and what makes rates max-min fair.

use proptest::prelude::*;

use super::*;

/// A network of links of these capacities, which the tests' flows cross in given parts. The links of hosts are so fast that they never count.
struct Net {
    solver: MaxMin,
    links: u32,
    capacities: Vec<f64>,
}

const FAST: f64 = 1e15;

/// A split among links in parts, one alternative after the other; if there are several, each takes as much as another, and those from `minimal` on are detours.
fn split(alternatives: &[Over], minimal: usize) -> Split {
    let is_one = alternatives.len() == 1;
    let mut end = 0;
    let mut next = |links: &Over| {
        end += links.len();
        end - links.len()..end
    };
    let all: Vec<_> = alternatives.iter().map(&mut next).enumerate().collect();
    let all = all.into_iter().map(|(number, resources)| Alternative {
        resources,
        part: 1.0,
        is_detour: number >= minimal,
    });
    let of = (0..).zip(alternatives).flat_map(|(number, links)| links.iter().map(move |_| number));
    Split {
        resources: alternatives.iter().flatten().map(|&(link, _)| link).collect(),
        weights: alternatives.iter().flatten().map(|&(_, weight)| weight).collect(),
        of: of.filter(|_| !is_one).collect(),
        alternatives: all.filter(|_| !is_one).collect(),
    }
}

impl Net {
    fn new(capacities: &[f64]) -> Self {
        let mut all = capacities.to_vec();
        all.extend([FAST; 2]);
        Net {
            solver: MaxMin::new(all),
            links: narrow::<u32>(capacities.len()),
            capacities: capacities.to_vec(),
        }
    }

    fn add(&mut self, links: &[(Resource, f64)]) -> u32 {
        self.add_with_alternatives(&[links.to_vec()], 1)
    }

    /// A flow with alternatives, those from `minimal` on detours.
    fn add_with_alternatives(&mut self, alternatives: &[Over], minimal: usize) -> u32 {
        self.solver.add([self.links, self.links + 1], Rc::new(split(alternatives, minimal)))
    }

    /// A flow on one path.
    fn along(&mut self, links: &[Resource]) -> u32 {
        self.add(&links.iter().map(|&link| (link, 1.0)).collect::<Vec<_>>())
    }

    fn rates(&mut self, flows: &[u32]) -> Vec<f64> {
        self.solver.update(|_, _| ());
        flows.iter().map(|&flow| self.solver.rate(flow)).collect()
    }

    /// Whether no link has more than its capacity, and each flow without alternatives crosses a full link on which none is faster: then no rate can grow
    /// without that of a flow that is no faster becoming smaller (Bertsekas and Gallager, section 6.5.2).
    fn check(&self) -> Result<(), TestCaseError> {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b;
        let mut sums = vec![0.0; self.capacities.len()];
        let mut fastest = vec![0.0f64; self.capacities.len()];
        let live: Vec<&Flow> = self.solver.flows.iter().filter(|flow| flow.split.is_some()).collect();
        for (flow, entry) in live.iter().flat_map(|flow| (2..flow.len()).map(move |entry| (flow, entry))) {
            let (link, used) = (flow.entry(entry).0 as usize, flow.used(entry, &flow.reached));
            sums[link] += used;
            if used > 1e-6 * self.capacities[link] {
                fastest[link] = fastest[link].max(flow.depends(entry).unwrap_or(0.0));
            }
        }
        for (link, (&sum, &capacity)) in sums.iter().zip(&self.capacities).enumerate() {
            prop_assert!(sum <= capacity * (1.0 + 1e-6), "link {link}: {sum} of {capacity}");
            prop_assert!((self.solver.links[link].used - sum).abs() <= 1e-6 * capacity);
        }
        for flow in live.iter().filter(|flow| flow.reached.alternatives.is_empty()) {
            let has_bottleneck = flow.entries().skip(2).any(|(link, _)| {
                let link = link as usize;
                near(sums[link], self.capacities[link]) && flow.reached.rate >= fastest[link] * (1.0 - 1e-6)
            });
            prop_assert!(has_bottleneck, "no bottleneck of {flow:?}");
        }
        Ok(())
    }
}

#[test]
fn flows_through_one_link_share_it() {
    let mut net = Net::new(&[12.0]);
    let flows: Vec<u32> = (0..5).map(|_| net.along(&[0])).collect();
    assert_eq!(net.rates(&flows), [12.0 / 5.0; 5]);
    net.solver.remove(flows[4]);
    assert_eq!(net.rates(&flows[..4]), [3.0; 4]);
}

/// One flow along a row of links and one on each: all get half, whatever the length of the row.
#[test]
fn the_parking_lot() {
    let mut net = Net::new(&[1.0; 7]);
    let mut flows = vec![net.along(&[0, 1, 2, 3, 4, 5, 6])];
    flows.extend((0..7).map(|link| net.along(&[link])));
    assert_eq!(net.rates(&flows), [0.5; 8]);
    net.solver.remove(flows[0]);
    assert_eq!(net.rates(&flows[1..]), [1.0; 7]);
}

/// Bertsekas and Gallager, *Data Networks* (2nd edition), example 6.8 in kind: three flows share one link and so get a third; a fourth shares another
/// link of the same capacity with one of them, and gets the other two thirds.
#[test]
fn a_flow_takes_what_a_slower_one_leaves() {
    let mut net = Net::new(&[1.0, 1.0, 1.0]);
    let flows = [net.along(&[0]), net.along(&[0]), net.along(&[0, 1]), net.along(&[1, 2])];
    assert_eq!(net.rates(&flows), [1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 - 1.0 / 3.0]);
}

/// Three links, and a flow over each two of them.
#[test]
fn the_triangle() {
    let mut net = Net::new(&[6.0, 8.0, 20.0]);
    let flows = [net.along(&[0, 1]), net.along(&[1, 2]), net.along(&[2, 0])];
    assert_eq!(net.rates(&flows), [3.0, 5.0, 3.0]);
}

/// A flow in two halves is as fast as the slower half allows.
#[test]
fn a_divided_flow_waits_for_its_slowest_part() {
    let mut net = Net::new(&[1.0, 1.0]);
    let both = net.add(&[(0, 0.5), (1, 0.5)]);
    assert_eq!(net.rates(&[both]), [2.0]);
    let one = net.along(&[1]);
    // Rates rise together: x + x/2 = 1.
    assert_eq!(net.rates(&[both, one]), [1.0 / 1.5, 1.0 / 1.5]);
}

#[test]
fn nothing_crosses_a_link_that_is_cut() {
    let mut net = Net::new(&[0.0, 4.0]);
    let flows = [net.along(&[0, 1]), net.along(&[1])];
    assert_eq!(net.rates(&flows), [0.0, 4.0]);
}

/// The adversarial pattern of a Dragonfly in small: three hosts send over one link, and each may go over two others instead.
#[test]
fn what_a_full_link_leaves_takes_detours() {
    let mut net = Net::new(&[3.0, 2.0, 10.0]);
    let over = [0, 1, 2].map(|link| vec![(link, 1.0)]);
    let flows = [(); 3].map(|()| net.add_with_alternatives(&over, 1));
    // Each has 1 of the first link. Halves of what comes then fill the second link, when the third has as much; and the third takes the rest alone.
    assert_eq!(net.rates(&flows), [5.0; 3]);
    let used = [0, 1, 2].map(|link| net.solver.used(link));
    assert!(used.iter().zip([3.0, 2.0, 10.0]).all(|(used, all)| (used - all).abs() < 1e-12), "{used:?}");
    // Another flow closes a detour before the first link does, and nothing goes there.
    let others = [(); 9].map(|()| net.along(&[1]));
    net.rates(&others);
    assert_eq!(net.rates(&flows), [1.0 + 10.0 / 3.0; 3]);
    assert_eq!(net.rates(&others), [2.0 / 9.0; 9]);
    others.iter().for_each(|&other| net.solver.remove(other));
    assert_eq!(net.rates(&flows), [5.0; 3]);
}

/// Links in parts.
type Over = Vec<(Resource, f64)>;

/// Links in these parts, with alternatives and detours or without, and how many are no detours.
fn over(links: u32) -> impl Strategy<Value = (Vec<Over>, usize)> {
    let part = prop_oneof![Just(1.0), Just(0.5), Just(0.25), Just(1.0 / 3.0)];
    let over = prop::collection::btree_map(0..links, part, 1..5);
    let over = over.prop_map(|over| over.into_iter().collect::<Over>());
    let several = (prop::collection::vec(over.clone(), 2..5), 1..4usize);
    let several = several.prop_map(|(over, minimal)| {
        let minimal = minimal.min(over.len());
        (over, minimal)
    });
    prop_oneof![over.prop_map(|over| (vec![over], 1)), several]
}

/// What happens to the flows: one comes, over these links in these parts, or one ends.
fn step(links: u32) -> impl Strategy<Value = ((Vec<Over>, usize), Option<prop::sample::Index>)> {
    (over(links), prop::option::weighted(0.4, any::<prop::sample::Index>()))
}

/// The rates of flows with alternatives, by filling from the start, link after link, as the module's text says it.
fn filled(capacities: &[f64], flows: &[(Vec<Over>, usize)]) -> Vec<f64> {
    let (mut free, mut is_full) = (capacities.to_vec(), vec![false; capacities.len()]);
    let (mut level, mut rates) = (0.0, vec![None; flows.len()]);
    loop {
        // What each flow takes by the bit/s that the level rises: all of the open alternatives alike, detours if there is no other one.
        let is_open = |over: &&Over| over.iter().all(|&(link, _)| !is_full[link as usize]);
        let taken = |(alternatives, minimal): &(Vec<Over>, usize)| -> Over {
            let (first, detours) = alternatives.split_at(*minimal);
            let all = if first.iter().any(|over| is_open(&over)) { first } else { detours };
            let open: Vec<&Over> = all.iter().filter(is_open).collect();
            open.iter()
                .flat_map(|over| over.iter().map(|&(link, part)| (link, part / open.len() as f64)))
                .collect()
        };
        let mut weights = vec![0.0; free.len()];
        for (flow, rate) in flows.iter().zip(&mut rates).filter(|(_, rate)| rate.is_none()) {
            let taken = taken(flow);
            *rate = taken.is_empty().then_some(level);
            taken.iter().for_each(|&(link, part)| weights[link as usize] += part);
        }
        let open = (0..free.len()).filter(|&link| !is_full[link] && weights[link] > 0.0);
        let Some(full) = open.min_by(|&a, &b| (free[a] / weights[a]).total_cmp(&(free[b] / weights[b])))
        else {
            return rates.into_iter().map(|rate| rate.expect("each flow is stopped by a link")).collect();
        };
        let more = (free[full] / weights[full]).max(0.0);
        (level, is_full[full]) = (level + more, true);
        free.iter_mut().zip(&weights).for_each(|(free, weight)| *free -= weight * more);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// After each step the rates are those of filling everything from the start, they are feasible and fair, and they are the same each time.
    #[test]
    fn rates_are_max_min_fair(
        capacities in prop::collection::vec(prop_oneof![Just(1e9), Just(4e9), 1e8..1e10f64], 1..9),
        steps in prop::collection::vec(step(8), 1..40),
    ) {
        let links = narrow::<u32>(capacities.len());
        let (mut net, mut again) = (Net::new(&capacities), Net::new(&capacities));
        let mut live: Vec<(u32, (Vec<Over>, usize))> = Vec::new();
        let within = |over: Over| {
            let mut over: Over = over.into_iter().map(|(link, part)| (link % links, part)).collect();
            over.sort_unstable_by_key(|&(link, _)| link);
            over.dedup_by_key(|&mut (link, _)| link);
            over
        };
        for ((alternatives, minimal), ends) in steps {
            match ends.filter(|_| !live.is_empty()) {
                Some(which) => {
                    let (flow, _) = live.swap_remove(which.index(live.len()));
                    net.solver.remove(flow);
                    again.solver.remove(flow);
                }
                None => {
                    let alternatives: Vec<Over> = alternatives.into_iter().map(within).collect();
                    let flow = net.add_with_alternatives(&alternatives, minimal);
                    prop_assert_eq!(again.add_with_alternatives(&alternatives, minimal), flow);
                    live.push((flow, (alternatives, minimal)));
                }
            }
            let flows: Vec<u32> = live.iter().map(|&(flow, _)| flow).collect();
            let rates = net.rates(&flows);
            net.check()?;
            prop_assert_eq!(&again.rates(&flows), &rates);
            let all: Vec<_> = live.iter().map(|(_, over)| over.clone()).collect();
            for (rate, anew) in rates.iter().zip(filled(&capacities, &all)) {
                prop_assert!((rate - anew).abs() <= 1e-6 * anew, "{} instead of {}", rate, anew);
            }
        }
    }
}
