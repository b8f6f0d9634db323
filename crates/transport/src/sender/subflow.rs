//! What a sender does that is one of several of a flow: which of the flow's packets it sends is settled when one leaves
//! ([`Connection`](crate::Connection)), so it only knows whether there is one more.

use netloom_units::{Bytes, Time};

use super::{PathFacts, Sender};
use crate::config::Transport;
use crate::content::Content;

impl Sender {
    /// A subflow of a flow, without anything to send yet.
    pub fn subflow(transport: &Transport, path: PathFacts, now: Time) -> Self {
        let content = Content::new(0, transport.options.mtu.0);
        // If nothing else, that its flow has arrived.
        Sender { learns: true, ..Self::begin(transport, content, path, now) }
    }

    /// That many bytes of its flow are unsent: if there are any, it may send a packet more.
    #[inline]
    pub fn offer(&mut self, transport: &Transport, unsent: Bytes) {
        self.content.offer(self.next, unsent.0, transport.options.mtu.0);
    }

    /// Its smoothed round-trip time; before the first sample that of the idle path.
    #[inline]
    pub fn rtt(&self) -> Time {
        self.rtt.smoothed().unwrap_or(self.base_rtt)
    }

    /// Beyond slow start its window is to grow by at most that many bytes per byte acknowledged, because of the flow's other subflows.
    #[inline]
    pub fn couple(&mut self, per_byte: f64) {
        self.control.couple(per_byte);
    }

    /// Everything below the number has reached the receiver in other subflows' packets: this one is done with it, and has learnt nothing of its
    /// own path.
    pub fn forgo(&mut self, until: u32) {
        while self.acked.base() < until {
            let seq = self.acked.base();
            self.acked.insert(seq);
            let was_in_flight = self.recovery.as_mut().is_none_or(|recovery| recovery.forgo(seq));
            self.in_flight -= u32::from(was_in_flight);
        }
        if let Some(recovery) = &mut self.recovery {
            recovery.settle(self.acked.base());
        }
    }
}
