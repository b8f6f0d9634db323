//! The execution trace of a rank, as small as it can be: traces have thousands of nodes, and there are thousands of ranks.

use std::path::Path;

use netloom_units::memory::Meter;
use netloom_units::narrow;

use crate::chakra::{self, NodeType, Value};
use crate::error::JobError;
use crate::groups::{Groups, Known};
use crate::system::{Operation, System};

/// Memory of a node, with what it waits for.
const BYTES_PER_NODE: u64 = 128;

/// What a node does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Takes a time.
    Compute,
    Send,
    Receive,
    Collective(Operation),
    /// A broadcast, which takes a time and sends nothing.
    Broadcast,
    /// Is done at once.
    Skip,
}

/// What a node occupies while it is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    Cpu,
    Compute,
    Communication,
    /// A receive: there may be any number of them at a time.
    None,
}

/// A node; [`Trace::nodes`] has them in the order of their numbers, in which they are issued.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    pub(crate) id: u64,
    /// Nanoseconds, or bytes.
    pub(crate) value: u64,
    /// The other rank, or the group.
    pub(crate) peer: u32,
    pub(crate) tag: u32,
    /// Where its children begin in [`Trace::children`].
    first_child: u32,
    /// How many nodes it waits for.
    pub(crate) waits: u32,
    /// The logical dimensions that take part in a collective, one bit each.
    pub(crate) dimensions: u32,
    pub(crate) priority: u32,
    pub(crate) kind: Kind,
    pub(crate) unit: Unit,
}

/// The trace of a rank.
#[derive(Debug)]
pub(crate) struct Trace {
    pub(crate) nodes: Box<[Node]>,
    children: Box<[u32]>,
    /// How its `ctrl_deps` were read, where that is not as they are.
    pub(crate) absent: Option<String>,
}

impl Trace {
    /// The nodes that wait for one.
    pub(crate) fn children(&self, node: u32) -> &[u32] {
        let from = self.nodes[node as usize].first_child as usize;
        let until = self.nodes.get(node as usize + 1).map_or(self.children.len(), |n| n.first_child as usize);
        &self.children[from..until]
    }
}

/// What is known where a trace is read.
pub(crate) struct Reader<'a> {
    pub(crate) system: &'a System,
    pub(crate) groups: &'a mut Groups,
    pub(crate) memory: &'a mut Meter,
    /// Number of ranks, or of those that take part in a collective whose messages the trace has.
    pub(crate) ranks: u32,
    pub(crate) dimensions: usize,
    /// Whether the trace is that of a collective: sends, receives and computations only.
    pub(crate) is_collective: bool,
}

/// Tags of sends and receives of traces are counted modulo this number.
const TAGS: u64 = 500_000_000;

impl Reader<'_> {
    /// Reads the trace of a rank.
    pub(crate) fn read(&mut self, file: &Path, rank: u32) -> Result<Trace, JobError> {
        let chakra::Trace { nodes: mut raw, absent } = chakra::read(file)?;
        self.memory.take(raw.len() as u64 * BYTES_PER_NODE).map_err(|error| JobError::file(file, error))?;
        if raw.is_empty() {
            return Err(JobError::file(file, "expected at least one node"));
        }
        raw.sort_by_key(|node| node.id);
        let known = self.groups.known(file, &raw)?;
        let mut nodes = Vec::with_capacity(raw.len());
        let mut edges: Vec<(u32, u32)> = Vec::new();
        for (place, node) in (0..).zip(&raw) {
            let waits = node.waits();
            let place_of = |wait: &u64| raw.partition_point(|other| other.id < *wait);
            edges.extend(waits.iter().map(|wait| (narrow::<u32>(place_of(wait)), place)));
            let reader = NodeReader { file, node, rank, known: &known, of: self };
            nodes.push(Node { waits: narrow::<u32>(waits.len()), ..reader.read()? });
        }
        edges.sort_unstable();
        let mut edge = 0;
        for (place, node) in (0..).zip(&mut nodes) {
            node.first_child = narrow::<u32>(edge);
            while edges.get(edge).is_some_and(|&(parent, _)| parent == place) {
                edge += 1;
            }
        }
        let children = edges.into_iter().map(|(_, child)| child).collect();
        let trace = Trace { nodes: nodes.into(), children, absent };
        if let Some(node) = in_cycle(&trace) {
            let problem = "ctrl_deps, data_deps: nodes wait for each other in a cycle";
            return Err(raw[node].fail(file, problem));
        }
        Ok(trace)
    }
}

/// A node that waits for itself, by others.
fn in_cycle(trace: &Trace) -> Option<usize> {
    let mut waits: Vec<u32> = trace.nodes.iter().map(|node| node.waits).collect();
    let count = narrow::<u32>(trace.nodes.len());
    let mut free: Vec<u32> = (0..count).filter(|&node| waits[node as usize] == 0).collect();
    while let Some(node) = free.pop() {
        for &child in trace.children(node) {
            waits[child as usize] -= 1;
            if waits[child as usize] == 0 {
                free.push(child);
            }
        }
    }
    waits.iter().position(|&waits| waits > 0)
}

/// A node of the file and what it may refer to.
struct NodeReader<'a, 'b> {
    file: &'a Path,
    node: &'a chakra::Node,
    rank: u32,
    known: &'a Known,
    of: &'a Reader<'b>,
}

impl NodeReader<'_, '_> {
    fn fail(&self, problem: impl std::fmt::Display) -> JobError {
        self.node.fail(self.file, problem)
    }

    /// An attribute that may be absent.
    fn optional(&self, name: &str) -> Result<Option<u64>, JobError> {
        let Some(value) = self.node.attribute(name) else { return Ok(None) };
        match value.whole() {
            Some(number) => Ok(Some(number)),
            None => Err(self.fail(format!("{name}: expected a whole number from 0 on, found {value:?}"))),
        }
    }

    fn needed(&self, name: &str) -> Result<u64, JobError> {
        let missing = || self.fail(format!("expected an attribute `{name}`, a whole number"));
        self.optional(name)?.ok_or_else(missing)
    }

    fn small(&self, name: &str, value: u64) -> Result<u32, JobError> {
        let large = |_| self.fail(format!("{name}: expected at most {}, found {value}", u32::MAX));
        u32::try_from(value).map_err(large)
    }

    fn other(&self, name: &str) -> Result<u32, JobError> {
        let other = self.needed(name)?;
        let last = self.of.ranks - 1;
        if other > u64::from(last) {
            return Err(self.fail(format!("{name}: expected a rank from 0 to {last}, found {other}")));
        }
        self.small(name, other)
    }

    /// The rank itself, where the node says it.
    fn myself(&self, name: &str) -> Result<(), JobError> {
        let rank = u64::from(self.rank);
        match self.optional(name)? {
            Some(other) if other != rank && !self.of.is_collective => {
                Err(self.fail(format!("{name}: expected the rank itself, {rank}, found {other}")))
            }
            _ => Ok(()),
        }
    }

    /// How long it took where it was traced; a nanosecond if it has no duration.
    fn duration(&self) -> Result<u64, JobError> {
        let duration = self.node.duration_micros.checked_mul(1000).filter(|&ns| ns < LONGEST);
        let duration = duration.ok_or_else(|| self.fail("duration_micros: beyond the end of time"))?;
        Ok(duration.max(1))
    }

    fn read(&self) -> Result<Node, JobError> {
        let is_on_cpu = self.node.is_on_cpu().map_err(|problem| self.fail(problem))?;
        let node = Node {
            id: self.node.id,
            value: 0,
            peer: 0,
            tag: 0,
            first_child: 0,
            waits: 0,
            dimensions: u32::MAX,
            priority: 0,
            kind: Kind::Skip,
            unit: if is_on_cpu { Unit::Cpu } else { Unit::Communication },
        };
        let kind = NodeType::try_from(self.node.kind).ok();
        let is_traffic = matches!(kind, Some(NodeType::CommColl | NodeType::CommSend | NodeType::CommRecv));
        let unit = match kind {
            _ if is_on_cpu => Unit::Cpu,
            Some(NodeType::Comp) => Unit::Compute,
            Some(NodeType::CommRecv) => Unit::None,
            _ => Unit::Communication,
        };
        let node = Node { unit, ..node };
        let replays = self.of.system.replays || self.node.is_launch();
        if replays && !self.of.is_collective {
            return Ok(Node { kind: Kind::Compute, value: self.duration()?, ..node });
        }
        if is_traffic && is_on_cpu {
            return Err(self.fail("is_cpu_op: expected none, or 0, for communication"));
        }
        match kind {
            Some(NodeType::Comp) => self.computation(node, is_on_cpu),
            Some(NodeType::CommSend) => {
                self.myself("comm_src")?;
                self.message(Node { kind: Kind::Send, peer: self.other("comm_dst")?, ..node })
            }
            Some(NodeType::CommRecv) => {
                self.myself("comm_dst")?;
                self.message(Node { kind: Kind::Receive, peer: self.other("comm_src")?, ..node })
            }
            kind if self.of.is_collective => Err(self.fail(format!(
                "type: expected sends, receives and computations only in the trace of a collective, found {}",
                kind.map_or(self.node.kind.to_string(), |kind| format!("{kind:?}"))
            ))),
            Some(NodeType::CommColl) => self.collective(node),
            Some(NodeType::Invalid | NodeType::Metadata) => Ok(node),
            Some(NodeType::MemLoad | NodeType::MemStore) => Err(self.fail(
                "type: expected none that loads from or stores to remote memory, which is not simulated",
            )),
            _ => Err(self.fail(format!("type: expected one from 0 to 7, found {}", self.node.kind))),
        }
    }

    fn computation(&self, node: Node, is_on_cpu: bool) -> Result<Node, JobError> {
        let system = self.of.system;
        if !system.has_roofline || is_on_cpu || self.of.is_collective {
            return Ok(Node { kind: Kind::Compute, value: self.duration()?, ..node });
        }
        let (ops, bytes) = (self.needed("num_ops")?, self.needed("tensor_size")?);
        if bytes == 0 {
            return Ok(node);
        }
        let Some(value) = roofline(system, ops, bytes) else {
            let problem = "roofline-enabled: expected `peak-perf` and `local-mem-bw` above 0";
            return Err(JobError::file(&system.file, problem));
        };
        Ok(Node { kind: Kind::Compute, value, ..node })
    }

    fn message(&self, node: Node) -> Result<Node, JobError> {
        let tag = self.small("comm_tag", self.needed("comm_tag")? % TAGS)?;
        Ok(Node { value: self.needed("comm_size")?, tag, ..node })
    }

    fn collective(&self, node: Node) -> Result<Node, JobError> {
        let kind = match self.node.comm_type().map_err(|problem| self.fail(problem))? {
            0 => Kind::Collective(Operation::AllReduce),
            2 => Kind::Collective(Operation::AllGather),
            5 => return Ok(Node { kind: Kind::Broadcast, value: self.duration()?, ..node }),
            6 => Kind::Collective(Operation::AllToAll),
            7 => Kind::Collective(Operation::ReduceScatter),
            other => {
                let problem = format!(
                    "comm_type: expected all-reduce (0), all-gather (2), broadcast (5), all-to-all (6) or reduce-scatter (7), found {other}"
                );
                return Err(self.fail(problem));
            }
        };
        let dimensions = match self.node.attribute("involved_dim") {
            None => u32::MAX,
            Some(Value::Bools(list)) if list.values.len() >= self.of.dimensions => {
                list.values.iter().zip(0..32).map(|(&is_in, bit)| u32::from(is_in) << bit).sum()
            }
            Some(_) => {
                let expected = self.of.dimensions;
                return Err(
                    self.fail(format!("involved_dim: expected a list of {expected} truth values or more"))
                );
            }
        };
        let group = self.group()?;
        let value = self.needed("comm_size")?;
        let priority = self.small("comm_priority", self.optional("comm_priority")?.unwrap_or(0))?;
        Ok(Node { kind, value, peer: group, dimensions, priority, ..node })
    }

    fn group(&self) -> Result<u32, JobError> {
        let name = self.node.group_name(&["pg_name"]).map_err(|problem| self.fail(problem))?;
        self.of.groups.find(self.known, &name, self.rank).map_err(|problem| self.fail(problem))
    }
}

/// A time that a simulation does not come to, in nanoseconds.
pub(crate) const LONGEST: u64 = 1 << 53;

/// How long operations on this many bytes take, in nanoseconds.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "as ASTRA-sim rounds"
)]
fn roofline(system: &System, ops: u64, bytes: u64) -> Option<u64> {
    let intensity = ops as f64 / bytes as f64;
    let speed = (system.memory_bandwidth * intensity).min(system.peak);
    if ops == 0 {
        return Some(0);
    }
    let ns = ops as f64 / speed * 1e9;
    (speed > 0.0 && ns < LONGEST as f64).then_some(ns as u64)
}
