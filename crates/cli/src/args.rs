//! The command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand};

/// Which path should each packet take, and what does that choice cost?
///
/// netloom simulates datacenter and HPC fabrics packet by packet and puts routing schemes side by side on the same work.
#[derive(Debug, Parser)]
#[command(name = "netloom", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a scenario and write its outcome.
    Run(RunArgs),
    /// Run a study: a scenario over a grid of values, held against its claims.
    Study(StudyArgs),
    /// Print a scenario with every default filled in and the routing preset expanded.
    Explain(ScenarioArgs),
    /// Show every kind and preset with its parameters, defaults and source.
    List(ListArgs),
    /// Build a network and show what it consists of.
    Topology(TopologyArgs),
    /// Show the candidates at every hop from one host to another, and why one is chosen.
    Route(RouteArgs),
}

/// A scenario and the changes made to it.
#[derive(Debug, ClapArgs)]
pub(crate) struct ScenarioArgs {
    /// Scenario file (TOML).
    pub(crate) scenario: PathBuf,
    #[command(flatten)]
    pub(crate) changes: Changes,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct Changes {
    /// Set a field, e.g. --set routing.granularity.gap=50us; may be given several times.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub(crate) set: Vec<String>,
    /// Seed of every random choice; short for --set seed=N.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u32>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Worker threads. The result does not depend on their number.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,
    /// Folder of the outcome [default: runs/<name of the scenario>].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an outcome that is there already.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the summary as JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StudyArgs {
    /// Study file (TOML).
    pub(crate) study: PathBuf,
    /// Run the study's small form.
    #[arg(long)]
    pub(crate) small: bool,
    /// Set a field of the study's scenario, before its axes do; may be given several times.
    #[arg(long = "set", value_name = "FIELD=VALUE")]
    pub(crate) set: Vec<String>,
    /// Cells run at the same time [default: one per core].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: Option<u16>,
    /// Folder of the cells' outcomes and the results [default: runs/<name of the file>, with -small for the small form].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print claims and results as JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// An axis (e.g. selector), a kind (e.g. flowlet) or a preset (e.g. ecmp); all axes if absent.
    pub(crate) name: Option<String>,
    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TopologyArgs {
    /// A scenario file, or a kind with parameters such as fat-tree:k=16,rate=400Gbps.
    pub(crate) spec: String,
    /// Seed of random networks.
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u32>,
    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RouteArgs {
    /// Scenario file (TOML).
    pub(crate) scenario: PathBuf,
    /// Source host.
    pub(crate) src: u32,
    /// Destination host.
    pub(crate) dst: u32,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Which flow of the source, from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) flow: u32,
    /// Entropy value that the packet carries.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) entropy: u32,
}
