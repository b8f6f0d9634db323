//! Flows that several subflows send together (MPTCP). To its host a subflow is a flow like any other: it takes turns at the NIC, has a timer, and a
//! path from the host's path selector or by the hash. What it sends, and when all of it has arrived, is its connection's affair.

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, PacketKind};
use netloom_record::{FlowRecord, GapRecord};
use netloom_transport::{Ack, Cause, Connection, Feedback, Sender};
use netloom_units::Time;
use netloom_workload::Message as Job;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::connections::Connected;
use crate::host::flow::{answer, echo, flow_in};
use crate::host::flows::Beginning;
use crate::message::Message;
use crate::protocol::packets::{ACK, NACK};
use crate::world::World;

impl Host {
    /// Begins a flow with its subflows; returns the slot of the first.
    pub(crate) fn begin_subflows(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        beginning: &Beginning,
    ) -> u32 {
        let &Beginning { job, number, facts, .. } = beginning;
        let count = ctx.world.transport.options.subflows;
        let connection = match job.stream {
            true => Connection::open(count),
            false => Connection::new(&ctx.world.transport, job.bytes, count),
        };
        let mut before = None;
        let slots: Vec<u32> = (0..count)
            .map(|subflow| {
                let sender = Sender::subflow(&ctx.world.transport, facts, ctx.now);
                let number = ctx.world.numbering.number(number, subflow);
                let slot;
                (slot, before) = self.place(ctx, &Beginning { number, ..*beginning }, sender, before);
                slot
            })
            .collect();
        let first = slots[0];
        let connections = self.connections.get_or_insert_default();
        connections.insert(number, Connected { connection, slots });
        for subflow in 0..count {
            self.see(ctx.world, number, subflow);
        }
        self.offer(ctx.world, number);
        first
    }

    /// Appends a frame to the stream of which a slot has a subflow.
    pub(crate) fn feed_subflows(&mut self, world: &World, slot: u32, job: Job) {
        let Some(flow) = &self.flows[slot as usize] else { return };
        let number = world.numbering.flow(flow.at.key.flow);
        if let Some(Connected { connection, .. }) = self.connected(number) {
            connection.extend(&world.transport, job.bytes);
            self.offer(world, number);
        }
    }

    pub(crate) fn connected(&mut self, number: u32) -> Option<&mut Connected> {
        self.connections.as_mut()?.get_mut(&number)
    }

    /// Sets for every subflow of a flow how much there is to send.
    pub(crate) fn offer(&mut self, world: &World, number: u32) {
        for subflow in 0..world.transport.options.subflows {
            let Some(Connected { connection, slots }) = self.connected(number) else { return };
            let (slot, overtaken) = (slots[subflow as usize], connection.overtaken(subflow));
            let unsent = connection.unsent(&world.transport, subflow);
            if let Some(flow) = &mut self.flows[slot as usize] {
                if let Some(until) = overtaken {
                    flow.sender.forgo(until);
                }
                flow.sender.offer(&world.transport, unsent);
            }
            self.enqueue_if_ready(world, slot);
        }
    }

    /// Updates the connection with a subflow's state.
    pub(crate) fn see(&mut self, world: &World, number: u32, subflow: u32) {
        let connected = self.connections.as_mut().and_then(|connections| connections.get_mut(&number));
        let Some(Connected { connection, slots }) = connected else { return };
        if let Some(flow) = &self.flows[slots[subflow as usize] as usize]
            && world.transport.is_coupled()
        {
            connection.see(subflow, flow.sender.window(), flow.sender.rtt());
        }
    }

    /// An ACK or a NACK arrived for a subflow, or the header of one of its packets came back.
    #[inline(never)]
    pub(crate) fn on_answer_to_subflow(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
    ) {
        let (number, subflow) =
            (ctx.world.numbering.flow(packet.flow), ctx.world.numbering.subflow(packet.flow));
        let transport = &ctx.world.transport;
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        let connected = self.connections.as_mut().and_then(|connections| connections.get_mut(&number));
        let Some(Connected { connection, .. }) = connected else { return };
        let was_unsettled = connection.is_unsettled();
        // What came back says nothing of other packets.
        let echoed = match packet.kind {
            ACK | NACK => answer(ctx.now, packet),
            _ => echo(ctx.now, packet, 0),
        };
        let news = connection.on_answer(subflow, echoed, packet.kind == ACK);
        if connection.is_done() {
            if let (Some(ack), true) = (news, self.meters.is_some()) {
                let newly = flow.sender.note(transport, &ack);
                let feedback = flow.sender.feedback_of(transport, ack, newly);
                self.meter(ctx.world, packet.slot, &feedback);
            }
            return self.finish_connection(ctx, number);
        }
        flow.sender.offer(transport, connection.unsent(transport, subflow));
        if transport.is_coupled() {
            flow.sender.couple(connection.increase(transport.packet_size()));
        }
        match (news, packet.kind) {
            (Some(ack), ACK) => {
                flow.read_telemetry(ctx.world, packet);
                let feedback = flow.sender.on_ack(transport, ack);
                let losses = flow.sender.find_losses(transport, ctx.now);
                if transport.is_coupled() {
                    connection.see(subflow, flow.sender.window(), flow.sender.rtt());
                }
                self.on_feedback(ctx, packet.slot, &feedback);
                if let Some(losses) = losses {
                    self.on_feedback(ctx, packet.slot, &losses);
                }
            }
            (Some(answer), _) => self.on_other_answer_to_subflow(ctx, packet, answer),
            (None, _) => self.see(ctx.world, number, subflow),
        }
        if was_unsettled {
            self.offer(ctx.world, number);
        }
        self.go_on(ctx, packet.slot);
    }

    /// What a subflow learns from an answer that is no ACK. Apart from ACKs, as these are the rule.
    #[inline(never)]
    fn on_other_answer_to_subflow(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &Packet,
        answer: Ack,
    ) {
        let transport = &ctx.world.transport;
        let Some(flow) = flow_in(&mut self.flows, packet.slot, packet.flow) else { return };
        if packet.kind != NACK {
            // It says nothing of other packets, but the connection may have heard of some by other subflows.
            flow.sender.forgo(answer.cumulative);
        }
        let feedback = match packet.kind {
            NACK => flow.sender.on_nack(transport, answer),
            PacketKind::Unreachable => flow.sender.on_unreachable(transport, answer),
            _ => flow.sender.on_returned(transport, answer),
        };
        let (number, subflow) =
            (ctx.world.numbering.flow(packet.flow), ctx.world.numbering.subflow(packet.flow));
        self.see(ctx.world, number, subflow);
        match packet.kind {
            PacketKind::Unreachable => self.leave_path(ctx.world, ctx.id, packet.slot, &feedback),
            _ => self.on_feedback(ctx, packet.slot, &feedback),
        }
    }

    /// A subflow's timer has something for it.
    pub(crate) fn on_subflow_timer(&mut self, world: &World, number: u32, feedback: &Feedback) {
        let (number, subflow) = (world.numbering.flow(number), world.numbering.subflow(number));
        self.see(world, number, subflow);
        let is_late = feedback.cause == Cause::Timeout;
        if let Some(Connected { connection, .. }) = self.connected(number).filter(|_| is_late)
            && connection.on_timeout(subflow)
        {
            self.offer(world, number);
        }
    }

    /// Everything of a flow has arrived, by whichever subflow.
    pub(crate) fn finish_connection(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, number: u32) {
        let connected = self.connections.as_mut().and_then(|connections| connections.remove(&number));
        if let Some((record, gaps)) =
            connected.and_then(|connected| self.end_all(number, &connected, Some(ctx.now)))
        {
            let group = record.group;
            self.write_down(&record, gaps);
            self.hand_in_many(ctx.world, ctx.id);
            self.go_on_with_work(ctx, (number, group));
        }
    }

    /// Ends the subflows of a flow: what they did is what the flow did.
    pub(crate) fn end_all(
        &mut self,
        number: u32,
        connected: &Connected,
        done: Option<Time>,
    ) -> Option<(FlowRecord, Vec<GapRecord>)> {
        let mut whole: Option<FlowRecord> = None;
        let mut gaps: Vec<GapRecord> = Vec::new();
        for &slot in &connected.slots {
            // They are never ahead of the network.
            let Some((part, more)) = self.end(slot, done.map(|now| (now, now))) else { continue };
            gaps.extend(more.into_iter().map(|gap| GapRecord { flow: number, ..gap }));
            match &mut whole {
                None => whole = Some(FlowRecord { flow: number, ..part }),
                Some(whole) => whole.add_subflow(&part),
            }
        }
        gaps.sort_by_key(|gap| (gap.base_rtts, gap.from));
        gaps.dedup_by(|gap, before| {
            let is_same = (gap.base_rtts, gap.from) == (before.base_rtts, before.from);
            before.count += if is_same { gap.count } else { 0 };
            is_same
        });
        whole.map(|whole| (whole, gaps))
    }
}
