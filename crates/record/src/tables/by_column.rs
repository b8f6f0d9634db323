//! Tables in memory, column by column: for callers that do not read files, and before they are written to one.

use std::sync::Arc;

use netloom_parquet::{Error, Field, GroupWriter};
use netloom_units::{Rate, Time};

use super::column::{Name, Names, Optional, Plain};

/// A column of a table.
#[derive(Clone, Debug, PartialEq)]
pub struct TableColumn {
    /// Its name.
    pub name: &'static str,
    /// Its values, one per row.
    pub values: Values,
}

impl TableColumn {
    /// Its name and type in a file.
    pub(super) fn field(&self) -> Field {
        match self.values {
            Values::Bool(_) => Field::of::<bool>(self.name),
            Values::U8(_) => Field::of::<u8>(self.name),
            Values::U32(_) => Field::of::<u32>(self.name),
            Values::U64(_) => Field::of::<u64>(self.name),
            Values::OptionalU64(_) => Field::optional::<u64>(self.name),
            Values::F64(_) => Field::of::<f64>(self.name),
            Values::Text(_) | Values::Names { .. } => Field::of::<String>(self.name),
        }
    }

    /// Writes it as the next column of a row group.
    pub(super) fn write(self, group: &mut GroupWriter<'_, '_>) -> Result<(), Error> {
        match self.values {
            Values::Bool(values) => group.column(values),
            Values::U8(values) => group.column(values),
            Values::U32(values) => group.column(values),
            Values::U64(values) => group.column(values),
            Values::OptionalU64(values) => group.optional_column(values),
            Values::F64(values) => group.column(values),
            Values::Text(values) => group.column(values),
            Values::Names { places, names } => group.names(places.into_iter().map(usize::from), &names),
        }
    }
}

/// The values of a column. Times are picoseconds, rates bits per second.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Truth values.
    Bool(Vec<bool>),
    /// Small whole numbers.
    U8(Vec<u8>),
    /// Whole numbers.
    U32(Vec<u32>),
    /// Large whole numbers.
    U64(Vec<u64>),
    /// Large whole numbers that some rows lack.
    OptionalU64(Vec<Option<u64>>),
    /// Real numbers.
    F64(Vec<f64>),
    /// Text.
    Text(Vec<String>),
    /// Text of which there are few different ones.
    Names {
        /// Per row, a place in `names`.
        places: Vec<u16>,
        /// The texts.
        names: Vec<String>,
    },
}

/// Rows that are taken column by column before the next ones are: as many as stay in the cache meanwhile.
pub(super) const CHUNK: usize = 1 << 10;

/// How a field of a record becomes values.
pub(super) trait ByColumn<V> {
    fn empty(&self, rows: usize, names: &Names) -> TableColumn;
    fn extend(&self, values: &mut Values, cells: impl Iterator<Item = V>);
}

impl<V: Value> ByColumn<V> for Plain {
    fn empty(&self, rows: usize, _: &Names) -> TableColumn {
        TableColumn { name: self.0, values: V::empty(rows) }
    }

    fn extend(&self, values: &mut Values, cells: impl Iterator<Item = V>) {
        V::extend(values, cells);
    }
}

impl<V: Whole> ByColumn<Option<V>> for Optional {
    fn empty(&self, rows: usize, _: &Names) -> TableColumn {
        TableColumn { name: self.0, values: Values::OptionalU64(Vec::with_capacity(rows)) }
    }

    fn extend(&self, values: &mut Values, cells: impl Iterator<Item = Option<V>>) {
        if let Values::OptionalU64(values) = values {
            values.extend(cells.map(|cell| cell.map(V::whole)));
        }
    }
}

impl ByColumn<u16> for Name {
    fn empty(&self, rows: usize, names: &Names) -> TableColumn {
        let values = match names.are_numbers {
            true => Values::Text(Vec::with_capacity(rows)),
            false => Values::Names { places: Vec::with_capacity(rows), names: (self.1)(names).to_vec() },
        };
        TableColumn { name: self.0, values }
    }

    fn extend(&self, values: &mut Values, cells: impl Iterator<Item = u16>) {
        match values {
            Values::Names { places, .. } => places.extend(cells),
            Values::Text(numbers) => numbers.extend(cells.map(|number| number.to_string())),
            _ => unreachable!("`empty` has made one of these"),
        }
    }
}

/// A value that is a whole number.
pub(super) trait Whole {
    fn whole(self) -> u64;
}

impl Whole for u64 {
    fn whole(self) -> u64 {
        self
    }
}

impl Whole for Time {
    fn whole(self) -> u64 {
        self.0
    }
}

/// A field of a record that is a value of a column.
pub(super) trait Value: Sized {
    fn empty(rows: usize) -> Values;
    fn extend(values: &mut Values, cells: impl Iterator<Item = Self>);
}

macro_rules! values {
    ($($Field:ty => $Variant:ident, |$cell:ident| $value:expr;)+) => {
        $(impl Value for $Field {
            fn empty(rows: usize) -> Values {
                Values::$Variant(Vec::with_capacity(rows))
            }
            fn extend(values: &mut Values, cells: impl Iterator<Item = Self>) {
                if let Values::$Variant(values) = values {
                    values.extend(cells.map(|$cell| $value));
                }
            }
        })+
    };
}

values! {
    bool => Bool, |cell| cell;
    u8 => U8, |cell| cell;
    u32 => U32, |cell| cell;
    u64 => U64, |cell| cell;
    f64 => F64, |cell| cell;
    String => Text, |cell| cell;
    Arc<str> => Text, |cell| cell.to_string();
    Time => U64, |cell| cell.0;
    Rate => U64, |cell| cell.0;
}
