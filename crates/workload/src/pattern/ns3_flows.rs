//! Flow lists of the HPCC and ConWeave ns-3 simulators.

use std::path::PathBuf;

use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flows::Flows;
use super::lines::Lines;
use crate::WorkloadError;
use crate::plan::{Plan, Setting};

/// A flow file of the HPCC and ConWeave ns-3 simulators: the number of flows, then one line
/// `SRC DST PRIORITY PORT BYTES START` per flow, with the start in seconds. Priority and port are read and not used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ns3Flows {
    /// The file; relative names start from the scenario's folder.
    pub file: PathBuf,
}

impl Ns3Flows {
    pub(super) fn lay(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let file = setting.context.file(&self.file);
        let mut flows = Flows::new(setting, &file);
        let mut lines = Lines::open(&file)?;
        let announced = match lines.next()? {
            Some((line, text)) => text.parse::<u64>().map_err(|_| {
                WorkloadError::line(&file, line, format!("expected the number of flows, found \"{text}\""))
            })?,
            None => return Err(WorkloadError::file(&file, "expected the number of flows, found nothing")),
        };
        while let Some((line, text)) = lines.next()? {
            let fail = |problem: String| WorkloadError::line(&file, line, problem);
            let words: Vec<&str> = text.split_whitespace().collect();
            let [src, dst, _priority, _port, bytes, start] = words[..] else {
                return Err(fail(format!("expected SRC DST PRIORITY PORT BYTES START, found \"{text}\"")));
            };
            let number = |name: &str, word: &str| {
                word.parse::<u64>().map_err(|_| fail(format!("{name}: expected a number, found \"{word}\"")))
            };
            let time = format!("{start}s").parse::<Time>();
            let time = time.map_err(|_| {
                fail(format!("start: expected seconds with at most 12 decimals, found \"{start}\""))
            })?;
            flows.add(
                line,
                number("src", src)?,
                number("dst", dst)?,
                Bytes(number("bytes", bytes)?),
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

    #[test]
    fn mistakes_name_file_and_line() {
        for (text, expected) in [
            ("", "flows.txt: expected the number of flows"),
            ("x\n", "flows.txt:1: expected the number of flows"),
            ("2\n0 1 3 100 5 0\n", "flows.txt: announces 2 flows, but holds 1"),
            ("1\n0 1 3 100 5\n", "flows.txt:2: expected SRC DST"),
            ("1\n\n0 1 3 100 5 -1\n", "flows.txt:3: start: expected seconds"),
            ("1\n0 y 3 100 5 0\n", "flows.txt:2: dst: expected a number"),
            ("1\n0 8 3 100 5 0\n", "flows.txt:2: dst: expected a host"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
