//! Disjoint paths and interference.

use netloom_paths::{Counting, PathsConfig, report};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Quantities, named};
use crate::analysis::Subject;

/// Disjoint paths, minimal and almost minimal, and path interference (FatPaths sec. IV). Quantities: `length` (the longest
/// paths counted), `cdp_mean`, `cdp_tail` (1%), `pi_mean`, `pi_tail` (99.9%) as fractions of k' by greedy counting, the same
/// with `exact_` before them up to three hops; `paths_tail` (1% tail as a number of paths); `minimal_mean`; `minimal_1`, `_2`,
/// `_3` (shares of pairs with that many disjoint minimal paths), `minimal_4_up`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Diversity {
    /// Router pairs and quadruples sampled.
    pub samples: u32,
    /// The longest paths counted; by default as many hops as three disjoint paths need.
    pub max_length: Option<u16>,
    /// Whether to count exactly as well.
    pub exact: bool,
}

/// What may be measured; exact counts only up to three hops.
pub(super) const QUANTITIES: [&str; 17] = [
    "minimal_mean",
    "minimal_1",
    "minimal_2",
    "minimal_3",
    "minimal_4_up",
    "length",
    "cdp_mean",
    "cdp_tail",
    "pi_mean",
    "pi_tail",
    "paths_tail",
    "exact_length",
    "exact_cdp_mean",
    "exact_cdp_tail",
    "exact_pi_mean",
    "exact_pi_tail",
    "exact_paths_tail",
];

impl Default for Diversity {
    fn default() -> Self {
        Diversity { samples: 5000, max_length: None, exact: true }
    }
}

impl Diversity {
    pub(super) fn take(&self, subject: &Subject, seed: u64) -> Result<Quantities, String> {
        let config = PathsConfig {
            samples: self.samples,
            seed,
            max_length: self.max_length,
            exact: self.exact,
            interference: true,
        };
        let report = report(&subject.graph, &config).map_err(|error| error.to_string())?;
        let radix = f64::from(report.radix);
        let mut quantities = named([
            ("minimal_mean", report.minimal.mean().value),
            ("minimal_1", report.minimal.share(|paths| paths == 1.0)),
            ("minimal_2", report.minimal.share(|paths| paths == 2.0)),
            ("minimal_3", report.minimal.share(|paths| paths == 3.0)),
            ("minimal_4_up", report.minimal.share(|paths| paths >= 4.0)),
        ]);
        for (counting, prefix) in [(Counting::Greedy, ""), (Counting::Exact, "exact_")] {
            let longest = report.diversity.iter().map(|row| row.length).max();
            let row = report.at_largest_length(counting).filter(|row| Some(row.length) == longest);
            let Some(row) = row else { continue };
            let of = [
                ("cdp_mean", row.disjoint.mean().value / radix),
                ("cdp_tail", row.disjoint.quantile(0.01).value / radix),
                ("pi_mean", row.interference.mean().value / radix),
                ("pi_tail", row.interference.quantile(0.999).value / radix),
                ("paths_tail", row.disjoint.quantile(0.01).value),
                ("length", f64::from(row.length)),
            ];
            quantities.extend(of.map(|(name, value)| (format!("{prefix}{name}"), value)));
        }
        Ok(quantities)
    }
}
