//! What holds for every pattern: which hosts take part, where ranks sit, when the first messages start.

use std::collections::HashMap;

use netloom_topology::HostId;
use netloom_units::kind::Beside;
use netloom_units::{Time, narrow};
use schemars::JsonSchema;
use serde::de::{self, MapAccess};
use serde::{Deserialize, Serialize};

use crate::WorkloadError;
use crate::random::{RngExt, Stream, Work, shuffle};
use crate::servers::Endpoints;

/// Options of every workload.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    /// Number of hosts (servers, where these have several NICs) that take part; all of the network if not given. Patterns number them as ranks from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ranks: Option<u32>,
    /// Where the ranks sit: `linear` puts rank r on host r, `random` on hosts drawn from the seed.
    pub placement: Placement,
    /// Every host begins its work at a time drawn uniformly from zero to this one; lists and arrivals shift by it.
    pub start_jitter: Time,
    /// Traffic class of all messages, 0 to 7.
    pub class: u8,
}

/// Where the ranks of a workload sit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Placement {
    /// Rank r sits on host r.
    #[default]
    Linear,
    /// Ranks sit on distinct hosts drawn uniformly.
    Random,
}

/// Which hosts a random destination is drawn from. A host is never its own destination.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Destination {
    /// All other hosts.
    #[default]
    Any,
    /// Hosts of other edge switches.
    OtherRack,
    /// Hosts of other pods (fat tree) or groups (Dragonfly).
    OtherPod,
}

/// They share the table of the pattern.
impl Beside for Options {
    const FIELDS: &'static [&'static str] = &["ranks", "placement", "start_jitter", "class"];

    fn read<'de, A: MapAccess<'de>>(&mut self, field: &'static str, map: &mut A) -> Result<(), A::Error> {
        match field {
            "ranks" => self.ranks = map.next_value()?,
            "placement" => self.placement = map.next_value()?,
            "start_jitter" => self.start_jitter = map.next_value()?,
            "class" => self.class = map.next_value()?,
            _ => return Err(de::Error::unknown_field(field, Self::FIELDS)),
        }
        Ok(())
    }
}

impl Options {
    /// The traffic class, if there is such a one: Ethernet has eight (IEEE 802.1Q, priority code points).
    pub(crate) fn checked_class(&self) -> Result<u8, WorkloadError> {
        match self.class {
            0..=7 => Ok(self.class),
            _ => Err(WorkloadError::parameter("class", "0 to 7", self.class)),
        }
    }

    /// The host of every rank.
    pub(crate) fn place(&self, endpoints: &Endpoints, seed: u64) -> Result<Vec<HostId>, WorkloadError> {
        let hosts = endpoints.count();
        let ranks = self.ranks.unwrap_or(hosts);
        if !(2..=hosts).contains(&ranks) {
            return Err(WorkloadError::parameter(
                "ranks",
                format!("2 to {hosts}, the {} of the network", endpoints.word()),
                ranks,
            ));
        }
        let mut order: Vec<HostId> = (0..hosts).collect();
        if self.placement == Placement::Random {
            shuffle(&mut order, &mut Work::Placement.stream(seed, 0));
        }
        order.truncate(ranks as usize);
        Ok(order)
    }

    /// When a host's first messages start.
    pub(crate) fn first_start(&self, seed: u64, host: HostId) -> Time {
        match self.start_jitter {
            Time::ZERO => Time::ZERO,
            Time(jitter) => Time(Work::Start.stream(seed, host).random_range(0..=jitter)),
        }
    }
}

/// The ranks sorted into classes (a rack, a pod, or each rank alone) outside of which destinations are drawn.
#[derive(Debug)]
pub(crate) struct Destinations {
    /// Hosts, class by class.
    order: Vec<HostId>,
    /// Per rank: where its class lies in `order`.
    class: Vec<(u32, u32)>,
}

impl Destinations {
    pub(crate) fn new(
        rule: Destination,
        endpoints: &Endpoints,
        placed: &[HostId],
    ) -> Result<Self, WorkloadError> {
        let key = |rank: u32| match rule {
            Destination::Any => rank,
            Destination::OtherRack => endpoints.edge_switch(placed[rank as usize]),
            Destination::OtherPod => endpoints.network.pod(endpoints.edge_switch(placed[rank as usize])),
        };
        let ranks = narrow::<u32>(placed.len());
        let mut sorted: Vec<u32> = (0..ranks).collect();
        sorted.sort_by_key(|&rank| key(rank));
        let mut range: HashMap<u32, (u32, u32)> = HashMap::new();
        for (index, &rank) in (0..).zip(&sorted) {
            range.entry(key(rank)).or_insert((index, index)).1 = index + 1;
        }
        if range.len() < 2 {
            let (expected, found) = match rule {
                Destination::OtherPod => ("hosts in at least two pods or groups", "all of them in one"),
                _ => ("hosts at at least two edge switches", "all of them at one"),
            };
            return Err(WorkloadError::parameter("destination", expected, found));
        }
        Ok(Destinations {
            order: sorted.iter().map(|&rank| placed[rank as usize]).collect(),
            class: (0..ranks).map(|rank| range[&key(rank)]).collect(),
        })
    }

    /// Whether both ranks are of one class, so that neither may send to the other.
    pub(crate) fn same_class(&self, a: u32, b: u32) -> bool {
        self.class[a as usize] == self.class[b as usize]
    }

    /// The size of the largest class.
    pub(crate) fn largest_class(&self) -> u32 {
        self.class.iter().map(|&(first, end)| end - first).max().unwrap_or(0)
    }

    /// The hosts outside of the rank's class.
    pub(crate) fn of(&self, rank: u32) -> impl Iterator<Item = HostId> {
        let (first, end) = self.class[rank as usize];
        self.order[..first as usize].iter().chain(&self.order[end as usize..]).copied()
    }

    /// A uniform draw among the hosts outside of the rank's class.
    pub(crate) fn draw(&self, rank: u32, rng: &mut Stream) -> HostId {
        let (first, end) = self.class[rank as usize];
        let index = rng.random_range(0..narrow::<u32>(self.order.len()) - (end - first));
        self.order[(if index < first { index } else { index + (end - first) }) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use netloom_units::kind::describe;

    #[test]
    fn every_option_is_read_beside_a_pattern() {
        let fields: Vec<String> = describe::<Options>("options").fields.into_iter().map(|f| f.name).collect();
        assert_eq!(fields, Options::FIELDS);
    }
}
