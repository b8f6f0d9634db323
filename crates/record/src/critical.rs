//! The critical path of a job: the chain of computation and messages of which every part had to end before the next could begin. To shorten a repetition, something on it must become
//! shorter.
//!
//! It is followed backwards from the operation that ended last. What let an operation begin is known ([`OperationRecord::after`]); a receive ended because a message arrived, and the
//! chain goes on at its sender. Every instant of the repetition belongs to one step.

use std::collections::HashMap;
use std::sync::Arc;

use netloom_units::Time;

use crate::jobs::{CollectiveRecord, OperationRecord, RankRecord};
use crate::records::FlowRecord;

/// A part of a critical path: an interval in which the job waited for one thing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalStep {
    /// The rank that it waited for; of a message, its sender.
    pub rank: u32,
    /// What was done.
    pub kind: CriticalKind,
    /// Its beginning.
    pub start: Time,
    /// Its end: the beginning of the next.
    pub end: Time,
    /// The operation of `rank`.
    pub operation: u32,
    /// What the workload's file calls that operation; empty if it has no label there.
    pub label: Arc<str>,
    /// The collective operation that it is a part of: its name or else what it does.
    pub collective: Option<Arc<str>>,
    /// Of a message: its flow.
    pub message: Option<CriticalMessage>,
}

/// The message of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CriticalMessage {
    /// Sending host; with servers, the server or GPU.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// The flow's number at its source.
    pub flow: u32,
    /// Payload.
    pub bytes: u64,
    /// What one idle path would have taken.
    pub ideal: Time,
}

/// What a job waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CriticalKind {
    /// The rank to begin, later than the first one of the repetition.
    LateStart,
    /// Computation.
    Computation,
    /// A message on its way, from when it was handed to the transport to its arrival.
    Message,
    /// The transport of a message that is not waited for elsewhere: until it is done, the rank does not go on.
    Sending,
    /// CPU time of sends and receives, and waiting for that CPU.
    Overhead,
    /// Communication of a known time, which is not simulated.
    IdealCommunication,
}

impl CriticalKind {
    /// Its name in tables.
    pub fn name(self) -> &'static str {
        match self {
            CriticalKind::LateStart => "late-start",
            CriticalKind::Computation => "computation",
            CriticalKind::Message => "message",
            CriticalKind::Sending => "sending",
            CriticalKind::Overhead => "overhead",
            CriticalKind::IdealCommunication => "ideal-communication",
        }
    }
}

/// Why a path cannot be told.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CriticalError {
    /// Nothing was recorded of this repetition.
    #[error(
        "no operations were recorded of job {job}, repetition {repetition}: expected a program that ran with `measure.operations = true`"
    )]
    Nothing {
        /// The job's number.
        job: u16,
        /// The repetition.
        repetition: u32,
    },
    /// The run ended before.
    #[error("repetition {0} had not ended when the run did")]
    Unfinished(u32),
    /// Records that do not fit each other.
    #[error("the tables do not fit each other: {0}")]
    Misfit(&'static str),
}

/// The operations of a run, and what is known of what they waited for.
#[derive(Debug)]
pub struct CriticalPaths<'a> {
    operations: &'a [OperationRecord],
    ranks: &'a [RankRecord],
    /// By job, rank, repetition and number.
    by_number: HashMap<(u16, u32, u32, u64), &'a OperationRecord>,
    /// By the message's source and its number there.
    sends: HashMap<(u64, u64), &'a OperationRecord>,
    /// Likewise.
    flows: HashMap<(u64, u64), &'a FlowRecord>,
    /// By job and number: what collective operations are called, or else what they do.
    collectives: HashMap<(u16, u64), &'a Arc<str>>,
}

impl<'a> CriticalPaths<'a> {
    /// Takes the tables of a whole run.
    pub fn new(
        operations: &'a [OperationRecord],
        ranks: &'a [RankRecord],
        flows: &'a [FlowRecord],
        collectives: &'a [CollectiveRecord],
    ) -> Self {
        let number = |of: &OperationRecord| (of.job, of.rank, of.repetition, u64::from(of.operation));
        let sends = operations.iter().filter(|operation| &*operation.kind == "send");
        let name = |of: &'a CollectiveRecord| if of.name.is_empty() { &of.operation } else { &of.name };
        CriticalPaths {
            operations,
            ranks,
            by_number: operations.iter().map(|operation| (number(operation), operation)).collect(),
            sends: sends.filter_map(|send| Some(((send.src?, send.flow?), send))).collect(),
            flows: flows.iter().map(|flow| ((flow.src.into(), flow.flow.into()), flow)).collect(),
            collectives: collectives.iter().map(|of| ((of.job, of.collective.into()), name(of))).collect(),
        }
    }

    /// The steps of a repetition of a job, in order of time.
    ///
    /// # Errors
    /// If its operations were not recorded, or not all of them had ended; if the tables do not fit each other.
    pub fn of(&self, job: u16, repetition: u32) -> Result<Vec<CriticalStep>, CriticalError> {
        let is_its =
            |operation: &&OperationRecord| (operation.job, operation.repetition) == (job, repetition);
        let of_repetition = || self.operations.iter().filter(is_its);
        let its_ranks = || self.ranks.iter().filter(|rank| (rank.job, rank.repetition) == (job, repetition));
        // The operations of units of switches come after those of the ranks, and do not end the job.
        let ranks = its_ranks().map(|rank| rank.rank + 1).max().unwrap_or(0);
        let of_ranks = of_repetition().filter(|operation| operation.rank < ranks);
        let last = of_ranks.max_by_key(|operation| (operation.end, operation.start));
        let last = last.ok_or(CriticalError::Nothing { job, repetition })?;
        if its_ranks().any(|rank| rank.end.is_none())
            || of_repetition().any(|operation| operation.end.is_none())
        {
            return Err(CriticalError::Unfinished(repetition));
        }
        let mut steps = self.follow(last)?;
        let begins = its_ranks().map(|rank| rank.start).min();
        if let Some((start, first)) =
            begins.zip(steps.last().cloned()).filter(|(begins, first)| *begins < first.start)
        {
            let (kind, end) = (CriticalKind::LateStart, first.start);
            steps.push(CriticalStep { kind, start, end, collective: None, message: None, ..first });
        }
        steps.reverse();
        Ok(steps)
    }

    /// The operation that let another one begin; `None` if that began with the repetition.
    fn before(&self, operation: &OperationRecord) -> Result<Option<&'a OperationRecord>, CriticalError> {
        let OperationRecord { job, rank, repetition, after, .. } = *operation;
        let Some(after) = after else { return Ok(None) };
        let before = self.by_number.get(&(job, rank, repetition, after)).copied();
        before.map(Some).ok_or(CriticalError::Misfit("an operation began after one that is missing"))
    }

    /// Goes back from the end of an operation: the steps, the last one first.
    fn follow(&self, last: &'a OperationRecord) -> Result<Vec<CriticalStep>, CriticalError> {
        let mut steps = Vec::new();
        let mut at = last.end.unwrap_or(last.start);
        let mut operation = last;
        // Whether the path comes to the end of the operation, or to an instant at which it ran.
        let mut is_ended = true;
        loop {
            if is_ended {
                (operation, at) = self.before_end(operation, at, &mut steps)?;
            }
            let Some(before) = self.before(operation)? else { break };
            is_ended = before.end == Some(at);
            if !is_ended {
                // It began then, or left its CPU then.
                self.add(&mut steps, before, CriticalKind::Overhead, (before.start, at), None);
                at = before.start;
            }
            operation = before;
        }
        Ok(steps)
    }

    /// What an operation that ended at `at` did, back to the instant at which something else let it begin; and whose instant that is.
    fn before_end(
        &self,
        operation: &'a OperationRecord,
        at: Time,
        steps: &mut Vec<CriticalStep>,
    ) -> Result<(&'a OperationRecord, Time), CriticalError> {
        let message = operation.src.zip(operation.flow);
        match (&*operation.kind, message) {
            ("receive", Some(message)) => {
                let misfit = CriticalError::Misfit("a message that arrived is missing");
                let (send, flow) =
                    self.sends.get(&message).zip(self.flows.get(&message)).ok_or(misfit.clone())?;
                let arrived = flow.start + flow.fct.ok_or(misfit)?;
                self.add(steps, operation, CriticalKind::Overhead, (arrived, at), None);
                self.add(steps, send, CriticalKind::Message, (flow.start, arrived.min(at)), Some(flow));
                self.add(steps, send, CriticalKind::Overhead, (send.start, flow.start), None);
                Ok((send, send.start))
            }
            ("receive", None) => {
                let before = self.before(operation)?;
                let own = before.filter(|before| &*before.kind == "send" && before.src.is_none());
                match own.and_then(|send| Some((send, send.end?))) {
                    // A message to oneself came with its send.
                    Some((send, sent)) if sent > operation.start => {
                        self.add(steps, operation, CriticalKind::Overhead, (sent, at), None);
                        self.before_end(send, sent, steps)
                    }
                    // The message had arrived before.
                    _ => {
                        self.add(steps, operation, CriticalKind::Overhead, (operation.start, at), None);
                        Ok((operation, operation.start))
                    }
                }
            }
            ("send", message) => {
                let flow = message.and_then(|message| self.flows.get(&message)).copied();
                let handed_over = flow.map_or(at, |flow| flow.start.min(at));
                self.add(steps, operation, CriticalKind::Sending, (handed_over, at), flow);
                self.add(steps, operation, CriticalKind::Overhead, (operation.start, handed_over), None);
                Ok((operation, operation.start))
            }
            (kind, _) => {
                let is_computation = kind == "computation";
                let kind =
                    if is_computation { CriticalKind::Computation } else { CriticalKind::IdealCommunication };
                self.add(steps, operation, kind, (operation.start, at), None);
                Ok((operation, operation.start))
            }
        }
    }

    /// Adds the step that comes before those that are there, if it lasts.
    fn add(
        &self,
        steps: &mut Vec<CriticalStep>,
        operation: &OperationRecord,
        kind: CriticalKind,
        (start, end): (Time, Time),
        flow: Option<&FlowRecord>,
    ) {
        if start >= end {
            return;
        }
        let message = |flow: &FlowRecord| CriticalMessage {
            src: flow.src,
            dst: flow.dst,
            flow: flow.flow,
            bytes: flow.bytes,
            ideal: flow.ideal_fct,
        };
        let name = |number| self.collectives.get(&(operation.job, number)).map(|&name| Arc::clone(name));
        steps.push(CriticalStep {
            rank: operation.rank,
            kind,
            start,
            end,
            operation: operation.operation,
            label: operation.label.clone(),
            collective: operation.collective.and_then(name),
            message: flow.map(message),
        });
    }
}

/// What a part of a critical path comes to, by what it is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CriticalSum {
    /// What was done.
    pub kind: CriticalKind,
    /// Of which collective operation, by its name or what it does; `None` beside those.
    pub collective: Option<Arc<str>>,
    /// Time on the path.
    pub time: Time,
    /// Of messages: how much of that idle paths would have taken.
    pub ideal: Option<Time>,
    /// Steps.
    pub steps: usize,
}

/// The sums of a path, the longest first.
pub fn critical_sums(steps: &[CriticalStep]) -> Vec<CriticalSum> {
    let mut sums: Vec<CriticalSum> = Vec::new();
    for step in steps {
        let at = sums.iter().position(|sum| (sum.kind, &sum.collective) == (step.kind, &step.collective));
        let at = at.unwrap_or_else(|| {
            let is_message = matches!(step.kind, CriticalKind::Message);
            let ideal = is_message.then_some(Time::ZERO);
            let collective = step.collective.clone();
            sums.push(CriticalSum { kind: step.kind, collective, time: Time::ZERO, ideal, steps: 0 });
            sums.len() - 1
        });
        let sum = &mut sums[at];
        let lasts = step.end - step.start;
        sum.time += lasts;
        if let (Some(ideal), Some(message)) = (&mut sum.ideal, step.message) {
            *ideal += message.ideal.min(lasts);
        }
        sum.steps += 1;
    }
    sums.sort_by_key(|sum| std::cmp::Reverse(sum.time));
    sums
}
