//! From a file to nodes: protobuf or JSON, compressed by gzip or not, whatever the file is called.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use netloom_units::memory::Meter;
use prost::Message;

use super::{GlobalMetadata, Node, json};
use crate::error::JobError;

/// The first bytes of what gzip compresses.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Memory of a node while its file is read, beside its bytes.
const BYTES_PER_NODE: u64 = size_of::<Node>() as u64 + 256;

/// Bytes of the longest message that is read; what is longer is no trace.
const LONGEST_MESSAGE: u64 = 1 << 28;

/// The execution trace of a rank: nodes with numbers of their own, which wait for each other only.
#[derive(Debug)]
pub struct Trace {
    /// In the order of the file.
    pub nodes: Vec<Node>,
    /// How its `ctrl_deps` were read, in words, where that is not as they are.
    pub absent: Option<String>,
}

/// Reads an execution trace.
///
/// # Errors
/// If the file cannot be read, is no trace or is cut off; if two nodes have one number, or one takes in what no node makes.
pub fn read(file: &Path) -> Result<Trace, JobError> {
    let unreadable = |source| JobError::Read { file: file.to_owned(), source };
    let mut reader = BufReader::with_capacity(1 << 16, File::open(file).map_err(unreadable)?);
    let is_compressed = reader.fill_buf().map_err(unreadable)?.starts_with(&GZIP);
    let mut reader: Box<dyn BufRead> = match is_compressed {
        true => Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(reader))),
        false => Box::new(reader),
    };
    let is_json = json::is_json(reader.fill_buf().map_err(unreadable)?);
    let mut found = Found { file, nodes: Vec::new(), memory: Meter::default() };
    match is_json {
        true => json::read(reader, &mut found)?,
        false => read_messages(reader, &mut found)?,
    }
    let mut nodes = found.nodes;
    let absent = connect(file, &mut nodes)?;
    Ok(Trace { nodes, absent })
}

/// Checks that nodes wait for others that are there. PyTorch's tracer writes the caller of an operation into `ctrl_deps`, and the converter leaves out callers that do nothing
/// themselves: these have been called when their callees begin.
fn connect(file: &Path, nodes: &mut [Node]) -> Result<Option<String>, JobError> {
    let mut ids: Vec<u64> = nodes.iter().map(|node| node.id).collect();
    ids.sort_unstable();
    if let Some(pair) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        let twice = nodes.iter().rfind(|node| node.id == pair[0]);
        let problem = "expected a number that no other node has";
        return Err(twice.map_or_else(|| JobError::file(file, problem), |node| node.fail(file, problem)));
    }
    let is_there = |id: &u64| ids.binary_search(id).is_ok();
    let mut first = None;
    let mut count = 0;
    for node in &mut *nodes {
        if let Some(missing) = node.data_deps.iter().find(|id| !is_there(id)) {
            return Err(node.fail(file, format!("data_deps: there is no node {missing} to wait for")));
        }
        if let Some(&missing) = node.ctrl_deps.iter().find(|id| !is_there(id)) {
            first.get_or_insert((node.id, missing));
            count += 1;
            node.ctrl_deps.retain(is_there);
        }
    }
    let mut notes = Vec::new();
    if let Some((node, missing)) = first {
        notes.push(format!(
            "{count} nodes wait for nodes that are not there, such as node {node} for node {missing}: these count as done"
        ));
    }
    if has_cycle(nodes, true) && !has_cycle(nodes, false) {
        nodes.iter_mut().for_each(|node| node.ctrl_deps.clear());
        notes.push(
            "with them nodes wait for each other in a cycle: only data_deps count, as in Chakra's own feeder"
                .to_owned(),
        );
    }
    Ok((!notes.is_empty()).then(|| format!("{}: ctrl_deps: {}", file.display(), notes.join("; "))))
}

/// Whether nodes wait for each other in a cycle, by `data_deps` or by both lists.
fn has_cycle(nodes: &[Node], with_ctrl: bool) -> bool {
    let mut places: Vec<(u64, u32)> = nodes.iter().map(|node| node.id).zip(0..).collect();
    places.sort_unstable();
    let place = |id: &u64| places[places.partition_point(|(other, _)| other < id)].1;
    let ctrl = |node: &Node| if with_ctrl { node.ctrl_deps.len() } else { 0 };
    let waits_of = |node: &Node| -> Vec<u32> {
        node.ctrl_deps[..ctrl(node)].iter().chain(&node.data_deps).map(place).collect()
    };
    // Nodes are mostly listed after all that they wait for.
    if (0..).zip(nodes).all(|(at, node)| waits_of(node).iter().all(|&wait| wait < at)) {
        return false;
    }
    let mut waits: Vec<usize> = nodes.iter().map(|node| ctrl(node) + node.data_deps.len()).collect();
    let mut later = vec![Vec::new(); nodes.len()];
    for (at, node) in (0..).zip(nodes) {
        waits_of(node).into_iter().for_each(|wait| later[wait as usize].push(at));
    }
    let mut free: Vec<usize> = (0..nodes.len()).filter(|&at| waits[at] == 0).collect();
    let mut done = 0;
    while let Some(at) = free.pop() {
        done += 1;
        for &next in &later[at] {
            let next: usize = next;
            waits[next] -= 1;
            if waits[next] == 0 {
                free.push(next);
            }
        }
    }
    done < nodes.len()
}

/// One sentence for what several traces have in common.
pub fn note(absent: &[String]) -> Option<String> {
    let (first, others) = absent.split_first()?;
    Some(match others.len() {
        0 => first.clone(),
        others => format!("{first} (and so in {others} more traces)"),
    })
}

/// An execution trace of these nodes in protobuf, as [`read`] takes it.
pub fn encode(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = GlobalMetadata { version: "0.0.4".to_owned() }.encode_length_delimited_to_vec();
    nodes.iter().for_each(|node| bytes.extend(node.encode_length_delimited_to_vec()));
    bytes
}

/// The nodes of a file, as far as they have been read.
pub(super) struct Found<'a> {
    file: &'a Path,
    nodes: Vec<Node>,
    memory: Meter,
}

impl Found<'_> {
    /// Adds a node that took this many bytes.
    pub(super) fn add(&mut self, node: Node, bytes: u64) -> Result<(), JobError> {
        self.take(BYTES_PER_NODE + bytes)?;
        self.nodes.push(node);
        Ok(())
    }

    /// Asks for memory.
    pub(super) fn take(&mut self, bytes: u64) -> Result<(), JobError> {
        self.memory.take(bytes).map_err(|error| JobError::file(self.file, error))
    }

    /// Why what comes next is no node.
    pub(super) fn malformed(&self, problem: impl Display) -> JobError {
        let what = match self.nodes.last() {
            None => "the first node".to_owned(),
            Some(last) => format!("the node after node {}", last.id),
        };
        self.no_trace(format!("{what}: {problem}"))
    }

    pub(super) fn no_trace(&self, problem: impl Display) -> JobError {
        JobError::file(self.file, format!("no Chakra execution trace, or a truncated one: {problem}"))
    }
}

/// Reads messages of protobuf, a length before each.
fn read_messages(mut reader: Box<dyn BufRead>, found: &mut Found) -> Result<(), JobError> {
    let mut message = Vec::new();
    let its_metadata =
        |found: &Found, problem: &dyn Display| found.no_trace(format!("its metadata: {problem}"));
    let is_there = next_message(&mut reader, &mut message).map_err(|error| its_metadata(found, &error))?;
    if !is_there {
        return Err(its_metadata(found, &"the file is empty"));
    }
    GlobalMetadata::decode(&message[..]).map_err(|error| its_metadata(found, &error))?;
    while next_message(&mut reader, &mut message).map_err(|error| found.malformed(error))? {
        let node = Node::decode(&message[..]).map_err(|error| found.malformed(error))?;
        found.add(node, message.len() as u64)?;
    }
    Ok(())
}

/// Reads the bytes of the next message; false at the end of the file.
fn next_message(reader: &mut impl BufRead, message: &mut Vec<u8>) -> io::Result<bool> {
    if reader.fill_buf()?.is_empty() {
        return Ok(false);
    }
    let invalid = |problem: &str| io::Error::new(io::ErrorKind::InvalidData, problem.to_owned());
    let mut length = 0u64;
    for shift in (0..).step_by(7) {
        let mut byte = [0];
        reader.read_exact(&mut byte)?;
        length |= u64::from(byte[0] & 127) << shift;
        if length > LONGEST_MESSAGE || shift > 28 {
            return Err(invalid("expected a length of a message"));
        }
        if byte[0] < 128 {
            break;
        }
    }
    message.clear();
    let read = reader.by_ref().take(length).read_to_end(message)? as u64;
    match read == length {
        true => Ok(true),
        false => Err(invalid(&format!("expected {length} bytes, and the file ends after {read}"))),
    }
}
