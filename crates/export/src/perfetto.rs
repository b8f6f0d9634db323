//! What happened when, as a trace that Perfetto and chrome://tracing open.
//!
//! The file is JSON in Chrome's trace event format. Each job is a process with a thread per rank, on which lie the rank's repetitions and
//! inside them what it did; collective operations are asynchronous slices of the job. Each host with flows is a process
//! with a slice per flow; sampled channels are counters. Times are microseconds.

use std::collections::BTreeMap;

use netloom_record::{
    ActivityRecord, ChannelRecord, CollectiveRecord, FlowRecord, Outcome, OutcomeError, RankRecord,
    SampleRecord,
};
use netloom_units::Time;
use serde_json::{Value, json};

/// Flows that a browser shows without trouble.
const MOST_FLOWS: usize = 200_000;

/// The processes of channels and of hosts; those of jobs come before.
const LINKS: u64 = 1_000_000;
const HOSTS: u64 = 2_000_000;

/// A trace in Chrome's trace event format.
#[derive(Debug)]
pub struct Timeline {
    /// The file.
    pub text: String,
    /// Events in it.
    pub events: usize,
    /// Flows that are left out: all of an outcome with more than a browser shows without trouble, else 0.
    pub left_out: usize,
}

/// What happened when in an outcome of which channels were sampled at multiples of `sample`.
///
/// # Errors
/// A table that cannot be read.
pub fn perfetto(outcome: &Outcome, sample: Option<Time>) -> Result<Timeline, OutcomeError> {
    let jobs: Vec<&str> = outcome.summary.jobs.keys().map(String::as_str).collect();
    let mut events = Events::default();
    events.add_ranks(&jobs, &outcome.ranks()?, &outcome.activities()?);
    events.add_collectives(&outcome.collectives()?);
    let flows = outcome.flows()?;
    let shows_flows = flows.len() <= MOST_FLOWS;
    if shows_flows {
        events.add_flows(&flows);
    }
    events.add_links(&outcome.channels()?, outcome.samples()?, sample);
    let count = events.0.len();
    let text = json!({ "displayTimeUnit": "ns", "traceEvents": events.0 }).to_string();
    Ok(Timeline { text, events: count, left_out: if shows_flows { 0 } else { flows.len() } })
}

/// The events of a trace.
#[derive(Default)]
struct Events(Vec<Value>);

/// A time as the format has it.
fn us(time: Time) -> f64 {
    time.0 as f64 / 1e6
}

impl Events {
    /// Names a process, or one of its threads.
    fn name(&mut self, pid: u64, tid: Option<u64>, name: &str) {
        let kind = if tid.is_some() { "thread_name" } else { "process_name" };
        self.0.push(
            json!({ "ph": "M", "name": kind, "pid": pid, "tid": tid.unwrap_or(0), "args": { "name": name } }),
        );
    }

    /// A slice of a thread, which lies beside or inside others.
    fn slice(&mut self, (pid, tid): (u64, u64), name: &str, (start, end): (Time, Time), args: Value) {
        let lasts = us(end.saturating_sub(start));
        self.0.push(json!({ "ph": "X", "pid": pid, "tid": tid, "name": name, "ts": us(start), "dur": lasts, "args": args }));
    }

    /// A slice of a process, which may overlap others.
    fn overlapping(&mut self, pid: u64, (kind, name): (&str, &str), (start, end): (Time, Time), args: Value) {
        // The format wants an id that is unique among slices of a kind and process.
        let id = self.0.len();
        let event = |phase: &str, at: Time, args: Value| json!({ "ph": phase, "cat": kind, "id": id, "pid": pid, "tid": 0, "name": name, "ts": us(at), "args": args });
        self.0.push(event("b", start, args));
        self.0.push(event("e", end, json!({})));
    }

    fn add_ranks(&mut self, jobs: &[&str], ranks: &[RankRecord], activities: &[ActivityRecord]) {
        for (number, job) in (1..).zip(jobs) {
            self.name(number, None, &format!("job {job}"));
        }
        let place = |job: u16, rank: u32| (1 + u64::from(job), 1 + u64::from(rank));
        for rank in ranks {
            let (pid, tid) = place(rank.job, rank.rank);
            if rank.repetition == 0 {
                self.name(pid, Some(tid), &format!("rank {} on h{}", rank.rank, rank.host));
            }
            let Some(end) = rank.end else { continue };
            let args = json!({
                "computation_us": us(rank.computation), "exposed_us": us(rank.exposed), "waiting_us": us(rank.waiting),
                "bytes": rank.bytes, "messages": rank.messages,
            });
            let name = format!("repetition {}", rank.repetition);
            self.slice((pid, tid), &name, (rank.start, end), args);
        }
        for activity in activities {
            let args = match (activity.src, activity.flow) {
                (Some(src), Some(flow)) => {
                    json!({ "until the arrival of": format!("flow {flow} of h{src}") })
                }
                _ => json!({}),
            };
            let thread = place(activity.job, activity.rank);
            self.slice(thread, &activity.activity, (activity.start, activity.end), args);
        }
    }

    fn add_collectives(&mut self, collectives: &[CollectiveRecord]) {
        for collective in collectives {
            let Some(end) = collective.end else { continue };
            let name = match &*collective.name {
                "" => collective.operation.to_string(),
                name => format!("{} {name}", collective.operation),
            };
            let args = json!({
                "ranks": collective.ranks, "bytes": collective.bytes, "group": &*collective.group,
                "repetition": collective.repetition, "algbw_bps": collective.algbw, "busbw_bps": collective.busbw,
            });
            let of_job = 1 + u64::from(collective.job);
            self.overlapping(of_job, ("collective", &name), (collective.start, end), args);
        }
    }

    fn add_flows(&mut self, flows: &[FlowRecord]) {
        let mut last = None;
        for flow in flows {
            let Some(fct) = flow.fct else { continue };
            let pid = HOSTS + u64::from(flow.src);
            if last.replace(flow.src) != Some(flow.src) {
                self.name(pid, None, &format!("flows of h{}", flow.src));
            }
            let args = json!({
                "flow": flow.flow, "bytes": flow.bytes, "slowdown": fct.0 as f64 / flow.ideal_fct.0 as f64,
                "retransmissions": flow.retransmissions, "ecn_marks": flow.ecn_marks, "out_of_order": flow.ooo_packets,
            });
            let name = format!("h{} > h{}", flow.src, flow.dst);
            self.overlapping(pid, ("flow", &name), (flow.start, flow.start + fct), args);
        }
    }

    /// What channels carried in each interval of the samples, which are in order of time and left out where nothing happened.
    fn add_links(&mut self, channels: &[ChannelRecord], samples: Vec<SampleRecord>, interval: Option<Time>) {
        let Some(interval) = interval.filter(|_| !samples.is_empty()) else { return };
        self.name(LINKS, None, "links");
        let known: BTreeMap<u32, &ChannelRecord> =
            channels.iter().map(|channel| (channel.channel, channel)).collect();
        let mut ends: BTreeMap<u32, Time> = BTreeMap::new();
        for sample in samples {
            let Some(channel) = known.get(&sample.channel) else { continue };
            // The last interval of a run may be shorter.
            let from = Time(sample.time.0.saturating_sub(1) / interval.0 * interval.0);
            let before = ends.insert(sample.channel, sample.time);
            if let Some(end) = before.filter(|&end| end < from) {
                self.link(channel, end, 0, Time::ZERO, interval);
            }
            // A counter keeps its value until the next: that of an interval stands at its beginning.
            self.link(channel, from, sample.bytes, sample.paused, sample.time - from);
            self.counter(
                &format!("{} > {} queue", channel.from, channel.to),
                sample.time,
                json!({ "bytes": sample.queue }),
            );
        }
        for (channel, end) in ends {
            if let Some(channel) = known.get(&channel) {
                self.link(channel, end, 0, Time::ZERO, interval);
            }
        }
    }

    /// What a channel does from an instant on: these bytes, and this pause, in so long a time.
    fn link(&mut self, channel: &ChannelRecord, at: Time, bytes: u64, paused: Time, lasts: Time) {
        let could = channel.rate.bytes_in(lasts).0;
        let percent = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        let values =
            json!({ "use_percent": percent(bytes, could), "paused_percent": percent(paused.0, lasts.0) });
        self.counter(&format!("{} > {}", channel.from, channel.to), at, values);
    }

    fn counter(&mut self, name: &str, at: Time, values: Value) {
        self.0.push(json!({ "ph": "C", "pid": LINKS, "tid": 0, "name": name, "ts": us(at), "args": values }));
    }
}
