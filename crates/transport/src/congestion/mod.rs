//! How much a flow may have in flight, or how fast it may send.

pub mod dctcp;
pub mod fixed_window;
pub mod newreno;
pub mod none;
pub mod qcn;
mod reno;

use netloom_units::Time;

use crate::config::{Congestion, Transport};
use crate::feedback::Feedback;
use crate::gate::Gate;
use crate::sender::PathFacts;

/// The congestion control of one flow: what moves its gate.
#[derive(Clone, Debug)]
pub(crate) enum Control {
    /// Nothing does.
    Still,
    NewReno(Box<newreno::State>),
    Dctcp(Box<dctcp::State>),
}

impl Control {
    /// The control of a flow that begins at `now`, and its gate.
    pub(crate) fn begin(transport: &Transport, path: PathFacts, now: Time) -> (Self, Gate) {
        let packet = transport.packet_size();
        let mut gate = Gate::new(now);
        let control = match &transport.congestion {
            Congestion::None(_) | Congestion::Qcn(_) => Control::Still,
            Congestion::FixedWindow(config) => {
                gate.set_window(config.bytes(path.bdp(), packet).0);
                Control::Still
            }
            Congestion::NewReno(config) => {
                let state = config.begin(packet);
                gate.set_window(state.window());
                Control::NewReno(Box::new(state))
            }
            Congestion::Dctcp(config) => {
                let state = config.begin(packet);
                gate.set_window(state.window());
                Control::Dctcp(Box::new(state))
            }
        };
        (control, gate)
    }

    /// Whether its window can shrink below a packet, so that round-trip times matter.
    #[inline]
    pub(crate) fn is_adaptive(&self) -> bool {
        !matches!(self, Control::Still)
    }

    /// The sender learnt something. Returns whether that cuts the window.
    #[inline]
    pub(crate) fn on_feedback(
        &mut self,
        transport: &Transport,
        feedback: &Feedback,
        gate: &mut Gate,
    ) -> bool {
        match (self, &transport.congestion) {
            (Control::NewReno(state), Congestion::NewReno(config)) => {
                let is_cut = state.on_feedback(config, feedback);
                gate.set_window(state.window());
                is_cut
            }
            (Control::Dctcp(state), Congestion::Dctcp(config)) => {
                let is_cut = state.on_feedback(config, feedback);
                gate.set_window(state.window());
                is_cut
            }
            _ => false,
        }
    }
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
