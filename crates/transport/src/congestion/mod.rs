//! How much a flow may have in flight.

pub mod dctcp;
pub mod fixed_window;
pub mod none;
pub mod qcn;

use netloom_units::{Bytes, Rate, Time};

use crate::config::{Congestion, Transport};
use crate::feedback::Feedback;
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

    /// The sender learnt something. Returns whether that cuts the window.
    #[inline]
    pub(crate) fn on_feedback(&mut self, transport: &Transport, feedback: &Feedback) -> bool {
        match (self, &transport.congestion) {
            (Window::Dctcp(state), Congestion::Dctcp(config)) => state.on_feedback(config, feedback),
            _ => false,
        }
    }
}

/// Bandwidth-delay product.
fn bdp(rate: Rate, rtt: Time) -> Bytes {
    rate.bytes_in(rtt)
}
