//! `netloom paths`: which paths a network offers.

use std::fs;
use std::io::Write;

use netloom_paths::{PathsConfig, ReportError, report};
use netloom_scenario::{Problem, build_network};

use crate::args::PathsArgs;
use crate::failure::{Failure, unwritable};
use crate::input::load_network;
use crate::parquet_file;

/// Measures path diversity and prints its tables.
pub(crate) fn paths(args: &PathsArgs) -> Result<(), Failure> {
    let loaded = load_network(&args.spec, Some(args.seed))?;
    let network = build_network(&loaded.scenario, &loaded.document)?;
    if let Some(folder) = &args.out {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    }
    let config = PathsConfig {
        samples: args.samples,
        seed: args.seed,
        max_length: args.max_length,
        exact: !args.no_exact,
        interference: !args.no_interference,
    };
    let report = report(&network.router_graph(), &config).map_err(|error| match error {
        ReportError::Parameter { field, expected, found } => {
            let option = format!("--{}", field.replace('_', "-"));
            Problem::new(option, format!("expected {expected}, found {found}"))
        }
        other => Problem::new("", other.to_string()),
    })?;

    let tables = report.tables();
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", network.name())?;
    for table in &tables {
        writeln!(out, "\n{}\n{table}", table.name)?;
    }
    writeln!(
        out,
        "cdp: disjoint paths of at most that length, pi: path interference; both as shares of the radix (FatPaths sec. IV)"
    )?;
    if let Some(folder) = &args.out {
        for table in &tables {
            parquet_file::write(&folder.join(format!("{}.parquet", table.name)), table)?;
        }
        writeln!(out, "tables in {}", folder.display())?;
    }
    Ok(())
}
