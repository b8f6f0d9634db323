//! What is left of a flow at its sender: few bytes, until many together are handed in.

use netloom_record::{FlowRecord, SenderRecord};
use netloom_units::Time;

/// A flow that has ended, or was given up.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    dst: u32,
    pub(crate) flow: u32,
    group: u16,
    class: u8,
    is_stream: bool,
    bytes: u64,
    start: Time,
    ideal_fct: Time,
    /// When its last ACK came; `Time::MAX`: it has not.
    ended: Time,
    packets: u64,
    /// What most flows have nothing of.
    rare: Option<Box<Rare>>,
}

const _: () = assert!(size_of::<Sent>() <= 64, "a finished flow has a cache line at its sender");

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Rare {
    pub(crate) drain_time: Time,
    pub(crate) decisions: u64,
    pub(crate) non_default_decisions: u64,
    pub(crate) retransmissions: u64,
    pub(crate) timeouts: u32,
    pub(crate) returned_to_sender: u32,
    pub(crate) cnms: u32,
    pub(crate) cnps: u32,
    pub(crate) flowlets: u32,
    pub(crate) stretched: u32,
    pub(crate) drains: u32,
}

impl Sent {
    /// Keeps a sender's part of a record.
    pub(crate) fn new(record: &FlowRecord) -> Self {
        let &FlowRecord { dst, flow, group, class, stream, bytes, start, ideal_fct, packets, .. } = record;
        let rare = Rare {
            drain_time: record.drain_time,
            decisions: record.decisions,
            non_default_decisions: record.non_default_decisions,
            retransmissions: record.retransmissions,
            timeouts: record.timeouts,
            returned_to_sender: record.returned_to_sender,
            cnms: record.cnms,
            cnps: record.cnps,
            flowlets: record.flowlets,
            stretched: record.stretched,
            drains: record.drains,
        };
        Sent {
            dst,
            flow,
            group,
            class,
            is_stream: stream,
            bytes,
            start,
            ideal_fct,
            ended: record.sender_fct.map_or(Time::MAX, |fct| start + fct),
            packets,
            rare: (rare != Rare::default()).then(|| Box::new(rare)),
        }
    }

    /// Another flow to which all the same happens some time later.
    pub(crate) fn later(&self, flow: u32, time: Time) -> Self {
        let ended = if self.has_ended() { self.ended + time } else { self.ended };
        Sent { flow, start: self.start + time, ended, ..self.clone() }
    }

    /// To which host it went.
    pub(crate) fn dst(&self) -> u32 {
        self.dst
    }

    /// Whether it ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended != Time::MAX
    }

    /// The header of one of its packets came back after its end.
    pub(crate) fn note_return(&mut self) {
        self.rare.get_or_insert_default().returned_to_sender += 1;
    }

    /// What is known at the sender `src`.
    pub(crate) fn record(&self, src: u32) -> SenderRecord {
        let none = Rare::default();
        let rare = self.rare.as_deref().unwrap_or(&none);
        SenderRecord {
            src,
            dst: self.dst,
            flow: self.flow,
            group: u32::from(self.group),
            class: self.class,
            stream: self.is_stream,
            bytes: self.bytes,
            start: self.start,
            sender_fct: self.has_ended().then(|| self.ended - self.start),
            ideal_fct: self.ideal_fct,
            packets: self.packets,
            returned_to_sender: rare.returned_to_sender,
            retransmissions: rare.retransmissions,
            timeouts: rare.timeouts,
            cnms: rare.cnms,
            cnps: rare.cnps,
            flowlets: rare.flowlets,
            stretched: rare.stretched,
            drains: rare.drains,
            drain_time: rare.drain_time,
            decisions: rare.decisions,
            non_default_decisions: rare.non_default_decisions,
        }
    }
}
