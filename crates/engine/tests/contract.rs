//! What the engine refuses, and where time ends.

use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use netloom_engine::{Due, END_OF_TIME, Engine, Model, NodeIndex, Run, Scheduler, Setup};
use netloom_units::Time;
use proptest::prelude::*;

/// What a node does when its timer of number 0 fires, at [`WHEN`].
#[derive(Clone, Copy, Debug)]
enum Deed {
    /// Sends itself or the other node a message that arrives this long after now.
    Send { to: NodeIndex, after: u64 },
    /// Sends itself or the other node a message that arrives this long before now.
    SendBack { to: NodeIndex, before: u64 },
    /// Sets a timer for then.
    Timer { at: u64 },
    /// Leaves undone what happens inside it.
    Forget,
}

const WHEN: Time = Time(1_234_567);
const LOOKAHEAD: Time = Time(1_000);

struct Doer(Deed);

impl Model for Doer {
    type Node = Vec<(Time, u32)>;
    type Payload = u32;
    type Hint = ();

    fn start(&self, _: &mut Self::Node, id: NodeIndex, out: &mut impl Scheduler<u32>) {
        if id == 0 {
            out.timer(WHEN, 0);
        }
    }

    fn handle(
        &self,
        node: &mut Self::Node,
        id: NodeIndex,
        Due { at, .. }: Due,
        number: &mut u32,
        out: &mut impl Scheduler<u32>,
    ) {
        node.push((at, *number));
        if *number > 0 {
            return;
        }
        match self.0 {
            Deed::Send { to, after } => out.send(to, id, at + Time(after), 1),
            Deed::SendBack { to, before } => out.send(to, id, Time(at.0 - before), 1),
            Deed::Timer { at } => out.timer(Time(at), 1),
            Deed::Forget => {}
        }
    }

    fn advance(
        &self,
        node: &mut Self::Node,
        _: NodeIndex,
        _: Time,
        _: &mut impl Scheduler<u32>,
    ) -> Option<Time> {
        (matches!(self.0, Deed::Forget) && !node.is_empty()).then_some(Time(WHEN.0 + 1))
    }
}

type Nodes = Vec<(Time, u32)>;

fn run(deed: Deed, partition: Vec<u16>, windows_per_lookahead: u64) -> Result<Run<Nodes, u32>, String> {
    let setup = Setup { partition: Some(partition), windows_per_lookahead, ..Setup::new(LOOKAHEAD) };
    let run = || Engine::new(Arc::new(Doer(deed)), vec![Vec::new(), Vec::new()], setup).unwrap().run();
    catch_unwind(AssertUnwindSafe(run))
        .map_err(|panic| panic.downcast::<String>().map_or_else(|_| String::new(), |message| *message))
}

fn partitions() -> impl Strategy<Value = (Vec<u16>, u64)> {
    (prop_oneof![Just(vec![0, 0]), Just(vec![0, 1]), Just(vec![1, 0])], 1..9u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// From one lookahead on everything is right; below, whatever would land in the running epoch is refused, also by the sender's own
    /// thread, and what is let pass makes no difference: it arrives when it should.
    #[test]
    fn a_message_takes_at_least_the_lookahead(
        to in 0..2u32,
        after in 0..3 * LOOKAHEAD.0,
        (partition, windows) in partitions(),
    ) {
        match run(Deed::Send { to, after }, partition, windows) {
            Ok(run) => {
                prop_assert!(after > 0);
                prop_assert_eq!(run.nodes[to as usize].last(), Some(&(WHEN + Time(after), 1)));
            }
            Err(message) => {
                prop_assert!(after < LOOKAHEAD.0);
                prop_assert!(message.contains("less than one lookahead after its cause"), "{}", message);
            }
        }
    }

    #[test]
    fn a_message_into_the_past_is_refused(to in 0..2u32, before in 0..=WHEN.0, (partition, windows) in partitions()) {
        let message = run(Deed::SendBack { to, before }, partition, windows).unwrap_err();
        prop_assert!(message.contains("less than one lookahead after its cause"), "{}", message);
    }

    #[test]
    fn timers_fire_at_their_node_and_instant_or_are_refused(
        at in prop_oneof![0..2 * WHEN.0, WHEN.0..WHEN.0 + 2, WHEN.0 - 300..WHEN.0 + 300, WHEN.0..END_OF_TIME.0],
        (partition, windows) in partitions(),
    ) {
        match run(Deed::Timer { at }, partition, windows) {
            Ok(run) => {
                prop_assert!(at >= WHEN.0);
                prop_assert_eq!(&run.nodes[0], &[(WHEN, 0), (Time(at), 1)]);
                prop_assert!(run.nodes[1].is_empty() && !run.out_of_time);
            }
            Err(message) => {
                prop_assert!(at < WHEN.0);
                prop_assert!(message.contains("the model set a timer for"), "{}", message);
            }
        }
    }

    #[test]
    fn nothing_happens_at_the_end_of_time_and_the_run_says_so(
        at in prop_oneof![END_OF_TIME.0..=u64::MAX, Just(END_OF_TIME.0), Just(u64::MAX)],
        as_timer in any::<bool>(),
        (partition, windows) in partitions(),
    ) {
        let deed = if as_timer { Deed::Timer { at } } else { Deed::Send { to: 1, after: at - WHEN.0 } };
        let run = run(deed, partition, windows).unwrap();
        prop_assert!(run.out_of_time);
        prop_assert_eq!((&run.nodes[0], run.nodes[1].len()), (&vec![(WHEN, 0)], 0));
        prop_assert_eq!(run.pending.len(), usize::from(!as_timer));
    }
}

#[test]
fn what_a_node_leaves_undone_is_refused() {
    let message = run(Deed::Forget, vec![0, 1], 2).unwrap_err();
    assert!(message.contains("the model left undone what happens at 1234.568ns"), "{message}");
}

/// Two nodes whose messages take a quarter of an hour, and that are busy all the while.
struct Slow;

const QUARTER: Time = Time(900_000_000_000_000);

impl Model for Slow {
    type Node = u32;
    type Payload = bool;
    type Hint = ();

    fn start(&self, _: &mut u32, _: NodeIndex, out: &mut impl Scheduler<bool>) {
        out.timer(Time::ZERO, false);
    }

    fn handle(
        &self,
        node: &mut u32,
        id: NodeIndex,
        Due { at, .. }: Due,
        is_message: &mut bool,
        out: &mut impl Scheduler<bool>,
    ) {
        *node += u32::from(*is_message);
        if !*is_message && at < QUARTER {
            out.timer(at + Time::from_ms(20), false);
            out.send(1 - id, id, at + QUARTER, true);
        }
    }

    fn advance(&self, _: &mut u32, _: NodeIndex, _: Time, _: &mut impl Scheduler<bool>) -> Option<Time> {
        None
    }
}

#[test]
fn an_observer_sees_a_run_whose_messages_take_minutes() {
    let mut seen = 0;
    let setup = Setup { partition: Some(vec![0, 1]), ..Setup::new(QUARTER) };
    let run = Engine::new(Arc::new(Slow), vec![0, 0], setup).unwrap().run_observed(|_| {
        seen += 1;
        ControlFlow::Continue(())
    });
    assert_eq!(run.nodes, [45_000, 45_000]);
    // Ten times a second of simulated time, as long as something happens.
    assert!(seen > 9_000, "{seen}");
}

/// Sets a timer for the end of time in the last picosecond before.
struct Late;

impl Model for Late {
    type Node = ();
    type Payload = ();
    type Hint = ();

    fn start(&self, (): &mut (), _: NodeIndex, out: &mut impl Scheduler<()>) {
        out.timer(Time(END_OF_TIME.0 - 1), ());
    }

    fn handle(&self, (): &mut (), _: NodeIndex, _: Due, (): &mut (), out: &mut impl Scheduler<()>) {
        out.timer(END_OF_TIME, ());
    }

    fn advance(&self, (): &mut (), _: NodeIndex, _: Time, _: &mut impl Scheduler<()>) -> Option<Time> {
        None
    }
}

#[test]
fn what_is_left_of_the_last_window_is_not_forgotten() {
    assert_ne!(END_OF_TIME.0 % LOOKAHEAD.0, 0, "the end of time cuts a window");
    let run = Engine::new(Arc::new(Late), vec![()], Setup::new(LOOKAHEAD)).unwrap().run();
    assert!(run.out_of_time);
}
