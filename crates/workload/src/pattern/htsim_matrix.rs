//! Flow lists of htsim.

use std::path::PathBuf;

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flows::Flows;
use super::lines::Lines;
use crate::WorkloadError;
use crate::plan::{Plan, Setting};

/// A connection matrix of htsim (`.cm`): `Nodes N`, `Connections C`, then lines such as `0->5 id 1 start 0 size 2000000`.
/// `id` and `prio` are read and not used. Triggers and failures are refused: flows start by the clock here, and links
/// fail where the scenario says so.
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

impl HtsimMatrix {
    pub(super) fn lay(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let file = setting.context.file(&self.file);
        let mut flows = Flows::new(setting, &file);
        let mut lines = Lines::open(&file)?;
        let mut connections = None;
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
                "Connections" => connections = Some(counted()?),
                "Triggers" | "Failures" if counted()? == 0 => {}
                "Triggers" | "trigger" => {
                    return Err(fail("triggers are not supported; every connection needs a `start`".into()));
                }
                "Failures" | "failure" => {
                    return Err(fail(
                        "failures are not read from matrices; give them in the scenario".into(),
                    ));
                }
                _ => {
                    let (src, dst, start, bytes) = self.connection(&words).map_err(fail)?;
                    flows.add(line, src, dst, bytes, start)?;
                }
            }
        }
        match connections {
            Some(announced) if announced == flows.count() => Ok(flows.plan()),
            Some(announced) => {
                let problem = format!("`Connections {announced}`, but the file holds {}", flows.count());
                Err(WorkloadError::file(&file, problem))
            }
            None => Err(WorkloadError::file(&file, "expected a line `Connections C`, found none")),
        }
    }

    /// Reads `SRC->DST KEY VALUE …`.
    fn connection(&self, words: &[&str]) -> Result<(u64, u64, Time, Bytes), String> {
        let pair =
            words[0].split_once("->").and_then(|(src, dst)| Some((src.parse().ok()?, dst.parse().ok()?)));
        let (src, dst) = pair.ok_or_else(|| format!("expected SRC->DST, found \"{}\"", words[0]))?;
        let (mut start, mut size) = (None, None);
        for pair in words[1..].chunks(2) {
            let &[key, value] = pair else {
                return Err(format!("expected a value after `{}`", pair[0]));
            };
            let wrong = |expected: &str| format!("{key}: expected {expected}, found \"{value}\"");
            match key {
                "start" => {
                    let unit = if self.start_unit == StartUnit::Us { "us" } else { "ps" };
                    let time = format!("{value}{unit}").parse::<Time>();
                    start = Some(time.map_err(|_| wrong(&format!("a time in {unit}, without its unit")))?);
                }
                "size" => size = Some(value.parse().map(Bytes).map_err(|_| wrong("a number of bytes"))?),
                "id" | "prio" => {}
                "trigger" | "send_done_trigger" | "recv_done_trigger" => {
                    return Err("triggers are not supported; every connection needs a `start`".into());
                }
                _ => return Err(format!("expected start, size, id or prio, found `{key}`")),
            }
        }
        Ok((
            src,
            dst,
            start.ok_or("expected `start T`, found none")?,
            size.ok_or("expected `size BYTES`, found none")?,
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
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

    #[test]
    fn what_cannot_be_replayed_is_refused_with_its_line() {
        for (text, expected) in [
            ("Nodes 8\nConnections 1\n0->1 trigger 1 size 5\n", "matrix.cm:3: triggers are not supported"),
            (
                "Connections 1\n0->1 start 0 size 5 send_done_trigger 2\n",
                "matrix.cm:2: triggers are not supported",
            ),
            ("Nodes 8\nConnections 0\nTriggers 1\n", "matrix.cm:3: triggers are not supported"),
            ("Nodes 8\nConnections 0\nFailures 1\n", "matrix.cm:3: failures are not read"),
            ("Nodes 9\n", "matrix.cm:1: the matrix has 9 nodes, the network 8 hosts"),
            ("Connections 2\n0->1 start 0 size 5\n", "matrix.cm: `Connections 2`, but the file holds 1"),
            ("0->1 start 0 size 5\n", "matrix.cm: expected a line `Connections C`"),
            ("Connections x\n", "matrix.cm:1: expected a count"),
            ("Connections 1\n0-1 start 0 size 5\n", "matrix.cm:2: expected SRC->DST"),
            ("Connections 1\n0->1 start 0\n", "matrix.cm:2: expected `size BYTES`"),
            ("Connections 1\n0->1 size 5\n", "matrix.cm:2: expected `start T`"),
            ("Connections 1\n0->1 start 0 size\n", "matrix.cm:2: expected a value after `size`"),
            ("Connections 1\n0->1 start 0.5 size 5\n", "matrix.cm:2: start: expected a time in ps"),
            (
                "Connections 1\n0->1 start 0 size 5 colour red\n",
                "matrix.cm:2: expected start, size, id or prio",
            ),
            ("Connections 1\n0->8 start 0 size 5\n", "matrix.cm:2: dst: expected a host from 0 to 7"),
        ] {
            let error = read(text, StartUnit::Ps).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        assert!(read("Connections 0\nTriggers 0\nFailures 0\n", StartUnit::Ps).is_ok());
    }
}
