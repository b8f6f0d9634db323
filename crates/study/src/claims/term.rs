//! The parts of an expression, and what each comes to.

use std::ops::Range;

use super::certainty::{self, Counted, Sides};
use super::expression::{
    Binding, Counting, ExpressionError, Metrics, Outcome, Sample, significant, two_digits,
};

/// A part of an expression, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Term {
    pub(super) span: Range<usize>,
    pub(super) form: Form,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Form {
    Number(f64),
    Text(String),
    Negate(Box<Term>),
    Not(Box<Term>),
    /// `+ - * /`, `and`, `or`.
    Binary(&'static str, Box<Term>, Box<Term>),
    /// `a < b <= c`: the first operand, then operator and operand in turn.
    Compare(Box<Term>, Vec<(&'static str, Term)>),
    Call(String, Vec<Term>),
}

/// Names that are no metrics, and what they stand for.
pub(crate) const FUNCTIONS: [(&str, &str); 12] = [
    ("abs", "`abs(x)`: absolute value."),
    ("count_over", "`count_over(\"axis\", a < b)`: for how many labels of the axis the comparison holds."),
    ("max", "`max(…)`: the largest of several numbers, or over all points that one metric selects."),
    ("max_over", "`max_over(\"axis\", x)`: the largest value that x takes along the axis, label by label."),
    ("mean", "`mean(…)`: the mean of several numbers, or over all points that one metric selects."),
    (
        "mean_over",
        "`mean_over(\"axis\", x)`: the mean of the values that x takes along the axis, label by label.",
    ),
    ("min", "`min(…)`: the least of several numbers, or over all points that one metric selects."),
    ("min_over", "`min_over(\"axis\", x)`: the least value that x takes along the axis, label by label."),
    ("near", "`near(x, y, d)`: whether x differs from y by at most d."),
    ("seed_spread", "`seed_spread(metric(…))`: (max − min) / mean over the seeds of one point."),
    (
        "spread",
        "`spread(…)`: (max − min) / mean over several numbers, or over all points that one metric selects.",
    ),
    ("within", "`within(x, y, r)`: whether x differs from y by at most r times y."),
];

impl Term {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, ExpressionError> {
        Err(ExpressionError { message: message.into(), span: self.span.clone() })
    }

    pub(super) fn evaluate(&self, metrics: &dyn Metrics) -> Result<Outcome, ExpressionError> {
        match &self.form {
            Form::Number(number) => Ok(Outcome::Number(*number)),
            Form::Text(_) => self.fail("a label stands only between the brackets of a metric"),
            Form::Negate(term) => Ok(Outcome::Number(-term.number(metrics)?)),
            Form::Not(term) => Ok(Outcome::Truth(!term.truth(metrics)?)),
            Form::Binary("and", a, b) => Ok(Outcome::Truth(a.truth(metrics)? & b.truth(metrics)?)),
            Form::Binary("or", a, b) => Ok(Outcome::Truth(a.truth(metrics)? | b.truth(metrics)?)),
            Form::Binary(operator, a, b) => {
                let (a, b) = (a.number(metrics)?, b.number(metrics)?);
                if *operator == "/" && b == 0.0 && !metrics.is_outline() {
                    return self.fail("division by zero");
                }
                let number = match *operator {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    _ => a / b,
                };
                self.finite(number, metrics)
            }
            Form::Compare(first, rest) => {
                let mut left = first.number(metrics)?;
                let mut holds = true;
                for (operator, term) in rest {
                    let right = term.number(metrics)?;
                    holds &= certainty::holds(operator, left, right);
                    left = right;
                }
                Ok(Outcome::Truth(holds))
            }
            Form::Call(name, arguments) => self.call(name, arguments, metrics),
        }
    }

    /// What the seeds say of a comparison; `None` where they allow both answers.
    pub(super) fn judge(&self, metrics: &dyn Metrics) -> Result<Option<bool>, ExpressionError> {
        let both = |a: Option<bool>, b: Option<bool>| match (a, b) {
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => None,
        };
        let is_counted = self.counts() && metrics.seeds() > 1 && metrics.counting() == Counting::Means;
        match &self.form {
            Form::Not(term) => Ok(term.judge(metrics)?.map(|truth| !truth)),
            Form::Binary("and", a, b) => Ok(both(a.judge(metrics)?, b.judge(metrics)?)),
            Form::Binary("or", a, b) => {
                let not = |truth: Option<bool>| truth.map(|truth| !truth);
                Ok(not(both(not(a.judge(metrics)?), not(b.judge(metrics)?))))
            }
            // A count has no interval of its own: it lies between what is certain and what is possible.
            _ if is_counted => {
                let counted = |counting| self.truth(&Counted { metrics, counting });
                let (least, most) = (counted(Counting::Certain)?, counted(Counting::Possible)?);
                Ok((least == most).then_some(least))
            }
            Form::Compare(first, rest) => {
                let mut truth = Some(true);
                let mut left: &Term = first;
                for (operator, right) in rest {
                    let sides =
                        Sides::of(metrics, |metrics| Ok((left.number(metrics)?, right.number(metrics)?)))?;
                    truth = both(truth, sides.compare(operator));
                    left = right;
                }
                Ok(truth)
            }
            Form::Call(name, arguments) => match (name.as_str(), arguments.as_slice()) {
                (name @ ("within" | "near"), [x, y, most]) => {
                    let sides = |sign: f64| {
                        Sides::of(metrics, |metrics| {
                            let (x, y, most) =
                                (x.number(metrics)?, y.number(metrics)?, most.number(metrics)?);
                            let most = if name == "near" { most + ROUNDING } else { most * y.abs() };
                            Ok((sign * (x - y), most))
                        })
                    };
                    Ok(both(sides(1.0)?.compare("<="), sides(-1.0)?.compare("<=")))
                }
                _ => self.truth(metrics).map(Some),
            },
            _ => self.truth(metrics).map(Some),
        }
    }

    /// Whether the term counts comparisons.
    fn counts(&self) -> bool {
        match &self.form {
            Form::Number(_) | Form::Text(_) => false,
            Form::Negate(term) | Form::Not(term) => term.counts(),
            Form::Binary(_, a, b) => a.counts() || b.counts(),
            Form::Compare(first, rest) => first.counts() || rest.iter().any(|(_, term)| term.counts()),
            Form::Call(name, arguments) => name == "count_over" || arguments.iter().any(Term::counts),
        }
    }

    /// A finite number: comparisons with anything else mean nothing.
    fn finite(&self, number: f64, metrics: &dyn Metrics) -> Result<Outcome, ExpressionError> {
        if number.is_finite() || metrics.is_outline() {
            Ok(Outcome::Number(number))
        } else {
            self.fail(format!("this comes to {number}"))
        }
    }

    fn call(
        &self,
        name: &str,
        arguments: &[Term],
        metrics: &dyn Metrics,
    ) -> Result<Outcome, ExpressionError> {
        match (name, arguments) {
            ("abs", [x]) => Ok(Outcome::Number(x.number(metrics)?.abs())),
            ("within", [x, y, share]) => {
                let (x, y, share) = (x.number(metrics)?, y.number(metrics)?, share.number(metrics)?);
                Ok(Outcome::Truth((x - y).abs() <= share * y.abs()))
            }
            ("near", [x, y, distance]) => {
                let (x, y, distance) = (x.number(metrics)?, y.number(metrics)?, distance.number(metrics)?);
                // Published values are rounded: a difference of the distance itself is within it.
                Ok(Outcome::Truth((x - y).abs() <= distance + ROUNDING))
            }
            ("abs" | "within" | "near", _) => {
                let wanted = if name == "abs" { "one number" } else { "three numbers" };
                self.fail(format!("`{name}` takes {wanted}"))
            }
            ("seed_spread", [metric]) => {
                let samples = metric.samples(metrics)?;
                match samples.as_slice() {
                    [one] => self.spread(&one.runs, metrics),
                    many => metric.fail(several(many)),
                }
            }
            ("seed_spread", _) => self.fail("`seed_spread` takes one metric"),
            ("min" | "max" | "mean" | "spread", []) => {
                self.fail(format!("`{name}` takes at least one number"))
            }
            ("min" | "max" | "mean" | "spread", _) => {
                let mut numbers = Vec::new();
                for argument in arguments {
                    if argument.is_metric() {
                        numbers.extend(argument.samples(metrics)?.iter().map(Sample::mean));
                    } else {
                        numbers.push(argument.number(metrics)?);
                    }
                }
                match name {
                    "spread" => self.spread(&numbers, metrics),
                    _ => self.finite(aggregate(name, &numbers), metrics),
                }
            }
            ("count_over", [Term { form: Form::Text(axis), .. }, truth]) => {
                let along = |bound: &dyn Metrics| {
                    let is_counted = match bound.counting() {
                        Counting::Means => truth.truth(bound)?,
                        Counting::Certain => truth.judge(bound)? == Some(true),
                        Counting::Possible => truth.judge(bound)? != Some(false),
                    };
                    Ok(f64::from(u8::from(is_counted)))
                };
                Ok(Outcome::Number(self.along(axis, metrics, along)?.iter().sum()))
            }
            ("min_over" | "max_over" | "mean_over", [Term { form: Form::Text(axis), .. }, number]) => {
                let numbers = self.along(axis, metrics, |bound| number.number(bound))?;
                self.finite(aggregate(name.trim_end_matches("_over"), &numbers), metrics)
            }
            ("count_over", _) => self.fail("`count_over` takes an axis in quotes and a comparison"),
            ("min_over" | "max_over" | "mean_over", _) => {
                self.fail(format!("`{name}` takes an axis in quotes and a number"))
            }
            _ => match self.samples(metrics)?.as_slice() {
                [one] => self.finite(one.mean(), metrics),
                many => self.fail(several(many)),
            },
        }
    }

    /// What comes out at each label of an axis.
    fn along(
        &self,
        axis: &str,
        metrics: &dyn Metrics,
        evaluate: impl Fn(&dyn Metrics) -> Result<f64, ExpressionError>,
    ) -> Result<Vec<f64>, ExpressionError> {
        match metrics.axis(axis) {
            Ok(labels) => labels
                .iter()
                .map(|label| evaluate(&Bound { metrics, binding: Binding { axis, label } }))
                .collect(),
            Err(message) => self.fail(message),
        }
    }

    fn is_metric(&self) -> bool {
        matches!(&self.form, Form::Call(name, _) if !FUNCTIONS.iter().any(|(function, _)| function == name))
    }

    fn labels(arguments: &[Term]) -> Result<Vec<String>, ExpressionError> {
        arguments
            .iter()
            .map(|argument| match &argument.form {
                Form::Text(label) => Ok(label.clone()),
                _ => argument.fail("a metric takes labels in quotes, e.g. \"ecmp\" or \"load=0.5\""),
            })
            .collect()
    }

    fn samples(&self, metrics: &dyn Metrics) -> Result<Vec<Sample>, ExpressionError> {
        match &self.form {
            Form::Call(name, arguments) if self.is_metric() => {
                match metrics.samples(name, &Self::labels(arguments)?, &[]) {
                    Ok(samples) if samples.is_empty() => self.fail("no cell carries all these labels"),
                    Ok(samples) => Ok(samples),
                    Err(message) => self.fail(message),
                }
            }
            _ => self.fail("expected a metric, e.g. p99_fct(\"ecmp\")"),
        }
    }

    pub(super) fn number(&self, metrics: &dyn Metrics) -> Result<f64, ExpressionError> {
        match self.evaluate(metrics)? {
            Outcome::Number(number) => Ok(number),
            Outcome::Truth(_) => self.fail("expected a number, found a comparison"),
        }
    }

    fn truth(&self, metrics: &dyn Metrics) -> Result<bool, ExpressionError> {
        match self.evaluate(metrics)? {
            Outcome::Truth(truth) => Ok(truth),
            Outcome::Number(_) => self.fail("expected a comparison, found a number"),
        }
    }

    pub(super) fn sides(&self, metrics: &dyn Metrics) -> Result<String, ExpressionError> {
        match &self.form {
            Form::Compare(first, rest) => {
                let mut text = significant(first.number(metrics)?);
                for (operator, term) in rest {
                    text += &format!(" {operator} {}", significant(term.number(metrics)?));
                }
                if let ([(_, second)], false) = (rest.as_slice(), self.counts()) {
                    let sides =
                        Sides::of(metrics, |metrics| Ok((first.number(metrics)?, second.number(metrics)?)))?;
                    if let Some((difference, half)) = sides.difference() {
                        text += &format!(" (difference {} ± {})", significant(difference), two_digits(half));
                    }
                }
                Ok(text)
            }
            Form::Binary(operator @ ("and" | "or"), a, b) => {
                Ok(format!("{} {operator} {}", a.sides(metrics)?, b.sides(metrics)?))
            }
            Form::Not(term) => Ok(format!("not ({})", term.sides(metrics)?)),
            Form::Call(name, arguments) if matches!(name.as_str(), "within" | "near") => {
                let values: Result<Vec<String>, _> =
                    arguments.iter().map(|term| term.number(metrics).map(significant)).collect();
                Ok(format!("{name}({})", values?.join(", ")))
            }
            _ => Ok(self.evaluate(metrics)?.to_string()),
        }
    }

    /// (max − min) / mean.
    fn spread(&self, numbers: &[f64], metrics: &dyn Metrics) -> Result<Outcome, ExpressionError> {
        let (lowest, highest) = (aggregate("min", numbers), aggregate("max", numbers));
        let mean = aggregate("mean", numbers);
        if highest == lowest {
            Ok(Outcome::Number(0.0))
        } else if mean == 0.0 && !metrics.is_outline() {
            self.fail("the mean is zero, so there is no spread")
        } else {
            self.finite((highest - lowest) / mean, metrics)
        }
    }
}

/// What rounding in the last decimal may add to a difference.
const ROUNDING: f64 = 1e-9;

/// The least, the largest or the mean of several numbers, by the name of the function.
fn aggregate(name: &str, numbers: &[f64]) -> f64 {
    match name {
        "min" => numbers.iter().copied().fold(f64::INFINITY, f64::min),
        "max" => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        _ => numbers.iter().sum::<f64>() / numbers.len() as f64,
    }
}

fn several(samples: &[Sample]) -> String {
    let labels: Vec<&str> = samples.iter().take(4).map(|sample| sample.label.as_str()).collect();
    let more = if samples.len() > 4 { ", …" } else { "" };
    format!(
        "this selects {} cells ({}{more}) where one number is needed: add labels, or put it in min(), max() or mean()",
        samples.len(),
        labels.join("; ")
    )
}

/// Metrics with one axis bound.
struct Bound<'a> {
    metrics: &'a dyn Metrics,
    binding: Binding<'a>,
}

impl Metrics for Bound<'_> {
    fn samples(&self, metric: &str, labels: &[String], bound: &[Binding<'_>]) -> Result<Vec<Sample>, String> {
        let mut all = vec![self.binding];
        // What is bound inside hides what is bound outside.
        all.retain(|outer| bound.iter().all(|inner| inner.axis != outer.axis));
        all.extend(bound);
        self.metrics.samples(metric, labels, &all)
    }

    fn axis(&self, axis: &str) -> Result<Vec<String>, String> {
        self.metrics.axis(axis)
    }

    fn is_outline(&self) -> bool {
        self.metrics.is_outline()
    }

    fn seeds(&self) -> usize {
        self.metrics.seeds()
    }

    fn counting(&self) -> Counting {
        self.metrics.counting()
    }
}
