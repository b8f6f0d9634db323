//! How flows begin and end: by the clock, in a closed loop, as a stream that is fed, or as a program wants.

use netloom_engine::Scheduler;
use netloom_routing::{FlowKey, FlowRef, Tag, TagSpace};
use netloom_topology::HostId;
use netloom_transport::{PathFacts, Sender};
use netloom_units::memory::push_few;
use netloom_units::random::Stream;
use netloom_units::{Bytes, Time, narrow};
use netloom_workload::Message as Job;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::departures::{Departed, Departures};
use crate::host::flow::Flow;
use crate::host::idle::Idle;
use crate::message::Message;
use crate::path::distinct_labels;
use crate::protocol::at_hosts;
use crate::world::World;

/// A flow that begins, or one whose subflows do.
#[derive(Clone, Copy)]
pub(crate) struct Beginning {
    pub(crate) job: Job,
    pub(crate) number: u32,
    /// What its sender knows of its path.
    pub(crate) facts: PathFacts,
    pub(crate) ideal_fct: Time,
}

impl Host {
    /// Appends a frame to the stream to its destination, which gets the number if it is new.
    pub(crate) fn feed_stream(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        job: Job,
        number: Option<u32>,
    ) {
        let key = (job.dst, job.group, job.class);
        let known = self.rare.as_ref().and_then(|rare| rare.streams.get(&key));
        let slot = match known {
            Some(&slot) => slot,
            None => {
                let number = number.unwrap_or_else(|| self.number(ctx.world, ctx.id));
                let slot = self.begin(ctx, job, number);
                self.rare.get_or_insert_default().streams.insert(key, slot);
                slot
            }
        };
        at_hosts::on_work(self, ctx, job.dst);
        if let Some(flow) = &mut self.flows[slot as usize] {
            flow.bytes.0 += job.bytes.0;
            if ctx.world.numbering.has_subflows() {
                return self.feed_subflows(ctx.world, slot, job);
            }
            flow.sender.extend(&ctx.world.transport, job.bytes, ctx.now);
            flow.arm(ctx, slot);
            self.ask_for_credit(ctx.world, slot, ctx.now);
        }
        self.enqueue_if_ready(ctx.world, slot);
    }

    /// Begins a flow; returns its slot, or that of its first subflow. A stream begins empty.
    pub(crate) fn begin(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, job: Job, number: u32) -> u32 {
        let Job { dst, bytes, stream, .. } = job;
        let Idle { facts, mut ideal_fct, answer, .. } = self.idle(ctx.world, ctx.id, dst, bytes);
        if ctx.world.numbering.has_subflows() {
            return self.begin_subflows(ctx, &Beginning { job, number, facts, ideal_fct });
        }
        let sender = match stream {
            true => Sender::open(&ctx.world.transport, facts, ctx.now),
            false => Sender::new(&ctx.world.transport, bytes, facts, ctx.now),
        };
        let requests = sender.requests(&ctx.world.transport, facts);
        if requests.is_some() {
            ideal_fct += answer * 2;
        }
        let (slot, _) = self.place(ctx, &Beginning { job, number, facts, ideal_fct }, sender, None);
        if !stream && let Some(flow) = &mut self.flows[slot as usize] {
            flow.is_queued = true;
            self.send_queue.push(flow.queue, slot);
        }
        if let Some(count) = requests {
            self.add_requests(slot, number, count, ctx.now);
            // Nothing of it is under way that could fire a timer: all of its requests can get lost.
            if let Some(flow) = &mut self.flows[slot as usize] {
                flow.arm(ctx, slot);
            }
        }
        slot
    }

    /// What is known of the idle path of a flow; it is that of the last flow, if that had the same destination and size, as in rings.
    fn idle(&mut self, world: &World, src: HostId, dst: HostId, bytes: Bytes) -> Idle {
        if let Some(idle) = self.last_idle.as_deref().filter(|idle| (idle.dst, idle.bytes) == (dst, bytes)) {
            return *idle;
        }
        let idle = world.idle(src, dst, bytes);
        match &mut self.last_idle {
            Some(last) => **last = idle,
            last => *last = Some(Box::new(idle)),
        }
        idle
    }

    /// Gives a flow, or a subflow, its slot and its path: another one than the subflow's `before` it, if there is one. Returns both.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a port has at most 31 queues: FlowControl::most_vcs"
    )]
    pub(crate) fn place(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        beginning: &Beginning,
        mut sender: Sender,
        before: Option<Tag>,
    ) -> (u32, Option<Tag>) {
        if self.meters.is_some() {
            sender.observe();
        }
        let &Beginning { job, number, facts, ideal_fct } = beginning;
        let Job { dst, bytes, group, class, stream, .. } = job;
        at_hosts::on_work(self, ctx, dst);
        let departures = Departures::begin(ctx.world, facts.base_rtt);
        if departures.is_some() {
            self.departed.get_or_insert_with(|| Departed::new(&ctx.world.transport));
        }
        let queue = ctx.world.rules.first_queue(class) as u8;
        let slot = self.free_slots.take().unwrap_or_else(|| {
            push_few(&mut self.flows, None);
            narrow::<u32>(self.flows.len()) - 1
        });
        let at = FlowRef { key: FlowKey { src: ctx.id, flow: number }, slot };
        let tags = || ctx.world.routes(ctx.now).tags(ctx.id, dst);
        let path_selector = self.path_selector.as_mut();
        let tag =
            path_selector.map(|path_selector| path_selector.begin(at, before, tags(), &mut self.random));
        if let Some(path_selector) = &mut self.path_selector
            && let Some(most) = path_selector.lists()
        {
            let tags = paths(ctx.world, (ctx.id, dst), ctx.now, most, &mut self.random);
            path_selector.list(at, &tags);
            if path_selector.weighs() {
                let routes = ctx.world.routes(ctx.now);
                let hops: Vec<u32> = tags.iter().map(|&tag| routes.hops(ctx.id, dst, tag)).collect();
                path_selector.weigh(at, &hops);
            }
        }
        if let Some(path_selector) =
            self.path_selector.as_mut().filter(|path_selector| path_selector.expects())
        {
            let path = ctx.world.idle_path(ctx.id, dst);
            // As round-trip times are corrected: by what serialisation added to the data packet's delay.
            let least = path.propagation() + path.one_way(ctx.world.transport.options.ack_size);
            path_selector.expect(at, u32::try_from(path.hops()).unwrap_or(u32::MAX), least);
        }
        self.paces.forget(slot);
        if let Some(port_selector) = &mut self.port_selector {
            port_selector.forget(slot);
        }
        self.flows[slot as usize] = Some(Flow {
            at,
            dst,
            group,
            class,
            queue,
            is_stream: stream,
            cnms: 0,
            bytes: if stream { Bytes(0) } else { bytes },
            start: ctx.clock(),
            ideal_fct,
            settled: (tag.is_none() && !sender.knows_paths()).then(Tag::default),
            sender,
            is_queued: false,
            timer: Time::MAX,
            pause: None,
            departures,
        });
        (slot, tag)
    }
}

/// At most `most` paths of a flow between two hosts that begins now.
#[cold]
#[inline(never)]
fn paths(world: &World, (src, dst): (u32, u32), now: Time, most: u32, random: &mut Stream) -> Vec<Tag> {
    let routes = world.routes(now);
    match routes.tags(src, dst) {
        TagSpace::Labels => {
            let labels = distinct_labels(&world.network, routes.table(), (src, dst), most, random);
            labels.into_iter().map(Tag::label).collect()
        }
        tags => tags.list(most, random),
    }
}
