//! The parts of an expression, and what each comes to.

use std::ops::Range;

use crate::study::expression::{Binding, ExpressionError, Metrics, Outcome, Sample, significant};

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

/// Names that are no metrics.
const FUNCTIONS: [&str; 11] = [
    "abs",
    "count_over",
    "max",
    "max_over",
    "mean",
    "mean_over",
    "min",
    "min_over",
    "seed_spread",
    "spread",
    "within",
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
                Ok(Outcome::Number(match *operator {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    _ => a / b,
                }))
            }
            Form::Compare(first, rest) => {
                let mut left = first.number(metrics)?;
                let mut holds = true;
                for (operator, term) in rest {
                    let right = term.number(metrics)?;
                    holds &= match *operator {
                        "<" => left < right,
                        "<=" => left <= right,
                        ">" => left > right,
                        ">=" => left >= right,
                        "==" => left == right,
                        _ => left != right,
                    };
                    left = right;
                }
                Ok(Outcome::Truth(holds))
            }
            Form::Call(name, arguments) => self.call(name, arguments, metrics),
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
            ("abs" | "within", _) => {
                let wanted = if name == "abs" { "one number" } else { "three numbers" };
                self.fail(format!("`{name}` takes {wanted}"))
            }
            ("seed_spread", [metric]) => {
                let samples = metric.samples(metrics)?;
                match samples.as_slice() {
                    [one] => Ok(Outcome::Number(spread(&one.runs))),
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
                Ok(Outcome::Number(aggregate(name, &numbers)))
            }
            ("count_over", [Term { form: Form::Text(axis), .. }, truth]) => {
                let along = |bound: &dyn Metrics| truth.truth(bound).map(|truth| f64::from(u8::from(truth)));
                Ok(Outcome::Number(self.along(axis, metrics, along)?.iter().sum()))
            }
            ("min_over" | "max_over" | "mean_over", [Term { form: Form::Text(axis), .. }, number]) => {
                let numbers = self.along(axis, metrics, |bound| number.number(bound))?;
                Ok(Outcome::Number(aggregate(name.trim_end_matches("_over"), &numbers)))
            }
            ("count_over", _) => self.fail("`count_over` takes an axis in quotes and a comparison"),
            ("min_over" | "max_over" | "mean_over", _) => {
                self.fail(format!("`{name}` takes an axis in quotes and a number"))
            }
            _ => match self.samples(metrics)?.as_slice() {
                [one] => Ok(Outcome::Number(one.mean())),
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
        matches!(&self.form, Form::Call(name, _) if !FUNCTIONS.contains(&name.as_str()))
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

    fn number(&self, metrics: &dyn Metrics) -> Result<f64, ExpressionError> {
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
                Ok(text)
            }
            Form::Binary(operator @ ("and" | "or"), a, b) => {
                Ok(format!("{} {operator} {}", a.sides(metrics)?, b.sides(metrics)?))
            }
            Form::Not(term) => Ok(format!("not ({})", term.sides(metrics)?)),
            Form::Call(name, arguments) if name == "within" => {
                let values: Result<Vec<String>, _> =
                    arguments.iter().map(|term| term.number(metrics).map(significant)).collect();
                Ok(format!("within({})", values?.join(", ")))
            }
            _ => Ok(self.evaluate(metrics)?.to_string()),
        }
    }

    pub(super) fn collect_metrics(&self, found: &mut Vec<(String, Vec<String>)>) {
        self.visit(&mut |term| match &term.form {
            Form::Call(name, arguments) if term.is_metric() => {
                found.push((name.clone(), Self::labels(arguments).unwrap_or_default()));
            }
            _ => {}
        });
    }

    pub(super) fn collect_axes(&self, found: &mut Vec<String>) {
        self.visit(&mut |term| match &term.form {
            Form::Call(_, arguments) if !term.is_metric() => {
                // Only those functions take a text that go along an axis.
                if let Some(Term { form: Form::Text(axis), .. }) = arguments.first() {
                    found.push(axis.clone());
                }
            }
            _ => {}
        });
    }

    /// Shows every term to `see`, from the outermost on.
    fn visit(&self, see: &mut impl FnMut(&Term)) {
        see(self);
        match &self.form {
            Form::Number(_) | Form::Text(_) => {}
            Form::Negate(term) | Form::Not(term) => term.visit(see),
            Form::Binary(_, a, b) => {
                a.visit(see);
                b.visit(see);
            }
            Form::Compare(first, rest) => {
                first.visit(see);
                rest.iter().for_each(|(_, term)| term.visit(see));
            }
            Form::Call(_, arguments) => arguments.iter().for_each(|term| term.visit(see)),
        }
    }
}

/// One number from several; `name` is that of the function.
fn aggregate(name: &str, numbers: &[f64]) -> f64 {
    match name {
        "min" => numbers.iter().copied().fold(f64::INFINITY, f64::min),
        "max" => numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max),
        "mean" => numbers.iter().sum::<f64>() / numbers.len() as f64,
        _ => spread(numbers),
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

fn spread(numbers: &[f64]) -> f64 {
    let lowest = numbers.iter().copied().fold(f64::INFINITY, f64::min);
    let highest = numbers.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = numbers.iter().sum::<f64>() / numbers.len() as f64;
    if highest == lowest { 0.0 } else { (highest - lowest) / mean }
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
}
