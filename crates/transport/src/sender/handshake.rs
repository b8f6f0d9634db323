//! A flow that begins with a handshake: packet 0 is a SYN without payload, and nothing else leaves before its ACK has come. It is repeated like any
//! packet that gets lost. What switches and timers say meanwhile acts on the window that the flow will have, and lets nothing out.

use netloom_units::narrow;

use super::Sender;
use crate::config::Transport;
use crate::congestion::Control;
use crate::feedback::{Ack, Feedback};
use crate::gate::Gate;

/// What a sender may do after its handshake.
#[derive(Clone, Debug)]
pub(super) struct Opening {
    /// The window that it will have.
    window: u64,
    /// What each of its packets will count for.
    pub(super) size: u32,
    /// The SYN, or its ACK, got lost.
    pub(super) has_failed: bool,
}

impl Sender {
    /// Puts a SYN before what is to be sent, if the transport shakes hands.
    pub(super) fn greet(mut self, transport: &Transport) -> Self {
        if transport.options.handshake {
            self.content = self.content.with_syn();
            let (window, size) = (self.gate.window(), self.size);
            self.opening = Some(Box::new(Opening { window, size, has_failed: false }));
            // One packet at a time.
            self.size = narrow::<u32>(transport.packet_size().0);
            self.gate.set_window(transport.packet_size().0);
            self.learns = true;
        }
        self
    }

    /// The congestion control acts on a notice or a timer. During a handshake that changes the window of the flow behind it, and lets nothing out.
    #[inline]
    pub(super) fn steer(&mut self, act: impl FnOnce(&mut Control, &mut Gate) -> bool) -> bool {
        let Some(opening) = &mut self.opening else { return act(&mut self.control, &mut self.gate) };
        let one_packet = self.gate.window();
        self.gate.set_window(opening.window);
        let is_cut = act(&mut self.control, &mut self.gate);
        opening.window = self.gate.window();
        self.gate.set_window(one_packet);
        is_cut
    }

    /// The ACK of a SYN makes no window grow; if it took more than one SYN, the window begins with one packet (RFC 5681, section 3.1).
    pub(super) fn on_syn_ack(&mut self, transport: &Transport, ack: Ack) -> Feedback {
        if self.acked.base() > 0
            && let Some(opening) = self.opening.take()
        {
            self.gate.set_window(opening.window);
            self.size = opening.size;
            if opening.has_failed {
                self.control.begin_with_one(&mut self.gate);
            }
        }
        self.feedback_of(transport, ack, 0)
    }
}
