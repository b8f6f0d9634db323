//! `netloom.Simulation`: a run that Python drives.

use std::time::Instant;

use netloom_record::{Performance, Status};
use netloom_scenario::{Problems, prepare, sum_up};
use netloom_sim::{Completion, Driven, Order, RunProgress};
use netloom_units::{Bytes, Time};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::error::{argument_error, run_error, scenario_error};
use crate::outcome::Outcome;
use crate::run::INTERVAL;
use crate::scenario::Scenario;

/// The native half of `netloom.Simulation`. Times are picoseconds.
#[pyclass(module = "netloom._netloom")]
pub(crate) struct Simulation {
    /// Absent once the run has ended.
    run: Option<Driven>,
    scenario: netloom_scenario::Scenario,
    /// What was probably a mistake before the run, and how many switches the network has.
    warnings: Vec<String>,
    switches: u32,
    /// Seconds spent in the run.
    wall_s: f64,
}

impl Simulation {
    fn run(&mut self) -> PyResult<&mut Driven> {
        self.run.as_mut().ok_or_else(|| PyRuntimeError::new_err("the run has ended: `finish` was called"))
    }

    /// Lets the run go on without the interpreter's lock, but looks at signals now and then.
    fn go<T: Send>(
        &mut self,
        py: Python<'_>,
        step: impl FnOnce(&mut Driven, &mut dyn FnMut(RunProgress) -> bool) -> T + Send,
    ) -> PyResult<T> {
        let started = Instant::now();
        let run = self.run()?;
        let mut raised = None;
        let result = py.detach(|| {
            let mut last = Instant::now();
            step(run, &mut |_| {
                if last.elapsed() >= INTERVAL {
                    last = Instant::now();
                    raised = Python::attach(|py| py.check_signals()).err();
                }
                raised.is_none()
            })
        });
        self.wall_s += started.elapsed().as_secs_f64();
        match raised {
            Some(error) => Err(error),
            None => Ok(result),
        }
    }
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(py: Python<'_>, scenario: &Scenario) -> PyResult<Self> {
        let checked = scenario.read(py)?;
        if checked.measure.until.is_some() {
            let message = "expected none in a run that is driven: call `run_until` and `finish`";
            return Err(argument_error(py, "measure.until", message));
        }
        let ready = py.detach(|| prepare(&checked, &scenario.document));
        let ready = ready.map_err(|problems| scenario_error(py, &problems))?;
        let (warnings, switches) = (ready.warnings, ready.switches);
        let run = Some(ready.simulation.drive());
        Ok(Simulation { run, scenario: checked, warnings, switches, wall_s: 0.0 })
    }

    fn now(&mut self) -> PyResult<u64> {
        Ok(self.run()?.now().0)
    }

    fn start(
        &mut self,
        py: Python<'_>,
        src: u32,
        dst: u32,
        size: u64,
        at: Option<u64>,
        class: u8,
    ) -> PyResult<u32> {
        let run = self.run()?;
        let at = at.map_or(run.now(), Time);
        let ticket = run.start(Order { src, dst, bytes: Bytes(size), at, class });
        ticket.map(|ticket| ticket.0).map_err(|error| {
            argument_error(py, error.field, format!("expected {}, found {}", error.expected, error.found))
        })
    }

    fn run_until(&mut self, py: Python<'_>, until: Option<u64>) -> PyResult<()> {
        let until = until.map_or(Time::MAX, Time);
        self.go(py, |run, go_on| run.run_until(until, go_on)).map(drop)
    }

    /// The number of the flow, and when its last byte arrived.
    fn next_completion(&mut self, py: Python<'_>, until: Option<u64>) -> PyResult<Option<(u32, u64)>> {
        let until = until.map_or(Time::MAX, Time);
        let completion = self.go(py, |run, go_on| run.next_completion(until, go_on))?;
        Ok(completion.map(|Completion { ticket, at }| (ticket.0, at.0)))
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<Outcome> {
        self.run()?;
        let Some(run) = self.run.take() else { unreachable!("it was there") };
        let (scenario, wall_s) = (&self.scenario, self.wall_s);
        let (warnings, switches) = (std::mem::take(&mut self.warnings), self.switches);
        py.detach(|| {
            let finished = run.finish()?;
            let summary = sum_up(scenario, warnings, switches, &finished.records, Status::Complete);
            let hops = finished.records.totals.packet_hops;
            let performance = Performance::new(env!("CARGO_PKG_VERSION"), 1, wall_s, hops);
            let text = scenario.to_toml().map_err(Problems::from)?;
            Ok(Outcome::new(text, &summary, &performance, &finished.records, None)
                .map_err(netloom_sim::RunError::Series)?)
        })
        .map_err(|error| run_error(py, &error))
    }

    /// Reads a time such as "10us" as picoseconds.
    #[staticmethod]
    fn picoseconds(py: Python<'_>, name: &str, text: &str) -> PyResult<u64> {
        text.parse::<Time>().map(|time| time.0).map_err(|error| argument_error(py, name, error.to_string()))
    }

    /// Reads a size such as "64KiB" as bytes.
    #[staticmethod]
    fn bytes(py: Python<'_>, name: &str, text: &str) -> PyResult<u64> {
        text.parse::<Bytes>().map(|size| size.0).map_err(|error| argument_error(py, name, error.to_string()))
    }
}
