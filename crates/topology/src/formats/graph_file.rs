//! What every import has in common: a file whose errors name the line, and the named graph that it describes.

use std::collections::HashMap;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::cable::Cable;
use crate::network::{Network, NetworkBuilder, NetworkError, NodeId};
use crate::size::Size;
use crate::topology::BuildContext;

/// An input file in memory.
pub(crate) struct Reader {
    path: PathBuf,
    pub(crate) text: String,
}

impl Reader {
    /// Reads the whole file.
    pub(crate) fn open(path: &Path, context: &BuildContext<'_>) -> Result<Reader, NetworkError> {
        let path = context.base_dir.join(path);
        match std::fs::read_to_string(&path) {
            Ok(text) => Ok(Reader { path, text }),
            Err(error) => Err(NetworkError::File { path, line: None, message: error.to_string() }),
        }
    }

    /// Lines with their numbers, counted from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text.lines())
    }

    /// An error at a line; line 0 stands for the file as a whole.
    pub(crate) fn error(&self, line: usize, message: impl Into<String>) -> NetworkError {
        let line = (line > 0).then_some(line);
        NetworkError::File { path: self.path.clone(), line, message: message.into() }
    }

    /// Reads a value, naming the line if it is malformed.
    pub(crate) fn parse<T: FromStr<Err: Display>>(&self, line: usize, word: &str) -> Result<T, NetworkError> {
        word.parse().map_err(|error| self.error(line, format!("\"{word}\": {error}")))
    }

    /// The file's name without its directories, for the network's name.
    fn file_name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

/// A node as a file describes it.
#[derive(Clone, Debug)]
pub(crate) struct FileNode {
    pub(crate) name: String,
    /// Line that first names it.
    pub(crate) line: usize,
    /// Whether it is a host; unknown in files that do not say.
    pub(crate) is_host: Option<bool>,
}

/// A link as a file describes it, between indices of nodes.
#[derive(Clone, Debug)]
pub(crate) struct FileLink {
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) cable: Cable,
    pub(crate) line: usize,
}

/// What the user says about a file beside the file itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading {
    /// Hosts added to every node.
    pub(crate) hosts_per_switch: u32,
    /// Whether two links may join the same pair of nodes.
    pub(crate) parallel_links: bool,
    /// Links of added hosts.
    pub(crate) cable: Cable,
}

/// A graph of named nodes, in the order of the file.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphFile {
    pub(crate) nodes: Vec<FileNode>,
    pub(crate) links: Vec<FileLink>,
    by_name: HashMap<String, usize>,
}

impl GraphFile {
    /// The index of the node of that name, made on first use.
    pub(crate) fn node(&mut self, name: &str, line: usize) -> usize {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        self.by_name.insert(name.to_owned(), self.nodes.len());
        self.nodes.push(FileNode { name: name.to_owned(), line, is_host: None });
        self.nodes.len() - 1
    }

    /// Adds a link.
    pub(crate) fn link(&mut self, a: usize, b: usize, cable: Cable, line: usize) {
        self.links.push(FileLink { a, b, cable, line });
    }

    /// Decides which nodes are hosts and builds the network, with errors in the words of the file.
    pub(crate) fn build(mut self, reader: &Reader, reading: Reading) -> Result<Network, NetworkError> {
        if self.links.is_empty() {
            return Err(reader.error(0, "the file names no link"));
        }
        let added_hosts = self.mark_hosts(reading.hosts_per_switch);
        self.check_links(reader, reading.parallel_links)?;

        let is_host = |node: &FileNode| node.is_host == Some(true);
        let hosts_in_file = self.nodes.iter().filter(|node| is_host(node)).count() as u64;
        let switches = self.nodes.len() as u64 - hosts_in_file;
        let hosts = hosts_in_file + added_hosts;
        Size { hosts, switches, links: self.links.len() as u64 + added_hosts }.check()?;
        if hosts < 2 {
            let message = "expected at least 2 hosts: mark them, or ask for hosts_per_switch";
            return Err(reader.error(0, message));
        }

        let mut builder = NetworkBuilder::new(format!("{}: {hosts} hosts", reader.file_name()));
        let mut next_host = builder.add_hosts(hosts as u32).start;
        let mut ids: Vec<NodeId> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            if is_host(node) {
                ids.push(next_host);
                next_host += 1;
            } else {
                ids.push(builder.add_switch(0, 0));
            }
        }
        let host_tier = builder.tier("host");
        let switch_tier = builder.tier("switch");
        for &switch in &ids[..if added_hosts > 0 { ids.len() } else { 0 }] {
            for _ in 0..reading.hosts_per_switch {
                builder.link(next_host, switch, reading.cable.rate, reading.cable.latency, host_tier);
                next_host += 1;
            }
        }
        for link in &self.links {
            let touches_host = is_host(&self.nodes[link.a]) || is_host(&self.nodes[link.b]);
            let tier = if touches_host { host_tier } else { switch_tier };
            builder.link(ids[link.a], ids[link.b], link.cable.rate, link.cable.latency, tier);
        }
        builder.build().map_err(|error| self.in_words_of_the_file(error, &ids, reader))
    }

    /// Settles what the file leaves open and returns how many hosts are to be added.
    fn mark_hosts(&mut self, hosts_per_switch: u32) -> u64 {
        if self.nodes.iter().any(|node| node.is_host == Some(true)) {
            return 0;
        }
        if hosts_per_switch > 0 {
            return self.nodes.len() as u64 * u64::from(hosts_per_switch);
        }
        let mut degrees = vec![0u32; self.nodes.len()];
        for link in &self.links {
            degrees[link.a] += 1;
            degrees[link.b] += 1;
        }
        for (node, degree) in self.nodes.iter_mut().zip(degrees) {
            node.is_host = node.is_host.or(Some(degree == 1));
        }
        0
    }

    fn check_links(&self, reader: &Reader, parallel_links: bool) -> Result<(), NetworkError> {
        let mut first_line = HashMap::new();
        for link in &self.links {
            let (a, b) = (&self.nodes[link.a], &self.nodes[link.b]);
            if link.a == link.b {
                return Err(reader.error(link.line, format!("a link joins {} to itself", a.name)));
            }
            if a.is_host == Some(true) && b.is_host == Some(true) {
                return Err(reader.error(link.line, format!("{} and {} are both hosts", a.name, b.name)));
            }
            let pair = (link.a.min(link.b), link.a.max(link.b));
            if let Some(first) = first_line.insert(pair, link.line).filter(|_| !parallel_links) {
                let place = if first > 0 { format!(" on line {first}") } else { String::new() };
                let message = format!(
                    "{} and {} are already joined{place}; \
                     if there are several cables between them, set parallel_links = true",
                    a.name, b.name
                );
                return Err(reader.error(link.line, message));
            }
        }
        Ok(())
    }

    fn in_words_of_the_file(&self, error: NetworkError, ids: &[NodeId], reader: &Reader) -> NetworkError {
        let node = |id: NodeId| ids.iter().position(|&other| other == id).map(|index| &self.nodes[index]);
        let (id, message) = match &error {
            NetworkError::HostLinks { host, links } => {
                (*host, format!("is a host and has {links} links; a host has 1"))
            }
            NetworkError::Disconnected(id) => (*id, "cannot be reached from the first host".into()),
            NetworkError::TooManyPorts(id) => (*id, "has more than 65,535 links".into()),
            _ => return error,
        };
        match node(id) {
            Some(node) => reader.error(node.line, format!("{} {message}", node.name)),
            None => error,
        }
    }
}
