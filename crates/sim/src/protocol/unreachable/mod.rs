//! Switches tell sources that a link is cut.

pub(crate) mod host;
pub(crate) mod notified_cuts;
pub(crate) mod switch;
