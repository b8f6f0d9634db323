//! Among what paths a scheme decides, and how its packets are carried along them.
//!
//! [`Forwarding`] knows the minimal ports of every switch ([`RouteTable`]; each topology has its own notion of minimal) and, for schemes that
//! need them, [`Layers`], the intermediate switches of Valiant's paths ([`Intermediates`]) or the ways that UGAL weighs. It says which tags a sender may choose from
//! ([`TagSpace`]), where a packet with a tag goes on ([`Forwarding::onward`]), which virtual channel it uses on each hop
//! ([`channels`]), in which channels its packets may wait for each other ([`dependency`]), and how to put that into words.

mod alternatives;
pub mod channels;
pub mod dependency;
mod distances;
#[cfg(test)]
mod grid_tests;
mod layers;
mod minimal;
mod numbering;
mod own_rows;
mod paths;
#[cfg(test)]
mod planes_tests;
mod port_sets;
mod rows;
#[cfg(test)]
mod tests;
mod via;

use netloom_paths::LinkSet;
use netloom_topology::{ChannelId, HostId, Network, NodeId, PortId};
use netloom_units::{Invalid, narrow};
use rand::Rng;

pub(crate) use alternatives::{Alternatives, ByHash};
use channels::{DATELINE_VCS, VcRule};
pub use layers::Layers;
use layers::live_graph;
pub use minimal::{InRow, RouteTable, Row, Unreachable};
use paths::Paths;
pub use via::Intermediates;
pub(crate) use via::ViaFrom;

use crate::header::{Carries, Header, Hop};
use crate::scheme::{Placement, Routing};
use crate::selector::random::below;
use crate::selector::{NicTags, PathSet};
use crate::tag::{Phase, Tag};
use dependency::{Ways, find_cycle, vcs_needed, vcs_without_cycle};

/// The paths of a scheme on a network.
#[derive(Debug)]
pub struct Forwarding {
    table: RouteTable,
    beyond: Beyond,
    values: Values,
    /// Packets go along the dimensions of a grid in their order, and no link is cut.
    in_order: bool,
}

/// Paths beyond the minimal ports.
#[derive(Debug)]
enum Beyond {
    Nothing,
    Layers(Box<Layers>),
    Via(Intermediates),
    Weighed(Box<Alternatives>),
    Paths(Box<Paths>),
}

/// What tags mean where there is nothing beyond the minimal ports.
#[derive(Clone, Copy, Debug)]
enum Values {
    /// Nobody chooses one.
    None,
    Entropy(u32),
    EntropyInTurn(u32),
    Labels,
}

/// A switch, and its row of the table of minimal ports.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The switch.
    pub here: NodeId,
    /// What it remembers of the table.
    pub row: Row,
}

/// The tags from which a path selector at the edge of the network chooses a path between two hosts.
#[derive(Clone, Copy, Debug)]
pub enum TagSpace<'a> {
    /// There is nothing to choose.
    None,
    /// This many entropy values.
    Entropy(u32),
    /// This many entropy values, one after the other from a random first one on.
    EntropyInTurn(u32),
    /// Path labels, from a random first one on.
    Labels,
    /// The layers that connect two routers.
    Layers {
        /// All layers.
        layers: &'a Layers,
        /// The source's router.
        from: u32,
        /// The destination's router.
        to: u32,
    },
    /// This many paths.
    Paths(u32),
    /// The intermediate switches between two switches with hosts.
    Via {
        /// All of them.
        via: &'a Intermediates,
        /// The source's switch.
        from: u32,
        /// The destination's switch.
        to: u32,
    },
}

impl TagSpace<'_> {
    /// The tag with which a flow starts.
    pub fn first(&self, random: &mut impl Rng) -> Tag {
        match *self {
            TagSpace::Labels => Tag::label(random.next_u32() >> 1),
            TagSpace::EntropyInTurn(values) => TagSpace::Entropy(values).another(Tag::default(), random),
            TagSpace::Layers { layers, from, to } => layers.first(from, to, random),
            TagSpace::None | TagSpace::Entropy(_) | TagSpace::Paths(_) | TagSpace::Via { .. } => {
                self.another(Tag::default(), random)
            }
        }
    }

    /// The tag after a given one, so that those in a row lead over different paths as long as there are any: for subflows of one flow.
    pub fn next(&self, tag: Tag, random: &mut impl Rng) -> Tag {
        let after = |count: u32| (tag.bits() + 1) % count.max(1);
        match *self {
            TagSpace::Entropy(values) | TagSpace::EntropyInTurn(values) => Tag::entropy(after(values)),
            TagSpace::Paths(paths) => Tag::path(after(paths)),
            TagSpace::Layers { layers, from, to } => layers.after(tag, from, to),
            TagSpace::None | TagSpace::Labels | TagSpace::Via { .. } => self.another(tag, random),
        }
    }

    /// The tag that flows would take if [the first one](Self::first) were not drawn among numbered paths or layers; none where it is not, or where there is
    /// nothing to draw from.
    pub(crate) fn home(&self) -> Option<Tag> {
        match *self {
            TagSpace::Paths(paths) => (paths > 1).then(|| Tag::path(0)),
            TagSpace::Layers { layers, .. } => layers.draws_first().then(|| Tag::layer(0)),
            _ => None,
        }
    }

    /// At most `most` tags that differ, by their numbers: all that there are, or a random selection of more. Of labels none, as which of them lead over
    /// different paths depends on the network.
    pub fn list(&self, most: u32, random: &mut impl Rng) -> Vec<Tag> {
        let mut numbered = |all: u32| {
            let mut chosen =
                rand::seq::index::sample(random, all as usize, most.min(all) as usize).into_vec();
            chosen.sort_unstable();
            chosen.into_iter().map(narrow::<u32>)
        };
        match *self {
            TagSpace::None => vec![Tag::default()],
            TagSpace::Labels => Vec::new(),
            TagSpace::Entropy(values) | TagSpace::EntropyInTurn(values) => {
                numbered(values).map(Tag::entropy).collect()
            }
            TagSpace::Paths(paths) => numbered(paths).map(Tag::path).collect(),
            TagSpace::Layers { layers, from, to } => {
                let connecting = layers.connecting(from, to);
                numbered(narrow::<u32>(connecting.len())).map(|place| connecting[place as usize]).collect()
            }
            TagSpace::Via { .. } => vec![Tag::DIRECT],
        }
    }

    /// A tag chosen anew: the next label, or a uniform draw among all.
    #[expect(clippy::cast_possible_truncation, reason = "below numbers of 32 bits")]
    pub fn another(&self, current: Tag, random: &mut impl Rng) -> Tag {
        match *self {
            TagSpace::None => current,
            TagSpace::Entropy(values) => Tag::entropy(below(values as usize, random) as u32),
            TagSpace::EntropyInTurn(_) => self.next(current, random),
            TagSpace::Paths(paths) => Tag::path(below(paths as usize, random) as u32),
            TagSpace::Labels => Tag::label(current.bits().wrapping_add(1)),
            TagSpace::Layers { layers, from, to } => layers.draw(from, to, random),
            TagSpace::Via { via, from, to } => via.draw(from, to, random).map_or(Tag::DIRECT, Tag::towards),
        }
    }
}

impl Forwarding {
    /// Gives back the memory of all but the minimal routes: no packet asks any more.
    pub fn forget_beyond(&mut self) {
        self.beyond = Beyond::Nothing;
    }

    /// Lays a scheme's paths on a network without its cut links. A function of the network, the cut links and the seed.
    ///
    /// # Errors
    /// If the scheme needs something that the network does not have, or some hosts cannot reach each other.
    pub fn build(
        routing: &Routing,
        network: &Network,
        is_cut: impl Fn(ChannelId) -> bool,
        seed: u64,
    ) -> Result<Self, ForwardingError> {
        routing.fits(network)?;
        let table = Self::table_of(routing, network, &is_cut, None);
        table.unreachable().map_or(Ok(()), Err)?;
        Self::over_table(routing, network, table, is_cut, seed)
    }

    /// Refuses what [`Self::build`] refuses, with less work where the paths are not needed.
    ///
    /// # Errors
    /// As [`Self::build`].
    pub fn check(
        routing: &Routing,
        network: &Network,
        is_cut: impl Fn(ChannelId) -> bool,
        seed: u64,
    ) -> Result<(), ForwardingError> {
        let (graph, _) = live_graph(network, &is_cut);
        // Between switches that are all connected there are minimal routes.
        match routing.selector.facts().paths {
            PathSet::Layers(config) if LinkSet::full(&graph).connects(&graph) => {
                routing.fits(network)?;
                Ok(Layers::check(config, network, is_cut, seed)?)
            }
            _ => Self::build(routing, network, is_cut, seed).map(drop),
        }
    }

    /// The paths of the same scheme once other links are cut. Hosts may be out of reach ([`RouteTable::in_part`]).
    ///
    /// # Errors
    /// If the scheme needs something that the rest of the network does not have.
    pub fn rebuild(
        &self,
        routing: &Routing,
        network: &Network,
        is_cut: impl Fn(ChannelId) -> bool,
        seed: u64,
    ) -> Result<Self, ForwardingError> {
        let table = Self::table_of(routing, network, &is_cut, Some(&self.table));
        Self::over_table(routing, network, table, is_cut, seed)
    }

    fn table_of(
        routing: &Routing,
        network: &Network,
        is_cut: impl Fn(ChannelId) -> bool,
        before: Option<&RouteTable>,
    ) -> RouteTable {
        match routing.selector.facts().paths {
            PathSet::InOrder => RouteTable::in_order(network, is_cut, before),
            _ => RouteTable::in_part(network, is_cut, before),
        }
    }

    fn over_table(
        routing: &Routing,
        network: &Network,
        table: RouteTable,
        is_cut: impl Fn(ChannelId) -> bool,
        seed: u64,
    ) -> Result<Self, ForwardingError> {
        let facts = routing.selector.facts();
        let in_order = routing.goes_in_order() && !(0..network.channels()).any(&is_cut);
        let beyond = match facts.paths {
            PathSet::Minimal | PathSet::InOrder | PathSet::Labels => Beyond::Nothing,
            PathSet::Layers(config) => {
                Beyond::Layers(Box::new(Layers::build(config, network, is_cut, seed)?))
            }
            PathSet::Detours(config) => Beyond::Via(Intermediates::build(config, network, &table)?),
            PathSet::Weighed(config) => {
                Beyond::Weighed(Box::new(Alternatives::build(config, network, &table, is_cut)?))
            }
            PathSet::KShortest(config) => {
                Beyond::Paths(Box::new(Paths::build(config, network, &table, is_cut, seed)?))
            }
        };
        let tags = facts.nic_tags().filter(|_| routing.placement == Placement::Nic);
        let values = match tags {
            Some(NicTags::EntropyInTurn) => Values::EntropyInTurn(routing.entropy_values),
            Some(NicTags::Labels) => Values::Labels,
            _ if routing.labels_at_first() => Values::Labels,
            _ if routing.draws_entropy() => Values::Entropy(routing.entropy_values),
            _ => Values::None,
        };
        Ok(Forwarding { table, beyond, values, in_order })
    }

    /// A switch that does not remember its row of the table.
    pub fn place(&self, here: NodeId) -> Place {
        Place { here, row: self.table.row(here) }
    }

    /// The minimal ports.
    #[inline]
    pub fn table(&self) -> &RouteTable {
        &self.table
    }

    /// The layers by which switches forward, if the scheme has any.
    pub fn layers(&self) -> Option<&Layers> {
        match &self.beyond {
            Beyond::Layers(layers) => Some(layers),
            Beyond::Nothing | Beyond::Via(_) | Beyond::Weighed(_) | Beyond::Paths(_) => None,
        }
    }

    /// The ways that are weighed, if the scheme weighs any.
    pub(crate) fn alternatives(&self) -> Option<&Alternatives> {
        match &self.beyond {
            Beyond::Weighed(alternatives) => Some(alternatives),
            Beyond::Nothing | Beyond::Layers(_) | Beyond::Via(_) | Beyond::Paths(_) => None,
        }
    }

    /// The explicit paths, if the scheme has any.
    #[cfg(test)]
    pub(crate) fn paths(&self) -> Option<&Paths> {
        match &self.beyond {
            Beyond::Paths(paths) => Some(paths),
            _ => None,
        }
    }

    /// Whether every packet chooses among the minimal ports of each switch, by whatever the scheme says. If not, switches forward by
    /// [`Self::onward`].
    #[inline]
    pub fn is_minimal(&self) -> bool {
        matches!(self.beyond, Beyond::Nothing)
    }

    /// Whether a switch chooses the packet's way: its first one, and under progressive routing later ones of its group.
    #[inline(always)]
    pub(crate) fn is_decided(&self, here: NodeId, header: &Header) -> bool {
        match &self.beyond {
            Beyond::Nothing | Beyond::Layers(_) | Beyond::Paths(_) => false,
            Beyond::Via(_) => header.is_first(),
            Beyond::Weighed(alternatives) => {
                header.is_first()
                    || header.carries == Carries::Data
                        && alternatives.is_decided_again(
                            &self.table,
                            here,
                            (header.src, header.dst),
                            header.tag,
                        )
            }
        }
    }

    /// The tags from which a path between two hosts is chosen.
    pub fn tags(&self, src: HostId, dst: HostId) -> TagSpace<'_> {
        match (&self.beyond, self.values) {
            (Beyond::Layers(layers), _) => {
                TagSpace::Layers { layers, from: layers.router_of(src), to: layers.router_of(dst) }
            }
            (Beyond::Via(via), _) => {
                TagSpace::Via { via, from: self.table.edge_of(src), to: self.table.edge_of(dst) }
            }
            (Beyond::Paths(paths), _) => {
                TagSpace::Paths(paths.count(self.table.edge_of(src), self.table.edge_of(dst)))
            }
            (Beyond::Nothing, Values::Entropy(values)) => TagSpace::Entropy(values),
            (Beyond::Nothing, Values::EntropyInTurn(values)) => TagSpace::EntropyInTurn(values),
            (Beyond::Nothing, Values::Labels) => TagSpace::Labels,
            (Beyond::Weighed(_), _) | (Beyond::Nothing, Values::None) => TagSpace::None,
        }
    }

    /// The ways that UGAL weighs between the switches of two hosts, by the hops with which they begin, each with how often it is weighed, as a share of the sum:
    /// minimal ones, none where the header's hash has the only one, and those over intermediate switches. None under other schemes.
    pub fn weighed(&self, src: HostId, dst: HostId) -> Option<[Vec<(Hop, f64)>; 2]> {
        let alternatives = self.alternatives()?;
        Some(alternatives.all(&self.table, self.table.edge_of(src), self.table.edge_of(dst)))
    }

    /// Hops between the switches of two hosts on the path of a tag; 0 where tags do not say how long a path is.
    #[expect(clippy::cast_possible_truncation, reason = "hops of a path have 16 bits in packets")]
    pub fn hops(&self, src: HostId, dst: HostId, tag: Tag) -> u32 {
        let Beyond::Paths(paths) = &self.beyond else { return 0 };
        let (from, to) = (self.table.edge_of(src), self.table.edge_of(dst));
        paths.path(from, to, tag.bits()).map_or(0, |path| path.len() as u32)
    }

    /// Where a packet goes on beyond minimal routing. `choose` names one of several ports that lead there; control packets go by the layer
    /// of what they answer, or by layer 0, as the scheme says, or by minimal paths.
    ///
    /// No loop arises where a layer does not lead to the destination and a packet takes minimal ports instead: once in a layer that leads
    /// there it stays in it, and before that every hop brings it nearer.
    pub fn onward(&self, here: NodeId, header: &Header, choose: impl FnOnce(usize) -> usize) -> Hop {
        self.onward_from(self.place(here), header, choose)
    }

    /// [`Self::onward`] of a switch that remembers its row of the table.
    #[inline]
    pub(crate) fn onward_from(
        &self,
        place: Place,
        header: &Header,
        choose: impl FnOnce(usize) -> usize,
    ) -> Hop {
        let Place { here, row } = place;
        let minimal = || self.table.candidates_in_row(row, header.dst).ports;
        match &self.beyond {
            Beyond::Nothing => Hop { port: one_of(minimal(), choose), tag: header.tag },
            Beyond::Layers(layers) => {
                let layer = layers.of(header);
                let (from, to) = (layers.router(here), layers.router_of(header.dst));
                // At the last switch there is one way only, the destination's port.
                let port = layers.next_port(layer, from, to, choose);
                let port = port.unwrap_or_else(|choose| one_of(minimal(), choose));
                Hop { port, tag: header.tag }
            }
            Beyond::Via(via) => self.go_on(via, place, header, choose),
            Beyond::Weighed(alternatives) => self.go_on(alternatives.via(), place, header, choose),
            Beyond::Paths(paths) => {
                let is_data = header.carries == Carries::Data;
                let port = paths.port(&self.table, here, header).filter(|_| is_data);
                Hop { port: port.unwrap_or_else(|| one_of(minimal(), choose)), tag: header.tag }
            }
        }
    }

    /// Whether a data packet at its destination's switch leaves the network there. On its way to an intermediate switch it may come by
    /// before.
    #[inline]
    pub fn arrives(&self, place: Place, header: &Header) -> bool {
        let Some((_, tag)) = self.part(place, header) else { return true };
        let is_direct = header.is_first() && self.table.edge_of(header.src) == self.table.edge_of(header.dst);
        is_direct || tag.phase() == Phase::Minimal
    }

    /// The ports by which a packet goes on, and the tag that it carries on, where it may go over an intermediate switch.
    #[inline]
    pub(crate) fn part(&self, place: Place, header: &Header) -> Option<(&[PortId], Tag)> {
        match &self.beyond {
            Beyond::Nothing | Beyond::Layers(_) | Beyond::Paths(_) => None,
            Beyond::Via(via) => Some(self.part_of_way(via, place, header)),
            Beyond::Weighed(alternatives) => Some(self.part_of_way(alternatives.via(), place, header)),
        }
    }

    /// Where a packet goes on that may go over an intermediate switch.
    #[inline]
    fn go_on(
        &self,
        via: &Intermediates,
        place: Place,
        header: &Header,
        choose: impl FnOnce(usize) -> usize,
    ) -> Hop {
        let (ports, tag) = self.part_of_way(via, place, header);
        Hop { port: one_of(ports, choose), tag }
    }

    /// The ports of a packet over an intermediate switch, and the tag that it carries on.
    #[inline(always)]
    fn part_of_way<'t>(
        &'t self,
        via: &'t Intermediates,
        place: Place,
        header: &Header,
    ) -> (&'t [PortId], Tag) {
        match header.carries {
            Carries::Data => ViaFrom::new(via, &self.table, place).of((header.src, header.dst), header.tag),
            _ => (self.table.candidates_in_row(place.row, header.dst).ports, header.tag),
        }
    }

    /// How a switch carries data on that may go over intermediate switches; none if none do.
    #[inline(always)]
    pub(crate) fn via_from(&self, place: Place) -> Option<ViaFrom<'_>> {
        let via = match &self.beyond {
            Beyond::Nothing | Beyond::Layers(_) | Beyond::Paths(_) => return None,
            Beyond::Via(via) => via,
            Beyond::Weighed(alternatives) => alternatives.via(),
        };
        Some(ViaFrom::new(via, &self.table, place))
    }

    /// The rule by which packets change virtual channels in a run with these routes, one set of them after the other.
    pub fn vc_rule<'f>(mut all: impl Iterator<Item = &'f Forwarding>) -> VcRule {
        if all.all(|forwarding| forwarding.in_order) { VcRule::Datelines } else { VcRule::Hops }
    }

    /// A cycle of virtual channels, each waiting for the next and the last for the first; none if the routes are free of deadlock.
    /// It is a shortest one through one of its channels.
    pub fn find_cycle(&self, network: &Network, rule: VcRule, vcs: u8) -> Option<Vec<(ChannelId, u8)>> {
        match rule {
            VcRule::Datelines if vcs >= DATELINE_VCS => None,
            // With one virtual channel there is nothing to change.
            VcRule::Datelines => find_cycle(network, &self.table, self.ways(), 1),
            VcRule::Hops => find_cycle(network, &self.table, self.ways(), vcs),
        }
    }

    /// How many virtual channels free the routes of cycles: one, or, if they have cycles with it, [`Self::vcs_needed`].
    pub fn vcs_without_cycle(&self, network: &Network, rule: VcRule) -> u8 {
        match rule {
            VcRule::Datelines => self.vcs_needed(network, rule),
            VcRule::Hops => vcs_without_cycle(network, &self.table, self.ways()),
        }
    }

    /// How many virtual channels the routes use where there are enough, so that there is never a cycle. By [`channels`]' rule of hops, as many as the
    /// longest route has hops, or on a Dragonfly one more than it has global hops; by that of datelines two, or one where no ring is long
    /// enough to close a cycle. At least 1, at most 255.
    pub fn vcs_needed(&self, network: &Network, rule: VcRule) -> u8 {
        match rule {
            VcRule::Datelines if self.find_cycle(network, rule, 1).is_none() => 1,
            VcRule::Datelines => DATELINE_VCS,
            VcRule::Hops => vcs_needed(network, &self.table, self.ways()),
        }
    }

    fn ways(&self) -> Ways<'_> {
        match &self.beyond {
            Beyond::Nothing => Ways::Minimal,
            Beyond::Layers(layers) => Ways::Layers(layers),
            Beyond::Via(via) => Ways::Via(via),
            Beyond::Weighed(alternatives) => Ways::Weighed(alternatives),
            Beyond::Paths(paths) => Ways::Paths(paths),
        }
    }

    /// The ports by which a data packet may go on beyond minimal routing, and in words why; `by` says how one of several is chosen.
    pub fn explain_onward(&self, here: NodeId, header: &Header, by: &str) -> (Vec<PortId>, String) {
        let minimal = self.table.candidates(here, header.dst).ports;
        let (ports, words) = match &self.beyond {
            Beyond::Nothing => (minimal.to_vec(), "minimal".to_owned()),
            Beyond::Layers(layers) => {
                let (from, to) = (layers.router(here), layers.router_of(header.dst));
                let layer = header.tag.bits();
                let ports = layers.ports(layer, from, to);
                match ports.is_empty() {
                    _ if from == to => (minimal.to_vec(), "the destination's port".into()),
                    true => {
                        (minimal.to_vec(), format!("layer {layer} does not lead there; among minimal ports"))
                    }
                    false => (ports, format!("layer {layer}")),
                }
            }
            Beyond::Via(via) => self.explain_part(via, here, header),
            Beyond::Weighed(alternatives) => {
                let (ports, words) = self.explain_part(alternatives.via(), here, header);
                (ports, if header.is_first() { alternatives.words() + &words } else { words })
            }
            Beyond::Paths(paths) => match paths.port(&self.table, here, header) {
                Some(port) => {
                    let (from, to) = (self.table.edge_of(header.src), self.table.edge_of(header.dst));
                    let words = format!("path {} of {}", header.tag.bits(), paths.count(from, to));
                    (vec![port], words)
                }
                None => (minimal.to_vec(), "minimal to the destination".into()),
            },
        };
        let words = if ports.len() > 1 { format!("{words}, by the {by}") } else { words };
        (ports, words)
    }

    fn explain_part(&self, via: &Intermediates, here: NodeId, header: &Header) -> (Vec<PortId>, String) {
        let (ports, tag) = self.part_of_way(via, self.place(here), header);
        let words = match tag.phase() {
            Phase::Towards(edge) => {
                format!(
                    "minimal towards intermediate switch {}",
                    self.table.edge_switch(edge) - self.table.hosts()
                )
            }
            Phase::Minimal => "minimal to the destination".into(),
        };
        (ports.to_vec(), words)
    }
}

/// One of some ports; `choose` is asked only if there are several.
#[inline(always)]
pub(crate) fn one_of(ports: &[PortId], choose: impl FnOnce(usize) -> usize) -> PortId {
    match *ports {
        [only] => only,
        _ => ports[choose(ports.len())],
    }
}

/// A scheme that does not fit a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForwardingError {
    /// The scheme needs something else.
    #[error("routing.{0}")]
    Routing(#[from] Invalid),
    /// The cut links leave a host unreachable.
    #[error("faults: {0}")]
    Unreachable(#[from] Unreachable),
}
