//! What the formats of flow lists share: checks of every flow, and the plan.

use std::path::Path;

use netloom_topology::HostId;
use netloom_units::memory::Meter;
use netloom_units::names::shorten;
use netloom_units::{Bytes, Invalid, Time, narrow};

use crate::WorkloadError;
use crate::plan::{HostWork, Message, Plan, Setting};

/// How a list names hosts where the network's file calls them by numbers of its own.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaks {
    /// By their position among the hosts, from 0.
    InNumbers,
    /// As the network's file does.
    InNames,
}

/// Collects checked flows; the hosts of a list are ranks, which the placement maps to hosts of the network.
pub(super) struct Flows<'a> {
    setting: &'a Setting<'a>,
    file: &'a Path,
    hosts: Vec<Vec<Message>>,
    count: u64,
    memory: Meter,
}

/// A growing list holds its old and its new copy for a moment.
const BYTES_PER_FLOW: u64 = 2 * size_of::<Message>() as u64;

impl<'a> Flows<'a> {
    pub(super) fn new(setting: &'a Setting<'a>, file: &'a Path) -> Self {
        Flows {
            setting,
            file,
            hosts: vec![Vec::new(); setting.endpoints.count() as usize],
            count: 0,
            memory: Meter::default(),
        }
    }

    /// Number of flows so far.
    pub(super) fn count(&self) -> u64 {
        self.count
    }

    /// Number of ranks that flows may name.
    pub(super) fn ranks(&self) -> u32 {
        self.setting.ranks()
    }

    /// The rank that a word of a list stands for: a number; or the name of a node, unless the ranks are servers. Where a file's
    /// names are numbers themselves, a list that speaks in `names` means those.
    pub(super) fn rank(
        &self,
        line: u64,
        column: &str,
        word: &str,
        names: Speaks,
    ) -> Result<u64, WorkloadError> {
        let fail = |problem: String| WorkloadError::line(self.file, line, format!("{column}: {problem}"));
        let (network, endpoints) = (self.setting.network, &self.setting.endpoints);
        let unknown = |error: Invalid| match endpoints.have_own_names() {
            true => fail(error.reason()),
            false => {
                fail(format!("expected a number, or a host's name such as h0, found \"{}\"", shorten(word)))
            }
        };
        let number = word.parse::<u64>();
        match number {
            Ok(number) if names == Speaks::InNumbers || !endpoints.have_own_names() => Ok(number),
            Err(_) if !endpoints.have_names() => {
                Err(fail(format!("expected a number, found \"{}\"", shorten(word))))
            }
            _ => match network.find_node(word).map_err(unknown)? {
                host if network.is_host(host) => Ok(host.into()),
                _ => Err(fail(format!("expected a host, found the switch \"{word}\""))),
            },
        }
    }

    /// Checks the flow that stands in a line of the file, and that there is room for it; the ranks of its ends.
    pub(super) fn check(
        &mut self,
        line: u64,
        src: u64,
        dst: u64,
        bytes: Bytes,
    ) -> Result<(u32, u32), WorkloadError> {
        let fail = |problem: String| WorkloadError::line(self.file, line, problem);
        let last = self.ranks() - 1;
        let host = |name: &str, rank: u64| -> Result<HostId, WorkloadError> {
            let found = usize::try_from(rank).ok().and_then(|rank| self.setting.placed.get(rank));
            found
                .copied()
                .ok_or_else(|| fail(format!("{name}: expected a host from 0 to {last}, found {rank}")))
        };
        if host("src", src)? == host("dst", dst)? {
            return Err(fail(format!("src and dst are the same host, {src}")));
        }
        if bytes == Bytes(0) {
            return Err(fail("bytes: expected at least 1, found 0".into()));
        }
        self.setting
            .context
            .check_message(bytes)
            .map_err(|expected| fail(format!("bytes: expected {expected}, found {bytes}")))?;
        self.memory.take(BYTES_PER_FLOW).map_err(|error| fail(error.to_string()))?;
        Ok((narrow::<u32>(src), narrow::<u32>(dst)))
    }

    /// Adds the flow that stands in a line of the file.
    pub(super) fn add(
        &mut self,
        line: u64,
        src: u64,
        dst: u64,
        bytes: Bytes,
        start: Time,
    ) -> Result<(), WorkloadError> {
        let (src, dst) = self.check(line, src, dst, bytes)?;
        let fail = |problem: String| WorkloadError::line(self.file, line, problem);
        let (src_host, dst) = (self.setting.placed[src as usize], self.setting.placed[dst as usize]);
        let shifted = start.0.checked_add(self.setting.first_start(src_host).0).map(Time);
        let start = shifted.filter(|&shifted| shifted < Time::END).ok_or_else(|| {
            fail(format!("start: {start} is beyond the end of simulated time, {}", Time::END))
        })?;
        self.hosts[src_host as usize].push(Message::new(dst, bytes, start));
        self.count += 1;
        Ok(())
    }

    /// Adds an entry of a list or, where there is no start, of a traffic matrix: all of it begins at once, and nothing is sent where it
    /// says nothing.
    pub(super) fn add_entry(
        &mut self,
        line: u64,
        src: u64,
        dst: u64,
        bytes: Bytes,
        start: Option<Time>,
    ) -> Result<(), WorkloadError> {
        match start {
            None if bytes == Bytes(0) => Ok(()),
            _ => self.add(line, src, dst, bytes, start.unwrap_or(Time::ZERO)),
        }
    }

    /// The plan, every host's flows by start and, among equals, in the order of the file.
    pub(super) fn plan(self) -> Plan {
        let by_start = |mut flows: Vec<Message>| {
            flows.sort_by_key(|message| message.start);
            HostWork::list(flows)
        };
        Plan::of_hosts(self.hosts.into_iter().map(by_start).collect(), Some(self.count))
    }
}
