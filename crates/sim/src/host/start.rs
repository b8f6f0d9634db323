//! How flows begin and end: by the clock, in a closed loop, as a stream that is fed, or as a program wants.

use std::cmp::Reverse;
use std::sync::atomic::Ordering;

use netloom_engine::Scheduler;
use netloom_routing::{FlowKey, FlowRef, Granularity};
use netloom_transport::{PathFacts, Reliability, Sender};
use netloom_units::{Bytes, Time};
use netloom_workload::{Action, HostWork, Message as Job};

use super::departures::{Departed, Departures};
use super::{FIRST_OWN, Flow, Host};
use crate::driven::Heard;
use crate::model::{Message, World};
use crate::path::PathProfile;

impl Host {
    pub(super) fn start_flows(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        out: &mut impl Scheduler<Message>,
    ) {
        if self.work.is_program() && !std::mem::replace(&mut self.has_begun, true) {
            self.follow_program(world, id, now, |work, actions| work.begin(now, actions));
        }
        while let Some(job) = self.upcoming.as_deref().copied() {
            if job.start > now {
                out.timer(job.start, Message::Start);
                break;
            }
            if job.stream {
                self.feed_stream(world, id, now, job);
            } else {
                let number = self.number();
                self.begin(world, id, now, job, number);
            }
            self.upcoming = self.work.next_timed().map(Box::new);
        }
    }

    pub(super) fn number(&mut self) -> u32 {
        self.next_flow += 1;
        self.next_flow - 1
    }

    /// Begins a flow that was ordered from outside.
    pub(super) fn follow_order(&mut self, world: &World, id: u32, now: Time, job: Job, ticket: u32) {
        let flow = self.number();
        self.begin(world, id, now, job, flow);
        self.rare.get_or_insert_default().heard.push(Heard::Started { ticket, flow });
    }

    /// What there is to tell of ordered flows since the last call.
    pub(crate) fn heard(&mut self) -> Vec<Heard> {
        self.rare.as_mut().map(|rare| std::mem::take(&mut rare.heard)).unwrap_or_default()
    }

    /// Appends a frame to the stream to its destination.
    pub(super) fn feed_stream(&mut self, world: &World, id: u32, now: Time, job: Job) {
        let key = (job.dst, job.group, job.class);
        let known = self.rare.as_ref().and_then(|rare| rare.streams.get(&key));
        let slot = match known {
            Some(&slot) => slot,
            None => {
                let number = self.number();
                let slot = self.begin(world, id, now, job, number);
                self.rare.get_or_insert_default().streams.insert(key, slot);
                slot
            }
        };
        if let Some(flow) = &mut self.flows[slot as usize] {
            flow.sender.extend(&world.transport, job.bytes);
            flow.bytes.0 += job.bytes.0;
        }
        self.take_turns(world, slot);
    }

    /// Begins a flow; returns its slot. A stream begins empty.
    pub(super) fn begin(&mut self, world: &World, id: u32, now: Time, job: Job, number: u32) -> u32 {
        let Job { dst, bytes, group, class, stream, .. } = job;
        let path =
            PathProfile::walk(&world.network, world.forwarding.table(), &world.fabric.options, id, dst);
        let options = &world.transport.options;
        let full = world.transport.packet_size();
        let full_packets = (bytes.0 - 1) / options.mtu.0;
        let last = Bytes(bytes.0 - full_packets * options.mtu.0 + options.header.0);
        let facts = PathFacts {
            base_rtt: path.one_way(full) + path.one_way(options.ack_size),
            rate: path.nic_rate(),
            // A go-back-N receiver discards what a sender believes delivered, even where the fabric loses nothing.
            lossy: world.is_lossy || matches!(world.transport.reliability, Reliability::GoBackN(_)),
            reorders: matches!(world.routing.granularity, Granularity::Packet(_)),
        };
        let sender = if stream {
            Sender::open(&world.transport, facts, now)
        } else {
            Sender::new(&world.transport, bytes, facts, now)
        };
        let departures = Departures::begin(world, facts.base_rtt);
        if departures.is_some() {
            self.departed.get_or_insert_with(|| Departed::new(&world.transport));
        }
        let lane = world.rules.first_lane(class) as u8;
        let slot = self.free_slots.pop().unwrap_or_else(|| {
            self.flows.push(None);
            self.flows.len() as u32 - 1
        });
        let at = FlowRef { key: FlowKey { src: id, flow: number }, slot };
        if let Some(decider) = &mut self.decider {
            decider.begin(at, world.routes(now).tags(id, dst), &mut self.random);
        }
        let flow = Flow {
            at,
            dst,
            group,
            class,
            lane,
            is_stream: stream,
            cnms: 0,
            cnps: 0,
            bytes: if stream { Bytes(0) } else { bytes },
            start: now,
            idle_fct: path.idle_fct(full_packets, full, last),
            sender,
            in_turn: !stream,
            timer: Time::MAX,
            halt: None,
            departures,
        };
        self.flows[slot as usize] = Some(flow);
        if !stream {
            self.turns.push(lane, slot);
        }
        slot
    }

    /// A flow has ended at its sender: what waits for that starts.
    pub(super) fn finish(
        &mut self,
        world: &World,
        id: u32,
        slot: u32,
        now: Time,
        out: &mut impl Scheduler<Message>,
    ) {
        let Some(flow) = self.flows[slot as usize].take() else { return };
        if flow.in_turn {
            self.turns.remove(flow.lane, slot);
        }
        let counts = self.decider.as_mut().map(|decider| decider.on_end(flow.at));
        if self.records.len() == self.records.capacity() {
            // Doubling would leave half of the memory of many small flows unused.
            self.records.reserve_exact(8 + self.records.len() / 4);
        }
        let counts = flow.counts(counts, Some(now));
        if let Some(departed) = &mut self.departed {
            departed.records.extend(flow.gaps());
        }
        self.records.push(flow.record(Some(now), counts));
        self.free_slots.push(slot);
        out.tally(1);
        if self.work.is_program() && flow.at.key.flow < FIRST_OWN {
            self.follow_program(world, id, now, |work, actions| work.on_sent(now, flow.at.key.flow, actions));
        } else if let Some(job) = self.work.next_closed(now, flow.group) {
            let number = self.number();
            self.begin(world, id, now, job, number);
        }
    }

    /// Lets the program take a step, and does what it asks for.
    pub(super) fn follow_program(
        &mut self,
        world: &World,
        id: u32,
        now: Time,
        step: impl FnOnce(&mut HostWork, &mut Vec<Action>),
    ) {
        let mut actions = Vec::new();
        step(&mut self.work, &mut actions);
        for action in actions {
            match action {
                Action::Wake { at, op } => {
                    let rare = self.rare.get_or_insert_default();
                    rare.wakes_asked += 1;
                    world.calculations.fetch_add(1, Ordering::Relaxed);
                    rare.wakes.push(Reverse((at, rare.wakes_asked, op)));
                }
                Action::Send { dst, bytes, number, class, group } => {
                    let job = Job { group, class, ..Job::new(dst, bytes, now) };
                    self.begin(world, id, now, job, number);
                }
            }
        }
    }
}
