//! How much a flow may have in flight.

pub mod dctcp;
pub mod fixed_window;
pub mod newreno;
pub mod none;
pub mod qcn;
mod reno;

use netloom_units::{Bytes, Rate, Time};

use crate::config::{Congestion, Transport};
use crate::feedback::Feedback;
use crate::sender::PathFacts;

/// The congestion control of one flow.
#[derive(Clone, Debug)]
pub(crate) enum Window {
    Unlimited,
    Fixed(u64),
    NewReno(Box<newreno::State>),
    Dctcp(Box<dctcp::State>),
}

impl Window {
    pub(crate) fn new(transport: &Transport, path: PathFacts) -> Self {
        match &transport.congestion {
            Congestion::None(_) | Congestion::Qcn(_) => Window::Unlimited,
            Congestion::FixedWindow(config) => {
                Window::Fixed(config.bytes(bdp(path.rate, path.base_rtt), transport.packet_size()).0)
            }
            Congestion::NewReno(config) => Window::NewReno(Box::new(config.begin(transport.packet_size()))),
            Congestion::Dctcp(config) => Window::Dctcp(Box::new(config.begin(transport.packet_size()))),
        }
    }

    /// Bytes on the wire that may be unacknowledged.
    #[inline]
    pub(crate) fn bytes(&self) -> u64 {
        match self {
            Window::Unlimited => u64::MAX,
            Window::Fixed(bytes) => *bytes,
            Window::NewReno(state) => state.window(),
            Window::Dctcp(state) => state.window(),
        }
    }

    /// Whether it can shrink below a packet, so that round-trip times matter.
    #[inline]
    pub(crate) fn is_adaptive(&self) -> bool {
        matches!(self, Window::NewReno(_) | Window::Dctcp(_))
    }

    /// The sender learnt something. Returns whether that cuts the window.
    #[inline]
    pub(crate) fn on_feedback(&mut self, transport: &Transport, feedback: &Feedback) -> bool {
        match (self, &transport.congestion) {
            (Window::NewReno(state), Congestion::NewReno(config)) => state.on_feedback(config, feedback),
            (Window::Dctcp(state), Congestion::Dctcp(config)) => state.on_feedback(config, feedback),
            _ => false,
        }
    }
}

/// Bandwidth-delay product.
fn bdp(rate: Rate, rtt: Time) -> Bytes {
    rate.bytes_in(rtt)
}

/// Refuses windows that could never send anything.
fn check_windows(kind: &str, initial: u32, least: f64) -> Result<(), String> {
    if initial == 0 {
        return Err(format!("{kind}.initial_window: expected at least 1 packet, found 0"));
    }
    if !(least > 0.0 && least <= f64::from(initial)) {
        return Err(format!(
            "{kind}.min_window: expected a number above 0 and at most the initial window, found {least}"
        ));
    }
    Ok(())
}
