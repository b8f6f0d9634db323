//! Reading a table, row group by row group.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Type as Physical};
use parquet::column::page::PageReader;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescPtr, ColumnDescriptor};

use crate::stored::Stored;
use crate::zstd::ZstdPages;
use crate::{Cell, Error};

/// Opens a table and reads what the caller wants of it.
///
/// # Errors
/// Those of the caller, and an error for every kind of damage.
pub fn read<T, E: From<Error>>(input: File, read: impl FnOnce(&Table) -> Result<T, E>) -> Result<T, E> {
    // The library has assertions that a damaged file can reach. They become errors like all other damage.
    catch_unwind(AssertUnwindSafe(|| read(&Table::open(input)?)))
        .unwrap_or_else(|_| Err(Error::Broken.into()))
}

/// A table that is being read.
pub struct Table {
    reader: SerializedFileReader<File>,
    /// The same file, for what is decompressed here.
    file: Arc<File>,
}

impl Table {
    /// Opens a table that is known to be sound; others are read with [`read()`].
    ///
    /// # Errors
    /// If the file cannot be read or is no table.
    pub fn open(input: File) -> Result<Self, Error> {
        let file = Arc::new(input.try_clone()?);
        Ok(Table { reader: SerializedFileReader::new(input)?, file })
    }

    /// The number of row groups.
    pub fn groups(&self) -> usize {
        self.reader.num_row_groups()
    }

    /// A row group, counted from 0.
    ///
    /// # Errors
    /// If there is no such group.
    pub fn row_group(&self, index: usize) -> Result<RowGroup<'_>, Error> {
        let before = self.reader.metadata().row_groups().iter().take(index);
        let rows_before = before.map(|group| u64::try_from(group.num_rows()).unwrap_or(0)).sum();
        Ok(RowGroup { reader: self.reader.get_row_group(index)?, file: &self.file, rows_before })
    }

    /// The row groups, in order.
    pub fn row_groups(&self) -> impl Iterator<Item = Result<RowGroup<'_>, Error>> {
        (0..self.groups()).map(|index| self.row_group(index))
    }
}

/// A row group that is being read.
pub struct RowGroup<'a> {
    reader: Box<dyn RowGroupReader + 'a>,
    file: &'a Arc<File>,
    rows_before: u64,
}

impl RowGroup<'_> {
    /// The number of rows.
    pub fn rows(&self) -> usize {
        usize::try_from(self.reader.metadata().num_rows()).unwrap_or(0)
    }

    /// The number of rows in the groups before.
    pub fn rows_before(&self) -> u64 {
        self.rows_before
    }

    /// The values of a column.
    ///
    /// # Errors
    /// If there is no such column, it has another type, or a value is missing.
    pub fn column<C: Cell>(&self, name: &str) -> Result<Vec<C>, Error> {
        let (index, column) = self.find(name)?;
        check_type::<C>(&column)?;
        let cells = self.values::<C::Stored>(index, &column)?;
        let load = |(row, cell): (usize, Option<_>)| match cell {
            Some(cell) => C::load(&cell),
            None => Err(Error::Null { column: name.to_owned(), row: self.row(row) }),
        };
        cells.into_iter().enumerate().map(load).collect()
    }

    /// The values of a column, where it has any.
    ///
    /// # Errors
    /// If there is no such column, or it has another type.
    pub fn optional_column<C: Cell>(&self, name: &str) -> Result<Vec<Option<C>>, Error> {
        let (index, column) = self.find(name)?;
        check_type::<C>(&column)?;
        let cells = self.values::<C::Stored>(index, &column)?;
        cells.into_iter().map(|cell| cell.map(|cell| C::load(&cell)).transpose()).collect()
    }

    /// Whether there is a column of that name.
    pub fn has(&self, name: &str) -> bool {
        self.find(name).is_ok()
    }

    /// The values of a column of integers of any size, signed or not, as long as none is below zero.
    ///
    /// # Errors
    /// If there is no such column, it has another type, or a value is missing or negative.
    #[expect(
        clippy::cast_sign_loss,
        reason = "unsigned integers are stored in the bits of signed ones; what is signed and negative is refused"
    )]
    pub fn integers(&self, name: &str) -> Result<Vec<u64>, Error> {
        let (index, column) = self.find(name)?;
        let signed = match (column.logical_type_ref(), column.converted_type()) {
            (Some(LogicalType::Integer(integer)), _) => integer.is_signed,
            (None, kind) if kind.to_string().starts_with("UINT") => false,
            (None, kind) if kind == ConvertedType::NONE || kind.to_string().starts_with("INT_") => true,
            _ => return Err(mistyped(&column, "integers")),
        };
        // Unsigned integers are stored in the bits of signed ones.
        let cells: Vec<Option<i64>> = match (column.physical_type(), signed) {
            (Physical::INT32, true) => {
                let cells = self.values::<Int32Type>(index, &column)?;
                cells.into_iter().map(|cell| cell.map(i64::from)).collect()
            }
            (Physical::INT32, false) => {
                let cells = self.values::<Int32Type>(index, &column)?;
                cells.into_iter().map(|cell| cell.map(|cell| i64::from(cell as u32))).collect()
            }
            (Physical::INT64, _) => self.values::<Int64Type>(index, &column)?,
            _ => return Err(mistyped(&column, "integers")),
        };
        let number = |(index, cell): (usize, Option<i64>)| {
            let (column, row) = (name, self.row(index));
            match cell {
                None => Err(Error::Null { column: column.to_owned(), row }),
                Some(found) if signed && found < 0 => {
                    Err(Error::Negative { column: column.to_owned(), row, found })
                }
                Some(cell) => Ok(cell as u64),
            }
        };
        cells.into_iter().enumerate().map(number).collect()
    }

    /// Reads a column of names as places in a list of them.
    ///
    /// # Errors
    /// If there is no such column, it has another type, or it holds a name that is not in the list.
    pub fn places(&self, name: &str, names: &[String]) -> Result<Vec<usize>, Error> {
        let place = |found: String| {
            let place = names.iter().position(|name| *name == found);
            place.ok_or_else(|| Error::Unknown { column: name.to_owned(), name: found })
        };
        self.column::<String>(name)?.into_iter().map(place).collect()
    }

    fn row(&self, index: usize) -> u64 {
        self.rows_before + index as u64 + 1
    }

    fn find(&self, name: &str) -> Result<(usize, ColumnDescPtr), Error> {
        let columns = self.reader.metadata().schema_descr().columns();
        let found = columns.iter().position(|column| column.path().parts() == [name]);
        let missing = || {
            let found = columns.iter().map(|column| column.path().string()).collect::<Vec<_>>().join(", ");
            Error::Missing { column: name.to_owned(), found }
        };
        let index = found.ok_or_else(missing)?;
        Ok((index, columns[index].clone()))
    }

    /// Reads a column whose stored type is known to be `D`.
    fn values<D: Stored>(&self, index: usize, column: &ColumnDescriptor) -> Result<Vec<Option<D::T>>, Error> {
        if column.max_rep_level() > 0 || column.max_def_level() > 1 {
            return Err(mistyped(column, "single values"));
        }
        let rows = self.rows();
        let chunk = self.reader.metadata().column(index);
        let pages: Box<dyn PageReader> = match chunk.compression() {
            Compression::UNCOMPRESSED | Compression::SNAPPY => self.reader.get_column_page_reader(index)?,
            Compression::ZSTD(_) => Box::new(ZstdPages::new(self.file, chunk, rows)?),
            codec => {
                let codec = codec.to_string();
                let codec = codec.split('(').next().unwrap_or_default().to_lowercase();
                return Err(Error::Compression { column: column.name().to_owned(), codec });
            }
        };
        let (values, levels) = D::read(chunk.column_descr_ptr(), pages, rows)?;
        if column.max_def_level() == 0 {
            return Ok(values.into_iter().map(Some).collect());
        }
        let mut values = values.into_iter();
        Ok(levels.into_iter().map(|level| if level == 1 { values.next() } else { None }).collect())
    }
}

fn check_type<C: Cell>(column: &ColumnDescriptor) -> Result<(), Error> {
    let fits = column.physical_type() == C::Stored::get_physical_type()
        && column.logical_type_ref() == C::meaning().as_ref();
    if fits {
        return Ok(());
    }
    let stored = C::Stored::get_physical_type();
    Err(mistyped(
        column,
        &type_name(C::meaning().map_or(ConvertedType::NONE, |kind| Some(kind).into()), stored),
    ))
}

fn mistyped(column: &ColumnDescriptor, expected: &str) -> Error {
    Error::Type {
        column: column.name().to_owned(),
        expected: expected.to_owned(),
        found: type_name(column.converted_type(), column.physical_type()),
    }
}

/// The format's short name of a type, e.g. `UINT_64`.
fn type_name(meaning: ConvertedType, stored: Physical) -> String {
    if meaning == ConvertedType::NONE { stored.to_string() } else { meaning.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Field, Writer};

    fn file(fields: &[Field], fill: impl Fn(&mut crate::GroupWriter<'_, '_>)) -> File {
        let mut file = tempfile::tempfile().unwrap();
        let mut writer = Writer::new(&mut file, fields).unwrap();
        for _ in 0..2 {
            let mut group = writer.row_group().unwrap();
            fill(&mut group);
            group.close().unwrap();
        }
        writer.close().unwrap();
        file
    }

    fn all<T>(file: File, column: impl Fn(&RowGroup<'_>) -> Result<Vec<T>, Error>) -> Result<Vec<T>, String> {
        let groups: Result<Vec<_>, Error> =
            read(file, |table| table.row_groups().map(|group| column(&group?)).collect());
        groups.map(|groups| groups.into_iter().flatten().collect()).map_err(|error| error.to_string())
    }

    #[test]
    fn every_type_reads_back_at_its_ends() {
        let fields = [
            Field::of::<u8>("u8"),
            Field::of::<u16>("u16"),
            Field::of::<u32>("u32"),
            Field::of::<u64>("u64"),
            Field::of::<bool>("bool"),
            Field::of::<f64>("f64"),
            Field::of::<String>("text"),
            Field::optional::<u64>("maybe"),
        ];
        let file = || {
            file(&fields, |group| {
                group.column([0, u8::MAX]).unwrap();
                group.column([0, u16::MAX]).unwrap();
                group.column([0, u32::MAX]).unwrap();
                group.column([0, u64::MAX]).unwrap();
                group.column([false, true]).unwrap();
                group.column([-0.5, f64::INFINITY]).unwrap();
                group.column(["", "grün"].map(str::to_owned)).unwrap();
                group.optional_column([Some(u64::MAX), None]).unwrap();
            })
        };
        assert_eq!(all(file(), |group| group.column::<u8>("u8")).unwrap(), [0, u8::MAX, 0, u8::MAX]);
        assert_eq!(all(file(), |group| group.column::<u16>("u16")).unwrap(), [0, u16::MAX, 0, u16::MAX]);
        assert_eq!(all(file(), |group| group.column::<u32>("u32")).unwrap(), [0, u32::MAX, 0, u32::MAX]);
        assert_eq!(all(file(), |group| group.column::<u64>("u64")).unwrap(), [0, u64::MAX, 0, u64::MAX]);
        assert_eq!(all(file(), |group| group.column::<bool>("bool")).unwrap(), [false, true, false, true]);
        let floats = [-0.5, f64::INFINITY, -0.5, f64::INFINITY];
        assert_eq!(all(file(), |group| group.column::<f64>("f64")).unwrap(), floats);
        assert_eq!(all(file(), |group| group.column::<String>("text")).unwrap(), ["", "grün", "", "grün"]);
        let maybe = [Some(u64::MAX), None, Some(u64::MAX), None];
        assert_eq!(all(file(), |group| group.optional_column::<u64>("maybe")).unwrap(), maybe);
        for (name, last) in [("u8", 255), ("u16", 65535), ("u32", u64::from(u32::MAX)), ("u64", u64::MAX)] {
            assert_eq!(all(file(), |group| group.integers(name)).unwrap(), [0, last, 0, last]);
        }
    }

    #[test]
    fn wrong_columns_and_missing_values_are_named() {
        let fields = [Field::of::<u32>("a"), Field::optional::<u64>("b"), Field::of::<f64>("c")];
        let file = || {
            file(&fields, |group| {
                group.column([1u32, 2]).unwrap();
                group.optional_column([Some(1u64), None]).unwrap();
                group.column([0.5, 1.5]).unwrap();
            })
        };
        let error = |column: &str| all(file(), |group| group.column::<u64>(column)).unwrap_err();
        assert_eq!(error("x"), "expected a column `x`, found: a, b, c");
        assert_eq!(error("a"), "a: expected a column of UINT_64, found UINT_32");
        assert_eq!(error("b"), "b: expected a value in row 2, found null");
        assert_eq!(error("c"), "c: expected a column of UINT_64, found DOUBLE");
        let error = all(file(), |group| group.integers("c")).unwrap_err();
        assert_eq!(error, "c: expected a column of integers, found DOUBLE");
    }
}
