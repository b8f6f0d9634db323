use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use proptest::prelude::*;

use super::file::{PassKind, Step};
use super::flows::{self, Flows};
use super::{Group, Order, SimAi, SimAiRank, SimAiShape, WorkloadFile};
use crate::members::Members;
use crate::rank::{Call, Envelope, Network};
use crate::system::Operation;

const HEADER: &str = "HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 ep: 2 pp: 1 vpp: 1 ga: 1 all_gpus: 16 checkpoints: 0 checkpoint_initiates: 0 pp_comm: 0";

fn written(text: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("w.txt");
    std::fs::write(&path, text).unwrap();
    (folder, path)
}

/// A step among servers of `per_server` ranks each.
fn step(text: &str, ranks: u32, per_server: u32, order: Order) -> Result<Arc<SimAi>, String> {
    let (_folder, path) = written(text);
    let servers = (0..ranks).map(|rank| rank / per_server).collect();
    let shape = SimAiShape { servers, send_latency: 6000, order };
    SimAi::read(&path, shape).map(Arc::new).map_err(|error| error.to_string())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Wake,
    Sent(u32),
    Arrived(u64, u64),
}

/// What happens, by time and order: to whom, and what.
type Happenings = BinaryHeap<Reverse<(u64, u64, u32, Event)>>;

/// A network in which a message from rank a to b takes as long as `latency` says.
struct Wires<'a> {
    now: u64,
    rank: u32,
    order: &'a mut u64,
    happenings: &'a mut Happenings,
    latency: &'a dyn Fn(u32, u32) -> u64,
}

impl Wires<'_> {
    fn add(&mut self, at: u64, rank: u32, event: Event) {
        *self.order += 1;
        self.happenings.push(Reverse((at, *self.order, rank, event)));
    }
}

impl Network for Wires<'_> {
    fn send(&mut self, to: u32, envelope: Envelope, number: u32) {
        let at = self.now + (self.latency)(self.rank, to);
        self.add(at, to, Event::Arrived(envelope.tag, envelope.bytes));
        self.add(at, self.rank, Event::Sent(number));
    }
    fn wake(&mut self, at: u64) {
        self.add(at, self.rank, Event::Wake);
    }
    fn soon(&mut self, _call: Call) {
        unreachable!("it puts nothing off")
    }
}

/// Runs all ranks until nothing happens any more.
fn run(step: &Arc<SimAi>, latency: &dyn Fn(u32, u32) -> u64) -> Vec<SimAiRank> {
    let mut ranks: Vec<SimAiRank> =
        (0..step.ranks()).map(|rank| SimAiRank::new(step.clone(), rank)).collect();
    let (mut happenings, mut order) = (Happenings::new(), 0);
    for rank in 0..step.ranks() {
        let mut wires = Wires { now: 0, rank, order: &mut order, happenings: &mut happenings, latency };
        ranks[rank as usize].begin(0, &mut wires);
    }
    while let Some(Reverse((now, _, rank, event))) = happenings.pop() {
        let mut wires = Wires { now, rank, order: &mut order, happenings: &mut happenings, latency };
        let rank = &mut ranks[rank as usize];
        match event {
            Event::Wake => rank.wake(now, &mut wires),
            Event::Sent(_) => rank.sent(now, &mut wires),
            Event::Arrived(tag, bytes) => rank.arrived(now, Envelope { tag, bytes, number: 0 }, &mut wires),
        }
    }
    ranks
}

#[test]
fn groups_are_those_of_simai() {
    let text = format!("{HEADER}\n1\na -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n");
    let step = step(&text, 16, 8, Order::NewestFirst).unwrap();
    let of = |group, rank| {
        let members = step.members(group, rank);
        (0..members.count()).map(|place| members.rank(place)).collect::<Vec<_>>()
    };
    assert_eq!(of(Group::Tensor, 5), [4, 5]);
    assert_eq!(of(Group::Data, 5), [1, 3, 5, 7, 9, 11, 13, 15]);
    // Tensor-parallel groups 2 and 3 share experts; those of the same parity have the same ones.
    assert_eq!(of(Group::Expert, 5), [5, 7]);
    assert_eq!(of(Group::DataOfExperts, 5), [1, 5, 9, 13]);
    assert_eq!(of(Group::DataOfExperts, 6), [2, 6, 10, 14]);
}

#[test]
fn each_ring_begins_with_another_rank_of_a_server_and_passes_the_servers_in_order() {
    let servers = [0, 0, 0, 1, 1, 1];
    let ring = |channel| {
        let mut ring = vec![0];
        while ring.len() < 7 {
            let rank = *ring.last().unwrap();
            let members = Members::Strided { first: 0, stride: 1, count: 6 };
            let rings = flows::rings(&members, &servers);
            let flows = Flows::new(Operation::AllGather, 6 << 20, members, rank, rings).unwrap();
            assert_eq!(
                (flows.channels(), flows.steps(), flows.messages(), flows.bytes),
                (3, 5, 15, (6 << 20) / 18)
            );
            ring.push(flows.next(channel));
        }
        ring
    };
    assert_eq!(ring(0), [0, 1, 2, 3, 4, 5, 0]);
    assert_eq!(ring(1), [0, 4, 5, 3, 1, 2, 0]);
    assert_eq!(ring(2), [0, 1, 5, 3, 4, 2, 0]);
}

#[test]
fn a_layer_takes_its_computation_its_steps_and_its_update() {
    let head = HEADER.replace("ep: 2", "ep: 1").replace("all_gpus: 16", "all_gpus: 2");
    let text = format!("{head}\n1\na -1 100 ALLREDUCE 4096 0 NONE 0 0 NONE 0 7\n");
    let step = step(&text, 2, 2, Order::NewestFirst).unwrap();
    assert_eq!((step.load(1).messages, step.load(1).largest), (2 * 2, 1024));
    let ranks = run(&step, &|_, _| 500);
    // Two steps of 6000 and 500 with 10 for the bus, the second with 30 for the reduction; then the update, and a nanosecond after each of three passes.
    let communication = (10 + 6000 + 500) + (10 + 30 + 6000 + 500);
    let end = ranks[0].end().unwrap();
    assert_eq!((end.finished, end.exposed), (100 + communication + 7 + 3, communication + 7 + 3));
    assert_eq!(ranks[1].end(), ranks[0].end());
    assert_eq!(ranks[0].computed(), 100);
}

#[test]
fn operations_of_weights_are_waited_for_at_the_end() {
    let head = HEADER
        .replace("model_parallel_NPU_group: 2 ep: 2", "model_parallel_NPU_group: 1 ep: 1")
        .replace("16", "2");
    let layer = "-1 0 NONE 0 0 NONE 0 0 ALLGATHER 4096 0";
    let text = format!("{head}\n3\na {layer}\nb {layer}\nc {layer}\n");
    // An all-gather between two servers is one step; the last layer's comes first, 3 + 1 nanoseconds after the beginning, then the newest or the oldest.
    let one = 10 + 6000 + 500;
    let totals = |order| {
        let step = step(&text, 2, 1, order).unwrap();
        let ranks = run(&step, &|_, _| 500);
        assert_eq!(ranks[0].end().unwrap().finished, 4 + 3 * one);
        let report = ranks[0].report().unwrap();
        let rows: Vec<Vec<String>> =
            report.lines().skip(3).take(3).map(|row| row.split(',').map(str::to_owned).collect()).collect();
        // Total and exposed communication of weights, in microseconds.
        rows.iter().map(|row| (row[11].clone(), row[6].clone())).collect::<Vec<_>>()
    };
    let us = |ns: u64| format!("{:.6}", ns as f64 / 1000.0);
    // Layer a's is issued 4 nanoseconds after layer c's, b's 2; what is waited for begins a nanosecond after a's.
    let newest = [(us(2 * one - 4), us(2 * one - 5)), (us(3 * one - 2), us(0)), (us(one), us(0))];
    assert_eq!(totals(Order::NewestFirst), newest);
    let oldest = [(us(3 * one - 4), us(3 * one - 5)), (us(2 * one - 2), us(0)), (us(one), us(0))];
    assert_eq!(totals(Order::OldestFirst), oldest);
}

#[test]
fn names_of_layers_are_one_field_of_the_table() {
    let head = HEADER.replace("ep: 2", "ep: 1").replace("all_gpus: 16", "all_gpus: 2");
    let layers = ["attention", "qkv,(8,128)", "\"mlp\""]
        .map(|name| format!("{name} -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n"));
    let step = step(&format!("{head}\n3\n{}", layers.concat()), 2, 2, Order::NewestFirst).unwrap();
    let report = run(&step, &|_, _| 500)[0].report().unwrap();
    let rows: Vec<&str> = report.lines().skip(3).take(3).collect();
    let names = ["attention,netloom,", "\"qkv,(8,128)\",netloom,", "\"\"\"mlp\"\"\",netloom,"];
    assert!(rows.iter().zip(names).all(|(row, name)| row.starts_with(name)), "{report}");
}

#[test]
fn a_forward_pass_is_done_again_from_its_checkpoint() {
    let head = HEADER
        .replace("checkpoints: 0 checkpoint_initiates: 0", "checkpoints: 1 0 checkpoint_initiates: 1 2");
    let layers = "a -1 0 NONE 0 0 NONE 0 0 NONE 0 0\n".repeat(3);
    let (_folder, path) = written(&format!("{head}\n3\n{layers}"));
    let steps: Vec<Step> = WorkloadFile::read(&path).unwrap().steps().collect();
    use PassKind::{Forward, Input, Weight};
    let expected = [
        (0, Forward),
        (1, Forward),
        (2, Forward),
        (0, Forward),
        (1, Forward),
        (2, Input),
        (2, Weight),
        (1, Input),
        (1, Weight),
        (0, Input),
        (0, Weight),
    ];
    assert_eq!(steps, expected.map(|(layer, kind)| Step { layer, kind }));
}

#[test]
fn what_is_wrong_is_named_with_its_line() {
    let good = "a -1 0 NONE 0 0 NONE 0 0 NONE 0 0";
    for (text, expected) in [
        (String::new(), "w.txt:1: expected SimAI's policy, found nothing"),
        (
            format!("MICRO\n1\n{good}"),
            "w.txt:1: expected the policy HYBRID_TRANSFORMER_FWD_IN_BCKWD or HYBRID_TRANSFORMER",
        ),
        ("HYBRID_TRANSFORMER ep: 2\n1\n".into(), "w.txt:1: expected model_parallel_NPU_group:"),
        (
            HEADER.replace("vpp:", "vppp:"),
            "w.txt:1: expected a degree of parallelism, found \"vppp:\"; did you mean `vpp:`?",
        ),
        (
            HEADER.replace("ga: 1", "ga: none"),
            "w.txt:1: ga: expected a number of micro-batches, from 1 on, found none",
        ),
        (HEADER.replace("ga: 1", "ep: 4"), "w.txt:1: ep: expected it once, found it a second time"),
        (format!("{HEADER} pp_comm 0"), "w.txt:1: pp_comm: expected it once, found it a second time"),
        (HEADER.to_owned(), "w.txt:2: expected the number of layers, found the end"),
        (format!("{HEADER}\nmany"), "w.txt:2: expected the number of layers, from 1 on, found \"many\""),
        (format!("{HEADER}\n2\n{good}\n"), "w.txt:3: expected 2 layers, as line 2 says, found 1"),
        (
            format!("{HEADER}\n1\n{good}\n{good}\n"),
            "w.txt:4: expected the end after 1 layers, as line 2 says",
        ),
        (
            format!("{HEADER}\n1\n{}", good.replacen("NONE", "ALREDUCE", 1)),
            "w.txt:3: expected a collective operation, found \"ALREDUCE\"; did you mean `ALLREDUCE`?",
        ),
        (
            format!("{HEADER}\n1\n{}", good.replacen("NONE", "ALLREDUCEALLTOALL", 1)),
            "w.txt:3: expected a collective operation, found \"ALLREDUCEALLTOALL\"",
        ),
        (format!("{HEADER}\n1\n{good} 7"), "w.txt:3: expected 12 columns, found \"7\" behind them"),
        (
            format!("{HEADER}\n1\na -1 0 NONE"),
            "w.txt:3: expected 12 columns, among them bytes of the forward pass, found the end of the line",
        ),
        (
            format!("{HEADER}\n1\n{}", good.replace(" 0 0 NONE", " -3 0 NONE")),
            "w.txt:3: expected bytes of the forward pass, found \"-3\"",
        ),
        (
            HEADER.replace("checkpoints: 0", "checkpoints: 1 4") + &format!("\n1\n{good}"),
            "w.txt:1: checkpoints: expected layers 0 to 0, found 4",
        ),
        (
            HEADER.replace("initiates: 0", "initiates: 1 0") + &format!("\n1\n{good}"),
            "w.txt:1: checkpoint_initiates: 0: expected a checkpoint before this layer",
        ),
        (
            HEADER.replace("ep: 2", "ep: 3") + &format!("\n1\n{good}"),
            "w.txt:1: ep: expected a divisor of the 8 data-parallel ranks, found 3",
        ),
        (
            HEADER.replace("group: 2", "group: 3") + &format!("\n1\n{good}"),
            "w.txt:1: model_parallel_NPU_group: expected a divisor of the 16 GPUs, found 3",
        ),
    ] {
        let message = step(&text, 16, 8, Order::NewestFirst).unwrap_err();
        assert!(message.contains(expected), "{text}: {message}");
    }
}

#[test]
fn what_simai_passes_over_is_noted() {
    let text =
        format!("{HEADER}\n1\nnorm -1 0 BROADCAST 16384 1 NONE 0 1 NONE 0 100\n").replace("pp: 1", "pp: 2");
    let notes = step(&text, 16, 8, Order::NewestFirst).unwrap().notes().join("\n");
    assert!(notes.contains("pp: 2 stages: SimAI's packets know no pipeline, so all 16 GPUs do all layers, 8 of them data-parallel"), "{notes}");
    assert!(notes.contains("w.txt:3: BROADCAST: SimAI sends nothing for it"), "{notes}");
}

fn pass() -> impl Strategy<Value = String> {
    let operation = prop_oneof![
        Just("NONE"),
        Just("ALLREDUCE"),
        Just("ALLGATHER_EP"),
        Just("REDUCESCATTER_DP_EP"),
        Just("ALLTOALL_EP"),
        Just("ALLTOALL"),
        Just("REDUCESCATTER"),
        Just("ALLREDUCE_DP_EP"),
    ];
    (0..3000u64, operation, 0..1u64 << 20)
        .prop_map(|(compute, operation, bytes)| format!("{compute} {operation} {bytes}"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..Default::default() })]

    /// In the order of issuing, every rank ends, whatever messages take, and all that is counted beforehand is sent.
    #[test]
    fn ranks_end(
        (tensor, expert, rest) in (0..3u32, 0..2u32, 0..3u32).prop_map(|(t, e, r)| (1 << t, 1 << e, 1 + r)),
        per_server in 1..9u32,
        layers in prop::collection::vec((pass(), pass(), pass(), 0..200u64), 1..6),
        seed in any::<u64>(),
    ) {
        let ranks = tensor * expert * rest;
        let head = HEADER.replace("group: 2 ep: 2", &format!("group: {tensor} ep: {expert}")).replace("all_gpus: 16", &format!("all_gpus: {ranks}"));
        let rows: String = layers.iter().map(|(f, i, w, update)| format!("l -1 {f} {i} {w} {update}\n")).collect();
        let step = step(&format!("{head}\n{}\n{rows}", layers.len()), ranks, per_server, Order::OldestFirst).unwrap();
        let latency = |a: u32, b: u32| 1 + (seed ^ u64::from(a) << 20 ^ u64::from(b)).wrapping_mul(0x9e37_79b9_7f4a_7c15) % 5000;
        for (number, rank) in (0..).zip(run(&step, &latency)) {
            prop_assert!(rank.end().is_some(), "{:?}", rank.unfinished());
            prop_assert_eq!(u64::from(rank.sent_messages()), step.load(number).messages);
        }
    }
}
