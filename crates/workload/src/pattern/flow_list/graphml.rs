//! Flow lists and traffic matrices in GraphML, as NetworkX writes a directed graph: an edge is a flow.

use std::collections::HashMap;
use std::path::Path;

use netloom_units::memory::read_text;
use netloom_units::{Bytes, Time};
use roxmltree::{Document, Node};

use crate::WorkloadError;
use crate::pattern::flows::{Flows, Speaks};

/// Memory of the parsed file beside its text, as a multiple of the text; measured at 6 to 12.
const TIMES: u64 = 16;

pub(super) fn read(file: &Path, flows: &mut Flows) -> Result<(), WorkloadError> {
    let text =
        read_text(file, TIMES).map_err(|source| WorkloadError::Read { file: file.to_owned(), source })?;
    let document = Document::parse(&text).map_err(|error| {
        WorkloadError::line(file, u64::from(error.pos().row), format!("malformed XML: {error}"))
    })?;
    let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at).collect();
    let line = |node: &Node<'_, '_>| ends.partition_point(|&end| end < node.range().start) as u64 + 1;
    let root = document.root_element();
    let is = |node: &Node<'_, '_>, tag: &str| node.is_element() && node.tag_name().name() == tag;
    let keys: HashMap<&str, &str> = root
        .children()
        .filter(|child| is(child, "key"))
        .filter_map(|key| Some((key.attribute("id")?, key.attribute("attr.name")?)))
        .collect();
    let graph = root.children().find(|child| is(child, "graph"));
    let graph = graph.ok_or_else(|| WorkloadError::file(file, "no graph element in the file"))?;
    if graph.attribute("edgedefault") != Some("directed") {
        let problem =
            "expected a directed graph (edgedefault): an edge is a flow from its source to its target";
        return Err(WorkloadError::line(file, line(&graph), problem));
    }
    for edge in graph.children().filter(|child| is(child, "edge")) {
        let at = line(&edge);
        let fail = |problem: String| WorkloadError::line(file, at, problem);
        let end = |name: &str| match edge.attribute(name) {
            Some(node) => flows.rank(at, name, node, Speaks::InNames),
            None => Err(fail(format!("edge without {name}"))),
        };
        let (src, dst) = (end("source")?, end("target")?);
        let data = |wanted: &str| {
            let mut entries = edge.children().filter(|child| is(child, "data"));
            let entry = entries.find(|data| {
                data.attribute("key").map(|key| keys.get(key).copied().unwrap_or(key)) == Some(wanted)
            });
            entry.map(|entry| entry.text().unwrap_or_default().trim())
        };
        let Some(bytes) = data("bytes") else {
            return Err(fail("edge without an attribute `bytes`".to_owned()));
        };
        let size = bytes.parse::<u64>().map(Bytes).or_else(|_| bytes.parse::<Bytes>());
        let size = size.map_err(|_| {
            fail(format!("bytes: expected a number of bytes or a size such as \"64KiB\", found \"{bytes}\""))
        })?;
        let start = match data("start_ps") {
            None => None,
            Some(start) => Some(Time(start.parse().map_err(|_| {
                fail(format!("start_ps: expected a whole number of picoseconds, found \"{start}\""))
            })?)),
        };
        flows.add_entry(at, src, dst, size, start)?;
    }
    Ok(())
}
