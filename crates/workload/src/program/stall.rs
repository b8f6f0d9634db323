//! Why a program does not come to its end: who waits for which message, and what became of it.

use std::collections::BTreeSet;

use super::ANY;
use super::runner::Runner;

/// Ranks that a chain of waits names, at most.
const MOST_RANKS: usize = 8;

/// What a rank that has not finished waits for.
pub(super) enum Waits {
    /// For its start.
    ToBegin,
    /// For a message of this rank with this tag, each of which may be [`ANY`].
    For(u32, u32),
    /// For its transport to be done with this number of messages that it sent.
    ForTransport(u32),
    /// For the end of a calculation.
    ForCalculation,
}

/// Follows the ranks that wait for each other, from the first that has not finished to where it ends: at a message that was sent and did not come, or
/// in a cycle. `runners` are those of one program that are known, in order of their ranks; `named` says what a rank is called. `None` if all have
/// finished.
pub(crate) fn describe(runners: &[&Runner], named: impl Fn(u32) -> String) -> Option<String> {
    let waiting = runners.iter().filter(|runner| !runner.is_finished()).count();
    let first = runners.iter().position(|runner| !runner.is_finished())?;
    let name = named(runners[first].rank().0);
    let mut text = format!("{waiting} of {} ranks have not finished: {name}", runners.len());
    let (mut at, mut passed) = (first, BTreeSet::new());
    loop {
        passed.insert(at);
        let runner = runners[at];
        let (peer, tag) = match runner.waits() {
            Waits::ToBegin => return Some(text + " has not begun"),
            Waits::ForCalculation => return Some(text + " calculates"),
            Waits::ForTransport(count) => {
                return Some(
                    text + &format!(" has sent {count} messages that its transport is not done with"),
                );
            }
            Waits::For(peer, tag) => (peer, tag),
        };
        let tag_words = if tag == ANY { "any tag".to_owned() } else { format!("tag {tag}") };
        if peer == ANY {
            return Some(text + &format!(" waits for a message of any rank with {tag_words}"));
        }
        text += &format!(" waits for a message of rank {peer} with {tag_words}");
        let next = runners.binary_search_by_key(&peer, |runner| runner.rank().0).ok();
        let Some(next) = next.filter(|_| tag != ANY) else { return Some(text) };
        if runners[next].has_sent(runner, tag) {
            return Some(text + &format!(", which {} has sent and which has not come", named(peer)));
        }
        if runners[next].is_finished() {
            return Some(text + ", which never sends it");
        }
        if passed.contains(&next) {
            return Some(text + ", which has not sent it, as it waits itself: a cycle");
        }
        if passed.len() == MOST_RANKS {
            return Some(text + ", which has not sent it, …");
        }
        text += &format!(", which has not sent it, as {}", named(peer));
        at = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Accept, Placed, RankBuilder, build_all};
    use netloom_units::{Bytes, Time};

    /// Three ranks that pass a message on around a ring, once rank 0 has calculated.
    fn ring() -> Vec<Runner> {
        let program = build_all(3, 1, Time::ZERO, |rank| {
            let mut builder = RankBuilder::default();
            let (to, from) = ((rank + 1) % 3, (rank + 2) % 3);
            let send = builder.send(to, Bytes(1), 5);
            let recv = builder.recv(Accept::Only(from), Accept::Only(5));
            match rank {
                0 => {
                    let calc = builder.calc(Time(9));
                    builder.requires(send, calc);
                }
                _ => builder.requires(send, recv),
            }
            builder
        });
        let placed = Placed::new(program.unwrap(), &[0, 1, 2], 3);
        let mut runners: Vec<_> = (0..3).map(|rank| Runner::new(placed.clone(), rank, Time::ZERO)).collect();
        runners.iter_mut().for_each(|runner| runner.begin(Time::ZERO, &mut Vec::new()));
        runners
    }

    fn said(runners: &[Runner]) -> Option<String> {
        describe(&runners.iter().collect::<Vec<_>>(), |rank| format!("rank {rank}"))
    }

    #[test]
    fn a_chain_of_waits_ends_at_what_did_not_come() {
        let mut runners = ring();
        assert_eq!(
            said(&runners).unwrap(),
            "3 of 3 ranks have not finished: rank 0 waits for a message of rank 2 with tag 5, which has not sent it, as rank 2 waits for a \
             message of rank 1 with tag 5, which has not sent it, as rank 1 waits for a message of rank 0 with tag 5, which has not sent it, as \
             it waits itself: a cycle"
        );
        let mut actions = Vec::new();
        runners[0].on_wake(Time(9), 2, &mut actions);
        runners[0].on_sent(Time(9), 0, &mut actions);
        assert!(said(&runners).unwrap().ends_with(
            "rank 1 waits for a message of rank 0 with tag 5, which rank 0 has sent and which has not come"
        ));
        runners[1].on_received(Time(9), 0, 0, &mut actions);
        assert_eq!(
            said(&runners).unwrap(),
            "3 of 3 ranks have not finished: rank 0 waits for a message of rank 2 with tag 5, which has not sent it, as rank 2 waits for a \
             message of rank 1 with tag 5, which rank 1 has sent and which has not come"
        );
        runners[2].on_received(Time(9), 1, 0, &mut actions);
        runners[0].on_received(Time(9), 2, 0, &mut actions);
        assert_eq!(
            said(&runners).unwrap(),
            "2 of 3 ranks have not finished: rank 1 has sent 1 messages that its transport is not done with"
        );
        runners[1].on_sent(Time(9), 0, &mut actions);
        runners[2].on_sent(Time(9), 0, &mut actions);
        assert_eq!(said(&runners), None);
    }
}
