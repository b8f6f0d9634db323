//! What a summary needs to know of channels, gathered while they go by, so that none of them has to be kept.

use std::sync::Arc;

use netloom_units::Time;

use crate::records::{ChannelRecord, NamedChannel, Totals};
use crate::summary::{TierSummary, share};

/// Counts channels one after the other, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelTally {
    /// In the order of their first channels.
    tiers: Vec<Tier>,
    /// Channels that are reported by name, ascending.
    wanted: Vec<u32>,
    /// Those of them that have gone by.
    named: Vec<ChannelRecord>,
}

/// Sums over the channels of one tier.
#[derive(Clone, Debug)]
struct Tier {
    name: Arc<str>,
    channels: u64,
    /// Picoseconds under load.
    busy: u128,
    busiest: u64,
    mean_queues: f64,
    max_queue: u64,
    drops: u64,
    trims: u64,
    marks: u64,
    /// Picoseconds.
    paused: u128,
    pauses: u64,
}

impl ChannelTally {
    /// No channel yet; those with a name will be kept.
    pub(crate) fn new(named: &[NamedChannel]) -> Self {
        let mut wanted: Vec<u32> = named.iter().map(|named| named.channel).collect();
        wanted.sort_unstable();
        ChannelTally { tiers: Vec::new(), wanted, named: Vec::new() }
    }

    /// Counts the next channel.
    pub(crate) fn add(&mut self, channel: &ChannelRecord) {
        if self.wanted.binary_search(&channel.channel).is_ok() {
            self.named.push(channel.clone());
        }
        match self.tiers.iter_mut().find(|tier| tier.name == channel.tier) {
            Some(tier) => tier.add(channel),
            None => {
                let mut tier = Tier::new(&channel.tier);
                tier.add(channel);
                self.tiers.push(tier);
            }
        }
    }

    /// A channel that has a name.
    pub(crate) fn named(&self, channel: u32) -> Option<&ChannelRecord> {
        self.named.iter().find(|named| named.channel == channel)
    }

    /// Every tier, in the order in which the network names them.
    pub(crate) fn tiers(&self, totals: &Totals) -> Vec<TierSummary> {
        self.tiers.iter().map(|tier| tier.summary(totals)).collect()
    }
}

impl Tier {
    fn new(name: &Arc<str>) -> Self {
        Tier {
            name: name.clone(),
            channels: 0,
            busy: 0,
            busiest: 0,
            mean_queues: 0.0,
            max_queue: 0,
            drops: 0,
            trims: 0,
            marks: 0,
            paused: 0,
            pauses: 0,
        }
    }

    fn add(&mut self, channel: &ChannelRecord) {
        let busy = (channel.busy - channel.busy_in_drain).0;
        self.channels += 1;
        self.busy += u128::from(busy);
        self.busiest = self.busiest.max(busy);
        self.mean_queues += channel.mean_queue;
        self.max_queue = self.max_queue.max(channel.max_queue);
        self.drops += channel.drops;
        self.trims += channel.trims;
        self.marks += channel.marks;
        self.paused += u128::from(channel.paused.0);
        self.pauses += channel.pauses;
    }

    fn summary(&self, totals: &Totals) -> TierSummary {
        let count = self.channels as f64;
        let mean_share =
            |sum: u128, of: Time| if of == Time::ZERO { 0.0 } else { sum as f64 / of.0 as f64 / count };
        TierSummary {
            tier: self.name.to_string(),
            channels: self.channels,
            mean_utilisation: mean_share(self.busy, totals.load_end()),
            max_utilisation: share(self.busiest, totals.load_end().0),
            mean_active_utilisation: mean_share(self.busy, totals.active()),
            max_active_utilisation: share(self.busiest, totals.active().0),
            mean_queue_bytes: self.mean_queues / count,
            max_queue_bytes: self.max_queue,
            drops: self.drops,
            trims: self.trims,
            marks: self.marks,
            paused_share: mean_share(self.paused, totals.simulated),
            pauses: self.pauses,
        }
    }
}
