//! Which virtual channel a packet uses on each hop.
//!
//! Links have ranks: the global links of a Dragonfly rank above its local ones, and in all other networks links rank alike. A packet begins
//! on virtual channel 0. It keeps its virtual channel where it goes from a link to one of higher rank, and takes the next one on
//! every other hop. So along a route the pairs (virtual channel, rank) only rise, and while there are enough virtual channels no
//! cycle of channels can wait for each other (Dally and Seitz, IEEE Trans. Computers 1987).
//!
//! In a Dragonfly this counts global hops: local, global, local uses 0, 0, 1, and over another group 0, 0, 1, 1, 2 (Kim et al., ISCA'08). A
//! second local hop in the same group, as behind an intermediate switch, takes a further one. Elsewhere it counts hops. The hop to a host is on
//! virtual channel 0: nothing waits behind it.
//!
//! Where packets go along the dimensions of a grid in their order there is another rule ([`VcRule::Datelines`]) that needs two virtual channels however
//! long the routes are.

#[cfg(test)]
use netloom_topology::Dimension;
use netloom_topology::{ChannelId, Network};

/// By what packets change virtual channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VcRule {
    /// By hops, but for those to a link of higher rank.
    Hops,
    /// By the dateline of each ring of a torus, for packets that go along the dimensions in their order: they enter every ring on virtual channel 0 and
    /// take the next one behind the link that closes it. On virtual channel 0 no packet goes on behind that link, and on the next one none
    /// comes to it, as no minimal path is longer than the ring; so neither has a cycle (Dally and Seitz). In a twisted torus a ring of
    /// one dimension goes through several lines; a path of at most half of one line crosses one dateline.
    Datelines,
}

/// The virtual channels that [`VcRule::Datelines`] needs at most.
pub(crate) const DATELINE_VCS: u8 = 2;

/// The rank of a channel's link.
pub fn rank(network: &Network, channel: ChannelId) -> u8 {
    u8::from(network.global_tier() == Some(network.channel(channel).tier))
}

/// The virtual channel after `vc` for a packet that goes from a link of rank `from` to one of rank `to`, where there are `vcs`.
pub fn next(vc: u8, from: u8, to: u8, vcs: u8) -> u8 {
    if to > from { vc } else { vc.saturating_add(1).min(vcs - 1) }
}

/// The virtual channel after `vc` by the rule of datelines.
#[cfg(test)]
pub(crate) fn next_in_order(vc: u8, from: Dimension, to: Dimension) -> u8 {
    if from.number != to.number { 0 } else { vc + u8::from(from.wraps) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dragonflys_packets_use_a_virtual_channel_per_global_hop() {
        const L: u8 = 0;
        const G: u8 = 1;
        let along = |links: &[u8]| {
            let mut vc = 0;
            let next = links.windows(2).map(|pair| {
                vc = next(vc, pair[0], pair[1], 9);
                vc
            });
            [0].into_iter().chain(next).collect::<Vec<u8>>()
        };
        assert_eq!(along(&[L, G, L]), [0, 0, 1]);
        assert_eq!(along(&[L, G, L, G, L]), [0, 0, 1, 1, 2]);
        assert_eq!(along(&[G, G, L]), [0, 1, 2]);
        assert_eq!(along(&[L, L, G, L, G, L]), [0, 1, 1, 2, 2, 3], "a second decision in the source's group");
        assert_eq!(along(&[L, G, L, L, G, L]), [0, 0, 1, 2, 2, 3], "over a switch of another group");
        assert_eq!(along(&[L, L, L]), [0, 1, 2], "without groups: by hop");
        assert_eq!(next(3, L, L, 4), 3);
    }
}
