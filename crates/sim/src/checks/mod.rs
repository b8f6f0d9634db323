//! Tests that look at every message of a run.

mod mutation;
mod shortest;
mod untouched;
mod watched;
