//! Trees of switches above the hosts of some ranks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use netloom_topology::{HostId, Network, NodeId};
use netloom_units::narrow;

/// Who sends to a switch of a tree, and gets the result from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Child {
    /// A rank whose host is attached to the switch.
    Rank(u32),
    /// Another switch of the tree.
    Switch(NodeId),
}

/// A switch of a tree.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Place {
    /// Where it sends what it has reduced; the root has none.
    pub(super) parent: Option<NodeId>,
    /// Ranks in their order, then switches in the order of the ports.
    pub(super) children: Vec<Child>,
}

/// A tree over the switches between the ranks' hosts and a root.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Tree {
    pub(super) root: NodeId,
    pub(super) places: BTreeMap<NodeId, Place>,
}

/// The switches that may be roots of the ranks on `hosts`: those from which only links downwards lead to all of these, of the lowest level that has any. `None` if there are none.
/// The first one depends on where the first rank is, so that jobs beside each other have different roots.
pub(super) fn roots(network: &Network, hosts: &[HostId]) -> Option<Vec<NodeId>> {
    let leaves: BTreeSet<NodeId> = hosts.iter().map(|&host| network.edge_switch(host)).collect();
    let mut above: BTreeMap<NodeId, usize> = BTreeMap::new();
    for &leaf in &leaves {
        let (mut seen, mut open) = (BTreeSet::from([leaf]), vec![leaf]);
        while let Some(switch) = open.pop() {
            *above.entry(switch).or_default() += 1;
            open.extend(
                neighbours(network, switch)
                    .filter(|&next| network.level(next) > network.level(switch) && seen.insert(next)),
            );
        }
    }
    let common = || above.iter().filter(|(_, count)| **count == leaves.len()).map(|(&switch, _)| switch);
    let lowest = common().map(|switch| network.level(switch)).min()?;
    let mut roots: Vec<NodeId> = common().filter(|&switch| network.level(switch) == lowest).collect();
    let first = (network.edge_switch(*hosts.first()?) - network.hosts()) as usize % roots.len();
    roots.rotate_left(first);
    Some(roots)
}

impl Tree {
    /// The tree of shortest ways down from `root`, which reaches the hosts of all ranks.
    pub(super) fn new(network: &Network, root: NodeId, hosts: &[HostId]) -> Tree {
        let mut parents: BTreeMap<NodeId, NodeId> = BTreeMap::new();
        let mut open = VecDeque::from([root]);
        while let Some(switch) = open.pop_front() {
            for below in
                neighbours(network, switch).filter(|&next| network.level(next) < network.level(switch))
            {
                parents.entry(below).or_insert_with(|| {
                    open.push_back(below);
                    switch
                });
            }
        }
        let mut places: BTreeMap<NodeId, Place> = BTreeMap::new();
        for (rank, &host) in (0..).zip(hosts) {
            let mut switch = network.edge_switch(host);
            places.entry(switch).or_default().children.push(Child::Rank(rank));
            while let Some(&parent) = parents.get(&switch) {
                let is_new = places.get(&switch).is_none_or(|place| place.parent.is_none());
                if !is_new {
                    break;
                }
                places.entry(switch).or_default().parent = Some(parent);
                places.entry(parent).or_default();
                switch = parent;
            }
        }
        let switches: Vec<NodeId> = places.keys().copied().collect();
        for switch in switches {
            let below = neighbours(network, switch)
                .filter(|below| places.get(below).is_some_and(|place| place.parent == Some(switch)));
            let mut below: Vec<NodeId> = below.collect();
            let mut seen = BTreeSet::new();
            below.retain(|&switch| seen.insert(switch));
            let place = places.entry(switch).or_default();
            place.children.extend(below.into_iter().map(Child::Switch));
        }
        Tree { root, places }
    }

    /// The child of each switch on the way down from the root to a rank, and the switches themselves.
    pub(super) fn way_to(&self, network: &Network, rank: u32, host: HostId) -> BTreeMap<NodeId, Child> {
        let (mut way, mut child) = (BTreeMap::new(), Child::Rank(rank));
        let mut next = Some(network.edge_switch(host));
        while let Some(switch) = next {
            way.insert(switch, child);
            child = Child::Switch(switch);
            next = self.places[&switch].parent;
        }
        way
    }
}

/// The switches next to a switch, by its ports.
fn neighbours(network: &Network, switch: NodeId) -> impl Iterator<Item = NodeId> {
    let ends = network.ports(switch).iter().map(|&channel| network.channel(channel).to);
    ends.filter(|&end| !network.is_host(end))
}

/// The place of a switch among the switches of a network.
pub(super) fn unit(network: &Network, switch: NodeId) -> u32 {
    narrow::<u32>(u64::from(switch - network.hosts()))
}
