//! When a scheme may choose another path: which runs of a flow's packets stay on one path.
//!
//! Each kind is whole in its file: its parameters with their defaults, what is remembered of a flow's present run, and its steps. A new one is
//! such a file and a line in the list below. The steps are pure; the path selector of a place keeps the runs of its flows.

pub mod conweave;
pub mod entropy_of_acks;
pub mod flow;
mod flow_table;
pub mod flowbender;
pub mod flowcell;
pub mod flowcut;
pub mod flowlet;
pub mod flowlet_by_acks;
pub mod hopper;
mod kind;
mod listed;
pub mod packet;

pub mod path_list;
pub mod path_penalties;
pub mod plb;
pub mod plb_delay;
pub mod reps;
pub mod spritz;
mod table;

use netloom_units::{Invalid, Time, kinds};

use crate::scheme::{Routing, any_of};

pub(crate) use flow_table::Limits;
pub(crate) use kind::{Acks, Ends, Facts, GranularityConfig, Places};
pub(crate) use table::Table;

/// Declares the kinds: what a user writes, and the same with the flows of one place.
macro_rules! granularities {
    ($($name:literal => $Kind:ident($Config:ty),)+) => {
        kinds! {
            /// When a scheme may choose another path.
            pub enum Granularity: "granularity" {
                $($name => $Kind($Config),)+
            }
        }

        /// The flows at a place, by the granularity of its scheme.
        #[derive(Clone, Debug)]
        pub(crate) enum Flows {
            /// None are remembered.
            None,
            $($Kind(Box<Table<$Config>>),)+
        }

        impl Granularity {
            /// The flows that start at a host.
            pub(crate) fn at_host(&self) -> Flows {
                match self {
                    $(Granularity::$Kind(config) => Flows::$Kind(Box::new(Table::of_host(config))),)+
                }
            }

            /// The flows that pass a switch.
            pub(crate) fn at_switch(&self, limits: Limits) -> Flows {
                match self {
                    $(Granularity::$Kind(config) => Flows::$Kind(Box::new(Table::of_switch(config, limits))),)+
                }
            }

            /// What it needs and is able to do.
            pub(crate) fn facts(&self) -> Facts {
                match self {
                    $(Granularity::$Kind(config) => config.facts(),)+
                }
            }

            /// For how long it matters when a flow was last seen, if that is known.
            pub(crate) fn memory(&self) -> Option<Time> {
                match self {
                    $(Granularity::$Kind(config) => config.memory(),)+
                }
            }

            /// The names of the kinds with such facts by default, in words.
            pub(crate) fn names_where(fits: impl Fn(Facts) -> bool) -> String {
                let all = [$(($name, <$Config>::default().facts()),)+];
                any_of(all.into_iter().filter(|&(_, facts)| fits(facts)).map(|(name, _)| name))
            }

            /// Refuses schemes of which it cannot be a part for reasons of its own.
            pub(crate) fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
                match self {
                    $(Granularity::$Kind(config) => config.check_scheme(scheme),)+
                }
            }

            /// Refuses parameter values without meaning.
            pub(crate) fn check(&self) -> Result<(), Invalid> {
                match self {
                    $(Granularity::$Kind(config) => config.check(),)+
                }
            }
        }

        /// What is done with the flows of every granularity.
        macro_rules! each {
            ($flows:expr, $table:ident => $do:expr, $none:expr) => {
                match $flows {
                    Flows::None => $none,
                    $(Flows::$Kind($table) => $do,)+
                }
            };
        }
    };
}

/// The list of kinds.
macro_rules! list {
    ($($more:tt)*) => {
        granularities! {
            "flow" => Flow(flow::Flow),
            "flowlet" => Flowlet(flowlet::Flowlet),
            "flowcell" => Flowcell(flowcell::Flowcell),
            "packet" => Packet(packet::Packet),
            "flowcut" => Flowcut(flowcut::Flowcut),
            "conweave" => ConWeave(conweave::ConWeave),
            "flowbender" => FlowBender(flowbender::FlowBender),
            "plb" => Plb(plb::Plb),
            "plb-delay" => PlbDelay(plb_delay::PlbDelay),
            "reps" => Reps(reps::Reps),
            "path-list" => PathList(path_list::PathList),
            "path-penalties" => PathPenalties(path_penalties::PathPenalties),
            "spritz" => Spritz(spritz::Spritz),
            "entropy-of-acks" => EntropyOfAcks(entropy_of_acks::EntropyOfAcks),
            "flowlet-by-acks" => FlowletByAcks(flowlet_by_acks::FlowletByAcks),
            "hopper" => Hopper(hopper::Hopper),
            $($more)*
        }
    };
}

#[cfg(not(test))]
list! {}

// An example that learns from feedback: one file and one line.
#[cfg(test)]
mod leaves_marked;
#[cfg(test)]
list! {
    "leaves-marked" => LeavesMarked(leaves_marked::LeavesMarked),
}

pub(crate) use each;

impl Granularity {
    /// Whether there is one decision for each flow, which holds until it ends.
    pub fn is_per_flow(&self) -> bool {
        self.facts().ends == Ends::WithFlow
    }

    /// Whether every packet is decided on by itself, whatever came before it.
    pub fn is_per_packet(&self) -> bool {
        self.facts().ends == Ends::EveryPacket && !self.facts().remembers
    }

    /// Whether a flow stays on one path as long as anything of it is in flight.
    pub fn keeps_path(&self) -> bool {
        matches!(self.facts().ends, Ends::WithFlow | Ends::WhenEmpty)
    }

    /// Whether it is there to change the path of a flow without packets coming out of order: when nothing of the flow is in flight, or as first switches label paths so that last ones can restore the
    /// order (ConWeave).
    pub fn keeps_order(&self) -> bool {
        self.facts().labels || self.facts().ends == Ends::WhenEmpty
    }
}
