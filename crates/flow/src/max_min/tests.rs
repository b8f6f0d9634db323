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
        let split = Split {
            resources: links.iter().map(|&(link, _)| link).collect(),
            weights: links.iter().map(|&(_, weight)| weight).collect(),
        };
        self.solver.add([self.links, self.links + 1], Rc::new(split))
    }

    /// A flow on one path.
    fn along(&mut self, links: &[Resource]) -> u32 {
        self.add(&links.iter().map(|&link| (link, 1.0)).collect::<Vec<_>>())
    }

    fn rates(&mut self, flows: &[u32]) -> Vec<f64> {
        self.solver.update(|_, _| ());
        flows.iter().map(|&flow| self.solver.rate(flow)).collect()
    }

    /// Whether no link has more than its capacity, and each flow crosses a full link on which none is faster: then no rate can grow without that of a flow
    /// that is no faster becoming smaller (Bertsekas and Gallager, section 6.5.2).
    fn check(&self) -> Result<(), TestCaseError> {
        let near = |a: f64, b: f64| (a - b).abs() <= 1e-6 * b;
        let mut sums = vec![0.0; self.capacities.len()];
        let mut fastest = vec![0.0f64; self.capacities.len()];
        let live: Vec<&Flow> = self.solver.flows.iter().filter(|flow| flow.split.is_some()).collect();
        let between = |flow: &&Flow| flow.entries().skip(2).collect::<Vec<_>>();
        for flow in &live {
            for (link, weight) in between(flow) {
                sums[link as usize] += weight * flow.rate;
                fastest[link as usize] = fastest[link as usize].max(flow.rate);
            }
        }
        for (link, (&sum, &capacity)) in sums.iter().zip(&self.capacities).enumerate() {
            prop_assert!(sum <= capacity * (1.0 + 1e-6), "link {link}: {sum} of {capacity}");
            prop_assert!((self.solver.links[link].used - sum).abs() <= 1e-6 * capacity);
        }
        for flow in &live {
            let has_bottleneck = between(flow).iter().any(|&(link, _)| {
                let link = link as usize;
                near(sums[link], self.capacities[link]) && flow.rate >= fastest[link] * (1.0 - 1e-6)
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

/// What happens to the flows: one comes, over these links in these parts, or one ends.
fn step(links: u32) -> impl Strategy<Value = (Vec<(Resource, f64)>, Option<prop::sample::Index>)> {
    let part = prop_oneof![Just(1.0), Just(0.5), Just(0.25), Just(1.0 / 3.0)];
    let over = prop::collection::btree_map(0..links, part, 1..5);
    let over = over.prop_map(|over| over.into_iter().collect());
    (over, prop::option::weighted(0.4, any::<prop::sample::Index>()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// After each step the rates are feasible and fair, they are those of filling everything anew, and they are the same each time.
    #[test]
    fn rates_are_max_min_fair(
        capacities in prop::collection::vec(prop_oneof![Just(1e9), Just(4e9), 1e8..1e10f64], 1..9),
        steps in prop::collection::vec(step(8), 1..40),
    ) {
        let links = narrow::<u32>(capacities.len());
        let (mut net, mut again) = (Net::new(&capacities), Net::new(&capacities));
        let mut live: Vec<(u32, Vec<(Resource, f64)>)> = Vec::new();
        for (over, ends) in steps {
            match ends.filter(|_| !live.is_empty()) {
                Some(which) => {
                    let (flow, _) = live.swap_remove(which.index(live.len()));
                    net.solver.remove(flow);
                    again.solver.remove(flow);
                }
                None => {
                    let mut over: Vec<_> = over.into_iter().map(|(link, part)| (link % links, part)).collect();
                    over.sort_unstable_by_key(|&(link, _)| link);
                    over.dedup_by_key(|&mut (link, _)| link);
                    let flow = net.add(&over);
                    prop_assert_eq!(again.add(&over), flow);
                    live.push((flow, over));
                }
            }
            let flows: Vec<u32> = live.iter().map(|&(flow, _)| flow).collect();
            let rates = net.rates(&flows);
            net.check()?;
            prop_assert_eq!(&again.rates(&flows), &rates);
            let mut anew = Net::new(&capacities);
            let flows: Vec<u32> = live.iter().map(|(_, over)| anew.add(over)).collect();
            for (rate, anew) in rates.iter().zip(anew.rates(&flows)) {
                prop_assert!((rate - anew).abs() <= 1e-6 * anew, "{} instead of {}", rate, anew);
            }
        }
    }
}
