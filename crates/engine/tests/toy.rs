//! A toy network of forwarding nodes, run by both executors and by any number of threads.

use netloom_engine::{
    Bipartition, DRIVER, Due, Engine, EngineError, Model, NodeIndex, Rebalance, Run, Scheduler, Session,
    Setup, TIMER, contiguous, deferred_nodes, reference,
};
use std::sync::Arc;

use netloom_units::Time;
use netloom_units::random;
use proptest::prelude::*;
use rand::RngExt;

/// Nodes toss tokens to random nodes; each node is a server that takes `service` per token, without an event of its
/// own for the end of a service. The start of a service sometimes sets a timer, as a packet that leaves does.
struct Toss {
    latency: Time,
    /// What is added for messages of even and of odd nodes, if there is a bipartition.
    more: [Time; 2],
    service: Time,
    tokens: u32,
    hops: u32,
    /// Even nodes toss to odd ones only, and odd ones to even ones.
    is_bipartite: bool,
    /// Nodes toss to their neighbours in a line only.
    is_line: bool,
    /// To whom most are tossed, or to its neighbour.
    favourite: Option<NodeIndex>,
}

/// How long after a service's start its timer fires: within the window, and far beyond.
const ALARMS: [u64; 6] = [1, 2, 40, 900, 5_000, 400_000];

#[derive(Clone, Debug)]
struct Server {
    random: random::Stream,
    queue: std::collections::VecDeque<(u32, Time)>,
    free_at: Time,
    log: Vec<(u64, u32, u32)>,
    /// When it has reported something, as far as that has not been taken.
    reports: Vec<Time>,
}

impl PartialEq for Server {
    fn eq(&self, other: &Self) -> bool {
        self.log == other.log && self.free_at == other.free_at
    }
}

#[derive(Clone, Copy)]
enum Note {
    Token(u32),
    Tick(u32),
    Alarm(u32),
}

impl Default for Note {
    fn default() -> Self {
        Note::Token(0)
    }
}

const NODES: u32 = 13;

/// Sources under which a node logs alarms, and what it looks like at them.
const ALARM: u32 = TIMER - 1;
const STATE: u32 = TIMER - 2;

impl Model for Toss {
    type Node = Server;
    type Payload = Note;
    type Hint = ();

    fn senders(&self, id: NodeIndex, each: impl FnMut(NodeIndex)) -> bool {
        let all = 0..NODES;
        all.filter(|other| if self.is_line { id.abs_diff(*other) == 1 } else { id % 2 != other % 2 })
            .for_each(each);
        self.is_bipartite || self.is_line
    }

    fn first_report(&self, _: &Server, pending: impl FnOnce(&mut dyn FnMut(Time, &Note))) -> Time {
        let mut first = Time::MAX;
        // Ticks that come later in the window are set by those.
        pending(&mut |at, note| {
            if matches!(note, Note::Tick(_)) {
                first = first.min(at);
            }
        });
        first
    }

    fn start(&self, _: &mut Server, id: NodeIndex, out: &mut impl Scheduler<Note>) {
        for token in 0..self.tokens {
            out.timer(Time(u64::from(token % 3)), Note::Token(token * 100 + id));
        }
        out.timer(Time(5), Note::Tick(0));
    }

    fn handle(
        &self,
        node: &mut Server,
        id: NodeIndex,
        Due { at, source }: Due,
        note: &mut Note,
        out: &mut impl Scheduler<Note>,
    ) {
        self.catch_up(node, id, Due { at, source }, out);
        match *note {
            Note::Token(token) => {
                assert!(source == TIMER || source == DRIVER || source < NODES);
                node.log.push((at.0, source, token));
                node.queue.push_back((token, at));
            }
            Note::Tick(count) => {
                node.log.push((at.0, TIMER, count));
                out.tally(1);
                if count % 9 == 4 {
                    // Others are no matter of haste.
                    let is_urgent = count % 2 == 0;
                    node.reports.extend(is_urgent.then_some(at));
                    out.report(is_urgent);
                }
                if count < 50 {
                    // Sometimes several ticks fall into one instant or window, sometimes one beyond the near windows.
                    let step = if count % 7 == 0 { 1_000_000 } else { u64::from(count % 4) * 37 };
                    out.timer(at + Time(step), Note::Tick(count + 1));
                }
            }
            Note::Alarm(token) => {
                // How many wait, and until when, shows whether the timer comes exactly where it belongs.
                node.log.push((at.0, ALARM, token));
                node.log.push((node.free_at.0, STATE, node.queue.len() as u32));
            }
        }
    }

    fn advance(
        &self,
        node: &mut Server,
        id: NodeIndex,
        mut until: Time,
        out: &mut impl Scheduler<Note>,
    ) -> Option<Time> {
        while let Some(&(token, arrived)) = node.queue.front() {
            until = until.min(out.next_timer());
            let start = arrived.max(node.free_at);
            if start >= until {
                return Some(start);
            }
            node.queue.pop_front();
            node.free_at = start + self.service;
            let mut to = node.random.random_range(0..NODES);
            if let Some(favourite) = self.favourite.filter(|_| to > 2) {
                to = favourite;
            }
            if self.is_line {
                to = if id == 0 || id + 1 < NODES && to % 2 == 0 { id + 1 } else { id - 1 };
            } else if self.is_bipartite && to % 2 == id % 2 {
                to = if to == 0 { 1 } else { to - 1 };
            }
            if token < self.hops * 1_000_000 {
                let takes = self.lookaheads()[id as usize % 2];
                out.send(to, id, node.free_at + takes, Note::Token(token + 1_000_000));
            }
            if let Some(&delay) = ALARMS.get(node.random.random_range(0..2 * ALARMS.len())) {
                match token % 4 {
                    0 => out.timer(start + Time(delay), Note::Alarm(token)),
                    place => out.timer_in_order(place, start + Time(delay), Note::Alarm(token)),
                }
            }
        }
        None
    }
}

impl Toss {
    fn lookaheads(&self) -> [Time; 2] {
        self.more.map(|more| self.latency + more)
    }

    /// Does what happened inside a node before `now`, with the timers that this sets.
    fn catch_up(&self, node: &mut Server, id: NodeIndex, now: Due, out: &mut impl Scheduler<Note>) {
        self.advance(node, id, now.at, out);
        while let Some((due, mut alarm)) = out.due_timer(now) {
            self.handle(node, id, due, &mut alarm, out);
            self.advance(node, id, now.at, out);
        }
    }
}

fn servers(seed: u64) -> Vec<Server> {
    (0..NODES)
        .map(|id| Server {
            random: random::Node::Host.stream(seed, u64::from(id)),
            queue: Default::default(),
            free_at: Time::ZERO,
            log: Vec::new(),
            reports: Vec::new(),
        })
        .collect()
}

fn is_odd() -> Vec<bool> {
    (0..NODES).map(|node| node % 2 == 1).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn any_number_of_threads_and_the_global_heap_agree(
        seed in any::<u64>(),
        latency in 1..5_000u64,
        more in prop_oneof![Just([0, 0]), [0..3_000u64, 0..3_000]],
        service in 0..3_000u64,
        tokens in 0..6u32,
        windows_per_lookahead in prop_oneof![Just(1), 1..9u64],
        horizon in 0..100_000u64,
        is_bipartite in any::<bool>(),
        is_line in any::<bool>(),
        favourite in prop::option::of(0..NODES),
        first_check in prop::option::of(prop_oneof![Just(1u64), Just(4), Just(64)]),
        order in prop::option::of(Just((0..NODES).collect::<Vec<_>>()).prop_shuffle()),
    ) {
        let model = Arc::new(Toss { latency: Time(latency), more: if is_bipartite { more.map(Time) } else { [Time::ZERO; 2] }, service: Time(service), tokens, hops: 12, is_bipartite, is_line, favourite });
        let (expected, messages) = reference::run(&*model, servers(seed));
        for threads in 1..=4 {
            let is_odd = is_bipartite.then(is_odd);
            let as_given: Vec<NodeIndex> = (0..NODES).collect();
            let cut = order.as_ref().unwrap_or(&as_given);
            let deferred = is_odd.as_ref().map(|is_odd| deferred_nodes(&*model, cut, is_odd, threads));
            let setup = Setup {
                partition: Some(contiguous(cut, deferred.as_deref(), |_| 1, threads)),
                order: order.clone(),
                rebalance: first_check.map(|first_check| Rebalance { first_check }),
                bipartition: is_odd.map(|is_odd| Bipartition { is_odd, lookaheads: model.lookaheads() }),
                windows_per_lookahead,
                horizon: Time(horizon),
                ..Setup::new(Time(latency))
            };
            let run = Engine::new(Arc::clone(&model), servers(seed), setup).unwrap().run();
            prop_assert!(run.rebalance_count == 0 || threads > 1 && first_check.is_some());
            prop_assert_eq!(&run.nodes, &expected);
            prop_assert_eq!(run.messages, messages);
            prop_assert_eq!(run.tally, u64::from(NODES) * 51);
            prop_assert!(run.pending.is_empty());
        }
    }

    #[test]
    fn nothing_at_or_after_the_limit_is_run(
        until in 0..20_000u64,
        threads in 1..4usize,
        is_bipartite in any::<bool>(),
        is_line in any::<bool>(),
        favourite in prop::option::of(0..NODES),
        first_check in prop::option::of(prop_oneof![Just(1u64), Just(2)]),
    ) {
        let model = Arc::new(Toss { latency: Time(700), more: [Time::ZERO; 2], service: Time(300), tokens: 4, hops: 12, is_bipartite, is_line, favourite });
        let (all, _) = reference::run(&*model, servers(7));
        let order: Vec<NodeIndex> = (0..NODES).collect();
        let partition = Some(contiguous(&order, None, |_| 1, threads));
        let rebalance = first_check.map(|first_check| Rebalance { first_check });
        let setup = Setup { until: Time(until), partition, rebalance, order: Some(order), bipartition: is_bipartite.then(|| Bipartition { is_odd: is_odd(), lookaheads: model.lookaheads() }), ..Setup::new(Time(700)) };
        let run = Engine::new(Arc::clone(&model), servers(7), setup).unwrap().run();
        for (node, whole) in run.nodes.iter().zip(&all) {
            prop_assert_eq!(&node.log[..], &whole.log[..node.log.len()]);
            let event = |&&(_, source, _): &&(u64, u32, u32)| source != STATE;
            let before = whole.log.iter().filter(event).filter(|&&(at, ..)| at < until).count();
            prop_assert_eq!(node.log.iter().filter(event).count(), before);
        }
        let queued: usize = run.nodes.iter().map(|node| node.queue.len()).sum();
        let born = if until > 2 { 4 * NODES as usize } else { return Ok(()) };
        let finished = run.nodes.iter().flat_map(|n| &n.log).filter(|(_, s, t)| *s < STATE && *t >= 12_000_000).count();
        let waiting_to_retire = run.nodes.iter().flat_map(|n| &n.queue).filter(|(t, _)| *t >= 12_000_000).count();
        prop_assert_eq!(run.pending.len() + queued + finished - waiting_to_retire, born);
    }
}

/// What a driver answers to the reports of nodes: a token for another node, so long after.
fn answers(mut reports: Vec<(Time, NodeIndex)>, after: u64) -> impl Iterator<Item = (NodeIndex, Time, Note)> {
    reports.sort_unstable();
    let answer = move |(at, node): (Time, NodeIndex)| {
        ((node * 5 + 3) % NODES, at + Time(after), Note::Token(8_000_000 + node))
    };
    reports.into_iter().map(answer)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Wherever it pauses, whatever the reaction time and the number of threads.
    #[test]
    fn a_session_gives_what_one_event_after_the_other_gives(
        seed in any::<u64>(),
        latency in 100..5_000u64,
        // Ticks are 37 apart, too: such answers meet them in one instant.
        reaction in prop_oneof![Just(37), 1..40u64, 40..9_000u64],
        late in prop_oneof![Just(0), 0..5_000u64],
        pauses in prop::collection::btree_set(0..2_000_000u64, 0..12),
        threads in 1..4usize,
        first_check in prop::option::of(prop_oneof![Just(1u64), Just(4)]),
    ) {
        let model = Arc::new(Toss { latency: Time(latency), more: [Time::ZERO; 2], service: Time(300), tokens: 3, hops: 12, is_bipartite: false, is_line: false, favourite: Some(2) });
        let after = reaction + late;
        let mut steps = reference::Stepper::new(&*model, servers(seed));
        while let Some(node) = steps.step(&model, Time::MAX) {
            let reports = std::mem::take(&mut steps.node_mut(node).reports);
            for (to, at, note) in answers(reports.into_iter().map(|at| (at, node)).collect(), after) {
                steps.timer(to, at, note);
            }
        }
        let messages = steps.messages();
        let (expected, _) = steps.finish();

        let order: Vec<NodeIndex> = (0..NODES).collect();
        let setup = Setup {
            partition: Some(contiguous(&order, None, |_| 1, threads)),
            rebalance: first_check.map(|first_check| Rebalance { first_check }),
            order: Some(order),
            ..Setup::new(Time(latency))
        };
        let mut session = Session::new(Arc::clone(&model), servers(seed), setup, Time(reaction)).unwrap();
        for until in pauses.into_iter().map(Time).chain([Time::MAX]) {
            while !session.is_done() && session.reached() < until {
                session.run(until, |_| std::ops::ControlFlow::Continue(()));
                let mut reports = Vec::new();
                session.take_reports(|id, node| reports.extend(node.reports.drain(..).map(|at| (at, id))));
                prop_assert!(reports.iter().all(|&(at, _)| at < until));
                for (to, at, note) in answers(reports, after) {
                    session.timer(to, at, note);
                }
            }
            prop_assert!(session.is_done() || session.reached() == until);
        }
        prop_assert_eq!(session.messages(), messages);
        let run = session.finish();
        prop_assert_eq!(run.nodes, expected);
        prop_assert!(run.pending.is_empty());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// Between pauses that are far apart windows are those of a bipartition. At each pause a node and what is pending are as without it, and as after one event after the other.
    #[test]
    fn long_stretches_of_a_session_go_in_other_windows(
        seed in any::<u64>(),
        latency in 100..5_000u64,
        more in prop_oneof![Just([0, 0]), [0..3_000u64, 0..3_000]],
        horizon in 0..100_000u64,
        is_line in any::<bool>(),
        favourite in prop::option::of(0..NODES),
        pauses in prop::collection::btree_set(prop_oneof![0..2_000_000u64, 0..80_000_000u64], 0..12),
        limit in prop::option::of(0..60_000_000u64),
        threads in 1..4usize,
        first_check in prop::option::of(prop_oneof![Just(1u64), Just(4)]),
    ) {
        let model = Arc::new(Toss { latency: Time(latency), more: more.map(Time), service: Time(300), tokens: 3, hops: 12, is_bipartite: true, is_line, favourite });
        let order: Vec<NodeIndex> = (0..NODES).collect();
        let sides = Bipartition { is_odd: is_odd(), lookaheads: model.lookaheads() };
        let session = |bipartition| {
            let setup = Setup {
                partition: Some(contiguous(&order, None, |_| 1, threads)),
                rebalance: first_check.map(|first_check| Rebalance { first_check }),
                order: Some(order.clone()),
                horizon: Time(horizon),
                until: limit.map_or(Time::MAX, Time),
                bipartition,
                ..Setup::new(Time(latency))
            };
            Session::new(Arc::clone(&model), servers(seed), setup, Time::MAX).unwrap()
        };
        let (mut long, mut short) = (session(Some(sides)), session(None));
        for until in pauses.into_iter().map(Time).chain([Time::MAX]) {
            for session in [&mut long, &mut short] {
                session.run(until, |_| std::ops::ControlFlow::Continue(()));
            }
            if limit.is_some_and(|limit| until.0 >= limit) {
                break;
            }
            prop_assert_eq!((long.is_done(), long.messages()), (short.is_done(), short.messages()));
            if long.is_done() {
                break;
            }
            prop_assert_eq!((long.reached(), short.reached()), (until, until));
            for node in 0..NODES {
                prop_assert!(*long.node(node) == *short.node(node), "node {} at {}", node, until);
                let pending = [&long, &short].map(|session| {
                    let pending = session.pending([node]).into_iter();
                    pending.map(|pending| (pending.due.at, pending.due.source)).collect::<Vec<_>>()
                });
                prop_assert_eq!(&pending[0], &pending[1]);
            }
        }
        let [long, short] = [long, short].map(Session::finish);
        prop_assert!(long.nodes == short.nodes, "in the end");
        prop_assert_eq!((long.messages, long.tally, long.pending.len()), (short.messages, short.tally, short.pending.len()));
        if limit.is_none() {
            let (expected, messages) = reference::run(&*model, servers(seed));
            prop_assert!(long.nodes == expected && long.messages == messages, "one event after the other");
        }
    }
}

/// Every node passes its tokens on to the next but one of `busy` adjacent nodes. It notes which thread handled an event and when.
struct Circle {
    busy: NodeIndex,
    latency: Time,
}

impl Model for Circle {
    type Node = Vec<(Time, std::thread::ThreadId)>;
    type Payload = ();
    type Hint = ();

    fn start(&self, _: &mut Self::Node, id: NodeIndex, out: &mut impl Scheduler<()>) {
        if id < self.busy {
            (0..20).for_each(|token| out.timer(Time(token * 40), ()));
        }
    }

    fn handle(
        &self,
        node: &mut Self::Node,
        id: NodeIndex,
        Due { at, .. }: Due,
        _: &mut (),
        out: &mut impl Scheduler<()>,
    ) {
        node.push((at, std::thread::current().id()));
        out.send((id + 2) % self.busy, id, at + self.latency, ());
    }

    fn advance(&self, _: &mut Self::Node, _: NodeIndex, _: Time, _: &mut impl Scheduler<()>) -> Option<Time> {
        None
    }
}

#[test]
fn threads_get_equal_work() {
    const COUNT: u32 = 100;
    let order: Vec<NodeIndex> = (0..COUNT).collect();
    let latency = Time(1_000);
    for (busy, threads, rebalance_count) in [(20, 2, 1), (40, 3, 1), (COUNT, 2, 0), (1, 2, 0)] {
        let setup = |rebalance| Setup {
            until: latency * 2_000,
            partition: Some(contiguous(&order, None, |_| 1, threads)),
            rebalance,
            ..Setup::new(latency)
        };
        let model = Arc::new(Circle { busy, latency });
        let run = |rebalance| {
            Engine::new(Arc::clone(&model), vec![Vec::new(); COUNT as usize], setup(rebalance)).unwrap().run()
        };
        let run = [None, Some(Rebalance::default())].map(run);
        let log = |run: &Run<Vec<(Time, _)>, ()>| -> Vec<Vec<Time>> {
            run.nodes.iter().map(|node| node.iter().map(|&(at, _)| at).collect()).collect()
        };
        assert_eq!(log(&run[0]), log(&run[1]));
        assert_eq!(run.each_ref().map(|run| run.rebalance_count), [0, rebalance_count]);
        // The work itself is the same. At first the busy nodes are where they come in the order.
        let [at_first, in_the_end] = run.each_ref().map(|run| run.division);
        assert_eq!((at_first.work, at_first.epochs), (in_the_end.work, in_the_end.epochs));
        let of_first_thread = u64::from(busy).min(u64::from(COUNT) / threads as u64);
        assert_eq!(at_first.longest * u64::from(busy), at_first.work * of_first_thread, "{busy}");
        assert_eq!(in_the_end.longest < at_first.longest, rebalance_count > 0, "{busy}");
        // The largest share that a thread has of the events in the later half of the time.
        let share = |run: &Run<Vec<(Time, std::thread::ThreadId)>, ()>| {
            let mut by_thread = std::collections::HashMap::new();
            let late = run.nodes.iter().flatten().filter(|(at, _)| *at > latency * 1_000);
            late.for_each(|&(_, thread)| *by_thread.entry(thread).or_insert(0) += 1);
            let all: u32 = by_thread.values().sum();
            f64::from(by_thread.values().copied().max().unwrap()) / f64::from(all)
        };
        let even = if busy == 1 { 1.0 } else { 1.0 / threads as f64 };
        assert!(share(&run[1]) <= even + 0.06, "{busy}: {}", share(&run[1]));
        assert_eq!(share(&run[0]) > even + 0.06, rebalance_count > 0, "{busy}: {}", share(&run[0]));
    }
}

/// The work of one node cannot be shared: threads end without effect only for the checks, after powers of two of epochs.
#[test]
fn work_that_cannot_be_shared_is_checked_ever_more_rarely() {
    let latency = Time(1_000);
    let setup = Setup {
        until: latency * 2_000,
        partition: Some((0..100).map(|node| u16::from(node == 0)).collect()),
        order: Some((0..100).rev().collect()),
        rebalance: Some(Rebalance::default()),
        ..Setup::new(latency)
    };
    let run = Engine::new(Arc::new(Circle { busy: 1, latency }), vec![Vec::new(); 100], setup).unwrap().run();
    assert_eq!(run.rebalance_count, 0);
    let threads: std::collections::HashSet<_> = run.nodes[0].iter().map(|&(_, thread)| thread).collect();
    // After 64, 128, 256, 512 and 1024.
    assert!((2..=6).contains(&threads.len()), "{}", threads.len());
}

/// Between two pauses that follow each other soon, threads would end before they have begun to work.
#[test]
fn threads_start_only_where_they_have_enough_to_do() {
    let (latency, busy) = (Time(1_000), 20);
    let order: Vec<NodeIndex> = (0..busy).collect();
    let setup = Setup { partition: Some(contiguous(&order, None, |_| 1, 2)), ..Setup::new(latency) };
    let model = Arc::new(Circle { busy, latency });
    let mut session = Session::new(model, vec![Vec::new(); busy as usize], setup, Time::MAX).unwrap();
    let mut threads_until = |until: Time| {
        let from = session.reached();
        session.run(until, |_| std::ops::ControlFlow::Continue(()));
        let events = (0..busy).flat_map(|node| session.node(node).clone());
        let threads = events.filter(|&(at, _)| at >= from).map(|(_, thread)| thread);
        threads.collect::<std::collections::HashSet<_>>()
    };
    let own = std::collections::HashSet::from([std::thread::current().id()]);
    // Each epoch has 20 × 20 events.
    for pause in 1..5 {
        assert_eq!(threads_until(latency * pause), own);
    }
    let of_long = threads_until(latency * 100);
    assert_eq!((of_long.len(), of_long.is_superset(&own)), (2, true));
    assert_eq!(threads_until(latency * 104), own);
}

#[test]
fn an_order_names_every_node_once() {
    for order in [vec![0, 1], vec![0, 1, 1], vec![0, 1, 3], vec![0, 1, 2, 2]] {
        let named = order.len();
        let setup = Setup { order: Some(order), ..Setup::new(Time(5)) };
        let model = Arc::new(Circle { busy: 1, latency: Time(5) });
        let error = Engine::new(Arc::clone(&model), vec![Vec::new(); 3], setup).err();
        assert_eq!(error, Some(EngineError::Order { named, nodes: 3 }));
    }
}

#[test]
fn the_observer_stops_a_run() {
    let model = Arc::new(Toss {
        latency: Time(700),
        more: [Time::ZERO; 2],
        service: Time(300),
        tokens: 4,
        hops: 1000,
        is_bipartite: false,
        is_line: false,
        favourite: None,
    });
    let run = Engine::new(Arc::clone(&model), servers(1), Setup::new(Time(700))).unwrap().run_observed(
        |progress| {
            if progress.time > Time(10_000) {
                std::ops::ControlFlow::Break(())
            } else {
                std::ops::ControlFlow::Continue(())
            }
        },
    );
    assert!(run.stopped && !run.pending.is_empty());
}

#[test]
#[should_panic(expected = "a node failed")]
fn a_panic_on_one_thread_ends_the_run() {
    struct Fails;
    impl Model for Fails {
        type Node = ();
        type Payload = ();
        type Hint = ();
        fn start(&self, _: &mut (), _: NodeIndex, out: &mut impl Scheduler<()>) {
            out.timer(Time(3), ());
        }
        fn handle(
            &self,
            _: &mut (),
            id: NodeIndex,
            Due { at, .. }: Due,
            _: &mut (),
            out: &mut impl Scheduler<()>,
        ) {
            assert!(id != 1 || at < Time(1000), "a node failed");
            out.timer(at + Time(10), ());
        }
        fn advance(&self, _: &mut (), _: NodeIndex, _: Time, _: &mut impl Scheduler<()>) -> Option<Time> {
            None
        }
    }
    let setup = Setup { partition: Some(vec![0, 1]), ..Setup::new(Time(100)) };
    Engine::new(Arc::new(Fails), vec![(), ()], setup).unwrap().run();
}

/// Every node of a line sends to its neighbours again and again. Notes whose batch was run.
struct Line {
    nodes: NodeIndex,
    batches: std::sync::Mutex<Vec<NodeIndex>>,
}

impl Model for Line {
    type Node = ();
    type Payload = ();
    type Hint = ();

    fn senders(&self, id: NodeIndex, each: impl FnMut(NodeIndex)) -> bool {
        (0..self.nodes).filter(|other| other.abs_diff(id) == 1).for_each(each);
        true
    }

    fn start(&self, _: &mut (), _: NodeIndex, out: &mut impl Scheduler<()>) {
        out.timer(Time(1), ());
    }

    fn handle(
        &self,
        _: &mut (),
        id: NodeIndex,
        Due { at, source }: Due,
        _: &mut (),
        out: &mut impl Scheduler<()>,
    ) {
        if source == TIMER {
            self.batches.lock().unwrap().push(id);
            self.senders(id, |to| out.send(to, id, at + Time(100), ()));
            out.timer(at + Time(200), ());
        }
    }

    fn advance(&self, (): &mut (), _: NodeIndex, _: Time, _: &mut impl Scheduler<()>) -> Option<Time> {
        None
    }
}

/// The batch of a node whose senders are all local is run soon after theirs; that of a node with senders in another partition, behind all others.
#[test]
fn two_windows_are_fused() {
    const NODES: NodeIndex = 601;
    let passes = |partition: Vec<u16>, of: fn(NodeIndex) -> bool| -> Vec<Vec<NodeIndex>> {
        let model = Arc::new(Line { nodes: NODES, batches: Default::default() });
        let setup = Setup {
            until: Time(1_000),
            order: Some((0..NODES).rev().collect()),
            bipartition: Some(Bipartition {
                is_odd: (0..NODES).map(|id| id % 2 == 1).collect(),
                lookaheads: [Time(100); 2],
            }),
            partition: Some(partition),
            ..Setup::new(Time(100))
        };
        Engine::new(Arc::clone(&model), vec![(); NODES as usize], setup).unwrap().run();
        let batches: Vec<NodeIndex> =
            model.batches.lock().unwrap().iter().copied().filter(|&id| of(id)).collect();
        batches.chunks(batches.len() / 5).map(<[_]>::to_vec).collect()
    };
    let rank = |pass: &[NodeIndex], id| pass.iter().position(|&of| of == id).unwrap();
    let passes_of_one = passes(vec![0; NODES as usize], |_| true);
    for pass in &passes_of_one {
        for id in (1..NODES).step_by(2) {
            let behind = rank(pass, id) - rank(pass, id - 1).max(rank(pass, id + 1));
            assert!((1..200).contains(&behind), "{id} comes {behind} batches after its neighbours");
        }
    }
    assert_eq!(passes_of_one.len(), 5);
    let alone = 300;
    let partition = (0..NODES).map(|id| u16::from(id == alone)).collect();
    for pass in passes(partition, |id| id != 300) {
        assert_eq!(pass[pass.len() - 2..], [alone + 1, alone - 1]);
    }
}
