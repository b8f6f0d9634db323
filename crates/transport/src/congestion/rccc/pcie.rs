//! A host that takes less from its link than that brings.

use netloom_units::{Bytes, Invalid, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bus between a receiver's port and its memory, such as PCIe (uet-htsim, `pciemodel.cpp`): what has arrived waits until the bus has taken it. The pace of PULLs falls with the square of the room that is
/// left above `threshold`, to a thousandth from 95% of `buffer` on. What finds no room counts as trimmed at the last hop. At the default rate full packets are not
/// slowed down, as the bus is faster than the link, in uet-htsim, too: set `rate` below 1 for a bus that is slower.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Pcie {
    /// The rate of the bus, as a multiple of the link's; it takes a full packet and 38 B at a time (uet-htsim: 1.1).
    pub rate: f64,
    /// Bytes that can wait for it (uet-htsim: 5 MB).
    pub buffer: Bytes,
    /// Bytes from which on PULLs become slower (uet-htsim: 1 MB).
    pub threshold: Bytes,
}

impl Default for Pcie {
    fn default() -> Self {
        Pcie { rate: 1.1, buffer: Bytes(5_000_000), threshold: Bytes(1_000_000) }
    }
}

/// Beside each packet: preamble, check sequence and gap of Ethernet.
const OVERHEAD: u64 = 38;

/// The pace of PULLs where the bus has hardly any room left.
const LEAST: f64 = 0.001;

impl Pcie {
    pub(super) fn check(&self) -> Result<(), Invalid> {
        Invalid::positive("rate", self.rate)?;
        let is_below = self.threshold < self.buffer;
        Invalid::unless(is_below, "threshold", format!("below the buffer of {}", self.buffer), self.threshold)
    }

    /// How long the bus takes for a full packet that came by a link of that rate.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "positive; saturates")]
    fn takes(&self, link: Rate, packet: Bytes) -> u64 {
        let bits = 8 * (packet.0 + OVERHEAD);
        ((bits as f64 * 1e12 / (link.0 as f64 * self.rate)) as u64).max(1)
    }
}

/// What waits for the bus of one port.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostBus {
    backlog: u64,
    /// When the bus has taken a packet next, if any waits.
    next: Option<Time>,
}

impl HostBus {
    /// Lets the bus work until `now`.
    fn advance(&mut self, config: &Pcie, now: Time, (link, packet): (Rate, Bytes)) {
        let Some(next) = self.next.filter(|&next| next <= now) else { return };
        let takes = config.takes(link, packet);
        let taken = (now - next).0 / takes + 1;
        self.backlog = self.backlog.saturating_sub(taken.saturating_mul(packet.0));
        self.next = (self.backlog > 0).then(|| next.saturating_add(Time(taken.saturating_mul(takes))));
    }

    /// A packet of `size` bytes has arrived; `of_link` is the link's rate and the size of its full packets. Returns whether there is room for it.
    pub fn on_arrival(&mut self, config: &Pcie, now: Time, of_link: (Rate, Bytes), size: Bytes) -> bool {
        self.advance(config, now, of_link);
        if self.backlog + size.0 > config.buffer.0 {
            return false;
        }
        self.backlog += size.0;
        self.next.get_or_insert(now.saturating_add(Time(config.takes(of_link.0, of_link.1))));
        true
    }

    /// The pace of PULLs as a share of the link.
    pub fn share(&mut self, config: &Pcie, now: Time, of_link: (Rate, Bytes)) -> f64 {
        self.advance(config, now, of_link);
        let (buffer, threshold) = (config.buffer.0 as f64, config.threshold.0 as f64);
        let backlog = self.backlog as f64;
        if backlog < threshold {
            1.0
        } else if self.backlog > config.buffer.0.saturating_mul(95) / 100 {
            LEAST
        } else {
            ((buffer - backlog) / (buffer - threshold)).powi(2)
        }
    }
}
