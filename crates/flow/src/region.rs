//! A region of interest in packets, and the rest of the scenario flow by flow.
//!
//! All of it is run flow by flow first, and what flows outside of the region take of each channel is kept. Then the region is run in packets, on channels
//! that have what is left of their rates. Nothing else couples the two: packets do not wait for flows, and flows do not react to packets.

use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_fabric::FlowControl;
use netloom_record::Sink;
use netloom_sim::{Background, Finished, RunError, RunProgress, SimConfig, SimError, Stage};
use netloom_topology::{HostId, Network, NodeId};
use netloom_units::kind::Kind;
use netloom_units::{Invalid, Time};
use netloom_workload::{HostWork, Inside, Plan, Region};
use rustc_hash::FxHashSet;

use crate::background::Outside;
use crate::outcome::Outcome;
use crate::run::{FlowRun, Level, Run, check};

/// A scenario with a region of interest, ready to run.
#[derive(Debug)]
pub struct RegionRun {
    flows: FlowRun,
    inside: Arc<Inside>,
    /// By host or server, what is run in packets.
    works: Vec<HostWork>,
}

impl RegionRun {
    /// Lays routes and faults on a network, and finds the messages of the region.
    ///
    /// # Errors
    /// If packets could not be run either ([`netloom_sim::Simulation::new`]), or all flow by flow, but for what is measured of packets; under flow control,
    /// whose pauses and credits would cross the border; or if the region makes no sense ([`Region::find`]).
    pub fn new(network: Network, config: SimConfig, plan: Plan, region: &Region) -> Result<Self, SimError> {
        let inside = Self::find(&network, &config, &plan, region)?;
        let flows = FlowRun::of(network, config, plan, Level::Beside)?;
        let works = inside.works(&flows.works, flows.stage.measure().until);
        Ok(RegionRun { flows, inside, works })
    }

    /// Refuses what [`Self::new`] refuses, with less work where routes are not needed.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn check(network: Network, config: SimConfig, plan: Plan, region: &Region) -> Result<(), SimError> {
        Self::find(&network, &config, &plan, region)?;
        FlowRun::check_at(network, config, plan, Level::Beside)
    }

    fn find(
        network: &Network,
        config: &SimConfig,
        plan: &Plan,
        region: &Region,
    ) -> Result<Arc<Inside>, SimError> {
        check(network, config, plan, Level::Beside)?;
        let flow_control = &config.fabric.flow_control;
        if !matches!(flow_control, FlowControl::Lossy(_)) {
            let expected = "\"lossy\" where only a region is run in packets, as flows beside it know no pauses and no credits";
            let found = format!("\"{}\"", flow_control.name());
            return Err(SimError::Fabric(Invalid::new("flow_control", expected, found)));
        }
        region.find(plan, network).map_err(SimError::Region)
    }

    /// The network, its routes, and what is measured.
    pub fn stage(&self) -> &Stage {
        self.flows.stage()
    }

    /// Runs all flow by flow on one thread, then the region in packets on `threads`; `observe` is called from time to time and may stop the run. The records
    /// of flows and channels go to `sink`.
    ///
    /// # Errors
    /// If either part stands still before its work is done, packets are lost track of, or the records cannot be kept.
    pub fn run(
        self,
        threads: usize,
        observe: &mut dyn FnMut(RunProgress) -> ControlFlow<()>,
        sink: &mut dyn Sink,
    ) -> Result<Finished, RunError> {
        let RegionRun { flows: FlowRun { stage, spread, works: all }, inside, works } = self;
        let has_program = works.iter().map(HostWork::is_program).collect();
        let outside = Outside::new(
            Arc::clone(&inside),
            wanted(&stage, &inside),
            has_program,
            stage.transport().packet_size(),
        );
        let mut run = Run::new(&stage, spread, all, Some(outside));
        run.begin();
        let stopped_at = run.go(observe)?;
        let outcome = run.end(stopped_at)?;
        let background = background(outcome, &inside);
        let done = background.messages_done;
        let mut observe = |progress: RunProgress| match stopped_at {
            Some(_) => ControlFlow::Break(()),
            None => observe(RunProgress { flows_done: progress.flows_done + done, ..progress }),
        };
        let finished = stage.beside(background, works).run_streamed(threads, &mut observe, sink)?;
        Ok(Finished { interrupted: finished.interrupted || stopped_at.is_some(), ..finished })
    }
}

/// What was run flow by flow, for the packets beside it.
fn background(outcome: Outcome, inside: &Inside) -> Background {
    let Outcome { end, is_in_flight, flows, mut logs, calculated, has_work_left, done, outside, .. } =
        outcome;
    logs.retain(|log| !inside.has_job(log.job));
    let Some(outside) = outside else { return Background::default() };
    let ends = logs.iter().flat_map(|log| &log.rounds).filter_map(|round| round.end);
    let calculated = ends.max().max(calculated);
    let last = outside.last_end.max(calculated.unwrap_or_default());
    let active_until = if is_in_flight { end } else { last };
    let is_left = is_in_flight || has_work_left;
    Background {
        flows,
        messages_done: done,
        logs,
        calculated,
        has_work_left,
        active_until,
        end: if is_left { end } else { active_until },
        ..outside.finish(end)
    }
}

/// By channel, whether packets between hosts of the region may take it: with minimal routes the channels on these, otherwise all.
fn wanted(stage: &Stage, inside: &Inside) -> Vec<bool> {
    let network = stage.network();
    let mut wanted = vec![false; network.channels() as usize];
    let endpoint = |host: HostId| stage.rails().map_or(host, |rails| rails.endpoint(host).0);
    let hosts: Vec<HostId> = (0..network.hosts()).filter(|&host| inside.has_member(endpoint(host))).collect();
    let mut now = Some(Time::ZERO);
    while let Some(instant) = now {
        if !stage.routes(instant).is_minimal() {
            return vec![true; network.channels() as usize];
        }
        add_routes(stage, instant, &hosts, &mut wanted);
        now = stage.next_routes(instant);
    }
    for host in hosts {
        let channel = network.ports(host)[0] as usize;
        (wanted[channel], wanted[channel ^ 1]) = (true, true);
    }
    wanted
}

/// Marks the channels between switches on the routes of an instant among some hosts.
fn add_routes(stage: &Stage, now: Time, hosts: &[HostId], wanted: &mut [bool]) {
    let (network, table) = (stage.network(), stage.routes(now).table());
    let mut edges: Vec<(NodeId, HostId)> =
        hosts.iter().map(|&host| (network.edge_switch(host), host)).collect();
    edges.sort_unstable();
    edges.dedup_by_key(|&mut (switch, _)| switch);
    for &(to, dst) in &edges {
        let mut seen: FxHashSet<NodeId> = edges.iter().map(|&(switch, _)| switch).collect();
        let mut next: Vec<NodeId> = edges.iter().map(|&(switch, _)| switch).collect();
        while let Some(here) = next.pop() {
            if here == to {
                continue;
            }
            for &port in table.candidates(here, dst).ports {
                wanted[network.ports(here)[usize::from(port)] as usize] = true;
                let ahead = network.neighbour(here, port);
                if !network.is_host(ahead) && seen.insert(ahead) {
                    next.push(ahead);
                }
            }
        }
    }
}
