//! What a configuration is refused for, and why a run has no records.

use netloom_engine::END_OF_TIME;
use netloom_record::SeriesError;
use netloom_routing::ForwardingError;
use netloom_units::Invalid;

/// A configuration that cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SimError {
    /// The fabric makes no sense.
    #[error("fabric.{0}")]
    Fabric(Invalid),
    /// A lossless fabric has too few virtual channels for its routes.
    #[error("fabric.flow_control.vcs: {0}")]
    MayDeadlock(String),
    /// The routing scheme makes no sense, is not built, or does not fit the network or the transport.
    #[error("routing.{0}")]
    Routing(Invalid),
    /// What servers with several NICs are to do does not fit the workload.
    #[error("servers.{0}")]
    Servers(Invalid),
    /// The transport makes no sense.
    #[error("transport.{0}")]
    Transport(Invalid),
    /// A scheme goes by marks, and no switch marks.
    #[error("{refused}")]
    Unmarked {
        /// What is refused for that.
        refused: Box<SimError>,
        /// Whether the transport learns of losses from packets that are trimmed.
        wants_trimming: bool,
    },
    /// A fault does not fit the network or the run: the field begins with the number of the fault in the list, from 0.
    #[error("faults.{0}")]
    Fault(Invalid),
    /// The cut links leave a host unreachable.
    #[error("faults: {0}")]
    Unreachable(String),
    /// Routes may be longer than packets can count.
    #[error("topology: {0}")]
    TooFar(String),
    /// There are more channels than messages can say that they came by.
    #[error("topology: {0}")]
    TooLarge(String),
    /// The workload is one that the run cannot carry.
    #[error("workload.{0}")]
    Workload(Invalid),
    /// What to measure makes no sense.
    #[error("measure.{0}")]
    Measure(Invalid),
    /// A region of interest makes no sense.
    #[error("detail.packets.{0}")]
    Region(Invalid),
}

impl From<ForwardingError> for SimError {
    fn from(error: ForwardingError) -> Self {
        match error {
            ForwardingError::Routing(error) => SimError::Routing(error),
            ForwardingError::Unreachable(error) => SimError::Unreachable(error.to_string()),
        }
    }
}

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
    /// Parts of the run were skipped because they were steady, at a larger error than was allowed: what an audit has shown.
    #[error(
        "fast: {0}, after parts of the run had been skipped; `beyond = \"packets\"` runs the rest in packets"
    )]
    Inaccurate(String),
    /// Work is left at the end of time.
    #[error("the run reached {END_OF_TIME} of simulated time, the end of time, with work left")]
    OutOfTime,
    /// A time series, or what flows leave behind, cannot be kept.
    #[error(transparent)]
    Series(#[from] SeriesError),
    /// Work is left although nothing happens any more: which ranks wait for which messages, in words.
    #[error("the run stands still: {0}")]
    Unfinished(String),
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
