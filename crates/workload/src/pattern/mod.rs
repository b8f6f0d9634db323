//! The traffic patterns, one file each.

mod flow_list;
mod incast;
mod partners;
mod permutation;
mod uniform;

pub use flow_list::FlowList;
pub use incast::Incast;
pub use permutation::Permutation;
pub use uniform::Uniform;

use netloom_units::kinds;

use crate::WorkloadError;
use crate::plan::{Plan, Setting};

kinds! {
    /// Which host sends to which, and by what rule.
    pub enum Pattern: "pattern" {
        "permutation" => Permutation(Permutation),
        "uniform" => Uniform(Uniform),
        "incast" => Incast(Incast),
        "flow-list" => FlowList(FlowList),
    }
}

impl Pattern {
    pub(crate) fn lay(&self, setting: &Setting) -> Result<Plan, WorkloadError> {
        match self {
            Pattern::Permutation(pattern) => pattern.lay(setting),
            Pattern::Uniform(pattern) => pattern.lay(setting),
            Pattern::Incast(pattern) => pattern.lay(setting),
            Pattern::FlowList(pattern) => pattern.lay(setting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HostWork, Message, PlanContext, Workload};
    use netloom_topology::{HostId, Network, NetworkBuilder};
    use netloom_units::{Rate, Time};

    /// Racks of `per_rack` hosts (the last may have fewer) below one spine; two racks form a pod.
    pub(crate) fn network(hosts: u32, per_rack: u32) -> Network {
        let mut builder = NetworkBuilder::new("test");
        builder.add_hosts(hosts);
        let tier = builder.tier("link");
        let racks: Vec<_> =
            (0..hosts.div_ceil(per_rack)).map(|rack| builder.add_switch(1, rack / 2)).collect();
        let spine = builder.add_switch(2, 0);
        for host in 0..hosts {
            builder.link(
                host,
                racks[(host / per_rack) as usize],
                Rate::from_gbps(100),
                Time::from_us(1),
                tier,
            );
        }
        for rack in racks {
            builder.link(rack, spine, Rate::from_gbps(100), Time::from_us(1), tier);
        }
        builder.build().unwrap()
    }

    pub(crate) fn plan(workload: Workload, network: &Network, seed: u64) -> Result<Plan, WorkloadError> {
        workload.plan(network, &PlanContext::new(seed))
    }

    /// Every message that starts by the clock, host by host.
    pub(crate) fn timed(plan: &mut Plan) -> Vec<(HostId, Message)> {
        let messages = (0..).zip(&mut plan.hosts);
        messages
            .flat_map(|(host, work)| std::iter::from_fn(move || Some((host, work.next_timed()?))))
            .collect()
    }

    #[test]
    fn an_idle_host_is_small() {
        assert!(std::mem::size_of::<HostWork>() <= 64, "{}", std::mem::size_of::<HostWork>());
    }
}
