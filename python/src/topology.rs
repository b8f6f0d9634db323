//! `netloom.topology`: a network, what it consists of, which paths it offers, how much they carry.

use std::path::{Path, PathBuf};

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Decimal128Type, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;
use netloom_paths::columns::Values as PathValues;
use netloom_paths::{PathsConfig, ReportError, report};
use netloom_record::{TableColumn, Values};
use netloom_scenario::{Node, Problems, Source, build_plane, load_network, one_word, read};
use netloom_throughput::{Method, ThroughputConfig, ThroughputError, solve};
use netloom_topology::{CostModel, ExportFormat, Network};
use netloom_units::kind::Kind;
use pyo3::exceptions::{PyOSError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{argument_error, scenario_error};
use crate::scenario::Scenario;
use crate::table::Table;
use crate::value::to_node;

/// The native half of `netloom.Topology`.
#[pyclass(module = "netloom._netloom", frozen)]
pub(crate) struct Topology {
    network: Network,
}

#[pymethods]
impl Topology {
    /// Builds the network of a scenario, or one in a word such as `fat-tree:k=8`, or of a file.
    #[new]
    #[pyo3(signature = (spec, seed = None))]
    fn new(py: Python<'_>, spec: &Bound<'_, PyAny>, seed: Option<u64>) -> PyResult<Self> {
        let fail = |problems: Problems| scenario_error(py, &problems);
        let mut scenario = if let Ok(scenario) = spec.cast::<Scenario>() {
            scenario.borrow().clone()
        } else if let Ok(table) = spec.cast::<PyDict>() {
            let document = Node::parse(&Source::new("SPEC", "")).map_err(fail)?;
            let mut scenario = Scenario { document };
            let node = to_node(table, "topology")?;
            scenario.set(py, "topology", node)?;
            scenario
        } else {
            let spec: String = spec.str()?.extract()?;
            Scenario { document: load_network(&spec, &[]).map_err(fail)? }
        };
        if let Some(seed) = seed {
            scenario.set(py, "seed", to_node(seed.into_pyobject(py)?.as_any(), "seed")?)?;
        }
        let checked = scenario.read(py)?;
        let network = py.detach(|| build_plane(&checked, &scenario.document)).map_err(fail)?;
        Ok(Topology { network })
    }

    #[getter]
    fn name(&self) -> &str {
        self.network.name()
    }

    #[getter]
    fn hosts(&self) -> u32 {
        self.network.hosts()
    }

    #[getter]
    fn switches(&self) -> u32 {
        self.network.switches()
    }

    fn node_names(&self) -> Vec<String> {
        (0..self.network.nodes()).map(|node| self.network.node_name(node)).collect()
    }

    /// Per switch: its level in a tree, and its pod or group.
    fn switches_table(&self) -> Table {
        let network = &self.network;
        let switches = network.hosts()..network.nodes();
        let column = |name, values| TableColumn { name, values };
        Table::of_columns(vec![
            column("node", Values::U32(switches.clone().collect())),
            column("level", Values::U8(switches.clone().map(|switch| network.level(switch)).collect())),
            column("pod", Values::U32(switches.map(|switch| network.pod(switch)).collect())),
        ])
    }

    fn links(&self) -> Table {
        let links = self.network.links();
        let names = self.network.tiers().to_vec();
        let column = |name, values| TableColumn { name, values };
        Table::of_columns(vec![
            column("a", Values::U32(links.iter().map(|link| link.a).collect())),
            column("b", Values::U32(links.iter().map(|link| link.b).collect())),
            column("rate_bps", Values::U64(links.iter().map(|link| link.rate.0).collect())),
            column("latency_ps", Values::U64(links.iter().map(|link| link.latency.0).collect())),
            column(
                "tier",
                Values::Names { places: links.iter().map(|link| u16::from(link.tier)).collect(), names },
            ),
        ])
    }

    /// Metrics and cost as JSON.
    fn metrics(&self, py: Python<'_>) -> PyResult<(String, String)> {
        let (metrics, cost) =
            py.detach(|| (self.network.metrics(), CostModel::published().price(&self.network)));
        let json =
            |text: serde_json::Result<String>| text.map_err(|error| PyValueError::new_err(error.to_string()));
        Ok((json(serde_json::to_string(&metrics))?, json(serde_json::to_string(&cost))?))
    }

    fn export(&self, py: Python<'_>, format: &str) -> PyResult<String> {
        let known = || ExportFormat::ALL.map(|(_, name, _)| name);
        let format: ExportFormat = format.parse().map_err(|_| {
            argument_error(py, "format", format!("expected one of {}, found {format}", known().join(", ")))
        })?;
        self.network.export(format).map_err(|error| argument_error(py, "format", error.to_string()))
    }

    /// The tables of path diversity, by name.
    fn paths(
        &self,
        py: Python<'_>,
        draws: (u32, u64),
        max_length: Option<u16>,
        exact: bool,
        interference: bool,
    ) -> PyResult<Vec<(&'static str, Table)>> {
        let (samples, seed) = draws;
        let config = PathsConfig { samples, seed, max_length, exact, interference };
        let report =
            py.detach(|| report(&self.network.router_graph(), &config)).map_err(|error| match error {
                ReportError::Parameter(invalid) => argument_error(py, &invalid.field, invalid.reason()),
                other => argument_error(py, "", other.to_string()),
            })?;
        let table = |table: netloom_paths::columns::ReportTable| {
            let columns = table.columns.into_iter().map(|column| TableColumn {
                name: column.name,
                values: match column.values {
                    PathValues::Count(values) => Values::U64(values),
                    PathValues::Float(values) => Values::F64(values),
                    PathValues::Text(values) => Values::Text(values),
                },
            });
            (table.name, Table::of_columns(columns.collect()))
        };
        Ok(report.tables().into_iter().map(table).collect())
    }

    fn throughput<'py>(
        &self,
        py: Python<'py>,
        routing: &Bound<'py, PyAny>,
        traffic: &Bound<'py, PyAny>,
        method: &str,
        search: (f64, u64),
    ) -> PyResult<Bound<'py, PyDict>> {
        let (gap, seed) = search;
        let method = match method {
            "auto" => Method::Auto,
            "exact" => Method::Exact,
            "approximate" => Method::Approximate,
            other => {
                let message = format!("expected `auto`, `exact` or `approximate`, found `{other}`");
                return Err(argument_error(py, "method", message));
            }
        };
        if !(gap > 0.0 && gap < 1.0) {
            return Err(argument_error(
                py,
                "gap",
                format!("expected a number above 0 and below 1, found {gap}"),
            ));
        }
        let (routing, traffic) = (kind(routing, "routing")?, kind(traffic, "traffic")?);
        let config = ThroughputConfig { routing, traffic, method, gap, seed, ..ThroughputConfig::default() };
        let report =
            py.detach(|| solve(&self.network.router_graph(), &config, Path::new(""))).map_err(|error| {
                match error {
                    ThroughputError::Parameter(invalid) => {
                        argument_error(py, &invalid.field, invalid.reason())
                    }
                    other => argument_error(py, "", other.to_string()),
                }
            })?;
        let result = PyDict::new(py);
        result.set_item("lower", report.throughput.lower)?;
        result.set_item("upper", report.throughput.upper)?;
        result.set_item("value", report.throughput.value())?;
        result.set_item("method", report.method)?;
        result.set_item("length_bound", report.length_bound)?;
        result.set_item("router_pairs", report.commodities)?;
        result.set_item("demand", report.demand)?;
        result.set_item("paths", report.paths)?;
        result.set_item("layers", report.layers)?;
        Ok(result)
    }
}

/// A kind as a word such as `worst-case:intensity=0.55`, or as a dict.
fn kind<K: Kind>(value: &Bound<'_, PyAny>, name: &str) -> PyResult<K> {
    let py = value.py();
    let node = match value.extract::<String>() {
        Ok(word) => one_word(name, &word).map_err(|problems| scenario_error(py, &problems))?,
        Err(_) => to_node(value, name)?,
    };
    read(&node, name).map_err(|problems| scenario_error(py, &Problems(problems)))
}

/// Writes a flow list: the columns `src`, `dst`, `bytes` and `start_ps` (0 if absent) of a table, whatever kinds of whole numbers
/// they hold.
#[pyfunction]
pub(crate) fn write_flow_list(py: Python<'_>, file: PathBuf, flows: &Table) -> PyResult<()> {
    use netloom_parquet::{Field, GROUP_ROWS, Writer};

    let hosts = |name| -> PyResult<Vec<u32>> {
        let numbers = whole_numbers(py, flows, name)?;
        let host = |number: u64| {
            u32::try_from(number).map_err(|_| argument_error(py, name, format!("{number} is no host")))
        };
        numbers.into_iter().map(host).collect()
    };
    let (src, dst) = (hosts("src")?, hosts("dst")?);
    let bytes = whole_numbers(py, flows, "bytes")?;
    let start = match flows.has("start_ps") {
        true => whole_numbers(py, flows, "start_ps")?,
        false => vec![0; bytes.len()],
    };
    let write = || -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let fields = [
            Field::of::<u32>("src"),
            Field::of::<u32>("dst"),
            Field::of::<u64>("bytes"),
            Field::of::<u64>("start_ps"),
        ];
        let mut writer = Writer::new(std::fs::File::create(&file)?, &fields)?;
        for first in (0..src.len()).step_by(GROUP_ROWS) {
            let rows = first..(first + GROUP_ROWS).min(src.len());
            let mut group = writer.row_group()?;
            group.column(src[rows.clone()].iter().copied())?;
            group.column(dst[rows.clone()].iter().copied())?;
            group.column(bytes[rows.clone()].iter().copied())?;
            group.column(start[rows].iter().copied())?;
            group.close()?;
        }
        writer.close()?;
        Ok(())
    };
    py.detach(write).map_err(|error| PyOSError::new_err(format!("cannot write {}: {error}", file.display())))
}

/// A column of whole numbers of any kind.
fn whole_numbers(py: Python<'_>, table: &Table, name: &'static str) -> PyResult<Vec<u64>> {
    let mut numbers = Vec::new();
    for array in table.arrays(name)?.1 {
        if array.null_count() > 0 {
            return Err(argument_error(py, name, "expected a number in every row, found rows without one"));
        }
        extend(&mut numbers, array).ok_or_else(|| {
            PyTypeError::new_err(format!(
                "{name}: expected a column of whole numbers, found {}",
                array.data_type()
            ))
        })?;
    }
    match numbers.iter().position(|&number| number < 0) {
        Some(row) => {
            let message = format!("row {row}: expected a number from 0 on, found {}", numbers[row]);
            Err(argument_error(py, name, message))
        }
        None => {
            let number = |number: i128| {
                u64::try_from(number)
                    .map_err(|_| argument_error(py, name, format!("{number} does not fit 64 bits")))
            };
            numbers.into_iter().map(number).collect()
        }
    }
}

fn extend(numbers: &mut Vec<i128>, array: &ArrayRef) -> Option<()> {
    macro_rules! take {
        ($Type:ty) => {
            numbers.extend(array.as_primitive::<$Type>().values().iter().map(|&value| i128::from(value)))
        };
    }
    match array.data_type() {
        DataType::Int8 => take!(Int8Type),
        DataType::Int16 => take!(Int16Type),
        DataType::UInt8 => take!(UInt8Type),
        DataType::UInt16 => take!(UInt16Type),
        DataType::UInt32 => take!(UInt32Type),
        DataType::UInt64 => take!(UInt64Type),
        DataType::Int32 => take!(Int32Type),
        DataType::Int64 => take!(Int64Type),
        // The sum of a column of whole numbers in DuckDB.
        DataType::Decimal128(_, 0) => take!(Decimal128Type),
        _ => return None,
    }
    Some(())
}
