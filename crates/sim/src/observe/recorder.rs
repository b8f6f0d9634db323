//! Which time series a run records, and where their rows go until the run is over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use netloom_record::{
    DecisionRow, FlowObservationRecord, FlowSampleRecord, GapRecord, PacketStatisticsRow, ReceiverRecord,
    SampleRecord, SenderRecord, SenderSampleRecord, SeriesWriter, TraceRecord, Window, WindowRow,
};
use netloom_units::Time;

use crate::observe::measure::Measure;

/// How many flows that have ended a host hands in at a time.
const HANDED_IN: usize = 8;

/// Which time series a run records, and where their rows go.
#[derive(Clone, Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) warm_up: Time,
    /// When the last source stops; `Time::MAX` if the load lasts until all is done.
    pub(crate) load_until: Time,
    pub(crate) interval: Option<Time>,
    pub(crate) windows: Vec<Window>,
    /// Whether latency and hops of packets are wanted.
    pub(crate) packets: bool,
    /// Whether arrivals must be metered at all.
    pub(crate) is_on: bool,
    /// How many flows a host keeps more than it has to before it hands them in: what happens between two states that are compared is kept there.
    pub(crate) kept_longer: usize,
    /// The same while a repetition of programs is [looked at](crate::run::skip_repetitions); zero otherwise. Set only while nothing runs.
    pub(crate) kept_in_repetition: Arc<AtomicUsize>,
    /// What flows leave behind at their senders and receivers.
    pub(crate) sent: Arc<SeriesWriter<SenderRecord>>,
    pub(crate) received: Arc<SeriesWriter<ReceiverRecord>>,
    /// How many decisions switches have taken on them.
    pub(crate) decided: Arc<SeriesWriter<DecisionRow>>,
    /// The gaps between their departures.
    pub(crate) gaps: Arc<SeriesWriter<GapRecord>>,
    /// What switches have seen of flows,
    pub(crate) observations: Arc<SeriesWriter<FlowObservationRecord>>,
    /// and of their gaps at the first switch; a subflow has its own.
    pub(crate) switch_gaps: Arc<SeriesWriter<GapRecord>>,
    /// What meters leave behind.
    pub(crate) in_windows: Arc<SeriesWriter<WindowRow>>,
    pub(crate) of_packets: Arc<SeriesWriter<PacketStatisticsRow>>,
    /// The samples of channels.
    pub(crate) series: Arc<SeriesWriter<SampleRecord>>,
    /// The samples of flows.
    pub(crate) flow_series: Arc<SeriesWriter<FlowSampleRecord>>,
    /// How often senders are sampled, if they are,
    pub(crate) sender_interval: Option<Time>,
    /// and their samples.
    pub(crate) sender_series: Arc<SeriesWriter<SenderSampleRecord>>,
    /// Traced packets.
    pub(crate) trace: Arc<SeriesWriter<TraceRecord>>,
}

impl Recorder {
    pub(crate) fn new(measure: &Measure, load_until: Option<Time>) -> Self {
        let Measure { warm_up, sample_flows: interval, sample_senders: sender_interval, packets, .. } =
            *measure;
        let windows = measure.windows.clone();
        let is_on = warm_up > Time::ZERO || interval.is_some() || packets || !windows.is_empty();
        let load_until = load_until.unwrap_or(Time::MAX);
        Recorder {
            warm_up,
            load_until,
            interval,
            sender_interval,
            windows,
            packets,
            is_on,
            ..Recorder::default()
        }
    }

    /// How many flows a host keeps before it hands them in.
    #[inline]
    pub(crate) fn kept(&self) -> usize {
        HANDED_IN + self.kept_longer.max(self.kept_in_repetition.load(Ordering::Relaxed))
    }

    /// Whether a series is lost, so that there is no use in going on.
    pub(crate) fn is_broken(&self) -> bool {
        let series = self.series.is_broken() || self.flow_series.is_broken() || self.trace.is_broken();
        let series = series || self.sender_series.is_broken();
        let of_meters = self.in_windows.is_broken() || self.of_packets.is_broken();
        let of_switches = self.observations.is_broken() || self.switch_gaps.is_broken();
        let of_switches = of_switches || self.decided.is_broken();
        let of_flows = self.sent.is_broken() || self.received.is_broken() || self.gaps.is_broken();
        series || of_meters || of_switches || of_flows
    }
}
