//! Why a packet goes where it goes.

use netloom_routing::selector::congestion::Uncongested;
use netloom_routing::selector::valiant::Phase;
use netloom_routing::{Crossing, Header, Placement, SwitchRouter};
use netloom_topology::{HostId, NodeId, PortId};
use netloom_units::Time;
use netloom_units::random;

use crate::simulation::Simulation;

/// The way of the first packet of a flow through an idle fabric.
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
    /// Follows the first packet of flow `flow` (its number at `src`) with entropy value `entropy`.
    ///
    /// Random selectors draw from the same streams as the run would for its first packet.
    pub fn trace(&self, src: HostId, dst: HostId, flow: u32, entropy: u32) -> Trace {
        let world = &self.world;
        let network = &world.network;
        let bytes = world.transport.packet_size().0 as u32;
        let mut header = Header { src, dst, flow, entropy, bytes, control: false, notification: false };
        let mut here = network.edge_switch(src);
        let mut hops: Vec<Choice> = Vec::new();
        while here != dst {
            let minimal = world.table.candidates(here, dst);
            let stride = world.routing.stride(network, here);
            let random = random::Node::Router.stream(self.seed, u64::from(here));
            let mut router = SwitchRouter::new(&world.routing, random, stride);
            let first = hops.is_empty();
            let rate = |port: PortId| network.channel(network.ports(here)[usize::from(port)]).rate.0;
            let (candidates, chosen, reason) = match (self.layers(), &world.via) {
                (None, Some(via)) => {
                    let step = (first, here);
                    let hop = router.route_via(&world.routing, via, &world.table, &header, step, Time::ZERO);
                    header.entropy = hop.entropy;
                    let (candidates, reason) = self.via_reason(here, &header);
                    (candidates.to_vec(), hop.port, reason)
                }
                (Some(layers), _) => {
                    let ends = (layers.router(here), layers.router_of(dst));
                    let port = router.route_in_layer(&world.routing, layers, &header, ends, minimal);
                    let in_layer = layers.ports(header.entropy, ends.0, ends.1);
                    let reason = layer_reason(&header, ends, &in_layer, port);
                    (if in_layer.is_empty() { minimal.to_vec() } else { in_layer }, port, reason)
                }
                (None, None) => {
                    let crossing = Crossing { first, candidates: minimal, now: Time::ZERO };
                    let hop = router.route(&world.routing, &header, crossing, |_| 0, rate);
                    header.entropy = hop.entropy;
                    (minimal.to_vec(), hop.port, self.reason(here, minimal.len(), first, &header))
                }
            };
            hops.push(Choice {
                switch: here,
                candidates: candidates.iter().map(|&port| (port, network.neighbour(here, port))).collect(),
                chosen,
                reason,
            });
            here = network.neighbour(here, chosen);
        }
        Trace { src, hops, dst }
    }

    /// The candidates of a packet under Valiant as it leaves a switch, and why it takes one.
    fn via_reason(&self, switch: NodeId, header: &Header) -> (&[PortId], String) {
        let (table, network) = (&self.world.table, &self.world.network);
        let (ports, part) = match Phase::of(header.entropy) {
            Phase::Towards(edge) => {
                let towards = table.edge_switch(edge) - network.hosts();
                (table.towards_edge(switch, edge), format!("minimal towards intermediate switch {towards}"))
            }
            Phase::Minimal => (table.candidates(switch, header.dst), "minimal to the destination".into()),
        };
        let reason = match ports {
            [_] => part,
            _ => format!("{part}, by the {}", hash_reason(header)),
        };
        (ports, reason)
    }

    fn reason(&self, switch: NodeId, candidates: usize, first: bool, header: &Header) -> String {
        let routing = &self.world.routing;
        if candidates == 1 {
            return "the only port on a shortest path".into();
        }
        let hash = hash_reason(header);
        let selector = routing.selector_name();
        let mod_k = |name: &str, host| {
            let network = &self.world.network;
            let stride = routing.stride(network, switch);
            format!("{name} {host} / {stride} mod {candidates}")
        };
        match (routing.placement, selector) {
            (_, "d-mod-k") => format!("d-mod-k: {}", mod_k("destination", header.dst)),
            (_, "s-mod-k") => format!("s-mod-k: {}", mod_k("source", header.src)),
            (Placement::Nic, "round-robin") => format!("digit of path label {}", header.entropy),
            (Placement::Nic, _) | (_, "hash") => hash,
            (_, "weighted") => format!("{hash}, weighted by link rates"),
            (Placement::Ingress, _) if !first => hash,
            _ => {
                let home = match routing.selector.uncongested() {
                    None => return format!("{selector}, decided anew per {}", routing.granularity_name()),
                    Some(Uncongested::DModK) => format!("d-mod-k: {}", mod_k("destination", header.dst)),
                    Some(Uncongested::Lowest) => "the first port".into(),
                    Some(Uncongested::Hash) => hash,
                };
                format!("{selector}, no congestion known: {home}")
            }
        }
    }
}

fn hash_reason(header: &Header) -> String {
    format!("hash of source, destination, flow and entropy value {}", header.entropy)
}

/// Why a packet of a layered scheme takes `port` on its way from one router to another.
fn layer_reason(header: &Header, (here, to): (u32, u32), in_layer: &[PortId], port: PortId) -> String {
    let layer = header.entropy;
    match in_layer {
        _ if here == to => "the destination's port".into(),
        [] => format!("layer {layer} does not lead there; among minimal ports, {}", hash_reason(header)),
        [_] => format!("layer {layer}: port {port}"),
        several => {
            format!("layer {layer}: port {port} of {}, by the {}", several.len(), hash_reason(header))
        }
    }
}
