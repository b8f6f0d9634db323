//! Cells: how a value is stored.

use std::sync::Arc;

use netloom_units::{Rate, Time};
use parquet::basic::LogicalType;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};

use crate::Error;
use crate::stored::Stored;

/// A value that is a cell of a table.
pub trait Cell: Sized {
    /// How the format stores it.
    type Stored: Stored;

    /// What the stored value means; nothing where it means itself.
    fn meaning() -> Option<LogicalType>;

    /// The stored form.
    fn store(self) -> <Self::Stored as DataType>::T;

    /// The value of a stored form.
    ///
    /// # Errors
    /// If no value is stored in that way.
    fn load(stored: &<Self::Stored as DataType>::T) -> Result<Self, Error>;
}

/// The format stores unsigned integers in the bits of signed ones.
macro_rules! integers {
    ($($Value:ty: $bits:literal, $signed:literal in $Stored:ty as $Bits:ty),+ $(,)?) => {
        $(
            impl Cell for $Value {
                type Stored = $Stored;
                fn meaning() -> Option<LogicalType> {
                    Some(LogicalType::integer($bits, $signed))
                }
                #[allow(clippy::cast_possible_wrap, reason = "the same bits, as the format says")]
                fn store(self) -> $Bits {
                    self as $Bits
                }
                #[allow(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the bits as they were stored; a file from elsewhere may hold more than its type says"
                )]
                fn load(stored: &$Bits) -> Result<Self, Error> {
                    Ok(*stored as $Value)
                }
            }
        )+
    };
}

integers! {
    u8: 8, false in Int32Type as i32,
    u16: 16, false in Int32Type as i32,
    u32: 32, false in Int32Type as i32,
    u64: 64, false in Int64Type as i64,
    i32: 32, true in Int32Type as i32,
}

impl Cell for bool {
    type Stored = BoolType;
    fn meaning() -> Option<LogicalType> {
        None
    }
    fn store(self) -> bool {
        self
    }
    fn load(stored: &bool) -> Result<Self, Error> {
        Ok(*stored)
    }
}

impl Cell for f64 {
    type Stored = DoubleType;
    fn meaning() -> Option<LogicalType> {
        None
    }
    fn store(self) -> f64 {
        self
    }
    fn load(stored: &f64) -> Result<Self, Error> {
        Ok(*stored)
    }
}

impl Cell for String {
    type Stored = ByteArrayType;
    fn meaning() -> Option<LogicalType> {
        Some(LogicalType::String)
    }
    fn store(self) -> ByteArray {
        self.into_bytes().into()
    }
    fn load(stored: &ByteArray) -> Result<Self, Error> {
        Ok(stored.as_utf8()?.to_owned())
    }
}

impl Cell for Arc<str> {
    type Stored = ByteArrayType;
    fn meaning() -> Option<LogicalType> {
        String::meaning()
    }
    fn store(self) -> ByteArray {
        ByteArray::from(&*self)
    }
    fn load(stored: &ByteArray) -> Result<Self, Error> {
        Ok(stored.as_utf8()?.into())
    }
}

/// Picoseconds.
impl Cell for Time {
    type Stored = Int64Type;
    fn meaning() -> Option<LogicalType> {
        u64::meaning()
    }
    fn store(self) -> i64 {
        self.0.store()
    }
    fn load(stored: &i64) -> Result<Self, Error> {
        u64::load(stored).map(Time)
    }
}

/// Bits per second.
impl Cell for Rate {
    type Stored = Int64Type;
    fn meaning() -> Option<LogicalType> {
        u64::meaning()
    }
    fn store(self) -> i64 {
        self.0.store()
    }
    fn load(stored: &i64) -> Result<Self, Error> {
        u64::load(stored).map(Rate)
    }
}
