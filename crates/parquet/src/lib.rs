//! Tables as Parquet files: typed columns in, typed columns out.
//!
//! A thin layer over the `parquet` crate's own column writers and readers, without Arrow in between (which would take
//! longer to build than all the rest of netloom). A file is a sequence of row groups, so a table can be written while
//! it grows; within a row group the columns are written one after the other, in the order of [`Writer::new`]. Their
//! types are logical types of the format (unsigned integers, booleans, strings, optional columns), which pandas,
//! polars and DuckDB read as such.
//!
//! ```
//! use netloom_parquet::{Field, Writer, read};
//!
//! let mut file = tempfile::tempfile().unwrap();
//! let mut writer = Writer::new(&mut file, &[Field::of::<u64>("bytes"), Field::optional::<u32>("host")]).unwrap();
//! let mut group = writer.row_group().unwrap();
//! group.column([100, 200u64]).unwrap();
//! group.optional_column([None, Some(7u32)]).unwrap();
//! group.close().unwrap();
//! writer.close().unwrap();
//!
//! let hosts = read(file, |table| table.row_groups().map(|group| group?.optional_column::<u32>("host")).collect());
//! let groups: Vec<Vec<Option<u32>>> = hosts.unwrap();
//! assert_eq!(groups, [[None, Some(7)]]);
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod cell;
mod error;
mod reader;
mod stored;
mod writer;
mod zstd;

pub use cell::Cell;
pub use error::Error;
pub use reader::{RowGroup, Table, read};
pub use stored::Stored;
pub use writer::{Field, GroupWriter, Writer};

/// Rows that a row group should hold: enough to compress well, few enough to be held in memory.
pub const GROUP_ROWS: usize = 1 << 17;
