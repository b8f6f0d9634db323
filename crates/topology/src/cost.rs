//! What a network costs to buy and to power (Besta and Hoefler, SC 2014, section VI).
//!
//! Prices of switches grow linearly with their ports, prices of cables with their length and rate. Lengths come from a
//! layout in racks on a near-square grid: cables from hosts and between switches of one rack are electric, cables
//! between racks are optical and run along the grid. A rack holds the switches of one pod or group; the core switches of
//! a fat tree stand in the most central racks, as many in each as a pod has; where there are no pods, racks hold
//! ⌈√(2·switches)⌉ consecutive switches, which is what a rack of a Slim Fly of that size holds.

use netloom_units::narrow;
use serde::{Deserialize, Serialize};

use crate::network::Network;

/// Coefficients of the model; the defaults are in `cost.toml` beside this crate's sources.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CostModel {
    /// Electric (copper) cables.
    pub electric: CablePrice,
    /// Optical (fibre) cables, transceivers included.
    pub optical: CablePrice,
    /// Switches.
    pub switch: SwitchPrice,
    /// Where things stand.
    pub layout: Layout,
}

/// Price of a cable: `(per_metre · length + fixed) · Gb/s`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CablePrice {
    /// Dollars per metre and Gb/s.
    pub per_metre: f64,
    /// Dollars per Gb/s.
    pub fixed: f64,
}

/// Price and power of a switch with k ports in use: `per_port · k + fixed`, at least 0.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SwitchPrice {
    /// Dollars per port.
    pub per_port: f64,
    /// Dollars.
    pub fixed: f64,
    /// Watts per port.
    pub watts_per_port: f64,
}

/// Lengths, in metres.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Layout {
    /// Cable from a host to its switch.
    pub host_cable_metres: f64,
    /// Mean cable between two switches of one rack.
    pub rack_cable_metres: f64,
    /// Distance of neighbouring racks.
    pub rack_pitch_metres: f64,
    /// What an optical cable needs beyond the distance of its racks.
    pub optical_overhead_metres: f64,
}

/// A bill of cables of one kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cables {
    /// How many.
    pub count: u64,
    /// Total length in metres.
    pub metres: f64,
    /// Total price in dollars.
    pub dollars: f64,
}

/// What a network costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// All switches, in dollars.
    pub switch_dollars: f64,
    /// Cables from hosts to switches.
    pub host_cables: Cables,
    /// Electric cables between switches.
    pub electric_cables: Cables,
    /// Optical cables between switches.
    pub optical_cables: Cables,
    /// Power of all switches, in watts.
    pub watts: f64,
    /// Number of racks.
    pub racks: u32,
    /// Switches and cables, in dollars.
    pub dollars: f64,
    /// The same per host.
    pub dollars_per_host: f64,
    /// Power per host, in watts.
    pub watts_per_host: f64,
}

impl CostModel {
    /// The coefficients of the Slim Fly paper.
    pub fn published() -> Self {
        toml::from_str(include_str!("../cost.toml")).expect("the crate's own data file is well-formed")
    }

    /// Prices a network.
    pub fn price(&self, network: &Network) -> Cost {
        let racks = Racks::place(network);
        let (mut host, mut electric, mut optical) = (Cables::default(), Cables::default(), Cables::default());
        let add = |cables: &mut Cables, price: CablePrice, metres: f64, gbps: f64| {
            cables.count += 1;
            cables.metres += metres;
            cables.dollars += (price.per_metre * metres + price.fixed) * gbps;
        };
        for link in network.links() {
            let gbps = link.rate.0 as f64 / 1e9;
            if network.is_host(link.a) || network.is_host(link.b) {
                add(&mut host, self.electric, self.layout.host_cable_metres, gbps);
                continue;
            }
            let steps = racks.steps_between(link.a - network.hosts(), link.b - network.hosts());
            if let Some(steps) = steps {
                let metres =
                    f64::from(steps) * self.layout.rack_pitch_metres + self.layout.optical_overhead_metres;
                add(&mut optical, self.optical, metres, gbps);
            } else {
                add(&mut electric, self.electric, self.layout.rack_cable_metres, gbps);
            }
        }
        let ports = |switch| network.ports(switch).len() as f64;
        let switches = || network.hosts()..network.nodes();
        let switch_price = |switch| (self.switch.per_port * ports(switch) + self.switch.fixed).max(0.0);
        let switch_dollars: f64 = switches().map(switch_price).sum();
        let watts = switches().map(ports).sum::<f64>() * self.switch.watts_per_port;
        let dollars = switch_dollars + host.dollars + electric.dollars + optical.dollars;
        let hosts = f64::from(network.hosts());
        Cost {
            switch_dollars,
            host_cables: host,
            electric_cables: electric,
            optical_cables: optical,
            watts,
            racks: narrow::<u32>(racks.cells.len()),
            dollars,
            dollars_per_host: dollars / hosts,
            watts_per_host: watts / hosts,
        }
    }
}

/// Which switch stands where.
struct Racks {
    /// Rack of each switch.
    rack: Vec<u32>,
    /// Column and row of each rack.
    cells: Vec<(u32, u32)>,
}

impl Racks {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 2¹⁷")]
    fn place(network: &Network) -> Racks {
        let switches = network.switches();
        let pods: Vec<u32> = (network.hosts()..network.nodes()).map(|switch| network.pod(switch)).collect();
        // A file may number them as it likes.
        let mut numbers: Vec<u32> = pods.iter().copied().filter(|&pod| pod != u32::MAX).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let pod_count = narrow::<u32>(numbers.len());
        let pods: Vec<u32> =
            pods.iter().map(|pod| numbers.binary_search(pod).map_or(u32::MAX, narrow::<u32>)).collect();
        let cores = narrow::<u32>(pods.iter().filter(|&&pod| pod == u32::MAX).count());
        let mut rack: Vec<u32> = pods;
        let mut core_racks = 0;
        if pod_count <= 1 {
            let per_rack = (2.0 * f64::from(switches)).sqrt().ceil() as u32;
            rack = (0..switches).map(|switch| switch / per_rack).collect();
        } else {
            let per_rack = ((switches - cores) / pod_count).max(1);
            let in_core = rack.iter_mut().filter(|rack| **rack == u32::MAX);
            in_core.zip(0..).for_each(|(rack, core)| *rack = pod_count + core / per_rack);
            core_racks = cores.div_ceil(per_rack);
        }
        let racks = rack.iter().max().map_or(0, |&rack| rack + 1);
        Racks { rack, cells: grid(racks, core_racks) }
    }

    /// Steps along the grid between the racks of two switches, or `None` if they share one.
    fn steps_between(&self, a: u32, b: u32) -> Option<u32> {
        let (a, b) = (self.rack[a as usize], self.rack[b as usize]);
        let ((ax, ay), (bx, by)) = (self.cells[a as usize], self.cells[b as usize]);
        (a != b).then(|| ax.abs_diff(bx) + ay.abs_diff(by))
    }
}

/// Cells of a near-square grid, row by row, for the racks; the last `central` racks get the cells nearest to its middle.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most 2¹⁶")]
fn grid(racks: u32, central: u32) -> Vec<(u32, u32)> {
    let columns = f64::from(racks).sqrt().ceil() as u32;
    let mut cells: Vec<(u32, u32)> = (0..racks).map(|i| (i % columns, i / columns)).collect();
    let rows = racks.div_ceil(columns.max(1));
    // Distances from the middle are doubled to stay whole.
    let from_middle = |&(x, y): &(u32, u32)| {
        (2 * x).abs_diff(columns.saturating_sub(1)) + (2 * y).abs_diff(rows.saturating_sub(1))
    };
    let mut by_distance = cells.clone();
    by_distance.sort_by_key(|cell| (from_middle(cell), cell.1, cell.0));
    let middle = &by_distance[..central as usize];
    cells.retain(|cell| !middle.contains(cell));
    cells.extend(middle);
    cells
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::{Dragonfly, FatTree, HyperX, SlimFly, Xpander};
    use crate::topology::context;
    use netloom_units::{Rate, Time};

    /// Switch dollars, links and watts, per host; they do not depend on the layout.
    fn per_host(network: &Network) -> (f64, f64, f64) {
        let cost = CostModel::published().price(network);
        let hosts = f64::from(network.hosts());
        let cables = cost.host_cables.count + cost.electric_cables.count + cost.optical_cables.count;
        assert_eq!(cables, network.links().len() as u64);
        (cost.switch_dollars / hosts, cables as f64 / hosts, cost.watts_per_host)
    }

    #[test]
    fn switches_and_power_per_host_of_the_published_networks() {
        let cases = [
            (SlimFly::default().build(&context(1)), 968.0, 1.97, 8.2),
            (
                SlimFly { hosts_per_switch: Some(14), ..Default::default() }.build(&context(1)),
                1012.0,
                2.04,
                8.6,
            ),
            (Xpander::default().build(&context(1)), 995.0, 2.0, 8.4),
            (HyperX::default().build(&context(1)), 1312.0, 2.5, 11.2),
            (Dragonfly::default().build(&context(1)), 1246.0, 2.44, 10.9),
            (FatTree { k: Some(36), ..Default::default() }.build(&context(1)), 1628.0, 3.0, 14.0),
        ];
        for (network, dollars, cables, watts) in cases {
            let network = network.unwrap();
            let found = per_host(&network);
            assert!((found.0 - dollars).abs() < 0.6, "{}: {found:?}", network.name());
            assert!((found.1 - cables).abs() < 0.01, "{}: {found:?}", network.name());
            assert!((found.2 - watts).abs() < 0.06, "{}: {found:?}", network.name());
        }
    }

    #[test]
    fn pods_of_any_numbers_are_racks_one_after_the_other() {
        let priced = |number: fn(u32) -> u32| {
            let mut builder = crate::NetworkBuilder::new("pods");
            let (rate, latency) = (Rate::from_gbps(100), Time::ZERO);
            let (hosts, tier) = (builder.add_hosts(4), builder.tier("link"));
            let pods: Vec<u32> = (0..4).map(|pod| builder.add_switch(0, number(pod))).collect();
            hosts.zip(&pods).for_each(|(host, &pod)| _ = builder.link(host, pod, rate, latency, tier));
            pods.windows(2).for_each(|pair| _ = builder.link(pair[0], pair[1], rate, latency, tier));
            CostModel::published().price(&builder.build().unwrap())
        };
        let usual = priced(|pod| pod);
        assert_eq!(usual.racks, 4);
        assert_eq!(priced(|pod| u32::MAX - 9 + pod), usual);
    }

    #[test]
    fn a_slim_fly_stands_in_q_racks() {
        let cost = CostModel::published()
            .price(&SlimFly { q: Some(5), ..Default::default() }.build(&context(1)).unwrap());
        // Two groups of 5 switches with 5 local links each, and 5 links between them; 2q links between any two racks.
        assert_eq!((cost.racks, cost.electric_cables.count, cost.optical_cables.count), (5, 5 * 15, 10 * 10));
    }

    #[test]
    fn pods_are_electric_and_cores_central() {
        let network = FatTree { k: Some(4), ..Default::default() }.build(&context(1)).unwrap();
        let cost = CostModel::published().price(&network);
        assert_eq!((cost.electric_cables.count, cost.optical_cables.count, cost.racks), (16, 16, 5));
        // A 3 x 2 grid with 5 racks: the cores' cell is in the middle column of the first row.
        let racks = Racks::place(&network);
        assert_eq!(racks.cells[4], (1, 0));
        // Pods at distances 1, 1, 2, 1 with 4 cables of 2 m more each.
        assert_eq!(cost.optical_cables.metres, 4.0 * (1.0 + 1.0 + 2.0 + 1.0) + 16.0 * 2.0);
        let gbps = 200.0;
        assert!((cost.host_cables.dollars - 16.0 * (0.4079 + 0.5771) * gbps).abs() < 1e-6);
    }

    #[test]
    fn fibre_is_cheaper_beyond_21_metres() {
        let CostModel { electric, optical, .. } = CostModel::published();
        let crossover = (optical.fixed - electric.fixed) / (electric.per_metre - optical.per_metre);
        assert!((crossover - 21.2).abs() < 0.05);
    }
}
