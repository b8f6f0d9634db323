//! What protocols keep at hosts and switches.

use std::fmt::Debug;

use netloom_fabric::Packet;
use netloom_topology::NodeId;
use netloom_units::Time;
use netloom_units::recurrence::Walk;

use crate::protocol::declaration::Protocol;
use crate::world::World;

/// A protocol, as far as it keeps something at nodes.
pub(crate) trait ProtocolState: Protocol {
    /// What it keeps at a host.
    type AtHost: HostState;

    /// What it keeps at a switch.
    type AtSwitch: SwitchState;

    /// Which packets a switch, which may have hosts, has to hand to it, rather than only carry them; `None`: none.
    fn takes_part(_: &World, _has_hosts: bool, _: &Self::AtSwitch) -> Option<Part> {
        None
    }
}

/// What part a protocol has in what a switch does with packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    /// It takes packets of its own, or says how others leave.
    Routes,
    /// It also has a say in what enters queues.
    Queues,
}

/// What a protocol keeps at a host.
pub(crate) trait HostState: Debug + Default {
    /// Whether all that it keeps is nothing, or the same in every period. Unless a protocol says so, a host that keeps something for it is not known to [recur](netloom_units::recurrence).
    fn recurs(&self) -> bool {
        false
    }

    /// [Recurs](netloom_units::recurrence), where what it keeps may change in a period.
    fn recur(&mut self, walk: &mut Walk) {
        if !self.recurs() {
            walk.refuse("a protocol that keeps something at hosts");
        }
    }

    /// Whether it has a say in when flows send.
    #[inline(always)]
    fn gates(&self) -> bool {
        false
    }

    /// When packets to a host may leave, as far as it has a say.
    #[inline(always)]
    fn ready_at(&self, _dst: u32) -> Time {
        Time::ZERO
    }

    /// When it wants to act next, besides its timers and packets. A host of which this may be asked is [watched](crate::host::Host::watch).
    #[inline(always)]
    fn next_wake(&self) -> Option<Time> {
        None
    }
}

impl HostState for () {
    fn recurs(&self) -> bool {
        true
    }
}

/// What a protocol keeps at a switch.
pub(crate) trait SwitchState: Debug {
    /// That of a switch which nothing has reached.
    fn new(world: &World, id: NodeId) -> Self;

    /// Whether all that it keeps is nothing, or the same in every period, as [`HostState::recurs`].
    fn recurs(&self) -> bool {
        false
    }

    /// The packets that it holds.
    fn buffered(&self) -> impl Iterator<Item = &Packet> {
        std::iter::empty()
    }
}

impl SwitchState for () {
    fn new(_: &World, _: NodeId) -> Self {}

    fn recurs(&self) -> bool {
        true
    }
}

macro_rules! states {
    ($($module:ident::$Protocol:ident: $($kind:ident),* $(| $($own:ident),+)?;)*) => {
        /// What the protocols keep at a host.
        #[derive(Debug, Default)]
        pub(crate) struct AtHost {
            $(pub(crate) $module: <crate::protocol::$module::$Protocol as ProtocolState>::AtHost,)*
        }

        impl AtHost {
            /// [Recurs](netloom_units::recurrence).
            pub(crate) fn recur(&mut self, walk: &mut Walk) {
                $(HostState::recur(&mut self.$module, walk);)*
            }

            /// Whether any has a say in when flows send.
            #[inline(always)]
            pub(crate) fn gates(&self) -> bool {
                $(self.$module.gates())||*
            }

            /// When packets to a host may leave, as far as they have a say.
            #[inline(always)]
            pub(crate) fn ready_at(&self, dst: u32) -> Time {
                Time::ZERO$(.max(self.$module.ready_at(dst)))*
            }

            /// When any wants to act next, besides timers and packets.
            #[inline(always)]
            pub(crate) fn next_wake(&self) -> Option<Time> {
                let mut next: Option<Time> = None;
                $(
                    if let Some(wake) = self.$module.next_wake() {
                        next = Some(next.map_or(wake, |next| next.min(wake)));
                    }
                )*
                next
            }
        }

        /// What the protocols keep at a switch.
        #[derive(Debug)]
        pub(crate) struct AtSwitch {
            $(pub(crate) $module: <crate::protocol::$module::$Protocol as ProtocolState>::AtSwitch,)*
        }

        impl AtSwitch {
            /// Whether all that they keep is nothing, or the same in every period.
            pub(crate) fn recurs(&self) -> bool {
                $(SwitchState::recurs(&self.$module))&&*
            }

            /// That of a switch which nothing has reached.
            pub(crate) fn new(world: &World, id: NodeId) -> Self {
                AtSwitch { $($module: SwitchState::new(world, id),)* }
            }

            /// The packets that they hold.
            pub(crate) fn buffered(&self) -> impl Iterator<Item = &Packet> {
                std::iter::empty()$(.chain(self.$module.buffered()))*
            }

            /// The greatest part that any of them has at a switch, which may have hosts.
            pub(crate) fn take_part(&self, world: &World, has_hosts: bool) -> Option<Part> {
                None$(.max(
                    <crate::protocol::$module::$Protocol as ProtocolState>::takes_part(world, has_hosts, &self.$module)
                ))*
            }
        }
    };
}

for_all_protocols!(states);
