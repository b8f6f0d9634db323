//! Rate and latency of a class of links, and their defaults.

use netloom_units::{Rate, Time};

/// Rate and propagation delay of each direction of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cable {
    pub(crate) rate: Rate,
    pub(crate) latency: Time,
}

impl Cable {
    /// The Flowcut paper's link: 200 Gb/s, 1 µs.
    pub(crate) const DEFAULT: Cable = Cable { rate: Rate::from_gbps(200), latency: Time::from_us(1) };

    /// The tier's own values where given, otherwise the network's.
    pub(crate) fn or(rate: Option<Rate>, latency: Option<Time>, common: Cable) -> Cable {
        Cable { rate: rate.unwrap_or(common.rate), latency: latency.unwrap_or(common.latency) }
    }
}
