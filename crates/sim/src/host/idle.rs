//! The idle path of a host's last flow.

use netloom_topology::HostId;
use netloom_transport::PathFacts;
use netloom_units::{Bytes, Time};

/// What a host knows of a path with nothing else on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Idle {
    pub(crate) dst: HostId,
    pub(crate) bytes: Bytes,
    pub(crate) facts: PathFacts,
    /// Completion time of a flow of `bytes` bytes.
    pub(crate) ideal_fct: Time,
    /// From sending an answer to its arrival.
    pub(crate) answer: Time,
}
