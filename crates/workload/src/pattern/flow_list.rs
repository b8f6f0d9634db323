//! An explicit list of flows from a file.

use std::path::{Path, PathBuf};

use netloom_topology::HostId;
use netloom_units::{Bytes, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::WorkloadError;
use crate::plan::{HostWork, Message, Plan, Setting};

/// Flows listed in a CSV file with a header line and the columns `src`, `dst` (hosts), `bytes` (number or size such
/// as `64KiB`) and `start` (time such as `10us`) or `start_ps` (picoseconds). Other columns are ignored, lines that start with `#` are comments.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowList {
    /// The file; relative names start from the scenario's folder.
    pub file: PathBuf,
}

impl FlowList {
    pub(super) fn lay(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let file = setting.context.file(&self.file);
        let mut flows = Flows::new(setting, &file);
        read_csv(&file, &mut flows)?;
        Ok(flows.plan())
    }
}

/// Collects checked flows; ranks are mapped to hosts by the placement.
pub(super) struct Flows<'a> {
    setting: &'a Setting<'a>,
    file: &'a Path,
    hosts: Vec<Vec<Message>>,
    count: u64,
}

impl<'a> Flows<'a> {
    pub(super) fn new(setting: &'a Setting<'a>, file: &'a Path) -> Self {
        Flows { setting, file, hosts: vec![Vec::new(); setting.network.hosts() as usize], count: 0 }
    }

    /// Adds the flow that stands in a line of the file.
    pub(super) fn add(
        &mut self,
        line: u64,
        src: u64,
        dst: u64,
        bytes: Bytes,
        start: Time,
    ) -> Result<(), WorkloadError> {
        let fail = |problem: String| WorkloadError::line(self.file, line, problem);
        let ranks = self.setting.ranks();
        let host = |name: &str, rank: u64| -> Result<HostId, WorkloadError> {
            let found = usize::try_from(rank).ok().and_then(|rank| self.setting.placed.get(rank));
            found
                .copied()
                .ok_or_else(|| fail(format!("{name}: expected a host from 0 to {}, found {rank}", ranks - 1)))
        };
        let (src_host, dst) = (host("src", src)?, host("dst", dst)?);
        if src_host == dst {
            return Err(fail(format!("src and dst are the same host, {src}")));
        }
        if bytes == Bytes(0) {
            return Err(fail("bytes: expected at least 1, found 0".into()));
        }
        let start = Time(
            start
                .0
                .checked_add(self.setting.first_start(src_host).0)
                .ok_or_else(|| fail(format!("start: {start} is beyond the end of time")))?,
        );
        self.hosts[src_host as usize].push(Message { dst, bytes, start });
        self.count += 1;
        Ok(())
    }

    /// The plan, every host's flows by start and, among equals, in the order of the file.
    pub(super) fn plan(self) -> Plan {
        let by_start = |mut flows: Vec<Message>| {
            flows.sort_by_key(|message| message.start);
            HostWork::list(flows)
        };
        Plan { hosts: self.hosts.into_iter().map(by_start).collect(), total_messages: Some(self.count) }
    }
}

fn read_csv(file: &Path, flows: &mut Flows) -> Result<(), WorkloadError> {
    let reader =
        std::fs::File::open(file).map_err(|source| WorkloadError::Read { file: file.to_owned(), source })?;
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_reader(reader);
    let csv_error = |error: csv::Error| match error.position().map(csv::Position::line) {
        Some(line) => WorkloadError::line(file, line, error),
        None => WorkloadError::file(file, error),
    };
    let header = reader.headers().map_err(csv_error)?.clone();
    let column = |name: &str| header.iter().position(|h| h == name);
    let required = |name: &str| {
        let found = header.iter().collect::<Vec<_>>().join(", ");
        column(name).ok_or_else(|| {
            WorkloadError::line(
                file,
                1,
                format!("expected a header line with a column `{name}`, found: {found}"),
            )
        })
    };
    let (src, dst, bytes) = (required("src")?, required("dst")?, required("bytes")?);
    let (start, in_ps) = match column("start_ps") {
        Some(column) => (column, true),
        None => (required("start")?, false),
    };
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(csv_error)? {
        let line = record.position().map_or(0, csv::Position::line);
        let fail = |column: usize, expected: &str| {
            let problem = format!("{}: expected {expected}, found \"{}\"", &header[column], &record[column]);
            WorkloadError::line(file, line, problem)
        };
        let host = |column: usize| record[column].parse().map_err(|_| fail(column, "a host number"));
        let size = record[bytes].parse::<u64>().map(Bytes).or_else(|_| record[bytes].parse::<Bytes>());
        let size = size.map_err(|_| fail(bytes, "a number of bytes or a size such as \"64KiB\""))?;
        let start = if in_ps {
            Time(record[start].parse().map_err(|_| fail(start, "a whole number of picoseconds"))?)
        } else {
            record[start].parse().map_err(|_| fail(start, "a time such as \"10us\""))?
        };
        flows.add(line, host(src)?, host(dst)?, size, start)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Pattern, Workload};

    fn read(text: &str) -> Result<Plan, WorkloadError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("flows.csv");
        std::fs::write(&file, text).unwrap();
        plan(Workload::new(Pattern::FlowList(FlowList { file })), &network(8, 2), 1)
    }

    #[test]
    fn flows_start_in_order_of_time() {
        let mut plan =
            read("# two flows\nsrc, dst, bytes, start\n3,1,64KiB,2us\n3,2,1000,1us\n0,7,1,0s\n").unwrap();
        assert_eq!(plan.total_messages, Some(3));
        let message = |dst, bytes, start| Message { dst, bytes: Bytes(bytes), start: Time::from_us(start) };
        let expected = [(0, message(7, 1, 0)), (3, message(2, 1000, 1)), (3, message(1, 65536, 2))];
        assert_eq!(timed(&mut plan), expected);
    }

    #[test]
    fn picoseconds_are_a_start_too() {
        let mut plan = read("start_ps,src,dst,bytes,fct\n17,0,1,9,5\n").unwrap();
        assert_eq!(plan.hosts[0].next_timed().unwrap().start, Time(17));
    }

    #[test]
    fn mistakes_name_file_and_line() {
        for (text, expected) in [
            ("src,dst,bytes\n", "flows.csv:1: expected a header line with a column `start`"),
            (
                "src,dst,bytes,start\n0,1,1,0s\n0,8,1,0s\n",
                "flows.csv:3: dst: expected a host from 0 to 7, found 8",
            ),
            ("src,dst,bytes,start\n4,4,1,0s\n", "flows.csv:2: src and dst are the same host, 4"),
            ("src,dst,bytes,start\n4,5,0,0s\n", "flows.csv:2: bytes: expected at least 1"),
            ("src,dst,bytes,start\n4,5,x,0s\n", "flows.csv:2: bytes: expected a number of bytes"),
            ("src,dst,bytes,start\n4,5,1,10\n", "flows.csv:2: start: expected a time"),
            ("src,dst,bytes,start\n4,5,1\n", "flows.csv:2: "),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let missing = FlowList { file: "/nowhere/flows.csv".into() };
        let error =
            plan(Workload::new(Pattern::FlowList(missing)), &network(8, 2), 1).unwrap_err().to_string();
        assert!(error.contains("/nowhere/flows.csv"), "{error}");
    }
}
