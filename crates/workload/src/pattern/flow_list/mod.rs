//! An explicit list of flows from a file.

mod csv;
mod graphml;
mod parquet;

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::flows::Flows;
use crate::WorkloadError;
use crate::plan::{Plan, Setting};

/// Flows listed in a CSV (`.csv`), Parquet (`.parquet`) or GraphML (`.graphml`) file with the columns `src`, `dst` (hosts, numbered from 0),
/// `bytes`, and `start_ps` (picoseconds). Without a start the list is a traffic matrix: all begins at once, entries of 0 bytes send nothing. In CSV,
/// which begins with a header line, sizes such as `64KiB`, a column `start` with times such as `10us`, and hosts by their names (those of the
/// network's file; `h3` in networks without one) are fine too, and lines that start with `#` are comments. Other columns are ignored, so the `flows.parquet` of an
/// outcome is a flow list. GraphML has a directed edge for each flow, between nodes that are called by numbers or names, with `bytes` and perhaps `start_ps` as its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowList {
    /// The file; relative names start from the scenario's folder.
    pub file: PathBuf,
}

impl FlowList {
    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let file = setting.context.file(&self.file);
        let mut flows = Flows::new(setting, &file);
        match file.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => csv::read(&file, &mut flows)?,
            Some("parquet") => parquet::read(&file, &mut flows)?,
            Some("graphml") => graphml::read(&file, &mut flows)?,
            _ => {
                let expected = "a name that ends in .csv, .parquet or .graphml";
                return Err(WorkloadError::parameter("file", expected, file.display()));
            }
        }
        Ok(flows.plan())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan, timed};
    use crate::{Message, Pattern, Workload};
    use netloom_parquet::{Field, Writer};
    use netloom_units::{Bytes, Time};

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
        let message = |dst, bytes, start| Message::new(dst, Bytes(bytes), Time::from_us(start));
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
            ("src,dst,start\n", "flows.csv:1: expected a header line with a column `bytes`"),
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

    #[test]
    fn without_starts_it_is_a_traffic_matrix() {
        let expected =
            [(0, Message::new(1, Bytes(5), Time::ZERO)), (2, Message::new(1, Bytes(7), Time::ZERO))];
        assert_eq!(timed(&mut read("src,dst,bytes\n2,1,7\n0,0,0\n0,1,5\n").unwrap()), expected);
        let columns = [
            ("src", Signed([2, 0])),
            ("dst", Signed([1, 1])),
            ("bytes", Unsigned([7, 5])),
            ("colour", Signed([1, 2])),
        ];
        assert_eq!(timed(&mut read_parquet(columns).unwrap()), expected);
        assert_eq!(timed(&mut read_graphml(GRAPHML).unwrap()), expected);
        // By the names that outcomes and exports have for the hosts of any network.
        assert_eq!(timed(&mut read("src,dst,bytes\nh2,h1,7\n0,h1,5\n").unwrap()), expected);
        let named = GRAPHML.replace("source=\"2\"", "source=\"h2\"");
        assert_eq!(timed(&mut read_graphml(&named).unwrap()), expected);
        let started = GRAPHML
            .replace("<data key=\"d0\">5</data>", "<data key=\"d0\">5</data><data key=\"start_ps\">9</data>");
        assert_eq!(timed(&mut read_graphml(&started).unwrap())[0].1.start, Time(9));
    }

    /// As NetworkX writes it.
    const GRAPHML: &str = "<graphml xmlns=\"http://graphml.graphdrawing.org/xmlns\">
<key id=\"d0\" for=\"edge\" attr.name=\"bytes\" attr.type=\"long\" />
<graph edgedefault=\"directed\">
<node id=\"0\" /><node id=\"1\" /><node id=\"2\" />
<edge source=\"2\" target=\"1\"><data key=\"d0\">7</data></edge>
<edge source=\"0\" target=\"1\"><data key=\"d0\">5</data></edge>
<edge source=\"0\" target=\"0\"><data key=\"d0\">0</data></edge>
</graph></graphml>";

    fn read_graphml(text: &str) -> Result<Plan, WorkloadError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("matrix.graphml");
        std::fs::write(&file, text).unwrap();
        plan(Workload::new(Pattern::FlowList(FlowList { file })), &network(8, 2), 1)
    }

    #[test]
    fn mistakes_in_graphml_name_their_line() {
        for (from, to, expected) in [
            ("\"directed\"", "\"undirected\"", "matrix.graphml:3: expected a directed graph"),
            (">7<", ">x<", "matrix.graphml:5: bytes: expected a number of bytes"),
            ("target=\"1\"", "target=\"8\"", "matrix.graphml:5: dst: expected a host from 0 to 7, found 8"),
            (
                "target=\"1\"",
                "target=\"h8\"",
                "matrix.graphml:5: target: expected a number, or a host's name such as h0, found \"h8\"",
            ),
            (
                "target=\"1\"",
                "target=\"s0\"",
                "matrix.graphml:5: target: expected a host, found the switch \"s0\"",
            ),
            ("target=\"1\"", "", "matrix.graphml:5: edge without target"),
            ("\"bytes\"", "\"weight\"", "matrix.graphml:5: edge without an attribute `bytes`"),
            ("</graphml>", "", "malformed XML"),
            ("graph edge", "grap edge", "malformed XML"),
        ] {
            let error = read_graphml(&GRAPHML.replacen(from, to, 1)).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}\n{error}");
        }
    }

    /// A column of two values.
    #[derive(Clone, Copy)]
    enum Cells {
        Unsigned([u32; 2]),
        Long([u64; 2]),
        Signed([i32; 2]),
        Float([f64; 2]),
        Holes([Option<i32>; 2]),
    }
    use Cells::{Float, Holes, Long, Signed, Unsigned};

    fn read_parquet(columns: [(&'static str, Cells); 4]) -> Result<Plan, WorkloadError> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("flows.parquet");
        let fields = columns.map(|(name, cells)| match cells {
            Unsigned(_) => Field::of::<u32>(name),
            Long(_) => Field::of::<u64>(name),
            Signed(_) => Field::of::<i32>(name),
            Float(_) => Field::of::<f64>(name),
            Holes(_) => Field::optional::<i32>(name),
        });
        let mut writer = Writer::new(std::fs::File::create(&file).unwrap(), &fields).unwrap();
        let mut group = writer.row_group().unwrap();
        for (_, cells) in columns {
            match cells {
                Unsigned(cells) => group.column(cells).unwrap(),
                Long(cells) => group.column(cells).unwrap(),
                Signed(cells) => group.column(cells).unwrap(),
                Float(cells) => group.column(cells).unwrap(),
                Holes(cells) => group.optional_column(cells).unwrap(),
            }
        }
        group.close().unwrap();
        writer.close().unwrap();
        plan(Workload::new(Pattern::FlowList(FlowList { file })), &network(8, 2), 1)
    }

    /// Columns of integer types that pandas and the outcome's tables use.
    fn parquet_columns() -> [(&'static str, Cells); 4] {
        [
            ("dst", Unsigned([1, 2])),
            ("src", Signed([0, 7])),
            ("start_ps", Long([5, 6])),
            ("bytes", Signed([100, 200])),
        ]
    }

    #[test]
    fn parquet_holds_the_same_columns() {
        let message = |dst, bytes, start| Message::new(dst, Bytes(bytes), Time(start));
        let expected = [(0, message(1, 100, 5)), (7, message(2, 200, 6))];
        assert_eq!(timed(&mut read_parquet(parquet_columns()).unwrap()), expected);
    }

    #[test]
    fn mistakes_in_parquet_name_column_or_row() {
        for (column, name, cells, expected) in [
            (0, "dest", Signed([1, 2]), "expected a column `dst`, found: dest, src"),
            (1, "src", Float([0.0, 7.0]), "src: expected a column of integers"),
            (1, "src", Holes([Some(0), None]), "flows.parquet:2: src: expected a number"),
            (1, "src", Signed([0, 2]), "flows.parquet:2: src and dst are the same host"),
            (3, "bytes", Signed([1, -1]), "flows.parquet:2: bytes: expected at least 0, found -1"),
        ] {
            let mut columns = parquet_columns();
            columns[column] = (name, cells);
            let error = read_parquet(columns).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
