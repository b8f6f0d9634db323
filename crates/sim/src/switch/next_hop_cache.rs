//! How packets leave a switch, as far as that can be said before they are handled.

use netloom_engine::UNFORESEEN;
use netloom_fabric::{Packet, PacketKind, PortQueue, Ports};
use netloom_routing::{Row, SwitchPathSelector};
use netloom_topology::PortId;
use netloom_units::fetch_whole;

use crate::switch::view::{header_of, note_choice};
use crate::world::World;

/// Of data that will draw one of several ports, this and the number of their set is foreseen.
pub(crate) const DRAWN: u32 = 1 << 31;

/// The next hops of recent packets that go by their hash. Packets of a flow come in trains, and of many flows at a time.
#[derive(Debug, Default)]
pub(crate) struct NextHopCache(pub(crate) Option<Box<Entries>>);

impl NextHopCache {
    /// Has the processor fetch all entries.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        self.0.as_deref().into_iter().for_each(fetch_whole);
    }

    pub(crate) fn all(&mut self) -> &mut Entries {
        self.0.get_or_insert_with(|| Box::new(Entries([CachedHop::NONE; 1 << ENTRIES])))
    }
}

/// Number of entries, as a power of two.
pub(crate) const ENTRIES: u32 = 7;

/// By a hash of packets' ends and kinds.
#[derive(Debug)]
pub(crate) struct Entries(pub(crate) [CachedHop; 1 << ENTRIES]);

impl Entries {
    /// The next hop of a packet; `find` says it if it is not in the cache.
    #[inline(always)]
    pub(crate) fn of(&mut self, packet: &Packet, find: impl FnOnce(&Packet) -> CachedHop) -> &CachedHop {
        let (seen, kind) = (packet.seen_by_hash(), packet.kind);
        // The golden ratio's bits; the best ones of a product are the first.
        let place = (seen[0] ^ kind as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ENTRIES);
        let cached = &mut self.0[place as usize];
        if cached.seen != seen || cached.kind != kind {
            *cached = find(packet);
        }
        cached
    }
}

/// Packets of a kind that a hash does not tell apart.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct CachedHop {
    pub(crate) seen: [u64; 2],
    /// The way that the hash says.
    pub(crate) way: CachedExit,
    pub(crate) kind: PacketKind,
}

impl CachedHop {
    /// No packet's.
    pub(crate) const NONE: CachedHop =
        CachedHop { seen: [u64::MAX; 2], way: CachedExit(UNFORESEEN), kind: PacketKind::Data };

    #[inline(never)]
    pub(crate) fn hashed(
        world: &World,
        path_selector: &SwitchPathSelector,
        row: Row,
        packet: &Packet,
    ) -> Self {
        let port = |ports: &[PortId]| ports[path_selector.hashed(&header_of(world, packet), ports.len())];
        let way = CachedExit::find(world, row, packet, port);
        CachedHop { seen: packet.seen_by_hash(), way, kind: packet.kind }
    }
}

/// The [`PortQueue`] of packets, in a number, and above it what else there is to know; or that nothing is foreseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CachedExit(pub(crate) u32);

impl CachedExit {
    /// Data could have taken other ports.
    pub(crate) const IS_CHOICE: u32 = 1 << 31;
    /// Packets of one kind leave in several queues.
    pub(crate) const HAS_LANES: u32 = 1 << 30;

    /// The way of a packet, of whose ports `choose` names one if there are several.
    #[inline(always)]
    pub(crate) fn find(
        world: &World,
        row: Row,
        packet: &Packet,
        choose: impl FnOnce(&[PortId]) -> PortId,
    ) -> CachedExit {
        let (port, is_choice) = match *world.forwarding.table().candidates_in_row(row, packet.dst).ports {
            [] => return CachedExit(UNFORESEEN),
            [only] => (only, false),
            ref several => (choose(several), packet.kind == PacketKind::Data),
        };
        let choice = if is_choice { CachedExit::IS_CHOICE } else { 0 };
        match world.rules.only_queue(packet.kind) {
            Some(queue) => CachedExit(PortQueue { port, queue }.to_bits() | choice),
            None => CachedExit(u32::from(port) | choice | CachedExit::HAS_LANES),
        }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the port is in the lower 16 bits")]
    pub(crate) fn port(self) -> PortId {
        self.0 as PortId
    }

    /// How a packet leaves.
    #[inline(always)]
    pub(crate) fn exit(self, packet: &mut Packet, ports: &Ports, world: &World) -> u32 {
        if self.0 < CachedExit::HAS_LANES || self.0 == UNFORESEEN {
            return self.0;
        }
        if self.0 & CachedExit::IS_CHOICE != 0 {
            note_choice(packet, self.port());
        }
        match self.0 & CachedExit::HAS_LANES {
            0 => self.0 & !CachedExit::IS_CHOICE,
            _ => ports.port_queue(self.port(), packet, &world.rules).to_bits(),
        }
    }
}
