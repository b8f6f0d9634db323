//! At which edge switches hosts are.

use netloom_topology::HostId;

/// The edge switches of hosts.
#[derive(Clone, Debug)]
pub(super) struct Edges {
    /// One after the other has as many hosts: a product by this, 2³² over that number, in place of a division. 0 if they have not.
    pub(super) reciprocal: u64,
    /// Of every host, if that does not say it.
    pub(super) listed: Vec<u32>,
}

impl Edges {
    /// Of this many edge switches.
    pub(super) fn new(edge_of: Vec<u32>, edges: usize) -> Self {
        let each = edge_of.len().div_ceil(edges.max(1)).max(1) as u64;
        let reciprocal = (1u64 << 32).div_ceil(each);
        let is_alike = |(host, edge): (u64, &u32)| (host * reciprocal) >> 32 == u64::from(*edge);
        match (0..).zip(&edge_of).all(is_alike) {
            true => Edges { reciprocal, listed: Vec::new() },
            false => Edges { reciprocal: 0, listed: edge_of },
        }
    }

    #[inline(always)]
    pub(super) fn of(&self, host: HostId) -> u32 {
        match self.reciprocal {
            0 => self.listed[host as usize],
            reciprocal => ((u64::from(host) * reciprocal) >> 32) as u32,
        }
    }
}
