//! The language of claims: `p99_fct("flowcut") <= 0.75 * p99_fct("ecmp")`.
//!
//! | written | meaning |
//! | --- | --- |
//! | `metric("a", "load=0.5")` | a number of the summary, of the cells that carry all these labels, mean over the seeds |
//! | `+ - * /`, `( )` | arithmetic |
//! | `< <= > >= == !=` | comparison; `a < b < c` means both |
//! | `and`, `or`, `not` | logic |
//! | `abs(x)` | absolute value |
//! | `within(x, y, r)`, `near(x, y, d)` | whether x differs from y by at most r times y, by at most d |
//! | `min(…)`, `max(…)`, `mean(…)`, `spread(…)` | over several numbers, or over all cells that one metric selects; spread is (max − min) / mean |
//! | `seed_spread(metric(…))` | (max − min) / mean over the seeds of one cell |
//! | `min_over("axis", x)`, `max_over`, `mean_over` | of the values that x takes along the axis, label by label |
//! | `count_over("axis", a < b)` | how many labels of the axis the comparison holds for |

use std::fmt;
use std::ops::Range;

use super::parser::parse;
use super::term::{Form, Term};

/// A metric's value at one point of the grid.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The point's labels, for messages.
    pub label: String,
    /// One number per seed; never empty.
    pub runs: Vec<f64>,
}

impl Sample {
    /// Mean over the seeds.
    pub fn mean(&self) -> f64 {
        self.runs.iter().sum::<f64>() / self.runs.len() as f64
    }
}

/// Where an expression finds its metrics.
pub trait Metrics {
    /// The values of a metric at every point that carries all the labels, and at which the bound axes have their labels.
    ///
    /// A bound axis does not concern a metric that has a label of this axis itself, nor points that are not varied along
    /// the axis.
    ///
    /// # Errors
    /// A name or label that does not exist, said so that a user can mend it.
    fn samples(&self, metric: &str, labels: &[String], bound: &[Binding<'_>]) -> Result<Vec<Sample>, String>;

    /// The labels of an axis.
    ///
    /// # Errors
    /// If there is no such axis, said so that a user can mend it.
    fn axis(&self, axis: &str) -> Result<Vec<String>, String>;

    /// Whether there are only names yet and no numbers: then what a number comes to is no mistake.
    fn is_outline(&self) -> bool {
        false
    }
}

/// An axis at one of its labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Binding<'a> {
    /// The axis.
    pub axis: &'a str,
    /// One of its labels.
    pub label: &'a str,
}

/// What an expression comes to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// A number.
    Number(f64),
    /// The answer to a comparison.
    Truth(bool),
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Number(number) => f.write_str(&significant(*number)),
            Outcome::Truth(truth) => truth.fmt(f),
        }
    }
}

/// A number with four significant digits, as tables show it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "−4 to 5, so that 0 to 7 are left"
)]
pub fn significant(number: f64) -> String {
    if number == 0.0 || !number.is_finite() {
        return number.to_string();
    }
    let magnitude = number.abs().log10().floor();
    if !(-4.0..6.0).contains(&magnitude) {
        return format!("{number:.3e}");
    }
    let decimals = (3 - magnitude as i32).max(0) as usize;
    let text = format!("{number:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// An expression that cannot be read or computed, and which part is to blame.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ExpressionError {
    /// What is wrong.
    pub message: String,
    /// Byte range in the expression's text.
    pub span: Range<usize>,
}

/// A parsed expression.
#[derive(Clone, Debug, PartialEq)]
pub struct Expression {
    root: Term,
}

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// A word that does not belong where it stands.
    pub fn parse(text: &str) -> Result<Self, ExpressionError> {
        Ok(Expression { root: parse(text)? })
    }

    /// Computes the expression.
    ///
    /// # Errors
    /// A metric or label that does not exist, a metric that selects several points where one number is needed,
    /// or a number where an answer is needed and the reverse.
    pub fn evaluate(&self, metrics: &dyn Metrics) -> Result<Outcome, ExpressionError> {
        self.root.evaluate(metrics)
    }

    /// The values on both sides of the comparison, e.g. `12.3 <= 14.1`; for a conjunction all of them.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn sides(&self, metrics: &dyn Metrics) -> Result<String, ExpressionError> {
        self.root.sides(metrics)
    }

    /// Finds mistakes before there are numbers: every metric, label and axis is there, every function has what it takes, one number is
    /// one number, and the whole is a comparison if it has to be.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self, outline: &dyn Metrics, is_comparison: bool) -> Result<(), ExpressionError> {
        match (self.evaluate(outline)?, is_comparison) {
            (Outcome::Number(_), true) => {
                let message = "expected a comparison, found a number".to_owned();
                Err(ExpressionError { message, span: self.root.span.clone() })
            }
            (Outcome::Truth(_), false) => {
                let message = "expected a number, found a comparison".to_owned();
                Err(ExpressionError { message, span: self.root.span.clone() })
            }
            _ => Ok(()),
        }
    }

    /// Whether a metric is a published value up to a tolerance by `function` (`near` or `within`), and the metric alone.
    pub(crate) fn compared(
        function: &str,
        metric: &str,
        labels: Vec<String>,
        value: f64,
        tolerance: f64,
    ) -> (Self, Self) {
        let term = |form| Term { span: 0..0, form };
        let labels = labels.into_iter().map(|label| term(Form::Text(label))).collect();
        let metric = term(Form::Call(metric.to_owned(), labels));
        let numbers = [value, tolerance].map(|number| term(Form::Number(number)));
        let arguments = std::iter::once(metric.clone()).chain(numbers).collect();
        (Expression { root: term(Form::Call(function.to_owned(), arguments)) }, Expression { root: metric })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `p99_fct` of ecmp is 8 and 12 over two seeds, of flowcut 7; `ooo` is 0 everywhere.
    struct Table;

    impl Metrics for Table {
        fn samples(
            &self,
            metric: &str,
            labels: &[String],
            bound: &[Binding<'_>],
        ) -> Result<Vec<Sample>, String> {
            let labels: Vec<&str> =
                labels.iter().map(String::as_str).chain(bound.iter().map(|binding| binding.label)).collect();
            let all = match metric {
                "p99_fct" => vec![("ecmp", vec![8.0, 12.0]), ("flowcut", vec![7.0])],
                "ooo" => vec![("ecmp", vec![0.0]), ("flowcut", vec![0.0])],
                _ => return Err(format!("there is no metric `{metric}`")),
            };
            Ok(all
                .into_iter()
                .filter(|(label, _)| labels.iter().all(|wanted| wanted == label))
                .map(|(label, runs)| Sample { label: label.to_owned(), runs })
                .collect())
        }

        fn axis(&self, axis: &str) -> Result<Vec<String>, String> {
            match axis {
                "scheme" => Ok(["ecmp", "flowcut"].map(str::to_owned).to_vec()),
                _ => Err(format!("there is no axis `{axis}`")),
            }
        }
    }

    fn evaluate(text: &str) -> Result<Outcome, ExpressionError> {
        Expression::parse(text)?.evaluate(&Table)
    }

    fn number(text: &str) -> f64 {
        match evaluate(text).unwrap() {
            Outcome::Number(number) => number,
            Outcome::Truth(truth) => panic!("{truth}"),
        }
    }

    fn holds(text: &str) -> bool {
        evaluate(text).unwrap() == Outcome::Truth(true)
    }

    fn message(text: &str) -> (String, String) {
        let error = evaluate(text).unwrap_err();
        (error.message, text[error.span].to_owned())
    }

    #[test]
    fn arithmetic_binds_as_on_paper() {
        assert_eq!(number("1 + 2 * 3 - 4 / 2"), 5.0);
        assert_eq!(number("(1 + 2) * -3"), -9.0);
        assert_eq!(number("10 - 4 - 3"), 3.0);
        assert_eq!(number("1e3 + 2.5e-1"), 1000.25);
        assert_eq!(number("--2"), 2.0);
        assert_eq!(number("abs(-2) + max(1, 5, 3) + min(4, 2)"), 9.0);
    }

    #[test]
    fn a_claim_compares_means_over_seeds() {
        assert_eq!(number("p99_fct(\"ecmp\")"), 10.0);
        assert!(holds("p99_fct(\"flowcut\") <= 0.75 * p99_fct('ecmp')"));
        assert!(!holds("p99_fct(\"ecmp\") / p99_fct(\"flowcut\") > 2"));
        assert_eq!(number("seed_spread(p99_fct(\"ecmp\"))"), 0.4);
    }

    #[test]
    fn comparisons_chain_and_logic_joins_them() {
        assert!(holds("1 < 2 <= 2 < 3"));
        assert!(!holds("1 < 2 < 2"));
        assert!(holds("not 1 > 2 and (2 > 1 or 1 > 2)"));
        assert!(holds("within(10.1, 10, 0.02) and not within(11, 10, 0.02)"));
    }

    #[test]
    fn aggregates_run_over_all_selected_cells() {
        assert_eq!(number("min(p99_fct())"), 7.0);
        assert_eq!(number("max(p99_fct())"), 10.0);
        assert_eq!(number("mean(p99_fct())"), 8.5);
        assert_eq!(number("spread(p99_fct())"), 3.0 / 8.5);
        assert_eq!(number("spread(ooo())"), 0.0);
    }

    #[test]
    fn an_axis_is_gone_along_label_by_label() {
        // 2 x 10 - 10 and 2 x 7 - 7: both metrics are those of the same label.
        assert_eq!(number("min_over('scheme', 2 * p99_fct() - p99_fct())"), 7.0);
        assert_eq!(number("max_over('scheme', p99_fct() / 2)"), 5.0);
        assert_eq!(number("mean_over('scheme', p99_fct())"), 8.5);
        assert_eq!(number("count_over('scheme', p99_fct() < 8 and ooo() == 0)"), 1.0);
        assert_eq!(number("mean_over('scheme', max_over('scheme', p99_fct()))"), 10.0);
    }

    #[test]
    fn both_sides_of_a_claim_are_shown() {
        let sides = |text: &str| Expression::parse(text).unwrap().sides(&Table).unwrap();
        assert_eq!(sides("p99_fct(\"flowcut\") <= 0.75 * p99_fct(\"ecmp\")"), "7 <= 7.5");
        assert_eq!(sides("ooo(\"ecmp\") == 0 and 1 < 2"), "0 == 0 and 1 < 2");
    }

    #[test]
    fn a_mistake_is_pointed_at() {
        let (text, word) = message("p99_fct() < 1");
        assert!(text.starts_with("this selects 2 cells (ecmp; flowcut)"), "{text}");
        assert_eq!(word, "p99_fct()");
        assert_eq!(
            message("p98(\"ecmp\") < 1"),
            ("there is no metric `p98`".to_owned(), "p98(\"ecmp\")".to_owned())
        );
        assert_eq!(
            message("1 < "),
            ("expected a number, a metric or `(`, found the end".to_owned(), String::new())
        );
        assert_eq!(message("ooo < 1").1, "<");
        assert_eq!(message("(1 < 2) + 1").0, "expected a number, found a comparison");
        assert_eq!(message("1 and 2").0, "expected a comparison, found a number");
        assert_eq!(message("1 $ 2"), ("`$` means nothing here".to_owned(), "$".to_owned()));
        assert_eq!(message("ooo(\"ecmp)").0, "a closing \" is missing");
        assert_eq!(message("1 2").0, "expected an operator or the end, found `2`");
        assert_eq!(message("ooo(\"zebra\") < 1").0, "no cell carries all these labels");
        assert_eq!(message("abs(1, 2)").0, "`abs` takes one number");
        assert_eq!(
            message("min_over(\"load\", ooo())"),
            ("there is no axis `load`".to_owned(), "min_over(\"load\", ooo())".to_owned())
        );
        assert_eq!(message("min_over(ooo())").0, "`min_over` takes an axis in quotes and a number");
        assert_eq!(message("count_over(\"scheme\", ooo())").0, "expected a comparison, found a number");
        assert_eq!(message("1.2.3").0, "`1.2.3` is no number");
    }

    #[test]
    fn what_comes_to_no_number_is_no_claim() {
        assert_eq!(
            message("1 / ooo(\"ecmp\") > 1"),
            ("division by zero".to_owned(), "1 / ooo(\"ecmp\")".to_owned())
        );
        assert_eq!(message("not ooo(\"ecmp\") / ooo(\"ecmp\") < 1").0, "division by zero");
        assert_eq!(message("spread(-1, 1) > 0").0, "the mean is zero, so there is no spread");
        assert_eq!(message("1e300 * 1e300 > 1").0, "this comes to inf");
        assert_eq!(message("1e999 > 1"), ("`1e999` is too large".to_owned(), "1e999".to_owned()));
        assert_eq!(number("spread(0, 0)"), 0.0);
    }

    #[test]
    fn published_values_are_rounded() {
        assert!(holds("near(0.91, 0.89, 0.02) and near(0.87, 0.89, 0.02) and not near(0.9101, 0.89, 0.02)"));
        let (claim, metric) = Expression::compared("near", "p99_fct", vec!["ecmp".to_owned()], 10.5, 0.4);
        assert_eq!(claim.evaluate(&Table), Ok(Outcome::Truth(false)));
        assert_eq!(metric.evaluate(&Table), Ok(Outcome::Number(10.0)));
    }

    /// The names of [`Table`] without its numbers.
    struct Names;

    impl Metrics for Names {
        fn samples(
            &self,
            metric: &str,
            labels: &[String],
            bound: &[Binding<'_>],
        ) -> Result<Vec<Sample>, String> {
            let mut samples = Table.samples(metric, labels, bound)?;
            samples.iter_mut().for_each(|sample| sample.runs = vec![f64::NAN]);
            Ok(samples)
        }

        fn axis(&self, axis: &str) -> Result<Vec<String>, String> {
            Table.axis(axis)
        }

        fn is_outline(&self) -> bool {
            true
        }
    }

    #[test]
    fn mistakes_are_found_without_numbers() {
        let check =
            |text: &str| Expression::parse(text).unwrap().check(&Names, true).map_err(|error| error.message);
        assert_eq!(check("1 / (p99_fct('ecmp') - ooo('ecmp')) > min(ooo()) or spread(ooo()) < 1"), Ok(()));
        for (text, message) in [
            ("p99_fct('ecmp')", "expected a comparison, found a number"),
            ("1 < 2 and p98('ecmp') > 1", "there is no metric `p98`"),
            ("within(1, 2)", "`within` takes three numbers"),
            (
                "count_over('scheme', ooo() < 1 or p99_fct('zebra') > 1) > 1",
                "no cell carries all these labels",
            ),
        ] {
            assert_eq!(check(text), Err(message.to_owned()), "{text}");
        }
    }

    #[test]
    fn brackets_without_end_are_refused() {
        assert!(evaluate(&"(".repeat(1000)).unwrap_err().message.contains("at most 100 opening"));
    }

    #[test]
    fn chains_without_end_are_refused() {
        for sign in ["+", "and", "or", "*"] {
            let error = evaluate(&format!("1 {sign} ").repeat(1_000_000)).unwrap_err();
            assert_eq!(error.message, "an expression has at most 2000 words");
        }
        assert!(evaluate(&format!("{}1 > 0", "1 + ".repeat(900))).is_ok());
    }

    #[test]
    fn numbers_are_shown_with_four_digits() {
        let shown = [12.3456, 0.000_123_46, 1234.56, 100.0, 0.0, 1.5e9, 2e-7].map(significant);
        assert_eq!(shown, ["12.35", "0.0001235", "1235", "100", "0", "1.500e9", "2.000e-7"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[-+*/()<>=!a-z0-9.,\"' é]{0,40}") {
            let _ = evaluate(&text);
        }
    }
}
