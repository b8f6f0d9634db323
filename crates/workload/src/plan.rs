//! A workload built for a network: the work of every host.

mod part;
mod receivers;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::vec;

use netloom_astra::Job;
use netloom_topology::{HostId, Network, NetworkError, NetworkFile, NodeId};
use netloom_units::kind::{self, Kind};
use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Rate, Time, narrow};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize};

use self::part::Part;
use crate::arrivals::Arrivals;
use crate::closed::Closed;
use crate::frames::Frames;
use crate::merge::Merge;
use crate::program::{
    Action, CollectiveInfo, JobRank, Notes, Placed, Program, RankEnds, RankLog, RankWork, Round, Runner,
    Slowness, describe,
};
use crate::servers::{Endpoints, Rails};
use crate::{Options, Pattern, WorkloadError};

/// What the user wrote: a pattern and the options that hold for every pattern.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Workload {
    /// Which host sends to which, and by what rule.
    #[serde(flatten)]
    pub pattern: Pattern,
    /// Participants, placement, jitter, traffic class.
    #[serde(flatten)]
    pub options: Options,
}

/// A pattern's kind and parameters and the options share one table.
impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut options = Options::default();
        let pattern = kind::deserialize_beside(deserializer, &mut options)?;
        Ok(Workload { pattern, options })
    }
}

impl JsonSchema for Workload {
    fn schema_name() -> Cow<'static, str> {
        "Workload".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let options = Options::json_schema(generator);
        kind::schema_beside::<Pattern>(generator, &[options])
    }
}

/// Messages of a host that have numbers of their own, at most.
pub(crate) const MOST_MESSAGES: u64 = 1 << 31;

/// Where a plan's randomness and files come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanContext {
    /// Seed of every random choice of the workload.
    pub seed: u64,
    /// Folder that relative file names start from (that of the scenario file).
    pub base_dir: PathBuf,
    /// The largest message that the transport can number packet by packet.
    pub largest_message: Bytes,
    /// When the run ends even if flows are unfinished; absent: when all work is done.
    pub until: Option<Time>,
    /// The NICs of servers that have several; absent: each host of the network is one of the workload.
    pub rails: Option<Arc<Rails>>,
    /// Whether the labels that a file gives to operations are kept: they take memory, and only records of operations show them.
    pub keeps_labels: bool,
}

impl PlanContext {
    /// A context whose relative file names start from the working directory.
    pub fn new(seed: u64) -> Self {
        PlanContext {
            seed,
            base_dir: PathBuf::new(),
            largest_message: Bytes(u64::MAX),
            until: None,
            rails: None,
            keeps_labels: false,
        }
    }

    /// Refuses messages that the transport cannot number, with what is expected instead.
    pub(crate) fn check_message(&self, bytes: Bytes) -> Result<(), String> {
        let most = self.largest_message;
        if bytes <= most {
            return Ok(());
        }
        Err(format!(
            "at most {most}, whose packets the transport can number; for a flow that lasts as long as the run, give such a \
             size and let the run end at `measure.until`"
        ))
    }

    pub(crate) fn file(&self, name: &Path) -> PathBuf {
        self.base_dir.join(name)
    }
}

/// One message of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Receiving host (or server, where these have several NICs), never the sender itself.
    pub dst: HostId,
    /// Payload, at least one byte.
    pub bytes: Bytes,
    /// When it is handed to the sender's transport.
    pub start: Time,
    /// Its kind of traffic, an index into [`Plan::groups`].
    pub group: u16,
    /// Its traffic class, 0 to 7.
    pub class: u8,
    /// Whether its bytes go to the end of the open flow from this host to the same destination, of the same group and
    /// class, instead of being a flow of their own.
    pub stream: bool,
}

impl Message {
    /// A flow of its own, of the first group and class.
    pub fn new(dst: HostId, bytes: Bytes, start: Time) -> Self {
        Message { dst, bytes, start, group: 0, class: 0, stream: false }
    }
}

/// A workload built for a network.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The work of every host, indexed by host; of every server, where these have several NICs. Where switches have [units](Self::units), that of these follows.
    pub hosts: Vec<HostWork>,
    /// How many messages there will be, where that is known beforehand.
    pub total_messages: Option<u64>,
    /// The kinds of traffic that are distinguished, by name; `all` alone where the pattern has one kind.
    pub groups: Vec<String>,
    /// Links that do not exist, as the workload's file says, by their ends: of several between these, the first.
    pub cuts: Vec<(NodeId, NodeId)>,
    /// The NICs of servers that have several.
    pub rails: Option<Arc<Rails>>,
    /// Parts of a mix whose ranks share hosts.
    pub overlaps: Vec<Overlap>,
    /// What the workload is about, in lines for the user; empty where its fields say all.
    pub outline: Vec<String>,
    /// The jobs: those of the scenario, or else the programs among the workload.
    pub jobs: Vec<JobPlan>,
    /// What in the workload's files is probably a mistake, each in one sentence.
    pub notes: Vec<String>,
    /// How the ranks of a training job end, as far as they have.
    pub ends: Option<Arc<RankEnds>>,
    /// A training job that is run without packets, instead of what hosts do.
    pub analytical: Option<Arc<Analytical>>,
    /// What the units at switches are like whose work follows that of all hosts in `hosts`, if there are any.
    pub units: Option<ReductionUnits>,
}

/// Units of switches that reduce what they are sent: one at every switch, in the order of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReductionUnits {
    /// What data take from a switch through its unit and back, besides their transmission.
    pub latency: Time,
    /// At which rate a unit receives, and sends; absent: that of all links of its switch.
    pub rate: Option<Rate>,
}

/// A job: work with an end, on ranks of its own.
#[derive(Clone, Debug)]
pub struct JobPlan {
    /// What it is called.
    pub name: String,
    /// The host of every rank; the server or GPU, where the workload addresses these.
    pub hosts: Box<[HostId]>,
    /// Its groups of the plan.
    pub groups: Range<u16>,
    /// How often it does its work; once where it is no program.
    pub repetitions: u32,
    /// When it may begin.
    pub start: Time,
    /// How many messages it sends, where that is known beforehand.
    pub messages: Option<u64>,
    pub(crate) program: Option<Arc<Placed>>,
    /// Whether it is a training job, whose ranks decide what comes next when things happen.
    pub(crate) is_training: bool,
}

impl JobPlan {
    /// Whether its ranks take notes, as those of programs and training jobs do; of others only messages are known.
    pub fn takes_notes(&self) -> bool {
        self.program.is_some() || self.is_training
    }

    /// The collective operations of one repetition.
    pub fn collectives(&self) -> &[CollectiveInfo] {
        self.program.as_deref().map_or(&[], Placed::collectives)
    }

    /// What an operation of a rank is called in the workload's file; empty if it has no label there, or [labels are not kept](PlanContext::keeps_labels).
    pub fn label(&self, rank: u32, operation: u32) -> Arc<str> {
        self.program.as_deref().map(|program| program.label(rank, operation)).unwrap_or_default()
    }
}

/// A training job on an analytical network of ASTRA-sim.
#[derive(Debug)]
pub struct Analytical {
    /// The job.
    pub job: Arc<Job>,
    /// Its network.
    pub network: NetworkFile,
    /// Whether messages wait for each other.
    pub has_congestion: bool,
}

/// Two parts of a mix that have ranks of their own, on the same hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlap {
    /// The fields of the two, e.g. `parts.0`.
    pub parts: [String; 2],
    /// How many hosts they share, in words, e.g. `16 hosts`.
    pub shared: String,
}

impl Plan {
    /// Has the ranks of programs keep more than they always do. Ranks of training jobs have neither: their accelerator, CPU and network are busy at the same
    /// time, and their operations are not known before.
    pub fn keep_notes(&mut self, notes: Notes) {
        self.hosts.iter_mut().for_each(|host| host.keep_notes(notes));
    }

    /// A plan whose messages are all of one group.
    pub(crate) fn of_hosts(hosts: Vec<HostWork>, total_messages: Option<u64>) -> Self {
        Plan {
            hosts,
            total_messages,
            groups: vec!["all".to_owned()],
            cuts: Vec::new(),
            rails: None,
            overlaps: Vec::new(),
            outline: Vec::new(),
            jobs: Vec::new(),
            notes: Vec::new(),
            ends: None,
            analytical: None,
            units: None,
        }
    }

    /// The network that it needs, where it needs more than that for which it was made: switches that have [units](Self::units).
    ///
    /// # Errors
    /// If these are too many for a network.
    pub fn equip(&mut self, network: &Network) -> Result<Option<Network>, NetworkError> {
        let Some(ReductionUnits { latency, rate }) = self.units else { return Ok(None) };
        let network = network.with_reduction_units(latency / 2, rate)?;
        self.hosts.resize_with(network.hosts() as usize, HostWork::default);
        Ok(Some(network))
    }

    /// Takes over what the units of another plan are like.
    ///
    /// # Errors
    /// The field of that plan's workload that should change, as all share the units.
    pub(crate) fn share_units(&mut self, other: Option<ReductionUnits>) -> Result<(), WorkloadError> {
        let (Some(known), Some(other)) = (self.units, other) else {
            self.units = self.units.or(other);
            return Ok(());
        };
        let expected = "the same as of the `sharp-like` workload before it, as all use the same units";
        if known.latency != other.latency {
            let expected = format!("{}, {expected}", known.latency);
            return Err(WorkloadError::parameter("latency", expected, other.latency));
        }
        if known.rate != other.rate {
            let word = |rate: Option<Rate>| rate.map_or_else(|| "none".to_owned(), |rate| rate.to_string());
            let expected = format!("{}, {expected}", word(known.rate));
            return Err(WorkloadError::parameter("rate", expected, word(other.rate)));
        }
        Ok(())
    }

    /// How many numbers its programs give to messages of one host, at most.
    pub fn numbers(&self) -> u64 {
        self.hosts.iter().flat_map(HostWork::programs).map(RankWork::numbers).max().unwrap_or(0)
    }

    /// How many messages a host sends beside those of programs, at most, as far as that is known beforehand.
    pub fn own_messages(&self) -> u64 {
        self.hosts.iter().map(HostWork::own_messages).max().unwrap_or(0)
    }

    /// Whether some source sends frames of streams, which have no end.
    pub fn has_streams(&self) -> bool {
        self.hosts.iter().any(HostWork::has_streams)
    }

    /// A plan of given messages: (source, message) in any order.
    ///
    /// # Panics
    /// If a source is not below `hosts`.
    pub fn of_messages(hosts: u32, messages: impl IntoIterator<Item = (HostId, Message)>) -> Self {
        let mut lists = vec![Vec::new(); hosts as usize];
        for (src, message) in messages {
            lists[src as usize].push(message);
        }
        let total_messages = Some(lists.iter().map(|list| list.len() as u64).sum());
        let sorted = lists.into_iter().map(|mut list| {
            list.sort_by_key(|message| message.start);
            HostWork::list(list)
        });
        Plan::of_hosts(sorted.collect(), total_messages)
    }

    /// When the last source stops offering load: what is delivered later is the drain. `None` where some source offers a given amount,
    /// whatever time it takes, so that the load lasts until all is done.
    pub fn load_until(&self) -> Option<Time> {
        let ends = self.hosts.iter().map(HostWork::offers_until);
        let last = ends.collect::<Option<Vec<Time>>>()?.into_iter().max()?;
        (last > Time::ZERO).then_some(last)
    }
}

/// The work of one host.
///
/// It owns its random stream. An idle host costs no allocation.
#[derive(Clone, Debug, Default)]
pub struct HostWork {
    source: Source,
    /// The class of all messages, where the workload sets one.
    class: Option<u8>,
    /// Which of its messages that start by the clock it sends, where only a part of it is done.
    part: Option<Box<Part>>,
}

#[derive(Clone, Debug, Default)]
enum Source {
    #[default]
    Idle,
    List(vec::IntoIter<Message>),
    Arrivals(Box<Arrivals>),
    Frames(Box<Frames>),
    /// A closed loop; `first` messages are still to start by the clock.
    Closed {
        start: Time,
        first: u32,
        work: Box<Closed>,
    },
    Program(RankWork),
    Merge(Box<Merge>),
}

impl HostWork {
    /// Messages in order of their start.
    pub(crate) fn list(messages: Vec<Message>) -> Self {
        if messages.is_empty() { Self::default() } else { Source::List(messages.into_iter()).into() }
    }

    /// Random arrivals.
    pub(crate) fn arrivals(arrivals: Arrivals) -> Self {
        Source::Arrivals(Box::new(arrivals)).into()
    }

    /// Frames at a load, in a traffic class.
    pub(crate) fn frames(frames: Frames, class: u8) -> Self {
        HostWork { source: Source::Frames(Box::new(frames)), class: Some(class), part: None }
    }

    /// Several works, each with the number of its first group; ascending in these.
    pub(crate) fn merge(mut works: Vec<(u16, HostWork)>) -> Self {
        works.retain(|(_, work)| !matches!(work.source, Source::Idle));
        if works.is_empty() { Self::default() } else { Source::Merge(Box::new(Merge::new(works))).into() }
    }

    /// A closed loop whose first messages start at `start`.
    pub(crate) fn closed(work: Closed, start: Time) -> Self {
        Source::Closed { start, first: work.outstanding(), work: Box::new(work) }.into()
    }

    /// Whether it never sends anything of its own.
    pub fn is_idle(&self) -> bool {
        matches!(self.source, Source::Idle)
    }

    /// A rank of a program.
    pub(crate) fn program(runner: Runner) -> Self {
        Source::Program(RankWork::Program(Box::new(runner))).into()
    }

    /// A rank of a training job.
    pub(crate) fn job(rank: JobRank) -> Self {
        Source::Program(RankWork::Job(Box::new(rank))).into()
    }

    /// The next message that starts by the clock, in order of start; `None` when none is left.
    pub fn next_timed(&mut self) -> Option<Message> {
        match self.part.take() {
            None => self.next_of_all(),
            Some(mut part) => {
                let message = std::iter::from_fn(|| self.next_of_all()).find(|message| part.takes(message));
                self.part = Some(part);
                message
            }
        }
    }

    fn next_of_all(&mut self) -> Option<Message> {
        let message = match &mut self.source {
            Source::Idle | Source::Program(_) => None,
            Source::List(messages) => messages.next(),
            Source::Arrivals(arrivals) => arrivals.next(),
            Source::Frames(frames) => frames.next(),
            Source::Merge(works) => works.next_timed(),
            Source::Closed { start, first, work } => {
                *first = first.checked_sub(1)?;
                work.next(*start)
            }
        };
        self.classed(message)
    }

    /// The message that starts at `now` because one of group `group` has completed at the sender: taken once for each
    /// message of this host that completes.
    ///
    /// `None` if there is no closed loop of that group, or it is done, now and for good.
    pub fn next_closed(&mut self, now: Time, group: u16) -> Option<Message> {
        let message = match &mut self.source {
            Source::Closed { work, .. } if group == 0 => work.next(now),
            Source::Merge(works) => works.next_closed(now, group),
            _ => None,
        };
        self.classed(message)
    }

    /// [Recurs](netloom_units::recurrence) in a walk with successors, as the work of a host or server whose messages are those of `origin`. `hashes`: which NIC a message takes that is given none may depend on
    /// its number. Only of programs it is known what follows the end of a message.
    pub fn recur(&mut self, origin: u32, hashes: bool, walk: &mut Walk) {
        match &mut self.source {
            Source::Idle => walk.exact(0u32),
            Source::List(messages) => walk.count(messages.len()),
            Source::Program(rank) => rank.recur(origin, hashes, walk),
            Source::Merge(works) => match works.only_mut() {
                Some(work) => work.recur(origin, hashes, walk),
                None => walk.pass_over(),
            },
            _ => walk.pass_over(),
        }
    }

    /// [Recurs](netloom_units::recurrence): the operation of an [`Action::Wake`] that has not come.
    pub fn recur_wake(&self, origin: u32, op: &mut u32, walk: &mut Walk) {
        match self.only_program() {
            Some(rank) => rank.recur_wake(origin, op, walk),
            None => walk.exact(*op),
        }
    }

    /// By how much the number of a message that has ended moves in a period, of one that recurs; 0 if that is not known.
    pub fn succession(&self, number: u32, walk: &Walk) -> u32 {
        self.only_program().map_or(0, |rank| rank.succession(number, walk))
    }

    /// Its program, if there is nothing else.
    fn only_program(&self) -> Option<&RankWork> {
        match &self.source {
            Source::Program(rank) => Some(rank),
            Source::Merge(works) => works.only()?.only_program(),
            _ => None,
        }
    }

    /// The repetition that its program is in, if it has only one program and that has begun; of a training step the repetition of layers that are alike.
    pub fn round(&self) -> Option<Round> {
        self.only_program()?.round()
    }

    /// How many such repetitions have not begun, if it has only one program.
    pub fn rounds_left(&self) -> u32 {
        self.only_program().map_or(0, RankWork::rounds_left)
    }

    /// When it stops offering load; `None` if that is a question of an amount rather than of time.
    fn offers_until(&self) -> Option<Time> {
        let until = match &self.source {
            Source::Idle => Time::ZERO,
            Source::List(_) | Source::Program(_) => Time::MAX,
            Source::Arrivals(arrivals) => arrivals.until,
            Source::Frames(frames) => frames.until(),
            Source::Closed { work, .. } => work.until,
            Source::Merge(works) => {
                let ends = works.works().map(HostWork::offers_until);
                ends.collect::<Option<Vec<Time>>>()?.into_iter().max().unwrap_or(Time::ZERO)
            }
        };
        (until < Time::MAX).then_some(until)
    }

    /// The messages that it sends if nothing but their number ends them.
    fn own_messages(&self) -> u64 {
        match &self.source {
            Source::List(messages) => messages.len() as u64,
            Source::Arrivals(arrivals) if arrivals.until == Time::MAX => arrivals.left,
            Source::Closed { work, .. } if work.until == Time::MAX => work.left,
            Source::Merge(works) => works.works().map(HostWork::own_messages).fold(0, u64::saturating_add),
            _ => 0,
        }
    }

    fn has_streams(&self) -> bool {
        match &self.source {
            Source::Frames(_) => true,
            Source::Merge(works) => works.works().any(HostWork::has_streams),
            _ => false,
        }
    }

    fn set_class(&mut self, class: u8) {
        // Merged works have theirs.
        if !matches!(self.source, Source::Merge(_)) {
            self.class = Some(class);
        }
    }

    /// Whether this host runs a rank of a program. The program's messages come from the calls below, which do nothing
    /// for other hosts; those of [`next_timed`](Self::next_timed) and [`next_closed`](Self::next_closed), which a host
    /// may have beside them, have no number.
    pub fn is_program(&self) -> bool {
        match &self.source {
            Source::Program(_) => true,
            Source::Merge(works) => works.works().any(HostWork::is_program),
            _ => false,
        }
    }

    /// Whether the programs of this host are done; true where there are none.
    pub fn is_finished(&self) -> bool {
        match &self.source {
            Source::Program(runner) => runner.is_finished(),
            Source::Merge(works) => works.works().all(HostWork::is_finished),
            _ => true,
        }
    }

    /// What the programs of this host noted of themselves in a run that ended at `end`.
    pub fn take_logs(&mut self, end: Time) -> Vec<RankLog> {
        let mut logs = Vec::new();
        self.each_rank(&mut |rank| logs.extend(rank.take_log(end)));
        logs
    }

    /// Says which jobs its programs are of: `first` jobs come before those that they knew of.
    pub(crate) fn shift_jobs(&mut self, first: u16) {
        self.each_rank(&mut |rank| {
            if let RankWork::Program(program) = rank {
                program.shift_job(first);
            }
        });
    }

    /// Says which job of the plan its training job is.
    pub(crate) fn take_notes_of(&mut self, job: u16) {
        self.each_rank(&mut |rank| {
            if let RankWork::Job(rank) = rank {
                rank.take_notes_of(job);
            }
        });
    }

    /// Makes the calculations of some ranks of its program longer or shorter.
    pub(crate) fn slow_down(&mut self, slow: &BTreeMap<u32, Slowness>) {
        self.each_rank(&mut |rank| rank.slow_down(slow));
    }

    fn keep_notes(&mut self, notes: Notes) {
        self.each_rank(&mut |rank| {
            if let RankWork::Program(program) = rank {
                program.keep_notes(notes);
            }
        });
    }

    fn each_rank(&mut self, call: &mut dyn FnMut(&mut RankWork)) {
        match &mut self.source {
            Source::Program(rank) => call(rank),
            Source::Merge(works) => works.works_mut().for_each(|work| work.each_rank(call)),
            _ => {}
        }
    }

    /// Starts the program: called once, before any of the calls below. Every call appends what is to be done to
    /// `actions`, in order.
    pub fn begin(&mut self, now: Time, actions: &mut Vec<Action>) {
        self.call(actions, &|program, actions| program.begin(now, actions));
    }

    /// The time of an [`Action::Wake`] has come.
    pub fn on_wake(&mut self, now: Time, op: u32, actions: &mut Vec<Action>) {
        self.call(actions, &|program, actions| program.on_wake(now, op, actions));
    }

    /// The transport is done with the message `number` of this host's [`Action::Send`]: it has left completely, or
    /// has been acknowledged where the transport waits for that.
    pub fn on_sent(&mut self, now: Time, number: u32, actions: &mut Vec<Action>) {
        self.call(actions, &|program, actions| program.on_sent(now, number, actions));
    }

    /// All bytes of the message `number` of the host `src` have arrived here.
    pub fn on_received(&mut self, now: Time, src: HostId, number: u32, actions: &mut Vec<Action>) {
        self.call(actions, &|program, actions| program.on_received(now, src, number, actions));
    }

    /// The programs of this host.
    pub(crate) fn programs(&self) -> Box<dyn Iterator<Item = &RankWork> + '_> {
        match &self.source {
            Source::Program(runner) => Box::new(std::iter::once(runner)),
            Source::Merge(works) => Box::new(works.works().flat_map(HostWork::programs)),
            _ => Box::new(std::iter::empty()),
        }
    }

    /// Calls every program; each knows its own numbers.
    pub(crate) fn call(&mut self, actions: &mut Vec<Action>, call: &dyn Fn(&mut RankWork, &mut Vec<Action>)) {
        let before = actions.len();
        match &mut self.source {
            Source::Program(runner) => call(runner, actions),
            Source::Merge(works) => works.call(actions, call),
            _ => {}
        }
        if let Some(set) = self.class {
            for action in &mut actions[before..] {
                if let Action::Send { class, .. } = action {
                    *class = set;
                }
            }
        }
    }

    /// Makes the numbers of this host's program those that are `index` modulo `count`, which no other program of a mix
    /// has.
    pub(crate) fn share_numbers(&mut self, index: u32, count: u32) {
        match &mut self.source {
            Source::Program(runner) => runner.share_numbers(index, count),
            Source::Merge(works) => works.works_mut().for_each(|work| work.share_numbers(index, count)),
            _ => {}
        }
    }

    fn classed(&self, message: Option<Message>) -> Option<Message> {
        message.map(|message| Message { class: self.class.unwrap_or(message.class), ..message })
    }
}

/// Who waits for which message in the first of some jobs that has not finished, in words, and what became of it; `None` if all have finished. For the message
/// about a run in which nothing happens any more.
pub fn find_stall<'a>(works: impl Iterator<Item = &'a HostWork>, jobs: &[JobPlan]) -> Option<String> {
    let ranks: Vec<&RankWork> = works.flat_map(HostWork::programs).collect();
    let runner = |rank: &&'a RankWork| match rank {
        RankWork::Program(runner) => Some(runner.as_ref()),
        RankWork::Job(_) => None,
    };
    let mut all: Vec<&Runner> = ranks.iter().filter_map(runner).collect();
    let Some(job) = all.iter().filter(|runner| !runner.is_finished()).map(|runner| runner.job()).min() else {
        return ranks.iter().find_map(|rank| match rank {
            RankWork::Job(of_job) => {
                let name = of_job.noted().and_then(|job| jobs.get(usize::from(job)));
                let waits = of_job.unfinished()?;
                Some(name.map_or(waits.clone(), |job| format!("in job `{}` {waits}", job.name)))
            }
            RankWork::Program(_) => None,
        });
    };
    all.retain(|runner| runner.job() == job);
    let hosts: BTreeMap<u32, HostId> = all.iter().map(|runner| runner.rank()).collect();
    let named = |rank: u32| match hosts.get(&rank) {
        Some(host) => format!("rank {rank} on host {host}"),
        None => format!("rank {rank}"),
    };
    let name = jobs.get(usize::from(job)).map_or("", |job| job.name.as_str());
    Some(format!("in job `{name}` {}", describe(&all, named)?))
}

impl From<Source> for HostWork {
    fn from(source: Source) -> Self {
        HostWork { source, class: None, part: None }
    }
}

/// What a pattern sees of the run it is built for.
pub(crate) struct Setting<'a> {
    pub(crate) network: &'a Network,
    /// Who takes part: hosts of the network, servers, or GPUs.
    pub(crate) endpoints: Endpoints<'a>,
    pub(crate) context: &'a PlanContext,
    pub(crate) options: &'a Options,
    pub(crate) placement_seed: u64,
    /// The host of every rank.
    pub(crate) placed: Vec<HostId>,
    /// How a job changes its workload.
    pub(crate) job: JobSetting,
}

/// How a job changes its workload.
#[derive(Clone, Debug)]
pub(crate) struct JobSetting {
    /// When it may begin.
    pub(crate) start: Time,
    /// How often it does what its kind says.
    pub(crate) repetitions: u32,
}

impl Default for JobSetting {
    fn default() -> Self {
        JobSetting { start: Time::ZERO, repetitions: 1 }
    }
}

impl Setting<'_> {
    /// Number of ranks.
    pub(crate) fn ranks(&self) -> u32 {
        narrow::<u32>(self.placed.len())
    }

    /// One work per host from one per rank.
    pub(crate) fn plan(
        &self,
        total_messages: Option<u64>,
        mut work: impl FnMut(u32, HostId) -> HostWork,
    ) -> Plan {
        let mut hosts = vec![HostWork::default(); self.endpoints.count() as usize];
        for (rank, &host) in (0..).zip(&self.placed) {
            hosts[host as usize] = work(rank, host);
        }
        Plan::of_hosts(hosts, total_messages)
    }

    /// Every rank runs its part of a program; ranks that it has no part for idle.
    pub(crate) fn run(&self, program: Program) -> Plan {
        let hosts = &self.placed[..program.ranks() as usize];
        let (placed, plan) = self.lay(program, hosts);
        Plan { jobs: vec![self.job(placed, hosts)], ..plan }
    }

    /// The same of a program whose last ranks are the units of these switches, by their numbers among all.
    pub(crate) fn run_with_units(
        &self,
        program: Program,
        of_switches: &[u32],
        units: ReductionUnits,
    ) -> Plan {
        let ranks = program.ranks() as usize - of_switches.len();
        let first = self.endpoints.count();
        let mut hosts = self.placed[..ranks].to_vec();
        hosts.extend(of_switches.iter().map(|switch| first + switch));
        let (placed, plan) = self.lay(program, &hosts);
        Plan { jobs: vec![self.job(placed, &hosts[..ranks])], units: Some(units), ..plan }
    }

    /// Puts each rank of a program on its host, which may be one beyond those that the plan is for.
    fn lay(&self, program: Program, hosts: &[HostId]) -> (Arc<Placed>, Plan) {
        let program = program.times(self.job.repetitions);
        let messages = program.messages();
        let count = hosts.iter().map(|host| host + 1).max().unwrap_or(0).max(self.endpoints.count());
        let placed = Placed::new(program, hosts, count);
        let mut works = vec![HostWork::default(); count as usize];
        for (rank, &host) in (0..).zip(hosts) {
            // Units are there before the first rank.
            let is_unit = host >= self.endpoints.count();
            let start = if is_unit { self.job.start } else { self.first_start(host) };
            works[host as usize] = HostWork::program(Runner::new(placed.clone(), rank, start));
        }
        let plan = Plan::of_hosts(works, Some(messages));
        (placed, plan)
    }

    /// A program as a job of the ranks on these hosts.
    fn job(&self, placed: Arc<Placed>, hosts: &[HostId]) -> JobPlan {
        JobPlan {
            name: String::new(),
            hosts: hosts.into(),
            groups: 0..0,
            repetitions: placed.rounds(),
            start: self.job.start,
            messages: Some(placed.messages()),
            program: Some(placed),
            is_training: false,
        }
    }

    /// When the first messages of a host start.
    pub(crate) fn first_start(&self, host: HostId) -> Time {
        let jitter = self.options.first_start(self.context.seed, host);
        Time(self.job.start.0.saturating_add(jitter.0))
    }
}

impl Workload {
    /// A pattern with default options.
    pub fn new(pattern: Pattern) -> Self {
        Workload { pattern, options: Options::default() }
    }

    /// The highest traffic class of its messages.
    pub fn highest_class(&self) -> u8 {
        match &self.pattern {
            Pattern::Mix(mix) => mix.highest_class(),
            _ => self.options.class,
        }
    }

    /// Lays the workload on a network.
    ///
    /// # Errors
    /// If a parameter makes no sense on this network, or a file is missing or wrong; the error names the parameter,
    /// or the file and line.
    pub fn plan(&self, network: &Network, context: &PlanContext) -> Result<Plan, WorkloadError> {
        let plan = build(&self.pattern, &self.options, network, context, context.seed)?;
        Ok(Plan { rails: context.rails.clone(), ..plan })
    }
}

/// Lays a pattern on a network; ranks are placed by a seed that all parts of a mix share.
pub(crate) fn build(
    pattern: &Pattern,
    options: &Options,
    network: &Network,
    context: &PlanContext,
    placement_seed: u64,
) -> Result<Plan, WorkloadError> {
    options.checked_class()?;
    let endpoints = Endpoints { network, rails: context.rails.as_ref() };
    let placed = options.place(&endpoints, placement_seed)?;
    let job = JobSetting::default();
    build_placed(pattern, Setting { network, endpoints, context, options, placement_seed, placed, job })
}

/// Lays a pattern on the hosts of its ranks.
pub(crate) fn build_placed(pattern: &Pattern, setting: Setting<'_>) -> Result<Plan, WorkloadError> {
    let class = setting.options.checked_class()?;
    let context = setting.context;
    let knows_gpus = match pattern {
        Pattern::GpuCollective(_) | Pattern::TrainingStep(_) | Pattern::Mix(_) | Pattern::Idle(_) => true,
        _ => !setting.endpoints.rails.is_some_and(|rails| rails.hold_gpus()),
    };
    if !knows_gpus {
        let expected = "\"gpu-collective\" or \"training-step\" where the scale-up network of `servers` is ideal: others send between servers";
        return Err(WorkloadError::parameter("kind", expected, format!("\"{}\"", pattern.name())));
    }
    let mut plan = pattern.build(&setting)?;
    // A mix has named its own.
    for job in plan.jobs.iter_mut().filter(|job| job.name.is_empty()) {
        pattern.name().clone_into(&mut job.name);
        job.groups = 0..u16::try_from(plan.groups.len()).unwrap_or(u16::MAX);
    }
    let largest = plan.hosts.iter().flat_map(HostWork::programs).map(RankWork::largest_message).max();
    if let Some(largest) = largest
        && let Err(expected) = context.check_message(largest)
    {
        let field = match pattern {
            Pattern::Goal(_) | Pattern::HtsimMatrix(_) | Pattern::SimAi(_) => "file",
            Pattern::Chakra(_) => "files",
            Pattern::AstraSim(_) => "traces",
            Pattern::Skeleton(_) => "scale",
            Pattern::SharpLike(_) => "chunk",
            Pattern::TrainingStep(_) => "chunks",
            _ => "size",
        };
        return Err(WorkloadError::parameter(field, format!("messages of {expected}"), largest));
    }
    plan.hosts.iter_mut().for_each(|host| host.set_class(class));
    Ok(plan)
}
