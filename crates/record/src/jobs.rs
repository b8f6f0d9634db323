//! What jobs took: their repetitions, their ranks, their collective operations.

use std::sync::Arc;

use indexmap::IndexMap;
use netloom_units::Time;
use serde::{Deserialize, Serialize};

use crate::records::picoseconds;

/// What is recorded of the jobs of a run; nothing where there are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JobRecords {
    /// The jobs.
    pub jobs: Vec<JobNames>,
    /// Their repetitions, in order of (`job`, `repetition`).
    pub repetitions: Vec<JobRecord>,
    /// What the ranks did in them, in order of (`job`, `rank`, `repetition`).
    pub ranks: Vec<RankRecord>,
    /// Collective operations, in order of (`job`, `repetition`, `start`, `collective`).
    pub collectives: Vec<CollectiveRecord>,
    /// What ranks did when, where it was asked for, in order of (`job`, `rank`, `start`).
    pub activities: Vec<ActivityRecord>,
    /// What became of the operations of ranks, where it was asked for, in order of (`job`, `rank`, `start`).
    pub operations: Vec<OperationRecord>,
}

/// A job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobNames {
    /// What it is called.
    pub name: String,
    /// How many ranks it has.
    pub ranks: u32,
    /// How often it does its work.
    pub repetitions: u32,
}

/// One repetition of a job. Times of ranks are means over all of them, rounded down.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobRecord {
    /// Which job: a place in [`JobRecords::jobs`].
    pub job: u16,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// How many ranks the job has.
    pub ranks: u32,
    /// When the first rank began.
    pub start: Time,
    /// When the last rank had finished; `None` if the run ended before.
    pub end: Option<Time>,
    /// From the one to the other.
    pub time: Option<Time>,
    /// As in [`RankRecord`].
    pub computation: Time,
    /// As in [`RankRecord`].
    pub exposed: Time,
    /// As in [`RankRecord`].
    pub waiting: Time,
    /// Payload of the messages that the ranks sent each other.
    pub bytes: u64,
    /// Their number.
    pub messages: u64,
}

/// What one rank did in one repetition of its job. `computation`, `exposed` and `waiting` make up the time from `start` to `end`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RankRecord {
    /// Which job: a place in [`JobRecords::jobs`].
    pub job: u16,
    /// The rank, from 0.
    pub rank: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// The host on which it sits; with servers, the server or GPU.
    pub host: u32,
    /// When it began.
    pub start: Time,
    /// When it had finished; `None` if the run ended before.
    pub end: Option<Time>,
    /// Time in which some CPU of it calculated.
    pub computation: Time,
    /// Exposed communication: time in which it did not compute and a message was under way that it had sent, or whose arrival it waited for next.
    pub exposed: Time,
    /// Time in which it did not compute and waited for a message that the other rank had not sent yet.
    pub waiting: Time,
    /// Payload of the messages that it sent.
    pub bytes: u64,
    /// Their number.
    pub messages: u64,
}

/// An interval in which a rank did one thing. Those of a rank make up its repetitions without gaps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ActivityRecord {
    /// Which job: a place in [`JobRecords::jobs`].
    pub job: u16,
    /// The rank, from 0.
    pub rank: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// `computing`; `sending`, if it did not compute and a message of its own had not left completely; `waiting` for messages, if neither.
    pub activity: Arc<str>,
    /// Its beginning.
    pub start: Time,
    /// Its end.
    pub end: Time,
    /// The source of the flow whose arrival ended the wait.
    pub src: Option<u64>,
    /// The flow's number at its source.
    pub flow: Option<u64>,
}

/// One operation of a rank's program in one repetition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationRecord {
    /// Which job: a place in [`JobRecords::jobs`].
    pub job: u16,
    /// The rank, from 0.
    pub rank: u32,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Its number in the rank's program, from 0.
    pub operation: u32,
    /// `computation`, `send`, `receive`, or `ideal-communication`: communication that takes a known time and is not simulated.
    pub kind: Arc<str>,
    /// When it began: a receive when it was posted.
    pub start: Time,
    /// When it had finished: a send when the transport was done with the message; `None` if the run ended before.
    pub end: Option<Time>,
    /// The operation of the same rank that let it begin, by its own end or beginning or by leaving the CPU; of a receive that a message to oneself ended, the send.
    /// `None` if it began with the repetition.
    pub after: Option<u64>,
    /// The source of its message: of a receive the one whose arrival ended it, absent if that had arrived before.
    pub src: Option<u64>,
    /// The message's number at its source, as in the flows.
    pub flow: Option<u64>,
    /// The collective operation that it is a part of: [`CollectiveRecord::collective`].
    pub collective: Option<u64>,
    /// Payload of a send.
    pub bytes: u64,
    /// What the workload's file calls it; empty if it has no label there.
    pub label: Arc<str>,
}

/// One collective operation in one repetition of a job.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CollectiveRecord {
    /// Which job: a place in [`JobRecords::jobs`].
    pub job: u16,
    /// Which repetition, from 0.
    pub repetition: u32,
    /// Its number among those of a repetition, from 0.
    pub collective: u32,
    /// What it does, by NCCL's names: `all-reduce`, `all-gather`, …
    pub operation: Arc<str>,
    /// What the program calls it; empty if it has no name.
    pub name: Arc<str>,
    /// What the program calls the ranks that take part; empty if they have no name.
    pub group: Arc<str>,
    /// How many take part.
    pub ranks: u32,
    /// Size as NCCL-tests count it.
    pub bytes: u64,
    /// When the first rank came to it.
    pub start: Time,
    /// When the last rank came to it.
    pub last_start: Time,
    /// When the last rank had done its part; `None` if the run ended before.
    pub end: Option<Time>,
    /// From `start` to `end`.
    pub time: Option<Time>,
    /// Algorithm bandwidth: `bytes` over `time`, in bit/s, rounded down; `None` for a barrier.
    pub algbw: Option<u64>,
    /// Bus bandwidth: the same times NCCL's factor of the operation, which makes it comparable to the rate of a link.
    pub busbw: Option<u64>,
}

impl CollectiveRecord {
    /// Sets the time and the bandwidths of one that ended; `factor`, a fraction, is bus bandwidth over algorithm bandwidth, if it moves data.
    pub fn complete(&mut self, end: Time, factor: Option<(u32, u32)>) {
        const BIT_PS_PER_BYTE_S: u128 = 8_000_000_000_000;
        let time = end.saturating_sub(self.start);
        (self.end, self.time) = (Some(end), Some(time));
        if let Some((above, below)) = factor.filter(|_| time > Time::ZERO) {
            let bandwidth = |above: u32, below: u32| {
                let bits = u128::from(self.bytes) * BIT_PS_PER_BYTE_S * u128::from(above);
                u64::try_from(bits / (u128::from(time.0) * u128::from(below))).unwrap_or(u64::MAX)
            };
            (self.algbw, self.busbw) = (Some(bandwidth(1, 1)), Some(bandwidth(above, below)));
        }
    }
}

/// What a job took, over all of its repetitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JobSummary {
    /// How many ranks it has.
    pub ranks: u32,
    /// How often it was to do its work.
    pub repetitions: u32,
    /// How many repetitions all ranks finished.
    pub completed: u32,
    /// When its first rank began; `None` if none did.
    #[serde(rename = "start_ps", with = "picoseconds::option")]
    pub start: Option<Time>,
    /// When its last rank had finished; `None` if the run ended before.
    #[serde(rename = "end_ps", with = "picoseconds::option")]
    pub end: Option<Time>,
    /// From the one to the other.
    #[serde(rename = "job_time_ps", with = "picoseconds::option")]
    pub job_time: Option<Time>,
    /// The same divided by the number of repetitions, rounded down.
    #[serde(rename = "step_time_ps", with = "picoseconds::option")]
    pub step_time: Option<Time>,
    /// Time that a rank computed, as a mean over ranks, rounded down.
    #[serde(rename = "computation_ps", with = "picoseconds")]
    pub computation: Time,
    /// Exposed communication of a rank, as a mean over ranks, rounded down.
    #[serde(rename = "exposed_ps", with = "picoseconds")]
    pub exposed: Time,
    /// Time that a rank waited for others that had not sent yet, as a mean over ranks, rounded down.
    #[serde(rename = "waiting_ps", with = "picoseconds")]
    pub waiting: Time,
    /// Share of the ranks' time that was exposed communication.
    pub exposed_share: f64,
    /// Payload of the messages that the ranks sent each other.
    pub bytes: u64,
    /// Their number.
    pub messages: u64,
    /// Collective operations that ended.
    pub collectives: u64,
    /// Algorithm bandwidth of those that move data: their bytes over their times; `None` if there are none.
    pub algbw_bps: Option<f64>,
    /// Bus bandwidth, likewise.
    pub busbw_bps: Option<f64>,
}

impl JobRecords {
    /// Whether the run has no jobs.
    pub fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// What every job took, by its name.
    pub fn summaries(&self) -> IndexMap<String, JobSummary> {
        (0..=u16::MAX)
            .zip(&self.jobs)
            .map(|(job, names)| (names.name.clone(), self.summary(job, names)))
            .collect()
    }

    fn summary(&self, job: u16, names: &JobNames) -> JobSummary {
        // In order of jobs.
        fn of<R>(rows: &[R], job: u16, number: impl Fn(&R) -> u16) -> &[R] {
            let from = rows.partition_point(|row| number(row) < job);
            &rows[from..rows.partition_point(|row| number(row) <= job)]
        }
        let rounds = of(&self.repetitions, job, |row| row.job);
        let ranks = of(&self.ranks, job, |row| row.job);
        let collectives = of(&self.collectives, job, |row| row.job);
        let ended = rounds.iter().filter_map(|round| round.end);
        let completed = ended.clone().count();
        let start = rounds.iter().map(|round| round.start).min();
        let is_done = completed == names.repetitions as usize && completed > 0;
        let end = ended.max().filter(|_| is_done);
        let job_time = end.zip(start).map(|(end, start)| end.saturating_sub(start));
        let sum = |of: fn(&RankRecord) -> Time| ranks.iter().map(|rank| u128::from(of(rank).0)).sum::<u128>();
        let (computation, exposed, waiting) =
            (sum(|rank| rank.computation), sum(|rank| rank.exposed), sum(|rank| rank.waiting));
        let mean = |sum: u128| Time(u64::try_from(sum / u128::from(names.ranks.max(1))).unwrap_or(u64::MAX));
        let whole = computation + exposed + waiting;
        let bandwidth = |of: fn(&CollectiveRecord) -> Option<u64>| {
            let moved = collectives.iter().filter_map(|one| Some((of(one)? as f64, one.time?.0 as f64)));
            let (bits, time) =
                moved.fold((0.0, 0.0), |(bits, all), (bps, time)| (bits + bps * time, all + time));
            (time > 0.0).then(|| bits / time)
        };
        JobSummary {
            ranks: names.ranks,
            repetitions: names.repetitions,
            completed: u32::try_from(completed).unwrap_or(u32::MAX),
            start,
            end,
            job_time,
            step_time: job_time.map(|time| Time(time.0 / u64::from(names.repetitions.max(1)))),
            computation: mean(computation),
            exposed: mean(exposed),
            waiting: mean(waiting),
            exposed_share: if whole == 0 { 0.0 } else { exposed as f64 / whole as f64 },
            bytes: rounds.iter().map(|round| round.bytes).fold(0, u64::saturating_add),
            messages: rounds.iter().map(|round| round.messages).sum(),
            collectives: collectives.iter().filter(|one| one.end.is_some()).count() as u64,
            algbw_bps: bandwidth(|one| one.algbw),
            busbw_bps: bandwidth(|one| one.busbw),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::records;

    #[test]
    fn a_summary_is_about_one_job_and_all_of_its_repetitions() {
        let mut jobs = records().jobs;
        jobs.jobs[0].repetitions = 2;
        let summary = jobs.summaries()["llama"].clone();
        assert_eq!((summary.completed, summary.job_time, summary.step_time), (1, None, None));
        let later = |end| JobRecord {
            repetition: 1,
            start: Time::from_us(8),
            end,
            bytes: 70,
            ..jobs.repetitions[0].clone()
        };
        jobs.repetitions.push(later(Some(Time::from_us(15))));
        jobs.jobs.push(JobNames { name: "other".to_owned(), ranks: 1, repetitions: 1 });
        let other = RankRecord { job: 1, waiting: Time::from_us(100), ..RankRecord::default() };
        jobs.ranks.push(other);
        let summaries = jobs.summaries();
        let summary = &summaries["llama"];
        assert_eq!((summary.job_time, summary.step_time), (Some(Time::from_us(15)), Some(Time(7_500_000))));
        assert_eq!((summary.computation, summary.waiting), (Time::from_us(4), Time::from_us(2)));
        assert_eq!((summary.exposed_share, summary.bytes, summary.collectives), (3.0 / 9.0, 5070, 1));
        // 5000 bytes in five microseconds; of two ranks a bus carries as much.
        assert_eq!((summary.algbw_bps, summary.busbw_bps), (Some(8e9), Some(8e9)));
        assert_eq!((summaries["other"].start, summaries["other"].waiting), (None, Time::from_us(100)));
    }
}
