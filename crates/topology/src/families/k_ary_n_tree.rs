//! k-ary n-trees: n levels of identical k-by-k switches.

use netloom_units::{Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cable::Cable;
use crate::error::NetworkError;
use crate::families::{at_least, invalid, nearest, product, xgft};
use crate::network::Network;
use crate::topology::BuildContext;

/// k-ary n-tree (Petrini and Vanneschi, 1997): kⁿ hosts, n levels of kⁿ⁻¹ switches with k ports down and k up,
/// full bisection. The default is the synthetic-traffic network of Crisan et al.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct KaryNTree {
    /// Down ports (and up ports) per switch.
    pub k: u32,
    /// Levels of switches.
    pub n: u32,
    /// Take the k whose kⁿ is nearest to this number of hosts, instead of `k`.
    pub about_hosts: Option<u32>,
    /// Rate of every link.
    pub rate: Rate,
    /// Propagation delay of every link.
    pub latency: Time,
}

impl Default for KaryNTree {
    fn default() -> Self {
        KaryNTree {
            k: 2,
            n: 5,
            about_hosts: None,
            rate: Cable::DEFAULT.rate,
            latency: Cable::DEFAULT.latency,
        }
    }
}

impl KaryNTree {
    pub(crate) fn build(&self, _: &BuildContext<'_>) -> Result<Network, NetworkError> {
        if !(1..=16).contains(&self.n) {
            return Err(invalid("n", "1 to 16 levels", self.n));
        }
        let (k, nearest_to) = match self.about_hosts {
            Some(wanted) => {
                let sizes = (2..65_536).map(|k| (k, product(std::iter::repeat_n(k, self.n as usize))));
                (nearest(wanted.into(), sizes), format!(" nearest to {wanted} hosts"))
            }
            None => (self.k, String::new()),
        };
        at_least("k", k, 2)?;
        let tiers: Vec<_> = (0..self.n as usize)
            .map(|i| xgft::Tier {
                name: xgft::tier_name(i),
                children: k,
                parents: if i == 0 { 1 } else { k },
                bundle: 1,
                cable: Cable { rate: self.rate, latency: self.latency },
            })
            .collect();
        xgft::build(&format!("{k}-ary {}-tree{nearest_to}", self.n), &tiers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::topology::context;

    #[test]
    fn sizes_near_a_number_of_hosts_are_powers() {
        let config = KaryNTree { n: 3, about_hosts: Some(1000), ..Default::default() };
        assert_eq!(
            config.build(&context(1)).unwrap().name(),
            "10-ary 3-tree nearest to 1000 hosts: 1000 hosts"
        );
        let error = KaryNTree { n: 0, ..Default::default() }.build(&context(1)).unwrap_err().to_string();
        assert_eq!(error, "n: expected 1 to 16 levels, found 0");
    }
}
