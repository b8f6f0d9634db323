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
//! | [`conga`] | the congestion of whole paths, as leaf switches tell each other | – |
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

use netloom_units::{Invalid, kinds};
use rand::Rng;

use crate::header::{Header, Notice, View};
use congestion::Uncongested;
pub(crate) use kind::{Choose, Facts, Kindred, Place, Question, Situation};

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
        pub(crate) enum Chooser {
            $($Kind(<$Config as Kindred>::State),)+
        }

        impl Selector {
            /// The selector at a switch where it remembers nothing yet.
            pub(crate) fn at(&self, place: Place) -> Chooser {
                match self {
                    $(Selector::$Kind(config) => Chooser::$Kind(config.state(place)),)+
                }
            }

            /// What it needs and is able to do.
            pub(crate) fn facts(&self) -> Facts {
                match self {
                    $(Selector::$Kind(config) => config.facts(),)+
                }
            }

            /// Refuses parameter values without meaning.
            pub(crate) fn check(&self) -> Result<(), Invalid> {
                match self {
                    $(Selector::$Kind(config) => config.check(),)+
                }
            }
        }

        impl Choose for Chooser {
            #[inline]
            fn pick(&mut self, question: Question<'_>, view: &mut impl View, random: &mut impl Rng) -> usize {
                match self {
                    $(Chooser::$Kind(state) => state.pick(question, view, random),)+
                }
            }

            fn notice(&mut self, notice: &Notice, situation: Situation) {
                match self {
                    $(Chooser::$Kind(state) => state.notice(notice, situation),)+
                }
            }

            fn words(&self, header: &Header, ports: usize) -> Option<String> {
                match self {
                    $(Chooser::$Kind(state) => state.words(header, ports),)+
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

// The example of docs/architecture.md.
#[cfg(test)]
mod neighbour;
#[cfg(test)]
list! {
    "neighbour" => Neighbour(neighbour::Neighbour),
}

impl Selector {
    /// Whether a NIC can use it to choose among tags.
    pub fn works_at_nic(&self) -> bool {
        self.facts().works_at_nic
    }

    /// Whether it is a function of the header alone, so that it decides alike for all packets of a flow.
    pub fn is_static(&self) -> bool {
        self.facts().is_static
    }

    /// The port that it takes without congestion, if it listens to congestion notifications.
    pub fn uncongested(&self) -> Option<Uncongested> {
        self.facts().uncongested
    }
}
