//! What a sender does when it is notified of packets that lost their payload on the way, or that met a cut link.

use super::Sender;
use crate::config::Transport;
use crate::feedback::{Ack, Cause, Feedback};

impl Sender {
    /// A packet has arrived without its payload, says the receiver: exactly that one is to be sent again.
    pub(super) fn on_trim(&mut self, transport: &Transport, nack: Ack) -> Feedback {
        let mut newly = 0;
        while self.acked.base() < nack.cumulative {
            newly += self.acknowledge(self.acked.base(), None, nack.now);
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.settle(self.acked.base());
        }
        self.control.on_arrivals(newly);
        let feedback = self.lose(transport, Cause::Trim, nack);
        Feedback { packets: newly, bytes: u64::from(newly) * u64::from(self.size), ..feedback }
    }

    /// The header of a trimmed packet has come back: nothing else will report the loss.
    pub fn on_returned(&mut self, transport: &Transport, header: Ack) -> Feedback {
        self.counts.returned_to_sender += 1;
        self.lose(transport, Cause::Return, header)
    }

    /// The header of a packet that met a cut link has come back: the packet may leave again at once. That is no sign of congestion, so windows and
    /// rates stay as they are.
    pub fn on_unreachable(&mut self, transport: &Transport, header: Ack) -> Feedback {
        self.counts.returned_to_sender += 1;
        if self.recovery.as_mut().is_some_and(|recovery| recovery.lose_departure(header.seq, header.sent)) {
            self.leave_flight(1);
            // No PULL will come for it.
            self.gate.grant(1);
        }
        self.feedback(transport, Cause::Unreachable, header)
    }

    /// The departure of packet `about.seq` at `about.sent` did not bring its payload. If the packet has left again since, or has arrived, that
    /// says nothing new.
    pub(super) fn lose(&mut self, transport: &Transport, cause: Cause, about: Ack) -> Feedback {
        let is_lost =
            self.recovery.as_mut().is_some_and(|recovery| recovery.lose_departure(about.seq, about.sent));
        if !is_lost {
            return self.feedback(transport, cause, about);
        }
        self.leave_flight(1);
        let Ack { now, seq, sent, serialisation, hops, marked, tag, at_last_hop, .. } = about;
        let reroute = match (transport.reliability.facts().reroute_after, &mut self.recovery) {
            (Some(after), Some(recovery)) => recovery.reroutes(after, sent, now),
            _ => false,
        };
        let feedback = self.on_loss_at(transport, cause, (now, seq, sent), at_last_hop);
        Feedback { serialisation, hops, marked, tag, reroute, ..feedback }
    }
}
