//! `netloom.Simulation`: a run that Python drives.

use std::time::Instant;

use netloom_scenario::{DrivenResult, DrivenRun};
use netloom_sim::{Completion, Driven, Milestone, Order, RunProgress};
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
    run: Option<DrivenRun>,
}

impl Simulation {
    fn run(&mut self) -> PyResult<&mut DrivenRun> {
        self.run.as_mut().ok_or_else(|| PyRuntimeError::new_err("the run has ended: `finish` was called"))
    }

    /// Lets the run go on without the interpreter's lock, but looks at signals now and then.
    fn go<T: Send>(
        &mut self,
        py: Python<'_>,
        step: impl FnOnce(&mut Driven, &mut dyn FnMut(RunProgress) -> bool) -> T + Send,
    ) -> PyResult<T> {
        let run = self.run()?;
        let mut raised = None;
        let result = py.detach(|| {
            let mut last = Instant::now();
            let mut look = |_| {
                if last.elapsed() >= INTERVAL {
                    last = Instant::now();
                    raised = Python::attach(|py| py.check_signals()).err();
                }
                raised.is_none()
            };
            run.go(|run| step(run, &mut look))
        });
        match raised {
            Some(error) => Err(error),
            None => Ok(result),
        }
    }
}

#[pymethods]
impl Simulation {
    #[new]
    fn new(
        py: Python<'_>,
        scenario: &Scenario,
        reaction: u64,
        threads: usize,
        acknowledged: bool,
    ) -> PyResult<Self> {
        let document = scenario.document.clone();
        let run = py.detach(|| DrivenRun::new(document));
        let mut run = run.map_err(|problems| scenario_error(py, &problems))?;
        run.go(|run| run.set_reaction(Time(reaction)).and_then(|()| run.set_threads(threads)))
            .map_err(|error| argument_error(py, &error.field, error.reason()))?;
        if acknowledged {
            run.go(|run| run.report_acknowledged())
                .map_err(|error| argument_error(py, &error.field, error.reason()))?;
        }
        Ok(Simulation { run: Some(run) })
    }

    fn earliest_start(&mut self) -> PyResult<u64> {
        Ok(self.run()?.run().earliest_start().0)
    }

    fn now(&mut self) -> PyResult<u64> {
        Ok(self.run()?.run().now().0)
    }

    fn start(&mut self, py: Python<'_>, hosts: (u32, u32), size: u64, at: u64, class: u8) -> PyResult<u32> {
        let (src, dst) = hosts;
        let (run, at) = (self.run()?, Time(at));
        let ticket = run.go(|run| run.start(Order { src, dst, bytes: Bytes(size), at, class }));
        ticket.map(|ticket| ticket.0).map_err(|error| argument_error(py, &error.field, error.reason()))
    }

    /// Starts flows, all or none: source, destination, size, instant and class of each.
    fn start_many(&mut self, py: Python<'_>, flows: Vec<(u32, u32, u64, u64, u8)>) -> PyResult<()> {
        let order = |(src, dst, size, at, class)| Order { src, dst, bytes: Bytes(size), at: Time(at), class };
        let orders: Vec<Order> = flows.into_iter().map(order).collect();
        let started = self.run()?.go(|run| run.start_all(&orders));
        started.map(drop).map_err(|(place, error)| {
            argument_error(py, &format!("flows[{place}].{}", error.field), error.reason())
        })
    }

    fn run_until(&mut self, py: Python<'_>, until: Option<u64>) -> PyResult<()> {
        let until = until.map_or(Time::MAX, Time);
        self.go(py, |run, go_on| run.run_until(until, go_on)).map(drop)
    }

    /// The number of the flow, when it was over, and whether at its sender.
    fn next_completion(&mut self, py: Python<'_>, until: Option<u64>) -> PyResult<Option<(u32, u64, bool)>> {
        let until = until.map_or(Time::MAX, Time);
        let completion = self.go(py, |run, go_on| run.next_completion(until, go_on))?;
        let found =
            |Completion { ticket, at, milestone }| (ticket.0, at.0, milestone == Milestone::Acknowledged);
        Ok(completion.map(found))
    }

    fn finish(&mut self, py: Python<'_>) -> PyResult<Outcome> {
        self.run()?;
        let Some(run) = self.run.take() else { unreachable!("it was there") };
        py.detach(|| {
            let DrivenResult { scenario, ran, records } = run.finish()?;
            Ok(Outcome::new(scenario, &ran.summary, &ran.performance, &records, None)
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
