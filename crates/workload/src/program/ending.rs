//! Whether a program can come to its end.

use std::collections::VecDeque;

use netloom_units::{Time, narrow};

use super::{Action, Placed, Program, Runner, describe};

/// A call that a rank waits for.
enum Call {
    Wake(u32),
    Sent(u32),
    Received { src: u32, number: u32 },
}

impl Program {
    /// Runs the program on a network that delivers at once, whatever calculations take, and gives it back if it ends.
    ///
    /// Where no receive has a wildcard, and the dependencies put the sends of every channel in order and its receives too,
    /// the program then ends on every network, because which message goes to which receive does not depend on times.
    /// Otherwise this is one of the possible runs.
    ///
    /// # Errors
    /// Who waits for whom, in words.
    pub(crate) fn ending(self) -> Result<Program, String> {
        let ranks: Vec<u32> = (0..narrow::<u32>(self.ranks.len())).collect();
        let placed = Placed::new(self, &ranks, narrow::<u32>(ranks.len()));
        let mut runners: Vec<Runner> =
            ranks.iter().map(|&rank| Runner::new(placed.clone(), rank, Time::ZERO)).collect();
        let (mut calls, mut actions) = (VecDeque::new(), Vec::new());
        let note = |rank, actions: &mut Vec<Action>, calls: &mut VecDeque<_>| {
            for action in actions.drain(..) {
                match action {
                    Action::Wake { op, .. } => calls.push_back((rank, Call::Wake(op))),
                    Action::Send { dst, number, .. } => {
                        calls.push_back((rank, Call::Sent(number)));
                        calls.push_back((dst, Call::Received { src: rank, number }));
                    }
                }
            }
        };
        for (rank, runner) in (0..).zip(&mut runners) {
            runner.begin(Time::ZERO, &mut actions);
            note(rank, &mut actions, &mut calls);
        }
        while let Some((rank, call)) = calls.pop_front() {
            let runner = &mut runners[rank as usize];
            match call {
                Call::Wake(op) => runner.on_wake(Time::ZERO, op, &mut actions),
                Call::Sent(number) => runner.on_sent(Time::ZERO, number, &mut actions),
                Call::Received { src, number } => runner.on_received(Time::ZERO, src, number, &mut actions),
            }
            note(rank, &mut actions, &mut calls);
        }
        let stuck = describe(&runners.iter().collect::<Vec<_>>(), |rank| format!("rank {rank}"));
        drop(runners);
        match (stuck, std::sync::Arc::try_unwrap(placed)) {
            (None, Ok(placed)) => Ok(placed.program),
            (stuck, _) => {
                Err(format!("the ranks wait for one another for ever: {}", stuck.unwrap_or_default()))
            }
        }
    }
}
