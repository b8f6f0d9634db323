//! What protocols do at hosts.

use netloom_engine::Scheduler;
use netloom_fabric::Packet;

use crate::ctx::Ctx;
use crate::host::Host;
use crate::message::Message;
use crate::protocol::declaration::Protocol;
use crate::protocol::{Timer, packets};

/// What a protocol does at a host. All of it is optional, but its control packets that come to hosts must be taken.
pub(crate) trait HostProtocol: Protocol {
    /// One of its control packets has come.
    fn on_packet(_: &mut Host, _: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
        unreachable!("{:?} ends at switches", packet.kind)
    }

    /// One of its timers fires.
    fn on_timer(_: &mut Host, _: &mut Ctx<'_, impl Scheduler<Message>>, timer: Self::Timer) {
        unreachable!("{timer:?} is a switch's")
    }

    /// A data packet, or its header, has come for a receiver that misses more, and has been answered.
    #[inline(always)]
    fn on_arrival(_: &mut Host, _: &mut Ctx<'_, impl Scheduler<Message>>, _: &Packet, _receiver: u32) {}

    /// Everything has come for a receiver.
    #[inline(always)]
    fn on_complete(_: &mut Host, _: &mut Ctx<'_, impl Scheduler<Message>>, _receiver: u32) {}

    /// A flow to a host begins, or has something to send again.
    #[inline(always)]
    fn on_work(_: &mut Host, _: &mut Ctx<'_, impl Scheduler<Message>>, _dst: u32) {}

    /// A data packet leaves.
    #[inline(always)]
    fn on_sent(_: &mut Host, _: &mut Ctx<'_, impl Scheduler<Message>>, _: &Packet) {}

    /// Acts, if [the time for it](crate::protocol::state::HostState::next_wake) has come; returns whether it has.
    #[inline(always)]
    fn wake(_: &mut Host, _: &mut Ctx<'_, impl Scheduler<Message>>) -> bool {
        false
    }
}

/// A protocol's control packet ends at a host. Out of line, so that [`on_packet`] is a jump.
#[inline(never)]
fn on_packet_of<P: HostProtocol>(
    host: &mut Host,
    ctx: &mut Ctx<'_, impl Scheduler<Message>>,
    packet: &Packet,
) {
    P::on_packet(host, ctx, packet);
}

macro_rules! dispatch {
    ($($module:ident::$Protocol:ident: $($kind:ident),* $(| $($own:ident),+)?;)*) => {
        use crate::protocol::{$($module::$Protocol),*};

        /// A control packet ends at a host.
        #[inline(never)]
        pub(crate) fn on_packet(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
            match packet.kind {
                $($(packets::$kind => on_packet_of::<$Protocol>(host, ctx, packet),)*)*
                kind => unreachable!("{kind:?} is no control packet"),
            }
        }

        /// A protocol's timer fires at a host.
        pub(crate) fn on_timer(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, timer: Timer) {
            match timer {
                $(Timer::$Protocol(timer) => $Protocol::on_timer(host, ctx, timer),)*
            }
        }

        /// A data packet, or its header, has come for a receiver that misses more, and has been answered.
        #[inline(always)]
        pub(crate) fn on_arrival(
            host: &mut Host,
            ctx: &mut Ctx<'_, impl Scheduler<Message>>,
            packet: &Packet,
            receiver: u32,
        ) {
            $($Protocol::on_arrival(host, ctx, packet, receiver);)*
        }

        /// Everything has come for a receiver.
        #[inline(always)]
        pub(crate) fn on_complete(
            host: &mut Host,
            ctx: &mut Ctx<'_, impl Scheduler<Message>>,
            receiver: u32,
        ) {
            $($Protocol::on_complete(host, ctx, receiver);)*
        }

        /// A flow to a host begins, or has something to send again.
        #[inline(always)]
        pub(crate) fn on_work(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, dst: u32) {
            $($Protocol::on_work(host, ctx, dst);)*
        }

        /// A data packet leaves.
        #[inline(always)]
        pub(crate) fn on_sent(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>, packet: &Packet) {
            $($Protocol::on_sent(host, ctx, packet);)*
        }

        /// The first one acts whose time for it has come; returns whether any has.
        #[inline(always)]
        pub(crate) fn wake(host: &mut Host, ctx: &mut Ctx<'_, impl Scheduler<Message>>) -> bool {
            $($Protocol::wake(host, ctx))||*
        }
    };
}

for_all_protocols!(dispatch);
