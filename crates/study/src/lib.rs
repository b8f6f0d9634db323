//! What is compared: grids of cells, and claims about them.
//!
//! A study is a TOML file. Its cells are of one of two kinds: runs of a scenario, or measurements of a network that need no packet
//! ([`Analysis`]). Axes are set over what the cells start from, every combination is run with every seed, and claims are checked against
//! the numbers.
//!
//! ```toml
//! title = "Permutation on a fat tree"
//! scenario = "permutation.toml"        # or a [scenario] table with the scenario itself; or an `analysis`
//! repetitions = 3                      # seeds: the scenario's, then the following ones
//!
//! [[axis]]
//! name = "scheme"
//! cases = [
//!   { label = "ecmp", set = { "routing.preset" = "ecmp" } },
//!   { label = "flowcut", set = { "routing.preset" = "flowcut-nic" } },
//! ]
//!
//! [[claims]]
//! id = "tail"
//! text = "Flowcut cuts the tail"
//! expression = 'p99_fct("flowcut") <= 0.75 * p99_fct("ecmp")'
//! ```
//!
//! | module | question |
//! | --- | --- |
//! | `file` | what did the user write? |
//! | `grid`, `cell` | which cells is that, and are they and the claims sound? |
//! | `work`, `analysis`, `measure` | what does a cell do? |
//! | `cells`, `folder`, `fingerprint` | how are they run, where do the results lie, what is done already? |
//! | `remote` | what does a cell need to be done on another machine? |
//! | `numbers`, `results` | what came out, by name? |
//! | `claims` | what do the claims say about it? |
//! | `findings`, `columns`, `tables` | what of it is shown, and what is written? |
//! | `recommend` | which of several schemes is best, in as few runs as that takes? |
//! | `schema`, `reference` | what may be written in a study? |
//!
//! ```
//! use netloom_scenario::{Node, Source};
//! use netloom_study::{CellFolders, Form, Results, Running, Study, judge, run_cells};
//! use std::sync::atomic::AtomicBool;
//!
//! let text = r#"
//! title = "Two hops in a clique"
//!
//! [analysis]
//! topology = { kind = "complete", switches = 9 }
//! measurement = { kind = "diversity", max_length = 2 }
//!
//! [[claims]]
//! id = "all-paths"
//! text = "every link of a router begins a path of at most two hops"
//! expression = 'near(cdp_mean(), 1, 1e-9)'
//! "#;
//! let study = Study::read(&Node::parse(&Source::new("clique.toml", text)).unwrap(), Form::Middle).unwrap();
//! let plan = study.plan().unwrap();
//!
//! let folder = tempfile::tempdir().unwrap();
//! let folders = CellFolders::open(&folder.path().join("cells")).unwrap();
//! let stop = AtomicBool::new(false);
//! let running = Running { program: netloom_study::PROGRAM, workers: 1, shard: None, stop: &stop };
//! let reports = run_cells(&plan.cells, &folders, &running, &|_| ()).unwrap();
//! let verdicts = judge(&study.claims, &plan.results(&reports));
//! assert_eq!(verdicts[0].holds, Some(true));
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod analysis;
mod cell;
mod cells;
mod claims;
mod columns;
pub mod cost;
mod file;
mod findings;
mod fingerprint;
mod fnv;
mod folder;
mod grid;
mod measure;
mod numbers;
pub mod recommend;
mod reference;
mod remote;
mod results;
mod schema;
mod tables;
mod warnings;
mod work;

pub use analysis::Analysis;
pub use cell::{Cell, Point};
pub use cells::{CellEvent, CellReport, Running, Shard, run_cells};
pub use claims::{
    Binding, Counting, Expression, ExpressionError, Judgement, LEVEL, Metrics, Outcome, Sample, Verdict,
    judge, significant, two_digits,
};
pub use columns::{Column, column_sets};
pub use file::{Axis, Base, Case, Claim, Form, Formula, Needs, Setting, Study, Use};
pub use findings::{CellKind, Findings, PointFindings};
pub use fingerprint::PROGRAM;
pub use folder::{CellFolders, write_file};
pub use grid::Plan;
pub use measure::{
    Collisions, Conflicts, Diversity, FlowcutMemory, LayerCounts, LayerPaths, Measurement, Structure,
    ThroughputOf,
};
pub use numbers::{numbers, unit};
pub use reference::reference;
pub use remote::{Parcel, ResultFiles, store};
pub use results::{PointResults, Results};
pub use schema::schema;
pub use tables::{Unwritable, write_results};
pub use work::{Numbers, Work, WorkError};
