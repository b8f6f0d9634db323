//! The fat-tree files (`.topo`) of htsim.
//!
//! A header (`Nodes`, `Tiers`, `Podsize` in hosts), then per tier of switches, 0 being the ToRs, `Tier i` with
//! `Downlink_speed_Gbps`, `Radix_Up`, `Radix_Down`, `Bundle` (parallel links down, counted in both radices),
//! `Oversubscribed`, `Downlink_Latency_ns`, `Switch_Latency_ns` and queue sizes. Names are case-insensitive.
//!
//! Switches have no latency of their own here. Half of each switch's latency goes to every link at it; since a path
//! between hosts enters and leaves each of its switches once, its total stays what it was.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use netloom_units::{Invalid, Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::xgft::{self, Tier};
use crate::formats::Reader;
use crate::network::Network;
use crate::topology::BuildContext;

/// A two- or three-level fat tree from an htsim `.topo` file.
///
/// Queue sizes are not part of a topology and are skipped. The latency of a switch is divided between the links on each side of it, half to each, so
/// that the latency of every path stays the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HtsimTopo {
    /// The file; relative paths start at the directory of the scenario.
    pub path: PathBuf,
}

/// The settings of the header or of one tier, in lower case, with their lines.
type Section = HashMap<String, (u64, usize)>;

const HEADER: [&str; 3] = ["nodes", "tiers", "podsize"];
const TIER: [&str; 9] = [
    "downlink_speed_gbps",
    "radix_up",
    "radix_down",
    "queue_up",
    "queue_down",
    "oversubscribed",
    "bundle",
    "switch_latency_ns",
    "downlink_latency_ns",
];

impl HtsimTopo {
    pub(crate) fn build(&self, context: &BuildContext<'_>) -> Result<Network, NetworkError> {
        let reader = Reader::open(&self.path, context)?;
        let (header, tiers) = sections(&reader)?;
        let tiers = xgft_tiers(&reader, &header, &tiers)?;
        xgft::build(&reader.file_name(), &tiers)
    }
}

fn sections(reader: &Reader) -> Result<(Section, Vec<Section>), NetworkError> {
    let mut header = Section::new();
    let mut tiers: Vec<Section> = Vec::new();
    for (number, line) in reader.lines() {
        let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_whitespace().collect();
        let [key, value] = words[..] else {
            if words.is_empty() {
                continue;
            }
            return Err(reader.error(number, "expected a name and a number"));
        };
        let key = key.to_ascii_lowercase();
        let value: u64 = reader.parse(number, value)?;
        if key == "tier" {
            if value != tiers.len() as u64 {
                return Err(reader.error(number, format!("expected tier {}, found {value}", tiers.len())));
            }
            tiers.push(Section::new());
            continue;
        }
        let (section, known) = match tiers.last_mut() {
            Some(tier) => (tier, &TIER[..]),
            None => (&mut header, &HEADER[..]),
        };
        if !known.contains(&key.as_str()) {
            return Err(reader
                .error(number, format!("unknown setting \"{key}\"; expected one of {}", known.join(", "))));
        }
        if let Some((_, first)) = section.insert(key.clone(), (value, number)) {
            return Err(reader.error(number, format!("{key} is already set on line {first}")));
        }
    }
    Ok((header, tiers))
}

fn xgft_tiers(reader: &Reader, header: &Section, tiers: &[Section]) -> Result<Vec<Tier>, NetworkError> {
    let required = |section: &Section, place: &str, key: &str| match section.get(key) {
        Some(&(value, line)) if value > 0 && value <= u64::from(u32::MAX) => Ok((value, line)),
        Some(&(value, line)) => {
            Err(reader.error(line, format!("{key}: expected a positive number, found {value}")))
        }
        None => Err(reader.error(0, format!("{place} has no {key}"))),
    };
    let (nodes, nodes_line) = required(header, "the header", "nodes")?;
    if nodes < 2 {
        return Err(reader.error(nodes_line, format!("nodes: expected at least 2 hosts, found {nodes}")));
    }
    let (count, count_line) = required(header, "the header", "tiers")?;
    if !(2..=3).contains(&count) || tiers.len() as u64 != count {
        let message =
            format!("expected 2 or 3 tiers and as many sections, found {count} and {}", tiers.len());
        return Err(reader.error(count_line, message));
    }
    let get = |tier: usize, key: &str| required(&tiers[tier], &format!("tier {tier}"), key);
    let or = |tier: usize, key: &str, default: u64| tiers[tier].get(key).map_or(default, |&(value, _)| value);
    // Hosts below one switch of each tier: of the ToRs, of a pod if there are three tiers, and all.
    let mut below = vec![get(0, "radix_down")?.0];
    if count == 3 {
        below.push(required(header, "the header", "podsize")?.0);
    }
    below.push(nodes);

    let mut result = Vec::new();
    for tier in 0..tiers.len() {
        let bundle = or(tier, "bundle", 1);
        let (radix_down, line) = get(tier, "radix_down")?;
        let hosts_per_child = if tier == 0 { 1 } else { below[tier - 1] };
        if !below[tier].is_multiple_of(hosts_per_child) {
            let message =
                format!("expected a multiple of the {hosts_per_child} hosts below, found {}", below[tier]);
            return Err(reader.error(nodes_line, message));
        }
        let children = below[tier] / hosts_per_child;
        if children.checked_mul(bundle) != Some(radix_down) {
            let message = format!(
                "radix_down of tier {tier}: expected {children} switches below times bundle {bundle}, found {radix_down}"
            );
            return Err(reader.error(line, message));
        }
        let parents = if tier == 0 { (1, 0) } else { get(tier - 1, "radix_up")? };
        if tier == 0 && bundle != 1 {
            return Err(reader.error(line, "expected bundle 1 in tier 0, since a host has one link"));
        }
        if tier > 0 && (bundle == 0 || !parents.0.is_multiple_of(bundle)) {
            let message = format!(
                "radix_up: expected a multiple of bundle {bundle} of tier {tier}, found {}",
                parents.0
            );
            return Err(reader.error(parents.1, message));
        }
        let (speed, line) = get(tier, "downlink_speed_gbps")?;
        let highest = Rate::HIGHEST.0 / Rate::from_gbps(1).0;
        if speed > highest {
            let message = format!("downlink_speed_gbps: expected at most {highest}, found {speed}");
            return Err(reader.error(line, message));
        }
        if tier > 0 {
            check_taper(reader, &tiers[tier - 1], speed, parents.0)?;
        }
        let switch_ns = |tier| or(tier, "switch_latency_ns", 0).min(u32::MAX.into());
        let both_switches_ns = switch_ns(tier) + if tier == 0 { 0 } else { switch_ns(tier - 1) };
        let link_ns = get(tier, "downlink_latency_ns")?.0;
        let narrow = |value: u64| u32::try_from(value).unwrap_or(u32::MAX);
        result.push(Tier {
            name: if count == 2 && tier == 1 { "leaf-spine".into() } else { xgft::tier_name(tier) },
            children: narrow(children),
            parents: narrow(parents.0 / bundle),
            bundle: narrow(bundle),
            cable: Cable {
                rate: Rate::from_gbps(speed),
                latency: Time::from_ns(link_ns) + Time(both_switches_ns * 500),
            },
        });
    }
    Ok(result)
}

/// `Oversubscribed` repeats what the radices say; a file that contradicts itself is refused.
fn check_taper(reader: &Reader, lower: &Section, speed_up: u64, radix_up: u64) -> Result<(), NetworkError> {
    let Some(&(taper, line)) = lower.get("oversubscribed") else { return Ok(()) };
    let value = |key: &str| lower.get(key).map_or(0, |&(value, _)| value);
    let (down, up) = (value("radix_down") * value("downlink_speed_gbps"), radix_up * speed_up);
    if up.checked_mul(taper) != Some(down) {
        let message = format!("oversubscribed {taper}, but {down} Gbps go down and {up} Gbps go up");
        return Err(reader.error(line, message));
    }
    Ok(())
}

impl Network {
    /// Whether the hosts of each leaf, and of each pod, have numbers that follow each other.
    fn is_numbered_by_place(&self) -> bool {
        let places: Vec<_> = (0..self.hosts())
            .map(|host| (self.pod(self.edge_switch(host)), self.edge_switch(host)))
            .collect();
        let (mut pods, mut leaves): (Vec<_>, Vec<_>) = places.into_iter().unzip();
        let has_runs = |names: &mut Vec<u32>| {
            names.dedup();
            let runs = names.len();
            names.sort_unstable();
            names.dedup();
            names.len() == runs
        };
        has_runs(&mut pods) && has_runs(&mut leaves)
    }

    /// The network as an htsim `.topo` file, which `htsim-topo` reads back; queue sizes are left out.
    ///
    /// # Errors
    /// If the network is no fat tree of two or three levels with one rate in whole Gb/s and one latency in whole
    /// nanoseconds per tier.
    pub fn to_htsim_topo(&self) -> Result<String, NetworkError> {
        let refuse = |found: &str| {
            let expected = "a fat tree of 2 or 3 levels, with one rate in whole Gbps and one latency in whole ns per tier";
            NetworkError::from(Invalid::new("htsim-topo", expected, found))
        };
        let levels = (self.hosts()..self.nodes()).map(|switch| self.level(switch)).max().unwrap_or(0);
        if !self.is_xgft() || !(2..=3).contains(&levels) {
            return Err(refuse(self.name()));
        }
        let first_at = |level: u8| (0..self.nodes()).find(|&node| self.level(node) == level).unwrap_or(0);
        let mut below = 1u32;
        let mut sections = String::new();
        let mut pod_size = self.hosts();
        for level in 1..=levels {
            let switch = first_at(level);
            let neighbours: Vec<_> =
                self.ports(switch).iter().map(|&channel| self.channel(channel).to).collect();
            let mut children: Vec<_> = neighbours.iter().filter(|&&node| self.level(node) < level).collect();
            let radix_down = narrow::<u32>(children.len());
            children.sort_unstable();
            children.dedup();
            let bundle = radix_down / narrow::<u32>(children.len().max(1));
            below = below.saturating_mul(narrow::<u32>(children.len()));
            if level == 2 && levels == 3 {
                pod_size = below;
            }
            let mut cables: Vec<_> = self
                .links()
                .iter()
                .filter(|link| self.level(link.b) == level)
                .map(|link| (link.rate, link.latency))
                .collect();
            cables.dedup();
            let [(rate, latency)] = cables[..] else {
                return Err(refuse("several rates or latencies in a tier"));
            };
            let gbps = Rate::from_gbps(1).0;
            if !rate.0.is_multiple_of(gbps) || !latency.0.is_multiple_of(1000) {
                return Err(refuse(&format!("{rate}, {latency}")));
            }
            writeln!(sections, "\nTier {}\nDownlink_speed_Gbps {}", level - 1, rate.0 / gbps)
                .expect("a string");
            writeln!(sections, "Radix_Down {radix_down}").expect("a string");
            if level < levels {
                writeln!(sections, "Radix_Up {}", narrow::<u32>(neighbours.len()) - radix_down)
                    .expect("a string");
            }
            writeln!(sections, "Bundle {bundle}\nDownlink_Latency_ns {}", latency.0 / 1000)
                .expect("a string");
            writeln!(sections, "Switch_Latency_ns 0").expect("a string");
        }
        if below != self.hosts() {
            return Err(refuse("levels of unlike switches"));
        }
        if !self.is_numbered_by_place() {
            return Err(refuse("hosts that are not numbered one leaf, and one pod, after the other"));
        }
        Ok(format!(
            "# {}\nNodes {}\nTiers {levels}\nPodsize {pod_size}\n{sections}",
            self.name(),
            self.hosts()
        ))
    }
}
