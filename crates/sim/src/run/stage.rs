//! What a run without packets takes from the simulation: the network with its routes and faults, and idle paths.

use std::sync::Arc;

use netloom_fabric::FlowControl;
use netloom_record::NamedChannel;
use netloom_routing::{Forwarding, Routing};
use netloom_topology::{ChannelId, HostId, Network};
use netloom_transport::Transport;
use netloom_units::{Bytes, Rate, Time};
use netloom_workload::{HostWork, JobPlan, Plan, Rails, RankLog};

use crate::background::Background;
use crate::config::SimConfig;
use crate::host::idle::Idle;
use crate::numbering::FIRST_OWN;
use crate::observe::measure::Measure;
use crate::path::PathProfile;
use crate::run::error::SimError;
use crate::run::jobs::Jobs;
use crate::run::simulation::Simulation;
use crate::run::validate::Validated;

/// A scenario on its network, ready for another way to run it than packet by packet. What is refused, which routes there are and when they change, and what
/// an idle path takes is as in a [`Simulation`] of the same scenario; but as nothing waits in buffers, routes are not searched for deadlocks.
#[derive(Debug)]
pub struct Stage(Simulation);

/// A flow that has its path for itself.
#[derive(Clone, Copy, Debug)]
pub struct Lone {
    /// Its completion time.
    pub ideal_fct: Time,
    /// The part of it before the first packet leaves: a handshake, or a request.
    pub before: Time,
    /// From sending an ACK to its arrival; none where nothing is acknowledged.
    pub answer: Option<Time>,
}

impl Stage {
    /// Lays routes and faults on a network. The hosts' work stays in the plan.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn new(network: Network, config: SimConfig, plan: &mut Plan) -> Result<Self, SimError> {
        let validated = without_buffers(&network, config, plan)?;
        Simulation::lay(network, validated, plan).map(Stage)
    }

    /// Refuses what [`Self::new`] refuses, as [`Simulation::check`] does.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn check(network: Network, config: SimConfig, plan: Plan) -> Result<(), SimError> {
        let validated = without_buffers(&network, config, &plan)?;
        Simulation::check_validated(network, validated, plan)
    }

    /// The same scenario packet by packet, of which hosts or servers do this work, on what the background leaves of the channels' rates. Only without flow
    /// control, by which buffers would play a part.
    pub fn beside(self, mut background: Background, works: Vec<HostWork>) -> Simulation {
        let Stage(mut simulation) = self;
        simulation.world.wiring.faults.share(std::mem::take(&mut background.shares));
        simulation.make_nodes(works);
        simulation.background = Some(Box::new(background));
        simulation
    }

    /// The network.
    pub fn network(&self) -> &Network {
        &self.0.world.network
    }

    /// The routing scheme.
    pub fn routing(&self) -> &Routing {
        &self.0.world.routing
    }

    /// What hosts do.
    pub fn transport(&self) -> &Transport {
        &self.0.world.transport
    }

    /// What to measure.
    pub fn measure(&self) -> &Measure {
        &self.0.measure
    }

    /// The NICs of servers, where these have several.
    pub fn rails(&self) -> Option<&Arc<Rails>> {
        self.0.world.servers.as_ref().map(|servers| &servers.rails)
    }

    /// The kinds of traffic, by name.
    pub fn groups(&self) -> &[String] {
        &self.0.groups
    }

    /// The channels that are reported by name.
    pub fn named_channels(&self) -> &[NamedChannel] {
        &self.0.named_channels
    }

    /// The seed of all that is random in the run but the workload.
    pub fn seed(&self) -> u64 {
        self.0.world.wiring.seed
    }

    /// From which number on hosts number flows that are not a program's.
    pub fn first_number(&self) -> u32 {
        self.0.world.wiring.first_number
    }

    /// Whether a flow of that number is a program's, where its host runs one.
    pub fn is_of_program(number: u32) -> bool {
        number < FIRST_OWN
    }

    /// When the last source stops; none if the load lasts until all is done.
    pub fn load_until(&self) -> Option<Time> {
        Some(self.0.world.recorder.load_until).filter(|&until| until < Time::MAX)
    }

    /// The routes at an instant.
    pub fn routes(&self, now: Time) -> &Forwarding {
        self.0.world.routes(now)
    }

    /// When routes change after an instant.
    pub fn next_routes(&self, now: Time) -> Option<Time> {
        self.0.world.epochs.next_after(now)
    }

    /// Per channel whose rate is not always that of its link, in order: its rate at time zero and its later ones; 0 while it is cut.
    pub fn rates(&self) -> Vec<(ChannelId, Vec<(Time, Rate)>)> {
        let network = self.network();
        self.0.world.wiring.faults.rates(|channel| network.channel(channel).rate)
    }

    /// A flow that is alone.
    pub fn lone(&self, src: HostId, dst: HostId, bytes: Bytes) -> Lone {
        let world = &self.0.world;
        let Idle { ideal_fct, answer, .. } = world.idle(src, dst, bytes);
        let pulls = world.transport.congestion.facts().pulls.and_then(|asking| asking.packets());
        let asks = pulls.is_some_and(|pulls| pulls.request_to_send);
        let request = if asks { answer * 2 } else { Time::ZERO };
        let options = &world.transport.options;
        let handshake = match options.handshake {
            true => world.idle_path(src, dst).one_way(options.header) + answer,
            false => Time::ZERO,
        };
        let answer = world.transport.has_acks().then_some(answer);
        Lone { ideal_fct: ideal_fct + request, before: handshake + request, answer }
    }

    /// The path by which a minimal route begins, with nothing on it.
    pub fn idle_path(&self, src: HostId, dst: HostId) -> PathProfile {
        self.0.world.idle_path(src, dst)
    }

    /// A path along channels, with nothing on it.
    pub fn path_along(&self, channels: &[ChannelId]) -> PathProfile {
        PathProfile::along(&self.0.world, channels.iter().copied())
    }

    /// The jobs.
    pub fn job_plans(&self) -> &[JobPlan] {
        &self.0.world.jobs
    }

    /// The jobs, for their records, with what their ranks noted.
    pub fn jobs(&self, logs: Vec<RankLog>) -> Jobs<'_> {
        Jobs::new(&self.0.world.jobs, logs)
    }
}

/// A configuration in which buffers play no part.
fn without_buffers(network: &Network, config: SimConfig, plan: &Plan) -> Result<Validated, SimError> {
    let mut validated = Validated::new(network, config, plan)?;
    validated.fabric.flow_control = FlowControl::Lossy(netloom_fabric::flow_control::lossy::Lossy {});
    Ok(validated)
}
