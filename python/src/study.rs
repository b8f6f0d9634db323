//! `netloom.Study`: a grid of cells, run here or handed out.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};

use netloom_record::{OutcomeTable, Records};
use netloom_scenario::{Node, Problem, Problems, Source, suggest};
use netloom_study::{
    Cell, CellEvent, CellFolders, CellReport, Findings, Form, PROGRAM, Parcel, Plan, ResultFiles, Running,
    Shard, WorkError, judge, run_cells, store, unit, write_results,
};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{argument_error, outcome_error, scenario_error};
use crate::outcome::read_table;
use crate::run::INTERVAL;
use crate::table::{Column, Table};
use crate::value::to_node;

/// The native half of `netloom.Study`.
#[pyclass(module = "netloom._netloom")]
pub(crate) struct Study {
    study: netloom_study::Study,
    plan: Plan,
    /// Where the results lie, once that is known, and the cells' folders, in use.
    place: Option<(PathBuf, CellFolders)>,
    reports: Vec<CellReport>,
}

/// A cell for Python: its labels by axis, its seed, and its name.
type CellRow = (Vec<(String, String)>, u64, String);

/// A parcel for Python: whether it is a run, its text, its files.
type ParcelRow = (bool, String, Vec<(PathBuf, Vec<u8>)>);

impl Study {
    fn new(py: Python<'_>, document: &Node, form: Form) -> PyResult<Self> {
        let made = py.detach(|| {
            let study = netloom_study::Study::read(document, form)?;
            let plan = study.plan()?;
            Ok((study, plan))
        });
        let (study, plan) = made.map_err(|problems: Problems| scenario_error(py, &problems))?;
        Ok(Study { study, plan, place: None, reports: Vec::new() })
    }

    fn cell_folders(&self) -> PyResult<(&Path, &CellFolders)> {
        let (folder, cells) =
            self.place.as_ref().ok_or_else(|| PyRuntimeError::new_err("the study has no folder yet"))?;
        Ok((folder, cells))
    }

    /// Reads what is done, and runs the rest unless `stop` is set.
    fn go(
        &self,
        py: Python<'_>,
        running: &Running<'_>,
        news: Option<&Bound<'_, PyAny>>,
        stop: &AtomicBool,
    ) -> PyResult<Vec<CellReport>> {
        let (_, folders) = self.cell_folders()?;
        let cells = &self.plan.cells;
        let news = news.map(|news| news.clone().unbind());
        let mut raised = None;
        let reports = py.detach(|| {
            let (sender, ended) = channel();
            std::thread::scope(|scope| {
                // The cells run on threads of their own, so that this one can look at signals.
                let worker = scope.spawn(move || {
                    run_cells(cells, folders, running, &|event| {
                        if let CellEvent::Ended(..) = event {
                            // Nobody listens any more only if the run is over.
                            let _ = sender.send(());
                        }
                    })
                });
                loop {
                    let ended = ended.recv_timeout(INTERVAL);
                    let looked = Python::attach(|py| {
                        py.check_signals()?;
                        match (&news, ended) {
                            (Some(news), Ok(())) => news.call0(py).map(drop),
                            _ => Ok(()),
                        }
                    });
                    if let Err(error) = looked {
                        stop.store(true, Ordering::Relaxed);
                        raised.get_or_insert(error);
                    }
                    if let Err(RecvTimeoutError::Disconnected) = ended {
                        break;
                    }
                }
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            })
        });
        match raised {
            Some(error) => Err(error),
            None => reports.map_err(|problem| scenario_error(py, &problem.into())),
        }
    }

    fn done(&self) -> impl Iterator<Item = (&Cell, &CellReport)> {
        self.plan.cells.iter().zip(&self.reports).filter(|(_, report)| report.numbers().is_some())
    }

    fn axes(&self) -> Vec<String> {
        self.study.axes.iter().map(|axis| axis.name.clone()).collect()
    }
}

/// A cell's label on an axis, if it is varied along it.
fn label(cell: &Cell, axis: &str) -> Option<String> {
    cell.point.labels.iter().find(|(name, _)| name == axis).map(|(_, label)| label.clone())
}

#[pymethods]
impl Study {
    /// What is probably a mistake, each in one sentence.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.plan.warnings.clone()
    }

    #[staticmethod]
    fn from_file(py: Python<'_>, file: PathBuf, small: bool, full: bool) -> PyResult<Self> {
        let form = match (small, full) {
            (true, true) => {
                return Err(PyValueError::new_err(
                    "a study is run in its small or its full form, not in both",
                ));
            }
            (true, false) => Form::Small,
            (false, true) => Form::Full,
            (false, false) => Form::Middle,
        };
        let document = Source::read(&file).map_err(Problems::from).and_then(|source| Node::parse(&source));
        Study::new(py, &document.map_err(|problems| scenario_error(py, &problems))?, form)
    }

    #[staticmethod]
    fn from_dict(fields: &Bound<'_, PyDict>) -> PyResult<Self> {
        Study::new(fields.py(), &to_node(fields, "")?, Form::Middle)
    }

    #[getter]
    fn title(&self) -> &str {
        &self.study.title
    }

    #[getter(axes)]
    fn axis_names(&self) -> Vec<String> {
        self.axes()
    }

    fn cells(&self) -> Vec<CellRow> {
        let row = |cell: &Cell| (cell.point.labels.clone(), cell.seed(), cell.point.name());
        self.plan.cells.iter().map(row).collect()
    }

    /// Sets the folder of the results and reads the results in it; returns the number of cells that are done.
    fn open(&mut self, py: Python<'_>, folder: PathBuf) -> PyResult<usize> {
        let folder = std::path::absolute(folder)?;
        let cells = CellFolders::open(&folder.join("cells"))
            .map_err(|error| PyOSError::new_err(format!("cannot write {}: {error}", folder.display())))?;
        self.place = Some((folder, cells));
        self.look(py)
    }

    /// Reads again what is done; returns how many cells are.
    fn look(&mut self, py: Python<'_>) -> PyResult<usize> {
        let stop = AtomicBool::new(true);
        let running = Running { program: PROGRAM, workers: 1, shard: None, stop: &stop };
        self.reports = self.go(py, &running, None, &stop)?;
        Ok(self.done().count())
    }

    /// Runs what is not done yet; `news` is called whenever a cell has ended.
    fn run(
        &mut self,
        py: Python<'_>,
        workers: usize,
        shard: Option<(u32, u32)>,
        news: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let shard = match shard {
            None => None,
            Some((number, of)) => match (number.try_into(), of.try_into()) {
                (Ok(number), Ok(of)) if number <= of => Some(Shard { number, of }),
                _ => {
                    return Err(argument_error(
                        py,
                        "shard",
                        format!("expected i of n with 1 <= i <= n, found {number} of {of}"),
                    ));
                }
            },
        };
        let stop = AtomicBool::new(false);
        let running = Running { program: PROGRAM, workers: workers.max(1), shard, stop: &stop };
        self.reports = self.go(py, &running, news.as_ref(), &stop)?;
        Ok(())
    }

    /// The cells that are left to do, most work first: position, folder, parcel.
    fn parcels(&self, py: Python<'_>) -> PyResult<Vec<(usize, PathBuf, ParcelRow)>> {
        let mut seen = std::collections::BTreeSet::new();
        let mut open: Vec<(f64, usize)> = Vec::new();
        for (index, report) in self.reports.iter().enumerate() {
            // Cells that do the same share a folder.
            if report.result.is_none() && seen.insert(&report.folder) {
                open.push((self.plan.costs[index], index));
            }
        }
        open.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let parcel = |(_, index): (f64, usize)| {
            let parcel = self.plan.cells[index].work().parcel();
            let Parcel { is_run, text, files } =
                parcel.map_err(|problem| scenario_error(py, &problem.into()))?;
            Ok((index, self.reports[index].folder.clone(), (is_run, text, files)))
        };
        open.into_iter().map(parcel).collect()
    }

    /// Cells without result, and why: position, message.
    fn failures(&self) -> Vec<(usize, String)> {
        let failed = self.reports.iter().enumerate().filter_map(|(index, report)| match &report.result {
            Some(Err(error)) => Some((index, error.to_string())),
            _ => None,
        });
        failed.collect()
    }

    /// Notes that a cell failed elsewhere.
    fn fail(&mut self, cell: usize, message: String) {
        self.reports[cell].result = Some(Err(WorkError::Failed(message)));
    }

    /// Writes `results.csv`, `results.parquet` and `study.json`; returns the claims with what was measured, as JSON.
    fn judge(&self) -> PyResult<String> {
        let (folder, _) = self.cell_folders()?;
        let results = self.plan.results(&self.reports);
        let verdicts = judge(&self.study.claims, &results);
        let (plan, reports) = (&self.plan, &self.reports);
        let findings = Findings::new(&self.study, (plan, reports), &results, verdicts, folder, None)
            .map_err(|problem| PyRuntimeError::new_err(problem.to_string()))?;
        write_results(folder, &plan.cells, reports, &results, &findings)
            .map_err(|error| PyOSError::new_err(error.to_string()))?;
        serde_json::to_string(&findings.claims).map_err(|error| PyRuntimeError::new_err(error.to_string()))
    }

    /// One row per cell that is done, as in `results.csv`: its labels, its seed, its folder, its numbers.
    fn frame(&self) -> PyResult<Table> {
        let (place, _) = self.cell_folders()?;
        let done: Vec<_> = self.done().collect();
        let folder = |report: &CellReport| Some(report.place(place));
        let mut columns = Vec::new();
        for axis in self.axes() {
            let labels = done.iter().map(|(cell, _)| label(cell, &axis)).collect();
            columns.push((axis, Column::Text(labels)));
        }
        columns.push(("seed".to_owned(), Column::Count(done.iter().map(|(cell, _)| cell.seed()).collect())));
        columns.push((
            "folder".to_owned(),
            Column::Text(done.iter().map(|(_, report)| folder(report)).collect()),
        ));
        let results = self.plan.results(&self.reports);
        let metrics = results.occurring();
        for metric in &metrics {
            let numbers = done.iter().map(|(_, report)| report.numbers()?.get(*metric).copied());
            columns.push(((*metric).to_owned(), Column::Real(numbers.collect())));
        }
        Ok(Table::of_named(columns).with_units(|name| metrics.contains(&name).then(|| unit(name))))
    }

    /// A table of all outcomes, one below the other, with the cells' labels and seeds before its own columns.
    fn table(&self, py: Python<'_>, name: &str) -> PyResult<Table> {
        let Some(table) = OutcomeTable::ALL.into_iter().find(|table| table.name() == name) else {
            let help = suggest(name, OutcomeTable::ALL.map(OutcomeTable::name));
            return Err(scenario_error(
                py,
                &Problem::new("table", format!("there is no table `{name}`")).help(help).into(),
            ));
        };
        let axes = self.axes();
        let parts = py.detach(|| {
            let part = |(cell, report): (&Cell, &CellReport)| {
                let labels = axes.iter().map(|axis| (axis.clone(), label(cell, axis)));
                Ok(read_table(&report.folder, table)?.with_labels(labels.collect(), cell.seed()))
            };
            self.done().map(part).collect::<Result<Vec<_>, _>>()
        });
        let parts = parts.map_err(|error| outcome_error(&error))?;
        Ok(Table::stacked(parts, || {
            let none = Table::of_columns(Records::default().columns(table).unwrap_or_default());
            none.with_labels(axes.iter().map(|axis| (axis.clone(), None)).collect(), 0)
        }))
    }
}

/// Does a cell's work here: whether it came to a good end, and the files of its result, or else why there is none.
#[pyfunction]
pub(crate) fn perform_parcel<'py>(py: Python<'py>, parcel: ParcelRow) -> PyResult<(bool, Bound<'py, PyAny>)> {
    let (is_run, text, files) = parcel;
    let parcel = Parcel { is_run, text, files };
    Ok(match py.detach(|| parcel.perform()) {
        Ok(files) => (true, files.into_pyobject(py)?),
        Err(error) => (false, error.to_string().into_pyobject(py)?.into_any()),
    })
}

/// Writes the files of a result into a cell's folder, all or none.
#[pyfunction]
pub(crate) fn store_result(py: Python<'_>, folder: PathBuf, files: ResultFiles) -> PyResult<()> {
    py.detach(|| store(&folder, &files))
        .map_err(|error| PyOSError::new_err(format!("cannot write {}: {error}", folder.display())))
}
