//! The idle path between two hosts and the closed forms that follow from it.

use netloom_routing::RouteTable;
use netloom_topology::{ChannelId, HostId, Network};
use netloom_units::{Bytes, Rate, Time};

/// The channels of one minimal path, at their configured rates.
#[derive(Clone, Debug)]
pub struct PathProfile {
    rates: Vec<Rate>,
    /// Propagation and switching, summed.
    latency: Time,
}

impl PathProfile {
    /// The path through the first candidate of every switch.
    pub(crate) fn walk(
        network: &Network,
        table: &RouteTable,
        switch_latency: Time,
        src: HostId,
        dst: HostId,
    ) -> Self {
        let mut path = PathProfile { rates: Vec::with_capacity(8), latency: Time::ZERO };
        let mut channel: ChannelId = network.ports(src)[0];
        loop {
            let hop = network.channel(channel);
            path.rates.push(hop.rate);
            path.latency += hop.latency;
            if hop.to == dst {
                return path;
            }
            path.latency += switch_latency;
            channel = network.ports(hop.to)[usize::from(table.candidates(hop.to, dst)[0])];
        }
    }

    /// Rate of the first channel, the NIC's.
    pub fn nic_rate(&self) -> Rate {
        self.rates[0]
    }

    /// Time from sending a packet to its arrival on an idle path, store and forward.
    pub fn one_way(&self, size: Bytes) -> Time {
        self.rates.iter().map(|rate| rate.serialize(size)).sum::<Time>() + self.latency
    }

    /// The flow completion time of a flow alone on the path and not limited by its window: `full` packets of the largest size followed
    /// by one of `last` bytes, back to back.
    ///
    /// With equal rates b and packets of P bytes over K channels of delay d this is n·8P/b + (K−1)·8P/b + K·d.
    pub fn idle_fct(&self, full_packets: u64, full: Bytes, last: Bytes) -> Time {
        // `last_done`: the last packet has left the channels so far. The full ones before it leave channel i after the sum of
        // their serialisations up to i, plus one more of the slowest for each but the first.
        let (mut sum, mut slowest, mut last_done) = (Time::ZERO, Time::ZERO, Time::ZERO);
        for rate in &self.rates {
            let each = rate.serialize(full);
            sum += each;
            slowest = slowest.max(each);
            let before = match full_packets {
                0 => Time::ZERO,
                packets => sum + slowest * (packets - 1),
            };
            last_done = last_done.max(before) + rate.serialize(last);
        }
        last_done + self.latency
    }
}
