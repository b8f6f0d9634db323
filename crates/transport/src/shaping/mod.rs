//! How packets that may leave are spread over time.

pub mod none;
pub mod paced;
