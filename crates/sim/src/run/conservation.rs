//! Whether every packet and credit is accounted for.

use netloom_fabric::{FlowControl, NO_INGRESS, Packet};
use netloom_record::PacketCounts;
use netloom_routing::FlowKey;
use netloom_units::{Time, narrow};
use netloom_workload::find_stall;
use rustc_hash::FxHashMap;

use crate::channel::channel_name;
use crate::node::Node;
use crate::protocol::declaration::Account;
use crate::protocol::facts;
use crate::run::error::{ConservationError, RunError};
use crate::world::World;

/// Where a flow's data packets went.
#[derive(Clone, Copy, Default)]
pub(crate) struct Balance {
    pub(crate) dropped: u64,
    pub(crate) in_flight: u64,
}

/// A lossless fabric loses nothing.
pub(crate) fn check_losses(world: &World, nodes: &[Node]) -> Result<(), RunError> {
    if !world.rules.is_lossless() {
        return Ok(());
    }
    for ports in nodes.iter().filter_map(Node::ports) {
        for port in 0..narrow::<u16>(ports.len()) {
            let packets = ports.stats_of(port, Time::ZERO).drops;
            if packets > 0 {
                let channel = channel_name(&world.network, ports.channel(port) ^ 1);
                return Err(RunError::Lost { channel, packets });
            }
        }
    }
    Ok(())
}

/// With nothing on channels, what a port may send and what lies in the buffer at the other end, or has left it without its credit having
/// gone back, make up that buffer. What is lost shortly before a cut, which comes at `until` or later, is missing until then.
pub(crate) fn check_credits(world: &World, nodes: &[Node], until: Time) -> Result<(), RunError> {
    let FlowControl::Credits(config) = &world.fabric.flow_control else { return Ok(()) };
    let mut held: FxHashMap<(u32, usize), u64> = FxHashMap::default();
    for node in nodes {
        let Some(ports) = node.ports() else { continue };
        let waiting = ports.waiting_packets(&world.rules).filter(|(_, queue, _)| queue.is_some());
        let waiting = waiting.map(|(_, _, packet)| packet).chain(node.buffered());
        if matches!(node, Node::Switch(_)) {
            for packet in waiting.filter(|packet| packet.ingress != NO_INGRESS) {
                let account = (ports.channel(packet.ingress) ^ 1, world.rules.data_queue_in(packet));
                *held.entry(account).or_default() += u64::from(packet.size);
            }
        }
        for port in 0..narrow::<u16>(ports.len()) {
            for queue in 0..world.rules.data_queues() {
                *held.entry((ports.channel(port) ^ 1, queue)).or_default() += ports.owed(port, queue);
            }
        }
    }
    for ports in nodes.iter().filter_map(Node::ports) {
        for port in 0..narrow::<u16>(ports.len()) {
            for queue in 0..world.rules.data_queues() {
                let channel = ports.channel(port);
                let held = held.get(&(channel, queue)).copied().unwrap_or(0);
                let credits = ports.credits(port, queue).unwrap_or(0);
                let may_miss = world.wiring.faults.is_cut_from(channel, until);
                if credits + held > config.buffer.0 || credits + held < config.buffer.0 && !may_miss {
                    let (channel, buffer) = (channel_name(&world.network, channel), config.buffer.0);
                    return Err(ConservationError::Credits { channel, credits, held, buffer }.into());
                }
            }
        }
    }
    Ok(())
}

/// When all is done, all programs are.
pub(crate) fn check_work(world: &World, nodes: &[Node]) -> Result<(), RunError> {
    let works = nodes.iter().filter_map(|node| match node {
        Node::Host(host) => Some(&host.work),
        _ => None,
    });
    match find_stall(works, &world.jobs) {
        Some(what) => Err(RunError::Unfinished(what)),
        None => Ok(()),
    }
}

pub(crate) fn has_unfinished_flows(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Host(host) => host.sent.iter().any(|flow| !flow.has_ended()),
        _ => false,
    })
}

pub(crate) fn count_in_flight(
    world: &World,
    packet: &Packet,
    balances: &mut FxHashMap<FlowKey, Balance>,
    control: &mut PacketCounts,
) {
    match (facts(packet.kind).account, packet.data_source()) {
        (Account::Data, Some(src)) => {
            let (src, flow) = (world.address(src), world.numbering.flow(packet.flow));
            balances.entry(FlowKey { src, flow }).or_default().in_flight += 1;
        }
        (Account::Control, _) => control.in_flight += 1,
        (Account::Data | Account::None, _) => {}
    }
}
