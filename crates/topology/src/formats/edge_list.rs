//! Plain edge lists: one link per line.

use std::fmt::Write as _;

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::formats::graph_file::GraphFile;
use crate::formats::reader::{Reader, graph_format};
use crate::network::Network;

graph_format! {
    /// Any graph from a text file with one link per line: `a b [rate] [latency]`.
    ///
    /// Names are any words; `#` starts a comment; commas may separate the words. Which nodes are hosts, by the first
    /// rule that applies: all nodes named on lines `host NAME…` if the file has such lines; none of them, but
    /// `hosts_per_switch` new ones at every node, if that is positive; otherwise every node that has exactly one link.
    /// Hosts are numbered in the order in which the file names them; faults, named channels and results use the file's names for all nodes.
    EdgeList
}

fn parse(reader: &Reader, default: Cable) -> Result<GraphFile, NetworkError> {
    let mut graph = GraphFile::default();
    for (number, line) in reader.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let words: Vec<&str> = line.split([' ', '\t', ',']).filter(|word| !word.is_empty()).collect();
        match words[..] {
            [] => {}
            ["host", ..] if words.len() > 1 => {
                for name in &words[1..] {
                    let node = graph.node(name, number);
                    graph.mark(node, true);
                }
            }
            [a, b, ref options @ ..] if options.len() <= 2 => {
                let rate = options.first().map_or(Ok(default.rate), |word| reader.parse(number, word))?;
                let latency =
                    options.get(1).map_or(Ok(default.latency), |word| reader.parse(number, word))?;
                let (a, b) = (graph.node(a, number), graph.node(b, number));
                graph.link(a, b, Cable { rate, latency }, number);
            }
            _ => return Err(reader.error(number, "expected \"a b [rate] [latency]\" or \"host NAME…\"")),
        }
    }
    Ok(graph)
}

impl Network {
    /// The network as an edge list that `edge-list` reads back. Nodes have their names where all of these are single words,
    /// otherwise hosts are `h0`, `h1`, …, switches `s0`, `s1`, ….
    ///
    /// Levels, pods and tier names are not part of the format.
    pub fn to_edge_list(&self) -> String {
        let is_word =
            |name: &str| !name.is_empty() && name != "host" && !name.contains([' ', '\t', ',', '#']);
        let are_words = (0..self.nodes())
            .all(|node| is_word(&self.node_name(node)) && !self.node_name(node).contains(char::is_control));
        let name = |node| if are_words { self.node_name(node) } else { self.plain_name(node) };
        let mut text = format!("# {}\n", self.name());
        for host in 0..self.hosts() {
            writeln!(text, "host {}", name(host)).expect("writing to a string");
        }
        for link in self.links() {
            let (a, b) = (name(link.a), name(link.b));
            writeln!(text, "{a} {b} {} {}", link.rate, link.latency).expect("writing to a string");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::LeafSpine;
    use crate::topology::BuildContext;
    use crate::topology::context;
    use netloom_units::{Rate, Time};

    fn read(text: &str, change: impl FnOnce(&mut EdgeList)) -> Result<Network, NetworkError> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("net.txt"), text).unwrap();
        let mut config = EdgeList::new("net.txt");
        change(&mut config);
        config.build(&BuildContext { seed: 0, base_dir: dir.path() })
    }

    fn error(text: &str) -> String {
        read(text, |_| ()).unwrap_err().to_string()
    }

    #[test]
    fn nodes_with_one_link_are_hosts() {
        let text = "# two racks\nx leaf1 100Gbps\ny,leaf1\nz leaf2\nleaf1 leaf2 400Gbps 2us # trunk\n";
        let network = read(text, |_| ()).unwrap();
        assert_eq!((network.hosts(), network.switches()), (3, 2));
        assert_eq!(network.links()[0].rate, Rate::from_gbps(100));
        assert_eq!(
            (network.links()[3].rate, network.links()[3].latency),
            (Rate::from_gbps(400), Time::from_us(2))
        );
        assert_eq!(network.edge_switch(2), 4);
    }

    #[test]
    fn marked_hosts_leave_stub_switches_alone() {
        let network = read("host a b\nb s\na s\ns stub\n", |_| ()).unwrap();
        assert_eq!((network.hosts(), network.switches()), (2, 2));
        assert_eq!(network.links()[0].a, 1, "hosts are numbered as they are marked");
    }

    #[test]
    fn hosts_are_added_to_router_graphs() {
        let network = read("1 2\n2 3\n3 1\n", |config| config.hosts_per_switch = 4).unwrap();
        assert_eq!((network.hosts(), network.switches(), network.links().len()), (12, 3, 15));
        assert_eq!(network.router_graph().hosts(1), 4);
    }

    #[test]
    fn links_of_a_host_are_hosts() {
        let planes = read("host a b c\na s\nb s\nc s\na t\nb t\nc t\n", |_| {}).unwrap();
        assert_eq!((planes.hosts(), planes.links_per_host(), planes.components()), (6, 2, 2));
        let names: Vec<String> = (0..8).map(|node| planes.node_name(node)).collect();
        assert_eq!(names, ["a.0", "a.1", "b.0", "b.1", "c.0", "c.1", "s", "t"]);
        let switches = |host| planes.node_name(planes.edge_switch(host));
        assert_eq!([0, 1, 4, 5].map(switches), ["s", "t", "s", "t"]);
        assert!(planes.is_tree());
        // Two links to switches that are joined.
        let dual = read("host a b\na s\na t\nb t\nb s\ns u\nt u\n", |_| {}).unwrap();
        assert_eq!((dual.hosts(), dual.links_per_host(), dual.components()), (4, 2, 1));
        assert_eq!(dual.node_name(dual.edge_switch(2)), "t", "in the order of the file");
        assert_eq!(read("host a b\na s\nb s\n", |_| {}).unwrap().links_per_host(), 1);
    }

    #[test]
    fn errors_name_file_and_line() {
        assert!(error("a s\nb s\ns s\n").ends_with("net.txt:3: a link joins s to itself"));
        assert!(error("a s\nb s 10Gb\n").contains("net.txt:2: \"10Gb\": expected a rate"));
        assert!(error("a s\nb\n").contains("net.txt:2: expected \"a b [rate] [latency]\""));
        assert!(error("a s\nb s\ns t\nt s\n").contains("net.txt:4: t and s are already joined on line 3"));
        assert!(error("a s\nb s\nc t\nd t\n").contains("net.txt:3: c cannot be reached"));
        let uneven = error("host a b\na s\nb s\na t\ns t\n");
        assert!(uneven.contains("net.txt:1: b is a host with 1 links, and a is one with 2"), "{uneven}");
        let taken = error("host a b\na s\nb s\na t\nb t\na.1 s\n");
        assert!(taken.contains("net.txt:1: the links of a are called a.1 and so on"), "{taken}");
        let lost = error("host a b\na s\nb s\na t\nb t\nu v\n");
        assert!(lost.contains("net.txt:6: u cannot be reached"), "{lost}");
        assert!(error("# nothing\n").ends_with("net.txt: the file names no link"));
        assert!(error("1 2\n2 3\n3 1\n").contains("at least 2 hosts"));
        assert!(error("a s 0bps\nb s\n").contains("rate 0"));
        let missing = EdgeList::new("no-such-file").build(&BuildContext { seed: 0, base_dir: "/".as_ref() });
        assert!(missing.unwrap_err().to_string().contains("/no-such-file: No such file"));
    }

    #[test]
    fn what_is_exported_reads_back() {
        let original = LeafSpine { leaves: 3, bundle: 2, hosts_per_leaf: 2, ..Default::default() }
            .build(&context(1))
            .unwrap();
        let again = read(&original.to_edge_list(), |config| config.parallel_links = true).unwrap();
        assert_eq!(again.links().len(), original.links().len());
        for (a, b) in original.links().iter().zip(again.links()) {
            assert_eq!((a.a, a.b, a.rate, a.latency), (b.a, b.b, b.rate, b.latency));
        }
    }
}
