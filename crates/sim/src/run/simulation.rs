//! From a network and a plan to records.

use std::ops::ControlFlow;
use std::sync::Arc;

use netloom_engine::{self as engine, Engine, Progress, reference};
use netloom_fabric::FlowControl;
use netloom_record::{Division, NamedChannel, Records, Sink, Skipped};
use netloom_routing::{Forwarding, Layers};
use netloom_topology::Network;
use netloom_units::Time;
use netloom_workload::Plan;

use crate::background::Background;
use crate::config::{Fast, SimConfig};
use crate::node::Node;
use crate::observe::measure::Measure;
use crate::observe::packet_trace::PacketTrace;
use crate::run::assemble::layers_seed;
use crate::run::collect::{collect, collect_all};
use crate::run::error::{RunError, SimError};
use crate::run::final_state::FinalState;
use crate::run::layout::setup;
use crate::run::progress::{Finished, RunProgress};
use crate::run::skip::{self, Wanted};
use crate::run::skip_steps::kept_longer;
use crate::run::stall::Stall;
use crate::run::validate::Validated;
use crate::world::World;

/// Nodes ready to run.
#[derive(Debug)]
pub struct Simulation {
    pub(crate) world: World,
    pub(crate) measure: Measure,
    pub(crate) named_channels: Vec<NamedChannel>,
    /// What is traced, and the numbers of the channels among it.
    pub(crate) traced: Option<(Arc<PacketTrace>, Vec<u32>)>,
    pub(crate) groups: Vec<String>,
    pub(crate) nodes: Vec<Node>,
    /// What of the run is skipped.
    pub(crate) fast: Fast,
    /// What was run beforehand without packets.
    pub(crate) background: Option<Box<Background>>,
}

impl Simulation {
    /// Lays routes, faults and work on a network.
    ///
    /// # Errors
    /// If a part of the configuration makes no sense, does not fit the network or another part, or is not built.
    pub fn new(network: Network, config: SimConfig, mut plan: Plan) -> Result<Self, SimError> {
        let fast = config.fast;
        let network = equip(network, &mut plan)?;
        let validated = Validated::new(&network, config, &plan)?;
        Ok(Simulation { fast, ..Self::of(network, validated, plan)? })
    }

    /// Refuses what [`Self::new`] refuses. Routes are built only if something depends on which they are.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn check(network: Network, config: SimConfig, mut plan: Plan) -> Result<(), SimError> {
        let network = equip(network, &mut plan)?;
        let validated = Validated::new(&network, config, &plan)?;
        Self::check_validated(network, validated, plan)
    }

    pub(crate) fn check_validated(
        network: Network,
        validated: Validated,
        plan: Plan,
    ) -> Result<(), SimError> {
        let Validated { fabric, routing, faults, seed, .. } = &validated;
        // A lossless fabric is searched for deadlocks, and new routes may leave some host out of reach.
        if !matches!(fabric.flow_control, FlowControl::Lossy(_)) || !faults.withdrawals.is_empty() {
            return Self::of(network, validated, plan).map(drop);
        }
        let is_cut = |channel| faults.cut[channel as usize / 2];
        Ok(Forwarding::check(routing, &network, is_cut, layers_seed(*seed))?)
    }

    /// Sets when the load ends; what comes later is the drain.
    pub(crate) fn note_load(&mut self, until: Time) {
        self.world.recorder.load_until = until;
        self.nodes.iter_mut().for_each(|node| node.note_drain(until));
    }

    /// The layers by which switches forward, if the scheme has any.
    pub fn layers(&self) -> Option<&Layers> {
        self.world.forwarding.layers()
    }

    /// The kinds of traffic, by name.
    pub fn groups(&self) -> &[String] {
        &self.groups
    }

    /// The channels that are reported by name.
    pub fn named_channels(&self) -> &[NamedChannel] {
        &self.named_channels
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.world.network
    }

    /// Why nothing of the run will be skipped, as far as that can be said before it; `None` if something may.
    pub fn skips_nothing_because_of(&self) -> Option<&'static str> {
        if self.traced.is_some() || self.measure.sample.is_some() {
            return Some("samples and traces");
        }
        match self.fast {
            Fast::Steady(_) => skip::obstacle_to_any(&self.world),
            Fast::Auto if !self.nodes.iter().any(Node::follows_program) => {
                Some("a workload without programs")
            }
            Fast::Auto | Fast::Nothing | Fast::Recurring => skip::obstacle(&self.world),
        }
    }

    /// Runs on `threads` threads.
    ///
    /// # Errors
    /// If packets got lost without a trace (a bug in netloom), if a lossless fabric lost some, or if the run stands still: in a
    /// deadlock, or because a program waits for what never comes.
    pub fn run(self, threads: usize) -> Result<Finished, RunError> {
        self.run_observed(threads, |_| ControlFlow::Continue(()))
    }

    /// Runs; `observe` is called every few simulated microseconds and may stop the run.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_observed(
        self,
        threads: usize,
        mut observe: impl FnMut(RunProgress) -> ControlFlow<()>,
    ) -> Result<Finished, RunError> {
        let mut kept = Records::default();
        let finished = self.run_streamed(threads, &mut observe, &mut kept)?;
        let Records { flows, channels, .. } = kept;
        Ok(Finished { records: Records { flows, channels, ..finished.records }, ..finished })
    }

    /// Runs as [`Self::run_observed`], but hands the records of flows and channels to `sink` instead of keeping them: there may be more than fit the memory.
    ///
    /// # Errors
    /// As [`Self::run`]; some flows may have been handed over by then.
    // Not generic: every crate that calls it would compile the engine with all that nodes do once more, a minute each.
    pub fn run_streamed(
        self,
        threads: usize,
        observe: &mut dyn FnMut(RunProgress) -> ControlFlow<()>,
        sink: &mut dyn Sink,
    ) -> Result<Finished, RunError> {
        let is_asked_for = self.fast.is_asked_for();
        let skips = self.fast != Fast::Nothing;
        let obstacle = if skips { self.skips_nothing_because_of() } else { None };
        let wanted = (skips && obstacle.is_none()).then(|| match self.fast {
            Fast::Steady(steady) => {
                let recurring = skip::obstacle(&self.world).is_none();
                Wanted { recurring, steady: Some(steady) }
            }
            Fast::Auto | Fast::Nothing | Fast::Recurring => Wanted { recurring: true, steady: None },
        });
        let mut skipped =
            skips.then(|| Skipped { obstacle: obstacle.map(str::to_owned), ..Skipped::default() });
        let mut steady = None;
        let Simulation { mut world, measure, named_channels, groups, nodes, background, .. } = self;
        if wanted.is_some_and(|wanted| wanted.recurring) {
            world.recorder.kept_longer = kept_longer(world.network.hosts());
        }
        let background_flows = background.as_ref().map(|background| background.messages);
        let until = measure.until.unwrap_or(Time::MAX);
        let setup = setup(&world, threads, until);
        let mut world = Arc::new(world);
        let mut stall = Stall::new(&world);
        let mut reached = Time::ZERO;
        let of_world = Arc::clone(&world);
        let mut observe = |progress: Progress| {
            reached = of_world.clock(progress.time);
            if stall.is_seen(&of_world, progress.time, progress.messages) || of_world.recorder.is_broken() {
                return ControlFlow::Break(());
            }
            observe(RunProgress { time: reached, flows_done: progress.tally, packet_hops: progress.messages })
        };
        let run = if let Some(wanted) = wanted {
            let ended = skip::run(&world, nodes, setup, wanted, &mut observe)?;
            (skipped, steady) = (Some(ended.skipped), ended.steady);
            ended.run
        } else {
            let engine = Engine::new(Arc::clone(&world), nodes, setup);
            engine.expect("packets take time: the lookahead is never zero").run_observed(observe)
        };
        // A search by default that finds nothing is not reported.
        let skipped = skipped.filter(|skipped| is_asked_for || skipped.jumps > 0);
        drop(of_world);
        let engine::Division { epochs, work, longest } = run.division;
        let division = (threads > 1).then_some(Division { epochs, work, longest });
        // Records take much of what the layers of a large network have taken.
        if let Some(world) = Arc::get_mut(&mut world) {
            world.forwarding.forget_beyond();
        }
        let final_state = FinalState {
            nodes: run.nodes,
            pending: run.pending,
            groups,
            until,
            stopped_at: run.stopped.then_some(reached),
            is_out_of_time: run.out_of_time,
            background,
        };
        let records = collect(&world, final_state, sink)?;
        let records = Records { windows: measure.windows, named_channels, ..records };
        Ok(Finished { records, interrupted: run.stopped, skipped, steady, background_flows, division })
    }

    /// Runs under the textbook executor, one global event heap: slow, and a check of the other.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_reference(self) -> Result<Finished, RunError> {
        let Simulation { world, measure, named_channels, groups, nodes, .. } = self;
        let (nodes, _) = reference::run(&world, nodes);
        let records = collect_all(&world, FinalState::at_the_end(nodes, groups))?;
        let records = Records { windows: measure.windows, named_channels, ..records };
        Ok(Finished {
            records,
            interrupted: false,
            skipped: None,
            steady: None,
            background_flows: None,
            division: None,
        })
    }
}

/// The network with what the plan needs beside it.
fn equip(network: Network, plan: &mut Plan) -> Result<Network, SimError> {
    let equipped = plan.equip(&network).map_err(|error| SimError::TooLarge(error.to_string()))?;
    Ok(equipped.unwrap_or(network))
}
