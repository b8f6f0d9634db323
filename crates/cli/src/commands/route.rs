//! `netloom route`: why a packet goes where it goes.

use std::io::Write;

use netloom_routing::Routing;
use netloom_scenario::{Problem, prepare_packets};
use netloom_sim::Trace;
use netloom_topology::{HostId, Network, NodeId};
use netloom_units::kind::Kind;
use netloom_units::names::shorten;
use serde::Serialize;

use crate::args::RouteArgs;
use crate::failure::Failure;
use crate::input::load;
use crate::show;

/// A route as programs read it.
#[derive(Debug, Serialize)]
struct Route<'a> {
    network: &'a str,
    placement: &'a str,
    granularity: &'a str,
    selector: &'a str,
    src: String,
    dst: String,
    flow: u32,
    entropy: u32,
    hops: Vec<Hop<'a>>,
}

#[derive(Debug, Serialize)]
struct Hop<'a> {
    at: String,
    candidates: Vec<String>,
    takes: String,
    why: &'a str,
}

/// Follows the first packet of a flow through the idle fabric.
pub(crate) fn route(args: &RouteArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario, &args.changes)?.warn();
    let simulation = prepare_packets(&loaded.scenario, &loaded.document)?;
    let network = simulation.network();
    let (src, dst) = (host("SRC", &args.src, network)?, host("DST", &args.dst, network)?);
    if src == dst {
        return Err(Problem::new("DST", "a host sends nothing to itself; give two hosts").into());
    }
    if network.component(src) != network.component(dst) {
        let names = (network.node_name(src), network.node_name(dst));
        let message = format!(
            "no path leads from {} to {}, which are in different parts of the network (planes)",
            names.0, names.1
        );
        return Err(Problem::new("DST", message).into());
    }
    let trace = simulation.trace(src, dst, args.flow, args.entropy);
    match args.json {
        true => print_json(args, &loaded.scenario.routing, network, &trace),
        false => print_table(args, &loaded.scenario.routing, network, &trace),
    }
}

/// A host by its number, or by its name.
fn host(argument: &str, text: &str, network: &Network) -> Result<HostId, Problem> {
    let hosts = network.hosts();
    let found = match text.parse::<HostId>() {
        Ok(number) => Some(number).filter(|&number| number < hosts),
        Err(_) => match network.find_node(text) {
            Ok(node) => Some(node).filter(|&node| node < hosts),
            Err(error) => return Err(Problem::new(argument, error.reason())),
        },
    };
    found.ok_or_else(|| {
        let message = format!("expected a host from 0 to {}, found {}", hosts - 1, shorten(text));
        Problem::new(argument, message)
    })
}

fn print_json(args: &RouteArgs, routing: &Routing, network: &Network, trace: &Trace) -> Result<(), Failure> {
    let mut hops = Vec::with_capacity(trace.hops.len());
    for hop in &trace.hops {
        hops.push(Hop {
            at: network.node_name(hop.switch),
            candidates: hop.candidates.iter().map(|&(_, node)| network.node_name(node)).collect(),
            takes: network.node_name(network.neighbour(hop.switch, hop.chosen)),
            why: &hop.reason,
        });
    }
    let route = Route {
        network: network.name(),
        placement: routing.placement.name(),
        granularity: routing.granularity.name(),
        selector: routing.selector.name(),
        src: network.node_name(trace.src),
        dst: network.node_name(trace.dst),
        flow: args.flow,
        entropy: args.entropy,
        hops,
    };
    let text = serde_json::to_string_pretty(&route).map_err(std::io::Error::from)?;
    writeln!(crate::show::out(), "{text}")?;
    Ok(())
}

fn print_table(args: &RouteArgs, routing: &Routing, network: &Network, trace: &Trace) -> Result<(), Failure> {
    let mut out = crate::show::out();
    let headline = format!(
        "{} to {} on {}, scheme ({}, {}, {}), flow {}, entropy value {}, idle fabric",
        node_name(network, trace.src),
        node_name(network, trace.dst),
        network.name(),
        routing.placement.name(),
        routing.granularity.name(),
        routing.selector.name(),
        args.flow,
        args.entropy
    );
    writeln!(out, "{}", show::wrap(&headline, 2))?;
    let mut rows = vec![["at", "candidates", "takes", "why"].map(str::to_owned).to_vec()];
    for hop in &trace.hops {
        let candidates: Vec<String> =
            hop.candidates.iter().take(8).map(|(_, node)| node_name(network, *node)).collect();
        let more = match hop.candidates.len().saturating_sub(8) {
            0 => String::new(),
            n => format!(" and {n} more"),
        };
        rows.push(vec![
            node_name(network, hop.switch),
            format!("{}{more}", candidates.join(", ")),
            node_name(network, network.neighbour(hop.switch, hop.chosen)),
            hop.reason.clone(),
        ]);
    }
    writeln!(out, "{}", show::text_table(rows))?;
    Ok(())
}

/// `h3`, or `s17 (level 2)`: the name that scenarios and tables have for it, too.
fn node_name(network: &Network, node: NodeId) -> String {
    let name = network.node_name(node);
    match network.level(node) {
        0 => name,
        level => format!("{name} (level {level})"),
    }
}
