use super::*;
use crate::pattern::tests::plan;
use crate::program::testing::{Event, execute};
use crate::{Options, Pattern, Placement, Workload};
use netloom_topology::{BuildContext, FatTree, LeafSpine, SlimFly, Topology};
use proptest::prelude::*;

fn build(topology: Topology) -> Network {
    topology.build(&BuildContext { seed: 1, base_dir: ".".as_ref() }).unwrap()
}

fn leaf_spine(leaves: u32, spines: u32, hosts_per_leaf: u32) -> Network {
    build(Topology::LeafSpine(LeafSpine { leaves, spines, hosts_per_leaf, ..LeafSpine::default() }))
}

fn fat_tree(k: u32) -> Network {
    build(Topology::FatTree(FatTree { k: Some(k), ..FatTree::default() }))
}

fn workload(sharp: SharpLike, ranks: Option<u32>) -> Workload {
    Workload { pattern: Pattern::SharpLike(sharp), options: Options { ranks, ..Options::default() } }
}

/// The ends and bytes of all messages, in order of sending.
fn sent(network: &Network, workload: Workload) -> Vec<(HostId, HostId, u64)> {
    let mut plan = plan(workload, network, 1).unwrap();
    let (total, mut sent) = (plan.total_messages.unwrap(), Vec::new());
    execute(&mut plan, 1, Time(1000), |_, _, event| {
        if let Event::Sent { src, dst, bytes, .. } = event {
            sent.push((src, dst, bytes.0));
        }
    });
    assert!(plan.hosts.iter().all(|host| host.is_finished()));
    assert_eq!(sent.len() as u64, total);
    sent
}

#[test]
fn roots_are_the_lowest_switches_above_all_ranks() {
    let network = fat_tree(4);
    // 16 hosts; edge switches s0 to s7, two of each pod, then aggregation switches s8 to s15, then cores s16 to s19.
    let first = network.hosts();
    let of = |hosts: &[u32]| -> Vec<u32> {
        roots(&network, hosts).unwrap().into_iter().map(|root| root - first).collect()
    };
    let level = |switch: u32| network.level(first + switch);
    assert_eq!(of(&[0, 1]), [network.edge_switch(0) - first]);
    let in_pod = of(&[0, 2]);
    assert!(in_pod.len() == 2 && in_pod.iter().all(|&switch| level(switch) == 2), "{in_pod:?}");
    let of_all = of(&[0, 15]);
    assert!(of_all.len() == 4 && of_all.iter().all(|&switch| level(switch) == 3), "{of_all:?}");
    // Ranks elsewhere begin with another one.
    assert_ne!(of(&[2, 15])[0], of_all[0]);
}

#[test]
fn every_switch_of_a_tree_is_reached_once() {
    for (network, ranks) in
        [(leaf_spine(4, 3, 5), 20), (fat_tree(4), 16), (fat_tree(4), 5), (fat_tree(8), 128)]
    {
        let hosts: Vec<u32> = (0..ranks).collect();
        for root in roots(&network, &hosts).unwrap() {
            let tree = Tree::new(&network, root, &hosts);
            let children: Vec<Child> =
                tree.places.values().flat_map(|place| place.children.iter().copied()).collect();
            let switches = children.iter().filter(|child| matches!(child, Child::Switch(_))).count();
            assert_eq!((children.len() - switches, switches), (ranks as usize, tree.places.len() - 1));
            assert_eq!(tree.places[&root].parent, None);
            for (&switch, place) in &tree.places {
                assert!(
                    switch == root
                        || tree.places[&place.parent.unwrap()].children.contains(&Child::Switch(switch))
                );
            }
        }
    }
}

#[test]
fn each_rank_sends_its_vector_once_and_receives_the_result_once() {
    let network = leaf_spine(4, 2, 8);
    let (hosts, size) = (network.hosts(), 10_000);
    let config = SharpLike { size: Some(Bytes(size)), ..SharpLike::default() };
    for trees in [1, 2] {
        let sent = sent(&network, workload(SharpLike { trees, ..config.clone() }, None));
        for host in 0..hosts {
            let up: Vec<_> = sent.iter().filter(|message| message.0 == host).collect();
            assert_eq!(up.iter().map(|message| message.2).sum::<u64>(), size);
            // 2 KiB at a time, all to the unit of its leaf switch.
            assert_eq!(up.len(), 5);
            assert!(up.iter().all(|message| message.1 == hosts + network.edge_switch(host) - hosts));
            let down = sent.iter().filter(|message| message.1 == host).map(|message| message.2);
            assert_eq!(down.sum::<u64>(), size);
        }
        // Between a leaf and the spines of all trees.
        for leaf in 0..4 {
            let unit = hosts + leaf;
            let between = |up: bool| -> u64 {
                let ends = |m: &&(u32, u32, u64)| if up { (m.0, m.1) } else { (m.1, m.0) };
                let of = sent.iter().filter(|m| ends(m).0 == unit && ends(m).1 >= hosts + 4);
                of.map(|message| message.2).sum()
            };
            assert_eq!((between(true), between(false)), (size, size));
        }
        let spines: std::collections::BTreeSet<u32> =
            sent.iter().map(|message| message.1).filter(|&dst| dst >= hosts + 4).collect();
        assert_eq!(spines.len(), trees as usize);
    }
}

#[test]
fn a_reduce_and_a_broadcast_move_data_one_way() {
    let network = fat_tree(4);
    let of = |operation| SharpLike { operation, size: Some(Bytes(5000)), ..SharpLike::default() };
    let bytes = |sent: &[(u32, u32, u64)], pick: fn(&(u32, u32, u64)) -> u32, host: u32| -> u64 {
        sent.iter().filter(|message| pick(message) == host).map(|message| message.2).sum()
    };
    let reduce = sent(&network, workload(of(SwitchOperation::Reduce), None));
    let broadcast = sent(&network, workload(of(SwitchOperation::Broadcast), None));
    for host in 0..16 {
        assert_eq!(bytes(&reduce, |m| m.0, host), 5000);
        // Three chunks, of each of which a byte says that it is done.
        assert_eq!(bytes(&reduce, |m| m.1, host), if host == 0 { 5000 } else { 3 });
        assert_eq!(bytes(&broadcast, |m| m.0, host), if host == 0 { 5000 } else { 0 });
        assert_eq!(bytes(&broadcast, |m| m.1, host), if host == 0 { 0 } else { 5000 });
    }
    let barrier = sent(
        &network,
        workload(SharpLike { operation: SwitchOperation::Barrier, ..SharpLike::default() }, None),
    );
    // Up and down on each of 16 host links, 8 of edge switches and 4 of aggregation switches.
    assert_eq!(barrier.len(), 2 * (16 + 8 + 4));
    assert!(barrier.iter().all(|message| message.2 == 1));
}

#[test]
fn a_rank_has_no_more_chunks_under_way_than_switches_hold() {
    let network = leaf_spine(2, 2, 4);
    for (outstanding, trees) in [(1, 1), (3, 1), (2, 2)] {
        let config = SharpLike { size: Some(Bytes(40 << 10)), outstanding, trees, ..SharpLike::default() };
        let mut plan = plan(workload(config, None), &network, 1).unwrap();
        let (mut open, mut most) = ([0i64; 8], 0);
        execute(&mut plan, 1, Time(1000), |_, _, event| match event {
            Event::Sent { src, .. } if src < 8 => {
                open[src as usize] += 1;
                most = most.max(open[src as usize]);
            }
            // Counted before the rank acts on it.
            Event::Arrived { dst, .. } if dst < 8 => open[dst as usize] -= 1,
            _ => {}
        });
        // The next one is sent in the call in which the result comes.
        assert!(
            (i64::from(outstanding * trees)..=i64::from(outstanding * trees) + 1).contains(&most),
            "{most}"
        );
    }
}

#[test]
fn what_cannot_be_is_refused_by_its_field() {
    let network = leaf_spine(2, 2, 2);
    let slim_fly = build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }));
    let sharp = SharpLike::default;
    for (network, config, words) in [
        (&network, SharpLike { trees: 3, ..sharp() }, "trees: expected 1 to 2,"),
        (&network, SharpLike { trees: 0, ..sharp() }, "trees: expected at least 1"),
        (&network, SharpLike { outstanding: 0, ..sharp() }, "outstanding: expected at least 1"),
        (&network, SharpLike { repeat: 0, ..sharp() }, "repeat: expected at least 1"),
        (&network, SharpLike { chunk: Bytes(0), ..sharp() }, "chunk: expected at least one byte"),
        (&network, SharpLike { size: Some(Bytes(0)), ..sharp() }, "size: expected at least one byte"),
        (&network, SharpLike { rate: Some(Rate(0)), ..sharp() }, "rate: expected a rate above zero"),
        (
            &network,
            SharpLike { size: Some(Bytes(1 << 40)), chunk: Bytes(1), ..sharp() },
            "chunk: expected at least 64KiB",
        ),
        (
            &slim_fly,
            sharp(),
            "kind: expected another one, or a network of levels, such as leaf-spine or fat-tree, found \"sharp-like\" on",
        ),
    ] {
        let error = plan(workload(config, None), network, 1).unwrap_err().to_string();
        assert!(error.starts_with(words), "{error}");
    }
}

proptest! {
    #[test]
    fn every_operation_ends(
        operation in prop::sample::select(vec![
            SwitchOperation::AllReduce, SwitchOperation::Reduce, SwitchOperation::Broadcast, SwitchOperation::Barrier,
        ]),
        ranks in 2..=16u32,
        (size, chunk, outstanding) in (1..500u64, 1..100u64, 1..5u32),
        repeat in 1..4u32,
        compute in 0..100u64,
        random: bool,
        seed: u64,
    ) {
        let config = SharpLike {
            operation, size: Some(Bytes(size)), chunk: Bytes(chunk), outstanding, repeat, compute: Time(compute), ..SharpLike::default()
        };
        let placement = if random { Placement::Random } else { Placement::Linear };
        let start_jitter = Time(seed % 2000);
        let options = Options { placement, ranks: Some(ranks), start_jitter, ..Options::default() };
        let workload = Workload { pattern: Pattern::SharpLike(config), options };
        let mut plan = plan(workload, &fat_tree(4), seed).unwrap();
        let mut arrived = 0;
        execute(&mut plan, seed, Time(500), |_, _, event| {
            arrived += u64::from(matches!(event, Event::Arrived { .. }));
        });
        prop_assert!(plan.hosts.iter().all(|host| host.is_finished()));
        prop_assert_eq!(Some(arrived), plan.total_messages);
    }
}
