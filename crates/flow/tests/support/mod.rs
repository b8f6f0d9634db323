//! What the tests of this crate share, with the networks and schemes of the simulator's.
#![allow(dead_code, unreachable_pub)]

#[path = "../../../sim/tests/common/mod.rs"]
pub mod common;

use std::ops::ControlFlow;

use netloom_flow::FlowRun;
use netloom_record::Records;
use netloom_sim::{RunError, SimConfig};
use netloom_topology::Network;
use netloom_units::{Bytes, Time};
use netloom_workload::{Idle, Job, JobPlacement, Message, Pattern, Plan, PlanContext, Workload, add_jobs};

use common::{scheme, schemes, unlimited};

/// Messages as (source, destination, bytes, start in ps).
pub fn messages(network: &Network, list: &[(u32, u32, u64, u64)]) -> Plan {
    let message = |&(src, dst, bytes, start)| (src, Message::new(dst, Bytes(bytes), Time(start)));
    Plan::of_messages(network.hosts(), list.iter().map(message))
}

/// A job that runs once, by default on as many hosts as its workload says.
pub fn job(name: &str, placement: JobPlacement, workload: Pattern) -> Job {
    Job {
        name: name.to_owned(),
        workload,
        ranks: None,
        placement,
        share: false,
        start: Time::ZERO,
        start_jitter: Time::ZERO,
        repetitions: 1,
        class: 0,
        stragglers: Vec::new(),
    }
}

/// Jobs on a network where nothing else is done.
pub fn laid(network: &Network, jobs: &[Job]) -> Plan {
    let context = PlanContext::new(1);
    let plan = Workload::new(Pattern::Idle(Idle::default())).plan(network, &context).unwrap();
    add_jobs(plan, jobs, network, &context).unwrap()
}

/// A scheme with hosts that no window limits.
pub fn free(name: &str) -> SimConfig {
    let mut config = SimConfig { transport: unlimited(), ..scheme(name) };
    schemes::fit(&mut config.fabric.options, &config.routing);
    config
}

pub fn try_flow_by_flow(network: &Network, config: SimConfig, plan: Plan) -> Result<Records, RunError> {
    let mut records = Records::default();
    let run = FlowRun::new(network.clone(), config, plan).unwrap();
    let finished = run.run(&mut |_| ControlFlow::Continue(()), &mut records)?;
    let Records { flows, channels, .. } = records;
    Ok(Records { flows, channels, ..finished.records })
}

pub fn flow_by_flow(network: &Network, config: SimConfig, plan: Plan) -> Records {
    try_flow_by_flow(network, config, plan).unwrap()
}
