//! Flowcut Switching: acknowledgements between switches, and signals to sources.

pub(crate) mod host;
pub(crate) mod pause;
pub(crate) mod switch;
