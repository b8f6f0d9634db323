//! The topology files of the HPCC and ConWeave ns-3 simulators.
//!
//! Line 1: `NODES SWITCHES LINKS`; line 2: the switches' ids; then per link `A B RATE DELAY ERROR_RATE`, for example
//! `0 32 100Gbps 1000ns 0.0`. ns-3 reads as many links as the first line announces; what comes after them in the files that come with the
//! simulators is free text, or the links of larger networks.

use std::fmt::Write as _;
use std::path::PathBuf;

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
/// Hosts are the nodes that are not among the switches, in the order of their ids. Nodes are named by their ids, also in `ns3-flows`; ids may be in
/// any order. As in ns-3, the number of links is that of the first line, and everything after them is skipped, even if it is more links. A link's
/// error rate is the probability that a packet, data or control, is lost on it, independently in each direction, as in ns-3.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ns3 {
    /// The file; relative paths start at the directory of the scenario.
    pub path: PathBuf,
    /// Whether two links may join the same two nodes; otherwise a repeated pair is an error.
    #[serde(default)]
    pub parallel_links: bool,
    /// Links of every host. Each link has its own NIC, which is a host of the network: `7.0` and `7.1` are those of host 7. The scenario's `servers`
    /// combines them into hosts again, with the same number of `nics`.
    /// The switches' ids then follow those of the hosts.
    #[serde(default = "one")]
    pub nics: u32,
}

fn one() -> u32 {
    1
}

impl Ns3 {
    /// A file whose hosts have one link each, without parallel links.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Ns3 { path: path.into(), parallel_links: false, nics: one() }
    }

    pub(crate) fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let reader = Reader::open(&self.path, context)?;
        let reading =
            Reading { hosts_per_switch: 0, parallel_links: self.parallel_links, cable: Cable::DEFAULT };
        self.parse(&reader)?.build(&reader, reading)
    }

    fn parse(&self, reader: &Reader) -> Result<GraphFile, NetworkError> {
        let words = |line: &'_ str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let mut lines =
            reader.lines().map(|(number, line)| (number, words(line))).filter(|(_, words)| !words.is_empty());
        let mut next = |expected: &str| {
            let ends = || reader.error(0, format!("the file ends where it should have {expected}"));
            lines.next().ok_or_else(ends)
        };

        let (header_line, header) = next("\"NODES SWITCHES LINKS\"")?;
        let [nodes, switches, links] = &header[..] else {
            return Err(reader.error(header_line, other_header(&header)));
        };
        let nodes: u32 = reader.parse(header_line, nodes)?;
        let (switches, links): (usize, usize) =
            (reader.parse(header_line, switches)?, reader.parse(header_line, links)?);
        reader.check_nodes(header_line, nodes)?;
        if self.nics == 0 {
            return Err(netloom_units::Invalid::new("nics", "at least 1", 0).into());
        }
        let id = |line: usize, word: &str| reader.node(line, word, nodes);

        let mut is_host = vec![true; nodes as usize];
        if switches > 0 {
            let (line, ids) = next("the switches' ids")?;
            if ids.len() != switches {
                return Err(reader.error(line, format!("expected {switches} switches, found {}", ids.len())));
            }
            for word in ids {
                is_host[id(line, &word)?] = false;
            }
            let hosts = is_host.iter().filter(|&&is_host| is_host).count();
            if self.nics > 1 && is_host[..hosts].contains(&false) {
                let problem = "with several `nics` the switches' ids follow those of the hosts, by which servers are numbered";
                return Err(reader.error(line, format!("{problem}: expected none below {hosts}")));
            }
        }
        let mut graph = GraphFile::default();
        // The first node of every id: the switch, the host, or the host's first NIC.
        let mut first = Vec::with_capacity(is_host.len());
        for (id, &is_host) in is_host.iter().enumerate() {
            let names = match is_host && self.nics > 1 {
                true => (0..self.nics).map(|nic| format!("{id}.{nic}")).collect(),
                false => vec![id.to_string()],
            };
            let of_id: Vec<usize> = names.iter().map(|name| graph.node(name, header_line)).collect();
            of_id.iter().for_each(|&node| graph.mark(node, is_host));
            first.push(of_id[0]);
        }
        let mut used = vec![0; is_host.len()];
        for _ in 0..links {
            let (line, entry) = next(&format!("{links} links"))?;
            let [a, b, rate, delay, error_rate] = &entry[..] else {
                return Err(reader.error(
                    line,
                    format!("expected \"A B RATE DELAY ERROR_RATE\", found {} words", entry.len()),
                ));
            };
            let cable = Cable { rate: reader.parse(line, rate)?, latency: reader.parse(line, delay)? };
            let mut end = |word: &str| {
                let id = id(line, word)?;
                if !is_host[id] || self.nics == 1 {
                    return Ok(first[id]);
                }
                used[id] += 1;
                match used[id] {
                    used if used <= self.nics => Ok(first[id] + used as usize - 1),
                    _ => {
                        Err(reader.error(line, format!("host {id} has more links than nics = {}", self.nics)))
                    }
                }
            };
            let (a, b) = (end(a)?, end(b)?);
            let link = graph.link(a, b, cable, line);
            graph.set_link(reader, line, link, "error_rate", error_rate)?;
        }
        Ok(graph)
    }
}

/// What is wrong with a first line that is not `NODES SWITCHES LINKS`: those of simulators that grew out of HPCC's are known.
fn other_header(header: &[String]) -> String {
    let expected = "expected \"NODES SWITCHES LINKS\"";
    let is_number = |word: &String| word.parse::<u64>().is_ok();
    let (numbers, words) = header.split_at(header.iter().take_while(|word| is_number(word)).count());
    match (numbers, words) {
        ([nodes, switches, _, links] | [nodes, switches, _, links, _, _], []) => format!(
            "this is the header of a topology of PowerTCP's simulator (NODES SWITCHES TORS LINKS, perhaps with two capacities): {expected}, here \
             \"{nodes} {switches} {links}\"; what follows is the same in both"
        ),
        ([_, _, _, _, _], [gpu, ..]) => format!(
            "this is the header of a topology of SimAI (NODES GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE, here {gpu}), which topology.kind = \
             \"simai-topology\" reads: {expected}"
        ),
        _ => format!("{expected}, found {} words", header.len()),
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
