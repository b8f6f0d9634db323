//! `netloom paths`: which paths a network offers.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use netloom_paths::columns::ReportTable;
use netloom_paths::{PathsConfig, PathsReport, ReportError, report};
use netloom_record::{outcome_around, partial, whole};
use netloom_scenario::{Problem, build_plane};

use crate::args::PathsArgs;
use crate::failure::Failure;
use crate::files::unwritable;
use crate::input::load_network;
use crate::progress::BusyLine;
use crate::{parquet_file, show};

/// Measures path diversity and prints its tables.
pub(crate) fn paths(args: &PathsArgs) -> Result<(), Failure> {
    let loaded = load_network(&args.spec, Some(&args.seed))?;
    let busy = BusyLine::new("building the network and looking for paths");
    let network = build_plane(&loaded.scenario, &loaded.document)?;
    let place = args.out.as_deref().map(Tables::prepare).transpose()?;
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

    drop(busy);
    let tables = report.tables();
    let mut out = crate::show::out();
    writeln!(out, "{}", network.name())?;
    for table in &tables {
        writeln!(out, "\n{}\n{}", table.name, show::table(table.cells()))?;
    }
    let caption = "cdp: disjoint paths of at most that length, pi: path interference; both as shares of the radix (FatPaths sec. IV)";
    writeln!(out, "{}", show::wrap(caption, 0))?;
    if let (Some(place), Some(folder)) = (place, &args.out) {
        place.write(&tables)?;
        writeln!(out, "tables in {}", folder.display())?;
    }
    Ok(())
}

/// The folder of the tables, if it may be one: no file that is something else is ever touched.
struct Tables {
    dir: PathBuf,
}

impl Tables {
    /// Checks the folder, so that a bad one is known before the paths are counted.
    fn prepare(dir: &Path) -> Result<Self, Failure> {
        let tables = Tables { dir: whole::place(dir).map_err(|error| unwritable(dir, &error))? };
        if whole::holds_working_directory(&tables.dir) {
            return Err(unwritable(
                dir,
                &"it is the working directory or above it; the tables need a folder of their own",
            ));
        }
        if let Some(outcome) = outcome_around(&tables.dir) {
            let reason =
                format!("it is inside the outcome {}; choose a folder next to it", outcome.display());
            return Err(unwritable(dir, &reason));
        }
        tables.is_there()?;
        Ok(tables)
    }

    /// Whether there are tables to replace.
    fn is_there(&self) -> Result<bool, Failure> {
        let entries = match fs::read_dir(&self.dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
            Err(error) => return Err(unwritable(&self.dir, &error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| unwritable(&self.dir, &error))?;
            let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
            found.push((entry.file_name().to_string_lossy().into_owned(), is_file));
        }
        found.sort();
        let is_table = |name: &str| PathsReport::TABLES.iter().any(|table| name == file_name(table));
        match found.iter().find(|(name, is_file)| !is_file || !is_table(name)) {
            Some((name, _)) => {
                let reason = format!(
                    "it contains `{name}`, which is not a table of `netloom paths`; choose another folder"
                );
                Err(unwritable(&self.dir, &reason))
            }
            None => Ok(!found.is_empty()),
        }
    }

    /// Writes all tables or none, and in place of all former ones or of none.
    fn write(&self, tables: &[ReportTable]) -> Result<(), Failure> {
        let failed = |error: io::Error| unwritable(&self.dir, &error);
        let parent = self.dir.parent().unwrap_or(&self.dir);
        fs::create_dir_all(parent).map_err(failed)?;
        partial::remove_abandoned(parent, &whole::prefix(&self.dir));
        let (folder, _claim) = whole::temporary_in(parent, &self.dir).map_err(failed)?;
        for table in tables {
            let name = file_name(table.name);
            let write = |bytes: Vec<u8>| {
                let mut file = File::create_new(folder.path().join(&name))?;
                file.write_all(&bytes)?;
                file.sync_all()
            };
            let written = parquet_file::encode(table).map_err(io::Error::other).and_then(write);
            written.map_err(|error| unwritable(&self.dir.join(&name), &error))?;
        }
        whole::sync_folder(folder.path()).map_err(failed)?;
        let is_there = self.is_there()?;
        whole::put_in_place(folder, &self.dir, is_there).map_err(failed)?;
        whole::sync_folder(parent).map_err(failed)
    }
}

fn file_name(table: &str) -> String {
    format!("{table}.parquet")
}
