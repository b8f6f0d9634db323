//! The tags of packets that leave a host.

use netloom_transport::{Cause, Feedback};
use netloom_units::Time;
use rand::Rng;

use crate::forwarding::TagSpace;
use crate::granularity::{Flows, Granularity, each};
use crate::header::{Advice, FlowCounts, FlowRef, Hop};
use crate::scheme::{Placement, Routing};
use crate::tag::Tag;

/// A scheme at work at a NIC.
#[derive(Clone, Debug)]
pub struct NicPathSelector {
    flows: Flows,
    /// A flow's sender takes another path when its window is cut or its timer expires.
    redraws_on_loss: bool,
    /// The granularity learns from feedback.
    learns: bool,
    /// It may keep flows from sending.
    holds_back: bool,
}

impl NicPathSelector {
    /// That of a host's NIC without any flow; none if the scheme leaves NICs alone.
    pub fn new(scheme: &Routing, host: u32) -> Option<Self> {
        if scheme.placement != Placement::Nic {
            return None;
        }
        if scheme.uses_ecmp(host) {
            let flows = Granularity::once_per_flow().at_host();
            return Some(NicPathSelector { flows, redraws_on_loss: false, learns: false, holds_back: false });
        }
        Some(NicPathSelector {
            flows: scheme.granularity.at_host(),
            redraws_on_loss: scheme.redraws_on_loss(),
            learns: scheme.uses_acks(),
            holds_back: scheme.granularity.facts().holds_back,
        })
    }

    /// A flow begins: chooses its first path. A subflow takes the next one after that of the subflow before it.
    pub fn begin(
        &mut self,
        flow: FlowRef,
        before: Option<Tag>,
        tags: TagSpace<'_>,
        random: &mut impl Rng,
    ) -> Tag {
        let tag = match before {
            None => tags.first(random),
            Some(before) => tags.next(before, random),
        };
        let (hop, home) = (Hop { port: 0, tag }, tags.home());
        each!(&mut self.flows, table => table.begin(flow, hop, home), ());
        tag
    }

    /// Whether it wants to know how long an idle path takes.
    pub fn expects(&self) -> bool {
        each!(&self.flows, table => table.expects(), false)
    }

    /// A packet of a flow and its ACK would take so long on an idle minimal path of this many hops, without what serialisation adds to the
    /// packet's way.
    pub fn expect(&mut self, flow: FlowRef, hops: u32, rtt: Time) {
        each!(&mut self.flows, table => table.expect(flow, hops, rtt), ());
    }

    /// How many paths at most it wants to know of a flow that begins; none if it does not go by a list of paths.
    pub fn lists(&self) -> Option<u32> {
        each!(&self.flows, table => table.lists(), None)
    }

    /// A flow that begins has these paths, each once.
    pub fn list(&mut self, flow: FlowRef, paths: &[Tag]) {
        each!(&mut self.flows, table => table.list(flow, paths), ());
    }

    /// Whether it also wants to know how long these paths are.
    pub fn weighs(&self) -> bool {
        each!(&self.flows, table => table.weighs(), false)
    }

    /// The hops between switches of a flow's [listed](Self::list) paths, in the same order.
    pub fn weigh(&mut self, flow: FlowRef, hops: &[u32]) {
        each!(&mut self.flows, table => table.weigh(flow, hops), ());
    }

    /// The tag of a packet of a flow that leaves now, and what is [settled](Self::settled) then; `oldest` is the oldest packet not acknowledged. Retransmissions count like any packet.
    #[inline]
    pub fn tag<'t>(
        &mut self,
        flow: FlowRef,
        (payload, oldest): (u32, u32),
        now: Time,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) -> (Tag, Option<Tag>) {
        let another = |current, random: &mut _| tags().another(current, random);
        each!(
            &mut self.flows,
            table => table.tag(flow, (payload, oldest), now, another, random),
            (Tag::default(), None)
        )
    }

    /// Whether a flow may send new packet `next` while `oldest` is the oldest one not acknowledged.
    #[inline]
    pub fn may_send(&self, flow: FlowRef, next: u32, oldest: u32) -> bool {
        debug_assert!(
            self.holds_back || self.may_send_by_granularity(flow, next, oldest),
            "a kind that keeps flows from sending says so in its facts"
        );
        !self.holds_back || self.may_send_by_granularity(flow, next, oldest)
    }

    #[inline(never)]
    fn may_send_by_granularity(&self, flow: FlowRef, next: u32, oldest: u32) -> bool {
        each!(&self.flows, table => table.may_send(flow, next, oldest), true)
    }

    /// Whether feedback can matter to it.
    #[inline]
    pub fn listens(&self) -> bool {
        self.redraws_on_loss || self.learns
    }

    /// The tag of all packets of a flow that leave before its sender learns something more: until then neither [`Self::tag`] nor [`Self::may_send`] need be asked. None: they must
    /// be. `oldest` is the oldest packet not acknowledged.
    pub fn settled(&self, flow: FlowRef, oldest: u32) -> Option<Tag> {
        each!(&self.flows, table => table.settled(flow, oldest), None)
    }

    /// The sender of a flow learnt something: what it should do, and what is [settled](Self::settled) then.
    pub fn on_feedback<'t>(
        &mut self,
        flow: FlowRef,
        feedback: &Feedback,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) -> (Advice, Option<Tag>) {
        if self.redraws_on_loss
            && (feedback.window_cut || feedback.reroute || feedback.cause == Cause::Timeout)
        {
            let another = |current| tags().another(current, random);
            each!(&mut self.flows, table => table.redraw(flow, another), ());
        }
        each!(&mut self.flows, table => table.on_feedback(flow, feedback, random), (Advice::Continue, None))
    }

    /// The path by which a flow's next probe leaves now; none if no more are to. To be asked where [advice](Advice::Probe) is to probe.
    pub fn probe<'t>(
        &mut self,
        flow: FlowRef,
        now: Time,
        tags: impl Fn() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) -> Option<Tag> {
        each!(
            &mut self.flows,
            table => table.probe(flow, now, |current, random| tags().another(current, random), random),
            None
        )
    }

    /// The answer came to a probe that had left by a path at `sent`; `oldest` is the oldest packet not acknowledged. What the sender should do, and what is [settled](Self::settled) then.
    pub fn on_probe_answer(
        &mut self,
        flow: FlowRef,
        (path, sent): (Tag, Time),
        now: Time,
        oldest: u32,
    ) -> (Advice, Option<Tag>) {
        each!(
            &mut self.flows,
            table => table.on_probe_answer(flow, (path, sent), now, oldest),
            (Advice::Continue, None)
        )
    }

    /// A packet of a flow met a cut link, its sender learnt: the flow leaves the packet's path, unless it has left it before.
    pub fn on_unreachable<'t>(
        &mut self,
        flow: FlowRef,
        feedback: &Feedback,
        tags: impl FnOnce() -> TagSpace<'t>,
        random: &mut impl Rng,
    ) {
        let dead = Tag::from_bits(feedback.tag);
        each!(&mut self.flows, table => table.leave(flow, dead, |dead| tags().another(dead, random)), ());
        each!(&mut self.flows, table => { table.on_feedback(flow, feedback, random); }, ());
    }

    /// A pause may have lasted long enough; one that began later goes on.
    pub fn on_deadline(&mut self, flow: FlowRef, now: Time) {
        each!(&mut self.flows, table => table.on_deadline(flow, now), ());
    }

    /// What was done with a flow so far.
    pub fn counts(&self, flow: FlowRef) -> FlowCounts {
        each!(&self.flows, table => table.counts(flow), FlowCounts::default())
    }

    /// A flow has ended: what was done with it.
    pub fn on_end(&mut self, flow: FlowRef) -> FlowCounts {
        let counts = self.counts(flow);
        each!(&mut self.flows, table => table.end(flow), ());
        counts
    }
}
