//! Refuses networks that cannot fit, before anything is allocated.

use netloom_units::memory;

use crate::NetworkError;
use crate::network::Link;

/// What a network will consist of; counted in 64 bits so that absurd parameters do not wrap.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Size {
    pub(crate) hosts: u64,
    pub(crate) switches: u64,
    /// Links of all tiers, host links included.
    pub(crate) links: u64,
}

impl Size {
    /// Peak bytes while the network is built: per link the cable and its two ports, doubled because a growing
    /// vector holds its old and its new copy; per node the port index, level, pod and the marks of the checks.
    fn bytes(self) -> u64 {
        let per_link = 2 * (size_of::<Link>() as u64 + 8);
        let per_node = 20;
        let nodes = self.hosts.saturating_add(self.switches);
        self.links.saturating_mul(per_link).saturating_add(nodes.saturating_mul(per_node))
    }

    /// Passes if ids fit 32 bits and the network fits the machine's available memory.
    ///
    /// # Errors
    /// [`NetworkError::TooLarge`] with what it would need.
    pub(crate) fn check(self) -> Result<(), NetworkError> {
        let ids = self.hosts.saturating_add(self.switches).max(self.links.saturating_mul(2));
        let available = memory::available();
        if ids > u64::from(u32::MAX) || self.bytes() > available {
            return Err(NetworkError::TooLarge {
                hosts: self.hosts,
                links: self.links,
                needed: memory::in_words(self.bytes()),
                available: memory::in_words(available),
            });
        }
        Ok(())
    }
}
