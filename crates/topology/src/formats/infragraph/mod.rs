//! InfraGraph's description of an AI cluster (Keysight, MLCommons Chakra): devices with components, instances of them, and edges.
//!
//! | module | question |
//! | --- | --- |
//! | `model` | what stands in the file? |
//! | `catalog` | which devices, components and instances are there? |
//! | `expand` | which components does an endpoint of an edge stand for? |
//!
//! Source: schema and service of InfraGraph 2.4.0 (Keysight/infragraph at 2701fa5).

mod catalog;
mod expand;
mod model;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use netloom_units::names::{shorten, suggest};
use netloom_units::{Rate, Time, memory, narrow};
use schemars::JsonSchema;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::formats::graph_file::GraphFile;
use crate::formats::{Reader, Reading, yaml};
use crate::network::Network;
use crate::topology::BuildContext;
use catalog::Catalog;
use expand::{End, Ends};
use model::{Annotated, Annotations, Edge, Infrastructure, Latency, Link, Physical, Scheme};

/// The network of an infrastructure in InfraGraph's format (2.0 to 3.1, YAML or JSON), or of what its service returns (`infrastructure` with `annotations`).
///
/// Every instance of a device with an `xpu` or a `nic` is a server, every other one a switch. Edges between instances are the links. A switch
/// forwards between all of its ports, whatever is inside it.
/// The end of a link at a server is a NIC: each is a host of the network with the component's name (`dgx.0.cx7.3`), in the order of instances and
/// then of components, and
/// the scenario's `servers` combines them into servers again, with the same number of `nics`. The inside of a server is not part of the network:
/// `servers` states the number of GPUs (`gpus`) and what connects them (`scale_up`).
/// Links inside devices for which the file has a bandwidth or a latency are therefore an error, unless `ideal_devices` is set.
///
/// As in InfraGraph's service `one2one` joins as many components as the shorter of the two lists has, and instances without edges are allowed; here they must not be servers. Refused are the scheme `ring`, as there,
/// edges between two servers, `gigatransfers_per_second` outside of devices, annotations of `rank` in another order, and the older form with `connections`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InfraGraph {
    /// The file; relative paths start at the directory of the scenario.
    pub path: PathBuf,
    /// Names of the instances that are servers; if absent, those of devices with an `xpu` or a `nic`, their own or that of a device in them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub servers: Option<Vec<String>>,
    /// Names of links whose edges are left out, such as those of a management network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without: Vec<String>,
    /// Whether links inside servers and switches are ideal, without limit and delay, although the file gives them a bandwidth or a latency.
    #[serde(default)]
    pub ideal_devices: bool,
    /// Rate of links that have no bandwidth.
    #[serde(default = "default_rate")]
    pub rate: Rate,
    /// Propagation delay of links that have no latency.
    #[serde(default = "default_latency")]
    pub latency: Time,
}

fn default_rate() -> Rate {
    Cable::DEFAULT.rate
}

fn default_latency() -> Time {
    Cable::DEFAULT.latency
}

/// A link between instances.
struct Wire<'a> {
    ends: [End<'a>; 2],
    cable: Cable,
    line: usize,
}

/// An end at a server, the number of its link, and which of the link's ends it is.
type Nic<'a> = (&'a End<'a>, usize, usize);

impl InfraGraph {
    /// A file with default rate and latency.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        InfraGraph {
            path: path.into(),
            servers: None,
            without: Vec::new(),
            ideal_devices: false,
            rate: default_rate(),
            latency: default_latency(),
        }
    }

    pub(crate) fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let reader = Reader::open(&self.path, context)?;
        let (infrastructure, annotations) = read(&reader)?;
        refuse_older_forms(&reader, &infrastructure)?;
        let catalog = Catalog::new(&reader, &infrastructure, self.servers.as_deref())?;
        if !self.ideal_devices {
            catalog.refuse_links_inside()?;
        }
        let wires = self.wires(&reader, &infrastructure, &catalog)?;
        check_ranks(&reader, &catalog, &annotations)?;
        let mut graph = graph(&reader, &catalog, &wires)?;
        if let Some(name) = &infrastructure.name {
            graph.set_graph(&reader, 0, "name", &format!("{name}: {} hosts", graph.hosts()))?;
        }
        let cable = Cable { rate: self.rate, latency: self.latency };
        graph.build(&reader, Reading { hosts_per_switch: 0, parallel_links: true, cable })
    }

    /// All links between instances, in the order of the file's edges.
    fn wires<'a>(
        &self,
        reader: &'a Reader,
        infrastructure: &'a Infrastructure,
        catalog: &Catalog<'a>,
    ) -> Result<Vec<Wire<'a>>, NetworkError> {
        let mut links = HashMap::new();
        for link in &infrastructure.links {
            if links.insert(link.name.value.as_str(), link).is_some() {
                let message = format!("links: there are two of the name `{}`", shorten(&link.name.value));
                return Err(reader.error(yaml::line(&link.name), message));
            }
        }
        let names = || links.keys().copied();
        if let Some(name) = self.without.iter().find(|name| !links.contains_key(name.as_str())) {
            let expected = format!("names of links of {}", reader.file_name());
            let found = format!("`{}` ({})", shorten(name), suggest(name, names()));
            return Err(netloom_units::Invalid::new("without", expected, found).into());
        }
        let (mut wires, mut joined) = (Vec::new(), HashMap::new());
        for edge in &infrastructure.edges {
            let name = edge.link.value.as_str();
            let line = yaml::line(&edge.link);
            let link = links.get(name).ok_or_else(|| {
                let advice = suggest(name, names());
                reader.error(line, format!("edges: there is no link `{}` ({advice})", shorten(name)))
            })?;
            let pairs = pairs(reader, catalog, edge)?;
            if self.without.iter().any(|left_out| left_out == name) {
                continue;
            }
            let cable = self.cable(reader, link)?;
            for ends in pairs {
                let [a, b] = &ends;
                check_ends(reader, catalog, [a, b], line)?;
                let names = [a.name(), b.name()];
                if let Some(first) = joined.insert(names.clone(), line) {
                    let [a, b] = names;
                    let message = format!("edges: {a} and {b} are already joined on line {first}");
                    return Err(reader.error(line, message));
                }
                wires.push(Wire { ends, cable, line });
            }
        }
        Ok(wires)
    }

    /// Rate and latency of a link, or those of links that have none.
    fn cable(&self, reader: &Reader, link: &Link) -> Result<Cable, NetworkError> {
        let Some(Physical { bandwidth, latency }) = &link.physical else {
            return Ok(Cable { rate: self.rate, latency: self.latency });
        };
        let name = shorten(&link.name.value);
        let mut cable = Cable { rate: self.rate, latency: self.latency };
        if let Some(bandwidth) = bandwidth {
            let line = yaml::line(bandwidth);
            let bandwidth = &bandwidth.value;
            let units = [
                (bandwidth.gigabits_per_second, Some(1e9)),
                (bandwidth.gigabytes_per_second, Some(8e9)),
                (bandwidth.gigatransfers_per_second, None),
            ];
            if let Some((value, scale)) = one(units) {
                let bits = scale.map(|scale| value * scale).ok_or_else(|| {
                    let expected = "gigabits_per_second or gigabytes_per_second, as bits per transfer and lanes are not in the file";
                    reader.error(line, format!("link `{name}`: expected {expected}"))
                })?;
                cable.rate = rate(bits).ok_or_else(|| {
                    let message = format!(
                        "link `{name}`: expected a bandwidth above 0 and of at most 100 Tbit/s, found {bits} bit/s"
                    );
                    reader.error(line, message)
                })?;
            } else {
                let message = format!("link `{name}`: expected a bandwidth in one unit");
                return Err(reader.error(line, message));
            }
        }
        if let Some(latency) = latency {
            let line = yaml::line(latency);
            let &Latency { ms, us, ns, .. } = &latency.value;
            let found = one([(ms, Some(1e9)), (us, Some(1e6)), (ns, Some(1e3))]);
            let picoseconds = found.and_then(|(value, scale)| Some(value * scale?));
            cable.latency = picoseconds.and_then(time).ok_or_else(|| {
                reader.error(line, format!("link `{name}`: expected a latency of at most 16 s in one unit"))
            })?;
        }
        Ok(cable)
    }
}

/// The only value that is there, with what goes with it.
fn one<const N: usize>(values: [(Option<f64>, Option<f64>); N]) -> Option<(f64, Option<f64>)> {
    let mut found = values.into_iter().filter_map(|(value, scale)| Some((value?, scale)));
    found.next().filter(|_| found.next().is_none())
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "is checked before")]
fn rate(bits: f64) -> Option<Rate> {
    #[expect(clippy::cast_precision_loss, reason = "a round number")]
    let highest = Rate::HIGHEST.0 as f64;
    (bits >= 1.0 && bits <= highest).then(|| Rate(bits.round() as u64))
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "is checked before")]
fn time(picoseconds: f64) -> Option<Time> {
    (0.0..=16e12).contains(&picoseconds).then(|| Time(picoseconds.round() as u64))
}

/// The file as its own infrastructure or as one with annotations.
fn read(reader: &Reader) -> Result<(Infrastructure, Annotations), NetworkError> {
    let keys: BTreeMap<String, IgnoredAny> = yaml::read(reader)?;
    if keys.contains_key("infrastructure") {
        let Annotated { infrastructure, annotations } = yaml::read(reader)?;
        return Ok((infrastructure, annotations.unwrap_or_default()));
    }
    Ok((yaml::read(reader)?, Annotations::default()))
}

/// Refuses what stood in files before edges had endpoints.
fn refuse_older_forms(reader: &Reader, infrastructure: &Infrastructure) -> Result<(), NetworkError> {
    let connections = std::iter::once(&infrastructure.connections)
        .chain(infrastructure.devices.iter().map(|device| &device.connections));
    if let Some(connections) = connections.flatten().next() {
        let message = "connections: this is an older form of InfraGraph: expected `edges` with `ep1`, `ep2`, `scheme` and `link`, as from 2.0 on";
        return Err(reader.error(yaml::line(connections), message));
    }
    let links = infrastructure.devices.iter().flat_map(|device| &device.links).chain(&infrastructure.links);
    if let Some(bandwidth) = links.filter_map(|link| link.bandwidth.as_ref()).next() {
        let message =
            "bandwidth: this is an older form of InfraGraph: expected it in `physical`, as from 2.0 on";
        return Err(reader.error(yaml::line(bandwidth), message));
    }
    Ok(())
}

/// The components that an edge joins.
fn pairs<'a>(
    reader: &'a Reader,
    catalog: &Catalog<'a>,
    edge: &'a Edge,
) -> Result<Vec<[End<'a>; 2]>, NetworkError> {
    let [first, second] = [&edge.ep1, &edge.ep2].map(|endpoint| Ends::new(reader, catalog, endpoint));
    let (first, second) = (first?, second?);
    let (scheme, line) = match &edge.scheme {
        Some(scheme) => (scheme.value, yaml::line(scheme)),
        None => {
            let message = "edges: expected a `scheme`: one2one or many2many";
            return Err(reader.error(yaml::line(&edge.link), message));
        }
    };
    if first.count() == 0 || second.count() == 0 {
        let message = "edges: expected at least one component at either end, found none";
        return Err(reader.error(yaml::line(&edge.link), message));
    }
    let count = match scheme {
        Scheme::One2one => first.count().min(second.count()),
        Scheme::Many2many => first.count().saturating_mul(second.count()),
        Scheme::Ring => {
            let message =
                "scheme: expected one2one or many2many; `ring` is declared by InfraGraph and not defined";
            return Err(reader.error(line, message));
        }
    };
    // Two ends, their names, and what becomes of them.
    memory::check(count.saturating_mul(400))
        .map_err(|error| reader.error(line, format!("edges: {count} links, and {error}")))?;
    Ok(match scheme {
        Scheme::One2one => first.iter().zip(second.iter()).map(|(a, b)| [a, b]).collect(),
        _ => {
            let all: Vec<End<'a>> = second.iter().collect();
            first.iter().flat_map(|a| all.iter().map(move |b| [a.clone(), b.clone()])).collect()
        }
    })
}

/// Refuses links that a network of servers and switches does not have.
fn check_ends(
    reader: &Reader,
    catalog: &Catalog<'_>,
    [a, b]: [&End<'_>; 2],
    line: usize,
) -> Result<(), NetworkError> {
    if (a.instance, a.number) == (b.instance, b.number) {
        let message = format!(
            "edges: {} and {} are parts of the same instance: expected such an edge in its device",
            a.name(),
            b.name()
        );
        return Err(reader.error(line, message));
    }
    if catalog.is_server(a.instance) && catalog.is_server(b.instance) {
        let message = format!(
            "edges: {} and {} are both at servers: expected a switch between them, or `topology.servers` without one of the instances",
            a.name(),
            b.name()
        );
        return Err(reader.error(line, message));
    }
    Ok(())
}

/// The graph of NICs and switches, in the order of instances.
fn graph(reader: &Reader, catalog: &Catalog<'_>, wires: &[Wire<'_>]) -> Result<GraphFile, NetworkError> {
    // The ends at each server, in the order of its components, and which end of which link each is.
    let mut nics: BTreeMap<(usize, u32), Vec<Nic<'_>>> = BTreeMap::new();
    let mut switches: BTreeMap<(usize, u32), usize> = BTreeMap::new();
    for (number, wire) in wires.iter().enumerate() {
        for (side, end) in wire.ends.iter().enumerate() {
            let place = (end.instance, end.number);
            match catalog.is_server(end.instance) {
                true => nics.entry(place).or_default().push((end, number, side)),
                false => drop(switches.insert(place, wire.line)),
            }
        }
    }
    let mut count = None;
    for (instance, number) in catalog.all_servers() {
        let found = nics.get(&(instance, number)).map_or(0, Vec::len);
        let (name, line) = (catalog.instance_name(instance, number), catalog.line(instance));
        match &count {
            _ if found == 0 => {
                return Err(reader.error(line, format!("{name} is a server without a link to a switch")));
            }
            Some((first, expected)) if *expected != found => {
                let message = format!(
                    "{name} has {found} links to switches, and {first} has {expected}: expected as many at every server"
                );
                return Err(reader.error(line, message));
            }
            Some(_) => {}
            None => count = Some((name, found)),
        }
    }
    let Some((_, per_server)) = count else {
        let expected = "expected instances of a device with an `xpu` or a `nic`, or `topology.servers`";
        return Err(reader.error(0, expected));
    };
    let mut graph = GraphFile::default();
    let mut nodes = vec![[0; 2]; wires.len()];
    for ends in nics.values_mut() {
        // The sort keeps the order of links at one component.
        ends.sort_by(|a, b| a.0.order.cmp(&b.0.order));
        for at in 0..ends.len() {
            let (end, number, side) = ends[at];
            let before = ends[..at].iter().filter(|other| other.0.order == end.order).count();
            let has_more = ends.iter().filter(|other| other.0.order == end.order).count() > 1;
            let name = if has_more { format!("{}.{before}", end.name()) } else { end.name() };
            let node = graph.node(&name, wires[number].line);
            graph.mark(node, true);
            nodes[number][side] = node;
        }
    }
    let ids: BTreeMap<(usize, u32), usize> = switches
        .into_iter()
        .map(|(place, line)| {
            let node = graph.node(&catalog.instance_name(place.0, place.1), line);
            graph.mark(node, false);
            (place, node)
        })
        .collect();
    for (wire, mut ends) in wires.iter().zip(nodes) {
        for (end, node) in wire.ends.iter().zip(&mut ends) {
            if let Some(switch) = ids.get(&(end.instance, end.number)) {
                *node = *switch;
            }
        }
        graph.link(ends[0], ends[1], wire.cable, wire.line);
    }
    graph.set_links_per_host(narrow::<u32>(per_server));
    Ok(graph)
}

/// Refuses ranks that are not numbered as the network's are: by servers, and by XPUs within a server.
fn check_ranks(
    reader: &Reader,
    catalog: &Catalog<'_>,
    annotations: &Annotations,
) -> Result<(), NetworkError> {
    for node in &annotations.nodes {
        let Some(rank) = node.attributes.iter().find(|attribute| attribute.attribute == "rank") else {
            continue;
        };
        let line = yaml::line(&rank.value);
        let name = node.name.value.as_str();
        let expected = catalog.rank(name).ok_or_else(|| {
            let message = format!(
                "annotations: expected the rank of an xpu of a server, such as `dgx.0.xpu.1`, found `{}`",
                shorten(name)
            );
            reader.error(yaml::line(&node.name), message)
        })?;
        if rank.value.value.trim().parse() != Ok(expected) {
            let message = format!(
                "annotations: expected rank {expected} for {name}, as ranks go by instances and their xpus, found {}; \
                 another order is the workload's `placement`",
                shorten(&rank.value.value)
            );
            return Err(reader.error(line, message));
        }
    }
    Ok(())
}
