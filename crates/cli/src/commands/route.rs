//! `netloom route`: why a packet goes where it goes.

use std::io::Write;

use netloom_scenario::{Problem, prepare};
use netloom_topology::{Network, NodeId};
use netloom_units::kind::Kind;

use crate::args::RouteArgs;
use crate::failure::Failure;
use crate::input::load;
use crate::show;

/// Follows the first packet of a flow through the idle fabric.
pub(crate) fn route(args: &RouteArgs) -> Result<(), Failure> {
    let loaded = load(&args.scenario, &args.changes)?;
    let ready = prepare(&loaded.scenario, &loaded.document)?;
    let network = ready.simulation.network();
    for (name, host) in [("SRC", args.src), ("DST", args.dst)] {
        if host >= network.hosts() {
            let message = format!("expected a host from 0 to {}, found {host}", network.hosts() - 1);
            return Err(Problem::new(name, message).into());
        }
    }
    if args.src == args.dst {
        return Err(Problem::new("DST", "a host sends nothing to itself; give two hosts").into());
    }

    let trace = ready.simulation.trace(args.src, args.dst, args.flow, args.entropy);
    let routing = &loaded.scenario.routing;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "host {} to host {} on {}, scheme ({}, {}, {}), flow {}, entropy value {}, idle fabric",
        trace.src,
        trace.dst,
        network.name(),
        routing.placement.name(),
        routing.granularity.name(),
        routing.selector.name(),
        args.flow,
        args.entropy
    )?;
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

/// `host 3`, or `switch 17 (level 2, pod 1)`.
fn node_name(network: &Network, node: NodeId) -> String {
    if network.is_host(node) {
        return format!("host {node}");
    }
    let number = node - network.hosts();
    let level = network.level(node);
    if level == 0 {
        return format!("switch {number}");
    }
    format!("switch {number} (level {level})")
}
