//! The trace of one rank as operations of a program.

use std::collections::HashMap;
use std::path::Path;

use netloom_astra::chakra::{GlobalMetadata, Node, NodeType, Value};
use netloom_units::memory::{self, Meter};
use netloom_units::{Bytes, Time, narrow};
use prost::Message;

use super::groups::{Collective, Groups, Part};
use crate::WorkloadError;
use crate::pattern::collective::{Algorithm, Operation};
use crate::program::{Accept, MAX_OPS, RankBuilder};

/// Tags from here on are those of collective operations.
pub(super) const FIRST_COLLECTIVE: u32 = 1 << 31;

/// Calculations: on the accelerator, and beside it (operations of the CPU, memory and storage).
const BESIDE: u16 = 1;

/// Memory that a file takes while it is read, times its size.
const TIMES: u64 = 4;

/// Memory of a node beside its bytes in the file: an operation, its place, its dependencies.
const BYTES_PER_NODE: u64 = 256;

/// Memory of an operation of a collective: itself, its message, what it waits for.
const BYTES_PER_OPERATION: u64 = 96;

/// What is wrong with a node.
fn fail(file: &Path, node: &Node, problem: impl std::fmt::Display) -> WorkloadError {
    let name = netloom_units::names::shorten(&node.name);
    WorkloadError::file(file, format!("node {} \"{name}\": {problem}", node.id))
}

/// The trace of a rank among `ranks`.
pub(super) struct Trace<'a> {
    file: &'a Path,
    rank: u32,
    ranks: u32,
    groups: &'a mut Groups,
    memory: &'a mut Meter,
    pub(super) builder: RankBuilder,
    /// By node: the operations with which it begins, and those after which it is done.
    places: HashMap<u64, Ends>,
    /// Per node, in the order of the file: its number and those that it waits for.
    waits: Vec<(u64, Vec<u64>)>,
}

/// Where a node begins and ends; a collective in which a rank has nothing to do is an empty calculation.
struct Ends {
    first: u32,
    last: Vec<u32>,
}

impl<'a> Trace<'a> {
    /// Reads a whole file: a length before every message, first that of the metadata.
    pub(super) fn read(
        file: &'a Path,
        rank: u32,
        ranks: u32,
        groups: &'a mut Groups,
        memory: &'a mut Meter,
    ) -> Result<Self, WorkloadError> {
        let unreadable = |source| WorkloadError::Read { file: file.to_owned(), source };
        let bytes = memory::read_bytes(file, TIMES).map_err(unreadable)?;
        let mut rest = &bytes[..];
        let mut trace = Trace {
            file,
            rank,
            ranks,
            groups,
            memory,
            builder: RankBuilder::default(),
            places: HashMap::new(),
            waits: Vec::new(),
        };
        let malformed = |what: &str, error: &dyn std::fmt::Display| {
            WorkloadError::file(file, format!("no Chakra execution trace: {what}: {error}"))
        };
        GlobalMetadata::decode_length_delimited(&mut rest)
            .map_err(|error| malformed("its metadata", &error))?;
        while !rest.is_empty() {
            let count = trace.waits.len();
            let before = rest.len();
            let node = Node::decode_length_delimited(&mut rest)
                .map_err(|error| malformed(&format!("node {count} of the file"), &error))?;
            let bytes = BYTES_PER_NODE + (before - rest.len()) as u64;
            trace.memory.take(bytes).map_err(|error| WorkloadError::file(file, error))?;
            trace.add(node)?;
        }
        trace.groups.end(rank).map_err(|problem| WorkloadError::file(file, problem))?;
        trace.connect()?;
        Ok(trace)
    }

    fn fail(&self, node: &Node, problem: impl std::fmt::Display) -> WorkloadError {
        fail(self.file, node, problem)
    }

    fn add(&mut self, node: Node) -> Result<(), WorkloadError> {
        if self.builder.len() >= MAX_OPS / 2 {
            return Err(self.fail(&node, "more nodes than a rank may have"));
        }
        let ends = self.operations(&node)?;
        if self.places.insert(node.id, ends).is_some() {
            return Err(self.fail(&node, "there are two nodes of this number"));
        }
        let Node { id, ctrl_deps: mut waits, data_deps, .. } = node;
        waits.extend(data_deps);
        waits.sort_unstable();
        waits.dedup();
        self.waits.push((id, waits));
        Ok(())
    }

    /// The operations of a node.
    fn operations(&mut self, node: &Node) -> Result<Ends, WorkloadError> {
        let number = |name: &str| node.attribute(name).and_then(Value::whole);
        let needed = |name: &str| {
            number(name)
                .ok_or_else(|| self.fail(node, format!("expected an attribute `{name}`, a whole number")))
        };
        let other = |name: &str| match needed(name)? {
            other if other == u64::from(self.rank) => {
                Err(self.fail(node, format!("{name}: the rank itself")))
            }
            other if other < u64::from(self.ranks) => Ok(narrow::<u32>(other)),
            other => Err(self
                .fail(node, format!("{name}: expected a rank from 0 to {}, found {other}", self.ranks - 1))),
        };
        let tag = || match number("comm_tag").unwrap_or(0) {
            tag if tag < u64::from(FIRST_COLLECTIVE) => Ok(narrow::<u32>(tag)),
            tag => {
                Err(self.fail(node, format!("comm_tag: expected less than {FIRST_COLLECTIVE}, found {tag}")))
            }
        };
        let single = |op: u32| Ends { first: op, last: vec![op] };
        Ok(match NodeType::try_from(node.kind) {
            Ok(NodeType::CommSend) => {
                let (dst, size, tag) = (other("comm_dst")?, needed("comm_size")?, tag()?);
                single(self.builder.send(dst, Bytes(size.max(1)), tag))
            }
            Ok(NodeType::CommRecv) => {
                let (src, tag) = (other("comm_src")?, tag()?);
                single(self.builder.recv(Accept::Only(src), Accept::Only(tag)))
            }
            Ok(NodeType::CommColl) => {
                let group = ["pg_name", "comm_group"].into_iter().find_map(|name| node.attribute(name));
                let group = match group {
                    None => String::new(),
                    Some(Value::Text(name)) => name.clone(),
                    Some(number) => number
                        .whole()
                        .ok_or_else(|| self.fail(node, "pg_name: expected the name of a group"))?
                        .to_string(),
                };
                let collective = Collective { kind: needed("comm_type")?, size: needed("comm_size")? };
                self.collective(node, &group, collective)?
            }
            Ok(NodeType::Comp)
                if node.duration_micros == 0 && number("num_ops").is_some_and(|ops| ops > 0) =>
            {
                let problem =
                    "expected `duration_micros`: how long `num_ops` operations take depends on who computes";
                return Err(self.fail(node, problem));
            }
            Ok(NodeType::Invalid) | Err(_) => {
                return Err(self.fail(node, format!("expected a type of node, found {}", node.kind)));
            }
            Ok(kind) => {
                let duration = node.duration_micros.checked_mul(1_000_000).map(Time);
                let duration =
                    duration.ok_or_else(|| self.fail(node, "duration_micros: beyond the end of time"))?;
                let calc = self.builder.calc(duration);
                if kind != NodeType::Comp || number("is_cpu_op") == Some(1) {
                    self.builder.on_cpu(calc, BESIDE);
                }
                single(calc)
            }
        })
    }

    /// The part of this rank in a collective operation.
    fn collective(
        &mut self,
        node: &Node,
        group: &str,
        collective: Collective,
    ) -> Result<Ends, WorkloadError> {
        let part = self.groups.join(group, self.rank, collective, self.memory);
        let Part { ranks, place, tag, in_plan } = match part {
            Ok(part) => part,
            Err(problem) => return Err(fail(self.file, node, problem)),
        };
        let begin = self.builder.calc(Time::ZERO);
        self.builder.on_cpu(begin, BESIDE);
        if ranks.len() < 2 {
            return Ok(Ends { first: begin, last: vec![begin] });
        }
        let count = narrow::<u32>(ranks.len());
        let Collective { kind, size } = collective;
        let of = |algorithm, size: u64| Operation::new(algorithm, count, Bytes(size.max(1)), tag);
        let half = count - 1;
        let operation = match kind {
            0 => of(Algorithm::RingAllreduce, size),
            // The second half of a ring's allreduce passes on what all have.
            2 => of(Algorithm::RingAllreduce, size.saturating_mul(count.into())).only(half..2 * half),
            5 => of(Algorithm::BinomialBroadcast, size),
            6 => of(Algorithm::PairwiseAllToAll, size / u64::from(count)),
            // The first half reduces.
            7 | 8 => of(Algorithm::RingAllreduce, size).only(0..half),
            9 => of(Algorithm::DisseminationBarrier, 1),
            _ => {
                let problem = format!(
                    "comm_type: expected all-reduce (0), all-gather (2), broadcast (5), all-to-all (6), reduce-scatter (7, 8) or \
                     barrier (9), found {kind}"
                );
                return Err(fail(self.file, node, problem));
            }
        };
        // A send and a receive per step.
        let operations = 2 * operation.steps() as usize;
        if self.builder.len() + operations > MAX_OPS / 2 {
            return Err(fail(self.file, node, "more operations than a rank may have"));
        }
        if let Err(error) = self.memory.take(BYTES_PER_OPERATION * operations as u64) {
            return Err(fail(self.file, node, error));
        }
        let named = |place: u32| ranks[place as usize];
        self.builder.name_collectives(&node.name, group);
        let first = narrow::<u32>(self.builder.len());
        let last = operation.add_among(&mut self.builder, place, &[begin], named);
        for op in first..narrow::<u32>(self.builder.len()) {
            self.builder.in_group(op, in_plan);
        }
        Ok(Ends { first: begin, last })
    }

    /// Lets every node wait for those that it depends on.
    fn connect(&mut self) -> Result<(), WorkloadError> {
        for (node, waits) in &self.waits {
            let first = self.places[node].first;
            for wait in waits {
                let Some(Ends { last, .. }) = self.places.get(wait) else {
                    let problem = format!("node {node} waits for node {wait}, which is not there");
                    return Err(WorkloadError::file(self.file, problem));
                };
                for &op in last {
                    self.builder.requires(first, op);
                }
            }
        }
        Ok(())
    }
}
