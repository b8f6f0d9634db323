//! Connections that start when others are done, as a program: a connection is a send at its source and a receive at its destination, and
//! a trigger makes sends wait for what fires it.
//!
//! A trigger lives at one host, its home: where it is fired, if that is one host, otherwise where its first connection starts. What crosses hosts, a firing
//! on its way home or a start on its way to a connection's source, is a message of one byte.

use std::collections::BTreeMap;

use netloom_units::memory::Meter;
use netloom_units::{Bytes, Time, narrow};

use super::{Begin, Connection};
use crate::program::{Accept, Program, RankBuilder, check};

/// When a trigger fires, and what it starts then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// When the one connection that fires it is done, all of its connections (`oneshot`).
    Once,
    /// Whenever a connection that fires it is done, the next of its connections in the order of the file (`multishot`).
    InTurn,
    /// When this many connections are done, all of its connections.
    Barrier(u64),
}

/// The group of the messages that carry firings and starts to other hosts; that of connections is 0.
pub(super) const TRIGGER_GROUP: u8 = 1;

/// A send or a receive at a host.
type Place = (u32, u32);

/// The program of `ranks` hosts, and whether triggers send messages; an error names the line, if one is to blame.
pub(super) fn program(
    ranks: u32,
    connections: &[Connection],
    triggers: &BTreeMap<u64, Trigger>,
) -> Result<(Program, bool), (Option<u64>, String)> {
    let builders = (0..ranks).map(|_| RankBuilder::default()).collect();
    let mut ranks = Ranks { builders, next_tag: narrow::<u32>(connections.len()), sends_messages: false };
    let mut sends = Vec::with_capacity(connections.len());
    // By trigger: where and by which operation it is fired.
    let mut firing: BTreeMap<u64, Vec<Place>> = BTreeMap::new();
    for (tag, connection) in (0..).zip(connections) {
        let Connection { src, dst, bytes, send_done, recv_done, .. } = *connection;
        let send = ranks.builders[src as usize].send(dst, bytes, tag);
        let recv = ranks.builders[dst as usize].recv(Accept::Only(src), Accept::Only(tag));
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
    start_by_the_clock(&mut ranks.builders, connections, &sends);
    // By trigger: the line of its first connection, and the sends of all.
    let mut started: BTreeMap<u64, (u64, Vec<Place>)> = BTreeMap::new();
    for (connection, &send) in connections.iter().zip(&sends) {
        if let Begin::On(id) = connection.begin {
            let of_trigger = started.entry(id).or_insert((connection.line, Vec::new()));
            of_trigger.1.push((connection.src, send));
        }
    }
    for (id, (line, targets)) in &started {
        let wrong = |problem: String| (Some(*line), problem);
        let trigger = *triggers.get(id).ok_or_else(|| wrong(format!("there is no trigger {id}")))?;
        let fired_by = firing.get(id).map_or(&[][..], Vec::as_slice);
        let (fired, starts) = (fired_by.len() as u64, targets.len() as u64);
        let problem = match trigger {
            Trigger::Once if fired != 1 => Some(format!(
                "a oneshot trigger fires once: expected 1 connection that fires it, found {fired}; `multishot` and `barrier count N` \
                 take several"
            )),
            Trigger::Barrier(count) if fired != count => {
                Some(format!("expected the {count} connections of its barrier to fire it, found {fired}"))
            }
            Trigger::InTurn if fired < starts => Some(format!(
                "each firing of a multishot trigger starts the next of its connections: expected {starts} connections that fire it, found \
                 {fired}"
            )),
            _ => None,
        };
        if let Some(problem) = problem {
            return Err(wrong(format!("trigger {id}: {problem}")));
        }
        match trigger {
            Trigger::InTurn => ranks.start_in_turn(fired_by, targets),
            Trigger::Once | Trigger::Barrier(_) => ranks.start_all(fired_by, targets),
        }
    }
    let mut memory = Meter::default();
    let mut built = Vec::with_capacity(ranks.builders.len());
    for builder in ranks.builders {
        memory.take(builder.bytes()).map_err(|error| (None, error.to_string()))?;
        built.push(
            builder.build().map_err(|_| (None, "connections wait for each other in a cycle".to_owned()))?,
        );
    }
    let program = check(built, 1, Time::ZERO).and_then(Program::ending);
    Ok((program.map_err(|problem| (None, problem))?, ranks.sends_messages))
}

/// The hosts' operations while triggers are added.
struct Ranks {
    builders: Vec<RankBuilder>,
    /// Tags below are those of connections and of other triggers' messages.
    next_tag: u32,
    /// Whether some trigger sends messages to other hosts.
    sends_messages: bool,
}

impl Ranks {
    /// Lets all of `targets` wait for all that fires their trigger.
    fn start_all(&mut self, fired_by: &[Place], targets: &[Place]) {
        let home = home(fired_by, targets);
        let mut arrivals = Vec::new();
        for (host, firings) in by_host(fired_by) {
            match host == home {
                true => arrivals.extend(firings),
                false => arrivals.push(self.message(host, &firings, home)),
            }
        }
        for (host, sends) in by_host(targets) {
            if host == home {
                self.builders[home as usize].after_all(&sends, &arrivals);
            } else {
                let start = self.message(home, &arrivals, host);
                self.builders[host as usize].after_all(&sends, &[start]);
            }
        }
    }

    /// Lets the n-th of `targets` wait for the n-th firing, whichever that is: firings are messages to the trigger's home, of which each takes the
    /// next of the receives that are posted there.
    fn start_in_turn(&mut self, fired_by: &[Place], targets: &[Place]) {
        let home = home(fired_by, targets);
        let tag = self.tag();
        for &(host, firing) in fired_by {
            let send = self.send(host, home, tag);
            self.builders[host as usize].requires(send, firing);
        }
        let is_fired_at_home = fired_by.iter().all(|&(host, _)| host == home);
        let from = if is_fired_at_home { Accept::Only(home) } else { Accept::Any };
        // Firings beyond the last connection start nothing.
        let mut targets = targets.iter();
        for _ in fired_by {
            let firing = self.builders[home as usize].recv(from, Accept::Only(tag));
            match targets.next() {
                Some(&(host, send)) if host == home => {
                    self.builders[home as usize].requires(send, firing);
                }
                Some(&(host, send)) => {
                    let start = self.message(home, &[firing], host);
                    self.builders[host as usize].requires(send, start);
                }
                None => {}
            }
        }
    }

    /// A message from one host to another once all of `earlier` is done; its receive.
    fn message(&mut self, from: u32, earlier: &[u32], to: u32) -> u32 {
        let tag = self.tag();
        let send = self.send(from, to, tag);
        self.builders[from as usize].after_all(&[send], earlier);
        self.builders[to as usize].recv(Accept::Only(from), Accept::Only(tag))
    }

    fn send(&mut self, from: u32, to: u32, tag: u32) -> u32 {
        self.sends_messages |= from != to;
        let builder = &mut self.builders[from as usize];
        let send = builder.send(to, Bytes(1), tag);
        builder.in_group(send, TRIGGER_GROUP);
        send
    }

    fn tag(&mut self) -> u32 {
        self.next_tag += 1;
        self.next_tag - 1
    }
}

/// The host where a trigger lives.
fn home(fired_by: &[Place], targets: &[Place]) -> u32 {
    let (first, start) = (fired_by[0].0, targets[0].0);
    if fired_by.iter().all(|&(host, _)| host == first) { first } else { start }
}

/// Operations by their host.
fn by_host(places: &[Place]) -> BTreeMap<u32, Vec<u32>> {
    let mut hosts: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &(host, op) in places {
        hosts.entry(host).or_default().push(op);
    }
    hosts
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
