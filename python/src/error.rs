//! What is wrong, as Python's exceptions: `netloom.ScenarioError` for what the user wrote, others for what happened.

use netloom_record::OutcomeError;
use netloom_scenario::{Problem, Problems, RunError};
use pyo3::exceptions::{PyFileExistsError, PyMemoryError, PyOSError};
use pyo3::prelude::*;
use pyo3::types::PyTuple;

/// The name of texts that were written in Python: a place in them says nothing that the field does not.
pub(crate) const PYTHON: &str = "<python>";

/// `netloom.ScenarioError` with every problem: (file, line, column, field, message, help).
pub(crate) fn scenario_error(py: Python<'_>, problems: &Problems) -> PyErr {
    let rows = problems.0.iter().map(|problem| row(py, problem)).collect::<PyResult<Vec<_>>>();
    let raised = rows.and_then(|rows| new_error(py, "ScenarioError", (rows,)));
    raised.unwrap_or_else(|error| error)
}

type Row = (Option<String>, Option<usize>, Option<usize>, String, String, Option<String>);

fn row<'py>(py: Python<'py>, problem: &Problem) -> PyResult<Bound<'py, PyTuple>> {
    let written = problem.place.as_ref().filter(|place| place.source.name() != PYTHON);
    let (file, line, column) = match written {
        Some(place) => {
            let (line, column) = place.line_and_column();
            (Some(place.source.name().to_owned()), Some(line), Some(column))
        }
        None => (None, None, None),
    };
    let row: Row = (file, line, column, problem.field.clone(), problem.message.clone(), problem.help.clone());
    row.into_pyobject(py)
}

/// A problem with one argument of a call.
pub(crate) fn argument_error(py: Python<'_>, name: &str, message: impl Into<String>) -> PyErr {
    scenario_error(py, &Problem::new(name, message).into())
}

fn new_error<'py>(
    py: Python<'py>,
    name: &str,
    arguments: impl pyo3::call::PyCallArgs<'py>,
) -> PyResult<PyErr> {
    let class = py.import("netloom._error")?.getattr(name)?;
    Ok(PyErr::from_value(class.call1(arguments)?))
}

/// Why a run gave no outcome.
pub(crate) fn run_error(py: Python<'_>, error: &RunError) -> PyErr {
    match error {
        RunError::Scenario(problems) => scenario_error(py, problems),
        RunError::Outcome(error) => outcome_error(error),
        RunError::Memory(_) => PyMemoryError::new_err(error.to_string()),
        RunError::Simulation(error) => {
            new_error(py, "SimulationError", (error.to_string(),)).unwrap_or_else(|error| error)
        }
    }
}

/// Why an outcome cannot be read or written.
pub(crate) fn outcome_error(error: &OutcomeError) -> PyErr {
    match error {
        OutcomeError::Exists(_) => PyFileExistsError::new_err(format!("{error}; `replace=True` replaces it")),
        other => PyOSError::new_err(other.to_string()),
    }
}
