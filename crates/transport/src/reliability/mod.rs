//! How losses and reordering are dealt with.
//!
//! Each kind is whole in its file: its parameters with their defaults, and what it declares ([`Facts`]). A new one is such a file and a line in the list below.

pub mod bitmap;
pub mod go_back_n;
mod kind;
pub mod none;
pub mod pds;
pub mod selective_repeat;
pub mod trimmed;

use netloom_units::{Invalid, kinds};

pub(crate) use kind::ReliabilityConfig;
pub use kind::{Facts, GivesUp, LossDetection, Takes};

/// Declares the kinds.
macro_rules! reliabilities {
    ($($name:literal => $Kind:ident($Config:ty),)+) => {
        kinds! {
            /// How losses and reordering are dealt with.
            pub enum Reliability: "reliability" {
                $($name => $Kind($Config),)+
            }
        }

        impl Reliability {
            /// What receivers take and answer, and how senders find losses.
            #[inline(always)]
            pub fn facts(&self) -> Facts {
                match self {
                    $(Reliability::$Kind(config) => config.facts(),)+
                }
            }

            /// Refuses parameter values without meaning.
            pub(crate) fn check(&self) -> Result<(), Invalid> {
                match self {
                    $(Reliability::$Kind(config) => config.check(),)+
                }
            }

            /// Every kind with its defaults.
            pub(crate) fn every() -> Vec<Self> {
                vec![$(Reliability::$Kind(<$Config>::default()),)+]
            }
        }
    };
}

impl Reliability {
    /// Fast loss recovery without trimming, if that is on.
    #[inline]
    pub fn sleek(&self) -> Option<&pds::Sleek> {
        match self {
            Reliability::Pds(pds) => pds.sleek.as_ref(),
            _ => None,
        }
    }
}

reliabilities! {
    "selective-repeat" => SelectiveRepeat(selective_repeat::SelectiveRepeat),
    "go-back-n" => GoBackN(go_back_n::GoBackN),
    "trimmed" => Trimmed(trimmed::Trimmed),
    "bitmap" => Bitmap(bitmap::Bitmap),
    "pds" => Pds(pds::Pds),
    "none" => None(none::None),
}
