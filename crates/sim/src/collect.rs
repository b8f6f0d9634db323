//! After the run: every packet is accounted for, then the nodes' memories become records.

use std::collections::BTreeMap;
use std::sync::Arc;

use netloom_engine::END_OF_TIME;
use netloom_fabric::{DropCause, FlowControl, NO_INGRESS, Packet, PacketKind, Ports};
use netloom_record::{
    ChannelRecord, DecisionCount, EntryCount, FlowPacketRecord, FlowRecord, Gathered, PacketCounts,
    PacketStatistics, Records, ReorderingCount, SeriesError, Sink, Totals, WeavingCount, WindowRecord,
    join_parts,
};
use netloom_routing::{Decisions, FlowKey, Placement};
use netloom_units::{Time, narrow};
use rustc_hash::FxHashMap;

use crate::halves::{Known, join};
use crate::model::{Message, Node, World};
use crate::passages;
use crate::stall::{channel_name, find_deadlock};

/// Why a run has no records.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// A bug in netloom.
    #[error(transparent)]
    Conservation(#[from] ConservationError),
    /// A lossless fabric lost packets: its headroom is smaller than the cable needs.
    #[error(
        "the lossless fabric lost {packets} packets that came over {channel}: its input buffer was full; give fabric.flow_control more \
         headroom"
    )]
    Lost {
        /// The first channel, by number, whose input buffer overflowed.
        channel: String,
        /// Packets lost there.
        packets: u64,
    },
    /// Packets wait for each other.
    #[error(
        "deadlock: the packets of these channels wait for each other in a cycle: {}; leave `vcs` and `allow_deadlock` of fabric.flow_control \
         out to have as many virtual channels as the routes need; where routes follow a cut (`reroute_after`), packets under way at that moment can \
         need more `vcs`",
        .0.join(", ")
    )]
    Deadlock(Vec<String>),
    /// Work is left at the end of time.
    #[error("the run reached {END_OF_TIME} of simulated time, the end of time, with work left")]
    OutOfTime,
    /// A time series, or what flows leave behind, cannot be kept.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// Work is left although nothing happens any more.
    #[error("the run stands still: host {host} {what}")]
    Unfinished {
        /// The first host that waits.
        host: u32,
        /// For what.
        what: String,
    },
}

/// Packets were created or lost without a trace. This is a bug in netloom.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConservationError {
    /// A flow's data packets do not add up.
    #[error(
        "conservation violated: flow {flow} of host {src} sent {sent} data packets, but {delivered} were delivered, {trimmed} trimmed, \
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
        /// Data packets of which only the header was.
        trimmed: u64,
        /// Data packets dropped.
        dropped: u64,
        /// Data packets under way.
        in_flight: u64,
    },
    /// ACKs do not add up.
    #[error(
        "conservation violated: {sent} control packets were sent, but {delivered} were delivered, {dropped} dropped and {in_flight} are in \
         flight"
    )]
    Control {
        /// Control packets sent.
        sent: u64,
        /// Control packets delivered.
        delivered: u64,
        /// Control packets dropped.
        dropped: u64,
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
    /// Credits were created or lost.
    #[error(
        "conservation violated: {channel} has {credits} bytes of credit and {held} bytes in the buffer of {buffer} at its end"
    )]
    Credits {
        /// The channel.
        channel: String,
        /// Credit at its start.
        credits: u64,
        /// Bytes in the buffer at its end.
        held: u64,
        /// Size of that buffer.
        buffer: u64,
    },
}

/// Where a flow's data packets went.
#[derive(Clone, Copy, Default)]
struct Balance {
    dropped: u64,
    in_flight: u64,
}

/// What a run leaves behind.
pub(crate) struct Remains {
    pub(crate) nodes: Vec<Node>,
    /// What is on channels.
    pub(crate) pending: Vec<Message>,
    pub(crate) groups: Vec<String>,
    /// When the run was to end; `Time::MAX` for when all is done.
    pub(crate) until: Time,
    /// Where it was stopped before that, if it was: everything earlier has been run.
    pub(crate) stopped_at: Option<Time>,
    /// Whether time itself came to its end before all was done.
    pub(crate) is_out_of_time: bool,
}

impl Remains {
    /// Those of a run that went on until nothing was left to happen.
    pub(crate) fn at_the_end(nodes: Vec<Node>, groups: Vec<String>) -> Self {
        let (until, pending) = (Time::MAX, Vec::new());
        Remains { nodes, pending, groups, until, stopped_at: None, is_out_of_time: false }
    }
}

/// The same with all records in memory.
pub(crate) fn collect_all(world: &World, remains: Remains) -> Result<Records, RunError> {
    let mut kept = Records::default();
    let records = collect(world, remains, &mut kept)?;
    Ok(Records { flows: kept.flows, channels: kept.channels, ..records })
}

/// Checks that every packet is accounted for and makes the records. Those of which there are many are handed to `sink`.
pub(crate) fn collect(world: &World, remains: Remains, sink: &mut dyn Sink) -> Result<Records, RunError> {
    let Remains { mut nodes, pending, groups, until, stopped_at, is_out_of_time } = remains;
    if is_out_of_time {
        return Err(RunError::OutOfTime);
    }
    Node::take_servers_apart(&mut nodes);
    let in_flight: Vec<&Packet> = pending.iter().filter_map(Message::packet).collect();
    check_losses(world, &nodes)?;
    // Who is on the way to a node is not known, so if any signal is, any lane may be about to go on.
    let is_signal = |message: &Message| match message {
        Message::Packet(packet) => {
            matches!(packet.kind, PacketKind::Pause | PacketKind::Credit | PacketKind::Missed)
        }
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
                switch.decider.tell_flows();
                switching.taken += switch.decider.decisions().taken;
                switching.deviating += switch.decider.decisions().deviating;
                last_event = last_event.max(switch.last_event);
            }
            Node::Untouched => continue,
            Node::Server(_) | Node::InServer => unreachable!("they have been taken apart"),
        }
        let Some(ports) = node.ports() else { continue };
        let dropped = ports.dropped();
        for (&(src, flow), &count) in &dropped.flows {
            let flow = world.numbering.flow(flow);
            balances.entry(FlowKey { src, flow }).or_default().dropped += count;
        }
        data.lost += dropped.data(DropCause::Fault);
        control.lost += dropped.control(DropCause::Fault);
        control.dropped += dropped.control(DropCause::Full) + dropped.control(DropCause::Fault);
        let held = node.held();
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
        check_work(&nodes)?;
    }
    // A run that was cut short ends there; one whose work was done ended with its last event.
    let is_cut = waiting > 0 || !pending.is_empty() || has_unfinished_flows(&nodes);
    let end = match stopped_at {
        Some(reached) => reached,
        None if is_cut && until < Time::MAX => until,
        None => last_event,
    };

    let mut records = Records { groups, ..Records::default() };
    passages::collect(world, &mut nodes, &mut records)?;
    let mut parts = world.servers.as_ref().map(|servers| (servers, Gathered::default()));
    let mut metered = Metered::default();
    let mut by_nics = DecisionCount::default();
    let mut done = Done::default();
    join(world, &mut nodes, end, |sent, known| {
        let mut flow = sent.record();
        let key = FlowKey { src: flow.src, flow: flow.flow };
        let Balance { dropped, in_flight } = balances.remove(&key).unwrap_or_default();
        if let Some(received) = &known.received {
            received.complete(&mut flow);
        }
        let delivered = known.received.as_ref().map_or(0, |received| received.packets);
        let trimmed = flow.trims + u64::from(flow.returns);
        if flow.packets != delivered + trimmed + dropped + in_flight {
            let (src, flow, sent) = (flow.src, flow.flow, flow.packets);
            let error = ConservationError::Flow { src, flow, sent, delivered, trimmed, dropped, in_flight };
            return Err(error.into());
        }
        done.note(&flow);
        data.sent += flow.packets;
        data.delivered += delivered;
        data.trimmed += trimmed;
        data.dropped += dropped;
        data.in_flight += in_flight;
        metered.add(world, &flow, known);
        by_nics.taken += flow.decisions;
        by_nics.deviated += flow.deviations;
        match &mut parts {
            Some((servers, parts)) => {
                let ((src, _), (receiver, rail)) =
                    (servers.rails.server(flow.src), servers.rails.server(flow.dst));
                parts.push(FlowRecord { src, dst: receiver * servers.rails.nics() + rail, ..flow });
            }
            None => sink.flow(flow),
        }
        Ok(())
    })?;
    if let Some(key) = balances.keys().min() {
        return Err(ConservationError::Stray { src: key.src, flow: key.flow }.into());
    }
    if control.sent != control.delivered + control.dropped + control.in_flight {
        let PacketCounts { sent, delivered, dropped, in_flight, .. } = control;
        return Err(ConservationError::Control { sent, delivered, dropped, in_flight }.into());
    }

    collect_windows(world, &mut nodes, end, &mut records);
    records.samples = world.watch.series.finish_by(end)?;
    records.flow_samples = world.watch.flow_series.finish_by(end)?;
    records.trace = world.watch.trace.finish()?;
    let gaps = world.watch.gaps.finish()?;
    records.gaps = world.gaps.are_counted.then_some(gaps);
    let Metered { packets, flow_packets, window_flows } = metered;
    records.latencies = packets.iter().flat_map(|(&of, packets)| packets.latency_rows(of)).collect();
    records.packets = packets;
    records.flow_packets = flow_packets.finish()?;
    records.window_flows = window_flows.finish()?;
    if let Some((servers, parts)) = parts {
        let rails = &servers.rails;
        let nic = |place| rails.nic(place / rails.nics(), place % rails.nics());
        records.parts = Some(join_parts(&parts.finish()?, rails.nics(), nic, |flow| sink.flow(flow))?);
    }

    let decisions = count_decisions(world, by_nics, switching);
    let flowcut_entries = count_entries(&nodes, end);
    let weaving = count_weaving(&nodes, end);
    let reordering = count_reordering(&nodes, end);
    let load_until = Some(world.watch.load_until).filter(|&until| until < end);
    // Transmissions that have not ended are packets that have not arrived.
    let is_busy = waiting > 0 || !pending.is_empty();
    records.totals = Totals {
        simulated: end,
        load_until,
        makespan: done.makespan(&nodes),
        active_from: done.first_start,
        active_until: if is_busy { end } else { last_event.min(end) },
        packet_hops: 0,
        data,
        control,
        decisions,
        flowcut_entries,
        weaving,
        reordering,
    };
    records.totals.packet_hops = hand_on_channels(world, &nodes, &records.totals, sink) - crossing;
    records.sort();
    Ok(records)
}

/// How many flows the switches counted, where they count any.
fn count_entries(nodes: &[Node], end: Time) -> Option<EntryCount> {
    let occupancy = |node: &Node| match node {
        Node::Switch(switch) => switch.decider.occupancy(),
        _ => None,
    };
    let tables: Vec<_> = nodes.iter().filter_map(occupancy).collect();
    let used: Vec<_> = tables.iter().filter(|table| table.peak > 0).collect();
    let mean = used.iter().map(|table| table.mean(end)).sum::<f64>() / used.len().max(1) as f64;
    let peak = used.iter().map(|table| table.peak as u64).max().unwrap_or(0);
    (!tables.is_empty()).then_some(EntryCount { switches: used.len() as u64, peak, mean })
}

/// What ConWeave did, where it is at work.
fn count_weaving(nodes: &[Node], end: Time) -> Option<WeavingCount> {
    let mut all: Option<WeavingCount> = None;
    let mut holding = 0;
    for node in nodes {
        let Node::Switch(switch) = node else { continue };
        let counts = switch.decider.weave_counts()?;
        let all = all.get_or_insert_default();
        all.late_replies += counts.late;
        all.reroutes += counts.reroutes;
        all.flushes += counts.flushes;
        all.held_bytes_peak = all.held_bytes_peak.max(switch.held.bytes.peak);
        all.held_bytes_mean += switch.held.bytes.mean(end);
        holding += u32::from(switch.held.bytes.peak > 0);
    }
    if let Some(all) = &mut all {
        all.held_bytes_mean /= f64::from(holding.max(1));
    }
    all
}

/// What receivers made of packets that did not come in order.
fn count_reordering(nodes: &[Node], end: Time) -> ReorderingCount {
    let mut all = ReorderingCount::default();
    let (mut holding, mut taking) = (0, 0);
    for node in nodes {
        let Node::Host(host) = node else { continue };
        let Some(reordering) = host.reordering() else { continue };
        all.nacks += reordering.nacks;
        all.duplicates += reordering.duplicates;
        all.refused += reordering.refused;
        all.overflows += reordering.overflows;
        all.timeouts += reordering.timeouts;
        let (taken, buffer) = (&reordering.taken, &reordering.buffer);
        all.resequencing_packets_peak = all.resequencing_packets_peak.max(taken.peak);
        all.resequencing_packets_mean += taken.mean(end);
        all.buffer_bytes_peak = all.buffer_bytes_peak.max(buffer.peak);
        all.buffer_bytes_mean += buffer.mean(end);
        taking += u32::from(taken.peak > 0);
        holding += u32::from(buffer.peak > 0);
    }
    all.resequencing_packets_mean /= f64::from(taking.max(1));
    all.buffer_bytes_mean /= f64::from(holding.max(1));
    all
}

fn count_in_flight(
    world: &World,
    packet: &Packet,
    balances: &mut FxHashMap<FlowKey, Balance>,
    control: &mut PacketCounts,
) {
    if let Some(src) = packet.data_source() {
        let flow = world.numbering.flow(packet.flow);
        balances.entry(FlowKey { src, flow }).or_default().in_flight += 1;
    } else if !packet.is_of_the_link() {
        // Those of the link are not of the fabric: switches send and receive them.
        control.in_flight += 1;
    }
}

/// When flows began, and when all were done.
#[derive(Default)]
struct Done {
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
        let hosts = || {
            nodes.iter().filter_map(|node| match node {
                Node::Host(host) => Some(host),
                _ => None,
            })
        };
        let is_done = !self.is_undone && !hosts().any(|host| host.has_work_left());
        let calculated = hosts().filter_map(|host| host.calculated).max();
        self.last_completion.max(calculated).filter(|_| is_done)
    }
}

/// A part of a time that may be none.
fn share(part: Time, whole: Time) -> f64 {
    if whole == Time::ZERO { 0.0 } else { part.0 as f64 / whole.0 as f64 }
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
            if flow.stream || flow.start >= world.watch.warm_up {
                self.packets.entry((flow.group, flow.class)).or_default().merge(&packets);
            }
        }
        known.windows.into_iter().for_each(|row| self.window_flows.push(row.record(flow.group)));
    }
}

/// A lossless fabric loses nothing.
fn check_losses(world: &World, nodes: &[Node]) -> Result<(), RunError> {
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
fn check_credits(world: &World, nodes: &[Node], until: Time) -> Result<(), RunError> {
    let FlowControl::Credits(config) = &world.fabric.flow_control else { return Ok(()) };
    let mut held: FxHashMap<(u32, usize), u64> = FxHashMap::default();
    for node in nodes {
        let Some(ports) = node.ports() else { continue };
        let waiting = ports.waiting_packets(&world.rules).filter(|(_, lane, _)| lane.is_some());
        let waiting = waiting.map(|(_, _, packet)| packet).chain(node.held());
        if matches!(node, Node::Switch(_)) {
            for packet in waiting.filter(|packet| packet.ingress != NO_INGRESS) {
                let account = (ports.channel(packet.ingress) ^ 1, world.rules.data_lane_in(packet));
                *held.entry(account).or_default() += u64::from(packet.size);
            }
        }
        for port in 0..narrow::<u16>(ports.len()) {
            for lane in 0..world.rules.data_lanes() {
                *held.entry((ports.channel(port) ^ 1, lane)).or_default() += ports.owed(port, lane);
            }
        }
    }
    for ports in nodes.iter().filter_map(Node::ports) {
        for port in 0..narrow::<u16>(ports.len()) {
            for lane in 0..world.rules.data_lanes() {
                let channel = ports.channel(port);
                let held = held.get(&(channel, lane)).copied().unwrap_or(0);
                let credits = ports.credits(port, lane).unwrap_or(0);
                let may_miss = world.blueprint.faults.is_cut_from(channel, until);
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
fn check_work(nodes: &[Node]) -> Result<(), RunError> {
    for (id, node) in (0..).zip(nodes) {
        if let Node::Host(host) = node
            && let Some(what) = host.work.unfinished()
        {
            return Err(RunError::Unfinished { host: id, what });
        }
    }
    Ok(())
}

fn has_unfinished_flows(nodes: &[Node]) -> bool {
    nodes.iter().any(|node| match node {
        Node::Host(host) => host.sent.iter().any(|flow| !flow.has_ended()),
        _ => false,
    })
}

/// Decisions per selector: those of switches, or those of NICs.
fn count_decisions(
    world: &World,
    by_nics: DecisionCount,
    switching: Decisions,
) -> BTreeMap<String, DecisionCount> {
    let count = match world.routing.placement {
        Placement::Nic => by_nics,
        Placement::Ingress | Placement::Switch => {
            DecisionCount { taken: switching.taken, deviated: switching.deviating }
        }
    };
    [(world.routing.selector_name().to_owned(), count)].into()
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
            records.window_channels.append(&mut sampler.complete(ports, end, &world.watch.windows));
        }
    }
}

/// How many links before a link its ports are fetched, and how many before those the nodes that know where these are.
const AHEAD: usize = 8;

/// Hands on what every channel did, used or not, in their order. Returns how many packets were sent on all of them.
fn hand_on_channels(world: &World, nodes: &[Node], totals: &Totals, sink: &mut dyn Sink) -> u64 {
    let (network, end) = (&world.network, totals.simulated);
    let tiers: Vec<Arc<str>> = network.tiers().iter().map(|tier| tier.as_str().into()).collect();
    // A host is named once, at its one link.
    let switches = network.hosts()..network.nodes();
    let switches: Vec<Arc<str>> = switches.map(|switch| network.node_name(switch).into()).collect();
    let name = |node: u32| match node.checked_sub(network.hosts()) {
        Some(switch) => switches[switch as usize].clone(),
        None => network.node_name(node).into(),
    };
    let links = network.links();
    // The ports and numbers of a link's two channels. What nothing has reached has no ports, and has done nothing.
    let channels = |link: usize| {
        let ends = links.get(link).map(|ends| [ends.a, ends.b]).into_iter().flatten();
        ends.map(|node| nodes[node as usize].ports()).zip(2 * narrow::<u32>(link)..)
    };
    let mut sent = 0;
    for (number, link) in links.iter().enumerate() {
        // The ports of one link after the other lie far apart.
        channels(number + 2 * AHEAD).filter_map(|(ports, _)| ports).for_each(Ports::expect);
        for (ports, id) in channels(number + AHEAD) {
            if let Some(ports) = ports {
                ports.expect_stats_of(world.blueprint.port_of(id));
            }
        }
        let (a, b) = (name(link.a), name(link.b));
        for ((ports, id), (from, to)) in channels(number).zip([(&a, &b), (&b, &a)]) {
            let port = world.blueprint.port_of(id);
            let stats = ports.map(|ports| ports.stats_of(port, end)).unwrap_or_default();
            sent += stats.packets;
            let (bytes_in_drain, busy_in_drain) =
                ports.map(|ports| ports.in_drain(port, end)).unwrap_or_default();
            let share = |of: Time| share(stats.busy - busy_in_drain, of);
            sink.channel(ChannelRecord {
                channel: id,
                from: from.clone(),
                to: to.clone(),
                tier: tiers[usize::from(link.tier)].clone(),
                rate: link.rate,
                bytes: stats.bytes,
                packets: stats.packets,
                busy: stats.busy,
                bytes_in_drain,
                busy_in_drain,
                utilisation: share(totals.load_end()),
                active_utilisation: share(totals.active()),
                max_queue: stats.max_queue,
                mean_queue: stats.mean_queue(end),
                drops: stats.drops,
                lost: stats.lost,
                trims: stats.trims,
                returns: stats.returns,
                marks: stats.marks,
                paused: stats.paused,
                pauses: stats.pauses,
            });
        }
    }
    sent
}
