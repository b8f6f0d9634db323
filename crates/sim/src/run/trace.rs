//! Why a packet goes where it goes.

use netloom_routing::{Carries, Header, PacketContext, SwitchPathSelector, Tag, View};
use netloom_topology::{HostId, Network, NodeId, PortId};
use netloom_units::{Time, narrow, random};

use crate::run::simulation::Simulation;

/// The path of the first packet of a flow through an idle fabric.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Source host.
    pub src: HostId,
    /// The switches it crosses, in order.
    pub hops: Vec<Choice>,
    /// Destination host.
    pub dst: HostId,
}

/// One switch's choice.
#[derive(Clone, Debug)]
pub struct Choice {
    /// The switch.
    pub switch: NodeId,
    /// Its candidate ports and the nodes they lead to.
    pub candidates: Vec<(PortId, NodeId)>,
    /// The port it takes.
    pub chosen: PortId,
    /// Why.
    pub reason: String,
}

impl Simulation {
    /// Follows the first packet of flow `flow` (its number at `src`) with entropy value, path label or layer `tag`.
    ///
    /// Random selectors draw from the same streams as the run would for its first packet.
    pub fn trace(&self, src: HostId, dst: HostId, flow: u32, tag: u32) -> Trace {
        let world = &self.world;
        let (network, forwarding) = (&world.network, &world.forwarding);
        let (bytes, payload) =
            (narrow::<u32>(world.transport.packet_size().0), narrow::<u32>(world.transport.options.mtu.0));
        let (tag, carries) = (Tag::from_bits(tag), Carries::Data);
        let mut header = Header { src, dst, flow, tag, bytes, payload, hops: 1, carries };
        let mut here = network.edge_switch(src);
        let mut hops: Vec<Choice> = Vec::new();
        while here != dst {
            let mut draws = random::Node::Router.stream(self.world.wiring.seed, u64::from(here));
            let stride = world.routing.stride(network, here);
            let mut path_selector = SwitchPathSelector::new(&world.routing, stride, true, false, &mut draws);
            let (candidates, hop, reason) = if forwarding.is_minimal() {
                let minimal = forwarding.table().candidates(here, dst);
                let tags = || forwarding.tags(src, dst);
                let view = IdleSwitch { network, here };
                let hop = path_selector.port(|| header, minimal, view, tags, &mut draws);
                let reason = match minimal.ports {
                    [_] if world.routing.goes_in_order() => {
                        "the only port on a minimal path along the lowest dimension that is left".into()
                    }
                    [_] => "the only port on a minimal path".into(),
                    several => path_selector.explain(&world.routing, &header, several.len()),
                };
                (minimal.ports.to_vec(), hop, reason)
            } else {
                let view = &mut IdleSwitch { network, here };
                let hop = path_selector.onward(
                    PacketContext { forwarding, place: forwarding.place(here), header: &header },
                    view,
                    &mut draws,
                );
                let tagged = Header { tag: hop.tag, ..header };
                let by = path_selector.explain_port(&world.routing, &tagged);
                let (candidates, reason) = forwarding.explain_onward(here, &tagged, &by);
                (candidates, hop, reason)
            };
            header.tag = hop.tag;
            hops.push(Choice {
                switch: here,
                candidates: candidates.iter().map(|&port| (port, network.neighbour(here, port))).collect(),
                chosen: hop.port,
                reason,
            });
            here = network.neighbour(here, hop.port);
            header.hops += 1;
        }
        Trace { src, hops, dst }
    }
}

/// A switch at which nothing waits.
#[derive(Clone, Copy, Debug)]
pub struct IdleSwitch<'a> {
    /// The network.
    pub network: &'a Network,
    /// The switch.
    pub here: NodeId,
}

impl View for IdleSwitch<'_> {
    fn now(&self) -> Time {
        Time::ZERO
    }

    fn load(&mut self, _: PortId) -> u64 {
        0
    }

    fn rate(&self, port: PortId) -> u64 {
        self.network.channel(self.network.ports(self.here)[usize::from(port)]).rate.0
    }
}
