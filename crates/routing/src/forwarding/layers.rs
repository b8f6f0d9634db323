//! The layers of a network at work: path analysis' forwarding tables in terms of ports and hosts.

mod vcs;

use std::path::Path;
use std::sync::OnceLock;

use netloom_paths::tables::LayerDistances;
use netloom_paths::{ForwardingTables, LinkSet, SchemeError};
use netloom_topology::{ChannelId, HostId, LinkId, Network, NodeId, PortId, RouterGraph};
use netloom_units::{Invalid, memory, narrow};
use rand::Rng;

use crate::header::{Carries, Header};
use crate::selector::layer::{Acks, Construction, First, Layer, WithinLayer};
use crate::selector::random::below;
use crate::tag::Tag;

/// The largest tables that a simulation builds: 8 GiB.
pub(super) const LIMIT: u64 = 8 << 30;

/// What NICs and switches know of the layers. Switch `hosts + r` of the network is router `r`.
#[derive(Debug)]
pub struct Layers {
    first: First,
    acks: Acks,
    hosts: u32,
    /// Per host, the router it is attached to.
    router_of: Vec<u32>,
    tables: ForwardingTables,
    /// `ports[row[r] + i]` is the port of router `r` to its `i`-th neighbour; parallel links have one port each.
    row: Vec<u32>,
    ports: Vec<PortId>,
    spread: Option<Spread>,
}

/// What "ECMP within a layer" needs beyond the tables.
#[derive(Clone, Debug)]
struct Spread {
    graph: RouterGraph,
    /// By layer, measured when first asked for.
    distances: Vec<OnceLock<LayerDistances>>,
}

impl Layers {
    /// Makes the layers of a network without its cut links. A function of the network, the cut links and the seed.
    ///
    /// # Errors
    /// If a parameter is out of its range, the switches are not all connected, or the tables would be too large.
    pub fn build(
        config: &Layer,
        network: &Network,
        is_cut: impl Fn(ChannelId) -> bool,
        seed: u64,
    ) -> Result<Self, Invalid> {
        let (graph, links) = live_graph(network, is_cut);
        config.construction.layers().map_or(Ok(()), |layers| check_size(config, &graph, layers))?;
        let tables = match (&config.construction, config.construction.scheme()) {
            (_, Some(scheme)) => {
                let routes = scheme.build(&graph, seed).map_err(|error| refused(&error))?;
                routes.into_tables().expect("every construction ends in tables")
            }
            (Construction::File(saved), None) => load(&saved.file, &graph)?,
            (_, None) => unreachable!("whatever is no file is made"),
        };
        check_size(config, &graph, tables.layers())?;

        let spread = (config.within_layer == WithinLayer::Ecmp).then(|| {
            let distances = (0..tables.layers()).map(|_| OnceLock::new()).collect();
            Spread { graph: graph.clone(), distances }
        });
        let (row, ports) = ports_to_neighbours(network, &graph, &links);
        let hosts = network.hosts();
        let router_of = (0..hosts).map(|host| network.edge_switch(host) - hosts).collect();
        Ok(Layers { first: config.first, acks: config.acks, hosts, router_of, tables, row, ports, spread })
    }

    /// Refuses what [`Self::build`] refuses. Layers of random links, most of whose cost are their tables, are only drawn.
    pub(super) fn check(
        config: &Layer,
        network: &Network,
        is_cut: impl Fn(ChannelId) -> bool,
        seed: u64,
    ) -> Result<(), Invalid> {
        let Construction::RandomLayers(random) = &config.construction else {
            return Self::build(config, network, is_cut, seed).map(drop);
        };
        let (graph, _) = live_graph(network, is_cut);
        check_size(config, &graph, random.layers)?;
        if !LinkSet::full(&graph).connects(&graph) {
            return Err(disconnected());
        }
        random.layers(&graph, seed).map(drop).map_err(|error| refused(&error))
    }

    /// The forwarding tables, by router and neighbour.
    pub fn tables(&self) -> &ForwardingTables {
        &self.tables
    }

    /// The router to which a host is attached.
    #[inline]
    pub fn router_of(&self, host: HostId) -> u32 {
        self.router_of[host as usize]
    }

    /// The router that a switch is.
    #[inline]
    pub fn router(&self, switch: NodeId) -> u32 {
        switch - self.hosts
    }

    /// Whether a layer leads from one router to another. Every layer leads from a router to itself.
    pub fn connects(&self, layer: u32, from: u32, to: u32) -> bool {
        layer < self.tables.layers()
            && (from == to
                || match &self.spread {
                    Some(spread) => spread.distances(&self.tables, layer).hops(from, to).is_some(),
                    None => self.tables.next_port(layer, from, to).is_some(),
                })
    }

    /// The layer in which a packet goes on.
    #[inline]
    pub(crate) fn of(&self, header: &Header) -> u32 {
        let is_on_one = match header.carries {
            Carries::Data => true,
            Carries::Control => self.acks == Acks::Same,
            Carries::Notification => false,
        };
        if is_on_one { header.tag.bits() } else { 0 }
    }

    /// Whether a packet at a router that is not its last goes on by a layer's table.
    #[inline]
    pub(crate) fn leads(&self, layer: u32, here: u32, to: u32) -> bool {
        here != to && self.connects(layer, here, to)
    }

    /// The ports by which `here` may forward towards `to` in a layer: one, or with ECMP one or more. None if the
    /// layer does not lead there.
    pub fn ports(&self, layer: u32, here: u32, to: u32) -> Vec<PortId> {
        let mut ports = Vec::new();
        self.each_port(layer, here, to, |port| ports.push(port));
        ports
    }

    /// Visits each of [`Self::ports`].
    pub(crate) fn each_port(&self, layer: u32, here: u32, to: u32, mut visit: impl FnMut(PortId)) {
        if !self.leads(layer, here, to) {
            return;
        }
        match &self.spread {
            Some(spread) => spread
                .neighbours(&self.tables, layer, here, to)
                .for_each(|neighbour| visit(self.port(here, neighbour))),
            None => {
                if let Some(neighbour) = self.tables.next_port(layer, here, to) {
                    visit(self.port(here, neighbour));
                }
            }
        }
    }

    /// The port by which `here` forwards towards a router in a layer. `choose` names one of several; it is asked only with ECMP, and comes
    /// back if the layer does not lead there.
    #[inline]
    pub(crate) fn next_port<C: FnOnce(usize) -> usize>(
        &self,
        layer: u32,
        here: u32,
        to: u32,
        choose: C,
    ) -> Result<PortId, C> {
        if here == to || layer >= self.tables.layers() {
            return Err(choose);
        }
        let neighbour = match &self.spread {
            None => match self.tables.next_port(layer, here, to) {
                Some(neighbour) => neighbour,
                None => return Err(choose),
            },
            Some(spread) => {
                let neighbours = || spread.neighbours(&self.tables, layer, here, to);
                match neighbours().count() {
                    0 => return Err(choose),
                    count => neighbours().nth(choose(count)).expect("one of them is chosen"),
                }
            }
        };
        Ok(self.port(here, neighbour))
    }

    #[inline]
    fn port(&self, here: u32, neighbour: u16) -> PortId {
        self.ports[self.row[here as usize] as usize + usize::from(neighbour)]
    }

    /// The layer on which a flow starts.
    pub(crate) fn first(&self, from: u32, to: u32, random: &mut impl Rng) -> Tag {
        match self.first {
            First::Minimal if self.connects(0, from, to) => Tag::layer(0),
            First::Minimal | First::Random => self.draw(from, to, random),
        }
    }

    /// The next layer that connects two routers; [`Tag::NO_LAYER`] if none does.
    pub(crate) fn after(&self, tag: Tag, from: u32, to: u32) -> Tag {
        let layers = self.tables.layers();
        let mut in_turn = (1..=layers).map(|ahead| (tag.bits() % layers + ahead) % layers);
        in_turn.find(|&layer| self.connects(layer, from, to)).map_or(Tag::NO_LAYER, Tag::layer)
    }

    /// Whether the layer on which a flow starts is drawn among several.
    pub(crate) fn draws_first(&self) -> bool {
        self.first == First::Random && self.tables.layers() > 1
    }

    /// The layers that connect two routers.
    pub(crate) fn connecting(&self, from: u32, to: u32) -> Vec<Tag> {
        (0..self.tables.layers()).filter(|&layer| self.connects(layer, from, to)).map(Tag::layer).collect()
    }

    /// One of the layers that connect two routers, all alike probable; [`Tag::NO_LAYER`] if none does.
    ///
    /// Where a layer does not connect the two, FatPaths' sender learns so from the network and takes another one.
    #[expect(clippy::cast_possible_truncation, reason = "below a number of 32 bits")]
    pub(crate) fn draw(&self, from: u32, to: u32, random: &mut impl Rng) -> Tag {
        let layers = self.tables.layers();
        let layer = below(layers as usize, random) as u32;
        if self.connects(layer, from, to) {
            return Tag::layer(layer);
        }
        // A draw among the c that connect, made only after a draw that failed, keeps each at probability 1/c.
        let connecting = || (0..layers).filter(|&layer| self.connects(layer, from, to));
        match connecting().count() {
            0 => Tag::NO_LAYER,
            count => connecting().nth(below(count, random)).map_or(Tag::NO_LAYER, Tag::layer),
        }
    }
}

/// Refuses tables that are larger than any that a simulation builds.
fn check_size(config: &Layer, graph: &RouterGraph, layers: u32) -> Result<(), Invalid> {
    let routers = u64::from(graph.routers());
    let is_wide = (0..graph.routers()).any(|router| graph.neighbours(router).len() > 255);
    let spreads = config.within_layer == WithinLayer::Ecmp;
    let needed = u64::from(layers) * routers * routers * (1 + u64::from(is_wide) + u64::from(spreads));
    if needed > LIMIT {
        let expected = format!("layers whose tables take at most the {LIMIT} bytes that a simulation lays");
        let found = format!("{layers} layers of {routers} switches, which need {needed}");
        return Err(Invalid::new("selector.construction", expected, found));
    }
    Ok(())
}

/// Why there are no layers, by the field to change.
fn refused(error: &SchemeError) -> Invalid {
    match error {
        SchemeError::Disconnected => disconnected(),
        SchemeError::Parameter(invalid) => invalid.clone().within("selector.construction"),
        SchemeError::TooLarge { .. } => {
            Invalid::new("selector.construction", "fewer layers", error.to_string())
        }
    }
}

/// Reads the tables of a graph from a file.
fn load(file: &Path, graph: &RouterGraph) -> Result<ForwardingTables, Invalid> {
    let refuse = |error: &dyn std::fmt::Display| {
        let expected = format!("layers of this network as `netloom layers` writes them ({error})");
        Invalid::new("selector.construction.file", expected, file.display())
    };
    let size = std::fs::metadata(file).map_err(|error| refuse(&error))?.len();
    if size > LIMIT {
        return Err(refuse(&format!(
            "{size} bytes of tables are more than the {LIMIT} that a simulation lays"
        )));
    }
    memory::check(size).map_err(|error| refuse(&error))?;
    let tables = ForwardingTables::load(graph, file).map_err(|error| refuse(&error))?;
    tables.validate(graph).map_err(|error| refuse(&error))?;
    Ok(tables)
}

impl Spread {
    fn distances(&self, tables: &ForwardingTables, layer: u32) -> &LayerDistances {
        self.distances[layer as usize].get_or_init(|| tables.distances(&self.graph, layer))
    }

    fn neighbours<'a>(
        &'a self,
        tables: &'a ForwardingTables,
        layer: u32,
        here: u32,
        to: u32,
    ) -> impl Iterator<Item = u16> + 'a {
        self.distances(tables, layer).minimal_ports(&self.graph, tables.links(layer), here, to)
    }
}

/// Why there are no paths beyond the minimal ones, which are built for all switches at once.
pub(super) fn disconnected() -> Invalid {
    let expected = "a network whose switches are all connected, cut links left out";
    Invalid::new("selector", expected, "one with switches that are not")
}

/// The switches and the links between them that are not cut, and which link each edge is.
pub(super) fn live_graph(
    network: &Network,
    is_cut: impl Fn(ChannelId) -> bool,
) -> (RouterGraph, Vec<LinkId>) {
    let hosts = network.hosts();
    let mut hosts_at = vec![0; network.switches() as usize];
    (0..hosts).for_each(|host| hosts_at[(network.edge_switch(host) - hosts) as usize] += 1);
    let (mut edges, mut links) = (Vec::new(), Vec::new());
    for (link, ends) in (0..).zip(network.links()) {
        if !network.is_host(ends.a) && !network.is_host(ends.b) && !is_cut(2 * link) {
            edges.push((ends.a - hosts, ends.b - hosts));
            links.push(link);
        }
    }
    (RouterGraph::new(hosts_at, edges), links)
}

/// For every router, the port to each neighbour, and where its row begins.
fn ports_to_neighbours(network: &Network, graph: &RouterGraph, links: &[LinkId]) -> (Vec<u32>, Vec<PortId>) {
    let mut port_of: Vec<PortId> = vec![0; network.channels() as usize];
    for switch in network.hosts()..network.nodes() {
        for (port, &channel) in network.ports(switch).iter().enumerate() {
            port_of[channel as usize] = narrow::<PortId>(port);
        }
    }
    let (mut row, mut ports) = (Vec::new(), Vec::new());
    for router in 0..graph.routers() {
        row.push(narrow::<u32>(ports.len()));
        for &edge in graph.edge_ids(router) {
            // A link's two channels lead away from either end.
            let forth = 2 * links[edge as usize];
            let leads_here = network.channel(forth).to == network.hosts() + router;
            ports.push(port_of[(forth + u32::from(leads_here)) as usize]);
        }
    }
    (row, ports)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::selector::layer::Construction;
    use netloom_paths::routes::{Minimal, RandomLayers, Spain};
    use netloom_topology::{BuildContext, HyperX, SlimFly, Topology};
    use rand_pcg::Pcg64Mcg;
    use std::path::Path;

    fn build(topology: Topology) -> Network {
        topology.build(&BuildContext { seed: 1, base_dir: Path::new("") }).unwrap()
    }

    fn layer(construction: Construction) -> Layer {
        Layer { construction, ..Layer::default() }
    }

    fn slim_fly() -> Network {
        build(Topology::SlimFly(SlimFly { q: Some(5), ..SlimFly::default() }))
    }

    /// Every port leads to the router that the tables name, and hosts are reached along the layer's path.
    fn assert_ports_follow_tables(network: &Network, layers: &Layers, graph: &RouterGraph) {
        for (layer, from, to) in (0..layers.tables().layers())
            .flat_map(|layer| {
                (0..graph.routers()).flat_map(move |a| (0..graph.routers()).map(move |b| (layer, a, b)))
            })
            .filter(|(_, from, to)| from != to)
        {
            let next = layers.tables().next_port(layer, from, to);
            let ports = layers.ports(layer, from, to);
            assert_eq!(ports.len(), usize::from(next.is_some()));
            if let (Some(next), &[port]) = (next, ports.as_slice()) {
                let leads_to = network.neighbour(network.hosts() + from, port);
                assert_eq!(layers.router(leads_to), graph.neighbours(from)[usize::from(next)]);
            }
        }
    }

    #[test]
    fn ports_lead_where_the_tables_say() {
        let network = slim_fly();
        let layers = Layers::build(&Layer::default(), &network, |_| false, 3).unwrap();
        assert_eq!(layers.tables().layers(), 9);
        assert_ports_follow_tables(&network, &layers, &network.router_graph());
    }

    #[test]
    fn parallel_links_have_one_port_each() {
        let hyperx = HyperX {
            dimensions: 1,
            switches_per_dimension: vec![3],
            parallel_links: vec![4],
            hosts_per_switch: Some(1),
            ..HyperX::default()
        };
        let network = build(Topology::HyperX(hyperx));
        let minimal = layer(Construction::Minimal(Minimal { layers: 1 }));
        let ecmp = Layer { within_layer: WithinLayer::Ecmp, ..minimal };
        let layers = Layers::build(&ecmp, &network, |_| false, 3).unwrap();
        let ports = layers.ports(0, 0, 2);
        assert_eq!(ports.len(), 4);
        assert!(ports.iter().all(|&port| network.neighbour(network.hosts(), port) == network.hosts() + 2));
        let chosen: std::collections::BTreeSet<_> =
            (0..4).map(|i| layers.next_port(0, 0, 2, |count| i % count).ok().unwrap()).collect();
        assert_eq!(chosen.len(), 4);
    }

    #[test]
    fn cut_links_are_in_no_layer() {
        let network = slim_fly();
        let hosts = network.hosts();
        let cut =
            network.links().iter().position(|link| !network.is_host(link.a) && !network.is_host(link.b));
        let cut = cut.unwrap() as LinkId;
        let layers = Layers::build(&Layer::default(), &network, |channel| channel / 2 == cut, 3).unwrap();
        for (layer, from, to) in
            (0..9).flat_map(|l| (0..50).flat_map(move |a| (0..50).map(move |b| (l, a, b))))
        {
            for port in layers.ports(layer, from, to) {
                assert_ne!(network.ports(hosts + from)[usize::from(port)] / 2, cut);
            }
        }
        assert!(layers.connects(0, 0, 49));
    }

    #[test]
    fn a_draw_is_uniform_among_the_layers_that_connect() {
        // Few links per layer and no second try: most layers are in pieces.
        let random = RandomLayers { layers: 12, rho: 0.3, retries: 0, ..RandomLayers::default() };
        let network = slim_fly();
        let layers =
            Layers::build(&layer(Construction::RandomLayers(random)), &network, |_| false, 3).unwrap();
        let pairs = (0..50).flat_map(|a| (0..50).map(move |b| (a, b)));
        let connecting = |(from, to)| (0..12).filter(|&layer| layers.connects(layer, from, to)).count();
        let pair = pairs.filter(|pair| pair.0 != pair.1).min_by_key(|&pair| connecting(pair)).unwrap();
        let expected = 30_000 / connecting(pair);
        assert!(connecting(pair) < 12, "some pair is left out of some layer");
        let (mut hits, mut rng) = ([0usize; 12], Pcg64Mcg::new(5));
        (0..30_000).for_each(|_| hits[layers.draw(pair.0, pair.1, &mut rng).bits() as usize] += 1);
        for layer in 0..12 {
            match layers.connects(layer, pair.0, pair.1) {
                true => assert!(hits[layer as usize].abs_diff(expected) < 6 * 90, "{hits:?}"),
                false => assert_eq!(hits[layer as usize], 0),
            }
        }
    }

    #[test]
    fn a_pair_that_no_forest_joins_has_no_layer() {
        let spain = Construction::Spain(Spain { layers: Some(1), ..Spain::default() });
        let network = slim_fly();
        let layers = Layers::build(&layer(spain), &network, |_| false, 3).unwrap();
        let mut rng = Pcg64Mcg::new(5);
        for (from, to) in (0..50).flat_map(|a| (0..50).map(move |b| (a, b))) {
            let expected = if layers.connects(0, from, to) { Tag::layer(0) } else { Tag::NO_LAYER };
            assert_eq!(layers.first(from, to, &mut rng), expected);
        }
        assert!(
            !layers.connects(Tag::NO_LAYER.bits(), 0, 1)
                && layers.ports(Tag::NO_LAYER.bits(), 0, 1).is_empty()
        );
    }

    #[test]
    fn layers_are_read_from_a_file_that_is_not_too_large() {
        let network = slim_fly();
        let made = Layers::build(&Layer::default(), &network, |_| false, 3).unwrap();
        let path = std::env::temp_dir().join(format!("netloom-layers-{}", std::process::id()));
        let read = || {
            let file = crate::selector::layer::Saved { file: path.clone() };
            Layers::build(&layer(Construction::File(file)), &network, |_| false, 3)
        };
        made.tables().save(&path).unwrap();
        let layers = read().unwrap();
        let pairs = || (0..50).flat_map(|a| (0..50).map(move |b| (a, b)));
        assert!(
            (0..9).all(|layer| pairs().all(|(a, b)| layers.ports(layer, a, b) == made.ports(layer, a, b)))
        );
        // Nothing is written of what is beyond the tables, and nothing is read.
        std::fs::File::create(&path).unwrap().set_len(LIMIT + 1).unwrap();
        let error = read().unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(
            error.starts_with("selector.construction.file: ")
                && error.contains("8589934593 bytes of tables are more than the 8589934592"),
            "{error}"
        );
        assert!(read().unwrap_err().to_string().starts_with("selector.construction.file: "));
    }

    #[test]
    fn what_cannot_be_built_is_refused_with_its_field() {
        let network = slim_fly();
        let build = |network: &Network, config: &Layer, cut| {
            let error = Layers::build(config, network, |_| cut, 3).unwrap_err();
            assert_eq!(Layers::check(config, network, |_| cut, 3), Err(error.clone()));
            error.to_string()
        };
        let random = |layers, rho| {
            layer(Construction::RandomLayers(RandomLayers { layers, rho, ..RandomLayers::default() }))
        };
        let error = build(&network, &random(9, 2.0), false);
        assert_eq!(error, "selector.construction.rho: expected 0 < rho <= 1, found 2");
        let error = build(&network, &random(4_000_000, 0.6), false);
        assert!(error.contains("4000000 layers of 50 switches, which need 10000000000"), "{error}");
        assert!(build(&network, &Layer::default(), true).contains("all connected"));
    }
}
