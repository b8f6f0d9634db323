//! The topology files of the HPCC and ConWeave ns-3 simulators.
//!
//! Line 1: `NODES SWITCHES LINKS`; line 2: the switches' ids; then per link `A B RATE DELAY ERROR_RATE`, for example
//! `0 32 100Gbps 1000ns 0.0`. ns-3 reads as many links as the first line announces, and the files that come with the
//! simulators explain themselves in free text after them.

use std::fmt::Write as _;
use std::path::PathBuf;

use netloom_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::formats::graph_file::{GraphFile, Reading};
use crate::formats::reader::Reader;
use crate::network::Network;
use crate::topology::BuildContext;

/// A network from a `topology.txt` of the HPCC or ConWeave ns-3 simulators.
///
/// Hosts are the nodes that are not among the switches, in the order of their ids. Nodes are named by their ids, also in
/// `ns3-flows`, which may lie in any order. Text after the last link is skipped. A link's error rate is the probability that a
/// packet, of data or not, is lost on it, in each direction for itself, as in ns-3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ns3 {
    /// The file; relative paths start at the directory of the scenario.
    pub path: PathBuf,
    /// Whether two links may join the same two nodes; otherwise a repeated pair is an error.
    #[serde(default)]
    pub parallel_links: bool,
}

impl Ns3 {
    pub(crate) fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let reader = Reader::open(&self.path, context)?;
        let reading =
            Reading { hosts_per_switch: 0, parallel_links: self.parallel_links, cable: Cable::DEFAULT };
        parse(&reader)?.build(&reader, reading)
    }
}

fn parse(reader: &Reader) -> Result<GraphFile, NetworkError> {
    let words = |line: &'_ str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut lines =
        reader.lines().map(|(number, line)| (number, words(line))).filter(|(_, words)| !words.is_empty());
    let mut next = |expected: &str| {
        lines.next().ok_or_else(|| reader.error(0, format!("the file ends where it should have {expected}")))
    };

    let (header_line, header) = next("\"NODES SWITCHES LINKS\"")?;
    let [nodes, switches, links] = &header[..] else {
        return Err(reader
            .error(header_line, format!("expected \"NODES SWITCHES LINKS\", found {} words", header.len())));
    };
    let nodes: u32 = reader.parse(header_line, nodes)?;
    let (switches, links): (usize, usize) =
        (reader.parse(header_line, switches)?, reader.parse(header_line, links)?);
    // Every node is named by a link, so a header that promises more nodes than the file has bytes is wrong.
    if nodes as usize > reader.text.len() {
        return Err(reader.error(header_line, format!("{nodes} nodes, but the file cannot name so many")));
    }
    let check = |line: usize, id: u32| match id {
        id if id < nodes => Ok(id as usize),
        _ => Err(reader.error(line, format!("expected a node below {nodes}, found {id}"))),
    };

    let mut graph = GraphFile::default();
    for id in 0..nodes {
        let node = graph.node(&id.to_string(), header_line);
        graph.mark(node, true);
    }
    if switches > 0 {
        let (line, ids) = next("the switches' ids")?;
        if ids.len() != switches {
            return Err(reader.error(line, format!("expected {switches} switches, found {}", ids.len())));
        }
        for id in ids {
            graph.mark(check(line, reader.parse(line, &id)?)?, false);
        }
    }
    for _ in 0..links {
        let (line, entry) = next(&format!("{links} links"))?;
        let [a, b, rate, delay, error_rate] = &entry[..] else {
            return Err(reader.error(
                line,
                format!("expected \"A B RATE DELAY ERROR_RATE\", found {} words", entry.len()),
            ));
        };
        let cable = Cable { rate: reader.parse(line, rate)?, latency: reader.parse(line, delay)? };
        let (a, b) = (check(line, reader.parse(line, a)?)?, check(line, reader.parse(line, b)?)?);
        let link = graph.link(a, b, cable, line);
        graph.set_link(reader, line, link, "error_rate", error_rate)?;
    }
    // What follows is free text, unless it is one more link.
    let is_link = |words: &[String]| {
        let [a, b, rate, delay, _] = words else { return false };
        let is_id = |word: &String| word.parse::<u32>().is_ok();
        is_id(a) && is_id(b) && rate.parse::<Rate>().is_ok() && delay.parse::<Time>().is_ok()
    };
    match lines.find(|(_, words)| is_link(words)) {
        Some((line, _)) => {
            Err(reader.error(line, format!("one more link, but line {header_line} announces {links}")))
        }
        None => Ok(graph),
    }
}

impl Network {
    /// The network as a `topology.txt` of the HPCC and ConWeave ns-3 simulators, which `ns3-topology` reads back.
    ///
    /// Levels, pods and tier names are not part of the format.
    pub fn to_ns3(&self) -> String {
        let mut text = format!("{} {} {}\n", self.nodes(), self.switches(), self.links().len());
        let ids: Vec<String> = (self.hosts()..self.nodes()).map(|switch| switch.to_string()).collect();
        writeln!(text, "{}", ids.join(" ")).expect("writing to a string");
        for (id, link) in (0..).zip(self.links()) {
            // ns-3 has no picoseconds; a decimal fraction of a nanosecond says the same.
            let (whole, fraction) = (link.latency.0 / 1000, link.latency.0 % 1000);
            let fraction = if fraction == 0 { String::new() } else { format!(".{fraction:03}") };
            writeln!(
                text,
                "{} {} {} {whole}{fraction}ns {:?}",
                link.a,
                link.b,
                link.rate,
                self.error_rate(id)
            )
            .expect("writing to a string");
        }
        text
    }
}
