//! Names of figures, and what each shows.

use crate::point::METRICS;

/// Which values a distribution is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    Fct,
    Slowdown,
}

/// What a figure shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A place in [`METRICS`].
    Metric(usize),
    /// A distribution, or its tail.
    Distribution(Of, bool),
    /// Slowdown by size: mean, median or 99th percentile.
    Sizes(Statistic),
    LinkUse,
    Throughput,
    Queue,
    Network,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Statistic {
    Mean,
    Median,
    P99,
}

/// Figures that are no metric's, with what they show.
const OTHERS: &[(&str, &str, Kind)] = &[
    ("fct-cdf", "distribution of flow completion times", Kind::Distribution(Of::Fct, false)),
    ("fct-tail", "share of flows that take longer, logarithmic", Kind::Distribution(Of::Fct, true)),
    ("slowdown-cdf", "distribution of slowdowns", Kind::Distribution(Of::Slowdown, false)),
    (
        "slowdown-tail",
        "share of flows with a larger slowdown, logarithmic",
        Kind::Distribution(Of::Slowdown, true),
    ),
    ("size-mean", "mean slowdown by flow size", Kind::Sizes(Statistic::Mean)),
    ("size-p50", "median slowdown by flow size", Kind::Sizes(Statistic::Median)),
    ("size-p99", "99th percentile of the slowdown by flow size", Kind::Sizes(Statistic::P99)),
    ("link-use", "use of the links by tier, mean and busiest", Kind::LinkUse),
    ("throughput-over-time", "what the channels sent over time", Kind::Throughput),
    ("queue-over-time", "longest queue over time", Kind::Queue),
    ("network", "the network of one point, links coloured by their use", Kind::Network),
];

/// Every figure with what it shows.
pub(super) fn all() -> impl Iterator<Item = (&'static str, String, Kind)> {
    let metrics = METRICS.iter().enumerate().map(|(place, metric)| {
        let unit = if metric.unit.is_empty() { String::new() } else { format!(" [{}]", metric.unit) };
        (metric.name, format!("{}{unit}", metric.heading), Kind::Metric(place))
    });
    metrics.chain(OTHERS.iter().map(|&(name, text, kind)| (name, text.to_owned(), kind)))
}

/// Names of all figures.
pub fn figures() -> Vec<&'static str> {
    all().map(|(name, ..)| name).collect()
}

pub(super) fn list() -> String {
    let lines = all().map(|(name, text, _)| format!("  {name:22}{text}"));
    format!("figures:\n{}", lines.collect::<Vec<_>>().join("\n"))
}
