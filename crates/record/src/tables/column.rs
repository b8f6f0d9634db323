//! Columns: what a record's field looks like in a table, and how it comes back.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float64Array, RecordBatch, StringArray, UInt8Array, UInt32Array,
    UInt64Array,
};
use arrow::datatypes::{DataType, Field, Float64Type, UInt8Type, UInt32Type, UInt64Type};
use netloom_units::{Rate, Time};
use parquet::errors::{ParquetError, Result};

use crate::records::Records;

/// The names that stand in the tables where records hold numbers.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Names {
    /// Kinds of traffic.
    pub(crate) groups: Vec<String>,
    /// Measured spells of time.
    pub(crate) windows: Vec<String>,
}

impl Names {
    /// The names of a run.
    pub(crate) fn of(records: &Records) -> Self {
        Names {
            groups: records.groups.clone(),
            windows: records.windows.iter().map(|window| window.name.clone()).collect(),
        }
    }
}

/// A value that is a cell of a table.
pub(super) trait Cell: Sized {
    const TYPE: DataType;
    const NULLABLE: bool = false;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef;
    /// The cell of a row; the array has the type [`Self::TYPE`] and, unless nullable, no null.
    fn decode(array: &dyn Array, row: usize) -> Self;
}

impl Cell for bool {
    const TYPE: DataType = DataType::Boolean;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(cells.map(Some).collect::<BooleanArray>())
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.as_boolean().value(row)
    }
}

impl Cell for u8 {
    const TYPE: DataType = DataType::UInt8;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(UInt8Array::from_iter_values(cells))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.as_primitive::<UInt8Type>().value(row)
    }
}

impl Cell for u32 {
    const TYPE: DataType = DataType::UInt32;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(UInt32Array::from_iter_values(cells))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.as_primitive::<UInt32Type>().value(row)
    }
}

impl Cell for u64 {
    const TYPE: DataType = DataType::UInt64;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(UInt64Array::from_iter_values(cells))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.as_primitive::<UInt64Type>().value(row)
    }
}

impl Cell for f64 {
    const TYPE: DataType = DataType::Float64;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(Float64Array::from_iter_values(cells))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.as_primitive::<Float64Type>().value(row)
    }
}

impl Cell for String {
    const TYPE: DataType = DataType::Utf8;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(StringArray::from_iter_values(cells))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.as_string::<i32>().value(row).to_owned()
    }
}

impl Cell for Time {
    const TYPE: DataType = DataType::UInt64;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        u64::encode(cells.map(|time| time.0))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        Time(u64::decode(array, row))
    }
}

impl Cell for Option<Time> {
    const TYPE: DataType = DataType::UInt64;
    const NULLABLE: bool = true;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        Arc::new(cells.map(|time| time.map(|time| time.0)).collect::<UInt64Array>())
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        array.is_valid(row).then(|| Time::decode(array, row))
    }
}

impl Cell for Rate {
    const TYPE: DataType = DataType::UInt64;
    fn encode(cells: impl Iterator<Item = Self>) -> ArrayRef {
        u64::encode(cells.map(|rate| rate.0))
    }
    fn decode(array: &dyn Array, row: usize) -> Self {
        Rate(u64::decode(array, row))
    }
}

/// Finds a column and checks that [`Cell::decode`] may read it.
fn column<'a, C: Cell>(batch: &'a RecordBatch, name: &str) -> Result<&'a dyn Array> {
    let array =
        batch.column_by_name(name).ok_or_else(|| ParquetError::General(format!("no column `{name}`")))?;
    if *array.data_type() != C::TYPE {
        let found = array.data_type();
        return Err(ParquetError::General(format!("column `{name}`: expected {}, found {found}", C::TYPE)));
    }
    if !C::NULLABLE && array.null_count() > 0 {
        return Err(ParquetError::General(format!("column `{name}`: null in row {}", first_null(array))));
    }
    Ok(array)
}

fn first_null(array: &dyn Array) -> usize {
    (0..array.len()).find(|&row| array.is_null(row)).unwrap_or(0)
}

/// How a field of a record becomes a column and comes back.
pub(super) trait Column<V> {
    fn field(&self) -> Field;
    fn encode(&self, values: impl Iterator<Item = V>, names: &Names) -> Result<ArrayRef>;
    fn decode(&self, batch: &RecordBatch, names: &Names) -> Result<impl Iterator<Item = V>>;
}

/// A column that holds a field's value itself.
pub(super) struct Plain(pub(super) &'static str);

impl<C: Cell> Column<C> for Plain {
    fn field(&self) -> Field {
        Field::new(self.0, C::TYPE, C::NULLABLE)
    }

    fn encode(&self, values: impl Iterator<Item = C>, _: &Names) -> Result<ArrayRef> {
        Ok(C::encode(values))
    }

    fn decode(&self, batch: &RecordBatch, _: &Names) -> Result<impl Iterator<Item = C>> {
        let array = column::<C>(batch, self.0)?;
        Ok((0..array.len()).map(|row| C::decode(array, row)))
    }
}

/// A column of names, where the record holds a place in a list of them.
pub(super) struct Name(pub(super) &'static str, pub(super) fn(&Names) -> &[String]);

impl Column<u16> for Name {
    fn field(&self) -> Field {
        Field::new(self.0, DataType::Utf8, false)
    }

    fn encode(&self, values: impl Iterator<Item = u16>, names: &Names) -> Result<ArrayRef> {
        let names = (self.1)(names);
        let name = |index: u16| {
            let name = names.get(usize::from(index));
            name.ok_or_else(|| {
                ParquetError::General(format!("column `{}`: number {index} has no name", self.0))
            })
        };
        Ok(Arc::new(StringArray::from_iter_values(values.map(name).collect::<Result<Vec<_>>>()?)))
    }

    fn decode(&self, batch: &RecordBatch, names: &Names) -> Result<impl Iterator<Item = u16>> {
        let names = (self.1)(names);
        let cells = column::<String>(batch, self.0)?.as_string::<i32>();
        let index = |row| {
            let found = cells.value(row);
            let index = names.iter().position(|name| name == found);
            index
                .map(|index| index as u16)
                .ok_or_else(|| ParquetError::General(format!("column `{}`: unknown name `{found}`", self.0)))
        };
        Ok((0..batch.num_rows()).map(index).collect::<Result<Vec<_>>>()?.into_iter())
    }
}
