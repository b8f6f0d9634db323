//! When a scheme may decide anew: which runs of a flow's packets stay on one path.
//!
//! Each kind is whole in its file: its parameters with their defaults, what is remembered of a flow's present run, and its steps. A new one is
//! such a file and a line in the list below. The steps are pure; whoever decides at a place keeps the runs of its flows.

pub mod flow;
pub mod flowcell;
pub mod flowcut;
pub mod flowlet;
pub mod packet;

use netloom_transport::Feedback;
use netloom_units::{Time, kinds};

use crate::decider::{Advice, Table};

/// How a flow's packets fall into runs.
pub(crate) trait Runs: Clone {
    /// What is remembered of a flow's present run.
    type Run: Clone + std::fmt::Debug;

    /// What the flows of a place share.
    type Shared: Clone + std::fmt::Debug + Default;

    /// Whether feedback matters to it: what it learns is in its runs.
    const LISTENS: bool = false;

    /// The run of a flow of which no packet has been seen.
    fn open(&self) -> Self::Run;

    /// A packet of the flow goes by: whether it belongs to the present run. If not, a new one begins with it. A flow's first packet
    /// begins its first run.
    fn continues(&self, run: &mut Self::Run, now: Time, payload: u32) -> bool;

    /// For how long it matters when a flow was last seen, if that is known.
    fn memory(&self) -> Option<Time> {
        None
    }

    /// Whether a sender may send new packet `next` while `oldest` is the oldest one not acknowledged.
    fn may_send(&self, _: &Self::Run, _next: u32, _oldest: u32) -> bool {
        true
    }

    /// A sender learnt something.
    fn on_feedback(&self, _: &mut Self::Run, _: &mut Self::Shared, _: &Feedback) -> Advice {
        Advice::Continue
    }

    /// A pause has lasted until now.
    fn on_deadline(&self, _: &mut Self::Run, _now: Time) {}

    /// How often the flow was drained, and for how long in all.
    fn drains(_: &Self::Run) -> (u32, Time) {
        (0, Time::ZERO)
    }

    /// Refuses parameter values without meaning.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

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

            /// The flows that pass a switch; it forgets those that it has not seen for longer than `ageing`.
            pub(crate) fn at_switch(&self, ageing: Time) -> Flows {
                match self {
                    $(Granularity::$Kind(config) => Flows::$Kind(Box::new(Table::of_switch(config, ageing))),)+
                }
            }

            /// Refuses parameter values without meaning.
            pub(crate) fn check(&self) -> Result<(), String> {
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
}
pub(crate) use each;
