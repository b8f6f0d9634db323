//! What a sender does when its receiver has no room for a packet so far ahead.

use super::Sender;
use crate::config::Transport;
use crate::feedback::{Ack, Cause, Feedback};

impl Sender {
    /// A packet arrived too far ahead of one that is missing, and was refused. It is to be sent again, and before it what is missing and left earlier:
    /// that has been overtaken by more packets than a receiver remembers. What has been sent again since is given its time.
    pub(super) fn on_refusal(&mut self, transport: &Transport, nack: Ack) -> Feedback {
        let mut newly = 0;
        while self.acked.base() < nack.cumulative {
            newly += self.acknowledge(self.acked.base(), None, nack.now);
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.settle(self.acked.base());
            self.rtt.sample(nack.now - nack.sent);
            self.in_flight -= recovery.lose_before(nack.seq, nack.sent);
            self.in_flight -= u32::from(recovery.lose_departure(nack.seq, nack.sent));
        }
        let bytes = u64::from(newly) * u64::from(self.size);
        let mut feedback = Feedback { packets: newly, bytes, ..self.feedback(transport, Cause::Nack, nack) };
        self.react(transport, &mut feedback);
        feedback
    }
}
