//! NDP: receivers ask for packets.

pub(crate) mod host;
pub(crate) mod queue;
