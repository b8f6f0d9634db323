//! What every shaping declares.

use netloom_units::{Invalid, Rate, Time};

use super::hf2t::Hf2t;

/// The parameters of a kind of shaping, and what they say of it.
pub(crate) trait ShapingConfig {
    /// How it spreads packets.
    fn facts(&self) -> Facts<'_>;

    /// Refuses parameter values without meaning.
    fn check(&self) -> Result<(), Invalid>;

    /// Fits it to routing whose flowlets keep their path at a gap of exactly `gap`; `None`: routing has no flowlets.
    fn fit(&mut self, gap: Option<Time>) -> Result<(), Invalid>;
}

/// How packets that may leave are spread over time. Every kind declares all of it: there are no defaults.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts<'a> {
    /// How far apart a flow's packets leave.
    pub spacing: Spacing,
    /// How gaps between a flow's packets are stretched; `None`: they are not.
    pub stretching: Option<&'a Hf2t>,
}

/// How far apart a flow's packets leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spacing {
    /// Back to back.
    None,
    /// A window evenly over a round trip.
    RoundTrip,
    /// At a rate.
    Rate(Rate),
}
