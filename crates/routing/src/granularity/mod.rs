//! When a scheme may decide anew: which runs of a flow's packets stay on one path.
//!
//! Each kind is whole in its file: its parameters with their defaults, what is remembered of a flow's present run, and its steps. A new one is
//! such a file and a line in the list below. The steps are pure; whoever decides at a place keeps the runs of its flows.

pub mod conweave;
pub mod flow;
mod flow_table;
pub mod flowbender;
pub mod flowcell;
pub mod flowcut;
pub mod flowlet;
pub mod packet;
pub(crate) mod passing;
pub mod path_list;
pub mod plb;
pub mod plb_delay;
pub mod reps;
mod runs;
mod table;
mod uncounted;

use netloom_units::{Invalid, kinds};

pub(crate) use flow_table::Limits;
pub(crate) use runs::Runs;
pub(crate) use table::Table;

/// Declares the kinds: what a user writes, and the same with the flows of one place.
macro_rules! granularities {
    ($($name:literal => $Kind:ident($Config:ty),)+) => {
        kinds! {
            /// When a scheme may decide anew.
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

            /// Refuses parameter values without meaning.
            pub(crate) fn check(&self) -> Result<(), Invalid> {
                match self {
                    $(Granularity::$Kind(config) => config.check(),)+
                }
            }
        }

        /// The same for the flows of every granularity.
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
}
pub(crate) use each;
