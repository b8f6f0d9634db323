//! How losses and reordering are dealt with.

pub mod bitmap;
pub mod go_back_n;
pub mod none;
pub mod selective_repeat;
pub mod trimmed;
