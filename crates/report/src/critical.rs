//! What the time of jobs consists of, where a run has kept its operations.

use netloom_record::{CriticalPaths, Outcome, OutcomeError, critical_sums};
use serde::Serialize;

use crate::curve::round;

/// A part of the critical path of a job.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct CriticalPart {
    job: String,
    /// What was done.
    what: &'static str,
    /// Of which collective operation; empty beside those.
    of: String,
    time_us: f64,
    /// Of the whole path.
    share: f64,
    /// Of messages: what idle paths would have taken.
    idle_us: Option<f64>,
    steps: usize,
}

/// The parts of the first repetition of every job; none where the run has kept no operations, or did not come to the end of it.
pub(crate) fn critical_parts(outcome: &Outcome) -> Result<Vec<CriticalPart>, OutcomeError> {
    let operations = outcome.operations()?;
    if operations.is_empty() {
        return Ok(Vec::new());
    }
    let (ranks, flows, collectives) = (outcome.ranks()?, outcome.flows()?, outcome.collectives()?);
    let paths = CriticalPaths::new(&operations, &ranks, &flows, &collectives);
    let mut parts = Vec::new();
    for (number, job) in (0..).zip(outcome.summary.jobs.keys()) {
        let Ok(steps) = paths.of(number, 0) else { continue };
        let sums = critical_sums(&steps);
        let whole: u64 = sums.iter().map(|sum| sum.time.0).sum();
        parts.extend(sums.into_iter().map(|sum| CriticalPart {
            job: job.clone(),
            what: sum.kind.name(),
            of: sum.collective.map(|name| name.to_string()).unwrap_or_default(),
            time_us: round(sum.time.0 as f64 * 1e-6),
            share: round(sum.time.0 as f64 / whole.max(1) as f64),
            idle_us: sum.ideal.map(|ideal| round(ideal.0 as f64 * 1e-6)),
            steps: sum.steps,
        }));
    }
    Ok(parts)
}
