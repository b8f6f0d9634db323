//! How flows begin and end: by the clock, in a closed loop, as a stream that is fed, or as a program wants.

use netloom_engine::Scheduler;
use netloom_record::{FlowRecord, GapRecord};
use netloom_routing::{FlowKey, FlowRef, Tag, TagSpace};
use netloom_transport::{PathFacts, Sender};
use netloom_units::memory::push_few;
use netloom_units::random::Stream;
use netloom_units::{Bytes, Time, narrow};
use netloom_workload::{Action, HostWork, Message as Job};

use super::departures::{Departed, Departures};
use super::{FIRST_OWN, Flow, Host, Sent};
use crate::ctx::Ctx;
use crate::driven::Heard;
use crate::model::{Message, World};
use crate::path::distinct_labels;

/// A flow that begins, or one whose subflows do.
#[derive(Clone, Copy)]
pub(super) struct Beginning {
    pub(super) job: Job,
    pub(super) number: u32,
    /// What its sender knows of its path.
    pub(super) facts: PathFacts,
    pub(super) idle_fct: Time,
}

impl Host {
    pub(super) fn start_flows(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        if self.work.is_program() && !std::mem::replace(&mut self.has_begun, true) {
            self.follow_program(ctx, |work, now, actions| work.begin(now, actions));
        }
        while let Some(job) = self.upcoming.as_deref().copied() {
            if job.start > ctx.now {
                ctx.timer(job.start, Message::Start);
                break;
            }
            if job.stream {
                self.feed_stream(ctx, job, None);
            } else {
                let number = self.number(ctx.world, ctx.id);
                self.begin(ctx, job, number);
            }
            self.upcoming = self.work.next_timed().map(Box::new);
        }
    }

    /// The number of a flow that begins.
    pub(super) fn number(&mut self, world: &World, id: u32) -> u32 {
        world.numbering.next(&mut self.next_flow, || format!("host {id}"))
    }

    /// Begins a flow that was ordered from outside.
    pub(super) fn follow_order(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, job: Job, ticket: u32) {
        let flow = self.number(ctx.world, ctx.id);
        self.begin(ctx, job, flow);
        self.rare.get_or_insert_default().heard.push(Heard::Started { ticket, flow, parts: 1 });
    }

    /// What there is to tell of ordered flows since the last call.
    pub(crate) fn heard(&mut self) -> Vec<Heard> {
        self.rare.as_mut().map(|rare| std::mem::take(&mut rare.heard)).unwrap_or_default()
    }

    /// Appends a frame to the stream to its destination, which gets the number if it is new.
    pub(super) fn feed_stream(
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
        if self.rare.is_some() {
            self.rouse_limiter(ctx, job.dst);
        }
        if let Some(flow) = &mut self.flows[slot as usize] {
            flow.bytes.0 += job.bytes.0;
            if ctx.world.numbering.has_subflows() {
                return self.feed_subflows(ctx.world, slot, job);
            }
            flow.sender.extend(&ctx.world.transport, job.bytes, ctx.now);
            flow.arm(ctx, slot);
        }
        self.take_turns(ctx.world, slot);
    }

    /// Begins a flow; returns its slot, or that of its first subflow. A stream begins empty.
    pub(super) fn begin(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, job: Job, number: u32) -> u32 {
        let Job { dst, bytes, stream, .. } = job;
        let path = ctx.world.idle_path(ctx.id, dst);
        let options = &ctx.world.transport.options;
        let full = ctx.world.transport.packet_size();
        let full_packets = (bytes.0 - 1) / options.mtu.0;
        let last = Bytes(bytes.0 - full_packets * options.mtu.0 + options.header.0);
        let facts = PathFacts {
            base_rtt: path.round_trip(full, options.ack_size),
            rate: path.nic_rate(),
            // A receiver that refuses packets discards what a sender believes delivered, even where the fabric loses nothing.
            lossy: ctx.world.is_lossy || ctx.world.transport.refuses(),
            reorders: ctx.world.routing.scatters(),
        };
        let mut idle_fct = path.idle_fct(full_packets, full, last);
        if options.handshake {
            idle_fct += path.one_way(options.header) + path.one_way(options.ack_size);
        }
        if ctx.world.numbering.has_subflows() {
            return self.begin_subflows(ctx, &Beginning { job, number, facts, idle_fct });
        }
        let sender = match stream {
            true => Sender::open(&ctx.world.transport, facts, ctx.now),
            false => Sender::new(&ctx.world.transport, bytes, facts, ctx.now),
        };
        let requests = sender.requests(&ctx.world.transport, facts);
        if requests.is_some() {
            idle_fct += path.one_way(options.ack_size) * 2;
        }
        let (slot, _) = self.place(ctx, &Beginning { job, number, facts, idle_fct }, sender, None);
        if !stream && let Some(flow) = &mut self.flows[slot as usize] {
            flow.in_turn = true;
            self.turns.push(flow.lane, slot);
        }
        if let Some(count) = requests {
            self.rare.get_or_insert_default().requests.add(slot, number, count, ctx.now);
            // Nothing of it is under way that could fire a timer: all of its requests can get lost.
            if let Some(flow) = &mut self.flows[slot as usize] {
                flow.arm(ctx, slot);
            }
        }
        slot
    }

    /// Gives a flow, or a subflow, its slot and its path: another one than the subflow's `before` it, if there is one. Returns both.
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "a port has at most 31 lanes: FlowControl::most_vcs")]
    pub(super) fn place(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        beginning: &Beginning,
        sender: Sender,
        before: Option<Tag>,
    ) -> (u32, Option<Tag>) {
        let &Beginning { job, number, facts, idle_fct } = beginning;
        let Job { dst, bytes, group, class, stream, .. } = job;
        if self.rare.is_some() {
            self.rouse_limiter(ctx, dst);
        }
        let departures = Departures::begin(ctx.world, facts.base_rtt);
        if departures.is_some() {
            self.departed.get_or_insert_with(|| Departed::new(&ctx.world.transport));
        }
        let lane = ctx.world.rules.first_lane(class) as u8;
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            push_few(&mut self.flows, None);
            narrow::<u32>(self.flows.len()) - 1
        });
        let at = FlowRef { key: FlowKey { src: ctx.id, flow: number }, slot };
        let tags = || ctx.world.routes(ctx.now).tags(ctx.id, dst);
        let decider = self.decider.as_mut();
        let tag = decider.map(|decider| decider.begin(at, before, tags(), &mut self.random));
        if let Some(decider) = &mut self.decider
            && let Some(most) = decider.lists()
        {
            decider.list(at, &paths(ctx.world, (ctx.id, dst), ctx.now, most, &mut self.random));
        }
        if let Some(decider) = self.decider.as_mut().filter(|decider| decider.expects()) {
            let path = ctx.world.idle_path(ctx.id, dst);
            // As round-trip times are corrected: by what serialisation added to the data packet's way.
            let least = path.propagation() + path.one_way(ctx.world.transport.options.ack_size);
            decider.expect(at, u32::try_from(path.hops()).unwrap_or(u32::MAX), least);
        }
        self.paces.forget(slot);
        self.flows[slot as usize] = Some(Flow {
            at,
            dst,
            group,
            class,
            lane,
            is_stream: stream,
            cnms: 0,
            bytes: if stream { Bytes(0) } else { bytes },
            start: ctx.now,
            idle_fct,
            settled: (tag.is_none() && !sender.knows_paths()).then(Tag::default),
            sender,
            in_turn: false,
            timer: Time::MAX,
            halt: None,
            departures,
        });
        (slot, tag)
    }

    /// A flow has ended at its sender: what waits for that starts.
    pub(super) fn finish(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, slot: u32) {
        let Some((record, gaps)) = self.end(slot, Some(ctx.now)) else { return };
        let named = (record.flow, record.group);
        self.write_down(&record, gaps);
        self.hand_in_many(ctx.world, ctx.id);
        self.go_on_with_work(ctx, named);
    }

    /// Takes a flow out, which is `done` or given up; returns what is known of it here.
    pub(super) fn end(&mut self, slot: u32, done: Option<Time>) -> Option<(FlowRecord, Vec<GapRecord>)> {
        let flow = self.flows[slot as usize].take()?;
        if flow.in_turn {
            self.turns.remove(flow.lane, slot);
        }
        self.free_slots.push(slot);
        let counts = self.decider.as_mut().map(|decider| decider.on_end(flow.at));
        let counts = flow.counts(counts, done);
        let gaps = flow.gaps().collect();
        Some((flow.record(done, counts), gaps))
    }

    /// Keeps what is known of a flow until it is handed in.
    pub(super) fn write_down(&mut self, record: &FlowRecord, gaps: Vec<GapRecord>) {
        if self.sent.len() == self.sent.capacity() {
            // Doubling would leave half of the memory of many small flows unused.
            self.sent.reserve_exact(1 + self.sent.len() / 8);
        }
        if let Some(departed) = &mut self.departed {
            departed.records.extend(gaps);
        }
        self.sent.push(Sent::new(record));
    }

    /// The server whose NIC this is hears that a flow has ended.
    #[cold]
    #[inline(never)]
    fn tell_server(&mut self, flow: u32) {
        self.rare.get_or_insert_default().heard.push(Heard::Sent { flow });
    }

    /// The server whose NIC this is has a message, or a part of one, to send.
    #[cold]
    #[inline(never)]
    pub(super) fn take_part(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, part: &Message) {
        let &Message::Part { dst, bytes, number, group, class, is_stream } = part else {
            unreachable!("switches and servers set the others")
        };
        let job = Job { group, class, stream: is_stream, ..Job::new(dst, bytes, ctx.now) };
        match is_stream {
            true => self.feed_stream(ctx, job, Some(number)),
            false => _ = self.begin(ctx, job, number),
        }
    }

    /// A flow, of which the number and the group are given, has ended: the program hears of it, or the next one of a closed loop starts.
    pub(super) fn go_on_with_work(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        (flow, group): (u32, u16),
    ) {
        if ctx.world.servers.is_some() {
            return self.tell_server(flow);
        }
        ctx.out.tally(1);
        if self.work.is_program() && flow < FIRST_OWN {
            self.follow_program(ctx, |work, now, actions| work.on_sent(now, flow, actions));
        } else if let Some(job) = self.work.next_closed(ctx.now, group) {
            let number = self.number(ctx.world, ctx.id);
            self.begin(ctx, job, number);
        }
    }

    /// Lets the program take a step, and does what it asks for.
    pub(super) fn follow_program(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        step: impl FnOnce(&mut HostWork, Time, &mut Vec<Action>),
    ) {
        let mut actions = Vec::new();
        step(&mut self.work, ctx.now, &mut actions);
        for action in actions {
            match action {
                Action::Wake { at, op } => {
                    self.rare.get_or_insert_default().calculations.begin(ctx.world, at, op);
                }
                Action::Send { dst, bytes, number, class, group } => {
                    let job = Job { group, class, ..Job::new(dst, bytes, ctx.now) };
                    self.begin(ctx, job, number);
                }
            }
        }
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
