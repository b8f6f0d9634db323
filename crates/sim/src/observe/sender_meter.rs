//! What senders know and may do over time: one row per flow and interval in which its sender learnt something.

use netloom_record::SenderSampleRecord;
use netloom_transport::{Cause, Feedback};
use netloom_units::Time;
use rustc_hash::FxHashMap;

use crate::host::flow::Flow;
use crate::observe::recorder::Recorder;
use crate::world::World;

/// Rows that a host keeps before it hands them in.
const HANDED_IN: usize = 256;

/// The meters of a host's flows. They have no events of their own: what a flow learns next closes the interval before it.
#[derive(Clone, Debug, Default)]
pub(crate) struct SenderMeters {
    /// By slot.
    open: FxHashMap<u32, SenderSampleRecord>,
    /// What the series does not have yet.
    closed: Vec<SenderSampleRecord>,
}

impl SenderMeters {
    /// The sender of the flow in a slot has learnt something, and has made of it what it will.
    pub(crate) fn count(&mut self, world: &World, (slot, flow): (u32, &Flow), feedback: &Feedback) {
        let Some(interval) = world.recorder.sender_interval else { return };
        // What happens at the end of an interval belongs to it.
        let time = Time(feedback.now.0.div_ceil(interval.0).max(1).saturating_mul(interval.0));
        let (numbering, key) = (world.numbering, flow.at.key);
        let begin = |rtt| SenderSampleRecord {
            time,
            src: key.src,
            dst: flow.dst,
            flow: numbering.flow(key.flow),
            subflow: if numbering.has_subflows() { numbering.subflow(key.flow) } else { 0 },
            rtt,
            ..SenderSampleRecord::default()
        };
        let row = self.open.entry(slot).or_insert_with(|| begin(None));
        if row.time < time {
            let rtt = row.rtt;
            self.closed.push(std::mem::replace(row, begin(rtt)));
        }
        row.window = Some(flow.sender.window()).filter(|&window| window < u64::MAX);
        row.rate = flow.sender.rate().map(|rate| rate.0);
        let is_ack = feedback.cause == Cause::Ack;
        if is_ack && feedback.is_sampled && feedback.rtt > Time::ZERO {
            row.rtt = Some(feedback.rtt);
        }
        row.in_flight = feedback.in_flight;
        row.acked += feedback.bytes;
        row.marks += u32::from(is_ack && feedback.marked);
        row.cuts += u32::from(feedback.window_cut);
        row.losses += u32::from(matches!(feedback.cause, Cause::Loss | Cause::Timeout | Cause::Nack));
        row.trims += u32::from(matches!(feedback.cause, Cause::Trim | Cause::Return));
        row.notifications += u32::from(feedback.cause == Cause::Notification);
        if self.closed.len() >= HANDED_IN {
            self.hand_in(&world.recorder);
        }
    }

    /// The flow in a slot has ended.
    pub(crate) fn end(&mut self, slot: u32) {
        self.closed.extend(self.open.remove(&slot));
    }

    /// The run has ended.
    pub(crate) fn end_all(&mut self) {
        self.closed.extend(self.open.drain().map(|(_, row)| row));
    }

    /// Gives the rows that are complete to the series.
    pub(crate) fn hand_in(&mut self, recorder: &Recorder) {
        recorder.sender_series.extend(self.closed.drain(..));
    }
}
