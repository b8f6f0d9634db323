//! What a C program drives: a run, and what each of its messages is called there.

use std::path::Path;

use netloom_record::{Existing, OutcomeWriter};
use netloom_scenario::{DrivenRun, Node, Source};
use netloom_sim::Order;
use netloom_units::Time;

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

/// A run that C drives; `netloom_simulation` of the header.
#[derive(Debug)]
pub struct Simulation {
    /// Absent once the run has ended.
    run: Option<DrivenRun>,
    hosts: u32,
    /// Every message with its tag, in order of their tickets.
    sent: Vec<(Order, u64)>,
    reaction: Time,
}

impl Simulation {
    pub(crate) fn new(source: &Source) -> Result<Self, String> {
        let made = Node::parse(source).and_then(DrivenRun::new);
        let run = made.map_err(|problems| problems.to_string())?;
        let hosts = run.run().hosts();
        Ok(Simulation { run: Some(run), hosts, sent: Vec::new(), reaction: Time::ZERO })
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
        self.run()?.go(|run| run.set_reaction(reaction, 1)).map_err(|error| error.to_string())?;
        self.reaction = reaction;
        Ok(())
    }

    pub(crate) fn set_threads(&mut self, threads: u32) -> Result<(), String> {
        let reaction = self.reaction;
        self.run()?.go(|run| run.set_reaction(reaction, threads as usize)).map_err(|error| error.to_string())
    }

    pub(crate) fn start(&mut self, order: Order, tag: u64) -> Result<(), String> {
        self.run()?.go(|run| run.start(order)).map_err(|error| error.to_string())?;
        self.sent.push((order, tag));
        Ok(())
    }

    pub(crate) fn run_until(&mut self, until: Time) -> Result<(), String> {
        self.run()?.go(|run| run.run_until(until, |_| true));
        Ok(())
    }

    pub(crate) fn next_completion(&mut self, until: Time) -> Result<Option<Completion>, String> {
        let found = self.run()?.go(|run| run.next_completion(until, |_| true));
        Ok(found.map(|found| {
            let (order, tag) = self.sent[found.ticket.0 as usize];
            Completion {
                tag,
                size: order.bytes.0,
                start_ps: order.at.0,
                time_ps: found.at.0,
                src: order.src,
                dst: order.dst,
            }
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
