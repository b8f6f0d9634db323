//! The named graph that a file describes, and how it becomes a network.

use netloom_units::narrow;
use std::collections::{HashMap, HashSet};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::formats::Reader;
use crate::network::{Dimension, LinkId, Network, NetworkBuilder, NodeId, TierId};
use crate::size::Size;

/// A node as a file describes it.
#[derive(Clone, Debug)]
struct FileNode {
    name: String,
    /// Line that first names it; 0 in formats without lines.
    line: usize,
    /// Whether it is a host; unknown in files that do not say.
    is_host: Option<bool>,
    level: u8,
    pod: u32,
}

/// A link as a file describes it, between indices of nodes.
#[derive(Clone, Debug)]
struct FileLink {
    a: usize,
    b: usize,
    cable: Cable,
    /// Probability that a packet is lost on it.
    error_rate: f64,
    tier: Option<String>,
    line: usize,
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

/// What the error rate of a link may be.
const ERROR_RATE: &str = "expected the probability that a packet is lost, at least 0 and below 1";

/// A graph of named nodes, in the order of the file.
///
/// Formats with attributes share one set of them, written by [`node_attributes`] and its like and read by
/// [`GraphFile::set_node`] and its like. Attributes of other programs are ignored.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphFile {
    name: Option<String>,
    up_strides: Vec<u32>,
    global_tier: Option<String>,
    /// Tiers of links along a dimension of a grid.
    dimensions: Vec<(String, Dimension)>,
    nodes: Vec<FileNode>,
    links: Vec<FileLink>,
    by_name: HashMap<String, usize>,
    /// How many hosts in a row are one of the file, where a format knows; 0 where hosts with several links are found.
    links_per_host: u32,
}

/// What a file says of the network as a whole.
pub(crate) fn graph_attributes(network: &Network) -> Vec<(&'static str, String)> {
    let mut attributes = vec![("name", network.name().to_owned())];
    if network.is_xgft() {
        let strides: Vec<String> = network.up_strides().iter().map(u32::to_string).collect();
        attributes.push(("up_strides", strides.join(" ")));
    }
    if let Some(tier) = network.global_tier() {
        attributes.push(("global_tier", network.tiers()[usize::from(tier)].clone()));
    }
    // A word for each tier of links along a dimension: `dimension1:1`, and `wrap1:1+` where the links close rings.
    let dimensions =
        network.tiers().iter().zip(&network.dimension_of_tier).filter_map(|(name, dimension)| {
            let Dimension { number, wraps } = (*dimension)?;
            Some(format!("{name}:{number}{}", if wraps { "+" } else { "" }))
        });
    let dimensions: Vec<String> = dimensions.collect();
    if !dimensions.is_empty() {
        attributes.push(("dimensions", dimensions.join(" ")));
    }
    attributes
}

/// What a file says of a node.
pub(crate) fn node_attributes(network: &Network, node: NodeId) -> Vec<(&'static str, String)> {
    if network.is_host(node) {
        return vec![("kind", "host".to_owned())];
    }
    let mut attributes = vec![("kind", "switch".to_owned())];
    // What was found by the structure is found again.
    if !network.has_found_levels() {
        if network.level(node) > 0 {
            attributes.push(("level", network.level(node).to_string()));
        }
        attributes.push(("pod", network.pod(node).to_string()));
    }
    attributes
}

/// What a file says of a link.
pub(crate) fn link_attributes(network: &Network, id: LinkId) -> Vec<(&'static str, String)> {
    let link = network.links()[id as usize];
    let tier = network.tiers()[usize::from(link.tier)].clone();
    let mut attributes =
        vec![("rate", link.rate.to_string()), ("latency", link.latency.to_string()), ("tier", tier)];
    let error_rate = network.error_rate(id);
    if error_rate > 0.0 {
        attributes.push(("error_rate", error_rate.to_string()));
    }
    attributes
}

impl GraphFile {
    /// The index of the node of that name, made on first use.
    pub(crate) fn node(&mut self, name: &str, line: usize) -> usize {
        if let Some(&index) = self.by_name.get(name) {
            return index;
        }
        self.by_name.insert(name.to_owned(), self.nodes.len());
        self.nodes.push(FileNode { name: name.to_owned(), line, is_host: None, level: 0, pod: 0 });
        self.nodes.len() - 1
    }

    /// Whether the file has named that node already.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.by_name.contains_key(name)
    }

    /// Says whether a node is a host.
    pub(crate) fn mark(&mut self, node: usize, is_host: bool) {
        self.nodes[node].is_host = Some(is_host);
    }

    /// Says how many hosts in a row are the NICs of one server of the file.
    pub(crate) fn set_links_per_host(&mut self, links: u32) {
        self.links_per_host = links;
    }

    /// How many nodes are marked as hosts.
    pub(crate) fn hosts(&self) -> usize {
        self.nodes.iter().filter(|node| node.is_host == Some(true)).count()
    }

    /// Adds a link and returns its index.
    pub(crate) fn link(&mut self, a: usize, b: usize, cable: Cable, line: usize) -> usize {
        self.links.push(FileLink { a, b, cable, error_rate: 0.0, tier: None, line });
        self.links.len() - 1
    }

    /// Applies an attribute of the graph.
    pub(crate) fn set_graph(
        &mut self,
        reader: &Reader,
        line: usize,
        key: &str,
        value: &str,
    ) -> Result<(), NetworkError> {
        match key {
            "name" => self.name = Some(value.to_owned()),
            "global_tier" => self.global_tier = Some(value.to_owned()),
            "dimensions" => {
                let parsed = value.split_whitespace().map(|word| {
                    let (tier, number) = word.rsplit_once(':')?;
                    let wraps = number.ends_with('+');
                    let number = number.trim_end_matches('+').parse().ok().filter(|&number| number > 0)?;
                    Some((tier.to_owned(), Dimension { number, wraps }))
                });
                self.dimensions = parsed.collect::<Option<_>>().ok_or_else(|| {
                    let expected = "tiers with the numbers of dimensions, such as \"dimension1:1 wrap1:1+\"";
                    reader.error(line, format!("dimensions: expected {expected}, found \"{value}\""))
                })?;
            }
            "up_strides" => {
                let strides = value.split_whitespace().map(|word| reader.parse(line, word));
                self.up_strides = strides.collect::<Result<_, _>>()?;
                if self.up_strides.contains(&0) {
                    return Err(reader
                        .error(line, format!("up_strides: expected positive numbers, found \"{value}\"")));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies an attribute of a node.
    pub(crate) fn set_node(
        &mut self,
        reader: &Reader,
        line: usize,
        node: usize,
        key: &str,
        value: &str,
    ) -> Result<(), NetworkError> {
        let node = &mut self.nodes[node];
        match (key, value) {
            ("kind", "host") => node.is_host = Some(true),
            ("kind", "switch") => node.is_host = Some(false),
            ("kind", _) => {
                return Err(reader.error(line, format!("kind: expected host or switch, found \"{value}\"")));
            }
            ("level", _) => node.level = reader.parse(line, value)?,
            ("pod", _) => node.pod = reader.parse(line, value)?,
            _ => {}
        }
        Ok(())
    }

    /// Applies an attribute of a link.
    pub(crate) fn set_link(
        &mut self,
        reader: &Reader,
        line: usize,
        link: usize,
        key: &str,
        value: &str,
    ) -> Result<(), NetworkError> {
        let link = &mut self.links[link];
        match key {
            "rate" => link.cable.rate = reader.parse(line, value)?,
            "latency" => link.cable.latency = reader.parse(line, value)?,
            "tier" => link.tier = Some(value.to_owned()),
            "error_rate" => {
                link.error_rate =
                    value.parse().ok().filter(|rate| (0.0..1.0).contains(rate)).ok_or_else(|| {
                        reader.error(line, format!("error_rate: {ERROR_RATE}, found \"{value}\""))
                    })?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Decides which nodes are hosts and builds the network, with errors in the words of the file.
    pub(crate) fn build(mut self, reader: &Reader, reading: Reading) -> Result<Network, NetworkError> {
        if self.links.is_empty() {
            return Err(reader.error(0, "the file names no link"));
        }
        let added_hosts = self.mark_hosts(reading.hosts_per_switch);
        self.check_links(reader, reading.parallel_links)?;
        let links_per_host = self.split_hosts(reader)?.max(self.links_per_host);
        self.check_levels(reader)?;

        let hosts_in_file = self.hosts() as u64;
        let switches = self.nodes.len() as u64 - hosts_in_file;
        let hosts = hosts_in_file + added_hosts;
        Size { hosts, switches, links: self.links.len() as u64 + added_hosts }.check()?;
        if hosts < 2 {
            let message = "expected at least 2 hosts: mark them, or ask for hosts_per_switch";
            return Err(reader.error(0, message));
        }

        let of_links = if links_per_host > 1 { format!(" of {links_per_host} links") } else { String::new() };
        let named = hosts / u64::from(links_per_host.max(1));
        let name = || format!("{}: {named} hosts{of_links}", reader.file_name());
        let name = self.name.clone().unwrap_or_else(name);
        let mut builder = NetworkBuilder::new(name);
        let mut next_host = builder.add_hosts(narrow::<u32>(hosts)).start;
        let mut ids: Vec<NodeId> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            if node.is_host == Some(true) {
                ids.push(next_host);
                next_host += 1;
            } else {
                ids.push(builder.add_switch(node.level, node.pod));
            }
        }
        if added_hosts > 0 {
            let tier = builder.tier("host");
            for &switch in &ids {
                for _ in 0..reading.hosts_per_switch {
                    builder.link(next_host, switch, reading.cable.rate, reading.cable.latency, tier);
                    next_host += 1;
                }
            }
        }
        let mut tiers = HashSet::new();
        for link in &self.links {
            let touches_host = [link.a, link.b].iter().any(|&end| self.nodes[end].is_host == Some(true));
            let usual = if touches_host { "host" } else { "switch" };
            let name = link.tier.as_deref().unwrap_or(usual);
            if !tiers.contains(name) {
                tiers.insert(name);
                if tiers.len() > usize::from(TierId::MAX) {
                    return Err(reader.error(link.line, "expected at most 255 tiers of links"));
                }
            }
            let tier = builder.tier(name);
            builder.link(ids[link.a], ids[link.b], link.cable.rate, link.cable.latency, tier);
            if link.error_rate > 0.0 {
                builder.error_rate(link.error_rate);
            }
        }
        builder.names(self.names(&ids, narrow::<u32>(hosts) + narrow::<u32>(switches)));
        builder.up_strides(std::mem::take(&mut self.up_strides));
        if let Some(name) = &self.global_tier {
            let tier = builder.tier(name);
            builder.global_tier(tier);
        }
        for (name, dimension) in &self.dimensions {
            let tier = builder.tier(name);
            builder.dimension(tier, *dimension);
        }
        builder.links_per_host(links_per_host);
        let mut network = builder.build().map_err(|error| self.in_words_of_the_file(error, &ids, reader))?;
        if !network.is_tree() {
            network.find_levels(self.links.iter().any(|link| link.tier.is_some()));
        }
        if !network.is_xgft() {
            network.find_order();
        }
        Ok(network)
    }

    /// What the nodes of the network are called: as in the file; added hosts by their number, unless the file gave that
    /// name away.
    fn names(&self, ids: &[NodeId], nodes: u32) -> Vec<String> {
        let mut names = vec![None; nodes as usize];
        for (&id, node) in ids.iter().zip(&self.nodes) {
            names[id as usize] = Some(node.name.clone());
        }
        let added = |(id, name): (usize, Option<String>)| {
            name.unwrap_or_else(|| {
                let mut name = format!("h{id}");
                while self.by_name.contains_key(&name) {
                    name.push('_');
                }
                name
            })
        };
        names.into_iter().enumerate().map(added).collect()
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

    /// Makes a host for each link of a host with several, in the order of its links: `a.0`, `a.1` and so on. Returns how many links the hosts have.
    fn split_hosts(&mut self, reader: &Reader) -> Result<u32, NetworkError> {
        let mut links_of = vec![0u32; self.nodes.len()];
        for link in &self.links {
            links_of[link.a] += 1;
            links_of[link.b] += 1;
        }
        let hosts = || (0..self.nodes.len()).filter(|&node| self.nodes[node].is_host == Some(true));
        let Some(first) = hosts().next() else { return Ok(1) };
        let count = links_of[first];
        if hosts().all(|host| links_of[host] <= 1) {
            return Ok(1);
        }
        if let Some(other) = hosts().find(|&host| links_of[host] != count) {
            let (node, first, links) = (&self.nodes[other], &self.nodes[first].name, links_of[other]);
            let message = format!(
                "{} is a host with {links} links, and {first} is one with {count}: expected as many at every host",
                node.name
            );
            return Err(reader.error(node.line, message));
        }
        let mut nodes = Vec::with_capacity(self.nodes.len());
        let mut place = vec![0; self.nodes.len()];
        for (index, node) in self.nodes.iter().enumerate() {
            place[index] = nodes.len();
            if node.is_host != Some(true) {
                nodes.push(node.clone());
                continue;
            }
            for link in 0..count {
                let name = format!("{}.{link}", node.name);
                if self.by_name.contains_key(&name) {
                    let message =
                        format!("the links of {} are called {name} and so on, as another node is", node.name);
                    return Err(reader.error(node.line, message));
                }
                nodes.push(FileNode { name, ..node.clone() });
            }
        }
        // The next link of each host.
        let mut next = place.clone();
        for link in &mut self.links {
            for end in [&mut link.a, &mut link.b] {
                let node = *end;
                *end = next[node];
                next[node] += usize::from(self.nodes[node].is_host == Some(true));
            }
        }
        self.by_name = nodes.iter().enumerate().map(|(index, node)| (node.name.clone(), index)).collect();
        self.nodes = nodes;
        Ok(count)
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
            if link.cable.rate.0 == 0 {
                return Err(
                    reader.error(link.line, format!("the link from {} to {} has rate 0", a.name, b.name))
                );
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

    /// Levels make a tree of switches only if every switch has one and links join neighbouring levels, lower end first.
    fn check_levels(&mut self, reader: &Reader) -> Result<(), NetworkError> {
        let is_switch = |node: &&FileNode| node.is_host != Some(true);
        if self.nodes.iter().filter(is_switch).all(|node| node.level == 0) {
            return Ok(());
        }
        if let Some(node) = self.nodes.iter().filter(is_switch).find(|node| node.level == 0) {
            return Err(
                reader.error(node.line, format!("{} has no level, but other switches have", node.name))
            );
        }
        for link in &mut self.links {
            let level =
                |end: usize| if self.nodes[end].is_host == Some(true) { 0 } else { self.nodes[end].level };
            if level(link.a).abs_diff(level(link.b)) != 1 {
                let (a, b) = (&self.nodes[link.a].name, &self.nodes[link.b].name);
                return Err(reader.error(link.line, format!("{a} and {b} are not on neighbouring levels")));
            }
            if level(link.a) > level(link.b) {
                std::mem::swap(&mut link.a, &mut link.b);
            }
        }
        Ok(())
    }

    fn in_words_of_the_file(&self, error: NetworkError, ids: &[NodeId], reader: &Reader) -> NetworkError {
        let node = |id: NodeId| ids.iter().position(|&other| other == id).map(|index| &self.nodes[index]);
        let (id, message) = match &error {
            NetworkError::HostLinks { host, links } => {
                (*host, format!("is a host and has {links} links; a host has at least 1"))
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
