use proptest::prelude::*;

use super::super::tests::{dragonfly, graphs, hyperx, minimal, slim_fly, weighing, wired_with};
use super::super::{Dependencies, Listen, Onward, VcSet, find_cycle, follow, vcs_needed};
use super::*;
use crate::forwarding::channels;
use crate::selector::ugal::Ugal;
use crate::selector::valiant::{Intermediate, Valiant};

/// The highest virtual channel of all that it visits.
struct Highest<'a>(&'a Network, u8);

impl Listen for Highest<'_> {
    fn depend(&mut self, channel: u32, at: VcSet, onward: &Onward) {
        self.1 = self.1.max(channels::next(at.highest(), rank(self.0, channel), onward.lowest, u8::MAX));
    }
}

/// What [`vcs_needed`] says, by following all routes to their ends.
fn followed(network: &Network, table: &RouteTable, ways: Ways<'_>) -> u8 {
    let mut highest = Highest(network, 0);
    follow(network, table, ways, u8::MAX, &mut highest);
    highest.1 + 1
}

/// Groups whose switches are connected, and links between any two groups: what is left of a Dragonfly.
fn grouped() -> impl Strategy<Value = Network> {
    (2..5u32, 1..4u32, any::<u64>()).prop_map(|(groups, each, seed)| {
        let draw = |a: u32, b: u32, below: u32| {
            let mixed = (seed ^ u64::from(a * 97 + b)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
            (mixed >> 40) as u32 % below
        };
        let group_of: Vec<u32> = (0..groups * each).map(|switch| switch / each).collect();
        let mut links = Vec::new();
        for group in 0..groups {
            let first = group * each;
            links.extend((1..each).map(|switch| (first + switch, first + draw(group, switch, switch))));
            links.extend((0..group).map(|other| {
                (first + draw(group, 50 + other, each), other * each + draw(70 + group, other, each))
            }));
        }
        wired_with(&group_of, &links, true)
    })
}

/// All ways of a network, by name.
fn each_ways(network: &Network, table: &RouteTable, mut check: impl FnMut(&str, &RouteTable, Ways<'_>)) {
    check("minimal", table, Ways::Minimal);
    for intermediate in [Intermediate::Switch, Intermediate::Group] {
        if let Ok(via) = Intermediates::build(&Valiant { intermediate }, network, table) {
            check(&format!("valiant over a {intermediate:?}"), table, Ways::Via(&via));
        }
        for (minimal, progressive) in [(1, false), (2, false), (1, true), (3, true)] {
            let config = Ugal { minimal, progressive, intermediate: Some(intermediate), ..Ugal::default() };
            if let Ok(forwarding) = weighing(network, config) {
                let name = format!("ugal {minimal} {progressive} {intermediate:?}");
                check(&name, forwarding.table(), forwarding.ways());
            }
        }
    }
}

fn agrees(network: &Network) {
    each_ways(network, &minimal(network), |name, table, ways| {
        let followed = followed(network, table, ways);
        let used = u32::from(followed);
        if let Some(enough) = enough(network, table, ways) {
            assert!(enough.vcs >= used, "{name}: {enough:?} {followed}");
            assert!(!enough.is_used || enough.vcs == used, "{name}: {enough:?} {followed}");
        }
        assert_eq!(vcs_needed(network, table, ways), followed, "{name}");
        for vcs in 1..followed + 2 {
            let mut graph = Dependencies::new(network, vcs);
            follow(network, table, ways, vcs, &mut graph);
            assert_eq!(find_cycle(network, table, ways, vcs), graph.cycle(), "{name} {vcs}");
        }
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn what_lengths_say_holds_on_all_graphs(network in graphs()) {
        agrees(&network);
    }

    #[test]
    fn what_lengths_say_holds_between_groups(network in grouped()) {
        agrees(&network);
    }
}

#[test]
fn whole_networks_need_what_the_lengths_of_their_paths_say() {
    for (network, expected) in [
        // Over a switch, over a group, and for packets that are decided twice.
        (slim_fly(), vec![2, 4, 4, 4, 4]),
        (hyperx(), vec![3, 6, 6, 6, 6]),
        (dragonfly(), vec![2, 4, 4, 4, 3, 3, 3, 4, 4]),
    ] {
        let mut found = Vec::new();
        each_ways(&network, &minimal(&network), |name, table, ways| {
            let enough = enough(&network, table, ways).expect("it is known");
            assert!(enough.is_used, "{name}");
            found.push(enough.vcs);
        });
        assert_eq!(found, expected, "{}", network.name());
    }
}
