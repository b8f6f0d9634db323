//! `netloom topology`: what a network consists of.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use netloom_scenario::{Problem, build_network, build_plane};
use netloom_study::significant;
use netloom_topology::{Cost, CostModel, ExportFormat, Link, Metrics, Network, NetworkError};
use netloom_units::Rate;
use serde::Serialize;

use crate::args::TopologyArgs;
use crate::failure::Failure;
use crate::files::write_file;
use crate::input::load_network;
use crate::picture_file::{PictureFormat, write_picture};
use crate::show;

#[derive(Debug, Serialize)]
struct Description {
    #[serde(flatten)]
    metrics: Metrics,
    tiers: Vec<Tier>,
    tree: Tree,
    cost: Cost,
    /// The network of a run, where servers have planes or a network inside.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole: Option<Whole>,
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
        write_picture(file, format, &netloom_report::draw(&network))?;
    }
    let whole = match &loaded.scenario.servers {
        Some(_) => Some(build_network(&loaded.scenario, &loaded.document)?),
        None => None,
    };
    let whole = whole.filter(|whole| whole.components() > network.components()).map(|whole| {
        let (hosts, switches, links) = (whole.hosts(), whole.switches(), whole.links().len());
        Whole { name: whole.name().to_owned(), hosts, switches, links, tiers: tiers(&whole) }
    });
    let description = Description {
        whole,
        metrics: network.metrics(),
        tiers: tiers(&network),
        tree: tree(&network),
        cost: CostModel::published().price(&network),
    };
    let mut out = crate::show::out();
    if args.json {
        let text = serde_json::to_string_pretty(&description).map_err(std::io::Error::from)?;
        writeln!(out, "{text}")?;
    } else {
        write!(out, "{}", describe(description))?;
    }
    Ok(())
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
    let Description { metrics, tiers, tree, cost, whole } = description;
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
    for (name, value) in lines {
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
