//! Rows of which each has its own sets of ports, made when a way from its switch is first asked for.

use std::sync::OnceLock;

use netloom_topology::PortId;

use super::distances::{Distances, Links, bits};
use super::numbering::Numbering;
use super::port_sets::PortSets;
use super::rows::{Numbers, Ways};

/// What switches know where hardly two of them share a set of ports, as in random networks.
///
/// A row follows from the distances of its switch and its neighbours, a bit per level and root, which are little beside the sets of all switches.
#[derive(Clone, Debug)]
pub(super) struct OwnRows {
    links: Links,
    /// For 64 switches with hosts after the other.
    blocks: Vec<Distances>,
    /// Per switch.
    rows: Vec<OnceLock<Box<OwnRow>>>,
}

/// What one switch knows.
#[derive(Clone, Debug)]
struct OwnRow {
    /// Per switch with hosts, the place of its set in `sets`.
    set_of: Numbers,
    /// In the order in which they come up.
    sets: PortSets,
}

impl OwnRows {
    /// No row is made yet.
    pub(super) fn new(links: Links, blocks: Vec<Distances>) -> Self {
        let rows = (0..links.switches()).map(|_| OnceLock::new()).collect();
        OwnRows { links, blocks, rows }
    }

    /// Per switch with hosts, the number of the set of ports of `here` on minimal paths to it, the same for equal ones; and the sets.
    #[inline(always)]
    pub(super) fn row(&self, here: usize) -> (&Numbers, &PortSets) {
        let OwnRow { set_of, sets } = match self.rows[here].get() {
            Some(row) => row,
            None => self.make(here),
        };
        (set_of, sets)
    }

    /// The ports of a switch that lead nearer to some of the block's switches with hosts, in order, and to which; makes no row.
    pub(super) fn closer(&self, here: usize, block: usize, ports: &mut Vec<(PortId, u64)>) {
        self.blocks[block].closer(&self.links, here, ports);
    }

    /// Who asks for the same row meanwhile waits.
    #[cold]
    fn make(&self, here: usize) -> &OwnRow {
        self.rows[here].get_or_init(|| {
            let mut numbering = Numbering::new(self.links.ports_of(here), std::iter::empty());
            let (mut ways, mut all) = ([Ways::new()], Vec::new());
            for distances in &self.blocks {
                let first = all.len();
                all.resize(first + distances.count(), 0);
                numbering.of_roots(&self.links, distances, here, &mut ways);
                for &(roots, set) in &ways[0] {
                    bits(roots).for_each(|root| all[first + root] = set);
                }
            }
            let mut set_of = Numbers::default();
            set_of.extend(&all);
            Box::new(OwnRow { set_of, sets: numbering.finish() })
        })
    }
}
