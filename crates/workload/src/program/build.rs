//! How programs are made: operation by operation, rank by rank, then checked as a whole.

use std::sync::Arc;

use netloom_units::memory::Meter;
use netloom_units::{Bytes, Time, narrow};

use super::collectives::{CollectiveInfo, CollectiveKind, Joined, Member};
use super::{ANY, COMMUNICATES, Nics, ON_START, Op, OpKind, Outbound, Program, RankProgram};

/// A rank's operations while they are added.
#[derive(Debug, Default)]
pub(crate) struct RankBuilder {
    ops: Vec<Op>,
    /// (earlier, later), `later` marked with [`ON_START`] where it waits for the start only.
    edges: Vec<(u32, u32)>,
    cpus: u16,
    /// The first operation of each lane.
    lanes: Vec<u32>,
    collectives: Vec<Member>,
    /// By operation, as far as any is not 0.
    nics: Vec<u8>,
    /// Likewise: as far as any has one.
    labels: Vec<Arc<str>>,
    /// What the collectives that follow are called, and those who take part.
    names: Names,
}

/// The names of a collective and of its group.
#[derive(Clone, Debug, Default)]
struct Names {
    name: Arc<str>,
    group: Arc<str>,
}

/// A rank or tag that a receive accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accept {
    /// This one.
    Only(u32),
    /// Whatever it is.
    Any,
}

impl Accept {
    fn code(self) -> u32 {
        match self {
            Accept::Only(value) => value,
            Accept::Any => ANY,
        }
    }
}

/// Operations per rank that the index of an operation has room for.
pub(crate) const MAX_OPS: usize = ON_START as usize;

impl RankBuilder {
    /// How many operations there are.
    pub(crate) fn len(&self) -> usize {
        self.ops.len()
    }

    /// What is added from now on goes on beside what was there before, at a pace of its own: operations of another GPU.
    pub(crate) fn begin_lane(&mut self) {
        self.lanes.push(narrow::<u32>(self.ops.len()));
    }

    /// Memory that the operations and their order take once built.
    pub(crate) fn bytes(&self) -> u64 {
        let collectives = self.collectives.len() * size_of::<Member>();
        (self.ops.len() * (size_of::<Op>() + size_of::<Outbound>()) + self.edges.len() * 8 + collectives)
            as u64
    }

    /// Names the collectives that are added from now on, and the ranks that take part in them; empty for no name.
    pub(crate) fn name_collectives(&mut self, name: &str, group: &str) {
        let share = |old: &Arc<str>, new: &str| if **old == *new { old.clone() } else { new.into() };
        self.names = Names { name: share(&self.names.name, name), group: share(&self.names.group, group) };
    }

    /// Says that the operations from number `first` on are the rank's part in a collective, which is the same for all ranks that have the same `tag` and
    /// the same `root`, the first of the `ranks` that take part.
    pub(crate) fn collective(
        &mut self,
        first: usize,
        (tag, root): (u32, u32),
        (kind, ranks, bytes): (CollectiveKind, u32, Bytes),
    ) {
        let (first, end) = (narrow::<u32>(first), narrow::<u32>(self.ops.len()));
        if first < end {
            let Names { name, group } = self.names.clone();
            let info = CollectiveInfo { kind, name, group, ranks, parts: 0, bytes };
            self.collectives.push(Member { first, end, key: (tag, root), is_unique: false, info });
        }
    }

    /// The same for a rank of several GPUs, each of which may have a part: no other collective has this tag and root.
    pub(crate) fn part_of_gpu(&mut self, first: usize, key: (u32, u32), what: (CollectiveKind, u32, Bytes)) {
        let before = self.collectives.len();
        self.collective(first, key, what);
        self.collectives[before..].iter_mut().for_each(|member| member.is_unique = true);
    }

    /// Makes a calculation one that communicates: over a tier that is not simulated as a network.
    pub(crate) fn communicates(&mut self, op: u32) {
        self.ops[op as usize].group = COMMUNICATES;
    }

    /// Adds a send and returns its index.
    pub(crate) fn send(&mut self, dst: u32, bytes: Bytes, tag: u32) -> u32 {
        self.push(OpKind::Send, bytes.0, dst, tag)
    }

    /// Adds a receive and returns its index.
    pub(crate) fn recv(&mut self, src: Accept, tag: Accept) -> u32 {
        self.push(OpKind::Recv, 0, src.code(), tag.code())
    }

    /// Adds a calculation and returns its index.
    pub(crate) fn calc(&mut self, duration: Time) -> u32 {
        self.push(OpKind::Calc, duration.0, 0, 0)
    }

    /// Moves an operation from CPU 0 to another one.
    pub(crate) fn on_cpu(&mut self, op: u32, cpu: u16) {
        self.ops[op as usize].cpu = cpu;
        self.cpus = self.cpus.max(cpu);
    }

    /// Moves a send from NIC 0 to another one.
    pub(crate) fn on_nic(&mut self, op: u32, nic: u8) {
        let op = op as usize;
        if nic != 0 && self.nics.len() <= op {
            self.nics.resize(op + 1, 0);
        }
        if let Some(known) = self.nics.get_mut(op) {
            *known = nic;
        }
    }

    /// Keeps what an operation is called in its file.
    pub(crate) fn label(&mut self, op: u32, label: &str) {
        let op = op as usize;
        if self.labels.len() <= op {
            self.labels.resize(op + 1, Arc::default());
        }
        self.labels[op] = label.into();
    }

    /// Moves a send from group 0 of the plan to another one.
    pub(crate) fn in_group(&mut self, op: u32, group: u8) {
        self.ops[op as usize].group = group;
    }

    /// Lets `later` start only when `earlier` has finished.
    pub(crate) fn requires(&mut self, later: u32, earlier: u32) {
        self.edges.push((earlier, later));
    }

    /// Lets `later` start only when `earlier` has started.
    pub(crate) fn irequires(&mut self, later: u32, earlier: u32) {
        self.edges.push((earlier, later | ON_START));
    }

    /// Lets all of `later` start only when all of `earlier` have finished. Where both are many they meet in an empty
    /// calculation, which needs fewer dependencies than every pair.
    pub(crate) fn after_all(&mut self, later: &[u32], earlier: &[u32]) {
        if later.len() > 2 && earlier.len() > 2 {
            let meeting = self.calc(Time::ZERO);
            self.after_all(&[meeting], earlier);
            return self.after_all(later, &[meeting]);
        }
        for &later in later {
            earlier.iter().for_each(|&earlier| self.requires(later, earlier));
        }
    }

    fn push(&mut self, kind: OpKind, value: u64, peer: u32, tag: u32) -> u32 {
        assert!(self.ops.len() < MAX_OPS, "more operations than an index has room for");
        self.ops.push(Op { value, peer, tag, channel: ANY, cpu: 0, kind, group: 0 });
        narrow::<u32>(self.ops.len()) - 1
    }

    /// Sorts dependencies and messages.
    ///
    /// # Errors
    /// An operation that waits for itself by way of others.
    pub(crate) fn build(mut self) -> Result<CheckedRank, u32> {
        let (first_dependent, dependents) = by_source(self.ops.len(), &self.edges);
        drop(self.edges);
        if let Some(op) = in_a_cycle(&first_dependent, &dependents) {
            return Err(op);
        }
        let (outbound, sends) = outbound(&mut self.ops);
        if self.lanes.is_empty() {
            self.lanes.push(0);
        }
        let wildcards = |op: &Op| op.kind == OpKind::Recv && (op.peer == ANY || op.tag == ANY);
        let program = RankProgram {
            wildcards: self.ops.iter().any(wildcards),
            ops: self.ops.into(),
            first_dependent,
            dependents,
            outbound,
            inbound: [].into(),
            sends,
            cpus: self.cpus + 1,
            lanes: self.lanes.into(),
            nics: self.nics.into(),
            labels: self.labels.into(),
            collectives: [].into(),
        };
        Ok(CheckedRank { program, collectives: self.collectives })
    }
}

/// A rank without cycles, not yet joined with the others.
#[derive(Debug)]
pub(crate) struct CheckedRank {
    program: RankProgram,
    collectives: Vec<Member>,
}

impl CheckedRank {
    /// Puts all sends into group 0 of the plan.
    pub(crate) fn ungroup(&mut self) {
        self.program.ops.iter_mut().filter(|op| op.kind == OpKind::Send).for_each(|op| op.group = 0);
    }
}

/// The edges as compressed rows: where the dependents of each operation begin, and the dependents.
fn by_source(ops: usize, edges: &[(u32, u32)]) -> (Box<[u32]>, Box<[u32]>) {
    let mut first = vec![0u32; ops + 1];
    for &(earlier, _) in edges {
        first[earlier as usize + 1] += 1;
    }
    for op in 0..ops {
        first[op + 1] += first[op];
    }
    let (mut next, mut dependents) = (first.clone(), vec![0; edges.len()]);
    for &(earlier, later) in edges {
        let place = &mut next[earlier as usize];
        dependents[*place as usize] = later;
        *place += 1;
    }
    (first.into(), dependents.into())
}

/// An operation that waits for itself, if there is one.
fn in_a_cycle(first: &[u32], dependents: &[u32]) -> Option<u32> {
    let of = |op: u32| {
        let range = first[op as usize] as usize..first[op as usize + 1] as usize;
        dependents[range].iter().map(|d| d & !ON_START)
    };
    let ops = narrow::<u32>(first.len()) - 1;
    // Operations listed after all they wait for need no search.
    if (0..ops).all(|op| of(op).all(|later| later > op)) {
        return None;
    }
    let mut waits = vec![0u32; ops as usize];
    dependents.iter().for_each(|d| waits[(d & !ON_START) as usize] += 1);
    let mut free: Vec<u32> = (0..ops).filter(|&op| waits[op as usize] == 0).collect();
    while let Some(op) = free.pop() {
        for later in of(op) {
            waits[later as usize] -= 1;
            if waits[later as usize] == 0 {
                free.push(later);
            }
        }
    }
    // Each operation that is left waits for another one that is left: going back from any ends in a cycle.
    let mut before = vec![ANY; ops as usize];
    for op in (0..ops).filter(|&op| waits[op as usize] > 0) {
        of(op).for_each(|later| before[later as usize] = op);
    }
    let mut op = (0..ops).find(|&op| waits[op as usize] > 0)?;
    for _ in 0..ops {
        op = before[op as usize];
    }
    Some(op)
}

/// Sorts the sends into channels, and gives each its own.
fn outbound(ops: &mut [Op]) -> (Box<[Outbound]>, u32) {
    let sends = (0..).zip(&*ops).filter(|(_, op)| op.kind == OpKind::Send);
    let mut sends: Vec<(u32, u32, u32)> = sends.map(|(index, op)| (op.peer, op.tag, index)).collect();
    sends.sort_unstable();
    let mut channels: Vec<Outbound> = Vec::new();
    for (&(dst, tag, op), first) in sends.iter().zip(0..) {
        if channels.last().is_none_or(|last| (last.dst, last.tag) != (dst, tag)) {
            channels.push(Outbound { dst, tag, first, inbound: ANY });
        }
        ops[op as usize].channel = narrow::<u32>(channels.len()) - 1;
    }
    (channels.into(), narrow::<u32>(sends.len()))
}

/// Joins the ranks to a program that runs `rounds` times.
///
/// # Errors
/// If a rank sends what is never received, receives what is never sent, or names a rank that does not exist.
pub(crate) fn check(ranks: Vec<CheckedRank>, rounds: u32, overhead: Time) -> Result<Program, String> {
    let mut joined = Joined::default();
    let join = |CheckedRank { program, collectives }: CheckedRank| RankProgram {
        collectives: joined.add(collectives),
        ..program
    };
    let mut ranks: Box<[RankProgram]> = ranks.into_iter().map(join).collect();
    let count = narrow::<u32>(ranks.len());
    let mut inbound = vec![Vec::new(); ranks.len()];
    // Messages of every inbound channel, then those that no receive has been found for.
    let mut unclaimed = vec![Vec::new(); ranks.len()];
    for (src, rank) in (0..).zip(&mut ranks) {
        if u64::from(rank.sends) * u64::from(rounds) > u64::from(u32::MAX) {
            return Err(format!("rank {src} sends more than {} messages", u32::MAX));
        }
        for channel in 0..narrow::<u32>(rank.outbound.len()) {
            let (messages, out) = (rank.messages(channel), &mut rank.outbound[channel as usize]);
            if out.dst >= count {
                return Err(format!("rank {src} sends to rank {}, but there are {count} ranks", out.dst));
            }
            let at = &mut inbound[out.dst as usize];
            out.inbound = narrow::<u32>(at.len());
            at.push((src, out.tag));
            unclaimed[out.dst as usize].push(u64::from(messages));
        }
    }
    for (((dst, rank), inbound), unclaimed) in (0..).zip(&mut ranks).zip(inbound).zip(&mut unclaimed) {
        rank.inbound = inbound.into();
        claim(dst, count, rank, unclaimed)?;
    }
    Ok(Program { ranks, rounds, overhead, nics: Nics::Chosen, collectives: joined.infos.into() })
}

/// Finds the channel of every receive, and checks that there are as many receives as messages.
fn claim(dst: u32, count: u32, rank: &mut RankProgram, unclaimed: &mut [u64]) -> Result<(), String> {
    let mut wild = 0u64;
    for op in rank.ops.iter_mut().filter(|op| op.kind == OpKind::Recv) {
        if op.peer >= count && op.peer != ANY {
            return Err(format!("rank {dst} receives from rank {}, but there are {count} ranks", op.peer));
        }
        if op.peer == ANY || op.tag == ANY {
            wild += 1;
            continue;
        }
        let channel = rank.inbound.binary_search(&(op.peer, op.tag)).ok();
        let left = channel.and_then(|channel| unclaimed[channel].checked_sub(1));
        let (Some(channel), Some(left)) = (channel, left) else {
            return Err(format!(
                "rank {dst} receives more messages from rank {} with tag {} than that rank sends it",
                op.peer, op.tag
            ));
        };
        (op.channel, unclaimed[channel]) = (narrow::<u32>(channel), left);
    }
    let left: u64 = unclaimed.iter().sum();
    if let Some(channel) = unclaimed.iter().position(|&left| left > 0)
        && left > wild
    {
        let (src, tag) = rank.inbound[channel];
        return Err(if wild == 0 {
            let left = unclaimed[channel];
            format!("rank {dst} does not receive {left} messages that rank {src} sends it with tag {tag}")
        } else {
            format!("rank {dst} has {wild} receives with a wildcard, too few for {left} messages")
        });
    }
    if left < wild {
        return Err(format!("rank {dst} has {wild} receives with a wildcard for {left} messages"));
    }
    Ok(())
}

/// A program of generated ranks, which are free of cycles.
///
/// # Errors
/// If a rank sends more messages than can be numbered.
pub(crate) fn build_all(
    ranks: u32,
    rounds: u32,
    overhead: Time,
    rank: impl FnMut(u32) -> RankBuilder,
) -> Result<Program, String> {
    let mut memory = Meter::default();
    let mut built = Vec::with_capacity(ranks as usize);
    for builder in (0..ranks).map(rank) {
        memory.take(builder.bytes()).map_err(|error| format!("operations of so many ranks that {error}"))?;
        built.push(builder.build().map_err(|op| format!("operation {op} waits for itself"))?);
    }
    check(built, rounds, overhead)
}
