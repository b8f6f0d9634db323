//! The native half of the Python package `netloom`: documents, runs and tables. What needs no Rust is in `netloom/*.py`.

mod driven;
mod error;
mod outcome;
mod run;
mod scenario;
mod study;
mod table;
mod topology;
mod value;

use mimalloc::MiMalloc;
use pyo3::pymodule;

/// As the command has; of what netloom alone keeps in memory.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

/// The native half of the package `netloom`.
#[pymodule]
mod _netloom {
    use pyo3::prelude::*;

    #[pymodule_init]
    fn version(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }

    #[pymodule_export]
    use crate::driven::Simulation;
    #[pymodule_export]
    use crate::outcome::Outcome;
    #[pymodule_export]
    use crate::run::run;
    #[pymodule_export]
    use crate::scenario::Scenario;
    #[pymodule_export]
    use crate::study::{Study, perform_parcel, store_result};
    #[pymodule_export]
    use crate::table::Table;
    #[pymodule_export]
    use crate::topology::{Topology, write_flow_list};
}
