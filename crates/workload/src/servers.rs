//! Servers with several NICs, planes and GPUs: which hosts of the network belong to which endpoint of the workload, and how its messages are
//! spread over them.
//!
//! A network knows hosts with one link each. Without what is written here each of them is an endpoint of the workload. With it an endpoint is a
//! server, or one of the GPUs of a server, and has several of these hosts as its ports: a message, or each part of a striped one, goes from port r
//! of the sender to port r of the receiver. Planes and scale-up networks are networks of their own ([`Servers::network`]), so that the same
//! ports of two endpoints reach each other, and no others do.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use netloom_topology::{
    BuildContext, Complete, Crossbar, HostId, Network, NetworkError, NodeId, Separate, Topology,
};
use netloom_units::random::mix;
use netloom_units::{Bytes, Invalid, Rate, Time, narrow};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::bond::Bond;

/// Servers with several NICs, planes or GPUs. Each port of a NIC is a host of the network, with its own link, transport and queues; the workload addresses servers,
/// or their GPUs. A message arrives at the ports with the same numbers as those from which it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Servers {
    /// NICs of a server, at most 64, or 64 for each GPU that is an endpoint of its own. The hosts of the network are a multiple of it.
    pub nics: u32,
    /// Which hosts of the network are a server's NICs.
    pub wiring: Wiring,
    /// Over which of its NICs, or of the ports of its NICs without `bond`, a server or GPU sends a message.
    pub nic_selection: NicSelection,
    /// Ports of a NIC, each connected to a separate plane: the network of `topology` exists that many times, without links between the planes.
    pub planes: u32,
    /// Ports of a NIC in one network, each at another leaf switch: 2 is dual ToR. Any port of a NIC reaches any port of another one, and a table `bond` makes them one. With `wiring`
    /// "side-by-side" that many neighbouring leaf switches serve the same NICs, with "rail-optimised" the same rail of a group of servers; in a file in which hosts have several links, a host's links are
    /// the ports of its NICs in turn. Beside it one plane.
    #[serde(skip_serializing_if = "is_one")]
    pub ports: u32,
    /// GPUs of a server. The workload then addresses GPUs instead of servers: GPU g of server s is endpoint s·gpus + g and has the NICs from g·nics/gpus on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// What makes the ports of a NIC one: it chooses the port of every packet, and leaves ports whose links are down.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bond: Option<Bond>,
    /// The network between the GPUs of a server, which carries all messages between them. Without it these messages use the NICs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up: Option<ScaleUp>,
}

impl Default for Servers {
    fn default() -> Self {
        Servers {
            nics: 8,
            wiring: Wiring::default(),
            nic_selection: NicSelection::default(),
            planes: 1,
            ports: 1,
            gpus: None,
            bond: None,
            scale_up: None,
        }
    }
}

/// Whether a number says what is so without it.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn is_one(number: &u32) -> bool {
    *number == 1
}

/// Which hosts of the network are a server's NICs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Wiring {
    /// Consecutive ones: as far as the leaf switches' sizes allow, all NICs of a server are at one leaf. NIC r of server s is host s·k + r.
    #[default]
    SideBySide,
    /// Every k leaf switches with hosts form a group, with as many servers as each leaf has hosts; NIC r of every server is at the group's leaf r.
    /// Servers of a group reach each other over one switch. With `ports` = p it is every k·p leaf switches, and NIC r is at those from r·p on.
    RailOptimised,
}

/// Over which of its NICs, or of the ports of its NICs unless these are [one](Bond), a server or GPU sends a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NicSelection {
    /// Over all of them at once: in parts of whole packets, as equal as possible, and at most as many as there are packets. The parts of a message
    /// are assigned to NICs in turn, starting after the last part of the previous message.
    /// A message is complete when its last part is.
    #[default]
    Stripe,
    /// Whole messages over the NICs in turn.
    RoundRobin,
    /// Whole messages over the NIC that is selected by a hash of sender, receiver and the message's number at the sender; all frames of a stream over
    /// the same NIC, by sender and receiver.
    Hash,
    /// Whole messages over the NIC with the fewest bytes of messages that have started and not ended; ties as `round-robin`. Not for
    /// frames of open loops, which have no end.
    LeastOutstanding,
    /// With an ideal scale-up network: whole messages over the NIC of the GPU that they are for. Messages from other GPUs of the server first cross
    /// the scale-up network to that GPU, as with NCCL's PXN.
    Gpu,
}

/// What joins the GPUs of a server, such as NVLink with NVSwitch: simulated packet by packet as the rest, with the same queues, flow control, transport and routing, unless it is ideal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ScaleUp {
    /// How it is wired.
    pub wiring: ScaleUpWiring,
    /// Rate of all links of a GPU together, in each direction. The default is NVLink 4 with 18 links of 25 GB/s (NVIDIA H100 data sheet: 900 GB/s in
    /// both directions together).
    pub rate: Rate,
    /// Time from one GPU to another, in addition to that of the bytes. NVIDIA does not publish it; the default is an assumption.
    pub latency: Time,
}

impl Default for ScaleUp {
    fn default() -> Self {
        ScaleUp { wiring: ScaleUpWiring::default(), rate: Rate::from_gbps(3600), latency: Time::from_ns(500) }
    }
}

/// How the GPUs of a server are joined.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ScaleUpWiring {
    /// One switch, to which every GPU has a link of the full rate, like the NVSwitches of a server together.
    #[default]
    Switch,
    /// A link from each GPU to every other one; the links share the rate equally, as in an MI300X. A GPU is modelled as a host and a switch of three
    /// or more ports; a packet is stored at both of them.
    AllToAll,
    /// Not simulated: only the ports of GPUs are busy, each with one message at a time, which takes `latency` and its bytes at `rate`. A collective
    /// whose group is in one server begins when its last rank reaches it, and takes the time of a ring in closed form
    /// (2 (n - 1) latencies and 2 (n - 1)/n of the bytes for an all-reduce, half of both for all-gather and
    /// reduce-scatter), of direct messages for an all-to-all and a broadcast. For workloads whose ranks are GPUs (`gpu-collective`, `training-step`), with a NIC per GPU.
    Ideal,
}

/// Most ports of an endpoint.
const MOST_PORTS: u32 = 64;

impl Servers {
    /// The network of a run: `plane`, which is that of the scenario's topology, as often as there are planes, and beside them the scale-up network of
    /// each server. Its hosts are those of the planes in turn, then a port of each GPU.
    ///
    /// # Errors
    /// If a number is out of its range, the network's hosts do not come out even, or the whole would be too large.
    pub fn network(&self, plane: Network) -> Result<Network, Invalid> {
        if plane.links_per_host() > 1 {
            self.check_links(&plane)?;
        }
        let ports = self.ports(plane.hosts())?;
        if plane.links_per_host() > 1 && self.planes == 1 && self.gpus.is_none() {
            return Ok(plane);
        }
        let servers = narrow::<u32>(u64::from(plane.hosts()) / self.hosts_of_server());
        if self.planes == 1 && self.simulated().is_none() {
            return Ok(plane);
        }
        let (mut name, planes) = match self.planes {
            1 => (plane.name().to_owned(), vec![String::new()]),
            count => {
                let prefixes = (0..count).map(|number| format!("plane{number}-"));
                (format!("{count} planes of {}", plane.name()), prefixes.collect())
            }
        };
        let separate = |prefix| Separate { network: &plane, prefix, tier_prefix: "" };
        let mut parts: Vec<Separate<'_>> = planes.iter().map(|prefix| separate(prefix)).collect();
        let inside = self.simulated().map(|inside| inside.network(ports.endpoints)).transpose();
        let inside = inside.map_err(|invalid| invalid.within("scale_up"))?;
        let insides: Vec<String> = (0..servers).map(|server| format!("server{server}-")).collect();
        if let Some(inside) = &inside {
            // Names of files may be anything, also those of ports of GPUs.
            let begins_so = |node| plane.node_name(node).starts_with("server");
            let clashes = plane.has_own_names() && (0..plane.nodes()).any(begins_so);
            let expected = "names of nodes that do not begin with `server`, as those of scale-up networks do";
            Invalid::unless(!clashes, "scale_up", expected, plane.name())?;
            name += &format!(", and scale-up networks of {} GPUs", ports.endpoints);
            let separate = |prefix| Separate { network: inside, prefix, tier_prefix: "scale-up-" };
            parts.extend(insides.iter().map(|prefix| separate(prefix)));
        }
        Network::apart(name, &parts).map_err(|error| invalid("planes", error))
    }

    /// Servers of a file whose hosts have several links, which are their ports.
    fn check_links(&self, plane: &Network) -> Result<(), Invalid> {
        let &Servers { nics, ports, planes, gpus, wiring, .. } = self;
        let (links, name) = (plane.links_per_host(), plane.name());
        // The one of both that fits is right.
        let (field, found, other) = match links.checked_rem(nics) == Some(0) && ports > 1 {
            true => ("ports", ports, nics),
            false => ("nics", nics, if links.checked_rem(ports) == Some(0) { ports } else { 1 }),
        };
        let and_ports = match (field, other) {
            ("ports", _) => format!(" beside nics = {nics}"),
            (_, 1) => format!(", or nics and ports (with a table `bond`) whose product is {links}"),
            _ => format!(" beside ports = {ports}"),
        };
        let expected = format!("{}{and_ports}, as the links of a host ({name})", links / other);
        Invalid::unless(self.hosts_of_server() == u64::from(links), field, expected, found)?;
        let expected = format!("\"side-by-side\", as the links of a host in a file are its own ({name})");
        Invalid::unless(wiring == Wiring::SideBySide, "wiring", expected, "\"rail-optimised\"")?;
        // Where all links lead into one network, hosts are as those of any other one.
        if plane.components() == 1 {
            return Ok(());
        }
        let why = format!("as not all links of a host lead into one network ({name})");
        Invalid::unless(planes == 1, "planes", format!("1, {why}"), planes)?;
        Invalid::unless(gpus.is_none(), "gpus", format!("none, {why}"), gpus.unwrap_or_default())?;
        Invalid::unless(ports == 1, "ports", format!("1, {why}"), ports)
    }

    /// Finds every endpoint's ports on a network that [`Self::network`] made; `seed` is that of the hash.
    ///
    /// # Errors
    /// If the network's hosts, or the leaf switches, do not come out even.
    pub fn build(&self, network: &Network, seed: u64) -> Result<Rails, Invalid> {
        let &Servers { nics, wiring, nic_selection, planes, ports: of_nic, bond, .. } = self;
        let servers = self.servers_of(network.hosts())?;
        let of_plane = servers * nics * of_nic;
        let ports = self.ports(of_plane)?;
        let by_server: Box<[HostId]> = match wiring {
            Wiring::RailOptimised => by_leaves(network, of_plane, nics * of_nic, "wiring")?,
            // The links of a host in a file are its own.
            Wiring::SideBySide if of_nic > 1 && network.links_per_host() == 1 => {
                by_leaves(network, of_plane, of_nic, "ports")?
            }
            Wiring::SideBySide => (0..of_plane).collect(),
        };
        let endpoints = servers * ports.endpoints;
        let mut order = Vec::with_capacity(network.hosts() as usize);
        for endpoint in 0..endpoints {
            let of_endpoint = ports.nics * of_nic;
            let first = endpoint * of_endpoint;
            for &nic in &by_server[first as usize..(first + of_endpoint) as usize] {
                order.extend((0..planes).map(|plane| plane * of_plane + nic));
            }
            order.extend(ports.inside.then_some(planes * of_plane + endpoint));
        }
        let count = ports.nics * of_nic * planes + u32::from(ports.inside);
        let (outside, domains) = outside_first(network, &mut order, count)?;
        // All ports of NICs come first and lead out of the server: planes are made for that, and so is one network with several ports of a NIC.
        let bonded = if bond.is_some() { planes * of_nic } else { 1 };
        let mut place = vec![0; order.len()];
        for (at, &host) in (0..).zip(&order) {
            place[host as usize] = at;
        }
        let gpus = match (self.gpus, self.scale_up) {
            (None, _) => Gpus::None,
            (Some(count), Some(scale_up)) if scale_up.wiring == ScaleUpWiring::Ideal => {
                Gpus::InServers { count, scale_up }
            }
            (Some(of_server), _) => Gpus::Endpoints { of_server },
        };
        let (order, place) = (order.into(), place.into());
        let joined = of_nic > 1;
        let rails = Rails {
            ports: count,
            bonded,
            joined,
            bond,
            outside,
            domains,
            gpus,
            nic_selection,
            seed,
            order,
            place,
            rail: Box::default(),
        };
        let rail = rails.place.iter().map(|place| rails.rail_of(place % rails.ports)).collect();
        Ok(Rails { rail, ..rails })
    }

    /// The scale-up network, if it is part of the network.
    fn simulated(&self) -> Option<ScaleUp> {
        self.scale_up.filter(|inside| inside.wiring != ScaleUpWiring::Ideal)
    }

    /// Hosts of a plane that are ports of a server.
    fn hosts_of_server(&self) -> u64 {
        u64::from(self.nics) * u64::from(self.ports)
    }

    /// How many servers a network of this many hosts has: the hosts are ports of NICs in all planes, and a port of each GPU to a simulated scale-up network.
    fn servers_of(&self, hosts: u32) -> Result<u32, Invalid> {
        let inside = self.simulated().and(self.gpus).unwrap_or(0);
        let of_server = self.hosts_of_server().saturating_mul(self.planes.into()) + u64::from(inside);
        let expected =
            || format!("a divisor of the network's {hosts} hosts that leaves at least two servers");
        let is_even = of_server > 0 && u64::from(hosts).is_multiple_of(of_server);
        Invalid::unless(is_even, "nics", expected(), self.nics)?;
        Ok(narrow::<u32>(u64::from(hosts) / of_server))
    }

    /// What an endpoint has, where a plane has `of_plane` hosts; checks all fields.
    fn ports(&self, of_plane: u32) -> Result<Ports, Invalid> {
        let &Servers { nics, planes, ports, gpus, bond, .. } = self;
        let expected = format!("1 to {MOST_PORTS}");
        Invalid::unless((1..=MOST_PORTS).contains(&ports), "ports", expected, ports)?;
        let expected = "1 with several planes, in each of which a NIC has one port";
        Invalid::unless(ports == 1 || planes == 1, "ports", expected, ports)?;
        let expected = "1, or a table `bond` beside it: without it ports have transports of their own, and are NICs (nics, with wiring = \"rail-optimised\")";
        Invalid::unless(ports == 1 || bond.is_some(), "ports", expected, ports)?;
        let expected = "ports of a NIC to choose among: planes = 2 or more, or ports = 2 or more for leaf switches of one network (dual ToR)";
        Invalid::unless(bond.is_none() || planes > 1 || ports > 1, "bond", expected, "one port")?;
        // One NIC is none to choose from, unless it has several ports or servers have GPUs.
        let least = if planes > 1 || ports > 1 || gpus.is_some() { 1 } else { 2 };
        let expected =
            |most| format!("{least} to {most}; leave the table `servers` out where each host has one");
        // Where the inside is ideal, the NICs of all GPUs are the server's.
        let is_ideal = self.scale_up.is_some() && self.simulated().is_none();
        let endpoints = if is_ideal { 1 } else { gpus.unwrap_or(1).max(1) };
        let most = MOST_PORTS.saturating_mul(endpoints);
        Invalid::unless((least..=most).contains(&nics), "nics", expected(most), nics)?;
        let expected =
            || format!("a divisor of the network's {of_plane} hosts that leaves at least two servers");
        let of_server = self.hosts_of_server();
        let are_even = u64::from(of_plane).is_multiple_of(of_server) && u64::from(of_plane) / of_server >= 2;
        Invalid::unless(are_even, "nics", expected(), nics)?;
        let of_server = gpus.unwrap_or(1);
        let is_divisor = of_server > 0 && nics.is_multiple_of(of_server);
        let expected = format!("a divisor of nics = {nics}: each GPU has as many NICs");
        Invalid::unless(is_divisor, "gpus", expected, of_server)?;
        let has_gpus = gpus.is_some_and(|gpus| gpus > 1) || self.scale_up.is_none();
        let expected = "gpus = 2 or more beside it, as it joins the GPUs of a server";
        Invalid::unless(has_gpus, "scale_up", expected, "a scale-up network without GPUs")?;
        let expected = format!("{nics}, a GPU for each NIC, where the scale-up network is ideal");
        Invalid::unless(!is_ideal || nics == of_server, "gpus", expected, of_server)?;
        let has_own_nic = is_ideal && (planes == 1 || bond.is_some());
        let knows_gpus = self.nic_selection != NicSelection::Gpu || has_own_nic;
        let expected =
            "another one, or scale_up.wiring = \"ideal\" and one plane, or a table `bond`, beside it";
        Invalid::unless(knows_gpus, "nic_selection", expected, "\"gpu\"")?;
        let zero = self.scale_up.filter(|inside| inside.rate.0 < u64::from(of_server));
        Invalid::unless(zero.is_none(), "scale_up.rate", "more than 0", zero.unwrap_or_default().rate)?;
        let inside = self.simulated().is_some();
        let (nics, most) = (nics / endpoints, MOST_PORTS - u32::from(inside));
        let expected =
            format!("1 to {}: {nics} NICs with a port to each plane, {MOST_PORTS} ports in all", most / nics);
        Invalid::unless((1..=most / nics).contains(&planes), "planes", expected, planes)?;
        let expected = format!("1 to {}: {nics} NICs, {MOST_PORTS} ports in all", most / nics);
        Invalid::unless(ports <= most / nics, "ports", expected, ports)?;
        Ok(Ports { nics, endpoints, inside })
    }
}

/// What the servers of a scenario consist of.
#[derive(Clone, Copy, Debug)]
struct Ports {
    /// NICs of an endpoint.
    nics: u32,
    /// Endpoints of a server.
    endpoints: u32,
    /// Whether an endpoint has a port to a scale-up network.
    inside: bool,
}

impl ScaleUp {
    /// The network of one server.
    fn network(&self, gpus: u32) -> Result<Network, Invalid> {
        let &ScaleUp { wiring, rate, latency } = self;
        let topology = match wiring {
            ScaleUpWiring::Switch | ScaleUpWiring::Ideal => {
                Topology::Crossbar(Crossbar { hosts: gpus, rate, latency: Time(latency.0 / 2) })
            }
            ScaleUpWiring::AllToAll => Topology::Complete(Complete {
                switches: gpus,
                hosts_per_switch: Some(1),
                rate: Rate(rate.0 / u64::from(gpus - 1)),
                host_rate: Some(rate),
                latency: Time(latency.0 / 2),
                host_latency: Some(Time(latency.0 / 4)),
                ..Complete::default()
            }),
        };
        let context = BuildContext { seed: 1, base_dir: "".as_ref() };
        topology.build(&context).map_err(|error| invalid("wiring", error))
    }
}

/// Why a network cannot be built, as an error of a field unless the error names its own.
fn invalid(field: &'static str, error: NetworkError) -> Invalid {
    match error {
        NetworkError::Parameter(invalid) => invalid,
        error => Invalid::new(field, "a network that can be built", error),
    }
}

/// Puts those of every endpoint's `count` ports first by which it reaches all other endpoints. Returns how many these are, and for each endpoint the network that the
/// others lead to, if there are others.
fn outside_first(network: &Network, order: &mut [HostId], count: u32) -> Result<(u32, Box<[u32]>), Invalid> {
    if network.components() == 1 {
        return Ok((count, Box::default()));
    }
    let count = count as usize;
    let component = |host: HostId| network.component(host);
    let (outside, inside): (Vec<usize>, Vec<usize>) = (0..count).partition(|&port| {
        let mut hosts = order.iter().skip(port).step_by(count);
        let first = component(order[port]);
        hosts.all(|&host| component(host) == first)
    });
    let expected = "a link of each host to a network that joins all of them, at the same place in the order of its links";
    Invalid::unless(!outside.is_empty(), "nics", expected, format!("none in {}", network.name()))?;
    let mut domains = Vec::new();
    for ports in order.chunks_exact_mut(count) {
        let own: Vec<HostId> = outside.iter().chain(&inside).map(|&port| ports[port]).collect();
        ports.copy_from_slice(&own);
        let mut inside = ports[outside.len()..].iter().map(|&host| component(host));
        if let Some(first) = inside.next() {
            let expected =
                "links of a host that lead out of the network which joins all hosts into one and the same";
            let found = format!("other ones at {}", network.node_name(ports[0]));
            Invalid::unless(inside.all(|other| other == first), "nics", expected, found)?;
            domains.push(first);
        }
    }
    Ok((narrow::<u32>(outside.len()), domains.into()))
}

/// All hosts of the first plane, where every `together` leaf switches form a group: one of each leaf, then the next ones. `field` asks for that.
fn by_leaves(
    network: &Network,
    of_plane: u32,
    together: u32,
    field: &'static str,
) -> Result<Box<[HostId]>, Invalid> {
    let mut leaves: BTreeMap<NodeId, Vec<HostId>> = BTreeMap::new();
    for host in 0..of_plane {
        leaves.entry(network.edge_switch(host)).or_default().push(host);
    }
    let leaves: Vec<Vec<HostId>> = leaves.into_values().collect();
    let per_leaf = leaves[0].len();
    let is_even =
        leaves.len().is_multiple_of(together as usize) && leaves.iter().all(|leaf| leaf.len() == per_leaf);
    let other = if field == "wiring" { "\"side-by-side\"" } else { "1" };
    let expected = || {
        format!(
            "{other}, or a network in which the {} switches with hosts are a multiple of {together} and have equally many hosts",
            leaves.len()
        )
    };
    let found = if field == "wiring" { "\"rail-optimised\"".to_owned() } else { together.to_string() };
    Invalid::unless(is_even, field, expected(), found)?;
    let groups =
        leaves.chunks(together as usize).flat_map(|group| (0..per_leaf).map(move |place| (group, place)));
    Ok(groups.flat_map(|(group, place)| group.iter().map(move |leaf| leaf[place])).collect())
}

/// What a workload addresses where the scenario names GPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Gpus {
    /// The scenario names none.
    None,
    /// GPUs, `of_server` of each server.
    Endpoints { of_server: u32 },
    /// Servers, whose programs run `count` GPUs each, joined by an ideal scale-up network.
    InServers { count: u32, scale_up: ScaleUp },
}

/// The ports of all endpoints of a workload: servers, or their GPUs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rails {
    /// Ports of an endpoint.
    ports: u32,
    /// How many ports each rail that leads out of the server has.
    bonded: u32,
    /// The ports of a rail lead into one network, not into planes.
    joined: bool,
    bond: Option<Bond>,
    /// How many ports, the first ones, lead out of the server.
    outside: u32,
    /// Per endpoint, the scale-up network to which its further ports lead; empty where there is none.
    domains: Box<[u32]>,
    gpus: Gpus,
    nic_selection: NicSelection,
    seed: u64,
    /// Hosts of the network, endpoint by endpoint.
    order: Box<[HostId]>,
    /// The place of every host in that order.
    place: Box<[u32]>,
    /// The rail of every host.
    rail: Box<[u32]>,
}

impl Rails {
    /// Number of endpoints: servers, or GPUs.
    pub fn endpoints(&self) -> u32 {
        narrow::<u32>(self.order.len()) / self.ports
    }

    /// Ports of each: of its NICs, and the one to a scale-up network. Each is a host of the network.
    pub fn ports(&self) -> u32 {
        self.ports
    }

    /// Rails of each: ports, or NICs where the ports of a NIC are one. Every rail has a transport of its own.
    pub fn rails(&self) -> u32 {
        self.rail_of(self.ports)
    }

    /// The rail of a port.
    fn rail_of(&self, port: u32) -> u32 {
        let outside = port.min(self.outside);
        outside / self.bonded + (port - outside)
    }

    /// The ports of a rail.
    fn ports_of(&self, rail: u32) -> Range<u32> {
        let outside = self.outside / self.bonded;
        let (first, count) = match rail.checked_sub(outside) {
            None => (rail * self.bonded, self.bonded),
            Some(inside) => (self.outside + inside, 1),
        };
        first..first + count
    }

    /// The rails by which a message from one endpoint to another may leave: all that lead out of the server, or those to the scale-up network that both are at.
    pub fn between(&self, src: u32, dst: u32) -> Range<u32> {
        let are_joined = self.domain(src).is_some() && self.domain(src) == self.domain(dst);
        let outside = self.outside();
        if are_joined { outside.end..self.rails() } else { outside }
    }

    /// The scale-up network that an endpoint is at.
    pub(crate) fn domain(&self, endpoint: u32) -> Option<u32> {
        self.domains.get(endpoint as usize).copied()
    }

    /// What is known of GPUs.
    pub(crate) fn gpus(&self) -> Gpus {
        self.gpus
    }

    /// Whether endpoints have ports to a network inside their server.
    pub(crate) fn has_scale_up(&self) -> bool {
        !self.domains.is_empty()
    }

    /// Whether the endpoints are servers whose programs run the GPUs, which only workloads have whose ranks are GPUs.
    pub fn hold_gpus(&self) -> bool {
        matches!(self.gpus, Gpus::InServers { .. })
    }

    /// The rails that lead out of the server.
    pub fn outside(&self) -> Range<u32> {
        0..self.outside / self.bonded
    }

    /// How the ports of NICs are one, if they are.
    pub fn bond(&self) -> Option<Bond> {
        self.bond
    }

    /// Whether the ports of a NIC that are one lead into one network, so that each of them reaches all ports of other NICs, not into planes.
    pub fn ports_are_joined(&self) -> bool {
        self.joined
    }

    /// How messages are spread.
    pub fn nic_selection(&self) -> NicSelection {
        self.nic_selection
    }

    /// The hosts of the network that are the ports of a rail of an endpoint.
    pub fn hosts(&self, endpoint: u32, rail: u32) -> &[HostId] {
        let Range { start, end } = self.ports_of(rail);
        let first = endpoint * self.ports;
        &self.order[(first + start) as usize..(first + end) as usize]
    }

    /// The host of the network that stands for a rail of an endpoint: its only port, or its first one.
    pub fn host(&self, endpoint: u32, rail: u32) -> HostId {
        self.hosts(endpoint, rail)[0]
    }

    /// The endpoint and the rail of a host of the network.
    pub fn endpoint(&self, host: HostId) -> (u32, u32) {
        (self.place[host as usize] / self.ports, self.rail(host))
    }

    /// The rail of a host of the network.
    #[inline]
    pub fn rail(&self, host: HostId) -> u32 {
        self.rail[host as usize]
    }

    /// Which port of its rail a host of the network is.
    pub fn port(&self, host: HostId) -> u32 {
        let port = self.place[host as usize] % self.ports;
        port - self.ports_of(self.rail_of(port)).start
    }

    /// The host of the network that stands for the rail of another one.
    pub fn first_port(&self, host: HostId) -> HostId {
        self.order[(self.place[host as usize] - self.port(host)) as usize]
    }

    /// Whether any two NICs of a rail reach each other by ports that are not dead: in a plane in which both have one, or each by any where all lead into one network.
    pub fn reach_each_other(&self, is_dead: impl Fn(HostId) -> bool) -> bool {
        (0..self.rails()).all(|rail| {
            let live = |endpoint| {
                let ports = self.hosts(endpoint, rail).iter().enumerate();
                ports.filter(|&(_, &port)| !is_dead(port)).fold(0u64, |live, (port, _)| live | 1 << port)
            };
            let kinds: BTreeSet<u64> = (0..self.endpoints()).map(live).collect();
            match self.joined {
                true => !kinds.contains(&0),
                false => kinds.iter().all(|one| kinds.iter().all(|other| one & other != 0)),
            }
        })
    }

    /// The host of the network at a port of the rail for which another one stands.
    pub fn at_port(&self, first: HostId, port: u32) -> HostId {
        self.order[(self.place[first as usize] + port) as usize]
    }

    /// The rail of a message by [`NicSelection::Hash`]; `number` is that of the message at its sender.
    #[expect(clippy::cast_possible_truncation, reason = "below the number of ports")]
    pub fn hashed(&self, src: u32, dst: u32, number: u32) -> u32 {
        let ends = u64::from(src) << 32 | u64::from(dst);
        let hash = mix(mix(self.seed ^ mix(ends)) ^ u64::from(number));
        // The upper half of a product is as even as the hash (Lemire, Fast Random Integer Generation in an Interval, 2019).
        let ports = self.between(src, dst);
        ports.start + ((u128::from(hash) * ports.len() as u128) >> 64) as u32
    }

    /// The parts of a striped message over that many ports in packets of `mtu` bytes of payload: a number of bytes for each, all of them whole packets but the last.
    pub fn stripe(ports: u32, bytes: Bytes, mtu: Bytes) -> impl Iterator<Item = Bytes> + use<> {
        let packets = bytes.0.div_ceil(mtu.0).max(1);
        let parts = packets.min(u64::from(ports));
        let mut left = bytes.0;
        (0..parts).map(move |part| {
            let own = packets / parts + u64::from(part < packets % parts);
            let bytes = own.saturating_mul(mtu.0).min(left);
            left -= bytes;
            Bytes(bytes)
        })
    }
}

/// Those whom a workload addresses: hosts of the network, or servers and GPUs with several of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Endpoints<'a> {
    pub(crate) network: &'a Network,
    pub(crate) rails: Option<&'a Arc<Rails>>,
}

impl Endpoints<'_> {
    /// How many there are.
    pub(crate) fn count(&self) -> u32 {
        self.rails.map_or(self.network.hosts(), |rails| rails.endpoints())
    }

    /// What they are called.
    pub(crate) fn word(&self) -> &'static str {
        match self.rails.map(|rails| &**rails) {
            Some(Rails { gpus: Gpus::Endpoints { .. }, .. }) => "GPUs",
            Some(_) => "servers",
            None => "hosts",
        }
    }

    /// The name of one of them.
    pub(crate) fn name(&self, endpoint: u32) -> String {
        match self.rails {
            Some(rails) if matches!(rails.gpus, Gpus::Endpoints { .. }) => format!("GPU {endpoint}"),
            Some(_) => format!("server {endpoint}"),
            None => format!("host {}", self.network.node_name(endpoint)),
        }
    }

    /// The host of the network that stands for one of them: a server's or GPU's first NIC.
    fn first(&self, endpoint: u32) -> HostId {
        self.rails.map_or(endpoint, |rails| rails.host(endpoint, 0))
    }

    /// The switch of one of them, of a server that of its first NIC.
    pub(crate) fn edge_switch(&self, endpoint: u32) -> NodeId {
        self.network.edge_switch(self.first(endpoint))
    }

    /// The rate of all links of one of them together, but for the one to a scale-up network.
    pub(crate) fn rate(&self, endpoint: u32) -> Rate {
        let of_server = |rails: &Arc<Rails>| {
            let hosts = rails.outside().flat_map(|rail| rails.hosts(endpoint, rail));
            let rates = hosts.map(|&host| self.network.host_rate(host).0);
            Rate(rates.fold(0, u64::saturating_add))
        };
        self.rails.map_or_else(|| self.network.host_rate(endpoint), of_server)
    }

    /// Whether lists may call them as the network calls its hosts.
    pub(crate) fn have_names(&self) -> bool {
        self.rails.is_none()
    }

    /// Whether those names come from the network's file, so that a number may be one.
    pub(crate) fn have_own_names(&self) -> bool {
        self.have_names() && self.network.has_own_names()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::tests::network;

    fn rails(servers: Servers, network: &Network) -> Rails {
        servers.build(network, 1).unwrap()
    }

    #[test]
    fn nics_side_by_side_are_consecutive_hosts() {
        let rails = rails(Servers { nics: 4, ..Servers::default() }, &network(24, 6));
        assert_eq!((rails.endpoints(), rails.ports()), (6, 4));
        for (server, rail) in (0..6).flat_map(|server| (0..4).map(move |rail| (server, rail))) {
            assert_eq!(rails.host(server, rail), server * 4 + rail);
            assert_eq!(rails.endpoint(server * 4 + rail), (server, rail));
        }
    }

    #[test]
    fn optimised_rails_have_a_leaf_switch_each() {
        // Four leaves of six hosts; two leaves make a group of six servers.
        let network = network(24, 6);
        let servers = Servers { nics: 2, wiring: Wiring::RailOptimised, ..Servers::default() };
        let rails = rails(servers.clone(), &network);
        assert_eq!((rails.host(0, 0), rails.host(0, 1), rails.host(5, 1)), (0, 6, 11));
        assert_eq!((rails.host(6, 0), rails.host(11, 1)), (12, 23));
        for server in 0..12 {
            let leaves = [0, 1].map(|rail| network.edge_switch(rails.host(server, rail)) - 24);
            assert_eq!(leaves, [server / 6 * 2, server / 6 * 2 + 1]);
        }
        let uneven = crate::pattern::tests::network(18, 6);
        let error = servers.build(&uneven, 1).unwrap_err().to_string();
        assert!(
            error.starts_with("wiring: expected \"side-by-side\", or a network in which the 3 switches"),
            "{error}"
        );
        for nics in [0, 1, 5, 24, 65] {
            let error = Servers { nics, ..servers.clone() }.build(&network, 1).unwrap_err().to_string();
            assert!(error.starts_with("nics: expected "), "{error}");
        }
    }

    fn scale_up() -> Option<ScaleUp> {
        Some(ScaleUp { rate: Rate::from_gbps(800), latency: Time::from_ns(400), ..ScaleUp::default() })
    }

    #[test]
    fn gpus_have_their_nics_in_every_plane_and_a_port_inside() {
        // Two leaves make a group of six servers of two NICs; each GPU has one of them.
        let servers = Servers {
            nics: 2,
            wiring: Wiring::RailOptimised,
            planes: 2,
            gpus: Some(2),
            scale_up: scale_up(),
            ..Servers::default()
        };
        let whole = servers.network(network(24, 6)).unwrap();
        assert_eq!((whole.hosts(), whole.components()), (2 * 24 + 24, 2 + 12));
        let rails = servers.build(&whole, 1).unwrap();
        assert_eq!((rails.endpoints(), rails.ports()), (24, 3));
        // GPU 1 of server 0 has NIC 1, at the second leaf.
        assert_eq!([0, 1, 2].map(|port| rails.host(1, port)), [6, 24 + 6, 48 + 1]);
        assert_eq!([0, 1, 2].map(|port| rails.host(2, port)), [1, 24 + 1, 48 + 2]);
        for endpoint in 0..24 {
            for port in 0..3 {
                assert_eq!(rails.endpoint(rails.host(endpoint, port)), (endpoint, port));
            }
        }
        assert_eq!((rails.between(0, 1), rails.between(1, 2), rails.between(3, 2)), (2..3, 0..2, 2..3));
        let endpoints = Endpoints { network: &whole, rails: Some(&Arc::new(rails.clone())) };
        assert_eq!((endpoints.count(), endpoints.word()), (24, "GPUs"));
        let nic = whole.host_rate(0);
        assert_eq!(endpoints.rate(5), Rate(2 * nic.0), "links inside are not counted");
        // Whatever the hash, it is a port that leads there.
        assert!((0..100).all(|number| rails.hashed(0, 1, number) == 2 && rails.hashed(0, 2, number) < 2));
    }

    /// Whatever a port leads to at one end, the same one leads to at the other end.
    #[test]
    fn ports_of_equal_numbers_reach_each_other() {
        for planes in 1..4 {
            for (nics, gpus) in [(1, None), (2, None), (2, Some(1)), (4, Some(2)), (4, Some(4))] {
                for scale_up in [None, scale_up()] {
                    let servers = Servers { nics, planes, gpus, scale_up, ..Servers::default() };
                    let Ok(whole) = servers.network(network(24, 6)) else { continue };
                    let rails = servers.build(&whole, 1).unwrap();
                    assert_eq!(rails.endpoints() * rails.ports(), whole.hosts());
                    for (src, dst) in
                        (0..rails.endpoints()).flat_map(|src| [(src, 0), (src, src ^ 1), (0, src)])
                    {
                        for port in rails.between(src, dst) {
                            let component = |endpoint| whole.component(rails.host(endpoint, port));
                            assert_eq!(component(src), component(dst));
                        }
                        assert!(!rails.between(src, dst).is_empty());
                    }
                }
            }
        }
    }

    #[test]
    fn links_of_hosts_in_files_are_ports() {
        let file = tempfile::NamedTempFile::new().unwrap();
        // Two servers of two GPUs, an NVSwitch each, and one switch between all of them; that comes first or last.
        std::fs::write(file.path(), "host a b c d\na v\nb v\nc w\nd w\na s\nb s\nc s\nd s\n").unwrap();
        let topology = Topology::EdgeList(netloom_topology::EdgeList::new(file.path()));
        let network = topology.build(&BuildContext { seed: 1, base_dir: "".as_ref() }).unwrap();
        let servers = Servers { nics: 2, ..Servers::default() };
        let network = servers.network(network).unwrap();
        let rails = servers.build(&network, 1).unwrap();
        assert_eq!((rails.endpoints(), rails.between(0, 1), rails.between(1, 2)), (4, 1..2, 0..1));
        assert_eq!(network.node_name(network.edge_switch(rails.host(2, 0))), "s");
        assert_eq!(network.node_name(network.edge_switch(rails.host(2, 1))), "w");
        let refused = |servers: Servers| servers.network(network.clone()).unwrap_err().to_string();
        let says = |servers: Servers, beginning: &str, end: &str| {
            let message = refused(servers);
            assert!(message.starts_with(beginning) && message.ends_with(end), "{message}");
        };
        let file_name = file.path().file_name().unwrap().to_string_lossy();
        let has = format!("as the links of a host ({file_name}: 4 hosts of 2 links), found ");
        for nics in [1, 4] {
            let servers = Servers { nics, ..servers.clone() };
            let product = "nics: expected 2, or nics and ports (with a table `bond`) whose product is 2, ";
            says(servers, product, &format!("{has}{nics}"));
        }
        let bonded = Servers { bond: Some(Bond::default()), ..servers.clone() };
        let too_many = Servers { nics: 1, ports: 3, ..bonded.clone() };
        says(too_many, "ports: expected 2 beside nics = 1, ", &format!("{has}3"));
        let too_many = Servers { nics: 4, ports: 2, ..bonded.clone() };
        says(too_many, "nics: expected 1 beside ports = 2, ", &format!("{has}4"));
        says(Servers { planes: 2, ..servers.clone() }, "planes: expected 1, as not all links of a host", "2");
        says(Servers { gpus: Some(2), ..servers.clone() }, "gpus: expected none, as not all links", "2");
        says(Servers { nics: 1, ports: 2, ..bonded }, "ports: expected 1, as not all links of a host", "2");
        // Where all links lead into one network, servers may have GPUs, and what joins them.
        std::fs::write(file.path(), "host a b c\na s\na t\nb s\nb t\nc s\nc t\ns t\n").unwrap();
        let whole = || topology.build(&BuildContext { seed: 1, base_dir: "".as_ref() }).unwrap();
        let of_gpus = Servers { gpus: Some(2), scale_up: Some(ScaleUp::default()), ..servers.clone() };
        let with_gpus = of_gpus.network(whole()).unwrap();
        let rails = of_gpus.build(&with_gpus, 1).unwrap();
        assert_eq!((rails.endpoints(), with_gpus.components()), (6, 1 + 3));
        assert_eq!((rails.between(0, 1), rails.between(0, 2)), (1..2, 0..1));
        let rail_optimised = Servers { wiring: Wiring::RailOptimised, ..servers.clone() };
        let message = rail_optimised.network(whole()).unwrap_err().to_string();
        assert!(
            message.starts_with("wiring: expected \"side-by-side\", as the links of a host"),
            "{message}"
        );
        // No switch joins all hosts.
        std::fs::write(file.path(), "host a b c d\na v\nb v\nc w\nd w\na s\nb t\nc s\nd t\n").unwrap();
        let apart = topology.build(&BuildContext { seed: 1, base_dir: "".as_ref() }).unwrap();
        let error = servers.build(&apart, 1).unwrap_err().to_string();
        assert!(error.starts_with("nics: expected a link of each host to a network that joins"), "{error}");
    }

    #[test]
    fn ports_of_a_nic_are_at_neighbouring_leaf_switches() {
        // Four leaves of six hosts; of_two: NICs with two ports each.
        let network = network(24, 6);
        let of_two = Servers { ports: 2, bond: Some(Bond::default()), ..Servers::default() };
        let beside = rails(Servers { nics: 3, ..of_two.clone() }, &network);
        assert_eq!((beside.endpoints(), beside.ports(), beside.rails()), (4, 6, 3));
        // The first two leaves serve servers 0 and 1, whose NICs are neighbours.
        assert_eq!([0, 1, 2].map(|nic| beside.hosts(1, nic)), [[3, 9], [4, 10], [5, 11]]);
        assert_eq!(beside.hosts(2, 0), [12, 18]);
        let optimised = Servers { nics: 2, wiring: Wiring::RailOptimised, ..of_two.clone() };
        let optimised = rails(optimised, &network);
        // All four leaves serve all six servers: NIC 0 is at the first two.
        assert_eq!((optimised.endpoints(), optimised.ports(), optimised.rails()), (6, 4, 2));
        assert_eq!([0, 1].map(|nic| optimised.hosts(5, nic)), [[5, 11], [17, 23]]);
        let dead = |ports: &'static [u32]| optimised.reach_each_other(|port| ports.contains(&port));
        assert!(dead(&[5, 0, 6 + 1]) && !dead(&[5, 11]), "any two ports reach each other");
        // In a file a host has its links side by side.
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "host a b c\na s\na t\nb s\nb t\nc s\nc t\ns u\nt u\n").unwrap();
        let topology = Topology::EdgeList(netloom_topology::EdgeList::new(file.path()));
        let file = topology.build(&BuildContext { seed: 1, base_dir: "".as_ref() }).unwrap();
        for (gpus, scale_up) in [(None, None), (Some(1), None)] {
            let servers = Servers { nics: 1, gpus, scale_up, ..of_two.clone() };
            let rails = rails(servers.clone(), &servers.network(file.clone()).unwrap());
            assert_eq!((rails.endpoints(), rails.hosts(2, 0)), (3, &[4, 5][..]));
        }
        let refused = |servers: Servers, network: &Network| {
            let built = servers.network(network.clone()).and_then(|whole| servers.build(&whole, 1));
            built.unwrap_err().to_string()
        };
        for (servers, network, expected) in [
            (Servers { planes: 2, ..of_two.clone() }, &network, "ports: expected 1 with several planes"),
            (Servers { bond: None, ..of_two.clone() }, &network, "ports: expected 1, or a table `bond`"),
            (Servers { ports: 0, ..of_two.clone() }, &network, "ports: expected 1 to 64"),
            (
                Servers { ports: 1, ..of_two.clone() },
                &network,
                "bond: expected ports of a NIC to choose among",
            ),
            (
                Servers { nics: 1, ports: 3, ..of_two.clone() },
                &network,
                "ports: expected 1, or a network in which the 4",
            ),
            (
                Servers { nics: 1, ports: 3, ..of_two.clone() },
                &file,
                "ports: expected 2 beside nics = 1, as the links of a host",
            ),
        ] {
            let found = refused(servers, network);
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_field() {
        let refused = |servers: Servers| servers.network(network(24, 6)).unwrap_err().to_string();
        let cases = [
            (Servers { gpus: Some(0), ..Servers::default() }, "gpus: expected a divisor of nics = 8"),
            (Servers { gpus: Some(3), ..Servers::default() }, "gpus: expected a divisor of nics = 8"),
            (Servers { planes: 0, ..Servers::default() }, "planes: expected 1 to 8: 8 NICs"),
            (Servers { planes: 9, ..Servers::default() }, "planes: expected 1 to 8: 8 NICs"),
            (Servers { nics: 1, ..Servers::default() }, "nics: expected 2 to 64"),
            (Servers { scale_up: scale_up(), ..Servers::default() }, "scale_up: expected gpus = 2 or more"),
            (
                Servers { gpus: Some(1), scale_up: scale_up(), ..Servers::default() },
                "scale_up: expected gpus = 2 or more",
            ),
            (
                Servers {
                    gpus: Some(8),
                    scale_up: Some(ScaleUp { rate: Rate(0), ..ScaleUp::default() }),
                    ..Servers::default()
                },
                "scale_up.rate: expected more than 0",
            ),
        ];
        for (servers, expected) in cases {
            let found = refused(servers);
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn stripes_are_whole_packets_but_for_the_last() {
        let stripe =
            |bytes| Rails::stripe(4, Bytes(bytes), Bytes(1000)).map(|part| part.0).collect::<Vec<_>>();
        assert_eq!(stripe(1), [1]);
        assert_eq!(stripe(2500), [1000, 1000, 500]);
        assert_eq!(stripe(4000), [1000, 1000, 1000, 1000]);
        assert_eq!(stripe(8001), [3000, 2000, 2000, 1001]);
        assert_eq!(stripe(u64::MAX).iter().map(|&part| u128::from(part)).sum::<u128>(), u128::from(u64::MAX));
    }

    #[test]
    fn the_hash_is_even() {
        let rails = rails(Servers { nics: 4, ..Servers::default() }, &network(24, 6));
        let mut counts = [0; 4];
        (0..4000).for_each(|number| counts[rails.hashed(1, 2, number) as usize] += 1);
        // A binomial draw of 4000 with p = 1/4: five standard deviations of 27.4.
        assert!(counts.iter().all(|&count| (863..1137).contains(&count)), "{counts:?}");
        assert_ne!(
            (0..64).map(|n| rails.hashed(1, 2, n)).collect::<Vec<_>>(),
            (0..64).map(|n| rails.hashed(2, 1, n)).collect::<Vec<_>>()
        );
    }
}
