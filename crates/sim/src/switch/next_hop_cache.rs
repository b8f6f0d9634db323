//! How packets leave a switch, as far as that can be computed before they are handled: the hints of a batch, and the cache of next hops.

use netloom_engine::Hint;
use netloom_fabric::{Packet, PacketKind, PortQueue, Ports};
use netloom_routing::{PacketContext, Place, Row, SwitchPathSelector};
use netloom_topology::PortId;
use netloom_units::prefetch_whole;

use crate::switch::view::{header_of, note_choice};
use crate::world::World;

/// What a switch knows of how a packet leaves before it handles the packet: the [`PortQueue`]; or, for data that draw or decide on one of several ports, their set; or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NextHopHint(u32);

impl NextHopHint {
    /// With the number of a set in the lower bits.
    const AMONG: u32 = 1 << 31;

    #[inline(always)]
    pub(crate) fn of(port_queue: PortQueue) -> Self {
        NextHopHint(port_queue.to_bits())
    }

    /// Of data that are decided on when they are handled.
    pub(crate) const DECIDED: Self = NextHopHint::among(0);

    /// Of a packet that goes on to another node; how is not known.
    pub(crate) const OPEN: Self = NextHopHint(u32::MAX - 1);

    /// Whether nothing is known of how the packet leaves.
    #[inline(always)]
    pub(crate) fn is_open(self) -> bool {
        self.0 >= NextHopHint::OPEN.0
    }

    /// Of data that leave by one of this set of ports, by its number.
    #[inline(always)]
    pub(crate) const fn among(set: u32) -> Self {
        NextHopHint(NextHopHint::AMONG | set)
    }

    /// How the packet leaves, if it is known. The one question that is asked with every packet: a branch by one bit.
    #[inline(always)]
    pub(crate) fn port_queue(self) -> Option<PortQueue> {
        (self.0 & NextHopHint::AMONG == 0).then_some(PortQueue::from_bits(self.0))
    }

    /// The number of the set of ports among which one is drawn or decided on.
    #[inline(always)]
    pub(crate) fn set(self) -> Option<u32> {
        (!self.is_open() && self.0 & NextHopHint::AMONG != 0).then_some(self.0 & !NextHopHint::AMONG)
    }
}

impl Hint for NextHopHint {
    const NONE: Self = NextHopHint(u32::MAX);

    #[inline(always)]
    fn to_bits(self) -> u32 {
        self.0
    }

    #[inline(always)]
    fn from_bits(bits: u32) -> Self {
        NextHopHint(bits)
    }
}

/// The next hops of recent packets that go by their hash, or by what they name. Packets of a flow come in bursts, and of many flows at a time; where each packet of a flow has
/// a hash of its own, nothing is gained by it.
#[derive(Debug, Default)]
pub(crate) struct NextHopCache {
    entries: Option<Box<Entries>>,
    /// Batches for which it is bypassed, as most packets were not found in it.
    bypassed_batches: u16,
}

impl NextHopCache {
    /// Prefetches all entries, unless the next batch bypasses them.
    #[inline(always)]
    pub(crate) fn prefetch(&self) {
        if self.bypassed_batches == 0 {
            self.entries.as_deref().into_iter().for_each(prefetch_whole);
        }
    }

    /// All entries.
    pub(crate) fn all(&mut self) -> &mut Entries {
        self.entries.get_or_insert_with(Entries::new)
    }

    /// The entries for a batch, if it is worth looking into them.
    #[inline]
    pub(crate) fn for_batch(&mut self) -> Option<&mut Entries> {
        if self.bypassed_batches > 0 {
            self.bypassed_batches -= 1;
            return None;
        }
        let entries = self.entries.get_or_insert_with(Entries::new);
        if entries.lookups >= CHECK_AFTER {
            if entries.misses > entries.lookups * 3 / 4 {
                self.bypassed_batches = BYPASS;
            }
            (entries.lookups, entries.misses) = (0, 0);
        }
        Some(entries)
    }
}

/// Number of entries, as a power of two.
const ENTRIES: u32 = 7;

/// Lookups after which the miss rate is checked: enough that filling the entries alone makes it no more than a half.
const CHECK_AFTER: usize = 256;

/// Batches for which the cache is then bypassed: many more than those in which that many packets come.
const BYPASS: u16 = 4096;

/// By a hash of packets' ends and kinds.
#[derive(Debug)]
pub(crate) struct Entries {
    hops: [CachedHop; 1 << ENTRIES],
    /// Lookups and misses since the last check.
    lookups: usize,
    misses: usize,
}

impl Entries {
    fn new() -> Box<Self> {
        Box::new(Entries { hops: [CachedHop::NONE; 1 << ENTRIES], lookups: 0, misses: 0 })
    }

    /// Counts lookups that follow.
    #[inline(always)]
    pub(crate) fn count_lookups(&mut self, packets: usize) {
        self.lookups += packets;
    }

    /// The next hop of a packet; `find` says it if it is not in the cache.
    #[inline(always)]
    pub(crate) fn of(&mut self, packet: &Packet, find: impl FnOnce(&Packet) -> CachedHop) -> &CachedHop {
        let (seen, kind) = (packet.seen_by_hash(), packet.kind);
        // The golden ratio's bits; the best ones of a product are the first.
        let place =
            (seen[0] ^ kind.index() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - ENTRIES);
        let cached = &mut self.hops[place as usize];
        if cached.seen != seen || cached.kind != kind {
            *cached = find(packet);
            self.misses += 1;
        }
        cached
    }
}

/// Packets of a kind that a hash does not distinguish.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
pub(crate) struct CachedHop {
    pub(crate) seen: [u64; 2],
    /// How the hash, or what the packet names, has it leave.
    pub(crate) port_queue: CachedPortQueue,
    pub(crate) kind: PacketKind,
}

impl CachedHop {
    /// No packet's.
    pub(crate) const NONE: CachedHop =
        CachedHop { seen: [u64::MAX; 2], port_queue: CachedPortQueue::NONE, kind: PacketKind::Data };

    #[inline(never)]
    pub(crate) fn hashed(
        world: &World,
        path_selector: &SwitchPathSelector,
        row: Row,
        packet: &Packet,
    ) -> Self {
        let port = |ports: &[PortId]| ports[path_selector.hashed(&header_of(world, packet), ports.len())];
        let port_queue = CachedPortQueue::find(world, row, packet, port);
        CachedHop { seen: packet.seen_by_hash(), port_queue, kind: packet.kind }
    }

    /// That of a packet which names its way beyond minimal ports.
    #[inline(never)]
    pub(crate) fn named(
        world: &World,
        path_selector: &SwitchPathSelector,
        place: Place,
        packet: &Packet,
    ) -> Self {
        let header = &header_of(world, packet);
        let hop = path_selector.named(PacketContext { forwarding: &world.forwarding, place, header });
        let port_queue = CachedPortQueue::of(world, packet.kind, hop.port, packet.is_data());
        CachedHop { seen: packet.seen_by_hash(), port_queue, kind: packet.kind }
    }
}

/// The [`PortQueue`] of packets in the lower bits, and flags above; or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CachedPortQueue(pub(crate) u32);

impl CachedPortQueue {
    /// There is none.
    const NONE: CachedPortQueue = CachedPortQueue(u32::MAX);
    /// Data could have taken other ports.
    pub(crate) const IS_CHOICE: u32 = 1 << 31;
    /// Packets of one kind leave in several queues.
    pub(crate) const HAS_QUEUES: u32 = 1 << 30;

    /// How a packet leaves, of whose ports `choose` names one if there are several.
    #[inline(always)]
    pub(crate) fn find(
        world: &World,
        row: Row,
        packet: &Packet,
        choose: impl FnOnce(&[PortId]) -> PortId,
    ) -> CachedPortQueue {
        let (port, is_choice) = match *world.forwarding.table().candidates_in_row(row, packet.dst).ports {
            [] => return CachedPortQueue::NONE,
            [only] => (only, false),
            ref several => (choose(several), packet.kind == PacketKind::Data),
        };
        CachedPortQueue::of(world, packet.kind, port, is_choice)
    }

    /// How a packet leaves by a port, which counts as a choice of its own or not.
    #[inline(always)]
    fn of(world: &World, kind: PacketKind, port: PortId, is_choice: bool) -> CachedPortQueue {
        let choice = if is_choice { CachedPortQueue::IS_CHOICE } else { 0 };
        match world.rules.only_queue(kind) {
            Some(queue) => CachedPortQueue(PortQueue::new(port, queue).to_bits() | choice),
            None => CachedPortQueue(u32::from(port) | choice | CachedPortQueue::HAS_QUEUES),
        }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the port is in the lower 16 bits")]
    pub(crate) fn port(self) -> PortId {
        self.0 as PortId
    }

    /// How a packet leaves.
    #[inline(always)]
    pub(crate) fn hint(self, packet: &mut Packet, ports: &Ports, world: &World) -> NextHopHint {
        if self.0 < CachedPortQueue::HAS_QUEUES || self == CachedPortQueue::NONE {
            // Without flags, and without a port and queue, the bits are those of the hint.
            return NextHopHint(self.0);
        }
        if self.0 & CachedPortQueue::IS_CHOICE != 0 {
            note_choice(packet, self.port());
        }
        match self.0 & CachedPortQueue::HAS_QUEUES {
            0 => NextHopHint(self.0 & !CachedPortQueue::IS_CHOICE),
            _ => NextHopHint::of(ports.port_queue(self.port(), packet, &world.rules)),
        }
    }
}
