//! Where the nodes of a network stand in a picture of it.
//!
//! A tree stands in rows, hosts at the bottom. A torus or mesh is a grid, or several of them side by side. Groups of switches (a Dragonfly's) are
//! circles on a circle. Every other network is one circle of switches. Off trees and grids a switch's hosts stand in a line behind it, away
//! from the middle.

use std::f64::consts::TAU;

use netloom_topology::{Network, NodeId};

/// Distance between a picture's edge and its nodes.
const MARGIN: f64 = 40.0;

/// How the nodes are arranged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Rows by level, hosts at the bottom.
    Rows,
    /// Lines and columns of switches; dimensions beyond the second are grids beside and below each other.
    Grid,
    /// Circles of switches on a circle.
    Groups,
    /// One circle of switches.
    Circle,
}

/// Places for the nodes of a network.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layout {
    /// How the nodes are arranged.
    pub(crate) shape: Shape,
    /// Width and height.
    pub(crate) size: (f64, f64),
    /// Where every node stands, by [`NodeId`]; `None` for hosts that are left out.
    pub(crate) places: Vec<Option<(f64, f64)>>,
    /// Least distance between neighbouring switches.
    pub(crate) switch_room: f64,
    /// Least distance between neighbouring hosts.
    pub(crate) host_room: f64,
}

impl Layout {
    /// Arranges a network.
    pub(crate) fn of(network: &Network) -> Self {
        let groups = groups(network);
        if network.is_tree() {
            rows(network)
        } else if let Some(sizes) = sizes(network) {
            grid(network, &sizes)
        } else if groups.len() > 1 && groups.len() < network.switches() as usize {
            circles(network, &groups)
        } else {
            circle(network)
        }
    }
}

/// The switches by group, in the order in which the groups first occur.
fn groups(network: &Network) -> Vec<Vec<NodeId>> {
    let mut groups: Vec<(u32, Vec<NodeId>)> = Vec::new();
    for switch in network.hosts()..network.nodes() {
        let pod = network.pod(switch);
        // Switches of a group follow each other in every generator; a file may say otherwise.
        match groups.iter_mut().rev().find(|(name, _)| *name == pod) {
            Some((_, members)) => members.push(switch),
            None => groups.push((pod, vec![switch])),
        }
    }
    groups.into_iter().map(|(_, members)| members).collect()
}

/// The hosts of every switch, by switch.
fn attached(network: &Network) -> Vec<Vec<NodeId>> {
    let mut hosts = vec![Vec::new(); network.switches() as usize];
    for host in 0..network.hosts() {
        hosts[(network.edge_switch(host) - network.hosts()) as usize].push(host);
    }
    hosts
}

/// Rows by level. Pods keep a distance; hosts stand below their edge switch.
fn rows(network: &Network) -> Layout {
    const ROW: f64 = 150.0;
    let first = network.hosts();
    let top = (first..network.nodes()).map(|switch| network.level(switch)).max().unwrap_or(0);
    let row = |level: u8| -> Vec<NodeId> {
        (first..network.nodes()).filter(|&switch| network.level(switch) == level).collect()
    };
    let widest = (1..=top).map(|level| row(level).len()).max().unwrap_or(1);
    let width = (widest as f64 * 38.0).clamp(720.0, 1600.0);
    let height = f64::from(top) * ROW;
    let mut places = vec![None; network.nodes() as usize];
    let mut switch_room = f64::INFINITY;
    let mut host_room = f64::INFINITY;
    let hosts = attached(network);
    for level in 1..=top {
        let row = row(level);
        let pods = row.windows(2).filter(|pair| network.pod(pair[0]) != network.pod(pair[1])).count();
        // A gap of half a slot between pods, unless every switch is a pod of its own.
        let gap = if pods + 1 < row.len() { 0.5 } else { 0.0 };
        let slot = width / (row.len() as f64 + gap * pods as f64);
        let mut at = 0.5;
        for (i, &switch) in row.iter().enumerate() {
            if i > 0 {
                at += 1.0;
                if network.pod(row[i - 1]) != network.pod(switch) {
                    at += gap;
                }
            }
            let x = MARGIN + at * slot;
            places[switch as usize] = Some((x, MARGIN + f64::from(top - level) * ROW));
            let own = &hosts[(switch - first) as usize];
            let step = slot * 0.9 / own.len().max(1) as f64;
            for (i, &host) in own.iter().enumerate() {
                let offset = (i as f64 - (own.len() as f64 - 1.0) / 2.0) * step;
                places[host as usize] = Some((x + offset, MARGIN + height));
            }
            if !own.is_empty() {
                host_room = host_room.min(step);
            }
        }
        switch_room = switch_room.min(slot);
    }
    let size = (width + 2.0 * MARGIN, height + 2.0 * MARGIN);
    Layout { shape: Shape::Rows, size, places, switch_room, host_room }
}

/// Switches along each dimension of a torus or mesh: those that links of a dimension lead through, one number at a time, from the first switch on.
fn sizes(network: &Network) -> Option<Vec<u32>> {
    let along = |channel: u32| {
        let ends = network.channel(channel);
        let dimension = network.dimension(channel).filter(|dimension| !dimension.wraps)?;
        Some((usize::from(dimension.number), ends.from, ends.to))
    };
    let links: Vec<_> = (0..network.channels()).step_by(2).filter_map(along).collect();
    let dimensions = links.iter().map(|&(number, ..)| number).max().filter(|_| network.is_grid())?;
    let (mut sizes, mut stride) = (Vec::new(), 1);
    for number in 1..=dimensions {
        let own = || links.iter().filter(|&&(of, ..)| of == number);
        let mut size = 1;
        while own().any(|&(_, from, to)| from == network.hosts() + (size - 1) * stride && to == from + stride)
        {
            size += 1;
        }
        if own().any(|&(_, from, to)| to.checked_sub(from) != Some(stride)) {
            return None;
        }
        sizes.push(size);
        stride *= size;
    }
    (stride == network.switches()).then_some(sizes)
}

/// A grid. Lines and columns are bent a little, so that links that close rings do not lie on the others; grids side by side stand lower one after the
/// other, so that links between them do not lie on lines.
fn grid(network: &Network, sizes: &[u32]) -> Layout {
    let size = |dimension: usize| sizes.get(dimension).copied().unwrap_or(1);
    // Odd dimensions go across, even ones down; each grid of the ones before stands in a cell of the next ones.
    let spans = |first: usize| -> Vec<f64> {
        let mut span = 1.0;
        let of = sizes.iter().skip(first).step_by(2).map(|&size| {
            let own = span;
            span = (f64::from(size) + 0.6) * own;
            own
        });
        of.collect()
    };
    let (across, down) = (spans(0), spans(1));
    let most = |spans: &[f64], first: usize| {
        let steps = spans.iter().zip(sizes.iter().skip(first).step_by(2));
        steps.map(|(span, &size)| span * f64::from(size - 1)).sum::<f64>()
    };
    let third = f64::from(size(2) - 1);
    let step_down = if third > 0.0 { 0.22 } else { 0.0 };
    let (width, height) = (most(&across, 0), most(&down, 1) + step_down * third);
    let unit = (1300.0 / (width.max(height) + 1.0)).clamp(16.0, 110.0);
    let wraps = (0..network.channels()).any(|channel| network.dimension(channel).is_some_and(|of| of.wraps));
    let bow = if wraps { 0.35 } else { 0.0 };
    let hosts = attached(network);
    let mut places = vec![None; network.nodes() as usize];
    let most_hosts = hosts.iter().map(Vec::len).max().unwrap_or(0);
    let step = (unit * 0.25 / (most_hosts as f64 + 0.5)).min(12.0);
    for (number, own) in (0..network.switches()).zip(&hosts) {
        let (mut rest, mut at) = (number, [0.0, 0.0]);
        // How far along each of the first three.
        let mut first = [0.0; 3];
        for dimension in 0..sizes.len() {
            let coordinate = f64::from(rest % size(dimension));
            rest /= size(dimension);
            let spans = if dimension % 2 == 0 { &across } else { &down };
            at[dimension % 2] += coordinate * spans[dimension / 2];
            if dimension < 3 {
                first[dimension] = coordinate / f64::from((size(dimension) - 1).max(1));
            }
        }
        let bent = |along: f64| bow * 4.0 * along * (1.0 - along);
        let x = MARGIN + (at[0] + bow - bent(first[1])) * unit;
        let lower = step_down * third * first[2] + bent(first[2]);
        let y = MARGIN + (at[1] + bow - bent(first[0]) + lower) * unit;
        places[(network.hosts() + number) as usize] = Some((x, y));
        for (place, &host) in own.iter().enumerate() {
            let away = 0.2 * unit + step * (place as f64 + 0.5);
            places[host as usize] = Some((x + away, y + away));
        }
    }
    let outer = MARGIN * 2.0 + unit * (bow + 0.5);
    let size = (width * unit + outer, height * unit + outer + unit * bow);
    let switch_room = unit * (1.0 - bow).min(0.9);
    Layout { shape: Shape::Grid, size, places, switch_room, host_room: step.min(switch_room) }
}

/// One circle of switches.
fn circle(network: &Network) -> Layout {
    let count = f64::from(network.switches());
    let radius = (count * 24.0 / TAU).clamp(200.0, 480.0);
    let most = attached(network).iter().map(Vec::len).max().unwrap_or(0);
    let ray = Ray::of(most, 90.0);
    let middle = MARGIN + radius + ray.length(most);
    let mut places = vec![None; network.nodes() as usize];
    let order: Vec<NodeId> = (network.hosts()..network.nodes()).collect();
    ring(network, &mut places, &order, ((middle, middle), radius, 0.0), ray);
    let switch_room = 2.0 * radius * (TAU / 2.0 / count).sin();
    let room = if network.switches() == 1 { radius } else { switch_room };
    Layout {
        shape: Shape::Circle,
        size: (2.0 * middle, 2.0 * middle),
        places,
        switch_room: room,
        host_room: ray.step.min(room),
    }
}

/// Circles of switches on a circle.
fn circles(network: &Network, groups: &[Vec<NodeId>]) -> Layout {
    const RADIUS: f64 = 400.0;
    let count = groups.len() as f64;
    let most = attached(network).iter().map(Vec::len).max().unwrap_or(0);
    // A group and the rays of its hosts share the chord that the circle has for it.
    let chord = RADIUS * (TAU / 2.0 / count).sin();
    let (outer, inner) = (chord * 0.94, chord * 0.58);
    let ray = Ray::of(most, outer - inner);
    let middle = MARGIN + RADIUS + outer;
    let mut places = vec![None; network.nodes() as usize];
    let mut switch_room = f64::INFINITY;
    for (i, group) in groups.iter().enumerate() {
        let angle = TAU * i as f64 / count - TAU / 4.0;
        let centre = (middle + RADIUS * angle.cos(), middle + RADIUS * angle.sin());
        // The first switch of a group looks outwards.
        ring(network, &mut places, group, (centre, inner, angle + TAU / 4.0), ray);
        if group.len() > 1 {
            switch_room = switch_room.min(2.0 * inner * (TAU / 2.0 / group.len() as f64).sin());
        }
    }
    Layout {
        shape: Shape::Groups,
        size: (2.0 * middle, 2.0 * middle),
        places,
        switch_room,
        host_room: ray.step.min(switch_room),
    }
}

/// The line of hosts behind a switch.
#[derive(Clone, Copy, Debug)]
struct Ray {
    /// Distance between neighbours, and of the first host from the switch.
    step: f64,
}

impl Ray {
    /// Room for this many hosts within a length.
    fn of(hosts: usize, length: f64) -> Self {
        Ray { step: (length / (hosts as f64 + 0.5)).min(14.0) }
    }

    fn length(self, hosts: usize) -> f64 {
        self.step * (hosts as f64 + 0.5)
    }
}

/// Switches on a circle (centre, radius, turn), clockwise from the top, each with its hosts behind it.
fn ring(
    network: &Network,
    places: &mut [Option<(f64, f64)>],
    switches: &[NodeId],
    (centre, radius, turn): ((f64, f64), f64, f64),
    ray: Ray,
) {
    let hosts = attached(network);
    for (i, &switch) in switches.iter().enumerate() {
        let angle = TAU * i as f64 / switches.len() as f64 - TAU / 4.0 + turn;
        let at = |distance: f64| Some((centre.0 + distance * angle.cos(), centre.1 + distance * angle.sin()));
        places[switch as usize] = at(radius);
        for (j, &host) in hosts[(switch - network.hosts()) as usize].iter().enumerate() {
            places[host as usize] = at(radius + ray.step * (j as f64 + 1.2));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::network;

    /// Least distance between any two nodes that are drawn.
    fn closest(layout: &Layout) -> f64 {
        let places: Vec<(f64, f64)> = layout.places.iter().flatten().copied().collect();
        let mut least = f64::INFINITY;
        for (i, a) in places.iter().enumerate() {
            for b in &places[..i] {
                least = least.min((a.0 - b.0).hypot(a.1 - b.1));
            }
        }
        least
    }

    #[test]
    fn a_tree_stands_in_rows_with_its_hosts_at_the_bottom() {
        let network = network("fat-tree", json!({ "k": 4 }));
        let layout = Layout::of(&network);
        assert_eq!(layout.shape, Shape::Rows);
        let height = |node: u32| layout.places[node as usize].unwrap().1;
        for link in network.links() {
            assert!(height(link.a) > height(link.b), "{link:?}");
        }
        for host in 1..network.hosts() {
            assert_eq!(height(host), height(0));
        }
    }

    #[test]
    fn groups_are_circles_of_their_own() {
        let network = network("dragonfly", json!({ "hosts_per_switch": 2 }));
        let layout = Layout::of(&network);
        assert_eq!(layout.shape, Shape::Groups);
        let at = |node: u32| layout.places[node as usize].unwrap();
        let distance = |a: u32, b: u32| (at(a).0 - at(b).0).hypot(at(a).1 - at(b).1);
        let longest = |tier: &str| {
            let links = network.links().iter().filter(|link| network.tiers()[usize::from(link.tier)] == tier);
            links.map(|link| distance(link.a, link.b)).fold(0.0, f64::max)
        };
        assert!(longest("local") < longest("global"));
    }

    #[test]
    fn tori_are_grids_whose_rings_close_beside_their_lines() {
        let network = network("torus", json!({ "dimensions": 2, "switches_per_dimension": [5, 4] }));
        assert_eq!(sizes(&network), Some(vec![5, 4]));
        let layout = Layout::of(&network);
        assert_eq!(layout.shape, Shape::Grid);
        let at = |switch: u32| layout.places[(network.hosts() + switch) as usize].unwrap();
        // The middle of the first line is not on the straight way between its ends.
        let (left, middle, right) = (at(0), at(2), at(4));
        assert!(left.0 < middle.0 && middle.0 < right.0 && (left.1 - right.1).abs() < 1e-9);
        assert!((middle.1 - left.1).abs() > 20.0);
        assert!(at(5).1 > at(0).1);
        let hyperx =
            crate::testing::network("hyperx", json!({ "dimensions": 2, "switches_per_dimension": [4] }));
        assert_eq!(sizes(&hyperx), None);
    }

    #[test]
    fn every_node_has_a_place_of_its_own_within_the_picture() {
        for (kind, parameters) in [
            ("fat-tree", json!({ "k": 8 })),
            ("dragonfly", json!({ "hosts_per_switch": 2 })),
            ("slim-fly", json!({ "q": 5 })),
            ("crossbar", json!({ "hosts": 6 })),
            ("torus", json!({ "dimensions": 2, "switches_per_dimension": [5, 4], "hosts_per_switch": 2 })),
            ("torus", json!({ "switches_per_dimension": [4, 4, 8], "twisted": true })),
            ("torus", json!({ "dimensions": 4, "switches_per_dimension": [3] })),
            ("mesh", json!({ "dimensions": 2, "switches_per_dimension": [8, 3] })),
            ("torus", json!({ "dimensions": 1, "switches_per_dimension": [9] })),
            ("hyperx", json!({ "dimensions": 2, "switches_per_dimension": [4] })),
        ] {
            let network = network(kind, parameters);
            let layout = Layout::of(&network);
            assert!(closest(&layout) > 2.0, "{kind}: {}", closest(&layout));
            for (x, y) in layout.places.iter().map(|place| place.unwrap()) {
                assert!((0.0..layout.size.0).contains(&x) && (0.0..layout.size.1).contains(&y), "{kind}");
            }
        }
    }
}
