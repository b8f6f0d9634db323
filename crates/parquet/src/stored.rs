//! The types that the format stores.

use parquet::column::page::PageReader;
use parquet::column::reader::{get_column_reader, get_typed_column_reader};
use parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::writer::SerializedColumnWriter;
use parquet::schema::types::ColumnDescPtr;

use crate::Error;

/// A type that the format stores.
///
/// The library's readers and writers of columns are generic. They take long to compile, so they are compiled here, for
/// each of these types, and not in all crates that have tables.
pub trait Stored: DataType {
    /// Writes a whole column; `levels` are 1 where an optional column has a value and 0 where it lacks one.
    #[doc(hidden)]
    fn write(
        column: &mut SerializedColumnWriter<'_>,
        values: &[Self::T],
        levels: Option<&[i16]>,
    ) -> Result<(), Error>;

    /// Reads a column of this many rows; a row lacks its value where its level is 0.
    #[doc(hidden)]
    fn read(
        column: ColumnDescPtr,
        pages: Box<dyn PageReader>,
        rows: usize,
    ) -> Result<(Vec<Self::T>, Vec<i16>), Error>;
}

macro_rules! stored {
    ($($Stored:ty),+ $(,)?) => {
        $(
            impl Stored for $Stored {
                fn write(
                    column: &mut SerializedColumnWriter<'_>,
                    values: &[Self::T],
                    levels: Option<&[i16]>,
                ) -> Result<(), Error> {
                    column.typed::<Self>().write_batch(values, levels, None)?;
                    Ok(())
                }

                fn read(
                    column: ColumnDescPtr,
                    pages: Box<dyn PageReader>,
                    rows: usize,
                ) -> Result<(Vec<Self::T>, Vec<i16>), Error> {
                    let mut reader = get_typed_column_reader::<Self>(get_column_reader(column, pages));
                    let (mut values, mut levels) = (Vec::new(), Vec::new());
                    let mut count = 0;
                    while count < rows {
                        let (read, ..) =
                            reader.read_records(rows - count, Some(&mut levels), None, &mut values)?;
                        if read == 0 {
                            return Err(Error::Broken);
                        }
                        count += read;
                    }
                    Ok((values, levels))
                }
            }
        )+
    };
}

stored!(BoolType, ByteArrayType, DoubleType, Int32Type, Int64Type);
