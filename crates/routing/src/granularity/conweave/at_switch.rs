//! ConWeave's steps at a switch.

use netloom_topology::HostId;
use netloom_units::Time;
use rand::Rng;

use super::{Between, ConWeaveCounts, Flush, Stamp, Verdict};
use crate::header::FlowKey;
use crate::path_selector::SwitchPathSelector;

impl SwitchPathSelector {
    /// What a flow's first switch writes on a data packet under ConWeave. `between` tells of the paths to the packet's last switch.
    pub fn stamp(
        &mut self,
        flow: FlowKey,
        now: Time,
        between: impl FnOnce() -> Between,
        random: &mut impl Rng,
    ) -> Option<Stamp> {
        let conweave = self.machines.conweave.as_mut()?;
        let before = conweave.counts;
        let stamp = conweave.stamp(flow, now, between, random);
        if conweave.counts.late > before.late {
            let has_moved = conweave.counts.reroutes > before.reroutes;
            self.count(flow, has_moved);
        }
        Some(stamp)
    }

    /// A flow's last switch, of that index, says something to this one, its first, under ConWeave.
    pub fn on_conweave_signal(&mut self, flow: FlowKey, last: u32, word: u32, now: Time) {
        if let Some(conweave) = &mut self.machines.conweave {
            conweave.on_signal(flow, last, word, now);
        }
    }

    /// What the last switch does with a data packet that left its host at `sent`, under ConWeave.
    pub fn receive(&mut self, flow: FlowKey, stamp: Stamp, sent: Time, now: Time) -> Verdict {
        self.machines
            .conweave
            .as_mut()
            .map_or(Verdict::Pass, |conweave| conweave.receive(flow, stamp, sent, now))
    }

    /// Whether a path from a host's switch, on which a packet was marked, is to be called busy now.
    pub fn reports_busy(&mut self, src: HostId, label: u16, now: Time) -> bool {
        self.machines.conweave.as_mut().is_some_and(|conweave| conweave.reports_busy(src, label, now))
    }

    /// The timer of a flow's held packets fires.
    pub fn flush(&mut self, flow: FlowKey, now: Time) -> Flush {
        self.machines.conweave.as_mut().map_or(Flush::Over, |conweave| conweave.flush(flow, now))
    }

    /// What ConWeave did here.
    pub fn conweave_counts(&self) -> Option<ConWeaveCounts> {
        self.machines.conweave.as_ref().map(|conweave| conweave.counts)
    }
}
