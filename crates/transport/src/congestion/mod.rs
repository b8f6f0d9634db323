//! How much a flow may have in flight.

pub mod dctcp;
pub mod fixed_window;
pub mod none;
pub mod qcn;

use netloom_units::{Bytes, Rate, Time};

use crate::config::{Congestion, Transport};
use crate::sender::PathFacts;

/// The congestion control of one flow.
#[derive(Clone, Debug)]
pub(crate) enum Window {
    Unlimited,
    Fixed(u64),
    Dctcp(Box<dctcp::State>),
}

impl Window {
    pub(crate) fn new(transport: &Transport, path: PathFacts) -> Self {
        match &transport.congestion {
            Congestion::None(_) | Congestion::Qcn(_) => Window::Unlimited,
            Congestion::FixedWindow(config) => {
                Window::Fixed(config.bytes(bdp(path.rate, path.base_rtt), transport.packet_size()).0)
            }
            Congestion::Dctcp(config) => Window::Dctcp(Box::new(config.begin(transport.packet_size()))),
        }
    }

    /// Bytes on the wire that may be unacknowledged.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Window::Unlimited => u64::MAX,
            Window::Fixed(bytes) => *bytes,
            Window::Dctcp(state) => state.window(),
        }
    }

    /// `bytes` were acknowledged, `marked` of an ECN mark; `next` is the next new packet number, `acked` the cumulative
    /// one.
    #[inline]
    pub(crate) fn on_ack(&mut self, transport: &Transport, bytes: u64, marked: bool, acked: u32, next: u32) {
        if let (Window::Dctcp(state), Congestion::Dctcp(config)) = (self, &transport.congestion) {
            state.on_ack(config, bytes, marked, acked, next);
        }
    }

    /// Something was lost; `timeout` tells whether a timer found out.
    pub(crate) fn on_loss(&mut self, timeout: bool) {
        if let Window::Dctcp(state) = self {
            state.on_loss(timeout);
        }
    }
}

/// Bandwidth-delay product.
fn bdp(rate: Rate, rtt: Time) -> Bytes {
    rate.bytes_in(rtt)
}
