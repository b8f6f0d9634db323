//! Offered load beyond what a network carries.

use netloom_units::narrow;
use std::collections::BTreeMap;

use netloom_topology::{Network, NodeId};
use netloom_workload::{Destination, Pattern, Traffic, Wiring};

use crate::scenario::Scenario;

/// An open loop that offers links more than they carry: on a tree the up links of a level, elsewhere what any routing would need of all links or of those
/// between two parts of the network.
pub(super) fn warning(scenario: &Scenario, network: &Network) -> Option<String> {
    if scenario.workload.options.ranks.is_some() {
        return None;
    }
    let loops = open_loops(&scenario.workload.pattern);
    if loops.is_empty() {
        return None;
    }
    // Links to a scale-up network are not of the load.
    if scenario.servers.as_ref().is_some_and(|servers| servers.scale_up.is_some()) {
        return None;
    }
    let (share, what) = match network.is_tree() {
        true => of_levels(scenario, network, &loops),
        // A server's own NICs send each other nothing, which the bounds of other networks do not know.
        false if scenario.servers.is_some() => None,
        false => of_any_routing(network, &loops),
    }?;
    let load = match &loops[..] {
        [open] => format!("{}: a load of {}", open.field, open.load),
        _ => {
            let fields: Vec<&str> = loops.iter().map(|open| open.field.as_str()).collect();
            let sum: f64 = loops.iter().map(|open| open.load).sum();
            // Decimal fractions are no binary ones: 0.1 and 0.2 are 0.3.
            format!("{}: a load of {} together", fields.join(", "), (sum * 1e9).round() / 1e9)
        }
    };
    let (of, by) = what;
    Some(format!("{load} offers {of} {:.0}% of what {by}: queues grow as long as it lasts", 100.0 * share))
}

/// How much more is offered than is carried, to what, and of what that is.
type Excess = (f64, (String, String));

/// The lowest level of a tree whose up links carry less than they are offered.
fn of_levels(scenario: &Scenario, network: &Network, loops: &[OpenLoop]) -> Option<Excess> {
    // Of a server or GPU, in each plane.
    let nics = scenario.servers.as_ref().map_or(1, |servers| servers.nics / servers.gpus.unwrap_or(1));
    let (ports, planes) = scenario.servers.as_ref().map_or((1, 1), |servers| (servers.ports, servers.planes));
    let ends = f64::from(network.hosts() / (nics * ports * planes));
    // Those that a host, or a NIC of a server, reaches below a switch: of a group with optimised rails one NIC each is at a leaf.
    let has_own_leaves =
        scenario.servers.as_ref().is_some_and(|servers| servers.wiring == Wiring::RailOptimised);
    let ends_below = |level: u8| match hosts_below(network, level) {
        hosts if level == 1 && has_own_leaves => hosts,
        // A NIC has no two ports at one leaf.
        hosts if level == 1 => hosts / nics,
        hosts => hosts / (nics * ports),
    };
    let of_hosts: f64 = (0..network.hosts()).map(|host| network.host_rate(host).0 as f64).sum();
    let top = (network.hosts()..network.nodes()).map(|switch| network.level(switch)).max()?;
    for level in 1..top {
        let up = network
            .links()
            .iter()
            .filter(|link| network.level(link.a) == level && network.level(link.b) == level + 1);
        let (mut capacity, mut tier) = (0.0, None);
        for link in up {
            capacity += link.rate.0 as f64;
            tier.get_or_insert(link.tier);
        }
        let upwards: f64 = loops
            .iter()
            .map(|open| {
                // Destinations that are excluded make the rest likelier.
                let excluded = f64::from(match open.destination {
                    Destination::Any => 1,
                    Destination::OtherRack => ends_below(1),
                    Destination::OtherPod => ends_below(top - 1),
                });
                let below = f64::from(ends_below(level)).max(excluded);
                of_hosts * open.load * (ends - below) / (ends - excluded).max(1.0)
            })
            .sum();
        if upwards > capacity {
            let tier = tier.map_or("", |tier| network.tiers()[usize::from(tier)].as_str());
            return Some((upwards / capacity, (format!("the tier {tier}"), "its up links carry".to_owned())));
        }
    }
    None
}

/// The narrowest of what bounds any routing on any network: all links between switches, of which a packet crosses as many as a shortest path has, and
/// the links that lead from the first switches to the others, for however many first ones. Generators number switches by group and dimension, so that these are the
/// cuts between groups and halves; whatever the numbers are, they are cuts.
fn of_any_routing(network: &Network, loops: &[OpenLoop]) -> Option<Excess> {
    let bounds = [of_all_links(network, loops), of_first_switches(network, loops)];
    let widest = bounds.into_iter().flatten().max_by(|a, b| a.0.total_cmp(&b.0));
    widest.filter(|(share, _)| *share > 1.0)
}

/// Breadth-first work, in sources × links, up to which distances are measured: 65,536 hosts need less than a tenth of it.
const MOST_WORK: u64 = 10_000_000_000;

/// What all links between switches are offered together. Where switches have unlike numbers of hosts, or destinations are in other pods, nothing is said.
fn of_all_links(network: &Network, loops: &[OpenLoop]) -> Option<Excess> {
    let graph = network.router_graph();
    let sources: Vec<u32> = (0..graph.routers()).filter(|&router| graph.hosts(router) > 0).collect();
    let each = graph.hosts(*sources.first()?);
    let is_uniform = sources.iter().all(|&router| graph.hosts(router) == each);
    let work = (sources.len() as u64).saturating_mul(graph.edges().len() as u64);
    if !is_uniform || work > MOST_WORK || loops.iter().any(|open| open.destination == Destination::OtherPod) {
        return None;
    }
    let apart = graph.distance_histogram(&sources, |router| graph.hosts(router) > 0).mean()?;
    let (hosts, each) = (f64::from(network.hosts()), f64::from(each));
    let sent: f64 = (0..network.hosts()).map(|host| network.host_rate(host).0 as f64).sum();
    let crossed = |open: &OpenLoop| match open.destination {
        // Some destinations are at the same switch.
        Destination::Any => apart * (hosts - each) / (hosts - 1.0),
        Destination::OtherRack | Destination::OtherPod => apart,
    };
    let hops = |open: &OpenLoop| sent * open.load * crossed(open);
    let links = network.links().iter().filter(|link| !network.is_host(link.a) && !network.is_host(link.b));
    let capacity: f64 = links.map(|link| 2.0 * link.rate.0 as f64).sum();
    let (demand, load): (f64, f64) =
        (loops.iter().map(hops).sum(), loops.iter().map(|open| sent * open.load).sum());
    let by =
        format!("they carry, as a packet crosses {:.2} of them on a shortest path on average", demand / load);
    (capacity > 0.0).then(|| (demand / capacity, ("all links between switches together".to_owned(), by)))
}

/// What the links from the first switches to all others are offered, for that number of first ones for which it is the most.
fn of_first_switches(network: &Network, loops: &[OpenLoop]) -> Option<Excess> {
    let switches = network.switches() as usize;
    let index = |switch: NodeId| (switch - network.hosts()) as usize;
    // Capacity between the first switches, up to each, and the others.
    let mut changes = vec![0i128; switches + 1];
    for link in network.links().iter().filter(|link| !network.is_host(link.a) && !network.is_host(link.b)) {
        changes[index(link.a).min(index(link.b))] += i128::from(link.rate.0);
        changes[index(link.a).max(index(link.b))] -= i128::from(link.rate.0);
    }
    let mut demand = vec![0.0; switches];
    for open in loops {
        add_demand(network, open, &mut demand);
    }
    let mut capacity = 0;
    let mut worst: Option<(f64, usize)> = None;
    for (last, (change, demand)) in changes.iter().zip(&demand).enumerate().take(switches.saturating_sub(1)) {
        capacity += change;
        let share = demand / capacity as f64;
        // Cuts that are as narrow are the same by symmetry; rounding must not choose among them.
        if capacity > 0 && worst.is_none_or(|(most, _)| share > most * (1.0 + 1e-9)) {
            worst = Some((share, last));
        }
    }
    let (share, last) = worst?;
    let name = |switch: usize| network.node_name(network.hosts() + narrow::<NodeId>(switch));
    let first = if last == 0 { name(0) } else { format!("{} to {}", name(0), name(last)) };
    Some((share, (format!("the links between {first} and the other switches"), "they carry".to_owned())))
}

/// Adds, per switch, what a loop sends from the hosts at the switches up to it to those at later ones.
fn add_demand(network: &Network, open: &OpenLoop, demand: &mut [f64]) {
    let hosts = f64::from(network.hosts());
    // Hosts that do not send to each other are of one group, the host itself among them.
    let groups: Vec<u32> = match open.destination {
        Destination::Any | Destination::OtherRack => (0..network.switches()).collect(),
        Destination::OtherPod => {
            (network.hosts()..network.nodes()).map(|switch| network.pod(switch)).collect()
        }
    };
    let mut at: Vec<(f64, f64)> = vec![(0.0, 0.0); groups.len()];
    let mut sizes: BTreeMap<u32, f64> = BTreeMap::new();
    for host in 0..network.hosts() {
        let switch = (network.edge_switch(host) - network.hosts()) as usize;
        at[switch].0 += 1.0;
        at[switch].1 += network.host_rate(host).0 as f64;
        *sizes.entry(groups[switch]).or_default() += 1.0;
    }
    let mut later = sizes.clone();
    // What the first switches send per host elsewhere; what of that would go to later hosts of their own groups, to which they do not send.
    let (mut first, mut each, mut own) = (0.0, 0.0, 0.0);
    let mut by_group: BTreeMap<u32, f64> = BTreeMap::new();
    for ((demand, (count, rate)), group) in demand.iter_mut().zip(at).zip(groups) {
        let size = sizes.get(&group).copied().unwrap_or(0.0);
        let excluded = if open.destination == Destination::Any { 1.0 } else { size };
        let others = (hosts - excluded).max(1.0);
        first += count;
        each += rate / others;
        if open.destination == Destination::OtherPod {
            let left = later.entry(group).or_default();
            let sent = by_group.entry(group).or_default();
            own -= *sent * *left;
            *left -= count;
            *sent += rate / others;
            own += *sent * *left;
        }
        *demand += open.load * ((hosts - first) * each - own);
    }
}

/// An open loop whose destinations are drawn.
struct OpenLoop {
    /// Where its load is written.
    field: String,
    load: f64,
    destination: Destination,
}

/// Those of a workload that go on at the same time.
fn open_loops(pattern: &Pattern) -> Vec<OpenLoop> {
    let (load, traffic, destination) = match pattern {
        Pattern::Poisson(poisson) => (poisson.load, poisson.traffic, poisson.destination),
        Pattern::Bernoulli(frames) => (frames.load, frames.traffic, frames.destination),
        Pattern::Bursty(frames) => (frames.load, frames.traffic, frames.destination),
        Pattern::Mix(mix) => {
            let parts = mix.parts.iter().enumerate().filter(|(_, part)| part.options.ranks.is_none());
            let loops = parts.flat_map(|(i, part)| {
                let of_part = open_loops(&part.pattern).into_iter();
                of_part.map(move |open| OpenLoop { field: format!("workload.parts.{i}.load"), ..open })
            });
            return loops.collect();
        }
        _ => return Vec::new(),
    };
    let is_drawn = matches!(traffic, Traffic::Uniform | Traffic::RandomPermutation);
    let open = is_drawn.then(|| OpenLoop { field: "workload.load".to_owned(), load, destination });
    open.into_iter().collect()
}

/// Most hosts below one switch of a level.
fn hosts_below(network: &Network, level: u8) -> u32 {
    let mut below = vec![0u32; network.nodes() as usize];
    below[..network.hosts() as usize].fill(1);
    for at in 1..=level {
        for switch in (network.hosts()..network.nodes()).filter(|&switch| network.level(switch) == at) {
            let mut children: Vec<NodeId> =
                network.ports(switch).iter().map(|&port| network.channel(port).to).collect();
            children.retain(|&child| network.level(child) < at);
            children.sort_unstable();
            children.dedup();
            below[switch as usize] = children.iter().map(|&child| below[child as usize]).sum();
        }
    }
    let of_level = (network.hosts()..network.nodes()).filter(|&switch| network.level(switch) == level);
    // Edge switches of a pod share no hosts, but several switches above share the same: no more than all.
    of_level.map(|switch| below[switch as usize]).max().unwrap_or(0).min(network.hosts())
}
