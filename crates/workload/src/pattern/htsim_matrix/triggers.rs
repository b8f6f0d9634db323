//! Connections that start when others are done, as a program: a connection is a send at its source and a receive at its destination, and
//! a trigger makes a send wait for what fires it.

use std::collections::BTreeMap;

use netloom_units::Time;
use netloom_units::memory::Meter;

use super::{Begin, Connection};
use crate::program::{Accept, Program, RankBuilder, check};

/// When a trigger fires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// When the one connection that fires it is done (`oneshot`, `multishot`).
    Single,
    /// When so many connections are.
    Barrier(u64),
}

/// The program of `ranks` hosts; an error tells the line, if one is to blame.
pub(super) fn program(
    ranks: u32,
    connections: &[Connection],
    triggers: &BTreeMap<u64, Trigger>,
) -> Result<Program, (Option<u64>, String)> {
    let mut builders: Vec<RankBuilder> = (0..ranks).map(|_| RankBuilder::default()).collect();
    let mut sends = Vec::with_capacity(connections.len());
    // By trigger: where and by which operation it is fired.
    let mut firing: BTreeMap<u64, Vec<(u32, u32)>> = BTreeMap::new();
    for (tag, connection) in (0..).zip(connections) {
        let Connection { src, dst, bytes, send_done, recv_done, .. } = *connection;
        let send = builders[src as usize].send(dst, bytes, tag);
        let recv = builders[dst as usize].recv(Accept::Only(src), Accept::Only(tag));
        sends.push(send);
        for (trigger, place) in [(send_done, (src, send)), (recv_done, (dst, recv))] {
            if let Some(trigger) = trigger {
                if !triggers.contains_key(&trigger) {
                    return Err((Some(connection.line), format!("there is no trigger {trigger}")));
                }
                firing.entry(trigger).or_default().push(place);
            }
        }
    }
    start_by_the_clock(&mut builders, connections, &sends);
    for (connection, &send) in connections.iter().zip(&sends) {
        let Begin::On(id) = connection.begin else { continue };
        let wrong = |problem: String| (Some(connection.line), problem);
        let trigger = *triggers.get(&id).ok_or_else(|| wrong(format!("there is no trigger {id}")))?;
        let fired_by = firing.get(&id).map_or(&[][..], Vec::as_slice);
        let expected = match trigger {
            Trigger::Single => 1,
            Trigger::Barrier(count) => count,
        };
        if fired_by.len() as u64 != expected {
            let found = fired_by.len();
            return Err(wrong(format!(
                "trigger {id}: expected {expected} connections that fire it, found {found}"
            )));
        }
        for &(host, op) in fired_by {
            if host != connection.src {
                return Err(wrong(format!(
                    "trigger {id} is fired at host {host}, but starts a connection at host {}: expected the same host, as nothing goes \
                     from one to the other in no time",
                    connection.src
                )));
            }
            builders[connection.src as usize].requires(send, op);
        }
    }
    let mut memory = Meter::default();
    let mut built = Vec::with_capacity(builders.len());
    for builder in builders {
        memory.take(builder.bytes()).map_err(|error| (None, error.to_string()))?;
        built.push(
            builder.build().map_err(|_| (None, "connections wait for each other in a circle".to_owned()))?,
        );
    }
    let program = check(built, 1, Time::ZERO).and_then(Program::ending);
    program.map_err(|problem| (None, problem))
}

/// Lets every connection with a start wait for it: the hosts' clocks are calculations from one start to the next.
fn start_by_the_clock(builders: &mut [RankBuilder], connections: &[Connection], sends: &[u32]) {
    let timed = connections.iter().zip(sends).filter_map(|(connection, &send)| match connection.begin {
        Begin::At(start) if start > Time::ZERO => Some((connection.src, start, send)),
        _ => None,
    });
    let mut timed: Vec<(u32, Time, u32)> = timed.collect();
    timed.sort_unstable();
    // The host, the instant and the operation of the last start.
    let mut last: Option<(u32, Time, u32)> = None;
    for (host, start, send) in timed {
        let builder = &mut builders[host as usize];
        let before = last.filter(|&(of, _, _)| of == host);
        let clock = match before {
            Some((_, at, clock)) if at == start => clock,
            _ => {
                let clock = builder.calc(start - before.map_or(Time::ZERO, |(_, at, _)| at));
                if let Some((_, _, before)) = before {
                    builder.requires(clock, before);
                }
                clock
            }
        };
        builder.requires(send, clock);
        last = Some((host, start, clock));
    }
}
