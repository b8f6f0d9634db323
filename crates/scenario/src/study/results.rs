//! From the cells' numbers to what claims ask for.

use std::collections::BTreeMap;

use crate::study::expression::{Binding, Metrics, Sample};
use crate::study::grid::Cell;
use netloom_units::names::suggest;

/// One row of a table of results.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The point of the grid.
    pub name: String,
    /// How many seeds it was run with.
    pub runs: usize,
    /// One value per metric asked for, mean over the seeds; absent where the point has none.
    pub values: Vec<Option<f64>>,
}

/// The numbers of all cells, by metric.
#[derive(Clone, Debug, Default)]
pub struct Results {
    points: Vec<PointResults>,
    /// Every axis with its labels.
    labels: Vec<(String, Vec<String>)>,
}

#[derive(Clone, Debug)]
struct PointResults {
    name: String,
    labels: Vec<(String, String)>,
    /// One map per seed.
    runs: Vec<BTreeMap<String, f64>>,
}

impl PointResults {
    fn values(&self, metric: &str) -> Option<Vec<f64>> {
        self.runs.iter().map(|run| run.get(metric).copied()).collect()
    }

    fn mean(&self, metric: &str) -> Option<f64> {
        let runs = self.values(metric)?;
        Some(Sample { label: String::new(), runs }.mean())
    }
}

impl Results {
    /// Gathers the numbers of cells; cells of one point become its runs.
    pub fn new<'a>(cells: impl IntoIterator<Item = (&'a Cell, BTreeMap<String, f64>)>) -> Self {
        let mut results = Results::default();
        for (cell, numbers) in cells {
            let name = cell.point();
            match results.points.iter_mut().find(|point| point.name == name) {
                Some(point) => point.runs.push(numbers),
                None => {
                    results.points.push(PointResults {
                        name,
                        labels: cell.labels.clone(),
                        runs: vec![numbers],
                    });
                }
            }
            for (axis, label) in &cell.labels {
                match results.labels.iter_mut().find(|(name, _)| name == axis) {
                    Some((_, labels)) if labels.contains(label) => {}
                    Some((_, labels)) => labels.push(label.clone()),
                    None => results.labels.push((axis.clone(), vec![label.clone()])),
                }
            }
        }
        results
    }

    /// Every point with the means of some metrics.
    pub fn table(&self, metrics: &[&str]) -> Vec<Row> {
        let row = |point: &PointResults| Row {
            name: point.name.clone(),
            runs: point.runs.len(),
            values: metrics.iter().map(|metric| point.mean(metric)).collect(),
        };
        self.points.iter().map(row).collect()
    }

    /// The full names of all metrics that any cell has, in order.
    pub fn metrics(&self) -> Vec<&str> {
        let runs = self.points.iter().flat_map(|point| &point.runs);
        let mut names: Vec<&str> = runs.flat_map(BTreeMap::keys).map(String::as_str).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Axis (where given) and label of `ecmp` or `load=0.5`.
    pub(super) fn find_label<'a>(&self, wanted: &'a str) -> Result<(Option<&'a str>, &'a str), String> {
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
    fn find_metric(&self, wanted: &str) -> Result<&str, String> {
        fn words(name: &str) -> Vec<&str> {
            let mut words: Vec<&str> = name.split(['.', '_']).collect();
            words.sort_unstable();
            words
        }
        let names = self.metrics();
        let wanted_words = words(wanted);
        let same = names.iter().find(|name| words(name) == wanted_words);
        if let Some(name) = names.iter().find(|name| **name == wanted).or(same) {
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
                let likeness = |name: &str| strsim::jaro_winkler(name, wanted);
                let mut nearest = names;
                nearest.sort_by(|a, b| shared(b).cmp(&shared(a)).then(likeness(b).total_cmp(&likeness(a))));
                let nearest = some(&nearest);
                Err(format!(
                    "there is no metric `{wanted}`; the nearest are {nearest} (results.csv has them all)"
                ))
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
        let sample = |point: &&PointResults| {
            let runs = point.values(metric);
            let runs = runs.ok_or_else(|| format!("`{metric}` has no value in the cell {}", point.name))?;
            Ok(Sample { label: point.name.clone(), runs })
        };
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Expression, ExpressionError, Outcome};
    use crate::{Node, Scenario, Source};

    fn cell(labels: &[(&str, &str)], repetition: u32) -> Cell {
        Cell {
            labels: labels.iter().map(|(axis, label)| ((*axis).to_owned(), (*label).to_owned())).collect(),
            repetition,
            scenario: Scenario::default(),
            document: Node::parse(&Source::new("", "")).unwrap(),
        }
    }

    /// ECMP with two seeds, Flowcut at two thresholds.
    fn results() -> Results {
        let cells = [
            (cell(&[("scheme", "ecmp")], 0), 10.0),
            (cell(&[("scheme", "ecmp")], 1), 20.0),
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
            names.map(|(name, number)| (name.to_owned(), number)).into()
        };
        Results::new(cells.iter().map(|(cell, p99)| (cell, numbers(*p99))))
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
            unknown.starts_with("there is no metric `p98_fct`; the nearest are fct.mean, fct.p99, "),
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
        let numbers = |bps| [("throughput_bps".to_owned(), bps)].into();
        Results::new(cells.iter().map(|(cell, bps)| (cell, numbers(*bps))))
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
    fn a_table_shows_every_point_and_its_gaps() {
        let rows = results().table(&["fct.p99", "fct.max"]);
        assert_eq!((rows.len(), rows[0].runs), (3, 2));
        assert_eq!(rows[0].values, [Some(15.0), None]);
        assert_eq!(rows[2].name, "scheme=flowcut threshold=4");
    }
}
