//! Flowcuts as switches see them: an entry for each flow of which something is in flight behind the switch.
//!
//! Every data packet that passes is counted; the last switch acknowledges it, and what the acknowledgement says is counted off. When nothing
//! is left the entry is removed, and the flow's next packet may take any way: nothing of it can be overtaken (Flowcut Switching, §II-A). The
//! first switch of a flow measures besides, and has the source stopped while the flow drains.
//!
//! A way over an intermediate switch may lead through a switch twice. What is counted is then not the flow but its packets after this many
//! channels: all of them that are in flight behind a switch have come the same way, and a packet never comes twice after as many.
//!
//! Where every switch measures, an entry keeps the moments at which packets passed until they are acknowledged. Where a flow may resume early, its
//! source *turns*: packets from then on begin a flowcut, though some are in flight on the old path, and those are not counted any longer. The
//! source alone sees to it that none of them is overtaken by too many.
//!
//! Where packets can be lost, a count may never come to nothing. But a flowcut has one path, on which nothing overtakes anything: once the
//! packet that passed last is acknowledged, all before it have arrived or are lost, and the flow has nothing in flight. If that packet or
//! its acknowledgement is lost too, the next one that passes does it; and a flow that is not seen again ages.
//!
//! A table of bounded size lets the packets of flows without an entry go by the header's hash, uncounted. A flow that may still have such
//! packets in flight begins its entry on that same way.

use std::collections::VecDeque;

use netloom_topology::PortId;
use netloom_transport::{Cause, Feedback};
use netloom_units::{Bytes, Time};

use super::state::{FlowcutState, RttMin};
use super::uncounted::Uncounted;
use super::{Flowcut, Measures};
use crate::granularity::GranularityConfig;
use crate::granularity::flow_table::{FlowTable, Limits};
use crate::header::{Advice, Arrival, FlowKey, FlowRef, Header, Hop, Occupancy, Receipt, Signal};
use crate::path_selector::{Machine, SwitchPlace};
use crate::scheme::{Placement, Routing};
use crate::tag::Tag;

/// The flowcuts that pass a switch.
#[derive(Clone, Debug)]
pub(crate) struct InFlightTable {
    /// Draining until nothing is in flight.
    config: Flowcut,
    /// How many packets may be in flight on the old path when a flow resumes.
    ahead: u32,
    flows: FlowTable<Entry>,
    least: RttMin,
    /// Only where the table is bounded.
    uncounted: Option<Box<Uncounted>>,
    occupancy: Occupancy,
}

/// A flow of which something is in flight: 11 bytes in the paper, more here for exactness.
#[derive(Clone, Debug)]
struct Entry {
    hop: Hop,
    /// The tag with which it comes, and the port by which.
    arrives: Tag,
    back: PortId,
    packets: u32,
    bytes: u64,
    /// When its first and its last packet that passed had left their host.
    sent: (Time, Time),
    state: FlowcutState,
    /// What the source's packets say of its turns.
    turned: bool,
    /// The source has been signalled to run ahead.
    is_resumed: bool,
    /// The packets in flight, at a switch behind the first one that measures.
    stamps: Option<VecDeque<Stamp>>,
}

/// A packet that has passed.
#[derive(Clone, Copy, Debug)]
struct Stamp {
    sent: Time,
    at: Time,
    serialisation: Time,
}

/// A data packet that passes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    pub(crate) flow: FlowKey,
    /// Channels that it has crossed.
    pub(crate) pass: u32,
    /// The tag with which it came.
    pub(crate) arrives: Tag,
    pub(crate) arrival: Arrival,
    pub(crate) bytes: u32,
}

impl Observation {
    #[inline(always)]
    pub(crate) fn of(header: &Header, arrival: Arrival) -> Self {
        let arrives = if header.is_first() { Tag::DIRECT } else { header.tag };
        Observation {
            flow: header.key(),
            pass: u32::from(header.hops),
            arrives,
            arrival,
            bytes: header.bytes,
        }
    }
}

/// The way of a data packet at a switch that counts flowcuts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assigned {
    /// That of its flowcut, which has counted it.
    Kept(Hop),
    /// It begins a flowcut, which may take any way.
    Any,
    /// It begins a flowcut by the header's hash.
    Hashed,
    /// By the header's hash; it is not counted.
    Uncounted,
}

impl InFlightTable {
    /// Nothing has passed yet. `is_lossy`: packets can be lost.
    pub(crate) fn new(config: &Flowcut, limits: Limits, is_lossy: bool) -> Self {
        let is_bounded = limits.entries != usize::MAX;
        let uncounted = is_bounded.then(|| Box::new(Uncounted::new(is_lossy.then_some(limits.ageing))));
        // Where nothing is lost, every entry comes to its end.
        let ageing = if is_lossy { limits.ageing } else { Time::MAX };
        InFlightTable {
            config: Flowcut { max_ood: 0, ..config.clone() },
            ahead: config.max_ood,
            flows: FlowTable::of_switch(Limits { ageing, ..limits }),
            least: RttMin::default(),
            uncounted,
            occupancy: Occupancy::default(),
        }
    }

    /// A data packet passes.
    #[inline(always)]
    pub(crate) fn pass(&mut self, passed: &Observation, now: Time) -> Assigned {
        let flow = on_pass(passed.flow, passed.pass);
        // With another tag it comes another way than what was counted here, of which nothing is in flight any more, then: a switch before
        // this one has seen to that. Losses leave such entries behind.
        let known = self.flows.see(flow, now);
        if let Some(entry) =
            known.filter(|entry| entry.arrives == passed.arrives && entry.turned == passed.arrival.turned)
        {
            entry.count(passed, now);
            // The source has waited long enough and goes on.
            self.config.on_deadline(&mut entry.state, now);
            entry.is_resumed &= entry.state.is_draining();
            return Assigned::Kept(entry.hop);
        }
        let Some(uncounted) = &mut self.uncounted else { return Assigned::Any };
        if !self.flows.has_room(flow, now) {
            uncounted.count(flow, passed.arrival.back, now);
            return Assigned::Uncounted;
        }
        if uncounted.may_hold(flow, now) { Assigned::Hashed } else { Assigned::Any }
    }

    /// A flowcut begins with a packet that takes this way.
    pub(crate) fn open(&mut self, passed: &Observation, hop: Hop, now: Time) {
        let mut state = self.config.open();
        self.config.continues(&mut state, now, 0);
        let Observation { arrives, pass, arrival: Arrival { back, sent, turned, .. }, .. } = *passed;
        let measures = self.config.measured_at == Measures::Every && pass > 1;
        let mut entry = Entry {
            hop,
            arrives,
            back,
            packets: 0,
            bytes: 0,
            sent: (sent, sent),
            state,
            turned,
            is_resumed: false,
            stamps: measures.then(VecDeque::new),
        };
        entry.count(passed, now);
        self.flows.insert(on_pass(passed.flow, passed.pass), now, entry);
        self.occupancy.is(self.flows.len(), now);
    }

    /// The last switch says that a packet has come so far. Returns the port by which that packet came and, if this switch is the flow's
    /// first, the signal to its source; none if the packet was not counted here, and it is not known how it came.
    #[inline(always)]
    pub(crate) fn on_receipt(&mut self, receipt: &Receipt, now: Time) -> Option<(PortId, Option<Signal>)> {
        let flow = on_pass(receipt.flow, receipt.pass);
        let known = self.flows.see(flow, now).filter(|entry| receipt.sent >= entry.sent.0);
        let Some(entry) = known else {
            return self.uncounted.as_mut()?.count_off(flow).map(|back| (back, None));
        };
        let passed = entry.count_off(receipt);
        let back = entry.back;
        let feedback = match receipt.access {
            Some(access) => {
                Some(entry.feedback(receipt, now - receipt.sent, receipt.serialisation + access, now))
            }
            None => passed.map(|stamp| {
                entry.feedback(receipt, now - stamp.at, receipt.serialisation - stamp.serialisation, now)
            }),
        };
        let signal = feedback.and_then(|feedback| {
            let was_draining = entry.state.is_draining();
            let advice = entry.state.on_feedback(&self.config, &mut self.least, &feedback);
            let is_draining = entry.state.is_draining();
            if is_draining && !entry.is_resumed && entry.packets <= self.ahead {
                entry.is_resumed = true;
                return Some(Signal::RunAhead(self.ahead));
            }
            match advice {
                Advice::PauseUntil(_) => Some(Signal::Stop),
                Advice::Continue if was_draining && !is_draining && !entry.is_resumed => Some(Signal::GoOn),
                Advice::Continue | Advice::Probe => None,
            }
        });
        if entry.packets == 0 {
            self.flows.remove(flow);
            self.occupancy.is(self.flows.len(), now);
        }
        Some((back, signal))
    }

    /// How many entries there were.
    pub(crate) fn occupancy(&self) -> Occupancy {
        self.occupancy
    }
}

impl Machine for InFlightTable {
    fn at_switch(scheme: &Routing, place: SwitchPlace) -> Option<Self> {
        let counts = place.has_hosts || scheme.placement != Placement::Ingress;
        let flowcut = scheme.counted_flowcuts().filter(|_| counts)?;
        Some(InFlightTable::new(flowcut, place.limits, place.is_lossy))
    }

    /// Routes that change in mid-run are refused with flowcuts that switches count: what is in flight on the old ones would have to be known.
    fn on_new_routes(&mut self, _: &Routing) {}
}

impl Entry {
    #[inline(always)]
    fn count(&mut self, passed: &Observation, now: Time) {
        let Arrival { sent, serialisation, .. } = passed.arrival;
        self.packets += 1;
        self.bytes += u64::from(passed.bytes);
        self.sent.1 = sent;
        if let Some(stamps) = &mut self.stamps {
            stamps.push_back(Stamp { sent, at: now, serialisation });
        }
    }

    /// A packet has come so far. Returns when it passed here, where that is known.
    #[inline(always)]
    fn count_off(&mut self, receipt: &Receipt) -> Option<Stamp> {
        if receipt.sent == self.sent.1 {
            (self.packets, self.bytes) = (0, 0);
        } else {
            self.packets = self.packets.saturating_sub(1);
            self.bytes = self.bytes.saturating_sub(u64::from(receipt.bytes));
        }
        let stamps = self.stamps.as_mut()?;
        // Those before it are lost: nothing overtakes anything.
        while stamps.front().is_some_and(|stamp| stamp.sent < receipt.sent) {
            stamps.pop_front();
        }
        let is_known = stamps.front().is_some_and(|stamp| stamp.sent == receipt.sent);
        if is_known { stamps.pop_front() } else { None }
    }

    /// What a switch learns that measures: the packet and its acknowledgement took `rtt` from there on, `serialisation` of it is that of the data packet.
    fn feedback(&self, receipt: &Receipt, rtt: Time, serialisation: Time, now: Time) -> Feedback {
        Feedback {
            rtt,
            serialisation,
            hops: receipt.hops.saturating_sub(receipt.pass),
            tag: self.hop.tag.bits(),
            packets: 1,
            bytes: u64::from(receipt.bytes),
            in_flight: self.packets,
            remaining: if receipt.has_more { Bytes(u64::MAX) } else { Bytes(0) },
            ..Feedback::of(Cause::Ack, now)
        }
    }
}

/// A flow's packets that come to a switch after this many channels.
#[inline(always)]
fn on_pass(key: FlowKey, pass: u32) -> FlowRef {
    FlowRef { key, slot: pass }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOW: FlowKey = FlowKey { src: 1, flow: 7 };

    fn limits(entries: usize) -> Limits {
        Limits { ageing: Time(1_000_000), entries, keeps_path: false }
    }

    fn passed(flow: FlowKey, sent: u64) -> Observation {
        let arrival = Arrival { back: 3, sent: Time(sent), serialisation: Time::ZERO, turned: false };
        Observation { flow, pass: 2, arrives: Tag::DIRECT, arrival, bytes: 1000 }
    }

    fn receipt(flow: FlowKey, sent: u64) -> Receipt {
        Receipt {
            flow,
            pass: 2,
            sent: Time(sent),
            bytes: 1000,
            serialisation: Time::ZERO,
            hops: 4,
            has_more: true,
            access: Some(Time(10)),
        }
    }

    fn hop(port: PortId) -> Hop {
        Hop { port, tag: Tag::default() }
    }

    #[test]
    fn a_flowcut_ends_when_the_last_packet_in_flight_is_acknowledged() {
        let mut table = InFlightTable::new(&Flowcut::default(), limits(usize::MAX), false);
        assert_eq!(table.pass(&passed(FLOW, 0), Time(10)), Assigned::Any);
        table.open(&passed(FLOW, 0), hop(5), Time(10));
        assert_eq!(table.pass(&passed(FLOW, 100), Time(110)), Assigned::Kept(hop(5)));
        assert_eq!(table.on_receipt(&receipt(FLOW, 0), Time(200)), Some((3, None)));
        assert_eq!(table.pass(&passed(FLOW, 250), Time(260)), Assigned::Kept(hop(5)), "one is in flight");
        assert_eq!(table.on_receipt(&receipt(FLOW, 100), Time(300)), Some((3, None)));
        assert_eq!(table.on_receipt(&receipt(FLOW, 250), Time(450)), Some((3, None)));
        assert_eq!(table.pass(&passed(FLOW, 500), Time(510)), Assigned::Any);
        let occupancy = table.occupancy();
        assert_eq!((occupancy.peak, occupancy.mean(Time(880))), (1, 0.5));
    }

    #[test]
    fn a_congested_flow_is_stopped_and_goes_on_when_it_is_empty() {
        let mut table = InFlightTable::new(&Flowcut::default(), limits(usize::MAX), false);
        table.open(&passed(FLOW, 0), hop(5), Time(10));
        table.on_receipt(&receipt(FLOW, 0), Time(110));
        table.open(&passed(FLOW, 1000), hop(5), Time(1010));
        for sent in [1001, 1002] {
            table.pass(&passed(FLOW, sent), Time(sent + 10));
        }
        // The least RTT is 100. 1 → 2.75 → 4.06 of it, with weight 1/4 for each 8: the second one drains.
        assert_eq!(table.on_receipt(&receipt(FLOW, 1000), Time(1810)), Some((3, None)));
        assert_eq!(table.on_receipt(&receipt(FLOW, 1001), Time(1811)), Some((3, Some(Signal::Stop))));
        assert_eq!(table.on_receipt(&receipt(FLOW, 1002), Time(1812)), Some((3, Some(Signal::GoOn))));
        assert_eq!(table.pass(&passed(FLOW, 3000), Time(3010)), Assigned::Any);
    }

    #[test]
    fn a_switch_behind_the_first_one_counts_and_does_not_measure() {
        let mut table = InFlightTable::new(&Flowcut::default(), limits(usize::MAX), false);
        let behind = |sent| Receipt { access: None, ..receipt(FLOW, sent) };
        table.open(&passed(FLOW, 0), hop(5), Time(10));
        for sent in 1..50 {
            table.pass(&passed(FLOW, sent), Time(sent + 10));
        }
        for sent in 0..49 {
            assert_eq!(table.on_receipt(&behind(sent), Time(100_000 * sent)), Some((3, None)));
        }
    }

    #[test]
    fn where_every_switch_measures_it_goes_by_the_rest_of_the_way() {
        let config = Flowcut { measured_at: Measures::Every, ..Flowcut::default() };
        let mut table = InFlightTable::new(&config, limits(usize::MAX), false);
        let behind = |sent| Receipt { access: None, ..receipt(FLOW, sent) };
        // They come here after 1000, however late they are, and are back 100 after that; then 800.
        let mut start = |sent| table.open(&passed(FLOW, sent), hop(5), Time(sent + 1000));
        start(0);
        assert_eq!(table.on_receipt(&behind(0), Time(1100)), Some((3, None)));
        table.open(&passed(FLOW, 5000), hop(5), Time(7000));
        for sent in 5001..5005 {
            table.pass(&passed(FLOW, sent), Time(sent + 2000));
        }
        assert_eq!(table.on_receipt(&behind(5000), Time(7800)), Some((3, None)));
        // 5001 was lost. 1 → 2.75 → 4.06 of the least, with weight 1/4 for each 8.
        assert_eq!(table.on_receipt(&behind(5002), Time(7802)), Some((3, Some(Signal::Stop))));
        assert_eq!(table.on_receipt(&behind(5003), Time(7803)), Some((3, None)));
        assert_eq!(table.on_receipt(&behind(5004), Time(7804)), Some((3, Some(Signal::GoOn))));
    }

    #[test]
    fn a_flow_resumes_early_and_begins_a_flowcut_when_its_source_has_turned() {
        let config = Flowcut { max_ood: 2, ..Flowcut::default() };
        let mut table = InFlightTable::new(&config, limits(usize::MAX), false);
        table.open(&passed(FLOW, 0), hop(5), Time(10));
        table.on_receipt(&receipt(FLOW, 0), Time(110));
        table.open(&passed(FLOW, 1000), hop(5), Time(1010));
        for sent in 1001..1005 {
            table.pass(&passed(FLOW, sent), Time(sent + 10));
        }
        let acknowledge =
            |table: &mut InFlightTable, sent: u64| table.on_receipt(&receipt(FLOW, sent), Time(sent + 810));
        assert_eq!(acknowledge(&mut table, 1000), Some((3, None)));
        assert_eq!(acknowledge(&mut table, 1001), Some((3, Some(Signal::Stop))));
        assert_eq!(acknowledge(&mut table, 1002), Some((3, Some(Signal::RunAhead(2)))));
        // What was sent before goes on along the old way, what is sent from now on may take any.
        assert_eq!(table.pass(&passed(FLOW, 1900), Time(1910)), Assigned::Kept(hop(5)));
        let mut turned = passed(FLOW, 2000);
        turned.arrival.turned = true;
        assert_eq!(table.pass(&turned, Time(2010)), Assigned::Any);
        table.open(&turned, hop(6), Time(2010));
        assert_eq!(acknowledge(&mut table, 1004), None, "what is on the old path is not counted");
        assert_eq!(acknowledge(&mut table, 2000), Some((3, None)));
        assert_eq!(table.pass(&passed(FLOW, 3000), Time(3010)), Assigned::Any, "nothing is in flight");
    }

    #[test]
    fn nothing_is_drained_of_which_too_little_remains() {
        let mut table = InFlightTable::new(&Flowcut::default(), limits(usize::MAX), false);
        table.open(&passed(FLOW, 0), hop(5), Time(10));
        table.on_receipt(&receipt(FLOW, 0), Time(110));
        table.open(&passed(FLOW, 1000), hop(5), Time(1010));
        for sent in 1001..1010 {
            table.pass(&passed(FLOW, sent), Time(sent + 10));
        }
        for sent in 1000..1009 {
            let last = Receipt { has_more: false, ..receipt(FLOW, sent) };
            assert_eq!(table.on_receipt(&last, Time(9000)), Some((3, None)));
        }
    }

    #[test]
    fn the_acknowledgement_of_the_last_packet_counts_off_the_lost_ones_too() {
        let mut table = InFlightTable::new(&Flowcut::default(), limits(usize::MAX), true);
        table.open(&passed(FLOW, 0), hop(5), Time(10));
        for sent in [20, 40, 60] {
            table.pass(&passed(FLOW, sent), Time(sent + 10));
        }
        table.on_receipt(&receipt(FLOW, 20), Time(100));
        assert_eq!(table.pass(&passed(FLOW, 110), Time(120)), Assigned::Kept(hop(5)));
        table.on_receipt(&receipt(FLOW, 110), Time(200));
        assert_eq!(table.pass(&passed(FLOW, 210), Time(220)), Assigned::Any);
        table.open(&passed(FLOW, 210), hop(6), Time(220));
        // An acknowledgement that comes late says nothing of the new flowcut.
        assert_eq!(table.on_receipt(&receipt(FLOW, 60), Time(230)), None);
        assert_eq!(table.pass(&passed(FLOW, 240), Time(250)), Assigned::Kept(hop(6)));
    }

    #[test]
    fn a_flow_whose_last_packet_was_lost_ages_where_packets_can_be_lost() {
        for is_lossy in [true, false] {
            let mut table = InFlightTable::new(&Flowcut::default(), limits(usize::MAX), is_lossy);
            table.open(&passed(FLOW, 0), hop(5), Time(10));
            let late = table.pass(&passed(FLOW, 2_000_000), Time(2_000_010));
            assert_eq!(late, if is_lossy { Assigned::Any } else { Assigned::Kept(hop(5)) });
        }
    }

    #[test]
    fn a_drain_that_the_source_gives_up_goes_on_along_the_old_path() {
        let config = Flowcut { drain_timeout: Time(500), ..Flowcut::default() };
        let mut table = InFlightTable::new(&config, limits(usize::MAX), true);
        table.open(&passed(FLOW, 0), hop(5), Time(10));
        table.on_receipt(&receipt(FLOW, 0), Time(110));
        table.open(&passed(FLOW, 1000), hop(5), Time(1010));
        for sent in [1001, 1002, 1003] {
            table.pass(&passed(FLOW, sent), Time(sent + 10));
        }
        let signals = [1000, 1001].map(|sent| table.on_receipt(&receipt(FLOW, sent), Time(2000)));
        assert_eq!(signals[1], Some((3, Some(Signal::Stop))));
        assert_eq!(table.pass(&passed(FLOW, 2600), Time(2610)), Assigned::Kept(hop(5)));
        // It is open again: congested as it is, it is stopped again.
        let again = table.on_receipt(&receipt(FLOW, 1002), Time(3400));
        assert_eq!(again, Some((3, Some(Signal::Stop))));
    }

    #[test]
    fn a_full_table_sends_further_flows_home_until_nothing_uncounted_is_in_flight() {
        let other = FlowKey { src: 2, flow: 9 };
        let mut table = InFlightTable::new(&Flowcut::default(), limits(1), false);
        table.open(&passed(FLOW, 0), hop(5), Time(10));
        assert_eq!(table.pass(&passed(other, 5), Time(15)), Assigned::Uncounted);
        table.on_receipt(&receipt(FLOW, 0), Time(100));
        assert_eq!(table.pass(&passed(other, 110), Time(120)), Assigned::Hashed);
        table.open(&passed(other, 110), hop(4), Time(120));
        assert_eq!(table.on_receipt(&receipt(other, 5), Time(130)), Some((3, None)), "it came by that port");
        table.on_receipt(&receipt(other, 110), Time(140));
        assert_eq!(table.pass(&passed(other, 200), Time(210)), Assigned::Any);
    }

    #[test]
    fn sixteen_bits_of_nanoseconds_saturate() {
        use super::super::Timestamps;
        let config = Flowcut { timestamps: Timestamps::Nanoseconds, threshold: 2.0, ..Flowcut::default() };
        let mut table = InFlightTable::new(&config, limits(usize::MAX), false);
        table.open(&passed(FLOW, 0), hop(5), Time(10));
        // 60 us, then 200 us, which count as 65.535: hardly more than the least.
        table.on_receipt(&receipt(FLOW, 0), Time::from_us(60));
        table.open(&passed(FLOW, 70_000_000), hop(5), Time::from_us(70));
        for n in 1..20 {
            table.pass(&passed(FLOW, 70_000_000 + n), Time::from_us(70));
        }
        for n in 0..19 {
            let signal = table.on_receipt(&receipt(FLOW, 70_000_000 + n), Time::from_us(270));
            assert_eq!(signal, Some((3, None)));
        }
    }
}
