//! `netloom.Table`: an Arrow table that every data library takes over the PyCapsule interface.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::builder::StringBuilder;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::{Float64Type, Int64Type, UInt8Type, UInt32Type, UInt64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator,
    RecordBatchReader, StringArray, UInt8Array, UInt32Array, UInt64Array,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use netloom_record::{TableColumn, Values};
use pyo3::exceptions::{PyKeyError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList, PyTuple};

/// An Arrow table. pyarrow, polars, pandas and DuckDB take it as it is, without a copy:
/// `pyarrow.table(t)`, `polars.DataFrame(t)`, `pandas.DataFrame.from_arrow(t)`, `duckdb.sql("from t")`.
///
/// Columns have their unit in their metadata, under `unit`: `ps`, `B`, `bit/s`.
#[pyclass(module = "netloom", frozen)]
#[derive(Clone, Debug)]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

/// A column under a name that the user chose.
pub(crate) enum Column {
    /// Words.
    Text(Vec<Option<String>>),
    /// Whole numbers.
    Count(Vec<u64>),
    /// Numbers that some rows lack.
    Real(Vec<Option<f64>>),
}

/// The unit that a column's name tells.
fn unit(name: &str) -> Option<&'static str> {
    let last = name.rsplit(['_', '.']).next()?;
    match last {
        "ps" => Some("ps"),
        "bps" => Some("bit/s"),
        "bytes" => Some("B"),
        _ => None,
    }
}

fn field(name: &str, array: &ArrayRef, is_nullable: bool, unit: Option<String>) -> Field {
    let metadata = unit.map(|unit| HashMap::from([("unit".to_owned(), unit)]));
    Field::new(name, array.data_type().clone(), is_nullable).with_metadata(metadata.unwrap_or_default())
}

impl Table {
    /// The columns of an outcome's table.
    pub(crate) fn of_columns(columns: Vec<TableColumn>) -> Self {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for TableColumn { name, values } in columns {
            let is_nullable = matches!(values, Values::OptionalU64(_));
            let array: ArrayRef = match values {
                Values::Bool(values) => Arc::new(BooleanArray::from(values)),
                Values::U8(values) => Arc::new(UInt8Array::from(values)),
                Values::U32(values) => Arc::new(UInt32Array::from(values)),
                Values::U64(values) => Arc::new(UInt64Array::from(values)),
                Values::OptionalU64(values) => Arc::new(UInt64Array::from(values)),
                Values::F64(values) => Arc::new(Float64Array::from(values)),
                Values::Text(values) => Arc::new(StringArray::from(values)),
                Values::Names { places, names } => {
                    let mut builder = StringBuilder::with_capacity(places.len(), places.len() * 4);
                    places.iter().for_each(|&place| builder.append_value(&names[usize::from(place)]));
                    Arc::new(builder.finish())
                }
            };
            fields.push(field(name, &array, is_nullable, unit(name).map(str::to_owned)));
            arrays.push(array);
        }
        Table::of_arrays(fields, arrays)
    }

    /// Columns under names that the user chose.
    pub(crate) fn of_named(columns: Vec<(String, Column)>) -> Self {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (name, column) in columns {
            let array: ArrayRef = match column {
                Column::Text(texts) => Arc::new(StringArray::from(texts)),
                Column::Count(counts) => Arc::new(UInt64Array::from(counts)),
                Column::Real(numbers) => Arc::new(Float64Array::from(numbers)),
            };
            fields.push(field(&name, &array, true, None));
            arrays.push(array);
        }
        Table::of_arrays(fields, arrays)
    }

    /// The same table with units in the columns' metadata.
    pub(crate) fn with_units(self, unit: impl Fn(&str) -> Option<&'static str>) -> Self {
        let fields: Vec<Field> = self
            .schema
            .fields()
            .iter()
            .map(|field| match unit(field.name()) {
                Some(unit) => field
                    .as_ref()
                    .clone()
                    .with_metadata(HashMap::from([("unit".to_owned(), unit.to_owned())])),
                None => field.as_ref().clone(),
            })
            .collect();
        Table::of_arrays(fields, self.batches.iter().flat_map(|batch| batch.columns().to_vec()).collect())
    }

    /// The same rows with a cell's labels and seed before them.
    pub(crate) fn with_labels(self, labels: Vec<(String, Option<String>)>, seed: u64) -> Self {
        let rows = self.rows();
        let mut columns: Vec<(String, Column)> =
            labels.into_iter().map(|(axis, label)| (axis, Column::Text(vec![label; rows]))).collect();
        columns.push(("seed".to_owned(), Column::Count(vec![seed; rows])));
        let named = Table::of_named(columns);
        let mut fields: Vec<Field> =
            named.schema.fields().iter().map(|field| field.as_ref().clone()).collect();
        fields.extend(self.schema.fields().iter().map(|field| field.as_ref().clone()));
        let mut arrays: Vec<ArrayRef> =
            named.batches.iter().flat_map(|batch| batch.columns().to_vec()).collect();
        arrays.extend(self.batches.iter().flat_map(|batch| batch.columns().to_vec()));
        Table::of_arrays(fields, arrays)
    }

    /// Tables of the same columns, one below the other; `none` if there are none.
    pub(crate) fn stacked(parts: Vec<Table>, none: impl FnOnce() -> Table) -> Self {
        let Some(first) = parts.first() else { return none() };
        let schema = Arc::clone(&first.schema);
        Table { schema, batches: parts.into_iter().flat_map(|part| part.batches).collect() }
    }

    fn of_arrays(fields: Vec<Field>, arrays: Vec<ArrayRef>) -> Self {
        let schema = Arc::new(Schema::new(fields));
        let batch =
            RecordBatch::try_new(Arc::clone(&schema), arrays).expect("fields are made from the arrays");
        Table { schema, batches: vec![batch] }
    }

    fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// Whether there is such a column.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.schema.index_of(name).is_ok()
    }

    /// A column in parts.
    pub(crate) fn arrays(&self, name: &str) -> PyResult<(&Field, Vec<&ArrayRef>)> {
        let Ok(index) = self.schema.index_of(name) else {
            let known: Vec<&str> = self.schema.fields().iter().map(|field| field.name().as_str()).collect();
            let help = netloom_scenario::suggest(name, known);
            return Err(PyKeyError::new_err(format!("there is no column `{name}` ({help})")));
        };
        Ok((self.schema.field(index), self.batches.iter().map(|batch| batch.column(index)).collect()))
    }
}

#[pymethods]
impl Table {
    /// Columns from Python: (name, values, unit), where values are floats, whole numbers, truth values or text.
    #[staticmethod]
    fn _from_columns(columns: Vec<(String, Bound<'_, PyAny>, Option<String>)>) -> PyResult<Self> {
        let (mut fields, mut arrays) = (Vec::new(), Vec::new());
        for (name, values, unit) in columns {
            let array: ArrayRef = if let Ok(truths) = values.extract::<Vec<bool>>() {
                Arc::new(BooleanArray::from(truths))
            } else if let Ok(numbers) = values.extract::<Vec<Option<i64>>>() {
                Arc::new(Int64Array::from(numbers))
            } else if let Ok(numbers) = values.extract::<Vec<Option<f64>>>() {
                Arc::new(Float64Array::from(numbers))
            } else if let Ok(texts) = values.extract::<Vec<Option<String>>>() {
                Arc::new(StringArray::from(texts))
            } else {
                let message =
                    format!("column `{name}`: expected numbers, truth values or text, one kind of them");
                return Err(PyTypeError::new_err(message));
            };
            if arrays.first().is_some_and(|first: &ArrayRef| first.len() != array.len()) {
                return Err(PyValueError::new_err(format!(
                    "column `{name}` is of another length than the first"
                )));
            }
            fields.push(field(&name, &array, true, unit));
            arrays.push(array);
        }
        Ok(Table::of_arrays(fields, arrays))
    }

    /// A table from any object with `__arrow_c_stream__`.
    #[staticmethod]
    fn from_arrow(source: &Bound<'_, PyAny>) -> PyResult<Self> {
        if let Ok(table) = source.cast::<Table>() {
            return Ok(table.get().clone());
        }
        let capsule = source.call_method0("__arrow_c_stream__").map_err(|_| {
            PyTypeError::new_err(
                "expected a data frame that offers __arrow_c_stream__ (polars, pandas 2.2, pyarrow, DuckDB)",
            )
        })?;
        let capsule = capsule.cast_into::<PyCapsule>()?;
        let stream = capsule.pointer_checked(Some(c"arrow_array_stream"))?;
        let broken = |error: arrow_schema::ArrowError| PyValueError::new_err(error.to_string());
        // SAFETY: a capsule of this name holds a stream by the Arrow PyCapsule interface; taking it leaves a released one behind.
        #[allow(unsafe_code)]
        let reader =
            unsafe { RecordBatchStreamReader::from_raw(stream.as_ptr().cast::<FFI_ArrowArrayStream>()) };
        let reader = reader.map_err(broken)?;
        let schema = reader.schema();
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(broken)?;
        Ok(Table { schema, batches })
    }

    /// The table as a stream of the Arrow C data interface.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface lets a producer ignore which types a consumer would like.
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
    }

    /// The schema of the Arrow C data interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.schema.as_ref())
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// Number of rows.
    fn __len__(&self) -> usize {
        self.rows()
    }

    /// Names of the columns.
    #[getter]
    fn columns(&self) -> Vec<&str> {
        self.schema.fields().iter().map(|field| field.name().as_str()).collect()
    }

    /// The units of the columns that have one.
    #[getter]
    fn units(&self) -> HashMap<&str, &str> {
        let unit = |field: &'_ Arc<Field>| field.metadata().get("unit").cloned();
        let with_unit = self.schema.fields().iter().filter(|field| unit(field).is_some());
        with_unit.map(|field| (field.name().as_str(), field.metadata()["unit"].as_str())).collect()
    }

    fn __repr__(&self) -> String {
        let columns = self.schema.fields().iter().map(|field| match field.metadata().get("unit") {
            Some(unit) => format!("{}: {} [{unit}]", field.name(), field.data_type()),
            None => format!("{}: {}", field.name(), field.data_type()),
        });
        format!("netloom.Table of {} rows ({})", self.rows(), columns.collect::<Vec<_>>().join(", "))
    }

    /// A column as a NumPy array; with values missing, as floats that are NaN there; text as an array of objects.
    fn __getitem__<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
        py.import("netloom._array")?.getattr("column")?.call1(self.raw_column(py, name)?)
    }

    /// The table as a pandas data frame.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("netloom._array")?.getattr("to_pandas")?.call1((slf,))
    }

    /// The table as a polars data frame.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.getattr("DataFrame")?.call1((slf,))
    }

    /// The table as a pyarrow table.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.getattr("table")?.call1((slf,))
    }
}

impl Table {
    /// A column for NumPy: its bytes and dtype, and where it lacks values one byte per row that says whether it does;
    /// text as a list.
    fn raw_column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyTuple>> {
        let (field, arrays) = self.arrays(name)?;
        let mut bytes: Vec<u8> = Vec::new();
        macro_rules! numbers {
            ($Type:ty) => {
                for array in &arrays {
                    let values = array.as_primitive::<$Type>().values();
                    bytes.extend_from_slice(values.inner().as_slice());
                }
            };
        }
        let dtype = match field.data_type() {
            DataType::UInt8 => {
                numbers!(UInt8Type);
                "u1"
            }
            DataType::UInt32 => {
                numbers!(UInt32Type);
                "u4"
            }
            DataType::UInt64 => {
                numbers!(UInt64Type);
                "u8"
            }
            DataType::Int64 => {
                numbers!(Int64Type);
                "i8"
            }
            DataType::Float64 => {
                numbers!(Float64Type);
                "f8"
            }
            DataType::Boolean => {
                arrays
                    .iter()
                    .for_each(|array| bytes.extend(array.as_boolean().values().iter().map(u8::from)));
                "?"
            }
            DataType::Utf8 => {
                let texts = arrays.iter().flat_map(|array| array.as_string::<i32>().iter());
                return PyTuple::new(py, [PyList::new(py, texts)?.into_any()]);
            }
            other => return Err(PyTypeError::new_err(format!("column `{name}`: no NumPy array of {other}"))),
        };
        let lacks = arrays.iter().any(|array| array.null_count() > 0);
        let missing: Option<Vec<u8>> = lacks.then(|| {
            let rows =
                arrays.iter().flat_map(|array| (0..array.len()).map(|row| u8::from(array.is_null(row))));
            rows.collect()
        });
        let missing = missing.map(|missing| PyBytes::new(py, &missing));
        (PyBytes::new(py, &bytes), dtype, missing).into_pyobject(py)
    }
}
