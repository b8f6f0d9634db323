//! `netloom topology`: what a network consists of.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use netloom_scenario::{Problem, build_network, build_plane};
use netloom_study::significant;
use netloom_topology::{Cost, CostModel, ExportFormat, Link, Metrics, Network, NetworkError};
use netloom_units::Rate;
use netloom_workload::{NicSelection, Servers, Wiring};
use serde::Serialize;

use crate::args::TopologyArgs;
use crate::failure::Failure;
use crate::files::write_file;
use crate::input::load_network;
use crate::picture_file::{PictureFormat, write_picture};
use crate::progress::BusyLine;
use crate::show;

#[derive(Debug, Serialize)]
struct Description {
    #[serde(flatten)]
    metrics: Metrics,
    tiers: Vec<Tier>,
    tree: Tree,
    cost: Cost,
    /// Where the scenario has servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    servers: Option<ServerCounts>,
    /// The network of a run, where servers have planes or a network inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<Whole>,
}

/// What the servers of a scenario are, and what all planes of their network consist of and cost.
#[derive(Debug, Serialize)]
struct ServerCounts {
    servers: u32,
    nics: u32,
    /// GPUs of a server; 0 where none are said.
    gpus: u32,
    planes: u32,
    /// Ports of a NIC in one network.
    ports: u32,
    /// Rails, each with its own leaf switches; absent where the NICs of a server stand side by side.
    #[serde(skip_serializing_if = "Option::is_none")]
    rails: Option<u32>,
    /// Switches with hosts and others, of one plane.
    leaf_switches: u32,
    other_switches: u32,
    /// Of all planes.
    switch_ports: u64,
    cables: u64,
    dollars: f64,
    dollars_per_server: f64,
    watts: f64,
}

/// A network of several that no link joins.
#[derive(Debug, Serialize)]
struct Whole {
    name: String,
    hosts: u32,
    switches: u32,
    links: usize,
    tiers: Vec<Tier>,
}

/// What kind of tree the switches form.
#[derive(Debug, Serialize)]
struct Tree {
    /// Switches of each level, the lowest first; none if it is no tree.
    levels: Vec<usize>,
    /// Whether the levels were found by the network's structure.
    found: bool,
    /// Why there are no levels.
    #[serde(skip_serializing_if = "Option::is_none")]
    no_tree: Option<String>,
}

#[derive(Debug, Serialize)]
struct Tier {
    tier: String,
    links: usize,
    rate: String,
    latency: String,
}

/// Builds the network, prints what it is, and exports it if asked to.
pub(crate) fn topology(args: &TopologyArgs) -> Result<(), Failure> {
    let loaded = load_network(&args.spec, args.seed.as_deref())?;
    let format =
        args.export.as_deref().map(|file| export_format(file, args.format.as_deref())).transpose()?;
    let picture = args.draw.as_deref().map(|file| PictureFormat::of("--draw", file)).transpose()?;
    let busy = BusyLine::new("building and measuring the network");
    let network = build_plane(&loaded.scenario, &loaded.document)?;
    if let (Some(file), Some(format)) = (&args.export, format) {
        let text = network.export(format).map_err(|error| match error {
            NetworkError::Parameter(wrong) => {
                Problem::new("--format", format!("expected {}, found {}", wrong.expected, wrong.found))
            }
            error => Problem::new("--format", error.to_string()),
        })?;
        write_file(file, text.as_bytes())?;
    }
    if let (Some(file), Some(format)) = (&args.draw, picture) {
        write_picture(file, format, &picture_of(&network, loaded.scenario.servers.as_ref())?)?;
    }
    let whole = match &loaded.scenario.servers {
        Some(_) => Some(build_network(&loaded.scenario, &loaded.document)?),
        None => None,
    };
    let whole = whole.filter(|whole| whole.components() > network.components()).map(|whole| {
        let (hosts, switches, links) = (whole.hosts(), whole.switches(), whole.links().len());
        Whole { name: whole.name().to_owned(), hosts, switches, links, tiers: tiers(&whole) }
    });
    let cost = CostModel::published().price(&network);
    let servers = loaded.scenario.servers.as_ref().map(|servers| count_servers(servers, &network, &cost));
    let description = Description {
        servers,
        whole,
        metrics: network.metrics(),
        tiers: tiers(&network),
        tree: tree(&network),
        cost,
    };
    drop(busy);
    let mut out = crate::show::out();
    if args.json {
        let text = serde_json::to_string_pretty(&description).map_err(std::io::Error::from)?;
        writeln!(out, "{text}")?;
    } else {
        write!(out, "{}", show::fit(&describe(description)))?;
    }
    Ok(())
}

/// Draws a network, with all of its planes and by rail where servers have some.
fn picture_of(plane: &Network, servers: Option<&Servers>) -> Result<String, Failure> {
    let Some(servers) =
        servers.filter(|of| of.planes > 1 || of.wiring == Wiring::RailOptimised && of.ports == 1)
    else {
        return Ok(netloom_report::draw(plane));
    };
    // What is inside a server is not drawn.
    let outside = Servers { scale_up: None, nic_selection: NicSelection::default(), ..servers.clone() };
    let whole = outside.network(plane.clone());
    let whole = whole.map_err(|invalid| Problem::new("servers", invalid.to_string()))?;
    let rails = (servers.wiring == Wiring::RailOptimised && servers.ports == 1).then_some(servers.nics);
    Ok(netloom_report::draw_planes(&whole, rails))
}

fn count_servers(servers: &Servers, plane: &Network, cost: &Cost) -> ServerCounts {
    let mut leaves: Vec<_> = (0..plane.hosts()).map(|host| plane.edge_switch(host)).collect();
    leaves.sort_unstable();
    leaves.dedup();
    let leaf_switches = u32::try_from(leaves.len()).unwrap_or(u32::MAX);
    let count = plane.hosts() / (servers.nics * servers.ports);
    let planes = u64::from(servers.planes);
    let of_switches = |switch| plane.ports(switch).len() as u64;
    let ports: u64 = (plane.hosts()..plane.nodes()).map(of_switches).sum();
    let dollars = planes as f64 * cost.dollars;
    ServerCounts {
        servers: count,
        nics: servers.nics,
        gpus: servers.gpus.unwrap_or(0),
        planes: servers.planes,
        ports: servers.ports,
        rails: (servers.wiring == Wiring::RailOptimised).then_some(servers.nics),
        leaf_switches,
        other_switches: plane.switches() - leaf_switches,
        switch_ports: planes * ports,
        cables: planes * plane.links().len() as u64,
        dollars,
        dollars_per_server: dollars / f64::from(count),
        watts: planes as f64 * cost.watts,
    }
}

impl ServerCounts {
    fn lines(&self) -> Vec<(&'static str, String)> {
        let counted = |count: u32, one: &str, more: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {more}"),
        };
        let of_gpus =
            if self.gpus > 0 { format!("{} and ", counted(self.gpus, "GPU", "GPUs")) } else { String::new() };
        let ports = if self.planes > 1 {
            format!(", each with a port to {} planes", self.planes)
        } else if self.ports > 1 {
            format!(", each with {} ports", self.ports)
        } else {
            String::new()
        };
        let nics = counted(self.nics, "NIC", "NICs");
        let mut lines = vec![("servers", format!("{} of {of_gpus}{nics}{ports}", self.servers))];
        if let Some(rails) = self.rails {
            let each = self.leaf_switches / rails.max(1);
            lines.push((
                "rails",
                format!("{rails}, each of {}", counted(each, "leaf switch", "leaf switches")),
            ));
        }
        let of_plane = format!(
            "{} with hosts, {} without",
            counted(self.leaf_switches, "switch", "switches"),
            self.other_switches
        );
        let planes = if self.planes > 1 { format!("{}, each of {of_plane}", self.planes) } else { of_plane };
        lines.push((if self.planes > 1 { "planes" } else { "switches" }, planes));
        let cost = format!(
            "{} switch ports, {} cables; {} $ per server, {} W per server",
            self.switch_ports,
            self.cables,
            significant(self.dollars_per_server),
            significant(self.watts / f64::from(self.servers.max(1)))
        );
        lines.push((if self.planes > 1 { "all planes" } else { "in all" }, cost));
        lines
    }
}

fn export_format(file: &Path, name: Option<&str>) -> Result<ExportFormat, Failure> {
    let format = match name {
        Some(name) => name.parse().map_err(|error: NetworkError| error.to_string()),
        None => ExportFormat::of_path(file)
            .ok_or_else(|| format!("the extension of {} names no format", file.display())),
    };
    let names = ExportFormat::ALL.map(|(_, name, _)| name);
    Ok(format.map_err(|message| {
        Problem::new("--format", message).help(format!("choose one of {}", names.join(", ")))
    })?)
}

fn tiers(network: &Network) -> Vec<Tier> {
    let mut tiers: BTreeMap<_, Vec<&Link>> = BTreeMap::new();
    for link in network.links() {
        tiers.entry(link.tier).or_default().push(link);
    }
    let tier = |(id, links): (u8, Vec<&Link>)| Tier {
        tier: network.tiers()[usize::from(id)].clone(),
        links: links.len(),
        rate: range(links.iter().map(|link| link.rate)),
        latency: range(links.iter().map(|link| link.latency)),
    };
    tiers.into_iter().map(tier).collect()
}

fn tree(network: &Network) -> Tree {
    let mut levels = Vec::new();
    for switch in (network.hosts()..network.nodes()).filter(|_| network.is_tree()) {
        let level = usize::from(network.level(switch));
        levels.resize(levels.len().max(level), 0);
        levels[level - 1] += 1;
    }
    Tree { levels, found: network.has_found_levels(), no_tree: network.why_no_tree() }
}

impl Tree {
    fn words(&self) -> String {
        if let Some(why) = &self.no_tree {
            return format!("none, as it is not a tree: {why}");
        }
        let levels = self.levels.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
        let found = if self.found { ", found by the distances of the hosts" } else { "" };
        format!("{} with {levels} switches{found}", self.levels.len())
    }
}

fn describe(description: Description) -> String {
    let Description { metrics, tiers, tree, cost, servers, whole } = description;
    let mut text = format!("{}\n{}", metrics.name, table_of(tiers));
    let span =
        |(low, high): (u32, u32)| if low == high { low.to_string() } else { format!("{low} to {high}") };
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    let rate = |rate: Rate| show::rate(rate.0 as f64);
    let bisection = metrics.bisection.map(|bounds| match bounds.at_least {
        Some(least) => format!("{} to {}", rate(least), rate(bounds.at_most)),
        None => format!("at most {}", rate(bounds.at_most)),
    });
    let sampled = if metrics.distances_sampled { " (sampled)" } else { "" };
    let lines = [
        ("size", format!("{} hosts, {} switches, {} links", metrics.hosts, metrics.switches, metrics.links)),
        ("levels", tree.words()),
        ("radix", format!("{} ports at most", metrics.radix)),
        (
            "switches with hosts",
            format!("{} hosts, {} links to switches", span(metrics.hosts_per_switch), span(metrics.degree)),
        ),
        ("diameter", format!("{}{sampled}", metrics.diameter)),
        ("mean distance", format!("{}{sampled}", or_none(metrics.mean_distance.map(significant)))),
        ("edge density", format!("{} links per host", significant(metrics.edge_density))),
        ("total network load", or_none(metrics.total_network_load.map(significant))),
        (
            "bisection",
            format!("{}; half of the hosts send {}", or_none(bisection), rate(Rate(metrics.half_injection))),
        ),
        (
            "cost",
            format!(
                "{} $ per host, {} W per host (coefficients of the Slim Fly paper)",
                significant(cost.dollars_per_host),
                significant(cost.watts_per_host)
            ),
        ),
    ];
    text.push('\n');
    for (name, value) in lines.into_iter().chain(servers.iter().flat_map(ServerCounts::lines)) {
        text += &format!("{name:<20} {value}\n");
    }
    if let Some(Whole { name, hosts, switches, links, tiers }) = whole {
        text += &format!("\nWith `servers`, a run has {name}:\n{}", table_of(tiers));
        let size = format!(
            "{hosts} hosts, one for each port of a server or GPU; {switches} switches, {links} links"
        );
        text += &format!("\n{:<20} {size}\n", "size");
    }
    text
}

fn table_of(tiers: Vec<Tier>) -> String {
    let mut rows = vec![["tier", "links", "rate", "latency"].map(str::to_owned).to_vec()];
    rows.extend(
        tiers.into_iter().map(|tier| vec![tier.tier, tier.links.to_string(), tier.rate, tier.latency]),
    );
    show::table(rows)
}

/// One value, or the smallest and the largest of several.
fn range<T: Ord + Copy + std::fmt::Display>(values: impl Iterator<Item = T> + Clone) -> String {
    match (values.clone().min(), values.max()) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (Some(value), _) => value.to_string(),
        _ => String::new(),
    }
}
