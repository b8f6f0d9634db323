//! Flow lists of the HPCC and ConWeave ns-3 simulators.

use std::path::PathBuf;

use netloom_units::names::shorten;
use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flows::{Flows, Speaks};
use super::lines::Lines;
use crate::WorkloadError;
use crate::plan::{Plan, Setting};

/// A flow file of the HPCC and ConWeave ns-3 simulators: the number of flows, then one line
/// `SRC DST PRIORITY [PORT] BYTES START` per flow, with the start in seconds; HPCC writes a port, ConWeave writes none.
/// Priority and port are read and not used. A size of 0 is one byte, as in ConWeave's. Hosts are named by the ids of an `ns3-topology`, or by any other file's names;
/// on a generated network they are numbered from 0. As in ns-3, the number of flows is that of the first line; everything after them is skipped, even
/// if it is more flows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ns3Flows {
    /// The file; relative names start from the scenario's folder.
    pub file: PathBuf,
}

impl Ns3Flows {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let file = setting.context.file(&self.file);
        let mut flows = Flows::new(setting, &file);
        let mut lines = Lines::open(&file)?;
        let announced = match lines.next()? {
            Some((line, text)) => text.parse::<u64>().map_err(|_| {
                WorkloadError::line(&file, line, format!("expected the number of flows, found \"{text}\""))
            })?,
            None => return Err(WorkloadError::file(&file, "expected the number of flows, found nothing")),
        };
        while flows.count() < announced
            && let Some((line, text)) = lines.next()?
        {
            let fail = |problem: String| WorkloadError::line(&file, line, problem);
            let words: Vec<&str> = text.split_whitespace().collect();
            let ([src, dst, _priority, bytes, start] | [src, dst, _priority, _, bytes, start]) = words[..]
            else {
                let expected = "expected SRC DST PRIORITY [PORT] BYTES START";
                return Err(fail(format!("{expected}, found \"{}\"", shorten(text))));
            };
            let number = |name: &str, word: &str| {
                let problem = || fail(format!("{name}: expected a number, found \"{}\"", shorten(word)));
                word.parse::<u64>().map_err(|_| problem())
            };
            let time = format!("{start}s").parse::<Time>();
            let time = time.map_err(|_| {
                fail(format!("start: expected seconds with at most 12 decimals, found \"{start}\""))
            })?;
            flows.add(
                line,
                flows.rank(line, "src", src, Speaks::InNames)?,
                flows.rank(line, "dst", dst, Speaks::InNames)?,
                Bytes(number("bytes", bytes)?.max(1)),
                time,
            )?;
        }
        if flows.count() != announced {
            let problem = format!("announces {announced} flows, but holds {}", flows.count());
            return Err(WorkloadError::file(&file, problem));
        }
        Ok(flows.plan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Message, Pattern, Workload};

    fn read(text: &str) -> Result<Plan, WorkloadError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("flows.txt");
        std::fs::write(&file, text).unwrap();
        plan(Workload::new(Pattern::Ns3Flows(Ns3Flows { file })), &network(8, 2), 1)
    }

    #[test]
    fn seconds_become_picoseconds() {
        let mut plan = read("2\n3 5 3 100 1048576 2.000000123\n3 1 3 100 7 2\n").unwrap();
        let message = |dst, bytes, start| Message::new(dst, Bytes(bytes), start);
        let expected =
            [(3, message(1, 7, Time::from_ms(2000))), (3, message(5, 1 << 20, Time::from_ns(2_000_000_123)))];
        assert_eq!(timed(&mut plan), expected);
    }

    /// As ConWeave's generator writes them: no port, and an explanation at the end.
    #[test]
    fn a_flow_has_a_port_or_none_and_anything_may_follow() {
        let text = "2\n3 5 3 1048576 2.000000123\n3 1 3 100 7 2\n";
        for more in ["", "\nFirst line: flow #\nsrc dst priority size start\n", "0 1 3 100 9 2\n"] {
            let mut plan = read(&format!("{text}{more}")).unwrap();
            let sent: Vec<_> = timed(&mut plan).iter().map(|(_, m)| (m.dst, m.bytes.0)).collect();
            assert_eq!(sent, [(1, 7), (5, 1 << 20)]);
        }
    }

    #[test]
    fn an_empty_flow_is_one_byte() {
        let sent = timed(&mut read("1\n3 5 3 0 2\n").unwrap());
        assert_eq!(sent, [(3, Message::new(5, Bytes(1), Time::from_ms(2000)))]);
    }

    /// Hosts 10, 20 and 30 of a topology whose switch is number 15.
    #[test]
    fn hosts_are_those_of_the_topologys_file() {
        let folder = tempfile::tempdir().unwrap();
        let (net, file) = (folder.path().join("net.txt"), folder.path().join("flows.txt"));
        std::fs::write(&net, "10 15\n20 15\n30 15\n").unwrap();
        let topology = netloom_topology::Topology::EdgeList(netloom_topology::EdgeList::new(net));
        let context = netloom_topology::BuildContext { seed: 1, base_dir: folder.path() };
        let network = topology.build(&context).unwrap();
        let read = |text: &str| {
            std::fs::write(&file, text).unwrap();
            plan(Workload::new(Pattern::Ns3Flows(Ns3Flows { file: file.clone() })), &network, 1)
        };
        let sent = timed(&mut read("1\n30 10 3 9 0\n").unwrap());
        assert_eq!(sent, [(2, Message::new(0, Bytes(9), Time::ZERO))]);
        let error = read("1\n30 15 3 9 0\n").unwrap_err().to_string();
        assert!(error.contains("flows.txt:2: dst: expected a host, found the switch \"15\""), "{error}");
        let error = read("1\n30 2 3 9 0\n").unwrap_err().to_string();
        assert!(
            error.contains("flows.txt:2: dst: expected a node of the network's file, found \"2\""),
            "{error}"
        );
    }

    #[test]
    fn mistakes_name_file_and_line() {
        for (text, expected) in [
            ("", "flows.txt: expected the number of flows"),
            ("x\n", "flows.txt:1: expected the number of flows"),
            ("2\n0 1 3 100 5 0\n", "flows.txt: announces 2 flows, but holds 1"),
            ("1\n0 1 3 5\n", "flows.txt:2: expected SRC DST"),
            ("1\n\n0 1 3 100 5 -1\n", "flows.txt:3: start: expected seconds"),
            ("1\n0 y 3 100 5 0\n", "flows.txt:2: dst: expected a number"),
            ("1\n0 8 3 100 5 0\n", "flows.txt:2: dst: expected a host"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
