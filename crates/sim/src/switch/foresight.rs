//! How packets leave a switch, as far as that can be said before they are handled.

use netloom_engine::{Messages, UNFORESEEN};
use netloom_fabric::{Exit, Packet, PacketKind, Ports};
use netloom_routing::{Foresight, Row, SwitchPathSelector};
use netloom_topology::PortId;
use netloom_units::fetch_whole;

use super::{Switch, header, note_choice, note_port};
use crate::model::{Message, World};

impl Switch {
    /// Says how packets leave, where that depends on nothing else.
    #[inline(always)]
    pub(crate) fn foresee(&mut self, world: &World, messages: impl Messages<Message>) {
        self.ports.fetch_first();
        match self.decider.foresight() {
            Foresight::Hashed => self.foresee_hashed(world, messages),
            Foresight::Drawn => self.foresee_drawn(world, messages),
            Foresight::None => messages.look(|_| UNFORESEEN),
        }
    }

    #[inline(never)]
    fn foresee_hashed(&mut self, world: &World, messages: impl Messages<Message>) {
        let Switch { ports, decider, row, trains, .. } = self;
        let trains = trains.all();
        messages.look(|message| {
            let Some(packet) = passing(message) else { return UNFORESEEN };
            let train = trains.of(packet, |packet| Train::hashed(world, decider, *row, packet));
            train.way.exit(packet, ports, world)
        });
    }

    /// How a packet leaves of which that has been foreseen, if anything has.
    #[inline(always)]
    pub(super) fn foreseen_exit(
        &mut self,
        world: &World,
        packet: &mut Packet,
        foreseen: u32,
    ) -> Option<Exit> {
        if foreseen & DRAWN == 0 {
            return Some(Exit::from_bits(foreseen));
        }
        if foreseen == UNFORESEEN {
            return None;
        }
        let port = self.draw(world, packet, foreseen & !DRAWN);
        Some(match world.rules.only_data_lane() {
            Some(lane) => Exit { port, lane },
            None => self.ports.exit(port, packet, &world.rules),
        })
    }

    /// The port of a data packet that draws one of a set: draws come in the order in which packets do.
    #[inline(never)]
    fn draw(&mut self, world: &World, packet: &mut Packet, set: u32) -> PortId {
        let Switch { decider, draws, row, .. } = self;
        let several = world.forwarding.table().set(*row, set);
        let port = decider.draw(packet.seen_by_hash(), several, draws);
        note_port(packet, port);
        port
    }

    #[inline(never)]
    fn foresee_drawn(&mut self, world: &World, messages: impl Messages<Message>) {
        let Switch { ports, decider, row, trains, .. } = self;
        let (trains, ways) = (trains.all(), world.forwarding.table().in_row(*row));
        let lane = world.rules.only_data_lane();
        messages.look(|message| {
            if let Message::Packet(packet) = message
                && packet.kind == PacketKind::Data
            {
                return match (ways.only_port(packet.dst), lane) {
                    (Ok(port), Some(lane)) => Exit { port, lane }.to_bits(),
                    (Ok(port), None) => ports.exit(port, packet, &world.rules).to_bits(),
                    (Err(set), _) => DRAWN | set,
                };
            }
            let Some(packet) = passing(message) else { return UNFORESEEN };
            let train = trains.of(packet, |packet| Train::hashed(world, decider, *row, packet));
            train.way.exit(packet, ports, world)
        });
    }
}

/// Of data that will draw one of several ports, this and the number of their set is foreseen.
const DRAWN: u32 = 1 << 31;

/// The packet that a message is, if it goes on to another node.
#[inline(always)]
fn passing(message: &mut Message) -> Option<&mut Packet> {
    match message {
        Message::Packet(packet) if !packet.is_of_the_link() => Some(packet),
        _ => None,
    }
}

/// By which ways packets have gone lately, once some have gone by their hash: packets of a flow come in trains, and many trains at a time.
#[derive(Debug, Default)]
pub(crate) struct Trains(Option<Box<Lately>>);

impl Trains {
    /// Has the processor fetch them.
    #[inline(always)]
    pub(crate) fn fetch(&self) {
        self.0.as_deref().into_iter().for_each(fetch_whole);
    }

    fn all(&mut self) -> &mut Lately {
        self.0.get_or_insert_with(|| Box::new(Lately([Train::NONE; 1 << TRAINS])))
    }
}

/// How many trains are remembered, as a power of two.
const TRAINS: u32 = 7;

/// By a hash of packets' ends and kinds.
#[derive(Debug)]
struct Lately([Train; 1 << TRAINS]);

impl Lately {
    /// The train of a packet, which is told of if it is the first one.
    #[inline(always)]
    fn of(&mut self, packet: &Packet, tell: impl FnOnce(&Packet) -> Train) -> &Train {
        let (seen, kind) = (packet.seen_by_hash(), packet.kind);
        // The golden ratio's bits; the best ones of a product are the first.
        let place = (seen[0] ^ kind as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - TRAINS);
        let train = &mut self.0[place as usize];
        if train.seen != seen || train.kind != kind {
            *train = tell(packet);
        }
        train
    }
}

/// Packets of a kind that a hash does not tell apart.
#[derive(Clone, Copy, Debug)]
#[repr(align(32))]
struct Train {
    seen: [u64; 2],
    /// The way that the hash says.
    way: Way,
    kind: PacketKind,
}

impl Train {
    /// No packet's.
    const NONE: Train = Train { seen: [u64::MAX; 2], way: Way(UNFORESEEN), kind: PacketKind::Data };

    #[inline(never)]
    fn hashed(world: &World, decider: &SwitchPathSelector, row: Row, packet: &Packet) -> Self {
        let port = |ports: &[PortId]| ports[decider.hashed(&header(world, packet), ports.len())];
        let way = Way::find(world, row, packet, port);
        Train { seen: packet.seen_by_hash(), way, kind: packet.kind }
    }
}

/// The [`Exit`] of packets, in a number, and above it what else there is to know; or that nothing is foreseen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Way(u32);

impl Way {
    /// Data could have taken other ports.
    const IS_CHOICE: u32 = 1 << 31;
    /// Packets of one kind leave in several lanes.
    const HAS_LANES: u32 = 1 << 30;

    /// The way of a packet, of whose ports `choose` names one if there are several.
    #[inline(always)]
    fn find(world: &World, row: Row, packet: &Packet, choose: impl FnOnce(&[PortId]) -> PortId) -> Way {
        let (port, is_choice) = match *world.forwarding.table().candidates_in_row(row, packet.dst).ports {
            [] => return Way(UNFORESEEN),
            [only] => (only, false),
            ref several => (choose(several), packet.kind == PacketKind::Data),
        };
        let choice = if is_choice { Way::IS_CHOICE } else { 0 };
        match world.rules.only_lane(packet.kind) {
            Some(lane) => Way(Exit { port, lane }.to_bits() | choice),
            None => Way(u32::from(port) | choice | Way::HAS_LANES),
        }
    }

    #[inline(always)]
    #[expect(clippy::cast_possible_truncation, reason = "the port is in the lower 16 bits")]
    fn port(self) -> PortId {
        self.0 as PortId
    }

    /// How a packet leaves.
    #[inline(always)]
    fn exit(self, packet: &mut Packet, ports: &Ports, world: &World) -> u32 {
        if self.0 < Way::HAS_LANES || self.0 == UNFORESEEN {
            return self.0;
        }
        if self.0 & Way::IS_CHOICE != 0 {
            note_choice(packet, self.port());
        }
        match self.0 & Way::HAS_LANES {
            0 => self.0 & !Way::IS_CHOICE,
            _ => ports.exit(self.port(), packet, &world.rules).to_bits(),
        }
    }
}
