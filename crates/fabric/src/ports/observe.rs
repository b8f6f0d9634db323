//! What is asked of ports: loads, statistics, what waits.

use std::collections::BTreeMap;

use std::sync::Arc;

use netloom_units::{Rate, Time, prefetch, prefetch_whole};

use super::{At, Ports};
use crate::estimator::RateEstimator;
use crate::faults::Dropped;
use crate::packet::Packet;
use crate::port::{Drain, Port, PortStats, Special, Wire};
use crate::rules::{DATA, Rules};
use crate::telemetry::Telemetry;

impl Ports {
    /// Bytes waiting at a port or being sent there at `now`.
    #[inline(always)]
    pub fn load(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> u64 {
        self.look_at(port, now, rules, wire).load_at(now)
    }

    /// Bytes waiting at a port at `now`, without the packet that is being sent there.
    #[inline(always)]
    pub fn waiting(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> u64 {
        self.look_at(port, now, rules, wire).waiting_at(now)
    }

    /// A port as it stands at `now`. Several are looked at for each choice, and most have nothing to start: that is seen without a call.
    #[inline(always)]
    fn look_at(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> &Port {
        let state = &self.ports[usize::from(port)];
        if state.occupied != 0 && state.free_at < now {
            self.advance_to_look(port, now, rules, wire);
        }
        &self.ports[usize::from(port)]
    }

    // It goes on to functions that save registers, and saves none itself.
    #[inline(never)]
    fn advance_to_look(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) {
        match rules.is_lossless {
            true => self.advance_under_flow_control(port, now, rules, wire),
            false => self.advance_lossy(port, now, rules, wire),
        }
    }

    #[inline(never)]
    fn advance_lossy(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) {
        self.output(port, false, At::new(now, rules, wire)).start_all_before(now);
    }

    /// The rate of a port's channel, as of the last advance.
    pub fn rate(&self, port: u16) -> Rate {
        self.ports[usize::from(port)].rate()
    }

    /// How much of its channel's rate a port has used lately, in 65,536ths, by what started before `now`; 0 unless rates are estimated.
    #[inline]
    pub fn utilisation(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> u64 {
        let state = &mut self.ports[usize::from(port)];
        let rate = state.rate();
        if let Some(estimator) = state.own_special_mut().and_then(Special::routed_estimator) {
            return estimator.utilisation(now, rate);
        }
        self.utilisation_by_sent(port, now, rules, wire)
    }

    /// [`Self::utilisation`] where it depends on what the port has sent.
    #[inline(never)]
    fn utilisation_by_sent(&mut self, port: u16, now: Time, rules: &Rules, wire: &mut impl Wire) -> u64 {
        self.advance_port(port, now, rules, wire);
        let state = &mut self.ports[usize::from(port)];
        state.change_rate(now);
        let rate = state.rate();
        let estimator = state.own_special_mut().and_then(|special| special.estimator.as_mut());
        estimator.map_or(0, |estimator| estimator.utilisation(now, rate))
    }

    /// Has every port estimate its rate: every `period` it forgets the share `discount` of what it has counted, the packets that it sends or, if
    /// `routed`, those of which [`Self::count_routed`] says so. To be called before anything is sent.
    pub fn estimate_rates(&mut self, period: Time, discount: f64, routed: bool) {
        for port in &mut self.ports {
            let mut estimator = RateEstimator::new(period, discount, routed);
            estimator.set_rate(port.rate());
            port.special_mut().estimator = Some(estimator);
        }
    }

    /// [`Self::count_routed`], then [`Self::utilisation`].
    #[inline(always)]
    pub fn utilisation_with(&mut self, packet: &Packet, port: u16, at: At<'_, impl Wire>) -> u64 {
        let (now, size) = (at.now, packet.size);
        let state = &mut self.ports[usize::from(port)];
        if let Some(estimator) = state.own_special_mut().and_then(Special::routed_estimator) {
            return estimator.utilisation_with(now, size);
        }
        self.count_routed(port, now, size);
        self.utilisation_by_sent(port, now, at.rules, at.wire)
    }

    /// Counts a packet of `bytes` that is about to join a port's queue in the estimate of the port's rate, if estimates count packets when they are routed.
    pub fn count_routed(&mut self, port: u16, now: Time, bytes: u16) {
        let estimator =
            self.ports[usize::from(port)].own_special_mut().and_then(|special| special.estimator.as_mut());
        if let Some(estimator) = estimator {
            estimator.count_routed(now, bytes);
        }
    }

    /// Has every port write on data packets how it stands when they leave. To be called before anything is sent.
    pub fn set_telemetry(&mut self, telemetry: &Arc<Telemetry>) {
        for port in &mut self.ports {
            port.set_telemetry(Arc::clone(telemetry));
        }
    }

    /// Bytes waiting in the queue in which `packet` would leave through a port at `now`.
    #[inline]
    pub fn queue_bytes(
        &mut self,
        port: u16,
        packet: &Packet,
        now: Time,
        rules: &Rules,
        wire: &mut impl Wire,
    ) -> u64 {
        self.advance_port(port, now, rules, wire);
        let queue = self.queue_out(usize::from(port), packet, rules);
        self.queues.bytes(self.ports[usize::from(port)].number(queue))
    }

    /// When a port's transmitter is next free, and whether something is ready to go then, as of the last advance.
    #[inline]
    pub fn poll(&self, port: u16) -> (Time, bool) {
        let state = &self.ports[usize::from(port)];
        (state.free_at, state.ready() != 0)
    }

    /// When a port's transmitter is next free.
    #[inline]
    pub fn free_at(&self, port: u16) -> Time {
        self.ports[usize::from(port)].free_at
    }

    /// Bytes waiting at a port, as of the last advance, without what has been [handed on early](Self::handed_on_early).
    pub fn queued(&self, port: u16) -> u64 {
        self.ports[usize::from(port)].waiting()
    }

    /// What a port has seen, as of the last advance, with bytes that still wait, a transmission and a pause that still last counted up to `end`.
    pub fn stats_of(&self, port: u16, end: Time) -> PortStats {
        PortStats::new(&self.ports[usize::from(port)], end)
    }

    /// A port will soon be asked for: prefetches where they are.
    pub fn expect(&self) {
        prefetch(&self.ports);
    }

    /// A port's [statistics](Self::stats_of) will soon be asked for: prefetches them.
    pub fn expect_stats_of(&self, port: u16) {
        prefetch_whole(&self.ports[usize::from(port)]);
    }

    /// Bytes whose transmission started in the drain, and the time spent sending in it up to `end`.
    pub fn in_drain(&self, port: u16, end: Time) -> (u64, Time) {
        let drain = self.ports[usize::from(port)].rare.as_ref().and_then(|rare| rare.drain.as_deref());
        let Some(drain) = drain else { return (0, Time::ZERO) };
        let PortStats { bytes, busy, .. } = self.stats_of(port, end);
        drain.part_of(bytes, busy)
    }

    /// Counts what is sent from an instant on, after the load, apart. To be called before anything is sent.
    pub fn note_drain(&mut self, from: Time) {
        let drain = (from < Time::MAX).then(|| Box::new(Drain::new(from)));
        for port in self.ports.iter_mut().filter(|port| drain.is_some() || port.rare.is_some()) {
            port.rare.get_or_insert_default().drain = drain.clone();
        }
    }

    /// The packets that wait, with the port and the data queue (from 0; `None` for signals) in which they do, or, at an input, for which.
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a node has at most 65,535 ports: NetworkBuilder::build"
    )]
    pub fn waiting_packets(&self, rules: &Rules) -> impl Iterator<Item = (u16, Option<usize>, &Packet)> {
        let queues = rules.queues;
        let outputs = self.queues.iter().map(move |(queue, packet)| (queue / queues, queue % queues, packet));
        let inputs = self.inputs.iter().flat_map(|inputs| inputs.iter());
        outputs.chain(inputs).map(|(port, queue, packet)| (port as u16, queue.checked_sub(DATA), packet))
    }

    /// Time starts again at zero, after all packets have left: ports at which nothing waits are free from then on. Statistics stay.
    pub fn begin_again(&mut self) {
        for port in self.ports.iter_mut().filter(|port| port.occupied == 0) {
            port.forget_early();
            port.free_at = Time::ZERO;
        }
        self.look_again(Time::ZERO);
    }

    /// Number of ports.
    pub fn len(&self) -> usize {
        self.ports.len()
    }

    /// Whether there is no port.
    pub fn is_empty(&self) -> bool {
        self.ports.is_empty()
    }

    /// Data packets that were dropped here or lost, by source and flow, if any were.
    pub fn dropped_flows_mut(&mut self) -> Option<&mut BTreeMap<(u32, u32), u64>> {
        self.dropped.as_mut().map(|dropped| &mut dropped.flows)
    }

    /// What was dropped here, or lost on the channels that these ports feed.
    pub fn dropped(&self) -> Dropped {
        self.dropped.as_deref().cloned().unwrap_or_default()
    }

    /// Packets that a port has handed on and that have not begun to leave before `end`: they are not among those that it has [sent](PortStats::packets).
    pub fn handed_on_early(&self, port: u16, end: Time) -> u64 {
        self.ports[usize::from(port)].early_from(end)
    }

    /// The channel that a port feeds.
    pub fn channel(&self, port: u16) -> u32 {
        self.ports[usize::from(port)].channel
    }
}
