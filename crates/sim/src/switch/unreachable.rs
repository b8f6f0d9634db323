//! What a switch does for the sources of packets that its cut links keep from going on: it sends their headers back.
//!
//! That concerns what comes while a link is cut, and what waits for it at the moment of the cut. Ports know nothing of that moment until they are next touched, so a
//! switch at which something waits then asks for a turn. What is on the wire is lost.
//!
//! Under flow control the node is called at that moment in any case, and does the same for what waits.

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, PacketKind, Ports};
use netloom_topology::PortId;
use netloom_units::Time;

use super::Switch;
use crate::ctx::Ctx;
use crate::model::{Message, World};

/// The ports of which a switch tells sources while their links are cut.
#[derive(Debug)]
pub(crate) struct Told {
    /// Port, from, until; in order of `from`.
    cuts: Box<[(PortId, Time, Time)]>,
    /// How many of them have come.
    met: usize,
}

impl Told {
    /// From cuts in any order.
    pub(crate) fn new(mut cuts: Box<[(PortId, Time, Time)]>) -> Self {
        cuts.sort_unstable_by_key(|&(port, from, _)| (from, port));
        Told { cuts, met: 0 }
    }

    /// Whether it never tells anybody.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    fn is_cut(&self, port: PortId, now: Time) -> bool {
        self.cuts.iter().any(|&(of, from, until)| of == port && from <= now && now < until)
    }

    /// The next cut, if it comes by `now`.
    fn meet(&mut self, now: Time) -> Option<(PortId, Time)> {
        let &(port, from, _) = self.cuts.get(self.met)?;
        (from <= now).then(|| {
            self.met += 1;
            (port, from)
        })
    }

    /// Whether what waits at a port whose link is cut from this instant on goes back to its sources.
    fn begins(&self, port: PortId, cut: Time) -> bool {
        self.cuts.iter().any(|&(of, from, _)| (of, from) == (port, cut))
    }

    /// When the next cut comes for which something waits; `Time::MAX` if none does.
    pub(super) fn next_at(&self, ports: &Ports) -> Time {
        let mut to_come = self.cuts[self.met..].iter();
        to_come.find(|&&(port, ..)| ports.queued(port) > 0).map_or(Time::MAX, |&(_, from, _)| from)
    }
}

impl Switch {
    /// Links have been cut by `now`, before anything that happens from then on: what waited for them goes back.
    #[inline(never)]
    pub(super) fn meet_cuts(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let Ctx { world, .. } = *ctx;
        if world.rules.is_lossless() {
            return;
        }
        while let Some((port, cut)) = self.told.meet(ctx.now) {
            if self.sampler.is_some() {
                self.sample(&mut ctx.at(cut));
            }
            if !world.epochs.is_empty() {
                self.take_new_routes(world, ctx.id, cut);
            }
            let goes_back = |packet: &Packet| turned_back(world, packet).is_some();
            let wire = &mut ctx.wire();
            for mut packet in self.ports.take_from_cut(port, cut, goes_back, &world.rules, wire) {
                if let Some(kind) = turned_back(world, &packet) {
                    self.turn_back(&mut ctx.at(cut), port, &mut packet, kind);
                }
            }
        }
    }

    /// Under flow control: the link of a port is cut, or repaired.
    #[cold]
    #[inline(never)]
    pub(super) fn on_link(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, port: PortId, is_cut: bool) {
        if !is_cut {
            return self.ports.restore_link(port, ctx.now, &ctx.world.rules, &mut ctx.wire());
        }
        if !ctx.world.epochs.is_empty() {
            self.take_new_routes(ctx.world, ctx.id, ctx.now);
        }
        let Switch { ports, held, told, .. } = self;
        let is_told = told.begins(port, ctx.now);
        let goes_back = |packet: &Packet| is_told && turned_back(ctx.world, packet).is_some();
        // PFC does not count what is held beside the ports, and credits say nothing of it.
        let back =
            ports.cut_link(port, ctx.now, held.packets(), goes_back, &ctx.world.rules, &mut ctx.wire());
        for mut packet in back {
            if let Some(kind) = turned_back(ctx.world, &packet) {
                self.turn_back(ctx, port, &mut packet, kind);
            }
        }
    }

    /// As what a packet goes back to its source, if that is to be told that the link of its port is cut.
    pub(super) fn must_tell(
        &self,
        world: &World,
        now: Time,
        port: PortId,
        packet: &Packet,
    ) -> Option<PacketKind> {
        turned_back(world, packet).filter(|_| self.told.is_cut(port, now))
    }

    /// Sends what is left of a packet back from a port whose link is cut.
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds ACKs by 65,535 bytes")]
    pub(super) fn turn_back(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        port: PortId,
        packet: &mut Packet,
        kind: PacketKind,
    ) {
        self.ports.turn_back(port, packet, kind, ctx.world.transport.options.ack_size.0 as u16);
        self.send_back(ctx, packet);
    }
}

/// What becomes of a packet that turns back at a cut link; none if nobody is told of it.
fn turned_back(world: &World, packet: &Packet) -> Option<PacketKind> {
    let kind = packet.kind.turned_back()?;
    let answers_leave_paths = || world.routing.answers_leave_paths(world.transport.options.subflows > 1);
    (kind == PacketKind::Unreachable || answers_leave_paths()).then_some(kind)
}
