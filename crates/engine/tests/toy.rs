//! A toy network of forwarding nodes, run by both executors and by any number of threads.

use netloom_engine::{
    Balance, Engine, EngineError, Model, NodeIndex, Run, Scheduler, Setup, Sides, TIMER, contiguous, late,
    reference,
};
use netloom_units::Time;
use netloom_units::random;
use proptest::prelude::*;
use rand::RngExt;

/// Nodes toss tokens to random nodes; each node is a server that takes `service` per token, without an event of its
/// own for the end of a service. The start of a service sometimes sets a timer, as a packet that leaves does.
struct Toss {
    latency: Time,
    /// How much more it is for what even and odd nodes toss, if there are sides.
    more: [Time; 2],
    service: Time,
    tokens: u32,
    hops: u32,
    /// Even nodes toss to odd ones only, and these to those.
    has_sides: bool,
    /// Nodes toss to their neighbours in a line only.
    is_line: bool,
    /// To whom most are tossed, or to its neighbour.
    favourite: Option<NodeIndex>,
}

/// How long after a service's start its timer fires: within the turn, and far beyond.
const ALARMS: [u64; 6] = [1, 2, 40, 900, 5_000, 400_000];

#[derive(Clone, Debug)]
struct Server {
    random: random::Stream,
    queue: std::collections::VecDeque<(u32, Time)>,
    free_at: Time,
    log: Vec<(u64, u32, u32)>,
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

    fn senders(&self, id: NodeIndex, each: impl FnMut(NodeIndex)) -> bool {
        let all = 0..NODES;
        all.filter(|other| if self.is_line { id.abs_diff(*other) == 1 } else { id % 2 != other % 2 })
            .for_each(each);
        self.has_sides || self.is_line
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
        at: Time,
        source: u32,
        note: &mut Note,
        out: &mut impl Scheduler<Note>,
    ) {
        self.catch_up(node, id, at, out);
        match *note {
            Note::Token(token) => {
                assert!(source == TIMER || source < NODES);
                node.log.push((at.0, source, token));
                node.queue.push_back((token, at));
            }
            Note::Tick(count) => {
                node.log.push((at.0, TIMER, count));
                out.tally(1);
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
            } else if self.has_sides && to % 2 == id % 2 {
                to = if to == 0 { 1 } else { to - 1 };
            }
            if token < self.hops * 1_000_000 {
                let takes = self.lookaheads()[id as usize % 2];
                out.send(to, id, node.free_at + takes, Note::Token(token + 1_000_000));
            }
            if let Some(&delay) = ALARMS.get(node.random.random_range(0..2 * ALARMS.len())) {
                out.timer(start + Time(delay), Note::Alarm(token));
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
    fn catch_up(&self, node: &mut Server, id: NodeIndex, now: Time, out: &mut impl Scheduler<Note>) {
        self.advance(node, id, now, out);
        while let Some((at, mut alarm)) = out.due_timer(now) {
            self.handle(node, id, at, TIMER, &mut alarm, out);
            self.advance(node, id, now, out);
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
        })
        .collect()
}

fn sides() -> Vec<bool> {
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
        has_sides in any::<bool>(),
        is_line in any::<bool>(),
        favourite in prop::option::of(0..NODES),
        first_look in prop::option::of(prop_oneof![Just(1u64), Just(4), Just(64)]),
        order in prop::option::of(Just((0..NODES).collect::<Vec<_>>()).prop_shuffle()),
    ) {
        let model = Toss { latency: Time(latency), more: if has_sides { more.map(Time) } else { [Time::ZERO; 2] }, service: Time(service), tokens, hops: 12, has_sides, is_line, favourite };
        let (expected, messages) = reference::run(&model, servers(seed));
        for threads in 1..=4 {
            let sides = has_sides.then(sides);
            let as_given: Vec<NodeIndex> = (0..NODES).collect();
            let cut = order.as_ref().unwrap_or(&as_given);
            let late = sides.as_ref().map(|sides| late(&model, cut, sides, threads));
            let setup = Setup {
                parts: Some(contiguous(cut, late.as_deref(), |_| 1, threads)),
                order: order.clone(),
                balance: first_look.map(|first_look| Balance { first_look }),
                sides: sides.map(|of| Sides { of, lookaheads: model.lookaheads() }),
                windows_per_lookahead,
                horizon: Time(horizon),
                ..Setup::new(Time(latency))
            };
            let run = Engine::new(&model, servers(seed), setup).unwrap().run();
            prop_assert!(run.regroupings == 0 || threads > 1 && first_look.is_some());
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
        has_sides in any::<bool>(),
        is_line in any::<bool>(),
        favourite in prop::option::of(0..NODES),
        first_look in prop::option::of(prop_oneof![Just(1u64), Just(2)]),
    ) {
        let model = Toss { latency: Time(700), more: [Time::ZERO; 2], service: Time(300), tokens: 4, hops: 12, has_sides, is_line, favourite };
        let (all, _) = reference::run(&model, servers(7));
        let order: Vec<NodeIndex> = (0..NODES).collect();
        let parts = Some(contiguous(&order, None, |_| 1, threads));
        let balance = first_look.map(|first_look| Balance { first_look });
        let setup = Setup { until: Time(until), parts, balance, order: Some(order), sides: has_sides.then(|| Sides { of: sides(), lookaheads: model.lookaheads() }), ..Setup::new(Time(700)) };
        let run = Engine::new(&model, servers(7), setup).unwrap().run();
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

/// Every node passes its tokens on to the next but one of `busy` nodes, which lie side by side. It notes which thread handled what when.
struct Circle {
    busy: NodeIndex,
    latency: Time,
}

impl Model for Circle {
    type Node = Vec<(Time, std::thread::ThreadId)>;
    type Payload = ();

    fn start(&self, _: &mut Self::Node, id: NodeIndex, out: &mut impl Scheduler<()>) {
        if id < self.busy {
            (0..20).for_each(|token| out.timer(Time(token * 40), ()));
        }
    }

    fn handle(
        &self,
        node: &mut Self::Node,
        id: NodeIndex,
        at: Time,
        _: u32,
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
fn threads_get_as_much_to_do_as_each_other() {
    const COUNT: u32 = 100;
    let order: Vec<NodeIndex> = (0..COUNT).collect();
    let latency = Time(1_000);
    for (busy, threads, regroupings) in [(20, 2, 1), (40, 3, 1), (COUNT, 2, 0), (1, 2, 0)] {
        let setup = |balance| Setup {
            until: latency * 2_000,
            parts: Some(contiguous(&order, None, |_| 1, threads)),
            balance,
            ..Setup::new(latency)
        };
        let model = Circle { busy, latency };
        let run =
            |balance| Engine::new(&model, vec![Vec::new(); COUNT as usize], setup(balance)).unwrap().run();
        let run = [None, Some(Balance::default())].map(run);
        let log = |run: &Run<Vec<(Time, _)>, ()>| -> Vec<Vec<Time>> {
            run.nodes.iter().map(|node| node.iter().map(|&(at, _)| at).collect()).collect()
        };
        assert_eq!(log(&run[0]), log(&run[1]));
        assert_eq!(run.each_ref().map(|run| run.regroupings), [0, regroupings]);
        // How much of the later half of the time a thread had most of.
        let share = |run: &Run<Vec<(Time, std::thread::ThreadId)>, ()>| {
            let mut by_thread = std::collections::HashMap::new();
            let late = run.nodes.iter().flatten().filter(|(at, _)| *at > latency * 1_000);
            late.for_each(|&(_, thread)| *by_thread.entry(thread).or_insert(0) += 1);
            let all: u32 = by_thread.values().sum();
            f64::from(by_thread.values().copied().max().unwrap()) / f64::from(all)
        };
        let even = if busy == 1 { 1.0 } else { 1.0 / threads as f64 };
        assert!(share(&run[1]) <= even + 0.06, "{busy}: {}", share(&run[1]));
        assert_eq!(share(&run[0]) > even + 0.06, regroupings > 0, "{busy}: {}", share(&run[0]));
    }
}

/// A node that has all to do cannot be shared: threads that are started anew for nothing are started for a look after a power of two of epochs only.
#[test]
fn what_cannot_be_shared_is_looked_at_ever_more_seldom() {
    let latency = Time(1_000);
    let setup = Setup {
        until: latency * 2_000,
        parts: Some((0..100).map(|node| u16::from(node == 0)).collect()),
        order: Some((0..100).rev().collect()),
        balance: Some(Balance::default()),
        ..Setup::new(latency)
    };
    let run = Engine::new(&Circle { busy: 1, latency }, vec![Vec::new(); 100], setup).unwrap().run();
    assert_eq!(run.regroupings, 0);
    let threads: std::collections::HashSet<_> = run.nodes[0].iter().map(|&(_, thread)| thread).collect();
    // After 64, 128, 256, 512 and 1024.
    assert!((2..=6).contains(&threads.len()), "{}", threads.len());
}

#[test]
fn an_order_names_every_node_once() {
    for order in [vec![0, 1], vec![0, 1, 1], vec![0, 1, 3], vec![0, 1, 2, 2]] {
        let named = order.len();
        let setup = Setup { order: Some(order), ..Setup::new(Time(5)) };
        let model = Circle { busy: 1, latency: Time(5) };
        let error = Engine::new(&model, vec![Vec::new(); 3], setup).err();
        assert_eq!(error, Some(EngineError::Order { named, nodes: 3 }));
    }
}

#[test]
fn the_observer_stops_a_run() {
    let model = Toss {
        latency: Time(700),
        more: [Time::ZERO; 2],
        service: Time(300),
        tokens: 4,
        hops: 1000,
        has_sides: false,
        is_line: false,
        favourite: None,
    };
    let run = Engine::new(&model, servers(1), Setup::new(Time(700))).unwrap().run_observed(|progress| {
        if progress.time > Time(10_000) {
            std::ops::ControlFlow::Break(())
        } else {
            std::ops::ControlFlow::Continue(())
        }
    });
    assert!(run.stopped && !run.pending.is_empty());
}

#[test]
#[should_panic(expected = "a node failed")]
fn a_panic_on_one_thread_ends_the_run() {
    struct Fails;
    impl Model for Fails {
        type Node = ();
        type Payload = ();
        fn start(&self, _: &mut (), _: NodeIndex, out: &mut impl Scheduler<()>) {
            out.timer(Time(3), ());
        }
        fn handle(
            &self,
            _: &mut (),
            id: NodeIndex,
            at: Time,
            _: u32,
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
    let setup = Setup { parts: Some(vec![0, 1]), ..Setup::new(Time(100)) };
    Engine::new(&Fails, vec![(), ()], setup).unwrap().run();
}

/// Every node of a line sends to its neighbours again and again. Notes whose turn it was.
struct Line {
    nodes: NodeIndex,
    turns: std::sync::Mutex<Vec<NodeIndex>>,
}

impl Model for Line {
    type Node = ();
    type Payload = ();

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
        at: Time,
        source: u32,
        _: &mut (),
        out: &mut impl Scheduler<()>,
    ) {
        if source == TIMER {
            self.turns.lock().unwrap().push(id);
            self.senders(id, |to| out.send(to, id, at + Time(100), ()));
            out.timer(at + Time(200), ());
        }
    }

    fn advance(&self, (): &mut (), _: NodeIndex, _: Time, _: &mut impl Scheduler<()>) -> Option<Time> {
        None
    }
}

/// Who waits for neighbours only has its turn soon after them; who waits for another thread's nodes, behind all others.
#[test]
fn two_windows_are_run_in_one_sweep() {
    const NODES: NodeIndex = 601;
    let sweeps = |parts: Vec<u16>, of: fn(NodeIndex) -> bool| -> Vec<Vec<NodeIndex>> {
        let model = Line { nodes: NODES, turns: Default::default() };
        let setup = Setup {
            until: Time(1_000),
            order: Some((0..NODES).rev().collect()),
            sides: Some(Sides { of: (0..NODES).map(|id| id % 2 == 1).collect(), lookaheads: [Time(100); 2] }),
            parts: Some(parts),
            ..Setup::new(Time(100))
        };
        Engine::new(&model, vec![(); NODES as usize], setup).unwrap().run();
        let turns: Vec<NodeIndex> =
            model.turns.into_inner().unwrap().into_iter().filter(|&id| of(id)).collect();
        turns.chunks(turns.len() / 5).map(<[_]>::to_vec).collect()
    };
    let place = |sweep: &[NodeIndex], id| sweep.iter().position(|&of| of == id).unwrap();
    let sweeps_of_one = sweeps(vec![0; NODES as usize], |_| true);
    for sweep in &sweeps_of_one {
        for id in (1..NODES).step_by(2) {
            let behind = place(sweep, id) - place(sweep, id - 1).max(place(sweep, id + 1));
            assert!((1..200).contains(&behind), "{id} comes {behind} turns after its neighbours");
        }
    }
    assert_eq!(sweeps_of_one.len(), 5);
    let alone = 300;
    let parts = (0..NODES).map(|id| u16::from(id == alone)).collect();
    for sweep in sweeps(parts, |id| id != 300) {
        assert_eq!(sweep[sweep.len() - 2..], [alone + 1, alone - 1]);
    }
}
