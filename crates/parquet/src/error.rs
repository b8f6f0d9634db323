//! What can go wrong with a table.

use std::io;

use parquet::errors::ParquetError;

/// Why a table cannot be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The file cannot be written or read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The file is damaged, or no Parquet file.
    #[error("{0}")]
    Damaged(String),
    /// The file is damaged in a way that the library asserts never happens.
    #[error("its structure is broken")]
    Broken,
    /// A number that should stand for a name does not.
    #[error("{column}: number {number} has no name")]
    Nameless {
        /// The column.
        column: String,
        /// The number.
        number: usize,
    },
    /// A name that the reader does not know.
    #[error("{column}: unknown name `{name}`")]
    Unknown {
        /// Its column.
        column: String,
        /// The name.
        name: String,
    },
    /// There is no such column.
    #[error("expected a column `{column}`, found: {found}")]
    Missing {
        /// Its name.
        column: String,
        /// The columns that there are.
        found: String,
    },
    /// The column has another type.
    #[error("{column}: expected a column of {expected}, found {found}")]
    Type {
        /// Its name.
        column: String,
        /// The types that would do.
        expected: String,
        /// Its type.
        found: String,
    },
    /// The column is compressed in a way that is not read.
    #[error(
        "{column} is compressed by {codec}: expected Zstandard, Snappy or no compression (polars, pandas: compression=\"snappy\"; DuckDB: COMPRESSION snappy)"
    )]
    Compression {
        /// Its name.
        column: String,
        /// How it is compressed.
        codec: String,
    },
    /// A value is missing.
    #[error("{column}: expected a value in row {row}, found null")]
    Null {
        /// Its column.
        column: String,
        /// Its row, counted from 1.
        row: u64,
    },
    /// A number is below zero.
    #[error("{column}: expected at least 0 in row {row}, found {found}")]
    Negative {
        /// Its column.
        column: String,
        /// Its row, counted from 1.
        row: u64,
        /// The number.
        found: i64,
    },
}

impl From<ParquetError> for Error {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(inner) => match inner.downcast::<io::Error>() {
                Ok(error) => Error::Io(*error),
                Err(other) => Error::Damaged(other.to_string()),
            },
            other => Error::Damaged(other.to_string()),
        }
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Io(error) => error,
            other => io::Error::other(other),
        }
    }
}
