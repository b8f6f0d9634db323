//! `netloom topology`: what a network consists of.

use std::collections::BTreeMap;
use std::io::Write;

use netloom_scenario::build_network;
use netloom_topology::{Link, Network};
use serde::Serialize;

use crate::args::TopologyArgs;
use crate::failure::Failure;
use crate::input::load_network;
use crate::show;

#[derive(Debug, Serialize)]
struct Description<'a> {
    name: &'a str,
    hosts: u32,
    switches: u32,
    links: usize,
    largest_radix: usize,
    tiers: Vec<Tier>,
}

#[derive(Debug, Serialize)]
struct Tier {
    tier: String,
    links: usize,
    rate: String,
    latency: String,
}

/// Builds the network and prints its parts.
pub(crate) fn topology(args: &TopologyArgs) -> Result<(), Failure> {
    let loaded = load_network(&args.spec, args.seed)?;
    let network = build_network(&loaded.scenario, &loaded.document)?;
    let description = describe(&network);
    let mut out = std::io::stdout().lock();
    if args.json {
        let text = serde_json::to_string_pretty(&description).map_err(std::io::Error::from)?;
        writeln!(out, "{text}")?;
        return Ok(());
    }
    writeln!(out, "{}", description.name)?;
    writeln!(
        out,
        "{} hosts, {} switches of at most {} ports, {} links",
        description.hosts, description.switches, description.largest_radix, description.links
    )?;
    let mut rows = vec![["tier", "links", "rate", "latency"].map(str::to_owned).to_vec()];
    rows.extend(
        description
            .tiers
            .into_iter()
            .map(|tier| vec![tier.tier, tier.links.to_string(), tier.rate, tier.latency]),
    );
    writeln!(out, "{}", show::table(rows))?;
    Ok(())
}

fn describe(network: &Network) -> Description<'_> {
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
    Description {
        name: network.name(),
        hosts: network.hosts(),
        switches: network.switches(),
        links: network.links().len(),
        largest_radix: (network.hosts()..network.nodes())
            .map(|switch| network.ports(switch).len())
            .max()
            .unwrap_or(0),
        tiers: tiers.into_iter().map(tier).collect(),
    }
}

/// One value, or the smallest and the largest of several.
fn range<T: Ord + Copy + std::fmt::Display>(values: impl Iterator<Item = T> + Clone) -> String {
    match (values.clone().min(), values.max()) {
        (Some(low), Some(high)) if low != high => format!("{low} to {high}"),
        (Some(value), _) => value.to_string(),
        _ => String::new(),
    }
}
