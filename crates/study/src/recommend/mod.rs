//! Which of several schemes is best for a scenario, in as few runs as that takes.
//!
//! All schemes run with the same seeds, so that each seed gives all of them the same traffic and the same faults. After every round those that are
//! certainly worse than the best one are left out, and the others get twice as many seeds (successive halving; Jamieson and Talwalkar, *Non-stochastic
//! Best Arm Identification*, AISTATS 2016, drops half of them whatever the intervals say). Rounds end when one scheme is left, when the budget would not
//! last for another one, or at the most seeds.
//!
//! Two schemes are compared by the logarithm of the ratio of their metric (by its difference, where it is zero in some run), seed by seed, averaged over the circumstances that are varied. A scheme is
//! worse if Student's t rejects equality; of the 5% that the whole answer may be wrong, round `r` spends 5% / 2^r, shared by all pairs of schemes.

mod student;

use netloom_record::Estimate;
use serde::Serialize;

use crate::columns::{self, Column};
use crate::grid::Plan;
use crate::results::{PointResults, Results};

pub use student::two_sided;

/// How often the whole answer may be wrong.
const WRONG: f64 = 0.05;

/// The axis of the schemes in the study that is run.
pub const SCHEME: &str = "scheme";

/// What is compared.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Criterion {
    /// The full name of the metric.
    pub metric: String,
    /// Whether more of it is better: of rates, or as the user says.
    pub more_is_better: bool,
}

impl Criterion {
    /// The metric of that name among those that the study will have; without one the time of the job if there is one, the makespan of several jobs
    /// or of a program, and otherwise the 99th percentile of the flow completion times.
    ///
    /// # Errors
    /// A name that is none, with the nearest ones.
    pub fn find(plan: &Plan, wanted: Option<&str>, more_is_better: bool) -> Result<Self, String> {
        let metrics = plan.outline.all_metrics();
        let jobs =
            || metrics.iter().filter(|metric| metric.starts_with("jobs.") && metric.ends_with(".job_time"));
        let metric = match (wanted, jobs().count()) {
            // The words alone name the time of the only job.
            (None | Some("job_time"), 1) => jobs().next().map_or("", |metric| metric).to_owned(),
            (Some(wanted), _) => plan.outline.find_metric(wanted)?.to_owned(),
            (None, 0) if !metrics.contains(&"fct.p99") => "throughput_bps".to_owned(),
            (None, 0) => "fct.p99".to_owned(),
            (None, _) => "totals.makespan".to_owned(),
        };
        let more_is_better = more_is_better || crate::numbers::unit(&metric) == "bit/s";
        Ok(Criterion { metric, more_is_better })
    }
}

/// A scheme in the answer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// Its name.
    pub scheme: String,
    /// Its metric over all its runs, in the unit of results.
    pub mean: f64,
    /// Seeds that it ran with.
    pub seeds: usize,
    /// Whether it is the best so far.
    pub is_first: bool,
    /// How many times the metric of the first one its own is: the geometric mean over the seeds that both have, and over the circumstances. None for the first one, and where
    /// the metric is zero in some run.
    pub ratio: Option<f64>,
    /// The 95% interval of that.
    pub interval: Option<(f64, f64)>,
    /// Whether it is certainly worse than the first one.
    pub is_worse: bool,
}

/// The answer so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Ranking {
    /// The schemes that finish, the best mean ratio first.
    pub schemes: Vec<Ranked>,
    /// Schemes without a metric in some run, as where flows or jobs did not end, and in how many of how many.
    pub unfinished: Vec<(String, usize, usize)>,
    /// Schemes of which no seed has run in all circumstances.
    pub not_run: Vec<String>,
}

impl Ranking {
    /// The schemes that are not certainly worse than the first.
    pub fn left(&self) -> impl Iterator<Item = &str> {
        self.schemes.iter().filter(|scheme| !scheme.is_worse).map(|scheme| scheme.scheme.as_str())
    }
}

/// How metrics are compared.
#[derive(Clone, Copy)]
struct Scale {
    more_is_better: bool,
    /// By their ratio.
    has_ratios: bool,
}

/// What a scheme's runs say: for every circumstance the metric by seed.
struct Runs<'a> {
    scheme: &'a str,
    circumstances: Vec<Vec<f64>>,
}

impl Runs<'_> {
    fn seeds(&self) -> usize {
        self.circumstances.iter().map(Vec::len).min().unwrap_or(0)
    }

    fn mean(&self) -> f64 {
        let all = self.circumstances.iter().flatten();
        all.clone().sum::<f64>() / all.count().max(1) as f64
    }

    /// By seed, how much worse it is than another one: the logarithm of the ratio, or the difference, averaged over the circumstances.
    fn against(&self, other: &Runs<'_>, scale: Scale) -> Vec<f64> {
        let sign = if scale.more_is_better { -1.0 } else { 1.0 };
        let seeds = self.seeds().min(other.seeds());
        let count = self.circumstances.len().max(1) as f64;
        let of_seed = |seed: usize| {
            let pairs = self.circumstances.iter().zip(&other.circumstances);
            let worse = |mine: f64, its: f64| if scale.has_ratios { (mine / its).ln() } else { mine - its };
            sign * pairs.map(|(mine, its)| worse(mine[seed], its[seed])).sum::<f64>() / count
        };
        (0..seeds).map(of_seed).collect()
    }
}

/// Ranks the schemes by what has run in rounds up to this one, from 1. Those in `worse` were left out before.
pub fn rank(results: &Results, criterion: &Criterion, round: u32, worse: &[String]) -> Ranking {
    let mut ranking = Ranking::default();
    let mut runs: Vec<Runs<'_>> = Vec::new();
    for scheme in schemes(results) {
        let points: Vec<&PointResults> =
            results.points().iter().filter(|point| is_of(point, scheme)).collect();
        let done = || points.iter().flat_map(|point| point.runs.iter().flatten());
        let has_metric = |numbers: &&crate::work::Numbers| {
            numbers.get(&criterion.metric).is_some_and(|number| number.is_finite())
        };
        let without = done().filter(|numbers| !has_metric(numbers)).count();
        match without {
            0 => runs.push(Runs {
                scheme,
                circumstances: points.iter().map(|point| of_seeds(point, &criterion.metric)).collect(),
            }),
            _ => ranking.unfinished.push((scheme.to_owned(), without, done().count())),
        }
    }
    let is_not_run = |runs: &&Runs<'_>| runs.seeds() == 0;
    ranking.not_run = runs.iter().filter(is_not_run).map(|runs| runs.scheme.to_owned()).collect();
    runs.retain(|runs| runs.seeds() > 0);
    let has_ratios =
        runs.iter().flat_map(|runs| runs.circumstances.iter().flatten()).all(|&number| number > 0.0);
    let scale = Scale { more_is_better: criterion.more_is_better, has_ratios };
    let Some(first) = first(&runs, scale) else { return ranking };
    let pairs = (runs.len() * (runs.len() - 1) / 2).max(1);
    let allowed = WRONG / f64::from(round.min(60)).exp2() / pairs as f64;
    // Back from "worse than" to the ratio of the metric itself.
    let sign = if criterion.more_is_better { -1.0 } else { 1.0 };
    let at = |worse: f64| (sign * worse).exp();
    let ranked = |own: &Runs<'_>| {
        let differences = own.against(&runs[first], scale);
        let is_first = own.scheme == runs[first].scheme;
        let worse_by = Estimate::of(&differences);
        let ratio = worse_by.filter(|_| !is_first && has_ratios);
        let is_worse = !is_first
            && (worse.iter().any(|scheme| scheme == own.scheme) || is_positive(&differences, allowed));
        let ranked = Ranked {
            scheme: own.scheme.to_owned(),
            mean: own.mean(),
            seeds: own.seeds(),
            is_first,
            ratio: ratio.map(|estimate| at(estimate.mean)),
            interval: ratio.and_then(|Estimate { mean, plus_minus }| {
                let (a, b) = plus_minus.map(|half| (at(mean - half), at(mean + half)))?;
                Some((a.min(b), a.max(b)))
            }),
            is_worse,
        };
        (worse_by.map_or(0.0, |worse_by| worse_by.mean), ranked)
    };
    let mut schemes: Vec<(f64, Ranked)> = runs.iter().map(ranked).collect();
    schemes.sort_by(|(a, one), (b, other)| {
        (!one.is_first, one.is_worse).cmp(&(!other.is_first, other.is_worse)).then(a.total_cmp(b))
    });
    ranking.schemes = schemes.into_iter().map(|(_, ranked)| ranked).collect();
    ranking
}

/// A metric by seed, up to the first one that is not done.
fn of_seeds(point: &PointResults, metric: &str) -> Vec<f64> {
    point.runs.iter().map_while(|run| run.as_ref()?.get(metric).copied()).collect()
}

/// What became of packets and links under the schemes, as means over their runs: columns in which the schemes differ, and a row for each scheme.
pub fn reasons(results: &Results, names: &[&str]) -> (Vec<Column>, Vec<Vec<f64>>) {
    const SETS: [&str; 7] =
        ["drops", "trims", "retransmissions", "timeouts", "pauses", "utilisation", "reordering"];
    let mut columns: Vec<Column> = SETS
        .iter()
        .filter_map(|set| columns::chosen(results, &[(*set).to_owned()]).ok())
        .flatten()
        .filter(|column| !column.metric.ends_with(".mean_utilisation") && !column.metric.ends_with(".pauses"))
        .collect();
    let mean = |column: &Column, scheme: &str| {
        let points = results.points().iter().filter(|point| is_of(point, scheme));
        let all: Vec<f64> = points.flat_map(|point| point.known(&column.metric)).collect();
        column.scale * all.iter().sum::<f64>() / all.len().max(1) as f64
    };
    columns.retain(|column| {
        let values: Vec<f64> = names.iter().map(|name| mean(column, name)).collect();
        values.iter().any(|&value| value != values[0])
    });
    let rows = names.iter().map(|name| columns.iter().map(|column| mean(column, name)).collect()).collect();
    (columns, rows)
}

/// The scheme of a cell or point, by its labels.
pub fn scheme_of(labels: &[(String, String)]) -> Option<&str> {
    labels.iter().find(|(axis, _)| axis == SCHEME).map(|(_, label)| label.as_str())
}

/// The schemes in the order in which they are asked for.
fn schemes(results: &Results) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in results.points().iter().filter_map(|point| scheme_of(&point.labels)) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names
}

fn is_of(point: &PointResults, scheme: &str) -> bool {
    scheme_of(&point.labels) == Some(scheme)
}

/// The one that is least worse than the others, among those with the most seeds.
fn first(runs: &[Runs<'_>], scale: Scale) -> Option<usize> {
    let most = runs.iter().map(Runs::seeds).max()?;
    let reference = runs.iter().position(|runs| runs.seeds() == most)?;
    let worse = |index: &usize| {
        let differences = runs[*index].against(&runs[reference], scale);
        differences.iter().sum::<f64>() / differences.len().max(1) as f64
    };
    (0..runs.len()).filter(|&index| runs[index].seeds() == most).min_by(|a, b| worse(a).total_cmp(&worse(b)))
}

/// Whether the mean of the differences is above zero, with that probability of an error at most.
fn is_positive(differences: &[f64], allowed: f64) -> bool {
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    if differences.len() < 2 || mean <= 0.0 {
        return false;
    }
    let squares: f64 = differences.iter().map(|difference| (difference - mean).powi(2)).sum();
    let error = (squares / (n - 1.0) / n).sqrt();
    // All seeds agree, as they do where nothing is random.
    error <= 1e-12 * mean || two_sided(mean / error, differences.len() - 1) <= allowed
}

#[cfg(test)]
mod tests;
