//! Values between Python and documents.

use netloom_scenario::{Entry, Node, Place, Problem, Problems, Source, Table, Value};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};

use crate::error::{PYTHON, scenario_error};
use crate::scenario::Scenario;

/// Where everything lies that was written in Python.
pub(crate) fn place() -> Place {
    Place { source: Source::new(PYTHON, ""), span: 0..0 }
}

/// Tables and lists in each other, more than any document has: what contains itself has no end.
const DEEPEST: u32 = 64;

/// A Python value as a document's node. `field` is its dotted path, for errors.
pub(crate) fn to_node(value: &Bound<'_, PyAny>, field: &str) -> PyResult<Node> {
    node_within(value, field, DEEPEST)
}

/// The same, of a value that may hold others `depth` deep.
fn node_within(value: &Bound<'_, PyAny>, field: &str, depth: u32) -> PyResult<Node> {
    let py = value.py();
    let refuse = |message: String| scenario_error(py, &Problem::new(field, message).at(&place()).into());
    let Some(depth) = depth.checked_sub(1) else {
        let steps: Vec<&str> = field.split('.').take(4).collect();
        let message = format!(
            "expected at most {DEEPEST} tables and lists in each other, found more, as if one contained itself"
        );
        let problem = Problem::new(format!("{}.…", steps.join(".")), message).at(&place());
        return Err(scenario_error(py, &problem.into()));
    };
    let below = |step: &str| if field.is_empty() { step.to_owned() } else { format!("{field}.{step}") };
    if let Ok(scenario) = value.cast::<Scenario>() {
        return Ok(scenario.borrow().document.clone());
    }
    let value = if let Ok(text) = value.cast::<PyString>() {
        Value::String(text.to_str()?.to_owned())
    } else if let Ok(truth) = value.cast::<PyBool>() {
        Value::Boolean(truth.is_true())
    } else if value.hasattr("dtype")? && value.hasattr("item")? && !value.hasattr("__len__")? {
        // NumPy's numbers and truth values.
        return node_within(&value.call_method0("item")?, field, depth);
    } else if let Ok(table) = value.cast::<PyDict>() {
        let mut entries = Vec::with_capacity(table.len());
        for (key, value) in table {
            let key: String =
                key.extract().map_err(|_| refuse(format!("expected names as keys, found {key}")))?;
            let node = node_within(&value, &below(&key), depth)?;
            entries.push(Entry::new(key, place(), node));
        }
        Value::Table(Table(entries))
    } else if value.hasattr("__fspath__")? {
        Value::String(value.call_method0("__fspath__")?.extract()?)
    } else if value.is_instance_of::<PyFloat>() {
        finite(value, &refuse)?
    } else if value.is_instance_of::<PyInt>() || value.hasattr("__index__")? && !value.hasattr("__len__")? {
        let number = value.call_method0("__index__")?;
        let fit =
            number.extract().map_err(|_| refuse(format!("the number {number} does not fit 64 bits")))?;
        Value::Integer(fit)
    } else if value.hasattr("__float__")? && !value.hasattr("__len__")? {
        finite(&value.call_method0("__float__")?, &refuse)?
    } else if let Ok(items) = value.try_iter() {
        let items =
            items.enumerate().map(|(index, item)| node_within(&item?, &below(&index.to_string()), depth));
        Value::Array(items.collect::<PyResult<_>>()?)
    } else {
        let kind = value.get_type().qualname()?;
        let message =
            format!("{field}: expected text, a number, a truth value, a list or a dict, found {kind}");
        return Err(PyTypeError::new_err(message.trim_start_matches(": ").to_owned()));
    };
    Ok(Node { value, place: place() })
}

fn finite(number: &Bound<'_, PyAny>, refuse: &impl Fn(String) -> PyErr) -> PyResult<Value> {
    let number: f64 = number.extract()?;
    match number.is_finite() {
        true => Ok(Value::Float(number)),
        false => Err(refuse(format!("expected a finite number, found {number}"))),
    }
}

/// A document's node as a Python value.
pub(crate) fn to_python<'py>(py: Python<'py>, node: &Node) -> PyResult<Bound<'py, PyAny>> {
    Ok(match &node.value {
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Integer(number) => number.into_pyobject(py)?.into_any(),
        Value::Float(number) => number.into_pyobject(py)?.into_any(),
        Value::Boolean(truth) => PyBool::new(py, *truth).to_owned().into_any(),
        Value::Array(items) => {
            let items = items.iter().map(|item| to_python(py, item)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_any()
        }
        Value::Table(table) => {
            let dict = PyDict::new(py);
            for entry in &table.0 {
                dict.set_item(&entry.key, to_python(py, &entry.node)?)?;
            }
            dict.into_any()
        }
    })
}

/// The steps of a dotted path.
pub(crate) fn steps<'a>(py: Python<'_>, path: &'a str) -> PyResult<Vec<&'a str>> {
    let steps: Vec<&str> = path.split('.').collect();
    if steps.iter().any(|step| step.is_empty()) {
        let problem =
            Problem::new("", format!("`{path}`: a field name is missing before, after or between the dots"));
        return Err(scenario_error(py, &Problems::from(problem)));
    }
    Ok(steps)
}
