//! What a C program drives: a run, and what each of its messages is called there.

use std::path::Path;

use netloom_record::{Existing, OutcomeWriter};
use netloom_scenario::{DrivenRun, Node, Source};
use netloom_sim::{Milestone, Order};
use netloom_units::{Bytes, Time};

/// The last byte of a message has arrived; `netloom_completion` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Completion {
    /// What the message was given when it was started.
    pub tag: u64,
    /// Payload in bytes.
    pub size: u64,
    /// When it was handed to the sender, in picoseconds.
    pub start_ps: u64,
    /// When its last byte arrived, in picoseconds.
    pub time_ps: u64,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
}

/// A message to start; `netloom_message` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Message {
    /// What its completion will carry.
    pub tag: u64,
    /// Payload in bytes.
    pub size: u64,
    /// When it starts, in picoseconds; 2⁶⁴ − 1: now.
    pub start_ps: u64,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Traffic class.
    pub traffic_class: u8,
}

/// A message has come to its end, at its receiver or at its sender; `netloom_event` of the header.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Event {
    /// Whose, and when.
    pub completion: Completion,
    /// 0: its last byte has arrived; 1: the sender has the last ACK.
    pub kind: u32,
    /// Nothing yet.
    pub reserved: u32,
}

/// A run that C drives; `netloom_simulation` of the header.
#[derive(Debug)]
pub struct Simulation {
    /// Absent once the run has ended.
    run: Option<DrivenRun>,
    hosts: u32,
    /// Every message with its tag, in order of their tickets.
    sent: Vec<(Order, u64)>,
}

impl Simulation {
    pub(crate) fn new(source: &Source) -> Result<Self, String> {
        let made = Node::parse(source).and_then(DrivenRun::new);
        let run = made.map_err(|problems| problems.to_string())?;
        let hosts = run.run().hosts();
        Ok(Simulation { run: Some(run), hosts, sent: Vec::new() })
    }

    fn run(&mut self) -> Result<&mut DrivenRun, String> {
        self.run.as_mut().ok_or_else(|| "the run has ended: netloom_finish was called".to_owned())
    }

    pub(crate) fn hosts(&self) -> u32 {
        self.hosts
    }

    pub(crate) fn now(&self) -> Time {
        self.run.as_ref().map_or(Time::ZERO, |run| run.run().now())
    }

    /// The instant at which a message starts that is sent now.
    pub(crate) fn earliest_start(&self) -> Time {
        self.run.as_ref().map_or(Time::ZERO, |run| run.run().earliest_start())
    }

    pub(crate) fn set_reaction(&mut self, reaction: Time) -> Result<(), String> {
        self.run()?.go(|run| run.set_reaction(reaction)).map_err(|error| error.to_string())
    }

    pub(crate) fn set_threads(&mut self, threads: u32) -> Result<(), String> {
        self.run()?.go(|run| run.set_threads(threads as usize)).map_err(|error| error.to_string())
    }

    pub(crate) fn report_acknowledged(&mut self) -> Result<(), String> {
        self.run()?.go(|run| run.report_acknowledged()).map_err(|error| error.to_string())
    }

    pub(crate) fn start(&mut self, order: Order, tag: u64) -> Result<(), String> {
        self.run()?.start(order).map_err(|error| error.to_string())?;
        self.sent.push((order, tag));
        Ok(())
    }

    /// Starts all messages or none.
    pub(crate) fn start_all(&mut self, messages: &[Message]) -> Result<(), String> {
        let now = self.earliest_start();
        let at = |message: &Message| if message.start_ps == u64::MAX { now } else { Time(message.start_ps) };
        let order = |message: &Message| {
            let &Message { size, src, dst, traffic_class: class, .. } = message;
            Order { src, dst, bytes: Bytes(size), at: at(message), class }
        };
        let orders: Vec<Order> = messages.iter().map(order).collect();
        let started = self.run()?.go(|run| run.start_all(&orders));
        started.map_err(|(place, error)| format!("messages[{place}].{error}"))?;
        self.sent.extend(orders.into_iter().zip(messages.iter().map(|message| message.tag)));
        Ok(())
    }

    pub(crate) fn run_until(&mut self, until: Time) -> Result<(), String> {
        self.run()?.go(|run| run.run_until(until, |_| true));
        Ok(())
    }

    pub(crate) fn next_completion(&mut self, until: Time) -> Result<Option<Completion>, String> {
        if self.run.as_ref().is_some_and(|run| run.run().reports_acknowledged()) {
            return Err("netloom_next_event is to be called after netloom_report_acknowledged".to_owned());
        }
        Ok(self.next_event(until)?.map(|event| event.completion))
    }

    pub(crate) fn next_event(&mut self, until: Time) -> Result<Option<Event>, String> {
        let found = self.run()?.next_completion(until);
        Ok(found.map(|found| {
            let (order, tag) = self.sent[found.ticket.0 as usize];
            let completion = Completion {
                tag,
                size: order.bytes.0,
                start_ps: order.at.0,
                time_ps: found.at.0,
                src: order.src,
                dst: order.dst,
            };
            let kind = match found.milestone {
                Milestone::Arrived => 0,
                Milestone::Acknowledged => 1,
            };
            Event { completion, kind, reserved: 0 }
        }))
    }

    pub(crate) fn finish(&mut self, folder: Option<&Path>) -> Result<(), String> {
        self.run()?;
        // Before the run is ended: a folder that cannot be written leaves it as it was.
        let writer = folder.map(|folder| OutcomeWriter::prepare(folder, Existing::Refuse)).transpose();
        let writer = writer.map_err(|error| error.to_string())?;
        let Some(run) = self.run.take() else { return Ok(()) };
        let result = run.finish().map_err(|error| error.to_string())?;
        let Some(writer) = writer else { return Ok(()) };
        writer
            .write(&result.scenario, &result.ran.summary, &result.records, &result.ran.performance)
            .map_err(|error| error.to_string())
    }
}
