//! What reordering costs a host that receives: packets that come early are counted, and perhaps held back from the transport.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_routing::FlowKey;
use netloom_transport::reorder::Early;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::receivers::Place;
use crate::message::Message;
use crate::world::World;

impl Host {
    /// A data packet arrives at a host that may hold it back.
    #[inline(never)]
    pub(crate) fn put_in_order(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        let rule = &ctx.world.transport.options.reorder;
        let key = FlowKey { src: packet.src, flow: ctx.world.numbering.flow(packet.flow) };
        let Some(expected) = self.expected(ctx.world, key) else {
            return self.pass_up(ctx, packet);
        };
        let reordering = self.reordering.get_or_insert_default();
        let size = u64::from(packet.size);
        let has_room = reordering.buffer.get() + size <= rule.room();
        let waiting = reordering.waiting.entry(key).or_default();
        let (before, early) = (waiting.due(), Early { seq: packet.seq, tag: packet.tag, packet: *packet });
        if let Some(packet) = waiting.put(rule, early, expected, has_room, ctx.now) {
            reordering.overflows += u64::from(!has_room && packet.seq > expected);
            self.pass_up(ctx, &packet);
            return self.let_follow(ctx, key);
        }
        if let Some(due) = waiting.due().filter(|due| before != Some(*due)) {
            ctx.timer(due, Message::Reorder { src: key.src, flow: key.flow });
        }
        reordering.buffer.is(reordering.buffer.get() + size, ctx.now);
    }

    /// Out of line: where nothing is held back, packets go up as they come.
    #[inline(never)]
    pub(crate) fn pass_up(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        self.take(ctx, packet);
    }

    /// What is held of a flow goes up as far as it may.
    pub(crate) fn let_follow(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, key: FlowKey) {
        let rule = &ctx.world.transport.options.reorder;
        loop {
            // When all has come, what is left is there for the second time.
            let expected = self.expected(ctx.world, key);
            let Some(reordering) = &mut self.reordering else { return };
            let Some(waiting) = reordering.waiting.get_mut(&key) else { return };
            let before = waiting.due();
            let Some(packet) = waiting.next(rule, expected.unwrap_or(u32::MAX), ctx.now) else {
                if expected.is_none() {
                    reordering.waiting.remove(&key);
                }
                return;
            };
            if let Some(due) = waiting.due().filter(|due| before != Some(*due)) {
                ctx.timer(due, Message::Reorder { src: key.src, flow: key.flow });
            }
            reordering.leave(&packet, ctx.now);
            self.pass_up(ctx, &packet);
        }
    }

    /// What is held of a flow may have waited for long enough.
    pub(crate) fn on_reorder_timer(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, key: FlowKey) {
        let rule = &ctx.world.transport.options.reorder;
        let Some(reordering) = &mut self.reordering else { return };
        let Some(waiting) = reordering.waiting.get_mut(&key) else { return };
        let Some(packet) = waiting.on_timer(rule, ctx.now) else { return };
        if let Some(due) = waiting.due() {
            ctx.timer(due, Message::Reorder { src: key.src, flow: key.flow });
        }
        reordering.timeouts += 1;
        reordering.leave(&packet, ctx.now);
        self.pass_up(ctx, &packet);
        self.let_follow(ctx, key);
    }

    /// The next packet that the receiver of a flow expects; none if it has all.
    pub(crate) fn expected(&mut self, world: &World, key: FlowKey) -> Option<u32> {
        match self.receivers.place(key, world.recorder.is_on) {
            Place::Active(_, active) => Some(active.receiver.expected()),
            Place::Done(_) => None,
        }
    }
}
