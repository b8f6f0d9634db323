//! What a switch's ports do with packets, which is known where a batch begins, so that no packet asks for it.

use std::marker::PhantomData;

use netloom_engine::Scheduler;
use netloom_fabric::{At, Fate, Known, Packet, PortQueue};

use crate::ctx::Ctx;
use crate::message::Message;
use crate::switch::Switch;
use crate::switch::next_hop_cache::NextHopHint;

/// What a switch's ports do with packets.
pub(crate) trait Queueing {
    const IS_LOSSLESS: bool = false;
    /// Data queues may be served in turn, so that it matters whether something else comes in the same instant.
    const MAY_HAVE_TURNS: bool = false;
    /// [`Known::IS_NEVER_ENTANGLED`].
    const IS_NEVER_ENTANGLED: bool = true;

    /// Sends a packet on at a switch of which nothing else is asked. `is_alone`: nothing else comes at this instant, as far as the queueing [has to know](Self::MAY_HAVE_TURNS).
    fn forward(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
        is_alone: bool,
    );

    /// Puts a packet into the queue in which it leaves.
    fn enqueue(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        to: PortQueue,
        packet: &mut Packet,
    );
}

/// A packet without room is dropped. `MAY_STAMP`, `HANDS_ON_EARLY` and `HAS_PLAIN_QUEUES`: as for [`netloom_fabric::Ports::enqueue_or_drop`].
pub(crate) struct Drops<const MAY_STAMP: bool, const HANDS_ON_EARLY: bool, const HAS_PLAIN_QUEUES: bool>;

/// A packet without room is trimmed. `HANDS_ON_EARLY`: as for [`Drops`]. `TRIMS_PLAINLY`: [`netloom_fabric::Rules::trims_plainly`].
pub(crate) struct Trims<const HANDS_ON_EARLY: bool, const TRIMS_PLAINLY: bool>;

/// Flow control keeps packets from being lost. `K`: what is known of it. With that asked for each packet, one took 3% more instructions.
pub(crate) struct KeepsAll<K>(PhantomData<K>);

impl<const MAY_STAMP: bool, const HANDS_ON_EARLY: bool, const HAS_PLAIN_QUEUES: bool> Queueing
    for Drops<MAY_STAMP, HANDS_ON_EARLY, HAS_PLAIN_QUEUES>
{
    #[inline(always)]
    fn forward(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
        _: bool,
    ) {
        switch.forward::<MAY_STAMP, HANDS_ON_EARLY, HAS_PLAIN_QUEUES>(ctx, packet, hint);
    }

    #[inline(always)]
    fn enqueue(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        to: PortQueue,
        packet: &mut Packet,
    ) {
        let (Switch { ports, random, .. }, rules) = (switch, &ctx.world.rules);
        ports.enqueue_or_drop::<MAY_STAMP, HANDS_ON_EARLY, HAS_PLAIN_QUEUES>(
            to,
            packet,
            random,
            At::new(ctx.now, rules, &mut ctx.wire()),
        );
    }
}

impl<const HANDS_ON_EARLY: bool, const TRIMS_PLAINLY: bool> Queueing
    for Trims<HANDS_ON_EARLY, TRIMS_PLAINLY>
{
    #[inline(always)]
    fn forward(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
        _: bool,
    ) {
        let to = match switch.hinted_port_queue(ctx, packet, hint) {
            Some(to) => to,
            None => switch.choose_port_queue(&mut ctx.again(), packet),
        };
        Self::enqueue(switch, ctx, to, packet);
    }

    #[inline(always)]
    fn enqueue(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        to: PortQueue,
        packet: &mut Packet,
    ) {
        let (Switch { ports, random, .. }, rules) = (&mut *switch, &ctx.world.rules);
        let fate = ports.enqueue_or_trim::<false, HANDS_ON_EARLY, TRIMS_PLAINLY>(
            to,
            packet,
            random,
            At::new(ctx.now, rules, &mut ctx.wire()),
        );
        if fate == Fate::Returned {
            switch.send_back(&mut ctx.again(), packet);
        }
    }
}

impl<K: Known> Queueing for KeepsAll<K> {
    const IS_LOSSLESS: bool = true;
    const MAY_HAVE_TURNS: bool = !K::HAS_PLAIN_QUEUES;
    const IS_NEVER_ENTANGLED: bool = K::IS_NEVER_ENTANGLED;

    #[inline(always)]
    fn forward(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        packet: &mut Packet,
        hint: NextHopHint,
        is_alone: bool,
    ) {
        switch.forward_lossless::<K>(ctx, packet, hint, is_alone);
    }

    #[inline(always)]
    fn enqueue(
        switch: &mut Switch,
        ctx: &mut Ctx<'_, impl Scheduler<Message>>,
        to: PortQueue,
        packet: &mut Packet,
    ) {
        let (Switch { ports, random, .. }, rules) = (switch, &ctx.world.rules);
        // Whether something else comes at this instant is not known.
        ports.enqueue_lossless::<K>((to, false), packet, random, At::new(ctx.now, rules, &mut ctx.wire()));
    }
}
