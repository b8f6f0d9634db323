//! The `netloom` command: simulate and analyse datacenter and HPC fabrics.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | done; every gate of a study holds |
//! | 1 | a gate of a study does not hold, a cell failed, or an outcome could not be written |
//! | 2 | the command line, a scenario or a study is wrong; nothing was run |
//! | 70 | netloom found a mistake of its own (a packet lost track of); please report it |
//! | 130 | interrupted (Ctrl-C, SIGTERM, SIGHUP); what was complete is written |

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod args;
mod commands;
mod convert;
mod failure;
mod files;
mod findings;
mod input;
mod interrupt;
mod parquet_file;
mod picture_file;
mod progress;
mod show;
mod summary;

use std::process::ExitCode;

use clap::Parser;
// Sets the allocator.
use netloom_allocator as _;
use netloom_scenario::Problem;

use crate::args::{Args, Command};
use crate::failure::Failure;

fn main() -> ExitCode {
    let command = match Args::try_parse() {
        Ok(args) => args.command,
        Err(answer) => return failure::answer(&answer),
    };
    if let Err(error) = netloom_units::memory::limit() {
        return Failure::from(Problem::new("", error.to_string())).report();
    }
    let result = match command {
        Command::Init(args) => commands::init::init(&args),
        Command::Run(args) => commands::run::run(&args),
        Command::Study(args) => commands::study::study(&args),
        Command::Recommend(args) => commands::recommend::recommend(&args),
        Command::Show(args) => commands::show::show(&args),
        Command::Compare(args) => commands::compare::compare(&args),
        Command::Pcapng(args) => commands::pcapng::pcapng(&args),
        Command::CriticalPath(args) => commands::critical_path::critical_path_of(&args),
        Command::Perfetto(args) => commands::perfetto::perfetto(&args),
        Command::Fct(args) => commands::fct::fct(&args),
        Command::Report(args) => commands::report::report(&args),
        Command::Explain(args) => commands::explain::explain(&args),
        Command::FromHtsim(args) => commands::from_htsim::from_htsim(&args),
        Command::FromNs3(args) => commands::from_ns3::from_ns3(&args),
        Command::FromSimai(args) => commands::from_ns3::from_simai(&args),
        Command::List(args) => commands::list::list(&args),
        Command::Topology(args) => commands::topology::topology(&args),
        Command::Paths(args) => commands::paths::paths(&args),
        Command::Layers(args) => commands::layers::layers(&args),
        Command::Cost(args) => commands::cost::cost(&args),
        Command::Throughput(args) => commands::throughput::throughput(&args),
        Command::Route(args) => commands::route::route(&args),
        Command::Schema(args) => commands::schema::schema(&args),
        Command::Completions(args) => commands::manual::completions(&args),
        Command::Man(args) => commands::manual::man(&args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
