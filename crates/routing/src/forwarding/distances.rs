//! How far all switches are from some of them, for 64 of those at a time.
//!
//! A search that spreads from one switch looks at every link. Here one look serves 64 searches: what a switch knows is a word with a bit per search, and
//! a link passes the whole word on (multi-source breadth-first search; Then et al., VLDB'14).

use netloom_topology::{ChannelId, Network, PortId};

/// Most roots of a measurement.
pub(super) const ROOTS: usize = u64::BITS as usize;

/// The links between switches, which are counted from 0.
#[derive(Clone, Debug)]
pub(super) struct Links {
    /// `links[start[s]..start[s + 1]]` are those of switch `s` to other switches, in the order of its ports.
    start: Vec<usize>,
    links: Vec<Link>,
    has_groups: bool,
    /// Ways go along the dimensions of a grid in their order.
    in_order: bool,
}

/// A way from a switch to the next one.
#[derive(Clone, Copy, Debug)]
struct Link {
    to: u32,
    port: PortId,
    is_global: bool,
    /// The dimension of a grid that it leads along; 0 if there is none.
    dimension: u8,
}

impl Links {
    /// Those that are not cut.
    pub(super) fn new(network: &Network, is_cut: impl Fn(ChannelId) -> bool) -> Self {
        let (hosts, global) = (network.hosts(), network.global_tier());
        let (mut start, mut links) = (vec![0], Vec::new());
        for switch in hosts..network.nodes() {
            let ports = (0..).zip(network.ports(switch)).filter(|&(_, &channel)| !is_cut(channel));
            let ends = ports.map(|(port, &channel)| (port, network.channel(channel)));
            let switches = ends.filter(|(_, channel)| channel.to >= hosts);
            links.extend(switches.map(|(port, channel)| {
                let is_global = global == Some(channel.tier);
                Link { to: channel.to - hosts, port, is_global, dimension: 0 }
            }));
            start.push(links.len());
        }
        Links { start, links, has_groups: global.is_some(), in_order: false }
    }

    /// The same of a grid, along the dimensions of which ways go in their order.
    pub(super) fn in_order(network: &Network, is_cut: impl Fn(ChannelId) -> bool) -> Self {
        let mut all = Links::new(network, is_cut);
        for (here, switch) in (network.hosts()..network.nodes()).enumerate() {
            let channels = network.ports(switch);
            for link in &mut all.links[all.start[here]..all.start[here + 1]] {
                let dimension = network.dimension(channels[usize::from(link.port)]);
                link.dimension = dimension.map_or(0, |dimension| dimension.number);
            }
        }
        all.in_order = true;
        all
    }

    /// Number of switches.
    pub(super) fn switches(&self) -> usize {
        self.start.len() - 1
    }

    /// More than the number of any port of a switch that leads to another.
    pub(super) fn ports_of(&self, switch: usize) -> usize {
        self.of(switch).last().map_or(0, |link| usize::from(link.port) + 1)
    }

    fn of(&self, switch: usize) -> &[Link] {
        &self.links[self.start[switch]..self.start[switch + 1]]
    }
}

/// Distances of all switches to some of them, the roots.
///
/// In networks of groups with global links between them ways are compared by their global links first, then by all their hops.
#[derive(Clone, Debug)]
pub(super) struct Distances {
    /// Every distance at which there is a switch, the shortest first.
    levels: Vec<Level>,
    roots: usize,
}

/// The switches at one distance.
#[derive(Clone, Debug)]
struct Level {
    globals: u32,
    hops: u32,
    /// Per switch, the roots that are so far away.
    roots: Vec<u64>,
}

impl Distances {
    /// Finds the distances of every switch to at most [`ROOTS`] of them.
    pub(super) fn measure(links: &Links, roots: &[usize]) -> Self {
        let mut nearest = vec![0; links.switches()];
        for (bit, &root) in roots.iter().enumerate() {
            nearest[root] |= 1 << bit;
        }
        let mut seen = nearest.clone();
        let levels = vec![Level { globals: 0, hops: 0, roots: nearest }];
        let mut distances = Distances { levels, roots: roots.len() };
        distances.spread(links, 0, 1, &mut seen);
        let mut globals = 0;
        while links.has_groups && distances.levels.last().is_some_and(|level| level.globals == globals) {
            let nearest = distances.levels.iter().find(|level| level.globals == globals);
            let hops = nearest.map_or(0, |level| level.hops) + 1;
            globals += 1;
            distances.spread(links, globals, hops, &mut seen);
        }
        distances
    }

    /// Adds the levels of this many global hops, from this many hops in all on.
    fn spread(&mut self, links: &Links, globals: u32, from: u32, seen: &mut [u64]) {
        let last = self.levels.last().map_or(0, |level| level.hops);
        for hops in from.. {
            let mut reached = vec![0u64; links.switches()];
            for is_global in [false, true] {
                let Some(before) = self.before(globals, hops, is_global) else { continue };
                let before = &self.levels[before].roots;
                for (here, &roots) in before.iter().enumerate().filter(|&(_, &roots)| roots != 0) {
                    for link in links.of(here).iter().filter(|link| link.is_global == is_global) {
                        reached[link.to as usize] |= roots;
                    }
                }
            }
            let mut is_any = false;
            for (reached, seen) in reached.iter_mut().zip(&mut *seen) {
                *reached &= !*seen;
                *seen |= *reached;
                is_any |= *reached != 0;
            }
            if is_any {
                self.levels.push(Level { globals, hops, roots: reached });
            } else if globals == 0 || hops > last {
                // Nor will later ones be from a level of fewer global hops.
                break;
            }
        }
    }

    /// The level from which such a link leads to the one of this many hops.
    fn before(&self, globals: u32, hops: u32, is_global: bool) -> Option<usize> {
        let (globals, hops) = (globals.checked_sub(u32::from(is_global))?, hops.checked_sub(1)?);
        self.levels.iter().position(|level| (level.globals, level.hops) == (globals, hops))
    }

    /// The ports of a switch that lead nearer to some roots by all their length, in order, and to which roots.
    pub(super) fn closer(&self, links: &Links, here: usize, ports: &mut Vec<(PortId, u64)>) {
        ports.clear();
        let in_order = links.in_order;
        let links = links.of(here);
        ports.extend(links.iter().map(|link| (link.port, 0)));
        for level in self.levels.iter().filter(|level| level.roots[here] != 0) {
            let before = [false, true].map(|is_global| self.before(level.globals, level.hops, is_global));
            let before = before.map(|level| level.map(|level| &self.levels[level].roots));
            for ((_, roots), link) in ports.iter_mut().zip(links) {
                if let Some(before) = before[usize::from(link.is_global)] {
                    *roots |= level.roots[here] & before[link.to as usize];
                }
            }
        }
        if in_order {
            keep_first_dimensions(links, ports);
        }
        ports.retain(|&(_, roots)| roots != 0);
    }

    /// How many roots there are.
    pub(super) fn count(&self) -> usize {
        self.roots
    }

    /// All roots.
    pub(super) fn roots(&self) -> u64 {
        u64::MAX >> (ROOTS - self.roots)
    }

    /// The roots to which a switch has no way.
    fn out_of_reach(&self, here: usize) -> u64 {
        self.levels.iter().fold(self.roots(), |left, level| left & !level.roots[here])
    }

    /// The first root, by its place, to which some of these switches have no way although both `are_joined`, and the first of them.
    pub(super) fn lost(
        &self,
        switches: &[usize],
        are_joined: impl Fn(usize, usize) -> bool,
    ) -> Option<(usize, usize)> {
        let lost = |&here: &usize| {
            let mut roots = bits(self.out_of_reach(here)).filter(|&root| are_joined(root, here));
            roots.next().map(|root| (root, here))
        };
        switches.iter().filter_map(lost).min()
    }

    /// Distances at which there is a switch: global hops, hops in all, and per switch the roots that are so far away.
    pub(super) fn levels(&self) -> impl Iterator<Item = (u32, u32, &[u64])> {
        self.levels.iter().map(|level| (level.globals, level.hops, level.roots.as_slice()))
    }
}

/// Takes away the roots to which a link along a lower dimension leads, too. The ports are those of the links.
fn keep_first_dimensions(links: &[Link], ports: &mut [(PortId, u64)]) {
    let last = links.iter().map(|link| link.dimension).max().unwrap_or(0);
    let mut served = 0;
    for dimension in 0..=last {
        let mut own = 0;
        for ((_, roots), _) in ports.iter_mut().zip(links).filter(|(_, link)| link.dimension == dimension) {
            *roots &= !served;
            own |= *roots;
        }
        served |= own;
    }
}

/// The bits of a word, the lowest first.
pub(super) fn bits(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = word.trailing_zeros();
        word &= word.wrapping_sub(1);
        (bit < u64::BITS).then_some(bit as usize)
    })
}
