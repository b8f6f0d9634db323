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
use crate::plan::{Plan, Setting};

/// A connection matrix of htsim (`.cm`): `Nodes N`, `Connections C`, then lines such as `0->5 id 1 start 0 size 2000000`. A connection with
/// `trigger K` in place of `start T` starts when trigger K fires, which connections with `send_done_trigger K` (all is acknowledged) or
/// `recv_done_trigger K` (all has arrived) do; `Triggers T` and lines such as `trigger id 1 oneshot` or `trigger id 2 barrier count 4` name them.
/// A trigger starts connections at the host where it is fired. `Failures F` and lines such as `failure switch_type AGG switch_id 3 link_id 0` cut
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
    pub(super) fn lay(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
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
                    let (src, dst, connection) = self.connection(line, &words).map_err(fail)?;
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
            let program = program.map_err(|(line, problem)| match line {
                Some(line) => WorkloadError::line(&file, line, problem),
                None => wrong(problem),
            })?;
            return Ok(Plan { cuts, ..setting.run(program) });
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

/// Reads `trigger id K oneshot`, `multishot` or `barrier count N`.
fn read_trigger(words: &[&str]) -> Result<(u64, Trigger), String> {
    let number = |word: &str| word.parse::<u64>().map_err(|_| format!("expected a number, found \"{word}\""));
    match *words {
        [_, "id", id, "oneshot" | "multishot"] => Ok((number(id)?, Trigger::Single)),
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
                Event::Settled { .. } => {}
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
                "matrix.cm:3: trigger 1: expected 1 connections that fire it, found 0",
            ),
            (
                "Connections 2\nTriggers 1\n0->1 start 0 size 5 send_done_trigger 1\n1->2 trigger 1 size 5\ntrigger id 1 oneshot\n",
                "matrix.cm:4: trigger 1 is fired at host 0, but starts a connection at host 1",
            ),
            (
                "Connections 1\nTriggers 1\n0->1 trigger 1 size 5 send_done_trigger 1\ntrigger id 1 oneshot\n",
                "matrix.cm: connections wait for each other in a circle",
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
