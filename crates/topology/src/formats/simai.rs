//! The topology files of SimAI's ns-3.
//!
//! Line 1: `NODES GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE`; then the ids of the NVSwitches and of the switches; then per link
//! `A B RATE DELAY ERROR_RATE`, for example `0 32 2880Gbps 0.000025ms 0`. GPUs are the other ids. What comes after the announced links is skipped, as
//! ns-3 does.

use std::path::PathBuf;

use netloom_units::names::shorten;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::formats::graph_file::{GraphFile, Reading};
use crate::formats::reader::Reader;
use crate::network::Network;
use crate::topology::BuildContext;

/// A network from a topology file of SimAI (its `network_frontend/ns3` at cef83f9), as its generator `gen_Topo_Template.py` writes them.
///
/// GPUs are the hosts, named by their ids, with one port for each of their links, to NVSwitches and to the network. The scenario combines the ports
/// with `servers.nics`, the number of links of a GPU. Messages within a server use its NVSwitch, all others the network, as in SimAI.
/// NVSwitches and switches are switches; queues, flow
/// control and transport are those of the scenario for both.
///
/// A file whose NVSwitches do not connect the GPUs of one server, as stated in the first line, is refused, and so is one with several NVSwitches per
/// server. The type of the GPUs, by which
/// SimAI chooses constants of NCCL, has no effect.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SimAi {
    /// The file; relative paths start at the directory of the scenario.
    pub path: PathBuf,
    /// Whether two links may join the same two nodes; otherwise a repeated pair is an error.
    #[serde(default)]
    pub parallel_links: bool,
}

/// What a node of the file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Node {
    Gpu,
    NvSwitch,
    Switch,
}

/// A word and its line.
type Word<'a> = (usize, &'a str);

impl SimAi {
    /// A file without parallel links.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        SimAi { path: path.into(), parallel_links: false }
    }

    pub(crate) fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let reader = Reader::open(&self.path, context)?;
        let reading =
            Reading { hosts_per_switch: 0, parallel_links: self.parallel_links, cable: Cable::DEFAULT };
        parse(&reader)?.build(&reader, reading)
    }
}

fn parse(reader: &Reader) -> Result<GraphFile, NetworkError> {
    // ns-3 reads words, wherever lines end.
    let mut words =
        reader.lines().flat_map(|(line, text)| text.split_whitespace().map(move |word| (line, word)));
    let mut next = |expected: &str| -> Result<Word<'_>, NetworkError> {
        words.next().ok_or_else(|| reader.error(0, format!("the file ends where it should have {expected}")))
    };
    let mut header = [0u32; 5];
    let mut header_line = 0;
    for (number, name) in
        header.iter_mut().zip(["NODES", "GPUS_PER_SERVER", "NVSWITCHES", "SWITCHES", "LINKS"])
    {
        let (line, word) = next(name)?;
        header_line = line;
        *number = reader.parse(line, word)?;
    }
    let [nodes, per_server, nvswitches, switches, links] = header;
    let (line, kind) = next("GPU_TYPE")?;
    if line != header_line || kind.parse::<f64>().is_ok() {
        let expected = "expected \"NODES GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE\", such as \"66 8 4 30 512 H100\"";
        return Err(reader.error(header_line, format!("{expected}, found `{}` as the type", shorten(kind))));
    }
    reader.check_nodes(header_line, nodes)?;
    let gpus = u64::from(nodes).checked_sub(u64::from(nvswitches) + u64::from(switches));
    let gpus = gpus.filter(|gpus| per_server > 0 && gpus.is_multiple_of(per_server.into()) && *gpus > 0);
    let Some(gpus) = gpus else {
        let message = format!(
            "expected NODES to be NVSWITCHES, SWITCHES and a multiple of GPUS_PER_SERVER, found {nodes}, {nvswitches}, {switches} and {per_server}"
        );
        return Err(reader.error(header_line, message));
    };
    let id = |(line, word): Word<'_>| reader.node(line, word, nodes);
    let mut kinds = vec![Node::Gpu; nodes as usize];
    for (count, kind, name) in
        [(nvswitches, Node::NvSwitch, "the NVSwitches' ids"), (switches, Node::Switch, "the switches' ids")]
    {
        for _ in 0..count {
            let word = next(name)?;
            let node = id(word)?;
            if kinds[node] != Node::Gpu {
                return Err(reader.error(word.0, format!("{name}: node {node} is named twice")));
            }
            kinds[node] = kind;
        }
    }
    let mut graph = GraphFile::default();
    for (node, kind) in kinds.iter().enumerate() {
        let index = graph.node(&node.to_string(), header_line);
        graph.mark(index, *kind == Node::Gpu);
    }
    // The GPUs at each NVSwitch.
    let mut inside: Vec<Vec<usize>> = vec![Vec::new(); nodes as usize];
    for _ in 0..links {
        let expected = format!("{links} links, each \"A B RATE DELAY ERROR_RATE\"");
        let (a, b) = (next(&expected)?, next(&expected)?);
        let ((rate_line, rate), (delay_line, delay)) = (next(&expected)?, next(&expected)?);
        let (error_line, error_rate) = next(&expected)?;
        let line = a.0;
        let (a, b) = (id(a)?, id(b)?);
        let cable = Cable { rate: reader.parse(rate_line, rate)?, latency: reader.parse(delay_line, delay)? };
        for (gpu, other) in [(a, b), (b, a)] {
            match (kinds[gpu], kinds[other]) {
                (Node::Gpu, Node::NvSwitch) => inside[other].push(gpu),
                (Node::Switch, Node::NvSwitch) => {
                    let message = format!(
                        "{gpu} is a switch and {other} an NVSwitch: expected NVSwitches to have links to the GPUs of a server only"
                    );
                    return Err(reader.error(line, message));
                }
                _ => {}
            }
        }
        let link = graph.link(a, b, cable, line);
        graph.set_link(reader, error_line, link, "error_rate", error_rate)?;
    }
    check_servers(reader, header_line, &kinds, &mut inside, gpus, per_server)?;
    Ok(graph)
}

/// Refuses NVSwitches that do not join the GPUs of a server, whose ids follow each other, or of which a server has several.
fn check_servers(
    reader: &Reader,
    line: usize,
    kinds: &[Node],
    inside: &mut [Vec<usize>],
    gpus: u64,
    per_server: u32,
) -> Result<(), NetworkError> {
    let of_server = per_server as usize;
    let all: Vec<usize> = (0..kinds.len()).filter(|&node| kinds[node] == Node::Gpu).collect();
    let mut at = vec![None; all.len() / of_server];
    for (nvswitch, joined) in inside.iter_mut().enumerate() {
        if kinds[nvswitch] != Node::NvSwitch {
            continue;
        }
        joined.sort_unstable();
        let server = all.chunks(of_server).position(|server| server == joined.as_slice());
        let Some(server) = server else {
            let message = format!(
                "NVSwitch {nvswitch} joins {} GPUs: expected all {per_server} of a server, as GPUS_PER_SERVER says, and no others",
                joined.len()
            );
            return Err(reader.error(line, message));
        };
        if let Some(other) = at[server].replace(nvswitch) {
            let message = format!(
                "NVSwitches {other} and {nvswitch} are in the same server: expected one, with the rate of all of them"
            );
            return Err(reader.error(line, message));
        }
    }
    let joined = at.iter().flatten().count();
    if joined != 0 && joined != at.len() {
        let message = format!(
            "{joined} of {} servers have an NVSwitch: expected one in each, or none",
            gpus / u64::from(per_server)
        );
        return Err(reader.error(line, message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_units::{Rate, Time};

    fn read(text: &str) -> Result<Network, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("topo"), text).unwrap();
        SimAi::new("topo")
            .build(&BuildContext { seed: 1, base_dir: dir.path() })
            .map_err(|error| error.to_string())
    }

    /// Two servers of two GPUs (0 to 3), NVSwitches 4 and 5, a leaf for each rail (6 and 7) and a spine.
    const RAILS: &str = "9 2 2 3 10 H100\n4 5 6 7 8 \n\
        0 4 2880Gbps 0.000025ms 0\n0 6 400Gbps 0.0005ms 0\n1 4 2880Gbps 0.000025ms 0\n1 7 400Gbps 0.0005ms 0\n\
        2 5 2880Gbps 0.000025ms 0\n2 6 400Gbps 0.0005ms 0\n3 5 2880Gbps 0.000025ms 0\n3 7 400Gbps 0.0005ms 0.25\n\
        6 8 400Gbps 0.0005ms 0\n7 8 400Gbps 0.0005ms 0\n";

    #[test]
    fn gpus_have_a_port_for_each_of_their_links() {
        let network = read(RAILS).unwrap();
        assert_eq!((network.hosts(), network.switches(), network.links().len()), (8, 5, 10));
        // The network, and an NVSwitch in each server.
        assert_eq!((network.links_per_host(), network.components()), (2, 3));
        let names: Vec<String> = (0..network.nodes()).map(|node| network.node_name(node)).collect();
        assert_eq!(names, ["0.0", "0.1", "1.0", "1.1", "2.0", "2.1", "3.0", "3.1", "4", "5", "6", "7", "8"]);
        let ends: Vec<String> = (0..8).map(|host| network.node_name(network.edge_switch(host))).collect();
        assert_eq!(ends, ["4", "6", "4", "7", "5", "6", "5", "7"]);
        let cable = |host: u32| network.channel(network.ports(host)[0]);
        assert_eq!((cable(0).rate, cable(0).latency), (Rate::from_gbps(2880), Time::from_ns(25)));
        assert_eq!((cable(1).rate, cable(1).latency), (Rate::from_gbps(400), Time::from_ns(500)));
        assert_eq!(network.error_rates(), [(7, 0.25)]);
        // ns-3 reads words, and no more links than are announced.
        assert_eq!(read(&RAILS.replace("4 5 6 7 8 \n", "4\n5\n6 7 8\n")).unwrap(), network);
        assert_eq!(read(&format!("{RAILS}0 7 1Gbps 1ns 0\n")).unwrap(), network);
    }

    #[test]
    fn what_is_no_cluster_is_named_with_its_line() {
        let cases = [
            (
                "9 2 2 3 10 H100",
                "9 3 10",
                ":2: expected \"NODES GPUS_PER_SERVER NVSWITCHES SWITCHES LINKS GPU_TYPE\"",
            ),
            ("9 2 2 3 10 H100", "9 2 2 3 10", "found `4` as the type"),
            (
                "9 2 2 3 10 H100",
                "9 3 2 3 10 H100",
                ":1: expected NODES to be NVSWITCHES, SWITCHES and a multiple of GPUS_PER_SERVER, found 9, 2, 3 and 3",
            ),
            ("9 2 2 3 10 H100", "9 2 20 3 10 H100", ":1: expected NODES to be"),
            ("9 2 2 3 10 H100", "9 4 2 3 10 H100", ":1: NVSwitch 4 joins 2 GPUs: expected all 4 of a server"),
            ("9 2 2 3 10 H100", "9 2 2 3 11 H100", "the file ends where it should have 11 links"),
            ("9 2 2 3 10 H100", "900000 2 2 3 10 H100", "the file is too short to name them"),
            ("4 5 6 7 8 \n", "4 4 6 7 8\n", ":2: the NVSwitches' ids: node 4 is named twice"),
            ("4 5 6 7 8 \n", "4 5 6 7 9\n", ":2: expected a node below 9, found 9"),
            ("2 5 2880Gbps", "2 4 2880Gbps", ":1: NVSwitch 4 joins 3 GPUs"),
            ("6 8 400Gbps", "6 5 400Gbps", ":11: 6 is a switch and 5 an NVSwitch"),
            ("0 6 400Gbps", "0 6 400Gib", ":4: \"400Gib\": "),
            (
                "0 6 400Gbps 0.0005ms 0\n",
                "0 6 400Gbps 0.0005ms 1\n",
                ":4: error_rate: expected the probability",
            ),
            ("0 6 400Gbps", "0 2 400Gbps", ":4: 0 and 2 are both hosts"),
            ("2 6 400Gbps", "1 6 400Gbps", "expected as many at every host"),
        ];
        let mut wrong = Vec::new();
        for (from, to, expected) in cases {
            assert!(RAILS.contains(from), "{from}");
            match read(&RAILS.replacen(from, to, 1)) {
                Err(message) if message.contains(expected) => {}
                other => wrong.push(format!("{to}: {other:?}")),
            }
        }
        let several = RAILS
            .replace("9 2 2 3 10", "8 4 2 2 10")
            .replace("4 5 6 7 8", "4 5 6 7")
            .replace("2 5 ", "2 4 ")
            .replace("3 5 ", "3 4 ");
        let several =
            several.replace("6 8", "0 5").replace("7 8", "1 5") + "2 5 1Gbps 1ns 0\n3 5 1Gbps 1ns 0\n";
        let message = read(&several.replace("2 10 H100", "2 12 H100")).unwrap_err();
        if !message.contains("NVSwitches 4 and 5 are in the same server") {
            wrong.push(message);
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
