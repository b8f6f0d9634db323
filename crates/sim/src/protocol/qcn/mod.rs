//! QCN (IEEE 802.1Qau): switches notify sources of congestion.

pub(crate) mod host;
pub(crate) mod limiter;
pub(crate) mod points;
pub(crate) mod switch;
