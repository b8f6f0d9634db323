//! Link use: the network as a picture with what every channel did, or every bundle of links where there are too many.

use netloom_record::{ChannelRecord, Totals};
use netloom_scenario::{Node, Scenario, Source, build_network};
use netloom_topology::{Network, NetworkBuilder};
use netloom_units::{Time, narrow};
use serde::Serialize;

use crate::curve::round;
use crate::groups::Grouped;
use crate::layout::{Layout, Shape};

/// Switches of a network that is drawn link by link; larger ones are drawn as groups.
pub(crate) const MOST_SWITCHES: u32 = 600;
/// The same of hosts: their dots would run into each other.
pub(crate) const MOST_HOSTS: u32 = 1200;
/// Channels of a network that is drawn link by link.
const MOST_CHANNELS: usize = 20_000;
/// Channels of all points together whose use a page holds one by one: a page stays below 5 MB, however many points it has.
const MOST_LISTED: usize = 400_000;
/// Channels in the table.
const HOTTEST: usize = 12;

/// A network as the page draws it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Map {
    pub(crate) name: String,
    pub(crate) width: f64,
    pub(crate) height: f64,
    pub(crate) tree: bool,
    tiers: Vec<String>,
    pub(crate) nodes: Vec<MapNode>,
    /// Ends (by their places in `nodes`), tier, and the number of its first channel; the second is the next number. Of groups the number
    /// of the bundle.
    pub(crate) links: Vec<(usize, usize, u8, u32)>,
    /// Of groups: links of every bundle, and what stands above the rows.
    pub(crate) bundles: Vec<u32>,
    pub(crate) titles: Vec<(String, f64, f64)>,
    #[serde(skip)]
    bundle_of: Vec<(u32, bool)>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct MapNode {
    pub(crate) name: String,
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) host: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<MapGroup>,
}

/// A node of the picture that stands for several.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct MapGroup {
    pub(crate) label: String,
    pub(crate) switches: u32,
    pub(crate) hosts: u32,
    pub(crate) width: f64,
    pub(crate) height: f64,
}

/// What the channels of one point did, mean over its runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct LinkUse {
    /// Utilisation by channel in thousandths; empty where the network is not drawn link by link.
    pub(crate) use_permille: Vec<u16>,
    /// The same by bundle, where groups are drawn: mean and most from the first group to the second, and back.
    pub(crate) bundles: Vec<[u16; 4]>,
    hottest: Vec<HotChannel>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
struct HotChannel {
    from: String,
    to: String,
    tier: String,
    utilisation: f64,
    /// The same of the time in which something was active.
    active_utilisation: f64,
    mean_queue_kb: f64,
    max_queue_kb: f64,
    drops: f64,
    paused: f64,
}

/// Adds up what channels did over the runs of a point.
#[derive(Clone, Debug, Default)]
pub(crate) struct LinkSums {
    channels: Vec<ChannelRecord>,
    utilisation: Vec<f64>,
    active: Vec<f64>,
    paused: Vec<f64>,
    runs: u32,
}

impl LinkSums {
    /// Adds a run. Runs of one point have the same network; channels of another are left out.
    pub(crate) fn add(&mut self, channels: Vec<ChannelRecord>, totals: &Totals) {
        let share = |time: Time| time.0 as f64 / totals.simulated.0.max(1) as f64;
        if self.runs == 0 {
            self.utilisation = channels.iter().map(|channel| channel.utilisation).collect();
            self.active = channels.iter().map(|channel| channel.active_utilisation).collect();
            self.paused = channels.iter().map(|channel| share(channel.paused)).collect();
            self.channels = channels;
        } else {
            for (i, channel) in channels.into_iter().enumerate().take(self.channels.len()) {
                self.utilisation[i] += channel.utilisation;
                self.active[i] += channel.active_utilisation;
                self.paused[i] += share(channel.paused);
                let sum = &mut self.channels[i];
                sum.mean_queue += channel.mean_queue;
                sum.max_queue = sum.max_queue.max(channel.max_queue);
                sum.drops += channel.drops;
            }
        }
        self.runs += 1;
    }

    /// The channels of the first run.
    pub(crate) fn channels(&self) -> &[ChannelRecord] {
        &self.channels
    }

    /// Means over the runs; of single channels or of bundles as the picture has them.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "about 0 to 1,000; saturates"
    )]
    pub(crate) fn link_use(&self, map: Option<&Map>) -> LinkUse {
        let runs = f64::from(self.runs.max(1));
        let mut order: Vec<usize> = (0..self.channels.len()).collect();
        // Of equally busy channels the one with the longer queue, then the lower number.
        order.sort_by(|&a, &b| {
            let queue = |i: usize| self.channels[i].mean_queue;
            self.utilisation[b]
                .total_cmp(&self.utilisation[a])
                .then(queue(b).total_cmp(&queue(a)))
                .then(a.cmp(&b))
        });
        let hot = |&i: &usize| {
            let channel = &self.channels[i];
            HotChannel {
                from: channel.from.to_string(),
                to: channel.to.to_string(),
                tier: channel.tier.to_string(),
                utilisation: round(self.utilisation[i] / runs),
                active_utilisation: round(self.active[i] / runs),
                mean_queue_kb: round(channel.mean_queue / runs * 1e-3),
                max_queue_kb: round(channel.max_queue as f64 * 1e-3),
                drops: round(channel.drops as f64 / runs),
                paused: round(self.paused[i] / runs),
            }
        };
        let permille = |sum: &f64| (sum / runs * 1000.0).round() as u16;
        let (use_permille, bundles) = match map {
            None => (Vec::new(), Vec::new()),
            Some(map) if map.bundle_of.is_empty() => {
                (self.utilisation.iter().map(permille).collect(), Vec::new())
            }
            Some(map) => {
                let use_of = map.bundle_use(&self.utilisation);
                (Vec::new(), use_of.iter().map(|sums| sums.each_ref().map(permille)).collect())
            }
        };
        LinkUse { use_permille, bundles, hottest: order.iter().take(HOTTEST).map(hot).collect() }
    }
}

/// Whether a page of `points` points lists the use of each of a network's `channels`.
fn lists_channels(channels: usize, points: usize) -> bool {
    channels <= MOST_CHANNELS && channels.saturating_mul(points) <= MOST_LISTED
}

/// Draws the network of an outcome, link by link or as groups; `None` if it cannot be known.
///
/// The scenario says what the network is. Where it names files that are gone, the channels do: then without levels and groups.
pub(crate) fn map(scenario: &str, channels: &[ChannelRecord], points: usize) -> Option<Map> {
    let network =
        network_of(scenario).filter(|network| is_that(network, channels)).or_else(|| wired(channels))?;
    let is_large = network.switches() > MOST_SWITCHES || network.hosts() > MOST_HOSTS;
    if is_large || !lists_channels(channels.len(), points) {
        return Some(map_of_groups(&network, &Grouped::of(&network, rails(scenario))));
    }
    let layout = Layout::of(&network);
    let mut places = vec![usize::MAX; network.nodes() as usize];
    let mut nodes = Vec::new();
    for node in 0..network.nodes() {
        if let Some((x, y)) = layout.places[node as usize] {
            places[node as usize] = nodes.len();
            let name = network.node_name(node);
            nodes.push(MapNode { name, x: round(x), y: round(y), host: network.is_host(node), group: None });
        }
    }
    let links = network.links().iter().enumerate().filter_map(|(number, link)| {
        let (a, b) = (places[link.a as usize], places[link.b as usize]);
        (a != usize::MAX && b != usize::MAX).then_some((a, b, link.tier, 2 * narrow::<u32>(number)))
    });
    Some(Map {
        name: network.name().to_owned(),
        width: round(layout.size.0),
        height: round(layout.size.1),
        tree: layout.shape == Shape::Rows,
        tiers: network.tiers().to_vec(),
        links: links.collect(),
        nodes,
        bundles: Vec::new(),
        titles: Vec::new(),
        bundle_of: Vec::new(),
    })
}

fn map_of_groups(network: &Network, grouped: &Grouped) -> Map {
    let node = |group: &crate::groups::Group| MapNode {
        name: group.name.clone(),
        x: round(group.at.0),
        y: round(group.at.1),
        host: group.switches == 0,
        group: Some(MapGroup {
            label: group.label.clone(),
            switches: group.switches,
            hosts: group.hosts,
            width: round(2.0 * group.half.0),
            height: round(2.0 * group.half.1),
        }),
    };
    let links = grouped.bundles.iter().enumerate();
    Map {
        name: network.name().to_owned(),
        width: round(grouped.size.0),
        height: round(grouped.size.1),
        tree: grouped.is_tree,
        tiers: network.tiers().to_vec(),
        nodes: grouped.groups.iter().map(node).collect(),
        links: links
            .map(|(number, bundle)| (bundle.a, bundle.b, bundle.tier, narrow::<u32>(number)))
            .collect(),
        bundles: grouped.bundles.iter().map(|bundle| bundle.links).collect(),
        titles: grouped.titles.iter().map(|title| (title.text.clone(), title.at.0, title.at.1)).collect(),
        bundle_of: grouped.bundle_of.clone(),
    }
}

impl Map {
    /// Mean and most of what channels were used, by bundle: from its first group to its second, and back.
    fn bundle_use(&self, by_channel: &[f64]) -> Vec<[f64; 4]> {
        let mut sums = vec![[0.0f64; 4]; self.bundles.len()];
        for (link, &(bundle, is_back)) in self.bundle_of.iter().enumerate() {
            let sums = &mut sums[bundle as usize];
            for way in 0..2 {
                let used = by_channel.get(2 * link + way).copied().unwrap_or(0.0);
                let at = 2 * (way ^ usize::from(is_back));
                sums[at] += used;
                sums[at + 1] = sums[at + 1].max(used);
            }
        }
        for (sums, &links) in sums.iter_mut().zip(&self.bundles) {
            sums[0] /= f64::from(links);
            sums[2] /= f64::from(links);
        }
        sums
    }
}

/// How many rails the leaf switches take turns at, if the servers' wiring has rails.
fn rails(scenario: &str) -> Option<u32> {
    let table: toml::Table = scenario.parse().ok()?;
    let servers = table.get("servers")?.as_table()?;
    let has_rails = servers.get("wiring")?.as_str()? == "rail-optimised";
    let nics = servers.get("nics")?.as_integer()?;
    // With several ports of a NIC in one network a rail has as many leaf switches in a row.
    u32::try_from(nics).ok().filter(|_| has_rails && !servers.contains_key("ports"))
}

fn network_of(scenario: &str) -> Option<Network> {
    let document = Node::parse(&Source::new("scenario.toml", scenario)).ok()?;
    let scenario = Scenario::read(&document).ok()?;
    build_network(&scenario, &document).ok()
}

/// Whether the network has these channels: the file that it comes from may have changed since.
fn is_that(network: &Network, channels: &[ChannelRecord]) -> bool {
    network.channels() as usize == channels.len()
        && channels.iter().enumerate().all(|(number, record)| {
            let channel = network.channel(narrow::<u32>(number));
            *network.node_name(channel.from) == *record.from && *network.node_name(channel.to) == *record.to
        })
}

/// The network that the channels alone tell.
fn wired(channels: &[ChannelRecord]) -> Option<Network> {
    let number = |name: &str, letter: char| name.strip_prefix(letter)?.parse::<u32>().ok();
    let names = || channels.iter().flat_map(|channel| [&channel.from, &channel.to]);
    let count =
        |letter: char| names().filter_map(|name| number(name, letter)).max().map_or(0, |most| most + 1);
    let (hosts, switches) = (count('h'), count('s'));
    let mut builder = NetworkBuilder::new(format!("network of {hosts} hosts"));
    builder.add_hosts(hosts);
    for _ in 0..switches {
        builder.add_switch(0, 0);
    }
    let node = |name: &str| number(name, 'h').or_else(|| Some(hosts + number(name, 's')?));
    // Channels 2l and 2l + 1 are the two directions of link l.
    for channel in channels.iter().step_by(2) {
        let tier = builder.tier(&channel.tier);
        builder.link(node(&channel.from)?, node(&channel.to)?, channel.rate, Time::from_ns(1), tier);
    }
    builder.build().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::network;
    use serde_json::json;

    fn records(network: &Network) -> Vec<ChannelRecord> {
        let record = |number: u32| {
            let channel = network.channel(number);
            ChannelRecord {
                channel: number,
                from: network.node_name(channel.from).into(),
                to: network.node_name(channel.to).into(),
                tier: network.tiers()[usize::from(channel.tier)].as_str().into(),
                rate: channel.rate,
                busy: Time::from_us(u64::from(number) % 7),
                ..ChannelRecord::default()
            }
        };
        (0..network.channels()).map(record).collect()
    }

    const SCENARIO: &str = "[topology]\nkind = \"fat-tree\"\nk = 4\n";

    #[test]
    fn the_scenario_tells_the_network_and_else_the_channels_do() {
        let records = records(&network("fat-tree", json!({ "k": 4 })));
        let drawn = map(SCENARIO, &records, 1).unwrap();
        assert!(drawn.tree && drawn.nodes.len() == 36 && drawn.links.len() == 48);
        // A scenario that names another network, or a file that is gone.
        for other in
            ["[topology]\nkind = \"crossbar\"\n", "[topology]\nkind = \"json\"\nfile = \"gone.json\"\n"]
        {
            let drawn = map(other, &records, 1).unwrap();
            assert_eq!((drawn.tree, drawn.nodes.len(), drawn.links.len()), (false, 36, 48));
        }
        assert_eq!(drawn.links[0].3, 0);
    }

    #[test]
    fn utilisation_is_the_mean_over_the_runs() {
        let mut sums = LinkSums::default();
        let channel = |busy: u32| ChannelRecord {
            utilisation: f64::from(busy) / 10.0,
            active_utilisation: f64::from(busy) / 8.0,
            max_queue: busy.into(),
            ..ChannelRecord::default()
        };
        let totals = Totals { simulated: Time::from_us(10), ..Totals::default() };
        sums.add(vec![channel(2), channel(6)], &totals);
        sums.add(vec![channel(4), channel(10)], &totals);
        assert!(sums.link_use(None).use_permille.is_empty());
        let four = network("crossbar", json!({ "hosts": 2 }));
        let map = map("", &self::records(&four), 1).unwrap();
        let link_use = sums.link_use(Some(&map));
        assert_eq!(link_use.use_permille, [300, 800]);
        let hottest = &link_use.hottest[0];
        assert_eq!((hottest.utilisation, hottest.active_utilisation, hottest.max_queue_kb), (0.8, 1.0, 0.01));
    }

    #[test]
    fn large_networks_are_groups_whose_bundles_have_means_and_the_most() {
        let network = network("fat-tree", json!({ "k": 26 }));
        let records = records(&network);
        let map = map("[topology]\nkind = \"fat-tree\"\nk = 26\n", &records, 1).unwrap();
        assert_eq!(map.bundles.iter().sum::<u32>() as usize, network.links().len());
        let mut sums = LinkSums::default();
        // All channels of the first host are used: up by a half, down by a quarter.
        let mut used = records.clone();
        let first = network.links().iter().position(|link| link.a == 0).unwrap();
        used[2 * first].utilisation = 0.5;
        used[2 * first + 1].utilisation = 0.25;
        sums.add(used, &Totals { simulated: Time::from_us(10), ..Totals::default() });
        let link_use = sums.link_use(Some(&map));
        assert!(link_use.use_permille.is_empty());
        let of = map.bundle_of[first].0 as usize;
        let links = f64::from(map.bundles[of]);
        let mean = |share: f64| (1000.0 * share / links).round() as u16;
        let mut found = link_use.bundles[of];
        // Which group of the two is the first one does not matter here.
        if found[1] < found[3] {
            found.rotate_left(2);
        }
        assert_eq!(found, [mean(0.5), 500, mean(0.25), 250]);
        assert!(link_use.bundles.iter().enumerate().all(|(i, used)| i == of || *used == [0; 4]));
    }

    #[test]
    fn many_points_share_what_a_page_can_hold() {
        let network = network("fat-tree", json!({ "k": 16 }));
        let records = records(&network);
        let drawn = |points| map("[topology]\nkind = \"fat-tree\"\nk = 16\n", &records, points).unwrap();
        assert!(drawn(1).bundle_of.is_empty() && !drawn(100).bundle_of.is_empty());
    }
}
