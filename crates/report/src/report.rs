//! All points of a report, and what they have to do with each other.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde::Serialize;

use crate::differences::{Difference, differences, styles};
use crate::folders::{Claim, Folders, ReportError};
use crate::links::Map;
use crate::page;
use crate::point::{
    GROUP_METRICS, GroupMetric, JOB_METRICS, JobMetric, METRICS, Metric, Point, Reduced, reduce,
};
use crate::sizes::{SizeBin, alike};
use crate::style::{Look, STYLES, Styles, looks};

/// Outcomes and studies, reduced to what a page shows.
#[derive(Debug, Serialize)]
pub struct Report {
    pub(crate) title: String,
    version: &'static str,
    pub(crate) axes: Vec<Axis>,
    metrics: &'static [Metric],
    group_metrics: &'static [GroupMetric],
    job_metrics: &'static [JobMetric],
    pub(crate) points: Vec<Point>,
    /// By point.
    pub(crate) by_size: Vec<Vec<SizeBin>>,
    /// By point: flows in bins that have too few for a statistic.
    too_few: Vec<u64>,
    /// The different networks, and by point which one is its own, if it can be drawn.
    pub(crate) maps: Vec<Map>,
    pub(crate) map_of: Vec<Option<usize>>,
    /// The different lines of all scenarios, and by point which ones are its own: scenarios of a study share nearly all of their lines.
    lines: Vec<String>,
    scenarios: Vec<Vec<usize>>,
    differences: Vec<Difference>,
    /// The axis whose labels have colours, and the one whose labels have marks.
    pub(crate) colour_axis: Option<usize>,
    pub(crate) mark_axis: Option<usize>,
    styles: Styles,
    /// By point.
    looks: Vec<Look>,
    claims: Vec<Claim>,
    measured: Vec<Vec<String>>,
}

#[derive(Debug, Serialize)]
pub(crate) struct Axis {
    pub(crate) name: String,
    pub(crate) labels: Vec<String>,
}

impl Report {
    /// Reads outcomes and studies and reduces them, on all cores.
    ///
    /// # Errors
    /// If a folder holds neither an outcome nor a study, or a file of it cannot be read; the error names it.
    pub fn read(dirs: &[PathBuf], title: Option<&str>) -> Result<Self, ReportError> {
        let folders = Folders::read(dirs)?;
        let reduced = reduce_all(&points(&folders))?;
        let mut by_size = Vec::new();
        let mut report = Report {
            title: title.map_or_else(|| title_of(dirs, &folders), str::to_owned),
            version: env!("CARGO_PKG_VERSION"),
            axes: axes(&folders),
            metrics: METRICS,
            group_metrics: GROUP_METRICS,
            job_metrics: JOB_METRICS,
            points: Vec::new(),
            by_size: Vec::new(),
            too_few: Vec::new(),
            maps: Vec::new(),
            map_of: Vec::new(),
            lines: Vec::new(),
            scenarios: Vec::new(),
            differences: Vec::new(),
            colour_axis: None,
            mark_axis: None,
            styles: STYLES,
            looks: Vec::new(),
            claims: folders.claims,
            measured: folders.measured,
        };
        let mut lines = HashMap::new();
        for Reduced { point, by_size: sizes, map } in reduced {
            by_size.push(sizes);
            report.map_of.push(map.map(|map| place(&mut report.maps, map)));
            let mut number = |line: &str| {
                *lines.entry(line.to_owned()).or_insert_with(|| {
                    report.lines.push(line.to_owned());
                    report.lines.len() - 1
                })
            };
            report.scenarios.push(point.scenario.lines().map(&mut number).collect());
            report.points.push(point);
        }
        (report.by_size, report.too_few) = alike(by_size);
        let scenarios: Vec<&str> = report.points.iter().map(|point| point.scenario.as_str()).collect();
        let labels: Vec<&[String]> = report.axes.iter().map(|axis| &axis.labels[..]).collect();
        let of: Vec<&[String]> = report.points.iter().map(|point| &point.labels[..]).collect();
        report.differences = differences(&scenarios, &labels, &of);
        let axes: Vec<(&str, usize)> =
            report.axes.iter().map(|axis| (axis.name.as_str(), axis.labels.len())).collect();
        (report.colour_axis, report.mark_axis) = styles(&axes, &report.differences);
        let varied: Vec<usize> = (0..axes.len()).filter(|&axis| axes[axis].1 > 1).collect();
        report.looks = looks(&of, &labels, &varied, (report.colour_axis, report.mark_axis));
        Ok(report)
    }

    /// The page: one file that needs no server and no network.
    pub fn html(&self) -> String {
        page::html(self, &self.title)
    }
}

/// Where a value stands among others; it is added if it is new.
fn place<T: PartialEq>(known: &mut Vec<T>, value: T) -> usize {
    known.iter().position(|other| *other == value).unwrap_or_else(|| {
        known.push(value);
        known.len() - 1
    })
}

/// What a study calls itself, or else the names of the folders.
fn title_of(dirs: &[PathBuf], folders: &Folders) -> String {
    if let ([title], [_]) = (&folders.titles[..], dirs) {
        return title.clone();
    }
    let name = |dir: &PathBuf| dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned();
    dirs.iter().map(name).collect::<Vec<_>>().join(", ")
}

/// Every axis with its labels, in the order in which they occur.
fn axes(folders: &Folders) -> Vec<Axis> {
    let axis = |(number, name): (usize, &String)| {
        let mut labels: Vec<String> = Vec::new();
        for run in &folders.runs {
            let label = &run.labels[number];
            if !label.is_empty() && !labels.contains(label) {
                labels.push(label.clone());
            }
        }
        Axis { name: name.clone(), labels }
    };
    folders.axes.iter().enumerate().map(axis).collect()
}

/// Runs with the same labels differ by their seeds only.
fn points(folders: &Folders) -> Vec<(&[String], Vec<&Path>)> {
    let mut points: Vec<(&[String], Vec<&Path>)> = Vec::new();
    for run in &folders.runs {
        match points.iter_mut().rev().find(|(labels, _)| *labels == run.labels) {
            Some((_, folders)) => folders.push(&run.folder),
            None => points.push((&run.labels, vec![&run.folder])),
        }
    }
    points
}

/// Reduces all points, several at a time; the result does not depend on how many.
fn reduce_all(points: &[(&[String], Vec<&Path>)]) -> Result<Vec<Reduced>, ReportError> {
    let next = AtomicUsize::new(0);
    let done: Mutex<Vec<(usize, Result<Reduced, ReportError>)>> = Mutex::new(Vec::new());
    let work = || {
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            let Some((labels, folders)) = points.get(number) else { break };
            let reduced = reduce(labels, folders, points.len());
            done.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((number, reduced));
        }
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from).min(points.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(work);
        }
    });
    let mut done = done.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, reduced)| reduced).collect()
}
