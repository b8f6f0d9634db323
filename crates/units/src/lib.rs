//! Units as types, and the registry of named kinds.
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
//! their parameters, defaults and documentation in one place.
//!
//! ```
//! use netloom_units::{Bytes, Rate, Time};
//! let rate: Rate = "200Gbps".parse().unwrap();
//! assert_eq!(rate.serialize(Bytes(4160)), Time::from_ns(166) + Time(400));
//! assert_eq!("1us".parse::<Time>().unwrap().to_string(), "1us");
//! ```

pub mod kind;
mod quantity;

pub use quantity::{Bytes, ParseQuantityError, Rate, Time};
