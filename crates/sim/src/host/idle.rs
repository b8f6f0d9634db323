//! The idle path of a host's last flow.

use netloom_topology::HostId;
use netloom_transport::PathFacts;
use netloom_units::{Bytes, Time};

use crate::world::World;

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

impl World {
    /// What is known of the idle path of a flow.
    pub(crate) fn idle(&self, src: HostId, dst: HostId, bytes: Bytes) -> Idle {
        let path = self.idle_path(src, dst);
        let options = &self.transport.options;
        let full_packets = (bytes.0 - 1) / options.mtu.0;
        let last = Bytes(bytes.0 - full_packets * options.mtu.0 + options.header.0);
        let answer = path.one_way(options.ack_size);
        // The port with most packets decides: the first one, which has the last packet if all others have one less.
        let (ports, full) = (self.ports_in_use(src), self.transport.packet_size());
        let (rounds, others) = (full_packets / ports, full_packets % ports);
        let mut ideal_fct = path.ideal_fct(rounds, full, if others == 0 { last } else { full });
        if options.handshake {
            ideal_fct += path.one_way(options.header) + answer;
        }
        Idle { dst, bytes, facts: self.path_facts(src, &path), ideal_fct, answer }
    }
}
