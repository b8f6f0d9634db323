//! What is decided: one port (at a switch) or one tag (at the edge of the network) among the candidates.
//!
//! Each kind is whole in its file: its parameters with their defaults, what it remembers at a switch, its steps, and its words for
//! `netloom route`. A new one is such a file and a line in the list below.
//!
//! | kind | decides by | at a NIC |
//! | --- | --- | --- |
//! | [`hash`] | hash of the header | a constant entropy value per flow |
//! | [`random`] | a uniform draw | a uniform entropy value |
//! | [`round_robin`] | the next in turn | the next path label |
//! | [`next_entropy`] | the next in turn | the next entropy value |
//! | [`least_loaded`] | fewest queued bytes, ties at random | – |
//! | [`drill`] | fewest queued bytes among a few samples and remembered ports | – |
//! | [`conga`] | the congestion of whole paths, as leaf switches report it to each other | – |
//! | [`dimension_order`] | hash of the header, in the lowest dimension | – |
//! | [`mod_k`] | the destination's or source's digit | – |
//! | [`weighted`] | hash, in proportion to link rates | – |
//! | [`switch_ar`] | congestion notifications | – |
//! | [`switch_ar_stable`] | the same, with hysteresis | – |
//! | [`switch_ar_fractional`] | the same, dividing a destination's packets | – |
//! | [`valiant`] | a uniform draw among intermediate switches | – |
//! | [`ugal`] | the loads of minimal ways and of ways over an intermediate switch | – |
//! | `k-shortest` | a uniform draw among the k shortest paths | the path along which switches forward |
//! | [`layer`] | a uniform draw among routing layers | the layer in whose table switches look |

pub mod conga;
pub mod congestion;
pub mod dimension_order;
pub mod drill;
pub mod estimator;
pub mod hash;
pub(crate) mod k_shortest;
mod kind;
pub mod layer;
pub mod least_loaded;
pub mod mod_k;
pub mod next_entropy;
pub mod random;
pub mod round_robin;
pub mod switch_ar;
pub mod switch_ar_fractional;
pub mod switch_ar_stable;
pub mod ugal;
pub mod valiant;
pub mod weighted;

use netloom_units::recurrence::Walk;
use netloom_units::{Invalid, kinds};
use rand::Rng;

use crate::header::{Header, Notice, View};
use crate::scheme::{Routing, any_of};
use congestion::Uncongested;
pub(crate) use kind::{
    Choice, Digits, Facts, NicTags, PathSet, Places, PortContext, PortSelector, Query, SelectorConfig,
    SwitchContext,
};

/// Declares the kinds: what a user writes, and the same at work.
macro_rules! selectors {
    ($($name:literal => $Kind:ident($Config:ty),)+) => {
        kinds! {
            /// What a scheme decides.
            pub enum Selector: "selector" {
                $($name => $Kind($Config),)+
            }
        }

        /// A selector at work at one switch.
        #[derive(Clone, Debug)]
        pub(crate) enum ActiveSelector {
            $($Kind(<$Config as SelectorConfig>::State),)+
        }

        impl Selector {
            /// The selector at a switch where it remembers nothing yet.
            pub(crate) fn at(&self, place: SwitchContext) -> ActiveSelector {
                match self {
                    $(Selector::$Kind(config) => ActiveSelector::$Kind(config.state(place)),)+
                }
            }

            /// What it needs and is able to do.
            pub(crate) fn facts(&self) -> Facts<'_> {
                match self {
                    $(Selector::$Kind(config) => config.facts(),)+
                }
            }

            /// The names of the kinds with such facts by default, in words.
            pub(crate) fn names_where(fits: impl Fn(Facts<'_>) -> bool) -> String {
                let names = [$(($name, fits(<$Config>::default().facts())),)+];
                any_of(names.into_iter().filter(|&(_, fits)| fits).map(|(name, _)| name))
            }

            /// Refuses schemes of which it cannot be a part for reasons of its own.
            pub(crate) fn check_scheme(&self, scheme: &Routing) -> Result<(), Invalid> {
                match self {
                    $(Selector::$Kind(config) => config.check_scheme(scheme),)+
                }
            }

            /// Refuses parameter values without meaning.
            pub(crate) fn check(&self) -> Result<(), Invalid> {
                match self {
                    $(Selector::$Kind(config) => config.check(),)+
                }
            }
        }

        impl PortSelector for ActiveSelector {
            #[inline(always)]
            fn pick(&mut self, query: Query<'_>, view: &mut impl View, random: &mut impl Rng) -> usize {
                match self {
                    $(ActiveSelector::$Kind(state) => state.pick(query, view, random),)+
                }
            }

            fn notice(&mut self, notice: &Notice, context: PortContext) {
                match self {
                    $(ActiveSelector::$Kind(state) => state.notice(notice, context),)+
                }
            }

            fn recur(&mut self, walk: &mut Walk) {
                match self {
                    $(ActiveSelector::$Kind(state) => state.recur(walk),)+
                }
            }

            fn words(&self, header: &Header, ports: usize) -> Option<String> {
                match self {
                    $(ActiveSelector::$Kind(state) => state.words(header, ports),)+
                }
            }
        }
    };
}

/// The list of kinds.
macro_rules! list {
    ($($more:tt)*) => {
        selectors! {
            "hash" => Hash(hash::Hash),
            "random" => Random(random::Random),
            "round-robin" => RoundRobin(round_robin::RoundRobin),
            "next-entropy" => NextEntropy(next_entropy::NextEntropy),
            "least-loaded" => LeastLoaded(least_loaded::LeastLoaded),
            "drill" => Drill(drill::Drill),
            "conga" => Conga(conga::Conga),
            "dimension-order" => DimensionOrder(dimension_order::DimensionOrder),
            "d-mod-k" => DModK(mod_k::DModK),
            "s-mod-k" => SModK(mod_k::SModK),
            "weighted" => Weighted(weighted::Weighted),
            "switch-ar" => SwitchAr(switch_ar::SwitchAr),
            "switch-ar-fractional" => SwitchArFractional(switch_ar_fractional::SwitchArFractional),
            "switch-ar-stable" => SwitchArStable(switch_ar_stable::SwitchArStable),
            "valiant" => Valiant(valiant::Valiant),
            "ugal" => Ugal(ugal::Ugal),
            "k-shortest" => KShortest(netloom_paths::routes::KShortest),
            "layer" => Layer(Box<layer::Layer>),
            $($more)*
        }
    };
}

#[cfg(not(test))]
list! {}

// The example of docs/tutorial/own-scheme.md.
#[cfg(test)]
mod neighbour;
#[cfg(test)]
list! {
    "neighbour" => Neighbour(neighbour::Neighbour),
}

impl Selector {
    /// Whether it is a function of the header alone, so that it decides alike for all packets of a flow.
    pub fn is_static(&self) -> bool {
        matches!(self.facts().choice, Choice::Hash | Choice::Static)
    }

    /// Whether it draws uniformly among all candidates.
    pub fn is_uniform(&self) -> bool {
        self.facts().choice == Choice::Uniform
    }

    /// The port that it takes without congestion, if it listens to congestion notifications.
    pub fn uncongested(&self) -> Option<Uncongested> {
        self.facts().signals.notices
    }
}
