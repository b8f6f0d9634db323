//! What the nodes of a run record of flows: sender and receiver records, observations at switches, and rows of windows and packets. They wait in
//! [series](crate::Series) until the run is over, when they are joined to the records of flows.

use netloom_units::Time;

use crate::records::{FlowRecord, WindowRecord};

/// A flow's final state at its sender. The fields are those of [`FlowRecord`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "they have their documentation there")]
pub struct SenderRecord {
    pub src: u32,
    pub dst: u32,
    pub flow: u32,
    pub group: u32,
    pub class: u8,
    pub stream: bool,
    pub bytes: u64,
    pub start: Time,
    pub sender_fct: Option<Time>,
    pub ideal_fct: Time,
    pub packets: u64,
    pub returned_to_sender: u32,
    pub retransmissions: u64,
    pub timeouts: u32,
    pub cnms: u32,
    pub cnps: u32,
    pub flowlets: u32,
    pub stretched: u32,
    pub drains: u32,
    pub drain_time: Time,
    pub decisions: u64,
    pub non_default_decisions: u64,
}

/// How many decisions a switch has taken on packets of a flow. Rows of one flow are added up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DecisionRow {
    /// Sending host.
    pub src: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// Decisions among several ports or paths.
    pub decisions: u64,
    /// Those whose outcome was another than without adaptation.
    pub non_default_decisions: u64,
}

/// A flow's final state at its receiver. Rows of one flow are [added up](Self::add): packets that come after its completion make a row
/// of their own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReceiverRecord {
    /// Sending host.
    pub src: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// When its last byte came.
    pub completed: Option<Time>,
    /// Payload that came, each byte counted once.
    pub delivered: u64,
    /// The part of `delivered` that came before the end of the warm-up.
    pub before_warm_up: u64,
    /// The part of `delivered` that came in the drain.
    pub in_drain: u64,
    /// Data packets that came, duplicates included.
    pub packets: u64,
    /// Those of them with an ECN mark.
    pub marks: u64,
    /// Those of them with a number above the next expected one.
    pub ooo_packets: u64,
    /// Packets that came as headers only.
    pub headers: u32,
    /// Largest distance of a packet from the next expected one.
    pub max_ood: u32,
    /// Most packets that waited for one with a lower number.
    pub max_resequencing: u32,
    /// How often a packet came along another path than the one before it.
    pub path_changes: u32,
}

impl SenderRecord {
    /// The record of the flow, without the receiver's part.
    #[expect(clippy::cast_possible_truncation, reason = "groups have numbers of 16 bits: Mix::build")]
    pub fn record(self) -> FlowRecord {
        let SenderRecord {
            src, dst, flow, group, class, stream, bytes, start, sender_fct, ideal_fct, ..
        } = self;
        let SenderRecord {
            packets, returned_to_sender, retransmissions, timeouts, cnms, cnps, flowlets, ..
        } = self;
        let SenderRecord { stretched, drains, drain_time, decisions, non_default_decisions, .. } = self;
        FlowRecord {
            src,
            dst,
            flow,
            group: group as u16,
            class,
            stream,
            bytes,
            start,
            sender_fct,
            ideal_fct,
            packets,
            returned_to_sender,
            retransmissions,
            timeouts,
            cnms,
            cnps,
            flowlets,
            stretched,
            drains,
            drain_time,
            decisions,
            non_default_decisions,
            ..FlowRecord::default()
        }
    }
}

impl ReceiverRecord {
    /// Adds another row of this flow.
    pub fn add(&mut self, other: &ReceiverRecord) {
        self.completed = self.completed.or(other.completed);
        self.delivered += other.delivered;
        self.before_warm_up += other.before_warm_up;
        self.in_drain += other.in_drain;
        self.packets += other.packets;
        self.marks += other.marks;
        self.ooo_packets += other.ooo_packets;
        self.headers += other.headers;
        self.max_ood = self.max_ood.max(other.max_ood);
        self.max_resequencing = self.max_resequencing.max(other.max_resequencing);
        self.path_changes += other.path_changes;
    }

    /// Writes the receiver's part into the flow's record.
    pub fn complete(&self, flow: &mut FlowRecord) {
        flow.fct = self.completed.map(|at| at - flow.start);
        flow.delivered = self.delivered;
        flow.delivered_after_warm_up = self.delivered - self.before_warm_up;
        flow.delivered_in_drain = self.in_drain;
        flow.ecn_marks = self.marks;
        flow.ooo_packets = self.ooo_packets;
        flow.trims = u64::from(self.headers);
        flow.max_ood = self.max_ood;
        flow.max_resequencing = self.max_resequencing;
        flow.path_changes = self.path_changes;
    }
}

/// What a flow delivered in one window, as its receiver counted it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowRow {
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// Which window.
    pub window: u32,
    /// Payload of the packets that arrived in it, each byte counted once.
    pub bytes: u64,
}

/// One number of the [`PacketStatistics`](crate::PacketStatistics) of a flow.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PacketStatisticsRow {
    /// Sending host.
    pub src: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// What it is a number of.
    pub(crate) quantity: u8,
    /// Which one.
    pub(crate) place: u32,
    pub(crate) value: u64,
}

/// What a switch observed of a flow while it had an entry for it. Observations of one flow and switch are joined; a subflow counts for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlowObservationRecord {
    /// Sending host.
    pub src: u32,
    /// Number of the flow at its source.
    pub flow: u32,
    /// The number by which its packets go, which distinguishes subflows.
    pub number: u32,
    /// Which node the switch is.
    pub switch: u32,
    /// When the first data packet came,
    pub first: Time,
    /// and when the last one did.
    pub last: Time,
    /// Data packets that came.
    pub packets: u32,
    /// Runs of them that gaps as long as the flowlet threshold separate.
    pub flowlets: u32,
    /// Whether the first one came from its host, so that the gap before it counts.
    pub is_first_hop: bool,
    /// Where the switch is the flow's first: the round-trip time of a full packet and its ACK on the flow's idle path.
    pub base_rtt: Time,
}

impl WindowRow {
    /// The record, of a flow of that kind of traffic.
    #[expect(clippy::cast_possible_truncation, reason = "at most 1,000 windows: Measure::check_windows")]
    pub fn record(self, group: u16) -> WindowRecord {
        let WindowRow { src, dst, flow, window, bytes } = self;
        WindowRecord { window: window as u16, src, dst, flow, group, bytes }
    }
}
