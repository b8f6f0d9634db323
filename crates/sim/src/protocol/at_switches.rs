//! What protocols do at switches that [hand packets to them](crate::protocol::state::ProtocolState::takes_part).

use netloom_engine::Scheduler;
use netloom_fabric::{Packet, PortQueue};
use netloom_topology::PortId;

use crate::ctx::Ctx;
use crate::message::Message;
use crate::protocol::declaration::Protocol;
use crate::protocol::{Timer, packets};
use crate::switch::Switch;
use crate::switch::next_hop_cache::NextHopHint;
use crate::world::World;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Handling {
    /// The switch forwards it.
    GoesOn,
    /// The protocol has seen to it.
    Taken,
}

/// Who has said how a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// No protocol: routing does.
    Open,
    /// The protocol.
    To(PortQueue),
    /// The protocol has seen to the packet.
    Taken,
}

/// What switches behind a packet's first one read of its tag to see how it leaves. Beside that there may be anything.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TagReading {
    /// The bits of data in which the label of their path is; none where tags do not say how data leave.
    pub(crate) label: Option<u32>,
    /// The bits of what else hosts send that are hashed.
    pub(crate) hashed: u32,
}

/// What a protocol does at a switch. All of it is optional.
pub(crate) trait SwitchProtocol: Protocol {
    /// One of its control packets has come.
    #[inline(always)]
    fn on_packet(_: &mut Switch, _: &mut Ctx<'_, impl Scheduler<Message>>, _: &mut Packet) -> Route {
        Route::Open
    }

    /// One of its timers fires.
    fn on_timer(_: &mut Switch, _: &mut Ctx<'_, impl Scheduler<Message>>, timer: Self::Timer) {
        unreachable!("{timer:?} is a host's")
    }

    /// How switches [read tags](TagReading) before packets are handled, where this protocol takes part.
    #[inline(always)]
    fn reads(_: &World) -> Option<TagReading> {
        None
    }

    /// How any packet that goes on leaves the switch. The hint of one says how it leaves by its tag as it has been read.
    #[inline(always)]
    fn route(
        _: &mut Switch,
        _: &mut Ctx<'_, impl Scheduler<Message>>,
        _: &mut Packet,
        _: NextHopHint,
    ) -> Route {
        Route::Open
    }

    /// A packet is about to enter the queue of a port.
    #[inline(always)]
    fn before_queue(
        _: &mut Switch,
        _: &mut Ctx<'_, impl Scheduler<Message>>,
        _: PortId,
        _: &mut Packet,
    ) -> Handling {
        Handling::GoesOn
    }
}

macro_rules! dispatch {
    ($($module:ident::$Protocol:ident: $($kind:ident),* $(| $($own:ident),+)?;)*) => {
        use crate::protocol::{$($module::$Protocol),*};

        /// A packet comes to a switch: its protocol looks at it, if it is a control packet.
        #[inline(always)]
        pub(crate) fn on_packet(
            switch: &mut Switch,
            ctx: &mut Ctx<'_, impl Scheduler<Message>>,
            packet: &mut Packet,
        ) -> Route {
            match packet.kind {
                $($(packets::$kind => $Protocol::on_packet(switch, ctx, packet),)*)*
                _ => Route::Open,
            }
        }

        /// A protocol's timer fires at a switch.
        pub(crate) fn on_timer(switch: &mut Switch, ctx: &mut Ctx<'_, impl Scheduler<Message>>, timer: Timer) {
            match timer {
                $(Timer::$Protocol(timer) => $Protocol::on_timer(switch, ctx, timer),)*
            }
        }

        /// How switches read tags where a protocol takes part; none if nothing is to be read before packets are handled.
        pub(crate) fn reads(world: &World) -> Option<TagReading> {
            None$(.or($Protocol::reads(world)))*
        }

        /// How a packet leaves a switch, if any protocol says so.
        #[inline(always)]
        pub(crate) fn route(
            switch: &mut Switch,
            ctx: &mut Ctx<'_, impl Scheduler<Message>>,
            packet: &mut Packet,
            hint: NextHopHint,
        ) -> Route {
            $(
                let route = $Protocol::route(switch, ctx, packet, hint);
                if route != Route::Open {
                    return route;
                }
            )*
            Route::Open
        }

        /// A packet is about to enter the queue of a port.
        #[inline(always)]
        pub(crate) fn before_queue(
            switch: &mut Switch,
            ctx: &mut Ctx<'_, impl Scheduler<Message>>,
            port: PortId,
            packet: &mut Packet,
        ) -> Handling {
            $(
                if $Protocol::before_queue(switch, ctx, port, packet) == Handling::Taken {
                    return Handling::Taken;
                }
            )*
            Handling::GoesOn
        }
    };
}

for_all_protocols!(dispatch);
