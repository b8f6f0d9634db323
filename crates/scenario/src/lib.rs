//! What the user wrote: from TOML to a checked scenario.

mod document;
mod read;
mod scenario;
mod section;
mod source;
pub mod study;

pub use document::{Entry, Node, Table, Value, apply_override};
pub use read::{read, read_kind};
pub use scenario::Scenario;
pub use source::{Place, Problem, Problems, Source};
