//! The way of a packet through a switch: route, admit, enqueue.

use netloom_engine::{Messages, Scheduler, UNFORESEEN};
use netloom_fabric::{At, Credit, Fate, Packet, PacketKind, PortQueue};
use netloom_routing::{Foresight, Forwarding};
use netloom_topology::PortId;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::switch::Switch;
use crate::switch::next_hop_cache::{CachedHop, DRAWN};
use crate::switch::view::{PortsAt, header_of, note_port, take};
use crate::world::World;

impl Switch {
    /// Sends a packet on, where duties are plain; `TRIMS` says how plain.
    #[inline(always)]
    pub(crate) fn forward<const TRIMS: bool>(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        foreseen: u32,
    ) {
        if TRIMS {
            let exit = self.exit(ctx, packet, foreseen);
            return self.enqueue(ctx, exit.port, packet);
        }
        let Some(exit) = self.foreseen_exit(ctx.world, packet, foreseen) else {
            return self.forward_unforeseen(&mut ctx.again(), packet);
        };
        let Switch { ports, random, .. } = self;
        // Where next hops are foreseen, no choice depends on queue lengths.
        ports.enqueue_or_drop::<false>(
            exit,
            packet,
            random,
            At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()),
        );
    }

    /// [`Self::forward`] of a packet whose way has not been foreseen, as it may depend on how long queues are.
    #[inline(never)]
    pub(crate) fn forward_unforeseen(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) {
        let exit = self.choose_exit(ctx, packet);
        let Switch { ports, random, .. } = self;
        ports.enqueue_or_drop::<true>(
            exit,
            packet,
            random,
            At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()),
        );
    }

    /// [`Self::forward`] under flow control.
    #[inline(always)]
    pub(crate) fn forward_lossless(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        foreseen: u32,
    ) {
        if foreseen == UNFORESEEN && packet.is_of_the_link() {
            return self.on_link_signal(&mut ctx.again(), packet);
        }
        // Loads are those of this instant.
        self.ports.settle_if_ordered(ctx.now, &ctx.world.rules, &mut ctx.wire());
        let exit = self.exit(ctx, packet, foreseen);
        let Switch { ports, random, .. } = self;
        ports.enqueue_lossless(exit, packet, random, At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()));
    }

    /// How a packet leaves: as was foreseen, if anything was.
    #[inline(always)]
    pub(crate) fn exit(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        foreseen: u32,
    ) -> PortQueue {
        match self.foreseen_exit(ctx.world, packet, foreseen) {
            Some(exit) => exit,
            None => self.choose_exit(&mut ctx.again(), packet),
        }
    }

    /// How a packet leaves that takes a minimal port.
    #[inline(never)]
    pub(crate) fn choose_exit(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
    ) -> PortQueue {
        let port = self.choose(ctx, &ctx.world.forwarding, packet);
        self.ports.port_queue(port, packet, &ctx.world.rules)
    }

    /// The minimal port that a packet takes.
    #[inline(always)]
    pub(crate) fn choose(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        forwarding: &Forwarding,
        packet: &mut Packet,
    ) -> PortId {
        let world = ctx.world;
        let Switch { ports, path_selector, draws, .. } = self;
        let candidates = forwarding.table().candidates_in_row(self.row, packet.dst);
        if let [only] = *candidates.ports {
            return only;
        }
        let view = PortsAt { ports, reports: None, ctx: ctx.again() };
        let (src, dst) = (packet.src, packet.dst);
        let tags = move || forwarding.tags(src, dst);
        let hop = path_selector.port(|| header_of(world, packet), candidates, view, tags, draws);
        take(packet, hop)
    }

    #[inline(always)]
    pub(crate) fn enqueue(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &mut Packet,
    ) {
        let Switch { ports, random, .. } = self;
        let fate = ports.enqueue(port, packet, random, At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()));
        if fate == Fate::Returned {
            self.send_back(&mut ctx.again(), packet);
        }
    }

    /// Sends the header of a packet that goes no further back to the packet's source.
    #[inline(never)]
    pub(crate) fn send_back(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &mut Packet) {
        if self.has_lost(ctx.world, packet.dst) {
            return self.discard(ctx, packet);
        }
        let port = self.choose_specially(ctx, packet);
        let Switch { ports, random, .. } = self;
        ports.enqueue(port, packet, random, At::new(ctx.now, &ctx.world.rules, &mut ctx.wire()));
    }

    /// Does what the neighbour says about the link: stops, goes on, or takes credit. Or notes what it says about its own links.
    #[inline(never)]
    pub(crate) fn on_link_signal(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.look_back(ctx, packet);
        if packet.kind == PacketKind::Report {
            if let Some(reports) = &mut self.reports {
                reports.on_report(packet);
            }
            return;
        }
        self.last_event = ctx.now;
        self.ports.settle_if_ordered(ctx.now, &ctx.world.rules, &mut ctx.wire());
        if packet.kind == PacketKind::Credit {
            let credit = Credit::from_packet(packet);
            self.ports.on_credit(credit, ctx.now, &ctx.world.rules, &mut ctx.wire());
        } else if packet.kind == PacketKind::Missed {
            self.ports.on_missed(Credit::from_packet(packet), ctx.now, &ctx.world.rules, &mut ctx.wire());
        } else {
            self.ports.on_pause(packet, ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
    }

    /// Says how packets leave, where that depends on nothing else.
    #[inline(always)]
    pub(crate) fn foresee(&mut self, world: &World, messages: impl Messages<Message>) {
        self.ports.fetch_first();
        match self.path_selector.foresight() {
            Foresight::Hashed => self.foresee_hashed(world, messages),
            Foresight::Drawn => self.foresee_drawn(world, messages),
            Foresight::None => messages.look(|_| UNFORESEEN),
        }
    }

    #[inline(never)]
    pub(crate) fn foresee_hashed(&mut self, world: &World, messages: impl Messages<Message>) {
        let Switch { ports, path_selector, row, next_hops, .. } = self;
        let next_hops = next_hops.all();
        messages.look(|message| {
            let Some(packet) = passing(message) else { return UNFORESEEN };
            let cached = next_hops.of(packet, |packet| CachedHop::hashed(world, path_selector, *row, packet));
            cached.way.exit(packet, ports, world)
        });
    }

    /// How a packet leaves of which that has been foreseen, if anything has.
    #[inline(always)]
    pub(crate) fn foreseen_exit(
        &mut self,
        world: &World,
        packet: &mut Packet,
        foreseen: u32,
    ) -> Option<PortQueue> {
        if foreseen & DRAWN == 0 {
            return Some(PortQueue::from_bits(foreseen));
        }
        if foreseen == UNFORESEEN {
            return None;
        }
        let port = self.draw(world, packet, foreseen & !DRAWN);
        Some(match world.rules.only_data_queue() {
            Some(queue) => PortQueue { port, queue },
            None => self.ports.port_queue(port, packet, &world.rules),
        })
    }

    /// The port of a data packet that draws one of a set: draws come in the order in which packets do.
    #[inline(never)]
    pub(crate) fn draw(&mut self, world: &World, packet: &mut Packet, set: u32) -> PortId {
        let Switch { path_selector, draws, row, .. } = self;
        let several = world.forwarding.table().set(*row, set);
        let port = path_selector.draw(packet.seen_by_hash(), several, draws);
        note_port(packet, port);
        port
    }

    #[inline(never)]
    pub(crate) fn foresee_drawn(&mut self, world: &World, messages: impl Messages<Message>) {
        let Switch { ports, path_selector, row, next_hops, .. } = self;
        let (next_hops, ways) = (next_hops.all(), world.forwarding.table().in_row(*row));
        let queue = world.rules.only_data_queue();
        messages.look(|message| {
            if let Message::Packet(packet) = message
                && packet.kind == PacketKind::Data
            {
                return match (ways.only_port(packet.dst), queue) {
                    (Ok(port), Some(queue)) => PortQueue { port, queue }.to_bits(),
                    (Ok(port), None) => ports.port_queue(port, packet, &world.rules).to_bits(),
                    (Err(set), _) => DRAWN | set,
                };
            }
            let Some(packet) = passing(message) else { return UNFORESEEN };
            let cached = next_hops.of(packet, |packet| CachedHop::hashed(world, path_selector, *row, packet));
            cached.way.exit(packet, ports, world)
        });
    }
}

/// The packet that a message is, if it goes on to another node.
#[inline(always)]
pub(crate) fn passing(message: &mut Message) -> Option<&mut Packet> {
    match message {
        Message::Packet(packet) if !packet.is_of_the_link() => Some(packet),
        _ => None,
    }
}
