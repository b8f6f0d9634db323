//! Workloads whose ranks are GPUs: where each GPU is, what joins those of a server, and how their programs are put together.
//!
//! Without [`Servers`](crate::Servers) a GPU is a host of the network. With them GPU g of server s is rank s·k + g, where k is the number of
//! GPUs of a server: an endpoint of the workload, unless the scale-up network is ideal. Then one program per server runs all of its GPUs: each has a CPU
//! for its computation and one for its port of the scale-up network. So what goes on inside a server is exact without a simulated network: a message takes the
//! latency and its bytes at the rate of the port, which sends one at a time.

pub(crate) mod nccl;
#[cfg(test)]
mod tests;
pub(crate) mod transfers;

use std::collections::HashMap;
use std::rc::Rc;

use self::transfers::{Method, Operation, Schedule, Transfers};
use crate::pattern::bytes_of;
use crate::plan::Setting;
use crate::program::{Accept, CollectiveKind, Program, RankBuilder, check};
use crate::servers::Gpus as Known;
use crate::{NicSelection, ScaleUp, WorkloadError};
use netloom_units::memory::Meter;
use netloom_units::{Bytes, Rate, Time, narrow};

/// CPUs of a GPU: its computation, its port of the scale-up network, what takes no time.
const CPUS: u16 = 3;
const PORT: u16 = 1;
const FREE: u16 = 2;

/// Bytes that an operation takes: itself, its channel, what it waits for, its state.
const BYTES_PER_OPERATION: u64 = 56;

/// Messages that a rank sends to one peer at a time in a channel of an operation, steps of a ring and pieces: enough that one is on its way while the one before is
/// acknowledged. With no limit, steps of a ring that have once been held up leave together, each at a part of the rate, at every rank in turn and for good.
const IN_FLIGHT: usize = 2;

/// Where the GPUs of a workload are.
#[derive(Clone, Debug)]
pub(crate) struct Gpus {
    /// GPUs that the program of an endpoint runs: those of a server whose inside is ideal; otherwise each is an endpoint.
    pub(crate) per_server: u32,
    /// Consecutive GPUs that a scale-up network joins, ideal or not; 1 where there is none.
    pub(crate) joined: u32,
    pub(crate) servers: u32,
    scale_up: ScaleUp,
    /// Whether a message leaves by the NIC of a GPU.
    has_own_nics: bool,
    /// Rate of a GPU's own NIC.
    pub(crate) nic_rate: Rate,
}

impl Gpus {
    /// The GPUs of a setting.
    ///
    /// # Errors
    /// Servers whose GPUs are not named.
    pub(crate) fn new(setting: &Setting) -> Result<Self, WorkloadError> {
        let rails = setting.endpoints.rails;
        let known = rails.map_or(Known::Endpoints { of_server: 1 }, |rails| rails.gpus());
        let (per_server, joined, scale_up) = match known {
            Known::None => {
                let expected = "`servers.gpus`, which says whose NICs they are, as the ranks are GPUs";
                return Err(WorkloadError::parameter("kind", expected, "`servers` without it"));
            }
            Known::Endpoints { of_server } => {
                let is_joined = rails.is_some_and(|rails| rails.has_scale_up());
                (1, if is_joined { of_server } else { 1 }, ScaleUp::default())
            }
            Known::InServers { count, scale_up } => (count, count, scale_up),
        };
        let slowest =
            setting.placed.iter().map(|&host| setting.endpoints.rate(host).0 / u64::from(per_server));
        Ok(Gpus {
            per_server,
            joined,
            servers: setting.ranks(),
            scale_up,
            has_own_nics: rails.is_some_and(|rails| rails.nic_selection() == NicSelection::Gpu),
            nic_rate: Rate(slowest.min().unwrap_or(1).max(1)),
        })
    }

    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.servers * self.per_server
    }

    /// Whether all of these are in one server.
    pub(crate) fn in_one_server(&self, gpus: &[u32]) -> bool {
        self.per_server > 1 && gpus.iter().all(|gpu| gpu / self.per_server == gpus[0] / self.per_server)
    }

    /// How many consecutive members of a group each server has: 1 if not the same number in each.
    pub(crate) fn inner(&self, members: &[u32]) -> u32 {
        let server = |&gpu: &u32| gpu / self.joined;
        let first = members.iter().take_while(|gpu| server(gpu) == server(&members[0])).count();
        let even = members.len().is_multiple_of(first)
            && members.chunks(first).all(|chunk| chunk.iter().all(|gpu| server(gpu) == server(&chunk[0])));
        if even { narrow::<u32>(first) } else { 1 }
    }

    /// How many latencies an operation takes among n GPUs of one server, and how many bytes leave a GPU.
    fn inside(operation: Operation, n: u32, size: Bytes) -> (u64, Bytes) {
        let (n, steps) = (u64::from(n), u64::from(n) - 1);
        let share = |times: u64| Bytes(narrow::<u64>(u128::from(size.0) * u128::from(times) / u128::from(n)));
        match operation {
            Operation::AllReduce => (2 * steps, share(2 * steps)),
            Operation::AllGather | Operation::ReduceScatter => (steps, share(steps)),
            Operation::AllToAll => (1, share(steps)),
            Operation::Broadcast => (1, size),
        }
    }

    /// How long an operation takes among n GPUs of one server.
    pub(crate) fn time_inside(&self, operation: Operation, n: u32, size: Bytes) -> Time {
        let ScaleUp { rate, latency, .. } = self.scale_up;
        let (steps, bytes) = Gpus::inside(operation, n, size);
        Time(latency.0.saturating_mul(steps).saturating_add(rate.serialize(bytes).0))
    }

    /// How long a message takes from one GPU of a server to another.
    fn hop(&self, bytes: Bytes) -> Time {
        Time(self.scale_up.latency.0.saturating_add(self.scale_up.rate.serialize(bytes).0))
    }

    /// Refuses programs that the memory has no room for, before they are made; a GPU has about this many operations.
    ///
    /// # Errors
    /// How much memory there would have to be.
    pub(crate) fn afford(&self, operations: u64) -> Result<(), String> {
        let all = operations.saturating_mul(self.count().into());
        let taken = Meter::default().take(all.saturating_mul(BYTES_PER_OPERATION));
        taken.map_err(|error| format!("a program of {all} operations, so large that {error}"))
    }

    /// How many operations of a GPU a collective takes.
    pub(crate) fn operations(&self, comm: &Comm, operation: Operation, size: Bytes) -> u64 {
        if comm.members.len() < 2 {
            return 0;
        }
        if self.in_one_server(&comm.members) {
            return 2;
        }
        let transfers = comm.schedule(self, operation, size).transfers(0).0.len() as u64;
        // Inside servers a send is two.
        transfers * 2 * u64::from(comm.channels) * u64::from(comm.chunks)
    }

    /// The program of all servers, GPU by GPU, which runs `rounds` times; `groups` has the group of the plan of each kind of communication.
    ///
    /// # Errors
    /// More operations than the memory, or a rank's numbers, have room for.
    pub(crate) fn program(
        &self,
        servers: u32,
        rounds: u32,
        groups: [u8; KINDS],
        mut add: impl FnMut(&mut Builder<'_>, u32),
    ) -> Result<(Program, Cost), String> {
        let (mut memory, mut cache, mut cost) = (Meter::default(), Cache::default(), Cost::default());
        let mut built = Vec::with_capacity(servers as usize);
        for server in 0..servers {
            let mut builder = Builder {
                gpus: self,
                server,
                ops: RankBuilder::default(),
                meetings: HashMap::new(),
                cache: &mut cache,
                volumes: [Volume::default(); KINDS],
                groups,
            };
            for gpu in server * self.per_server..(server + 1) * self.per_server {
                builder.volumes = [Volume::default(); KINDS];
                builder.ops.begin_lane();
                add(&mut builder, gpu);
                for (all, own) in cost.volumes.iter_mut().zip(builder.volumes) {
                    all.note(own);
                }
            }
            cost.operations += builder.ops.len() as u64;
            cost.memory += builder.ops.bytes();
            memory.take(builder.ops.bytes()).map_err(|error| format!("a program so large that {error}"))?;
            built.push(builder.ops.build().map_err(|op| format!("operation {op} waits for itself"))?);
        }
        let program = check(built, rounds, Time::ZERO)?;
        Ok((if self.has_own_nics { program.with_own_nics(CPUS) } else { program }, cost))
    }
}

/// Kinds of communication at most.
pub(crate) const KINDS: usize = 8;

/// What GPUs send in one kind of communication in a round.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Volume {
    /// Bytes of all that enter the network, and of the GPU that sends most.
    pub(crate) network: (u64, u64),
    /// Bytes that go over the scale-up network, likewise.
    pub(crate) inside: (u64, u64),
}

impl Volume {
    fn note(&mut self, own: Volume) {
        let add = |(all, most): &mut (u64, u64), own: u64| {
            (*all, *most) = (all.saturating_add(own), own.max(*most))
        };
        add(&mut self.network, own.network.0);
        add(&mut self.inside, own.inside.0);
    }
}

/// What a program is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cost {
    /// By kind of communication.
    pub(crate) volumes: [Volume; KINDS],
    /// Operations in a round.
    pub(crate) operations: u64,
    /// Bytes of memory that they take while they are put together.
    pub(crate) memory: u64,
}

/// Some GPUs that communicate, and how.
#[derive(Clone, Debug)]
pub(crate) struct Comm {
    /// The GPUs, ascending.
    pub(crate) members: Rc<[u32]>,
    /// Its first tag: all of its messages have tags from here on, which no other kind of communication has.
    pub(crate) tag: u32,
    /// The number of its kind, and its name.
    pub(crate) kind: u8,
    pub(crate) name: &'static str,
    pub(crate) method: Method,
    /// Parts of an operation that go on side by side.
    pub(crate) channels: u32,
    /// Pieces of each part, one behind the other.
    pub(crate) chunks: u32,
}

/// Tags that a [`Comm`] takes at most.
pub(crate) const fn tags(channels: u32, chunks: u32) -> u32 {
    2 * channels * chunks
}

impl Comm {
    /// The same work among other GPUs.
    pub(crate) fn among(&self, members: Rc<[u32]>) -> Self {
        Comm { members, ..self.clone() }
    }

    /// How an operation is done.
    pub(crate) fn schedule(&self, gpus: &Gpus, operation: Operation, size: Bytes) -> Schedule {
        let ranks = narrow::<u32>(self.members.len());
        let inner = gpus.inner(&self.members);
        let method = match self.method {
            Method::Auto => nccl::choose(operation, ranks, inner, size, gpus.nic_rate),
            method => method,
        };
        Schedule { operation, method, ranks, inner }
    }

    /// The order of the members in the ring of a channel. Where a server has several members, each channel begins with another one of them, and
    /// every second server is passed in reverse: so a ring leaves a server by the rail by which it enters the next one.
    fn order(&self, gpus: &Gpus, schedule: &Schedule, channel: u32) -> Vec<u32> {
        let (n, inner) = (schedule.ranks, schedule.inner);
        if schedule.method != Method::Ring || gpus.joined == 1 || inner == 1 {
            return (0..n).collect();
        }
        let place = |at: u32| {
            let (server, step) = (at / inner, at % inner);
            let step = if server.is_multiple_of(2) { step } else { inner - 1 - step };
            server * inner + (step + channel) % inner
        };
        let mut order: Vec<u32> = (0..n).map(place).collect();
        if schedule.operation == Operation::Broadcast {
            // From the first member on.
            let root = order.iter().position(|&member| member == 0).unwrap_or(0);
            order.rotate_left(root);
        }
        order
    }
}

type Cache = HashMap<(Schedule, u32), Rc<Transfers>>;

/// The program of a server while it is put together.
pub(crate) struct Builder<'a> {
    pub(crate) gpus: &'a Gpus,
    server: u32,
    ops: RankBuilder,
    /// Operations inside the server, by the tag of the communication, its first member and its number: where its ranks meet, and its end.
    meetings: HashMap<(u32, u32, u32), (u32, u32)>,
    cache: &'a mut Cache,
    /// What the GPU has sent so far, by kind of communication.
    volumes: [Volume; KINDS],
    /// The group of the plan of each kind.
    groups: [u8; KINDS],
}

impl Builder<'_> {
    fn cpu(&self, gpu: u32, which: u16) -> u16 {
        narrow::<u16>(gpu % self.gpus.per_server) * CPUS + which
    }

    fn calc(&mut self, gpu: u32, which: u16, duration: Time, after: &[u32]) -> u32 {
        let op = self.ops.calc(duration);
        let cpu = self.cpu(gpu, which);
        self.ops.on_cpu(op, cpu);
        after.iter().for_each(|&earlier| self.ops.requires(op, earlier));
        op
    }

    /// A GPU computes.
    pub(crate) fn compute(&mut self, gpu: u32, duration: Time, after: &[u32]) -> u32 {
        self.calc(gpu, 0, duration, after)
    }

    /// What takes no time and is over when all of `after` are.
    pub(crate) fn join(&mut self, gpu: u32, after: &[u32]) -> u32 {
        self.calc(gpu, FREE, Time::ZERO, after)
    }

    /// The tag of a message between two GPUs of these places in their servers.
    fn tag(&self, tag: u32, from: u32, to: u32) -> u32 {
        let k = self.gpus.per_server;
        (tag * k + from % k) * k + to % k
    }

    /// Sends a message; returns what is over when it has been sent.
    pub(crate) fn send(
        &mut self,
        (from, to): (u32, u32),
        bytes: Bytes,
        (tag, kind): (u32, u8),
        after: &[u32],
    ) -> u32 {
        let k = self.gpus.per_server;
        let is_inside = to / k == self.server && k > 1;
        // By way of the GPU that has the rail of the destination, as NCCL's PXN does.
        let crosses = self.gpus.has_own_nics && from % k != to % k;
        let hop = (is_inside || crosses).then(|| self.calc(from, PORT, self.gpus.hop(bytes), after));
        hop.iter().for_each(|&hop| self.ops.communicates(hop));
        let volume = &mut self.volumes[usize::from(kind)];
        let joined = self.gpus.joined;
        let stays = joined > 1 && from / joined == to / joined;
        if stays || hop.is_some() {
            volume.inside.0 += bytes.0;
        }
        if !stays {
            volume.network.0 += bytes.0.max(1);
        }
        let after = hop.as_slice().first().map_or(after, std::slice::from_ref).to_vec();
        let bytes = if is_inside { Bytes(0) } else { bytes };
        let send = self.ops.send(to / k, bytes, self.tag(tag, from, to));
        // The CPU says by which NIC.
        let cpu = self.cpu(if self.gpus.has_own_nics { to } else { from }, FREE);
        self.ops.on_cpu(send, cpu);
        self.ops.in_group(send, self.groups[usize::from(kind)]);
        after.iter().for_each(|&earlier| self.ops.requires(send, earlier));
        send
    }

    /// Receives a message.
    pub(crate) fn recv(&mut self, (from, to): (u32, u32), tag: u32, after: &[u32]) -> u32 {
        let tag = self.tag(tag, from, to);
        let recv = self.ops.recv(Accept::Only(from / self.gpus.per_server), Accept::Only(tag));
        let cpu = self.cpu(to, FREE);
        self.ops.on_cpu(recv, cpu);
        after.iter().for_each(|&earlier| self.ops.requires(recv, earlier));
        recv
    }

    /// The part of a GPU in an operation, the `number`-th of this communication. Returns what is over when the GPU has all data it receives, or
    /// where it receives none, has sent its own; of several pieces, both.
    pub(crate) fn collective(
        &mut self,
        comm: &Comm,
        gpu: u32,
        (operation, size, number): (Operation, Bytes, u32),
        after: &[u32],
    ) -> Vec<u32> {
        let n = narrow::<u32>(comm.members.len());
        if n < 2 {
            return after.to_vec();
        }
        if self.gpus.in_one_server(&comm.members) {
            let first = comm.members[0];
            let key = (comm.tag, first, number);
            let (meeting, end) = match self.meetings.get(&key) {
                Some(&both) => both,
                None => {
                    let begin = self.ops.len();
                    let meeting = self.calc(first, FREE, Time::ZERO, &[]);
                    let duration = self.gpus.time_inside(operation, n, size);
                    let end = self.calc(first, PORT, duration, &[meeting]);
                    self.ops.communicates(end);
                    self.note(comm, begin, (operation, size, number));
                    self.meetings.insert(key, (meeting, end));
                    (meeting, end)
                }
            };
            after.iter().for_each(|&earlier| self.ops.requires(meeting, earlier));
            self.volumes[usize::from(comm.kind)].inside.0 += Gpus::inside(operation, n, size).1.0;
            return vec![end];
        }
        let schedule = comm.schedule(self.gpus, operation, size);
        let start = if after.len() > 2 { vec![self.join(gpu, after)] } else { after.to_vec() };
        let place = comm.members.iter().position(|&member| member == gpu).unwrap_or(0);
        let begin = self.ops.len();
        let (mut last, mut late) = (Vec::new(), Vec::new());
        for channel in 0..comm.channels {
            let order = comm.order(self.gpus, &schedule, channel);
            let own = order.iter().position(|&member| member as usize == place).map_or(0, narrow::<u32>);
            let transfers =
                self.cache.entry((schedule, own)).or_insert_with(|| Rc::new(schedule.transfers(own))).clone();
            let mut pieces: Vec<Vec<u32>> = Vec::new();
            for chunk in 0..comm.chunks {
                let part = channel * comm.chunks + chunk;
                let bytes = bytes_of(size, &[part], comm.channels * comm.chunks);
                let tag = comm.tag + part * 2;
                let mut ops: Vec<u32> = Vec::with_capacity(transfers.0.len());
                for (index, transfer) in transfers.0.iter().enumerate() {
                    let peer = comm.members[order[transfer.peer as usize] as usize];
                    let mut before: Vec<u32> =
                        transfer.after.iter().map(|&earlier| ops[earlier as usize]).collect();
                    if before.is_empty() {
                        before.clone_from(&start);
                    }
                    let tag = tag + transfer.stream;
                    ops.push(if transfer.is_send {
                        if let Some(piece) = pieces.len().checked_sub(IN_FLIGHT) {
                            before.push(pieces[piece][index]);
                        }
                        let bytes = schedule.bytes(bytes, &transfer.blocks);
                        let send = self.send((gpu, peer), bytes, (tag, comm.kind), &before);
                        if let Some(earlier) = transfer.behind {
                            self.ops.irequires(send, ops[earlier as usize]);
                        }
                        send
                    } else {
                        self.recv((peer, gpu), tag, &before)
                    });
                }
                pieces.push(ops);
            }
            // Where sends wait for others, the last ones may begin after all data have come, and have to before those of the next operation.
            let late_sends = transfers.late_sends();
            let waits = comm.chunks as usize > IN_FLIGHT;
            let receives = transfers.0.iter().any(|transfer| !transfer.is_send);
            for ops in pieces {
                let ends = ops.iter().zip(&transfers.0).filter(|(_, it)| waits || it.is_send != receives);
                last.extend(ends.map(|(&op, _)| op));
                late.extend(late_sends.iter().map(|&send| ops[send]));
            }
        }
        self.note(comm, begin, (operation, size, number));
        if last.len() <= 2 && late.is_empty() {
            return last;
        }
        let end = self.join(gpu, &last);
        late.iter().for_each(|&send| self.ops.irequires(end, send));
        vec![end]
    }

    /// Notes that the operations from `begin` on are part of a collective.
    fn note(&mut self, comm: &Comm, begin: usize, (operation, size, number): (Operation, Bytes, u32)) {
        let kind = match operation {
            Operation::AllReduce => CollectiveKind::AllReduce,
            Operation::AllGather => CollectiveKind::AllGather,
            Operation::ReduceScatter => CollectiveKind::ReduceScatter,
            Operation::AllToAll => CollectiveKind::AllToAll,
            Operation::Broadcast => CollectiveKind::Broadcast,
        };
        let (ranks, root) = (narrow::<u32>(comm.members.len()), comm.members[0]);
        let group = if comm.name.is_empty() { String::new() } else { format!("{} {root}", comm.name) };
        self.ops.name_collectives(comm.name, &group);
        // Numbers are those of a step's operations, of which there are fewer than memory has room for.
        let tag = number.wrapping_mul(narrow::<u32>(KINDS)).wrapping_add(comm.kind.into());
        self.ops.part_of_gpu(begin, (tag, root), (kind, ranks, size));
    }
}
