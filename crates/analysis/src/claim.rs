//! Claims: what a paper says a metric should be.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A claim: a metric and what it should be.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "ClaimText")]
pub(crate) struct Claim {
    pub(crate) id: String,
    pub(crate) statement: String,
    /// `<network>.<measurement>.<quantity>`.
    pub(crate) metric: String,
    pub(crate) expectation: Expectation,
    pub(crate) usage: Use,
    pub(crate) source: String,
    /// Why the claim does not hold, where it does not.
    pub(crate) explanation: Option<String>,
}

/// What the metric should be.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Expectation {
    Equals {
        equals: f64,
        tolerance: f64,
    },
    Between {
        at_least: f64,
        at_most: f64,
    },
    /// More than `factor` times another metric.
    MoreThan {
        more_than: String,
        factor: f64,
    },
}

/// A claim as a study file states it, with exactly one expectation.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimText {
    id: String,
    statement: String,
    metric: String,
    equals: Option<f64>,
    tolerance: Option<f64>,
    at_least: Option<f64>,
    at_most: Option<f64>,
    more_than: Option<String>,
    factor: Option<f64>,
    #[serde(rename = "use")]
    usage: Use,
    source: String,
    explanation: Option<String>,
}

impl TryFrom<ClaimText> for Claim {
    type Error = String;

    fn try_from(text: ClaimText) -> Result<Self, String> {
        let expectation = match (text.equals, text.tolerance, text.at_least, text.at_most, text.more_than) {
            (Some(equals), Some(tolerance), None, None, None) => Expectation::Equals { equals, tolerance },
            (None, None, low, high, None) if low.is_some() || high.is_some() => Expectation::Between {
                at_least: low.unwrap_or(f64::NEG_INFINITY),
                at_most: high.unwrap_or(f64::INFINITY),
            },
            (None, None, None, None, Some(more_than)) => {
                Expectation::MoreThan { more_than, factor: text.factor.unwrap_or(1.0) }
            }
            _ => {
                return Err(format!(
                    "claim {}: expected `equals` with `tolerance`, `at_least` and/or `at_most`, or `more_than`",
                    text.id
                ));
            }
        };
        if text.factor.is_some() && !matches!(expectation, Expectation::MoreThan { .. }) {
            return Err(format!("claim {}: `factor` goes with `more_than`", text.id));
        }
        Ok(Claim {
            id: text.id,
            statement: text.statement,
            metric: text.metric,
            expectation,
            usage: text.usage,
            source: text.source,
            explanation: text.explanation,
        })
    }
}

/// A table of a paper: one claim per cell.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimTable {
    id: String,
    statement: String,
    /// Measurement whose quantities are the columns.
    measurement: String,
    columns: Vec<String>,
    /// Tolerance of each column.
    tolerances: Vec<f64>,
    #[serde(rename = "use")]
    usage: Use,
    source: String,
    /// Published values per network, one per column; NaN where the paper has none.
    rows: BTreeMap<String, Vec<f64>>,
    /// Why a cell does not fit, by `<network>.<column>`.
    #[serde(default)]
    explanations: BTreeMap<String, String>,
}

impl ClaimTable {
    /// The cells as claims, or what is wrong with the table.
    pub(crate) fn claims(&self) -> Result<Vec<Claim>, String> {
        let width = self.columns.len();
        if self.tolerances.len() != width {
            return Err(format!(
                "table {}: {width} columns but {} tolerances",
                self.id,
                self.tolerances.len()
            ));
        }
        let mut claims = Vec::new();
        let mut explanations = self.explanations.clone();
        for (network, values) in &self.rows {
            if values.len() != width {
                return Err(format!(
                    "table {}: row {network} has {} of {width} values",
                    self.id,
                    values.len()
                ));
            }
            for ((column, &equals), &tolerance) in self.columns.iter().zip(values).zip(&self.tolerances) {
                let cell = format!("{network}.{column}");
                let explanation = explanations.remove(&cell);
                if equals.is_nan() {
                    continue;
                }
                claims.push(Claim {
                    id: format!("{}.{cell}", self.id),
                    statement: self.statement.clone(),
                    metric: format!("{network}.{}.{column}", self.measurement),
                    expectation: Expectation::Equals { equals, tolerance },
                    usage: self.usage,
                    source: self.source.clone(),
                    explanation,
                });
            }
        }
        match explanations.into_keys().next() {
            Some(cell) => Err(format!("table {}: the explanation of {cell} belongs to no cell", self.id)),
            None => Ok(claims),
        }
    }
}

/// What a claim is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Use {
    /// The study fails if the claim does.
    Gate,
    /// The values are shown, whatever they are.
    Report,
}

/// Whether a claim holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The metric is as published.
    Holds,
    /// It is not.
    Fails,
}

/// A judged claim.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimResult {
    /// The claim's name.
    pub id: String,
    /// What the paper says.
    pub statement: String,
    /// The value found.
    pub measured: f64,
    /// What was expected, in words.
    pub published: String,
    /// Whether it holds.
    pub verdict: Verdict,
    /// Whether the study fails if it does not.
    pub usage: Use,
    /// Where the paper says it.
    pub source: String,
    /// Why it does not hold, where it does not.
    pub explanation: Option<String>,
}

impl Claim {
    /// The metrics the claim needs.
    pub(crate) fn metrics(&self) -> Vec<&str> {
        match &self.expectation {
            Expectation::MoreThan { more_than, .. } => vec![&self.metric, more_than],
            _ => vec![&self.metric],
        }
    }

    /// Judges the claim; `None` if a metric is missing.
    pub(crate) fn judge(&self, metrics: &BTreeMap<String, f64>) -> Option<ClaimResult> {
        let measured = *metrics.get(&self.metric)?;
        let (holds, published) = match &self.expectation {
            Expectation::Equals { equals, tolerance } => {
                // Published values are rounded: a difference of the tolerance itself is within it.
                let holds = (measured - equals).abs() <= tolerance + 1e-9;
                (holds, format!("{equals} ± {tolerance}"))
            }
            Expectation::Between { at_least, at_most } => {
                let published = match (at_least.is_finite(), at_most.is_finite()) {
                    (true, true) => format!("{at_least} to {at_most}"),
                    (true, false) => format!("at least {at_least}"),
                    _ => format!("at most {at_most}"),
                };
                ((*at_least..=*at_most).contains(&measured), published)
            }
            Expectation::MoreThan { more_than, factor } => {
                let other = *metrics.get(more_than)?;
                let times = if *factor == 1.0 { String::new() } else { format!("{factor} × ") };
                (measured > factor * other, format!("more than {times}{more_than} = {other:.4}"))
            }
        };
        Some(ClaimResult {
            id: self.id.clone(),
            statement: self.statement.clone(),
            measured,
            published,
            verdict: if holds { Verdict::Holds } else { Verdict::Fails },
            usage: self.usage,
            source: self.source.clone(),
            explanation: self.explanation.clone(),
        })
    }
}
