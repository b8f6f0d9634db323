//! What the user wrote: TOML → checked scenario → ready simulation → outcome.
//!
//! A scenario is one TOML document. [`Node`] is the document with the place of every word, [`Scenario`] what it means
//! once every field is known and every default filled in, [`Ready`] the nodes about to run; [`run()`] is the whole
//! way from the document to the outcome folder. Everything that can be wrong with what was written is a [`Problem`] with its place.
//!
//! ```
//! use netloom_scenario::{Node, Scenario, Source, apply_override};
//!
//! let text = "[topology]\nkind = \"fat-tree\"\nk = 8\n[routing]\npreset = \"letflow\"\n";
//! let mut document = Node::parse(&Source::new("example.toml", text)).unwrap();
//! apply_override(&mut document, "routing.granularity.gap=50us").unwrap();
//! let scenario = Scenario::read(&document).unwrap();
//! assert!(scenario.to_toml().unwrap().contains("gap = \"50us\""));
//!
//! apply_override(&mut document, "routing.granularity.gapp=50us").unwrap();
//! let problems = Scenario::read(&document).unwrap_err().to_string();
//! assert!(problems.contains("did you mean `gap`?"));
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod cluster;
mod detail;
mod document;
mod driven;
mod explain;
mod load;
mod outline;
mod preset;
mod read;
mod reference;
mod routing;
mod run;
mod scenario;
mod schema;
mod section;
mod settle;
mod source;
mod transport;
mod warnings;

pub use detail::Detail;
pub use document::{Entry, Node, Table, Value, apply_option, apply_override};
pub use driven::{DrivenResult, DrivenRun};
pub use load::{apply_overrides, load, load_network, one_word, split_fields};
pub use netloom_sim::{Fast, RunProgress, Steady};
pub use netloom_units::names::suggest;
pub use read::read;
pub use reference::{Chapter, reference};
pub use run::{
    Checked, Ran, Ready, Run, RunError, build_network, build_plane, check, finish, left_out, prepare,
    prepare_packets, run, simulate,
};
pub use scenario::{Scenario, with_absolute_files};
pub use schema::{bound_integers, properties as schema_properties, schema};
pub use section::Section;
pub use settle::{Settled, settle};
pub use source::{Place, Problem, Problems, Source};
