//! The product at work in a NIC: which entropy value the next packet of a flow carries, and whether it may leave.

use std::sync::Arc;

use netloom_topology::HostId;
use netloom_units::{Bytes, Time};
use rand::Rng;

use crate::granularity::flowcut::{Ack, Flowcut, FlowcutState, RttMin, Verdict};
use crate::layers::Layers;
use crate::scheme::{Placement, Routing};
use crate::selector::random::below;
use crate::switch::Decisions;
use crate::{Granularity, Selector};

/// A scheme as NICs apply it; the same for all.
#[derive(Clone, Debug)]
pub struct NicRouter {
    scheme: Routing,
    layers: Option<Arc<Layers>>,
}

/// What the flows of one NIC share.
#[derive(Clone, Debug, Default)]
pub struct NicShared {
    /// Only Flowcut needs it.
    rtt_min: Option<Box<RttMin>>,
}

/// The routing state of one flow at its NIC.
#[derive(Clone, Debug)]
pub struct NicFlow {
    entropy: u32,
    initial: u32,
    /// The routers of its source and destination; only layers need them.
    routers: (u32, u32),
    run: Run,
    /// Decisions after the initial one, and how many left the initial path.
    pub decisions: Decisions,
}

/// The present run of packets that stay on one path.
#[derive(Clone, Debug)]
enum Run {
    Whole,
    Flowlet { last: Time },
    Flowcell { sent: u64 },
    Packet,
    Flowcut(Box<FlowcutState>),
}

/// An ACK, as a sender sees it.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// When it arrived.
    pub now: Time,
    /// Round-trip time of the packet it acknowledges.
    pub rtt: Time,
    /// What that packet's serialisation added to its way.
    pub way: Time,
    /// Hops it took.
    pub hops: u8,
    /// Packets of the flow still in flight.
    pub in_flight: u32,
    /// Bytes of the flow not sent yet.
    pub remaining: Bytes,
    /// Number of the next new packet.
    pub next: u32,
}

impl NicRouter {
    /// `layers` are those from which the selector `layer` draws.
    pub fn new(scheme: Routing, layers: Option<Arc<Layers>>) -> Self {
        NicRouter { scheme, layers }
    }

    /// The layers by which switches forward, if the scheme has any.
    #[inline]
    pub fn layers(&self) -> Option<&Layers> {
        self.layers.as_deref()
    }

    /// A new flow: draws its first entropy value.
    pub fn begin(&self, src: HostId, dst: HostId, random: &mut impl Rng) -> NicFlow {
        let routers = self.layers().map_or((0, 0), |layers| (layers.router_of(src), layers.router_of(dst)));
        let decides = self.scheme.placement == Placement::Nic;
        let entropy = match self.scheme.selector {
            Selector::Random(_) if decides => below(self.scheme.entropy_values as usize, random) as u32,
            Selector::RoundRobin(_) if decides => random.next_u32() >> 1,
            _ => self.layers().map_or(0, |layers| layers.first(routers.0, routers.1, random)),
        };
        let run = match self.scheme.granularity {
            _ if !decides => Run::Whole,
            Granularity::Flow(_) => Run::Whole,
            Granularity::Flowlet(_) => Run::Flowlet { last: Time::MAX },
            Granularity::Flowcell(_) => Run::Flowcell { sent: 0 },
            Granularity::Packet(_) => Run::Packet,
            Granularity::Flowcut(_) => Run::Flowcut(Box::default()),
        };
        NicFlow { entropy, initial: entropy, routers, run, decisions: Decisions::default() }
    }

    fn flowcut(&self) -> Option<&Flowcut> {
        match &self.scheme.granularity {
            Granularity::Flowcut(config) => Some(config),
            _ => None,
        }
    }
}

impl NicFlow {
    /// The entropy value of a packet that leaves now. Retransmissions count like any packet.
    #[inline]
    pub fn on_send(&mut self, router: &NicRouter, now: Time, bytes: u32, random: &mut impl Rng) -> u32 {
        let anew = match (&mut self.run, &router.scheme.granularity) {
            (Run::Flowlet { last }, Granularity::Flowlet(flowlet)) => {
                flowlet.is_new(std::mem::replace(last, now), now)
            }
            (Run::Flowcell { sent }, Granularity::Flowcell(cell)) => cell.is_new(sent, u64::from(bytes)),
            (Run::Packet, _) => true,
            _ => false,
        };
        if anew {
            self.redraw(router, random);
        }
        self.entropy
    }

    /// Whether the flow may send new packet `next` while `oldest` is the oldest one not acknowledged.
    #[inline]
    pub fn may_send(&self, router: &NicRouter, next: u32, oldest: u32) -> bool {
        match (&self.run, router.flowcut()) {
            (Run::Flowcut(state), Some(config)) => state.may_send(config, next, oldest),
            _ => true,
        }
    }

    /// Whether the flow watches round-trip times at all, so that [`Self::on_ack`] matters.
    #[inline]
    pub fn watches_acks(&self) -> bool {
        matches!(self.run, Run::Flowcut(_))
    }

    /// An ACK arrived. May stop the flow ([`Self::may_send`]) or put it on a new path.
    pub fn on_ack(
        &mut self,
        router: &NicRouter,
        shared: &mut NicShared,
        sample: AckSample,
        random: &mut impl Rng,
    ) -> Verdict {
        let (Run::Flowcut(state), Some(config)) = (&mut self.run, router.flowcut()) else {
            return Verdict::Continue;
        };
        let ack = Ack {
            now: sample.now,
            rtt: sample.rtt,
            serialisation: sample.way,
            hops: sample.hops,
            in_flight: sample.in_flight,
            remaining: sample.remaining,
            next: sample.next,
        };
        let verdict = state.on_ack(config, shared.rtt_min.get_or_insert_default(), ack);
        if verdict == Verdict::Resume {
            self.redraw(router, random);
        }
        verdict
    }

    /// When a draining flow gives up.
    pub fn deadline(&self, router: &NicRouter) -> Option<Time> {
        match (&self.run, router.flowcut()) {
            (Run::Flowcut(state), Some(config)) => state.deadline(config),
            _ => None,
        }
    }

    /// A draining flow's deadline passed.
    pub fn on_deadline(&mut self, router: &NicRouter, now: Time) {
        if let (Run::Flowcut(state), Some(config)) = (&mut self.run, router.flowcut()) {
            state.on_timeout(config, now);
        }
    }

    /// Drains begun, and the time spent draining.
    pub fn drains(&self) -> (u32, Time) {
        match &self.run {
            Run::Flowcut(state) => (state.drains, state.drain_time),
            _ => (0, Time::ZERO),
        }
    }

    fn redraw(&mut self, router: &NicRouter, random: &mut impl Rng) {
        self.entropy = match router.scheme.selector {
            Selector::Random(_) => below(router.scheme.entropy_values as usize, random) as u32,
            Selector::RoundRobin(_) => self.entropy.wrapping_add(1),
            _ => match router.layers() {
                Some(layers) => layers.draw(self.routers.0, self.routers.1, random),
                None => self.entropy,
            },
        };
        self.decisions.taken += 1;
        self.decisions.deviating += u64::from(self.entropy != self.initial);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preset;
    use rand_pcg::Pcg64Mcg;

    fn nic(preset: &str) -> NicRouter {
        NicRouter::new(preset::find(preset).unwrap().routing(), None)
    }

    #[test]
    fn presto_takes_the_next_label_every_64_kib() {
        let (nic, mut random) = (nic("presto"), Pcg64Mcg::new(1));
        let mut flow = nic.begin(0, 1, &mut random);
        let labels: Vec<u32> = (0..48)
            .map(|_| flow.on_send(&nic, Time(0), 4096, &mut random).wrapping_sub(flow.initial))
            .collect();
        assert_eq!(labels, [[0; 16], [1; 16], [2; 16]].concat());
    }

    #[test]
    fn flowcut_takes_a_new_entropy_value_only_after_a_drain() {
        let (nic, mut random) = (nic("flowcut-nic"), Pcg64Mcg::new(1));
        let (mut shared, mut flow) = (NicShared::default(), nic.begin(0, 1, &mut random));
        let sample = |rtt_us, in_flight| AckSample {
            now: Time::from_us(100),
            rtt: Time::from_us(rtt_us),
            way: Time::from_us(1),
            hops: 6,
            in_flight,
            remaining: Bytes(1 << 20),
            next: 50,
        };
        let mut ack = |flow: &mut NicFlow, rtt_us, in_flight| {
            flow.on_ack(&nic, &mut shared, sample(rtt_us, in_flight), &mut Pcg64Mcg::new(77))
        };
        ack(&mut flow, 13, 50);
        while ack(&mut flow, 130, 50) != Verdict::Drain {}
        assert!(!flow.may_send(&nic, 50, 0));
        assert_eq!(flow.decisions.taken, 0);
        assert_eq!(ack(&mut flow, 130, 0), Verdict::Resume);
        assert!(flow.may_send(&nic, 50, 50));
        assert_eq!(flow.decisions.taken, 1);
    }

    #[test]
    fn schemes_of_the_switches_leave_the_nic_alone() {
        let (nic, mut random) = (nic("letflow"), Pcg64Mcg::new(1));
        let mut flow = nic.begin(0, 1, &mut random);
        for step in 0..10 {
            assert_eq!(flow.on_send(&nic, Time::from_ms(step), 4160, &mut random), 0);
        }
        assert_eq!(flow.decisions.taken, 0);
    }
}
