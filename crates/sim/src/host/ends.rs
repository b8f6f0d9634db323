//! How flows end: what is known of them is kept until it is handed in.

use netloom_engine::Scheduler;
use netloom_record::{FlowRecord, GapRecord};
use netloom_units::Time;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::sent::Sent;
use crate::message::Message;
use crate::world::World;

/// Hands in what is known of flows that ended, at their sender.
pub(crate) fn hand_in_sent(sent: &mut Vec<Sent>, world: &World, id: u32) {
    world.recorder.sent.extend(sent.drain(..).map(|sent| sent.record(id)));
}

impl Host {
    /// A flow has ended at its sender: what waits for that starts.
    pub(crate) fn finish(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) {
        let Some((record, gaps)) = self.end(slot, Some((ctx.now, ctx.clock()))) else { return };
        let named = (record.flow, record.group);
        self.write_down(&record, gaps);
        self.hand_in_many(ctx.world, ctx.id);
        self.go_on_with_work(ctx, named);
    }

    /// Takes a flow out, which is done at an instant, when the clock of the workload shows another, or given up; returns what is known of it here.
    pub(crate) fn end(
        &mut self,
        slot: u32,
        done: Option<(Time, Time)>,
    ) -> Option<(FlowRecord, Vec<GapRecord>)> {
        // Looked at where it is: a flow is large.
        let flow = self.flows[slot as usize].as_ref()?;
        if let Some(meters) = &mut self.meters {
            meters.end(slot);
        }
        if flow.is_queued {
            self.send_queue.remove(flow.queue, slot);
        }
        self.free_slots.give(slot);
        let counts = self.path_selector.as_mut().map(|path_selector| path_selector.on_end(flow.at));
        let counts = flow.counts(counts, done.map(|(now, _)| now));
        let ended = (flow.record(done.map(|(_, clock)| clock), counts), flow.gaps().collect());
        self.flows[slot as usize] = None;
        Some(ended)
    }

    /// Keeps what is known of a flow until it is handed in.
    pub(crate) fn write_down(&mut self, record: &FlowRecord, gaps: Vec<GapRecord>) {
        if self.sent.len() == self.sent.capacity() {
            // Doubling would leave half of the memory of many small flows unused.
            self.sent.reserve_exact(1 + self.sent.len() / 8);
        }
        if let Some(departed) = &mut self.departed {
            departed.records.extend(gaps);
        }
        self.sent.push(Sent::new(record));
    }

    /// Hands in what is known of flows that ended, if there are many of them.
    pub(crate) fn hand_in_many(&mut self, world: &World, id: u32) {
        if self.sent.len() >= world.recorder.kept() {
            self.hand_in(world, id);
        }
    }

    /// Hands in what is known of flows that ended or were given up.
    #[cold]
    pub(crate) fn hand_in(&mut self, world: &World, id: u32) {
        hand_in_sent(&mut self.sent, world, id);
        if let Some(departed) = &mut self.departed {
            world.recorder.gaps.extend(departed.records.drain(..));
        }
        if let Some(meters) = &mut self.meters {
            meters.hand_in(&world.recorder);
        }
    }

    /// Takes out how many headers of a flow came back after it was handed in.
    pub(crate) fn take_late_returns(&mut self, flow: u32) -> u32 {
        self.rare.as_mut().and_then(|rare| rare.late_returns.remove(&flow)).unwrap_or(0)
    }

    /// The least of the flows of which headers came back and nothing else is known.
    pub(crate) fn first_stray(&self) -> Option<u32> {
        self.rare.as_ref().and_then(|rare| rare.late_returns.keys().min().copied())
    }

    /// Records the flows that have not ended.
    pub(crate) fn give_up(&mut self) {
        if let Some(meters) = &mut self.meters {
            meters.end_all();
        }
        for (number, connected) in self.connections.take().into_iter().flat_map(|connections| *connections) {
            if let Some((record, gaps)) = self.end_all(number, &connected, None) {
                self.write_down(&record, gaps);
            }
        }
        for flow in self.flows.drain(..).flatten() {
            let counts = self.path_selector.as_ref().map(|path_selector| path_selector.counts(flow.at));
            let counts = flow.counts(counts, None);
            if let Some(departed) = &mut self.departed {
                departed.records.extend(flow.gaps());
            }
            self.sent.push(Sent::new(&flow.record(None, counts)));
        }
    }
}
