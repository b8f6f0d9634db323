//! After the run: every packet is accounted for, then the nodes' memories become records.

use netloom_fabric::{Packet, PacketKind};
use netloom_record::{ChannelRecord, DecisionCount, FlowRecord, PacketCounts, Records, Totals};
use netloom_routing::{Decisions, FlowKey, Placement};
use netloom_transport::Receiver;
use netloom_units::Time;
use rustc_hash::FxHashMap;

use crate::model::{Node, World};

/// Packets were created or lost without a trace. This is a bug in netloom.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConservationError {
    /// A flow's data packets do not add up.
    #[error(
        "conservation violated: flow {flow} of host {src} sent {sent} data packets, but {delivered} were delivered, \
         {dropped} dropped and {in_flight} are in flight"
    )]
    Flow {
        /// Source host.
        src: u32,
        /// Number of the flow at its source.
        flow: u32,
        /// Data packets sent.
        sent: u64,
        /// Data packets delivered.
        delivered: u64,
        /// Data packets dropped.
        dropped: u64,
        /// Data packets under way.
        in_flight: u64,
    },
    /// ACKs do not add up.
    #[error(
        "conservation violated: {sent} control packets were sent, but {delivered} delivered and {in_flight} are in flight"
    )]
    Control {
        /// Control packets sent.
        sent: u64,
        /// Control packets delivered.
        delivered: u64,
        /// Control packets under way.
        in_flight: u64,
    },
    /// A packet was received that belongs to no flow.
    #[error("conservation violated: packets of flow {flow} of host {src}, which does not exist")]
    Stray {
        /// Source host.
        src: u32,
        /// Number of the flow at its source.
        flow: u32,
    },
    /// Something still waits although the run has come to its end.
    #[error("conservation violated: the work is done but {0} packets still wait in queues")]
    Leftover(u64),
}

/// Where a flow's data packets went.
#[derive(Clone, Default)]
struct Balance {
    delivered: u64,
    dropped: u64,
    in_flight: u64,
    receiver: Option<Receiver>,
}

/// Checks conservation and makes the records. `pending` are the packets on channels, `hops` the number of packets that crossed one.
pub(crate) fn collect(
    world: &World,
    mut nodes: Vec<Node>,
    pending: &[Packet],
    hops: u64,
    until: Time,
) -> Result<Records, ConservationError> {
    let mut balances: FxHashMap<FlowKey, Balance> = FxHashMap::default();
    let mut control = PacketCounts::default();
    let mut switching = Decisions::default();
    let mut last_event = Time::ZERO;
    let mut waiting = 0;
    for packet in pending {
        count_in_flight(packet, &mut balances, &mut control);
    }
    for node in &mut nodes {
        let ports = match node {
            Node::Host(host) => {
                host.give_up();
                control.sent += host.control_sent;
                control.delivered += host.control_received;
                for (key, receiver) in host.receivers.drain(..) {
                    let balance = balances.entry(key).or_default();
                    balance.delivered += receiver.packets;
                    balance.receiver = Some(receiver);
                }
                last_event = last_event.max(host.last_event);
                &host.nic
            }
            Node::Switch(switch) => {
                for (&key, &count) in &switch.dropped {
                    balances.entry(key).or_default().dropped += count;
                }
                switching.taken += switch.router.decisions.taken;
                switching.deviating += switch.router.decisions.deviating;
                last_event = last_event.max(switch.last_event);
                &switch.ports
            }
        };
        for (_, _, packet) in ports.waiting_packets(&world.rules) {
            waiting += 1;
            count_in_flight(packet, &mut balances, &mut control);
        }
    }
    // A run that was cut short ends there; one whose work was done ended with its last event.
    let end = if pending.is_empty() || until == Time::MAX { last_event } else { until };
    if pending.is_empty() && until == Time::MAX && waiting > 0 {
        return Err(ConservationError::Leftover(waiting));
    }

    let mut records = Records::default();
    let mut data = PacketCounts::default();
    for (host, node) in nodes.iter_mut().enumerate() {
        let Node::Host(node) = node else { break };
        records.flows.reserve(node.records.len());
        for mut flow in node.records.drain(..) {
            flow.src = host as u32;
            let balance = balances.remove(&FlowKey { src: flow.src, flow: flow.flow }).unwrap_or_default();
            let Balance { delivered, dropped, in_flight, receiver } = balance;
            if flow.packets != delivered + dropped + in_flight {
                let (src, sent) = (flow.src, flow.packets);
                return Err(ConservationError::Flow {
                    src,
                    flow: flow.flow,
                    sent,
                    delivered,
                    dropped,
                    in_flight,
                });
            }
            data.sent += flow.packets;
            data.delivered += delivered;
            data.dropped += dropped;
            data.in_flight += in_flight;
            add_receiver(&mut flow, receiver);
            records.flows.push(flow);
        }
    }
    if let Some(key) = balances.keys().min() {
        return Err(ConservationError::Stray { src: key.src, flow: key.flow });
    }
    if control.sent != control.delivered + control.in_flight {
        let PacketCounts { sent, delivered, in_flight, .. } = control;
        return Err(ConservationError::Control { sent, delivered, in_flight });
    }

    let decisions = count_decisions(world, &records.flows, switching);
    records.totals = Totals { simulated: end, packet_hops: hops, data, control, decisions };
    collect_channels(world, &mut nodes, end, &mut records);
    records.sort();
    Ok(records)
}

fn count_in_flight(packet: &Packet, balances: &mut FxHashMap<FlowKey, Balance>, control: &mut PacketCounts) {
    match packet.kind {
        PacketKind::Data => {
            let key = FlowKey { src: packet.src, flow: packet.flow };
            balances.entry(key).or_default().in_flight += 1;
        }
        PacketKind::Ack | PacketKind::Nack | PacketKind::Cnm => control.in_flight += 1,
        // Of the link, not of the fabric: switches send and receive them.
        PacketKind::Pause | PacketKind::Credit => {}
    }
}

fn add_receiver(flow: &mut FlowRecord, receiver: Option<Receiver>) {
    let Some(receiver) = receiver else { return };
    flow.fct = receiver.completed.map(|at| at - flow.start);
    flow.ooo_packets = receiver.ooo_packets;
    flow.max_ood = receiver.max_ood;
    flow.ecn_marks = receiver.marks;
    flow.path_changes = receiver.path_changes;
}

/// Decisions per selector: those of switches, or those of NICs.
fn count_decisions(
    world: &World,
    flows: &[FlowRecord],
    switching: Decisions,
) -> std::collections::BTreeMap<String, DecisionCount> {
    let count = match world.routing.placement {
        Placement::Nic => DecisionCount {
            taken: flows.iter().map(|flow| flow.decisions).sum(),
            deviated: flows.iter().map(|flow| flow.deviations).sum(),
        },
        Placement::Ingress | Placement::Switch => {
            DecisionCount { taken: switching.taken, deviated: switching.deviating }
        }
    };
    [(world.routing.selector_name().to_owned(), count)].into()
}

fn collect_channels(world: &World, nodes: &mut [Node], end: Time, records: &mut Records) {
    let network = &world.network;
    for node in nodes {
        let (ports, sampler) = match node {
            Node::Host(host) => (&host.nic, &mut host.sampler),
            Node::Switch(switch) => (&switch.ports, &mut switch.sampler),
        };
        if let Some(sampler) = sampler {
            sampler.complete(ports, end);
            records.samples.append(&mut sampler.samples);
        }
        for port in 0..ports.len() as u16 {
            let (id, stats) = (ports.channel(port), ports.stats_of(port, end));
            let channel = network.channel(id);
            records.channels.push(ChannelRecord {
                channel: id,
                from: network.node_name(channel.from),
                to: network.node_name(channel.to),
                tier: network.tiers()[usize::from(channel.tier)].clone(),
                rate: channel.rate,
                bytes: stats.bytes,
                packets: stats.packets,
                busy: stats.busy,
                max_queue: stats.max_queue,
                mean_queue: stats.mean_queue(end),
                drops: stats.drops,
                marks: stats.marks,
                ..ChannelRecord::default()
            });
        }
    }
}
