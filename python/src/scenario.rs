//! `netloom.Scenario`: a document that can be changed field by field.

use std::path::PathBuf;

use netloom_scenario::{Node, Problems, Source, Value, prepare, prepare_packets, suggest};
use netloom_topology::NodeId;
use netloom_units::kind::Kind;
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};

use crate::error::{argument_error, scenario_error};
use crate::value::{place, steps, to_node, to_python};

/// What is run: a topology, a fabric, a routing scheme, a transport, a workload, faults, and what to measure.
///
/// Fields are read and set by their dotted paths, as in a scenario file; what is not set has its default. Values are
/// written as people write them (`"400Gbps"`, `"1us"`, `"8MiB"`).
///
/// >>> s = Scenario.from_toml('topology = { kind = "fat-tree", k = 4 }')
/// >>> s["routing.preset"] = "flowcut-nic"
/// >>> s["transport.mtu"]
/// '4KiB'
#[pyclass(module = "netloom", eq)]
#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) document: Node,
}

/// Two scenarios are the same if the same was set in them.
impl PartialEq for Scenario {
    fn eq(&self, other: &Self) -> bool {
        self.document.means(&other.document)
    }
}

impl Scenario {
    /// The checked scenario.
    pub(crate) fn read(&self, py: Python<'_>) -> PyResult<netloom_scenario::Scenario> {
        py.detach(|| netloom_scenario::Scenario::read(&self.document))
            .map_err(|found| scenario_error(py, &found))
    }

    /// Sets the field at a dotted path.
    pub(crate) fn set(&mut self, py: Python<'_>, path: &str, node: Node) -> PyResult<()> {
        let steps = steps(py, path)?;
        self.document.set(&steps, &place(), node).map_err(|problem| scenario_error(py, &problem.into()))
    }

    /// The scenario with every default filled in, as a document.
    fn expanded(&self, py: Python<'_>) -> PyResult<Node> {
        let fail = |problems: Problems| scenario_error(py, &problems);
        let text = self.read(py)?.to_toml().map_err(|problem| fail(problem.into()))?;
        Node::parse(&Source::new("scenario.toml", text)).map_err(fail)
    }
}

#[pymethods]
impl Scenario {
    /// A scenario from a dict of dicts; without one, the default scenario.
    #[new]
    #[pyo3(signature = (fields = None))]
    fn new(fields: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        match fields {
            Some(fields) => Ok(Scenario { document: to_node(fields, "")? }),
            None => {
                Ok(Scenario { document: Node { value: Value::Table(Default::default()), place: place() } })
            }
        }
    }

    /// Reads a scenario file. Its name, unless it has one, is that of the file; relative paths in it start from its folder.
    #[classmethod]
    fn from_file(_: &Bound<'_, PyType>, py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let document =
            netloom_scenario::load(&path, &[]).map_err(|problems| scenario_error(py, &problems))?;
        Ok(Scenario { document })
    }

    /// Reads a scenario from TOML; `name` is the name of the text in error messages.
    #[classmethod]
    #[pyo3(signature = (text, name = "<toml>"))]
    fn from_toml(_: &Bound<'_, PyType>, py: Python<'_>, text: &str, name: &str) -> PyResult<Self> {
        let document =
            Node::parse(&Source::new(name, text)).map_err(|problems| scenario_error(py, &problems))?;
        Ok(Scenario { document })
    }

    /// A scenario from a dict of dicts, as a scenario file would be read: `{"topology": {"kind": "fat-tree", "k": 8}}`.
    #[classmethod]
    fn from_dict(_: &Bound<'_, PyType>, fields: &Bound<'_, PyDict>) -> PyResult<Self> {
        Scenario::new(Some(fields))
    }

    /// The field at a dotted path: the value that was set, otherwise its default.
    fn __getitem__<'py>(&self, py: Python<'py>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let steps = steps(py, path)?;
        if let Some(node) = self.document.at(steps.iter().copied()) {
            return to_python(py, node);
        }
        let expanded = self.expanded(py)?;
        match expanded.at(steps.iter().copied()) {
            Some(node) => to_python(py, node),
            None => Err(PyKeyError::new_err(missing(&expanded, &steps))),
        }
    }

    /// Sets the field at a dotted path. A dict is merged into the existing table: fields that it does not name stay, also if it sets
    /// another `kind` or `preset`. Fields that the new kind or preset does not have are left out, and the summary's warnings name them.
    fn __setitem__(&mut self, py: Python<'_>, path: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        self.set(py, path, to_node(value, path)?)
    }

    /// Unsets the field at a dotted path: it has its default again.
    fn __delitem__(&mut self, py: Python<'_>, path: &str) -> PyResult<()> {
        let steps: Vec<String> = steps(py, path)?.into_iter().map(str::to_owned).collect();
        match self.document.prune(&steps) {
            true => Ok(()),
            false => Err(PyKeyError::new_err(format!("{path}: it was not set"))),
        }
    }

    /// Whether a field is set or has a default.
    fn __contains__(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        match self.__getitem__(py, path) {
            Ok(_) => Ok(true),
            Err(error) if error.is_instance_of::<PyKeyError>(py) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What was set, as a dict of dicts.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        to_python(py, &self.document)
    }

    /// An independent copy.
    fn copy(&self) -> Self {
        self.clone()
    }

    fn __copy__(&self) -> Self {
        self.clone()
    }

    fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
        self.clone()
    }

    /// Pickles carry what was set, less what a kind chosen later does not have; file names are absolute.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let settled = netloom_scenario::Scenario::settle(&self.document).map(|settled| settled.document);
        let document =
            netloom_scenario::with_absolute_files(settled.unwrap_or_else(|_| self.document.clone()));
        let from_dict = py.get_type::<Scenario>().getattr("from_dict")?;
        Ok((from_dict, PyTuple::new(py, [to_python(py, &document)?])?))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Scenario({})", self.to_dict(py)?.repr()?))
    }

    /// The scenario as TOML with every default filled in and presets expanded, after checking that it can be run.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        let scenario = self.read(py)?;
        let text = py.detach(|| {
            prepare(&scenario, &self.document)?;
            Ok(scenario.to_toml()?)
        });
        text.map_err(|problems: Problems| scenario_error(py, &problems))
    }

    /// The files that the scenario names, as absolute paths.
    fn files(&self, py: Python<'_>) -> PyResult<Vec<PathBuf>> {
        Ok(self.read(py)?.files())
    }

    /// The path of the first packet of a flow from host `src` to host `dst` in an idle fabric, and the reason for each hop. Prints as a
    /// table, and is a sequence of one dict per switch with `at`, `candidates`, `takes` (names of nodes) and `why`.
    #[pyo3(signature = (src, dst, *, flow = 0, entropy = 0))]
    fn route<'py>(
        &self,
        py: Python<'py>,
        src: i64,
        dst: i64,
        flow: u32,
        entropy: u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let scenario = self.read(py)?;
        let simulation = py.detach(|| prepare_packets(&scenario, &self.document));
        let simulation = simulation.map_err(|problems| scenario_error(py, &problems))?;
        let network = simulation.network();
        let host = |name: &str, host: i64| {
            let found = u32::try_from(host).ok().filter(|&host| host < network.hosts());
            let expected = || format!("expected a host from 0 to {}, found {host}", network.hosts() - 1);
            found.ok_or_else(|| argument_error(py, name, expected()))
        };
        let (src, dst) = (host("src", src)?, host("dst", dst)?);
        if src == dst {
            return Err(argument_error(py, "dst", "a host sends nothing to itself; give two hosts"));
        }
        let trace = simulation.trace(src, dst, flow, entropy);
        let routing = &scenario.routing;
        let title = format!(
            "host {src} to host {dst} on {}, scheme ({}, {}, {}), flow {flow}, entropy value {entropy}, idle fabric",
            network.name(),
            routing.placement.name(),
            routing.granularity.name(),
            routing.selector.name(),
        );
        let name = |node: NodeId| network.node_name(node);
        let hop = |choice: &netloom_sim::Choice| {
            let row = PyDict::new(py);
            row.set_item("at", name(choice.switch))?;
            row.set_item(
                "candidates",
                choice.candidates.iter().map(|&(_, node)| name(node)).collect::<Vec<_>>(),
            )?;
            row.set_item("takes", name(network.neighbour(choice.switch, choice.chosen)))?;
            row.set_item("why", &choice.reason)?;
            Ok(row)
        };
        let hops = trace.hops.iter().map(hop).collect::<PyResult<Vec<_>>>()?;
        py.import("netloom._route")?.getattr("Route")?.call1((title, hops))
    }
}

/// What to say of a path at which nothing stands.
fn missing(expanded: &Node, steps: &[&str]) -> String {
    let known =
        (0..steps.len()).rev().find_map(|depth| Some((depth, expanded.at(steps[..depth].iter().copied())?)));
    let Some((depth, node)) = known else { return steps.join(".") };
    let names =
        node.as_table().map(|table| table.0.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>());
    let help = suggest(steps[depth], names.unwrap_or_default());
    format!("{}: `{}` is not set and has no default here ({help})", steps.join("."), steps[depth])
}
