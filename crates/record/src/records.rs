//! What a simulator writes down: plain structs, one per flow, channel and sample, and totals of the run.

mod flows;
mod totals;

use std::collections::BTreeMap;
use std::sync::Arc;

use netloom_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::flows::{FlowRecord, PartRecord, join_parts};
pub(crate) use self::totals::picoseconds;
pub use self::totals::{ConWeaveCount, DecisionCount, EntryCount, PacketCounts, ReorderingCount, Totals};
use crate::jobs::JobRecords;
use crate::packets::{FlowPacketRecord, LatencyRecord, PacketStatistics, TraceRecord};
use crate::series::Series;

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
    /// Intervals of time that are measured on their own; [`WindowRecord::window`] counts along this list.
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
    /// Samples of senders, in the order of (`time`, `src`, `flow`, `subflow`).
    pub sender_samples: Series<SenderSampleRecord>,
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
    /// What jobs took; nothing where there are none.
    pub jobs: JobRecords,
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
            sender_samples: Series::default(),
            gaps: None,
            switch_gaps: None,
            flowlets: None,
            window_flows: Series::default(),
            window_channels: Vec::new(),
            flow_packets: Series::default(),
            packets: BTreeMap::new(),
            latencies: Vec::new(),
            trace: Series::default(),
            jobs: JobRecords::default(),
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

/// An interval of time that is measured on its own, from `from` (inclusive) to `until` (exclusive).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Window {
    /// Its name in the summary.
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
    /// Its name in the summary.
    pub name: String,
    /// Number of the channel in the network.
    pub channel: u32,
}

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

/// What the sender of one flow knew and was allowed at the end of an interval in which it learnt something, and what it learnt in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SenderSampleRecord {
    /// The end of the interval.
    pub time: Time,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// Which of its subflows, from 0; 0 where it has none.
    pub subflow: u32,
    /// Bytes on the wire that may be unacknowledged; `None`: as many as it likes.
    pub window: Option<u64>,
    /// The rate at which its packets leave, in bit/s; `None` where nothing sets one.
    pub rate: Option<u64>,
    /// Its last measured round-trip time; `None` before the first.
    pub rtt: Option<Time>,
    /// Packets sent and neither acknowledged nor given up.
    pub in_flight: u32,
    /// Bytes on the wire that were acknowledged in the interval, each packet counted as a full one.
    pub acked: u64,
    /// ACKs of marked packets in it.
    pub marks: u32,
    /// How often the congestion control has cut window or rate in it.
    pub cuts: u32,
    /// How often losses were found in it: by later ACKs, by NACKs that ask for packets again, and by timeouts. Several packets may be lost at once.
    pub losses: u32,
    /// Trimmed packets that were reported in it, or whose headers came back.
    pub trims: u32,
    /// Notifications of the receiver that cut the rate in it (CNPs).
    pub notifications: u32,
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
    /// Data packets that came; `None` if the switch only separated flowlets.
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
