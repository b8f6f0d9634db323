//! Schemes whose switches do more than choose ports: they count what is in flight, hold packets back, report congestion to each other.
//!
//! Such a scheme has its state machine in its own folder, and its steps there as further functions of
//! [`SwitchPathSelector`](super::SwitchPathSelector). It is made known by a line in the list below.

use super::edges::EdgeScheme;
use crate::granularity::Limits;
use crate::granularity::conweave::ConWeaveMachine;
use crate::granularity::flowcut::in_flight::InFlightTable;
use crate::scheme::Routing;
use crate::selector::conga::Leaf;

/// A scheme's state machine at a switch.
pub(crate) trait Machine: Sized {
    /// That of a switch at which nothing has passed; none if the scheme has none there.
    fn at_switch(scheme: &Routing, place: SwitchPlace) -> Option<Self>;

    /// The ports of this switch lead elsewhere from now on.
    fn on_new_routes(&mut self, scheme: &Routing);

    /// Whether first and last switches work together under a scheme, as [`EdgeScheme`] says.
    fn has_edges(_: &Routing) -> bool {
        false
    }

    /// It, if they do.
    fn as_edge(&mut self) -> Option<&mut dyn EdgeScheme> {
        None
    }
}

/// What such a machine knows of its switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SwitchPlace {
    /// It can be a packet's first switch.
    pub(crate) has_hosts: bool,
    /// Packets can be lost.
    pub(crate) is_lossy: bool,
    /// What its tables of flows may hold.
    pub(crate) limits: Limits,
}

/// Declares the machines.
macro_rules! machines {
    ($($name:ident: $Machine:ty,)+) => {
        /// The state machines at a switch; a scheme has one at most.
        #[derive(Clone, Debug)]
        pub(crate) struct Machines {
            $(pub(crate) $name: Option<Box<$Machine>>,)+
        }

        impl Machines {
            pub(super) fn new(scheme: &Routing, place: SwitchPlace) -> Self {
                Machines { $($name: <$Machine>::at_switch(scheme, place).map(Box::new),)+ }
            }

            /// Whether there is one.
            pub(super) fn any(&self) -> bool {
                $(self.$name.is_some())||+
            }

            /// What works together with other edge switches.
            pub(super) fn edge(&mut self) -> Option<&mut dyn EdgeScheme> {
                $(if let Some(edge) = self.$name.as_mut().and_then(|machine| machine.as_edge()) {
                    return Some(edge);
                })+
                None
            }

            pub(super) fn on_new_routes(&mut self, scheme: &Routing) {
                $(if let Some(machine) = &mut self.$name {
                    machine.on_new_routes(scheme);
                })+
            }
        }

        impl Routing {
            /// Whether packets' first and last switches [work together](super::edges), with signals between them.
            pub fn has_edges(&self) -> bool {
                $(<$Machine>::has_edges(self))||+
            }
        }
    };
}

machines! {
    in_flight: InFlightTable,
    conweave: ConWeaveMachine,
    conga: Leaf,
}
