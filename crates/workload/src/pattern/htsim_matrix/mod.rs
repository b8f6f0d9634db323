//! Flow lists of htsim.

mod failures;
mod triggers;

use std::collections::BTreeMap;
use std::path::PathBuf;

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::failures::Failures;
use self::triggers::Trigger;
use super::flows::Flows;
use super::lines::Lines;
use crate::WorkloadError;
use crate::plan::{Plan, PlanContext, Setting};

/// A connection matrix of htsim (`.cm`): `Nodes N`, `Connections C`, then lines such as `0->5 id 1 start 0 size 2000000`. A size of 0 is a flow without
/// end, for which the run needs an end of its own (`measure.until`). A connection with `trigger K` in place of `start T` is started by trigger K, which
/// connections with `send_done_trigger K` (all is acknowledged) or `recv_done_trigger K` (all has arrived) fire; `Triggers T` and lines such as
/// `trigger id 1 oneshot` name them. A `oneshot` trigger is fired by one connection and starts all of its own, `barrier count N` by N, when the last of
/// them is done; each firing of a `multishot` trigger starts the next of its connections in the order of the file, and nothing when all have been
/// started. A connection that starts where its trigger is fired starts in that instant. Otherwise a message of one byte carries the firing, by the
/// network and the transport as any other (a flow of the group `trigger`): htsim starts it without delay. Where several hosts fire a trigger, their
/// messages go to the source of its first connection, and from there to the sources of the others. `Failures F` and lines such as `failure switch_type AGG switch_id 3 link_id 0` cut
/// links of a three-level fat tree for the whole run, beside the scenario's `faults`: from aggregation switch 3, counted over all pods, to its first
/// core. `id` and `prio` are read and not used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HtsimMatrix {
    /// The file; relative names start from the scenario's folder.
    pub file: PathBuf,
    /// Unit of `start` in the file: `ps` (csg-htsim, uet-htsim) or `us` (the htsim of the Flowcut artefact).
    #[serde(default)]
    pub start_unit: StartUnit,
}

/// Unit of the start times of a connection matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StartUnit {
    /// Picoseconds.
    #[default]
    Ps,
    /// Microseconds.
    Us,
}

/// A line `SRC->DST …`.
#[derive(Clone, Copy, Debug)]
struct Connection {
    line: u64,
    src: u32,
    dst: u32,
    bytes: Bytes,
    begin: Begin,
    send_done: Option<u64>,
    recv_done: Option<u64>,
}

/// When a connection starts.
#[derive(Clone, Copy, Debug)]
enum Begin {
    At(Time),
    On(u64),
}

impl HtsimMatrix {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let file = setting.context.file(&self.file);
        let mut flows = Flows::new(setting, &file);
        let mut lines = Lines::open(&file)?;
        let mut connections: Vec<Connection> = Vec::new();
        let mut triggers = BTreeMap::new();
        let (mut connection_count, mut trigger_count, mut failure_count) = (None, 0, 0);
        let mut failures = Failures::of(setting.network);
        while let Some((line, text)) = lines.next()? {
            let fail = |problem: String| WorkloadError::line(&file, line, problem);
            let words: Vec<&str> = text.split_whitespace().collect();
            let count = || match words[..] {
                [_, count] => count.parse::<u64>().ok(),
                _ => None,
            };
            let counted = || count().ok_or_else(|| fail(format!("expected a count after `{}`", words[0])));
            match words[0] {
                "Nodes" => {
                    let (nodes, ranks) = (counted()?, flows.ranks());
                    if nodes > ranks.into() {
                        return Err(fail(format!("the matrix has {nodes} nodes, the network {ranks} hosts")));
                    }
                }
                "Connections" => connection_count = Some(counted()?),
                "Triggers" => trigger_count = counted()?,
                "trigger" => {
                    let (id, trigger) = read_trigger(&words).map_err(fail)?;
                    if triggers.insert(id, trigger).is_some() {
                        return Err(fail(format!("trigger {id} is there twice")));
                    }
                }
                "Failures" => failure_count = counted()?,
                "failure" => failures.read(&words).map_err(fail)?,
                _ => {
                    let (src, dst, mut connection) = self.connection(line, &words).map_err(fail)?;
                    if connection.bytes == Bytes(0) {
                        connection.bytes = endless(&connection, setting.context).map_err(fail)?;
                    }
                    let (src, dst) = flows.check(line, src, dst, connection.bytes)?;
                    connections.push(Connection { src, dst, ..connection });
                }
            }
        }
        let wrong = |problem: String| WorkloadError::file(&file, problem);
        match connection_count {
            Some(announced) if announced == connections.len() as u64 => {}
            Some(announced) => {
                let found = connections.len();
                return Err(wrong(format!("`Connections {announced}`, but the file holds {found}")));
            }
            None => return Err(wrong("expected a line `Connections C`, found none".to_owned())),
        }
        if trigger_count != triggers.len() as u64 {
            let found = triggers.len();
            return Err(wrong(format!("`Triggers {trigger_count}`, but the file holds {found}")));
        }
        let cuts = failures.cuts();
        if failure_count != cuts.len() as u64 {
            let found = cuts.len();
            return Err(wrong(format!("`Failures {failure_count}`, but the file holds {found}")));
        }
        if connections.iter().any(|connection| matches!(connection.begin, Begin::On(_))) {
            let program = triggers::program(flows.ranks(), &connections, &triggers);
            let (program, sends_messages) = program.map_err(|(line, problem)| match line {
                Some(line) => WorkloadError::line(&file, line, problem),
                None => wrong(problem),
            })?;
            let plan = setting.run(program);
            let groups = match sends_messages {
                true => GROUPS.map(str::to_owned).into(),
                false => plan.groups,
            };
            return Ok(Plan { cuts, groups, ..plan });
        }
        for Connection { line, src, dst, bytes, begin, .. } in connections {
            if let Begin::At(start) = begin {
                flows.add(line, src.into(), dst.into(), bytes, start)?;
            }
        }
        Ok(Plan { cuts, ..flows.plan() })
    }

    /// Reads `SRC->DST KEY VALUE …`; the hosts are still to be checked.
    fn connection(&self, line: u64, words: &[&str]) -> Result<(u64, u64, Connection), String> {
        let pair =
            words[0].split_once("->").and_then(|(src, dst)| Some((src.parse().ok()?, dst.parse().ok()?)));
        let (src, dst) = pair.ok_or_else(|| format!("expected SRC->DST, found \"{}\"", words[0]))?;
        let (mut begin, mut size) = (None, None);
        let (mut send_done, mut recv_done) = (None, None);
        for pair in words[1..].chunks(2) {
            let &[key, value] = pair else {
                return Err(format!("expected a value after `{}`", pair[0]));
            };
            let wrong = |expected: &str| format!("{key}: expected {expected}, found \"{value}\"");
            let trigger = || value.parse::<u64>().map_err(|_| wrong("a trigger's number"));
            let mut begins = |new: Begin| match begin.replace(new) {
                None => Ok(()),
                Some(_) => Err("expected either `start` or `trigger`, found both".to_owned()),
            };
            match key {
                "start" => {
                    let unit = if self.start_unit == StartUnit::Us { "us" } else { "ps" };
                    let time = format!("{value}{unit}").parse::<Time>();
                    begins(Begin::At(
                        time.map_err(|_| wrong(&format!("a time in {unit}, without its unit")))?,
                    ))?;
                }
                "trigger" => begins(Begin::On(trigger()?))?,
                "send_done_trigger" => send_done = Some(trigger()?),
                "recv_done_trigger" => recv_done = Some(trigger()?),
                "size" => size = Some(value.parse().map(Bytes).map_err(|_| wrong("a number of bytes"))?),
                "id" | "prio" => {}
                _ => {
                    return Err(format!(
                        "expected start, trigger, size, send_done_trigger, recv_done_trigger, id or prio, found `{key}`"
                    ));
                }
            }
        }
        let begin = begin.ok_or("expected `start T` or `trigger K`, found neither")?;
        let bytes = size.ok_or("expected `size BYTES`, found none")?;
        Ok((src, dst, Connection { line, src: 0, dst: 0, bytes, begin, send_done, recv_done }))
    }
}

/// The groups of a plan whose triggers send messages.
const GROUPS: [&str; 2] = ["connection", "trigger"];

/// The bytes of a connection of size 0, to which htsim sets no end: the most that can be numbered.
fn endless(connection: &Connection, context: &PlanContext) -> Result<Bytes, String> {
    if let Some(trigger) = connection.send_done.or(connection.recv_done) {
        return Err(format!("a connection of size 0 never ends, so it never fires trigger {trigger}"));
    }
    if context.until.is_none() {
        return Err("a connection of size 0 never ends: expected `measure.until` in the scenario, at which the run does".to_owned());
    }
    Ok(context.largest_message)
}

/// Reads `trigger id K oneshot`, `multishot` or `barrier count N`.
fn read_trigger(words: &[&str]) -> Result<(u64, Trigger), String> {
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("expected a number, found \"{word}\""));
    match *words {
        [_, "id", id, "oneshot"] => Ok((number(id)?, Trigger::Once)),
        [_, "id", id, "multishot"] => Ok((number(id)?, Trigger::InTurn)),
        [_, "id", _, "barrier", "count", "0"] => Err("count: expected at least 1, found 0".to_owned()),
        [_, "id", id, "barrier", "count", count] => Ok((number(id)?, Trigger::Barrier(number(count)?))),
        _ => Err("expected `trigger id K oneshot`, `multishot` or `barrier count N`".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::program::testing::{Event, execute};
    use crate::{Message, Pattern, Workload};
    use netloom_topology::HostId;

    fn read(text: &str, start_unit: StartUnit) -> Result<Plan, WorkloadError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("matrix.cm");
        std::fs::write(&file, text).unwrap();
        let pattern = Pattern::HtsimMatrix(HtsimMatrix { file, start_unit });
        plan(Workload::new(pattern), &network(8, 2), 1)
    }

    const MATRIX: &str = "Nodes 8\nConnections 2\n0->1 id 1 start 7 size 2000\n7->2 start 0 size 5 prio 2\n";

    #[test]
    fn connections_become_messages() {
        for (unit, start) in [(StartUnit::Ps, Time(7)), (StartUnit::Us, Time::from_us(7))] {
            let mut plan = read(MATRIX, unit).unwrap();
            let expected =
                [(0, Message::new(1, Bytes(2000), start)), (7, Message::new(2, Bytes(5), Time::ZERO))];
            assert_eq!(timed(&mut plan), expected);
        }
    }

    /// Host 0 sends to 1 and, when that is acknowledged, to 2; when 1 and 2 have both arrived at 3, that answers 0.
    const CHAIN: &str = "Nodes 8
Connections 5
Triggers 2
0->1 id 1 start 0 size 100 send_done_trigger 1
0->2 id 2 trigger 1 size 200
1->3 id 3 start 5000 size 300 recv_done_trigger 2
2->3 id 4 start 7000 size 400 recv_done_trigger 2
3->0 id 5 trigger 2 size 500
trigger id 1 oneshot
trigger id 2 barrier count 2
";

    #[test]
    fn triggers_start_connections_when_others_are_done() {
        let latency = Time(1_000_000);
        for seed in 0..20 {
            let mut plan = read(CHAIN, StartUnit::Ps).unwrap();
            assert_eq!(plan.total_messages, Some(5));
            let (mut sent, mut arrived) = (BTreeMap::new(), BTreeMap::new());
            execute(&mut plan, seed, latency, |_, now, event| match event {
                Event::Sent { src, dst, bytes, .. } => {
                    assert!(sent.insert((src, dst), (now, bytes)).is_none())
                }
                Event::Arrived { src, dst, .. } => _ = arrived.insert((src, dst), now),
                Event::Settled { .. } | Event::Acknowledged { .. } => {}
            });
            assert!(plan.hosts.iter().all(|host| host.is_finished()));
            assert_eq!(
                (sent[&(0, 1)], sent[&(1, 3)], sent[&(2, 3)]),
                ((Time::ZERO, Bytes(100)), (Time(5000), Bytes(300)), (Time(7000), Bytes(400)),)
            );
            assert!(sent[&(0, 2)].0 > Time::ZERO && sent[&(0, 2)].1 == Bytes(200));
            assert_eq!(sent[&(3, 0)], (arrived[&(1, 3)].max(arrived[&(2, 3)]), Bytes(500)));
        }
    }

    /// What the connections of a matrix do: by source and destination, when they start and when all has arrived. Messages of triggers are left out.
    fn replay(text: &str, seed: u64) -> BTreeMap<(HostId, HostId), (Time, Time)> {
        let mut plan = read(text, StartUnit::Ps).unwrap();
        let (mut sent, mut done) = (BTreeMap::new(), BTreeMap::new());
        let mut of_triggers = Vec::new();
        execute(&mut plan, seed, Time(1_000_000), |_, now, event| match event {
            Event::Sent { src, dst, bytes, number, group, .. } => match group {
                0 => assert!(sent.insert((src, dst), (now, number)).is_none()),
                _ => {
                    assert_eq!(bytes, Bytes(1));
                    of_triggers.push((src, number));
                }
            },
            Event::Arrived { src, dst, number } if !of_triggers.contains(&(src, number)) => {
                assert!(done.insert((src, dst), now).is_none());
            }
            Event::Arrived { .. } | Event::Settled { .. } | Event::Acknowledged { .. } => {}
        });
        assert!(plan.hosts.iter().all(|host| host.is_finished()));
        assert_eq!(plan.groups.len(), 1 + usize::from(!of_triggers.is_empty()));
        sent.into_iter().map(|(pair, (start, _))| (pair, (start, done[&pair]))).collect()
    }

    /// As csg-htsim's generator of serialised all-to-alls with two connections in parallel writes them: both of a pair fire one trigger, which starts one
    /// of the next two each time. The last firings find nothing left to start.
    #[test]
    fn each_firing_of_a_multishot_trigger_starts_the_next_connection() {
        let text = "Nodes 8\nConnections 5\nTriggers 2\n0->1 id 1 start 0 size 5 recv_done_trigger 1\n2->0 id 2 start 0 size 5 recv_done_trigger 2\n\
                    3->0 id 3 start 0 size 5 recv_done_trigger 2\n0->4 id 4 trigger 2 size 5 recv_done_trigger 1\n0->5 id 5 trigger 2 size 5\n\
                    trigger id 1 multishot\ntrigger id 2 multishot\n";
        for seed in 0..20 {
            let flows = replay(text, seed);
            let mut fired = [flows[&(2, 0)].1, flows[&(3, 0)].1];
            fired.sort();
            assert_eq!([flows[&(0, 4)].0, flows[&(0, 5)].0], fired);
        }
    }

    #[test]
    fn a_trigger_that_is_fired_elsewhere_sends_messages() {
        // Host 7 is started when 0's connection is done; the messages of the network below take any time.
        let once = "Nodes 8\nConnections 2\nTriggers 1\n0->1 id 1 start 0 size 5 recv_done_trigger 1\n7->2 id 2 trigger 1 size 5\ntrigger id 1 oneshot\n";
        // Three hosts fire, two start.
        let barrier = "Nodes 8\nConnections 5\nTriggers 1\n0->1 start 0 size 5 recv_done_trigger 1\n2->1 start 0 size 5 recv_done_trigger 1\n\
                       3->4 start 0 size 5 recv_done_trigger 1\n5->0 trigger 1 size 5\n6->0 trigger 1 size 5\ntrigger id 1 barrier count 3\n";
        let in_turn = barrier.replace("barrier count 3", "multishot");
        for seed in 0..20 {
            let flows = replay(once, seed);
            assert!(flows[&(7, 2)].0 > flows[&(0, 1)].1);
            let flows = replay(barrier, seed);
            let last = flows[&(0, 1)].1.max(flows[&(2, 1)].1).max(flows[&(3, 4)].1);
            assert!(flows[&(5, 0)].0 > last && flows[&(6, 0)].0 > flows[&(5, 0)].0);
            let flows = replay(&in_turn, seed);
            let mut fired = [flows[&(0, 1)].1, flows[&(2, 1)].1, flows[&(3, 4)].1];
            fired.sort();
            assert!(flows[&(5, 0)].0 > fired[0] && flows[&(6, 0)].0 > fired[1]);
        }
    }

    #[test]
    fn a_connection_of_size_0_lasts_as_long_as_the_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("matrix.cm");
        std::fs::write(&file, "Connections 1\n0->1 start 7 size 0\n").unwrap();
        let pattern = Pattern::HtsimMatrix(HtsimMatrix { file, start_unit: StartUnit::Ps });
        let largest_message = Bytes(1 << 40);
        let context = PlanContext { largest_message, until: Some(Time::from_us(1)), ..PlanContext::new(1) };
        let mut plan = Workload::new(pattern).plan(&network(8, 2), &context).unwrap();
        assert_eq!(timed(&mut plan), [(0, Message::new(1, largest_message, Time(7)))]);
    }

    #[test]
    fn what_cannot_be_replayed_is_refused_with_its_line() {
        for (text, expected) in [
            ("Nodes 8\nConnections 1\n0->1 trigger 1 size 5\n", "matrix.cm:3: there is no trigger 1"),
            (
                "Connections 1\n0->1 start 0 trigger 1 size 5\n",
                "matrix.cm:2: expected either `start` or `trigger`",
            ),
            ("Connections 0\nTriggers 1\n", "matrix.cm: `Triggers 1`, but the file holds 0"),
            (
                "Connections 0\nTriggers 1\ntrigger id 1 once\n",
                "matrix.cm:3: expected `trigger id K oneshot`",
            ),
            (
                "Triggers 2\ntrigger id 1 oneshot\ntrigger id 1 oneshot\n",
                "matrix.cm:3: trigger 1 is there twice",
            ),
            (
                "Connections 2\nTriggers 1\n0->1 start 0 size 5 send_done_trigger 2\n1->0 trigger 1 size 5\ntrigger id 1 oneshot\n",
                "matrix.cm:3: there is no trigger 2",
            ),
            (
                "Connections 1\nTriggers 1\n0->1 trigger 1 size 5\ntrigger id 1 oneshot\n",
                "matrix.cm:3: trigger 1: a oneshot trigger fires once: expected 1 connection that fires it, found 0",
            ),
            (
                "Connections 3\nTriggers 1\n0->1 start 0 size 5 send_done_trigger 1\n0->2 start 0 size 5 send_done_trigger 1\n0->3 trigger 1 size 5\n\
                 trigger id 1 oneshot\n",
                "matrix.cm:5: trigger 1: a oneshot trigger fires once: expected 1 connection that fires it, found 2",
            ),
            (
                "Connections 3\nTriggers 1\n0->1 start 0 size 5 send_done_trigger 1\n0->2 trigger 1 size 5\n0->3 trigger 1 size 5\n\
                 trigger id 1 multishot\n",
                "matrix.cm:4: trigger 1: each firing of a multishot trigger starts the next of its connections: expected 2 connections",
            ),
            (
                "Connections 2\nTriggers 1\n0->1 start 0 size 5 send_done_trigger 1\n0->2 trigger 1 size 5\ntrigger id 1 barrier count 2\n",
                "matrix.cm:4: trigger 1: expected the 2 connections of its barrier to fire it, found 1",
            ),
            (
                "Connections 0\nTriggers 1\ntrigger id 1 barrier count 0\n",
                "matrix.cm:3: count: expected at least 1, found 0",
            ),
            (
                "Connections 1\n0->1 start 0 size 0\n",
                "matrix.cm:2: a connection of size 0 never ends: expected `measure.until`",
            ),
            (
                "Connections 1\nTriggers 1\n0->1 start 0 size 0 recv_done_trigger 1\ntrigger id 1 oneshot\n",
                "matrix.cm:3: a connection of size 0 never ends, so it never fires trigger 1",
            ),
            (
                "Connections 1\nTriggers 1\n0->1 trigger 1 size 5 send_done_trigger 1\ntrigger id 1 oneshot\n",
                "matrix.cm: connections wait for each other in a cycle",
            ),
            (
                "Connections 2\nTriggers 2\n0->1 trigger 2 size 5 recv_done_trigger 1\n1->0 trigger 1 size 5 recv_done_trigger 2\n\
                 trigger id 1 oneshot\ntrigger id 2 oneshot\n",
                "matrix.cm: the ranks wait for one another for ever",
            ),
            ("Nodes 8\nConnections 0\nFailures 1\n", "matrix.cm: `Failures 1`, but the file holds 0"),
            (
                "Connections 0\nFailures 1\nfailure switch_type AGG switch_id 0 link_id 0\n",
                "matrix.cm:3: expected a fat tree of three levels",
            ),
            ("Nodes 9\n", "matrix.cm:1: the matrix has 9 nodes, the network 8 hosts"),
            ("Connections 2\n0->1 start 0 size 5\n", "matrix.cm: `Connections 2`, but the file holds 1"),
            ("0->1 start 0 size 5\n", "matrix.cm: expected a line `Connections C`"),
            ("Connections x\n", "matrix.cm:1: expected a count"),
            ("Connections 1\n0-1 start 0 size 5\n", "matrix.cm:2: expected SRC->DST"),
            ("Connections 1\n0->1 start 0\n", "matrix.cm:2: expected `size BYTES`"),
            ("Connections 1\n0->1 size 5\n", "matrix.cm:2: expected `start T` or `trigger K`"),
            ("Connections 1\n0->1 start 0 size\n", "matrix.cm:2: expected a value after `size`"),
            ("Connections 1\n0->1 start 0.5 size 5\n", "matrix.cm:2: start: expected a time in ps"),
            ("Connections 1\n0->1 start 0 size 5 colour red\n", "matrix.cm:2: expected start, trigger, size"),
            ("Connections 1\n0->8 start 0 size 5\n", "matrix.cm:2: dst: expected a host from 0 to 7"),
        ] {
            let error = read(text, StartUnit::Ps).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(read("Connections 0\nTriggers 0\nFailures 0\n", StartUnit::Ps).is_ok());
    }
}
