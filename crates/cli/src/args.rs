//! The command line.

use std::path::PathBuf;

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use netloom_study::{Form, Shard};

/// Which path should each packet take, and what does that choice cost?
///
/// netloom simulates datacenter and HPC fabrics packet by packet, and compares routing schemes under the same workload.
#[derive(Debug, Parser)]
#[command(name = "netloom", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Write a commented first scenario or study to start from.
    Init(InitArgs),
    /// Run a scenario and write its outcome.
    Run(RunArgs),
    /// Run a study: a grid of runs or of measurements of networks, checked against its claims.
    Study(StudyArgs),
    /// Find the best of several routing schemes for a scenario, in as few runs as that takes.
    Recommend(RecommendArgs),
    /// Print the tables of an outcome or a study again.
    Show(ShowArgs),
    /// Show what differs between two outcomes, or between two studies.
    Compare(CompareArgs),
    /// Write the packets that a run traced as a capture for Wireshark.
    Pcapng(PcapngArgs),
    /// Show the critical path of a job: which computation and which messages its time consists of.
    CriticalPath(CriticalPathArgs),
    /// Write what jobs, ranks, flows and links did over time, for Perfetto.
    Perfetto(PerfettoArgs),
    /// Write the finished flows of an outcome in the columns of HPCC's or ConWeave's fct.txt.
    Fct(FctArgs),
    /// Make one HTML page with charts of outcomes and studies.
    Report(ReportArgs),
    /// Print a scenario with every default filled in and the routing preset expanded.
    Explain(ScenarioArgs),
    /// Convert a command of htsim to a scenario.
    FromHtsim(FromHtsimArgs),
    /// Convert the configuration of an HPCC or ConWeave ns-3 simulation to a scenario.
    FromNs3(FromNs3Args),
    /// Convert the files of a SimAI simulation to a scenario: its configuration, its topology and its workload, named as on SimAI's command line.
    FromSimai(FromSimaiArgs),
    /// List every kind and preset with its parameters, defaults and source, or search them.
    List(ListArgs),
    /// Build a network and show its size, links, distances and cost.
    Topology(TopologyArgs),
    /// Measure the path diversity of a network.
    Paths(PathsArgs),
    /// Compute the layers of a network and save them for use in scenarios.
    Layers(LayersArgs),
    /// Compute how much traffic the paths of a network can carry.
    Throughput(ThroughputArgs),
    /// Compute what a scheme needs in switches and on the wire, by its paper's model.
    Cost(CostArgs),
    /// Show the candidates at every hop from one host to another, and why one is chosen.
    Route(RouteArgs),
    /// Print the JSON schema of scenarios or studies, for editors.
    Schema(SchemaArgs),
    /// Print a completion script for a shell.
    Completions(CompletionsArgs),
    /// Print netloom's manual page, or write those of all commands.
    Man(ManArgs),
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
    #[arg(long = "set", value_name = "FIELD=VALUE", allow_hyphen_values = true)]
    pub(crate) set: Vec<String>,
    /// Seed of every random choice; short for --set seed=N.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct InitArgs {
    /// What to start from.
    #[arg(value_enum)]
    pub(crate) what: Option<InitKind>,
    /// The file to write [default: the name with .toml, in the working directory].
    pub(crate) file: Option<PathBuf>,
}

/// What a first file is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InitKind {
    /// A scenario: a permutation on a fat tree.
    FatTree,
    /// A scenario: an all-to-all of GPU servers with several NICs, on a rail-optimised leaf-spine network.
    GpuCluster,
    /// A scenario: Ultra Ethernet, spraying over a leaf-spine network with trimming.
    Uet,
    /// A scenario: adversarial traffic on a Slim Fly, routed over FatPaths' layers.
    SlimFly,
    /// A study: three routing schemes on a fat tree, with a claim.
    Study,
    /// A study: routing schemes for a cluster of 512 GPUs, by the time of an all-to-all.
    GpuStudy,
    /// A study: a Slim Fly against a fat tree of as many hosts.
    SlimFlyStudy,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// Worker threads; the result does not depend on their number [default: the cores that are idle, but one thread for networks of fewer
    /// than 512 hosts and switches, where threads would mostly wait for each other].
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: Option<u16>,
    /// Folder of the outcome [default: runs/ and the name of the scenario].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Replace an outcome that is there already.
    #[arg(long)]
    pub(crate) force: bool,
    /// Treat warnings as errors.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print the summary as JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only errors, and show no progress.
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
    /// Print a line for each rank of a training job, as ASTRA-sim does, instead of the summary.
    #[arg(long, conflicts_with_all = ["json", "quiet"])]
    pub(crate) astra_sim: bool,
    /// Write the table of layers that SimAI writes (`EndToEnd.csv`), of a workload of kind `simai`.
    #[arg(long, value_name = "FILE")]
    pub(crate) simai_csv: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct StudyArgs {
    /// Study file (TOML).
    pub(crate) study: PathBuf,
    /// Run the study's small form, in seconds.
    #[arg(long)]
    pub(crate) small: bool,
    /// Run the study's full form, at the size of what it reproduces.
    #[arg(long, conflicts_with = "small")]
    pub(crate) full: bool,
    /// Set a field of the study's scenario or analysis, before its axes do; may be given several times.
    #[arg(long = "set", value_name = "FIELD=VALUE", allow_hyphen_values = true)]
    pub(crate) set: Vec<String>,
    /// Cells run at the same time [default: one per core].
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: Option<u16>,
    /// Folder of the cells' outcomes and the results [default: runs/FOLDER-NAME of the study file, with -small or -full for that form].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Run part I of N of the cells and check no claim; the same command without --shard then finishes the study.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,
    /// Run the cells on the Dask cluster of this scheduler, e.g. tcp://host:8786. Needs the Python package.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["set", "workers", "shard", "clean", "strict", "columns", "json", "quiet"])]
    pub(crate) dask: Option<String>,
    /// Remove the folders of cells that the study no longer uses: cells of another build of netloom, or of an earlier version of the study or
    /// its scenario.
    #[arg(long, conflicts_with = "shard")]
    pub(crate) clean: bool,
    /// Treat warnings as errors: those of the plan before anything runs, those of the runs after all of them.
    #[arg(long)]
    pub(crate) strict: bool,
    /// Show how many cells there are and about how much time and memory they need; run and write nothing.
    #[arg(long, conflicts_with_all = ["dask", "shard", "clean", "quiet"])]
    pub(crate) dry_run: bool,
    /// Columns of the table of results, in place of the study's: fct, slowdown, completion, job-time, jobs, throughput, drops,
    /// trims, retransmissions, timeouts, pauses, reordering, marks, notifications, queues, utilisation, steady, or any metric such as p99_fct.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// Print claims and results as JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print only errors, and show no progress; the exit code says whether all gates are met.
    #[arg(long, short, conflicts_with = "json")]
    pub(crate) quiet: bool,
}

impl StudyArgs {
    /// The form in which the study is to be run.
    pub(crate) fn form(&self) -> Form {
        match self {
            StudyArgs { small: true, .. } => Form::Small,
            StudyArgs { full: true, .. } => Form::Full,
            StudyArgs { .. } => Form::Middle,
        }
    }
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RecommendArgs {
    /// Scenario file (TOML).
    pub(crate) scenario: PathBuf,
    /// Routing presets to compare, each perhaps with fields of `routing` or of other parts, such as letflow:granularity.gap=50us or
    /// reps:transport.reorder=buffer [default: ecmp, spray, letflow, drill, adaptive, conga, plb, reps, flowcut-nic and flowcut, as far as the
    /// scenario allows them].
    #[arg(long, value_name = "NAME,…")]
    pub(crate) among: Option<String>,
    /// What to vary beside the seeds: `faults` (each seed without a fault, and with a link cut for the whole run), or a field with its values,
    /// such as `workload.load=0.3|0.6`; may be given several times. All values count alike.
    #[arg(long, value_name = "WHAT")]
    pub(crate) vary: Vec<String>,
    /// The number that counts, as in claims [default: the job time; of several jobs the makespan; without jobs, the 99th percentile of the flow
    /// completion times].
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Option<String>,
    /// More of the metric is better, as it is of rates without this.
    #[arg(long)]
    pub(crate) more_is_better: bool,
    /// How long it may take, such as 90s, 10min or 2h.
    #[arg(long, value_name = "TIME", default_value = "10min", value_parser = crate::commands::recommend::duration)]
    pub(crate) budget: std::time::Duration,
    /// The most seeds of a scheme.
    #[arg(long, value_name = "N", default_value_t = 48, value_parser = clap::value_parser!(u32).range(2..=1000))]
    pub(crate) seeds: u32,
    /// Set a field of the scenario; may be given several times.
    #[arg(long = "set", value_name = "FIELD=VALUE", allow_hyphen_values = true)]
    pub(crate) set: Vec<String>,
    /// Runs at the same time [default: one per core].
    #[arg(long, allow_negative_numbers = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: Option<u16>,
    /// Folder of the runs, of the answer and of a study that repeats it [default: runs/ and the name of the scenario with -recommend].
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print the answer as JSON instead of tables.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print the answer alone, and show no progress.
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ShowArgs {
    /// Folder of an outcome or of a study.
    pub(crate) dir: PathBuf,
    /// Columns of the table, as `study --columns` takes them.
    #[arg(long, value_name = "NAME,…", value_delimiter = ',')]
    pub(crate) columns: Option<Vec<String>>,
    /// Print as JSON what `run --json` or `study --json` printed.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompareArgs {
    /// Folder of an outcome or of a study.
    #[arg(value_name = "DIR")]
    pub(crate) first: PathBuf,
    /// Folder of another one.
    #[arg(value_name = "DIR")]
    pub(crate) second: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PcapngArgs {
    /// Folder of an outcome whose scenario has a `measure.trace`.
    pub(crate) dir: PathBuf,
    /// The capture [default: beside the folder, with its name and .pcapng].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CriticalPathArgs {
    /// Folder of an outcome whose scenario has `measure.operations = true`.
    pub(crate) dir: PathBuf,
    /// The job, where there are several.
    #[arg(long, value_name = "NAME")]
    pub(crate) job: Option<String>,
    /// Which repetition of it, from 0.
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) repetition: u32,
    /// How many steps to show: the longest ones.
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub(crate) longest: usize,
    /// Print all steps as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PerfettoArgs {
    /// Folder of an outcome. What ranks do when needs `measure.activities`, the use of links `measure.sample`.
    pub(crate) dir: PathBuf,
    /// The trace, for https://ui.perfetto.dev or chrome://tracing [default: beside the folder, with its name and .perfetto.json].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FctArgs {
    /// Folder of an outcome.
    pub(crate) dir: PathBuf,
    /// How hosts are written.
    #[arg(long, value_name = "SIMULATOR", default_value = "conweave")]
    pub(crate) columns: FctColumns,
    /// The file [default: fct.txt in DIR].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Whose columns an fct.txt has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FctColumns {
    /// Hosts are their ids.
    Conweave,
    /// Hosts are the addresses that HPCC's simulator makes of their ids, in hexadecimal digits.
    Hpcc,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ReportArgs {
    /// Folders of outcomes and studies; their runs are compared.
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,
    /// The page [default: report.html in DIR, or in the working directory if there are several].
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Title of the page [default: the study's, or the names of the folders].
    #[arg(long, value_name = "TEXT")]
    pub(crate) title: Option<String>,
    /// Open the page in the browser.
    #[arg(long)]
    pub(crate) open: bool,
    /// Write one chart instead of the page, as SVG (or PNG, where it was built in) for a column of a paper; its name selects the chart, such as
    /// fct-p99.svg. The error for an unknown name lists all.
    /// Can be given several times.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["out", "title", "open"])]
    pub(crate) figure: Vec<PathBuf>,
    /// Only these points in figures: an axis with one or several of its labels (e.g. load=0.6,0.8). Can be given several times.
    #[arg(long, value_name = "AXIS=LABEL,…", requires = "figure")]
    pub(crate) only: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ListArgs {
    /// A name (an axis, kind, preset, field or value, e.g. ecmp, ecn or web-search), or a word to search for (e.g. allreduce or GPU);
    /// everything if absent.
    #[arg(value_name = "WORD")]
    pub(crate) name: Option<String>,
    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write everything as Markdown pages to this folder, one per axis and kind, instead of printing.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["name", "json"])]
    pub(crate) markdown: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct TopologyArgs {
    /// A scenario file, or a kind with parameters such as fat-tree:k=16,rate=400Gbps.
    pub(crate) spec: String,
    /// Seed of random networks.
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) seed: Option<String>,
    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Write the network to a file as well; see --format.
    #[arg(long, value_name = "FILE")]
    pub(crate) export: Option<PathBuf>,
    /// Format of the exported file: edge-list, graphml, dot, json, htsim-topo or ns3-topology [default: by the file's extension].
    #[arg(long, value_name = "FORMAT", requires = "export")]
    pub(crate) format: Option<String>,
    /// Draw the network as well, as SVG (or PNG, where it was built in).
    #[arg(long, value_name = "FILE")]
    pub(crate) draw: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct PathsArgs {
    /// A scenario file, or a kind with parameters such as slim-fly:q=19.
    pub(crate) spec: String,
    /// Router pairs, and quadruples, to sample.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 5000)]
    pub(crate) samples: u32,
    /// Seed of the samples and of random networks.
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    pub(crate) seed: String,
    /// Longest paths counted, in hops [default: the length at which 99% of the pairs have three disjoint paths].
    #[arg(long, allow_negative_numbers = true, value_name = "HOPS")]
    pub(crate) max_length: Option<u16>,
    /// Leave out the exact counts.
    #[arg(long)]
    pub(crate) no_exact: bool,
    /// Leave out path interference.
    #[arg(long)]
    pub(crate) no_interference: bool,
    /// Write every table to a Parquet file in this folder as well.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FromNs3Args {
    /// The simulator's configuration, config.txt.
    pub(crate) config: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FromSimaiArgs {
    /// The configuration, SimAI.conf.
    #[arg(long, short = 'c', value_name = "FILE")]
    pub(crate) config: PathBuf,
    /// The topology.
    #[arg(long, short = 'n', value_name = "FILE")]
    pub(crate) topology: PathBuf,
    /// The workload.
    #[arg(long, short = 'w', value_name = "FILE")]
    pub(crate) workload: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FromHtsimArgs {
    /// The command as it is given to a shell: htsim_ndp, htsim_roce, htsim_eqds, htsim_swift, htsim_tcp, htsim_uec or the Flowcut artefact's
    /// htsim_ndp_entry_modern, with or without its folder, and its flags.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct LayersArgs {
    /// A scenario file, or a kind with parameters such as slim-fly:q=19.
    pub(crate) spec: String,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Construction of the layers, e.g. fatpaths-random:layers=9,rho=0.6 [default: that of the scenario].
    #[arg(long, value_name = "KIND")]
    pub(crate) routing: Option<String>,
    /// The file to write.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: PathBuf,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CostArgs {
    #[command(subcommand)]
    pub(crate) of: CostOf,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CostOf {
    /// Memory of flowcuts at every switch, at first switches and at NICs, and bytes per flow and packet. Options take several values,
    /// separated by commas.
    Flowcut(FlowcutCostArgs),
}

#[derive(Debug, ClapArgs)]
pub(crate) struct FlowcutCostArgs {
    /// Hosts of the network.
    #[arg(long, value_name = "N", default_value = "1024")]
    pub(crate) hosts: String,
    /// Hosts at a switch.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 16)]
    pub(crate) hosts_per_switch: u64,
    /// Flows that each host has open [default: more than can be active].
    #[arg(long, value_name = "N")]
    pub(crate) flows_per_host: Option<String>,
    /// Rate of a host's link.
    #[arg(long, value_name = "RATE", default_value = "200Gbps")]
    pub(crate) rate: String,
    /// Round-trip time.
    #[arg(long, value_name = "TIME", default_value = "50us")]
    pub(crate) rtt: String,
    /// Size of a packet.
    #[arg(long, value_name = "SIZE", default_value = "2048B")]
    pub(crate) packet: String,
    /// Write the table of memory to this Parquet file, too.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ThroughputArgs {
    /// A scenario file, or a kind with parameters such as slim-fly:q=19.
    pub(crate) spec: String,
    /// Which paths the traffic may take, e.g. optimal, minimal, fatpaths-random:layers=9 or k-shortest.
    #[arg(long, value_name = "KIND", default_value = "fatpaths-random")]
    pub(crate) routing: String,
    /// The traffic, e.g. worst-case:intensity=0.55, permutation, uniform or all-to-all.
    #[arg(long, value_name = "KIND", default_value = "worst-case")]
    pub(crate) traffic: String,
    /// How to compute: auto, exact or approximate.
    #[arg(long, value_name = "METHOD", default_value = "auto")]
    pub(crate) method: String,
    /// Relative gap of the bounds at which an approximation stops.
    #[arg(long, allow_negative_numbers = true, value_name = "GAP", default_value_t = 0.05)]
    pub(crate) gap: f64,
    /// Seed of layers, traffic and random networks.
    #[arg(long, value_name = "N", default_value = "1", allow_hyphen_values = true)]
    pub(crate) seed: String,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct RouteArgs {
    /// Scenario file (TOML).
    pub(crate) scenario: PathBuf,
    /// Source host: its number, or its name in the network's file.
    pub(crate) src: String,
    /// Destination host: its number, or its name in the network's file.
    pub(crate) dst: String,
    #[command(flatten)]
    pub(crate) changes: Changes,
    /// Which flow of the source, from 0.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 0)]
    pub(crate) flow: u32,
    /// Entropy value that the packet carries.
    #[arg(long, allow_negative_numbers = true, value_name = "N", default_value_t = 0)]
    pub(crate) entropy: u32,
    /// Print as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct SchemaArgs {
    /// Kind of file.
    #[arg(value_name = "KIND", default_value = "scenario")]
    pub(crate) of: SchemaOf,
}

/// Kinds of files that have a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SchemaOf {
    /// Scenario files.
    Scenario,
    /// Study files.
    Study,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct CompletionsArgs {
    /// The shell.
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, ClapArgs)]
pub(crate) struct ManArgs {
    /// Write the pages of all commands to this folder, instead of printing that of netloom.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
}
