//! What a sender does whose receiver asks for packets.

use netloom_units::Time;

use super::{PathFacts, Sender};
use crate::config::Transport;
use crate::feedback::{Cause, Feedback};

impl Sender {
    /// The receiver has asked for that many packets by now.
    pub fn on_pull(&mut self, count: u32) {
        self.control.on_pull(count, &mut self.gate);
    }

    /// How many packets a flow asks for before it sends anything, if it has to ask: as many as its first window would hold.
    pub fn requests(&self, transport: &Transport, path: PathFacts) -> Option<u32> {
        let pulls = transport.congestion.facts().pulls?;
        let window = || pulls.window(path.bdp(), transport.packet_size());
        pulls.request_to_send.then(|| window().min(self.content.count))
    }

    /// When a sender that has something to send, but nothing under way that could bring a PULL, stops waiting for one: PULLs can be lost.
    pub(super) fn starves_until(&self, transport: &Transport) -> Option<Time> {
        let recovery = self.recovery.as_ref()?;
        let has_data = self.next < self.content.count || self.must_resend();
        let starves = has_data && self.gate.credit() == 0 && !self.at_once;
        starves.then(|| recovery.timeout_after_progress(transport, &self.rtt))
    }

    /// It has waited long enough: sends a packet unasked.
    pub(super) fn end_starvation(&mut self, transport: &Transport, now: Time) -> Option<Feedback> {
        self.starves_until(transport).filter(|&due| due <= now)?;
        let recovery = self.recovery.as_mut()?;
        self.counts.timeouts += 1;
        recovery.back_off();
        self.at_once = true;
        Some(self.on_loss(transport, Cause::Timeout, now, self.acked.base(), now))
    }
}
