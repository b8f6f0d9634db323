//! Which packets are traced, and the rows that a node makes of them. A node without traced packets pays nothing: tracing goes with the
//! [`Sampler`](crate::observe::sampler::Sampler), and nodes that have one take a slower path anyway.

use std::sync::Arc;

use netloom_fabric::{Packet, PacketKind};
use netloom_record::{SeriesWriter, TraceRecord};
use netloom_topology::{ChannelId, Network};
use netloom_units::{Invalid, Time, narrow};
use netloom_workload::Rails;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::channel::ChannelEnds;
use crate::numbering::Numbering;
use crate::protocol::{concerns_arrivals, facts};

/// Which packets leave a row in `trace.parquet` wherever they come to the end of a channel: those of some flows, and all that cross some
/// channels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacketTrace {
    /// Flows whose packets, and the answers to them, are traced along their whole path.
    pub flows: Vec<TracedFlow>,
    /// Channels of which every packet is traced: tables with the nodes `from` and `to`, and `parallel` among parallel links.
    pub channels: Vec<ChannelEnds>,
    /// When the trace begins.
    pub from: Time,
    /// When it ends; absent: with the run.
    pub until: Option<Time>,
}

/// The flows from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TracedFlow {
    /// Number of the sending host.
    pub src: u32,
    /// Number of the receiving host.
    pub dst: u32,
    /// Number of the flow at its source, as in `flows.parquet`; absent: all between the two.
    pub flow: Option<u32>,
}

impl PacketTrace {
    /// The same with the flows between all ports of NICs of which they name the first ones.
    pub(crate) fn by_ports(mut self, rails: Option<&Rails>) -> Self {
        let Some(rails) = rails.filter(|rails| rails.bond().is_some()) else { return self };
        let ports = |flow: &TracedFlow| {
            let (endpoint, rail) = rails.endpoint(flow.src);
            let is_nic = rails.first_port(flow.src) == flow.src && rails.first_port(flow.dst) == flow.dst;
            let count = if is_nic { narrow::<u32>(rails.hosts(endpoint, rail).len()) } else { 1 };
            let flow = *flow;
            let is_pair = |&(port, landing): &_| rails.ports_are_joined() || port == landing;
            let pairs = (0..count).flat_map(move |port| (0..count).map(move |landing| (port, landing)));
            pairs.skip(1).filter(is_pair).map(move |(port, landing)| TracedFlow {
                src: rails.at_port(flow.src, port),
                dst: rails.at_port(flow.dst, landing),
                ..flow
            })
        };
        let others: Vec<TracedFlow> = self.flows.iter().flat_map(ports).collect();
        self.flows.extend(others);
        self
    }
}

impl TracedFlow {
    fn has(&self, packet: &Packet) -> bool {
        // Answers travel in the other direction and carry the number of the data's flow; requests and probes travel with the data.
        let (src, dst) = match concerns_arrivals(packet.kind) {
            true => (packet.src, packet.dst),
            false => (packet.dst, packet.src),
        };
        (src, dst) == (self.src, self.dst) && self.flow.is_none_or(|flow| flow == packet.flow)
    }
}

impl PacketTrace {
    /// Checks that there are such hosts and channels; the numbers of the channels.
    pub(crate) fn check(&self, network: &Network) -> Result<Vec<u32>, Invalid> {
        self.check_all(network).map_err(|error| error.within("trace"))
    }

    fn check_all(&self, network: &Network) -> Result<Vec<u32>, Invalid> {
        let is_any = !self.flows.is_empty() || !self.channels.is_empty();
        Invalid::unless(is_any, "flows", "flows or channels to trace", "none")?;
        if let Some(until) = self.until.filter(|&until| until <= self.from) {
            return Err(Invalid::new("until", format!("a time after from = {}", self.from), until));
        }
        let hosts = network.hosts();
        for (index, flow) in self.flows.iter().enumerate() {
            for (field, host) in [("src", flow.src), ("dst", flow.dst)] {
                let field = format!("flows.{index}.{field}");
                Invalid::unless(host < hosts, field, format!("a host from 0 to {}", hosts - 1), host)?;
            }
            let field = format!("flows.{index}.dst");
            Invalid::unless(flow.src != flow.dst, field, "another host than src", flow.dst)?;
        }
        let find = |(index, ends): (usize, &ChannelEnds)| {
            ends.find(network).map_err(|error| error.within(&format!("channels.{index}")))
        };
        self.channels.iter().enumerate().map(find).collect()
    }

    fn wants(&self, at: Time, packet: &Packet, is_chosen: bool) -> bool {
        (self.from..self.until.unwrap_or(Time::MAX)).contains(&at)
            && (is_chosen || !packet.is_of_the_link() && self.flows.iter().any(|flow| flow.has(packet)))
    }
}

/// The rows that one node makes.
#[derive(Clone, Debug)]
pub(crate) struct Tracer {
    trace: Arc<PacketTrace>,
    numbering: Numbering,
    /// By input port: the channel, and whether all of its packets are traced.
    inputs: Vec<(u32, bool)>,
    /// Rows that the series does not have yet.
    rows: Vec<TraceRecord>,
    series: Arc<SeriesWriter<TraceRecord>>,
}

/// Rows handed to the series at a time, so that threads rarely meet there.
const HANDED_IN: usize = 256;

impl Tracer {
    /// A tracer for a node with these outputs, unless nothing that comes there is traced.
    pub(crate) fn new(
        trace: &Arc<PacketTrace>,
        channels: &[u32],
        outputs: &[ChannelId],
        numbering: Numbering,
        series: &Arc<SeriesWriter<TraceRecord>>,
    ) -> Option<Self> {
        // The two directions of a link have neighbouring numbers.
        let input = |&output: &u32| (output ^ 1, channels.contains(&(output ^ 1)));
        let inputs: Vec<(u32, bool)> = outputs.iter().map(input).collect();
        let is_needed = !trace.flows.is_empty() || inputs.iter().any(|(_, is_chosen)| *is_chosen);
        is_needed.then(|| Tracer {
            trace: Arc::clone(trace),
            numbering,
            inputs,
            rows: Vec::new(),
            series: Arc::clone(series),
        })
    }

    /// A packet has come to the node. What goes beside the channel is none.
    pub(crate) fn see(&mut self, at: Time, packet: &Packet) {
        let facts = facts(packet.kind);
        let Some(name) = facts.name else { return };
        let packet = &Packet { flow: self.numbering.flow(packet.flow), ..*packet };
        let Some(&(channel, is_chosen)) = self.inputs.get(usize::from(packet.ingress)) else { return };
        if !self.trace.wants(at, packet, is_chosen) {
            return;
        }
        self.rows.push(TraceRecord {
            time: at,
            channel,
            kind: name.to_owned(),
            src: packet.src,
            dst: packet.dst,
            flow: packet.flow,
            seq: if packet.kind == PacketKind::Pause { packet.paused_queues() } else { packet.seq },
            size: u32::from(packet.size),
            sent: if facts.says_more { Time::ZERO } else { packet.sent },
            hops: packet.trail.hops().into(),
            class: packet.flags.class(),
            marked: packet.flags.is_marked(),
        });
        if self.rows.len() >= HANDED_IN {
            self.series.extend(self.rows.drain(..));
        }
    }

    /// The run is over.
    pub(crate) fn complete(&mut self) {
        self.series.extend(self.rows.drain(..));
    }
}
