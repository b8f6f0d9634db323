//! ConWeave: switches of two ends tell each other when packets change their path.

pub(crate) mod reorder_queues;
pub(crate) mod switch;
