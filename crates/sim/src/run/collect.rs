//! After the run: every packet is accounted for, then the nodes' memories become records.

use std::collections::BTreeMap;

use netloom_fabric::{DropCause, Packet};
use netloom_record::{
    DecisionCount, FlowPacketRecord, FlowRecord, Gathered, PacketCounts, PacketStatistics, Records, Sink,
    Totals, WindowRecord, join_parts,
};
use netloom_routing::{Decisions, FlowKey};
use netloom_units::Time;
use netloom_workload::{Rails, RankLog};
use rustc_hash::FxHashMap;

use crate::background::Background;
use crate::host::Host;
use crate::message::Message;
use crate::node::Node;
use crate::protocol::facts;
use crate::run::channels::hand_on_channels;
use crate::run::conservation::{
    Balance, check_credits, check_losses, check_work, count_in_flight, has_unfinished_flows,
};
use crate::run::counts::{count_conweave, count_decisions, count_entries, count_reordering};
use crate::run::error::{ConservationError, RunError};
use crate::run::final_state::FinalState;
use crate::run::flow_observations::collect_flow_observations;
use crate::run::jobs::Jobs;
use crate::run::join::{Known, join};
use crate::run::rows::rows;
use crate::run::stall::find_deadlock;
use crate::world::World;

/// [`collect`] with all records in memory.
pub(crate) fn collect_all(world: &World, final_state: FinalState) -> Result<Records, RunError> {
    let mut kept = Records::default();
    let records = collect(world, final_state, &mut kept)?;
    Ok(Records { flows: kept.flows, channels: kept.channels, ..records })
}

/// Checks that every packet is accounted for and makes the records. Those of which there are many are handed to `sink`.
pub(crate) fn collect(
    world: &World,
    final_state: FinalState,
    sink: &mut dyn Sink,
) -> Result<Records, RunError> {
    let FinalState { mut nodes, pending, groups, until, stopped_at, is_out_of_time, background } =
        final_state;
    let background = background.map(|background| *background).unwrap_or_default();
    if is_out_of_time {
        return Err(RunError::OutOfTime);
    }
    Node::take_servers_apart(&mut nodes);
    let in_flight: Vec<&Packet> = pending.iter().filter_map(Message::packet).collect();
    check_losses(world, &nodes)?;
    // Who is on the way to a node is not known, so if any signal is, any queue may be about to go on.
    let is_signal = |message: &Message| match message {
        Message::Packet(packet) => facts(packet.kind).frees_ports,
        message => matches!(message, Message::Grant(_)),
    };
    let signalled = pending.iter().any(is_signal);
    let crossing = in_flight.len() as u64;
    if !signalled && let Some(cycle) = find_deadlock(world, &nodes) {
        return Err(RunError::Deadlock(cycle));
    }
    if pending.is_empty() {
        check_credits(world, &nodes, until)?;
    }

    let mut balances: FxHashMap<FlowKey, Balance> = FxHashMap::default();
    let (mut data, mut control) = (PacketCounts::default(), PacketCounts::default());
    let mut switching = Decisions::default();
    let mut last_event = Time::ZERO;
    let mut waiting = 0;
    for packet in &in_flight {
        count_in_flight(world, packet, &mut balances, &mut control);
    }
    for node in &mut nodes {
        match node {
            Node::Host(host) => {
                host.give_up();
                control.sent += host.control_sent;
                control.delivered += host.control_received;
                last_event = last_event.max(host.last_event);
            }
            Node::Switch(switch) => {
                control.sent += switch.control_sent;
                control.delivered += switch.control_received;
                switch.path_selector.flush_counts();
                switching.taken += switch.path_selector.decisions().taken;
                switching.deviating += switch.path_selector.decisions().deviating;
                last_event = last_event.max(switch.last_event());
            }
            Node::Untouched => continue,
            Node::Server(_) | Node::InServer => unreachable!("they have been taken apart"),
        }
        let Some(ports) = node.ports() else { continue };
        let dropped = ports.dropped();
        for (&(src, flow), &count) in &dropped.flows {
            let (src, flow) = (world.address(src), world.numbering.flow(flow));
            balances.entry(FlowKey { src, flow }).or_default().dropped += count;
        }
        data.lost += dropped.data(DropCause::Fault);
        control.lost += dropped.control(DropCause::Fault);
        control.dropped += dropped.control(DropCause::Full) + dropped.control(DropCause::Fault);
        let held = node.buffered();
        for packet in ports.waiting_packets(&world.rules).map(|(_, _, packet)| packet).chain(held) {
            waiting += 1;
            count_in_flight(world, packet, &mut balances, &mut control);
        }
    }
    let is_complete = pending.is_empty() && until == Time::MAX && stopped_at.is_none();
    if is_complete && waiting > 0 {
        return Err(ConservationError::Leftover(waiting).into());
    }
    if is_complete {
        check_work(world, &nodes)?;
    }
    // A run that was cut short ends there; one whose work was done ended with its last event.
    let is_cut = waiting > 0
        || !pending.is_empty()
        || has_unfinished_flows(&nodes)
        || hosts(&nodes).any(Host::has_work_left);
    let end = match stopped_at {
        Some(reached) => reached,
        None if is_cut && until < Time::MAX => until,
        None => world.clock(last_event),
    };
    let end = end.max(background.end);
    // Nodes go by the clock of the network.
    let instant = world.instant(end);

    let mut records = Records { groups, ..Records::default() };
    collect_flow_observations(world, &mut nodes, &mut records)?;
    let Background {
        flows: beside,
        logs,
        carried,
        calculated,
        has_work_left,
        active_until: active_beside,
        ..
    } = background;
    let logs = take_logs(&mut nodes, end).into_iter().chain(logs).collect();
    let parts = world.servers.as_deref().map(|servers| (&*servers.rails, Gathered::default()));
    let done = Done { calculated, is_undone: has_work_left, ..Done::default() };
    let mut flows = Flows { jobs: Jobs::new(&world.jobs, logs), parts, done, sink };
    let mut beside = rows(&beside)?.peekable();
    let mut metered = Metered::default();
    let mut by_nics = DecisionCount::default();
    join(world, &mut nodes, instant, |sent, known| {
        let mut flow = sent.record();
        let key = FlowKey { src: flow.src, flow: flow.flow };
        while let Some(row) =
            beside.next_if(|row| row.as_ref().map_or(true, |row| (row.src, row.flow) < (key.src, key.flow)))
        {
            flows.take(row?);
        }
        let Balance { dropped, in_flight } = balances.remove(&key).unwrap_or_default();
        if let Some(received) = &known.received {
            received.complete(&mut flow);
        }
        let delivered = known.received.as_ref().map_or(0, |received| received.packets);
        let trimmed = flow.trims + u64::from(flow.returned_to_sender);
        if flow.packets != delivered + trimmed + dropped + in_flight {
            let (src, flow, sent) = (flow.src, flow.flow, flow.packets);
            let error = ConservationError::Flow { src, flow, sent, delivered, trimmed, dropped, in_flight };
            return Err(error.into());
        }
        data.sent += flow.packets;
        data.delivered += delivered;
        data.trimmed += trimmed;
        data.dropped += dropped;
        data.in_flight += in_flight;
        metered.add(world, &flow, known);
        by_nics.taken += flow.decisions;
        by_nics.non_default += flow.non_default_decisions;
        flows.take(flow);
        Ok(())
    })?;
    for row in beside {
        flows.take(row?);
    }
    if let Some(key) = balances.keys().min() {
        return Err(ConservationError::Stray { src: key.src, flow: key.flow }.into());
    }
    if control.sent != control.delivered + control.dropped + control.in_flight {
        let PacketCounts { sent, delivered, dropped, in_flight, .. } = control;
        return Err(ConservationError::Control { sent, delivered, dropped, in_flight }.into());
    }

    collect_windows(world, &mut nodes, end, &mut records);
    records.samples = world.recorder.series.finish_by(end)?;
    records.flow_samples = world.recorder.flow_series.finish_by(end)?;
    records.sender_samples = world.recorder.sender_series.finish_by(end)?;
    records.trace = world.recorder.trace.finish()?;
    let gaps = world.recorder.gaps.finish()?;
    records.gaps = world.gaps.are_counted.then_some(gaps);
    let Metered { packets, flow_packets, window_flows } = metered;
    records.latencies = packets.iter().flat_map(|(&of, packets)| packets.latency_rows(of)).collect();
    records.packets = packets;
    records.flow_packets = flow_packets.finish()?;
    records.window_flows = window_flows.finish()?;
    let Flows { mut jobs, parts, done, sink } = flows;
    if let Some((rails, parts)) = parts {
        let nic = |place| rails.host(place / rails.rails(), place % rails.rails());
        let hand_on = |flow| {
            jobs.add(&flow);
            sink.flow(flow);
        };
        records.parts = Some(join_parts(&parts.finish()?, rails.rails(), nic, hand_on)?);
    }
    records.jobs = jobs.finish();

    let decisions = count_decisions(world, by_nics, switching);
    let flowcut_entries = count_entries(&nodes, instant);
    let conweave = count_conweave(&nodes, instant);
    let reordering = count_reordering(&nodes, instant);
    let load_until = Some(world.recorder.load_until).filter(|&until| until < end);
    // Transmissions that have not ended are packets that have not arrived.
    let is_busy = waiting > 0 || !pending.is_empty();
    records.totals = Totals {
        simulated: end,
        load_until,
        makespan: done.makespan(&nodes),
        active_from: done.first_start,
        active_until: if is_busy { end } else { world.clock(last_event).max(active_beside).min(end) },
        packet_hops: 0,
        data,
        control,
        decisions,
        flowcut_entries,
        conweave,
        reordering,
    };
    records.totals.packet_hops = hand_on_channels(world, &nodes, &records.totals, &carried, sink) - crossing;
    records.sort();
    Ok(records)
}

fn hosts(nodes: &[Node]) -> impl Iterator<Item = &Host> {
    nodes.iter().filter_map(|node| match node {
        Node::Host(host) => Some(host.as_ref()),
        _ => None,
    })
}

/// What the ranks of programs noted.
fn take_logs(nodes: &mut [Node], end: Time) -> Vec<RankLog> {
    let hosts = nodes.iter_mut().filter_map(|node| match node {
        Node::Host(host) => Some(host),
        _ => None,
    });
    hosts.flat_map(|host| host.work.take_logs(end)).collect()
}

/// Where the records of flows go, in order of (source, number).
struct Flows<'a> {
    jobs: Jobs<'a>,
    /// Where servers have several NICs, what are parts of messages.
    parts: Option<(&'a Rails, Gathered<FlowRecord>)>,
    done: Done,
    sink: &'a mut dyn Sink,
}

impl Flows<'_> {
    fn take(&mut self, flow: FlowRecord) {
        self.done.note(&flow);
        match &mut self.parts {
            Some((rails, parts)) => {
                let ((src, _), (receiver, rail)) = (rails.endpoint(flow.src), rails.endpoint(flow.dst));
                parts.push(FlowRecord { src, dst: receiver * rails.rails() + rail, ..flow });
            }
            None => {
                self.jobs.add(&flow);
                self.sink.flow(flow);
            }
        }
    }
}

/// When flows began, and when all were done.
#[derive(Default)]
struct Done {
    /// When the last calculation beside the nodes was over.
    calculated: Option<Time>,
    first_start: Option<Time>,
    last_completion: Option<Time>,
    is_undone: bool,
}

impl Done {
    fn note(&mut self, flow: &FlowRecord) {
        self.first_start = Some(self.first_start.map_or(flow.start, |first| first.min(flow.start)));
        match flow.fct {
            Some(fct) if !flow.stream => {
                self.last_completion = self.last_completion.max(Some(flow.start + fct));
            }
            _ => self.is_undone = true,
        }
    }

    /// When flows and calculations were all done.
    fn makespan(&self, nodes: &[Node]) -> Option<Time> {
        let is_done = !self.is_undone && !hosts(nodes).any(Host::has_work_left);
        let calculated =
            hosts(nodes).filter_map(|host| host.rare.as_ref()?.calculated).max().max(self.calculated);
        self.last_completion.max(calculated).filter(|_| is_done)
    }
}

/// What was measured of flows on request.
#[derive(Default)]
struct Metered {
    packets: BTreeMap<(u16, u8), PacketStatistics>,
    flow_packets: Gathered<FlowPacketRecord>,
    window_flows: Gathered<WindowRecord>,
}

impl Metered {
    fn add(&mut self, world: &World, flow: &FlowRecord, known: Known) {
        if let Some(packets) = known.packets {
            let record = packets.flow_record((flow.src, flow.dst, flow.flow), (flow.group, flow.class));
            self.flow_packets.push(record);
            // As in the summary: flows of the warm-up do not count, streams do.
            if flow.stream || flow.start >= world.recorder.warm_up {
                self.packets.entry((flow.group, flow.class)).or_default().merge(&packets);
            }
        }
        known.windows.into_iter().for_each(|row| self.window_flows.push(row.record(flow.group)));
    }
}

/// What named channels did in the windows that are measured on their own.
fn collect_windows(world: &World, nodes: &mut [Node], end: Time, records: &mut Records) {
    for node in nodes {
        let (ports, sampler) = match node {
            Node::Host(host) => (&host.nic, &mut host.sampler),
            Node::Switch(switch) => (&switch.ports, &mut switch.sampler),
            Node::Untouched | Node::Server(_) | Node::InServer => continue,
        };
        if let Some(sampler) = sampler {
            records.window_channels.append(&mut sampler.complete(ports, end, &world.recorder.windows));
        }
    }
}
