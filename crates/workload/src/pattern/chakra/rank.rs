//! The trace of one rank as operations of a program.

use std::collections::HashMap;
use std::path::Path;

use netloom_astra::chakra::{self, Node, NodeType, Value};
use netloom_units::memory::Meter;
use netloom_units::{Bytes, Time, narrow};

use super::groups::{Collective, Groups, Part};
use crate::WorkloadError;
use crate::pattern::collective::{Algorithm, Operation};
use crate::program::{Accept, MAX_OPS, RankBuilder};

/// Tags from here on are those of collective operations.
pub(super) const FIRST_COLLECTIVE: u32 = 1 << 31;

/// Calculations: on the accelerator, and beside it (operations of the CPU, memory and storage).
const BESIDE: u16 = 1;

/// Memory of a node: an operation, its place, its dependencies.
const BYTES_PER_NODE: u64 = 256;

/// Memory of an operation of a collective: itself, its message, what it waits for.
const BYTES_PER_OPERATION: u64 = 96;

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
    /// How its `ctrl_deps` were read, where that is not as they are.
    pub(super) absent: Option<String>,
}

/// Where a node begins and ends; a collective in which a rank has nothing to do is an empty calculation.
struct Ends {
    first: u32,
    last: Vec<u32>,
}

impl<'a> Trace<'a> {
    /// Reads a whole file.
    pub(super) fn read(
        file: &'a Path,
        rank: u32,
        ranks: u32,
        groups: &'a mut Groups,
        memory: &'a mut Meter,
    ) -> Result<Self, WorkloadError> {
        let chakra::Trace { nodes, absent } = chakra::read(file)?;
        groups.begin(file, &nodes)?;
        memory.take(nodes.len() as u64 * BYTES_PER_NODE).map_err(|error| WorkloadError::file(file, error))?;
        let mut trace = Trace {
            file,
            rank,
            ranks,
            groups,
            memory,
            builder: RankBuilder::default(),
            places: HashMap::new(),
            waits: Vec::new(),
            absent,
        };
        nodes.into_iter().try_for_each(|node| trace.add(node))?;
        trace.groups.end(rank).map_err(|problem| WorkloadError::file(file, problem))?;
        trace.connect();
        Ok(trace)
    }

    fn fail(&self, node: &Node, problem: impl std::fmt::Display) -> WorkloadError {
        node.fail(self.file, problem).into()
    }

    fn add(&mut self, node: Node) -> Result<(), WorkloadError> {
        if self.builder.len() >= MAX_OPS / 2 {
            return Err(self.fail(&node, "more nodes than a rank may have"));
        }
        let ends = self.operations(&node)?;
        if self.places.insert(node.id, ends).is_some() {
            return Err(self.fail(&node, "there are two nodes of this number"));
        }
        self.waits.push((node.id, node.waits()));
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
        let is_on_cpu = node.is_on_cpu().map_err(|problem| self.fail(node, problem))?;
        Ok(match NodeType::try_from(node.kind) {
            Ok(_) if node.is_launch() => single(self.calculation(node, BESIDE)?),
            Ok(NodeType::CommSend) => {
                let (dst, size, tag) = (other("comm_dst")?, needed("comm_size")?, tag()?);
                single(self.builder.send(dst, Bytes(size.max(1)), tag))
            }
            Ok(NodeType::CommRecv) => {
                let (src, tag) = (other("comm_src")?, tag()?);
                single(self.builder.recv(Accept::Only(src), Accept::Only(tag)))
            }
            Ok(NodeType::CommColl) => {
                let wrong = |problem: String| self.fail(node, problem);
                let group = node.group_name(&["pg_name", "comm_group"]).map_err(wrong)?;
                let kind = node.comm_type().map_err(wrong)?;
                let collective = Collective { kind, size: needed("comm_size")? };
                self.collective(node, &group, collective)?
            }
            Ok(NodeType::Comp)
                if node.duration_micros == 0 && number("num_ops").is_some_and(|ops| ops > 0) =>
            {
                let problem =
                    "expected `duration_micros`: how long `num_ops` operations take depends on who computes";
                return Err(self.fail(node, problem));
            }
            Err(_) => return Err(self.fail(node, format!("expected a type of node, found {}", node.kind))),
            Ok(NodeType::Comp) if !is_on_cpu => single(self.calculation(node, 0)?),
            Ok(_) => single(self.calculation(node, BESIDE)?),
        })
    }

    /// What takes the time of a node, on one of the rank's processors.
    fn calculation(&mut self, node: &Node, cpu: u16) -> Result<u32, WorkloadError> {
        // A node of no type does nothing, as in ASTRA-sim.
        let is_nothing = node.kind == i32::from(NodeType::Invalid);
        let micros = if is_nothing { 0 } else { node.duration_micros };
        let duration = micros.checked_mul(1_000_000).map(Time);
        let duration = duration.ok_or_else(|| self.fail(node, "duration_micros: beyond the end of time"))?;
        let calc = self.builder.calc(duration);
        self.builder.on_cpu(calc, cpu);
        Ok(calc)
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
            Err(problem) => return Err(node.fail(self.file, problem).into()),
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
                return Err(node.fail(self.file, problem).into());
            }
        };
        // A send and a receive per step.
        let operations = 2 * operation.steps() as usize;
        if self.builder.len() + operations > MAX_OPS / 2 {
            return Err(node.fail(self.file, "more operations than a rank may have").into());
        }
        if let Err(error) = self.memory.take(BYTES_PER_OPERATION * operations as u64) {
            return Err(node.fail(self.file, error).into());
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
    fn connect(&mut self) {
        for (node, waits) in &self.waits {
            let first = self.places[node].first;
            for op in waits.iter().flat_map(|wait| &self.places[wait].last) {
                self.builder.requires(first, *op);
            }
        }
    }
}
