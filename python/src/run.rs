//! `netloom.run`: a scenario in, an outcome out; the interpreter's lock is released meanwhile.

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use netloom_record::{Existing, OutcomeWriter};
use netloom_scenario::{Problems, RunError, prepare, simulate};
use netloom_sim::RunProgress;
use pyo3::prelude::*;

use crate::error::{outcome_error, run_error, scenario_error};
use crate::outcome::Outcome;
use crate::scenario::Scenario;

/// Often enough for Ctrl-C and a bar that moves, rarely enough to cost nothing.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);

/// What a run tells Python now and then: whether to stop, and where it stands.
struct Observer {
    progress: Option<Py<PyAny>>,
    last: Instant,
    raised: Option<PyErr>,
}

impl Observer {
    fn look(&mut self, progress: RunProgress) -> ControlFlow<()> {
        if self.last.elapsed() < INTERVAL {
            return ControlFlow::Continue(());
        }
        self.last = Instant::now();
        let asked = Python::attach(|py| {
            py.check_signals()?;
            if let Some(call) = &self.progress {
                call.call1(py, (progress.time.as_secs_f64(), progress.flows_done, progress.packet_hops))?;
            }
            Ok(())
        });
        match asked {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.raised = Some(error);
                ControlFlow::Break(())
            }
        }
    }
}

/// Runs a scenario. `start` is called with the number of flows (if known) and the simulated end (if set) in seconds, and
/// gives the function to call with (simulated seconds, flows done, packet-hops) every 50 ms.
#[pyfunction]
pub(crate) fn run(
    py: Python<'_>,
    scenario: &Scenario,
    threads: usize,
    out: Option<PathBuf>,
    replace: bool,
    start: Option<Bound<'_, PyAny>>,
) -> PyResult<Outcome> {
    let checked = scenario.read(py)?;
    let ready = py.detach(|| prepare(&checked, &scenario.document));
    let ready = ready.map_err(|problems| scenario_error(py, &problems))?;
    let existing = if replace { Existing::Replace } else { Existing::Refuse };
    if let Some(out) = &out {
        OutcomeWriter::tidy(out);
    }
    let writer = out.map(|out| OutcomeWriter::prepare(&out, existing).map(|writer| (writer, out)));
    let writer = writer.transpose().map_err(|error| outcome_error(&error))?;
    let until = checked.measure.until.map(|until| until.as_secs_f64());
    let progress = start.map(|start| start.call1((ready.total_messages, until))).transpose()?;
    let mut observer = Observer { progress: progress.map(Bound::unbind), last: Instant::now(), raised: None };

    let result: Result<Outcome, RunError> = py.detach(|| {
        let text = checked.to_toml().map_err(Problems::from)?;
        let (ran, records) = simulate(&checked, ready, threads, |progress| observer.look(progress))?;
        if let Some((writer, _)) = &writer {
            writer.write(&text, &ran.summary, &records, &ran.performance)?;
        }
        let folder = writer.map(|(_, out)| std::path::absolute(&out).unwrap_or(out));
        let made = Outcome::new(text, &ran.summary, &ran.performance, &records, folder);
        Ok(made.map_err(netloom_sim::RunError::Series)?)
    });
    // What stopped the run says more than that it was stopped.
    if let Some(error) = observer.raised {
        return Err(error);
    }
    result.map_err(|error| run_error(py, &error))
}
