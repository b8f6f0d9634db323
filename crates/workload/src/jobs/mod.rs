//! Jobs: work with an end, on ranks of its own, beside other jobs and the traffic of the workload.

mod placement;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use netloom_topology::{HostId, Network};
use netloom_units::kind::Kind;
use netloom_units::{Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::placement::{HostName, JobPlacement};
use crate::plan::{HostWork, JobPlan, JobSetting, Plan, Setting, build_placed};
use crate::program::{RankWork, Slowness};
use crate::random::{RngExt, Work, shuffle};
use crate::servers::Endpoints;
use crate::{NetworkModel, Options, Pattern, PlanContext, WorkloadError};

/// A job: a workload that ends, on ranks whose hosts no other job uses. Its times are in the tables `jobs`, `ranks` and `collectives` of the outcome.
/// With jobs, `[workload]` is additional traffic on all hosts; there is none if it is not written.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its name in tables, and the group of its flows.
    pub name: String,
    /// What it runs: a kind of workload that ends, with its fields, such as `{ kind = "collective", size = "64MiB" }`. Not `mix`, whose parts
    /// are jobs of their own, not `idle`, not `astra-sim` with an analytical network, and not what sends at a load (`poisson`, `bernoulli`, `bursty`, `hotspot`).
    pub workload: Pattern,
    /// Number of ranks; if not given, as many as the workload's files have or as there are hosts in its `placement`, else all hosts that no job before it
    /// has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
    /// Where the ranks sit, among the hosts (with `servers`, these or their GPUs) that no other job has: `packed`, on those of the lowest numbers;
    /// `random`, drawn from the seed; `round-robin-leaves`, on one host of every leaf switch in turn; `by-rail`, on one host of every leaf switch of a pod
    /// in turn, pod after pod, so that consecutive ranks are on different rails; `{ hosts = [0, "h5"] }`, rank by rank; `{ file = "ranks.txt" }`, a
    /// host per line.
    #[serde(default)]
    pub placement: JobPlacement,
    /// Whether it may share hosts with other jobs.
    #[serde(default)]
    pub share: bool,
    /// When it begins.
    #[serde(default)]
    pub start: Time,
    /// Every rank begins later than `start` by a time drawn uniformly from zero to this one, as clocks and schedulers differ.
    #[serde(default)]
    pub start_jitter: Time,
    /// How often it does its work: steps of a training. A rank begins the next repetition when it has finished its part of the one before. More than
    /// once only programs, and only where the workload has no repetitions of its own (`repeat`, `iterations`).
    #[serde(default = "once")]
    pub repetitions: u32,
    /// Traffic class of its messages, 0 to 7.
    #[serde(default)]
    pub class: u8,
    /// Ranks that calculate more slowly than the program says. If several entries name a rank, the last applies.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stragglers: Vec<Straggler>,
}

/// Ranks that calculate more slowly than the program says; all, unless `ranks` or `count` is given.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Straggler {
    /// These ranks; all of the job if neither this nor `count` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranks: Option<Vec<u32>>,
    /// This number of ranks, drawn from the seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u32>,
    /// What the durations of their calculations are multiplied by, above 0 and at most 1000; to the millionth.
    pub factor: f64,
    /// If given, factors are drawn uniformly from `factor` to this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_factor: Option<f64>,
    /// How often a factor is drawn: once for every rank, or for every `calculation` of it.
    #[serde(default)]
    pub draw: Draw,
}

/// How often a straggler's factor is drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Draw {
    /// Once, for the whole run.
    #[default]
    Rank,
    /// For every calculation.
    Calculation,
}

fn once() -> u32 {
    1
}

/// What the groups of the traffic beside jobs are called.
const BACKGROUND: &str = "background";

/// Puts jobs beside the traffic of a plan. Errors name the job by its number in the list, from 0.
///
/// # Errors
/// If a job makes no sense on this network, or beside the others.
pub fn add_jobs(
    beside: Plan,
    jobs: &[Job],
    network: &Network,
    context: &PlanContext,
) -> Result<Plan, WorkloadError> {
    if jobs.is_empty() {
        return Ok(beside);
    }
    let endpoints = Endpoints { network, rails: context.rails.as_ref() };
    let mut all = Beside::new(beside, endpoints.count())?;
    let listed = listed(jobs, &endpoints, context)?;
    let mut owners: BTreeMap<HostId, usize> = BTreeMap::new();
    for (index, hosts) in listed.iter().enumerate().filter(|(index, _)| !jobs[*index].share) {
        owners.extend(hosts.iter().flatten().map(|&host| (host, index)));
    }
    for (index, (job, listed)) in jobs.iter().zip(listed).enumerate() {
        let one = OneJob { job, index: narrow::<u32>(index), endpoints, network, context };
        let within = |error: WorkloadError| error.within(&index.to_string());
        let (plan, hosts) = one.build(listed, &owners).map_err(within)?;
        if !job.share {
            owners.extend(hosts.iter().map(|&host| (host, index)));
        }
        all.add(job, plan, hosts).map_err(within)?;
    }
    Ok(Plan { rails: context.rails.clone(), ..all.finish().map_err(|error| error.within("0"))? })
}

/// The hosts that jobs list, where they do; no host twice, unless it may be.
fn listed(
    jobs: &[Job],
    endpoints: &Endpoints,
    context: &PlanContext,
) -> Result<Vec<Option<Vec<HostId>>>, WorkloadError> {
    let mut owners: BTreeMap<HostId, usize> = BTreeMap::new();
    let mut all = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter().enumerate() {
        let hosts = job.placement.listed(endpoints, |file| context.file(file));
        let hosts = hosts.map_err(|error| error.within(&index.to_string()))?;
        for &host in hosts.iter().flatten().filter(|_| !job.share) {
            if let Some(&before) = owners.get(&host) {
                let expected = "hosts that no other job has, or `share = true`";
                let (own, other) = (&job.name, &jobs[before].name);
                let found = format!("{}, which jobs `{other}` and `{own}` both have", endpoints.name(host));
                return Err(WorkloadError::parameter(format!("{index}.placement"), expected, found));
            }
            owners.insert(host, index);
        }
        all.push(hosts);
    }
    Ok(all)
}

/// A job that is laid on the network.
struct OneJob<'a> {
    job: &'a Job,
    index: u32,
    endpoints: Endpoints<'a>,
    network: &'a Network,
    context: &'a PlanContext,
}

impl OneJob<'_> {
    /// Its plan, and the hosts that it has.
    fn build(
        &self,
        listed: Option<Vec<HostId>>,
        owners: &BTreeMap<HostId, usize>,
    ) -> Result<(Plan, Vec<HostId>), WorkloadError> {
        let job = self.job;
        self.check()?;
        let is_listed = listed.is_some();
        let mut placed = self.place(listed, owners)?;
        let seed = Work::Job.seed(self.context.seed, self.index);
        let context = PlanContext { seed, ..self.context.clone() };
        let options = Options {
            ranks: Some(narrow::<u32>(placed.len())),
            start_jitter: job.start_jitter,
            class: job.class,
            ..Options::default()
        };
        let setting = Setting {
            network: self.network,
            endpoints: self.endpoints,
            context: &context,
            options: &options,
            placement_seed: seed,
            placed: placed.clone(),
            job: JobSetting { start: job.start, repetitions: job.repetitions },
        };
        let mut plan = build_placed(&job.workload, setting).map_err(of_workload)?;
        let of_files = match plan.jobs.as_slice() {
            [program] => Some(program.hosts.len()),
            _ => plan.ends.as_ref().map(|ends| ends.get().len()),
        };
        if let Some(ranks) = of_files {
            if ranks < placed.len() && (job.ranks.is_some() || is_listed) {
                let field = if job.ranks.is_some() { "ranks" } else { "placement" };
                let expected = format!("{ranks}, as many as the workload's files have");
                return Err(WorkloadError::parameter(field, expected, placed.len()));
            }
            placed.truncate(ranks);
        }
        if let [program] = plan.jobs.as_slice() {
            self.check_repetitions(program)?;
        } else if job.repetitions > 1 {
            let expected = "1, as only programs (collective, goal, …) are repeated as a whole";
            return Err(WorkloadError::parameter("repetitions", expected, job.repetitions));
        }
        self.slow_down(&mut plan, placed.len(), seed)?;
        Ok((plan, placed))
    }

    /// What can be said without the other jobs.
    fn check(&self) -> Result<(), WorkloadError> {
        let job = self.job;
        if job.name.is_empty() {
            return Err(WorkloadError::parameter("name", "a name", "none"));
        }
        if job.repetitions == 0 {
            return Err(WorkloadError::parameter("repetitions", "at least 1", 0));
        }
        if job.start.0.saturating_add(job.start_jitter.0) >= Time::END.0 {
            let expected = format!("a time before the end of simulated time, {}", Time::END);
            return Err(WorkloadError::parameter("start", expected, job.start));
        }
        let why = match &job.workload {
            Pattern::Idle(_) => "which sends nothing",
            Pattern::Mix(_) => "whose parts are jobs of their own",
            Pattern::AstraSim(training) if training.network != NetworkModel::Packets => {
                let expected = "\"packets\", as jobs share the network of the scenario";
                return Err(WorkloadError::parameter("workload.network", expected, "an analytical one"));
            }
            Pattern::Poisson(_) | Pattern::Bernoulli(_) | Pattern::Bursty(_) | Pattern::Hotspot(_) => {
                "which sends at a load whatever is delivered: it goes into `[workload]`, beside the jobs"
            }
            Pattern::Uniform(uniform) if uniform.duration.is_some() => {
                let expected = "`messages_per_host` alone, as a job is measured by the time that it takes";
                return Err(WorkloadError::parameter("workload.duration", expected, "it"));
            }
            _ => return Ok(()),
        };
        let expected = "a kind of workload with an end, such as `collective`, `goal` or `all-to-all`";
        Err(WorkloadError::parameter("workload", expected, format!("`{}`, {why}", job.workload.name())))
    }

    /// The host of every rank.
    fn place(
        &self,
        listed: Option<Vec<HostId>>,
        owners: &BTreeMap<HostId, usize>,
    ) -> Result<Vec<HostId>, WorkloadError> {
        let (job, endpoints) = (self.job, &self.endpoints);
        let is_listed = listed.is_some();
        let hosts = match listed {
            Some(hosts) => hosts,
            None => {
                let is_free = |host: &HostId| job.share || !owners.contains_key(host);
                let free = (0..endpoints.count()).filter(is_free).collect();
                let mut stream = Work::Placement.stream(self.context.seed, self.index);
                job.placement.order(free, endpoints, &mut stream)?
            }
        };
        let (most, word) = (hosts.len(), endpoints.word());
        let ranks = job.ranks.map_or(most, |ranks| ranks as usize);
        let expected = match is_listed {
            true if ranks != most => format!("{most}, as many as `placement` lists {word}"),
            _ if !(2..=most).contains(&ranks) && most >= 2 => {
                format!("2 to {most}, the {word} that no other job has")
            }
            _ if most < 2 => format!("at least two {word} that no other job has, or `share = true`"),
            _ => {
                let mut hosts = hosts;
                hosts.truncate(ranks);
                return Ok(hosts);
            }
        };
        Err(WorkloadError::parameter("ranks", expected, ranks))
    }

    /// A program repeats as the job or as the workload says, not both, and its messages have numbers.
    fn check_repetitions(&self, program: &JobPlan) -> Result<(), WorkloadError> {
        let wanted = self.job.repetitions;
        let own = program.repetitions / wanted;
        if wanted > 1 && own != 1 {
            let expected = format!("1, as the workload repeats itself {own} times");
            return Err(WorkloadError::parameter("repetitions", expected, wanted));
        }
        let sends = program.program.as_ref().map_or(0, |placed| placed.most_sends());
        if u64::from(sends) * u64::from(wanted) > u64::from(u32::MAX) {
            let expected = format!("fewer: a rank sends {sends} messages in each");
            return Err(WorkloadError::parameter("repetitions", expected, wanted));
        }
        Ok(())
    }

    /// Makes the calculations of stragglers longer.
    fn slow_down(&self, plan: &mut Plan, ranks: usize, seed: u64) -> Result<(), WorkloadError> {
        let Some(last) = self.job.stragglers.len().checked_sub(1) else { return Ok(()) };
        let program = plan.jobs.first().and_then(|job| job.program.as_ref());
        let calculates = match program {
            Some(program) => program.calculates(),
            // Ranks of a training job know all of it.
            None => plan.hosts.iter().flat_map(HostWork::programs).next().is_some_and(RankWork::computes),
        };
        if !calculates {
            let expected = "none, as the workload has no calculation that could be slower";
            return Err(WorkloadError::parameter("stragglers", expected, last + 1));
        }
        let ranks = narrow::<u32>(ranks);
        let mut slow: BTreeMap<u32, Slowness> = BTreeMap::new();
        for (entry, straggler) in (0..).zip(&self.job.stragglers) {
            let found = straggler.slowness(ranks, (seed, entry));
            slow.extend(found.map_err(|error| error.within(&format!("stragglers.{entry}")))?);
        }
        for work in &mut plan.hosts {
            work.slow_down(&slow);
        }
        Ok(())
    }
}

impl Straggler {
    /// The ranks that it names, each with how it is slower.
    fn slowness(&self, ranks: u32, (seed, entry): (u64, u32)) -> Result<Vec<(u32, Slowness)>, WorkloadError> {
        let named = match (&self.ranks, self.count) {
            (Some(_), Some(_)) => {
                return Err(WorkloadError::parameter("count", "either `ranks` or `count`", "both"));
            }
            (Some(named), None) => {
                if let Some(rank) = named.iter().find(|&&rank| rank >= ranks) {
                    let expected = format!("ranks from 0 to {}", ranks - 1);
                    return Err(WorkloadError::parameter("ranks", expected, rank));
                }
                named.clone()
            }
            (None, Some(count)) => {
                if !(1..=ranks).contains(&count) {
                    return Err(WorkloadError::parameter("count", format!("1 to {ranks}"), count));
                }
                let mut all: Vec<u32> = (0..ranks).collect();
                shuffle(&mut all, &mut Work::Stragglers.stream(seed, entry));
                all.truncate(count as usize);
                all
            }
            (None, None) => (0..ranks).collect(),
        };
        let least = millionths("factor", self.factor)?;
        let most = self.max_factor.map(|most| millionths("max_factor", most)).transpose()?;
        if most.is_some_and(|most| most < least) {
            let expected = format!("at least `factor` = {}", self.factor);
            return Err(WorkloadError::parameter("max_factor", expected, self.max_factor.unwrap_or(0.0)));
        }
        if self.draw == Draw::Calculation && most.is_none() {
            let expected = "`max_factor` with it: without one there is nothing to draw";
            return Err(WorkloadError::parameter("draw", expected, "none"));
        }
        let of = |rank: u32| {
            let mut stream = Work::Slowness.stream(Work::Stragglers.seed(seed, entry), rank);
            match (most, self.draw) {
                (None, _) => Slowness::Constant(least),
                (Some(most), Draw::Rank) => Slowness::Constant(stream.random_range(least..=most)),
                (Some(most), Draw::Calculation) => Slowness::Drawn(least, most, stream),
            }
        };
        Ok(named.into_iter().map(|rank| (rank, of(rank))).collect())
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "above 0 and at most 1000")]
fn millionths(field: &'static str, factor: f64) -> Result<u64, WorkloadError> {
    if (1e-6..=1e3).contains(&factor) {
        return Ok((factor * 1e6).round() as u64);
    }
    Err(WorkloadError::parameter(field, "a number from 0.000001 to 1000", factor))
}

/// What is wrong with a job's workload, as the job's fields say it.
fn of_workload(error: WorkloadError) -> WorkloadError {
    match &error {
        WorkloadError::Parameter(invalid) => match invalid.field.split('.').next() {
            Some("ranks" | "class" | "start_jitter") => error,
            _ => error.within("workload"),
        },
        _ => error,
    }
}

/// The plan of all jobs and the traffic beside them, while it is put together.
struct Beside {
    works: Vec<Vec<(u16, HostWork)>>,
    plan: Plan,
    /// How many hosts there are, without units of switches.
    endpoints: u32,
    /// Per job the hosts that it has, and the units of switches that it uses.
    hosts: Vec<BTreeSet<HostId>>,
}

impl Beside {
    fn new(beside: Plan, count: u32) -> Result<Self, WorkloadError> {
        if let Some(job) = beside.jobs.first() {
            let expected = "none beside a `[workload]` that is a program: make that a job, too";
            return Err(WorkloadError::parameter("0", expected, format!("`{}`", job.name)));
        }
        let is_idle = beside.hosts.iter().all(HostWork::is_idle);
        let groups = match beside.groups.as_slice() {
            _ if is_idle => Vec::new(),
            [_] => vec![BACKGROUND.to_owned()],
            several => several.iter().map(|group| format!("{BACKGROUND}/{group}")).collect(),
        };
        let mut works = vec![Vec::new(); count as usize];
        for (of_host, work) in works.iter_mut().zip(beside.hosts) {
            of_host.push((0, work));
        }
        let plan = Plan { hosts: Vec::new(), groups, ..beside };
        Ok(Beside { works, plan, endpoints: count, hosts: Vec::new() })
    }

    fn add(&mut self, job: &Job, mut plan: Plan, hosts: Vec<HostId>) -> Result<(), WorkloadError> {
        let first = narrow::<u16>(self.plan.groups.len().min(usize::from(u16::MAX)));
        let names = match plan.groups.as_slice() {
            [_] => vec![job.name.clone()],
            several => several.iter().map(|group| format!("{}/{group}", job.name)).collect(),
        };
        let is_taken = self.plan.jobs.iter().any(|other| other.name == job.name) || job.name == BACKGROUND;
        if is_taken || names.iter().any(|name| self.plan.groups.contains(name)) {
            let expected = format!("a name that no other job has, and not `{BACKGROUND}`");
            return Err(WorkloadError::parameter("name", expected, format!("`{}`", job.name)));
        }
        let end = u16::try_from(usize::from(first) + names.len());
        let Ok(end) = end else {
            return Err(WorkloadError::parameter("name", "at most 65535 groups of all jobs", names.len()));
        };
        self.plan.groups.extend(names);
        self.plan.cuts.append(&mut plan.cuts);
        self.plan.notes.append(&mut plan.notes);
        if !plan.outline.is_empty() {
            self.plan.outline.push(format!("job `{}`", job.name));
            self.plan.outline.append(&mut plan.outline);
        }
        let number = narrow::<u16>(self.plan.jobs.len());
        for work in &mut plan.hosts {
            work.shift_jobs(number);
            work.take_notes_of(number);
        }
        let program = plan.jobs.pop();
        self.plan.jobs.push(JobPlan {
            name: job.name.clone(),
            hosts: hosts.as_slice().into(),
            groups: first..end,
            repetitions: program.as_ref().map_or(1, |program| program.repetitions),
            start: job.start,
            messages: plan.total_messages,
            program: program.and_then(|program| program.program),
            is_training: plan.ends.is_some(),
        });
        let within = |error: WorkloadError| error.within("workload");
        self.plan.share_units(plan.units).map_err(within)?;
        let mut hosts: BTreeSet<HostId> = hosts.into_iter().collect();
        if plan.units.is_some() {
            let beyond = (0..).zip(&plan.hosts).skip(self.endpoints as usize);
            hosts.extend(beyond.filter(|(_, work)| work.is_program()).map(|(unit, _)| unit));
        }
        self.works.resize(self.works.len().max(plan.hosts.len()), Vec::new());
        for (of_host, work) in self.works.iter_mut().zip(plan.hosts) {
            of_host.push((first, work));
        }
        self.hosts.push(hosts);
        let total = self.plan.total_messages.zip(plan.total_messages);
        self.plan.total_messages = total.and_then(|(sum, more)| sum.checked_add(more));
        Ok(())
    }

    fn finish(mut self) -> Result<Plan, WorkloadError> {
        // Programs on hosts of their own have all numbers.
        let mut seen = BTreeSet::new();
        let is_shared = !self.hosts.iter().flatten().all(|&host| seen.insert(host));
        if is_shared {
            let count = narrow::<u32>(self.hosts.len());
            for works in &mut self.works {
                for (first, work) in works {
                    let number = self.plan.jobs.iter().position(|job| job.groups.contains(first));
                    let Some(number) = number else { continue };
                    let most = work.programs().map(|program| program.numbers()).max().unwrap_or(0);
                    if most.saturating_mul(count.into()) > u64::from(u32::MAX) {
                        let expected = "programs with fewer messages and operations per host, or fewer jobs";
                        return Err(WorkloadError::parameter("share", expected, count));
                    }
                    work.share_numbers(narrow::<u32>(number), count);
                }
            }
        }
        let hosts = self.works.into_iter().map(HostWork::merge).collect();
        Ok(Plan { hosts, ..self.plan })
    }
}
