//! Schedules in the binary form of GOAL, which LogGOPSim's `txt2bin` writes.
//!
//! All numbers are little-endian and packed. The file begins with a magic number (8 bytes), the number of ranks (4), the CPUs and NICs needed (1 each), and for
//! every rank where its part begins and ends, counted from behind the magic number (8 each). A part holds how many operations there are and how many of them
//! wait for none (4 each), the latter's indices (4 each), the operations (39 each), and the indices of dependents (4 each). An operation is how many it
//! waits for (4), its type (1), peer (4), size or duration (8), tag (4), CPU and NIC (1 each), and for those that wait for its end, then for those that wait for its
//! start, how many they are and where they begin among the indices of dependents (4 each).

use std::io::{Read, Seek, SeekFrom};

use netloom_units::memory::Meter;
use netloom_units::{Bytes, Time};

use super::How;
use crate::program::{Accept, CheckedRank, MAX_OPS, RankBuilder};

/// The first bytes of a binary schedule.
pub(super) const MAGIC: [u8; 8] = 4223u64.to_le_bytes();

/// The rank or tag of a receive that takes any.
const ANY: u32 = u32::MAX;

/// Bytes of an operation.
const OPERATION: usize = 39;

/// Reads the ranks of a schedule of at most `most`, one part of the file after the other; the file has `length` bytes.
///
/// # Errors
/// What is wrong, in words.
pub(super) fn read(
    file: &mut (impl Read + Seek),
    length: u64,
    most: u32,
    how: How,
) -> Result<Vec<CheckedRank>, String> {
    let mut head = [0; 14];
    let early = |_| "it ends too early".to_owned();
    file.read_exact(&mut head).map_err(early)?;
    let mut cursor = Cursor { bytes: &head, at: 0 };
    if cursor.take() != Ok(MAGIC) {
        return Err("expected the magic number of a binary schedule".to_owned());
    }
    let count = cursor.u32()?;
    match count {
        0 => return Err("expected at least one rank, found none".to_owned()),
        _ if count > most => return Err(format!("the schedule has {count} ranks, the workload {most}")),
        _ => {}
    }
    let mut places = vec![0; 16 * count as usize];
    file.read_exact(&mut places).map_err(early)?;
    let mut places = Cursor { bytes: &places, at: 0 };
    let body = length - MAGIC.len() as u64;
    let mut memory = Meter::default();
    let mut part = Vec::new();
    let mut ranks = Vec::with_capacity(count as usize);
    for rank in 0..count {
        let (begin, end) = (places.u64()?, places.u64()?);
        if begin > end || end > body {
            return Err(format!("the file ends before byte {end} of rank {rank}"));
        }
        let wrong = |problem: &dyn std::fmt::Display| format!("rank {rank}: {problem}");
        // Its operations, and what is kept of each while they run.
        memory.take((end - begin).saturating_mul(2)).map_err(|error| wrong(&error))?;
        file.seek(SeekFrom::Start(begin + MAGIC.len() as u64)).map_err(|error| wrong(&error))?;
        part.clear();
        file.take(end - begin).read_to_end(&mut part).map_err(|error| wrong(&error))?;
        ranks.push(Part { ranks: count, how }.read(&part).map_err(|problem| wrong(&problem))?);
    }
    Ok(ranks)
}

/// What the part of a rank is read with.
struct Part {
    ranks: u32,
    how: How,
}

impl Part {
    fn read(&self, part: &[u8]) -> Result<CheckedRank, String> {
        let mut cursor = Cursor { bytes: part, at: 0 };
        let (ops, free) = (cursor.u32()? as usize, cursor.u32()? as usize);
        let operations = cursor.at.saturating_add(free.saturating_mul(4));
        let dependents = operations.saturating_add(ops.saturating_mul(OPERATION));
        if dependents > part.len() || ops >= MAX_OPS {
            return Err(format!("{ops} operations do not fit into its {} bytes", part.len()));
        }
        let mut builder = RankBuilder::default();
        cursor.at = operations;
        // By operation: how many wait for its end and for its start, and where they begin.
        let mut later = Vec::with_capacity(ops);
        for op in 0..ops {
            let wrong = |problem: String| format!("operation {op}: {problem}");
            later.push(self.operation(&mut cursor, &mut builder).map_err(wrong)?);
        }
        let mut edges = 0;
        for (op, waiting) in (0..).zip(later) {
            for ((count, begin), on_start) in waiting.into_iter().zip([false, true]) {
                edges += count as usize;
                if edges >= MAX_OPS {
                    return Err(format!("expected fewer than {MAX_OPS} dependencies"));
                }
                let at = dependents.saturating_add((begin as usize).saturating_mul(4));
                let mut indices = Cursor { bytes: part, at };
                for _ in 0..count {
                    let later = indices.u32()?;
                    if later as usize >= ops {
                        return Err(format!("expected a dependent below {ops}, found {later}"));
                    }
                    match on_start {
                        false => builder.requires(later, op),
                        true => builder.irequires(later, op),
                    }
                }
            }
        }
        builder
            .build()
            .map_err(|op| format!("operation {op} waits for itself, by way of those that it requires"))
    }

    /// Adds an operation; how many wait for its end and for its start, and where they begin.
    fn operation(
        &self,
        cursor: &mut Cursor<'_>,
        builder: &mut RankBuilder,
    ) -> Result<[(u32, u32); 2], String> {
        // How many it waits for follows from the others.
        cursor.skip(4);
        let ([kind], peer, size, tag, [cpu]) =
            (cursor.take()?, cursor.u32()?, cursor.u64()?, cursor.u32()?, cursor.take()?);
        let peer_is_rank = |wildcard: bool| match peer {
            ANY if wildcard => Ok(Accept::Any),
            _ if peer < self.ranks => Ok(Accept::Only(peer)),
            _ => Err(format!("expected a rank from 0 to {}, found {peer}", self.ranks - 1)),
        };
        let op = match kind {
            1 => {
                peer_is_rank(false)?;
                if tag == ANY {
                    return Err(format!("expected a tag below {ANY}, found {tag}"));
                }
                builder.send(peer, Bytes(size), tag)
            }
            2 => builder.recv(peer_is_rank(true)?, if tag == ANY { Accept::Any } else { Accept::Only(tag) }),
            3 => {
                let time = self.how.time_unit.0.checked_mul(size);
                builder.calc(Time(time.ok_or_else(|| format!("calc {size}: longer than any run can be"))?))
            }
            _ => return Err(format!("expected type 1 (send), 2 (recv) or 3 (calc), found {kind}")),
        };
        builder.on_cpu(op, cpu.into());
        let [nic] = cursor.take()?;
        if kind == 1 {
            self.how.put_on_nic(builder, op, nic.into())?;
        }
        Ok([(cursor.u32()?, cursor.u32()?), (cursor.u32()?, cursor.u32()?)])
    }
}

/// A place in the file.
struct Cursor<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Cursor<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let bytes = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk());
        self.skip(N);
        bytes.copied().ok_or_else(|| "it ends too early".to_owned())
    }

    fn u32(&mut self) -> Result<u32, String> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, String> {
        self.take().map(u64::from_le_bytes)
    }

    fn skip(&mut self, bytes: usize) {
        self.at = self.at.saturating_add(bytes);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use std::io;

    /// An operation as `txt2bin` packs it.
    pub(in super::super) struct Operation {
        pub(in super::super) kind: u8,
        pub(in super::super) peer: u32,
        pub(in super::super) size: u64,
        pub(in super::super) tag: u32,
        pub(in super::super) cpu: u8,
        pub(in super::super) nic: u8,
        /// Those that wait for its end, and those that wait for its start.
        pub(in super::super) later: [&'static [u32]; 2],
    }

    /// A file of the given ranks.
    pub(in super::super) fn pack(ranks: &[&[Operation]]) -> Vec<u8> {
        let parts: Vec<Vec<u8>> = ranks.iter().map(|ops| part(ops)).collect();
        let mut file = MAGIC.to_vec();
        file.extend((ranks.len() as u32).to_le_bytes());
        file.extend([1, 1]);
        let mut at = 6 + 16 * ranks.len() as u64;
        for part in &parts {
            file.extend(at.to_le_bytes());
            at += part.len() as u64;
            file.extend(at.to_le_bytes());
        }
        file.extend(parts.concat());
        file
    }

    fn part(ops: &[Operation]) -> Vec<u8> {
        let waits =
            |op: u32| ops.iter().flat_map(|o| o.later.concat()).filter(|&later| later == op).count() as u32;
        let free: Vec<u32> = (0..ops.len() as u32).filter(|&op| waits(op) == 0).collect();
        let (mut part, mut dependents) = (Vec::new(), Vec::new());
        part.extend([ops.len() as u32, free.len() as u32].map(u32::to_le_bytes).concat());
        part.extend(free.iter().flat_map(|op| op.to_le_bytes()));
        for (index, op) in (0..).zip(ops) {
            part.extend(waits(index).to_le_bytes());
            part.push(op.kind);
            part.extend(op.peer.to_le_bytes());
            part.extend(op.size.to_le_bytes());
            part.extend(op.tag.to_le_bytes());
            part.extend([op.cpu, op.nic]);
            for later in op.later {
                part.extend([later.len() as u32, dependents.len() as u32].map(u32::to_le_bytes).concat());
                dependents.extend_from_slice(later);
            }
        }
        part.extend(dependents.iter().flat_map(|op| op.to_le_bytes()));
        part
    }

    fn calc(size: u64, later: [&'static [u32]; 2]) -> Operation {
        Operation { kind: 3, peer: 0, size, tag: 0, cpu: 0, nic: 0, later }
    }

    #[test]
    fn mistakes_name_rank_and_operation() {
        let how = How { time_unit: Time::from_ns(1), nics: None, keeps_labels: false };
        let read = |file: &[u8]| super::read(&mut io::Cursor::new(file), file.len() as u64, 4, how);
        let error = |file: &[u8]| read(file).unwrap_err();
        let send = |peer| Operation { kind: 1, peer, size: 5, tag: 0, cpu: 0, nic: 0, later: [&[], &[]] };
        for (file, expected) in [
            (pack(&[]), "expected at least one rank"),
            (pack(&[&[], &[], &[], &[], &[]]), "the schedule has 5 ranks, the workload 4"),
            (pack(&[&[send(1)]]), "rank 0: operation 0: expected a rank from 0 to 0, found 1"),
            (pack(&[&[Operation { kind: 7, ..send(0) }]]), "rank 0: operation 0: expected type 1 (send)"),
            (pack(&[&[Operation { tag: ANY, ..send(0) }]]), "rank 0: operation 0: expected a tag below"),
            (pack(&[&[calc(u64::MAX, [&[], &[]])]]), "longer than any run can be"),
            (pack(&[&[calc(1, [&[0], &[]])]]), "rank 0: operation 0 waits for itself"),
            (pack(&[&[calc(1, [&[3], &[]])]]), "rank 0: expected a dependent below 1, found 3"),
        ] {
            assert!(error(&file).contains(expected), "{}", error(&file));
        }
        let whole = pack(&[&[calc(1, [&[], &[1]]), calc(2, [&[], &[]])], &[send(0)]]);
        assert!(read(&whole).is_ok());
        for length in 8..whole.len() {
            assert!(read(&whole[..length]).is_err(), "{length}");
        }
    }
}
