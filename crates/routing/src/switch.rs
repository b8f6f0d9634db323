//! The product at work in a switch.

use netloom_topology::{NodeId, PortId};
use netloom_units::Time;
use rand::Rng;
use rand_pcg::Pcg64Mcg;
use rustc_hash::FxHashMap;

use crate::hash::region;
use crate::layers::Layers;
use crate::scheme::{Placement, Routing};
use crate::selector::congestion::{Notice, Uncongested};
use crate::selector::valiant::{self, Intermediates, Phase};
use crate::selector::{drill, least_loaded, mod_k, random, round_robin, weighted};
use crate::steering::Steering;
use crate::table::RouteTable;
use crate::{Granularity, Selector};

/// A flow, as switches and receivers know it: its source and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FlowKey {
    /// Source host.
    pub src: u32,
    /// Number of the flow at its source.
    pub flow: u32,
}

/// What routing reads of a packet.
#[derive(Clone, Copy, Debug)]
pub struct Header {
    /// Source host of this packet (of an ACK: the data's receiver).
    pub src: u32,
    /// Destination host of this packet.
    pub dst: u32,
    /// Number of the flow at the data's source.
    pub flow: u32,
    /// Entropy value.
    pub entropy: u32,
    /// Size on the wire.
    pub bytes: u32,
    /// Whether it is a control packet (an ACK, say) rather than data.
    pub control: bool,
    /// Whether it is a congestion notification, a control packet from which switches on its way learn.
    pub notification: bool,
}

/// Where and when a packet asks for its way.
#[derive(Clone, Copy, Debug)]
pub struct Crossing<'a> {
    /// Whether this is the packet's first switch.
    pub first: bool,
    /// The ports it may take.
    pub candidates: &'a [PortId],
    /// When.
    pub now: Time,
}

/// Where a packet goes next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hop {
    /// The output port.
    pub port: PortId,
    /// The entropy value that the packet carries on.
    pub entropy: u32,
}

/// How often an adaptive or random scheme decided, and how often the outcome was another than without adaptation: than the header's
/// hash would have given or, under Switch AR, the uncongested choice. A scheme that never deviates is inert.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Decisions {
    /// Decisions among two or more candidates.
    pub taken: u64,
    /// Those whose outcome differs from that.
    pub deviating: u64,
}

/// A path kept for a run of a flow's packets.
#[derive(Clone, Copy, Debug)]
struct Kept {
    hop: Hop,
    last: Time,
    sent: u64,
}

/// An intermediate switch as an entropy value.
struct Draw {
    entropy: u32,
    is_new: bool,
}

/// The routing state of one switch.
#[derive(Clone, Debug)]
pub struct SwitchRouter {
    random: Pcg64Mcg,
    salt: u32,
    /// Divisor of D-mod-k, S-mod-k and path labels at this switch.
    stride: u32,
    kept: FxHashMap<FlowKey, Kept>,
    turn: u32,
    /// DRILL's memory, per set of candidates (named by its first port).
    drill: Vec<(PortId, drill::Memory)>,
    /// What notifications taught.
    steering: Steering,
    /// What it decided so far.
    pub decisions: Decisions,
}

impl SwitchRouter {
    /// A switch without any flow. `stride` is the topology's up-stride at the switch's level.
    pub fn new(scheme: &Routing, mut random: Pcg64Mcg, stride: u32) -> Self {
        let salt = if scheme.salt { random.next_u32() } else { 0 };
        SwitchRouter {
            random,
            salt,
            stride: stride.max(1),
            kept: FxHashMap::default(),
            turn: 0,
            drill: Vec::new(),
            steering: Steering::default(),
            decisions: Decisions::default(),
        }
    }

    /// Chooses one of the candidates for a packet.
    ///
    /// `load` tells a port's queued bytes and `rate` its link's rate.
    ///
    /// Control packets follow the scheme where it is static (hash, D-mod-k, …) and their header's hash elsewhere. Under Switch AR
    /// congestion notifications take a random port instead, so that switches on all paths learn.
    ///
    /// # Panics
    /// If there is no candidate.
    #[inline(always)]
    pub fn route(
        &mut self,
        scheme: &Routing,
        header: &Header,
        crossing: Crossing<'_>,
        load: impl FnMut(PortId) -> u64,
        rate: impl Fn(PortId) -> u64,
    ) -> Hop {
        let Crossing { first, candidates, now } = crossing;
        if let [only] = *candidates {
            return Hop { port: only, entropy: header.entropy };
        }
        let stay = |port| Hop { port, entropy: header.entropy };
        match (scheme.placement, &scheme.selector) {
            (Placement::Nic, Selector::RoundRobin(_)) if !header.control => {
                stay(mod_k::pick(header.entropy, self.stride, candidates))
            }
            (Placement::Switch, Selector::DModK(_)) => stay(mod_k::pick(header.dst, self.stride, candidates)),
            (Placement::Switch, Selector::SModK(_)) => stay(mod_k::pick(header.src, self.stride, candidates)),
            (Placement::Switch, Selector::Weighted(_)) => {
                stay(weighted::pick(scheme.hash.apply(header, self.salt), candidates, rate))
            }
            (Placement::Nic, _) | (_, Selector::Hash(_)) => stay(self.hashed(scheme, header, candidates)),
            (Placement::Ingress, _) if !first => stay(self.hashed(scheme, header, candidates)),
            _ if header.control => {
                // Switch AR's notifications tell the switches on all ways about the congestion.
                if header.notification && scheme.selector.uncongested().is_some() {
                    stay(random::pick(candidates, &mut self.random))
                } else {
                    stay(self.hashed(scheme, header, candidates))
                }
            }
            (Placement::Switch, Selector::Random(_))
                if matches!(scheme.granularity, Granularity::Packet(_)) =>
            {
                let port = random::pick(candidates, &mut self.random);
                self.count(scheme, header, candidates, port);
                stay(port)
            }
            _ if matches!(scheme.granularity, Granularity::Packet(_)) => {
                self.decide(scheme, header, candidates, now, load)
            }
            _ => self.decide_or_keep(scheme, header, candidates, now, load),
        }
    }

    /// The port of router `here` in the layer that a data packet names, control packets being on layer 0; `minimal` are the ports
    /// among which the hash decides where that layer does not lead to router `to`.
    ///
    /// No loop arises between the two: once in a layer that leads to its destination, a packet stays in it, and before that every
    /// hop brings it nearer.
    pub fn route_in_layer(
        &self,
        scheme: &Routing,
        layers: &Layers,
        header: &Header,
        (here, to): (u32, u32),
        minimal: &[PortId],
    ) -> PortId {
        let layer = if header.control { 0 } else { header.entropy };
        let choose = |count| region(scheme.hash.apply(header, self.salt), count);
        layers.next_port(layer, here, to, choose).unwrap_or_else(|| self.hashed(scheme, header, minimal))
    }

    /// Valiant's way: to the packet's intermediate switch, then to its destination. At the packet's first switch (`is_first`) draws
    /// that switch; `here` is the present one. Control packets keep to minimal paths.
    pub fn route_via(
        &mut self,
        scheme: &Routing,
        via: &Intermediates,
        table: &RouteTable,
        header: &Header,
        (is_first, here): (bool, NodeId),
        now: Time,
    ) -> Hop {
        let minimal = table.candidates(here, header.dst);
        if header.control {
            return Hop { port: self.hashed(scheme, header, minimal), entropy: header.entropy };
        }
        let ends = (table.edge_of(header.src), table.edge_of(header.dst));
        let mut header = *header;
        if is_first {
            let draw = self.draw_via(scheme, via, &header, ends, now);
            let plain = self.hashed(scheme, &header, minimal);
            header.entropy = draw.entropy;
            if let (true, Phase::Towards(edge)) = (draw.is_new, Phase::of(draw.entropy)) {
                let port = self.hashed(scheme, &header, table.towards_edge(here, edge));
                self.decisions.taken += 1;
                self.decisions.deviating += u64::from(port != plain);
            }
        }
        let port = match Phase::of(header.entropy) {
            Phase::Towards(edge) if via.is_passed(table, ends.0, edge, here) => {
                header.entropy = valiant::passed(header.entropy);
                self.hashed(scheme, &header, minimal)
            }
            Phase::Towards(edge) => self.hashed(scheme, &header, table.towards_edge(here, edge)),
            Phase::Minimal => self.hashed(scheme, &header, minimal),
        };
        Hop { port, entropy: header.entropy }
    }

    /// The intermediate switch of a packet, as its entropy value: that of its flow's last packet or, where the granularity
    /// allows it, a new one.
    fn draw_via(
        &mut self,
        scheme: &Routing,
        via: &Intermediates,
        header: &Header,
        (from, to): (u32, u32),
        now: Time,
    ) -> Draw {
        let keeps = !matches!(scheme.granularity, Granularity::Packet(_));
        if let Some(kept) = keeps.then(|| self.kept(scheme, header, now)).flatten() {
            return Draw { entropy: kept.entropy, is_new: false };
        }
        let entropy = via.draw(from, to, &mut self.random).unwrap_or(valiant::DIRECT);
        if keeps {
            self.keep(header, Hop { port: PortId::MAX, entropy }, now);
        }
        Draw { entropy, is_new: true }
    }

    /// A congestion notification was made here or passes by. `candidates` are the ports towards its [`Notice::destination`]. Only the
    /// selectors of Switch AR listen.
    pub fn notice(&mut self, scheme: &Routing, notice: &Notice, candidates: &[PortId], now: Time) {
        // One way only: nothing to choose, so nothing to learn.
        if candidates.len() < 2 {
            return;
        }
        let home = self.home(scheme, notice.destination, candidates.len());
        self.steering.notice(&scheme.selector, notice, candidates, home, now);
    }

    /// Switch AR's choice for a data packet.
    #[inline(never)]
    fn steer(&mut self, scheme: &Routing, header: &Header, candidates: &[PortId], now: Time) -> PortId {
        let home = self.home(scheme, header.dst, candidates.len());
        let home = home.unwrap_or_else(|| region(scheme.hash.apply(header, self.salt), candidates.len()));
        let place = self.steering.pick(&scheme.selector, header, home, now);
        self.decisions.taken += 1;
        self.decisions.deviating += u64::from(place != home);
        candidates[place]
    }

    /// The position among `ports` candidates that Switch AR takes to a destination without congestion; none if that depends on the
    /// packet.
    fn home(&self, scheme: &Routing, destination: u32, ports: usize) -> Option<usize> {
        match scheme.selector.uncongested() {
            Some(Uncongested::DModK) => Some(mod_k::place(destination, self.stride, ports)),
            Some(Uncongested::Lowest) => Some(0),
            Some(Uncongested::Hash) | None => None,
        }
    }

    #[inline(always)]
    fn hashed(&self, scheme: &Routing, header: &Header, candidates: &[PortId]) -> PortId {
        candidates[region(scheme.hash.apply(header, self.salt), candidates.len())]
    }

    #[inline(never)]
    fn decide_or_keep(
        &mut self,
        scheme: &Routing,
        header: &Header,
        candidates: &[PortId],
        now: Time,
        load: impl FnMut(PortId) -> u64,
    ) -> Hop {
        if let Some(hop) = self.kept(scheme, header, now) {
            return hop;
        }
        let hop = self.decide(scheme, header, candidates, now, load);
        self.keep(header, hop, now);
        hop
    }

    /// What was decided for the packet's flow, if it may not decide anew.
    fn kept(&mut self, scheme: &Routing, header: &Header, now: Time) -> Option<Hop> {
        let kept = self.kept.get_mut(&FlowKey { src: header.src, flow: header.flow })?;
        let anew = match &scheme.granularity {
            Granularity::Flowlet(flowlet) => flowlet.is_new(kept.last, now),
            Granularity::Flowcell(cell) => cell.is_new(&mut kept.sent, u64::from(header.bytes)),
            Granularity::Flow(_) | Granularity::Packet(_) | Granularity::Flowcut(_) => false,
        };
        kept.last = now;
        (!anew).then_some(kept.hop)
    }

    fn keep(&mut self, header: &Header, hop: Hop, now: Time) {
        let fresh = Kept { hop, last: now, sent: u64::from(header.bytes) };
        let key = FlowKey { src: header.src, flow: header.flow };
        self.kept.entry(key).and_modify(|kept| kept.hop = hop).or_insert(fresh);
    }

    #[inline(always)]
    fn count(&mut self, scheme: &Routing, header: &Header, candidates: &[PortId], port: PortId) {
        self.decisions.taken += 1;
        self.decisions.deviating += u64::from(port != self.hashed(scheme, header, candidates));
    }

    #[inline]
    fn decide(
        &mut self,
        scheme: &Routing,
        header: &Header,
        candidates: &[PortId],
        now: Time,
        load: impl FnMut(PortId) -> u64,
    ) -> Hop {
        let port = match &scheme.selector {
            Selector::Random(_) => random::pick(candidates, &mut self.random),
            Selector::RoundRobin(_) => round_robin::pick(&mut self.turn, candidates),
            Selector::LeastLoaded(_) => least_loaded::pick(candidates, load, &mut self.random),
            Selector::Drill(drill) => {
                let known = self.drill.iter().position(|&(first, _)| first == candidates[0]);
                let index = known.unwrap_or_else(|| {
                    self.drill.push((candidates[0], drill::Memory::default()));
                    self.drill.len() - 1
                });
                drill.pick(&mut self.drill[index].1, candidates, load, &mut self.random)
            }
            Selector::SwitchAr(_) | Selector::SwitchArFractional(_) | Selector::SwitchArStable(_) => {
                let port = self.steer(scheme, header, candidates, now);
                return Hop { port, entropy: header.entropy };
            }
            // Handled before: these never decide anew at a switch.
            Selector::Hash(_)
            | Selector::DModK(_)
            | Selector::SModK(_)
            | Selector::Weighted(_)
            | Selector::Valiant(_)
            | Selector::Layer(_) => self.hashed(scheme, header, candidates),
        };
        self.count(scheme, header, candidates, port);
        let entropy = match scheme.placement {
            // Later switches hash the entropy value, so a new one takes the flow to a new path beyond the first port, too.
            Placement::Ingress => random::below(scheme.entropy_values as usize, &mut self.random) as u32,
            Placement::Nic | Placement::Switch => header.entropy,
        };
        Hop { port, entropy }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;

    const PORTS: [PortId; 4] = [4, 5, 6, 7];

    fn header(flow: u32, entropy: u32) -> Header {
        Header { src: 1, dst: 2, flow, entropy, bytes: 4160, control: false, notification: false }
    }

    fn switch(preset: &str) -> (Routing, SwitchRouter) {
        let scheme = preset::find(preset).unwrap().routing();
        let router = SwitchRouter::new(&scheme, Pcg64Mcg::new(5), 1);
        (scheme, router)
    }

    fn route(scheme: &Routing, router: &mut SwitchRouter, header: &Header, now: Time) -> PortId {
        let crossing = Crossing { first: true, candidates: &PORTS, now };
        router.route(scheme, header, crossing, |_| 0, |_| 1).port
    }

    #[test]
    fn ecmp_keeps_a_flow_on_one_port_and_decides_nothing() {
        let (scheme, mut router) = switch("ecmp");
        let ports: Vec<_> = (0..50).map(|_| route(&scheme, &mut router, &header(3, 0), Time(0))).collect();
        assert!(ports.iter().all(|&port| port == ports[0]));
        assert_eq!(router.decisions, Decisions::default());
    }

    #[test]
    fn spraying_uses_every_port_and_deviates_three_times_of_four() {
        let (scheme, mut router) = switch("spray");
        let mut used = [0; 8];
        for _ in 0..4000 {
            used[usize::from(route(&scheme, &mut router, &header(3, 0), Time(0)))] += 1;
        }
        assert!(PORTS.iter().all(|&port| used[usize::from(port)] > 850), "{used:?}");
        assert!((2850..3150).contains(&router.decisions.deviating));
    }

    #[test]
    fn a_flowlet_ends_with_a_gap_only() {
        let (scheme, mut router) = switch("letflow");
        let Granularity::Flowlet(flowlet) = scheme.granularity.clone() else { unreachable!() };
        let mut now = Time(0);
        for _ in 0..1000 {
            route(&scheme, &mut router, &header(3, 0), now);
            now += flowlet.gap;
        }
        assert_eq!(router.decisions.taken, 1);
        route(&scheme, &mut router, &header(3, 0), now + Time(1));
        assert_eq!(router.decisions.taken, 2);
    }

    #[test]
    fn acks_never_disturb_an_adaptive_schemes_state() {
        let (scheme, mut router) = switch("letflow");
        route(&scheme, &mut router, &Header { control: true, ..header(3, 0) }, Time(0));
        assert!(router.kept.is_empty() && router.decisions.taken == 0);
    }

    #[test]
    fn switch_ar_takes_d_mod_k_until_a_notification_moves_all_of_a_destinations_traffic() {
        for preset in ["switch-ar", "switch-ar-stable"] {
            let (scheme, mut router) = switch(preset);
            let port = |router: &mut SwitchRouter, dst| {
                route(&scheme, router, &Header { dst, ..header(3, 0) }, Time(5))
            };
            assert_eq!((port(&mut router, 2), port(&mut router, 6)), (6, 6));
            let notice = Notice { destination: 6, port: 6, feedback: 63, is_local: true };
            router.notice(&scheme, &notice, &PORTS, Time(4));
            assert_eq!((port(&mut router, 2), port(&mut router, 6)), (6, 4));
            assert_eq!(router.decisions, Decisions { taken: 4, deviating: 1 });
        }
    }

    #[test]
    fn the_fractional_kind_moves_a_part_of_a_destinations_traffic() {
        let (scheme, mut router) = switch("switch-ar-fractional");
        let notice = Notice { destination: 2, port: 6, feedback: 32, is_local: false };
        router.notice(&scheme, &notice, &PORTS, Time(0));
        let mut used = [0; 8];
        (0..1200).for_each(|_| used[usize::from(route(&scheme, &mut router, &header(3, 0), Time(0)))] += 1);
        assert_eq!(used[4..], [100, 100, 900, 100]);
    }

    #[test]
    fn notifications_about_other_ports_or_single_ways_teach_nothing() {
        let (scheme, mut router) = switch("switch-ar");
        let notice = |port| Notice { destination: 2, port, feedback: 63, is_local: false };
        router.notice(&scheme, &notice(9), &PORTS, Time(0));
        router.notice(&scheme, &notice(6), &[6], Time(0));
        assert!(matches!(router.steering, Steering::Nothing));
        let (ecmp, mut router) = switch("ecmp");
        router.notice(&ecmp, &notice(6), &PORTS, Time(0));
        assert!(matches!(router.steering, Steering::Nothing));
    }

    #[test]
    fn notifications_take_every_port_under_switch_ar_and_the_hash_elsewhere() {
        let used = |preset: &str| {
            let (scheme, mut router) = switch(preset);
            let notification = Header { control: true, notification: true, ..header(3, 0) };
            let ports = (0..100).map(|_| route(&scheme, &mut router, &notification, Time(0)));
            let ports: std::collections::BTreeSet<_> = ports.collect();
            assert_eq!(router.decisions.taken, 0);
            ports.len()
        };
        assert_eq!((used("switch-ar"), used("switch-ar-fractional"), used("switch-ar-stable")), (4, 4, 4));
        assert_eq!((used("adaptive"), used("d-mod-k")), (1, 1));
    }

    #[test]
    fn labels_in_turn_visit_every_path_of_a_tree() {
        let scheme = preset::find("presto").unwrap().routing();
        let mut low = SwitchRouter::new(&scheme, Pcg64Mcg::new(5), 1);
        let mut high = SwitchRouter::new(&scheme, Pcg64Mcg::new(6), 4);
        let paths: std::collections::HashSet<_> = (100..116)
            .map(|label| {
                let at = |router: &mut SwitchRouter| route(&scheme, router, &header(3, label), Time(0));
                (at(&mut low), at(&mut high))
            })
            .collect();
        assert_eq!(paths.len(), 16);
    }
}
