//! What all rooms share: units as types, the registry of named kinds, the error of a field, random streams.
//!
//! Every quantity a user writes has a unit and every quantity the simulator computes with is an integer, so
//! that a rate never meets a size by accident and no rounding error decides an order:
//!
//! | type | meaning | text form |
//! | --- | --- | --- |
//! | [`Time`] | picoseconds since the start, or a duration | `"1us"`, `"166.4ns"` |
//! | [`Rate`] | bits per second, one direction | `"200Gbps"` |
//! | [`Bytes`] | bytes | `"8MiB"`, `"64KB"`, or a plain number |
//!
//! The [`kind`] module lets a closed set of named alternatives (routing selectors, traffic patterns, …) carry
//! their parameters, defaults, reader and documentation in one place. [`Invalid`] is the error of every check of a
//! parameter, [`greatest_common_divisor`] reduces fractions, [`Histogram`] counts values of many magnitudes, [`memory`] says how much of that there is, [`names`] finds the nearest valid word, [`narrow()`] makes numbers smaller, [`random`] lists every stream of random numbers, and [`recurrence`] says what of a state recurs.
//!
//! ```
//! use netloom_units::{Bytes, Rate, Time};
//! let rate: Rate = "200Gbps".parse().unwrap();
//! assert_eq!(rate.serialize(Bytes(4160)), Time::from_ns(166) + Time(400));
//! assert_eq!("1us".parse::<Time>().unwrap().to_string(), "1us");
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod divisor;
mod histogram;
mod invalid;
pub mod kind;
pub mod memory;
pub mod names;
mod narrow;
mod prefetch;
mod quantity;
pub mod random;
pub mod recurrence;

pub use divisor::greatest_common_divisor;
pub use histogram::Histogram;
pub use invalid::Invalid;
pub use narrow::narrow;
pub use prefetch::{prefetch, prefetch_next, prefetch_whole};
pub use quantity::{Bytes, ParseQuantityError, Rate, Time};
