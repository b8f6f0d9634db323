//! What was seen in a run: records, their summary, and the outcome folder.
//!
//! A simulator fills [`Records`].

mod records;
mod statistics;

pub use records::{ChannelRecord, DecisionCount, FlowRecord, PacketCounts, Records, SampleRecord, Totals};
pub use statistics::Statistics;
