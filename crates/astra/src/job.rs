//! A training job: its files, read and checked before anything runs.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use netloom_units::memory::Meter;
use netloom_units::narrow;

use crate::chakra;
use crate::error::JobError;
use crate::groups::{EVERYONE, Group, Groups};
use crate::plan::Load;
use crate::series::{MOST_RANKS, Series};
use crate::system::{Algorithm, Operation, System, Way};
use crate::trace::{Kind, Reader, Trace};

/// The files of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Files {
    /// The execution traces: a prefix, or a pattern of their names ([`Series::new`]).
    pub traces: PathBuf,
    /// The system file.
    pub system: PathBuf,
    /// Communicator groups.
    pub groups: Option<PathBuf>,
}

/// A training job: what all ranks share.
#[derive(Debug)]
pub struct Job {
    series: Series,
    pub(crate) system: System,
    pub(crate) dimensions: Vec<u32>,
    pub(crate) queues: u32,
    pub(crate) groups: Vec<Group>,
    pub(crate) traces: Vec<Trace>,
    /// Traces in the place of an algorithm, by prefix and place in the group.
    custom: BTreeMap<PathBuf, Vec<Trace>>,
    loads: Vec<Load>,
}

impl Files {
    /// How many ranks have a trace, up to the first that has none.
    ///
    /// # Errors
    /// If rank 0 has none, or one is missing between others.
    pub fn ranks(&self) -> Result<u32, JobError> {
        Series::new(&self.traces)?.ranks()
    }

    /// All files that a job of these is read from, as far as they are there.
    pub fn all(&self) -> Vec<PathBuf> {
        let series = |name: &Path| -> Vec<PathBuf> {
            Series::new(name).map(|series| series.files().collect()).unwrap_or_default()
        };
        let mut files = series(&self.traces);
        files.push(self.system.clone());
        files.extend(self.groups.clone());
        if let Ok(system) = System::read(&self.system) {
            files.extend(system.named_files());
            files.extend(system.prefixes().flat_map(series));
        }
        files
    }
}

/// What of a job is not in its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// The logical dimensions.
    pub dimensions: Vec<u32>,
    /// Queues of every dimension, among which chunks are spread.
    pub queues: u32,
}

impl Job {
    /// Reads a job of as many ranks as its dimensions have together.
    ///
    /// # Errors
    /// Whatever is wrong with its files, with node and field: among it what ASTRA-sim hangs on, that is sends and receives without a
    /// counterpart, and collective operations in which not all members of a group take part.
    pub fn read(files: &Files, shape: &Shape) -> Result<Self, JobError> {
        let system = System::read(&files.system)?;
        let ranks = shape.dimensions.iter().try_fold(1u32, |ranks, &dimension| {
            ranks.checked_mul(dimension).filter(|&ranks| ranks <= MOST_RANKS)
        });
        let Some(ranks) = ranks.filter(|&ranks| ranks > 0) else {
            let problem = format!("expected dimensions of 1 to {MOST_RANKS} ranks");
            return Err(JobError::file(&files.traces, problem));
        };
        let series = Series::new(&files.traces)?;
        let mut groups = Groups::new(ranks);
        if let Some(file) = &files.groups {
            groups.read(file)?;
        }
        let mut memory = Meter::default();
        let mut traces = Vec::with_capacity(ranks as usize);
        let mut reader = Reader {
            system: &system,
            groups: &mut groups,
            memory: &mut memory,
            ranks,
            dimensions: shape.dimensions.len(),
            is_collective: false,
        };
        for rank in 0..ranks {
            traces.push(reader.read(&series.file(rank), rank)?);
        }
        let job = Job {
            series,
            system,
            dimensions: shape.dimensions.clone(),
            queues: shape.queues.max(1),
            groups: groups.into_all(),
            traces,
            custom: BTreeMap::new(),
            loads: Vec::new(),
        };
        job.check_messages()?;
        job.check_collectives()?;
        let job = Job { custom: job.read_custom(&mut memory)?, ..job };
        Ok(Job { loads: (0..ranks).map(|rank| job.count(rank)).collect(), ..job })
    }

    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        narrow::<u32>(self.traces.len())
    }

    /// How many messages a rank sends, at most, and how large they are.
    pub fn load(&self, rank: u32) -> Load {
        self.loads[rank as usize]
    }

    /// Whether any rank computes.
    pub fn computes(&self) -> bool {
        self.traces.iter().any(|trace| trace.nodes.iter().any(|node| node.kind == Kind::Compute))
    }

    /// What is probably a mistake, each in one sentence.
    pub fn notes(&self) -> Vec<String> {
        let absent: Vec<String> = self.traces.iter().filter_map(|trace| trace.absent.clone()).collect();
        let mut notes: Vec<String> = chakra::note(&absent).into_iter().collect();
        let used = |operation: Operation| {
            let is_used = |trace: &Trace| {
                trace
                    .nodes
                    .iter()
                    .any(|node| node.kind == Kind::Collective(operation) && node.peer == EVERYONE)
            };
            self.traces.first().is_some_and(is_used)
        };
        for operation in Operation::ALL.into_iter().filter(|&operation| used(operation)) {
            let Some(algorithms) = self.system.native(operation) else { continue };
            let covers = algorithms.iter().any(|algorithm| algorithm.is_one());
            if !covers && algorithms.len() < self.dimensions.len() {
                notes.push(format!(
                    "{}: {}-implementation names {} of {} dimensions, and the operation is done in these only",
                    self.system.file.display(),
                    operation.name(),
                    algorithms.len(),
                    self.dimensions.len()
                ));
            }
        }
        notes
    }

    /// The trace of a collective at a place.
    pub(crate) fn custom_trace(&self, prefix: &Path, place: u32) -> Option<&Trace> {
        self.custom.get(prefix)?.get(place as usize)
    }

    fn trace_file(&self, rank: u32) -> PathBuf {
        self.series.file(rank)
    }

    /// Every send has a receive of its size, and the other way round.
    fn check_messages(&self) -> Result<(), JobError> {
        let found = unmatched((0..).zip(&self.traces));
        found.map_or(Ok(()), |(rank, problem)| Err(JobError::file(&self.trace_file(rank), problem)))
    }

    /// All members of a group come to the same operations, which the system can do.
    fn check_collectives(&self) -> Result<(), JobError> {
        /// A group, an operation in it, its size and its dimensions.
        type Key = (u32, Operation, u64, u32);
        /// How often a rank comes to each.
        type Counts = BTreeMap<Key, u64>;
        type Part<'a> = Vec<(&'a Key, &'a u64)>;
        let counts = |trace: &Trace| {
            let mut counts = Counts::new();
            for node in &trace.nodes {
                if let Kind::Collective(operation) = node.kind {
                    *counts.entry((node.peer, operation, node.value, node.dimensions)).or_default() += 1;
                }
            }
            counts
        };
        let of_ranks: Vec<Counts> = self.traces.iter().map(counts).collect();
        for (group, members) in self.groups.iter().enumerate() {
            let group_name = match group {
                0 => "all ranks".to_owned(),
                _ => format!("group \"{}\"", members.name),
            };
            let group = narrow::<u32>(group);
            let range = (group, Operation::AllReduce, 0, 0)..(group + 1, Operation::AllReduce, 0, 0);
            let part = |rank: u32| -> Part { of_ranks[rank as usize].range(range.clone()).collect() };
            let Some(&first) = members.ranks.first() else { continue };
            let expected = part(first);
            for &rank in members.ranks.iter() {
                let found = part(rank);
                let more = |these: &Part, those: &Part| {
                    let of_these = these.iter().find(|these| !those.contains(these));
                    of_these.map(|&(&(_, operation, bytes, _), &count)| {
                        format!("{count} × {} of {bytes} bytes (comm_size) in {group_name}", operation.name())
                    })
                };
                if found != expected {
                    let (here, there) = (more(&found, &expected), more(&expected, &found));
                    let none = || "none like that".to_owned();
                    let problem = format!(
                        "expected the same collective operations as rank {first} has: it has {}, this rank {}",
                        there.unwrap_or_else(none),
                        here.unwrap_or_else(none)
                    );
                    return Err(JobError::file(&self.trace_file(rank), problem));
                }
            }
            for (&(_, operation, ..), _) in expected {
                self.check_way(group, operation)?;
            }
        }
        Ok(())
    }

    /// Whether an operation of a group can be done as the system file says.
    fn check_way(&self, group: u32, operation: Operation) -> Result<(), JobError> {
        let fail = |problem: String| Err(JobError::file(&self.system.file, problem));
        let name = format!("{}-implementation", operation.name());
        // Custom ones of single nodes are there, too; a native one is not needed if all have one.
        let Some(algorithms) = self.system.native(operation) else {
            let Some(rank) = self.lacks_way(operation) else { return Ok(()) };
            return fail(format!("expected `{name}`, as rank {rank} has such an operation"));
        };
        if algorithms.len() > self.dimensions.len() {
            let (found, expected) = (algorithms.len(), self.dimensions.len());
            return fail(format!(
                "{name}: expected at most {expected} algorithms, one for each dimension, found {found}"
            ));
        }
        let layout = self.layout(operation, group, self.groups[group as usize].ranks[0]);
        for dimension in &layout.dimensions {
            let count = dimension.members.count();
            let needs_power = matches!(
                dimension.algorithm,
                Algorithm::HalvingDoubling { .. } | Algorithm::DoubleBinaryTree
            );
            if needs_power && count > 1 && !count.is_power_of_two() {
                let word = match dimension.algorithm {
                    Algorithm::DoubleBinaryTree => "doubleBinaryTree",
                    _ => "halvingDoubling",
                };
                return fail(format!(
                    "{name}: expected ring or direct: {word} needs a power of two of ranks, and there are {count}"
                ));
            }
        }
        let reduces = matches!(operation, Operation::AllReduce | Operation::ReduceScatter);
        if reduces && self.system.memory_bandwidth <= 0.0 {
            return fail(format!(
                "local-mem-bw: expected the bandwidth at which an {} reduces, in GB/s",
                operation.name()
            ));
        }
        Ok(())
    }

    /// A rank with an operation of this kind that the system file does not say how to do.
    fn lacks_way(&self, operation: Operation) -> Option<u32> {
        let lacks = |trace: &Trace| {
            let of_kind = |node: &&crate::trace::Node| node.kind == Kind::Collective(operation);
            trace.nodes.iter().filter(of_kind).any(|node| self.system.way(operation, node.id).is_none())
        };
        (0..).zip(&self.traces).find(|(_, trace)| lacks(trace)).map(|(rank, _)| rank)
    }

    /// Reads the traces that take the place of algorithms, as far as operations need them.
    fn read_custom(&self, memory: &mut Meter) -> Result<BTreeMap<PathBuf, Vec<Trace>>, JobError> {
        let mut needed: BTreeMap<PathBuf, u32> = BTreeMap::new();
        for trace in &self.traces {
            for node in &trace.nodes {
                let Kind::Collective(operation) = node.kind else { continue };
                if let Some(Way::Custom(prefix)) = self.system.way(operation, node.id) {
                    let members = narrow::<u32>(self.groups[node.peer as usize].ranks.len());
                    let most = needed.entry(prefix.to_owned()).or_insert(members);
                    if *most != members {
                        let problem =
                            format!("expected groups of one size, found {most} and {members} members");
                        return Err(JobError::file(prefix, problem));
                    }
                }
            }
        }
        let mut all = BTreeMap::new();
        for (prefix, members) in needed {
            let mut no_groups = Groups::new(members);
            let mut reader = Reader {
                system: &self.system,
                groups: &mut no_groups,
                memory,
                ranks: members,
                dimensions: 1,
                is_collective: true,
            };
            let series = Series::Prefix(prefix.clone());
            let read = (0..members).map(|place| reader.read(&series.file(place), place));
            let traces: Vec<Trace> = read.collect::<Result<_, _>>()?;
            if let Some((place, problem)) = unmatched((0..).zip(&traces)) {
                return Err(JobError::file(&series.file(place), problem));
            }
            all.insert(prefix, traces);
        }
        Ok(all)
    }

    /// What a rank sends.
    fn count(&self, rank: u32) -> Load {
        let trace = &self.traces[rank as usize];
        let mut load = trace.sends();
        let mut known: HashMap<(u32, Operation, u64, u32), Load> = HashMap::new();
        for node in &trace.nodes {
            let Kind::Collective(operation) = node.kind else { continue };
            let of_node = match self.system.way(operation, node.id) {
                Some(Way::Custom(_)) => self.collective_load(node, operation, rank),
                _ => *known
                    .entry((node.peer, operation, node.value, node.dimensions))
                    .or_insert_with(|| self.collective_load(node, operation, rank)),
            };
            load.add(of_node);
        }
        load
    }
}

impl Trace {
    /// What its send nodes send.
    pub(crate) fn sends(&self) -> Load {
        let mut load = Load::default();
        for node in self.nodes.iter().filter(|node| node.kind == Kind::Send) {
            load.add(Load { messages: 1, largest: node.value });
        }
        load
    }
}

/// The first send without a receive of its tag and size, or the other way round: whose, and what is wrong.
fn unmatched<'a>(traces: impl Iterator<Item = (u32, &'a Trace)>) -> Option<(u32, String)> {
    /// Sends less receives, and the last node of each kind.
    #[derive(Default)]
    struct Balance {
        surplus: i64,
        send: u64,
        receive: u64,
    }
    let mut balances: HashMap<(u32, u32, u32, u64), Balance> = HashMap::new();
    for (rank, trace) in traces {
        for node in &trace.nodes {
            let (key, change) = match node.kind {
                Kind::Send => ((rank, node.peer, node.tag, node.value), 1),
                Kind::Receive => ((node.peer, rank, node.tag, node.value), -1),
                _ => continue,
            };
            let balance = balances.entry(key).or_default();
            balance.surplus += change;
            *(if change > 0 { &mut balance.send } else { &mut balance.receive }) = node.id;
        }
    }
    balances.retain(|_, balance| balance.surplus != 0);
    let (&(src, dst, tag, bytes), &Balance { surplus, send, receive }) =
        balances.iter().min_by_key(|(key, _)| **key)?;
    let count = surplus.unsigned_abs();
    Some(match surplus > 0 {
        true => {
            let problem = format!(
                "node {send}: expected a receive at rank {dst} for each send of {bytes} bytes (comm_size) with comm_tag {tag}; without one: {count}"
            );
            (src, problem)
        }
        false => {
            let problem = format!(
                "node {receive}: expected a send from rank {src} for each receive of {bytes} bytes (comm_size) with comm_tag {tag}; without one: {count}"
            );
            (dst, problem)
        }
    })
}
