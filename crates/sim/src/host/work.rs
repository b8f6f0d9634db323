//! What a host has to do: messages by the clock, closed loops, programs, and orders from outside.

use netloom_engine::Scheduler;
use netloom_units::Time;
use netloom_workload::{Action, HostWork, Message as Job};

use crate::ctx::Ctx;
use crate::host::Host;
use crate::host::event::FlowEvent;
use crate::message::Message;
use crate::numbering::FIRST_OWN;
use crate::world::World;

impl Host {
    pub(crate) fn start(&mut self, out: &mut impl Scheduler<Message>) {
        self.upcoming = self.work.next_timed().map(Box::new);
        if self.work.is_program() {
            out.timer(Time::ZERO, Message::Start);
        }
        if let Some(job) = &self.upcoming {
            out.timer(job.start, Message::Start);
        }
    }

    /// The next message of the server whose work this host takes over when the run has ended.
    pub(crate) fn take_back(&mut self, upcoming: Option<Job>) {
        self.upcoming = upcoming.map(Box::new);
    }

    /// Whether some of its work has not begun, or has not been done.
    pub(crate) fn has_work_left(&self) -> bool {
        self.upcoming.is_some() || !self.work.is_finished()
    }

    pub(crate) fn start_flows(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>) {
        if self.work.is_program() && !std::mem::replace(&mut self.has_begun, true) {
            self.follow_program(ctx, |work, now, actions| work.begin(now, actions));
        }
        while let Some(job) = self.upcoming.as_deref().copied() {
            if job.start > ctx.clock() {
                ctx.timer(ctx.world.instant(job.start), Message::Start);
                break;
            }
            self.next_flow += self.work.take_skipped();
            if job.stream {
                self.feed_stream(ctx, job, None);
            } else {
                let number = self.number(ctx.world, ctx.id);
                self.begin(ctx, job, number);
            }
            self.upcoming = self.work.next_timed().map(Box::new);
        }
    }

    /// Begins a flow that was ordered from outside.
    pub(crate) fn follow_order(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, job: Job, ticket: u32) {
        let flow = self.number(ctx.world, ctx.id);
        self.begin(ctx, job, flow);
        self.reports.get_or_insert_default().events.push(FlowEvent::Started { ticket, flow, parts: 1 });
        ctx.out.report(false);
    }

    /// The events of ordered flows that were not taken yet; who takes them leaves none.
    pub(crate) fn events(&mut self) -> Option<&mut Vec<FlowEvent>> {
        self.reports.as_mut().map(|reports| &mut reports.events)
    }

    /// The server whose NIC this is, or what drives the run, learns that a flow has ended.
    #[cold]
    #[inline(never)]
    fn note_sent(&mut self, flow: u32, at: Time) {
        self.reports.get_or_insert_default().events.push(FlowEvent::Sent { flow, at });
    }

    /// The server whose NIC this is has a message, or a part of one, to send.
    #[cold]
    #[inline(never)]
    pub(crate) fn take_part(&mut self, ctx: &mut Ctx<'_, impl Scheduler<Message>>, part: &Message) {
        let &Message::Part { dst, bytes, number, group, class, is_stream } = part else {
            unreachable!("switches and servers set the others")
        };
        let job = Job { group, class, stream: is_stream, ..Job::new(dst, bytes, ctx.clock()) };
        match is_stream {
            true => self.feed_stream(ctx, job, Some(number)),
            false => _ = self.begin(ctx, job, number),
        }
    }

    /// A flow, of which the number and the group are given, has ended: the program learns of it, or the next one of a closed loop starts.
    pub(crate) fn go_on_with_work(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        (flow, group): (u32, u16),
    ) {
        if ctx.world.servers.is_some() {
            return self.note_sent(flow, ctx.now);
        }
        ctx.out.tally(1);
        if ctx.world.reports_sent {
            self.note_sent(flow, ctx.now);
            ctx.out.report(true);
        }
        if self.work.is_program() && flow < FIRST_OWN {
            self.follow_program(ctx, |work, now, actions| work.on_sent(now, flow, actions));
        } else if let Some(job) = self.work.next_closed(ctx.clock(), group) {
            let number = self.number(ctx.world, ctx.id);
            self.begin(ctx, job, number);
        }
    }

    /// Lets the program take a step, and does what it asks for.
    pub(crate) fn follow_program(
        &mut self,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        step: impl FnOnce(&mut HostWork, Time, &mut Vec<Action>),
    ) {
        let mut actions = Vec::new();
        step(&mut self.work, ctx.clock(), &mut actions);
        for action in actions {
            match action {
                Action::Wake { at, op } => {
                    let at = ctx.world.instant(at);
                    self.rare.get_or_insert_default().calculations.begin(ctx.world, at, op);
                }
                // A host has one NIC.
                Action::Send { dst, bytes, number, class, group, nic: _ } => {
                    let job = Job { group, class, ..Job::new(dst, bytes, ctx.clock()) };
                    self.begin(ctx, job, number);
                }
            }
        }
    }

    /// The number of a flow that begins.
    pub(crate) fn number(&mut self, world: &World, id: u32) -> u32 {
        world.numbering.next(&mut self.next_flow, || format!("host {id}"))
    }
}
