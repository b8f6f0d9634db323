//! The simulation context: what every node may read, and none of the nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use netloom_engine::{END_OF_TIME, NodeIndex, Scheduler};
use netloom_fabric::{Fabric, FlowControl, LAST_RANK, PortSpec, Rules, Telemetry, check_switch, ring_rank};
use netloom_routing::channels::{self, VcRule};
use netloom_routing::{Forwarding, Routing};
use netloom_topology::{ChannelId, HostId, Network, NodeId};
use netloom_transport::{Ack, Transport};
use netloom_units::{Bytes, Invalid, Time};
use netloom_workload::JobPlan;

use crate::epochs::Epochs;
use crate::message::Message;
use crate::numbering::Numbering;
use crate::observe::gaps::Gaps;
use crate::observe::recorder::Recorder;
use crate::rails::Servers;
use crate::wiring::Wiring;

/// What data packets say besides what all of them do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// Nothing.
    Nothing,
    /// Whether at least so much of their flow is still to be sent, for flowcuts.
    HasMore(Bytes),
    /// Whether they ask for an ACK, and have been sent before, for ACKs that answer several of them.
    AsksForAck,
    /// The same, and in the field of the serialisation delay how far their sender should be granted credit.
    AsksForCredit,
    /// In the field of the serialisation delay, whether their ACKs are to let their flow's window grow, for switches that notify sources (Bolt).
    Claims,
}

impl Says {
    /// An answer, which echoes what its packet said.
    #[inline]
    pub(crate) fn echoed(self, ack: Ack) -> Ack {
        match self {
            Says::AsksForCredit => Ack { serialisation: Time::ZERO, ..ack },
            _ => ack,
        }
    }
}

/// How the transport of a host takes data packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TakesData {
    /// As they come.
    AsTheyCome,
    /// In order, as far as a buffer can put them in order.
    InOrder,
    /// As they come, and one ACK may answer several that came in any order, after this many bytes on the wire.
    ToSack(Bytes),
}

/// What every node may read.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) fabric: Fabric,
    /// The fabric as ports see it.
    pub(crate) rules: Rules,
    pub(crate) routing: Routing,
    /// The routes by which the run begins, unless `epochs` says otherwise.
    pub(crate) forwarding: Forwarding,
    /// The routes that follow faults.
    pub(crate) epochs: Epochs,
    /// By what packets change virtual channels.
    pub(crate) vc_rule: VcRule,
    pub(crate) transport: Transport,
    /// How packets say of which subflow they are.
    pub(crate) numbering: Numbering,
    pub(crate) recorder: Recorder,
    /// What is wanted of the gaps between a flow's packets.
    pub(crate) gaps: Gaps,
    /// Whether flows are started from outside, too, so that hosts report events of them.
    pub(crate) is_driven: bool,
    /// Whether hosts report, too, that all of a flow has been acknowledged.
    pub(crate) reports_sent: bool,
    /// How many hosts there are, without the units of switches.
    pub(crate) hosts: u32,
    /// The servers, where these have several NICs.
    pub(crate) servers: Option<Box<Servers>>,
    /// Whether a data packet can be lost, in a queue or by a fault.
    pub(crate) is_lossy: bool,
    /// What data packets say besides.
    pub(crate) says: Says,
    /// How the transport takes data packets.
    pub(crate) takes: TakesData,
    /// What switches write on packets, if the transport asks for it.
    pub(crate) telemetry: Option<Arc<Telemetry>>,
    /// What nodes are made from.
    pub(crate) wiring: Wiring,
    /// The jobs of the run.
    pub(crate) jobs: Vec<JobPlan>,
    /// Calculations of programs under way.
    pub(crate) calculations: AtomicU64,
    /// How far the clock of the workload and of records is ahead of that of the network, in picoseconds: by what was skipped because it was steady. It changes only while all nodes rest.
    pub(crate) ahead: AtomicU64,
}

impl World {
    /// What the clock of the workload and of records shows at an instant of the network.
    #[inline]
    pub(crate) fn clock(&self, now: Time) -> Time {
        now + Time(self.ahead.load(Ordering::Relaxed))
    }

    /// The instant of the network at which [that clock](Self::clock) will show this.
    #[inline]
    pub(crate) fn instant(&self, clock: Time) -> Time {
        clock - Time(self.ahead.load(Ordering::Relaxed))
    }

    /// Both clocks show the same from now on; returns how far they were apart.
    pub(crate) fn take_ahead(&self) -> Time {
        Time(self.ahead.swap(0, Ordering::Relaxed))
    }

    /// The routes at an instant.
    #[inline]
    pub(crate) fn routes(&self, now: Time) -> &Forwarding {
        self.epochs.at(now, &self.forwarding)
    }

    /// The servers of a run that has some.
    pub(crate) fn servers(&self) -> &Servers {
        self.servers.as_deref().expect("servers are made with them")
    }

    /// The server and the rail of a host of the network; where each has one NIC, the host itself.
    pub(crate) fn server(&self, host: HostId) -> (u32, u32) {
        self.servers.as_ref().map_or((host, 0), |servers| servers.rails.endpoint(host))
    }

    /// The node in which a node of the network lives.
    pub(crate) fn node(&self, node: NodeId) -> NodeIndex {
        match &self.servers {
            Some(servers) if self.network.is_host(node) => servers.node(node),
            _ => node,
        }
    }

    /// Delay of a channel and of the switch at its end.
    pub(crate) fn latency(&self, id: ChannelId) -> Time {
        let channel = self.network.channel(id);
        let to_host = self.network.is_host(channel.to);
        channel.latency + if to_host { Time::ZERO } else { self.fabric.options.switch_latency }
    }

    /// The rank of a channel to a switch.
    fn rank(&self, id: ChannelId) -> u8 {
        match (self.vc_rule, self.network.dimension(id)) {
            (VcRule::Datelines, Some(along)) => ring_rank(along.number, along.wraps),
            _ => channels::rank(&self.network, id),
        }
    }

    /// What the ports of a node are wired to.
    pub(crate) fn specs(&self, node: NodeId) -> impl Iterator<Item = PortSpec> {
        let World { network, wiring: Wiring { faults, seed, port_of, fastest, .. }, .. } = self;
        network.ports(node).iter().map(|&id| {
            let channel = network.channel(id);
            let (rate, changes) = faults.schedule(id, channel.rate);
            let (opposite, its_changes) = faults.whole_schedule(id ^ 1, channel.rate);
            let most = its_changes.iter().map(|&(_, rate)| rate).fold(opposite, Ord::max);
            let switch = channel.to.checked_sub(network.hosts());
            PortSpec {
                channel: id,
                to: self.node(channel.to),
                peer: port_of[(id ^ 1) as usize],
                latency: self.latency(id),
                rate,
                changes,
                faults: faults.of_channel(id, *seed),
                cut_through_from: switch.map(|switch| fastest[switch as usize]),
                ecn: self.fabric.ecn_at(channel.rate, switch.is_none()),
                inward: (self.latency(id ^ 1), most),
                rank: if switch.is_some() { self.rank(id) } else { LAST_RANK },
            }
        })
    }

    /// Whether some port has faults that begin, end or draw during the run.
    pub(crate) fn has_changing_channels(&self) -> bool {
        let Wiring { faults, seed, .. } = &self.wiring;
        let channels = (0..self.network.nodes()).flat_map(|node| self.network.ports(node));
        channels.copied().any(|id| {
            let (_, changes) = faults.schedule(id, self.network.channel(id).rate);
            !changes.is_empty() || faults.of_channel(id, *seed).is_some()
        })
    }

    /// Whether a node does something when links of its are cut and repaired: under flow control.
    pub(crate) fn has_timed_cuts(&self, id: NodeId) -> bool {
        self.rules.is_lossless() && self.wiring.faults.cuts_at(&self.network, id).next().is_some()
    }

    /// Sets the timers of a node for cuts and repairs of its links, if it does something then.
    pub(crate) fn set_cut_timers(&self, id: NodeId, out: &mut impl Scheduler<Message>) {
        if !self.rules.is_lossless() {
            return;
        }
        for (port, from, until) in self.wiring.faults.cuts_at(&self.network, id) {
            let port = self.wiring.port_of(self.network.ports(id)[usize::from(port)]);
            let instants = [(from, true), (until, false)].into_iter();
            for (at, is_cut) in instants.filter(|&(at, _)| at < END_OF_TIME) {
                out.timer(at, Message::Link { port, is_cut });
            }
        }
    }

    /// Refuses buffers that are too small for the cables of a switch.
    pub(crate) fn check_switches(&self) -> Result<(), Invalid> {
        if matches!(self.fabric.flow_control, FlowControl::Lossy(_) | FlowControl::Credits(_)) {
            return Ok(());
        }
        (self.network.hosts()..self.network.nodes()).try_for_each(|switch| {
            let specs: Vec<PortSpec> = self.specs(switch).collect();
            check_switch(&specs, &self.rules)
        })
    }
}
