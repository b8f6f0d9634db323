//! What a simulator writes down: plain structs, one per flow, channel and sample, and totals of the run.

use std::collections::BTreeMap;
use std::sync::Arc;

use netloom_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::packets::{FlowPacketRecord, LatencyRecord, PacketStatistics, TraceRecord};
use crate::series::{Gathered, Series, SeriesError};

/// Everything one run has seen.
///
/// Flows are in order of (`src`, `flow`), parts in order of (`server`, `flow`, `rail`), channels in order of `channel`, samples in order of (`time`, `channel`), flow
/// samples in order of (`time`, `src`, `flow`), gaps in order of (`src`, `flow`, `base_rtts`, `from`), flowlets in order of (`src`, `flow`) and switches, windows' flows in order of (`window`, `src`, `flow`) and windows' channels
/// in order of (`window`, `channel`), so that equal runs give equal files; [`Records::sort`] brings
/// them there (a [`Series`] is in order by itself).
#[derive(Clone, Debug, PartialEq)]
pub struct Records {
    /// Kinds of traffic by name; [`FlowRecord::group`] counts along this list. Never empty: traffic without kinds is of
    /// the one group `all`.
    pub groups: Vec<String>,
    /// Spells of time that are measured on their own; [`WindowRecord::window`] counts along this list.
    pub windows: Vec<Window>,
    /// Channels that are reported by name.
    pub named_channels: Vec<NamedChannel>,
    /// Every flow that started; every message, where servers have several NICs.
    pub flows: Vec<FlowRecord>,
    /// The flows between NICs of which messages are made, where servers have several NICs; `None` where they have not.
    pub parts: Option<Series<PartRecord>>,
    /// Every channel of the network, used or not.
    pub channels: Vec<ChannelRecord>,
    /// Sampled series of channels; empty if no channel was sampled.
    pub samples: Series<SampleRecord>,
    /// Sampled series of flows; empty if no flow was sampled.
    pub flow_samples: Series<FlowSampleRecord>,
    /// The gaps between every flow's departures, by length; `None` if they were not counted.
    pub gaps: Option<Series<GapRecord>>,
    /// The gaps between every flow's arrivals at its first switch, by length; `None` if they were not counted.
    pub switch_gaps: Option<Series<GapRecord>>,
    /// The flowlets of every flow at every switch; `None` if they were not counted.
    pub flowlets: Option<Series<FlowletRecord>>,
    /// What every flow delivered in every window; flows that delivered nothing in a window have no record of it.
    pub window_flows: Series<WindowRecord>,
    /// What every named channel did in every window.
    pub window_channels: Vec<ChannelWindowRecord>,
    /// The packets of every flow; empty unless packets were measured.
    pub flow_packets: Series<FlowPacketRecord>,
    /// The packets of the flows that count, by kind of traffic and by class; empty unless packets were measured.
    pub packets: BTreeMap<(u16, u8), PacketStatistics>,
    /// The histogram of their latencies, in order of (`group`, `class`, `from`).
    pub latencies: Vec<LatencyRecord>,
    /// Packets that were traced, in order of (`time`, `channel`).
    pub trace: Series<TraceRecord>,
    /// Totals of the run.
    pub totals: Totals,
}

impl Default for Records {
    /// A run in which nothing happened.
    fn default() -> Self {
        Records {
            groups: vec!["all".to_owned()],
            windows: Vec::new(),
            named_channels: Vec::new(),
            flows: Vec::new(),
            parts: None,
            channels: Vec::new(),
            samples: Series::default(),
            flow_samples: Series::default(),
            gaps: None,
            switch_gaps: None,
            flowlets: None,
            window_flows: Series::default(),
            window_channels: Vec::new(),
            flow_packets: Series::default(),
            packets: BTreeMap::new(),
            latencies: Vec::new(),
            trace: Series::default(),
            totals: Totals::default(),
        }
    }
}

/// Takes the records of which a run has many, one by one, so that nobody has to keep them: flows in order of (`src`, `flow`), then channels in
/// order of their numbers.
pub trait Sink {
    /// The next flow.
    fn flow(&mut self, flow: FlowRecord);
    /// The next channel. No flow comes any more.
    fn channel(&mut self, channel: ChannelRecord);
}

/// Keeps them.
impl Sink for Records {
    fn flow(&mut self, flow: FlowRecord) {
        self.flows.push(flow);
    }

    fn channel(&mut self, channel: ChannelRecord) {
        self.channels.push(channel);
    }
}

impl Records {
    /// Brings all records into their canonical order; cheap where they are in order already.
    pub fn sort(&mut self) {
        // In place: their keys are unique, and there are many of them.
        self.flows.sort_unstable_by_key(|flow| (flow.src, flow.flow));
        self.channels.sort_unstable_by_key(|channel| channel.channel);
        self.window_channels.sort_by_key(|record| (record.window, record.channel));
    }
}

/// A spell of time that is measured on its own, from `from` (inclusive) to `until` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// What the summary calls it.
    pub name: String,
    /// Its first instant.
    pub from: Time,
    /// The instant after its last.
    pub until: Time,
}

impl Window {
    /// Whether an instant lies in the window.
    #[inline]
    pub fn contains(&self, time: Time) -> bool {
        self.from <= time && time < self.until
    }
}

/// A channel that is reported by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedChannel {
    /// What the summary calls it.
    pub name: String,
    /// Number of the channel in the network.
    pub channel: u32,
}

/// One flow: a message from one host to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowRecord {
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Number of the flow at its source: in order of start, and of messages of programs in the program's order.
    pub flow: u32,
    /// Which kind of traffic: a place in [`Records::groups`].
    pub group: u16,
    /// Traffic class, from 0.
    pub class: u8,
    /// Whether the flow is a stream: frames of an open-loop source, of which more may come at any time, so that it has no
    /// completion.
    pub stream: bool,
    /// Payload; of a stream, what was handed to it during the run.
    pub bytes: u64,
    /// Payload that reached the receiver, each byte counted once.
    pub delivered: u64,
    /// The part of `delivered` that arrived at or after the end of the warm-up.
    pub delivered_after_warm_up: u64,
    /// The part of `delivered` that arrived in the drain, at or after [`Totals::load_until`].
    pub delivered_in_drain: u64,
    /// When the message was handed to the sender's transport.
    pub start: Time,
    /// Flow completion time: from the start to the delivery of the last byte; `None` if it did not finish.
    pub fct: Option<Time>,
    /// From the start to the ACK of the last byte at the sender; `None` if that did not arrive.
    pub sender_fct: Option<Time>,
    /// The FCT that one idle path allows this flow.
    pub ideal_fct: Time,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Packets that arrived with a sequence number above the next expected one.
    pub ooo_packets: u64,
    /// Largest distance, in packets, between the sequence number that arrived and the next expected one.
    pub max_ood: u32,
    /// Most packets that waited at the receiver at a time for one with a lower sequence number.
    pub max_resequencing: u32,
    /// Data packets that arrived as headers only: they had been trimmed.
    pub trims: u64,
    /// Data packets whose header came back to the sender.
    pub returned_to_sender: u32,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Data packets that arrived with an ECN mark.
    pub ecn_marks: u64,
    /// Congestion notifications about this flow that reached its sender (IEEE 802.1Qau CNMs).
    pub cnms: u32,
    /// Congestion notification packets of the flow's receiver that reached its sender (CNPs of RoCEv2).
    pub cnps: u32,
    /// Runs of packets that a gap as long as the flowlet threshold separates; 0 where no flowlets are known of.
    pub flowlets: u32,
    /// Gaps between packets that the host made longer (HF²T).
    pub stretched: u32,
    /// How often a packet arrived along another path than the one that arrived before it, regardless of what chose the path: one detour of a packet
    /// counts twice.
    pub path_changes: u32,
    /// How often the flow was paused to drain its path.
    pub drains: u32,
    /// Time spent paused to drain.
    pub drain_time: Time,
    /// Routing decisions taken for the flow's data packets.
    pub decisions: u64,
    /// Decisions that differed from the scheme's default path.
    pub non_default_decisions: u64,
}

impl FlowRecord {
    /// Adds what another part of the same message did, between other NICs. A message is complete when all of its parts are.
    pub fn add_part(&mut self, part: &FlowRecord) {
        let last = |a: Option<Time>, b: Option<Time>| Some(a?.max(b?));
        self.add_subflow(part);
        self.bytes += part.bytes;
        self.delivered += part.delivered;
        self.delivered_after_warm_up += part.delivered_after_warm_up;
        self.delivered_in_drain += part.delivered_in_drain;
        self.fct = last(self.fct, part.fct);
        self.sender_fct = last(self.sender_fct, part.sender_fct);
        self.ideal_fct = self.ideal_fct.max(part.ideal_fct);
        self.ooo_packets += part.ooo_packets;
        self.max_ood = self.max_ood.max(part.max_ood);
        self.max_resequencing = self.max_resequencing.max(part.max_resequencing);
        self.trims += part.trims;
        self.ecn_marks += part.ecn_marks;
        self.cnps += part.cnps;
        self.path_changes += part.path_changes;
    }

    /// Adds what another subflow of the same flow did.
    pub fn add_subflow(&mut self, part: &FlowRecord) {
        self.packets += part.packets;
        self.returned_to_sender += part.returned_to_sender;
        self.retransmissions += part.retransmissions;
        self.timeouts += part.timeouts;
        self.cnms += part.cnms;
        self.flowlets += part.flowlets;
        self.stretched += part.stretched;
        self.drains += part.drains;
        self.drain_time += part.drain_time;
        self.decisions += part.decisions;
        self.non_default_decisions += part.non_default_decisions;
    }
}

/// A message, or a part of a striped one, between two NICs of one rail.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PartRecord {
    /// Sending server: `src` of the message.
    pub server: u32,
    /// Number of the message at its sender.
    pub flow: u32,
    /// The number of the NICs at their servers.
    pub rail: u32,
    /// Sending NIC: a host of the network.
    pub src: u32,
    /// Receiving NIC.
    pub dst: u32,
    /// Payload.
    pub bytes: u64,
    /// Payload that reached the receiver, each byte counted once.
    pub delivered: u64,
    /// When it was handed to the NIC's transport.
    pub start: Time,
    /// From the start to the delivery of the last byte; `None` if it did not finish.
    pub fct: Option<Time>,
    /// From the start to the ACK of the last byte; `None` if that did not arrive.
    pub sender_fct: Option<Time>,
    /// The FCT that one idle path allows it.
    pub ideal_fct: Time,
    /// Data packets sent, retransmissions included.
    pub packets: u64,
    /// Packets that arrived with a sequence number above the next expected one.
    pub ooo_packets: u64,
    /// Data packets sent again.
    pub retransmissions: u64,
    /// Data packets that arrived with an ECN mark.
    pub ecn_marks: u64,
}

/// Makes messages of the flows between NICs, where servers have this many `nics` of them each, and hands them on in their order. In `parts`,
/// `src` is the sending server and `dst` the place of the receiving NIC when they are counted server by server; `nic` tells the NIC at a
/// place. The flows of a message have the same number.
///
/// # Errors
/// If what has gone to temporary files cannot be read, or more cannot be written.
pub fn join_parts(
    parts: &Series<FlowRecord>,
    nics: u32,
    nic: impl Fn(u32) -> u32,
    mut hand_on: impl FnMut(FlowRecord),
) -> Result<Series<PartRecord>, SeriesError> {
    let mut records = Gathered::default();
    let mut message: Option<FlowRecord> = None;
    for part in parts.rows()? {
        let part = part?;
        let (server, rail) = (part.src, part.dst % nics);
        let record = PartRecord::new(&part, (server, rail), (nic(server * nics + rail), nic(part.dst)));
        records.push(record);
        let part = FlowRecord { dst: part.dst / nics, ..part };
        match message.as_mut().filter(|message| (message.src, message.flow) == (part.src, part.flow)) {
            Some(message) => message.add_part(&part),
            None => message.replace(part).into_iter().for_each(&mut hand_on),
        }
    }
    message.into_iter().for_each(hand_on);
    records.finish()
}

impl PartRecord {
    /// What is told of a flow between the NICs of a rail.
    fn new(flow: &FlowRecord, (server, rail): (u32, u32), (src, dst): (u32, u32)) -> Self {
        PartRecord {
            server,
            flow: flow.flow,
            rail,
            src,
            dst,
            bytes: flow.bytes,
            delivered: flow.delivered,
            start: flow.start,
            fct: flow.fct,
            sender_fct: flow.sender_fct,
            ideal_fct: flow.ideal_fct,
            packets: flow.packets,
            ooo_packets: flow.ooo_packets,
            retransmissions: flow.retransmissions,
            ecn_marks: flow.ecn_marks,
        }
    }
}

const _: () = assert!(size_of::<FlowRecord>() <= 200, "a finished flow costs its record");

/// One direction of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ChannelRecord {
    /// Number of the channel in the network.
    pub channel: u32,
    /// Name of the sending node.
    pub from: Arc<str>,
    /// Name of the receiving node.
    pub to: Arc<str>,
    /// Class of links, e.g. `host` or `agg-core`.
    pub tier: Arc<str>,
    /// Nominal rate.
    pub rate: Rate,
    /// Bytes sent, headers included.
    pub bytes: u64,
    /// Packets sent.
    pub packets: u64,
    /// Time spent transmitting, up to the end of the run.
    pub busy: Time,
    /// The part of `bytes` whose transmission started in the drain, at or after [`Totals::load_until`].
    pub bytes_in_drain: u64,
    /// The part of `busy` that lies in the drain.
    pub busy_in_drain: Time,
    /// Share of the time under load spent transmitting.
    pub utilisation: f64,
    /// The same of the time under load in which something was active, [from the first start to the last activity](Totals::active).
    pub active_utilisation: f64,
    /// Most bytes that waited in the port at a time.
    pub max_queue: u64,
    /// Average over time of the bytes that waited in the port.
    pub mean_queue: f64,
    /// Packets dropped at the port.
    pub drops: u64,
    /// Packets lost because the channel was cut, or at random; not among `drops`.
    pub lost: u64,
    /// Data packets that lost their payload at the port; not among `drops`.
    pub trims: u64,
    /// Headers of trimmed packets sent back to their source, because there was no room for them either; and what went back because the channel was cut.
    pub returned_to_sender: u64,
    /// Packets marked (ECN) at the port.
    pub marks: u64,
    /// Time in which packets waited that flow control forbade to send: some data queue of the port was paused or without
    /// credits, and not empty. Queues that are blocked at the same time count once.
    pub paused: Time,
    /// How often flow control stopped the channel: PAUSE frames received for it, or times a queue's credits ran out.
    pub pauses: u64,
}

/// One sample of one channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleRecord {
    /// When it was taken.
    pub time: Time,
    /// Which channel.
    pub channel: u32,
    /// Bytes waiting in the port.
    pub queue: u64,
    /// Bytes sent since the last sample.
    pub bytes: u64,
    /// The part of [`ChannelRecord::paused`] since the last sample.
    pub paused: Time,
}

/// One sample of one flow at its receiver.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowSampleRecord {
    /// When it was taken.
    pub time: Time,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// Payload delivered since the last sample, each byte counted once.
    pub bytes: u64,
    /// Packets that wait at the receiver for one with a lower sequence number.
    pub resequencing: u32,
}

/// How many gaps between the packets of one flow, as they leave its NIC or come to its first switch, had about one length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GapRecord {
    /// Sending host.
    pub src: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// The gaps were at least this long,
    pub from: Time,
    /// and shorter than this.
    pub until: Time,
    /// Round-trip time of a full packet and its ACK on the flow's idle path.
    pub base_rtt: Time,
    /// How many whole base round-trip times they lasted.
    pub base_rtts: u32,
    /// How many they were.
    pub count: u64,
}

/// What one switch saw of one flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowletRecord {
    /// Name of the switch.
    pub switch: Arc<str>,
    /// Sending host.
    pub src: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// Data packets that came; `None` if the switch only told flowlets apart.
    pub packets: Option<u64>,
    /// Runs of them that gaps as long as the flowlet threshold separate; 0 where there is no threshold.
    pub flowlets: u32,
}

/// What one flow delivered in one window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowRecord {
    /// Which window: a place in [`Records::windows`].
    pub window: u16,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// Which kind of traffic: a place in [`Records::groups`].
    pub group: u16,
    /// Payload of the packets that arrived in the window, each byte counted once.
    pub bytes: u64,
}

/// What one channel did in one window.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChannelWindowRecord {
    /// Which window: a place in [`Records::windows`].
    pub window: u16,
    /// Number of the channel in the network.
    pub channel: u32,
    /// Bytes sent in the window, headers included: those of packets whose transmission started in it.
    pub bytes: u64,
    /// Integral over the window of the bytes that waited in the port, in byte-picoseconds.
    pub queue_byte_ps: u128,
    /// The part of [`ChannelRecord::paused`] in the window.
    pub paused: Time,
}

/// Totals of a run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Totals {
    /// Simulated time.
    #[serde(rename = "simulated_ps", with = "picoseconds")]
    pub simulated: Time,
    /// When the last source stopped offering load, after which the run drained; `None` if the load lasted as long as the run.
    #[serde(rename = "load_until_ps", with = "picoseconds::option", default)]
    pub load_until: Option<Time>,
    /// When all work was done: the last byte of the last flow had been delivered, and the last calculation of a program had ended. `None` where something was left undone, where there is a stream, which is
    /// never done, or nothing to do.
    #[serde(rename = "makespan_ps", with = "picoseconds::option", default)]
    pub makespan: Option<Time>,
    /// When the first flow started; `None` if none did.
    #[serde(rename = "active_from_ps", with = "picoseconds::option", default)]
    pub active_from: Option<Time>,
    /// When the last packet arrived or the last calculation ended; the end of the run if something was under way then.
    #[serde(rename = "active_until_ps", with = "picoseconds", default)]
    pub active_until: Time,
    /// Packets of all kinds times the channels they crossed.
    pub packet_hops: u64,
    /// Data packets.
    pub data: PacketCounts,
    /// ACKs and other control packets.
    pub control: PacketCounts,
    /// Decisions by the name of the selector that took them.
    pub decisions: BTreeMap<String, DecisionCount>,
    /// Flows that switches kept an entry for, where they count flowcuts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flowcut_entries: Option<EntryCount>,
    /// What ConWeave did, where switches weave.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weaving: Option<WeavingCount>,
    /// What receivers made of packets that did not come in order.
    #[serde(default)]
    pub reordering: ReorderingCount,
}

/// What packets that do not come in order cost those who receive them. A mean is one over time and over the hosts that ever held something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReorderingCount {
    /// NACKs that receivers sent.
    pub nacks: u64,
    /// Data packets that came although they had come before.
    pub duplicates: u64,
    /// Data packets that came early to a receiver that discards them (go-back-N, a bitmap that is too short).
    pub refused: u64,
    /// Most packets at a host, of all its flows, that its receivers had taken and that waited for one with a lower number.
    pub resequencing_packets_peak: u64,
    /// Their mean number.
    pub resequencing_packets_mean: f64,
    /// Most bytes that a host held back from its transport (`transport.reorder`).
    pub buffer_bytes_peak: u64,
    /// Their mean number.
    pub buffer_bytes_mean: f64,
    /// Early packets for which there was no room there.
    pub overflows: u64,
    /// Holds that ended because they had lasted for long enough.
    pub timeouts: u64,
}

/// What ConWeave did at all switches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WeavingCount {
    /// Epochs whose reply was late.
    pub late_replies: u64,
    /// Of these, those in which the flow took another path.
    pub reroutes: u64,
    /// Queues of held packets that were released by their timer, before the tail had come.
    pub flushes: u64,
    /// Most bytes that a switch held back at a time.
    pub held_bytes_peak: u64,
    /// Mean number of bytes held, over time and over the switches that ever held something.
    #[serde(default)]
    pub held_bytes_mean: f64,
}

/// How many flows the switches kept an entry for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntryCount {
    /// Switches that had an entry at some time.
    pub switches: u64,
    /// Most entries of a switch at a time.
    pub peak: u64,
    /// Mean over time and over those switches.
    pub mean: f64,
}

impl Totals {
    /// When the load ended: with the run, if it did not drain.
    pub fn load_end(&self) -> Time {
        self.load_until.unwrap_or(self.simulated)
    }

    /// How much of the time under load something was active: from the first start to the last activity.
    pub fn active(&self) -> Time {
        let until = self.load_end().min(self.active_until);
        self.active_from.map_or(Time::ZERO, |from| until.saturating_sub(from))
    }
}

/// Where packets went: `sent = delivered + trimmed + dropped + in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketCounts {
    /// Sent by hosts.
    pub sent: u64,
    /// Received by hosts.
    pub delivered: u64,
    /// Dropped on the way.
    pub dropped: u64,
    /// On the way when the run ended.
    pub in_flight: u64,
    /// Those of `dropped` that a fault took: on a link that was cut, at random, or because cuts left no route.
    #[serde(default)]
    pub lost: u64,
    /// Data packets of which a host received the header only: at the receiver, or back at the sender.
    #[serde(default)]
    pub trimmed: u64,
}

/// What a selector did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionCount {
    /// Decisions taken.
    pub taken: u64,
    /// Decisions that differed from the selector's default.
    pub non_default: u64,
}

/// Times as whole picoseconds in JSON, under names that end in `_ps`.
pub(crate) mod picoseconds {
    use netloom_units::Time;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub(crate) fn serialize<S: Serializer>(time: &Time, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u64(time.0)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Time, D::Error> {
        u64::deserialize(deserializer).map(Time)
    }

    /// The same where there may be no time.
    pub(crate) mod option {
        use super::{Deserialize, Deserializer, Serialize, Serializer, Time};

        pub(crate) fn serialize<S: Serializer>(
            time: &Option<Time>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            time.map(|time| time.0).serialize(serializer)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Time>, D::Error> {
            Ok(Option::<u64>::deserialize(deserializer)?.map(Time))
        }
    }
}
