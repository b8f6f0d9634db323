//! How packets that may leave are spread over time.

pub mod hf2t;
pub mod none;
pub mod paced;
