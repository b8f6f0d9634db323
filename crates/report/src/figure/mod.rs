//! Single charts of a report as SVG, fit for a column of a paper.

mod name;
mod network;
mod plot;
mod scale;

use netloom_record::Estimate;
use netloom_units::{Bytes, Rate, Time, names};

use self::name::{Kind, Of, Statistic, all, list};
use self::plot::{Axis, Bar, Bars, Curve, Curves};
use self::scale::plain;
use crate::curve::Curve as Distribution;
use crate::point::{METRICS, Point};
use crate::report::Report;
use crate::series::Series;
use crate::sizes::SizeBin;
use crate::style::{Look, looks};

pub use self::name::figures;

/// Curves or bars of more colours and dashes cannot be told apart.
const MOST_CURVES: usize = 12;
/// Bars of a figure: a page is not higher.
const MOST_BARS: usize = 40;

/// Why there is no such figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FigureError {
    /// No figure is called so.
    #[error("there is no figure `{name}`: {advice}\n{}", list())]
    Unknown {
        /// The name.
        name: String,
        /// The nearest names.
        advice: String,
    },
    /// The runs have nothing to draw.
    #[error("`{name}` has nothing to draw: {why}")]
    Empty {
        /// The figure.
        name: String,
        /// What is missing.
        why: &'static str,
    },
    /// More than can be told apart.
    #[error(
        "`{name}` would have {found} {what}, and at most {most} can be told apart; choose some with --only AXIS=LABEL,…{axes}"
    )]
    TooMany {
        /// The figure.
        name: String,
        /// How many.
        found: usize,
        /// Of what.
        what: &'static str,
        /// How many there may be.
        most: usize,
        /// The axes that could be used.
        axes: String,
    },
    /// Not one point, where a figure shows one.
    #[error("`{name}` shows one point, and {found} are chosen; choose one with --only AXIS=LABEL,…{axes}")]
    NotOne {
        /// The figure.
        name: String,
        /// How many there are.
        found: usize,
        /// The axes that could be used.
        axes: String,
    },
    /// An axis or a label that the runs do not have.
    #[error("there is no {what} `{found}`: {advice}")]
    NoSuch {
        /// What was looked for.
        what: &'static str,
        /// What was written.
        found: String,
        /// What could be written.
        advice: String,
    },
}

/// The points of a figure, with their names.
struct Chosen<'a> {
    report: &'a Report,
    points: Vec<usize>,
    /// Axes along which the chosen points differ.
    varied: Vec<usize>,
}

impl Report {
    /// A chart as SVG: 3.3 inches wide, for a column of a paper.
    ///
    /// `only` chooses points by the labels of axes, such as `("load", "0.8")`; several labels of an axis are alternatives.
    ///
    /// # Errors
    /// If there is no such figure, axis or label, if the runs have nothing to draw in it, or more than can be told apart.
    pub fn figure(&self, name: &str, only: &[(String, String)]) -> Result<String, FigureError> {
        let Some((name, title, kind)) = all().find(|(known, ..)| *known == name) else {
            let advice = names::suggest(name, figures());
            // The whole list follows.
            let advice =
                advice.split("valid here").next().unwrap_or_default().trim_end_matches(['?', ' ', ';']);
            let advice = if advice.is_empty() {
                "the names are listed below".to_owned()
            } else {
                format!("{advice}?")
            };
            return Err(FigureError::Unknown { name: name.to_owned(), advice });
        };
        let chosen = self.choose(only)?;
        let title = format!("{}: {title}", self.title);
        match kind {
            Kind::Metric(place) => chosen.metric(name, &title, place),
            Kind::Distribution(of, is_tail) => chosen.distribution(name, &title, of, is_tail),
            Kind::Sizes(statistic) => chosen.sizes(name, &title, statistic),
            Kind::LinkUse => chosen.link_use(name, &title),
            Kind::Throughput => chosen.over_time(name, &title, false),
            Kind::Queue => chosen.over_time(name, &title, true),
            Kind::Network => chosen.network(name, &title),
        }
    }

    fn choose(&self, only: &[(String, String)]) -> Result<Chosen<'_>, FigureError> {
        let mut wanted: Vec<Vec<&str>> = vec![Vec::new(); self.axes.len()];
        for (axis, label) in only {
            let Some(place) = self.axes.iter().position(|known| known.name == *axis) else {
                let advice = names::suggest(axis, self.axes.iter().map(|axis| axis.name.as_str()));
                return Err(FigureError::NoSuch { what: "axis", found: axis.clone(), advice });
            };
            if !self.axes[place].labels.contains(label) {
                let advice = names::suggest(label, self.axes[place].labels.iter().map(String::as_str));
                return Err(FigureError::NoSuch { what: "label", found: label.clone(), advice });
            }
            wanted[place].push(label);
        }
        let is_wanted = |point: &Point| {
            wanted.iter().zip(&point.labels).all(|(wanted, label)| {
                wanted.is_empty() || label.is_empty() || wanted.contains(&label.as_str())
            })
        };
        let points: Vec<usize> = (0..self.points.len()).filter(|&i| is_wanted(&self.points[i])).collect();
        let differs = |axis: &usize| {
            let label = |i: usize| &self.points[i].labels[*axis];
            points.iter().any(|&i| label(i) != label(points[0]))
        };
        let varied = (0..self.axes.len()).filter(differs).collect();
        Ok(Chosen { report: self, points, varied })
    }
}

impl Chosen<'_> {
    fn point(&self, i: usize) -> &Point {
        &self.report.points[i]
    }

    /// The labels that distinguish a point from the others, without those of one axis.
    fn name(&self, i: usize, without: Option<usize>) -> String {
        let labels = self.varied.iter().filter(|&&axis| Some(axis) != without);
        let labels =
            labels.map(|&axis| self.point(i).labels[axis].as_str()).filter(|label| !label.is_empty());
        labels.collect::<Vec<_>>().join(" · ")
    }

    fn too_many(&self, name: &str, found: usize, what: &'static str, most: usize) -> Result<(), FigureError> {
        if found <= most {
            return Ok(());
        }
        Err(FigureError::TooMany { name: name.to_owned(), found, what, most, axes: self.axes() })
    }

    /// The axes along which fewer points can be chosen.
    fn axes(&self) -> String {
        let axes = self.varied.iter().map(|&axis| self.report.axes[axis].name.as_str()).collect::<Vec<_>>();
        if axes.is_empty() { String::new() } else { format!(" (axes: {})", axes.join(", ")) }
    }

    /// The looks of the points, which differ along every axis but one.
    fn looks(&self, without: Option<usize>) -> Vec<Look> {
        let labels: Vec<&[String]> = self.report.axes.iter().map(|axis| &axis.labels[..]).collect();
        let points: Vec<&[String]> = self.points.iter().map(|&i| &self.point(i).labels[..]).collect();
        let varied: Vec<usize> = self.varied.iter().copied().filter(|&axis| Some(axis) != without).collect();
        looks(&points, &labels, &varied, (self.report.colour_axis, self.report.mark_axis))
    }

    /// The look of a point of the figure.
    fn look(&self, i: usize, looks: &[Look]) -> Look {
        self.points.iter().position(|&point| point == i).map(|place| looks[place]).unwrap_or_default()
    }

    /// What error bars are, and how many runs a number stands for.
    fn seeds(&self, marks: &str) -> String {
        let runs: Vec<usize> = self.points.iter().map(|&i| self.point(i).folders.len()).collect();
        let (least, most) =
            (runs.iter().min().copied().unwrap_or(0), runs.iter().max().copied().unwrap_or(0));
        match (least, most) {
            (_, 0 | 1) => format!("{marks}: one run each."),
            (least, most) if least == most => {
                format!(
                    "{marks}: mean of {most} seeds. Error bars: 95% confidence interval of the mean (Student's t)."
                )
            }
            (least, most) => format!(
                "{marks}: mean of {least} to {most} seeds. Error bars: 95% confidence interval of the mean (Student's t)."
            ),
        }
    }

    /// A number of every point: over an axis of numbers if there is one, else as bars.
    fn metric(&self, name: &str, title: &str, place: usize) -> Result<String, FigureError> {
        let metric = &METRICS[place];
        let value = |i: usize| self.point(i).metrics[place].as_ref();
        let points: Vec<usize> = self.points.iter().copied().filter(|&i| value(i).is_some()).collect();
        if points.is_empty() {
            let why = "no run has this number";
            return Err(FigureError::Empty { name: name.to_owned(), why });
        }
        let heading = heading(metric.heading, metric.unit);
        if let Some((axis, numbers)) = self.numbers() {
            return self.over(name, title, (axis, &numbers), heading, &value);
        }
        self.too_many(name, points.len(), "bars", MOST_BARS)?;
        // Schemes side by side, whatever else is varied as a heading above them.
        let colour_axis = self.report.colour_axis;
        let colour_axis = colour_axis.filter(|axis| self.varied.len() > 1 && self.varied.contains(axis));
        let looks = self.looks(None);
        let mut groups: Vec<(String, Vec<Bar>)> = Vec::new();
        for i in points {
            let (value, group) = (value(i), colour_axis.map(|_| self.name(i, colour_axis)));
            let group = group.unwrap_or_default();
            let bar = Bar {
                name: colour_axis
                    .map_or_else(|| self.name(i, None), |axis| self.point(i).labels[axis].clone()),
                colour: self.look(i, &looks).colour,
                value: value.map(|value| value.mean),
                half: value.and_then(|value| value.plus_minus),
                tick: None,
                text: value.map_or_else(String::new, text),
            };
            match groups.iter_mut().find(|(known, _)| *known == group) {
                Some((_, bars)) => bars.push(bar),
                None => groups.push((group, vec![bar])),
            }
        }
        Ok(plot::bars(title, &Bars { name: heading, groups, note: self.seeds("Bars") }))
    }

    /// The first axis, but the one of the schemes, whose labels are at least three different numbers.
    fn numbers(&self) -> Option<(usize, Vec<(f64, String)>)> {
        self.varied.iter().filter(|&&axis| Some(axis) != self.report.colour_axis).find_map(|&axis| {
            let labels = self.report.axes[axis].labels.iter();
            let labels =
                labels.filter(|label| self.points.iter().any(|&i| self.point(i).labels[axis] == **label));
            let mut numbers: Vec<(f64, String)> =
                labels.map(|label| Some((number(label)?, label.clone()))).collect::<Option<_>>()?;
            numbers.sort_by(|a, b| a.0.total_cmp(&b.0));
            let is_clear = numbers.windows(2).all(|pair| pair[0].0 < pair[1].0);
            (numbers.len() >= 3 && is_clear).then_some((axis, numbers))
        })
    }

    fn over<'a>(
        &self,
        name: &str,
        title: &str,
        (axis, numbers): (usize, &[(f64, String)]),
        heading: String,
        value: &dyn Fn(usize) -> Option<&'a Estimate>,
    ) -> Result<String, FigureError> {
        let mut curves: Vec<(String, Vec<usize>)> = Vec::new();
        for &i in &self.points {
            let name = self.name(i, Some(axis));
            match curves.iter_mut().find(|(known, _)| *known == name) {
                Some((_, points)) => points.push(i),
                None => curves.push((name, vec![i])),
            }
        }
        self.too_many(name, curves.len(), "curves", MOST_CURVES)?;
        let looks = self.looks(Some(axis));
        let curve = |(name, mut points): (String, Vec<usize>)| {
            let at = |i: usize| {
                let label = &self.point(i).labels[axis];
                numbers.iter().find(|(_, known)| known == label).map_or(0.0, |(number, _)| *number)
            };
            points.retain(|&i| value(i).is_some());
            points.sort_by(|&a, &b| at(a).total_cmp(&at(b)));
            let found: Vec<(usize, &Estimate)> =
                points.iter().filter_map(|&i| Some((i, value(i)?))).collect();
            Curve {
                name,
                look: points.first().map(|&i| self.look(i, &looks)).unwrap_or_default(),
                points: found.iter().map(|&(i, value)| (at(i), value.mean)).collect(),
                halves: found.iter().map(|(_, value)| value.plus_minus).collect(),
                marked: (0..found.len()).collect(),
            }
        };
        let (first, last) = (numbers[0].0, numbers[numbers.len() - 1].0);
        let plot = Curves {
            x: Axis {
                is_log: first > 0.0 && last / first >= 16.0,
                words: numbers.to_vec(),
                ..Axis::new(&self.report.axes[axis].name)
            },
            y: Axis { low: Some(0.0), ..Axis::new(heading) },
            curves: curves.into_iter().map(curve).filter(|curve| !curve.points.is_empty()).collect(),
            note: self.seeds("Marks"),
        };
        Ok(plot::curves(title, &plot))
    }

    fn distribution(&self, name: &str, title: &str, of: Of, is_tail: bool) -> Result<String, FigureError> {
        let values = |i: usize| -> Option<&Distribution> {
            match of {
                Of::Fct => self.point(i).fct_us.as_ref(),
                Of::Slowdown => self.point(i).slowdown.as_ref(),
            }
        };
        let points: Vec<usize> = self.points.iter().copied().filter(|&i| values(i).is_some()).collect();
        if points.is_empty() {
            return Err(FigureError::Empty { name: name.to_owned(), why: "no flow was completed" });
        }
        self.too_many(name, points.len(), "curves", MOST_CURVES)?;
        let looks = self.looks(None);
        let curve = |&i: &usize| {
            let (mut steps, mut marked) = (Vec::new(), Vec::new());
            let mut before = if is_tail { 1.0 } else { 0.0 };
            let mut quarters = [0.25, 0.5, 0.75, 0.9, 0.99].into_iter().peekable();
            for (&x, &share) in values(i).into_iter().flat_map(|curve| curve.value.iter().zip(&curve.share)) {
                let after = if is_tail { 1.0 - share } else { share };
                steps.push((x, before));
                // No flow takes longer than the last one, and a logarithmic axis has no zero.
                if !is_tail || after > 0.0 {
                    steps.push((x, after));
                }
                if quarters.next_if(|wanted| share >= wanted - 1e-9).is_some() {
                    while quarters.next_if(|wanted| share >= wanted - 1e-9).is_some() {}
                    marked.push(steps.len() - 1);
                }
                before = after;
            }
            Curve {
                name: self.name(i, None),
                look: self.look(i, &looks),
                halves: vec![None; steps.len()],
                points: steps,
                marked,
            }
        };
        let curves: Vec<Curve> = points.iter().map(curve).collect();
        let high =
            curves.iter().filter_map(|curve| curve.points.last()).map(|point| point.0).fold(0.0, f64::max);
        let low = curves.iter().filter_map(|curve| curve.points.first()).map(|point| point.0);
        let low = low.fold(f64::INFINITY, f64::min);
        let x = match of {
            Of::Fct => "flow completion time [µs]",
            Of::Slowdown => "slowdown (FCT / ideal FCT)",
        };
        let plot = Curves {
            // Within a factor of three a logarithm only bends the axis.
            x: Axis { is_log: high > 3.0 * low, ..Axis::new(x) },
            y: match is_tail {
                true => Axis { is_log: true, high: Some(1.0), ..Axis::new("share of flows above") },
                false => Axis { low: Some(0.0), high: Some(1.0), ..Axis::new("share of flows") },
            },
            curves,
            note: format!(
                "Flows of all seeds together. Marks: 25th, 50th, 75th, 90th and 99th percentile.{}",
                self.runs()
            ),
        };
        Ok(plot::curves(title, &plot))
    }

    /// How many runs a curve is of.
    fn runs(&self) -> String {
        let runs = self.points.iter().map(|&i| self.point(i).folders.len()).max().unwrap_or(0);
        if runs > 1 { format!(" {runs} seeds.") } else { String::new() }
    }

    fn sizes(&self, name: &str, title: &str, statistic: Statistic) -> Result<String, FigureError> {
        let of = |bin: &SizeBin| match statistic {
            Statistic::Mean => bin.mean,
            Statistic::Median => bin.p50,
            Statistic::P99 => bin.p99,
        };
        let bins_of = |i: usize| &self.report.by_size[i];
        let mut ends: Vec<(u64, u64)> =
            self.points.iter().flat_map(|&i| bins_of(i)).map(|bin| (bin.up_to, bin.above)).collect();
        ends.sort_unstable();
        ends.dedup();
        if ends.len() < 2 {
            let why = "fewer than two sizes have ten flows";
            return Err(FigureError::Empty { name: name.to_owned(), why });
        }
        self.too_many(name, self.points.len(), "curves", MOST_CURVES)?;
        let place = |bin: &SizeBin| ends.iter().position(|(end, _)| *end == bin.up_to).unwrap_or(0) as f64;
        let looks = self.looks(None);
        let curve = |&i: &usize| Curve {
            name: self.name(i, None),
            look: self.look(i, &looks),
            points: bins_of(i).iter().map(|bin| (place(bin), of(bin))).collect(),
            halves: vec![None; bins_of(i).len()],
            marked: (0..bins_of(i).len()).collect(),
        };
        let count = |end: u64| {
            let counts = self.points.iter().flat_map(|&i| bins_of(i)).filter(|bin| bin.up_to == end);
            let counts: Vec<u64> = counts.map(|bin| bin.count).collect();
            let (low, high) =
                (counts.iter().min().copied().unwrap_or(0), counts.iter().max().copied().unwrap_or(0));
            if low == high { format!("n={low}") } else { format!("n={low}–{high}") }
        };
        let words = ends.iter().enumerate().map(|(place, &(end, above))| {
            let size = if above == end { Bytes(end).to_string() } else { format!("≤{}", Bytes(end)) };
            (place as f64, format!("{size}\n{}", count(end)))
        });
        let y = match statistic {
            Statistic::Mean => "slowdown, mean",
            Statistic::Median => "slowdown, median",
            Statistic::P99 => "slowdown, 99th percentile",
        };
        let curves: Vec<Curve> =
            self.points.iter().map(curve).filter(|curve| !curve.points.is_empty()).collect();
        let high = curves.iter().flat_map(|curve| &curve.points).map(|point| point.1).fold(0.0, f64::max);
        let plot = Curves {
            x: Axis {
                low: Some(-0.3),
                high: Some(ends.len() as f64 - 0.7),
                words: words.collect(),
                ..Axis::new("flow size")
            },
            y: Axis { low: Some(if high > 20.0 { 1.0 } else { 0.0 }), is_log: high > 20.0, ..Axis::new(y) },
            curves,
            note: format!("n: flows in a bin; those with fewer than ten are left out.{}", self.runs()),
        };
        Ok(plot::curves(title, &plot))
    }

    fn link_use(&self, name: &str, title: &str) -> Result<String, FigureError> {
        let mut tiers: Vec<&str> = Vec::new();
        for tier in self.points.iter().flat_map(|&i| &self.point(i).tiers) {
            if !tiers.contains(&tier.tier.as_str()) {
                tiers.push(&tier.tier);
            }
        }
        self.too_many(name, self.points.len() * tiers.len(), "bars", MOST_BARS)?;
        let looks = self.looks(None);
        let bars = |tier: &str| {
            let bar = |&i: &usize| {
                let used = self.point(i).tiers.iter().find(|used| used.tier == tier)?;
                let (mean, most) = (100.0 * used.mean_utilisation, 100.0 * used.max_utilisation);
                Some(Bar {
                    name: self.name(i, None),
                    colour: self.look(i, &looks).colour,
                    value: Some(mean),
                    half: None,
                    tick: Some(most),
                    text: format!("{} | {}", short(mean), short(most)),
                })
            };
            self.points.iter().filter_map(bar).collect::<Vec<_>>()
        };
        let bars = Bars {
            name: "use of the links [% of the time]".to_owned(),
            groups: tiers.iter().map(|tier| ((*tier).to_owned(), bars(tier))).collect(),
            note: "Bars and first numbers: mean over the channels of the tier; lines and second numbers: busiest channel. Means over the seeds."
                .to_owned(),
        };
        Ok(plot::bars(title, &bars))
    }

    /// What the first tier sent, or the longest queue of any tier.
    fn over_time(&self, name: &str, title: &str, is_queue: bool) -> Result<String, FigureError> {
        let sampled: Vec<(usize, &Series)> = self
            .points
            .iter()
            .filter_map(|&i| Some((i, self.point(i).series.as_ref()?)))
            .filter(|(_, series)| !series.tiers.is_empty())
            .collect();
        let Some(&(_, first)) = sampled.first() else {
            let why = "no run was sampled (measure.sample)";
            return Err(FigureError::Empty { name: name.to_owned(), why });
        };
        self.too_many(name, sampled.len(), "curves", MOST_CURVES)?;
        let tier = first.tiers[0].name.as_str();
        let values = |series: &Series| -> Vec<f64> {
            if is_queue {
                let longest = |k: usize| series.tiers.iter().map(|line| line.queue_kb[k]).fold(0.0, f64::max);
                (0..series.time_us.len()).map(longest).collect()
            } else {
                let line = series.tiers.iter().find(|line| line.name == tier);
                line.map_or_else(|| vec![0.0; series.time_us.len()], |line| line.gbps.clone())
            }
        };
        let looks = self.looks(None);
        let curve = |&(i, series): &(usize, &Series)| {
            let mut points = Vec::new();
            let mut start = 0.0;
            for (&end, value) in series.time_us.iter().zip(values(series)) {
                if !is_queue {
                    // A rate is that of the whole interval before its end.
                    points.push((start, value));
                }
                points.push((end, value));
                start = end;
            }
            // Five marks, evenly spread.
            let marked = (1..=5).map(|mark| (points.len() * mark / 6).min(points.len() - 1)).collect();
            Curve {
                name: self.name(i, None),
                look: self.look(i, &looks),
                halves: vec![None; points.len()],
                points,
                marked,
            }
        };
        let (y, note) = if is_queue {
            (
                "longest queue [kB]".to_owned(),
                "Longest queue of any sampled port; first seed of each point.".to_owned(),
            )
        } else {
            let note = format!(
                "Bytes sent by the channels of tier {tier}, both directions together; first seed of each point."
            );
            ("throughput [Gbit/s]".to_owned(), note)
        };
        let plot = Curves {
            x: Axis { low: Some(0.0), ..Axis::new("time [µs]") },
            y: Axis { low: Some(0.0), ..Axis::new(y) },
            curves: sampled.iter().map(curve).collect(),
            note,
        };
        Ok(plot::curves(title, &plot))
    }
}

/// A quantity with its unit, as axes have it.
fn heading(quantity: &str, unit: &str) -> String {
    match unit {
        "" => quantity.to_owned(),
        "us" => format!("{quantity} [µs]"),
        unit => format!("{quantity} [{unit}]"),
    }
}

/// What a label says as a number: a plain one, or a size, time or rate with its unit.
fn number(label: &str) -> Option<f64> {
    let plain = label.parse::<f64>().ok().filter(|number| number.is_finite());
    plain
        .or_else(|| label.parse::<Bytes>().ok().map(|size| size.0 as f64))
        .or_else(|| label.parse::<Time>().ok().map(|time| time.0 as f64))
        .or_else(|| label.parse::<Rate>().ok().map(|rate| rate.0 as f64))
}

/// Three digits.
fn short(value: f64) -> String {
    plain(format!("{value:.2e}").parse().unwrap_or(value))
}

/// A mean with its interval, as precise as that is.
fn text(estimate: &Estimate) -> String {
    match estimate.plus_minus {
        Some(half) if half > 0.0 => {
            let half = format!("{half:.1e}").parse().unwrap_or(half);
            format!("{} ± {}", plain(estimate.mean), plain(half))
        }
        _ => plain(estimate.mean),
    }
}
