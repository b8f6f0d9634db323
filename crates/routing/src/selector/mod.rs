//! What is decided: one port (at a switch) or one entropy value (at a NIC) among the candidates.
//!
//! | kind | decides by | at a NIC |
//! | --- | --- | --- |
//! | [`hash`] | hash of the header | a constant entropy value per flow |
//! | [`random`] | a uniform draw | a uniform entropy value |
//! | [`round_robin`] | the next in turn | the next path label |
//! | [`least_loaded`] | fewest queued bytes, ties at random | – |
//! | [`drill`] | fewest queued bytes among a few samples and remembered ports | – |
//! | [`mod_k`] | the destination's or source's digit | – |
//! | [`weighted`] | hash, in proportion to link rates | – |
//! | [`switch_ar`] | congestion notifications | – |
//! | [`switch_ar_stable`] | the same, with hysteresis | – |
//! | [`switch_ar_fractional`] | the same, dividing a destination's packets | – |
//! | [`valiant`] | a uniform draw among intermediate switches | – |
//! | [`layer`] | a uniform draw among routing layers | the layer in whose table switches look |

pub mod congestion;
pub mod drill;
pub mod hash;
pub mod layer;
pub mod least_loaded;
pub mod mod_k;
pub mod random;
pub mod round_robin;
pub mod switch_ar;
pub mod switch_ar_fractional;
pub mod switch_ar_stable;
pub mod valiant;
pub mod weighted;

use netloom_units::kinds;

kinds! {
    /// What a scheme decides.
    pub enum Selector: "selector" {
        "hash" => Hash(hash::Hash),
        "random" => Random(random::Random),
        "round-robin" => RoundRobin(round_robin::RoundRobin),
        "least-loaded" => LeastLoaded(least_loaded::LeastLoaded),
        "drill" => Drill(drill::Drill),
        "d-mod-k" => DModK(mod_k::DModK),
        "s-mod-k" => SModK(mod_k::SModK),
        "weighted" => Weighted(weighted::Weighted),
        "switch-ar" => SwitchAr(switch_ar::SwitchAr),
        "switch-ar-fractional" => SwitchArFractional(switch_ar_fractional::SwitchArFractional),
        "switch-ar-stable" => SwitchArStable(switch_ar_stable::SwitchArStable),
        "valiant" => Valiant(valiant::Valiant),
        "layer" => Layer(Box<layer::Layer>),
    }
}

impl Selector {
    /// Whether a NIC can use it to pick entropy values.
    pub fn works_at_nic(&self) -> bool {
        matches!(self, Selector::Hash(_) | Selector::Random(_) | Selector::RoundRobin(_) | Selector::Layer(_))
    }

    /// Whether it is a function of the header alone, so that it decides alike for all packets of a flow.
    pub fn is_static(&self) -> bool {
        matches!(self, Selector::Hash(_) | Selector::DModK(_) | Selector::SModK(_) | Selector::Weighted(_))
    }

    /// Refuses parameter values without meaning.
    pub(crate) fn check(&self) -> Result<(), String> {
        match self {
            Selector::Drill(drill) => drill.check(),
            Selector::SwitchAr(config) => config.check(),
            Selector::SwitchArFractional(config) => config.check(),
            Selector::SwitchArStable(config) => config.check(),
            Selector::Layer(layer) => layer.check(),
            _ => Ok(()),
        }
    }
}
