//! From the cells' numbers to what claims ask for.

use std::collections::BTreeSet;
use std::sync::Arc;

use netloom_units::names::suggest;

use crate::cell::{Cell, Point};
use crate::claims::{Binding, Metrics, Sample};
use crate::work::Numbers;

/// The numbers of all cells, by metric.
#[derive(Clone, Debug, Default)]
pub struct Results {
    points: Vec<PointResults>,
    /// Every axis with its labels.
    labels: Vec<(String, Vec<String>)>,
    /// The full names of all metrics.
    metrics: BTreeSet<String>,
    /// Whether there are only names yet.
    is_outline: bool,
}

/// A point with the numbers of its cells.
#[derive(Clone, Debug)]
pub struct PointResults {
    /// The point in words.
    pub name: String,
    /// Axis and label.
    pub labels: Vec<(String, String)>,
    /// One entry per seed; `None` for a cell that is not done.
    pub runs: Vec<Option<Numbers>>,
}

impl PointResults {
    fn new(point: &Point) -> Self {
        PointResults { name: point.name(), labels: point.labels.clone(), runs: Vec::new() }
    }

    /// A metric's value in every cell.
    fn values(&self, metric: &str) -> Result<Vec<f64>, String> {
        let mut values = Vec::with_capacity(self.runs.len());
        for run in &self.runs {
            let Some(run) = run else {
                let done = self.runs.iter().flatten().count();
                return Err(format!("{} of {} cells of {} are done", done, self.runs.len(), self.name));
            };
            let value = run.get(metric).copied();
            values.push(value.ok_or_else(|| format!("`{metric}` has no value in the cell {}", self.name))?);
        }
        Ok(values)
    }

    /// A metric's value in those cells that are done and have it.
    pub fn known(&self, metric: &str) -> Vec<f64> {
        self.runs.iter().flatten().filter_map(|run| run.get(metric).copied()).collect()
    }
}

impl Results {
    /// The points with the names of their metrics, before there are numbers.
    pub(crate) fn outline(points: Vec<(Arc<Point>, Vec<String>)>) -> Self {
        let mut results = Results { is_outline: true, ..Results::default() };
        for (point, names) in points {
            let mut of_point = PointResults::new(&point);
            of_point.runs.push(Some(names.iter().map(|name| (name.clone(), f64::NAN)).collect()));
            results.add(of_point);
            results.metrics.extend(names);
        }
        results
    }

    /// The numbers of cells that stand in the order of their points.
    pub fn new<'a>(cells: impl IntoIterator<Item = (&'a Cell, Option<&'a Numbers>)>) -> Self {
        let mut results = Results::default();
        let mut last: Option<&Arc<Point>> = None;
        for (cell, numbers) in cells {
            if last.is_none_or(|last| !Arc::ptr_eq(last, &cell.point)) {
                results.add(PointResults::new(&cell.point));
                last = Some(&cell.point);
            }
            for name in numbers.into_iter().flat_map(Numbers::keys) {
                if !results.metrics.contains(name) {
                    results.metrics.insert(name.clone());
                }
            }
            if let Some(point) = results.points.last_mut() {
                point.runs.push(numbers.cloned());
            }
        }
        results
    }

    /// Points with the numbers of their cells, as they were read back.
    pub(crate) fn of_points(points: Vec<PointResults>) -> Self {
        let mut results = Results::default();
        for point in points {
            results.metrics.extend(point.runs.iter().flatten().flat_map(Numbers::keys).cloned());
            results.add(point);
        }
        results
    }

    /// The numbers of one run that belongs to no study.
    pub(crate) fn of_one(name: &str, numbers: Numbers) -> Self {
        let metrics = numbers.keys().cloned().collect();
        let point = PointResults { name: name.to_owned(), labels: Vec::new(), runs: vec![Some(numbers)] };
        Results { points: vec![point], metrics, ..Results::default() }
    }

    /// The same results with the metrics that the plan expects beside those that occurred: a name means the same before and after.
    pub(crate) fn with_names_of(mut self, outline: &Results) -> Self {
        self.metrics.extend(outline.metrics.iter().cloned());
        self
    }

    fn add(&mut self, point: PointResults) {
        for (axis, label) in &point.labels {
            match self.labels.iter_mut().find(|(name, _)| name == axis) {
                Some((_, labels)) if labels.contains(label) => {}
                Some((_, labels)) => labels.push(label.clone()),
                None => self.labels.push((axis.clone(), vec![label.clone()])),
            }
        }
        self.points.push(point);
    }

    /// Every point with its numbers.
    pub fn points(&self) -> &[PointResults] {
        &self.points
    }

    /// The names of the axes, in order.
    pub fn axes(&self) -> impl Iterator<Item = &str> {
        self.labels.iter().map(|(axis, _)| axis.as_str())
    }

    /// The full names of all metrics that any cell has, in order.
    pub fn occurring(&self) -> Vec<&str> {
        let runs = self.points.iter().flat_map(|point| point.runs.iter().flatten());
        let names: BTreeSet<&str> = runs.flat_map(Numbers::keys).map(String::as_str).collect();
        names.into_iter().collect()
    }

    /// The full names of all metrics that cells have or will have, in order.
    pub(crate) fn all_metrics(&self) -> Vec<&str> {
        self.metrics.iter().map(String::as_str).collect()
    }

    /// Axis (where given) and label of `ecmp` or `load=0.5`.
    fn find_label<'a>(&self, wanted: &'a str) -> Result<(Option<&'a str>, &'a str), String> {
        let has = |axis: Option<&str>, label: &str| {
            self.labels.iter().any(|(name, labels)| {
                axis.is_none_or(|axis| axis == name) && labels.iter().any(|l| l == label)
            })
        };
        if has(None, wanted) {
            return Ok((None, wanted));
        }
        if let Some((axis, label)) = wanted.split_once('=')
            && has(Some(axis.trim()), label.trim())
        {
            return Ok((Some(axis.trim()), label.trim()));
        }
        let all: Vec<String> = self
            .labels
            .iter()
            .flat_map(|(axis, labels)| labels.iter().map(move |label| format!("{axis}={label}")))
            .collect();
        let bare = all.iter().filter_map(|label| label.split_once('=').map(|(_, label)| label));
        let help = if wanted.contains('=') {
            suggest(wanted, all.iter().map(String::as_str))
        } else {
            suggest(wanted, bare)
        };
        Err(format!("no cell carries the label \"{wanted}\"; {help}"))
    }

    /// The full name of a metric: itself, the name with the same words in another order (`p99_fct` is `fct.p99`), or
    /// the name that has these words and the fewest others, if there is only one such (`ooo_share` is
    /// `packets.ooo_share` and not that of a group).
    pub(crate) fn find_metric(&self, wanted: &str) -> Result<&str, String> {
        fn words(name: &str) -> Vec<&str> {
            let mut words: Vec<&str> = name.split(['.', '_']).collect();
            words.sort_unstable();
            words
        }
        let names: Vec<&str> = self.metrics.iter().map(String::as_str).collect();
        let wanted_words = words(wanted);
        if let Some(name) = self.metrics.get(wanted) {
            return Ok(name);
        }
        if let Some(name) = names.iter().find(|name| words(name) == wanted_words) {
            return Ok(name);
        }
        let shared = |name: &str| {
            let words = words(name);
            wanted_words.iter().filter(|word| words.contains(word)).count()
        };
        let mut candidates = names.clone();
        candidates.retain(|name| shared(name) == wanted_words.len());
        let fewest = candidates.iter().map(|name| words(name).len()).min();
        candidates.retain(|name| Some(words(name).len()) == fewest);
        match candidates.as_slice() {
            [name] => Ok(name),
            [] => {
                // Words in the same order, so that `p98_fct` is like `fct.p99`.
                let likeness =
                    |name: &str| strsim::jaro_winkler(&words(name).concat(), &wanted_words.concat());
                let mut nearest = names;
                nearest.sort_by(|a, b| {
                    let order = (shared(b), words(a).len()).cmp(&(shared(a), words(b).len()));
                    order.then(likeness(b).total_cmp(&likeness(a)))
                });
                Err(format!("there is no metric `{wanted}`; the nearest are {}", some(&nearest)))
            }
            several => Err(format!("`{wanted}` could be {}", some(several))),
        }
    }
}

/// As many names as a message can bear.
fn some(names: &[&str]) -> String {
    const MOST: usize = 6;
    let more = if names.len() > MOST { ", …" } else { "" };
    format!("{}{more}", names[..names.len().min(MOST)].join(", "))
}

impl PointResults {
    /// Whether the point carries a label, on the axis if one is given.
    fn carries(&self, axis: Option<&str>, label: &str) -> bool {
        self.labels.iter().any(|(name, l)| axis.is_none_or(|axis| axis == name) && l == label)
    }

    fn varies(&self, axis: &str) -> bool {
        self.labels.iter().any(|(name, _)| name == axis)
    }
}

impl Metrics for Results {
    fn samples(&self, metric: &str, labels: &[String], bound: &[Binding<'_>]) -> Result<Vec<Sample>, String> {
        let metric = self.find_metric(metric)?;
        let wanted: Vec<(Option<&str>, &str)> =
            labels.iter().map(|label| self.find_label(label)).collect::<Result<_, _>>()?;
        let carries_all =
            |point: &&PointResults| wanted.iter().all(|(axis, label)| point.carries(*axis, label));
        let mut points: Vec<&PointResults> = self.points.iter().filter(carries_all).collect();
        for Binding { axis, label } in bound {
            // `f("ecmp")` is about ECMP, also where the expression goes along the schemes.
            let is_named = |(of, label): &(Option<&str>, &str)| match of {
                Some(of) => of == axis,
                None => self.axis(axis).is_ok_and(|labels| labels.iter().any(|l| l == label)),
            };
            if !wanted.iter().any(is_named) && points.iter().any(|point| point.varies(axis)) {
                points.retain(|point| point.carries(Some(axis), label));
            }
        }
        let sample =
            |point: &&PointResults| Ok(Sample { label: point.name.clone(), runs: point.values(metric)? });
        points.iter().map(sample).collect()
    }

    fn axis(&self, wanted: &str) -> Result<Vec<String>, String> {
        match self.labels.iter().find(|(axis, _)| axis == wanted) {
            Some((_, labels)) => Ok(labels.clone()),
            None => {
                let help = suggest(wanted, self.labels.iter().map(|(axis, _)| axis.as_str()));
                Err(format!("there is no axis `{wanted}`; {help}"))
            }
        }
    }

    fn is_outline(&self) -> bool {
        self.is_outline
    }

    fn seeds(&self) -> usize {
        self.points.iter().map(|point| point.runs.len()).max().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cell::testing::cell;
    use crate::claims::{Expression, ExpressionError, Outcome};

    fn of(cells: &[(Cell, Numbers)]) -> Results {
        Results::new(cells.iter().map(|(cell, numbers)| (cell, Some(numbers))))
    }

    /// ECMP with two seeds, Flowcut at two thresholds.
    fn results() -> Results {
        let ecmp = cell(&[("scheme", "ecmp")], 0);
        let cells = [
            (ecmp.clone(), 10.0),
            (Cell { repetition: 1, ..ecmp }, 20.0),
            (cell(&[("scheme", "flowcut"), ("threshold", "2")], 0), 5.0),
            (cell(&[("scheme", "flowcut"), ("threshold", "4")], 0), 4.0),
        ];
        let numbers = |p99| {
            let names = [
                ("fct.p99", p99),
                ("fct.mean", 1.0),
                ("packets.ooo_share", 0.5),
                ("groups.hot.ooo_share", 0.7),
                ("windows.early.groups.hot.throughput_bps", 2.0),
                ("windows.early.groups.cold.throughput_bps", 3.0),
            ];
            Numbers::from(names.map(|(name, number)| (name.to_owned(), number)))
        };
        of(&cells.map(|(cell, p99)| (cell, numbers(p99))))
    }

    fn value(text: &str) -> Result<Outcome, ExpressionError> {
        Expression::parse(text)?.evaluate(&results())
    }

    #[test]
    fn metrics_are_found_by_their_words_in_any_order() {
        assert_eq!(value("p99_fct(\"ecmp\")"), Ok(Outcome::Number(15.0)));
        assert_eq!(value("fct.p99(\"flowcut\", \"threshold=4\")"), Ok(Outcome::Number(4.0)));
        assert_eq!(value("ooo_share(\"ecmp\")"), Ok(Outcome::Number(0.5)));
        assert_eq!(value("hot_ooo_share(\"ecmp\")"), Ok(Outcome::Number(0.7)));
        assert_eq!(value("windows.early.groups.hot.throughput_bps(\"ecmp\")"), Ok(Outcome::Number(2.0)));
        assert_eq!(value("early_cold_throughput(\"ecmp\")"), Ok(Outcome::Number(3.0)));
        let message = |text: &str| value(text).unwrap_err().message;
        let unknown = message("p98_fct(\"ecmp\")");
        assert!(
            unknown.starts_with("there is no metric `p98_fct`; the nearest are fct.p99, fct.mean, "),
            "{unknown}"
        );
        assert_eq!(message("fct(\"ecmp\")"), "`fct` could be fct.mean, fct.p99");
    }

    #[test]
    fn labels_select_points_and_seeds_become_runs() {
        assert_eq!(value("max(p99_fct(\"flowcut\"))"), Ok(Outcome::Number(5.0)));
        assert_eq!(value("min(p99_fct())"), Ok(Outcome::Number(4.0)));
        let message = |text: &str| value(text).unwrap_err().message;
        assert!(message("p99_fct(\"flowcut\")").starts_with("this selects 2 cells"));
        assert!(message("p99_fct(\"ecpm\")").contains("did you mean `ecmp`?"));
        assert!(message("p99_fct(\"threshold=3\")").contains("threshold=2"));
    }

    /// Two schemes and a crossbar under two patterns; Flowcut also at two thresholds.
    fn grid() -> Results {
        let cells = [
            (cell(&[("pattern", "transpose"), ("scheme", "crossbar")], 0), 10.0),
            (cell(&[("pattern", "transpose"), ("scheme", "ecmp")], 0), 4.0),
            (cell(&[("pattern", "transpose"), ("scheme", "flowcut"), ("threshold", "2")], 0), 8.0),
            (cell(&[("pattern", "transpose"), ("scheme", "flowcut"), ("threshold", "4")], 0), 6.0),
            (cell(&[("pattern", "uniform"), ("scheme", "crossbar")], 0), 20.0),
            (cell(&[("pattern", "uniform"), ("scheme", "ecmp")], 0), 18.0),
            (cell(&[("pattern", "uniform"), ("scheme", "flowcut"), ("threshold", "2")], 0), 19.0),
            (cell(&[("pattern", "uniform"), ("scheme", "flowcut"), ("threshold", "4")], 0), 17.0),
        ];
        of(&cells.map(|(cell, bps)| (cell, Numbers::from([("throughput_bps".to_owned(), bps)]))))
    }

    #[test]
    fn ratios_are_taken_along_an_axis() {
        let value = |text: &str| match Expression::parse(text).unwrap().evaluate(&grid()) {
            Ok(Outcome::Number(number)) => number,
            other => panic!("{text}: {other:?}"),
        };
        assert_eq!(value("throughput(\"transpose\", \"ecmp\")"), 4.0);
        assert_eq!(value("min_over(\"pattern\", throughput(\"ecmp\") / throughput(\"crossbar\"))"), 0.4);
        assert_eq!(value("max_over('pattern', throughput('ecmp') / throughput('crossbar'))"), 0.9);
        assert_eq!(
            value("count_over('pattern', throughput('flowcut', 'threshold=4') < throughput('ecmp'))"),
            1.0
        );
        // ECMP has no threshold, so it is the same at each; and a label of the axis itself stays.
        assert_eq!(
            value("max_over('threshold', throughput('uniform', 'flowcut') - throughput('uniform', 'ecmp'))"),
            1.0
        );
        assert_eq!(
            value("mean_over('pattern', throughput('crossbar') / throughput('uniform', 'crossbar'))"),
            0.75
        );
        // The weakest pattern of the better threshold.
        let both =
            "min_over('pattern', max_over('threshold', throughput('flowcut')) / throughput('crossbar'))";
        assert_eq!(value(both), 0.8);
        assert_eq!(value("min_over('pattern', max(throughput()))"), 10.0);
    }

    #[test]
    fn an_axis_that_does_not_exist_is_told() {
        let message = Expression::parse("min_over('patern', throughput('ecmp'))").unwrap();
        let message = message.evaluate(&grid()).unwrap_err().message;
        assert_eq!(
            message,
            "there is no axis `patern`; did you mean `pattern`? valid here: pattern, scheme, threshold"
        );
    }

    #[test]
    fn a_point_with_an_open_cell_has_no_value() {
        let ecmp = cell(&[("scheme", "ecmp")], 0);
        let again = Cell { repetition: 1, ..ecmp.clone() };
        let other = cell(&[("scheme", "spray")], 0);
        let numbers = Numbers::from([("fct.p99".to_owned(), 1.0)]);
        let results = Results::new([(&ecmp, Some(&numbers)), (&again, None), (&other, Some(&numbers))]);
        let value = |text: &str| Expression::parse(text).unwrap().evaluate(&results);
        assert_eq!(value("p99_fct('ecmp') > 0").unwrap_err().message, "1 of 2 cells of scheme=ecmp are done");
        assert!(value("min(p99_fct()) > 0").is_err());
        assert_eq!(value("p99_fct('spray') > 0"), Ok(Outcome::Truth(true)));
        assert_eq!(results.points()[0].known("fct.p99"), [1.0]);
    }
}
