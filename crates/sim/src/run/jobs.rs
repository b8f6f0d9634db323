//! After the run: what ranks noted of their programs, and what flows show of other jobs, becomes records.

use std::collections::BTreeMap;
use std::sync::Arc;

use netloom_record::{
    ActivityRecord, CollectiveRecord, FlowRecord, JobNames, JobRecord, JobRecords, OperationRecord,
    RankRecord,
};
use netloom_units::{Time, narrow};
use netloom_workload::{ActivityKind, JobPlan, OperationKind, RankLog};
use rustc_hash::FxHashMap;

/// What is known of the jobs while the flows go by, in order of (source, number).
pub struct Jobs<'a> {
    plans: &'a [JobPlan],
    /// In order of (job, rank).
    logs: Vec<RankLog>,
    /// The waits of all ranks that ended with a message, in order of that message's source and number.
    waits: Vec<Pending>,
    /// The next of them.
    next: usize,
    /// Per log and repetition: the part of the time blocked that was communication.
    exposed: Vec<Vec<Time>>,
    /// By group: a job that is no program, of which flows say all that is known.
    by_flows: FxHashMap<u16, u16>,
    counted: BTreeMap<u16, Counted>,
}

/// A wait of a rank for a message.
struct Pending {
    message: (u32, u32),
    log: u32,
    wait: u32,
}

/// What flows say of a job.
#[derive(Default)]
struct Counted {
    flows: u64,
    completed: u64,
    start: Option<Time>,
    /// By host: when its last message of the job had come or gone, bytes and messages that it sent.
    hosts: FxHashMap<u32, (Time, u64, u64)>,
}

impl<'a> Jobs<'a> {
    /// The jobs of a plan, with what ranks noted.
    pub(crate) fn new(plans: &'a [JobPlan], mut logs: Vec<RankLog>) -> Self {
        // Of units of switches, which are no ranks, only what ranks waited for is kept.
        for log in &mut logs {
            let is_rank = (log.rank as usize) < plans[usize::from(log.job)].hosts.len();
            if !is_rank {
                let operations = std::mem::take(&mut log.operations);
                *log = RankLog { job: log.job, rank: log.rank, operations, ..RankLog::default() };
            }
        }
        logs.sort_by_key(|log| (log.job, log.rank));
        let mut waits = Vec::new();
        for (of, log) in (0..).zip(&logs) {
            waits.extend((0..).zip(&log.waits).map(|(number, wait)| Pending {
                message: (wait.src, wait.number),
                log: of,
                wait: number,
            }));
        }
        waits.sort_unstable_by_key(|pending| pending.message);
        let exposed = logs.iter().map(|log| vec![Time::ZERO; log.rounds.len()]).collect();
        let mut by_flows = FxHashMap::default();
        for (number, plan) in (0..).zip(plans).filter(|(_, plan)| !plan.takes_notes()) {
            by_flows.extend(plan.groups.clone().map(|group| (group, number)));
        }
        let counted = by_flows.values().map(|&job| (job, Counted::default())).collect();
        Jobs { plans, logs, waits, next: 0, exposed, by_flows, counted }
    }

    /// Takes note of the next flow.
    pub fn add(&mut self, flow: &FlowRecord) {
        let message = (flow.src, flow.flow);
        while let Some(pending) = self.waits.get(self.next).filter(|pending| pending.message <= message) {
            if pending.message == message {
                let log = pending.log as usize;
                let wait = &self.logs[log].waits[pending.wait as usize];
                // Before it was sent, the rank waited for its sender.
                let exposed = wait.until.saturating_sub(wait.from.max(flow.start));
                self.exposed[log][wait.round as usize] += exposed;
            }
            self.next += 1;
        }
        if self.by_flows.is_empty() {
            return;
        }
        let job = self.by_flows.get(&flow.group);
        if let Some(counted) = job.and_then(|job| self.counted.get_mut(job)) {
            counted.add(flow);
        }
    }

    /// The records.
    pub fn finish(self) -> JobRecords {
        let Jobs { plans, logs, exposed, counted, .. } = self;
        let names = |plan: &JobPlan| JobNames {
            name: plan.name.clone(),
            ranks: narrow::<u32>(plan.hosts.len()),
            repetitions: plan.repetitions,
        };
        let mut records = JobRecords { jobs: plans.iter().map(names).collect(), ..JobRecords::default() };
        for (log, exposed) in logs.iter().zip(&exposed) {
            let hosts = &plans[usize::from(log.job)].hosts;
            for ((repetition, round), &exposed) in (0..).zip(&log.rounds).zip(exposed) {
                records.ranks.push(RankRecord {
                    job: log.job,
                    rank: log.rank,
                    repetition,
                    host: hosts[log.rank as usize],
                    start: round.start,
                    end: round.end,
                    computation: round.computing,
                    exposed: round.sending + exposed,
                    waiting: round.blocked.saturating_sub(exposed),
                    bytes: round.bytes.0,
                    messages: round.messages,
                });
            }
        }
        records.activities = activities(&logs);
        records.operations = operations(plans, &logs);
        for (job, counted) in counted {
            records.ranks.extend(counted.ranks(job, &plans[usize::from(job)]));
        }
        records.ranks.sort_by_key(|rank| (rank.job, rank.rank, rank.repetition));
        records.repetitions = repetitions(plans, &records.ranks);
        records.collectives = collectives(plans, &logs);
        records
    }
}

impl Counted {
    fn add(&mut self, flow: &FlowRecord) {
        self.flows += 1;
        self.start = Some(self.start.map_or(flow.start, |start| start.min(flow.start)));
        let end = flow.fct.filter(|_| !flow.stream).map(|fct| flow.start + fct);
        self.completed += u64::from(end.is_some());
        let (last, bytes, messages) = self.hosts.entry(flow.src).or_default();
        (*last, *bytes, *messages) =
            ((*last).max(end.unwrap_or_default()), *bytes + flow.bytes, *messages + 1);
        let (last, ..) = self.hosts.entry(flow.dst).or_default();
        *last = (*last).max(end.unwrap_or_default());
    }

    /// All ranks begin with the job's first message, and end with their own last one.
    fn ranks(&self, job: u16, plan: &JobPlan) -> Vec<RankRecord> {
        let Some(start) = self.start else { return Vec::new() };
        let is_done = self.completed == self.flows && plan.messages.is_none_or(|all| self.flows == all);
        let of = |(rank, &host): (u32, &u32)| {
            let (last, bytes, messages) = self.hosts.get(&host).copied().unwrap_or_default();
            let last = last.max(start);
            RankRecord {
                job,
                rank,
                host,
                start,
                end: Some(last).filter(|_| is_done),
                exposed: last - start,
                bytes,
                messages,
                ..RankRecord::default()
            }
        };
        (0..).zip(&plan.hosts).map(of).collect()
    }
}

/// The repetitions of all jobs, from what their ranks did in them.
fn repetitions(plans: &[JobPlan], ranks: &[RankRecord]) -> Vec<JobRecord> {
    let mut all: BTreeMap<(u16, u32), (JobRecord, [u128; 3], u32)> = BTreeMap::new();
    for rank in ranks {
        let (record, sums, ended) = all.entry((rank.job, rank.repetition)).or_insert_with(|| {
            let record = JobRecord {
                job: rank.job,
                repetition: rank.repetition,
                start: rank.start,
                ..Default::default()
            };
            (record, [0; 3], 0)
        });
        record.start = record.start.min(rank.start);
        record.end = record.end.max(rank.end);
        *ended += u32::from(rank.end.is_some());
        for (sum, time) in sums.iter_mut().zip([rank.computation, rank.exposed, rank.waiting]) {
            *sum += u128::from(time.0);
        }
        record.bytes += rank.bytes;
        record.messages += rank.messages;
    }
    let complete = |(mut record, sums, ended): (JobRecord, [u128; 3], u32)| {
        record.ranks = narrow::<u32>(plans[usize::from(record.job)].hosts.len());
        record.end = record.end.filter(|_| ended == record.ranks);
        record.time = record.end.map(|end| end - record.start);
        let mean = |sum: u128| Time(narrow::<u64>(sum / u128::from(record.ranks.max(1))));
        [record.computation, record.exposed, record.waiting] = sums.map(mean);
        record
    };
    all.into_values().map(complete).collect()
}

/// What ranks did when, in order of (job, rank, start).
fn activities(logs: &[RankLog]) -> Vec<ActivityRecord> {
    let names: [Arc<str>; 3] = ActivityKind::ALL.map(|kind| kind.name().into());
    let mut records = Vec::new();
    for log in logs {
        records.extend(log.activities.iter().map(|activity| ActivityRecord {
            job: log.job,
            rank: log.rank,
            repetition: activity.round,
            activity: names[activity.kind as usize].clone(),
            start: activity.from,
            end: activity.until,
            src: activity.message.map(|(src, _)| src.into()),
            flow: activity.message.map(|(_, number)| number.into()),
        }));
    }
    records
}

/// What became of the operations of ranks, in order of (job, rank, start).
fn operations(plans: &[JobPlan], logs: &[RankLog]) -> Vec<OperationRecord> {
    let names: [Arc<str>; 4] = OperationKind::ALL.map(|kind| kind.name().into());
    let mut records = Vec::new();
    for log in logs {
        records.extend(log.operations.iter().map(|operation| OperationRecord {
            job: log.job,
            rank: log.rank,
            repetition: operation.round,
            operation: operation.op,
            kind: names[operation.kind as usize].clone(),
            start: operation.from,
            end: operation.until,
            after: operation.after.map(u64::from),
            src: operation.message.map(|(src, _)| src.into()),
            flow: operation.message.map(|(_, number)| number.into()),
            collective: operation.collective.map(u64::from),
            bytes: operation.bytes.0,
            label: plans[usize::from(log.job)].label(log.rank, operation.op),
        }));
    }
    records
}

/// The collective operations of all jobs.
fn collectives(plans: &[JobPlan], logs: &[RankLog]) -> Vec<CollectiveRecord> {
    let mut all: BTreeMap<(u16, u32, u32), (CollectiveRecord, u32)> = BTreeMap::new();
    for log in logs {
        for part in &log.collectives {
            let (record, ended) = all.entry((log.job, part.round, part.collective)).or_insert_with(|| {
                let record = CollectiveRecord {
                    job: log.job,
                    repetition: part.round,
                    collective: part.collective,
                    start: part.start,
                    ..CollectiveRecord::default()
                };
                (record, 0)
            });
            record.start = record.start.min(part.start);
            record.last_start = record.last_start.max(part.start);
            record.end = record.end.max(part.end);
            *ended += u32::from(part.end.is_some());
        }
    }
    let complete = |(mut record, ended): (CollectiveRecord, u32)| {
        let info = &plans[usize::from(record.job)].collectives()[record.collective as usize];
        record.operation = info.kind.name().into();
        (record.name, record.group) = (info.name.clone(), info.group.clone());
        (record.ranks, record.bytes) = (info.ranks, info.bytes.0);
        if let Some(end) = record.end.take().filter(|_| ended == info.parts) {
            record.complete(end, info.kind.bus_factor(info.ranks));
        }
        record
    };
    let mut records: Vec<_> = all.into_values().map(complete).collect();
    records.sort_by_key(|record| (record.job, record.repetition, record.start, record.collective));
    records
}
