//! What a receiver does where one ACK answers several packets that came in any order.

use netloom_units::Bytes;

use super::{Arrival, Receiver};
use crate::config::Transport;
use crate::sender::Sack;

/// What the receiver sends when a packet arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SackAnswer {
    /// Whether an ACK leaves now.
    pub is_due: bool,
    /// Whether the sender is also notified of congestion, by a packet (CNP) that leaves before any ACK.
    pub notify: bool,
}

impl Receiver {
    /// A data packet arrived, of `size` on the wire; it may ask for an ACK. To be called where [`Facts::sack_bytes`](crate::reliability::Facts) says so, in place
    /// of [`Self::on_data`].
    #[inline]
    pub fn on_data_to_sack(
        &mut self,
        transport: &Transport,
        due_after: Bytes,
        arrival: Arrival,
        asks: bool,
        size: u16,
    ) -> SackAnswer {
        let Arrival { now, seq, payload, marked, path, last: _ } = arrival;
        self.note_packet(path);
        self.seen.marks += u64::from(marked);
        let notify = marked && self.notifies(transport, now);
        let is_first = self.received.base() == 0 && self.received.is_contiguous();
        self.unacknowledged = self.unacknowledged.saturating_add(size.into());
        let was_expected = seq == self.received.base();
        let is_new = if self.received.insert_in_order(seq) {
            self.seen.delivered += u64::from(payload);
            true
        } else {
            self.note_early(seq);
            self.resequence(seq, payload)
        };
        self.note_end(&arrival, is_new);
        self.owes |= asks && is_new;
        let pays = self.owes && was_expected && self.received.is_contiguous();
        if pays {
            self.owes = false;
        }
        let is_due =
            is_first || marked || asks || pays || !is_new || u64::from(self.unacknowledged) >= due_after.0;
        if is_due {
            self.unacknowledged = 0;
        }
        SackAnswer { is_due, notify }
    }

    /// The next packet expected, and what an ACK says that packet `seq` causes. Its bitmap begins with that packet if it was marked or asked for the ACK, else as early as it can and
    /// still have the packet.
    pub fn sack(&self, seq: u32, is_direct: bool, is_repeat: bool) -> (u32, Sack) {
        let expected = self.received.base();
        let first = sack_first(seq, expected, is_direct);
        let bits = self.received.bits_from(first);
        (expected, Sack { received: expected + self.resequencing, first, bits, is_repeat })
    }
}

/// The number for which the first bit of a bitmap stands.
pub fn sack_first(seq: u32, expected: u32, is_direct: bool) -> u32 {
    if is_direct { seq } else { seq.saturating_sub(u64::BITS - 1).max(expected.saturating_add(1)) }
}
