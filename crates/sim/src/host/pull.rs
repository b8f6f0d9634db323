//! The PULLs that a host's receivers owe: one queue per host, its flows in turn, at the pace at which full packets can come in.

use std::collections::VecDeque;

use netloom_engine::Scheduler;
use netloom_fabric::{NO_INGRESS, Packet, PacketKind};
use netloom_transport::{Congestion, PullWindow, Pulls};
use netloom_units::Time;
use netloom_units::memory::push_few;

use super::{Host, NIC, flow_in};
use crate::ctx::Ctx;
use crate::model::{Message, World};

/// What the receivers of a host owe to their senders.
#[derive(Debug, Default)]
pub(super) struct PullQueue {
    /// By receiver.
    owed: Vec<Owed>,
    /// By receiver, where windows are adaptive.
    windows: Vec<PullWindow>,
    /// The receivers that owe something, in turn, and some that owe nothing any more.
    line: VecDeque<u32>,
    /// The earliest moment for the next PULL.
    opens: Time,
    /// When the timer for it fires.
    timer: Option<Time>,
}

/// The PULLs of one receiver.
#[derive(Clone, Debug)]
struct Owed {
    /// The last packet that came: whom to ask.
    packet: Packet,
    /// PULLs to send.
    pulls: u32,
    /// Those sent.
    sent: u32,
    in_line: bool,
}

const NOTHING: Owed = Owed { packet: Packet::EMPTY, pulls: 0, sent: 0, in_line: false };

impl PullQueue {
    /// A packet, or its header, has come for a receiver, which can make use of no more than `most` packets.
    fn add(&mut self, pulls: &Pulls, receiver: u32, packet: &Packet, most: u32) {
        let index = receiver as usize;
        while index >= self.owed.len() {
            push_few(&mut self.owed, NOTHING);
        }
        let owed = &mut self.owed[index];
        owed.packet = *packet;
        let worth = match &pulls.adaptive {
            // A request is no packet of the window: it has its PULL in any case.
            Some(adaptive) if packet.kind != PacketKind::Request => {
                while index >= self.windows.len() {
                    push_few(&mut self.windows, PullWindow::new(pulls));
                }
                let is_whole = packet.kind == PacketKind::Data;
                self.windows[index].on_arrival(adaptive, is_whole, most, owed.pulls > 0)
            }
            _ => 1,
        };
        owed.pulls = (owed.pulls + worth).min(most);
        if owed.pulls > 0 && !owed.in_line {
            owed.in_line = true;
            self.line.push_back(receiver);
        }
    }

    /// A receiver has got everything; its number may be given to another flow, which takes over its place in the line.
    fn clear(&mut self, pulls: &Pulls, receiver: u32) {
        if let Some(owed) = self.owed.get_mut(receiver as usize) {
            (owed.pulls, owed.sent) = (0, 0);
        }
        if let Some(window) = self.windows.get_mut(receiver as usize) {
            *window = PullWindow::new(pulls);
        }
    }

    /// Takes the next PULL out: the packet whose sender is asked, and the number of PULLs that it has been sent with this one.
    fn pop(&mut self) -> Option<(Packet, u32)> {
        while let Some(receiver) = self.line.pop_front() {
            let owed = &mut self.owed[receiver as usize];
            if owed.pulls == 0 {
                owed.in_line = false;
                continue;
            }
            owed.pulls -= 1;
            owed.sent += 1;
            owed.in_line = owed.pulls > 0;
            if owed.in_line {
                self.line.push_back(receiver);
            }
            return Some((owed.packet, owed.sent));
        }
        None
    }
}

impl Host {
    /// A packet, or its header, has come for a receiver that can make use of `most` more: asks for another one, now or when it is its turn.
    #[inline(never)]
    pub(super) fn ask_for_more(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        receiver: u32,
        packet: &Packet,
        most: u32,
    ) {
        let Congestion::Pulls(pulls) = &ctx.world.transport.congestion else { return };
        self.pulls.get_or_insert_default().add(pulls, receiver, packet, most);
        self.pull(ctx);
    }

    /// Everything has come for a receiver.
    pub(super) fn stop_asking(&mut self, world: &World, receiver: u32) {
        if let (Some(queue), Congestion::Pulls(pulls)) = (&mut self.pulls, &world.transport.congestion) {
            queue.clear(pulls, receiver);
        }
    }

    pub(super) fn on_pull_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        if let Some(pulls) = self.pulls.as_mut().filter(|pulls| pulls.timer == Some(ctx.now)) {
            pulls.timer = None;
            self.pull(ctx);
        }
    }

    /// Sends the PULL whose time has come, and has itself called for the next one.
    #[expect(clippy::cast_possible_truncation, reason = "Transport::check bounds ACKs by 65,535 bytes")]
    fn pull(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        let (Some(pulls), Congestion::Pulls(config)) = (&mut self.pulls, &ctx.world.transport.congestion)
        else {
            return;
        };
        if pulls.opens <= ctx.now
            && let Some((packet, count)) = pulls.pop()
        {
            // The packet that is asked for takes so long on the link to this host.
            let towards = ctx.world.network.channel(ctx.world.network.ports(ctx.id)[0] ^ 1);
            pulls.opens =
                ctx.now + config.interval(towards.rate.serialize(ctx.world.transport.packet_size()));
            let mut pull = Packet {
                sent: ctx.now,
                src: ctx.id,
                dst: packet.src,
                aux: count,
                size: ctx.world.transport.options.ack_size.0 as u16,
                kind: PacketKind::Pull,
                ingress: NO_INGRESS,
                trail: packet.trail.fresh(),
                ..packet
            };
            self.control_sent += 1;
            self.nic.enqueue(NIC, &mut pull, ctx.now, &ctx.world.rules, &mut self.random, &mut ctx.wire());
        }
        let Some(pulls) = &mut self.pulls else { return };
        if !pulls.line.is_empty() && pulls.timer.is_none() {
            let at = pulls.opens.max(ctx.now);
            pulls.timer = Some(at);
            ctx.timer(at, Message::Pull);
        }
    }

    /// A receiver asks for more of a flow.
    pub(super) fn on_pull(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.control_received += 1;
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        flow.sender.on_pull(packet.aux);
        self.go_on(ctx, packet.slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(flow: u32) -> Packet {
        Packet { flow, ..Packet::EMPTY }
    }

    fn order(queue: &mut PullQueue) -> Vec<(u32, u32)> {
        std::iter::from_fn(|| queue.pop()).map(|(packet, count)| (packet.flow, count)).collect()
    }

    #[test]
    fn flows_take_turns_whatever_they_are_owed() {
        let mut queue = PullQueue::default();
        for receiver in [0, 0, 0, 1, 2, 2] {
            queue.add(&Pulls::default(), receiver, &of(receiver), u32::MAX);
        }
        assert_eq!(order(&mut queue), [(0, 1), (1, 1), (2, 1), (0, 2), (2, 2), (0, 3)]);
    }

    #[test]
    fn nobody_is_asked_for_what_has_come_and_a_new_flow_counts_from_one() {
        let mut queue = PullQueue::default();
        for _ in 0..5 {
            queue.add(&Pulls::default(), 0, &of(7), u32::MAX);
        }
        queue.add(&Pulls::default(), 0, &of(7), 2);
        assert_eq!(queue.pop().map(|(_, count)| count), Some(1));
        queue.clear(&Pulls::default(), 0);
        assert_eq!(order(&mut queue), []);
        queue.add(&Pulls::default(), 0, &of(8), 9);
        assert_eq!(order(&mut queue), [(8, 1)]);
    }
}
