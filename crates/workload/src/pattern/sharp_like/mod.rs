//! Collective operations in which switches reduce.

mod tree;

use std::collections::BTreeMap;

use netloom_topology::{HostId, Network, NodeId};
use netloom_units::{Bytes, Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use self::tree::{Child, Tree, roots, unit};
use crate::WorkloadError;
use crate::plan::{Plan, ReductionUnits, Setting};
use crate::program::{Accept, CollectiveKind, RankBuilder, build_all};

/// A collective operation in which switches reduce what they are sent and forward the sum, like SHARP (Graham et al., Scalable Hierarchical Aggregation Protocol, COMHPC 2016, and SHARP
/// Streaming-Aggregation, ISC 2020): each rank sends its vector once and receives the result once. Networks with levels only, such as `leaf-spine` and `fat-tree`, without `servers`.
///
/// The switches between the ranks' hosts and a root form a tree. The root is a switch of the lowest level from which links downwards lead to all ranks; among several, the one whose turn
/// it is, from a place that depends on the first rank's leaf switch. Vectors are sent in chunks. A switch forwards the sum of a chunk when it has the chunk of all of its children,
/// whole; the root sends the result down the same tree, and each switch copies it to its children.
///
/// SHARP's details are not public, hence the name. What is assumed: each switch of the network has one reduction unit, which all jobs share, behind a port of its own (tier `reduction` of
/// `links.parquet`, where bytes of this port are counted apart); a message of a chunk is one flow of the scenario's transport from a rank or unit to the next, and is acknowledged there. So
/// a packet crosses the switch once to the unit and once from there, and takes `fabric.switch_latency` for each. In tables of flows, units are hosts whose numbers follow those of all
/// hosts, in the order of the switches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SharpLike {
    /// What is done: `all-reduce`, `reduce` (the sum comes to rank 0, to all others one byte for each chunk that is done), `broadcast` (from rank 0) or `barrier` (an all-reduce of one
    /// byte, or `size`). SHARP's reduce-scatter and all-gather are left out.
    pub operation: SwitchOperation,
    /// Bytes of a rank's vector; 1 MiB if not given, 1 byte for a barrier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Bytes that are reduced at once. The default of 2 KiB is the payload of an outstanding operation of NVIDIA's Quantum switches (NVIDIA, SHARP 2.6 documentation, SHARP_COLL_JOB_QUOTA_PAYLOAD_PER_OST).
    /// Chunks of several packets leave a NIC packet by packet in turn, so give a smaller number of outstanding ones then. Each chunk takes some 200 bytes of memory per rank in a run.
    pub chunk: Bytes,
    /// Chunks that a switch holds of each tree: a rank sends the next one when it has the result of that many before it (a broadcast: when its own message of that has been acknowledged). The
    /// default, 512 KiB of chunks in all, is a guess: 400 Gbps for ten microseconds.
    pub outstanding: u32,
    /// Trees with different roots, by which chunks go in turn.
    pub trees: u32,
    /// What a chunk takes in a unit, besides its transmission: half of it before, half of it after it has come. The default of 500 ns is a guess: 128 hosts' all-reduce of 8 bytes took 2.83 us
    /// (COMHPC 2016), 1.2 us of which may be a message's own; two units of the sum and one of the result share the rest.
    pub latency: Time,
    /// At which rate a unit receives, and sends; that of all links of its switch together if not given: units never limit what links carry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// How often it is done; a rank begins the next one when it has finished its part.
    pub repeat: u32,
    /// Calculation of every rank before each repetition.
    pub compute: Time,
}

/// A collective operation that switches do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SwitchOperation {
    /// Every rank gets the sum of all vectors.
    #[default]
    AllReduce,
    /// Rank 0 gets the sum.
    Reduce,
    /// Every rank gets the vector of rank 0.
    Broadcast,
    /// No rank goes on before all have come.
    Barrier,
}

impl Default for SharpLike {
    fn default() -> Self {
        SharpLike {
            operation: SwitchOperation::AllReduce,
            size: None,
            chunk: Bytes(2 << 10),
            outstanding: 256,
            trees: 1,
            latency: Time::from_ns(500),
            rate: None,
            repeat: 1,
            compute: Time::ZERO,
        }
    }
}

/// Chunks of an operation, at most: their operations are in memory.
const MOST_CHUNKS: u64 = 1 << 24;

/// A message that says nothing but that a chunk is done.
const DONE: Bytes = Bytes(1);

impl SharpLike {
    fn size(&self) -> Bytes {
        let default = if self.operation == SwitchOperation::Barrier { 1 } else { 1 << 20 };
        self.size.unwrap_or(Bytes(default))
    }

    fn check(&self, setting: &Setting) -> Result<(), WorkloadError> {
        let numbers = [("outstanding", self.outstanding), ("trees", self.trees), ("repeat", self.repeat)];
        if let Some((field, _)) = numbers.into_iter().find(|(_, number)| *number == 0) {
            return Err(WorkloadError::parameter(field, "at least 1", 0));
        }
        for (field, bytes) in [("size", self.size()), ("chunk", self.chunk)] {
            if bytes == Bytes(0) {
                return Err(WorkloadError::parameter(field, "at least one byte", bytes));
            }
        }
        if self.rate == Some(Rate(0)) {
            return Err(WorkloadError::parameter("rate", "a rate above zero", Rate(0)));
        }
        if self.size().0.div_ceil(self.chunk.0) > MOST_CHUNKS {
            let least = Bytes(self.size().0.div_ceil(MOST_CHUNKS));
            let expected = format!("at least {least}: at most {MOST_CHUNKS} chunks");
            return Err(WorkloadError::parameter("chunk", expected, self.chunk));
        }
        let network = setting.network;
        if setting.endpoints.rails.is_some() {
            let expected = "another one with `servers`: trees are built above hosts with one NIC each; `collective` and `gpu-collective` know servers";
            return Err(WorkloadError::parameter("kind", expected, "\"sharp-like\""));
        }
        if !network.is_tree() {
            let why = network.why_no_tree().map(|why| format!(": {why}")).unwrap_or_default();
            let expected = "another one, or a network of levels, such as leaf-spine or fat-tree";
            return Err(WorkloadError::parameter(
                "kind",
                expected,
                format!("\"sharp-like\" on {}{why}", network.name()),
            ));
        }
        Ok(())
    }

    fn trees(&self, setting: &Setting) -> Result<Vec<Tree>, WorkloadError> {
        let (network, hosts) = (setting.network, setting.placed.as_slice());
        let Some(roots) = roots(network, hosts) else {
            let expected = "another one, or a network with a switch above all ranks";
            return Err(WorkloadError::parameter(
                "kind",
                expected,
                format!("\"sharp-like\" on {}", network.name()),
            ));
        };
        let roots = roots.get(..self.trees as usize).ok_or_else(|| {
            let expected = format!("1 to {}, the switches of the lowest level above all ranks", roots.len());
            WorkloadError::parameter("trees", expected, self.trees)
        })?;
        Ok(roots.iter().map(|&root| Tree::new(network, root, hosts)).collect())
    }

    pub(super) fn build(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        self.check(setting)?;
        let trees = self.trees(setting)?;
        let operation = Operation::new(self, setting.network, &setting.placed, &trees);
        let ranks = setting.ranks();
        let all = ranks + narrow::<u32>(operation.switches.len());
        let program = build_all(all, self.repeat, Time::ZERO, |number| match number.checked_sub(ranks) {
            None => operation.rank(number, self.compute),
            Some(unit) => operation.unit(operation.switches[unit as usize]),
        });
        let program =
            program.map_err(|problem| WorkloadError::parameter("chunk", "a larger one", problem))?;
        let units: Vec<u32> =
            operation.switches.iter().map(|&switch| unit(setting.network, switch)).collect();
        let of_switches = ReductionUnits { latency: self.latency, rate: self.rate };
        Ok(setting.run_with_units(program, &units, of_switches))
    }
}

/// An operation of some ranks, of whose program the units of `switches` are the ranks after those.
struct Operation<'a> {
    config: &'a SharpLike,
    hosts: &'a [HostId],
    trees: &'a [Tree],
    network: &'a Network,
    /// All switches of the trees.
    switches: Vec<NodeId>,
    /// By tree, the way from its root to rank 0.
    ways: Vec<BTreeMap<NodeId, Child>>,
    chunks: u32,
}

impl<'a> Operation<'a> {
    fn new(config: &'a SharpLike, network: &'a Network, hosts: &'a [HostId], trees: &'a [Tree]) -> Self {
        let mut switches: Vec<NodeId> = trees.iter().flat_map(|tree| tree.places.keys().copied()).collect();
        switches.sort_unstable();
        switches.dedup();
        let ways = trees.iter().map(|tree| tree.way_to(network, 0, hosts[0])).collect();
        let chunks = narrow::<u32>(config.size().0.div_ceil(config.chunk.0));
        Operation { config, hosts, trees, network, switches, ways, chunks }
    }

    /// The bytes of a chunk: the last one has what is left.
    fn bytes(&self, chunk: u32) -> Bytes {
        let before = u64::from(chunk) * self.config.chunk.0;
        Bytes((self.config.size().0 - before).min(self.config.chunk.0))
    }

    /// The number in the program of a switch's unit.
    fn number(&self, switch: NodeId) -> u32 {
        let place = self.switches.partition_point(|&other| other < switch);
        narrow::<u32>(self.hosts.len() + place)
    }

    fn child(&self, child: Child) -> u32 {
        match child {
            Child::Rank(rank) => rank,
            Child::Switch(switch) => self.number(switch),
        }
    }

    /// Which tree a chunk goes by.
    fn tree(&self, chunk: u32) -> usize {
        chunk as usize % self.trees.len()
    }

    /// Whether a child sends a chunk to its switch.
    fn sends(&self, switch: NodeId, child: Child, chunk: u32) -> bool {
        let is_on_the_way = || self.ways[self.tree(chunk)].get(&switch) == Some(&child);
        self.config.operation != SwitchOperation::Broadcast || is_on_the_way()
    }

    /// What a child gets of its switch for a chunk; `None` if nothing.
    fn gets(&self, switch: NodeId, child: Child, chunk: u32) -> Option<Bytes> {
        let is_on_the_way = || self.ways[self.tree(chunk)].get(&switch) == Some(&child);
        match self.config.operation {
            SwitchOperation::Reduce if !is_on_the_way() => Some(DONE),
            SwitchOperation::Broadcast if child == Child::Rank(0) => None,
            _ => Some(self.bytes(chunk)),
        }
    }

    /// What a rank does.
    fn rank(&self, rank: u32, compute: Time) -> RankBuilder {
        let mut builder = RankBuilder::default();
        let start = (compute > Time::ZERO).then(|| builder.calc(compute));
        let first = builder.len();
        let switch = self.network.edge_switch(self.hosts[rank as usize]);
        let (unit, child) = (self.number(switch), Child::Rank(rank));
        let held = self.config.outstanding as usize * self.trees.len();
        // By chunk: what frees the memory that it takes.
        let mut done: Vec<u32> = Vec::new();
        for chunk in 0..self.chunks {
            let send = self.sends(switch, child, chunk).then(|| builder.send(unit, self.bytes(chunk), chunk));
            let gets = self.gets(switch, child, chunk);
            let recv = gets.map(|_| builder.recv(Accept::Only(unit), Accept::Only(chunk)));
            builder.after_all(recv.as_slice(), start.as_slice());
            let before = (chunk as usize).checked_sub(held).map(|before| done[before]);
            builder.after_all(send.as_slice(), before.or(start).as_slice());
            done.extend(recv.or(send));
        }
        let kind = match self.config.operation {
            SwitchOperation::AllReduce => CollectiveKind::AllReduce,
            SwitchOperation::Reduce => CollectiveKind::Reduce,
            SwitchOperation::Broadcast => CollectiveKind::Broadcast,
            SwitchOperation::Barrier => CollectiveKind::Barrier,
        };
        let ranks = narrow::<u32>(self.hosts.len());
        builder.collective(first, (0, 0), (kind, ranks, self.config.size()));
        builder
    }

    /// What the unit of a switch does.
    fn unit(&self, switch: NodeId) -> RankBuilder {
        let mut builder = RankBuilder::default();
        for chunk in 0..self.chunks {
            let Some(place) = self.trees[self.tree(chunk)].places.get(&switch) else { continue };
            let from =
                |builder: &mut RankBuilder, number| builder.recv(Accept::Only(number), Accept::Only(chunk));
            let senders = place.children.iter().filter(|child| self.sends(switch, **child, chunk));
            let mut ready: Vec<u32> = senders.map(|&child| from(&mut builder, self.child(child))).collect();
            if let Some(parent) = place.parent {
                let (own, above) = (Child::Switch(switch), self.number(parent));
                if self.sends(parent, own, chunk) {
                    let up = builder.send(above, self.bytes(chunk), chunk);
                    builder.after_all(&[up], &ready);
                }
                ready.clear();
                if self.gets(parent, own, chunk).is_some() {
                    ready.push(from(&mut builder, above));
                }
            }
            let gets =
                place.children.iter().filter_map(|&child| Some((child, self.gets(switch, child, chunk)?)));
            let down: Vec<u32> =
                gets.map(|(child, bytes)| builder.send(self.child(child), bytes, chunk)).collect();
            builder.after_all(&down, &ready);
        }
        builder
    }
}

#[cfg(test)]
mod tests;
