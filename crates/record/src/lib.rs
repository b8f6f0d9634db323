//! What was seen in a run: records, their summary, and the outcome folder.
//!
//! A simulator fills [`Records`]: plain structs, one per flow, channel, sample and window. [`Summary::new`] computes from them
//! what people compare first, and [`OutcomeWriter`] writes all of it to one folder, as a whole or not at all:
//!
//! | file | content |
//! | --- | --- |
//! | `scenario.toml` | what was run, every default filled in |
//! | `summary.json` | [`Summary`]: percentiles of FCT and slowdown, groups, windows, channels, packets, tiers, [`Totals`] |
//! | `flows.parquet` | one row per [`FlowRecord`] |
//! | `parts.parquet` | one row per [`PartRecord`], if servers have several NICs |
//! | `links.parquet` | one row per [`ChannelRecord`] |
//! | `series.parquet` | one row per [`SampleRecord`], if any channel was sampled |
//! | `flow_series.parquet` | one row per [`FlowSampleRecord`], if any flow was sampled |
//! | `sender_series.parquet` | one row per [`SenderSampleRecord`], if any sender was sampled |
//! | `windows.parquet` | one row per [`WindowRecord`], if there are windows |
//! | `packets.parquet` | one row per [`FlowPacketRecord`], if packets were measured |
//! | `latency.parquet` | one row per [`LatencyRecord`], if packets were measured |
//! | `trace.parquet` | one row per [`TraceRecord`], if packets were traced |
//! | `performance.json` | [`Performance`]: what the run cost |
//!
//! All files but the last are a function of the scenario and its seed, byte by byte. `docs/outcome.md` documents every
//! column.
//!
//! ```
//! use netloom_record::{
//!     Existing, FlowRecord, Outcome, OutcomeWriter, Performance, Records, Status, Summary, SummaryOptions,
//! };
//! use netloom_units::Time;
//!
//! let folder = tempfile::tempdir().unwrap();
//! let writer = OutcomeWriter::prepare(&folder.path().join("first"), Existing::Refuse).unwrap();
//!
//! let (fct, ideal_fct) = (Some(Time::from_us(30)), Time::from_us(10));
//! let flow = FlowRecord { src: 0, dst: 1, bytes: 1000, fct, ideal_fct, ..Default::default() };
//! let records = Records { flows: vec![flow], ..Default::default() };
//! let summary = Summary::new(&records, &SummaryOptions::default(), Status::Complete).unwrap();
//! writer.write("# scenario\n", &summary, &records, &Performance::new("0.1.0", 1, 0.1, 60)).unwrap();
//!
//! let outcome = Outcome::read(&folder.path().join("first")).unwrap();
//! assert_eq!(outcome.summary.slowdown.unwrap().p99, 3.0);
//! ```

#![cfg_attr(
    not(test),
    warn(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)
)]

mod breakdown;
mod channel_tally;
#[cfg(test)]
mod counts_arrive;
mod critical;
mod estimate;
mod jobs;
mod node_records;
mod outcome;
mod packets;
pub mod partial;
mod performance;
mod records;
mod series;
mod statistics;
mod summary;
mod tables;
mod tally;
#[cfg(test)]
mod testing;
mod values;
pub mod whole;

pub use breakdown::{ChannelSummary, ChannelWindowSummary, GroupSummary, WindowGroupSummary, WindowSummary};
pub use critical::{
    CriticalError, CriticalKind, CriticalMessage, CriticalPaths, CriticalStep, CriticalSum, critical_sums,
};
pub use estimate::Estimate;
pub use jobs::{
    ActivityRecord, CollectiveRecord, JobNames, JobRecord, JobRecords, JobSummary, OperationRecord,
    RankRecord,
};
pub use node_records::{
    DecisionRow, FlowObservationRecord, PacketStatisticsRow, ReceiverRecord, SenderRecord, WindowRow,
};
pub use outcome::{Draft, Existing, Outcome, OutcomeError, OutcomeWriter, outcome_around};
pub use packets::{
    FlowPacketRecord, LatencyRecord, LatencySummary, PacketPathSummary, PacketStatistics, TraceRecord,
};
pub use performance::{Division, Performance, Skipped, peak_memory};
pub use records::{
    ChannelRecord, ChannelWindowRecord, ConWeaveCount, DecisionCount, EntryCount, FlowRecord,
    FlowSampleRecord, FlowletRecord, GapRecord, NamedChannel, PacketCounts, PartRecord, Records,
    ReorderingCount, SampleRecord, SenderSampleRecord, Sink, Totals, Window, WindowRecord, join_parts,
};
pub use series::{Gathered, MOST_ROWS, Series, SeriesError, SeriesRow, SeriesWriter};
pub use statistics::Statistics;
pub use summary::{
    DrainSummary, FlowSummary, GapSummary, PacketSummary, SizeBin, Status, SteadySkipped, Summary,
    SummaryOptions, TierSummary,
};
pub use tables::{OutcomeTable, TableColumn, Values};
pub use tally::Tally;
