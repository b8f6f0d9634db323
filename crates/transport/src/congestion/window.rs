//! What windows have in common.

use std::fmt::Debug;

use netloom_units::recurrence::Walk;
use netloom_units::{Bytes, Invalid, Time};

use super::{CongestionControl, REACTS};
use crate::feedback::Feedback;
use crate::gate::Gate;
use crate::sender::Queueing;

/// A congestion control of which a window that adapts is all that moves the gate: on feedback, and by nothing else.
pub(crate) trait AdaptiveWindow: Clone + Debug {
    /// Its parameters.
    type Config;

    /// Whether it knows what waits on the path, in [`Self::queueing`].
    const KNOWS_QUEUEING: bool = false;

    /// The window in bytes on the wire.
    fn window(&self) -> u64;

    /// The sender learnt something. Returns whether that cuts the window.
    fn react(&mut self, config: &Self::Config, feedback: &Feedback) -> bool;

    /// The window becomes a single packet, as the SYN got lost.
    fn shrink_to_one(&mut self);

    /// Beyond slow start the window grows by at most that many bytes per byte acknowledged.
    fn limit_growth(&mut self, _per_byte: f64) {}

    /// What it knows of the queues on the flow's path, if it goes by these.
    fn queueing(&self) -> Option<Queueing> {
        None
    }

    /// As [`CongestionControl::recur`].
    fn recur(&mut self, _config: &Self::Config, walk: &mut Walk) {
        walk.refuse(REACTS);
    }

    /// A flow begins with this window.
    fn open(self, gate: &mut Gate) -> Self {
        gate.set_window(self.window());
        self
    }
}

impl<W: AdaptiveWindow> CongestionControl for W {
    type Config = W::Config;

    const LEARNS: bool = true;
    const SHRINKS_BELOW_A_PACKET: bool = true;
    const CHOOSES_PATHS: bool = false;
    const KNOWS_QUEUEING: bool = W::KNOWS_QUEUEING;

    #[inline]
    fn on_feedback(&mut self, config: &W::Config, feedback: &Feedback, gate: &mut Gate) -> bool {
        let is_cut = self.react(config, feedback);
        gate.set_window(self.window());
        is_cut
    }

    #[inline]
    fn on_sent(&mut self, _: Time, _: u64, _: &mut Gate) {}

    fn begin_with_one(&mut self, gate: &mut Gate) {
        self.shrink_to_one();
        gate.set_window(self.window());
    }

    fn couple(&mut self, per_byte: f64) {
        self.limit_growth(per_byte);
    }

    fn queueing(&self) -> Option<Queueing> {
        AdaptiveWindow::queueing(self)
    }

    fn recur(&mut self, config: &W::Config, _: u64, walk: &mut Walk) {
        AdaptiveWindow::recur(self, config, walk);
    }
}

/// A window of that many bandwidth-delay products. Only whole packets can be in flight, and a window of one product or more holds at least as many as one product takes; a
/// smaller one as many as it takes itself. Otherwise a flow of few large packets would be slower than its window says: two packets of which 2.4 are a product.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
pub(crate) fn products(times: f64, bdp: Bytes, packet: Bytes) -> Bytes {
    let bytes = |times: f64| bdp.0 as f64 * times;
    let least = (bytes(times.min(1.0)) / packet.0 as f64).ceil() as u64;
    Bytes((bytes(times).round() as u64).max(least.max(1).saturating_mul(packet.0)))
}

/// That many full packets.
pub(crate) fn packets(count: u32, packet: Bytes) -> Bytes {
    Bytes(packet.0.saturating_mul(count.into()))
}

/// What of a window whole packets can fill.
pub(crate) fn whole(window: Bytes, packet: Bytes) -> Bytes {
    Bytes(window.0 / packet.0 * packet.0)
}

/// The first window of one that adapts, `initial` packets but no more than `most`, and the field that decides it.
pub(crate) fn adaptive(initial: u32, most: Option<Bytes>, packet: Bytes) -> (&'static str, Bytes) {
    let initial = packets(initial, packet);
    match most.map(|most| whole(most, packet)) {
        Some(most) if most < initial => ("max_window", most),
        _ => ("initial_window", initial),
    }
}

/// Refuses windows that could never send anything.
pub(crate) fn check(initial: u32, ssthresh: Option<u32>, least: f64) -> Result<(), Invalid> {
    Invalid::at_least("initial_window", initial, 1)?;
    Invalid::at_least("initial_ssthresh", ssthresh.unwrap_or(1), 1)?;
    let is_valid = least > 0.0 && least <= f64::from(initial);
    Invalid::unless(is_valid, "min_window", "a number above 0, at most the initial window", least)
}
