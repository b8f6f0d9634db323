//! Flows, and the parts of messages that are striped over several NICs.

use netloom_units::Time;

use crate::series::{Gathered, Series, SeriesError};

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
/// `src` is the sending server and `dst` the place of the receiving NIC when they are counted server by server; `nic` is the NIC at a
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
    /// What is recorded of a flow between the NICs of a rail.
    pub(crate) fn new(flow: &FlowRecord, (server, rail): (u32, u32), (src, dst): (u32, u32)) -> Self {
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
