//! How many virtual channels are enough for some routes, as far as their lengths say.
//!
//! Along a route the pairs (virtual channel, rank) only rise while there are as many virtual channels as any route can use, so there is no
//! cycle (Dally and Seitz, IEEE Trans. Computers 1987), and nothing needs to be followed. A route uses one virtual channel per hop, but none for
//! a global hop behind a local one.

use netloom_units::narrow;
use std::collections::BTreeMap;

use netloom_topology::{Network, NodeId, PortId};

use super::super::alternatives::Alternatives;
use super::super::channels::{next, rank};
use super::super::minimal::{Reach, RouteTable};
use super::super::via::Intermediates;
use super::Ways;

/// A number of virtual channels that no route exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Enough {
    pub(super) vcs: u32,
    /// Whether some route uses as many.
    pub(super) is_used: bool,
}

/// How many are enough; `None` if that takes a search.
pub(super) fn enough(network: &Network, table: &RouteTable, ways: Ways<'_>) -> Option<Enough> {
    let (via, weighed) = match ways {
        Ways::Layers(layers) => return layers.most_vcs(network).map(used),
        Ways::Minimal | Ways::Paths(_) => (None, None),
        Ways::Via(via) => (Some(via), None),
        Ways::Weighed(weighed) => (Some(weighed.via()), Some(weighed)),
    };
    let is_late = weighed.is_some_and(Alternatives::is_progressive);
    let probe = Probe { network, table, via, is_late };
    let reach = table.reach();
    match (ways, network.global_tier(), via) {
        (Ways::Paths(paths), None, _) => Some(used(paths.longest())),
        (Ways::Paths(_), Some(_), _) => None,
        (_, None, None) => Some(used(reach.between)),
        (_, None, Some(via)) if !via.has_groups() => Some(used(reach.over.max(reach.between))),
        // To where the intermediate group begins, and from there.
        (_, None, Some(_)) => Some(probe.is_used(2 * reach.local)),
        (_, Some(_), via) => Some(probe.is_used(ranked(network, table, via, is_late)?)),
    }
}

fn used(vcs: u32) -> Enough {
    Enough { vcs: vcs.max(1), is_used: true }
}

/// How many are enough where global links rank above others.
fn ranked(network: &Network, table: &RouteTable, via: Option<&Intermediates>, is_late: bool) -> Option<u32> {
    // Any piece of a minimal path is one, so no run of local hops is longer than the longest path of local hops alone; between
    // switches without hosts nobody measured.
    if table.edges() != network.switches() {
        return None;
    }
    let Reach { globals, local, .. } = table.reach();
    // Up to and with each global hop, then to the end.
    let minimal = globals * local.max(1) + local;
    match via {
        None => Some(minimal),
        Some(via) if !via.has_groups() => Some(2 * minimal),
        // With one global hop at most no path returns to a group that it has left.
        Some(via) if globals <= 1 && divides(network, via) => {
            let before = if is_late { 2 * local } else { local };
            Some((before.max(1) + minimal).max(2 * local))
        }
        Some(_) => None,
    }
}

/// Whether the links between groups are the global ones.
fn divides(network: &Network, via: &Intermediates) -> bool {
    (0..network.channels()).all(|channel| {
        let ends = network.channel(channel);
        let groups = || [ends.from, ends.to].map(|switch| via.group_of_switch(switch));
        let is_between = |[from, to]: [u32; 2]| from != to;
        network.is_host(ends.from)
            || network.is_host(ends.to)
            || is_between(groups()) == (rank(network, channel) == 1)
    })
}

/// Some routes, to see how many virtual channels they use.
struct Probe<'a> {
    network: &'a Network,
    table: &'a RouteTable,
    /// The intermediate switches, if packets go over one.
    via: Option<&'a Intermediates>,
    /// Packets may be sent over one when they have left their first switch.
    is_late: bool,
}

/// By switch and the rank of the link by which packets come there, if they come by one, their highest virtual channel.
type Front = BTreeMap<(NodeId, Option<u8>), u8>;

/// How many routes are tried.
const PROBES: u64 = 256;

impl Probe<'_> {
    /// Whether any of them uses as many virtual channels as are enough.
    fn is_used(&self, enough: u32) -> Enough {
        let vcs = enough.max(1);
        Enough { vcs, is_used: self.all().any(|used| used == vcs) }
    }

    /// The virtual channels of the longest routes between some switches.
    fn all(&self) -> impl Iterator<Item = u32> {
        let edges = u64::from(self.table.edges().max(1));
        // Large primes lead all over the network.
        let draw = move |probe: u64, prime: u64| narrow::<u32>((probe * prime) % edges);
        (1..=PROBES).map(move |probe| {
            let [from, to, over] = [999_983, 611_953, 104_729].map(|prime| draw(probe, prime));
            let ends = self.longest(from, to, over).unwrap_or_default();
            ends.values().max().map_or(0, |&vc| u32::from(vc) + 1)
        })
    }

    /// Where packets from one switch with hosts end that go to another, over a third if that is how they go.
    fn longest(&self, from: u32, to: u32, over: u32) -> Option<Front> {
        let mut front = Front::from([((self.table.edge_switch(from), None), 0)]);
        if let Some(via) = self.via {
            let [source, target, passed] = [from, to, over].map(|edge| via.group(edge));
            let is_near = source == target;
            let lies_between = if is_near { passed == source } else { ![source, target].contains(&passed) };
            if !lies_between || from == to || [from, to].contains(&over) || self.is_late && is_near {
                return None;
            }
            if self.is_late {
                front = self.step(&front, |here| self.table.towards_edge(here, to).ports);
                front.retain(|&(here, _), _| via.group_of_switch(here) == source);
            }
            front = self.go(front, |here| match via.is_passed(self.table, from, over, here) {
                true => &[],
                false => self.table.towards_edge(here, over).ports,
            });
        }
        Some(self.go(front, |here| self.table.towards_edge(here, to).ports))
    }

    /// Where packets come to by these ports, and by all that follow; where there are none they end.
    fn go<'p>(&self, mut front: Front, ports: impl Fn(NodeId) -> &'p [PortId]) -> Front {
        let mut ends = Front::new();
        while !front.is_empty() {
            let next = self.step(&front, &ports);
            ends.extend(front.into_iter().filter(|((here, _), _)| ports(*here).is_empty()));
            front = next;
        }
        ends
    }

    fn step<'p>(&self, front: &Front, ports: impl Fn(NodeId) -> &'p [PortId]) -> Front {
        let mut after = Front::new();
        for (&(here, came), &vc) in front {
            for &port in ports(here) {
                let channel = self.network.ports(here)[usize::from(port)];
                let to = rank(self.network, channel);
                let vc = came.map_or(0, |from| next(vc, from, to, u8::MAX));
                let known = after.entry((self.network.channel(channel).to, Some(to))).or_default();
                *known = vc.max(*known);
            }
        }
        after
    }
}

#[cfg(test)]
mod tests;
