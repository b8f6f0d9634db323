//! Servers with several NICs: which host of the network is which NIC of which server.

use std::sync::Mutex;

use netloom_engine::NodeIndex;
use netloom_topology::HostId;
use netloom_units::narrow;
use netloom_workload::{NicSelection, Rails};
use rustc_hash::FxHashMap;

/// What all servers share.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) rails: std::sync::Arc<Rails>,
    /// Per receiving server: of how many parts programs' messages are that have fewer than there are ports between the two, by sending server and number. The
    /// sender notes it when it sends, which is long before the first part can arrive; a header would say it.
    few: Vec<Mutex<FxHashMap<(u32, u32), u32>>>,
}

impl Servers {
    pub(crate) fn new(rails: std::sync::Arc<Rails>) -> Self {
        let few = (0..rails.endpoints()).map(|_| Mutex::default()).collect();
        Servers { rails, few }
    }

    /// The node in which a host of the network lives.
    pub(crate) fn node(&self, host: HostId) -> NodeIndex {
        self.rails.host(self.rails.endpoint(host).0, 0)
    }

    pub(crate) fn note(&self, dst: u32, message: (u32, u32), parts: u32) {
        let mut few = self.few[dst as usize].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        few.insert(message, parts);
    }

    /// Of how many parts a program's message is.
    pub(crate) fn parts(&self, dst: u32, message: (u32, u32)) -> u32 {
        if self.rails.nic_selection() != NicSelection::Stripe {
            return 1;
        }
        let mut few = self.few[dst as usize].lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        few.remove(&message).unwrap_or_else(|| narrow::<u32>(self.rails.between(message.0, dst).len()))
    }
}
