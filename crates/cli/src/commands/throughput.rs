//! `netloom throughput`: how much the paths of a network can carry.

use std::io::Write;
use std::path::Path;

use netloom_scenario::{Problem, build_plane, suggest};
use netloom_study::significant;
use netloom_throughput::{Method, ThroughputConfig, ThroughputError, solve};

use crate::args::ThroughputArgs;
use crate::failure::Failure;
use crate::input::{kind_in_one_word, load_network};
use crate::progress::BusyLine;

/// Computes and prints the maximum achievable throughput.
pub(crate) fn throughput(args: &ThroughputArgs) -> Result<(), Failure> {
    if !(args.gap > 0.0 && args.gap < 1.0) {
        let message = format!("expected a number above 0 and below 1, found {}", args.gap);
        return Err(Problem::new("--gap", message).into());
    }
    let loaded = load_network(&args.spec, Some(&args.seed))?;
    let config = ThroughputConfig {
        routing: kind_in_one_word("--routing", &args.routing)?,
        traffic: kind_in_one_word("--traffic", &args.traffic)?,
        method: method(&args.method)?,
        gap: args.gap,
        seed: loaded.scenario.seed,
        ..ThroughputConfig::default()
    };
    let busy = BusyLine::new("building the network and solving for its throughput");
    let network = build_plane(&loaded.scenario, &loaded.document)?;
    let report = solve(&network.router_graph(), &config, Path::new("")).map_err(|error| match error {
        ThroughputError::Parameter(invalid) => Problem::new(&*invalid.field, invalid.reason()),
        other => Problem::new("", other.to_string()),
    })?;

    drop(busy);
    let bounds = report.throughput;
    let value = match bounds.gap() > 1e-6 {
        true => format!("{} to {}", significant(bounds.lower), significant(bounds.upper)),
        false => significant(bounds.value()),
    };
    let mut text = String::new();
    text += &format!("{}\n", network.name());
    text += &format!(
        "throughput   {value} (1: every sending host sends at link rate; host links are not counted)\n"
    );
    text += &format!("method       {}\n", report.method);
    text += &format!(
        "upper bound  {} for any routing (capacity over path length)\n",
        significant(report.length_bound)
    );
    text += &format!(
        "traffic      {} router pairs, {} links of capacity in all\n",
        report.commodities,
        significant(report.demand)
    );
    if report.draws.len() > 1 {
        let most = report.draws.iter().copied().fold(0.0, f64::max);
        let range = format!("{} to {}", significant(bounds.value()), significant(most));
        text +=
            &format!("draws        {} matchings with {range}; the lowest is reported\n", report.draws.len());
    }
    if report.paths > 0 {
        text += &format!("paths        {} in {} layers\n", report.paths, report.layers);
    }
    crate::show::out().write_all(crate::show::fit(&text).as_bytes())?;
    Ok(())
}

fn method(name: &str) -> Result<Method, Failure> {
    match name {
        "auto" => Ok(Method::Auto),
        "exact" => Ok(Method::Exact),
        "approximate" => Ok(Method::Approximate),
        other => {
            let problem = Problem::new("--method", format!("there is no method `{other}`"));
            Err(problem.help(suggest(other, ["auto", "exact", "approximate"])).into())
        }
    }
}
