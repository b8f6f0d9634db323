//! Refuses networks that cannot fit, before anything is allocated.

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
        let available = available_memory();
        if ids > u64::from(u32::MAX) || self.bytes() > available {
            return Err(NetworkError::TooLarge {
                hosts: self.hosts,
                links: self.links,
                needed: gibibytes(self.bytes()),
                available: gibibytes(available),
            });
        }
        Ok(())
    }
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64)
}

/// Memory that can be had without swapping, in bytes; 8 GiB where the system does not say.
fn available_memory() -> u64 {
    let read = || {
        let text = std::fs::read_to_string("/proc/meminfo").ok()?;
        let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    read().unwrap_or(8 << 30)
}
