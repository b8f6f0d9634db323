//! A flow that is being sent.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;
use netloom_record::{FlowRecord, GapRecord};
use netloom_routing::{FlowCounts, FlowRef, NicPathSelector, Tag};
use netloom_transport::{Ack, Sender};
use netloom_units::random::Stream;
use netloom_units::{Bytes, Time};
use rand::RngExt;

use crate::ctx::Ctx;
use crate::host::departures::Departures;
use crate::message::Message;
use crate::protocol::flowcut::pause::FlowPause;
use crate::protocol::packets::{ACK, NACK};
use crate::world::World;

/// A flow that is being sent.
#[derive(Debug)]
pub(crate) struct Flow {
    pub(crate) at: FlowRef,
    pub(crate) dst: u32,
    pub(crate) group: u16,
    pub(crate) class: u8,
    /// The data queue in which it leaves.
    pub(crate) queue: u8,
    pub(crate) is_stream: bool,
    pub(crate) cnms: u32,
    pub(crate) bytes: Bytes,
    /// When it began, by the [clock](World::clock) of the workload.
    pub(crate) start: Time,
    pub(crate) ideal_fct: Time,
    pub(crate) sender: Sender,
    /// The tag of what it sends until its sender learns something more; none: the host's path selector, or the sender's congestion control, has to be asked for each packet.
    pub(crate) settled: Option<Tag>,
    pub(crate) is_queued: bool,
    /// When its timer fires; another one means nothing. `Time::MAX`: none is set.
    pub(crate) timer: Time,
    /// The signals of switches.
    pub(crate) pause: Option<Box<FlowPause>>,
    /// When its packets left, where that is measured or stretched.
    pub(crate) departures: Option<Box<Departures>>,
}

impl Flow {
    /// Sets the timer if it must fire earlier than it would. One that fires too early is set again then, which must make no difference: so timers of one instant come in the order of slots, not in that of setting.
    #[inline(always)]
    pub(crate) fn arm(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) {
        if self.sender.has_deadlines()
            && ctx.now < self.timer
            && let Some(deadline) = self.sender.deadline_before(&ctx.world.transport, self.timer)
        {
            self.timer = deadline.max(ctx.now);
            let message = Message::FlowTimer { slot, flow: self.at.key.flow };
            ctx.timer_in_order(slot, self.timer, message);
        }
    }

    /// The path of the packet with so much payload that it sends at `at`: as its congestion control says, or else routing.
    #[inline(never)]
    pub(crate) fn choose_path(
        &mut self,
        world: &World,
        path_selector: &mut Option<Box<NicPathSelector>>,
        random: &mut Stream,
        payload: u32,
        at: Time,
    ) -> u32 {
        if let Some(path) = self.sender.path(&world.transport, |p| random.random_bool(p)) {
            return path;
        }
        let Some(path_selector) = path_selector else { return 0 };
        let (src, dst) = (self.at.key.src, self.dst);
        let tags = || world.routes(at).tags(src, dst);
        let (tag, settled) = path_selector.tag(self.at, (payload, self.sender.oldest()), at, tags, random);
        if !self.sender.knows_paths() {
            self.settled = settled;
        }
        tag.bits()
    }

    /// Whether it can send, and from when on.
    #[inline(always)]
    pub(crate) fn ready(
        &self,
        world: &World,
        path_selector: Option<&NicPathSelector>,
        paused_classes: u8,
    ) -> Option<Time> {
        let from = self.sender.ready(&world.transport)?;
        if paused_classes >> self.class & 1 != 0 {
            return None;
        }
        if let Some(pause) = &self.pause
            && !pause.may_send(self.sender.next(), self.sender.oldest())
            && (pause.credit == 0 || !self.sender.must_resend())
        {
            return None;
        }
        // A draining flow still repeats what was lost: otherwise it would never be empty.
        let may_send = self.settled.is_some()
            || path_selector.is_none_or(|path_selector| {
                path_selector.may_send(self.at, self.sender.next(), self.sender.oldest())
            })
            || self.sender.must_resend();
        may_send.then_some(from)
    }

    /// What was done with it, by the host's path selector or by switches.
    pub(crate) fn counts(&self, counts: Option<FlowCounts>, now: Option<Time>) -> FlowCounts {
        let counts = counts.unwrap_or_default();
        let Some(pause) = &self.pause else { return counts };
        let (drains, drain_time) = pause.counts(now);
        FlowCounts { drains: counts.drains + drains, drain_time: counts.drain_time + drain_time, ..counts }
    }

    /// The gaps between its packets, if they are counted.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = GapRecord> + '_ {
        let departures = self.departures.iter();
        departures.flat_map(|departures| departures.records(self.at.key.src, self.at.key.flow))
    }

    /// What is known at the sender, which was `done` at this time by the [clock](World::clock) of the workload; the receiver's part is added later.
    pub(crate) fn record(&self, done: Option<Time>, counts: FlowCounts) -> FlowRecord {
        let FlowCounts { decisions, drains, drain_time } = counts;
        FlowRecord {
            dst: self.dst,
            flow: self.at.key.flow,
            group: self.group,
            class: self.class,
            stream: self.is_stream,
            cnms: self.cnms,
            cnps: self.sender.counts.cnps,
            bytes: self.bytes.0,
            start: self.start,
            sender_fct: done.map(|now| now - self.start),
            ideal_fct: self.ideal_fct,
            packets: self.sender.counts.packets,
            returned_to_sender: self.sender.counts.returned_to_sender,
            retransmissions: self.sender.counts.retransmissions,
            timeouts: self.sender.counts.timeouts,
            drains,
            drain_time,
            flowlets: self.departures.as_ref().map_or(0, |departures| departures.flowlets()),
            stretched: self.departures.as_ref().map_or(0, |departures| departures.stretched()),
            decisions: decisions.taken,
            non_default_decisions: decisions.deviating,
            ..FlowRecord::default()
        }
    }
}

/// What an ACK or NACK says to the sender.
#[inline(always)]
pub(crate) fn answer(now: Time, packet: &Packet) -> Ack {
    echo(now, packet, packet.number_of(&[ACK, NACK]))
}

/// What comes back to the sender echoes of its packet; everything before `cumulative` has been acknowledged.
#[inline(always)]
pub(crate) fn echo(now: Time, packet: &Packet, cumulative: u32) -> Ack {
    Ack {
        now,
        seq: packet.seq,
        cumulative,
        sent: packet.sent,
        serialisation: Time(u64::from(packet.serialisation)),
        hops: u32::from(packet.trail.hops()),
        marked: packet.flags.is_marked(),
        tag: packet.tag,
        at_last_hop: false,
    }
}

/// The flow in a slot, unless another one has taken it since.
#[inline]
pub(crate) fn flow_in(flows: &mut [Option<Flow>], slot: u32, number: u32) -> Option<&mut Flow> {
    flows.get_mut(slot as usize)?.as_mut().filter(|flow| flow.at.key.flow == number)
}
