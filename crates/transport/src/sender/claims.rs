//! What a sender says to switches that notify it of congestion, and what it learns from them.

use netloom_units::{Bytes, Time};

use super::Sender;
use crate::config::Transport;
use crate::congestion::bolt::{Claim, SourceNotice};
use crate::feedback::Feedback;

impl Sender {
    /// What the packet of this payload claims that has just been taken.
    pub fn claim(&self, transport: &Transport, payload: u16) -> Claim {
        let options = &transport.options;
        let packets = u64::from(self.content.count.saturating_sub(self.next)) + 1;
        let never_sent = self.remaining(transport).0 + u64::from(payload) + packets * options.header.0;
        // What is short counts as a full packet.
        let lost = self.recovery.as_ref().map_or(0, |recovery| recovery.lost());
        self.control.claim(Bytes(never_sent + u64::from(lost) * transport.packet_size().0))
    }

    /// A switch notifies of congestion. Returns something if that cuts the window.
    pub fn on_source_notice(
        &mut self,
        transport: &Transport,
        now: Time,
        notice: SourceNotice,
    ) -> Option<Feedback> {
        let is_cut = self.steer(|control, gate| control.on_source_notice(transport, now, notice, gate));
        is_cut.then(|| self.rate_cut(transport, now))
    }
}
