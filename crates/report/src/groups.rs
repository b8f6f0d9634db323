//! Large networks as groups of switches: pods, planes, rails, groups of a Dragonfly, or blocks of neighbours, with the links between
//! them in bundles.
//!
//! Thousands of nodes drawn one by one are a grey surface; at most 32 boxes in a row can be read, and say how many nodes they hold.

use std::collections::BTreeMap;
use std::f64::consts::TAU;

use netloom_topology::{Network, NodeId};
use netloom_units::narrow;

/// Boxes in a row, or on the circle.
const MOST_GROUPS: usize = 32;
const MARGIN: f64 = 60.0;
const WIDTH: f64 = 1400.0;
const ROW: f64 = 170.0;

/// Some nodes as one box.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    /// In full: `pods 3–4`.
    pub(crate) name: String,
    /// What stands in the box: `3–4`.
    pub(crate) label: String,
    pub(crate) switches: u32,
    pub(crate) hosts: u32,
    /// Its middle and its half width and height.
    pub(crate) at: (f64, f64),
    pub(crate) half: (f64, f64),
}

/// All links of a tier between two groups, or within one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bundle {
    pub(crate) a: usize,
    pub(crate) b: usize,
    pub(crate) tier: u8,
    pub(crate) links: u32,
}

/// A row of boxes has a title, with the place where it ends.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Title {
    pub(crate) text: String,
    pub(crate) at: (f64, f64),
}

/// A network as groups.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Grouped {
    pub(crate) size: (f64, f64),
    pub(crate) is_tree: bool,
    pub(crate) titles: Vec<Title>,
    pub(crate) groups: Vec<Group>,
    pub(crate) bundles: Vec<Bundle>,
    /// By link: its bundle, and whether it leads from the bundle's second group to its first.
    pub(crate) bundle_of: Vec<(u32, bool)>,
}

/// Nodes of one row before they have places.
struct Row {
    title: String,
    /// Full name, label, members.
    groups: Vec<(String, String, Vec<NodeId>)>,
}

impl Grouped {
    /// Arranges a network. `rails`: the number of rails to which leaf switches belong in turn.
    pub(crate) fn of(network: &Network, rails: Option<u32>) -> Self {
        let mut grouped = if network.is_tree() { tree(network, rails) } else { circle(network) };
        let mut group_of = vec![0usize; network.nodes() as usize];
        let (groups, members): (Vec<Group>, Vec<Vec<NodeId>>) = grouped.1.into_iter().unzip();
        for (place, members) in members.iter().enumerate() {
            members.iter().for_each(|&node| group_of[node as usize] = place);
        }
        let mut known: BTreeMap<(usize, usize, u8), u32> = BTreeMap::new();
        for link in network.links() {
            let (a, b) = (group_of[link.a as usize], group_of[link.b as usize]);
            *known.entry((a.min(b), a.max(b), link.tier)).or_insert(0) += 1;
        }
        let places: BTreeMap<(usize, usize, u8), u32> =
            known.keys().enumerate().map(|(place, key)| (*key, narrow::<u32>(place))).collect();
        grouped.0.bundles =
            known.iter().map(|(&(a, b, tier), &links)| Bundle { a, b, tier, links }).collect();
        let bundle = |link: &netloom_topology::Link| {
            let (a, b) = (group_of[link.a as usize], group_of[link.b as usize]);
            (places[&(a.min(b), a.max(b), link.tier)], a > b)
        };
        grouped.0.bundle_of = network.links().iter().map(bundle).collect();
        grouped.0.groups = groups;
        grouped.0
    }

    fn empty(size: (f64, f64), is_tree: bool) -> Self {
        let (titles, groups) = (Vec::new(), Vec::new());
        Grouped { size, is_tree, titles, groups, bundles: Vec::new(), bundle_of: Vec::new() }
    }
}

type Placed = (Grouped, Vec<(Group, Vec<NodeId>)>);

/// Rows by level, with the hosts of every group of edge switches below it.
fn tree(network: &Network, rails: Option<u32>) -> Placed {
    let first = network.hosts();
    let top = (first..network.nodes()).map(|switch| network.level(switch)).max().unwrap_or(1);
    let mut hosts_at: Vec<Vec<NodeId>> = vec![Vec::new(); network.switches() as usize];
    for host in 0..first {
        hosts_at[(network.edge_switch(host) - first) as usize].push(host);
    }
    let size = (WIDTH + 2.0 * MARGIN, f64::from(top) * ROW + 2.0 * MARGIN);
    let mut grouped = Grouped::empty(size, true);
    let mut placed = Vec::new();
    for level in (1..=top).rev() {
        let switches: Vec<NodeId> =
            (first..network.nodes()).filter(|&switch| network.level(switch) == level).collect();
        let row = row(network, &switches, level, rails.filter(|_| level == 1));
        let y = MARGIN + f64::from(top - level) * ROW;
        grouped.titles.push(Title { text: row.title, at: (MARGIN, y - 34.0) });
        let slot = WIDTH / row.groups.len().max(1) as f64;
        let half = ((slot * 0.42).min(70.0), 17.0);
        for (place, (name, label, members)) in row.groups.into_iter().enumerate() {
            let x = MARGIN + (place as f64 + 0.5) * slot;
            let hosts: Vec<NodeId> = members
                .iter()
                .flat_map(|&switch| hosts_at[(switch - first) as usize].iter().copied())
                .collect();
            let count = narrow::<u32>(members.len());
            let group = Group { name: name.clone(), label, switches: count, hosts: 0, at: (x, y), half };
            placed.push((group, members));
            if !hosts.is_empty() {
                let below = MARGIN + f64::from(top) * ROW;
                let count = narrow::<u32>(hosts.len());
                let group = Group {
                    name: format!("hosts of {name}"),
                    label: String::new(),
                    switches: 0,
                    hosts: count,
                    at: (x, below),
                    half: (half.0, 11.0),
                };
                placed.push((group, hosts));
            }
        }
    }
    let below = MARGIN + f64::from(top) * ROW;
    grouped.titles.push(Title { text: format!("{} hosts", network.hosts()), at: (MARGIN, below - 28.0) });
    (grouped, placed)
}

/// How the switches of a level are grouped: by pod, by rail, alone if they are few, by what they link, or in blocks.
fn row(network: &Network, switches: &[NodeId], level: u8, rails: Option<u32>) -> Row {
    let count = switches.len();
    let top = (network.hosts()..network.nodes()).map(|switch| network.level(switch)).max().unwrap_or(1);
    let what = match (level, top) {
        (1, top) if top > 1 => "edge switches",
        (level, top) if level == top => "core switches",
        _ => "aggregation switches",
    };
    if let Some(planes) = Planes::of(network) {
        return planes.row(network, switches, what, rails);
    }
    if let Some(rails) = rails.filter(|&rails| rails > 1 && count.is_multiple_of(rails as usize)) {
        let groups = by(switches, |place, _| place % rails as usize);
        return named(format!("{count} {what} on {rails} rails"), "rail", groups);
    }
    let pods = by(switches, |_, switch| network.pod(switch));
    if pods.len() > 1 && pods.len() < count {
        return named(format!("{count} {what} in {} pods", pods.len()), "pod", pods);
    }
    if count <= MOST_GROUPS {
        return blocks(network, format!("{count} {what}"), switches);
    }
    let below = |switch: NodeId| {
        let mut below: Vec<NodeId> = network
            .ports(switch)
            .iter()
            .map(|&channel| network.channel(channel).to)
            .filter(|&node| !network.is_host(node) && network.level(node) < level)
            .collect();
        below.sort_unstable();
        below.dedup();
        below
    };
    let planes = by(switches, |_, switch| below(switch));
    if level > 1 && planes.len() > 1 && planes.len() < count {
        return named(format!("{count} {what} in {} planes", planes.len()), "plane", planes);
    }
    blocks(network, format!("{count} {what}"), switches)
}

/// Trees side by side with no link between them, and beside them the networks inside servers.
struct Planes {
    /// Per component of the network, its number among the planes; none if it is the inside of a server.
    number: Vec<Option<u32>>,
    count: u32,
}

impl Planes {
    /// Those of a network that is more than one plane.
    fn of(network: &Network) -> Option<Self> {
        let mut number = vec![None; network.components() as usize];
        let above = (network.hosts()..network.nodes()).filter(|&switch| network.level(switch) > 1);
        let mut count = 0;
        for switch in above {
            let number = &mut number[network.component(switch) as usize];
            if number.is_none() {
                *number = Some(count);
                count += 1;
            }
        }
        (count > 0 && number.len() > 1).then_some(Planes { number, count })
    }

    /// The switches of a level by plane, and by rail where leaf switches are assigned to rails in turn and there is room for a box each.
    fn row(&self, network: &Network, switches: &[NodeId], what: &str, rails: Option<u32>) -> Row {
        let plane = |switch: NodeId| self.number[network.component(switch) as usize];
        let in_planes = switches.iter().filter(|&&switch| plane(switch).is_some()).count();
        let of_plane = in_planes / self.count as usize;
        let rails = rails.filter(|&rails| {
            let is_even = of_plane.is_multiple_of(rails as usize) && rails > 1;
            is_even && (rails * self.count) as usize <= MOST_GROUPS
        });
        let mut seen = vec![0u32; self.count as usize];
        let keys: BTreeMap<NodeId, (u32, u32)> = switches
            .iter()
            .map(|&switch| {
                let Some(plane) = plane(switch) else { return (switch, (u32::MAX, 0)) };
                let place = seen[plane as usize];
                seen[plane as usize] += 1;
                (switch, (plane, rails.map_or(0, |rails| place % rails)))
            })
            .collect();
        let groups = by(switches, |_, switch| keys[&switch]);
        let one_plane = self.count == 1;
        let groups = groups.into_iter().map(|members| {
            let (name, label) = match (keys[&members[0]], rails) {
                ((u32::MAX, _), _) => ("scale-up networks".to_owned(), "scale-up".to_owned()),
                ((_, rail), Some(_)) if one_plane => (format!("rail {rail}"), rail.to_string()),
                ((plane, rail), Some(_)) => (format!("plane {plane} rail {rail}"), format!("{plane}/{rail}")),
                ((plane, _), None) => (format!("plane {plane}"), format!("plane {plane}")),
            };
            (name, label, members)
        });
        let planes = if one_plane { String::new() } else { format!(" in {} planes", self.count) };
        let on_rails = rails.map(|rails| format!(" on {rails} rails")).unwrap_or_default();
        let inside = switches.len() - in_planes;
        let beside = if inside > 0 { format!(", {inside} inside servers") } else { String::new() };
        Row { title: format!("{in_planes} {what}{planes}{on_rails}{beside}"), groups: groups.collect() }
    }
}

/// Groups of switches on a circle.
fn circle(network: &Network) -> Placed {
    let first = network.hosts();
    let switches: Vec<NodeId> = (first..network.nodes()).collect();
    let groups = by(&switches, |_, switch| network.pod(switch));
    let count = switches.len();
    let row = if groups.len() > 1 && groups.len() < count {
        named(format!("{count} switches in {} groups", groups.len()), "group", groups)
    } else {
        blocks(network, format!("{count} switches"), &switches)
    };
    let mut hosts_at = vec![0u32; count];
    for host in 0..first {
        hosts_at[(network.edge_switch(host) - first) as usize] += 1;
    }
    let radius = 330.0;
    let middle = (radius + 130.0, radius + 90.0);
    let mut grouped = Grouped::empty((2.0 * middle.0, 2.0 * middle.1), false);
    let text = format!("{}, {} hosts", row.title, network.hosts());
    grouped.titles.push(Title { text, at: (20.0, 24.0) });
    let all = row.groups.len() as f64;
    let half = ((TAU * radius / all * 0.42).clamp(22.0, 60.0), 17.0);
    let place = |(place, (name, label, members)): (usize, (String, String, Vec<NodeId>))| {
        let angle = TAU * place as f64 / all - TAU / 4.0;
        let at = (middle.0 + radius * angle.cos(), middle.1 + radius * angle.sin());
        let hosts = members.iter().map(|&switch| hosts_at[(switch - first) as usize]).sum();
        let switches = narrow::<u32>(members.len());
        // Hosts stand with their switches: their links are links within the group.
        let mut members = members;
        let own: Vec<NodeId> =
            (0..first).filter(|&host| members.binary_search(&network.edge_switch(host)).is_ok()).collect();
        members.extend(own);
        (Group { name, label, switches, hosts, at, half }, members)
    };
    let placed = row.groups.into_iter().enumerate().map(place).collect();
    (grouped, placed)
}

/// Switches with the same key, in the order in which keys occur; the members of each ascend.
fn by<K: Ord>(switches: &[NodeId], key: impl Fn(usize, NodeId) -> K) -> Vec<Vec<NodeId>> {
    let mut places: BTreeMap<K, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<NodeId>> = Vec::new();
    for (place, &switch) in switches.iter().enumerate() {
        let next = groups.len();
        let group = *places.entry(key(place, switch)).or_insert(next);
        if group == next {
            groups.push(Vec::new());
        }
        groups[group].push(switch);
    }
    groups
}

/// Groups that have numbers; neighbours share a box where there are too many.
fn named(title: String, kind: &str, groups: Vec<Vec<NodeId>>) -> Row {
    let each = groups.len().div_ceil(MOST_GROUPS);
    let merged = groups.chunks(each).enumerate().map(|(place, chunk)| {
        let (low, high) = (place * each, place * each + chunk.len() - 1);
        let mut members = chunk.concat();
        members.sort_unstable();
        if low == high {
            (format!("{kind} {low}"), low.to_string(), members)
        } else {
            (format!("{kind}s {low}–{high}"), format!("{low}–{high}"), members)
        }
    });
    let title = if each > 1 { format!("{title}, {each} to a box") } else { title };
    Row { title, groups: merged.collect() }
}

/// Switches one by one, or in blocks of successive ones.
fn blocks(network: &Network, title: String, switches: &[NodeId]) -> Row {
    let each = switches.len().div_ceil(MOST_GROUPS).max(1);
    let block = |members: &[NodeId]| {
        let (low, high) = (network.node_name(members[0]), network.node_name(members[members.len() - 1]));
        let label = if low == high { low.to_string() } else { format!("{low}–{high}") };
        (if low == high { label.clone() } else { format!("switches {label}") }, label, members.to_vec())
    };
    let title = if each > 1 { format!("{title}, {each} to a box") } else { title };
    Row { title, groups: switches.chunks(each).map(block).collect() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::testing::network;

    /// Every link is in the bundle between the groups of its ends, and every node is counted once.
    fn check(network: &Network, grouped: &Grouped) {
        let links: u32 = grouped.bundles.iter().map(|bundle| bundle.links).sum();
        assert_eq!(links as usize, network.links().len());
        assert_eq!(grouped.bundle_of.len(), network.links().len());
        assert_eq!(grouped.groups.iter().map(|group| group.hosts).sum::<u32>(), network.hosts());
        assert_eq!(grouped.groups.iter().map(|group| group.switches).sum::<u32>(), network.switches());
        for (i, group) in grouped.groups.iter().enumerate() {
            let (left, right) = (group.at.0 - group.half.0, group.at.0 + group.half.0);
            assert!(left >= 0.0 && right <= grouped.size.0 && group.at.1 + group.half.1 <= grouped.size.1);
            for other in &grouped.groups[..i] {
                let apart = (group.at.0 - other.at.0).abs() > group.half.0 + other.half.0 - 1e-6
                    || (group.at.1 - other.at.1).abs() > group.half.1 + other.half.1 - 1e-6;
                assert!(apart, "{} and {} overlap", group.name, other.name);
            }
        }
    }

    #[test]
    fn a_fat_tree_has_pods_and_planes() {
        let network = network("fat-tree", json!({ "k": 36 }));
        let grouped = Grouped::of(&network, None);
        check(&network, &grouped);
        let titles: Vec<&str> = grouped.titles.iter().map(|title| title.text.as_str()).collect();
        assert_eq!(titles[0], "324 core switches in 18 planes");
        assert!(titles[1].starts_with("648 aggregation switches in 36 pods"), "{titles:?}");
        assert_eq!(titles[3], "11664 hosts");
        let names: Vec<&str> = grouped.groups.iter().map(|group| group.name.as_str()).collect();
        assert!(
            names.contains(&"plane 0") && names.contains(&"pods 0–1") && names.contains(&"hosts of pods 0–1")
        );
    }

    #[test]
    fn leaf_switches_stand_in_blocks_or_by_rail() {
        let network = network("leaf-spine", json!({ "leaves": 64, "spines": 8, "hosts_per_leaf": 32 }));
        let blocks = Grouped::of(&network, None);
        check(&network, &blocks);
        assert_eq!(blocks.groups.iter().filter(|group| group.hosts == 64).count(), 32);
        let rails = Grouped::of(&network, Some(8));
        check(&network, &rails);
        let rail = rails.groups.iter().find(|group| group.name == "rail 3").unwrap();
        assert_eq!((rail.switches, rails.titles[1].text.as_str()), (8, "64 edge switches on 8 rails"));
    }

    #[test]
    fn planes_stand_side_by_side_and_scale_up_networks_beside_them() {
        let plane = network("leaf-spine", json!({ "leaves": 16, "spines": 6, "hosts_per_leaf": 4 }));
        let inside = network("crossbar", json!({ "hosts": 8 }));
        let part = |network, tier_prefix| netloom_topology::Separate { network, prefix: "", tier_prefix };
        let parts =
            [part(&plane, ""), part(&plane, ""), part(&inside, "scale-up-"), part(&inside, "scale-up-")];
        let whole = Network::apart("planes", &parts).unwrap();
        let grouped = Grouped::of(&whole, Some(8));
        check(&whole, &grouped);
        let titles: Vec<&str> = grouped.titles.iter().map(|title| title.text.as_str()).collect();
        assert_eq!(titles[0], "12 core switches in 2 planes");
        assert_eq!(titles[1], "32 edge switches in 2 planes on 8 rails, 2 inside servers");
        let group = |name: &str| grouped.groups.iter().position(|group| group.name == name).unwrap();
        let counts = |name: &str| (grouped.groups[group(name)].switches, grouped.groups[group(name)].hosts);
        assert_eq!(counts("plane 0"), (6, 0));
        assert_eq!((counts("plane 1 rail 3"), counts("hosts of plane 1 rail 3")), ((2, 0), (0, 8)));
        assert_eq!((counts("scale-up networks"), counts("hosts of scale-up networks")), ((2, 0), (0, 16)));
        // No bundle joins two planes.
        let (one, other) = (group("plane 0"), group("plane 1 rail 0"));
        assert!(
            grouped.bundles.iter().all(|bundle| [bundle.a, bundle.b] != [one.min(other), one.max(other)])
        );
        // Where there are more rails than boxes, a box stands for a plane.
        let parts = [parts[0], parts[0], parts[0]];
        let three = Network::apart("planes", &parts).unwrap();
        let many = Grouped::of(&three, Some(16));
        check(&three, &many);
        assert_eq!(many.titles[1].text, "48 edge switches in 3 planes");
        let without = Grouped::of(&whole, None);
        check(&whole, &without);
        assert!(without.titles[1].text.starts_with("32 edge switches in 2 planes, 2 inside"));
    }

    #[test]
    fn other_networks_are_circles_of_their_groups() {
        let dragonfly = network("dragonfly", json!({ "hosts_per_switch": 4 }));
        let grouped = Grouped::of(&dragonfly, None);
        check(&dragonfly, &grouped);
        assert!(!grouped.is_tree && grouped.titles[0].text.contains("groups"), "{:?}", grouped.titles);
        // Links within a group are bundles of their own.
        assert!(grouped.bundles.iter().any(|bundle| bundle.a == bundle.b));
        for (kind, parameters) in [("slim-fly", json!({ "q": 17 })), ("crossbar", json!({ "hosts": 2000 }))] {
            let network = network(kind, parameters);
            check(&network, &Grouped::of(&network, None));
        }
    }
}
