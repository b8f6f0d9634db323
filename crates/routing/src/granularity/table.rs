//! A granularity and the flows at one place.

use netloom_transport::Feedback;
use netloom_units::Time;
use rand::Rng;

use super::flow_table::{FlowTable, Limits};
use super::kind::GranularityConfig;
use crate::header::{Advice, Decisions, FlowCounts, FlowRef, Hop};
use crate::tag::Tag;

/// A flow's present path and what its granularity remembers of it.
#[derive(Clone, Debug)]
struct Kept<R> {
    hop: Hop,
    /// The tag that it would have without any decision.
    initial: Tag,
    decisions: Decisions,
    run: R,
}

/// A granularity and the flows at one place.
#[derive(Clone, Debug)]
pub(crate) struct Table<G: GranularityConfig> {
    granularity: G,
    flows: FlowTable<Kept<G::Run>>,
    shared: G::Shared,
}

impl<G: GranularityConfig> Table<G> {
    /// The flows that start at a host.
    pub(crate) fn of_host(granularity: &G) -> Self {
        Table::new(granularity, FlowTable::of_host())
    }

    /// The flows that pass a switch.
    pub(crate) fn of_switch(granularity: &G, limits: Limits) -> Self {
        let ageing = granularity.memory().filter(|_| !limits.keeps_path).unwrap_or(limits.ageing);
        Table::new(granularity, FlowTable::of_switch(Limits { ageing, ..limits }))
    }

    fn new(granularity: &G, flows: FlowTable<Kept<G::Run>>) -> Self {
        Table { granularity: granularity.clone(), flows, shared: G::Shared::default() }
    }

    /// Whether a flow is remembered or can be.
    pub(crate) fn has_room(&mut self, flow: FlowRef, now: Time) -> bool {
        self.flows.has_room(flow, now)
    }

    /// A packet of a flow goes by: its path, if it keeps that of the packet before it.
    #[inline]
    pub(crate) fn kept(&mut self, flow: FlowRef, now: Time, payload: u32) -> Option<Hop> {
        let kept = self.flows.see(flow, now)?;
        self.granularity.continues(&mut kept.run, now, payload).then_some(kept.hop)
    }

    /// The path of a flow's packets before, as a packet goes by that does not belong to their run.
    pub(crate) fn before(&mut self, flow: FlowRef, now: Time) -> Option<Hop> {
        self.flows.see(flow, now).map(|kept| kept.hop)
    }

    /// A flow starts on a path, which was drawn if there is one that flows take otherwise, its `home`.
    pub(crate) fn begin(&mut self, flow: FlowRef, hop: Hop, home: Option<Tag>) {
        let (initial, run) = (home.unwrap_or(hop.tag), self.granularity.open());
        let mut decisions = Decisions::default();
        if home.is_some() {
            decisions.count(hop.tag != initial);
        }
        self.flows.insert(flow, Time::ZERO, Kept { hop, initial, decisions, run });
    }

    /// The flow takes a path, beginning with a packet seen now.
    pub(crate) fn keep(&mut self, flow: FlowRef, hop: Hop, now: Time, payload: u32) {
        if let Some(kept) = self.flows.see(flow, now) {
            kept.hop = hop;
            return;
        }
        let mut run = self.granularity.open();
        self.granularity.continues(&mut run, now, payload);
        let kept = Kept { hop, initial: hop.tag, decisions: Decisions::default(), run };
        self.flows.insert(flow, now, kept);
    }

    pub(crate) fn expects(&self) -> bool {
        self.granularity.expects()
    }

    pub(crate) fn expect(&mut self, flow: FlowRef, hops: u32, rtt: Time) {
        let Table { granularity, flows, shared } = self;
        if let Some(kept) = flows.get_mut(flow) {
            granularity.expect(&mut kept.run, shared, hops, rtt);
        }
    }

    pub(crate) fn lists(&self) -> Option<u32> {
        self.granularity.lists()
    }

    pub(crate) fn list(&mut self, flow: FlowRef, paths: &[Tag]) {
        if let Some(kept) = self.flows.get_mut(flow) {
            self.granularity.list(&mut kept.run, paths);
        }
    }

    pub(crate) fn weighs(&self) -> bool {
        self.granularity.weighs()
    }

    pub(crate) fn weigh(&mut self, flow: FlowRef, hops: &[u32]) {
        if let Some(kept) = self.flows.get_mut(flow) {
            self.granularity.weigh(&mut kept.run, hops);
        }
    }

    pub(crate) fn may_send(&self, flow: FlowRef, next: u32, oldest: u32) -> bool {
        let kept = self.flows.get(flow);
        kept.is_none_or(|kept| self.granularity.may_send(&kept.run, next, oldest))
    }

    /// The tag of all packets of a flow, if they may be sent, until its sender learns something more.
    #[inline]
    pub(crate) fn settled(&self, flow: FlowRef, oldest: u32) -> Option<Tag> {
        let kept = self.flows.get(flow).filter(|kept| self.granularity.is_settled(&kept.run, oldest))?;
        Some(kept.hop.tag)
    }

    /// What a sender should do that learnt something, and what is [settled](Self::settled) after it.
    #[inline]
    pub(crate) fn on_feedback(
        &mut self,
        flow: FlowRef,
        feedback: &Feedback,
        random: &mut impl Rng,
    ) -> (Advice, Option<Tag>) {
        let Table { granularity, flows, shared } = self;
        let Some(kept) = flows.get_mut(flow) else { return (Advice::Continue, None) };
        let advice = granularity.on_feedback(&mut kept.run, shared, feedback);
        granularity.draw(&mut kept.run, random);
        let is_settled = granularity.is_settled(&kept.run, feedback.oldest);
        (advice, is_settled.then_some(kept.hop.tag))
    }

    /// The path by which a flow's next probe leaves now, if there is one; `another` draws one.
    pub(crate) fn probe<R: Rng>(
        &mut self,
        flow: FlowRef,
        now: Time,
        another: impl Fn(Tag, &mut R) -> Tag,
        random: &mut R,
    ) -> Option<Tag> {
        let Table { granularity, flows, .. } = self;
        let kept = flows.get_mut(flow)?;
        while granularity.unsent_probes(&kept.run) > 0 {
            let path = another(kept.hop.tag, random);
            if granularity.probe(&mut kept.run, path, now) {
                return Some(path);
            }
        }
        None
    }

    /// What a sender should do that got the answer to a probe, and what is [settled](Self::settled) after it.
    pub(crate) fn on_probe_answer(
        &mut self,
        flow: FlowRef,
        (path, sent): (Tag, Time),
        now: Time,
        oldest: u32,
    ) -> (Advice, Option<Tag>) {
        let Some(kept) = self.flows.get_mut(flow) else { return (Advice::Continue, None) };
        let advice = self.granularity.on_probe_answer(&mut kept.run, path, sent, now);
        let is_settled = self.granularity.is_settled(&kept.run, oldest);
        (advice, is_settled.then_some(kept.hop.tag))
    }

    pub(crate) fn on_deadline(&mut self, flow: FlowRef, now: Time) {
        if let Some(kept) = self.flows.get_mut(flow) {
            self.granularity.on_deadline(&mut kept.run, now);
        }
    }

    pub(crate) fn counts(&self, flow: FlowRef) -> FlowCounts {
        self.flows.get(flow).map_or_else(FlowCounts::default, |kept| {
            let (drains, drain_time) = G::drains(&kept.run);
            FlowCounts { decisions: kept.decisions, drains, drain_time }
        })
    }

    /// The tag of a packet of a flow that leaves its host now, and what is [settled](Self::settled) after it; `another` chooses one anew.
    pub(crate) fn tag<R: Rng>(
        &mut self,
        flow: FlowRef,
        (payload, oldest): (u32, u32),
        now: Time,
        another: impl FnOnce(Tag, &mut R) -> Tag,
        random: &mut R,
    ) -> (Tag, Option<Tag>) {
        let Some(kept) = self.flows.see(flow, now) else { return (Tag::default(), None) };
        if !self.granularity.continues(&mut kept.run, now, payload) {
            match self.granularity.again(&mut kept.run, random) {
                Some(tag) => kept.redraw(|_| tag),
                None => kept.redraw(|tag| another(tag, random)),
            }
            self.granularity.takes(&mut kept.run, kept.hop.tag);
        }
        let is_settled = self.granularity.is_settled(&kept.run, oldest);
        (kept.hop.tag, is_settled.then_some(kept.hop.tag))
    }

    /// The flow takes another path.
    pub(crate) fn redraw(&mut self, flow: FlowRef, another: impl FnOnce(Tag) -> Tag) {
        if let Some(kept) = self.flows.get_mut(flow) {
            kept.redraw(another);
        }
    }

    /// The flow takes another path, if it is still on the one that it had better leave.
    pub(crate) fn leave(&mut self, flow: FlowRef, path: Tag, another: impl FnOnce(Tag) -> Tag) {
        if let Some(kept) = self.flows.get_mut(flow).filter(|kept| kept.hop.tag == path) {
            kept.redraw(another);
        }
    }

    /// The flow has ended.
    pub(crate) fn end(&mut self, flow: FlowRef) {
        self.flows.remove(flow);
    }
}

impl<R> Kept<R> {
    fn redraw(&mut self, another: impl FnOnce(Tag) -> Tag) {
        self.hop.tag = another(self.hop.tag);
        self.decisions.count(self.hop.tag != self.initial);
    }
}
