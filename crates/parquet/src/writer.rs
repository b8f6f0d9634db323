//! Writing a table, row group by row group.

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, Repetition};
use parquet::data_type::{ByteArray, ByteArrayType, DataType};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::Type;

use crate::{Cell, Error, Stored};

/// Name and type of a column.
#[derive(Clone, Debug)]
pub struct Field {
    name: Cow<'static, str>,
    repetition: Repetition,
    build: fn(&Field) -> Result<Type, Error>,
}

impl Field {
    /// A column with a value in every row.
    pub fn of<C: Cell>(name: impl Into<Cow<'static, str>>) -> Self {
        Field { name: name.into(), repetition: Repetition::REQUIRED, build: Field::build::<C> }
    }

    /// A column that may lack values.
    pub fn optional<C: Cell>(name: impl Into<Cow<'static, str>>) -> Self {
        Field { name: name.into(), repetition: Repetition::OPTIONAL, build: Field::build::<C> }
    }

    fn build<C: Cell>(&self) -> Result<Type, Error> {
        let kind = Type::primitive_type_builder(&self.name, C::Stored::get_physical_type());
        Ok(kind.with_repetition(self.repetition).with_logical_type(C::meaning()).build()?)
    }
}

/// Writes a table; equal rows in equal groups give equal bytes.
pub struct Writer<'w>(SerializedFileWriter<Output<'w>>);

/// Where a table goes.
type Output<'w> = Box<dyn Write + Send + 'w>;

impl<'w> Writer<'w> {
    /// Starts a table of these columns.
    ///
    /// # Errors
    /// If the output fails.
    pub fn new(output: impl Write + Send + 'w, fields: &[Field]) -> Result<Self, Error> {
        Writer::with_metadata(output, fields, &[])
    }

    /// Starts a table of these columns with words about it, by key, in the file's metadata.
    ///
    /// # Errors
    /// If the output fails.
    pub fn with_metadata(
        output: impl Write + Send + 'w,
        fields: &[Field],
        metadata: &[(&str, &str)],
    ) -> Result<Self, Error> {
        let metadata: Vec<KeyValue> = metadata
            .iter()
            .map(|(key, value)| KeyValue::new((*key).to_owned(), (*value).to_owned()))
            .collect();
        let properties = WriterProperties::builder()
            // The library's default names its version, which would change the bytes with every update of it.
            .set_created_by("netloom".to_owned())
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata((!metadata.is_empty()).then_some(metadata));
        Writer::with_properties(Box::new(output), fields, properties.build())
    }

    /// Starts a table that is soon read again and then gone: values as they are, without dictionaries and statistics.
    ///
    /// # Errors
    /// If the output fails.
    pub fn temporary(output: impl Write + Send + 'w, fields: &[Field]) -> Result<Self, Error> {
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_dictionary_enabled(false)
            .set_statistics_enabled(EnabledStatistics::None);
        Writer::with_properties(Box::new(output), fields, properties.build())
    }

    fn with_properties(
        output: Output<'w>,
        fields: &[Field],
        properties: WriterProperties,
    ) -> Result<Self, Error> {
        let fields: Result<_, Error> =
            fields.iter().map(|field| (field.build)(field).map(Arc::new)).collect();
        let schema = Type::group_type_builder("rows").with_fields(fields?).build()?;
        Ok(Writer(SerializedFileWriter::new(output, Arc::new(schema), Arc::new(properties))?))
    }

    /// Starts a row group, to be filled column by column and closed.
    ///
    /// # Errors
    /// If the output fails.
    pub fn row_group(&mut self) -> Result<GroupWriter<'_, 'w>, Error> {
        Ok(GroupWriter(self.0.next_row_group()?))
    }

    /// Ends the table.
    ///
    /// # Errors
    /// If the output fails.
    pub fn close(self) -> Result<(), Error> {
        self.0.close()?;
        Ok(())
    }
}

/// Writes the columns of a row group in their order.
pub struct GroupWriter<'g, 'w>(SerializedRowGroupWriter<'g, Output<'w>>);

impl GroupWriter<'_, '_> {
    /// Writes the next column.
    ///
    /// # Errors
    /// If the output fails.
    ///
    /// # Panics
    /// If the table has no further column, or one of another type.
    pub fn column<C: Cell>(&mut self, cells: impl IntoIterator<Item = C>) -> Result<(), Error> {
        let stored: Vec<_> = cells.into_iter().map(C::store).collect();
        self.write::<C>(&stored, None)
    }

    /// Writes the next column, which may lack values.
    ///
    /// # Errors
    /// If the output fails.
    ///
    /// # Panics
    /// If the table has no further column, or one of another type.
    pub fn optional_column<C: Cell>(
        &mut self,
        cells: impl IntoIterator<Item = Option<C>>,
    ) -> Result<(), Error> {
        let mut stored = Vec::new();
        let mut levels = Vec::new();
        for cell in cells {
            levels.push(i16::from(cell.is_some()));
            stored.extend(cell.map(C::store));
        }
        self.write::<C>(&stored, Some(&levels))
    }

    /// Writes the next column as the names that stand at these places of a list.
    ///
    /// # Errors
    /// If the output fails, or a place is beyond the list.
    ///
    /// # Panics
    /// If the table has no further column, or one of another type.
    pub fn names(&mut self, places: impl IntoIterator<Item = usize>, names: &[String]) -> Result<(), Error> {
        let names: Vec<_> = names.iter().map(|name| ByteArray::from(name.as_str())).collect();
        let mut column = self.next()?;
        let writer = column.typed::<ByteArrayType>();
        let nameless = |number| Error::Nameless { column: writer.get_descriptor().name().to_owned(), number };
        let name = |place: usize| names.get(place).cloned().ok_or_else(|| nameless(place));
        let stored = places.into_iter().map(name).collect::<Result<Vec<_>, _>>()?;
        ByteArrayType::write(&mut column, &stored, None)?;
        Ok(column.close()?)
    }

    fn write<C: Cell>(
        &mut self,
        stored: &[<C::Stored as DataType>::T],
        levels: Option<&[i16]>,
    ) -> Result<(), Error> {
        let mut column = self.next()?;
        C::Stored::write(&mut column, stored, levels)?;
        Ok(column.close()?)
    }

    fn next(&mut self) -> Result<SerializedColumnWriter<'_>, Error> {
        Ok(self.0.next_column()?.expect("no more columns than fields"))
    }

    /// Ends the row group.
    ///
    /// # Errors
    /// If the output fails, or columns are missing.
    pub fn close(self) -> Result<(), Error> {
        self.0.close()?;
        Ok(())
    }
}
