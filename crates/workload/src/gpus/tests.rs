//! Every algorithm, symbolically and against closed forms.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use netloom_topology::HostId;
use netloom_units::{Bytes, Rate, Time};

use super::transfers::{Method, Operation, Schedule, Transfer};
use super::{Comm, Gpus, KINDS};
use crate::options::Options;
use crate::pattern::tests::network;
use crate::plan::{JobSetting, Setting};
use crate::program::Action;
use crate::program::testing::{Event, execute};
use crate::random::{RngExt, Work};
use crate::servers::Endpoints;
use crate::{
    GpuCollective, NicSelection, Pattern, Plan, PlanContext, ScaleUp, ScaleUpWiring, Servers, Wiring,
    Workload, find_stall,
};

/// Whose contributions are in a block.
type Content = BTreeSet<u32>;

/// A message under way: sender, receiver and stream, the receive that it is for, and what it carries.
type Message = ((u32, u32, u32), usize, Vec<(u32, Content)>);

/// A message that was sent: source, destination, size and NIC.
type Sent = (HostId, HostId, Bytes, Option<u16>);

fn schedules(ranks: u32) -> Vec<Schedule> {
    let operations = [
        Operation::AllReduce,
        Operation::AllGather,
        Operation::ReduceScatter,
        Operation::AllToAll,
        Operation::Broadcast,
    ];
    let mut all = Vec::new();
    for operation in operations {
        for &method in operation.methods().iter().filter(|&&method| method != Method::Auto) {
            let inners: Vec<u32> = if method == Method::Hierarchical {
                (2..ranks).filter(|&inner| ranks.is_multiple_of(inner)).collect()
            } else {
                vec![1]
            };
            let of = |inner| Schedule { operation, method, ranks, inner };
            all.extend(inners.into_iter().map(of).filter(|schedule| schedule.check().is_ok()));
        }
    }
    all
}

/// What a rank holds of a block at first; `None` where it does not have it.
fn initial(schedule: &Schedule, rank: u32, block: u32) -> Option<Content> {
    let n = schedule.ranks;
    match schedule.operation {
        Operation::AllReduce | Operation::ReduceScatter => Some([rank].into()),
        Operation::AllGather => (block == rank).then(|| [rank].into()),
        Operation::AllToAll => (block / n == rank).then(|| [rank].into()),
        Operation::Broadcast => (rank == 0).then(|| [0].into()),
    }
}

/// Whether a rank holds in the end what it should.
fn is_right(schedule: &Schedule, rank: u32, held: &HashMap<u32, Content>) -> bool {
    let n = schedule.ranks;
    let all: Content = (0..n).collect();
    match schedule.operation {
        Operation::AllReduce => (0..schedule.parts()).all(|block| held[&block] == all),
        Operation::ReduceScatter => held[&rank] == all,
        Operation::AllGather => (0..n).all(|block| held.get(&block) == Some(&[block].into())),
        Operation::AllToAll => (0..n).all(|src| held.get(&(src * n + rank)) == Some(&[src].into())),
        Operation::Broadcast => held.get(&0) == Some(&[0].into()),
    }
}

/// Carries the data of an operation through a network in which messages take any time. A message takes what its sender has by the receives that it waits
/// for, and must find there what it is to carry. What is received is added where it brings other contributions, and takes the place of what
/// was there where it brings the result.
fn carry(schedule: &Schedule, seed: u64) -> Vec<HashMap<u32, Content>> {
    let n = schedule.ranks;
    let blocks = match schedule.operation {
        Operation::AllToAll => n * n,
        _ => schedule.parts().max(n),
    };
    let first = |rank| {
        let block = |block| Some((block, initial(schedule, rank, block)?));
        (0..blocks).filter_map(block).collect::<HashMap<u32, Content>>()
    };
    let lists: Vec<Vec<Transfer>> = (0..n).map(|rank| schedule.transfers(rank).0).collect();
    // Receives in the order in which they are posted, by sender, receiver and stream.
    let mut posted: HashMap<(u32, u32, u32), VecDeque<usize>> = HashMap::new();
    for (rank, list) in (0..).zip(&lists) {
        for (index, transfer) in list.iter().enumerate() {
            assert!(transfer.after.iter().all(|&earlier| (earlier as usize) < index));
            if !transfer.is_send {
                posted.entry((transfer.peer, rank, transfer.stream)).or_default().push_back(index);
            }
        }
    }
    // What the receives have brought, by rank and place in its list.
    let mut brought: Vec<BTreeMap<usize, Vec<(u32, Content)>>> = vec![BTreeMap::new(); n as usize];
    let held = |rank: u32, receives: &BTreeSet<usize>, brought: &BTreeMap<usize, Vec<(u32, Content)>>| {
        let mut held = first(rank);
        for receive in receives {
            for (block, content) in &brought[receive] {
                let own = held.entry(*block).or_default();
                if own.is_disjoint(content) {
                    own.extend(content);
                } else {
                    assert!(own.is_subset(content), "{schedule:?}: {rank} adds a contribution twice");
                    own.clone_from(content);
                }
            }
        }
        held
    };
    // The receives that must be over before a transfer: also those that come before others in their stream.
    let before = |rank: u32, index: usize| {
        let list = &lists[rank as usize];
        let (mut found, mut left) = (BTreeSet::new(), list[index].after.clone());
        while let Some(next) = left.pop() {
            let (next, transfer) = (next as usize, &list[next as usize]);
            left.extend(&transfer.after);
            if !transfer.is_send && found.insert(next) {
                let is_alike =
                    |it: &Transfer| !it.is_send && (it.peer, it.stream) == (transfer.peer, transfer.stream);
                left.extend((0..next).filter(|&earlier| is_alike(&list[earlier])).map(|it| it as u32));
            }
        }
        found
    };
    let mut is_over: Vec<Vec<bool>> = lists.iter().map(|list| vec![false; list.len()]).collect();
    let mut under_way: Vec<Message> = Vec::new();
    let mut random = Work::Host.stream(seed, 0);
    loop {
        for rank in 0..n {
            for (index, transfer) in lists[rank as usize].iter().enumerate().filter(|(_, it)| it.is_send) {
                let is_ready = transfer.after.iter().all(|&before| is_over[rank as usize][before as usize]);
                if !is_ready || std::mem::replace(&mut is_over[rank as usize][index], true) {
                    continue;
                }
                let held = held(rank, &before(rank, index), &brought[rank as usize]);
                let carried = transfer.blocks.iter().map(|block| {
                    let content = held.get(block).cloned();
                    (*block, content.unwrap_or_else(|| panic!("{schedule:?}: {rank} has no block {block}")))
                });
                let to = transfer.peer;
                let queue = posted.get_mut(&(rank, to, transfer.stream)).unwrap();
                let receive = queue.pop_front().unwrap();
                assert_eq!(
                    lists[to as usize][receive].blocks, transfer.blocks,
                    "{schedule:?}: {rank} to {to}"
                );
                under_way.push(((rank, to, transfer.stream), receive, carried.collect()));
            }
        }
        if under_way.is_empty() {
            break;
        }
        // Messages of one stream between two ranks come in order, all others in any; they are taken in once the receive is posted.
        let is_first = |at: usize| under_way[..at].iter().all(|it| it.0 != under_way[at].0);
        let is_posted = |at: usize| {
            let ((_, rank, _), receive, _) = &under_way[at];
            let after = &lists[*rank as usize][*receive].after;
            after.iter().all(|&before| is_over[*rank as usize][before as usize])
        };
        let possible: Vec<usize> = (0..under_way.len()).filter(|&at| is_first(at) && is_posted(at)).collect();
        assert!(!possible.is_empty(), "{schedule:?}: ranks wait for each other");
        let next = possible[random.random_range(0..possible.len())];
        let ((_, rank, _), receive, carried) = under_way.remove(next);
        is_over[rank as usize][receive] = true;
        brought[rank as usize].insert(receive, carried);
    }
    assert!(is_over.iter().flatten().all(|&is| is), "{schedule:?}: not all is sent and received");
    let all = |rank: u32| {
        let brought = &brought[rank as usize];
        held(rank, &brought.keys().copied().collect(), brought)
    };
    (0..n).map(all).collect()
}

#[test]
fn every_rank_ends_with_the_contributions_of_all() {
    for ranks in (2..=9).chain([12, 16]) {
        for schedule in schedules(ranks) {
            for seed in 0..2 {
                let held = carry(&schedule, seed);
                for (rank, held) in (0..).zip(&held) {
                    assert!(is_right(&schedule, rank, held), "{schedule:?}: rank {rank} has {held:?}");
                }
            }
        }
    }
}

/// Bytes of S that each rank sends, where that is the same for all, or the most and the sum.
#[test]
fn bytes_are_those_of_the_closed_forms() {
    for n in [2u32, 4, 8, 16, 64] {
        let size = Bytes(64 * 1024);
        let (s, count, log) = (size.0, u64::from(n), u64::from(n.ilog2()));
        let sent = |operation, method, inner| -> Vec<u64> {
            let schedule = Schedule { operation, method, ranks: n, inner };
            (0..n).map(|rank| schedule.sent(size, rank).0).collect()
        };
        let all = |operation, method, inner, bytes: u64| {
            let sent = sent(operation, method, inner);
            assert!(
                sent.iter().all(|&own| own == bytes),
                "{operation:?} {method:?} {n}: {sent:?}, not {bytes}"
            );
        };
        let share = s / count * (count - 1);
        for method in [Method::Ring, Method::Direct, Method::HalvingDoubling] {
            all(Operation::AllReduce, method, 1, 2 * share);
            all(Operation::ReduceScatter, method, 1, share);
            all(Operation::AllGather, method, 1, share);
        }
        all(Operation::AllReduce, Method::RecursiveDoubling, 1, log * s);
        all(Operation::AllGather, Method::Bruck, 1, share);
        all(Operation::AllToAll, Method::Direct, 1, share);
        all(Operation::AllToAll, Method::Pairwise, 1, share);
        all(Operation::AllToAll, Method::Bruck, 1, log * s / 2);
        for inner in (2..n).filter(|inner| n.is_multiple_of(*inner)) {
            all(Operation::AllReduce, Method::Hierarchical, inner, 2 * share);
            all(Operation::ReduceScatter, Method::Hierarchical, inner, share);
            all(Operation::AllGather, Method::Hierarchical, inner, share);
            // All but the own part once inside, all but what is for the own server once outside.
            let (k, m) = (u64::from(inner), u64::from(n / inner));
            all(Operation::AllToAll, Method::Hierarchical, inner, s / k * (k - 1) + s / m * (m - 1));
        }
        // Two trees: everything goes up once and down once; no rank sends more than twice the data.
        let trees = sent(Operation::AllReduce, Method::DoubleBinaryTree, 1);
        assert_eq!(trees.iter().sum::<u64>(), 2 * (count - 1) * s);
        assert!(trees.iter().all(|&own| own <= 2 * s), "{trees:?}");
        for method in [Method::Ring, Method::Direct, Method::Binomial] {
            assert_eq!(sent(Operation::Broadcast, method, 1).iter().sum::<u64>(), (count - 1) * s);
        }
    }
}

#[test]
fn in_two_trees_every_rank_is_a_leaf_once() {
    for n in 2..=65 {
        let schedule = Schedule {
            operation: Operation::AllReduce,
            method: Method::DoubleBinaryTree,
            ranks: n,
            inner: 1,
        };
        for rank in 0..n {
            // Who sends to children is none; a parent gets a sum from at most two of them, so a rank sends at most three messages in a tree.
            let sends =
                |tree| schedule.transfers(rank).0.iter().filter(|it| it.is_send && it.stream == tree).count();
            let receives = |tree| {
                schedule.transfers(rank).0.iter().filter(|it| !it.is_send && it.stream == tree).count()
            };
            assert!(sends(0) <= 3 && sends(1) <= 3, "{n}: {rank}");
            let is_leaf = |tree| sends(tree) == 1 && receives(tree) == 1;
            assert!(n == 2 || is_leaf(0) || is_leaf(1), "{n}: {rank}");
        }
    }
}

const ALPHA: u64 = 5_000;

/// Runs a plan on a network in which a message takes 5 ns and its bytes at one byte per picosecond, one at a time at the NIC that sends; when it ends, and
/// what was sent: source, destination and NIC of each message.
fn alpha_beta(plan: &mut Plan) -> (Time, Vec<Sent>) {
    enum Call {
        Wake(u32),
        Sent(u32),
        Received(HostId, u32),
    }
    let mut calls: BTreeMap<(Time, u64), (HostId, Call)> = BTreeMap::new();
    let (mut number, mut actions, mut free) = (0, Vec::new(), HashMap::new());
    let (mut end, mut all) = (Time::ZERO, Vec::new());
    let mut note = |calls: &mut BTreeMap<_, _>, host: HostId, now: Time, actions: &mut Vec<Action>| {
        for action in actions.drain(..) {
            number += 1;
            match action {
                Action::Wake { at, op } => _ = calls.insert((at, number), (host, Call::Wake(op))),
                Action::Send { dst, bytes, number: message, nic, .. } => {
                    let free = free.entry((host, nic)).or_insert(Time::ZERO);
                    *free = Time(now.max(*free).0 + bytes.0);
                    calls.insert((*free, number), (host, Call::Sent(message)));
                    number += 1;
                    calls.insert((Time(free.0 + ALPHA), number), (dst, Call::Received(host, message)));
                    all.push((host, dst, bytes, nic));
                }
            }
        }
    };
    for (host, work) in (0..).zip(&mut plan.hosts) {
        work.begin(Time::ZERO, &mut actions);
        note(&mut calls, host, Time::ZERO, &mut actions);
    }
    while let Some(((now, _), (host, call))) = calls.pop_first() {
        end = now;
        let work = &mut plan.hosts[host as usize];
        match call {
            Call::Wake(op) => work.on_wake(now, op, &mut actions),
            Call::Sent(message) => work.on_sent(now, message, &mut actions),
            Call::Received(src, message) => work.on_received(now, src, message, &mut actions),
        }
        note(&mut calls, host, now, &mut actions);
    }
    for (host, work) in plan.hosts.iter().enumerate() {
        assert!(work.is_finished(), "host {host}: {:?}", find_stall(std::iter::once(work), &[]));
    }
    (end, all)
}

fn plan_of(collective: GpuCollective, hosts: u32) -> Plan {
    let workload = Workload::new(Pattern::GpuCollective(collective));
    workload.plan(&network(hosts, hosts), &PlanContext::new(1)).unwrap()
}

#[test]
fn times_are_those_of_the_closed_forms() {
    for n in [2u64, 4, 8, 16] {
        let size = 1 << 20;
        let time = |operation, algorithm, chunks| {
            let size = Bytes(size);
            let collective = GpuCollective { operation, algorithm, size, chunks, ..Default::default() };
            alpha_beta(&mut plan_of(collective, n as u32)).0.0
        };
        let (steps, part, log) = (n - 1, size / n, u64::from(n.ilog2()));
        use Method::{Binomial, Bruck, Direct, HalvingDoubling, Pairwise, RecursiveDoubling, Ring};
        use Operation::{AllGather, AllReduce, AllToAll, Broadcast, ReduceScatter};
        for (operation, method, expected) in [
            (AllReduce, Ring, 2 * steps * (ALPHA + part)),
            (AllGather, Ring, steps * (ALPHA + part)),
            (ReduceScatter, Ring, steps * (ALPHA + part)),
            (AllReduce, Direct, 2 * (ALPHA + steps * part)),
            (AllGather, Direct, ALPHA + steps * part),
            (AllToAll, Direct, ALPHA + steps * part),
            (AllReduce, HalvingDoubling, 2 * log * ALPHA + 2 * steps * part),
            (ReduceScatter, HalvingDoubling, log * ALPHA + steps * part),
            (AllGather, HalvingDoubling, log * ALPHA + steps * part),
            (AllReduce, RecursiveDoubling, log * (ALPHA + size)),
            (AllGather, Bruck, log * ALPHA + steps * part),
            (AllToAll, Bruck, log * (ALPHA + size / 2)),
            (AllToAll, Pairwise, steps * (ALPHA + part)),
            (Broadcast, Ring, steps * (ALPHA + size)),
            (Broadcast, Binomial, log * (ALPHA + size)),
            (Broadcast, Direct, ALPHA + steps * size),
        ] {
            assert_eq!(time(operation, method, 1), expected, "{operation:?} {method:?} of {n}");
        }
        // Pieces go through the ring one behind the other.
        let pieces = 16;
        let expected = (n - 2 + pieces) * (size / pieces) + steps * ALPHA;
        assert_eq!(time(Broadcast, Ring, pieces as u32), expected, "{n}");
        // Two trees of depth d at most: up and down, with half of the data in each, of which a rank passes on three halves one after the other.
        let tree = time(AllReduce, Method::DoubleBinaryTree, 1);
        assert!(tree <= 2 * (log + 1) * (ALPHA + size) && tree >= 2 * (ALPHA + size / 2), "{n}: {tree}");
    }
}

/// Servers of 4 GPUs, each with a NIC of its own.
fn served(collective: GpuCollective, nic_selection: NicSelection) -> Plan {
    let network = network(32, 8);
    let scale_up = ScaleUp { wiring: ScaleUpWiring::Ideal, rate: Rate::from_gbps(8000), latency: Time(1000) };
    let servers = Servers {
        nics: 4,
        wiring: Wiring::RailOptimised,
        nic_selection,
        gpus: Some(4),
        scale_up: Some(scale_up),
        ..Servers::default()
    };
    let rails = Some(std::sync::Arc::new(servers.build(&network, 1).unwrap()));
    let context = PlanContext { rails, ..PlanContext::new(1) };
    Workload::new(Pattern::GpuCollective(collective)).plan(&network, &context).unwrap()
}

#[test]
fn servers_have_a_tier_of_their_own() {
    let base = || GpuCollective { size: Bytes(1 << 20), algorithm: Method::Ring, ..Default::default() };
    // In one server nothing enters the network: 2 (n - 1) latencies and 2 (n - 1)/n of the bytes at one byte per picosecond.
    let inside = GpuCollective { group_size: Some(4), ..base() };
    let (end, sent) = alpha_beta(&mut served(inside, NicSelection::Gpu));
    assert_eq!((end, sent.len()), (Time(6 * 1000 + 6 * (1 << 18)), 0));
    // Along the rails every message stays on its own.
    let rails = GpuCollective { group_size: Some(8), group_stride: 4, ..base() };
    let (end, sent) = alpha_beta(&mut served(rails.clone(), NicSelection::Gpu));
    assert_eq!((end, sent.len()), (Time(14 * (ALPHA + (1 << 17))), 4 * 8 * 14));
    let by_nic = |nic| sent.iter().filter(|it| it.3 == Some(nic)).count();
    assert_eq!([0, 1, 2, 3].map(by_nic), [8 * 14; 4]);
    // Where servers choose NICs by their own rule, messages name none.
    let (_, sent) = alpha_beta(&mut served(rails, NicSelection::Stripe));
    assert!(sent.iter().all(|it| it.3.is_none()));
    // A ring of all leaves each server by one rail, and with as many channels by each once.
    for (channels, nics) in [(1, 2), (4, 4)] {
        let all = GpuCollective { channels, ..base() };
        let (_, sent) = alpha_beta(&mut served(all, NicSelection::Gpu));
        let used: BTreeSet<_> = sent.iter().map(|it| it.3).collect();
        assert_eq!(used.len(), nics, "{channels}");
        assert_eq!(sent.len() as u32, channels * 8 * 62, "{channels}");
    }
    // In two tiers each GPU sends its quarter around its rail.
    let tiers = GpuCollective { algorithm: Method::Hierarchical, ..base() };
    let (end, sent) = alpha_beta(&mut served(tiers, NicSelection::Gpu));
    let (inner, outer) = (3 * (1000 + (1 << 18)), 14 * (ALPHA + (1 << 15)));
    assert_eq!((end, sent.len()), (Time(2 * inner + outer), 32 * 14));
    // What is for another rail goes to its GPU first: a direct all-to-all crosses servers on the destination's rail.
    let direct = GpuCollective { operation: Operation::AllToAll, algorithm: Method::Direct, ..base() };
    let (_, sent) = alpha_beta(&mut served(direct, NicSelection::Gpu));
    assert_eq!(sent.len(), 32 * 28);
    let by_nic = |nic| sent.iter().filter(|it| it.3 == Some(nic)).count();
    assert_eq!([0, 1, 2, 3].map(by_nic), [8 * 28; 4]);
}

#[test]
fn every_operation_ends_with_any_channels_and_pieces() {
    for ranks in [2, 3, 6, 8] {
        for schedule in schedules(ranks) {
            if schedule.method == Method::Hierarchical {
                continue;
            }
            for (channels, chunks) in [(1, 5), (3, 1), (2, 4)] {
                let collective = GpuCollective {
                    operation: schedule.operation,
                    algorithm: schedule.method,
                    size: Bytes(1001),
                    channels,
                    chunks,
                    repeat: 3,
                    ..Default::default()
                };
                let mut plan = plan_of(collective, ranks);
                let total = plan.total_messages.unwrap();
                let (_, sent) = alpha_beta(&mut plan);
                assert_eq!(sent.len() as u64, total);
                let transfers = |rank| schedule.transfers(rank).0.iter().filter(|it| it.is_send).count();
                let once: usize = (0..ranks).map(transfers).sum();
                assert_eq!(sent.len(), once * 3 * (channels * chunks) as usize, "{schedule:?}");
            }
        }
        for seed in 0..8 {
            let (chunks, algorithm) = (1 + seed % 5, Method::Ring);
            let collective =
                GpuCollective { chunks, algorithm, size: Bytes(999), repeat: 2, ..Default::default() };
            let mut plan = plan_of(collective, ranks);
            execute(&mut plan, seed.into(), Time(777), |_, _, _| {});
            assert!(plan.hosts.iter().all(|host| host.is_finished()));
        }
    }
}

/// Small all-reduces of many ranks take the trees, large ones the ring; all else has one way.
#[test]
fn nccl_chooses_by_size() {
    use super::nccl::choose;
    let rate = Rate::from_gbps(400);
    let of = |operation, ranks, inner, size| choose(operation, ranks, inner, Bytes(size), rate);
    // Of 16 servers of 8: by ring 8.4 + 224 × 3.4 + 30 × 14 us and 2 × 127/128 of the bytes, by trees 8.4 + 2 (7 × 4 + 4 × 14) us and 2/0.92 of them.
    // The difference of 1022 us is as long as 0.19 of the bytes take at 50 kB/us: 269 MB.
    assert_eq!(of(Operation::AllReduce, 128, 8, 260 << 20 >> 1), Method::DoubleBinaryTree);
    assert_eq!(of(Operation::AllReduce, 128, 8, 260_000_000), Method::DoubleBinaryTree);
    assert_eq!(of(Operation::AllReduce, 128, 8, 280_000_000), Method::Ring);
    assert_eq!(of(Operation::AllReduce, 2, 1, 1), Method::Ring);
    assert_eq!(of(Operation::AllGather, 128, 8, 1), Method::Ring);
    assert_eq!(of(Operation::ReduceScatter, 128, 8, 1), Method::Ring);
    assert_eq!(of(Operation::Broadcast, 128, 8, 1), Method::Ring);
    assert_eq!(of(Operation::AllToAll, 128, 8, 1), Method::Direct);
}

#[test]
fn what_makes_no_sense_is_refused() {
    let base = GpuCollective::default;
    for (wrong, expected) in [
        (GpuCollective { repeat: 0, ..base() }, "repeat: expected at least 1"),
        (GpuCollective { size: Bytes(0), ..base() }, "size: expected at least one byte"),
        (GpuCollective { channels: 0, ..base() }, "channels: expected 1 to 64"),
        (GpuCollective { chunks: 65, ..base() }, "chunks: expected 1 to 64"),
        (GpuCollective { group_size: Some(3), ..base() }, "group_size: expected a divisor of the 8 GPUs"),
        (GpuCollective { group_size: Some(1), ..base() }, "group_size: expected a divisor of the 8 GPUs"),
        (
            GpuCollective { group_size: Some(4), group_stride: 4, ..base() },
            "group_stride: expected a divisor of 2",
        ),
        (GpuCollective { group_stride: 0, ..base() }, "group_stride: expected"),
        (
            GpuCollective { algorithm: Method::Pairwise, ..base() },
            "algorithm: expected one of auto, ring, direct, halving-doubling, recursive-doubling, double-binary-tree, hierarchical for this operation, \
             found \"pairwise\"",
        ),
        (
            GpuCollective { algorithm: Method::Hierarchical, ..base() },
            "algorithm: expected several servers with at least two ranks of each group in each, found 8 GPUs in a group, 1 in each server",
        ),
    ] {
        let workload = Workload::new(Pattern::GpuCollective(wrong));
        let error = workload.plan(&network(8, 8), &PlanContext::new(1)).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    let halving =
        GpuCollective { operation: Operation::ReduceScatter, algorithm: Method::HalvingDoubling, ..base() };
    let error = Workload::new(Pattern::GpuCollective(halving)).plan(&network(6, 6), &PlanContext::new(1));
    assert!(error.unwrap_err().to_string().starts_with("algorithm: expected a power of two of ranks"));
}

/// However late messages are acknowledged, and whatever has come in the meantime.
#[test]
fn a_rank_of_a_ring_has_two_messages_on_their_way_at_most() {
    for (operation, hosts) in
        [(Operation::AllReduce, 8), (Operation::AllGather, 5), (Operation::ReduceScatter, 3)]
    {
        let mut most = 0;
        for seed in 0..8 {
            let collective = GpuCollective {
                operation,
                algorithm: Method::Ring,
                size: Bytes(999),
                repeat: 2,
                ..Default::default()
            };
            let mut plan = plan_of(collective, hosts);
            let mut under_way = vec![0; hosts as usize];
            execute(&mut plan, seed, Time(777), |_, _, event| match event {
                Event::Sent { src, .. } => {
                    under_way[src as usize] += 1;
                    most = most.max(under_way[src as usize]);
                }
                Event::Acknowledged { src } => under_way[src as usize] -= 1,
                _ => {}
            });
            assert!(plan.hosts.iter().all(|host| host.is_finished()));
        }
        assert_eq!(most, 2, "{operation:?}");
    }
}

/// Ranks go on to the next operation when all has come, and may have something of the last one to send then: what they send next must not overtake it.
#[test]
fn messages_leave_in_the_order_of_steps_and_operations() {
    let (network, context, options) = (network(8, 8), PlanContext::new(1), Options::default());
    let setting = Setting {
        network: &network,
        endpoints: Endpoints { network: &network, rails: None },
        context: &context,
        options: &options,
        placement_seed: 1,
        placed: (0..8).collect(),
        job: JobSetting::default(),
    };
    let gpus = Gpus::new(&setting).unwrap();
    let comm = Comm {
        members: (0..8).collect(),
        tag: 0,
        kind: 0,
        name: "",
        method: Method::Ring,
        channels: 1,
        chunks: 1,
    };
    let sizes = |seed, latency| {
        // Blocks of 100 and 101 bytes, then of other sizes.
        let program = gpus.program(8, 1, [0; KINDS], |builder, gpu| {
            let mut after = Vec::new();
            for number in 0..4 {
                let size = Bytes(803 + 1600 * u64::from(number));
                after = builder.collective(&comm, gpu, (Operation::AllReduce, size, number), &after);
            }
        });
        let (mut plan, mut sizes) = (setting.run(program.unwrap().0), vec![Vec::new(); 8]);
        execute(&mut plan, seed, latency, |_, _, event| {
            if let Event::Sent { src, bytes, .. } = event {
                sizes[src as usize].push(bytes);
            }
        });
        sizes
    };
    let expected = sizes(0, Time::ZERO);
    assert_eq!(expected[0].len(), 4 * 14);
    for seed in 0..32 {
        assert!(sizes(seed, Time(777)) == expected, "seed {seed}");
    }
}
