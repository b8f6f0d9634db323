//! The network itself: an immutable graph of hosts, switches and full-duplex links.

use netloom_units::{Rate, Time, narrow};

use crate::error::NetworkError;
use crate::families::xgft;
use crate::levels;
use crate::names::Names;
use crate::xgft_order;

/// A host, numbered from 0; host `h` is also node `h`.
pub type HostId = u32;
/// A node: hosts first (`0..hosts`), then switches (`hosts..hosts + switches`).
pub type NodeId = u32;
/// A full-duplex cable, numbered in the order of creation.
pub type LinkId = u32;
/// One direction of a cable: link `l` from `a` to `b` is channel `2l`, from `b` to `a` is channel `2l + 1`.
pub type ChannelId = u32;
/// A port of a node, numbered in the order in which the node's links were created.
pub type PortId = u16;
/// A named class of links, e.g. `host`, `edge-agg`, `global`.
pub type TierId = u8;

/// A full-duplex cable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// One end. On trees the lower one.
    pub a: NodeId,
    /// The other end. On trees the upper one.
    pub b: NodeId,
    /// Rate of each direction.
    pub rate: Rate,
    /// Propagation delay of each direction.
    pub latency: Time,
    /// Which class of links it belongs to.
    pub tier: TierId,
}

/// One direction of a link, as seen from its sending end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// Sending node.
    pub from: NodeId,
    /// Receiving node.
    pub to: NodeId,
    /// Rate.
    pub rate: Rate,
    /// Propagation delay.
    pub latency: Time,
    /// Which class of links it belongs to.
    pub tier: TierId,
}

/// Which dimension of a grid the links of a tier lead along.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dimension {
    /// Its number, from 1.
    pub number: u8,
    /// The links close the rings of a torus: they lead from the last coordinate to the first.
    pub wraps: bool,
}

/// The longest propagation delay of a link: light would go twelve times to the moon. What is longer is a slip of the unit, and a
/// run would wait for hours of simulated time with nothing to show.
const LONGEST_LATENCY: Time = Time::from_ms(16_000);

/// As many tiers as [`TierId`] can number.
const MOST_TIERS: usize = 1 << TierId::BITS;

/// A checked, immutable network.
///
/// Every host has exactly one link, and ports of a node are numbered in the order in which its links were added. The graph is connected, but for networks
/// that [`Network::apart`] put side by side, and files in which hosts have several links: those may have several components.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    pub(crate) name: String,
    pub(crate) hosts: u32,
    pub(crate) switches: u32,
    pub(crate) links: Vec<Link>,
    pub(crate) tiers: Vec<String>,
    /// Per switch: 1 for an edge switch, growing toward the roots; 0 where the network is no tree.
    pub(crate) levels: Vec<u8>,
    /// Per switch: which pod or group it belongs to.
    pub(crate) pods: Vec<u32>,
    /// Per tree level (index `level - 1`): how many hosts share one up port under D-mod-k.
    pub(crate) up_strides: Vec<u32>,
    pub(crate) is_xgft: bool,
    /// Whether the levels were found by the structure of the network and not given with it.
    pub(crate) has_found_levels: bool,
    pub(crate) global_tier: Option<TierId>,
    /// Per tier, the dimension of a grid that its links lead along; empty where no tier has one.
    pub(crate) dimension_of_tier: Vec<Option<Dimension>>,
    /// Links that lose packets at random, ascending: few or none.
    pub(crate) error_rates: Vec<(LinkId, f64)>,
    /// CSR: `ports[port_start[n]..port_start[n + 1]]` are the outgoing channels of node `n`.
    pub(crate) port_start: Vec<u32>,
    pub(crate) ports: Vec<ChannelId>,
    pub(crate) names: Option<Names>,
    /// Per switch, the component that it belongs to; empty where there is one.
    pub(crate) component_of: Vec<u32>,
    /// How many hosts in a row are the links of one host of a file.
    pub(crate) links_per_host: u32,
}

impl Network {
    /// What the network is, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Number of hosts.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Number of switches.
    pub fn switches(&self) -> u32 {
        self.switches
    }

    /// Number of nodes, hosts and switches.
    pub fn nodes(&self) -> u32 {
        self.hosts + self.switches
    }

    /// Number of channels, two per link.
    pub fn channels(&self) -> u32 {
        2 * narrow::<u32>(self.links.len())
    }

    /// All links in the order of creation.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Links that lose packets at random, ascending, each with the probability that a packet is lost on one of its directions.
    pub fn error_rates(&self) -> &[(LinkId, f64)] {
        &self.error_rates
    }

    /// The probability that a packet is lost on one direction of a link.
    pub fn error_rate(&self, link: LinkId) -> f64 {
        let place = self.error_rates.binary_search_by_key(&link, |&(id, _)| id);
        place.map_or(0.0, |place| self.error_rates[place].1)
    }

    /// Names of the link tiers, indexed by [`TierId`].
    pub fn tiers(&self) -> &[String] {
        &self.tiers
    }

    /// Whether the node is a host.
    pub fn is_host(&self, node: NodeId) -> bool {
        node < self.hosts
    }

    /// Outgoing channels of a node, indexed by [`PortId`].
    #[inline]
    pub fn ports(&self, node: NodeId) -> &[ChannelId] {
        let node = node as usize;
        &self.ports[self.port_start[node] as usize..self.port_start[node + 1] as usize]
    }

    /// One direction of a link.
    #[inline]
    pub fn channel(&self, channel: ChannelId) -> Channel {
        let link = self.links[channel as usize / 2];
        let (from, to) = if channel.is_multiple_of(2) { (link.a, link.b) } else { (link.b, link.a) };
        Channel { from, to, rate: link.rate, latency: link.latency, tier: link.tier }
    }

    /// What the nodes are called, where they have names of their own.
    pub(crate) fn names(&self) -> Option<&Names> {
        self.names.as_ref()
    }

    /// The node at the other end of a port.
    pub fn neighbour(&self, node: NodeId, port: PortId) -> NodeId {
        self.channel(self.ports(node)[port as usize]).to
    }

    /// Level of a node in a tree: 0 for hosts, 1 for edge switches, and so on; 0 for switches of networks that are
    /// no trees.
    pub fn level(&self, node: NodeId) -> u8 {
        if self.is_host(node) { 0 } else { self.levels[(node - self.hosts) as usize] }
    }

    /// Whether the switches have levels, so that "up" and "down" mean something.
    pub fn is_tree(&self) -> bool {
        self.levels.first().is_some_and(|&level| level > 0)
    }

    /// Whether the levels were found by the structure of the network and not given with it.
    pub fn has_found_levels(&self) -> bool {
        self.has_found_levels
    }

    /// Why the switches have no levels; none if they have.
    pub fn why_no_tree(&self) -> Option<String> {
        let given = || "its switches are given no levels".to_owned();
        (!self.is_tree()).then(|| levels::find(self).err().map_or_else(given, |reason| reason.words(self)))
    }

    /// Divisor of D-mod-k and S-mod-k at switches of a tree level: the up port is `host / stride mod ports`.
    ///
    /// For an XGFT this is the product of the parent counts below that level
    /// (for a k-ary n-tree, k to the power of level − 1); for other trees, of the most up ports of a switch of each level below.
    pub fn up_stride(&self, level: u8) -> u32 {
        level.checked_sub(1).and_then(|i| self.up_strides.get(usize::from(i))).copied().unwrap_or(1)
    }

    /// Whether the network is an extended generalised fat tree.
    pub fn is_xgft(&self) -> bool {
        self.is_xgft
    }

    /// [`Network::up_stride`] of levels 1, 2, …; empty unless the network is a tree.
    pub(crate) fn up_strides(&self) -> &[u32] {
        &self.up_strides
    }

    /// The switch a host is attached to.
    pub fn edge_switch(&self, host: HostId) -> NodeId {
        self.neighbour(host, 0)
    }

    /// The rate of a host's link, outwards.
    pub fn host_rate(&self, host: HostId) -> Rate {
        self.channel(self.ports(host)[0]).rate
    }

    /// The tier of the links of which a minimal path crosses as few as possible: the global ones of a Dragonfly.
    pub fn global_tier(&self) -> Option<TierId> {
        self.global_tier
    }

    /// The dimension of a grid (torus, mesh, HyperX) that a channel leads along.
    pub fn dimension(&self, channel: ChannelId) -> Option<Dimension> {
        self.dimension_of(self.links[channel as usize / 2].tier)
    }

    /// The dimension of a grid that the links of a tier lead along.
    pub(crate) fn dimension_of(&self, tier: TierId) -> Option<Dimension> {
        self.dimension_of_tier.get(usize::from(tier)).copied().flatten()
    }

    /// Whether every link between two switches leads along a dimension of a grid. Beside grids there may be networks in which no packet crosses two links between
    /// switches, as those inside servers: of one switch, or with a link between any two.
    pub fn is_grid(&self) -> bool {
        let mut switches = vec![0usize; self.components() as usize];
        (self.hosts..self.nodes()).for_each(|switch| switches[self.component(switch) as usize] += 1);
        let fits = |switch: NodeId| {
            let links =
                || self.ports(switch).iter().filter(|&&channel| !self.is_host(self.channel(channel).to));
            if links().all(|&channel| self.dimension(channel).is_some()) {
                return true;
            }
            let mut ends: Vec<NodeId> = links().map(|&channel| self.channel(channel).to).collect();
            ends.sort_unstable();
            ends.dedup();
            let is_without = links().all(|&channel| self.dimension(channel).is_none());
            is_without && ends.len() + 1 == switches[self.component(switch) as usize]
        };
        !self.dimension_of_tier.is_empty() && (self.hosts..self.nodes()).all(fits)
    }

    /// How many networks without links between them this one consists of.
    pub fn components(&self) -> u32 {
        self.component_of.iter().max().map_or(1, |&last| last + 1)
    }

    /// Which of them a node belongs to.
    pub fn component(&self, node: NodeId) -> u32 {
        let switch = if self.is_host(node) { self.edge_switch(node) } else { node };
        self.component_of.get((switch - self.hosts) as usize).copied().unwrap_or(0)
    }

    /// How many hosts in a row are the links of one host of the file that the network comes from: 1, unless hosts have several links there.
    pub fn links_per_host(&self) -> u32 {
        self.links_per_host
    }

    /// The pod (fat tree) or group (Dragonfly) of a switch; networks without pods have one.
    pub fn pod(&self, switch: NodeId) -> u32 {
        self.pods[(switch - self.hosts) as usize]
    }
}

/// Collects nodes and links, then checks them.
#[derive(Clone, Debug)]
pub struct NetworkBuilder {
    name: String,
    hosts: u32,
    links: Vec<Link>,
    tiers: Vec<String>,
    levels: Vec<u8>,
    pods: Vec<u32>,
    up_strides: Vec<u32>,
    names: Option<Names>,
    global_tier: Option<TierId>,
    dimension_of_tier: Vec<Option<Dimension>>,
    error_rates: Vec<(LinkId, f64)>,
    links_per_host: u32,
}

impl NetworkBuilder {
    /// Starts an empty network.
    pub fn new(name: impl Into<String>) -> Self {
        NetworkBuilder {
            name: name.into(),
            hosts: 0,
            links: Vec::new(),
            tiers: Vec::new(),
            levels: Vec::new(),
            pods: Vec::new(),
            up_strides: Vec::new(),
            names: None,
            global_tier: None,
            dimension_of_tier: Vec::new(),
            error_rates: Vec::new(),
            links_per_host: 1,
        }
    }

    /// Sets [`Network::links_per_host`].
    pub(crate) fn links_per_host(&mut self, links: u32) {
        self.links_per_host = links;
    }

    /// Sets what all nodes are called, hosts first; no two may have the same name.
    ///
    /// # Panics
    /// If there are not as many names as nodes.
    pub fn names(&mut self, names: Vec<String>) {
        assert_eq!(names.len(), self.hosts as usize + self.levels.len(), "every node has a name");
        self.names = Names::new(names, self.hosts);
    }

    /// Adds hosts and returns their ids.
    ///
    /// # Panics
    /// If switches were added already, as hosts are numbered first; or if nodes have more numbers than fit 32 bits.
    pub fn add_hosts(&mut self, count: u32) -> std::ops::Range<HostId> {
        assert!(self.levels.is_empty(), "hosts are added before switches");
        let first = self.hosts;
        self.hosts = first.checked_add(count).expect("nodes are numbered in 32 bits");
        first..self.hosts
    }

    /// Adds a switch of a tree level (0 where the network is no tree) and a pod, and returns its node id.
    ///
    /// # Panics
    /// If there are more nodes than 32 bits can number.
    pub fn add_switch(&mut self, level: u8, pod: u32) -> NodeId {
        self.levels.push(level);
        self.pods.push(pod);
        narrow::<NodeId>(self.hosts as usize + self.levels.len()) - 1
    }

    /// Makes the network an XGFT and sets [`Network::up_stride`] for levels 1, 2, ….
    pub fn up_strides(&mut self, strides: Vec<u32>) {
        self.up_strides = strides;
    }

    /// Sets [`Network::global_tier`].
    pub fn global_tier(&mut self, tier: TierId) {
        self.global_tier = Some(tier);
    }

    /// Sets the dimension of a grid that the links of a tier lead along.
    pub fn dimension(&mut self, tier: TierId, dimension: Dimension) {
        let tier = usize::from(tier);
        let tiers = self.dimension_of_tier.len().max(tier + 1);
        self.dimension_of_tier.resize(tiers, None);
        self.dimension_of_tier[tier] = Some(dimension);
    }

    /// The id of the tier of that name, made on first use. There may be 256; with more of them, [`Self::build`] refuses the network.
    pub fn tier(&mut self, name: &str) -> TierId {
        let found = self.tiers.iter().position(|t| t == name);
        let tier = found.unwrap_or_else(|| {
            self.tiers.push(name.to_owned());
            self.tiers.len() - 1
        });
        TierId::try_from(tier).unwrap_or(TierId::MAX)
    }

    /// Adds a full-duplex link; on trees `a` is the lower end.
    ///
    /// # Panics
    /// If there are more channels than 32 bits can number.
    pub fn link(&mut self, a: NodeId, b: NodeId, rate: Rate, latency: Time, tier: TierId) -> LinkId {
        self.links.push(Link { a, b, rate, latency, tier });
        // So that both of its channels have numbers.
        narrow::<LinkId>(2 * self.links.len()) / 2 - 1
    }

    /// Lets the link that was added last lose packets at random, with this probability above 0 and below 1 in each direction.
    ///
    /// # Panics
    /// If there is no link yet.
    pub fn error_rate(&mut self, probability: f64) {
        let last = self.links.len().checked_sub(1).expect("a link to lose packets");
        self.error_rates.push((narrow::<LinkId>(last), probability));
    }

    /// Checks the network and freezes it.
    ///
    /// # Errors
    /// If there are fewer than two hosts, a link is a self-loop or has no rate, a host does not have exactly one link, a switch has too many
    /// ports, links have too many tiers, or the graph is not connected.
    pub fn build(self) -> Result<Network, NetworkError> {
        if self.hosts < 2 {
            return Err(NetworkError::TooFewHosts(self.hosts));
        }
        if self.tiers.len() > MOST_TIERS {
            return Err(NetworkError::TooManyTiers(self.tiers.len()));
        }
        let nodes = self.hosts as usize + self.levels.len();
        let mut port_start = vec![0u32; nodes + 1];
        for (index, link) in self.links.iter().enumerate() {
            if link.a == link.b {
                return Err(NetworkError::SelfLoop(link.a));
            }
            if link.rate == Rate(0) {
                return Err(NetworkError::ZeroRate(narrow::<LinkId>(index)));
            }
            if link.latency > LONGEST_LATENCY {
                return Err(NetworkError::Latency { link: narrow::<LinkId>(index), latency: link.latency });
            }
            port_start[link.a as usize + 1] += 1;
            port_start[link.b as usize + 1] += 1;
        }
        for (node, &degree) in port_start[1..].iter().enumerate() {
            if node < self.hosts as usize && degree != 1 {
                return Err(NetworkError::HostLinks { host: narrow::<HostId>(node), links: degree as usize });
            }
            if degree > u32::from(PortId::MAX) {
                return Err(NetworkError::TooManyPorts(narrow::<NodeId>(node)));
            }
        }
        for node in 0..nodes {
            port_start[node + 1] += port_start[node];
        }
        let mut next = port_start.clone();
        let mut ports = vec![0; 2 * self.links.len()];
        for (index, link) in self.links.iter().enumerate() {
            for (end, channel) in [(link.a, 2 * index), (link.b, 2 * index + 1)] {
                ports[next[end as usize] as usize] = narrow::<ChannelId>(channel);
                next[end as usize] += 1;
            }
        }
        let mut network = Network {
            name: self.name,
            hosts: self.hosts,
            switches: narrow::<u32>(self.levels.len()),
            links: self.links,
            tiers: self.tiers,
            levels: self.levels,
            pods: self.pods,
            is_xgft: !self.up_strides.is_empty(),
            up_strides: self.up_strides,
            has_found_levels: false,
            global_tier: self.global_tier,
            dimension_of_tier: self.dimension_of_tier,
            error_rates: self.error_rates,
            port_start,
            ports,
            names: self.names,
            component_of: Vec::new(),
            links_per_host: self.links_per_host,
        };
        debug_assert!(network.names.as_ref().is_none_or(|names| names.len() == nodes));
        network.find_components()?;
        if network.is_tree() && !network.is_xgft {
            network.derive_strides();
        }
        Ok(network)
    }
}

impl Network {
    /// Nothing yet.
    pub(crate) fn empty() -> Self {
        Network {
            name: String::new(),
            hosts: 0,
            switches: 0,
            links: Vec::new(),
            tiers: Vec::new(),
            levels: Vec::new(),
            pods: Vec::new(),
            up_strides: Vec::new(),
            is_xgft: false,
            has_found_levels: false,
            global_tier: None,
            dimension_of_tier: Vec::new(),
            error_rates: Vec::new(),
            port_start: Vec::new(),
            ports: Vec::new(),
            names: None,
            component_of: Vec::new(),
            links_per_host: 1,
        }
    }

    /// Finds the levels of a network that was given none, if it is a tree: with them the lower end of every link, pods, and names of tiers unless the
    /// links `have_tiers`.
    pub(crate) fn find_levels(&mut self, have_tiers: bool) {
        let Ok(levels) = levels::find(self) else { return };
        self.levels = levels;
        self.has_found_levels = true;
        let turned: Vec<bool> =
            self.links.iter().map(|link| self.level(link.a) > self.level(link.b)).collect();
        let turns = self.links.iter_mut().zip(&turned).filter(|(_, turns)| **turns);
        turns.for_each(|(link, _)| std::mem::swap(&mut link.a, &mut link.b));
        for channel in self.ports.iter_mut().filter(|channel| turned[**channel as usize / 2]) {
            *channel ^= 1;
        }
        self.find_pods();
        if !have_tiers {
            self.name_tiers();
        }
        self.derive_strides();
    }

    /// Finds out whether a tree is an XGFT; if so, the up ports of its switches are put into the order of digits.
    pub(crate) fn find_order(&mut self) {
        let Some(lowest) = self.is_tree().then(|| xgft_order::lowest_roots(self)).flatten() else { return };
        self.is_xgft = true;
        for switch in self.hosts..self.nodes() {
            let own =
                self.port_start[switch as usize] as usize..self.port_start[switch as usize + 1] as usize;
            let places: Vec<usize> = own
                .filter(|&place| self.level(self.channel(self.ports[place]).to) > self.level(switch))
                .collect();
            let mut channels: Vec<ChannelId> = places.iter().map(|&place| self.ports[place]).collect();
            channels.sort_by_key(|&channel| lowest[(self.channel(channel).to - self.hosts) as usize]);
            places.into_iter().zip(channels).for_each(|(place, channel)| self.ports[place] = channel);
        }
    }

    /// The number of the highest level.
    fn top(&self) -> u8 {
        self.levels.iter().copied().max().unwrap_or(0)
    }

    /// From three levels on, a pod is what hangs together without the switches of the highest level, which have none (`u32::MAX`).
    fn find_pods(&mut self) {
        let top = self.top();
        self.pods.fill(0);
        if top < 3 {
            return;
        }
        self.pods.fill(u32::MAX);
        let mut count = 0;
        for first in self.hosts..self.nodes() {
            let mut open = vec![first];
            let mut is_pod = false;
            while let Some(switch) = open.pop() {
                let index = (switch - self.hosts) as usize;
                if self.levels[index] == top || self.pods[index] != u32::MAX {
                    continue;
                }
                self.pods[index] = count;
                is_pod = true;
                let ends = self.ports(switch).iter().map(|&channel| self.channel(channel).to);
                open.extend(ends.filter(|&end| !self.is_host(end)));
            }
            count += u32::from(is_pod);
        }
    }

    /// Calls the tiers of links as those of generated trees, in the order of their first links, as where a file names them.
    fn name_tiers(&mut self) {
        let top = self.top();
        let name = |lower: u8| match (lower, top) {
            (1, 2) => "leaf-spine".to_owned(),
            _ => xgft::tier_name(usize::from(lower)),
        };
        let (hosts, levels) = (self.hosts, &self.levels);
        let (mut tiers, mut numbers) = (Vec::new(), vec![None; usize::from(top)]);
        for link in &mut self.links {
            let lower = if link.a < hosts { 0 } else { levels[(link.a - hosts) as usize] };
            link.tier = *numbers[usize::from(lower)].get_or_insert_with(|| {
                tiers.push(name(lower));
                narrow::<u8>(tiers.len()) - 1
            });
        }
        self.tiers = tiers;
    }

    fn derive_strides(&mut self) {
        let mut most = vec![0u32; usize::from(self.top())];
        for switch in self.hosts..self.nodes() {
            let level = self.level(switch);
            let ends = self.ports(switch).iter().map(|&channel| self.channel(channel).to);
            let ups = narrow::<u32>(ends.filter(|&end| self.level(end) > level).count());
            if let Some(most) = usize::from(level).checked_sub(1).map(|place| &mut most[place]) {
                *most = (*most).max(ups);
            }
        }
        let strides = most.iter().scan(1u32, |stride, &ups| {
            let own = *stride;
            *stride = own.saturating_mul(ups);
            Some(own)
        });
        self.up_strides = strides.collect();
    }

    /// Numbers the components by their first nodes. Several are allowed only where hosts of a file have several links.
    fn find_components(&mut self) -> Result<(), NetworkError> {
        let mut component_of = vec![u32::MAX; self.nodes() as usize];
        let mut components = 0;
        let mut open = Vec::new();
        for first in 0..self.nodes() {
            if component_of[first as usize] != u32::MAX {
                continue;
            }
            let may_be_apart = self.links_per_host > 1 && self.is_host(first);
            if components > 0 && !may_be_apart {
                return Err(NetworkError::Disconnected(first));
            }
            open.push(first);
            while let Some(node) = open.pop() {
                if component_of[node as usize] == u32::MAX {
                    component_of[node as usize] = components;
                    open.extend(self.ports(node).iter().map(|&channel| self.channel(channel).to));
                }
            }
            components += 1;
        }
        if components > 1 {
            self.component_of = component_of.split_off(self.hosts as usize);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn star(hosts: u32) -> NetworkBuilder {
        let mut builder = NetworkBuilder::new("star");
        let hosts = builder.add_hosts(hosts);
        let switch = builder.add_switch(1, 0);
        let tier = builder.tier("host");
        for host in hosts {
            builder.link(host, switch, Rate::from_gbps(100), Time::from_us(1), tier);
        }
        builder
    }

    #[test]
    fn both_directions_of_a_link_are_channels() {
        let network = star(3).build().unwrap();
        assert_eq!(network.ports(3), [1, 3, 5]);
        assert_eq!(network.channel(4).from, 2);
        assert_eq!(network.channel(5).to, 2);
        assert_eq!(network.edge_switch(1), 3);
    }

    #[test]
    fn malformed_graphs_are_refused() {
        for hosts in [0, 1] {
            assert_eq!(star(hosts).build().unwrap_err(), NetworkError::TooFewHosts(hosts));
        }

        let mut two_links = star(2);
        two_links.link(0, 2, Rate::from_gbps(1), Time::ZERO, 0);
        assert_eq!(two_links.build().unwrap_err(), NetworkError::HostLinks { host: 0, links: 2 });

        let mut isolated = star(2);
        isolated.add_switch(1, 0);
        assert_eq!(isolated.build().unwrap_err(), NetworkError::Disconnected(3));

        let mut looped = star(2);
        looped.link(2, 2, Rate::from_gbps(1), Time::ZERO, 0);
        assert_eq!(looped.build().unwrap_err(), NetworkError::SelfLoop(2));
    }

    #[test]
    fn tiers_beyond_those_that_have_numbers_are_refused() {
        let mut builder = star(2);
        let tiers: Vec<TierId> = (1..256).map(|tier| builder.tier(&tier.to_string())).collect();
        assert!(tiers.into_iter().eq(1..=255));
        assert!(builder.clone().build().is_ok());
        // The first tier's number would follow on the last one's.
        assert_ne!(builder.tier("one more"), builder.tier("host"));
        assert_eq!(builder.build().unwrap_err(), NetworkError::TooManyTiers(257));
    }
}
