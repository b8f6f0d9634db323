//! What a NIC takes until the answer to a data packet may leave: answers wait here before they enter the queue of its port.

use std::collections::VecDeque;

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, PacketKind};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::message::Message;
use crate::protocol::packets::CNP;
use crate::world::World;

/// Answers that are processed, in the order in which they will leave: each kind takes the same time.
#[derive(Debug, Default)]
pub(crate) struct Processed {
    pub(crate) acks: VecDeque<Packet>,
    pub(crate) cnps: VecDeque<Packet>,
}

impl Processed {
    fn queue(&mut self, is_cnp: bool) -> &mut VecDeque<Packet> {
        if is_cnp { &mut self.cnps } else { &mut self.acks }
    }
}

/// How long an answer of this kind is processed, if it is.
#[inline(always)]
fn duration(world: &World, kind: PacketKind) -> Option<Time> {
    let options = &world.transport.options;
    if kind == CNP { options.cnp_processing } else { options.ack_processing }
}

impl Host {
    /// Sends an answer to a data packet as soon as it is processed.
    #[inline(always)]
    pub(crate) fn send_answer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, answer: &mut Packet) {
        match duration(ctx.world, answer.kind) {
            None => self.send_control(ctx, answer),
            Some(duration) => self.process(&mut ctx.again(), answer, duration),
        }
    }

    #[cold]
    #[inline(never)]
    fn process(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, answer: &Packet, duration: Time) {
        let is_cnp = answer.kind == CNP;
        self.rare.get_or_insert_default().processed.queue(is_cnp).push_back(*answer);
        ctx.timer(ctx.now.saturating_add(duration), Message::Answer { is_cnp });
    }

    /// The answer that has waited longest is processed.
    #[cold]
    #[inline(never)]
    pub(crate) fn on_processed(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, is_cnp: bool) {
        let Some(rare) = &mut self.rare else { return };
        if let Some(mut answer) = rare.processed.queue(is_cnp).pop_front() {
            self.last_event = ctx.now;
            self.send_control(ctx, &mut answer);
        }
    }
}
