//! Open-loop arrivals, made one at a time.

use netloom_units::Time;

use crate::Message;
use crate::closed::Partners;
use crate::random::{RngExt, Stream};
use crate::size::Sampler;

/// The Poisson arrivals at one host.
#[derive(Clone, Debug)]
pub(crate) struct Arrivals {
    pub(crate) rng: Stream,
    pub(crate) size: Sampler,
    pub(crate) partners: Partners,
    /// Mean of the exponential gaps.
    pub(crate) mean_gap_ps: f64,
    /// When the last message started.
    pub(crate) now: Time,
    /// Messages still to start.
    pub(crate) left: u64,
    /// No message starts at this time or later.
    pub(crate) until: Time,
}

impl Arrivals {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an exponential draw, from 0 on; saturates"
    )]
    pub(crate) fn next(&mut self) -> Option<Message> {
        self.left = self.left.checked_sub(1)?;
        // The logarithm is a portable one: the system's differ in the last digit, and so would the runs.
        let gap = -libm::log(1.0 - self.rng.random::<f64>()) * self.mean_gap_ps;
        let start = Time(self.now.0.saturating_add(gap.round() as u64));
        if start >= self.until {
            self.left = 0;
            return None;
        }
        self.now = start;
        let dst = self.partners.next(&mut self.rng);
        Some(Message::new(dst, self.size.draw(&mut self.rng), start))
    }
}
