//! k-ary n-trees: n levels of identical k-by-k switches.

use netloom_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::families::{at_least, invalid, xgft};
use crate::network::{Network, NetworkError};

/// k-ary n-tree (Petrini and Vanneschi, 1997): kⁿ hosts, n levels of kⁿ⁻¹ switches with k ports down and k up,
/// full bisection. The default is the synthetic-traffic network of Crisan et al.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KaryNTree {
    /// Down ports (and up ports) per switch.
    pub k: u32,
    /// Levels of switches.
    pub n: u32,
    /// Rate of every link.
    pub rate: Rate,
    /// Propagation delay of every link.
    pub latency: Time,
}

impl Default for KaryNTree {
    fn default() -> Self {
        KaryNTree { k: 2, n: 5, rate: Cable::DEFAULT.rate, latency: Cable::DEFAULT.latency }
    }
}

impl KaryNTree {
    pub(crate) fn build(&self) -> Result<Network, NetworkError> {
        at_least("k", self.k, 2)?;
        if !(1..=16).contains(&self.n) {
            return Err(invalid("n", "1 to 16 levels", self.n));
        }
        let tiers: Vec<_> = (0..self.n as usize)
            .map(|i| xgft::Tier {
                name: xgft::tier_name(i),
                children: self.k,
                parents: if i == 0 { 1 } else { self.k },
                bundle: 1,
                cable: Cable { rate: self.rate, latency: self.latency },
            })
            .collect();
        xgft::build(&format!("{}-ary {}-tree", self.k, self.n), &tiers)
    }
}
