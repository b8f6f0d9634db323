//! Execution traces of training, in the format of MLCommons Chakra.

mod groups;
mod rank;

use std::fmt;
use std::path::PathBuf;

use netloom_astra::{Series, chakra};
use netloom_units::memory::Meter;
use netloom_units::{Time, narrow};
use schemars::JsonSchema;
use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use self::groups::Groups;
use self::rank::Trace;
use crate::WorkloadError;
use crate::plan::{Plan, Setting};
use crate::program::{CheckedRank, Program, check};

/// Execution traces in the format of MLCommons Chakra, one file per rank: protobuf as ASTRA-sim reads it (`.et`), the JSON that `chakra_jsonizer` writes or Chakra's feeder
/// reads, either compressed by gzip. A node starts when all that it depends on is done. Sends and receives go to `comm_dst`, come from `comm_src`, with `comm_size` bytes and `comm_tag`.
/// Computation takes its `duration_micros`, one node at a time; what has `is_cpu_op`, and memory and storage, does so beside it.
/// Collectives are those of all ranks or of the process group `pg_name`, in the same order at each member: all-reduce, reduce-scatter and
/// all-gather around a ring, broadcast by a binomial tree, all-to-all by pairs, a dissemination barrier; `comm_size` is what each rank
/// brings (all-to-all: for all others together). Traces of PyTorch run as `chakra_converter` makes them: process groups come from metadata nodes, a collective without `comm_type` is what its kernel is
/// called, launches take their time on the CPU, and callers that the converter has left out count as done, with a warning.
///
/// This is not the schedule of ASTRA-sim, which does one communication operation at a time, in chunks, with delays and reductions: `astra-sim` has that.
///
/// A program, as `collective` describes it. A rank may be in several process groups. Up to 254 process groups are groups of traffic, too: the flows of
/// their collectives are reported apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Chakra {
    /// The files, in the order of the ranks, or one name for all: a prefix (rank r has `PREFIX.r.et`, `.et.gz`, `.json` or `.json.gz`), a pattern with `%d` for the rank (`r%03d/trace.et`), or with `*` and
    /// `?` in the name of the file, whose last number is the rank. Relative names start from the scenario's folder.
    pub files: TraceFiles,
    /// Who is in which process group: a JSON file of the ranks by the name of the group (`{ "1": [0, 1], "2": [2, 3] }`), ASTRA-sim's
    /// communicator groups. A collective without a group, and one of group `0`, is that of all ranks, and so is a group without ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub groups: Option<PathBuf>,
    /// CPU time of every send and receive.
    #[serde(default)]
    pub overhead: Time,
}

/// The traces of all ranks.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum TraceFiles {
    /// One by one.
    Listed(Vec<PathBuf>),
    /// By what their names have in common.
    Named(PathBuf),
}

impl<'de> Deserialize<'de> for TraceFiles {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;
        impl<'de> Visitor<'de> for Reader {
            type Value = TraceFiles;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(
                    f,
                    "a list of files, or their common name such as \"traces/all_reduce\" or \"traces/rank%d.et\""
                )
            }

            fn visit_str<E: de::Error>(self, name: &str) -> Result<TraceFiles, E> {
                Ok(TraceFiles::Named(name.into()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, files: A) -> Result<TraceFiles, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(files)).map(TraceFiles::Listed)
            }
        }
        deserializer.deserialize_any(Reader)
    }
}

impl Chakra {
    /// The files that it reads, as far as they are there.
    pub fn all_files(&self) -> Vec<PathBuf> {
        let traces = match &self.files {
            TraceFiles::Listed(files) => files.clone(),
            TraceFiles::Named(name) => {
                Series::new(name).map(|series| series.files().collect()).unwrap_or_default()
            }
        };
        traces.into_iter().chain(self.groups.clone()).collect()
    }

    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        let files: Vec<PathBuf> = match &self.files {
            TraceFiles::Listed(files) => files.iter().map(|file| setting.context.file(file)).collect(),
            TraceFiles::Named(name) => {
                let series = Series::new(&setting.context.file(name))?;
                (0..series.ranks()?).map(|rank| series.file(rank)).collect()
            }
        };
        let (ranks, most) = (files.len() as u64, setting.ranks());
        if ranks == 0 || ranks > u64::from(most) {
            let expected = format!("1 to {most} files, one for each rank");
            return Err(WorkloadError::parameter("files", expected, ranks));
        }
        let ranks = narrow::<u32>(ranks);
        let mut memory = Meter::default();
        let mut built = Vec::with_capacity(files.len());
        let file = self.groups.as_ref().map(|file| setting.context.file(file));
        let mut groups = Groups::new(ranks, file.as_deref())?;
        let mut absent = Vec::new();
        for (rank, file) in (0..).zip(&files) {
            let trace = Trace::read(file, rank, ranks, &mut groups, &mut memory)?;
            absent.extend(trace.absent);
            let circle = |_| WorkloadError::file(file, "nodes wait for each other in a cycle");
            built.push(trace.builder.build().map_err(circle)?);
        }
        let names = groups.in_plan();
        if names.is_none() {
            built.iter_mut().for_each(CheckedRank::ungroup);
        }
        let program = check(built, 1, self.overhead).and_then(Program::ending);
        let program =
            program.map_err(|problem| WorkloadError::parameter("files", "traces that fit", problem))?;
        let plan = setting.run(program);
        let notes = chakra::note(&absent).into_iter().collect();
        Ok(Plan { groups: names.unwrap_or(plan.groups), notes, ..plan })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::{network, plan};
    use crate::program::testing::{Event, execute, sends};
    use crate::{Pattern, Workload};
    use netloom_astra::chakra::{Attribute, Node, NodeType, Value, Values};
    use netloom_units::Bytes;

    fn node(id: u64, kind: NodeType, waits: &[u64], attributes: &[(&str, u64)]) -> Node {
        let attribute = |&(name, value): &(&str, u64)| Attribute {
            name: name.to_owned(),
            // As the generators write them: now signed, now unsigned.
            value: Some(if value.is_multiple_of(2) {
                Value::Int64(value as i64)
            } else {
                Value::Uint64(value)
            }),
        };
        let (ctrl_deps, data_deps) = waits.split_at(waits.len() / 2);
        Node {
            id,
            name: format!("n{id}"),
            kind: kind.into(),
            ctrl_deps: ctrl_deps.to_vec(),
            data_deps: data_deps.to_vec(),
            duration_micros: 0,
            inputs: None,
            attr: attributes.iter().map(attribute).collect(),
        }
    }

    fn timed(micros: u64, node: Node) -> Node {
        Node { duration_micros: micros, ..node }
    }

    fn built(ranks: &[Vec<Node>]) -> Result<Plan, WorkloadError> {
        built_in_groups(ranks, None)
    }

    /// With a file of groups.
    fn built_in_groups(ranks: &[Vec<Node>], groups: Option<&str>) -> Result<Plan, WorkloadError> {
        let folder = tempfile::tempdir().unwrap();
        let groups = groups.map(|text| {
            let file = folder.path().join("groups.json");
            std::fs::write(&file, text).unwrap();
            file
        });
        let mut files = Vec::new();
        for (rank, nodes) in ranks.iter().enumerate() {
            files.push(folder.path().join(format!("trace.{rank}.et")));
            std::fs::write(&files[rank], chakra::encode(nodes)).unwrap();
        }
        let hosts = ranks.len() as u32;
        plan(
            Workload::new(Pattern::Chakra(Chakra {
                files: TraceFiles::Listed(files),
                groups,
                overhead: Time::ZERO,
            })),
            &network(hosts, hosts),
            1,
        )
    }

    #[test]
    fn nodes_follow_their_dependencies() {
        let send = |id, waits: &[u64], dst, size| {
            node(id, NodeType::CommSend, waits, &[("comm_dst", dst), ("comm_size", size), ("comm_tag", 7)])
        };
        let recv = |id, waits: &[u64], src| {
            node(id, NodeType::CommRecv, waits, &[("comm_src", src), ("comm_tag", 7), ("comm_size", 10)])
        };
        let ranks = [
            // Two computations one after the other, one on the CPU beside them.
            vec![
                node(1, NodeType::Metadata, &[], &[]),
                timed(30, node(2, NodeType::Comp, &[1], &[])),
                timed(20, node(3, NodeType::Comp, &[1], &[])),
                timed(40, node(4, NodeType::Comp, &[1], &[("is_cpu_op", 1)])),
                send(5, &[2, 3, 4], 1, 1000),
                recv(6, &[], 1),
            ],
            // Listed before what it waits for.
            vec![send(8, &[9], 0, 500), recv(9, &[], 0)],
        ];
        let plan = built(&ranks).unwrap();
        assert_eq!(plan.total_messages, Some(2));
        let at = Time::from_us(50);
        assert_eq!(sends(plan), (vec![(at, 0, 1, Bytes(1000)), (at, 1, 0, Bytes(500))], at));
    }

    #[test]
    fn collectives_send_what_their_algorithms_do() {
        for (kind, bytes, messages) in [
            // All-reduce of 4000 bytes among four: six steps of a quarter.
            (0, 6 * 1000, 6),
            (2, 3 * 4000, 3),
            (6, 3 * 1000, 3),
            (7, 3 * 1000, 3),
            (9, 2, 2),
        ] {
            let coll = |id, waits: &[u64]| {
                node(id, NodeType::CommColl, waits, &[("comm_type", kind), ("comm_size", 4000)])
            };
            let ranks: Vec<Vec<Node>> = (0..4)
                .map(|_| vec![coll(1, &[]), timed(3, node(2, NodeType::Comp, &[1], &[])), coll(3, &[2])])
                .collect();
            let (sent, end) = sends(built(&ranks).unwrap());
            for rank in 0..4 {
                let of: Vec<u64> = sent.iter().filter(|s| s.1 == rank).map(|s| s.3.0).collect();
                assert_eq!((of.len(), of.iter().sum::<u64>()), (2 * messages, 2 * bytes), "{kind}");
            }
            assert_eq!(end, Time::from_us(3));
        }
    }

    /// An all-reduce of a process group.
    fn grouped(id: u64, group: &str, size: u64) -> Node {
        let mut node = node(id, NodeType::CommColl, &[], &[("comm_type", 0), ("comm_size", size)]);
        node.attr.push(Attribute { name: "pg_name".to_owned(), value: Some(Value::Text(group.to_owned())) });
        node
    }

    /// Tensor parallelism along the pairs 0-1 and 2-3, data parallelism across them, and one collective of all.
    #[test]
    fn groups_have_collectives_of_their_own() {
        let groups = r#"{ "tp0": [0, 1], "tp1": [3, 2], "dp0": [0, 2], "dp1": [1, 3], "alone": [3] }"#;
        let ranks: Vec<Vec<Node>> = (0..4u64)
            .map(|rank| {
                // The groups' collectives come in another order at every second rank.
                let mut nodes = vec![
                    grouped(1, &format!("tp{}", rank / 2), 800),
                    grouped(2, &format!("dp{}", rank % 2), 80),
                ];
                if rank % 2 == 1 {
                    nodes.reverse();
                }
                nodes.push(grouped(3, "0", 4));
                if rank == 3 {
                    nodes.push(grouped(4, "alone", 1 << 40));
                }
                nodes
            })
            .collect();
        let mut plan = built_in_groups(&ranks, Some(groups)).unwrap();
        // In the order of the names.
        assert_eq!(plan.groups, ["all", "alone", "dp0", "dp1", "tp0", "tp1"]);
        let infos: Vec<_> =
            plan.jobs[0].collectives().iter().map(|one| (&*one.group, one.bytes.0, one.parts)).collect();
        assert_eq!(infos, [("tp0", 800, 2), ("dp0", 80, 2), ("0", 4, 4), ("dp1", 80, 2), ("tp1", 800, 2)]);
        let mut by_group = [0; 6];
        execute(&mut plan, 1, Time(10), |_, _, event| {
            if let Event::Sent { bytes, group, .. } = event {
                by_group[usize::from(group)] += bytes.0;
            }
        });
        assert_eq!(by_group, [4 * 6, 0, 160, 160, 1600, 1600]);
        let (sent, _) = sends(built_in_groups(&ranks, Some(groups)).unwrap());
        let between = |a: u32, b: u32| -> u64 {
            sent.iter()
                .filter(|&&(_, src, dst, _)| (src, dst) == (a, b))
                .map(|&(_, _, _, bytes)| bytes.0)
                .sum()
        };
        // Of two ranks a ring sends half the size twice each way; of four, a quarter six times to the next.
        for (a, b, bytes) in [
            (0, 1, 800 + 6),
            (1, 0, 800),
            (2, 3, 800 + 6),
            (3, 2, 800),
            (0, 2, 80),
            (3, 1, 80),
            (1, 2, 6),
            (0, 3, 0),
        ] {
            assert_eq!(between(a, b), bytes, "{a} to {b}");
        }
    }

    /// PyTorch gives groups of different ranks the same name; they come with metadata, and a group without ranks is that of all.
    #[test]
    fn process_groups_come_from_metadata() {
        let ranks: Vec<Vec<Node>> = (0..4u32)
            .map(|rank| {
                let pair = [rank / 2 * 2, rank / 2 * 2 + 1];
                let list = format!(
                    "[{{\"pg_name\": \"1\", \"ranks\": {pair:?}}}, {{\"pg_name\": \"2\", \"ranks\": []}}]"
                );
                let values = Some(Values { values: format!("['{list}']") });
                let metadata = Node { inputs: values, ..node(9, NodeType::Metadata, &[], &[]) };
                // The metadata may come later in the file.
                vec![
                    grouped(1, "1", 800),
                    node(3, NodeType::Invalid, &[1], &[]),
                    metadata,
                    grouped(2, "2", 4),
                ]
            })
            .collect();
        let plan = built(&ranks).unwrap();
        assert_eq!(plan.groups, ["all", "1", "2", "1 (2)"]);
        let infos: Vec<_> =
            plan.jobs[0].collectives().iter().map(|one| (&*one.group, one.bytes.0, one.ranks)).collect();
        assert_eq!(infos, [("1", 800, 2), ("2", 4, 4), ("1", 800, 2)]);
        let (sent, _) = sends(plan);
        let between = |a: u32, b: u32| sent.iter().filter(|one| (one.1, one.2) == (a, b)).count();
        assert_eq!((between(0, 1), between(2, 3), between(1, 2)), (2 + 6, 2 + 6, 6));
    }

    #[test]
    fn traces_are_found_by_their_common_name() {
        let folder = tempfile::tempdir().unwrap();
        let nodes = vec![node(1, NodeType::CommColl, &[], &[("comm_type", 0), ("comm_size", 4000)])];
        for rank in 0..3 {
            std::fs::write(folder.path().join(format!("r{rank}.et")), chakra::encode(&nodes)).unwrap();
        }
        let build = |name: &str| {
            let files = TraceFiles::Named(folder.path().join(name));
            let pattern = Pattern::Chakra(Chakra { files, groups: None, overhead: Time::ZERO });
            plan(Workload::new(pattern), &network(4, 4), 1)
        };
        for name in ["r%d.et", "r?.et"] {
            assert_eq!(build(name).unwrap().total_messages, Some(3 * 4));
        }
        let error = build("r").unwrap_err().to_string();
        assert!(
            error.contains("r.0.et: expected the trace of rank 0: the name of traces is what"),
            "{error}"
        );
    }

    #[test]
    fn groups_that_make_no_sense_are_refused() {
        let ranks = [vec![grouped(1, "a", 8)], vec![grouped(1, "a", 8)], vec![]];
        assert!(built_in_groups(&ranks, Some(r#"{ "a": [1, 0], "0": [0, 1, 2] }"#)).is_ok());
        for (groups, expected) in [
            ("[]", "groups.json: expected a JSON object of ranks by group"),
            (r#"{ "a": 1 }"#, "groups.json: group \"a\": expected a list of ranks"),
            (r#"{ "a": [0, 3] }"#, "group \"a\": expected ranks from 0 to 2, found 3"),
            (r#"{ "a": [0, -1] }"#, "group \"a\": expected ranks from 0 to 2, found -1"),
            (r#"{ "a": [0, 0] }"#, "group \"a\": rank 0 is there twice"),
            (r#"{ "0": [0, 1] }"#, "group \"0\": expected another name: this one means all ranks"),
            (r#"{ "b": [0, 1] }"#, "node 1 \"n1\": pg_name: there is no group \"a\" (valid here: b)"),
            (
                r#"{ "a": [0, 2] }"#,
                "trace.1.et: node 1 \"n1\": pg_name: expected a group of rank 1, found \"a\"",
            ),
            (
                r#"{ "a": [0, 1, 2] }"#,
                "trace.2.et: collective 0 of group \"a\" of rank 0 has no counterpart here (0 of 1)",
            ),
        ] {
            let error = built_in_groups(&ranks, Some(groups)).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}\n{error}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_its_node() {
        let coll = |kind, extra: &[(&str, u64)]| {
            let attributes = [&[("comm_type", kind), ("comm_size", 8)], extra].concat();
            node(1, NodeType::CommColl, &[], &attributes)
        };
        let alone = |node| vec![vec![node], vec![]];
        let send = |dst| node(1, NodeType::CommSend, &[], &[("comm_dst", dst), ("comm_size", 8)]);
        for (ranks, expected) in [
            (alone(send(2)), "trace.0.et: node 1 \"n1\": comm_dst: expected a rank from 0 to 1, found 2"),
            (alone(send(0)), "comm_dst: the rank itself"),
            (alone(send(1)), "rank 1 does not receive 1 messages that rank 0 sends it"),
            (
                alone(node(1, NodeType::CommSend, &[], &[("comm_dst", 1)])),
                "expected an attribute `comm_size`",
            ),
            (
                alone(node(1, NodeType::Comp, &[5], &[])),
                "node 1 \"n1\": data_deps: there is no node 5 to wait for",
            ),
            (alone(node(1, NodeType::Comp, &[1], &[])), "trace.0.et: nodes wait for each other in a cycle"),
            (alone(node(1, NodeType::Comp, &[], &[("num_ops", 5)])), "expected `duration_micros`"),
            (alone(Node { kind: 77, ..send(1) }), "expected a type of node, found 77"),
            (
                alone(coll(0, &[("pg_name", 1)])),
                "trace.0.et: node 1 \"n1\": pg_name: there is no group \"1\" (`groups` names the file",
            ),
            (alone(coll(3, &[])), "comm_type: expected all-reduce (0)"),
            (
                alone(coll(0, &[])),
                "trace.1.et: collective 0 of rank 0 has no counterpart here (0 of 1): all ranks of a group",
            ),
            (
                vec![vec![coll(0, &[])], vec![coll(2, &[])]],
                "trace.1.et: node 1 \"n1\": collective 0 is not that of rank 0",
            ),
            (
                vec![vec![coll(2, &[])], vec![coll(0, &[])]],
                "trace.1.et: node 1 \"n1\": collective 0 is not that of rank 0",
            ),
            (vec![vec![send(1), send(1)], vec![]], "expected a number that no other node has"),
        ] {
            let error = built(&ranks).unwrap_err().to_string();
            assert!(error.contains(expected), "{expected}\n{error}");
        }
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.et");
        for bytes in [&b"\xff\xff"[..], b"\x05ab", b"\x00\x03abc"] {
            std::fs::write(&file, bytes).unwrap();
            let chakra =
                Chakra { files: TraceFiles::Listed(vec![file.clone()]), groups: None, overhead: Time::ZERO };
            let error =
                plan(Workload::new(Pattern::Chakra(chakra)), &network(2, 2), 1).unwrap_err().to_string();
            assert!(error.contains("x.et: no Chakra execution trace"), "{error}");
        }
    }
}
