//! What the analysis studies measure, and whether the papers' claims hold.
//!
//! A study file names networks, measurements and claims. [`Study::load`] reads it, [`Study::run`] builds the networks,
//! takes the measurements and judges the claims. No packet is simulated: these are properties of the networks and
//! of their routing.
//!
//! ```
//! use std::path::Path;
//! use netloom_analysis::{Scale, Study};
//!
//! let study = Study::parse(
//!     r#"
//!     title = "Two hops in a clique"
//!     [[network]]
//!     id = "clique"
//!     topology = { kind = "complete", switches = 9 }
//!     [[measurement]]
//!     kind = "diversity"
//!     max_length = 2
//!     [[claim]]
//!     id = "all-paths"
//!     statement = "every link of a router begins a path of at most two hops"
//!     metric = "clique.diversity.cdp_mean"
//!     equals = 1.0
//!     tolerance = 1e-9
//!     use = "gate"
//!     source = "elementary"
//!     "#,
//! )
//! .unwrap();
//! let outcome = study.run(Scale::Full, Path::new("."), |_| ()).unwrap();
//! assert!(outcome.gates_hold());
//! ```

mod claim;
mod measure;
mod named;
mod study;

pub use claim::{ClaimResult, Use, Verdict};
pub use measure::{
    Collisions, Conflicts, Diversity, LayerCounts, LayerPaths, Measurement, Structure, ThroughputOf,
};
pub use named::Named;
pub use study::{Outcome, Scale, Study, StudyError};
