//! Studies: a scenario, lists of values laid over it, and claims about the results.
//!
//! ```toml
//! title = "Permutation on a fat tree"
//! scenario = "permutation.toml"        # or a [scenario] table with the scenario itself
//! repetitions = 3                      # seeds: the scenario's, then the following ones
//!
//! [[axis]]
//! name = "scheme"
//! cases = [
//!   { label = "ecmp", set = { "routing.preset" = "ecmp" } },
//!   { label = "flowcut", set = { "routing.preset" = "flowcut-nic" } },
//! ]
//!
//! [[axis]]
//! name = "threshold"
//! only = "flowcut"                     # cells without this label have no threshold
//! field = "routing.granularity.threshold"
//! values = [2.0, 4.0]
//!
//! [[claims]]
//! id = "tail"
//! text = "Flowcut cuts the tail"
//! expression = 'p99_fct("flowcut", "threshold=4") <= 0.75 * p99_fct("ecmp")'
//! use = "gate"
//!
//! [small]                              # what --small changes
//! repetitions = 1
//! set = { "topology.k" = 8 }
//! ```

mod cells;
mod claims;
mod expression;
mod file;
mod fingerprint;
mod grid;
mod numbers;
mod parser;
mod results;
mod term;

pub use cells::{CellEvent, CellReport, RunCell, run_cells};
pub use claims::{Verdict, judge};
pub use expression::{Binding, Expression, ExpressionError, Metrics, Outcome, Sample, significant};
pub use file::{Axis, Claim, Point, Setting, Study, Use};
pub use fingerprint::{digest, fingerprint};
pub use grid::Cell;
pub use numbers::numbers;
pub use results::{Results, Row};
