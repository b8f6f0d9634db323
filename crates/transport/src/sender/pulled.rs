//! What a sender does whose receiver asks for packets.

use netloom_units::Time;

use super::{PathFacts, Sender};
use crate::config::Transport;
use crate::congestion::rccc::Demand;
use crate::feedback::{Cause, Feedback};

impl Sender {
    /// The receiver has asked for that many packets by now, or has granted so much credit.
    #[inline]
    pub fn on_pull(&mut self, count: u32) {
        self.control.on_pull(count, &mut self.gate);
    }

    /// How many packets a flow asks for before it sends anything, if it has to ask: as many as its first window would hold.
    pub fn requests(&self, transport: &Transport, path: PathFacts) -> Option<u32> {
        let pulls = transport.congestion.facts().pulls?.packets()?;
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

    /// It has waited long enough: sends a packet unasked, or asks for credit.
    pub(super) fn end_starvation(&mut self, transport: &Transport, now: Time) -> Option<Feedback> {
        self.starves_until(transport).filter(|&due| due <= now)?;
        let has_credit = self.has_credit(transport);
        let recovery = self.recovery.as_mut()?;
        self.counts.timeouts += 1;
        recovery.back_off();
        if has_credit {
            recovery.note_progress(now);
            self.ask(transport, now, true);
            return None;
        }
        self.at_once = true;
        Some(self.on_loss(transport, Cause::Timeout, now, self.acked.base(), now))
    }

    /// How far the receiver should grant credit, as the packet says that has just been taken, while that many flows share the NIC.
    pub fn pull_target(&mut self, transport: &Transport, sources: u32) -> Option<u32> {
        let packets = u64::from(self.content.count.saturating_sub(self.next));
        let unsent = self.remaining(transport).0 + packets * transport.options.header.0;
        // What is short counts as a full packet.
        let lost = self.recovery.as_ref().map_or(0, |recovery| recovery.lost());
        let lost = u64::from(lost) * transport.packet_size().0;
        self.control.pull_target(Demand { unsent, lost, sources })
    }

    /// Whether it has to ask for credit by a request now, as that many flows share the NIC: it lacks credit for data that came after its last packet had left, so no packet has said how much
    /// the receiver should grant. If so, its next request is taken to have asked for it.
    pub fn asks_for_credit(&mut self, transport: &Transport, sources: u32) -> bool {
        let is_unheard =
            self.next < self.content.count && self.gate.credit() == 0 && !self.control.awaits_credit();
        is_unheard && self.pull_target(transport, sources).is_some()
    }

    /// Whether PULLs grant it credit.
    fn has_credit(&self, transport: &Transport) -> bool {
        transport.congestion.facts().pulls.is_some_and(|asking| asking.credit().is_some())
    }

    /// After a timeout, before which packets may have waited to be sent again already: if it may not send what it has to, it asks for an ACK, and for credit where it needs that, but not more often than once in
    /// a round trip. If only the window is full it asks once, as in uet-htsim: packets that have waited longer have been asked about.
    pub(super) fn ask(&mut self, transport: &Transport, now: Time, waited: bool) {
        let asks = self.has_credit(transport) || transport.has_sacks() && !waited && !self.recovers();
        if !asks || self.ready(transport).is_some() {
            return;
        }
        let has_data = self.next < self.content.count || self.must_resend();
        let may_ask = self.asked.is_none_or(|asked| now - asked >= self.base_rtt);
        if has_data && may_ask {
            (self.asks, self.asked) = (true, Some(now));
        }
    }

    /// Whether it is to send a request now, which has the number of [its oldest packet](Self::oldest).
    pub fn take_request(&mut self) -> bool {
        std::mem::take(&mut self.asks)
    }
}
