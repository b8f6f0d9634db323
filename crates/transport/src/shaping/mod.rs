//! How packets that may leave are spread over time.
//!
//! Each kind is whole in its file: its parameters with their defaults, and what it declares ([`Facts`]). A new one is such a file and a line in the list below.

pub mod hf2t;
mod kind;
pub mod none;
pub mod paced;

use netloom_units::{Invalid, Time, kinds};

pub(crate) use kind::ShapingConfig;
pub use kind::{Facts, Spacing};

/// Declares the kinds.
macro_rules! shapings {
    ($($name:literal => $Kind:ident($Config:ty),)+) => {
        kinds! {
            /// How packets that may leave are spread over time.
            pub enum Shaping: "shaping" {
                $($name => $Kind($Config),)+
            }
        }

        impl Shaping {
            /// How it spreads packets.
            #[inline(always)]
            pub fn facts(&self) -> Facts<'_> {
                match self {
                    $(Shaping::$Kind(config) => config.facts(),)+
                }
            }

            /// Refuses parameter values without meaning.
            pub(crate) fn check(&self) -> Result<(), Invalid> {
                match self {
                    $(Shaping::$Kind(config) => config.check(),)+
                }
            }

            /// Fits it to routing whose flowlets keep their path at a gap of exactly `gap`; `None`: routing has no flowlets.
            ///
            /// # Errors
            /// Names the parameter that does not fit.
            pub fn fit(&mut self, gap: Option<Time>) -> Result<(), Invalid> {
                match self {
                    $(Shaping::$Kind(config) => config.fit(gap),)+
                }
            }
        }
    };
}

shapings! {
    "none" => None(none::None),
    "paced" => Paced(paced::Paced),
    "hf2t" => Hf2t(hf2t::Hf2t),
}
