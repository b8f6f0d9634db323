//! Stand-ins that the tests of several files share.

use netloom_topology::PortId;
use netloom_transport::{Cause, Feedback};
use netloom_units::Time;

use crate::header::View;

/// A switch of which only the loads of its ports are known; all rates are alike.
pub(crate) struct Loads<F>(pub(crate) F);

impl<F: Fn(PortId) -> u64> View for Loads<F> {
    fn now(&self) -> Time {
        Time::ZERO
    }

    fn load(&mut self, port: PortId) -> u64 {
        self.0(port)
    }

    fn rate(&self, _: PortId) -> u64 {
        1
    }
}

/// The same at a time.
pub(crate) struct LoadsAt<F>(pub(crate) F, pub(crate) Time);

impl<F: Fn(PortId) -> u64> View for LoadsAt<F> {
    fn now(&self) -> Time {
        self.1
    }

    fn load(&mut self, port: PortId) -> u64 {
        self.0(port)
    }

    fn rate(&self, _: PortId) -> u64 {
        1
    }
}

/// An unmarked ACK of a packet that was sent at `sent`, and nothing else is known.
pub(crate) fn ack(sent: Time, now: Time) -> Feedback {
    Feedback { rtt: now - sent, packets: 1, ..Feedback::of(Cause::Ack, now) }
}
