//! `netloom paths`: which paths a network offers.

use std::fs;
use std::io::Write;
use std::path::Path;

use netloom_paths::columns::ReportTable;
use netloom_paths::{PathsConfig, ReportError, report};
use netloom_record::partial;
use netloom_scenario::{Problem, build_network};

use crate::args::PathsArgs;
use crate::failure::Failure;
use crate::files::unwritable;
use crate::input::load_network;
use crate::parquet_file;

/// Measures path diversity and prints its tables.
pub(crate) fn paths(args: &PathsArgs) -> Result<(), Failure> {
    let loaded = load_network(&args.spec, Some(&args.seed))?;
    let network = build_network(&loaded.scenario, &loaded.document)?;
    if let Some(folder) = &args.out {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, &error))?;
    }
    let config = PathsConfig {
        samples: args.samples,
        seed: loaded.scenario.seed,
        max_length: args.max_length,
        exact: !args.no_exact,
        interference: !args.no_interference,
    };
    let report = report(&network.router_graph(), &config).map_err(|error| match error {
        ReportError::Parameter(invalid) => {
            Problem::new(format!("--{}", invalid.field.replace('_', "-")), invalid.reason())
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
        write_tables(folder, &tables)?;
        writeln!(out, "tables in {}", folder.display())?;
    }
    Ok(())
}

/// Writes all tables or, as far as a file system allows, none: they are put in place only when the last one is complete.
fn write_tables(folder: &Path, tables: &[ReportTable]) -> Result<(), Failure> {
    let failed = |error: std::io::Error| unwritable(folder, &partial::plain(&error));
    partial::remove_abandoned(folder, partial::PREFIX);
    let complete = tempfile::Builder::new().prefix(partial::PREFIX).tempdir_in(folder).map_err(failed)?;
    let _claim = partial::claim(complete.path());
    let names = || tables.iter().map(|table| format!("{}.parquet", table.name));
    for (name, table) in names().zip(tables) {
        let written = parquet_file::encode(table)
            .map_err(std::io::Error::other)
            .and_then(|bytes| fs::write(complete.path().join(&name), bytes));
        written.map_err(|error| unwritable(&folder.join(&name), &error))?;
    }
    let mut places = Vec::with_capacity(tables.len());
    for name in names() {
        let place = folder.join(name);
        // A link stays a link; what is no file is refused rather than renamed over.
        let place = if place.is_symlink() { fs::canonicalize(&place).map_err(failed)? } else { place };
        if place.exists() && !place.is_file() {
            return Err(unwritable(&place, &"it is no regular file"));
        }
        places.push(place);
    }
    let mut fresh = Vec::new();
    for (name, place) in names().zip(places) {
        let is_fresh = !place.exists();
        if let Err(error) = fs::rename(complete.path().join(name), &place) {
            // What was not there before goes again; what was replaced is newer than it was.
            fresh.iter().for_each(|place| _ = fs::remove_file(place));
            return Err(unwritable(&place, &error));
        }
        fresh.extend(is_fresh.then_some(place));
    }
    Ok(())
}
